//! What the disks of a machine store of write commands, and sectors that change at rest.

use levelhead_array::reserve::HEAD;
use levelhead_array::{Area, Cell, ScrubState};
use levelhead_block::{Durability, SectorSet};
use levelhead_stats::Rng;
use levelhead_units::{DriveIdx, Extent, Lba, SECTOR_SIZE, Sectors};

use super::Machine;
use crate::crash::faulty::{Fate, Kind};
use crate::disk::{Disk, Sector};

impl Machine {
    /// A write command ends well, and its disk has stored it, or not.
    pub(super) fn store(
        &mut self,
        drive: DriveIdx,
        extent: Extent,
        durability: Durability,
        bytes: &[u8],
    ) {
        let kind = self.kind_of(drive, extent);
        let disk = &mut self.disks[drive.as_usize()];
        let fate = match &mut self.faulty {
            Some(faulty) => faulty.fate(drive, extent, kind, disk.size()),
            None => Fate::Stored,
        };
        let one = Sectors::new(1);
        match fate {
            Fate::Stored => {
                let stored = self.liar.stores(extent);
                let (first, rest) = bytes.split_at(stored.sectors.as_usize() * SECTOR_SIZE);
                disk.write_as(stored, first, durability);
                disk.pretend(Extent::new(stored.end(), extent.sectors - stored.sectors), rest);
            }
            Fate::Lost => {}
            Fate::Elsewhere(lba) => {
                disk.write_as(Extent::new(lba, extent.sectors), bytes, durability);
            }
            Fate::Part(offsets) => {
                for offset in offsets {
                    let lba = extent.lba + Sectors::new(offset);
                    let sector = &bytes[offset as usize * SECTOR_SIZE..][..SECTOR_SIZE];
                    disk.write_as(Extent::new(lba, one), sector, durability);
                }
            }
            Fate::Within => {
                let half = SECTOR_SIZE / 2;
                let mut left = disk.sector(extent.lba).to_vec();
                left[..half].copy_from_slice(&bytes[..half]);
                disk.write_as(extent, &left, durability);
            }
        }
    }

    fn kind_of(&self, drive: DriveIdx, extent: Extent) -> Kind {
        let last = Lba::ZERO + (self.disks[drive.as_usize()].size() - Sectors::new(1));
        let area = &self.liar.area;
        match () {
            () if extent.lba < Lba::ZERO + HEAD || extent.lba >= last => Kind::Metadata,
            () if !area.runs().any(|run| run.contains(extent.lba)) => Kind::Record,
            () if extent.sectors == Sectors::new(1) && is_tag(area, extent.lba) => Kind::Tag,
            () => Kind::Place,
        }
    }

    /// Where the data of the drives lies.
    pub(crate) fn area(&self) -> &Area {
        &self.liar.area
    }

    /// The disk in this place.
    pub(crate) fn disk(&self, drive: DriveIdx) -> &Disk {
        &self.disks[drive.as_usize()]
    }

    /// A sector of a disk changes at rest. Returns whether it has: nothing changes that is in the cache.
    pub(crate) fn rot(&mut self, drive: DriveIdx, lba: Lba, rng: &mut Rng) -> bool {
        let disk = &mut self.disks[drive.as_usize()];
        if disk.is_cached(lba) {
            return false;
        }
        let other = Lba::new(rng.below(disk.size().get()));
        let mut bytes = disk.sector(lba).to_vec();
        match rng.below(4) {
            0 => rng.fill(&mut bytes[512..1024]),
            1 => bytes.fill(0),
            2 => bytes.copy_from_slice(disk.sector(other)),
            _ => {}
        }
        if bytes[..] == *disk.sector(lba) {
            let bit = rng.below(SECTOR_SIZE as u64 * 8);
            bytes[bit as usize / 8] ^= 1 << (bit % 8);
        }
        disk.store(lba, Sector::from(&bytes[..]));
        true
    }

    /// Where what a disk holds of a sector lies on it.
    pub(crate) fn place_of(&self, cell: Cell) -> Lba {
        self.liar.place(cell)
    }

    /// Whether what a disk holds of a sector of a client, which nothing is writing, is what was read there last.
    pub(crate) fn is_right(&mut self, sector: Lba, cell: Cell) -> Result<(), String> {
        let one = Extent::new(sector, Sectors::new(1));
        let bytes = self.disks[cell.drive.as_usize()].sector(self.liar.place(cell)).to_vec();
        self.promise.check(one, &bytes, &SectorSet::EMPTY)
    }

    /// Everything is read and compared, from the first stripe on.
    pub(crate) fn scrub_all(&mut self, rng: &mut Rng) -> Result<(), String> {
        // One that was stopped goes on from there.
        if self.array.scrub().state == ScrubState::Stopped {
            self.start_or_stop_scrub();
        }
        self.settle(rng)?;
        self.start_or_stop_scrub();
        self.settle(rng)
    }
}

/// Whether a sector of a drive is a tag sector.
pub(crate) fn is_tag(area: &Area, lba: Lba) -> bool {
    let counted = area.count_at(lba);
    let is_last = counted >= Lba::ZERO + area.size();
    is_last || area.on_drive(Extent::new(counted, Sectors::new(1))).lba != lba
}
