//! What times say: a period, a skew, the edge of an even spread.

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
    /// by the sustained rate, and when it ended; each less its mean.
    fn rows(&self, period: f64, known: f64) -> Vec<[f64; 3]> {
        let start = self.ends.first().map_or(0.0, |first| first.1);
        let mut rows: Vec<[f64; 3]> = self
            .ends
            .iter()
            .map(|&(before, ended)| {
                let (ahead, ended) = (before * self.sector, ended - start);
                [((ended + ahead * known) / period).round(), ahead, ended]
            })
            .collect();
        for at in 0..3 {
            let mean = rows.iter().map(|row| row[at]).sum::<f64>() / rows.len() as f64;
            rows.iter_mut().for_each(|row| row[at] -= mean);
        }
        rows
    }
}

/// Period and share of a sector's time by least squares over all runs, near a known period:
/// `ended = first + turns * period - ahead * share`.
fn least_squares(runs: &[Vec<[f64; 3]>]) -> Option<(f64, f64)> {
    let product =
        |a: usize, b: usize| -> f64 { runs.iter().flatten().map(|row| row[a] * row[b]).sum() };
    let (tt, ta, aa) = (product(0, 0), product(0, 1), product(1, 1));
    let (te, ae) = (product(0, 2), product(1, 2));
    let determinant = tt * aa - ta * ta;
    (determinant > 0.0)
        .then(|| ((te * aa - ae * ta) / determinant, -(ae * tt - te * ta) / determinant))
}

/// How far a run is from that, on average.
fn misfit(run: &[[f64; 3]], (period, share): (f64, f64)) -> f64 {
    let off = |row: &[f64; 3]| (row[2] - row[0] * period + row[1] * share).abs();
    run.iter().map(off).sum::<f64>() / run.len() as f64
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
    // the better half of them together.
    let mut alone: Vec<(f64, f64)> =
        runs.iter().filter_map(|run| least_squares(std::slice::from_ref(run))).collect();
    let mut found = (middle(&mut alone, |found| found.0)?, middle(&mut alone, |found| found.1)?);
    for _ in 0..3 {
        runs.sort_by(|left, right| misfit(left, found).total_cmp(&misfit(right, found)));
        found = least_squares(&runs[..runs.len().div_ceil(2)])?;
    }
    let (rotation, share) = found;
    let skew = if share > 0.0 { 1.0 / share - 1.0 } else { SKEW_MAX };
    Some(Spin { rotation, skew: skew.clamp(0.0, SKEW_MAX) })
}

/// The middle one of what `pick` gives.
fn middle(found: &mut [(f64, f64)], pick: fn(&(f64, f64)) -> f64) -> Option<f64> {
    found.sort_by(|left, right| pick(left).total_cmp(&pick(right)));
    found.get(found.len() / 2).map(pick)
}

/// The lower edge of times that are spread evenly over one revolution, from the least and the greatest of
/// them. What lies outside the revolution that has the most of them was answered from memory, or drawn out
/// by something else, and does not count.
pub(super) fn lower_edge(times: &[f64], rotation: f64) -> f64 {
    let mut times = times.to_vec();
    times.sort_unstable_by(f64::total_cmp);
    let within = |first: usize| times.partition_point(|time| *time <= times[first] + rotation);
    let mut best = 0..within(0);
    for first in 1..times.len() {
        let range = first..within(first);
        if range.len() > best.len() {
            best = range;
        }
    }
    let inside = &times[best];
    // The least of n evenly spread times lies a gap above the edge.
    let gap = rotation / (inside.len() + 1) as f64;
    let low = inside[0] - gap;
    let high = inside[inside.len() - 1] + gap - rotation;
    low.midpoint(high)
}

/// Makes times rise with the length: neighbours that fall share their mean.
pub(super) fn make_rise(seeks: &mut [Seek]) {
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for seek in seeks.iter() {
        pools.push((seek.positioning, 1));
        while let [.., (before, count), (last, more)] = pools[..]
            && before > last
        {
            let mean = (before * count as f64 + last * more as f64) / (count + more) as f64;
            pools.truncate(pools.len() - 2);
            pools.push((mean, count + more));
        }
    }
    let times = pools.into_iter().flat_map(|(time, count)| std::iter::repeat_n(time, count));
    seeks.iter_mut().zip(times).for_each(|(seek, time)| seek.positioning = time);
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
    fn the_edge_of_an_even_spread_is_found_from_both_ends() {
        let mut rng = Streams::new(6).stream("edge");
        let mut times: Vec<f64> = (0..200).map(|_| 0.005 + 0.008 * rng.unit()).collect();
        assert!((lower_edge(&times, 0.008) - 0.005).abs() < 0.000_05);
        times.extend([0.000_1, 0.000_2, 0.02, 0.1]);
        assert!((lower_edge(&times, 0.008) - 0.005).abs() < 0.000_1, "memory, and drawn out");
    }

    #[test]
    fn times_that_fall_share_their_mean() {
        let mut seeks: Vec<Seek> = [1.0, 3.0, 2.0, 1.0, 5.0]
            .into_iter()
            .map(|positioning| Seek { length: 1, positioning })
            .collect();
        make_rise(&mut seeks);
        let times: Vec<f64> = seeks.iter().map(|seek| seek.positioning).collect();
        assert_eq!(times, [1.0, 2.0, 2.0, 2.0, 5.0]);
    }
}
