//! One step of a rebuild: what a drive that is being filled should hold of some stripes is computed from the other
//! drives, and written to it.
//!
//! ```text
//!   (locked, shared) --> Reading --> Writing --> Done: waits for the steps before it, with its stripes locked
//!                         |   ^
//!                         +---+ a sector is damaged, or a drive was lost: others are asked
//! ```
//!
//! Its commands wait for drives that have nothing else to do, one a drive at a time, unless it is in haste.
//!
//! # Invariants
//!
//! - FI1. No write changes a stripe from before it is read until the drive that is filled holds it. Reads go on: they
//!   have nothing to do with that drive.
//! - FI2. What waits for its place counts, not what is there.
//! - FI3. A sector that nothing gives is put onto the list of damaged sectors, with what is redundant of its codeword: that
//!   counts what is nowhere now. Everything else is copied. Where drives have no place for the list, or what is redundant
//!   still waits for its place, the step is done again later.
//! - FI4. That is done once no record from before would be found after a crash: it would count as newer, and put back what
//!   is redundant as if that counted zeroes.
//! - FI5. The copy of a mirror that is on the list, and of which another copy has the contents, is written like any other, and is
//!   off the list before the drive counts there.

use std::collections::VecDeque;

use levelhead_block::{BufId, Command, Durability, Effort, Place, Segment, ZeroTail};
use levelhead_erasure::SymbolSet;
use levelhead_units::{DriveIdx, Extent, Instant, Sectors};

use crate::action::append;
use crate::core::{Core, Enqueue, Purpose};
use crate::drives::Fate;
use crate::drives::queue::End;
use crate::names::{OpId, SubId};
use crate::ops::fetch::{Codeword, Fetch, Manner, Wish, usable};
use crate::shape::redundancy::Term;
use crate::shape::{Cell, Row};

/// Which stripes of which drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) drive: DriveIdx,
    pub(crate) first: u64,
    pub(crate) end: u64,
}

/// When its commands go into the drives' queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Haste {
    /// While a drive has nothing else to do.
    Idle,
    /// Now.
    Now,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct FillOp {
    op: OpId,
    pub(crate) span: Span,
    fetch: Fetch,
    phase: Phase,
    /// What was computed, until it is written.
    scratch: Option<BufId>,
    /// What was put onto the list of damaged sectors.
    damaged: Vec<Cell>,
    /// What is on that list, and is not damaged once it is written (FI5).
    repaired: Vec<Cell>,
    /// Whether it is to be done again.
    is_in_vain: bool,
}

#[derive(Clone, Debug)]
enum Phase {
    /// Reads that are to be asked for.
    Reading(VecDeque<DriveReads>),
    Writing(Writing),
    Done,
}

#[derive(Clone, Debug)]
struct DriveReads {
    drive: DriveIdx,
    wishes: Vec<Wish>,
}

#[derive(Clone, Debug)]
struct Writing {
    runs: VecDeque<WriteRun>,
    pending: Vec<SubId>,
}

#[derive(Clone, Debug)]
struct WriteRun {
    extent: Extent,
    segments: Vec<Segment>,
}

/// A symbol of the drive that is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Target {
    cell: Cell,
    word: usize,
    symbol: usize,
}

/// How a symbol follows from those that are had: the same for almost all codewords of a step.
#[derive(Clone, Debug)]
struct Recipe {
    have: SymbolSet,
    symbol: usize,
    terms: Vec<Term>,
}

impl FillOp {
    /// Begins a step whose stripes are locked; [`FillOp::advance`] comes next.
    pub(crate) fn start(core: &mut Core, op: OpId, span: Span) -> Self {
        let mut fetch = Fetch::new(op, u64::MAX - op, None);
        let (rows, symbols) = (core.layout().rows(), core.layout().symbols());
        for stripe in span.first..span.end {
            if !core.layout().group(stripe).contains(span.drive) {
                continue;
            }
            for row in (0..rows).map(|row| Row { stripe, row }) {
                let usable = usable(core, row);
                fetch.begin(core, row, usable);
                let own = (0..symbols)
                    .filter(|&symbol| core.layout().cell(row, symbol).drive == span.drive)
                    .collect();
                fetch.codewords.last_mut().expect("it was begun").subject = own;
            }
        }
        let phase = Phase::Reading(VecDeque::new());
        let (damaged, repaired) = (Vec::new(), Vec::new());
        Self { op, span, fetch, phase, scratch: None, damaged, repaired, is_in_vain: false }
    }

    /// A read of it has ended.
    pub(crate) fn fetch_mut(&mut self) -> &mut Fetch {
        &mut self.fetch
    }

    /// A write of it has ended.
    pub(crate) fn handle_written(&mut self, sub: SubId) {
        // One that was abandoned waits for nothing.
        if let Phase::Writing(writing) = &mut self.phase {
            writing.pending.retain(|&other| other != sub);
        }
    }

    /// Whether everything is copied.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.phase, Phase::Done)
    }

    /// Whether what it was computed from is still in memory, or on its way there.
    pub(crate) fn is_reading(&self) -> bool {
        matches!(self.phase, Phase::Reading(_))
    }

    /// What nothing gave, and what counts that: it is damaged from now on.
    pub(crate) fn damaged(&self) -> &[Cell] {
        &self.damaged
    }

    /// Whether something could not be had that may yet be.
    pub(crate) fn is_in_vain(&self) -> bool {
        self.is_in_vain
    }

    /// Moves on as the facts demand.
    pub(crate) fn advance(&mut self, core: &mut Core, now: Instant, haste: Haste) {
        let is_lost = !core.drives.filling().contains(self.span.drive);
        match &mut self.phase {
            Phase::Done => return,
            // What is inside the drive is still written from memory.
            Phase::Writing(writing) if core.has_failed() && !is_lost => writing.runs.clear(),
            Phase::Reading(_) | Phase::Writing(_) if is_lost || core.has_failed() => {
                return self.abandon(core, now);
            }
            Phase::Reading(_) | Phase::Writing(_) => {}
        }
        if matches!(self.phase, Phase::Reading(_)) {
            self.read(core, now, haste);
        }
        if let Phase::Writing(writing) = &mut self.phase {
            while let Some(run) = writing.runs.front() {
                let is_idle = core.drives.queue_len(self.span.drive) == 0;
                if haste == Haste::Idle && !is_idle {
                    break;
                }
                let (extent, segments) = (run.extent, run.segments.clone());
                writing.runs.pop_front();
                let (durability, zero_tail) = (Durability::Cached, ZeroTail::None);
                let command = Command::Write { extent, durability, zero_tail };
                core.counters.rebuild_writes += 1;
                writing.pending.push(core.enqueue(
                    now,
                    Enqueue {
                        purpose: Purpose::Op(self.op),
                        drive: self.span.drive,
                        command,
                        segments: segments.into(),
                        origin: u64::MAX - self.op,
                        end: End::Tail,
                        fate: Fate::Certain,
                        since: None,
                    },
                ));
            }
            if writing.runs.is_empty() && writing.pending.is_empty() {
                // Safe before the drive counts there (RB2).
                core.meta.undamage(std::mem::take(&mut self.repaired));
                self.close(core, now);
            }
        }
    }

    fn read(&mut self, core: &mut Core, now: Instant, haste: Haste) {
        let Phase::Reading(todo) = &mut self.phase else { return };
        if todo.is_empty() && self.fetch.subs.is_empty() {
            self.fetch.handle_lost(core);
            *todo = reads(core, &self.fetch.codewords, &|word| lacking(core, word));
            if todo.is_empty() {
                return self.compute(core, now);
            }
        }
        // A drive that was lost since is not asked: what it was to give is asked of others in the next round.
        todo.retain(|reads| !core.drives.away().contains(reads.drive));
        let mut left = VecDeque::new();
        for DriveReads { drive, wishes } in std::mem::take(todo) {
            if haste == Haste::Idle && core.drives.queue_len(drive) > 0 {
                left.push_back(DriveReads { drive, wishes });
                continue;
            }
            let manner = Manner { effort: Effort::Full, end: End::Tail, fate: Fate::Certain };
            let asked = self.fetch.ask(core, now, &wishes, manner);
            core.counters.rebuild_reads += u64::from(asked);
        }
        let is_over = left.is_empty() && self.fetch.subs.is_empty();
        self.phase = Phase::Reading(left);
        if is_over {
            self.read(core, now, haste);
        }
    }

    /// Everything that can be had was read: computes what the drive is to hold.
    fn compute(&mut self, core: &mut Core, now: Instant) {
        let is_hopeless =
            |word: &Codeword| owed(core, word).iter().any(|own| !can_compute(core, word, own));
        self.fetch.trust_unproven(is_hopeless);
        let (mut targets, mut damaged): (Vec<Target>, Vec<Cell>) = Default::default();
        let mut is_in_vain = false;
        for (at, word) in self.fetch.codewords.iter().enumerate() {
            let own = owed(core, word);
            let had: SymbolSet = own.iter().filter(|&own| can_compute(core, word, own)).collect();
            let target =
                |symbol| Target { cell: core.layout().cell(word.row, symbol), word: at, symbol };
            targets.extend(had.iter().map(target));
            let cells = nowhere(core, word, own.minus(had));
            if cells.iter().any(|&cell| core.log.unplaced.find(cell).is_some()) {
                is_in_vain |= !cells.is_empty();
            } else {
                damaged.extend(cells);
            }
        }
        if is_in_vain {
            damaged.clear();
        }
        if !damaged.is_empty() && !core.log.live.is_over_for(self.op) {
            return; // FI4
        }
        (self.damaged, self.is_in_vain) = (damaged, is_in_vain);
        let is_listed = |target: &&Target| core.meta.is_damaged(target.cell);
        self.repaired = targets.iter().filter(is_listed).map(|target| target.cell).collect();
        self.damaged.iter().for_each(|&cell| core.list_damaged(cell));
        targets.sort_unstable();
        let mut runs: VecDeque<WriteRun> = VecDeque::new();
        if !targets.is_empty() {
            let buf = core.out.acquire(Sectors::new(targets.len() as u64));
            self.scratch = Some(buf);
            let mut recipe: Option<Recipe> = None;
            for (&Target { cell, word, symbol }, sector) in targets.iter().zip(0..) {
                let place = Place { buf, sector };
                self.combine(core, word, symbol, place, &mut recipe);
                match runs.back_mut() {
                    Some(run)
                        if run.extent.end() == cell.lba
                            && core.area().are_neighbours(cell.lba, cell.lba) =>
                    {
                        run.extent.sectors += Sectors::new(1);
                        append(&mut run.segments, place);
                    }
                    Some(_) | None => {
                        let extent = Extent::new(cell.lba, Sectors::new(1));
                        let segments = vec![Segment { place, sectors: 1 }];
                        runs.push_back(WriteRun { extent, segments });
                    }
                }
            }
        }
        // What was read is not needed any more.
        self.fetch.close(core, now, false, None);
        self.phase = Phase::Writing(Writing { runs, pending: Vec::new() });
    }

    fn combine(
        &self,
        core: &mut Core,
        word: usize,
        symbol: usize,
        into: Place,
        recipe: &mut Option<Recipe>,
    ) {
        if !core.out.carries_content() {
            return;
        }
        let word = &self.fetch.codewords[word];
        let is_known = |known: &Recipe| known.symbol == symbol && known.have == word.have;
        if !recipe.as_ref().is_some_and(is_known) {
            let code = core.code().expect("only a redundant array is rebuilt");
            let terms = code.compute(&word.have, symbol);
            *recipe = Some(Recipe { have: word.have, symbol, terms });
        }
        let terms = recipe.iter().flat_map(|recipe| &recipe.terms);
        let from = terms.map(|&(coefficient, source)| (coefficient, word.place(source)));
        core.out.combine(into, from.collect());
    }

    /// The drive that it fills is lost, or there is nothing to fill it from.
    fn abandon(&mut self, core: &mut Core, now: Instant) {
        self.close(core, now);
    }

    fn close(&mut self, core: &mut Core, now: Instant) {
        self.fetch.close(core, now, true, None);
        self.scratch.take().into_iter().for_each(|buf| core.out.release(buf));
        self.phase = Phase::Done;
    }
}

/// Reads by their drives.
fn reads(
    core: &Core,
    words: &[Codeword],
    wanted: &dyn Fn(&Codeword) -> SymbolSet,
) -> VecDeque<DriveReads> {
    let mut all: Vec<DriveReads> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        for symbol in wanted(word).iter() {
            let drive = core.layout().cell(word.row, symbol).drive;
            let own = match all.iter().position(|reads| reads.drive == drive) {
                Some(own) => own,
                None => {
                    all.push(DriveReads { drive, wishes: Vec::new() });
                    all.len() - 1
                }
            };
            let wishes = &mut all[own].wishes;
            let one = std::iter::once(symbol).collect();
            match wishes.last_mut() {
                Some(last) if last.word == at => last.symbols = last.symbols.or(one),
                Some(_) | None => wishes.push(Wish { word: at, symbols: one }),
            }
        }
    }
    all.into()
}

/// What the drive should hold of a codeword, if it can be had. What is on the list of damaged sectors is damaged whatever the
/// drive holds; but of a mirror, where another copy has it: that was written while the drive was away.
fn owed(core: &Core, word: &Codeword) -> SymbolSet {
    match core.layout().spec().is_mirror() && !word.have.is_empty() {
        true => word.subject,
        false => word.subject.minus(word.listed),
    }
}

/// The symbols that are still to be read so that a codeword gives what the drive should hold; none if it does, or
/// cannot.
fn lacking(core: &Core, word: &Codeword) -> SymbolSet {
    let data = core.layout().data_symbols();
    let untried = word.usable.minus(word.tried);
    let is_valid = word.row.stripe < core.holdings.synced() || core.layout().spec().is_mirror();
    if !is_valid {
        // Redundancy is computed from all of the data, or not at all.
        return untried.and(SymbolSet::first(data));
    }
    let needed = data.saturating_sub(word.have.len());
    if needed == 0 {
        return SymbolSet::EMPTY;
    }
    if untried.len() < needed {
        return untried; // To know which data nothing gives.
    }
    let avoided = core.drives.sat_out().or(core.drives.silent());
    let on = |symbol: usize| core.layout().cell(word.row, symbol).drive;
    let (last, first): (Vec<usize>, Vec<usize>) =
        untried.iter().partition(|&symbol| avoided.contains(on(symbol)));
    first.into_iter().chain(last).take(needed).collect()
}

/// What is damaged where what was read does not give these symbols of the drive (FI3).
fn nowhere(core: &Core, word: &Codeword, lacking: SymbolSet) -> Vec<Cell> {
    let data = SymbolSet::first(core.layout().data_symbols());
    let symbols = match () {
        () if lacking.is_empty() || core.layout().spec().is_mirror() => lacking,
        () if word.row.stripe < core.holdings.synced() => {
            let redundant = SymbolSet::first(core.layout().symbols()).minus(data);
            data.minus(word.have).or(redundant)
        }
        // What is redundant there is not used, and will be computed anew.
        () => lacking.and(data),
    };
    let cells = symbols.iter().map(|symbol| core.layout().cell(word.row, symbol));
    cells.filter(|&cell| !core.meta.is_damaged(cell)).collect()
}

/// Whether what was read gives a symbol.
fn can_compute(core: &Core, word: &Codeword, symbol: usize) -> bool {
    let data = SymbolSet::first(core.layout().data_symbols());
    let is_valid = word.row.stripe < core.holdings.synced() || core.layout().spec().is_mirror();
    match is_valid {
        true => word.have.len() >= data.len(),
        false => !data.contains(symbol) && data.minus(word.have).is_empty(),
    }
}
