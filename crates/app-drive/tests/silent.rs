//! The same drive twice, emulated in real time and modelled in virtual time: what it silently does to its bytes is
//! the same.

use std::fs;
use std::sync::Arc;

use levelhead_block::adapter::Waiting;
use levelhead_block::{BlockDevice, Buf, Durability, Effort, Request};
use levelhead_drive::{Drive, Settings};
use levelhead_host::{LoneDrive, load_profile};
use levelhead_lab::Lone;
use levelhead_stats::Streams;
use levelhead_units::{Extent, Lba, SECTOR_SIZE, Sectors};
use tempfile::TempDir;

const SIZE: u64 = 64;
const SEED: u64 = 5;
const MAKE: &str = "nearline-2tb";

/// Writes all over the drive, some of them twice, and two reads of all of it.
fn requests() -> Vec<Request> {
    let mut rng = Streams::new(SEED).stream("silent");
    let all = Extent::new(Lba::ZERO, Sectors::new(SIZE));
    let mut requests = vec![Request::read(all, Effort::Full)];
    for value in 1..=40 {
        let sectors = 1 + rng.below(6);
        let extent = Extent::new(Lba::new(rng.below(SIZE - sectors)), Sectors::new(sectors));
        let buf = Buf::copy_of(&vec![value; sectors as usize * SECTOR_SIZE]);
        requests.push(Request::write(extent, Durability::Cached, buf));
    }
    requests.push(Request::read(all, Effort::Full));
    requests
}

/// What the two reads gave, and what is stored at the end.
type Seen = (Vec<Vec<u8>>, Vec<u8>);

fn emulated(faults: &str) -> Seen {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.img");
    let options = faults.replace(',', "&");
    let member = format!("emu:{}?size=256KiB&seed={SEED}&{options}", path.display());
    let drive = LoneDrive::open(&member.parse().unwrap()).unwrap();
    let mut drive = Waiting::new(Arc::new(drive));
    let mut read = Vec::new();
    for request in requests() {
        let mut replies = drive.run(vec![request]);
        let reply = replies.pop().unwrap();
        assert!(reply.outcome.is_good(), "{faults}");
        let data = reply.data.into_buf().as_slice().to_vec();
        read.extend((!data.is_empty()).then_some(data));
    }
    drop(drive);
    (read, fs::read(&path).unwrap())
}

fn modelled(faults: &str) -> Seen {
    let settings = Settings {
        faults: faults.parse().unwrap(),
        size: Some(Sectors::new(SIZE)),
        ..Settings::PLAIN
    };
    let profile = load_profile(MAKE).unwrap();
    let drive = Drive::new(profile, settings, Streams::new(SEED), "drive/0").unwrap();
    let mut lone = Lone::new(drive);
    let mut read = Vec::new();
    for (id, request) in (1..).zip(requests()) {
        lone.submit(lone.now(), id, request);
        for (_, reply) in lone.run_out() {
            let data = reply.data.into_buf().as_slice().to_vec();
            read.extend((!data.is_empty()).then_some(data));
        }
    }
    let all = Extent::new(Lba::ZERO, Sectors::new(SIZE));
    (read, lone.storage_mut().bytes(all).to_vec())
}

#[test]
fn emulated_and_modelled_drive_do_the_same_to_their_bytes() {
    let good = modelled("none");
    for faults in [
        "lost-writes=20%",
        "torn-writes=20%",
        "misdirected-writes=20%",
        "flips=20%",
        "lost-writes=10%,torn-writes=10%,misdirected-writes=10%,flips=10%",
    ] {
        let (real, virtual_) = (emulated(faults), modelled(faults));
        assert!(real == virtual_, "{faults}");
        assert!(real != good, "{faults} does not show");
    }
    assert!(emulated("slowdown=1") == good);
}
