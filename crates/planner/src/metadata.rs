//! Replicas of metadata: a code with one data symbol.
//!
//! # References
//!
//! - `[LEC17]` sec. 3.1, Eq. (3).

/// How many copies of a sector in all, the first included, fail together with at most `target`.
///
/// ```text
///   the smallest m' with  p^m' <= p_s              [LEC17] Eq. (3)
/// ```
///
/// `None` if no number of copies suffices: a rate of 1, or a target of 0 that is not met by chance.
///
/// # Panics
///
/// If one of the two is no probability.
pub fn replicas(failure_rate: f64, target: f64) -> Option<u64> {
    assert!((0.0..=1.0).contains(&failure_rate), "{failure_rate} is not a probability");
    assert!((0.0..=1.0).contains(&target), "{target} is not a probability");
    if failure_rate <= target {
        return Some(1);
    }
    if failure_rate >= 1.0 || target <= 0.0 {
        return None;
    }
    let exact = target.ln() / failure_rate.ln();
    // Both logarithms are rounded: 1e-6 of 1e-2 is three, not three and a bit.
    Some((exact - 1e-12 * exact).ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_copies_suffice() {
        for (failure_rate, target, want) in [
            (1e-2, 1e-6, Some(3)),
            (1e-3, 1e-6, Some(2)),
            (5e-3, 1e-8, Some(4)),
            (1e-7, 1e-6, Some(1)),
            (1e-2, 1e-30, Some(15)),
            (1.0, 1e-6, None),
            (0.5, 0.0, None),
            (0.0, 0.0, Some(1)),
        ] {
            assert_eq!(replicas(failure_rate, target), want, "{failure_rate} {target}");
        }
    }
}
