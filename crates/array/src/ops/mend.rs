//! Sectors of one drive are written again, because they were read back and are not what was written there.
//!
//! ```text
//!   (locked) --> Writing the bytes that are in memory --> Done
//!        |          ^                 ^
//!        v          | checksum right  |
//!     Recalling: reading what the     |
//!     journal's rings had, unless     |
//!     one falls silent                |
//!        |                            |
//!        v otherwise                  | checksum right
//!     Reading the other drives --> computed
//!        |   ^
//!        +---+ a sector is damaged, or a drive was lost: others are asked
//! ```
//!
//! Before it is written its codewords are looked at: what is redundant there may be stale, and is written with it
//! ([`beside`]).
//!
//! Whether it has helped shows when the sectors are read back once more.
//!
//! # Invariants
//!
//! - ME1. What is written has the checksum of what was written there last, or is that itself (VF4).
//! - ME2. Nothing waits in the journal for these sectors, and nothing else uses their stripes.
//! - ME3. What is redundant is written only where the others match with what the drive had before, or is a copy; and where it
//!   does not wait to be read back itself.

mod beside;

use levelhead_block::{BufId, Command, Durability, Effort, Outcome, Place, Segment, ZeroTail};
use levelhead_erasure::SymbolSet;
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Lba, Sectors};

use self::beside::{Clue, Own, Stale};
use crate::action::Action;
use crate::core::spread::Spread;
use crate::core::{Core, Enqueue, Purpose};
use crate::drives::Fate;
use crate::drives::queue::End;
use crate::log::rules::Rule;
use crate::names::{OpId, SubId};
use crate::ops::fetch::computing::decode;
use crate::ops::fetch::{Codeword, Fetch, FetchEnded, Manner, Wish, usable};
use crate::ops::read::on_drives;
use crate::shape::{Cell, Layout, Row};
use crate::verify::on_rings::{RingRun, RingSector};
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
#[derive(Clone, Debug)]
pub(crate) struct MendOp {
    op: OpId,
    pub(crate) span: Span,
    /// The other drives' parts of each sector's codeword.
    fetch: Fetch,
    /// Reads of rings, in the order of its sectors.
    recalls: Vec<Recall>,
    /// What it is written from, and other memory that it holds.
    bufs: Vec<BufId>,
    /// Where in it the bytes are that may be right.
    found: Vec<Segment>,
    /// What its drive has there now.
    before: Option<Recall>,
    phase: Phase,
}

/// A read of a ring.
#[derive(Clone, Copy, Debug)]
struct Recall {
    sub: SubId,
    ring: DriveIdx,
    sectors: u32,
    is_pending: bool,
    /// What it has brought.
    buf: Option<BufId>,
}

/// The end of such a read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recalled<'a> {
    pub(crate) sub: SubId,
    pub(crate) buf: Option<BufId>,
    pub(crate) outcome: &'a Outcome,
}

/// Where bytes are from that may be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Rings,
    Others,
}

#[derive(Clone, Debug)]
enum Phase {
    Recalling,
    Reading,
    /// Checksums of what was found are on their way.
    Summing(Source),
    /// What is right is found; its codewords and what its drive has are being read.
    Looking,
    /// Sums over them are on their way.
    Comparing(Vec<Clue>),
    /// Its own sectors, and what is redundant beside them.
    Writing(Vec<SubId>),
    Done(Mended),
}

impl MendOp {
    /// Starts it with its stripes locked; [`MendOp::advance`] comes next.
    pub(crate) fn start(core: &mut Core, now: Instant, op: OpId, span: Span) -> Self {
        let fetch = Fetch::new(op, u64::MAX - op, None);
        let (recalls, bufs, found) = Default::default();
        let phase = Phase::Done(Mended::Later);
        let before = None;
        let mut mend = Self { op, span, fetch, recalls, bufs, found, before, phase };
        let Span { drive, part } = span;
        let cell = |lba| Cell { drive, lba };
        let is_whole = core.verify.records.left_of(drive, part) == [part];
        let is_placed = !core.verify.keeps(Rule::MendPlaced)
            || part.extent.iter().all(|lba| core.log.unplaced.find(cell(lba)).is_none());
        if !core.drives.present().contains(drive) || core.has_failed() {
            mend.phase = Phase::Done(Mended::Never);
        } else if !is_whole || !is_placed {
            mend.phase = Phase::Done(Mended::Later); // ME2
        } else if let Some(buf) = core.verify.records.bytes(part.write) {
            core.out.retain(buf);
            mend.bufs.push(buf);
            let sectors = part.extent.sectors.get() as u32;
            mend.found = vec![Segment { place: Place { buf, sector: part.offset }, sectors }];
            mend.look(core, now);
        } else {
            mend.recall(core, now);
        }
        mend
    }

    /// Asks the rings for what the journal had, if they have had all of it.
    fn recall(&mut self, core: &mut Core, now: Instant) {
        let runs = core.verify.records.on_rings(self.span.part).unwrap_or_default();
        let prompt = core.drives.present().without(core.drives.silent());
        if runs.is_empty() || runs.iter().any(|run| !prompt.contains(run.first.ring)) {
            return self.turn_to_others(core);
        }
        for RingRun { first: RingSector { ring, lba }, sectors } in runs {
            let place = Place { buf: core.out.name_buf(), sector: 0 };
            let extent = Extent::new(lba, Sectors::new(sectors.into()));
            let what = Enqueue {
                purpose: Purpose::Recall(self.op),
                drive: ring,
                command: Command::Read { extent, effort: Effort::Full },
                segments: Segment { place, sectors }.into(),
                origin: core.own_origin(),
                end: End::Tail,
                fate: Fate::Certain,
                since: None,
            };
            let sub = core.enqueue(now, what);
            self.recalls.push(Recall { sub, ring, sectors, is_pending: true, buf: None });
        }
        self.phase = Phase::Recalling;
    }

    /// A read of a ring has ended.
    pub(crate) fn handle_recalled(&mut self, core: &mut Core, recalled: Recalled<'_>) {
        let Recalled { sub, buf, outcome } = recalled;
        self.bufs.extend(buf);
        if let Some(before) = self.before.as_mut().filter(|before| before.sub == sub) {
            before.is_pending = false;
            before.buf = buf.filter(|_| outcome.is_good());
            return;
        }
        let recall = self.recalls.iter_mut().find(|recall| recall.sub == sub);
        let recall = recall.expect("it has asked for this");
        recall.is_pending = false;
        recall.buf = buf.filter(|_| outcome.is_good());
        if self.recalls.iter().any(|recall| recall.is_pending) {
            return;
        }
        let segment = |recall: &Recall| {
            let place = Place { buf: recall.buf?, sector: 0 };
            Some(Segment { place, sectors: recall.sectors })
        };
        match self.recalls.iter().map(segment).collect::<Option<Vec<Segment>>>() {
            Some(found) if core.out.carries_content() => {
                core.out.push(Action::digest(self.op, found.clone()));
                (self.found, self.phase) = (found, Phase::Summing(Source::Rings));
            }
            Some(_) | None => self.turn_to_others(core),
        }
    }

    /// These drives are silent: what the journal had is not waited for any more where one of them has it. Returns whether it was.
    pub(crate) fn note_silent(&mut self, core: &mut Core, now: Instant, silent: DriveSet) -> bool {
        let is_held = |recall: &Recall| recall.is_pending && silent.contains(recall.ring);
        if matches!(self.phase, Phase::Looking) {
            let is_asked = !self.fetch.pending_drives().and(silent).is_empty();
            self.fetch.leave(core, now, silent);
            let before = self.before.take_if(|before| is_held(before));
            before.iter().for_each(|before| core.abandon(now, before.sub));
            return is_asked || before.is_some();
        }
        if !self.recalls.iter().any(is_held) {
            return false;
        }
        for recall in self.recalls.drain(..).filter(|recall| recall.is_pending) {
            core.abandon(now, recall.sub);
        }
        self.turn_to_others(core);
        true
    }

    /// The other drives say what it should be, if anything does.
    fn turn_to_others(&mut self, core: &mut Core) {
        self.phase = Phase::Reading;
        self.begin_words(core);
    }

    /// The codewords of its sectors; some layouts have several of a codeword on one drive.
    fn begin_words(&mut self, core: &mut Core) {
        let Span { drive, part } = self.span;
        let mut words: Vec<(Row, SymbolSet)> = Vec::new();
        for lba in part.extent.iter() {
            let (row, symbol) = core.layout().symbol(Cell { drive, lba });
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
        let Phase::Writing(pending) = &mut self.phase else { return };
        pending.retain(|&writing| writing != sub);
        if pending.is_empty() {
            let is_there = core.drives.present().contains(self.span.drive);
            self.phase = Phase::Done(if is_there { Mended::Written } else { Mended::Never });
        }
    }

    /// The checksums of what was computed.
    pub(crate) fn handle_digested(&mut self, core: &mut Core, now: Instant, sums: &[u32]) {
        let Phase::Summing(source) = self.phase else {
            unreachable!("operation {} has computed nothing", self.op)
        };
        let Span { drive, part } = self.span;
        if core.verify.records.left_of(drive, part) != [part] {
            self.phase = Phase::Done(Mended::Later); // It had to give way: nothing says any more what it should be.
            return;
        }
        let right = part.extent.iter().map(|lba| core.verify.records.sum(Cell { drive, lba }));
        let is_right = right.eq(sums.iter().map(|&sum| Some(sum))); // ME1
        match source {
            Source::Rings if is_right => {
                core.counters.verify_recalled += 1;
                self.look(core, now);
            }
            Source::Rings => self.turn_to_others(core),
            Source::Others if is_right => self.look(core, now),
            Source::Others => self.phase = Phase::Done(Mended::Never),
        }
    }

    /// Moves on as the facts demand; returns how it has ended once it has.
    pub(crate) fn advance(&mut self, core: &mut Core, now: Instant) -> Option<Mended> {
        if matches!(self.phase, Phase::Reading) && self.fetch.subs.is_empty() {
            self.fetch.handle_lost(core);
            self.read(core, now);
        }
        let is_asked = |before: &Recall| before.is_pending;
        if matches!(self.phase, Phase::Looking)
            && self.fetch.subs.is_empty()
            && !self.before.as_ref().is_some_and(is_asked)
        {
            self.compare(core, now);
        }
        let Phase::Done(mended) = self.phase else { return None };
        self.fetch.close(core, now, true, None);
        self.bufs.drain(..).for_each(|buf| core.out.release(buf));
        Some(mended)
    }

    /// Asks for what is missing, or computes.
    fn read(&mut self, core: &mut Core, now: Instant) {
        // Where redundancy is not valid, the checksum says whether it is all the same.
        let is_sure = core.out.carries_content();
        let is_redundant = |word: &Codeword| {
            core.code().is_some() && (is_sure || word.row.stripe < core.holdings.synced())
        };
        let data = core.layout().data_symbols();
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
            let late = on_drives(core.layout(), word, core.drives.silent());
            let in_turn = untried.minus(late).iter().chain(untried.and(late).iter());
            let symbols: SymbolSet = in_turn.take(needed).collect();
            if !symbols.is_empty() {
                wishes.push(Wish { word: at, symbols });
            }
        }
        if !wishes.is_empty() {
            self.fetch.ask(core, now, &wishes, MANNER);
            return;
        }
        let buf = core.out.acquire(self.span.part.extent.sectors);
        self.bufs.push(buf);
        for (lba, sector) in self.span.part.extent.iter().zip(0..) {
            let (row, symbol) = core.layout().symbol(Cell { drive: self.span.drive, lba });
            let word = self.fetch.find(row).expect("it was begun");
            let from = decode(core, &self.fetch.codewords[word], symbol);
            core.out.combine(Place { buf, sector }, from);
        }
        let sectors = self.span.part.extent.sectors.get() as u32;
        self.found = vec![Segment { place: Place { buf, sector: 0 }, sectors }];
        if !core.out.carries_content() {
            return self.write(core, now, Vec::new());
        }
        self.phase = Phase::Summing(Source::Others);
        core.out.push(Action::digest(self.op, self.found.clone()));
    }

    /// Reads what is beside it and what its drive has, where that may say that something redundant is stale.
    fn look(&mut self, core: &mut Core, now: Instant) {
        let is_asked = core.code().is_some() && core.out.carries_content() && !core.has_failed();
        if !is_asked || !core.drives.silent().without(core.drives.lost()).is_empty() {
            return self.write(core, now, Vec::new());
        }
        if self.fetch.codewords.is_empty() {
            self.begin_words(core);
        }
        self.fetch.handle_lost(core);
        let wish = |(word, codeword): (usize, &Codeword)| {
            let known = codeword.tried.or(codeword.have).or(codeword.damaged);
            Wish { word, symbols: codeword.usable.minus(known) }
        };
        let wishes = self.fetch.codewords.iter().enumerate().map(wish);
        let wishes: Vec<Wish> = wishes.filter(|wish| !wish.symbols.is_empty()).collect();
        self.fetch.ask(core, now, &wishes, MANNER);
        let Span { drive, part } = self.span;
        let on_drive = core.area().on_drive(part.extent);
        let sectors = on_drive.sectors.get() as u32;
        let place = Place { buf: core.out.name_buf(), sector: 0 };
        let what = Enqueue {
            purpose: Purpose::Recall(self.op),
            drive,
            command: Command::Read { extent: on_drive, effort: Effort::Full },
            segments: Segment { place, sectors }.into(),
            origin: core.own_origin(),
            end: End::Tail,
            fate: Fate::Certain,
            since: None,
        };
        let sub = core.enqueue(now, what);
        self.before = Some(Recall { sub, ring: drive, sectors, is_pending: true, buf: None });
        self.phase = Phase::Looking;
    }

    /// Sectors of it that are symbols of a codeword.
    fn own(&self, core: &Core, word: &Codeword) -> Vec<Own> {
        let (first, area) = (self.span.part.extent.lba, core.area());
        let spread = Spread::of(area, self.span.part.extent, area.on_drive(self.span.part.extent));
        let own = |symbol| {
            let Cell { lba, .. } = core.layout().cell(word.row, symbol);
            let sector = (lba - first).get() as u32;
            let written = beside::place_at(&self.found, sector);
            let buf = self.before.as_ref().and_then(|before| before.buf);
            Own { symbol, written, on_drive: buf.map(|buf| spread.place(buf, sector)) }
        };
        word.subject.iter().map(own).collect()
    }

    /// Has compared what was read.
    fn compare(&mut self, core: &mut Core, now: Instant) {
        let (mut clues, mut sums) = (Vec::new(), Vec::new());
        for (at, word) in self.fetch.codewords.iter().enumerate() {
            for (clue, sum) in beside::clues(core, at, word, &self.own(core, word)) {
                clues.push(clue);
                sums.push(sum);
            }
        }
        if sums.is_empty() {
            return self.write(core, now, Vec::new());
        }
        self.phase = Phase::Comparing(clues);
        core.out.push(Action::Check { op: self.op, sums });
    }

    /// Which of the sums were zero.
    pub(crate) fn handle_checked(&mut self, core: &mut Core, now: Instant, zero: &[bool]) {
        let Phase::Comparing(clues) = &mut self.phase else {
            unreachable!("operation {} has compared nothing", self.op)
        };
        let clues = std::mem::take(clues).into_iter();
        let seen: Vec<(Clue, bool)> = clues.zip(zero.iter().copied()).collect();
        self.fetch.handle_lost(core);
        let mut stale = Vec::new();
        for (at, word) in self.fetch.codewords.iter().enumerate() {
            stale.extend(beside::stale(core, at, word, &self.own(core, word), &seen));
        }
        self.write(core, now, stale);
    }

    /// Writes it, and what is stale beside it.
    fn write(&mut self, core: &mut Core, now: Instant, stale: Vec<Stale>) {
        let Span { drive, part } = self.span;
        if !core.drives.present().contains(drive) || core.has_failed() {
            self.phase = Phase::Done(Mended::Never);
            return;
        }
        core.counters.verify_writes += 1;
        core.counters.verify_beside += stale.len() as u64;
        let mut writes = vec![self.enqueue(core, now, drive, part.extent, self.found.clone())];
        if !stale.is_empty() {
            let buf = core.out.acquire(Sectors::new(stale.len() as u64));
            self.bufs.push(buf);
            for (Stale { cell, from }, sector) in stale.into_iter().zip(0..) {
                let place = Place { buf, sector };
                core.out.combine(place, from);
                let extent = Extent::new(cell.lba, Sectors::new(1));
                let segments = vec![Segment { place, sectors: 1 }];
                writes.push(self.enqueue(core, now, cell.drive, extent, segments));
            }
        }
        self.phase = Phase::Writing(writes);
    }

    fn enqueue(
        &self,
        core: &mut Core,
        now: Instant,
        drive: DriveIdx,
        extent: Extent,
        segments: Vec<Segment>,
    ) -> SubId {
        // A chance of its own: what has happened to the write need not happen to this one.
        let origin = core.own_origin();
        let (durability, zero_tail) = (Durability::Durable, ZeroTail::None);
        let what = Enqueue {
            purpose: Purpose::Op(self.op),
            drive,
            command: Command::Write { extent, durability, zero_tail },
            segments: segments.into(),
            origin,
            end: End::Tail,
            fate: Fate::Certain,
            since: None,
        };
        core.enqueue(now, what)
    }
}

const MANNER: Manner = Manner { effort: Effort::Full, end: End::Tail, fate: Fate::Certain };

/// The stripes that sectors of a drive lie in.
pub(crate) fn stripes_of(layout: &Layout, span: &Span) -> std::ops::Range<u64> {
    let stripe = |lba: Lba| layout.symbol(Cell { drive: span.drive, lba }).0.stripe;
    let extent = span.part.extent;
    let last = extent.lba + (extent.sectors - Sectors::new(1));
    stripe(extent.lba)..stripe(last) + 1
}
