//! The bytes that a device has taken and its medium does not have yet.
//!
//! For a runtime that keeps the bytes of a device with a volatile write cache. The medium keeps the old bytes
//! until the device says that the new ones are there; until then the new ones wait here, and reads see
//! them. Losing power is dropping what waits. What silently becomes of a sector on its way to the medium
//! ([`Fate`]) waits with it: reads see what was written until the medium has it, or has it not.
//!
//! ```text
//!   write --> put --------> [ waiting sectors ] --destage--> medium
//!   durable write --make_way-->     |
//!   read  <-- overlay --------------'
//! ```
//!
//! - U1. A write that goes astray leaves the medium as if the one before it, of the same sector, had arrived,
//!   whether that one still waits or not: when the device takes it out of its memory is no event, so nothing
//!   may depend on that ([`Unwritten::make_way`]).
//! - U2. A sector waits here only if the device named it at the last [`Unwritten::destage`], or if it was
//!   put here since. So after a destage there are never more sectors than the device's cache holds.

use std::collections::BTreeMap;

use levelhead_block::Flip;
use levelhead_units::{Extent, Lba, SECTOR_SIZE};

use crate::held::Held;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Unwritten {
    sectors: BTreeMap<Lba, Waiting>,
}

/// What becomes of a sector on its way to the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It never gets there.
    Lost,
    /// It is stored.
    Stored {
        /// Where; a device in good order stores it where it was wanted.
        lba: Lba,
        /// The bit that changes on the way.
        flip: Option<Flip>,
    },
}

impl Fate {
    /// Whether it is stored where it was wanted, `lba`, as it is.
    pub(crate) fn is_good(&self, lba: Lba) -> bool {
        *self == Self::Stored { lba, flip: None }
    }

    /// Stores the bytes of a sector as they arrive.
    pub(crate) fn store<E>(
        &self,
        bytes: &[u8],
        store: impl FnOnce(Lba, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        match *self {
            Self::Lost => Ok(()),
            Self::Stored { lba, flip: None } => store(lba, bytes),
            Self::Stored { lba, flip: Some(flip) } => {
                let mut changed = bytes.to_vec();
                flip.apply(&mut changed);
                store(lba, &changed)
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Waiting {
    bytes: Box<[u8]>,
    fate: Fate,
    /// The name of the write, if the device will read it back.
    read_back: Option<u64>,
}

impl Waiting {
    /// The device has brought it to the medium, or what it takes for that; bytes that did not get there it
    /// remembers until it has read them back.
    fn settle<E>(
        &self,
        lba: Lba,
        held: &mut Held,
        store: impl FnOnce(Lba, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.fate.store(&self.bytes, store)?;
        if let Some(write) = self.read_back
            && !self.fate.is_good(lba)
        {
            held.put(lba, write, &self.bytes);
        }
        Ok(())
    }
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
    /// `read_back` is the name of the write, if the device will read it back.
    ///
    /// Panics unless `bytes` is one sector.
    pub fn put(&mut self, lba: Lba, bytes: &[u8], fate: Fate, read_back: Option<u64>) {
        assert_eq!(bytes.len(), SECTOR_SIZE, "one sector at a time");
        self.sectors.insert(lba, Waiting { bytes: bytes.into(), fate, read_back });
    }

    /// The device has let the bytes of a write go that it was to read back: what of it still waits will not be
    /// remembered.
    pub(crate) fn let_go(&mut self, extent: Extent, write: u64) {
        for (_, waiting) in self.sectors.range_mut(extent.lba..extent.end()) {
            waiting.read_back = waiting.read_back.filter(|&name| name != write);
        }
    }

    /// The device has newer bytes for `lba` than those that wait, if any do; this becomes of the newer ones.
    ///
    /// The error of `store`, and what waited goes on waiting.
    pub fn make_way<E>(
        &mut self,
        lba: Lba,
        newer: Fate,
        store: impl FnOnce(Lba, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(Waiting { bytes, fate, .. }) = self.sectors.get(&lba) else { return Ok(()) };
        if !fate.is_good(lba) || !newer.is_good(lba) {
            fate.store(bytes, store)?; // U1
        }
        self.sectors.remove(&lba);
        Ok(())
    }

    /// Puts what waits over `bytes`, which were read from the medium at `extent`.
    ///
    /// Panics unless `bytes` has as many sectors as `extent`.
    pub fn overlay(&self, extent: Extent, bytes: &mut [u8]) {
        assert_eq!(bytes.len(), extent.sectors.as_usize() * SECTOR_SIZE, "all of {extent:?}");
        for (&lba, waiting) in self.sectors.range(extent.lba..extent.end()) {
            let start = (lba - extent.lba).as_usize() * SECTOR_SIZE;
            bytes[start..start + SECTOR_SIZE].copy_from_slice(&waiting.bytes);
        }
    }

    /// Stores, lowest first, what is not in `unwritten`: the device has brought it to the medium, or what
    /// it takes for that.
    /// `unwritten` names what it has not, lowest first and apart from each other.
    ///
    /// Ends at the first error of `store`; that sector and those after it go on waiting.
    pub(crate) fn destage<E>(
        &mut self,
        unwritten: &[Extent],
        held: &mut Held,
        mut store: impl FnMut(Lba, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let waits = |lba: Lba| {
            let at = unwritten.partition_point(|extent| extent.end() <= lba);
            unwritten.get(at).is_some_and(|extent| extent.contains(lba))
        };
        let mut result = Ok(());
        self.sectors.retain(|&lba, waiting| {
            if result.is_err() || waits(lba) {
                return true;
            }
            result = waiting.settle(lba, held, &mut store);
            result.is_err()
        });
        result
    }

    /// Stores, lowest first, what waits for `extent`: the device has brought that to the medium, or what it takes
    /// for that.
    ///
    /// Ends at the first error of `store`; that sector and those after it go on waiting.
    pub(crate) fn settle<E>(
        &mut self,
        extent: Extent,
        held: &mut Held,
        mut store: impl FnMut(Lba, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some((&lba, waiting)) = self.sectors.range(extent.lba..extent.end()).next() {
            waiting.settle(lba, held, &mut store)?;
            self.sectors.remove(&lba);
        }
        Ok(())
    }

    /// The same for what waits of the write of this name, which the device reads back.
    pub(crate) fn settle_of<E>(
        &mut self,
        extent: Extent,
        write: u64,
        held: &mut Held,
        mut store: impl FnMut(Lba, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let of_it = |(_, waiting): &(&Lba, &Waiting)| waiting.read_back == Some(write);
        let range = self.sectors.range(extent.lba..extent.end()).filter(of_it);
        for lba in range.map(|(&lba, _)| lba).collect::<Vec<_>>() {
            self.sectors[&lba].settle(lba, held, &mut store)?;
            self.sectors.remove(&lba);
        }
        Ok(())
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
    use levelhead_testkit::extent;

    use super::*;

    fn sector(value: u8) -> [u8; SECTOR_SIZE] {
        [value; SECTOR_SIZE]
    }

    /// Where it was wanted.
    fn good(lba: u64) -> Fate {
        Fate::Stored { lba: Lba::new(lba), flip: None }
    }

    #[test]
    fn reads_see_what_waits_and_the_medium_does_not() {
        let mut unwritten = Unwritten::new();
        unwritten.put(Lba::new(5), &sector(1), good(5), None);
        unwritten.put(Lba::new(6), &sector(2), good(6), None);
        unwritten.put(Lba::new(6), &sector(3), good(6), None);
        unwritten.put(Lba::new(9), &sector(4), good(9), None);
        let mut bytes = [0; 3 * SECTOR_SIZE];
        unwritten.overlay(extent(4, 3), &mut bytes);
        assert_eq!([0, 1, 2].map(|at| bytes[at * SECTOR_SIZE]), [0, 1, 3]);
        assert_eq!(unwritten.len(), 3);
    }

    #[test]
    fn failed_store_keeps_its_sector_and_those_after_it() {
        let mut unwritten = Unwritten::new();
        (0..4).for_each(|lba| unwritten.put(Lba::new(lba), &sector(1), good(lba), None));
        let broken = |lba: Lba, _: &[u8]| if lba == Lba::new(1) { Err("broken") } else { Ok(()) };
        assert_eq!(unwritten.destage(&[], &mut Held::new(), broken), Err("broken"));
        assert_eq!(unwritten.len(), 3);
        assert_eq!(
            unwritten.destage(&[extent(2, 1)], &mut Held::new(), |_, _| Ok::<(), ()>(())),
            Ok(())
        );
        assert_eq!(unwritten.len(), 1);
    }

    #[test]
    fn fate_of_a_sector_shows_once_it_has_left_memory() {
        let mut unwritten = Unwritten::new();
        let flip = Some(Flip { offset: 0, bit: 8 * 3 + 1 });
        unwritten.put(Lba::new(0), &sector(4), Fate::Lost, None);
        unwritten.put(Lba::new(1), &sector(5), Fate::Stored { lba: Lba::new(3), flip: None }, None);
        unwritten.put(Lba::new(2), &sector(6), Fate::Stored { lba: Lba::new(2), flip }, None);
        let mut seen = vec![0; 4 * SECTOR_SIZE];
        unwritten.overlay(extent(0, 4), &mut seen);
        assert_eq!(seen, [4, 5, 6, 0].map(sector).concat());
        let mut medium = vec![9; 4 * SECTOR_SIZE];
        let store = |lba: Lba, bytes: &[u8]| {
            medium[lba.get() as usize * SECTOR_SIZE..][..SECTOR_SIZE].copy_from_slice(bytes);
            Ok::<(), Infallible>(())
        };
        let Ok(()) = unwritten.destage(&[], &mut Held::new(), store);
        let mut expected = [9, 9, 6, 5].map(sector).concat();
        expected[2 * SECTOR_SIZE + 3] = 4;
        assert_eq!((medium, unwritten.len()), (expected, 0));
    }

    #[test]
    fn write_that_goes_astray_leaves_what_the_one_before_it_would_have_left() {
        let good = |at: u64| Fate::Stored { lba: Lba::new(at), flip: None };
        for (older, newer, stored) in [
            (good(1), good(1), None),
            (good(1), Fate::Lost, Some(1)),
            (good(1), good(2), Some(1)),
            (good(2), good(1), Some(2)),
            (Fate::Lost, good(1), None),
        ] {
            let mut unwritten = Unwritten::new();
            unwritten.put(Lba::new(1), &sector(4), older, None);
            let mut place = None;
            let store = |lba: Lba, bytes: &[u8]| {
                assert_eq!(bytes, sector(4));
                place = Some(lba.get());
                Ok::<(), Infallible>(())
            };
            let Ok(()) = unwritten.make_way(Lba::new(1), newer, store);
            assert_eq!((place, unwritten.len()), (stored, 0), "{older:?}, {newer:?}");
        }
        let mut unwritten = Unwritten::new();
        unwritten.put(Lba::new(1), &sector(4), good(1), None);
        assert_eq!(
            unwritten.make_way(Lba::new(1), Fate::Lost, |_, _| Err("broken")),
            Err("broken")
        );
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
                        let lba = Lba::new(at);
                        let never = |_, _: &[u8]| -> Result<(), Infallible> { panic!("no need") };
                        let Ok(()) = unwritten.make_way(lba, good(at), never);
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
                        let Ok(()) = unwritten.destage(&named, &mut Held::new(), store);
                        for lba in (0..SIZE).map(Lba::new) {
                            if !named.iter().any(|extent| extent.contains(lba)) {
                                destaged[lba.get() as usize] = newest[lba.get() as usize];
                            }
                        }
                        let most: u64 = named.iter().map(|extent| extent.sectors.get()).sum();
                        assert!(unwritten.len() as u64 <= most, "U2, seed {seed}");
                    }
                    2 if rng.below(4) == 0 => {
                        unwritten.lose();
                        newest = destaged;
                    }
                    _ => {
                        unwritten.put(Lba::new(at), &sector(value), good(at), None);
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
