//! Beside ldpc-toolbox: the same matrix, and decoders that share no code with ours.

use ldpc_toolbox::decoder::factory::{DecoderFactory, DecoderImplementation};
use ldpc_toolbox::sparse::{Node, SparseMatrix};
use levelhead_ldpc::{
    BLOCK_BITS, CODE_BITS, COLUMNS, Codeword, Decoder, Kernel, ROWS, ZeroForcing, census,
    column_of, syndrome_is_zero,
};
use levelhead_stats::Streams;

use crate::frames::{bits, codeword, noise, sent};

/// The matrix, bit by bit.
fn matrix() -> SparseMatrix {
    let mut matrix = SparseMatrix::new(ROWS * BLOCK_BITS, CODE_BITS);
    for column in 0..COLUMNS {
        for entry in column_of(column) {
            for check in 0..BLOCK_BITS {
                let bit = column * BLOCK_BITS + (check + entry.shift) % BLOCK_BITS;
                matrix.insert(entry.row * BLOCK_BITS + check, bit);
            }
        }
    }
    matrix
}

/// Whether each check sees an even number of ones.
fn holds(matrix: &SparseMatrix, bits: &[bool]) -> bool {
    let is_even = |row| matrix.iter_row(row).filter(|bit| bits[**bit]).count().is_multiple_of(2);
    (0..matrix.num_rows()).all(is_even)
}

/// The shortest cycle through the first bit of each column: the other bits of a column have the same ones, moved.
fn girth(matrix: &SparseMatrix) -> Option<usize> {
    (0..COLUMNS).filter_map(|column| matrix.girth_at_node(Node::Col(column * BLOCK_BITS))).min()
}

#[test]
fn girth_is_six() {
    let mut matrix = matrix();
    assert_eq!(girth(&matrix), Some(6));
    assert_eq!(census().girth, 6);
    // The canary: a circulant of another shift closes a cycle of four. Two rows see columns 0 and `other`.
    let [first, second] = [0, 1].map(|at| column_of(0).nth(at).unwrap());
    let shifts = |column| {
        let shift = |row| column_of(column).find(|entry| entry.row == row).map(|entry| entry.shift);
        Some((shift(first.row)?, shift(second.row)?))
    };
    let (other, (above, _)) =
        (1..COLUMNS).find_map(|column| Some((column, shifts(column)?))).unwrap();
    let closing = above + BLOCK_BITS + second.shift - first.shift;
    for check in 0..BLOCK_BITS {
        let bit = other * BLOCK_BITS + (check + closing) % BLOCK_BITS;
        matrix.insert(second.row * BLOCK_BITS + check, bit);
    }
    assert_eq!(girth(&matrix), Some(4));
}

#[test]
fn syndromes_agree() {
    let matrix = matrix();
    let mut rng = Streams::new(21).stream("toolbox");
    for round in 0..40 {
        let word = codeword(&mut rng, ZeroForcing::ALL[round % 4]);
        assert!(syndrome_is_zero(&word));
        assert!(holds(&matrix, &bits(&word)));
        // The canary: one bit in one column is noticed by both.
        let mut wrong = word;
        wrong.0[rng.below(COLUMNS as u64) as usize][round % 8] ^= 1 << rng.below(64);
        assert!(!syndrome_is_zero(&wrong));
        assert!(!holds(&matrix, &bits(&wrong)));
    }
}

/// A bit that is known, as a logarithm of probabilities.
const KNOWN: f64 = 100.0;

/// The logarithm of probabilities of a level of 1 at a bit error rate of 0.012: 2 / (16 sigma^2).
const UNIT: f64 = 0.637;

#[test]
fn three_hundred_noisy_codewords_are_decoded_to_the_same() {
    let mut theirs = DecoderImplementation::HLAminstari8.build_decoder(matrix());
    let mut ours = ZeroForcing::ALL.map(|forced| Decoder::new(forced, Kernel::best()));
    let mut rng = Streams::new(22).stream("toolbox");
    for frame in 0..300 {
        let level = frame as usize % 4;
        let forced = ZeroForcing::ALL[level];
        let word = codeword(&mut rng, forced);
        let bits = bits(&word);
        let levels = sent(&bits, &noise(0.012, frame));
        let known = |bit: usize| bit < 32_768 && bit >= 32_768 - 8 * forced.bytes();
        let ratios: Vec<f64> = (0..CODE_BITS)
            .map(|bit| if known(bit) { KNOWN } else { f64::from(levels[bit]) * UNIT })
            .collect();
        let decoded = theirs.decode(&ratios, 50).expect("they decode it");
        assert!(decoded.codeword.iter().map(|bit| *bit == 1).eq(bits), "theirs, frame {frame}");
        assert!(ours[level].decode(&levels, 50).converged, "ours, frame {frame}");
        assert_eq!(*ours[level].word(), word, "ours, frame {frame}");
    }
}

/// The canary: a decoder that skips columns which are not zeroes, by 256 bytes too many, finds nothing.
#[test]
fn columns_too_many_skipped_are_noticed() {
    let mut rng = Streams::new(23).stream("toolbox");
    for frame in 0..8 {
        let word = codeword(&mut rng, ZeroForcing::B256);
        let levels = sent(&bits(&word), &noise(0.012, frame));
        let decode = |forced| -> (bool, Codeword) {
            let mut decoder = Decoder::new(forced, Kernel::best());
            (decoder.decode(&levels, 50).converged, decoder.word().clone())
        };
        assert_eq!(decode(ZeroForcing::B256), (true, word.clone()));
        let (converged, found) = decode(ZeroForcing::B512);
        assert!(!converged);
        assert_ne!(found, word);
    }
}
