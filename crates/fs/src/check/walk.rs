//! Inodes: from the root on, and then those that nothing names.
//!
//! A unit with inodes is looked at as a whole once anything leads to it: what an inode has is marked whether a name leads to it or
//! not.

use std::collections::{BTreeMap, BTreeSet};

use levelhead_units::{Extent, Lba, Sectors};

use super::marks::{Marks, is_set};
use super::{Checker, Problem, Repair};
use crate::format::extent::CodingExtent;
use crate::format::inode::{INODE, INODES, Inode, InodePlace};
use crate::format::superblock::Superblock;
use crate::format::unit::{HEAD, Head, Kind, Sector};
use crate::geometry::{BITS, Geometry, GroupIdx};
use crate::space::is_reserved;

/// Units that are read with one batch.
pub(super) const UNITS_MAX: usize = 512;

/// Sectors that are looked at with one batch, because nothing that was found has them.
const UNNAMED_MAX: usize = 4_096;

/// See the module.
pub(super) struct Walk {
    /// Sectors that something has.
    pub(super) used: Marks,
    /// Leads of units with inodes that were looked at.
    seen: Marks,
    /// Leads of those that are still to be looked at.
    pending: BTreeSet<Lba>,
    pub(super) names: Vec<Name>,
    pub(super) live: Vec<Live>,
    pub(super) directories: BTreeMap<u64, Directory>,
    /// Inodes that are to be freed, as the list says.
    pub(super) orphans: Vec<u64>,
    /// Units with inodes, and how many of theirs are free.
    pub(super) units: Vec<Unlisted>,
    /// What the lists of units and of damaged files name, and what they count.
    pub(super) listed: Lists,
    /// Leads of units with inodes that are lost.
    pub(super) lost: BTreeSet<Lba>,
    /// What the summary says of each group; nothing where it is lost.
    pub(super) summary: Vec<Option<u64>>,
    /// Leads of bitmaps that are lost,
    pub(super) unmapped: BTreeSet<Lba>,
    /// and of sums;
    pub(super) unsummed: BTreeSet<Lba>,
    /// coding extents of which some sums are lost.
    pub(super) unsummed_extents: Vec<CodingExtent>,
}

/// A unit with inodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Unlisted {
    pub(super) lead: u64,
    /// Inodes of it that are free.
    pub(super) free: u8,
}

/// What lists of the filesystem's own name, in ascending order, and what they count.
#[derive(Default)]
pub(super) struct Lists {
    pub(super) units: Vec<u64>,
    pub(super) spare: Vec<u64>,
    pub(super) damaged: Vec<u64>,
    /// Inodes, as the list of units says.
    pub(super) inodes: u64,
    /// Damaged files, as their list says.
    pub(super) files: u64,
}

/// A name, without its letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    /// The inode in the lower 56 bits, the type that the name says above them.
    word: u64,
    pub(super) directory: u64,
}

impl Name {
    pub(super) fn new(inode: u64, kind: u8, directory: u64) -> Self {
        Self { word: inode & INODE_MASK | u64::from(kind) << 56, directory }
    }

    pub(super) fn inode(self) -> u64 {
        self.word & INODE_MASK
    }

    pub(super) fn kind(self) -> u8 {
        (self.word >> 56) as u8
    }
}

/// Numbers of inodes: eight times a place of 48 bits.
const INODE_MASK: u64 = (1 << 56) - 1;

/// An inode that is not free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Live {
    pub(super) inode: u64,
    pub(super) links: u32,
    /// The upper bits of its mode.
    pub(super) kind: u8,
}

/// A directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Directory {
    pub(super) links: u32,
    /// What it says of the directory that it is in.
    pub(super) parent: u64,
    /// Directories that are in it.
    pub(super) children: u64,
    /// The directory that names it.
    pub(super) named_by: Option<u64>,
}

impl Walk {
    pub(super) fn new(geometry: Geometry) -> Self {
        Self {
            used: Marks::reserved(geometry),
            seen: Marks::none(geometry),
            pending: BTreeSet::new(),
            names: Vec::new(),
            live: Vec::new(),
            directories: BTreeMap::new(),
            orphans: Vec::new(),
            units: Vec::new(),
            listed: Lists::default(),
            unsummed_extents: Vec::new(),
            lost: BTreeSet::new(),
            summary: Vec::new(),
            unmapped: BTreeSet::new(),
            unsummed: BTreeSet::new(),
        }
    }
}

impl Checker<'_> {
    /// A unit is read in all its copies; those that are bad are written anew if anything is. Nothing for a unit without a
    /// good copy.
    pub(super) fn read_units(&mut self, leads: &[Lba]) -> Vec<Option<Unit>> {
        let geometry = self.superblock.geometry;
        let copies = leads.iter().flat_map(|&lead| geometry.copies_of(lead)).collect();
        let got = self.disk.read(copies);
        self.step.units += leads.len() as u64;
        (self.on_step)(self.step);
        let filesystem = self.superblock.filesystem();
        let mut units = Vec::with_capacity(leads.len());
        for &lead in leads {
            let mut best: Option<(Head, &Sector)> = None;
            for lba in geometry.copies_of(lead) {
                let Some(sector) = got.sector(lba) else { continue };
                if best.is_some_and(|(_, known)| known == sector) {
                    continue;
                }
                let Ok(head) = Head::open(sector) else { continue };
                let is_its = head.filesystem == filesystem && head.lba == lead;
                if is_its && best.is_none_or(|(known, _)| known.generation < head.generation) {
                    best = Some((head, sector));
                }
            }
            let Some((head, right)) = best else {
                units.push(None);
                continue;
            };
            let is_bad = |lba: &Lba| got.sector(*lba) != Some(right);
            let bad: Vec<Lba> = geometry.copies_of(lead).into_iter().filter(is_bad).collect();
            if !bad.is_empty() {
                let is_unwritten = |lba: &&Lba| {
                    got.sector(**lba).is_some_and(|sector| {
                        let older = Head::open(sector)
                            .is_ok_and(|head| head.filesystem == filesystem && head.lba == lead);
                        older || sector.iter().all(|&byte| byte == 0)
                    })
                };
                let unwritten = bad.iter().filter(is_unwritten).count() as u8;
                self.note_mended(Problem::Copies { lead, bad: bad.len() as u8, unwritten });
                if self.options.repair == Repair::All {
                    bad.iter().for_each(|&lba| self.disk.write(lba, right));
                    self.copies_written.extend(bad);
                }
            }
            if let Some(found) = &mut self.surveyed {
                found.units.push(lead);
            }
            units.push(Some(Unit { head, bytes: Box::new(*right) }));
        }
        units
    }

    /// The best copy of a unit.
    pub(super) fn read_whole(&mut self, lead: Lba) -> Option<Unit> {
        let (geometry, filesystem) = (self.superblock.geometry, self.superblock.filesystem());
        if !geometry.may_lead(lead) {
            return None;
        }
        let got = self.disk.read(geometry.copies_of(lead));
        let mut best: Option<(Head, &Sector)> = None;
        for sector in geometry.copies_of(lead).into_iter().filter_map(|lba| got.sector(lba)) {
            let Ok(head) = Head::open(sector) else { continue };
            let is_its = (head.filesystem, head.lba) == (filesystem, lead);
            if is_its && best.is_none_or(|(known, _)| known.generation < head.generation) {
                best = Some((head, sector));
            }
        }
        best.map(|(head, sector)| Unit { head, bytes: Box::new(*sector) })
    }

    /// The best copy of a unit of a kind, whose copies were all looked at before.
    pub(super) fn read_quietly(&mut self, lead: Lba, kind: Kind) -> Option<Box<Sector>> {
        self.read_whole(lead).filter(|unit| unit.head.kind == kind).map(|unit| unit.bytes)
    }

    /// A unit that was read, if it is what belongs there.
    pub(super) fn expect(&mut self, wanted: Wanted, found: Option<Unit>) -> Option<Unit> {
        let Wanted { lead, kind, owner } = wanted;
        match found {
            Some(unit) if (unit.head.kind, unit.head.owner) == (kind, owner) => Some(unit),
            Some(_) => {
                self.note_unknown(Problem::UnitWrong { lead, kind, owner });
                None
            }
            None => {
                self.note_unknown(Problem::UnitLost { lead, kind, owner });
                None
            }
        }
    }

    /// Whether a unit that is not a fixed one can lie there.
    pub(super) fn may_be_unit(&self, lead: Lba) -> bool {
        let geometry = self.superblock.geometry;
        geometry.may_lead(lead)
            && geometry.copies_of(lead).iter().all(|&copy| !is_reserved(&geometry, copy))
    }

    /// A unit has its sectors; returns whether nothing else had any of them.
    pub(super) fn take_unit(&mut self, lead: Lba, owner: u64) -> bool {
        let mut is_new = true;
        for lba in self.superblock.geometry.copies_of(lead) {
            let extent = Extent::new(lba, Sectors::new(1));
            self.report.metadata_sectors += 1;
            if !self.walk.used.mark(extent) {
                is_new = false;
                self.note(Problem::Shared { extent, inode: owner });
            }
        }
        is_new
    }

    /// Something leads to an inode; returns whether one can be there.
    pub(super) fn want_inode(&mut self, number: u64) -> bool {
        let lead = InodePlace::of(number).lead;
        if !self.may_be_unit(lead) {
            return false;
        }
        if !self.walk.seen.has(Extent::new(lead, Sectors::new(1))) {
            self.walk.pending.insert(lead);
        }
        true
    }

    /// Everything that names lead to.
    pub(super) fn walk_named(&mut self) {
        // The summary is the one unit that neither a group nor an inode has.
        let summary: Vec<Lba> = self.summary_leads();
        for lead in summary {
            self.take_unit(lead, 0);
        }
        let Superblock { root, orphans, damaged, spare, units, .. } = self.superblock;
        for number in [root, orphans, damaged, spare, units] {
            if !self.want_inode(number) {
                self.note_unknown(Problem::Inode { inode: number });
            }
        }
        self.walk_pending();
    }

    fn walk_pending(&mut self) {
        let mut at = Lba::ZERO;
        while !self.walk.pending.is_empty() && self.disk.trouble().is_none() {
            // Upwards over the disk, and then from its beginning again.
            let mut leads: Vec<Lba> =
                self.walk.pending.range(at..).take(UNITS_MAX).copied().collect();
            if leads.is_empty() {
                leads = self.walk.pending.iter().take(UNITS_MAX).copied().collect();
            }
            for &lead in &leads {
                self.walk.pending.remove(&lead);
                self.walk.seen.mark(Extent::new(lead, Sectors::new(1)));
            }
            at = *leads.last().expect("there are some");
            let units = self.read_units(&leads);
            for (lead, found) in leads.into_iter().zip(units) {
                self.check_inodes(lead, found);
            }
        }
    }

    fn check_inodes(&mut self, lead: Lba, found: Option<Unit>) {
        let is_lost = found.is_none();
        let unit = self.expect(Wanted { lead, kind: Kind::Inodes, owner: 0 }, found);
        let Some(unit) = unit else {
            if is_lost {
                self.walk.lost.insert(lead);
            }
            return;
        };
        if !self.take_unit(lead, 0) {
            // What has it counts: names of inodes here lead to nothing.
            self.is_known = false;
            return;
        }
        let mut free = 0;
        for slot in 0..INODES {
            let number = InodePlace { lead, slot }.number();
            match Inode::decode(&unit.bytes[HEAD..][slot * INODE..][..INODE]) {
                None => {
                    self.walk.live.push(Live { inode: number, links: 0, kind: BROKEN });
                    self.note_unknown(Problem::Inode { inode: number });
                }
                Some(inode) if inode.mode == 0 => free += 1,
                Some(inode) => {
                    let (links, kind) = (inode.links, (inode.mode >> 12) as u8);
                    self.walk.live.push(Live { inode: number, links, kind });
                    self.check_content(number, &inode);
                }
            }
        }
        self.walk.units.push(Unlisted { lead: lead.get(), free });
    }

    /// Units of inodes to which only their list leads.
    pub(super) fn walk_listed(&mut self) {
        let mut keys: Vec<Lba> = self.walk.listed.units.iter().map(|&key| Lba::new(key)).collect();
        keys.retain(|&lead| {
            self.may_be_unit(lead) && !self.walk.seen.has(Extent::new(lead, Sectors::new(1)))
        });
        for leads in keys.chunks(UNITS_MAX) {
            let units = self.read_units(leads);
            for (&lead, found) in leads.iter().zip(units) {
                let one = Extent::new(lead, Sectors::new(1));
                if self.walk.seen.has(one) {
                    continue;
                }
                // What something else has, or nothing, is not one of them.
                let may_be = match &found {
                    Some(unit) => (unit.head.kind, unit.head.owner) == (Kind::Inodes, 0),
                    None => self.is_taken(lead),
                };
                if !may_be || self.walk.used.has(one) {
                    continue;
                }
                self.walk.seen.mark(one);
                self.check_inodes(lead, found);
            }
        }
        self.walk_pending();
    }

    /// Whether the bitmap says that something has a sector; what it does not say may be so.
    fn is_taken(&mut self, lba: Lba) -> bool {
        let geometry = self.superblock.geometry;
        let (group, offset) = (geometry.group_of(lba), geometry.offset(lba));
        match self.bitmap(group, offset / BITS) {
            Some(bits) => is_set(&bits, offset % BITS),
            None => self.walk.unmapped.contains(&geometry.bitmap_of(lba)),
        }
    }

    /// Units with inodes that nothing leads to: they are taken, and nothing that was found has them.
    pub(super) fn walk_unnamed(&mut self) {
        let geometry = self.superblock.geometry;
        for group in (0..geometry.groups()).map(GroupIdx) {
            let first = geometry.group(group).lba;
            for bitmap in 0..geometry.bitmaps(group).count() as u64 {
                let Some(bits) = self.bitmap(group, bitmap) else { continue };
                let mut unnamed = Vec::new();
                for offset in geometry.bits_of(group, bitmap) {
                    let is_taken = is_set(&bits, offset % BITS);
                    if is_taken && !is_set(self.walk.used.group(group), offset) {
                        unnamed.push(first + Sectors::new(offset));
                    }
                }
                for some in unnamed.chunks(UNNAMED_MAX) {
                    self.find_inodes(some);
                }
                self.walk_pending();
            }
        }
    }

    /// Units with inodes among some sectors; any of their copies says where they are.
    fn find_inodes(&mut self, sectors: &[Lba]) {
        let (geometry, filesystem) = (self.superblock.geometry, self.superblock.filesystem());
        let got = self.disk.read(sectors.to_vec());
        for &lba in sectors {
            let Some(Ok(head)) = got.sector(lba).map(Head::open) else { continue };
            let is_its = head.kind == Kind::Inodes
                && head.filesystem == filesystem
                && self.may_be_unit(head.lba)
                && geometry.copies_of(head.lba).contains(&lba);
            let lead = Extent::new(head.lba, Sectors::new(1));
            if is_its && !self.walk.seen.has(lead) && !self.walk.used.has(lead) {
                self.walk.pending.insert(head.lba);
            }
        }
    }
}

/// The type of an inode that cannot be read.
pub(super) const BROKEN: u8 = 0;

/// A unit that was read.
pub(super) struct Unit {
    pub(super) head: Head,
    pub(super) bytes: Box<Sector>,
}

/// What belongs to a place.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) lead: Lba,
    pub(super) kind: Kind,
    pub(super) owner: u64,
}
