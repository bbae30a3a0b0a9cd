//! The cores in virtual time: worlds, replays, checkers and swarms.
//!
//! ```text
//!     arrivals --> [ array ] --Submit--> [ drive ] x N
//!                     ^                      |
//!                     +-------- done --------+        one event queue, one seed
//! ```
//!
//! A [`World`] is one array over modelled drives. [`replay`] sends it a list of arrivals once for
//! each policy, over drives that behave alike each time: a sector fails for the same requests
//! whatever the policy. [`swarm`] sends it random requests over drives that fail and disappear,
//! and compares every byte with plain memory.
//!
//! # Differs from the real thing
//!
//! - Computing takes no time, and neither does the way between host and drive beyond the overhead in
//!   the drive's profile.
//! - Health pages are read at exact intervals and cost nothing.

#![forbid(unsafe_code)]

mod bytes;
pub mod replay;
pub mod studies;
pub mod swarm;
mod world;

pub use world::{World, WorldError, WorldSettings};
