//! How the redundant symbols of a codeword follow from its data: a Reed-Solomon code, or plain copies.
//!
//! A mirror's codeword has one data symbol. The code of one data symbol would do, but only its first redundant
//! symbol is a copy: the others are multiples. A mirror's drives hold the same bytes, so that each of them can be
//! read without this program, and nothing needs to be computed.

use levelhead_erasure::{Code, SymbolSet};

use super::Layout;

/// How the redundant symbols of a codeword follow from its data.
#[derive(Clone, Debug)]
pub enum Redundancy {
    /// Each redundant symbol is the one data symbol.
    Copies,
    /// Each is a combination of all data symbols.
    Code(Code),
}

/// A symbol as a part of a combination: its coefficient, and which.
pub type Term = (u8, usize);

impl Redundancy {
    /// That of this layout, if something is redundant.
    pub fn of(layout: &Layout) -> Option<Self> {
        let data = layout.data_symbols();
        let redundant = layout.symbols() - data;
        if redundant == 0 {
            return None;
        }
        if layout.spec().is_mirror() {
            assert_eq!(data, 1, "a mirror's codeword has one data symbol");
            return Some(Self::Copies);
        }
        let code = Code::new(data, redundant);
        Some(Self::Code(code.expect("a spec's codeword is not too long")))
    }

    /// The coefficient of data symbol `column` in redundant symbol `row`, counted from 0.
    pub fn coefficient(&self, row: usize, column: usize) -> u8 {
        match self {
            Self::Copies => 1,
            Self::Code(code) => code.coefficient(row, column),
        }
    }

    /// A symbol as a combination of symbols that are had.
    ///
    /// Panics if these are fewer than the data symbols.
    pub fn compute(&self, have: &SymbolSet, symbol: usize) -> Vec<Term> {
        match self {
            Self::Copies => vec![(1, have.iter().next().expect("a copy is had"))],
            Self::Code(code) => {
                let rows = code.rows(have, &[symbol]).expect("enough symbols are had");
                let sources = rows.sources().iter().enumerate();
                sources.map(|(at, &source)| (rows.coefficient(0, at), source)).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use levelhead_units::Sectors;

    use super::*;

    fn redundancy(text: &str) -> Option<Redundancy> {
        Redundancy::of(&Layout::new(text.parse().unwrap(), Sectors::new(64)))
    }

    #[test]
    fn mirrors_hold_copies_whatever_their_number() {
        assert!(redundancy("raid0:3").is_none());
        for text in ["raid1:2", "raid1:5", "raid10:4", "raid10:3"] {
            let copies = redundancy(text).unwrap();
            assert!((0..4).all(|row| copies.coefficient(row, 0) == 1), "{text}");
            let have: SymbolSet = [1].into_iter().collect();
            assert_eq!(copies.compute(&have, 0), [(1, 1)], "{text}");
        }
    }

    /// Why a mirror is no Reed-Solomon code: the third drive would hold something else.
    #[test]
    fn code_of_one_data_symbol_is_no_copy_from_the_second_redundant_symbol_on() {
        let code = redundancy("eraid:1+2,e=1").unwrap();
        assert_eq!(code.coefficient(0, 0), 1);
        assert_ne!(code.coefficient(1, 0), 1);
    }
}
