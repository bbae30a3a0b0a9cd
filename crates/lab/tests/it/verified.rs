//! A drive that reads back what it has written, with its bytes: what its memory gives meanwhile, and what is on the
//! medium in the end.

use std::collections::BTreeMap;
use std::sync::Arc;

use levelhead_block::{Buf, Command, Durability, Effort, Payload, Piece, Request, ZeroTail};
use levelhead_drive::{
    CacheMode, Drive, Placing, Profile, Retention, Settings, Verify, VerifyCounters,
};
use levelhead_lab::Lone;
use levelhead_stats::Streams;
use levelhead_testkit::profiles::Tiny;
use levelhead_units::{Bytes, Extent, Lba, Nanos, SECTOR_SIZE, Sectors};

const TINY: Tiny = Tiny::buffered(
    r#"
        segments = 2
        segment_blocks = 60
        read_ahead_blocks = 8
        write_blocks = 60
        write_delay = "20ms"
    "#,
);

const SIZE: u64 = 200;

/// Writes with which the drive is filled: what was never written may have changed at rest.
const FILLS: u64 = 20;

/// Writes go wrong now and then, and with them some of their repairs.
const FAULTS: &str = "lost-writes=6%,torn-writes=6%,flips=0.3%";

struct Run {
    counters: VerifyCounters,
    /// Writes of which something reached the medium somewhere else, repairs among them.
    misdirected: u64,
    /// Reads that did not give what was written last.
    reads_wrong: u64,
    /// Sectors of the medium that are not what was written last, an hour after the last command.
    sectors_wrong: u64,
}

#[derive(Clone, Copy, Debug)]
struct Make {
    cache: CacheMode,
    verify: Verify,
    faults: &'static str,
}

fn drive(seed: u64, make: Make, memory: Bytes) -> Drive {
    let memory = Retention::new(Placing::MruMru, memory);
    let settings = Settings {
        queue_depth: 4,
        cache: make.cache,
        retention: (make.cache != CacheMode::Off).then_some(memory),
        verify: make.verify,
        faults: make.faults.parse().unwrap(),
        ..Settings::PLAIN
    };
    Drive::new(Profile::parse(&TINY.text()).unwrap(), settings, Streams::new(seed), "drive/0")
        .unwrap()
}

/// Random requests, one after the other with pauses, which at times are too short for a verification.
fn run(seed: u64, make: Make) -> Run {
    run_with(seed, make, Bytes::new(1 << 30))
}

fn run_with(seed: u64, make: Make, memory: Bytes) -> Run {
    let mut rng = Streams::new(seed).stream("verified");
    let mut lone = Lone::new(drive(seed, make, memory));
    let mut last = vec![0_u8; SIZE as usize];
    let mut reads_wrong = 0;
    for id in 1..=250 {
        let sectors = if id <= FILLS { SIZE / FILLS } else { 1 + rng.below(12) };
        let first = if id <= FILLS { (id - 1) * sectors } else { rng.below(SIZE - sectors + 1) };
        let extent = Extent::new(Lba::new(first), Sectors::new(sectors));
        let at = extent.lba.get() as usize..extent.end().get() as usize;
        let now = lone.now() + rng.exponential(Nanos::from_millis(15));
        lone.run_until(now);
        let is_write = rng.below(2) == 0 || id <= FILLS;
        if is_write {
            let value = 1 + (id % 255) as u8;
            let buf = Buf::copy_of(&vec![value; extent.sectors.as_usize() * SECTOR_SIZE]);
            let (durability, zero_tail) = (Durability::Cached, ZeroTail::None);
            let command = Command::Write { extent, durability, zero_tail };
            let payload = Payload::Pieces(vec![Piece::whole(Arc::new(buf))]);
            lone.submit(now, id, Request::new(command, payload));
            lone.run_on();
            last[at].fill(value);
        } else {
            let command = Command::Read { extent, effort: Effort::Full };
            let room = Payload::Room(Buf::zeroed(extent.sectors));
            lone.submit(now, id, Request::new(command, room));
            let mut ended: BTreeMap<_, _> = lone.run_on().into_iter().collect();
            let seen = ended.remove(&id).unwrap().data.into_buf();
            let is_right = |(sector, value): (&[u8], &u8)| sector.iter().all(|byte| byte == value);
            let right = seen.as_slice().chunks(SECTOR_SIZE).zip(&last[at]).all(is_right);
            reads_wrong += u64::from(!right);
        }
    }
    lone.run_until(lone.now() + Nanos::from_secs(3_600));
    let misdirected = lone.counters().silent.writes_misdirected;
    let counters = lone.counters().verify;
    let all = Extent::new(Lba::ZERO, Sectors::new(SIZE));
    let medium = lone.storage_mut().bytes(all);
    let wrong = medium
        .chunks(SECTOR_SIZE)
        .zip(&last)
        .filter(|(sector, value)| sector.iter().any(|byte| byte != *value));
    Run { counters, misdirected, reads_wrong, sectors_wrong: wrong.count() as u64 }
}

const MAKES: [(CacheMode, Verify); 4] = [
    (CacheMode::Off, Verify::Raw),
    (CacheMode::Read, Verify::Raw),
    (CacheMode::Read, Verify::IDLE),
    (CacheMode::WriteBack, Verify::IDLE),
];

#[test]
fn verified_writes_are_on_the_medium_and_reads_give_them_meanwhile() {
    for (cache, verify) in MAKES {
        let (mut found, mut unmended) = (0, 0);
        for seed in 0..60 {
            let make = Make { cache, verify, faults: FAULTS };
            let Run { counters, reads_wrong, sectors_wrong, .. } = run(seed, make);
            let name = format!("seed {seed}, {make:?}: {counters:?}");
            assert_eq!(counters.waiting, 0, "{name}");
            if counters.unmended == 0 {
                assert_eq!((reads_wrong, sectors_wrong), (0, 0), "{name}");
            } else {
                assert!(sectors_wrong <= 12 * counters.unmended, "{name}");
            }
            found += counters.found;
            unmended += counters.unmended;
        }
        assert!(found > 300, "{cache}, {verify}: {found}");
        // Four times in a row.
        assert!(unmended * 20 < found, "{unmended} of {found}");
    }
}

/// The canary: the same runs without verification.
#[test]
fn unverified_writes_are_lost_and_reads_do_not_give_them() {
    for cache in [CacheMode::Off, CacheMode::WriteBack] {
        let make = Make { cache, verify: Verify::Off, faults: FAULTS };
        let runs: Vec<Run> = (0..10).map(|seed| run(seed, make)).collect();
        assert!(runs.iter().map(|run| run.sectors_wrong).sum::<u64>() > 50);
        assert!(runs.iter().map(|run| run.reads_wrong).sum::<u64>() > 50);
    }
}

/// With little memory, checksums, write-back and writes that land on others: while the drive has bytes reads give them, and
/// what it does not find is no more than what it gave up and the places hit where no write waited.
#[test]
fn little_memory_and_misdirected_writes_leave_no_more_wrong_than_was_given_up_or_hit() {
    let faults = "lost-writes=4%,torn-writes=4%,misdirected-writes=4%,flips=0.2%";
    let (mut with, mut without) = (0, 0);
    for seed in 0..80 {
        for cache in [CacheMode::Read, CacheMode::WriteBack] {
            for sums in ["0B", "300B", "1MB"] {
                let mut verify = Verify::IDLE;
                verify.set("verify-sums", sums).unwrap();
                let memory = Bytes::new((2 + seed % 7) * (16 << 10));
                let make = Make { cache, verify, faults };
                let Run { counters, misdirected, sectors_wrong, .. } = run_with(seed, make, memory);
                let VerifyCounters { writes, verified, superseded, unverified, waiting, .. } =
                    counters;
                assert_eq!(waiting, 0, "seed {seed}, {make:?}");
                assert_eq!(writes, verified + superseded + unverified, "seed {seed}, {make:?}");
                // A write has 12 sectors at most.
                let most = 12 * (unverified + misdirected);
                assert!(sectors_wrong <= most, "seed {seed}, {make:?}: {sectors_wrong}");
                with += sectors_wrong;
            }
            let make = Make { cache, verify: Verify::Off, faults };
            without += 3 * run_with(seed, make, Bytes::new(1 << 20)).sectors_wrong;
        }
    }
    assert!(0 < with && with < without, "{with} of {without}");
}

/// The place meant is found and mended; so is the place hit as long as a write waits there.
#[test]
fn misdirected_writes_are_found_at_the_place_meant() {
    let faults = "misdirected-writes=8%";
    let (mut with, mut without) = (0, 0);
    for seed in 0..60 {
        let cache = [CacheMode::Read, CacheMode::WriteBack][seed as usize % 2];
        let make = |verify| Make { cache, verify, faults };
        let run_with = run(seed, make(Verify::IDLE));
        let hits = run_with.counters.found;
        assert!(run_with.sectors_wrong <= 12 * hits, "seed {seed}: {:?}", run_with.counters);
        with += run_with.sectors_wrong;
        without += run(seed, make(Verify::Off)).sectors_wrong;
    }
    // Half of what goes wrong is the place meant, and of the places hit some are written again.
    assert!(with * 3 < without * 2, "{with} of {without}");
    assert!(with > 0, "no scrub has looked at the others");
}
