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
