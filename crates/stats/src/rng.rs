//! Random streams by name, and hashes that look random.
//!
//! The generator is xoshiro256++ (Blackman and Vigna, "Scrambled Linear Pseudorandom Number
//! Generators", ACM TOMS 47(4), 2021), seeded through SplitMix64 as its authors advise. It is
//! written out here, and not taken from a library, because results must stay the same bytes for
//! the same seed for as long as the project lives.

use levelhead_units::{Nanos, Ratio};

/// The source of all streams of one run.
#[derive(Clone, Copy, Debug)]
pub struct Streams {
    seed: u64,
}

impl Streams {
    /// All streams of the run with this seed.
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The run's seed.
    pub const fn seed(self) -> u64 {
        self.seed
    }

    /// The stream of this name. It depends on the seed and the name only, and not on the order or number
    /// of the calls.
    pub fn stream(self, name: &str) -> Rng {
        let mut state = self.key(name);
        Rng { state: std::array::from_fn(|_| split_mix(&mut state)) }
    }

    /// A number for this name, for use with [`hash_of`].
    pub fn key(self, name: &str) -> u64 {
        name.bytes().fold(finish(self.seed ^ 0x6A09_E667_F3BC_C908), |key, byte| {
            finish(key ^ u64::from(byte)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        })
    }
}

/// A random stream.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The next 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let t = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= t;
        *d = d.rotate_left(45);
        result
    }

    /// A number from 0 up to but not including 1, in steps of 2^-53.
    pub fn unit(&mut self) -> f64 {
        unit_of(self.bits())
    }

    /// A number below `bound`, each equally likely (without bias, by rejection).
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "no number is below zero");
        // Lemire, "Fast Random Integer Generation in an Interval", 2019.
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let wide = u128::from(self.bits()) * u128::from(bound);
            if wide as u64 >= threshold {
                return (wide >> 64) as u64;
            }
        }
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: Ratio) -> bool {
        self.unit() < p.get()
    }

    /// A waiting time of the given mean, exponentially distributed: the gaps of a Poisson process.
    pub fn exponential(&mut self, mean: Nanos) -> Nanos {
        // 1 - unit() is in (0, 1], so that the logarithm is finite.
        let factor = -(1.0 - self.unit()).ln();
        Nanos::new((mean.get() as f64 * factor).round() as u64)
    }

    /// Fills `bytes` with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.bits().to_le_bytes()[..chunk.len()]);
        }
    }
}

/// 64 bits that depend on all of `key` and `parts` and look random: a stream that can be read at
/// any place, in any order.
#[inline]
pub fn hash_of(key: u64, parts: &[u64]) -> u64 {
    parts.iter().fold(finish(key), |hash, &part| {
        finish(hash.rotate_left(29) ^ part.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    })
}

/// The number from 0 up to but not including 1 that the highest 53 of 64 bits name.
pub fn unit_of(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    finish(*state)
}

/// The finishing steps of SplitMix64: a bijection that spreads every bit over all others.
#[inline]
fn finish(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded once; a change would change every number the project has published.
    #[test]
    fn streams_never_change() {
        let mut rng = Streams::new(7).stream("drive/3/faults");
        assert_eq!([rng.bits(), rng.bits()], [0x9D95_50E8_1318_1DB5, 0x881B_A3E7_5FF2_72E7]);
        assert_ne!(rng.bits(), Streams::new(7).stream("drive/4/faults").bits());
        assert_ne!(rng.bits(), Streams::new(8).stream("drive/3/faults").bits());
    }

    /// The authors' own first outputs for the state 1, 2, 3, 4.
    #[test]
    fn reproduces_xoshiro256_plus_plus() {
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..4).map(|_| rng.bits()).collect();
        assert_eq!(first, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn draws_have_the_moments_of_their_law() {
        let mut rng = Streams::new(1).stream("moments");
        let n = 200_000;
        let mean = Nanos::from_millis(8);
        let waits: Vec<f64> = (0..n).map(|_| rng.exponential(mean).as_millis_f64()).collect();
        let average = waits.iter().sum::<f64>() / f64::from(n);
        // Four standard errors of an exponential mean: 4 * 8 / sqrt(n).
        assert!((average - 8.0).abs() < 4.0 * 8.0 / f64::from(n).sqrt(), "{average}");
        let hits = (0..n).filter(|_| rng.chance(Ratio::new(0.02).unwrap())).count() as f64;
        assert!((hits / f64::from(n) - 0.02).abs() < 4.0 * (0.02 * 0.98 / f64::from(n)).sqrt());
    }

    #[test]
    fn below_reaches_every_number_evenly() {
        let mut rng = Streams::new(3).stream("below");
        let mut counts = [0_u32; 6];
        for _ in 0..60_000 {
            counts[rng.below(6) as usize] += 1;
        }
        // Chi-square with 5 degrees of freedom: 25.7 is exceeded once in ten thousand.
        let chi: f64 = counts.iter().map(|&c| (f64::from(c) - 1e4).powi(2) / 1e4).sum();
        assert!(chi < 25.7, "{counts:?}");
    }

    #[test]
    fn hashes_of_neighbours_are_unrelated() {
        let ones: u32 = (0..1000_u64)
            .map(|n| (hash_of(5, &[n, 0]) ^ hash_of(5, &[n + 1, 0])).count_ones())
            .sum();
        assert!((31_000..33_000).contains(&ones), "{ones} of 64000 bits differ");
    }
}
