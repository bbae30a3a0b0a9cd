//! Sectors whose first pass fails and that a retry mends.
//!
//! `[ERAID]` asks for a rate `p` per sector, the `retry_rate`, and an adjacency `c`: the neighbour of a
//! failed sector fails with probability `c p`. With two independent coins per sector, `base` (heads with
//! probability `b`) and `link` (with `q`),
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
//! a stronger dependence needs longer runs: see `bursts`.) `c = 1` means that sectors fail
//! independently.
//!
//! A sector with zeroes at its end (`zero_tails`) has the same two coins and probabilities of its own, with the same
//! adjacency; what its neighbour's coin says is judged by them, too, whatever that one ends in. So its rate is
//! exact wherever it lies, and each sector that fails with zeroes would fail without.

use levelhead_block::ZeroTail;
use levelhead_units::{Extent, Lba};

use super::{Coin, Faults, FaultsError, Key};

pub(super) fn check(faults: &Faults) -> Result<(), FaultsError> {
    let Faults { retry_rate: rate, adjacency, .. } = *faults;
    let most = adjacency_max(rate.get());
    if adjacency.is_finite() && (1.0..=most).contains(&adjacency) {
        return Ok(());
    }
    Err(FaultsError::Adjacency { adjacency, rate, most })
}

/// The largest adjacency that a rate of `p` allows.
fn adjacency_max(p: f64) -> f64 {
    if p <= 0.0 {
        return f64::INFINITY; // Nothing fails, so nothing has a failed neighbour.
    }
    // b at which q is one: 1 - sqrt(1 - p), written so that it is exact for small p.
    let b = p / (1.0 + (1.0 - p).sqrt());
    ((1.0 - b * (1.0 - p) / p) / p).max(1.0)
}

/// The soft failures of one drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SoftFailures {
    key: Key,
    /// By tail: none, 256, 512 bytes.
    coins: [Coins; 3],
}

/// The probabilities of the two coins, `b` and `q`.
#[derive(Clone, Copy, Debug)]
struct Coins {
    base: f64,
    link: f64,
}

impl Coins {
    /// Of sectors that fail with probability `p`, with an adjacency of `c`.
    fn new(p: f64, c: f64) -> Self {
        if p <= 0.0 || p >= 1.0 {
            return Self { base: p, link: 0.0 };
        }
        let base = p * (1.0 - c * p) / (1.0 - p);
        Self { base, link: (p - base) / (base * (1.0 - base)) }
    }
}

impl SoftFailures {
    pub(crate) fn new(faults: &Faults, key: Key) -> Self {
        let coins = [ZeroTail::None, ZeroTail::B256, ZeroTail::B512]
            .map(|tail| Coins::new(faults.retry_rate_under(tail), faults.adjacency));
        Self { key, coins }
    }

    /// Whether anything ever fails.
    pub(crate) fn is_off(&self) -> bool {
        self.coins[0].base <= 0.0
    }

    /// The sectors of `extent` whose first pass fails on behalf of `origin`, in their order. All have this
    /// tail.
    pub(crate) fn failures(
        &self,
        extent: Extent,
        tail: ZeroTail,
        origin: u64,
    ) -> impl Iterator<Item = Lba> + use<> {
        let key = self.key;
        let Coins { base, link } = match tail {
            ZeroTail::None => self.coins[0],
            ZeroTail::B256 => self.coins[1],
            ZeroTail::B512 => self.coins[2],
        };
        let own = move |lba: u64| key.coin(Coin::Base, origin, lba) < base;
        // The first sector has a neighbour like any other, even if it has no address.
        let mut before = own(extent.lba.get().wrapping_sub(1));
        extent.iter().filter(move |lba| {
            let (neighbour, own) = (before, own(lba.get()));
            before = own;
            own || neighbour && key.coin(Coin::Link, origin, lba.get()) < link
        })
    }
}

#[cfg(test)]
mod tests {
    use levelhead_units::{Ratio, Sectors};

    use super::*;

    fn faults(p: f64, adjacency: f64) -> Faults {
        Faults { retry_rate: Ratio::new(p).unwrap(), adjacency, ..Faults::NONE }
    }

    /// Four standard errors around the law, for pairs of neighbours of as many origins.
    #[track_caller]
    fn check_rates(p: f64, c: f64) {
        check_tail(&faults(p, c), ZeroTail::None);
    }

    #[track_caller]
    fn check_tail(faults: &Faults, tail: ZeroTail) {
        let (p, c) = (faults.retry_rate_under(tail), faults.adjacency);
        faults.check().unwrap();
        let soft = SoftFailures::new(faults, Key::new(77));
        let n = 400_000_u64;
        let (mut failed, mut both) = (0_u64, 0_u64);
        for origin in 0..n {
            let extent = Extent::new(Lba::new(origin % 1_000), Sectors::new(2));
            let second = extent.lba + Sectors::new(1);
            let count = soft.failures(extent, tail, origin).count();
            failed += u64::from(soft.failures(extent, tail, origin).any(|lba| lba == second));
            both += u64::from(count == 2);
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
        check_rates(0.02, adjacency_max(0.02));
    }

    #[test]
    fn sectors_with_zeroes_at_their_ends_have_rates_of_their_own_and_the_same_adjacency() {
        let given: Faults = "retry-rate=30%,zero-tails=10%/2%".parse().unwrap();
        for (p, c) in [(0.2, 1.0), (0.5, 1.2)] {
            check_tail(&faults(p, c), ZeroTail::B256);
            check_tail(&Faults { adjacency: c, ..given }, ZeroTail::B256);
            check_tail(&Faults { adjacency: c, ..given }, ZeroTail::B512);
        }
        check_tail(&faults(1.0, 1.0), ZeroTail::B256);
    }

    #[test]
    fn what_fails_with_more_zeroes_is_part_of_what_fails_with_fewer() {
        let soft = SoftFailures::new(&faults(0.4, 1.5), Key::new(3));
        let extent = Extent::new(Lba::new(5), Sectors::new(30_000));
        let failed = |tail| soft.failures(extent, tail, 9).collect::<Vec<Lba>>();
        let [none, b256, b512] = [ZeroTail::None, ZeroTail::B256, ZeroTail::B512].map(failed);
        let is_part = |few: &[Lba], many: &[Lba]| {
            few.len() < many.len() && few.iter().all(|lba| many.binary_search(lba).is_ok())
        };
        assert!(!b512.is_empty() && is_part(&b512, &b256) && is_part(&b256, &none));
    }

    #[test]
    fn an_adjacency_beyond_pairs_is_refused_with_the_limit() {
        assert!(faults(1.0, 1.0).check().is_ok());
        for adjacency in [0.9, 51.0, f64::NAN] {
            let error = faults(0.01, adjacency).check().unwrap_err().to_string();
            assert!(error.contains("1 to 50.38"), "{error}");
        }
        assert!(faults(0.0, 1e9).check().is_ok(), "nothing fails, beside whatever");
        let error = faults(0.0, f64::INFINITY).check().unwrap_err().to_string();
        assert_eq!(error, "an adjacency is a finite number of at least 1, not inf");
    }
}
