//! Flushes that are answered and make nothing safe.
//!
//! A *lying* flush ends as soon as the drive has looked at it; what was in the drive's memory stays there, and
//! a power cut takes it. Which flush it is, is a hash of the drive and the request's origin alone: two flushes
//! of one client request lie both or neither. A drive that has no memory, or keeps no writes in it, has nothing to
//! lie about, and its flushes only end sooner.

use super::{Coin, Faults, Key};

/// The lying flushes of one drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flushes {
    key: Key,
    lying: f64,
}

impl Flushes {
    pub(super) fn new(faults: &Faults, key: Key) -> Self {
        Self { key, lying: faults.lying_rate.get() }
    }

    /// Whether a flush on behalf of `origin` makes nothing safe.
    pub(crate) fn lies(&self, origin: u64) -> bool {
        self.lying > 0.0 && self.key.coin(Coin::Lie, origin, 0) < self.lying
    }
}

#[cfg(test)]
mod tests {
    use levelhead_units::Ratio;

    use super::*;

    #[test]
    fn flushes_lie_at_their_rate() {
        let (n, law) = (100_000_u64, 0.07);
        let faults = Faults { lying_rate: Ratio::new(law).unwrap(), ..Faults::NONE };
        let flushes = Flushes::new(&faults, Key::new(8));
        let share = (0..n).filter(|&origin| flushes.lies(origin)).count() as f64 / n as f64;
        let error = (law * (1.0 - law) / n as f64).sqrt();
        assert!((share - law).abs() <= 4.0 * error, "{share}, law {law}");
        assert!((0..n).all(|origin| !Flushes::new(&Faults::NONE, Key::new(8)).lies(origin)));
    }
}
