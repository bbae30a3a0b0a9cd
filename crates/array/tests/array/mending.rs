//! Sectors that are wrong when they are read back, and what says what they should be.

use levelhead_array::{Cell, Row, Settings, VerifySettings};
use levelhead_block::{Command, Effort};
use levelhead_units::{DriveSet, Nanos};

use crate::books::PATIENCE;
use crate::runtime::{Runtime, extent, journaled, settings};
use crate::verify::{self, SUMS, forget, read, status, told, write};

const STRIPES: u64 = 8;

/// An array with chunks of one sector and a journal, which keeps checksums of what waits.
fn run(text: &str, wait: Nanos) -> Runtime {
    let plain =
        settings(text.parse().unwrap(), STRIPES, "normal".parse().unwrap(), DriveSet::EMPTY);
    let verify = Some(VerifySettings { wait, ..SUMS });
    verify::run(&Settings { verify, patience: Some(PATIENCE), ..journaled(plain) })
}

/// The sector of the first codeword that is its symbol number `at`.
fn cell(run: &Runtime, at: usize) -> Cell {
    run.array.layout().cell(Row { stripe: 0, row: 0 }, at)
}

fn lose_write(run: &mut Runtime, at: usize) {
    let Cell { drive, lba } = cell(run, at);
    forget(run, drive.as_usize(), extent(lba.get(), 1));
}

/// The rings have the younger of two lost writes of a codeword only, and without that one nothing says what the older one was.
#[test]
fn flaw_that_nothing_explains_is_mended_once_another_one_of_its_codeword_is() {
    const LATER: Nanos = Nanos::from_secs(1_000);
    let mut orders = Vec::new();
    for [old, young] in [[0, 1], [1, 0]] {
        let mut run = run("raid5:2+1,chunk=4KiB", LATER);
        write(&mut run, 1, extent(old as u64, 1), 7);
        run.run_for(Nanos::from_secs(1));
        for id in 2..100 {
            write(&mut run, id, extent(4 + id % 4, 1), 5);
            run.run_for(Nanos::from_millis(10));
        }
        write(&mut run, 100, extent(young as u64, 1), 9);
        run.run_for(Nanos::from_secs(1));
        lose_write(&mut run, old);
        lose_write(&mut run, young);
        run.run_for(LATER * 2);
        let seen = status(&run);
        assert_eq!((seen.waiting, seen.found, seen.mended, seen.not_mended), (0, 2, 2, 0));
        assert_eq!(read(&mut run, 101, extent(old as u64, 1)), [7]);
        assert_eq!(read(&mut run, 102, extent(young as u64, 1)), [9]);
        orders.push(told(&run).contains(&"write-not-mended"));
    }
    assert!(orders.contains(&true), "the older one was looked at first in one of them");
}

/// What a drive that sat out was given lies on the rings of others.
#[test]
fn ring_that_falls_silent_is_not_waited_for_where_the_other_drives_say_as_much() {
    let mut run = run("raid6:4+2,chunk=4KiB", verify::WAIT);
    let own = cell(&run, 0).drive;
    run.sit_out(own).unwrap();
    write(&mut run, 1, extent(0, 1), 7);
    let is_recall = |run: &Runtime| {
        run.inside.iter().position(|submit| match submit.command {
            Command::Read { extent, effort: Effort::Full } => extent.lba.get() >= STRIPES,
            _ => false,
        })
    };
    let at = loop {
        lose_write(&mut run, 0);
        match is_recall(&run) {
            Some(at) => break at,
            None if run.inside.is_empty() => run.wait(verify::WAIT),
            None => run.finish(0),
        }
    };
    let ring = run.inside[at].drive;
    assert_ne!(ring, own);
    run.hang(ring);
    run.run_for(PATIENCE.silent * 3);
    assert_eq!(
        (run.array.lost(), run.array.silent()),
        (DriveSet::EMPTY, DriveSet::EMPTY.with(ring))
    );
    assert_eq!(told(&run), ["write-lost", "write-mended"]);
    run.answer_again(ring);
    run.run_for(PATIENCE.silent);
    assert_eq!((status(&run).waiting, status(&run).mended), (0, 1));
    assert_eq!(read(&mut run, 2, extent(0, 1)), [7]);
}

/// The first half of a write is on no drive but its own, so that nothing says what it was; the second half is had from the others.
#[test]
fn write_of_which_one_flaw_could_not_be_mended_does_not_count_as_mended_once_that_is_written_over()
{
    let spec = "raid5:2+1,chunk=16KiB".parse().unwrap();
    let plain = settings(spec, STRIPES, "normal".parse().unwrap(), DriveSet::EMPTY);
    let mut run = verify::run(&Settings { verify: Some(SUMS), ..plain });
    run.write(1, extent(0, 4), &[7; 4 * 4096]);
    run.run_until_quiet();
    assert!(run.take(1).unwrap().0.outcome.is_good());
    let [own, redundant] = [0, 2].map(|at| cell(&run, at).drive.as_usize());
    // A write of the sector between them makes two flaws of what would be one.
    write(&mut run, 2, extent(1, 1), 9);
    forget(&mut run, own, extent(0, 1));
    forget(&mut run, own, extent(2, 2));
    forget(&mut run, redundant, extent(0, 1));
    for _ in 0..100 {
        run.wait(verify::WAIT);
        run.run_until_quiet();
    }
    let seen = status(&run);
    assert_eq!((seen.found, seen.mended, seen.not_mended), (2, 0, 2), "{seen:?}");
    assert_eq!(told(&run).iter().filter(|name| **name == "write-mended").count(), 1);
    write(&mut run, 3, extent(0, 1), 5);
    verify::settle(&mut run);
    let seen = status(&run);
    assert_eq!((seen.found, seen.mended, seen.waiting), (2, 0, 0), "{seen:?}");
    assert_eq!(read(&mut run, 4, extent(0, 4)), [5, 9, 7, 7]);
}
