//! Where requests go, and how much of it.
//!
//! Everything here is assumed: `[IRAW08]` says neither sizes nor places, only that the web and the SAS
//! server write again where they have written.

use std::collections::VecDeque;

use levelhead_stats::{Rng, Streams};
use levelhead_units::{Bytes, Extent, Lba, Sectors};

use super::servers::Description;
use super::timing::{Phase, Timed};
use crate::Kind;

/// How many places most requests go to, and how large each is.
pub(super) const SPOTS: u64 = 24;
pub(super) const SPOT: Bytes = Bytes::new(150_000_000);

/// The probability that a request goes to one of them.
const IN_SPOTS: f64 = 0.8;

/// How many of the last writes may be written again.
const RECENT_WRITES: usize = 2_000;

/// The gap between two writes of a storm is shorter.
const GAP_END: Sectors = Sectors::new(64);

/// The mean size of a read.
const READ: Bytes = Bytes::new(16 << 10);

/// The probabilities that a read goes on with a stream, reads something again, and, if it does neither,
/// begins a stream.
const GOES_ON: f64 = 0.30;
const AGAIN: f64 = 0.45;
const BEGINS: f64 = 0.15;

/// How many more reads a stream has after its first.
const STREAM_READS: u32 = 8;

/// The most streams at a time: one more ends the oldest.
const STREAMS_MAX: usize = 16;

/// How many reads back, each place counted once, something that is read again was read at most.
const DEPTH_MAX: usize = 220;

/// Draws extents.
pub(super) struct Places<'a> {
    description: &'a Description,
    size: Sectors,
    /// Where each spot begins.
    spots: Vec<Lba>,
    sizes: Rng,
    writes: Rng,
    reads: Rng,
    /// Where the next write of the storm may begin at the earliest.
    storm: Lba,
    /// Where the last writes began.
    written: VecDeque<Lba>,
    streams: VecDeque<Stream>,
    /// What was read, the latest last, each place once.
    read: VecDeque<Extent>,
}

/// Reads that follow each other on the drive.
#[derive(Clone, Copy, Debug)]
struct Stream {
    next: Lba,
    left: u32,
}

impl<'a> Places<'a> {
    /// Places on a drive or an array of this size, which has room for all spots.
    pub(super) fn new(description: &'a Description, size: Sectors, streams: Streams) -> Self {
        let mut rng = streams.stream("iraw/spots");
        let part = size.get() / SPOTS;
        let room = part.checked_sub(SPOT.sectors_floor().get()).expect("every spot has room");
        let spot = |at: u64| Lba::new(at * part + rng.below(room + 1));
        Self {
            description,
            size,
            spots: (0..SPOTS).map(spot).collect(),
            sizes: streams.stream("iraw/sizes"),
            writes: streams.stream("iraw/writes"),
            reads: streams.stream("iraw/reads"),
            storm: Lba::ZERO,
            written: VecDeque::with_capacity(RECENT_WRITES),
            streams: VecDeque::with_capacity(STREAMS_MAX),
            read: VecDeque::with_capacity(DEPTH_MAX + 1),
        }
    }

    /// The sectors of the next request.
    pub(super) fn extent(&mut self, request: &Timed) -> Extent {
        let mean = match (request.kind, request.phase) {
            (Kind::Read, _) => READ,
            (Kind::Write, Phase::Storm) => self.description.storms.write,
            (Kind::Write, Phase::Calm | Phase::Heavy) => self.description.calm.write,
        };
        let sectors = spread(&mut self.sizes, mean);
        match request.kind {
            Kind::Read => self.read(sectors),
            Kind::Write => self.write(request, sectors),
        }
    }

    fn write(&mut self, request: &Timed, sectors: Sectors) -> Extent {
        if request.phase == Phase::Storm && request.is_first {
            let spot = self.spots[self.writes.below(SPOTS) as usize];
            let room = SPOT.sectors_floor().get();
            self.storm = spot + Sectors::new(self.writes.below(room));
        }
        let again = self.writes.unit() < self.description.rewrites;
        let lba = if again && !self.written.is_empty() {
            let which = self.writes.below(self.written.len() as u64) as usize;
            self.within(self.written[which], sectors)
        } else if request.phase == Phase::Storm {
            let gap = Sectors::new(self.writes.below(GAP_END.get()));
            let wanted = self.storm + gap;
            let fits = Extent::new(wanted, sectors).fits(self.size);
            let lba = if fits { wanted } else { Lba::ZERO };
            self.storm = lba + sectors;
            lba
        } else {
            fresh(&mut self.writes, &self.spots, self.size, sectors)
        };
        if self.written.len() == RECENT_WRITES {
            self.written.pop_front();
        }
        self.written.push_back(lba);
        Extent::new(lba, sectors)
    }

    fn read(&mut self, sectors: Sectors) -> Extent {
        let which = self.reads.unit();
        let extent = if which < GOES_ON
            && let Some(extent) = self.next_of_a_stream(sectors)
        {
            extent
        } else if (GOES_ON..GOES_ON + AGAIN).contains(&which)
            && let Some(extent) = self.read_again()
        {
            extent
        } else {
            let lba = fresh(&mut self.reads, &self.spots, self.size, sectors);
            if self.reads.unit() < BEGINS {
                if self.streams.len() == STREAMS_MAX {
                    self.streams.pop_front();
                }
                self.streams.push_back(Stream { next: lba + sectors, left: STREAM_READS });
            }
            Extent::new(lba, sectors)
        };
        self.read.push_back(extent);
        if self.read.len() > DEPTH_MAX {
            self.read.pop_front();
        }
        extent
    }

    /// The next read of one of the streams, if there are any and it does not end with the drive.
    fn next_of_a_stream(&mut self, sectors: Sectors) -> Option<Extent> {
        if self.streams.is_empty() {
            return None;
        }
        let which = self.reads.below(self.streams.len() as u64) as usize;
        let stream = &mut self.streams[which];
        let extent = Extent::new(stream.next, sectors);
        let fits = extent.fits(self.size);
        stream.next = stream.next + sectors;
        stream.left -= 1;
        if stream.left == 0 || !fits {
            self.streams.remove(which);
        }
        fits.then_some(extent)
    }

    /// Something that was read before, taken out of its place among the reads, unless too little was.
    fn read_again(&mut self) -> Option<Extent> {
        let depth = (DEPTH_MAX as f64).powf(self.reads.unit()) as usize;
        let which = self.read.len().checked_sub(depth)?;
        self.read.remove(which)
    }

    /// A place for `sectors` at `lba`, or as near to it as the drive's end allows.
    fn within(&self, lba: Lba, sectors: Sectors) -> Lba {
        let last = Lba::ZERO + (self.size - sectors);
        lba.min(last)
    }
}

/// A place of its own: in one of the spots, or anywhere.
fn fresh(rng: &mut Rng, spots: &[Lba], size: Sectors, sectors: Sectors) -> Lba {
    if rng.unit() < IN_SPOTS {
        let spot = spots[rng.below(SPOTS) as usize];
        let room = SPOT.sectors_floor() - sectors;
        spot + Sectors::new(rng.below(room.get() + 1))
    } else {
        let room = size - sectors;
        Lba::ZERO + Sectors::new(rng.below(room.get() + 1))
    }
}

/// A size that is uniform within 50 % of its mean, or as far as one sector is below it, to both sides. It
/// is rounded up or down at random, so that the mean over many is `mean`.
fn spread(rng: &mut Rng, mean: Bytes) -> Sectors {
    let sector = Sectors::new(1).bytes().get() as f64;
    let mean = mean.get() as f64 / sector;
    assert!(mean >= 1.0, "the mean size is at least a sector");
    let low = (mean / 2.0).max(1.0);
    let exact = low + (mean - low) * 2.0 * rng.unit();
    Sectors::new((exact + rng.unit()).floor() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_their_mean_in_whole_sectors() {
        let mut rng = Streams::new(3).stream("sizes");
        for mean in [4_100, 7_300, 8_192, 8_250, 8_400, 12_288, 16_384, 21_500] {
            let count = 20_000;
            let mut total = 0;
            for _ in 0..count {
                let size = spread(&mut rng, Bytes::new(mean));
                assert!(size >= Sectors::new(1), "{mean}");
                assert!(size.bytes().get() <= mean * 3 / 2 + 4_096, "{mean}: {size:?}");
                total += size.bytes().get();
            }
            let ratio = total as f64 / count as f64 / mean as f64;
            assert!((ratio - 1.0).abs() < 0.015, "{mean}: {ratio}");
        }
    }
}
