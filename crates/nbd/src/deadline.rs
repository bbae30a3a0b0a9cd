//! An end to the time that a handshake may take, on either side.
//!
//! The time is one for all of it. Every read and every write may wait for what is left of it, so that the
//! other side gains nothing by sending one byte after the other, by asking option after option, or by not
//! taking the answers.

use std::io::{self, IoSlice, Read, Write};
use std::time::{Duration, Instant};

use crate::socket::Socket;

/// A socket until a time after which reading and writing fail as [`io::ErrorKind::TimedOut`].
pub(crate) struct Deadline<'a> {
    socket: &'a Socket,
    since: Instant,
    limit: Duration,
}

impl<'a> Deadline<'a> {
    /// `limit` from now on.
    pub(crate) fn after(limit: Duration, socket: &'a Socket) -> Self {
        Self { socket, since: Instant::now(), limit }
    }

    /// Lets the socket wait for as long as it takes again.
    pub(crate) fn lift(self) -> io::Result<()> {
        self.socket.limit_reads(None)?;
        self.socket.limit_writes(None)
    }

    /// What is left of the time, never nothing.
    fn left(&self) -> io::Result<Duration> {
        let left = self.limit.saturating_sub(self.since.elapsed());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl Read for Deadline<'_> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        self.socket.limit_reads(Some(self.left()?))?;
        self.socket.read(space).map_err(timed_out)
    }
}

impl Write for Deadline<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        self.socket.limit_writes(Some(self.left()?))?;
        self.socket.write(&[IoSlice::new(bytes)]).map_err(timed_out)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An error of a socket that has waited for as long as it may.
fn timed_out(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    }
}
