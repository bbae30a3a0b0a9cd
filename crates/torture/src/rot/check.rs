//! Whether every drive holds what it should, once everything was scrubbed and nothing is under way.

use levelhead_array::{BufId, Place, Redundancy, Row, TagSector};
use levelhead_block::Buf;
use levelhead_bytes::Buffers;
use levelhead_erasure::Kernel;
use levelhead_units::{DriveIdx, DriveSet, Lba, SECTOR_SIZE, Sectors};

use super::life::Life;

/// The only buffer.
const OWN: BufId = BufId::Own(0);

impl Life<'_> {
    /// Data is what was read last, and redundancy counts it.
    pub(super) fn compare(&mut self) -> Result<(), String> {
        let layout = *self.machine.array.layout();
        for stripe in 0..layout.stripes() {
            for row in 0..layout.rows() {
                self.compare_row(Row { stripe, row })?;
            }
        }
        Ok(())
    }

    /// Every tag sector is one.
    pub(super) fn compare_tags(&self) -> Result<(), String> {
        let drives = DriveSet::first(self.machine.array.layout().spec().drives() as u8);
        let mut drives = drives.without(self.machine.gone()).iter();
        drives.try_for_each(|drive| self.compare_tags_of(drive))
    }

    fn compare_row(&mut self, row: Row) -> Result<(), String> {
        let layout = *self.machine.array.layout();
        let gone = self.machine.gone();
        let data = layout.data_symbols();
        let copies = if layout.spec().is_mirror() { layout.symbols() } else { data };
        for symbol in 0..copies {
            let cell = layout.cell(row, symbol);
            if !gone.contains(cell.drive) {
                let sector = layout.sector(row, if layout.spec().is_mirror() { 0 } else { symbol });
                self.machine
                    .is_right(sector, cell)
                    .map_err(|how| format!("{cell:?} is not right: {how}"))?;
            }
        }
        let mut cells = (0..layout.symbols()).map(|symbol| layout.cell(row, symbol));
        let is_partial = cells.any(|cell| gone.contains(cell.drive));
        if layout.spec().is_mirror() || is_partial || self.is_damaged(row) {
            return Ok(());
        }
        let mut buf = Buf::zeroed(Sectors::new(layout.symbols() as u64));
        for symbol in 0..layout.symbols() {
            let cell = layout.cell(row, symbol);
            let sector = self.machine.disk(cell.drive).sector(self.machine.place_of(cell));
            buf.as_mut_slice()[symbol * SECTOR_SIZE..][..SECTOR_SIZE].copy_from_slice(sector);
        }
        let mut buffers = Buffers::new(Kernel::best());
        buffers.insert(OWN, buf);
        let code = Redundancy::of(&layout).expect("all layouts are redundant");
        let at = |symbol: usize| Place { buf: OWN, sector: symbol as u32 };
        for symbol in data..layout.symbols() {
            let mut terms = vec![(1, at(symbol))];
            terms.extend(
                (0..data).map(|column| (code.coefficient(symbol - data, column), at(column))),
            );
            if !buffers.is_zero_sum(&terms) {
                let cell = layout.cell(row, symbol);
                return Err(format!("redundancy of {row:?} in {cell:?} is not right"));
            }
        }
        Ok(())
    }

    fn is_damaged(&self, row: Row) -> bool {
        let layout = self.machine.array.layout();
        let mut sectors = (0..layout.data_symbols()).map(|symbol| layout.sector(row, symbol));
        sectors.any(|sector| self.machine.promise.is_given_up(sector.get()))
    }

    fn compare_tags_of(&self, drive: DriveIdx) -> Result<(), String> {
        let area = self.machine.area();
        let mut lba = Lba::ZERO;
        while area.groups().is_some() && lba < Lba::ZERO + area.size() {
            let place = area.tag_of(lba).expect("it has groups");
            let tag = TagSector::decode(self.machine.disk(drive).sector(place.lba));
            if tag.is_none_or(|tag| (tag.drive, tag.group) != (drive, place.group)) {
                return Err(format!(
                    "the tag sector of group {} of drive {drive} is none",
                    place.group
                ));
            }
            lba = place.covers.end();
        }
        Ok(())
    }
}
