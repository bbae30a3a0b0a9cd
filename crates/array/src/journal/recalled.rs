//! Where on the rings the contents of sectors lie that the journal has put in place.
//!
//! What is over is not written over at once: a piece of a ring is written from its beginning to its end, and only then from its
//! beginning again. So what was in the journal can be had from there long after, unless it has been written over; its checksum
//! says whether it has. Nothing is kept for this on the rings, and nothing waits for it.

use levelhead_units::{DriveIdx, Extent, Sectors};

use super::Journal;
use super::placer::Placing;
use super::ring::Entry;
use super::transaction::{Manner, Transaction};
use crate::core::Core;
use crate::shape::Cell;
use crate::verify::on_rings::RingSector;

impl Transaction {
    /// A record of it is durable.
    pub(super) fn note_durable(&mut self, entry: &Entry) {
        self.records.note_durable(entry.ring, entry.subject);
        match self.manner {
            Manner::Payload => self.records.keep(*entry),
            Manner::Intent => {}
        }
    }

    /// Where a ring has what this gave to a sector: another one than its own drive's, where there is one.
    fn on_ring(&self, cell: Cell) -> Option<RingSector> {
        let entry = self.records.durable_of(cell.drive)?;
        // The header comes first.
        let at = Sectors::new((1 + self.changes.count_before(cell)) as u64);
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
            self.transactions
                .open
                .get(&placing.id)
                .and_then(|transaction| transaction.on_ring(cell))
        };
        core.verify.records.set_on_rings(drive, extent, cells.iter().map(on_ring));
    }
}

#[cfg(test)]
mod tests {
    use levelhead_units::Lba;

    use super::*;
    use crate::journal::transaction::tests::{cell, payload};

    /// A drive's sectors lie behind the header in their order, with those that no drive takes among them.
    #[test]
    fn a_sector_is_on_a_ring_behind_the_others_that_its_drive_was_given() {
        let cells = [cell(0, 4), cell(0, 9), cell(1, 4), cell(1, 5), cell(1, 9)];
        let mut transaction = payload(&cells, &[cell(1, 7)]);
        for (ring, subject, place) in [(0, 0, 100), (1, 1, 200), (2, 1, 300)] {
            let [ring, subject] = [ring, subject].map(DriveIdx::new);
            let (place, sectors) = (Lba::new(place), transaction.record_sectors(subject));
            transaction.note_durable(&Entry { id: 1, ring, subject, place, sectors });
        }
        let at =
            |ring: u8, lba: u64| Some(RingSector { ring: DriveIdx::new(ring), lba: Lba::new(lba) });
        let on_ring = |cell: Cell| transaction.on_ring(cell);
        assert_eq!([4, 9].map(|lba| on_ring(cell(0, lba))), [at(0, 101), at(0, 102)]);
        // Another ring than the drive's own, which may be what is in doubt.
        assert_eq!(on_ring(cell(1, 4)), at(2, 301));
        assert_eq!([5, 9].map(|lba| on_ring(cell(1, lba))), [at(2, 302), at(2, 304)]);
        assert_eq!(on_ring(cell(2, 4)), None);
    }
}
