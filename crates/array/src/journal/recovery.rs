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

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use levelhead_block::{
    BufId, Command, Durability, Effort, Outcome, Place, SectorSet, Segment, ZeroTail,
};
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Lba, Sectors};

use super::record::{FoundRecord, Kind, Record};
use super::ring::{Ring, Watermarks};
use super::rules::{Rule, Rules};
use super::transaction::runs_of;
use super::verdict::{Final, Known, OnRing, Source, Verdict};
use crate::action::{Action, SubId, Sums};
use crate::core::{Core, Enqueue, Purpose};
use crate::drives::Fate;
use crate::drives::queue::End;
use crate::ops::read::append;
use crate::shape::{Cell, Row};

/// The most sectors that are read or written at a time, of all drives together: 32 MiB.
const BATCH: u64 = 1 << 13;

/// The most sectors of one command: 1 MiB.
const COMMAND_MAX: u64 = 256;

/// From the last transaction that was found to the first new one. What was found may not have been the last: its
/// records may all have been on drives that are gone.
const GAP: u64 = 1 << 20;

/// See the module.
#[derive(Debug)]
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
    /// The same of rings.
    torn: BTreeSet<At>,
    /// Transactions below this one are over.
    floor: u64,
    rules: Rules,
    verdict: Verdict,
    /// Transactions of which something is to be computed.
    to_compute: VecDeque<u64>,
    /// Where the records go that are missing.
    reserved: BTreeMap<Missing, Lba>,
    /// Sectors that are to be written in place, and where their contents are.
    to_place: VecDeque<Move>,
    moving: Vec<Move>,
    /// What was read in this step.
    filled: Vec<Filled>,
    /// Where each sector of it is, and what was computed.
    had: BTreeMap<At, Place>,
    /// Buffers that are released at the end of the step.
    bufs: Vec<BufId>,
}

/// What is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Rings are being read.
    Reading,
    /// Everything was read; the drives that are not there are being recorded.
    Opening,
    /// The next thing to compute is being chosen.
    Choosing,
    /// What is needed to compute a part of a transaction is being read.
    Fetching(u64),
    /// What was computed of it is being put onto its rings.
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

/// A buffer that was filled from there.
#[derive(Clone, Copy, Debug)]
struct Filled {
    buf: BufId,
    at: At,
}

/// A record that was not found and is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Missing {
    id: u64,
    drive: DriveIdx,
}

/// A record, and what it is about.
#[derive(Debug)]
struct Written {
    record: Record,
    /// The checksums of all that its transaction changed.
    sums: Vec<u32>,
    /// Its payload.
    contents: Vec<Segment>,
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
            floor,
            rules,
            verdict: Verdict::default(),
            to_compute: VecDeque::new(),
            reserved: BTreeMap::new(),
            to_place: VecDeque::new(),
            moving: Vec::new(),
            filled: Vec::new(),
            had: BTreeMap::new(),
            bufs: Vec::new(),
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
            return buf.into_iter().for_each(|buf| core.release(buf));
        };
        let (What::Read(at), Some(buf)) = (what, buf) else { return };
        self.bufs.push(buf);
        self.filled.push(Filled { buf, at });
        let missing = |offset: u32| match outcome {
            Outcome::Done { unknown, damaged } => {
                unknown.contains(offset) || damaged.contains(offset)
            }
            Outcome::Refused | Outcome::Gone => true,
        };
        for (one, sector) in at.each().zip(0..) {
            match (missing(sector), one.space) {
                (false, _) if self.step == Step::Reading => {}
                (false, _) => {
                    self.had.insert(one, Place { buf, sector });
                }
                (true, Space::Drive) => {
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
        if self.inside.is_empty() && self.examined.is_empty() {
            self.release(core);
        }
    }

    /// Moves on as the facts demand.
    pub(crate) fn advance(&mut self, core: &mut Core, now: Instant, rings: &mut [Ring]) {
        self.has_begun = true;
        while self.inside.is_empty() && self.examined.is_empty() && self.step != Step::Done {
            let step = self.step;
            self.step(core, now, rings);
            if step == self.step && self.inside.is_empty() && self.examined.is_empty() {
                return; // It waits for the books.
            }
        }
    }

    /// All commands of the step have ended: goes to the next.
    fn step(&mut self, core: &mut Core, now: Instant, rings: &mut [Ring]) {
        match self.step {
            Step::Again => self.begin(core, now, rings),
            Step::Reading => self.examine(core, now, rings),
            // X1
            Step::Opening if core.may_write && core.unrecorded.is_empty() => {
                self.decide(core, rings);
            }
            Step::Opening | Step::Done => {}
            Step::Choosing => self.compute_next(core, now, rings),
            Step::Fetching(id) => self.compute(core, now, rings, id),
            Step::Appending => {
                self.release(core);
                self.step = Step::Choosing;
            }
            Step::Marking => {
                self.release(core);
                self.step = Step::Loading;
                self.load(core, now);
            }
            Step::Loading => self.place(core, now),
            Step::Placing => {
                self.release(core);
                self.step = Step::Loading;
                self.load(core, now);
            }
            Step::Flushing => {
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
        self.bufs.drain(..).for_each(|buf| core.release(buf));
    }

    fn begin(&mut self, core: &mut Core, now: Instant, rings: &[Ring]) {
        self.release(core);
        self.records.clear();
        let mut pieces: Vec<At> = Vec::new();
        for drive in core.drives.present().iter() {
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
        let place = Place { buf: core.name_buf(), sector: 0 };
        let extent = Extent::new(at.lba, at.sectors);
        let command = Command::Read { extent, effort: Effort::Full };
        let segments = vec![Segment { place, sectors: at.sectors.get() as u32 }];
        self.ask(core, now, at.drive, at.space, command, segments, What::Read(at));
    }

    #[expect(clippy::too_many_arguments, reason = "one place asks for everything")]
    fn ask(
        &mut self,
        core: &mut Core,
        now: Instant,
        drive: DriveIdx,
        space: Space,
        command: Command,
        segments: Vec<Segment>,
        what: What,
    ) {
        let purpose = match space {
            Space::Drive => Purpose::Ring,
            Space::Layout => Purpose::Place,
        };
        let origin = core.own_origin();
        let (end, fate, since) = (End::Tail, Fate::Certain, None);
        let what_for = Enqueue { purpose, drive, command, segments, origin, end, fate, since };
        let sub = core.enqueue(now, what_for);
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
            core.actions.push_back(Action::Examine { buf, first: at.lba, unreadable, ring });
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
    fn decide(&mut self, core: &Core, rings: &mut [Ring]) {
        self.verdict = Verdict::of(&self.records, self.known(core));
        let Verdict { retired, finals, dropped, .. } = &self.verdict;
        for ring in rings.iter_mut() {
            ring.forget();
            let drive = ring.drive;
            let own = self.records.iter().filter(|on| on.ring == drive);
            let own = own.filter(|on| !dropped.contains(&on.found.record.id));
            own.for_each(|on| ring.hold_found(&on.found, *retired));
        }
        let lacking = finals.iter().filter(|(_, last)| last.source == Source::Codeword);
        let mut records: BTreeMap<Missing, u64> = BTreeMap::new();
        for (cell, last) in lacking {
            *records.entry(Missing { id: last.id, drive: cell.drive }).or_default() += 1;
        }
        let ids: BTreeSet<u64> = records.keys().map(|missing| missing.id).collect();
        self.to_compute = ids.into_iter().collect();
        rings.iter_mut().for_each(Ring::hold_latest);
        self.reserve(core, rings, records);
        self.step = Step::Choosing;
    }

    /// Gives the records that are missing their space: each of them had some that was large enough, so the largest
    /// ones come first, and what was there before counts for nothing.
    fn reserve(&mut self, core: &Core, rings: &mut [Ring], records: BTreeMap<Missing, u64>) {
        let mut records: Vec<(Missing, u64)> = records.into_iter().collect();
        records.sort_by_key(|&(_, sectors)| Reverse(sectors));
        self.reserved.clear();
        for (missing, sectors) in records {
            let Missing { id, drive } = missing;
            let (ring, sectors) = (&mut rings[drive.as_usize()], Sectors::new(1 + sectors));
            let room = ring.room(sectors, core.arm(drive));
            match room.or_else(|| ring.room_without_latest(sectors, core.arm(drive))) {
                Some(place) => {
                    ring.reserve(place, sectors, id);
                    self.reserved.insert(missing, place);
                }
                // No program of ours leaves such a ring.
                None => self.verdict.give_up_on(id, drive),
            }
        }
        let known = Known {
            layout: &core.layout,
            area: &core.area,
            present: core.drives.present(),
            synced: core.synced,
            floor: self.floor,
            unreadable: &self.unreadable,
            rules: self.rules,
        };
        self.verdict.give_up_hopeless(known);
    }

    fn known<'a>(&'a self, core: &'a Core) -> Known<'a> {
        Known {
            layout: &core.layout,
            area: &core.area,
            present: core.drives.present(),
            synced: core.synced,
            floor: self.floor,
            unreadable: &self.unreadable,
            rules: self.rules,
        }
    }

    /// The codewords of which something is to be computed that this transaction gave.
    fn rows_of(&self, core: &Core, id: u64) -> BTreeSet<Row> {
        let finals = self.verdict.finals.iter();
        let lacking = finals.filter(|(_, last)| last.id == id && last.source == Source::Codeword);
        lacking.map(|(&cell, _)| core.layout.symbol(cell).0).collect()
    }

    /// Reads what is needed to compute the next transaction's missing parts; marks if there is none.
    fn compute_next(&mut self, core: &mut Core, now: Instant, rings: &mut [Ring]) {
        let Some(id) = self.to_compute.pop_front() else {
            let Verdict { retired, committed, newest, .. } = self.verdict;
            let says = Watermarks { committed: committed.max(newest), retired };
            if self.rules.keep(Rule::Decide) {
                self.mark(core, now, rings, says);
            }
            self.plan_places();
            self.step = Step::Marking;
            return;
        };
        let mut wanted: BTreeSet<At> = BTreeSet::new();
        for row in self.rows_of(core, id) {
            let sources = self.verdict.sources(row, self.known(core));
            for symbol in sources.iter() {
                wanted.insert(self.source_at(core.layout.cell(row, symbol)));
            }
        }
        self.fetch(core, now, &wanted);
        self.step = Step::Fetching(id);
    }

    /// Where the last content of a sector is that can be had.
    fn source_at(&self, cell: Cell) -> At {
        match self.verdict.finals.get(&cell).map(|last| last.source) {
            Some(Source::Ring { drive, lba }) => At::one(drive, Space::Drive, lba),
            _ => At::one(cell.drive, Space::Layout, cell.lba),
        }
    }

    /// Reads sectors, neighbours together.
    fn fetch(&mut self, core: &mut Core, now: Instant, wanted: &BTreeSet<At>) {
        let mut runs: Vec<At> = Vec::new();
        for &at in wanted {
            let goes_on = runs.last().is_some_and(|run| {
                let is_next = run.drive == at.drive && run.space == at.space && run.end() == at.lba;
                let is_whole = at.space == Space::Drive || core.area.are_neighbours(at.lba, at.lba);
                is_next && is_whole && run.sectors.get() < COMMAND_MAX
            });
            match runs.last_mut() {
                Some(run) if goes_on => run.sectors += Sectors::new(1),
                Some(_) | None => runs.push(at),
            }
        }
        runs.into_iter().for_each(|run| self.read(core, now, run));
    }

    /// Computes what is missing of a transaction, and puts it onto the rings.
    fn compute(&mut self, core: &mut Core, now: Instant, rings: &mut [Ring], id: u64) {
        let rows = self.rows_of(core, id);
        let is_all_there = rows.iter().all(|&row| {
            let sources = self.verdict.sources(row, self.known(core));
            sources.iter().all(|symbol| {
                let at = self.source_at(core.layout.cell(row, symbol));
                self.had.contains_key(&at)
            })
        });
        if !is_all_there {
            // A sector was not given: everything is decided anew without it.
            self.step = Step::Again;
            return;
        }
        let finals = self.verdict.finals.iter();
        let lacking = finals.filter(|(_, last)| last.id == id && last.source == Source::Codeword);
        let cells: Vec<Cell> = lacking.map(|(&cell, _)| cell).collect();
        let buf = core.acquire(Sectors::new(cells.len() as u64));
        self.bufs.push(buf);
        for (&cell, sector) in cells.iter().zip(0..) {
            self.compute_cell(core, cell, Place { buf, sector });
        }
        for own in cells.chunk_by(|left, right| left.drive == right.drive) {
            self.append_computed(core, now, rings, id, own);
        }
        self.step = Step::Appending;
    }

    fn compute_cell(&mut self, core: &mut Core, cell: Cell, into: Place) {
        let (row, symbol) = core.layout.symbol(cell);
        let sources = self.verdict.sources(row, self.known(core));
        let code = core.code.as_ref().expect("only a redundant array computes");
        let terms = code.compute(&sources, symbol).into_iter();
        let from: Vec<(u8, Place)> = terms
            .map(|(coefficient, source)| {
                (coefficient, self.had[&self.source_at(core.layout.cell(row, source))])
            })
            .collect();
        core.combine(into, from);
        self.had.insert(At::one(cell.drive, Space::Layout, cell.lba), into);
    }

    /// Puts computed sectors of one drive onto its ring (X2).
    fn append_computed(
        &mut self,
        core: &mut Core,
        now: Instant,
        rings: &[Ring],
        id: u64,
        cells: &[Cell],
    ) {
        let drive = cells[0].drive;
        let ring = &rings[drive.as_usize()];
        let place = self.reserved[&Missing { id, drive }];
        let mut contents: Vec<Segment> = Vec::new();
        for (&cell, lba) in cells.iter().zip(1..) {
            append(&mut contents, self.had[&At::one(drive, Space::Layout, cell.lba)]);
            let last = self.verdict.finals.get_mut(&cell).expect("it is lacking");
            last.source = Source::Ring { drive, lba: place + Sectors::new(lba) };
        }
        // All that it changed, so that one such record says what a whole one says.
        let changed = &self.verdict.changed[&id];
        let runs = runs_of(changed.keys().map(|&cell| (cell, cells.contains(&cell))));
        let sums: Vec<u32> = changed.values().copied().collect();
        let participants = changed.keys().map(|cell| cell.drive).collect();
        let Verdict { retired, committed, .. } = self.verdict;
        let record = Record {
            ring: ring.name,
            place,
            kind: Kind::Payload,
            id,
            drive,
            participants,
            runs,
            committed,
            retired,
            dropped: Vec::new(),
        };
        self.write_record(core, now, drive, Written { record, sums, contents });
    }

    fn write_record(&mut self, core: &mut Core, now: Instant, drive: DriveIdx, written: Written) {
        let Written { record, sums, contents } = written;
        let header = Place { buf: core.acquire(Sectors::new(1)), sector: 0 };
        self.bufs.push(header.buf);
        let extent = Extent::new(record.place, Sectors::new(1) + record.payload());
        core.log(header, record, Sums::Known(sums));
        let mut segments = vec![Segment { place: header, sectors: 1 }];
        segments.extend(contents);
        let (durability, zero_tail) = (Durability::Durable, ZeroTail::None);
        let command = Command::Write { extent, durability, zero_tail };
        self.ask(core, now, drive, Space::Drive, command, segments, What::Change);
    }

    /// Every ring that is there gets a mark.
    fn mark(&mut self, core: &mut Core, now: Instant, rings: &mut [Ring], says: Watermarks) {
        let Watermarks { committed, retired } = says;
        let mut dropped: Vec<u64> = self.verdict.dropped.iter().copied().collect();
        dropped.retain(|&id| id >= retired);
        dropped.truncate(Record::DROPPED_MAX);
        for drive in core.drives.present().iter() {
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
            };
            let (sums, contents) = (Vec::new(), Vec::new());
            self.write_record(core, now, drive, Written { record, sums, contents });
        }
    }

    /// What is to be written in place.
    fn plan_places(&mut self) {
        let of = |(&to, last): (&Cell, &Final)| match last.source {
            Source::Ring { drive, lba } => {
                Some(Move { to, from: At::one(drive, Space::Drive, lba) })
            }
            Source::Codeword | Source::Absent | Source::Lost => None,
        };
        self.to_place = self.verdict.finals.iter().filter_map(of).collect();
        // All drives side by side.
        self.to_place.make_contiguous().sort_by_key(|moved| (moved.to.lba, moved.to.drive));
    }

    /// Reads the next part of what is to be written in place; flushes if there is none.
    fn load(&mut self, core: &mut Core, now: Instant) {
        let count = self.to_place.len().min(BATCH as usize);
        self.moving = self.to_place.drain(..count).collect();
        if self.moving.is_empty() {
            for drive in core.drives.present().iter() {
                let what = What::Change;
                self.ask(core, now, drive, Space::Layout, Command::Flush, Vec::new(), what);
            }
            self.step = Step::Flushing;
            return;
        }
        let wanted: BTreeSet<At> = self.moving.iter().map(|moved| moved.from).collect();
        self.fetch(core, now, &wanted);
    }

    /// Writes in place what was read.
    fn place(&mut self, core: &mut Core, now: Instant) {
        if !self.moving.iter().all(|moved| self.had.contains_key(&moved.from)) {
            self.step = Step::Again;
            return;
        }
        let mut moving = std::mem::take(&mut self.moving);
        moving.sort_by_key(|moved| moved.to);
        let mut run: Option<(Cell, Extent, Vec<Segment>)> = None;
        for Move { to, from } in moving {
            let place = self.had[&from];
            let goes_on = run.as_ref().is_some_and(|(first, extent, _)| {
                first.drive == to.drive
                    && extent.end() == to.lba
                    && core.area.are_neighbours(to.lba, to.lba)
                    && extent.sectors.get() < COMMAND_MAX
            });
            match &mut run {
                Some((_, extent, segments)) if goes_on => {
                    extent.sectors += Sectors::new(1);
                    append(segments, place);
                }
                _ => {
                    let extent = Extent::new(to.lba, Sectors::new(1));
                    let next = (to, extent, vec![Segment { place, sectors: 1 }]);
                    if let Some(run) = run.replace(next) {
                        self.write_place(core, now, run);
                    }
                }
            }
        }
        run.into_iter().for_each(|run| self.write_place(core, now, run));
        self.step = Step::Placing;
    }

    fn write_place(
        &mut self,
        core: &mut Core,
        now: Instant,
        (first, extent, segments): (Cell, Extent, Vec<Segment>),
    ) {
        let (durability, zero_tail) = (Durability::Cached, ZeroTail::None);
        let command = Command::Write { extent, durability, zero_tail };
        self.ask(core, now, first.drive, Space::Layout, command, segments, What::Change);
    }
}
