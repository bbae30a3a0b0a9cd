//! The server and the client on each other.

use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::{fs, io, thread};

use levelhead_block::adapter::{OneByOne, Waiting};
use levelhead_block::conformance::{SuiteSettings, check_service};
use levelhead_block::faulty::{Faults, Faulty};
use levelhead_block::{
    BlockDevice, BlockService, Buf, Command, Done, Durability, Effort, Memory, Outcome, Reply,
    Request, SectorSet,
};
use levelhead_nbd::codec::ExportFlags;
use levelhead_nbd::codec::{
    Answer, ClientMessage, ClientOption, Info, ServerDecoder, ServerMessage,
};
use levelhead_nbd::{Access, Client, Endpoint, Export, Server};
use levelhead_stats::Streams;
use levelhead_units::{Bytes, Extent, Lba, Ratio, Sectors};

use crate::common::{InPieces, Served, Shuffled, export, memory, wait_until};

const SETTINGS: SuiteSettings =
    SuiteSettings { seed: 3, requests: 3_000, sectors_max: 33, batch_max: 24 };

fn connect(served: &Served) -> Client {
    Client::connect(served.running.endpoint(), "disk").unwrap()
}

fn read(lba: u64, sectors: u64, effort: Effort) -> Request {
    let extent = Extent::new(Lba::new(lba), Sectors::new(sectors));
    Request::read(extent, effort)
}

fn write(lba: u64, bytes: &[u8]) -> Request {
    let buf = Buf::copy_of(bytes);
    let extent = Extent::new(Lba::new(lba), buf.sectors());
    Request::write(extent, Durability::Cached, buf)
}

fn run(client: Client, request: Request) -> Reply {
    Waiting::new(Arc::new(client)).run(vec![request]).pop().unwrap()
}

#[test]
fn loopback_over_a_unix_socket_is_a_block_service() {
    let served = Served::over(memory(300));
    check_service(Arc::new(connect(&served)), SETTINGS);
}

#[test]
fn loopback_stays_one_when_the_service_answers_out_of_order() {
    for seed in 0..4 {
        let served = Served::over(Shuffled::new(Memory::new(Sectors::new(300)), seed));
        check_service(
            Arc::new(connect(&served)),
            SuiteSettings { seed, requests: 1_000, ..SETTINGS },
        );
    }
}

#[test]
fn loopback_stays_one_when_the_service_answers_in_pieces() {
    let served = Served::over(Arc::new(InPieces(memory(300))));
    check_service(Arc::new(connect(&served)), SuiteSettings { requests: 1_000, ..SETTINGS });
}

/// The machine has no room: the server says so, and the client hears of it as such.
#[test]
fn refused_write_is_refused_at_both_ends() {
    struct Full;
    impl BlockService for Full {
        fn size(&self) -> Sectors {
            Sectors::new(4)
        }
        fn submit(&self, _: Request, done: Done) {
            done(Reply::bare(Outcome::Refused));
        }
    }
    let served = Served::over(Arc::new(Full));
    assert_eq!(run(connect(&served), write(0, &[1; 4096])).outcome, Outcome::Refused);
    let error = connect(&served).write_at(Bytes::new(5), &[1], Durability::Cached).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(28));
}

#[test]
fn loopback_over_tcp_is_a_block_service_and_its_port_can_be_left_to_the_system() {
    let server = Server::bind(&"tcp:0".parse().unwrap(), vec![export(memory(300))]).unwrap();
    let running = server.start().unwrap();
    assert!(!running.endpoint().to_string().ends_with(":0"), "{}", running.endpoint());
    let client = Client::connect(running.endpoint(), "").unwrap();
    check_service(Arc::new(client), SuiteSettings { requests: 500, ..SETTINGS });
    running.stop();
}

#[test]
fn requests_longer_than_the_limit_are_split_and_put_together() {
    const SECTORS: usize = 20_000;
    let served = Served::over(memory(SECTORS as u64));
    let mut bytes = vec![0; SECTORS * 4096];
    Streams::new(5).stream("long").fill(&mut bytes);
    assert!(run(connect(&served), write(0, &bytes)).outcome.is_good());
    let reply = run(connect(&served), read(0, SECTORS as u64, Effort::Full));
    assert!(reply.outcome.is_good());
    assert!(reply.data.holds(&bytes));
}

#[test]
fn bytes_of_any_alignment_read_back() {
    let served = Served::over(memory(16));
    let client = connect(&served);
    let mut model = vec![0; 16 * 4096];
    let mut rng = Streams::new(9).stream("bytes");
    for round in 0..500 {
        let start = rng.below(model.len() as u64);
        let len = 1 + rng.below((model.len() as u64 - start).min(9_000));
        let place = start as usize..(start + len) as usize;
        if rng.below(2) == 0 {
            rng.fill(&mut model[place.clone()]);
            client.write_at(Bytes::new(start), &model[place], Durability::Cached).unwrap();
        } else {
            let mut out = vec![0; len as usize];
            client.read_at(Bytes::new(start), &mut out).unwrap();
            assert!(out == model[place], "round {round}: {len} bytes at {start}");
        }
    }
    let mut all = vec![0; model.len()];
    client.read_at(Bytes::new(0), &mut all).unwrap();
    assert!(all == model);
}

/// Eight connections write to slots of 96 bytes that share sectors, in a service that mixes up the
/// order. Without the locks, a sector written back with an old neighbour would undo a write.
#[test]
fn unaligned_writes_to_shared_sectors_lose_nothing() {
    const SLOT: usize = 96;
    const WRITERS: usize = 8;
    const ROUNDS: u8 = 200;
    let served = Served::over(Shuffled::new(Memory::new(Sectors::new(4)), 11));
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let client = connect(&served);
            scope.spawn(move || {
                for round in 1..=ROUNDS {
                    // Slots of all writers interleave; those around 4096 straddle two sectors.
                    let slot = (usize::from(round % 12)) * WRITERS + writer;
                    let place = Bytes::new((slot * SLOT) as u64);
                    let bytes = [round; SLOT];
                    client.write_at(place, &bytes, Durability::Cached).unwrap();
                    let mut out = [0; SLOT];
                    client.read_at(place, &mut out).unwrap();
                    assert!(out == bytes, "writer {writer}, round {round}");
                }
            });
        }
    });
    let client = connect(&served);
    let mut all = vec![0; 12 * WRITERS * SLOT];
    client.read_at(Bytes::new(0), &mut all).unwrap();
    for (slot, bytes) in all.chunks_exact(SLOT).enumerate() {
        let last = (1..=ROUNDS).rev().find(|round| usize::from(round % 12) == slot / WRITERS);
        assert!(bytes.iter().all(|&byte| Some(byte) == last), "slot {slot}");
    }
}

#[test]
fn whole_sector_write_waits_for_an_unaligned_one_to_the_same_sector() {
    let (served, held) = Served::held(4);
    let client = Arc::new(connect(&served));
    let unaligned = Arc::clone(&client);
    let first = thread::spawn(move || unaligned.write_at(Bytes::new(10), b"x", Durability::Cached));
    wait_until("the sector is fetched", || held.seen() == 1);
    let (sender, receiver) = mpsc::channel();
    let done = Box::new(move |reply: Reply| sender.send(reply.outcome).unwrap());
    client.submit(write(0, &[7; 4096]), done);
    // The second would be seen by now if it did not wait: this one came after it.
    let (sender, other) = mpsc::channel();
    client.submit(read(3, 1, Effort::Full), Box::new(move |_| sender.send(()).unwrap()));
    wait_until("the read has come", || held.seen() == 2);
    held.release_last();
    other.recv().unwrap();
    assert_eq!(held.seen(), 2, "the whole-sector write waits");
    held.open();
    first.join().unwrap().unwrap();
    assert!(receiver.recv().unwrap().is_good());
    let mut sector = [0; 4096];
    client.read_at(Bytes::new(0), &mut sector).unwrap();
    assert!(sector == [7; 4096], "the later write is what stays");
}

#[test]
fn replies_come_in_the_order_of_completion() {
    let (served, held) = Served::held(4);
    let client = connect(&served);
    let (sender, receiver) = mpsc::channel();
    for id in 0..2 {
        let sender = sender.clone();
        let done = Box::new(move |_| sender.send(id).unwrap());
        client.submit(read(id, 1, Effort::Full), done);
        wait_until("the request has come", || held.seen() == id as usize + 1);
    }
    held.release_last();
    assert_eq!(receiver.recv(), Ok(1));
    held.open();
    assert_eq!(receiver.recv(), Ok(0));
}

#[test]
fn connections_see_each_others_writes() {
    let served = Served::over(memory(4));
    let (one, two) = (connect(&served), connect(&served));
    one.write_at(Bytes::new(5000), b"hello", Durability::Durable).unwrap();
    let mut out = [0; 5];
    two.read_at(Bytes::new(5000), &mut out).unwrap();
    assert_eq!(&out, b"hello");
    wait_until("both are counted", || served.running.connections() == 2);
    drop((one, two));
    wait_until("both have left", || served.running.connections() == 0);
}

#[test]
fn sectors_that_cannot_be_read_are_damaged_at_full_effort_and_unknown_below() {
    let faults = Faults { soft: Ratio::ONE, hard: Ratio::ONE };
    let device = Faulty::new(Memory::new(Sectors::new(4)), faults, Streams::new(1).stream("f"));
    let served = Served::over(Arc::new(OneByOne::new(device)));
    let both: SectorSet = SectorSet::first(Sectors::new(2));
    let full = run(connect(&served), read(1, 2, Effort::Full));
    let (unknown, damaged) = (SectorSet::EMPTY, both.clone());
    assert_eq!(full.outcome, Outcome::Done { unknown, damaged });
    let fast = run(connect(&served), read(1, 2, Effort::Fast));
    let (unknown, damaged) = (both, SectorSet::EMPTY);
    assert_eq!(fast.outcome, Outcome::Done { unknown, damaged });
    let client = connect(&served);
    let error = client.read_at(Bytes::new(4096), &mut [0; 10]).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(5));
    // The sector around these bytes cannot be kept, so they cannot be written either.
    let error = client.write_at(Bytes::new(4096), &[1; 10], Durability::Cached).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(5));
    client.write_at(Bytes::new(4096), &[1; 4096], Durability::Cached).unwrap();
}

#[test]
fn device_that_is_gone_is_an_input_output_error() {
    let faults = Faults { soft: Ratio::ZERO, hard: Ratio::ZERO };
    let mut device = Faulty::new(Memory::new(Sectors::new(4)), faults, Streams::new(1).stream("f"));
    device.disappear();
    let served = Served::over(Arc::new(OneByOne::new(device)));
    let error = connect(&served).read_at(Bytes::new(0), &mut [0; 10]).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(5));
}

#[test]
fn errors_come_back_as_the_operating_system_has_them() {
    let read_only = Export { access: Access::ReadOnly, name: "ro".to_owned(), ..export(memory(4)) };
    let served = Served::new(vec![export(memory(4)), read_only]);
    let endpoint = served.running.endpoint();
    let end = Bytes::new(4 * 4096);
    let client = Client::connect(endpoint, "disk").unwrap();
    let errno = |result: io::Result<()>| result.unwrap_err().raw_os_error();
    assert_eq!(errno(client.read_at(end, &mut [0])), Some(22));
    assert_eq!(errno(client.write_at(end, &[0], Durability::Cached)), Some(28));
    assert_eq!(errno(client.read_at(Bytes::new(0), &mut [])), Some(22), "no bytes");
    let client = Client::connect(endpoint, "ro").unwrap();
    assert_eq!(errno(client.write_at(Bytes::new(0), &[0], Durability::Cached)), Some(1));
    let error = Client::connect(endpoint, "other").err().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert!(error.to_string().contains("'other'"), "{error}");
}

/// A server that accepts one client, takes one request and closes the connection.
fn serve_one_request_badly(listener: &UnixListener) {
    use std::io::{Read, Write};
    let (mut stream, _) = listener.accept().unwrap();
    let mut decoder = ServerDecoder::new();
    let say = |message: ServerMessage, stream: &mut dyn Write| {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        stream.write_all(&bytes).unwrap();
    };
    say(ServerMessage::Greeting(levelhead_nbd::codec::HandshakeFlags::KNOWN), &mut stream);
    loop {
        let Some(message) = decoder.next().unwrap() else {
            let count = stream.read(decoder.space()).unwrap();
            decoder.filled(count);
            continue;
        };
        let ClientMessage::Option(option) = message else {
            if matches!(message, ClientMessage::Request(..)) {
                return;
            }
            continue;
        };
        let number = option.number();
        let answer = |answer| ServerMessage::Answer { option: number, answer };
        if matches!(option, ClientOption::Go { .. }) {
            let flags = ExportFlags::KNOWN.without(ExportFlags::READ_ONLY);
            let info = Info::Export { size: Bytes::new(1 << 20), flags };
            say(answer(Answer::Info(info)), &mut stream);
            decoder.begin_transmission();
        }
        say(answer(Answer::Ack), &mut stream);
    }
}

#[test]
fn lost_server_ends_what_is_in_flight_and_what_comes_later_as_gone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bad.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let server = thread::spawn(move || serve_one_request_badly(&listener));
    let client = Arc::new(Client::connect(&Endpoint::Unix(path), "").unwrap());
    let mut device = Waiting::new(Arc::clone(&client));
    let batch = (0..5).map(|lba| read(lba, 1, Effort::Full)).collect();
    for reply in device.run(batch) {
        assert_eq!(reply.outcome, Outcome::Gone);
    }
    server.join().unwrap();
    let later = device.run(vec![write(0, &[1; 4096]), Request::bare(Command::Flush)]);
    assert!(later.iter().all(|reply| reply.outcome == Outcome::Gone));
    let error = client.read_at(Bytes::new(0), &mut [0]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
}

#[test]
fn dropped_client_lets_the_server_finish_first() {
    let (served, held) = Served::held(4);
    let client = connect(&served);
    let (sender, receiver) = mpsc::channel();
    client.submit(write(2, &[3; 4096]), Box::new(move |reply| sender.send(reply.outcome).unwrap()));
    drop(client);
    wait_until("the request has come", || held.seen() == 1);
    held.open();
    assert_eq!(receiver.recv().unwrap(), Outcome::GOOD);
}

#[test]
fn stopping_waits_for_requests_in_flight_and_removes_the_socket() {
    let (served, held) = Served::held(4);
    let path = served.path();
    let client = connect(&served);
    let (sender, receiver) = mpsc::channel();
    client
        .submit(read(0, 1, Effort::Full), Box::new(move |reply| drop(sender.send(reply.outcome))));
    wait_until("the request has come", || held.seen() == 1);
    let is_open = AtomicBool::new(false);
    let Served { running, dir } = served;
    thread::scope(|scope| {
        let stopper = scope.spawn(|| {
            running.stop();
            assert!(is_open.load(Ordering::SeqCst), "it stopped before the service had answered");
        });
        wait_until("no server listens", || !path.exists());
        is_open.store(true, Ordering::SeqCst);
        held.open();
        stopper.join().unwrap();
    });
    assert_eq!(receiver.recv(), Ok(Outcome::GOOD), "the answer still reaches the client");
    assert_eq!(Arc::strong_count(&held.0), 1, "nothing is left of the server");
    drop(dir);
}

#[test]
fn socket_file_of_a_dead_server_is_replaced_and_nothing_else_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("nbd.sock");
    let endpoint = Endpoint::Unix(path.clone());
    let bind = || Server::bind(&endpoint, vec![export(memory(4))]);
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "a dead server leaves its file");
    let running = bind().unwrap().start().unwrap();
    let error = bind().err().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains("another server answers"), "{error}");
    Client::connect(&endpoint, "").unwrap();
    running.stop();
    fs::write(&path, "a file").unwrap();
    let error = bind().err().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read(&path).unwrap(), b"a file");
}

#[test]
fn exports_that_cannot_be_told_apart_or_described_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let endpoint = Endpoint::Unix(dir.path().join("nbd.sock"));
    let long = Export { description: "x".repeat(4097), ..export(memory(1)) };
    for (exports, expected) in [
        (vec![], "at least one export"),
        (vec![export(memory(1)), export(memory(1))], "two exports are called 'disk'"),
        (vec![long], "description has 4097 bytes: the limit is 4096"),
    ] {
        let error = Server::bind(&endpoint, exports).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains(expected), "{error}");
    }
}
