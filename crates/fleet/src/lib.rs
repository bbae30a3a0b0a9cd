//! Which drives are slow, how often, for how long, and why: of a whole fleet in its records, and of one host as it runs.
//!
//! ```text
//!   hours table --> slowdown --> analysis: a summary of each part, merged --> tables and figures
//!   samples     --> detect: windows of five minutes, member against members --> verdicts <-- watch: the same of this host
//!   pages       --> smart --> erc: what a drive does about errors, in the light of its redundancy
//! ```
//!
//! No file, clock, thread or column format: what is read comes as slices or texts, time as an argument.

#![forbid(unsafe_code)]

pub mod analysis;
pub mod detect;
pub mod erc;
pub mod events;
pub mod exhibits;
pub mod generate;
mod hours;
pub mod smart;
pub mod watch;

pub use hours::{Hours, HoursTable, MODEL_UNKNOWN};

/// The first line of samples as `watch` records them: a line a drive and window of five minutes, the mean latency in microseconds, the load in
/// bytes a second.
pub const RECORD_HEADER: &str = "ts,group,drive,latency_us,load";
