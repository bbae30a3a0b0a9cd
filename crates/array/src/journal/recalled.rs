//! Where on the rings the contents of sectors lie that the journal has put in place.
//!
//! What is over is not written over at once: a piece of a ring is written from its beginning to its end, and only then from its
//! beginning again. So what was in the journal can be had from there long after, unless it has been written over; its checksum
//! says whether it has. Nothing is kept for this on the rings, and nothing waits for it.

use levelhead_units::{DriveIdx, Extent, Lba, Sectors};

use super::Journal;
use super::contents::Stored;
use super::placer::Placing;
use super::ring::Entry;
use super::transaction::{Manner, Transaction};
use crate::core::Core;
use crate::shape::Cell;
use crate::verify::on_rings::RingSector;

impl Transaction {
    /// A record of it is durable.
    pub(super) fn note_durable(&mut self, entry: &Entry) {
        match self.manner {
            Manner::Payload => self.durable.push(*entry),
            Manner::Intent => {}
        }
    }

    /// Where a ring has what this gave to a sector: another one than its own drive's, where there is one.
    fn on_ring(&self, cell: Cell) -> Option<RingSector> {
        let durable = self.durable.iter().filter(|entry| entry.subject == cell.drive);
        let entry = durable.min_by_key(|entry| entry.ring == cell.drive)?;
        // Its cells are in order.
        let up_to = |cell: Cell| self.cells.partition_point(|stored| stored.cell < cell);
        let before = up_to(cell) - up_to(Cell { lba: Lba::ZERO, ..cell });
        let is_before =
            |stored: &&Stored| stored.cell.drive == cell.drive && stored.cell.lba < cell.lba;
        let absent = self.absent.iter().filter(is_before).count();
        // The header comes first.
        let at = Sectors::new((1 + before + absent) as u64);
        Some(RingSector { ring: entry.ring, lba: entry.place + at })
    }
}

impl Journal {
    /// Sectors have come to their places from here: where that is known of them which is to be read back, it is noted where the
    /// rings have them.
    pub(super) fn note_recallable(&self, core: &mut Core, drive: DriveIdx, cells: &[Placing]) {
        let (Some(first), Some(last)) = (cells.first(), cells.last()) else { return };
        let extent = Extent::new(first.lba, last.lba - first.lba + Sectors::new(1));
        if !core.verify.records.is_without_bytes(Cell { drive, lba: first.lba }) {
            return;
        }
        let on_ring = |placing: &Placing| {
            let cell = Cell { drive, lba: placing.lba };
            self.open.get(&placing.id).and_then(|transaction| transaction.on_ring(cell))
        };
        core.verify.records.set_on_rings(drive, extent, cells.iter().map(on_ring));
    }
}
