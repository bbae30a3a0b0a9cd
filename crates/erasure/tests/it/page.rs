//! The page that fixes the code on disk, and the code, say the same.

use std::ops::Range;

use levelhead_erasure::{Code, Field, Kernel};

use crate::oracle::{Tower, inverse, product};

const PAGE: &str = include_str!("../../../../docs/formats/codeword.md");

/// The lines between the page's heading of test vectors and the end of their block.
fn vectors() -> impl Iterator<Item = &'static str> {
    let (_, after) = PAGE.split_once("## Test vectors").expect("the page has test vectors");
    let (_, block) = after.split_once("```text\n").expect("the vectors are a block");
    let (block, _) = block.split_once("```").expect("the block ends");
    block.lines().filter(|line| !line.is_empty())
}

/// `246+9`.
fn code(text: &str) -> Code {
    let (data, redundant) = text.split_once('+').expect("data+redundant");
    Code::new(data.parse().unwrap(), redundant.parse().unwrap()).unwrap()
}

/// `0..4`.
fn places(text: &str) -> Range<usize> {
    let (start, end) = text.split_once("..").expect("start..end");
    start.parse().unwrap()..end.parse().unwrap()
}

/// Elements 0 and 63 of the redundant symbols when byte `n` of data symbol `j` is `7 j + 5 + 31 n`.
fn long_redundant(code: &Code, kernel: Kernel) -> Vec<[u16; 2]> {
    let symbol = |column: usize| (0..128).map(|n| (7 * column + 5 + 31 * n) as u8).collect();
    let data: Vec<Vec<u8>> = (0..code.data()).map(symbol).collect();
    let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    let mut bytes = vec![[0; 128]; code.redundant()];
    let mut symbols: Vec<&mut [u8]> = bytes.iter_mut().map(|bytes| &mut bytes[..]).collect();
    code.encode(kernel, &data, &mut symbols).unwrap();
    bytes
        .iter()
        .map(|bytes| [0, 63].map(|n| u16::from_le_bytes([bytes[n], bytes[64 + n]])))
        .collect()
}

fn long_hex(elements: impl Iterator<Item = u16>) -> String {
    elements.map(|element| format!("{element:04x}")).collect::<Vec<_>>().join(" ")
}

/// As [`bytes_of`], for a code over the tower field.
fn elements_of(code: &Code, name: &str) -> Vec<String> {
    let (name, range) = name.rsplit_once(' ').expect("a name and places");
    let range = places(range);
    match name.split_once(' ') {
        None if name == "redundant" => Kernel::available()
            .map(|kernel| {
                long_hex(long_redundant(code, kernel)[range.clone()].iter().flatten().copied())
            })
            .collect(),
        Some(("c", row)) => {
            let row = row.parse().unwrap();
            vec![long_hex(range.map(|column| code.element(row, column).unwrap()))]
        }
        None | Some(_) => panic!("a line names c or redundant, not '{name}'"),
    }
}

/// The redundant symbols when data symbol `j` is the one byte `7 j + 5`.
fn redundant(code: &Code, kernel: Kernel) -> Vec<u8> {
    let data: Vec<[u8; 1]> = (0..code.data()).map(|column| [(7 * column + 5) as u8]).collect();
    let data: Vec<&[u8]> = data.iter().map(<[u8; 1]>::as_slice).collect();
    let mut bytes = vec![0; code.redundant()];
    let mut symbols: Vec<&mut [u8]> = bytes.chunks_mut(1).collect();
    code.encode(kernel, &data, &mut symbols).unwrap();
    bytes
}

/// `y_j` as the page defines it.
fn data_point(code: &Code, column: usize) -> u8 {
    let mut subspace = 1;
    while subspace < code.redundant() {
        subspace *= 2;
    }
    let unused = code.redundant()..subspace;
    (subspace..256).chain(unused).nth(column).expect("points do not run out") as u8
}

fn hex(bytes: impl Iterator<Item = u8>) -> String {
    bytes.map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// The bytes that the crate has for what a line names.
fn bytes_of(code: &Code, name: &str) -> Vec<String> {
    let (name, range) = name.rsplit_once(' ').expect("a name and places");
    let range = places(range);
    match name.split_once(' ') {
        None if name == "x" => vec![hex(range.map(|row| row as u8))],
        None if name == "y" => vec![hex(range.map(|column| data_point(code, column)))],
        None if name == "redundant" => Kernel::available()
            .map(|kernel| hex(redundant(code, kernel)[range.clone()].iter().copied()))
            .collect(),
        Some(("c", row)) => {
            let row = row.parse().unwrap();
            vec![hex(range.map(|column| code.coefficient(row, column)))]
        }
        None | Some(_) => panic!("a line names x, y, c or redundant, not '{name}'"),
    }
}

#[test]
fn the_test_vectors_of_the_page_are_what_the_crate_computes() {
    let mut codes = 0;
    let mut current = None;
    for line in vectors() {
        if let Some(text) = line.strip_prefix("code ") {
            current = Some(code(text));
            codes += 1;
            continue;
        }
        let code = current.as_ref().expect("a code comes first");
        let (name, expected) = line.split_once(": ").expect("a name and bytes");
        let computed = match code.field() {
            Field::Bytes => bytes_of(code, name),
            Field::Tower => elements_of(code, name),
        };
        for computed in computed {
            assert_eq!(computed, expected, "{code:?}: {name}");
        }
    }
    assert_eq!(codes, 11);
}

/// The definition of the page for long codes, by other arithmetic than the crate's.
#[test]
fn every_element_over_the_tower_field_is_the_one_the_page_defines() {
    let tower = Tower::new();
    for (data, redundant) in [(1019, 4), (1004, 19), (300, 5), (65_500, 36), (256, 40_000)] {
        let code = Code::new(data, redundant).unwrap();
        let subspace = redundant.next_power_of_two();
        let points = (subspace..65_536).chain(redundant..subspace);
        for (column, y) in points.take(data).enumerate() {
            for row in (0..redundant).step_by(redundant.div_ceil(40)) {
                let expected = tower.quotient(y as u16, (row ^ y) as u16);
                assert_eq!(code.element(row, column), Some(expected), "{code:?} {row} {column}");
            }
        }
    }
}

/// The definition of the page, by other arithmetic than the crate's, against every coefficient of
/// every code of the greatest length. Shorter ones differ in nothing, as the last test shows.
#[test]
fn every_coefficient_is_the_one_the_page_defines() {
    let inverses: Vec<u8> = (0..=u8::MAX).map(inverse).collect();
    for redundant in 1..=255 {
        let code = Code::new(256 - redundant, redundant).unwrap();
        let points = (0..code.data()).map(|column| data_point(&code, column));
        for (column, y) in points.enumerate() {
            for row in 0..redundant {
                let expected = product(y, inverses[row ^ usize::from(y)]);
                assert_eq!(code.coefficient(row, column), expected, "{code:?}, {row}, {column}");
            }
        }
    }
}

/// What the page says follows from the definition.
#[test]
fn shorter_codes_share_coefficients_with_longer_ones() {
    let rows = |data, redundant| {
        let code = Code::new(data, redundant).unwrap();
        move |row, column| code.coefficient(row, column)
    };
    for redundant in 1..=255 {
        let longer = rows(256 - redundant, redundant);
        for data in [1, (256 - redundant).div_ceil(2)] {
            let shorter = rows(data, redundant);
            for column in 0..data {
                assert!((0..redundant).all(|row| longer(row, column) == shorter(row, column)));
            }
        }
    }
    let (most, more, fewer) = (rows(4, 4), rows(4, 3), rows(4, 2));
    for column in 0..4 {
        assert!((0..3).all(|row| most(row, column) == more(row, column)));
        assert_ne!(more(1, column), fewer(1, column));
    }
}
