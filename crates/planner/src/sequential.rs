//! The latency of reading many consecutive sectors of one file, with and without local erasure
//! coding.
//!
//! ```text
//!   |  k data | m |  k data | m | ..  |  last | m |      every group but the last is decoded
//!    hidden         hidden               shown           while the next one is being read
//! ```
//!
//! Three laws: without a code ([`without_code`]), the paper's four cases ([`papers_cases`]), and the
//! exact one of the same model ([`exact`]). The cases of the paper, as printed,
//!
//! * give groups of the first `l` the length of the last one, `k' + m`;
//! * count `j` failing groups in every order, `l! / (l-j)!`;
//! * contain "nothing failed in the last group" twice, in case I and as `e_0 = 0` in case II;
//! * have no last group at all where `k` divides the number of sectors.
//!
//! So their masses do not add up to 1. The exact law differs in that alone: the last group is never
//! empty, and redundancy is read there only if data has failed.
//!
//! # References
//!
//! - `[LEC17]` sec. 3.2, Eq. (4) to (9).
//!
//! # Assumptions
//!
//! - A1. Sectors fail independently; a retry always succeeds and takes the same time.
//! - A2. Decoding a group takes no longer than reading the next one.
//! - A3. No seek: the sectors, redundant ones included, pass under the head one after the other.

use std::fmt;

use levelhead_units::Nanos;

use crate::binomial;
use crate::code::{self, Code};
use crate::decode::DecodeTime;
use crate::law::{Counts, Law, PAIRS_MAX};

/// A read of consecutive sectors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Read {
    /// How many sectors of data.
    pub sectors: u64,
    /// Probability that a sector's first pass fails.
    pub failure_rate: f64,
    /// Time in which a sector passes.
    pub sector_time: Nanos,
    /// Time of a sector's retry.
    pub retry_time: Nanos,
}

/// Whether case II of the paper counts "nothing failed", as case I already does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseTwo {
    /// `e_0 <= m`, as printed.
    FromNone,
    /// `1 <= e_0 <= m`.
    FromOne,
}

/// The paper's expression: a law whose mass need not be 1.
#[derive(Clone, Debug, PartialEq)]
pub struct PapersCases {
    /// The points of all four cases.
    pub law: Law,
    /// The mass of cases I to IV.
    pub masses: [f64; 4],
}

/// A read whose law has too many points to be listed: the code fails too often to be of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooWide {
    /// The code.
    pub code: Code,
}

impl fmt::Display for TooWide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code } = self;
        write!(
            f,
            "code {code} fails too often for an exact law of so many reads: choose more redundancy"
        )
    }
}

impl std::error::Error for TooWide {}

/// The most sectors of a read: 40 GB.
pub const SECTORS_MAX: u64 = 10_000_000;
/// The most groups of a read.
const GROUPS_MAX: u64 = 50_000;
/// The most points of a law.
const POINTS_MAX: usize = 4_000_000;

/// Reading with retries alone.
///
/// ```text
///   T = t tau_retry + tau_u N,   t ~ Bin(N, p_h)              [LEC17] Eq. (5)
/// ```
///
/// # Panics
///
/// If the failure rate is no probability.
pub fn without_code(read: Read) -> Law {
    let base = read.sector_time * read.sectors;
    let retries = counts(read.sectors, read.failure_rate);
    let points = retries.iter().map(|(count, mass)| (base + read.retry_time * count, mass));
    Law::new(points, retries.left_out)
}

/// The four cases of the paper, as printed but for `case_two`.
///
/// ```text
///   I    T = tau_u (N + l m)                                     (1-p_s)^l (1-p_h)^k'        (6)
///   II   T = tau_u (N + (l+1) m) + tau_dec(e_0)                  (1-p_s)^l B(k'+m, e_0)      (7)
///   III  .. + j tau_dec(m) + sum tau_retry (e_i - m)
///                               l!/(l-j)! prod p_i (1-p_s)^(l-j) B(k'+m, e_0)                (8)
///   IV   as III with e_0 > m and one more decoding               l!/(l-j)! prod p_i (..)     (9)
///        l = floor(N/k), k' = N - l k, p_i = B(k'+m, e_i), e_i > m, all [LEC17]
/// ```
///
/// Sums over `j` end where they no longer count, at the latest at 64 failing groups.
///
/// # Panics
///
/// If the failure rate is no probability, or the code has no data.
pub fn papers_cases(read: Read, code: Code, decode: &DecodeTime, case_two: CaseTwo) -> PapersCases {
    assert!(code.data > 0, "a code without data");
    let Read { sectors, failure_rate: p, sector_time, retry_time } = read;
    let groups = sectors / code.data;
    let last = code.shortened(sectors % code.data);
    let m = code.redundant;
    let failure = code::failure(code, p);
    let full = sector_time * (sectors + (groups + 1) * m);
    let mut points = Vec::new();
    let mut masses = [0.0; 4];
    let mut add = |case: usize, time: Nanos, mass: f64| {
        masses[case] += mass;
        points.push((time, mass));
    };
    let all_good = none_of(groups, failure);
    let clean = none_of(last.data, p);
    add(0, sector_time * (sectors + groups * m), all_good * clean);
    let first = match case_two {
        CaseTwo::FromNone => 0,
        CaseTwo::FromOne => 1,
    };
    let decodable: Vec<(Nanos, f64)> =
        (0..=m).map(|e| (decode.of(code, e), binomial::mass(last.length(), e, p))).collect();
    for &(time, mass) in &decodable[first..] {
        add(1, full + time, all_good * mass);
    }
    let excess = excess(last, p);
    let one_more = decode.of(code, m);
    for (beyond, mass) in excess.iter() {
        add(3, full + one_more + retry_time * beyond, all_good * mass);
    }
    let (mut failing, mut ln_orders) = (Counts::zero(), 0.0);
    let mut left_out = excess.left_out;
    let of_one: f64 = excess.masses.iter().sum();
    for j in 1..=groups.min(64) {
        failing = failing.plus(&excess);
        ln_orders += ((groups - j + 1) as f64).ln();
        let weight = (ln_orders + binomial::ln_mass(groups - j, 0, failure)).exp();
        let mass: f64 = weight * failing.masses.iter().sum::<f64>();
        // Counted in every order, failing groups may weigh the more the more of them there are.
        let falls = (groups - j) as f64 * of_one < 1.0 - failure;
        if mass < 1e-15 && falls {
            left_out += mass;
            break;
        }
        let decoding = one_more * j;
        for (retries, of_retries) in failing.iter() {
            let time = full + decoding + retry_time * retries;
            for &(last_time, of_last) in &decodable {
                add(2, time + last_time, weight * of_retries * of_last);
            }
            for (beyond, of_last) in excess.iter() {
                let time = time + one_more + retry_time * beyond;
                add(3, time, weight * of_retries * of_last);
            }
        }
    }
    PapersCases { law: Law::new(points, left_out), masses }
}

/// The law of the same model without the slips: binomial failures of the hidden groups, convolved.
///
/// ```text
///   T = tau_u (N + h m) + J tau_dec(m) + R tau_retry + L,      h = ceil(N/k) - 1
///   J ~ Bin(h, p_s) failing groups;  R = sum of J times (e - m given e > m),  e ~ Bin(k+m, p_h)
///   L = 0                                                       no data of the last group failed
///     = tau_u m + tau_dec(min(e, m)) + tau_retry max(e - m, 0)  else; e of its k' + m failed
/// ```
///
/// # Errors
///
/// [`TooWide`] where the code fails in too many groups: the law would have millions of points.
///
/// # Panics
///
/// If the failure rate is no probability, the code has no data, or the read is empty or above
/// [`SECTORS_MAX`].
pub fn exact(read: Read, code: Code, decode: &DecodeTime) -> Result<Law, TooWide> {
    assert!(code.data > 0, "a code without data");
    let Read { sectors, failure_rate: p, sector_time, retry_time } = read;
    assert!((1..=SECTORS_MAX).contains(&sectors), "{sectors} sectors");
    let hidden = sectors.div_ceil(code.data) - 1;
    if hidden > GROUPS_MAX {
        return Err(TooWide { code });
    }
    let m = code.redundant;
    let base = sector_time * (sectors + hidden * m);
    let failure = code::failure(code, p);
    let mut excess = excess(code, p);
    for mass in &mut excess.masses {
        *mass /= failure.max(f64::MIN_POSITIVE);
    }
    // What the excess leaves out was relative to all groups, not to the failing ones.
    excess.left_out = (1.0 - excess.masses.iter().sum::<f64>()).max(0.0);
    let failing = counts(hidden, failure);
    let mut points = Vec::new();
    let mut left_out = failing.left_out;
    let mut retries = excess.times(failing.first);
    for (j, of_j) in failing.iter() {
        if j > failing.first {
            retries = retries.plus(&excess);
        }
        let decoding = decode.of(code, m) * j;
        left_out += of_j * retries.left_out;
        points.extend(
            retries.iter().map(|(r, mass)| (base + decoding + retry_time * r, of_j * mass)),
        );
        if points.len() > POINTS_MAX {
            return Err(TooWide { code });
        }
    }
    let hidden_groups = Law::new(points, left_out);
    let last = last_group(read, code.shortened(sectors - hidden * code.data), code, decode);
    if hidden_groups.points().len().saturating_mul(last.points().len()) > PAIRS_MAX {
        return Err(TooWide { code });
    }
    Ok(hidden_groups.plus(&last))
}

/// What the last group adds: the `L` of [`exact`].
fn last_group(read: Read, last: Code, code: Code, decode: &DecodeTime) -> Law {
    let (p, m) = (read.failure_rate, last.redundant);
    let clean = none_of(last.data, p);
    let failed = counts(last.length(), p);
    // C(m, e) / C(k'+m, e): given e failures, how likely none of them is data.
    let mut only_redundant = 1.0;
    let mut next = 0;
    let mut points = vec![(Nanos::ZERO, clean)];
    for (e, mass) in failed.iter() {
        while next < e {
            only_redundant *= m.saturating_sub(next) as f64 / (last.length() - next) as f64;
            next += 1;
        }
        let time = read.sector_time * m
            + decode.of(code, e.min(m))
            + read.retry_time * e.saturating_sub(m);
        points.push((time, mass * (1.0 - only_redundant)));
    }
    Law::new(points, failed.left_out)
}

/// The probability that none of `n` fails, also where each one does: `(1-p)^n`, and `0^0 = 1`.
pub(crate) fn none_of(n: u64, p: f64) -> f64 {
    binomial::mass(n, 0, p)
}

/// How many more symbols than can be repaired fail in a codeword, where more do: masses of 1, 2 and
/// so on, adding up to the code's failure.
fn excess(code: Code, p: f64) -> Counts {
    let first = code.redundant + 1;
    let peak = (code.length() as f64 * p) as u64;
    let (mut masses, mut sum) = (Vec::new(), 0.0);
    for i in first..=code.length() {
        let mass = binomial::mass(code.length(), i, p);
        // Relative to the sum, not to 1: this becomes a law of its own.
        if i > peak && mass < 1e-18 * sum {
            break;
        }
        sum += mass;
        masses.push(mass);
    }
    Counts { first: 1, masses, left_out: 0.0 }
}

/// Binomial counts within twelve deviations of their mean and 60 more: what is outside has a mass
/// far below that of a [`Counts`]' own cut.
pub(crate) fn counts(n: u64, p: f64) -> Counts {
    let mean = n as f64 * p;
    let reach = 12.0 * (mean * (1.0 - p)).sqrt() + 60.0;
    let low = (mean - reach).max(0.0) as u64;
    let high = ((mean + reach).ceil() as u64).min(n);
    let masses: Vec<f64> = (low..=high).map(|i| binomial::mass(n, i, p)).collect();
    Counts::new(low, &masses)
}

#[cfg(test)]
mod tests {
    use super::*;

    const US_33: Nanos = Nanos::from_micros(33);

    fn read(sectors: u64, failure_rate: f64, retry_ms: u64) -> Read {
        let retry_time = Nanos::from_millis(retry_ms);
        Read { sectors, failure_rate, sector_time: US_33, retry_time }
    }

    const SHORT: Code = Code { data: 250, redundant: 5 };
    const LONG: Code = Code { data: 1014, redundant: 9 };

    /// The six reductions of the 99th percentile that sec. 4.2 of `[LEC17]` states, at both lengths,
    /// with the decoding time of the paper's software.
    #[test]
    fn reproduces_the_reductions_of_lec17_within_one_and_a_half_points() {
        for (sectors, rate, retry, want, codes) in [
            (10_000, 1e-3, 20, 50.1, [SHORT, LONG]),
            (10_000, 1e-3, 40, 67.2, [SHORT, LONG]),
            (10_000, 5e-3, 20, 78.6, LONGER),
            (10_000, 5e-3, 40, 88.1, LONGER),
            (100_000, 5e-3, 20, 76.2, LONGER),
            (100_000, 5e-3, 40, 86.6, LONGER),
        ] {
            let read = read(sectors, rate, retry);
            let without = without_code(read).quantile(0.99).high.unwrap().as_secs_f64();
            let decode = DecodeTime::PAPER_SOFTWARE;
            for code in codes {
                let cases = papers_cases(read, code, &decode, CaseTwo::FromNone);
                let exact = exact(read, code, &decode).unwrap();
                for with in [
                    cases.law.quantile_from_below(0.99).unwrap(),
                    exact.quantile(0.99).high.unwrap(),
                ] {
                    let cut = 100.0 * (1.0 - with.as_secs_f64() / without);
                    assert!((cut - want).abs() < 1.5, "{read:?} {code}: {cut} for {want}");
                }
            }
        }
    }

    const LONGER: [Code; 2] =
        [Code { data: 246, redundant: 9 }, Code { data: 1004, redundant: 19 }];

    /// At 10,000 sectors, length 1023 and 1e-3 the printed cases weigh 1.417, or 1.004 if case II
    /// begins at one failure.
    #[test]
    fn reproduces_the_erratum_of_lec17() {
        let mass = |case_two| {
            let cases = papers_cases(read(10_000, 1e-3, 20), LONG, &DecodeTime::Free, case_two);
            assert!((cases.law.mass() - cases.masses.iter().sum::<f64>()).abs() < 1e-12);
            cases.law.mass()
        };
        assert!((mass(CaseTwo::FromNone) - 1.417).abs() < 5e-4);
        assert!((mass(CaseTwo::FromOne) - 1.004).abs() < 5e-4);
    }

    #[test]
    fn exact_laws_have_mass_one_and_say_what_they_leave_out() {
        let weak = Code { data: 20, redundant: 1 };
        for (sectors, rate, code) in [
            (1, 0.5, SHORT),
            (250, 1e-3, SHORT),
            (10_000, 1e-3, LONG),
            (100_000, 5e-3, Code { data: 246, redundant: 9 }),
            (400, 0.05, weak),
            (1000, 0.0, SHORT),
            (100, 1.0, SHORT),
        ] {
            let law = exact(read(sectors, rate, 20), code, &DecodeTime::PAPER_SOFTWARE).unwrap();
            assert!((law.mass() + law.left_out() - 1.0).abs() < 1e-9, "{sectors} {rate} {code}");
            assert!(law.left_out() < 1e-9, "{sectors} {rate} {code}: {}", law.left_out());
        }
    }

    /// Every pattern of failures of a tiny read, one by one.
    #[test]
    fn exact_law_is_that_of_all_patterns() {
        let code = Code { data: 3, redundant: 1 };
        let (rate, retry): (f64, u64) = (0.3, 20);
        // Two hidden groups of 3 + 1 and a last one of 2 + 1: eleven sectors on the platter.
        let read = read(8, rate, retry);
        let decode = DecodeTime::Table(vec![(1, Nanos::from_millis(1))]);
        let mut points = Vec::new();
        for pattern in 0_u32..1 << 11 {
            let failed = pattern.count_ones();
            let mass = rate.powf(f64::from(failed)) * (1.0 - rate).powf(f64::from(11 - failed));
            let mut time = US_33 * (8 + 2);
            for group in [pattern & 0xF, pattern >> 4 & 0xF] {
                if group.count_ones() > 1 {
                    time += Nanos::from_millis(1 + retry * u64::from(group.count_ones() - 1));
                }
            }
            let last = pattern >> 8;
            if last & 0b11 != 0 {
                let beyond = u64::from(last.count_ones().saturating_sub(1));
                time += US_33 + Nanos::from_millis(1 + retry * beyond);
            }
            points.push((time, mass));
        }
        let want = Law::new(points, 0.0);
        let law = exact(read, code, &decode).unwrap();
        assert_eq!(law.points().len(), want.points().len());
        for (ours, want) in law.points().iter().zip(want.points()) {
            assert_eq!(ours.0, want.0);
            assert!((ours.1 - want.1).abs() < 1e-14, "{}", ours.0);
        }
    }

    #[test]
    fn cases_of_a_drive_on_which_everything_fails_are_numbers() {
        // k divides the sectors, and there are few enough groups for all of them to fail.
        let cases = papers_cases(
            read(40, 1.0, 20),
            Code { data: 1, redundant: 1 },
            &DecodeTime::Free,
            CaseTwo::FromNone,
        );
        assert!(cases.masses.iter().all(|mass| mass.is_finite()), "{:?}", cases.masses);
    }

    /// Eighty groups of a hundred fail: `l!/(l-j)!` grows without end, however little one failing group
    /// weighs.
    #[test]
    fn cases_of_a_weak_code_weigh_more_than_a_law_and_not_nothing() {
        let none = Code { data: 100, redundant: 0 };
        let read = read(10_050, 0.016, 20);
        let cases = papers_cases(read, none, &DecodeTime::Free, CaseTwo::FromNone);
        assert!(cases.law.mass() > 1e6, "{:?}", cases.masses);
    }

    #[test]
    fn a_code_that_is_no_use_is_refused_and_not_computed_for_hours() {
        let none = Code { data: 1, redundant: 0 };
        let refused = exact(read(100_000, 0.5, 20), none, &DecodeTime::Free).unwrap_err();
        assert!(refused.to_string().contains("code 0,1 fails too often"));
    }
}
