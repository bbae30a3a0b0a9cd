//! Writes that are answered as stored and are not.
//!
//! A *lost* write leaves the medium as it was. A *torn* one stores its first sectors only; how many,
//! from one to all but one, is drawn evenly. (A write of a single sector is never torn: the sector's
//! own ECC would tell.) Which write it is, is a hash of the drive, the request's origin and the first
//! sector: a write is lost with the probability `lost`, else torn with the probability `torn`.
//!
//! ```text
//! P(lost) = lost        P(torn) = (1 - lost) torn        E[missing | torn, n sectors] = n / 2
//! ```

use levelhead_block::SectorSet;
use levelhead_units::Extent;

use super::{Coin, Faults, Key};

/// The silent failures of one drive's writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writes {
    key: Key,
    lost: f64,
    torn: f64,
}

impl Writes {
    pub(crate) fn new(faults: &Faults, key: Key) -> Self {
        Self { key, lost: faults.lost_rate.get(), torn: faults.torn_rate.get() }
    }

    /// The sectors of a write that do not reach the medium: none, all, or the last ones.
    pub(crate) fn missing(&self, extent: Extent, origin: u64) -> SectorSet {
        let Self { key, lost, torn } = *self;
        let (first, count) = (extent.lba.get(), extent.sectors.get());
        if lost > 0.0 && key.coin(Coin::Lost, origin, first) < lost {
            return SectorSet::first(extent.sectors);
        }
        if torn > 0.0 && count > 1 && key.coin(Coin::Torn, origin, first) < torn {
            let stored = 1 + (key.coin(Coin::Tear, origin, first) * (count - 1) as f64) as u64;
            let offset = |at: u64| u32::try_from(at).expect("a request has less than 2^32 sectors");
            return (offset(stored)..offset(count)).collect();
        }
        SectorSet::EMPTY
    }
}

#[cfg(test)]
mod tests {
    use levelhead_units::{Lba, Ratio, Sectors};

    use super::*;

    #[test]
    fn writes_are_lost_and_torn_at_their_rates() {
        let (lost, torn) = (0.02, 0.1);
        let faults = Faults {
            lost_rate: Ratio::new(lost).unwrap(),
            torn_rate: Ratio::new(torn).unwrap(),
            ..Faults::NONE
        };
        let writes = Writes::new(&faults, Key::new(8));
        let (n, sectors) = (100_000_u64, 9_u64);
        let mut sizes = [0_u64; 10];
        for origin in 0..n {
            let extent = Extent::new(Lba::new(origin % 977), Sectors::new(sectors));
            let missing = writes.missing(extent, origin);
            assert_eq!(missing, writes.missing(extent, origin));
            let stored = sectors as u32 - missing.len() as u32;
            assert!(missing.iter().eq(stored..9), "the last ones are missing: {missing:?}");
            sizes[missing.len()] += 1;
        }
        for (missing, &count) in sizes.iter().enumerate() {
            let law = match missing {
                0 => (1.0 - lost) * (1.0 - torn),
                9 => lost,
                _ => (1.0 - lost) * torn / 8.0,
            };
            let (share, error) = (count as f64 / n as f64, (law * (1.0 - law) / n as f64).sqrt());
            assert!((share - law).abs() <= 4.0 * error, "{missing} missing: {share}, law {law}");
        }
        let single = |origin| writes.missing(Extent::new(Lba::ZERO, Sectors::new(1)), origin);
        let lost_singles = (0..n).filter(|&origin| !single(origin).is_empty()).count() as f64;
        let error = (lost * (1.0 - lost) / n as f64).sqrt();
        assert!((lost_singles / n as f64 - lost).abs() <= 4.0 * error, "{lost_singles}");
    }
}
