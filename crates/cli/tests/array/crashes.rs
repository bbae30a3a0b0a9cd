//! Servers that are killed under load, again and again: no write that was answered is gone, and none is in pieces.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use levelhead_block::Durability;
use levelhead_stats::Streams;
use levelhead_units::Bytes;
use rustix::process::Signal;

use crate::support::{Shelf, connect, read_all, wait_until};
use crate::{DRIVE, SIZE, without};

const SECTOR: usize = 4096;

/// Clients that write at the same time, each to a part of its own.
const WRITERS: usize = 4;

/// The sectors of a writer's part.
const PART: usize = SIZE as usize / SECTOR / WRITERS;

/// Each sector of a part is full of a number: the one that was answered last, or that of the write under way when
/// the server was killed.
#[derive(Clone)]
struct Part {
    answered: Vec<u64>,
    under_way: Option<Write>,
    next: u64,
}

#[derive(Clone, Copy)]
struct Write {
    first: usize,
    sectors: usize,
    number: u64,
}

impl Part {
    fn new() -> Self {
        Self { answered: vec![0; PART], under_way: None, next: 1 }
    }

    /// Writes until the server is gone.
    fn write_until_killed(&mut self, socket: &str, at: usize, seed: u64, answered: &AtomicU64) {
        let client = connect(socket);
        let mut rng = Streams::new(seed).stream("crashes");
        loop {
            let most = if rng.below(4) == 0 { 40 } else { 2 };
            let sectors = 1 + rng.below(most) as usize;
            let first = rng.below((PART - sectors) as u64) as usize;
            let write = Write { first, sectors, number: self.next };
            self.next += 1;
            self.under_way = Some(write);
            let bytes = write.number.to_le_bytes().repeat(sectors * SECTOR / 8);
            let offset = Bytes::new(((at * PART + first) * SECTOR) as u64);
            if client.write_at(offset, &bytes, Durability::Cached).is_err() {
                return;
            }
            self.answered[first..first + sectors].fill(write.number);
            self.under_way = None;
            answered.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Holds what is there against what may be, and goes on from that.
    fn check(&mut self, bytes: &[u8], context: &str) {
        for (at, sector) in bytes.chunks_exact(SECTOR).enumerate() {
            let number = u64::from_le_bytes(sector[..8].try_into().unwrap());
            let is_whole = sector.chunks_exact(8).all(|word| word == number.to_le_bytes());
            assert!(is_whole, "{context}: sector {at} is in pieces");
            let is_under_way = self.under_way.is_some_and(|write| {
                write.number == number && (write.first..write.first + write.sectors).contains(&at)
            });
            let answered = self.answered[at];
            assert!(number == answered || is_under_way, "{context}: {number}, not {answered}");
            self.answered[at] = number;
        }
        self.under_way = None;
    }
}

/// `CRASHES` says how often the server is killed.
#[test]
fn what_was_answered_survives_servers_that_are_killed_and_then_a_drive() {
    let count = std::env::var("CRASHES").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let socket = shelf.path("nbd.sock");
    let mut parts = vec![Part::new(); WRITERS];
    for round in 0..count {
        let serving = shelf.serve(&drives);
        let bytes = read_all(&socket);
        for (part, bytes) in parts.iter_mut().zip(bytes.chunks_exact(PART * SECTOR)) {
            part.check(bytes, &format!("round {round}"));
        }
        let answered = AtomicU64::new(0);
        thread::scope(|scope| {
            for (at, part) in parts.iter_mut().enumerate() {
                let (socket, seed) = (&socket, round * WRITERS as u64 + at as u64);
                let answered = &answered;
                scope.spawn(move || part.write_until_killed(socket, at, seed, answered));
            }
            let enough = 1 + 37 * (round % 11);
            wait_until("enough is written", || answered.load(Ordering::SeqCst) >= enough);
            serving.signal(Signal::KILL);
        });
        assert_eq!(serving.end().code, None);
    }
    let written: u64 = parts.iter().map(|part| part.next - 1).sum();
    eprintln!("{count} servers killed under {written} writes");
    let serving = shelf.serve(&without(&drives, 2));
    let bytes = read_all(&socket);
    for (part, bytes) in parts.iter_mut().zip(bytes.chunks_exact(PART * SECTOR)) {
        part.check(bytes, "without a drive");
    }
    serving.stop();
}
