//! The slow obvious version: the rules of the synthetic disk in floating point, in one place.
//!
//! It shares nothing with the drive but the rules, and needs no data: the comparison is always made.

use levelhead_stats::Streams;

use super::*;

/// Cylinders, blocks per track, track skew and cylinder skew of each zone.
const ZONES: [[u64; 4]; 7] = [
    [14_000, 1_200, 120, 180],
    [12_000, 1_104, 110, 166],
    [11_000, 1_020, 102, 153],
    [10_000, 960, 96, 144],
    [9_000, 880, 88, 132],
    [8_000, 780, 78, 117],
    [8_000, 720, 72, 108],
];
const HEADS: u64 = 4;
const TURN_MS: f64 = 4.0;
const HEAD_SWITCH_MS: f64 = 0.35;
const SETTLE_MS: f64 = 0.3;

/// One track's share of a request.
struct Segment {
    cylinder: u64,
    head: u64,
    /// In revolutions.
    angle: f64,
    length: f64,
}

fn segments(mut block: u64, mut blocks: u64) -> Vec<Segment> {
    let mut segments = Vec::new();
    while blocks > 0 {
        let (mut cylinder, mut first) = (0, 0);
        let zone = ZONES.iter().find(|[cylinders, per_track, ..]| {
            let is_in = block < first + cylinders * HEADS * per_track;
            if !is_in {
                first += cylinders * HEADS * per_track;
                cylinder += cylinders;
            }
            is_in
        });
        let [_, per_track, track_skew, cylinder_skew] = zone.copied().unwrap();
        let (track, at) = ((block - first) / per_track, (block - first) % per_track);
        let (c, head) = (track / HEADS, track % HEADS);
        let turned = (head + (HEADS - 1) * c) * track_skew + c * cylinder_skew;
        let length = blocks.min(per_track - at);
        segments.push(Segment {
            cylinder: cylinder + c,
            head,
            angle: ((turned + at) % per_track) as f64 / per_track as f64,
            length: length as f64 / per_track as f64,
        });
        block += length;
        blocks -= length;
    }
    segments
}

/// The disk at a moment.
struct Disk<'a> {
    /// In nanoseconds, by cylinders.
    seek: &'a [u32],
    cylinder: u64,
    head: u64,
}

impl Disk<'_> {
    /// When the head is over the segment's first block, in milliseconds.
    fn positioned(&self, at: f64, segment: &Segment, is_write: bool) -> f64 {
        let seek = f64::from(self.seek[self.cylinder.abs_diff(segment.cylinder) as usize]) / 1e6;
        let switch = if self.head == segment.head { 0.0 } else { HEAD_SWITCH_MS };
        let reach = seek.max(switch);
        let settle = if is_write && reach > 0.0 { SETTLE_MS } else { 0.0 };
        let on_track = at + reach + settle;
        // A hair back, so that the block after the last one is not missed by rounding.
        let phase = (on_track / TURN_MS - 2e-6).fract();
        on_track + ((segment.angle - phase).rem_euclid(1.0) - 2e-6) * TURN_MS
    }

    fn serve(&mut self, mut at: f64, row: &Row) -> f64 {
        for segment in segments(row.block, row.blocks) {
            at = self.positioned(at, &segment, !row.is_read) + segment.length * TURN_MS;
            (self.cylinder, self.head) = (segment.cylinder, segment.head);
        }
        at
    }
}

/// Random requests of the disk's own sizes.
pub(super) fn trace(seed: u64, count: usize, mean_gap_ns: u64, max_sectors: u64) -> Vec<Row> {
    let mut rng = Streams::new(seed).stream("trace");
    let mut arrival = 0;
    (0..count)
        .map(|_| {
            arrival += rng.below(2 * mean_gap_ns);
            Row {
                arrival: Instant::from_nanos(arrival),
                block: 8 * rng.below(283_152_000 / 8 - max_sectors),
                blocks: 8 * (1 + rng.below(max_sectors)),
                is_read: max_sectors == 1 || rng.below(10) < 7,
                start: 0.0,
                end: 0.0,
                seek_cylinders: 0,
                seek: 0.0,
                latency: 0.0,
                from: Arm::default(),
                from_angle: 0.0,
                place: (0, 0, 0),
                angle: 0.0,
                order: 0,
            }
        })
        .collect()
}

/// The ends of all rows in milliseconds, in the order of the ends, each with its row.
pub(super) fn ends(rows: &[Row], seek: &[u32], depth: usize) -> Vec<(usize, f64)> {
    let mut disk = Disk { seek, cylinder: 0, head: 0 };
    let (mut inside, mut arrived, mut ends) = (Vec::new(), 0, Vec::new());
    let mut free = 0.0_f64;
    while ends.len() < rows.len() {
        if inside.is_empty() {
            free = free.max(millis(rows[arrived].arrival));
            inside.push(arrived);
            arrived += 1;
        }
        let key = |at: &usize| {
            let first = &segments(rows[*at].block, rows[*at].blocks)[0];
            disk.positioned(free, first, !rows[*at].is_read)
        };
        let next = (0..inside.len())
            .min_by(|&one, &other| key(&inside[one]).total_cmp(&key(&inside[other])));
        let next = inside.remove(next.unwrap());
        free = disk.serve(free, &rows[next]);
        ends.push((next, free));
        // The queue is filled up after the choice, while the command is served.
        while inside.len() + 1 < depth.max(2)
            && arrived < rows.len()
            && millis(rows[arrived].arrival) < free
            && depth > 1
        {
            inside.push(arrived);
            arrived += 1;
        }
    }
    ends
}
