//! Drawing levels from a law: Walker's alias method, exactly.
//!
//! ```text
//!   slot, 6 bits     64 slots, each of the same probability; slot i is shared by level i - 31 and one other, its alias
//!   8 bits           below the first 8 bits of the slot's threshold: its own level; above: the alias
//!                    equal, one time in 256: 56 more bits decide
//! ```
//!
//! Shares are whole multiples of 2^-64 and are dealt out to the slots without rounding, so that the law is the one that was
//! given.
//!
//! The bits come from eight xoshiro256++ generators side by side, which a frame's stream seeds, and the rare 56 from that
//! stream itself, in the order of the levels: the same levels whatever the vectors. Each step gives 64 bytes for 32
//! levels: byte `k` has the slot of level `k`, byte `32 + k` what is compared.

use levelhead_stats::Rng;

/// Slots, and levels there may be.
pub(super) const SLOTS: usize = 64;

/// The level of the first slot.
pub(super) const LEVEL_MIN: i8 = -31;

/// Levels of a step.
pub(super) const STEP: usize = 32;

/// Generators side by side.
pub(super) const LANES: usize = 8;

/// What a byte of a slot's number has.
pub(super) const SLOT_MASK: u8 = SLOTS as u8 - 1;

const _: () = assert!(LANES * 8 == 2 * STEP);

/// The slots of a law.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    /// Of each slot, the share of its own level, times 2^64.
    thresholds: [u64; SLOTS],
    /// The first 8 bits of each.
    pub(super) firsts: [u8; SLOTS],
    /// The other level of each.
    pub(super) aliases: [i8; SLOTS],
    /// By slot and 8 bits to compare, in this order: the level, or [`UNDECIDED`].
    pub(super) table: Box<[i8; SLOTS << 8]>,
}

/// No level.
pub(super) const UNDECIDED: i8 = i8::MIN;

/// The states of the generators: word by word of the state, generator by generator.
pub(super) type States = [[u64; LANES]; 4];

impl Slots {
    /// The slots for levels from [`LEVEL_MIN`] on with these shares, times 2^64.
    ///
    /// Panics unless they add up to 2^64.
    pub(super) fn new(shares: &[u128; SLOTS]) -> Self {
        let whole = 1_u128 << 64;
        assert_eq!(shares.iter().sum::<u128>(), whole, "shares of a law");
        // What a level has not been given yet; a slot has room for `whole`.
        let mut left = shares.map(|share| share * SLOTS as u128);
        let mut slots = Self {
            thresholds: [0; SLOTS],
            firsts: [0; SLOTS],
            aliases: std::array::from_fn(level),
            table: Box::new([UNDECIDED; SLOTS << 8]),
        };
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..SLOTS).partition(|at| left[*at] < whole);
        while let Some(at) = small.pop() {
            let other = *large.last().expect("what is left is a whole slot on average");
            slots.thresholds[at] = left[at] as u64;
            slots.aliases[at] = level(other);
            left[other] -= whole - left[at];
            if left[other] < whole {
                large.pop();
                small.push(other);
            }
        }
        // The others are whole: their alias is their own level.
        assert!(large.iter().all(|at| left[*at] == whole), "a whole slot each");
        for at in 0..SLOTS {
            slots.firsts[at] = (slots.thresholds[at] >> 56) as u8;
            for compared in 0..=u8::MAX {
                let decided = match compared.cmp(&slots.firsts[at]) {
                    std::cmp::Ordering::Less => level(at),
                    std::cmp::Ordering::Greater => slots.aliases[at],
                    std::cmp::Ordering::Equal => UNDECIDED,
                };
                slots.table[at << 8 | usize::from(compared)] = decided;
            }
        }
        slots
    }

    /// The level, where the first 8 bits are equal.
    #[cold]
    pub(super) fn decide(&self, slot: usize, rng: &mut Rng) -> i8 {
        let rest = self.thresholds[slot] << 8 >> 8;
        if rng.bits() >> 8 < rest { level(slot) } else { self.aliases[slot] }
    }

    /// Draws 32 levels at a time.
    pub(super) fn draw(&self, rng: &mut Rng, steps: &mut [[i8; STEP]]) {
        let mut states = seed(rng);
        for levels in steps {
            let words = next(&mut states);
            let mut bytes = [0; 2 * STEP];
            for (into, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
                *into = word.to_le_bytes();
            }
            let mut places = [0_u16; STEP];
            for at in 0..STEP {
                places[at] = u16::from(bytes[at] & SLOT_MASK) << 8 | u16::from(bytes[STEP + at]);
            }
            let mut undecided = false;
            for (level, place) in levels.iter_mut().zip(places) {
                *level = self.table[usize::from(place)];
                undecided |= *level == UNDECIDED;
            }
            if undecided {
                for (level, place) in levels.iter_mut().zip(places) {
                    if *level == UNDECIDED {
                        *level = self.decide(usize::from(place >> 8), rng);
                    }
                }
            }
        }
    }
}

/// A slot's own level.
fn level(slot: usize) -> i8 {
    slot as i8 + LEVEL_MIN
}

/// New generators.
pub(super) fn seed(rng: &mut Rng) -> States {
    std::array::from_fn(|_| std::array::from_fn(|_| rng.bits()))
}

/// The next word of each generator: `Rng::bits`, eight times.
#[inline(always)]
fn next(states: &mut States) -> [u64; LANES] {
    let [a, b, c, d] = states;
    let mut words = [0; LANES];
    for k in 0..LANES {
        words[k] = a[k].wrapping_add(d[k]).rotate_left(23).wrapping_add(a[k]);
        let t = b[k] << 17;
        c[k] ^= a[k];
        d[k] ^= b[k];
        b[k] ^= c[k];
        a[k] ^= d[k];
        c[k] ^= t;
        d[k] = d[k].rotate_left(45);
    }
    words
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;

    use super::*;

    /// By adding up what the slots give each level.
    fn shares_of(slots: &Slots) -> [u128; SLOTS] {
        let mut sums = [0; SLOTS];
        for at in 0..SLOTS {
            sums[at] += u128::from(slots.thresholds[at]);
            sums[(slots.aliases[at] - LEVEL_MIN) as usize] +=
                (1 << 64) - u128::from(slots.thresholds[at]);
        }
        sums.map(|sum| sum / SLOTS as u128)
    }

    #[test]
    fn slots_give_every_level_its_share_exactly() {
        let mut rng = Streams::new(1).stream("draw");
        for _ in 0..50 {
            let mut shares: [u128; SLOTS] =
                std::array::from_fn(|_| u128::from(rng.bits() >> (6 + rng.below(40))));
            shares[17] = (1 << 64) - (shares.iter().sum::<u128>() - shares[17]);
            let slots = Slots::new(&shares);
            assert_eq!(shares_of(&slots), shares);
            // The canary: one unit in one slot is noticed.
            let mut wrong = slots.clone();
            wrong.thresholds[5] ^= 1 << 20;
            assert_ne!(shares_of(&wrong), shares);
        }
        let mut one = [0; SLOTS];
        one[40] = 1 << 64;
        assert_eq!(shares_of(&Slots::new(&one)), one);
    }

    #[test]
    fn generators_are_those_of_the_streams() {
        // Two streams with the same state, side by side: a frame's stream seeds words of states, so make one by hand.
        let mut states: States = std::array::from_fn(|word| [word as u64 + 1; LANES]);
        let first: Vec<u64> = (0..4).map(|_| next(&mut states)[3]).collect();
        assert_eq!(first, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }
}
