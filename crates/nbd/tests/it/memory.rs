//! What all connections of a server have in flight together, and who waits for it.

use std::io::Read;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use levelhead_block::{
    BlockService, Command, Done, Durability, Outcome, Reply, Request, SectorSet,
};
use levelhead_nbd::codec::{
    Chunk, ChunkPosition, ClientOption, CommandFlags, CommandKind, Errno, ServerMessage,
};
use levelhead_nbd::{BYTES_MAX, Bounds, CONNECTIONS_MAX, Client, HOLD_MAX, STALL_MAX};
use levelhead_units::{Bytes, Lba, Sectors};

use crate::common::{Held, Opener, RawClient, Served, export, memory, wait_until};

const MIB: u32 = 1 << 20;

/// More than what a connection has to itself on a server with this little.
const PAST_FLOOR: u32 = 8192;

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(3600);

/// Sectors of 16 MiB, and a mebibyte for all requests.
fn small(hold_max: Duration) -> Served {
    let bounds =
        Bounds { bytes_max: MIB as usize, hold_max, stall_max: hold_max, ..Bounds::default() };
    Served::bounded(vec![export(memory(4096))], bounds)
}

fn is_good(reply: &Option<ServerMessage>) -> bool {
    matches!(reply, Some(ServerMessage::Simple { error: None, .. }))
}

#[test]
fn request_past_the_bound_of_all_waits_for_another_connection() {
    let held = Arc::new(Held::new(memory(4096)));
    let bounds =
        Bounds { bytes_max: MIB as usize, hold_max: LONG, stall_max: LONG, ..Bounds::default() };
    let served = Served::bounded(vec![export(held.clone())], bounds);
    let held = Opener(held);
    let [mut first, mut second, mut third] = [(); 3].map(|()| served.raw().impatient());
    for client in [&mut first, &mut second, &mut third] {
        client.go(&[]);
    }
    first.request(1, CommandKind::Read, 0, MIB);
    wait_until("the first has all there is", || held.seen() == 1);
    second.request(1, CommandKind::Write, 0, PAST_FLOOR);
    second.send(&[2; PAST_FLOOR as usize]);
    // Whatever the second could do, it has done when the third has had two answers: a request
    // without bytes does not wait.
    for cookie in 1..=2 {
        third.request(cookie, CommandKind::Flush, 0, 0);
        wait_until("the flush has come", || held.seen() as u64 == 1 + cookie);
        held.release_last();
        assert_eq!(third.simple(), (cookie, None));
    }
    assert_eq!(held.seen(), 3, "requests in the service");
    held.open();
    assert!(is_good(&first.receive_with(MIB)));
    assert_eq!(second.simple(), (1, None));
}

#[test]
fn write_counts_from_its_head_and_ends_if_its_bytes_do_not_come() {
    let served = small(Duration::from_millis(100));
    let mut announcing = served.raw().impatient();
    announcing.go(&[]);
    announcing.request(1, CommandKind::Write, 0, MIB);
    announcing.send(&[1; 100]);
    announcing.0.set_nonblocking(true).unwrap();
    let mut other = served.raw().impatient();
    other.go(&[]);
    // The first of these writes that finds the memory taken waits for it.
    wait_until("the client that keeps the memory is disconnected", || {
        other.request(1, CommandKind::Read, 0, PAST_FLOOR);
        assert!(is_good(&other.receive_with(PAST_FLOOR)));
        other.request(2, CommandKind::Write, 4096, PAST_FLOOR);
        other.send(&[2; PAST_FLOOR as usize]);
        assert_eq!(other.simple(), (2, None));
        matches!(announcing.0.read(&mut [0]), Ok(0))
    });
}

#[test]
fn client_that_takes_no_answers_gives_back_what_others_wait_for() {
    // More than any socket buffers.
    let bytes_max = 16 * MIB as usize;
    let stall_max = Duration::from_millis(100);
    let bounds = Bounds { bytes_max, stall_max, hold_max: LONG, ..Bounds::default() };
    let served = Served::bounded(vec![export(memory(4096))], bounds);
    let mut greedy = served.raw().impatient();
    greedy.go(&[]);
    greedy.request(1, CommandKind::Read, 0, 16 * MIB);
    greedy.0.read_exact(&mut [0]).unwrap(); // Its answer has begun: it has all there is.
    let mut other = served.raw().impatient();
    other.go(&[]);
    wait_until("it has left", || {
        other.request(1, CommandKind::Read, 0, MIB);
        assert!(is_good(&other.receive_with(MIB)));
        served.running.connections() == 1
    });
}

/// The device may wait for what the first one keeps, and nothing is asked of the server any more.
#[test]
fn client_that_is_stuck_itself_has_the_one_disconnected_that_keeps_what_is_shared() {
    let stall_max = Duration::from_millis(100);
    let bounds =
        Bounds { bytes_max: 16 * MIB as usize, stall_max, hold_max: LONG, ..Bounds::default() };
    let served = Served::bounded(vec![export(memory(4096))], bounds);
    let greedy = [(); 2].map(|()| {
        let mut client = served.raw().impatient();
        client.go(&[]);
        client.request(1, CommandKind::Read, 0, 16 * MIB);
        client.0.read_exact(&mut [0]).unwrap();
        client
    });
    wait_until("the first has left", || served.running.connections() == 1);
    drop(greedy);
}

/// All of the memory is kept by clients that take no answers, and no time ever ends that.
#[test]
fn small_requests_do_not_wait_for_clients_that_take_no_answers() {
    let bounds = Bounds { hold_max: LONG, stall_max: LONG, ..Bounds::default() };
    let served = Served::bounded(vec![export(memory(8192))], bounds);
    let greedy: Vec<RawClient> = (0..CONNECTIONS_MAX - 1)
        .map(|_| {
            let mut client = served.raw().impatient();
            client.go(&[]);
            for cookie in 0..8 {
                client.request(cookie, CommandKind::Read, 0, 32 * MIB);
            }
            client
        })
        .collect();
    let mut honest = served.raw().impatient();
    honest.go(&[]);
    for cookie in 0..100 {
        honest.request(cookie, CommandKind::Read, 0, 4096);
        assert!(is_good(&honest.receive_with(4096)));
        honest.request(cookie, CommandKind::Write, 0, MIB);
        honest.send(&vec![1; MIB as usize]);
        assert_eq!(honest.simple(), (cookie, None));
    }
    assert_eq!(served.running.connections(), CONNECTIONS_MAX, "nobody was disconnected for it");
    drop(greedy);
}

/// What a good read brings, however its answer comes, and the number of its chunks.
fn read(client: &mut RawClient, flags: CommandFlags, offset: u64, len: u32) -> (Vec<u8>, usize) {
    client.request_with(1, CommandKind::Read, flags, offset, len);
    let mut bytes = vec![0; len as usize];
    for chunks in 0.. {
        match client.receive_with(len) {
            Some(ServerMessage::Simple { error: None, data, .. }) => {
                data.copy_to(&mut bytes);
                return (bytes, 0);
            }
            Some(ServerMessage::Chunk {
                position,
                chunk: Chunk::Data { offset: at, data },
                ..
            }) => {
                data.copy_to(&mut bytes[(at - offset) as usize..][..data.len()]);
                if position == ChunkPosition::Last {
                    return (bytes, chunks + 1);
                }
            }
            other => panic!("{other:?}"),
        }
    }
    unreachable!("there are numbers left")
}

/// The same for reads that do not fit into what a connection has to itself: they go through it piece by piece.
#[test]
fn long_reads_do_not_wait_for_clients_that_take_no_answers() {
    let bounds = Bounds { hold_max: LONG, stall_max: LONG, ..Bounds::default() };
    let served = Served::bounded(vec![export(memory(8192))], bounds);
    let mut honest = [(); 2].map(|()| served.raw().impatient());
    honest[0].go(&[]);
    honest[1].go(&[ClientOption::StructuredReply]);
    let expected: Vec<u8> = (0..8 * MIB).map(|at| (at / 4093) as u8).collect();
    for (offset, piece) in (0..).step_by(MIB as usize).zip(expected.chunks(MIB as usize)) {
        honest[0].request(1, CommandKind::Write, offset, MIB);
        honest[0].send(piece);
        assert_eq!(honest[0].simple(), (1, None));
    }
    let greedy: Vec<RawClient> = (0..CONNECTIONS_MAX - 2)
        .map(|_| {
            let mut client = served.raw().impatient();
            client.go(&[]);
            for cookie in 0..8 {
                client.request(cookie, CommandKind::Read, 0, 32 * MIB);
            }
            client
        })
        .collect();
    let (offset, len) = (5000, 8 * MIB - 5000 - 7);
    let is_right = |bytes: &[u8]| bytes == &expected[5000..][..len as usize];
    let [simple, structured] = &mut honest;
    wait_until("the others have all that is shared", || {
        let (bytes, chunks) = read(structured, CommandFlags::NONE, offset, len);
        assert!(is_right(&bytes));
        chunks == 8
    });
    for _ in 0..10 {
        let (bytes, chunks) = read(structured, CommandFlags::DF, offset, len);
        assert!(is_right(&bytes) && chunks == 1);
        simple.request(2, CommandKind::Read, 0, 4096);
        assert!(is_good(&simple.receive_with(4096)));
        assert!(is_right(&read(simple, CommandFlags::NONE, offset, len).0));
    }
    assert_eq!(served.running.connections(), CONNECTIONS_MAX, "nobody was disconnected for it");
    drop(greedy);
}

/// A device of which one sector, the sixteenth of 64 KiB each, cannot be read any more once these reads of it have
/// succeeded.
struct Failing {
    inner: Arc<dyn BlockService>,
    good: Mutex<usize>,
}

impl Failing {
    const SECTOR: u64 = 240;
}

impl BlockService for Failing {
    fn size(&self) -> Sectors {
        self.inner.size()
    }

    fn submit(&self, request: Request, done: Done) {
        let place = match request.command {
            Command::Read { extent, .. } if extent.contains(Lba::new(Self::SECTOR)) => {
                Some((Self::SECTOR - extent.lba.get()) as u32)
            }
            _ => None,
        };
        let Some(place) = place else { return self.inner.submit(request, done) };
        let mut good = self.good.lock().unwrap();
        if *good > 0 {
            *good -= 1;
            return self.inner.submit(request, done);
        }
        let damaged = [place].into_iter().collect();
        done(Reply::bare(Outcome::Done { unknown: SectorSet::default(), damaged }));
    }
}

#[test]
fn piece_of_a_long_read_that_fails_is_an_error_and_no_bytes_that_pass_for_good() {
    let bounds = Bounds {
        bytes_max: 16 * MIB as usize,
        stall_max: LONG,
        hold_max: LONG,
        ..Bounds::default()
    };
    let failing = Arc::new(Failing { inner: memory(4096), good: Mutex::new(1) });
    let served = Served::bounded(vec![export(failing.clone())], bounds);
    let mut greedy = served.raw().impatient();
    greedy.go(&[]);
    greedy.request(1, CommandKind::Read, 0, 16 * MIB);
    greedy.0.read_exact(&mut [0]).unwrap(); // Its answer has begun: it has all there is.
    let [mut simple, mut structured] = [(); 2].map(|()| served.raw().impatient());
    simple.go(&[]);
    structured.go(&[ClientOption::StructuredReply]);
    structured.request(1, CommandKind::Read, 0, MIB);
    for number in 0..15 {
        let Some(ServerMessage::Chunk { position, chunk: Chunk::Data { offset, .. }, .. }) =
            structured.receive()
        else {
            panic!("piece {number} is good")
        };
        assert_eq!((position, offset), (ChunkPosition::Inner, number << 16));
    }
    let Some(ServerMessage::Chunk { position, chunk: Chunk::Error(error), .. }) =
        structured.receive()
    else {
        panic!("the last piece fails")
    };
    assert_eq!((position, error.error), (ChunkPosition::Last, Errno::Io));
    assert_eq!(error.offset, Some(Failing::SECTOR * 4096));
    for client in [&mut simple, &mut structured] {
        client.request(2, CommandKind::Flush, 0, 0);
        client.receive().unwrap();
    }
    simple.request(3, CommandKind::Read, 0, MIB);
    assert_eq!(simple.simple(), (3, Some(Errno::Io)), "all is read before it says success");
    // Where it fails behind that, no answer is whole.
    *failing.good.lock().unwrap() = 1;
    simple.request(4, CommandKind::Read, 0, MIB);
    let mut cut = Vec::new();
    simple.0.read_to_end(&mut cut).unwrap();
    assert_eq!(cut.len(), 16 + 15 * (64 << 10));
}

/// It takes a little again and again, which shows more often than it has to.
#[test]
fn client_that_takes_its_answer_slowly_is_left_alone_while_others_wait() {
    let bytes_max = 16 * MIB as usize;
    let stall_max = Duration::from_millis(500);
    let bounds = Bounds { bytes_max, stall_max, ..Bounds::default() };
    let served = Served::bounded(vec![export(memory(4096))], bounds);
    let mut slow = served.raw().impatient();
    slow.go(&[]);
    slow.request(1, CommandKind::Read, 0, 16 * MIB);
    slow.0.read_exact(&mut [0]).unwrap();
    let mut other = served.raw().impatient();
    other.go(&[]);
    other.request(1, CommandKind::Read, 0, MIB);
    // Twice the time that a client may stall.
    let mut part = vec![0; 1 << 18];
    for _ in 0..40 {
        slow.0.read_exact(&mut part).unwrap();
        thread::sleep(Duration::from_millis(25));
    }
    let rest = 16 + 16 * MIB as usize - 1 - 40 * part.len();
    slow.0.read_exact(&mut vec![0; rest]).unwrap();
    assert!(is_good(&other.receive_with(MIB)));
}

#[test]
fn client_that_takes_its_time_is_left_alone_while_no_request_waits() {
    let served = small(Duration::from_millis(1));
    let mut slow = served.raw().impatient();
    slow.go(&[]);
    slow.request(1, CommandKind::Write, 0, MIB);
    let mut others = [(); 2].map(|()| served.raw().impatient());
    for cookie in 1..100 {
        for other in &mut others {
            if cookie == 1 {
                other.go(&[]);
            }
            other.request(cookie, CommandKind::Flush, 0, 0);
            assert_eq!(other.simple(), (cookie, None));
        }
    }
    slow.send(&vec![1; MIB as usize]);
    assert_eq!(slow.simple(), (1, None));
}

#[test]
fn many_clients_over_little_memory_all_come_to_an_end() {
    let served = small(LONG);
    thread::scope(|scope| {
        for number in 0..8_u64 {
            let client = Client::connect(served.running.endpoint(), "").unwrap();
            scope.spawn(move || {
                let start = number * 2 * u64::from(MIB);
                for turn in 0..20_u64 {
                    // From a part of a sector to twice what there is for all.
                    let len = 1 + (turn * 7919 * (number + 1) * 4099) as usize % (2 * MIB as usize);
                    let bytes = vec![(turn + 1) as u8; len];
                    client.write_at(Bytes::new(start), &bytes, Durability::Cached).unwrap();
                    let mut read = vec![0; len];
                    client.read_at(Bytes::new(start), &mut read).unwrap();
                    assert!(read == bytes, "client {number}, turn {turn}");
                }
            });
        }
    });
}

#[test]
fn server_stops_while_requests_wait_for_room() {
    let served = small(LONG);
    let mut announcing = served.raw().impatient();
    announcing.go(&[]);
    announcing.request(1, CommandKind::Write, 0, MIB);
    announcing.send(&[1; 100]);
    let mut waiting = [(); 3].map(|()| served.raw().impatient());
    for client in &mut waiting {
        client.go(&[]);
        client.request(1, CommandKind::Read, 0, PAST_FLOOR);
    }
    served.running.stop();
    assert_eq!(announcing.receive(), None);
}

#[test]
fn limits_are_what_the_documentation_says() {
    let Bounds { bytes_max, hold_max, stall_max, .. } = Bounds::default();
    assert_eq!((bytes_max, hold_max, stall_max), (BYTES_MAX, HOLD_MAX, STALL_MAX));
    let page = include_str!("../../../../docs/nbd.md");
    for row in [
        format!("all connections together | {} MiB |", BYTES_MAX >> 20),
        format!("for the rest of these {} MiB | {} s |", BYTES_MAX >> 20, STALL_MAX.as_secs()),
        format!("takes some all the same | {} s |", HOLD_MAX.as_secs()),
    ] {
        assert!(page.contains(&row), "{row}");
    }
}
