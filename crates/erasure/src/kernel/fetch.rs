//! What a kernel fetches while it works on something else.

#![allow(unsafe_code)]
// Iterators would take closures, which are not compiled for the instructions of their function.
#![allow(clippy::needless_range_loop)]

use std::ops::Range;

use super::engine::Ahead;
use super::vector::{LINE_SIZE, Vector};
use crate::transform::RUN;

/// What is to be fetched while `S` sources are worked on.
pub(super) struct Fetch<const S: usize> {
    next: [*const u8; S],
    /// Bytes of each source.
    size: usize,
    way: Way,
}

/// How what comes next is fetched.
#[derive(Clone, Copy)]
enum Way {
    Not,
    /// All side by side.
    Abreast,
    /// One after the other.
    InTurn,
}

impl<const S: usize> Fetch<S> {
    /// Nothing is fetched.
    pub(super) const fn nothing() -> Self {
        Self { next: [std::ptr::null(); S], size: 1, way: Way::Not }
    }

    /// For sources `first` and following of `sources`, of which `size` bytes are worked on from `start` on.
    #[inline(always)]
    pub(super) fn new(
        ahead: &Ahead<'_>,
        sources: &[&[u8]],
        first: usize,
        start: usize,
        size: usize,
    ) -> Self {
        let mut next = [std::ptr::null(); S];
        for n in 0..S {
            next[n] = match ahead {
                Ahead::Nothing => std::ptr::null(),
                Ahead::Next { sources: next, start: next_start } => {
                    let after = first + S + n;
                    let (next, start) = match sources.get(after) {
                        Some(next) => (next, start),
                        None => (&next[(after - sources.len()) % next.len()], *next_start),
                    };
                    next.as_ptr().wrapping_add(start)
                }
                Ahead::Runs(runs) => runs.address(first + n),
            };
        }
        let way = match ahead {
            Ahead::Nothing => Way::Not,
            Ahead::Next { .. } => Way::Abreast,
            Ahead::Runs(_) => Way::InTurn,
        };
        Self { next, size, way }
    }

    /// Fetches its share of what is to be fetched, when `at` bytes of `size` are done and `count` more,
    /// of each source, are worked on; `parts` of all sources.
    ///
    /// # Safety
    ///
    /// The processor has the instructions of `V`.
    #[inline(always)]
    pub(super) unsafe fn fetch<V: Vector>(&self, parts: Range<usize>, at: usize, count: usize) {
        match self.way {
            Way::Not => {}
            Way::Abreast => {
                for n in parts {
                    let mut ahead = 0;
                    while ahead < count {
                        // SAFETY: by the caller; fetching ahead accesses nothing.
                        unsafe { V::prefetch(self.next[n].wrapping_add(at + ahead)) };
                        ahead += LINE_SIZE;
                    }
                }
            }
            Way::InTurn => {
                // SAFETY: by the caller.
                unsafe { self.fetch_in_turn::<V, S>(0, at, parts.start * count, parts.end * count) }
            }
        }
    }

    /// Of `N` sources from `first` on, when `at` bytes of each are done, what lies from `from` up to `end` in
    /// the order in which they are fetched.
    ///
    /// # Safety
    ///
    /// The processor has the instructions of `V`.
    #[inline(always)]
    unsafe fn fetch_in_turn<V: Vector, const N: usize>(
        &self,
        first: usize,
        at: usize,
        from: usize,
        end: usize,
    ) {
        // Which run it is in is found without a division, which would take as long as the work.
        let in_order = at * N;
        let (mut run, mut before) = (0, 0);
        for n in 1..N {
            let size = n * self.size;
            (run, before) = if in_order >= size { (n, size) } else { (run, before) };
        }
        let next = self.next[first + run].wrapping_add(in_order - before);
        let mut ahead = from;
        while ahead < end {
            // SAFETY: by the caller; fetching ahead accesses nothing.
            unsafe { V::prefetch_far(next.wrapping_add(ahead)) };
            ahead += LINE_SIZE;
        }
    }
}

impl Fetch<RUN> {
    /// As [`fetch`](Self::fetch), of the first half of the sources (0) or the second (1), where they are fetched
    /// one after the other; side by side, all with the first half.
    ///
    /// # Safety
    ///
    /// The processor has the instructions of `V`.
    #[inline(always)]
    pub(super) unsafe fn fetch_half<V: Vector>(&self, half: usize, at: usize, count: usize) {
        const HALF: usize = RUN / 2;
        // SAFETY: by the caller.
        unsafe {
            match (self.way, half) {
                (Way::InTurn, _) => {
                    self.fetch_in_turn::<V, HALF>(HALF * half, at, 0, HALF * count);
                }
                (Way::Not | Way::Abreast, 0) => self.fetch::<V>(0..RUN, at, count),
                (Way::Not | Way::Abreast, _) => {}
            }
        }
    }
}
