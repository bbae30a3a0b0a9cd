//! The law of a latency: points in time with probabilities, and what was left out.
//!
//! Convolving laws multiplies their points, and almost all of the new ones are too unlikely to
//! matter. They are cut, and their mass is kept as a number: it may lie anywhere, so that a
//! percentile is a [`Bracket`] between the two worst places for it.

use levelhead_units::Nanos;

/// Points in time with their probabilities.
#[derive(Clone, Debug, PartialEq)]
pub struct Law {
    /// Ascending, no time twice, no mass of zero.
    points: Vec<(Nanos, f64)>,
    left_out: f64,
}

/// A percentile, and how far what was left out could move it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bracket {
    /// The percentile if everything left out is early.
    pub low: Nanos,
    /// The percentile if everything left out is late; `None` if it is left out itself.
    pub high: Option<Nanos>,
}

/// Mass that one cut of a law may leave out.
const CUT: f64 = 1e-13;

/// The most pairs of points that a sum of laws is made of, however many of them: some seconds' work.
pub const PAIRS_MAX: usize = 32_000_000;

/// Mass that one cut of counts may leave out.
const CUT_COUNTS: f64 = 1e-15;

impl Law {
    /// The law of these points; `left_out` is the mass that is missing.
    pub fn new(points: impl IntoIterator<Item = (Nanos, f64)>, left_out: f64) -> Self {
        let mut points: Vec<(Nanos, f64)> =
            points.into_iter().filter(|&(_, mass)| mass > 0.0).collect();
        points.sort_unstable_by_key(|&(time, _)| time);
        points.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            if is_same {
                kept.1 += next.1;
            }
            is_same
        });
        Self { points, left_out }
    }

    /// Always `time`.
    pub fn certain(time: Nanos) -> Self {
        Self::new([(time, 1.0)], 0.0)
    }

    /// The points, ascending.
    pub fn points(&self) -> &[(Nanos, f64)] {
        &self.points
    }

    /// Bound of the mass that was left out.
    pub fn left_out(&self) -> f64 {
        self.left_out
    }

    /// The mass of the points. Not 1 where an expression counts a case twice.
    pub fn mass(&self) -> f64 {
        // Folded from plain zero: the sum of nothing is a negative one.
        self.points.iter().fold(0.0, |sum, point| sum + point.1)
    }

    /// The mean of the points, each by its share of the mass.
    pub fn mean(&self) -> Nanos {
        let sum: f64 = self.points.iter().map(|&(time, mass)| time.get() as f64 * mass).sum();
        Nanos::new((sum / self.mass()).round() as u64)
    }

    /// Probability of more than `time`, without what was left out.
    pub fn above(&self, time: Nanos) -> f64 {
        let first = self.points.partition_point(|&(at, _)| at <= time);
        self.points[first..].iter().rev().map(|point| point.1).sum()
    }

    /// The time that with a probability of `share` is not exceeded.
    ///
    /// # Panics
    ///
    /// If there are no points, or `share` is outside 0 to 1.
    pub fn quantile(&self, share: f64) -> Bracket {
        assert!((0.0..=1.0).contains(&share), "{share} is not a share");
        assert!(!self.points.is_empty(), "a law without points has no percentiles");
        let beyond = 1.0 - share;
        Bracket {
            low: self.first_with_above(beyond).expect("nothing is above the last point"),
            high: self.first_with_above(beyond - self.left_out),
        }
    }

    /// The smallest time with a mass of at most `beyond` above it. Summed from above, where small
    /// masses meet small masses.
    fn first_with_above(&self, beyond: f64) -> Option<Nanos> {
        let mut above = 0.0;
        let mut first = None;
        for &(time, mass) in self.points.iter().rev() {
            // The slack is for the rounding of 1 - 0.99.
            if above > beyond + 1e-14 {
                break;
            }
            first = Some(time);
            above += mass;
        }
        first
    }

    /// The percentile as `[LEC17]` Eq. (4) has it, `sum_(T <= T_tail) f(T) >= P_tail`, summed from
    /// below: for expressions whose mass is not 1. `None` if the mass does not reach `share`.
    pub fn quantile_from_below(&self, share: f64) -> Option<Nanos> {
        let mut below = 0.0;
        self.points.iter().find_map(|&(time, mass)| {
            below += mass;
            (below >= share - 1e-14).then_some(time)
        })
    }

    /// The law of the sum of this and an independent `other`.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let sums = self.points.iter().flat_map(|&(time, mass)| {
            other.points.iter().map(move |&(more, of_more)| (time + more, mass * of_more))
        });
        Self::new(sums, self.left_out + other.left_out).cut()
    }

    /// The law of the sum of `count` independent times, each with this law; `None` where that takes
    /// more than [`PAIRS_MAX`] pairs of points in all.
    #[must_use]
    pub fn times(&self, count: u64) -> Option<Self> {
        // One after the other: doubling would convolve two wide laws with each other.
        let one = self.clone().cut();
        let mut left = PAIRS_MAX;
        (0..count).try_fold(Self::certain(Nanos::ZERO), |sum, _| {
            left = left.checked_sub(sum.points.len().saturating_mul(one.points.len()))?;
            Some(sum.plus(&one))
        })
    }

    /// The law without its least likely points, as many as make up [`CUT`].
    fn cut(self) -> Self {
        let mut masses: Vec<f64> = self.points.iter().map(|point| point.1).collect();
        masses.sort_unstable_by(f64::total_cmp);
        let (mut gone, mut least) = (0.0, 0.0);
        for mass in masses {
            if gone + mass > CUT {
                least = mass;
                break;
            }
            gone += mass;
        }
        let points: Vec<_> = self.points.into_iter().filter(|point| point.1 >= least).collect();
        Self { points, left_out: self.left_out + gone }
    }
}

/// The law of a count: masses of `first`, `first + 1` and so on.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    pub(crate) first: u64,
    pub(crate) masses: Vec<f64>,
    /// Mass cut at both ends.
    pub(crate) left_out: f64,
}

impl Counts {
    /// Always zero.
    pub(crate) fn zero() -> Self {
        Self { first: 0, masses: vec![1.0], left_out: 0.0 }
    }

    /// The masses, without their ends where those add up to no more than [`CUT_COUNTS`].
    pub(crate) fn new(first: u64, masses: &[f64]) -> Self {
        let ends = |masses: &mut dyn Iterator<Item = f64>| {
            let (mut gone, mut count) = (0.0, 0);
            for mass in masses {
                if gone + mass > CUT_COUNTS / 2.0 {
                    break;
                }
                gone += mass;
                count += 1;
            }
            (count, gone)
        };
        let (front, front_mass) = ends(&mut masses.iter().copied());
        let (back, back_mass) = ends(&mut masses[front..].iter().rev().copied());
        let kept = masses[front..masses.len() - back].to_vec();
        Self { first: first + front as u64, masses: kept, left_out: front_mass + back_mass }
    }

    /// The law of the sum of two independent counts.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        if self.masses.is_empty() || other.masses.is_empty() {
            let left_out = self.left_out + other.left_out;
            return Self { first: 0, masses: Vec::new(), left_out };
        }
        let mut masses = vec![0.0; self.masses.len() + other.masses.len() - 1];
        for (at, &mass) in self.masses.iter().enumerate() {
            for (further, &more) in other.masses.iter().enumerate() {
                masses[at + further] += mass * more;
            }
        }
        let mut sum = Self::new(self.first + other.first, &masses);
        sum.left_out += self.left_out + other.left_out;
        sum
    }

    /// The law of the sum of `count` of them.
    pub(crate) fn times(&self, count: u64) -> Self {
        let mut result = Self::zero();
        let (mut power, mut count) = (self.clone(), count);
        while count > 0 {
            if count % 2 == 1 {
                result = result.plus(&power);
            }
            count /= 2;
            if count > 0 {
                power = power.plus(&power);
            }
        }
        result
    }

    /// Counts and their masses.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, f64)> + '_ {
        (self.first..).zip(self.masses.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    #[test]
    fn percentiles_are_points_of_the_law() {
        let law = Law::new([(ms(3), 0.01), (ms(1), 0.9), (ms(2), 0.09)], 0.0);
        for (share, want) in [(0.0, 1), (0.9, 1), (0.91, 2), (0.99, 2), (0.995, 3), (1.0, 3)] {
            assert_eq!(law.quantile(share), Bracket { low: ms(want), high: Some(ms(want)) });
            assert_eq!(law.quantile_from_below(share), Some(ms(want)), "{share}");
        }
    }

    #[test]
    fn what_is_left_out_widens_the_bracket() {
        let law = Law::new([(ms(1), 0.985), (ms(2), 0.01)], 0.005);
        assert_eq!(law.quantile(0.987), Bracket { low: ms(1), high: Some(ms(2)) });
        assert_eq!(law.quantile(0.999), Bracket { low: ms(2), high: None });
        assert_eq!(law.quantile_from_below(0.999), None);
    }

    #[test]
    fn sums_of_laws_are_binomial_where_they_must_be() {
        let one = Law::new([(ms(0), 0.7), (ms(1), 0.3)], 0.0);
        let law = one.times(50).unwrap();
        for &(time, mass) in law.points() {
            let exact = crate::binomial::mass(50, time.get() / 1_000_000, 0.3);
            assert!((mass - exact).abs() < 1e-11, "{time}");
        }
        assert!((law.mass() + law.left_out() - 1.0).abs() < 1e-12);
        assert!(law.left_out() < 1e-11, "{}", law.left_out());
        assert_eq!(law.mean(), ms(15));
    }

    #[test]
    fn counts_and_laws_agree() {
        let counts = Counts::new(1, &[0.5, 0.3, 0.2]).times(9);
        let law = Law::new([(ms(1), 0.5), (ms(2), 0.3), (ms(3), 0.2)], 0.0).times(9).unwrap();
        for ((count, mass), &(time, point)) in counts.iter().zip(law.points()) {
            assert_eq!(ms(count), time);
            assert!((mass - point).abs() < 1e-14);
        }
    }
}
