//! Symbols of some codewords on their way from the drives: what reads and writes share.
//!
//! A [`Codeword`] holds the facts about its symbols as sets; nothing here decides what to ask for.
//!
//! # Invariants
//!
//! - F1. A symbol is *had* only after its sector was read without failure, and its place names where.
//! - F2. Unknown is not damaged: a symbol that was not given without retries may be asked for again, one that
//!   the drive found damaged is not.
//! - F3. A symbol is pending in at most one sub-request, and until that ends.
//! - F4. What was computed and has not the checksum that is known of it says that what is had does not match: from then on nothing
//!   is computed in its codeword.
//! - F5. What a drive gives and nothing says a checksum of, because its tag sector cannot be read or has none, is used only where
//!   the codeword gives no other way: one bad tag sector costs no data. What has another checksum than it should is never used.

pub(crate) mod computing;

use levelhead_block::{BufId, Command, Effort, Outcome, Place, Segment};
use levelhead_erasure::SymbolSet;
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Lba, Sectors};

use self::computing::Proving;
pub(crate) use crate::core::room::{ArraySector, Wish};
use crate::core::spread::Spread;
use crate::core::{Core, Enqueue, Purpose};
use crate::drives::Fate;
use crate::drives::queue::End;
use crate::log::rules::Rule;
use crate::names::{OpId, SubId};
use crate::shape::{Cell, Layout, Row};

/// The widest gap between two sub-requests to one drive that become one. Reading 64 KiB more takes under a
/// millisecond; a second sub-request usually waits for a whole rotation.
const GAP_MAX: Sectors = Sectors::new(16);

/// What is known of one codeword's symbols.
#[derive(Clone, Debug)]
pub(crate) struct Codeword {
    pub(crate) row: Row,
    /// What the operation is about: symbols to read, or symbols that get new values.
    pub(crate) subject: SymbolSet,
    /// Symbols that may be asked for at all.
    pub(crate) usable: SymbolSet,
    /// Asked for at least once.
    pub(crate) tried: SymbolSet,
    /// Asked for, not back yet.
    pub(crate) pending: SymbolSet,
    pub(crate) have: SymbolSet,
    /// The drive stopped early.
    pub(crate) unknown: SymbolSet,
    /// Asked for again, with retries.
    pub(crate) retried: SymbolSet,
    /// The drive tried everything, or the symbol is on the list of damaged sectors.
    pub(crate) damaged: SymbolSet,
    /// On that list, and not in memory: no other symbols say what it holds.
    pub(crate) listed: SymbolSet,
    /// Had because they were computed, and have the checksum that is known of them.
    pub(crate) computed: SymbolSet,
    /// Computed, and without that checksum (F4).
    pub(crate) wrong: SymbolSet,
    /// Of those that count as damaged, those that were read and of which nothing says a checksum;
    pub(crate) unproven: SymbolSet,
    /// and those that are had in spite of that, because there is no other way (F5);
    pub(crate) trusted: SymbolSet,
    /// those that have another checksum than they should.
    pub(crate) corrupt: SymbolSet,
    places: Places,
}

/// Symbols whose places lie in the codeword itself.
const NEAR: usize = 8;

/// Where the symbols that are had lie. Those of the first symbols lie in the codeword itself: most arrays have no more
/// drives, and their reads need no memory for this.
#[derive(Clone, Debug)]
struct Places {
    near: [Option<Place>; NEAR],
    far: Vec<Option<Place>>,
}

impl Places {
    fn new(symbols: usize) -> Self {
        Self { near: [None; NEAR], far: vec![None; symbols.saturating_sub(NEAR)] }
    }

    fn get(&self, symbol: usize) -> Option<Place> {
        if symbol < NEAR { self.near[symbol] } else { self.far[symbol - NEAR] }
    }

    fn set(&mut self, symbol: usize, place: Place) {
        let entry =
            if symbol < NEAR { &mut self.near[symbol] } else { &mut self.far[symbol - NEAR] };
        *entry = Some(place);
    }
}

impl Codeword {
    /// What nothing says a checksum of is had (F5).
    fn trust(&mut self) {
        self.have = self.have.or(self.unproven);
        self.damaged = self.damaged.minus(self.unproven);
        self.trusted = self.trusted.or(std::mem::take(&mut self.unproven));
    }

    /// The place of a symbol that is had.
    pub(crate) fn place(&self, symbol: usize) -> Place {
        assert!(self.have.contains(symbol), "F1: {symbol} of {:?}", self.row);
        self.places.get(symbol).expect("F1")
    }
}

/// The codewords of an operation and its reads in progress.
#[derive(Clone, Debug)]
pub(crate) struct Fetch {
    op: OpId,
    origin: u64,
    pub(crate) codewords: Vec<Codeword>,
    /// Since when a client waits, if one does.
    since: Option<Instant>,
    /// Reads asked for and not ended.
    pub(crate) subs: Vec<Asked>,
    /// Buffers of reads that ended.
    filled: Vec<BufId>,
    /// What was computed and waits for its checksums.
    proving: Option<Proving>,
}

/// A read that a drive was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) id: SubId,
    pub(crate) drive: DriveIdx,
    pub(crate) asked: Instant,
}

/// The end of such a read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FetchEnded<'a> {
    pub(crate) sub: SubId,
    pub(crate) drive: DriveIdx,
    /// The sectors of the drive that it read.
    pub(crate) extent: Extent,
    /// The buffer that it filled; absent where the drive is lost.
    pub(crate) buf: Option<BufId>,
    /// Where they lie in it.
    pub(crate) spread: &'a Spread,
    /// Those of them that count as damaged because nothing says their checksum (F5).
    pub(crate) unproven: &'a [u32],
    /// Those that do because they have another one than they should.
    pub(crate) corrupt: &'a [u32],
    pub(crate) outcome: &'a Outcome,
}

/// Neighbouring sectors of one drive that become one read.
#[derive(Clone, Copy, Debug)]
struct Run {
    drive: DriveIdx,
    extent: Extent,
}

/// How to ask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub(crate) effort: Effort,
    pub(crate) end: End,
    pub(crate) fate: Fate,
}

impl Fetch {
    pub(crate) fn new(op: OpId, origin: u64, since: Option<Instant>) -> Self {
        let (codewords, subs, filled) = (Vec::new(), Vec::new(), Vec::new());
        Self { op, origin, codewords, since, subs, filled, proving: None }
    }

    /// The fetch of an operation that begins, in the memory of one that was closed.
    pub(crate) fn renew(&mut self, op: OpId, origin: u64, since: Option<Instant>) {
        assert!(self.subs.is_empty(), "operation {} still waits", self.op);
        assert!(self.filled.is_empty(), "A4: operation {}", self.op);
        assert!(self.proving.is_none(), "operation {} proves something", self.op);
        self.codewords.clear();
        (self.op, self.origin, self.since) = (op, origin, since);
    }

    /// Adds a codeword without subject; rows come in ascending order. What is not in its place yet, and what
    /// was not read back, is had from the start (J6, VF3).
    pub(crate) fn begin(&mut self, core: &mut Core, row: Row, usable: SymbolSet) {
        self.add(core.layout(), row, usable);
        let waits_for_nothing = core.log.unplaced.is_empty() && core.verify.records.is_empty();
        if waits_for_nothing && core.meta.damaged().is_empty() {
            return;
        }
        let word = self.codewords.last_mut().expect("it was added");
        // Y1: what is on the list is not read, and not asked for.
        let listed: SymbolSet = (0..core.layout().symbols())
            .filter(|&symbol| core.meta.is_damaged(core.layout().cell(row, symbol)))
            .collect();
        (word.damaged, word.tried, word.listed) = (listed, listed, listed);
        self.know_listed(core);
        let word = self.codewords.last_mut().expect("it was added");
        for symbol in usable.iter() {
            let cell = core.layout().cell(row, symbol);
            // Y1: what is on the list is had from no record, as if it were read. What waits for its place is newer than the list.
            let is_listed = listed.contains(symbol);
            let may_keep = !is_listed && core.verify.keeps(Rule::FromRecord);
            let kept = || core.verify.records.find(cell).filter(|_| may_keep);
            let place = core.log.unplaced.find(cell).or_else(kept);
            let Some(place) = place else { continue };
            word.have = word.have.with(symbol);
            word.damaged = word.damaged.without(symbol);
            word.listed = word.listed.without(symbol);
            word.tried = word.tried.with(symbol);
            word.places.set(symbol, place);
            core.out.retain(place.buf);
            self.filled.push(place.buf);
        }
    }

    /// Redundancy counts data on the list as zeroes, so it is known as that for every computation.
    fn know_listed(&mut self, core: &mut Core) {
        let word = self.codewords.last_mut().expect("it was added");
        let data = SymbolSet::first(core.layout().data_symbols());
        let known = word.listed.and(data);
        // A list that was full covers data that redundancy counts as what it is.
        let is_exact = !core.layout().spec().is_mirror() && !core.meta.damaged().is_widened();
        if known.is_empty() || !is_exact {
            return;
        }
        let place = Place { buf: core.out.acquire(Sectors::new(1)), sector: 0 };
        core.out.combine(place, Vec::new());
        self.filled.push(place.buf);
        word.have = word.have.or(known);
        known.iter().for_each(|symbol| word.places.set(symbol, place));
    }

    /// Adds a codeword of which nothing is had.
    pub(crate) fn add(&mut self, layout: &Layout, row: Row, usable: SymbolSet) {
        assert!(self.codewords.last().is_none_or(|last| last.row < row));
        let (subject, tried, pending) = Default::default();
        let (have, unknown, retried, damaged) = Default::default();
        let (listed, computed, wrong) = Default::default();
        let (unproven, trusted, corrupt) = Default::default();
        let places = Places::new(layout.symbols());
        self.codewords.push(Codeword {
            row,
            subject,
            usable,
            tried,
            pending,
            have,
            unknown,
            retried,
            damaged,
            listed,
            computed,
            wrong,
            unproven,
            trusted,
            corrupt,
            places,
        });
    }

    /// The codeword of a row, by its place in the list.
    pub(crate) fn find(&self, row: Row) -> Option<usize> {
        self.codewords.binary_search_by_key(&row, |word| word.row).ok()
    }

    /// Asks for symbols, with one sub-request for cells of one drive that lie close together: gaps of up to
    /// [`GAP_MAX`] between them are read, too. Returns how many sub-requests that made.
    pub(crate) fn ask(
        &mut self,
        core: &mut Core,
        now: Instant,
        wishes: &[Wish],
        manner: Manner,
    ) -> u32 {
        self.mark(wishes);
        let mut cells = core.reads.cells.take();
        for &Wish { word, symbols } in wishes {
            let row = self.codewords[word].row;
            cells.extend(symbols.iter().map(|symbol| core.layout().cell(row, symbol)));
        }
        cells.sort_unstable();
        let before = self.subs.len();
        let mut run: Option<Run> = None;
        for &Cell { drive, lba } in &cells {
            if let Some(run) = &mut run
                && run.drive == drive
                && self.bridge(core, drive, run.extent.end(), lba)
            {
                run.extent.sectors = lba - run.extent.lba + Sectors::new(1);
                continue;
            }
            let next = Run { drive, extent: Extent::new(lba, Sectors::new(1)) };
            run.replace(next).into_iter().for_each(|run| self.ask_run(core, now, run, manner));
        }
        run.into_iter().for_each(|run| self.ask_run(core, now, run, manner));
        core.reads.cells.give_back(cells);
        (self.subs.len() - before) as u32
    }

    /// Asks a drive for neighbouring sectors.
    fn ask_run(&mut self, core: &mut Core, now: Instant, run: Run, manner: Manner) {
        let Run { drive, extent } = run;
        let place = Place { buf: core.out.name_buf(), sector: 0 };
        let sectors = u32::try_from(extent.sectors.get()).expect("a run fits a request");
        let sub = core.enqueue(
            now,
            Enqueue {
                purpose: Purpose::Op(self.op),
                drive,
                command: Command::Read { extent, effort: manner.effort },
                segments: Segment { place, sectors }.into(),
                origin: self.origin,
                end: manner.end,
                fate: manner.fate,
                since: self.since,
            },
        );
        self.subs.push(Asked { id: sub, drive, asked: now });
    }

    /// Notes that these symbols will be asked for, so that no gap takes them (F3).
    pub(crate) fn mark(&mut self, wishes: &[Wish]) {
        for &Wish { word, symbols } in wishes {
            let word = &mut self.codewords[word];
            assert!(symbols.minus(word.usable).is_empty(), "{:?}: unusable symbols", word.row);
            let is_known_damaged = !symbols.and(word.damaged).is_empty();
            assert!(!is_known_damaged, "F2: {:?}: damaged symbols are asked for again", word.row);
            word.tried = word.tried.or(symbols);
            word.pending = word.pending.or(symbols);
        }
    }

    /// Takes the gap from `start` to `end` into a sub-request, if it is short and nothing in it was
    /// asked for already (F3).
    fn bridge(&mut self, core: &Core, drive: DriveIdx, start: Lba, end: Lba) -> bool {
        let layout = core.layout();
        if end > start + GAP_MAX || !core.area().may_pass(start, end) {
            return false;
        }
        if start == end {
            return true; // There is no gap.
        }
        let gap: Vec<(usize, usize)> = Extent::new(start, end - start)
            .iter()
            .filter_map(|lba| {
                let (row, symbol) = layout.symbol(Cell { drive, lba });
                Some((self.find(row)?, symbol))
            })
            .collect();
        if gap.iter().any(|&(word, symbol)| self.codewords[word].tried.contains(symbol)) {
            return false;
        }
        for (word, symbol) in gap {
            let word = &mut self.codewords[word];
            if word.usable.contains(symbol) {
                word.tried = word.tried.with(symbol);
                word.pending = word.pending.with(symbol);
            }
        }
        true
    }

    /// A read of this operation has ended.
    pub(crate) fn handle_done(&mut self, layout: &Layout, ended: FetchEnded<'_>) {
        let FetchEnded { sub, drive, extent, buf, spread, unproven, corrupt, outcome } = ended;
        let at = self.subs.iter().position(|pending| pending.id == sub);
        self.subs.swap_remove(at.expect("the read is this operation's"));
        self.filled.extend(buf);
        let mut guess = 0;
        for (offset, lba) in (0_u32..).zip(extent.iter()) {
            let (row, symbol) = layout.symbol(Cell { drive, lba });
            // Rows follow each other.
            let is_there = |at: &usize| self.codewords.get(*at).is_some_and(|word| word.row == row);
            let there = [guess, guess + 1].into_iter().find(is_there);
            let Some(word) = there.or_else(|| self.find(row)) else { continue };
            guess = word;
            let word = &mut self.codewords[word];
            word.pending = word.pending.without(symbol);
            match outcome {
                // It was read because it lies between others.
                Outcome::Done { .. } if !word.usable.contains(symbol) => {}
                Outcome::Done { damaged, .. } if damaged.contains(offset) => {
                    word.damaged = word.damaged.with(symbol);
                    if corrupt.contains(&offset) {
                        word.corrupt = word.corrupt.with(symbol);
                    }
                    if let (true, Some(buf)) = (unproven.contains(&offset), buf) {
                        word.unproven = word.unproven.with(symbol);
                        word.places.set(symbol, spread.place(buf, offset));
                    }
                }
                Outcome::Done { unknown, .. } if unknown.contains(offset) => {
                    word.unknown = word.unknown.with(symbol);
                }
                Outcome::Done { .. } => {
                    let buf = buf.expect("a drive that read had a buffer to fill");
                    word.have = word.have.with(symbol);
                    word.unknown = word.unknown.without(symbol);
                    word.places.set(symbol, spread.place(buf, offset));
                }
                Outcome::Refused | Outcome::Unreachable | Outcome::Gone => {}
            }
        }
    }

    /// Drops what no drive holds any more from what may be asked for.
    pub(crate) fn handle_lost(&mut self, core: &Core) {
        if core.drives.lost_data().is_empty() {
            return;
        }
        for word in &mut self.codewords {
            let is_gone = |&symbol: &usize| {
                !core.holds(core.layout().cell(word.row, symbol).drive, word.row.stripe)
            };
            let gone = word.usable.iter().filter(is_gone);
            word.usable = word.usable.minus(gone.collect());
        }
    }

    /// Uses what nothing says a checksum of in the codewords that have no other way; returns whether there are some (F5).
    pub(crate) fn trust_unproven(&mut self, is_hopeless: impl Fn(&Codeword) -> bool) -> bool {
        let all = self.codewords.iter_mut();
        let words = all.filter(|word| !word.unproven.is_empty() && is_hopeless(word));
        words.map(Codeword::trust).count() > 0
    }

    /// Waits no more for what these drives were asked for.
    pub(crate) fn leave(&mut self, core: &mut Core, now: Instant, drives: DriveSet) {
        for Asked { id, .. } in self.subs.extract_if(.., |asked| drives.contains(asked.drive)) {
            core.abandon(now, id);
        }
        for word in &mut self.codewords {
            let lies =
                |&symbol: &usize| drives.contains(core.layout().cell(word.row, symbol).drive);
            word.pending = word.pending.minus(word.pending.iter().filter(lies).collect());
        }
    }

    /// The drives that still have something to do for this.
    pub(crate) fn pending_drives(&self) -> DriveSet {
        self.subs.iter().map(|sub| sub.drive).collect()
    }

    /// The filled buffers, which the caller releases.
    pub(crate) fn take_filled(&mut self) -> Vec<BufId> {
        std::mem::take(&mut self.filled)
    }

    /// Releases every filled buffer and, if `withdraw` says so, withdraws the sub-requests that still wait in the
    /// host's queues. The buffer of a sub-request inside a drive is released when it ends; its drive is noted as
    /// late if that is after `due`. Returns how many sub-requests were withdrawn.
    pub(crate) fn close(
        &mut self,
        core: &mut Core,
        now: Instant,
        withdraw: bool,
        due: Option<Instant>,
    ) -> u32 {
        self.end_proving();
        for buf in self.filled.drain(..) {
            core.out.release(buf);
        }
        let since = self.since;
        let mut withdrawn = 0;
        for Asked { id, drive, asked } in self.subs.drain(..) {
            // `due` is the time of what was asked first, not of what was asked later because of a late drive.
            let due = due.filter(|_| Some(asked) == since);
            if withdraw && core.withdraw(now, id) {
                withdrawn += 1;
                if due.is_some_and(|due| now > due) {
                    core.drives.note_late(drive, true);
                }
            } else {
                core.leave(id, due);
            }
        }
        withdrawn
    }
}

/// The symbols of a row that may be used: on drives that are there, and without redundancy where
/// that is not valid yet.
pub(crate) fn usable(core: &Core, row: Row) -> SymbolSet {
    let layout = core.layout();
    if row.stripe < core.holdings.synced() {
        present(core, row, layout.symbols())
    } else if layout.spec().is_mirror() {
        // Copies may differ there: always the same one is read, as long as it can be had, so that what was read
        // once is read again. Every copy has all writes that were answered.
        present(core, row, layout.symbols()).iter().take(1).collect()
    } else {
        present(core, row, layout.data_symbols())
    }
}

/// The symbols of a row that a write may change: what may be used, and all copies of a mirror.
pub(crate) fn writable(core: &Core, row: Row) -> SymbolSet {
    match core.layout().spec().is_mirror() {
        true => present(core, row, core.layout().symbols()),
        false => usable(core, row),
    }
}

/// Those of the first `count` symbols of a row that their drives hold.
pub(crate) fn present(core: &Core, row: Row, count: usize) -> SymbolSet {
    let layout = core.layout();
    if core.drives.lost_data().is_empty() {
        return SymbolSet::first(count);
    }
    (0..count).filter(|&symbol| core.holds(layout.cell(row, symbol).drive, row.stripe)).collect()
}

/// Adds the sectors of an extent of the array to an empty list, each with its codeword and symbol, in the order of the
/// codewords.
pub(crate) fn find_sectors(layout: &Layout, extent: Extent, sectors: &mut Vec<ArraySector>) {
    let sector = |lba| {
        let (row, symbol) = layout.find(lba);
        ArraySector { row, symbol, lba }
    };
    assert!(sectors.is_empty());
    sectors.extend(extent.iter().map(sector));
    sectors.sort_unstable();
}
