//! What lies where on a disk that a filesystem has left in order, found without the machine that wrote it, and what can be damaged of it.

use std::collections::{BTreeMap, BTreeSet};

use levelhead_fs::format::entry::Entry;
use levelhead_fs::format::extent::{CodingExtent, Window, WordSymbol};
use levelhead_fs::format::inode::{Form, INODE, Inode, InodePlace};
use levelhead_fs::format::node::Node;
use levelhead_fs::format::superblock::Superblock;
use levelhead_fs::format::unit::{HEAD, Head, Kind};
use levelhead_fs::geometry::{Geometry, GroupIdx};
use levelhead_stats::Rng;
use levelhead_units::{Lba, SECTOR_SIZE, Sectors};

use super::disk::Disk;

/// The superblock that counts.
pub(crate) fn newest(disk: &Disk) -> Option<Superblock> {
    // Where they lie does not depend on the number of copies.
    let places = Geometry::of_disk(disk.size(), 1)?.superblocks();
    let decode = |lba: Lba| {
        let sector = disk.sector(lba).try_into().expect("it is a sector");
        Superblock::decode(sector).ok().filter(|_| !disk.bad.contains(&lba))
    };
    places.into_iter().filter_map(decode).max_by_key(|superblock| superblock.generation)
}

/// Whether a superblock lies there that can be read and is whole.
fn is_superblock(disk: &Disk, lba: Lba) -> bool {
    let sector = disk.sector(lba).try_into().expect("it is a sector");
    !disk.bad.contains(&lba) && Superblock::decode(sector).is_ok()
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Survey {
    superblock: Superblock,
    /// The leads of units that are in use.
    units: BTreeSet<Lba>,
    /// Coding extents, by their first sectors.
    pub(crate) extents: BTreeMap<Lba, CodingExtent>,
    /// Inodes without names.
    pub(crate) orphans: Vec<u64>,
}

impl Survey {
    /// Follows everything from the root on.
    pub(crate) fn of(disk: &Disk) -> Result<Self, String> {
        let superblock = newest(disk).ok_or("no superblock is left")?;
        let (units, extents) = Default::default();
        let mut survey = Self { superblock, units, extents, orphans: Vec::new() };
        survey.fixed(disk);
        let Superblock { root, orphans, damaged, .. } = survey.superblock;
        survey.orphans = survey.tree(disk, orphans)?.into_iter().map(|pair| pair.key).collect();
        survey.tree(disk, damaged)?;
        let mut left = vec![root];
        let mut seen = BTreeSet::new();
        while let Some(number) = left.pop() {
            if seen.insert(number) {
                left.extend(survey.visit(disk, number)?);
            }
        }
        Ok(survey)
    }

    fn unit<'a>(&mut self, disk: &'a Disk, lead: Lba, kind: Kind) -> Result<&'a [u8], String> {
        let version = |lba: Lba| {
            let sector = disk.sector(lba);
            let head = Head::open(sector.try_into().expect("it is a sector")).ok()?;
            (head.lba == lead).then_some((head, sector))
        };
        // One that cannot be written holds an older version.
        let copies = self.superblock.geometry.copies_of(lead).into_iter();
        let newest = copies.filter_map(version).max_by_key(|(head, _)| head.generation);
        match newest {
            Some((head, sector)) if head.kind == kind => {
                self.units.insert(lead);
                Ok(&sector[HEAD..])
            }
            other => Err(format!("{lead:?} leads no unit of {kind:?} but {other:?}")),
        }
    }

    /// Units whose place is fixed, and the summary; those that were never used are nothing.
    fn fixed(&mut self, disk: &Disk) {
        let geometry = self.superblock.geometry;
        let fixed = (0..geometry.groups()).map(GroupIdx).flat_map(|group| {
            let first = geometry.group(group).lba;
            let near = geometry.near();
            (0..geometry.fixed_units()).map(move |at| first + Sectors::new(1 + at * near))
        });
        for lead in fixed.chain([self.superblock.summary]) {
            for kind in [Kind::Bitmap, Kind::Sums, Kind::Summary] {
                let _ = self.unit(disk, lead, kind);
            }
        }
    }

    fn inode(&mut self, disk: &Disk, number: u64) -> Result<Inode, String> {
        let InodePlace { lead, slot } = InodePlace::of(number);
        let body = self.unit(disk, lead, Kind::Inodes)?;
        Inode::decode(&body[slot * INODE..][..INODE]).ok_or(format!("{number} is not an inode"))
    }

    /// What an inode's tree has in its leaves.
    fn tree(
        &mut self,
        disk: &Disk,
        number: u64,
    ) -> Result<Vec<levelhead_fs::format::node::Pair>, String> {
        let inode = self.inode(disk, number)?;
        let root = Node::decode(&inode.inline).ok_or(format!("{number} has no root"))?;
        let (mut pairs, mut left) = (Vec::new(), vec![root]);
        while let Some(node) = left.pop() {
            if node.depth == 0 {
                pairs.extend(node.pairs);
                continue;
            }
            for pair in node.pairs {
                let lead = pair.value.try_into().map(u64::from_le_bytes).map(Lba::new);
                let lead = lead.map_err(|_| format!("{number} has a bad pointer"))?;
                let node = Node::decode(self.unit(disk, lead, Kind::Node)?);
                left.push(node.ok_or(format!("{lead:?} is not a node"))?);
            }
        }
        Ok(pairs)
    }

    /// An inode; the inodes that it names.
    fn visit(&mut self, disk: &Disk, number: u64) -> Result<Vec<u64>, String> {
        let inode = self.inode(disk, number)?;
        if inode.attributes != Lba::ZERO {
            self.unit(disk, inode.attributes, Kind::Attributes)?;
        }
        if inode.form == Form::Content {
            return Ok(Vec::new());
        }
        let pairs = self.tree(disk, number)?;
        if inode.is_directory() {
            let entry = |pair: levelhead_fs::format::node::Pair| {
                Entry::decode(&pair.value).map(|entry| entry.inode)
            };
            let entries: Option<Vec<u64>> = pairs.into_iter().map(entry).collect();
            return entries.ok_or(format!("{number} has a bad entry"));
        }
        for pair in pairs.iter().filter(|_| inode.is_file()) {
            let window = Window::decode(&pair.value, self.superblock.geometry.sectors);
            let window = window.ok_or(format!("{number} has a bad window"))?;
            self.extents.insert(window.extent.lba, window.extent);
        }
        Ok(Vec::new())
    }

    /// Damages as many sectors of every codeword as its code repairs, all copies of metadata but one, and two superblocks, where `may`
    /// allows it; returns how many sectors that are. What cannot be read already counts as damaged.
    pub(crate) fn damage(&self, disk: &mut Disk, may: impl Fn(Lba) -> bool, rng: &mut Rng) -> u64 {
        let mut damaged = BTreeSet::new();
        for extent in self.extents.values() {
            if !extent.all().iter().all(&may) {
                continue;
            }
            if extent.has_twins() {
                damaged.extend(extent.twins().flat_map(|pair| chosen(disk, &pair, 1, rng)));
                continue;
            }
            for word in 0..extent.words() {
                let symbols = extent.word_data(word) as usize + usize::from(extent.redundant);
                let place = |symbol| {
                    let at = extent.sector(WordSymbol { word, symbol });
                    extent.lba + Sectors::new(at.into())
                };
                let places: Vec<Lba> = (0..symbols).map(place).collect();
                damaged.extend(chosen(disk, &places, extent.redundant.into(), rng));
            }
        }
        for &lead in &self.units {
            let copies = self.superblock.geometry.copies_of(lead);
            if copies.iter().all(|&lba| may(lba)) {
                damaged.extend(chosen(disk, &copies, copies.len() - 1, rng));
            }
        }
        // Also where they differ because the power failed between them: whichever is left is right.
        let right = self.superblock.geometry.superblocks().into_iter();
        let right: Vec<Lba> = right.filter(|lba| is_superblock(disk, *lba)).collect();
        damaged.extend(chosen(disk, &right, right.len().saturating_sub(1), rng));
        damaged.iter().for_each(|&lba| disk.damage(lba, rng));
        damaged.len() as u64
    }

    /// The journal's place.
    pub(crate) fn journal(&self) -> levelhead_units::Extent {
        self.superblock.geometry.journal()
    }
}

/// Some of the places that can be read, so that with those that cannot they are no more than `most`.
fn chosen(disk: &Disk, places: &[Lba], most: usize, rng: &mut Rng) -> Vec<Lba> {
    let is_right = |lba: &Lba| !disk.bad.contains(lba);
    let mut left: Vec<Lba> = places.iter().copied().filter(is_right).collect();
    let count = most.saturating_sub(places.len() - left.len());
    (0..count).map(|_| left.swap_remove(rng.below(left.len() as u64) as usize)).collect()
}

const _: () = assert!(SECTOR_SIZE == 4_096);
