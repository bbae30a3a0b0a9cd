//! Whether the sectors of a codeword agree, and which drive is wrong if they do not.
//!
//! What is silently wrong comes by the drive: a write that was lost, or went elsewhere, is wrong in all sectors that
//! the drive has of a codeword. So the question is which *one drive*, wrong in any of its sectors, explains it. The
//! others must then agree among themselves, which says something only if they have more sectors than the data: with
//! two redundant drives at least, and none of them gone. At most one drive passes: two would differ by a codeword
//! that is zero but for their sectors, and no code that survives the loss of two drives has one.

use levelhead_array::{Layout, Redundancy, Row, Term};
use levelhead_erasure::{Kernel, SymbolSet, sum};
use levelhead_units::{DriveIdx, SECTOR_SIZE};

use super::places::Places;

/// Kinds of gaps for which the arithmetic is kept.
const KEPT: usize = 64;

/// See the module.
pub(crate) struct Codewords {
    layout: Layout,
    redundancy: Option<Redundancy>,
    kernel: Kernel,
    /// What follows from what, for sets of symbols that are had.
    kept: Vec<(SymbolSet, Vec<Check>)>,
    computed: Vec<u8>,
}

/// A symbol that follows from others.
#[derive(Clone)]
struct Check {
    symbol: usize,
    terms: Vec<Term>,
}

/// What the sectors of a codeword say together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Agreement {
    /// They agree.
    Right,
    /// No more of them are had than the data are: nothing can be told.
    Unknown,
    /// They do not, and this drive explains it: these of its symbols are not what the others say.
    Drive { drive: DriveIdx, symbols: Vec<usize> },
    /// They do not.
    Wrong,
}

impl Codewords {
    pub(crate) fn new(layout: &Layout, kernel: Kernel) -> Self {
        let redundancy = Redundancy::of(layout);
        let (kept, computed) = (Vec::new(), vec![0; SECTOR_SIZE]);
        Self { layout: *layout, redundancy, kernel, kept, computed }
    }

    /// Whether what is had of a codeword agrees.
    pub(crate) fn judge(&mut self, places: &Places<'_>, row: Row, had: SymbolSet) -> Agreement {
        match self.agree(places, row, had) {
            None => Agreement::Unknown,
            Some(true) => Agreement::Right,
            Some(false) => self.locate(places, row, had),
        }
    }

    /// A symbol as the others give it, which must be as many as the data at least, but for those of a mirror.
    pub(crate) fn compute(
        &mut self,
        places: &Places<'_>,
        row: Row,
        from: SymbolSet,
        symbol: usize,
    ) -> &[u8] {
        let redundancy = self.redundancy.as_ref().expect("only a redundant array computes");
        let terms = redundancy.compute(&from, symbol);
        combine(self.kernel, places, row, &terms, &mut self.computed);
        &self.computed
    }

    /// Whether these symbols, more than the data are, agree.
    pub(crate) fn is_right(&mut self, places: &Places<'_>, row: Row, symbols: SymbolSet) -> bool {
        self.agree(places, row, symbols) == Some(true)
    }

    /// Whether these symbols give others.
    pub(crate) fn may_compute(&self, from: SymbolSet) -> bool {
        self.redundancy.is_some() && from.len() >= self.needed()
    }

    /// The symbols that others are best computed from: those with matching checksums if they are enough, or all that are had.
    pub(crate) fn best(&self, places: &Places<'_>, row: Row, had: SymbolSet) -> SymbolSet {
        let proven = places.proven(row).and(had);
        if self.may_compute(proven) { proven } else { had }
    }

    /// Those of `symbols` that are not what the `proven` ones of them give; none if these do not agree, or are too few.
    pub(crate) fn differing(
        &mut self,
        places: &Places<'_>,
        row: Row,
        symbols: SymbolSet,
        proven: SymbolSet,
    ) -> Vec<usize> {
        if !self.may_compute(proven) || self.agree(places, row, proven) == Some(false) {
            return Vec::new();
        }
        let mut differs = |&symbol: &usize| {
            *self.compute(places, row, proven, symbol) != *places.bytes(row, symbol)
        };
        symbols.minus(proven).iter().filter(|symbol| differs(symbol)).collect()
    }

    /// How many symbols give all others.
    pub(crate) fn needed(&self) -> usize {
        self.layout.data_symbols()
    }

    /// Nothing where nothing can be told.
    fn agree(&mut self, places: &Places<'_>, row: Row, had: SymbolSet) -> Option<bool> {
        if self.redundancy.is_none() || had.len() <= self.needed() {
            return None;
        }
        let at = self.kept.iter().position(|(of, _)| *of == had).unwrap_or_else(|| {
            let checks = self.checks(had);
            if self.kept.len() == KEPT {
                self.kept.clear();
            }
            self.kept.push((had, checks));
            self.kept.len() - 1
        });
        let (kernel, computed) = (self.kernel, &mut self.computed);
        let is_right = |Check { symbol, terms }: &Check| {
            combine(kernel, places, row, terms, computed);
            computed[..] == *places.bytes(row, *symbol)
        };
        Some(self.kept[at].1.iter().all(is_right))
    }

    /// What follows from the first of these symbols.
    fn checks(&self, had: SymbolSet) -> Vec<Check> {
        let redundancy = self.redundancy.as_ref().expect("it was looked at");
        let basis: SymbolSet = had.iter().take(self.needed()).collect();
        let rest = had.iter().skip(self.needed());
        rest.map(|symbol| Check { symbol, terms: redundancy.compute(&basis, symbol) }).collect()
    }

    fn locate(&mut self, places: &Places<'_>, row: Row, had: SymbolSet) -> Agreement {
        let width = self.layout.spec().width();
        let e = self.layout.spec().expansion();
        for slot in 0..width {
            let own: SymbolSet = (slot * e..(slot + 1) * e).collect();
            let others = had.minus(own);
            if others.len() == had.len() || self.agree(places, row, others) != Some(true) {
                continue;
            }
            let own: Vec<usize> = had.and(own).iter().collect();
            let is_wrong = |&symbol: &usize| {
                let bytes = self.compute(places, row, others, symbol);
                *bytes != *places.bytes(row, symbol)
            };
            let symbols: Vec<usize> = own.into_iter().filter(is_wrong).collect();
            let drive = self.layout.cell(row, slot * e).drive;
            return Agreement::Drive { drive, symbols };
        }
        Agreement::Wrong
    }
}

fn combine(kernel: Kernel, places: &Places<'_>, row: Row, terms: &[Term], into: &mut [u8]) {
    let coefficients: Vec<u8> = terms.iter().map(|&(coefficient, _)| coefficient).collect();
    let sources: Vec<&[u8]> = terms.iter().map(|&(_, symbol)| places.bytes(row, symbol)).collect();
    sum(kernel, &coefficients, &sources, into);
}
