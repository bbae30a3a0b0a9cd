//! The sectors of one window as they are to be taken: in place, or as the journal has them; and which are not to be
//! had.

use std::collections::{BTreeMap, BTreeSet};

use levelhead_array::offline::{Content, Overlay};
use levelhead_array::{Cell, Layout, Row};
use levelhead_block::Buf;
use levelhead_erasure::SymbolSet;
use levelhead_units::{DriveIdx, SECTOR_SIZE, Sectors};

use super::Offline;
use super::reading::{Proof, Stretch};
use super::sums::SumsChecked;
use super::window::Window;

/// See the module.
pub(crate) struct Places<'a> {
    layout: &'a Layout,
    pub(crate) window: Window,
    /// What each drive that is there has of the window.
    stretches: Vec<Option<Stretch>>,
    /// Sectors that are not to be had from a drive that is there: it did not give them, or they are elsewhere.
    erased: Vec<BTreeSet<usize>>,
    /// Sectors of drives that are not there which redundancy counts as zeroes.
    zeroes: Vec<BTreeSet<usize>>,
    /// Sectors that the journal has.
    laid_over: Vec<BTreeSet<usize>>,
    /// Those of them that are of drives that are not there.
    recalled: BTreeMap<Cell, Buf>,
    /// Its sectors with checksums.
    pub(crate) sums: SumsChecked,
    is_whole: bool,
}

impl<'a> Places<'a> {
    /// Lays the journal over what was read.
    pub(crate) fn new(
        array: &'a Offline,
        overlay: &Overlay,
        window: Window,
        mut stretches: Vec<Option<Stretch>>,
    ) -> Self {
        let mut erased: Vec<BTreeSet<usize>> = Vec::new();
        let mut laid_over: Vec<BTreeSet<usize>> = Vec::new();
        let mut zeroes: Vec<BTreeSet<usize>> = Vec::new();
        let mut recalled = BTreeMap::new();
        let mut sums = SumsChecked::default();
        for (at, stretch) in stretches.iter_mut().enumerate() {
            let drive = DriveIdx::from_usize(at);
            let (mut gone, mut over) = (BTreeSet::new(), BTreeSet::new());
            let listed = Listed { array, overlay, window: &window, drive };
            zeroes.push(if stretch.is_none() { listed.zeroes() } else { BTreeSet::new() });
            let known = window
                .starts()
                .flat_map(|start| overlay.between(drive, start, start + Sectors::new(window.len)));
            let known = known.map(|(lba, content)| {
                (window.index(Cell { drive, lba }), sector_of(array, content))
            });
            if let Some(Stretch { buf, bad, proofs, bad_tags }) = stretch {
                gone.clone_from(bad);
                for (index, proof) in proofs.iter_mut().enumerate() {
                    let cell = Cell { drive, lba: window.lba(index) };
                    *proof = proof_of(array, overlay, cell, *proof);
                    if matches!(proof, Proof::Corrupt(_)) {
                        gone.insert(index);
                    }
                }
                for (index, sector) in known {
                    let Some(sector) = sector else {
                        gone.insert(index);
                        continue;
                    };
                    buf.part_mut(index, 1).copy_from_slice(sector.as_slice());
                    gone.remove(&index);
                    over.insert(index);
                    set(proofs, index, Proof::Match);
                }
                listed.take(&over, buf, &mut gone, proofs);
                sums.count(proofs, bad_tags);
            } else {
                // A start computes from it, too.
                for (index, sector) in known {
                    let Some(sector) = sector else { continue };
                    recalled.insert(Cell { drive, lba: window.lba(index) }, sector);
                    over.insert(index);
                }
            }
            erased.push(gone);
            laid_over.push(over);
        }
        let is_whole =
            stretches.iter().all(Option::is_some) && erased.iter().all(BTreeSet::is_empty);
        let layout = &array.layout;
        Self { layout, window, stretches, erased, zeroes, laid_over, recalled, sums, is_whole }
    }

    /// What the checksum of a symbol says of it, where the array has checksums and the drive is there.
    pub(crate) fn proof(&self, row: Row, symbol: usize) -> Option<Proof> {
        let cell = self.layout.cell(row, symbol);
        let stretch = self.stretches[cell.drive.as_usize()].as_ref()?;
        stretch.proofs.get(self.window.index(cell)).copied()
    }

    /// The symbols of a codeword that do not match their checksums: they are not to be had, and yet have bytes.
    pub(crate) fn corrupt(&self, row: Row) -> SymbolSet {
        if self.sums.corrupt == 0 {
            return SymbolSet::EMPTY;
        }
        let is_one = |&symbol: &usize| matches!(self.proof(row, symbol), Some(Proof::Corrupt(_)));
        (0..self.layout.symbols()).filter(is_one).collect()
    }

    /// The symbols of a codeword that match their checksums.
    pub(crate) fn proven(&self, row: Row) -> SymbolSet {
        if self.sums.compared == 0 {
            return SymbolSet::EMPTY;
        }
        let is_one = |&symbol: &usize| self.proof(row, symbol) == Some(Proof::Match);
        (0..self.layout.symbols()).filter(is_one).collect()
    }

    /// The codewords that lie in the window, stripe after stripe.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Row> + use<> {
        let e = self.layout.spec().expansion() as u64;
        let Window { offset, len, .. } = self.window;
        let rows = offset / e..(offset + len) / e;
        self.window
            .stripes(self.layout)
            .flat_map(move |stripe| rows.clone().map(move |row| Row { stripe, row: row as u32 }))
    }

    /// The symbols of a codeword that are to be had.
    pub(crate) fn had(&self, row: Row) -> SymbolSet {
        if self.is_whole {
            return SymbolSet::first(self.layout.symbols());
        }
        let is_had = |&symbol: &usize| {
            let cell = self.layout.cell(row, symbol);
            let (at, index) = (cell.drive.as_usize(), self.window.index(cell));
            match self.stretches[at] {
                Some(_) => !self.erased[at].contains(&index),
                None => self.zeroes[at].contains(&index) || self.recalled.contains_key(&cell),
            }
        };
        (0..self.layout.symbols()).filter(is_had).collect()
    }

    /// The bytes of a symbol that is to be had.
    pub(crate) fn bytes(&self, row: Row, symbol: usize) -> &[u8] {
        let cell = self.layout.cell(row, symbol);
        let (at, index) = (cell.drive.as_usize(), self.window.index(cell));
        match (&self.stretches[at], self.recalled.get(&cell)) {
            (Some(stretch), _) => stretch.buf.part(index, 1),
            (None, Some(sector)) => sector.as_slice(),
            (None, None) => {
                assert!(self.zeroes[at].contains(&index), "the symbol is to be had");
                &[0; SECTOR_SIZE]
            }
        }
    }

    /// Whether a sector is as the journal has it.
    pub(crate) fn is_laid_over(&self, cell: Cell) -> bool {
        self.laid_over[cell.drive.as_usize()].contains(&self.window.index(cell))
    }

    /// Sectors of drives that were read in vain, whether or not something is stored there.
    pub(crate) fn bad(&self) -> impl Iterator<Item = Cell> {
        self.stretches.iter().enumerate().flat_map(move |(at, stretch)| {
            let bad = stretch.iter().flat_map(|stretch| &stretch.bad);
            let drive = DriveIdx::from_usize(at);
            bad.map(move |&index| Cell { drive, lba: self.window.lba(index) })
        })
    }

    /// The buffers of the drives, to be filled again.
    pub(crate) fn into_stretches(self) -> Vec<Option<Stretch>> {
        self.stretches
    }
}

/// Sectors of a drive that are on the list of damaged ones.
struct Listed<'a> {
    array: &'a Offline,
    overlay: &'a Overlay,
    window: &'a Window,
    drive: DriveIdx,
}

impl Listed<'_> {
    /// Whether redundancy counts a sector on the list as zeroes.
    fn is_zero(&self, cell: Cell) -> bool {
        let layout = &self.array.layout;
        let is_data = layout.symbol(cell).1 < layout.data_symbols();
        is_data && !layout.spec().is_mirror() && !self.array.metadata.damaged.is_widened()
    }

    /// The data of a drive that is not there which counts as zeroes all the same.
    fn zeroes(&self) -> BTreeSet<usize> {
        let Self { array, overlay, window, drive } = *self;
        // Drives for the journal have no data.
        if array.metadata.damaged.is_empty() || !array.layout.spec().data_drives().contains(drive) {
            return BTreeSet::new();
        }
        let is_one = |index: &usize| {
            let cell = Cell { drive, lba: window.lba(*index) };
            array.metadata.damaged.covers(cell) && !overlay.is_changed(cell) && self.is_zero(cell)
        };
        (0..window.sectors().as_usize()).filter(is_one).collect()
    }

    /// Data counts as zeroes, and what is redundant as not there, as do all copies of a mirror's sector, and data where
    /// the list was full once. What the journal has is newer than the list.
    fn take(
        &self,
        over: &BTreeSet<usize>,
        buf: &mut Buf,
        gone: &mut BTreeSet<usize>,
        proofs: &mut [Proof],
    ) {
        let Self { array, overlay, window, drive } = *self;
        if array.metadata.damaged.is_empty() {
            return;
        }
        for index in (0..window.sectors().as_usize()).filter(|index| !over.contains(index)) {
            let cell = Cell { drive, lba: window.lba(index) };
            if !array.metadata.damaged.covers(cell) || overlay.is_made_right(cell) {
                continue;
            }
            set(proofs, index, Proof::Exempt);
            if self.is_zero(cell) {
                buf.part_mut(index, 1).fill(0);
                gone.remove(&index);
            } else {
                gone.insert(index);
            }
        }
    }
}

/// What the checksum of a sector says as far as a start would compare it: where redundancy is valid, no intent may have been cut off,
/// and the journal has nothing newer.
fn proof_of(array: &Offline, overlay: &Overlay, cell: Cell, proof: Proof) -> Proof {
    let (row, _) = array.layout.symbol(cell);
    let is_compared = row.stripe < array.trusted.min(array.layout.stripes())
        && !overlay.is_announced(row)
        && !overlay.is_changed(cell);
    if is_compared { proof } else { Proof::Exempt }
}

fn set(proofs: &mut [Proof], index: usize, proof: Proof) {
    if let Some(place) = proofs.get_mut(index) {
        *place = proof;
    }
}

/// What the journal has of a sector, if it can be read.
fn sector_of(array: &Offline, content: Content) -> Option<Buf> {
    let Content::Ring { drive, lba } = content else { return None };
    let drive = array.drives[drive.as_usize()].as_ref()?;
    let mut sector = Buf::zeroed(Sectors::new(1));
    drive.opened.read(lba, sector.as_mut_slice()).ok()?;
    Some(sector)
}
