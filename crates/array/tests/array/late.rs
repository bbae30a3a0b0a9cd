//! Drives that are late, slow or sat out: who is asked, and when.

use levelhead_array::{EventKind, Policy, Refusal, Spec};
use levelhead_units::{DriveIdx, DriveSet, Nanos};

use crate::runtime::{Runtime, extent, settings};

const STRIPE: u64 = 4;

fn run(text: &str, policy: &str) -> Runtime {
    let spec: Spec = text.parse().unwrap();
    let mut settings = settings(spec, 8, policy.parse().unwrap(), DriveSet::EMPTY);
    settings.window = 32;
    let mut run = Runtime::new(&settings, 1);
    run.write(0, extent(0, 2 * STRIPE), &[7; 2 * STRIPE as usize * 4096]);
    run.settle();
    run.take(0).unwrap();
    run
}

fn asked(run: &Runtime) -> Vec<usize> {
    let mut drives: Vec<usize> = run.inside.iter().map(|sub| sub.drive.as_usize()).collect();
    drives.sort_unstable();
    drives
}

/// Ends the command that is inside `drive`.
fn finish(run: &mut Runtime, drive: usize) {
    let at = run.inside.iter().position(|sub| sub.drive.as_usize() == drive);
    run.finish(at.expect("the drive was asked"));
}

fn assert_answered(run: &mut Runtime, id: u64) {
    let (answer, buf) = run.take(id).unwrap_or_else(|| panic!("{id} waits"));
    assert!(answer.outcome.is_good() && buf.as_slice().iter().all(|&byte| byte == 7));
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
    run.settle();
    assert!(run.buffers.is_empty() && run.array.is_quiet());
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
    run.settle();
}

#[test]
fn proactive_asks_for_as_many_parities_as_it_says() {
    for (policy, drives) in [("tolerant:proactive-1", 5), ("tolerant:proactive-2", 6)] {
        let mut run = run("raid6:4+2,chunk=4KiB", policy);
        run.read(1, extent(0, STRIPE));
        assert_eq!(asked(&run).len(), drives, "{policy}");
        (0..4).for_each(|_| run.finish(0));
        assert_answered(&mut run, 1);
        run.settle();
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
        run.settle();
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
            run.settle();
            (1..=40).for_each(|id| assert_answered(&mut run, id));
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
        run.settle();
        assert_answered(&mut run, 1);
        // Another drive is lost: now it is needed.
        run.lose(DriveIdx::new(0));
        let kinds: Vec<EventKind> = run.events.iter().map(|event| event.kind).collect();
        assert_eq!(kinds, [EventKind::SatOutByHand, EventKind::AdmittedInNeed], "{policy}");
        run.read(2, extent(0, STRIPE));
        run.settle();
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
        run.settle();
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
    run.settle();
    assert!(run.buffers.is_empty());
}
