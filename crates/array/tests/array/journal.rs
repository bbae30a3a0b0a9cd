//! Arrays with a journal that lose more drives than they survive: what was answered is still right where its drive is
//! there, and nothing waits.

use levelhead_array::{
    Ending, JournalSettings, Left, Patience, Policy, ServerClock, Settings, Spec, Submit,
};
use levelhead_block::{Command, Durability, Outcome};
use levelhead_units::{DriveIdx, DriveSet, Nanos};

use crate::runtime::{Runtime, extent, journaled, settings};

fn array(left: Left) -> Runtime {
    let spec: Spec = "raid5:3+1,chunk=4KiB".parse().unwrap();
    let settings = journaled(settings(spec, 8, Policy::Normal, DriveSet::EMPTY));
    let journal = settings.journal.clone().map(|known| JournalSettings { left, ..known });
    Runtime::new(&Settings { journal, ..settings }, 1)
}

/// The same with short rings.
fn array_with_rings_of(sectors: u64) -> Runtime {
    let spec: Spec = "raid5:3+1,chunk=4KiB".parse().unwrap();
    let plain = settings(spec, 8, Policy::Normal, DriveSet::EMPTY);
    let pieces = vec![extent(plain.area.size().get(), sectors)];
    let start = journaled(plain);
    let journal = start.journal.clone().map(|known| JournalSettings { pieces, ..known });
    Runtime::new(&Settings { journal, ..start }, 1)
}

fn lose_two(run: &mut Runtime) {
    [1, 2].into_iter().for_each(|drive| run.lose(DriveIdx::new(drive)));
}

fn is_all_damaged(outcome: &Outcome, sectors: u32) -> bool {
    matches!(outcome, Outcome::Done { damaged, .. } if (0..sectors).all(|at| damaged.contains(at)))
}

#[test]
fn what_was_answered_and_is_not_in_place_is_read_after_the_array_has_failed() {
    let mut run = array(Left::Drained);
    run.write(0, extent(0, 3), &[7; 3 * 4096]);
    run.run_until_quiet();
    assert!(run.take(0).unwrap().0.outcome.is_good());
    let (placed, first) = (run.array.counters().journal_places, extent(0, 1));
    assert_eq!(placed, 0, "it is in memory alone");
    lose_two(&mut run);
    run.run_for(Nanos::from_secs(20));
    run.read(1, first);
    run.run_until_quiet();
    let (answer, bytes) = run.take(1).unwrap();
    assert!(answer.outcome.is_good() && bytes.as_slice().iter().all(|&byte| byte == 7));
    run.stop();
    run.run_until_quiet();
    assert!(run.buffers.is_empty(), "{} left", run.buffers.len());
    assert_eq!(run.ending, Some(Ending::Failed));
}

/// The last record of a write ends after the array has failed.
#[test]
fn write_whose_records_end_after_the_array_has_failed_is_answered_once_as_failed() {
    let mut run = array(Left::Drained);
    run.write(0, extent(0, 3), &[7; 3 * 4096]);
    while run.inside.iter().any(|sub| !sub.command.is_write()) {
        run.finish(0);
    }
    assert_eq!(run.array.counters().journal_records, 4);
    lose_two(&mut run);
    run.run_until_quiet();
    assert!(is_all_damaged(&run.take(0).unwrap().0.outcome, 3));
    run.stop();
    run.run_until_quiet();
    assert!(run.buffers.is_empty() && run.ending.is_some(), "{} left", run.buffers.len());
}

/// What is in place may be anything.
#[test]
fn array_that_fails_while_it_recovers_gives_nothing() {
    let is_recovering = |run: &Runtime| run.array.journal_status().unwrap().is_recovering;
    assert!(!is_recovering(&array(Left::Drained)));
    let mut run = array(Left::CutOff);
    assert!(is_recovering(&run));
    run.read(0, extent(0, 2));
    run.write(1, extent(0, 1), &[7; 4096]);
    assert!(run.take(0).is_none() && !run.inside.is_empty(), "it waits for the rings");
    lose_two(&mut run);
    run.run_until_quiet();
    run.read(2, extent(3, 1));
    run.run_until_quiet();
    for (id, sectors) in [(0, 2), (1, 1), (2, 1)] {
        let (answer, _) = run.take(id).unwrap_or_else(|| panic!("{id} waits"));
        assert!(is_all_damaged(&answer.outcome, sectors), "{id}: {:?}", answer.outcome);
    }
    run.stop();
    run.run_until_quiet();
    assert!(run.buffers.is_empty() && run.ending.is_some(), "{} left", run.buffers.len());
}

/// Whichever two drives hang, a write reads what it needs from the others, and their rings take its records.
#[test]
fn write_goes_round_any_two_drives_that_hang_at_once() {
    let spec: Spec = "raid6:3+2,chunk=8KiB".parse().unwrap();
    for first in 0..5 {
        for second in first + 1..5 {
            let plain = settings(spec, 40, Policy::Normal, DriveSet::EMPTY);
            let (patience, end) = (Some(Patience::DEFAULT), plain.area.size().get());
            let start = journaled(plain);
            let pieces = vec![extent(end, 400)];
            let journal = start.journal.clone().map(|known| JournalSettings { pieces, ..known });
            let mut run = Runtime::new(&Settings { patience, journal, ..start }, 1);
            let hung = [first, second].map(DriveIdx::new);
            // One of them holds a record already when it begins to hang, the other does not.
            run.write(0, extent(60, 1), &[1; 4096]);
            hung.into_iter().for_each(|drive| run.hang(drive));
            for id in 1..13 {
                run.write(id, extent(id, 1), &[id as u8; 4096]);
            }
            run.run_for(Nanos::from_millis(900));
            for id in 0..13 {
                let (answer, _) =
                    run.take(id).unwrap_or_else(|| panic!("{hung:?}: write {id} waits"));
                assert_eq!(answer.outcome, Outcome::GOOD, "{hung:?}: write {id}");
            }
            assert!(run.array.lost().is_empty());
        }
    }
}

/// All drives have completed nothing for longer than the journal waits, as far as the server has seen.
#[test]
fn standstill_of_the_server_sends_no_write_to_other_drives() {
    let mut run = array(Left::Drained);
    run.write(0, extent(0, 1), &[7; 4096]);
    let asked = |run: &Runtime| run.inside.iter().map(|sub| sub.drive).collect::<Vec<DriveIdx>>();
    let before = asked(&run);
    assert_eq!(before.len(), 2, "what it needs for the redundancy");
    run.array.handle_standstill(run.now() + ServerClock::STEP_MAX);
    run.wait(ServerClock::STEP_MAX);
    assert_eq!(asked(&run), before);
    run.wait(ServerClock::STEP_MAX);
    assert_ne!(asked(&run), before, "nothing has come since it runs");
    run.run_until_quiet();
    assert!(run.take(0).unwrap().0.outcome.is_good());
}

/// A flush of what many places left in a drive's memory would keep it from everything else for seconds.
#[test]
fn places_are_durable_writes_and_need_no_flush() {
    let mut run = array(Left::Drained);
    (0..20).for_each(|at| run.write(at, extent(3 * at % 24, 1), &[at as u8; 4096]));
    run.run_until_quiet();
    run.stop();
    let (mut places, mut flushes) = (0, 0);
    while !run.inside.is_empty() {
        for submit in &run.inside {
            match submit.command {
                Command::Write { durability, .. } => {
                    assert_eq!(durability, Durability::Durable);
                    places += 1;
                }
                Command::Flush => flushes += 1,
                Command::Read { .. } | Command::WriteZeroes { .. } | Command::Trim { .. } => {}
            }
        }
        run.finish(0);
    }
    run.run_until_quiet();
    let counters = run.array.counters();
    assert!(places > 0 && counters.journal_places > 0 && run.ending.is_some());
    assert_eq!((counters.journal_flushes, flushes), (0, 0));
}

/// Steps until the announced write of six sectors has given its writes in place to the drives.
fn announce(run: &mut Runtime) {
    run.write(0, extent(0, 6), &[7; 6 * 4096]);
    let is_in_place = |run: &Runtime| run.inside.iter().any(|sub| is_data(sub.command));
    while !is_in_place(run) {
        run.finish(0);
    }
    assert_eq!(run.array.counters().journal_intents, 1);
}

/// Whether it writes where data lies, not on a ring.
fn is_data(command: Command) -> bool {
    command.is_write() && command.extent().is_some_and(|extent| extent.end().get() <= 8)
}

#[test]
fn announced_write_that_a_drive_keeps_is_logged_and_answered_without_it() {
    let mut run = array(Left::Drained);
    announce(&mut run);
    run.hang(DriveIdx::new(0));
    run.run_for(Nanos::from_millis(400));
    assert!(run.take(0).is_none(), "it waits for its drive for half a second");
    assert_eq!(run.array.counters().journal_logged_again, 0);
    run.run_for(Nanos::from_millis(400));
    assert!(run.take(0).expect("it is logged").0.outcome.is_good());
    let counters = run.array.counters();
    assert_eq!(counters.journal_logged_again, 1);
    assert_eq!(counters.journal_hints, 2, "what is for that drive lies on two other rings");
    // What is newer waits until the drive has ended the older one.
    run.write(1, extent(0, 6), &[8; 6 * 4096]);
    run.run_for(Nanos::from_secs(1));
    assert!(run.take(1).expect("it is logged as well").0.outcome.is_good());
    let on_first = run.inside.iter().filter(|sub| sub.drive == DriveIdx::new(0));
    assert_eq!(on_first.filter(|sub| is_data(sub.command)).count(), 1);
    run.answer_again(DriveIdx::new(0));
    run.run_for(Nanos::from_secs(10));
    run.lose(DriveIdx::new(1));
    run.read(2, extent(0, 6));
    run.run_until_quiet();
    let (answer, bytes) = run.take(2).unwrap();
    assert!(answer.outcome.is_good() && bytes.as_slice().iter().all(|&byte| byte == 8));
    run.stop();
    run.run_until_quiet();
    assert!(run.buffers.is_empty() && run.ending.is_some(), "{} left", run.buffers.len());
}

/// Logging it would help nobody: its records need two rings, and only one drive is left that answers.
#[test]
fn announced_write_that_too_many_drives_keep_is_not_logged() {
    let mut run = array(Left::Drained);
    announce(&mut run);
    let hung = [0, 1, 2].map(DriveIdx::new);
    hung.into_iter().for_each(|drive| run.hang(drive));
    run.run_for(Nanos::from_secs(2));
    assert!(run.take(0).is_none());
    assert_eq!(run.array.counters().journal_logged_again, 0);
    hung.into_iter().for_each(|drive| run.answer_again(drive));
    run.run_for(Nanos::from_secs(10));
    assert!(run.take(0).expect("its drives answer again").0.outcome.is_good());
}

/// J7: where redundancy is valid no ring gets the record of another drive, up to the last stripe of which that is known.
#[test]
fn records_lie_on_their_own_rings_where_redundancy_is_valid() {
    let spec: Spec = "raid5:3+1,chunk=4KiB".parse().unwrap();
    let plain = settings(spec, 8, Policy::Normal, DriveSet::EMPTY);
    let mut run = Runtime::new(&journaled(Settings { synced: 8, ..plain }), 1);
    for lba in 0..24 {
        run.write(lba, extent(lba, 1), &[7; 4096]);
        run.run_for(Nanos::from_secs(1));
        assert!(run.take(lba).unwrap().0.outcome.is_good());
        let counters = run.array.counters();
        assert_eq!((counters.journal_records, counters.journal_hints), (2 * (lba + 1), 0));
    }
}

#[test]
fn announcement_that_a_ring_keeps_is_logged_instead() {
    let mut run = array(Left::Drained);
    run.write(0, extent(0, 6), &[7; 6 * 4096]);
    let holder = run.inside.iter().find(|sub| sub.command.is_write()).expect("it is announced");
    let holder = holder.drive;
    run.hang(holder);
    run.run_for(Nanos::from_millis(900));
    assert!(run.take(0).expect("it is logged").0.outcome.is_good());
    let counters = run.array.counters();
    assert_eq!((counters.journal_intents, counters.journal_logged_again), (1, 1));
    run.answer_again(holder);
    run.run_for(Nanos::from_secs(10));
    run.read(1, extent(0, 6));
    run.stop();
    run.run_until_quiet();
    let (answer, bytes) = run.take(1).unwrap();
    assert!(answer.outcome.is_good() && bytes.as_slice().iter().all(|&byte| byte == 7));
    assert!(run.buffers.is_empty() && run.ending.is_some(), "{} left", run.buffers.len());
}

/// Rings with room for one of two: the other one waits for its drive.
#[test]
fn announced_write_that_finds_no_room_waits_for_its_drive() {
    let mut run = array_with_rings_of(12);
    run.write(0, extent(0, 6), &[7; 6 * 4096]);
    run.write(1, extent(12, 6), &[8; 6 * 4096]);
    let in_place = |run: &Runtime| run.inside.iter().filter(|sub| is_data(sub.command)).count();
    while in_place(&run) < 8 {
        let at = run.inside.iter().position(|sub| !is_data(sub.command));
        run.finish(at.expect("records come first"));
    }
    run.hang(DriveIdx::new(0));
    run.run_for(Nanos::from_secs(20));
    let answered = |run: &mut Runtime| [0, 1].map(|id| run.take(id).is_some());
    assert_eq!(answered(&mut run).into_iter().filter(|&is_answered| is_answered).count(), 1);
    assert_eq!(run.array.counters().journal_logged_again, 1);
    run.answer_again(DriveIdx::new(0));
    run.run_for(Nanos::from_secs(10));
    assert_eq!(answered(&mut run).into_iter().filter(|&is_answered| is_answered).count(), 1);
    run.lose(DriveIdx::new(1));
    run.read(3, extent(0, 18));
    run.run_until_quiet();
    let (answer, bytes) = run.take(3).unwrap();
    let sectors: Vec<u8> = bytes.as_slice().chunks(4096).map(|sector| sector[0]).collect();
    assert!(answer.outcome.is_good());
    assert_eq!((&sectors[..6], &sectors[12..]), (&[7; 6][..], &[8; 6][..]));
    run.stop();
    run.run_until_quiet();
    assert!(run.buffers.is_empty() && run.ending.is_some(), "{} left", run.buffers.len());
}

/// N4: part of a write waits for an earlier announcement to be over, and the rings fill behind it meanwhile. Were the rest of
/// it announced at once, nothing on the rings would be over before it, and there would never be room for that part.
#[test]
fn write_of_which_a_part_waits_for_an_announcement_does_not_fill_the_rings_behind_it() {
    let mut run = array_with_rings_of(12);
    run.write(0, extent(0, 6), &[7; 6 * 4096]);
    while run.take(0).is_none() {
        run.finish(0);
    }
    run.write(1, extent(5, 7), &[8; 7 * 4096]);
    for id in 2..14 {
        run.write(id, extent(12 + 3 * (id % 4), 1), &[9; 4096]);
        // The announcement is over after a flush.
        let is_other = |sub: &Submit| sub.command != Command::Flush;
        while let Some(at) = run.inside.iter().position(is_other) {
            run.finish(at);
        }
    }
    run.run_for(Nanos::from_secs(10));
    for id in 1..14 {
        let (answer, _) = run.take(id).unwrap_or_else(|| panic!("write {id} waits"));
        assert!(answer.outcome.is_good());
    }
}

/// J11: where redundancy is not known to be valid for good the records of a drive lie on other rings too, and where the drive is slow
/// they lie there instead. One ring was to get the same record for both reasons; when that drive became slow as well one of the
/// two was withdrawn, and the other was written when its transaction was over, as a header without contents.
#[test]
fn record_that_two_reasons_bring_to_a_ring_goes_there_once() {
    let spec: Spec = "raid6:3+2,chunk=4KiB".parse().unwrap();
    let plain = settings(spec, 8, Policy::Normal, DriveSet::EMPTY);
    let pieces = vec![extent(plain.area.size().get(), 400)];
    let start = journaled(Settings { synced: 0, ..plain });
    let journal = start.journal.clone().map(|known| JournalSettings { pieces, ..known });
    let start = Settings { journal, ..start };
    let pairs = (0..5).flat_map(|slow| (0..5).map(move |slower| (slow, slower)));
    for (slow, slower) in pairs.filter(|(slow, slower)| slow != slower) {
        let [slow, slower] = [slow, slower].map(DriveIdx::new);
        let by_slow = |submit: &Submit| submit.drive == slow;
        let by_slower = |submit: &Submit| submit.drive == slower && submit.command.is_write();
        for lba in 0..24 {
            let mut run = Runtime::new(&start, 1);
            while run.array.synced() < run.array.layout().stripes() {
                run.resync();
                run.run_until_quiet();
            }
            (0..8).for_each(|id| run.write(id, extent(3 * id, 1), &[1; 4096]));
            run.run_but_for(by_slow, Nanos::from_millis(300));
            // The second drive has one record inside when the next one comes, and is not slow yet.
            let by_both = |submit: &Submit| by_slow(submit) || by_slower(submit);
            (8..12).for_each(|id| run.write(id, extent((lba + 3 * id) % 24, 1), &[2; 4096]));
            run.run_but_for(by_both, Nanos::from_millis(30));
            run.write(12, extent(lba, 1), &[3; 4096]);
            run.run_but_for(by_both, Nanos::from_millis(300));
            run.run_but_for(by_slower, Nanos::from_secs(1));
            run.run_but_for(|_| false, Nanos::from_secs(1));
            for id in 0..13 {
                let context = format!("drives {slow} and {slower}, sector {lba}: write {id}");
                let (answer, _) = run.take(id).unwrap_or_else(|| panic!("{context} waits"));
                assert!(answer.outcome.is_good(), "{context}");
            }
            run.stop();
            run.run_until_quiet();
            assert!(run.buffers.is_empty() && run.ending.is_some(), "{} left", run.buffers.len());
        }
    }
}
