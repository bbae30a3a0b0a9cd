//! Where every sector of an array lies, and which codeword it belongs to.
//!
//! ```text
//!   stripe = one chunk of every drive          3+1, chunk of 2 sectors, e = 1, rotating
//!
//!               drive 0   drive 1   drive 2   drive 3
//!   stripe 0      0 1       2 3       4 5       P       a row of a stripe: e sectors of every
//!   stripe 1      8 9      10 11       P       6 7      drive at the same place; one codeword
//!   stripe 2     16 17       P       12 13    14 15
//! ```
//!
//! Parity moves one drive to the left with each stripe and data begins to the right of it
//! (left-symmetric), so that consecutive chunks visit all drives in turn.
//!
//! A mirror's stripe is one chunk and its copies, on consecutive drives; stripes follow each other without a gap,
//! row after row of chunks. So `raid1` has one stripe in a row, and `raid10` of an odd number of drives has stripes
//! with copies in two rows.
//!
//! ```text
//!   raid1:2, chunk of 2 sectors      raid10:4, the same                raid10:3, the same
//!
//!     drive 0   drive 1            drive 0   1     2     3            drive 0   1     2
//!       0 1       0 1                0 1   0 1   2 3   2 3              0 1   0 1   2 3
//!       2 3       2 3                4 5   4 5   6 7   6 7              2 3   4 5   4 5
//! ```
//!
//! A codeword numbers its sectors as *symbols*: data chunk `d` holds symbols `d*e` to `d*e + e - 1`,
//! redundant chunk `r` those from `(data + r) * e` on. Of a mirror symbol 0 is the data, the others are its
//! copies.

use std::ops::Range;

use levelhead_units::{DriveIdx, DriveSet, Extent, Lba, Sectors};

use crate::shape::{Parity, Spec};

/// Addresses of one array on drives of one size.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    spec: Spec,
    stripes: u64,
}

/// One sector on one drive, counted from where the array's data begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// The drive.
    pub drive: DriveIdx,
    /// The sector on it.
    pub lba: Lba,
}

/// One codeword: a row of a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row {
    /// The stripe's number.
    pub stripe: u64,
    /// The row in the stripe: 0 to `chunk / e - 1`.
    pub row: u32,
}

impl Layout {
    /// The array of this shape over drives with `drive_size` sectors each. What is left of a drive
    /// beyond the last whole chunk is not used.
    pub fn new(spec: Spec, drive_size: Sectors) -> Self {
        let mut layout = Self { spec, stripes: drive_size.get() / spec.chunk().get() };
        layout.stripes = layout.stripes_in(layout.stripes);
        layout
    }

    /// The shape.
    pub const fn spec(&self) -> &Spec {
        &self.spec
    }

    /// How many stripes there are.
    pub const fn stripes(&self) -> u64 {
        self.stripes
    }

    /// Chunks of every drive that stripes may lie on. A chunk beyond the last stripe's is one of them.
    pub fn chunks(&self) -> u64 {
        (self.stripes * self.spec.width() as u64).div_ceil(self.spec.drives() as u64)
    }

    /// How many whole stripes lie in this number of chunks of every drive.
    pub(crate) fn stripes_in(&self, chunks: u64) -> u64 {
        chunks * self.spec.drives() as u64 / self.spec.width() as u64
    }

    /// How many sectors the array has.
    pub fn size(&self) -> Sectors {
        self.spec.chunk() * (self.stripes * self.spec.data() as u64)
    }

    /// Symbols in a codeword.
    pub const fn symbols(&self) -> usize {
        self.spec.width() * self.spec.expansion()
    }

    /// Data symbols in a codeword.
    pub const fn data_symbols(&self) -> usize {
        self.spec.data() * self.spec.expansion()
    }

    /// Rows in a stripe.
    pub fn rows(&self) -> u32 {
        (self.spec.chunk().get() / self.spec.expansion() as u64) as u32
    }

    /// The stripes that the array's sectors `extent` touch.
    pub fn stripes_of(&self, extent: Extent) -> Range<u64> {
        assert!(extent.sectors > Sectors::ZERO, "an empty extent touches no stripe");
        let width = self.spec.chunk().get() * self.spec.data() as u64;
        extent.lba.get() / width..extent.end().get().div_ceil(width)
    }

    /// The codeword and symbol that hold the array's sector `lba`.
    pub fn find(&self, lba: Lba) -> (Row, usize) {
        let chunk = self.spec.chunk().get();
        let e = self.spec.expansion() as u64;
        let (chunk_idx, offset) = (lba.get() / chunk, lba.get() % chunk);
        let data = self.spec.data() as u64;
        let (stripe, slot) = (chunk_idx / data, chunk_idx % data);
        assert!(stripe < self.stripes, "sector {} is past the array's end", lba.get());
        (Row { stripe, row: (offset / e) as u32 }, (slot * e + offset % e) as usize)
    }

    /// The array's sector that a codeword's data symbol is.
    pub fn sector(&self, Row { stripe, row }: Row, symbol: usize) -> Lba {
        assert!(symbol < self.data_symbols(), "symbol {symbol} is redundant");
        let (chunk, e) = (self.spec.chunk().get(), self.spec.expansion());
        let chunk_idx = stripe * self.spec.data() as u64 + (symbol / e) as u64;
        Lba::new(chunk_idx * chunk + u64::from(row) * e as u64 + (symbol % e) as u64)
    }

    /// Where a codeword's symbol lies.
    pub fn cell(&self, Row { stripe, row }: Row, symbol: usize) -> Cell {
        assert!(symbol < self.symbols());
        let e = self.spec.expansion();
        let (drive, chunk) = self.place(stripe, symbol / e);
        let lba = chunk * self.spec.chunk().get() + u64::from(row) * e as u64 + (symbol % e) as u64;
        Cell { drive, lba: Lba::new(lba) }
    }

    /// The codeword and symbol that a sector of a drive holds.
    pub fn symbol(&self, Cell { drive, lba }: Cell) -> (Row, usize) {
        let chunk = self.spec.chunk().get();
        let e = self.spec.expansion() as u64;
        let (chunk_idx, offset) = (lba.get() / chunk, lba.get() % chunk);
        let (stripe, slot) = self.slot(chunk_idx, drive);
        (Row { stripe, row: (offset / e) as u32 }, (slot * e + offset % e) as usize)
    }

    /// Where a drive's chunks of these stripes lie on it: side by side.
    pub(crate) fn extent_on(&self, drive: DriveIdx, stripes: Range<u64>) -> Extent {
        let first = |stripe: u64| match self.spec.is_mirror() {
            true => (stripe * self.spec.width() as u64)
                .saturating_sub(drive.as_usize() as u64)
                .div_ceil(self.spec.drives() as u64),
            false => stripe,
        };
        let (first, end) = (first(stripes.start), first(stripes.end));
        let chunk = self.spec.chunk();
        Extent::new(Lba::new(first * chunk.get()), chunk * (end - first))
    }

    /// The drives that a stripe lies on.
    pub(crate) fn group(&self, stripe: u64) -> DriveSet {
        (0..self.spec.width()).map(|slot| self.place(stripe, slot).0).collect()
    }

    /// The drive that holds chunk `slot` of a stripe, and which of its chunks that is; slots from `data` on are
    /// redundant.
    fn place(&self, stripe: u64, slot: usize) -> (DriveIdx, u64) {
        let drives = self.spec.drives() as u64;
        if self.spec.is_mirror() {
            let at = stripe * self.spec.width() as u64 + slot as u64;
            return (DriveIdx::from_usize((at % drives) as usize), at / drives);
        }
        let drive = (self.origin(stripe) + slot) % drives as usize;
        (DriveIdx::from_usize(drive), stripe)
    }

    /// The stripe and the slot in it that chunk `chunk_idx` of a drive is.
    fn slot(&self, chunk_idx: u64, drive: DriveIdx) -> (u64, u64) {
        let drives = self.spec.drives();
        assert!(drive.as_usize() < drives);
        if self.spec.is_mirror() {
            let width = self.spec.width() as u64;
            let at = chunk_idx * drives as u64 + drive.as_usize() as u64;
            return (at / width, at % width);
        }
        let slot = (drive.as_usize() + drives - self.origin(chunk_idx)) % drives;
        (chunk_idx, slot as u64)
    }

    /// The drive of a stripe's first data chunk.
    fn origin(&self, stripe: u64) -> usize {
        let drives = self.spec.drives();
        match self.spec.parity() {
            Parity::Fixed => 0,
            Parity::Rotating => (drives - (stripe % drives as u64) as usize) % drives,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn layout(text: &str, stripes: u64) -> Layout {
        let spec: Spec = text.parse().unwrap();
        Layout::new(spec, spec.chunk() * stripes)
    }

    #[test]
    fn picture_in_the_module_doc_is_true() {
        let layout = layout("raid5:3+1,chunk=8KiB", 3);
        let at = |lba: u64| {
            let (row, symbol) = layout.find(Lba::new(lba));
            let cell = layout.cell(row, symbol);
            (cell.drive.as_usize(), cell.lba.get())
        };
        assert_eq!([at(0), at(3), at(4)], [(0, 0), (1, 1), (2, 0)]);
        assert_eq!([at(6), at(8), at(11)], [(3, 2), (0, 2), (1, 3)]);
        assert_eq!([at(12), at(14), at(17)], [(2, 4), (3, 4), (0, 5)]);
        assert_eq!(layout.size(), Sectors::new(18));
    }

    #[test]
    fn pictures_of_mirrors_in_the_module_doc_are_true() {
        // What each drive holds, chunk after chunk, as the array's first sectors of these chunks.
        let picture = |text: &str| -> Vec<Vec<u64>> {
            let layout = layout(text, 2);
            let held = |drive: usize, chunk: u64| {
                let drive = DriveIdx::from_usize(drive);
                let (row, _) = layout.symbol(Cell { drive, lba: Lba::new(2 * chunk) });
                2 * row.stripe
            };
            let drives = 0..layout.spec().drives();
            (0..2).map(|chunk| drives.clone().map(|drive| held(drive, chunk)).collect()).collect()
        };
        assert_eq!(picture("raid1:2,chunk=8KiB"), [[0, 0], [2, 2]]);
        assert_eq!(picture("raid10:4,chunk=8KiB"), [[0, 0, 2, 2], [4, 4, 6, 6]]);
        assert_eq!(picture("raid10:3,chunk=8KiB"), [[0, 0, 2], [2, 4, 4]]);
    }

    #[test]
    fn copies_of_one_stripe_lie_on_drives_that_share_it() {
        for text in ["raid1:3,chunk=8KiB", "raid10:6,chunk=8KiB", "raid10:5,chunk=4KiB"] {
            let layout = layout(text, 11);
            let groups: BTreeSet<DriveSet> = layout.spec().groups().collect();
            let found: BTreeSet<DriveSet> =
                (0..layout.stripes()).map(|stripe| layout.group(stripe)).collect();
            assert_eq!(found, groups, "{text}");
        }
    }

    /// Every sector of every drive is exactly one symbol, and every array sector exactly one cell.
    #[test]
    fn addresses_are_a_bijection() {
        for text in [
            "raid0:3,chunk=8KiB",
            "raid4:3+1,chunk=4KiB",
            "raid5:4+1,chunk=12KiB",
            "raid6:4+2,chunk=8KiB",
            "raid6:4+2,chunk=8KiB,parity=fixed",
            "eraid:5+1,e=2,chunk=8KiB",
            "eraid:3+3,e=3,chunk=24KiB",
            "eraid:2+1,e=2,chunk=16KiB,parity=fixed",
            "raid1:2,chunk=8KiB",
            "raid1:4,chunk=4KiB",
            "raid10:4,chunk=8KiB",
            "raid10:6,chunk=12KiB",
            "raid10:3,chunk=8KiB",
            "raid10:7,chunk=4KiB",
        ] {
            let layout = layout(text, 13);
            let mut cells = BTreeSet::new();
            for lba in 0..layout.size().get() {
                let (row, symbol) = layout.find(Lba::new(lba));
                assert!(symbol < layout.data_symbols());
                assert_eq!(layout.sector(row, symbol), Lba::new(lba), "{text}");
                let cell = layout.cell(row, symbol);
                assert_eq!(layout.symbol(cell), (row, symbol), "{text}");
                assert!(cells.insert(cell), "{text}: {cell:?} holds two sectors");
            }
            for stripe in 0..layout.stripes() {
                for row in 0..layout.rows() {
                    for symbol in layout.data_symbols()..layout.symbols() {
                        assert!(cells.insert(layout.cell(Row { stripe, row }, symbol)), "{text}");
                    }
                }
            }
            let spec = layout.spec();
            // Of an odd number of chunks of two copies each one chunk is left.
            let left = 13 * spec.drives() as u64 % spec.width() as u64;
            let chunks = 13 * spec.drives() as u64 - left;
            assert_eq!(cells.len() as u64, chunks * spec.chunk().get(), "{text}");
            assert_eq!(layout.chunks(), 13, "{text}");
        }
    }

    #[test]
    fn chunks_of_stripes_lie_side_by_side_on_a_drive() {
        for text in [
            "raid5:4+1,chunk=12KiB",
            "raid1:3,chunk=4KiB",
            "raid10:4,chunk=8KiB",
            "raid10:5,chunk=8KiB",
        ] {
            let layout = layout(text, 13);
            for drive in (0..layout.spec().drives()).map(DriveIdx::from_usize) {
                for (first, end) in [(0, layout.stripes()), (0, 1), (3, 8), (7, 7)] {
                    let found = layout.extent_on(drive, first..end);
                    let is_there = |lba: &Lba| {
                        let (row, _) = layout.symbol(Cell { drive, lba: *lba });
                        (first..end).contains(&row.stripe)
                    };
                    let all = layout.chunks() * layout.spec().chunk().get();
                    let expected: Vec<Lba> = (0..all).map(Lba::new).filter(is_there).collect();
                    assert_eq!(
                        found.iter().collect::<Vec<_>>(),
                        expected,
                        "{text}: {first}..{end}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_codeword_takes_e_consecutive_sectors_of_every_drive() {
        let layout = layout("eraid:5+1,e=2,chunk=16KiB", 7);
        let mut sectors = vec![Vec::new(); 6];
        for symbol in 0..layout.symbols() {
            let cell = layout.cell(Row { stripe: 5, row: 1 }, symbol);
            sectors[cell.drive.as_usize()].push(cell.lba.get());
        }
        assert!(sectors.iter().all(|lbas| *lbas == [22, 23]), "{sectors:?}");
    }
}
