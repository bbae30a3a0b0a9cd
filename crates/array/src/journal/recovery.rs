//! What an array does first after it was cut off: everything in the journal is brought to its place, or counts as
//! never begun.
//!
//! ```text
//!   read all rings --> decide --> put what was computed onto its ring --> mark what was decided
//!                         ^                                                        |
//!                         |  a drive is lost, a sector is not given                v
//!                         +-------------------------------------- write everything in its place
//!                                                                                  |
//!                        serve <-- mark that everything is over <-- flush <--------+
//! ```
//!
//! # Invariants
//!
//! - X1. Nothing is written before the drives that are not there are recorded as missing.
//! - X2. Nothing is written in place before all that was decided is on the rings for good. Another crash then finds
//!   the same, whichever drive it takes away.
//! - X3. Nothing is served before every ring that is there says for good that everything is over.
//! - X4. It ends, whatever sectors drives do not give: each time it begins anew because of one, that is a sector more
//!   which counts as unreadable. A sector of a ring counts as readable again when it is written; one that then is not
//!   given is not written any more. Records say of their ring that it had such sectors: what it lacks then proves nothing.
//! - X5. What is computed is written only if it has the checksum that its transaction's records name.
//! - X6. What is found in the journal is lacking on every drive of which it is known what it lacks. That is committed before it
//!   ends.
//! - X7. What it brings to its place is off the list of damaged sectors for good before it ends: until then redundancy may count it
//!   or zeroes, and only the records say which.

mod computing;
mod judging;
mod telling;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use levelhead_block::{
    BufId, Command, Durability, Effort, Outcome, Place, SectorSet, Segment, ZeroTail,
};
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Lba, Sectors};

use self::judging::Announced;
use super::record::{FoundRecord, Kind, Record};
use super::ring::{Ring, Watermarks};
use super::rules::{Rule, Rules};
use super::verdict::{Final, Known, Missing, OnRing, Source, Verdict, fits};
use crate::action::append;
use crate::action::{Action, Sums};
use crate::core::{Core, Enqueue, Purpose};
use crate::drives::Fate;
use crate::drives::queue::End;
use crate::log::contents::Stored;
use crate::names::SubId;
use crate::shape::Cell;

/// The most sectors that are read or written at a time, of all drives together: 32 MiB.
const BATCH: u64 = 1 << 13;

/// The most sectors of one command: 1 MiB.
const COMMAND_MAX: u64 = 256;

/// From the last transaction that was found to the first new one. What was found may not have been the last: its
/// records may all have been on drives that are gone.
const GAP: u64 = 1 << 20;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Recovery {
    step: Step,
    has_begun: bool,
    /// Commands that drives have not ended.
    inside: BTreeMap<SubId, Inside>,
    /// Pieces of rings that are to be read.
    pieces: VecDeque<At>,
    /// Buffers that are being examined, and the rings that they are of.
    examined: BTreeMap<BufId, DriveIdx>,
    records: Vec<OnRing>,
    /// Sectors in place that drives did not give.
    unreadable: BTreeSet<Cell>,
    /// The same of rings, until they are written again.
    torn: BTreeSet<At>,
    /// Sectors of rings that this recovery has written although they were not given before.
    rewritten: BTreeSet<At>,
    /// Those of them that were not given again: nothing is written to them any more (X4).
    worn: BTreeSet<At>,
    /// What was computed and did not have its checksum.
    wrong: BTreeSet<Missing>,
    /// Transactions for whose missing records there was no room.
    homeless: BTreeSet<u64>,
    /// Transactions below this one are over.
    floor: u64,
    rules: Rules,
    verdict: Verdict,
    /// Transactions of which something is to be computed.
    to_compute: VecDeque<u64>,
    /// On which rings the record of a participant was found whole.
    found_on: BTreeMap<Missing, DriveSet>,
    /// Where the records go that are missing.
    reserved: BTreeMap<Homed, Lba>,
    /// Codewords that were being replaced as a whole.
    announced: Announced,
    /// Buffers of which checksums are being computed, and what they hold.
    summed: BTreeMap<BufId, At>,
    /// Sectors on the list of damaged sectors that are to be taken off it.
    made_right: Vec<Cell>,
    /// Records that were computed and are not on their rings yet.
    computed: Vec<Computed>,
    /// Those of them whose payload is being held against its checksums.
    checked: BTreeMap<BufId, Missing>,
    /// Sectors that are to be written in place, and where their contents are.
    to_place: VecDeque<Move>,
    moving: Vec<Move>,
    /// What was read in this step.
    filled: Vec<Filled>,
    /// Where each sector of it is, and what was computed.
    had: BTreeMap<At, Place>,
    /// Buffers that are released at the end of the step.
    bufs: Vec<BufId>,
    /// Whether some drive did not give a sector that was relied on.
    came_short: bool,
}

/// What is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Rings are being read.
    Reading,
    /// Everything was read; the drives that are not there are being recorded.
    Opening,
    /// Codewords that were being replaced as a whole are being read,
    Summing,
    /// their checksums computed,
    Judging,
    /// and what was not right is being written.
    Mending,
    /// The next thing to compute is being chosen.
    Choosing,
    /// What is needed to compute a part of a transaction is being read.
    Fetching(u64),
    /// What was computed of it is being held against its checksums.
    Checking,
    /// It is being put onto its rings.
    Appending,
    /// What was decided is being marked.
    Marking,
    /// Some of what is to be written in place is being read.
    Loading,
    /// It is being written.
    Placing,
    Flushing,
    Concluding,
    Done,
    /// All is to begin anew once the drives have ended what is inside them.
    Again,
}

/// Sectors of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct At {
    drive: DriveIdx,
    space: Space,
    lba: Lba,
    sectors: Sectors,
}

/// How the sectors of a drive are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Space {
    /// As the drive does.
    Drive,
    /// As the layout does.
    Layout,
}

/// A sector that goes to its place.
#[derive(Clone, Copy, Debug)]
struct Move {
    to: Cell,
    from: At,
}

#[derive(Clone, Copy, Debug)]
struct Inside {
    drive: DriveIdx,
    what: What,
}

/// A command to a drive.
#[derive(Clone, Debug)]
struct Asked {
    drive: DriveIdx,
    space: Space,
    command: Command,
    segments: Vec<Segment>,
    what: What,
}

/// Neighbouring sectors that are written in place together.
#[derive(Clone, Debug)]
struct PlaceRun {
    drive: DriveIdx,
    extent: Extent,
    segments: Vec<Segment>,
}

/// A buffer that was filled from there.
#[derive(Clone, Copy, Debug)]
struct Filled {
    buf: BufId,
    at: At,
}

/// A record that a ring is to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Homed {
    missing: Missing,
    ring: DriveIdx,
}

/// A record that was not found and was computed.
#[derive(Clone, Debug)]
struct Computed {
    homed: Homed,
    /// Header and payload.
    buf: BufId,
    place: Lba,
    /// The sectors of its payload.
    cells: Vec<Cell>,
}

/// Whether the rings have room for what is to be put onto them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    Enough,
    /// Without this transaction there may be.
    NotFor(u64),
}

#[derive(Clone, Copy, Debug)]
enum What {
    Read(At),
    /// A write whose bytes are released at the end of the step, or a flush.
    Change,
}

impl At {
    fn one(drive: DriveIdx, space: Space, lba: Lba) -> Self {
        Self { drive, space, lba, sectors: Sectors::new(1) }
    }

    fn end(self) -> Lba {
        self.lba + self.sectors
    }

    /// Each of its sectors.
    fn each(self) -> impl Iterator<Item = Self> {
        (0..self.sectors.get())
            .map(move |at| Self::one(self.drive, self.space, self.lba + Sectors::new(at)))
    }
}

impl Recovery {
    pub(crate) fn new(floor: u64, rules: Rules) -> Self {
        Self {
            step: Step::Again,
            has_begun: false,
            inside: BTreeMap::new(),
            pieces: VecDeque::new(),
            examined: BTreeMap::new(),
            records: Vec::new(),
            unreadable: BTreeSet::new(),
            torn: BTreeSet::new(),
            rewritten: BTreeSet::new(),
            worn: BTreeSet::new(),
            wrong: BTreeSet::new(),
            homeless: BTreeSet::new(),
            floor,
            rules,
            verdict: Verdict::default(),
            to_compute: VecDeque::new(),
            found_on: BTreeMap::new(),
            reserved: BTreeMap::new(),
            announced: Announced::default(),
            summed: BTreeMap::new(),
            made_right: Vec::new(),
            computed: Vec::new(),
            checked: BTreeMap::new(),
            to_place: VecDeque::new(),
            moving: Vec::new(),
            filled: Vec::new(),
            had: BTreeMap::new(),
            bufs: Vec::new(),
            came_short: false,
        }
    }

    /// The name of the next transaction, once everything is in its place.
    pub(crate) fn ended(&self) -> Option<u64> {
        (self.step == Step::Done).then(|| self.next())
    }

    fn next(&self) -> u64 {
        self.verdict.newest.max(self.verdict.retired).max(self.verdict.committed) + GAP
    }

    /// A drive has ended a command of the recovery's.
    pub(crate) fn handle_done(
        &mut self,
        core: &mut Core,
        sub: SubId,
        outcome: &Outcome,
        buf: Option<BufId>,
    ) {
        let Some(Inside { what, .. }) = self.inside.remove(&sub) else {
            return buf.into_iter().for_each(|buf| core.out.release(buf));
        };
        let (What::Read(at), Some(buf)) = (what, buf) else { return };
        self.bufs.push(buf);
        self.filled.push(Filled { buf, at });
        let missing = |offset: u32| match outcome {
            Outcome::Done { unknown, damaged } => {
                unknown.contains(offset) || damaged.contains(offset)
            }
            Outcome::Refused | Outcome::Unreachable | Outcome::Gone => true,
        };
        for (one, sector) in at.each().zip(0..) {
            self.came_short |= missing(sector);
            match (missing(sector), one.space) {
                (false, _) if self.step == Step::Reading => {}
                (false, _) => {
                    self.had.insert(one, Place { buf, sector });
                }
                (true, Space::Drive) => {
                    if self.rewritten.contains(&one) {
                        self.worn.insert(one); // X4
                    }
                    self.torn.insert(one);
                }
                (true, Space::Layout) => {
                    self.unreadable.insert(Cell { drive: one.drive, lba: one.lba });
                }
            }
        }
    }

    /// What was found in a buffer.
    pub(crate) fn handle_examined(&mut self, buf: BufId, found: Vec<FoundRecord>) {
        if let Some(missing) = self.checked.remove(&buf) {
            if !found.iter().any(|found| found.is_whole) {
                self.wrong.insert(missing);
                self.came_short = true;
            }
            return;
        }
        let ring = self.examined.remove(&buf).expect("X: it was to be examined");
        self.records.extend(found.into_iter().map(|found| OnRing { ring, found }));
    }

    /// The array does without a drive from now on: everything is decided anew.
    pub(crate) fn handle_lost(&mut self, drive: DriveIdx) {
        self.inside.retain(|_, inside| inside.drive != drive);
        if self.step != Step::Done {
            self.step = Step::Again;
        }
    }

    /// Whether it has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// The array has failed: what was cut off never comes to its place.
    pub(crate) fn give_up(&mut self, core: &mut Core) {
        self.has_begun = true;
        if self.is_quiet() {
            self.release(core);
        }
    }

    /// Whether everything has ended that the step has begun.
    fn is_quiet(&self) -> bool {
        let is_known = self.examined.is_empty() && self.checked.is_empty();
        self.inside.is_empty() && is_known && self.summed.is_empty()
    }

    /// Moves on as the facts demand.
    pub(crate) fn advance(&mut self, core: &mut Core, now: Instant, rings: &mut [Ring]) {
        self.has_begun = true;
        while self.is_quiet() && self.step != Step::Done {
            let step = self.step;
            self.step(core, now, rings);
            if step == self.step && self.is_quiet() {
                return; // It waits for the metadata.
            }
        }
    }

    /// All commands of the step have ended: goes to the next.
    fn step(&mut self, core: &mut Core, now: Instant, rings: &mut [Ring]) {
        match self.step {
            Step::Again => self.begin(core, now, rings),
            Step::Reading => self.examine(core, now, rings),
            // X1
            Step::Opening if core.gate.may_write && core.gate.unrecorded.is_empty() => {
                self.decide(core, rings);
            }
            Step::Opening | Step::Done => {}
            Step::Summing => self.sum(core),
            Step::Judging => self.judge(core, now),
            Step::Mending => self.judge_next(core, now),
            Step::Choosing => self.compute_next(core, now, rings),
            Step::Fetching(id) => self.compute(core, rings, id),
            Step::Checking => self.append_computed(core, now),
            Step::Appending => {
                self.release(core);
                self.step = Step::Choosing;
            }
            Step::Marking => self.judge_next(core, now),
            Step::Loading => self.place(core, now),
            Step::Placing => {
                self.release(core);
                self.step = Step::Loading;
                self.load(core, now);
            }
            Step::Flushing => {
                core.meta.undamage(std::mem::take(&mut self.made_right));
                if !core.meta.is_settled() {
                    return; // It waits for the metadata.
                }
                let next = self.next();
                let says = Watermarks { committed: next - 1, retired: next };
                if self.rules.keep(Rule::Conclude) {
                    self.mark(core, now, rings, says);
                }
                self.step = Step::Concluding;
            }
            Step::Concluding => {
                rings.iter_mut().for_each(Ring::reclaim);
                self.release(core);
                self.step = Step::Done;
            }
        }
    }

    fn release(&mut self, core: &mut Core) {
        self.had.clear();
        self.filled.clear();
        self.computed.clear();
        self.bufs.drain(..).for_each(|buf| core.out.release(buf));
    }

    fn begin(&mut self, core: &mut Core, now: Instant, rings: &[Ring]) {
        self.release(core);
        self.records.clear();
        self.announced.clear();
        self.made_right.clear();
        self.came_short = false;
        let mut pieces: Vec<At> = Vec::new();
        for drive in core.drives.reachable().iter() {
            pieces.extend(rings[drive.as_usize()].pieces().map(|extent| At {
                drive,
                space: Space::Drive,
                lba: extent.lba,
                sectors: extent.sectors,
            }));
        }
        // All rings side by side.
        pieces.sort_by_key(|piece| (piece.lba, piece.drive));
        self.pieces = pieces.into();
        self.step = Step::Reading;
        self.read_pieces(core, now);
    }

    fn read_pieces(&mut self, core: &mut Core, now: Instant) {
        let mut sectors = 0;
        while let Some(piece) = self.pieces.front().copied() {
            if sectors > 0 && sectors + piece.sectors.get() > BATCH {
                break;
            }
            sectors += piece.sectors.get();
            self.pieces.pop_front();
            self.read(core, now, piece);
        }
    }

    fn read(&mut self, core: &mut Core, now: Instant, at: At) {
        let place = Place { buf: core.out.name_buf(), sector: 0 };
        let extent = Extent::new(at.lba, at.sectors);
        let command = Command::Read { extent, effort: Effort::Full };
        let segments = vec![Segment { place, sectors: at.sectors.get() as u32 }];
        let (drive, space, what) = (at.drive, at.space, What::Read(at));
        self.ask(core, now, Asked { drive, space, command, segments, what });
    }

    fn ask(&mut self, core: &mut Core, now: Instant, asked: Asked) {
        let Asked { drive, space, command, segments, what } = asked;
        let purpose = match space {
            Space::Drive => Purpose::Ring,
            Space::Layout => Purpose::Place,
        };
        let origin = core.own_origin();
        let (end, fate, since) = (End::Tail, Fate::Certain, None);
        let segments = segments.into();
        let enqueued = Enqueue { purpose, drive, command, segments, origin, end, fate, since };
        let sub = core.enqueue(now, enqueued);
        self.inside.insert(sub, Inside { drive, what });
    }

    /// Has what was read of the rings examined; then reads more, if there is more.
    fn examine(&mut self, core: &mut Core, now: Instant, rings: &[Ring]) {
        for Filled { buf, at } in std::mem::take(&mut self.filled) {
            let torn = self
                .torn
                .iter()
                .filter(|torn| torn.drive == at.drive && (at.lba..at.end()).contains(&torn.lba));
            let unreadable: SectorSet = torn.map(|torn| (torn.lba - at.lba).get() as u32).collect();
            self.examined.insert(buf, at.drive);
            let ring = rings[at.drive.as_usize()].name;
            core.out.push(Action::Examine { buf, first: at.lba, unreadable, ring });
        }
        if !self.examined.is_empty() {
            return;
        }
        self.release(core);
        self.read_pieces(core, now);
        if self.inside.is_empty() {
            self.step = Step::Opening;
        }
    }

    /// Decides what is the last content of every sector, and holds the space of all that counts.
    fn decide(&mut self, core: &mut Core, rings: &mut [Ring]) {
        self.came_short = false; // What was not given of the rings is known by now.
        if self.rules.keep(Rule::MissedAgain) {
            self.mark_missed(core);
        }
        let core = &*core;
        self.found_on = found_on(&self.records);
        loop {
            self.verdict = Verdict::of(&self.records, self.known(core));
            self.find_unwritten(core);
            self.find_announced(core);
            let Verdict { retired, finals, dropped, .. } = &self.verdict;
            for ring in rings.iter_mut() {
                ring.forget();
                let drive = ring.drive;
                let own = self.records.iter().filter(|on| on.ring == drive);
                let own = own.filter(|on| !dropped.contains(&on.found.record.id));
                own.for_each(|on| ring.hold_found(&on.found, *retired));
                let worn = self.worn.iter().filter(|worn| worn.drive == drive);
                worn.for_each(|worn| ring.give_up_sector(worn.lba));
            }
            let mut records: BTreeMap<Homed, u64> = BTreeMap::new();
            for (cell, last) in finals {
                let missing = Missing { id: last.id, drive: cell.drive };
                for ring in self.rings_without(core, *cell, *last).iter() {
                    *records.entry(Homed { missing, ring }).or_default() += 1;
                }
            }
            let ids: BTreeSet<u64> = records.keys().map(|homed| homed.missing.id).collect();
            self.to_compute = ids.into_iter().collect();
            rings.iter_mut().for_each(Ring::hold_latest);
            match self.reserve(core, rings, records) {
                Room::Enough => break,
                // One transaction less each time.
                Room::NotFor(id) => self.homeless.insert(id),
            };
        }
        self.step = Step::Choosing;
    }

    /// What is brought to its place without a drive, or was begun without it, is among what it lacks (X6).
    fn mark_missed(&self, core: &mut Core) {
        if !core.meta.may_lack() {
            return;
        }
        let known = self.known(core);
        let retired = self.records.iter().map(|on| on.found.record.retired).max().unwrap_or(0);
        let is_live = |record: &&Record| {
            record.kind != Kind::Mark && record.id >= retired.max(self.floor) && fits(record, known)
        };
        let live = self.records.iter().map(|on| &on.found.record).filter(is_live);
        let runs = live.flat_map(|record| &record.runs);
        let cells =
            runs.flat_map(|run| run.extent.iter().map(|lba| Cell { drive: run.drive, lba }));
        let stripes: BTreeSet<u64> =
            cells.map(|cell| core.place.layout.symbol(cell).0.stripe).collect();
        for drive in DriveSet::first(core.place.layout.spec().members() as u8).iter() {
            for &stripe in &stripes {
                core.meta.miss(drive, stripe);
            }
        }
    }

    fn known<'a>(&'a self, core: &'a Core) -> Known<'a> {
        Known {
            layout: &core.place.layout,
            area: &core.place.area,
            valid: &core.holdings.valid,
            meta: Some(&core.meta),
            damaged: core.meta.damaged(),
            synced: core.holdings.synced,
            floor: self.floor,
            unreadable: &self.unreadable,
            wrong: &self.wrong,
            dropped: &self.homeless,
            rules: self.rules,
        }
    }

    /// Reads sectors, neighbours together.
    fn fetch(&mut self, core: &mut Core, now: Instant, wanted: &BTreeSet<At>) {
        let mut runs: Vec<At> = Vec::new();
        for &at in wanted {
            let goes_on = runs.last().is_some_and(|run| {
                let is_next = run.drive == at.drive && run.space == at.space && run.end() == at.lba;
                let is_whole =
                    at.space == Space::Drive || core.place.area.are_neighbours(at.lba, at.lba);
                is_next && is_whole && run.sectors.get() < COMMAND_MAX
            });
            match runs.last_mut() {
                Some(run) if goes_on => run.sectors += Sectors::new(1),
                Some(_) | None => runs.push(at),
            }
        }
        runs.into_iter().for_each(|run| self.read(core, now, run));
    }

    /// Puts a record onto a ring: all of a buffer.
    fn write_record(
        &mut self,
        core: &mut Core,
        now: Instant,
        at: At,
        buf: BufId,
        durability: Durability,
    ) {
        for one in at.each() {
            if self.torn.remove(&one) {
                self.rewritten.insert(one);
            }
        }
        let At { drive, space, lba, sectors } = at;
        let (extent, zero_tail) = (Extent::new(lba, sectors), ZeroTail::None);
        let command = Command::Write { extent, durability, zero_tail };
        let place = Place { buf, sector: 0 };
        let segments = vec![Segment { place, sectors: sectors.get() as u32 }];
        self.ask(core, now, Asked { drive, space, command, segments, what: What::Change });
    }

    /// Every ring that is there gets a mark.
    fn mark(&mut self, core: &mut Core, now: Instant, rings: &mut [Ring], says: Watermarks) {
        let Watermarks { committed, retired } = says;
        let mut dropped: Vec<u64> = self.verdict.dropped.iter().copied().collect();
        dropped.retain(|&id| id >= retired);
        dropped.truncate(Record::DROPPED_MAX);
        let with_ring = core.place.layout.spec().ring_drives();
        for drive in core.drives.reachable().and(with_ring).iter() {
            let ring = &mut rings[drive.as_usize()];
            let record = Record {
                ring: ring.name,
                place: ring.take_mark(core.arm(drive), says),
                kind: Kind::Mark,
                id: 0,
                drive,
                participants: DriveSet::EMPTY,
                runs: Vec::new(),
                committed,
                retired,
                dropped: dropped.clone(),
                has_gaps: false,
            };
            let at = At::one(drive, Space::Drive, record.place);
            let buf = core.out.acquire(Sectors::new(1));
            self.bufs.push(buf);
            core.out.log(Place { buf, sector: 0 }, record, Sums::Known(Vec::new()));
            self.write_record(core, now, at, buf, Durability::Durable);
        }
    }

    /// What is to be written in place.
    fn plan_places(&mut self, core: &Core) {
        let known = self.known(core);
        let of = |(&to, last): (&Cell, &Final)| match last.source {
            // A copy of it may be there although its drive is not, or is being filled and gets it later.
            Source::Ring { .. } if !known.holds(to) => None,
            Source::Ring { drive, lba } => {
                Some(Move { to, from: At::one(drive, Space::Drive, lba) })
            }
            Source::Codeword | Source::Absent | Source::Lost => None,
        };
        let to_place = self.verdict.finals.iter().filter_map(of).collect();
        let right = self.verdict.made_right(known);
        self.to_place = to_place;
        if self.rules.keep(Rule::UnlistedAgain) {
            self.made_right.extend(right); // X7
        }
        // All drives side by side.
        self.to_place.make_contiguous().sort_by_key(|moved| (moved.to.lba, moved.to.drive));
    }

    /// Reads the next part of what is to be written in place; flushes if there is none.
    fn load(&mut self, core: &mut Core, now: Instant) {
        let count = self.to_place.len().min(BATCH as usize);
        self.moving = self.to_place.drain(..count).collect();
        if self.moving.is_empty() {
            for drive in core.drives.reachable().iter() {
                let (space, command) = (Space::Layout, Command::Flush);
                let (segments, what) = (Vec::new(), What::Change);
                self.ask(core, now, Asked { drive, space, command, segments, what });
            }
            self.step = Step::Flushing;
            return;
        }
        let wanted: BTreeSet<At> = self.moving.iter().map(|moved| moved.from).collect();
        self.fetch(core, now, &wanted);
    }

    /// Writes in place what was read.
    fn place(&mut self, core: &mut Core, now: Instant) {
        if self.came_short {
            self.step = Step::Again;
            return;
        }
        let moving = std::mem::take(&mut self.moving).into_iter();
        let placed = moving.map(|moved| Stored { cell: moved.to, place: self.had[&moved.from] });
        let placed = placed.collect();
        self.write_in_place(core, now, placed);
        self.step = Step::Placing;
    }

    /// Writes sectors in place, neighbours together.
    fn write_in_place(&mut self, core: &mut Core, now: Instant, mut placed: Vec<Stored>) {
        placed.sort_by_key(|stored| stored.cell);
        let mut runs: Vec<PlaceRun> = Vec::new();
        for Stored { cell: to, place } in placed {
            self.unreadable.remove(&to); // A drive gives what was written to it.
            match runs.last_mut() {
                Some(run)
                    if run.drive == to.drive
                        && run.extent.end() == to.lba
                        && core.place.area.are_neighbours(to.lba, to.lba)
                        && run.extent.sectors.get() < COMMAND_MAX =>
                {
                    run.extent.sectors += Sectors::new(1);
                    append(&mut run.segments, place);
                }
                Some(_) | None => {
                    let extent = Extent::new(to.lba, Sectors::new(1));
                    let segments = vec![Segment { place, sectors: 1 }];
                    runs.push(PlaceRun { drive: to.drive, extent, segments });
                }
            }
        }
        for PlaceRun { drive, extent, segments } in runs {
            let (durability, zero_tail) = (Durability::Cached, ZeroTail::None);
            let command = Command::Write { extent, durability, zero_tail };
            let (space, what) = (Space::Layout, What::Change);
            self.ask(core, now, Asked { drive, space, command, segments, what });
        }
    }
}

/// On which rings the record of a participant was found whole.
fn found_on(records: &[OnRing]) -> BTreeMap<Missing, DriveSet> {
    let mut found_on: BTreeMap<Missing, DriveSet> = BTreeMap::new();
    for OnRing { ring, found: FoundRecord { record, is_whole, .. } } in records {
        if *is_whole && record.kind == Kind::Payload {
            let on = found_on.entry(Missing { id: record.id, drive: record.drive }).or_default();
            *on = on.with(*ring);
        }
    }
    found_on
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::record::RingName;
    use crate::meta::membership::MemberId;
    use crate::meta::superblock::Uuid;

    fn found(is_whole: bool) -> FoundRecord {
        let record = Record {
            ring: RingName { array: Uuid::default(), member: MemberId::default() },
            place: Lba::new(7),
            kind: Kind::Payload,
            id: 5,
            drive: DriveIdx::new(1),
            participants: DriveSet::first(3),
            runs: Vec::new(),
            committed: 0,
            retired: 0,
            dropped: Vec::new(),
            has_gaps: false,
        };
        FoundRecord { record, sums: Vec::new(), is_whole }
    }

    /// X5. What does not have its checksum is never written, and everything is decided anew without it.
    #[test]
    fn what_was_computed_counts_only_if_its_record_is_whole() {
        let (buf, missing) = (BufId::Own(3), Missing { id: 5, drive: DriveIdx::new(1) });
        for (found, is_wrong) in [
            (vec![found(true)], false),
            (vec![found(false), found(true)], false),
            (vec![found(false)], true),
            (Vec::new(), true),
        ] {
            let mut recovery = Recovery::new(1, Rules::ALL);
            recovery.checked.insert(buf, missing);
            recovery.handle_examined(buf, found.clone());
            assert_eq!(recovery.wrong.contains(&missing), is_wrong, "{found:?}");
            assert_eq!(recovery.came_short, is_wrong, "{found:?}");
            assert!(recovery.records.is_empty(), "it is on no ring");
        }
    }
}
