//! The latency of short random reads under zero forcing and local erasure coding, with a queue.
//!
//! A request whose data fails reads its whole group and decodes; the latency is that of the last
//! of all requests in the queue, one drive serving one after the other.
//!
//! # References
//!
//! - `[SDHDD]` sec. 4.3, Eq. (3), (4); Fig. 10. As in `[LEC17]`, the text counts `j` failing requests
//!   in every order, `l! / (l-j)!`; [`exact`] has `C(l, j)`.
//!
//! # Assumptions
//!
//! - A1. Sectors fail independently; a retry always succeeds and takes the same time.
//! - A2. No request spans two groups.
//! - A3. The whole group is read in the place of the request's own sectors, as in Eq. (4).

use levelhead_units::Nanos;

use crate::binomial;
use crate::code::{self, Code};
use crate::decode::DecodeTime;
use crate::law::Law;
use crate::sequential::{TooWide, counts};

/// Random reads of equal size, as many as the queue holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reads {
    /// Requests in the queue.
    pub depth: u64,
    /// Sectors that each one reads, complementary ones included.
    pub sectors: u64,
    /// Probability that a sector's first pass fails.
    pub failure_rate: f64,
    /// Time in which a sector passes.
    pub sector_time: Nanos,
    /// Time of moving the head.
    pub seek_time: Nanos,
    /// Time of a sector's retry.
    pub retry_time: Nanos,
}

impl Reads {
    /// The time of all requests if nothing fails: `l_q (q tau_u + tau_seek)`, `[SDHDD]` Eq. (3).
    pub fn ideal(self) -> Nanos {
        self.one() * self.depth
    }

    fn one(self) -> Nanos {
        self.sector_time * self.sectors + self.seek_time
    }

    /// Probability that nothing fails in one request.
    fn clean(self) -> f64 {
        binomial::mass(self.sectors, 0, self.failure_rate)
    }

    /// The request's time if it reads its whole group.
    fn whole_group(self, code: Code) -> Nanos {
        self.sector_time * code.length() + self.seek_time
    }

    /// Probability that `e` symbols of a group fail, data of the request among them.
    fn touched(self, code: Code, e: u64) -> f64 {
        // C(n-q, e) / C(n, e): none of the e failures lies in the request.
        let (n, q) = (code.length(), self.sectors);
        let spared: f64 =
            (0..e).map(|i| (n - q).saturating_sub(i) as f64 / (n - i) as f64).product();
        binomial::mass(n, e, self.failure_rate) * (1.0 - spared)
    }
}

/// Sectors that a read of `data` sectors fetches under zero forcing with `pages` to a complementary
/// sector: those, and the complementary sector of every set of pages.
///
/// # Panics
///
/// If `pages` is 0.
pub fn with_complementary(data: u64, pages: u64) -> u64 {
    data + data.div_ceil(pages)
}

/// Reading with retries alone: every failed sector costs one.
pub fn without_code(reads: Reads) -> Law {
    let retries = counts(reads.sectors * reads.depth, reads.failure_rate);
    let points = retries.iter().map(|(t, mass)| (reads.ideal() + reads.retry_time * t, mass));
    Law::new(points, retries.left_out)
}

/// The paper's two cases, as printed.
///
/// ```text
///   I   T = l_q (q tau_u + tau_seek)                                      (1-p)^(q l_q)      (3)
///   II  T = j ((l_n+l_m) tau_u + tau_seek) + (l_q-j) (q tau_u + tau_seek)
///                                       l_q!/(l_q-j)! prod p_i (1-p)^(q (l_q-j))             (4)
///       p_i: e'_i >= 1 failures in the request and e_i <= l_m in its group, both [SDHDD]
/// ```
///
/// # Panics
///
/// If the request is longer than the code's data or the rate is no probability.
pub fn papers_cases(reads: Reads, code: Code) -> Law {
    check(reads, code);
    let mended: f64 = (1..=code.redundant).map(|e| reads.touched(code, e)).sum();
    // By logarithms: 256 requests have more orders than a number holds.
    let mut ln_orders = 0.0;
    let points: Vec<(Nanos, f64)> = (0..=reads.depth)
        .map(|j| {
            if j > 0 {
                ln_orders += ((reads.depth - j + 1) as f64 * mended).ln();
            }
            let others = reads.depth - j;
            let time = reads.whole_group(code) * j + reads.one() * others;
            let ln_others = binomial::ln_mass(reads.sectors * others, 0, reads.failure_rate);
            (time, (ln_orders + ln_others).exp())
        })
        .collect();
    Law::new(points, 0.0)
}

/// The law of the same model, with decoding, with groups that fail to decode, and with every set
/// of failing requests counted once.
///
/// # Errors
///
/// [`TooWide`] where too many symbols of a group fail: the law would have millions of points.
///
/// # Panics
///
/// As [`papers_cases`].
pub fn exact(reads: Reads, code: Code, decode: &DecodeTime) -> Result<Law, TooWide> {
    check(reads, code);
    let (n, m) = (code.length(), code.redundant);
    let mean = n as f64 * reads.failure_rate;
    let most = ((mean + 12.0 * mean.sqrt()).ceil() as u64 + 60).min(n);
    let mut points = vec![(reads.one(), reads.clean())];
    points.extend((1..=most).map(|e| {
        let time = reads.whole_group(code)
            + decode.of(code, e.min(m))
            + reads.retry_time * e.saturating_sub(m);
        (time, reads.touched(code, e))
    }));
    let one = Law::new(points, binomial::above(n, most, reads.failure_rate));
    one.times(reads.depth).ok_or(TooWide { code })
}

/// Probability that one group cannot be decoded: that a request needs a retry all the same.
pub fn retry_rate(reads: Reads, code: Code) -> f64 {
    code::failure(code, reads.failure_rate)
}

fn check(reads: Reads, code: Code) {
    let Reads { sectors, failure_rate, .. } = reads;
    assert!(sectors <= code.data, "{sectors} sectors of a group with {} of data", code.data);
    assert!((0.0..=1.0).contains(&failure_rate), "{failure_rate} is not a probability");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(depth: u64, sectors: u64, failure_rate: f64) -> Reads {
        Reads {
            depth,
            sectors,
            failure_rate,
            sector_time: Nanos::from_micros(33),
            seek_time: Nanos::from_millis(10),
            retry_time: Nanos::from_millis(20),
        }
    }

    fn p99(law: &Law) -> f64 {
        law.quantile(0.99).high.unwrap().as_millis_f64()
    }

    /// `[SDHDD]` Fig. 10: both techniques together below 10 % over the ideal drive.
    #[test]
    fn reproduces_that_both_together_stay_below_ten_percent() {
        let code = Code { data: 254, redundant: 1 };
        for depth in [1, 4, 16, 32] {
            for data in [1, 4, 16, 64] {
                let ideal = reads(depth, data, 0.0).ideal().as_millis_f64();
                let fetched = with_complementary(data, 15);
                let both =
                    p99(&exact(reads(depth, fetched, 5e-6), code, &DecodeTime::PAPER_SOFTWARE)
                        .unwrap());
                assert!(both / ideal < 1.1, "depth {depth}, {data} sectors: {both} / {ideal}");
            }
        }
    }

    #[test]
    fn laws_have_mass_one_and_the_papers_has_not() {
        let code = Code { data: 246, redundant: 9 };
        for (depth, sectors, rate) in [(1, 1, 5e-3), (8, 16, 5e-3), (32, 64, 0.02)] {
            let reads = reads(depth, sectors, rate);
            for law in
                [without_code(reads), exact(reads, code, &DecodeTime::PAPER_SOFTWARE).unwrap()]
            {
                assert!((law.mass() + law.left_out() - 1.0).abs() < 1e-10, "{reads:?}");
            }
        }
        assert!(papers_cases(reads(8, 16, 5e-3), code).mass() > 1.1);
        // One request: no order, and only the undecodable groups are missing.
        let one = papers_cases(reads(1, 16, 5e-3), code);
        assert!((one.mass() - 1.0).abs() < 1e-6);
    }

    #[test]
    fn more_orders_than_a_number_holds_are_no_hole_in_the_papers_cases() {
        let law = papers_cases(reads(256, 50, 0.5), Code { data: 55, redundant: 200 });
        let times: Vec<u64> = law.points().iter().map(|point| point.0.get()).collect();
        let steps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(steps.len() > 40 && steps.iter().all(|step| *step == steps[0]), "{steps:?}");
    }

    /// Tens of thousands of points for each of 256 requests would take minutes.
    #[test]
    fn a_queue_of_reads_that_all_fail_is_refused_and_not_computed_for_minutes() {
        let code = Code { data: 155, redundant: 100 };
        let reads = reads(256, 100, 0.3);
        assert!(exact(reads, code, &DecodeTime::PAPER_SOFTWARE).is_err());
    }

    #[test]
    fn a_read_of_any_size_fetches_one_complementary_sector_a_set() {
        for (data, want) in [(1, 2), (15, 16), (16, 18), (30, 32)] {
            assert_eq!(with_complementary(data, 15), want);
        }
    }
}
