//! The kernels agree, and so do the ways to encode; reconstruction gives back what was there.

use levelhead_erasure::{Code, Kernel, Symbol, SymbolSet, TooFewSymbols, add_sum, combine, sum};

use crate::oracle::{Random, product};

fn slices(buffers: &[Vec<u8>]) -> Vec<&[u8]> {
    buffers.iter().map(Vec::as_slice).collect()
}

fn slices_mut(buffers: &mut [Vec<u8>]) -> Vec<&mut [u8]> {
    buffers.iter_mut().map(Vec::as_mut_slice).collect()
}

fn random_symbols(random: &mut Random, count: usize, size: usize) -> Vec<Vec<u8>> {
    (0..count).map(|_| random.bytes(size)).collect()
}

/// That every kernel of this machine gives what the naive one gives.
fn all_agree<T: PartialEq>(context: &str, result: impl Fn(Kernel) -> T) {
    let naive = result(Kernel::Naive);
    for kernel in Kernel::available() {
        assert!(result(kernel) == naive, "{kernel}: {context}");
    }
}

/// The redundant symbols, over buffers that held something else.
fn encoded(code: &Code, kernel: Kernel, data: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut redundant = vec![vec![0xaa; data[0].len()]; code.redundant()];
    code.encode(kernel, &slices(data), &mut slices_mut(&mut redundant)).unwrap();
    redundant
}

#[test]
fn the_naive_kernel_multiplies_in_the_field() {
    let every: Vec<u8> = (0..=u8::MAX).collect();
    for coefficient in 0..=u8::MAX {
        let mut into = vec![0xaa; every.len()];
        sum(Kernel::Naive, &[coefficient], &[&every], &mut into);
        assert!(every.iter().zip(&into).all(|(&byte, &into)| into == product(coefficient, byte)));
    }
}

/// Every coefficient at every length, source and target each misaligned by some other amount.
#[test]
fn kernels_agree_for_every_coefficient_length_and_misalignment() {
    let mut random = Random(0x5eed_0003);
    let (from, old) = (random.bytes(264), random.bytes(264));
    for coefficient in 0..=u8::MAX {
        for size in 0..=200 {
            let skew = size * 7 + usize::from(coefficient);
            let (from_at, into_at) = (skew % 64, skew / 5 % 64);
            let source = &from[from_at..from_at + size];
            // The whole buffers are compared: nothing outside the target may have changed either.
            all_agree(
                &format!("{coefficient:#x}, {size} bytes, {from_at} to {into_at}"),
                |kernel| {
                    let (mut added, mut product) = (old.clone(), old.clone());
                    let bytes = into_at..into_at + size;
                    add_sum(kernel, &[coefficient], &[source], &mut added[bytes.clone()]);
                    sum(kernel, &[coefficient], &[source], &mut product[bytes]);
                    (added, product)
                },
            );
        }
    }
}

#[test]
fn kernels_agree_for_every_pair_of_misalignments() {
    let mut random = Random(0x5eed_0004);
    let (from, old) = (random.bytes(300), random.bytes(300));
    for from_at in 0..64 {
        for into_at in 0..64 {
            all_agree(&format!("{from_at} to {into_at}"), |kernel| {
                let mut sum = old.clone();
                let into = &mut sum[into_at..into_at + 200];
                add_sum(kernel, &[0x8f], &[&from[from_at..from_at + 200]], into);
                sum
            });
        }
    }
}

/// Sizes and counts on either side of the pieces in which kernels work.
#[test]
fn kernels_agree_for_every_number_of_sources_and_around_every_block() {
    let mut random = Random(0x5eed_0005);
    let sizes = [0, 1, 15, 16, 17, 1023, 1024, 1025, 2048, 3000, 4096];
    for data in 1..=40 {
        let code = Code::new(data, 3).unwrap();
        let size = sizes[data % sizes.len()];
        let symbols = random_symbols(&mut random, data, size);
        let context = format!("{data} symbols of {size} bytes");
        all_agree(&context, |kernel| encoded(&code, kernel, &symbols));
    }
    for size in sizes {
        let code = Code::new(6, 2).unwrap();
        let symbols = random_symbols(&mut random, 6, size);
        let context = format!("6 symbols of {size} bytes");
        all_agree(&context, |kernel| encoded(&code, kernel, &symbols));
    }
}

/// The canary: a kernel that got one coefficient wrong by one bit would not pass the tests above.
#[test]
fn a_wrong_coefficient_changes_the_bytes_of_every_kernel() {
    let source: Vec<u8> = (0..200).map(|at| at | 1).collect();
    for kernel in Kernel::available() {
        for coefficient in 0..=u8::MAX {
            for bit in 0..8 {
                let (mut right, mut wrong) = (vec![0; 200], vec![0; 200]);
                sum(kernel, &[coefficient], &[&source], &mut right);
                sum(kernel, &[coefficient ^ 1 << bit], &[&source], &mut wrong);
                assert!(right.iter().zip(&wrong).all(|(right, wrong)| right != wrong));
            }
        }
    }
}

#[test]
fn encoding_is_the_matrix_times_the_data() {
    let mut random = Random(0x5eed_0006);
    for (data, redundant) in [(1, 1), (5, 1), (4, 2), (10, 2), (246, 9), (20, 40), (7, 0)] {
        let code = Code::new(data, redundant).unwrap();
        let symbols = random_symbols(&mut random, data, 50);
        for kernel in Kernel::available() {
            for (row, got) in encoded(&code, kernel, &symbols).iter().enumerate() {
                for (at, &byte) in got.iter().enumerate() {
                    let expected = (0..data).fold(0, |sum, column| {
                        sum ^ product(code.coefficient(row, column), symbols[column][at])
                    });
                    assert_eq!(byte, expected, "{code:?}, {kernel:?}, row {row}, byte {at}");
                }
            }
        }
    }
}

#[test]
fn accumulating_in_pieces_and_updating_from_zero_are_encoding() {
    let mut random = Random(0x5eed_0007);
    for (data, redundant) in [(1, 1), (5, 1), (4, 2), (10, 2), (246, 9), (33, 5)] {
        let code = Code::new(data, redundant).unwrap();
        let symbols = random_symbols(&mut random, data, 100);
        for kernel in Kernel::available() {
            let whole = encoded(&code, kernel, &symbols);
            for piece in [1, 2, 3, 16, 17, 250] {
                let mut sum = vec![vec![0; 100]; redundant];
                let pieces: Vec<_> = symbols.chunks(piece).enumerate().collect();
                for (at, columns) in pieces.into_iter().rev() {
                    code.accumulate(
                        kernel,
                        at * piece,
                        &slices(columns),
                        &mut slices_mut(&mut sum),
                    )
                    .unwrap();
                }
                assert_eq!(sum, whole, "{code:?}, {kernel:?}, pieces of {piece}");
            }
            let mut sum = vec![vec![0; 100]; redundant];
            for (column, symbol) in symbols.iter().enumerate() {
                code.update(kernel, column, symbol, &mut slices_mut(&mut sum)).unwrap();
            }
            assert_eq!(sum, whole, "{code:?}, {kernel:?}, updates");
        }
    }
}

#[test]
fn updating_a_changed_symbol_is_encoding_anew() {
    let mut random = Random(0x5eed_0008);
    for (data, redundant) in [(5, 1), (4, 2), (10, 2), (246, 9)] {
        let code = Code::new(data, redundant).unwrap();
        for kernel in Kernel::available() {
            let mut symbols = random_symbols(&mut random, data, 77);
            let mut redundant = encoded(&code, kernel, &symbols);
            let column = random.below(data);
            let changed = random.bytes(77);
            let difference: Vec<u8> =
                symbols[column].iter().zip(&changed).map(|(old, new)| old ^ new).collect();
            code.update(kernel, column, &difference, &mut slices_mut(&mut redundant)).unwrap();
            symbols[column] = changed;
            assert_eq!(redundant, encoded(&code, kernel, &symbols), "{code:?}, {kernel:?}");
        }
    }
}

/// Reconstructs `wanted` from what is neither wanted nor `lost` and compares with the codeword.
fn check_reconstruct(
    code: &Code,
    kernel: Kernel,
    codeword: &[Vec<u8>],
    lost: &SymbolSet,
    wanted: &SymbolSet,
) {
    let mut buffers = vec![vec![0xaa; codeword[0].len()]; code.len()];
    let mut symbols: Vec<Symbol<'_>> = (0..code.len())
        .zip(&mut buffers)
        .map(|(symbol, buffer)| match (wanted.contains(symbol), lost.contains(symbol)) {
            (true, _) => Symbol::Wanted(buffer),
            (false, true) => Symbol::Lost,
            (false, false) => Symbol::Available(&codeword[symbol]),
        })
        .collect();
    let available = symbols.iter().filter(|symbol| matches!(symbol, Symbol::Available(_))).count();
    let result = code.reconstruct(kernel, &mut symbols);
    let context = format!("{code:?}, {kernel:?}, lost {lost:?}, wanted {wanted:?}");
    let succeeds = available >= code.data() || wanted.is_empty();
    let expected = if succeeds {
        Ok(())
    } else {
        Err(TooFewSymbols { available, needed: code.data() }.into())
    };
    assert_eq!(result, expected, "{context}");
    for (symbol, buffer) in buffers.iter().enumerate() {
        if succeeds && wanted.contains(symbol) {
            assert_eq!(*buffer, codeword[symbol], "symbol {symbol}: {context}");
        } else {
            assert!(buffer.iter().all(|&byte| byte == 0xaa), "symbol {symbol} changed: {context}");
        }
    }
}

#[test]
fn any_survivors_give_back_whatever_is_wanted_or_the_number_that_is_missing() {
    let mut random = Random(0x5eed_0009);
    for (data, redundant) in [(1, 1), (5, 1), (4, 2), (3, 3), (1, 3), (2, 5), (4, 0)] {
        let code = Code::new(data, redundant).unwrap();
        let mut codeword = random_symbols(&mut random, data, 19);
        codeword.extend(encoded(&code, Kernel::Naive, &codeword));
        // Each symbol is available, wanted, or lost: every way there is.
        for state in 0..3_usize.pow(code.len() as u32) {
            let having = |kind| -> SymbolSet {
                let kind_of = |symbol: &usize| state / 3_usize.pow(*symbol as u32) % 3;
                (0..code.len()).filter(|symbol| kind_of(symbol) == kind).collect()
            };
            for kernel in Kernel::available() {
                check_reconstruct(&code, kernel, &codeword, &having(1), &having(2));
            }
        }
    }
}

#[test]
fn random_losses_of_long_codes_are_reconstructed() {
    let codes = [(10, 2), (252, 3), (251, 4), (250, 5), (246, 9), (247, 9), (100, 156)];
    for (data, redundant) in codes {
        let code = Code::new(data, redundant).unwrap();
        let seed = 0x5eed_000a + data as u64;
        let mut random = Random(seed);
        let mut codeword = random_symbols(&mut random, data, 40);
        codeword.extend(encoded(&code, Kernel::best(), &codeword));
        for round in 0..40 {
            eprintln!("seed {seed:#x}, round {round}");
            let gone_count = 1 + random.below(redundant + 1);
            let gone = random.choose(0..code.len(), gone_count);
            let lost = gone.iter().filter(|_| random.below(4) == 0).collect();
            let kernel = Kernel::ALL[round % Kernel::ALL.len()];
            check_reconstruct(&code, kernel, &codeword, &lost, &gone);
        }
    }
}

#[test]
fn a_kept_plan_serves_many_codewords() {
    let mut random = Random(0x5eed_000b);
    let code = Code::new(10, 2).unwrap();
    let rows = code.rows(&SymbolSet::first(12).without(3).without(7), &[7, 3]).unwrap();
    for kernel in Kernel::available() {
        let mut codeword = random_symbols(&mut random, 10, 1500);
        codeword.extend(encoded(&code, kernel, &codeword));
        let sources: Vec<&[u8]> = rows.sources().iter().map(|&s| &codeword[s][..]).collect();
        let mut into = vec![vec![0xaa; 1500]; 2];
        combine(kernel, &rows, &sources, &mut slices_mut(&mut into)).unwrap();
        assert!(into == [codeword[7].clone(), codeword[3].clone()], "{kernel:?}");
    }
}

#[test]
fn too_few_symbols_are_named_with_the_number_it_takes() {
    let code = Code::new(4, 2).unwrap();
    let mut into = [0; 8];
    let mut symbols = [const { Symbol::Lost }; 6];
    symbols[0] = Symbol::Available(&[0; 8]);
    symbols[1] = Symbol::Wanted(&mut into);
    let error = code.reconstruct(Kernel::best(), &mut symbols).unwrap_err();
    assert_eq!(error.to_string(), "1 symbols are available, and it takes 4 to find the others");
}

#[test]
#[should_panic(expected = "symbols are of one length")]
fn buffers_of_different_lengths_are_a_bug() {
    add_sum(Kernel::best(), &[1], &[&[0; 8]], &mut [0; 9]);
}

#[test]
#[should_panic(expected = "each source has a coefficient")]
fn a_source_without_a_coefficient_is_a_bug() {
    sum(Kernel::best(), &[1], &[&[0; 8], &[0; 8]], &mut [0; 8]);
}

/// Of any number of sources, on either side of what a kernel keeps the places of, with a coefficient of 1 for all
/// of them, for some, for none.
#[test]
fn sums_are_those_of_products_one_by_one() {
    let mut random = Random(0x5eed_0022);
    for count in 0..=40 {
        for ones in [0, count / 2, count] {
            let size = 100 + 7 * count;
            let sources = random_symbols(&mut random, count, size);
            let coefficients: Vec<u8> =
                (0..count).map(|n| if n < ones { 1 } else { (n * 37 + 2) as u8 }).collect();
            let old = random.bytes(size);
            let (mut expected, mut expected_added) = (vec![0; size], old.clone());
            for at in 0..size {
                let terms = sources.iter().zip(&coefficients);
                let value = terms.fold(0, |sum, (source, &by)| sum ^ product(by, source[at]));
                (expected[at], expected_added[at]) = (value, old[at] ^ value);
            }
            for kernel in Kernel::available() {
                let (mut into, mut added) = (vec![0xaa; size], old.clone());
                sum(kernel, &coefficients, &slices(&sources), &mut into);
                add_sum(kernel, &coefficients, &slices(&sources), &mut added);
                let context = format!("{kernel}: {count} sources, {ones} of them times 1");
                assert!(into == expected && added == expected_added, "{context}");
            }
        }
    }
}

#[test]
fn wrong_buffers_are_refused_with_the_numbers() {
    let kernel = Kernel::best();
    let code = Code::new(4, 1).unwrap();
    let mut into = [0xaa; 8];
    let error = code.encode(kernel, &[&[0; 8], &[0; 8], &[0; 8]], &mut [&mut into]).unwrap_err();
    assert_eq!(error.to_string(), "one buffer for each data symbol: it takes 4, got 3");
    let error = code.encode(kernel, &[&[0; 8][..]; 4], &mut []).unwrap_err();
    assert_eq!(error.to_string(), "one buffer for each redundant symbol: it takes 1, got 0");
    let error = code.encode(kernel, &[&[0; 9][..]; 4], &mut [&mut into]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "symbols are of one length: redundant symbol 0 has 8 bytes, not 9"
    );
    let error = code.update(kernel, 4, &[0; 8], &mut [&mut into]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "1 data symbols from number 4 on, but the code has 4 data symbols"
    );
    assert_eq!(into, [0xaa; 8]);
}
