//! What goes wrong while a new drive is given a copy of one that is there, and while it is to take the place.

use levelhead_array::journal::rules::Rules;
use levelhead_array::membership::Why;
use levelhead_array::{
    ArrayEvent, Budget, CopyEnd, JournalSettings, Patience, Policy, RebuildWish, Settings, Spec,
    Submit,
};
use levelhead_block::Command;
use levelhead_units::{Bytes, DriveSet, Nanos, Sectors};

use crate::copying::Bed;
use crate::runtime::{extent, journaled, settings};

const SPEC: &str = "raid5:5+1,chunk=4KiB";

impl Bed {
    /// Commands end, and time passes, until it is so.
    fn until(&mut self, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..200_000 {
            if is_so(self) {
                return;
            }
            if !self.run.inside.is_empty() {
                self.run.finish_any();
            } else {
                self.run.wait(Nanos::from_millis(10));
            }
        }
        panic!("it never comes to that: {:?}", self.run.array.copy());
    }

    /// Where a command of the new drive is among those inside drives.
    fn coming(&self, is_meant: impl Fn(&Submit) -> bool) -> Option<usize> {
        let array = &self.run.array;
        self.run.inside.iter().position(|submit| array.is_coming(submit.sub) && is_meant(submit))
    }

    fn coming_flush(&self) -> Option<usize> {
        self.coming(|submit| submit.command == Command::Flush)
    }

    fn coming_write(&self) -> Option<usize> {
        self.coming(|submit| submit.command.is_write())
    }

    /// Writes until one of them is inside both drives; the new one ends nothing meanwhile.
    fn until_twin(&mut self) {
        for at in 0..2_000 {
            if at % 100 == 0 {
                self.write_alone();
            }
            let array = &self.run.array;
            let other = self.run.inside.iter().position(|submit| !array.is_coming(submit.sub));
            match (self.coming_write(), other) {
                (Some(_), _) => return,
                (None, Some(at)) => self.run.finish(at),
                (None, None) => self.run.wait(Nanos::from_millis(10)),
            }
        }
    }

    /// This number of reads of everything, each with a sector that the drive does not give.
    fn read_bad(&mut self, times: u64) {
        for at in 0..times {
            let on_drive = self.run.array.area().on_drive(extent(at, 1));
            self.run.bad.insert((self.drive, on_drive.lba));
            assert!(self.reads_right());
        }
    }

    fn others(&self) -> DriveSet {
        let all = DriveSet::first(self.run.drives.len() as u8);
        all.without(DriveSet::EMPTY.with(self.drive))
    }
}

/// CP2: a flush that was begun before the loss says nothing of a write that goes to both drives beside it.
#[test]
fn new_drive_is_flushed_after_the_loss_even_if_it_is_being_flushed_then() {
    let spec: Spec = SPEC.parse().unwrap();
    let mut met = 0;
    for seed in 0..60 {
        let mut bed = Bed::new(spec, Rules::ALL, seed);
        bed.traffic(10);
        bed.run.copy(bed.drive);
        bed.until(|bed| bed.coming_flush().is_some());
        bed.until_twin();
        let Some(write) = bed.coming_write() else { continue };
        met += 1;
        if seed % 2 == 0 {
            bed.run.finish(write);
        }
        bed.run.lose(bed.drive);
        let flush = bed.coming_flush().expect("it is being flushed");
        bed.run.finish(flush);
        bed.run.run_for(Nanos::from_secs(600));
        assert_eq!(bed.done().len(), 1, "seed {seed}");
        let other = bed.others().iter().nth(seed as usize % 5).unwrap();
        assert!(bed.is_right_without(DriveSet::EMPTY.with(other)), "seed {seed}");
    }
    assert!(met >= 10, "{met}");
}

/// CP6: a drive that has made way is as good as before, and has its place again if the new one does not come.
#[test]
fn drive_that_made_way_is_wanted_back_when_the_new_one_fails() {
    let spec: Spec = SPEC.parse().unwrap();
    let mut given = 0;
    for (seed, made_way) in (0..40).map(|seed| (seed, seed % 4 != 3)) {
        let mut bed = Bed::new(spec, Rules::ALL, seed);
        bed.traffic(10);
        bed.run.copy(bed.drive);
        let drive = bed.drive;
        match made_way {
            true => bed.until(|bed| bed.run.array.lost().contains(drive)),
            false => bed.run.lose(drive),
        }
        (0..seed % 5).for_each(|_| bed.write_alone());
        bed.run.coming.as_mut().expect("it is not in its place").is_broken = true;
        bed.until(|bed| bed.run.coming.is_none());
        let why = CopyEnd::Failed;
        assert_eq!(bed.told(|event| *event == ArrayEvent::CopyStopped { drive, why }), 1);
        assert!(bed.run.array.lost().contains(drive));
        let wanted = if made_way { DriveSet::EMPTY.with(drive) } else { DriveSet::EMPTY };
        assert_eq!(bed.run.array.wanted_back(), wanted, "seed {seed}");
        if !made_way {
            continue;
        }
        bed.until(|bed| bed.run.array.may_return(drive).is_ok());
        bed.run.take_back(drive);
        assert!(bed.run.array.wanted_back().is_empty());
        bed.traffic(10);
        bed.run.run_for(Nanos::from_secs(600));
        given += bed.run.array.counters().rebuild_writes;
        let other = bed.others().iter().nth(seed as usize % 5).unwrap();
        assert!(bed.is_right_without(DriveSet::EMPTY.with(other)), "seed {seed}");
    }
    assert!(given > 0, "what it has missed is given to it");
}

#[test]
fn drive_that_made_way_is_not_wanted_once_it_has_failed_or_another_one_has_the_place() {
    let spec: Spec = SPEC.parse().unwrap();
    for seed in 0..10 {
        let mut bed = Bed::new(spec, Rules::ALL, seed);
        let drive = bed.drive;
        bed.run.copy(drive);
        bed.until(|bed| bed.run.array.lost().contains(drive));
        bed.run.coming.as_mut().expect("it is not in its place").is_broken = true;
        bed.until(|bed| !bed.run.array.wanted_back().is_empty());
        match seed % 2 {
            0 => bed.run.lose(drive),
            _ => bed.run.replace(drive),
        }
        assert!(bed.run.array.wanted_back().is_empty());
    }
}

/// While clients write faster than the new drive takes it, the array does not give up its redundancy for much of the drive.
#[test]
fn new_drive_that_does_not_keep_up_does_not_get_the_place() {
    let spec: Spec = "raid1:2,chunk=8KiB".parse().unwrap();
    const REGIONS: u64 = 400;
    for seed in 0..4 {
        let mut bed = Bed::of(spec, REGIONS, Rules::ALL, seed);
        bed.most = 1;
        let wish = RebuildWish { rate_min: Some(Bytes::new(1_000_000_000)), is_paused: false };
        bed.run.array.handle_rebuild_wish(bed.run.now(), wish);
        bed.run.copy(bed.drive);
        // In odd runs the new drive ends one command for every two that clients write.
        let is_slow = seed % 2 == 1;
        for at in 0..20_000 {
            (0..2).for_each(|_| bed.write_alone());
            for _ in 0..40 {
                let array = &bed.run.array;
                let is_kept = |submit: &Submit| is_slow && array.is_coming(submit.sub);
                match bed.run.inside.iter().position(|submit| !is_kept(submit)) {
                    Some(at) => bed.run.finish(at),
                    None => bed.run.wait(Nanos::from_millis(1)),
                }
            }
            // Regions are of two sectors.
            let is_copy = |submit: &Submit| {
                submit.command.extent().is_some_and(|extent| extent.sectors.get() == 2)
            };
            let next = if at % 8 == 0 { bed.coming(|_| true) } else { bed.coming(is_copy) };
            if let (true, Some(at)) = (is_slow, next) {
                bed.run.finish(at);
            }
            if bed.run.coming.is_none() {
                break;
            }
        }
        let (drive, why) = (bed.drive, CopyEnd::TooSlow);
        match is_slow {
            false => assert!(bed.done()[0].left <= 40, "seed {seed}: {:?}", bed.done()),
            true => {
                assert_eq!(
                    bed.told(|event| *event == ArrayEvent::CopyStopped { drive, why }),
                    1,
                    "seed {seed}: {:?} {:?}",
                    bed.done(),
                    bed.run.array.copy()
                );
                assert_eq!(bed.run.array.lost(), DriveSet::EMPTY);
                assert!(bed.run.array.counters().copy_reads > 2 * REGIONS, "it was tried");
            }
        }
        bed.run.run_for(Nanos::from_secs(600));
        assert!(bed.is_right_without(DriveSet::EMPTY), "seed {seed}");
    }
}

/// An array of 64 stripes whose own work begins by itself, with regions of this number of stripes.
fn automatic(spec: Spec, region: u64) -> Settings {
    let settings = journaled(settings(spec, 64, Policy::Normal, DriveSet::EMPTY));
    let region_min = Sectors::new(region);
    let journal = settings.journal.map(|known| JournalSettings { region_min, ..known });
    Settings { journal, background: Some(Budget::DEFAULT), ..settings }
}

/// What the old drive does not give is mended before it goes: with it away, nothing would give a sector of the same region that
/// another drive does not give either.
#[test]
fn sectors_that_the_old_drive_does_not_give_are_mended_before_it_makes_way() {
    let spec: Spec = SPEC.parse().unwrap();
    for seed in 0..20 {
        let mut bed = Bed::with_regions_of(&automatic(spec, 8), seed);
        bed.traffic(30);
        bed.run.run_for(Nanos::from_secs(60));
        let other = bed.others().iter().next().unwrap();
        for region in 0..8 {
            for (drive, lba) in [(bed.drive, region * 8), (other, region * 8 + 5)] {
                let on_drive = bed.run.array.area().on_drive(extent(lba, 1));
                bed.run.bad.insert((drive, on_drive.lba));
            }
        }
        bed.run.copy(bed.drive);
        let drive = bed.drive;
        while bed.run.coming.is_some() {
            bed.run.run_for(Nanos::from_millis(100));
        }
        bed.run.bad.retain(|(bad, _)| *bad != drive);
        bed.run.run_for(Nanos::from_secs(60));
        assert_eq!(bed.done().len(), 1, "seed {seed}");
        assert_eq!(bed.done()[0].left, 0, "seed {seed}");
        assert_eq!(bed.run.array.damaged_summary().sectors.get(), 0, "seed {seed}");
        let is_loss = |event: &ArrayEvent| matches!(event, ArrayEvent::ReadErrors { .. });
        assert_eq!(bed.told(is_loss), 0, "seed {seed}: it was not given up for that");
        assert!(bed.is_right_without(DriveSet::EMPTY), "seed {seed}");
    }
}

/// A new drive is not done without for what the old one did not give.
#[test]
fn read_errors_of_the_old_drive_are_not_held_against_the_new_one() {
    let spec: Spec = SPEC.parse().unwrap();
    let is_told = |event: &ArrayEvent| matches!(event, ArrayEvent::ReadErrors { .. });
    for copies in [false, true] {
        let mut bed = Bed::with_regions_of(&automatic(spec, 1), 3);
        let drive = bed.drive;
        bed.read_bad(28);
        assert_eq!(bed.told(is_told), 0);
        match copies {
            true => bed.run.copy(drive),
            false => {
                bed.run.lose(drive);
                bed.run.replace(drive);
            }
        }
        bed.run.run_for(Nanos::from_secs(60));
        assert_eq!(bed.run.array.lost(), DriveSet::EMPTY);
        bed.read_bad(28);
        assert_eq!((bed.told(is_told), bed.run.array.lost()), (0, DriveSet::EMPTY), "{copies}");
        bed.read_bad(28);
        assert_eq!(bed.told(is_told), 1, "its own are");
    }
}

/// A drive that takes minutes over a bad place is not done without for the copy's sake; the place is passed over.
#[test]
fn read_for_the_copy_that_takes_too_long_does_not_cost_the_old_drive() {
    let spec: Spec = SPEC.parse().unwrap();
    for seed in 0..6 {
        let patience = Patience { silent: Nanos::from_secs(5), lost: Nanos::from_secs(60) };
        let settings = Settings { patience: Some(patience), ..automatic(spec, 1) };
        let mut bed = Bed::with_regions_of(&settings, seed);
        let drive = bed.drive;
        bed.run.copy(drive);
        let is_copy_read = |submit: &Submit| {
            submit.drive == drive && matches!(submit.command, Command::Read { .. })
        };
        bed.until(|bed| bed.run.inside.iter().any(is_copy_read));
        let late = bed.run.inside.iter().find(|submit| is_copy_read(submit)).unwrap().sub;
        for at in 0..300 {
            if seed % 2 == 0 && at % 10 == 0 {
                bed.write_alone();
            }
            while let Some(at) = bed.run.inside.iter().position(|submit| submit.sub != late) {
                bed.run.finish(at);
            }
            bed.run.wait(Nanos::from_secs(1));
        }
        assert_eq!(bed.run.losses, [Why::ByHand], "seed {seed}: it made way");
        assert_eq!(bed.done().len(), 1, "seed {seed}");
        assert!(bed.done()[0].left <= 8, "seed {seed}: {:?}", bed.done());
        bed.run.run_for(Nanos::from_secs(60));
        assert!(bed.is_right_without(DriveSet::EMPTY), "seed {seed}");
    }
}

/// What the new drive has no room for is sent again, as to a member, until it has ended nothing for too long.
#[test]
fn new_drive_that_refuses_commands_is_given_them_again() {
    let spec: Spec = SPEC.parse().unwrap();
    for seed in 0..20 {
        let patience = Patience { silent: Nanos::from_secs(5), lost: Nanos::from_secs(60) };
        let settings = Settings { patience: Some(patience), ..automatic(spec, 1) };
        let mut bed = Bed::with_regions_of(&settings, seed);
        let (drive, why) = (bed.drive, CopyEnd::Silent);
        bed.run.copy(drive);
        let stopped = ArrayEvent::CopyStopped { drive, why };
        let is_full_again = seed % 2 == 1;
        bed.traffic(2);
        let Some(coming) = &mut bed.run.coming else { continue };
        coming.is_full = true;
        bed.traffic(4);
        bed.run.run_for(Nanos::from_secs(30));
        assert!(bed.run.coming.is_some() && bed.told(|event| *event == stopped) == 0);
        bed.run.coming.as_mut().unwrap().is_full = is_full_again;
        bed.run.run_for(Nanos::from_secs(120));
        assert_eq!(bed.told(|event| *event == stopped), usize::from(is_full_again));
        assert_eq!(bed.done().len(), usize::from(!is_full_again));
        bed.run.run_for(Nanos::from_secs(60));
        assert!(bed.run.writing.is_empty(), "what was refused is let go");
        assert!(bed.is_right_without(DriveSet::EMPTY), "seed {seed}");
    }
}

/// What cannot be mended does not hold it up without a limit.
#[test]
fn sectors_that_nothing_gives_do_not_keep_the_old_drive_in_its_place() {
    let spec: Spec = SPEC.parse().unwrap();
    let mut bed = Bed::with_regions_of(&automatic(spec, 1), 5);
    let (drive, other) = (bed.drive, bed.others().iter().next().unwrap());
    for drive in [drive, other] {
        let on_drive = bed.run.array.area().on_drive(extent(9, 1));
        bed.run.bad.insert((drive, on_drive.lba));
    }
    bed.run.copy(drive);
    bed.run.run_for(Nanos::from_secs(1_200));
    assert_eq!(bed.done().len(), 1);
}

/// While clients are about.
#[test]
fn copy_waits_for_an_idle_drive_but_no_longer_than_five_seconds() {
    let mut bed = Bed::new(SPEC.parse().unwrap(), Rules::ALL, 1);
    bed.run.read(1, extent(0, 30)); // No drive completes its part.
    bed.run.copy(bed.drive);
    for (seconds, reads) in [(4, 0), (2, 1), (60, 1)] {
        bed.run.wait(Nanos::from_secs(seconds));
        assert_eq!(bed.run.array.counters().copy_reads, reads, "{seconds} s later");
    }
}

/// The journal has that long to write back most of what it holds for the drive.
#[test]
fn exchange_waits_for_the_journal_up_to_a_deadline_in_two_seconds() {
    let mut bed = Bed::new(SPEC.parse().unwrap(), Rules::ALL, 1);
    bed.run.copy(bed.drive);
    bed.until(|bed| bed.coming_flush().is_some());
    let now = bed.run.now();
    let at = bed.run.array.deadline().expect("the wait has a limit");
    assert!(now < at && at <= now + Nanos::from_secs(2), "{at:?} at {now:?}");
    bed.run.wait(Nanos::from_secs(3));
    let at = bed.run.array.deadline();
    assert!(at.is_none_or(|at| at > bed.run.now()), "{at:?}: it waits for the flush");
}

/// The host releases the drive only then.
#[test]
fn command_of_a_new_drive_is_dismissed_with_it_and_known_until_its_end() {
    let mut bed = Bed::new(SPEC.parse().unwrap(), Rules::ALL, 1);
    bed.run.copy(bed.drive);
    bed.until(|bed| bed.coming_write().is_some());
    let at = bed.coming_write().unwrap();
    let sub = bed.run.inside[at].sub;
    let known = |bed: &Bed| {
        let array = &bed.run.array;
        [array.is_coming(sub), array.is_dismissed(sub), array.has_dismissed()]
    };
    assert_eq!(known(&bed), [true, false, false]);
    bed.run.array.handle_copy_failed(bed.run.now());
    assert_eq!(known(&bed), [true, true, true]);
    bed.run.finish(at);
    assert!(!known(&bed)[1]);
    bed.run.run_until_quiet();
    assert_eq!(known(&bed), [false, false, false]);
}
