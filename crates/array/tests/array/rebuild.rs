//! A lost drive's place has a new one: what it is given, beside random traffic, and what is not made up.

use levelhead_array::{
    ArrayEvent, Blame, Budget, JournalSettings, Left, NotReplaced, Policy, ScrubState, Settings,
    Spec, Submit,
};
use levelhead_block::{Command, Memory, Outcome, SectorSet};
use levelhead_stats::{Rng, Streams};
use levelhead_units::{DriveIdx, DriveSet, Extent, Lba, Nanos, SECTOR_SIZE, Sectors};

use crate::runtime::{Runtime, extent, journaled, settings, survivable};

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

    /// Writes the first sector.
    fn write_sector(&mut self, run: &mut Runtime) {
        let first = extent(0, 1);
        self.rng.fill(self.model.bytes_mut(first));
        self.id += 1;
        run.write(self.id, first, self.model.bytes(first));
    }

    /// Reads everything at once and compares it, but for what is damaged: the numbers of those sectors.
    fn look_but_for_damaged(&mut self, run: &mut Runtime, context: &str) -> Vec<u64> {
        self.id += 1;
        let all = Extent::new(Lba::ZERO, run.array.size());
        run.read(self.id, all);
        run.run_for(Nanos::from_secs(1));
        let (answer, buf) = run.take(self.id).unwrap_or_else(|| panic!("{context}: no answer"));
        let Outcome::Done { unknown, damaged } = &answer.outcome else {
            panic!("{context}: {:?}", answer.outcome)
        };
        assert!(unknown.is_empty(), "{context}: {unknown:?}");
        for (lba, at) in all.iter().zip(0..) {
            let one = Extent::new(lba, Sectors::new(1));
            let read = &buf.as_slice()[at as usize * SECTOR_SIZE..][..SECTOR_SIZE];
            let is_same = read == self.model.bytes(one);
            assert!(is_same || damaged.contains(at), "{context}: sector {at}: other bytes");
        }
        damaged.iter().map(u64::from).collect()
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
    let done = ArrayEvent::RebuildDone { drive, is_copied: false };
    assert!(run.array_events.contains(&done), "{spec}, seed {seed}: {:?}", run.array.rebuild());
    assert!(run.array.lost().is_empty());
    (run, client)
}

/// RB6: what was copied to the first new drive, and a step of it that still waits for its stripes, are nothing to the second one.
#[test]
fn second_new_drive_in_a_place_is_filled_from_the_beginning() {
    let one = Budget { step: Sectors::new(1), ..Budget::DEFAULT };
    for seed in 0..60 {
        let spec: Spec = LAYOUTS[seed as usize % 3].parse().unwrap();
        let plain = journaled(settings(spec, 40, Policy::Normal, DriveSet::EMPTY));
        let mut run = Runtime::new(&Settings { background: Some(one), ..plain }, seed);
        let rng = Streams::new(seed).stream("test/twice");
        let mut client = Client { model: Memory::new(run.array.size()), rng, id: 0 };
        let drive = DriveIdx::new(1);
        (0..20).for_each(|_| client.write(&mut run));
        run.run_until_quiet();
        run.lose(drive);
        run.replace(drive);
        for _ in 0..client.rng.below(150) {
            if !run.inside.is_empty() {
                run.finish_any();
            }
        }
        // They hold stripes of the next step.
        (0..6).for_each(|_| client.write(&mut run));
        run.wait(Nanos::from_secs(3));
        run.lose(drive);
        run.replace(drive);
        run.run_for(Nanos::from_secs(600));
        assert!(run.array.lost().is_empty(), "seed {seed}: {:?}", run.array.rebuild());
        run.lose(DriveIdx::new(0));
        client.look(&mut run, &format!("{spec}, seed {seed}"));
    }
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

/// RB5: what says that older records are over has to outlast as many faults as the layout survives from the moment on at which a
/// new drive counts. Where one ring alone said so, a recovery that could not read that sector put onto the new drive what had been
/// written to the one before it, or said that it could not bring that back.
#[test]
fn no_sector_of_a_ring_that_is_lost_brings_back_what_a_rebuild_has_replaced() {
    let others_lost =
        [("raid1:2,chunk=4KiB", 1), ("raid1:3,chunk=4KiB", 2), ("raid5:2+1,chunk=4KiB", 1)];
    let others_lost = others_lost.into_iter().chain([("raid6:2+2,chunk=4KiB", 2)]);
    for (text, count) in others_lost {
        let spec: Spec = text.parse().unwrap();
        let start = journaled(settings(spec, 2, Policy::Normal, DriveSet::EMPTY));
        let mut run = Runtime::new(&start, 1);
        let rng = Streams::new(1).stream("test/rings");
        let mut client = Client { model: Memory::new(run.array.size()), rng, id: 0 };
        let last = spec.drives() - count..spec.drives();
        let replaced: Vec<DriveIdx> = last.map(DriveIdx::from_usize).collect();
        // It is in no place when the next one is marked, so that one mark alone says that it is over.
        client.write_sector(&mut run);
        run.run_until(|run| !run.answers.is_empty());
        replaced.iter().for_each(|&drive| run.lose(drive));
        client.write_sector(&mut run);
        let size = start.area.size().get();
        let by_places = |submit: &Submit| {
            submit.command.is_write()
                && submit.command.extent().is_some_and(|extent| extent.lba.get() < size)
        };
        run.run_but_for(by_places, Nanos::from_secs(1));
        run.run_for(Nanos::from_secs(1));
        for &drive in &replaced {
            run.replace(drive);
            run.run_for(Nanos::from_secs(60));
        }
        assert!(run.array.lost().is_empty(), "{spec}");
        // As many drives as the layout can lose, each without a sector of its ring.
        let old: Vec<DriveIdx> = (0..spec.drives() - count).map(DriveIdx::from_usize).collect();
        for bad in lost_sectors(&start, &run, &old[..old.len().min(count)]) {
            let context = format!("{spec}, without {bad:?}");
            let journal = start.journal.clone();
            let journal = journal.map(|known| JournalSettings { left: Left::CutOff, ..known });
            let mut next = Runtime::new(&Settings { journal, ..start.clone() }, 1);
            (next.drives, next.bad) = (run.drives.clone(), bad.into_iter().collect());
            client.look(&mut next, &context);
            assert_eq!(next.array.counters().journal_unrecovered, 0, "{context}");
            // Also what is redundant.
            replaced.iter().for_each(|&drive| next.lose(drive));
            client.look(&mut next, &context);
        }
    }
}

/// Each choice of one sector of each of these drives' rings that holds something.
fn lost_sectors(start: &Settings, run: &Runtime, drives: &[DriveIdx]) -> Vec<Vec<(DriveIdx, Lba)>> {
    let mut all = vec![Vec::new()];
    for &drive in drives {
        let pieces = start.journal.iter().flat_map(|journal| &journal.pieces);
        let medium = &run.drives[drive.as_usize()];
        let is_used = |&lba: &Lba| {
            let sector = medium.bytes(Extent::new(lba, Sectors::new(1)));
            sector.iter().any(|&byte| byte != 0)
        };
        let used: Vec<Lba> = pieces.flat_map(|piece| piece.iter()).filter(is_used).collect();
        assert!(!used.is_empty(), "the ring of drive {drive} has records");
        let with = |lost: &Vec<(DriveIdx, Lba)>| {
            let one = |&lba: &Lba| [lost.clone(), vec![(drive, lba)]].concat();
            used.iter().map(one).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(with).collect();
    }
    all
}

/// RB3: no drive is lost for a sector that cannot be read, nothing is made up, and the rest is there.
#[test]
fn sector_that_nothing_gives_costs_no_drive_and_is_damaged_until_it_is_written() {
    for text in LAYOUTS.into_iter().filter(|text| !text.starts_with("raid1")) {
        let spec: Spec = text.parse().unwrap();
        for seed in 0..4 {
            damaged_by_rebuild(spec, seed);
        }
    }
}

/// Drives are lost up to the last that the layout survives, sectors of another one cannot be read, and all that were lost are
/// replaced.
fn damaged_by_rebuild(spec: Spec, seed: u64) {
    let context = format!("{spec}, seed {seed}");
    let plain = Settings {
        background: Some(Budget::DEFAULT),
        ..settings(spec, 40, Policy::Normal, DriveSet::EMPTY)
    };
    let mut run =
        Runtime::new(&if seed.is_multiple_of(2) { plain } else { journaled(plain) }, seed);
    let rng = Streams::new(seed).stream("test/damaged-by-rebuild");
    let mut client = Client { model: Memory::new(run.array.size()), rng, id: 0 };
    for _ in 0..40 {
        client.write(&mut run);
        run.run_for(Nanos::from_millis(10));
    }
    run.run_for(Nanos::from_secs(5));
    let sets = survivable(&spec);
    let lost = *sets.iter().max_by_key(|set| set.len()).unwrap();
    lost.iter().for_each(|drive| run.lose(drive));
    let left = DriveSet::first(spec.drives() as u8).without(lost);
    let other = left.iter().nth(client.rng.below(left.len() as u64) as usize).unwrap();
    for lba in 0..8 {
        run.bad.insert((other, run.array.area().on_drive(extent(3 + 4 * lba, 1)).lba));
    }
    for drive in lost.iter() {
        run.replace(drive);
        run.run_for(Nanos::from_secs(300));
        assert!(!run.array.lost().contains(drive), "{context}: {:?}", run.array.rebuild());
    }
    run.bad.clear();
    // What is damaged is told, all else is as it was, and so it is without any drives that the layout survives.
    let damaged = client.look_but_for_damaged(&mut run, &context);
    let count = run.array.counters().rebuild_damaged;
    assert!(damaged.len() as u64 <= count && count > 0, "{context}: {damaged:?} of {count}");
    // A scrub makes what is redundant anew, and lets the list have what is nowhere.
    assert!(run.array.handle_scrub_start(run.now(), Blame::Drives));
    run.wait(Nanos::ZERO);
    run.run_for(Nanos::from_secs(300));
    assert_eq!(run.array.scrub().state, ScrubState::Done, "{context}");
    assert_eq!(run.array.damaged_summary().sectors.get(), damaged.len() as u64, "{context}");
    assert_eq!(run.array.scrub().found.unrepaired, 0, "{context}");
    // Once it is written it is there again, and redundant.
    for lba in damaged {
        client.id += 1;
        let one = Extent::new(Lba::new(lba), Sectors::new(1));
        client.rng.fill(client.model.bytes_mut(one));
        run.write(client.id, one, client.model.bytes(one));
        run.run_for(Nanos::from_secs(5));
        let (answer, _) = run.take(client.id).expect("it was answered");
        assert!(answer.outcome.is_good(), "{context}: sector {lba}: {:?}", answer.outcome);
    }
    client.look(&mut run, &context);
    lost.iter().for_each(|drive| run.lose(drive));
    client.look(&mut run, &format!("{context}, without {lost} again"));
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
    // Neither during a recovery nor while the array ends.
    let plain = journaled(settings(spec, 10, Policy::Normal, DriveSet::EMPTY));
    let journal = plain.journal.clone();
    let journal = journal.map(|known| JournalSettings { left: Left::CutOff, ..known });
    let mut run = Runtime::new(&Settings { journal, ..plain }, 1);
    assert_eq!(run.array.may_copy(second), Err(NotReplaced::Recovering));
    run.lose(first);
    assert_eq!(run.array.may_replace(first), Err(NotReplaced::Recovering));
    run.run_for(Nanos::from_secs(60));
    assert_eq!(run.array.may_replace(first), Ok(()));
    run.stop();
    assert_eq!(run.array.may_replace(first), Err(NotReplaced::Ending));
    let none = settings("raid0:3,chunk=8KiB".parse().unwrap(), 9, Policy::Normal, DriveSet::EMPTY);
    assert_eq!(Runtime::new(&none, 1).array.may_replace(first), Err(NotReplaced::NotRedundant));
}

/// Whether a command writes to one of these stripes' places, where a stripe has a sector of every drive.
fn is_of(submit: &Submit, stripes: std::ops::Range<u64>) -> bool {
    let is_there = |extent: Extent| extent.iter().any(|lba| stripes.contains(&lba.get()));
    submit.command.is_write() && submit.command.extent().is_some_and(is_there)
}

/// 40 stripes with a sector of every drive, and a journal. Drive 1 is lost; the rebuild of another one is recorded this often.
fn filled_step_by_step(mark: Nanos) -> Runtime {
    let spec: Spec = "raid5:2+1,chunk=4KiB".parse().unwrap();
    let plain = journaled(settings(spec, 40, Policy::Normal, DriveSet::EMPTY));
    let budget = Budget { step: Sectors::new(1), mark, ..Budget::DEFAULT };
    let mut run = Runtime::new(&Settings { background: Some(budget), ..plain }, 1);
    run.lose(DriveIdx::new(1));
    run
}

/// RB2.
#[test]
fn mark_waits_for_the_end_of_the_last_write_from_before_it() {
    let mut run = filled_step_by_step(Nanos::ZERO);
    run.write(1, extent(78, 1), &[1; SECTOR_SIZE]);
    run.replace(DriveIdx::new(1));
    run.run_but_for(|submit| is_of(submit, 39..40), Nanos::from_secs(20));
    assert!(run.take(1).is_some(), "it was answered, and is not in its place");
    let rebuild = run.array.rebuild().unwrap();
    assert_eq!((rebuild.front, rebuild.mark), (39, 0));
    run.run_for(Nanos::from_secs(60));
    assert!(run.array.lost().is_empty());
}

/// RB5, of a write that began after the last mark was begun, when the drive's ring did not count yet.
#[test]
fn drive_does_not_count_before_what_began_without_it_is_over() {
    let mut run = filled_step_by_step(Budget::DEFAULT.mark);
    let drive = DriveIdx::new(1);
    run.replace(drive);
    let is_flush = |submit: &Submit| submit.drive == drive && submit.command == Command::Flush;
    let is_last = |run: &Runtime| run.array.rebuild().is_some_and(|rebuild| rebuild.front == 40);
    while !is_last(&run) || !run.inside.iter().any(is_flush) {
        let at = run.inside.iter().position(|submit| !is_last(&run) || !is_flush(submit));
        match at {
            Some(at) => run.finish(at),
            None => run.wait(Nanos::from_millis(5)),
        }
    }
    run.write(1, extent(10, 1), &[1; SECTOR_SIZE]);
    run.run_but_for(|submit| is_flush(submit) || is_of(submit, 5..6), Nanos::from_secs(1));
    assert!(run.take(1).is_some(), "it was answered, and is not in its place");
    run.run_but_for(|submit| is_of(submit, 5..6), Nanos::from_secs(20));
    assert!(run.array.lost().contains(drive));
    run.run_for(Nanos::from_secs(60));
    assert!(run.array.lost().is_empty());
}

/// What was inside the old drive is not held against the new one, however it ends.
#[test]
fn old_drive_that_fails_at_last_does_not_take_the_new_one_with_it() {
    let spec: Spec = "raid5:3+1,chunk=8KiB".parse().unwrap();
    let mut run = Runtime::new(&settings(spec, 40, Policy::Normal, DriveSet::EMPTY), 1);
    let drive = DriveIdx::new(1);
    run.hang(drive);
    for id in 0..8 {
        run.write(id, extent(id * 6, 6), &[7; 6 * SECTOR_SIZE]);
    }
    while run.inside.iter().any(|submit| submit.drive != drive) {
        let at = run.inside.iter().position(|submit| submit.drive != drive).unwrap();
        run.finish(at);
    }
    run.lose(drive);
    let old = std::mem::take(&mut run.inside);
    assert!(old.iter().all(|submit| submit.drive == drive) && !old.is_empty());
    run.answer_again(drive);
    run.replace(drive);
    for (submit, at) in old.into_iter().zip(0..) {
        let damaged = SectorSet::first(Sectors::new(1));
        let failed = Outcome::Done { unknown: SectorSet::EMPTY, damaged };
        let outcome = if at == 0 { Outcome::Gone } else { failed };
        run.array.handle_done(run.now(), submit.sub, &outcome);
        run.wait(Nanos::ZERO);
    }
    run.run_for(Nanos::from_secs(60));
    assert!(run.array.lost().is_empty(), "{:?}", run.array.rebuild());
}
