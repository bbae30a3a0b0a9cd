//! Lists that are made anew for every read and need not ask for memory every time, and what is in those of all reads and writes.

use levelhead_erasure::SymbolSet;
use levelhead_units::Lba;

use crate::shape::Row;

/// Symbols of one codeword that are to be asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    /// The codeword's place in the codewords of its fetch.
    pub(crate) word: usize,
    pub(crate) symbols: SymbolSet,
}

/// A sector of the array, and the symbol of a codeword that it is. In the order of the codewords.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ArraySector {
    pub(crate) row: Row,
    pub(crate) symbol: usize,
    pub(crate) lba: Lba,
}

/// A list that is empty between two uses and keeps its memory, as much as the longest read so far needed.
#[derive(Clone, Debug)]
pub(crate) struct Room<T>(Vec<T>);

impl<T> Default for Room<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Room<T> {
    /// An empty list, to be given back. A second one, taken meanwhile, has no memory yet.
    pub(crate) fn take(&mut self) -> Vec<T> {
        std::mem::take(&mut self.0)
    }

    /// The list is not needed any more.
    pub(crate) fn give_back(&mut self, mut list: Vec<T>) {
        list.clear();
        self.0 = list;
    }
}
