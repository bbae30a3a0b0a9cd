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

/// Counts of the buckets of one octave.
type Octave = Box<[u64; 1 << PER_OCTAVE_BITS]>;

/// How often numbers fell into each bucket. 1.5 and all powers of two are edges of buckets. An octave takes room once a number has
/// fallen into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    octaves: Vec<Option<Octave>>,
}

impl Histogram {
    /// The number of the bucket that begins at 1.
    pub const ONE: usize = (-LOWEST_LOG2 as usize) << PER_OCTAVE_BITS;

    /// Nothing counted.
    pub fn new() -> Self {
        Self { octaves: vec![None; OCTAVES] }
    }

    /// Counts a number, which is at least 0.
    #[inline]
    pub fn count(&mut self, value: f64) {
        self.add(bucket_of(value), 1);
    }

    /// How many were counted.
    pub fn total(&self) -> u64 {
        self.filled().fold(0, |sum, bucket| sum.saturating_add(bucket.count))
    }

    /// How many were at least `edge`, exact if that is an edge of buckets.
    pub fn at_least(&self, edge: f64) -> u64 {
        let from = bucket_of(edge);
        let above = self.filled().filter(|bucket| bucket.number >= from);
        above.fold(0, |sum, bucket| sum.saturating_add(bucket.count))
    }

    /// The middle of the bucket that holds quantile `q` (from 0 to 1), by nearest rank; `None` if nothing was counted.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let total = self.total();
        let rank = ((q * total as f64).ceil() as u64).clamp(1, total.max(1));
        let mut seen = 0;
        self.filled().find_map(|bucket| {
            seen = u64::saturating_add(seen, bucket.count);
            let middle = (edge_of(bucket.number) + edge_of(bucket.number + 1)) / 2.0;
            (seen >= rank).then_some(middle)
        })
    }

    /// The upper edge of each bucket in which there is a number, and the share of numbers below it, rising.
    pub fn shares(&self) -> Vec<Share> {
        let (total, mut seen) = (self.total() as f64, 0);
        let share = |bucket: Bucket| {
            seen = u64::saturating_add(seen, bucket.count);
            Share { below: edge_of(bucket.number + 1), share: seen as f64 / total }
        };
        self.filled().map(share).collect()
    }

    /// Adds what another counted.
    pub fn merge(&mut self, other: &Self) {
        other.filled().for_each(|bucket| self.add(bucket.number, bucket.count));
    }

    /// The buckets in which there is a number, rising.
    pub fn filled(&self) -> impl Iterator<Item = Bucket> {
        let octaves = self.octaves.iter().enumerate();
        let counts = octaves.filter_map(|(octave, counts)| Some((octave, counts.as_ref()?)));
        let buckets = counts.flat_map(|(octave, counts)| {
            let bucket =
                move |(at, &count)| Bucket { number: octave << PER_OCTAVE_BITS | at, count };
            counts.iter().enumerate().map(bucket)
        });
        buckets.filter(|bucket| bucket.count > 0)
    }

    /// Counts in bucket `number`, which is below [`BUCKETS`].
    #[inline]
    pub(super) fn add(&mut self, number: usize, count: u64) {
        let octave = self.octaves[number >> PER_OCTAVE_BITS].get_or_insert_with(empty_octave);
        let slot = &mut octave[number & ((1 << PER_OCTAVE_BITS) - 1)];
        *slot = slot.saturating_add(count);
    }
}

/// A bucket in which there are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// From 0: [`Histogram::ONE`] begins at 1, and 256 later ones at twice that.
    pub number: usize,
    /// How many numbers are in it.
    pub count: u64,
}

/// The share of what was counted that lies below a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// The number.
    pub below: f64,
    /// From 0 to 1.
    pub share: f64,
}

#[cold]
fn empty_octave() -> Octave {
    Box::new([0; 1 << PER_OCTAVE_BITS])
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
            assert_eq!(bucket_of(1.0), Histogram::ONE);
            assert!(bucket_of(f64::from_bits(edge.to_bits() - 1)) < bucket_of(edge));
        }
        let mut histogram = Histogram::new();
        histogram.count(12.595);
        assert!((histogram.quantile(0.5).expect("one value") / 12.595 - 1.0).abs() < 0.002);
        histogram.count(0.0);
        histogram.count(f64::MAX);
        assert_eq!(histogram.total(), 3);
        let shares = histogram.shares();
        assert!(
            shares
                .windows(2)
                .all(|pair| pair[0].below < pair[1].below && pair[0].share < pair[1].share)
        );
        assert!((shares[2].share - 1.0).abs() < 1e-12);
    }
}
