//! Units in memory: as they are on the disk, or as they are going to be.
//!
//! A unit that was changed and is not in its place stays; of the others the ones that were used last stay, the fewer the more were changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use levelhead_units::Lba;

use crate::format::unit::{Head, Kind, Sector};

/// A unit in memory.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    pub(crate) kind: Kind,
    pub(crate) owner: u64,
    pub(crate) bytes: Arc<Sector>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Cache {
    units: BTreeMap<Lba, Cached>,
    /// In the order of their use, by the moment of it.
    order: BTreeMap<u64, Lba>,
    clock: u64,
    /// The most units, if those that were changed are not more.
    most: usize,
}

/// Units that could be read again stay, as many as one operation needs at a time, however many others were changed.
const LEAST: usize = 64;

#[derive(Debug)]
struct Cached {
    unit: Unit,
    used: u64,
    /// Transactions that have it and are not in their places.
    pins: Vec<u64>,
}

impl Cache {
    pub(crate) fn new(most: usize) -> Self {
        Self { units: BTreeMap::new(), order: BTreeMap::new(), clock: 0, most }
    }

    /// The most units, if those that were changed are not more: a quarter of them stays in any case.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// A unit, if it is there.
    pub(crate) fn get(&mut self, lead: Lba) -> Option<&Unit> {
        let cached = self.units.get_mut(&lead)?;
        if cached.pins.is_empty() {
            self.clock += 1;
            self.order.remove(&cached.used);
            cached.used = self.clock;
            self.order.insert(self.clock, lead);
        }
        Some(&cached.unit)
    }

    /// Whether some transaction has changed it, and it is not in its place.
    pub(crate) fn is_pinned(&self, lead: Lba) -> bool {
        self.units.get(&lead).is_some_and(|cached| !cached.pins.is_empty())
    }

    /// Whether it is there.
    pub(crate) fn has(&self, lead: Lba) -> bool {
        self.units.contains_key(&lead)
    }

    /// A unit was read.
    pub(crate) fn insert_read(&mut self, lead: Lba, head: &Head, bytes: Sector) {
        if self.units.contains_key(&lead) {
            return; // It has been changed meanwhile.
        }
        let unit = Unit { kind: head.kind, owner: head.owner, bytes: Arc::new(bytes) };
        self.clock += 1;
        self.units.insert(lead, Cached { unit, used: self.clock, pins: Vec::new() });
        self.order.insert(self.clock, lead);
        self.shrink();
    }

    /// A unit was changed by a transaction, which keeps it here until [`Cache::release`].
    pub(crate) fn insert_changed(&mut self, lead: Lba, unit: Unit, transaction: u64) {
        match self.units.get_mut(&lead) {
            Some(cached) => {
                if cached.pins.is_empty() {
                    self.order.remove(&cached.used);
                }
                cached.unit = unit;
                if !cached.pins.contains(&transaction) {
                    cached.pins.push(transaction);
                }
            }
            None => {
                let pins = vec![transaction];
                self.units.insert(lead, Cached { unit, used: 0, pins });
            }
        }
    }

    /// A unit has this seal in a record: if it has not changed again, its bytes are kept once for both.
    pub(crate) fn share(&mut self, lead: Lba, before: &Arc<Sector>, sealed: &Arc<Sector>) {
        if let Some(cached) = self.units.get_mut(&lead)
            && Arc::ptr_eq(&cached.unit.bytes, before)
        {
            cached.unit.bytes = Arc::clone(sealed);
        }
    }

    /// A transaction that has changed a unit keeps it no longer.
    pub(crate) fn release(&mut self, lead: Lba, transaction: u64) {
        let Some(cached) = self.units.get_mut(&lead) else { return };
        let before = cached.pins.len();
        cached.pins.retain(|&pin| pin != transaction);
        if cached.pins.is_empty() && before > 0 {
            self.clock += 1;
            cached.used = self.clock;
            self.order.insert(self.clock, lead);
            self.shrink();
        }
    }

    /// A unit is there no more.
    pub(crate) fn remove(&mut self, lead: Lba) {
        if let Some(cached) = self.units.remove(&lead)
            && cached.pins.is_empty()
        {
            self.order.remove(&cached.used);
        }
    }

    /// How many units are there.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.units.len()
    }

    fn shrink(&mut self) {
        let changed = self.units.len() - self.order.len();
        let least = (self.most / 4).max(LEAST.min(self.most));
        let most = self.most.saturating_sub(changed).max(least);
        while self.order.len() > most {
            let (_, lead) = self.order.pop_first().expect("there are some");
            self.units.remove(&lead);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Head {
        Head { kind: Kind::Node, filesystem: 0, lba: Lba::ZERO, generation: 0, owner: 0 }
    }

    fn changed(byte: u8) -> Unit {
        Unit { kind: Kind::Node, owner: 0, bytes: Arc::new([byte; 4096]) }
    }

    #[test]
    fn what_was_used_last_stays_and_what_was_changed_stays_in_any_case() {
        let mut cache = Cache::new(2);
        let at = Lba::new;
        cache.insert_changed(at(9), changed(9), 1);
        for lba in 0..3 {
            cache.insert_read(at(lba), &head(), [lba as u8; 4096]);
            cache.get(at(0));
        }
        assert!(cache.has(at(0)) && !cache.has(at(1)) && cache.has(at(2)) && cache.has(at(9)));
        cache.insert_read(at(9), &head(), [1; 4096]);
        assert_eq!(cache.get(at(9)).unwrap().bytes[0], 9, "what was read is older");
        cache.insert_changed(at(9), changed(10), 2);
        cache.release(at(9), 1);
        assert_eq!(cache.len(), 3);
        cache.release(at(9), 2);
        assert_eq!((cache.len(), cache.get(at(9)).unwrap().bytes[0]), (2, 10));
    }
}
