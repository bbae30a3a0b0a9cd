//! Sizes of files, by classes of which each has its share of the bytes.

use levelhead_stats::Rng;

/// Sizes between these, the logarithm uniform, with this share of all bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Class {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) share: f64,
}

impl Class {
    /// E of a size whose logarithm is uniform.
    fn mean(&self) -> f64 {
        (self.to - self.from) / (self.to / self.from).ln()
    }
}

/// Sizes of files that add up to `total`. What is left for the last is added to the one before where it is smaller
/// than any.
pub(super) fn sizes(classes: &[Class], total: u64, rng: &mut Rng) -> Vec<u64> {
    // A class with a share s of the bytes and sizes of mean m has a share of the files in proportion to s / m.
    let weights: Vec<f64> = classes.iter().map(|class| class.share / class.mean()).collect();
    let all: f64 = weights.iter().sum();
    let least = classes.iter().map(|class| class.from).fold(f64::INFINITY, f64::min) as u64;
    let (mut left, mut sizes) = (total, Vec::new());
    while left > 0 {
        let mut at = rng.unit() * all;
        let mut class = &classes[classes.len() - 1];
        for (candidate, weight) in classes.iter().zip(&weights) {
            if at < *weight {
                class = candidate;
                break;
            }
            at -= weight;
        }
        let size = class.from * ((class.to / class.from).ln() * rng.unit()).exp();
        let mut size = (size.round() as u64).clamp(1, left);
        if left - size < least {
            size = left;
        }
        sizes.push(size);
        left -= size;
    }
    sizes
}
