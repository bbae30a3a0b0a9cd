//! Sectors that are wrong when they are read back, and what says what they should be.

use levelhead_array::{Blame, Cell, Row, ScrubState, Settings, Submit, VerifySettings};
use levelhead_block::{Command, Effort};
use levelhead_units::{DriveSet, Lba, Nanos};

use crate::metadata::PATIENCE;
use crate::runtime::{Runtime, extent, journaled, settings};
use crate::scrub::SMALL;
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
pub(crate) fn cell(run: &Runtime, at: usize) -> Cell {
    run.array.layout().cell(Row { stripe: 0, row: 0 }, at)
}

pub(crate) fn lose_write(run: &mut Runtime, at: usize) {
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

/// A sector of an array whose drive comes after those of what is redundant beside it, so that these are read back first.
fn last_of_its_codeword(run: &Runtime) -> (u64, Vec<Cell>) {
    let layout = run.array.layout();
    let data = layout.data_symbols();
    for stripe in 0..STRIPES {
        let cells: Vec<Cell> =
            (0..layout.symbols()).map(|at| layout.cell(Row { stripe, row: 0 }, at)).collect();
        for at in 0..data {
            let lba = layout.sector(Row { stripe, row: 0 }, at).get();
            let mut involved = cells[data..].to_vec();
            involved.push(cells[at]);
            let last = *involved.iter().max().unwrap();
            // Of copies any will do.
            if layout.spec().is_mirror() || last == cells[at] {
                involved.retain(|&cell| cell != last);
                involved.insert(0, last);
                return (lba, involved);
            }
        }
    }
    panic!("some stripe has its redundancy first")
}

/// Writes to a sector, and takes the write back on its drive and on those of what is redundant; the latter were read back before.
/// The read of the former is inside its drive then.
fn lose_with_redundancy(run: &mut Runtime) -> u64 {
    let (lba, cells) = last_of_its_codeword(run);
    write(run, 1, extent(lba, 1), 7);
    loop {
        run.wait(verify::WAIT);
        match run.inside.as_slice() {
            [submit] if submit.drive == cells[0].drive => break,
            _ => run.finish(0),
        }
    }
    assert_eq!(status(run).waiting, 1);
    for cell in cells {
        forget(run, cell.drive.as_usize(), extent(cell.lba.get(), 1));
    }
    lba
}

const REDUNDANT: [&str; 6] = [
    "raid5:2+1,chunk=4KiB",
    "raid6:3+2,chunk=4KiB",
    "eraid:2+2,e=2,chunk=8KiB",
    "raid1:2,chunk=4KiB",
    "raid1:3,chunk=4KiB",
    "raid10:4,chunk=4KiB",
];

/// All drives agree on what was there before, and would not once the sector alone is written again.
#[test]
fn redundancy_that_counts_what_was_lost_is_written_again_with_the_sector_that_is_mended() {
    for verify in [VerifySettings::IDLE, SUMS] {
        for text in REDUNDANT {
            let plain = settings(
                text.parse().unwrap(),
                STRIPES,
                "normal".parse().unwrap(),
                DriveSet::EMPTY,
            );
            let verify_here = VerifySettings { wait: verify::WAIT, ..verify };
            let with = Settings { verify: Some(verify_here), background: Some(SMALL), ..plain };
            // What is kept with its checksum only is had from the journal.
            let with = if verify.cache == SUMS.cache { journaled(with) } else { with };
            let mut run = verify::run(&with);
            let lba = match verify.cache == SUMS.cache {
                true => lose_placed_with_redundancy(&mut run),
                false => lose_with_redundancy(&mut run),
            };
            verify::settle(&mut run);
            assert_eq!(told(&run), ["write-lost", "write-mended"], "{text}");
            assert!(run.array.counters().verify_beside > 0, "{text}");
            let found = run.scrub(Blame::Drives).found;
            assert_eq!((found.unlocated, found.wrong), (0, 0), "{text}: {found:?}");
            assert_eq!(read(&mut run, 2, extent(lba, 1)), [7], "{text}");
            let (row, symbol) = run.array.layout().find(Lba::new(lba));
            let drive = run.array.layout().cell(row, symbol).drive;
            run.lose(drive);
            assert_eq!(read(&mut run, 3, extent(lba, 1)), [7], "{text}, without its drive");
        }
    }
}

/// The same where the write goes through the journal.
fn lose_placed_with_redundancy(run: &mut Runtime) -> u64 {
    let (lba, cells) = last_of_its_codeword(run);
    write(run, 1, extent(lba, 1), 7);
    let is_check = |submit: &Submit, cell: &Cell| {
        let is_medium = matches!(submit.command, Command::Read { effort: Effort::Medium, .. });
        is_medium && submit.drive == cell.drive
    };
    let waits = |run: &Runtime| {
        run.inside.iter().any(|submit| is_check(submit, &cells[0])) && status(run).waiting == 1
    };
    while !waits(run) {
        let other = run.inside.iter().position(|submit| !is_check(submit, &cells[0]));
        match other {
            Some(at) => run.finish(at),
            None => run.wait(verify::WAIT),
        }
    }
    for cell in cells {
        forget(run, cell.drive.as_usize(), extent(cell.lba.get(), 1));
    }
    lba
}

/// Something else of the codeword has changed: what is redundant may be what says so.
#[test]
fn redundancy_is_not_written_where_nothing_proves_that_it_is_stale() {
    let plain = settings(
        REDUNDANT[0].parse().unwrap(),
        STRIPES,
        "normal".parse().unwrap(),
        DriveSet::EMPTY,
    );
    let mut run = verify::run(&Settings {
        verify: Some(VerifySettings::IDLE),
        background: Some(SMALL),
        ..plain
    });
    let lba = lose_with_redundancy(&mut run);
    let (row, symbol) = run.array.layout().find(Lba::new(lba));
    let other = run.array.layout().cell(row, 1 - symbol);
    run.drives[other.drive.as_usize()].bytes_mut(extent(other.lba.get(), 1)).fill(3);
    verify::settle(&mut run);
    assert_eq!(
        (told(&run), run.array.counters().verify_beside),
        (vec!["write-lost", "write-mended"], 0)
    );
    assert_eq!(run.scrub(Blame::Drives).found.unlocated, 1);
    assert_eq!(read(&mut run, 2, extent(lba, 1)), [7]);
}

/// C4: a scrub comes before the sector was read back. With two redundant drives it would find guilty what was just written, and with
/// two copies nothing.
#[test]
fn scrub_that_meets_what_waits_writes_what_is_redundant_again() {
    for text in ["raid6:3+2,chunk=4KiB", "raid1:2,chunk=4KiB", "raid1:3,chunk=4KiB"] {
        let plain =
            settings(text.parse().unwrap(), STRIPES, "normal".parse().unwrap(), DriveSet::EMPTY);
        let mut run = verify::run(&Settings {
            verify: Some(VerifySettings::IDLE),
            background: Some(SMALL),
            ..plain
        });
        let lba = lose_with_redundancy(&mut run);
        let check = run.inside[0].sub;
        assert!(run.array.handle_scrub_start(run.now(), Blame::Drives));
        run.wait(Nanos::ZERO);
        for _ in 0..1_000 {
            if run.array.scrub().state != ScrubState::Running {
                break;
            }
            let other = run.inside.iter().position(|submit| submit.sub != check);
            match other {
                Some(at) => run.finish(at),
                None => run.wait(Nanos::from_millis(1)),
            }
        }
        let found = run.array.scrub().found;
        let stale = run.array.layout().symbols() - run.array.layout().data_symbols();
        assert_eq!((found.unlocated, found.wrong), (0, stale as u64), "{text}: {found:?}");
        verify::settle(&mut run);
        assert_eq!(run.scrub(Blame::Drives).found.wrong, 0, "{text}");
        assert_eq!(read(&mut run, 2, extent(lba, 1)), [7], "{text}");
    }
}
