//! Two servers over the same drives: at most one of them writes.

use levelhead_array::{ArrayEvent, Settings};
use levelhead_block::BlockDevice;
use levelhead_stats::Streams;
use levelhead_units::{DriveIdx, DriveSet, Extent, Lba, Nanos};

use crate::metadata::{SPEC, settings_of_new, started, with_new_members};
use crate::runtime::{Runtime, extent};
use crate::wishes::{ALL, start_over};

/// Has a server do something over the drives of another one.
fn over(drives: &mut Runtime, server: &mut Runtime, does: impl FnOnce(&mut Runtime)) {
    std::mem::swap(&mut drives.drives, &mut server.drives);
    does(server);
    std::mem::swap(&mut drives.drives, &mut server.drives);
}

fn is_fenced(run: &Runtime) -> bool {
    run.array_events.contains(&ArrayEvent::Fenced)
}

/// N1 to N3, at many orders of ends.
#[test]
fn of_two_servers_that_open_at_the_same_time_at_most_one_is_ever_open() {
    let (mut opened, mut both_fenced) = ([0, 0], 0);
    for seed in 0..400 {
        let mut first = started(SPEC, true, DriveSet::EMPTY);
        let mut second = start_over(&first, &ALL[..3]);
        let mut rng = Streams::new(seed).stream("order");
        first.reseed(seed);
        second.reseed(seed + 1_000);
        let bias = 40 + rng.below(20);
        first.write(1, extent(0, 1), &[1; 4096]);
        over(&mut first, &mut second, |second| second.write(1, extent(0, 1), &[2; 4096]));
        let mut were_open = [false, false];
        while !first.inside.is_empty() || !second.inside.is_empty() {
            if second.inside.is_empty() || (!first.inside.is_empty() && rng.below(100) < bias) {
                first.finish_any();
            } else {
                over(&mut first, &mut second, Runtime::finish_any);
            }
            let are_open = [first.array.is_open(), second.array.is_open()];
            were_open.iter_mut().zip(are_open).for_each(|(was, is)| *was |= is);
            assert_ne!(were_open, [true, true], "seed {seed}");
        }
        opened.iter_mut().zip(were_open).for_each(|(count, was)| *count += u32::from(was));
        both_fenced += u32::from(is_fenced(&first) && is_fenced(&second));
        for (run, was_open) in [(&mut first, were_open[0]), (&mut second, were_open[1])] {
            let is_good = run.take(1).is_some_and(|(answer, _)| answer.outcome.is_good());
            assert!(!is_good || was_open, "seed {seed}");
        }
    }
    println!("open: {opened:?} of 400, both fenced: {both_fenced}");
    assert!(
        opened.iter().all(|&count| count > 20) && both_fenced > 20,
        "{opened:?}, {both_fenced}"
    );
}

/// N1: one that has found the array before another one has opened it writes nothing, and the other one goes on.
#[test]
fn server_that_comes_late_is_fenced_before_it_writes() {
    let mut first = started(SPEC, true, DriveSet::EMPTY);
    let mut second = start_over(&first, &ALL[..3]);
    first.write(1, extent(0, 1), &[1; 4096]);
    first.run_until_quiet();
    over(&mut first, &mut second, |second| {
        second.write(1, extent(0, 1), &[2; 4096]);
        second.run_until_quiet();
    });
    assert!(is_fenced(&second) && second.written == 0);
    assert!(!second.take(1).unwrap().0.outcome.is_good());
    first.write(2, extent(0, 1), &[3; 4096]);
    first.run_until_quiet();
    assert!(!is_fenced(&first) && first.take(2).unwrap().0.outcome.is_good());
}

/// N4: one whose drives can be in reach of another machine, and that was not heard of for longer than a lease, finds itself fenced
/// before it writes or answers anything.
#[test]
fn server_that_is_taken_over_answers_nothing_once_its_lease_is_over() {
    [false, true].into_iter().for_each(taken_over);
}

fn taken_over(is_standstill: bool) {
    let mut settings: Settings = settings_of_new(SPEC);
    settings.recorded.as_mut().unwrap().is_in_reach = true;
    let mut first = with_new_members(&settings, SPEC);
    first.write(1, extent(0, 1), &[1; 4096]);
    first.run_until_quiet();
    assert!(first.take(1).unwrap().0.outcome.is_good());
    // It is written to and read while nobody else is there.
    for id in 2..40 {
        first.write(id, extent(0, 1), &[1; 4096]);
        first.read(100 + id, extent(0, 1));
        first.run_until_quiet();
        first.wait(Nanos::from_secs(id / 4));
        assert!(first.take(id).unwrap().0.outcome.is_good(), "{id}");
        assert!(first.take(100 + id).unwrap().0.outcome.is_good(), "{id}");
    }
    let mut second = start_over(&first, &ALL[..3]);
    over(&mut first, &mut second, |second| {
        second.write(1, extent(0, 1), &[2; 4096]);
        second.run_until_quiet();
    });
    assert!(second.take(1).unwrap().0.outcome.is_good(), "the first one was not heard of");
    // It stood still, or its lease has just run out.
    match is_standstill {
        true => first.array.handle_standstill(first.now()),
        false => first.wait(Nanos::from_secs(6)),
    }
    let written = first.written;
    first.read(200, extent(0, 1));
    first.write(201, extent(1, 1), &[1; 4096]);
    first.run_until_quiet();
    assert!(is_fenced(&first));
    assert_eq!(first.written, written);
    for id in [200, 201] {
        assert!(!first.take(id).unwrap().0.outcome.is_good(), "{id}");
    }
}

/// An export or an image that was put back to an earlier state: what it stored newest is not there any more.
#[test]
fn drive_that_has_gone_back_is_lost_with_the_next_generation() {
    let mut run = started(SPEC, true, DriveSet::EMPTY);
    run.write(1, extent(0, 1), &[1; 4096]);
    run.run_until_quiet();
    let all = Extent::new(Lba::ZERO, run.drives[1].size());
    let before = run.drives[1].bytes(all).to_vec();
    for id in 2..5 {
        run.write(id, extent(0, 1), &[id as u8; 4096]);
        run.run_until_quiet();
        run.wait(Nanos::from_secs(61));
        run.run_until_quiet();
        assert!(run.array.lost().is_empty());
    }
    run.drives[1].bytes_mut(all).copy_from_slice(&before);
    run.write(9, extent(1, 1), &[9; 4096]);
    run.run_until_quiet();
    run.wait(Nanos::from_secs(61));
    run.run_until_quiet();
    let drive = DriveIdx::new(1);
    assert!(run.array.lost().contains(drive));
    assert!(run.array_events.contains(&ArrayEvent::WentBack { drive }));
}
