//! How a thread that waits in a ring is told that there is something for it elsewhere: a pipe, one end of
//! which is among the ring's reads.
//!
//! ```text
//!   waiter: arm, look at the channel, wait in the ring, disarm
//!   others: put something into the channel, ring
//! ```
//!
//! # Invariants
//!
//! - L1. What was put into the channel before [`Bell::ring`] is seen by the look after [`Bell::arm`], or a
//!   byte goes into the pipe.
//! - L2. At most one byte is written for each time the bell is armed, so that the pipe never fills up and
//!   a thread that rings never waits; and none while the waiter is at work.

use std::io::{self, PipeReader, PipeWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// See the module.
pub(crate) struct Bell {
    pipe: PipeWriter,
    is_armed: AtomicBool,
}

impl Bell {
    /// A bell, and what its waiter reads.
    pub(crate) fn new() -> io::Result<(Self, PipeReader)> {
        let (reader, pipe) = io::pipe()?;
        Ok((Self { pipe, is_armed: AtomicBool::new(false) }, reader))
    }

    /// The waiter is about to look at the channel, and then to wait.
    pub(crate) fn arm(&self) {
        self.is_armed.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst); // L1
    }

    /// The waiter is at work again.
    pub(crate) fn disarm(&self) {
        self.is_armed.store(false, Ordering::SeqCst);
    }

    /// Wakes the waiter, if it waits.
    pub(crate) fn ring(&self) {
        fence(Ordering::SeqCst); // L1
        if self.is_armed.swap(false, Ordering::SeqCst) {
            // Without a reader there is no waiter any more to be woken.
            drop((&self.pipe).write_all(&[1]));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn bell_writes_one_byte_each_time_it_is_armed_and_none_otherwise() {
        let (bell, mut pipe) = Bell::new().unwrap();
        bell.ring();
        for _ in 0..3 {
            bell.arm();
            (0..5).for_each(|_| bell.ring());
        }
        bell.arm();
        bell.disarm();
        bell.ring();
        drop(bell);
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, [1; 3]);
    }
}
