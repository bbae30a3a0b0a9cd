//! Random shapes, erasures, corruptions and plain nonsense: no call panics, and what comes back without
//! an error is right.

#![no_main]

use levelhead_erasure::{Code, DecodePlan, Field, Kernel, UseError};
use libfuzzer_sys::fuzz_target;

/// Numbers read from the input, 0 once it has ended.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn number(&mut self) -> usize {
        usize::from(u16::from_le_bytes([self.byte(), self.byte()]))
    }

    fn list(&mut self, count_max: usize, limit: usize) -> Vec<usize> {
        let count = usize::from(self.byte()) % (count_max + 1);
        (0..count).map(|_| self.number() % limit).collect()
    }
}

fn slices(buffers: &[Vec<u8>]) -> Vec<&[u8]> {
    buffers.iter().map(Vec::as_slice).collect()
}

fn slices_mut(buffers: &mut [Vec<u8>]) -> Vec<&mut [u8]> {
    buffers.iter_mut().map(Vec::as_mut_slice).collect()
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let limit = [20, 300, 1100, 70_000][usize::from(input.byte() % 4)];
    let (data, redundant) = (input.number() % limit, input.number() % limit.min(80));
    let Ok(code) = Code::new(data, redundant) else { return };
    let kernel = Kernel::ALL[usize::from(input.byte()) % Kernel::ALL.len()];
    nonsense(&code, kernel, &mut input);
    if code.len() > 1100 {
        return;
    }

    let size = match code.field() {
        Field::Bytes => usize::from(input.byte()) % 200,
        Field::Tower => usize::from(input.byte()) % 3 * 128,
    };
    let mut seed = input.byte() | 1;
    let mut random = || {
        seed = seed.wrapping_mul(141).wrapping_add(97);
        seed
    };
    let mut right: Vec<Vec<u8>> =
        (0..data).map(|_| (0..size).map(|_| random()).collect()).collect();
    let mut sums = vec![vec![0; size]; redundant];
    let cut = input.number() % (data + 1);
    let (early, late) = right.split_at(cut);
    code.accumulate(kernel, cut, &slices(late), &mut slices_mut(&mut sums)).expect("it fits");
    code.accumulate(kernel, 0, &slices(early), &mut slices_mut(&mut sums)).expect("it fits");
    let mut encoded = vec![vec![0x55; size]; redundant];
    code.encode(Kernel::Portable, &slices(&right), &mut slices_mut(&mut encoded)).expect("it fits");
    assert!(sums == encoded);
    right.extend(encoded);

    let erased = input.list(redundant + 2, code.len());
    let wanted = input.list(4, code.len());
    if let Ok(plan) = code.plan(&erased, &wanted) {
        reconstruct(&plan, kernel, &right, size);
    }
    let mut symbols = right.clone();
    for &symbol in &erased {
        symbols[symbol].fill(0x33);
    }
    let mut wrong = Vec::new();
    for symbol in input.list(redundant / 2 + 2, code.len()) {
        if size > 0 && !erased.contains(&symbol) {
            symbols[symbol][input.number() % size] ^= input.byte();
        }
    }
    for symbol in (0..code.len()).filter(|symbol| !erased.contains(symbol)) {
        if symbols[symbol] != right[symbol] {
            wrong.push(symbol);
        }
    }
    let before = symbols.clone();
    match code.repair(kernel, &mut slices_mut(&mut symbols), &erased) {
        Ok(found) if 2 * wrong.len() + erased.len() <= redundant => {
            assert_eq!(found, wrong);
            assert!(symbols == right);
        }
        Ok(_) => {}
        Err(error) => {
            assert!(before == symbols);
            let is_hopeless = 2 * wrong.len() + erased.len() > redundant;
            assert!(is_hopeless || !matches!(error, UseError::NotLocated { .. }));
        }
    }
});

fn reconstruct(plan: &DecodePlan, kernel: Kernel, right: &[Vec<u8>], size: usize) {
    let sources: Vec<&[u8]> = plan.sources().iter().map(|&source| &right[source][..]).collect();
    let mut into = vec![vec![0x55; size]; plan.wanted().len()];
    plan.run(kernel, &sources, &mut slices_mut(&mut into)).expect("it fits");
    for (into, &symbol) in into.iter().zip(plan.wanted()) {
        assert!(*into == right[symbol]);
    }
}

/// Buffers and positions as they come.
fn nonsense(code: &Code, kernel: Kernel, input: &mut Input<'_>) {
    let sizes = input.list(6, 300);
    let buffers: Vec<Vec<u8>> = sizes.iter().map(|&size| vec![1; size]).collect();
    let mut outs: Vec<Vec<u8>> = input.list(6, 300).iter().map(|&size| vec![2; size]).collect();
    let column = input.number();
    let _ = code.encode(kernel, &slices(&buffers), &mut slices_mut(&mut outs));
    let _ = code.accumulate(kernel, column, &slices(&buffers), &mut slices_mut(&mut outs));
    let _ = code.update(kernel, usize::MAX - column, &[0; 128], &mut slices_mut(&mut outs));
    let _ = code.element(column, input.number());
    let (erased, wanted) = (input.list(5, usize::MAX), input.list(5, usize::MAX));
    let _ = code.locate(kernel, &slices(&buffers), &erased);
    if let Ok(plan) = code.plan(&erased, &wanted) {
        let _ = plan.run(kernel, &slices(&buffers), &mut slices_mut(&mut outs));
    }
}
