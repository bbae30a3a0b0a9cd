//! The bound on what clients have in flight: those who ask for more wait.
//!
//! Writes may take three quarters of it. Those that wait for a drive which hangs leave room for reads of what
//! lies elsewhere.

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
    in_use: Mutex<InUse>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct InUse {
    inside: Usage,
    /// The part of it that changes something.
    changes: Usage,
    is_open: bool,
    /// Threads that wait for room.
    waiting: u32,
}

/// How much of a bound is taken.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    requests: u32,
    sectors: Sectors,
}

impl Usage {
    fn add(&mut self, sectors: Sectors) {
        self.requests += 1;
        self.sectors += sectors;
    }

    fn subtract(&mut self, sectors: Sectors) {
        self.requests -= 1;
        self.sectors = self.sectors - sectors;
    }

    /// Whether one more request of `sectors` stays within a bound; one larger than that goes alone.
    fn has_room(self, sectors: Sectors, bound: Bound) -> bool {
        let fits = self.requests < bound.requests && self.sectors + sectors <= bound.sectors;
        fits || self.requests == 0
    }
}

/// Whether a request changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It does not: a read, or a flush.
    Look,
    /// It does.
    Change,
}

/// A place inside the bound, until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    gate: Arc<Gate>,
    sectors: Sectors,
    kind: Kind,
}

/// Whether someone may be made to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// Waits until there is room.
    MayWait,
    /// Must go on: this thread itself makes the room.
    MustGoOn,
}

impl Gate {
    pub(crate) fn new(bound: Bound) -> Self {
        assert!(bound.requests >= 1);
        Self { bound, in_use: Mutex::default(), changed: Condvar::new() }
    }

    /// Waits for room for a request of `sectors`. One larger than the bound goes alone.
    pub(crate) fn enter(self: &Arc<Self>, sectors: Sectors, kind: Kind, asker: Asker) -> Permit {
        let mut in_use = self.lock();
        while asker == Asker::MayWait && !self.has_room(&in_use, sectors, kind) {
            in_use.waiting += 1;
            in_use = self.changed.wait(in_use).unwrap_or_else(PoisonError::into_inner);
            in_use.waiting -= 1;
        }
        in_use.inside.add(sectors);
        if kind == Kind::Change {
            in_use.changes.add(sectors);
        }
        Permit { gate: Arc::clone(self), sectors, kind }
    }

    /// From now on no thread waits: none is left that would make room.
    pub(crate) fn open(&self) {
        self.lock().is_open = true;
        self.changed.notify_all();
    }

    /// How many requests are inside.
    pub(crate) fn requests(&self) -> u32 {
        self.lock().inside.requests
    }

    fn has_room(&self, in_use: &InUse, sectors: Sectors, kind: Kind) -> bool {
        let Bound { requests, sectors: most } = self.bound;
        let for_changes = Bound {
            requests: (requests * 3 / 4).max(1),
            sectors: Sectors::new(most.get() * 3 / 4),
        };
        let may_change = kind == Kind::Look || in_use.changes.has_room(sectors, for_changes);
        in_use.is_open || (may_change && in_use.inside.has_room(sectors, self.bound))
    }

    fn lock(&self) -> MutexGuard<'_, InUse> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut in_use = self.gate.lock();
        in_use.inside.subtract(self.sectors);
        if self.kind == Kind::Change {
            in_use.changes.subtract(self.sectors);
        }
        let is_awaited = in_use.waiting > 0;
        drop(in_use);
        // To tell takes a call of the system. Not one alone: the one that wakes up may still be too large.
        if is_awaited {
            self.gate.changed.notify_all();
        }
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
                        let permit = gate.enter(Sectors::new(sectors), Kind::Look, Asker::MayWait);
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
        let first = gate.enter(Sectors::new(1), Kind::Look, Asker::MayWait);
        let urgent = gate.enter(Sectors::new(1), Kind::Look, Asker::MustGoOn);
        assert_eq!(gate.requests(), 2);
        std::thread::scope(|scope| {
            let waiting =
                scope.spawn(|| drop(gate.enter(Sectors::new(1), Kind::Look, Asker::MayWait)));
            gate.open();
            waiting.join().unwrap();
        });
        drop((first, urgent));
        assert_eq!(gate.requests(), 0);
    }

    /// Writes that wait for a drive which hangs leave a quarter to reads.
    #[test]
    fn changes_take_three_quarters_and_no_more() {
        // Bounded by requests, and by sectors.
        for sectors in [Sectors::new(1), Sectors::new(10)] {
            let gate = Arc::new(Gate::new(Bound { requests: 8, sectors: Sectors::new(80) }));
            let enter = |kind| gate.enter(sectors, kind, Asker::MayWait);
            let mut changes: Vec<Permit> = (0..6).map(|_| enter(Kind::Change)).collect();
            std::thread::scope(|scope| {
                let seventh = scope.spawn(|| enter(Kind::Change));
                while gate.lock().waiting == 0 {
                    std::thread::yield_now();
                }
                let looks = [enter(Kind::Look), enter(Kind::Look)];
                assert_eq!(gate.requests(), 8);
                drop(looks);
                assert_eq!(gate.requests(), 6, "a change has taken a place of those who look");
                drop(changes.pop());
                drop(seventh.join().unwrap());
            });
            drop(changes);
            assert_eq!(gate.requests(), 0);
        }
    }
}
