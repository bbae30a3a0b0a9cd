//! Sustained rates from streams of reads in two sizes.
//!
//! A stream's reads end at an even pace: that of their bytes and of what each costs besides. The cost is the same in
//! both sizes, so that the difference is that of the bytes alone ([`Way::Apart`]). On most drives each read begins where the
//! one before has ended, some whole revolutions later; where that is so at most places, both streams are one line once
//! these revolutions are taken off, which says three times as much ([`Way::Together`]).

use std::f64::consts::TAU;

use levelhead_units::{Lba, SECTOR_SIZE};

use super::facts::Rate;
use super::fit::{self, Line};
use super::stage::Stage;

/// The share of reads that may lose revolutions by chance: where more do, it is how the drive reads.
const RARE: f64 = 0.25;
/// The part of a revolution by which reads may end off an even pace: the time between tracks and some noise are less, and a drive
/// that waits for its bus, so that it begins where it can, is off by more.
const EVEN: f64 = 0.1;
/// The part of a revolution by which what reads cost besides their bytes may miss whole revolutions on a drive that reads
/// [`Way::Together`], in the middle of all places and at each, where the error of the place comes to it.
const REST_OF_ALL: f64 = 0.01;
const REST: f64 = 0.02;

/// The standard deviation of a median of that many values is this times their median distance from it, over the square root of how
/// many they are.
const MEDIAN_OF_MEDIAN: f64 = 1.858;
/// Lines within this many errors of the one that is known are looked at, each a part of a revolution from the next over all ends, and no
/// more than this to each side.
const NEAR: f64 = 3.0;
const STEP: f64 = 0.02;
const STEPS_MAX: f64 = 1_000.0;
/// How well the ends have to agree on a line, see [`Whole`].
const AGREEMENT: f64 = 0.6;
/// Standard deviations in an error: half of an interval of about 95 %.
const DEVIATIONS: f64 = 2.0;

/// How a rate is found from two streams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Way {
    /// By their difference.
    Apart,
    /// As one line: between reads go whole revolutions, or almost.
    Together {
        /// What a read costs beside its bytes may differ from whole revolutions by so much: the error of each rate that comes from
        /// it, in seconds a byte.
        doubt: f64,
    },
}

/// What two streams say of a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    lba: Lba,
    apart: Pace,
    /// None where the reads are not in step with the revolution.
    together: Option<Pace>,
    /// What a read costs besides its bytes, less whole revolutions, in revolutions.
    rest: f64,
    /// False where the streams made no sense and the nearest place stands in.
    is_own: bool,
}

/// Seconds a byte, and half of their interval.
#[derive(Clone, Copy, Debug)]
struct Pace {
    byte: f64,
    error: f64,
}

/// The streams of a stage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Reads of one size at one place, one less than there are: how the arm gets there does not count.
    pub(super) steps: u64,
    /// Sectors of the larger reads; the smaller have half.
    pub(super) large: u64,
}

impl Plan {
    /// Bytes of a smaller and of a larger read.
    fn sizes(self) -> [f64; 2] {
        [self.large / 2, self.large].map(|sectors| sectors as f64 * SECTOR_SIZE as f64)
    }
}

/// What the streams at each place say; none if at half of the places larger reads took no longer. With a `rotation`, revolutions
/// that a read lost more than the usual one of its stream do not count.
pub(super) fn look(stage: &Stage, plan: Plan, rotation: Option<f64>) -> Option<Vec<Found>> {
    let (ends, lbas) = (stage.ends(), stage.places().collect::<Vec<_>>());
    let count = plan.steps as usize + 1;
    let sizes = plan.sizes();
    let places = ends.chunks_exact(2 * count).zip(lbas.chunks_exact(2 * count));
    let all: Vec<(Lba, Option<Found>)> = places
        .map(|(ends, lbas)| {
            let (small, large) = ends.split_at(count);
            (lbas[0], found(lbas[0], [small, large], sizes, rotation))
        })
        .collect();
    let good: Vec<(usize, Found)> =
        all.iter().enumerate().filter_map(|(at, (_, found))| Some((at, (*found)?))).collect();
    if good.len() * 2 <= all.len() {
        return None;
    }
    // Where something else came between, the nearest place stands in.
    let nearest = |at: usize| good.iter().min_by_key(|(other, _)| at.abs_diff(*other));
    let stand_in = |at, lba| Some(Found { lba, is_own: false, ..nearest(at)?.1 });
    all.iter().enumerate().map(|(at, &(lba, found))| found.or_else(|| stand_in(at, lba))).collect()
}

/// What several readings of a place say of its rate: their mean, each by the inverse square of its error. Where they differ from each
/// other by more than their errors say, the error of the mean grows by as much (the ratio of Birge).
///
/// # Panics
///
/// Without readings.
pub(super) fn combined(readings: &[Rate]) -> Rate {
    // An error of nothing would leave no weight to the others.
    let error = |rate: &Rate| rate.error.max(rate.bytes_per_s * 1e-6);
    let weight = |rate: &Rate| error(rate).powi(-2);
    let weights: f64 = readings.iter().map(weight).sum();
    let mean = readings.iter().map(|rate| weight(rate) * rate.bytes_per_s).sum::<f64>() / weights;
    let square = |rate: &Rate| ((rate.bytes_per_s - mean) * DEVIATIONS / error(rate)).powi(2);
    let squares: f64 = readings.iter().map(square).sum();
    let ratio =
        if readings.len() < 2 { 1.0 } else { (squares / (readings.len() - 1) as f64).sqrt() };
    Rate { bytes_per_s: mean, error: ratio.max(1.0) / weights.sqrt(), ..readings[0] }
}

/// How the drive reads, from all places: together where what reads cost besides is as good as whole revolutions, which is known as well
/// as the places agree.
pub(super) fn way(found: &[Found], plan: Plan, rotation: f64) -> Way {
    let own: Vec<&Found> = found.iter().filter(|found| found.is_own).collect();
    let in_step = own.iter().filter(|found| found.together.is_some()).count();
    let rest = fit::median(own.iter().map(|found| found.rest).collect());
    let off = fit::median(own.iter().map(|found| (found.rest - rest).abs()).collect());
    let doubt = DEVIATIONS * MEDIAN_OF_MEDIAN * off / (own.len() as f64).sqrt();
    if in_step * 2 <= own.len() || rest.abs() > REST_OF_ALL + doubt {
        return Way::Apart;
    }
    let bytes = plan.sizes().iter().sum::<f64>() / 2.0;
    Way::Together { doubt: doubt.hypot(rest) * rotation / bytes }
}

impl Way {
    /// A rate with the doubt that all readings on a drive that reads this way share.
    pub(super) fn doubted(self, rate: Rate) -> Rate {
        let Self::Together { doubt } = self else { return rate };
        Rate { error: rate.error.hypot(doubt * rate.bytes_per_s * rate.bytes_per_s), ..rate }
    }
}

impl Found {
    /// What the streams of this place say of its rate on a drive that reads this `way`. A place that is not as the others are was
    /// disturbed: its error is as great as itself.
    pub(super) fn rate(self, way: Way) -> Rate {
        let (pace, is_known) = match (way, self.together) {
            (Way::Together { .. }, Some(pace)) => (pace, self.is_own),
            (Way::Together { .. }, None) => (self.apart, false),
            (Way::Apart, _) => (self.apart, self.is_own),
        };
        let bytes_per_s = 1.0 / pace.byte;
        let share = if is_known { pace.error / pace.byte } else { 1.0 };
        Rate { lba: self.lba, bytes_per_s, error: bytes_per_s * share }
    }
}

/// From the ends of a stream of smaller and of one of larger reads that follows it; none if the larger took no longer.
fn found(lba: Lba, ends: [&[f64]; 2], sizes: [f64; 2], rotation: Option<f64>) -> Option<Found> {
    let streams = ends.map(|ends| evened(ends, rotation));
    let [small, large] = streams.each_ref().map(|ends| {
        let points: Vec<(f64, f64)> = (0..).map(f64::from).zip(ends.iter().copied()).collect();
        fit::line(&points)
    });
    let more = sizes[1] - sizes[0];
    let (byte, doubt) = ((large.slope - small.slope) / more, small.error.hypot(large.error));
    if byte <= 0.0 {
        return None;
    }
    let apart = Pace { byte, error: doubt / more };
    let Some(rotation) = rotation else {
        return Some(Found { lba, apart, together: None, rest: 0.0, is_own: true });
    };
    let beside = (small.slope - byte * sizes[0]) / rotation;
    let rest = beside - beside.round();
    let doubt = doubt * (1.0 + sizes[0] / more) / rotation;
    let is_in_step = rest.abs() <= REST + doubt && small.off.max(large.off) <= rotation * EVEN;
    let together = is_in_step.then(|| one_line(&streams, sizes, apart, rotation)).flatten();
    Some(Found { lba, apart, together, rest, is_own: true })
}

/// Both streams, less whole revolutions, whose line rises about as `near` does. The way to the second one's first read is one more
/// of its reads. None where the ends do not agree on a line.
fn one_line(streams: &[Vec<f64>; 2], sizes: [f64; 2], near: Pace, rotation: f64) -> Option<Pace> {
    let reads = [&streams[0][1..], &streams[1][..]].into_iter().zip(sizes);
    let reads = reads.flat_map(|(ends, size)| ends.iter().map(move |end| (*end, size)));
    let mut bytes = 0.0;
    let points: Vec<(f64, f64)> = std::iter::once((0.0, streams[0][0]))
        .chain(reads.map(|(end, size)| {
            bytes += size;
            (bytes, end)
        }))
        .collect();
    let whole = in_phase(&points, near, rotation);
    if whole.agreement < AGREEMENT {
        return None;
    }
    let Line { slope: byte, error, .. } = fit::line(&whole.without(&points, rotation));
    (byte > 0.0).then_some(Pace { byte, error })
}

/// Ends without the revolutions that single reads lost more than the usual one.
fn evened(ends: &[f64], rotation: Option<f64>) -> Vec<f64> {
    let Some(rotation) = rotation else { return ends.to_vec() };
    let usual = fit::median(ends.windows(2).map(|pair| pair[1] - pair[0]).collect());
    let points: Vec<(f64, f64)> = (0..).map(f64::from).zip(ends.iter().copied()).collect();
    let near = Pace { byte: usual, error: rotation * EVEN / NEAR };
    let whole = in_phase(&points, near, rotation);
    // What is lost stays lost; an end that alone is late has lost nothing.
    let turns = whole.turns.windows(3);
    let lost = turns.filter(|turns| turns[0] != turns[1] && turns[1] == turns[2]).count();
    if lost as f64 > RARE * ends.len() as f64 {
        return ends.to_vec();
    }
    whole.without(&points, rotation).into_iter().map(|(_, end)| end).collect()
}

/// Whole revolutions in the ends of reads.
#[derive(Debug)]
struct Whole {
    /// How many are in each end.
    turns: Vec<i64>,
    /// How well the ends agree without them: 1 if they lie on a line, about the root of their inverse number if they have nothing to do
    /// with each other.
    agreement: f64,
}

impl Whole {
    /// The points without them.
    fn without(&self, points: &[(f64, f64)], rotation: f64) -> Vec<(f64, f64)> {
        points
            .iter()
            .zip(&self.turns)
            .map(|(&(x, end), turns)| (x, end - *turns as f64 * rotation))
            .collect()
    }
}

/// The whole revolutions in ends that lie on a line without them, which rises about as `near` does: by the line for which the ends,
/// as points of a circle, have the longest sum. One end after the other, a few late ones in a row would seem to be a revolution that
/// was lost, and all ends after them would be a revolution off.
fn in_phase(points: &[(f64, f64)], near: Pace, rotation: f64) -> Whole {
    let span = points[points.len() - 1].0 - points[0].0;
    let step = STEP * rotation / span;
    let steps = (NEAR * near.error / step).ceil().min(STEPS_MAX) as i64;
    let mut best = (0.0, 0.0, 0.0);
    for at in -steps..=steps {
        let slope = near.byte + at as f64 * step;
        let (mut east, mut north) = (0.0, 0.0);
        for (x, end) in points {
            let (sine, cosine) = ((end - slope * x) / rotation * TAU).sin_cos();
            (east, north) = (east + cosine, north + sine);
        }
        let sum = f64::hypot(east, north);
        if sum > best.0 {
            best = (sum, slope, north.atan2(east) / TAU);
        }
    }
    let (sum, slope, phase) = best;
    let turns = points
        .iter()
        .map(|(x, end)| ((end - slope * x) / rotation - phase).round() as i64)
        .collect();
    Whole { turns, agreement: sum / points.len() as f64 }
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;

    use super::*;

    const ROTATION: f64 = 0.008;
    const SIZES: [f64; 2] = [1e6, 2e6];
    const PLAN: Plan = Plan { steps: 12, large: 488 };

    fn way_of(found: &[Found]) -> Way {
        way(found, PLAN, ROTATION)
    }

    /// Thirteen reads of each size at `byte` seconds a byte, each some time besides, some noise late.
    fn ends(byte: f64, beside: f64, noise: f64) -> [Vec<f64>; 2] {
        let mut rng = Streams::new(8).stream("streams");
        let mut now = 0.0;
        SIZES.map(|size| {
            let mut read = || {
                now += size * byte + beside;
                now + noise * rng.unit()
            };
            (0..13).map(|_| read()).collect()
        })
    }

    fn of(ends: &[Vec<f64>; 2]) -> Found {
        found(Lba::new(5), [&ends[0], &ends[1]], SIZES, Some(ROTATION)).unwrap()
    }

    #[test]
    fn reads_in_step_with_the_revolution_are_one_line_that_says_more() {
        let found = of(&ends(6e-9, ROTATION, 50e-6));
        assert!(matches!(way_of(&[found; 20]), Way::Together { .. }), "{found:?}");
        let (apart, together) = (found.rate(Way::Apart), found.rate(way_of(&[found; 20])));
        for rate in [apart, together] {
            assert!((rate.bytes_per_s * 6e-9 - 1.0).abs() < 0.01, "{rate:?}");
        }
        assert!(together.error * 2.0 < apart.error, "{together:?}, {apart:?}");
    }

    #[test]
    fn a_cost_of_each_read_that_is_no_revolution_is_not_taken_for_bytes() {
        let found = of(&ends(6e-9, 0.25 * ROTATION, 50e-6));
        assert_eq!(way_of(&[found; 20]), Way::Apart);
        let rate = found.rate(Way::Apart);
        assert!((rate.bytes_per_s * 6e-9 - 1.0).abs() < 0.02, "{rate:?}");
        // A small one, which a single place cannot tell from noise, all of them together do.
        let found = of(&ends(6e-9, 1.015 * ROTATION, 1e-6));
        assert!(found.together.is_some(), "{found:?}");
        assert_eq!(way_of(&[found; 20]), Way::Apart);
    }

    #[test]
    fn a_place_that_was_disturbed_is_not_believed() {
        let mut disturbed = ends(6e-9, ROTATION, 10e-6);
        // Something else took three milliseconds in the middle of the larger reads.
        disturbed[1][6..].iter_mut().for_each(|end| *end += 0.003);
        let (good, bad) = (of(&ends(6e-9, ROTATION, 10e-6)), of(&disturbed));
        let rate = bad.rate(way_of(&[good, good, good, bad]));
        let off = (rate.bytes_per_s * 6e-9 - 1.0).abs() * rate.bytes_per_s;
        assert!(off <= rate.error.max(rate.bytes_per_s * 0.01), "{rate:?}");
        let lost = |turns: f64| {
            let mut ends = ends(6e-9, ROTATION, 10e-6);
            ends[1][6..].iter_mut().for_each(|end| *end += turns * ROTATION);
            of(&ends).rate(Way::Together { doubt: 0.0 }).bytes_per_s
        };
        assert!((lost(1.0) / lost(0.0) - 1.0).abs() < 0.001, "whole revolutions do not matter");
    }

    #[test]
    fn ends_that_are_late_by_half_a_revolution_and_more_do_not_count() {
        let good = of(&ends(6e-9, ROTATION, 50e-6));
        for late in [0.55, 0.65, 0.9] {
            let mut ends = ends(6e-9, ROTATION, 50e-6);
            ends[0][6] += late * ROTATION;
            ends[1][4] += late * ROTATION;
            ends[1][9] += late * ROTATION;
            let found = of(&ends);
            for way in [Way::Apart, Way::Together { doubt: 0.0 }] {
                let ratio = found.rate(way).bytes_per_s / good.rate(way).bytes_per_s;
                assert!((ratio - 1.0).abs() < 0.01, "{late} {way:?}: {ratio}");
            }
        }
    }

    /// Streams of a machine on which each end may be late by up to one and a half revolutions; how many places are told with an
    /// error that is too small, and how many are told.
    fn told_wrong(late_share: f64) -> (u64, u64) {
        let (mut wrong, mut told) = (0, 0);
        for seed in 0..PLACES {
            let mut rng = Streams::new(seed).stream("late");
            let mut ends = ends(6e-9, ROTATION, 50e-6);
            for end in ends.iter_mut().flatten() {
                if rng.unit() < late_share {
                    *end += 1.5 * ROTATION * rng.unit();
                }
            }
            let Some(found) = found(Lba::new(5), [&ends[0], &ends[1]], SIZES, Some(ROTATION))
            else {
                continue;
            };
            let rate = found.rate(Way::Together { doubt: 0.0 });
            let off = (rate.bytes_per_s * 6e-9 - 1.0).abs();
            // Half of a per cent is what the streams without late ends may be off by.
            wrong += u64::from(off > rate.error / rate.bytes_per_s + 0.005);
            told += u64::from(rate.error < 0.04 * rate.bytes_per_s);
        }
        (wrong, told)
    }

    const PLACES: u64 = 500;

    #[test]
    fn rates_of_a_busy_machine_are_told_with_their_errors_or_not_at_all() {
        for (share, told_min) in [(0.0, 500), (0.15, 400), (0.4, 0)] {
            let (wrong, told) = told_wrong(share);
            eprintln!("{share}: {wrong} of {PLACES} wrong, {told} told");
            assert!(wrong <= PLACES / 50 && told >= told_min, "{share}: {wrong}, {told}");
        }
    }

    /// Shows that the test above can fail: lines through the same ends are off by more than their error often where each end's revolutions
    /// are counted from the end before, and seldom where [`in_phase`] counts them.
    #[test]
    fn revolutions_that_are_found_one_end_after_the_other_make_wrong_rates() {
        let (mut before, mut now) = (0, 0);
        for seed in 0..PLACES {
            let mut rng = Streams::new(seed).stream("late");
            let mut end = 0.0;
            let points: Vec<(f64, f64)> = (0..26)
                .map(|at| {
                    end += 9e-3 + ROTATION;
                    let late = if rng.unit() < 0.4 { 1.5 * ROTATION * rng.unit() } else { 0.0 };
                    (f64::from(at) * 1.5e6, end + late + 50e-6 * rng.unit())
                })
                .collect();
            let is_wrong = |points: &[(f64, f64)]| {
                let Line { slope, error, .. } = fit::line(points);
                u32::from((slope / 6e-9 - 1.0).abs() > error / 6e-9 + 0.005)
            };
            let near = Pace { byte: 6e-9, error: 0.05 * 6e-9 };
            now += is_wrong(&in_phase(&points, near, ROTATION).without(&points, ROTATION));
            let mut level = points[0].1;
            let followed = points.iter().map(|&(x, end)| {
                let rest = end - near.byte * x - level;
                let off = rest - (rest / ROTATION).round() * ROTATION;
                level += off;
                (x, near.byte * x + level)
            });
            before += is_wrong(&followed.collect::<Vec<_>>());
        }
        eprintln!("{before} of {PLACES} one after the other, {now} together");
        assert!(before > PLACES as u32 / 10 && now <= PLACES as u32 / 20, "{before}, {now}");
    }
}
