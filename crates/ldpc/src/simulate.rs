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

use levelhead_stats::Streams;

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

/// What a block's frames came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockCount {
    /// Frames that were not decoded to what was sent.
    pub failures: u64,
    /// Those of them that the decoder took for good.
    pub undetected: u64,
    /// Iterations of all frames.
    pub iterations: u64,
}

/// When a measurement ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Until {
    /// At the end of the block with which there are this many failures, at least 1.
    pub failures: u64,
    /// At the end of the block with which there are this many frames.
    pub frames_max: u64,
}

/// The blocks from the first on that have been taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub blocks: u64,
    /// What their frames came to.
    pub count: BlockCount,
}

impl Point {
    /// Measures a block. Whatever the kernel, the count is the same.
    pub fn block(&self, number: u64, kernel: Kernel) -> Result<BlockCount, ChannelError> {
        let channel = Channel::new(self.channel, self.ber)?;
        let mut decoder = Decoder::new(self.forced, kernel);
        let name = format!("ldpc/{}/{}/{:e}/{number}", self.forced.bytes(), self.channel, self.ber);
        let mut rng = Streams::new(self.seed).stream(&name);
        let mut sector = vec![0; SECTOR_BYTES];
        rng.fill(&mut sector[..SECTOR_BYTES - self.forced.bytes()]);
        let word = encode(&sector);
        let mut levels = vec![0; CODE_BITS];
        let mut count = BlockCount::default();
        for _ in 0..BLOCK_FRAMES {
            channel.draw(&mut rng, &mut levels);
            send(&word, &mut levels);
            let decoded = decoder.decode(&levels, self.iterations);
            count.iterations += u64::from(decoded.iterations);
            let is_right = decoded.converged && *decoder.word() == word;
            count.failures += u64::from(!is_right);
            count.undetected += u64::from(decoded.converged && !is_right);
        }
        Ok(count)
    }
}

impl Tally {
    /// Takes the block after the last one.
    pub fn add(&mut self, block: BlockCount) {
        self.blocks += 1;
        self.count.failures += block.failures;
        self.count.undetected += block.undetected;
        self.count.iterations += block.iterations;
    }

    /// Frames so far.
    pub fn frames(&self) -> u64 {
        self.blocks * BLOCK_FRAMES
    }

    /// Whether the measurement has ended.
    pub fn has_ended(&self, until: Until) -> bool {
        self.count.failures >= until.failures || self.frames() >= until.frames_max
    }
}
