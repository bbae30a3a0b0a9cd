//! What was written into memory and waits for the medium.

use std::ops::Range;

/// Runs of blocks, apart from each other and in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dirty {
    runs: Vec<Range<u64>>,
    blocks: u64,
}

impl Dirty {
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// How many blocks wait, in how many runs.
    pub(crate) fn size(&self) -> (u64, usize) {
        (self.blocks, self.runs.len())
    }

    /// The runs, lowest first.
    pub(crate) fn runs(&self) -> &[Range<u64>] {
        &self.runs
    }

    /// Whether all of `blocks` wait.
    pub(crate) fn covers(&self, blocks: &Range<u64>) -> bool {
        let at = self.runs.partition_point(|run| run.end < blocks.end);
        self.runs.get(at).is_some_and(|run| run.start <= blocks.start)
    }

    /// The first run that has blocks in common with `blocks`.
    pub(crate) fn overlapping(&self, blocks: &Range<u64>) -> Option<Range<u64>> {
        let at = self.runs.partition_point(|run| run.end <= blocks.start);
        self.runs.get(at).filter(|run| run.start < blocks.end).cloned()
    }

    /// `blocks` wait too. Runs that touch become one.
    pub(crate) fn insert(&mut self, blocks: Range<u64>) {
        let from = self.runs.partition_point(|run| run.end < blocks.start);
        let to = self.runs.partition_point(|run| run.start <= blocks.end);
        let joined = self.runs[from..to].iter().fold(blocks, |joined, run| {
            self.blocks -= run.end - run.start;
            joined.start.min(run.start)..joined.end.max(run.end)
        });
        self.blocks += joined.end - joined.start;
        self.runs.splice(from..to, [joined]);
    }

    /// None of `blocks` waits any longer.
    pub(crate) fn remove(&mut self, blocks: &Range<u64>) {
        while let Some(run) = self.overlapping(blocks) {
            let at = self.runs.partition_point(|other| other.end <= run.start);
            self.blocks -= run.end.min(blocks.end) - run.start.max(blocks.start);
            let rest = [run.start..blocks.start, blocks.end..run.end];
            self.runs.splice(at..=at, rest.into_iter().filter(|rest| rest.start < rest.end));
        }
    }

    /// The first run that begins at `from` or later, or else the first of all.
    pub(crate) fn next_from(&self, from: u64) -> Option<Range<u64>> {
        let at = self.runs.partition_point(|run| run.start < from);
        self.runs.get(at).or(self.runs.first()).cloned()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use levelhead_stats::Streams;

    use super::*;

    #[test]
    fn runs_are_what_a_set_of_blocks_would_be() {
        for seed in 0..300 {
            let mut rng = Streams::new(seed).stream("dirty");
            let (mut dirty, mut model) = (Dirty::default(), BTreeSet::new());
            for _ in 0..60 {
                let start = rng.below(60);
                let blocks = start..start + 1 + rng.below(8);
                if rng.below(3) == 0 {
                    dirty.remove(&blocks);
                    model.retain(|block| !blocks.contains(block));
                } else {
                    dirty.insert(blocks.clone());
                    model.extend(blocks.clone());
                }
                let held: Vec<u64> = dirty.runs().iter().cloned().flatten().collect();
                assert!(held.iter().eq(model.iter()), "seed {seed}: {:?}", dirty.runs());
                assert!(dirty.runs().windows(2).all(|pair| pair[0].end < pair[1].start));
                assert_eq!(dirty.size(), (model.len() as u64, dirty.runs().len()));
                let all = blocks.clone().all(|block| model.contains(&block));
                assert_eq!(dirty.covers(&blocks), all, "seed {seed}: {blocks:?}");
                let any = blocks.clone().any(|block| model.contains(&block));
                assert_eq!(dirty.overlapping(&blocks).is_some(), any, "seed {seed}: {blocks:?}");
            }
        }
    }

    #[test]
    fn the_next_run_lies_inwards_or_is_the_first() {
        let mut dirty = Dirty::default();
        [10..12, 20..22, 30..32].into_iter().for_each(|run| dirty.insert(run));
        assert_eq!(dirty.next_from(15), Some(20..22));
        assert_eq!(dirty.next_from(20), Some(20..22));
        assert_eq!(dirty.next_from(31), Some(10..12));
        assert_eq!(Dirty::default().next_from(0), None);
    }
}
