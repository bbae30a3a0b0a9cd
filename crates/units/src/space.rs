//! Addresses and sizes. One sector is 4096 bytes, everywhere but inside a drive's own profile.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub};

/// Bytes in one sector.
pub const SECTOR_SIZE: usize = 4096;

/// A sector's address on one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lba(u64);

/// A number of sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sectors(u64);

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

/// A run of sectors on one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    /// Its first sector.
    pub lba: Lba,
    /// How many sectors it has.
    pub sectors: Sectors,
}

impl Lba {
    /// The first sector of a device.
    pub const ZERO: Self = Self(0);

    /// Sector number `lba`.
    #[inline]
    pub const fn new(lba: u64) -> Self {
        Self(lba)
    }

    /// The sector's number.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Sectors {
    /// No sectors.
    pub const ZERO: Self = Self(0);

    /// `count` sectors.
    #[inline]
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// How many.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// How many, as an index into memory.
    #[inline]
    pub const fn as_usize(self) -> usize {
        self.0 as usize
    }

    /// The bytes in this number of sectors.
    pub const fn bytes(self) -> Bytes {
        Bytes(self.0 * SECTOR_SIZE as u64)
    }

    /// `self - rhs`, or zero where that would be negative.
    #[must_use]
    #[inline]
    pub const fn saturating_sub(self, rhs: Self) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}

const _: () = assert!(size_of::<usize>() == 8, "sector counts are used as indices");

impl Bytes {
    /// `count` bytes.
    #[inline]
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// How many.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The whole sectors that fit.
    pub const fn sectors_floor(self) -> Sectors {
        Sectors(self.0 / SECTOR_SIZE as u64)
    }

    /// The sectors needed to hold this number of bytes.
    pub const fn sectors_ceil(self) -> Sectors {
        Sectors(self.0.div_ceil(SECTOR_SIZE as u64))
    }

    /// The sectors that hold exactly this number of bytes, if a whole number does.
    pub fn sectors_exact(self) -> Option<Sectors> {
        self.0.is_multiple_of(SECTOR_SIZE as u64).then(|| self.sectors_floor())
    }
}

impl Extent {
    /// `sectors` sectors from `lba` on.
    #[inline]
    pub const fn new(lba: Lba, sectors: Sectors) -> Self {
        Self { lba, sectors }
    }

    /// The first sector after it.
    #[inline]
    pub fn end(self) -> Lba {
        self.lba + self.sectors
    }

    /// Whether `lba` is one of its sectors.
    #[inline]
    pub fn contains(self, lba: Lba) -> bool {
        self.lba <= lba && lba < self.end()
    }

    /// Whether it lies on a device of `size` sectors.
    #[inline]
    pub fn fits(self, size: Sectors) -> bool {
        self.lba.0.checked_add(self.sectors.0).is_some_and(|end| end <= size.0)
    }

    /// Its sectors' addresses, in order.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = Lba> {
        (self.lba.0..self.end().0).map(Lba)
    }
}

impl Add<Sectors> for Lba {
    type Output = Self;
    #[inline]
    fn add(self, rhs: Sectors) -> Self {
        Self(self.0.checked_add(rhs.0).expect("addresses stay below 2^64 sectors"))
    }
}

impl Sub for Lba {
    type Output = Sectors;
    #[inline]
    fn sub(self, rhs: Self) -> Sectors {
        Sectors(self.0.checked_sub(rhs.0).expect("a distance runs from low to high"))
    }
}

impl Add for Sectors {
    type Output = Self;
    #[inline]
    fn add(self, rhs: Self) -> Self {
        Self(self.0.checked_add(rhs.0).expect("sizes stay below 2^64 sectors"))
    }
}

impl AddAssign for Sectors {
    #[inline]
    fn add_assign(&mut self, rhs: Self) {
        *self = *self + rhs;
    }
}

impl Sub for Sectors {
    type Output = Self;
    #[inline]
    fn sub(self, rhs: Self) -> Self {
        Self(self.0.checked_sub(rhs.0).expect("a size is not negative"))
    }
}

impl Mul<u64> for Sectors {
    type Output = Self;
    #[inline]
    fn mul(self, rhs: u64) -> Self {
        Self(self.0.checked_mul(rhs).expect("sizes stay below 2^64 sectors"))
    }
}

impl Sum for Sectors {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::ZERO, Self::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_what_the_name_says() {
        let size = Bytes::new(10_000);
        assert_eq!(size.sectors_floor(), Sectors::new(2));
        assert_eq!(size.sectors_ceil(), Sectors::new(3));
        assert_eq!(size.sectors_exact(), None);
        assert_eq!(Bytes::new(8192).sectors_exact(), Some(Sectors::new(2)));
    }

    #[test]
    fn extent_ends_before_its_end() {
        let extent = Extent::new(Lba::new(5), Sectors::new(3));
        assert_eq!(extent.iter().map(Lba::get).collect::<Vec<_>>(), [5, 6, 7]);
        assert!(extent.contains(Lba::new(7)));
        assert!(!extent.contains(extent.end()));
        assert!(extent.fits(Sectors::new(8)));
        assert!(!extent.fits(Sectors::new(7)));
        assert!(!Extent::new(Lba::new(u64::MAX), Sectors::new(2)).fits(Sectors::new(u64::MAX)));
    }
}
