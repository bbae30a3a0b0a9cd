//! Admission under `level`: a drive that keeps an old request waiting is given little else meanwhile.

use levelhead_array::Spec;
use levelhead_block::{Buf, Command};
use levelhead_units::{DriveIdx, DriveSet, Extent, Nanos};

use crate::runtime::{
    Runtime, asked, assert_answered, extent, finish, finish_last, inside_of, run_of, settings,
    warm_up,
};

const RAID5: &str = "raid5:4+1,chunk=4KiB";

/// Five stripes, which is something of every drive: a read of them may well ask for all five.
const ALL_DRIVES: u64 = 20;

/// What requests take before a test begins. Twice as long is late, half as long again is old.
const USUAL: Nanos = Nanos::from_millis(10);
const OLD: Nanos = Nanos::from_millis(15);

fn known(policy: &str) -> Runtime {
    let mut run = run_of(RAID5, policy, 64);
    warm_up(&mut run, 200, extent(0, ALL_DRIVES), USUAL);
    run
}

/// The `n`th data sector on a drive: consecutive chunks visit all drives in turn.
fn sector(drive: u64, n: u64) -> Extent {
    extent(drive + 5 * n, 1)
}

/// Wants so many sectors of a drive, in as many reads.
fn crowd(run: &mut Runtime, drive: u64, count: u64) {
    (0..count).for_each(|n| run.read(100 * (drive + 1) + n, sector(drive, 20 + n)));
}

/// Wants so many sectors of every drive, in as many reads.
fn crowd_all(run: &mut Runtime, count: u64) {
    for n in 0..count {
        (0..5).for_each(|drive| run.read(100 * (drive + 1) + n, sector(drive, 20 + n)));
    }
}

#[test]
fn an_old_read_lets_one_command_more_into_its_drive_until_it_is_answered() {
    let mut run = known("level");
    run.read(1, sector(0, 0));
    run.wait(OLD);
    crowd_all(&mut run, 5);
    assert_eq!(inside_of(&run, 0), 2);
    assert!(inside_of(&run, 1) >= 5, "drive 1 owes nothing old");
    finish_last(&mut run, 0);
    assert_eq!(inside_of(&run, 0), 2, "another took its place");
    finish(&mut run, 0);
    assert_answered(&mut run, 1);
    assert_eq!(inside_of(&run, 0), 4, "nothing keeps the others out");
    run.run_until_quiet();
}

#[test]
fn a_read_that_is_not_old_holds_no_drive() {
    let mut run = known("level");
    run.read(1, sector(0, 0));
    run.wait(USUAL - Nanos::from_millis(2));
    crowd(&mut run, 0, 5);
    assert_eq!(inside_of(&run, 0), 6);
    run.run_until_quiet();
}

#[test]
fn without_the_gate_an_old_read_holds_no_drive() {
    let mut run = known("level:no-admission");
    run.read(1, sector(0, 0));
    run.wait(OLD);
    crowd(&mut run, 0, 5);
    assert_eq!(inside_of(&run, 0), 6);
    run.run_until_quiet();
}

#[test]
fn what_is_still_inside_a_drive_after_the_answer_holds_it_no_more() {
    let mut run = known("level");
    run.read(1, extent(0, ALL_DRIVES));
    assert_eq!(asked(&run), [0, 1, 2, 3, 4]);
    (0..4).for_each(|drive| finish(&mut run, drive));
    assert_answered(&mut run, 1);
    run.wait(OLD);
    crowd(&mut run, 4, 5);
    assert_eq!(inside_of(&run, 4), 6, "nobody waits for what the first read asked for");
    run.run_until_quiet();
}

#[test]
fn of_two_drives_either_of_which_will_do_the_one_with_the_shorter_queue_is_held() {
    let mut run = known("level");
    run.read(1, extent(0, ALL_DRIVES));
    run.wait(Nanos::from_millis(4));
    (0..2).for_each(|n| run.read(10 + n, sector(4, 10 + n)));
    run.wait(Nanos::from_millis(3));
    (0..3).for_each(|drive| finish(&mut run, drive));
    run.wait(Nanos::from_millis(5));
    [3, 4].into_iter().for_each(|drive| crowd(&mut run, drive, 3));
    assert_eq!(inside_of(&run, 3), 2, "the read counts on it");
    assert_eq!(inside_of(&run, 4), 6, "and not on this one");
    run.run_until_quiet();
}

/// Queues of drives that answer promptly grow; it is the slow one that is not counted on.
#[test]
fn a_slow_drive_is_not_held_while_another_will_do_whatever_their_queues() {
    let mut run = run_of(RAID5, "level", 64);
    // So that it is long before a drive is late.
    warm_up(&mut run, 1, extent(0, ALL_DRIVES), Nanos::from_millis(100));
    warm_up(&mut run, 100, extent(0, ALL_DRIVES), Nanos::from_millis(5));
    run.read(1, extent(0, ALL_DRIVES));
    for n in 0..9 {
        run.wait(Nanos::from_millis(10));
        run.read(10 + n, sector(4, 10 + n));
        finish_last(&mut run, 4);
    }
    (0..2).for_each(|n| run.read(20 + n, sector(4, 10 + n)));
    (0..3).for_each(|drive| finish(&mut run, drive));
    crowd(&mut run, 4, 3);
    assert_eq!(inside_of(&run, 4), 3, "the read counts on it, not on drive 3");
    assert_eq!(run.take(1).map(|(answer, _)| answer), None);
    run.run_until_quiet();
}

#[test]
fn requests_are_old_later_while_no_drive_can_be_spared() {
    for (is_lost, inside) in [(false, 2), (true, 6)] {
        let mut run = known("level");
        if is_lost {
            run.lose(DriveIdx::new(4));
        }
        run.read(1, sector(0, 0));
        run.wait(Nanos::from_millis(13));
        crowd(&mut run, 0, 5);
        assert_eq!(inside_of(&run, 0), inside, "lost: {is_lost}");
        run.run_until_quiet();
    }
}

#[test]
fn a_flush_holds_no_drive() {
    let mut run = known("level");
    run.request(1, Command::Flush, Buf::empty());
    run.wait(OLD);
    crowd(&mut run, 0, 5);
    assert_eq!(inside_of(&run, 0), 6);
    run.run_until_quiet();
}

/// A step of the resync has a MiB of each of four stripes to read, and then their parity to write.
#[test]
fn a_resync_holds_no_drive() {
    const CHUNK: u64 = 256;
    let spec: Spec = "raid5:4+1,chunk=1MiB".parse().unwrap();
    let mut settings = settings(spec, 5, "level".parse().unwrap(), DriveSet::EMPTY);
    (settings.synced, settings.window) = (0, 32);
    let mut run = Runtime::new(&settings, 1);
    // Of the fifth stripe, on drive 2.
    let apart = |n: u64| extent(17 * CHUNK + 40 * n, 1);
    warm_up(&mut run, 20, apart(0), USUAL);
    run.resync();
    for (phase, id) in [("reading", 1), ("writing", 11)] {
        let own = inside_of(&run, 2);
        assert!(own > 0, "{phase}");
        run.wait(OLD);
        (0..5).for_each(|n| run.read(id + n, apart(1 + n)));
        assert_eq!(inside_of(&run, 2), own + 5, "{phase}");
        (0..5).for_each(|_| finish_last(&mut run, 2));
        asked(&run).into_iter().for_each(|drive| finish(&mut run, drive));
    }
    assert_eq!(run.array.synced(), 4);
}

#[test]
fn what_writes_take_tells_what_is_old() {
    for (writes, inside) in [(0, 2), (60, 6)] {
        let mut run = run_of(RAID5, "level", 64);
        warm_up(&mut run, 200, extent(0, ALL_DRIVES), Nanos::from_millis(1));
        for id in 2_000..2_000 + writes {
            run.write(id, extent(0, ALL_DRIVES), &[7; ALL_DRIVES as usize * 4096]);
            run.wait(USUAL);
            run.run_until_quiet();
        }
        run.read(1, sector(0, 0));
        run.wait(Nanos::from_millis(5));
        crowd_all(&mut run, 5);
        assert_eq!(
            inside_of(&run, 0),
            inside,
            "{writes} writes took twice as long as this read has"
        );
        run.run_until_quiet();
    }
}

/// A write has to go to the drive all the same, and the more of them it may choose among, the better.
#[test]
fn a_drive_that_sits_out_is_not_held_for_the_writes_that_need_it() {
    for (sits_out, inside) in [(false, 2), (true, 6)] {
        let mut run = known("level");
        if sits_out {
            run.sit_out(DriveIdx::new(0)).unwrap();
        }
        run.read(1, sector(1, 5));
        let others = |run: &mut Runtime| {
            while let Some(drive) = asked(run).into_iter().find(|&drive| drive != 0) {
                finish(run, drive);
            }
        };
        run.write(2, sector(0, 0), &[7; 4096]);
        if !sits_out {
            finish(&mut run, 0); // the old value
        }
        others(&mut run);
        run.wait(OLD + OLD);
        (0..5).for_each(|n| run.write(3 + n, sector(0, 20 + n), &[7; 4096]));
        others(&mut run);
        assert_eq!(inside_of(&run, 0), inside, "sits out: {sits_out}");
        run.run_until_quiet();
    }
}
