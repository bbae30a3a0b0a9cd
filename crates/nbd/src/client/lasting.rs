//! A client that comes back to its export: what a drive is that may be away for a while.
//!
//! ```text
//!        +-----> up ----(the connection is lost)----> away
//!        |                                             |  dials, waiting longer each time
//!        +--(the same drive answers; unflushed writes  |
//!            are written again and flushed)------------+
//!                                                      |
//!        gone <---(another drive answers, or what was answered cannot be written again)
//! ```
//!
//! # Invariants
//!
//! - V1. A command whose connection is lost, and one that comes while the export is away, is refused: the same
//!   command may be sent again. Nothing is kept waiting here.
//! - V2. What was written and answered reads back after the export was away, whatever the server has lost of its
//!   memory: see [`Unflushed`].
//! - V3. A flush that the server answers with an error is never asked for again: the export is gone.
//! - V4. A connection is never broken off from here because a server takes its time: it might carry out later
//!   what it had got, after something newer. How long a drive is waited for is its array's to decide. For the same reason
//!   a client that is left says goodbye when its last command has ended: servers may close a connection at that while they
//!   still write.
//! - V5. The next connection begins when every command of the last one has ended, so that nothing is written again
//!   while something newer is on its way.
//! - V6. If a write was under way on a connection that was lost, the next one is used [`LATE`] after it was made: the server, which
//!   answers again, or a proxy between may carry the write out until then.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use levelhead_block::{
    BlockService, Buf, Command, Done, Durability, Effort, Outcome, Payload, Piece, Reply, Request,
};
use levelhead_units::{Extent, Lba, SECTOR_SIZE, Sectors};

use super::service::Source;
use super::unflushed::{KEPT_MAX, Mark, Promise, Unflushed};
use super::{Client, Target};
use crate::uri::Uri;

/// The wait before the first attempt to come back; it doubles with each.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// The longest wait between two attempts.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// How long a server that answers may take to carry out what it still has of a connection that was lost.
pub const LATE: Duration = Duration::from_secs(20);

/// How often the drive is recognised again while what was not flushed is written again.
const RECOGNISE_EVERY: Duration = Duration::from_secs(1);

/// How long a server may take for one command before clients of this one are welcome again.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// Past this number of unflushed sectors the client asks for a flush by itself.
const FLUSH_AT: usize = KEPT_MAX / 2;

/// What a drive that answers again is recognised by.
#[derive(Clone, Copy, Debug)]
pub struct Recognise {
    /// These of its sectors.
    pub by: &'static [u64],
    /// What they say.
    pub is_same: IsSame,
}

/// Whether a drive on which some sectors were like that may be the one on which they are like this now. One that is not known,
/// or past the drive's end, has no bytes.
pub type IsSame = fn(before: &[&[u8]], now: &[&[u8]]) -> bool;

/// Sectors that a drive is recognised by.
type Marks = Vec<(u64, Box<[u8]>)>;

/// An export that may be away for a while. See the module.
pub struct LastingClient {
    shared: Arc<Shared>,
}

struct Shared {
    target: Target,
    size: Sectors,
    recognise: Recognise,
    late: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    link: Link,
    /// The connection of a client that was left, while commands are inside.
    emptying: Option<Arc<Client>>,
    /// How many connections there were.
    connection: u64,
    /// Commands under way on the last of them.
    inside: usize,
    unflushed: Unflushed,
    flushing: Flushing,
    /// Whether writes of the last connections may still be carried out.
    is_late: bool,
    by: &'static [u64],
    /// The sectors that it is recognised by as they are there for sure, those that could be read.
    marks: BTreeMap<u64, Box<[u8]>>,
    /// The same as they may be there, if what was not answered was carried out.
    maybe: BTreeMap<u64, Box<[u8]>>,
}

enum Link {
    Up(Arc<Client>),
    /// Why the last connection was lost, or none came about.
    Away(String),
    Gone(String),
    /// No one wants it any more.
    Left,
}

/// Whether a flush is under way that no one else has asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flushing {
    No,
    Yes,
}

/// What is to be remembered of a command until it ends.
enum Note {
    Nothing,
    Write(Promise),
    /// And those of its sectors that the drive is recognised by.
    Durable(Extent, Marks),
    Flush(Mark),
}

impl LastingClient {
    /// Connects to an export that can be written. `recognise` decides whether a drive that answers there later is
    /// still the same.
    ///
    /// # Errors
    ///
    /// As [`Client::open`], and an export that is read-only.
    pub fn open(uri: &Uri, recognise: Recognise) -> io::Result<Self> {
        Self::open_with(uri, recognise, LATE)
    }

    /// The same where writes of a lost connection are carried out `late` after that at the latest.
    ///
    /// # Errors
    ///
    /// As [`LastingClient::open`].
    pub fn open_with(uri: &Uri, recognise: Recognise, late: Duration) -> io::Result<Self> {
        let target = Target::of(uri)?;
        let client = Client::dial(&target)?;
        if client.is_read_only() {
            let message = format!("{uri}: the export is read-only");
            return Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, message));
        }
        let size = client.size();
        let mark = |&sector: &u64| {
            let read = read_sector(&client, sector).ok()?;
            Some((sector, Box::from(read.as_slice())))
        };
        let marks = recognise.by.iter().filter_map(mark).collect();
        let state = State {
            link: Link::Up(Arc::new(client)),
            emptying: None,
            connection: 1,
            inside: 0,
            unflushed: Unflushed::default(),
            flushing: Flushing::No,
            is_late: false,
            by: recognise.by,
            marks,
            maybe: BTreeMap::new(),
        };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        let shared = Arc::new(Shared { target, size, recognise, late, state, changed });
        let keeper = Arc::clone(&shared);
        thread::Builder::new().name("nbd-keeper".to_owned()).spawn(move || keeper.keep())?;
        Ok(Self { shared })
    }
}

impl Drop for LastingClient {
    fn drop(&mut self) {
        self.leave();
    }
}

impl BlockService for LastingClient {
    fn size(&self) -> Sectors {
        self.shared.size
    }

    fn submit(&self, request: Request, done: Done) {
        let command = request.command;
        assert!(command.fits(self.shared.size), "{command:?} past the end");
        let mut state = self.shared.lock();
        let client = match &state.link {
            Link::Up(client) => Arc::clone(client),
            Link::Away(why) => {
                let reply = refused(why);
                drop(state);
                return done(reply);
            }
            Link::Gone(why) => {
                let reply = Reply::gone(why.clone());
                drop(state);
                return done(reply);
            }
            Link::Left => {
                drop(state);
                return done(Reply::gone("it was left".to_owned()));
            }
        };
        let connection = state.connection;
        let (request, note) = state.note(request);
        state.inside += 1;
        drop(state);
        let shared = Arc::clone(&self.shared);
        let finish = move |reply: Reply, source: Source| {
            let reply = match source {
                Source::Server => shared.handle_answered(note, reply),
                Source::Loss => shared.handle_unanswered(connection, &note, reply),
            };
            done(reply);
        };
        client.run(request, Box::new(finish));
    }

    /// The export is not brought back any more, and nothing is written there again.
    fn leave(&self) {
        let mut state = self.shared.lock();
        match std::mem::replace(&mut state.link, Link::Left) {
            Link::Up(client) if state.inside > 0 => state.emptying = Some(client),
            // The connection says goodbye.
            Link::Up(_) | Link::Away(_) | Link::Gone(_) | Link::Left => {}
        }
        // The keeper ends by itself.
        self.shared.changed.notify_all();
    }
}

impl State {
    /// What to remember of a request, and the request: durable if what it writes cannot be kept here.
    fn note(&mut self, request: Request) -> (Request, Note) {
        // Zeroes are kept like any other bytes.
        let request = request.spelled_out();
        match (request.command, &request.payload) {
            (
                Command::Write { extent, durability: Durability::Cached, zero_tail },
                Payload::Pieces(pieces),
            ) => match self.unflushed.promise(extent.lba.get(), pieces) {
                Some(promise) => (request, Note::Write(promise)),
                None => {
                    let durability = Durability::Durable;
                    let command = Command::Write { extent, durability, zero_tail };
                    let marks = marks_of(self.by, extent, &request.payload);
                    (Request { command, ..request }, Note::Durable(extent, marks))
                }
            },
            (Command::Write { extent, .. }, payload) => {
                let marks = marks_of(self.by, extent, payload);
                (request, Note::Durable(extent, marks))
            }
            (Command::Flush, _) => (request, Note::Flush(self.unflushed.mark())),
            // What was trimmed is some value that stays, so that the next one may be any, too.
            (Command::Trim { extent }, _) => (request, Note::Durable(extent, Vec::new())),
            (Command::Read { .. } | Command::WriteZeroes { .. }, _) => (request, Note::Nothing),
        }
    }

    /// A flush that began then has ended well.
    fn handle_flushed(&mut self, mark: Mark) {
        let marks = self.unflushed.handle_flushed(mark, self.by);
        self.marks.extend(marks);
    }
}

/// Those of the sectors `by` that a write is about.
fn marks_of(by: &[u64], extent: Extent, payload: &Payload) -> Marks {
    let Payload::Pieces(pieces) = payload else { return Vec::new() };
    let mark = |&sector: &u64| {
        let at = sector.checked_sub(extent.lba.get())?;
        Some((sector, Box::from(Piece::each_sector(pieces).nth(at as usize)?)))
    };
    by.iter().filter_map(mark).collect()
}

impl Shared {
    /// A command was not answered: what its caller is told.
    fn handle_unanswered(&self, connection: u64, note: &Note, reply: Reply) -> Reply {
        let mut state = self.lock();
        self.note_ended(&mut state);
        match note {
            Note::Write(promise) => {
                state.unflushed.withdraw(promise);
                state.is_late = true;
            }
            Note::Durable(_, marks) => {
                state.maybe.extend(marks.iter().cloned());
                state.is_late = true;
            }
            Note::Nothing | Note::Flush(_) => {}
        }
        let why = reply.reason.unwrap_or_else(|| "the connection was lost".to_owned());
        self.handle_lost(&mut state, connection, &why);
        refused(&why)
    }

    /// A command was answered: what its caller is told.
    fn handle_answered(self: &Arc<Self>, note: Note, reply: Reply) -> Reply {
        let mut state = self.lock();
        self.note_ended(&mut state);
        let is_good = reply.outcome.is_good();
        match note {
            Note::Nothing => {}
            Note::Write(promise) if is_good => state.unflushed.keep(promise),
            Note::Write(promise) => state.unflushed.withdraw(&promise),
            Note::Durable(extent, marks) if is_good => {
                state.unflushed.forget(extent.lba.get()..extent.end().get());
                state.marks.extend(marks);
            }
            Note::Durable(..) => {}
            Note::Flush(mark) if is_good => state.handle_flushed(mark),
            Note::Flush(_) => self.handle_unsafe(&mut state, &reply), // V3
        }
        self.flush_early(state);
        reply
    }

    /// A command has ended, one way or the other.
    fn note_ended(&self, state: &mut State) {
        state.inside = state.inside.checked_sub(1).expect("a command ends once");
        if state.inside == 0 && !matches!(state.link, Link::Up(_)) {
            state.emptying = None;
            self.changed.notify_all();
        }
    }

    /// The connection of that number is lost.
    fn handle_lost(&self, state: &mut State, connection: u64, why: &str) {
        if state.connection == connection && matches!(state.link, Link::Up(_)) {
            state.link = Link::Away(why.to_owned());
            state.flushing = Flushing::No;
            self.changed.notify_all();
        }
    }

    /// A flush has failed: nothing is known of what was written before it.
    fn handle_unsafe(&self, state: &mut State, reply: &Reply) {
        if !matches!(state.link, Link::Left) {
            let why = reply.reason.as_deref().unwrap_or("it answered with an error");
            state.link = Link::Gone(format!("a flush has failed: {why}"));
            self.changed.notify_all();
        }
    }

    /// Asks for a flush if much is kept.
    fn flush_early(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.unflushed.len() < FLUSH_AT || state.flushing == Flushing::Yes {
            return;
        }
        let Link::Up(client) = &state.link else { return };
        let client = Arc::clone(client);
        state.flushing = Flushing::Yes;
        state.inside += 1;
        let (mark, connection) = (state.unflushed.mark(), state.connection);
        drop(state);
        let shared = Arc::clone(self);
        let finish = move |reply: Reply, source: Source| {
            let mut state = shared.lock();
            shared.note_ended(&mut state);
            if source == Source::Loss {
                let why = reply.reason.as_deref().unwrap_or("the connection was lost");
                return shared.handle_lost(&mut state, connection, why);
            }
            if state.connection == connection {
                state.flushing = Flushing::No;
            }
            match reply.outcome.is_good() {
                true => state.handle_flushed(mark),
                false => shared.handle_unsafe(&mut state, &reply), // V3
            }
        };
        client.run(Request::bare(Command::Flush), Box::new(finish));
    }

    /// Brings the export back whenever it is away, until it is left or gone.
    fn keep(self: Arc<Self>) {
        let mut pause = PAUSE_MIN;
        loop {
            let mut state = self.lock();
            while matches!(state.link, Link::Up(_)) {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                pause = PAUSE_MIN;
            }
            let is_away = |state: &mut State| matches!(state.link, Link::Away(_));
            // A server that says that it is about to end still answers what it has (V5).
            let waits = |state: &mut State| is_away(state) && state.inside > 0;
            let state =
                self.changed.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner);
            let waited = self.changed.wait_timeout_while(state, pause, is_away);
            let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if !is_away(&mut state) {
                return;
            }
            drop(state);
            pause = (pause * 2).min(PAUSE_MAX);
            let result = Client::dial(&self.target)
                .map_err(Failure::from)
                .and_then(|client| self.come_back(client));
            let mut state = self.lock();
            if !matches!(state.link, Link::Away(_)) {
                return;
            }
            match result {
                Ok(client) => {
                    state.connection += 1;
                    state.is_late = false;
                    state.maybe.clear();
                    state.link = Link::Up(Arc::new(client));
                }
                Err(Failure::Later(why)) => state.link = Link::Away(why),
                Err(Failure::Never(why)) => state.link = Link::Gone(why),
            }
        }
    }

    /// Sees to it that it is the same drive and that it has what it had.
    fn come_back(&self, client: Client) -> Result<Client, Failure> {
        let uri = self.target.uri();
        if client.size() != self.size {
            let (now, before) = (client.size().bytes(), self.size.bytes());
            return Err(Failure::Never(format!("{uri} has {now} now, it had {before}")));
        }
        if client.is_read_only() {
            return Err(Failure::Later(format!("{uri}: the export is read-only")));
        }
        self.wait_for_late_writes()?;
        self.recognise(&client)?;
        let (runs, mark) = {
            let state = self.lock();
            (state.unflushed.runs(), state.unflushed.mark())
        };
        let mut recognised = Instant::now();
        for (first, bytes) in runs {
            if matches!(self.lock().link, Link::Left) {
                return Err(Failure::Later(format!("{uri} was left")));
            }
            if recognised.elapsed() > RECOGNISE_EVERY {
                self.recognise(&client)?;
                recognised = Instant::now();
            }
            // If this attempt fails, its writes may still be carried out (V6).
            self.lock().is_late = true;
            let sectors = Sectors::new((bytes.len() / SECTOR_SIZE) as u64);
            let extent = Extent::new(Lba::new(first), sectors);
            run(&client, Request::write(extent, Durability::Cached, Buf::copy_of(&bytes)))?;
        }
        run(&client, Request::bare(Command::Flush))?;
        self.lock().handle_flushed(mark);
        Ok(client)
    }

    /// V6.
    fn wait_for_late_writes(&self) -> Result<(), Failure> {
        let state = self.lock();
        let late = if state.is_late { self.late } else { Duration::ZERO };
        let is_wanted = |state: &mut State| !matches!(state.link, Link::Left);
        let waited = self.changed.wait_timeout_while(state, late, is_wanted);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match state.link {
            Link::Left => Err(Failure::Later("it was left".to_owned())),
            Link::Up(_) | Link::Away(_) | Link::Gone(_) => Ok(()),
        }
    }

    /// Sees whether it is the same drive, and nobody else has written to it.
    fn recognise(&self, client: &Client) -> Result<(), Failure> {
        let Recognise { by, is_same } = self.recognise;
        let read = |&sector: &u64| read_sector(client, sector);
        let now = by.iter().map(read).collect::<Result<Vec<Buf>, Failure>>()?;
        let now: Vec<&[u8]> = now.iter().map(Buf::as_slice).collect();
        let (marks, maybe) = {
            let state = self.lock();
            (state.marks.clone(), state.maybe.clone())
        };
        let mark = |sector: &u64| marks.get(sector).map_or(&[][..], |bytes| bytes);
        let late = |sector: &u64| maybe.get(sector).map_or(mark(sector), |bytes| bytes);
        let before: Vec<&[u8]> = by.iter().map(mark).collect();
        let before_late: Vec<&[u8]> = by.iter().map(late).collect();
        if is_same(&before, &now) || is_same(&before_late, &now) {
            return Ok(());
        }
        Err(Failure::Never(format!("another drive answers at {} now", self.target.uri())))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why the export is still away.
enum Failure {
    /// Another attempt may do.
    Later(String),
    /// No attempt will.
    Never(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Later(error.to_string())
    }
}

fn read_sector(client: &Client, sector: u64) -> Result<Buf, Failure> {
    let extent = Extent::new(Lba::new(sector), Sectors::new(1));
    if !extent.fits(client.size()) {
        return Ok(Buf::empty());
    }
    let reply = run(client, Request::read(extent, Effort::Full))?;
    Ok(reply.data.into_buf())
}

/// One command, waited for, though not for long.
fn run(client: &Client, request: Request) -> Result<Reply, Failure> {
    let (sender, receiver) = mpsc::channel();
    let finish = move |reply: Reply, source: Source| drop(sender.send((reply, source)));
    let is_read = matches!(request.command, Command::Read { .. });
    client.run(request, Box::new(finish));
    let Ok((reply, source)) = receiver.recv_timeout(ANSWER_MAX) else {
        // Nothing newer was said over this connection, so it may be broken off.
        client.hang_up();
        return Err(Failure::Later(format!("no answer for {} s", ANSWER_MAX.as_secs())));
    };
    let why = || reply.reason.clone().unwrap_or_else(|| "it answered with an error".to_owned());
    match (source, reply.outcome.is_good()) {
        (Source::Server, true) => Ok(reply),
        (Source::Loss, _) => Err(Failure::Later(why())),
        (Source::Server, false) if is_read || reply.outcome.may_be_sent_again() => {
            Err(Failure::Later(why()))
        }
        (Source::Server, false) => {
            Err(Failure::Never(format!("what it had lost could not be written again: {}", why())))
        }
    }
}

fn refused(why: &str) -> Reply {
    Reply { reason: Some(why.to_owned()), ..Reply::bare(Outcome::Unreachable) }
}
