//! A client: an export somewhere as a [`levelhead_block::BlockService`] here.
//!
//! ```text
//!   submit --> waiting list, queue --> writer --> socket
//!   done   <--      waiting list   <-- reader <-- socket
//! ```
//!
//! Submitting never waits for the server. Callbacks run on the reader and must not wait for further
//! answers of the same client.
//!
//! - N1. Every operation ends exactly once: with the server's answers, or as gone when the
//!   connection is lost. Which parts of an operation that is gone the server has done is not known.
//! - N2. An operation longer than the server's limit is split, and ends when all its parts have.

mod handshake;
mod lasting;
mod operation;
mod service;
mod unflushed;

use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, ToSocketAddrs};
use std::ops::Range;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use levelhead_block::Durability;
use levelhead_units::{Bytes, SECTOR_SIZE};
use rustls::pki_types::ServerName;

use self::handshake::{Found, shake_hands};
pub use self::lasting::{IsSame, LATE, LastingClient, Recognise};
use self::operation::{Ask, Ended, Finish, Memory, Operation, Trouble};
use crate::codec::{
    Chunk, ChunkPosition, ClientDecoder, CommandFlags, CommandKind, Cookie, Errno, ProtocolError,
    RequestHeader, ServerMessage,
};
use crate::deadline::Deadline;
use crate::socket::Socket;
use crate::tls::line::Line;
use crate::tls::{TlsClient, pump, server_name};
use crate::uri::{Place, TlsPart, Uri};
use crate::{Access, Endpoint};

/// The most bytes of one request that carries none, a whole number of sectors.
const BARE_MAX: u32 = 1 << 30;

const _: () = assert!(BARE_MAX.is_multiple_of(SECTOR_SIZE as u32));

/// How long a server may take to accept a client, and as long again to agree on an export.
pub const CONNECT_MAX: Duration = Duration::from_secs(10);

/// An export, and what it takes to be believed there.
#[derive(Debug)]
pub(crate) struct Target {
    uri: Uri,
    tls: Option<(TlsClient, ServerName<'static>)>,
}

impl Target {
    /// Reads the certificates, if there are to be some.
    pub(crate) fn of(uri: &Uri) -> io::Result<Self> {
        let read = |part: &TlsPart| -> io::Result<(TlsClient, ServerName<'static>)> {
            Ok((TlsClient::load(&part.certificates)?, server_name(&part.hostname)?))
        };
        let tls = uri.tls.as_ref().map(read).transpose();
        let tls = tls.map_err(|error| io::Error::new(error.kind(), format!("{uri}: {error}")))?;
        Ok(Self { uri: uri.clone(), tls })
    }

    fn uri(&self) -> &Uri {
        &self.uri
    }
}

/// Where a server of that place may listen.
fn endpoints(place: &Place) -> io::Result<Vec<Endpoint>> {
    match place {
        Place::Unix(path) => Ok(vec![Endpoint::Unix(path.clone())]),
        Place::Host { name, port } => {
            Ok((name.as_str(), *port).to_socket_addrs()?.map(Endpoint::Tcp).collect())
        }
    }
}

/// A connection to an export. Dropping it says goodbye to the server, which finishes what is in
/// flight first.
pub struct Client {
    shared: Arc<Shared>,
    found: Found,
}

struct Shared {
    socket: Socket,
    link: Mutex<Link>,
    queue: Sender<Outgoing>,
}

struct Link {
    state: LinkState,
    next_cookie: u64,
    waiting: BTreeMap<Cookie, Waiting>,
}

enum LinkState {
    Up,
    /// And why.
    Lost(Arc<str>),
}

/// A request without its whole answer.
struct Waiting {
    part: Part,
    /// Bytes that were read so far.
    received: usize,
    error: Option<Errno>,
}

/// One request's share of an operation.
#[derive(Clone)]
struct Part {
    operation: Arc<Operation>,
    /// Counted from the operation's first byte.
    bytes: Range<u64>,
}

enum Outgoing {
    Request(Cookie, Part),
    Goodbye,
}

impl Client {
    /// Connects to `export` of the server at `endpoint`, without encryption. The empty name is the server's
    /// default export.
    ///
    /// # Errors
    ///
    /// No server answers within [`CONNECT_MAX`], what answers is no NBD server, or it has no such export, or the
    /// export cannot flush, write durably or take whole sectors.
    pub fn connect(endpoint: &Endpoint, export: &str) -> io::Result<Self> {
        Self::begin(endpoint, export, None, CONNECT_MAX).map_err(|error| {
            io::Error::new(error.kind(), format!("NBD server at {endpoint}: {error}"))
        })
    }

    /// Connects to an export by its URI.
    ///
    /// # Errors
    ///
    /// As [`Client::connect`], and certificates that cannot be used or that the other side does not believe.
    pub fn open(uri: &Uri) -> io::Result<Self> {
        Self::dial(&Target::of(uri)?)
    }

    /// The same, where the certificates have been read already.
    pub(crate) fn dial(target: &Target) -> io::Result<Self> {
        let Target { uri, tls } = target;
        let about = |error: io::Error| io::Error::new(error.kind(), format!("{uri}: {error}"));
        let session = || tls.as_ref().map(|(tls, name)| tls.session(name.clone())).transpose();
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        for endpoint in endpoints(&uri.place).map_err(about)? {
            match Self::begin(&endpoint, &uri.export, session().map_err(about)?, CONNECT_MAX) {
                Ok(client) => return Ok(client),
                Err(error) => last = error,
            }
        }
        Err(about(last))
    }

    fn begin(
        endpoint: &Endpoint,
        export: &str,
        tls: Option<rustls::Connection>,
        limit: Duration,
    ) -> io::Result<Self> {
        let mut socket = Socket::connect(endpoint, limit)?;
        let mut decoder = ClientDecoder::new();
        let mut line = Line::new(Deadline::after(limit, &socket));
        let found = shake_hands(&mut line, &mut decoder, export, tls)?;
        if let Some(session) = line.end()? {
            // It ends with the sockets it stands between.
            (socket, _) = pump::start(session, Arc::new(socket))?;
        }
        let (queue, requests) = mpsc::channel();
        let link = Link { state: LinkState::Up, next_cookie: 1, waiting: BTreeMap::new() };
        let shared = Arc::new(Shared { socket, link: Mutex::new(link), queue });
        let spawn = |name: &str| thread::Builder::new().name(name.to_owned());
        let writer = Arc::clone(&shared);
        spawn("nbd-client-writer").spawn(move || writer.send_all(&requests))?;
        let reader = Arc::clone(&shared);
        let spawned = spawn("nbd-client-reader").spawn(move || reader.receive_all(decoder));
        if let Err(error) = spawned {
            shared.leave(Outgoing::Goodbye);
            return Err(error);
        }
        Ok(Self { shared, found })
    }

    /// Whether the export takes no writes.
    pub(crate) fn is_read_only(&self) -> bool {
        self.found.access == Access::ReadOnly
    }

    /// Breaks the connection off: what is in flight ends as lost.
    fn hang_up(&self) {
        self.shared.socket.shutdown(Shutdown::Both);
    }

    /// The export's size, which need not be a whole number of sectors.
    pub fn size_bytes(&self) -> Bytes {
        self.found.size
    }

    /// Reads `out.len()` bytes from byte `offset` on, wherever these lie, and waits for them.
    ///
    /// # Errors
    ///
    /// The server's answer as an operating system error, or `ConnectionAborted`.
    pub fn read_at(&self, offset: Bytes, out: &mut [u8]) -> io::Result<()> {
        let memory = Memory::Bytes(vec![0; out.len()]);
        let memory = self.wait(CommandKind::Read, CommandFlags::NONE, offset, memory)?;
        let Memory::Bytes(bytes) = memory else { panic!("bytes were lent, sectors came back") };
        out.copy_from_slice(&bytes);
        Ok(())
    }

    /// Writes `bytes` to byte `offset` and on, wherever these lie, and waits for the answer.
    ///
    /// # Errors
    ///
    /// The server's answer as an operating system error, or `ConnectionAborted`.
    pub fn write_at(&self, offset: Bytes, bytes: &[u8], durability: Durability) -> io::Result<()> {
        let memory = Memory::Bytes(bytes.to_vec());
        self.wait(CommandKind::Write, flags(durability), offset, memory).map(drop)
    }

    fn wait(
        &self,
        kind: CommandKind,
        flags: CommandFlags,
        offset: Bytes,
        memory: Memory,
    ) -> io::Result<Memory> {
        let length = memory.len() as u64;
        let ask = Ask { kind, flags, offset: offset.get(), length };
        let (sender, receiver) = mpsc::channel();
        self.start(ask, memory, Box::new(move |ended| drop(sender.send(ended))));
        let Ended { memory, troubles } = receiver.recv().expect("every operation ends");
        match troubles.first() {
            None => Ok(memory),
            Some(Trouble::Lost(why)) => {
                Err(io::Error::new(io::ErrorKind::ConnectionAborted, why.to_string()))
            }
            Some(Trouble::Failed { error, .. }) => {
                Err(io::Error::from_raw_os_error(error.to_wire() as i32))
            }
        }
    }

    fn start(&self, ask: Ask, memory: Memory, finish: Finish) {
        let part_max = match ask.kind {
            CommandKind::Read | CommandKind::Write => self.found.payload_max,
            CommandKind::Disconnect
            | CommandKind::Flush
            | CommandKind::Trim
            | CommandKind::Cache
            | CommandKind::WriteZeroes
            | CommandKind::BlockStatus
            | CommandKind::Unknown(_) => BARE_MAX,
        };
        // An operation about no bytes is one request about no bytes.
        let count = ask.length.div_ceil(part_max.into()).max(1);
        let operation = Operation::new(ask, memory, count as usize, finish);
        let parts = (0..count).map(|idx| {
            let start = idx * u64::from(part_max);
            let bytes = start..ask.length.min(start + u64::from(part_max));
            Part { operation: Arc::clone(&operation), bytes }
        });
        for part in parts {
            self.shared.submit(part);
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.shared.leave(Outgoing::Goodbye);
    }
}

impl Shared {
    fn submit(&self, part: Part) {
        let mut link = self.lock_link();
        if let LinkState::Lost(why) = &link.state {
            let why = Arc::clone(why);
            drop(link);
            return part.operation.end_part(Some(Trouble::Lost(why)));
        }
        let cookie = Cookie::new(link.next_cookie);
        link.next_cookie += 1;
        let waiting = Waiting { part: part.clone(), received: 0, error: None };
        link.waiting.insert(cookie, waiting);
        drop(link);
        self.leave(Outgoing::Request(cookie, part));
    }

    fn leave(&self, outgoing: Outgoing) {
        // Without a writer the connection is being lost, and the reader ends all that wait.
        let _unsent = self.queue.send(outgoing);
    }

    fn send_all(&self, requests: &Receiver<Outgoing>) {
        for outgoing in requests {
            let sent = match outgoing {
                Outgoing::Request(cookie, part) => self.send(cookie, &part),
                Outgoing::Goodbye => {
                    let _result = self.say_goodbye();
                    return self.socket.shutdown(Shutdown::Write);
                }
            };
            if sent.is_err() {
                return self.socket.shutdown(Shutdown::Both);
            }
        }
    }

    fn send(&self, cookie: Cookie, part: &Part) -> io::Result<()> {
        let Ask { kind, flags, offset, .. } = part.operation.ask;
        let (offset, length) = (offset + part.bytes.start, part.length());
        let mut head = Vec::with_capacity(RequestHeader::LEN);
        RequestHeader { flags, kind, cookie, offset, length }.encode(&mut head);
        if kind != CommandKind::Write {
            return self.socket.write_both(&head, []);
        }
        let place = part.bytes.start as usize..part.bytes.end as usize;
        let written =
            part.operation.with_bytes(place, |slices| self.socket.write_both(&head, slices));
        written.unwrap_or_else(|| Err(io::ErrorKind::InvalidData.into()))
    }

    fn say_goodbye(&self) -> io::Result<()> {
        let (flags, kind) = (CommandFlags::NONE, CommandKind::Disconnect);
        let mut head = Vec::new();
        RequestHeader { flags, kind, cookie: Cookie::new(0), offset: 0, length: 0 }
            .encode(&mut head);
        self.socket.write_both(&head, [])
    }

    fn receive_all(&self, mut decoder: ClientDecoder) {
        // It makes no difference to what is known of the operations, and is told to whoever asks why they failed.
        let why: Arc<str> = match self.receive_until_lost(&mut decoder) {
            Ok(()) => "the server closed it".into(),
            Err(error) => error.to_string().into(),
        };
        self.socket.shutdown(Shutdown::Both);
        let mut link = self.lock_link();
        link.state = LinkState::Lost(Arc::clone(&why));
        let waiting = std::mem::take(&mut link.waiting);
        drop(link);
        for Waiting { part, .. } in waiting.into_values() {
            part.operation.end_part(Some(Trouble::Lost(Arc::clone(&why))));
        }
    }

    fn receive_until_lost(&self, decoder: &mut ClientDecoder) -> io::Result<()> {
        loop {
            let mut read_len =
                |cookie| self.lock_link().waiting.get(&cookie).map(Waiting::read_len);
            while let Some(message) = decoder.next(&mut read_len)? {
                self.handle(message)?;
            }
            match self.socket.read(decoder.space())? {
                0 => return Ok(()),
                count => decoder.filled(count),
            }
        }
    }

    fn handle(&self, message: ServerMessage) -> io::Result<()> {
        let cookie = match &message {
            ServerMessage::Simple { cookie, .. } | ServerMessage::Chunk { cookie, .. } => *cookie,
            ServerMessage::Greeting(_)
            | ServerMessage::Answer { .. }
            | ServerMessage::Export { .. } => return Err(nonsense()),
        };
        let mut link = self.lock_link();
        let waiting = link.waiting.get_mut(&cookie).ok_or(ProtocolError::UnknownCookie(cookie))?;
        let ended = match waiting.take(message)? {
            ChunkPosition::Inner => None,
            ChunkPosition::Last => link.waiting.remove(&cookie),
        };
        drop(link);
        ended.map_or(Ok(()), Waiting::end)
    }

    fn lock_link(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Part {
    fn length(&self) -> u32 {
        let length = self.bytes.end - self.bytes.start;
        u32::try_from(length).expect("parts are at most BARE_MAX bytes")
    }
}

impl Waiting {
    fn read_len(&self) -> u32 {
        if self.part.operation.ask.kind == CommandKind::Read { self.part.length() } else { 0 }
    }

    /// `len` bytes came, the first of them byte `start` of this request.
    fn take_data(
        &mut self,
        start: u64,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> io::Result<()> {
        let end = start.checked_add(len as u64).filter(|&end| end <= self.read_len().into());
        let end = end.ok_or_else(nonsense)?;
        let first = self.part.bytes.start;
        let place = (first + start) as usize..(first + end) as usize;
        self.received += len;
        self.part.operation.fill(place, fill).ok_or_else(nonsense)
    }

    /// Takes a part of the answer; whether it was the last.
    fn take(&mut self, message: ServerMessage) -> io::Result<ChunkPosition> {
        match message {
            ServerMessage::Simple { error, data, .. } => {
                self.error = error;
                if !data.is_empty() {
                    self.take_data(0, data.len(), |room| data.copy_to(room))?;
                }
                Ok(ChunkPosition::Last)
            }
            ServerMessage::Chunk { position, chunk, .. } => {
                self.take_chunk(chunk)?;
                Ok(position)
            }
            ServerMessage::Greeting(_)
            | ServerMessage::Answer { .. }
            | ServerMessage::Export { .. } => Err(nonsense()),
        }
    }

    fn take_chunk(&mut self, chunk: Chunk) -> io::Result<()> {
        let first = self.part.operation.ask.offset + self.part.bytes.start;
        let start = |offset: u64| offset.checked_sub(first).ok_or_else(nonsense);
        match chunk {
            Chunk::None => Ok(()),
            Chunk::Data { offset, data } => self.take_data(start(offset)?, data.len(), |room| {
                data.copy_to(room);
            }),
            Chunk::Hole { offset, length } => {
                self.take_data(start(offset)?, length as usize, |room| room.fill(0))
            }
            // It was never asked for.
            Chunk::Status { .. } => Err(nonsense()),
            Chunk::Error(error) => {
                self.error.get_or_insert(error.error);
                Ok(())
            }
        }
    }

    /// The whole answer is there, or what the server takes for it.
    fn end(self) -> io::Result<()> {
        let complete = self.received == self.read_len() as usize;
        let Self { part, error, .. } = self;
        let trouble = match error {
            Some(error) => Some(Trouble::Failed { bytes: part.bytes, error }),
            None if complete => None,
            None => Some(Trouble::Lost(nonsense().to_string().into())),
        };
        let is_lost = matches!(trouble, Some(Trouble::Lost(_)));
        part.operation.end_part(trouble);
        if is_lost { Err(nonsense()) } else { Ok(()) }
    }
}

fn nonsense() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the answer does not match the request")
}

fn flags(durability: Durability) -> CommandFlags {
    match durability {
        Durability::Cached => CommandFlags::NONE,
        Durability::Durable => CommandFlags::FUA,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// One whose process is stopped: its machine connects clients for it until the queue is full.
    #[test]
    fn server_that_accepts_no_one_or_says_nothing_is_given_up() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nbd.sock");
        let listener = UnixListener::bind(&path).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let endpoint = Endpoint::Unix(path);
        for _ in 0..3 {
            let begun = Client::begin(&endpoint, "", None, Duration::from_millis(50));
            assert_eq!(begun.err().unwrap().kind(), io::ErrorKind::TimedOut);
        }
    }
}
