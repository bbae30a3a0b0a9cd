//! A record of the journal: a transaction.
//!
//! ```text
//!   | descriptor .. | payload: units, then sectors of files | redundant .. | descriptor again |
//! ```
//!
//! The descriptor names every sector of the payload by its place and its checksum, so that a record that was cut off, or a sector
//! of it that is damaged, is seen; redundant sectors by the filesystem's own code repair the latter. Everything that the record is
//! made of is written with one command, and counts once that is durable.
//!
//! A descriptor takes as many sectors as its entries need; each begins with the head of a sector of metadata.
//! `docs/formats/filesystem.md` is the normative text.

use levelhead_units::{Lba, Sectors};

use super::fields::{Fields, FieldsMut};
use super::superblock::COUNT_END;
use super::unit::{BODY, HEAD, Head, Kind, Sector};

/// Bytes of the beginning of a descriptor's body.
const BEGIN: usize = 64;

/// Bytes of an entry.
const ENTRY: usize = 16;

/// Bits of an entry's place. Sectors have 48, inodes eight times as many.
const PLACE_BITS: u32 = 56;

/// Entries of a descriptor's sector.
pub const ENTRIES: usize = (BODY - BEGIN) / ENTRY;

/// No record has as many sectors: no journal has.
const RECORD_END: u64 = 1 << 20;

mod at {
    pub(super) const RECORD: usize = 0;
    pub(super) const OLDEST: usize = 8;
    pub(super) const OLDEST_AT: usize = 16;
    pub(super) const ENTRIES: usize = 20;
    pub(super) const PART: usize = 24;
    pub(super) const SECTORS: usize = 28;
    pub(super) const REDUNDANT: usize = 32;
    pub(super) const ALL: usize = 36;
}

/// What an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum About {
    /// A unit's new bytes are in the payload; the place is its lead.
    Unit = 1,
    /// A file's sector is in the payload.
    Data = 2,
    /// What earlier records have for this place does not count any more: it was freed.
    Revoked = 3,
    /// A redundant sector of the record itself.
    Redundant = 4,
    /// What is redundant in a coding extent is not what it should be, until the record does not count any more.
    Stale = 5,
    /// A page of a file is in the payload whose sectors are in no record yet; the place is that of its primary sector, and whose page it is
    /// stands in the next entry.
    Page = 6,
    /// Whose the page before is.
    Owner = 7,
    /// What earlier records have as a page for this place does not count any more: the page has left it.
    Dropped = 8,
    /// What is redundant in a coding extent is what it should be again: that earlier records call it stale does not count any more.
    Settled = 9,
}

/// An entry of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordEntry {
    /// What it is about.
    pub about: About,
    /// Where that belongs; of an owner the inode's number.
    pub lba: Lba,
    /// The checksum of the sector in the payload; of a coding extent its data sectors; of an owner the page's number modulo 2^32; else 0.
    pub sum: u32,
    /// Of a coding extent the redundant sectors of each codeword, and how many are woven; of an owner the page's number divided by 2^32.
    pub shape: [u8; 2],
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// The filesystem.
    pub filesystem: u64,
    /// The name of the transaction; that of the next one is one more.
    pub record: u64,
    /// The oldest transaction that is not in its place for good,
    pub oldest: u64,
    /// and where its record begins, counted from the beginning of the journal.
    pub oldest_at: u32,
    /// In the order of the payload; what has none stands anywhere.
    pub entries: Vec<RecordEntry>,
}

impl RecordEntry {
    /// Whether a sector of the payload belongs to it.
    pub fn has_payload(&self) -> bool {
        match self.about {
            About::Unit | About::Data | About::Redundant | About::Page => true,
            About::Revoked | About::Stale | About::Owner | About::Dropped | About::Settled => false,
        }
    }

    /// Whose the page before it is.
    ///
    /// # Panics
    ///
    /// No inode has this number, or no file this page: they have 2^56 and 2^48.
    pub fn of_owner(inode: u64, page: u64) -> Self {
        assert!(inode < 1 << PLACE_BITS && page < 1 << 48, "page {page} of inode {inode}");
        let shape = ((page >> 32) as u16).to_le_bytes();
        Self { about: About::Owner, lba: Lba::new(inode), sum: page as u32, shape }
    }

    /// An inode's number and a page's, if it says whose a page is.
    pub fn owner(&self) -> Option<(u64, u64)> {
        let page = u64::from(u16::from_le_bytes(self.shape)) << 32 | u64::from(self.sum);
        (self.about == About::Owner).then_some((self.lba.get(), page))
    }
}

impl Descriptor {
    /// Sectors of a descriptor with this number of entries.
    pub fn sectors_for(entries: usize) -> u32 {
        entries.div_ceil(ENTRIES).max(1) as u32
    }

    /// Sectors that it takes.
    pub fn sectors(&self) -> u32 {
        Self::sectors_for(self.entries.len())
    }

    /// Sectors of the whole record: descriptor, payload, and descriptor again.
    pub fn record_sectors(&self) -> u32 {
        let payload = self.entries.iter().filter(|entry| entry.has_payload()).count() as u32;
        2 * self.sectors() + payload
    }

    /// As sectors that lie from `place` on; sectors of a journal are counted from `start`, and it has `size` of them.
    pub fn encode(&self, places: &[Lba]) -> Vec<Sector> {
        let sectors = self.sectors();
        assert_eq!(places.len(), sectors as usize, "a place for each sector");
        let mut all = Vec::new();
        for (part, &lba) in (0..sectors).zip(places) {
            let entries = self.entries.iter().skip(part as usize * ENTRIES).take(ENTRIES);
            let mut sector = [0; HEAD + BODY];
            let mut fields = FieldsMut(&mut sector[HEAD..]);
            fields.put_u64(at::RECORD, self.record);
            fields.put_u64(at::OLDEST, self.oldest);
            fields.put_u32(at::OLDEST_AT, self.oldest_at);
            fields.put_u32(at::ENTRIES, self.entries.len() as u32);
            fields.put_u32(at::PART, part);
            fields.put_u32(at::SECTORS, sectors);
            fields.put_u32(at::REDUNDANT, 0);
            fields.put_u32(at::ALL, self.record_sectors());
            for (entry, at) in entries.zip((BEGIN..).step_by(ENTRY)) {
                fields.put_u64(at, entry.lba.get() | u64::from(entry.about as u8) << PLACE_BITS);
                fields.put_u32(at + 8, entry.sum);
                fields.put_u8(at + 12, entry.shape[0]);
                fields.put_u8(at + 13, entry.shape[1]);
            }
            let Self { filesystem, record: generation, .. } = *self;
            Head { kind: Kind::Record, filesystem, lba, generation, owner: 0 }.seal(&mut sector);
            all.push(sector);
        }
        all
    }

    /// One sector of a descriptor, if it is that of this filesystem and lies where it was written.
    pub fn decode_part(sector: &Sector, filesystem: u64, place: Lba) -> Option<DescriptorPart> {
        let head = Head::open(sector).ok()?;
        let is_ours =
            head.kind == Kind::Record && head.filesystem == filesystem && head.lba == place;
        if !is_ours {
            return None;
        }
        let body = Fields(&sector[HEAD..]);
        let (part, sectors) = (body.u32(at::PART), body.u32(at::SECTORS));
        let count = body.u32(at::ENTRIES) as usize;
        let is_sane = body.u64(at::RECORD) == head.generation
            && head.generation < COUNT_END
            && part < sectors
            && sectors == Self::sectors_for(count)
            && (2 * u64::from(sectors)..RECORD_END).contains(&body.u32(at::ALL).into());
        if !is_sane {
            return None;
        }
        let here = count.saturating_sub(part as usize * ENTRIES).min(ENTRIES);
        let entry = |at: usize| {
            let word = body.u64(at);
            let about = match (word >> PLACE_BITS) as u8 {
                1 => About::Unit,
                2 => About::Data,
                3 => About::Revoked,
                4 => About::Redundant,
                5 => About::Stale,
                6 => About::Page,
                7 => About::Owner,
                8 => About::Dropped,
                9 => About::Settled,
                _ => return None,
            };
            let lba = Lba::new(word & ((1 << PLACE_BITS) - 1));
            let shape = [body.u8(at + 12), body.u8(at + 13)];
            Some(RecordEntry { about, lba, sum: body.u32(at + 8), shape })
        };
        let entries: Option<Vec<RecordEntry>> =
            (BEGIN..).step_by(ENTRY).take(here).map(entry).collect();
        Some(DescriptorPart {
            record: head.generation,
            oldest: body.u64(at::OLDEST),
            oldest_at: body.u32(at::OLDEST_AT),
            part,
            sectors,
            all: Sectors::new(body.u32(at::ALL).into()),
            entries: entries?,
        })
    }
}

/// One sector of a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptorPart {
    /// The name of the transaction.
    pub record: u64,
    /// The oldest one that is not in its place for good,
    pub oldest: u64,
    /// and where its record begins.
    pub oldest_at: u32,
    /// Which sector of the descriptor this is,
    pub part: u32,
    /// of how many.
    pub sectors: u32,
    /// Sectors of the whole record.
    pub all: Sectors,
    /// Its entries.
    pub entries: Vec<RecordEntry>,
}

const _: () = assert!(ENTRIES == 248);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_after_which_none_could_come_is_none() {
        for (record, is_one) in [(COUNT_END - 1, true), (COUNT_END, false), (u64::MAX, false)] {
            let (filesystem, oldest, oldest_at, entries) = (5, 1, 0, Vec::new());
            let descriptor = Descriptor { filesystem, record, oldest, oldest_at, entries };
            let (place, sector) = (Lba::new(9), descriptor.encode(&[Lba::new(9)])[0]);
            assert_eq!(Descriptor::decode_part(&sector, 5, place).is_some(), is_one);
        }
    }

    #[test]
    fn descriptor_that_is_longer_than_its_record_or_a_record_than_a_journal_is_none() {
        let (filesystem, record, oldest, oldest_at, entries) = (5, 1, 1, 0, Vec::new());
        let descriptor = Descriptor { filesystem, record, oldest, oldest_at, entries };
        let place = Lba::new(9);
        for (all, is_one) in
            [(0, false), (1, false), (2, true), (1 << 20, false), (u32::MAX, false)]
        {
            let mut sector = descriptor.encode(&[place])[0];
            let head = Head::open(&sector).unwrap();
            FieldsMut(&mut sector[HEAD..]).put_u32(at::ALL, all);
            head.seal(&mut sector);
            let found = Descriptor::decode_part(&sector, 5, place);
            assert_eq!(found.is_some(), is_one, "{all} sectors");
        }
    }

    #[test]
    fn descriptor_is_read_as_it_was_written_and_only_where_it_lies() {
        let entry = |at: u64| RecordEntry {
            about: [
                About::Unit,
                About::Data,
                About::Revoked,
                About::Redundant,
                About::Stale,
                About::Page,
                About::Owner,
                About::Dropped,
                About::Settled,
            ][at as usize % 9],
            lba: Lba::new((1 << 47) + at),
            sum: at as u32,
            shape: [9, at as u8],
        };
        for count in [0, 1, 248, 249, 600] {
            let entries = (0..count).map(entry).collect();
            let (filesystem, record, oldest, oldest_at) = (5, 70, 66, 13);
            let descriptor = Descriptor { filesystem, record, oldest, oldest_at, entries };
            let places: Vec<Lba> =
                (0..descriptor.sectors()).map(|at| Lba::new(900 + u64::from(at))).collect();
            let sectors = descriptor.encode(&places);
            let mut read = Vec::new();
            for (part, (sector, &place)) in (0..).zip(sectors.iter().zip(&places)) {
                let found = Descriptor::decode_part(sector, 5, place).unwrap();
                assert_eq!((found.part, found.sectors), (part, descriptor.sectors()));
                assert_eq!((found.record, found.oldest, found.oldest_at), (70, 66, 13));
                assert_eq!(found.all.get(), u64::from(descriptor.record_sectors()));
                read.extend(found.entries);
                assert_eq!(Descriptor::decode_part(sector, 6, place), None);
                assert_eq!(Descriptor::decode_part(sector, 5, Lba::new(1)), None);
            }
            assert_eq!(read, descriptor.entries);
        }
    }
}
