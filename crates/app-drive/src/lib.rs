//! `levelhead drive probe`, `levelhead drive emulate` and `levelhead demo`: what a drive can do, and emulated drives.

#![forbid(unsafe_code)]

pub mod demo;
mod emulate;
mod probe;

pub use emulate::{Emulate, Emulated, MemoryKey, Verified, emulate};
pub use probe::{Probed, probe_device};
