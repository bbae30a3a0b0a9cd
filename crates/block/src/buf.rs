//! Aligned sector buffers, and a pool of their memory.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use levelhead_units::{SECTOR_SIZE, Sectors};

/// A number of sectors in memory, aligned to a sector so that a drive can transfer it directly, or packed so that it takes no more memory
/// than its bytes.
///
/// Owned by one place at a time; shared for reading as `Arc<Buf>`. Its bytes start as zeroes, unless a
/// [`Pool`] was asked for less.
pub struct Buf {
    /// One sector longer than the content, so that an aligned run lies inside; or packed, and just as long.
    bytes: Vec<u8>,
    start: usize,
    sectors: Sectors,
    lease: Option<Lease>,
}

impl Buf {
    /// A buffer of no sectors.
    pub fn empty() -> Self {
        Self { bytes: Vec::new(), start: 0, sectors: Sectors::ZERO, lease: None }
    }

    /// A buffer of `sectors` zeroed sectors outside any pool.
    pub fn zeroed(sectors: Sectors) -> Self {
        if sectors == Sectors::ZERO {
            return Self::empty();
        }
        Self::over(vec![0; (sectors.as_usize() + 1) * SECTOR_SIZE], sectors)
    }

    /// The first aligned sectors of `bytes`, which are one sector longer at least.
    fn over(bytes: Vec<u8>, sectors: Sectors) -> Self {
        assert!(bytes.len() > sectors.as_usize() * SECTOR_SIZE);
        let start = bytes.as_ptr().align_offset(SECTOR_SIZE);
        assert!(start < SECTOR_SIZE);
        Self { bytes, start, sectors, lease: None }
    }

    /// A buffer holding a copy of `bytes`.
    ///
    /// Panics unless that is a whole number of sectors.
    pub fn copy_of(bytes: &[u8]) -> Self {
        assert!(bytes.len().is_multiple_of(SECTOR_SIZE), "{} bytes", bytes.len());
        if bytes.is_empty() {
            return Self::empty();
        }
        // What is filled is not zeroed before.
        let mut all: Vec<u8> = Vec::with_capacity(bytes.len() + SECTOR_SIZE);
        all.resize(all.as_ptr().align_offset(SECTOR_SIZE), 0);
        all.extend_from_slice(bytes);
        all.resize(bytes.len() + SECTOR_SIZE, 0);
        Self::over(all, Sectors::new((bytes.len() / SECTOR_SIZE) as u64))
    }

    /// A copy of `bytes` that takes no more memory than they do: a sector that is kept for long. It is aligned by chance only.
    ///
    /// Panics unless that is a whole number of sectors.
    pub fn packed(bytes: &[u8]) -> Self {
        assert!(bytes.len().is_multiple_of(SECTOR_SIZE), "{} bytes", bytes.len());
        let sectors = Sectors::new((bytes.len() / SECTOR_SIZE) as u64);
        Self { bytes: bytes.to_vec(), start: 0, sectors, lease: None }
    }

    /// A sector of this byte that is not aligned.
    #[cfg(test)]
    pub(crate) fn misaligned(byte: u8) -> Self {
        let mut buf = Self::over(vec![byte; 3 * SECTOR_SIZE], Sectors::new(1));
        buf.start += 1;
        buf
    }

    /// Whether it takes no more memory than its bytes do.
    pub fn is_packed(&self) -> bool {
        self.bytes.len() == self.sectors.as_usize() * SECTOR_SIZE
    }

    /// Whether a drive can transfer it directly.
    pub fn is_aligned(&self) -> bool {
        self.as_slice().as_ptr().align_offset(SECTOR_SIZE) == 0
    }

    /// How many sectors it has.
    pub fn sectors(&self) -> Sectors {
        self.sectors
    }

    /// All its bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[self.start..][..self.sectors.as_usize() * SECTOR_SIZE]
    }

    /// All its bytes, to change them.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..][..self.sectors.as_usize() * SECTOR_SIZE]
    }

    /// The bytes of `count` sectors from sector `first` on.
    pub fn part(&self, first: usize, count: usize) -> &[u8] {
        &self.as_slice()[first * SECTOR_SIZE..][..count * SECTOR_SIZE]
    }

    /// The bytes of `count` sectors from sector `first` on, to change them.
    pub fn part_mut(&mut self, first: usize, count: usize) -> &mut [u8] {
        &mut self.as_mut_slice()[first * SECTOR_SIZE..][..count * SECTOR_SIZE]
    }
}

impl fmt::Debug for Buf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buf({} sectors)", self.sectors.get())
    }
}

impl Drop for Buf {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.0.give_back(std::mem::take(&mut self.bytes), self.sectors);
        }
    }
}

/// A shelf for memory that is used again: what is fresh has to be zeroed, and mapped page by page.
///
/// Memory has a power of two of sectors, so that what served one size serves the next.
#[derive(Clone, Debug)]
pub struct Pool(Arc<PoolState>);

struct PoolState {
    kept_max: Sectors,
    shelf: Mutex<Shelf>,
}

/// Memory that no buffer has, by its size.
#[derive(Default)]
struct Shelf {
    sectors: u64,
    classes: BTreeMap<u64, Vec<Vec<u8>>>,
}

struct Lease(Arc<PoolState>);

impl Pool {
    /// A pool that keeps at most `kept_max` sectors for later.
    pub fn new(kept_max: Sectors) -> Self {
        Self(Arc::new(PoolState { kept_max, shelf: Mutex::default() }))
    }

    /// A zeroed buffer. Its memory goes back when it is dropped.
    pub fn take(&self, sectors: Sectors) -> Buf {
        let mut buf = self.take_to_fill(sectors);
        buf.as_mut_slice().fill(0);
        buf
    }

    /// The same with anything in it: zeroes, or what an earlier buffer of this pool held. The caller
    /// overwrites all of it before the buffer is used otherwise.
    pub fn take_to_fill(&self, sectors: Sectors) -> Buf {
        if sectors == Sectors::ZERO {
            return Buf::empty();
        }
        let class = class(sectors);
        let bytes = self.0.lock().take(class);
        let bytes = bytes.unwrap_or_else(|| vec![0; (class as usize + 1) * SECTOR_SIZE]);
        let mut buf = Buf::over(bytes, sectors);
        buf.lease = Some(Lease(Arc::clone(&self.0)));
        buf
    }

    /// How many sectors it keeps.
    pub fn kept(&self) -> Sectors {
        Sectors::new(self.0.lock().sectors)
    }
}

/// Sectors of the memory behind a buffer of `sectors` sectors.
fn class(sectors: Sectors) -> u64 {
    sectors.get().next_power_of_two()
}

impl PoolState {
    fn give_back(&self, bytes: Vec<u8>, sectors: Sectors) {
        let mut shelf = self.lock();
        if shelf.sectors + class(sectors) <= self.kept_max.get() {
            shelf.sectors += class(sectors);
            shelf.classes.entry(class(sectors)).or_default().push(bytes);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelf {
    fn take(&mut self, class: u64) -> Option<Vec<u8>> {
        let bytes = self.classes.get_mut(&class)?.pop()?;
        self.sectors -= class;
        Some(bytes)
    }
}

impl fmt::Debug for PoolState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PoolState(keeps {} sectors at most)", self.kept_max.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_zeroed() {
        for sectors in [1, 2, 17] {
            let buf = Buf::zeroed(Sectors::new(sectors));
            assert_eq!(buf.as_slice().as_ptr().align_offset(SECTOR_SIZE), 0);
            assert_eq!(buf.as_slice().len(), sectors as usize * SECTOR_SIZE);
            assert!(buf.as_slice().iter().all(|&byte| byte == 0));
        }
    }

    #[test]
    fn packed_buffer_has_the_bytes_and_no_room_beside_them() {
        let buf = Buf::packed(&[5; 2 * SECTOR_SIZE]);
        assert_eq!((buf.as_slice(), buf.bytes.capacity()), (&[5; 2 * SECTOR_SIZE][..], 8_192));
    }

    #[test]
    fn memory_is_used_again_and_a_zeroed_buffer_is_zeroed_all_the_same() {
        let pool = Pool::new(Sectors::new(8));
        let take = |sectors| pool.take_to_fill(Sectors::new(sectors));
        let mut buf = take(3);
        buf.as_mut_slice().fill(7);
        let place = buf.as_slice().as_ptr();
        drop(buf);
        let again = take(4);
        assert_eq!((again.as_slice().as_ptr(), again.as_slice()[0]), (place, 7), "the same class");
        drop(again);
        assert!(pool.take(Sectors::new(4)).as_slice().iter().all(|&byte| byte == 0));
        // No more is kept than the shelf has room for.
        drop([take(4), take(4), take(4), take(2)]);
        assert_eq!(pool.kept(), Sectors::new(8));
    }
}
