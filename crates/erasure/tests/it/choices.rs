//! Every choice gives the bytes that the naive kernel gives.

use levelhead_erasure::{Choice, Choices, Class, Code, Kernel, Order, Stores, Width};

use crate::oracle::Random;

/// Buffers of one size in one piece of memory, each `skew` bytes past a multiple of 64, with bytes between
/// them that are to stay as they are.
struct Buffers {
    bytes: Vec<u8>,
    first: usize,
    size: usize,
    count: usize,
}

impl Buffers {
    fn new(random: &mut Random, count: usize, size: usize, skew: usize) -> Self {
        let bytes = random.bytes(count * Self::stride(size) + 128);
        let first = (64 - bytes.as_ptr().addr() % 64) % 64 + skew;
        Self { bytes, first, size, count }
    }

    fn stride(size: usize) -> usize {
        size.next_multiple_of(64) + 64
    }

    fn slices(&self) -> Vec<&[u8]> {
        let parts = self.bytes[self.first..].chunks_exact(Self::stride(self.size));
        parts.take(self.count).map(|part| &part[..self.size]).collect()
    }

    fn slices_mut(&mut self) -> Vec<&mut [u8]> {
        let parts = self.bytes[self.first..].chunks_exact_mut(Self::stride(self.size));
        parts.take(self.count).map(|part| &mut part[..self.size]).collect()
    }
}

/// Every candidate of every kernel that is here, and some choices that no list has.
fn choices(class: Class) -> Vec<Choice> {
    let mut choices = Vec::new();
    for kernel in Kernel::available() {
        choices.extend(Choice::candidates(kernel, class));
        for (order, ahead, stores) in [
            (Order::InTurn, usize::MAX, Stores::Past),
            (Order::InTurn, 1, Stores::Past),
            (Order::Together, usize::MAX, Stores::Past),
            (Order::Together, usize::MAX, Stores::Cached),
        ] {
            let width = Width::Wide;
            choices.push(Choice { kernel, order, width, ahead, stores });
        }
    }
    choices
}

/// What all redundancy is in the end, with the bytes between the buffers: encoded, and then the data
/// from `from` on added once more.
fn redundancy(choice: Choice, code: &Code, data: &Buffers, from: usize, skew: usize) -> Vec<u8> {
    let mut into = Buffers::new(&mut Random(0x5eed_0020), code.redundant(), data.size, skew);
    // Wherever the piece of memory lies, the same is between the buffers.
    into.bytes.fill(0xaa);
    code.encode(choice, &data.slices(), &mut into.slices_mut()).unwrap();
    code.accumulate(choice, from, &data.slices()[from..], &mut into.slices_mut()).unwrap();
    into.bytes[into.first - skew..][..into.count * Buffers::stride(into.size)].to_vec()
}

fn check(class: Class, data: usize, redundant: usize, sizes: &[usize]) {
    let code = Code::new(data, redundant).unwrap();
    let mut random = Random(0x5eed_0021 + data as u64);
    for &size in sizes {
        for skew in [0, 32, 7] {
            let buffers = Buffers::new(&mut random, data, size, skew);
            let naive = Choice::of(Kernel::Naive, class);
            let expected = redundancy(naive, &code, &buffers, data / 2, skew);
            let lost: Vec<usize> =
                (0..redundant.min(data)).map(|n| n * data / redundant.min(data)).collect();
            let plan = code.plan(&lost, &lost).unwrap();
            let mut parity = Buffers::new(&mut random, redundant, size, skew);
            code.encode(naive, &buffers.slices(), &mut parity.slices_mut()).unwrap();
            let symbols = [buffers.slices(), parity.slices()].concat();
            let sources: Vec<&[u8]> = plan.sources().iter().map(|&n| symbols[n]).collect();
            for choice in choices(class) {
                let context = || format!("{choice}: {code:?}, {size} bytes, {skew} past");
                assert!(
                    redundancy(choice, &code, &buffers, data / 2, skew) == expected,
                    "{}",
                    context()
                );
                let mut into = Buffers::new(&mut random, lost.len(), size, skew);
                plan.run(choice, &sources, &mut into.slices_mut()).unwrap();
                let rebuilt =
                    into.slices().into_iter().zip(&lost).all(|(into, &n)| into == symbols[n]);
                assert!(rebuilt, "{}", context());
            }
        }
    }
}

#[test]
fn every_choice_for_few_sources_gives_the_bytes_of_the_naive_kernel() {
    check(Class::One, 1, 1, &[0, 1, 64, 4096]);
    check(Class::One, 13, 1, &[1000, 4096]);
    check(Class::Few, 1, 6, &[100, 4096]);
    check(Class::Few, 4, 2, &[200, 4096, 4096 + 72]);
    check(Class::Few, 15, 3, &[63, 4096]);
    check(Class::Few, 6, 7, &[1000]);
}

#[test]
fn every_choice_for_many_sources_gives_the_bytes_of_the_naive_kernel() {
    check(Class::Many, 17, 1, &[1, 4096]);
    check(Class::Many, 37, 3, &[200, 4096 + 72]);
    check(Class::Many, 66, 5, &[1100]);
}

#[test]
fn every_choice_for_many_by_many_gives_the_bytes_of_the_naive_kernel() {
    check(Class::ManyByMany, 23, 9, &[4096 + 200]);
    check(Class::ManyByMany, 70, 12, &[1000]);
    check(Class::ManyByMany, 20, 40, &[300]);
}

#[test]
fn every_choice_for_a_transform_over_several_runs_gives_the_bytes_of_the_naive_kernel() {
    check(Class::Transform, 220, 30, &[2048 + 640 + 64]);
    check(Class::Transform, 220, 16, &[4096 + 1152]);
    check(Class::Transform, 60, 8, &[4096 + 32]);
    check(Class::Transform, 280, 19, &[2048 + 768]);
    check(Class::Transform, 300, 4, &[1152]);
}

#[test]
fn a_transform_whose_multipliers_leave_the_smaller_field_gives_the_bytes_of_the_naive_kernel() {
    // Points up to 1023 leave it in the first two layers alone, further ones in the third as well.
    check(Class::Transform, 1010, 9, &[256]);
    check(Class::Transform, 1200, 6, &[128]);
    check(Class::Transform, 1200, 4, &[128]);
}

#[test]
fn cached_choices_differ_in_nothing_but_the_stores() {
    for choice in Class::ALL.into_iter().flat_map(choices) {
        let cached = Choice { stores: Stores::Cached, ..choice };
        assert_eq!(Choices::from(choice).cached(), cached.into());
    }
}

#[test]
fn every_choice_over_the_tower_field_gives_the_bytes_of_the_naive_kernel() {
    check(Class::Tower, 256, 2, &[128, 1280]);
    check(Class::Tower, 260, 9, &[1152]);
    check(Class::Tower, 250, 19, &[384]);
}

#[test]
fn every_candidate_is_listed_once_and_the_unmeasured_one_first() {
    for class in Class::ALL {
        for kernel in Kernel::ALL {
            let candidates = Choice::candidates(kernel, class);
            assert_eq!(candidates[0], Choice::of(kernel, class));
            for (n, choice) in candidates.iter().enumerate() {
                assert!(!candidates[..n].contains(choice), "{choice}");
            }
        }
    }
}
