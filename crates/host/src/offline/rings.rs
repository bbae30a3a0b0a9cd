//! Reading the rings of an array's journal, and finding out what they lay over the places.

use std::collections::BTreeSet;

use levelhead_array::Cell;
use levelhead_array::journal::record::{FoundRecord, RingName, examine};
use levelhead_array::metadata::{Kept, State};
use levelhead_array::offline::{CutOff, Overlay};
use levelhead_block::{Buf, SectorSet};
use levelhead_units::{DriveIdx, Extent, Lba, Sectors};

use super::reading::read_sectors;
use super::{Offline, OfflineDrive};

/// What was found on the rings.
#[derive(Debug, Default)]
pub(crate) struct Rings {
    pub(crate) records: Vec<(DriveIdx, FoundRecord)>,
    /// Sectors of rings that drives did not give, as the drives count them.
    pub(crate) unreadable: Vec<(DriveIdx, Lba)>,
    /// Sectors that were read.
    pub(crate) sectors: Sectors,
}

impl Rings {
    /// Reads the rings of all drives that are there, side by side. `note` is told how many sectors were read.
    pub(crate) fn read(array: &Offline, note: &(dyn Fn(Sectors) + Sync)) -> Self {
        if array.metadata.journal.is_none() {
            return Self::default();
        }
        std::thread::scope(|scope| {
            let there: Vec<(DriveIdx, &OfflineDrive)> = array.there().collect();
            let threads = there.into_iter().map(|(drive, of)| {
                let member = array.metadata.members[drive.as_usize()].id;
                let name = RingName { array: array.metadata.array, member };
                let read = move || Self::of(drive, of, name, note);
                let thread = std::thread::Builder::new().name("rings".into());
                // Without another thread it is this one that reads.
                thread.spawn_scoped(scope, read).map_err(|_| read())
            });
            let threads: Vec<_> = threads.collect();
            let mut all = Self::default();
            for thread in threads {
                let own = match thread {
                    Ok(thread) => {
                        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                    }
                    Err(own) => own,
                };
                all.records.extend(own.records);
                all.unreadable.extend(own.unreadable);
                all.sectors += own.sectors;
            }
            all
        })
    }

    fn of(
        drive: DriveIdx,
        of: &OfflineDrive,
        name: RingName,
        note: &(dyn Fn(Sectors) + Sync),
    ) -> Self {
        let mut rings = Self::default();
        for Extent { lba, sectors } in of.own.journal() {
            let mut buf = Buf::zeroed(sectors);
            let mut bad: Vec<u32> = Vec::new();
            read_sectors(&of.opened, lba, buf.as_mut_slice(), |at| bad.push(at as u32));
            let unreadable: SectorSet = bad.iter().copied().collect();
            let found = examine(buf.as_slice(), lba, &unreadable, name);
            rings.records.extend(found.into_iter().map(|found| (drive, found)));
            let at = |&at: &u32| (drive, lba + Sectors::new(at.into()));
            rings.unreadable.extend(bad.iter().map(at));
            rings.sectors += sectors;
            note(sectors);
        }
        rings
    }

    /// What the rings lay over the places: nothing, if the array was stopped in good order.
    pub(crate) fn overlay(&self, array: &Offline) -> Overlay {
        let is_open = array.metadata.state == State::Dirty;
        let Some(Kept { first: floor, .. }) = array.metadata.journal.filter(|_| is_open) else {
            return Overlay::default();
        };
        let cut_off = CutOff {
            layout: &array.layout,
            area: &array.area,
            present: array.present(),
            trusted: array.trusted,
            floor,
            damaged: &array.metadata.damaged,
        };
        let mut unreadable: BTreeSet<Cell> = BTreeSet::new();
        loop {
            let overlay = Overlay::of(&self.records, cut_off, &unreadable);
            let before = unreadable.len();
            unreadable.extend(overlay.needed().filter(|&cell| !is_given(array, cell)));
            if unreadable.len() == before {
                return overlay;
            }
        }
    }
}

fn is_given(array: &Offline, cell: Cell) -> bool {
    let Some(drive) = &array.drives[cell.drive.as_usize()] else { return false };
    let at = array.area.on_drive(Extent::new(cell.lba, Sectors::new(1)));
    drive.opened.read(at.lba, Buf::zeroed(Sectors::new(1)).as_mut_slice()).is_ok()
}
