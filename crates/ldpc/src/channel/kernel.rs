//! Drawing by vectors of 32 bytes; [`Slots::draw`] is the definition, and what runs elsewhere.
//!
//! Looking up one of 64 bytes is four lookups among 16 each and three choices.

#![allow(unsafe_code)]

use levelhead_stats::Rng;

use super::draw::{STEP, Slots};

/// Draws 32 levels at a time, by the fastest way of this machine. All ways give the same levels.
pub(super) fn draw(slots: &Slots, rng: &mut Rng, steps: &mut [[i8; STEP]]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        unsafe { avx2::draw(slots, rng, steps) };
        return;
    }
    slots.draw(rng, steps);
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm_loadu_si128, _mm256_add_epi8, _mm256_add_epi64, _mm256_and_si256,
        _mm256_blendv_epi8, _mm256_broadcastsi128_si256, _mm256_cmpeq_epi8, _mm256_loadu_si256,
        _mm256_max_epu8, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8,
        _mm256_shuffle_epi8, _mm256_slli_epi16, _mm256_slli_epi64, _mm256_srli_epi64,
        _mm256_storeu_si256, _mm256_xor_si256,
    };

    use levelhead_stats::Rng;

    use super::super::draw::{LEVEL_MIN, SLOT_MASK, SLOTS, STEP, Slots, States, seed};

    /// Four of the generators.
    #[derive(Clone, Copy)]
    struct Half([__m256i; 4]);

    impl Half {
        #[target_feature(enable = "avx2")]
        fn new(states: &States, first: usize) -> Self {
            Self(states.each_ref().map(|lanes| {
                let four: &[u64; 4] = lanes[first..].first_chunk().expect("four generators");
                // SAFETY: 32 bytes, without any demand on alignment.
                unsafe { _mm256_loadu_si256(four.as_ptr().cast()) }
            }))
        }

        #[target_feature(enable = "avx2")]
        #[inline]
        fn next(&mut self) -> __m256i {
            let [a, b, c, d] = self.0;
            let sum = _mm256_add_epi64(a, d);
            let turned =
                _mm256_or_si256(_mm256_slli_epi64::<23>(sum), _mm256_srli_epi64::<41>(sum));
            let word = _mm256_add_epi64(turned, a);
            let t = _mm256_slli_epi64::<17>(b);
            let (c, d) = (_mm256_xor_si256(c, a), _mm256_xor_si256(d, b));
            let (b, a) = (_mm256_xor_si256(b, c), _mm256_xor_si256(a, d));
            let c = _mm256_xor_si256(c, t);
            let d = _mm256_or_si256(_mm256_slli_epi64::<45>(d), _mm256_srli_epi64::<19>(d));
            self.0 = [a, b, c, d];
            word
        }
    }

    /// 64 bytes to be looked up.
    #[derive(Clone, Copy)]
    struct Table([__m256i; 4]);

    impl Table {
        #[target_feature(enable = "avx2")]
        fn new(bytes: &[u8; SLOTS]) -> Self {
            let (quarters, _) = bytes.as_chunks::<16>();
            Self(std::array::from_fn(|at| {
                // SAFETY: 16 bytes, without any demand on alignment.
                _mm256_broadcastsi128_si256(unsafe {
                    _mm_loadu_si128(quarters[at].as_ptr().cast())
                })
            }))
        }

        /// Where `slots` is below 64. The highest bit of a byte of `bit_4` and `bit_5` is that bit of the slot.
        #[target_feature(enable = "avx2")]
        #[inline]
        fn look_up(&self, slots: __m256i, bit_4: __m256i, bit_5: __m256i) -> __m256i {
            let [first, second, third, fourth] = self.0;
            let low = _mm256_blendv_epi8(
                _mm256_shuffle_epi8(first, slots),
                _mm256_shuffle_epi8(second, slots),
                bit_4,
            );
            let high = _mm256_blendv_epi8(
                _mm256_shuffle_epi8(third, slots),
                _mm256_shuffle_epi8(fourth, slots),
                bit_4,
            );
            _mm256_blendv_epi8(low, high, bit_5)
        }
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn draw(slots: &Slots, rng: &mut Rng, steps: &mut [[i8; STEP]]) {
        let states = seed(rng);
        let (mut low, mut high) = (Half::new(&states, 0), Half::new(&states, 4));
        let firsts = Table::new(&slots.firsts);
        let aliases = Table::new(&slots.aliases.map(i8::cast_unsigned));
        let mask = _mm256_set1_epi8(SLOT_MASK.cast_signed());
        for levels in steps {
            let slot = _mm256_and_si256(low.next(), mask);
            let compared = high.next();
            let (bit_4, bit_5) = (_mm256_slli_epi16::<3>(slot), _mm256_slli_epi16::<2>(slot));
            let first = firsts.look_up(slot, bit_4, bit_5);
            let alias = aliases.look_up(slot, bit_4, bit_5);
            let own = _mm256_add_epi8(slot, _mm256_set1_epi8(LEVEL_MIN));
            // Where the greater one of both is `compared`, it is not below.
            let not_below = _mm256_cmpeq_epi8(_mm256_max_epu8(compared, first), compared);
            let level = _mm256_blendv_epi8(own, alias, not_below);
            // SAFETY: 32 bytes, without any demand on alignment.
            unsafe { _mm256_storeu_si256(levels.as_mut_ptr().cast(), level) };
            let mut equal = _mm256_movemask_epi8(_mm256_cmpeq_epi8(compared, first)) as u32;
            if equal != 0 {
                let mut numbers = [0_u8; STEP];
                // SAFETY: as above.
                unsafe { _mm256_storeu_si256(numbers.as_mut_ptr().cast(), slot) };
                while equal != 0 {
                    let at = equal.trailing_zeros() as usize;
                    levels[at] = slots.decide(usize::from(numbers[at]), rng);
                    equal &= equal - 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;

    use super::*;

    #[test]
    fn vectors_draw_what_the_definition_draws() {
        let mut shares = [1_u128 << 57; 64];
        shares[3] = 0;
        shares[63] = 77;
        shares[30] += (1 << 64) - shares.iter().sum::<u128>();
        let slots = Slots::new(&shares);
        let rng = Streams::new(4).stream("draw");
        let (mut here, mut there) = (rng.clone(), rng);
        for _ in 0..20 {
            let (mut seen, mut meant) = ([[0; STEP]; 101], [[0; STEP]; 101]);
            draw(&slots, &mut here, &mut seen);
            slots.draw(&mut there, &mut meant);
            assert_eq!(seen, meant);
        }
        assert_eq!(here.bits(), there.bits());
    }
}
