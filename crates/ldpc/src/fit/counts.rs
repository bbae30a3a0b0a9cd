//! What was counted of the committed code, with seed 7: with 50 iterations what the drive's code is known by, with 20 and 200 what
//! retries on the same samples need.
//!
//! ```text
//!   levelhead-lab ecc simulate --forced BYTES --ber BER,.. [--channel hard] [--iterations ITERATIONS] --failures FAILURES --frames-max 8000000
//! ```
//!
//! gives each row again, with any kernel and any number of threads. Every count ended with its last failure.

use super::likelihood::{Count, End};
use crate::channel::{ChannelKind, sigma_of};
use crate::code::ZeroForcing;

/// One line of what `levelhead-lab ecc simulate` counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counted {
    /// The zeroes that the decoder knows.
    pub forced: ZeroForcing,
    /// What of a sample the decoder is told.
    pub channel: ChannelKind,
    /// The most iterations of a decoding.
    pub iterations: u32,
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
    /// The usual number of iterations.
    pub const ITERATIONS: u32 = 50;

    /// The counts of one curve with the usual iterations, the most noise first.
    pub fn of(channel: ChannelKind, forced: ZeroForcing) -> impl Iterator<Item = Self> {
        let is_meant = move |row: &Self| row.channel == channel && row.forced == forced;
        COUNTS.into_iter().filter(is_meant)
    }

    /// The counts of one curve of the soft channel with so many iterations, the most noise first.
    pub fn with(iterations: u32, forced: ZeroForcing) -> impl Iterator<Item = Self> {
        let all = COUNTS.into_iter().chain(OTHERS);
        all.filter(move |row| {
            row.channel == ChannelKind::Soft && row.iterations == iterations && row.forced == forced
        })
    }

    /// As a fit takes it. Of the hard channel, `sigma` is the noise whose sign alone is kept.
    pub fn count(&self) -> Count {
        let Self { ber, frames, failures, .. } = *self;
        Count { sigma: sigma_of(ber), frames, failures, end: End::Failure }
    }
}

const fn soft(forced: ZeroForcing, ber: f64, frames: u64, failures: u64) -> Counted {
    let (channel, iterations) = (ChannelKind::Soft, Counted::ITERATIONS);
    Counted { forced, channel, iterations, ber, frames, failures, undetected: 0 }
}

const fn hard(forced: ZeroForcing, ber: f64, frames: u64, failures: u64) -> Counted {
    Counted { forced, channel: ChannelKind::Hard, ..soft(forced, ber, frames, failures) }
}

/// Every count with 50 iterations, by channel and zeroes, the most noise first.
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

/// Counts of the soft channel with other numbers of iterations, the most noise first.
const OTHERS: [Counted; 24] = [
    other(20, ZeroForcing::None, 0.018, 2_513, 100),
    other(20, ZeroForcing::None, 0.0175, 21_785, 100),
    other(20, ZeroForcing::None, 0.0171, 141_874, 100),
    other(20, ZeroForcing::B256, 0.019, 4_870, 100),
    other(20, ZeroForcing::B256, 0.0185, 29_978, 100),
    other(20, ZeroForcing::B256, 0.0181, 296_655, 100),
    other(20, ZeroForcing::B512, 0.0205, 2_470, 100),
    other(20, ZeroForcing::B512, 0.02, 10_422, 100),
    other(20, ZeroForcing::B512, 0.0195, 90_789, 100),
    other(20, ZeroForcing::B1024, 0.024, 1_013, 100),
    other(20, ZeroForcing::B1024, 0.0235, 3_668, 100),
    other(20, ZeroForcing::B1024, 0.023, 17_098, 100),
    other(200, ZeroForcing::None, 0.0182, 3_329, 100),
    other(200, ZeroForcing::None, 0.0178, 18_677, 100),
    other(200, ZeroForcing::None, 0.0175, 68_523, 100),
    other(200, ZeroForcing::B256, 0.0192, 5_885, 100),
    other(200, ZeroForcing::B256, 0.0188, 29_451, 100),
    other(200, ZeroForcing::B256, 0.0185, 135_049, 100),
    other(200, ZeroForcing::B512, 0.0206, 4_536, 100),
    other(200, ZeroForcing::B512, 0.0202, 20_033, 100),
    other(200, ZeroForcing::B512, 0.0198, 96_785, 100),
    other(200, ZeroForcing::B1024, 0.024, 2_126, 100),
    other(200, ZeroForcing::B1024, 0.0236, 7_738, 100),
    other(200, ZeroForcing::B1024, 0.0232, 33_314, 100),
];

const fn other(
    iterations: u32,
    forced: ZeroForcing,
    ber: f64,
    frames: u64,
    failures: u64,
) -> Counted {
    Counted { iterations, ..soft(forced, ber, frames, failures) }
}
