//! What memory has of checksums, asked without an array.

use levelhead_block::BufId;
use levelhead_units::{DriveIdx, Extent, Lba, Sectors};

use super::list::Entry;
use super::sector::{NO_TAG, Sums};
use super::state::{Next, Tags};
use crate::names::SubId;
use crate::shape::{Area, Groups};

const DRIVE: DriveIdx = DriveIdx::new(0);

/// Groups of 64 sectors.
fn tags() -> (Tags, Area) {
    let groups = Groups::of_chunk(Sectors::new(16));
    let extent = Extent::new(Lba::ZERO, Sectors::new(1 << 16));
    (Tags::new(groups, 2, 804, false), Area::filling(extent, Some(groups)))
}

fn group(at: u64) -> Extent {
    Extent::new(Lba::new(64 * at), Sectors::new(64))
}

/// A long write of a whole group has ended; its tag sector is with it.
fn carry(tags: &mut Tags, area: &Area, at: u64) -> SubId {
    let sub = SubId(at);
    tags.announce(DRIVE, sub, group(at), &[at]);
    let going = tags.send_with(area, DRIVE, sub, false).expect("it was announced");
    assert!(tags.begin_carry(DRIVE, sub, None, vec![5; 64], &going));
    let carriage = tags.end_carry(DRIVE, sub, false).expect("it has begun");
    assert!(carriage.sums.is_empty());
    sub
}

fn flush(tags: &mut Tags) {
    tags.begin_flush(DRIVE);
    tags.end_flush(DRIVE);
    tags.settle(DRIVE);
}

/// Returns the entries of a list that is written.
fn list(tags: &mut Tags) -> Vec<Entry> {
    let listed = tags.new_list(DRIVE, 1).expect("it has room");
    tags.begin_list(DRIVE, SubId(999), BufId::Own(9), &listed);
    tags.end_list(DRIVE, SubId(999)).expect("it was begun");
    listed.entries
}

/// The oldest of what is to be read back is believed, and forgotten like what was read.
#[test]
fn long_writes_take_no_more_memory_than_there_is() {
    let (mut tags, area) = tags();
    tags.most = 16;
    for at in 0..900 {
        carry(&mut tags, &area, at);
        flush(&mut tags);
        list(&mut tags);
        let of = &mut tags.drives[DRIVE.as_usize()];
        of.forget_unchecked(64, 8);
        assert!(of.unchecked.len() <= 64 && of.groups.len() <= 64 + 16 + 8, "{at}");
        assert!(of.unchecked.contains_key(&at));
    }
    assert!(!tags.is_unchecked(DRIVE, 0));
}

/// What another one decides about is not sure before its list or tag sector is written.
#[test]
fn what_a_carry_wrote_is_in_its_old_order_when_that_is_given_up() {
    let (mut tags, area) = tags();
    let before = tags.orders();
    let sub = carry(&mut tags, &area, 3);
    let after = tags.orders();
    assert!(tags.says_before(DRIVE, before[0]) && !tags.says_before(DRIVE, after[0]));
    tags.give_up_carry(DRIVE, sub);
    assert!(!tags.says_before(DRIVE, after[0]));
    assert!(!tags.is_clean_or_waits(DRIVE, 77));
    let listed = tags.new_list(DRIVE, 1).expect("it has room");
    tags.begin_list(DRIVE, SubId(901), BufId::Own(1), &listed);
    let (_, safe) = tags.end_list(DRIVE, SubId(901)).expect("it was begun");
    assert_eq!(safe, [77]);
    assert!(tags.says_before(DRIVE, after[0]));
}

/// A tag sector that is read back and is none is written at once, and a list is not enough (TG6).
#[test]
fn tag_sector_that_is_not_there_is_written_before_anything_counts() {
    let (mut tags, area) = tags();
    carry(&mut tags, &area, 3);
    flush(&mut tags);
    assert_eq!(tags.next(DRIVE, Lba::ZERO, true, |_| 64), Some(Next::Read(3)));
    tags.begin(DRIVE, SubId(901), Next::Read(3), BufId::Own(1));
    assert_eq!(tags.end_tag_read(DRIVE, SubId(901), None).lost, Some(3));
    assert!(tags.has_bad(DRIVE));
    let after = tags.orders();
    // Another group makes a list worth while.
    tags.note_written(DRIVE, Lba::new(700));
    tags.note_sum(DRIVE, Lba::new(700), 9);
    let listed = tags.new_list(DRIVE, 1).expect("it has room");
    tags.begin_list(DRIVE, SubId(902), BufId::Own(2), &listed);
    tags.end_list(DRIVE, SubId(902)).expect("it was begun");
    assert!(!tags.says_before(DRIVE, after[0]));
    assert!(tags.new_list(DRIVE, 1).is_none(), "lists would follow each other without end");
    let next = tags.next(DRIVE, Lba::ZERO, false, |_| 64).expect("it is bad");
    assert!(matches!(&next, Next::Write(3, sums) if sums.count() == 64));
    tags.begin(DRIVE, SubId(903), next, BufId::Own(3));
    assert!(!tags.says_before(DRIVE, after[0]));
    tags.end_write(DRIVE, SubId(903)).expect("it was begun");
    assert!(tags.says_before(DRIVE, after[0]));
}

/// What only a list says is kept where the tag sector is none: it proves, and what differs may be newer (TG9).
#[test]
fn entry_of_a_list_proves_where_the_tag_sector_says_nothing() {
    for is_first in [true, false] {
        let (mut tags, _) = tags();
        let entries = [(70, 3), (71, 4)].map(|(lba, sum)| Entry {
            lba: Lba::new(lba),
            is_tag: false,
            since: 1,
            sum,
        });
        if is_first {
            tags.load(DRIVE, 2, 0, &entries);
        }
        tags.note_tag(DRIVE, 1, NO_TAG.0, NO_TAG.1);
        if !is_first {
            tags.load(DRIVE, 2, 0, &entries);
        }
        let hints = |tags: &Tags| [70, 71, 72].map(|lba| tags.hint(DRIVE, Lba::new(lba)));
        assert_eq!(hints(&tags), [Some(3), Some(4), None]);
        assert_eq!(tags.get(DRIVE, Lba::new(70)), None);
        // One is written, and then its tag sector: that says nothing of the other one.
        tags.note_written(DRIVE, Lba::new(70));
        assert_eq!(hints(&tags), [None, Some(4), None]);
        tags.note_sum(DRIVE, Lba::new(70), 8);
        let next = tags.next(DRIVE, Lba::ZERO, false, |_| 64).expect("it is bad");
        tags.begin(DRIVE, SubId(1), next, BufId::Own(1));
        tags.end_write(DRIVE, SubId(1)).expect("it was begun");
        assert_eq!(hints(&tags), [None, Some(4), None]);
        // A later list has it, with a number that never counts.
        tags.note_written(DRIVE, Lba::new(700));
        tags.note_sum(DRIVE, Lba::new(700), 9);
        let listed = tags.new_list(DRIVE, 1).expect("it has room");
        let last = Entry { lba: Lba::new(71), is_tag: false, since: 0, sum: 4 };
        assert_eq!((listed.entries.len(), listed.entries.last()), (2, Some(&last)));
    }
}

/// A tag sector that says so counts, and not what an older list said.
#[test]
fn entry_of_a_list_is_no_hint_where_the_tag_sector_says_a_checksum() {
    let (mut tags, _) = tags();
    let mut sums = Sums::NONE;
    sums.set(6, 5);
    tags.note_tag(DRIVE, 1, sums, 2);
    tags.load(DRIVE, 2, 0, &[Entry { lba: Lba::new(70), is_tag: false, since: 2, sum: 3 }]);
    assert_eq!((tags.get(DRIVE, Lba::new(70)), tags.hint(DRIVE, Lba::new(70))), (Some(5), None));
}

/// What was written with its data is safe once it was read back, or a list says what it should be (TG8).
#[test]
fn long_write_is_safe_when_its_tag_sector_was_read_back_or_is_listed() {
    for is_listed in [true, false] {
        let (mut tags, area) = tags();
        carry(&mut tags, &area, 3);
        let after = tags.orders();
        flush(&mut tags);
        assert!(!tags.says_before(DRIVE, after[0]), "the drive may have lost it");
        if is_listed {
            let entries = list(&mut tags);
            assert!(matches!(entries[..], [Entry { is_tag: true, since: 1, .. }]));
        } else {
            let found = *tags.drives[DRIVE.as_usize()].groups[&3].tag.clone().expect("it is known");
            tags.begin(DRIVE, SubId(901), Next::Read(3), BufId::Own(1));
            assert_eq!(tags.end_tag_read(DRIVE, SubId(901), Some((found, 0))).lost, None);
        }
        assert!(tags.says_before(DRIVE, after[0]));
    }
}

/// A tag sector that is not what a list says it should be is none; one that was written since is newer than the list.
#[test]
fn list_says_after_a_restart_what_a_tag_sector_should_be() {
    let (mut tags, area) = tags();
    carry(&mut tags, &area, 3);
    flush(&mut tags);
    let entries = list(&mut tags);
    let right = *tags.drives[DRIVE.as_usize()].groups[&3].tag.clone().expect("it is known");
    let mut other = right;
    other.set(9, 1);
    for (sums, list, is_there) in
        [(right, 0, true), (other, 0, false), (other, 1, true), (NO_TAG.0, NO_TAG.1, false)]
    {
        for is_read_before in [false, true] {
            let (mut tags, _) = self::tags();
            let mut said = true;
            if is_read_before {
                said &= tags.note_tag(DRIVE, 3, sums, list);
            }
            tags.load(DRIVE, 1, 0, &entries);
            if !is_read_before {
                assert!(tags.is_unchecked(DRIVE, 3));
                said &= tags.note_tag(DRIVE, 3, sums, list);
                assert_eq!(said, is_there);
            }
            let known = tags.get(DRIVE, Lba::new(3 * 64 + 2));
            assert_eq!(known.is_some(), is_there, "{list}");
            assert_eq!(tags.has_bad(DRIVE), !is_there);
            if is_there {
                assert!(!tags.is_unchecked(DRIVE, 3));
                continue;
            }
            // Until one that says nothing is durable, lists say that the one there does not count.
            let says = |tags: &mut Tags| {
                tags.note_written(DRIVE, Lba::new(700));
                tags.note_sum(DRIVE, Lba::new(700), 9);
                self::list(tags).iter().filter(|entry| entry.is_tag).count()
            };
            assert_eq!(says(&mut tags), 1);
            let next = tags.next(DRIVE, Lba::ZERO, false, |_| 64).expect("it is bad");
            assert!(matches!(&next, Next::Write(3, sums) if sums.count() == 0));
            tags.begin(DRIVE, SubId(5), next, BufId::Own(1));
            assert_eq!(says(&mut tags), 1);
            tags.end_write(DRIVE, SubId(5)).expect("it was begun");
            assert_eq!(says(&mut tags), 0);
            assert!(!tags.has_bad(DRIVE) && !tags.is_unchecked(DRIVE, 3));
        }
    }
}

/// A list goes on saying what it says of a group whose tag sector is none, and no list is written for that alone.
#[test]
fn no_list_is_written_for_a_bad_tag_sector() {
    let (mut tags, _) = tags();
    for lba in [70, 71] {
        tags.note_written(DRIVE, Lba::new(lba));
        tags.note_sum(DRIVE, Lba::new(lba), 3);
        if lba == 70 {
            assert_eq!(list(&mut tags).len(), 1);
            tags.note_tag(DRIVE, 1, NO_TAG.0, NO_TAG.1);
        }
    }
    assert!(tags.new_list(DRIVE, 1).is_none());
}

/// TG7: what a list says of a tag sector is on the next one, whatever was written of its group meanwhile.
#[test]
fn short_write_takes_nothing_off_a_list() {
    let (mut tags, area) = tags();
    carry(&mut tags, &area, 3);
    flush(&mut tags);
    assert_eq!(list(&mut tags).len(), 1);
    tags.note_written(DRIVE, Lba::new(3 * 64 + 5));
    tags.note_sum(DRIVE, Lba::new(3 * 64 + 5), 9);
    let entries = list(&mut tags);
    assert_eq!(entries.iter().filter(|entry| entry.is_tag).count(), 1);
    assert_eq!(entries.len(), 2);
}

/// What a list said of a group whose tag sector turns out to be none is kept as hints, and nothing waits for it.
#[test]
fn nothing_waits_for_a_bad_tag_sector_of_which_nothing_was_written() {
    let (mut tags, _) = tags();
    tags.load(DRIVE, 2, 0, &[Entry { lba: Lba::new(70), is_tag: false, since: 1, sum: 3 }]);
    tags.relist(DRIVE);
    assert!(!tags.is_clean());
    tags.note_tag(DRIVE, 1, NO_TAG.0, NO_TAG.1);
    assert!(tags.is_clean() && tags.hint(DRIVE, Lba::new(70)).is_some());
}

/// A client's read brings a tag sector while another command reads it back: it is not what a list says it should be, and stays so when
/// that ends, which finds the same.
#[test]
fn tag_sector_that_two_reads_bring_is_refuted_once_for_all() {
    let (mut tags, area) = tags();
    carry(&mut tags, &area, 3);
    flush(&mut tags);
    let entries = list(&mut tags);
    let mut old = Sums::NONE;
    old.set(2, 1);
    let (mut tags, _) = self::tags();
    tags.load(DRIVE, 1, 0, &entries);
    tags.begin(DRIVE, SubId(7), Next::Read(3), BufId::Own(1));
    assert!(!tags.note_tag(DRIVE, 3, old, 0));
    assert_eq!(tags.end_tag_read(DRIVE, SubId(7), Some((old, 0))).lost, None);
    assert_eq!(tags.get(DRIVE, Lba::new(3 * 64 + 2)), None);
    assert!(tags.has_bad(DRIVE) && tags.is_unchecked(DRIVE, 3));
    tags.drives[DRIVE.as_usize()].forget_unchecked(0, 1);
    assert!(tags.is_unchecked(DRIVE, 3), "it is not believed, however many others there are");
    let next = tags.next(DRIVE, Lba::ZERO, false, |_| 64);
    assert!(matches!(next, Some(Next::Write(3, sums)) if sums.count() == 0));
}

/// Memory knows that a group has no tag sector: a scrub that finds none, or another one than the read before it, has none written.
#[test]
fn tag_sector_that_is_none_is_not_confirmed() {
    let (mut tags, _) = tags();
    tags.note_tag(DRIVE, 1, NO_TAG.0, NO_TAG.1);
    let mut sums = Sums::NONE;
    sums.set(6, 5);
    for (sums, list) in [NO_TAG, (sums, 0)] {
        tags.confirm(DRIVE, 1, &sums, list);
        assert_eq!(tags.next(DRIVE, Lba::ZERO, true, |_| 64), None);
    }
    tags.note_tag(DRIVE, 2, sums, 0);
    tags.confirm(DRIVE, 2, &sums, 0);
    assert_eq!(tags.next(DRIVE, Lba::ZERO, true, |_| 64), None);
    tags.confirm(DRIVE, 2, &Sums::NONE, 0);
    let next = tags.next(DRIVE, Lba::ZERO, true, |_| 64);
    assert!(matches!(next, Some(Next::Write(2, sums)) if sums.get(6) == Some(5)));
}
