//! Mirrors: which copy is read, what is written where, and which losses are survived.

use std::collections::BTreeSet;

use levelhead_array::assembly::{Refusal, assemble};
use levelhead_array::metadata::State;
use levelhead_array::{ArrayEvent, Policy, Resync, Settings, Spec};
use levelhead_block::{Command, Effort};
use levelhead_stats::Streams;
use levelhead_units::{DriveIdx, DriveSet, Extent, Lba, Nanos, Sectors};

use crate::metadata::{PATIENCE, found, has_generation, is_record, only, says, started, whole};
use crate::runtime::{
    Runtime, asked, assert_answered, efforts, extent, fail, finish, fresh, inside_of, run_of,
    settings, wait_for_deadline, warm_up,
};

const MIRROR: &str = "raid1:2,chunk=4KiB";
const PAIRS: &str = "raid10:4,chunk=4KiB";

fn set(drives: &[usize]) -> DriveSet {
    drives.iter().copied().map(DriveIdx::from_usize).collect()
}

/// A mirror whose drives take 5 ms for a command.
fn known(text: &str) -> Runtime {
    let mut run = run_of(text, "level", 64);
    warm_up(&mut run, 100, extent(0, 1), Nanos::from_millis(5));
    run
}

#[test]
fn copies_take_turns_under_the_papers_policies() {
    for policy in ["normal", "on-failure", "tolerant:reactive"] {
        let mut run = run_of("raid1:3,chunk=4KiB", policy, 64);
        let mut turns = Vec::new();
        for id in 1..=6 {
            run.read(id, extent(10 * id, 2));
            turns.extend(asked(&run));
            run.run_until_quiet();
            assert_answered(&mut run, id);
        }
        assert_eq!(turns, [1, 2, 0, 1, 2, 0], "{policy}");
    }
}

#[test]
fn assisted_reads_every_copy_and_answers_with_the_first() {
    let mut run = run_of("raid1:3,chunk=4KiB", "assisted", 64);
    run.read(1, extent(0, 4));
    assert_eq!(asked(&run), [0, 1, 2]);
    finish(&mut run, 2);
    assert_eq!(assert_answered(&mut run, 1).decoded, 0);
    run.run_until_quiet();
}

#[test]
fn level_reads_the_copy_with_the_shorter_queue_and_no_second_one() {
    let mut run = known(MIRROR);
    for id in 1..=20 {
        run.read(id, extent(3 * id, 1));
        let difference = inside_of(&run, 0).abs_diff(inside_of(&run, 1));
        assert!(difference <= 3, "the nearer arm counts as much as two commands: {id}");
    }
    assert_eq!(run.inside.len(), 20);
    run.run_until_quiet();
}

#[test]
fn reads_are_balanced_over_like_copies() {
    for text in [MIRROR, "raid1:3,chunk=4KiB", "raid10:5,chunk=4KiB"] {
        let mut run = known(text);
        let mut rng = Streams::new(3).stream("test/reads");
        let mut counts = vec![0_usize; run.drives.len()];
        for id in 1..=1_000 {
            let before: Vec<usize> =
                (0..counts.len()).map(|drive| inside_of(&run, drive)).collect();
            run.read(id, extent(rng.below(run.array.size().get()), 1));
            for (drive, count) in counts.iter_mut().enumerate() {
                *count += inside_of(&run, drive) - before[drive];
            }
            // Drives that serve one command in 5 ms each.
            while run.inside.len() > 2 * counts.len() {
                run.wait(Nanos::from_millis(5));
                let busy: BTreeSet<usize> = asked(&run).into_iter().collect();
                busy.into_iter().for_each(|drive| finish(&mut run, drive));
            }
        }
        let even = 1_000 / counts.len();
        assert!(counts.iter().all(|count| count.abs_diff(even) < even / 6), "{text}: {counts:?}");
        run.run_until_quiet();
    }
}

/// What follows a drive's last command comes under the head again only a rotation after that: the other copy is read while
/// that command is not done.
#[test]
fn copies_take_turns_in_a_stream_of_reads_that_wait() {
    let mut run = run_of(MIRROR, "level", 512);
    warm_up(&mut run, 100, extent(0, 1), Nanos::from_millis(5));
    let mut turns = Vec::new();
    for id in 1..=20 {
        let before = inside_of(&run, 0);
        run.read(id, extent(16 * id, 16));
        turns.push(inside_of(&run, 0) - before);
    }
    assert!(turns.windows(2).all(|pair| pair[0] + pair[1] == 1), "{turns:?}");
    run.run_until_quiet();
}

#[test]
fn a_stream_stays_at_one_drive_that_has_nothing_else_to_do() {
    let mut run = known(MIRROR);
    let mut drives = Vec::new();
    for id in 1..=20 {
        run.read(id, extent(2 * id, 2));
        drives.extend(asked(&run));
        run.run_until_quiet();
    }
    drives.dedup();
    assert_eq!(drives.len(), 1, "{drives:?}");
}

#[test]
fn of_pairs_each_chooses_its_own_copy_and_chunks_of_one_drive_are_one_command() {
    let mut run = run_of("raid10:4,chunk=8KiB", "level", 64);
    run.read(1, extent(0, 16));
    let drives = asked(&run);
    assert_eq!(drives.len(), 2, "{drives:?}");
    assert!(drives[0] < 2 && drives[1] >= 2, "{drives:?}");
    run.run_until_quiet();
    assert_answered(&mut run, 1);
}

#[test]
fn a_drive_that_sits_out_by_hand_is_not_read_under_any_policy() {
    for policy in Policy::all() {
        let mut run = run_of("raid1:3,chunk=4KiB", &policy.to_string(), 64);
        run.sit_out(DriveIdx::new(1)).unwrap();
        for id in 1..=9 {
            run.read(id, extent(5 * id, 1));
            assert_eq!(inside_of(&run, 1), 0, "{policy}");
            run.run_until_quiet();
        }
        // One must be left, and so the others are read.
        run.sit_out(DriveIdx::new(0)).unwrap();
        run.sit_out(DriveIdx::new(2)).unwrap_err();
        run.read(20, extent(5, 1));
        assert_eq!(asked(&run), [2], "{policy}");
        run.run_until_quiet();
        assert_answered(&mut run, 20);
    }
}

#[test]
fn a_sector_that_is_not_given_is_read_from_one_other_copy() {
    let mut run = known("raid1:3,chunk=4KiB");
    run.sit_out(DriveIdx::new(2)).unwrap();
    run.read(1, extent(0, 1));
    let first = asked(&run)[0];
    assert_eq!(efforts(&run), [(first, Effort::Fast)]);
    let before = run.combined;
    fail(&mut run, first);
    assert_eq!(asked(&run), [1 - first], "one, and not the one that sits out");
    finish(&mut run, 1 - first);
    assert_eq!(assert_answered(&mut run, 1).decoded, 0);
    assert_eq!(run.combined, before, "a copy needs no arithmetic");
}

#[test]
fn sectors_that_no_retry_mends_are_read_from_the_other_copy_under_every_policy() {
    for policy in Policy::all() {
        let mut run = run_of(MIRROR, &policy.to_string(), 64);
        run.bad.insert((DriveIdx::new(0), Lba::new(7)));
        run.bad.insert((DriveIdx::new(1), Lba::new(9)));
        for id in 1..=4 {
            run.read(id, extent(0, 20));
            run.run_until_quiet();
            assert_answered(&mut run, id);
        }
    }
}

#[test]
fn a_copy_that_is_late_is_not_waited_for() {
    let mut run = known(MIRROR);
    run.read(1, extent(0, 1));
    let first = asked(&run)[0];
    wait_for_deadline(&mut run);
    assert_eq!(asked(&run), [0, 1]);
    finish(&mut run, 1 - first);
    assert_answered(&mut run, 1);
    run.run_until_quiet();
}

/// All drives of a read were late once; the one that hangs is not waited for, since the others answer.
#[test]
fn a_late_drive_that_answers_is_asked_for_what_the_other_copies_owe() {
    for hung in 0..3 {
        let mut run = known("raid10:3,chunk=8KiB");
        run.read(1, extent(0, 12));
        for _ in 0..4 {
            run.wait(Nanos::from_millis(200));
        }
        for _ in 0..30 {
            let Some(&drive) = asked(&run).iter().find(|&&drive| drive != hung) else { break };
            run.wait(Nanos::from_millis(5));
            finish(&mut run, drive);
        }
        assert_answered(&mut run, 1);
        run.run_until_quiet();
    }
}

#[test]
fn a_slow_drive_is_read_no_more() {
    let mut run = run_of(MIRROR, "level", 64);
    for id in 1..=40 {
        run.read(id, extent(id, 1));
        while let Some(&drive) = asked(&run).first() {
            run.wait(Nanos::from_millis(if drive == 0 { 60 } else { 6 }));
            finish(&mut run, drive);
        }
        assert_answered(&mut run, id);
    }
    for id in 50..60 {
        run.read(id, extent(id, 1));
        assert_eq!(inside_of(&run, 1), 1, "read {id}");
        finish(&mut run, 1);
        run.run_until_quiet();
    }
}

/// A mirror of which no redundancy is valid, over drives full of garbage.
fn unsynced(text: &str, lost: DriveSet) -> Runtime {
    let spec: Spec = text.parse().unwrap();
    let plain = settings(spec, 8, Policy::DEFAULT, lost);
    let mut run = Runtime::new(&Settings { synced: 0, ..plain }, 5);
    for (at, drive) in run.drives.iter_mut().enumerate() {
        drive.bytes_mut(extent(0, 8)).fill(0x10 + at as u8);
    }
    run
}

fn first_byte(run: &mut Runtime, id: u64, lba: u64) -> u8 {
    run.read(id, extent(lba, 1));
    run.run_until_quiet();
    let (answer, buf) = run.take(id).unwrap();
    assert!(answer.outcome.is_good(), "{:?}", answer.outcome);
    buf.as_slice()[0]
}

#[test]
fn where_copies_may_differ_always_the_same_one_is_read_and_all_are_written() {
    let mut run = unsynced("raid1:3,chunk=4KiB", DriveSet::EMPTY);
    for id in 1..=6 {
        assert_eq!(first_byte(&mut run, id, 2), 0x10);
    }
    run.write(10, extent(2, 1), &[7; 4096]);
    run.run_until_quiet();
    assert!(run.take(10).unwrap().0.outcome.is_good());
    for lost in [0, 1] {
        run.lose(DriveIdx::new(lost));
        assert_eq!(first_byte(&mut run, 20 + u64::from(lost), 2), 7, "what was written is there");
    }
    assert_eq!(first_byte(&mut run, 30, 3), 0x12);
}

#[test]
fn a_read_under_way_takes_the_next_copy_where_the_one_it_reads_is_lost_or_damaged() {
    let mut run = unsynced(MIRROR, DriveSet::EMPTY);
    run.read(1, extent(4, 1));
    run.lose(DriveIdx::new(0));
    run.run_until_quiet();
    assert_eq!(run.take(1).unwrap().1.as_slice()[0], 0x11);
    let mut run = unsynced(MIRROR, DriveSet::EMPTY);
    run.bad.insert((DriveIdx::new(0), Lba::new(4)));
    assert_eq!(first_byte(&mut run, 2, 4), 0x11);
}

#[test]
fn copies_are_made_alike_also_without_some_drives_and_past_damaged_sectors() {
    let mut run = unsynced("raid1:3,chunk=4KiB", only(1));
    run.bad.insert((DriveIdx::new(0), Lba::new(5)));
    while run.array.resync() == Resync::Idle && run.array.synced() < 8 {
        run.resync();
        run.run_until_quiet();
    }
    assert_eq!(run.array.synced(), 8);
    assert_eq!(run.combined, 0);
    for lba in 0..8 {
        let source = if lba == 5 { 0x12 } else { 0x10 };
        for drive in [0, 2] {
            assert_eq!(run.drives[drive].bytes(extent(lba, 1))[0], source, "{lba} on {drive}");
        }
    }
    assert!(run.bad.is_empty(), "what was damaged is written");
}

#[test]
fn where_one_copy_is_left_nothing_needs_to_be_made_alike() {
    for (text, lost) in [(MIRROR, set(&[0])), (PAIRS, set(&[1, 2]))] {
        let mut run = unsynced(text, lost);
        run.resync();
        assert!(run.inside.is_empty(), "{text}");
        assert_eq!(run.array.synced(), run.array.layout().stripes(), "{text}");
    }
    let mut run = unsynced(PAIRS, set(&[0]));
    run.resync();
    assert_eq!(asked(&run), [2], "of the whole pair");
    run.run_until_quiet();
}

#[test]
fn pairs_survive_one_loss_each_and_fail_with_both_drives_of_one() {
    let mut run = run_of(PAIRS, "level", 16);
    for (id, drive) in [(1, 0), (2, 3)] {
        run.lose(DriveIdx::new(drive));
        let sectors = run.array.size().get();
        run.write(id, extent(0, sectors), &vec![7; sectors as usize * 4096]);
        run.run_until_quiet();
        assert!(run.take(id).unwrap().0.outcome.is_good());
        run.read(10 + id, extent(0, sectors));
        run.run_until_quiet();
        assert_answered(&mut run, 10 + id);
    }
    assert_eq!(run.array_events, []);
    run.lose(DriveIdx::new(1));
    let failed = ArrayEvent::Failed { lost: set(&[0, 1, 3]), survives: 1 };
    assert_eq!(run.array_events, [failed]);
    run.write(5, extent(1, 1), &[8; 4096]);
    run.run_until_quiet();
    assert!(!run.take(5).unwrap().0.outcome.is_good(), "a failed array takes no write");
    run.read(6, extent(1, 1));
    run.run_until_quiet();
    assert_answered(&mut run, 6);
}

/// G1 with the rule of the store: two copies of a generation on drives of different pairs are not safe.
#[test]
fn generation_is_committed_on_both_drives_of_a_pair_and_on_no_fewer() {
    let mut odd = 0;
    for seed in 0..60 {
        let mut run = whole("raid10:4,chunk=8KiB");
        run.reseed(seed);
        run.write(1, extent(3, 4), &[7; 4 * 4096]);
        while !run.inside.is_empty() {
            let is_data =
                |submit: &levelhead_array::Submit| submit.command.is_write() && !is_record(submit);
            let has = |drive: &usize| has_generation(&run, *drive, 18);
            let safe: Vec<usize> = (0..4).filter(has).collect();
            let is_pair = [[0, 1], [2, 3]].iter().any(|pair| pair.iter().all(|d| safe.contains(d)));
            if run.inside.iter().any(is_data) {
                assert!(is_pair, "seed {seed}: data goes out with the generation on {safe:?}");
            }
            odd += u32::from(safe.len() == 2 && !is_pair);
            run.finish_any();
        }
        assert!(run.take(1).unwrap().0.outcome.is_good());
        assert_eq!(says(&run, 0).state, State::Dirty);
    }
    assert!(odd > 10, "generations lay on one drive of each pair {odd} times");
}

/// A mirror that loses a drive, and goes on with the other: it must not answer before the loss is recorded.
#[test]
fn answers_that_rely_on_a_lost_copy_wait_until_its_loss_is_recorded() {
    let mut run = whole("raid1:2,chunk=8KiB");
    run.write(1, extent(3, 1), &[7; 4096]);
    run.run_until_quiet();
    run.take(1).unwrap();
    run.lose(DriveIdx::new(0));
    run.read(2, extent(3, 1));
    run.finish_all_but_records();
    assert!(run.take(2).is_none(), "the drive that is lost may come back as a good one");
    run.run_until_quiet();
    assert_answered(&mut run, 2);
}

#[test]
fn what_is_left_of_a_mirror_starts_without_force_whatever_happened() {
    for drives in [&[0, 1][..], &[0], &[1]] {
        let mut run = whole("raid1:2,chunk=8KiB");
        run.write(1, extent(3, 1), &[7; 4096]);
        run.run_until_quiet();
        // It is not stopped: the drives say that it is open.
        let assembly = assemble(&found(&run, drives)).unwrap();
        assert_eq!((assembly.doubt, assembly.trusted), (None, 0), "{drives:?}");
    }
}

#[test]
fn start_needs_a_drive_of_each_pair() {
    let run = started("raid10:4,chunk=8KiB", true, DriveSet::EMPTY);
    let mut run = run;
    run.write(1, extent(3, 1), &[7; 4096]);
    run.run_until_quiet();
    assert!(assemble(&found(&run, &[1, 2])).is_ok());
    let refused = assemble(&found(&run, &[2, 3])).unwrap_err();
    assert!(matches!(refused, Refusal::TooFew { absent, .. } if absent == set(&[0, 1])));
}

/// S1: which drives are lost for their silence is a matter of each pair.
#[test]
fn silent_drive_is_lost_where_its_fellow_answers_also_if_another_pair_is_silent() {
    let mut run = started("raid10:4,chunk=8KiB", true, DriveSet::EMPTY);
    run.write(1, extent(0, 1), &[7; 4096]);
    run.run_until_quiet();
    assert!(run.take(1).unwrap().0.outcome.is_good());
    [0, 2, 3].into_iter().for_each(|drive| run.hang(DriveIdx::new(drive)));
    run.write(2, extent(0, 1), &[8; 4096]);
    run.write(3, extent(2, 1), &[9; 4096]);
    run.run_for(PATIENCE.lost + PATIENCE.silent);
    assert_eq!(run.array.lost(), only(0));
    assert!(run.take(2).unwrap().0.outcome.is_good(), "the pair that is left of it answers");
    assert!(run.take(3).is_none());
    run.run_for(PATIENCE.lost);
    assert!(!run.take(3).unwrap().0.outcome.is_good(), "no drive has stored it");
}

/// The bytes of a write go to every copy as they lie in memory.
#[test]
fn a_write_is_one_command_a_copy_and_needs_no_buffer() {
    let mut run = fresh("raid1:3,chunk=8KiB", "level", 8);
    run.write(1, extent(1, 5), &[7; 5 * 4096]);
    assert_eq!(asked(&run), [0, 1, 2]);
    let whole = Extent::new(Lba::new(1), Sectors::new(5));
    for submit in &run.inside {
        assert!(matches!(submit.command, Command::Write { extent, .. } if extent == whole));
    }
    run.run_until_quiet();
    assert!(run.take(1).unwrap().0.outcome.is_good());
    assert_eq!(run.combined, 0);
}
