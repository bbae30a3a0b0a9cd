//! Writes that land at another place.
//!
//! A *misdirected* write is answered as stored; all its sectors, each as it should be, lie somewhere else on
//! the drive, over what was there, and the wanted place keeps what it had. Which write it is, is a hash of
//! the drive, the request's origin and the first sector; where it lands, from another such hash, is any
//! place that it fits into and that has no sector in common with the wanted one, each equally likely. (A write
//! for which there is no such place, because it covers too much of the drive, is not misdirected.)
//!
//! ```text
//! drive of N sectors, write of n at a:  a - n + 1 places before it (if a >= n), N - a - 2n + 1 after it
//! P(misdirected) = misdirected
//! ```
//!
//! A write that is lost as well lands nowhere; one that is torn as well lands with its first sectors.

use levelhead_units::{Extent, Lba, Sectors};

use super::{Coin, Faults, Key};

/// The misdirected writes of one drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Misdirected {
    key: Key,
    rate: f64,
    size: Sectors,
}

impl Misdirected {
    /// Of a drive with this many sectors.
    pub(super) fn new(faults: &Faults, key: Key, size: Sectors) -> Self {
        Self { key, rate: faults.misdirected_rate.get(), size }
    }

    /// Where a write lands, from its first sector on, if not where it should.
    pub(crate) fn landing(&self, extent: Extent, origin: u64) -> Option<Lba> {
        let (first, count) = (extent.lba.get(), extent.sectors.get());
        if self.rate <= 0.0 || self.key.coin(Coin::Misdirected, origin, first) >= self.rate {
            return None;
        }
        let before = (first + 1).saturating_sub(count);
        let after = (self.size.get() + 1).saturating_sub(first + 2 * count);
        let places = before + after;
        let drawn = (self.key.coin(Coin::Landing, origin, first) * places as f64) as u64;
        let place = if drawn < before { drawn } else { first + count + (drawn - before) };
        (drawn < places).then_some(Lba::new(place))
    }
}

#[cfg(test)]
mod tests {
    use levelhead_testkit::extent;
    use levelhead_units::Ratio;

    use super::*;

    fn misdirected(rate: f64, size: u64) -> Misdirected {
        let faults = Faults { misdirected_rate: Ratio::new(rate).unwrap(), ..Faults::NONE };
        Misdirected::new(&faults, Key::new(8), Sectors::new(size))
    }

    #[test]
    fn writes_are_misdirected_at_their_rate() {
        let (map, n, law) = (misdirected(0.03, 1_000), 100_000_u64, 0.03);
        let stray = |&origin: &u64| map.landing(extent(origin % 977, 9), origin).is_some();
        let share = (0..n).filter(stray).count() as f64 / n as f64;
        let error = (law * (1.0 - law) / n as f64).sqrt();
        assert!((share - law).abs() <= 4.0 * error, "{share}, law {law}");
        assert!(
            (0..n).all(|at| misdirected(0.0, 1_000).landing(extent(at % 977, 9), at).is_none())
        );
    }

    /// Every place of a small drive, for every write.
    #[test]
    fn landings_are_all_places_apart_from_the_wanted_one_and_equally_likely() {
        const SIZE: u64 = 12;
        let map = misdirected(1.0, SIZE);
        for (lba, count) in (0..SIZE).flat_map(|lba| (1..=SIZE - lba).map(move |n| (lba, n))) {
            let wanted = extent(lba, count);
            let fits = |at: &u64| at + count <= lba || (*at >= lba + count && at + count <= SIZE);
            let places: Vec<u64> = (0..SIZE).filter(fits).collect();
            let mut seen = [0_u32; SIZE as usize];
            for origin in 0..4_000 {
                match map.landing(wanted, origin) {
                    Some(at) => seen[at.get() as usize] += 1,
                    None => assert!(places.is_empty(), "{wanted:?}"),
                }
            }
            for at in 0..SIZE {
                let law = if places.contains(&at) { 1.0 / places.len() as f64 } else { 0.0 };
                let error = (law * (1.0 - law) * 4_000.0).sqrt();
                let count = f64::from(seen[at as usize]);
                assert!(
                    (count - law * 4_000.0).abs() <= 5.0 * error,
                    "{wanted:?} at {at}: {count}"
                );
            }
        }
    }
}
