//! reed-solomon-erasure: a matrix over GF(2^8), by AVX2 in C or in plain Rust, or over GF(2^16), in plain
//! Rust. Which of the two over GF(2^8) is a feature of this program, `rse-avx2`.
//!
//! Its C functions are not mangled, and at least one other crate (rustfs-erasure-codec) has some of
//! the same names: linked together, one of the two silently runs the other's. That is why no other
//! descendant of that C code may become a peer in this program.
//!
//! It keeps the inverse for an erasure pattern, so that its figures for reconstruction are without
//! the inversion of a matrix of all data symbols, which takes it from milliseconds to minutes.

use reed_solomon_erasure::{Field, ReedSolomon, galois_8, galois_16};

use crate::code::{Operation, Shape};
use crate::measure::Coder;
use crate::pool::Codeword;

/// Of the crate.
pub(crate) const VERSION: &str =
    if cfg!(feature = "rse-avx2") { "6.0.0 (simd-accel)" } else { "6.0.0" };

/// Its code paths: fixed when it is compiled.
pub(crate) const PATH: &str = if cfg!(feature = "rse-avx2") {
    "AVX2 for GF(2^8), plain Rust for GF(2^16)"
} else {
    "plain Rust"
};

/// A code of its own; costly to make, so it is made once.
pub(crate) enum Codec {
    Bytes(Box<galois_8::ReedSolomon>),
    Pairs(Box<galois_16::ReedSolomon>),
}

/// One operation.
pub(crate) struct Rse<'a> {
    codec: &'a Codec,
    work: Work,
}

enum Work {
    Encode,
    /// The symbols in the order a codeword hands them out.
    Reconstruct {
        symbols: Vec<usize>,
        lost: Vec<usize>,
    },
    Update {
        column: usize,
    },
    Accumulate,
}

impl Codec {
    pub(crate) fn new(shape: Shape) -> Option<Self> {
        let Shape { data, redundant, .. } = shape;
        if shape.len() <= 256 {
            galois_8::ReedSolomon::new(data, redundant).ok().map(|it| Self::Bytes(it.into()))
        } else {
            galois_16::ReedSolomon::new(data, redundant).ok().map(|it| Self::Pairs(it.into()))
        }
    }
}

impl<'a> Rse<'a> {
    pub(crate) fn new(codec: &'a Codec, shape: Shape, operation: &Operation) -> Self {
        let work = match operation {
            Operation::Encode => Work::Encode,
            Operation::Reconstruct { lost } => {
                let layout = operation.layout(shape);
                let mut symbols = layout.sources;
                symbols.extend(lost);
                Work::Reconstruct { symbols, lost: lost.clone() }
            }
            // Its column 0 overwrites, the others add.
            Operation::Update => Work::Update { column: shape.updated().max(1) },
            Operation::Accumulate => Work::Accumulate,
        };
        Self { codec, work }
    }
}

impl Coder for Rse<'_> {
    fn run(&mut self, codeword: &mut Codeword<'_>) {
        if let Work::Reconstruct { symbols, lost } = &self.work {
            match self.codec {
                Codec::Bytes(codec) => reconstruct(codec, codeword, symbols, lost, |bytes| bytes),
                Codec::Pairs(codec) => {
                    let pairs = |bytes| <[u8]>::as_chunks_mut(bytes).0;
                    reconstruct(codec, codeword, symbols, lost, pairs);
                }
            }
            return;
        }
        let (data, redundant) = codeword.split();
        match self.codec {
            Codec::Bytes(codec) => combine(codec, &self.work, data, redundant),
            Codec::Pairs(codec) => {
                let data: Vec<_> = data.iter().map(|bytes| bytes.as_chunks::<2>().0).collect();
                let mut redundant: Vec<_> =
                    redundant.iter_mut().map(|bytes| bytes.as_chunks_mut::<2>().0).collect();
                combine(codec, &self.work, &data, &mut redundant);
            }
        }
    }
}

/// Everything but reconstruction.
fn combine<F: Field>(
    codec: &ReedSolomon<F>,
    work: &Work,
    data: &[&[F::Elem]],
    redundant: &mut [&mut [F::Elem]],
) {
    match work {
        Work::Encode => codec.encode_sep(data, redundant),
        Work::Update { column } => codec.encode_single_sep(*column, data[0], redundant),
        Work::Accumulate => data
            .iter()
            .enumerate()
            .try_for_each(|(column, bytes)| codec.encode_single_sep(column, bytes, redundant)),
        Work::Reconstruct { .. } => unreachable!("that is the other function"),
    }
    .expect("the shape is that of the code");
}

fn reconstruct<'a, F: Field>(
    codec: &ReedSolomon<F>,
    codeword: &'a mut Codeword<'_>,
    symbols: &[usize],
    lost: &[usize],
    elements: impl Fn(&'a mut [u8]) -> &'a mut [F::Elem],
) where
    F::Elem: 'a,
{
    let mut shards: Vec<Option<&mut [F::Elem]>> = Vec::new();
    shards.resize_with(codec.total_shard_count(), || None);
    let mut places = symbols.to_vec();
    let used = places.len();
    places.extend((0..shards.len()).filter(|at| *at >= used));
    for (place, bytes) in places.into_iter().zip(codeword.all()) {
        shards[place] = Some(elements(bytes));
    }
    let mut shards: Vec<(&mut [F::Elem], bool)> = shards
        .into_iter()
        .enumerate()
        .map(|(symbol, shard)| (shard.expect("every symbol has a buffer"), !lost.contains(&symbol)))
        .collect();
    codec.reconstruct_data(&mut shards).expect("no more are lost than there are redundant");
}
