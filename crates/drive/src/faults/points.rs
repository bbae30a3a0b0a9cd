//! Points scattered over a line of whole numbers, read from a hash at any place.
//!
//! The line (a drive's sectors, or nanoseconds since the run began) is cut into cells. How many points
//! a cell has is Poisson-distributed, where they lie in it is uniform, and both are hashes of the
//! cell's number: together a Poisson process that need not be generated from its beginning. Any
//! cell can be asked for, in any order, and has the same points each time.
//!
//! An interval that begins at each point, of a random length `L`, covers a place `x` unless no point
//! at a distance `d` before it has a length above `d`. Points are independent from place to place,
//! with a mean of `r` each, so
//!
//! ```text
//! P(x is not covered) = product over d of exp(-r P(L > d)) = exp(-r E[L])
//! ```
//!
//! at every place alike, also at the first ones: a cell more lies before the beginning. (The coverage
//! of the queue M/G/inf; here it is exact, not a limit.)

use levelhead_stats::{hash_of, unit_of};

/// Points, on average one in `gap`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Points {
    key: u64,
    /// Their mean number in a cell.
    mean: f64,
    /// The length of a cell.
    cell: u64,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Point {
    /// Where it is, counted from one cell before the line's beginning.
    at: u64,
    /// A hash that is its own.
    pub(crate) mark: u64,
}

/// More points than that on average in a cell are never asked for.
const MEAN_MAX: f64 = 32.0;

impl Points {
    /// Points with a mean distance of `gap`, for intervals of at most `length_max`, which may be a
    /// few times as long.
    pub(crate) fn new(key: u64, gap: u64, length_max: u64) -> Self {
        let cell = gap.max(length_max);
        let mean = cell as f64 / gap as f64;
        assert!(gap > 0 && mean <= MEAN_MAX, "{mean} points in a cell of {cell}");
        Self { key, mean, cell }
    }

    /// The intervals that touch the places from `first` to `last`, in no order, each with its point,
    /// its first place (or `first` if it began before) and its last (or `last`).
    pub(crate) fn intervals(
        &self,
        first: u64,
        last: u64,
        length: impl Fn(Point) -> u64,
    ) -> impl Iterator<Item = (u64, u64)> {
        let (from, to) = (first.saturating_add(self.cell), last.saturating_add(self.cell));
        // No interval is longer than a cell.
        let cells = from / self.cell - 1..=to / self.cell;
        cells.flat_map(|cell| self.points(cell)).filter_map(move |point| {
            let length = length(point);
            assert!(length <= self.cell, "an interval of {length}, cells of {}", self.cell);
            let end = point.at.saturating_add(length); // The first place behind it.
            let (begin, end) = (point.at.max(from), end.min(to.saturating_add(1)));
            (begin < end).then(|| (begin - self.cell, end - 1 - self.cell))
        })
    }

    /// The last point at or before a place, if there is one in the line's past: none is likely to be
    /// far.
    pub(crate) fn last_before(&self, place: u64) -> Option<Point> {
        let at = place.saturating_add(self.cell);
        (0..=at / self.cell)
            .rev()
            .find_map(|cell| self.points(cell).filter(|point| point.at <= at).max())
    }

    /// The points of a cell, in no order.
    fn points(&self, cell: u64) -> impl Iterator<Item = Point> {
        let Self { key, mean, cell: length } = *self;
        let count = poisson(mean, unit_of(hash_of(key, &[cell, 0])));
        (1..=count).map(move |number| {
            let mark = hash_of(key, &[cell, number]);
            let offset = (u128::from(mark) * u128::from(length)) >> 64;
            let at = cell.saturating_mul(length).saturating_add(offset as u64);
            Point { at, mark: hash_of(mark, &[]) }
        })
    }
}

/// The value of a Poisson-distributed number at the quantile `unit`.
fn poisson(mean: f64, unit: f64) -> u64 {
    let (mut count, mut term) = (0, (-mean).exp());
    let mut sum = term;
    // At the far end of the tail the terms no longer change the sum.
    while unit >= sum && term > f64::EPSILON * 1e-3 {
        count += 1;
        term *= mean / count as f64;
        sum += term;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four standard errors around exp(-mean) mean^k / k!.
    #[test]
    fn cells_have_a_poisson_number_of_points() {
        for (gap, longest) in [(1_000, 10), (100, 250), (100, 1_600)] {
            let points = Points::new(5, gap, longest);
            let n = 60_000_u64;
            let mut counts = [0_u64; 64];
            (0..n).for_each(|cell| counts[points.points(cell).count()] += 1);
            let mut law = (-points.mean).exp();
            for (k, &count) in counts.iter().enumerate() {
                let error = (law * (1.0 - law) / n as f64).sqrt();
                let share = count as f64 / n as f64;
                assert!((share - law).abs() <= 4.0 * error + 1e-4, "{k} points: {share}, {law}");
                law *= points.mean / (k + 1) as f64;
            }
        }
    }

    #[test]
    fn every_place_is_covered_alike_from_the_first_on() {
        let (gap, longest) = (50, 40);
        let length = |point: Point| 1 + point.mark % longest;
        // E[L] of 1 to 40 is 20.5.
        let law = 1.0 - (-20.5_f64 / gap as f64).exp();
        let n = 40_000_u64;
        for place in [0, 1, 39, 40, 49, 50, 51, 12_345] {
            let covered = (0..n)
                .filter(|&key| {
                    let points = Points::new(key, gap, longest);
                    points.intervals(place, place, length).next().is_some()
                })
                .count();
            let share = covered as f64 / n as f64;
            let error = (law * (1.0 - law) / n as f64).sqrt();
            assert!((share - law).abs() <= 4.0 * error, "place {place}: {share}, law {law}");
        }
    }

    #[test]
    fn a_long_look_sees_what_many_short_ones_see() {
        let points = Points::new(3, 20, 40);
        let length = |point: Point| 1 + point.mark % 40;
        let mut long = vec![0; 1_000];
        for (first, last) in points.intervals(0, 999, length) {
            (first..=last).for_each(|place| long[place as usize] += 1);
        }
        for place in 0..1_000 {
            let short = points.intervals(place, place, length).count();
            assert_eq!(long[place as usize], short, "{place}");
        }
        assert!(long.contains(&0) && long.contains(&2), "{long:?}");
    }

    #[test]
    fn the_last_point_is_the_nearest_one() {
        let points = Points::new(9, 30, 30);
        let all: Vec<Point> = (0..100).flat_map(|cell| points.points(cell)).collect();
        for place in 0..2_000 {
            let nearest = all.iter().filter(|point| point.at <= place + 30).max().copied();
            assert_eq!(points.last_before(place), nearest, "{place}");
        }
    }
}
