//! How often a code fails, and the least redundancy that keeps to a target.
//!
//! # References
//!
//! - `[LEC17]` sec. 2.3 and 3.1, Eq. (1); Table 1.
//! - `[SDHDD]` sec. 2.3, Eq. (1); the soft and the hard target of sec. 3.1.
//! - `[ERAID]` sec. III-A, the failure of a coding group of `e` sectors of every drive.

use std::fmt;
use std::str::FromStr;

use crate::binomial;

/// A code with `data` and `redundant` symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code {
    /// Symbols that carry data.
    pub data: u64,
    /// Symbols computed from them.
    pub redundant: u64,
}

/// A failure rate before the code and the one wanted after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// Probability that a symbol fails.
    pub failure_rate: f64,
    /// Probability that may remain after decoding.
    pub target: f64,
}

/// The longest codeword that a search looks at: what 16-bit symbols allow.
pub const LENGTH_MAX: u64 = 65_536;

impl Code {
    /// Symbols in a codeword.
    pub fn length(self) -> u64 {
        self.data + self.redundant
    }

    /// Redundant symbols for each data symbol, `m / k` in the papers.
    pub fn redundancy(self) -> f64 {
        self.redundant as f64 / self.data as f64
    }

    /// The code with its last symbols of data left out, as at the end of a file.
    #[must_use]
    pub fn shortened(self, data: u64) -> Self {
        assert!(data <= self.data, "{self} cannot be shortened to {data} data symbols");
        Self { data, ..self }
    }
}

impl fmt::Display for Code {
    /// `redundant,data`, as file codes are written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.redundant, self.data)
    }
}

/// A text that is no code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseCodeError(String);

impl fmt::Display for ParseCodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is not a code: expected REDUNDANT,DATA, as in 9,246, of at most {LENGTH_MAX} symbols",
            self.0
        )
    }
}

impl std::error::Error for ParseCodeError {}

impl FromStr for Code {
    type Err = ParseCodeError;
    fn from_str(text: &str) -> Result<Self, ParseCodeError> {
        let parts = text.split_once(',').and_then(|(redundant, data)| {
            let (redundant, data) = (redundant.trim().parse().ok()?, data.trim().parse().ok()?);
            Some(Self { data, redundant })
        });
        parts
            .filter(|code| code.data > 0 && code.data.saturating_add(code.redundant) <= LENGTH_MAX)
            .ok_or_else(|| ParseCodeError(text.to_owned()))
    }
}

/// Logarithm of [`failure`], for probabilities below what a number can hold.
///
/// # Panics
///
/// If `failure_rate` is no probability.
pub fn ln_failure(code: Code, failure_rate: f64) -> f64 {
    binomial::ln_above(code.length(), code.redundant, failure_rate)
}

/// Probability that a codeword cannot be decoded.
///
/// ```text
///   P = sum_(i > m)^(k+m)  C(k+m, i) p^i (1-p)^(k+m-i)       [LEC17] Eq. (1), [SDHDD] Eq. (1)
/// ```
///
/// # Panics
///
/// If `failure_rate` is no probability.
pub fn failure(code: Code, failure_rate: f64) -> f64 {
    binomial::above(code.length(), code.redundant, failure_rate)
}

/// How many data symbols a codeword may have at most with 1, 2 .. redundant ones, so that it is lost no more often than the goal says:
/// shorter codewords need less redundancy than the longest one, `code`, which is the last entry.
///
/// # Panics
///
/// If the goal's failure rate is no probability.
pub fn lengths(code: Code, goal: Goal) -> Vec<u64> {
    let longest = |redundant: u64| {
        let suffices =
            |data: u64| failure(Code { data, redundant }, goal.failure_rate) <= goal.target;
        // The more data, the more fails.
        let (mut least, mut most) = (0, code.data);
        while least < most {
            let middle = (least + most).div_ceil(2);
            if suffices(middle) { least = middle } else { most = middle - 1 }
        }
        least
    };
    (1..code.redundant).map(longest).chain([code.data]).collect()
}

/// The code of a coding group of `eRAID(e)`: `sectors` consecutive sectors of every drive.
///
/// ```text
///   P_eraid = sum_(i > ek)^(e(m+k))  C(e(m+k), i) p^i (1-p)^(e(m+k)-i)       [ERAID] sec. III-A
/// ```
///
/// which is [`failure`] of this code.
pub fn coding_group(data_drives: u64, redundant_drives: u64, sectors: u64) -> Code {
    Code { data: data_drives * sectors, redundant: redundant_drives * sectors }
}

/// The paper's bound of a coding group's failure where a failed sector makes its neighbour `correlation`
/// times as likely to fail.
///
/// ```text
///   sum_(i > m)^n  C(n, i) p^floor(i/2) (cp)^ceil(i/2) (1-cp)^(n-i)          [ERAID] sec. III-A
/// ```
///
/// which is a binomial law of `cp` with the terms weighted by `c^-floor(i/2)`.
///
/// Made for groups of a dozen sectors. It lets the sectors that do not fail be good with `1-cp` each,
/// not `1-p`: where many sectors meet a large `c p` the expression falls below [`failure`] of
/// independent sectors, and bounds nothing.
///
/// # Panics
///
/// If `correlation` is below 1 or `correlation * failure_rate` above 1.
pub fn failure_bound_correlated(code: Code, failure_rate: f64, correlation: f64) -> f64 {
    assert!(correlation >= 1.0, "a neighbour that fails {correlation} times as often");
    let raised = correlation * failure_rate;
    assert!((0.0..=1.0).contains(&raised), "{raised} is not a probability");
    let weight = |i: u64| correlation.powf(-((i / 2) as f64));
    binomial::ln_above_weighted(code.length(), code.redundant, raised, weight).exp()
}

/// The least redundancy with which a codeword of `length` symbols meets the goal; `None` if not even
/// a single data symbol could be kept.
///
/// # Panics
///
/// If `length` is 0 or above [`LENGTH_MAX`], or a rate is no probability.
pub fn least_redundant(length: u64, goal: Goal) -> Option<Code> {
    least_redundant_of_all(length, &[goal])
}

/// The least redundancy that meets every goal at once: `[SDHDD]` asks for fewer than 1e-6 retries
/// (soft) and fewer than 1e-12 losses (hard).
///
/// # Panics
///
/// As [`least_redundant`].
pub fn least_redundant_of_all(length: u64, goals: &[Goal]) -> Option<Code> {
    assert!((1..=LENGTH_MAX).contains(&length), "{length} symbols");
    first_that(0, length - 1, |redundant| {
        let code = Code { data: length - redundant, redundant };
        goals.iter().all(|goal| meets(code, *goal))
    })
    .map(|redundant| Code { data: length - redundant, redundant })
}

/// The least redundancy for `data` symbols, the codeword growing with it: Fig. 4 of `[LEC17]`.
/// `None` if [`LENGTH_MAX`] symbols do not suffice.
///
/// # Panics
///
/// If `data` is 0 or above [`LENGTH_MAX`], or a rate is no probability.
pub fn least_redundant_for_data(data: u64, goal: Goal) -> Option<Code> {
    assert!((1..=LENGTH_MAX).contains(&data), "{data} symbols");
    let code = |redundant| Code { data, redundant };
    first_that(0, LENGTH_MAX - data, |redundant| meets(code(redundant), goal)).map(code)
}

/// The highest failure rate at which `code` still meets `target`; 0 for a target of 0.
///
/// # Panics
///
/// If `target` is outside 0 to 1.
pub fn failure_rate_max(code: Code, target: f64) -> f64 {
    assert!((0.0..=1.0).contains(&target), "{target} is not a probability");
    if target <= 0.0 {
        return 0.0;
    }
    let (mut low, mut high) = (f64::MIN_POSITIVE.ln(), 0.0);
    // Bisection of the logarithm; a hundred halvings leave nothing of the interval.
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        let goal = Goal { failure_rate: middle.exp(), target };
        if meets(code, goal) { low = middle } else { high = middle }
    }
    low.exp()
}

fn meets(code: Code, goal: Goal) -> bool {
    assert!((0.0..=1.0).contains(&goal.target), "{} is not a probability", goal.target);
    ln_failure(code, goal.failure_rate) <= goal.target.ln()
}

/// The first of `low..=high` for which `is_enough`, which once true stays true.
fn first_that(low: u64, high: u64, is_enough: impl Fn(u64) -> bool) -> Option<u64> {
    let (mut low, mut high) = (low, high);
    if !is_enough(high) {
        return None;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if is_enough(middle) { high = middle } else { low = middle + 1 }
    }
    Some(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 1 of `[LEC17]`, at a target of 1e-6: rate, then redundant and data symbols at lengths
    /// 255 and 1023.
    #[test]
    fn reproduces_table_1_of_lec17() {
        for (failure_rate, short, long) in [
            (1e-4, "3,252", "4,1019"),
            (5e-4, "4,251", "7,1016"),
            (1e-3, "5,250", "9,1014"),
            (5e-3, "9,246", "19,1004"),
        ] {
            for (length, want) in [(255, short), (1023, long)] {
                let code = least_redundant(length, Goal { failure_rate, target: 1e-6 }).unwrap();
                assert_eq!(code.to_string(), want, "rate {failure_rate}");
            }
        }
    }

    /// Table 2 of `[SDHDD]`, but for the last code of length 1023, which leaves 1.002e-6.
    #[test]
    fn reproduces_table_2_of_sdhdd_but_for_one() {
        for (failure_rate, short, long) in [(5e-3, 9, 19), (8e-3, 12, 25), (1e-2, 13, 29)] {
            let goal = Goal { failure_rate, target: 1e-6 };
            assert_eq!(least_redundant(255, goal).unwrap().redundant, short);
            assert_eq!(least_redundant(1023, goal).unwrap().redundant, long);
        }
        let papers = failure(Code { data: 995, redundant: 28 }, 1e-2);
        assert!((papers - 1.002e-6).abs() < 1e-9, "{papers}");
    }

    #[test]
    fn reproduces_fig_3_of_eraid() {
        for (sectors, want, bound) in
            [(1, 1.46e-3, f64::NAN), (2, 2.06e-4, 7.5e-4), (3, 2.73e-5, 9.8e-5)]
        {
            let code = coding_group(5, 1, sectors);
            assert!((failure(code, 0.01) / want - 1.0).abs() < 3e-3, "e {sectors}");
            let ours = failure_bound_correlated(code, 0.01, 2.0);
            assert!(bound.is_nan() || (ours / bound - 1.0).abs() < 1e-2, "e {sectors}: {ours}");
        }
    }

    #[test]
    fn codes_are_read_as_they_are_written() {
        let code = Code { data: 246, redundant: 9 };
        assert_eq!(code.to_string().parse(), Ok(code));
        for text in ["9", "9,0", "9;246", "-1,3", "1,65536", "18446744073709551615,1"] {
            let error = text.parse::<Code>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("'{text}' is not a code")), "{error}");
        }
    }

    #[test]
    fn no_correlation_is_no_bound_but_the_law() {
        let code = Code { data: 250, redundant: 5 };
        let ratio = failure_bound_correlated(code, 1e-3, 1.0) / failure(code, 1e-3);
        assert!((ratio - 1.0).abs() < 1e-13);
    }

    #[test]
    fn two_goals_take_the_larger_redundancy() {
        let soft = Goal { failure_rate: 1e-3, target: 1e-6 };
        let hard = Goal { failure_rate: 1e-4, target: 1e-12 };
        let of = |goals: &[Goal]| least_redundant_of_all(255, goals).unwrap().redundant;
        assert_eq!(of(&[soft, hard]), of(&[soft]).max(of(&[hard])));
    }

    #[test]
    fn what_cannot_be_met_is_nothing() {
        assert_eq!(least_redundant(7, Goal { failure_rate: 0.5, target: 1e-9 }), None);
        assert_eq!(least_redundant(7, Goal { failure_rate: 0.5, target: 0.0 }), None);
        assert_eq!(least_redundant(1, Goal { failure_rate: 0.0, target: 0.0 }).unwrap().data, 1);
    }

    #[test]
    fn highest_rate_is_where_the_target_is_just_met() {
        let code = Code { data: 254, redundant: 1 };
        let rate = failure_rate_max(code, 1e-6);
        assert!((rate - 5.56e-6).abs() < 1e-8, "{rate}");
        assert!((failure(code, rate) / 1e-6 - 1.0).abs() < 1e-9);
        assert!(failure_rate_max(Code { data: 250, redundant: 5 }, 0.0) <= 0.0);
    }

    #[test]
    fn the_papers_bound_is_below_the_law_of_long_codewords_and_large_correlations() {
        let code = Code { data: 250, redundant: 5 };
        let bound = |correlation| failure_bound_correlated(code, 1e-3, correlation);
        assert!(bound(10.0) > failure(code, 1e-3));
        assert!(bound(100.0) < failure(code, 1e-3));
    }
}
