//! What operators have said of the array's own work, over stops, cuts and starts.

use levelhead_array::assembly::assemble;
use levelhead_array::metadata::{Forced, Inscription, Metadata, State};
use levelhead_array::superblock::Uuid;
use levelhead_array::{
    ArrayEvent, Blame, Budget, Policy, RebuildWish, Recorded, ScrubProgress, ScrubState, Settings,
    Submit, Wishes,
};
use levelhead_block::{BlockDevice, Memory};
use levelhead_units::{Bytes, DriveIdx, DriveSet, Extent, Lba, Nanos, Sectors};

use crate::metadata::{LARGE, PATIENCE, SPEC, end_looks, found, only, says, started_on};
use crate::runtime::{Runtime, extent, settings};

/// The array that is found on these drives, and that works by itself.
pub(crate) fn start_over(run: &Runtime, drives: &[usize]) -> Runtime {
    let mut next = start_over_with(run, drives, Some(Budget::DEFAULT));
    // What was told at its start.
    next.wait(Nanos::ZERO);
    next
}

/// The same with this budget for its own work, before it has done anything.
pub(crate) fn start_over_with(
    run: &Runtime,
    drives: &[usize],
    background: Option<Budget>,
) -> Runtime {
    let assembly = assemble(&found(run, drives)).unwrap();
    let settings = Settings {
        area: assembly.area.clone(),
        synced: assembly.trusted,
        lost: assembly.absent,
        recorded: Some(Recorded::of(&assembly, Uuid([3; 16]))),
        patience: Some(PATIENCE),
        background,
        ..settings(assembly.metadata.spec, 1, Policy::Normal, DriveSet::EMPTY)
    };
    let mut next = Runtime::with_drives_of(&settings, 1, run.drives[0].size());
    for (copy, drive) in next.drives.iter_mut().zip(&run.drives) {
        let all = Extent::new(Lba::ZERO, Memory::size(drive));
        copy.bytes_mut(all).copy_from_slice(drive.bytes(all));
    }
    next
}

pub(crate) const ALL: [usize; 4] = [0, 1, 2, 3];

/// Drives of a whole array as a stop leaves them.
fn stopped(size: Sectors) -> Runtime {
    stopped_as(SPEC, size)
}

pub(crate) fn stopped_as(text: &str, size: Sectors) -> Runtime {
    let mut run = started_on(text, size, true, DriveSet::EMPTY);
    run.write(1, extent(9, 1), &[9; 4096]);
    run.run_until_quiet();
    stop(&mut run);
    run
}

/// The same started, with drives on which a scrub takes several steps; a write has opened it, or none.
fn whole(is_open: bool) -> Runtime {
    let mut run = start_over(&stopped(LARGE), &ALL);
    if is_open {
        run.write(1, extent(0, 1), &[1; 4096]);
        run.run_until_quiet();
    }
    run
}

fn begin_scrub(run: &mut Runtime) {
    assert!(run.array.handle_scrub_start(run.now(), Blame::Drives));
    run.wait(Nanos::ZERO);
}

/// A command for the metadata, which comes first here: it is read back as well, and takes as long as a scrub otherwise.
fn of_records(run: &Runtime) -> Option<usize> {
    let is_of_records =
        |submit: &Submit| submit.command.extent().is_some_and(|extent| extent.lba.get() < 255);
    run.inside.iter().position(is_of_records)
}

/// Until it has seen something, and not everything. That it has begun is on all drives then.
fn scrub_a_part(run: &mut Runtime) -> u64 {
    begin_scrub(run);
    while let Some(at) = of_records(run) {
        run.finish(at);
    }
    run.run_until(|run| run.array.scrub().to > 0);
    let ScrubProgress { state, to, stripes, .. } = run.array.scrub();
    assert_eq!(state, ScrubState::Running);
    assert!(to < stripes, "it has seen everything in a step");
    to
}

pub(crate) fn stop(run: &mut Runtime) {
    run.stop();
    run.run_until_quiet();
    assert!(run.ending.is_some());
}

fn told_begun(run: &Runtime) -> Vec<u64> {
    let begun = run.array_events.iter().filter_map(|event| match event {
        ArrayEvent::ScrubBegun(progress) => Some(progress.to),
        _ => None,
    });
    begun.collect()
}

#[test]
fn scrub_that_was_under_way_goes_on_from_where_it_was() {
    for is_open in [false, true] {
        let mut run = whole(is_open);
        let before = run.array.generation();
        scrub_a_part(&mut run);
        let state = if is_open { State::Dirty } else { State::Clean };
        assert_eq!(says(&run, 2).state, state, "an array is not opened for that");
        stop(&mut run);
        let to = run.array.scrub().to;
        assert!(run.array.generation() > before);
        let mut run = start_over(&run, &ALL);
        assert_eq!(told_begun(&run), [to]);
        run.run_for(Nanos::from_secs(60));
        let ScrubProgress { state, to: end, stripes, .. } = run.array.scrub();
        assert_eq!((state, end), (ScrubState::Done, stripes));
        assert_eq!(run.array.counters().scrubbed_stripes, stripes - to);
        stop(&mut run);
        for drive in ALL {
            let metadata = says(&run, drive);
            assert_eq!((metadata.wishes, metadata.state), (Wishes::default(), State::Clean));
            assert_eq!(Some(metadata.generation), run.array.generation());
        }
        assert_eq!(start_over(&run, &ALL).array.scrub().state, ScrubState::Idle);
    }
}

/// Beside the resync that follows a crash of an array without a journal: it does not end before what that makes valid.
#[test]
fn scrub_that_was_cut_off_goes_on_from_its_last_mark() {
    for is_open in [false, true] {
        let mut run = whole(is_open);
        scrub_a_part(&mut run);
        let mark = says(&run, 1).wishes.scrub.unwrap();
        assert_eq!(mark.to, 0, "it was recorded when it began");
        let mut run = start_over(&run, &ALL);
        assert_eq!(told_begun(&run), [0]);
        run.run_for(Nanos::from_secs(60));
        let ScrubProgress { state, to, stripes, .. } = run.array.scrub();
        assert_eq!((state, to), (ScrubState::Done, stripes));
        stop(&mut run);
    }
    // A minute later the mark has moved.
    let mut run = whole(false);
    scrub_a_part(&mut run);
    let to = run.array.scrub().to;
    run.wait(Nanos::from_secs(61));
    run.run_until(|run| says(run, 3).wishes.scrub.is_some_and(|mark| mark.to > to));
    let mark = says(&run, 3).wishes.scrub.unwrap();
    assert!(mark.to <= run.array.scrub().to);
}

#[test]
fn scrub_that_was_stopped_waits_to_be_told_to_go_on() {
    let mut run = whole(false);
    scrub_a_part(&mut run);
    assert!(run.array.handle_scrub_stop(run.now()));
    run.wait(Nanos::ZERO);
    run.run_until_quiet();
    let to = run.array.scrub().to;
    // It is on the drives without a stop.
    let mut run = start_over(&run, &ALL);
    assert_eq!((run.array.scrub().state, run.array.scrub().to), (ScrubState::Stopped, to));
    run.run_for(Nanos::from_secs(60));
    assert_eq!(run.array.counters().scrubbed_stripes, 0);
    begin_scrub(&mut run);
    assert_eq!(told_begun(&run), [to]);
}

/// The mark that something was forced stays where the part before the restart has found something.
#[test]
fn what_a_scrub_has_found_counts_after_a_restart() {
    for is_wrong in [false, true] {
        let mut run = stopped(LARGE);
        for (drive, found) in found(&run, &ALL).iter().enumerate() {
            let held = found.word().unwrap().held.unwrap();
            let slot = found.good().unwrap().own.slots()[held.slot].lba.get();
            let metadata = Metadata { forced: Forced::Yes, ..says(&run, drive) };
            let holder = metadata.members[drive].id;
            let bytes = Inscription { metadata: metadata.into(), holder }.encode();
            run.drives[drive].bytes_mut(extent(slot, 1)).copy_from_slice(&bytes);
        }
        if is_wrong {
            let place = run.array.area().on_drive(extent(3, 1));
            run.drives[1].bytes_mut(place).fill(1);
        }
        let mut run = start_over(&run, &ALL);
        scrub_a_part(&mut run);
        if is_wrong {
            while run.array.scrub().found.unlocated == 0 {
                run.finish(of_records(&run).unwrap_or(0));
            }
        }
        stop(&mut run);
        let mut run = start_over(&run, &ALL);
        assert!(run.array.scrub().to > 3 / 2, "what is wrong was seen before");
        assert_eq!(run.array.scrub().found.unlocated, u64::from(is_wrong));
        run.run_for(Nanos::from_secs(60));
        assert_eq!(run.array.scrub().state, ScrubState::Done);
        stop(&mut run);
        let forced = if is_wrong { Forced::Yes } else { Forced::No };
        assert_eq!(says(&run, 0).forced, forced);
    }
}

/// Whatever a cut leaves of a generation that says it, no drive is lost for it, and the scrub is known or not.
#[test]
fn array_that_is_cut_off_while_it_records_a_wish_starts_with_all_its_drives() {
    let stopped = stopped(Sectors::new(700));
    for seed in 0..20 {
        for ends in 0..24 {
            let mut run = start_over(&stopped, &ALL);
            run.reseed(seed);
            begin_scrub(&mut run);
            for _ in 0..ends {
                if !run.inside.is_empty() {
                    run.finish_any();
                }
            }
            let mut run = start_over(&run, &ALL);
            assert!(run.array.lost().is_empty());
            run.write(1, extent(0, 1), &[1; 4096]);
            run.run_for(Nanos::from_secs(60));
            assert!(run.take(1).unwrap().0.outcome.is_good(), "seed {seed}, {ends} ends");
            stop(&mut run);
            let generations = ALL.map(|drive| says(&run, drive).generation);
            assert_eq!(generations, [generations[0]; 4], "seed {seed}, {ends} ends");
        }
    }
}

/// A start without it may be a mistake.
#[test]
fn nothing_is_recorded_while_a_drive_is_merely_not_there() {
    let whole = whole(false);
    let mut run = start_over(&whole, &[0, 1, 3]);
    let before = says(&run, 0);
    let wish = RebuildWish { rate_min: None, is_paused: true };
    run.array.handle_rebuild_wish(run.now(), wish);
    begin_scrub(&mut run);
    stop(&mut run);
    assert_eq!(says(&run, 0), before);
    // A write records that it is missing, and the rest with it.
    let mut run = start_over(&whole, &[0, 1, 3]);
    run.array.handle_rebuild_wish(run.now(), wish);
    run.write(1, extent(0, 1), &[1; 4096]);
    run.run_until_quiet();
    assert_eq!(says(&run, 0).wishes.rebuild, wish);
}

/// G9: what is said while a generation is under way is said by the one after it, however often it changes.
#[test]
fn wishes_that_come_while_one_is_recorded_take_one_generation_more() {
    let mut run = whole(false);
    let before = says(&run, 0).generation;
    let wish = |rate| RebuildWish { rate_min: Some(Bytes::new(rate)), is_paused: false };
    for rate in 1..6 {
        run.array.handle_rebuild_wish(run.now(), wish(rate));
        run.wait(Nanos::ZERO);
        if rate == 1 {
            end_looks(&mut run);
        }
    }
    run.run_until_quiet();
    let Metadata { generation, wishes, .. } = says(&run, 0);
    assert_eq!((generation, wishes.rebuild), (before.plus(17), wish(5)));
}

#[test]
fn drive_that_is_silent_while_wishes_are_recorded_is_as_good_as_the_others() {
    let mut run = whole(false);
    for rate in 1..6 {
        let wish = RebuildWish { rate_min: Some(Bytes::new(rate)), is_paused: false };
        run.array.handle_rebuild_wish(run.now(), wish);
        if rate == 1 {
            run.wait(Nanos::ZERO);
            end_looks(&mut run);
            run.hang(DriveIdx::new(1));
        }
        run.run_for(Nanos::from_secs(20));
    }
    assert!(says(&run, 1).generation < says(&run, 0).generation);
    assert_eq!(run.array.silent(), only(1));
    assert!(assemble(&found(&run, &ALL)).unwrap().absent.is_empty());
    run.answer_again(DriveIdx::new(1));
    run.run_for(Nanos::from_secs(20));
    stop(&mut run);
    assert!(assemble(&found(&run, &ALL)).unwrap().absent.is_empty());
}

#[test]
fn what_was_said_of_rebuilds_holds_after_a_restart() {
    let wish = RebuildWish { rate_min: Some(Bytes::new(5_000_000)), is_paused: true };
    for is_open in [false, true] {
        let mut run = whole(is_open);
        run.array.handle_rebuild_wish(run.now(), wish);
        run.wait(Nanos::ZERO);
        run.run_until_quiet();
        // Also without a stop.
        let mut cut = start_over(&run, &ALL);
        assert_eq!(cut.array.rebuild_wish(), wish);
        stop(&mut cut);
        stop(&mut run);
        let mut run = start_over(&run, &ALL);
        assert_eq!(run.array.rebuild_wish(), wish);
        run.array.handle_rebuild_wish(run.now(), RebuildWish::default());
        stop(&mut run);
        assert_eq!(says(&run, 3).wishes, Wishes::default());
    }
}
