//! `levelhead array ..`: an array's life on this machine, and what is heard of it.

mod apart;
mod checksums;
mod control;
mod crashes;
mod degraded;
mod events;
mod far;
mod foreign;
mod hang;
mod health;
mod life;
mod metrics;
mod mirrors;
mod offline;
#[path = "../../../nbd/tests/common/pki.rs"]
#[expect(dead_code, reason = "the program reads the files by itself")]
mod pki;
mod read_only;
mod readme;
mod refusals;
mod released;
mod replace;
mod resync;
mod scrub;
mod service;
mod slow;
mod spares;
mod stops;
#[path = "../support/mod.rs"]
mod support;
mod verify;
mod watch;

use levelhead_block::Durability;
use levelhead_nbd::Client;
use levelhead_stats::Streams;
use levelhead_units::Bytes;
use serde_json::Value;

pub(crate) use crate::support::keys;

pub(crate) const DRIVE: u64 = 8 << 20;

/// 1 MiB is reserved at both ends of every drive, and 256 KiB for the journal.
pub(crate) const SIZE: u64 = 5 * (DRIVE - (2 << 20) - (256 << 10));

/// Writes bytes of every alignment all over the array, and into `model`.
pub(crate) fn scribble(client: &Client, model: &mut [u8], seed: u64) {
    let mut rng = Streams::new(seed).stream("scribble");
    for _ in 0..60 {
        let len = 1 + rng.below(300_000) as usize;
        let at = rng.below((model.len() - len) as u64) as usize;
        rng.fill(&mut model[at..at + len]);
        let durability = if rng.below(4) == 0 { Durability::Durable } else { Durability::Cached };
        client.write_at(Bytes::new(at as u64), &model[at..at + len], durability).unwrap();
    }
}

pub(crate) fn without(drives: &[String], missing: usize) -> Vec<String> {
    let mut left = drives.to_vec();
    left.remove(missing);
    left
}

/// The array's percentage of valid redundancy.
pub(crate) fn synced(status: &Value) -> f64 {
    status["synced_percent"].as_f64().unwrap()
}
