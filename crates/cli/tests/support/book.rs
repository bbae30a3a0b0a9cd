//! A client that keeps book of what it wrote and what of that was answered, over servers that are killed.

use std::sync::atomic::{AtomicU64, Ordering};

use levelhead_block::Durability;
use levelhead_nbd::{Client, Endpoint};
use levelhead_stats::Streams;
use levelhead_units::Bytes;

const SECTOR: usize = 4096;

/// Sectors of an export, each full of a number: the one that was answered last, or that of the write under way when the
/// server was killed.
#[derive(Clone)]
pub(crate) struct Book {
    first: usize,
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

impl Book {
    /// Of sectors from `first` on, which hold zeroes.
    pub(crate) fn new(first: usize, sectors: usize) -> Self {
        Self { first, answered: vec![0; sectors], under_way: None, next: 1 }
    }

    /// Writes until the server is gone, and counts what was answered.
    pub(crate) fn write_until_killed(&mut self, socket: &str, seed: u64, answered: &AtomicU64) {
        // It may have been killed before, after what others have written.
        let Ok(client) = Client::connect(&Endpoint::Unix(socket.into()), "") else { return };
        let mut rng = Streams::new(seed).stream("crashes");
        loop {
            let most = if rng.below(4) == 0 { 40 } else { 2 };
            let sectors = 1 + rng.below(most) as usize;
            let first = rng.below((self.answered.len() - sectors) as u64) as usize;
            let write = Write { first, sectors, number: self.next };
            self.next += 1;
            self.under_way = Some(write);
            let bytes = write.number.to_le_bytes().repeat(sectors * SECTOR / 8);
            let offset = Bytes::new(((self.first + first) * SECTOR) as u64);
            if client.write_at(offset, &bytes, Durability::Cached).is_err() {
                return;
            }
            self.answered[first..first + sectors].fill(write.number);
            self.under_way = None;
            answered.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Holds what the export has there against what may be, and goes on from that.
    #[track_caller]
    pub(crate) fn check(&mut self, export: &[u8], context: &str) {
        let bytes = &export[self.first * SECTOR..][..self.answered.len() * SECTOR];
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

    /// How many writes there were, answered or not.
    pub(crate) fn writes(&self) -> u64 {
        self.next - 1
    }
}
