//! A coding extent: consecutive sectors of a file and the redundant ones behind them.
//!
//! ```text
//!   on the disk:  | data 0 | data 1 | .. | data n-1 | redundant 0 | redundant 1 | .. |
//!
//!   woven, depth 2:  data 0, 2, 4 .. are one codeword, 1, 3, 5 .. another; so are redundant 0, 2 .. and 1, 3 ..
//! ```
//!
//! It is found in the tree of its file by its first sector there. `docs/formats/filesystem.md` is the normative text.

use levelhead_units::{Extent, Lba, Sectors};

use super::fields::{Fields, FieldsMut};
use super::inode::FileKind;
use super::ladder::Ladder;
use super::layout::{Blocks, InBlock};

/// Bytes of a window in a tree.
pub const WINDOW: usize = 24;

mod at {
    pub(super) const LBA: usize = 0;
    pub(super) const DATA: usize = 8;
    pub(super) const REDUNDANT: usize = 12;
    pub(super) const DEPTH: usize = 13;
    pub(super) const KIND: usize = 14;
    pub(super) const ZERO: usize = 15;
    pub(super) const SKIP: usize = 16;
    pub(super) const COUNT: usize = 20;
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodingExtent {
    /// The first data sector on the disk.
    pub lba: Lba,
    /// Data sectors.
    pub data: u32,
    /// Redundant sectors of each codeword.
    pub redundant: u8,
    /// Codewords that are woven.
    pub depth: u8,
    /// How its sectors are laid out.
    pub kind: FileKind,
}

impl CodingExtent {
    /// All its sectors.
    pub fn all(&self) -> Extent {
        let redundant = u64::from(self.redundant) * u64::from(self.depth);
        Extent::new(self.lba, Sectors::new(u64::from(self.data) + redundant))
    }

    /// The data sectors.
    pub fn data(&self) -> Extent {
        Extent::new(self.lba, Sectors::new(self.data.into()))
    }

    /// Pages of a file that lie in its data sectors.
    pub fn pages(&self) -> u32 {
        self.kind.pages(self.data).unwrap_or(0)
    }

    /// Where one of its pages lies.
    pub fn place(&self, page: u32) -> PagePlace {
        let at = |sector: u32| self.lba + Sectors::new(sector.into());
        match self.kind.blocks() {
            None => PagePlace::Whole(at(page)),
            Some(blocks) => {
                let InBlock { primary, complement, twin, slot } = blocks.place(page, self.data);
                let (primary, complement, twin) = (at(primary), at(complement), twin.map(at));
                PagePlace::Split(SplitPlace { primary, complement, twin, slot, blocks })
            }
        }
    }

    /// The page of which a data sector has the bytes, or most of them; nothing of one that has bytes of several.
    pub fn page_of(&self, lba: Lba) -> Option<u32> {
        let sector = u32::try_from(lba.get().checked_sub(self.lba.get())?).ok()?;
        match self.kind.blocks() {
            _ if sector >= self.data => None,
            None => Some(sector),
            Some(blocks) => blocks.page_of(sector, self.data),
        }
    }

    /// Whether its complementary sectors are there twice.
    pub fn has_twins(&self) -> bool {
        self.kind.blocks().is_some_and(|blocks| blocks.has_twins)
    }

    /// The other copy of a complementary sector.
    pub fn twin_of(&self, lba: Lba) -> Option<Lba> {
        let sector = u32::try_from(lba.get().checked_sub(self.lba.get())?).ok()?;
        let twin = self.kind.blocks()?.twin_of(sector, self.data)?;
        Some(self.lba + Sectors::new(twin.into()))
    }

    /// Whether it can be one on a disk of this size: of codewords for which there is a code.
    pub fn is_sane(&self, size: u64) -> bool {
        let is_some = (1..DATA_MAX).contains(&self.data)
            && self.depth > 0
            && self.kind.pages(self.data).is_some();
        if !is_some || self.lba.get() >= size {
            return false;
        }
        let longest = self.data.div_ceil(self.depth.into()) as usize + usize::from(self.redundant);
        longest <= Ladder::LENGTH_MAX
            && usize::from(self.redundant) <= Ladder::RUNGS_MAX
            && self.all().end().get() <= size
    }

    /// How many codewords it has.
    pub fn words(&self) -> u32 {
        u32::from(self.depth).min(self.data)
    }

    /// Data sectors of a codeword.
    pub fn word_data(&self, word: u32) -> u32 {
        let depth = u32::from(self.depth);
        self.data / depth + u32::from(word < self.data % depth)
    }

    /// The codeword of a sector, counted from the first, and which symbol it is there: data symbols come first.
    pub fn symbol(&self, sector: u32) -> WordSymbol {
        let depth = u32::from(self.depth);
        if sector < self.data {
            return WordSymbol { word: sector % depth, symbol: (sector / depth) as usize };
        }
        let at = sector - self.data;
        let word = at % depth;
        WordSymbol { word, symbol: (self.word_data(word) + at / depth) as usize }
    }

    /// The sector of a codeword's symbol, counted from the first.
    pub fn sector(&self, of: WordSymbol) -> u32 {
        let (depth, data) = (u32::from(self.depth), self.word_data(of.word));
        let symbol = of.symbol as u32;
        match symbol.checked_sub(data) {
            None => symbol * depth + of.word,
            Some(row) => self.data + row * depth + of.word,
        }
    }
}

/// Where a page of a file lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagePlace {
    /// In a sector.
    Whole(Lba),
    /// In two.
    Split(SplitPlace),
}

/// A page whose last bytes lie in another sector than the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitPlace {
    /// The sector with all but its last bytes.
    pub primary: Lba,
    /// The one with the last bytes of all pages of the block.
    pub complement: Lba,
    /// The same once more.
    pub twin: Option<Lba>,
    /// Which page of the block it is.
    pub slot: u32,
    /// The layout.
    pub blocks: Blocks,
}

/// Consecutive pages of a file and where they lie: some pages of a coding extent, or all of them. Others of it were cut
/// off or punched out: the code still counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The coding extent.
    pub extent: CodingExtent,
    /// Its pages before the first one of the window.
    pub skip: u32,
    /// Pages of the window.
    pub count: u32,
}

impl Window {
    /// All of a coding extent.
    pub fn whole(extent: CodingExtent) -> Self {
        Self { extent, skip: 0, count: extent.pages() }
    }

    /// Where the window's pages lie.
    pub fn places(&self) -> impl Iterator<Item = PagePlace> {
        let extent = self.extent;
        (self.skip..self.skip + self.count).map(move |page| extent.place(page))
    }

    /// Where its first page begins.
    pub fn first(&self) -> Lba {
        match self.extent.place(self.skip) {
            PagePlace::Whole(lba) => lba,
            PagePlace::Split(place) => place.primary,
        }
    }

    /// A part of it.
    pub fn part(&self, from: u32, count: u32) -> Self {
        assert!(count > 0 && from + count <= self.count, "{count} from {from} on of {self:?}");
        Self { extent: self.extent, skip: self.skip + from, count }
    }

    /// Into a tree's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; WINDOW];
        let mut fields = FieldsMut(&mut bytes);
        fields.put_u64(at::LBA, self.extent.lba.get());
        fields.put_u32(at::DATA, self.extent.data);
        fields.put_u8(at::REDUNDANT, self.extent.redundant);
        fields.put_u8(at::DEPTH, self.extent.depth);
        fields.put_u8(at::KIND, self.extent.kind as u8);
        fields.put_u32(at::SKIP, self.skip);
        fields.put_u32(at::COUNT, self.count);
        bytes
    }

    /// From a tree's bytes; nothing if they cannot be a window on a disk of this size.
    pub fn decode(bytes: &[u8], size: u64) -> Option<Self> {
        let bytes: &[u8; WINDOW] = bytes.try_into().ok()?;
        let fields = Fields(bytes);
        let kind = FileKind::ALL.into_iter().find(|kind| *kind as u8 == fields.u8(at::KIND))?;
        let extent = CodingExtent {
            lba: Lba::new(fields.u64(at::LBA)),
            data: fields.u32(at::DATA),
            redundant: fields.u8(at::REDUNDANT),
            depth: fields.u8(at::DEPTH),
            kind,
        };
        let (skip, count) = (fields.u32(at::SKIP), fields.u32(at::COUNT));
        let is_inside = count > 0
            && extent.is_sane(size)
            && u64::from(skip) + u64::from(count) <= u64::from(extent.pages());
        (bytes[at::ZERO] == 0 && is_inside).then_some(Self { extent, skip, count })
    }
}

/// More data sectors than an extent has: the longest code 64 times woven.
const DATA_MAX: u32 = 1 << 16;

/// A symbol of one of an extent's codewords.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordSymbol {
    /// The codeword, from 0.
    pub word: u32,
    /// The symbol there, from 0.
    pub symbol: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn woven_codewords_have_every_sector_once() {
        for (data, depth) in [(1, 1), (5, 1), (5, 2), (16, 8), (3, 8)] {
            let (lba, kind) = (Lba::new(100), FileKind::Auto);
            let extent = CodingExtent { lba, data, redundant: 3, depth, kind };
            let sectors = extent.all().sectors.get() as u32;
            let mut seen = std::collections::BTreeSet::new();
            for sector in 0..sectors {
                let of = extent.symbol(sector);
                assert!(of.symbol < extent.word_data(of.word) as usize + 3);
                assert_eq!(extent.sector(of), sector);
                seen.insert((of.word, of.symbol));
            }
            assert_eq!(seen.len(), sectors as usize);
            let window = Window::whole(extent);
            assert_eq!(Window::decode(&window.encode(), 1_000), Some(window));
            assert_eq!(Window::decode(&window.encode(), 101), None);
            let beyond = Window { skip: 1, ..window };
            assert_eq!(Window::decode(&beyond.encode(), 1_000), None);
        }
    }

    #[test]
    fn run_of_bad_sectors_hits_woven_codewords_alike() {
        let (lba, kind) = (Lba::new(0), FileKind::Auto);
        let extent = CodingExtent { lba, data: 64, redundant: 2, depth: 8, kind };
        let mut hits = [0; 8];
        (60..76).for_each(|sector| hits[extent.symbol(sector).word as usize] += 1);
        assert_eq!(hits, [2; 8]);
    }
}
