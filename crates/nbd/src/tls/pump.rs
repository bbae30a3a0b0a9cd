//! Carries the bytes of one encrypted connection after its handshake.
//!
//! ```text
//!   server or client          pump, a thread                 the other side
//!     plain socket <== pair ==> near   session   wire <====> socket
//!                               decrypt <------- read
//!                               encrypt -------> write
//! ```
//!
//! # Invariants
//!
//! - U1. The pump holds at most [`PLAIN_MAX`] bytes on their way out and as many on their way in. It reads
//!   nothing more from a side until the other has taken what came before: who is slow at one end is felt at
//!   the other.
//! - U2. It waits in one place, for both sides at once, and never while something can be carried.
//! - U3. Once the near side is closed altogether, what it said before has [`FAREWELL`] to leave, and the pump
//!   ends. A socket that is shut down from elsewhere ends it at once.

use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::Connection;

use crate::socket::Socket;

/// The most bytes on their way in one direction.
const PLAIN_MAX: usize = 256 << 10;

/// What is carried in one direction before the other is looked at.
const TURN_MAX: usize = 4 * PLAIN_MAX;

/// How long the other side may take for the last bytes.
pub(crate) const FAREWELL: Duration = Duration::from_secs(2);

/// Whether more comes from a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Open,
    Ended,
}

/// See the module.
struct Pump {
    session: Box<Connection>,
    wire: Arc<Socket>,
    near: UnixStream,
    /// Encrypted bytes that the session has yet to take.
    encrypted: Buffer,
    /// Decrypted bytes that the near side has yet to take.
    decrypted: Buffer,
    /// Room for bytes on their way out.
    out: Vec<u8>,
    from_wire: Flow,
    from_near: Flow,
    /// When the pump ends, once the near side is closed altogether.
    end_at: Option<Instant>,
}

/// Starts a pump behind `wire`: the socket to talk over instead, and the thread.
pub(crate) fn start(
    mut session: Box<Connection>,
    wire: Arc<Socket>,
) -> io::Result<(Socket, JoinHandle<()>)> {
    let (own, near) = UnixStream::pair()?;
    near.set_nonblocking(true)?;
    wire.set_nonblocking()?;
    // No more is given to it than PLAIN_MAX before it has all been sent.
    session.set_buffer_limit(None);
    let pump = Pump {
        session,
        wire,
        near,
        encrypted: Buffer::new(),
        decrypted: Buffer::new(),
        out: vec![0; PLAIN_MAX],
        from_wire: Flow::Open,
        from_near: Flow::Open,
        end_at: None,
    };
    let thread = thread::Builder::new().name("nbd-tls".to_owned()).spawn(move || pump.run())?;
    Ok((Socket::Unix(own), thread))
}

impl Pump {
    fn run(mut self) {
        // Both sides learn of the end from their sockets; there is no one else to tell.
        let _why = self.carry();
        self.wire.shutdown(Shutdown::Both);
    }

    fn carry(&mut self) -> io::Result<()> {
        // What came with the handshake's last bytes.
        loop {
            let came_in = self.carry_in()?;
            let went_out = self.carry_out()?;
            if self.is_over() {
                return Ok(());
            }
            if came_in < TURN_MAX && went_out < TURN_MAX {
                self.wait()?;
            }
        }
    }

    fn is_over(&self) -> bool {
        let is_said = self.from_near == Flow::Ended && !self.session.wants_write();
        is_said && (self.from_wire == Flow::Ended || self.end_at.is_some())
    }

    /// Carries bytes from the wire as far as they go: how many, about.
    fn carry_in(&mut self) -> io::Result<usize> {
        let mut count = 0;
        while count < TURN_MAX {
            if !self.decrypted.is_empty() {
                match self.near.write(self.decrypted.filled()) {
                    Ok(written) => self.decrypted.consume(written),
                    Err(error) if is_later(&error) => return Ok(count),
                    // It has heard enough.
                    Err(_) => self.decrypted.clear(),
                }
                continue;
            }
            if self.from_wire == Flow::Ended {
                return Ok(count);
            }
            match self.decrypt()? {
                Decrypted::Some(len) => count += len,
                Decrypted::NothingYet => return Ok(count),
                Decrypted::Ended => {
                    self.from_wire = Flow::Ended;
                    // The only error is that it is closed already.
                    let _closed = self.near.shutdown(Shutdown::Write);
                }
            }
        }
        Ok(count)
    }

    /// Has the session decrypt some bytes, if there are any.
    fn decrypt(&mut self) -> io::Result<Decrypted> {
        loop {
            match self.session.reader().read(self.decrypted.space()) {
                Ok(0) => return Ok(Decrypted::Ended),
                Ok(len) => {
                    self.decrypted.fill(len);
                    return Ok(Decrypted::Some(len));
                }
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Ok(Decrypted::Ended);
                }
                Err(error) if is_later(&error) => {}
                Err(error) => return Err(error),
            }
            if self.encrypted.is_empty() {
                match self.wire.read(self.encrypted.space()) {
                    Ok(0) => return Ok(Decrypted::Ended),
                    Ok(len) => self.encrypted.fill(len),
                    Err(error) if is_later(&error) => return Ok(Decrypted::NothingYet),
                    Err(error) => return Err(error),
                }
            }
            let mut bytes = self.encrypted.filled();
            let taken = self.session.read_tls(&mut bytes)?;
            self.encrypted.consume(taken);
            if let Err(error) = self.session.process_new_packets() {
                // The other side is told why, if it still listens.
                let _untold = self.session.write_tls(&mut Wire(&self.wire));
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
        }
    }

    /// Carries bytes to the wire as far as they go: how many, about.
    fn carry_out(&mut self) -> io::Result<usize> {
        let mut count = 0;
        while count < TURN_MAX {
            while self.session.wants_write() {
                match self.session.write_tls(&mut Wire(&self.wire)) {
                    Ok(_) => {}
                    Err(error) if is_later(&error) => return Ok(count),
                    Err(error) => return Err(error),
                }
            }
            if self.from_near == Flow::Ended {
                return Ok(count);
            }
            match self.near.read(&mut self.out) {
                Ok(0) => {
                    self.from_near = Flow::Ended;
                    self.session.send_close_notify();
                }
                Ok(len) => {
                    self.session.writer().write_all(&self.out[..len])?;
                    count += len;
                }
                Err(error) if is_later(&error) => return Ok(count),
                // It is gone, and what it had said was carried.
                Err(_) => self.from_near = Flow::Ended,
            }
        }
        Ok(count)
    }

    /// Waits until something can be carried, or until the end.
    fn wait(&mut self) -> io::Result<()> {
        let mut wire = PollFlags::empty();
        wire.set(PollFlags::IN, self.from_wire == Flow::Open && self.decrypted.is_empty());
        wire.set(PollFlags::OUT, self.session.wants_write());
        let mut near = PollFlags::empty();
        near.set(PollFlags::IN, self.from_near == Flow::Open && !self.session.wants_write());
        near.set(PollFlags::OUT, !self.decrypted.is_empty());
        let timeout = match self.end_at {
            None => None,
            Some(at) => {
                let left = at.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Some(Timespec {
                    tv_sec: left.as_secs() as i64,
                    tv_nsec: left.subsec_nanos().into(),
                })
            }
        };
        // A side that is closed is told of again and again, whatever is asked about it: so the near one is
        // left out once that is known, and the wire where nothing is to be carried to or from it.
        let mut fds = Vec::with_capacity(2);
        let asks_near = !near.is_empty() || self.end_at.is_none();
        if asks_near {
            fds.push(PollFd::from_borrowed_fd(self.near.as_fd(), near));
        }
        if !wire.is_empty() {
            fds.push(PollFd::from_borrowed_fd(self.wire.as_fd(), wire));
        }
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_closed = asks_near && fds[0].revents().contains(PollFlags::HUP);
        if is_closed && self.end_at.is_none() {
            self.end_at = Some(Instant::now() + FAREWELL);
        }
        Ok(())
    }
}

/// What came of an attempt to decrypt.
enum Decrypted {
    /// This number of bytes.
    Some(usize),
    NothingYet,
    /// The other side says no more.
    Ended,
}

fn is_later(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

/// Writes what a socket takes at once.
struct Wire<'a>(&'a Socket);

impl Write for Wire<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.write(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes that wait to be taken.
struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buffer {
    fn new() -> Self {
        Self { bytes: vec![0; PLAIN_MAX], start: 0, end: 0 }
    }

    fn is_empty(&self) -> bool {
        self.start == self.end
    }

    fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// All its room. There must be nothing in it.
    fn space(&mut self) -> &mut [u8] {
        assert!(self.is_empty(), "what was not taken would be lost");
        (self.start, self.end) = (0, 0);
        &mut self.bytes
    }

    fn fill(&mut self, len: usize) {
        assert!(len <= self.bytes.len());
        self.end = len;
    }

    fn consume(&mut self, len: usize) {
        assert!(len <= self.end - self.start);
        self.start += len;
    }

    fn clear(&mut self) {
        self.start = self.end;
    }
}
