//! Whether the sectors of a drive have their checksums: what its tag sectors and its list say, held against what was read.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use levelhead_array::TagSector;
use levelhead_array::journal::record::checksums;
use levelhead_array::offline::{DriveList, Expected};
use levelhead_block::Buf;
use levelhead_units::{DriveIdx, Extent, Lba, Sectors};

use super::reading::{Proof, Stretch, read_sectors};
use super::window::Window;
use super::{Offline, OfflineDrive};

/// The sectors of an array with checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SumsChecked {
    /// Those that were compared with their checksums, among them those whose content the journal has.
    pub compared: u64,
    /// Those of them that do not match.
    pub corrupt: u64,
    /// Those that have no checksum.
    pub without: u64,
    /// Tag sectors without which some of these have none: they are no tag sectors, or their drives do not return them.
    pub bad_tags: u64,
}

impl SumsChecked {
    /// Counts the sectors of which this is said, and those of these groups that have some without a checksum.
    pub(crate) fn count(&mut self, proofs: &[Proof], bad_tags: &[Range<usize>]) {
        for proof in proofs {
            match proof {
                Proof::Match | Proof::Corrupt(_) => self.compared += 1,
                Proof::Unknown => self.without += 1,
                Proof::Exempt | Proof::Unread(_) => {}
            }
            self.corrupt += u64::from(matches!(proof, Proof::Corrupt(_)));
        }
        let bad = bad_tags.iter().filter_map(|group| proofs.get(group.clone()));
        self.bad_tags += bad.filter(|group| group.contains(&Proof::Unknown)).count() as u64;
    }

    /// Adds what was counted elsewhere.
    pub(crate) fn add(&mut self, other: Self) {
        self.compared += other.compared;
        self.corrupt += other.corrupt;
        self.without += other.without;
        self.bad_tags += other.bad_tags;
    }
}

/// The checksums of a drive, as its windows are read one after the other.
pub(crate) struct DriveSums<'a> {
    array: &'a Offline,
    drive: DriveIdx,
    of: &'a OfflineDrive,
    list: DriveList,
    /// The tag sectors of the groups that the last window has sectors of; nothing for each that is none.
    tags: BTreeMap<u64, Option<TagSector>>,
    /// What is read in one go, tag sectors with data.
    both: Buf,
}

/// A sector of a drive that is read for a window.
#[derive(Clone, Copy)]
enum Wanted {
    /// The sector with this index.
    Data(usize),
    /// The tag sector of this group.
    Tag(u64),
}

impl<'a> DriveSums<'a> {
    /// Reads the list of a drive; nothing where the array has no checksums.
    pub(crate) fn begin(array: &'a Offline, drive: DriveIdx, of: &'a OfflineDrive) -> Option<Self> {
        array.area.groups()?;
        let place = of.own.list().unwrap_or(Extent::new(Lba::ZERO, Sectors::ZERO));
        let mut slots = Buf::zeroed(place.sectors);
        read_sectors(&of.opened, place.lba, slots.as_mut_slice(), |_| {});
        let member = array.metadata.members[drive.as_usize()].id.uuid;
        let list = DriveList::of(slots.as_slice(), array.metadata.array, member);
        let (tags, both) = (BTreeMap::new(), Buf::zeroed(Sectors::new(1)));
        Some(Self { array, drive, of, list, tags, both })
    }

    /// Reads what lies in a window, together with its tag sectors.
    pub(crate) fn read_window(&mut self, window: &Window, mut buf: Buf) -> Stretch {
        let area = &self.array.area;
        let mut wanted: BTreeMap<Lba, Wanted> = BTreeMap::new();
        let mut groups: BTreeMap<u64, Range<usize>> = BTreeMap::new();
        for index in 0..window.sectors().as_usize() {
            let lba = window.lba(index);
            let at = area.on_drive(Extent::new(lba, Sectors::new(1))).lba;
            wanted.insert(at, Wanted::Data(index));
            let Some(tag) = area.tag_of(lba) else { continue };
            groups.entry(tag.group).or_insert(index..index).end = index + 1;
            if !self.tags.contains_key(&tag.group) {
                wanted.insert(tag.lba, Wanted::Tag(tag.group));
            }
        }
        self.tags.retain(|group, _| groups.contains_key(group));
        let is_old: BTreeSet<u64> = self.tags.keys().copied().collect();
        let mut bad = BTreeSet::new();
        let wanted: Vec<(Lba, Wanted)> = wanted.into_iter().collect();
        for run in wanted.chunk_by(|(one, _), (next, _)| *one + Sectors::new(1) == *next) {
            self.read_run(run, &mut buf, &mut bad);
        }
        let is_bad = |group: &u64| !is_old.contains(group) && self.tag(*group).is_none();
        groups.retain(|group, _| is_bad(group));
        let proofs = self.proofs(window, &buf, &bad);
        let bad_tags = groups.into_values().collect();
        Stretch { buf, bad, proofs, bad_tags }
    }

    /// Reads neighbouring sectors.
    fn read_run(&mut self, run: &[(Lba, Wanted)], buf: &mut Buf, bad: &mut BTreeSet<usize>) {
        let Some((first, _)) = run.first() else { return };
        if self.both.sectors().as_usize() < run.len() {
            self.both = Buf::zeroed(Sectors::new(run.len() as u64));
        }
        let mut gone = BTreeSet::new();
        let both = self.both.part_mut(0, run.len());
        read_sectors(&self.of.opened, *first, both, |at| _ = gone.insert(at));
        for (at, (_, wanted)) in run.iter().enumerate() {
            let (bytes, is_given) = (self.both.part(at, 1), !gone.contains(&at));
            match *wanted {
                Wanted::Data(index) if is_given => buf.part_mut(index, 1).copy_from_slice(bytes),
                Wanted::Data(index) => _ = bad.insert(index),
                Wanted::Tag(group) => {
                    let name = (self.array.metadata.array, self.drive, group);
                    let is_own = |tag: &TagSector| (tag.array, tag.drive, tag.group) == name;
                    let tag = is_given.then(|| TagSector::decode(bytes)).flatten();
                    self.tags.insert(group, tag.filter(is_own));
                }
            }
        }
    }

    /// The tag sector of a group of the window, if it is one.
    fn tag(&self, group: u64) -> Option<&TagSector> {
        self.tags.get(&group)?.as_ref()
    }

    fn proofs(&self, window: &Window, buf: &Buf, bad: &BTreeSet<usize>) -> Vec<Proof> {
        let sums = checksums(std::iter::once(buf.as_slice())).into_iter().enumerate();
        let proof = |(index, sum): (usize, u32)| {
            let lba = window.lba(index);
            let Some(place) = self.array.area.tag_of(lba) else { return Proof::Unknown };
            let offset = (lba - place.covers.lba).as_usize();
            match self.list.expected(self.tag(place.group), lba, offset) {
                Expected::Sum(expected) if bad.contains(&index) => Proof::Unread(expected),
                Expected::Hint(_) | Expected::Unknown if bad.contains(&index) => Proof::Exempt,
                Expected::Sum(expected) if expected != sum => Proof::Corrupt(expected),
                Expected::Hint(hint) if hint != sum => Proof::Unknown,
                Expected::Sum(_) | Expected::Hint(_) => Proof::Match,
                Expected::Unknown => Proof::Unknown,
            }
        };
        sums.map(proof).collect()
    }
}
