//! The writes that wait for their verification.
//!
//! A write is one *part* of blocks to begin with. A later write that overlaps it cuts away what it overwrites and
//! leaves the rest; of what is left each part is verified on its own.
//!
//! ```text
//!            .--- overlapped by a later write: cut, superseded once nothing is left
//!   part ---+--- compared, equal: verified
//!    ^       +--- compared, unequal: written again, and compared again
//!    |       '--- its bytes made room: its checksums wait, or it is given up
//!    '-- a write has ended
//! ```
//!
//! # Invariants
//!
//! - UV1. No two parts have a block in common.
//! - UV2. Every write that was put in is counted once in the end: as verified if all that was left of it was, else
//!   as given up if any part was, else as superseded.
//! - UV3. The checksums take no more than their memory.
//! - UV4. A part is next to be read back only if none of it waits for the medium. Those that do are not looked at: with a
//!   large memory, thousands wait while the disk writes one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use levelhead_block::ZeroTail;
use levelhead_units::Instant;

use super::{Dirty, Write};
use crate::geometry::Geometry;
use crate::health::VerifyCounters;

/// What a checksum takes, of a sector of 4096 bytes.
const SUM_BYTES: u64 = 16;

/// What a part takes besides in the memory for checksums: where it lies and whose it is.
const PART_BYTES: u64 = 32;

/// How often a write is written again before it is given up.
pub(crate) const REPAIRS_MAX: u32 = 3;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Unverified {
    /// By the first block.
    parts: BTreeMap<u64, Part>,
    /// The cylinder and the first block of each part that is on the medium.
    places: BTreeSet<(u32, u64)>,
    writes: BTreeMap<u64, Waiting>,
    serial_last: u64,
    sums_max: u64,
    sums: u64,
    /// Blocks in all parts, and those of which the bytes are kept.
    blocks: u64,
    kept: u64,
    block_size: u64,
    pub(crate) counters: VerifyCounters,
}

/// A part of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) blocks: Range<u64>,
    /// The write it is a part of, by its number here.
    pub(crate) write: u64,
    pub(crate) form: Form,
    /// How often it has been written again.
    pub(crate) repairs: u32,
    /// Whether it is to be written again before it is compared.
    pub(crate) is_wrong: bool,
    /// Whether some of it waits for the medium.
    is_dirty: bool,
    cylinder: u32,
}

/// What is kept of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Bytes,
    Sums,
}

/// A write of which parts wait.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    ended: Instant,
    parts: u32,
    /// When the last part that was verified was.
    verified: Option<Instant>,
    was_given_up: bool,
    /// The name of its command, which may name another one later.
    id: u64,
    /// On whose behalf it was made: the coins of a repair depend on it.
    origin: u64,
    /// What is known of the ends of its sectors: a repair has the same.
    zero_tail: ZeroTail,
}

/// A part of which the bytes are kept no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BytesGone {
    /// The name of the command that wrote it.
    pub(crate) id: u64,
    pub(crate) blocks: Range<u64>,
}

/// What becomes of a part that does not wait any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Verified(Instant),
    GivenUp,
    Superseded,
}

impl Unverified {
    /// Nothing waits; checksums may take `sums_max` bytes.
    pub(crate) fn new(sums_max: u64, block_size: u64) -> Self {
        Self {
            parts: BTreeMap::new(),
            places: BTreeSet::new(),
            writes: BTreeMap::new(),
            serial_last: 0,
            sums_max,
            sums: 0,
            blocks: 0,
            kept: 0,
            block_size,
            counters: VerifyCounters::default(),
        }
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The part that begins at `start`.
    pub(crate) fn part(&self, start: u64) -> Option<&Part> {
        self.parts.get(&start)
    }

    /// The name of the command that wrote a part.
    pub(crate) fn id(&self, part: &Part) -> u64 {
        self.writes.get(&part.write).map_or(0, |waiting| waiting.id)
    }

    /// On whose behalf a part was written.
    pub(crate) fn origin(&self, part: &Part) -> u64 {
        self.writes.get(&part.write).map_or(0, |waiting| waiting.origin)
    }

    /// What is known of the ends of a part's sectors.
    pub(crate) fn zero_tail(&self, part: &Part) -> ZeroTail {
        self.writes.get(&part.write).map_or(ZeroTail::None, |waiting| waiting.zero_tail)
    }

    /// The parts that have blocks in common with `blocks`.
    pub(crate) fn overlapping(&self, blocks: &Range<u64>) -> impl Iterator<Item = &Part> {
        let before = self.parts.range(..blocks.start).next_back();
        let before = before.filter(|(_, part)| part.blocks.end > blocks.start);
        let later = self.parts.range(blocks.start..blocks.end.max(blocks.start));
        before.into_iter().chain(later).map(|(_, part)| part)
    }

    /// The parts on the medium that are nearest to `cylinder`: first those at it or further in, then those further out.
    pub(crate) fn near(
        &self,
        cylinder: u32,
    ) -> (impl Iterator<Item = &Part>, impl Iterator<Item = &Part>) {
        let inwards = self.places.range((cylinder, 0)..);
        let outwards = self.places.range(..(cylinder, 0)).rev();
        (
            inwards.map(|&(_, start)| &self.parts[&start]),
            outwards.map(|&(_, start)| &self.parts[&start]),
        )
    }

    /// A write has ended and waits: its bytes are kept. What waits for the medium is in `dirty`. UV1 is the caller's:
    /// [`Unverified::supersede`] first.
    pub(crate) fn put(
        &mut self,
        geometry: &Geometry,
        dirty: Option<&Dirty>,
        write: Write,
        ended: Instant,
    ) {
        let Write { blocks, id, origin, zero_tail, .. } = write;
        let (verified, was_given_up) = (None, false);
        self.serial_last += 1;
        let write = self.serial_last;
        let waiting = Waiting { ended, parts: 1, verified, was_given_up, id, origin, zero_tail };
        self.writes.insert(write, waiting);
        self.counters.writes += 1;
        let cylinder = geometry.position(blocks.start).cylinder;
        let (form, is_dirty) = (Form::Bytes, is_dirty(dirty, &blocks));
        self.insert(Part { blocks, write, form, repairs: 0, is_wrong: false, is_dirty, cylinder });
    }

    /// The disk has written `blocks` back; what waits for the medium now is in `dirty`.
    pub(crate) fn reach_medium(&mut self, blocks: &Range<u64>, dirty: &Dirty) {
        let is_there = |part: &&Part| part.is_dirty && !is_dirty(Some(dirty), &part.blocks);
        let reached = self.overlapping(blocks).filter(is_there);
        let starts: Vec<u64> = reached.map(|part| part.blocks.start).collect();
        for start in starts {
            let part = self.parts.get_mut(&start).expect("a part that is there");
            part.is_dirty = false;
            self.places.insert((part.cylinder, start));
        }
    }

    /// A write of `blocks` begins: what waits of them is void. What waits for the medium is in `dirty`.
    pub(crate) fn supersede(
        &mut self,
        geometry: &Geometry,
        dirty: Option<&Dirty>,
        blocks: &Range<u64>,
    ) {
        let starts: Vec<u64> = self.overlapping(blocks).map(|part| part.blocks.start).collect();
        for start in starts {
            let part = self.remove(start);
            let parts = [
                part.blocks.start..blocks.start.min(part.blocks.end),
                blocks.end.max(part.blocks.start)..part.blocks.end,
            ];
            let mut is_second = false;
            for blocks in parts.into_iter().filter(|part| part.start < part.end) {
                let cylinder = geometry.position(blocks.start).cylinder;
                let fits = self.sums + self.sums_of(&blocks) <= self.sums_max;
                let Some(waiting) = self.writes.get_mut(&part.write) else { continue };
                if part.form == Form::Sums && !fits {
                    // UV3: two take more than one did.
                    waiting.was_given_up = true;
                    continue;
                }
                waiting.parts += 1;
                let was_wrong = part.is_wrong || part.repairs > 0;
                // Each part that was found wrong is mended, or not, on its own.
                self.counters.found += u64::from(was_wrong && is_second);
                is_second = true;
                let is_dirty = is_dirty(dirty, &blocks);
                self.insert(Part { blocks, is_dirty, cylinder, ..part.clone() });
            }
            self.end(part.write, End::Superseded);
        }
    }

    /// The bytes of the part that begins at `start` have made room. Its checksums wait in their stead if there is room for
    /// them; else it is given up.
    pub(crate) fn lose_bytes(&mut self, start: u64) -> Option<BytesGone> {
        let part = self.parts.get(&start).filter(|part| part.form == Form::Bytes)?;
        let fits = self.sums + self.sums_of(&part.blocks) <= self.sums_max;
        let part = self.remove(start);
        let gone = BytesGone { id: self.id(&part), blocks: part.blocks.clone() };
        if fits && !part.is_wrong {
            self.insert(Part { form: Form::Sums, ..part });
        } else {
            self.counters.unmended += u64::from(part.is_wrong);
            self.end(part.write, End::GivenUp);
        }
        Some(gone)
    }

    /// The part that begins at `start` waits no longer.
    pub(crate) fn finish(&mut self, start: u64, end: End) {
        if self.parts.contains_key(&start) {
            let part = self.remove(start);
            self.end(part.write, end);
        }
    }

    /// The part that begins at `start` is not what was written: it is to be written again.
    pub(crate) fn mark_wrong(&mut self, start: u64) {
        if let Some(part) = self.parts.get_mut(&start) {
            part.is_wrong = true;
        }
    }

    /// The part that begins at `start` has been written again.
    pub(crate) fn repaired(&mut self, start: u64) {
        if let Some(part) = self.parts.get_mut(&start) {
            part.is_wrong = false;
            part.repairs += 1;
        }
    }

    /// The power fails: nothing waits any longer. Names what did.
    pub(crate) fn forget_all(&mut self) -> Vec<BytesGone> {
        let all: Vec<Part> = std::mem::take(&mut self.parts).into_values().collect();
        self.places.clear();
        (self.sums, self.blocks, self.kept) = (0, 0, 0);
        let give_up = |part: Part| {
            let id = self.id(&part);
            self.end(part.write, End::GivenUp);
            BytesGone { id, blocks: part.blocks }
        };
        all.into_iter().map(give_up).collect()
    }

    /// A command is over, and what it took room from has been told: what waits now is what has to be kept.
    pub(crate) fn measure(&mut self) {
        let memory = self.kept * self.block_size + self.sums;
        let counters = &mut self.counters;
        counters.waiting = self.writes.len() as u64;
        counters.room_max = counters.room_max.max(self.blocks * self.block_size);
        counters.memory_max = counters.memory_max.max(memory);
    }

    fn insert(&mut self, part: Part) {
        let size = part.blocks.end - part.blocks.start;
        self.blocks += size;
        match part.form {
            Form::Bytes => self.kept += size,
            Form::Sums => self.sums += self.sums_of(&part.blocks),
        }
        if !part.is_dirty {
            self.places.insert((part.cylinder, part.blocks.start));
        }
        self.parts.insert(part.blocks.start, part);
    }

    fn remove(&mut self, start: u64) -> Part {
        let part = self.parts.remove(&start).expect("a part that is there");
        let size = part.blocks.end - part.blocks.start;
        self.blocks -= size;
        match part.form {
            Form::Bytes => self.kept -= size,
            Form::Sums => self.sums -= self.sums_of(&part.blocks),
        }
        self.places.remove(&(part.cylinder, start));
        part
    }

    fn sums_of(&self, blocks: &Range<u64>) -> u64 {
        let bytes = (blocks.end - blocks.start) * self.block_size;
        PART_BYTES + bytes.div_ceil(4096) * SUM_BYTES
    }

    /// A part of `write` waits no longer.
    fn end(&mut self, write: u64, end: End) {
        let Some(waiting) = self.writes.get_mut(&write) else { return };
        waiting.parts -= 1;
        if let End::Verified(at) = end {
            waiting.verified = Some(at);
        }
        waiting.was_given_up |= end == End::GivenUp;
        let done = *waiting;
        if done.parts > 0 {
            return;
        }
        self.writes.remove(&write);
        let counters = &mut self.counters;
        counters.waiting = self.writes.len() as u64;
        match (done.was_given_up, done.verified) {
            (true, _) => counters.unverified += 1,
            (false, Some(at)) => {
                counters.verified += 1;
                counters.response += at.saturating_since(done.ended);
            }
            (false, None) => counters.superseded += 1,
        }
    }
}

/// Whether some of `blocks` waits for the medium.
fn is_dirty(dirty: Option<&Dirty>, blocks: &Range<u64>) -> bool {
    dirty.is_some_and(|dirty| dirty.overlapping(blocks).is_some())
}
