//! How pages of a file lie in the data sectors of a coding extent, by the file's kind.
//!
//! ```text
//!   auto, A:   | page 0 | page 1 | page 2 | ..
//!
//!   B:         | primary 0 | .. | primary 14 | complementary | primary 15 | ..              each ends in 256 zeroes
//!
//!   mutable:   | complementary | primary 0 | .. | primary 6 | complementary | ..            each ends in 512 zeroes
//! ```
//!
//! Where a sector is to end in `z` zeroes, a page leaves its last `z` bytes: its primary has what comes before them, and a complementary
//! sector has the last bytes of all pages of its *block* side by side. A block has `4096 / z - 1` pages, so that the complementary
//! sector ends in `z` zeroes too. A mutable block has its complementary sector twice, at both ends. `[SDHDD]` 3.2 and 3.3.
//!
//! # Invariants
//!
//! - LY1. Every page has one primary, and no two pages share a byte of a complementary sector.
//! - LY2. Every data sector of a kind with zeroes ends in them, so redundant sectors do too: a code over bytes makes zeroes of zeroes.

use std::ops::Range;

use levelhead_units::SECTOR_SIZE;

use super::inode::FileKind;

/// The blocks of a kind with forced zeroes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Bytes at the end of each sector that are zero.
    pub zeroes: usize,
    /// Whether the complementary sector is there twice.
    pub has_twins: bool,
}

/// Of files that are not changed and are read at random.
const B: Blocks = Blocks { zeroes: 256, has_twins: false };

/// Of files that are changed.
const MUTABLE: Blocks = Blocks { zeroes: 512, has_twins: true };

impl FileKind {
    /// Its blocks; nothing where a page is a sector.
    pub const fn blocks(self) -> Option<Blocks> {
        match self {
            Self::Auto | Self::A => None,
            Self::B => Some(B),
            Self::Mutable => Some(MUTABLE),
        }
    }

    /// Data sectors that this many pages take.
    pub fn sectors(self, pages: u32) -> u32 {
        self.blocks().map_or(pages, |blocks| blocks.sectors(pages))
    }

    /// Pages that fill this number of data sectors; nothing if none do.
    pub fn pages(self, sectors: u32) -> Option<u32> {
        self.blocks().map_or(Some(sectors), |blocks| blocks.pages(sectors))
    }
}

impl Blocks {
    /// Pages of a whole block.
    pub const fn block_pages(&self) -> u32 {
        (SECTOR_SIZE / self.zeroes) as u32 - 1
    }

    /// Complementary sectors of a block.
    pub const fn complements(&self) -> u32 {
        1 + self.has_twins as u32
    }

    /// Sectors of a whole block.
    pub const fn block_sectors(&self) -> u32 {
        self.block_pages() + self.complements()
    }

    fn sectors(&self, pages: u32) -> u32 {
        pages + pages.div_ceil(self.block_pages()) * self.complements()
    }

    fn pages(&self, sectors: u32) -> Option<u32> {
        let whole = sectors / self.block_sectors() * self.block_pages();
        match sectors % self.block_sectors() {
            0 => Some(whole),
            rest => rest.checked_sub(self.complements() + 1).map(|rest| whole + rest + 1),
        }
    }

    /// Where a page lies, in an extent of this many data sectors.
    pub fn place(&self, page: u32, sectors: u32) -> InBlock {
        let (block, slot) = (page / self.block_pages(), page % self.block_pages());
        let first = block * self.block_sectors();
        let last = sectors.min(first + self.block_sectors()) - 1;
        let lead = u32::from(self.has_twins);
        InBlock {
            primary: first + lead + slot,
            complement: if self.has_twins { first } else { last },
            twin: self.has_twins.then_some(last),
            slot,
        }
    }

    /// The page whose primary a sector is; nothing of a complementary one.
    pub fn page_of(&self, sector: u32, sectors: u32) -> Option<u32> {
        let (block, at) = (sector / self.block_sectors(), sector % self.block_sectors());
        let lead = u32::from(self.has_twins);
        let page = block * self.block_pages() + at.checked_sub(lead)?;
        let pages = self.pages(sectors)?;
        (page < pages && self.place(page, sectors).primary == sector).then_some(page)
    }

    /// The other copy of a complementary sector.
    pub fn twin_of(&self, sector: u32, sectors: u32) -> Option<u32> {
        let first = sector / self.block_sectors() * self.block_sectors();
        let last = sectors.min(first + self.block_sectors()) - 1;
        match sector {
            _ if !self.has_twins => None,
            _ if sector == first => Some(last),
            _ if sector == last => Some(first),
            _ => None,
        }
    }

    /// Bytes of a page that lie in its primary.
    pub const fn kept(&self) -> usize {
        SECTOR_SIZE - self.zeroes
    }

    /// Where a complementary sector has the last bytes of a page.
    pub const fn rest(&self, slot: u32) -> Range<usize> {
        let from = slot as usize * self.zeroes;
        from..from + self.zeroes
    }

    /// Puts a page together.
    pub fn join(&self, slot: u32, primary: &[u8], complement: &[u8], page: &mut [u8]) {
        page[..self.kept()].copy_from_slice(&primary[..self.kept()]);
        page[self.kept()..].copy_from_slice(&complement[self.rest(slot)]);
    }

    /// Takes a page apart; the primary's zeroes are there already.
    pub fn split(&self, slot: u32, page: &[u8], primary: &mut [u8], complement: &mut [u8]) {
        primary[..self.kept()].copy_from_slice(&page[..self.kept()]);
        complement[self.rest(slot)].copy_from_slice(&page[self.kept()..]);
    }
}

/// Where a page lies, in data sectors from the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InBlock {
    /// The sector with all but its last bytes.
    pub primary: u32,
    /// The one with the last bytes of all pages of the block.
    pub complement: u32,
    /// The same once more.
    pub twin: Option<u32>,
    /// Which page of the block it is.
    pub slot: u32,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn kinds_have_the_papers_blocks() {
        assert_eq!((B.block_pages(), B.block_sectors()), (15, 16));
        assert_eq!((MUTABLE.block_pages(), MUTABLE.block_sectors()), (7, 9));
        assert_eq!([FileKind::B, FileKind::Mutable].map(|kind| kind.sectors(210)), [224, 270]);
        assert_eq!(FileKind::Auto.sectors(7), 7);
    }

    /// LY1.
    #[test]
    fn every_sector_is_a_primary_or_a_complement() {
        for kind in [FileKind::B, FileKind::Mutable] {
            let blocks = kind.blocks().unwrap();
            for pages in 1..60 {
                let sectors = kind.sectors(pages);
                assert_eq!(kind.pages(sectors), Some(pages));
                let mut met: BTreeMap<u32, Option<u32>> = BTreeMap::new();
                for page in 0..pages {
                    let place = blocks.place(page, sectors);
                    assert_eq!(met.insert(place.primary, Some(page)), None);
                    assert_eq!(blocks.page_of(place.primary, sectors), Some(page));
                    assert!(blocks.rest(place.slot).end <= blocks.kept());
                    for complement in [Some(place.complement), place.twin].into_iter().flatten() {
                        assert!(met.insert(complement, None).is_none_or(|met| met.is_none()));
                        assert_eq!(blocks.page_of(complement, sectors), None);
                    }
                    if let Some(twin) = place.twin {
                        assert_eq!(blocks.twin_of(place.complement, sectors), Some(twin));
                        assert_eq!(blocks.twin_of(twin, sectors), Some(place.complement));
                    }
                    assert_eq!(blocks.twin_of(place.primary, sectors), None);
                }
                assert!(met.keys().copied().eq(0..sectors), "{kind:?} of {pages}");
            }
        }
        assert_eq!([1, 17].map(|sectors| FileKind::B.pages(sectors)), [None; 2]);
        assert_eq!([1, 2, 10, 11].map(|sectors| FileKind::Mutable.pages(sectors)), [None; 4]);
    }

    #[test]
    fn page_that_was_taken_apart_is_put_together() {
        for blocks in [B, MUTABLE] {
            let page: Vec<u8> = (0..SECTOR_SIZE).map(|at| (at % 251) as u8 + 1).collect();
            let [mut primary, mut complement, mut whole] = [[0; SECTOR_SIZE]; 3];
            let slot = blocks.block_pages() - 1;
            blocks.split(slot, &page, &mut primary, &mut complement);
            for sector in [&primary, &complement] {
                assert!(sector[blocks.kept()..].iter().all(|&byte| byte == 0));
            }
            blocks.join(slot, &primary, &complement, &mut whole);
            assert_eq!(whole[..], page[..]);
        }
    }
}
