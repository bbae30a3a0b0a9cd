//! The curve that makes counts most likely.
//!
//! Of a point with `n` frames and `r` failures, whose rate by the curve is `p`, the likelihood is
//!
//! ```text
//!   p^r (1 - p)^(n - r)
//! ```
//!
//! times what does not depend on the curve, whether `n` was given before or the count ended with the failure number `r`. It is the largest
//! where a regression of the probits with weights, repeated, stays where it is (Fisher's scoring):
//!
//! ```text
//!   eta = slope (sigma - centre),  p = Phi(eta),  weight = n phi(eta)^2 / (p (1 - p)),  aim = eta + (r / n - p) / phi(eta)
//! ```

use levelhead_stats::Normal;

use super::Fit;
use crate::channel::sigma_of;
use crate::code::ZeroForcing;

/// How a count ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With the last failure that was asked for, which is the last frame.
    Failure,
    /// With a number of frames that was given before.
    Frames,
}

/// What was counted at one point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Count {
    /// Standard deviation of the noise, as a share of a bit's amplitude.
    pub sigma: f64,
    /// Frames.
    pub frames: u64,
    /// Frames that failed.
    pub failures: u64,
    /// How the count ended.
    pub end: End,
}

impl Count {
    /// At this raw bit error rate, above 0 and below 0.5, `failures` of a number of frames that was given before.
    pub fn of_frames(ber: f64, frames: u64, failures: u64) -> Self {
        Self { sigma: sigma_of(ber), frames, failures, end: End::Frames }
    }
}

/// A curve through counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fitted {
    /// The curve.
    pub fit: Fit,
    /// Pearson's sum over the points: squared differences between counted and expected failures over their variance.
    pub chi_squared: f64,
    /// Points beyond the two that any curve meets.
    pub freedom: usize,
}

/// A straight line: `height + rise (sigma - middle)`.
#[derive(Clone, Copy, Debug)]
struct Line {
    middle: f64,
    height: f64,
    rise: f64,
}

impl Line {
    fn at(self, sigma: f64) -> f64 {
        self.height + self.rise * (sigma - self.middle)
    }
}

/// A point of a regression.
#[derive(Clone, Copy, Debug)]
struct Aim {
    sigma: f64,
    aim: f64,
    weight: f64,
}

/// Steps of the regression, of which it takes a few.
const STEPS_MAX: u32 = 200;

impl Fitted {
    /// The curve that makes `counts` most likely; none if no curve does, because there are not two points at which some frames failed
    /// and some did not, or because more noise failed less.
    pub fn of(forced: ZeroForcing, counts: &[Count]) -> Option<Self> {
        let is_partial = |count: &&Count| 0 < count.failures && count.failures < count.frames;
        let partial: Vec<&Count> = counts.iter().filter(is_partial).collect();
        let first = partial.first()?.sigma;
        if partial.iter().all(|count| count.sigma.to_bits() == first.to_bits()) {
            return None;
        }
        let start = partial.iter().map(|count| {
            let rate = count.failures as f64 / count.frames as f64;
            let weight = count.failures.min(count.frames - count.failures) as f64;
            Aim { sigma: count.sigma, aim: Normal::STANDARD.quantile(rate), weight }
        });
        let mut line = through(start);
        let mut likelihood = log_likelihood(line, counts);
        for _ in 0..STEPS_MAX {
            let mut next = through(counts.iter().map(|count| aim(line, count)));
            let mut reached = log_likelihood(next, counts);
            // A step too long is halved.
            for _ in 0..30 {
                if reached >= likelihood {
                    break;
                }
                next = between(line, next);
                reached = log_likelihood(next, counts);
            }
            let has_settled = (next.rise / line.rise - 1.0).abs() < 1e-12
                && (next.at(first) - line.at(first)).abs() < 1e-12;
            if reached >= likelihood {
                (line, likelihood) = (next, reached);
            }
            if has_settled || reached < likelihood {
                break;
            }
        }
        if line.rise.partial_cmp(&0.0) != Some(std::cmp::Ordering::Greater) {
            return None;
        }
        let fit = Fit { forced, centre: line.middle - line.height / line.rise, slope: line.rise };
        let chi_squared = counts.iter().map(|count| {
            let (rate, frames) = (fit.failure(count.sigma), count.frames as f64);
            (count.failures as f64 - frames * rate).powi(2) / (frames * rate * (1.0 - rate))
        });
        Some(Self { fit, chi_squared: chi_squared.sum(), freedom: counts.len().saturating_sub(2) })
    }
}

/// What a point asks of the next line.
fn aim(line: Line, count: &Count) -> Aim {
    let frames = count.frames as f64;
    // Farther out a point says nothing that a number could hold.
    let eta = line.at(count.sigma).clamp(-30.0, 8.0);
    let rate = Normal::STANDARD.below(eta);
    let density = (-0.5 * eta * eta).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let weight = frames * density * density / (rate * Normal::STANDARD.above(eta));
    let aim = eta + (count.failures as f64 / frames - rate) / density;
    Aim { sigma: count.sigma, aim, weight }
}

fn log_likelihood(line: Line, counts: &[Count]) -> f64 {
    let of = |count: &Count| {
        let eta = line.at(count.sigma);
        let term = |times: u64, share: f64| match times {
            0 => 0.0,
            times => times as f64 * share.ln(),
        };
        let others = count.frames - count.failures;
        term(count.failures, Normal::STANDARD.below(eta))
            + term(others, Normal::STANDARD.above(eta))
    };
    counts.iter().map(of).sum()
}

/// The line with the least weighted squares.
fn through(aims: impl Iterator<Item = Aim>) -> Line {
    let aims: Vec<Aim> = aims.collect();
    let weight: f64 = aims.iter().map(|aim| aim.weight).sum();
    let mean = |value: fn(&Aim) -> f64| {
        aims.iter().map(|aim| aim.weight * value(aim)).sum::<f64>() / weight
    };
    let (middle, height) = (mean(|aim| aim.sigma), mean(|aim| aim.aim));
    let moment = |value: &dyn Fn(&Aim) -> f64| {
        aims.iter().map(|aim| aim.weight * (aim.sigma - middle) * value(aim)).sum::<f64>()
    };
    let rise = moment(&|aim| aim.aim - height) / moment(&|aim| aim.sigma - middle);
    Line { middle, height, rise }
}

/// The line halfway between two.
fn between(one: Line, other: Line) -> Line {
    Line {
        middle: one.middle,
        height: f64::midpoint(one.height, other.at(one.middle)),
        rise: f64::midpoint(one.rise, other.rise),
    }
}
