//! Small sets and tables, as dense as a state needs them.

use std::fmt;
use std::ops::{Index, IndexMut};

/// The most drives of a layout here.
pub(crate) const DRIVES_MAX: usize = 4;
/// The most stripes of an array here.
pub(crate) const STRIPES_MAX: usize = 2;

/// A set of drives, by their slots, or of stripes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct SmallSet(u8);

/// A set of drives, by their slots.
pub(crate) type Drives = SmallSet;
/// A set of stripes.
pub(crate) type Stripes = SmallSet;

impl SmallSet {
    pub(crate) const EMPTY: Self = Self(0);

    pub(crate) const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// The first `count` of them.
    pub(crate) const fn first(count: u8) -> Self {
        Self((1 << count) - 1)
    }

    pub(crate) const fn only(at: u8) -> Self {
        Self(1 << at)
    }

    pub(crate) const fn contains(self, at: u8) -> bool {
        self.0 >> at & 1 == 1
    }

    pub(crate) const fn with(self, at: u8) -> Self {
        Self(self.0 | 1 << at)
    }

    pub(crate) const fn without(self, at: u8) -> Self {
        Self(self.0 & !(1 << at))
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn without_all(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(crate) const fn len(self) -> u32 {
        self.0.count_ones()
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether all of them are in `other`, too.
    pub(crate) const fn minus_is_empty(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    pub(crate) const fn as_usize(self) -> usize {
        self.0 as usize
    }

    pub(crate) fn iter(self) -> impl DoubleEndedIterator<Item = u8> + Clone {
        (0..8).filter(move |&at| self.contains(at))
    }

    /// Those that `is_in` says yes to.
    pub(crate) fn filter(self, is_in: impl Fn(u8) -> bool) -> Self {
        self.iter().filter(|&at| is_in(at)).fold(Self::EMPTY, Self::with)
    }
}

impl fmt::Debug for SmallSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// Number of an entry of the log.
pub(crate) type EntryNo = u8;

/// A set of entries of the log.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Entries(u32);

impl Entries {
    pub(crate) const EMPTY: Self = Self(0);
    /// One more than the last entry that a set can have.
    pub(crate) const LIMIT: usize = 32;

    pub(crate) const fn only(entry: EntryNo) -> Self {
        Self(1 << entry)
    }

    /// All before `end`.
    pub(crate) const fn before(end: EntryNo) -> Self {
        Self((1 << end) - 1)
    }

    pub(crate) const fn contains(self, entry: EntryNo) -> bool {
        self.0 >> entry & 1 == 1
    }

    pub(crate) const fn insert(&mut self, entry: EntryNo) {
        self.0 |= 1 << entry;
    }

    pub(crate) const fn remove(&mut self, entry: EntryNo) {
        self.0 &= !(1 << entry);
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The last one; entry 0, the start of the log, if there is none.
    pub(crate) fn last(self) -> EntryNo {
        u8::try_from((self.0 | 1).ilog2()).expect("below 32")
    }
}

/// A table with a line for each drive or stripe.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Table<T, const LINES: usize>(pub(crate) [T; LINES]);

/// A line for each drive, by its slot.
pub(crate) type PerDrive<T> = Table<T, DRIVES_MAX>;
/// A line for each stripe.
pub(crate) type PerStripe<T> = Table<T, STRIPES_MAX>;

impl<T: Copy, const LINES: usize> Table<T, LINES> {
    /// The same in each line.
    pub(crate) const fn all(line: T) -> Self {
        Self([line; LINES])
    }
}

impl<T: Copy + Default, const LINES: usize> Default for Table<T, LINES> {
    fn default() -> Self {
        Self::all(T::default())
    }
}

impl<T, const LINES: usize> Index<u8> for Table<T, LINES> {
    type Output = T;

    fn index(&self, at: u8) -> &T {
        &self.0[usize::from(at)]
    }
}

impl<T, const LINES: usize> IndexMut<u8> for Table<T, LINES> {
    fn index_mut(&mut self, at: u8) -> &mut T {
        &mut self.0[usize::from(at)]
    }
}
