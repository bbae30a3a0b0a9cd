//! Encoding and reconstruction against the limit: how fast the same bytes can be read at all.
//!
//! `cargo bench -p bench --bench limit [-- KERNEL.. REDUNDANT,DATA..]`. Rates are bytes of data symbols for a
//! second of this thread's processor time, in GB/s (10^9); each is the median of rounds in which
//! everything takes its turn. `cold` goes through a pool of 256 MiB, so every symbol comes from
//! memory; `hot` does one codeword again and again. Symbols are sectors of 4096 bytes, one after
//! another.

#![forbid(unsafe_code)]

use std::hint::black_box;

use levelhead_erasure::{Code, DecodePlan, Kernel};
use rustix::time::{ClockId, clock_gettime};

const SYMBOL_SIZE: usize = 4096;
const POOL_SIZE: usize = 256 << 20;
const ROUNDS: usize = 7;
/// Data symbols of the hot rounds together.
const HOT_SYMBOLS: usize = 16_384;

/// Redundant and data symbols of the papers' codes and of arrays.
const CODES: [(usize, usize); 12] = [
    (3, 252),
    (4, 251),
    (5, 250),
    (9, 246),
    (4, 1019),
    (7, 1016),
    (9, 1014),
    (19, 1004),
    (1, 5),
    (2, 4),
    (2, 10),
    (3, 15),
];

fn main() {
    let named: Vec<Kernel> = std::env::args().filter_map(|name| name.parse().ok()).collect();
    let kernels = if named.is_empty() { vec![Kernel::best()] } else { named };
    let mut pool = vec![0; POOL_SIZE + SYMBOL_SIZE];
    let pool = aligned(&mut pool);
    for (at, byte) in pool.iter_mut().enumerate() {
        *byte = (at * 31 + at / 4096 * 7) as u8;
    }
    println!(
        "kernel       code       | cold: read encode ratio  e=1  e=2  e=m | hot: read encode | plan us"
    );
    let is_named = |code: &(usize, usize)| {
        let mut names = std::env::args().filter(|name| name.contains(',')).peekable();
        names.peek().is_none() || names.any(|name| name == format!("{},{}", code.0, code.1))
    };
    for kernel in kernels {
        for (redundant, data) in CODES.into_iter().filter(is_named) {
            row(kernel, &Code::new(data, redundant).expect("a code"), pool);
        }
    }
}

fn row(kernel: Kernel, code: &Code, pool: &[u8]) {
    let size = SYMBOL_SIZE;
    let mut out = vec![0; (code.redundant() + 2) * size];
    let out = aligned(&mut out);
    let losses: Vec<Vec<usize>> = [1, 2, code.redundant()]
        .map(|count| (0..count.min(code.redundant())).map(|n| n * 3 % code.data()).collect())
        .to_vec();
    let mut cold = [const { Vec::new() }; 5];
    let mut hot = [const { Vec::new() }; 2];
    let mut setup = Vec::new();
    for _ in 0..ROUNDS {
        let codewords = || pool.chunks_exact(code.data() * size);
        let bytes = codewords().count() * code.data() * size;
        cold[0].push(rate(bytes, || {
            for codeword in codewords() {
                black_box(read(codeword));
            }
        }));
        cold[1].push(rate(bytes, || {
            for codeword in codewords() {
                encode(kernel, code, codeword, out);
            }
        }));
        for (loss, rates) in losses.iter().zip(&mut cold[2..]) {
            let mut plan = None;
            setup.push(seconds(|| plan = Some(code.plan(loss, loss))) * 1e6);
            let plan = plan.expect("made").expect("not too many are lost");
            rates.push(rate(bytes, || {
                for codeword in codewords() {
                    reconstruct(kernel, code, &plan, codeword, out);
                }
            }));
        }
        let codeword = &pool[..code.data() * size];
        let times = HOT_SYMBOLS.div_ceil(code.data());
        let bytes = times * codeword.len();
        encode(kernel, code, codeword, out);
        hot[0].push(rate(bytes, || {
            for _ in 0..times {
                black_box(read(black_box(codeword)));
            }
        }));
        hot[1].push(rate(bytes, || {
            for _ in 0..times {
                encode(kernel, code, black_box(codeword), out);
            }
        }));
    }
    let [limit, encode, one, two, most] = cold.map(median);
    let [hot_limit, hot_encode] = hot.map(median);
    println!(
        "{kernel:12} {:10} | {limit:10.1} {encode:6.1} {:5.2} {one:4.1} {two:4.1} {most:4.1} | {hot_limit:9.1} {hot_encode:6.1} | {:.1}",
        format!("({},{})", code.redundant(), code.data()),
        encode / limit,
        median(setup),
    );
}

/// From the first whole page on, as buffers of sectors are: a vector that lies across two lines of
/// cache takes two loads.
fn aligned(bytes: &mut [u8]) -> &mut [u8] {
    let skipped = bytes.as_ptr().align_offset(SYMBOL_SIZE);
    &mut bytes[skipped..]
}

fn encode(kernel: Kernel, code: &Code, codeword: &[u8], out: &mut [u8]) {
    let data: Vec<&[u8]> = codeword.chunks_exact(SYMBOL_SIZE).collect();
    let mut redundant: Vec<&mut [u8]> =
        out.chunks_exact_mut(SYMBOL_SIZE).take(code.redundant()).collect();
    code.encode(kernel, &data, &mut redundant).expect("the buffers fit");
}

/// As if the codeword's symbols were enough: which bytes are summed does not change the time.
fn reconstruct(kernel: Kernel, code: &Code, plan: &DecodePlan, codeword: &[u8], out: &mut [u8]) {
    let sources: Vec<&[u8]> = plan
        .sources()
        .iter()
        .map(|source| &codeword[source % code.data() * SYMBOL_SIZE..][..SYMBOL_SIZE])
        .collect();
    let mut into: Vec<&mut [u8]> =
        out.chunks_exact_mut(SYMBOL_SIZE).take(plan.wanted().len()).collect();
    plan.run(kernel, &sources, &mut into).expect("the buffers fit");
}

/// Reads all bytes.
fn read(bytes: &[u8]) -> u64 {
    let mut sums = [0_u64; 32];
    for chunk in bytes.as_chunks::<256>().0 {
        for (sum, word) in sums.iter_mut().zip(chunk.as_chunks::<8>().0) {
            *sum ^= u64::from_ne_bytes(*word);
        }
    }
    sums.into_iter().fold(0, |all, sum| all ^ sum)
}

fn rate(bytes: usize, work: impl FnOnce()) -> f64 {
    bytes as f64 / seconds(work) / 1e9
}

/// Processor time of this thread.
fn seconds(work: impl FnOnce()) -> f64 {
    let before = clock_gettime(ClockId::ThreadCPUTime);
    work();
    let after = clock_gettime(ClockId::ThreadCPUTime);
    (after.tv_sec - before.tv_sec) as f64 + (after.tv_nsec - before.tv_nsec) as f64 * 1e-9
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}
