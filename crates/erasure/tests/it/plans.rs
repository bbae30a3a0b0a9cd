//! The matrix is MDS, and a plan gives the symbols it says.

use levelhead_erasure::{Code, SymbolSet};

use crate::oracle::{Random, generator_row, is_invertible, product};

/// Data and redundant symbols of the long codes: those of length 255, and the longest there are.
const LONG: [(usize, usize); 9] =
    [(252, 3), (251, 4), (250, 5), (246, 9), (247, 9), (255, 1), (1, 255), (128, 128), (127, 129)];

fn codes(len_max: usize) -> impl Iterator<Item = Code> {
    (1..=len_max).flat_map(|len| (1..=len).map(move |data| Code::new(data, len - data).unwrap()))
}

/// Every subset of the first `count` symbols.
fn subsets(count: usize) -> impl Iterator<Item = SymbolSet> {
    (0..1_u32 << count)
        .map(move |bits| (0..count).filter(|symbol| bits >> symbol & 1 == 1).collect())
}

/// Whether the submatrix of `coefficient` has an inverse.
fn minor(rows: &SymbolSet, columns: &SymbolSet, coefficient: impl Fn(usize, usize) -> u8) -> bool {
    is_invertible(
        rows.iter()
            .map(|row| columns.iter().map(|column| coefficient(row, column)).collect())
            .collect(),
    )
}

/// Whether every square submatrix has an inverse.
fn is_mds(data: usize, redundant: usize, coefficient: impl Fn(usize, usize) -> u8) -> bool {
    subsets(redundant).all(|rows| {
        subsets(data)
            .filter(|columns| columns.len() == rows.len())
            .all(|columns| minor(&rows, &columns, &coefficient))
    })
}

/// Whether each wanted symbol, as `coefficient` combines the sources, is what it should be for
/// whatever data: compared as combinations of the data, not for sample data.
fn gives_the_wanted(
    code: &Code,
    sources: &[usize],
    wanted: &[usize],
    coefficient: impl Fn(usize, usize) -> u8,
) -> bool {
    let generators: Vec<_> = sources.iter().map(|&source| generator_row(code, source)).collect();
    wanted.iter().enumerate().all(|(row, &symbol)| {
        let mut sum = vec![0; code.data()];
        for (at, generator) in generators.iter().enumerate() {
            let factor = coefficient(row, at);
            for (sum, &term) in sum.iter_mut().zip(generator) {
                *sum ^= product(factor, term);
            }
        }
        sum == generator_row(code, symbol)
    })
}

/// The plan exists exactly when it can, is right, and lists no more sources than it needs.
fn check(code: &Code, available: &SymbolSet, wanted: &[usize]) {
    let context = format!("{code:?}, available {available:?}, wanted {wanted:?}");
    let copies: SymbolSet = wanted.iter().copied().filter(|&s| available.contains(s)).collect();
    let solves = wanted.iter().any(|&symbol| !available.contains(symbol));
    let Ok(rows) = code.rows(available, wanted) else {
        assert!(solves && available.len() < code.data(), "no plan: {context}");
        return;
    };
    assert!(!solves || available.len() >= code.data(), "impossible plan: {context}");
    assert_eq!(rows.wanted(), wanted, "{context}");

    let sources = rows.sources();
    assert!(sources.is_sorted_by(|left, right| left < right), "{sources:?}: {context}");
    assert!(sources.iter().all(|&source| available.contains(source)), "{sources:?}: {context}");
    let is_used = |at| (0..wanted.len()).any(|row| rows.coefficient(row, at) != 0);
    assert!((0..sources.len()).all(is_used), "R2, {sources:?}: {context}");
    if solves {
        let least: SymbolSet = available.iter().take(code.data()).chain(copies.iter()).collect();
        assert!(least.iter().eq(sources.iter().copied()), "R2, {sources:?}: {context}");
    } else {
        assert!(copies.iter().eq(sources.iter().copied()), "{sources:?}: {context}");
    }
    let coefficient = |row, at| rows.coefficient(row, at);
    assert!(gives_the_wanted(code, sources, wanted, coefficient), "{context}");
}

#[test]
fn every_code_of_up_to_12_symbols_is_mds() {
    for code in codes(12) {
        assert!(is_mds(code.data(), code.redundant(), |i, j| code.coefficient(i, j)), "{code:?}");
    }
}

/// The canary of the test above: one wrong coefficient, the same as its neighbour in row 1, makes a
/// 2 by 2 submatrix of ones over it singular.
#[test]
fn a_matrix_with_one_wrong_coefficient_is_found_not_to_be_mds() {
    for code in codes(9).filter(|code| code.data() >= 2 && code.redundant() >= 2) {
        let wrong = |i, j| code.coefficient(i, if (i, j) == (1, 1) { 0 } else { j });
        assert!(!is_mds(code.data(), code.redundant(), wrong), "{code:?}");
    }
}

#[test]
fn small_submatrices_of_the_codes_of_length_255_are_all_invertible() {
    for (data, redundant) in &LONG[..4] {
        let code = Code::new(*data, *redundant).unwrap();
        for row in 1..*redundant {
            for left in 0..*data {
                for right in 0..left {
                    // Against row 0, which is all ones, and then against every other row.
                    let (a, b) = (code.coefficient(row, left), code.coefficient(row, right));
                    assert_ne!(a, b, "{code:?}, row {row}, columns {left} and {right}");
                    for above in 1..row {
                        let (c, d) =
                            (code.coefficient(above, left), code.coefficient(above, right));
                        assert_ne!(
                            product(a, d),
                            product(b, c),
                            "{code:?} {row} {above} {left} {right}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn random_submatrices_of_the_long_codes_are_invertible() {
    for (data, redundant) in LONG {
        let code = Code::new(data, redundant).unwrap();
        let seed = 0x5eed_0001 + data as u64;
        let mut random = Random(seed);
        for _ in 0..1000 {
            let size = 1 + random.below(data.min(redundant).min(16));
            let rows = random.choose(0..redundant, size);
            let columns = random.choose(0..data, size);
            let invertible = minor(&rows, &columns, |i, j| code.coefficient(i, j));
            assert!(invertible, "{code:?}, seed {seed:#x}: rows {rows:?}, columns {columns:?}");
        }
    }
}

#[test]
fn every_plan_of_every_code_of_up_to_9_symbols_is_right() {
    for code in codes(9) {
        let all: Vec<usize> = (0..code.len()).collect();
        for available in subsets(code.len()) {
            check(&code, &available, &[]);
            check(&code, &available, &all);
            let lost: Vec<usize> =
                all.iter().copied().filter(|&s| !available.contains(s)).collect();
            check(&code, &available, &lost);
            for symbol in 0..code.len() {
                check(&code, &available, &[symbol]);
            }
        }
    }
}

#[test]
fn random_plans_of_the_long_codes_are_right() {
    for (data, redundant) in LONG {
        let code = Code::new(data, redundant).unwrap();
        let seed = 0x5eed_0002 + data as u64;
        let mut random = Random(seed);
        for round in 0..40 {
            let lost_count = if round % 4 == 0 { redundant } else { random.below(redundant + 2) };
            let lost = random.choose(0..code.len(), lost_count.min(code.len()));
            let available = (0..code.len()).filter(|&symbol| !lost.contains(symbol)).collect();
            let mut wanted: Vec<usize> = lost.iter().take(12).collect();
            wanted.push(random.below(code.len()));
            eprintln!("seed {seed:#x}, round {round}");
            check(&code, &available, &wanted);
        }
    }
}

/// The canary of the two tests above.
#[test]
fn a_plan_with_any_one_coefficient_wrong_is_found_out() {
    let code = Code::new(4, 3).unwrap();
    let available = [1, 3, 4, 6].into_iter().collect();
    let rows = code.rows(&available, &[0, 2, 5, 6]).unwrap();
    for wrong_row in 0..rows.wanted().len() {
        for wrong_at in 0..rows.sources().len() {
            for error in 1..=u8::MAX {
                let coefficient = |row, at| {
                    let error = if (row, at) == (wrong_row, wrong_at) { error } else { 0 };
                    rows.coefficient(row, at) ^ error
                };
                assert!(
                    !gives_the_wanted(&code, rows.sources(), rows.wanted(), coefficient),
                    "{wrong_row}, {wrong_at}, {error:#x}"
                );
            }
        }
    }
}

#[test]
fn one_lost_data_symbol_is_the_plain_xor_of_the_others_and_redundant_symbol_0() {
    for (data, redundant) in [(5, 1), (4, 2), (10, 2), (15, 3)].into_iter().chain(LONG) {
        let code = Code::new(data, redundant).unwrap();
        for lost in 0..data {
            let rows = code.rows(&SymbolSet::first(code.len()).without(lost), &[lost]).unwrap();
            assert!(rows.sources().iter().copied().eq((0..=data).filter(|&s| s != lost)));
            assert!((0..data).all(|at| rows.coefficient(0, at) == 1), "R3: {code:?}, {lost} lost");
        }
    }
}

#[test]
fn a_lost_redundant_symbol_is_its_own_row_when_all_data_is_there() {
    for (data, redundant) in LONG {
        let code = Code::new(data, redundant).unwrap();
        for row in 0..redundant {
            let rows = code.rows(&SymbolSet::first(data), &[data + row]).unwrap();
            assert!(rows.sources().iter().copied().eq(0..data));
            assert!((0..data).all(|at| rows.coefficient(0, at) == code.coefficient(row, at)));
        }
    }
}

#[test]
fn a_symbol_wanted_twice_comes_out_twice() {
    let code = Code::new(4, 2).unwrap();
    check(&code, &[0, 2, 3, 5].into_iter().collect(), &[1, 5, 1, 5, 4]);
}

#[test]
fn a_plan_for_a_symbol_outside_the_code_is_refused() {
    let code = Code::new(4, 2).unwrap();
    let error = code.rows(&SymbolSet::first(6), &[6]).unwrap_err();
    assert_eq!(error.to_string(), "symbol 6 of a code of 6");
    let error = code.rows(&SymbolSet::first(7), &[0]).unwrap_err();
    assert_eq!(error.to_string(), "symbol 6 of a code of 6");
    let error = Code::new(300, 2).unwrap().rows(&SymbolSet::first(256), &[256]).unwrap_err();
    assert!(error.to_string().starts_with("a code of 302 symbols"), "{error}");
}
