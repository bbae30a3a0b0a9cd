//! Sectors that can be had no more: they are told, kept on the drives, never made up, and gone once they are written.

use levelhead_array::membership::Generation;
use levelhead_array::superblock::Uuid;
use levelhead_array::{ArrayEvent, Budget, Cell, NewMember, Submit};
use levelhead_block::{BlockDevice, Memory};
use levelhead_units::{DriveIdx, DriveSet, Extent, Lba, Nanos, Sectors};

use crate::metadata::{LARGE, found, journaled, only, says, started, started_on, started_with};
use crate::runtime::{Runtime, damaged, extent};
use crate::wishes::{start_over_with, stop};

/// Where the damaged sector lies.
const BROKEN: Cell = Cell { drive: DriveIdx::new(0), lba: Lba::new(1) };

fn read(run: &mut Runtime, id: u64, extent: Extent) -> Vec<u32> {
    run.read(id, extent);
    run.run_until_quiet();
    damaged(&run.take(id).unwrap().0.outcome)
}

fn write(run: &mut Runtime, id: u64, extent: Extent) {
    run.write(id, extent, &vec![id as u8; extent.sectors.bytes().get() as usize]);
    run.run_until_quiet();
    assert_eq!(damaged(&run.take(id).unwrap().0.outcome), []);
}

/// The array's sector that is damaged.
fn broken(run: &Runtime) -> u64 {
    let layout = run.array.layout();
    let place = layout.symbol(BROKEN);
    (0..run.array.size().get()).find(|&lba| layout.find(Lba::new(lba)) == place).unwrap()
}

/// An array whose first redundancy was computed while one sector could not be read. It can be read again.
fn with_damage() -> Runtime {
    let mut run = started("raid5:3+1,chunk=4KiB", false, DriveSet::EMPTY);
    write(&mut run, 1, extent(0, 1));
    let lba = run.array.area().on_drive(Extent { lba: BROKEN.lba, ..extent(0, 1) }).lba;
    run.bad.insert((BROKEN.drive, lba));
    while run.array.synced() < run.array.layout().stripes() {
        run.resync();
        run.run_until_quiet();
    }
    run.bad.clear();
    run
}

/// The array that is found on these drives.
fn start_over(run: &Runtime, drives: &[usize]) -> Runtime {
    start_over_with(run, drives, None)
}

/// Where a drive's metadata is written.
fn is_metadata(_: &Runtime, submit: &Submit) -> bool {
    submit.command.extent().is_some_and(|own| (1..255).contains(&own.lba.get()))
}

/// Ends the next write of a drive's metadata, of which the drive stores all but this sector.
fn lose_metadata(run: &mut Runtime, drive: usize, sector: u64) {
    let of_list = |run: &Runtime| {
        let is_meant = |submit: &Submit| {
            submit.drive.as_usize() == drive
                && submit.command.is_write()
                && is_metadata(run, submit)
        };
        run.inside.iter().position(is_meant)
    };
    run.run_until(|run| of_list(run).is_some());
    let at = of_list(run).unwrap();
    let own = run.inside[at].command.extent().unwrap();
    let lost = Extent { lba: own.lba + Sectors::new(sector), ..extent(0, 1) };
    assert!(own.contains(lost.lba), "{own:?}");
    let before = run.drives[drive].bytes(lost).to_vec();
    run.finish(at);
    run.drives[drive].bytes_mut(lost).copy_from_slice(&before);
}

#[test]
fn resync_goes_on_past_a_sector_that_cannot_be_read_and_names_it() {
    let mut run = with_damage();
    let list: Vec<_> = run.array.damaged().ranges().collect();
    let [range] = list[..] else { panic!("{list:?}") };
    assert_eq!((range.drive, range.extent), (BROKEN.drive, extent(BROKEN.lba.get(), 1)));
    let told = ArrayEvent::Damaged { drive: range.drive, extent: range.extent };
    assert_eq!(run.array_events.iter().filter(|event| **event == told).count(), 1);
    let at = broken(&run);
    for id in 2..4 {
        assert_eq!(read(&mut run, id, extent(at - 1, 3)), [1], "its drive gives it again: made up");
    }
    let told = ArrayEvent::DamagedRead { drive: range.drive, extent: range.extent };
    assert_eq!(run.array_events.iter().filter(|event| **event == told).count(), 1);
    assert_eq!(run.array.counters().damaged_reads, 2);
}

#[test]
fn list_outlasts_a_stop_and_the_loss_of_any_drive_and_its_neighbours_are_redundant() {
    let mut run = with_damage();
    let at = broken(&run);
    stop(&mut run);
    for lost in 0..5 {
        let left: Vec<usize> = (0..4).filter(|&drive| drive != lost).collect();
        let mut run = start_over(&run, &left);
        assert_eq!(read(&mut run, 1, extent(at - 1, 3)), [1], "without drive {lost}");
    }
}

#[test]
fn write_takes_a_sector_off_the_list_before_it_is_answered() {
    let mut run = with_damage();
    let at = broken(&run);
    write(&mut run, 2, extent(at + 1, 1));
    assert_eq!(read(&mut run, 3, extent(at, 1)), [0], "its neighbour was written, not it");
    run.write(4, extent(at, 1), &[4; 4096]);
    while !run.inside.iter().any(|submit| is_metadata(&run, submit)) {
        run.finish(0);
    }
    assert!(run.take(4).is_none() && run.array.damaged().is_empty());
    // Cut off now, the array has it damaged: the client has no answer yet.
    let mut cut = start_over(&run, &[0, 1, 2, 3]);
    assert_eq!(read(&mut cut, 1, extent(at, 1)), [0]);
    run.run_until_quiet();
    assert_eq!(damaged(&run.take(4).unwrap().0.outcome), []);
    let mut next = start_over(&run, &[0, 1, 2, 3]);
    next.read(5, extent(at, 1));
    next.run_until_quiet();
    let (answer, buf) = next.take(5).unwrap();
    assert!(answer.outcome.is_good() && buf.as_slice() == [4; 4096]);
    // Its redundancy is right: without its drive it is the same.
    stop(&mut run);
    let mut next = start_over(&run, &[1, 2, 3]);
    next.read(6, extent(at, 1));
    next.run_until_quiet();
    assert_eq!(next.take(6).unwrap().1.as_slice(), [4; 4096]);
}

/// J10: should the array be cut off before, the record says that redundancy counts the sector again.
#[test]
fn write_is_in_the_journal_until_the_list_is_safe_that_it_is_taken_off() {
    let mut run = journaled("raid5:3+1,chunk=4KiB", LARGE);
    write(&mut run, 1, extent(0, 24));
    run.run_for(Nanos::from_secs(10));
    run.lose(DriveIdx::new(3));
    run.run_until_quiet();
    let lba = run.array.area().on_drive(Extent { lba: BROKEN.lba, ..extent(0, 1) }).lba;
    run.bad.insert((BROKEN.drive, lba));
    replace(&mut run, 3);
    run.run_for(Nanos::from_secs(60));
    run.bad.clear();
    let at = broken(&run);
    assert_eq!(read(&mut run, 2, extent(at, 1)), [0]);
    let of_metadata = |submit: &Submit| {
        let place = submit.command.extent().map(|extent| extent.lba.get());
        submit.command.is_write() && place.is_some_and(|lba| (1..255).contains(&lba))
    };
    run.write(3, extent(at, 1), &[3; 4096]);
    run.run_but_for(of_metadata, Nanos::from_secs(2));
    let open = |run: &Runtime| run.array.journal_status().unwrap().open;
    assert_eq!((run.take(3).is_none(), open(&run)), (true, 1));
    run.run_for(Nanos::from_secs(2));
    assert_eq!((damaged(&run.take(3).unwrap().0.outcome), open(&run)), (vec![], 0));
    assert_eq!(read(&mut run, 4, extent(at, 1)), []);
}

/// Whether or not writes are read back: what relies on the list waits until a drive has it.
#[test]
fn list_that_is_not_there_is_written_again_and_costs_the_drive_in_the_end() {
    for (times, is_lost) in [(1, false), (3, false), (4, true)] {
        let mut run = with_damage();
        let at = broken(&run);
        run.write(2, extent(at, 1), &[2; 4096]);
        (0..times).for_each(|_| lose_metadata(&mut run, 1, 0));
        run.run_until_quiet();
        assert!(run.take(2).unwrap().0.outcome.is_good());
        assert_eq!(run.array.counters().verify_records, times.min(3), "{times}");
        assert_eq!(run.array.lost().contains(DriveIdx::new(1)), is_lost, "{times}");
        let left: &[usize] = if is_lost { &[0, 2, 3] } else { &[0, 1, 2, 3] };
        let generations = left.iter().map(|&drive| says(&run, drive).generation);
        let generations: Vec<Generation> = generations.collect();
        assert!(generations.iter().all(|one| *one == generations[0]), "{generations:?}");
    }
}

/// A list of so many ranges that it has several sectors: also the last of them is compared.
#[test]
fn list_of_several_sectors_of_which_one_is_not_there_is_written_again() {
    let mut run = started_on("raid5:3+1,chunk=4KiB", LARGE, false, DriveSet::EMPTY);
    write(&mut run, 1, extent(0, 1));
    for lba in (0..600).step_by(2) {
        let place = run.array.area().on_drive(extent(lba, 1)).lba;
        run.bad.insert((BROKEN.drive, place));
    }
    while run.array.damaged().ranges().count() < 300 {
        run.resync();
        let is_large = |run: &Runtime, sub: &Submit| {
            let extent = sub.command.extent();
            is_metadata(run, sub) && extent.is_some_and(|extent| extent.sectors.get() == 3)
        };
        while !run.inside.is_empty() && !run.inside.iter().any(|sub| is_large(&run, sub)) {
            run.finish_any();
        }
    }
    lose_metadata(&mut run, 2, 2);
    run.run_until_quiet();
    assert_eq!((run.array.counters().verify_records, run.array.lost()), (1, DriveSet::EMPTY));
    assert_eq!(says(&run, 2).damaged.ranges().count(), 300);
}

/// A drive that is needed is kept though it never stores the list; it is not counted among those that have it, and that is told
/// once.
#[test]
fn list_that_is_never_there_costs_no_drive_that_is_needed() {
    let mut run = with_damage();
    let at = broken(&run);
    run.lose(DriveIdx::new(3));
    run.run_until_quiet();
    for id in 2..4 {
        run.write(id, extent(at, 1), &[id as u8; 4096]);
        if id == 2 {
            (0..4).for_each(|_| lose_metadata(&mut run, 1, 0));
        }
        run.run_until_quiet();
        assert!(run.take(id).unwrap().0.outcome.is_good());
    }
    assert_eq!(run.array.lost(), only(3));
    let is_told = |event: &&ArrayEvent| matches!(event, ArrayEvent::RecordLost { .. });
    let told: Vec<_> = run.array_events.iter().filter(is_told).collect();
    assert_eq!(told, [&ArrayEvent::RecordLost { drive: DriveIdx::new(1), is_kept: true }]);
    stop(&mut run);
}

/// A new drive, full of garbage, comes into the place of a lost one.
fn replace(run: &mut Runtime, drive: usize) {
    let place = DriveIdx::from_usize(drive);
    let own = run.array.own(place).cloned().unwrap();
    let all = Extent::new(Lba::ZERO, Memory::size(&run.drives[drive]));
    run.drives[drive].bytes_mut(all).fill(0xA7);
    let new = NewMember { uuid: Uuid([9; 16]), own, held: None };
    run.array.handle_replaced(run.now(), place, Some(new)).unwrap();
    run.wait(Nanos::ZERO);
}

/// RB5: what a drive that is needed does not store is on enough others, and no new drive is kept waiting for it.
#[test]
fn new_drive_counts_although_one_that_is_needed_never_stores_the_list() {
    let mut run = with_damage();
    let at = broken(&run);
    run.lose(DriveIdx::new(3));
    run.run_until_quiet();
    run.write(2, extent(at, 1), &[2; 4096]);
    (0..4).for_each(|_| lose_metadata(&mut run, 1, 0));
    run.run_until_quiet();
    assert_eq!(run.array.lost(), only(3));
    replace(&mut run, 3);
    run.run_for(Nanos::from_secs(60));
    assert_eq!(run.array.lost(), DriveSet::EMPTY);
    stop(&mut run);
    // Whatever drive is lost: the list says that the sector was written.
    for lost in 0..4 {
        let left: Vec<usize> = (0..4).filter(|&drive| drive != lost).collect();
        let mut next = start_over(&run, &left);
        assert_eq!(read(&mut next, 3, extent(at, 1)), [], "without drive {lost}");
    }
}

/// RB5: otherwise the list would be lost with as many other drives as the layout survives.
#[test]
fn new_drive_does_not_count_before_it_has_the_list() {
    let mut run = with_damage();
    run.lose(DriveIdx::new(3));
    run.run_until_quiet();
    replace(&mut run, 3);
    let held = only(3);
    let is_held =
        |run: &Runtime, submit: &Submit| is_metadata(run, submit) && held.contains(submit.drive);
    for _ in 0..1_000 {
        match run.inside.iter().position(|submit| !is_held(&run, submit)) {
            Some(at) => run.finish(at),
            None => run.wait(Nanos::from_millis(50)),
        }
    }
    assert!(run.inside.iter().any(|submit| is_held(&run, submit)));
    assert_eq!(run.array.lost(), held);
    run.run_for(Nanos::from_secs(60));
    assert_eq!(run.array.lost(), DriveSet::EMPTY);
}

/// RB2: a start after a crash goes on from the mark, and would not list the sector.
#[test]
fn mark_does_not_pass_a_damaged_sector_before_the_list_has_it() {
    let budget = Budget { step: Sectors::new(1), mark: Nanos::ZERO, ..Budget::DEFAULT };
    let mut run = started_with("raid5:3+1,chunk=4KiB", Some(budget));
    write(&mut run, 1, extent(0, 1));
    run.lose(DriveIdx::new(3));
    run.run_until_quiet();
    let lba = run.array.area().on_drive(Extent { lba: Lba::new(5), ..extent(0, 1) }).lba;
    run.bad.insert((BROKEN.drive, lba));
    replace(&mut run, 3);
    run.run_until(|run| run.array.rebuild().is_some_and(|rebuild| rebuild.front > 0));
    for _ in 0..1_000 {
        match run.inside.iter().position(|submit| !is_metadata(&run, submit)) {
            Some(at) => run.finish(at),
            None => run.wait(Nanos::from_millis(50)),
        }
    }
    let rebuild = run.array.rebuild().unwrap();
    assert!(rebuild.front > 5 && rebuild.mark <= 5, "{rebuild:?}");
    run.run_for(Nanos::from_secs(60));
    assert_eq!(run.array.lost(), DriveSet::EMPTY);
}

/// By the place that the superblock names, and the member.
#[test]
fn lost_drive_is_known_by_its_superblock_and_no_other_is() {
    let mut run = journaled("raid6:2+2,chunk=4KiB", LARGE);
    write(&mut run, 1, extent(0, 1));
    let word = |run: &Runtime, drive: usize| found(run, &[drive])[0].word().unwrap();
    let [lost, other] = [3, 2].map(DriveIdx::new);
    assert!(!run.array.knows(lost, &word(&run, 3)), "it is there");
    run.lose(lost);
    write(&mut run, 2, extent(0, 4));
    assert!(run.array.knows(lost, &word(&run, 3)));
    assert!(!run.array.knows(lost, &word(&run, 2)) && !run.array.knows(other, &word(&run, 3)));
}

#[test]
fn torn_list_leaves_the_one_before_it() {
    let mut run = with_damage();
    let at = broken(&run);
    write(&mut run, 2, extent(at, 1));
    let all = found(&run, &[0, 1, 2, 3]);
    for (drive, found) in run.drives.iter_mut().zip(&all) {
        let held = found.word().unwrap().held.unwrap();
        let slot = found.good().unwrap().own.slots()[held.slot];
        drive.bytes_mut(extent(slot.lba.get(), 1))[100..].fill(9);
    }
    let mut next = start_over(&run, &[0, 1, 2, 3]);
    assert_eq!(read(&mut next, 3, extent(at, 1)), [0], "the list from before the write counts");
}

/// Redundancy that counts what is on the list as zeroes is not valid before the list is on enough drives: what a power cut has
/// left of it may be on one drive alone, and lost with that.
#[test]
fn list_that_was_found_on_one_drive_is_on_enough_before_redundancy_counts() {
    let mut run = started("raid5:3+1,chunk=4KiB", false, DriveSet::EMPTY);
    write(&mut run, 1, extent(0, 1));
    let lba = run.array.area().on_drive(Extent { lba: BROKEN.lba, ..extent(0, 1) }).lba;
    run.bad.insert((BROKEN.drive, lba));
    let of_first = |run: &Runtime| {
        let is_meant = |submit: &Submit| {
            let is_first = submit.drive == BROKEN.drive && submit.command.is_write();
            is_first && is_metadata(run, submit)
        };
        run.inside.iter().position(is_meant)
    };
    while of_first(&run).is_none() {
        run.resync();
        while let Some(at) = run.inside.iter().position(|submit| !is_metadata(&run, submit)) {
            run.finish(at);
        }
    }
    run.finish(of_first(&run).unwrap());
    run.bad.clear();
    let mut next = start_over(&run, &[0, 1, 2, 3]);
    stop(&mut next);
    let mut next = start_over(&run, &[0, 1, 2, 3]);
    next.resync();
    while let Some(at) = next.inside.iter().position(|submit| !is_metadata(&next, submit)) {
        next.finish(at);
    }
    assert!(next.inside.iter().any(|submit| is_metadata(&next, submit)), "it is on its way");
    assert_eq!(next.array.synced(), 0);
    while next.array.synced() < next.array.layout().stripes() {
        next.run_until_quiet();
        next.resync();
    }
    assert_eq!(start_over(&next, &[1, 2, 3]).array.damaged().ranges().count(), 1);
}
