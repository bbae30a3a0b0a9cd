//! Members in every relation to one another that the module speaks of.

use levelhead_units::Lba;

use super::*;
use crate::durable::books::Books;
use crate::durable::membership::{Member, Why};
use crate::durable::reserve::{Apart, Division, Use};
use crate::durable::superblock::{Forced, Kept, Logs};
use crate::durable::wishes::Wishes;

mod returning;

const SIZE: Sectors = Sectors::new(2_000);

/// A clean array of three drives, whole and in sync, at generation 10.
fn book() -> Book {
    let spec: Spec = "raid5:2+1,chunk=8KiB".parse().unwrap();
    let division = Division::of(&spec, SIZE).unwrap();
    let member = |at| Member { uuid: Uuid([at; 16]), membership: Membership::Present };
    let mut book = Book {
        generation: 10,
        array: Uuid([7; 16]),
        run: Uuid([8; 16]),
        spec,
        drive_size: division.drive_size,
        state: State::Clean,
        forced: Forced::No,
        synced: 0,
        synced_last: 0,
        journal: None,
        missed: DriveSet::EMPTY,
        wishes: Wishes::default(),
        members: (0..3).map(member).collect(),
    };
    (book.synced, book.synced_last) = (book.stripes(), book.stripes());
    book
}

fn superblock(book: &Book, drive: u8) -> Superblock {
    let division = Division::of(&book.spec, SIZE).unwrap();
    let own = Own { drive: DriveIdx::new(drive), size: SIZE, reserved: division.reserved(SIZE) };
    Superblock { book: book.clone(), own, read_only: 0 }
}

fn read(superblock: Superblock) -> Copy {
    Copy::Read(Box::new(Ok(superblock)))
}

fn found(book: &Book, drive: u8) -> Found {
    let copy = read(superblock(book, drive));
    Found::new([copy.clone(), copy], SIZE)
}

/// Members at these generations of an otherwise equal book.
fn at_generations(generations: [u64; 3]) -> Vec<Found> {
    let at = |(drive, generation)| found(&Book { generation, ..book() }, drive);
    (0..).zip(generations).map(at).collect()
}

fn lost(drive: usize) -> Book {
    let mut book = book();
    book.generation += 1;
    book.members[drive].membership = Membership::Lost { why: Why::Failed };
    book
}

#[test]
fn whole_array_is_assembled_whatever_the_order() {
    let all: Vec<Found> = (0..3).map(|drive| found(&book(), drive)).collect();
    for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0], [2, 1, 0]] {
        let members: Vec<Found> = order.iter().map(|&at: &usize| all[at].clone()).collect();
        let assembly = quorum(&members).unwrap();
        assert_eq!((assembly.absent, assembly.doubt), (DriveSet::EMPTY, None));
        assert_eq!(assembly.trusted, book().stripes());
        for (drive, place) in assembly.places.iter().enumerate() {
            assert_eq!(order[place.as_ref().unwrap().found], drive);
        }
    }
    assert_eq!(quorum(&[]), Err(Refusal::Nothing));
}

/// Q1, Q2: of a copy at every generation.
#[test]
fn member_may_have_missed_the_last_change_and_no_more() {
    assert!(quorum(&at_generations([10, 11, 10])).is_ok());
    let assembly = quorum(&at_generations([10, 11, 10])).unwrap();
    let lagging = DriveSet::EMPTY.with(DriveIdx::new(0)).with(DriveIdx::new(2));
    assert_eq!((assembly.book.generation, assembly.lagging), (11, lagging));
    let stale = Refusal::Stale { found: [2, 0], generations: [9, 11] };
    assert_eq!(quorum(&at_generations([11, 11, 9])), Err(stale));
    for generation in 0..9 {
        let refused = quorum(&at_generations([10, generation, 10])).unwrap_err();
        let generations = [generation, 10];
        assert_eq!(refused, Refusal::Stale { found: [1, 0], generations });
    }
}

#[test]
fn drive_that_the_array_did_without_is_refused_by_place_and_reason() {
    let after = lost(2);
    let members = [found(&after, 0), found(&after, 1), found(&book(), 2)];
    let (drive, membership) = (DriveIdx::new(2), Membership::Lost { why: Why::Failed });
    assert_eq!(quorum(&members), Err(Refusal::LeftBehind { found: 2, drive, membership }));
    let assembly = quorum(&members[..2]).unwrap();
    assert_eq!((assembly.absent.len(), assembly.doubt), (1, None));
    assert_eq!(assembly.book.members[2].membership, membership);
}

/// The old drive, by itself and beside the one that has come into its place.
#[test]
fn drive_that_was_replaced_holds_old_data_and_has_not_gone_its_own_way() {
    let mut replaced = book();
    replaced.generation += 2;
    replaced.members[2] =
        Member { uuid: Uuid([99; 16]), membership: Membership::Filling { to: 5 } };
    let others = [found(&replaced, 0), found(&replaced, 1), found(&replaced, 2)];
    let (old, drive) = (found(&book(), 2), DriveIdx::new(2));
    let refusal = Err(Refusal::Replaced { found: 3, drive });
    assert_eq!(quorum(&[&others[..], std::slice::from_ref(&old)].concat()), refusal);
    let refusal = Err(Refusal::Replaced { found: 2, drive });
    assert_eq!(quorum(&[&others[..2], &[old]].concat()), refusal);
    assert_eq!(quorum(&others).unwrap().absent, DriveSet::EMPTY);
}

/// A drive that is being filled is part of the array, and counts as lost.
#[test]
fn drive_that_is_being_filled_is_found_and_counts_for_none() {
    let mut filling = book();
    filling.members[2].membership = Membership::Filling { to: 5 };
    let all: Vec<Found> = (0..3).map(|drive| found(&filling, drive)).collect();
    let assembly = quorum(&all).unwrap();
    let third = DriveSet::EMPTY.with(DriveIdx::new(2));
    assert_eq!((assembly.absent, assembly.filling), (DriveSet::EMPTY, third));
    let books = Books::of(&assembly, Uuid([1; 16]));
    let filled = [0, 1, 2].map(|drive| books.filled_to(DriveIdx::new(drive)));
    assert_eq!(filled, [None, None, Some(5)]);
    // Without it, it is absent; with another one absent it does not help.
    let assembly = quorum(&all[..2]).unwrap();
    assert_eq!((assembly.absent, assembly.filling), (third, DriveSet::EMPTY));
    let absent = third.with(DriveIdx::new(1));
    let spec = filling.spec;
    let left = [all[0].clone(), all[2].clone()];
    assert_eq!(quorum(&left), Err(Refusal::TooFew { spec, absent }));
}

/// One of three drives may be lost, and the list with it that is on that one alone.
#[test]
fn a_list_that_was_found_is_safe_on_enough_drives_or_on_all_that_are_there() {
    let all: Vec<Found> = (0..3).map(|drive| found(&book(), drive)).collect();
    let with = |found: &[Found], generation: u64, newest: [Option<u64>; 3]| {
        let mut books = Books::of(&quorum(found).unwrap(), Uuid([1; 16]));
        let on = |generation| Newest { generation, slot: 0 };
        let newest = newest.map(|newest| newest.map(on)).to_vec();
        books.damaged = FoundDamaged { generation, newest, ..FoundDamaged::default() };
        books
    };
    for (newest, is_safe) in [
        ([Some(4), None, None], false),
        ([Some(4), Some(3), Some(3)], false),
        ([Some(4), Some(3), Some(4)], true),
        ([Some(4); 3], true),
    ] {
        let books = with(&all, 4, newest);
        assert_eq!((books.listed(), books.is_list_safe()), (Some(4), is_safe), "{newest:?}");
    }
    let books = with(&all, 0, [None; 3]);
    assert_eq!((books.listed(), books.is_list_safe()), (Some(0), true), "there was none");
    // One is absent, and the other two have it; then a drive without a place for one, and no others.
    assert!(with(&all[..2], 4, [Some(4), Some(4), None]).is_list_safe());
    let mut books = with(&all, 0, [None; 3]);
    books
        .owns
        .iter_mut()
        .flatten()
        .for_each(|own| own.reserved.retain(|place| place.purpose != Use::Damaged));
    assert_eq!(books.listed(), None);
}

#[test]
fn members_of_one_generation_that_differ_have_gone_different_ways() {
    let mut other = book();
    other.run = Uuid([9; 16]);
    let members = [found(&book(), 0), found(&other, 1)];
    assert_eq!(quorum(&members), Err(Refusal::DifferentWays { found: [0, 1] }));
    let mut replaced = book();
    replaced.members[1].uuid = Uuid([99; 16]);
    replaced.generation -= 1;
    let members = [found(&book(), 0), found(&replaced, 1)];
    assert_eq!(quorum(&members), Err(Refusal::DifferentWays { found: [0, 1] }));
    let stranger = Book { array: Uuid([1; 16]), ..book() };
    let refused = quorum(&[found(&book(), 0), found(&stranger, 1)]).unwrap_err();
    assert!(matches!(refused, Refusal::DifferentArrays { found: [0, 1], .. }));
    let twice = quorum(&[found(&book(), 0), found(&book(), 1), found(&book(), 1)]);
    let drive = DriveIdx::new(1);
    assert_eq!(twice, Err(Refusal::SamePlace { found: [1, 2], drive }));
}

/// By one sector to 512: the second superblock of a member that shrank would lie in its data.
#[test]
fn member_that_shrank_by_a_single_sector_is_refused() {
    for less in 1..=512 {
        let mut members: Vec<Found> = (0..3).map(|drive| found(&book(), drive)).collect();
        members[1].size = SIZE - Sectors::new(less);
        let shrunk = Refusal::Shrunk { found: 1, has: members[1].size, had: SIZE };
        assert_eq!(quorum(&members), Err(shrunk));
    }
    let mut larger: Vec<Found> = (0..3).map(|drive| found(&book(), drive)).collect();
    larger[1].size = SIZE + Sectors::new(1);
    assert!(quorum(&larger).is_ok(), "one that grew is as good");
}

#[test]
fn one_good_copy_is_enough_and_the_newer_of_two_counts() {
    let (old, new) = (book(), Book { generation: 11, ..book() });
    let newer = Book { generation: 12, ..book() };
    let member = |copies| [Found::new(copies, SIZE), found(&new, 1), found(&new, 2)];
    let torn = Copy::Read(Box::new(Err(SuperblockError::Checksum { stored: 1, computed: 2 })));
    let absent = Copy::Read(Box::new(Err(SuperblockError::Absent)));
    for other in [Copy::Unreadable, torn.clone(), absent.clone(), read(superblock(&old, 0))] {
        let good = read(superblock(&newer, 0));
        for copies in [[good.clone(), other.clone()], [other.clone(), good.clone()]] {
            assert_eq!(quorum(&member(copies)).unwrap().book.generation, 12, "{other:?}");
        }
    }
    let refusal = |copies| quorum(&member(copies)).unwrap_err();
    assert_eq!(refusal([absent.clone(), absent.clone()]), Refusal::Stranger { found: 0 });
    assert_eq!(refusal([Copy::Unreadable, absent]), Refusal::Unreadable { found: 0 });
    let damaged = refusal([torn, Copy::Unreadable]);
    assert!(matches!(damaged, Refusal::Damaged { found: 0, .. }));
    let other = Book { array: Uuid([1; 16]), generation: 99, ..book() };
    let two = refusal([read(superblock(&old, 0)), read(superblock(&other, 0))]);
    assert!(matches!(two, Refusal::TwoOwners { found: 0, .. }), "whatever the generations");
}

#[test]
fn array_that_is_not_clean_trusts_no_redundancy_unless_told_to() {
    let mut dirty = Book { state: State::Dirty, synced: 0, ..book() };
    dirty.synced_last = 5;
    let whole: Vec<Found> = (0..3).map(|drive| found(&dirty, drive)).collect();
    let assembly = quorum(&whole).unwrap();
    assert_eq!((assembly.trusted, assembly.doubt), (0, None));
    let assembly = quorum(&whole[..2]).unwrap();
    assert_eq!((assembly.trusted, assembly.doubt), (5, Some(Doubt::Unclean)));
    let half = Book { synced: 3, synced_last: 3, ..book() };
    let whole: Vec<Found> = (0..3).map(|drive| found(&half, drive)).collect();
    assert_eq!(quorum(&whole).unwrap().trusted, 3);
    let stripes = book().stripes() - 3;
    let assembly = quorum(&whole[1..]).unwrap();
    assert_eq!((assembly.trusted, assembly.doubt), (3, Some(Doubt::Unsynced { stripes })));
    assert!(matches!(quorum(&whole[1..2]), Err(Refusal::TooFew { .. })));
}

/// A crash between the two copies of a newer program's record leaves one that this program can read.
#[test]
fn copy_of_a_newer_program_is_not_passed_over_for_the_other_one() {
    for error in
        [SuperblockError::Version { version: 3 }, SuperblockError::Features { bits: 1 << 40 }]
    {
        let mut members: Vec<Found> = (0..3).map(|drive| found(&book(), drive)).collect();
        members[1].copies[0] = Copy::Read(Box::new(Err(error.clone())));
        assert_eq!(quorum(&members), Err(Refusal::Damaged { found: 1, error }));
    }
    let mut members: Vec<Found> = (0..3).map(|drive| found(&book(), drive)).collect();
    let error = SuperblockError::Checksum { stored: 1, computed: 2 };
    members[1].copies[0] = Copy::Read(Box::new(Err(error)));
    assert!(quorum(&members).is_ok(), "damage is what the other copy is for");
}

#[test]
fn array_with_unknown_features_is_not_written() {
    let mut member = superblock(&book(), 0);
    member.read_only = 8;
    let members = [Found::new([read(member.clone()), read(member)], SIZE)];
    assert_eq!(quorum(&members), Err(Refusal::ReadOnly { found: 0, features: 8 }));
    assert_eq!(superblock(&book(), 0).own.copies()[1], Lba::new(1_999));
}

/// A dirty array of three drives with its journal on two of its own; `lost` are recorded as lost.
fn apart(lost: &[usize]) -> Book {
    let mut book = book();
    book.spec = book.spec.with_journals(2).unwrap();
    book.state = State::Dirty;
    (book.synced, book.journal) = (0, Some(Kept { first: 1, logs: Logs::All }));
    let member = |at| Member { uuid: Uuid([at; 16]), membership: Membership::Present };
    book.members = (0..5).map(member).collect();
    for &at in lost {
        book.members[at].membership = Membership::Lost { why: Why::Failed };
        book.generation += 1;
    }
    book
}

fn found_apart(book: &Book, drive: u8) -> Found {
    let reserved = match drive < 3 {
        true => Division::of(&book.spec, SIZE).unwrap().reserved(SIZE),
        false => Apart::of(&book.spec, SIZE).unwrap().reserved(SIZE),
    };
    let own = Own { drive: DriveIdx::new(drive), size: SIZE, reserved };
    let copy = read(Superblock { book: book.clone(), own, read_only: 0 });
    Found::new([copy.clone(), copy], SIZE)
}

#[test]
fn one_drive_with_the_journal_is_enough_and_none_is_not() {
    let book = apart(&[]);
    let with = |drives: &[u8]| {
        let found: Vec<Found> = drives.iter().map(|&drive| found_apart(&book, drive)).collect();
        quorum(&found)
    };
    let absent = |drives: &[u8]| with(drives).map(|assembly| (assembly.absent, assembly.doubt));
    let only = |drive: u8| DriveSet::EMPTY.with(DriveIdx::new(drive));
    assert_eq!(absent(&[4, 0, 1, 2, 3]), Ok((DriveSet::EMPTY, None)));
    assert_eq!(absent(&[0, 1, 2, 4]), Ok((only(3), None)), "all of the journal is on drive 4");
    assert_eq!(absent(&[3, 1, 2]), Ok((only(0).or(only(4)), None)));
    assert!(matches!(with(&[0, 1, 2]), Err(Refusal::TooFew { .. })));
    assert!(matches!(with(&[3, 4]), Err(Refusal::TooFew { .. })));
}

/// One that the array went on without may lack what was answered since.
#[test]
fn an_old_drive_with_the_journal_is_not_taken() {
    let (old, new) = (apart(&[]), apart(&[3]));
    let mut found: Vec<Found> = (0..3).map(|drive| found_apart(&new, drive)).collect();
    found.push(found_apart(&old, 3));
    assert!(matches!(quorum(&found), Err(Refusal::TooFew { .. })), "drive 4 is needed");
    found.push(found_apart(&new, 4));
    let assembly = quorum(&found).unwrap();
    assert_eq!(assembly.absent, DriveSet::EMPTY.with(DriveIdx::new(3)));
    // It begins anew, whatever it has missed.
    assert_eq!(assembly.returning.len(), 1);
    found.remove(3);
    assert_eq!(quorum(&found).map(|assembly| assembly.returning.len()), Ok(0));
}
