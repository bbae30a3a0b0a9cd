//! Sets of symbols of one codeword.

use std::fmt;

/// The most symbols a codeword over GF(2^8) may have.
pub(crate) const SYMBOLS_MAX: usize = 256;

const WORDS: usize = SYMBOLS_MAX / u64::BITS as usize;

/// A set of symbols of one codeword, each named by its place in it: 0 to 255.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct SymbolSet([u64; WORDS]);

impl SymbolSet {
    /// No symbol.
    pub const EMPTY: Self = Self([0; WORDS]);

    /// The symbols in places 0 to `count - 1`.
    ///
    /// # Panics
    ///
    /// If `count` is more than 256.
    #[inline]
    pub fn first(count: usize) -> Self {
        assert!(count <= SYMBOLS_MAX, "a codeword has at most 256 symbols");
        let word = |idx: usize| match count.saturating_sub(idx * 64) {
            0 => 0,
            below @ 1..64 => (1 << below) - 1,
            _ => u64::MAX,
        };
        Self(std::array::from_fn(word))
    }

    /// The set and `symbol`.
    ///
    /// # Panics
    ///
    /// If `symbol` is not below 256.
    #[must_use]
    #[inline]
    pub const fn with(mut self, symbol: usize) -> Self {
        assert!(symbol < SYMBOLS_MAX, "a codeword has at most 256 symbols");
        self.0[symbol / 64] |= 1 << (symbol % 64);
        self
    }

    /// The set but for `symbol`.
    ///
    /// # Panics
    ///
    /// If `symbol` is not below 256.
    #[must_use]
    #[inline]
    pub const fn without(mut self, symbol: usize) -> Self {
        assert!(symbol < SYMBOLS_MAX, "a codeword has at most 256 symbols");
        self.0[symbol / 64] &= !(1 << (symbol % 64));
        self
    }

    /// Whether `symbol` is in the set; nothing past 255 is.
    #[inline]
    pub const fn contains(&self, symbol: usize) -> bool {
        symbol < SYMBOLS_MAX && self.0[symbol / 64] >> (symbol % 64) & 1 == 1
    }

    /// How many symbols are in the set.
    #[inline]
    pub fn len(&self) -> usize {
        // Most sets are of short codewords: words without a symbol are not counted bit by bit.
        let filled = self.0.iter().filter(|&&word| word != 0);
        filled.map(|word| word.count_ones() as usize).sum()
    }

    /// Whether no symbol is in the set.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.iter().fold(0, |all, word| all | word) == 0
    }

    /// The symbols in both sets.
    #[must_use]
    #[inline]
    pub fn and(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    /// The symbols in either set.
    #[must_use]
    #[inline]
    pub fn or(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// The symbols in this set and not in `other`.
    #[must_use]
    #[inline]
    pub fn minus(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    /// The symbols, lowest first.
    #[inline]
    pub fn iter(&self) -> Symbols {
        Symbols { left: *self, word: 0 }
    }
}

/// The symbols of a set, lowest first: [`SymbolSet::iter`].
#[derive(Clone, Debug)]
pub struct Symbols {
    left: SymbolSet,
    /// The first word of the set that may have a symbol left.
    word: usize,
}

impl Iterator for Symbols {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while let Some(bits) = self.left.0.get_mut(self.word) {
            if *bits != 0 {
                let bit = bits.trailing_zeros() as usize;
                *bits &= *bits - 1;
                return Some(self.word * 64 + bit);
            }
            self.word += 1;
        }
        None
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.left.len();
        (left, Some(left))
    }
}

impl ExactSizeIterator for Symbols {}

impl FromIterator<usize> for SymbolSet {
    /// # Panics
    ///
    /// If a symbol is not below 256.
    #[inline]
    fn from_iter<I: IntoIterator<Item = usize>>(symbols: I) -> Self {
        symbols.into_iter().fold(Self::EMPTY, Self::with)
    }
}

impl fmt::Debug for SymbolSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in_and_nothing_else() {
        let symbols = [0, 1, 63, 64, 127, 128, 200, 255];
        let set: SymbolSet = symbols.into_iter().collect();
        assert!(set.iter().eq(symbols));
        assert_eq!(set.len(), symbols.len());
        for symbol in 0..300 {
            assert_eq!(set.contains(symbol), symbols.contains(&symbol), "{symbol}");
        }
        assert_eq!(format!("{:?}", SymbolSet::EMPTY.with(3).with(70)), "{3, 70}");
    }

    #[test]
    fn sets_combine_as_sets_do() {
        let (left, right): (SymbolSet, SymbolSet) =
            ([0, 64, 255].into_iter().collect(), [64, 65].into_iter().collect());
        assert!(left.and(right).iter().eq([64]));
        assert!(left.or(right).iter().eq([0, 64, 65, 255]));
        assert!(left.minus(right).iter().eq([0, 255]));
    }

    #[test]
    fn with_and_without_undo_each_other() {
        let full = SymbolSet::first(256);
        assert_eq!(full.len(), 256);
        for symbol in 0..256 {
            assert_eq!(full.without(symbol).len(), 255);
            assert_eq!(full.without(symbol).with(symbol), full);
            assert!(SymbolSet::EMPTY.with(symbol).without(symbol).is_empty());
        }
    }
}
