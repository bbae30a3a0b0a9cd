//! Which sectors a drive fails to read at the first pass, and which it never reads.
//!
//! Chance is a hash, not a stream: whether a sector fails depends on the drive, the client request
//! on whose behalf it is read (its *origin*) and the sector, and on nothing else. Two policies that
//! serve the same client request meet the same failures, however they split, order or repeat it.
//!
//! # Soft failures
//!
//! A soft failure passes by itself after a number of revolutions. `[ERAID]` asks for a rate `p` per
//! sector and an adjacency `c`: the neighbour of a failed sector fails with probability `c p`. With
//! two independent coins per sector, `base` (heads with probability `b`) and `link` (with `q`),
//!
//! ```text
//! fails(s) = base(s) or (base(s - 1) and link(s))
//!
//! b = p (1 - c p) / (1 - p)        q = (p - b) / (b (1 - b))
//! ```
//!
//! has exactly those two probabilities, wherever a request begins or ends:
//!
//! ```text
//! P(s)                     = b + (1 - b) b q = p                                    by q
//! P(neither s - 1 nor s)   = (1 - b)^2 (1 - b q) = (1 - b) (1 - p)       as 1 - p = (1 - b)(1 - b q)
//! P(both)                  = 1 - 2 (1 - p) + (1 - b)(1 - p) = 1 - (1 - p)(1 + b) = c p^2   by b
//! ```
//!
//! `q` is a probability for `1 <= c <= c_max`: `q >= 0` iff `b <= p` iff `c >= 1`, and `q <= 1` iff
//! `b >= 1 - sqrt(1 - p)`, which bounds `c` by about `1 / (2 p)`. (Failures come alone or in pairs;
//! a stronger dependence needs longer runs.) `c = 1` means that sectors fail independently.
//!
//! # Hard failures
//!
//! A hard failure depends on the drive and the sector alone: no effort reads it until the sector
//! has been written again, which mends it for good.
//!
//! # References
//!
//! - `[ERAID]` the pro-active use of redundancy against fail-slow drives, where one retry mends all
//!   failed sectors of a request.

use std::collections::BTreeSet;

use levelhead_block::SectorSet;
use levelhead_stats::{hash_of, unit_of};
use levelhead_units::{Extent, Lba, Ratio};

use crate::SettingsError;
use crate::mechanics::ROTATIONS_MAX;

/// How a drive misbehaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Faults {
    /// Share of sectors whose first pass fails and that a retry mends: `p` of `[ERAID]`.
    pub soft_rate: Ratio,
    /// How many times likelier than any other sector the neighbour of a failed one fails: `c` of
    /// `[ERAID]`. At least 1, which is independence, and at most about half of one over the rate.
    pub adjacency: f64,
    /// How many revolutions a retry takes: `r` of `[ERAID]`. From 1 to 1000.
    pub rotations: u32,
    /// Share of sectors that no effort reads until they are written again.
    pub hard_rate: Ratio,
    /// Every service takes this many times as long, from 1 to 1000.
    pub slowdown: f64,
}

impl Faults {
    /// A drive in good order.
    pub const NONE: Self = Self {
        soft_rate: Ratio::ZERO,
        adjacency: 1.0,
        rotations: 3,
        hard_rate: Ratio::ZERO,
        slowdown: 1.0,
    };

    /// Whether a drive can misbehave like that.
    pub fn check(&self) -> Result<(), SettingsError> {
        let Self { adjacency, rotations, slowdown, .. } = *self;
        let most = self.adjacency_max();
        if !(1.0..=most).contains(&adjacency) {
            let rate = self.soft_rate;
            return Err(SettingsError::Adjacency { adjacency, rate, most });
        }
        if !(1..=ROTATIONS_MAX).contains(&rotations) {
            return Err(SettingsError::Rotations { rotations });
        }
        if !(1.0..=SLOWDOWN_MAX).contains(&slowdown) {
            return Err(SettingsError::Slowdown { slowdown });
        }
        Ok(())
    }

    /// The largest adjacency that the soft rate allows.
    fn adjacency_max(&self) -> f64 {
        let p = self.soft_rate.get();
        if p <= 0.0 {
            return f64::INFINITY; // Nothing fails, so nothing has a failed neighbour.
        }
        // b at which q is one: 1 - sqrt(1 - p), written so that it is exact for small p.
        let b = p / (1.0 + (1.0 - p).sqrt());
        ((1.0 - b * (1.0 - p) / p) / p).max(1.0)
    }

    /// The probabilities of the two coins, `b` and `q`.
    fn coins(&self) -> (f64, f64) {
        let (p, c) = (self.soft_rate.get(), self.adjacency);
        if p <= 0.0 || p >= 1.0 {
            return (p, 0.0);
        }
        let b = p * (1.0 - c * p) / (1.0 - p);
        (b, (p - b) / (b * (1.0 - b)))
    }
}

/// The largest slowdown.
pub(crate) const SLOWDOWN_MAX: f64 = 1_000.0;

/// What the hash of a sector is for.
#[derive(Clone, Copy)]
enum Coin {
    Base = 1,
    Link = 2,
    Hard = 3,
}

/// The failures of one drive.
#[derive(Clone, Debug)]
pub(crate) struct FaultMap {
    key: u64,
    base: f64,
    link: f64,
    hard: f64,
    /// Sectors with a hard failure that have been written since.
    mended: BTreeSet<Lba>,
}

/// What the first pass over an extent left unread. The sets do not overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unread {
    pub(crate) soft: SectorSet,
    pub(crate) hard: SectorSet,
}

impl Unread {
    /// Whether every sector was read.
    pub(crate) fn is_empty(&self) -> bool {
        self.soft.is_empty() && self.hard.is_empty()
    }

    /// How many sectors were not.
    pub(crate) fn len(&self) -> u64 {
        (self.soft.len() + self.hard.len()) as u64
    }

    /// All of them.
    pub(crate) fn all(self) -> SectorSet {
        match (self.soft.is_empty(), self.hard.is_empty()) {
            (_, true) => self.soft,
            (true, _) => self.hard,
            (false, false) => self.soft.iter().chain(self.hard.iter()).collect(),
        }
    }
}

impl FaultMap {
    /// The failures that `faults` means for the drive with this key.
    pub(crate) fn new(faults: &Faults, key: u64) -> Self {
        let (base, link) = faults.coins();
        Self { key, base, link, hard: faults.hard_rate.get(), mended: BTreeSet::new() }
    }

    /// What the first pass over `extent` fails to read on behalf of `origin`.
    pub(crate) fn first_pass(&self, extent: Extent, origin: u64) -> Unread {
        let first = extent.lba.get();
        let offset =
            |lba: Lba| u32::try_from((lba - extent.lba).get()).expect("a request's sector");
        let mut hard = SectorSet::EMPTY;
        if self.hard > 0.0 {
            hard = extent.iter().filter(|&lba| self.is_hard(lba)).map(offset).collect();
        }
        let mut soft = SectorSet::EMPTY;
        if self.base > 0.0 {
            // The first sector has a neighbour like any other, even if it has no address.
            let mut before = self.base(first.wrapping_sub(1), origin);
            let mut failed = Vec::new();
            for lba in extent.iter() {
                let own = self.base(lba.get(), origin);
                if own || before && self.coin(Coin::Link, origin, lba.get()) < self.link {
                    failed.push(offset(lba));
                }
                before = own;
            }
            soft = failed.into_iter().filter(|&at| !hard.contains(at)).collect();
        }
        Unread { soft, hard }
    }

    /// `extent` has been written.
    pub(crate) fn mend(&mut self, extent: Extent) {
        if self.hard > 0.0 {
            let mended: Vec<Lba> = extent.iter().filter(|&lba| self.is_hard(lba)).collect();
            self.mended.extend(mended);
        }
    }

    fn is_hard(&self, lba: Lba) -> bool {
        // No origin: the medium is the same for every request.
        self.coin(Coin::Hard, 0, lba.get()) < self.hard && !self.mended.contains(&lba)
    }

    fn base(&self, sector: u64, origin: u64) -> bool {
        self.coin(Coin::Base, origin, sector) < self.base
    }

    /// A number from 0 to 1 that depends on all of these.
    fn coin(&self, coin: Coin, origin: u64, sector: u64) -> f64 {
        unit_of(hash_of(self.key, &[coin as u64, origin, sector]))
    }
}

#[cfg(test)]
mod tests {
    use levelhead_units::Sectors;

    use super::*;

    fn faults(soft: f64, adjacency: f64, hard: f64) -> Faults {
        Faults {
            soft_rate: Ratio::new(soft).unwrap(),
            adjacency,
            hard_rate: Ratio::new(hard).unwrap(),
            ..Faults::NONE
        }
    }

    fn extent(lba: u64, sectors: u64) -> Extent {
        Extent::new(Lba::new(lba), Sectors::new(sectors))
    }

    /// Four standard errors around the law, for pairs of neighbours of as many origins.
    #[track_caller]
    fn check_rates(p: f64, c: f64) {
        let faults = faults(p, c, 0.0);
        faults.check().unwrap();
        let map = FaultMap::new(&faults, 77);
        let n = 400_000_u64;
        let (mut failed, mut both) = (0_u64, 0_u64);
        for origin in 0..n {
            let unread = map.first_pass(extent(origin % 1_000, 2), origin).soft;
            failed += u64::from(unread.contains(1));
            both += u64::from(unread.len() == 2);
        }
        let check = |what: &str, seen: u64, of: u64, law: f64| {
            let (share, of) = (seen as f64 / of as f64, of as f64);
            let error = (law * (1.0 - law) / of).sqrt();
            assert!((share - law).abs() <= 4.0 * error, "{what} {share}, law {law}, error {error}");
        };
        check("rate", failed, n, p);
        check("rate after a failure", both, failed, c * p);
    }

    #[test]
    fn failures_have_the_rate_and_the_adjacency_asked_for() {
        check_rates(0.01, 1.0);
        check_rates(0.02, 2.0);
        check_rates(0.1, 4.0);
        check_rates(0.02, faults(0.02, 1.0, 0.0).adjacency_max());
    }

    #[test]
    fn failures_do_not_depend_on_how_a_request_is_cut() {
        let map = FaultMap::new(&faults(0.3, 1.5, 0.2), 5);
        let whole = map.first_pass(extent(0, 500), 9);
        for cut in 1..500_u32 {
            let (left, right) = (
                map.first_pass(extent(0, cut.into()), 9).all(),
                map.first_pass(extent(cut.into(), u64::from(500 - cut)), 9).all(),
            );
            let joined: SectorSet = left.iter().chain(right.iter().map(|at| at + cut)).collect();
            assert_eq!(joined, whole.clone().all(), "cut at {cut}");
        }
    }

    #[test]
    fn a_soft_failure_belongs_to_one_request_and_a_hard_one_to_the_medium() {
        let map = FaultMap::new(&faults(0.1, 2.0, 0.1), 5);
        let (one, other) = (map.first_pass(extent(0, 300), 1), map.first_pass(extent(0, 300), 2));
        assert_eq!(one, map.first_pass(extent(0, 300), 1));
        assert_ne!(one.soft, other.soft);
        assert_eq!(one.hard, other.hard);
        assert!(!one.hard.is_empty());
    }

    #[test]
    fn a_write_mends_what_it_covers() {
        let mut map = FaultMap::new(&faults(0.0, 1.0, 0.1), 5);
        let before = map.first_pass(extent(0, 300), 1).hard;
        map.mend(extent(100, 100));
        let after = map.first_pass(extent(0, 300), 1).hard;
        let rest: SectorSet = before.iter().filter(|at| !(100..200).contains(at)).collect();
        assert_eq!(after, rest);
        assert!(after.len() < before.len());
    }

    #[test]
    fn impossible_faults_are_refused_with_the_limit() {
        assert!(Faults::NONE.check().is_ok());
        assert!(faults(1.0, 1.0, 1.0).check().is_ok());
        for adjacency in [0.9, 51.0, f64::NAN] {
            let error = faults(0.01, adjacency, 0.0).check().unwrap_err().to_string();
            assert!(error.contains("1 to 50.38"), "{error}");
        }
        let error = Faults { rotations: 0, ..Faults::NONE }.check().unwrap_err().to_string();
        assert_eq!(error, "a retry takes 1 to 1000 revolutions, not 0");
        let error = Faults { slowdown: 0.5, ..Faults::NONE }.check().unwrap_err().to_string();
        assert_eq!(error, "a drive is slowed down 1 to 1000 times, not 0.5 times");
    }
}
