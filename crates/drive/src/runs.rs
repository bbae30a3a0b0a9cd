//! What some sectors have, by runs of those that have the same.

use std::collections::BTreeMap;
use std::ops::Range;

/// Runs of sectors: first sector, sector after the last. Runs that touch
/// differ.
#[derive(Clone, Debug)]
pub(crate) struct Runs<T>(BTreeMap<u64, (u64, T)>);

impl<T> Default for Runs<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Copy + PartialEq> Runs<T> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These sectors have this, or nothing, whatever they had.
    pub(crate) fn set(&mut self, range: Range<u64>, what: Option<T>) {
        if range.is_empty() {
            return;
        }
        self.cut(range.start);
        self.cut(range.end);
        let inside: Vec<u64> = self.0.range(range.clone()).map(|(start, _)| *start).collect();
        for start in inside {
            self.0.remove(&start);
        }
        let Some(what) = what else { return };
        let Range { mut start, mut end } = range;
        if let Some((&before, &(before_end, same))) = self.0.range(..start).next_back()
            && (before_end, same) == (start, what)
        {
            start = before;
        }
        if let Some(&(after_end, same)) = self.0.get(&end)
            && same == what
        {
            self.0.remove(&end);
            end = after_end;
        }
        self.0.insert(start, (end, what));
    }

    /// What this sector has.
    pub(crate) fn get(&self, at: u64) -> Option<T> {
        let (_, &(end, what)) = self.0.range(..=at).next_back()?;
        (at < end).then_some(what)
    }

    /// No run goes over the beginning of this sector.
    fn cut(&mut self, at: u64) {
        if let Some((_, (end, what))) = self.0.range_mut(..at).next_back()
            && *end > at
        {
            let rest = (std::mem::replace(end, at), *what);
            self.0.insert(at, rest);
        }
    }

    /// These sectors in pieces that have the same, in their order.
    pub(crate) fn pieces(&self, range: Range<u64>) -> Vec<(Range<u64>, Option<T>)> {
        let mut pieces = Vec::new();
        let mut from = range.start;
        let before = self.0.range(..range.start).next_back();
        let runs = before.into_iter().chain(self.0.range(range.start..range.end.max(range.start)));
        for (&start, &(end, what)) in runs.filter(|(_, (end, _))| *end > range.start) {
            let (start, end) = (start.max(from), end.min(range.end));
            if from < start {
                pieces.push((from..start, None));
            }
            pieces.push((start..end, Some(what)));
            from = end;
        }
        if from < range.end {
            pieces.push((from..range.end, None));
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;

    use super::*;

    #[test]
    fn runs_are_what_a_list_of_sectors_would_be() {
        for seed in 0..300 {
            let mut rng = Streams::new(seed).stream("tails");
            let (mut runs, mut model) = (Runs::default(), vec![None; 80]);
            for _ in 0..60 {
                let start = rng.below(70);
                let range = start..start + rng.below(10);
                let what = [None, Some(1), Some(2)];
                let what = what[rng.below(3) as usize];
                runs.set(range.clone(), what);
                model[range.start as usize..range.end as usize].fill(what);
                let asked = rng.below(40)..40 + rng.below(40);
                let seen: Vec<_> = runs
                    .pieces(asked.clone())
                    .into_iter()
                    .flat_map(|(range, what)| range.map(move |_| what))
                    .collect();
                assert_eq!(seen, model[asked.start as usize..asked.end as usize], "seed {seed}");
                let all: Vec<_> = runs.0.iter().collect();
                let apart = |pair: &[(&u64, &(u64, u8))]| {
                    let [(_, (end, what)), (start, (_, other))] = pair else { return false };
                    end < start || end == *start && what != other
                };
                assert!(all.windows(2).all(apart), "seed {seed}: {all:?}");
            }
        }
    }
}
