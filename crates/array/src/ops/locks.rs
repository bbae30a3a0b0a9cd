//! Which operations may use a stripe at the same time: any number of reads, or one write. A claim lasts until
//! the operation's last sub-command has ended.
//!
//! A read that decodes while a write changes the same codeword would mix old and new symbols into
//! bytes that were never written. Any read may have to decode, so every read of a redundant array
//! takes its stripes.
//!
//! # Invariants
//!
//! - L1. Two claims that both hold and overlap are both reads.
//! - L2. First come, first served where claims conflict: a claim waits for every earlier one it
//!   conflicts with, held or waiting. So every claim is granted in the end, and no claim waits for itself.
//!
//! A write that would wait behind another waiting write next to it may join that one instead
//! ([`StripeLocks::join`]): a stream of small writes becomes a few large ones.

use std::ops::Range;

/// Whether a claim excludes others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Shared,
    Exclusive,
}

/// A claim on a run of stripes, by the operation that makes it.
#[derive(Clone, Debug)]
struct Claim {
    owner: u64,
    stripes: Range<u64>,
    access: Access,
}

impl Claim {
    fn conflicts(&self, other: &Self) -> bool {
        let both_read = self.access == Access::Shared && other.access == Access::Shared;
        let overlap =
            self.stripes.start < other.stripes.end && other.stripes.start < self.stripes.end;
        !both_read && overlap
    }
}

fn overlap(left: &Range<u64>, right: &Range<u64>) -> bool {
    left.start < right.end && right.start < left.end
}

/// All claims on one array, each list in order of arrival.
#[derive(Clone, Debug, Default)]
pub(crate) struct StripeLocks {
    readers: Vec<Claim>,
    writers: Vec<Claim>,
    waiting: Vec<Claim>,
}

impl StripeLocks {
    /// Claims `stripes` for `owner`; true if it holds them at once, else it must wait for
    /// [`StripeLocks::release`] to name it.
    pub(crate) fn claim(&mut self, owner: u64, stripes: Range<u64>, access: Access) -> bool {
        let waits = self.would_wait(&stripes, access);
        let claim = Claim { owner, stripes, access };
        if waits {
            self.waiting.push(claim);
            return false;
        }
        self.hold(claim);
        true
    }

    /// Whether a claim would have to wait.
    pub(crate) fn would_wait(&self, stripes: &Range<u64>, access: Access) -> bool {
        let claim = Claim { owner: 0, stripes: stripes.clone(), access };
        self.waiting.iter().any(|earlier| earlier.conflicts(&claim)) || self.blocked(&claim)
    }

    /// Whether a claim waits for what `owner` holds.
    pub(crate) fn is_waited_for(&self, owner: u64) -> bool {
        let held = self.readers.iter().chain(&self.writers).find(|claim| claim.owner == owner);
        held.is_some_and(|held| self.waiting.iter().any(|waiting| waiting.conflicts(held)))
    }

    /// Gives up what `owner` holds or waits for; returns the owners that hold their stripes now, in order of arrival.
    pub(crate) fn withdraw(&mut self, owner: u64) -> Vec<u64> {
        match self.waiting.iter().position(|claim| claim.owner == owner) {
            Some(at) => {
                let withdrawn = self.waiting.remove(at);
                self.grant(&withdrawn)
            }
            None => self.release(owner),
        }
    }

    /// Gives up what `owner` holds; returns the owners that hold their stripes now, in order of arrival.
    pub(crate) fn release(&mut self, owner: u64) -> Vec<u64> {
        let lists = [&mut self.readers, &mut self.writers];
        let held = lists.into_iter().find_map(|list| {
            let at = list.iter().position(|claim| claim.owner == owner)?;
            Some(list.swap_remove(at))
        });
        let released = held.unwrap_or_else(|| panic!("operation {owner} holds nothing"));
        self.grant(&released)
    }

    /// Grants the waiting claims that waited for nothing but this claim, which was released or withdrawn.
    fn grant(&mut self, released: &Claim) -> Vec<u64> {
        let mut granted = Vec::new();
        // Only a claim that overlaps the released one can have waited for it.
        let mut idx = 0;
        while idx < self.waiting.len() {
            let claim = &self.waiting[idx];
            let waits = !overlap(&claim.stripes, &released.stripes)
                || self.waiting[..idx].iter().any(|earlier| earlier.conflicts(claim))
                || self.blocked(claim);
            if waits {
                idx += 1;
            } else {
                let claim = self.waiting.remove(idx);
                granted.push(claim.owner);
                self.hold(claim);
            }
        }
        granted
    }

    /// Widens the claim of a waiting operation by `stripes` for one more write, and names it. It is
    /// the last waiting claim that meets or adjoins those stripes; `may_join` says whether it can
    /// take the write, and the result is at most `most` stripes wide.
    pub(crate) fn join(
        &mut self,
        stripes: &Range<u64>,
        most: u64,
        may_join: impl Fn(u64) -> bool,
    ) -> Option<u64> {
        let near = |claim: &&mut Claim| {
            claim.stripes.start <= stripes.end && stripes.start <= claim.stripes.end
        };
        // Whatever waits behind it does not touch the stripes: the write overtakes nothing it meets.
        let claim = self.waiting.iter_mut().rev().find(near)?;
        let union = claim.stripes.start.min(stripes.start)..claim.stripes.end.max(stripes.end);
        if claim.access == Access::Shared
            || union.end - union.start > most
            || !may_join(claim.owner)
        {
            return None;
        }
        claim.stripes = union;
        Some(claim.owner)
    }

    fn blocked(&self, claim: &Claim) -> bool {
        let readers = match claim.access {
            Access::Shared => &[],
            Access::Exclusive => self.readers.as_slice(),
        };
        self.writers.iter().chain(readers).any(|held| held.conflicts(claim))
    }

    fn hold(&mut self, claim: Claim) {
        assert!(!self.blocked(&claim), "L1: {claim:?}");
        match claim.access {
            Access::Shared => self.readers.push(claim),
            Access::Exclusive => self.writers.push(claim),
        }
    }
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;

    use super::*;

    #[test]
    fn reads_share_and_writes_exclude() {
        let mut locks = StripeLocks::default();
        assert!(locks.claim(1, 0..3, Access::Shared));
        assert!(locks.claim(2, 2..4, Access::Shared));
        assert!(!locks.claim(3, 2..3, Access::Exclusive));
        assert!(locks.claim(4, 4..5, Access::Exclusive));
        assert_eq!(locks.release(1), Vec::<u64>::new());
        assert_eq!(locks.release(2), [3]);
    }

    #[test]
    fn a_stream_of_reads_does_not_starve_a_write() {
        let mut locks = StripeLocks::default();
        assert!(locks.claim(1, 0..1, Access::Shared));
        assert!(!locks.claim(2, 0..1, Access::Exclusive));
        assert!(!locks.claim(3, 0..1, Access::Shared), "it came after the write");
        assert_eq!(locks.release(1), [2]);
        assert_eq!(locks.release(2), [3]);
    }

    #[test]
    fn a_write_joins_the_last_waiting_write_it_touches_and_overtakes_no_other() {
        let mut locks = StripeLocks::default();
        assert!(locks.claim(1, 0..2, Access::Exclusive));
        assert!(!locks.claim(2, 1..3, Access::Exclusive));
        assert_eq!(locks.join(&(3..4), 8, |_| true), Some(2), "next to it");
        assert_eq!(locks.join(&(4..9), 4, |_| true), None, "too wide");
        assert_eq!(locks.join(&(4..5), 8, |_| false), None, "not a client's");
        assert_eq!(
            locks.join(&(0..1), 8, |_| true),
            Some(2),
            "before it, behind the one that holds"
        );
        assert!(!locks.claim(3, 3..4, Access::Shared));
        assert_eq!(locks.join(&(3..4), 8, |_| true), None, "a read waits in between");
        assert_eq!(locks.release(1), [2]);
        assert_eq!(locks.release(2), [3]);
    }

    /// Random claims, checked against L1 after each step, and against L2 by draining at the end.
    #[test]
    fn invariants_hold_in_random_runs() {
        for seed in 0..200 {
            let mut rng = Streams::new(seed).stream("locks");
            let mut locks = StripeLocks::default();
            let mut held: Vec<u64> = Vec::new();
            let mut claims: Vec<Claim> = Vec::new();
            for owner in 0..60 {
                let start = rng.below(10);
                let stripes = start..start + 1 + rng.below(4);
                let access = if rng.below(3) == 0 { Access::Exclusive } else { Access::Shared };
                claims.push(Claim { owner, stripes: stripes.clone(), access });
                if locks.claim(owner, stripes, access) {
                    held.push(owner);
                }
                while held.len() > 4 || (!held.is_empty() && rng.below(3) == 0) {
                    let owner = held.swap_remove(rng.below(held.len() as u64) as usize);
                    held.extend(locks.release(owner));
                }
                for &left in &held {
                    for &right in held.iter().filter(|&&right| right != left) {
                        let conflict = claims[left as usize].conflicts(&claims[right as usize]);
                        assert!(!conflict, "L1, seed {seed}: {left} and {right}");
                    }
                }
            }
            while let Some(owner) = held.pop() {
                held.extend(locks.release(owner));
            }
            assert!(locks.waiting.is_empty(), "L2, seed {seed}: {:?}", locks.waiting);
        }
    }
}
