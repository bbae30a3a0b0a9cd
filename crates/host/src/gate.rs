//! The bound on what clients have in flight: those who ask for more wait.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use levelhead_units::Sectors;

/// What may be in flight at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Requests.
    pub requests: u32,
    /// Sectors of their bytes.
    pub sectors: Sectors,
}

impl Bound {
    /// 256 requests, 64 MiB.
    pub const DEFAULT: Self = Self { requests: 256, sectors: Sectors::new(16_384) };
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Gate {
    bound: Bound,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    requests: u32,
    sectors: Sectors,
    is_open: bool,
}

/// A place inside the bound, until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    gate: Arc<Gate>,
    sectors: Sectors,
}

/// Whether someone may be made to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Waits until there is room.
    Waits,
    /// Must go on: whoever makes room is this thread itself.
    None,
}

impl Gate {
    pub(crate) fn new(bound: Bound) -> Self {
        assert!(bound.requests >= 1);
        Self { bound, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Waits for room for a request with so many sectors. One larger than the bound goes alone.
    pub(crate) fn enter(self: &Arc<Self>, sectors: Sectors, patience: Patience) -> Permit {
        let mut state = self.lock();
        while patience == Patience::Waits && !self.has_room(&state, sectors) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.requests += 1;
        state.sectors += sectors;
        Permit { gate: Arc::clone(self), sectors }
    }

    /// From now on nobody waits: there is nobody left who would make room.
    pub(crate) fn open(&self) {
        self.lock().is_open = true;
        self.changed.notify_all();
    }

    /// How many requests are inside.
    pub(crate) fn requests(&self) -> u32 {
        self.lock().requests
    }

    fn has_room(&self, state: &State, sectors: Sectors) -> bool {
        let fits =
            state.requests < self.bound.requests && state.sectors + sectors <= self.bound.sectors;
        fits || state.requests == 0 || state.is_open
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        state.requests -= 1;
        state.sectors = state.sectors - self.sectors;
        drop(state);
        // Not one alone: the one that wakes up may still be too large.
        self.gate.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_inside_than_the_bound_allows() {
        let bound = Bound { requests: 4, sectors: Sectors::new(10) };
        let gate = Arc::new(Gate::new(bound));
        let inside = Mutex::new((0, 0));
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (gate, inside) = (&gate, &inside);
                scope.spawn(move || {
                    for round in 0..500 {
                        // Up to 12: more than the bound.
                        let sectors = (thread + round) % 13;
                        let permit = gate.enter(Sectors::new(sectors), Patience::Waits);
                        let (requests, sum) = {
                            let mut inside = inside.lock().unwrap();
                            *inside = (inside.0 + 1, inside.1 + sectors);
                            *inside
                        };
                        assert!(requests <= 4, "{requests} requests");
                        assert!(sum <= 10 || requests == 1, "{requests} requests, {sum} sectors");
                        let mut inside = inside.lock().unwrap();
                        *inside = (inside.0 - 1, inside.1 - sectors);
                        drop(permit);
                    }
                });
            }
        });
        assert_eq!(gate.requests(), 0);
    }

    #[test]
    fn open_gate_makes_nobody_wait() {
        let gate = Arc::new(Gate::new(Bound { requests: 1, sectors: Sectors::new(1) }));
        let first = gate.enter(Sectors::new(1), Patience::Waits);
        let urgent = gate.enter(Sectors::new(1), Patience::None);
        assert_eq!(gate.requests(), 2);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| drop(gate.enter(Sectors::new(1), Patience::Waits)));
            gate.open();
            waiting.join().unwrap();
        });
        drop((first, urgent));
        assert_eq!(gate.requests(), 0);
    }
}
