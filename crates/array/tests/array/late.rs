//! Drives that are late, slow or sat out: who is asked, and when.

use levelhead_array::{EventKind, Policy, Refusal};
use levelhead_units::{DriveIdx, DriveSet, Nanos};

use crate::runtime::{
    self, Runtime, STRIPE, asked, assert_answered, extent, finish, fresh, run_of,
};

fn run(text: &str, policy: &str) -> Runtime {
    run_of(text, policy, 8)
}

#[test]
fn reactive_asks_for_parity_after_twice_the_median_and_not_before() {
    let mut run = run("raid6:4+2,chunk=4KiB,parity=fixed", "tolerant:reactive");
    run.read(1, extent(0, STRIPE));
    assert_eq!(asked(&run), [0, 1, 2, 3]);
    assert_eq!(run.array.deadline(), None, "no median yet");
    run.wait(Nanos::from_millis(10));
    [0, 1].into_iter().for_each(|drive| finish(&mut run, drive));
    let deadline = run.array.deadline().expect("half of the drives have answered");
    run.wait(Nanos::from_millis(8));
    assert_eq!(asked(&run), [2, 3], "sooner than {deadline:?}");
    run.wait(Nanos::from_millis(4));
    assert_eq!(asked(&run), [2, 3, 4, 5], "both are late: both parities");
    [4, 5].into_iter().for_each(|drive| finish(&mut run, drive));
    assert_answered(&mut run, 1);
    run.run_until_quiet();
    assert!(run.buffers.is_empty() && run.array.is_quiet());
}

/// A read of one drive has no fellows to compare with; it is looked at again and again, at its leisure.
#[test]
fn a_read_of_one_drive_asks_others_only_if_its_drive_is_slower_than_they_are() {
    // Times of nothing are times, too: the array looks again and comes to an end.
    for took in [Nanos::ZERO, Nanos::from_millis(5)] {
        let mut run = run("raid5:4+1,chunk=4KiB,parity=fixed", "tolerant:reactive");
        runtime::warm_up(&mut run, 40, extent(0, STRIPE), took);
        run.read(1, extent(0, 1));
        assert_eq!(asked(&run), [0]);
        run.wait(Nanos::from_secs(2));
        assert_eq!(asked(&run), [0, 1, 2, 3, 4], "its drive is silent");
        run.run_until_quiet();
        assert_answered(&mut run, 1);
    }
    // All drives take as long: none is late, however long the queue.
    let mut run = run_of("raid5:4+1,chunk=4KiB,parity=fixed", "tolerant:reactive", 64);
    runtime::warm_up(&mut run, 40, extent(0, STRIPE), Nanos::from_millis(5));
    for stripe in 0..20 {
        (0..4).for_each(|drive| run.read(100 * stripe + drive, extent(STRIPE * stripe + drive, 1)));
    }
    for _ in 0..19 {
        run.wait(Nanos::from_millis(5));
        (0..4).for_each(|drive| finish(&mut run, drive));
        assert!(!asked(&run).contains(&4), "parity would be of no use");
    }
    run.run_until_quiet();
}

#[test]
fn one_late_drive_costs_one_parity() {
    let mut run = run("raid6:4+2,chunk=4KiB,parity=fixed", "tolerant:reactive");
    run.read(1, extent(0, STRIPE));
    run.wait(Nanos::from_millis(10));
    [0, 1, 3].into_iter().for_each(|drive| finish(&mut run, drive));
    run.wait(Nanos::from_millis(40));
    assert_eq!(asked(&run), [2, 4]);
    finish(&mut run, 4);
    assert_answered(&mut run, 1);
    run.run_until_quiet();
}

#[test]
fn proactive_asks_for_as_many_parities_as_it_says() {
    for (policy, drives) in [("tolerant:proactive-1", 5), ("tolerant:proactive-2", 6)] {
        let mut run = run("raid6:4+2,chunk=4KiB", policy);
        run.read(1, extent(0, STRIPE));
        assert_eq!(asked(&run).len(), drives, "{policy}");
        (0..4).for_each(|_| run.finish(0));
        assert_answered(&mut run, 1);
        run.run_until_quiet();
    }
}

#[test]
fn adaptive_becomes_proactive_once_a_drive_was_late_three_times_and_reactive_again() {
    let mut run = run("raid6:4+2,chunk=4KiB,parity=fixed", "tolerant:adaptive");
    let mut extra = Vec::new();
    for id in 1..=8 {
        run.read(id, extent(0, STRIPE));
        extra.push(asked(&run).len() - 4);
        run.wait(Nanos::from_millis(10));
        [0, 1, 3].into_iter().for_each(|drive| finish(&mut run, drive));
        // From the sixth read on, drive 2 is as fast as the others.
        if id < 6 {
            run.wait(Nanos::from_millis(40));
            finish(&mut run, 4);
        }
        run.run_until_quiet();
        assert_answered(&mut run, id);
    }
    assert_eq!(extra, [0, 0, 0, 1, 1, 1, 0, 0]);
}

/// A5. The same reads with no timeouts at all, and with thousands: everything is answered right.
#[test]
fn timeouts_too_early_too_late_or_never_do_no_harm() {
    for policy in Policy::all() {
        for (before, after) in [(0, 0), (500, 0), (0, 500), (50, 50)] {
            let mut run = run("eraid:4+1,e=2,chunk=8KiB", &policy.to_string());
            run.soft_per_mille = 60;
            for id in 1..=40 {
                run.read(id, extent(id % 6, 2));
                for _ in 0..before {
                    run.array.handle_timeout(levelhead_units::Instant::from_nanos(1));
                }
                if !run.inside.is_empty() {
                    run.finish(run.inside.len() - 1);
                }
                for _ in 0..after {
                    run.wait(Nanos::from_millis(1));
                }
            }
            run.run_until_quiet();
            for id in 1..=40 {
                assert_answered(&mut run, id);
            }
            assert!(run.buffers.is_empty() && run.array.is_quiet(), "{policy}");
        }
    }
}

#[test]
fn sat_out_drive_is_read_by_no_policy_while_the_others_suffice() {
    let drive = DriveIdx::new(1);
    for policy in Policy::all() {
        let mut run = run("raid5:4+1,chunk=4KiB,parity=fixed", &policy.to_string());
        run.sit_out(drive).unwrap();
        assert_eq!(run.sit_out(DriveIdx::new(2)), Err(Refusal::Needed { spare: 1 }));
        run.read(1, extent(0, STRIPE));
        assert!(!asked(&run).contains(&1), "{policy}: {:?}", asked(&run));
        run.run_until_quiet();
        assert_answered(&mut run, 1);
        // Another drive is lost: now it is needed.
        run.lose(DriveIdx::new(0));
        let kinds: Vec<EventKind> = run.events.iter().map(|event| event.kind).collect();
        assert_eq!(kinds, [EventKind::SatOutByHand, EventKind::AdmittedInNeed], "{policy}");
        run.read(2, extent(0, STRIPE));
        run.run_until_quiet();
        assert_answered(&mut run, 2);
    }
}

/// R5. With the others failing, a drive that sits out is read before a sector is given up.
#[test]
fn sat_out_drive_is_read_before_anything_is_given_up() {
    for policy in Policy::all() {
        let mut run = run("raid5:4+1,chunk=4KiB,parity=fixed", &policy.to_string());
        run.sit_out(DriveIdx::new(1)).unwrap();
        run.bad.insert((DriveIdx::new(4), levelhead_units::Lba::ZERO));
        run.read(1, extent(1, 1));
        run.run_until_quiet();
        assert_answered(&mut run, 1);
    }
}

#[test]
fn sat_out_drive_is_probed() {
    let mut run = run("raid5:4+1,chunk=4KiB", "level");
    run.sit_out(DriveIdx::new(1)).unwrap();
    assert!(run.array.deadline().is_some());
    run.wait(Nanos::from_millis(100));
    assert!(run.inside.is_empty(), "too early");
    run.wait(Nanos::from_millis(200));
    assert_eq!(asked(&run), [1]);
    run.run_until_quiet();
    assert!(run.buffers.is_empty());
}

/// Whole stripes are read from drives that take 5 ms.
fn warm_up(run: &mut Runtime, count: u64) {
    runtime::warm_up(run, count, extent(0, STRIPE), Nanos::from_millis(5));
}

/// Lets `seconds` pass in which all drives but these answer at once.
fn pass(run: &mut Runtime, seconds: u64, hanging: &[usize]) {
    for _ in 0..4 * seconds {
        run.wait(Nanos::from_millis(250));
        let answers = |sub: &levelhead_array::Submit| !hanging.contains(&sub.drive.as_usize());
        while let Some(at) = run.inside.iter().position(answers) {
            run.finish(at);
        }
    }
}

#[test]
fn first_read_of_all_is_answered_although_its_drive_hangs() {
    let mut run = fresh("raid5:4+1,chunk=4KiB,parity=fixed", "level", 8);
    run.read(1, extent(0, 1));
    assert_eq!(asked(&run), [0]);
    pass(&mut run, 10, &[0]);
    assert!(run.take(1).is_some(), "four idle drives suffice");
}

/// After the first commands drives are late within milliseconds, all of them. The one that answers is asked for what the other
/// one does not give.
#[test]
fn drive_that_was_late_and_answers_is_asked_for_what_another_one_withholds() {
    let mut run = fresh("raid5:4+1,chunk=8KiB,parity=fixed", "level", 16);
    runtime::warm_up(&mut run, 1, extent(0, 8), Nanos::from_millis(1));
    run.read(1, extent(1, 2));
    assert_eq!(asked(&run), [0, 1]);
    run.wait(Nanos::from_millis(4));
    finish(&mut run, 1);
    pass(&mut run, 1, &[0]);
    assert!(run.take(1).is_some(), "four drives suffice");
}

#[test]
fn a_drive_that_sits_out_is_asked_when_others_hang() {
    let mut run = run("raid6:4+2,chunk=4KiB,parity=fixed", "level");
    warm_up(&mut run, 40);
    run.sit_out(DriveIdx::new(5)).unwrap();
    run.read(1, extent(0, 1));
    pass(&mut run, 60, &[0, 1]);
    assert_answered(&mut run, 1);
}

/// A retry would take the drive's time from all others, and comes all the same once the late drive is stuck.
#[test]
fn what_is_behind_is_waited_for_before_retries_are_made_and_what_is_stuck_is_not() {
    let mut run = run("raid5:4+1,chunk=4KiB,parity=fixed", "level:extra-reads=100%");
    // So that a drive is behind its fellows long before it is stuck.
    runtime::warm_up(&mut run, 1, extent(0, STRIPE), Nanos::from_millis(100));
    warm_up(&mut run, 300);
    run.bad.insert((DriveIdx::new(0), levelhead_units::Lba::ZERO));
    run.read(1, extent(0, STRIPE));
    assert_eq!(asked(&run), [0, 1, 2, 3, 4]);
    run.wait(Nanos::from_millis(5));
    (0..4).for_each(|drive| finish(&mut run, drive));
    assert_eq!(asked(&run), [4]);
    run.wait(Nanos::from_millis(50));
    assert_eq!(asked(&run), [4], "it is far behind its fellows by now");
    run.wait(Nanos::from_millis(500));
    assert!(asked(&run).contains(&0), "it has ended nothing for longer than commands take");
    run.run_until_quiet();
    assert_answered(&mut run, 1);
}

#[test]
fn what_was_asked_a_moment_ago_is_not_late() {
    let mut run = run("raid5:4+1,chunk=4KiB,parity=fixed", "level");
    warm_up(&mut run, 300);
    run.bad.insert((DriveIdx::new(0), levelhead_units::Lba::ZERO));
    run.read(1, extent(0, 1));
    let deadline = run.array.deadline().expect("it is known what is late");
    run.wait(deadline.saturating_since(run.now()) - Nanos::from_millis(1));
    finish(&mut run, 0);
    assert_eq!(asked(&run), [1, 2, 3, 4], "the second trip");
    run.wait(Nanos::from_millis(2));
    assert_eq!(asked(&run), [1, 2, 3, 4], "nothing is retried yet");
    run.run_until_quiet();
    assert_answered(&mut run, 1);
}

#[test]
fn parity_asked_for_because_of_a_late_drive_is_not_blamed() {
    let mut run = run("raid6:4+2,chunk=4KiB,parity=fixed", "tolerant:adaptive");
    for (id, late) in [(1, [0, 1]), (2, [2, 3]), (3, [0, 2])] {
        run.read(id, extent(0, STRIPE));
        run.wait(Nanos::from_millis(10));
        (0..4).filter(|drive| !late.contains(drive)).for_each(|drive| finish(&mut run, drive));
        run.wait(Nanos::from_millis(40));
        finish(&mut run, late[0]);
        finish(&mut run, 4);
        assert_answered(&mut run, id);
        // The other late drive and the second parity come in a moment.
        run.wait(Nanos::from_millis(1));
        run.run_until_quiet();
    }
    run.read(4, extent(0, STRIPE));
    assert_eq!(asked(&run), [0, 1, 2, 3], "no drive was late three times in a row");
    run.run_until_quiet();
}

#[test]
fn a_lost_drive_is_late_no_more() {
    let mut run = run("raid6:4+2,chunk=4KiB,parity=fixed", "tolerant:adaptive");
    for id in 1..=3 {
        run.read(id, extent(0, STRIPE));
        run.wait(Nanos::from_millis(10));
        [0, 1, 3].into_iter().for_each(|drive| finish(&mut run, drive));
        run.wait(Nanos::from_millis(40));
        finish(&mut run, 4);
        run.run_until_quiet();
    }
    run.read(4, extent(0, STRIPE));
    assert_eq!(asked(&run).len(), 5, "drive 2 was late three times");
    run.run_until_quiet();
    run.lose(DriveIdx::new(2));
    run.read(5, extent(0, STRIPE));
    assert_eq!(asked(&run).len(), 4);
    run.run_until_quiet();
}

/// What was inside a drive when it was lost comes back long after.
#[test]
fn a_lost_drive_neither_sits_out_nor_wants_probes() {
    let mut run = run_of("raid6:4+2,chunk=4KiB,parity=fixed", "level", 64);
    for id in 100..132 {
        run.read(id, extent(id % 60 * STRIPE + 1, 1));
    }
    run.lose(DriveIdx::new(1));
    while !run.inside.is_empty() {
        run.wait(Nanos::from_millis(60));
        run.finish(0);
    }
    let kinds: Vec<EventKind> = run.events.iter().map(|event| event.kind).collect();
    assert_eq!((kinds.as_slice(), run.array.sat_out()), (&[][..], DriveSet::EMPTY));
    assert!(run.array.deadline().is_none_or(|at| at > run.now()));
}

#[test]
fn a_write_reads_from_a_drive_that_sits_out_only_if_it_must() {
    let mut run = run("raid5:4+1,chunk=4KiB,parity=fixed", "level");
    run.sit_out(DriveIdx::new(3)).unwrap();
    run.write(1, extent(0, 3), &[7; 3 * 4096]);
    assert_eq!(asked(&run), [0, 1, 2, 4], "old values and parity, not the fourth chunk");
    run.run_until_quiet();
}

#[test]
fn a_read_that_cannot_be_answered_asks_nobody() {
    let mut run = run("raid0:4,chunk=4KiB", "level");
    run.lose(DriveIdx::new(0));
    run.read(1, extent(0, 1));
    assert_eq!(asked(&run), [0_usize; 0]);
    assert!(run.take(1).is_some_and(|(answer, _)| !answer.outcome.is_good()));
}

#[test]
fn what_is_computed_is_read_from_where_the_wait_is_shortest() {
    let mut run = run_of("raid6:4+2,chunk=4KiB,parity=fixed", "level", 64);
    warm_up(&mut run, 40);
    run.sit_out(DriveIdx::new(0)).unwrap();
    for id in 200..220 {
        run.read(id, extent(id % 60 * STRIPE + 3, 1));
    }
    let before: Vec<usize> = (0..6).map(|at| run.array.queue_len(DriveIdx::new(at))).collect();
    run.read(1, extent(0, 1));
    let after = (0..6).map(|at| run.array.queue_len(DriveIdx::new(at)));
    let asked: Vec<usize> = after
        .zip(before)
        .enumerate()
        .filter(|(_, (after, before))| after > before)
        .map(|(at, _)| at)
        .collect();
    assert_eq!(asked, [1, 2, 4, 5], "drive 3 has a queue");
    run.run_until_quiet();
}

/// Reads three sectors, of which drive 2 has not answered 60 ms after its fellows did, with so many reads of
/// whole stripes waiting; returns how many drives were asked instead.
fn asked_instead(waiting: u64) -> usize {
    let mut run = run_of("raid6:6+2,chunk=4KiB,parity=fixed", "level", 64);
    // One read in ten takes long on all drives alike: a p99 of that is no measure for the others.
    for id in 1_000..1_200 {
        run.read(id, extent(0, 6));
        run.wait(Nanos::from_millis(if id % 10 == 0 { 100 } else { 5 }));
        run.run_until_quiet();
    }
    for id in 0..waiting {
        run.read(100 + id, extent((id + 1) * 6, 6));
    }
    let before = run.inside.len();
    run.read(1, extent(0, 3));
    assert_eq!(run.inside.len() - before, 3, "where others wait no more is asked than must be");
    let own: Vec<_> = run.inside[before..].iter().map(|sub| (sub.drive, sub.sub)).collect();
    run.wait(Nanos::from_millis(10));
    for &(_, sub) in own.iter().filter(|(drive, _)| *drive != DriveIdx::new(2)) {
        let at = run.inside.iter().position(|inside| inside.sub == sub);
        run.finish(at.expect("it is inside"));
    }
    let before = run.inside.len();
    run.wait(Nanos::from_millis(60));
    let asked = run.inside.len() - before;
    run.run_until_quiet();
    asked
}

#[test]
fn a_drive_far_behind_its_fellows_is_missed_unless_there_are_queues() {
    assert_eq!(asked_instead(1), 4, "as much as decodes, no more");
    assert_eq!(asked_instead(5), 0);
}
