//! The array's own work beside its clients: what it takes, and when it begins by itself.

use levelhead_array::journal::rules::{Rule, Rules};
use levelhead_array::{Blame, Budget, JournalSettings, Policy, Settings, Submit, VerifySettings};
use levelhead_block::Command;
use levelhead_units::{DriveIdx, DriveSet, Lba, Nanos, Sectors};

use crate::runtime::{Runtime, extent, journaled, settings};
use crate::verify::status;

const STRIPES: u64 = 40;

const BUDGET: Budget = Budget {
    step: Sectors::new(4),
    memory: Sectors::new(64),
    pause: Nanos::from_millis(250),
    mark: Nanos::from_secs(30),
};

/// An array of single-sector chunks of which no redundancy is valid: a step is four stripes.
fn unsynced(background: Option<Budget>) -> Runtime {
    let spec = "raid5:3+1,chunk=4KiB".parse().unwrap();
    let plain = settings(spec, STRIPES, Policy::Normal, DriveSet::EMPTY);
    Runtime::new(&Settings { synced: 0, background, ..plain }, 1)
}

#[test]
fn idle_array_makes_its_redundancy_valid_by_itself_and_only_where_it_is_to() {
    let mut run = unsynced(Some(BUDGET));
    assert_eq!(run.array.deadline(), Some(run.now()), "no request is needed first");
    run.wait(Nanos::ZERO);
    run.run_until_quiet();
    assert_eq!(run.array.synced(), STRIPES);
    assert_eq!(run.written, STRIPES, "one redundant chunk a stripe");
    let mut run = unsynced(None);
    run.wait(Nanos::from_secs(9));
    assert!(run.inside.is_empty() && run.array.synced() == 0);
}

/// B2. How far it is, every 250 ms, while a client waits for a read that ends only then.
#[test]
fn resync_pauses_between_its_steps_while_a_client_waits() {
    let mut run = unsynced(Some(BUDGET));
    run.read(1, extent(STRIPES * 3 - 1, 1)); // the stripes of the last step
    let own = |run: &Runtime| {
        let is_own = |origin: u64| origin > u64::MAX / 2;
        run.inside.iter().position(|submit| is_own(submit.origin))
    };
    for step in 1..=5 {
        while let Some(at) = own(&run) {
            run.finish(at);
        }
        assert_eq!(run.array.synced(), step * 4, "one step each pause");
        run.wait(Nanos::from_millis(240));
        assert_eq!(own(&run), None, "it holds still");
        run.wait(Nanos::from_millis(10));
    }
    run.run_until_quiet();
    assert!(run.take(1).unwrap().0.outcome.is_good());
    run.wait(Nanos::from_millis(250));
    run.run_until_quiet();
    assert_eq!(run.array.synced(), STRIPES, "no request is unanswered");
}

#[test]
fn array_that_is_to_end_soon_begins_no_step() {
    let mut run = unsynced(Some(BUDGET));
    run.wait(Nanos::ZERO);
    assert!(run.inside.iter().all(|submit| matches!(submit.command, Command::Read { .. })));
    run.stop();
    run.run_until_quiet();
    assert_eq!(run.array.synced(), 4, "the step under way ends");
    assert!(run.ending.is_some());
}

/// A mirror of 40 stripes, a sector each, of which drive 0 is lost.
fn without_drive_0(budget: Budget, rules: Rules) -> Runtime {
    let spec = "raid1:2,chunk=4KiB".parse().unwrap();
    let plain = journaled(settings(spec, STRIPES, Policy::Normal, DriveSet::EMPTY));
    let journal = plain.journal.clone().map(|known| JournalSettings { rules, ..known });
    let mut run = Runtime::new(&Settings { background: Some(budget), journal, ..plain.clone() }, 1);
    run.lose(DriveIdx::new(0));
    run
}

/// Replaces drive 0, and no drive completes a command. Returns the number of reads for the rebuild.
fn begin_filling(run: &mut Runtime) -> u64 {
    run.replace(DriveIdx::new(0));
    run.wait(Nanos::ZERO);
    run.array.counters().rebuild_reads
}

/// Lets time pass from deadline to deadline: each is later than the one before it.
fn times_until(run: &mut Runtime, end: Nanos) {
    let end = run.now() + end;
    while let Some(at) = run.array.deadline().filter(|&at| at <= end) {
        assert!(at > run.now(), "the deadline {at:?} is not in the future");
        run.wait(at.saturating_since(run.now()));
    }
    run.wait(end.saturating_since(run.now()));
}

/// While no clients are about. A step reads one stripe of one drive.
#[test]
fn rebuild_has_eight_steps_under_way_or_as_many_as_memory_allows() {
    let one = Budget { step: Sectors::new(1), ..BUDGET };
    assert_eq!(begin_filling(&mut without_drive_0(one, Rules::ALL)), 8);
    // Two such steps of two drives would take more than 120 MiB.
    let large = Budget { step: Sectors::new(10 << 10), memory: Sectors::new(2), ..BUDGET };
    assert_eq!(begin_filling(&mut without_drive_0(large, Rules::ALL)), 1);
}

#[test]
fn step_of_a_rebuild_waits_for_an_idle_drive_but_no_longer_than_five_seconds() {
    let one = Budget { step: Sectors::new(1), ..BUDGET };
    let mut run = without_drive_0(one, Rules::ALL);
    run.read(1, extent(7, 1)); // The drive does not complete it.
    assert_eq!(begin_filling(&mut run), 0);
    times_until(&mut run, Nanos::from_millis(4_900));
    assert_eq!(run.array.counters().rebuild_reads, 0);
    times_until(&mut run, Nanos::from_millis(200));
    assert_eq!(run.array.counters().rebuild_reads, 1);
    times_until(&mut run, Nanos::from_secs(60));
    assert_eq!(run.array.counters().rebuild_reads, 1, "one step beside clients");
}

/// FI1; with the rule left out, the step does not wait.
#[test]
fn step_of_a_rebuild_waits_for_the_write_of_its_stripes() {
    for (rules, reads) in [(Rules::ALL, 0), (Rules::without(Rule::FillLock), 1)] {
        let mut run = without_drive_0(Budget { step: Sectors::new(STRIPES), ..BUDGET }, rules);
        run.write(1, extent(5, 1), &[5; 4096]);
        begin_filling(&mut run);
        run.run_but_for(|submit| submit.command.is_write(), Nanos::from_secs(6));
        assert_eq!(run.array.counters().rebuild_reads, reads, "{rules:?}");
    }
}

#[test]
fn scrub_begins_where_something_is_redundant_and_the_array_has_not_failed() {
    for (text, lost, begins) in [
        ("raid5:3+1,chunk=4KiB", 0, true),
        ("raid5:3+1,chunk=4KiB", 2, false),
        ("raid0:3,chunk=4KiB", 0, false),
    ] {
        let plain = settings(text.parse().unwrap(), STRIPES, Policy::Normal, DriveSet::EMPTY);
        let mut run = Runtime::new(&Settings { background: Some(BUDGET), ..plain }, 1);
        (0..lost).for_each(|drive| run.lose(DriveIdx::new(drive)));
        assert_eq!(run.array.handle_scrub_start(run.now(), Blame::Drives), begins, "{text}");
    }
}

/// A study of what reads cost has no background work.
#[test]
fn unreadable_sector_is_repaired_only_where_the_array_works_by_itself() {
    for (background, is_repaired) in [(Some(BUDGET), true), (None, false)] {
        let spec = "raid5:3+1,chunk=4KiB".parse().unwrap();
        let plain = settings(spec, STRIPES, Policy::Normal, DriveSet::EMPTY);
        let mut run = Runtime::new(&Settings { background, ..plain }, 1);
        run.bad.extend((0..4).map(|drive| (DriveIdx::new(drive), Lba::new(u64::from(drive)))));
        run.read(1, extent(0, 12));
        run.run_for(Nanos::from_secs(10));
        assert!(run.take(1).unwrap().0.outcome.is_good());
        assert_eq!(run.written > 0, is_repaired);
    }
}

/// The drive accepts the write that repairs the sector, and still does not return it.
#[test]
fn sector_that_is_not_readable_after_its_repair_counts_as_unrepaired() {
    let spec = "raid5:3+1,chunk=4KiB".parse().unwrap();
    let plain = settings(spec, STRIPES, Policy::Normal, DriveSet::EMPTY);
    let mut run = Runtime::new(&Settings { background: Some(BUDGET), ..plain }, 1);
    let bad = (DriveIdx::new(2), Lba::new(9));
    run.bad.insert(bad);
    assert!(run.array.handle_scrub_start(run.now(), Blame::Drives));
    run.wait(Nanos::ZERO);
    while !run.inside.is_empty() {
        run.finish_any();
        run.bad.insert(bad);
    }
    let (counters, found) = (run.array.counters(), run.array.scrub().found);
    assert_eq!((found.unrepaired, found.unreadable), (1, 0));
    assert_eq!((counters.unrepaired_sectors, counters.repaired_unreadable), (1, 0));
    let on: Vec<_> = run.array.found_on().map(|on| (on.drive, on.unrepaired)).collect();
    assert_eq!(on, [(bad.0, 1)]);
}

/// A drive of a mirror completes nothing for a while: a client's write would read the other copy instead, a resync waits.
#[test]
fn resync_does_not_go_round_a_drive() {
    let spec = "raid1:2,chunk=4KiB".parse().unwrap();
    let plain = journaled(settings(spec, 4, Policy::Normal, DriveSet::EMPTY));
    let mut run = Runtime::new(&Settings { synced: 0, ..plain }, 1);
    run.resync();
    let read_of: Vec<DriveIdx> = run.inside.iter().map(|submit| submit.drive).collect();
    assert!(!read_of.is_empty() && read_of.iter().all(|&drive| drive == read_of[0]));
    let is_read = |submit: &Submit| matches!(submit.command, Command::Read { .. });
    run.run_but_for(is_read, Nanos::from_secs(3));
    assert!(run.inside.iter().all(|submit| submit.drive == read_of[0]), "{:?}", run.inside);
    run.run_until_quiet();
    assert_eq!(run.array.synced(), 4);
}

/// The percentage of commands delayed by verification is one of the commands that clients wait for.
#[test]
fn writes_of_a_resync_do_not_count_among_those_that_clients_wait_for() {
    let spec = "raid1:2,chunk=4KiB".parse().unwrap();
    let plain = settings(spec, 8, Policy::Normal, DriveSet::EMPTY);
    let verify = Some(VerifySettings::IDLE);
    let mut run = crate::verify::run(&Settings { synced: 0, verify, ..plain });
    run.write(1, extent(0, 1), &[1; 4096]);
    run.run_until_quiet();
    run.wait(Nanos::from_secs(10));
    assert!(run.inside.iter().any(|submit| matches!(submit.command, Command::Read { .. })));
    run.write(2, extent(3, 1), &[2; 4096]);
    run.run_until_quiet();
    let delayed = status(&run).delayed_percent;
    assert!(0.0 < delayed && delayed < 100.0, "{delayed}");
    while run.array.synced() < 8 {
        run.resync();
        run.run_until_quiet();
    }
    assert!((status(&run).delayed_percent - delayed).abs() < 1e-9);
}
