//! Codes with enough redundant symbols for kernels to encode by a transform: cosets that are whole,
//! begun, ended or with gaps, data outside of all cosets, and rows that are not asked for.

use levelhead_erasure::{Code, Kernel};

use crate::long::{choose, slices, slices_mut};
use crate::oracle::Random;

/// Codes with transforms of 4, 8, 16 and 32, over both fields, where a product is two lookups. In 250+5 and 220+30 the last
/// data symbols have points among the redundant ones' and lie in no coset.
const SHAPES: [(usize, usize); 13] = [
    (200, 5),
    (250, 5),
    (240, 8),
    (400, 4),
    (220, 16),
    (190, 20),
    (220, 30),
    (160, 32),
    (300, 8),
    (290, 10),
    (400, 16),
    (280, 19),
    (261, 32),
];

/// Sizes on either side of a block's and of a vector's.
const SIZES: [usize; 5] = [128, 896, 1024, 1152, 2176];

#[track_caller]
fn all_equal_naive<T: PartialEq>(what: &str, result: impl Fn(Kernel) -> T) {
    let naive = result(Kernel::Naive);
    for kernel in Kernel::available().skip(1) {
        assert!(result(kernel) == naive, "{kernel}: {what}");
    }
}

#[test]
fn encoding_by_a_transform_is_encoding_by_the_matrix() {
    for (round, (data, redundant)) in SHAPES.into_iter().enumerate() {
        let code = Code::new(data, redundant).unwrap();
        let size = SIZES[round % SIZES.len()];
        let mut random = Random(0x5eed_0030 + round as u64);
        let symbols: Vec<_> = (0..data).map(|_| random.bytes(size)).collect();
        all_equal_naive(&format!("{data}+{redundant}, {size} bytes"), |kernel| {
            let mut sums = vec![vec![0xa5; size]; redundant];
            code.encode(kernel, &slices(&symbols), &mut slices_mut(&mut sums)).unwrap();
            sums
        });
    }
}

#[test]
fn pieces_that_begin_and_end_within_cosets_add_up() {
    for (round, (data, redundant)) in SHAPES.into_iter().enumerate() {
        let code = Code::new(data, redundant).unwrap();
        let mut random = Random(0x5eed_0031 + round as u64);
        let size = SIZES[(round + 2) % SIZES.len()];
        let count = 2 * redundant.next_power_of_two() + random.below(40);
        let first = random.below(data - count);
        let symbols: Vec<_> = (0..count).map(|_| random.bytes(size)).collect();
        let old: Vec<_> = (0..redundant).map(|_| random.bytes(size)).collect();
        all_equal_naive(&format!("{data}+{redundant}, {count} from {first}"), |kernel| {
            let mut sums = old.clone();
            code.accumulate(kernel, first, &slices(&symbols), &mut slices_mut(&mut sums)).unwrap();
            sums
        });
    }
}

#[test]
fn lost_symbols_come_back_from_cosets_with_gaps() {
    for (round, (data, redundant)) in SHAPES.into_iter().enumerate() {
        let code = Code::new(data, redundant).unwrap();
        let mut random = Random(0x5eed_0032 + round as u64);
        let size = SIZES[(round + 3) % SIZES.len()];
        let mut symbols: Vec<_> = (0..data).map(|_| random.bytes(size)).collect();
        let mut sums = vec![vec![0; size]; redundant];
        code.encode(Kernel::best(), &slices(&symbols), &mut slices_mut(&mut sums)).unwrap();
        symbols.append(&mut sums);
        for lost_count in [redundant - 1, redundant] {
            let erased = choose(&mut random, code.len(), lost_count);
            let plan = code.plan(&erased, &erased).unwrap();
            let sources: Vec<&[u8]> = plan.sources().iter().map(|&n| &symbols[n][..]).collect();
            for kernel in Kernel::available() {
                let mut into = vec![vec![0x5a; size]; lost_count];
                plan.run(kernel, &sources, &mut slices_mut(&mut into)).unwrap();
                let is_right = erased.iter().zip(&into).all(|(&n, got)| *got == symbols[n]);
                assert!(is_right, "{kernel}: {data}+{redundant} without {erased:?}");
            }
        }
    }
}
