//! Files and block devices behind one io_uring: one thread, any number of commands inside the drives.
//!
//! ```text
//!   submit --> lane of the drive: waiting, beyond the window
//!                          |
//!                        submission queue --> kernel --> completion queue --> ended
//!                          ^                                   |
//!                          +-- the rest of a short transfer, --+
//!                              the parts of a read that failed,
//!                              the sync after a durable write
//! ```
//!
//! A SCSI command has no entry in a ring: [`helpers`] wait for it.
//!
//! What a command needs next is decided in [`flight`], what the kernel is told in [`ring`], and whose
//! turn it is in [`driver`]; a test puts a kernel of its own in the ring's place. An array's engine owns
//! one driver for all its drives, and its thread sleeps in the kernel until something completes or its
//! [`Bell`] rings.
//!
//! # Safety
//!
//! - U1. Memory that the kernel reads or writes belongs to a [`Flight`](flight::Flight) (or to the ring),
//!   and is neither moved nor freed nor looked at from its submission to its completion. The flight keeps
//!   the drive's descriptors open as well. What holds for the kernel holds for the threads of [`helpers`].
//! - U2. A command has at most one entry in the submission queue, and there are never more commands
//!   under way than the windows allow, so the queue never overflows.
//! - U3. If a driver has to give up with commands in the kernel, their memory is leaked, and the ring
//!   with it: nothing waits for them.

#![allow(unsafe_code)]

#[cfg(test)]
pub(crate) mod alone;
mod driver;
mod flight;
mod helpers;
#[cfg(test)]
pub(crate) mod puppet;
mod ring;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;

use io_uring::{IoUring, Probe, opcode};

pub(crate) use self::driver::{Driver, Ended};
pub(crate) use self::ring::Kernel;
use self::ring::{OpenDoor, Ring};
use crate::bell::Bell;
use crate::devices::ways::ReadWays;
use crate::error::HostError;
use crate::medium::Medium;

/// What a drive's commands need to know of it.
pub(crate) struct Under {
    pub(crate) medium: Arc<Medium>,
    pub(crate) ways: Arc<ReadWays>,
}

/// Whether the kernel offers all that is needed here; if not, why.
pub(crate) fn check_available() -> Result<(), HostError> {
    let refused = |error: io::Error| HostError::new(format!("io_uring is not to be had: {error}"));
    let ring = IoUring::new(2).map_err(refused)?;
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe).map_err(refused)?;
    // What waits in a ring for so long at most, and steps of one drive that wait for another's.
    ring.submitter().register_iowq_max_workers(&mut [0, 0]).map_err(refused)?;
    let needed = [opcode::Read::CODE, opcode::Writev::CODE, opcode::Fsync::CODE];
    let waits = ring.params().is_feature_ext_arg();
    if waits && needed.iter().all(|&code| probe.is_supported(code)) {
        return Ok(());
    }
    Err(HostError::new("io_uring is not to be had: the kernel's is too old"))
}

/// The ring of a thread that has `window` commands inside each of these drives at a time, woken by the
/// bell.
pub(crate) fn open(
    drives: &[Arc<Under>],
    window: u32,
) -> Result<(impl Kernel + use<>, Bell), HostError> {
    let failed = |error: io::Error| HostError::new(format!("cannot start an io_uring: {error}"));
    let (bell, pipe) = Bell::new().map_err(failed)?;
    let steps = window * u32::try_from(drives.len()).expect("an array has few drives");
    let ring = Ring::new(steps, drives, pipe, OpenDoor).map_err(failed)?;
    Ok((ring, bell))
}
