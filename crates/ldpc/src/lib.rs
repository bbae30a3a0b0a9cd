//! The code inside a drive: a quasi-cyclic LDPC code over one sector, its decoder, and how often it fails.
//!
//! ```text
//!   data (4096 B) --encode--> codeword (36,352 bits) --channel--> levels --decode--> bits, or a failure
//!                                    ^                              ^
//!                       last bytes are zeroes:             BER, soft or hard
//!                       zero forcing leaves their columns out
//! ```
//!
//! - `code`: the parity-check matrix, from the committed `shifts` (sizes are in `shape`); how it was made, its girth and its rank are in `construct`;
//! - `ring`: blocks of 512 bits as polynomials modulo `x^512 + 1`;
//! - `encode`: the redundant bits of a sector;
//! - `channel`: white Gaussian noise, quantised, drawn exactly; the same with one bit a sample;
//! - `decoder`: layered normalised min-sum over bytes, by one of several kernels that give the same bits;
//! - `sector`: a sector's way to the medium and back: randomised, its zeroes found out from what is read;
//! - `simulate`: failure rates by Monte Carlo, in numbered blocks;
//! - `fit`: the curves through them, and how far they may be off;
//! - `limits`: what the best code of this length could bear;
//! - `retries`: what follows for a drive whose heads wander.
//!
//! # References
//!
//! - `[SDHDD]` for sectors, code rate and zero forcing. The paper does not give its code, decoder and quantiser: these are
//!   ours.

#![deny(unsafe_code)]

mod channel;
mod code;
mod construct;
mod decoder;
mod encode;
mod fit;
mod limits;
mod retries;
mod ring;
mod sector;
mod shape;
mod shifts;
mod simulate;

pub use channel::{Channel, ChannelError, ChannelKind};
pub use code::{Codeword, Entry, ZeroForcing, column_of, shift_of, syndrome_is_zero};
pub use construct::{Census, census, construct};
pub use decoder::{Decoded, Decoder, Kernel, UnknownKernel};
pub use encode::encode;
pub use fit::{Band, Bootstrap, COUNTS, CURVES, Count, Counted, Curves, End, FITS, Fit, Fitted};
pub use retries::{
    DecodedRetries, RetryError, RetryModel, RetryTable, STEPS_MAX, ShownStep, Step, TEXT_MAX,
    TableError,
};
pub use sector::{Effort, KINDS, ReadBack, SHARE_MAX_PERCENT, SectorCode, Shares, kind_of};
pub use shape::{
    BLOCK_BITS, Block, CODE_BITS, COLUMNS, DATA_BITS, DATA_COLUMNS, ROWS, SECTOR_BYTES,
};
pub use simulate::{BLOCK_FRAMES, BlockCount, Outcome, Point, Tally, Until};
