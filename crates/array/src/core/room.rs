//! Lists that are made anew for every read and need not ask for memory every time, and what is in those of all reads and writes.

use levelhead_erasure::SymbolSet;
use levelhead_units::Lba;

use crate::policy::tau::Share;
use crate::shape::{Cell, Row};

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

/// What reads share.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadLists {
    /// Reads of a mirror that were begun: its copies take turns.
    turn: u64,
    /// For the decision about a read.
    pub(crate) shares: Room<Share>,
    /// For the sectors that a read is about.
    pub(crate) sectors: Room<ArraySector>,
    /// For the symbols that a read asks for at once.
    pub(crate) wishes: Room<Wish>,
    /// For the cells that these are.
    pub(crate) cells: Room<Cell>,
}

impl ReadLists {
    /// Reads of a mirror that were begun.
    pub(crate) fn turn(&self) -> u64 {
        self.turn
    }

    /// One more was begun.
    pub(crate) fn take_turn(&mut self) {
        self.turn += 1;
    }
}
