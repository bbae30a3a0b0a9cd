//! A drive that is there is replaced: a new one is given a copy of it beside random traffic, takes its place, and then
//! stands in for others.

use levelhead_array::journal::rules::{Rule, Rules};
use levelhead_array::{
    ArrayEvent, CopyEnd, CopyProgress, JournalSettings, NotReplaced, Policy, RebuildWish, Settings,
    Spec,
};
use levelhead_block::Memory;
use levelhead_stats::{Rng, Streams};
use levelhead_units::{Bytes, DriveIdx, DriveSet, Extent, Lba, Nanos, Sectors};

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

pub(crate) const STRIPES: u64 = 40;

pub(crate) struct Bed {
    pub(crate) run: Runtime,
    pub(crate) model: Memory,
    pub(crate) rng: Rng,
    id: u64,
    pub(crate) drive: DriveIdx,
    /// Sectors of the longest write.
    pub(crate) most: u64,
}

impl Bed {
    pub(crate) fn new(spec: Spec, rules: Rules, seed: u64) -> Self {
        Self::of(spec, STRIPES, rules, seed)
    }

    pub(crate) fn of(spec: Spec, stripes: u64, rules: Rules, seed: u64) -> Self {
        let settings = journaled(settings(spec, stripes, Policy::Normal, DriveSet::EMPTY));
        Self::with(settings, rules, seed)
    }

    /// An array whose own work begins by itself, where these say so.
    pub(crate) fn with(settings: Settings, rules: Rules, seed: u64) -> Self {
        // A stripe each, so that there are many regions.
        let region_min = Sectors::new(1);
        let journal = settings.journal.clone();
        let journal = journal.map(|known| JournalSettings { rules, region_min, ..known });
        Self::with_regions_of(&Settings { journal, ..settings }, seed)
    }

    pub(crate) fn with_regions_of(settings: &Settings, seed: u64) -> Self {
        let spec = settings.spec;
        let run = Runtime::new(settings, seed);
        let mut rng = Streams::new(seed).stream("test/copying");
        let drive = DriveIdx::from_usize(rng.below(spec.drives() as u64) as usize);
        Self { model: Memory::new(run.array.size()), run, rng, id: 0, drive, most: 8 }
    }

    pub(crate) fn write(&mut self) {
        self.write_alone();
        while self.run.writing.len() > 3 && !self.run.inside.is_empty() {
            self.run.finish_any();
        }
    }

    /// A write, and nothing ends.
    pub(crate) fn write_alone(&mut self) {
        let size = self.run.array.size().get();
        let sectors = 1 + self.rng.below(self.most.min(size - 1));
        let lba = self.rng.below(size - sectors);
        let extent = Extent::new(Lba::new(lba), Sectors::new(sectors));
        self.rng.fill(self.model.bytes_mut(extent));
        self.id += 1;
        self.run.write(self.id, extent, self.model.bytes(extent));
    }

    pub(crate) fn finish_some(&mut self, most: u64) {
        for _ in 0..self.rng.below(most) {
            if !self.run.inside.is_empty() {
                self.run.finish_any();
            }
        }
    }

    /// Writes beside what goes on.
    pub(crate) fn traffic(&mut self, writes: u64) {
        for _ in 0..writes {
            self.write();
            self.finish_some(12);
            if self.rng.below(4) == 0 {
                self.run.wait(Nanos::from_millis(600));
            }
        }
    }

    pub(crate) fn told(&self, is_meant: impl Fn(&ArrayEvent) -> bool) -> usize {
        self.run.array_events.iter().filter(|event| is_meant(event)).count()
    }

    pub(crate) fn done(&self) -> Vec<CopyProgress> {
        let done = |event: &ArrayEvent| match event {
            ArrayEvent::CopyDone(progress) => Some(*progress),
            _ => None,
        };
        self.run.array_events.iter().filter_map(done).collect()
    }

    /// Whether everything reads as it was written.
    pub(crate) fn reads_right(&mut self) -> bool {
        self.id += 1;
        let all = Extent::new(Lba::ZERO, self.run.array.size());
        self.run.read(self.id, all);
        self.run.run_for(Nanos::from_secs(1));
        let (answer, buf) = self.run.take(self.id).expect("it was answered");
        answer.outcome.is_good() && buf.as_slice() == self.model.bytes(all)
    }

    /// The array has the new drive as a whole, and reads right without others.
    pub(crate) fn is_right_without(&mut self, lost: DriveSet) -> bool {
        let (events, rebuild) = (&self.run.array_events, self.run.array.rebuild());
        assert!(self.run.array.lost().is_empty(), "{rebuild:?}: {events:?}");
        let mut is_right = self.reads_right();
        lost.iter().for_each(|drive| self.run.lose(drive));
        is_right &= self.reads_right();
        is_right
    }
}

#[test]
fn copied_drive_takes_the_place_and_stands_in_for_every_set_of_others() {
    for text in LAYOUTS {
        let spec: Spec = text.parse().unwrap();
        for (at, lost) in survivable(&spec).into_iter().enumerate() {
            let mut bed = Bed::new(spec, Rules::ALL, at as u64);
            bed.traffic(20);
            bed.run.copy(bed.drive);
            assert_eq!(bed.run.array.lost(), DriveSet::EMPTY, "full redundancy meanwhile");
            bed.traffic(60);
            bed.run.run_for(Nanos::from_secs(600));
            let context = format!("{spec}, without {lost}");
            assert_eq!(bed.done().len(), 1, "{context}: {:?}", bed.run.array.copy());
            assert!(bed.run.coming.is_none(), "{context}");
            assert_eq!((bed.run.losses.len(), bed.run.made_way), (1, 1), "{context}");
            let is_failure = |event: &ArrayEvent| match event {
                ArrayEvent::RebuildBegun(progress) => !progress.is_copied,
                ArrayEvent::RebuildDone { is_copied, .. } => !is_copied,
                _ => false,
            };
            assert_eq!(bed.told(is_failure), 0, "{context}: {:?}", bed.run.array_events);
            let reads = bed.run.array.counters().copy_reads;
            assert!(reads >= STRIPES / 2, "{context}: {reads}");
            assert!(bed.is_right_without(lost), "{context}");
        }
    }
}

/// Most of what is written meanwhile goes to both drives, so that little is left in the end.
#[test]
fn little_is_left_where_clients_write_all_the_time() {
    let spec: Spec = "raid6:4+2,chunk=8KiB".parse().unwrap();
    const REGIONS: u64 = 400;
    let (mut twins, mut left) = (0, Vec::new());
    for seed in 0..10 {
        let mut bed = Bed::of(spec, REGIONS, Rules::ALL, seed);
        bed.most = 1;
        let wish = RebuildWish { rate_min: Some(Bytes::new(100_000_000)), is_paused: false };
        bed.run.array.handle_rebuild_wish(bed.run.now(), wish);
        bed.run.copy(bed.drive);
        for _ in 0..4_000 {
            bed.write();
            bed.run.run_for(Nanos::from_millis(100));
            if !bed.done().is_empty() {
                break;
            }
        }
        let done = bed.done();
        left.push(done.first().expect("it comes to an end").left);
        twins += bed.run.array.counters().copy_twins;
        bed.run.run_for(Nanos::from_secs(600));
        assert!(bed.is_right_without(DriveSet::EMPTY), "seed {seed}");
    }
    assert!(twins > 100, "{twins}");
    assert!(left.iter().all(|&left| left <= REGIONS / 10), "{left:?} of {REGIONS}");
}

#[test]
fn old_drive_that_is_lost_meanwhile_leaves_the_place_to_the_new_one_with_what_it_has() {
    for text in LAYOUTS {
        let spec: Spec = text.parse().unwrap();
        for seed in 0..12 {
            let context = format!("{spec}, seed {seed}");
            let mut bed = Bed::new(spec, Rules::ALL, seed);
            bed.traffic(10);
            bed.run.copy(bed.drive);
            while bed.run.array.copy().expect("it goes on").left > STRIPES / 2 {
                bed.write();
                bed.finish_some(8);
                bed.run.wait(Nanos::from_millis(600));
            }
            bed.run.lose(bed.drive);
            bed.traffic(10);
            bed.run.run_for(Nanos::from_secs(600));
            let done = bed.done();
            assert_eq!(done.len(), 1, "{context}");
            assert!(done[0].left < done[0].regions, "{context}: {done:?}");
            let sets = survivable(&spec);
            let lost = sets[seed as usize % sets.len()];
            assert!(bed.is_right_without(lost), "{context}, without {lost}");
        }
    }
}

/// CP4.
#[test]
fn new_drive_that_fails_or_hangs_or_comes_too_late_changes_nothing() {
    let spec: Spec = "raid5:5+1,chunk=4KiB".parse().unwrap();
    for seed in 0..20 {
        let mut bed = Bed::new(spec, Rules::ALL, seed);
        bed.traffic(10);
        bed.run.copy(bed.drive);
        bed.traffic(1 + seed);
        let why = match (bed.run.coming.as_mut(), seed % 2) {
            (None, _) => continue,
            (Some(coming), 0) => {
                coming.is_broken = true;
                CopyEnd::Failed
            }
            (Some(_), _) => {
                bed.run.stop();
                CopyEnd::Ending
            }
        };
        bed.run.run_for(Nanos::from_secs(60));
        let stopped = ArrayEvent::CopyStopped { drive: bed.drive, why };
        assert_eq!(bed.told(|event| *event == stopped), 1, "seed {seed}: {why:?}");
        assert_eq!(bed.run.array.lost(), DriveSet::EMPTY);
        assert!(bed.run.coming.is_none() && bed.run.array.copy().is_none());
        if why == CopyEnd::Failed {
            bed.traffic(10);
            bed.run.run_for(Nanos::from_secs(60));
            assert!(bed.reads_right());
            // Another one is given a copy at once.
            bed.run.copy(bed.drive);
            bed.run.run_for(Nanos::from_secs(60));
            assert_eq!(bed.done().len(), 1, "seed {seed}");
            assert!(bed.is_right_without(DriveSet::EMPTY), "seed {seed}");
        }
    }
}

/// What the old drive does not give comes from the others.
#[test]
fn sectors_that_the_old_drive_does_not_give_are_computed() {
    for text in LAYOUTS {
        let spec: Spec = text.parse().unwrap();
        for seed in 0..4 {
            let mut bed = Bed::new(spec, Rules::ALL, seed);
            bed.traffic(30);
            bed.run.run_for(Nanos::from_secs(60));
            for at in 0..6 {
                let area = bed.run.array.area();
                let one = area.on_drive(extent(at * (area.size().get() / 6), 1));
                bed.run.bad.insert((bed.drive, one.lba));
            }
            bed.run.copy(bed.drive);
            let drive = bed.drive;
            while bed.run.coming.is_some() {
                bed.run.run_for(Nanos::from_millis(100));
            }
            // The new one has no such sectors.
            bed.run.bad.retain(|(other, _)| *other != drive);
            bed.run.run_for(Nanos::from_secs(60));
            let done = bed.done();
            assert!(done[0].left >= 3 && done[0].left <= 8, "{spec}: {done:?}");
            assert!(bed.is_right_without(DriveSet::EMPTY), "{spec}, seed {seed}");
        }
    }
}

/// CO2. Left out, stale sectors are found in some of the runs; kept, in none.
#[test]
fn write_that_is_inside_the_drive_when_its_region_is_read_is_not_forgotten() {
    let spec: Spec = "raid5:2+1,chunk=4KiB".parse().unwrap();
    let wrong = |rules: Rules| -> usize {
        let is_wrong = |seed: &u64| {
            let mut bed = Bed::new(spec, rules, *seed);
            bed.run.copy(bed.drive);
            bed.traffic(40);
            bed.run.run_for(Nanos::from_secs(600));
            let others = DriveSet::first(3).without(DriveSet::EMPTY.with(bed.drive));
            let other = others.iter().next().unwrap();
            !bed.is_right_without(DriveSet::EMPTY.with(other))
        };
        (0..200).filter(is_wrong).count()
    };
    assert_eq!(wrong(Rules::ALL), 0);
    assert!(wrong(Rules::without(Rule::CopyInside)) > 0, "the test sees nothing");
}

/// CP3, and a wish of an operator's.
#[test]
fn copy_waits_while_it_is_paused_or_the_array_needs_the_drive() {
    let spec: Spec = "raid5:5+1,chunk=4KiB".parse().unwrap();
    let mut bed = Bed::new(spec, Rules::ALL, 7);
    let paused = RebuildWish { rate_min: None, is_paused: true };
    bed.run.array.handle_rebuild_wish(bed.run.now(), paused);
    bed.run.copy(bed.drive);
    bed.run.run_for(Nanos::from_secs(600));
    let copy = bed.run.array.copy().expect("it waits");
    assert_eq!((copy.left, bed.run.array.counters().copy_reads), (copy.regions, 0));
    let other = DriveIdx::from_usize((bed.drive.as_usize() + 1) % 6);
    bed.run.lose(other);
    bed.run.array.handle_rebuild_wish(bed.run.now(), RebuildWish::default());
    bed.traffic(30);
    bed.run.run_for(Nanos::from_secs(600));
    assert!(bed.done().is_empty() && bed.run.array.copy().is_some(), "drive {other} is lost");
    assert!(!bed.run.array.lost().contains(bed.drive));
    bed.run.replace(other);
    bed.run.run_for(Nanos::from_secs(600));
    assert_eq!(bed.done().len(), 1);
    assert!(bed.is_right_without(DriveSet::EMPTY.with(other)));
}

#[test]
fn only_a_drive_that_the_array_can_do_without_is_copied_and_one_at_a_time() {
    let spec: Spec = "raid5:5+1,chunk=4KiB".parse().unwrap();
    let [first, second] = [0, 1].map(DriveIdx::new);
    let plain = settings(spec, STRIPES, Policy::Normal, DriveSet::EMPTY);
    let may = |settings: &Settings| Runtime::new(settings, 1).array.may_copy(first);
    assert_eq!(may(&plain), Err(NotReplaced::Unmapped));
    assert_eq!(
        may(&Settings { synced: 3, ..journaled(plain.clone()) }),
        Err(NotReplaced::Unsynced)
    );
    let lost = DriveSet::EMPTY.with(second);
    assert_eq!(may(&journaled(Settings { lost, ..plain.clone() })), Err(NotReplaced::Needed));
    let none = settings("raid0:3,chunk=4KiB".parse().unwrap(), 9, Policy::Normal, DriveSet::EMPTY);
    assert_eq!(may(&none), Err(NotReplaced::NotRedundant));
    let mut run = Runtime::new(&journaled(plain), 1);
    run.copy(first);
    let copying = NotReplaced::Copying { drive: first };
    assert_eq!(run.array.may_copy(first), Err(copying));
    assert_eq!(run.array.may_copy(second), Err(copying));
    assert_eq!(run.array.may_replace(first), Err(NotReplaced::Present));
    run.lose(first);
    assert_eq!(run.array.may_replace(first), Err(copying));
}
