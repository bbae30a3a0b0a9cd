//! The new values of the sectors of codewords: what clients write, and the redundancy that is computed for it.

use levelhead_block::{BufId, Place};
use levelhead_erasure::SymbolSet;
use levelhead_units::Sectors;

use super::{Value, WriteOp};
use crate::core::Core;
use crate::log::contents::Stored;
use crate::ops::fetch::Codeword;
use crate::ops::fetch::computing::decode;
use crate::ops::ways::{Method, Way};
use crate::shape::{Cell, Row};

impl WriteOp {
    /// What a mirror stores: the new data as it lies in memory, or what was read of one copy, on every other one.
    pub(super) fn copies(&mut self, core: &Core) -> Vec<Vec<Stored>> {
        let stored = |(word, changes): (&Codeword, &Vec<Value>)| {
            let new = changes.first().map(|value| value.place);
            let source = word.have.iter().next().filter(|_| new.is_none());
            let Some(place) = new.or(source.map(|symbol| word.place(symbol))) else {
                return Vec::new();
            };
            let others = word.usable.iter().filter(|&symbol| Some(symbol) != source);
            others
                .map(|symbol| Stored { cell: core.layout().cell(word.row, symbol), place })
                .collect()
        };
        let codewords = self.fetch.codewords.iter().zip(&self.changes).map(stored).collect();
        self.scratch.extend(self.fetch.take_filled());
        codewords
    }

    /// What every other array stores.
    pub(super) fn data_and_redundancy(
        &mut self,
        core: &mut Core,
        ways: &[Way],
    ) -> Vec<Vec<Stored>> {
        let redundant = self.place_redundant(core, ways);
        let mut codewords = Vec::with_capacity(ways.len());
        for (idx, way) in ways.iter().enumerate() {
            self.compute(core, idx, way.method, &redundant[idx]);
            let word = &self.fetch.codewords[idx];
            let changes =
                self.changes[idx].iter().filter(|change| word.usable.contains(change.symbol));
            let stored = changes.chain(&redundant[idx]).map(|value| stored(core, word.row, value));
            codewords.push(stored.collect());
        }
        codewords
    }

    /// Gives each redundant symbol that will be written a place, in the order of the drives, so that
    /// neighbours on a drive are neighbours in memory.
    fn place_redundant(&mut self, core: &mut Core, ways: &[Way]) -> Vec<Vec<Value>> {
        let mut cells: Vec<(Cell, usize, usize)> = Vec::new();
        for (idx, (word, way)) in self.fetch.codewords.iter().zip(ways).enumerate() {
            if way.method != Method::Plain {
                let symbols = word.usable.minus(SymbolSet::first(core.layout().data_symbols()));
                let cell = |symbol| (core.layout().cell(word.row, symbol), idx, symbol);
                cells.extend(symbols.iter().map(cell));
            }
        }
        cells.sort_unstable();
        let mut places = vec![Vec::new(); ways.len()];
        if !cells.is_empty() {
            let buf = self.acquire(core, Sectors::new(cells.len() as u64));
            for (sector, (_, idx, symbol)) in (0_u32..).zip(cells) {
                places[idx].push(Value { symbol, place: Place { buf, sector } });
            }
        }
        places
    }

    fn compute(&mut self, core: &mut Core, idx: usize, method: Method, into: &[Value]) {
        let data = core.layout().data_symbols();
        let changes = self.changes[idx].clone();
        let changed = |symbol: usize| {
            let found = changes.iter().find(|changed| changed.symbol == symbol);
            found.map(|changed| changed.place)
        };
        let decoded = match method {
            Method::Decode => self.decode_unchanged(core, idx),
            Method::Plain | Method::Reconstruct | Method::Modify => Vec::new(),
        };
        let word = &self.fetch.codewords[idx];
        for &Value { symbol, place } in into {
            let code = core.code().expect("redundant symbols have a code");
            let coefficient = |column| code.coefficient(symbol - data, column);
            let mut from: Vec<(u8, Place)> = Vec::new();
            match method {
                Method::Plain => unreachable!("a plain write has no redundant symbols"),
                Method::Modify => {
                    from.push((1, word.place(symbol)));
                    for &Value { symbol: column, place } in &changes {
                        from.push((coefficient(column), place));
                        from.push((coefficient(column), word.place(column)));
                    }
                }
                Method::Reconstruct | Method::Decode => {
                    // What is damaged counts as zeroes.
                    let is_known = |column: &usize| {
                        changed(*column).is_some() || !word.listed.contains(*column)
                    };
                    for column in (0..data).filter(is_known) {
                        let computed = decoded.iter().find(|known| known.symbol == column);
                        let value = changed(column)
                            .or(computed.map(|known| known.place))
                            .unwrap_or_else(|| word.place(column));
                        from.push((coefficient(column), value));
                    }
                }
            }
            core.out.combine(place, from);
        }
    }

    /// Computes the data that does not change and was not read.
    fn decode_unchanged(&mut self, core: &mut Core, idx: usize) -> Vec<Value> {
        let missing = computed(core, &self.fetch.codewords[idx]);
        if missing.is_empty() {
            return Vec::new();
        }
        self.cost.decoded += 1;
        let buf = self.acquire(core, Sectors::new(missing.len() as u64));
        let places = (0_u32..).zip(missing.iter());
        places
            .map(|(sector, symbol)| {
                let place = Place { buf, sector };
                let from = decode(core, &self.fetch.codewords[idx], symbol);
                core.out.combine(place, from);
                Value { symbol, place }
            })
            .collect()
    }

    /// A buffer that is kept until the write's end.
    fn acquire(&mut self, core: &mut Core, sectors: Sectors) -> BufId {
        let buf = core.out.acquire(sectors);
        self.scratch.push(buf);
        self.scratch_sectors += sectors;
        buf
    }
}

/// The data that does not change, that was not read, and that redundancy does not count as zeroes.
pub(super) fn computed(core: &Core, word: &Codeword) -> SymbolSet {
    let data = SymbolSet::first(core.layout().data_symbols());
    data.minus(word.subject).minus(word.have).minus(word.listed)
}

/// A symbol's new value, as the sector that it is for.
pub(super) fn stored(core: &Core, row: Row, value: &Value) -> Stored {
    Stored { cell: core.layout().cell(row, value.symbol), place: value.place }
}
