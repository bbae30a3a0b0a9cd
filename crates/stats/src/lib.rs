//! Chance and its measurement: named random streams, distributions, quantiles and intervals.
//!
//! Every consumer of chance draws from a stream of its own, named after what it is for
//! (`"drive/3/faults"`). Two runs that differ in one consumer's draws still agree in all others',
//! which is what makes a comparison of policies fair.

#![forbid(unsafe_code)]

mod counts;
mod interval;
mod middle;
mod normal;
mod rng;
mod summary;

pub use counts::{CountInterval, binomial_interval, until_failures_interval};
pub use interval::{Interval, mean_interval};
pub use middle::{distances_from, low_median_of, median_of, median_of_sorted};
pub use normal::Normal;
pub use rng::{Rng, Streams, hash_of, unit_of};
pub use summary::{Summary, quantile_of_sorted};
