//! Sectors that wait to be read back and of which a checksum is kept, where what is redundant is stale without a trace: what is
//! computed is compared with the checksum before it is used.

use levelhead_array::{Blame, Budget, Cell, ScrubState, Settings, VerifySettings};
use levelhead_block::Outcome;
use levelhead_units::{DriveSet, Extent, Nanos};

use crate::mending::{cell, lose_write};
use crate::runtime::{Runtime, extent, finish, inside_of, settings};
use crate::verify::{self, SUMS, read, status, write};

/// Sectors wait without end.
const LATER: VerifySettings = VerifySettings { wait: Nanos::from_secs(10_000), ..SUMS };

/// An array of a few stripes with chunks of one sector.
fn run(text: &str, policy: &str) -> Runtime {
    let plain = settings(text.parse().unwrap(), 4, policy.parse().unwrap(), DriveSet::EMPTY);
    let background = Some(Budget::DEFAULT);
    verify::run(&Settings { verify: Some(LATER), background, ..plain })
}

/// A sector of the first codeword was written and waits; the drives with these symbols are new since then, and what they were
/// filled with has changed without a trace.
fn with_one_waiting(text: &str, stale: &[usize]) -> Runtime {
    with_policy(text, "normal", stale)
}

fn with_policy(text: &str, policy: &str, stale: &[usize]) -> Runtime {
    let mut run = run(text, policy);
    let size = run.array.size().get();
    write(&mut run, 1, extent(0, size), 3);
    run.run_for(LATER.wait * 2);
    for &at in stale {
        let drive = cell(&run, at).drive;
        run.lose(drive);
    }
    write(&mut run, 2, extent(0, 1), 7);
    for &at in stale {
        let cell = cell(&run, at);
        run.replace(cell.drive);
        run.run_for(Nanos::from_secs(60));
        assert!(!run.array.lost().contains(cell.drive));
    }
    stale.iter().for_each(|&at| {
        let cell = cell(&run, at);
        run.drives[cell.drive.as_usize()].bytes_mut(extent(cell.lba.get(), 1)).fill(0x77);
    });
    assert!(status(&run).waiting > 0);
    run
}

/// The sectors of a read that were not given, and a byte of each.
fn try_read(run: &mut Runtime, id: u64, extent: Extent) -> (Vec<u32>, Vec<u8>) {
    run.read(id, extent);
    run.run_until_quiet();
    let (answer, buf) = run.take(id).unwrap();
    let Outcome::Done { unknown, damaged } = &answer.outcome else { panic!("{answer:?}") };
    assert!(unknown.is_empty());
    (damaged.iter().collect(), buf.as_slice().iter().step_by(4096).copied().collect())
}

const LAYOUTS: [(&str, usize); 2] = [("raid5:2+1,chunk=4KiB", 2), ("raid1:2", 1)];

/// VF3: also when it was found out and could not be mended, until it is written again.
#[test]
fn what_is_stale_is_never_given_for_a_sector_whose_checksum_is_known() {
    for (text, redundant) in LAYOUTS {
        let mut run = with_one_waiting(text, &[redundant]);
        lose_write(&mut run, 0);
        for id in [3, 4] {
            let (lacking, bytes) = try_read(&mut run, id, extent(0, 1));
            assert_eq!(lacking, [0], "{text}: {bytes:?}");
            run.run_for(LATER.wait * 2);
        }
        assert_eq!((status(&run).waiting, status(&run).not_mended), (1, 1), "{text}");
        write(&mut run, 5, extent(0, 1), 9);
        run.run_for(LATER.wait * 2);
        assert_eq!(status(&run).waiting, 0);
        assert_eq!(read(&mut run, 6, extent(0, 1)), [9]);
    }
}

/// F4: what else would be computed there is as stale.
#[test]
fn nothing_is_computed_in_a_codeword_that_does_not_match_a_checksum() {
    let mut run = with_one_waiting("raid6:2+2,chunk=4KiB", &[2, 3]);
    lose_write(&mut run, 0);
    let Cell { drive, lba } = cell(&run, 1);
    run.bad.insert((drive, lba));
    let (lacking, bytes) = try_read(&mut run, 3, extent(0, 2));
    assert_eq!(lacking, [0, 1], "{bytes:?}");
}

/// R3: the drive that was gone round holds what was written.
#[test]
fn sector_whose_drive_is_gone_round_is_read_where_what_is_redundant_is_stale() {
    for (text, redundant) in [LAYOUTS[0], ("raid6:4+2,chunk=4KiB", 4)] {
        let mut run = with_one_waiting(text, &[redundant]);
        let drive = cell(&run, 0).drive;
        run.sit_out(drive).unwrap();
        assert_eq!(read(&mut run, 3, extent(0, 1)), [7], "{text}");
    }
}

/// Whichever comes first, and also where the read waits for other copies longer than for both.
#[test]
fn copy_that_is_known_is_given_before_one_that_is_not() {
    for (text, sectors) in [("raid1:2", 1), ("raid10:4,chunk=4KiB", 2)] {
        for order in [[0, 1], [1, 0]] {
            let mut run = with_policy(text, "assisted", &[0]);
            let drives = order.map(|at| cell(&run, at).drive.as_usize());
            run.read(3, extent(0, sectors));
            for drive in drives {
                if inside_of(&run, drive) > 0 {
                    finish(&mut run, drive);
                }
            }
            run.run_until_quiet();
            let (answer, buf) = run.take(3).unwrap();
            assert!(answer.outcome.is_good(), "{text}: {answer:?}");
            assert_eq!(buf.as_slice()[0], 7, "{text}: {order:?}");
        }
    }
}

#[test]
fn what_is_right_is_computed_as_ever() {
    for (text, redundant) in LAYOUTS {
        let mut run = with_one_waiting(text, &[]);
        lose_write(&mut run, 0);
        assert_eq!(read(&mut run, 3, extent(0, 1)), [7], "{text}, {redundant}");
        run.run_for(LATER.wait * 2);
        assert_eq!((status(&run).waiting, status(&run).mended), (0, 1), "{text}");
    }
}

/// W3: redundancy that counts something else than what was written there last would seal the loss.
#[test]
fn no_redundancy_is_computed_from_what_was_computed_wrong() {
    let mut run = with_one_waiting("raid6:4+2,chunk=4KiB", &[4]);
    lose_write(&mut run, 0);
    let Cell { drive, lba } = cell(&run, 1);
    run.bad.insert((drive, lba));
    let bytes = |run: &Runtime| {
        let Cell { drive, lba } = cell(run, 5);
        run.drives[drive.as_usize()].bytes(extent(lba.get(), 1)).to_vec()
    };
    let before = bytes(&run);
    run.write(3, extent(1, 1), &[9; 4096]);
    run.run_until_quiet();
    assert!(!run.take(3).unwrap().0.outcome.is_good());
    assert!(bytes(&run) == before);
}

/// C4: what a scrub would compute is as wrong.
#[test]
fn sector_that_waits_is_not_repaired_with_what_is_stale() {
    for (text, redundant) in LAYOUTS {
        let mut run = with_one_waiting(text, &[redundant]);
        let Cell { drive, lba } = cell(&run, 0);
        run.bad.insert((drive, lba));
        assert!(run.array.handle_scrub_start(run.now(), Blame::Drives));
        run.wait(Nanos::ZERO);
        run.run_for(Nanos::from_secs(60));
        assert_eq!(run.array.scrub().state, ScrubState::Done, "{text}");
        run.bad.clear();
        assert_eq!(read(&mut run, 3, extent(0, 1)), [7], "{text}");
    }
}
