use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};

use levelhead_block::adapter::OneByOne;
use levelhead_block::{Done, Effort, Memory};
use levelhead_fs::{Caller, What};
use levelhead_units::{Extent, Lba, Nanos, Sectors};

use super::*;
use crate::gate::Gate;

/// A core that does what inodes say, and counts.
struct Fake {
    actions: Vec<Action>,
    deadline: Option<Instant>,
    waiting: Vec<RequestId>,
    is_unmounted: bool,
    end: levelhead_fs::Ended,
    timeouts: Arc<AtomicU64>,
}

impl Default for Fake {
    fn default() -> Self {
        Self {
            actions: Vec::new(),
            deadline: None,
            waiting: Vec::new(),
            is_unmounted: false,
            end: levelhead_fs::Ended::Clean,
            timeouts: Arc::default(),
        }
    }
}

/// What the fake makes of a request for an inode's attributes.
const PANICS: u64 = 1;
const READS: u64 = 2;
const WAITS_FOR_TIME: u64 = 3;
const NEVER_BY_ITSELF: u64 = 4;

impl Core for Fake {
    fn handle_request(&mut self, now: Instant, request: Request) {
        let What::GetAttributes(inode) = request.what else { panic!("{request:?}") };
        let id = request.id;
        match inode {
            PANICS => panic!("planted"),
            READS => {
                let extent = Extent::new(Lba::new(3), Sectors::new(1));
                let request = levelhead_block::Request::read(extent, Effort::Full);
                self.actions.push(Action::Submit(Submit { sub: SubId(id.0), request }));
            }
            WAITS_FOR_TIME => {
                self.deadline = Some(now + Nanos::from_millis(1));
                self.waiting.push(id);
            }
            NEVER_BY_ITSELF => self.waiting.push(id),
            _ => self.actions.push(Action::Reply { id, answer: Answer::Done }),
        }
    }

    fn handle_done(&mut self, _: Instant, sub: SubId, reply: Reply) {
        let answer = Answer::Bytes(reply.data.into_buf().as_slice().to_vec());
        self.actions.push(Action::Reply { id: RequestId(sub.0), answer });
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.timeouts.fetch_add(1, Ordering::Relaxed);
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.deadline = None;
            let replies =
                self.waiting.drain(..).map(|id| Action::Reply { id, answer: Answer::Done });
            self.actions.extend(replies);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn poll(&mut self) -> Option<Action> {
        self.actions.pop()
    }

    fn unmount(&mut self, _: Instant) {
        self.is_unmounted = true;
    }

    fn ended(&self) -> Option<levelhead_fs::Ended> {
        self.is_unmounted.then_some(self.end)
    }

    fn status(&self) -> Status {
        Status { sectors_lost: 7, ..Status::default() }
    }
}

/// A driver on a thread of its own.
struct Bed {
    gate: Gate,
    thread: std::thread::JoinHandle<Ended>,
}

impl Bed {
    fn start(core: Fake) -> Self {
        Self::over(core, Arc::new(OneByOne::new(Memory::new(Sectors::new(8)))))
    }

    fn over(core: Fake, service: Arc<dyn BlockService>) -> Self {
        let (on_event, begun) = (Box::new(|_| {}), time::Instant::now());
        let on_invalidate = Box::new(|_| {});
        let driver = Driver::new(Parts { core, service, on_event, on_invalidate, begun });
        let gate = Gate::new(Arc::clone(&driver) as Arc<dyn Inputs>);
        Self { gate, thread: std::thread::spawn(move || driver.run()) }
    }

    fn ask(&self, inode: u64) -> Receiver<Answer> {
        let (sender, answers) = mpsc::channel();
        let told: Told = Box::new(move |answer| drop(sender.send(answer)));
        self.gate.ask(Caller { uid: 0, gid: 0 }, What::GetAttributes(inode), told);
        answers
    }

    fn leave(self) -> Ended {
        self.gate.send(Input::Leave);
        self.thread.join().unwrap()
    }
}

#[test]
fn requests_are_answered_from_the_drive_and_by_time() {
    let timeouts = Arc::default();
    let bed = Bed::start(Fake { timeouts: Arc::clone(&timeouts), ..Fake::default() });
    assert_eq!(bed.ask(9).recv(), Ok(Answer::Done));
    assert_eq!(bed.ask(READS).recv(), Ok(Answer::Bytes(vec![0; 4096])));
    assert_eq!(bed.ask(WAITS_FOR_TIME).recv(), Ok(Answer::Done));
    assert!(timeouts.load(Ordering::Relaxed) > 0);
    assert_eq!(bed.leave(), Ended::InOrder);
}

#[test]
fn after_a_panic_every_request_fails_those_that_wait_too() {
    let bed = Bed::start(Fake::default());
    let before = bed.ask(NEVER_BY_ITSELF);
    let failed = Ok(Answer::Failed(Errno::Io));
    assert_eq!(bed.ask(PANICS).recv(), failed);
    assert_eq!(before.recv(), failed);
    assert_eq!(bed.ask(9).recv(), failed, "FU2");
    assert_eq!(bed.leave(), Ended::Broken("planted".into()));
}

#[test]
fn panic_between_the_kernel_and_the_core_breaks_the_mount_too() {
    let bed = Bed::start(Fake::default());
    bed.gate.send(Input::Broken);
    assert_eq!(bed.ask(9).recv(), Ok(Answer::Failed(Errno::Io)));
    assert!(matches!(bed.leave(), Ended::Broken(_)));
}

#[test]
fn requests_end_before_the_core_is_told_to_unmount() {
    let bed = Bed::start(Fake::default());
    let (late, later) = (bed.ask(WAITS_FOR_TIME), bed.ask(READS));
    assert_eq!(bed.leave(), Ended::InOrder);
    assert_eq!(late.recv(), Ok(Answer::Done));
    assert!(later.recv().is_ok());
}

#[test]
fn core_that_has_not_stored_everything_has_not_ended_in_order() {
    let bed = Bed::start(Fake { end: levelhead_fs::Ended::NotStored, ..Fake::default() });
    assert_eq!(bed.leave(), Ended::NotStored);
}

#[test]
fn status_is_told_without_a_request_to_the_core() {
    let bed = Bed::start(Fake::default());
    let (sender, answers) = mpsc::channel();
    bed.gate.send(Input::Status(Box::new(move |answer| drop(sender.send(answer)))));
    let Ok(Answer::Bytes(text)) = answers.recv() else { panic!("no status") };
    assert!(String::from_utf8(text).unwrap().contains("sectors_lost 7\n"));
    bed.leave();
}

/// A service that panics.
struct Panics;

impl BlockService for Panics {
    fn size(&self) -> Sectors {
        Sectors::new(8)
    }

    fn submit(&self, request: levelhead_block::Request, _: Done) {
        panic!("no drive for {request:?}");
    }
}

#[test]
fn panic_in_the_drive_is_caught_as_well() {
    let bed = Bed::over(Fake::default(), Arc::new(Panics));
    assert_eq!(bed.ask(READS).recv(), Ok(Answer::Failed(Errno::Io)));
    assert!(matches!(bed.leave(), Ended::Broken(_)));
}

/// Threads that ask at once while the drive answers: each is told once, whichever of them drives the core.
#[test]
fn many_threads_ask_at_once_and_each_is_answered_once() {
    let bed = Bed::start(Fake::default());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for round in 0..200 {
                    let inode = if round % 3 == 0 { READS } else { 9 };
                    let answers = bed.ask(inode);
                    let answer = answers.recv().expect("it is answered");
                    assert_eq!(matches!(answer, Answer::Bytes(_)), inode == READS);
                    assert!(answers.recv().is_err(), "a second answer");
                }
            });
        }
    });
    assert_eq!(bed.leave(), Ended::InOrder);
}

/// One that panics when it is told.
#[test]
fn panic_of_one_who_is_told_fails_all_others() {
    let bed = Bed::start(Fake::default());
    let before = bed.ask(NEVER_BY_ITSELF);
    let what = What::GetAttributes(9);
    bed.gate.ask(Caller { uid: 0, gid: 0 }, what, Box::new(|_| panic!("planted")));
    assert_eq!(before.recv(), Ok(Answer::Failed(Errno::Io)));
    assert!(matches!(bed.leave(), Ended::Broken(_)));
}
