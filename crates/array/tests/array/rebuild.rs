//! A lost drive's place has a new one: what it is given, beside random traffic, and what is not made up.

use levelhead_array::{ArrayEvent, NotReplaced, Policy, Spec};
use levelhead_block::Memory;
use levelhead_stats::{Rng, Streams};
use levelhead_units::{DriveIdx, DriveSet, Extent, Lba, Nanos, Sectors};

use crate::runtime::{Runtime, journaled, settings, survivable};

const LAYOUTS: [&str; 7] = [
    "raid4:3+1,chunk=8KiB",
    "raid5:5+1,chunk=4KiB",
    "raid6:4+2,chunk=8KiB",
    "eraid:3+2,e=3,chunk=24KiB",
    "raid1:3,chunk=16KiB",
    "raid10:4,chunk=8KiB",
    "raid10:5,chunk=8KiB",
];

struct Client {
    model: Memory,
    rng: Rng,
    id: u64,
}

impl Client {
    fn write(&mut self, run: &mut Runtime) {
        let size = run.array.size().get();
        let sectors = 1 + self.rng.below(20.min(size - 1));
        let lba = self.rng.below(size - sectors);
        let extent = Extent::new(Lba::new(lba), Sectors::new(sectors));
        self.rng.fill(self.model.bytes_mut(extent));
        self.id += 1;
        run.write(self.id, extent, self.model.bytes(extent));
    }

    /// Reads everything at once and compares it.
    fn look(&mut self, run: &mut Runtime, context: &str) {
        self.id += 1;
        let all = Extent::new(Lba::ZERO, run.array.size());
        run.read(self.id, all);
        run.run_for(Nanos::from_secs(1));
        let (answer, buf) = run.take(self.id).unwrap_or_else(|| panic!("{context}: no answer"));
        assert!(answer.outcome.is_good(), "{context}: {:?}", answer.outcome);
        assert!(buf.as_slice() == self.model.bytes(all), "{context}: other bytes");
    }
}

/// The array after a drive was lost and replaced under traffic, filled.
fn rebuilt(spec: Spec, is_journaled: bool, seed: u64) -> (Runtime, Client) {
    let plain = settings(spec, 40, Policy::Normal, DriveSet::EMPTY);
    let settings = if is_journaled { journaled(plain) } else { plain };
    let mut run = Runtime::new(&settings, seed);
    let rng = Streams::new(seed).stream("test/rebuild");
    let mut client = Client { model: Memory::new(run.array.size()), rng, id: 0 };
    let drive = DriveIdx::from_usize(client.rng.below(spec.drives() as u64) as usize);
    for at in 0..120 {
        client.write(&mut run);
        for _ in 0..client.rng.below(12) {
            if !run.inside.is_empty() {
                run.finish_any();
            }
        }
        match at {
            30 => run.lose(drive),
            50 => run.replace(drive),
            _ => {}
        }
    }
    run.run_for(Nanos::from_secs(60));
    let done = ArrayEvent::RebuildDone { drive };
    assert!(run.array_events.contains(&done), "{spec}, seed {seed}: {:?}", run.array.rebuild());
    assert!(run.array.lost().is_empty());
    (run, client)
}

#[test]
fn rebuilt_drive_stands_in_for_every_set_of_others_that_the_layout_survives() {
    for text in LAYOUTS {
        let spec: Spec = text.parse().unwrap();
        for (at, lost) in survivable(&spec).into_iter().enumerate() {
            let context = format!("{spec}, without {lost}");
            let (mut run, mut client) = rebuilt(spec, at % 2 == 0, at as u64);
            lost.iter().for_each(|drive| run.lose(drive));
            client.look(&mut run, &context);
            client.write(&mut run);
            run.run_for(Nanos::from_secs(1));
            client.look(&mut run, &context);
        }
    }
}

/// RB3: no drive is lost for a sector that cannot be read, nothing is made up, and the rest is there.
#[test]
fn sector_that_nothing_gives_costs_no_drive_and_is_not_made_up() {
    let spec: Spec = "raid5:3+1,chunk=8KiB".parse().unwrap();
    let mut run = Runtime::new(&settings(spec, 40, Policy::Normal, DriveSet::EMPTY), 1);
    let (lost, other) = (DriveIdx::new(1), DriveIdx::new(2));
    run.lose(lost);
    run.bad.insert((other, Lba::new(33)));
    run.replace(lost);
    run.run_for(Nanos::from_secs(10));
    assert_eq!(run.array.lost(), DriveSet::EMPTY.with(lost));
    assert!(run.array.counters().rebuild_damaged >= 1);
    assert!(run.array.rebuild().is_some(), "it is not done");
    // Once the sector can be had, the rebuild goes on by itself.
    run.bad.clear();
    run.run_for(Nanos::from_secs(120));
    assert!(run.array.lost().is_empty(), "{:?}", run.array.rebuild());
}

#[test]
fn only_the_place_of_a_lost_drive_takes_a_new_one() {
    let spec: Spec = "raid6:4+2,chunk=8KiB".parse().unwrap();
    let mut run = Runtime::new(&settings(spec, 10, Policy::Normal, DriveSet::EMPTY), 1);
    let [first, second] = [0, 1].map(DriveIdx::new);
    assert_eq!(run.array.may_replace(first), Err(NotReplaced::Present));
    run.lose(first);
    run.lose(second);
    run.replace(first);
    assert_eq!(run.array.may_replace(first), Err(NotReplaced::Filling));
    assert_eq!(run.array.may_replace(second), Ok(()));
    run.lose(DriveIdx::new(2));
    assert_eq!(run.array.may_replace(second), Err(NotReplaced::Failed));
}
