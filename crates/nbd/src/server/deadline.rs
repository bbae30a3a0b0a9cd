//! An end to the time that a client may take for its handshake.
//!
//! The time is one for all of it. Every read and every write may wait for what is left of it, so that a
//! client gains nothing by sending one byte after the other, by asking option after option, or by not
//! taking the answers.

use std::io::{self, IoSlice};
use std::time::{Duration, Instant};

use crate::socket::Socket;

/// A socket until a time after which reading and writing fail as [`io::ErrorKind::TimedOut`].
pub(super) struct Deadline<'a> {
    socket: &'a Socket,
    since: Instant,
    limit: Duration,
}

impl<'a> Deadline<'a> {
    /// `limit` from now on.
    pub(super) fn after(limit: Duration, socket: &'a Socket) -> Self {
        Self { socket, since: Instant::now(), limit }
    }

    /// Reads as [`Socket::read`] does.
    pub(super) fn read(&self, space: &mut [u8]) -> io::Result<usize> {
        self.socket.limit_reads(Some(self.left()?))?;
        self.socket.read(space).map_err(timed_out)
    }

    /// Sends all of `bytes`.
    pub(super) fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.socket.limit_writes(Some(self.left()?))?;
            let count = self.socket.write(&[IoSlice::new(bytes)]).map_err(timed_out)?;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// Lets the socket wait for as long as it takes again.
    pub(super) fn lift(self) -> io::Result<()> {
        self.socket.limit_reads(None)?;
        self.socket.limit_writes(None)
    }

    /// What is left of the time, never nothing.
    fn left(&self) -> io::Result<Duration> {
        let left = self.limit.saturating_sub(self.since.elapsed());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

/// An error of a socket that has waited for as long as it may.
fn timed_out(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    }
}
