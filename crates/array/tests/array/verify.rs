//! Writes that are read back, and mended where they are not there.

use levelhead_array::journal::rules::{Rule, Rules};
use levelhead_array::{
    ArrayEvent, Blame, Budget, Flaw, Promise, Row, ScrubState, Settings, Submit, VerifyMode,
    VerifySettings, VerifyStatus,
};
use levelhead_block::{Command, Effort, Outcome, SectorSet};
use levelhead_units::{DriveIdx, DriveSet, Extent, Lba, Nanos, Sectors};

use crate::metadata::PATIENCE;
use crate::runtime::{Runtime, extent, journaled, settings};

pub(crate) const WAIT: Nanos = Nanos::from_millis(1);

/// Four data drives and two redundant ones with chunks of four sectors, whose writes are read back.
fn verified(verify: VerifySettings) -> Runtime {
    let spec = "raid6:4+2,chunk=16KiB".parse().unwrap();
    let settings = settings(spec, 4, "normal".parse().unwrap(), DriveSet::EMPTY);
    run(&Settings { verify: Some(verify), ..settings })
}

pub(crate) fn run(settings: &Settings) -> Runtime {
    let mut run = Runtime::new(settings, 1);
    for drive in 0..settings.spec.drives() {
        run.array.handle_promise(DriveIdx::from_usize(drive), Promise::Medium);
    }
    run
}

pub(crate) const SUMS: VerifySettings =
    VerifySettings { cache: Sectors::ZERO, ..VerifySettings::IDLE };

pub(crate) fn status(run: &Runtime) -> VerifyStatus {
    run.array.verify_status().unwrap()
}

pub(crate) fn write(run: &mut Runtime, id: u64, extent: Extent, value: u8) {
    run.write(id, extent, &vec![value; extent.sectors.as_usize() * 4096]);
    run.run_until_quiet();
    assert!(run.take(id).unwrap().0.outcome.is_good());
}

pub(crate) fn read(run: &mut Runtime, id: u64, extent: Extent) -> Vec<u8> {
    run.read(id, extent);
    run.run_until_quiet();
    let (answer, buf) = run.take(id).unwrap();
    assert!(answer.outcome.is_good());
    buf.as_slice().iter().step_by(4096).copied().collect()
}

/// Puts zeroes where a drive has stored something, as if it had lost that.
pub(crate) fn forget(run: &mut Runtime, drive: usize, extent: Extent) {
    run.drives[drive].bytes_mut(extent).fill(0);
}

/// What was told of flawed writes, by its name.
pub(crate) fn told(run: &Runtime) -> Vec<&'static str> {
    let name = |event: &ArrayEvent| match event {
        ArrayEvent::WriteFlawed { .. } | ArrayEvent::WriteMended { .. } => {
            Some(levelhead_array::Event::Array(*event).name())
        }
        _ => None,
    };
    run.array_events.iter().filter_map(name).collect()
}

/// Lets time pass until nothing waits to be read back.
pub(crate) fn settle(run: &mut Runtime) {
    for _ in 0..100 {
        run.wait(WAIT);
        run.run_until_quiet();
    }
    assert_eq!(status(run).waiting, 0);
}

#[test]
fn write_is_read_back_when_its_drive_has_been_idle_and_one_drive_of_a_group_at_a_time() {
    let mut run = verified(VerifySettings::IDLE);
    write(&mut run, 1, extent(0, 2), 7);
    assert!(run.inside.is_empty() && status(&run).waiting == 3);
    run.wait(Nanos::from_micros(100));
    assert!(run.inside.is_empty(), "VF6: it has not been idle for long enough");
    run.wait(WAIT);
    let [submit] = run.inside.as_slice() else { panic!("one drive at a time: {:?}", run.inside) };
    assert!(matches!(submit.command, Command::Read { effort: Effort::Medium, .. }));
    settle(&mut run);
    let seen = status(&run);
    assert_eq!((seen.writes, seen.verified, seen.found, seen.memory_bytes), (3, 3, 0, 0));
}

#[test]
fn raw_reads_back_at_once() {
    let mut run = verified(VerifySettings { mode: VerifyMode::Raw, ..VerifySettings::IDLE });
    write(&mut run, 1, extent(0, 2), 7);
    assert_eq!((status(&run).verified, status(&run).waiting), (3, 0));
}

#[test]
fn lost_write_is_never_read_and_is_mended_from_memory_or_from_the_other_drives() {
    for verify in [VerifySettings::IDLE, SUMS] {
        let mut run = verified(verify);
        write(&mut run, 1, extent(0, 3), 7);
        forget(&mut run, 0, extent(0, 3));
        assert_eq!(read(&mut run, 2, extent(0, 4)), [7, 7, 7, 0], "VF3, {verify:?}");
        settle(&mut run);
        assert_eq!(told(&run), ["write-lost", "write-mended"], "{verify:?}");
        assert_eq!(run.drives[0].bytes(extent(0, 3)), [7; 3 * 4096]);
        let seen = status(&run);
        assert_eq!((seen.found, seen.mended, seen.verified), (1, 1, 3), "{seen:?}");
        let flawed = run.array_events.iter().find_map(|event| match event {
            ArrayEvent::WriteFlawed { drive, extent, flaw, promise } => {
                Some((*drive, *extent, *flaw, *promise))
            }
            _ => None,
        });
        let expected = (DriveIdx::new(0), extent(0, 3), Flaw::Lost, Promise::Medium);
        assert_eq!(flawed, Some(expected));
    }
}

#[test]
fn torn_write_is_mended_where_it_is_torn() {
    let mut run = verified(VerifySettings::IDLE);
    write(&mut run, 1, extent(0, 4), 7);
    forget(&mut run, 0, extent(2, 2));
    settle(&mut run);
    assert_eq!(told(&run), ["write-torn", "write-mended"]);
    assert_eq!(run.drives[0].bytes(extent(0, 4)), [7; 4 * 4096]);
}

#[test]
fn sector_that_cannot_be_read_back_is_mended_as_well() {
    let mut run = verified(SUMS);
    write(&mut run, 1, extent(0, 2), 7);
    run.bad.insert((DriveIdx::new(0), Lba::new(1)));
    settle(&mut run);
    assert_eq!(told(&run), ["write-unreadable", "write-mended"]);
    assert!(run.bad.is_empty());
}

/// VF3: what is redundant would count what is stale.
#[test]
fn redundancy_is_not_computed_from_what_was_lost() {
    for verify in [VerifySettings::IDLE, SUMS] {
        let mut run = verified(verify);
        write(&mut run, 1, extent(0, 1), 7);
        forget(&mut run, 0, extent(0, 1));
        // The same codeword: three sectors of data are read, or the old ones of what changes.
        write(&mut run, 2, extent(4, 1), 9);
        settle(&mut run);
        run.lose(DriveIdx::new(0));
        run.lose(DriveIdx::new(1));
        assert_eq!(read(&mut run, 3, extent(0, 1)), [7], "{verify:?}");
        assert_eq!(read(&mut run, 4, extent(4, 1)), [9], "{verify:?}");
    }
}

/// VF2: the read was inside the drive when the next write of the sector went out.
#[test]
fn comparison_that_another_write_has_overtaken_says_nothing() {
    let mut run = verified(VerifySettings::IDLE);
    write(&mut run, 1, extent(0, 1), 7);
    run.wait(WAIT);
    assert_eq!(run.inside.len(), 1, "it is being read back");
    let read = run.inside[0].sub;
    run.write(2, extent(0, 1), &[9; 4096]);
    run.run_until(|run| {
        run.inside.iter().all(|submit| submit.sub != read) || run.inside.len() == 1
    });
    run.run_until_quiet();
    settle(&mut run);
    assert!(told(&run).is_empty());
    let seen = status(&run);
    assert_eq!(seen.writes, seen.verified + seen.superseded, "{seen:?}");
    assert_eq!(run.drives[0].bytes(extent(0, 1)), [9; 4096]);
}

#[test]
fn write_that_a_drive_never_stores_is_told_and_still_not_read() {
    let mut run = verified(VerifySettings::IDLE);
    write(&mut run, 1, extent(0, 1), 7);
    for _ in 0..200 {
        forget(&mut run, 0, extent(0, 1));
        run.wait(WAIT);
        while !run.inside.is_empty() {
            run.finish(0);
            forget(&mut run, 0, extent(0, 1));
        }
    }
    assert_eq!(told(&run), ["write-lost", "write-not-mended"]);
    assert_eq!(status(&run).waiting, 1, "it keeps its record");
    assert_eq!(read(&mut run, 2, extent(0, 1)), [7]);
    // Another write ends that.
    write(&mut run, 3, extent(0, 1), 9);
    settle(&mut run);
    assert_eq!(read(&mut run, 4, extent(0, 1)), [9]);
}

#[test]
fn drive_that_is_lost_has_nothing_to_be_read_back() {
    let mut run = verified(VerifySettings::IDLE);
    write(&mut run, 1, extent(0, 2), 7);
    run.wait(WAIT);
    let drive = run.inside[0].drive;
    run.lose(drive);
    run.run_until_quiet();
    settle(&mut run);
    let seen = status(&run);
    assert_eq!((seen.verified, seen.unverified, seen.memory_bytes), (2, 1, 0), "VF7: {seen:?}");
}

/// The journal places what it has beside; what it has is newer than any record.
#[test]
fn journaled_writes_are_read_back_once_they_are_in_their_places() {
    let spec = "raid5:2+1,chunk=8KiB".parse().unwrap();
    let plain = settings(spec, 6, "normal".parse().unwrap(), DriveSet::EMPTY);
    let settings = Settings { verify: Some(VerifySettings::IDLE), ..journaled(plain) };
    let mut run = run(&settings);
    for id in 0..20 {
        write(&mut run, id, extent(id % 3, 2), id as u8 + 1);
        run.wait(Nanos::from_micros(700));
    }
    settle(&mut run);
    let seen = status(&run);
    assert!(seen.verified > 0 && seen.found == 0, "{seen:?}");
    assert_eq!(seen.writes, seen.verified + seen.superseded, "{seen:?}");
}

/// ME2: what is committed and waits for its place is newer than what would be mended, and the journal writes it beside.
#[test]
fn nothing_is_mended_that_waits_in_the_journal() {
    for (rules, expected) in [(Rules::ALL, 0), (Rules::without(Rule::MendPlaced), 1)] {
        let plain =
            settings("raid1:2".parse().unwrap(), 6, "normal".parse().unwrap(), DriveSet::EMPTY);
        let verify = Some(VerifySettings { rules, ..VerifySettings::IDLE });
        let mut run = run(&Settings { verify, ..journaled(plain) });
        write(&mut run, 1, extent(0, 1), 7);
        let is_check = |submit: &Submit| {
            matches!(submit.command, Command::Read { effort: Effort::Medium, .. })
        };
        let check = loop {
            run.wait(WAIT);
            match run.inside.iter().position(is_check) {
                Some(at) => break run.inside[at].clone(),
                None if run.inside.is_empty() => {}
                None => run.finish(0),
            }
        };
        forget(&mut run, check.drive.as_usize(), extent(0, 1));
        run.write(2, extent(0, 1), &[9; 4096]);
        let answer = loop {
            if let Some((answer, _)) = run.take(2) {
                break answer;
            }
            let other = run.inside.iter().position(|submit| submit.sub != check.sub);
            run.finish(other.expect("the write waits for its records"));
        };
        assert!(answer.outcome.is_good());
        let at = run.inside.iter().position(|submit| submit.sub == check.sub).unwrap();
        run.finish(at);
        // A mend looks at its codeword first.
        let is_read = |submit: &Submit| matches!(submit.command, Command::Read { .. });
        while let Some(at) = run.inside.iter().position(is_read) {
            run.finish(at);
        }
        assert_eq!(told(&run), ["write-lost"]);
        assert_eq!(run.array.counters().verify_writes, expected, "{rules:?}");
        run.run_for(Nanos::from_secs(1));
        settle(&mut run);
        assert_eq!(read(&mut run, 3, extent(0, 1)), [9]);
    }
}

/// Y1: redundancy that waits to be read back was written before it counted as zeroes what a rebuild finds to be nowhere.
#[test]
fn redundancy_that_goes_onto_the_list_of_damaged_sectors_is_had_from_no_record() {
    for is_written_again in [false, true] {
        let verify = VerifySettings { wait: Nanos::from_secs(10_000), ..VerifySettings::IDLE };
        let spec = "raid5:4+1,chunk=4KiB".parse().unwrap();
        let plain = settings(spec, 4, "normal".parse().unwrap(), DriveSet::EMPTY);
        let mut run = run(&Settings { verify: Some(verify), ..plain });
        let row = Row { stripe: 0, row: 0 };
        let cells: Vec<_> = (0..5).map(|at| run.array.layout().cell(row, at)).collect();
        for (cell, value) in cells.iter().zip([1, 2, 0, 4, 7]) {
            run.drives[cell.drive.as_usize()].bytes_mut(extent(0, 1)).fill(value);
        }
        run.lose(cells[1].drive);
        write(&mut run, 1, extent(2, 1), 8);
        assert_eq!(status(&run).waiting, 2);
        let bad = |at: usize| (cells[at].drive, Lba::ZERO);
        run.bad.insert(bad(0));
        run.replace(cells[1].drive);
        run.run_for(Nanos::from_secs(60));
        assert!(run.array.lost().is_empty());
        let listed = |run: &Runtime| {
            let list: Vec<_> = run.array.damaged().ranges().collect();
            let sectors = list.iter().map(|range| range.extent.sectors.get()).sum::<u64>();
            (list.len(), sectors)
        };
        assert_eq!(listed(&run), (3, 3), "two sectors of data and what is redundant");
        if is_written_again {
            write(&mut run, 2, extent(2, 1), 16);
            assert_eq!(listed(&run), (2, 2));
        }
        run.bad.insert(bad(3));
        run.read(3, extent(3, 1));
        run.run_for(Nanos::from_secs(1));
        let (answer, buf) = run.take(3).unwrap();
        if is_written_again {
            assert!(answer.outcome.is_good() && buf.as_slice() == [4; 4096]);
        } else {
            let Outcome::Done { damaged, .. } = &answer.outcome else { panic!("{answer:?}") };
            assert!(damaged.contains(0), "nothing returns it: {:?}", buf.as_slice()[0]);
        }
    }
}

/// The digest of a read comes when its write has found another way: its drive hinders, as one does that sits out.
#[test]
fn read_that_waits_for_its_checksums_while_its_write_does_without_it_is_dropped() {
    let spec = "raid5:2+1,chunk=8KiB".parse().unwrap();
    let plain = settings(spec, 6, "normal".parse().unwrap(), DriveSet::EMPTY);
    let wait = Nanos::from_secs(10_000);
    let verify = Some(VerifySettings { wait, ..SUMS });
    let mut run = run(&Settings { verify, ..journaled(plain) });
    write(&mut run, 1, extent(0, 4), 7);
    run.run_for(Nanos::from_secs(10));
    assert!(status(&run).waiting > 0, "it is in its place");
    run.write(2, extent(0, 1), &[9; 4096]);
    let is_read = |submit: &Submit| matches!(submit.command, Command::Read { .. });
    let at = run.inside.iter().position(is_read).expect("the rest of the codeword is read");
    run.sit_out(run.inside[at].drive).unwrap();
    run.finish(at);
    run.run_until_quiet();
    assert!(run.take(2).unwrap().0.outcome.is_good());
    assert_eq!(read(&mut run, 3, extent(0, 1)), [9]);
}

#[test]
fn mend_that_a_drive_does_not_store_costs_no_drive_that_is_needed() {
    let spec = "raid5:2+1,chunk=8KiB".parse().unwrap();
    let plain = settings(spec, 6, "normal".parse().unwrap(), DriveSet::EMPTY);
    let mut run = run(&Settings { verify: Some(VerifySettings::IDLE), ..plain });
    let cell = |run: &Runtime, at| run.array.layout().cell(Row { stripe: 0, row: 0 }, at);
    let (drive, lost) = (cell(&run, 0).drive, cell(&run, 1).drive);
    run.lose(lost);
    write(&mut run, 1, extent(0, 1), 7);
    forget(&mut run, drive.as_usize(), extent(0, 1));
    let mut failed = 0;
    while failed == 0 {
        run.wait(WAIT);
        while !run.inside.is_empty() {
            if failed == 0 && run.inside[0].command.is_write() {
                let submit = run.inside.remove(0);
                let damaged = SectorSet::first(Sectors::new(1));
                let outcome = Outcome::Done { unknown: SectorSet::EMPTY, damaged };
                run.array.handle_done(run.now(), submit.sub, &outcome);
                run.wait(Nanos::ZERO);
                failed += 1;
            } else {
                run.finish(0);
            }
        }
    }
    settle(&mut run);
    assert_eq!(run.array.lost(), DriveSet::EMPTY.with(lost));
    assert_eq!(told(&run), ["write-lost", "write-mended"]);
    assert_eq!(run.drives[drive.as_usize()].bytes(extent(0, 1)), [7; 4096]);
}

/// VF6: a drive that is silent may keep its read without end, and the others of its group are read all the same.
#[test]
fn drive_that_hangs_with_a_read_inside_keeps_only_itself_from_being_read() {
    let spec = "raid6:4+2,chunk=16KiB".parse().unwrap();
    let plain = settings(spec, 4, "normal".parse().unwrap(), DriveSet::EMPTY);
    let verify = Some(VerifySettings::IDLE);
    let mut run = run(&Settings { verify, patience: Some(PATIENCE), ..plain });
    write(&mut run, 1, extent(0, 2), 7);
    run.wait(WAIT);
    let [submit] = run.inside.as_slice() else { panic!("{:?}", run.inside) };
    let drive = submit.drive;
    run.hang(drive);
    run.run_for(Nanos::from_secs(1));
    assert_eq!(status(&run).waiting, 3, "nothing is known of it yet");
    run.run_for(PATIENCE.silent * 2);
    assert_eq!((status(&run).waiting, run.array.silent()), (1, DriveSet::EMPTY.with(drive)));
    run.answer_again(drive);
    run.run_for(Nanos::from_secs(1));
    assert_eq!((status(&run).verified, status(&run).found), (3, 0));
}

#[test]
fn scrub_that_was_stopped_by_hand_is_not_gone_on_with_for_lost_writes() {
    for is_stopped in [false, true] {
        let spec = "raid5:2+1,chunk=8KiB".parse().unwrap();
        let plain = settings(spec, 6, "normal".parse().unwrap(), DriveSet::EMPTY);
        let (verify, background) = (Some(VerifySettings::IDLE), Some(Budget::DEFAULT));
        let mut run = run(&Settings { verify, background, ..plain });
        if is_stopped {
            assert!(run.array.handle_scrub_start(run.now(), Blame::Drives));
            assert!(run.array.handle_scrub_stop(run.now()));
            run.wait(Nanos::ZERO);
            run.run_until_quiet();
        }
        for at in 0..2 {
            write(&mut run, at, extent(at, 1), 7);
        }
        let drive = run.array.layout().cell(Row { stripe: 0, row: 0 }, 0).drive;
        forget(&mut run, drive.as_usize(), extent(0, 2));
        settle(&mut run);
        assert_eq!((status(&run).found, status(&run).mended), (2, 2));
        let state = if is_stopped { ScrubState::Stopped } else { ScrubState::Done };
        assert_eq!(run.array.scrub().state, state);
    }
}
