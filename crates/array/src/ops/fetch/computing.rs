//! Symbols that are computed from others, and compared with the checksums that are known of them.
//!
//! ```text
//!   not given, enough others had --> computed --> its checksum --> right: had
//!                                                             +--> wrong: nothing is computed in this codeword any more
//! ```
//!
//! Of a mirror a symbol is computed by taking another copy. Where that is wrong, the copy that was taken counts as damaged, so that
//! the next one may be read. It is compared also where it was read in the first place.
//!
//! What is redundant may be stale without a trace: a drive that has lost a write of it long ago. Where something waits to be read
//! back that is kept as a checksum, that shows, and counts (VF3).

use levelhead_block::{BufId, Place, Segment};
use levelhead_erasure::SymbolSet;
use levelhead_units::Sectors;

use super::{Codeword, Fetch, Wish, present};
use crate::action::Action;
use crate::core::Core;
use crate::log::rules::Rule;

/// Symbols that were computed and may be wrong.
#[derive(Clone, Debug)]
pub(super) struct Proving {
    buf: BufId,
    /// In the order of their sectors.
    symbols: Vec<Computed>,
}

#[derive(Clone, Copy, Debug)]
struct Computed {
    /// The codeword's place in [`Fetch::codewords`].
    word: usize,
    symbol: usize,
    /// What its checksum should be.
    sum: u32,
    /// What it was computed from.
    from: SymbolSet,
}

impl Fetch {
    /// Computes those of these symbols of which a checksum is known; returns whether there are any. What has it counts as had
    /// once it is known ([`Fetch::handle_digested`]).
    pub(crate) fn prove(
        &mut self,
        core: &mut Core,
        wanted: impl IntoIterator<Item = Wish>,
    ) -> bool {
        assert!(self.proving.is_none(), "VF3: operation {} proves something already", self.op);
        if !is_known(core) {
            return false;
        }
        let mut symbols = Vec::new();
        for Wish { word, symbols: of_word } in wanted {
            for symbol in of_word.iter() {
                let (of, from) = (&self.codewords[word], self.codewords[word].have);
                let sum = sum_of(core, of, symbol);
                symbols.extend(sum.map(|sum| Computed { word, symbol, sum, from }));
            }
        }
        if symbols.is_empty() {
            return false;
        }
        let count = symbols.len() as u32;
        let buf = core.out.acquire(Sectors::new(count.into()));
        for (&Computed { word, symbol, .. }, sector) in symbols.iter().zip(0..) {
            let from = combination(core, &self.codewords[word], symbol);
            core.out.combine(Place { buf, sector }, from);
        }
        let of = vec![Segment { place: Place { buf, sector: 0 }, sectors: count }];
        core.out.push(Action::digest(self.op, of));
        self.proving = Some(Proving { buf, symbols });
        true
    }

    /// Whether checksums of what was computed are on their way.
    pub(crate) fn is_proving(&self) -> bool {
        self.proving.is_some()
    }

    /// The checksums of what was computed.
    pub(crate) fn handle_digested(&mut self, core: &Core, sums: &[u32]) {
        let is_mirror = core.layout().spec().is_mirror();
        let Some(Proving { buf, symbols }) = self.proving.take() else { return };
        self.filled.push(buf);
        for ((computed, found), sector) in symbols.into_iter().zip(sums).zip(0..) {
            let Computed { word, symbol, sum, from } = computed;
            let word = &mut self.codewords[word];
            if *found == sum {
                word.have = word.have.with(symbol);
                word.computed = word.computed.with(symbol);
                word.places.set(symbol, Place { buf, sector });
            } else if is_mirror {
                // Other copies may have come since.
                (word.damaged, word.have) = (word.damaged.or(from), word.have.minus(from));
            } else {
                word.wrong = word.wrong.with(symbol);
            }
        }
    }

    /// What was computed is not needed any more.
    pub(super) fn end_proving(&mut self) {
        self.filled.extend(self.proving.take().map(|proving| proving.buf));
    }
}

impl Codeword {
    /// Whether a symbol that is not had can be computed, and need not be proved before.
    pub(crate) fn gives(&self, core: &Core, symbol: usize) -> bool {
        let is_enough = self.have.len() >= core.layout().data_symbols() && self.wrong.is_empty();
        is_enough && !self.unproved(core).contains(symbol)
    }

    /// The symbols that are to be computed and proved before the subject is given, once that can be.
    pub(crate) fn unproved(&self, core: &Core) -> SymbolSet {
        if !is_known(core) {
            return SymbolSet::EMPTY;
        }
        let has_sum = |symbol: &usize| sum_of(core, self, *symbol).is_some();
        if !core.layout().spec().is_mirror() {
            return self.subject.minus(self.have).iter().filter(has_sum).collect();
        }
        if self.waiting_copy(core).is_some() {
            return SymbolSet::EMPTY; // It is had from its record, or has its checksum.
        }
        let others = present(core, self.row, core.layout().symbols()).minus(self.have);
        others.iter().filter(has_sum).take(1).collect()
    }

    /// The copy of a mirror that is given: one that waits to be read back before the others, and nothing while one is to be proved.
    pub(crate) fn copy(&self, core: &Core) -> Option<usize> {
        let any = || self.have.iter().next().filter(|_| self.unproved(core).is_empty());
        self.waiting_copy(core).or_else(any)
    }

    /// A copy that is had and waits to be read back: it is what was written there last (VF3).
    fn waiting_copy(&self, core: &Core) -> Option<usize> {
        let waits =
            |symbol: &usize| core.verify.records.waits(core.layout().cell(self.row, *symbol));
        self.have.iter().find(waits)
    }
}

/// Whether a checksum may be known of anything.
fn is_known(core: &Core) -> bool {
    let verify = &core.verify;
    !verify.records.is_empty() && core.out.carries_content() && verify.keeps(Rule::FromRecord)
}

/// The checksum that a symbol should have, where it is known.
fn sum_of(core: &Core, word: &Codeword, symbol: usize) -> Option<u32> {
    core.verify.records.sum(core.layout().cell(word.row, symbol))
}

/// A symbol as a combination of symbols that were read.
pub(crate) fn decode(core: &Core, word: &Codeword, symbol: usize) -> Vec<(u8, Place)> {
    assert!(word.row.stripe < core.holdings.synced(), "A3: {:?} is not in sync", word.row);
    combination(core, word, symbol)
}

fn combination(core: &Core, word: &Codeword, symbol: usize) -> Vec<(u8, Place)> {
    let code = core.code().expect("only a redundant array decodes");
    let terms = code.compute(&word.have, symbol).into_iter();
    terms.map(|(coefficient, source)| (coefficient, word.place(source))).collect()
}
