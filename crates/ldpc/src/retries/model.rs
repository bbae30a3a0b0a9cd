//! What a drive's heads do, and the table that follows.

use std::fmt;

use super::error::{REVOLUTIONS_MAX, STEPS_MAX};
use super::table::{Class, RetryTable, TableStep};
use crate::code::ZeroForcing;
use crate::fit::{CURVES, Fit};

/// A try of a drive to read a sector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Revolutions that it costs: 0 for the first pass, and for more iterations on the samples of the step before.
    pub revolutions: u32,
    /// How far beside the middle of the track it aims, as a share of the track pitch.
    pub aim: f64,
    /// How many passes the decoder is given the mean of.
    pub averaged: u32,
    /// The most iterations of the decoder.
    pub iterations: u32,
}

/// What the tries of a drive follow from. See the module above.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryModel {
    /// The share of sectors whose first step fails, of those without zeroes, above 0 and below 0.5.
    pub failure_rate: f64,
    /// Standard deviation of the offset with which a sector was written, as a share of the track pitch.
    pub written_offset: f64,
    /// Standard deviation of the offset of a pass, as a share of the track pitch.
    pub pass_offset: f64,
    /// The steps, of which the first costs no revolution.
    pub steps: Vec<Step>,
}

/// The distance from the middle of a track at which nothing is left of the amplitude, as a share of the track pitch.
const REACH: f64 = 0.5;

/// The share of the noise's variance that is the medium's and the same with each pass: two passes averaged gain 1.25.
const OF_MEDIUM: f64 = 0.6;

/// The largest standard deviation of an offset: with more a head would as often be over the next track.
const OFFSET_MAX: f64 = 0.2;

/// The most passes that are averaged, and the most revolutions of a step.
const PASSES_MAX: u32 = 100;

/// Points to a standard deviation of the sums that stand for Gaussians. Such a sum converges as fast as a Gaussian falls:
/// with twice as many no figure of the shipped tables above 1e-12 changes by more than 0.2 %.
const POINTS: u32 = 6;

/// The farthest points, in standard deviations. Beyond them are 1.2e-15 of the sectors.
const POINT_LAST: u32 = 8;

/// The least noise that is looked at, as a share of that at which half of the sectors fail.
const NOISE_LEAST: f64 = 0.25;

/// What no drive's tries can be.
#[derive(Clone, Debug, PartialEq)]
pub enum RetryError {
    /// No failure rate of a first pass.
    FailureRate(f64),
    /// Heads wander too far for so few failures.
    Unreachable {
        /// The failure rate asked for.
        failure_rate: f64,
        /// The share of first passes that fail because no amplitude is left.
        least: f64,
    },
    /// No standard deviation of an offset.
    Offset(f64),
    /// None, or too many steps.
    StepCount(usize),
    /// The first step is not a pass alone that costs nothing.
    First,
    /// A later step that costs no revolution and changes more than the iterations.
    SameSamples(usize),
    /// A number of revolutions or passes that no step has.
    Passes(u32),
    /// More revolutions than a drive spends on a sector.
    Revolutions(u32),
    /// An aim past the next track.
    Aim(f64),
    /// Iterations for which no curve was measured.
    Iterations(u32),
}

impl fmt::Display for RetryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FailureRate(rate) => {
                write!(f, "the failure rate of a first pass is 1e-12 to 0.4, not {rate}")
            }
            Self::Unreachable { failure_rate, least } => write!(
                f,
                "with these offsets {least:.1e} of the first passes are beside the track: they cannot fail at {failure_rate}"
            ),
            Self::Offset(offset) => write!(
                f,
                "the standard deviation of an offset is 0% to {}% of the track pitch, not {}%",
                percent(OFFSET_MAX),
                percent(*offset)
            ),
            Self::StepCount(count) => {
                write!(f, "a drive tries 1 to {STEPS_MAX} steps, not {count}")
            }
            Self::First => f.write_str(
                "the first step is the first pass: without revolutions, aim and averaging",
            ),
            Self::SameSamples(at) => write!(
                f,
                "step {at} costs no revolution: it has the samples of the step before, and may differ from it in \
                 more iterations alone"
            ),
            Self::Passes(count) => write!(
                f,
                "a step takes 0 to {PASSES_MAX} revolutions and averages 1 to {PASSES_MAX} passes, not {count}"
            ),
            Self::Revolutions(sum) => {
                write!(
                    f,
                    "all steps together cost at most {REVOLUTIONS_MAX} revolutions, not {sum}"
                )
            }
            Self::Aim(aim) => write!(
                f,
                "a step aims -50% to 50% of the track pitch beside the track, not {}%",
                percent(*aim)
            ),
            Self::Iterations(iterations) => {
                let known: Vec<String> =
                    CURVES.iter().map(|curves| curves.iterations.to_string()).collect();
                let known = known.join(", ");
                write!(f, "failure rates are known of {known} iterations, not of {iterations}")
            }
        }
    }
}

impl std::error::Error for RetryError {}

impl Step {
    /// The first pass: 50 iterations.
    pub const FIRST: Self = Self { revolutions: 0, aim: 0.0, averaged: 1, iterations: 50 };

    /// What [`RetryModel::shipped`] has: the first pass; one more, averaged with it; then one revolution each at 3, -3, 6,
    /// -6, 9 and -9 % of the track pitch.
    pub fn list() -> Vec<Self> {
        let again = Self { revolutions: 1, averaged: 2, ..Self::FIRST };
        let aims = [0.03, -0.03, 0.06, -0.06, 0.09, -0.09];
        let aimed = aims.map(|aim| Self { revolutions: 1, aim, ..Self::FIRST });
        [Self::FIRST, again].into_iter().chain(aimed).collect()
    }

    /// By how much averaging divides the noise's variance.
    fn gain(self) -> f64 {
        1.0 / (OF_MEDIUM + (1.0 - OF_MEDIUM) / f64::from(self.averaged))
    }

    fn check(self) -> Result<(), RetryError> {
        if self.revolutions > PASSES_MAX {
            return Err(RetryError::Passes(self.revolutions));
        }
        if !(1..=PASSES_MAX).contains(&self.averaged) {
            return Err(RetryError::Passes(self.averaged));
        }
        if !(-0.5..=0.5).contains(&self.aim) {
            return Err(RetryError::Aim(self.aim));
        }
        self.fit(ZeroForcing::None).map(drop)
    }

    fn fit(self, level: ZeroForcing) -> Result<Fit, RetryError> {
        let curves = CURVES.iter().find(|curves| curves.iterations == self.iterations);
        curves.map(|curves| curves.fit(level)).ok_or(RetryError::Iterations(self.iterations))
    }
}

impl RetryModel {
    /// Names and models of the tables that come with the program: first passes fail at 5e-3.
    pub fn shipped() -> [(&'static str, Self); 4] {
        let of = |written_offset, pass_offset| Self {
            failure_rate: 5e-3,
            written_offset,
            pass_offset,
            steps: Step::list(),
        };
        [
            ("equal", of(0.0, 0.0)),
            ("wander-1", of(0.01, 0.01)),
            ("wander-2", of(0.02, 0.02)),
            ("wander-4", of(0.04, 0.04)),
        ]
    }

    /// Whether a drive can be like that.
    pub fn check(&self) -> Result<(), RetryError> {
        if !(1e-12..=0.4).contains(&self.failure_rate) {
            return Err(RetryError::FailureRate(self.failure_rate));
        }
        for offset in [self.written_offset, self.pass_offset] {
            if !(0.0..=OFFSET_MAX).contains(&offset) {
                return Err(RetryError::Offset(offset));
            }
        }
        if !(1..=STEPS_MAX).contains(&self.steps.len()) {
            return Err(RetryError::StepCount(self.steps.len()));
        }
        self.steps.iter().try_for_each(|step| step.check())?;
        let revolutions = self.steps.iter().map(|step| step.revolutions).sum();
        if revolutions > REVOLUTIONS_MAX {
            return Err(RetryError::Revolutions(revolutions));
        }
        let first = Step { iterations: self.steps[0].iterations, ..Step::FIRST };
        if self.steps[0] != first {
            return Err(RetryError::First);
        }
        for (at, pair) in self.steps.windows(2).enumerate() {
            let [before, step] = [pair[0], pair[1]];
            let is_same = Step { iterations: step.iterations, ..before }
                == Step { revolutions: before.revolutions, ..step };
            if step.revolutions == 0 && !(is_same && step.iterations > before.iterations) {
                return Err(RetryError::SameSamples(at + 1));
            }
        }
        Ok(())
    }

    /// The noise of a pass that is not off the track, as a share of a bit's amplitude, at which the first step fails at the
    /// rate asked for.
    pub fn sigma(&self) -> Result<f64, RetryError> {
        self.check()?;
        let fit = self.steps[0].fit(ZeroForcing::None)?;
        let (written, pass) = (points(self.written_offset), points(self.pass_offset));
        let rate = |sigma: f64| -> f64 {
            let at = |w: &Point| w.share * step_fails(self.steps[0], fit, sigma, w.at, &pass);
            written.iter().map(at).sum()
        };
        // Rates grow with the noise. The middle of a curve is above every rate that is taken, offsets or not; far below it only
        // passes fail of which hardly any amplitude is left.
        let (mut low, mut high) = (fit.centre * NOISE_LEAST, fit.centre);
        let (failure_rate, least) = (self.failure_rate, rate(low));
        if least >= failure_rate {
            return Err(RetryError::Unreachable { failure_rate, least });
        }
        for _ in 0..60 {
            let middle = low.midpoint(high);
            if rate(middle) < self.failure_rate { low = middle } else { high = middle }
        }
        Ok(low.midpoint(high))
    }

    /// The noise of a step over a sector that was written at `written` and is passed at `pass` from the middle of the track:
    /// of the decoder's samples, as a share of a bit's amplitude. Nothing if no amplitude is left.
    pub fn noise(step: Step, sigma: f64, written: f64, pass: f64) -> Option<f64> {
        let amplitude = 1.0 - ((written + pass - step.aim) / REACH).powi(2);
        (amplitude > 0.0).then(|| sigma / (amplitude * step.gain().sqrt()))
    }

    /// The table, under this name.
    pub fn table(&self, name: &str) -> Result<RetryTable, RetryError> {
        let sigma = self.sigma()?;
        let pass = points(self.pass_offset);
        let fails = |w: f64, step: Step| -> Result<[f64; 4], RetryError> {
            let mut levels = [0.0; 4];
            let mut least = 1.0_f64;
            for (into, level) in levels.iter_mut().zip(ZeroForcing::ALL) {
                // Curves cross where nobody measured; zeroes never harm.
                least = least.min(step_fails(step, step.fit(level)?, sigma, w, &pass));
                *into = least;
            }
            Ok(levels)
        };
        let class = |w: Point| -> Result<Class, RetryError> {
            let mut steps = Vec::new();
            for (at, step) in self.steps.iter().enumerate() {
                let mut levels = fails(w.at, *step)?;
                if step.revolutions == 0 && at > 0 {
                    let before: &[f64; 4] = &steps[at - 1];
                    levels = std::array::from_fn(|level| levels[level].min(before[level]));
                }
                steps.push(levels);
            }
            Ok(Class { share: w.share, fails: steps })
        };
        let classes: Result<Vec<Class>, RetryError> =
            points(self.written_offset).into_iter().map(class).collect();
        let steps = self.steps.iter().map(|step| TableStep { revolutions: step.revolutions });
        Ok(RetryTable::from_parts(name, steps.collect(), classes?)
            .expect("probabilities of a model are those of a table"))
    }
}

/// A share in percent, without what binary fractions add.
fn percent(share: f64) -> f64 {
    (share * 1e8).round() / 1e6
}

/// The probability that a step fails, over the offsets of its pass.
fn step_fails(step: Step, fit: Fit, sigma: f64, written: f64, pass: &[Point]) -> f64 {
    let at = |x: &Point| {
        let noise = RetryModel::noise(step, sigma, written, x.at);
        x.share * noise.map_or(1.0, |noise| fit.failure(noise))
    };
    pass.iter().map(at).sum::<f64>().min(1.0)
}

/// A place of a Gaussian's sum and its share of it.
#[derive(Clone, Copy, Debug)]
struct Point {
    at: f64,
    share: f64,
}

/// The points of a Gaussian of mean 0.
fn points(deviation: f64) -> Vec<Point> {
    if deviation <= 0.0 {
        return vec![Point { at: 0.0, share: 1.0 }];
    }
    let last = (POINTS * POINT_LAST) as i32;
    let of = |at: i32| f64::from(at) / f64::from(POINTS);
    let weight = |at: i32| (-0.5 * of(at).powi(2)).exp();
    let sum: f64 = (-last..=last).map(weight).sum();
    (-last..=last).map(|at| Point { at: of(at) * deviation, share: weight(at) / sum }).collect()
}
