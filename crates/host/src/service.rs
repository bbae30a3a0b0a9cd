//! A running array, as everybody else holds it.
//!
//! # Invariants
//!
//! - V1. A request of more than [`PIECE_MAX`] sectors runs in pieces; it is answered once, when the last
//!   of them has ended.
//! - V2. A client that asks for more than the bound waits, unless it is the engine's own thread, which alone
//!   can make room: an answer may ask for the next thing.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, Instant};

use levelhead_array::{
    Array, Budget, Content, HostOrder, JournalSettings, Patience, Policy, Settings, VerifySettings,
};
use levelhead_block::semaphore::{Class, Semaphore, Weight};
use levelhead_block::{BlockService, Done, Request};
use levelhead_bytes::Buffers;
use levelhead_drive::QUEUE_DEPTH_MAX;
use levelhead_erasure::Measured;
use levelhead_stats::Streams;
use levelhead_units::{DriveIdx, Nanos, Sectors};

use crate::assemble::Assembled;
use crate::backend::Io;
use crate::clock::{Clock, ServerTime, Stamps};
use crate::devices::erc::FastFail;
use crate::engine::inbox::{self, Inlet};
use crate::engine::own::Rest;
use crate::engine::release::NotClosed;
use crate::engine::replacing::Comeback;
use crate::engine::{Engine, Input, OnEvent, Order, Parts};
use crate::error::{HostError, fail};
use crate::event_log::{EventLog, EventsSince};
use crate::gate::Bound;
use crate::launch::{Doubles, Launch, Launched};
use crate::member::MemberSpec;
use crate::replacing::{self, Opening, Take};
use crate::requests::Pending;
use crate::split;
use crate::status::Status;

/// Requests of more sectors run in pieces: 1 MiB.
pub const PIECE_MAX: Sectors = Sectors::new(256);

/// How long an operator waits for a drive to be closed.
const CLOSE_MAX: Duration = Duration::from_secs(2);

/// The time between two looks whether it is.
const CLOSE_PAUSE: Duration = Duration::from_millis(10);

/// How an array is served.
pub struct ServeOptions {
    /// How reads are served.
    pub policy: Policy,
    /// Commands inside a drive at a time, from 1 to 32.
    pub window: u32,
    /// In which order commands leave the queues in front of the drives.
    pub order: HostOrder,
    /// How commands reach files and block devices.
    pub io: Io,
    /// How redundancy is computed, and what that rests on. A kernel that the processor lacks the
    /// instructions for is replaced by the portable one.
    pub arithmetic: Measured,
    /// What clients may have in flight.
    pub bound: Bound,
    /// What is left to chance in the array itself; emulated drives have seeds of their own.
    pub seed: u64,
    /// How long a drive may be silent.
    pub patience: Patience,
    /// How what was written is read back, if it is.
    pub verify: Option<VerifySettings>,
    /// By which ways drives are told to give up early.
    pub fast_fail: FastFail,
    /// Is called with each event on the engine's own thread, which waits for it; nothing where no one listens.
    pub on_event: Option<OnEvent>,
}

/// A running array. Clones are the same array; when the last of them is dropped, it stops.
///
/// Requests are answered on the engine's own thread: an answer may submit the next request, but must
/// not wait for one, nor call anything else here (which panics).
#[derive(Clone)]
pub struct ArrayHandle(Arc<Inner>);

struct Inner {
    size: Sectors,
    /// What drives are set to work with.
    launch: Launch,
    stamps: Stamps,
    gate: Arc<Semaphore>,
    log: Arc<EventLog>,
    inputs: Inlet<Input>,
    engine: ThreadId,
    thread: Mutex<Option<Thread>>,
}

/// The engine's thread, and what it leaves behind.
struct Thread {
    handle: JoinHandle<()>,
    rest: Receiver<Rest>,
}

impl Assembled {
    /// Starts to serve the array: from here on its drives say that it is in use.
    pub fn serve(self, options: ServeOptions) -> Result<ArrayHandle, HostError> {
        self.serve_over(options, &Doubles::NONE)
    }

    /// The same with what a test changes.
    pub(crate) fn serve_over(
        self,
        options: ServeOptions,
        doubles: &Doubles<'_>,
    ) -> Result<ArrayHandle, HostError> {
        let window = options.window;
        if !(1..=QUEUE_DEPTH_MAX).contains(&window) {
            return fail(format!("a window is from 1 to {QUEUE_DEPTH_MAX} commands, got {window}"));
        }
        let clock = Clock::start();
        let launch = Launch { window, io: options.io, clock, fast_fail: options.fast_fail };
        let gate = Semaphore::new(options.bound.limit());
        let settings = Settings {
            spec: self.spec(),
            area: self.assembly.area.clone(),
            policy: options.policy,
            window,
            order: options.order,
            content: Content::Carried,
            synced: self.assembly.trusted,
            lost: self.lost().or(self.assembly.filling),
            recorded: Some(self.recorded()?),
            patience: Some(options.patience),
            background: Some(Budget::DEFAULT),
            journal: JournalSettings::of(&self.assembly),
            verify: options
                .verify
                .map(|verify| verify.for_sectors_with(self.spec().has_checksums())),
        };
        let array = Array::new(&settings, Streams::new(options.seed));
        let size = array.size();
        let Launched { seats, own, bell } = launch.start(&self.seats, doubles)?;
        let back = self.returning.iter().map(|back| replacing::take_back(launch, back));
        let returning = back.collect::<Result<Vec<Comeback>, HostError>>()?;
        let (inputs, inbox) = inbox::open(bell);
        let buffers = Buffers::new(options.arithmetic.choices);
        let log = Arc::new(EventLog::new(array.uuid().expect("a server keeps metadata")));
        let time = ServerTime::new(clock);
        let stamps = time.stamps();
        let mut parts = Parts {
            time,
            array,
            buffers,
            arithmetic: options.arithmetic,
            seats,
            own,
            gate: Arc::clone(&gate),
            inputs: inputs.clone(),
            log: Arc::clone(&log),
            on_event: options.on_event.unwrap_or_else(|| Box::new(|_| {})),
        };
        for (at, seat) in parts.seats.iter().enumerate() {
            seat.introduce(DriveIdx::from_usize(at), &mut parts.array);
        }
        let mut engine = Engine::new(parts);
        engine.returning = returning;
        let (left, rest) = mpsc::channel();
        // The thread that waits for what is left may have ended.
        let run = move || left.send(engine.run(&inbox)).unwrap_or_default();
        let handle = thread::Builder::new()
            .name("engine".into())
            .spawn(run)
            .map_err(|error| HostError::new(format!("cannot start a thread: {error}")))?;
        let engine = handle.thread().id();
        let thread = Mutex::new(Some(Thread { handle, rest }));
        let handle = ArrayHandle(Arc::new(Inner {
            size,
            launch,
            stamps,
            gate,
            log,
            inputs,
            engine,
            thread,
        }));
        // What the array says of its start is in the log before any client comes.
        handle.command(|_| Ok(()))?;
        Ok(handle)
    }
}

impl ArrayHandle {
    /// Has the engine do something between two other things, and waits for what comes of it: how an operator
    /// changes a running array, or learns how it is. What an operator can do is what [`Engine`] has methods for.
    pub fn command<T: Send + 'static>(
        &self,
        order: impl FnOnce(&mut Engine) -> Result<T, HostError> + Send + 'static,
    ) -> Result<T, HostError> {
        self.ask(move |reply| {
            // A thread that asked and has ended meanwhile needs no answer.
            Box::new(move |engine| drop(reply.send(engine.obey(order))))
        })?
    }

    /// What the array says about itself.
    pub fn status(&self) -> Result<Status, HostError> {
        self.command(|engine| Ok(engine.status()))
    }

    /// What has happened after event number `after`, 0 for everything. Where nothing
    /// has, waits until something does, the array ends, or for `patience`. Answers also when the array has
    /// ended; refuses numbers that no event has had yet.
    pub fn events(&self, after: u64, patience: Nanos) -> Result<EventsSince, HostError> {
        assert!(!self.0.is_engine(), "an answer must not wait for the engine");
        self.0.log.since(after, patience)
    }

    /// Stops the array in good order: answers what was asked, makes it safe, and closes the drives.
    /// What is asked later ends as [`Outcome::Gone`](levelhead_block::Outcome::Gone).
    pub fn stop(&self) -> Result<(), HostError> {
        let stopped = self.ask(|reply| Box::new(|engine| engine.stop(reply)))?;
        self.0.join();
        stopped
    }

    /// The array does without a drive from now on. Returns once that is safely recorded.
    pub fn lose(&self, drive: DriveIdx) -> Result<(), HostError> {
        self.ask(|reply| Box::new(move |engine| engine.obey(|engine| engine.lose(drive, reply))))?
    }

    /// A new drive comes into the place of a lost one, and is filled; in the place of one that is there it is given a copy of
    /// that one first. The very drive that was lost is given only what it
    /// has missed, if that is known, unless any drive is to be taken as it is.
    ///
    /// # Errors
    ///
    /// The drive of the place cannot be done without, or the new drive cannot be used.
    pub fn replace(
        &self,
        drive: DriveIdx,
        member: &MemberSpec,
        take: Take,
    ) -> Result<(), HostError> {
        self.command(move |engine| engine.may_replace(drive))?;
        let wanted = self.command(move |engine| engine.wanted(drive))?;
        self.check_is_new(member)?;
        match replacing::open(self.0.launch, &wanted, member, take)? {
            Opening::New(ready) => self.command(move |engine| engine.replace(drive, ready)),
            Opening::Member { ready, word } => {
                self.command(move |engine| engine.take_back(drive, &word, ready))
            }
        }
    }

    /// A drive waits for a place: it steps in when a drive is lost.
    ///
    /// # Errors
    ///
    /// It cannot be used.
    pub fn add_spare(&self, member: &MemberSpec, take: Take) -> Result<(), HostError> {
        // Spares come into the places of drives with data.
        let wanted = self.command(|engine| engine.wanted(DriveIdx::new(0)))?;
        self.check_is_new(member)?;
        match replacing::open(self.0.launch, &wanted, member, take)? {
            Opening::New(ready) => self.command(move |engine| engine.add_spare(ready)),
            Opening::Member { .. } => fail(replacing::tell_used(member)),
        }
    }

    /// The array lets go of a spare, which is closed when this returns, or is being closed after [`CLOSE_MAX`].
    pub fn remove_spare(&self, member: &MemberSpec) -> Result<(), HostError> {
        let spares = self.status()?.spares;
        let named = spares.into_iter().find(|name| is_named(name, member));
        let name = named.unwrap_or_else(|| member.to_string());
        self.command(move |engine| engine.remove_spare(&name))?;
        self.wait_until_closed(member).map(drop)
    }

    /// The slot of a drive that the array does not use any more is empty from now on, and the drive is closed when this returns.
    ///
    /// # Errors
    ///
    /// The array uses it, there is none, or it has not completed its commands or has not been closed in time.
    pub fn remove(&self, drive: DriveIdx) -> Result<(), HostError> {
        let until = Instant::now() + CLOSE_MAX;
        // Its last commands may be about to complete.
        while let Err(error) = self.command(move |engine| engine.remove(drive)) {
            let is_late = Instant::now() >= until;
            if is_late || !self.command(move |engine| Ok(engine.is_at_work_unused(drive)))? {
                return Err(error);
            }
            thread::sleep(CLOSE_PAUSE);
        }
        loop {
            let left = self.command(move |engine| Ok(engine.not_closed()))?;
            let Some(left) = left.into_iter().find(|left| left.drive == Some(drive)) else {
                return Ok(());
            };
            if Instant::now() >= until {
                return fail(format!("{} is removed, and its close has not ended yet", left.name));
            }
            thread::sleep(CLOSE_PAUSE);
        }
    }

    /// Refuses a drive that the array has open, in whatever place.
    fn check_is_new(&self, member: &MemberSpec) -> Result<(), HostError> {
        let left = self.wait_until_closed(member)?;
        let status = self.status()?;
        let is_it = |name: &str| is_named(name, member);
        for (at, drive) in status.drives.iter().enumerate() {
            if drive.is_open && drive.name.as_deref().is_some_and(is_it) && left.is_none() {
                return fail(format!("{member} is drive {at} of this array"));
            }
        }
        if status.coming.as_deref().is_some_and(is_it) {
            return fail(format!("{member} is replacing a drive already"));
        }
        if status.spares.iter().any(|name| is_it(name)) {
            return fail(format!("{member} is a spare of this array already"));
        }
        match left {
            None => Ok(()),
            Some(NotClosed { drive: Some(drive), .. }) => fail(format!(
                "{member} was drive {drive} of this array and has not completed all its commands: try again when it has"
            )),
            Some(NotClosed { drive: None, .. }) => {
                fail(format!("{member} was a drive of this array and is being closed: try again"))
            }
        }
    }

    /// Waits for a drive that the array does not use any more to be closed. What it is if it has not been in time.
    fn wait_until_closed(&self, member: &MemberSpec) -> Result<Option<NotClosed>, HostError> {
        let until = Instant::now() + CLOSE_MAX;
        loop {
            let all = self.command(|engine| Ok(engine.not_closed()))?;
            let left = all.into_iter().find(|left| is_named(&left.name, member));
            if left.is_none() || Instant::now() >= until {
                return Ok(left);
            }
            thread::sleep(CLOSE_PAUSE);
        }
    }

    /// Clients are about to leave, and [`ArrayHandle::stop`] comes next: what no drive answers is given up early.
    pub fn stop_soon(&self) {
        // An engine that has ended has given everything up.
        drop(self.0.inputs.send(Input::Order(Box::new(Engine::stop_soon))));
    }

    /// Waits until the array has ended, for whatever reason.
    pub fn wait_for_end(&self) {
        self.0.log.wait_for_close();
    }

    /// Asks what the array says about itself, and does not wait.
    pub fn ask_status(&self) -> Result<Asked<Status>, HostError> {
        self.begin(|reply| {
            Box::new(move |engine| drop(reply.send(engine.obey(|own| own.status()))))
        })
    }

    fn ask<T>(&self, order: impl FnOnce(Sender<T>) -> Order) -> Result<T, HostError> {
        self.begin(order)?.0.recv().map_err(|_| gone())
    }

    fn begin<T>(&self, order: impl FnOnce(Sender<T>) -> Order) -> Result<Asked<T>, HostError> {
        assert!(!self.0.is_engine(), "an answer must not wait for the engine");
        let (reply, answer) = mpsc::channel();
        self.0.inputs.send(Input::Order(order(reply))).map_err(|_| gone())?;
        Ok(Asked(answer))
    }
}

/// A question that the engine will answer between two other things.
pub struct Asked<T>(Receiver<T>);

impl<T> Asked<T> {
    /// The answer, if it comes within `patience`. It comes once.
    ///
    /// # Errors
    ///
    /// The array has ended.
    pub fn wait(&self, patience: Nanos) -> Result<Option<T>, HostError> {
        match self.0.recv_timeout(patience.into()) {
            Ok(answer) => Ok(Some(answer)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(gone()),
        }
    }
}

/// Whether a drive of this name is that member.
fn is_named(name: &str, member: &MemberSpec) -> bool {
    name.parse().is_ok_and(|own: MemberSpec| own.is_same(member))
}

fn gone() -> HostError {
    HostError::new("the array is not running any more")
}

impl Inner {
    fn is_engine(&self) -> bool {
        thread::current().id() == self.engine
    }

    fn join(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Thread { handle, rest }) = thread else { return };
        match rest.recv() {
            Ok(Rest::Nothing) => drop(handle.join()),
            // It may not end before the commands do (E4). One that panicked has said so on its own.
            Ok(Rest::Commands) | Err(_) => {}
        }
    }

    /// Sends a request that is no larger than a piece.
    fn send(&self, request: Request, done: Done) {
        let submitted = self.stamps.now();
        let class = if request.command.is_write() { Class::Change } else { Class::Read };
        let weight = Weight::request(request.command.payload().bytes().get());
        // The engine itself makes the room.
        let entered = if self.is_engine() { None } else { self.gate.enter(weight, class) };
        let permit = entered.unwrap_or_else(|| self.gate.force(weight, class));
        let pending = Pending::new(request.command, submitted, done, permit);
        // An engine that has ended drops the request, and that answers it.
        drop(self.inputs.send(Input::Request(request, pending)));
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let (reply, _) = mpsc::channel();
        drop(self.inputs.send(Input::Order(Box::new(|engine| engine.stop(reply)))));
        if !self.is_engine() {
            self.join();
        }
    }
}

impl BlockService for ArrayHandle {
    fn size(&self) -> Sectors {
        self.0.size
    }

    fn submit(&self, request: Request, done: Done) {
        let command = request.command;
        assert!(command.fits(self.0.size), "{command:?} is past the array's end");
        split::run(request, done, PIECE_MAX, &mut |request, done| self.0.send(request, done));
    }
}

#[cfg(test)]
mod over_ring;
#[cfg(test)]
mod short_limits;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use levelhead_array::Event;
    use levelhead_array::membership::Why;
    use levelhead_array::metadata::State;
    use levelhead_block::adapter::Waiting;
    use levelhead_block::{BlockDevice, Buf, Durability, Effort};
    use levelhead_units::{Extent, Lba};
    use tempfile::TempDir;

    use levelhead_erasure::Kernel;

    use super::*;
    use crate::assemble::assemble;
    use crate::backend::Member;
    use crate::create::{CreateOptions, Journaling, create};
    use crate::event_log::{LostMember, NumberedEvent};
    use crate::member::MemberSpec;
    use crate::starting::AssembleOptions;
    use crate::status::DriveState;

    /// A drive that keeps what it gets, once it hangs. Nothing may wait for it.
    struct Hanging {
        drive: Box<dyn Member>,
        hang: Arc<Hang>,
    }

    #[derive(Default)]
    struct Hang {
        is_on: AtomicBool,
        kept: Mutex<Vec<(Request, Done)>>,
    }

    impl BlockService for Hanging {
        fn size(&self) -> Sectors {
            self.drive.size()
        }

        fn submit(&self, request: Request, done: Done) {
            if self.hang.is_on.load(Ordering::SeqCst) {
                self.hang.kept.lock().unwrap().push((request, done));
            } else {
                self.drive.submit(request, done);
            }
        }
    }

    impl Member for Hanging {}

    impl Drop for Hanging {
        fn drop(&mut self) {
            assert!(
                self.hang.kept.lock().unwrap().is_empty(),
                "a drive that hangs was dropped, and would be waited for without end"
            );
        }
    }

    /// An array of three files whose drive 1 can be made to hang, and what it tells.
    fn array(folder: &TempDir, patience: Nanos) -> (ArrayHandle, Arc<Hang>, Told) {
        let members: Vec<MemberSpec> = (0..3)
            .map(|at| {
                let path = folder.path().join(format!("{at}.img"));
                std::fs::File::create(&path).unwrap().set_len(600 * 4096).unwrap();
                path.display().to_string().parse().unwrap()
            })
            .collect();
        // What is in a journal is read from memory, and waits for no drive.
        let journal = Journaling::None;
        let options = CreateOptions { assume_clean: true, journal, ..CreateOptions::default() };
        create("raid5:2+1,chunk=8KiB".parse().unwrap(), &members[..].into(), options).unwrap();
        let assembled = assemble(&members, AssembleOptions::default()).unwrap();
        let hang = Arc::<Hang>::default();
        let wrap = |drive: DriveIdx, backend| -> Box<dyn Member> {
            if drive != DriveIdx::new(1) {
                return backend;
            }
            Box::new(Hanging { drive: backend, hang: Arc::clone(&hang) })
        };
        let doubles = Doubles { member: &wrap, ..Doubles::NONE };
        let told: Told = Arc::default();
        let heard = Arc::clone(&told);
        let options = ServeOptions {
            policy: Policy::Normal,
            window: 4,
            order: HostOrder::Elevator,
            io: Io::Threads,
            arithmetic: Measured::none(Kernel::Naive, &[]),
            bound: Bound::DEFAULT,
            seed: 1,
            patience: Patience { silent: Nanos::new(patience.get() / 2), lost: patience },
            verify: None,
            fast_fail: FastFail::Command,
            on_event: Some(Box::new(move |event| heard.lock().unwrap().push(event.clone()))),
        };
        (assembled.serve_over(options, &doubles).unwrap(), hang, told)
    }

    type Told = Arc<Mutex<Vec<NumberedEvent>>>;

    /// The losses that were told, and what the machine says of each.
    fn losses(told: &Told) -> Vec<(Event, LostMember)> {
        let told = told.lock().unwrap();
        told.iter().filter_map(|told| Some((told.event, told.lost.clone()?))).collect()
    }

    fn read(array: &ArrayHandle, sectors: u64) -> levelhead_block::Reply {
        let extent = Extent::new(Lba::ZERO, Sectors::new(sectors));
        let request = Request::read(extent, Effort::Full);
        Waiting::new(Arc::new(array.clone())).run(vec![request]).pop().unwrap()
    }

    /// E1. A bug of the engine's ends the array: what is asked of it is answered, and a thread that waits for its
    /// end goes on.
    #[test]
    fn engine_that_panics_leaves_nothing_waiting() {
        let folder = TempDir::new().unwrap();
        let members: Vec<MemberSpec> = (0..3)
            .map(|at| {
                let path = folder.path().join(format!("{at}.img"));
                std::fs::File::create(&path).unwrap().set_len(600 * 4096).unwrap();
                path.display().to_string().parse().unwrap()
            })
            .collect();
        let clean = CreateOptions { assume_clean: true, ..CreateOptions::default() };
        create("raid5:2+1,chunk=8KiB".parse().unwrap(), &members[..].into(), clean).unwrap();
        let options = ServeOptions {
            policy: Policy::Normal,
            window: 4,
            order: HostOrder::Elevator,
            io: Io::Threads,
            arithmetic: Measured::none(Kernel::Naive, &[]),
            bound: Bound::DEFAULT,
            seed: 1,
            patience: Patience::DEFAULT,
            verify: None,
            fast_fail: FastFail::Command,
            on_event: Some(Box::new(|event| {
                assert!(!matches!(event.event, Event::Standing(_)), "a bug, for this test");
            })),
        };
        let array = assemble(&members, AssembleOptions::default()).unwrap().serve(options).unwrap();
        assert!(read(&array, 8).outcome.is_good());
        let gone = "the array is not running any more";
        assert_eq!(
            array.command(|own| own.sit_out(DriveIdx::new(1))).unwrap_err().to_string(),
            gone
        );
        array.wait_for_end();
        assert_eq!(read(&array, 8).outcome, levelhead_block::Outcome::Gone);
        assert_eq!(array.status().unwrap_err().to_string(), gone);
        assert_eq!(array.stop().unwrap_err().to_string(), gone);
    }

    /// E4. What waits for the drive is answered from the others, and they are left in good order.
    #[test]
    fn drive_that_hangs_holds_up_no_stop_for_ever() {
        let folder = TempDir::new().unwrap();
        let (array, hang, told) = array(&folder, Nanos::from_secs(2));
        let extent = Extent::new(Lba::ZERO, Sectors::new(8));
        let bytes = Buf::copy_of(&[7; 8 * 4096]);
        let write = Request::write(extent, Durability::Durable, bytes);
        let mut client = Waiting::new(Arc::new(array.clone()));
        assert!(client.run(vec![write])[0].outcome.is_good());
        hang.is_on.store(true, Ordering::SeqCst);
        let reader = array.clone();
        let waiting = thread::spawn(move || read(&reader, 8));
        while array.status().unwrap().outstanding == 0 {
            thread::yield_now();
        }
        array.stop().unwrap();
        let reply = waiting.join().unwrap();
        assert!(reply.outcome.is_good(), "{:?}", reply.outcome);
        assert!(reply.data.slices().flatten().all(|&byte| byte == 7));
        let name = folder.path().join("1.img");
        let lost = LostMember {
            name: Some(name.display().to_string()),
            reason: Some("it has completed no command for 2 s".to_owned()),
        };
        let event = Event::Lost { drive: DriveIdx::new(1), why: Why::Silent, is_copied: false };
        assert_eq!(losses(&told), [(event, lost)]);
        // The drive itself is still held: its command may yet come back.
        let left = ["0.img", "2.img"].map(|name| folder.path().join(name).display().to_string());
        let left = left.map(|path| path.parse().unwrap());
        let again = assemble(&left, AssembleOptions::default()).unwrap();
        assert_eq!((again.state(), again.lost().len()), (State::Clean, 1));
    }

    /// RE1. Nothing else may be written there before, and nothing waits for it.
    #[test]
    fn lost_drive_that_hangs_is_closed_when_its_last_command_has_completed() {
        let folder = TempDir::new().unwrap();
        let (array, hang, told) = array(&folder, Nanos::from_secs(60));
        let drive = DriveIdx::new(1);
        let path = folder.path().join("1.img");
        let member: MemberSpec = path.display().to_string().parse().unwrap();
        let is_free = || std::fs::File::open(&path).unwrap().try_lock().is_ok();
        hang.is_on.store(true, Ordering::SeqCst);
        let reader = array.clone();
        let waiting = thread::spawn(move || read(&reader, 8));
        while hang.kept.lock().unwrap().is_empty() {
            thread::yield_now();
        }
        array.lose(drive).unwrap();
        assert!(waiting.join().unwrap().outcome.is_good(), "from the other drives");
        let left = array.remove(drive).unwrap_err().to_string();
        assert!(left.contains("it is closed when it has, try again then"), "{left}");
        let spare = array.add_spare(&member, Take::Any).unwrap_err().to_string();
        assert!(spare.ends_with("and has not completed all its commands: try again when it has"));
        assert!(array.status().unwrap().drives[1].is_open && !is_free());
        for (_, done) in hang.kept.lock().unwrap().drain(..) {
            done(levelhead_block::Reply::gone("it was pulled"));
        }
        array.remove(drive).unwrap();
        assert!(is_free(), "it is not closed");
        assert_eq!(array.status().unwrap().drives[1].state, DriveState::Removed);
        assert!(told.lock().unwrap().iter().any(|told| told.event == Event::Released { drive }));
        array.stop().unwrap();
    }

    #[test]
    fn drive_that_was_given_up_in_time_holds_up_no_stop_either() {
        let folder = TempDir::new().unwrap();
        let (array, hang, told) = array(&folder, Nanos::from_secs(2));
        hang.is_on.store(true, Ordering::SeqCst);
        let reader = array.clone();
        let waiting = thread::spawn(move || read(&reader, 8));
        while array.status().unwrap().outstanding == 0 {
            thread::yield_now();
        }
        array.lose(DriveIdx::new(1)).unwrap();
        assert!(waiting.join().unwrap().outcome.is_good());
        assert_eq!(array.status().unwrap().drives[1].state, DriveState::Lost);
        array.stop().unwrap();
        let [(event, LostMember { reason: None, .. })] = &losses(&told)[..] else {
            panic!("{told:?}")
        };
        let (drive, why) = (DriveIdx::new(1), Why::ByHand);
        assert_eq!(*event, Event::Lost { drive, why, is_copied: false });
    }
}
