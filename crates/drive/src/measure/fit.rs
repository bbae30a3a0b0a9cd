//! What times say: a period, a skew, a slope.

use super::facts::Seek;

/// Revolutions that are looked for, in seconds: 25,000 to 3,000 a minute.
const ROTATION_MIN: f64 = 0.0024;
const ROTATION_MAX: f64 = 0.020;
/// Steps of the search, as parts of the period: the first far finer than a peak's width over the some
/// hundred revolutions of a run.
const STEP_COARSE: f64 = 0.0005;
const STEP_FINE: f64 = 0.000_005;
/// The least agreement of the ends with a period, from 0 (none) to 1, at which the period is accepted.
const AGREEMENT_MIN: f64 = 0.5;
/// The ends agree with a whole period as well as with its half, its third and so on. So the longest period
/// is taken whose agreement is at least this share of the best.
const AGREEMENT_NEAR: f64 = 0.8;
/// The most by which sustained reads may be slower than the medium passes: what is above it is noise.
const SKEW_MAX: f64 = 4.0;
/// The skew that is assumed at first, and where it cannot be measured.
pub(super) const SKEW_USUAL: f64 = 0.12;

/// Standard deviations in half of an interval of 95 %, where they are found from few values.
const INTERVAL: f64 = 2.3;
/// The same where the runs and the ends that fit least were left out before, so that the others agree better than by chance. Found by
/// simulation: `errors_that_are_told_are_those_that_are_made` in `tests/measure_late.rs`.
const INTERVAL_OF_BEST: f64 = 3.1;
/// Of normal noise, the standard deviation in medians of its absolute values.
const SIGMA_OF_MEDIAN: f64 = 1.4826;

/// No seek is known better than that, in seconds.
const ERROR_LEAST: f64 = 1e-9;

/// How often period and skew are found anew from what agrees with them.
const REFITS: usize = 6;
/// An end that is this many times farther off than is usual was late.
const STRAY: f64 = 5.0;
/// A run that agrees this many times worse than the middle one goes across the end of its track.
const RUN_STRAY: f64 = 2.0;

/// The ends of single sectors of one track.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    /// The time of a sector by the sustained rate, in seconds.
    pub(super) sector: f64,
    /// How many sectors before the first, and when the read ended.
    pub(super) ends: Vec<(f64, f64)>,
}

/// How the platter turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spin {
    /// Seconds of a revolution.
    pub(super) rotation: f64,
    /// Half of its interval of about 95 %, in seconds.
    pub(super) error: f64,
    /// By how much sustained reads are slower than the medium passes: time lost between tracks, in
    /// revolutions, unless something else slows them.
    pub(super) skew: f64,
}

impl Turns {
    /// How well the ends agree with a period, from 0 to 1.
    fn agreement(&self, period: f64) -> f64 {
        let sector = self.sector / (1.0 + SKEW_USUAL);
        let (mut cos, mut sin) = (0.0, 0.0);
        for &(before, ended) in &self.ends {
            // Each sector further ahead on the track passes the head earlier by the time of one sector.
            let angle = std::f64::consts::TAU * ((ended + before * sector) / period).fract();
            cos += angle.cos();
            sin += angle.sin();
        }
        (cos * cos + sin * sin).sqrt() / self.ends.len() as f64
    }

    /// For each sector: whole turns since the first at about this period, by how much earlier it comes
    /// by the sustained rate, and when it ended.
    fn rows(&self, period: f64, known: f64) -> Vec<[f64; 3]> {
        let start = self.ends.first().map_or(0.0, |first| first.1);
        let row = |&(before, ended): &(f64, f64)| {
            let (ahead, ended) = (before * self.sector, ended - start);
            [((ended + ahead * known) / period).round(), ahead, ended]
        };
        self.ends.iter().map(row).collect()
    }
}

/// Period and share of a sector's time by least squares over all runs, each of which begins when it does:
/// `ended = first + turns * period - ahead * share`.
fn least_squares(runs: &[Vec<[f64; 3]>]) -> Option<(f64, f64)> {
    let runs: Vec<Vec<[f64; 3]>> = runs.iter().map(|run| centred(run)).collect();
    let product =
        |a: usize, b: usize| -> f64 { runs.iter().flatten().map(|row| row[a] * row[b]).sum() };
    let (tt, ta, aa) = (product(0, 0), product(0, 1), product(1, 1));
    let (te, ae) = (product(0, 2), product(1, 2));
    let determinant = tt * aa - ta * ta;
    (determinant > 0.0)
        .then(|| ((te * aa - ae * ta) / determinant, -(ae * tt - te * ta) / determinant))
}

/// Rows less their mean.
fn centred(run: &[[f64; 3]]) -> Vec<[f64; 3]> {
    let mean = |at: usize| run.iter().map(|row| row[at]).sum::<f64>() / run.len() as f64;
    let mean = [mean(0), mean(1), mean(2)];
    run.iter().map(|row| [row[0] - mean[0], row[1] - mean[1], row[2] - mean[2]]).collect()
}

/// How far each end of a run is from that, wherever most of them say that the run begins.
fn offs(run: &[[f64; 3]], (period, share): (f64, f64)) -> Vec<f64> {
    let first = |row: &[f64; 3]| row[2] - row[0] * period + row[1] * share;
    let begin = median(run.iter().map(first).collect());
    run.iter().map(|row| (first(row) - begin).abs()).collect()
}

/// The rows of a run that are not much farther off than is usual.
fn kept(run: &[[f64; 3]], found: (f64, f64), usual: f64) -> Vec<[f64; 3]> {
    let rows = run.iter().zip(offs(run, found));
    rows.filter(|(_, off)| *off <= usual * STRAY).map(|(row, _)| *row).collect()
}

/// The period that makes all ends agree, and the skew; none if nothing agrees.
pub(super) fn spin(turns: &[Turns]) -> Option<Spin> {
    let agreement = |period: f64| {
        turns.iter().map(|turns| turns.agreement(period)).sum::<f64>() / turns.len() as f64
    };
    let mut candidates: Vec<(f64, f64)> = Vec::new();
    let mut period = ROTATION_MIN;
    while period <= ROTATION_MAX {
        candidates.push((period, agreement(period)));
        period *= 1.0 + STEP_COARSE;
    }
    let best = candidates.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    if best < AGREEMENT_MIN {
        return None;
    }
    let longest = candidates.iter().rposition(|(_, value)| *value >= AGREEMENT_NEAR * best)?;
    // Down from there to the top of that peak.
    let mut top = longest;
    while top > 0 && candidates[top - 1].1 > candidates[top].1 {
        top -= 1;
    }
    let coarse = candidates[top].0;
    let fine = (-300..=300)
        .map(|step| coarse * (1.0 + f64::from(step) * STEP_FINE))
        .max_by(|left, right| agreement(*left).total_cmp(&agreement(*right)))?;
    let known = 1.0 / (1.0 + SKEW_USUAL);
    let mut runs: Vec<Vec<[f64; 3]>> = turns.iter().map(|turns| turns.rows(fine, known)).collect();
    // A run across the end of its track has a step in it: at first the middle of what each says, then
    // those together that agree about as well as the middle one.
    let mut alone: Vec<(f64, f64)> =
        runs.iter().filter_map(|run| least_squares(std::slice::from_ref(run))).collect();
    let mut found = (middle(&mut alone, |found| found.0)?, middle(&mut alone, |found| found.1)?);
    let mut last = Vec::new();
    for _ in 0..REFITS {
        let misfit = |run: &Vec<[f64; 3]>| median(offs(run, found));
        runs.sort_by(|left, right| misfit(left).total_cmp(&misfit(right)));
        let usual = misfit(&runs[runs.len() / 2]) * RUN_STRAY;
        let good = runs.iter().take_while(|run| misfit(run) <= usual).count();
        let better = &runs[..good];
        let noise = median(better.iter().flat_map(|run| offs(run, found)).collect());
        last = better.iter().map(|run| kept(run, found, noise)).collect();
        found = least_squares(&last)?;
    }
    let (rotation, share) = found;
    let error = jackknife(&last)?;
    let skew = if share > 0.0 { 1.0 / share - 1.0 } else { SKEW_MAX };
    Some(Spin { rotation, error, skew: skew.clamp(0.0, SKEW_MAX) })
}

/// Half of the interval of 95 % of the period: from how far it moves when each run is left out in turn, because what is off in a run is
/// off in all of its ends.
fn jackknife(runs: &[Vec<[f64; 3]>]) -> Option<f64> {
    let without = |at: usize| {
        let others = [&runs[..at], &runs[at + 1..]].concat();
        least_squares(&others).map(|found| found.0)
    };
    let periods: Vec<f64> = (0..runs.len()).map(without).collect::<Option<_>>()?;
    let count = periods.len() as f64;
    let mean = periods.iter().sum::<f64>() / count;
    let squares: f64 = periods.iter().map(|period| (period - mean).powi(2)).sum();
    Some(INTERVAL_OF_BEST * (squares * (count - 1.0) / count).sqrt())
}

/// The middle one of what `pick` gives.
fn middle(found: &mut [(f64, f64)], pick: fn(&(f64, f64)) -> f64) -> Option<f64> {
    found.sort_by(|left, right| pick(left).total_cmp(&pick(right)));
    found.get(found.len() / 2).map(pick)
}

/// A line through points of which some are far off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    /// The middle one of all pairs' slopes.
    pub(super) slope: f64,
    /// Half of its interval of about 95 %.
    pub(super) error: f64,
    /// How far the points are from it: the median.
    pub(super) off: f64,
}

/// The line through two points or more, from left to right.
pub(super) fn line(points: &[(f64, f64)]) -> Line {
    let pairs = points.iter().enumerate().flat_map(|(at, from)| {
        points[at + 1..].iter().map(move |to| (to.1 - from.1) / (to.0 - from.0))
    });
    let slope = median(pairs.collect());
    let level = median(points.iter().map(|(x, y)| y - slope * x).collect());
    let off = median(points.iter().map(|(x, y)| (y - slope * x - level).abs()).collect());
    let mean = points.iter().map(|point| point.0).sum::<f64>() / points.len() as f64;
    let spread = points.iter().map(|point| (point.0 - mean).powi(2)).sum::<f64>();
    Line { slope, error: INTERVAL * SIGMA_OF_MEDIAN * off / spread.sqrt(), off }
}

/// The middle one; of an even number the greater of both.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// Neighbours that share a time.
#[derive(Clone, Copy)]
struct Pool {
    time: f64,
    /// How much they say together: the sum of the inverse squares of their errors.
    weight: f64,
    count: usize,
}

/// Makes times rise with the length: neighbours that fall share their mean, each by the inverse square of its error (isotonic
/// regression). By how much one is moved is added to its error.
pub(super) fn make_rise(seeks: &mut [Seek]) {
    let mut pools: Vec<Pool> = Vec::new();
    for Seek { positioning, error, .. } in seeks.iter() {
        pools.push(Pool { time: *positioning, weight: error.max(ERROR_LEAST).powi(-2), count: 1 });
        while let [.., before, last] = pools[..]
            && before.time > last.time
        {
            let weight = before.weight + last.weight;
            let time = (before.time * before.weight + last.time * last.weight) / weight;
            pools.truncate(pools.len() - 2);
            pools.push(Pool { time, weight, count: before.count + last.count });
        }
    }
    let times = pools.into_iter().flat_map(|pool| std::iter::repeat_n(pool.time, pool.count));
    for (seek, time) in seeks.iter_mut().zip(times) {
        seek.error += (seek.positioning - time).abs();
        seek.positioning = time;
    }
}

/// Adds to the errors of the lengths that were put in between unlike ones. Some ways of such a length are as those of the
/// one neighbour and some as those of the other; where they are fewer than a quarter, no quartile shows them, and
/// the mean is off by up to a quarter of what lies between.
pub(super) fn doubt(seeks: &mut [Seek], was_put_in: impl Fn(u64) -> bool) {
    let times: Vec<f64> = seeks.iter().map(|seek| seek.positioning).collect();
    for (at, seek) in seeks.iter_mut().enumerate().filter(|(_, seek)| was_put_in(seek.length)) {
        let before = times[at] - times[at.saturating_sub(1)];
        let after = times[(at + 1).min(times.len() - 1)] - times[at];
        seek.error += before.max(after) / 4.0;
    }
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;

    use super::*;

    #[test]
    fn the_period_is_found_and_not_its_half_or_double() {
        for (seed, rotation) in [(1, 0.008_333), (2, 0.004), (3, 0.011_111), (4, 0.005_98)] {
            let mut rng = Streams::new(seed).stream("turns");
            let (sector, skew) = (rotation / 250.0, 0.16);
            let run = |_| {
                let mut turns = 0.0;
                let ends = (0..24).map(|step| {
                    turns += 2.0 + rng.below(5) as f64;
                    let before = f64::from(2 * step);
                    (before, turns * rotation - before * sector + rng.unit() * 20e-6)
                });
                Turns { sector: sector * (1.0 + skew), ends: ends.collect() }
            };
            let turns: Vec<Turns> = (0..10).map(run).collect();
            let spin = spin(&turns).unwrap();
            assert!((spin.rotation / rotation - 1.0).abs() < 1e-4, "{spin:?}");
            assert!((spin.skew - skew).abs() < 0.03, "{spin:?}");
        }
    }

    #[test]
    fn what_does_not_turn_has_no_period() {
        let mut rng = Streams::new(5).stream("turns");
        let run = |_| {
            let ends = (0..24).map(|step| (f64::from(step), f64::from(step) * 0.02 + rng.unit()));
            Turns { sector: 30e-6, ends: ends.collect() }
        };
        assert_eq!(spin(&(0..10).map(run).collect::<Vec<_>>()), None);
    }

    #[test]
    fn a_slope_and_its_interval_are_those_of_most_points() {
        let mut rng = Streams::new(7).stream("slope");
        let mut inside = 0;
        for _ in 0..200 {
            let mut points: Vec<(f64, f64)> =
                (0..16).map(|at| (f64::from(at), 3.0 * f64::from(at) + rng.unit() - 0.5)).collect();
            points[rng.below(16) as usize].1 += 40.0;
            points[15].1 += 5.0;
            let Line { slope, error, .. } = line(&points);
            assert!((slope - 3.0).abs() < 0.2, "{slope} +- {error}");
            inside += u32::from((slope - 3.0).abs() <= error);
        }
        assert!(inside >= 170, "{inside} of 200");
    }

    #[test]
    fn times_that_fall_share_their_mean() {
        let mut seeks: Vec<Seek> = [1.0, 3.0, 2.0, 1.0, 5.0]
            .into_iter()
            .map(|positioning| Seek { length: 1, positioning, error: 0.5 })
            .collect();
        make_rise(&mut seeks);
        let times: Vec<f64> = seeks.iter().map(|seek| seek.positioning).collect();
        assert_eq!(times, [1.0, 2.0, 2.0, 2.0, 5.0]);
        let errors: Vec<f64> = seeks.iter().map(|seek| seek.error).collect();
        assert_eq!(errors, [0.5, 1.5, 0.5, 1.5, 0.5]);
    }
}
