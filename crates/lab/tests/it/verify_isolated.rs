//! A single write to an idle array: when each drive's part of it is read back.

use std::sync::Arc;

use levelhead_array::{
    Content, HostOrder, Policy, RequestId, VerifyMode, VerifySettings, VerifyStatus,
};
use levelhead_block::{Command, Durability, ZeroTail};
use levelhead_drive::{CacheMode, Faults, Profile, Scheduler, Settings, Verify};
use levelhead_lab::{World, WorldSettings};
use levelhead_stats::Streams;
use levelhead_units::{DriveIdx, Extent, Instant, Lba, Nanos, Sectors};

/// A part of a write on one drive.
#[derive(Clone, Copy, Debug)]
struct Seen {
    ended: Instant,
    verified: Instant,
}

/// What is written.
#[derive(Clone, Copy, Debug)]
enum What {
    /// A sector of an array without redundancy: one drive has a part of it.
    Sector,
    /// A whole stripe, so that nothing is read before and all drives have a part.
    Stripe,
}

const MODES: [VerifyMode; 2] = [VerifyMode::Idle, VerifyMode::Raw];

/// Overhead and transfer: what may come on top of whole revolutions.
const SLACK: Nanos = Nanos::from_millis(1);

/// A drive that could not be sent its read this long before its sectors pass misses them: it is sent 1.5 ms before.
const BLOCKED: Nanos = Nanos::from_millis(2);

fn revolution() -> Nanos {
    Profile::shipped("nearline-2tb").unwrap().rotation()
}

/// The parts of one write to an array over drives that are at any angle, and have no cache.
fn run(spec: &str, what: What, mode: VerifyMode, seed: u64) -> Vec<Seen> {
    let profile = Arc::new(Profile::shipped("nearline-2tb").unwrap());
    let mut world = World::new(&WorldSettings {
        spec: spec.parse().unwrap(),
        policy: Policy::DEFAULT,
        window: 32,
        order: HostOrder::Elevator,
        content: Content::Absent,
        profile,
        drives: vec![Settings {
            queue_depth: 32,
            scheduler: Scheduler::SOONEST,
            cache: CacheMode::Off,
            retention: None,
            verify: Verify::Off,
            faults: Faults::NONE,
            size: None,
        }],
        area: None,
        journal: None,
        seed,
    })
    .unwrap();
    world.verify_writes(VerifySettings { mode, ..VerifySettings::IDLE });
    let mut rng = Streams::new(seed).stream("isolated");
    let spec = *world.array().layout().spec();
    let stripe = spec.chunk().get() * spec.data() as u64;
    let (sectors, parts) = match what {
        What::Sector => (1, 1),
        What::Stripe => (stripe, spec.drives()),
    };
    let lba = stripe * rng.below(world.size().get() / stripe);
    let extent = Extent::new(Lba::new(lba), Sectors::new(sectors));
    let at = Instant::ZERO + rng.exponential(Nanos::from_millis(20));
    let (durability, zero_tail) = (Durability::Cached, ZeroTail::None);
    world.submit(at, RequestId(1), Command::Write { extent, durability, zero_tail }, None);
    let status = |world: &World| -> VerifyStatus { world.array().verify_status().unwrap() };
    let mut ends: Vec<Vec<Instant>> = vec![Vec::new(); spec.drives()];
    while status(&world).verified < parts as u64 {
        world.step();
        for (at, ends) in ends.iter_mut().enumerate() {
            let commands = world.drive_counters(DriveIdx::from_usize(at)).commands;
            ends.resize(commands as usize, world.now());
        }
        assert!(world.now() < at + Nanos::from_secs(1), "{:?}", status(&world));
    }
    // The end of its part, and that of what reads it back.
    let seen = ends.iter().filter(|ends| !ends.is_empty()).map(|ends| match ends[..] {
        [ended, verified] => Seen { ended, verified },
        _ => panic!("{spec}, seed {seed}: {ends:?}"),
    });
    let seen: Vec<Seen> = seen.collect();
    assert_eq!(seen.len(), parts, "{spec}, seed {seed}");
    seen
}

#[test]
fn isolated_write_is_verified_one_revolution_after_its_end() {
    for (mode, seed) in MODES.into_iter().flat_map(|mode| (0..100).map(move |seed| (mode, seed))) {
        for Seen { ended, verified } in run("raid0:4,chunk=16KiB", What::Sector, mode, seed) {
            let took = verified - ended;
            assert!(took <= revolution() + SLACK, "{mode:?}, seed {seed}: {took:?}");
        }
    }
}

/// VF6: one drive of a group is read at a time, unless everything is at once. What passes meanwhile comes again.
#[test]
fn each_part_of_an_isolated_write_is_verified_after_a_revolution_unless_another_drive_is_read_then()
{
    for spec in ["raid1:3,chunk=16KiB", "raid5:3+1,chunk=16KiB", "raid6:4+2,chunk=16KiB"] {
        let mut missed = 0_u32;
        for seed in 0..40 {
            for Seen { ended, verified } in run(spec, What::Stripe, VerifyMode::Raw, seed) {
                let took = verified - ended;
                assert!(took <= revolution() + SLACK, "{spec}, seed {seed}: {took:?}");
            }
            let parts = run(spec, What::Stripe, VerifyMode::Idle, seed);
            for (at, &Seen { ended, verified }) in parts.iter().enumerate() {
                let mut due = ended + revolution();
                while verified > due + SLACK {
                    missed += 1;
                    let mut others = parts.iter().enumerate().filter(|(other, _)| *other != at);
                    // One that has just missed its sectors is inside its drive until they come again.
                    let is_read_then = |other: &Seen| {
                        other.verified + BLOCKED > due && other.verified <= due + revolution()
                    };
                    let is_blocked = others.any(|(_, other)| is_read_then(other));
                    assert!(is_blocked, "{spec}, seed {seed}, part {at}: {parts:?}");
                    due = due + revolution();
                }
                let most = ended + revolution() * parts.len() as u64 + SLACK;
                assert!(verified <= most, "{spec}, seed {seed}, part {at}: {parts:?}");
            }
        }
        assert!(missed > 0, "{spec}: the drives never met");
    }
}
