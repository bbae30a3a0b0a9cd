//! The engine: one thread that owns an array, feeds it what happened, and does what it asks.
//!
//! ```text
//!   clients --(gate)--> Request --+                  +--> ring: files and devices, most of them
//!   handle ------------> Order ---+--> one channel --+--> member in seat 1, with threads of its own
//!   members -----------> Ended ---+     ^            +--> ...                  |
//!                                       +--------------------------------------+
//! ```
//!
//! After every event the engine polls the array dry and carries its actions out in order, each
//! before the next. All this happens on one thread: arithmetic, answers, and the talk with the kernel about
//! the drives of its own ([`own`]). While commands are in the ring it waits there, and else at the channel.
//! What it has asked the ring for in one turn goes to the kernel in one call. It never waits for a drive, so
//! that a question about the array's status is answered whatever hangs.
//!
//! # Invariants
//!
//! - E1. Every request is answered exactly once, even if the engine ends before its time.
//! - E2. Nothing here waits for a drive: what must be written before what, and how long a drive may be silent,
//!   is the array's affair. What is carried out here is for files in memory, no more than [`AT_ONCE_MAX`]
//!   commands between two looks at the other inputs.
//! - E3. What is in memory is bounded: clients by the gate, commands by the windows, the array's own
//!   buffers by [`OWN_LIMIT`]. An array cannot be refused a buffer, so requests wait instead, and no longer than
//!   for a drive. What a read has brought is the client's from the answer on: NBD's own bound holds until it is
//!   sent. What a write was to bring stays while a drive may still write it: the array bounds that.
//! - E4. A drive that hangs is not waited for at the end, whatever the end: it is left to itself, and the ring
//!   with it. So is the engine's thread, whose end would wait in the kernel. That drives get their own limits of error
//!   recovery back is waited for, and no longer than for [`FAREWELL`](crate::devices::erc::FAREWELL).

mod control;
pub(crate) mod inbox;
mod limits;
pub(crate) mod own;
pub(crate) mod release;
pub(crate) mod replacing;
mod stopping;
mod sums;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::SystemTime;

use levelhead_array::journal::record::{checksums, examine};
use levelhead_array::membership::Why;
use levelhead_array::metadata::Inscription;
use levelhead_array::{
    Action, Answer, Array, ArrayEvent, BufId, Deliver, DriveEvent, Ending, Event, EventKind,
    RequestId, SubId, Submit, Sums, lists_in, tags_in,
};
use levelhead_block::semaphore::Semaphore;
use levelhead_block::{Command, Data, Outcome, Payload, Piece, Pool, Reply, Request};
use levelhead_bytes::Buffers;
use levelhead_erasure::Measured;
use levelhead_units::{DriveIdx, DriveSet, Instant, Nanos, Sectors};

use self::control::Recording;
use self::inbox::{Inbox, Inlet};
use self::own::{Own, Rest, Tag};
use self::release::Release;
use self::replacing::{Comeback, Ready};
use self::sums::SumsOfTransactions;
use crate::clock::ServerTime;
use crate::error::HostError;
use crate::event_log::{EventLog, LostMember, NumberedEvent};
use crate::requests::{Latencies, Pending};
use crate::seat::{Backend, Seat};

/// How often it is looked at what drives have said of their health.
const HEALTH_PERIOD: Nanos = Nanos::from_secs(1);

/// Events between two looks at the time.
const EVENTS_MAX: usize = 64;

/// Commands on files in memory that are carried out between two looks at what else there is: a few
/// milliseconds at most.
const AT_ONCE_MAX: usize = 16;

/// What the array's own buffers may take before no request is let in: 128 MiB.
const OWN_LIMIT: Sectors = Sectors::new(32_768);

/// What is kept of the memory of buffers that are not needed any more: 32 MiB.
const KEPT_MAX: Sectors = Sectors::new(8_192);

/// What the engine learns.
pub(crate) enum Input {
    /// A client asks.
    Request(Request, Pending),
    /// A drive has ended a command.
    Ended(Ended),
    /// An operator wants something.
    Order(Order),
}

/// What an operator wants: done by the engine between two other inputs.
pub(crate) type Order = Box<dyn FnOnce(&mut Engine) + Send>;

/// The end of a drive's command.
pub(crate) struct Ended {
    drive: DriveIdx,
    sub: SubId,
    command: Command,
    reply: Reply,
}

/// Which drive a command is for.
#[derive(Clone, Copy)]
enum To {
    /// The one in the place that the command names.
    Place,
    /// The one that is coming there.
    Coming,
}

/// What an engine is made of.
pub(crate) struct Parts {
    pub(crate) time: ServerTime,
    pub(crate) array: Array,
    pub(crate) buffers: Buffers,
    /// How redundancy is computed, and what that rests on.
    pub(crate) arithmetic: Measured,
    pub(crate) seats: Vec<Seat>,
    /// The drives in these seats that are the engine's own.
    pub(crate) own: Own,
    pub(crate) gate: Arc<Semaphore>,
    /// Where the ends of commands come in.
    pub(crate) inputs: Inlet<Input>,
    /// Where others read what happens.
    pub(crate) log: Arc<EventLog>,
    /// Is called with each event, once it is in the log.
    pub(crate) on_event: OnEvent,
}

/// Takes events as they happen.
pub type OnEvent = Box<dyn Fn(&NumberedEvent) + Send>;

/// A running array as its operator has it for a moment; see
/// [`ArrayHandle::command`](crate::ArrayHandle::command).
pub struct Engine {
    /// Before the drives, whose end takes longer: what is dropped is answered (E1).
    requests: BTreeMap<RequestId, Pending>,
    /// Requests that the pool has no room for yet.
    waiting: VecDeque<(Request, Pending)>,
    pub(crate) parts: Parts,
    /// Drives that wait for a place.
    pub(crate) spares: Vec<Ready>,
    /// Drives that are back since the start, until they are taken back.
    pub(crate) returning: Vec<Comeback>,
    /// A drive that is given a copy of the one in a place, and then gets that place.
    pub(crate) coming: Option<Seat>,
    /// One that is not wanted any more, until that is told.
    dismissed: Option<Seat>,
    /// Names of those that had something inside then.
    let_go: Vec<String>,
    /// Drives that the array does not use any more, until they are closed.
    release: Release,
    pool: Pool,
    request_last: u64,
    /// Buffers that are with a drive that fills them.
    lent: BTreeMap<SubId, BufId>,
    sums: SumsOfTransactions,
    latencies: Latencies,
    health_next: Instant,
    /// Who wants the array to stop.
    stopping: Vec<Sender<Result<(), HostError>>>,
    /// Who waits until the loss of a drive is recorded.
    recording: Vec<Recording>,
    /// How the array has ended, once it has.
    ending: Option<Ending>,
}

/// Lets everybody go who waits for an engine that has ended, however it ended.
struct OpenAtEnd(Arc<Semaphore>, Arc<EventLog>);

impl Drop for OpenAtEnd {
    fn drop(&mut self) {
        self.0.open();
        self.1.close();
    }
}

impl Engine {
    /// An engine for an array.
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            parts,
            spares: Vec::new(),
            returning: Vec::new(),
            coming: None,
            dismissed: None,
            let_go: Vec::new(),
            release: Release::default(),
            pool: Pool::new(KEPT_MAX),
            requests: BTreeMap::new(),
            request_last: 0,
            lent: BTreeMap::new(),
            sums: SumsOfTransactions::default(),
            waiting: VecDeque::new(),
            latencies: Latencies::default(),
            health_next: Instant::ZERO,
            stopping: Vec::new(),
            recording: Vec::new(),
            ending: None,
        }
    }

    /// Runs until somebody stops it.
    pub(crate) fn run(mut self, inbox: &Inbox<Input>) -> Rest {
        let _open = OpenAtEnd(Arc::clone(&self.parts.gate), Arc::clone(&self.parts.log));
        self.carry_out();
        loop {
            self.tell_standstill();
            self.tick();
            if let Some(ending) = self.ending {
                return self.end(ending);
            }
            let is_busy = !(self.requests.is_empty() && self.parts.array.is_quiet());
            let wait = self.parts.time.plan_wait(self.deadline(), is_busy);
            if let Some(input) = self.parts.own.wait(inbox, wait.into()) {
                self.handle(input);
            }
            self.handle_more(inbox);
            self.handle_own();
        }
    }

    /// Tells the array that the engine itself did not run, before it hears what time it is.
    fn tell_standstill(&mut self) {
        let now = self.now();
        if self.parts.time.take_standstill() {
            self.parts.array.handle_standstill(now);
        }
    }

    /// Handles what has come meanwhile, before it is seen to what comes with time.
    fn handle_more(&mut self, inbox: &Inbox<Input>) {
        for input in inbox.more().take(EVENTS_MAX) {
            self.handle(input);
            if self.ending.is_some() {
                return;
            }
        }
    }

    /// Handles what its own drives have ended.
    fn handle_own(&mut self) {
        for _ in 0..EVENTS_MAX {
            if self.ending.is_some() {
                return;
            }
            let Some(ended) = self.parts.own.next_ended() else { break };
            self.tell_standstill();
            self.handle_ended(ended);
        }
        for _ in 0..AT_ONCE_MAX {
            if self.ending.is_some() {
                return;
            }
            let Some(ended) = self.parts.own.carry_out_next() else { return };
            self.tell_standstill();
            self.handle_ended(ended);
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.parts.time.now()
    }

    fn handle(&mut self, input: Input) {
        self.tell_standstill();
        match input {
            Input::Request(request, pending) if self.stopping.is_empty() => {
                self.waiting.push_back((request, pending));
                self.let_in();
            }
            Input::Request(_, pending) => drop(pending),
            Input::Ended(ended) => self.handle_ended(ended),
            Input::Order(order) => order(self),
        }
    }

    /// Does what an operator wants, and what the array asks for after it.
    pub(crate) fn obey<T>(&mut self, order: impl FnOnce(&mut Self) -> T) -> T {
        let done = order(self);
        self.carry_out();
        self.let_in();
        done
    }

    /// Lets waiting requests into the array as long as the pool has room.
    fn let_in(&mut self) {
        while self.parts.buffers.own_sectors() < OWN_LIMIT + self.parts.array.kept_sectors()
            && let Some((Request { command, payload, .. }, pending)) = self.waiting.pop_front()
        {
            self.request_last += 1;
            let id = RequestId(self.request_last);
            let buffers = &mut self.parts.buffers;
            match command {
                Command::WriteZeroes { extent, .. } => {
                    buffers.insert(BufId::Client(id), self.pool.take(extent.sectors));
                }
                Command::Read { .. } | Command::Write { .. } => {
                    buffers.insert_payload(BufId::Client(id), payload);
                }
                Command::Trim { .. } | Command::Flush => {}
            }
            self.requests.insert(id, pending);
            let now = self.now();
            self.parts.array.handle_request(now, id, command);
            self.carry_out();
        }
    }

    /// Answers with a failure what has waited for room for as long as a request may wait for a drive.
    fn give_up_waiting(&mut self, now: Instant) {
        while self.give_up_waiting_at().is_some_and(|at| at <= now)
            && let Some((_, pending)) = self.waiting.pop_front()
        {
            pending.answer(Outcome::Gone, Data::None);
        }
    }

    /// When the first request that waits for room is given up: sooner if the array is to end.
    fn give_up_waiting_at(&self) -> Option<Instant> {
        let (_, pending) = self.waiting.front()?;
        let patience = self.parts.array.patience()?;
        let limit = if self.stopping.is_empty() { patience.answer() } else { patience.lost };
        Some(pending.submitted + limit)
    }

    fn handle_ended(&mut self, Ended { drive, sub, command, reply }: Ended) {
        let now = self.now();
        let Parts { array, seats, .. } = &mut self.parts;
        // A drive whose place has another one now may still end what it had inside, and so may one that was dismissed.
        let is_of_none = array.is_orphan(sub) || array.is_dismissed(sub);
        let seat = match &mut self.coming {
            Some(coming) if array.is_coming(sub) => coming,
            Some(_) | None => &mut seats[drive.as_usize()],
        };
        if !is_of_none {
            seat.work.handle_ended(now, &command, &reply);
        }
        if let Some(id) = self.lent.remove(&sub) {
            self.parts.buffers.give_back(id, reply.data);
        }
        self.parts.array.handle_done(now, sub, &reply.outcome);
        self.carry_out();
        self.let_in();
    }

    /// Does what the array asks, in order.
    fn carry_out(&mut self) {
        while let Some(action) = self.parts.array.poll() {
            match action {
                Action::Acquire { buf, sectors } => {
                    // A drive or a combination fills all of it; what a drive does not, is spoiled.
                    self.parts.buffers.insert(buf, self.pool.take_to_fill(sectors));
                }
                Action::Submit(submit) => self.submit(To::Place, submit),
                Action::Coming(submit) => self.submit(To::Coming, submit),
                Action::Seat(drive) => {
                    let seat = self.coming.take().expect("a drive was coming");
                    seat.introduce(drive, &mut self.parts.array);
                    self.put_into(drive, seat);
                }
                Action::Dismiss(_) => self.dismiss(),
                Action::Combine(combine) => self.parts.buffers.combine(&combine),
                Action::Release(buf) => self.parts.buffers.discard(buf),
                Action::Inscribe { into, what } => {
                    self.parts.buffers.inscribe(into, &what.encode());
                }
                Action::Log { into, record, sums } => {
                    let buffers = &mut self.parts.buffers;
                    let header = match sums {
                        Sums::Known(sums) => record.encode(&sums),
                        Sums::Of(contents) => {
                            let compute =
                                || checksums(buffers.share(&contents).iter().map(Piece::bytes));
                            record.encode(self.sums.of(record.id, compute))
                        }
                    };
                    buffers.inscribe(into, &header);
                }
                Action::Examine { buf, first, unreadable, ring } => {
                    let found = examine(self.parts.buffers.bytes(buf), first, &unreadable, ring);
                    let now = self.now();
                    self.parts.array.handle_examined(now, buf, found);
                }
                Action::Digest { id, of, into } => {
                    let pieces = self.parts.buffers.share(&of);
                    let sums = checksums(pieces.iter().map(Piece::bytes));
                    drop(pieces);
                    for tag in &into {
                        self.parts.buffers.inscribe(tag.into, &tag.encode(&sums));
                    }
                    let now = self.now();
                    self.parts.array.handle_digested(now, id, &sums);
                }
                Action::Tags { sub, drive, of } => {
                    let found = tags_in(&of, |buf| self.parts.buffers.bytes(buf));
                    let now = self.now();
                    self.parts.array.handle_tags(now, sub, drive, found);
                }
                Action::Lists { sub, buf } => {
                    let found = lists_in(self.parts.buffers.bytes(buf));
                    let now = self.now();
                    self.parts.array.handle_lists(now, sub, found);
                }
                Action::Look { buf } => {
                    let author = Inscription::author_of(self.parts.buffers.bytes(buf)).ok();
                    let now = self.now();
                    self.parts.array.handle_looked(now, buf, author);
                }
                Action::Sum { buf } => {
                    let sums = checksums(std::iter::once(self.parts.buffers.bytes(buf)));
                    let now = self.now();
                    self.parts.array.handle_summed(now, buf, &sums);
                }
                Action::Check { op, sums } => {
                    let buffers = &self.parts.buffers;
                    let zero: Vec<bool> = sums.iter().map(|sum| buffers.is_zero_sum(sum)).collect();
                    let now = self.now();
                    self.parts.array.handle_checked(now, op, &zero);
                }
                Action::Stopped(ending) => self.ending = Some(ending),
                Action::Event(event) => self.tell(event),
                Action::Deliver(Deliver { request, segments }) => {
                    self.parts.buffers.deliver(BufId::Client(request), &segments);
                }
                Action::Answer(answer) => self.answer(answer),
            }
        }
    }

    fn submit(&mut self, to: To, Submit { drive, sub, command, segments, origin }: Submit) {
        let now = self.now();
        let Parts { buffers, seats, inputs, own, .. } = &mut self.parts;
        let payload = match (&command, segments.as_slice()) {
            (Command::Read { .. }, [segment]) => {
                let id = segment.place.buf;
                self.lent.insert(sub, id);
                Payload::Room(buffers.lend(id))
            }
            (_, []) => Payload::None,
            (_, segments) => Payload::Pieces(buffers.share(segments)),
        };
        let seat = match to {
            To::Place => &mut seats[drive.as_usize()],
            To::Coming => self.coming.as_mut().expect("a drive is coming"),
        };
        seat.work.handle_submitted(now);
        let backend = seat.backend.as_ref();
        let backend = backend.expect("an array never asks a failed drive");
        let request = Request::new(command, payload).with_origin(origin);
        let member = match backend {
            Backend::Member(member) => member,
            Backend::Ring { lane, .. } => return own.submit(*lane, request, Tag { drive, sub }),
            Backend::AtOnce(medium) => {
                return own.submit_at_once(medium, request, Tag { drive, sub });
            }
        };
        let inputs = inputs.clone();
        let done = move |reply| {
            // An engine that has ended does not care any more.
            drop(inputs.send(Input::Ended(Ended { drive, sub, command, reply })));
        };
        member.submit(request, Box::new(done));
    }

    /// Puts an event into the log, with what this machine knows of it, and passes it on.
    fn tell(&mut self, event: Event) {
        let lost = match event {
            Event::Lost { drive, why, is_copied: _ } => Some(self.note_lost(drive, why)),
            // It comes right after the new drive was dismissed.
            Event::Array(ArrayEvent::CopyStopped { .. }) => {
                self.dismissed.take().map(|mut seat| {
                    let reason = seat.work.handle_lost().map(str::to_owned);
                    let name = seat.name.clone();
                    self.dispose(None, seat);
                    LostMember { name, reason }
                })
            }
            Event::Standing(DriveEvent { drive, kind: EventKind::Silent, .. }) => {
                self.trouble_of(drive)
            }
            Event::Standing(_) | Event::Array(_) | Event::Released { .. } => None,
        };
        self.tell_of(event, lost);
    }

    /// The same where it is known what this machine knows of it.
    fn tell_of(&mut self, event: Event, lost: Option<LostMember>) {
        let found = match event {
            Event::Array(
                ArrayEvent::ScrubBegun(_) | ArrayEvent::ScrubStopped(_) | ArrayEvent::ScrubDone(_),
            ) => self.parts.array.found_on().collect(),
            Event::Standing(_) | Event::Lost { .. } | Event::Released { .. } | Event::Array(_) => {
                Vec::new()
            }
        };
        let numbered = self.parts.log.push(self.now(), SystemTime::now(), event, lost, found);
        (self.parts.on_event)(&numbered);
    }

    /// Why a drive completes nothing, as far as this machine knows: it refuses the drive's commands, or the last one failed.
    fn trouble_of(&self, drive: DriveIdx) -> Option<LostMember> {
        let seat = &self.parts.seats[drive.as_usize()];
        let refusal = seat.refusal(drive, &self.parts.array).map(|why| {
            format!("this machine refuses its commands, and the drive keeps its place: {why}")
        });
        let reason = refusal.or_else(|| seat.work.trouble().map(str::to_owned))?;
        Some(LostMember { name: seat.name.clone(), reason: Some(reason) })
    }

    /// What a lost drive was called, and how it has failed, if it has.
    fn note_lost(&mut self, drive: DriveIdx, why: Why) -> LostMember {
        let Seat { name, work, .. } = &mut self.parts.seats[drive.as_usize()];
        match why {
            // Whatever happened before, this is why.
            Why::ByHand => work.forgive(),
            Why::Silent => {
                let patience = self.parts.array.patience().map_or(Nanos::ZERO, |known| known.lost);
                work.handle_silence(patience.as_secs_f64());
            }
            Why::Failed => {}
        }
        LostMember { name: name.clone(), reason: work.handle_lost().map(str::to_owned) }
    }

    fn is_beyond_repair(&self) -> bool {
        let array = &self.parts.array;
        !array.layout().spec().survives(array.lost())
    }

    fn answer(&mut self, Answer { request, outcome, cost: _ }: Answer) {
        let pending = self.requests.remove(&request).expect("the array answers what was asked");
        let latency = self.now().saturating_since(pending.submitted);
        self.latencies.note(&pending.command, &outcome, latency);
        let buffers = &mut self.parts.buffers;
        let data = match pending.command {
            Command::Read { extent, .. } => {
                let nothing = || Data::Buf(self.pool.take(extent.sectors));
                buffers.take_delivered(BufId::Client(request)).unwrap_or_else(nothing)
            }
            // What was to be written is the array's until it releases it.
            Command::Write { .. }
            | Command::WriteZeroes { .. }
            | Command::Trim { .. }
            | Command::Flush => Data::None,
        };
        pending.answer(outcome, data);
    }

    /// When [`Engine::tick`] has something to do.
    fn deadline(&self) -> Instant {
        let others = [self.parts.array.deadline(), self.give_up_waiting_at()];
        others.into_iter().flatten().fold(self.health_next, Instant::min)
    }

    /// Does what comes with time.
    fn tick(&mut self) {
        let now = self.now();
        if now >= self.health_next {
            self.health_next = now + HEALTH_PERIOD;
            self.poll_health();
        }
        if self.parts.array.deadline().is_some_and(|at| at <= now) {
            self.parts.array.handle_timeout(now);
            self.carry_out();
        }
        self.let_in(); // What has ended with time may have made room.
        self.give_up_waiting(now);
        self.tell_recorded(now);
        self.take_back_all();
        self.take_back_wanted();
        self.use_spares();
        self.carry_out();
        self.release_drives();
        self.allow_short_limits();
        if !self.stopping.is_empty() && self.waiting.is_empty() {
            self.parts.array.handle_stop(now);
            self.carry_out();
        }
    }

    fn poll_health(&mut self) {
        let Parts { array, seats, .. } = &mut self.parts;
        let lost = array.lost();
        let mut unusable = DriveSet::EMPTY;
        for (at, seat) in seats.iter_mut().enumerate() {
            let drive = DriveIdx::from_usize(at);
            if lost.contains(drive) {
                continue;
            }
            if let Some(health) = seat.health() {
                array.handle_health(drive, health);
            }
            // A kernel or a drive may refuse what it was asked for.
            array.handle_promise(drive, seat.promise());
            if let Some(why) = seat.loss() {
                seat.work.handle_error(why);
                unusable = unusable.with(drive);
            }
        }
        if let Some(coming) = &mut self.coming
            && let Some(why) = coming.loss()
        {
            coming.work.handle_error(why);
            let now = self.now();
            self.parts.array.handle_copy_failed(now);
            self.carry_out();
        }
        if !unusable.is_empty() {
            let now = self.now();
            for drive in unusable.iter() {
                self.parts.array.handle_lost(now, drive, Why::Failed);
            }
            self.carry_out();
        }
    }
}
