//! Redundancy of a whole drive whose files are of three kinds, each with fixed parameters.
//!
//! | kind | zero forcing | local erasure code |
//! |---|---|---|
//! | A: immutable, read in sequence | none | long |
//! | B: immutable, read at random | 256 bytes, 15 pages to a complementary sector | shorter than a track |
//! | mutable: the rest | 512 bytes, 7 pages to two complementary sectors | none |
//!
//! # References
//!
//! - `[SDHDD]` sec. 3.2 and 3.3, Eq. (2); sec. 4.1, Fig. 6.

use levelhead_units::SECTOR_SIZE;

use crate::Code;

/// Capacities of the three kinds of file; only their proportions count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacities {
    /// Immutable, read in sequence.
    pub sequential: f64,
    /// Immutable, read at random.
    pub random: f64,
    /// The rest.
    pub mutable: f64,
}

/// Pages that share a complementary sector when the last `forced` bytes of every sector are zero.
///
/// ```text
///   d = n_s / n_z - 1                                          [SDHDD] sec. 3.3
/// ```
///
/// # Panics
///
/// If `forced` is 0, no divisor of a sector, or the whole sector.
pub fn pages(forced: usize) -> u64 {
    assert!(forced > 0 && forced < SECTOR_SIZE, "{forced} bytes of zeros");
    assert!(SECTOR_SIZE.is_multiple_of(forced), "{forced} bytes of zeros");
    (SECTOR_SIZE / forced) as u64 - 1
}

/// Redundant capacity for each unit of data.
///
/// ```text
///   C_A l_m^A / l_n^A  +  C_B (1/d_B + l_m^B / l_n^B)  +  C_M 2/d_M          [SDHDD] Eq. (2)
/// ```
///
/// with the capacities scaled to a sum of 1, and 256 and 512 bytes of zeros.
///
/// # Panics
///
/// If the capacities do not add up to more than nothing, or one is negative.
pub fn redundancy(capacities: Capacities, sequential: Code, random: Code) -> f64 {
    let Capacities { sequential: a, random: b, mutable } = capacities;
    let all = a + b + mutable;
    assert!(a >= 0.0 && b >= 0.0 && mutable >= 0.0, "{capacities:?}");
    assert!(all > 0.0, "{capacities:?}");
    let of_random = 1.0 / pages(256) as f64 + random.redundancy();
    (a * sequential.redundancy() + b * of_random + mutable * 2.0 / pages(512) as f64) / all
}

/// The failure rate that 256 bytes of zeros leave of `failure_rate`: `0.2 p^2`.
///
/// An assumption of ours. The paper reads it off its Fig. 1, whose numbers are not in the text. What
/// it says elsewhere confines it: one redundant symbol of 255 suffices at 5e-3 (at most 5.6e-6), two
/// are needed and suffice at 8e-3 and 1e-2 (5.6e-6 to 7.2e-5; Table 2), and the redundancy of Fig. 6
/// stays below 9 % (at most 2.3e-5 at 1e-2). This parabola, 5e-6 and 2e-5 at 5e-3 and 1e-2, is
/// within all of them.
pub fn forced_failure_rate(failure_rate: f64) -> f64 {
    0.2 * failure_rate * failure_rate
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::{Goal, failure_rate_max, least_redundant};

    #[test]
    fn reproduces_the_pages_of_sdhdd() {
        assert_eq!([pages(256), pages(512)], [15, 7]);
    }

    /// The corners of Fig. 6: about 2 % and below 9 %.
    #[test]
    fn reproduces_the_range_of_fig_6() {
        let of = |capacities: [f64; 3], lengths: [u64; 2], failure_rate: f64| {
            let [sequential, random, mutable] = capacities;
            let code = |length, failure_rate| {
                least_redundant(length, Goal { failure_rate, target: 1e-6 }).unwrap()
            };
            redundancy(
                Capacities { sequential, random, mutable },
                code(lengths[0], failure_rate),
                code(lengths[1], forced_failure_rate(failure_rate)),
            )
        };
        let low = of([90.0, 8.0, 2.0], [1023, 127], 1e-3);
        let high = of([50.0, 40.0, 10.0], [255, 63], 1e-2);
        assert!((low - 0.0197).abs() < 1e-4, "{low}");
        assert!((high - 0.0885).abs() < 1e-4, "{high}");
    }

    /// What the paper says about the failure rate under zero forcing holds for the assumed one.
    #[test]
    fn the_assumed_rate_is_within_what_the_paper_says() {
        let one = failure_rate_max(Code { data: 254, redundant: 1 }, 1e-6);
        let two = failure_rate_max(Code { data: 253, redundant: 2 }, 1e-6);
        let of_63 = failure_rate_max(Code { data: 62, redundant: 1 }, 1e-6);
        assert!(forced_failure_rate(5e-3) <= one);
        for rate in [8e-3, 1e-2] {
            assert!((one..=two).contains(&forced_failure_rate(rate)), "{rate}");
        }
        assert!(forced_failure_rate(1e-2) <= of_63);
    }
}
