//! Intel ISA-L, with our matrices: it takes any.
//!
//! It has two ways. The dot product computes all rows from all sources at once; the update adds one
//! source to all rows, and done source by source over zeros it is an encoder too, often the faster.

use levelhead_erasure::SymbolSet;

use super::ours;
use crate::code::{Operation, Shape};
use crate::kernel::IsalMatrix;
use crate::measure::Coder;
use crate::pool::Codeword;

/// The version that the binding crate bundles, and the crate.
pub(crate) const VERSION: &str = "2.32.0 (erasure-isa-l-sys 1.1.0)";

/// One operation.
pub(crate) struct Isal {
    matrix: IsalMatrix,
    way: Way,
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
    let matrix = IsalMatrix::new(&[2], 1);
    // A nibble table begins with the multiples 0, 1, 2, .. of the coefficient; a matrix does not.
    let is_nibbles = matrix.tables()[..4] == [0, 2, 4, 6];
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
        Some(Self { matrix: IsalMatrix::new(&matrix, data), way })
    }
}

impl Coder for Isal {
    fn run(&mut self, codeword: &mut Codeword<'_>) {
        let (sources, wanted) = codeword.split();
        match self.way {
            Way::Dot => self.matrix.multiply(sources, wanted),
            Way::SourceBySource => {
                wanted.iter_mut().for_each(|bytes| bytes.fill(0));
                self.matrix.add(0, sources, wanted);
            }
            Way::Accumulate => self.matrix.add(0, sources, wanted),
            Way::Update { column } => self.matrix.add(column, sources, wanted),
        }
    }
}
