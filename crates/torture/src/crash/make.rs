//! The disks that a crash swarm begins with.

use std::sync::Arc;

use levelhead_array::damaged::DamagedList;
use levelhead_array::journal::record::checksums;
use levelhead_array::membership::{Generation, Member, MemberId, Membership};
use levelhead_array::metadata::{Forced, Inscription, Kept, Logs, Metadata, State};
use levelhead_array::reserve::{HEAD, Reserved, Use};
use levelhead_array::superblock::{Own, Superblock, Uuid};
use levelhead_array::{Area, GroupSums, Layout, Row, Spec, TagSector};
use levelhead_stats::Rng;
use levelhead_units::{DriveIdx, Extent, Lba, SECTOR_SIZE, Sectors};

use crate::disk::{Disk, Manners};

/// What an array of a crash swarm is like.
#[derive(Clone, Copy, Debug)]
pub struct Make {
    /// Its shape.
    pub spec: Spec,
    /// Stripes.
    pub stripes: u64,
    /// Stripes whose redundancy is valid, from the first on; that of the others is noise.
    pub synced: u64,
    /// Sectors of each of the two pieces of its journal; without one if that is 0.
    pub piece: u64,
    /// Of which writes the journal has the contents.
    pub logs: Logs,
    /// What its disks do with flushes.
    pub manners: Manners,
    /// Of how many sectors of data with valid redundancy one is on the list of damaged sectors; none if that is 0.
    pub listed: u64,
}

/// The two slots of a drive's list of checksums.
const LIST: Sectors = Sectors::new(4);

/// A new array.
pub(crate) struct Made {
    pub(crate) disks: Vec<Disk>,
    /// Sectors of clients that are on the list of damaged sectors.
    pub(crate) listed: Vec<Lba>,
}

impl Make {
    /// Where everything lies.
    pub fn layout(&self) -> Layout {
        Layout::new(self.spec, self.spec.chunk() * self.stripes)
    }

    /// Disks with a new array on them, and noise where redundancy is not valid and in sectors on the list.
    pub(crate) fn disks(&self, rng: &mut Rng) -> Made {
        let (data, piece) = (self.spec.chunk() * self.stripes, Sectors::new(self.piece));
        let groups = self.spec.tag_groups();
        let with_tags = |data| groups.map_or(data, |groups| groups.with_tags(data));
        let unit = groups.map_or(self.spec.chunk(), |groups| groups.unit(self.spec.chunk()));
        let first = unit * (data.get() / unit.get() / 2);
        let one = Sectors::new(1);
        let place = |at: Sectors, sectors: Sectors, purpose| Reserved {
            extent: Extent::new(Lba::ZERO + at, sectors),
            purpose,
        };
        let own_of = |drive: DriveIdx| {
            let has_ring = piece > Sectors::ZERO && self.spec.ring_drives().contains(drive);
            let piece = if has_ring { piece } else { Sectors::ZERO };
            let has_data = self.spec.data_drives().contains(drive);
            let (data, half) = match has_data {
                true => (with_tags(data), with_tags(first)),
                false => (Sectors::ZERO, Sectors::ZERO),
            };
            let has_list = has_data && groups.is_some();
            let list = if has_list { LIST } else { Sectors::ZERO };
            let first = HEAD + list;
            let size = first + data + piece * 2 + one;
            let mut reserved = vec![
                place(Sectors::ZERO, one, Use::Superblock),
                place(one, HEAD - one * 2, Use::Metadata),
                place(HEAD - one, one, Use::Superblock),
            ];
            if has_list {
                reserved.push(place(HEAD, list, Use::List));
            }
            if has_ring {
                reserved.push(place(first, piece, Use::Journal));
                reserved.push(place(first + piece + half, piece, Use::Journal));
            }
            reserved.push(place(size - one, one, Use::Superblock));
            Own { drive, size, reserved }
        };
        let layout = self.layout();
        let uuid = |at: usize| Uuid([at as u8 + 1; 16]);
        let generation = Generation(1);
        let member =
            |at: usize| Member { given: generation, ..Member::new(uuid(at), Membership::Present) };
        let synced = self.synced.min(layout.stripes());
        let mut metadata = Metadata {
            generation,
            array: Uuid([0xA1; 16]),
            run: Uuid([0; 16]),
            base: Generation::NONE,
            spec: self.spec,
            drive_size: data,
            state: State::Clean,
            forced: Forced::No,
            synced,
            synced_last: synced,
            wishes: levelhead_array::Wishes::default(),
            journal: (self.piece > 0).then_some(Kept { first: 1, logs: self.logs }),
            members: (0..self.spec.members()).map(member).collect(),
            damaged: DamagedList::default(),
        };
        let disk = |at: usize| {
            let own = own_of(DriveIdx::from_usize(at));
            let mut disk = Disk::new(own.size, self.manners);
            let copies = own.copies();
            let superblock = Superblock {
                array: metadata.array,
                member: uuid(at),
                spec: self.spec,
                drive_size: data,
                logs: metadata.journal.map(|kept| kept.logs),
                own,
                read_only: 0,
            };
            for lba in copies {
                disk.write(Extent::new(lba, one), &superblock.encode());
            }
            disk
        };
        let mut disks: Vec<Disk> = (0..self.spec.members()).map(disk).collect();
        let area = own_of(DriveIdx::new(0))
            .area(&self.spec, data)
            .expect("the places leave room for the data");
        for stripe in synced..layout.stripes() {
            for row in 0..layout.rows() {
                for symbol in layout.data_symbols()..layout.symbols() {
                    let cell = layout.cell(Row { stripe, row }, symbol);
                    let mut noise = [0; SECTOR_SIZE];
                    rng.fill(&mut noise);
                    let extent = area.on_drive(Extent::new(cell.lba, one));
                    disks[cell.drive.as_usize()].write(extent, &noise);
                }
            }
        }
        let mut listed = Vec::new();
        let stripes = if self.listed > 0 { synced } else { 0 };
        for stripe in 0..stripes {
            for row in 0..layout.rows() {
                let row = Row { stripe, row };
                for symbol in 0..layout.data_symbols() {
                    if rng.below(self.listed) > 0 {
                        continue;
                    }
                    listed.push(layout.sector(row, symbol));
                    let copies = match self.spec.is_mirror() {
                        true => 0..layout.symbols(),
                        false => symbol..symbol + 1,
                    };
                    for cell in copies.map(|symbol| layout.cell(row, symbol)) {
                        let mut noise = [0; SECTOR_SIZE];
                        rng.fill(&mut noise);
                        let extent = area.on_drive(Extent::new(cell.lba, one));
                        disks[cell.drive.as_usize()].write(extent, &noise);
                        metadata.damaged.add(cell.drive, Extent::new(cell.lba, one));
                    }
                }
            }
        }
        for (drive, disk) in disks.iter_mut().enumerate().take(self.spec.drives()) {
            tag(&area, metadata.array, drive, disk);
        }
        let metadata = Arc::new(metadata);
        for (at, disk) in disks.iter_mut().enumerate() {
            let [slot, _] = own_of(DriveIdx::from_usize(at)).slots();
            let (metadata, holder) = (Arc::clone(&metadata), MemberId::new(uuid(at)));
            let extent = Extent::new(slot.lba, metadata.sectors());
            disk.write(extent, &Inscription { metadata, holder }.encode());
        }
        // Also those that lie have this on their media.
        disks.iter_mut().for_each(Disk::settle);
        Made { disks, listed }
    }
}

/// Puts tag sectors onto a disk, where an array has them, for what lies there.
fn tag(area: &Area, array: Uuid, drive: usize, disk: &mut Disk) {
    let (one, mut lba) = (Sectors::new(1), Lba::ZERO);
    while area.groups().is_some() && lba < Lba::ZERO + area.size() {
        let place = area.tag_of(lba).expect("it has groups");
        let mut sums = GroupSums::NONE;
        for (at, lba) in place.covers.iter().enumerate() {
            let bytes = disk.read(area.on_drive(Extent::new(lba, one)));
            sums.set(at, checksums(std::iter::once(&*bytes))[0]);
        }
        let drive = DriveIdx::from_usize(drive);
        let tag = TagSector { array, drive, group: place.group, list: 0, sums };
        disk.write(Extent::new(place.lba, one), &tag.encode());
        lba = place.covers.end();
    }
}
