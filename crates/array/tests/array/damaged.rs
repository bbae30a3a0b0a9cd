//! Sectors that can be had no more: they are told, kept on the drives, never made up, and gone once they are written.

use levelhead_array::damaged::{DAMAGED_PLACE, ListCopy};
use levelhead_array::quorum::quorum;
use levelhead_array::superblock::Uuid;
use levelhead_array::{ArrayEvent, Books, Cell, Policy, Settings, Submit};
use levelhead_block::{BlockDevice, Memory, Outcome};
use levelhead_units::{DriveIdx, DriveSet, Extent, Lba};

use crate::books::{PATIENCE, found, started};
use crate::runtime::{Runtime, extent, settings};

/// Where the damaged sector lies.
const BROKEN: Cell = Cell { drive: DriveIdx::new(0), lba: Lba::new(1) };

fn damaged(outcome: &Outcome) -> Vec<u32> {
    let Outcome::Done { unknown, damaged } = outcome else { panic!("{outcome:?}") };
    assert!(unknown.is_empty(), "{unknown:?}");
    damaged.iter().collect()
}

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
    let assembly = quorum(&found(run, drives)).unwrap();
    let settings = Settings {
        area: assembly.area.clone(),
        synced: assembly.trusted,
        lost: assembly.absent,
        books: Some(Books::of(&assembly, Uuid([3; 16]))),
        patience: Some(PATIENCE),
        ..settings(assembly.book.spec, 1, Policy::Normal, DriveSet::EMPTY)
    };
    let mut next = Runtime::with_drives_of(&settings, 1, run.drives[0].size());
    for (copy, drive) in next.drives.iter_mut().zip(&run.drives) {
        let all = Extent::new(Lba::ZERO, Memory::size(drive));
        copy.bytes_mut(all).copy_from_slice(drive.bytes(all));
    }
    next
}

fn stop(run: &mut Runtime) {
    run.stop();
    run.run_until_quiet();
    assert!(run.ending.is_some());
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
fn list_that_too_many_drives_do_not_give_is_not_taken_for_an_empty_one() {
    let mut run = with_damage();
    stop(&mut run);
    let mut all = found(&run, &[0, 1, 2, 3]);
    all[2].lists[0] = ListCopy::Unreadable;
    assert!(quorum(&all).is_ok(), "it counts like a lost drive");
    all[3].lists[1] = ListCopy::Unreadable;
    let refusal = quorum(&all).unwrap_err();
    assert!(format!("{refusal:?}").starts_with("NoList"), "{refusal:?}");
}

#[test]
fn write_takes_a_sector_off_the_list_before_it_is_answered() {
    let mut run = with_damage();
    let at = broken(&run);
    write(&mut run, 2, extent(at + 1, 1));
    assert_eq!(read(&mut run, 3, extent(at, 1)), [0], "its neighbour was written, not it");
    run.write(4, extent(at, 1), &[4; 4096]);
    let place = run.drives[0].size().get() - 256;
    let is_list = |run: &Runtime| {
        let writes = run.inside.iter().filter_map(|sub| sub.command.extent());
        writes
            .filter(|extent| (place..place + DAMAGED_PLACE.get()).contains(&extent.lba.get()))
            .count()
    };
    while is_list(&run) == 0 {
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

#[test]
fn torn_list_leaves_the_one_before_it() {
    let mut run = with_damage();
    let at = broken(&run);
    write(&mut run, 2, extent(at, 1));
    let place = run.drives[0].size().get() - 256;
    let newest: Vec<usize> = found(&run, &[0, 1, 2, 3])
        .iter()
        .map(|found| {
            let generation = |list: &ListCopy| match list {
                ListCopy::Read(listing) => listing.generation,
                ListCopy::Nothing | ListCopy::Unreadable => 0,
            };
            usize::from(generation(&found.lists[1]) > generation(&found.lists[0]))
        })
        .collect();
    for (drive, slot) in run.drives.iter_mut().zip(newest) {
        let header = drive.bytes_mut(extent(place + 64 * slot as u64, 1));
        header[100..].fill(9);
    }
    let mut next = start_over(&run, &[0, 1, 2, 3]);
    assert_eq!(read(&mut next, 3, extent(at, 1)), [0], "the list from before the write counts");
}

/// Redundancy that counts what is on the list as zeroes is not valid before the list is on enough drives: what a power cut has
/// left of it may be on one drive alone, and lost with that.
#[test]
fn list_that_was_found_on_one_drive_is_on_enough_before_redundancy_counts() {
    let mut run = with_damage();
    let place = run.drives[0].size().get() - 256;
    for drive in &mut run.drives[1..] {
        drive.bytes_mut(extent(place, 128)).fill(0);
    }
    let slots = place..place + 128;
    let is_list =
        |sub: &Submit| sub.command.extent().is_some_and(|own| slots.contains(&own.lba.get()));
    let mut next = start_over(&run, &[0, 1, 2, 3]);
    stop(&mut next);
    let mut next = start_over(&run, &[0, 1, 2, 3]);
    next.resync();
    while let Some(at) = next.inside.iter().position(|submit| !is_list(submit)) {
        next.finish(at);
    }
    assert!(next.inside.iter().any(is_list), "it is on its way");
    assert_eq!(next.array.synced(), 0);
    while next.array.synced() < next.array.layout().stripes() {
        next.run_until_quiet();
        next.resync();
    }
    assert_eq!(start_over(&next, &[1, 2, 3]).array.damaged().ranges().count(), 1);
}
