//! From curves to retries: how often each further try of a drive fails, too.
//!
//! A drive's head is never quite over the middle of a track, neither when it writes nor when it reads. What it is off by
//! costs amplitude, which to the decoder is noise; and a drive that reads again looks elsewhere.
//!
//! ```text
//!   written offset w ~ N(0, s_w)       stays with a sector until it is written again
//!   pass offset    x ~ N(0, s_x)       new with each pass
//!   step j aims at o_j                 amplitude  g = 1 - ((w + x - o_j) / h)^2
//!   the decoder's noise                sigma_j = sigma_0 / (g sqrt(gain_j))
//!   gain of k passes averaged          1 / (m + (1 - m) / k), m: the medium's share of the noise, which repeats
//!
//!   P(step j fails | w)                = E_x  Phi(b (sigma_j(w, x) - s))             b, s: the curve of the level
//!   P(steps 0 to j all fail)           = E_w  prod_i P(step i fails | w)
//! ```
//!
//! `sigma_0` is solved from the failure rate of the first pass. The law of `w` is cut into *classes*, each of one offset, so that a
//! sum over them is the expectation and a drive's sector can be given one ([`RetryTable`]).
//!
//! A step without revolutions has the samples of the one before it and gives the decoder more iterations. Of the same samples
//! more iterations fail where fewer fail, or not; so one uniform number a pass decides about both.
//!
//! # Assumptions
//!
//! - RT1. Given `w`, passes are independent. Of passes that are averaged this holds for what remains after the gain.
//! - RT2. All sectors of a drive have the same `sigma_0`.
//! - RT3. A level's curve is that of [`FITS`](crate::FITS), also far below the rates at which it was measured.
//!
//! # References
//!
//! - `[SDHDD]` for the gain of zero forcing where sectors are equal. Offsets, steps and averaging are ours.

mod decoded;
mod error;
mod model;
mod table;
mod text;

pub use decoded::DecodedRetries;
pub use error::{STEPS_MAX, TEXT_MAX, TableError};
pub use model::{RetryError, RetryModel, Step};
pub use table::{RetryTable, ShownStep};

#[cfg(test)]
mod tests;
