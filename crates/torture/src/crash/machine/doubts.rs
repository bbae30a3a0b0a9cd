//! What a machine may be held to whose disks have not stored something: see [`lies`](super::super::lies).

use levelhead_array::{Cell, Row};
use levelhead_units::{DriveIdx, Extent, Lba, Sectors};

use super::super::lies::Doubts;
use super::Machine;

impl Machine {
    /// Those that a cut would leave now.
    pub(super) fn doubts_now(&self) -> Doubts {
        let mut doubts = self.doubts.clone();
        let rows = self.rows().filter(|&row| {
            let mut cells = self.cells(row);
            cells.any(|(drive, lba)| self.disks[drive.as_usize()].unstored().any(|at| at == lba))
        });
        doubts.rows.extend(rows);
        let others = self.array.lost().or(self.array.sat_out());
        doubts.is_computed = doubts.is_some() && (doubts.is_computed || !others.is_empty());
        doubts
    }

    /// Whether a disk has something else of a doubtful codeword than was written there last.
    pub(crate) fn has_unstored(&self) -> bool {
        let is_stale = |(drive, lba): (DriveIdx, Lba)| self.disks[drive.as_usize()].is_stale(lba);
        self.doubts.rows.iter().any(|&row| self.cells(row).any(is_stale))
    }

    fn rows(&self) -> impl Iterator<Item = Row> {
        let layout = self.array.layout();
        let rows = layout.rows();
        (0..layout.stripes()).flat_map(move |stripe| (0..rows).map(move |row| Row { stripe, row }))
    }

    fn cells(&self, row: Row) -> impl Iterator<Item = (DriveIdx, Lba)> {
        let layout = self.array.layout();
        let cell = move |symbol| {
            let cell = layout.cell(row, symbol);
            (cell.drive, self.liar.place(cell))
        };
        (0..layout.symbols()).map(cell)
    }

    /// Returns whether another disk may have been computed from a doubtful codeword; one that is missing now may be.
    pub(super) fn note_computed(&mut self) -> bool {
        let others = self.array.lost().or(self.array.sat_out());
        self.doubts.is_computed |= self.doubts.is_some() && !others.is_empty();
        self.doubts.is_computed
    }

    /// Nothing is promised of sectors of doubtful codewords, but where their own disks say what they are.
    pub(super) fn excuse(&mut self) {
        let is_computed = self.note_computed();
        let layout = self.array.layout();
        let mut excused = Vec::new();
        for &row in &self.doubts.rows {
            for symbol in 0..layout.data_symbols() {
                let own: Vec<usize> = match layout.spec().is_mirror() {
                    true => (0..layout.symbols()).collect(),
                    false => vec![symbol],
                };
                let is_stored = |symbol: usize| {
                    let cell = layout.cell(row, symbol);
                    !self.disks[cell.drive.as_usize()].is_stale(self.liar.place(cell))
                };
                if is_computed || !own.into_iter().all(is_stored) {
                    excused.push(layout.sector(row, symbol));
                }
            }
        }
        self.promise.excuse(excused);
    }

    /// A write was found that was not stored: it was not, at both ends of what was found.
    pub(super) fn note_flawed(&mut self, drive: DriveIdx, extent: Extent) {
        let disk = &self.disks[drive.as_usize()];
        let last = extent.lba + (extent.sectors - Sectors::new(1));
        let is_stale = |lba| disk.is_stale(self.liar.place(Cell { drive, lba }));
        if !is_stale(extent.lba) || !is_stale(last) {
            self.note(Err(format!("{extent:?} of drive {drive} was found flawed, and is stored")));
        }
    }
}
