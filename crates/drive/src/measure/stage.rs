//! One stage of a measurement: reads in order, when they began and ended, and what follows from that.

use levelhead_units::{Extent, Instant, Lba, SECTOR_SIZE, Sectors};

use super::facts::{AtDepth, Rate};
use super::fit::{self, Line, Turns};

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

    fn times(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.times.iter().map(|time| time.expect("the stage is over"))
    }

    fn ends(&self) -> Vec<f64> {
        self.times().map(|(_, ended)| ended).collect()
    }
}

/// The sustained rate at each place, from two streams of `stream + 1` reads there, of half of `large`
/// sectors and of `large`. None if larger reads took no longer at half of the places.
///
/// What a read costs beside its bytes is the same in both, so that their difference is that of the bytes. With a
/// `rotation`, revolutions that a read lost more than the usual one of its stream are taken off; and if what it costs
/// beside its bytes is then found to be whole revolutions, as it is where each read begins in the middle of a track, both streams
/// are one, which says more.
pub(super) fn rates_of(
    stage: &Stage,
    stream: u64,
    large: u64,
    rotation: Option<f64>,
) -> Option<Vec<Rate>> {
    let ends = stage.ends();
    let count = stream as usize + 1;
    let sizes = [large / 2, large].map(|sectors| sectors as f64 * SECTOR_SIZE as f64);
    let places = ends.chunks_exact(2 * count).zip(stage.reads.chunks_exact(2 * count));
    let found: Vec<(Lba, Option<Pace>)> = places
        .map(|(ends, reads)| {
            let (small, large) = ends.split_at(count);
            (reads[0].lba, pace([small, large], sizes, rotation))
        })
        .collect();
    let good: Vec<(usize, Pace)> =
        found.iter().enumerate().filter_map(|(at, (_, pace))| Some((at, (*pace)?))).collect();
    if good.len() * 2 <= found.len() {
        return None;
    }
    // Where something else came between, the nearest place stands in.
    let nearest = |at: usize| good.iter().min_by_key(|(other, _)| at.abs_diff(*other));
    let rate = |(at, &(lba, pace)): (usize, &(Lba, Option<Pace>))| {
        let pace = pace.or_else(|| Some(nearest(at)?.1))?;
        let bytes_per_s = 1.0 / pace.byte;
        Some(Rate { lba, bytes_per_s, error: bytes_per_s * pace.error / pace.byte })
    };
    found.iter().enumerate().map(rate).collect()
}

/// Seconds a byte, and half of their interval.
#[derive(Clone, Copy, Debug)]
struct Pace {
    byte: f64,
    error: f64,
}

/// From the ends of a stream of smaller and of one of larger reads that follows it; none if the larger took no longer.
fn pace(ends: [&[f64]; 2], sizes: [f64; 2], rotation: Option<f64>) -> Option<Pace> {
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
    let Some(rotation) = rotation else { return Some(apart) };
    let beside = [small.slope - byte * sizes[0], large.slope - byte * sizes[1]];
    let turns = beside.map(|time| (time / rotation).round());
    let rest = (beside[0] - turns[0] * rotation).abs();
    let is_whole = turns[0] == turns[1] && rest <= doubt * (1.0 + sizes[0] / more);
    if !is_whole || small.off.max(large.off) > rotation * EVEN {
        return Some(apart);
    }
    // The way to the second stream's first read is one more of its reads.
    let mut points = Vec::with_capacity(streams[0].len() + streams[1].len());
    let (mut bytes, mut ended) = (0.0, 0.0);
    for (ends, size) in streams.iter().zip(sizes) {
        let usual = byte * size;
        for (at, &end) in ends.iter().enumerate() {
            if points.is_empty() {
                points.push((0.0, 0.0));
                continue;
            }
            let before = if at == 0 { streams[0][streams[0].len() - 1] } else { ends[at - 1] };
            let step = end - before;
            bytes += size;
            ended += step - ((step - usual) / rotation).round() * rotation;
            points.push((bytes, ended));
        }
    }
    let Line { slope: byte, error, .. } = fit::line(&points);
    (byte > 0.0).then_some(Pace { byte, error })
}

/// Ends without the revolutions that single reads lost more than the usual one.
fn evened(ends: &[f64], rotation: Option<f64>) -> Vec<f64> {
    let Some(rotation) = rotation else { return ends.to_vec() };
    let usual = fit::median(ends.windows(2).map(|pair| pair[1] - pair[0]).collect());
    let mut lost = 0.0;
    let mut evened = vec![ends[0]];
    let mut rare = 0;
    for pair in ends.windows(2) {
        let turns = ((pair[1] - pair[0] - usual) / rotation).round();
        rare += usize::from(turns != 0.0);
        lost += turns * rotation;
        evened.push(pair[1] - lost);
    }
    if rare as f64 > RARE * ends.len() as f64 { ends.to_vec() } else { evened }
}

/// The share of reads that may lose revolutions by chance: where more do, it is how the drive reads.
const RARE: f64 = 0.25;
/// The part of a revolution by which reads may end off an even pace: the time between tracks and some noise are less, and a drive
/// that waits for its bus, so that it begins where it can, is off by more.
const EVEN: f64 = 0.1;

/// Runs of sectors on one track each, spread over the drive, with `samples` sectors together.
pub(super) fn runs(rates: &[Rate], size: Sectors, samples: u64) -> Vec<Run> {
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
