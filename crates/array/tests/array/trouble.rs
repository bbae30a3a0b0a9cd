//! Drives that hang, sectors that are bad, clients that are impatient: one scenario a test.

use levelhead_array::{ArrayEvent, Policy, RequestId, Resync, ResyncProgress, Settings, Spec};
use levelhead_block::{Buf, Command, Effort, Outcome};
use levelhead_units::{DriveIdx, DriveSet, Lba, Nanos};

use crate::runtime::{Runtime, damaged, extent, settings};

fn run(text: &str, policy: &str, lost: &[u8]) -> Runtime {
    let spec: Spec = text.parse().unwrap();
    let lost: DriveSet = lost.iter().copied().map(DriveIdx::new).collect();
    Runtime::new(&settings(spec, 8, policy.parse().unwrap(), lost), 1)
}

fn unknown(outcome: &Outcome) -> Vec<u32> {
    let Outcome::Done { unknown, damaged } = outcome else { panic!("{outcome:?}") };
    assert!(damaged.is_empty(), "{damaged:?}");
    unknown.iter().collect()
}

/// A drive that hangs with commands inside it, and never gives them back, holds up nobody once it is
/// given up.
#[test]
fn nobody_waits_for_a_drive_that_was_given_up() {
    for policy in Policy::all() {
        let mut run = run("raid5:3+1,chunk=4KiB", &policy.to_string(), &[]);
        run.write(0, extent(0, 3), &[7; 3 * 4096]);
        run.run_until_quiet();
        run.take(0).unwrap();
        run.read(1, extent(0, 1));
        run.write(2, extent(0, 1), &[8; 4096]);
        run.request(3, Command::Flush, Buf::empty());
        let hung = DriveIdx::new(0);
        let stays_inside = |run: &Runtime| run.inside.iter().position(|sub| sub.drive != hung);
        while let Some(at) = stays_inside(&run) {
            run.finish(at);
        }
        run.lose(hung);
        while let Some(at) = stays_inside(&run) {
            run.finish(at);
        }
        assert!(run.inside.iter().any(|sub| sub.drive == hung), "{policy}: nothing is inside");
        for id in 1..=3 {
            let (answer, _) = run.take(id).unwrap_or_else(|| panic!("{policy}: {id} waits"));
            assert!(answer.outcome.is_good(), "{policy}, {id}: {:?}", answer.outcome);
        }
        // It comes back after all: its buffers do, too.
        run.run_until_quiet();
        assert!(run.buffers.is_empty() && run.array.is_quiet(), "{policy}");
    }
}

/// More operations than a stack has room for, each of which ends as soon as it begins.
#[test]
fn operations_that_end_at_once_do_not_nest() {
    let mut run = run("raid0:2,chunk=4KiB", "normal", &[0]);
    run.write(0, extent(1, 1), &[1; 4096]);
    for id in 1..20_000 {
        if id % 2 == 0 {
            run.write(id, extent(0, 1), &[1; 4096]);
        } else {
            run.read(id, extent(0, 1));
        }
    }
    run.run_until_quiet();
    assert_eq!(run.answers.len(), 20_000);
}

#[test]
fn a_write_fails_without_those_that_joined_it() {
    let mut run = run("raid5:3+1,chunk=4KiB", "normal", &[2]);
    // Stripe 2 has one drive missing and one bad sector: what was on the lost drive cannot be written.
    run.bad.insert((DriveIdx::new(3), Lba::new(2)));
    run.write(0, extent(0, 1), &[1; 4096]); // holds stripe 0
    run.write(1, extent(0, 6), &[2; 6 * 4096]); // waits: stripes 0 and 1
    run.write(2, extent(6, 1), &[3; 4096]); // stripe 2 is free, so this one runs alone
    run.write(3, extent(5, 2), &[4; 2 * 4096]); // joins: stripes 1 and 2
    run.run_until_quiet();
    assert!(run.take(0).unwrap().0.outcome.is_good());
    assert!(run.take(1).unwrap().0.outcome.is_good(), "its neighbour's trouble is not its own");
    assert_eq!(damaged(&run.take(2).unwrap().0.outcome), [0]);
    assert_eq!(damaged(&run.take(3).unwrap().0.outcome), [0, 1]);
    run.read(4, extent(0, 6));
    run.run_until_quiet();
    let (answer, buf) = run.take(4).unwrap();
    assert!(answer.outcome.is_good());
    assert!(buf.as_slice().iter().all(|&byte| byte == 2));
}

#[test]
fn a_write_to_free_stripes_does_not_wait_for_its_neighbour() {
    let mut run = run("raid5:3+1,chunk=4KiB", "normal", &[]);
    run.write(0, extent(0, 1), &[1; 4096]);
    run.write(1, extent(1, 1), &[1; 4096]); // waits for stripe 0
    let before = run.inside.len();
    run.write(2, extent(3, 3), &[1; 3 * 4096]); // stripe 1 is free
    assert!(run.inside.len() > before);
}

#[test]
fn little_effort_leaves_sectors_unknown_and_never_damaged() {
    for effort in [Effort::Fast, Effort::Limited(Nanos::from_millis(5))] {
        for policy in Policy::all() {
            let mut run = run("raid5:3+1,chunk=4KiB", &policy.to_string(), &[]);
            run.bad.insert((DriveIdx::new(0), Lba::ZERO));
            run.bad.insert((DriveIdx::new(1), Lba::ZERO));
            run.read_with(1, extent(0, 3), effort);
            run.run_until_quiet();
            assert_eq!(unknown(&run.take(1).unwrap().0.outcome), [0, 1], "{policy}, {effort:?}");
        }
    }
}

/// R3: drive 0 is lost beyond the redundancy, drive 1 only needs its retries.
#[test]
fn what_can_be_read_is_read_beyond_the_redundancy() {
    for policy in Policy::all() {
        let mut run = run("raid5:3+1,chunk=4KiB", &policy.to_string(), &[0, 3]);
        run.soft_per_mille = 1000;
        run.read(1, extent(0, 2));
        run.run_until_quiet();
        assert_eq!(damaged(&run.take(1).unwrap().0.outcome), [0], "{policy}");
    }
}

/// A degraded array must read the group for what was on the lost drive, so that costs nothing extra:
/// the default policy does not fall back to retries.
#[test]
fn pro_active_knows_what_a_degraded_read_needs_anyway() {
    let mut run = run("raid5:5+1,chunk=4KiB", "pro-active", &[0]);
    run.read(1, extent(0, 1));
    let fast = |submit: &levelhead_array::Submit| {
        matches!(submit.command, Command::Read { effort: Effort::Fast, .. })
    };
    // Without a retry rate known, removal alone decides, and that is even at first.
    assert_eq!(run.inside.len(), 5);
    run.run_until_quiet();
    run.take(1).unwrap();
    for id in 2..40 {
        run.read(id, extent(0, 1));
        assert!(run.inside.iter().all(fast), "request {id}");
        run.run_until_quiet();
    }
}

#[test]
fn resync_goes_on_once_what_stopped_it_was_written() {
    let spec: Spec = "raid1:2,chunk=4KiB".parse().unwrap();
    let start = settings(spec, 8, Policy::Normal, DriveSet::EMPTY);
    let mut run = Runtime::new(&Settings { synced: 0, ..start }, 1);
    run.bad.insert((DriveIdx::new(0), Lba::ZERO));
    run.bad.insert((DriveIdx::new(1), Lba::ZERO));
    run.resync();
    run.run_until_quiet();
    assert_eq!((run.array.resync(), run.array.synced()), (Resync::Stuck, 0));
    run.resync();
    assert!(run.inside.is_empty(), "it waits for a reason to try again");
    run.write(1, extent(0, 1), &[1; 4096]);
    run.run_until_quiet();
    run.resync();
    run.run_until_quiet();
    assert_eq!((run.array.resync(), run.array.synced()), (Resync::Idle, 8));
    let [begun, stuck, done] = run.array_events[..] else { panic!("{:?}", run.array_events) };
    let at_start = ResyncProgress { synced: 0, stripes: 8 };
    assert_eq!(begun, ArrayEvent::ResyncBegun(at_start));
    assert_eq!(stuck, ArrayEvent::ResyncStuck(at_start), "told once, though it was tried twice");
    assert_eq!(done, ArrayEvent::ResyncDone);
}

#[test]
fn array_fails_with_the_first_drive_too_many_and_is_said_to_once() {
    let mut run = run("raid6:3+2,chunk=4KiB", "normal", &[]);
    for lost in 0..4 {
        assert_eq!(run.array_events.is_empty(), lost < 3, "{lost} drives are lost");
        run.lose(DriveIdx::new(lost));
        run.lose(DriveIdx::new(lost));
    }
    let lost: DriveSet = (0..3).map(DriveIdx::new).collect();
    assert_eq!(run.array_events, [ArrayEvent::Failed { lost, survives: 2 }]);
}

#[test]
fn flush_says_when_acknowledged_data_is_gone() {
    let spec: Spec = "raid5:3+1,chunk=4KiB".parse().unwrap();
    let start = settings(spec, 8, Policy::Normal, DriveSet::EMPTY);
    let mut run = Runtime::new(&Settings { synced: 0, ..start }, 1);
    run.write(1, extent(0, 1), &[1; 4096]);
    run.run_until_quiet();
    run.lose(DriveIdx::new(0));
    run.request(2, Command::Flush, Buf::empty());
    run.run_until_quiet();
    let (answer, _) = run.take(2).unwrap();
    assert_eq!((answer.request, answer.outcome), (RequestId(2), Outcome::Gone));
    assert_eq!(answer.cost.subs, 3, "as many as there are drives left");
}
