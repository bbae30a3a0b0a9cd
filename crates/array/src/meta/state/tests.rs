//! What waits for which generation, and what is known of a drive meanwhile.

use std::sync::Arc;

use levelhead_testkit::extent;
use levelhead_units::Lba;

use super::*;
use crate::meta::metadata::{Kept, Logs, RUN};
use crate::meta::own::Own;
use crate::settings::JournalSettings;
use crate::shape::Area;

const DRIVE: DriveIdx = DriveIdx::new(1);

/// In regions of four.
const STRIPES: u64 = 300;

/// What was found.
const FOUND: Generation = Generation(20);

fn uuid(drive: u8) -> Uuid {
    Uuid([0xB0 + drive; 16])
}

/// Settings of an array of drives that are all there.
fn settings(text: &str) -> Settings {
    let spec: Spec = text.parse().unwrap();
    let size = spec.chunk() * STRIPES;
    let plain =
        Settings { area: Area::plain(Extent::new(Lba::ZERO, size)), ..Settings::of_test(spec) };
    let journal = plain.journal.clone().unwrap();
    let journal = Some(JournalSettings { region_min: spec.chunk() * 4, ..journal });
    let count = spec.members();
    let member =
        |at| Member { stored: FOUND, given: FOUND, ..Member::new(uuid(at), Membership::Present) };
    let own = |at| {
        let drive = DriveIdx::from_usize(at);
        Some(Own { drive, size: Sectors::new(100_000), reserved: Vec::new() })
    };
    let metadata = Metadata {
        generation: FOUND,
        members: (0..count as u8).map(member).collect(),
        journal: Some(Kept { first: 1, logs: Logs::Parts }),
        ..of_study(&plain)
    };
    let recorded = Some(Recorded {
        metadata: Arc::new(metadata),
        owns: (0..count).map(own).collect(),
        held: vec![None; count],
        not_whole: DriveSet::EMPTY,
        is_in_reach: false,
        run: Uuid([9; 16]),
        forced_over: None,
        may_lack_more: false,
        is_recorded: true,
    });
    Settings { recorded, journal, ..plain }
}

fn meta() -> Metastate {
    Metastate::new(&settings("raid5:2+1,chunk=16KiB"))
}

/// The state of an array whose metadata was found with some changes.
fn found(change: impl FnOnce(&mut Recorded)) -> Metastate {
    let mut settings = settings("raid5:2+1,chunk=16KiB");
    change(settings.recorded.as_mut().unwrap());
    Metastate::new(&settings)
}

/// The seats as they are now.
fn seats(meta: &Metastate) -> Vec<CommittedSeat> {
    meta.members().iter().map(CommittedSeat::of).collect()
}

/// What is true now is committed.
fn commit(meta: &mut Metastate) {
    let generation = meta.begun().plus(1);
    meta.begin(generation);
    let seats = seats(meta);
    meta.note_committed(generation, seats);
}

/// The drive is lost, and it is known what it lacks.
fn lose(meta: &mut Metastate, drive: DriveIdx) {
    meta.lose(drive, Membership::Lost { why: Why::Failed }, Lacks::Known);
    meta.note_change(Change::Now);
}

/// A drive comes into the place of one that is lost.
fn seat(meta: &mut Metastate, drive: DriveIdx, uuid: Uuid, holds: Holds) {
    meta.seat(drive, uuid, holds);
    meta.note_change(Change::Now);
}

// Generations.

#[test]
fn what_was_changed_is_due_with_the_next_generation_until_that_is_committed() {
    let mut meta = meta();
    assert_eq!((meta.due(), meta.begun(), meta.change()), (Generation::NONE, FOUND, Change::None));
    assert!(meta.is_settled() && meta.is_committed(FOUND) && !meta.take_news());
    meta.note_change(Change::Now);
    let next = FOUND.plus(1);
    assert_eq!((meta.due(), meta.change()), (next, Change::Now));
    assert!(!meta.is_settled() && !meta.is_committed(next) && meta.is_committed(FOUND));
    meta.begin(next);
    assert_eq!((meta.due(), meta.begun(), meta.change()), (next, next, Change::None));
    let seats = seats(&meta);
    meta.note_committed(next, seats);
    assert!(meta.is_settled() && meta.due() == Generation::NONE && meta.is_committed(next));
    assert!(meta.take_news() && !meta.take_news());
}

#[test]
fn change_that_comes_after_a_generation_was_begun_is_said_by_the_one_after_it() {
    let mut meta = meta();
    meta.note_change(Change::Now);
    let first = FOUND.plus(1);
    meta.begin(first);
    meta.note_change(Change::Now);
    let second = FOUND.plus(2);
    assert_eq!(meta.due(), second);
    let seats = seats(&meta);
    meta.note_committed(first, seats.clone());
    assert_eq!((meta.due(), meta.is_settled()), (second, false));
    meta.begin(second);
    meta.note_committed(second, seats);
    assert!(meta.is_settled());
}

/// The first generation of a run is further than one, and says all the same.
#[test]
fn generation_of_a_new_run_says_what_was_due_before_it() {
    let mut meta = meta();
    meta.note_change(Change::Now);
    let (due, first) = (meta.due(), FOUND.plus(RUN));
    meta.begin(first);
    assert!(!meta.is_committed(due), "it is begun, and nowhere yet");
    let seats = seats(&meta);
    meta.note_committed(first, seats);
    assert!(meta.is_committed(due) && meta.is_settled());
}

#[test]
fn nothing_waits_for_a_change_that_may_come_later() {
    let mut meta = meta();
    meta.note_change(Change::Later);
    assert_eq!((meta.change(), meta.due()), (Change::Later, Generation::NONE));
    assert!(meta.is_settled() && meta.wait(7));
    meta.note_change(Change::Now);
    meta.note_change(Change::Later);
    assert_eq!((meta.change(), meta.due()), (Change::Now, FOUND.plus(1)), "what is due stays so");
}

#[test]
fn operation_waits_for_what_was_changed_up_to_then_and_not_for_what_comes_after() {
    let mut meta = meta();
    assert!(meta.wait(1), "nothing is due");
    meta.note_change(Change::Now);
    assert!(!meta.wait(1) && !meta.wait(1) && meta.take_ready().is_empty());
    let first = FOUND.plus(1);
    meta.begin(first);
    meta.note_change(Change::Now);
    assert!(!meta.wait(2) && !meta.wait(1));
    let seats = seats(&meta);
    meta.note_committed(first, seats.clone());
    assert_eq!(meta.take_ready(), [1]);
    assert!(meta.wait(1) && !meta.wait(2));
    meta.forget(1);
    assert!(!meta.wait(1), "an operation that is forgotten waits for all that is due now");
    meta.begin(FOUND.plus(2));
    meta.note_committed(FOUND.plus(2), seats);
    assert_eq!(meta.take_ready(), [1, 2]);
    [1, 2].into_iter().for_each(|op| meta.forget(op));
    assert!(meta.take_ready().is_empty());
}

/// G10 of the store: what was found on too few drives is committed like any other generation.
#[test]
fn what_was_found_on_too_few_drives_is_due_itself() {
    let mut meta = found(|recorded| recorded.is_recorded = false);
    assert_eq!((meta.due(), meta.is_settled()), (FOUND, false));
    assert!(!meta.wait(3));
    let seats = seats(&meta);
    meta.note_committed(FOUND, seats);
    assert!(meta.is_settled() && meta.take_ready() == [3]);
}

#[test]
fn nothing_waits_once_the_array_has_failed() {
    let mut meta = meta();
    meta.note_change(Change::Now);
    assert!(!meta.wait(5));
    meta.end();
    assert!(meta.is_settled() && meta.take_news() && meta.take_ready() == [5]);
    assert_eq!(meta.due(), Generation::NONE);
}

#[test]
fn all_is_committed_at_once_where_nothing_is_recorded() {
    let plain = Settings { recorded: None, ..settings("raid5:2+1,chunk=16KiB") };
    let mut meta = Metastate::new(&plain);
    lose(&mut meta, DRIVE);
    assert!(meta.is_settled() && meta.wait(1) && meta.due() == Generation::NONE);
    assert_eq!(meta.miss(DRIVE, 8), Generation::NONE);
    assert!(meta.knows_lacks_for_good(DRIVE));
    seat(&mut meta, DRIVE, uuid(9), Holds::AllButWhatIsLacking);
    assert!(meta.is_named(DRIVE) && meta.is_back(DRIVE) && meta.spares(DRIVE, 0));
    meta.damage(DRIVE, extent(4, 1));
    assert!(meta.is_settled() && !meta.damaged_summary().is_kept);
    meta.end();
    assert!(!meta.take_news(), "nothing waits for it");
}

// Members.

/// MW1: what was under way is added by who knows; what a drive did not hold is lacking from the start.
#[test]
fn drive_that_is_lost_lacks_what_it_did_not_hold() {
    let mut meta = meta();
    lose(&mut meta, DRIVE);
    assert!(meta.knows_lacks(DRIVE));
    assert_eq!(meta.next_lacking(DRIVE, 0), None, "it held everything");
    let mut meta = found(|recorded| {
        let metadata = Arc::make_mut(&mut recorded.metadata);
        metadata.members[1].membership = Membership::Filling { to: 290 };
    });
    lose(&mut meta, DRIVE);
    assert_eq!(meta.next_lacking(DRIVE, 0), Some(288));
    assert_eq!(meta.end_of_lacking(DRIVE, 288), None);
    assert_eq!(meta.members()[1].membership, Membership::Lost { why: Why::Failed });
    for held in [Membership::Missing, Membership::Spare] {
        let mut meta = found(|recorded| {
            let metadata = Arc::make_mut(&mut recorded.metadata);
            metadata.members[1].membership = held;
        });
        lose(&mut meta, DRIVE);
        assert!(!meta.knows_lacks(DRIVE), "nobody knows what one held that was {held:?}");
    }
    meta.lose(DriveIdx::new(0), Membership::Missing, Lacks::Unknown);
    assert!(!meta.knows_lacks(DriveIdx::new(0)));
}

/// MW1, MW2.
#[test]
fn drive_that_is_back_holds_what_it_does_not_lack() {
    let mut meta = meta();
    lose(&mut meta, DRIVE);
    meta.miss(DRIVE, 9);
    meta.miss_all(DRIVE, 250..261);
    assert!(!meta.spares(DRIVE, 0), "it is not back");
    commit(&mut meta);
    seat(&mut meta, DRIVE, uuid(1), Holds::AllButWhatIsLacking);
    assert!(!meta.spares(DRIVE, 0), "it is not named");
    commit(&mut meta);
    let holds: Vec<u64> = (0..STRIPES).filter(|&stripe| meta.spares(DRIVE, stripe)).collect();
    let lacks = |stripe: &u64| (8..12).contains(stripe) || (248..264).contains(stripe);
    assert_eq!(holds, (0..STRIPES).filter(|stripe| !lacks(stripe)).collect::<Vec<u64>>());
    assert_eq!(meta.regions_left(DRIVE, 0), Some(5));
    assert_eq!(meta.regions_left(DRIVE, 252), Some(3));
    assert_eq!((meta.next_lacking(DRIVE, 0), meta.end_of_lacking(DRIVE, 8)), (Some(8), Some(12)));
    assert_eq!((meta.next_lacking(DRIVE, 10), meta.next_lacking(DRIVE, 12)), (Some(10), Some(248)));
    assert_eq!((meta.next_lacking(DRIVE, 264), meta.end_of_lacking(DRIVE, 248)), (None, Some(264)));
    // What is copied to it stays lacking until it holds everything.
    meta.set_filled(DRIVE, 260);
    assert_eq!(meta.regions_left(DRIVE, 0), Some(5));
    meta.set_present(DRIVE);
    assert!(!meta.spares(DRIVE, 0) && meta.regions_left(DRIVE, 0).is_none());
    assert!(meta.members()[1].is_present() && !meta.knows_lacks(DRIVE));
}

/// What relies on it waits for the generation that says so.
#[test]
fn what_a_drive_lacks_is_due_until_it_is_committed() {
    let mut meta = meta();
    assert_eq!(meta.miss(DRIVE, 9), Generation::NONE, "nothing of it is lacking");
    assert_eq!(meta.change(), Change::None);
    lose(&mut meta, DRIVE);
    commit(&mut meta);
    let first = meta.miss(DRIVE, 9);
    assert_eq!((first, meta.change()), (FOUND.plus(2), Change::Now));
    assert_eq!(meta.miss(DRIVE, 10), first, "a second one of the region waits for the same");
    meta.begin(first);
    assert_eq!((meta.miss(DRIVE, 11), meta.change()), (first, Change::None));
    let later = meta.miss(DRIVE, 100);
    assert_eq!(later, FOUND.plus(3), "what came later is not written");
    let seats = seats(&meta);
    meta.note_committed(first, seats);
    assert!(meta.is_committed(first) && !meta.is_committed(later));
    commit(&mut meta);
    assert!(meta.is_committed(later));
    assert_eq!(meta.miss(DRIVE, 9), Generation::NONE, "it is committed already");
    meta.miss_all(DRIVE, 8..12);
    assert!(meta.is_settled());
    meta.miss_all(DRIVE, 8..13);
    assert!(!meta.is_settled());
    assert_eq!(meta.miss(DriveIdx::new(63), 0), Generation::NONE, "no such place");
}

/// MW4.
#[test]
fn what_is_written_beside_a_seat_waits_until_the_drive_in_it_is_named() {
    for holds in [Holds::Nothing, Holds::AllButWhatIsLacking] {
        let mut meta = meta();
        lose(&mut meta, DRIVE);
        commit(&mut meta);
        meta.miss(DRIVE, 9);
        commit(&mut meta);
        assert_eq!(meta.miss(DRIVE, 9), Generation::NONE, "the old one lacks it for good");
        seat(&mut meta, DRIVE, uuid(9), holds);
        let named_by = FOUND.plus(3);
        for stripe in [9, 200] {
            let due = meta.miss(DRIVE, stripe);
            assert!(due >= named_by, "after a crash before, the old one comes back: {holds:?}");
        }
        meta.begin(named_by);
        assert!(!meta.is_named(DRIVE) && meta.miss(DRIVE, 9) >= named_by);
        let seats = seats(&meta);
        meta.note_committed(named_by, seats);
        assert!(meta.is_named(DRIVE));
        assert_eq!(meta.miss(DRIVE, 9), Generation::NONE);
    }
}

/// MW3.
#[test]
fn it_is_known_for_good_what_a_drive_lacks_once_a_committed_generation_says_it() {
    let mut meta = meta();
    lose(&mut meta, DRIVE);
    assert!(meta.knows_lacks(DRIVE) && !meta.knows_lacks_for_good(DRIVE) && meta.may_lack());
    meta.begin(FOUND.plus(1));
    assert!(!meta.knows_lacks_for_good(DRIVE), "it is begun, and nowhere yet");
    let said = seats(&meta);
    meta.note_committed(FOUND.plus(1), said);
    assert!(meta.knows_lacks_for_good(DRIVE));
    // What that says of the drive before is not true of another one, nor of the same under another seating.
    for uuid in [uuid(9), uuid(1)] {
        let mut meta = meta.clone();
        seat(&mut meta, DRIVE, uuid, Holds::AllButWhatIsLacking);
        assert!(meta.knows_lacks(DRIVE) && !meta.knows_lacks_for_good(DRIVE));
        commit(&mut meta);
        assert!(meta.knows_lacks_for_good(DRIVE));
    }
    seat(&mut meta, DRIVE, uuid(9), Holds::Nothing);
    assert!(!meta.knows_lacks(DRIVE) && meta.may_lack(), "the old one may still come back");
    commit(&mut meta);
    assert!(!meta.may_lack());
}

#[test]
fn drive_is_back_and_reported_once_it_is_named() {
    let set = DriveSet::EMPTY.with(DRIVE);
    let mut meta = meta();
    assert!(meta.take_returned().is_empty());
    lose(&mut meta, DRIVE);
    commit(&mut meta);
    assert!(meta.is_named(DRIVE) && !meta.is_back(DRIVE), "it is not there");
    assert!(meta.take_returned().is_empty());
    let old = meta.id(DRIVE);
    seat(&mut meta, DRIVE, old.uuid, Holds::AllButWhatIsLacking);
    assert_eq!(meta.id(DRIVE), MemberId { seating: old.seating + 1, ..old });
    assert!(!meta.is_named(DRIVE) && !meta.is_back(DRIVE) && meta.take_returned().is_empty());
    commit(&mut meta);
    assert!(meta.is_named(DRIVE) && meta.is_back(DRIVE));
    assert_eq!((meta.take_returned(), meta.take_returned()), (set, DriveSet::EMPTY));
    commit(&mut meta);
    assert!(meta.take_returned().is_empty(), "it was reported");
    assert!(!meta.is_present_for_good(DRIVE));
    meta.set_present(DRIVE);
    assert!(!meta.is_back(DRIVE) && !meta.is_present_for_good(DRIVE));
    commit(&mut meta);
    assert!(meta.is_present_for_good(DRIVE));
    // Lost and back once more.
    lose(&mut meta, DRIVE);
    commit(&mut meta);
    assert!(meta.take_returned().is_empty());
    seat(&mut meta, DRIVE, old.uuid, Holds::AllButWhatIsLacking);
    commit(&mut meta);
    assert_eq!((meta.take_returned(), meta.id(DRIVE).seating), (set, old.seating + 2));
}

/// It was being caught up when the array ended.
#[test]
fn drive_that_was_found_being_caught_up_is_back_at_once() {
    let caught_up = |recorded: &mut Recorded| {
        let metadata = Arc::make_mut(&mut recorded.metadata);
        let mut lacks = Regions::none(Grid::new(STRIPES, 4));
        lacks.add(40);
        let member = &mut metadata.members[1];
        (member.membership, member.lacks) = (Membership::Filling { to: 0 }, Some(lacks));
    };
    let mut meta = found(caught_up);
    assert!(meta.is_back(DRIVE) && meta.spares(DRIVE, 0) && !meta.spares(DRIVE, 40));
    assert_eq!(meta.take_returned(), DriveSet::EMPTY.with(DRIVE));
    assert_eq!(meta.regions_left(DRIVE, 0), Some(1));
    let mut meta = found(|recorded| {
        caught_up(recorded);
        recorded.owns[1] = None;
    });
    assert!(!meta.is_back(DRIVE) && meta.take_returned().is_empty(), "it was not found");
    assert!(!meta.spares(DRIVE, 0) && meta.knows_lacks(DRIVE));
    seat(&mut meta, DRIVE, uuid(1), Holds::AllButWhatIsLacking);
    commit(&mut meta);
    assert!(meta.is_back(DRIVE) && meta.spares(DRIVE, 0), "it has come later");
    // What it lacks may have been said by what cannot be read.
    let meta = found(|recorded| {
        caught_up(recorded);
        recorded.may_lack_more = true;
    });
    assert_eq!(meta.regions_left(DRIVE, 0), Some(STRIPES / 4));
    assert!((0..STRIPES).all(|stripe| !meta.spares(DRIVE, stripe)));
}

#[test]
fn drive_that_is_lost_again_goes_on_lacking_what_it_did() {
    let mut meta = meta();
    lose(&mut meta, DRIVE);
    meta.miss(DRIVE, 9);
    commit(&mut meta);
    seat(&mut meta, DRIVE, uuid(1), Holds::AllButWhatIsLacking);
    commit(&mut meta);
    meta.set_filled(DRIVE, 100);
    lose(&mut meta, DRIVE);
    assert_eq!((meta.next_lacking(DRIVE, 0), meta.next_lacking(DRIVE, 12)), (Some(8), None));
    assert!(!meta.is_back(DRIVE));
    // It knows the generations that the drive has, whatever its seating.
    let Member { stored, given, .. } = meta.members()[1];
    assert_eq!((stored, given), (FOUND, FOUND));
}

#[test]
fn drive_that_is_replaced_says_nothing_of_the_new_one() {
    let mut meta = meta();
    lose(&mut meta, DRIVE);
    commit(&mut meta);
    seat(&mut meta, DRIVE, uuid(9), Holds::Nothing);
    let member = &meta.members()[1];
    assert_eq!(*member, Member::new(uuid(9), Membership::Filling { to: 0 }));
    // The new one is lost before it is named: it holds nothing of what the old one did not lack either.
    lose(&mut meta, DRIVE);
    commit(&mut meta);
    seat(&mut meta, DRIVE, uuid(9), Holds::AllButWhatIsLacking);
    commit(&mut meta);
    assert!(meta.is_back(DRIVE));
    assert!((0..STRIPES).all(|stripe| !meta.spares(DRIVE, stripe)));
    // The very drive from scratch.
    lose(&mut meta, DRIVE);
    seat(&mut meta, DRIVE, uuid(9), Holds::Nothing);
    assert!(!meta.knows_lacks(DRIVE) && meta.id(DRIVE).seating == 2);
}

#[test]
fn there_is_room_for_what_some_drives_lack() {
    let plain = settings("raid1:10,chunk=4KiB");
    let mut meta = Metastate::new(&plain);
    for at in 0..LACKS_MAX {
        assert!(meta.has_room(), "{at} are lost");
        lose(&mut meta, DriveIdx::from_usize(at));
        assert!(meta.knows_lacks(DriveIdx::from_usize(at)));
    }
    assert!(!meta.has_room());
    let more = DriveIdx::from_usize(LACKS_MAX);
    lose(&mut meta, more);
    assert!(!meta.knows_lacks(more) && !meta.members()[LACKS_MAX].is_present());
    // One that goes on lacking what it did takes no more room.
    commit(&mut meta);
    seat(&mut meta, DRIVE, uuid(1), Holds::AllButWhatIsLacking);
    lose(&mut meta, DRIVE);
    assert!(meta.knows_lacks(DRIVE) && !meta.has_room());
    seat(&mut meta, DRIVE, uuid(1), Holds::AllButWhatIsLacking);
    meta.set_present(DRIVE);
    assert!(meta.has_room());
    lose(&mut meta, DriveIdx::new(9));
    assert!(meta.knows_lacks(DriveIdx::new(9)));
    let mut study = Metastate::new(&Settings { recorded: None, ..plain });
    (0..9).for_each(|at| lose(&mut study, DriveIdx::new(at)));
    assert!((0..9).all(|at| study.knows_lacks(DriveIdx::new(at))), "memory has room for all");
}

#[test]
fn seats_are_found_by_what_a_generation_says_of_them() {
    let mut meta = meta();
    lose(&mut meta, DRIVE);
    let seats = seats(&meta);
    let id = MemberId::new(uuid(1));
    let lost = Membership::Lost { why: Why::Failed };
    assert_eq!(seats[1], CommittedSeat { id, membership: lost, has_lacks: true });
    assert_eq!(seats_where(&seats, |seat| seat.has_lacks), DriveSet::EMPTY.with(DRIVE));
    assert_eq!(seats_where(&seats, |_| true), DriveSet::first(3));
}

// Damaged sectors.

fn cell(drive: u8, lba: u64) -> Cell {
    Cell { drive: DriveIdx::new(drive), lba: Lba::new(lba) }
}

/// Y1.
#[test]
fn sectors_are_damaged_from_the_moment_that_they_are_found_so() {
    let mut meta = meta();
    assert!(!meta.is_damaged(cell(1, 10)) && !meta.wants_opening());
    let (drive, found) = (DRIVE, extent(10, 2));
    let event = meta.damage(drive, found);
    assert_eq!(event, Some(Event::Array(ArrayEvent::Damaged { drive, extent: found })));
    assert!(meta.is_damaged(cell(1, 11)) && !meta.is_damaged(cell(0, 11)));
    assert!(meta.wants_opening(), "the array must remember it");
    assert_eq!((meta.due(), meta.change()), (FOUND.plus(1), Change::Now));
    commit(&mut meta);
    assert_eq!(meta.damage(drive, extent(10, 1)), None, "it is on the list");
    assert!(meta.is_settled());
    let DamagedSummary { sectors, ranges, is_widened, is_kept } = meta.damaged_summary();
    assert_eq!((sectors, ranges), (Sectors::new(2), 1));
    assert!(!is_widened && is_kept);
}

/// Y2.
#[test]
fn what_was_written_leaves_the_list_and_is_answered_after_that_is_committed() {
    let mut meta = meta();
    meta.damage(DRIVE, extent(10, 2));
    commit(&mut meta);
    assert!(!meta.undamage([cell(1, 9), cell(2, 10)]) && meta.is_settled(), "none was on it");
    assert!(meta.undamage_for(4, [cell(1, 9)].into_iter()), "it need not wait");
    assert!(!meta.undamage_for(4, [cell(1, 10), cell(1, 9)].into_iter()));
    assert!(!meta.is_damaged(cell(1, 10)) && meta.is_damaged(cell(1, 11)));
    // What is damaged meanwhile is so again, although the operation looks once more.
    meta.begin(FOUND.plus(2));
    meta.damage(DRIVE, extent(10, 1));
    assert!(!meta.undamage_for(4, [cell(1, 10)].into_iter()));
    assert!(meta.is_damaged(cell(1, 10)));
    let seats = seats(&meta);
    meta.note_committed(FOUND.plus(2), seats);
    assert_eq!(meta.take_ready(), [4]);
    assert!(meta.undamage_for(4, [cell(1, 10)].into_iter()) && !meta.is_settled());
}

#[test]
fn read_of_a_damaged_range_is_reported_once() {
    let mut meta = meta();
    let (drive, found) = (DRIVE, extent(10, 2));
    meta.damage(drive, found);
    let event = Event::Array(ArrayEvent::DamagedRead { drive, extent: found });
    assert_eq!(meta.note_damaged_read(cell(1, 11)), Some(event));
    assert_eq!(meta.note_damaged_read(cell(1, 10)), None);
    assert_eq!(meta.note_damaged_read(cell(1, 12)), None, "it is not damaged");
    meta.damage(drive, extent(12, 1));
    assert!(meta.note_damaged_read(cell(1, 12)).is_some(), "another range");
}
