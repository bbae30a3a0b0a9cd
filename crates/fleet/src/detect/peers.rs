//! A member against the median of the others, in one window.

use super::Reading;

/// The latency of a reading that is of use.
pub(super) fn usable(reading: &Option<Reading>) -> Option<f64> {
    reading
        .map(|reading| reading.latency_us)
        .filter(|latency| latency.is_finite() && *latency > 0.0)
}

/// Log of each member's latency over the median of the others' logs; none for a member without a usable reading, or with fewer than
/// `peers_min` others that have one.
pub(super) fn log_ratios(members: &[Option<Reading>], peers_min: usize) -> Vec<Option<f64>> {
    let mut logs: Vec<(f64, usize)> = members
        .iter()
        .enumerate()
        .filter_map(|(idx, reading)| usable(reading).map(|latency| (latency.ln(), idx)))
        .collect();
    let mut ratios = vec![None; members.len()];
    if logs.len() <= peers_min.max(1) {
        return ratios;
    }
    // Equal values may stand in any order: the median of the rest is the same.
    logs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let others = logs.len() - 1;
    for (place, &(log, idx)) in logs.iter().enumerate() {
        let other = |nth: usize| logs[if nth < place { nth } else { nth + 1 }].0;
        let median = if others % 2 == 1 {
            other(others / 2)
        } else {
            f64::midpoint(other(others / 2 - 1), other(others / 2))
        };
        ratios[idx] = Some(log - median);
    }
    ratios
}

/// A quantile of values in order, between them by a straight line. Panics for no value.
pub(super) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_against_the_others_alone() {
        let reading = |latency_us| Some(Reading { latency_us, load: 1.0 });
        let members = [reading(1.0), reading(2.0), None, reading(4.0), reading(16.0), reading(0.0)];
        let ratios = log_ratios(&members, 3);
        let expected = [(0, 0.25), (1, 0.5), (3, 2.0), (4, 8.0)];
        for (idx, ratio) in expected {
            assert!((ratios[idx].unwrap().exp() - ratio).abs() < 1e-12);
        }
        assert_eq!((ratios[2], ratios[5]), (None, None));
        assert!(log_ratios(&members, 4).iter().all(Option::is_none));
    }

    #[test]
    fn quantiles_are_between_values() {
        assert!((quantile(&[1.0, 2.0, 4.0], 0.75) - 3.0).abs() < 1e-12);
        assert!((quantile(&[5.0], 0.3) - 5.0).abs() < 1e-12);
    }
}
