//! What each operation of each vector means, for every pair of bytes that it may meet.

use super::vector::Vector;
use super::{Kernel, portable};
use crate::decoder::{LEVEL_MAX, scaled};

/// Runs an operation on bytes, vector by vector.
fn run<V: Vector>(operands: &[&[i8]], operation: impl Fn(&[V]) -> V) -> Vec<i8> {
    let mut results = vec![0; operands[0].len()];
    for at in (0..results.len()).step_by(V::SIZE) {
        assert!(operands.iter().all(|bytes| bytes.len() >= at + V::SIZE));
        // SAFETY: the vector's bytes are there, and `check` is called where the processor has the instructions.
        unsafe {
            let vectors: Vec<V> =
                operands.iter().map(|bytes| V::load(bytes.as_ptr().add(at))).collect();
            operation(&vectors).store(results.as_mut_ptr().add(at));
        }
    }
    results
}

/// All pairs of these bytes, filled up with zeroes to whole lines.
fn pairs(first: &(impl Iterator<Item = i8> + Clone)) -> (Vec<i8>, Vec<i8>) {
    let all = first.clone().flat_map(|a| first.clone().map(move |b| (a, b)));
    let (mut a, mut b): (Vec<i8>, Vec<i8>) = all.unzip();
    let size = a.len().next_multiple_of(64);
    a.resize(size, 0);
    b.resize(size, 0);
    (a, b)
}

fn by_pairs(a: &[i8], b: &[i8], meaning: impl Fn(i8, i8) -> i8) -> Vec<i8> {
    a.iter().zip(b).map(|(a, b)| meaning(*a, *b)).collect()
}

/// Only where the processor has the instructions of `V`.
fn check<V: Vector>() {
    let cut = |level: i16| level.clamp(-i16::from(LEVEL_MAX), i16::from(LEVEL_MAX)) as i8;
    let (a, b) = pairs(&(-LEVEL_MAX..=LEVEL_MAX));
    let two = [&a[..], &b];
    // SAFETY: here and below, the processor has the instructions.
    unsafe {
        let seen = run::<V>(&two, |v| v[0].plus(v[1]));
        assert_eq!(seen, by_pairs(&a, &b, |a, b| cut(i16::from(a) + i16::from(b))), "plus");
        let seen = run::<V>(&two, |v| v[0].minus(v[1]));
        assert_eq!(seen, by_pairs(&a, &b, |a, b| cut(i16::from(a) - i16::from(b))), "minus");
        let seen = run::<V>(&two, |v| v[0].xor(v[1]));
        assert_eq!(seen, by_pairs(&a, &b, |a, b| a ^ b), "xor");
        let seen = run::<V>(&two, |v| v[0].size());
        assert_eq!(seen, by_pairs(&a, &b, |a, _| a.abs()), "size");
        // What decides is the sign alone, of any byte: a product of signs may be -128.
        let (a, sign) = pairs(&(i8::MIN..=i8::MAX));
        let level: Vec<i8> = a.iter().map(|a| (*a).max(-LEVEL_MAX)).collect();
        let seen = run::<V>(&[&level, &sign], |v| v[0].with_sign(v[1]));
        let meaning = |level: i8, sign: i8| if sign < 0 { -level } else { level };
        assert_eq!(seen, by_pairs(&level, &sign, meaning), "with_sign");
        let (low, high) = (V::splat(-3), V::splat(5));
        let seen = run::<V>(&[&a, &sign], |v| v[0].pick_equal(v[1], low, high));
        assert_eq!(seen, by_pairs(&a, &sign, |a, b| if a == b { -3 } else { 5 }), "pick_equal");
        let seen = run::<V>(&[&a, &sign], |v| v[0].or_where(high, v[1]));
        let meaning = |a: i8, mask: i8| if mask < 0 { 5 } else { a };
        assert_eq!(seen, by_pairs(&a, &sign, meaning), "or_where");
        let (a, b) = pairs(&(0..=LEVEL_MAX));
        let two = [&a[..], &b];
        let seen = run::<V>(&two, |v| v[0].min(v[1]));
        assert_eq!(seen, by_pairs(&a, &b, i8::min), "min");
        let seen = run::<V>(&two, |v| v[0].max(v[1]));
        assert_eq!(seen, by_pairs(&a, &b, i8::max), "max");
        let seen = run::<V>(&two, |v| v[0].scaled());
        assert_eq!(seen, by_pairs(&a, &b, |a, _| scaled(a)), "scaled");
        let bytes: Vec<i8> = (i8::MIN..=i8::MAX).flat_map(|a| [a, -1, 0, !a]).collect();
        for at in (0..bytes.len()).step_by(V::SIZE) {
            let bytes = &bytes[at..][..V::SIZE];
            let bits = V::load(bytes.as_ptr()).negatives();
            let meant = bytes.iter().rev().fold(0, |bits, a| bits << 1 | u64::from(*a < 0));
            assert_eq!(bits, meant, "negatives");
        }
    }
}

#[test]
fn operations_on_vectors_mean_what_they_say() {
    check::<portable::Array>();
    #[cfg(target_arch = "x86_64")]
    if Kernel::Avx2.is_available() {
        check::<super::avx2::Ymm>();
    }
    #[cfg(target_arch = "x86_64")]
    if Kernel::Avx512.is_available() {
        check::<super::avx512::Zmm>();
    }
}

/// The canary: minus without the cut is noticed.
#[test]
fn a_difference_that_is_not_cut_is_noticed() {
    let (a, b) = pairs(&(-LEVEL_MAX..=LEVEL_MAX));
    let cut = by_pairs(&a, &b, |a, b| a.saturating_sub(b).max(-LEVEL_MAX));
    assert_ne!(by_pairs(&a, &b, i8::saturating_sub), cut);
}
