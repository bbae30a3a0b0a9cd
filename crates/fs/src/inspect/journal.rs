//! The journal as it lies on the disk: marks and records, what of them is whole, and what counts.

use std::collections::{BTreeMap, BTreeSet};

use levelhead_block::BlockDevice;
use levelhead_units::{Extent, Lba, SECTOR_SIZE, Sectors};

use crate::check::disk::Disk;
use crate::check::{CannotCheck, find_superblock};
use crate::engine::RECORDS;
use crate::format::record::{About, Descriptor, DescriptorPart, RecordEntry};
use crate::format::superblock::Superblock;
use crate::format::unit::Sector;
use crate::sums::sum_of;

/// Sectors that are read with one batch: 4 MiB.
const BATCH: u64 = 1_024;

const ZEROES: Sector = [0; SECTOR_SIZE];

/// See the module.
#[derive(Clone, Debug)]
pub struct Journal {
    /// Where it lies.
    pub extent: Extent,
    /// Whether the filesystem was left in order: then nothing of it counts.
    pub is_clean: bool,
    /// The name of the first record that may count.
    pub first: u64,
    /// Marks and records, in ascending order of their names; a mark lies before the record whose name it has.
    pub records: Vec<JournalRecord>,
}

/// A mark or a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalRecord {
    /// Its name.
    pub record: u64,
    /// Its first sector, counted from the beginning of the journal.
    pub at: u32,
    /// Its sectors.
    pub sectors: u32,
    /// Whether it lies in a place of marks.
    pub is_mark: bool,
    /// The oldest record that counts beside it, as it says.
    pub oldest: u64,
    /// Whether all of it can be read, or computed.
    pub is_whole: bool,
    /// Sectors of its payload that cannot be read or are wrong.
    pub payload_bad: u32,
    /// Whether the next mount takes what it says.
    pub counts: bool,
    /// Units in it,
    pub units: u32,
    /// sectors of files,
    pub data: u32,
    /// pages of files whose sectors are in no record yet,
    pub pages: u32,
    /// places that were freed,
    pub revoked: u32,
    /// redundant sectors of its own,
    pub redundant: u32,
    /// and coding extents whose redundancy is not what it should be.
    pub stale: u32,
}

/// Reads the journal of what is on a device.
///
/// # Errors
///
/// There is no filesystem, or not for this program, or the device fails.
pub fn read_journal(device: &mut dyn BlockDevice) -> Result<Journal, CannotCheck> {
    let superblock = find_superblock(device)?;
    let extent = superblock.geometry.journal();
    let mut disk = Disk::new(device);
    let (sectors, unreadable) = Default::default();
    let mut ring = Ring { superblock: &superblock, extent, sectors, unreadable };
    for from in (0..extent.sectors.get()).step_by(BATCH as usize) {
        let to = extent.sectors.get().min(from + BATCH);
        let places: Vec<Lba> = (from..to).map(|at| extent.lba + Sectors::new(at)).collect();
        let got = disk.read(places.clone());
        for (at, lba) in (from as u32..).zip(places) {
            match got.sector(lba) {
                Some(sector) if *sector == ZEROES => {}
                Some(sector) => drop(ring.sectors.insert(at, Box::new(*sector))),
                None => drop(ring.unreadable.insert(at)),
            }
        }
    }
    if let Some(reason) = disk.trouble() {
        return Err(CannotCheck::Device { reason: reason.to_owned() });
    }
    let mut records = ring.records();
    if !superblock.is_clean {
        note_counting(&mut records, superblock.record);
    }
    let (is_clean, first) = (superblock.is_clean, superblock.record);
    Ok(Journal { extent, is_clean, first, records })
}

/// The newest whole record counts, and all from the oldest one that it, or a mark with its name, names.
fn note_counting(records: &mut [JournalRecord], first: u64) {
    let whole = |record: &&JournalRecord| record.is_whole && record.record >= first;
    let newest = records.iter().filter(whole).filter(|record| !record.is_mark);
    let Some(newest) = newest.map(|record| record.record).max() else { return };
    let named = records.iter().filter(whole).filter(|record| record.record == newest);
    let oldest = named.map(|record| record.oldest).max().unwrap_or(newest);
    for record in records.iter_mut().filter(|record| record.is_whole) {
        record.counts = match record.is_mark {
            true => record.record == newest,
            false => (oldest..=newest).contains(&record.record),
        };
    }
}

/// What was read of the journal, but for sectors of zeroes.
struct Ring<'a> {
    superblock: &'a Superblock,
    extent: Extent,
    sectors: BTreeMap<u32, Box<Sector>>,
    unreadable: BTreeSet<u32>,
}

impl Ring<'_> {
    fn part(&self, at: u32) -> Option<DescriptorPart> {
        let lba = self.extent.lba + Sectors::new(at.into());
        Descriptor::decode_part(self.sectors.get(&at)?, self.superblock.filesystem(), lba)
    }

    fn records(&self) -> Vec<JournalRecord> {
        let mut begun: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
        for &at in self.sectors.keys() {
            let Some(part) = self.part(at).filter(|part| part.part == 0) else { continue };
            // It is the first descriptor of a record, or the copy behind it.
            let behind = (at + part.sectors).checked_sub(part.all.get() as u32);
            begun.entry(part.record).or_default().extend([Some(at), behind].into_iter().flatten());
        }
        let mut records = Vec::new();
        for (record, starts) in begun {
            let found: Vec<JournalRecord> =
                starts.into_iter().filter_map(|at| self.record(record, at)).collect();
            let is_whole = |found: &&JournalRecord| found.is_whole;
            match found.iter().any(|found| found.is_whole) {
                true => records.extend(found.iter().filter(is_whole)),
                false => records.extend(found.iter().find(|found| self.part(found.at).is_some())),
            }
        }
        records
    }

    /// The record that begins in a place.
    fn record(&self, record: u64, at: u32) -> Option<JournalRecord> {
        let of_it = |at: u32| self.part(at).filter(|part| part.record == record);
        let size = self.extent.sectors.get() as u32;
        let ends_here = |end: u32| {
            let part = of_it(end).filter(|part| part.part == 0)?;
            (end + part.sectors == at + part.all.get() as u32).then_some(part)
        };
        let first = of_it(at).or_else(|| (at + 1..size).find_map(ends_here))?;
        let (count, all) = (first.sectors, first.all.get() as u32);
        let mut found = JournalRecord {
            record,
            at,
            sectors: all,
            is_mark: at < RECORDS,
            oldest: first.oldest,
            is_whole: false,
            payload_bad: 0,
            counts: false,
            units: 0,
            data: 0,
            pages: 0,
            revoked: 0,
            redundant: 0,
            stale: 0,
        };
        if all < 2 * count || at + all > size {
            return Some(found);
        }
        let mut entries: Vec<RecordEntry> = Vec::new();
        for part in 0..count {
            let is_it = |found: &DescriptorPart| found.part == part && found.sectors == count;
            let here = of_it(at + part).filter(is_it);
            let again = || of_it(at + all - count + part).filter(is_it);
            let Some(part) = here.or_else(again) else { return Some(found) };
            entries.extend(part.entries);
        }
        for entry in &entries {
            *match entry.about {
                About::Unit => &mut found.units,
                About::Data => &mut found.data,
                About::Revoked => &mut found.revoked,
                About::Redundant => &mut found.redundant,
                About::Stale => &mut found.stale,
                About::Page => &mut found.pages,
                About::Owner | About::Dropped | About::Settled => continue,
            } += 1;
        }
        entries.retain(RecordEntry::has_payload);
        if entries.len() as u32 + 2 * count != all {
            return Some(found);
        }
        let filesystem = self.superblock.filesystem();
        let is_bad = |(place, entry): (u32, &RecordEntry)| {
            let sector = self.sectors.get(&place).map_or(&ZEROES, |sector| &**sector);
            self.unreadable.contains(&place)
                || sum_of(filesystem, entry.lba, &sector[..]) != entry.sum
        };
        let bad: Vec<bool> = (at + count..).zip(&entries).map(is_bad).collect();
        found.payload_bad = bad.iter().filter(|&&bad| bad).count() as u32;
        found.is_whole = self.can_be_computed(&entries, &bad);
        Some(found)
    }

    /// Whether each group of the payload has no more bad sectors than redundant ones.
    fn can_be_computed(&self, entries: &[RecordEntry], bad: &[bool]) -> bool {
        let ladder = &self.superblock.ladder;
        let data = entries.iter().filter(|entry| entry.about != About::Redundant).count();
        let most = usize::from(ladder.data_max());
        let mut row_at = data;
        (0..data).step_by(most).all(|from| {
            let count = most.min(data - from);
            let rows = usize::from(ladder.redundant(count as u32));
            let places = (from..from + count).chain(row_at..row_at + rows);
            row_at += rows;
            let of_group: Vec<bool> = places.map(|at| bad.get(at) != Some(&false)).collect();
            let lost = of_group.iter().filter(|&&bad| bad).count();
            lost == 0 || lost <= rows
        })
    }
}
