//! What a handshake is spoken over: a socket until a time, and TLS over it once that was agreed.

use std::io::{self, Read, Write};

use rustls::Connection;

use crate::deadline::Deadline;

/// See the module.
pub(crate) struct Line<'a> {
    socket: Deadline<'a>,
    session: Option<Box<Connection>>,
}

impl<'a> Line<'a> {
    /// Without TLS at first.
    pub(crate) fn new(socket: Deadline<'a>) -> Self {
        Self { socket, session: None }
    }

    /// Begins TLS: both sides know each other afterwards, unless this is a client of a server that has yet to
    /// look at its certificate.
    pub(crate) fn encrypt(&mut self, session: Connection) -> io::Result<()> {
        let mut session = Box::new(session);
        while session.is_handshaking() {
            flush(&mut session, &mut self.socket)?;
            if session.is_handshaking() && receive(&mut session, &mut self.socket)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        flush(&mut session, &mut self.socket)?;
        self.session = Some(session);
        Ok(())
    }

    /// The next bytes, at least one of them unless the other side has ended.
    pub(crate) fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let Some(session) = &mut self.session else { return self.socket.read(space) };
        loop {
            match session.reader().read(space) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // It has not said that it ends, and has: whatever is missing then is missed by the protocol.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                result => return result,
            }
            receive(session, &mut self.socket)?;
            flush(session, &mut self.socket)?;
        }
    }

    /// Sends all of `bytes`.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(session) = &mut self.session else { return self.socket.write_all(bytes) };
        let mut left = bytes;
        while !left.is_empty() {
            let count = session.writer().write(left)?;
            left = &left[count..];
            flush(session, &mut self.socket)?;
        }
        Ok(())
    }

    /// The handshake is over: the session, if there is one. The socket may wait for as long as it takes again.
    pub(crate) fn end(self) -> io::Result<Option<Box<Connection>>> {
        self.socket.lift()?;
        Ok(self.session)
    }
}

/// Sends what the session has to send.
fn flush(session: &mut Connection, socket: &mut impl Write) -> io::Result<()> {
    while session.wants_write() {
        session.write_tls(socket)?;
    }
    Ok(())
}

/// Takes some bytes from the socket: how many.
fn receive(session: &mut Connection, socket: &mut (impl Read + Write)) -> io::Result<usize> {
    let count = session.read_tls(socket)?;
    if let Err(error) = session.process_new_packets() {
        // The other side is told why, if it still listens.
        let _untold = flush(session, socket);
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("TLS: {error}")));
    }
    Ok(count)
}
