//! Whether a decoding that forced zeroes is to be believed.
//!
//! Forcing leaves the levels of the forced bits out. If they are not zeroes after all, all checks may hold of another codeword than the one that was
//! sent: the two differ by a codeword `w` that has ones among the forced bits. Its ones elsewhere were mended as if they had been errors,
//! so that `w` must be light; and circulants have light codewords, for everybody to compute.
//!
//! In the committed code a column has 4 circulants that are not zero, in 4 of 7 rows. Any six columns whose circulants lie in the same five rows
//! have a codeword, with `w_i` the determinant of the other five columns. Twelve columns lie in the rows 0, 2, 3, 4 and 5, and
//! three of them are among the last 512 bytes: 84 codewords of 178 ones and more with half of their ones there. That is too few for a guess to
//! notice, and at a BER of 0.005 or below the decoder mends the other half as noise, nearly always.
//!
//! Their ones crowd in few columns, and noise does not crowd. So the hard decisions are compared with what was decoded, column by column, forced
//! columns included. With `k` differences in a column and `m` as their mean over columns that are not forced, the deviance
//!
//! ```text
//!   D = sum over columns of 2 (k ln(k / m) - (k - m))
//! ```
//!
//! is about 71 for noise without memory, one for each column, and exceeds 220 less than once in 10^13 sectors, whatever the error rate (Chernoff's
//! bound for Poisson's law). 178 ones in six columns add 270 to it at a BER of 0.0175, and more where there is less noise.

use crate::code::{Codeword, ZeroForcing};
use crate::shape::{BLOCK_BITS, COLUMNS};

/// The largest deviance that is taken for noise.
const DEVIANCE_MAX: f64 = 220.0;

/// Whether the differences between the signs of `levels` and `word` lie as noise without memory puts them. Nothing that was decoded without
/// forcing is doubted.
pub(super) fn is_believed(word: &Codeword, levels: &[i8], forced: ZeroForcing) -> bool {
    forced == ZeroForcing::None || deviance(&differences(word, levels), forced) <= DEVIANCE_MAX
}

/// How unevenly differences lie over the columns.
fn deviance(differences: &[u32; COLUMNS], forced: ZeroForcing) -> f64 {
    let free = || (0..COLUMNS).filter(|column| forced.takes(*column));
    let sum: u32 = free().map(|column| differences[column]).sum();
    // One more, so that a first error among forced bits is no wonder where there is none elsewhere.
    let mean = f64::from(sum + 1) / free().count() as f64;
    let of_column = |count: &u32| {
        let count = f64::from(*count);
        let surprise = if count > 0.0 { count * (count / mean).ln() } else { 0.0 };
        2.0 * (surprise - (count - mean))
    };
    differences.iter().map(of_column).sum()
}

/// Bits of each column that differ from the signs of their levels.
fn differences(word: &Codeword, levels: &[i8]) -> [u32; COLUMNS] {
    let (columns, _) = levels.as_chunks::<BLOCK_BITS>();
    std::array::from_fn(|column| {
        let (chunks, _) = columns[column].as_chunks::<64>();
        let words = word.0[column].iter().zip(chunks);
        words
            .map(|(bits, levels)| {
                let signs =
                    levels.iter().rev().fold(0, |word, level| word << 1 | u64::from(*level < 0));
                (signs ^ bits).count_ones()
            })
            .sum()
    })
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;

    use super::*;
    use crate::channel::{Channel, ChannelKind};
    use crate::shape::CODE_BITS;

    /// Noise alone: the mean is about one for each column, and nothing comes near the limit.
    #[test]
    fn noise_without_memory_is_believed() {
        let mut rng = Streams::new(23).stream("belief");
        let mut levels = vec![0; CODE_BITS];
        for ber in [1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.0175, 0.03] {
            let channel = Channel::new(ChannelKind::Soft, ber).unwrap();
            let mut largest = 0.0_f64;
            let mut sum = 0.0;
            for _ in 0..300 {
                channel.draw(&mut rng, &mut levels);
                let found = deviance(&differences(&Codeword::ZERO, &levels), ZeroForcing::B256);
                (sum, largest) = (sum + found, largest.max(found));
            }
            assert!(largest < 150.0, "{ber}: {largest}");
            assert!(ber < 0.001 || (55.0..90.0).contains(&(sum / 300.0)), "{ber}: {sum} of 300");
        }
    }

    #[test]
    fn differences_that_crowd_are_not_believed() {
        let mut differences = [9; COLUMNS];
        assert!(deviance(&differences, ZeroForcing::B512) < 1.0);
        differences[60] = 90;
        let forced = deviance(&differences, ZeroForcing::B512);
        assert!(forced > DEVIANCE_MAX, "{forced}");
        differences.swap(60, 3);
        let free = deviance(&differences, ZeroForcing::B512);
        assert!((DEVIANCE_MAX..forced).contains(&free), "{free}");
    }

    #[test]
    fn differences_are_counted_by_column() {
        let mut word = Codeword::ZERO;
        let mut levels = vec![8; CODE_BITS];
        word.0[3][1] = 0b101;
        for at in [3 * BLOCK_BITS + 64, 70 * BLOCK_BITS + 511, 70 * BLOCK_BITS] {
            levels[at] = -8;
        }
        let counted = differences(&word, &levels);
        assert_eq!((counted[3], counted[70], counted.iter().sum::<u32>()), (1, 2, 3));
    }
}
