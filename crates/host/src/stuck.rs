//! Tests of a served array one of whose drives is stuck: with its commands, with a question about it, with
//! what the array records on it.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use levelhead_array::metadata::State;
use levelhead_array::{Event, HostOrder, Patience, Policy};
use levelhead_block::{
    BlockService, Buf, Command, Done, Durability, Effort, Outcome, Reply, Request, SectorSet,
};
use levelhead_erasure::{Kernel, Measured};
use levelhead_testkit::{extent, wait_until};
use levelhead_units::{DriveIdx, Lba, Nanos, Sectors};
use tempfile::TempDir;

use crate::assemble::assemble;
use crate::backend::{Io, Look, Member};
use crate::create::{CreateOptions, create};
use crate::devices::erc::FastFail;
use crate::event_log::NumberedEvent;
use crate::gate::Bound;
use crate::labels::COMPARED;
use crate::launch::Doubles;
use crate::member::MemberSpec;
use crate::service::{ArrayHandle, ServeOptions};
use crate::starting::AssembleOptions;
use crate::status::{ArrayState, DriveState};

/// Within this the product promises that it says how the array is, whatever hangs.
const PROMISED: Duration = Duration::from_secs(1);

/// What no test here may take.
const LIMIT: Duration = Duration::from_secs(60);

const SIZE: u64 = 1_400;

/// What a drive does with a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// What it is asked.
    Serves,
    /// Nothing, until it is let go.
    Hangs,
    /// Its machine has no room.
    Refuses,
    /// It cannot be reached.
    Away,
    /// It does not store it.
    Fails,
    /// It is gone.
    Goes,
}

type Decide = Box<dyn Fn(&Command) -> Fate + Send>;

/// What a test holds of its drive.
struct Hold {
    decide: Mutex<Decide>,
    kept: Mutex<Vec<(Request, Done)>>,
    /// Whether looks at it hang, and whether one does.
    looks_hang: Mutex<bool>,
    looks_again: Condvar,
    is_looked_at: AtomicBool,
    /// Whether its close hangs.
    close_hangs: AtomicBool,
}

impl Hold {
    fn decide(&self, decide: impl Fn(&Command) -> Fate + Send + 'static) {
        *self.decide.lock().unwrap() = Box::new(decide);
    }

    fn hang(&self) {
        self.decide(|_| Fate::Hangs);
    }

    /// It is gone, and says so of all that is stuck in it.
    fn die(&self) {
        self.decide(|_| Fate::Goes);
        for (request, done) in std::mem::take(&mut *self.kept.lock().unwrap()) {
            drop(request);
            done(Reply::bare(Outcome::Gone));
        }
    }

    /// How many commands are stuck in it.
    fn inside(&self) -> usize {
        self.kept.lock().unwrap().len()
    }
}

/// A drive that does what its holder wants.
struct Held {
    drive: Box<dyn Member>,
    hold: Arc<Hold>,
}

impl BlockService for Held {
    fn size(&self) -> Sectors {
        self.drive.size()
    }

    fn submit(&self, request: Request, done: Done) {
        let fate = (self.hold.decide.lock().unwrap())(&request.command);
        let outcome = match fate {
            Fate::Serves => return self.drive.submit(request, done),
            Fate::Hangs => return self.hold.kept.lock().unwrap().push((request, done)),
            Fate::Refuses => Outcome::Refused,
            Fate::Away => Outcome::Unreachable,
            Fate::Goes => Outcome::Gone,
            Fate::Fails => {
                let extent = request.command.extent().expect("no flush is failed here");
                let damaged = SectorSet::first(extent.sectors);
                Outcome::Done { unknown: SectorSet::EMPTY, damaged }
            }
        };
        drop(request);
        done(Reply::bare(outcome));
    }
}

impl Member for Held {
    fn look(&self) -> Option<Look> {
        let hold = Arc::clone(&self.hold);
        Some(Box::new(move || {
            let hangs = hold.looks_hang.lock().unwrap();
            hold.is_looked_at.store(*hangs, Ordering::SeqCst);
            drop(hold.looks_again.wait_while(hangs, |hangs| *hangs));
            None
        }))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        assert_eq!(self.hold.inside(), 0, "a drive that hangs would be waited for without end");
        while self.hold.close_hangs.load(Ordering::SeqCst) {
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }
}

/// An array of files some of which are held.
struct Bench {
    array: ArrayHandle,
    holds: Vec<Arc<Hold>>,
    members: Vec<MemberSpec>,
    folder: TempDir,
}

/// How it differs from bench to bench.
struct Setting {
    spec: &'static str,
    held: &'static [usize],
    patience: Nanos,
    bound: Bound,
    looks_hang: bool,
    on_event: Box<dyn Fn(&NumberedEvent) + Send>,
}

impl Setting {
    /// Three files, of which number 1 is held.
    fn usual(patience: Nanos) -> Self {
        Self {
            spec: "raid5:2+1,chunk=8KiB",
            held: &[1],
            patience,
            bound: Bound::DEFAULT,
            looks_hang: false,
            on_event: Box::new(|_| {}),
        }
    }

    fn serve(self) -> Bench {
        let Self { spec, held, patience, bound, looks_hang, on_event } = self;
        let spec: levelhead_array::Spec = spec.parse().unwrap();
        let folder = TempDir::new().unwrap();
        let members: Vec<MemberSpec> = (0..spec.drives())
            .map(|at| {
                let path = folder.path().join(format!("{at}.img"));
                std::fs::File::create(&path).unwrap().set_len(SIZE * 4096).unwrap();
                path.display().to_string().parse().unwrap()
            })
            .collect();
        let clean = CreateOptions { assume_clean: true, ..CreateOptions::default() };
        create(spec, &members[..].into(), clean).unwrap();
        let hold = || Hold {
            decide: Mutex::new(Box::new(|_| Fate::Serves)),
            kept: Mutex::default(),
            looks_hang: Mutex::new(looks_hang),
            looks_again: Condvar::new(),
            is_looked_at: AtomicBool::new(false),
            close_hangs: AtomicBool::new(false),
        };
        let holds: Vec<Arc<Hold>> = held.iter().map(|_| Arc::new(hold())).collect();
        let wrap = |drive: DriveIdx, drive_backend| -> Box<dyn Member> {
            match held.iter().position(|&at| at == drive.as_usize()) {
                None => drive_backend,
                Some(at) => Box::new(Held { drive: drive_backend, hold: Arc::clone(&holds[at]) }),
            }
        };
        let options = ServeOptions {
            policy: Policy::Normal,
            window: 4,
            order: HostOrder::Elevator,
            io: Io::Threads,
            arithmetic: Measured::none(Kernel::Naive, &[]),
            bound,
            seed: 1,
            patience: Patience { silent: Nanos::new(patience.get() / 2), lost: patience },
            verify: None,
            fast_fail: FastFail::Command,
            on_event: Some(on_event),
        };
        let doubles = Doubles { member: &wrap, ..Doubles::NONE };
        let assembled = assemble(&members, AssembleOptions::default()).unwrap();
        let array = assembled.serve_over(options, &doubles).unwrap();
        Bench { array, holds, members, folder }
    }
}

impl Bench {
    /// Asks, and where the answer will come.
    fn ask(&self, request: Request) -> Receiver<Reply> {
        let (sender, answer) = mpsc::channel();
        self.array.submit(request, Box::new(move |reply| drop(sender.send(reply))));
        answer
    }

    fn write(&self, at: u64, sectors: u64, value: u8) -> Receiver<Reply> {
        let bytes = Buf::copy_of(&vec![value; sectors as usize * 4096]);
        self.ask(Request::write(extent(at, sectors), Durability::Durable, bytes))
    }

    fn read(&self, at: u64, sectors: u64) -> Receiver<Reply> {
        self.ask(Request::read(extent(at, sectors), Effort::Full))
    }

    /// Waits for the end of the array, within [`LIMIT`].
    fn stop(&self) -> Result<(), String> {
        let (sender, ended) = mpsc::channel();
        let array = self.array.clone();
        std::thread::spawn(move || {
            drop(sender.send(array.stop().map_err(|error| error.to_string())));
        });
        ended.recv_timeout(LIMIT).expect("the stop has hung")
    }

    fn left(&self, missing: usize) -> Vec<MemberSpec> {
        let mut left = self.members.clone();
        left.remove(missing);
        left
    }
}

/// E2. A file on a file system behind which a program or a machine hangs.
#[test]
fn array_whose_drive_does_not_say_how_large_it_is_answers_and_stops() {
    let setting = Setting { looks_hang: true, ..Setting::usual(Nanos::from_secs(60)) };
    let bench = setting.serve();
    let (array, hold) = (&bench.array, &bench.holds[0]);
    wait_until("it is looked at", || hold.is_looked_at.load(Ordering::SeqCst));
    // Past the next moment at which the engine looks at what is known of its drives.
    let end = Instant::now() + Duration::from_millis(1_500);
    while Instant::now() < end {
        let (sender, answer) = mpsc::channel();
        let asked = array.clone();
        std::thread::spawn(move || drop(sender.send(asked.status().unwrap())));
        let status = answer.recv_timeout(PROMISED).expect("status was not answered");
        assert_eq!(status.state, ArrayState::Whole, "what is not known is not a loss");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(bench.write(0, 8, 7).recv_timeout(LIMIT).unwrap().outcome.is_good());
    assert!(bench.read(0, 8).recv_timeout(LIMIT).unwrap().outcome.is_good());
    bench.stop().unwrap();
    *hold.looks_hang.lock().unwrap() = false;
    hold.looks_again.notify_all();
}

/// E1, E4. A bug of the engine's ends the array: also while a drive is at work.
#[test]
fn engine_that_panics_with_a_request_inside_a_drive_that_hangs_answers_it() {
    let setting = Setting {
        on_event: Box::new(|event| {
            assert!(!matches!(event.event, Event::Standing(_)), "a bug, for this test");
        }),
        ..Setting::usual(Nanos::from_secs(60))
    };
    let bench = setting.serve();
    bench.holds[0].hang();
    let writing = bench.write(0, 8, 7);
    wait_until("it is inside the drive", || bench.holds[0].inside() > 0);
    let gone = "the array is not running any more";
    let panics = bench.array.command(|own| own.sit_out(DriveIdx::new(0)));
    assert_eq!(panics.unwrap_err().to_string(), gone);
    assert_eq!(writing.recv_timeout(LIMIT).unwrap().outcome, Outcome::Gone);
    assert_eq!(bench.stop().unwrap_err(), gone);
    assert!(bench.holds[0].inside() > 0, "it was waited for");
}

/// What it holds is safe: the stop is a good one, and does not wait for the close without end.
#[test]
fn close_that_hangs_holds_up_no_stop() {
    let bench = Setting::usual(Nanos::from_secs(1)).serve();
    assert!(bench.write(0, 64, 7).recv_timeout(LIMIT).unwrap().outcome.is_good());
    bench.holds[0].close_hangs.store(true, Ordering::SeqCst);
    bench.stop().unwrap();
    bench.holds[0].close_hangs.store(false, Ordering::SeqCst);
}

/// Metadata that does not reach a drive, that it does not store, or is gone for: in each slot, and for the array as for its data.
#[test]
fn metadata_that_a_drive_does_not_take_costs_that_drive_and_nothing_else() {
    let [_, first, second] = COMPARED.map(Lba::new);
    for slot in [first, second] {
        for fate in [Fate::Away, Fate::Fails, Fate::Goes, Fate::Hangs] {
            let bench = Setting::usual(Nanos::from_secs(1)).serve();
            bench.holds[0].decide(move |command| match command {
                Command::Write { extent, .. } if extent.lba == slot => fate,
                _ => Fate::Serves,
            });
            let reply = bench.write(0, 64, 7).recv_timeout(LIMIT).unwrap();
            assert!(reply.outcome.is_good(), "{fate:?} at {slot:?}: {:?}", reply.outcome);
            wait_until("the drive is lost", || {
                bench.array.status().unwrap().drives[1].state == DriveState::Failed
            });
            let reply = bench.read(0, 64).recv_timeout(LIMIT).unwrap();
            assert!(reply.outcome.is_good(), "{fate:?} at {slot:?}: {:?}", reply.outcome);
            assert!(reply.data.slices().flatten().all(|&byte| byte == 7));
            bench.stop().unwrap();
            let again = assemble(&bench.left(1), AssembleOptions::default()).unwrap();
            assert_eq!((again.state(), again.lost().len()), (State::Clean, 1));
            drop(again);
            if fate != Fate::Hangs {
                // It is given what it has missed.
                let back = assemble(&bench.members, AssembleOptions::default()).unwrap();
                assert_eq!(back.returning().len(), 1, "{fate:?} at {slot:?}");
            }
            drop(bench.folder);
        }
    }
}

/// More drives hang than the array can do without, and far more is asked than their windows take.
#[test]
fn hundreds_of_reads_of_drives_that_hang_are_answered_and_hold_up_no_stop() {
    const READS: u32 = 600;
    for is_stopped in [false, true] {
        let setting = Setting {
            held: &[0, 1],
            bound: Bound { requests: 2 * READS, sectors: Sectors::new(1 << 20) },
            ..Setting::usual(Nanos::from_secs(2))
        };
        let bench = setting.serve();
        bench.holds.iter().for_each(|hold| hold.hang());
        let size = bench.array.size().get();
        let reads = (0..READS).map(|at| bench.read(u64::from(at) % (size - 256), 256));
        let reads: Vec<Receiver<Reply>> = reads.collect();
        let outstanding = bench.array.status().unwrap().outstanding;
        assert_eq!(outstanding, READS);
        if is_stopped {
            // Nothing was written, so nothing has to be recorded on the drives that hang.
            bench.stop().unwrap();
        }
        for read in reads {
            let outcome = read.recv_timeout(LIMIT).expect("a read was not answered").outcome;
            assert!(!outcome.is_good(), "it cannot have been read");
        }
    }
}

/// P3. No drive is lost because its machine refuses what it is given: a write is answered as refused in time, and carried
/// out once the machine permits it.
#[test]
fn drive_whose_machine_refuses_writes_keeps_its_place() {
    let events: Arc<Mutex<Vec<NumberedEvent>>> = Arc::default();
    let heard = Arc::clone(&events);
    let setting = Setting {
        on_event: Box::new(move |event| heard.lock().unwrap().push(event.clone())),
        ..Setting::usual(Nanos::from_secs(1))
    };
    let bench = setting.serve();
    assert!(bench.write(0, 64, 1).recv_timeout(LIMIT).unwrap().outcome.is_good());
    bench.holds[0].decide(|command| match command {
        Command::Write { .. } => Fate::Refuses,
        _ => Fate::Serves,
    });
    // More than the journal takes: what is in its place already makes room in it.
    let writes: Vec<Receiver<Reply>> = (0..20).map(|at| bench.write(at * 64, 64, 7)).collect();
    // At once, and for as long as the write waits, whatever else the drive completes.
    let refuses = |bench: &Bench| bench.array.status().unwrap().drives[1].refusal.is_some();
    wait_until("a command is refused", || refuses(&bench));
    assert!(
        bench
            .read(bench.array.size().get() - 32, 32)
            .recv_timeout(LIMIT)
            .unwrap()
            .outcome
            .is_good()
    );
    assert!(refuses(&bench));
    let answers: Vec<Outcome> =
        writes.iter().map(|write| write.recv_timeout(LIMIT).unwrap().outcome).collect();
    assert!(answers.contains(&Outcome::Refused), "{answers:?}");
    let status = bench.array.status().unwrap();
    assert_eq!((status.state, status.drives[1].state), (ArrayState::Whole, DriveState::Present));
    assert!(status.drives[1].is_silent && status.drives[1].refusal.is_some());
    let told = events.lock().unwrap().iter().find_map(|event| event.lost.clone()).unwrap();
    let reason = told.reason.unwrap();
    assert!(reason.starts_with("this machine refuses its commands"), "{reason}");
    bench.holds[0].decide(|_| Fate::Serves);
    wait_until("it is heard again", || !bench.array.status().unwrap().drives[1].is_silent);
    assert!(bench.write(0, 8, 9).recv_timeout(LIMIT).unwrap().outcome.is_good());
    wait_until("all was carried out", || !refuses(&bench));
    assert_eq!(bench.array.status().unwrap().state, ArrayState::Whole);
    // Redundancy has what was refused at first.
    bench.array.lose(DriveIdx::new(0)).unwrap();
    let reply = bench.read(64, 19 * 64).recv_timeout(LIMIT).unwrap();
    assert!(reply.outcome.is_good());
    assert!(reply.data.slices().flatten().all(|&byte| byte == 7));
    bench.stop().unwrap();
}

/// Writes that wait for a drive leave room for reads of what lies elsewhere.
#[test]
fn reads_elsewhere_are_answered_while_hundreds_of_writes_wait_for_a_drive_that_hangs() {
    const WRITES: u64 = 360;
    let bench = Setting::usual(Nanos::from_secs(600)).serve();
    // Opened, so that no write waits for a record of that.
    assert!(bench.write(0, 1, 1).recv_timeout(LIMIT).unwrap().outcome.is_good());
    bench.holds[0].hang();
    let array = bench.array.clone();
    let (sender, written) = mpsc::channel();
    std::thread::spawn(move || {
        for at in 0..WRITES {
            let write =
                Request::write(extent(at, 1), Durability::Cached, Buf::zeroed(Sectors::new(1)));
            let sender = sender.clone();
            // Waits at the gate, after three quarters of what there is room for.
            array.submit(write, Box::new(move |reply| drop(sender.send(reply.outcome))));
        }
    });
    let most = Bound::DEFAULT.requests * 3 / 4;
    wait_until("the writes have taken their share", || {
        bench.array.status().unwrap().outstanding >= most
    });
    // One that lies elsewhere may just have made room for the next.
    assert!(bench.array.status().unwrap().outstanding <= most);
    // Three stripes, of whose six chunks of data four lie on the drives that answer.
    let reads: Vec<Receiver<Reply>> = (500..512).map(|at| bench.read(at, 1)).collect();
    let answered = Cell::new(0);
    wait_until("what lies elsewhere was read", || {
        let more = reads.iter().filter_map(|read| read.try_recv().ok());
        answered.set(answered.get() + more.filter(|reply| reply.outcome.is_good()).count());
        answered.get() == 8
    });
    let early = written.try_iter().count();
    assert!(early + (most as usize) < WRITES as usize, "the writes did not wait");
    bench.holds[0].die();
    for at in early..WRITES as usize {
        let outcome = written.recv_timeout(LIMIT).unwrap();
        assert!(outcome.is_good(), "the {at}th: {outcome:?}");
    }
    bench.stop().unwrap();
}

#[test]
fn status_says_that_a_drive_is_silent_and_that_an_array_was_forced() {
    let bench = Setting::usual(Nanos::from_secs(600)).serve();
    assert!(!bench.array.status().unwrap().is_forced);
    bench.stop().unwrap();
    let bench = Setting::usual(Nanos::from_secs(4)).serve();
    bench.holds[0].hang();
    let writing = bench.write(0, 8, 7);
    let silent = || {
        let status = bench.array.status().unwrap();
        (status.drives[1].state, status.drives[1].is_silent)
    };
    assert_eq!(silent(), (DriveState::Present, false));
    wait_until("the drive is silent", || silent().1);
    assert_eq!(silent().0, DriveState::Present);
    wait_until("the drive is lost", || silent().0 == DriveState::Failed);
    assert!(!silent().1, "a drive that is lost is not awaited");
    assert!(writing.recv_timeout(LIMIT).unwrap().outcome.is_good());
    bench.stop().unwrap();
}
