//! Members in every relation to one another that the module speaks of.

use levelhead_units::{Lba, SECTOR_SIZE};

use super::*;
use crate::meta::membership::MemberId;
use crate::meta::metadata::{Forced, Inscription, Kept, Logs};
use crate::meta::recorded::Recorded;
use crate::meta::regions::{Grid, Regions};
use crate::meta::reserve::{Apart, Division, Use};
use crate::meta::wishes::Wishes;

mod returning;

const SIZE: Sectors = Sectors::new(2_000);

fn uuid(drive: u8) -> Uuid {
    Uuid([0xB0 + drive; 16])
}

/// Drives with this many places that are present and have stored generation 8.
fn members(count: u8) -> Vec<Member> {
    let (stored, given) = (Generation(8), Generation(10));
    let member = |at| Member { stored, given, ..Member::new(uuid(at), Membership::Present) };
    (0..count).map(member).collect()
}

/// A clean array of three drives, all there and in sync, at generation 10.
fn metadata() -> Metadata {
    let spec: Spec = "raid5:2+1,chunk=8KiB".parse().unwrap();
    let division = Division::of(&spec, SIZE).unwrap();
    let mut metadata = Metadata {
        generation: Generation(10),
        array: Uuid([7; 16]),
        run: Uuid([8; 16]),
        base: Generation(4),
        spec,
        drive_size: division.drive_size,
        state: State::Clean,
        forced: Forced::No,
        synced: 0,
        synced_last: 0,
        journal: None,
        wishes: Wishes::default(),
        members: members(3),
        damaged: Default::default(),
    };
    (metadata.synced, metadata.synced_last) = (metadata.stripes(), metadata.stripes());
    metadata
}

/// The superblock of the drive that was made a member of this array.
fn superblock(of: &Metadata, drive: u8) -> Superblock {
    let Metadata { array, spec, drive_size, journal, .. } = *of;
    let reserved = match usize::from(drive) < spec.drives() {
        true => Division::of(&spec, SIZE).unwrap().reserved(SIZE),
        false => Apart::of(&spec, SIZE).unwrap().reserved(SIZE),
    };
    let own = Own { drive: DriveIdx::new(drive), size: SIZE, reserved };
    let (member, logs) = (uuid(drive), journal.map(|kept| kept.logs));
    Superblock { array, member, spec, drive_size, logs, own, read_only: 0 }
}

fn read(superblock: &Superblock) -> Copy {
    Copy::Read(Box::new(Ok(superblock.clone())))
}

fn with_superblock(superblock: &Superblock, metadata: &Metadata) -> Found {
    let mut found = Found::new([(); 3].map(|()| read(superblock)), SIZE);
    found.slots[1] = Slot::Read(Arc::new(metadata.clone()));
    found
}

/// A drive that has this metadata.
fn found(metadata: &Metadata, drive: u8) -> Found {
    with_superblock(&superblock(metadata, drive), metadata)
}

fn all(metadata: &Metadata) -> Vec<Found> {
    (0..metadata.spec.members() as u8).map(|drive| found(metadata, drive)).collect()
}

fn at_generation(generation: u64) -> Metadata {
    Metadata { generation: Generation(generation), ..metadata() }
}

fn set(drives: &[u8]) -> DriveSet {
    drives.iter().copied().map(DriveIdx::new).collect()
}

#[test]
fn whole_array_is_assembled_whatever_the_order() {
    let all = all(&metadata());
    for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0], [2, 1, 0]] {
        let members: Vec<Found> = order.iter().map(|&at: &usize| all[at].clone()).collect();
        let assembly = assemble(&members).unwrap();
        assert_eq!((assembly.absent, assembly.doubt), (DriveSet::EMPTY, None));
        assert_eq!(assembly.trusted, metadata().stripes());
        assert_eq!(assembly.metadata, metadata());
        for (drive, place) in assembly.places.iter().enumerate() {
            let place = place.as_ref().unwrap();
            assert_eq!(order[place.found], drive);
            assert_eq!(place.held, Some(Held { generation: Generation(10), slot: 1 }));
        }
    }
    assert_eq!(assemble(&[]), Err(Refusal::Nothing));
}

/// Q1, Q2: the newest one says what each has stored. A copy of a member from before has less, whatever the others have.
#[test]
fn member_may_lack_the_last_generations_but_none_that_it_has_stored() {
    for stored in [0, 1, 10, 15, 20] {
        let mut right = at_generation(20);
        right.members[1].stored = Generation(stored);
        for generation in 1..=20 {
            let own = at_generation(generation);
            let own = if generation == 20 { right.clone() } else { own };
            let outcome = assemble(&[found(&right, 0), found(&own, 1), found(&right, 2)]);
            if generation < stored {
                let generations = [generation, 20].map(Generation);
                assert_eq!(outcome, Err(Refusal::Stale { found: [1, 0], generations }));
                continue;
            }
            let assembly = outcome.unwrap();
            let lagging = if generation < 20 { set(&[1]) } else { DriveSet::EMPTY };
            assert_eq!((assembly.lagging, assembly.absent), (lagging, DriveSet::EMPTY));
            assert_eq!(assembly.metadata, right, "the newest one is right");
        }
    }
}

/// The one that is right may be on any of them.
#[test]
fn newest_metadata_is_right_wherever_it_is() {
    let newer = at_generation(11);
    for drive in 0..3 {
        let mut members = all(&metadata());
        members[usize::from(drive)] = found(&newer, drive);
        let assembly = assemble(&members).unwrap();
        assert_eq!(assembly.metadata, newer);
        assert_eq!(assembly.lagging, set(&[0, 1, 2]).without(set(&[drive])));
    }
    // The older slot of a member says nothing.
    let mut members = all(&newer);
    let older = Slot::Read(Arc::new(metadata()));
    members.iter_mut().for_each(|member| member.slots[0] = older.clone());
    let assembly = assemble(&members).unwrap();
    assert_eq!((assembly.metadata.generation, assembly.lagging), (Generation(11), DriveSet::EMPTY));
    let held = assembly.places[2].as_ref().unwrap().held;
    assert_eq!(held, Some(Held { generation: Generation(11), slot: 1 }));
}

/// One that is new has a superblock, and may not have got its first generation.
#[test]
fn member_without_metadata_is_one_that_has_stored_none() {
    let without = |metadata: &Metadata, drive| {
        let copies = [(); 3].map(|()| read(&superblock(metadata, drive)));
        Found::new(copies, SIZE)
    };
    let mut right = metadata();
    right.members[2] = Member::new(uuid(2), Membership::Filling { to: 0 });
    let members = [found(&right, 0), found(&right, 1), without(&right, 2)];
    let assembly = assemble(&members).unwrap();
    assert_eq!((assembly.filling, assembly.lagging), (set(&[2]), set(&[2])));
    assert_eq!(assembly.places[2].as_ref().unwrap().held, None);
    // It was written over.
    right.members[2].stored = Generation(1);
    let members = [found(&right, 0), found(&right, 1), without(&right, 2)];
    let generations = [Generation::NONE, Generation(10)];
    assert_eq!(assemble(&members), Err(Refusal::Stale { found: [2, 0], generations }));
    let members: Vec<Found> = (0..3).map(|drive| without(&right, drive)).collect();
    assert_eq!(assemble(&members), Err(Refusal::NoMetadata));
}

fn lost(drive: usize) -> Metadata {
    let mut metadata = at_generation(11);
    metadata.members[drive].membership = Membership::Lost { why: Why::Failed };
    metadata
}

#[test]
fn drive_that_the_array_did_without_is_refused_by_place_and_reason() {
    let after = lost(2);
    let members = [found(&after, 0), found(&after, 1), found(&metadata(), 2)];
    let (drive, membership) = (DriveIdx::new(2), Membership::Lost { why: Why::Failed });
    assert_eq!(assemble(&members), Err(Refusal::LeftBehind { found: 2, drive, membership }));
    let assembly = assemble(&members[..2]).unwrap();
    assert_eq!((assembly.absent.len(), assembly.doubt), (1, None));
    assert_eq!(assembly.metadata.members[2].membership, membership);
}

/// The old drive, by itself and beside the one that has come into its place.
#[test]
fn drive_that_was_replaced_holds_old_data_and_has_not_gone_its_own_way() {
    let mut replaced = at_generation(12);
    replaced.members[2] = Member::new(Uuid([99; 16]), Membership::Filling { to: 5 });
    let new = Superblock { member: Uuid([99; 16]), ..superblock(&replaced, 2) };
    let others = [found(&replaced, 0), found(&replaced, 1), with_superblock(&new, &replaced)];
    let (old, drive) = (found(&metadata(), 2), DriveIdx::new(2));
    let refusal = Err(Refusal::Replaced { found: 3, drive });
    assert_eq!(assemble(&[&others[..], std::slice::from_ref(&old)].concat()), refusal);
    let refusal = Err(Refusal::Replaced { found: 2, drive });
    assert_eq!(assemble(&[&others[..2], &[old]].concat()), refusal);
    assert_eq!(assemble(&others).unwrap().absent, DriveSet::EMPTY);
}

/// A drive that is being filled is part of the array, and counts as lost.
#[test]
fn drive_that_is_being_filled_is_found_and_counts_for_none() {
    let mut filling = metadata();
    filling.members[2].membership = Membership::Filling { to: 5 };
    let all = all(&filling);
    let assembly = assemble(&all).unwrap();
    assert_eq!((assembly.absent, assembly.filling), (DriveSet::EMPTY, set(&[2])));
    let recorded = Recorded::of(&assembly, Uuid([1; 16]));
    let filled = [0, 1, 2].map(|drive| recorded.filled_to(DriveIdx::new(drive)));
    assert_eq!(filled, [None, None, Some(5)]);
    // Without it, it is absent; with another one absent it does not help.
    let assembly = assemble(&all[..2]).unwrap();
    assert_eq!((assembly.absent, assembly.filling), (set(&[2]), DriveSet::EMPTY));
    let absent = set(&[1, 2]);
    let spec = filling.spec;
    let left = [all[0].clone(), all[2].clone()];
    assert_eq!(assemble(&left), Err(Refusal::TooFew { spec, absent }));
}

/// One of three drives may be lost, and the generation with it that is on that one alone.
#[test]
fn generation_that_was_found_is_recorded_on_enough_drives_or_on_all_that_are_there() {
    let is_recorded = |newest: &Metadata, generations: &[u64]| {
        let at = |(drive, &generation): (u8, &u64)| match generation {
            11 => found(newest, drive),
            _ => found(&metadata(), drive),
        };
        let found: Vec<Found> = (0..).zip(generations).map(at).collect();
        let assembly = assemble(&found).unwrap();
        let recorded = Recorded::of(&assembly, Uuid([1; 16]));
        assert_eq!(recorded.is_recorded, assembly.is_recorded(), "{generations:?}");
        assembly.is_recorded()
    };
    let newest = at_generation(11);
    assert!(!is_recorded(&newest, &[11, 10, 10]));
    assert!(is_recorded(&newest, &[11, 10, 11]) && is_recorded(&newest, &[11, 11, 11]));
    // One is absent: all that are left have it, or one of two.
    assert!(is_recorded(&newest, &[11, 11]) && !is_recorded(&newest, &[10, 11]));
    // With one that is known to be lost, each of the others is needed.
    assert!(is_recorded(&lost(2), &[10, 11]), "no loss is survived that takes it");
}

#[test]
fn members_of_one_generation_that_differ_have_gone_different_ways() {
    let mut other = metadata();
    other.run = Uuid([9; 16]);
    let members = [found(&metadata(), 0), found(&other, 1)];
    assert_eq!(assemble(&members), Err(Refusal::DifferentWays { found: [0, 1] }));
    let mut changed = metadata();
    changed.damaged.add(DriveIdx::new(0), Extent::new(Lba::ZERO, Sectors::new(1)));
    let members = [found(&metadata(), 0), found(&changed, 1)];
    assert_eq!(assemble(&members), Err(Refusal::DifferentWays { found: [0, 1] }));
    let stranger = Metadata { array: Uuid([1; 16]), ..metadata() };
    let refused = assemble(&[found(&metadata(), 0), found(&stranger, 1)]).unwrap_err();
    assert!(matches!(refused, Refusal::DifferentArrays { found: [0, 1], .. }));
    let twice = assemble(&[found(&metadata(), 0), found(&metadata(), 1), found(&metadata(), 1)]);
    let drive = DriveIdx::new(1);
    assert_eq!(twice, Err(Refusal::SamePlace { found: [1, 2], drive }));
}

/// Q2: a run has to do with another one only up to the generation that it began with.
#[test]
fn member_that_was_part_of_another_run_meanwhile_has_gone_a_different_way() {
    let right = Metadata { run: Uuid([9; 16]), base: Generation(12), ..at_generation(30) };
    for generation in 8..30 {
        let own = at_generation(generation);
        let members = [found(&right, 0), found(&own, 1), found(&right, 2)];
        let outcome = assemble(&members).map(|assembly| assembly.lagging);
        let refusal = Err(Refusal::DifferentWays { found: [0, 1] });
        let expected = if generation <= 12 { Ok(set(&[1])) } else { refusal };
        assert_eq!(outcome, expected, "generation {generation}");
        // One of the same run has only missed some.
        let own = Metadata { run: right.run, base: right.base, ..own };
        let members = [found(&right, 0), found(&own, 1), found(&right, 2)];
        assert_eq!(assemble(&members).map(|assembly| assembly.lagging), Ok(set(&[1])));
    }
}

/// What a superblock says was never changed, so that no two of an array may differ in it.
#[test]
fn superblocks_of_one_array_say_the_same_of_it() {
    let with = |change: &dyn Fn(&mut Superblock)| {
        let mut members = all(&metadata());
        let mut other = superblock(&metadata(), 1);
        change(&mut other);
        members[1].copies = [(); 3].map(|()| read(&other));
        assemble(&members).map(drop)
    };
    assert_eq!(with(&|_| ()), Ok(()));
    let differs = Err(Refusal::DifferentWays { found: [0, 1] });
    assert_eq!(with(&|other| other.logs = Some(Logs::All)), differs);
    assert_eq!(with(&|other| other.drive_size = other.drive_size - Sectors::new(2)), differs);
    assert_eq!(with(&|other| other.spec = "raid5:2+1,chunk=4KiB".parse().unwrap()), differs);
    let piece = |other: &mut Superblock| {
        let is_ring = |place: &&mut crate::meta::reserve::Reserved| place.purpose == Use::Journal;
        let ring = other.own.reserved.iter_mut().find(is_ring).unwrap();
        ring.extent.sectors = ring.extent.sectors - Sectors::new(1);
    };
    assert_eq!(with(&piece), differs, "it is divided in another way");
    let shifted = |other: &mut Superblock| other.own.reserved[3].purpose = Use::Free;
    assert_eq!(with(&shifted), differs, "its journal lies elsewhere");
}

/// By one sector to 512: the third superblock of a member that shrank would lie in its data.
#[test]
fn member_that_shrank_by_a_single_sector_is_refused() {
    for less in 1..=512 {
        let mut members = all(&metadata());
        members[1].size = SIZE - Sectors::new(less);
        let shrunk = Refusal::Shrunk { found: 1, has: members[1].size, had: SIZE };
        assert_eq!(assemble(&members), Err(shrunk));
    }
    let mut larger = all(&metadata());
    larger[1].size = SIZE + Sectors::new(1);
    assert!(assemble(&larger).is_ok(), "one that grew is as good");
}

#[test]
fn one_good_copy_of_three_is_enough() {
    let torn = Copy::Read(Box::new(Err(SuperblockError::Checksum { stored: 1, computed: 2 })));
    let absent = Copy::Read(Box::new(Err(SuperblockError::Absent)));
    let good = read(&superblock(&metadata(), 0));
    let outcome = |copies: [&Copy; 3]| {
        let mut members = all(&metadata());
        members[0].copies = copies.map(Copy::clone);
        assemble(&members)
    };
    for other in [&Copy::Unreadable, &torn, &absent] {
        for copies in [[&good, other, other], [other, &good, other], [other, other, &good]] {
            assert_eq!(outcome(copies).unwrap().absent, DriveSet::EMPTY, "{other:?}");
        }
    }
    let refusal = |copies| outcome(copies).unwrap_err();
    assert_eq!(refusal([&absent; 3]), Refusal::Stranger { found: 0 });
    assert_eq!(refusal([&absent, &Copy::Unreadable, &absent]), Refusal::Unreadable { found: 0 });
    let damaged = refusal([&torn, &Copy::Unreadable, &absent]);
    assert!(matches!(damaged, Refusal::Damaged { found: 0, .. }));
}

#[test]
fn copies_of_different_members_have_two_owners() {
    let own = superblock(&metadata(), 0);
    let array = Superblock { array: Uuid([1; 16]), ..own.clone() };
    let member = Superblock { member: Uuid([1; 16]), ..own.clone() };
    for other in [&array, &member, &superblock(&metadata(), 1)] {
        for copies in [[&own, &own, other], [&own, other, &own], [other, &own, &own]] {
            let mut members = all(&metadata());
            members[0].copies = copies.map(read);
            let refused = assemble(&members).unwrap_err();
            assert!(matches!(refused, Refusal::TwoOwners { found: 0, .. }), "{refused:?}");
        }
    }
}

/// Q3.
#[test]
fn array_that_is_not_clean_trusts_no_redundancy_unless_told_to() {
    let mut dirty = Metadata { state: State::Dirty, synced: 0, ..metadata() };
    dirty.synced_last = 5;
    let whole = all(&dirty);
    let assembly = assemble(&whole).unwrap();
    assert_eq!((assembly.trusted, assembly.doubt), (0, None));
    let assembly = assemble(&whole[..2]).unwrap();
    assert_eq!((assembly.trusted, assembly.doubt), (5, Some(Doubt::Unclean)));
    let recorded = Recorded::of(&assembly, Uuid([1; 16]));
    assert_eq!(recorded.forced_over, Some(Doubt::Unclean));
    // What was being written is in the journal.
    let journal = Some(Kept { first: 1, logs: Logs::All });
    let mut journaled = Metadata { journal, ..dirty.clone() };
    let assembly = assemble(&all(&journaled)).unwrap();
    assert_eq!((assembly.trusted, assembly.doubt), (5, None));
    journaled.synced_last = journaled.stripes();
    let assembly = assemble(&all(&journaled)[..2]).unwrap();
    assert_eq!((assembly.trusted, assembly.doubt), (journaled.stripes(), None));
    let half = Metadata { synced: 3, synced_last: 3, ..metadata() };
    let whole = all(&half);
    assert_eq!(assemble(&whole).unwrap().trusted, 3);
    let stripes = metadata().stripes() - 3;
    let assembly = assemble(&whole[1..]).unwrap();
    assert_eq!((assembly.trusted, assembly.doubt), (3, Some(Doubt::Unsynced { stripes })));
    assert!(matches!(assemble(&whole[1..2]), Err(Refusal::TooFew { .. })));
}

/// A newer program may have written one copy, and have been cut off.
#[test]
fn copy_of_a_newer_program_is_not_passed_over_for_the_other_ones() {
    for error in
        [SuperblockError::Version { version: 4 }, SuperblockError::Features { bits: 1 << 40 }]
    {
        for at in 0..3 {
            let mut members = all(&metadata());
            members[1].copies[at] = Copy::Read(Box::new(Err(error.clone())));
            let error = error.clone();
            assert_eq!(assemble(&members), Err(Refusal::Damaged { found: 1, error }));
        }
    }
    let mut members = all(&metadata());
    let error = SuperblockError::Checksum { stored: 1, computed: 2 };
    members[1].copies[0] = Copy::Read(Box::new(Err(error)));
    assert!(assemble(&members).is_ok(), "damage is what the other copies are for");
}

#[test]
fn array_with_unknown_features_is_not_written() {
    let member = Superblock { read_only: 8, ..superblock(&metadata(), 0) };
    let members = [with_superblock(&member, &metadata())];
    assert_eq!(assemble(&members), Err(Refusal::ReadOnly { found: 0, features: 8 }));
}

/// What cannot be read may be a newer generation than what can.
#[test]
fn slot_that_cannot_be_read_may_hold_what_the_member_has_stored() {
    let mut right = at_generation(20);
    right.members[1].stored = Generation(15);
    let mut member = found(&at_generation(14), 1);
    member.slots[0] = Slot::Unreadable;
    let members = [found(&right, 0), member, found(&right, 2)];
    assert_eq!(assemble(&members), Err(Refusal::NoNewest { found: 1 }));
    let mut member = found(&right, 1);
    member.slots[0] = Slot::Unreadable;
    let assembly = assemble(&[found(&right, 0), member, found(&right, 2)]).unwrap();
    assert_eq!(assembly.lagging, DriveSet::EMPTY, "the other slot has the newest one");
}

/// A newer generation that was committed was on enough drives. If all of these may be unreadable, no other drive need have it.
#[test]
fn drives_may_lack_more_where_those_that_would_know_do_not_give_it() {
    let mut right = metadata();
    (right.spec, right.members) = ("raid6:2+2,chunk=8KiB".parse().unwrap(), members(4));
    right.members[3].membership = Membership::Lost { why: Why::Failed };
    let may = |unreadable: &[usize], drives: usize| {
        let mut found = all(&right)[..drives].to_vec();
        unreadable.iter().for_each(|&at| found[at].slots[0] = Slot::Unreadable);
        let assembly = assemble(&found).unwrap();
        let recorded = Recorded::of(&assembly, Uuid([1; 16]));
        assert_eq!(recorded.may_lack_more, assembly.may_lack_more);
        assembly.may_lack_more
    };
    assert!(!may(&[], 3) && !may(&[1], 3), "one of two others would have it, too");
    assert!(may(&[0, 1], 3) && may(&[0, 1, 2], 3));
    assert!(!may(&[], 2) && may(&[1], 2), "each of two drives that are left is needed");
}

/// A dirty array of three drives with its journal on two of its own; `lost` are recorded as lost.
fn apart(lost: &[usize]) -> Metadata {
    let mut metadata = metadata();
    metadata.spec = metadata.spec.with_journals(2).unwrap();
    metadata.state = State::Dirty;
    (metadata.synced, metadata.journal) = (0, Some(Kept { first: 1, logs: Logs::All }));
    metadata.drive_size = Division::of(&metadata.spec, SIZE).unwrap().drive_size;
    metadata.synced_last = metadata.stripes();
    metadata.members = members(5);
    for &at in lost {
        metadata.members[at].membership = Membership::Lost { why: Why::Failed };
        metadata.generation = metadata.generation.plus(1);
    }
    metadata
}

#[test]
fn one_drive_with_the_journal_is_enough_and_none_is_not() {
    let metadata = apart(&[]);
    let with = |drives: &[u8]| {
        let found: Vec<Found> = drives.iter().map(|&drive| found(&metadata, drive)).collect();
        assemble(&found)
    };
    let absent = |drives: &[u8]| with(drives).map(|assembly| (assembly.absent, assembly.doubt));
    assert_eq!(absent(&[4, 0, 1, 2, 3]), Ok((DriveSet::EMPTY, None)));
    assert_eq!(absent(&[0, 1, 2, 4]), Ok((set(&[3]), None)), "all of the journal is on drive 4");
    assert_eq!(absent(&[3, 1, 2]), Ok((set(&[0, 4]), None)));
    assert!(matches!(with(&[0, 1, 2]), Err(Refusal::TooFew { .. })));
    assert!(matches!(with(&[3, 4]), Err(Refusal::TooFew { .. })));
}

/// One that the array went on without may lack what was answered since.
#[test]
fn an_old_drive_with_the_journal_is_not_taken() {
    let (old, new) = (apart(&[]), apart(&[3]));
    let mut members: Vec<Found> = (0..3).map(|drive| found(&new, drive)).collect();
    members.push(found(&old, 3));
    assert!(matches!(assemble(&members), Err(Refusal::TooFew { .. })), "drive 4 is needed");
    members.push(found(&new, 4));
    let assembly = assemble(&members).unwrap();
    assert_eq!(assembly.absent, set(&[3]));
    // It begins again, whatever it has missed.
    assert_eq!(assembly.returning.len(), 1);
    members.remove(3);
    assert_eq!(assemble(&members).map(|assembly| assembly.returning.len()), Ok(0));
}

/// A member as bytes.
#[derive(Clone)]
struct Drive {
    size: u64,
    bytes: Vec<u8>,
    /// Sectors that cannot be read.
    unreadable: Vec<u64>,
}

impl Drive {
    /// A drive of the example, with this generation in a slot.
    fn new(drive: u8, slot: usize) -> Self {
        let superblock = superblock(&metadata(), drive);
        let (bytes, unreadable) = (vec![0; SIZE.as_usize() * SECTOR_SIZE], Vec::new());
        let mut new = Self { size: SIZE.get(), bytes, unreadable };
        for lba in superblock.own.copies() {
            new.write(lba, &superblock.encode());
        }
        let holder = MemberId::new(superblock.member);
        let inscription = Inscription { metadata: Arc::new(metadata()), holder };
        new.write(superblock.own.slots()[slot].lba, &inscription.encode());
        new
    }

    fn write(&mut self, lba: Lba, bytes: &[u8]) {
        self.bytes[lba.get() as usize * SECTOR_SIZE..][..bytes.len()].copy_from_slice(bytes);
    }

    fn wipe(&mut self, lba: u64) {
        self.write(Lba::new(lba), &[0xFF; SECTOR_SIZE]);
    }

    fn grow(&mut self, sectors: u64) {
        self.size += sectors;
        self.bytes.resize(self.size as usize * SECTOR_SIZE, 0);
    }

    fn read(&self) -> Found {
        Found::read(Sectors::new(self.size), |extent| {
            let is_readable = self.unreadable.iter().all(|&lba| !extent.contains(Lba::new(lba)));
            let (start, length) = (extent.lba.get() as usize, extent.sectors.as_usize());
            let bytes = &self.bytes[start * SECTOR_SIZE..][..length * SECTOR_SIZE];
            is_readable.then(|| bytes.to_vec())
        })
    }
}

#[test]
fn all_of_a_member_is_read() {
    for slot in [0, 1] {
        let found = Drive::new(1, slot).read();
        assert!(found.copies.iter().all(|copy| *copy == read(&superblock(&metadata(), 1))));
        let word = found.word().unwrap();
        assert_eq!(word.held, Some(Held { generation: Generation(10), slot }));
        assert_eq!(word.generation(), Generation(10));
        assert_eq!(word.metadata, Some(Arc::new(metadata())));
    }
    let drives: Vec<Found> = (0..3).map(|drive| Drive::new(drive, 0).read()).collect();
    assert_eq!(assemble(&drives).unwrap().metadata, metadata());
    let mut other = Drive::new(1, 0);
    let mine = Inscription { metadata: Arc::new(metadata()), holder: MemberId::new(uuid(2)) };
    other.write(Lba::new(1), &mine.encode());
    let word = other.read().word().unwrap();
    assert_eq!((word.metadata, word.held), (None, None), "it was copied from another drive");
}

/// What writes over one end of a disk, or over both, leaves a copy.
#[test]
fn a_member_is_found_by_any_copy_that_is_left_also_after_it_has_grown() {
    let last = SIZE.get() - 1;
    for left in [0, 255, last] {
        let mut drive = Drive::new(1, 1);
        [0, 255, last].into_iter().filter(|&lba| lba != left).for_each(|lba| drive.wipe(lba));
        let found = drive.read();
        assert_eq!(found.good(), Some(&superblock(&metadata(), 1)), "the copy in sector {left}");
        assert!(found.word().unwrap().metadata.is_some());
    }
    let mut grown = Drive::new(1, 1);
    grown.grow(1_000);
    assert_eq!(grown.read().copies.each_ref().map(|copy| copy.good().is_some()), [true; 3]);
    grown.wipe(0);
    grown.unreadable = vec![last];
    let found = grown.read();
    assert_eq!(found.copies[2], Copy::Unreadable, "the others say where the last one is");
    assert!(found.good().is_some());
}

#[test]
fn slot_that_a_drive_does_not_give_is_unreadable() {
    let mut drive = Drive::new(1, 1);
    drive.unreadable = vec![1];
    let slots = drive.read().slots;
    assert_eq!(slots[0], Slot::Unreadable);
    assert!(matches!(slots[1], Slot::Read(_)));
}
