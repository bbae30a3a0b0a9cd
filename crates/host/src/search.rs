//! Which sectors of a failed read cannot be read: what failed is halved until a single sector is left.
//!
//! ```text
//!   0 1 2 3 4 5 6 7   failed       one bad sector among n: about 2 log2(n) reads
//!   0 1 2 3           read
//!           4 5 6 7   failed
//!           4 5       failed  ->  4 read, 5 damaged
//!               6 7   read
//! ```

use std::ops::Range;

use levelhead_block::SectorSet;

/// See the module.
#[derive(Debug)]
pub(crate) struct Search {
    /// What must still be read, the next one last; never more than the logarithm of the whole.
    left: Vec<Range<u32>>,
    damaged: Vec<u32>,
}

impl Search {
    /// These sectors of a read, at least one, could not be read together.
    pub(crate) fn new(failed: Range<u32>) -> Self {
        assert!(!failed.is_empty(), "a read of nothing cannot fail");
        let mut search = Self { left: Vec::new(), damaged: Vec::new() };
        search.split(failed);
        search
    }

    /// What to read next; nothing if all is known.
    pub(crate) fn part(&self) -> Option<Range<u32>> {
        self.left.last().cloned()
    }

    /// The part was read.
    pub(crate) fn handle_read(&mut self) {
        self.left.pop().expect("a part was read");
    }

    /// The part could not be read.
    pub(crate) fn handle_failed(&mut self) {
        let failed = self.left.pop().expect("a part was read");
        self.split(failed);
    }

    /// The sectors that could not be read, once all is known.
    pub(crate) fn damaged(&self) -> SectorSet {
        assert!(self.left.is_empty(), "{:?} is not known yet", self.left);
        self.damaged.iter().copied().collect()
    }

    fn split(&mut self, Range { start, end }: Range<u32>) {
        if end - start == 1 {
            return self.damaged.push(start);
        }
        let middle = start + (end - start) / 2;
        self.left.push(middle..end);
        self.left.push(start..middle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches `len` sectors, those of `bad` unreadable; what was found, and with how many reads.
    fn search(len: u32, bad: u64) -> (SectorSet, u32) {
        let mut search = Search::new(0..len);
        let mut reads = 0;
        while let Some(part) = search.part() {
            reads += 1;
            if part.clone().any(|sector| bad >> sector & 1 == 1) {
                search.handle_failed();
            } else {
                search.handle_read();
            }
        }
        (search.damaged(), reads)
    }

    #[test]
    fn every_set_of_bad_sectors_is_found() {
        for len in 1..=10 {
            for bad in 1_u64..1 << len {
                let (found, reads) = search(len, bad);
                let expected: SectorSet =
                    (0..len).filter(|sector| bad >> sector & 1 == 1).collect();
                assert_eq!(found, expected, "{len} sectors, {bad:b}");
                assert!(reads <= 2 * len - 2, "{len} sectors, {bad:b}: {reads} reads");
            }
        }
    }

    #[test]
    fn one_bad_sector_takes_two_reads_for_each_halving() {
        assert_eq!(search(64, 1 << 37), ([37].into_iter().collect(), 12));
        assert_eq!(search(1, 1), ([0].into_iter().collect(), 0));
    }
}
