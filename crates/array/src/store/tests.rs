//! Which generation each drive is given next, and when one is committed. The drives are ends of the writes that the store
//! has asked for.

use levelhead_stats::Streams;
use levelhead_units::Sectors;

use super::*;
use crate::meta::damaged::DamagedList;
use crate::meta::fence::Seen;
use crate::meta::membership::Member;
use crate::meta::metadata::Logs;
use crate::meta::reserve::Division;
use crate::settings::Settings;
use crate::shape::Spec;

const SIZE: Sectors = Sectors::new(2_000);

/// What was found.
const FOUND: Generation = Generation(20);

/// A store, and what it changes.
struct Bench {
    store: Store,
    core: Core,
    now: Instant,
}

fn set(drives: &[u8]) -> DriveSet {
    drives.iter().copied().map(DriveIdx::new).collect()
}

fn own(spec: &Spec, drive: DriveIdx) -> Own {
    Own { drive, size: SIZE, reserved: Division::of(spec, SIZE).unwrap().reserved(SIZE) }
}

/// An array of which these drives have failed, with the generation that each of its drives has in the first slot.
fn recorded(text: &str, lost: DriveSet, has: &[u64]) -> Recorded {
    let spec: Spec = text.parse().unwrap();
    let membership = |drive| match lost.contains(drive) {
        true => Membership::Lost { why: Why::Failed },
        false => Membership::Present,
    };
    let member = |at: usize| Member {
        stored: Generation(5),
        given: Generation(6),
        ..Member::new(Uuid([at as u8; 16]), membership(DriveIdx::from_usize(at)))
    };
    let metadata = Metadata {
        generation: FOUND,
        array: Uuid([7; 16]),
        run: Uuid([8; 16]),
        base: Generation(1),
        spec,
        drive_size: Division::of(&spec, SIZE).unwrap().drive_size,
        state: State::Clean,
        forced: Forced::No,
        synced: 0,
        synced_last: 0,
        journal: Some(Kept { first: 1, logs: Logs::All }),
        wishes: Wishes::default(),
        members: (0..spec.members()).map(member).collect(),
        damaged: DamagedList::default(),
    };
    let is_there = |at: usize| !lost.contains(DriveIdx::from_usize(at));
    let held = |at: usize| Held { generation: Generation(has[at]), slot: 0 };
    Recorded {
        metadata: Arc::new(metadata),
        owns: (0..has.len())
            .map(|at| is_there(at).then(|| own(&spec, DriveIdx::from_usize(at))))
            .collect(),
        held: (0..has.len()).map(|at| is_there(at).then(|| held(at))).collect(),
        not_whole: DriveSet::EMPTY,
        is_in_reach: false,
        run: Uuid([9; 16]),
        forced_over: None,
        may_lack_more: false,
        is_recorded: true,
    }
}

impl Bench {
    fn of(recorded: &Recorded) -> Self {
        let Metadata { spec, members, .. } = &*recorded.metadata;
        let area = Division::of(spec, SIZE).unwrap().area;
        let lost = not_present(members);
        let settings =
            Settings { area, lost, recorded: Some(recorded.clone()), ..Settings::of_test(*spec) };
        let core = Core::new(&settings, Streams::new(1));
        Self { store: Store::new(recorded), core, now: Instant::ZERO }
    }

    /// Two of four drives are redundant, and the last one is lost: two of the others are enough.
    fn new() -> Self {
        Self::of(&recorded("raid6:2+2,chunk=4KiB", set(&[3]), &[FOUND.0; 4]))
    }

    /// Open for writing, and at rest.
    fn open() -> Self {
        let mut bench = Self::new();
        bench.begin();
        (0..3).for_each(|drive| bench.end(drive, Stored::Yes));
        bench.advance();
        (0..3).for_each(|drive| bench.end(drive, Stored::Yes));
        bench.advance();
        assert!(bench.store.is_open() && bench.writes().is_empty());
        bench
    }

    /// Moves on; slots that are to be looked at show nothing.
    fn advance(&mut self) {
        self.store.advance(&mut self.core, self.now, DriveSet::EMPTY);
        let wanted = self.store.take_wanted_looks();
        for (drive, slot) in wanted.iter().flat_map(|drive| [(drive, 0), (drive, 1)]) {
            let target = self.store.target(drive, slot);
            assert_eq!(self.store.handle_look(target, None), (Seen::Nothing, false));
        }
        if !wanted.is_empty() {
            self.store.advance(&mut self.core, self.now, DriveSet::EMPTY);
        }
    }

    /// Begins the opening: all are given the first generation.
    fn begin(&mut self) {
        self.store.open(&mut self.core);
        self.advance();
    }

    /// Something is to be written at once.
    fn change(&mut self) {
        self.core.meta.note_change(Change::Now);
        self.advance();
    }

    /// A drive has ended its write.
    fn end(&mut self, drive: u8, stored: Stored) {
        let drive = DriveIdx::new(drive);
        let writing = self.store.holders[drive.as_usize()].writing.expect("it writes something");
        self.store.handle_done(&mut self.core, drive, writing.sub, stored);
    }

    /// What is being written, by drive.
    fn writes(&self) -> Vec<(usize, What)> {
        let holders = self.store.holders.iter().enumerate();
        holders.filter_map(|(at, holder)| Some((at, holder.writing?.what))).collect()
    }

    fn content(&self) -> &Metadata {
        &self.store.content
    }

    fn next(&self, drive: usize) -> usize {
        self.store.holders[drive].next
    }
}

fn all_write(generation: u64) -> Vec<(usize, What)> {
    (0..3).map(|at| (at, What::Metadata(Generation(generation)))).collect()
}

/// A number of copies would be wrong both ways for `raid10`.
#[test]
fn generation_is_committed_on_drives_that_no_loss_takes_which_is_survived() {
    let old = FOUND.0 - 1;
    for (text, lost, has, is_committed) in [
        ("raid6:2+2,chunk=4KiB", set(&[]), &[20, 20, 20, old][..], true),
        ("raid6:2+2,chunk=4KiB", set(&[]), &[20, 20, old, old], false),
        ("raid6:2+2,chunk=4KiB", set(&[3]), &[20, old, 20, old], true),
        ("raid6:2+2,chunk=4KiB", set(&[3]), &[20, old, old, old], false),
        ("raid6:2+2,chunk=4KiB", set(&[2, 3]), &[old, 20, old, old], true),
        ("raid0:3", set(&[]), &[20, old, old], true),
        // Both drives of a pair, or the other one where one is not present.
        ("raid10:4", set(&[]), &[20, old, 20, old], false),
        ("raid10:4", set(&[]), &[20, 20, old, old], true),
        ("raid10:4", set(&[0]), &[old, 20, old, old], true),
        ("raid10:4", set(&[0]), &[old, old, 20, old], false),
    ] {
        let bench = Bench::of(&recorded(text, lost, has));
        let begun = Begun::of(bench.content());
        let outcome = bench.store.is_committed(&bench.core, &begun);
        assert_eq!(outcome, is_committed, "{text} without {lost}, on {has:?}");
    }
}

/// G1.
#[test]
fn array_is_open_once_the_generation_after_one_that_all_have_is_committed() {
    let mut bench = Bench::new();
    bench.advance();
    assert!(bench.writes().is_empty(), "nothing is written before something must be");
    bench.begin();
    let first = FOUND.0 + RUN;
    assert_eq!(bench.writes(), all_write(first));
    [0, 1].into_iter().for_each(|drive| bench.end(drive, Stored::Yes));
    bench.advance();
    assert_eq!(bench.writes(), all_write(first)[2..], "it is committed, and not on all drives");
    assert_eq!(bench.core.meta.begun(), Generation(first));
    bench.end(2, Stored::Yes);
    bench.advance();
    assert_eq!(bench.writes(), all_write(first + 1));
    let stored: Vec<u64> = bench.content().members.iter().map(|member| member.stored.0).collect();
    assert_eq!(stored, [first, first, first, 5], "the second one says that all have the first");
    [0, 1].into_iter().for_each(|drive| bench.end(drive, Stored::Yes));
    bench.advance();
    assert!(!bench.store.is_open(), "it is on enough drives, and not on all");
    bench.end(2, Stored::Yes);
    bench.advance();
    assert!(bench.store.is_open());
}

#[test]
fn first_generation_of_a_run_names_it_and_what_it_began_with() {
    let mut bench = Bench::new();
    bench.begin();
    let Metadata { generation, run, base, state, members, .. } = bench.content().clone();
    assert_eq!((generation, run, base), (FOUND.plus(RUN), Uuid([9; 16]), FOUND));
    assert_eq!(state, State::Dirty);
    let given = members.iter().map(|member| member.given);
    let expected = [generation, generation, generation, Generation(6)];
    assert_eq!(given.collect::<Vec<_>>(), expected, "one that is not there is given nothing");
    assert!(members[..3].iter().all(|member| member.stored == FOUND));
    let mut bench = Bench::open();
    let before = bench.content().clone();
    bench.change();
    let Metadata { generation, run, base, .. } = *bench.content();
    assert_eq!((generation, run, base), (before.generation.plus(1), before.run, before.base));
}

/// G3.
#[test]
fn newest_generation_of_a_drive_is_not_written_over_by_the_next() {
    let mut bench = Bench::open();
    let slots = [0, 1, 2].map(|drive| bench.next(drive));
    assert_eq!(slots, [1, 1, 1], "the first was found, and two were written since");
    bench.change();
    bench.end(0, Stored::Yes);
    bench.end(1, Stored::No);
    assert_eq!([bench.next(0), bench.next(1), bench.next(2)], [0, 1, 1]);
    let has = [0, 1, 2].map(|drive: usize| bench.store.holders[drive].has.0);
    let newest = bench.content().generation.0;
    assert_eq!(has, [newest, newest - 1, newest - 1]);
}

/// G5.
#[test]
fn change_is_followed_by_one_more_generation_in_a_while() {
    let mut bench = Bench::open();
    let before = bench.content().generation;
    bench.change();
    (0..3).for_each(|drive| bench.end(drive, Stored::Yes));
    bench.advance();
    assert_eq!(bench.content().generation, before.plus(1));
    assert_eq!(bench.store.due_at(), Some(bench.now + LATER));
    bench.now = bench.now + LATER;
    bench.advance();
    assert_eq!(bench.content().generation, before.plus(2));
    (0..3).for_each(|drive| bench.end(drive, Stored::Yes));
    bench.now = bench.now + LATER;
    bench.advance();
    assert_eq!(bench.content().generation, before.plus(2), "nothing has changed since");
    assert_eq!(bench.store.due_at(), None);
}

/// G10.
#[test]
fn what_was_found_on_too_few_drives_is_given_to_the_others_as_it_is() {
    let mut found = recorded("raid6:2+2,chunk=4KiB", set(&[3]), &[FOUND.0, 12, 12, 12]);
    found.is_recorded = false;
    let mut bench = Bench::of(&found);
    assert!(!bench.store.is_recorded());
    bench.advance();
    assert_eq!(bench.writes(), all_write(FOUND.0)[1..]);
    assert_eq!(*bench.content(), *found.metadata);
    bench.end(1, Stored::Yes);
    bench.store.open(&mut bench.core);
    bench.advance();
    assert!(bench.store.is_recorded(), "two are enough");
    assert_eq!(bench.content().generation, FOUND.plus(RUN));
}

/// One that is slow keeps no other from going on, and is given the newest one next.
#[test]
fn drive_has_one_write_inside_and_is_given_the_newest_generation_after_it() {
    let mut bench = Bench::open();
    let before = bench.content().generation.0;
    for _ in 0..3 {
        bench.change();
        [0, 1].into_iter().for_each(|drive| bench.end(drive, Stored::Yes));
    }
    bench.advance();
    assert_eq!(bench.writes(), [(2, What::Metadata(Generation(before + 1)))]);
    assert!(bench.core.meta.is_settled());
    bench.end(2, Stored::Yes);
    bench.advance();
    assert_eq!(bench.writes(), [(2, What::Metadata(Generation(before + 3)))]);
}

#[test]
fn no_drive_gets_further_ahead_of_what_is_committed_than_its_return_allows() {
    let mut bench = Bench::open();
    let committed = bench.content().generation;
    for at in 1..LEAD_MAX + 3 {
        bench.change();
        let newest = committed.plus(at.min(LEAD_MAX));
        assert_eq!(bench.content().generation, newest);
        if bench.store.holders[0].writing.is_some() {
            bench.end(0, Stored::Yes);
        }
        assert_eq!(bench.store.holders[0].has, newest);
    }
    bench.end(1, Stored::Yes);
    bench.advance();
    assert_eq!(bench.store.uncommitted.front().unwrap().generation, committed.plus(2));
    assert_eq!(bench.content().generation, committed.plus(LEAD_MAX + 1), "there is room for one");
}

#[test]
fn drives_that_do_not_store_what_is_needed_are_named_once_all_others_have_it() {
    let mut bench = Bench::open();
    bench.change();
    bench.end(0, Stored::Yes);
    bench.end(1, Stored::No);
    bench.advance();
    assert_eq!(bench.store.unstored(&bench.core), DriveSet::EMPTY, "drive 2 may still have it");
    bench.end(2, Stored::No);
    bench.advance();
    assert_eq!(bench.store.unstored(&bench.core), set(&[1, 2]));
    let mut bench = Bench::open();
    bench.change();
    [(0, Stored::Yes), (1, Stored::No), (2, Stored::Yes)]
        .into_iter()
        .for_each(|(drive, stored)| bench.end(drive, stored));
    bench.advance();
    assert_eq!(bench.store.unstored(&bench.core), DriveSet::EMPTY, "it is committed without");
}

/// A drive that comes into a place; `uuid` is that of the one before, or another.
fn come(bench: &mut Bench, uuid: Uuid, held: Option<Held>) {
    let drive = DriveIdx::new(3);
    let new = NewMember { uuid, own: own(bench.core.layout().spec(), drive), held };
    bench.core.drives.begin_filling(drive);
    bench.store.begin_filling(&mut bench.core, drive, new, Holds::Nothing);
    bench.advance();
}

/// The copies of the superblock of a drive that is new, which has none of this array.
#[test]
fn new_drive_gets_its_superblocks_first_and_then_metadata_that_names_it() {
    let mut bench = Bench::open();
    come(&mut bench, Uuid([99; 16]), None);
    assert_eq!(bench.content().members[3].id.uuid, Uuid([99; 16]));
    for _ in 0..3 {
        let generation = bench.content().generation;
        assert_eq!(bench.writes().last(), Some(&(3, What::Superblock)));
        assert!(bench.writes().contains(&(0, What::Metadata(generation))));
        bench.end(3, Stored::Yes);
        bench.advance();
    }
    let generation = bench.content().generation;
    assert_eq!(bench.writes().last(), Some(&(3, What::Metadata(generation))));
}

/// What writes over one end of a disk leaves two; they are made three again with the first write.
#[test]
fn damaged_copy_of_a_superblock_is_written_again() {
    let mut found = recorded("raid6:2+2,chunk=4KiB", set(&[3]), &[FOUND.0; 4]);
    found.not_whole = set(&[1]);
    let mut bench = Bench::of(&found);
    bench.advance();
    assert!(bench.writes().is_empty(), "nothing is written before something must be");
    bench.begin();
    for _ in 0..3 {
        assert_eq!(bench.writes()[1], (1, What::Superblock));
        bench.end(1, Stored::Yes);
        bench.advance();
    }
    assert_eq!(bench.writes(), all_write(FOUND.0 + RUN));
}

/// G3: it is not counted among those that have what was written before, and that is not written over first.
#[test]
fn drive_that_is_back_is_given_metadata_beside_the_newest_that_it_has() {
    for (held, next) in [
        (Some(Held { generation: Generation(6), slot: 0 }), 1),
        (Some(Held { generation: Generation(6), slot: 1 }), 0),
        (None, 0),
    ] {
        let mut bench = Bench::open();
        come(&mut bench, Uuid([3; 16]), held);
        let generation = bench.content().generation;
        assert_eq!(bench.writes().last(), Some(&(3, What::Metadata(generation))), "{held:?}");
        assert_eq!(bench.next(3), next, "{held:?}");
        assert_eq!(bench.store.holders[3].has, Generation::NONE, "{held:?}");
        let Member { id, stored, given, .. } = bench.content().members[3];
        assert_eq!((id.uuid, id.seating), (Uuid([3; 16]), 1));
        assert_eq!((stored, given), (Generation(5), generation), "a copy from before is known");
    }
}

/// A drive that is put back to an earlier state has an older generation than the one after the last wrap of a ring.
#[test]
fn generation_follows_when_as_much_as_a_ring_was_written() {
    let mut bench = Bench::open();
    bench.now = bench.now + LATER;
    bench.advance();
    assert!(bench.writes().is_empty(), "nothing was written");
    bench.core.log.ring_wraps += 1;
    bench.advance();
    assert_eq!(bench.writes().len(), 3);
}
