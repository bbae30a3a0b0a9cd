//! What is in progress, by names that grow: a command or an operation gets a higher name than all before it, and most
//! end in nearly that order.
//!
//! ```text
//!   names, lowest first   [ 17 | 21 | 22 | 25 ]
//!                            |    |    |    |
//!   slots, in no order    [ 22 | -- | 17 | 25 | 21 ]     those that are free are used again
//! ```
//!
//! A map of the standard library would do the same. This one asks for memory only when there is more in progress than
//! ever before, and what comes and what goes moves no more than a few names.
//!
//! # Invariants
//!
//! - IP1. The names ascend, and no two name the same slot.
//! - IP2. A slot is filled if, and only if, a name names it; all others are on the list of free ones.

use std::collections::VecDeque;
use std::fmt;

/// See the module.
#[derive(Clone)]
pub(crate) struct InProgress<K, T> {
    names: VecDeque<Named<K>>,
    slots: Vec<Option<T>>,
    free: Vec<usize>,
}

/// A name, and the slot of what has it.
#[derive(Clone, Copy, Debug)]
struct Named<K> {
    name: K,
    slot: usize,
}

impl<K: Copy + Ord + fmt::Debug, T: fmt::Debug> fmt::Debug for InProgress<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K, T> Default for InProgress<K, T> {
    fn default() -> Self {
        Self { names: VecDeque::new(), slots: Vec::new(), free: Vec::new() }
    }
}

impl<K: Copy + Ord, T> InProgress<K, T> {
    /// Whether nothing is in progress.
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// What has a name.
    pub(crate) fn get(&self, name: K) -> Option<&T> {
        Some(self.slots[self.slot(name)?].as_ref().expect("IP2"))
    }

    /// What has a name, to be changed.
    pub(crate) fn get_mut(&mut self, name: K) -> Option<&mut T> {
        let slot = self.slot(name)?;
        Some(self.slots[slot].as_mut().expect("IP2"))
    }

    /// Whether something has a name.
    pub(crate) fn contains(&self, name: K) -> bool {
        self.slot(name).is_some()
    }

    /// Gives a name to what has begun; what had it before is returned.
    pub(crate) fn insert(&mut self, name: K, what: T) -> Option<T> {
        let at = match self.names.back() {
            Some(last) if last.name >= name => self.find(name),
            Some(_) | None => Err(self.names.len()),
        };
        match at {
            Ok(at) => self.slots[self.names[at].slot].replace(what),
            Err(at) => {
                let slot = self.fill(what);
                self.names.insert(at, Named { name, slot });
                None
            }
        }
    }

    /// Takes out what has a name and has ended.
    pub(crate) fn remove(&mut self, name: K) -> Option<T> {
        let at = self.find(name).ok()?;
        let Named { slot, .. } = self.names.remove(at)?;
        self.free.push(slot);
        Some(self.slots[slot].take().expect("IP2"))
    }

    /// The names, lowest first.
    pub(crate) fn names(&self) -> impl Iterator<Item = K> {
        self.names.iter().map(|named| named.name)
    }

    /// All of it with its names, lowest name first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &T)> {
        let known =
            |&Named { name, slot }: &Named<K>| (name, self.slots[slot].as_ref().expect("IP2"));
        self.names.iter().map(known)
    }

    /// All of it, in no order.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().flatten()
    }

    /// All of it, in no order, to be changed.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().flatten()
    }

    /// Where a name is, or where it would be.
    fn find(&self, name: K) -> Result<usize, usize> {
        self.names.binary_search_by(|named| named.name.cmp(&name))
    }

    fn slot(&self, name: K) -> Option<usize> {
        self.find(name).ok().map(|at| self.names[at].slot)
    }

    /// Puts something into a free slot.
    fn fill(&mut self, what: T) -> usize {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot] = Some(what);
                slot
            }
            None => {
                self.slots.push(Some(what));
                self.slots.len() - 1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use levelhead_stats::Streams;

    use super::*;

    /// IP1, IP2.
    fn check<T>(things: &InProgress<u64, T>) {
        let names: Vec<u64> = things.names().collect();
        assert!(names.is_sorted_by(|left, right| left < right), "IP1: {names:?}");
        let mut slots: Vec<usize> = things.names.iter().map(|named| named.slot).collect();
        assert!(slots.iter().all(|&slot| things.slots[slot].is_some()), "IP2");
        assert!(things.free.iter().all(|&slot| things.slots[slot].is_none()), "IP2");
        slots.extend(&things.free);
        slots.sort_unstable();
        assert_eq!(slots, (0..things.slots.len()).collect::<Vec<usize>>(), "IP1, IP2");
    }

    #[test]
    fn it_is_the_map_of_the_standard_library() {
        for seed in 0..200 {
            let mut rng = Streams::new(seed).stream("names");
            let mut things = InProgress::default();
            let mut map = BTreeMap::new();
            let mut next = 0;
            for step in 0..300 {
                // Most names are new, some come a second time or after higher ones.
                let name = match rng.below(4) {
                    0 => rng.below(next + 1),
                    _ => {
                        next += 1 + rng.below(3);
                        next
                    }
                };
                assert_eq!(things.insert(name, step), map.insert(name, step), "seed {seed}");
                while map.len() > 12 || (!map.is_empty() && rng.below(2) == 0) {
                    let oldest = *map.keys().next().unwrap();
                    let name = oldest + rng.below(next + 1 - oldest);
                    assert_eq!(things.contains(name), map.contains_key(&name), "seed {seed}");
                    assert_eq!(things.get(name), map.get(&name), "seed {seed}");
                    assert_eq!(things.get_mut(name), map.get_mut(&name), "seed {seed}");
                    assert_eq!(things.remove(name), map.remove(&name), "seed {seed}");
                }
                check(&things);
                let all: Vec<(u64, u64)> =
                    things.iter().map(|(name, &what)| (name, what)).collect();
                assert!(all.iter().copied().eq(map.iter().map(|(&name, &what)| (name, what))));
                assert_eq!(things.values().count(), map.len(), "seed {seed}");
                assert_eq!(things.is_empty(), map.is_empty(), "seed {seed}");
            }
        }
    }

    #[test]
    fn slots_are_used_again() {
        let mut things = InProgress::default();
        for name in 0..1_000 {
            things.insert(name, ());
            if name >= 3 {
                things.remove(name - 3);
            }
        }
        assert_eq!((things.slots.len(), things.names.len()), (4, 3));
    }
}
