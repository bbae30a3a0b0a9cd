//! What reading back is worth where the drive is not asked for its medium: what such reads take says it.

use levelhead_array::{Promise, Reach, Settings, VerifyMode, VerifySettings};
use levelhead_units::{DriveIdx, DriveSet, Nanos};

use crate::runtime::{Runtime, extent, settings};

const DRIVE: DriveIdx = DriveIdx::new(0);

/// Two copies of everything, read back as soon as they are written.
fn mirror() -> Runtime {
    let spec = "raid1:2,chunk=16KiB".parse().unwrap();
    let settings = settings(spec, 4, "normal".parse().unwrap(), DriveSet::EMPTY);
    let verify = VerifySettings { mode: VerifyMode::Raw, ..VerifySettings::IDLE };
    Runtime::new(&Settings { verify: Some(verify), ..settings }, 1)
}

/// Writes that are read back one by one, each in this time, and beside another command for the drive if that is wanted.
fn work(run: &mut Runtime, writes: u64, took: Nanos, is_alone: bool) {
    for id in 0..writes {
        run.write(id, extent(0, 1), &[id as u8; 4096]);
        while run.inside.iter().any(|submit| submit.command.is_write()) {
            run.finish(0);
        }
        if !is_alone {
            run.write(1_000 + id, extent(8, 1), &[id as u8; 4096]);
        }
        run.wait(took);
        while !run.inside.is_empty() {
            run.finish(0);
        }
        assert!(run.take(id).unwrap().0.outcome.is_good());
        run.take(1_000 + id);
    }
}

const LONG: Nanos = Nanos::from_millis(5);

#[test]
fn drive_whose_reads_take_longer_than_memory_does_is_likely_to_have_read_its_medium() {
    let mut run = mirror();
    let promise = |run: &Runtime| run.array.promise(DRIVE);
    work(&mut run, 63, LONG, true);
    assert_eq!(promise(&run), Promise::Interface, "too few");
    work(&mut run, 1, LONG, true);
    assert_eq!(promise(&run), Promise::Likely);
    assert_eq!(run.array.verify_status().unwrap().guarantee, Promise::Likely);
    work(&mut run, 33, Nanos::ZERO, true);
    assert_eq!(promise(&run), Promise::Interface, "fewer than half of the last 64");
    assert_eq!(run.array.verify_status().unwrap().guarantee, Promise::Interface);
}

#[test]
fn read_beside_another_command_says_nothing() {
    let mut run = mirror();
    work(&mut run, 100, LONG, false);
    assert_eq!(run.array.promise(DRIVE), Promise::Interface);
    assert!(run.array.verify_status().unwrap().verified > 100);
}

#[test]
fn nothing_is_measured_where_a_network_lies_between_and_what_is_known_stays() {
    let mut run = mirror();
    run.array.handle_reach(DRIVE, Reach::Far);
    work(&mut run, 64, LONG, true);
    let promises = [0, 1].map(|drive| run.array.promise(DriveIdx::new(drive)));
    assert_eq!(promises, [Promise::Interface, Promise::Likely]);
    run.array.handle_promise(DRIVE, Promise::Medium);
    work(&mut run, 64, Nanos::ZERO, true);
    assert_eq!(run.array.promise(DRIVE), Promise::Medium);
}

/// A new drive in its place has been read back nothing of.
#[test]
fn what_was_measured_ends_with_the_drive() {
    let mut run = mirror();
    work(&mut run, 64, LONG, true);
    run.lose(DRIVE);
    run.replace(DRIVE);
    assert_eq!(run.array.promise(DRIVE), Promise::Interface);
}
