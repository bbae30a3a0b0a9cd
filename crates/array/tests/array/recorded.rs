//! What a cut has left of an entry of the books on too few drives, at the next start.

use levelhead_array::superblock::{State, Superblock, Uuid};
use levelhead_array::{Ending, NewMember, RebuildWish, Wishes};
use levelhead_units::{Bytes, DriveIdx, Nanos, Sectors};

use crate::books::{SPEC, says};
use crate::runtime::{Runtime, extent, finish};
use crate::wishes::{ALL, start_over, stop, stopped_as};

const SIZE: u64 = 700;

/// An array of which an entry was begun that has come to one copy on drive 0 alone, found after the cut.
fn found_on_one(text: &str, drives: &[usize]) -> Runtime {
    let mut run = start_over(&stopped_as(text, Sectors::new(SIZE)), drives);
    let wish = RebuildWish { rate_min: Some(Bytes::new(1)), is_paused: true };
    run.array.handle_rebuild_wish(run.now(), wish);
    run.wait(Nanos::ZERO);
    finish(&mut run, 0);
    let run = start_over(&run, drives);
    assert_eq!(
        run.array.generation(),
        Some(says(&run, 1).generation + 1),
        "it is on drive 0 alone"
    );
    run
}

/// G10: with that drive lost the others would not know what it says, and the array is not opened for it.
#[test]
fn what_was_found_on_too_few_drives_is_given_to_all_of_them() {
    let mut run = found_on_one(SPEC, &ALL);
    assert!(!run.array.is_recorded());
    run.run_until_quiet();
    assert!(run.array.is_recorded());
    let book = says(&run, 0);
    assert_eq!((Some(book.generation), book.state), (run.array.generation(), State::Clean));
    for (drive, lba) in ALL.into_iter().flat_map(|drive| [(drive, 0), (drive, SIZE - 1)]) {
        let sector = run.drives[drive].bytes(extent(lba, 1));
        assert_eq!(Superblock::decode(sector).unwrap().book, book, "drive {drive}, copy at {lba}");
    }
}

/// Where one drive is redundant two that have both copies are enough, and nothing is written.
#[test]
fn what_was_found_on_enough_drives_is_left_as_it_is() {
    let mut run = found_on_one(SPEC, &ALL);
    // Each copy is written and read back.
    for drive in [[0; 4], [1; 4]].concat() {
        finish(&mut run, drive);
    }
    let mut run = start_over(&run, &ALL);
    assert!(run.array.is_recorded());
    run.run_until_quiet();
    assert_eq!(run.written, 0);
}

/// What was found names the drive that was lost, and the new one holds nothing of what that one held.
#[test]
fn new_drive_is_not_given_the_name_of_one_that_was_lost_without_a_record() {
    for seed in 0..20 {
        let mut run = found_on_one(SPEC, &ALL);
        run.reseed(seed);
        let drive = DriveIdx::new(2);
        run.lose(drive);
        let own = run.array.own(drive).cloned().unwrap();
        run.drives[2].bytes_mut(extent(0, SIZE)).fill(0);
        let uuid = Uuid([9; 16]);
        let new = NewMember { uuid, own };
        run.array.handle_replaced(run.now(), drive, Some(new)).unwrap();
        run.wait(Nanos::ZERO);
        while !run.inside.is_empty() {
            run.finish_any();
            for lba in [0, SIZE - 1] {
                if let Ok(word) = Superblock::decode(run.drives[2].bytes(extent(lba, 1))) {
                    assert_eq!(word.member(), uuid, "seed {seed}, copy at {lba}");
                }
            }
        }
    }
}

/// Where losses are not recorded nothing comes after an entry that can never be on enough drives: it is not waited for.
#[test]
fn stop_ends_where_what_was_found_can_not_be_recorded() {
    for ends in 0..3 {
        let mut run = found_on_one("raid1:2,chunk=8KiB", &[0, 1]);
        (0..ends).for_each(|_| run.finish_any());
        run.lose(DriveIdx::new(1));
        run.stop();
        run.run_until_quiet();
        assert_eq!(run.ending, Some(Ending::Clean), "{ends} ends");
    }
}

#[test]
fn wish_that_is_told_before_what_was_found_is_recorded_comes_after_it() {
    let mut run = found_on_one(SPEC, &ALL);
    run.array.handle_rebuild_wish(run.now(), RebuildWish::default());
    run.run_until_quiet();
    assert_eq!(says(&run, 2).wishes, Wishes::default());
    stop(&mut run);
}
