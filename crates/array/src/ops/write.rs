//! One write of an array: data and redundancy change together, or a failure is reported.
//!
//! ```text
//!   (locked) --> Reading --> Logging --> Writing --> Answered      with a journal; after Logging it may have ended
//!
//!   (locked) --> Reading --> Writing --> Answered
//!                 |   ^         |           ^
//!                 +---+         |           |   all sub-writes have ended
//!                   |           +--> given up: the client has its failure, the writing goes on
//!                   +-- a drive was lost or a sector is damaged: choose again
//! ```
//!
//! Each codeword chooses how it is written: [`ways`](super::ways).
//!
//! # Invariants
//!
//! - W1. Nothing is written before everything to be read was read.
//! - W2. A write answers well only after its last sub-write has ended, and holds its stripes and its clients'
//!   buffers until then, even if its clients were told before that it has failed.
//! - W4. What the journal was given it keeps until it is over; the write has ended when it is committed, and what the
//!   journal has only announced is in its place.
//! - W3. A write that cannot keep a codeword consistent writes nothing and names its sectors; one that
//!   others joined to does so only for the parts that touch that codeword.

mod places;
mod values;

use levelhead_block::{BufId, Durability, Effort, Outcome, Place, RequestId, SectorSet};
use levelhead_erasure::SymbolSet;
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Lba, Sectors};

use self::values::{computed, stored};
use crate::action::{Answer, Cost};
use crate::core::Core;
use crate::drives::Fate;
use crate::drives::queue::End;
use crate::log::contents::{Changed, Contents, Coverage, InPlace, Logged, Stored};
use crate::meta::membership::Generation;
use crate::names::{OpId, SubId};
use crate::ops::fetch::{ArraySector, Codeword, Fetch, Manner, Wish, find_sectors, writable};
use crate::ops::read::on_drives;
use crate::ops::ways::{Choice, Method, Way, copying, readable};
use crate::policy::level::LAGS_FOR_WRITES;
use crate::shape::{Cell, Layout, Row};

/// One client's part of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) request: RequestId,
    pub(crate) extent: Extent,
    pub(crate) durability: Durability,
}

/// Whose write it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Clients', in the order of their arrival: where two meet, the later one counts.
    Client(Vec<Part>),
    /// The array's own: makes the redundancy of these stripes valid.
    Resync { first: u64, end: u64 },
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct WriteOp {
    op: OpId,
    began: Instant,
    pub(crate) cause: Cause,
    pub(crate) fetch: Fetch,
    /// The new values of the symbols that change, for each codeword of `fetch`.
    changes: Vec<Vec<Value>>,
    phase: Phase,
    /// Whether the journal has announced what it writes in place.
    is_announced: bool,
    clients: Clients,
    /// The array's own buffers that it needs until its end, and their sectors.
    scratch: Vec<BufId>,
    scratch_sectors: Sectors,
    cost: Cost,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Reading,
    /// The journal has it: it is committed all at once.
    Logging(Logged),
    /// These sub-writes have not ended.
    Writing(Vec<SubId>),
}

/// Whether its clients wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clients {
    Wait,
    /// They were told that it has failed; it keeps this much memory until its end.
    GivenUp(Sectors),
}

/// Where the value of a symbol of some codeword is.
#[derive(Clone, Copy, Debug)]
struct Value {
    symbol: usize,
    place: Place,
}

/// A new value that clients give a symbol.
#[derive(Clone, Copy, Debug)]
struct Change {
    row: Row,
    value: Value,
}

/// How a write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    NotYet,
    Done,
    Failed,
}

impl WriteOp {
    /// Starts a write whose stripes are locked; [`WriteOp::advance`] comes next.
    pub(crate) fn start(core: &mut Core, now: Instant, op: OpId, cause: Cause) -> Self {
        let mut changes: Vec<Vec<Value>> = Vec::new();
        let fetch = match &cause {
            Cause::Client(parts) => {
                let mut fetch = Fetch::new(op, parts[0].request.0, Some(now));
                for Change { row, value } in changes_of(core.layout(), parts) {
                    let symbol = value.symbol;
                    if fetch.codewords.last().is_none_or(|word| word.row != row) {
                        let usable = writable(core, row);
                        fetch.begin(core, row, usable);
                        changes.push(Vec::new());
                    }
                    let idx = fetch.codewords.len() - 1;
                    let word = &mut fetch.codewords[idx];
                    if word.subject.contains(symbol) {
                        changes[idx].pop(); // A later part writes the same sector again.
                    }
                    word.subject = word.subject.with(symbol);
                    changes[idx].push(value);
                }
                fetch
            }
            &Cause::Resync { first, end } => {
                let mut fetch = Fetch::new(op, resync_origin(op), None);
                let (rows, symbols) = (core.layout().rows(), core.layout().symbols());
                let rows =
                    (first..end).flat_map(|stripe| (0..rows).map(move |row| Row { stripe, row }));
                for row in rows {
                    fetch.begin(core, row, SymbolSet::first(symbols));
                    changes.push(Vec::new());
                }
                fetch
            }
        };
        Self {
            op,
            began: now,
            cause,
            fetch,
            changes,
            phase: Phase::Reading,
            is_announced: false,
            clients: Clients::Wait,
            scratch: Vec::new(),
            scratch_sectors: Sectors::ZERO,
            cost: Cost::default(),
        }
    }

    /// A sub-write has ended. If its drive is lost by that, it is lost already.
    pub(crate) fn handle_written(&mut self, sub: SubId) {
        let Phase::Writing(pending) = &mut self.phase else {
            unreachable!("W1: {sub:?} was written while the write still reads")
        };
        let at = pending.iter().position(|&writing| writing == sub);
        pending.swap_remove(at.expect("the sub-write is this operation's"));
    }

    /// The journal has committed what it was given, or never will.
    pub(crate) fn handle_logged(
        &mut self,
        core: &mut Core,
        now: Instant,
        logged: Logged,
        to_place: Vec<Stored>,
    ) {
        assert_eq!(self.phase, Phase::Logging(Logged::NotYet), "W4: operation {}", self.op);
        self.phase = Phase::Logging(logged);
        if !to_place.is_empty() {
            self.is_announced = true;
            self.phase = Phase::Writing(self.write(core, now, to_place));
        }
    }

    /// The journal logs all that is written in place, and has the commands from now on that do so.
    pub(crate) fn leave_places(&mut self) -> Vec<SubId> {
        let Phase::Writing(pending) = &mut self.phase else {
            unreachable!("W4: operation {} writes nothing in place", self.op)
        };
        let pending = std::mem::take(pending);
        self.is_announced = false;
        self.phase = Phase::Logging(Logged::NotYet);
        pending
    }

    /// Reads nothing from drives that hinder, if there is a way without them; returns whether that has changed anything.
    pub(crate) fn leave_hindering(&mut self, core: &mut Core, now: Instant) -> bool {
        let late = self.fetch.pending_drives().and(core.log.hindering);
        let is_client = matches!(self.cause, Cause::Client(_));
        if self.phase != Phase::Reading || late.is_empty() || !is_client {
            return false;
        }
        let before: Vec<SymbolSet> = self.fetch.codewords.iter().map(|word| word.unknown).collect();
        for word in &mut self.fetch.codewords {
            let left = on_drives(core.layout(), word, late).and(word.pending);
            word.unknown = word.unknown.or(left);
        }
        if self.ways(core, now).is_none() {
            for (word, unknown) in self.fetch.codewords.iter_mut().zip(before) {
                word.unknown = unknown;
            }
            return false;
        }
        self.fetch.leave(core, now, late);
        true
    }

    /// Moves on as the facts demand.
    pub(crate) fn advance(&mut self, core: &mut Core, now: Instant) -> Progress {
        if self.phase == Phase::Reading {
            if !self.fetch.subs.is_empty() || self.fetch.is_proving() {
                return Progress::NotYet;
            }
            self.fetch.handle_lost(core);
            // An array that has failed takes no write: some of its sectors could be read back as old data.
            let ways = if core.has_failed() { None } else { self.ways(core, now) };
            let ways = ways.or_else(|| self.ways_with_all(core, now));
            if ways.is_none() && !core.has_failed() && self.fetch.trust_unproven(|_| true) {
                return self.advance(core, now);
            }
            let ways = match ways {
                None if self.may_give_up(core) => {
                    if !core.log.live.is_over_for(self.op) {
                        return Progress::NotYet;
                    }
                    self.give_up_unreadable(core);
                    self.ways(core, now)
                }
                ways => ways,
            };
            let Some(ways) = ways else {
                if self.drop_hopeless(core, now) {
                    return self.advance(core, now);
                }
                self.finish(core, now, Progress::Failed);
                return Progress::Failed;
            };
            let words = self.fetch.codewords.iter().zip(&ways).enumerate();
            let wishes: Vec<Wish> = words
                .map(|(at, (word, way))| Wish { word: at, symbols: way.reads.minus(word.have) })
                .filter(|wish| !wish.symbols.is_empty())
                .collect();
            if !wishes.is_empty() {
                let manner = Manner { effort: Effort::Full, end: End::Tail, fate: Fate::Certain };
                self.cost.subs += self.fetch.ask(core, now, &wishes, manner);
                return Progress::NotYet;
            }
            // What is redundant is not computed from what was not written (VF3).
            let words = self.fetch.codewords.iter().zip(&ways).enumerate();
            let decoded = words.filter(|(_, (_, way))| way.method == Method::Decode);
            let computed =
                decoded.map(|(at, (word, _))| Wish { word: at, symbols: computed(core, word) });
            let computed: Vec<Wish> = computed.collect();
            if self.fetch.prove(core, computed) {
                return Progress::NotYet;
            }
            let recorded = self.note_missed(core);
            if matches!(self.cause, Cause::Resync { .. }) {
                self.trust(core);
            }
            let words = self.contents(core, now, &ways);
            self.phase = match self.cause {
                Cause::Client(_) if core.log.is_journaled => {
                    let (op, since) = (self.op, self.began);
                    core.log.to_journal.push_back(Contents {
                        op,
                        since,
                        recorded,
                        codewords: words,
                    });
                    Phase::Logging(Logged::NotYet)
                }
                Cause::Client(_) | Cause::Resync { .. } => {
                    let cells = words.into_iter().flat_map(|changed| changed.cells).collect();
                    Phase::Writing(self.write(core, now, cells))
                }
            };
        }
        let is_safe = match &self.phase {
            Phase::Logging(Logged::Committed) => self.is_safe(core),
            Phase::Logging(Logged::Never) => false,
            Phase::Writing(pending) if pending.is_empty() => {
                if std::mem::take(&mut self.is_announced) {
                    let (op, durability) = (self.op, self.durability());
                    core.log.in_place.push_back(InPlace { op, durability });
                }
                self.is_safe(core)
            }
            Phase::Reading | Phase::Logging(Logged::NotYet) | Phase::Writing(_) => {
                return Progress::NotYet;
            }
        };
        if is_safe && !self.clear_listed(core) {
            return Progress::NotYet;
        }
        let end = if is_safe { Progress::Done } else { Progress::Failed };
        self.finish(core, now, end);
        end
    }

    /// What a resync reads has no checksum yet: it is taken for what it should be.
    fn trust(&self, core: &mut Core) {
        if core.tags.is_none() {
            return;
        }
        let mut stored = Vec::new();
        for word in &self.fetch.codewords {
            let read = word.have.minus(word.listed);
            stored.extend(read.iter().map(|symbol| {
                let cell = core.layout().cell(word.row, symbol);
                Stored { cell, place: word.place(symbol) }
            }));
        }
        core.trust(&stored);
    }

    /// Whether a resync may go on without what a drive does not give, where that is on no lost drive.
    fn may_give_up(&self, core: &Core) -> bool {
        let is_whole = !core.has_failed() && core.drives.lost_data().is_empty();
        let is_resync = matches!(self.cause, Cause::Resync { .. });
        is_resync && is_whole && !core.layout().spec().is_mirror()
    }

    /// Nothing else says what was there, and what is redundant counts it as zeroes from now on.
    fn give_up_unreadable(&mut self, core: &mut Core) {
        let data = SymbolSet::first(core.layout().data_symbols());
        for word in &mut self.fetch.codewords {
            let given_up = data.and(word.damaged).minus(word.have).minus(word.listed);
            word.listed = word.listed.or(given_up);
            for symbol in given_up.iter() {
                core.list_damaged(core.layout().cell(word.row, symbol));
            }
        }
    }

    /// Takes what was written off the list of damaged sectors; returns whether the drives say so (Y2).
    fn clear_listed(&self, core: &mut Core) -> bool {
        let Cause::Client(_) = self.cause else { return core.meta.wait(self.op) };
        let met: Vec<&Codeword> =
            self.fetch.codewords.iter().filter(|word| !word.listed.is_empty()).collect();
        if met.is_empty() {
            return true;
        }
        let layout = core.place.layout();
        let is_mirror = layout.spec().is_mirror();
        let written = met.into_iter().flat_map(|word| {
            let redundant = word.usable.minus(SymbolSet::first(layout.data_symbols()));
            let symbols = if is_mirror { word.usable } else { word.subject.or(redundant) };
            symbols.iter().map(|symbol| layout.cell(word.row, symbol)).collect::<Vec<Cell>>()
        });
        core.meta.undamage_for(self.op, written)
    }

    /// How each codeword is written; `None` if one of them cannot be.
    fn ways(&self, core: &Core, now: Instant) -> Option<Vec<Way>> {
        let lagging = match core.log.goes_round_lagging {
            true => core.drives.lagging(now, LAGS_FOR_WRITES),
            false => DriveSet::EMPTY,
        };
        self.fetch.codewords.iter().map(|word| self.way(core, word, lagging)).collect()
    }

    /// The same with the drives that it did without because they hinder; `None` if there are none.
    fn ways_with_all(&mut self, core: &Core, now: Instant) -> Option<Vec<Way>> {
        if !core.log.is_journaled || core.has_failed() {
            return None;
        }
        self.fetch.codewords.iter_mut().for_each(|word| word.unknown = SymbolSet::EMPTY);
        self.ways(core, now)
    }

    fn way(&self, core: &Core, word: &Codeword, lagging: DriveSet) -> Option<Way> {
        let data = SymbolSet::first(core.layout().data_symbols());
        match self.cause {
            Cause::Client(_) => {
                let avoided = core.drives.sat_out().or(core.log.hindering);
                let [avoided, lagging] =
                    [avoided, lagging].map(|drives| on_drives(core.layout(), word, drives));
                Choice { word, data, avoided, lagging }.cheapest()
            }
            Cause::Resync { .. } if core.layout().spec().is_mirror() => copying(word),
            Cause::Resync { .. } => {
                let reads = data.minus(word.listed);
                let way = Way { method: Method::Reconstruct, reads };
                reads.minus(readable(word)).is_empty().then_some(way)
            }
        }
    }

    /// Answers the parts that touch a codeword without a method, and begins again with the others;
    /// false if there are none.
    fn drop_hopeless(&mut self, core: &mut Core, now: Instant) -> bool {
        let Cause::Client(parts) = &self.cause else { return false };
        if core.has_failed() {
            return false;
        }
        let words = self.fetch.codewords.iter();
        let hopeless: Vec<Row> = words
            .filter(|word| self.way(core, word, DriveSet::EMPTY).is_none())
            .map(|word| word.row)
            .collect();
        let is_hopeless = |part: &Part| {
            part.extent.iter().any(|lba| hopeless.contains(&core.layout().find(lba).0))
        };
        let (failed, left): (Vec<Part>, Vec<Part>) =
            parts.iter().partition(|part| is_hopeless(part));
        if left.is_empty() {
            return false;
        }
        let cost = self.cost;
        self.cause = Cause::Client(failed);
        self.finish(core, now, Progress::Failed);
        let start = Self::start(core, self.began, self.op, Cause::Client(left));
        *self = Self { cost, ..start };
        true
    }

    /// Computes redundancy: what is to be written, for every codeword in the order of its symbols.
    fn contents(&mut self, core: &mut Core, now: Instant, ways: &[Way]) -> Vec<Changed> {
        assert!(self.fetch.subs.is_empty(), "W1: something is still being read");
        let is_mirror = core.layout().spec().is_mirror();
        let cells = match is_mirror {
            true => self.copies(core),
            false => self.data_and_redundancy(core, ways),
        };
        let data = SymbolSet::first(core.layout().data_symbols());
        let words = self.fetch.codewords.iter().zip(&self.changes);
        let changed = |((word, changes), cells): ((&Codeword, &Vec<Value>), Vec<Stored>)| {
            let is_whole = data.minus(word.subject).is_empty();
            let coverage = if is_whole { Coverage::All } else { Coverage::Part };
            let unkept = if is_mirror { SymbolSet::EMPTY } else { word.listed.minus(word.usable) };
            let absent = changes.iter().filter(|change| unkept.contains(change.symbol));
            let absent = absent.map(|value| stored(core, word.row, value)).collect();
            Changed { row: word.row, coverage, cells, absent }
        };
        let codewords = words.zip(cells).map(changed).collect();
        self.fetch.close(core, now, false, None);
        codewords
    }

    /// Drives miss what is written and would be theirs; returns the generation that says so where that is to be known.
    fn note_missed(&self, core: &mut Core) -> Generation {
        if !core.meta.may_lack() {
            return Generation::NONE;
        }
        let Core { place, meta, .. } = core;
        let layout = place.layout();
        let all = SymbolSet::first(layout.symbols());
        let redundant = all.minus(SymbolSet::first(layout.data_symbols()));
        let mut recorded = Generation::NONE;
        for word in &self.fetch.codewords {
            let written = if layout.spec().is_mirror() { all } else { word.subject.or(redundant) };
            for symbol in written.minus(word.usable).iter() {
                let drive = layout.cell(word.row, symbol).drive;
                recorded = recorded.max(meta.miss(drive, word.row.stripe));
            }
        }
        recorded
    }

    /// A drive is back that this write may have begun without: it misses all of its stripes.
    pub(crate) fn note_returned(&self, core: &mut Core, drive: DriveIdx) {
        for word in &self.fetch.codewords {
            core.meta.miss(drive, word.row.stripe);
        }
    }

    /// Whether every changed sector can be read back, now that all sub-writes have ended.
    fn is_safe(&self, core: &Core) -> bool {
        match &self.cause {
            Cause::Client(parts) => {
                core.drives.lost_data().is_empty()
                    || parts.iter().all(|part| unsafe_sectors(core, part).is_empty())
            }
            Cause::Resync { .. } if core.layout().spec().is_mirror() => !core.has_failed(),
            Cause::Resync { .. } => core.drives.lost_data().is_empty(),
        }
    }

    /// Since when a client waits for it; no client waits for a resync.
    fn since(&self) -> Option<Instant> {
        match self.cause {
            Cause::Client(_) => Some(self.began),
            Cause::Resync { .. } => None,
        }
    }

    /// Drives that should have been written to, and whose loss is not recorded yet.
    fn relies_on(&self, core: &Core) -> DriveSet {
        if core.gate.unrecorded().is_empty() {
            return DriveSet::EMPTY;
        }
        let layout = core.layout();
        let redundant =
            SymbolSet::first(layout.symbols()).minus(SymbolSet::first(layout.data_symbols()));
        let written = |word: &Codeword| {
            let row = word.row;
            word.subject.or(redundant).iter().map(move |symbol| layout.cell(row, symbol).drive)
        };
        let drives: DriveSet = self
            .fetch
            .codewords
            .iter()
            .flat_map(|word| written(word).collect::<Vec<_>>())
            .collect();
        drives.and(core.gate.unrecorded())
    }

    fn origin(&self) -> u64 {
        match &self.cause {
            Cause::Client(parts) => parts[0].request.0,
            Cause::Resync { .. } => resync_origin(self.op),
        }
    }

    fn durability(&self) -> Durability {
        // Y2: a sector leaves the list of damaged sectors only after it was written for good.
        if self.fetch.codewords.iter().any(|word| !word.listed.is_empty()) {
            return Durability::Durable;
        }
        let durable = |part: &Part| part.durability == Durability::Durable;
        match &self.cause {
            Cause::Client(parts) if parts.iter().any(durable) => Durability::Durable,
            Cause::Client(_) | Cause::Resync { .. } => Durability::Cached,
        }
    }

    /// Answers the write's clients with a failure, because they have waited for too long. Returns whether the write
    /// has ended: one that has begun to write goes on (W2).
    pub(crate) fn give_up(&mut self, core: &mut Core, now: Instant) -> bool {
        let Cause::Client(parts) = &self.cause else { return false };
        if self.phase == Phase::Reading {
            self.finish(core, now, Progress::Failed);
            return true;
        }
        assert_eq!(self.clients, Clients::Wait, "A1: operation {} is given up twice", self.op);
        let mut kept = self.scratch_sectors;
        for part in parts {
            kept += part.extent.sectors;
            let outcome = core.given_up_with(now, part.extent);
            let cost = std::mem::take(&mut self.cost);
            core.answer(DriveSet::EMPTY, Answer { request: part.request, outcome, cost });
        }
        self.clients = Clients::GivenUp(kept);
        core.writes.give_up(kept);
        false
    }

    fn finish(&mut self, core: &mut Core, now: Instant, end: Progress) {
        let is_writing = matches!(&self.phase, Phase::Writing(pending) if !pending.is_empty());
        assert!(!is_writing, "W2: operation {} still writes", self.op);
        self.fetch.close(core, now, false, None);
        for buf in self.scratch.drain(..) {
            core.out.release(buf);
        }
        match self.clients {
            Clients::Wait => self.answer(core, end),
            Clients::GivenUp(kept) => core.writes.let_go(kept),
        }
        if let Cause::Client(parts) = &self.cause {
            parts.iter().for_each(|part| core.out.release(BufId::Client(part.request)));
        }
    }

    /// Tells its clients how it has ended.
    fn answer(&mut self, core: &mut Core, end: Progress) {
        let Cause::Client(parts) = &self.cause else { return };
        let relies_on = self.relies_on(core);
        if self.phase != Phase::Reading {
            core.writes.end();
        }
        for part in parts {
            let damaged = match (end, &self.phase) {
                (Progress::Done | Progress::NotYet, _) => Vec::new(),
                (Progress::Failed, Phase::Logging(Logged::Never)) => all_of(part),
                (Progress::Failed, Phase::Writing(_) | Phase::Logging(_)) => {
                    unsafe_sectors(core, part)
                }
                // W3: nothing was written.
                (Progress::Failed, Phase::Reading) => all_of(part),
            };
            let (unknown, damaged) = (SectorSet::EMPTY, damaged.into_iter().collect());
            let outcome = Outcome::Done { unknown, damaged };
            // The write's cost is told with its first part only.
            let cost = std::mem::take(&mut self.cost);
            core.answer(relies_on, Answer { request: part.request, outcome, cost });
        }
    }
}

/// The origin of a resync's commands: a number that no client's request has.
fn resync_origin(op: OpId) -> u64 {
    u64::MAX - op
}

/// The sectors of a part that cannot be read back.
fn unsafe_sectors(core: &Core, part: &Part) -> Vec<u32> {
    let layout = core.layout();
    let on_lost = |row: Row, symbol: usize| !core.holds(layout.cell(row, symbol).drive, row.stripe);
    let redundant = layout.symbols() - layout.data_symbols();
    let is_unsafe = |lba: Lba| {
        let (row, symbol) = layout.find(lba);
        let lost = (0..layout.symbols()).filter(|&symbol| on_lost(row, symbol)).count();
        on_lost(row, symbol) && (lost > redundant || !core.is_redundant(row.stripe + 1))
    };
    let sectors = (0_u32..).zip(part.extent.iter());
    sectors.filter(|&(_, lba)| is_unsafe(lba)).map(|(sector, _)| sector).collect()
}

fn all_of(part: &Part) -> Vec<u32> {
    (0..part.extent.sectors.get() as u32).collect()
}

/// What clients change, by row and symbol, and in the order of their arrival where that is the same.
fn changes_of(layout: &Layout, parts: &[Part]) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for part in parts {
        let mut sectors = Vec::new();
        find_sectors(layout, part.extent, &mut sectors);
        for ArraySector { row, symbol, lba } in sectors {
            let sector = (lba - part.extent.lba).get() as u32;
            let place = Place { buf: BufId::Client(part.request), sector };
            changes.push(Change { row, value: Value { symbol, place } });
        }
    }
    changes.sort_by_key(|change| (change.row, change.value.symbol)); // stable
    changes
}
