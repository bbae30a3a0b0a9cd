//! What one write of an array does to its drives, without any protection.

use std::collections::{BTreeMap, BTreeSet};

use levelhead_array::{Area, Layout, Row};
use levelhead_units::{DriveIdx, Extent, Lba, Sectors};

/// Commands of one drive: which, and what they cover.
pub(super) type Piece = (usize, Extent);

/// One write, as commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Old contents that must be known.
    pub(super) reads: Vec<Piece>,
    /// What is written in place, data and redundancy.
    pub(super) places: Vec<Piece>,
    /// For each stripe the drive of its first redundant chunk, and the rows of which the data stay in part.
    pub(super) stripes: Vec<PlannedStripe>,
}

/// One stripe of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlannedStripe {
    /// Its number.
    pub(super) number: u64,
    /// The drive of its first redundant chunk.
    pub(super) parity: usize,
    /// Rows of it that are not wholly written.
    pub(super) rows_partial: u64,
}

impl Plan {
    /// A write of `extent`: rows that it covers are written whole, of others the old data and the old redundancy are
    /// read first.
    pub(super) fn of(layout: &Layout, area: &Area, extent: Extent) -> Self {
        let data = layout.data_symbols();
        let mut symbols: BTreeMap<Row, BTreeSet<usize>> = BTreeMap::new();
        for lba in extent.iter() {
            let (row, symbol) = layout.find(lba);
            symbols.entry(row).or_default().insert(symbol);
        }
        let (mut reads, mut places) = (BTreeSet::new(), BTreeSet::new());
        let mut stripes: BTreeMap<u64, PlannedStripe> = BTreeMap::new();
        for (&row, written) in &symbols {
            let redundant = data..layout.symbols();
            let changed: Vec<(DriveIdx, Lba)> = written
                .iter()
                .copied()
                .chain(redundant)
                .map(|symbol| layout.cell(row, symbol))
                .map(|cell| (cell.drive, cell.lba))
                .collect();
            places.extend(&changed);
            let parity = layout.cell(row, data).drive.as_usize();
            let stripe = stripes.entry(row.stripe).or_insert(PlannedStripe {
                number: row.stripe,
                parity,
                rows_partial: 0,
            });
            if written.len() < data {
                stripe.rows_partial += 1;
                reads.extend(&changed);
            }
        }
        Self {
            reads: runs(&reads, area),
            places: runs(&places, area),
            stripes: stripes.into_values().collect(),
        }
    }
}

/// Neighbours on a drive are one command.
fn runs(cells: &BTreeSet<(DriveIdx, Lba)>, area: &Area) -> Vec<Piece> {
    let one = Sectors::new(1);
    let mut pieces: Vec<(DriveIdx, Extent)> = Vec::new();
    for &(drive, lba) in cells {
        match pieces.last_mut() {
            Some((last, extent))
                if *last == drive && extent.end() == lba && area.are_neighbours(lba, lba) =>
            {
                extent.sectors += one;
            }
            Some(_) | None => pieces.push((drive, Extent::new(lba, one))),
        }
    }
    pieces.into_iter().map(|(drive, extent)| (drive.as_usize(), area.on_drive(extent))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(lba: u64, sectors: u64) -> Plan {
        let spec = "raid5:5+1,chunk=64KiB".parse().unwrap();
        let size = Sectors::new(1_600);
        let area = Area::plain(Extent::new(Lba::new(256), size));
        Plan::of(&Layout::new(spec, size), &area, Extent::new(Lba::new(lba), Sectors::new(sectors)))
    }

    #[test]
    fn one_sector_is_read_and_written_with_its_parity() {
        let plan = plan(1, 1);
        let at = |drive| (drive, Extent::new(Lba::new(257), Sectors::new(1)));
        assert_eq!(plan.places, [at(0), at(5)]);
        assert_eq!(plan.reads, plan.places);
        assert_eq!(plan.stripes, [PlannedStripe { number: 0, parity: 5, rows_partial: 1 }]);
    }

    #[test]
    fn full_stripes_read_nothing_and_are_one_command_a_drive() {
        let plan = plan(80, 160);
        assert_eq!(plan.reads, []);
        let chunks = |drive| (drive, Extent::new(Lba::new(272), Sectors::new(32)));
        assert_eq!(plan.places, [0, 1, 2, 3, 4, 5].map(chunks));
        assert_eq!(plan.stripes.len(), 2);
        assert!(plan.stripes.iter().all(|stripe| stripe.rows_partial == 0));
    }
}
