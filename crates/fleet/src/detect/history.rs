//! The last values of a member, and the same in order of value, over several spans at once.

use std::collections::VecDeque;

use levelhead_stats::median_of_sorted;

/// The last values, the longest span of them kept.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct History {
    values: VecDeque<f64>,
    spans: Vec<Span>,
}

#[derive(Clone, Debug, PartialEq)]
struct Span {
    length: usize,
    sorted: Vec<f64>,
}

impl History {
    /// Without values, of spans in rising order.
    pub(super) fn new(lengths: &[usize]) -> Self {
        assert!(!lengths.is_empty(), "a history has a span");
        assert!(lengths.is_sorted());
        let spans = lengths.iter().map(|&length| Span { length, sorted: Vec::new() }).collect();
        Self { values: VecDeque::new(), spans }
    }

    /// How many values there are, at most the longest span.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Takes the next value. Panics if it is not finite.
    pub(super) fn push(&mut self, value: f64) {
        assert!(value.is_finite(), "{value} has no place among others");
        let before = self.values.len();
        for span in &mut self.spans {
            if before >= span.length {
                span.remove(self.values[before - span.length]);
            }
            span.insert(value);
        }
        self.values.push_back(value);
        if self.values.len() > self.spans.last().expect("a history has a span").length {
            self.values.pop_front();
        }
    }

    /// Forgets all but the last `kept` values.
    pub(super) fn keep_last(&mut self, kept: usize) {
        let values = std::mem::take(&mut self.values);
        for span in &mut self.spans {
            span.sorted.clear();
        }
        for value in values.iter().skip(values.len().saturating_sub(kept)) {
            self.push(*value);
        }
    }

    /// The values of a span, in order of value; fewer at the beginning.
    pub(super) fn sorted(&self, span_idx: usize) -> &[f64] {
        &self.spans[span_idx].sorted
    }

    /// The median of a span that is full.
    pub(super) fn median(&self, span_idx: usize) -> Option<f64> {
        let span = &self.spans[span_idx];
        (span.sorted.len() == span.length).then(|| median_of_sorted(&span.sorted))
    }

    /// The last values, the oldest first.
    pub(super) fn values(&self) -> impl DoubleEndedIterator<Item = f64> + ExactSizeIterator {
        self.values.iter().copied()
    }
}

impl Span {
    fn insert(&mut self, value: f64) {
        let place = self.sorted.partition_point(|other| other.total_cmp(&value).is_lt());
        self.sorted.insert(place, value);
    }

    fn remove(&mut self, value: f64) {
        let place = self.sorted.partition_point(|other| other.total_cmp(&value).is_lt());
        assert!(self.sorted[place].total_cmp(&value).is_eq());
        self.sorted.remove(place);
    }
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;

    use super::*;

    #[test]
    fn spans_equal_the_slow_obvious_way() {
        let mut rng = Streams::new(1).stream("history");
        let mut history = History::new(&[3, 7]);
        let mut all = Vec::new();
        for _ in 0..200 {
            if rng.below(20) == 0 {
                history.keep_last(5);
                all.drain(..all.len().saturating_sub(5));
            }
            let value = rng.below(5) as f64;
            history.push(value);
            all.push(value);
            for (idx, length) in [3, 7].into_iter().enumerate() {
                let mut last: Vec<f64> = all[all.len().saturating_sub(length)..].to_vec();
                last.sort_by(f64::total_cmp);
                assert_eq!(history.sorted(idx), last);
                assert_eq!(history.median(idx).is_some(), last.len() == length);
            }
        }
    }
}
