//! What a codeword's bits are when they are read: levels that a decoder takes.
//!
//! *Soft*: a bit is +1 (zero) or -1 (one), white Gaussian noise of standard deviation `sigma` is added, and the sum is rounded
//! to a step of 1/16 and cut at 31 steps. The raw bit error rate names the noise: `BER = Q(1 / sigma)`.
//! *Hard*: a bit is wrong with probability `BER`, and its level is 8 either way.
//!
//! The quantised level of a zero is drawn directly, from its law, whose cumulative thresholds are exact to 2^-53 or better
//! (`draw`; `kernel` does the same by vectors). A one has the level of a zero with the other sign.

mod draw;
mod kernel;

use std::fmt;
use std::str::FromStr;

use levelhead_stats::{Normal, Rng};

use crate::code::Codeword;
use crate::shape::{CODE_BITS, COLUMNS};
use draw::{LEVEL_MIN, SLOTS, STEP, Slots};

/// Steps in the distance from the threshold to an undisturbed sample.
const STEPS: f64 = 16.0;

/// The largest level of the soft channel.
const SOFT_MAX: i8 = 31;

/// The level of the hard channel.
const HARD: i8 = 8;

/// What of a sample the decoder is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChannelKind {
    /// A quantised sample.
    Soft,
    /// One bit.
    Hard,
}

impl ChannelKind {
    /// The name that [`from_str`](str::parse) takes: `soft` or `hard`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Soft => "soft",
            Self::Hard => "hard",
        }
    }
}

impl fmt::Display for ChannelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ChannelKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Soft, Self::Hard]
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| format!("a channel is soft or hard, not '{text}'"))
    }
}

/// A bit error rate that no channel has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChannelError {
    ber: f64,
}

impl fmt::Display for ChannelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a bit error rate is above 0 and below 0.5, not {}", self.ber)
    }
}

impl std::error::Error for ChannelError {}

/// A channel, ready to draw from.
#[derive(Clone, Debug)]
pub struct Channel {
    /// The probability of each level of a zero, from [`LEVEL_MIN`] on, times 2^64.
    shares: [u128; SLOTS],
    slots: Slots,
}

const TWO_64: f64 = (1_u128 << 64) as f64;

impl Channel {
    /// The channel with this raw bit error rate, above 0 and below 0.5.
    pub fn new(kind: ChannelKind, ber: f64) -> Result<Self, ChannelError> {
        if !(ber > 0.0 && ber < 0.5) {
            return Err(ChannelError { ber });
        }
        Ok(match kind {
            ChannelKind::Hard => Self::from_law(&[-HARD, HARD], &[ber]),
            ChannelKind::Soft => {
                let sigma = sigma_of(ber);
                let levels: Vec<i8> = (-SOFT_MAX..=SOFT_MAX).collect();
                let cumulative: Vec<f64> = levels[..levels.len() - 1]
                    .iter()
                    .map(|level| {
                        let edge = (f64::from(*level) + 0.5) / STEPS;
                        Normal::STANDARD.below((edge - 1.0) / sigma)
                    })
                    .collect();
                Self::from_law(&levels, &cumulative)
            }
        })
    }

    /// The channel with these levels and, of each but the last, the probability of it or a lesser one.
    fn from_law(levels: &[i8], cumulative: &[f64]) -> Self {
        assert_eq!(cumulative.len() + 1, levels.len(), "a probability for each level but the last");
        let mut shares = [0; SLOTS];
        let mut below = 0;
        // A conversion to a whole number stays in range by itself.
        let uppers = cumulative.iter().map(|share| u128::from((share * TWO_64) as u64));
        for (level, upper) in levels.iter().zip(uppers.chain([1 << 64])) {
            shares[(level - LEVEL_MIN) as usize] = upper - below;
            below = upper;
        }
        Self { shares, slots: Slots::new(&shares) }
    }

    /// Draws the levels of a sector of zeroes' codeword: one a bit. All bits are drawn, whether a decoder takes them or not.
    ///
    /// Panics if `levels` is not [`CODE_BITS`] long.
    pub fn draw(&self, rng: &mut Rng, levels: &mut [i8]) {
        assert_eq!(levels.len(), CODE_BITS, "levels of a codeword");
        let (steps, _) = levels.as_chunks_mut::<STEP>();
        kernel::draw(&self.slots, rng, steps);
    }

    /// The probability of each level that a zero may have, from the least on.
    pub fn law(&self) -> Vec<(i8, f64)> {
        let levels = (LEVEL_MIN..).zip(self.shares);
        levels
            .filter(|(_, share)| *share > 0)
            .map(|(level, share)| (level, share as f64 / TWO_64))
            .collect()
    }
}

const _: () = assert!(CODE_BITS.is_multiple_of(STEP));
const _: () = assert!(SOFT_MAX == -LEVEL_MIN);

/// The standard deviation of noise that turns over this share of bits.
pub(crate) fn sigma_of(ber: f64) -> f64 {
    -1.0 / Normal::STANDARD.quantile(ber)
}

/// By the bits of a byte: -1 where there is a one.
static MASKS: [[i8; 8]; 256] = {
    let mut masks = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut at = 0;
        while at < 8 {
            masks[byte][at] = -((byte >> at & 1) as i8);
            at += 1;
        }
        byte += 1;
    }
    masks
};

/// Turns the levels of zeroes into those of `word`.
pub(crate) fn send(word: &Codeword, levels: &mut [i8]) {
    let (chunks, _) = levels.as_chunks_mut::<64>();
    for (bits, levels) in word.0.iter().flatten().zip(chunks) {
        let mut masks = [0; 64];
        for (masks, byte) in masks.as_chunks_mut::<8>().0.iter_mut().zip(bits.to_le_bytes()) {
            *masks = MASKS[usize::from(byte)];
        }
        for (level, mask) in levels.iter_mut().zip(masks) {
            *level = (*level ^ mask).wrapping_sub(mask);
        }
    }
}

const _: () = assert!(CODE_BITS == COLUMNS * 8 * 64);

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;

    use super::*;

    /// Chi-squared against the law computed from Q alone, four standard deviations.
    #[test]
    fn levels_are_drawn_from_the_quantised_law() {
        for (kind, ber) in [(ChannelKind::Soft, 0.0175), (ChannelKind::Hard, 0.0065)] {
            let channel = Channel::new(kind, ber).unwrap();
            let mut rng = Streams::new(5).stream("channel");
            let mut levels = vec![0; CODE_BITS];
            let mut counts = [0_u64; 64];
            let frames = 200_u64;
            for _ in 0..frames {
                channel.draw(&mut rng, &mut levels);
                levels.iter().for_each(|level| counts[(level + 32) as usize] += 1);
            }
            let n = (frames * CODE_BITS as u64) as f64;
            let (mut chi, mut freedom, mut sum) = (0.0, -1.0, 0.0);
            for (level, share) in channel.law() {
                sum += share;
                let expected = n * share;
                if expected > 5.0 {
                    chi += (counts[(level + 32) as usize] as f64 - expected).powi(2) / expected;
                    freedom += 1.0;
                }
            }
            assert!((sum - 1.0).abs() < 1e-12);
            assert!(chi < freedom + 4.0 * f64::sqrt(2.0 * freedom), "{kind}: {chi} of {freedom}");
            let wrong: u64 = counts[..32].iter().sum();
            let half = counts[32] as f64 / 2.0;
            let seen = (wrong as f64 + half) / n;
            assert!((seen - ber).abs() < 4.0 * (ber / n).sqrt() + 2e-4, "{kind}: {seen}");
        }
    }

    /// By Simpson's rule over the density, which knows nothing of the error function.
    #[test]
    fn soft_law_is_that_of_the_rounded_sum() {
        let sigma = 0.474_4;
        let channel = Channel::new(ChannelKind::Soft, Normal::STANDARD.above(1.0 / sigma)).unwrap();
        let density = |y: f64| {
            (-0.5 * ((y - 1.0) / sigma).powi(2)).exp()
                / (sigma * f64::sqrt(2.0 * std::f64::consts::PI))
        };
        for (level, share) in channel.law() {
            let edge = |half: f64| (f64::from(level) + half) / STEPS;
            let (low, high) = match level {
                -31 => (-8.0, edge(0.5)),
                31 => (edge(-0.5), 10.0),
                _ => (edge(-0.5), edge(0.5)),
            };
            let pieces = 4_000;
            let width = (high - low) / f64::from(pieces);
            let weight = |at: i32| match at {
                0 => 1.0,
                at if at == pieces => 1.0,
                at if at % 2 == 1 => 4.0,
                _ => 2.0,
            };
            let sum: f64 =
                (0..=pieces).map(|at| weight(at) * density(low + f64::from(at) * width)).sum();
            let expected = sum * width / 3.0;
            assert!((share - expected).abs() < 1e-10, "{level}: {share}, {expected}");
        }
    }

    #[test]
    fn rates_that_no_channel_has_are_refused() {
        for ber in [0.0, -1.0, 0.5, 0.7, f64::NAN] {
            assert!(Channel::new(ChannelKind::Soft, ber).is_err(), "{ber}");
        }
    }
}
