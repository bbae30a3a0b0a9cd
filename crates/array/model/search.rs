//! Search of all states within a bound, breadth first, so that the first trace to a violation is a shortest one.
//!
//! Of a state that was seen only a hash of 128 bits is kept. A collision would hide states; among 10^8 states one is there with a
//! probability of 10^-23.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use crate::spec::Model;
use crate::state::State;
use crate::step::{Step, Violation};
use crate::steps::Next;

/// What a search found.
pub(crate) struct Outcome {
    /// Number of states that were seen.
    pub(crate) states: usize,
    pub(crate) end: End,
}

/// How a search ended.
#[derive(Debug)]
pub(crate) enum End {
    /// All states within the bound were seen; none is a violation.
    All,
    /// The limit on states was reached; none so far is a violation.
    Limit,
    /// A violation.
    Found(Trace),
}

/// A run that ends with a violation.
pub(crate) struct Trace {
    pub(crate) steps: Vec<Step>,
    violation: Violation,
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.steps.iter().enumerate() {
            writeln!(f, "{:4}. {step}", at + 1)?;
        }
        write!(f, "      {}", self.violation)
    }
}

/// The trace's previous step, by its state, and its own.
struct Reached {
    from: u32,
    step: Step,
}

impl Model {
    /// Searches until a violation, the end, or `limit` states.
    pub(crate) fn search(&self, limit: usize) -> Outcome {
        let start = State::new(self);
        let mut seen: HashSet<u128, BuildHasherDefault<Prehashed>> = HashSet::default();
        let mut hash = StateHasher::default();
        seen.insert(hash.of(&start));
        // How each state was reached, in the order in which they were seen; the first one was not.
        let mut reached: Vec<Reached> = Vec::new();
        let mut queue = VecDeque::from([(start, 0_u32)]);
        let mut next = Vec::new();
        while let Some((state, from)) = queue.pop_front() {
            self.next(&state, &mut next);
            for Next { step, state, violation } in next.drain(..) {
                let states = seen.len();
                if let Some(violation) = violation {
                    let steps = steps_to(&reached, from, step);
                    return Outcome { states, end: End::Found(Trace { steps, violation }) };
                }
                if states >= limit {
                    return Outcome { states, end: End::Limit };
                }
                if seen.insert(hash.of(&state)) {
                    reached.push(Reached { from, step });
                    let number = u32::try_from(reached.len()).expect("fewer than 2^32 states");
                    queue.push_back((state, number));
                }
            }
        }
        Outcome { states: seen.len(), end: End::All }
    }
}

/// The steps to state number `from`, and one more.
fn steps_to(reached: &[Reached], mut from: u32, last: Step) -> Vec<Step> {
    let mut steps = vec![last];
    while from > 0 {
        let Reached { from: previous, step } = reached[from as usize - 1];
        steps.push(step);
        from = previous;
    }
    steps.reverse();
    steps
}

/// Collects what a state writes into a hasher, and hashes it eight bytes at a time.
#[derive(Default)]
struct StateHasher(Vec<u8>);

impl StateHasher {
    fn of(&mut self, state: &State) -> u128 {
        self.0.clear();
        state.hash(self);
        // Odd numbers without a pattern: digits of the golden ratio, and of the square root of 2.
        const FACTOR: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
        const START: u128 = 0x6a09_e667_f3bc_c908_b2fb_1366_ea95_7d3e;
        let mut hash = START ^ self.0.len() as u128;
        for chunk in self.0.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            hash = (hash ^ u128::from(u64::from_le_bytes(word))).wrapping_mul(FACTOR);
            hash ^= hash >> 67;
        }
        hash
    }
}

impl Hasher for StateHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn write_u8(&mut self, byte: u8) {
        self.0.push(byte);
    }

    fn finish(&self) -> u64 {
        unreachable!("a state is hashed by `StateHasher::of`")
    }
}

/// Of a number that is a hash already: its lower half.
#[derive(Default)]
struct Prehashed(u64);

impl Hasher for Prehashed {
    fn write(&mut self, _: &[u8]) {
        unreachable!("only hashes of states are in the set")
    }

    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
