//! What all connections of a server have in flight together, and who waits for it.

use std::io::Read;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use levelhead_block::Durability;
use levelhead_nbd::codec::{CommandKind, ServerMessage};
use levelhead_nbd::{BYTES_MAX, Bounds, CONNECTIONS_MAX, Client, HOLD_MAX, STALL_MAX};
use levelhead_units::Bytes;

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
    second.request(1, CommandKind::Read, 0, PAST_FLOOR);
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
    assert!(is_good(&second.receive_with(PAST_FLOOR)));
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
    // The first of these that finds the memory taken waits for it.
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
    other.request(1, CommandKind::Read, 0, MIB);
    assert!(is_good(&other.receive_with(MIB)));
    wait_until("it has left", || served.running.connections() == 1);
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
