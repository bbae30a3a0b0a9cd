//! The checksum that a sector should have, by what lies on its drive: its tag sector, and the list of its drive.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use levelhead_units::Lba;

use crate::meta::superblock::Uuid;
use crate::tags::list::{Entry, ListSector, Owner, lists_in};
use crate::tags::sector::TagSector;

/// The list of a drive.
#[derive(Clone, Debug, Default)]
pub struct DriveList {
    entries: BTreeMap<Lba, Entry>,
    /// What it says of tag sectors that are to be read back, by the first sector of their group.
    tags: BTreeMap<Lba, Entry>,
}

/// The checksum of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The sector has this checksum.
    Sum(u32),
    /// A sector with this checksum is right, one with another may have been written since (TG9).
    Hint(u32),
    /// The sector has no checksum.
    Unknown,
}

impl DriveList {
    /// The list that a start takes: the newest one of which all sectors are there, and what there is of a newer one. `slots` are the
    /// bytes of both halves of the place for lists; an unreadable sector is one of zeroes.
    pub fn of(slots: &[u8], array: Uuid, member: Uuid) -> Self {
        let owner = Owner { array, member };
        let found = lists_in(slots);
        let half = (found.len() / 2).max(1);
        let halves = found.chunks(half).take(2);
        let mut lists: Vec<Vec<&ListSector>> = halves.filter_map(|of| list_in(of, owner)).collect();
        lists.sort_by_key(|list| Reverse(list.first().map(|first| first.generation)));
        let is_whole = |list: &Vec<&ListSector>| {
            let sectors = list.first().map_or(0, |first| first.sectors);
            (0..sectors).eq(list.iter().map(|sector| sector.index))
        };
        let whole = lists.iter().position(is_whole);
        let newer = lists.first().filter(|_| whole != Some(0));
        let counted = whole.and_then(|at| lists.get(at)).into_iter().chain(newer).flatten();
        let all = counted.flat_map(|sector| &sector.entries);
        let (tags, entries) = all.map(|entry| (entry.lba, *entry)).partition(|(_, of)| of.is_tag);
        Self { entries, tags }
    }

    /// The checksum of sector `lba`, as the layout counts it, which is sector `offset` (below 64) of its group. `tag` is the tag sector
    /// of the group, if it is one. One that is older than the list says counts as none (TG8).
    pub fn expected(&self, tag: Option<&TagSector>, lba: Lba, offset: usize) -> Expected {
        let first = Lba::new(lba.get().saturating_sub(offset as u64));
        let said = self.tags.get(&first);
        let is_met = |tag: &&TagSector| {
            said.is_none_or(|of| of.since <= tag.list || of.sum == tag.sums.digest())
        };
        let tag = tag.filter(is_met);
        let listed = self.entries.get(&lba);
        let newer = tag.and_then(|tag| listed.filter(|entry| entry.since > tag.list));
        match (newer, tag.and_then(|tag| tag.sums.get(offset)), listed) {
            (Some(entry), _, _) => Expected::Sum(entry.sum),
            (None, Some(sum), _) => Expected::Sum(sum),
            (None, None, Some(entry)) => Expected::Hint(entry.sum),
            (None, None, None) => Expected::Unknown,
        }
    }
}

/// What there is of the list whose first sector lies at the beginning of a half.
fn list_in(half: &[Option<ListSector>], owner: Owner) -> Option<Vec<&ListSector>> {
    let head = half.first()?.as_ref().filter(|head| head.owner == owner)?;
    let sectors = half.iter().take(head.sectors as usize).flatten();
    let is_of_list =
        |sector: &&ListSector| sector.owner == owner && sector.generation == head.generation;
    Some(sectors.filter(is_of_list).collect())
}

#[cfg(test)]
mod tests {
    use levelhead_units::{DriveIdx, SECTOR_SIZE};

    use super::*;
    use crate::tags::list::ENTRIES;
    use crate::tags::sector::Sums;

    const ARRAY: Uuid = Uuid([7; 16]);
    const MEMBER: Uuid = Uuid([8; 16]);

    fn entries(since: u64, sum: u32) -> Vec<Entry> {
        (0..ENTRIES as u64 + 3)
            .map(|at| Entry { lba: Lba::new(at), is_tag: false, since, sum })
            .collect()
    }

    /// A half of three sectors with such a list; `lacking` is a sector of it that is not there.
    fn half(generation: u64, sum: u32, lacking: Option<usize>) -> Vec<u8> {
        let owner = Owner { array: ARRAY, member: MEMBER };
        let list = ListSector::of(owner, generation, &entries(generation, sum));
        let mut bytes: Vec<u8> = list.iter().flat_map(ListSector::encode).collect();
        bytes.resize(3 * SECTOR_SIZE, 0);
        lacking.iter().for_each(|at| bytes[at * SECTOR_SIZE] ^= 1);
        bytes
    }

    #[test]
    fn newest_whole_list_counts_and_what_there_is_of_a_newer_one() {
        let last = ENTRIES as u64;
        let of = |slots: &[Vec<u8>; 2], member: Uuid| {
            let list = DriveList::of(&slots.concat(), ARRAY, member);
            [0, last].map(|lba| list.expected(None, Lba::new(lba), 0))
        };
        let hints = |sums: [u32; 2]| sums.map(Expected::Hint);
        assert_eq!(of(&[half(5, 1, None), half(6, 2, None)], MEMBER), hints([2, 2]));
        assert_eq!(of(&[half(7, 1, None), half(6, 2, None)], MEMBER), hints([1, 1]));
        assert_eq!(of(&[half(5, 1, None), half(6, 2, Some(1))], MEMBER), hints([2, 1]));
        assert_eq!(of(&[half(5, 1, None), half(6, 2, Some(0))], MEMBER), hints([1, 1]));
        let part = [Expected::Hint(1), Expected::Unknown];
        assert_eq!(of(&[half(5, 1, Some(1)), half(4, 2, Some(1))], MEMBER), part);
        assert_eq!(of(&[half(5, 1, None), half(6, 2, None)], ARRAY), [Expected::Unknown; 2]);
        assert!(DriveList::of(&[], ARRAY, MEMBER).entries.is_empty());
    }

    #[test]
    fn tag_sector_counts_unless_the_list_is_newer() {
        let slots = [half(5, 9, None), vec![0; 3 * SECTOR_SIZE]].concat();
        let list = DriveList::of(&slots, ARRAY, MEMBER);
        let mut sums = Sums::NONE;
        sums.set(1, 3);
        let tag = |list| TagSector { array: ARRAY, drive: DriveIdx::new(0), group: 0, list, sums };
        let expected = |tag: &TagSector| {
            [0, 1, 300].map(|lba| list.expected(Some(tag), Lba::new(lba), lba as usize % 64))
        };
        assert_eq!(expected(&tag(4)), [Expected::Sum(9), Expected::Sum(9), Expected::Unknown]);
        assert_eq!(expected(&tag(5)), [Expected::Hint(9), Expected::Sum(3), Expected::Unknown]);
    }

    /// TG8: of a long write that was lost with its tag sector the one before counts as none.
    #[test]
    fn tag_sector_that_is_older_than_the_list_says_counts_as_none() {
        let owner = Owner { array: ARRAY, member: MEMBER };
        let mut right = Sums::NONE;
        right.set(1, 3);
        let entry = Entry { lba: Lba::new(64), is_tag: true, since: 5, sum: right.digest() };
        let list = ListSector::of(owner, 5, &[entry]);
        let bytes: Vec<u8> = list.iter().flat_map(ListSector::encode).collect();
        let list = DriveList::of(&[bytes, vec![0; SECTOR_SIZE]].concat(), ARRAY, MEMBER);
        let mut older = right;
        older.set(1, 4);
        for (sums, number, expected) in [
            (right, 4, Expected::Sum(3)),
            (older, 4, Expected::Unknown),
            (older, 5, Expected::Sum(4)),
        ] {
            let drive = DriveIdx::new(0);
            let tag = TagSector { array: ARRAY, drive, group: 1, list: number, sums };
            assert_eq!(list.expected(Some(&tag), Lba::new(65), 1), expected);
        }
    }
}
