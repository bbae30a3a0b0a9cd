//! Sectors of one drive are written again, because they were read back and are not what was written there.
//!
//! ```text
//!   (locked) --> Writing the bytes that are in memory --> Done
//!        |          ^
//!        v          | it has the checksum
//!     Reading the other drives --> computed
//!        |   ^
//!        +---+ a sector is damaged, or a drive was lost: others are asked
//! ```
//!
//! Whether it has helped shows when the sectors are read back once more.
//!
//! # Invariants
//!
//! - ME1. What is written has the checksum of what was written there last, or is that itself (VF4).
//! - ME2. Nothing waits in the journal for these sectors, and nothing else uses their stripes.

use levelhead_block::{BufId, Command, Durability, Effort, Place, Segment, ZeroTail};
use levelhead_erasure::SymbolSet;
use levelhead_units::{DriveIdx, Instant, Lba, Sectors};

use crate::action::{Action, SubId};
use crate::core::{Core, Enqueue, OpId, Purpose};
use crate::drives::Fate;
use crate::drives::queue::End;
use crate::ops::fetch::{Codeword, Fetch, FetchEnded, Manner, Wish, usable};
use crate::ops::read::decode;
use crate::shape::{Cell, Layout, Row};
use crate::verify::records::Part;

/// Which sectors of which drive, and whose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) drive: DriveIdx,
    pub(crate) part: Part,
}

/// How it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mended {
    /// It was written again.
    Written,
    /// It may be tried again.
    Later,
    /// Nothing says what it should be, or its drive is lost.
    Never,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct MendOp {
    op: OpId,
    pub(crate) span: Span,
    /// The other drives' parts of each sector's codeword.
    fetch: Fetch,
    /// What it is written from.
    buf: Option<BufId>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Reading,
    /// Checksums of what was computed are on their way.
    Summing,
    Writing(SubId),
    Done(Mended),
}

impl MendOp {
    /// Starts it with its stripes locked; [`MendOp::advance`] comes next.
    pub(crate) fn start(core: &mut Core, now: Instant, op: OpId, span: Span) -> Self {
        let fetch = Fetch::new(op, u64::MAX - op, None);
        let mut mend = Self { op, span, fetch, buf: None, phase: Phase::Done(Mended::Later) };
        let Span { drive, part } = span;
        let cell = |lba| Cell { drive, lba };
        let is_whole = core.verify.records.left_of(drive, part) == [part];
        let is_placed = part.extent.iter().all(|lba| core.unplaced.find(cell(lba)).is_none());
        if !core.drives.present().contains(drive) || core.has_failed() {
            mend.phase = Phase::Done(Mended::Never);
        } else if !is_whole || !is_placed {
            mend.phase = Phase::Done(Mended::Later); // ME2
        } else if let Some(buf) = core.verify.records.bytes(part.write) {
            core.retain(buf);
            mend.buf = Some(buf);
            mend.write(core, now, Place { buf, sector: part.offset });
        } else {
            mend.phase = Phase::Reading;
            mend.begin_words(core);
        }
        mend
    }

    /// The codewords of its sectors; some layouts have several of a codeword on one drive.
    fn begin_words(&mut self, core: &mut Core) {
        let Span { drive, part } = self.span;
        let mut words: Vec<(Row, SymbolSet)> = Vec::new();
        for lba in part.extent.iter() {
            let (row, symbol) = core.layout.symbol(Cell { drive, lba });
            match words.last_mut() {
                Some((last, symbols)) if *last == row => *symbols = symbols.with(symbol),
                Some(_) | None => words.push((row, SymbolSet::EMPTY.with(symbol))),
            }
        }
        for (row, symbols) in words {
            let others = usable(core, row).minus(symbols);
            self.fetch.begin(core, row, others);
            self.fetch.codewords.last_mut().expect("it was begun").subject = symbols;
        }
    }

    /// A read of it has ended.
    pub(crate) fn handle_done(&mut self, layout: &Layout, ended: FetchEnded<'_>) {
        self.fetch.handle_done(layout, ended);
    }

    /// Its write has ended. If its drive is lost by that, it is lost already.
    pub(crate) fn handle_written(&mut self, core: &Core, sub: SubId) {
        if let Phase::Writing(writing) = self.phase
            && writing == sub
        {
            let is_there = core.drives.present().contains(self.span.drive);
            self.phase = Phase::Done(if is_there { Mended::Written } else { Mended::Never });
        }
    }

    /// The checksums of what was computed.
    pub(crate) fn handle_digested(&mut self, core: &mut Core, now: Instant, sums: &[u32]) {
        let (Phase::Summing, Some(buf)) = (self.phase, self.buf) else {
            unreachable!("operation {} has computed nothing", self.op)
        };
        let Span { drive, part } = self.span;
        let right = part.extent.iter().map(|lba| core.verify.records.sum(Cell { drive, lba }));
        if right.eq(sums.iter().map(|&sum| Some(sum))) {
            self.write(core, now, Place { buf, sector: 0 });
        } else {
            self.phase = Phase::Done(Mended::Never); // ME1
        }
    }

    /// Moves on as the facts demand; returns how it has ended once it has.
    pub(crate) fn advance(&mut self, core: &mut Core, now: Instant) -> Option<Mended> {
        if matches!(self.phase, Phase::Reading) && self.fetch.subs.is_empty() {
            self.fetch.handle_lost(core);
            self.read(core, now);
        }
        let Phase::Done(mended) = self.phase else { return None };
        self.fetch.close(core, now, true, None);
        self.buf.take().into_iter().for_each(|buf| core.release(buf));
        Some(mended)
    }

    /// Asks for what is missing, or computes.
    fn read(&mut self, core: &mut Core, now: Instant) {
        let is_redundant = |word: &Codeword| word.row.stripe < core.synced && core.code.is_some();
        let data = core.layout.data_symbols();
        if core.has_failed() || !self.fetch.codewords.iter().all(is_redundant) {
            self.phase = Phase::Done(Mended::Never);
            return;
        }
        let mut wishes = Vec::new();
        for (at, word) in self.fetch.codewords.iter().enumerate() {
            let needed = data.saturating_sub(word.have.len());
            let untried = word.usable.minus(word.tried).minus(word.damaged);
            if untried.len() < needed {
                self.phase = Phase::Done(Mended::Never);
                return;
            }
            let symbols: SymbolSet = untried.iter().take(needed).collect();
            if !symbols.is_empty() {
                wishes.push(Wish { word: at, symbols });
            }
        }
        if !wishes.is_empty() {
            let manner = Manner { effort: Effort::Full, end: End::Tail, fate: Fate::Certain };
            self.fetch.ask(core, now, &wishes, manner);
            return;
        }
        let buf = core.acquire(self.span.part.extent.sectors);
        self.buf = Some(buf);
        for (lba, sector) in self.span.part.extent.iter().zip(0..) {
            let (row, symbol) = core.layout.symbol(Cell { drive: self.span.drive, lba });
            let word = self.fetch.find(row).expect("it was begun");
            let from = decode(core, &self.fetch.codewords[word], symbol);
            core.combine(Place { buf, sector }, from);
        }
        if !core.carries_content() {
            return self.write(core, now, Place { buf, sector: 0 });
        }
        let sectors = self.span.part.extent.sectors.get() as u32;
        let of = vec![Segment { place: Place { buf, sector: 0 }, sectors }];
        self.phase = Phase::Summing;
        core.actions.push_back(Action::Digest { id: self.op, of });
    }

    fn write(&mut self, core: &mut Core, now: Instant, place: Place) {
        let Span { drive, part } = self.span;
        if !core.drives.present().contains(drive) {
            self.phase = Phase::Done(Mended::Never);
            return;
        }
        let extent = part.extent;
        let sectors = extent.sectors.get() as u32;
        // A chance of its own: what has happened to the write need not happen to this one.
        let origin = core.own_origin();
        let (durability, zero_tail) = (Durability::Durable, ZeroTail::None);
        let what = Enqueue {
            purpose: Purpose::Op(self.op),
            drive,
            command: Command::Write { extent, durability, zero_tail },
            segments: vec![Segment { place, sectors }],
            origin,
            end: End::Tail,
            fate: Fate::Certain,
            since: None,
        };
        core.counters.verify_writes += 1;
        self.phase = Phase::Writing(core.enqueue(now, what));
    }
}

/// The stripes that sectors of a drive lie in.
pub(crate) fn stripes_of(layout: &Layout, span: &Span) -> std::ops::Range<u64> {
    let stripe = |lba: Lba| layout.symbol(Cell { drive: span.drive, lba }).0.stripe;
    let extent = span.part.extent;
    let last = extent.lba + (extent.sectors - Sectors::new(1));
    stripe(extent.lba)..stripe(last) + 1
}
