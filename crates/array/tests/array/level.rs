//! The default policy at work: whom it does without, whom it asks instead, and how often.

use levelhead_array::{EventKind, Submit};
use levelhead_block::Effort;
use levelhead_units::{DriveIdx, DriveSet, Extent, Lba, Nanos};

use crate::runtime::{
    Runtime, STRIPE, asked, assert_answered, efforts, extent, fail, finish, fresh,
    fresh_with_window, inside_of, run_of, wait_for_deadline, warm_up,
};

const RAID5: &str = "raid5:4+1,chunk=4KiB,parity=fixed";
const RAID6: &str = "raid6:4+2,chunk=4KiB,parity=fixed";

/// A moment before or after something.
const MOMENT: Nanos = Nanos::from_millis(1);

/// An array whose drives take 5 ms for a command.
fn known(text: &str) -> Runtime {
    let mut run = run_of(text, "level", 64);
    warm_up(&mut run, 200, extent(0, STRIPE), Nanos::from_millis(5));
    run
}

/// The sector of a data drive in some stripe.
fn sector(stripe: u64, drive: u64) -> Extent {
    extent(STRIPE * stripe + drive, 1)
}

/// Two commands in `drive` do not end for so long that the drive is slow by any measure.
fn hang(run: &mut Runtime, id: u64, drive: u64) {
    run.read(id, sector(30, drive));
    run.read(100 + id, sector(31, drive));
    run.wait(Nanos::from_millis(100));
    // What was asked for in its place answers at once.
    while let Some(&other) = asked(run).iter().find(|&&other| other as u64 != drive) {
        finish(run, other);
    }
}

/// How long a read of drive 0 waits until that is late.
fn patience(run: &mut Runtime, id: u64) -> Nanos {
    run.read(id, sector(0, 0));
    let patience = run.array.deadline().expect("it is watched").saturating_since(run.now());
    run.run_until_quiet();
    patience
}

#[test]
fn the_rest_of_the_group_is_asked_for_at_twice_the_tail_and_not_before() {
    let mut run = known(RAID5);
    run.read(1, sector(0, 0));
    let patience = run.array.deadline().expect("it is watched").saturating_since(run.now());
    let tail = Nanos::from_millis(5)..Nanos::from_millis(6);
    assert!(tail.start * 2 < patience && patience < tail.end * 2, "{patience:?}");
    run.wait(patience - MOMENT);
    assert_eq!(asked(&run), [0]);
    run.wait(MOMENT);
    assert_eq!(asked(&run), [0, 1, 2, 3, 4]);
    (1..5).for_each(|drive| finish(&mut run, drive));
    assert_eq!(assert_answered(&mut run, 1).decoded, 1);
    run.run_until_quiet();
}

#[test]
fn what_was_asked_for_later_is_late_later() {
    let mut run = known(RAID5);
    let (patience, first) = (patience(&mut run, 9), Nanos::from_millis(5));
    run.read(1, sector(0, 0));
    run.wait(first);
    fail(&mut run, 0);
    assert_eq!(asked(&run), [1, 2, 3, 4]);
    (2..5).for_each(|drive| finish(&mut run, drive));
    run.wait(patience - first);
    assert_eq!(asked(&run), [1], "it was asked a moment ago");
    wait_for_deadline(&mut run);
    assert_eq!(asked(&run), [0, 1], "now it is late: a retry is sooner");
    finish(&mut run, 0);
    assert_eq!(assert_answered(&mut run, 1).redispatched, 1);
    run.run_until_quiet();
}

#[test]
fn a_second_trip_passes_a_slow_drive_by() {
    let mut run = known(RAID6);
    hang(&mut run, 1, 1);
    run.read(2, sector(0, 0));
    fail(&mut run, 0);
    assert_eq!(asked(&run), [1, 1, 2, 3, 4, 5], "drive 1 has what it had, and no more");
    (2..6).for_each(|drive| finish(&mut run, drive));
    assert_answered(&mut run, 2);
    run.run_until_quiet();
}

#[test]
fn a_drive_that_ends_other_commands_meanwhile_is_not_late_however_long_its_queue() {
    let mut run = known(RAID5);
    for stripe in 1..15 {
        (0..4).for_each(|drive| run.read(100 * stripe + drive, sector(stripe, drive)));
    }
    run.read(1, sector(0, 0));
    let before = run.array.queue_len(DriveIdx::new(4));
    for _ in 0..10 {
        run.wait(Nanos::from_millis(5));
        (0..4).for_each(|drive| finish(&mut run, drive));
    }
    assert!(run.take(1).is_none(), "it is the last one in the queue");
    assert_eq!(
        run.array.queue_len(DriveIdx::new(4)),
        before,
        "ten times the usual time is not a reason"
    );
    run.run_until_quiet();
}

#[test]
fn a_second_trip_goes_before_all_that_waits() {
    let mut run = fresh_with_window(RAID5, "level", 64, 1);
    warm_up(&mut run, 10, extent(0, STRIPE), Nanos::from_millis(5));
    for stripe in 1..4 {
        (1..4).for_each(|drive| run.read(10 * stripe + drive, sector(stripe, drive)));
    }
    run.read(1, sector(40, 0));
    fail(&mut run, 0);
    assert_eq!([1, 4].map(|drive| run.array.queue_len(DriveIdx::new(drive))), [4, 1]);
    finish(&mut run, 1);
    let next = run.inside.iter().find(|sub| sub.drive == DriveIdx::new(1)).unwrap();
    assert_eq!(next.command.extent().unwrap().lba, Lba::new(40), "not those of stripes 2 and 3");
    run.run_until_quiet();
    assert!(run.take(1).is_some_and(|(answer, _)| answer.outcome.is_good()));
}

#[test]
fn a_retry_goes_before_all_that_waits() {
    let mut run = fresh_with_window(RAID5, "on-failure", 64, 1);
    warm_up(&mut run, 10, extent(0, STRIPE), Nanos::from_millis(5));
    run.read(1, sector(40, 0));
    (1..4).for_each(|stripe| run.read(10 + stripe, sector(stripe, 0)));
    fail(&mut run, 0);
    (1..4).for_each(|drive| finish(&mut run, drive));
    fail(&mut run, 4);
    finish(&mut run, 0);
    let next = run.inside.first().and_then(|sub| sub.command.extent());
    assert_eq!(next.map(|extent| extent.lba), Some(Lba::new(40)), "not stripe 2");
    assert_eq!(efforts(&run), [(0, Effort::Full)]);
    run.run_until_quiet();
    assert!(run.take(1).is_some_and(|(answer, _)| answer.outcome.is_good()));
}

#[test]
fn of_two_lost_sectors_one_is_retried_where_one_will_do() {
    let mut run = known(RAID5);
    run.read(1, extent(0, 2));
    [0, 1].into_iter().for_each(|drive| fail(&mut run, drive));
    assert_eq!(asked(&run), [0, 2, 3, 4], "with one of the two the other is computed");
    let (retry, quick) = (Effort::Full, Effort::Fast);
    assert_eq!(efforts(&run), [(0, retry), (2, quick), (3, quick), (4, quick)]);
    [0, 2, 3, 4].into_iter().for_each(|drive| finish(&mut run, drive));
    let cost = assert_answered(&mut run, 1);
    assert_eq!((cost.redispatched, cost.decoded), (1, 1));
    assert!(run.array.is_quiet());
}

#[test]
fn what_is_not_needed_for_an_answer_is_withdrawn() {
    let mut run = fresh_with_window("raid5:4+1,chunk=4KiB", "level", 64, 1);
    warm_up(&mut run, 10, extent(0, 5 * STRIPE), Nanos::from_millis(5));
    let busy = DriveIdx::new(4);
    run.read(1, extent(204, 1));
    assert_eq!(asked(&run), [4]);
    // Something of every drive: the whole group costs no drive more.
    run.read(2, extent(0, 5 * STRIPE));
    assert_eq!(run.array.queue_len(busy), 2);
    (0..4).for_each(|drive| finish(&mut run, drive));
    let (answer, _) = run.take(2).expect("four of five suffice");
    assert_eq!((answer.cost.subs, answer.cost.removed), (5, 1));
    assert_eq!(run.array.queue_len(busy), 1, "the other read has the drive to itself");
    run.run_until_quiet();
    assert!(run.take(1).is_some() && run.array.is_quiet());
}

#[test]
fn a_drive_that_is_done_without_is_probed_when_nothing_was_heard_of_it() {
    let mut run = known(RAID6);
    // So that nobody is to be probed because of what was before.
    run.wait(Nanos::from_secs(1));
    run.run_until_quiet();
    hang(&mut run, 1, 1);
    run.read(2, extent(0, 2));
    assert_eq!(inside_of(&run, 1), 2, "it is slow");
    run.run_until_quiet();
    assert_answered(&mut run, 2);
    assert_eq!(run.array.sat_out(), DriveSet::EMPTY);
    run.wait(Nanos::from_millis(200));
    assert_eq!(asked(&run), [0_usize; 0], "its last command ended a moment ago");
    run.wait(Nanos::from_millis(100));
    let probes: Vec<_> = efforts(&run).into_iter().filter(|(drive, _)| *drive == 1).collect();
    assert_eq!(probes, [(1, Effort::Fast)]);
    run.run_until_quiet();
    run.wait(Nanos::from_secs(1));
    assert!(run.inside.is_empty(), "once is enough");
}

#[test]
fn a_drive_that_has_something_to_do_is_not_probed() {
    let mut run = known(RAID6);
    hang(&mut run, 1, 1);
    run.read(2, extent(0, 2));
    while let Some(at) = run.inside.iter().position(|sub| sub.drive != DriveIdx::new(1)) {
        run.finish(at);
    }
    run.wait(Nanos::from_secs(1));
    assert_eq!(inside_of(&run, 1), 2, "it will be heard of");
    run.run_until_quiet();
}

#[test]
fn what_probes_take_makes_no_read_wait_longer() {
    let mut run = known(RAID6);
    let patience = patience(&mut run, 1);
    run.sit_out(DriveIdx::new(5)).unwrap();
    let mut probes = 0;
    for _ in 0..40 {
        run.wait(Nanos::from_millis(250));
        probes += run.inside.len();
        run.wait(Nanos::from_millis(100));
        run.run_until_quiet();
    }
    assert!(probes >= 20, "{probes}");
    assert!(self::patience(&mut run, 2) <= patience);
}

/// Its cache may be full, or another writer busy: that says nothing of how it reads.
#[test]
fn a_drive_that_is_slow_to_write_does_not_sit_out() {
    let mut run = fresh(RAID5, "level", 64);
    for id in 0..200 {
        run.write(id, extent(0, STRIPE), &[7; STRIPE as usize * 4096]);
        run.wait(Nanos::from_millis(5));
        (0..4).for_each(|drive| finish(&mut run, drive));
        run.wait(Nanos::from_millis(80));
        run.run_until_quiet();
    }
    let kinds: Vec<EventKind> = run.events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, []);
}

/// Both would read the codeword in which one ends and the other begins, and the second one after a rotation.
#[test]
fn reads_of_a_stream_leave_the_redundancy_where_they_meet_alone() {
    let mut run = known("raid6:4+2,chunk=4KiB");
    let sectors = |run: &Runtime| {
        let of = |sub: &Submit| sub.command.extent().map_or(0, |extent| extent.sectors.get());
        run.inside.iter().map(of).sum::<u64>()
    };
    // Stripes 40 and 41 whole, and three sectors of 42.
    run.read(1, extent(STRIPE * 40, 2 * STRIPE + 3));
    let of_first = sectors(&run);
    assert_eq!(of_first, 3 * 6, "nothing is before it: whole codewords");
    // The sector that is left of 42, 43 and 44 whole, and a sector of 45.
    run.read(2, extent(STRIPE * 42 + 3, 2 * STRIPE + 2));
    assert_eq!(sectors(&run) - of_first, 1 + 2 * 6 + 1);
    run.run_until_quiet();
}

/// Of an array with long chunks: its stripes are of 64 sectors, sixteen of each drive.
const LONG: u64 = 64;

/// Reads 16 sectors behind the ninth of a stripe, which are of two drives; returns how many it asks for.
fn read_across(run: &mut Runtime, id: u64, stripe: u64) -> u64 {
    run.read(id, extent(LONG * stripe + 9, 16));
    let own = run.inside.iter().filter(|sub| sub.origin == id);
    own.filter_map(|sub| sub.command.extent()).map(|extent| extent.sectors.get()).sum()
}

/// It begins behind the first one's last sector, in the middle of a chunk, and ends in rows before that.
#[test]
fn read_that_follows_another_within_a_chunk_leaves_redundancy_alone() {
    let mut run = run_of("raid6:4+2,chunk=64KiB,parity=fixed", "level:extra-reads=100%", 64);
    warm_up(&mut run, 200, extent(0, LONG), Nanos::from_millis(5));
    assert!(read_across(&mut run, 1, 40) > 16, "nothing is before it");
    run.run_until_quiet();
    run.read(2, extent(LONG * 20, 9));
    assert_eq!(read_across(&mut run, 3, 20), 16);
    run.run_until_quiet();
}

#[test]
fn drive_that_hangs_is_late_within_a_second_however_slow_all_are() {
    let mut run = fresh(RAID5, "level", 64);
    warm_up(&mut run, 200, extent(0, STRIPE), Nanos::from_secs(1));
    assert_eq!(patience(&mut run, 1), Nanos::from_millis(800));
}

/// Whoever waits behind what hangs would wait for as long.
#[test]
fn read_that_waits_behind_a_command_that_hangs_asks_others() {
    let mut run = fresh_with_window(RAID5, "level", 64, 1);
    warm_up(&mut run, 200, extent(0, STRIPE), Nanos::from_millis(5));
    let patience = patience(&mut run, 9);
    run.read(1, sector(0, 0));
    run.read(2, sector(1, 0));
    assert_eq!(asked(&run), [0], "the second one waits for the drive");
    run.wait(patience);
    (1..5).for_each(|drive| finish(&mut run, drive));
    assert!(run.take(1).is_some(), "the others suffice");
    let of_second = run.inside.iter().filter(|sub| sub.origin == 2).count();
    assert_eq!(of_second, 4, "the others, for the second one");
    run.run_until_quiet();
}

#[test]
fn read_under_way_counts_no_more_on_a_drive_that_is_sat_out_meanwhile() {
    for is_sat_out in [false, true] {
        let mut run = known(RAID5);
        let patience = patience(&mut run, 9);
        run.read(1, sector(40, 0));
        run.read(2, sector(41, 0));
        if is_sat_out {
            run.sit_out(DriveIdx::new(0)).expect("the others suffice");
        }
        run.wait(patience - MOMENT);
        finish(&mut run, 0);
        assert_answered(&mut run, 1);
        run.wait(MOMENT);
        let others: &[usize] = if is_sat_out { &[0, 1, 2, 3, 4] } else { &[0] };
        assert_eq!(asked(&run), others, "it is not stuck: it has just ended a command");
        run.run_until_quiet();
    }
}
