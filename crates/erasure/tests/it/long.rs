//! Codes over the tower field, plans by lists, and symbols that are wrong and do not say so.

use levelhead_erasure::{Code, Field, Kernel, UseError};

use crate::oracle::{Random, Tower};

/// Redundant and data symbols of the papers' codes.
const PAPERS: [(usize, usize); 8] =
    [(3, 252), (4, 251), (5, 250), (9, 246), (4, 1019), (7, 1016), (9, 1014), (19, 1004)];

pub(crate) fn slices(buffers: &[Vec<u8>]) -> Vec<&[u8]> {
    buffers.iter().map(Vec::as_slice).collect()
}

pub(crate) fn slices_mut(buffers: &mut [Vec<u8>]) -> Vec<&mut [u8]> {
    buffers.iter_mut().map(Vec::as_mut_slice).collect()
}

fn codeword(code: &Code, kernel: Kernel, random: &mut Random, size: usize) -> Vec<Vec<u8>> {
    let mut symbols: Vec<_> = (0..code.data()).map(|_| random.bytes(size)).collect();
    let mut redundant = vec![vec![0xaa; size]; code.redundant()];
    code.encode(kernel, &slices(&symbols), &mut slices_mut(&mut redundant)).unwrap();
    symbols.extend(redundant);
    symbols
}

/// `count` different numbers below `limit`.
pub(crate) fn choose(random: &mut Random, limit: usize, count: usize) -> Vec<usize> {
    let mut chosen = Vec::new();
    while chosen.len() < count {
        let next = random.below(limit);
        if !chosen.contains(&next) {
            chosen.push(next);
        }
    }
    chosen
}

/// A pattern is recoverable exactly if the matrix of the redundant symbols that are left, in the
/// columns of the data symbols that are not, has an inverse.
#[test]
fn a_hundred_thousand_random_erasures_of_each_code_of_the_papers_are_recoverable() {
    let tower = Tower::new();
    for (redundant, data) in PAPERS {
        let code = Code::for_length(data + redundant, redundant).unwrap();
        let seed = 0x5eed_0020 + (redundant * 4096 + data) as u64;
        let mut random = Random(seed);
        for round in 0..100_000 {
            let erased = choose(&mut random, code.len(), redundant);
            let mut matrix = Vec::new();
            let lost: Vec<usize> = erased.iter().copied().filter(|&s| s < data).collect();
            for row in (0..redundant).filter(|row| !erased.contains(&(data + row))) {
                matrix.extend(lost.iter().map(|&column| code.element(row, column).unwrap()));
            }
            let recoverable = tower.is_invertible(&mut matrix, lost.len());
            assert!(recoverable, "{code:?}, seed {seed:#x}, round {round}: {erased:?}");
        }
    }
}

#[test]
fn encoding_over_the_tower_field_is_the_matrix_times_the_data() {
    let tower = Tower::new();
    let mut random = Random(0x5eed_0021);
    for (data, redundant) in [(1019, 4), (300, 3), (250, 37), (1, 256)] {
        let code = Code::new(data, redundant).unwrap();
        assert_eq!(code.field(), Field::Tower);
        for kernel in Kernel::available() {
            let symbols = codeword(&code, kernel, &mut random, 256);
            let element = |symbol: &[u8], n: usize| {
                let at = n / 64 * 128 + n % 64;
                u16::from_le_bytes([symbol[at], symbol[at + 64]])
            };
            for row in 0..redundant {
                for n in [0, 1, 63, 64, 100, 127] {
                    let expected = (0..data).fold(0, |sum, column| {
                        let coefficient = code.element(row, column).unwrap();
                        sum ^ tower.product(coefficient, element(&symbols[column], n))
                    });
                    assert_eq!(
                        element(&symbols[data + row], n),
                        expected,
                        "{code:?}, {kernel}, row {row}, {n}"
                    );
                }
            }
        }
    }
}

/// Row 1 of this code has every element of the field but 0 and 1, which row 0 has.
#[test]
fn kernels_agree_for_every_element_of_the_tower_field() {
    let mut random = Random(0x5eed_0022);
    let code = Code::new(65_534, 2).unwrap();
    let (from, old) = (random.bytes(256), random.bytes(400));
    for column in 0..code.data() {
        let (from_at, into_at) = (column % 64, column / 5 % 64);
        let result = |kernel| {
            let (mut first, mut second) = (old.clone(), old.clone());
            let into = &mut [&mut first[into_at..][..128], &mut second[into_at..][..128]];
            code.update(kernel, column, &from[from_at..][..128], into).unwrap();
            [first, second]
        };
        let naive = result(Kernel::Naive);
        for kernel in Kernel::available().skip(1) {
            assert!(result(kernel) == naive, "{kernel}, column {column}");
        }
    }
}

/// Lengths and counts on either side of the pieces in which kernels work.
#[test]
fn kernels_agree_over_the_tower_field_for_every_shape() {
    for (round, redundant) in [1, 2, 3, 4, 7, 9, 19, 31, 32, 33, 65].into_iter().enumerate() {
        for count in [1, 2, 3, 4, 5, 7, 16, 17, 33] {
            let code = Code::new(300, redundant).unwrap();
            let size = 128 * [1, 2, 7, 16, 33, 40][(round + count) % 6];
            let seed = 0x5eed_0023 + (redundant * 64 + count) as u64;
            let result = |kernel| {
                let mut random = Random(seed);
                let data: Vec<_> = (0..count).map(|_| random.bytes(size)).collect();
                let mut sums: Vec<_> = (0..redundant).map(|_| random.bytes(size)).collect();
                code.accumulate(kernel, 300 - count, &slices(&data), &mut slices_mut(&mut sums))
                    .unwrap();
                sums
            };
            let naive = result(Kernel::Naive);
            for kernel in Kernel::available().skip(1) {
                assert!(result(kernel) == naive, "{kernel}: {redundant} of {count}, {size} bytes");
            }
        }
    }
}

#[test]
fn any_erasure_of_any_code_comes_back_and_only_what_is_asked_for() {
    let shapes = PAPERS.map(|(redundant, data)| (data, redundant));
    let more = [(5, 1), (4, 2), (100, 60), (250, 40), (1, 300), (40, 216)];
    for (data, redundant) in shapes.into_iter().chain(more) {
        let code = Code::new(data, redundant).unwrap();
        let seed = 0x5eed_0024 + (data * 4096 + redundant) as u64;
        let mut random = Random(seed);
        let size = if code.field() == Field::Tower { 384 } else { 300 };
        let symbols = codeword(&code, Kernel::best(), &mut random, size);
        for round in 0..20 {
            let count = [1, 2, redundant, random.below(redundant + 1)][round % 4].min(redundant);
            let mut erased = choose(&mut random, code.len(), count);
            if round % 8 == 2 {
                erased = (0..count.min(data)).collect();
            }
            let mut wanted = erased.clone();
            if round % 3 == 1 {
                wanted.truncate(1);
                wanted.push((0..code.len()).rfind(|symbol| !erased.contains(symbol)).unwrap());
            }
            let plan = code.plan(&erased, &wanted).unwrap();
            assert_eq!(plan.wanted(), wanted);
            assert!(plan.sources().iter().all(|source| !erased.contains(source)));
            let sources: Vec<&[u8]> = plan.sources().iter().map(|&s| &symbols[s][..]).collect();
            for kernel in Kernel::available().skip(usize::from(round > 3)) {
                let mut into = vec![vec![0x55; size]; wanted.len()];
                plan.run(kernel, &sources, &mut slices_mut(&mut into)).unwrap();
                for (into, &symbol) in into.iter().zip(&wanted) {
                    let right = *into == symbols[symbol];
                    assert!(
                        right,
                        "{code:?}, {kernel}, {seed:#x}, {round}: {symbol} of {erased:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn lists_that_make_no_sense_are_refused_with_the_numbers() {
    let code = Code::new(1019, 4).unwrap();
    let error =
        |erased: &[usize], wanted: &[usize]| code.plan(erased, wanted).unwrap_err().to_string();
    assert_eq!(error(&[1023], &[0]), "symbol 1023 of a code of 1023");
    assert_eq!(error(&[0], &[usize::MAX]), format!("symbol {} of a code of 1023", usize::MAX));
    assert_eq!(error(&[3, 1, 3], &[1]), "symbol 3 is named twice");
    assert_eq!(error(&[1], &[1, 1]), "symbol 1 is named twice");
    let too_many = "1018 symbols are available, and it takes 1019 to find the others";
    assert_eq!(error(&[0, 1, 2, 3, 4], &[4]), too_many);
    assert!(code.plan(&[0, 1, 2, 3, 4], &[5]).is_ok());
    let error = code
        .update(
            Kernel::best(),
            0,
            &[0; 100],
            &mut [[0; 100]; 4].each_mut().map(|bytes| &mut bytes[..]),
        )
        .unwrap_err();
    assert_eq!(error, UseError::Blocks { size: 100, multiple: 128 });
}

/// Damages symbols in few or all of their bytes, and sees them located and repaired.
#[test]
fn wrong_symbols_are_located_and_repaired_up_to_the_limit() {
    let shapes = PAPERS.map(|(redundant, data)| (data, redundant));
    for (data, redundant) in shapes.into_iter().chain([(4, 2), (1, 6), (10, 40), (300, 2)]) {
        let code = Code::new(data, redundant).unwrap();
        let seed = 0x5eed_0025 + (data * 4096 + redundant) as u64;
        let mut random = Random(seed);
        let right = codeword(&code, Kernel::best(), &mut random, 256);
        for round in 0..12 {
            let erased_count = [0, random.below(redundant)][round % 2];
            let limit = (redundant - erased_count) / 2;
            let wrong_count = if round % 3 == 0 { limit } else { random.below(limit + 1) };
            let mut gone = choose(&mut random, code.len(), erased_count + wrong_count);
            if round == 0 {
                gone = (0..wrong_count).map(|n| code.len() - 1 - n).collect();
            }
            let (erased, wrong) = gone.split_at(erased_count);
            let mut symbols = right.clone();
            for &symbol in erased {
                symbols[symbol] = random.bytes(256);
            }
            for &symbol in wrong {
                for _ in 0..1 + random.below(3) * 40 {
                    symbols[symbol][random.below(256)] ^= 1 + random.below(255) as u8;
                }
            }
            let mut expected: Vec<usize> =
                wrong.iter().copied().filter(|&s| symbols[s] != right[s]).collect();
            expected.sort_unstable();
            let kernel = Kernel::ALL[if round == 0 { 0 } else { 1 + round % 4 }];
            let context = format!("{code:?}, {kernel}, {seed:#x}, {round}: {wrong:?}, {erased:?}");
            let repaired = code.repair(kernel, &mut slices_mut(&mut symbols), erased);
            assert_eq!(repaired, Ok(expected), "{context}");
            assert!(symbols == right, "{context}");
        }
    }
}

/// With two errors more than can be located and one element each, no nearer codeword is possible for
/// these seeds: the answer is that it cannot be done, and nothing changes.
#[test]
fn more_wrong_symbols_than_can_be_located_are_reported_and_nothing_changes() {
    let mut random = Random(0x5eed_0026);
    for (data, redundant) in [(246, 9), (1014, 9), (1004, 19), (1019, 4), (252, 3), (10, 1)] {
        let code = Code::new(data, redundant).unwrap();
        let mut symbols = codeword(&code, Kernel::best(), &mut random, 128);
        for symbol in choose(&mut random, code.len(), redundant / 2 + 1) {
            symbols[symbol] = random.bytes(128);
        }
        let before = symbols.clone();
        let error = code.repair(Kernel::best(), &mut slices_mut(&mut symbols), &[]).unwrap_err();
        assert_eq!(error, UseError::NotLocated { limit: redundant / 2 }, "{code:?}");
        assert!(symbols == before, "{code:?}");
    }
    let code = Code::new(4, 2).unwrap();
    let symbols = [[0_u8; 8]; 6];
    let symbols: Vec<&[u8]> = symbols.iter().map(<[u8; 8]>::as_slice).collect();
    let error = code.locate(Kernel::best(), &symbols, &[0, 1]).unwrap_err();
    assert_eq!(error, UseError::NoSpare { redundant: 2, erased: 2 });
    assert_eq!(code.locate(Kernel::best(), &symbols, &[]), Ok(vec![]));
}

#[test]
fn kernels_are_named_and_the_names_are_read() {
    for kernel in Kernel::ALL {
        assert_eq!(kernel.to_string().parse(), Ok(kernel));
    }
    let error = "sse".parse::<Kernel>().unwrap_err().to_string();
    assert_eq!(
        error,
        "'sse' is not a kernel: expected naive, portable, avx2, avx2-gfni or avx512-gfni"
    );
    assert!(Kernel::available().any(|kernel| kernel == Kernel::best()));
}

/// Small enough for an interpreter that checks every access, as Miri does; every path of every kernel
/// is taken: groups, single rows, rests of groups and of vectors, few sources and many, and a transform.
#[test]
fn small_shapes_take_every_path_of_every_kernel_and_agree() {
    let mut random = Random(0x5eed_0027);
    for (data, count, redundant, size) in [
        (20, 19, 3, 330),
        (6, 5, 4, 97),
        (3, 1, 1, 64),
        (280, 6, 2, 256),
        (280, 3, 3, 128),
        (280, 17, 8, 128),
    ] {
        let code = Code::new(data, redundant).unwrap();
        let symbols: Vec<_> = (0..count).map(|_| random.bytes(size)).collect();
        let old: Vec<_> = (0..redundant).map(|_| random.bytes(size)).collect();
        let result = |kernel| {
            let mut sums = old.clone();
            code.accumulate(kernel, 1, &slices(&symbols), &mut slices_mut(&mut sums)).unwrap();
            sums
        };
        let naive = result(Kernel::Naive);
        for kernel in Kernel::available().skip(1) {
            assert!(result(kernel) == naive, "{kernel}: {data}+{redundant}, {count} of {size}");
        }
    }
}
