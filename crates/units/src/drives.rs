//! Names of the drives of one array, and sets of them.

use std::fmt;

/// A drive's place in its array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DriveIdx(u8);

impl DriveIdx {
    /// The most drives one array may have.
    pub const MAX: u8 = 64;

    /// The drive in place `idx`.
    #[inline]
    pub const fn new(idx: u8) -> Self {
        assert!(idx < Self::MAX);
        Self(idx)
    }

    /// The drive in place `idx`, for loops over vectors with one entry per drive.
    #[inline]
    pub fn from_usize(idx: usize) -> Self {
        Self::new(u8::try_from(idx).expect("a drive index fits a byte"))
    }

    /// The place as an index into a vector with one entry per drive.
    #[inline]
    pub const fn as_usize(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for DriveIdx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A set of drives of one array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DriveSet(u64);

const _: () = assert!(DriveIdx::MAX as u32 == u64::BITS);

impl DriveSet {
    /// No drive.
    pub const EMPTY: Self = Self(0);

    /// The drives in places 0 to `count - 1`.
    #[inline]
    pub const fn first(count: u8) -> Self {
        assert!(count <= DriveIdx::MAX);
        Self(if count == DriveIdx::MAX { u64::MAX } else { (1 << count) - 1 })
    }

    /// Whether `drive` is in the set.
    #[inline]
    pub const fn contains(self, drive: DriveIdx) -> bool {
        self.0 & (1 << drive.0) != 0
    }

    /// How many drives are in the set.
    #[inline]
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether no drive is in the set.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The set and `drive`.
    #[must_use]
    #[inline]
    pub const fn with(self, drive: DriveIdx) -> Self {
        Self(self.0 | 1 << drive.0)
    }

    /// The drives in both sets.
    #[must_use]
    #[inline]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The drives in either set.
    #[must_use]
    #[inline]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The drives in this set and not in `other`.
    #[must_use]
    #[inline]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The drives, lowest first.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = DriveIdx> {
        let mut bits = self.0;
        std::iter::from_fn(move || {
            let lowest = bits.trailing_zeros() as u8;
            bits &= bits.wrapping_sub(1);
            (lowest < DriveIdx::MAX).then_some(DriveIdx(lowest))
        })
    }

    /// The set as one bit a drive, lowest drive in the lowest bit: its form on disk.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The set that [`DriveSet::to_bits`] gave.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

impl FromIterator<DriveIdx> for DriveSet {
    fn from_iter<I: IntoIterator<Item = DriveIdx>>(drives: I) -> Self {
        drives.into_iter().fold(Self::EMPTY, Self::with)
    }
}

impl fmt::Display for DriveSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, drive) in self.iter().enumerate() {
            write!(f, "{}{drive}", if at == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(drives: &[u8]) -> DriveSet {
        drives.iter().copied().map(DriveIdx::new).collect()
    }

    #[test]
    fn sets_combine_as_sets_do() {
        let (left, right) = (set(&[0, 3, 63]), set(&[3, 5]));
        assert_eq!(left.and(right), set(&[3]));
        assert_eq!(left.or(right), set(&[0, 3, 5, 63]));
        assert_eq!(left.without(right), set(&[0, 63]));
        assert_eq!(left.len(), 3);
        assert_eq!(left.iter().map(DriveIdx::as_usize).collect::<Vec<_>>(), [0, 3, 63]);
        assert_eq!(DriveSet::from_bits(left.to_bits()), left);
    }

    #[test]
    fn first_names_every_drive_below_the_count() {
        assert_eq!(DriveSet::first(3), set(&[0, 1, 2]));
        assert_eq!(DriveSet::first(DriveIdx::MAX).len(), 64);
        assert!(DriveSet::first(0).is_empty());
        assert_eq!(DriveSet::first(3).to_string(), "0,1,2");
    }
}
