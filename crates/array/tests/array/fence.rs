//! Two servers over the same drives: at most one of them writes.

use levelhead_array::assembly::assemble;
use levelhead_array::membership::Why;
use levelhead_array::superblock::Uuid;
use levelhead_array::{ArrayEvent, Settings};
use levelhead_block::BlockDevice;
use levelhead_stats::Streams;
use levelhead_units::{DriveIdx, DriveSet, Extent, Lba, Nanos};

use crate::metadata::{SPEC, found, settings_of_new, started, with_new_members};
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
    let (mut opened, mut both_fenced, mut refused) = ([0, 0], 0, 0);
    for seed in 0..400 {
        let mut settings: Settings = settings_of_new(SPEC);
        settings.recorded.as_mut().unwrap().is_in_reach = true;
        let mut first = with_new_members(&settings, SPEC);
        settings.recorded.as_mut().unwrap().run = Uuid([3; 16]);
        let mut second = with_new_members(&settings, SPEC);
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
        // Both have nothing to do but to wait for the end of leases.
        first.run_for(Nanos::from_secs(7));
        over(&mut first, &mut second, |second| second.run_for(Nanos::from_secs(7)));
        let are_open = [first.array.is_open(), second.array.is_open()];
        were_open.iter_mut().zip(are_open).for_each(|(was, is)| *was |= is);
        assert_ne!(were_open, [true, true], "seed {seed}");
        opened.iter_mut().zip(were_open).for_each(|(count, was)| *count += u32::from(was));
        if is_fenced(&first) && is_fenced(&second) {
            both_fenced += 1;
            let outcome = assemble(&found(&first, &ALL[..3]));
            if let Err(refusal) = &outcome {
                println!("seed {seed}: {refusal:?}");
            }
            refused += u32::from(outcome.is_err());
        }
        for (run, was_open) in [(&mut first, were_open[0]), (&mut second, were_open[1])] {
            let is_good = run.take(1).is_some_and(|(answer, _)| answer.outcome.is_good());
            assert!(!is_good || was_open, "seed {seed}");
        }
    }
    println!("open: {opened:?} of 400, both fenced: {both_fenced}, and refused then: {refused}");
    assert_eq!(refused, 0, "the array is as it was");
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

/// One that other machines can reach, written to and open.
fn in_reach() -> Runtime {
    let mut settings: Settings = settings_of_new(SPEC);
    settings.recorded.as_mut().unwrap().is_in_reach = true;
    let mut run = with_new_members(&settings, SPEC);
    run.write(1, extent(0, 1), &[1; 4096]);
    run.run_for(Nanos::from_secs(2));
    assert!(run.take(1).is_none(), "N5: whoever had a lease before may still have it");
    run.run_for(Nanos::from_secs(1));
    assert!(run.take(1).unwrap().0.outcome.is_good());
    run
}

/// Another server opens the array as it is by now.
fn taken_over(first: &mut Runtime) {
    let mut second = start_over(first, &ALL[..3]);
    over(first, &mut second, |second| {
        second.write(1, extent(0, 1), &[2; 4096]);
        second.run_until_quiet();
    });
    assert!(second.take(1).unwrap().0.outcome.is_good(), "the first one was not heard of");
}

/// N4: one that was not heard of for longer than a lease, or that stood still, finds itself fenced before it writes or answers
/// anything.
#[test]
fn server_that_is_taken_over_answers_nothing_once_its_lease_is_over() {
    for is_standstill in [false, true] {
        let mut first = in_reach();
        // It is written to and read while nobody else is there.
        for id in 2..40 {
            first.write(id, extent(0, 1), &[1; 4096]);
            first.read(100 + id, extent(0, 1));
            first.run_until_quiet();
            first.wait(Nanos::from_secs(id / 4));
            assert!(first.take(id).unwrap().0.outcome.is_good(), "{id}");
            assert!(first.take(100 + id).unwrap().0.outcome.is_good(), "{id}");
        }
        taken_over(&mut first);
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
        first.stop();
        first.run_for(Nanos::from_secs(30));
        assert!(first.ending.is_some(), "it can be stopped");
    }
}

/// N4: its drives have read the slots before it stood still, and it hears of that after another server has taken over.
#[test]
fn looks_from_before_a_standstill_count_for_nothing() {
    let mut first = in_reach();
    first.wait(Nanos::from_secs(30));
    first.write(200, extent(1, 1), &[9; 4096]);
    let before = first.drives.clone();
    taken_over(&mut first);
    let after = std::mem::replace(&mut first.drives, before);
    first.array.handle_standstill(first.now());
    end_looks_but_new(&mut first);
    first.drives = after;
    let written = first.written;
    first.run_until_quiet();
    assert!(is_fenced(&first));
    assert_eq!(first.written, written);
    assert!(!first.take(200).unwrap().0.outcome.is_good());
}

/// Ends what is inside, and nothing that comes of that.
fn end_looks_but_new(run: &mut Runtime) {
    let inside: Vec<_> = run.inside.iter().map(|submit| submit.sub).collect();
    for sub in inside {
        let at = run.inside.iter().position(|submit| submit.sub == sub).unwrap();
        run.finish(at);
    }
}

/// A slot was read before a generation was stored there, and that is heard of after it.
#[test]
fn look_that_is_late_costs_no_good_drive() {
    let mut run = in_reach();
    run.wait(Nanos::from_secs(30));
    run.write(200, extent(1, 1), &[9; 4096]);
    let all = Extent::new(Lba::ZERO, run.drives[0].size());
    let before = run.drives[0].bytes(all).to_vec();
    let late: Vec<_> =
        run.inside.iter().filter(|it| it.drive.as_usize() == 0).map(|it| it.sub).collect();
    assert!(!late.is_empty());
    run.array.handle_lost(run.now(), DriveIdx::new(2), Why::ByHand);
    run.wait(Nanos::from_millis(1));
    while let Some(at) = run.inside.iter().position(|submit| !late.contains(&submit.sub)) {
        run.finish(at);
    }
    let after = run.drives[0].bytes(all).to_vec();
    run.drives[0].bytes_mut(all).copy_from_slice(&before);
    while let Some(at) = run.inside.iter().position(|submit| late.contains(&submit.sub)) {
        run.finish(at);
    }
    run.drives[0].bytes_mut(all).copy_from_slice(&after);
    run.run_until_quiet();
    assert!(!run.array_events.iter().any(|event| matches!(event, ArrayEvent::WentBack { .. })));
    assert!(run.take(200).unwrap().0.outcome.is_good());
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
