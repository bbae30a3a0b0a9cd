//! What becomes of requests that were given up, of answers that wait for a record, and of a stop with a drive
//! that is silent.

use levelhead_array::assembly::assemble;
use levelhead_array::membership::{Membership, Why};
use levelhead_array::metadata::State;
use levelhead_array::{Ending, Policy, Recorded, Settings, Spec};
use levelhead_block::{Command, Outcome};
use levelhead_units::{DriveIdx, DriveSet, Nanos, Sectors};

use crate::metadata::{LARGE, PATIENCE, SPEC, found, only, says, started, started_on, whole};
use crate::runtime::{Runtime, extent, settings};

fn secs(secs: u64) -> Nanos {
    Nanos::from_secs(secs)
}

/// Writes for a drive that ends nothing, more of them than its window takes, and their answers.
fn give_up_eight(run: &mut Runtime) {
    for id in 0..8 {
        run.write(2 + id, extent(id * 60, 2), &[8; 2 * 4096]);
    }
    run.run_for(secs(125));
    for id in 0..8 {
        assert!(!run.take(2 + id).unwrap().0.outcome.is_good(), "write {id}");
    }
}

/// O2: what was given up and the drive had not got yet is carried out when it answers again, from memory that is
/// still there.
#[test]
fn writes_that_were_given_up_are_carried_out_when_the_drive_answers_again() {
    for text in ["raid0:3,chunk=8KiB", "raid5:3+1,chunk=8KiB"] {
        let mut run = started_on(text, LARGE, true, DriveSet::EMPTY);
        let drives = 0..run.drives.len() as u8;
        run.write(1, extent(0, 2), &[7; 2 * 4096]);
        run.run_until_quiet();
        // More than the layout survives, so that none of them is lost.
        drives.clone().map(DriveIdx::new).for_each(|drive| run.hang(drive));
        give_up_eight(&mut run);
        assert!(run.array.lost().is_empty() && !run.array.is_quiet(), "{text}");
        drives.map(DriveIdx::new).for_each(|drive| run.answer_again(drive));
        run.run_for(secs(1));
        assert!(run.array.is_quiet() && run.writing.is_empty(), "{text}: memory is kept");
        assert_eq!(run.array.synced(), run.array.layout().stripes(), "{text}");
        for id in 0..8 {
            run.read(20 + id, extent(id * 60, 2));
            run.run_until_quiet();
            let (answer, bytes) = run.take(20 + id).unwrap();
            assert!(answer.outcome.is_good(), "{text}");
            // One that had not begun to write when it was given up writes nothing.
            let first = bytes.as_slice()[0];
            assert!([0, 7, 8].contains(&first), "{text}: {first}");
            assert!(
                bytes.as_slice().iter().all(|&byte| byte == first),
                "{text}: write {id} is torn"
            );
        }
    }
}

/// S3: a drive that ends one command every few seconds is never silent for long; its writes do not fail for it.
#[test]
fn drive_that_ends_too_little_is_lost_before_writes_are_given_up_for_it() {
    let mut run = started_on(SPEC, LARGE, true, DriveSet::EMPTY);
    run.write(1, extent(0, 2), &[7; 2 * 4096]);
    run.run_until_quiet();
    run.take(1).unwrap();
    let slow = DriveIdx::new(0);
    run.hang(slow);
    for id in 2..60 {
        run.write(id, extent(id * 30, 24), &[8; 24 * 4096]);
    }
    let of_slow = |run: &Runtime| run.inside.iter().position(|submit| submit.drive == slow);
    for _ in 0..30 {
        run.run_for(secs(4));
        if run.array.lost() == only(0) {
            break;
        }
        let at = of_slow(&run).unwrap();
        run.finish(at);
    }
    for id in 2..60 {
        assert!(run.take(id).unwrap().0.outcome.is_good(), "write {id}");
    }
    // It ends one more of the commands inside it, and a stop does not wait for the others.
    let at = of_slow(&run).unwrap();
    run.finish(at);
    assert!(of_slow(&run).is_some());
    run.stop();
    run.run_for(PATIENCE.silent + secs(1));
    assert_eq!(run.ending, Some(Ending::Clean));
}

/// P1, P2: the same with a drive that has no room. In the end nothing is sent again.
#[test]
fn refused_writes_that_were_given_up_are_carried_out_when_there_is_room() {
    let mut run = started_on("raid0:3,chunk=8KiB", LARGE, true, DriveSet::EMPTY);
    run.write(1, extent(0, 2), &[7; 2 * 4096]);
    run.run_until_quiet();
    run.refuse(DriveIdx::new(0));
    run.flush(30);
    give_up_eight(&mut run);
    assert_eq!(run.take(30).unwrap().0.outcome, Outcome::Gone);
    assert!(run.array.lost().is_empty());
    run.accept(DriveIdx::new(0));
    run.run_for(secs(10));
    assert!(run.array.is_quiet() && run.writing.is_empty());
    run.write(31, extent(0, 2), &[9; 2 * 4096]);
    run.run_until_quiet();
    assert!(run.take(31).unwrap().0.outcome.is_good());
}

/// A command that no operation waits for is dropped when it is refused, and costs no drive.
#[test]
fn refused_flush_that_was_given_up_is_not_sent_again() {
    let mut run = whole("raid0:3,chunk=8KiB");
    run.write(1, extent(0, 24), &[7; 24 * 4096]);
    run.run_until_quiet();
    run.refuse(DriveIdx::new(0));
    run.flush(2);
    run.run_for(secs(125));
    assert_eq!(run.take(2).unwrap().0.outcome, Outcome::Gone);
    // The metadata that was written meanwhile is sent again, and nothing else.
    run.accept(DriveIdx::new(0));
    run.run_for(secs(10));
    assert!(run.array.is_quiet() && run.array.lost().is_empty());
}

/// O3: the memory of writes that were given up is bounded, and what is beyond it fails at once.
#[test]
fn writes_fail_at_once_while_too_many_are_given_up() {
    const SECTORS: u64 = 2048;
    let mut run = started_on("raid0:2,chunk=8MiB", Sectors::new(1 << 17), true, DriveSet::EMPTY);
    run.write(0, extent(0, 1), &[7; 4096]);
    run.run_until_quiet();
    run.hang(DriveIdx::new(0));
    run.hang(DriveIdx::new(1));
    let bytes = vec![8; SECTORS as usize * 4096];
    for id in 1..=12 {
        run.write(id, extent(id * 2 * SECTORS, SECTORS), &bytes);
        run.run_for(secs(121));
        assert!(!run.take(id).unwrap().0.outcome.is_good());
        assert_eq!(run.writing.len(), id.min(8) as usize, "after {id} writes");
    }
    run.write(20, extent(0, 1), &[9; 4096]);
    assert!(!run.take(20).unwrap().0.outcome.is_good(), "at once");
    run.answer_again(DriveIdx::new(0));
    run.answer_again(DriveIdx::new(1));
    run.run_for(secs(1));
    assert!(run.writing.is_empty());
    run.write(21, extent(0, 1), &[9; 4096]);
    run.run_until_quiet();
    assert!(run.take(21).unwrap().0.outcome.is_good());
}

/// O1: an answer that waits for the record of a loss is a failure in the end.
#[test]
fn held_answer_is_given_up_when_the_loss_cannot_be_recorded() {
    for is_stopping in [false, true] {
        let mut run = whole("raid6:2+2,chunk=8KiB");
        run.write(1, extent(0, 1), &[7; 4096]);
        run.run_until_quiet();
        run.write(2, extent(0, 16), &[8; 16 * 4096]);
        run.lose(DriveIdx::new(3));
        run.finish_all_but_records();
        assert!(run.take(2).is_none(), "G2");
        run.hang(DriveIdx::new(1));
        run.hang(DriveIdx::new(2));
        run.run_for(secs(1));
        let limit = if is_stopping {
            run.array.handle_stop_soon(run.now());
            PATIENCE.lost + PATIENCE.silent
        } else {
            PATIENCE.answer()
        };
        run.run_for(limit + secs(1));
        assert!(!run.take(2).unwrap().0.outcome.is_good());
    }
}

/// Ends commands until all flushes have ended and the last generations are under way.
fn stop_up_to_the_last_generations(run: &mut Runtime) {
    run.write(1, extent(0, 9), &[7; 9 * 4096]);
    run.run_until_quiet();
    run.stop();
    while let Some(at) = run.inside.iter().position(|sub| sub.command == Command::Flush) {
        run.finish(at);
    }
}

/// A drive that says nothing for some seconds at the end is no stale one at the next start.
#[test]
fn stall_during_the_last_generations_costs_no_drive() {
    let mut run = whole(SPEC);
    stop_up_to_the_last_generations(&mut run);
    run.hang(DriveIdx::new(1));
    run.run_for(secs(20));
    assert_eq!(run.ending, None, "it is waited for");
    let assembly = assemble(&found(&run, &[0, 1, 2, 3])).unwrap();
    assert!(assembly.absent.is_empty(), "a crash meanwhile costs no drive either");
    run.answer_again(DriveIdx::new(1));
    run.run_for(secs(1));
    assert_eq!(run.ending, Some(Ending::Clean));
    assert!(run.array.lost().is_empty());
    let assembly = assemble(&found(&run, &[0, 1, 2, 3])).unwrap();
    assert!(assembly.lagging.is_empty() && assembly.metadata.state == State::Clean);
}

/// One that stays silent is lost, and the last generations say so.
#[test]
fn drive_that_stays_silent_during_the_last_generations_is_recorded_as_lost() {
    let mut run = whole(SPEC);
    stop_up_to_the_last_generations(&mut run);
    run.hang(DriveIdx::new(1));
    run.run_for(PATIENCE.answer() + secs(1));
    assert_eq!((run.ending, run.array.lost()), (Some(Ending::Clean), only(1)));
    let metadata = says(&run, 0);
    let membership = Membership::Lost { why: Why::Silent };
    assert_eq!((metadata.state, metadata.members[1].membership), (State::Clean, membership));
    assert!(assemble(&found(&run, &[0, 2, 3])).unwrap().doubt.is_none());
}

/// A drive that missed a generation while the array was open is given it before the array is closed.
#[test]
fn drive_that_lags_is_given_the_metadata_before_the_last_generations() {
    let mut run = whole("raid6:2+2,chunk=8KiB");
    run.write(1, extent(0, 1), &[7; 4096]);
    run.run_until_quiet();
    run.hang(DriveIdx::new(1));
    run.read(2, extent(0, 16));
    run.run_for(secs(20));
    run.lose(DriveIdx::new(3));
    run.run_for(secs(10));
    run.stop();
    run.run_for(secs(5));
    run.answer_again(DriveIdx::new(1));
    run.run_for(secs(5));
    assert_eq!((run.ending, run.array.lost()), (Some(Ending::Clean), only(3)));
    assert!(assemble(&found(&run, &[0, 1, 2])).unwrap().lagging.is_empty());
}

/// G7, after a resync in the same run: its own flush may end after those of the stop.
#[test]
fn array_that_stops_right_after_a_resync_says_clean() {
    for seed in 0..100 {
        let mut run = started_on(SPEC, LARGE, false, DriveSet::EMPTY);
        run.reseed(seed);
        while run.array.synced() < run.array.layout().stripes() {
            run.resync();
            if !run.inside.is_empty() {
                run.finish_any();
            }
        }
        run.stop();
        run.run_until_quiet();
        assert_eq!(run.ending, Some(Ending::Clean), "seed {seed}");
        assert_eq!(says(&run, 0).state, State::Clean, "seed {seed}");
    }
}

/// A clean stop leaves no less to go on with than a crash.
#[test]
fn stop_after_a_loss_during_a_resync_forgets_nothing() {
    const SPEC: &str = "raid4:3+1,chunk=8KiB";
    let mut run = started_on(SPEC, LARGE, true, DriveSet::EMPTY);
    run.write(1, extent(0, 6), &[7; 6 * 4096]);
    run.run_until_quiet();
    let assembly = assemble(&found(&run, &[0, 1, 2, 3])).unwrap();
    let spec: Spec = SPEC.parse().unwrap();
    let settings = Settings {
        area: assembly.area.clone(),
        synced: assembly.trusted,
        lost: assembly.absent,
        recorded: Some(Recorded::of(&assembly, levelhead_array::superblock::Uuid([3; 16]))),
        patience: Some(PATIENCE),
        ..settings(spec, 1, Policy::Normal, DriveSet::EMPTY)
    };
    let mut again = Runtime::with_drives_of(&settings, 1, LARGE);
    again.drives = run.drives.clone();
    again.resync();
    again.run_until_quiet();
    let stripes = again.array.layout().stripes();
    assert!((1..stripes).contains(&again.array.synced()), "a part of it is valid again");
    again.lose(DriveIdx::new(1));
    again.run_until_quiet();
    let crashed = assemble(&found(&again, &[0, 2, 3])).unwrap();
    again.stop();
    again.run_until_quiet();
    assert_eq!(again.ending, Some(Ending::Clean));
    let stopped = assemble(&found(&again, &[0, 2, 3])).unwrap();
    assert_eq!((crashed.trusted, stopped.trusted), (stripes, stripes));
    assert!(crashed.doubt.is_some() && stopped.doubt.is_some(), "an operator decides");
}

/// Every flush that waits when a drive is lost says that writes may be gone.
#[test]
fn all_flushes_under_way_fail_when_a_loss_costs_writes() {
    let mut run = started(SPEC, false, DriveSet::EMPTY);
    run.write(1, extent(0, 24), &[7; 24 * 4096]);
    run.run_until_quiet();
    run.flush(2);
    run.flush(3);
    run.lose(DriveIdx::new(0));
    run.run_until_quiet();
    run.flush(4);
    run.run_until_quiet();
    let outcomes = [2, 3, 4].map(|id| run.take(id).unwrap().0.outcome);
    assert_eq!(outcomes, [Outcome::Gone, Outcome::Gone, Outcome::GOOD]);
}

/// An array that records nothing ends in time, and asks for nothing more.
#[test]
fn array_that_records_nothing_ends_although_a_drive_hangs() {
    let spec: Spec = "raid0:3,chunk=8KiB".parse().unwrap();
    let patience = Some(PATIENCE);
    let settings = Settings { patience, ..settings(spec, 9, Policy::Normal, DriveSet::EMPTY) };
    let mut run = Runtime::new(&settings, 1);
    run.hang(DriveIdx::new(0));
    run.write(1, extent(0, 6), &[7; 6 * 4096]);
    run.stop();
    run.run_for(PATIENCE.answer() + secs(1));
    assert_eq!(run.ending, Some(Ending::Unsafe { silent: only(0) }));
    assert!(run.array.deadline().is_none_or(|at| at > run.now()), "it asks to be called at once");
}

/// A record that was refused, in either slot, is not sent again once its drive is lost.
#[test]
fn refused_record_of_a_drive_that_is_lost_meanwhile_is_dropped() {
    for slot in [1, 128] {
        let mut run = whole(SPEC);
        let drive = DriveIdx::new(1);
        run.write(1, extent(0, 1), &[7; 4096]);
        let is_it = |submit: &levelhead_array::Submit| {
            let lba = submit.command.extent().map(|extent| extent.lba.get());
            submit.drive == drive && lba == Some(slot)
        };
        while !run.inside.iter().any(is_it) {
            let at = run.inside.iter().position(|submit| submit.drive == drive);
            run.finish(at.unwrap_or(0));
        }
        run.refuse(drive);
        let at = run.inside.iter().position(is_it).unwrap();
        run.finish(at);
        run.lose(drive);
        run.run_for(secs(1));
        assert!(run.take(1).unwrap().0.outcome.is_good(), "slot at {slot}");
        run.stop();
        run.run_until_quiet();
        assert_eq!(run.ending, Some(Ending::Clean));
    }
}

/// A flush that began before a write was answered does not speak for that write.
#[test]
fn flush_after_a_write_that_is_gone_fails_although_an_earlier_one_has_failed() {
    let mut run = started(SPEC, false, DriveSet::EMPTY);
    run.write(1, extent(0, 24), &[7; 24 * 4096]);
    run.run_until_quiet();
    run.flush(2);
    run.write(3, extent(0, 24), &[8; 24 * 4096]);
    while let Some(at) = run.inside.iter().position(|sub| sub.command != Command::Flush) {
        run.finish(at);
    }
    assert!(run.take(3).unwrap().0.outcome.is_good());
    run.lose(DriveIdx::new(0));
    run.run_until_quiet();
    for (id, expected) in [(4, Outcome::Gone), (5, Outcome::GOOD)] {
        run.flush(id);
        run.run_until_quiet();
        assert_eq!(run.take(id).unwrap().0.outcome, expected, "flush {id}");
    }
    assert_eq!(run.take(2).unwrap().0.outcome, Outcome::Gone);
}

/// A drive that lags and is heard while the last flush is under way is given the metadata before the loss of
/// another drive is recorded.
#[test]
fn drive_that_lags_is_given_the_metadata_before_a_loss_during_the_last_flush() {
    let mut run = whole("raid6:2+2,chunk=8KiB");
    let lagging = DriveIdx::new(1);
    run.hang(lagging);
    // An operator's word opens the array, and no data is written.
    run.array.handle_lost(run.now(), DriveIdx::new(3), Why::ByHand);
    run.run_for(secs(20));
    assert!(run.array.unrecorded().is_empty(), "two of three have recorded it");
    run.stop();
    let at = run.inside.iter().position(|sub| sub.drive == lagging && sub.command.is_write());
    run.finish(at.unwrap());
    run.lose(DriveIdx::new(2));
    run.answer_again(lagging);
    run.run_for(secs(5));
    assert_eq!(run.ending, Some(Ending::Clean));
    assert!(assemble(&found(&run, &[0, 1])).unwrap().lagging.is_empty());
}
