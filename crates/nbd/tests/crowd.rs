//! Many clients at once, and clients that do not do their part: the server goes on for the others, and holds
//! no more memory than its bounds say.

mod common;

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use common::{RawClient, Served, export, memory, wait_until};
use levelhead_block::Durability;
use levelhead_nbd::codec::CommandKind;
use levelhead_nbd::{BYTES_MAX, Bounds, CONNECTIONS_MAX, Client};
use levelhead_units::Bytes;

/// Whether the server has closed this connection, which says nothing any more.
fn is_closed(client: &mut RawClient) -> bool {
    let mut rest = Vec::new();
    client.0.read_to_end(&mut rest).is_ok()
}

fn works(served: &Served) {
    let mut client = None;
    wait_until("there is a place", || {
        client = Client::connect(served.running.endpoint(), "").ok();
        client.is_some()
    });
    let client = client.unwrap();
    client.write_at(Bytes::new(3), b"works", Durability::Durable).unwrap();
    let mut out = [0; 5];
    client.read_at(Bytes::new(3), &mut out).unwrap();
    assert_eq!(&out, b"works");
}

#[test]
fn of_two_hundred_clients_the_bound_is_served_and_the_others_are_turned_away() {
    for connections_max in [CONNECTIONS_MAX, 3] {
        let bounds = Bounds { connections_max, ..Bounds::default() };
        let served = Served::bounded(vec![export(memory(64))], bounds);
        let connect = |_| Client::connect(served.running.endpoint(), "").ok();
        let clients: Vec<Client> = (0..200).filter_map(connect).collect();
        assert_eq!(clients.len(), connections_max);
        assert_eq!(served.running.look().traffic().open, connections_max as u64);
        drop(clients);
        works(&served);
    }
}

#[test]
fn two_hundred_silent_clients_are_gone_after_the_time_for_a_handshake() {
    let handshake_max = Duration::from_millis(300);
    let bounds = Bounds { handshake_max, ..Bounds::default() };
    let served = Served::bounded(vec![export(memory(64))], bounds);
    let mut clients: Vec<RawClient> = (0..200).map(|_| served.raw().impatient()).collect();
    assert!(clients.iter_mut().all(is_closed));
    wait_until("no place is taken", || served.running.connections() == 0);
    works(&served);
}

/// The most memory that this program has had, in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<usize>().unwrap() * 1024
}

/// Each asks for 4 GiB, all together for a quarter of a tebibyte.
#[test]
fn clients_that_ask_for_much_and_read_nothing_hold_no_more_than_the_bounds() {
    let bounds = Bounds { stall_max: Duration::from_millis(100), ..Bounds::default() };
    let served = Served::bounded(vec![export(memory(8192))], bounds);
    let greedy: Vec<UnixStream> = (0..60)
        .map(|_| {
            let mut client = served.raw().impatient();
            client.go(&[]);
            for cookie in 0..128 {
                client.request(cookie, CommandKind::Read, 0, 32 << 20);
            }
            client.0
        })
        .collect();
    let honest = Client::connect(served.running.endpoint(), "").unwrap();
    let mut out = vec![0; 32 << 20];
    // It does not wait for them, and has those disconnected that keep what it could have had.
    wait_until("those who keep what is shared have gone", || {
        honest.read_at(Bytes::new(0), &mut out).unwrap();
        served.running.connections() <= greedy.len()
    });
    works(&served);
    drop(greedy);
    // The device's own 32 MiB, what sockets hold, and the program.
    let others = 192 << 20;
    assert!(peak() < BYTES_MAX + others, "{} MiB", peak() >> 20);
}
