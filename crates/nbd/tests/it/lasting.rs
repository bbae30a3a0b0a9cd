//! A client whose server goes away and comes back: what is refused meanwhile, and what is there afterwards.

use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};
use std::{io, thread};

use levelhead_block::adapter::Waiting;
use levelhead_block::conformance::{SuiteSettings, check_service};
use levelhead_block::crash::Crash;
use levelhead_block::{
    BlockDevice, BlockService, Buf, Command, Done, Durability, Effort, Memory, Outcome, Reply,
    Request,
};
use levelhead_nbd::{Access, Endpoint, Export, IsSame, LastingClient, Recognise, Running, Server};
use levelhead_stats::Streams;
use levelhead_testkit::extent;
use levelhead_units::{SECTOR_SIZE, Sectors};
use tempfile::TempDir;

use crate::common::{Served, export, memory, wait_until};

/// A device whose power can be cut, and that counts what it is asked.
struct Disk {
    device: Mutex<Option<Crash<Memory>>>,
    writes: AtomicUsize,
    durable: AtomicUsize,
    flushes: AtomicUsize,
    /// Whether flushes fail.
    lies_broken: Mutex<bool>,
}

impl Disk {
    fn new(sectors: u64) -> Arc<Self> {
        Arc::new(Self {
            device: Mutex::new(Some(Crash::new(Memory::new(Sectors::new(sectors))))),
            writes: AtomicUsize::new(0),
            durable: AtomicUsize::new(0),
            flushes: AtomicUsize::new(0),
            lies_broken: Mutex::new(false),
        })
    }

    /// What was not flushed may be lost from here on.
    fn cut_power(&self, seed: u64) {
        let mut device = self.device.lock().unwrap();
        let mut rng = Streams::new(seed).stream("power");
        let left = device.take().unwrap().power_cut(&mut rng);
        *device = Some(Crash::new(left));
    }

    fn counts(&self) -> [usize; 3] {
        [&self.writes, &self.durable, &self.flushes].map(|count| count.load(Ordering::SeqCst))
    }
}

impl BlockService for Disk {
    fn size(&self) -> Sectors {
        self.device.lock().unwrap().as_ref().unwrap().size()
    }

    fn submit(&self, request: Request, done: Done) {
        match request.command {
            Command::Write { durability: Durability::Cached, .. } => {
                self.writes.fetch_add(1, Ordering::SeqCst);
            }
            Command::Write { durability: Durability::Durable, .. } => {
                self.durable.fetch_add(1, Ordering::SeqCst);
            }
            Command::Flush => {
                self.flushes.fetch_add(1, Ordering::SeqCst);
                if *self.lies_broken.lock().unwrap() {
                    return done(Reply::gone("it is broken"));
                }
            }
            _ => {}
        }
        let reply = self.device.lock().unwrap().as_mut().unwrap().run(vec![request]).pop();
        done(reply.unwrap());
    }
}

fn serve(folder: &Path, service: Arc<dyn BlockService>) -> Running {
    let endpoint = Endpoint::Unix(folder.join("nbd.sock"));
    Server::bind(&endpoint, vec![export(service)]).unwrap().start().unwrap()
}

fn open_with(folder: &Path, by: &'static [u64], is_same: IsSame) -> Arc<LastingClient> {
    let uri = Endpoint::Unix(folder.join("nbd.sock")).uri("disk");
    let recognise = Recognise { by, is_same };
    let late = Duration::ZERO;
    Arc::new(LastingClient::open_with(&uri.parse().unwrap(), recognise, late).unwrap())
}

fn open(folder: &Path) -> Arc<LastingClient> {
    open_with(folder, &[0], |_, _| true)
}

fn run(client: &Arc<LastingClient>, request: Request) -> Reply {
    Waiting::new(Arc::clone(client)).run(vec![request]).pop().unwrap()
}

fn write(lba: u64, byte: u8, durability: Durability) -> Request {
    Request::write(extent(lba, 1), durability, Buf::copy_of(&[byte; SECTOR_SIZE]))
}

fn read(client: &Arc<LastingClient>, lba: u64) -> u8 {
    let reply = run(client, Request::read(extent(lba, 1), Effort::Full));
    assert!(reply.outcome.is_good(), "{reply:?}");
    reply.data.into_buf().as_slice()[0]
}

fn is_refused(client: &Arc<LastingClient>) -> bool {
    run(client, Request::bare(Command::Flush)).outcome == Outcome::Unreachable
}

fn wait_for_return(client: &Arc<LastingClient>) {
    wait_until("the export is back", || !is_refused(client));
}

#[test]
fn lasting_client_is_a_block_service() {
    let served = Served::over(memory(300));
    let settings = SuiteSettings { seed: 5, requests: 1_000, sectors_max: 33, batch_max: 16 };
    check_service(open(served.dir.path()), settings);
}

#[test]
fn commands_are_refused_while_the_export_is_away_and_served_when_it_is_back() {
    let (folder, disk) = (TempDir::new().unwrap(), Disk::new(16));
    let server = serve(folder.path(), disk.clone());
    let client = open(folder.path());
    assert!(run(&client, write(3, 7, Durability::Durable)).outcome.is_good());
    server.stop();
    wait_until("the loss is noticed", || is_refused(&client));
    for request in [
        write(3, 8, Durability::Cached),
        write(3, 8, Durability::Durable),
        Request::read(extent(3, 1), Effort::Fast),
        Request::bare(Command::Flush),
    ] {
        let reply = run(&client, request);
        assert_eq!(reply.outcome, Outcome::Unreachable);
        assert!(reply.reason.is_some());
    }
    let server = serve(folder.path(), disk);
    wait_for_return(&client);
    assert_eq!(read(&client, 3), 7, "what was refused was not done");
    assert!(run(&client, write(3, 9, Durability::Cached)).outcome.is_good());
    assert_eq!(read(&client, 3), 9);
    server.stop();
}

/// The server is cut off from its power after a hundred writes of which some were flushed: whatever it has lost,
/// each sector reads back what was last answered.
#[test]
fn what_was_answered_reads_back_whatever_the_server_has_lost() {
    for seed in 0..20 {
        let (folder, disk) = (TempDir::new().unwrap(), Disk::new(16));
        let server = serve(folder.path(), disk.clone());
        let client = open(folder.path());
        let mut rng = Streams::new(seed).stream("writes");
        let mut model = [0; 16];
        for number in 1..=100 {
            let lba = rng.below(16);
            let durable = rng.below(4) == 0;
            let durability = if durable { Durability::Durable } else { Durability::Cached };
            assert!(run(&client, write(lba, number, durability)).outcome.is_good());
            model[lba as usize] = number;
            if rng.below(20) == 0 {
                assert!(run(&client, Request::bare(Command::Flush)).outcome.is_good());
            }
        }
        server.stop();
        disk.cut_power(seed);
        let server = serve(folder.path(), disk.clone());
        wait_for_return(&client);
        disk.cut_power(seed + 1_000);
        let found: Vec<u8> = (0..16).map(|lba| read(&client, lba)).collect();
        assert_eq!(found, model, "seed {seed}");
        server.stop();
    }
}

#[test]
fn what_is_safe_is_not_written_again() {
    let (folder, disk) = (TempDir::new().unwrap(), Disk::new(16));
    let server = serve(folder.path(), disk.clone());
    let client = open(folder.path());
    assert!(run(&client, write(1, 1, Durability::Cached)).outcome.is_good());
    assert!(run(&client, Request::bare(Command::Flush)).outcome.is_good());
    assert!(run(&client, write(2, 2, Durability::Durable)).outcome.is_good());
    assert!(run(&client, write(4, 4, Durability::Cached)).outcome.is_good());
    assert!(run(&client, write(5, 5, Durability::Cached)).outcome.is_good());
    assert_eq!(disk.counts(), [3, 1, 1]);
    server.stop();
    let server = serve(folder.path(), disk.clone());
    wait_for_return(&client);
    // Sectors 4 and 5, in one write, and a flush behind it; the last flush has told that it is back.
    assert_eq!(disk.counts()[..2], [4, 1]);
    server.stop();
}

/// Another one may have the export by then.
#[test]
fn client_that_was_left_writes_nothing_again() {
    let (folder, disk) = (TempDir::new().unwrap(), Disk::new(16));
    let server = serve(folder.path(), disk.clone());
    let [left, kept] = [open(folder.path()), open(folder.path())];
    for client in [&left, &kept] {
        assert!(run(client, write(1, 1, Durability::Cached)).outcome.is_good());
    }
    server.stop();
    for client in [&left, &kept] {
        wait_until("the loss is noticed", || is_refused(client));
    }
    left.leave();
    let before = disk.counts()[0];
    let server = serve(folder.path(), disk.clone());
    wait_for_return(&kept);
    // The other one would have been back as soon: both have waited as long.
    thread::sleep(Duration::from_millis(500));
    assert_eq!(disk.counts()[0], before + 1, "the one that is kept has written again");
    assert_eq!(run(&left, Request::bare(Command::Flush)).outcome, Outcome::Gone);
    server.stop();
}

/// 64 MiB in all, and no one asks for a flush.
/// Passes on what a client says at `at`, and what the server at `to` answers. Counts the clients that have closed.
fn pass_on(at: &Path, to: &Path) -> Arc<AtomicUsize> {
    let (listener, to) = (UnixListener::bind(at).unwrap(), to.to_owned());
    let closed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&closed);
    thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let server = UnixStream::connect(to).unwrap();
        let [mut from_server, mut to_client] = [&server, &client].map(|it| it.try_clone().unwrap());
        thread::spawn(move || drop(io::copy(&mut from_server, &mut to_client)));
        drop(io::copy(&mut &client, &mut &server));
        count.fetch_add(1, Ordering::SeqCst);
        drop(server.shutdown(Shutdown::Write));
    });
    closed
}

#[test]
fn client_that_was_left_says_goodbye_when_its_last_command_has_ended() {
    let (served, held) = Served::held(64);
    let folder = TempDir::new().unwrap();
    let closed = pass_on(&folder.path().join("nbd.sock"), &served.path());
    let client = thread::scope(|scope| {
        // It looks at the first sector.
        scope.spawn(|| {
            wait_until("the read has come", || held.seen() == 1);
            held.release_last();
        });
        open(folder.path())
    });
    let (sender, ended) = mpsc::channel();
    let done = move |reply| sender.send(reply).unwrap();
    client.submit(write(1, 7, Durability::Durable), Box::new(done));
    wait_until("it is in the device", || held.seen() == 2);
    client.leave();
    // Long enough for one that says goodbye at once.
    for _ in 0..100 {
        assert_eq!(closed.load(Ordering::SeqCst), 0, "a command is inside");
        thread::sleep(Duration::from_millis(1));
    }
    held.open();
    assert!(ended.recv().unwrap().outcome.is_good());
    wait_until("it says goodbye", || closed.load(Ordering::SeqCst) == 1);
}

/// V6: what was under way may still be carried out by what is on the other side.
#[test]
fn connection_that_was_lost_with_a_write_is_not_followed_by_another_one_for_a_while() {
    const LATE: Duration = Duration::from_millis(1_200);
    let (served, held) = Served::held(64);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("nbd.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let to = served.path();
    let (connections, accepted) = mpsc::channel();
    thread::spawn(move || {
        for client in listener.incoming() {
            let (client, server) = (client.unwrap(), UnixStream::connect(&to).unwrap());
            for (from, into) in [(&client, &server), (&server, &client)] {
                let (mut from, mut into) = (from.try_clone().unwrap(), into.try_clone().unwrap());
                thread::spawn(move || drop(io::copy(&mut from, &mut into)));
            }
            drop(connections.send((Instant::now(), client)));
        }
    });
    let uri = Endpoint::Unix(path).uri("disk").parse().unwrap();
    let recognise = Recognise { by: &[], is_same: |_, _| true };
    let client = Arc::new(LastingClient::open_with(&uri, recognise, LATE).unwrap());
    let (_, first) = accepted.recv().unwrap();
    let (sender, ended) = mpsc::channel();
    let request = write(1, 7, Durability::Durable);
    client.submit(request, Box::new(move |reply| sender.send(reply).unwrap()));
    wait_until("it is in the device", || held.seen() == 1);
    let lost = Instant::now();
    first.shutdown(Shutdown::Both).unwrap();
    assert_eq!(ended.recv().unwrap().outcome, Outcome::Unreachable);
    let (next, _kept) = accepted.recv().unwrap();
    held.open();
    wait_for_return(&client);
    assert!(next.elapsed() >= LATE && next >= lost, "{:?}", next.elapsed());
}

#[test]
fn what_is_kept_is_limited_by_flushes_of_its_own() {
    const COUNT: u64 = 64;
    let (folder, disk) = (TempDir::new().unwrap(), Disk::new(COUNT * 256));
    let server = serve(folder.path(), disk.clone());
    let client = open(folder.path());
    for number in 0..COUNT {
        let extent = extent(number * 256, 256);
        let buf = Buf::copy_of(&vec![number as u8; 256 * SECTOR_SIZE]);
        let reply = run(&client, Request::write(extent, Durability::Cached, buf));
        assert!(reply.outcome.is_good());
    }
    let [cached, durable, flushes] = disk.counts();
    assert_eq!(cached + durable, COUNT as usize);
    assert!(flushes >= 1, "{:?}", disk.counts());
    server.stop();
    disk.cut_power(1);
    let server = serve(folder.path(), disk);
    wait_for_return(&client);
    for number in 0..COUNT {
        assert_eq!(read(&client, number * 256 + number), number as u8);
    }
    server.stop();
}

#[test]
fn another_drive_at_the_same_place_is_not_taken_for_it() {
    let (folder, disk) = (TempDir::new().unwrap(), Disk::new(16));
    let server = serve(folder.path(), disk.clone());
    let client = open_with(folder.path(), &[0, 5], |before, now| before == now);
    server.stop();
    let other = Disk::new(16);
    other.device.lock().unwrap().as_mut().unwrap().run(vec![write(0, 1, Durability::Durable)]);
    let server = serve(folder.path(), other.clone());
    let mut reply = None;
    wait_until("it is known", || {
        reply = Some(run(&client, Request::bare(Command::Flush)));
        reply.as_ref().unwrap().outcome != Outcome::Unreachable
    });
    let reply = reply.unwrap();
    assert_eq!(reply.outcome, Outcome::Gone);
    assert!(reply.reason.unwrap().contains("another drive answers at nbd+unix:///disk"));
    assert_eq!(other.counts(), [0, 0, 0], "nothing was changed there");
    server.stop();
}

/// A sector that was written and is not safe yet may be as it was before.
#[test]
fn drive_is_recognised_by_its_sectors_as_they_are_there_for_sure() {
    for (durability, expected) in [(Durability::Durable, [9, 9]), (Durability::Cached, [8, 0])] {
        let (folder, disk) = (TempDir::new().unwrap(), Disk::new(16));
        let server = serve(folder.path(), disk.clone());
        static BEFORE: Mutex<Vec<u8>> = Mutex::new(Vec::new());
        let client = open_with(folder.path(), &[0, 5], |before, _| {
            *BEFORE.lock().unwrap() = before.iter().map(|sector| sector[0]).collect();
            true
        });
        assert!(run(&client, write(0, 8, Durability::Cached)).outcome.is_good());
        assert!(run(&client, Request::bare(Command::Flush)).outcome.is_good());
        for sector in [0, 5] {
            assert!(run(&client, write(sector, 9, durability)).outcome.is_good());
        }
        server.stop();
        let server = serve(folder.path(), disk);
        wait_for_return(&client);
        assert_eq!(*BEFORE.lock().unwrap(), expected);
        assert_eq!(read(&client, 0), 9);
        server.stop();
    }
}

#[test]
fn drive_of_another_size_is_not_taken_for_it() {
    let folder = TempDir::new().unwrap();
    let server = serve(folder.path(), Disk::new(16));
    let client = open(folder.path());
    server.stop();
    let server = serve(folder.path(), Disk::new(15));
    wait_until("it is known", || !is_refused(&client));
    let reply = run(&client, Request::bare(Command::Flush));
    assert_eq!(reply.outcome, Outcome::Gone);
    assert!(reply.reason.unwrap().contains("has 60KiB now, it had 64KiB"));
    server.stop();
}

/// The second one might succeed, and say nothing of what the first has lost.
#[test]
fn flush_that_has_failed_is_not_asked_for_again() {
    let (folder, disk) = (TempDir::new().unwrap(), Disk::new(16));
    let server = serve(folder.path(), disk.clone());
    let client = open(folder.path());
    *disk.lies_broken.lock().unwrap() = true;
    assert_eq!(run(&client, Request::bare(Command::Flush)).outcome, Outcome::Gone);
    *disk.lies_broken.lock().unwrap() = false;
    assert_eq!(run(&client, Request::bare(Command::Flush)).outcome, Outcome::Gone);
    assert_eq!(run(&client, write(1, 1, Durability::Cached)).outcome, Outcome::Gone);
    assert_eq!(disk.counts(), [0, 0, 1]);
    server.stop();
}

#[test]
fn export_for_reading_alone_is_no_drive() {
    let folder = TempDir::new().unwrap();
    let endpoint = Endpoint::Unix(folder.path().join("nbd.sock"));
    let only = Export { access: Access::ReadOnly, ..export(memory(4)) };
    let server = Server::bind(&endpoint, vec![only]).unwrap().start().unwrap();
    let uri = endpoint.uri("disk").parse().unwrap();
    let error = LastingClient::open(&uri, Recognise { by: &[], is_same: |_, _| true })
        .err()
        .unwrap()
        .to_string();
    assert!(error.ends_with(": the export is read-only"), "{error}");
    server.stop();
}
