//! Failure rates by Monte Carlo.
//!
//! Frames come in numbered blocks of [`BLOCK_FRAMES`]; the chance of a block is drawn from a stream that bears the point's name and the
//! block's number, and what it counts depends on nothing else. Threads may measure blocks in any order; a [`Tally`] takes them in the
//! order of their numbers and stops at the first with which there are failures enough, so that the result does
//! not depend on threads, and a run can go on where another one ended. Whoever stopped with the thread that comes first would
//! favour quick frames, that is successes.
//!
//! Each block sends one random codeword, with the zeroes that the decoder knows: the decoder treats zeroes and ones
//! differently.
//!
//! A frame fails if the decoder does not converge, or converges to another codeword; the latter is an *undetected* error
//! and is counted apart, too.

use levelhead_stats::{CountInterval, Streams, binomial_interval, until_failures_interval};

use crate::channel::{Channel, ChannelError, ChannelKind, send};
use crate::code::ZeroForcing;
use crate::decoder::{Decoder, Kernel};
use crate::encode::encode;
use crate::shape::{CODE_BITS, SECTOR_BYTES};

/// Frames of a block.
pub const BLOCK_FRAMES: u64 = 64;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The zeroes that the decoder knows.
    pub forced: ZeroForcing,
    /// What of a sample the decoder is told.
    pub channel: ChannelKind,
    /// Raw bit error rate, above 0 and below 0.5.
    pub ber: f64,
    /// The most iterations of a decoding.
    pub iterations: u32,
    /// What chance is drawn from.
    pub seed: u64,
}

/// What a block's frames came to; bit `i` of a mask is frame `i`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockCount {
    /// Frames that were not decoded to what was sent.
    pub failed: u64,
    /// Those of them that the decoder took for good.
    pub undetected: u64,
    /// Iterations of all frames.
    pub iterations: u64,
}

const _: () = assert!(BLOCK_FRAMES == u64::BITS as u64);

/// When a measurement ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Until {
    /// With the frame that is failure number so many, at least 2.
    pub failures: u64,
    /// At the end of the block with which there are this many frames.
    pub frames_max: u64,
}

/// Blocks that have been counted, from the first on: those before the last one together, and the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub blocks: u64,
    /// Failures before the last block.
    pub failures_before: u64,
    /// Undetected ones before the last block.
    pub undetected_before: u64,
    /// Iterations of all blocks.
    pub iterations: u64,
    /// The last block.
    pub last: BlockCount,
}

/// What a measurement came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Frames up to the last one that counts.
    pub frames: u64,
    /// Failures among them.
    pub failures: u64,
    /// Failures that the decoder took for good.
    pub undetected: u64,
    /// The failure rate with its exact 95 % interval. Without a failure it has an upper end only.
    pub rate: CountInterval,
    /// Iterations of a frame on average, over all blocks.
    pub iterations_mean: f64,
}

impl Point {
    /// Measures a block. Whatever the kernel, the count is the same.
    pub fn block(&self, number: u64, kernel: Kernel) -> Result<BlockCount, ChannelError> {
        self.block_with_failures(number, kernel, |_| ())
    }

    /// The same; `failed` is told of each failing frame how many bits of its codeword were wrong in the end. Nearly all have hundreds, and
    /// failures of a few bits would be the beginning of an error floor.
    pub fn block_with_failures(
        &self,
        number: u64,
        kernel: Kernel,
        mut failed: impl FnMut(u32),
    ) -> Result<BlockCount, ChannelError> {
        let channel = Channel::new(self.channel, self.ber)?;
        let mut decoder = Decoder::new(self.forced, kernel);
        let name = format!("ldpc/{}/{}/{:e}/{number}", self.forced.bytes(), self.channel, self.ber);
        let mut rng = Streams::new(self.seed).stream(&name);
        let mut sector = vec![0; SECTOR_BYTES];
        rng.fill(&mut sector[..SECTOR_BYTES - self.forced.bytes()]);
        let word = encode(&sector);
        let mut levels = vec![0; CODE_BITS];
        let mut count = BlockCount::default();
        for frame in 0..BLOCK_FRAMES {
            channel.draw(&mut rng, &mut levels);
            send(&word, &mut levels);
            let decoded = decoder.decode(&levels, self.iterations);
            count.iterations += u64::from(decoded.iterations);
            let is_right = decoded.converged && *decoder.word() == word;
            if !is_right {
                failed(decoder.word().distance(&word));
            }
            count.failed |= u64::from(!is_right) << frame;
            count.undetected |= u64::from(decoded.converged && !is_right) << frame;
        }
        Ok(count)
    }
}

impl Tally {
    /// Takes the block after the last one.
    pub fn add(&mut self, block: BlockCount) {
        self.blocks += 1;
        self.failures_before += u64::from(self.last.failed.count_ones());
        self.undetected_before += u64::from(self.last.undetected.count_ones());
        self.iterations += block.iterations;
        self.last = block;
    }

    /// Failures so far.
    pub fn failures(&self) -> u64 {
        self.failures_before + u64::from(self.last.failed.count_ones())
    }

    /// Frames so far.
    pub fn frames(&self) -> u64 {
        self.blocks * BLOCK_FRAMES
    }

    /// Whether the measurement has ended.
    pub fn has_ended(&self, until: Until) -> bool {
        self.failures() >= until.failures || self.frames() >= until.frames_max
    }

    /// Whether it had ended already with the block before the last one.
    pub fn has_ended_before_last(&self, until: Until) -> bool {
        let frames = self.frames().saturating_sub(BLOCK_FRAMES);
        self.failures_before >= until.failures || frames >= until.frames_max
    }

    /// What it came to, if it ends here.
    ///
    /// Panics if nothing has been counted, or if it had ended with an earlier block.
    pub fn outcome(&self, until: Until) -> Outcome {
        assert!(self.blocks > 0, "no frames, no rate");
        assert!(!self.has_ended_before_last(until), "it ended with an earlier block");
        assert!(until.failures >= 2, "an unbiased rate takes two failures");
        let iterations_mean = self.iterations as f64 / self.frames() as f64;
        if self.failures() < until.failures {
            let (frames, failures) = (self.frames(), self.failures());
            let undetected = self.undetected_before + u64::from(self.last.undetected.count_ones());
            let rate = binomial_interval(failures, frames);
            return Outcome { frames, failures, undetected, rate, iterations_mean };
        }
        let mut later = self.last.failed;
        for _ in 1..until.failures - self.failures_before {
            later &= later - 1;
        }
        let frame = later.trailing_zeros();
        let frames = self.frames() - BLOCK_FRAMES + u64::from(frame) + 1;
        let counted = self.last.undetected & (u64::MAX >> (63 - frame));
        Outcome {
            frames,
            failures: until.failures,
            undetected: self.undetected_before + u64::from(counted.count_ones()),
            rate: until_failures_interval(until.failures, frames),
            iterations_mean,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(forced: ZeroForcing, ber: f64) -> Point {
        Point { forced, channel: ChannelKind::Soft, ber, iterations: 20, seed: 7 }
    }

    #[test]
    fn a_count_ends_with_the_frame_of_its_last_failure() {
        let mut tally = Tally::default();
        let until = Until { failures: 5, frames_max: 10_000 };
        for failed in [0b1010, 0, 0b1, 1 << 63 | 0b1001_0000] {
            assert!(!tally.has_ended(until));
            tally.add(BlockCount { failed, undetected: failed & 0b1000_1000, iterations: 640 });
        }
        assert!(tally.has_ended(until));
        let outcome = tally.outcome(until);
        assert_eq!((outcome.frames, outcome.failures, outcome.undetected), (3 * 64 + 8, 5, 2));
        assert!((outcome.rate.rate - 4.0 / 199.0).abs() < 1e-15);
        assert!((outcome.iterations_mean - 10.0).abs() < 1e-12);
        let first = tally.outcome(Until { failures: 4, ..until });
        assert_eq!((first.frames, first.failures, first.undetected), (3 * 64 + 5, 4, 1));
        let none = tally.outcome(Until { failures: 100, frames_max: 256 });
        assert_eq!((none.frames, none.failures), (256, 6));
    }

    #[test]
    fn a_block_counts_the_same_whatever_the_kernel() {
        let point = point(ZeroForcing::B512, 0.0205);
        let counts: Vec<BlockCount> =
            Kernel::available().map(|kernel| point.block(3, kernel).unwrap()).collect();
        assert!(counts.windows(2).all(|pair| pair[0] == pair[1]), "{counts:?}");
        assert_ne!(counts[0], point.block(4, Kernel::best()).unwrap());
    }

    /// More zeroes fail less, more noise fails more.
    #[test]
    fn failures_grow_with_noise_and_fall_with_zeroes() {
        let failures = |forced, ber| {
            let count = |block| point(forced, ber).block(block, Kernel::best()).unwrap();
            (0..4).map(|block| count(block).failed.count_ones()).sum::<u32>()
        };
        let rows = ZeroForcing::ALL
            .map(|forced| [0.0175, 0.0195, 0.0215, 0.0240].map(|ber| failures(forced, ber)));
        for row in rows {
            assert!(row.is_sorted(), "{rows:?}");
        }
        for pair in rows.windows(2) {
            assert!(pair[0].iter().zip(&pair[1]).all(|(few, many)| few >= many), "{rows:?}");
        }
        assert!(rows[0][1] > 128 && rows[3][2] < 32, "{rows:?}");
    }

    /// Chi-squared over 64 streams, four standard deviations.
    #[test]
    fn failures_scatter_over_streams_as_independent_ones_do() {
        let point = point(ZeroForcing::None, 0.0183);
        let counts: Vec<f64> = (0..64)
            .map(|block| f64::from(point.block(block, Kernel::best()).unwrap().failed.count_ones()))
            .collect();
        let mean = counts.iter().sum::<f64>() / 64.0;
        let variance = mean * (1.0 - mean / 64.0);
        let chi: f64 = counts.iter().map(|count| (count - mean).powi(2) / variance).sum();
        assert!((4.0..60.0).contains(&mean), "{mean} of 64 frames fail");
        assert!((chi - 63.0).abs() < 4.0 * f64::sqrt(126.0), "{chi}: {counts:?}");
    }
}
