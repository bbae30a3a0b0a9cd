//! One connection: its handshake, then its requests.
//!
//! ```text
//!   socket --> reader: decode, InFlight --> service or export --> callback --> outbox --> socket
//!                        ^                                                    |
//!                        +----------- permit, once the answer is sent --------+
//! ```
//!
//! The reader waits until `InFlight` has room, with a write before there is memory for its bytes; the
//! writer of the [`outbox`](super::outbox) waits on the socket; the service's callbacks do not wait.
//! When the client goes away, the reader ends at once, the writer ends at the first answer that cannot
//! be sent, and the connection lasts until the service has answered everything.

use std::io;
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use levelhead_block::{Command, Effort, Reply, Request};

use super::clients::{Connection, Seat};
use super::export::LiveExport;
use super::failure::{Failure, check_outcome};
use super::in_flight::Permit;
use super::negotiation::{
    ALLOCATION_ID, Agreed, Described, Negotiation, Privacy, Replies, Step, turn_away,
};
use super::outbox::{Outbox, Sender};
use super::task::{Rules, Task, task};
use super::turns::{Long, Owner};
use crate::codec::{
    Body, Chunk, ChunkPosition, ClientMessage, CommandKind, Cookie, ErrorChunk, Payload,
    RequestHeader, ServerDecoder, ServerMessage, StatusRun,
};
use crate::deadline::Deadline;
use crate::socket::Socket;
use crate::tls::line::Line;
use crate::tls::{TlsServer, pump};

/// Serves a client until it leaves, breaks the protocol, takes too long for its handshake, or
/// `stopping` is set and the socket's reading half shut down. Every request has been answered by the service when this returns.
pub(super) fn serve(
    connection: &Connection,
    seat: &Seat,
    exports: &[Arc<LiveExport>],
    stopping: &AtomicBool,
) -> io::Result<()> {
    let Connection { socket, handshake_max, pool, tls, .. } = connection;
    let mut decoder = ServerDecoder::with_pool(pool.clone());
    let mut line = Line::new(Deadline::after(*handshake_max, socket));
    let agreed = negotiate(&mut line, &mut decoder, seat, exports, tls.as_ref())?;
    let Some(agreed) = agreed else { return Ok(()) };
    let export = &exports[agreed.export];
    let mut transmission = Transmission { agreed, export, connection, decoder, stopping };
    let Some(session) = line.end()? else { return transmission.run(socket) };
    let (own, pump) = pump::start(session, Arc::clone(socket))?;
    let own = Arc::new(own);
    let result = transmission.run(&own);
    own.shutdown(Shutdown::Both);
    // One that panicked has said so on its own.
    drop(pump.join());
    result
}

/// What both sides have agreed on, and what it takes to do that.
struct Transmission<'a> {
    agreed: Agreed,
    export: &'a Arc<LiveExport>,
    connection: &'a Connection,
    decoder: ServerDecoder,
    stopping: &'a AtomicBool,
}

impl Transmission<'_> {
    fn run(&mut self, socket: &Arc<Socket>) -> io::Result<()> {
        let Self { agreed, export, connection, decoder, stopping } = self;
        let in_flight = &connection.in_flight;
        let result = thread::scope(|scope| {
            let account = Arc::clone(in_flight.account());
            let (outbox, answers) = Outbox::new(Arc::clone(socket), account);
            let writer = thread::Builder::new().name("nbd-writer".to_owned());
            writer.spawn_scoped(scope, move || outbox.write())?;
            let reader = Reader { agreed: *agreed, export, connection, answers };
            reader.run(socket, decoder, stopping)
        });
        in_flight.wait_empty();
        result
    }
}

fn negotiate(
    line: &mut Line<'_>,
    decoder: &mut ServerDecoder,
    seat: &Seat,
    exports: &[Arc<LiveExport>],
    tls: Option<&TlsServer>,
) -> io::Result<Option<Agreed>> {
    let described: Vec<Described> = exports.iter().map(|export| export.described.clone()).collect();
    let privacy = if tls.is_some() { Privacy::Required } else { Privacy::None };
    let mut negotiation = Negotiation::new(&described, privacy);
    let mut bytes = Vec::new();
    Negotiation::greeting().encode(&mut bytes);
    line.write(&bytes)?;
    let hear = |line: &mut Line<'_>, space: &mut [u8]| {
        let count = line.read(space)?;
        if count > 0 {
            seat.speak();
        }
        Ok(count)
    };
    while let Some(message) = receive(decoder, |space| hear(line, space))? {
        let mut answers = Vec::new();
        let mut step = negotiation.handle(message, &mut answers);
        if matches!(step, Step::Begin(_)) && !seat.agree() {
            turn_away(&mut answers);
            step = Step::Close;
        }
        bytes.clear();
        answers.iter().for_each(|answer| answer.encode(&mut bytes));
        line.write(&bytes)?;
        match (step, tls) {
            (Step::Continue, _) => {}
            (Step::Encrypt, Some(tls)) if decoder.is_drained() => {
                line.encrypt(tls.session()?)?;
                negotiation.handle_encrypted();
            }
            // Anyone on the way could have put in what came behind this option, to pass for encrypted.
            (Step::Encrypt, _) => return Ok(None),
            (Step::Begin(agreed), _) => {
                decoder.begin_transmission();
                return Ok(Some(agreed));
            }
            (Step::Close, _) => return Ok(None),
        }
    }
    Ok(None)
}

/// The next message, or nothing if the client has gone.
fn receive(
    decoder: &mut ServerDecoder,
    mut read: impl FnMut(&mut [u8]) -> io::Result<usize>,
) -> io::Result<Option<ClientMessage>> {
    loop {
        if let Some(message) = decoder.next()? {
            return Ok(Some(message));
        }
        match read(decoder.space())? {
            0 => return Ok(None),
            count => decoder.filled(count),
        }
    }
}

/// A request that must still be answered.
pub(super) struct Pending {
    cookie: Cookie,
    replies: Replies,
    /// Where it begins, if clients understand being told where it failed.
    start: Option<u64>,
    permit: Permit,
    answers: Sender,
}

impl Pending {
    /// Says that it was done.
    fn succeed(self) {
        let (cookie, data) = (self.cookie, Payload::empty());
        self.send(ServerMessage::Simple { cookie, error: None, data });
    }

    /// Says how it ended.
    fn end(self, result: Result<(), Failure>) {
        match result {
            Ok(()) => self.succeed(),
            Err(failure) => self.fail(failure),
        }
    }

    /// Says what was read from byte `offset` on.
    fn succeed_with(self, offset: u64, data: Payload) {
        let cookie = self.cookie;
        let message = match self.replies {
            Replies::Simple => ServerMessage::Simple { cookie, error: None, data },
            Replies::Structured => {
                let chunk = Chunk::Data { offset, data };
                ServerMessage::Chunk { cookie, position: ChunkPosition::Last, chunk }
            }
        };
        self.send(message);
    }

    /// Says that the next `length` bytes are allocated.
    fn succeed_with_status(self, length: u32) {
        let runs = vec![StatusRun { length, status: 0 }];
        let chunk = Chunk::Status { context: ALLOCATION_ID, runs };
        let cookie = self.cookie;
        self.send(ServerMessage::Chunk { cookie, position: ChunkPosition::Last, chunk });
    }

    pub(super) fn fail(self, Failure { error, message, offset }: Failure) {
        let cookie = self.cookie;
        // The first bad sector may begin before the first byte that was asked for.
        let offset = self.start.and_then(|start| offset.map(|bad| bad.max(start)));
        let message = match self.replies {
            Replies::Simple => {
                ServerMessage::Simple { cookie, error: Some(error), data: Payload::empty() }
            }
            Replies::Structured => {
                let chunk = Chunk::Error(ErrorChunk { error, message, offset });
                ServerMessage::Chunk { cookie, position: ChunkPosition::Last, chunk }
            }
        };
        self.send(message);
    }

    fn send(mut self, message: ServerMessage) {
        self.permit.answered();
        self.answers.send(message, self.permit);
    }
}

pub(super) struct Reader<'a> {
    pub(super) agreed: Agreed,
    pub(super) export: &'a Arc<LiveExport>,
    pub(super) connection: &'a Connection,
    pub(super) answers: Sender,
}

impl Reader<'_> {
    fn run(
        self,
        socket: &Socket,
        decoder: &mut ServerDecoder,
        stopping: &AtomicBool,
    ) -> io::Result<()> {
        // Of the write whose bytes come next.
        let mut permit = None;
        let account = self.connection.in_flight.account();
        let read = |space: &mut [u8]| socket.read(space).inspect(|_| account.note_sent());
        while let Some(message) = receive(decoder, read)? {
            // A client that keeps sending would keep the socket readable without end, and what one that has gone
            // has asked for is not to be done any more.
            if stopping.load(Ordering::Relaxed) || self.answers.is_broken() {
                return Ok(());
            }
            let next = match message {
                ClientMessage::Announced(header) => {
                    permit = self.make_room(&header);
                    if permit.is_some() { Next::Stay } else { Next::Leave }
                }
                ClientMessage::Request(header, body) => self.take(&header, body, permit.take()),
                ClientMessage::Flags(_)
                | ClientMessage::Option(_)
                | ClientMessage::BadOption { .. } => {
                    unreachable!("a decoder of requests yields requests")
                }
            };
            if next == Next::Leave {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Waits until there is room for a write whose bytes have yet to come.
    fn make_room(&self, header: &RequestHeader) -> Option<Permit> {
        let sectors = Payload::sectors_of(header.offset, header.length as usize);
        let permit = self.connection.in_flight.enter(sectors.bytes().get() as usize)?;
        permit.announced();
        Some(permit)
    }

    /// Takes a request, for which there is a `permit` already if its bytes came with it.
    fn take(&self, header: &RequestHeader, body: Body, permit: Option<Permit>) -> Next {
        let (size, access) = (self.export.described.size, self.export.access);
        let task = task(header, body, &Rules { size, access, agreed: self.agreed });
        let bytes = match &task {
            Ok(Task::Read { extent, .. }) => extent.sectors.bytes().get() as usize,
            Ok(Task::Change(change)) => change.bytes_held(),
            Ok(Task::Disconnect) => return Next::Leave,
            Ok(Task::Bare(bare)) => bare.bytes_held(),
            Ok(Task::Flush | Task::Nothing | Task::Status { .. }) | Err(_) => 0,
        };
        self.connection.counts.requests.fetch_add(1, Ordering::Relaxed);
        let in_flight = &self.connection.in_flight;
        let is_read = matches!(task, Ok(Task::Read { .. }));
        let is_long_read = is_read && bytes > in_flight.account().floor();
        let permit = match permit {
            Some(permit) => Some(permit),
            None if is_long_read => in_flight.enter_at_once(bytes),
            None => in_flight.enter(bytes),
        };
        let Some(permit) = permit else {
            return if is_long_read { self.read_in_pieces(header) } else { Next::Leave };
        };
        permit.received();
        let pending = self.pending(header, permit);
        match task {
            Err(failure) => pending.fail(failure),
            Ok(Task::Disconnect) => unreachable!("it has left"),
            Ok(Task::Nothing) => pending.succeed(),
            Ok(Task::Status { length }) => pending.succeed_with_status(length),
            Ok(Task::Flush) => self.submit(Request::bare(Command::Flush), pending),
            Ok(Task::Read { extent, skew, len }) => {
                let request = Request::read(extent, Effort::Full);
                self.read(request, pending, header.offset, skew, len);
            }
            Ok(Task::Bare(bare)) if bare.is_long() => {
                let Connection { number, socket, .. } = self.connection;
                let owner = Owner { connection: *number, socket: Arc::clone(socket) };
                let finish = Box::new(move |result| pending.end(result));
                self.export.device.start_long(Long::new(owner, bare, finish));
            }
            Ok(Task::Bare(bare)) => {
                let finish = Box::new(move |result| pending.end(result));
                self.export.device.start(bare.into_change(), finish);
            }
            Ok(Task::Change(change)) => {
                self.export.device.start(change, Box::new(move |result| pending.end(result)));
            }
        }
        Next::Stay
    }

    /// The request of `header`, to be answered.
    pub(super) fn pending(&self, header: &RequestHeader, permit: Permit) -> Pending {
        let (cookie, replies) = (header.cookie, self.agreed.replies);
        let start = match header.kind {
            CommandKind::Read | CommandKind::Write => Some(header.offset),
            CommandKind::Disconnect
            | CommandKind::Flush
            | CommandKind::Trim
            | CommandKind::Cache
            | CommandKind::WriteZeroes
            | CommandKind::BlockStatus
            | CommandKind::Unknown(_) => None,
        };
        Pending { cookie, replies, start, permit, answers: self.answers.clone() }
    }

    fn submit(&self, request: Request, pending: Pending) {
        let command = request.command;
        let done = move |reply: Reply| {
            pending.end(check_outcome(&reply.outcome, &command));
        };
        self.export.device.service.submit(request, Box::new(done));
    }

    fn read(&self, request: Request, pending: Pending, offset: u64, skew: usize, len: usize) {
        let command = request.command;
        let done = move |reply: Reply| match check_outcome(&reply.outcome, &command) {
            Ok(()) => pending.succeed_with(offset, Payload::part_of(reply.data, skew, len)),
            Err(failure) => pending.fail(failure),
        };
        self.export.device.service.submit(request, Box::new(done));
    }
}

/// Whether a client stays.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Stay,
    Leave,
}
