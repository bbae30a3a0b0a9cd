//! One stage of a measurement: reads in order, when they began and ended, and what follows from that.

use levelhead_units::{Extent, Instant, Lba, SECTOR_SIZE, Sectors};

use super::facts::{AtDepth, Rate};
use super::fit::Turns;

/// The rotation that is assumed until it is known, in seconds: only the spacing of sectors to read
/// depends on it.
const ROTATION_USUAL: f64 = 60.0 / 7_200.0;
/// The part of a track over which a run of sectors goes: rarely across its end.
const RUN_OF_TRACK: u64 = 8;
const RUN_MAX: u64 = 16;
const RUN_MIN: u64 = 6;

/// Reads in order, a fixed number of them at a time.
#[derive(Debug)]
pub(super) struct Stage {
    depth: u32,
    reads: Vec<Extent>,
    /// Beginning and end of each, in seconds since the stage's first.
    times: Vec<Option<(f64, f64)>>,
    epoch: Option<Instant>,
    sent: usize,
    done: usize,
    runs: Vec<Run>,
}

/// Sectors in falling order, `stride` apart, the first of them at `first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: u64,
    pub(super) stride: u64,
    pub(super) count: u64,
}

impl Run {
    /// Whether it has as many sectors as a run may have.
    pub(super) fn is_long(&self) -> bool {
        self.count == RUN_MAX
    }
}

/// An extent by its numbers.
pub(super) fn extent(lba: u64, sectors: u64) -> Extent {
    Extent::new(Lba::new(lba), Sectors::new(sectors))
}

impl Stage {
    pub(super) fn new(depth: u32, reads: Vec<Extent>) -> Self {
        let times = vec![None; reads.len()];
        Self { depth, reads, times, epoch: None, sent: 0, done: 0, runs: Vec::new() }
    }

    pub(super) fn with_runs(reads: Vec<Extent>, runs: Vec<Run>) -> Self {
        Self { runs, ..Self::new(1, reads) }
    }

    /// Adds reads at its end.
    pub(super) fn push(&mut self, more: impl IntoIterator<Item = Extent>) {
        self.reads.extend(more);
        self.times.resize(self.reads.len(), None);
    }

    /// Beginning and end of one of the last reads, the last one being 0; they are over.
    pub(super) fn last(&self, before: usize) -> (f64, f64) {
        self.times[self.times.len() - 1 - before].expect("the read is over")
    }

    /// The next read, if another one may be under way.
    pub(super) fn next(&mut self) -> Option<Extent> {
        if self.sent - self.done >= self.depth as usize {
            return None;
        }
        let next = *self.reads.get(self.sent)?;
        self.sent += 1;
        Some(next)
    }

    pub(super) fn handle_done(&mut self, at: u64, began: Instant, ended: Instant) {
        let epoch = *self.epoch.get_or_insert(began);
        let since = |at: Instant| at.saturating_since(epoch).as_secs_f64();
        let slot = self.times.get_mut(at as usize).expect("the read was asked for");
        assert!(slot.is_none() && (at as usize) < self.sent, "read {at} is not under way");
        *slot = Some((since(began), since(ended)));
        self.done += 1;
    }

    pub(super) fn is_done(&self) -> bool {
        self.done == self.reads.len()
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent as u64
    }

    pub(super) fn under_way(&self) -> u64 {
        (self.sent - self.done) as u64
    }

    pub(super) fn left(&self) -> u64 {
        (self.reads.len() - self.done) as u64
    }

    /// Where each read begins.
    pub(super) fn places(&self) -> impl Iterator<Item = Lba> + '_ {
        self.reads.iter().map(|read| read.lba)
    }

    fn times(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.times.iter().map(|time| time.expect("the stage is over"))
    }

    pub(super) fn ends(&self) -> Vec<f64> {
        self.times().map(|(_, ended)| ended).collect()
    }
}

/// Runs of sectors on one track each, spread over the drive, with `samples` sectors together; other ones each time `before` is
/// greater by one.
pub(super) fn runs(rates: &[Rate], size: Sectors, samples: u64, before: u64) -> Vec<Run> {
    let track = |at: usize| (rates[at].bytes_per_s * ROTATION_USUAL / SECTOR_SIZE as f64) as u64;
    let shortest = (0..rates.len()).map(track).min().unwrap_or(0);
    let count = (shortest / RUN_OF_TRACK).clamp(RUN_MIN, RUN_MAX);
    let places = (samples / count).max(3);
    (0..places)
        .map(|place| {
            let track = track(nearest(place, places, rates.len()));
            // What answers from memory seems to have tracks longer than itself.
            let room = (size.get() - 1) / count;
            let stride = (track / RUN_OF_TRACK / count).min(room).max(1);
            // Off the ends, and off any regular spacing.
            let first = (size.get() - 1) / (places + 1) * (place + 1) + place * 7;
            let first = first + before * (count * stride + 1);
            Run { first: first.min(size.get() - 1).max(count * stride), stride, count }
        })
        .collect()
}

/// The rate's place that lies nearest to run number `place`.
fn nearest(place: u64, places: u64, rates: usize) -> usize {
    ((place + 1) as usize * (rates - 1)).div_ceil(places as usize + 1).min(rates - 1)
}

/// When the sectors of each run ended, with the time one sector takes by the sustained rate there.
pub(super) fn turns_of(stage: &Stage, rates: &[Rate]) -> Vec<Turns> {
    let ends = stage.ends();
    let places = stage.runs.len() as u64;
    let mut at = 0;
    (0..)
        .zip(&stage.runs)
        .map(|(place, run)| {
            let rate = rates[nearest(place, places, rates.len())].bytes_per_s;
            let mut turns = Turns { sector: SECTOR_SIZE as f64 / rate, ends: Vec::new() };
            for step in 0..run.count {
                let wanted = extent(run.first - step * run.stride, 1);
                // Far reads come before each of them.
                while stage.reads[at] != wanted {
                    at += 1;
                }
                turns.ends.push(((step * run.stride) as f64, ends[at]));
                at += 1;
            }
            turns
        })
        .collect()
}

/// Rate and latencies of random reads, without those that found the queue filling or draining.
pub(super) fn at_depth(stage: &Stage, depth: u32) -> AtDepth {
    let mut ends = stage.ends();
    ends.sort_unstable_by(f64::total_cmp);
    let skipped = depth as usize;
    let steady = &ends[skipped..ends.len() - skipped];
    let span = steady[steady.len() - 1] - steady[0];
    let inner = stage.times().skip(skipped).take(stage.reads.len() - 2 * skipped);
    let mut latencies: Vec<f64> = inner.map(|(began, ended)| ended - began).collect();
    latencies.sort_unstable_by(f64::total_cmp);
    let mean = latencies.iter().sum::<f64>() / latencies.len() as f64;
    let p99 = latencies[(latencies.len() * 99).div_ceil(100) - 1];
    let per_s = (steady.len() - 1) as f64 / span;
    AtDepth { depth, per_s, error: per_s * spread(steady), mean, p99 }
}

/// Parts of a run that are compared with each other.
const PARTS: usize = 10;
/// Half of an interval of 95 % in standard deviations of the mean of that many parts.
const INTERVAL_OF_PARTS: f64 = 2.26;

/// By which share the time of rising ends differs from what a longer run would take: how its parts differ from each other.
fn spread(ends: &[f64]) -> f64 {
    let bound = |part: usize| ends[(ends.len() - 1) * part / PARTS];
    let reads =
        |part: usize| (ends.len() - 1) * (part + 1) / PARTS - (ends.len() - 1) * part / PARTS;
    let parts = (0..PARTS).map(|part| (bound(part + 1) - bound(part)) / reads(part).max(1) as f64);
    let parts: Vec<f64> = parts.collect();
    let mean = parts.iter().sum::<f64>() / PARTS as f64;
    let variance = parts.iter().map(|part| (part - mean).powi(2)).sum::<f64>() / (PARTS - 1) as f64;
    INTERVAL_OF_PARTS * (variance / PARTS as f64).sqrt() / mean
}
