//! Codewords that were being replaced as a whole when the array was cut off: each of their sectors is in its place,
//! old or new. Their redundancy is made right again.
//!
//! ```text
//!   intents --> one that some ring must have, and has not: never written in place, counts as never begun, unless a drive that has
//!      |        lost that record shows the contrary: what is in place has the intent's checksum, and no tag sector says so
//!      |
//!      v
//!   read their codewords --> checksums --> enough is of one intent: the rest is computed from that
//!                                     |
//!                                     +--> all data is there: redundancy is computed from the data
//!                                     |
//!                                     +--> data of a lost drive is nowhere: damaged, by name, and counts as zeroes
//! ```
//!
//! What is missing is on the list of damaged sectors before anything is served, and what is made right is taken off it once
//! it is in place for good. Data that is there is never changed but to the whole of an intent. So another crash finds what this one found, or
//! what this one has made.

use std::collections::{BTreeMap, BTreeSet};

use levelhead_block::{BufId, Place};
use levelhead_erasure::SymbolSet;
use levelhead_units::{Extent, Instant, Sectors};

use super::decision::Decision;
use super::scan::Scan;
use super::transfers::{BATCH, Filled};
use super::{At, Recovery, Space, Step};
use crate::action::Action;
use crate::core::Core;
use crate::core::spread::Spread;
use crate::journal::verdict::{OnRing, fits};
use crate::log::contents::Stored;
use crate::log::record::FoundRecord;
use crate::shape::{Cell, Row};

/// What intents gave to the sectors of codewords.
#[derive(Clone, Debug, Default)]
pub(super) struct Announced {
    /// For every codeword its intents, and for each of these the checksums of the sectors.
    rows: BTreeMap<Row, Intents>,
    /// Intents that count as never begun: they say something only of codewords that show that they were.
    doubtful: BTreeSet<u64>,
    /// Those that are being looked at.
    batch: BTreeMap<Row, Intents>,
    /// The checksums of what is in place.
    in_place: BTreeMap<Cell, u32>,
    /// Buffers of which checksums are being computed, and what they hold.
    summed: BTreeMap<BufId, (At, Spread)>,
}

/// The checksums that each intent gave to sectors of a codeword.
type Intents = BTreeMap<u64, BTreeMap<Cell, u32>>;

/// What becomes of a codeword.
#[derive(Debug, PartialEq, Eq)]
enum Judgement {
    /// Nothing shows that it was being replaced.
    Untouched,
    /// These symbols are of one intent: the others are computed from them.
    Whole(SymbolSet),
    /// All data is there, and redundancy is computed from it.
    Mixed(SymbolSet),
    /// These data symbols are nowhere.
    Damaged(SymbolSet),
}

impl Announced {
    /// The codewords that are to be judged.
    pub(super) fn of(core: &Core, scan: &Scan, decision: &Decision) -> Self {
        let mut announced = Self::default();
        let (layout, verdict) = (core.layout(), decision.verdict());
        for OnRing { found: FoundRecord { record, sums, .. }, .. } in scan.intents(verdict.retired)
        {
            let is_dropped = verdict.dropped.contains(&record.id);
            if (is_dropped && core.tags.is_none()) || !fits(record, decision.known(core)) {
                continue;
            }
            if is_dropped {
                announced.doubtful.insert(record.id);
            }
            let cells = record
                .runs
                .iter()
                .flat_map(|run| run.extent.iter().map(|lba| Cell { drive: run.drive, lba }));
            for (cell, &sum) in cells.zip(sums) {
                let row = layout.symbol(cell).0;
                if !verdict.is_replaced(layout, row, record.id) {
                    let intents = announced.rows.entry(row).or_default();
                    intents.entry(record.id).or_default().insert(cell, sum);
                }
            }
        }
        announced
    }

    /// Whether a codeword is among them.
    pub(super) fn has(&self, row: Row) -> bool {
        self.rows.contains_key(&row)
    }

    /// Whether no checksums are being computed.
    pub(super) fn is_quiet(&self) -> bool {
        self.summed.is_empty()
    }

    /// The next of them that are to be looked at, up to the batch.
    fn take_batch(&mut self, most: usize) {
        self.batch.clear();
        self.in_place.clear();
        while self.batch.len() < most
            && let Some((row, intents)) = self.rows.pop_first()
        {
            self.batch.insert(row, intents);
        }
    }
}

impl Recovery {
    /// Reads the next codewords that are to be judged; goes on if there are none.
    pub(super) fn judge_next(&mut self, core: &mut Core, now: Instant) {
        self.release(core);
        let symbols = core.layout().symbols();
        let most = (BATCH as usize / symbols).max(1);
        self.announced.take_batch(most);
        if self.announced.batch.is_empty() {
            self.step = Step::Loading;
            return self.load(core, now);
        }
        let cells = self.announced.batch.keys().flat_map(|&row| {
            let layout = core.layout();
            (0..symbols).map(move |symbol| layout.cell(row, symbol))
        });
        let wanted: BTreeSet<At> = cells
            .filter(|&cell| is_held(core, cell) && !self.decision.is_unreadable(cell))
            .map(|cell| At::one(cell.drive, Space::Layout, cell.lba))
            .collect();
        self.fetch_tagged(core, now, &wanted);
        self.step = Step::Summing;
    }

    /// Has the checksums computed of what was read.
    pub(super) fn sum(&mut self, core: &mut Core) {
        for Filled { buf, at } in self.transfers.take_filled() {
            let extent = Extent::new(at.lba, at.sectors);
            let spread = Spread::of(core.area(), extent, core.area().on_drive(extent));
            self.announced.summed.insert(buf, (at, spread));
            core.out.push(Action::Sum { buf });
        }
        self.step = Step::Judging;
    }

    /// The checksums of the sectors of a buffer.
    pub(crate) fn handle_summed(&mut self, buf: BufId, sums: &[u32]) {
        if let Some(at) = self.placing.take_summed(buf) {
            return self.hold_against(buf, at, sums);
        }
        let (at, spread) = self.announced.summed.remove(&buf).expect("X: it was to be summed");
        for (one, offset) in at.each().zip(0..) {
            let sum = sums[spread.place(buf, offset).sector as usize];
            if self.transfers.place_of(one).is_some() {
                self.announced.in_place.insert(Cell { drive: one.drive, lba: one.lba }, sum);
            }
        }
    }

    /// Makes the codewords right that were read.
    pub(super) fn judge(&mut self, core: &mut Core, now: Instant) {
        let batch = std::mem::take(&mut self.announced.batch);
        let mut placed: Vec<Stored> = Vec::new();
        for (row, intents) in &batch {
            let (judgement, changes) = self.judge_row(core, *row, intents);
            if judgement == Judgement::Untouched {
                continue;
            }
            for symbol in 0..core.layout().symbols() {
                let cell = core.layout().cell(*row, symbol);
                // What is written over that will have another one.
                let sum = self.announced.in_place.get(&cell).copied();
                let sum = sum.filter(|_| !self.is_stale(core, cell, intents));
                sum.into_iter().for_each(|sum| core.note_found(cell, sum));
            }
            match &judgement {
                Judgement::Untouched => {}
                Judgement::Whole(_) => {
                    let cells =
                        (0..core.layout().symbols()).map(|symbol| core.layout().cell(*row, symbol));
                    self.placing.add_right(cells.filter(|&cell| core.meta.is_damaged(cell)));
                }
                Judgement::Mixed(_) => {}
                Judgement::Damaged(symbols) => {
                    for symbol in symbols.iter() {
                        core.list_damaged(core.layout().cell(*row, symbol));
                    }
                }
            }
            if changes.is_empty() {
                continue;
            }
            let buf = self.transfers.acquire(core, Sectors::new(changes.len() as u64));
            for (&symbol, sector) in changes.iter().zip(0..) {
                let into = Place { buf, sector };
                self.make(core, *row, &judgement, symbol, into);
                placed.push(Stored { cell: core.layout().cell(*row, symbol), place: into });
            }
        }
        self.write_in_place(core, now, placed);
        self.came_short = false; // What was not given is accounted for.
        self.step = Step::Mending;
    }

    /// The checksum that tag sectors and lists say of a sector that no record gives, if it counts: not where redundancy is not valid yet,
    /// which has what was in place when the array was made.
    fn said(&self, core: &Core, cell: Cell) -> Option<u32> {
        let is_synced = core.layout().symbol(cell).0.stripe < core.holdings.synced();
        let is_logged = self.decision.verdict().finals.contains_key(&cell);
        let counts = core.out.carries_content() && is_synced && !is_logged;
        core.tags.as_ref().filter(|_| counts)?.get(cell.drive, cell.lba)
    }

    /// The checksum of a sector that was written before any of these intents, if that is known.
    fn before(&self, core: &Core, cell: Cell, intents: &Intents) -> Option<u32> {
        // A tag sector that was with the data may be there before it.
        let is_of_intent = |sum: &u32| intents.values().any(|sums| sums.get(&cell) == Some(sum));
        self.said(core, cell).filter(|sum| !is_of_intent(sum))
    }

    /// Whether what is in place of a sector is neither what was there before nor what an intent gave it.
    fn is_stale(&self, core: &Core, cell: Cell, intents: &Intents) -> bool {
        let found = self.announced.in_place.get(&cell);
        let is_new = intents.values().any(|sums| sums.get(&cell) == found);
        let before = self.before(core, cell, intents);
        !is_new && before.is_some_and(|before| found.is_some_and(|found| *found != before))
    }

    /// Whether a sector shows that something was written of an intent: it or the checksum that its tag sector says is of the intent, and
    /// the other one is not.
    fn has_begun_there(&self, core: &Core, cell: Cell, sums: &BTreeMap<Cell, u32>) -> bool {
        let found = self.announced.in_place.get(&cell).copied();
        let given = sums.get(&cell).copied();
        let said = self.said(core, cell);
        let is_either = found == given || said == given;
        is_either && found.is_some() && said.is_some() && found != said
    }

    /// What becomes of a codeword, and which of its symbols are to be written.
    fn judge_row(&self, core: &Core, row: Row, intents: &Intents) -> (Judgement, Vec<usize>) {
        let layout = core.layout();
        let is_begun = |(id, sums): (&u64, &BTreeMap<Cell, u32>)| {
            let mut cells = (0..layout.symbols()).map(|symbol| layout.cell(row, symbol));
            let is_sure = !self.announced.doubtful.contains(id);
            is_sure || cells.any(|cell| self.has_begun_there(core, cell, sums))
        };
        if !intents.iter().any(is_begun) {
            return (Judgement::Untouched, Vec::new());
        }
        let (symbols, count) = (layout.symbols(), layout.data_symbols());
        let sum = |symbol: usize| self.announced.in_place.get(&layout.cell(row, symbol));
        let is_stale = |&symbol: &usize| self.is_stale(core, layout.cell(row, symbol), intents);
        let stale: SymbolSet = (0..symbols).filter(is_stale).collect();
        let there: SymbolSet = (0..symbols).filter(|&symbol| sum(symbol).is_some()).collect();
        let there = there.minus(stale);
        let may_write: SymbolSet =
            (0..symbols).filter(|&symbol| is_held(core, layout.cell(row, symbol))).collect();
        for sums in intents.values().rev() {
            let is_new = |&symbol: &usize| {
                sum(symbol) == sums.get(&layout.cell(row, symbol)) && sum(symbol).is_some()
            };
            let new: SymbolSet = (0..symbols).filter(is_new).collect();
            if new.len() >= count {
                return (Judgement::Whole(new), may_write.minus(new).iter().collect());
            }
        }
        let is_listed = |&symbol: &usize| core.meta.is_damaged(layout.cell(row, symbol));
        // What a drive has wrong is computed if the others have what was there before.
        let is_old = |&symbol: &usize| {
            let cell = layout.cell(row, symbol);
            let before = self.before(core, cell, intents);
            before.is_some() && sum(symbol) == before.as_ref() && !core.meta.is_damaged(cell)
        };
        let old: SymbolSet = (0..symbols).filter(is_old).collect();
        let data = SymbolSet::first(count);
        // Where data is new already, redundancy may be what a recovery that was cut off has made of that; what is on the list it counts
        // as zeroes.
        let listed: SymbolSet = (0..count).filter(is_listed).collect();
        let is_known = there.and(data).minus(old).is_empty() && listed.is_empty();
        let is_needed = !stale.and(data).is_empty() && is_known;
        if (is_needed || layout.spec().is_mirror()) && !stale.is_empty() && old.len() >= count {
            return (Judgement::Whole(old), may_write.minus(old).iter().collect());
        }
        if layout.spec().is_mirror() && !there.is_empty() {
            let source: SymbolSet = old.iter().chain(there.iter()).take(1).collect();
            return (Judgement::Mixed(source), may_write.minus(source).iter().collect());
        }
        let redundant: Vec<usize> = may_write.minus(data).iter().collect();
        // What is on the list already counts as zeroes, whatever is in place.
        let missing = data.minus(there).or(listed);
        match missing.is_empty() {
            true => (Judgement::Mixed(data), redundant),
            false => (Judgement::Damaged(missing), redundant),
        }
    }

    /// Computes a symbol of a codeword that was judged.
    fn make(&self, core: &mut Core, row: Row, judgement: &Judgement, symbol: usize, into: Place) {
        let code = core.code().expect("only a redundant array announces");
        let count = core.layout().data_symbols();
        let terms: Vec<(u8, usize)> = match judgement {
            Judgement::Untouched => unreachable!("nothing of it is written"),
            Judgement::Whole(sources) | Judgement::Mixed(sources) => code.compute(sources, symbol),
            Judgement::Damaged(missing) => {
                let there = SymbolSet::first(count).minus(*missing);
                there
                    .iter()
                    .map(|column| (code.coefficient(symbol - count, column), column))
                    .collect()
            }
        };
        let from = terms
            .into_iter()
            .map(|(coefficient, source)| {
                let Cell { drive, lba } = core.layout().cell(row, source);
                let had = self.transfers.place_of(At::one(drive, Space::Layout, lba));
                (coefficient, had.expect("it was read"))
            })
            .collect();
        core.out.combine(into, from);
    }
}

/// Whether the drive of a sector holds what was written there.
fn is_held(core: &Core, cell: Cell) -> bool {
    core.holds(cell.drive, core.layout().symbol(cell).0.stripe)
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;

    use super::*;
    use crate::log::rules::Rules;
    use crate::settings::Settings;
    use crate::tags::sector::Sums;

    /// The judgement of a codeword, and the symbols that are written. `in_place` has a letter for each symbol: `o` is old, `n` is
    /// new, `l` is on the list of damaged sectors, `-` is not given.
    fn judged(spec: &str, in_place: &str) -> (Judgement, Vec<usize>) {
        let settings = Settings::of_test(spec.parse().unwrap());
        let mut core = Core::new(&settings, Streams::new(1));
        let mut recovery = Recovery::new(1, Rules::ALL);
        let row = Row { stripe: 0, row: 0 };
        let mut intent = BTreeMap::new();
        for (symbol, is) in in_place.chars().enumerate() {
            let cell = core.layout().cell(row, symbol);
            intent.insert(cell, 7);
            let sum = match is {
                'n' => Some(7),
                'o' => Some(1),
                'l' => Some(2),
                _ => None,
            };
            recovery.announced.in_place.extend(sum.map(|sum| (cell, sum)));
            if is == 'l' {
                core.list_damaged(cell);
            }
        }
        recovery.judge_row(&core, row, &BTreeMap::from([(3, intent)]))
    }

    #[test]
    fn a_codeword_is_new_if_enough_is_and_else_what_it_holds_but_for_what_is_nowhere() {
        let set = |symbols: &[usize]| symbols.iter().copied().collect::<SymbolSet>();
        let whole = |symbols: &[usize]| Judgement::Whole(set(symbols));
        let mixed = |symbols: &[usize]| Judgement::Mixed(set(symbols));
        let damaged = |symbols: &[usize]| Judgement::Damaged(set(symbols));
        let striped = "raid6:3+2,chunk=4KiB";
        let mirror = "raid1:3,chunk=4KiB";
        for (spec, in_place, judgement, written) in [
            (striped, "nnnnn", whole(&[0, 1, 2, 3, 4]), vec![]),
            (striped, "nnnoo", whole(&[0, 1, 2]), vec![3, 4]),
            (striped, "nn-no", whole(&[0, 1, 3]), vec![2, 4]),
            (striped, "nnooo", mixed(&[0, 1, 2]), vec![3, 4]),
            (striped, "no-oo", damaged(&[2]), vec![3, 4]),
            (striped, "nlooo", damaged(&[1]), vec![3, 4]),
            (striped, "nlnno", whole(&[0, 2, 3]), vec![1, 4]),
            (mirror, "ooo", mixed(&[0]), vec![1, 2]),
            (mirror, "-oo", mixed(&[1]), vec![0, 2]),
            (mirror, "-on", whole(&[2]), vec![0, 1]),
            (mirror, "---", damaged(&[0]), vec![1, 2]),
        ] {
            assert_eq!(judged(spec, in_place), (judgement, written), "{spec}: {in_place}");
        }
    }

    /// The tag sector of the first group of a drive says this of a sector.
    fn tag(core: &mut Core, cell: Cell, sum: u32) {
        let tags = core.tags.as_mut().expect("it has checksums");
        tags.load(cell.drive, 0, 0, &[]);
        let mut sums = Sums::NONE;
        sums.set(tags.find(cell.lba).1, sum);
        tags.note_tag(cell.drive, 0, sums, 0);
    }

    /// What tag sectors say of copies counts where these were alike before; a copy that nothing was written to yet may have any bytes.
    #[test]
    fn tag_sectors_count_where_redundancy_is_valid() {
        for (synced, source) in [(0, 0), (u64::MAX, 1)] {
            let settings = Settings::of_test("raid1:2,chunk=8KiB,checksums".parse().unwrap());
            let mut core = Core::new(&Settings { synced, ..settings }, Streams::new(1));
            let mut recovery = Recovery::new(1, Rules::ALL);
            let row = Row { stripe: 0, row: 0 };
            let cells = [0, 1].map(|symbol| core.layout().cell(row, symbol));
            for (cell, found) in cells.into_iter().zip([1, 2]) {
                recovery.announced.in_place.insert(cell, found);
            }
            let tags = core.tags.as_mut().expect("it has checksums");
            tags.load(cells[0].drive, 0, 0, &[]);
            tag(&mut core, cells[1], 2);
            let intent = cells.into_iter().map(|cell| (cell, 7)).collect();
            let judged = recovery.judge_row(&core, row, &BTreeMap::from([(3, intent)]));
            let source: SymbolSet = [source].into_iter().collect();
            assert_eq!(judged.0, Judgement::Mixed(source), "{synced}");
        }
    }

    /// What a drive has wrong is computed from the old data and redundancy, but where some data is new already and redundancy is wrong:
    /// what is there of that may count the new data, as a recovery that was cut off has left it.
    #[test]
    fn redundancy_that_is_wrong_is_computed_from_the_data_and_not_the_data_from_redundancy() {
        let set = |symbols: &[usize]| symbols.iter().copied().collect::<SymbolSet>();
        for (in_place, judgement, written) in [
            ("onos", Judgement::Mixed(set(&[0, 1])), vec![2, 3]),
            ("oosn", Judgement::Mixed(set(&[0, 1])), vec![2, 3]),
            ("soos", Judgement::Whole(set(&[1, 2])), vec![0, 3]),
            ("snoo", Judgement::Damaged(set(&[0])), vec![2, 3]),
            ("looo", Judgement::Damaged(set(&[0])), vec![2, 3]),
        ] {
            let settings = Settings::of_test("raid6:2+2,chunk=8KiB,checksums".parse().unwrap());
            let settings = Settings { synced: u64::MAX, ..settings };
            let mut core = Core::new(&settings, Streams::new(1));
            let mut recovery = Recovery::new(1, Rules::ALL);
            let row = Row { stripe: 0, row: 0 };
            let mut intent = BTreeMap::new();
            for (symbol, is) in in_place.chars().enumerate() {
                let cell = core.layout().cell(row, symbol);
                let found = BTreeMap::from([('n', 7), ('o', 1), ('s', 9), ('l', 9)])[&is];
                recovery.announced.in_place.insert(cell, found);
                if is == 'l' {
                    core.list_damaged(cell);
                }
                intent.insert(cell, 7);
                tag(&mut core, cell, 1);
            }
            let judged = recovery.judge_row(&core, row, &BTreeMap::from([(3, intent)]));
            assert_eq!(judged, (judgement, written), "{in_place}");
        }
    }
}
