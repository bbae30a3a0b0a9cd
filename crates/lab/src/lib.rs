//! The cores in virtual time: worlds and replays.
//!
//! ```text
//!     arrivals --> [ array ] --Submit--> [ drive ] x N
//!                     ^                      |
//!                     +-------- done --------+        one event queue, one seed
//! ```
//!
//! A [`World`] is one array over modelled drives. [`replay`] sends it a list of arrivals once for
//! each policy, over drives that behave alike each time: a sector fails for the same requests
//! whatever the policy.
//!
//! [`timed`] reads from a world for a fixed time and counts what is unfinished then, as a measurement with
//! a clock does: it predicts what a run in real time gives.
//!
//! [`trace_based`] works out from a trace's own times what a drive could verify while it was idle.
//!
//! [`open_loop`] sends a list of arrivals to one drive without an array and without bytes.
//!
//! [`mounted`] is a filesystem on one drive: workloads over files are carried out there, and their time is told.
//!
//! A [`Lone`] is one drive without an array, with its bytes. [`Pumped`] makes a block device of either.
//!
//! The power can fail, of all drives at once: what a drive that writes back had in memory only is gone,
//! and its old bytes are there again.
//!
//! # Differs from the real thing
//!
//! - Computing takes no time, and neither does the way between host and drive beyond the overhead in
//!   the drive's profile.
//! - Health pages are read at exact intervals and cost nothing.

#![forbid(unsafe_code)]

mod bytes;
mod lone;
pub mod mounted;
pub mod open_loop;
mod pumped;
mod records;
pub mod replay;
mod start;
pub mod studies;
pub mod timed;
pub mod trace_based;
mod world;

pub use lone::Lone;
pub use pumped::{Pump, Pumped};
pub use start::{Force, Journaling, NoStart};
pub use world::{Step, Trail, World, WorldError, WorldSettings};
