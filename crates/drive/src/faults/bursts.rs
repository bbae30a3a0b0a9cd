//! Stretches of the disk that are bad.
//!
//! Bursts begin at random sectors (see `points`), on average one in `gap`, and are `L` sectors long.
//! Where they are depends on the drive alone: it is the medium. Within a burst, each sector's first
//! pass fails with the probability `failure`, for each client request anew: a soft failure, which a
//! retry mends. Bursts that overlap count once, so for every sector alike
//!
//! ```text
//! P(in a burst) = 1 - exp(-E[L] / gap)        P(fails by it) = failure * P(in a burst)
//! ```

use levelhead_units::{Extent, Lba, Ratio, Sectors};

use super::parts::{Parsed, fields, sectors, unit};
use super::points::{Point, Points};
use super::text::Form;
use super::values::{BurstLength, CUT};
use super::{Coin, Faults, FaultsError, Key};

/// Stretches of sectors that often fail at the first pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bursts {
    /// The mean distance between the beginnings of two. At least 16 sectors, and at least the mean
    /// length.
    pub gap: Sectors,
    /// How long they are.
    pub length: BurstLength,
    /// Share of their sectors whose first pass fails.
    pub failure: Ratio,
}

/// The least gap, in sectors.
const GAP_MIN: u64 = 16;

/// The largest gap and length: 2^50 bytes.
const SECTORS_MAX: u64 = 1 << 38;

impl Bursts {
    /// The probability that a sector is in a burst.
    pub fn coverage(&self) -> f64 {
        -(-self.length.mean() / self.gap.get() as f64).exp_m1()
    }

    /// The probability that a sector's first pass fails because of a burst.
    pub fn rate(&self) -> f64 {
        self.coverage() * self.failure.get()
    }

    fn check(&self) -> Result<(), FaultsError> {
        let (gap, longest) = (self.gap.get(), self.length.longest());
        let fits = longest > 0 && longest <= SECTORS_MAX * CUT && gap <= SECTORS_MAX;
        if !fits || gap < GAP_MIN || self.length.mean() > gap as f64 {
            return Err(FaultsError::Bursts { gap: self.gap, length: self.length });
        }
        Ok(())
    }
}

impl Form for Bursts {
    fn read(text: &str) -> Parsed<Self> {
        let [gap, length, failure] = fields(text, "GAP/LENGTH/SHARE, as in 10GiB/1MiB/50%")?;
        let length = BurstLength::read(length)?;
        Ok(Self { gap: sectors(gap)?, length, failure: unit(failure)? })
    }

    fn show(&self) -> String {
        let Self { gap, length, failure } = self;
        format!("{}/{length}/{failure}", gap.bytes())
    }
}

pub(super) fn check(faults: &Faults) -> Result<(), FaultsError> {
    faults.bursts.map_or(Ok(()), |bursts| bursts.check())
}

/// The bursts of one drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BurstMap {
    key: Key,
    points: Points,
    length: BurstLength,
    failure: f64,
}

impl BurstMap {
    pub(crate) fn new(bursts: &Bursts, key: Key) -> Self {
        let points = Points::new(key.of(Coin::Burst), bursts.gap.get(), bursts.length.longest());
        Self { key, points, length: bursts.length, failure: bursts.failure.get() }
    }

    /// The sectors of `extent` whose first pass fails because of a burst, in no order; one that
    /// several bursts cover may come as often.
    pub(crate) fn failures(&self, extent: Extent, origin: u64) -> impl Iterator<Item = Lba> {
        let Self { key, points: _, length, failure } = *self;
        let length = move |point: Point| length.draw(Key::unit(point.mark));
        let last = extent.end().get().saturating_sub(1);
        self.points
            .intervals(extent.lba.get(), last, length)
            .flat_map(|(first, last)| first..=last)
            .filter(move |&lba| key.coin(Coin::InBurst, origin, lba) < failure)
            .map(Lba::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bursts(gap: u64, length: BurstLength, failure: f64) -> Bursts {
        let bursts =
            Bursts { gap: Sectors::new(gap), length, failure: Ratio::new(failure).unwrap() };
        bursts.check().unwrap();
        bursts
    }

    /// Four standard errors around the law, over independent drives.
    #[track_caller]
    fn check_rate(gap: u64, length: BurstLength, failure: f64) {
        let bursts = bursts(gap, length, failure);
        let n = 60_000_u64;
        for lba in [0, 1_000_000] {
            let extent = Extent::new(Lba::new(lba), Sectors::new(1));
            let fails = |&drive: &u64| {
                BurstMap::new(&bursts, Key::new(drive)).failures(extent, drive).next().is_some()
            };
            let share = (0..n).filter(fails).count() as f64 / n as f64;
            let law = bursts.rate();
            let error = (law * (1.0 - law) / n as f64).sqrt();
            assert!((share - law).abs() <= 4.0 * error, "{length}: {share}, law {law}");
        }
    }

    #[test]
    fn sectors_fail_at_the_rate_of_the_closed_form() {
        check_rate(1_000, BurstLength::Fixed(Sectors::new(100)), 0.5);
        check_rate(64, BurstLength::Uniform(Sectors::new(64)), 1.0);
        check_rate(300, BurstLength::Geometric(Sectors::new(100)), 0.3);
        check_rate(40, BurstLength::Geometric(Sectors::new(40)), 1.0);
    }

    #[test]
    fn lengths_have_the_mean_of_the_closed_form() {
        let n = 100_000_u64;
        for length in [
            BurstLength::Fixed(Sectors::new(7)),
            BurstLength::Uniform(Sectors::new(50)),
            BurstLength::Geometric(Sectors::new(30)),
            BurstLength::Geometric(Sectors::new(1)),
        ] {
            let draws: Vec<f64> =
                (0..n).map(|i| length.draw((i as f64 + 0.5) / n as f64) as f64).collect();
            let mean = draws.iter().sum::<f64>() / n as f64;
            // The quantiles are taken evenly: what is left is the rounding of the law's steps.
            assert!((mean / length.mean() - 1.0).abs() < 1e-3, "{length}: {mean}");
        }
    }

    /// Failures keep together: that is the point of a burst.
    #[test]
    fn a_burst_is_a_stretch_of_one_drive_and_meets_each_request_anew() {
        let bursts = bursts(10_000, BurstLength::Fixed(Sectors::new(200)), 0.5);
        let map = BurstMap::new(&bursts, Key::new(1));
        let extent = Extent::new(Lba::ZERO, Sectors::new(1_000_000));
        let failed = |map: &BurstMap, origin| {
            let mut failed: Vec<u64> = map.failures(extent, origin).map(Lba::get).collect();
            failed.sort_unstable();
            failed.dedup();
            failed
        };
        let (one, other) = (failed(&map, 1), failed(&map, 2));
        assert_ne!(one, other);
        let regions = |failed: &[u64]| {
            let mut regions: Vec<u64> = failed.iter().map(|lba| lba / 400).collect();
            regions.dedup();
            regions
        };
        let shared = regions(&one).iter().filter(|at| regions(&other).contains(at)).count();
        assert!(shared * 10 >= regions(&one).len() * 9, "the same stretches for both");
        // About 100 bursts, each over at most two regions of 400.
        assert!(regions(&one).len() < 300, "{}", regions(&one).len());
        let elsewhere = failed(&BurstMap::new(&bursts, Key::new(2)), 1);
        assert!(regions(&elsewhere).iter().filter(|at| regions(&one).contains(at)).count() < 40);
    }
}
