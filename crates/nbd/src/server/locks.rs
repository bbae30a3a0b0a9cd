//! Who may change which sectors now.
//!
//! - L1. Sectors that one change holds, no other change holds.
//! - L2. Changes that overlap go in the order of their coming.
//! - L3. A change that waits starts as soon as no earlier one overlaps it.

use std::collections::{BTreeMap, VecDeque};

use levelhead_units::{Extent, Lba};

/// The extents under change, and the changes that wait for them.
#[derive(Debug)]
pub(super) struct SectorLocks<T> {
    /// From first sector to the one after the last.
    held: BTreeMap<Lba, Lba>,
    waiting: VecDeque<(Extent, T)>,
}

impl<T> SectorLocks<T> {
    pub(super) fn new() -> Self {
        Self { held: BTreeMap::new(), waiting: VecDeque::new() }
    }

    /// Takes `extent` for `change`, which comes back if it may start now. Otherwise it waits.
    pub(super) fn acquire(&mut self, extent: Extent, change: T) -> Option<T> {
        let behind = self.waiting.iter().any(|(other, _)| overlap(*other, extent));
        if behind || self.is_held(extent) {
            self.waiting.push_back((extent, change));
            return None;
        }
        self.held.insert(extent.lba, extent.end());
        Some(change)
    }

    /// Gives `extent` back. Returns the changes that may start now.
    pub(super) fn release(&mut self, extent: Extent) -> Vec<T> {
        let end = self.held.remove(&extent.lba);
        assert_eq!(end, Some(extent.end()), "{extent:?} was not held");
        let mut granted = Vec::new();
        // Trying all waiting changes again in order keeps L2: one that must still wait is back in the
        // queue before those that came later are looked at.
        for (extent, change) in std::mem::take(&mut self.waiting) {
            granted.extend(self.acquire(extent, change));
        }
        granted
    }

    fn is_held(&self, extent: Extent) -> bool {
        // Held extents are disjoint, so the last that starts before the end reaches furthest.
        let last = self.held.range(..extent.end()).next_back();
        last.is_some_and(|(_, &end)| end > extent.lba)
    }
}

fn overlap(left: Extent, right: Extent) -> bool {
    left.lba < right.end() && right.lba < left.end()
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;
    use levelhead_testkit::extent;

    use super::*;

    #[test]
    fn overlapping_changes_go_one_after_the_other_and_others_at_once() {
        let mut locks = SectorLocks::new();
        assert_eq!(locks.acquire(extent(0, 4), 'a'), Some('a'));
        assert_eq!(locks.acquire(extent(3, 2), 'b'), None);
        assert_eq!(locks.acquire(extent(4, 1), 'c'), None, "b came first");
        assert_eq!(locks.acquire(extent(5, 1), 'd'), Some('d'));
        assert_eq!(locks.release(extent(0, 4)), ['b']);
        assert_eq!(locks.release(extent(3, 2)), ['c']);
        assert_eq!(locks.release(extent(4, 1)), Vec::<char>::new());
    }

    /// Against the obvious version: a list of all changes in the order of their arrival, in which one
    /// runs as soon as it overlaps none before it.
    #[test]
    fn locks_agree_with_a_plain_list() {
        for seed in 0..64 {
            let mut rng = Streams::new(seed).stream("locks");
            let mut locks = SectorLocks::new();
            let mut list: Vec<(usize, Extent, bool)> = Vec::new();
            for id in 0..200 {
                let new = extent(rng.below(24), 1 + rng.below(5));
                let mut started: Vec<usize> = locks.acquire(new, id).into_iter().collect();
                list.push((id, new, false));
                while list.len() > 12 {
                    let running: Vec<usize> = (0..list.len())
                        .filter(|&at| list[at].2 || started.contains(&list[at].0))
                        .collect();
                    check(&mut list, &mut started, seed);
                    let (_, gone, _) =
                        list.remove(running[rng.below(running.len() as u64) as usize]);
                    started = locks.release(gone);
                }
                check(&mut list, &mut started, seed);
            }
        }
    }

    fn check(list: &mut [(usize, Extent, bool)], started: &mut Vec<usize>, seed: u64) {
        for at in 0..list.len() {
            let free = list[..at].iter().all(|other| !overlap(other.1, list[at].1));
            assert_eq!(list[at].2 || started.contains(&list[at].0), free, "seed {seed}");
            list[at].2 = free;
        }
        started.clear();
    }
}
