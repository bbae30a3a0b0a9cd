//! What waits to be read back: for each drive its sectors, and what is known of their contents.
//!
//! A write is in one run until another one takes sectors out of its middle. The memory of a write's bytes is one buffer,
//! which counts as a whole until the last of its sectors leaves.
//!
//! Of the invariants of [`verify`](super), VF1, VF2 and VF5 are kept here.

use std::collections::BTreeMap;

use levelhead_block::{BufId, Place};
use levelhead_units::{DriveIdx, Extent, Lba, SECTOR_SIZE, Sectors};

use super::on_rings::{OnRings, RingRun, RingSector};
use super::runs::{DriveRuns, RUN_COST, Run, Stage, Turn};
use crate::shape::Cell;

/// The most memory of everything but bytes is an eighth of theirs, and 2 MiB at least: checksums of 280,000 sectors in writes of
/// 64.
pub(crate) const SUMS_ROOM: usize = 2 << 20;
const SUMS_SHARE: u64 = 8;

/// What a write takes in its map, whose nodes are half full at least; and the checksum of a sector.
const WRITE_COST: usize = 2 * size_of::<(u64, Write)>();
const SUM_COST: usize = size_of::<u32>();

/// Looks at this number of writes for one to give up that is not being mended.
const LOOKS_MAX: usize = 64;

/// How much may be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Sectors of writes' bytes.
    pub(crate) bytes: Sectors,
    /// Bytes of memory for all else.
    pub(crate) sums: usize,
}

impl Room {
    /// With this many sectors of writes' bytes.
    pub(crate) fn of(bytes: Sectors) -> Self {
        let share = usize::try_from(bytes.bytes().get() / SUMS_SHARE).unwrap_or(usize::MAX);
        Self { bytes, sums: share.max(SUMS_ROOM) }
    }
}

/// What has become of the writes so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) writes: u64,
    pub(crate) verified: u64,
    pub(crate) superseded: u64,
    pub(crate) unverified: u64,
    /// Those of which something was found that was not stored,
    pub(crate) found: u64,
    /// and of these the ones of which something was mended and nothing is left that could not be, read back to the end or
    /// superseded.
    pub(crate) mended: u64,
}

/// How sectors leave, from what says least of their write to what says most: the worst end of its sectors is the write's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum End {
    /// Another write went out to them.
    Superseded,
    /// They were read back, and are right.
    Checked,
    /// Nothing is known of them.
    GivenUp,
}

/// What a new record keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    Bytes,
    Sums,
}

/// A new record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Begun {
    pub(crate) write: u64,
    pub(crate) keeps: Keeps,
}

/// Sectors of one write, side by side on a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) write: u64,
    pub(crate) extent: Extent,
    /// The first of them in the write.
    pub(crate) offset: u32,
}

#[derive(Clone, Debug)]
struct Write {
    drive: DriveIdx,
    first: Lba,
    sectors: u32,
    /// Sectors that are still waited for.
    left: u32,
    end: End,
    flaw: FlawState,
    /// Its flaws that could not be mended, and were not since.
    not_mended: u32,
    proof: Proof,
}

/// What is known of a write's flaws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlawState {
    /// None was found.
    None,
    Found,
    /// Some of what was found is mended.
    Mended,
}

#[derive(Clone, Debug)]
enum Proof {
    Bytes(BufId),
    /// One for each sector, once they are computed; none where there are no bytes to compute them of.
    Sums(Vec<u32>),
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    room: Room,
    drives: Vec<DriveRuns>,
    /// By age.
    writes: BTreeMap<u64, Write>,
    /// Where rings of the journal have sectors of those that are kept without bytes, in their order.
    on_rings: BTreeMap<u64, OnRings>,
    next: u64,
    /// Sectors of bytes.
    kept: Sectors,
    /// Bytes of memory of all else.
    sums: usize,
    tally: Tally,
    /// Buffers that are not needed any more.
    freed: Vec<BufId>,
}

impl Records {
    pub(crate) fn new(drives: usize, room: Room) -> Self {
        Self {
            room,
            drives: (0..drives).map(|_| DriveRuns::default()).collect(),
            writes: BTreeMap::new(),
            on_rings: BTreeMap::new(),
            next: 0,
            kept: Sectors::ZERO,
            sums: 0,
            tally: Tally::default(),
            freed: Vec::new(),
        }
    }

    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    /// How many writes wait.
    pub(crate) fn waiting(&self) -> usize {
        self.writes.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Sectors of bytes that are kept.
    pub(crate) fn kept(&self) -> Sectors {
        self.kept
    }

    /// Bytes of memory that all of it takes.
    pub(crate) fn memory(&self) -> u64 {
        self.kept.bytes().get() + self.sums as u64
    }

    /// Whether three quarters of some room are taken.
    pub(crate) fn is_pressed(&self) -> bool {
        let is_full = |used: u64, room: u64| used > 0 && used * 4 >= room * 3;
        // Without bytes all is found that would be, so that their room alone is no reason to keep a drive from clients.
        is_full(self.sums as u64, self.room.sums as u64)
    }

    /// Buffers that are not needed any more.
    pub(crate) fn take_freed(&mut self) -> Vec<BufId> {
        std::mem::take(&mut self.freed)
    }

    /// A sub-write has ended well (VF1). Nothing where there is no room: it stays unverified. One that is not eager makes
    /// none give way.
    pub(crate) fn begin(
        &mut self,
        drive: DriveIdx,
        extent: Extent,
        is_eager: bool,
    ) -> Option<Begun> {
        let over = self.drives[drive.as_usize()].over(extent);
        assert!(over.is_empty(), "VF1: {extent:?} of drive {drive} waits already");
        self.tally.writes += 1;
        let sectors = extent.sectors;
        let keeps = match self.kept + sectors <= self.room.bytes {
            true => Keeps::Bytes,
            false => Keeps::Sums,
        };
        let sums = match keeps {
            Keeps::Bytes => 0,
            Keeps::Sums => SUM_COST * sectors.as_usize(),
        };
        let cost = WRITE_COST + RUN_COST + sums;
        while self.sums + cost > self.room.sums {
            if cost > self.room.sums || !is_eager || !self.give_up_oldest() {
                self.tally.unverified += 1;
                return None;
            }
        }
        self.sums += cost;
        if keeps == Keeps::Bytes {
            self.kept += sectors;
        }
        self.next += 1;
        let write = self.next;
        let sectors = u32::try_from(sectors.get()).expect("a command has less than 2^32 sectors");
        let proof = Proof::Sums(Vec::new());
        let (first, left, end) = (extent.lba, sectors, End::Superseded);
        let (flaw, not_mended) = (FlawState::None, 0);
        self.writes
            .insert(write, Write { drive, first, sectors, left, end, flaw, not_mended, proof });
        let run = Run { write, offset: 0, sectors, mends: 0, stage: Stage::Waiting };
        self.drives[drive.as_usize()].insert(extent.lba, run);
        Some(Begun { write, keeps })
    }

    /// The bytes of a new record are in this buffer.
    pub(crate) fn set_bytes(&mut self, write: u64, buf: BufId) {
        let write = self.writes.get_mut(&write).expect("it has just begun");
        write.proof = Proof::Bytes(buf);
    }

    /// The checksums of its sectors, which were computed before anything else happened.
    pub(crate) fn set_sums(&mut self, write: u64, sums: &[u32]) {
        let Some(write) = self.writes.get_mut(&write) else { return };
        assert_eq!(sums.len(), write.sectors as usize, "one for each sector");
        write.proof = Proof::Sums(sums.to_vec());
    }

    /// A new record of this extent came from the journal: where rings have its sectors, in their order. It is kept where no
    /// bytes are, and only as long as there is room.
    pub(crate) fn set_on_rings(
        &mut self,
        drive: DriveIdx,
        extent: Extent,
        sectors: impl Iterator<Item = Option<RingSector>>,
    ) {
        let Some((first, run)) = self.drives[drive.as_usize()].at(extent.lba) else { return };
        let name = run.write;
        let is_new = (first, u64::from(run.sectors)) == (extent.lba, extent.sectors.get());
        let has_bytes = matches!(self.writes[&name].proof, Proof::Bytes(_));
        if !is_new || has_bytes || self.on_rings.contains_key(&name) {
            return;
        }
        let known = OnRings::new(sectors);
        if !known.is_empty() && self.sums + known.cost() <= self.room.sums {
            self.sums += known.cost();
            self.on_rings.insert(name, known);
        }
    }

    /// Where rings have the sectors of a part, if they have had all of them.
    pub(crate) fn on_rings(&self, part: Part) -> Option<Vec<RingRun>> {
        self.on_rings.get(&part.write)?.runs(part.offset, part.extent.sectors)
    }

    /// Where the bytes of a sector are that waits, if they are kept.
    pub(crate) fn find(&self, cell: Cell) -> Option<Place> {
        let (first, run) = self.drives[cell.drive.as_usize()].at(cell.lba)?;
        let Proof::Bytes(buf) = self.writes[&run.write].proof else { return None };
        let sector = run.offset + (cell.lba - first).get() as u32;
        Some(Place { buf, sector })
    }

    /// Whether a sector waits.
    pub(crate) fn waits(&self, cell: Cell) -> bool {
        !self.is_empty() && self.drives[cell.drive.as_usize()].at(cell.lba).is_some()
    }

    /// The checksum of a sector, where that is what is kept.
    pub(crate) fn sum(&self, cell: Cell) -> Option<u32> {
        let (first, run) = self.drives[cell.drive.as_usize()].at(cell.lba)?;
        let Proof::Sums(sums) = &self.writes[&run.write].proof else { return None };
        sums.get(run.offset as usize + (cell.lba - first).as_usize()).copied()
    }

    /// Whether the write that a sector waits for is kept without its bytes.
    pub(crate) fn is_without_bytes(&self, cell: Cell) -> bool {
        let run = self.drives[cell.drive.as_usize()].at(cell.lba);
        run.is_some_and(|(_, run)| matches!(self.writes[&run.write].proof, Proof::Sums(_)))
    }

    /// Whether some sector of an extent has a checksum only.
    pub(crate) fn has_sums(&self, drive: DriveIdx, extent: Extent) -> bool {
        if self.is_empty() {
            return false;
        }
        let runs = &self.drives[drive.as_usize()];
        let has_sums = |lba: &Lba| matches!(&self.writes[&runs.map[lba].write].proof, Proof::Sums(sums) if !sums.is_empty());
        runs.over(extent).iter().any(has_sums)
    }

    /// The buffer with the bytes of a write, if they are kept.
    pub(crate) fn bytes(&self, write: u64) -> Option<BufId> {
        match self.writes.get(&write)?.proof {
            Proof::Bytes(buf) => Some(buf),
            Proof::Sums(_) => None,
        }
    }

    /// Another write goes out to these sectors (VF2).
    pub(crate) fn supersede(&mut self, drive: DriveIdx, extent: Extent) {
        self.cut(drive, extent, None, End::Superseded);
    }

    /// Sectors of a write are not what they should be; returns whether that is the first that is found of it.
    pub(crate) fn note_flaw(&mut self, write: u64) -> bool {
        let write = self.writes.get_mut(&write).expect("it has a run");
        let is_first = write.flaw == FlawState::None;
        if is_first {
            write.flaw = FlawState::Found;
            self.tally.found += 1;
        }
        is_first
    }

    /// A flaw of a write could not be mended: the write does not count as mended while that is so, also if the flaw is written
    /// over then.
    pub(crate) fn note_not_mended(&mut self, write: u64) {
        if let Some(write) = self.writes.get_mut(&write) {
            write.not_mended += 1;
        }
    }

    /// Such a flaw is to be mended once more.
    pub(crate) fn note_tried_again(&mut self, write: u64) {
        let write = self.writes.get_mut(&write).expect("it has a run");
        assert!(write.not_mended > 0, "it was noted");
        write.not_mended -= 1;
    }

    /// These sectors of a write, or what it still has of them, were read back and are right.
    pub(crate) fn note_checked(&mut self, drive: DriveIdx, part: Part) {
        if self.mends(drive, part) > 0 {
            self.writes.get_mut(&part.write).expect("it has a run").flaw = FlawState::Mended;
        }
        self.cut(drive, part.extent, Some(part.write), End::Checked);
    }

    /// Nothing is to be known of these sectors any more.
    pub(crate) fn give_up(&mut self, drive: DriveIdx, extent: Extent) {
        self.cut(drive, extent, None, End::GivenUp);
    }

    /// What of a drive waits.
    pub(crate) fn extents(&self, drive: DriveIdx) -> impl Iterator<Item = Extent> {
        let runs = self.drives[drive.as_usize()].map.iter();
        runs.map(|(&lba, run)| Extent::new(lba, Sectors::new(run.sectors.into())))
    }

    /// Nothing of a drive is waited for any more (VF7).
    pub(crate) fn forget(&mut self, drive: DriveIdx) {
        let all: Vec<Extent> = self.extents(drive).collect();
        for extent in all {
            self.cut(drive, extent, None, End::GivenUp);
        }
    }

    /// Nothing is waited for any more.
    pub(crate) fn forget_all(&mut self) {
        (0..self.drives.len()).for_each(|at| self.forget(DriveIdx::from_usize(at)));
    }

    fn give_up_oldest(&mut self) -> bool {
        let mut looked_at = self.writes.iter().take(LOOKS_MAX);
        let Some((&name, _)) = looked_at.find(|(_, write)| self.is_free(write)) else {
            return false;
        };
        self.give_up_write(name);
        true
    }

    /// Gives up a write although all that were looked at are to be mended, or are beyond that: one that is not, if there is any.
    fn give_up_any(&mut self) -> bool {
        let free = self.writes.iter().find(|(_, write)| self.is_free(write));
        let Some((&name, _)) = free.or_else(|| self.writes.first_key_value()) else { return false };
        self.give_up_write(name);
        true
    }

    /// Whether nothing of a write is to be mended.
    fn is_free(&self, write: &Write) -> bool {
        let runs = &self.drives[write.drive.as_usize()];
        let extent = Extent::new(write.first, Sectors::new(write.sectors.into()));
        runs.over(extent).iter().all(|lba| runs.map[lba].stage != Stage::Flawed)
    }

    fn give_up_write(&mut self, name: u64) {
        let Write { drive, first, sectors, .. } = self.writes[&name];
        let extent = Extent::new(first, Sectors::new(sectors.into()));
        self.cut(drive, extent, Some(name), End::GivenUp);
    }

    /// Takes sectors out: all that wait there, or those of one write.
    fn cut(&mut self, drive: DriveIdx, extent: Extent, of: Option<u64>, end: End) {
        if self.is_empty() {
            return;
        }
        let at = drive.as_usize();
        for first in self.drives[at].over(extent) {
            let run = self.drives[at].map[&first];
            if of.is_some_and(|write| write != run.write) {
                continue;
            }
            self.drives[at].remove(first);
            self.sums -= RUN_COST;
            let past = first + Sectors::new(run.sectors.into());
            let (from, to) = (first.max(extent.lba), past.min(extent.end()));
            for (lba, until) in [(first, from), (to, past)] {
                if lba < until {
                    let sectors = (until - lba).get() as u32;
                    let offset = run.offset + (lba - first).get() as u32;
                    self.drives[at].insert(lba, Run { offset, sectors, ..run });
                    self.sums += RUN_COST;
                }
            }
            self.leave(run.write, (to - from).get() as u32, end);
        }
        while self.sums > self.room.sums && (self.give_up_oldest() || self.give_up_any()) {}
        assert!(self.sums <= self.room.sums, "VF5: {} bytes", self.sums);
        assert!(self.kept <= self.room.bytes, "VF5: {:?}", self.kept);
    }

    fn leave(&mut self, name: u64, sectors: u32, end: End) {
        let write = self.writes.get_mut(&name).expect("it has a run");
        write.left -= sectors;
        write.end = write.end.max(end);
        if write.left > 0 {
            return;
        }
        let write = self.writes.remove(&name).expect("it was there");
        match write.end {
            End::Superseded => self.tally.superseded += 1,
            End::Checked => self.tally.verified += 1,
            End::GivenUp => self.tally.unverified += 1,
        }
        let is_mended = write.flaw == FlawState::Mended && write.not_mended == 0;
        if is_mended && write.end != End::GivenUp {
            self.tally.mended += 1;
        }
        self.sums -= WRITE_COST;
        self.sums -= self.on_rings.remove(&name).map_or(0, |known| known.cost());
        match write.proof {
            Proof::Bytes(buf) => {
                self.kept = self.kept - Sectors::new(write.sectors.into());
                self.freed.push(buf);
            }
            Proof::Sums(_) => self.sums -= SUM_COST * write.sectors as usize,
        }
    }

    /// Whether something of a drive may be read, or only what is hurried.
    pub(crate) fn is_ready(&self, drive: DriveIdx) -> bool {
        !self.drives[drive.as_usize()].ready.is_empty()
    }

    /// The oldest write of a drive of which something may be read; writes are numbered by age.
    pub(crate) fn oldest_ready(&self, drive: DriveIdx) -> Option<u64> {
        let ready = &self.drives[drive.as_usize()].ready;
        let waiting = Turn { is_waiting: true, write: 0, first: Lba::ZERO };
        let oldest = [ready.first(), ready.range(waiting..).next()];
        oldest.into_iter().flatten().map(|turn| turn.write).min()
    }

    /// Whether something of a drive is hurried.
    pub(crate) fn is_hurried(&self, drive: DriveIdx) -> bool {
        self.first_hurried(drive).is_some()
    }

    fn first_hurried(&self, drive: DriveIdx) -> Option<Lba> {
        let first = self.drives[drive.as_usize()].ready.first()?;
        (!first.is_waiting).then_some(first.first)
    }

    /// What is to be read next of a drive: the oldest hurried run, or the next one from here on, and its neighbours as long as they
    /// may be read and `joins` allows it, up to `most` sectors. It is being read from then on.
    pub(crate) fn next(
        &mut self,
        drive: DriveIdx,
        from: Lba,
        most: Sectors,
        joins: impl Fn(Lba) -> bool,
    ) -> Vec<Part> {
        let hurried = self.first_hurried(drive);
        let runs = &mut self.drives[drive.as_usize()];
        let mut in_turn = runs.map.range(from..).chain(runs.map.range(..from));
        let ready = in_turn.find(|(_, run)| run.is_ready()).map(|(&lba, _)| lba);
        let Some(first) = hurried.or(ready) else { return Vec::new() };
        let (mut parts, mut end) = (Vec::new(), first);
        for (&lba, run) in runs.map.range_mut(first..) {
            let sectors = Sectors::new(run.sectors.into());
            let is_first = parts.is_empty();
            let fits = is_first || lba + sectors <= first + most;
            if lba != end || !run.is_ready() || !fits || !(is_first || joins(lba)) {
                break;
            }
            if let Some(turn) = Turn::of(lba, run) {
                runs.ready.remove(&turn);
            }
            run.stage = Stage::Read;
            end = lba + sectors;
            let extent = Extent::new(lba, sectors);
            parts.push(Part { write: run.write, extent, offset: run.offset });
        }
        parts
    }

    /// What a write still has of a part.
    pub(crate) fn left_of(&self, drive: DriveIdx, part: Part) -> Vec<Part> {
        let runs = &self.drives[drive.as_usize()];
        let mut left: Vec<Part> = Vec::new();
        for first in runs.over(part.extent).into_iter().rev() {
            let run = runs.map[&first];
            let past = first + Sectors::new(run.sectors.into());
            let (from, to) = (first.max(part.extent.lba), past.min(part.extent.end()));
            if run.write == part.write {
                let offset = run.offset + (from - first).get() as u32;
                left.push(Part { write: part.write, extent: Extent::new(from, to - from), offset });
            }
        }
        left
    }

    /// What a write still has of a part is at this stage from now on.
    pub(crate) fn set_stage(&mut self, drive: DriveIdx, part: Part, stage: Stage) {
        let at = drive.as_usize();
        for first in self.drives[at].over(part.extent) {
            if self.drives[at].map[&first].write == part.write {
                let run = self.drives[at].remove(first);
                self.drives[at].insert(first, Run { stage, ..run });
            }
        }
    }

    /// A sector should be read soon, because it seems to be wrong.
    pub(crate) fn hurry(&mut self, cell: Cell) {
        let Some((lba, run)) = self.drives[cell.drive.as_usize()].at(cell.lba) else { return };
        let (run, sectors) = (*run, Sectors::new(run.sectors.into()));
        if run.stage == Stage::Waiting {
            let extent = Extent::new(lba, sectors);
            let part = Part { write: run.write, extent, offset: run.offset };
            self.set_stage(cell.drive, part, Stage::Hurried);
        }
    }

    /// How often the run that begins with a part was mended.
    pub(crate) fn mends(&self, drive: DriveIdx, part: Part) -> u8 {
        let run = self.drives[drive.as_usize()].at(part.extent.lba);
        run.filter(|(_, run)| run.write == part.write).map_or(0, |(_, run)| run.mends)
    }

    /// What a write still has of a part was mended once more, and is to be read again.
    pub(crate) fn note_mended(&mut self, drive: DriveIdx, part: Part) {
        let at = drive.as_usize();
        for first in self.drives[at].over(part.extent) {
            if self.drives[at].map[&first].write == part.write {
                let run = self.drives[at].remove(first);
                let mends = run.mends.saturating_add(1);
                self.drives[at].insert(first, Run { mends, stage: Stage::Hurried, ..run });
            }
        }
    }
}

const _: () = assert!(SECTOR_SIZE > WRITE_COST + RUN_COST, "the room of bytes is the larger part");

#[cfg(test)]
mod tests;
