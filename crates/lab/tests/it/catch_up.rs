//! A drive that was away for a time is given what it has missed, and that takes as long as what it has missed.

use std::sync::Arc;

use levelhead_array::journal::rules::Rules;
use levelhead_array::membership::Why;
use levelhead_array::reserve::{Division, Use};
use levelhead_array::{Content, HostOrder, JournalSettings, Left, Policy, RequestId, Spec};
use levelhead_block::{Command, Durability, ZeroTail};
use levelhead_drive::Profile;
use levelhead_lab::{World, WorldSettings};
use levelhead_stats::Streams;
use levelhead_units::{DriveIdx, Extent, Instant, Lba, Nanos, Sectors};

const LOST: DriveIdx = DriveIdx::new(2);

/// Sectors of a write: 1 MiB.
const SIZE: Sectors = Sectors::new(256);

/// The same of shorter ones: 64 KiB.
const CHUNK: Sectors = Sectors::new(16);

const WRITES: u64 = 1_000;

fn world() -> World {
    let spec: Spec = "raid5:5+1,chunk=64KiB".parse().unwrap();
    let profile = Profile::shipped("nearline-2tb").unwrap();
    let division = Division::of(&spec, profile.size()).unwrap();
    let places = division.reserved(profile.size()).into_iter();
    let journal = JournalSettings {
        pieces: places.filter(|place| place.purpose == Use::Journal).map(|p| p.extent).collect(),
        floor: 1,
        left: Left::Drained,
        intents_from: JournalSettings::INTENTS_FROM,
        region_min: JournalSettings::REGION_MIN,
        rules: Rules::ALL,
    };
    let drive = levelhead_drive::Settings::PLAIN;
    let settings = WorldSettings {
        spec,
        policy: Policy::DEFAULT,
        window: 32,
        order: HostOrder::Elevator,
        content: Content::Absent,
        profile: Arc::new(profile),
        drives: vec![drive],
        area: Some(division.area),
        journal: Some(journal),
        seed: 1,
    };
    World::new(&settings).unwrap()
}

/// Steps until `is_over` says so; returns the time.
fn run(world: &mut World, mut is_over: impl FnMut(&mut World) -> bool) -> Instant {
    let mut now = Instant::ZERO;
    while !is_over(world) {
        now = world.next_at();
        world.step();
    }
    now
}

#[test]
fn a_drive_that_has_missed_1000_scattered_writes_of_1_mib_is_caught_up_in_less_than_2_minutes() {
    let mut world = world();
    world.lose(Instant::ZERO, LOST);
    let places = world.size().get() / SIZE.get();
    let mut rng = Streams::new(1).stream("places");
    let mut now = Instant::ZERO;
    for index in 0..WRITES {
        let extent = Extent::new(Lba::new(rng.below(places) * SIZE.get()), SIZE);
        let (durability, zero_tail) = (Durability::Cached, ZeroTail::None);
        let command = Command::Write { extent, durability, zero_tail };
        world.submit(now, RequestId(index), command, None);
        now = run(&mut world, |world| !world.take_answers().is_empty()).max(now);
    }
    now = now.max(run(&mut world, |world| {
        world.array().journal_status().is_some_and(|status| status.open == 0)
    }));
    assert_eq!(world.take_back(now, LOST), Ok(()));
    let progress = world.array().rebuild().expect("it has missed something");
    let regions = progress.regions.expect("it is known what");
    // A write touches 3 or 4 chunks of a drive, and mostly lies in one region of 64 of them.
    assert!((WRITES - 20..WRITES + 60).contains(&regions), "{regions} regions");
    let before = world.array().counters();
    let end = run(&mut world, |world| world.array().rebuild().is_none());
    let took = end.saturating_since(now);
    let writes = world.array().counters().rebuild_writes - before.rebuild_writes;
    println!("{regions} regions, {writes} commands that filled the drive, {took:?}");
    assert!(took < Nanos::from_secs(120), "{took:?}");
    assert_eq!(world.array().lost().len(), 0);
}

/// A drive hangs for 30 s under writes of which a third go to it: the array goes round it until the rings are full, then does
/// without it, and gives it what it has missed when it answers. No write waits for it.
#[test]
fn a_drive_that_keeps_the_journal_full_is_done_without_until_it_answers() {
    let mut world = world();
    let places = world.size().get() / CHUNK.get();
    let mut rng = Streams::new(2).stream("places");
    let (mut longest, mut begun) = (Nanos::ZERO, Vec::new());
    let mut note = |world: &mut World, begun: &[Instant]| {
        for (at, answer) in world.take_answers() {
            assert!(answer.outcome.is_good(), "{answer:?}");
            longest = longest.max(at.saturating_since(begun[answer.request.0 as usize]));
        }
    };
    let hang = [5, 35].map(|at| Instant::ZERO + Nanos::from_secs(at));
    let mut has_hung = false;
    for index in 0..4_200 {
        let at = Instant::ZERO + Nanos::from_millis(14) * index;
        while world.next_at() <= at {
            world.step();
        }
        if !has_hung && hang[0] <= at {
            has_hung = true;
            world.stall(at, LOST, hang[1]);
        }
        let extent = Extent::new(Lba::new(rng.below(places) * CHUNK.get()), CHUNK);
        let (durability, zero_tail) = (Durability::Cached, ZeroTail::None);
        world.submit(at, RequestId(index), Command::Write { extent, durability, zero_tail }, None);
        begun.push(at);
        note(&mut world, &begun);
    }
    let end = run(&mut world, |world| {
        note(world, &begun);
        world.array().is_quiet() && world.array().lost().is_empty()
    });
    println!("{:?}, longest wait {longest:?}, whole after {end:?}", world.losses());
    assert_eq!(world.losses(), [(LOST, Why::Behind)]);
    assert!(world.array().counters().rebuild_writes > 0, "it was given what it had missed");
    assert!(longest < Nanos::from_secs(3), "{longest:?}");
}
