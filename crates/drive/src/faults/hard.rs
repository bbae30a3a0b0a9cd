//! Sectors that no effort reads.
//!
//! A hard failure depends on the drive and the sector alone: each sector has it with the configured
//! probability, until it has been written again, which mends it for good.

use std::collections::BTreeSet;

use levelhead_units::{Extent, Lba};

use super::{Coin, Key};

/// The hard failures of one drive.
#[derive(Clone, Debug)]
pub(crate) struct Hard {
    key: Key,
    rate: f64,
    /// Sectors with a hard failure that have been written since.
    mended: BTreeSet<Lba>,
}

impl Hard {
    pub(crate) fn new(rate: f64, key: Key) -> Self {
        Self { key, rate, mended: BTreeSet::new() }
    }

    /// Another share of sectors fails from now on. A higher one has all that fail at a lower one,
    /// and what was mended stays mended.
    pub(crate) fn set_rate(&mut self, rate: f64) {
        self.rate = rate;
    }

    /// Whether nothing ever fails.
    pub(crate) fn is_off(&self) -> bool {
        self.rate <= 0.0
    }

    pub(crate) fn contains(&self, lba: Lba) -> bool {
        // No origin: the medium is the same for every request.
        self.key.coin(Coin::Hard, 0, lba.get()) < self.rate && !self.mended.contains(&lba)
    }

    /// `extent` has been written.
    pub(crate) fn mend(&mut self, extent: Extent) {
        if !self.is_off() {
            let mended: Vec<Lba> = extent.iter().filter(|&lba| self.contains(lba)).collect();
            self.mended.extend(mended);
        }
    }
}

#[cfg(test)]
mod tests {
    use levelhead_units::Sectors;

    use super::*;

    fn failed(hard: &Hard) -> Vec<u64> {
        (0..300).filter(|&lba| hard.contains(Lba::new(lba))).collect()
    }

    #[test]
    fn sectors_fail_at_the_rate_asked_for() {
        let n = 200_000_u64;
        for law in [0.001, 0.1] {
            let hard = Hard::new(law, Key::new(5));
            let share =
                (0..n).filter(|&lba| hard.contains(Lba::new(lba))).count() as f64 / n as f64;
            let error = (law * (1.0 - law) / n as f64).sqrt();
            assert!((share - law).abs() <= 4.0 * error, "{share}, law {law}");
        }
    }

    #[test]
    fn a_write_mends_what_it_covers_for_good() {
        let mut hard = Hard::new(0.1, Key::new(5));
        let before = failed(&hard);
        hard.mend(Extent::new(Lba::new(100), Sectors::new(100)));
        let rest: Vec<u64> = before.iter().copied().filter(|at| !(100..200).contains(at)).collect();
        assert_eq!(failed(&hard), rest);
        assert!(rest.len() < before.len());
        hard.set_rate(0.0);
        assert!(failed(&hard).is_empty());
        hard.set_rate(0.1);
        assert_eq!(failed(&hard), rest);
        hard.set_rate(0.3);
        assert!(rest.iter().all(|&lba| hard.contains(Lba::new(lba))));
        let mended = before.iter().filter(|&&lba| !rest.contains(&lba));
        assert!(mended.into_iter().all(|&lba| !hard.contains(Lba::new(lba))));
    }
}
