//! The filesystem under a mount point: the kernel's requests become the core's, and the core's answers the kernel's.
//!
//! ```text
//!   kernel --/dev/fuse--> [ kernel.rs ] --Input--> [ driver.rs ] <--> core
//!      ^                                             |     ^
//!      +------------- answers, from the driver ------+     |  Submit, done
//!                                                        drive
//! ```
//!
//! Threads that read the kernel's requests, the drive's, and one that keeps the clock: each may drive the core, one at a time. A
//! shell: it decides nothing about files.
//!
//! # Invariants
//!
//! - FU1. Every request of the kernel is answered exactly once, whatever panics.
//! - FU2. After a panic the core is not called any more: every request fails, and nothing is written.
//! - FU3. The core is told of every inode that the kernel does not know any more, and of those that it was never told of.
//! - FU4. What the kernel has asked for and has no answer yet holds at most [`WAITING_MAX`] bytes and one request more.

#![forbid(unsafe_code)]

mod attach;
mod driver;
mod error;
mod gate;
mod kernel;
mod reading_ahead;
mod scrub;
mod serve;
mod status;
mod sync;
mod translate;

pub use attach::{Attached, Flags, Options, Source, attach, detach};
pub use error::FuseError;
pub use gate::WAITING_MAX;
pub use kernel::WriteCache;
pub use scrub::scrub_step;
pub use serve::{Served, Serving, serve};
pub use status::{DAMAGED, STATUS, read_damaged, read_status};
pub use sync::sync;
