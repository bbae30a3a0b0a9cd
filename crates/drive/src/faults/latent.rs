//! What is wrong with a sector of the medium until it is written again: hard failures, and bits that have
//! changed at rest.
//!
//! It depends on the drive and the sector alone: each sector has it with the configured probability,
//! until it has been written, which mends it for good.

use std::collections::BTreeSet;

use levelhead_units::{Extent, Lba};

use super::{Coin, Key};

/// One such wrong of one drive.
#[derive(Clone, Debug)]
pub(crate) struct Latent {
    key: Key,
    coin: Coin,
    rate: f64,
    /// Sectors that had it and have been written since.
    mended: BTreeSet<Lba>,
}

impl Latent {
    /// Each sector has it with probability `rate`, by the stream `coin`.
    pub(super) fn new(rate: f64, key: Key, coin: Coin) -> Self {
        Self { key, coin, rate, mended: BTreeSet::new() }
    }

    /// Another share of sectors has it from now on. A higher one has all that have it at a lower one,
    /// and what was mended stays mended.
    pub(crate) fn set_rate(&mut self, rate: f64) {
        self.rate = rate;
    }

    /// Whether no sector ever has it.
    pub(crate) fn is_off(&self) -> bool {
        self.rate <= 0.0
    }

    pub(crate) fn contains(&self, lba: Lba) -> bool {
        self.contains_at(lba, self.rate)
    }

    /// The same if the sector had it with the probability `rate`, which is not above the share of all.
    pub(crate) fn contains_at(&self, lba: Lba, rate: f64) -> bool {
        // No origin: the medium is the same for every request.
        self.key.coin(self.coin, 0, lba.get()) < rate && !self.mended.contains(&lba)
    }

    /// The share of sectors that have it unless they have been written.
    pub(crate) fn rate(&self) -> f64 {
        self.rate
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

    fn failed(latent: &Latent) -> Vec<u64> {
        (0..300).filter(|&lba| latent.contains(Lba::new(lba))).collect()
    }

    #[test]
    fn sectors_fail_at_the_rate_asked_for() {
        let n = 200_000_u64;
        for law in [0.001, 0.1] {
            let latent = Latent::new(law, Key::new(5), Coin::Hard);
            let share =
                (0..n).filter(|&lba| latent.contains(Lba::new(lba))).count() as f64 / n as f64;
            let error = (law * (1.0 - law) / n as f64).sqrt();
            assert!((share - law).abs() <= 4.0 * error, "{share}, law {law}");
        }
    }

    #[test]
    fn a_write_mends_what_it_covers_for_good() {
        let mut latent = Latent::new(0.1, Key::new(5), Coin::Hard);
        let before = failed(&latent);
        latent.mend(Extent::new(Lba::new(100), Sectors::new(100)));
        let rest: Vec<u64> = before.iter().copied().filter(|at| !(100..200).contains(at)).collect();
        assert_eq!(failed(&latent), rest);
        assert!(rest.len() < before.len());
        latent.set_rate(0.0);
        assert!(failed(&latent).is_empty());
        latent.set_rate(0.1);
        assert_eq!(failed(&latent), rest);
        latent.set_rate(0.3);
        assert!(rest.iter().all(|&lba| latent.contains(Lba::new(lba))));
        let mended = before.iter().filter(|&&lba| !rest.contains(&lba));
        assert!(mended.into_iter().all(|&lba| !latent.contains(Lba::new(lba))));
    }
}
