//! A request that changes sectors, as commands to be run one after the other.
//!
//! A write that ends inside a sector first fetches the sector, puts the new bytes in, and writes it
//! back; the caller that runs the change holds its sectors locked meanwhile, so that of two such
//! writes to one sector neither overwrites the bytes of the other.
//!
//! ```text
//!   WRITE         sectors:  [ kept|new ][ new ][ new|kept ]    fetch, fetch, write
//!   WRITE_ZEROES  sectors:  [ kept|0   ][  0  ][   0|kept ]    fetch, write, zeroes, fetch, write
//!   TRIM          sectors:  [          ][trim ][          ]    trim, flush if FUA
//! ```
//!
//! - P1. A change has at most one command in the service at a time. Long zeroings and trims come as
//!   [`turns`](super::turns) cuts them.
//! - P2. Bytes outside the request are never changed.

use std::collections::VecDeque;
use std::ops::Range;

use levelhead_block::{Buf, Command, Durability, Effort, Reply, Request};
use levelhead_units::{Extent, Lba, SECTOR_SIZE, Sectors};

use super::failure::{Failure, check_outcome};

const SECTOR: u64 = SECTOR_SIZE as u64;

/// A request that changes sectors, as commands to be run one after the other.
#[derive(Debug)]
pub(super) struct Change {
    extent: Extent,
    steps: VecDeque<Step>,
    /// The edge whose sector was asked for last.
    fetching: Option<Edge>,
    /// What was asked for last.
    asked: Command,
}

#[derive(Debug)]
enum Step {
    /// Write `buf` to `extent` once every edge has been filled in.
    Write { extent: Extent, buf: Buf, edges: Vec<Edge>, durability: Durability },
    /// A command without bytes.
    Bare(Command),
}

/// A sector that is not written as a whole.
#[derive(Debug)]
struct Edge {
    /// Its place in the buffer.
    idx: usize,
    /// The bytes of it that are new.
    new: Range<usize>,
}

/// How a change goes on.
#[derive(Debug)]
pub(super) enum Next {
    /// Run this, then call [`Change::next`] with the reply.
    Submit(Request),
    /// Run this; it was the last if it succeeds.
    SubmitLast(Request),
    /// It has ended.
    Finished(Result<(), Failure>),
}

impl Change {
    /// `buf` holds the sectors that `bytes` touch, the new bytes in their places.
    pub(super) fn write(bytes: Range<u64>, buf: Buf, durability: Durability) -> Self {
        let extent = covering(bytes.clone());
        assert_eq!(buf.sectors(), extent.sectors);
        Self::new(extent, [write_step(bytes, buf, durability)])
    }

    pub(super) fn write_zeroes(bytes: Range<u64>, durability: Durability) -> Self {
        let (touched, whole) = (covering(bytes.clone()), covered(bytes.clone()));
        let zeroes = |bytes: Range<u64>| {
            let buf = Buf::zeroed(covering(bytes.clone()).sectors);
            write_step(bytes, buf, durability)
        };
        if whole.sectors == Sectors::ZERO {
            // It touches at most two sectors.
            return Self::new(touched, [zeroes(bytes)]);
        }
        let middle = whole.lba.get() * SECTOR..whole.end().get() * SECTOR;
        let head = (bytes.start < middle.start).then(|| zeroes(bytes.start..middle.start));
        let tail = (middle.end < bytes.end).then(|| zeroes(middle.end..bytes.end));
        let middle = Step::Bare(Command::WriteZeroes { extent: whole, durability });
        Self::new(touched, head.into_iter().chain([middle]).chain(tail))
    }

    pub(super) fn trim(bytes: Range<u64>, durability: Durability) -> Self {
        let extent = covered(bytes);
        let is_some = extent.sectors > Sectors::ZERO;
        let trim = is_some.then_some(Step::Bare(Command::Trim { extent }));
        let flush = match durability {
            Durability::Durable if is_some => Some(Step::Bare(Command::Flush)),
            Durability::Durable | Durability::Cached => None,
        };
        Self::new(extent, trim.into_iter().chain(flush))
    }

    fn new(extent: Extent, steps: impl IntoIterator<Item = Step>) -> Self {
        let steps = steps.into_iter().collect();
        Self { extent, steps, fetching: None, asked: Command::Flush }
    }

    /// The sectors it changes, perhaps none.
    pub(super) fn extent(&self) -> Extent {
        self.extent
    }

    /// Bytes it holds in memory.
    pub(super) fn bytes_held(&self) -> usize {
        let held = |step: &Step| match step {
            Step::Write { buf, .. } => buf.as_slice().len(),
            Step::Bare(_) => 0,
        };
        self.steps.iter().map(held).sum()
    }

    /// What to do first, or after the reply to the last command.
    pub(super) fn next(&mut self, last: Option<Reply>) -> Next {
        if let Some(Reply { outcome, data, .. }) = last {
            if let Err(failure) = check_outcome(&outcome, &self.asked) {
                return Next::Finished(Err(failure));
            }
            if let Some(edge) = self.fetching.take() {
                self.fill_in(&edge, &data.into_buf());
            }
        }
        self.fetching = match self.steps.front_mut() {
            Some(Step::Write { edges, .. }) => edges.pop(),
            Some(Step::Bare(_)) | None => None,
        };
        if let Some(edge) = &self.fetching {
            let request = self.fetch(edge);
            return self.submit(request);
        }
        match self.steps.pop_front() {
            Some(Step::Write { extent, buf, durability, .. }) => {
                self.submit(Request::write(extent, durability, buf))
            }
            Some(Step::Bare(command)) => self.submit(Request::bare(command)),
            None => Next::Finished(Ok(())),
        }
    }

    fn submit(&mut self, request: Request) -> Next {
        self.asked = request.command;
        if self.steps.is_empty() { Next::SubmitLast(request) } else { Next::Submit(request) }
    }

    fn fetch(&self, edge: &Edge) -> Request {
        let Some(Step::Write { extent, .. }) = self.steps.front() else {
            panic!("only writes have edges")
        };
        let lba = extent.lba + Sectors::new(edge.idx as u64);
        Request::read(Extent::new(lba, Sectors::new(1)), Effort::Full)
    }

    /// Keeps what the sector holds outside the edge's new bytes.
    fn fill_in(&mut self, edge: &Edge, sector: &Buf) {
        let Some(Step::Write { buf, .. }) = self.steps.front_mut() else {
            panic!("only writes have edges")
        };
        let (old, merged) = (sector.as_slice(), buf.part_mut(edge.idx, 1));
        for kept in [0..edge.new.start, edge.new.end..SECTOR_SIZE] {
            merged[kept.clone()].copy_from_slice(&old[kept]);
        }
    }
}

/// The write of `bytes`, in their places in `buf`.
fn write_step(bytes: Range<u64>, buf: Buf, durability: Durability) -> Step {
    let extent = covering(bytes.clone());
    let last = extent.sectors.as_usize() - 1;
    let start = (bytes.start % SECTOR) as usize;
    // The last byte's place and one more, so that a write up to a sector's end gives 4096.
    let end = ((bytes.end - 1) % SECTOR) as usize + 1;
    let edges = match last {
        0 => vec![Edge { idx: 0, new: start..end }],
        _ => vec![Edge { idx: 0, new: start..SECTOR_SIZE }, Edge { idx: last, new: 0..end }],
    };
    let edges = edges.into_iter().filter(|edge| edge.new.len() < SECTOR_SIZE).collect();
    Step::Write { extent, buf, edges, durability }
}

/// The sectors that `bytes` touch.
pub(super) fn covering(bytes: Range<u64>) -> Extent {
    let first = bytes.start / SECTOR;
    Extent::new(Lba::new(first), Sectors::new(bytes.end.div_ceil(SECTOR) - first))
}

/// The sectors that `bytes` cover, perhaps none.
fn covered(bytes: Range<u64>) -> Extent {
    let first = bytes.start.div_ceil(SECTOR);
    let count = (bytes.end / SECTOR).saturating_sub(first);
    Extent::new(Lba::new(first), Sectors::new(count))
}

#[cfg(test)]
mod tests {
    use levelhead_block::{BlockDevice, Memory, Outcome, SectorSet};
    use levelhead_stats::Streams;

    use super::*;
    use crate::codec::{Errno, Payload};

    const SIZE: Sectors = Sectors::new(16);
    const CACHED: Durability = Durability::Cached;

    fn write(bytes: Range<u64>, byte: u8) -> Change {
        let content = vec![byte; (bytes.end - bytes.start) as usize];
        let payload = Payload::copy_of(bytes.start, &content);
        Change::write(bytes, payload.into_buf(), CACHED)
    }

    /// Runs a change; how many commands that took.
    fn run(mut change: Change, device: &mut Memory) -> usize {
        let (mut last, mut count) = (None, 0);
        loop {
            match change.next(last.take()) {
                Next::Submit(request) | Next::SubmitLast(request) => {
                    last = device.run(vec![request]).pop();
                    count += 1;
                }
                Next::Finished(result) => {
                    assert_eq!(result, Ok(()));
                    return count;
                }
            }
        }
    }

    #[test]
    fn writes_and_zeroes_of_any_alignment_change_their_bytes_and_no_others() {
        let everything = Extent::new(Lba::ZERO, SIZE);
        for seed in 0..32 {
            let mut rng = Streams::new(seed).stream("change");
            let mut device = Memory::new(SIZE);
            rng.fill(device.bytes_mut(everything));
            for _ in 0..64 {
                let edges = [0, 1, 511, 512, 2048, 4095];
                let mut place = || {
                    let edge = edges[rng.below(edges.len() as u64) as usize];
                    rng.below(SIZE.get()) * SECTOR + edge
                };
                let (one, two) = (place(), place());
                let bytes = one.min(two)..one.max(two) + 1;
                let byte = rng.below(256) as u8;
                let mut expected = device.bytes(everything).to_vec();
                expected[bytes.start as usize..bytes.end as usize].fill(byte);
                let change = match byte {
                    0..128 => write(bytes.clone(), byte),
                    128.. => {
                        expected[bytes.start as usize..bytes.end as usize].fill(0);
                        Change::write_zeroes(bytes.clone(), CACHED)
                    }
                };
                run(change, &mut device);
                assert!(device.bytes(everything) == expected, "seed {seed}: {bytes:?}");
            }
        }
    }

    #[test]
    fn whole_sectors_take_one_command_and_others_fetch_what_they_keep() {
        let check = |change: Change, expected: usize| {
            let bytes = change.extent();
            assert_eq!(run(change, &mut Memory::new(SIZE)), expected, "{bytes:?}");
        };
        check(write(4096..12_288, 1), 1);
        check(write(0..512, 1), 2);
        check(write(512..1024, 1), 2);
        check(write(512..4096, 1), 2);
        check(write(512..4608, 1), 3);
        check(Change::write_zeroes(4096..12_288, CACHED), 1);
        check(Change::write_zeroes(4095..12_289, CACHED), 5);
        check(Change::write_zeroes(4095..4097, CACHED), 3);
        check(Change::trim(1..8192, CACHED), 1);
        check(Change::trim(1..4097, CACHED), 0);
        check(Change::trim(1..8192, Durability::Durable), 2);
        check(Change::trim(1..4097, Durability::Durable), 0);
    }

    #[test]
    fn damaged_sector_fails_the_write_that_needs_it_and_names_the_place() {
        let mut change = write(4096..8193, 1);
        let Next::Submit(_fetch) = change.next(None) else { panic!() };
        let damaged = SectorSet::first(Sectors::new(1));
        let outcome = Outcome::Done { unknown: SectorSet::EMPTY, damaged };
        let Next::Finished(Err(failure)) = change.next(Some(Reply::bare(outcome))) else {
            panic!("the write went on without what it keeps")
        };
        assert_eq!((failure.error, failure.offset), (Errno::Io, Some(8192)));
    }
}
