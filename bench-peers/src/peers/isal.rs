//! Intel ISA-L, with our matrices: it takes any.
//!
//! It has two ways. The dot product computes all rows from all sources at once; the update adds one
//! source to all rows, and done source by source over zeros it is an encoder too, often the faster.

use std::ffi::c_int;

use erasure_isa_l_sys as ffi;
use levelhead_erasure::SymbolSet;

use super::ours;
use crate::code::{Operation, Shape};
use crate::measure::Coder;
use crate::pool::{Codeword, SECTOR_SIZE};

/// The version that the binding crate bundles, and the crate.
pub(crate) const VERSION: &str = "2.32.0 (erasure-isa-l-sys 1.1.0)";

/// Bytes of its tables for one coefficient.
const TABLE_SIZE: usize = 32;

/// One operation.
pub(crate) struct Isal {
    tables: Vec<u8>,
    columns: usize,
    way: Way,
    sources: Vec<*mut u8>,
    wanted: Vec<*mut u8>,
}

#[derive(Clone, Copy)]
enum Way {
    /// `ec_encode_data`.
    Dot,
    /// `ec_encode_data_update` for each source, over zeros.
    SourceBySource,
    /// `ec_encode_data_update` for each source, over what there is.
    Accumulate,
    /// `ec_encode_data_update` once.
    Update { column: usize },
}

/// The path that the library chose on this CPU: by the form of its tables, and the CPU.
pub(crate) fn path() -> &'static str {
    let tables = tables(&[2], 1);
    // A nibble table begins with the multiples 0, 1, 2, .. of the coefficient; a matrix does not.
    let is_nibbles = tables[..4] == [0, 2, 4, 6];
    match (is_nibbles, is_x86_feature_detected!("avx512bw"), is_x86_feature_detected!("avx2")) {
        (false, true, _) => "AVX-512+GFNI",
        (false, false, _) => "AVX2+GFNI",
        (true, true, _) => "AVX-512",
        (true, false, true) => "AVX2",
        (true, false, false) => "SSE or AVX",
    }
}

impl Isal {
    /// By `ec_encode_data`. It has no update by difference and no accumulation that way.
    pub(crate) fn dot(shape: Shape, operation: &Operation) -> Option<Self> {
        match operation {
            Operation::Encode | Operation::Reconstruct { .. } => {
                Self::new(shape, operation, Way::Dot)
            }
            Operation::Update | Operation::Accumulate => None,
        }
    }

    /// By `ec_encode_data_update`.
    pub(crate) fn update(shape: Shape, operation: &Operation) -> Option<Self> {
        let way = match operation {
            Operation::Encode | Operation::Reconstruct { .. } => Way::SourceBySource,
            Operation::Update => Way::Update { column: shape.updated() },
            Operation::Accumulate => Way::Accumulate,
        };
        Self::new(shape, operation, way)
    }

    fn new(shape: Shape, operation: &Operation, way: Way) -> Option<Self> {
        if shape.len() > 256 {
            return None;
        }
        let code = ours::code(shape)?;
        let (data, redundant) = (shape.data, shape.redundant);
        let matrix: Vec<u8> = match operation {
            Operation::Encode | Operation::Update | Operation::Accumulate => (0..redundant)
                .flat_map(|row| (0..data).map(move |column| (row, column)))
                .map(|(row, column)| code.coefficient(row, column))
                .collect(),
            Operation::Reconstruct { lost } => {
                let sources = operation.layout(shape).sources;
                let available: SymbolSet = sources.iter().copied().collect();
                let rows = code.rows(&available, lost).expect("as many survive as there are data");
                assert_eq!(rows.sources(), sources, "the plan reads what it is given");
                (0..lost.len())
                    .flat_map(|row| (0..data).map(move |source| (row, source)))
                    .map(|(row, source)| rows.coefficient(row, source))
                    .collect()
            }
        };
        let (sources, wanted) = (Vec::new(), Vec::new());
        Some(Self { tables: tables(&matrix, data), columns: data, way, sources, wanted })
    }
}

impl Coder for Isal {
    fn run(&mut self, codeword: &mut Codeword<'_>) {
        let (sources, wanted) = codeword.split();
        self.wanted.clear();
        self.wanted.extend(wanted.iter_mut().map(|bytes| bytes.as_mut_ptr()));
        let len = count(SECTOR_SIZE);
        let (columns, rows) = (count(self.columns), count(self.wanted.len()));
        let tables = self.tables.as_mut_ptr();
        let into = self.wanted.as_mut_ptr();
        let update = |column: usize, bytes: &[u8]| {
            assert_eq!(bytes.len(), SECTOR_SIZE);
            // SAFETY: the tables are of so many columns and rows, the column is one of them, and
            // every buffer is a sector; the source is only read.
            unsafe {
                let source = bytes.as_ptr().cast_mut();
                ffi::ec_encode_data_update(len, columns, rows, count(column), tables, source, into);
            }
        };
        match self.way {
            Way::Dot => {
                assert_eq!(sources.len(), self.columns);
                self.sources.clear();
                self.sources.extend(sources.iter().map(|bytes| bytes.as_ptr().cast_mut()));
                // SAFETY: as above, with one source for each column.
                unsafe {
                    let from = self.sources.as_mut_ptr();
                    ffi::ec_encode_data(len, columns, rows, tables, from, into);
                }
            }
            Way::SourceBySource => {
                wanted.iter_mut().for_each(|bytes| bytes.fill(0));
                sources.iter().enumerate().for_each(|(column, bytes)| update(column, bytes));
            }
            Way::Accumulate => {
                sources.iter().enumerate().for_each(|(column, bytes)| update(column, bytes));
            }
            Way::Update { column } => update(column, sources[0]),
        }
    }
}

/// The library's own form of a matrix of so many columns.
fn tables(matrix: &[u8], columns: usize) -> Vec<u8> {
    let mut matrix = matrix.to_vec();
    let mut tables = vec![0; matrix.len() * TABLE_SIZE];
    let rows = matrix.len() / columns;
    assert_eq!(rows * columns, matrix.len(), "whole rows");
    // SAFETY: the matrix has so many coefficients, and the tables room for all of them.
    unsafe {
        ffi::ec_init_tables(count(columns), count(rows), matrix.as_mut_ptr(), tables.as_mut_ptr());
    }
    tables
}

fn count(count: usize) -> c_int {
    c_int::try_from(count).expect("counts are small")
}
