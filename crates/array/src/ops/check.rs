//! Codewords are looked at for their own sake: whether every drive gives its part, and whether the parts match.
//!
//! ```text
//!   scan (shared):     read everything --> sums that must be zero --> the rows that are suspect
//!   mend (exclusive):  read the row --> sums --> which drive is wrong? --> write --> read again --> compare
//! ```
//!
//! A scan changes nothing. A row in which it finds something is mended by itself, while nothing else uses its stripe
//! and nothing of it waits in the journal for its place.
//!
//! What no drive gives is computed from the others. Where all give something and it does not match, a *drive* is
//! looked for whose parts explain it: without them the others match. Drives go wrong as a whole: a write that was
//! lost or went astray changes every sector of the codeword that the drive holds. To look for one wrong sector
//! instead blames the wrong drive where two sectors of one changed alike.
//!
//! # Invariants
//!
//! - C1. A drive is blamed only where two redundant drives' worth of symbols is left over, and it is the only one.
//! - C2. Nothing is written into a codeword whose symbols do not match and of which no drive is blamed.
//! - C3. A sector counts as repaired when it was read again and holds what was written. It leaves the list of damaged
//!   sectors then.
//! - C4. What waits to be read back is neither blamed nor repaired: it is what was written there last, and what it should be is
//!   known better than what is redundant says. Where all others match without such data, what is redundant is stale, and is
//!   computed from them; where enough symbols are known so, they say what all others should be.

use levelhead_block::{BufId, Command, Durability, Effort, Place, Segment, ZeroTail};
use levelhead_erasure::SymbolSet;
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Sectors};

use crate::action::Action;
use crate::core::{Core, Enqueue, Purpose};
use crate::drives::Fate;
use crate::drives::queue::End;
use crate::log::contents::Stored;
use crate::names::{OpId, SubId};
use crate::ops::fetch::{Codeword, Fetch, FetchEnded, Manner, Wish, usable};
use crate::progress::{Blame, Fault};
use crate::shape::redundancy::Redundancy;
use crate::shape::{Cell, Layout, Row};

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// These stripes, without changing anything.
    Scan { first: u64, end: u64 },
    /// One row, which is repaired.
    Mend { row: Row },
}

/// Sectors of one drive in one codeword, and what was wrong with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) drive: DriveIdx,
    pub(crate) extent: Extent,
    pub(crate) fault: Fault,
    pub(crate) is_repaired: bool,
}

/// What has come of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checked {
    /// Rows of a scan in which something was found.
    pub(crate) suspects: Vec<Row>,
    /// What was wrong with a row that was mended.
    pub(crate) findings: Vec<Finding>,
    /// Too little was given to repair the rest of the row.
    pub(crate) is_hopeless: bool,
    /// The row's symbols do not match, and it cannot be told which are wrong (C2).
    pub(crate) is_unlocated: bool,
    /// It was given up before its end.
    pub(crate) is_given_up: bool,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct CheckOp {
    op: OpId,
    pub(crate) scope: Scope,
    blame: Blame,
    fetch: Fetch,
    phase: Phase,
    repairs: Vec<Repair>,
    scratch: Option<BufId>,
    checked: Checked,
    /// Symbols of a row that is mended that were had from records.
    from_records: SymbolSet,
    /// Whether its result is worth waiting for.
    pub(crate) is_wanted: bool,
}

#[derive(Clone, Debug)]
enum Phase {
    Reading,
    /// Sums are being computed: for each one the row's place in the fetch.
    Scanning(Vec<usize>),
    /// The same of the one row.
    Matching,
    /// Symbols that are compared with what known ones say (C4).
    Proving(Vec<usize>),
    /// For each sum what it says.
    Blaming(Vec<Clue>),
    Writing(Vec<SubId>),
    Rereading,
    Comparing,
    Done,
}

/// What it means that a sum is not zero.
#[derive(Clone, Copy, Debug)]
enum Clue {
    /// Without this group of symbols the others do not match either.
    NotOnly(usize),
    /// If the group is wrong, this symbol of it is.
    Wrong { group: usize, symbol: usize },
}

#[derive(Clone, Copy, Debug)]
struct Repair {
    symbol: usize,
    /// Where its right content is.
    place: Place,
    fault: Fault,
}

impl CheckOp {
    pub(crate) fn start(
        core: &mut Core,
        now: Instant,
        op: OpId,
        scope: Scope,
        blame: Blame,
    ) -> Self {
        let origin = u64::MAX - op;
        let mut fetch = Fetch::new(op, origin, None);
        let rows: Vec<Row> = match scope {
            Scope::Mend { row } => vec![row],
            Scope::Scan { first, end } => {
                let rows = core.layout().rows();
                let of = |stripe| (0..rows).map(move |row| Row { stripe, row });
                (first..end).flat_map(of).collect()
            }
        };
        for row in rows {
            let usable = usable(core, row);
            fetch.begin(core, row, usable);
        }
        let wish = |(word, codeword): (usize, &Codeword)| Wish {
            word,
            symbols: codeword.usable.minus(codeword.have).minus(codeword.listed),
        };
        let wishes: Vec<Wish> = fetch.codewords.iter().enumerate().map(wish).collect();
        let wishes: Vec<Wish> =
            wishes.into_iter().filter(|wish| !wish.symbols.is_empty()).collect();
        fetch.ask(core, now, &wishes, MANNER);
        let (phase, checked) = (Phase::Reading, Checked::default());
        let (repairs, scratch, is_wanted) = (Vec::new(), None, true);
        let from_records = match scope {
            Scope::Scan { .. } => SymbolSet::EMPTY,
            Scope::Mend { .. } => {
                let word = &fetch.codewords[0];
                waiting(core, word, word.have)
            }
        };
        Self { op, scope, blame, fetch, phase, repairs, scratch, checked, from_records, is_wanted }
    }

    /// A read has ended.
    pub(crate) fn handle_done(&mut self, layout: &Layout, ended: FetchEnded<'_>) {
        self.fetch.handle_done(layout, ended);
    }

    /// A write has ended.
    pub(crate) fn handle_written(&mut self, sub: SubId) {
        if let Phase::Writing(pending) = &mut self.phase {
            pending.retain(|&other| other != sub);
        }
    }

    /// Whether a scan waits for one of these drives, so that it is given up for now.
    pub(crate) fn is_held_up(&self, drives: DriveSet) -> bool {
        let is_scan = matches!(self.scope, Scope::Scan { .. });
        is_scan && !self.fetch.pending_drives().and(drives).is_empty()
    }

    /// Ends it early.
    pub(crate) fn give_up(&mut self, core: &mut Core, now: Instant) -> Checked {
        self.checked.is_given_up = true;
        self.end(core, now)
    }

    /// Moves on as the facts demand; returns what has come of it at its end.
    pub(crate) fn advance(&mut self, core: &mut Core, now: Instant) -> Option<Checked> {
        let waits = match &self.phase {
            Phase::Reading | Phase::Rereading => !self.fetch.subs.is_empty(),
            Phase::Writing(pending) => !pending.is_empty(),
            Phase::Scanning(_)
            | Phase::Matching
            | Phase::Proving(_)
            | Phase::Blaming(_)
            | Phase::Comparing => true,
            Phase::Done => false,
        };
        if !self.is_wanted && matches!(self.phase, Phase::Reading) {
            return Some(self.give_up(core, now));
        }
        if waits {
            return None;
        }
        if core.has_failed() {
            return Some(self.give_up(core, now));
        }
        match self.phase {
            Phase::Reading => {
                self.fetch.handle_lost(core);
                match self.scope {
                    Scope::Scan { .. } => self.scan(core),
                    Scope::Mend { .. } => self.match_up(core, now),
                }
            }
            Phase::Writing(_) => self.read_again(core, now),
            Phase::Rereading => self.compare(core),
            Phase::Done => {}
            Phase::Scanning(_)
            | Phase::Matching
            | Phase::Proving(_)
            | Phase::Blaming(_)
            | Phase::Comparing => {
                unreachable!("it waits")
            }
        }
        matches!(self.phase, Phase::Done).then(|| self.end(core, now))
    }

    /// Which of the sums were zero.
    pub(crate) fn handle_checked(&mut self, core: &mut Core, now: Instant, zero: &[bool]) {
        match std::mem::replace(&mut self.phase, Phase::Done) {
            Phase::Scanning(rows) => {
                let wrong = rows.iter().zip(zero).filter(|(_, is_zero)| !**is_zero);
                for (&at, _) in wrong {
                    let row = self.fetch.codewords[at].row;
                    if self.checked.suspects.last() != Some(&row) {
                        self.checked.suspects.push(row);
                    }
                }
            }
            Phase::Matching if zero.iter().all(|&is_zero| is_zero) => {
                self.repair(core, now, SymbolSet::EMPTY);
            }
            Phase::Matching => self.blame(core),
            Phase::Proving(symbols) => {
                let wrong = symbols.into_iter().zip(zero).filter(|(_, is_zero)| !**is_zero);
                self.repair(core, now, wrong.map(|(symbol, _)| symbol).collect());
            }
            Phase::Blaming(clues) => self.sentence(core, now, &clues, zero),
            Phase::Comparing => {
                for (at, &is_same) in zero.iter().enumerate() {
                    self.note(core, at, is_same);
                }
            }
            other => unreachable!("{other:?}: nothing was to be checked"),
        }
    }

    fn end(&mut self, core: &mut Core, now: Instant) -> Checked {
        self.fetch.close(core, now, true, None);
        self.scratch.take().into_iter().for_each(|buf| core.out.release(buf));
        std::mem::take(&mut self.checked)
    }

    fn scan(&mut self, core: &mut Core) {
        let mut sums = Vec::new();
        let mut rows = Vec::new();
        for (at, word) in self.fetch.codewords.iter().enumerate() {
            if !erased(core, word).is_empty() {
                self.checked.suspects.push(word.row);
                continue;
            }
            for sum in matches(core, word, word.have) {
                sums.push(sum);
                rows.push(at);
            }
        }
        self.phase = Phase::Done;
        if self.ask(core, sums) {
            self.phase = Phase::Scanning(rows);
        }
    }

    /// Has sums computed that should be zero; returns whether there were any.
    fn ask(&self, core: &mut Core, sums: Vec<Vec<(u8, Place)>>) -> bool {
        if sums.is_empty() || !core.out.carries_content() {
            return false;
        }
        core.out.push(Action::Check { op: self.op, sums });
        true
    }

    /// What nothing says a checksum of matches with the others: it has one from now on (F5).
    fn adopt(&self, core: &mut Core, wrong: SymbolSet) {
        let word = self.word();
        let stored: Vec<Stored> = word
            .trusted
            .minus(wrong)
            .iter()
            .map(|symbol| Stored {
                cell: core.layout().cell(word.row, symbol),
                place: word.place(symbol),
            })
            .collect();
        if !stored.is_empty() {
            core.trust(&stored);
        }
    }

    fn word(&self) -> &Codeword {
        &self.fetch.codewords[0]
    }

    fn match_up(&mut self, core: &mut Core, now: Instant) {
        let data = core.layout().data_symbols();
        self.fetch.trust_unproven(|word| word.have.len() < data);
        let sums = matches(core, self.word(), self.word().have);
        if self.ask(core, sums) {
            self.phase = Phase::Matching;
        } else {
            self.repair(core, now, SymbolSet::EMPTY);
        }
    }

    /// The symbols that can be wrong together.
    fn groups(&self, core: &Core) -> Vec<SymbolSet> {
        let symbols = core.layout().symbols();
        let size = match self.blame {
            Blame::Drives => core.layout().spec().expansion(),
            Blame::Sectors => 1,
        };
        (0..symbols / size).map(|group| (group * size..(group + 1) * size).collect()).collect()
    }

    fn blame(&mut self, core: &mut Core) {
        let word = self.word();
        let data = core.layout().data_symbols();
        let known = self.known(core);
        if known.len() >= data {
            return self.prove(core, known); // C4
        }
        let groups = self.groups(core);
        let size = groups[0].len();
        if word.have.len() < data + 2 * size {
            return self.give_no_sentence(); // C1
        }
        let (mut sums, mut clues) = (Vec::new(), Vec::new());
        for (at, &group) in groups.iter().enumerate() {
            let others = word.have.minus(group);
            if others == word.have {
                continue;
            }
            for sum in matches(core, word, others) {
                sums.push(sum);
                clues.push(Clue::NotOnly(at));
            }
            for symbol in group.and(word.have).iter() {
                let mut sum = computed(core, word, others, symbol);
                sum.push((1, word.place(symbol)));
                sums.push(sum);
                clues.push(Clue::Wrong { group: at, symbol });
            }
        }
        let is_asked = self.ask(core, sums);
        assert!(is_asked, "C1: there are symbols left over");
        self.phase = Phase::Blaming(clues);
    }

    /// Symbols that are had and are what was written there last: from their records, or by their checksums.
    fn known(&self, core: &Core) -> SymbolSet {
        let word = self.word();
        self.from_records.or(waiting(core, word, word.have))
    }

    /// Compares all others with what the known symbols say.
    fn prove(&mut self, core: &mut Core, known: SymbolSet) {
        let word = self.word();
        let others: Vec<usize> = word.have.minus(known).iter().collect();
        let sum = |&symbol: &usize| {
            let mut sum = computed(core, word, known, symbol);
            sum.push((1, word.place(symbol)));
            sum
        };
        let sums = others.iter().map(sum).collect();
        if self.ask(core, sums) {
            self.phase = Phase::Proving(others);
        } else {
            self.give_no_sentence(); // What was written there does not match either.
        }
    }

    fn sentence(&mut self, core: &mut Core, now: Instant, clues: &[Clue], zero: &[bool]) {
        let groups = self.groups(core);
        let have = self.word().have;
        let is_innocent = |at: usize| {
            clues.iter().zip(zero).any(|(clue, is_zero)| {
                matches!(clue, Clue::NotOnly(group) if *group == at) && !is_zero
            })
        };
        let mut guilty =
            (0..groups.len()).filter(|&at| !groups[at].and(have).is_empty() && !is_innocent(at));
        let (Some(found), None) = (guilty.next(), guilty.next()) else {
            return self.give_no_sentence(); // C1
        };
        let wrong = clues.iter().zip(zero).filter_map(|(clue, is_zero)| match clue {
            Clue::Wrong { group, symbol } if *group == found && !is_zero => Some(*symbol),
            Clue::Wrong { .. } | Clue::NotOnly(_) => None,
        });
        let wrong: SymbolSet = wrong.collect();
        let known = self.known(core);
        if wrong.and(known).is_empty() {
            return self.repair(core, now, wrong);
        }
        // C4: they match with what was there before.
        let data = SymbolSet::first(core.layout().data_symbols());
        let redundant = have.minus(data);
        let is_of_data = wrong.minus(known.and(data)).is_empty() && data.minus(have).is_empty();
        match is_of_data && redundant.and(known).is_empty() {
            true => self.repair(core, now, redundant),
            false => self.give_no_sentence(),
        }
    }

    /// C2.
    fn give_no_sentence(&mut self) {
        self.checked.is_unlocated = true;
        self.phase = Phase::Done;
    }

    /// Writes what was not given, and what was given wrong.
    fn repair(&mut self, core: &mut Core, now: Instant, wrong: SymbolSet) {
        self.adopt(core, wrong);
        self.phase = Phase::Done;
        // A drive may have been lost since it gave its part.
        self.fetch.handle_lost(core);
        let word = self.word();
        let (row, erased) = (word.row, erased(core, word));
        let sources = word.have.minus(wrong);
        // C4: what waits to be read back is mended from its record, and with nothing that does not match that.
        let waits = |symbol: &usize| core.verify.records.waits(core.layout().cell(row, *symbol));
        let all = erased.or(wrong.and(word.usable)).iter().filter(|symbol| !waits(symbol));
        let all: Vec<usize> = all.collect();
        if all.is_empty() || core.has_failed() {
            return;
        }
        let wrong_or_corrupt = wrong.or(word.corrupt);
        let fault = |symbol| match wrong_or_corrupt.contains(symbol) {
            true => Fault::Wrong,
            false => Fault::Unreadable,
        };
        if sources.len() < core.layout().data_symbols() {
            self.checked.is_hopeless = true;
            for symbol in all {
                self.find(core, symbol, fault(symbol), false);
            }
            return;
        }
        let buf = core.out.acquire(Sectors::new(all.len() as u64));
        self.scratch = Some(buf);
        let mut pending = Vec::new();
        for (sector, &symbol) in (0_u32..).zip(&all) {
            let place = Place { buf, sector };
            let from = computed(core, self.word(), sources, symbol);
            core.out.combine(place, from);
            self.repairs.push(Repair { symbol, place, fault: fault(symbol) });
            let Cell { drive, lba } = core.layout().cell(row, symbol);
            let extent = Extent::new(lba, Sectors::new(1));
            let (durability, zero_tail) = (Durability::Durable, ZeroTail::None);
            let what = Enqueue {
                purpose: Purpose::Op(self.op),
                drive,
                command: Command::Write { extent, durability, zero_tail },
                segments: Segment { place, sectors: 1 }.into(),
                origin: u64::MAX - self.op,
                end: End::Tail,
                fate: Fate::Certain,
                since: None,
            };
            pending.push(core.enqueue(now, what));
        }
        self.phase = Phase::Writing(pending);
    }

    /// C3.
    fn read_again(&mut self, core: &mut Core, now: Instant) {
        let row = self.word().row;
        let symbols: SymbolSet = self.repairs.iter().map(|repair| repair.symbol).collect();
        self.fetch.close(core, now, false, None);
        let mut fetch = Fetch::new(self.op, u64::MAX - self.op, None);
        let there = |&symbol: &usize| core.holds(core.layout().cell(row, symbol).drive, row.stripe);
        let symbols: SymbolSet = symbols.iter().filter(there).collect();
        fetch.add(core.layout(), row, symbols);
        if !symbols.is_empty() {
            fetch.ask(core, now, &[Wish { word: 0, symbols }], MANNER);
        }
        self.fetch = fetch;
        self.phase = Phase::Rereading;
        if symbols.is_empty() {
            self.compare(core);
        }
    }

    fn compare(&mut self, core: &mut Core) {
        let have = self.word().have;
        let (read, unread): (Vec<Repair>, Vec<Repair>) =
            self.repairs.iter().partition(|repair| have.contains(repair.symbol));
        for Repair { symbol, fault, .. } in unread {
            self.find(core, symbol, fault, false);
        }
        let sum = |repair: &Repair| vec![(1, repair.place), (1, self.word().place(repair.symbol))];
        let sums = read.iter().map(sum).collect();
        self.repairs = read;
        self.phase = Phase::Comparing;
        if !self.ask(core, sums) {
            self.phase = Phase::Done;
        }
    }

    fn note(&mut self, core: &mut Core, at: usize, is_repaired: bool) {
        let Repair { symbol, fault, .. } = self.repairs[at];
        if is_repaired {
            core.meta.undamage([core.layout().cell(self.word().row, symbol)]);
        }
        self.find(core, symbol, fault, is_repaired);
    }

    /// Notes what was wrong with a symbol, with its neighbour if that is of the same drive.
    fn find(&mut self, core: &Core, symbol: usize, fault: Fault, is_repaired: bool) {
        let Cell { drive, lba } = core.layout().cell(self.word().row, symbol);
        if let Some(last) = self.checked.findings.last_mut()
            && (last.drive, last.fault, last.is_repaired) == (drive, fault, is_repaired)
            && last.extent.end() == lba
        {
            last.extent.sectors += Sectors::new(1);
            return;
        }
        let extent = Extent::new(lba, Sectors::new(1));
        self.checked.findings.push(Finding { drive, extent, fault, is_repaired });
    }
}

const MANNER: Manner = Manner { effort: Effort::Full, end: End::Tail, fate: Fate::Certain };

/// Symbols on drives that are there and that those did not give. Of those on the list of damaged sectors what can be made
/// anew: redundancy, and a copy of which there is another.
fn erased(core: &Core, word: &Codeword) -> SymbolSet {
    let for_good = match core.layout().spec().is_mirror() {
        true if word.have.is_empty() => word.listed,
        true => SymbolSet::EMPTY,
        false => word.listed.and(SymbolSet::first(core.layout().data_symbols())),
    };
    word.damaged.or(word.unknown).minus(for_good).minus(word.have).and(word.usable)
}

/// Those of these symbols of a codeword that wait to be read back.
fn waiting(core: &Core, word: &Codeword, symbols: SymbolSet) -> SymbolSet {
    let waits = |symbol: &usize| core.verify.records.waits(core.layout().cell(word.row, *symbol));
    symbols.iter().filter(waits).collect()
}

/// Sums over these symbols that are zero if the symbols match: one for each symbol that is left over.
fn matches(core: &Core, word: &Codeword, symbols: SymbolSet) -> Vec<Vec<(u8, Place)>> {
    let data = core.layout().data_symbols();
    if symbols.len() <= data {
        return Vec::new();
    }
    let basis: SymbolSet = symbols.iter().take(data).collect();
    let left = symbols.minus(basis);
    let sum = |symbol| {
        let mut sum = computed(core, word, basis, symbol);
        sum.push((1, word.place(symbol)));
        sum
    };
    left.iter().map(sum).collect()
}

/// A symbol as a combination of the others.
fn computed(core: &Core, word: &Codeword, from: SymbolSet, symbol: usize) -> Vec<(u8, Place)> {
    let code: &Redundancy = core.code().expect("only a redundant array is checked");
    let terms = code.compute(&from, symbol).into_iter();
    terms.map(|(coefficient, source)| (coefficient, word.place(source))).collect()
}
