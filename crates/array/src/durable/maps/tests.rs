use levelhead_units::Sectors;

use super::*;

const DRIVE: DriveIdx = DriveIdx::new(1);

/// 300 stripes in regions of four.
fn missed() -> Missed {
    Missed { maps: vec![None, None, None], slots: 2, region_min: 16, ..Missed::default() }
}

fn layout() -> Layout {
    Layout::new("raid5:2+1,chunk=16KiB".parse().unwrap(), Sectors::new(1_200))
}

fn loss(since: u64, held: u64) -> Loss {
    Loss { since, last: since, held }
}

/// All pages that are to be written are safe.
fn make_safe(missed: &mut Missed) {
    for (page, change) in missed.pages() {
        missed.note_safe(page, change);
    }
}

#[test]
fn a_drive_that_is_back_holds_what_is_not_on_its_map() {
    let mut missed = missed();
    missed.begin(&layout(), DRIVE, loss(7, u64::MAX));
    missed.mark(DRIVE, 9);
    missed.mark_all(DRIVE, 250..261);
    assert!(!missed.spares(DRIVE, 0), "it is not back");
    missed.begin_return(DRIVE);
    let holds: Vec<u64> = (0..300).filter(|&stripe| missed.spares(DRIVE, stripe)).collect();
    let lacks = |stripe: &u64| (8..12).contains(stripe) || (248..264).contains(stripe);
    assert_eq!(holds, (0..300).filter(|stripe| !lacks(stripe)).collect::<Vec<u64>>());
    assert_eq!(missed.regions_left(DRIVE, 0), Some(5));
    assert_eq!(missed.regions_left(DRIVE, 252), Some(3));
    assert_eq!((missed.next(DRIVE, 0), missed.end_of_run(DRIVE, 8)), (Some(8), Some(12)));
    assert_eq!((missed.next(DRIVE, 10), missed.next(DRIVE, 12)), (Some(10), Some(248)));
    assert_eq!((missed.next(DRIVE, 264), missed.end_of_run(DRIVE, 248)), (None, Some(264)));
    missed.end_return(DRIVE);
    assert!(!missed.spares(DRIVE, 0) && missed.regions_left(DRIVE, 0).is_none());
}

#[test]
fn what_a_drive_did_not_hold_when_it_was_lost_is_missed_from_the_start() {
    let mut missed = missed();
    missed.begin(&layout(), DRIVE, loss(7, 290));
    missed.begin_return(DRIVE);
    assert_eq!((missed.next(DRIVE, 0), missed.regions_left(DRIVE, 0)), (Some(288), Some(3)));
}

#[test]
fn a_change_is_safe_when_its_page_is_and_a_map_is_kept_when_its_head_is_that_comes_last() {
    let mut missed = missed();
    missed.begin(&layout(), DRIVE, loss(7, u64::MAX));
    let first = missed.mark(DRIVE, 9);
    assert!(first > 0 && !missed.is_safe(first) && missed.is_safe(0));
    assert_eq!(
        missed.mark(DRIVE, 10),
        first,
        "a second write to the region waits for the same change"
    );
    let pages = missed.pages();
    assert_eq!(pages.len(), 1, "no head yet");
    let later = missed.mark(DRIVE, 100);
    missed.note_safe(pages[0].0, pages[0].1);
    assert!(missed.is_safe(first) && !missed.is_safe(later), "what came later is not written");
    assert!(missed.take_become_safe() && !missed.take_become_safe());
    make_safe(&mut missed);
    assert!(missed.is_safe(later) && missed.kept().is_empty() && !missed.is_at_rest());
    assert_eq!(missed.mark(DRIVE, 9), 0, "it is safe already");
    make_safe(&mut missed);
    assert!(missed.kept().contains(DRIVE) && missed.is_at_rest() && missed.take_become_kept());
}

#[test]
fn a_slot_is_used_again_when_the_books_say_that_its_map_is_not_kept() {
    let mut missed = missed();
    let slot = |missed: &Missed, drive: u8| missed.map(DriveIdx::new(drive)).map(|map| map.slot);
    missed.begin(&layout(), DriveIdx::new(0), loss(7, u64::MAX));
    missed.drop_map(DriveIdx::new(0));
    missed.begin(&layout(), DriveIdx::new(1), loss(8, u64::MAX));
    missed.begin(&layout(), DriveIdx::new(2), loss(8, u64::MAX));
    assert_eq!((slot(&missed, 1), slot(&missed, 2)), (Some(1), None));
    missed.note_recorded([DriveIdx::new(1)].into_iter().collect());
    missed.begin(&layout(), DriveIdx::new(2), loss(8, u64::MAX));
    assert_eq!(slot(&missed, 2), Some(0));
}

#[test]
fn a_drive_that_is_lost_again_keeps_its_map_and_its_head_says_when() {
    let mut missed = missed();
    missed.begin(&layout(), DRIVE, loss(7, u64::MAX));
    missed.mark(DRIVE, 9);
    make_safe(&mut missed);
    make_safe(&mut missed);
    missed.begin(&layout(), DRIVE, loss(12, u64::MAX));
    assert_eq!((missed.lost_at(DRIVE), missed.is_at_rest()), (Some(12), false));
    make_safe(&mut missed);
    assert!(missed.is_at_rest());
    assert_eq!(missed.map(DRIVE).unwrap().key.since, 7);
}

#[test]
fn the_map_of_a_drive_that_is_replaced_goes_on_until_the_books_name_the_new_one() {
    let mut missed = missed();
    missed.begin(&layout(), DRIVE, loss(7, u64::MAX));
    make_safe(&mut missed);
    make_safe(&mut missed);
    assert!(missed.kept().contains(DRIVE) && missed.end_when_named(DRIVE));
    assert!(missed.kept().is_empty(), "no entry from now on says that it is kept");
    missed.note_named(DriveSet::EMPTY.with(DRIVE));
    assert_ne!(missed.mark(DRIVE, 9), 0, "the old one misses this if it comes back");
    assert!(!missed.spares(DRIVE, 100), "the new one holds nothing");
    missed.note_named(DriveSet::EMPTY);
    assert!(!missed.has(DRIVE) && missed.take_become_safe());
    // The new one is lost before it is named: it holds nothing of what the old one did not miss either.
    missed.note_recorded(DriveSet::EMPTY);
    missed.begin(&layout(), DRIVE, loss(9, u64::MAX));
    missed.end_when_named(DRIVE);
    missed.begin(&layout(), DRIVE, loss(12, 0));
    missed.begin_return(DRIVE);
    assert!((0..300).all(|stripe| !missed.spares(DRIVE, stripe)));
}
