//! The bytes that a device has taken and its medium does not have yet.
//!
//! For a runtime that keeps the bytes of a device with a volatile write cache. The medium keeps the old bytes
//! until the device says that the new ones are there; until then the new ones wait here, and reads see
//! them. Losing power is dropping what waits.
//!
//! ```text
//!   write --> put --------> [ waiting sectors ] --destage--> medium
//!   durable write --forget-->       |
//!   read  <-- overlay --------------'
//! ```
//!
//! - U1. A sector waits here only if the device named it at the last [`Unwritten::destage`], or if it was
//!   put here since. So after a destage there are never more sectors than the device's cache holds.

use std::collections::BTreeMap;

use levelhead_units::{Extent, Lba, SECTOR_SIZE};

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Unwritten {
    sectors: BTreeMap<Lba, Box<[u8]>>,
}

impl Unwritten {
    /// Nothing waits.
    pub const fn new() -> Self {
        Self { sectors: BTreeMap::new() }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.sectors.is_empty()
    }

    /// How many sectors wait.
    pub fn len(&self) -> usize {
        self.sectors.len()
    }

    /// The device has taken these bytes for `lba`, instead of any that waited.
    ///
    /// Panics unless `bytes` is one sector.
    pub fn put(&mut self, lba: Lba, bytes: &[u8]) {
        assert_eq!(bytes.len(), SECTOR_SIZE, "one sector at a time");
        self.sectors.insert(lba, bytes.into());
    }

    /// The medium has newer bytes for `lba` than those that waited, if any did.
    pub fn forget(&mut self, lba: Lba) {
        self.sectors.remove(&lba);
    }

    /// Puts what waits over `bytes`, which were read from the medium at `extent`.
    ///
    /// Panics unless `bytes` has as many sectors as `extent`.
    pub fn overlay(&self, extent: Extent, bytes: &mut [u8]) {
        assert_eq!(bytes.len(), extent.sectors.as_usize() * SECTOR_SIZE, "all of {extent:?}");
        for (&lba, sector) in self.sectors.range(extent.lba..extent.end()) {
            let start = (lba - extent.lba).as_usize() * SECTOR_SIZE;
            bytes[start..start + SECTOR_SIZE].copy_from_slice(sector);
        }
    }

    /// Stores, lowest first, what is not in `unwritten`: the device has brought it to the medium.
    /// `unwritten` names what it has not, lowest first and apart from each other.
    ///
    /// Ends at the first error of `store`; that sector and those after it go on waiting.
    pub fn destage<E>(
        &mut self,
        unwritten: &[Extent],
        mut store: impl FnMut(Lba, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let waits = |lba: Lba| {
            let at = unwritten.partition_point(|extent| extent.end() <= lba);
            unwritten.get(at).is_some_and(|extent| extent.contains(lba))
        };
        let mut result = Ok(());
        self.sectors.retain(|&lba, bytes| {
            if result.is_err() || waits(lba) {
                return true;
            }
            result = store(lba, bytes);
            result.is_err()
        });
        result
    }

    /// The power fails: what waited is gone.
    pub fn lose(&mut self) {
        self.sectors.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use levelhead_stats::Streams;
    use levelhead_units::Sectors;

    use super::*;

    fn extent(lba: u64, sectors: u64) -> Extent {
        Extent::new(Lba::new(lba), Sectors::new(sectors))
    }

    fn sector(value: u8) -> [u8; SECTOR_SIZE] {
        [value; SECTOR_SIZE]
    }

    #[test]
    fn reads_see_what_waits_and_the_medium_does_not() {
        let mut unwritten = Unwritten::new();
        unwritten.put(Lba::new(5), &sector(1));
        unwritten.put(Lba::new(6), &sector(2));
        unwritten.put(Lba::new(6), &sector(3));
        unwritten.put(Lba::new(9), &sector(4));
        let mut bytes = [0; 3 * SECTOR_SIZE];
        unwritten.overlay(extent(4, 3), &mut bytes);
        assert_eq!([0, 1, 2].map(|at| bytes[at * SECTOR_SIZE]), [0, 1, 3]);
        assert_eq!(unwritten.len(), 3);
    }

    #[test]
    fn failed_store_keeps_its_sector_and_those_after_it() {
        let mut unwritten = Unwritten::new();
        (0..4).for_each(|lba| unwritten.put(Lba::new(lba), &sector(1)));
        let broken = |lba: Lba, _: &[u8]| if lba == Lba::new(1) { Err("broken") } else { Ok(()) };
        assert_eq!(unwritten.destage(&[], broken), Err("broken"));
        assert_eq!(unwritten.len(), 3);
        assert_eq!(unwritten.destage(&[extent(2, 1)], |_, _| Ok::<(), ()>(())), Ok(()));
        assert_eq!(unwritten.len(), 1);
    }

    /// Against two arrays of plain bytes: what was written last, and what the medium has.
    #[test]
    fn medium_has_what_was_destaged_and_after_a_loss_nothing_else() {
        const SIZE: u64 = 30;
        for seed in 0..200 {
            let mut rng = Streams::new(seed).stream("unwritten");
            let (mut unwritten, mut medium) = (Unwritten::new(), [0_u8; SIZE as usize]);
            let (mut newest, mut destaged) = (medium, medium);
            for value in 1..=60 {
                let at = rng.below(SIZE);
                match rng.below(8) {
                    0 => {
                        unwritten.forget(Lba::new(at));
                        for bytes in [&mut medium, &mut newest, &mut destaged] {
                            bytes[at as usize] = value;
                        }
                    }
                    1 => {
                        let first = rng.below(SIZE / 2);
                        let named = [extent(first, 1 + rng.below(4)), extent(first + 6, 3)];
                        let store = |lba: Lba, bytes: &[u8]| {
                            medium[lba.get() as usize] = bytes[0];
                            Ok::<(), Infallible>(())
                        };
                        let Ok(()) = unwritten.destage(&named, store);
                        for lba in (0..SIZE).map(Lba::new) {
                            if !named.iter().any(|extent| extent.contains(lba)) {
                                destaged[lba.get() as usize] = newest[lba.get() as usize];
                            }
                        }
                        let most: u64 = named.iter().map(|extent| extent.sectors.get()).sum();
                        assert!(unwritten.len() as u64 <= most, "U1, seed {seed}");
                    }
                    2 if rng.below(4) == 0 => {
                        unwritten.lose();
                        newest = destaged;
                    }
                    _ => {
                        unwritten.put(Lba::new(at), &sector(value));
                        newest[at as usize] = value;
                    }
                }
                assert_eq!(medium, destaged, "seed {seed}");
                let mut seen: Vec<u8> = medium.iter().flat_map(|&byte| sector(byte)).collect();
                unwritten.overlay(extent(0, SIZE), &mut seen);
                let seen = seen.chunks(SECTOR_SIZE).map(|sector| sector[0]);
                assert!(seen.eq(newest), "seed {seed}");
            }
        }
    }
}
