//! Sectors that can be had no more: they are told, kept on the drives, never made up, and gone once they are written.

use levelhead_array::damaged::{DAMAGED_PLACE, ListCopy};
use levelhead_array::missed::Page;
use levelhead_array::quorum::quorum;
use levelhead_array::superblock::{Superblock, Uuid};
use levelhead_array::{ArrayEvent, Budget, Cell, NewMember, Submit};
use levelhead_block::{BlockDevice, Memory};
use levelhead_units::{DriveIdx, DriveSet, Extent, Lba, Nanos, Sectors};

use crate::books::{LARGE, found, journaled, only, started, started_on, started_with};
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

/// Where a drive's list is written.
fn is_list(run: &Runtime, submit: &Submit) -> bool {
    let place = run.drives[0].size().get() - 256;
    let slots = place..place + DAMAGED_PLACE.get();
    submit.command.extent().is_some_and(|own| slots.contains(&own.lba.get()))
}

/// Ends the next write of a drive's list, of which the drive stores all but this sector.
fn lose_list(run: &mut Runtime, drive: usize, sector: u64) {
    let of_list = |run: &Runtime| {
        let is_meant = |submit: &Submit| {
            submit.drive.as_usize() == drive && submit.command.is_write() && is_list(run, submit)
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
    while !run.inside.iter().any(|submit| is_list(&run, submit)) {
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
    let list = LARGE.get() - 256..LARGE.get() - 1;
    let of_list = |submit: &Submit| {
        let place = submit.command.extent().map(|extent| extent.lba.get());
        submit.command.is_write() && place.is_some_and(|lba| list.contains(&lba))
    };
    run.write(3, extent(at, 1), &[3; 4096]);
    run.run_but_for(of_list, Nanos::from_secs(2));
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
        (0..times).for_each(|_| lose_list(&mut run, 1, 0));
        run.run_until_quiet();
        assert!(run.take(2).unwrap().0.outcome.is_good());
        assert_eq!(run.array.counters().verify_records, times.min(3), "{times}");
        assert_eq!(run.array.lost().contains(DriveIdx::new(1)), is_lost, "{times}");
        let left: &[usize] = if is_lost { &[0, 2, 3] } else { &[0, 1, 2, 3] };
        let lists: Vec<_> = found(&run, left).into_iter().map(|found| found.lists).collect();
        let newest = |lists: &[ListCopy; 2]| {
            let generation = |list: &ListCopy| match list {
                ListCopy::Read(listing) => listing.generation,
                ListCopy::Nothing | ListCopy::Unreadable => 0,
            };
            lists.iter().map(generation).max().unwrap()
        };
        assert!(lists.iter().all(|list| newest(list) == newest(&lists[0])), "{lists:?}");
    }
}

/// The maps of what drives have missed are records like the list.
#[test]
fn page_of_a_map_that_is_not_there_is_written_again_and_costs_the_drive_in_the_end() {
    for (times, is_lost) in [(1, false), (4, true)] {
        let mut run = journaled("raid6:2+2,chunk=4KiB", LARGE);
        write(&mut run, 1, extent(0, 1));
        run.lose(DriveIdx::new(3));
        let maps = run.array.own(DriveIdx::new(1)).unwrap().maps().unwrap();
        let of_maps = |run: &Runtime| {
            let is_meant = |submit: &Submit| {
                let place = submit.command.extent().map(|extent| extent.lba);
                submit.drive == DriveIdx::new(1)
                    && submit.command.is_write()
                    && place.is_some_and(|lba| maps.contains(lba))
            };
            run.inside.iter().position(is_meant)
        };
        for _ in 0..times {
            run.run_until(|run| of_maps(run).is_some());
            let at = of_maps(&run).unwrap();
            let own = run.inside[at].command.extent().unwrap();
            run.finish(at);
            run.drives[1].bytes_mut(own).fill(0);
        }
        run.run_until_quiet();
        assert_eq!(run.array.counters().verify_records, times.min(3), "{times}");
        assert_eq!(run.array.lost().contains(DriveIdx::new(1)), is_lost, "{times}");
        let pages = |drive: usize| {
            let maps = run.array.own(DriveIdx::from_usize(drive)).unwrap().maps().unwrap();
            maps.iter()
                .filter(|&lba| {
                    let sector = run.drives[drive].bytes(Extent { lba, ..extent(0, 1) });
                    sector.iter().any(|&byte| byte != 0)
                })
                .count()
        };
        assert!(pages(0) > 0 && (is_lost || pages(1) == pages(0)), "{} {}", pages(0), pages(1));
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
            is_list(run, sub) && extent.is_some_and(|extent| extent.sectors.get() == 3)
        };
        while !run.inside.is_empty() && !run.inside.iter().any(|sub| is_large(&run, sub)) {
            run.finish_any();
        }
    }
    lose_list(&mut run, 2, 2);
    run.run_until_quiet();
    assert_eq!((run.array.counters().verify_records, run.array.lost()), (1, DriveSet::EMPTY));
    assert!(found(&run, &[2])[0].lists.iter().any(|list| match list {
        ListCopy::Read(listing) => listing.list.ranges().count() == 300,
        ListCopy::Nothing | ListCopy::Unreadable => false,
    }));
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
            (0..4).for_each(|_| lose_list(&mut run, 1, 0));
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
    let new = NewMember { uuid: Uuid([9; 16]), own };
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
    (0..4).for_each(|_| lose_list(&mut run, 1, 0));
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
        |run: &Runtime, submit: &Submit| is_list(run, submit) && held.contains(submit.drive);
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
    for _ in 0..2_000 {
        match run.inside.iter().position(|submit| !is_list(&run, submit)) {
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
    let word = |run: &Runtime, drive: usize| {
        Superblock::decode(run.drives[drive].bytes(extent(0, 1))).unwrap()
    };
    let [lost, other] = [3, 2].map(DriveIdx::new);
    assert!(!run.array.knows(lost, &word(&run, 3)), "it is there");
    run.lose(lost);
    write(&mut run, 2, extent(0, 4));
    assert!(run.array.knows(lost, &word(&run, 3)));
    assert!(!run.array.knows(lost, &word(&run, 2)) && !run.array.knows(other, &word(&run, 3)));
}

/// The sectors of a drive's maps that hold a page.
fn pages(run: &Runtime, drive: usize) -> Vec<Lba> {
    let maps = run.array.own(DriveIdx::from_usize(drive)).unwrap().maps().unwrap();
    let is_page = |lba: &Lba| {
        let sector = run.drives[drive].bytes(Extent { lba: *lba, ..extent(0, 1) });
        Page::decode(sector).is_ok()
    };
    maps.iter().filter(is_page).collect()
}

/// A page of one map is never there on a drive that is needed: it has all others, and a new drive does not wait for that one.
#[test]
fn page_that_is_never_there_keeps_neither_other_pages_nor_a_new_drive_waiting() {
    let mut run = journaled("raid6:2+2,chunk=4KiB", LARGE);
    write(&mut run, 1, extent(0, 1));
    run.lose(DriveIdx::new(2));
    write(&mut run, 2, extent(0, 4));
    run.run_for(Nanos::from_secs(1));
    let page = *pages(&run, 0).last().unwrap();
    // The next map lies in the next slot.
    let page = page + Sectors::new(16);
    run.lose(DriveIdx::new(3));
    let store = |run: &mut Runtime| {
        while !run.inside.is_empty() {
            run.finish_any();
            run.drives[1].bytes_mut(Extent { lba: page, ..extent(0, 1) }).fill(0);
        }
        run.wait(Nanos::from_secs(1));
    };
    run.write(3, extent(0, 4), &[3; 4 * 4096]);
    (0..10).for_each(|_| store(&mut run));
    assert!(run.take(3).unwrap().0.outcome.is_good());
    assert_eq!(run.array.lost(), only(2).or(only(3)));
    let all = pages(&run, 0);
    assert!(all.len() == 4 && all.contains(&page), "{all:?}");
    let stored: Vec<Lba> = all.into_iter().filter(|lba| *lba != page).collect();
    assert_eq!(pages(&run, 1), stored);
    replace(&mut run, 2);
    (0..100).for_each(|_| store(&mut run));
    assert_eq!(run.array.lost(), only(3), "{:?}", run.array.rebuild());
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
    let mut next = start_over(&run, &[0, 1, 2, 3]);
    stop(&mut next);
    let mut next = start_over(&run, &[0, 1, 2, 3]);
    next.resync();
    while let Some(at) = next.inside.iter().position(|submit| !is_list(&next, submit)) {
        next.finish(at);
    }
    assert!(next.inside.iter().any(|submit| is_list(&next, submit)), "it is on its way");
    assert_eq!(next.array.synced(), 0);
    while next.array.synced() < next.array.layout().stripes() {
        next.run_until_quiet();
        next.resync();
    }
    assert_eq!(start_over(&next, &[1, 2, 3]).array.damaged().ranges().count(), 1);
}
