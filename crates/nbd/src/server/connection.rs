//! One connection: its handshake, then its requests.
//!
//! ```text
//!   socket --> reader: decode, gate --> service or export --> callback --> queue --> writer --> socket
//!                        ^                                                             |
//!                        +---------------- permit, once the answer is sent ------------+
//! ```
//!
//! The reader waits at the gate, the writer on the socket; the service's callbacks wait for nobody.
//! When the client goes away, the reader ends at once, the writer ends at the first answer it cannot
//! send, and the connection lasts until the service has answered everything.

use std::io;
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use levelhead_block::{Command, Effort, Reply, Request};

use super::export::LiveExport;
use super::failure::{Failure, check_outcome};
use super::gate::{Gate, Permit};
use super::negotiation::{ALLOCATION_ID, Agreed, Described, Negotiation, Replies, Step};
use super::plan::{Plan, Rules, plan};
use crate::codec::{
    Body, Chunk, ClientMessage, CommandKind, Cookie, ErrorChunk, Payload, Place, RequestHeader,
    ServerDecoder, ServerMessage, StatusRun,
};
use crate::socket::Socket;

/// A client's socket, and what it has in flight.
pub(super) struct Connection {
    pub(super) socket: Socket,
    pub(super) gate: Arc<Gate>,
}

/// Serves a client until it leaves, breaks the protocol, or `stopping` is set and the socket's
/// reading half shut down. Every request has been answered by the service when this returns.
pub(super) fn serve(
    Connection { socket, gate }: &Connection,
    exports: &[Arc<LiveExport>],
    stopping: &AtomicBool,
) -> io::Result<()> {
    let mut decoder = ServerDecoder::new();
    let Some(agreed) = negotiate(socket, &mut decoder, exports)? else { return Ok(()) };
    let export = Arc::clone(&exports[agreed.export]);
    let result = thread::scope(|scope| {
        let (queue, answers) = mpsc::channel();
        thread::Builder::new().name("nbd-writer".to_owned()).spawn_scoped(scope, move || {
            // The reader learns of a broken socket from the socket.
            if send_all(socket, answers).is_err() {
                socket.shutdown(Shutdown::Both);
            }
        })?;
        Reader { agreed, export: &export, gate, queue }.run(socket, &mut decoder, stopping)
    });
    gate.wait_empty();
    result
}

fn negotiate(
    socket: &Socket,
    decoder: &mut ServerDecoder,
    exports: &[Arc<LiveExport>],
) -> io::Result<Option<Agreed>> {
    let described: Vec<Described> = exports.iter().map(|export| export.described.clone()).collect();
    let mut negotiation = Negotiation::new(&described);
    let mut bytes = Vec::new();
    Negotiation::greeting().encode(&mut bytes);
    socket.write_both(&bytes, [])?;
    while let Some(message) = receive(socket, decoder)? {
        let mut answers = Vec::new();
        let step = negotiation.handle(message, &mut answers);
        bytes.clear();
        answers.iter().for_each(|answer| answer.encode(&mut bytes));
        socket.write_both(&bytes, [])?;
        match step {
            Step::Continue => {}
            Step::Begin(agreed) => {
                decoder.begin_transmission();
                return Ok(Some(agreed));
            }
            Step::Close => return Ok(None),
        }
    }
    Ok(None)
}

/// The next message, or nothing if the client has gone.
fn receive(socket: &Socket, decoder: &mut ServerDecoder) -> io::Result<Option<ClientMessage>> {
    loop {
        if let Some(message) = decoder.next()? {
            return Ok(Some(message));
        }
        match socket.read(decoder.space())? {
            0 => return Ok(None),
            count => decoder.filled(count),
        }
    }
}

/// An answer, and the place in flight that it frees.
struct Outgoing {
    message: ServerMessage,
    permit: Permit,
}

fn send_all(socket: &Socket, answers: Receiver<Outgoing>) -> io::Result<()> {
    let mut head = Vec::new();
    for Outgoing { message, permit } in answers {
        head.clear();
        message.encode_head(&mut head);
        socket.write_both(&head, message.payload().into_iter().flat_map(Payload::slices))?;
        drop(permit);
    }
    Ok(())
}

/// A request that must still be answered.
struct Pending {
    cookie: Cookie,
    replies: Replies,
    /// Where it begins, if clients understand being told where it failed.
    start: Option<u64>,
    permit: Permit,
    queue: Sender<Outgoing>,
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
                ServerMessage::Chunk { cookie, place: Place::Last, chunk }
            }
        };
        self.send(message);
    }

    fn fail(self, Failure { error, message, offset }: Failure) {
        let cookie = self.cookie;
        // The first bad sector may begin before the first byte that was asked for.
        let offset = self.start.and_then(|start| offset.map(|bad| bad.max(start)));
        let message = match self.replies {
            Replies::Simple => {
                ServerMessage::Simple { cookie, error: Some(error), data: Payload::empty() }
            }
            Replies::Structured => {
                let chunk = Chunk::Error(ErrorChunk { error, message, offset });
                ServerMessage::Chunk { cookie, place: Place::Last, chunk }
            }
        };
        self.send(message);
    }

    fn send(mut self, message: ServerMessage) {
        self.permit.answered();
        // Without a writer there is no client to be told. Dropping the permit is all that is left.
        let _unsent = self.queue.send(Outgoing { message, permit: self.permit });
    }
}

struct Reader<'a> {
    agreed: Agreed,
    export: &'a Arc<LiveExport>,
    gate: &'a Arc<Gate>,
    queue: Sender<Outgoing>,
}

impl Reader<'_> {
    fn run(
        self,
        socket: &Socket,
        decoder: &mut ServerDecoder,
        stopping: &AtomicBool,
    ) -> io::Result<()> {
        while let Some(message) = receive(socket, decoder)? {
            let ClientMessage::Request(header, body) = message else {
                unreachable!("a decoder of requests yields requests")
            };
            // A client that keeps sending would keep the socket readable for ever.
            if stopping.load(Ordering::Relaxed) {
                return Ok(());
            }
            if self.take(&header, body) == Next::Leave {
                return Ok(());
            }
        }
        Ok(())
    }

    fn take(&self, header: &RequestHeader, body: Body) -> Next {
        let (size, access) = (self.export.described.size, self.export.access);
        match plan(header, body, &Rules { size, access, agreed: self.agreed }) {
            Err(failure) => self.admit(header, 0).fail(failure),
            Ok(Plan::Disconnect) => return Next::Leave,
            Ok(Plan::Nothing) => self.admit(header, 0).succeed(),
            Ok(Plan::Status { length }) => self.status(header, length),
            Ok(Plan::Flush) => {
                let pending = self.admit(header, 0);
                self.submit(Request::bare(Command::Flush), pending);
            }
            Ok(Plan::Read { extent, skew, len }) => {
                let pending = self.admit(header, extent.sectors.bytes().get() as usize);
                let request = Request::read(extent, Effort::Full);
                self.read(request, pending, header.offset, skew, len);
            }
            Ok(Plan::Change(change)) => {
                let pending = self.admit(header, change.bytes_held());
                self.export.start(change, Box::new(move |result| pending.end(result)));
            }
        }
        Next::Stay
    }

    /// Waits until a request of so many bytes may be in flight.
    fn admit(&self, header: &RequestHeader, bytes: usize) -> Pending {
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
        let (permit, queue) = (self.gate.enter(bytes), self.queue.clone());
        Pending { cookie, replies, start, permit, queue }
    }

    fn submit(&self, request: Request, pending: Pending) {
        let command = request.command;
        let done = move |reply: Reply| {
            pending.end(check_outcome(&reply.outcome, &command));
        };
        self.export.service.submit(request, Box::new(done));
    }

    fn read(&self, request: Request, pending: Pending, offset: u64, skew: usize, len: usize) {
        let command = request.command;
        let done = move |reply: Reply| match check_outcome(&reply.outcome, &command) {
            Ok(()) => pending.succeed_with(offset, Payload::part_of(reply.data, skew, len)),
            Err(failure) => pending.fail(failure),
        };
        self.export.service.submit(request, Box::new(done));
    }

    fn status(&self, header: &RequestHeader, length: u32) {
        let runs = vec![StatusRun { length, status: 0 }];
        let chunk = Chunk::Status { context: ALLOCATION_ID, runs };
        let pending = self.admit(header, 0);
        let cookie = pending.cookie;
        pending.send(ServerMessage::Chunk { cookie, place: Place::Last, chunk });
    }
}

/// Whether a client stays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Stay,
    Leave,
}
