//! Sectors whose content changes, and no code of the drive's own finds it.
//!
//! Of a sector that *flips*, one bit is not what was written; reads give it as good. There are two chances,
//! both with the probability `flips`:
//!
//! * each time a sector is stored, a hash of the drive, the request's origin and the sector: the medium has
//!   the changed bit from then on, until the sector is written again;
//! * of a sector that has not been written since the drive was switched on for the first time, a hash of the
//!   drive and the sector: a bit has changed at rest.
//!
//! ```text
//! P(a sector flips | its last write, or none) = flips        E[flipped sectors of a drive] = flips N
//! ```
//!
//! Which of the sector's bits it is, is a hash of the same things, each bit equally likely.

use levelhead_block::Flip;
use levelhead_units::{Extent, Lba, SECTOR_SIZE};

use super::latent::Latent;
use super::{Coin, Faults, Key};

/// The flipped sectors of one drive.
#[derive(Clone, Debug)]
pub(crate) struct Flips {
    key: Key,
    rate: f64,
    /// Sectors that nothing was written to.
    at_rest: Latent,
}

impl Flips {
    pub(super) fn new(faults: &Faults, key: Key) -> Self {
        let rate = faults.flip_rate.get();
        Self { key, rate, at_rest: Latent::new(rate, key, Coin::FlipAtRest) }
    }

    /// Another share of sectors flips from now on. What has been stored stays as it is.
    pub(crate) fn set_rate(&mut self, rate: f64) {
        self.rate = rate;
        self.at_rest.set_rate(rate);
    }

    /// The bits of a write that change as it is stored.
    pub(crate) fn stored(&self, extent: Extent, origin: u64) -> Vec<Flip> {
        if self.rate <= 0.0 {
            return Vec::new();
        }
        let flips = |lba: &Lba| self.key.coin(Coin::FlipStored, origin, lba.get()) < self.rate;
        extent.iter().filter(flips).map(|lba| self.flip(extent, lba, origin)).collect()
    }

    /// The bits of a read that have changed at rest.
    pub(crate) fn at_rest(&self, extent: Extent) -> Vec<Flip> {
        if self.at_rest.is_off() {
            return Vec::new();
        }
        let flips = |lba: &Lba| self.at_rest.contains(*lba);
        extent.iter().filter(flips).map(|lba| self.flip(extent, lba, 0)).collect()
    }

    /// `extent` has been written.
    pub(crate) fn mend(&mut self, extent: Extent) {
        self.at_rest.mend(extent);
    }

    fn flip(&self, extent: Extent, lba: Lba, origin: u64) -> Flip {
        const BITS: f64 = (SECTOR_SIZE * 8) as f64;
        const { assert!(SECTOR_SIZE * 8 <= 1 << 16) };
        let offset = u32::try_from((lba - extent.lba).get()).expect("a request's sector");
        let bit = (self.key.coin(Coin::FlipBit, origin, lba.get()) * BITS) as u16;
        Flip { offset, bit }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use levelhead_testkit::extent;
    use levelhead_units::Ratio;

    use super::*;

    fn flips(rate: f64) -> Flips {
        let faults = Faults { flip_rate: Ratio::new(rate).unwrap(), ..Faults::NONE };
        Flips::new(&faults, Key::new(5))
    }

    #[test]
    fn sectors_flip_at_the_rate_asked_for_as_they_are_stored_and_at_rest() {
        let (map, n, law) = (flips(0.02), 200_000_u64, 0.02);
        let error = (law * (1.0 - law) / n as f64).sqrt();
        for seen in [map.stored(extent(7, n), 3), map.at_rest(extent(7, n))] {
            let share = seen.len() as f64 / n as f64;
            assert!((share - law).abs() <= 4.0 * error, "{share}, law {law}");
            // Of 4,000 draws from 32,768 bits, 3,763 differ on average.
            let bits: BTreeSet<u16> = seen.iter().map(|flip| flip.bit).collect();
            assert!(bits.len() > seen.len() * 9 / 10, "{} bits of {}", bits.len(), seen.len());
            assert!(seen.iter().all(|flip| usize::from(flip.bit) < SECTOR_SIZE * 8));
        }
        assert_eq!(
            (flips(0.0).stored(extent(0, 99), 1), flips(0.0).at_rest(extent(0, 99))),
            (vec![], vec![])
        );
    }

    #[test]
    fn flips_do_not_depend_on_how_a_request_is_cut() {
        let map = flips(0.3);
        let whole = map.stored(extent(10, 100), 9);
        for cut in 1..100_u32 {
            let left = map.stored(extent(10, cut.into()), 9);
            let right = map.stored(extent(10 + u64::from(cut), u64::from(100 - cut)), 9);
            let right = right.iter().map(|flip| Flip { offset: flip.offset + cut, ..*flip });
            assert!(left.iter().copied().chain(right).eq(whole.iter().copied()), "cut at {cut}");
        }
    }

    #[test]
    fn a_write_ends_what_has_changed_at_rest_and_another_request_is_another_chance() {
        let mut map = flips(0.3);
        assert_ne!(map.stored(extent(0, 100), 1), map.stored(extent(0, 100), 2));
        let before = map.at_rest(extent(0, 100));
        map.mend(extent(20, 50));
        let rest = before.iter().copied().filter(|flip| !(20..70).contains(&flip.offset));
        assert!(map.at_rest(extent(0, 100)).into_iter().eq(rest));
        map.set_rate(0.0);
        assert!(map.at_rest(extent(0, 100)).is_empty());
        map.set_rate(1.0);
        assert!(map.at_rest(extent(0, 100)).len() >= 50);
    }
}
