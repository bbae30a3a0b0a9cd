//! reed-solomon-simd: Leopard, an FFT over GF(2^16), with its own matrix and its own buffers.
//!
//! It copies all data in and we copy what it computed out: its interface has no other way. Nothing
//! of a reconstruction can be made ready for an erasure pattern, so its figures contain all of it.

use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};

use crate::code::{Operation, Shape};
use crate::kernel::SECTOR_SIZE;
use crate::measure::Coder;
use crate::pool::Codeword;

/// Of the crate.
pub(crate) const VERSION: &str = "3.1.0";

/// One operation.
pub(crate) enum RsSimd {
    Encode(ReedSolomonEncoder),
    Reconstruct {
        decoder: ReedSolomonDecoder,
        data: usize,
        /// The symbols it is given, data first.
        sources: Vec<usize>,
        lost: Vec<usize>,
    },
}

/// The path that the crate chooses on this CPU, by the rule in its documentation.
pub(crate) fn path() -> &'static str {
    if is_x86_feature_detected!("avx2") {
        "AVX2"
    } else if is_x86_feature_detected!("ssse3") {
        "SSSE3"
    } else {
        "no SIMD"
    }
}

impl RsSimd {
    /// It has no update and no accumulation.
    pub(crate) fn new(shape: Shape, operation: &Operation) -> Option<Self> {
        let Shape { data, redundant, .. } = shape;
        match operation {
            Operation::Encode => {
                ReedSolomonEncoder::new(data, redundant, SECTOR_SIZE).ok().map(Self::Encode)
            }
            Operation::Reconstruct { lost } => Some(Self::Reconstruct {
                decoder: ReedSolomonDecoder::new(data, redundant, SECTOR_SIZE).ok()?,
                data,
                sources: operation.layout(shape).sources,
                lost: lost.clone(),
            }),
            Operation::Update | Operation::Accumulate => None,
        }
    }
}

impl Coder for RsSimd {
    fn run(&mut self, codeword: &mut Codeword<'_>) {
        let (from, wanted) = codeword.split();
        match self {
            Self::Encode(encoder) => {
                for bytes in from {
                    encoder.add_original_shard(bytes).expect("one for each data symbol");
                }
                let encoded = encoder.encode().expect("all of them");
                for (into, bytes) in wanted.iter_mut().zip(encoded.recovery_iter()) {
                    into.copy_from_slice(bytes);
                }
            }
            Self::Reconstruct { decoder, data, sources, lost } => {
                for (&symbol, bytes) in sources.iter().zip(from) {
                    match symbol.checked_sub(*data) {
                        None => decoder.add_original_shard(symbol, bytes),
                        Some(row) => decoder.add_recovery_shard(row, bytes),
                    }
                    .expect("a symbol of the code, once");
                }
                let decoded = decoder.decode().expect("enough of them");
                for (into, symbol) in wanted.iter_mut().zip(lost) {
                    into.copy_from_slice(decoded.restored_original(*symbol).expect("it was lost"));
                }
            }
        }
    }
}
