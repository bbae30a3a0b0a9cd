//! Counts of positive numbers in buckets of 0.4 %, by the bits of the number: integers, so that they merge exactly.

/// Buckets an octave: the first eight bits of the mantissa.
const PER_OCTAVE_BITS: u32 = 8;
/// The lowest number with a bucket of its own, as a power of two; what is below counts with it.
const LOWEST_LOG2: i64 = -12;
/// Octaves from there; what is above counts with the last.
const OCTAVES: usize = 44;
/// How many buckets there are.
pub const BUCKETS: usize = OCTAVES << PER_OCTAVE_BITS;

const BASE: i64 = (1023 + LOWEST_LOG2) << PER_OCTAVE_BITS;

/// How often numbers fell into each bucket. 1.5 and all powers of two are edges of buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
}

impl Histogram {
    /// Nothing counted.
    pub fn new() -> Self {
        Self { counts: vec![0; BUCKETS] }
    }

    /// Counts a number, which is at least 0.
    #[inline]
    pub fn count(&mut self, value: f64) {
        let count = &mut self.counts[bucket_of(value)];
        *count = count.saturating_add(1);
    }

    /// How many were counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// How many were at least `edge`, exact if that is an edge of buckets.
    pub fn at_least(&self, edge: f64) -> u64 {
        self.counts[bucket_of(edge)..].iter().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// The middle of the bucket that holds quantile `q` (from 0 to 1), by nearest rank; `None` if nothing was counted.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let total = self.total();
        if total == 0 {
            return None;
        }
        let rank = ((q * total as f64).ceil() as u64).clamp(1, total);
        let mut seen = 0;
        for (bucket, &count) in self.counts.iter().enumerate() {
            seen = u64::saturating_add(seen, count);
            if seen >= rank {
                return Some((edge_of(bucket) + edge_of(bucket + 1)) / 2.0);
            }
        }
        unreachable!("a rank is at most the total")
    }

    /// Adds what another counted.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine = mine.saturating_add(*theirs);
        }
    }

    pub(super) fn counts(&self) -> &[u64] {
        &self.counts
    }

    pub(super) fn counts_mut(&mut self) -> &mut [u64] {
        &mut self.counts
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

#[inline]
fn bucket_of(value: f64) -> usize {
    let index = (value.to_bits() >> (52 - PER_OCTAVE_BITS)) as i64 - BASE;
    index.clamp(0, BUCKETS as i64 - 1) as usize
}

fn edge_of(bucket: usize) -> f64 {
    f64::from_bits(((bucket as i64 + BASE) as u64) << (52 - PER_OCTAVE_BITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_edges_and_buckets_are_narrow() {
        for edge in [0.5, 1.0, 1.5, 2.0, 4.0, 16.0] {
            assert_eq!(edge_of(bucket_of(edge)).to_bits(), f64::to_bits(edge));
            assert!(bucket_of(f64::from_bits(edge.to_bits() - 1)) < bucket_of(edge));
        }
        let mut histogram = Histogram::new();
        histogram.count(12.595);
        assert!((histogram.quantile(0.5).expect("one value") / 12.595 - 1.0).abs() < 0.002);
        histogram.count(0.0);
        histogram.count(f64::MAX);
        assert_eq!(histogram.total(), 3);
    }
}
