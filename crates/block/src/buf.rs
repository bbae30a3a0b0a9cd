//! Aligned sector buffers from a bounded pool.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use levelhead_units::{SECTOR_SIZE, Sectors};

/// A number of sectors in memory, aligned to a sector so that a drive can transfer it directly.
///
/// Owned by one place at a time; shared for reading as `Arc<Buf>`. Its bytes start as zeroes.
pub struct Buf {
    /// One sector longer than the content, so that an aligned run lies inside.
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
        let bytes = vec![0; (sectors.as_usize() + 1) * SECTOR_SIZE];
        let start = bytes.as_ptr().align_offset(SECTOR_SIZE);
        assert!(start < SECTOR_SIZE);
        Self { bytes, start, sectors, lease: None }
    }

    /// A buffer holding a copy of `bytes`.
    ///
    /// Panics unless that is a whole number of sectors.
    pub fn copy_of(bytes: &[u8]) -> Self {
        assert!(bytes.len().is_multiple_of(SECTOR_SIZE), "{} bytes", bytes.len());
        let mut buf = Self::zeroed(Sectors::new((bytes.len() / SECTOR_SIZE) as u64));
        buf.as_mut_slice().copy_from_slice(bytes);
        buf
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
            lease.0.used.fetch_sub(self.sectors.get(), Ordering::Relaxed);
        }
    }
}

/// A bound on the sectors that are in memory at the same time.
#[derive(Clone, Debug)]
pub struct Pool(Arc<PoolState>);

#[derive(Debug)]
struct PoolState {
    limit: Sectors,
    used: AtomicU64,
}

struct Lease(Arc<PoolState>);

/// A pool has no room for what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolExhausted {
    /// The most sectors it may hand out.
    pub limit: Sectors,
}

impl Pool {
    /// A pool that hands out at most `limit` sectors at a time.
    pub fn new(limit: Sectors) -> Self {
        Self(Arc::new(PoolState { limit, used: AtomicU64::new(0) }))
    }

    /// A zeroed buffer, if the bound allows it. It goes back when it is dropped.
    pub fn take(&self, sectors: Sectors) -> Result<Buf, PoolExhausted> {
        let state = &self.0;
        let claim =
            |used: u64| used.checked_add(sectors.get()).filter(|&total| total <= state.limit.get());
        state
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, claim)
            .map_err(|_| PoolExhausted { limit: state.limit })?;
        let mut buf = Buf::zeroed(sectors);
        buf.lease = Some(Lease(Arc::clone(state)));
        Ok(buf)
    }

    /// How many sectors are out.
    pub fn used(&self) -> Sectors {
        Sectors::new(self.0.used.load(Ordering::Relaxed))
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
    fn pool_hands_out_no_more_than_its_limit_and_takes_back() {
        let pool = Pool::new(Sectors::new(4));
        let held = pool.take(Sectors::new(3)).unwrap();
        assert_eq!(pool.take(Sectors::new(2)).unwrap_err().limit, Sectors::new(4));
        drop(held);
        assert_eq!(pool.used(), Sectors::ZERO);
        assert!(pool.take(Sectors::new(4)).is_ok());
    }
}
