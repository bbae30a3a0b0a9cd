//! Who is connected, and who has to leave for whom. Decides and nothing more.
//!
//! ```text
//!   accepted ---> silent ---(says something)---> talking ---(agrees on an export)---> agreed
//!                   |                               |                                   |
//!                   +------> dropped, for a newer one of the same stage                left
//! ```
//!
//! # Invariants
//!
//! - RO1. At most [`HANDSHAKES_MAX`] clients are silent, and as many are talking. One more drops the oldest of
//!   them from the origin that has most of them there: who opens ever more connections drops its own.
//! - RO2. A client that has agreed is dropped for nobody. At most `agreed_max` have; one more is turned away.
//! - RO3. A client that says nothing takes the place of none that has said something.

use std::collections::BTreeMap;

/// The most clients in each of the two stages of a handshake.
pub(super) const HANDSHAKES_MAX: usize = 128;

/// Clients that were dropped and have yet to end, before no other one is accepted.
const DROPPED_MAX: usize = 64;

/// How far a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It has said nothing.
    Silent,
    /// It has begun its handshake.
    Talking,
    /// It has chosen an export.
    Agreed,
    /// It has to end.
    Dropped,
}

/// See the module. `O` is an origin: a network, or a process of this machine.
#[derive(Debug)]
pub(super) struct Roll<O> {
    agreed_max: usize,
    /// By number, the oldest first.
    clients: BTreeMap<u64, (O, Stage)>,
}

impl<O: Copy + Ord> Roll<O> {
    pub(super) fn new(agreed_max: usize) -> Self {
        Self { agreed_max, clients: BTreeMap::new() }
    }

    /// How many clients are in this stage.
    pub(super) fn count(&self, stage: Stage) -> usize {
        self.clients.values().filter(|(_, its)| *its == stage).count()
    }

    /// Whether there are too many that have yet to end for one more to be accepted.
    pub(super) fn is_crowded(&self) -> bool {
        self.count(Stage::Dropped) >= DROPPED_MAX
    }

    /// A client with a number higher than all others has come.
    pub(super) fn enter(&mut self, number: u64, origin: O) {
        self.clients.insert(number, (origin, Stage::Silent));
    }

    /// The client that has to leave this stage, if it is too full (RO1).
    pub(super) fn surplus(&self, stage: Stage) -> Option<u64> {
        if self.count(stage) <= HANDSHAKES_MAX {
            return None;
        }
        let mut origins: BTreeMap<O, (usize, u64)> = BTreeMap::new();
        for (&number, (origin, _)) in self.clients.iter().filter(|(_, its)| its.1 == stage) {
            origins.entry(*origin).or_insert((0, number)).0 += 1;
        }
        let most = |&(count, oldest): &(usize, u64)| (count, std::cmp::Reverse(oldest));
        origins.into_values().max_by_key(most).map(|(_, oldest)| oldest)
    }

    /// The client has said something.
    pub(super) fn speak(&mut self, number: u64) {
        self.go_on(number, Stage::Silent, Stage::Talking);
    }

    /// The client wants an export. Whether it may have it (RO2).
    pub(super) fn agree(&mut self, number: u64) -> bool {
        self.count(Stage::Agreed) < self.agreed_max
            && self.go_on(number, Stage::Talking, Stage::Agreed)
    }

    /// The client has to end.
    pub(super) fn drop(&mut self, number: u64) {
        if let Some((_, stage)) = self.clients.get_mut(&number) {
            *stage = Stage::Dropped;
        }
    }

    /// The client has ended.
    pub(super) fn leave(&mut self, number: u64) {
        self.clients.remove(&number);
    }

    fn go_on(&mut self, number: u64, from: Stage, to: Stage) -> bool {
        match self.clients.get_mut(&number) {
            Some((_, stage)) if *stage == from => {
                *stage = to;
                true
            }
            Some(_) | None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(roll: &mut Roll<u8>, number: u64, origin: u8) -> Option<u64> {
        roll.enter(number, origin);
        let surplus = roll.surplus(Stage::Silent);
        surplus.iter().for_each(|&number| roll.drop(number));
        surplus
    }

    fn speak(roll: &mut Roll<u8>, number: u64) -> Option<u64> {
        roll.speak(number);
        let surplus = roll.surplus(Stage::Talking);
        surplus.iter().for_each(|&number| roll.drop(number));
        surplus
    }

    #[test]
    fn flood_of_one_origin_drops_its_own_and_no_other() {
        let mut roll = Roll::new(1);
        let others = [7, 8, 8];
        for (number, origin) in (0..).zip(others) {
            assert_eq!(enter(&mut roll, number, origin), None);
        }
        let mut dropped = Vec::new();
        for number in 3..10_000 {
            dropped.extend(enter(&mut roll, number, 1));
            if let Some(&last) = dropped.last() {
                roll.leave(last);
            }
        }
        assert!(dropped.iter().copied().eq(3..10_000 - 125), "the oldest first");
        assert_eq!(roll.count(Stage::Silent), HANDSHAKES_MAX);
        assert!((0..3).all(|number| roll.clients.contains_key(&number)));
    }

    #[test]
    fn silent_clients_take_no_place_of_those_that_talk_and_these_none_of_the_agreed() {
        let mut roll = Roll::new(1);
        for number in 0..200 {
            assert_eq!(enter(&mut roll, number, 0), None);
            let dropped = speak(&mut roll, number);
            assert_eq!(dropped, (number > 128).then(|| number - 128), "the first has agreed");
            assert_eq!(roll.agree(number), number == 0, "RO2");
        }
        for number in 200..400 {
            assert_eq!(enter(&mut roll, number, 0).is_some(), number >= 328);
        }
        assert_eq!(roll.count(Stage::Talking), HANDSHAKES_MAX, "RO3");
        assert!(roll.is_crowded());
        (0..400).for_each(|number| roll.leave(number));
        assert!(roll.clients.is_empty());
    }

    #[test]
    fn dropped_client_comes_no_further() {
        let mut roll = Roll::new(9);
        roll.enter(0, ());
        roll.drop(0);
        roll.speak(0);
        assert!(!roll.agree(0));
        assert_eq!(roll.count(Stage::Dropped), 1);
    }
}
