//! What was counted of the committed code, with 50 iterations and seed 7.
//!
//! ```text
//!   levelhead ecc simulate --forced BYTES --ber BER,.. [--channel hard] --failures FAILURES --frames-max 8000000
//! ```
//!
//! gives each row again, with any kernel and any number of threads. Every count ended with its last failure.

use super::likelihood::{Count, End};
use crate::channel::{ChannelKind, sigma_of};
use crate::code::ZeroForcing;

/// One line of what `levelhead ecc simulate` counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counted {
    /// The zeroes that the decoder knows.
    pub forced: ZeroForcing,
    /// What of a sample the decoder is told.
    pub channel: ChannelKind,
    /// Raw bit error rate.
    pub ber: f64,
    /// Frames, of which the last one failed.
    pub frames: u64,
    /// Frames that failed.
    pub failures: u64,
    /// Failures that the decoder took for good.
    pub undetected: u64,
}

impl Counted {
    /// What counts are drawn from.
    pub const SEED: u64 = 7;
    /// The most iterations of a decoding.
    pub const ITERATIONS: u32 = 50;

    /// The counts of one curve, the most noise first.
    pub fn of(channel: ChannelKind, forced: ZeroForcing) -> impl Iterator<Item = Self> {
        COUNTS.into_iter().filter(move |row| row.channel == channel && row.forced == forced)
    }

    /// As a fit takes it. Of the hard channel, `sigma` is the noise whose sign alone is kept.
    pub fn count(&self) -> Count {
        let Self { ber, frames, failures, .. } = *self;
        Count { sigma: sigma_of(ber), frames, failures, end: End::Failure }
    }
}

const fn soft(forced: ZeroForcing, ber: f64, frames: u64, failures: u64) -> Counted {
    Counted { forced, channel: ChannelKind::Soft, ber, frames, failures, undetected: 0 }
}

const fn hard(forced: ZeroForcing, ber: f64, frames: u64, failures: u64) -> Counted {
    Counted { forced, channel: ChannelKind::Hard, ..soft(forced, ber, frames, failures) }
}

/// Every count, by channel and zeroes, the most noise first.
pub const COUNTS: [Counted; 23] = [
    soft(ZeroForcing::None, 0.018, 5_621, 100),
    soft(ZeroForcing::None, 0.0175, 49_309, 100),
    soft(ZeroForcing::None, 0.0171, 446_840, 100),
    soft(ZeroForcing::None, 0.0167, 1_178_499, 20),
    soft(ZeroForcing::B256, 0.019, 10_011, 100),
    soft(ZeroForcing::B256, 0.0185, 98_317, 100),
    soft(ZeroForcing::B256, 0.0182, 89_381, 25),
    soft(ZeroForcing::B256, 0.0178, 941_382, 20),
    soft(ZeroForcing::B512, 0.0205, 4_502, 100),
    soft(ZeroForcing::B512, 0.02, 28_764, 100),
    soft(ZeroForcing::B512, 0.0194, 107_046, 25),
    soft(ZeroForcing::B512, 0.019, 842_316, 20),
    soft(ZeroForcing::B1024, 0.024, 1_734, 100),
    soft(ZeroForcing::B1024, 0.0235, 8_068, 100),
    soft(ZeroForcing::B1024, 0.023, 50_148, 100),
    soft(ZeroForcing::B1024, 0.0223, 228_385, 25),
    soft(ZeroForcing::B1024, 0.0219, 745_305, 20),
    hard(ZeroForcing::None, 0.0075, 641, 100),
    hard(ZeroForcing::None, 0.0065, 92_636, 100),
    hard(ZeroForcing::B256, 0.0075, 7_225, 100),
    hard(ZeroForcing::B512, 0.0085, 1_529, 100),
    hard(ZeroForcing::B1024, 0.0105, 697, 100),
    hard(ZeroForcing::B1024, 0.0095, 19_311, 100),
];
