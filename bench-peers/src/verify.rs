//! What has to be true before anything is timed.
//!
//! - V1. For GF(2^8) and the same matrix, our redundancy and ISA-L's are equal byte for byte, from
//!   each of our kernels and both of its ways.
//! - V2. Our update and our accumulation are undone by ISA-L's, and the other way round.
//! - V3. Everybody gets back, from a codeword of their own, the data that was lost.

use levelhead_erasure::Kernel;

use crate::code::{Operation, Shape};
use crate::measure::Coder;
use crate::peers::isal::Isal;
use crate::peers::ours::{self, Ours};
use crate::peers::rs_simd::RsSimd;
use crate::peers::rse::{Codec, Rse};
use crate::pool::Pool;

/// A coder for each operation, where there is one.
type Maker<'a> = Box<dyn Fn(&Operation) -> Option<Box<dyn Coder + 'a>> + 'a>;

/// Checks V1 to V3 for one code.
///
/// # Errors
///
/// Which of them does not hold, and for whom.
pub(crate) fn verify(pool: &mut Pool, shape: Shape, rse: &Codec) -> Result<(), String> {
    let makers = makers(shape, rse);
    if shape.len() <= 256 {
        equal_bytes(pool, shape, &makers)?;
        undone(pool, shape)?;
    }
    for (name, make) in &makers {
        for operation in shape.operations() {
            let Operation::Reconstruct { lost } = &operation else { continue };
            let (Some(mut encode), Some(mut reconstruct)) =
                (make(&Operation::Encode), make(&operation))
            else {
                continue;
            };
            run(pool, shape, &Operation::Encode, &mut *encode);
            let before = wanted(pool, shape, &operation);
            scribble(pool, shape, &operation);
            run(pool, shape, &operation, &mut *reconstruct);
            if wanted(pool, shape, &operation) != before {
                return Err(format!("{shape}: {name} does not bring back data {lost:?}"));
            }
        }
    }
    Ok(())
}

/// Everybody, with a name.
fn makers(shape: Shape, rse: &Codec) -> Vec<(String, Maker<'_>)> {
    let mut makers: Vec<(String, Maker<'_>)> = Vec::new();
    for kernel in ours::kernels() {
        let make = move |operation: &Operation| boxed(Ours::new(kernel.into(), shape, operation));
        makers.push((format!("our {}", kernel.name()), Box::new(make)));
    }
    let dot = move |operation: &Operation| boxed(Isal::dot(shape, operation));
    let update = move |operation: &Operation| boxed(Isal::update(shape, operation));
    let simd = move |operation: &Operation| boxed(RsSimd::new(shape, operation));
    let erasure = move |operation: &Operation| boxed(Some(Rse::new(rse, shape, operation)));
    makers.push(("ISA-L ec_encode_data".to_owned(), Box::new(dot)));
    makers.push(("ISA-L ec_encode_data_update".to_owned(), Box::new(update)));
    makers.push(("reed-solomon-simd".to_owned(), Box::new(simd)));
    makers.push(("reed-solomon-erasure".to_owned(), Box::new(erasure)));
    makers
}

fn boxed<'a>(coder: Option<impl Coder + 'a>) -> Option<Box<dyn Coder + 'a>> {
    coder.map(|coder| Box::new(coder) as Box<dyn Coder + 'a>)
}

/// V1.
fn equal_bytes(
    pool: &mut Pool,
    shape: Shape,
    makers: &[(String, Maker<'_>)],
) -> Result<(), String> {
    let encode = Operation::Encode;
    let mut expected: Option<Vec<Vec<u8>>> = None;
    let same_matrix = |name: &str| name.starts_with("our ") || name.starts_with("ISA-L ");
    for (name, make) in makers.iter().filter(|(name, _)| same_matrix(name)) {
        let mut coder = make(&encode).ok_or(format!("{shape}: {name} does not encode"))?;
        scribble(pool, shape, &encode);
        run(pool, shape, &encode, &mut *coder);
        let bytes = wanted(pool, shape, &encode);
        match &expected {
            None => expected = Some(bytes),
            Some(expected) if *expected == bytes => {}
            Some(_) => {
                let first = &makers[0].0;
                return Err(format!("{shape}: the redundancy of {name} is not that of {first}"));
            }
        }
    }
    Ok(())
}

/// V2.
fn undone(pool: &mut Pool, shape: Shape) -> Result<(), String> {
    for operation in [Operation::Update, Operation::Accumulate] {
        let before = wanted(pool, shape, &operation);
        let missing = || format!("{shape}: no peer does {operation}");
        let mut ours = Ours::new(Kernel::best().into(), shape, &operation).ok_or_else(missing)?;
        let mut theirs = Isal::update(shape, &operation).ok_or_else(missing)?;
        run(pool, shape, &operation, &mut ours);
        let between = wanted(pool, shape, &operation);
        run(pool, shape, &operation, &mut theirs);
        if between == before || wanted(pool, shape, &operation) != before {
            return Err(format!("{shape}: ISA-L does not undo our {operation}"));
        }
    }
    Ok(())
}

/// Does it to the first codeword.
fn run(pool: &mut Pool, shape: Shape, operation: &Operation, coder: &mut dyn Coder) {
    coder.run(&mut pool.codewords(&operation.layout(shape))[0]);
}

/// What the first codeword holds where the operation writes.
fn wanted(pool: &mut Pool, shape: Shape, operation: &Operation) -> Vec<Vec<u8>> {
    let mut codewords = pool.codewords(&operation.layout(shape));
    codewords[0].split().1.iter().map(|bytes| bytes.to_vec()).collect()
}

/// Spoils what the first codeword holds where the operation writes.
fn scribble(pool: &mut Pool, shape: Shape, operation: &Operation) {
    let mut codewords = pool.codewords(&operation.layout(shape));
    codewords[0].split().1.iter_mut().for_each(|bytes| bytes.fill(0xa5));
}
