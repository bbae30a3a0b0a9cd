//! Arrays that are running.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use levelhead_array::membership::Why;
use levelhead_array::{ArrayEvent, Event, Resync};
use levelhead_block::conformance::{SuiteSettings, check_service};
use levelhead_block::{BlockService, Buf, Command, Durability, Effort, Outcome, Request, ZeroTail};
use levelhead_drive::Faults;
use levelhead_host::{
    ArrayHandle, ArrayState, Bound, CreateOptions, DriveState, EventsSince, Io, Journaling,
    LostMember, NumberedEvent, OnEvent, ServeOptions,
};
use levelhead_units::{DriveIdx, DriveSet, Extent, Lba, Nanos, Ratio, Sectors};

use crate::support::{
    CLEAN, Client, Shelf, UNKNOWN, check_content, fill, gather, make, noise, options, serve,
};

fn drive(idx: u8) -> DriveIdx {
    DriveIdx::new(idx)
}

fn conform(array: &ArrayHandle, seed: u64, requests: u32) {
    let settings = SuiteSettings { seed, requests, sectors_max: 9, batch_max: 6 };
    check_service(Arc::new(array.clone()), settings);
}

/// Conforms with all drives, and again with as many lost as the shape survives, by every kind of I/O.
fn check_files(spec: &str, policy: &str) {
    check_files_with(spec, policy, UNKNOWN, 40);
    check_files_with(spec, policy, CreateOptions { journal: Journaling::Members, ..UNKNOWN }, 400);
}

/// The same on drives with `data` sectors of data.
fn check_files_with(spec: &str, policy: &str, made: CreateOptions, data: u64) {
    for io in [Io::Threads, Io::Uring] {
        let shelf = Shelf::new();
        let shape: levelhead_array::Spec = spec.parse().unwrap();
        let members = shelf.files(shape.drives(), data);
        make(spec, &members, made);
        let array = match gather(&members).unwrap().serve(ServeOptions { io, ..options(policy) }) {
            Ok(array) => array,
            Err(error) => {
                eprintln!("SKIPPED: {spec} by {io}: {error}");
                continue;
            }
        };
        conform(&array, 1, 300);
        wait_for_resync(&array);
        let mut lost = DriveSet::EMPTY;
        for idx in (0..shape.drives() as u8).map(drive) {
            if shape.survives(lost.with(idx)) {
                array.lose(idx).unwrap();
                lost = lost.with(idx);
                conform(&array, 1 + u64::from(lost.len()), 300);
            }
        }
        array.stop().unwrap();
    }
}

/// Conforms on drives that fail one sector in twenty at the first pass.
fn check_emulated(spec: &str, policy: &str) {
    let shelf = Shelf::new();
    let shape: levelhead_array::Spec = spec.parse().unwrap();
    let members = shelf.emulated(shape.drives(), 16, "retry-rate=5%&rotations=1&seed=3");
    make(spec, &members, UNKNOWN);
    let array = serve(&members, policy);
    assert_eq!(array.status().unwrap().synced, Ratio::ONE, "zeroes are in sync");
    conform(&array, 1, 60);
    if shape.redundant() > 0 {
        array.lose(drive(1)).unwrap();
        conform(&array, 2, 60);
    }
    array.stop().unwrap();
}

fn wait_for_resync(array: &ArrayHandle) {
    loop {
        let status = array.status().unwrap();
        assert_ne!(status.resync, Resync::Stuck);
        if status.synced == Ratio::ONE {
            return;
        }
        std::thread::yield_now();
    }
}

#[test]
fn raid0_on_files_conforms() {
    check_files("raid0:3,chunk=8KiB", "normal");
}

#[test]
fn raid4_on_files_conforms() {
    check_files("raid4:3+1,chunk=8KiB", "on-failure");
}

#[test]
fn raid5_on_files_conforms() {
    check_files("raid5:3+1,chunk=8KiB", "assisted:own-first");
}

#[test]
fn raid6_on_files_conforms() {
    check_files("raid6:3+2,chunk=16KiB", "assisted");
}

#[test]
fn eraid_on_files_conforms() {
    check_files("eraid:5+1,e=2,chunk=8KiB", "level");
}

#[test]
fn raid1_on_files_conforms() {
    check_files("raid1:3,chunk=8KiB", "level");
}

#[test]
fn raid10_on_files_conforms() {
    check_files("raid10:4,chunk=8KiB", "normal");
}

#[test]
fn raid10_of_an_odd_number_of_files_conforms() {
    check_files("raid10:5,chunk=16KiB", "level");
}

#[test]
fn raid1_on_emulated_drives_conforms() {
    check_emulated("raid1:2,chunk=8KiB", "level");
}

#[test]
fn raid0_on_emulated_drives_conforms() {
    check_emulated("raid0:2,chunk=8KiB", "normal");
}

#[test]
fn raid5_on_emulated_drives_conforms() {
    check_emulated("raid5:2+1,chunk=8KiB", "on-failure");
}

#[test]
fn eraid_on_emulated_drives_conforms() {
    check_emulated("eraid:3+1,e=2,chunk=8KiB", "assisted");
}

#[test]
fn drive_that_dies_while_the_array_runs_takes_no_data_with_it() {
    let shelf = Shelf::new();
    let members = shelf.emulated(4, 32, "");
    make("raid6:2+2,chunk=8KiB", &members, CLEAN);
    let array = serve(&members, "normal");
    let content = fill(&array, 5);
    array.command(move |engine| engine.kill(drive(3))).unwrap();
    check_content(&array, &content);
    array.command(move |engine| engine.kill(drive(0))).unwrap();
    let content = fill(&array, 6);
    check_content(&array, &content);
    let states: Vec<DriveState> =
        array.status().unwrap().drives.iter().map(|drive| drive.state).collect();
    let (failed, present) = (DriveState::Failed, DriveState::Present);
    assert_eq!(states, [failed, present, present, failed]);
    array.stop().unwrap();
    // They are recorded as lost: the others are enough, and these are refused.
    let array = serve(&members[1..3], "normal");
    check_content(&array, &content);
    array.stop().unwrap();
    let error = gather(&members).unwrap_err().to_string();
    assert!(error.contains("holds old data: the array failed it as drive"), "{error}");
}

#[test]
fn array_that_has_lost_too_much_says_so_and_hangs_nowhere() {
    let shelf = Shelf::new();
    let members = shelf.emulated(3, 32, "");
    make("raid5:2+1,chunk=8KiB", &members, CLEAN);
    let told: Arc<Mutex<Vec<NumberedEvent>>> = Arc::default();
    let heard = Arc::clone(&told);
    let on_event: OnEvent = Box::new(move |event| heard.lock().unwrap().push(event.clone()));
    let options = ServeOptions { on_event: Some(on_event), ..options("normal") };
    let array = gather(&members).unwrap().serve(options).unwrap();
    let state = || array.status().unwrap().state;
    fill(&array, 5);
    assert_eq!(state(), ArrayState::Whole);
    array.command(move |engine| engine.kill(drive(0))).unwrap();
    fill(&array, 6);
    assert_eq!(state(), ArrayState::Degraded);
    array.command(move |engine| engine.kill(drive(1))).unwrap();
    let reply = Client::new(&array).read(0, array.size().get());
    assert!(!reply.outcome.is_good());
    let outcome = Client::new(&array).write(0, noise(1, 8));
    assert!(!outcome.is_good());
    assert_eq!(state(), ArrayState::Failed);
    let error = array.stop().unwrap_err().to_string();
    assert_eq!(error, "more drives are missing or failed than the array survives: 0,1");
    // When a lost drive is closed is another matter.
    let mut told = told.lock().unwrap();
    told.retain(|told| !matches!(told.event, Event::Released { .. }));
    let names: Vec<&str> = told.iter().map(|told| told.event.name()).collect();
    assert_eq!(names, ["assembled", "lost", "lost", "array-failed", "stopped-failed"]);
    let lost: DriveSet = [drive(0), drive(1)].into_iter().collect();
    assert_eq!(told[3].event, Event::Array(ArrayEvent::Failed { lost, survives: 1 }));
    // The drives' losses say which, and what the machine says of it; the array's failure does not.
    for (at, told) in told[1..3].iter().enumerate() {
        assert_eq!(
            told.event,
            Event::Lost { drive: drive(at as u8), why: Why::Failed, is_copied: false }
        );
        let LostMember { name, reason } = told.lost.as_ref().unwrap();
        assert_eq!(name.as_deref(), Some(members[at].to_string().as_str()));
        assert!(reason.is_some(), "{told:?}");
    }
    assert_eq!(told[3].lost, None);
    let error = gather(&members).unwrap_err().to_string();
    assert!(error.contains("holds old data"), "{error}");
}

#[test]
fn events_are_numbered_and_can_be_read_after_the_end() {
    let shelf = Shelf::new();
    let members = shelf.emulated(3, 32, "");
    make("raid5:2+1,chunk=8KiB", &members, CLEAN);
    let array = serve(&members, "level");
    let since = |after| {
        let since = array.events(after, Nanos::ZERO).unwrap();
        let named = since.events.iter().map(|told| (told.number, told.event.name()));
        (since.missed, named.collect::<Vec<_>>(), since.has_ended)
    };
    let assembled = (1, "assembled");
    assert_eq!(since(0), (0, vec![assembled], false));
    array.command(move |engine| engine.sit_out(drive(1))).unwrap();
    array.command(move |engine| engine.admit(drive(1))).unwrap();
    let (out, back) = ((2, "sat-out-by-hand"), (3, "admitted-by-hand"));
    assert_eq!(since(0), (0, vec![assembled, out, back], false));
    assert_eq!(since(2), (0, vec![back], false));
    let waiting = {
        let array = array.clone();
        std::thread::spawn(move || array.events(3, Nanos::from_secs(3600)).unwrap())
    };
    assert_eq!(array.status().unwrap().events.len(), 3);
    array.stop().unwrap();
    let EventsSince { missed, events, .. } = waiting.join().unwrap();
    assert_eq!((missed, events[0].event.name()), (0, "stopped"), "the end is an event as well");
    assert_eq!(since(2), (0, vec![back, (4, "stopped")], true));
    assert_eq!(since(4), (0, Vec::new(), true), "nothing is waited for after the end");
}

#[test]
fn orders_that_cannot_be_followed_are_refused_in_one_sentence() {
    let shelf = Shelf::new();
    let mut members = shelf.emulated(2, 32, "");
    members.push(shelf.file("real.img", 32));
    make("raid5:2+1,chunk=8KiB", &members, CLEAN);
    let array = serve(&members, "normal");
    let check = |result: Result<(), levelhead_host::HostError>, expected: &str| {
        assert_eq!(result.unwrap_err().to_string(), expected);
    };
    check(array.lose(drive(3)), "the array has drives 0 to 2, not 3");
    check(array.command(move |engine| engine.kill(drive(9))), "the array has drives 0 to 2, not 9");
    let path = members[2].path().display().to_string();
    check(
        array.command(move |engine| engine.kill(drive(2))),
        &format!("drive 2, {path}, is a real one: it has its own faults"),
    );
    let fast = Faults { slowdown: 0.5, ..Faults::NONE };
    check(
        array.command(move |engine| engine.set_faults(drive(0), fast)),
        "drive 0: a drive is slowed down 1 to 1000 times, not 0.5 times",
    );
    array.lose(drive(1)).unwrap();
    check(array.lose(drive(1)), "drive 1 is already failed or missing");
    check(
        array.lose(drive(0)),
        "raid5:2+1,chunk=8KiB survives the loss of 1 drive, 1 is already failed or missing",
    );
    array.stop().unwrap();
    check(array.lose(drive(0)), "the array is not running any more");
    check(array.stop(), "the array is not running any more");
    let members = [&members[0], &members[2]].map(Clone::clone);
    let array = serve(&members, "normal");
    check(array.command(move |engine| engine.kill(drive(1))), "drive 1 is missing");
    let status = array.status().unwrap();
    assert_eq!(status.drives[1].state, DriveState::Missing);
    assert_eq!(status.drives[1].name, None);
}

#[test]
fn faults_can_be_changed_while_the_array_runs() {
    let shelf = Shelf::new();
    let members = shelf.emulated(3, 32, "");
    make("raid5:2+1,chunk=8KiB", &members, CLEAN);
    let array = serve(&members, "normal");
    let content = fill(&array, 5);
    // Nothing can be read from drive 0 any more, so all of it comes from the others.
    let hopeless = Faults { hard_rate: Ratio::ONE, ..Faults::NONE };
    array.command(move |engine| engine.set_faults(drive(0), hopeless)).unwrap();
    let before = array.status().unwrap().counters;
    assert_eq!(before.decoded, 0);
    check_content(&array, &content);
    let status = array.status().unwrap();
    assert!(status.counters.decoded > 0);
    assert_eq!(status.drives[0].state, DriveState::Present, "bad sectors are no death");
    let health = status.drives[0].health.unwrap();
    assert!(health.first_pass_failures > Some(0), "{health:?}");
    array.command(move |engine| engine.set_faults(drive(0), Faults::NONE)).unwrap();
    check_content(&array, &content);
    let after = array.status().unwrap();
    assert_eq!(after.counters.decoded, status.counters.decoded);
    let page = after.drives[0].health.unwrap();
    assert!(page.commands > health.commands, "the page goes on: {page:?}");
}

#[test]
fn what_little_effort_does_not_give_is_unknown_and_never_damaged() {
    let shelf = Shelf::new();
    let members = shelf.emulated(2, 32, "retry-rate=100%");
    make("raid0:2,chunk=8KiB", &members, CLEAN);
    let array = serve(&members, "normal");
    let extent = Extent::new(Lba::new(0), Sectors::new(4));
    let command = Command::Read { extent, effort: Effort::Fast };
    let reply = Client::new(&array).run(Request::bare(command));
    let unknown = (0..4).collect();
    assert_eq!(reply.outcome, Outcome::Done { unknown, damaged: Default::default() });
}

#[test]
fn large_requests_run_in_pieces_and_are_answered_once() {
    let shelf = Shelf::new();
    let members = shelf.files(3, 700);
    make("raid5:2+1,chunk=64KiB", &members, UNKNOWN);
    let array = serve(&members, "normal");
    let content = fill(&array, 9);
    check_content(&array, &content);
    let size = array.size().get();
    let served = array.status().unwrap().counters;
    assert_eq!(served.requests, 2 * size.div_ceil(256));
    let extent = Extent::new(Lba::ZERO, array.size());
    let command = Command::WriteZeroes { extent, durability: Durability::Durable };
    assert!(Client::new(&array).run(Request::bare(command)).outcome.is_good());
    check_content(&array, &Buf::zeroed(array.size()));
    let trim = Command::Trim { extent };
    assert!(Client::new(&array).run(Request::bare(trim)).outcome.is_good());
}

#[test]
fn request_for_nothing_is_answered() {
    let shelf = Shelf::new();
    let members = shelf.files(2, 32);
    make("raid0:2,chunk=8KiB", &members, CLEAN);
    let array = serve(&members, "normal");
    let extent = Extent::new(Lba::ZERO, Sectors::ZERO);
    for command in [
        Command::Read { extent, effort: Effort::Full },
        Command::Write { extent, durability: Durability::Cached, zero_tail: ZeroTail::None },
        Command::WriteZeroes { extent, durability: Durability::Cached },
        Command::Trim { extent },
    ] {
        let request = Request::bare(command);
        assert!(Client::new(&array).run(request).outcome.is_good(), "{command:?}");
    }
}

#[test]
fn whoever_asks_after_the_stop_is_told_that_the_array_is_gone() {
    let shelf = Shelf::new();
    let members = shelf.files(2, 32);
    make("raid0:2,chunk=8KiB", &members, CLEAN);
    let array = serve(&members, "normal");
    let mut client = Client::new(&array);
    array.stop().unwrap();
    let reply = client.read(0, 4);
    assert_eq!(reply.outcome, Outcome::Gone);
}

#[test]
fn requests_in_flight_are_answered_before_the_stop() {
    let shelf = Shelf::new();
    let members = shelf.emulated(3, 32, "slowdown=20");
    make("raid5:2+1,chunk=8KiB", &members, CLEAN);
    let array = serve(&members, "normal");
    let (sender, receiver) = mpsc::channel();
    for lba in 0..16 {
        let extent = Extent::new(Lba::new(lba), Sectors::new(1));
        let request = Request::write(extent, Durability::Cached, noise(lba, 1));
        let sender = sender.clone();
        let done = Box::new(move |reply| drop(sender.send(reply)));
        array.submit(request, done);
    }
    array.stop().unwrap();
    drop(sender);
    let outcomes: Vec<Outcome> = receiver.iter().map(|reply| reply.outcome).collect();
    assert_eq!(outcomes, vec![Outcome::GOOD; 16]);
    let array = serve(&members, "normal");
    for lba in 0..16 {
        let reply = Client::new(&array).read(lba, 1);
        assert!(reply.data.holds(noise(lba, 1).as_slice()), "sector {lba}");
    }
}

#[test]
fn no_more_requests_are_in_flight_than_the_bound_allows() {
    let shelf = Shelf::new();
    let members = shelf.emulated(3, 32, "");
    make("raid5:2+1,chunk=8KiB", &members, CLEAN);
    let bound = Bound { requests: 3, sectors: Sectors::new(16) };
    let array = gather(&members).unwrap().serve(ServeOptions { bound, ..options("normal") });
    let array = array.unwrap();
    let (asked, answered) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (array, asked, answered) = (&array, &asked, &answered);
            scope.spawn(move || {
                for lba in 0..16 {
                    let answered = Arc::clone(answered);
                    let done = Box::new(move |_| {
                        answered.fetch_add(1, Ordering::SeqCst);
                    });
                    let extent = Extent::new(Lba::new(thread * 8), Sectors::new(1 + lba % 8));
                    array.submit(Request::read(extent, Effort::Full), done);
                    asked.fetch_add(1, Ordering::SeqCst);
                    assert!(array.status().unwrap().outstanding <= 3);
                }
            });
        }
    });
    array.stop().unwrap();
    assert_eq!(answered.load(Ordering::SeqCst), 8 * 16);
    assert_eq!(asked.load(Ordering::SeqCst), 8 * 16);
}

/// The engine's own thread gives the answer, so it must never wait for room.
#[test]
fn answer_may_ask_for_the_next_thing() {
    fn ask(array: &ArrayHandle, left: u32, end: mpsc::Sender<Outcome>) {
        let extent = Extent::new(Lba::new(3), Sectors::new(2));
        let again = array.clone();
        let done = Box::new(move |reply: levelhead_block::Reply| match left {
            0 => end.send(reply.outcome).unwrap(),
            left => ask(&again, left - 1, end),
        });
        array.submit(Request::read(extent, Effort::Full), done);
    }
    let shelf = Shelf::new();
    let members = shelf.files(2, 32);
    make("raid0:2,chunk=8KiB", &members, CLEAN);
    let bound = Bound { requests: 1, sectors: Sectors::new(1) };
    let array = gather(&members).unwrap().serve(ServeOptions { bound, ..options("normal") });
    let array = array.unwrap();
    let (sender, receiver) = mpsc::channel();
    for _ in 0..4 {
        ask(&array, 50, sender.clone());
    }
    drop(sender);
    let outcomes: Vec<Outcome> = receiver.iter().collect();
    assert_eq!(outcomes, vec![Outcome::GOOD; 4]);
    array.stop().unwrap();
}

/// E1: a mistake on the engine's own thread ends the engine, and no client waits for it.
#[test]
fn engine_that_panics_leaves_no_client_waiting() {
    let shelf = Shelf::new();
    let members = shelf.emulated(2, 32, "slowdown=10");
    make("raid0:2,chunk=8KiB", &members, CLEAN);
    let array = serve(&members, "normal");
    let (sender, receiver) = mpsc::channel();
    let extent = Extent::new(Lba::new(3), Sectors::new(2));
    let request = || Request::read(extent, Effort::Full);
    array.submit(request(), Box::new(|_| panic!("a client's mistake, made on purpose")));
    for _ in 0..400 {
        let sender = sender.clone();
        let done =
            Box::new(move |reply: levelhead_block::Reply| sender.send(reply.outcome).unwrap());
        array.submit(request(), done);
    }
    drop(sender);
    let outcomes: Vec<Outcome> = receiver.iter().collect();
    assert_eq!(outcomes.len(), 400);
    assert_eq!(outcomes.last(), Some(&Outcome::Gone));
    assert_eq!(array.stop().unwrap_err().to_string(), "the array is not running any more");
}

#[test]
fn dropping_the_last_handle_stops_the_array_in_good_order() {
    let shelf = Shelf::new();
    let members = shelf.files(3, 32);
    make("raid5:2+1,chunk=8KiB", &members, UNKNOWN);
    let array = serve(&members, "normal");
    let content = fill(&array, 3);
    wait_for_resync(&array);
    drop(array);
    let assembled = gather(&members).unwrap();
    assert_eq!(assembled.synced(), (16, 16));
    check_content(&assembled.serve(options("normal")).unwrap(), &content);
}

#[test]
fn status_says_what_there_is() {
    let shelf = Shelf::new();
    let members = shelf.emulated(3, 32, "");
    let created = make("raid5:2+1,chunk=8KiB", &members, CLEAN);
    let array = serve(&members, "assisted");
    fill(&array, 3);
    let status = array.status().unwrap();
    assert_eq!(status.spec.to_string(), "raid5:2+1,chunk=8KiB");
    assert_eq!(status.uuid, created.uuid);
    assert_eq!(status.size, Sectors::new(64));
    assert_eq!(status.size, created.size);
    assert_eq!(status.policy.to_string(), "assisted");
    assert_eq!(status.outstanding, 0);
    assert_eq!(status.counters.requests, 1);
    assert_eq!(status.latency.count, 1);
    assert_eq!(status.drives.len(), 3);
    for (drive, member) in status.drives.iter().zip(&members) {
        assert_eq!(drive.name, Some(member.to_string()));
        // Its last metadata may be under way.
        assert!(drive.queue_len <= 1);
        assert!(drive.health.unwrap().service_time_mean.is_some());
    }
}

#[test]
fn window_out_of_range_is_refused() {
    let shelf = Shelf::new();
    let members = shelf.files(2, 32);
    make("raid0:2,chunk=8KiB", &members, CLEAN);
    for (window, got) in [(0, "0"), (33, "33")] {
        let options = ServeOptions { window, ..options("normal") };
        let error = gather(&members).unwrap().serve(options).err().unwrap().to_string();
        assert_eq!(error, format!("a window is from 1 to 32 commands, got {got}"));
    }
    // Nothing was written: the array is as clean as it was.
    assert_eq!(gather(&members).unwrap().state(), levelhead_array::metadata::State::Clean);
}
