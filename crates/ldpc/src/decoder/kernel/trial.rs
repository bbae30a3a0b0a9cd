//! A frame that a kernel has to decode as the portable one does, before it is taken for good.

use super::Kernel;
use crate::code::{Codeword, ZeroForcing};
use crate::decoder::{Decoded, Decoder};
use crate::shape::CODE_BITS;

/// Iterations of the trial: the messages of some, and an end before all errors are gone.
const ITERATIONS: u32 = 3;

/// The first one that agrees, or the portable one.
pub(super) fn first_to_agree(kernels: impl Iterator<Item = Kernel>) -> Kernel {
    let levels = levels();
    let expected = outcome(Kernel::Portable, &levels);
    let agrees = |kernel: &Kernel| outcome(*kernel, &levels) == expected;
    kernels.filter(|kernel| *kernel != Kernel::Naive).find(agrees).unwrap_or(Kernel::Portable)
}

/// What a kernel makes of the frame.
fn outcome(kernel: Kernel, levels: &[i8]) -> (Decoded, Codeword) {
    let mut decoder = Decoder::new(ZeroForcing::None, kernel);
    let decoded = decoder.decode(levels, ITERATIONS);
    (decoded, decoder.word().clone())
}

/// Levels from -15 to 48 without any pattern, every fifth bit or so of a codeword of zeroes wrong or nearly so: too much for three iterations.
fn levels() -> Vec<i8> {
    let mut state = 1_u32;
    let mut next = || {
        // The generator of Numerical Recipes: the high bits are good enough here.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 26) as i8 - 15
    };
    (0..CODE_BITS).map(|_| next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trial_depends_on_every_iteration() {
        let levels = levels();
        let errors = levels.iter().filter(|level| **level < 0).count();
        let (decoded, word) = outcome(Kernel::Portable, &levels);
        assert!(!decoded.converged, "it would show too little");
        assert_eq!(decoded.iterations, ITERATIONS);
        let left = word.distance(&Codeword::ZERO) as usize;
        assert!(left > 0 && left != errors, "{left} of {errors} errors are left");
        assert_eq!((decoded, word), outcome(Kernel::Naive, &levels));
        // The canary: one level that is another one is noticed.
        let mut other = levels.clone();
        other[20_000] = -other[20_000].max(31);
        assert_ne!(outcome(Kernel::Portable, &levels), outcome(Kernel::Portable, &other));
    }

    #[test]
    fn the_best_kernel_is_the_fastest_that_agrees() {
        assert_eq!(Some(Kernel::best()), Kernel::available().next_back());
        assert_eq!(first_to_agree([Kernel::Naive].into_iter()), Kernel::Portable);
        assert_eq!(first_to_agree([Kernel::Portable].into_iter()), Kernel::Portable);
    }
}
