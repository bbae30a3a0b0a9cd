//! Where the sectors that a read asks for lie in the buffer that it fills: tag sectors may lie between them, and what lies
//! before the first one.
//!
//! ```text
//!   asked for, as the layout counts       0 1 2 3 4 5
//!   the buffer, as the drive has it   t . 0 1 2 t 3 4 5
//! ```
//!
//! # Invariants
//!
//! - SP1. Operations know sectors by their offsets in what they asked for, and their buffers by [`Spread::place`] alone. So does
//!   the outcome that they are given: what the drive says of other sectors is not in it.

use levelhead_block::{BufId, Outcome, Place, SectorSet, Segment};
use levelhead_units::{Extent, Lba};

use crate::shape::Area;

/// See the module. Of a read between whose sectors nothing lies it is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spread {
    /// The sectors that lie side by side in both.
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    /// The offset of the first one in what was asked for, and in the buffer.
    asked: u32,
    filled: u32,
    sectors: u32,
}

impl Spread {
    /// That of these sectors, as the layout counts them, in a buffer for these of the drive.
    pub(crate) fn of(area: &Area, asked: Extent, filled: Extent) -> Self {
        if asked.sectors == filled.sectors {
            return Self::default();
        }
        let offset = |lba: Lba, of: Extent| (lba - of.lba).get() as u32;
        let parts = area.pieces(asked).into_iter().map(|piece| Part {
            asked: offset(piece.counted.lba, asked),
            filled: offset(piece.lba, filled),
            sectors: piece.counted.sectors.get() as u32,
        });
        Self { parts: parts.collect() }
    }

    /// Where a sector that was asked for lies.
    pub(crate) fn place(&self, buf: BufId, offset: u32) -> Place {
        let after = self.parts.partition_point(|part| part.asked <= offset);
        let sector = match self.parts[..after].last() {
            Some(part) => part.filled + (offset - part.asked),
            None => offset,
        };
        Place { buf, sector }
    }

    /// Where all of these first sectors that were asked for lie.
    pub(crate) fn segments(&self, buf: BufId, sectors: u32) -> Vec<Segment> {
        if self.parts.is_empty() {
            return vec![Segment { place: Place { buf, sector: 0 }, sectors }];
        }
        let segment = |part: &Part| {
            let place = Place { buf, sector: part.filled };
            Segment { place, sectors: part.sectors }
        };
        self.parts.iter().map(segment).collect()
    }

    /// What a drive says of the sectors of the buffer, as it is of those that were asked for (SP1).
    pub(crate) fn outcome(&self, outcome: &Outcome) -> Outcome {
        let Outcome::Done { unknown, damaged } = outcome else { return outcome.clone() };
        if self.parts.is_empty() || outcome.is_good() {
            return outcome.clone();
        }
        let asked = |sectors: &SectorSet| -> SectorSet {
            sectors.iter().filter_map(|sector| self.asked(sector)).collect()
        };
        Outcome::Done { unknown: asked(unknown), damaged: asked(damaged) }
    }

    /// The offset, in what was asked for, of a sector of the buffer.
    fn asked(&self, sector: u32) -> Option<u32> {
        let after = self.parts.partition_point(|part| part.filled <= sector);
        let part = self.parts[..after].last()?;
        let offset = sector - part.filled;
        (offset < part.sectors).then_some(part.asked + offset)
    }
}

#[cfg(test)]
mod tests {
    use levelhead_testkit::extent;
    use levelhead_units::Sectors;

    use super::*;
    use crate::shape::Groups;

    fn area() -> Area {
        let groups = Groups::of_chunk(Sectors::new(16));
        Area::around(&[extent(0, 10)], Sectors::new(200), Lba::new(300), Some(groups)).unwrap()
    }

    /// Each sector is where the drive has it, and what is said of it is said of nothing else.
    #[test]
    fn every_sector_is_found_behind_tag_sectors() {
        let area = area();
        for asked in [extent(0, 200), extent(30, 4), extent(31, 1), extent(40, 60), extent(32, 64)]
        {
            let filled = area.on_drive(asked);
            let spread = Spread::of(&area, asked, filled);
            for (offset, lba) in (0..).zip(asked.iter()) {
                let place = spread.place(BufId::Own(1), offset);
                let on_drive = area.on_drive(Extent::new(lba, Sectors::new(1)));
                assert_eq!(filled.lba + Sectors::new(place.sector.into()), on_drive.lba);
                let damaged = [place.sector].into_iter().collect();
                let said = Outcome::Done { unknown: SectorSet::EMPTY, damaged };
                let damaged = [offset].into_iter().collect();
                let expected = Outcome::Done { unknown: SectorSet::EMPTY, damaged };
                assert_eq!(spread.outcome(&said), expected, "{asked:?}: {offset}");
            }
            let sectors = asked.sectors.get() as u32;
            let segments = spread.segments(BufId::Own(1), sectors);
            assert_eq!(segments.iter().map(|segment| segment.sectors).sum::<u32>(), sectors);
        }
    }

    #[test]
    fn what_is_said_of_a_tag_sector_is_said_of_no_sector_that_was_asked_for() {
        let (area, asked) = (area(), extent(30, 4));
        let spread = Spread::of(&area, asked, area.on_drive(asked));
        let tag = [2].into_iter().collect();
        let said = Outcome::Done { unknown: tag, damaged: SectorSet::EMPTY };
        assert!(spread.outcome(&said).is_good());
        assert_eq!(spread.place(BufId::Own(1), 2).sector, 3);
    }
}
