//! A drive that was away for a time is given what it has missed, and that takes as long as what it has missed.

use std::sync::Arc;

use levelhead_array::journal::rules::Rules;
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

const WRITES: u64 = 1_000;

fn world() -> World {
    let spec: Spec = "raid5:5+1,chunk=64KiB".parse().unwrap();
    let profile = Profile::shipped("nearline-2tb").unwrap();
    let division = Division::of(&spec, profile.size()).unwrap();
    let places = division.reserved(profile.size()).into_iter();
    let journal = JournalSettings {
        pieces: places.filter(|place| place.purpose == Use::Journal).map(|p| p.extent).collect(),
        lists: None,
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
fn run(world: &mut World, is_over: impl Fn(&mut World) -> bool) -> Instant {
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
