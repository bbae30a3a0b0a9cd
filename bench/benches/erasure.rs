//! Throughput of the erasure codes that arrays and files use, by kernel.
//!
//! Bytes a second are bytes of data symbols: for `encode` and `reconstruct` all the data of a
//! codeword, for `update` the one symbol that changed. Symbols are sectors of 4096 bytes. Also shown
//! is what each call allocates: nothing, but for `plan`.

#![forbid(unsafe_code)]

use std::fmt;

use divan::counter::BytesCount;
use divan::{AllocProfiler, Bencher};
use levelhead_erasure::{Code, Kernel, Rows, SymbolSet, combine};

/// Bytes of a symbol.
const SYMBOL_SIZE: usize = 4096;

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

/// A code by its numbers of data and redundant symbols.
#[derive(Clone, Copy)]
struct Shape(usize, usize);

/// RAID-5 of six drives, RAID-6 of six drives, eRAID that survives two losses with six drives' data
/// twice over, and the longest code with nine redundant symbols of the papers.
const SHAPES: [Shape; 4] = [Shape(5, 1), Shape(4, 2), Shape(10, 2), Shape(246, 9)];

/// A code and the kernel to run it with.
#[derive(Clone, Copy)]
struct Case(Shape, Kernel);

impl Shape {
    fn code(self) -> Code {
        Code::new(self.0, self.1).expect("the field is large enough")
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.0, self.1)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, self.1)
    }
}

fn cases() -> impl Iterator<Item = Case> {
    SHAPES.into_iter().flat_map(|shape| Kernel::available().map(move |kernel| Case(shape, kernel)))
}

/// Symbols of some bytes, no two alike.
fn symbols(count: usize) -> Vec<Vec<u8>> {
    let byte = |symbol: usize, at: usize| (symbol * 151 + at * 31 + at / 256) as u8;
    (0..count).map(|symbol| (0..SYMBOL_SIZE).map(|at| byte(symbol, at)).collect()).collect()
}

fn slices(symbols: &[Vec<u8>]) -> Vec<&[u8]> {
    symbols.iter().map(Vec::as_slice).collect()
}

fn slices_mut(symbols: &mut [Vec<u8>]) -> Vec<&mut [u8]> {
    symbols.iter_mut().map(Vec::as_mut_slice).collect()
}

/// The worst loss a code survives, of data alone as far as there is any.
fn plan(shape: Shape) -> Rows {
    let code = shape.code();
    let lost: Vec<usize> = (0..shape.1).collect();
    let available = (shape.1..code.len()).collect::<SymbolSet>();
    code.rows(&available, &lost).expect("as many are lost as the code survives")
}

#[divan::bench(args = cases())]
fn encode(bencher: Bencher<'_, '_>, Case(shape, kernel): Case) {
    let (data, mut redundant) = (symbols(shape.0), symbols(shape.1));
    let (data, mut redundant) = (slices(&data), slices_mut(&mut redundant));
    let code = shape.code();
    bencher
        .counter(BytesCount::new(shape.0 * SYMBOL_SIZE))
        .bench_local(|| code.encode(kernel, divan::black_box(&data), &mut redundant));
}

#[divan::bench(args = cases())]
fn update(bencher: Bencher<'_, '_>, Case(shape, kernel): Case) {
    let (difference, mut redundant) = (symbols(1), symbols(shape.1));
    let mut redundant = slices_mut(&mut redundant);
    let (code, column) = (shape.code(), shape.0 - 1);
    bencher.counter(BytesCount::new(SYMBOL_SIZE)).bench_local(|| {
        code.update(kernel, column, divan::black_box(&difference[0]), &mut redundant)
    });
}

#[divan::bench(args = cases())]
fn reconstruct(bencher: Bencher<'_, '_>, Case(shape, kernel): Case) {
    let rows = plan(shape);
    let (sources, mut into) = (symbols(rows.sources().len()), symbols(rows.wanted().len()));
    let (sources, mut into) = (slices(&sources), slices_mut(&mut into));
    bencher
        .counter(BytesCount::new(shape.0 * SYMBOL_SIZE))
        .bench_local(|| combine(kernel, &rows, divan::black_box(&sources), &mut into));
}

/// What a new pattern of losses costs before the first byte.
#[divan::bench(name = "plan", args = SHAPES)]
fn plan_of_the_worst_loss(bencher: Bencher<'_, '_>, shape: Shape) {
    bencher.bench_local(|| plan(divan::black_box(shape)));
}
