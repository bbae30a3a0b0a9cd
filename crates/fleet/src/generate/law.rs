//! Laws given by points, and draws from them.

use levelhead_stats::Rng;

/// The steps of this size fill a range most evenly.
pub(super) const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// A point of a law: the share of hours at or above a value.
pub(super) struct Point {
    pub(super) at: f64,
    pub(super) share: f64,
}

/// The share at or above a value that is one of the points.
pub(super) fn share_at(points: &[Point], value: f64) -> f64 {
    let point = points.iter().find(|point| point.at.total_cmp(&value).is_eq());
    point.expect("the fitted laws have points at 1.2, 1.5 and 2").share
}

/// The value that this share lies at or above: log-log between points, the last line going on.
pub(super) fn value_at(points: &[Point], share: f64) -> f64 {
    let last = points.len() - 2;
    let begin = (0..last).find(|&begin| share >= points[begin + 1].share).unwrap_or(last);
    let (from, to) = (&points[begin], &points[begin + 1]);
    let along = ((from.share / share.max(1e-9)).ln() / (from.share / to.share).ln()).max(0.0);
    (from.at.ln() + along * (to.at / from.at).ln()).exp()
}

/// A value between `from` and `to` by the power law through the two shares, at or above `from` with `from_share`.
pub(super) fn value_between(from: &Point, to: &Point, rng: &mut Rng) -> f64 {
    let share = to.share + (from.share - to.share) * rng.unit();
    let along = (from.share / share).ln() / (from.share / to.share).ln();
    from.at * (to.at / from.at).powf(along)
}

/// About normal: the sum of four even numbers.
pub(super) fn normal(rng: &mut Rng) -> f64 {
    let bits = rng.bits();
    let sum: u64 = [0, 16, 32, 48].iter().map(|shift| (bits >> shift) & 0xffff).sum();
    (sum as f64 / 65536.0 - 2.0) * 1.732_050_8
}

/// Draws the first places from all.
pub(super) fn shuffle_first(rng: &mut Rng, order: &mut [usize], places: usize) {
    for place in 0..places.min(order.len().saturating_sub(1)) {
        let other = place + rng.below((order.len() - place) as u64) as usize;
        order.swap(place, other);
    }
}
