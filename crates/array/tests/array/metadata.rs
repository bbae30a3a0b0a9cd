//! Arrays that record what they are, over drives that end what they are asked, refuse it, or hang.

use std::sync::Arc;

use levelhead_array::assembly::{Copy, Found, assemble};
use levelhead_array::damaged::DamagedList;
use levelhead_array::membership::{Generation, Member, Membership, Why};
use levelhead_array::metadata::{Forced, Inscription, Kept, Logs, Metadata, Slot, State};
use levelhead_array::reserve::{Division, HEAD};
use levelhead_array::superblock::{Own, Superblock, Uuid};
use levelhead_array::{
    ArrayEvent, Blame, Budget, Ending, JournalSettings, NewMember, Patience, Policy, Recorded,
    ScrubState, Settings, Spec, Submit, VerifySettings, Wishes,
};
use levelhead_block::{BlockDevice, Command, Outcome};
use levelhead_units::{DriveIdx, DriveSet, Nanos, Sectors};

use crate::runtime::{Runtime, extent, settings};

const SIZE: Sectors = Sectors::new(700);

/// Drives on which a resync takes more than one step.
pub(crate) const LARGE: Sectors = Sectors::new(4700);

pub(crate) const PATIENCE: Patience =
    Patience { silent: Nanos::from_secs(5), lost: Nanos::from_secs(60) };

/// A new array that is whole, or whose redundancy was never made valid, started without the drives in
/// `left_out`.
pub(crate) fn started(text: &str, is_synced: bool, left_out: DriveSet) -> Runtime {
    started_on(text, SIZE, is_synced, left_out)
}

/// The same on drives of another size.
pub(crate) fn started_on(
    text: &str,
    size: Sectors,
    is_synced: bool,
    left_out: DriveSet,
) -> Runtime {
    started_from(&new_metadata(text, size, is_synced), size, left_out, None)
}

/// A whole one whose own work keeps to this budget.
pub(crate) fn started_with(text: &str, background: Option<Budget>) -> Runtime {
    started_from(&new_metadata(text, SIZE, true), SIZE, DriveSet::EMPTY, background)
}

/// A whole one that keeps a journal, and so knows what drives lack.
pub(crate) fn journaled(text: &str, size: Sectors) -> Runtime {
    let journal = Some(Kept { first: 1, logs: Logs::Parts });
    let metadata = Metadata { journal, ..new_metadata(text, size, true) };
    started_from(&metadata, size, DriveSet::EMPTY, None)
}

/// What is written on the drives of a new array.
fn new_metadata(text: &str, size: Sectors, is_synced: bool) -> Metadata {
    let spec: Spec = text.parse().unwrap();
    let division = Division::of(&spec, size).unwrap();
    let member = |at| Member::new(Uuid([at; 16]), Membership::Present);
    let mut metadata = Metadata {
        generation: Generation(1),
        array: Uuid([1; 16]),
        run: Uuid([0; 16]),
        spec,
        drive_size: division.drive_size,
        state: State::Clean,
        forced: Forced::No,
        synced: 0,
        synced_last: 0,
        journal: None,
        base: Generation::NONE,
        damaged: DamagedList::default(),
        wishes: Wishes::default(),
        members: (0..spec.drives() as u8).map(member).collect(),
    };
    if is_synced {
        (metadata.synced, metadata.synced_last) = (metadata.stripes(), metadata.stripes());
    }
    metadata
}

fn started_from(
    metadata: &Metadata,
    size: Sectors,
    left_out: DriveSet,
    background: Option<Budget>,
) -> Runtime {
    let settings = Settings { background, ..settings_of(metadata, size, left_out) };
    with_members(&settings, metadata, size)
}

/// What a new array is started with, all drives there.
pub(crate) fn settings_of_new(text: &str) -> Settings {
    settings_of(&new_metadata(text, SIZE, true), SIZE, DriveSet::EMPTY)
}

/// A new array that is started so.
pub(crate) fn with_new_members(settings: &Settings, text: &str) -> Runtime {
    with_members(settings, &new_metadata(text, SIZE, true), SIZE)
}

/// The member that sits in a place of a new array.
fn superblock(metadata: &Metadata, drive: DriveIdx, size: Sectors) -> Superblock {
    let division = Division::of(&metadata.spec, size).unwrap();
    Superblock {
        array: metadata.array,
        member: metadata.members[drive.as_usize()].id.uuid,
        spec: metadata.spec,
        drive_size: metadata.drive_size,
        logs: metadata.journal.map(|kept| kept.logs),
        own: Own { drive, size, reserved: division.reserved(size) },
        read_only: 0,
    }
}

/// Starts an array over drives that have the superblocks and the metadata of a new one.
fn with_members(settings: &Settings, metadata: &Metadata, size: Sectors) -> Runtime {
    let mut run = Runtime::with_drives_of(settings, 1, size);
    for (at, drive) in run.drives.iter_mut().enumerate() {
        let superblock = superblock(metadata, DriveIdx::from_usize(at), size);
        for lba in superblock.own.copies() {
            drive.bytes_mut(extent(lba.get(), 1)).copy_from_slice(&superblock.encode());
        }
        let (metadata, holder) = (Arc::new(metadata.clone()), metadata.members[at].id);
        let first = superblock.own.slots()[0].lba.get();
        let bytes = Inscription { metadata, holder }.encode();
        drive.bytes_mut(extent(first, 1)).copy_from_slice(&bytes);
    }
    run
}

fn settings_of(metadata: &Metadata, size: Sectors, left_out: DriveSet) -> Settings {
    let spec = metadata.spec;
    let found = |drive: DriveIdx| {
        let superblock = superblock(metadata, drive, size);
        let copy = Copy::Read(Box::new(Ok(superblock)));
        let found = Found::new([copy.clone(), copy.clone(), copy], size);
        Found { slots: [Slot::Read(Arc::new(metadata.clone())), Slot::Nothing], ..found }
    };
    let shown = DriveSet::first(spec.drives() as u8).without(left_out);
    let assembly = assemble(&shown.iter().map(found).collect::<Vec<_>>()).unwrap();
    Settings {
        area: assembly.area.clone(),
        synced: assembly.trusted,
        lost: assembly.absent,
        recorded: Some(Recorded::of(&assembly, Uuid([2; 16]))),
        patience: Some(PATIENCE),
        journal: JournalSettings::of(&assembly),
        ..settings(spec, 1, Policy::Normal, DriveSet::EMPTY)
    }
}

/// The records of the array itself are read back whether or not writes are: one that a drive does not store is written again, and
/// a drive that never does is lost.
#[test]
fn record_that_is_not_there_is_written_again_and_costs_the_drive_in_the_end() {
    let drawn = [(1, false), (3, false), (4, true)];
    let verified = [None, Some(VerifySettings::IDLE)];
    for ((times, is_lost), verify) in
        drawn.into_iter().flat_map(|drawn| verified.map(|verify| (drawn, verify)))
    {
        let metadata = new_metadata(SPEC, SIZE, true);
        let settings = Settings { verify, ..settings_of(&metadata, SIZE, DriveSet::EMPTY) };
        let mut run = with_members(&settings, &metadata, SIZE);
        run.write(1, extent(0, 1), &[7; 4096]);
        for _ in 0..times {
            let is_first = |submit: &Submit| is_of_record(submit, 1) && submit.command.is_write();
            while !run.inside.iter().any(is_first) {
                run.finish_any();
            }
            let at = run.inside.iter().position(is_first).unwrap();
            let place = run.inside[at].command.extent().unwrap();
            run.finish(at);
            run.drives[1].bytes_mut(place).fill(0);
        }
        run.run_until_quiet();
        assert!(run.take(1).unwrap().0.outcome.is_good());
        assert_eq!(run.array.counters().verify_records, times.min(3), "{times}");
        assert_eq!(run.array.lost().contains(DriveIdx::new(1)), is_lost, "{times}");
        let drives: &[usize] = if is_lost { &[0, 2] } else { &[0, 1, 2] };
        for &drive in drives {
            let generation = run.array.generation().unwrap();
            assert!(has_generation(&run, drive, generation.0), "drive {drive}, {times}");
        }
    }
}

/// A drive that never stores its metadata is kept where the array needs it, and that is told once.
#[test]
fn record_that_is_never_there_costs_no_drive_that_is_needed() {
    let metadata = new_metadata(SPEC, SIZE, true);
    let mut run = started_from(&metadata, SIZE, only(2), None);
    for id in 0..3 {
        run.write(id, extent(id, 1), &[7; 4096]);
        while !run.inside.is_empty() {
            run.finish_any();
            run.drives[1].bytes_mut(extent(1, 254)).fill(0);
        }
        assert!(run.take(id).unwrap().0.outcome.is_good());
    }
    run.stop();
    while !run.inside.is_empty() {
        run.finish_any();
        run.drives[1].bytes_mut(extent(1, 254)).fill(0);
    }
    assert_eq!((run.array.lost(), run.ending), (only(2), Some(Ending::Clean)));
    let is_told = |event: &&ArrayEvent| matches!(event, ArrayEvent::RecordLost { .. });
    let told: Vec<_> = run.array_events.iter().filter(is_told).collect();
    assert_eq!(told, [&ArrayEvent::RecordLost { drive: DriveIdx::new(1), is_kept: true }]);
}

/// Whether a command of a drive is for what the array records of itself.
pub(crate) fn is_record(submit: &Submit) -> bool {
    let at = submit.command.extent().map(|extent| extent.lba.get());
    at.is_some_and(|at| at < HEAD.get() || at == SIZE.get() - 1)
}

/// Ends what looks at slots before the first generation is written.
pub(crate) fn end_looks(run: &mut Runtime) {
    let is_look = |submit: &Submit| is_record(submit) && !submit.command.is_write();
    while let Some(at) = run.inside.iter().position(is_look) {
        run.finish(at);
    }
}

fn is_of_record(submit: &Submit, drive: usize) -> bool {
    submit.drive.as_usize() == drive && is_record(submit)
}

/// Ends what is inside a drive for its superblocks, and for what comes of that, while the drive stores none of them. What fails
/// says so, or what was written is not there.
fn store_nothing(run: &mut Runtime, drive: usize, says_so: bool) {
    end_looks(run);
    while let Some(at) = run.inside.iter().position(|submit| is_of_record(submit, drive)) {
        let command = run.inside[at].command;
        match (command.is_write(), says_so) {
            (true, true) => run.fail_write(at),
            (true, false) => {
                let place = command.extent().unwrap();
                let before = run.drives[drive].bytes(place).to_vec();
                run.finish(at);
                run.drives[drive].bytes_mut(place).copy_from_slice(&before);
            }
            (false, _) => run.finish(at),
        }
    }
}

/// One that can be spared is lost for it.
#[test]
fn drive_that_can_not_write_a_record_is_kept_where_it_is_needed() {
    for (left_out, is_needed) in [(DriveSet::EMPTY, false), (only(2), true)] {
        let mut run = started(SPEC, true, left_out);
        run.write(1, extent(0, 1), &[7; 4096]);
        store_nothing(&mut run, 1, true);
        let lost = if is_needed { left_out } else { only(1) };
        assert_eq!(run.array.lost(), lost);
        run.run_until_quiet();
        assert!(run.take(1).unwrap().0.outcome.is_good());
        stop_and_check(&mut run, lost);
    }
}

fn stop_and_check(run: &mut Runtime, lost: DriveSet) {
    run.stop();
    run.run_until_quiet();
    assert_eq!((run.array.lost(), run.ending), (lost, Some(Ending::Clean)));
}

/// G1: what one that is needed does not store must be on another one.
#[test]
fn drive_that_stores_no_record_is_never_counted_among_those_that_have_it() {
    for says_so in [false, true] {
        let mut run = started(SPEC, true, only(2));
        run.write(1, extent(0, 1), &[7; 4096]);
        store_nothing(&mut run, 1, says_so);
        assert_eq!(records(&run), run.inside.len(), "one copy were enough if it were there");
        while !run.inside.is_empty() {
            store_nothing(&mut run, 1, says_so);
            if !run.inside.is_empty() {
                run.finish_any();
            }
        }
        assert!(run.take(1).unwrap().0.outcome.is_good());
        assert!(!has_generation(&run, 1, 17) && has_generation(&run, 0, 18));
    }
}

/// The last one that could have a record is not kept for nothing: the array says that it has failed.
#[test]
fn array_none_of_whose_drives_stores_a_record_has_failed() {
    for says_so in [false, true] {
        let mut run = started("raid1:2,chunk=8KiB", true, only(1));
        run.write(1, extent(0, 1), &[7; 4096]);
        store_nothing(&mut run, 0, says_so);
        run.run_until_quiet();
        assert!(!run.take(1).unwrap().0.outcome.is_good());
        assert_eq!(run.array.lost(), only(0).or(only(1)));
    }
}

/// A scrub that has found nothing wrong ends the mark that something was forced, on the drives, too; one that has leaves it.
#[test]
fn what_was_forced_is_marked_until_a_scrub_has_passed() {
    for is_right in [true, false] {
        let metadata = Metadata { forced: Forced::Yes, ..new_metadata(SPEC, SIZE, true) };
        let mut run = started_from(&metadata, SIZE, DriveSet::EMPTY, Some(Budget::DEFAULT));
        if !is_right {
            let place = run.array.area().on_drive(extent(3, 1));
            run.drives[1].bytes_mut(place).fill(1);
        }
        assert_eq!(run.array.forced(), Forced::Yes);
        assert!(run.array.handle_scrub_start(run.now(), Blame::Drives));
        run.wait(Nanos::ZERO);
        run.run_for(Nanos::from_secs(60));
        assert_eq!(run.array.scrub().state, ScrubState::Done);
        run.stop();
        run.run_until_quiet();
        let forced = if is_right { Forced::No } else { Forced::Yes };
        assert_eq!((run.array.forced(), says(&run, 2).forced), (forced, forced));
    }
}

pub(crate) fn whole(text: &str) -> Runtime {
    started(text, true, DriveSet::EMPTY)
}

pub(crate) fn only(drive: usize) -> DriveSet {
    DriveSet::EMPTY.with(DriveIdx::from_usize(drive))
}

/// What a start finds on these drives.
pub(crate) fn found(run: &Runtime, drives: &[usize]) -> Vec<Found> {
    drives.iter().map(|&drive| found_on(run, drive)).collect()
}

fn found_on(run: &Runtime, drive: usize) -> Found {
    let bytes = &run.drives[drive];
    Found::read(bytes.size(), |extent| Some(bytes.bytes(extent).to_vec()))
}

/// The newest metadata that a member has; that of the array as it was made if it has none.
pub(crate) fn says(run: &Runtime, drive: usize) -> Metadata {
    let found = found_on(run, drive);
    let newest = found.word().and_then(|word| word.metadata);
    newest.map_or_else(|| panic!("drive {drive} has no metadata"), |known| (*known).clone())
}

/// How many commands inside the drives write records, or read them back.
fn records(run: &Runtime) -> usize {
    run.inside.iter().filter(|submit| is_record(submit)).count()
}

pub(crate) const SPEC: &str = "raid5:3+1,chunk=8KiB";

/// G1, at every order of ends: no data is inside a drive before the second generation is committed.
#[test]
fn nothing_is_written_before_the_array_is_open() {
    for seed in 0..40 {
        let mut run = whole(SPEC);
        run.reseed(seed);
        run.write(1, extent(3, 4), &[7; 4 * 4096]);
        let mut ended = 0;
        while !run.inside.is_empty() {
            if records(&run) < run.inside.len() {
                let safe = (0..4).filter(|&drive| has_generation(&run, drive, 18)).count();
                assert!(safe >= 2, "seed {seed}: data goes out after {ended} records");
            }
            run.finish_any();
            ended += 1;
        }
        assert!(run.take(1).unwrap().0.outcome.is_good());
        let Metadata { generation, state, .. } = says(&run, 0);
        assert_eq!((generation, state), (Generation(18), State::Dirty));
    }
}

pub(crate) fn has_generation(run: &Runtime, drive: usize, generation: u64) -> bool {
    let word = found_on(run, drive).word();
    word.is_some_and(|word| word.metadata.is_some() && word.generation().0 >= generation)
}

#[test]
fn reads_flushes_and_a_stop_write_nothing() {
    for left_out in [DriveSet::EMPTY, only(2)] {
        let mut run = started(SPEC, true, left_out);
        run.read(1, extent(0, 30));
        run.run_until_quiet();
        assert!(run.take(1).unwrap().0.outcome.is_good());
        run.stop();
        run.run_until_quiet();
        assert_eq!((run.ending, run.written), (Some(Ending::Clean), 0));
    }
}

#[test]
fn drive_that_was_left_out_is_missing_once_something_is_written() {
    let mut run = started(SPEC, true, only(2));
    run.write(1, extent(0, 1), &[7; 4096]);
    run.run_until_quiet();
    let expected = Membership::Missing;
    assert_eq!(says(&run, 0).members[2].membership, expected);
    assert_eq!(run.array.members().unwrap()[2].membership, expected);
}

#[test]
fn what_an_array_and_its_members_say_of_themselves_can_be_asked() {
    let run = started(SPEC, true, only(0));
    assert_eq!(run.array.uuid(), Some(Uuid([1; 16])));
    for like in 0..4 {
        let own = run.array.own_of_a_member(DriveIdx::new(like)).unwrap();
        assert_eq!((own.drive, own.size), (DriveIdx::new(1), SIZE), "like drive {like}");
    }
    assert_eq!(run.array.drive_size(DriveIdx::new(1)), Some(run.array.area().size()));
    let plain = settings(SPEC.parse().unwrap(), 4, Policy::Normal, DriveSet::EMPTY);
    let plain = Runtime::new(&plain, 1);
    assert_eq!(plain.array.drive_size(DriveIdx::new(1)), None, "it records nothing");
    assert_eq!((plain.array.uuid(), plain.array.own_of_a_member(DriveIdx::new(0))), (None, None));
}

/// G6: a crash later on finds that redundancy was valid once.
#[test]
fn redundancy_that_was_made_valid_is_recorded_while_the_array_is_open() {
    let mut run = started(SPEC, false, DriveSet::EMPTY);
    run.write(1, extent(0, 1), &[7; 4096]);
    run.run_until_quiet();
    while run.array.synced() < run.array.layout().stripes() {
        run.resync();
        run.run_until_quiet();
    }
    let Metadata { state, synced, synced_last, .. } = says(&run, 0);
    let stripes = run.array.layout().stripes();
    assert_eq!((state, synced, synced_last), (State::Dirty, 0, stripes));
    assert_eq!(run.array.synced_recorded(), stripes);
}

/// G7: what is in the journal comes to its place before anything says clean.
#[test]
fn stop_says_clean_once_the_last_place_is_written() {
    let mut run = journaled(SPEC, LARGE);
    let place = run.array.area().on_drive(extent(0, 1)).lba;
    let of_place = |submit: &Submit| {
        let command = submit.command;
        command.is_write() && command.extent().is_some_and(|extent| extent.contains(place))
    };
    run.write(1, extent(0, 1), &[7; 4096]);
    run.run_but_for(of_place, Nanos::from_secs(1));
    assert!(run.take(1).unwrap().0.outcome.is_good());
    run.stop();
    run.run_but_for(of_place, Nanos::from_secs(1));
    assert_eq!((run.ending, says(&run, 0).state), (None, State::Dirty));
    assert_eq!(run.array.journal_status().unwrap().open, 1);
    run.run_until_quiet();
    assert_eq!((run.ending, says(&run, 0).state), (Some(Ending::Clean), State::Clean));
}

/// RB5: what names it and says that it is being filled is on every drive that answers.
#[test]
fn new_drive_does_not_count_before_the_others_have_the_entry_that_names_it() {
    let mut run = whole(SPEC);
    run.write(1, extent(0, 24), &[7; 24 * 4096]);
    run.run_until_quiet();
    let drive = DriveIdx::new(2);
    run.lose(drive);
    run.run_until_quiet();
    let own = run.array.own(drive).cloned().unwrap();
    let new = NewMember { uuid: Uuid([9; 16]), own, held: None };
    run.array.handle_replaced(run.now(), drive, Some(new)).unwrap();
    run.wait(Nanos::ZERO);
    run.run_but_for(|submit| is_of_record(submit, 0), Nanos::from_secs(3));
    let membership = |run: &Runtime| run.array.members().unwrap()[2].membership;
    assert!(matches!(membership(&run), Membership::Filling { .. }) && run.array.lost() == only(2));
    run.run_until_quiet();
    assert_eq!((membership(&run), run.array.lost()), (Membership::Present, DriveSet::EMPTY));
}

/// G7: dirty once more, so that a copy of a member from before has less than it is known to have stored.
#[test]
fn stop_flushes_and_raises_the_generation_twice() {
    let mut run = whole(SPEC);
    run.write(1, extent(0, 9), &[7; 9 * 4096]);
    run.run_until_quiet();
    let before = says(&run, 0).generation;
    run.stop();
    assert!(run.inside.iter().all(|submit| submit.command == Command::Flush));
    assert_eq!(run.inside.len(), 4);
    run.run_until_quiet();
    assert_eq!(run.ending, Some(Ending::Clean));
    let metadata = says(&run, 3);
    assert_eq!((metadata.generation, metadata.state), (before.plus(2), State::Clean));
    assert_eq!((metadata.synced, metadata.synced_last), (metadata.stripes(), metadata.stripes()));
}

/// G2.
#[test]
fn answer_that_relies_on_a_loss_waits_for_its_record_and_no_other_does() {
    let mut run = whole(SPEC);
    run.write(1, extent(0, 1), &[7; 4096]);
    run.run_until_quiet();
    let layout = *run.array.layout();
    let drive_of = |lba: u64| {
        let (row, symbol) = layout.find(levelhead_units::Lba::new(lba));
        layout.cell(row, symbol).drive
    };
    let lost = drive_of(0);
    run.lose(lost);
    // A read of what lies elsewhere is answered before any record has ended.
    let elsewhere = (0..24).find(|&lba| drive_of(lba) != lost).unwrap();
    run.read(2, extent(elsewhere, 1));
    run.read(3, extent(0, 1));
    run.finish_all_but_records();
    assert!(run.take(2).is_some(), "it relies on nothing");
    assert!(run.take(3).is_none(), "it was computed, and the lost drive may hold something older");
    while run.take(3).is_none() {
        run.finish_any();
    }
    let recorded = (0..4).filter(|&drive| {
        let is_lost = says(&run, drive).members[lost.as_usize()].membership
            == Membership::Lost { why: Why::Failed };
        drive != lost.as_usize() && is_lost
    });
    assert!(recorded.count() >= 1, "k + 1 - l copies");
}

#[test]
fn array_that_has_failed_takes_no_write_and_every_flush_says_so() {
    let mut run = whole(SPEC);
    run.write(1, extent(0, 1), &[7; 4096]);
    run.run_until_quiet();
    [0, 1].into_iter().for_each(|drive| run.lose(DriveIdx::new(drive)));
    run.run_until_quiet();
    let written = run.written;
    for lba in 0..24 {
        run.write(2 + lba, extent(lba, 1), &[9; 4096]);
        run.run_until_quiet();
        let (answer, _) = run.take(2 + lba).unwrap();
        assert!(!answer.outcome.is_good(), "sector {lba}");
    }
    assert_eq!(run.written, written, "no drive was written to");
    run.flush(100);
    run.run_until_quiet();
    assert_eq!(run.take(100).unwrap().0.outcome, Outcome::Gone);
    run.stop();
    run.run_until_quiet();
    assert_eq!(run.ending, Some(Ending::Failed));
}

/// Of an array whose redundancy is not valid, what was written to the lost drive is gone: one flush says so.
#[test]
fn flush_after_a_loss_without_redundancy_fails_once() {
    let mut run = started(SPEC, false, DriveSet::EMPTY);
    run.write(1, extent(0, 24), &[7; 24 * 4096]);
    run.run_until_quiet();
    run.lose(DriveIdx::new(0));
    let mut flush = |id| {
        run.flush(id);
        run.run_until_quiet();
        run.take(id).unwrap().0.outcome
    };
    assert_eq!(flush(2), Outcome::Gone, "what was answered may be gone");
    assert_eq!(flush(3), Outcome::GOOD, "it was said");
}

/// G3: the record that a silent drive carries out late never undoes a newer one, and the drive is given what it
/// missed.
#[test]
fn drive_that_was_silent_is_given_the_records_that_it_missed() {
    let mut run = whole("raid6:2+2,chunk=8KiB");
    run.hang(DriveIdx::new(1));
    run.read(1, extent(0, 16));
    run.write(2, extent(0, 16), &[7; 16 * 4096]);
    run.run_for(Nanos::from_secs(20));
    assert!(run.take(2).is_none(), "it waits for the drive");
    run.lose(DriveIdx::new(3));
    run.run_for(Nanos::from_secs(20));
    let newest = says(&run, 0).generation;
    assert!(says(&run, 1).generation.plus(1) < newest, "it is behind");
    run.answer_again(DriveIdx::new(1));
    run.run_for(Nanos::from_secs(1));
    assert!(run.take(2).unwrap().0.outcome.is_good() && run.array.lost() == only(3));
    assert_eq!(says(&run, 1), says(&run, 0));
}

#[test]
fn silent_drive_is_not_counted_on_and_lost_when_a_write_waits_for_it() {
    let mut run = whole(SPEC);
    run.write(1, extent(0, 24), &[7; 24 * 4096]);
    run.run_until_quiet();
    run.hang(DriveIdx::new(1));
    run.read(2, extent(0, 24));
    run.run_for(Nanos::from_secs(4));
    assert!(run.take(2).is_none(), "it may be slow");
    run.run_for(Nanos::from_secs(2));
    assert!(run.take(2).unwrap().0.outcome.is_good(), "computed from the others");
    run.run_for(Nanos::from_secs(100));
    assert!(run.array.lost().is_empty(), "S1: nothing waits for it");
    run.write(3, extent(0, 24), &[8; 24 * 4096]);
    run.run_for(Nanos::from_secs(1));
    assert!(run.take(3).unwrap().0.outcome.is_good());
    assert_eq!(run.array.lost(), only(1));
    let membership = says(&run, 0).members[1].membership;
    assert_eq!(membership, Membership::Lost { why: Why::Silent });
}

/// S1, S2: whatever hangs, at whatever moment, every request has an answer in time, and a stop comes to
/// its end.
#[test]
fn every_request_is_answered_and_every_stop_ends_whatever_hangs() {
    let limit = PATIENCE.answer() + Nanos::from_secs(1);
    for text in [SPEC, "raid0:3,chunk=8KiB", "raid6:2+2,chunk=8KiB", "eraid:3+1,e=2,chunk=8KiB"] {
        let drives = text.parse::<Spec>().unwrap().drives();
        for (drive, after) in (0..drives).flat_map(|drive| (0..40).map(move |at| (drive, at))) {
            let mut run = whole(text);
            run.hang_after(DriveIdx::from_usize(drive), after);
            for id in 0..6 {
                run.write(id, extent(id * 2, 3), &[id as u8; 3 * 4096]);
                run.read(10 + id, extent(id, 4));
            }
            run.flush(20);
            run.run_for(limit);
            for id in (0..6).chain(10..16).chain([20]) {
                assert!(run.take(id).is_some(), "{text}: drive {drive} after {after}: {id} waits");
            }
            run.stop();
            run.run_for(limit);
            assert!(run.ending.is_some(), "{text}: drive {drive} after {after}: no end");
        }
    }
}

/// The canary of the test above: requests wait until the limit, and where there is none they are not answered at all.
#[test]
fn hanging_drive_holds_requests_up_until_the_limit_and_without_one_for_ever() {
    let mut run = whole("raid0:3,chunk=8KiB");
    run.hang(DriveIdx::new(0));
    run.read(1, extent(0, 24));
    run.run_for(PATIENCE.answer() - Nanos::from_secs(1));
    assert!(run.take(1).is_none(), "not before the limit");
    let spec: Spec = "raid0:3,chunk=8KiB".parse().unwrap();
    let mut run = Runtime::new(&settings(spec, 9, Policy::Normal, DriveSet::EMPTY), 1);
    run.hang(DriveIdx::new(0));
    run.read(1, extent(0, 24));
    run.run_for(Nanos::from_secs(100_000));
    assert!(run.take(1).is_none(), "no limit was given");
}

#[test]
fn refused_command_is_sent_again_until_it_is_taken() {
    let mut run = whole(SPEC);
    run.write(1, extent(0, 24), &[7; 24 * 4096]);
    run.run_until_quiet();
    run.refuse(DriveIdx::new(1));
    run.write(2, extent(0, 24), &[8; 24 * 4096]);
    run.flush(3);
    run.run_for(Nanos::from_secs(20));
    assert!(run.take(2).is_none() && run.array.lost().is_empty());
    run.accept(DriveIdx::new(1));
    run.run_for(Nanos::from_secs(1));
    assert!(run.take(2).unwrap().0.outcome.is_good() && run.take(3).unwrap().0.outcome.is_good());
    assert!(run.array.lost().is_empty());
    run.read(4, extent(0, 24));
    run.run_until_quiet();
    assert!(run.take(4).unwrap().1.as_slice().iter().all(|&byte| byte == 8));
}

/// A full file system under two members costs neither of them for good.
#[test]
fn refusals_beyond_what_the_layout_survives_fail_the_write_and_no_drive() {
    let mut run = whole(SPEC);
    run.write(1, extent(0, 24), &[7; 24 * 4096]);
    run.run_until_quiet();
    let full: Vec<DriveIdx> = (0..4).map(DriveIdx::new).collect();
    full.iter().for_each(|&drive| run.refuse(drive));
    run.write(2, extent(0, 24), &[8; 24 * 4096]);
    run.run_for(PATIENCE.answer() + Nanos::from_secs(1));
    assert!(!run.take(2).unwrap().0.outcome.is_good());
    assert!(run.array.lost().len() <= 1, "{}", run.array.lost());
    full.iter().for_each(|&drive| run.accept(drive));
    run.run_for(Nanos::from_secs(10));
    run.write(3, extent(0, 24), &[9; 24 * 4096]);
    run.run_for(Nanos::from_secs(10));
    assert!(run.take(3).unwrap().0.outcome.is_good());
    run.read(4, extent(0, 24));
    run.run_for(Nanos::from_secs(10));
    assert!(run.take(4).unwrap().1.as_slice().iter().all(|&byte| byte == 9));
}
