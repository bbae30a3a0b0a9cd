//! A fleet's hours in one pass, as summaries that merge; tables and figures from them.
//!
//! ```text
//!   Hours slices --> Kernel --> Summary --+-- merge --> Summary --> quantiles, shares, intervals
//!   Hours slices --> Kernel --> Summary --'      \--> bytes
//! ```
//!
//! Memory grows with drives and groups, never with hours: each drive keeps its first and last hour and the slow runs that touch
//! them, each group its first and last hour. All else are counts.
//!
//! * R1: the summary of parts merged is, to the byte, the summary of one pass, if each drive's parts are joined neighbour to
//!   neighbour: parts by group in any order, parts by time in any order in which no part is still missing between two.
//! * R2: an hour that is missing is no stable hour: it ends a slow run and takes no part in what follows what.
//! * R3: nothing is dropped in silence: each row is counted, or counted as idle, without value, or of too few peers.
//!
//! A drive is known by its group and its number: one that moved counts in both groups. Left out: a drive's events.

mod codec;
mod drive;
mod histogram;
mod kernel;
mod rules;
mod summary;
#[cfg(test)]
mod tests;

pub use codec::CodecError;
pub use histogram::{BUCKETS, Bucket, Histogram, Share};
pub use kernel::{Disorder, Kernel};
pub(crate) use kernel::{PEERS_MIN, SLOW};
pub use rules::{Rules, Scope};
pub use summary::{Counts, MergeError, Model, SlowDrive, Span, Summary};
