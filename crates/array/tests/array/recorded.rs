//! What a cut has left of a generation on too few drives, at the next start.

use levelhead_array::metadata::State;
use levelhead_array::superblock::Uuid;
use levelhead_array::{Ending, NewMember, RebuildWish, Wishes};
use levelhead_units::{Bytes, DriveIdx, Nanos, Sectors};

use crate::metadata::{SPEC, end_looks, found, says};
use crate::runtime::{Runtime, extent, finish};
use crate::wishes::{ALL, start_over, stop, stopped_as};

const SIZE: u64 = 700;

/// An array of which a generation was begun that has come to drive 0 alone, found after the cut.
fn found_on_one(text: &str, drives: &[usize]) -> Runtime {
    let mut run = start_over(&stopped_as(text, Sectors::new(SIZE)), drives);
    let wish = RebuildWish { rate_min: Some(Bytes::new(1)), is_paused: true };
    run.array.handle_rebuild_wish(run.now(), wish);
    run.wait(Nanos::ZERO);
    end_looks(&mut run);
    finish(&mut run, 0);
    let run = start_over(&run, drives);
    assert_eq!(run.array.generation(), Some(says(&run, 0).generation));
    assert!(says(&run, 1).generation < says(&run, 0).generation, "it is on drive 0 alone");
    run
}

/// G10: with that drive lost the others would not know what it says, and the array is not opened for it.
#[test]
fn what_was_found_on_too_few_drives_is_given_to_all_of_them() {
    let mut run = found_on_one(SPEC, &ALL);
    assert!(!run.array.is_recorded());
    run.run_until_quiet();
    assert!(run.array.is_recorded());
    let metadata = says(&run, 0);
    assert_eq!(Some(metadata.generation), run.array.generation());
    assert_eq!(metadata.state, State::Clean);
    assert!(ALL.iter().all(|&drive| says(&run, drive) == metadata), "as it was found");
}

/// Where one drive is redundant two that have it are enough, and nothing is written.
#[test]
fn what_was_found_on_enough_drives_is_left_as_it_is() {
    let mut run = found_on_one(SPEC, &ALL);
    // It is written and read back, and the other slot is looked at.
    (0..3).for_each(|_| finish(&mut run, 1));
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
        let new = NewMember { uuid, own, held: None };
        run.array.handle_replaced(run.now(), drive, Some(new)).unwrap();
        run.wait(Nanos::ZERO);
        while !run.inside.is_empty() {
            run.finish_any();
            if let Some(word) = found(&run, &[2])[0].word() {
                assert_eq!(word.superblock.member, uuid, "seed {seed}");
                let named = word.metadata.map(|known| known.members[2].id.uuid);
                assert!(named.is_none_or(|named| named == uuid), "seed {seed}");
            }
        }
    }
}

/// Where losses are not recorded nothing comes after a generation that can never be on enough drives: it is not waited for.
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
