//! Coding extents whose redundancy does not go with their data, and which of them are due for what comes next.
//!
//! There may be as many as sectors in the journal, and the machine asks after each event: so what is due has sets of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use levelhead_units::{Extent, Lba};

use super::SubId;
use super::job::JobId;
use super::reencode::Way;
use crate::format::extent::CodingExtent;

/// A coding extent whose redundancy is not what it should be.
#[derive(Debug)]
pub(super) struct StaleExtent {
    pub(super) extent: CodingExtent,
    /// The file that has changed it; unknown of one that a crash has left.
    pub(super) inode: Option<u64>,
    /// The oldest record that must stay for it.
    pub(super) record: u64,
    /// The newest one that has changed it.
    pub(super) changed: u64,
    pub(super) state: Placing,
    /// What lies in its places; nothing while they are written, and where a crash has left them in between.
    pub(super) in_place: Option<InPlace>,
}

/// Whole codewords that lie in the places of a coding extent, whatever the journal has for these.
#[derive(Clone, Debug)]
pub(super) struct InPlace {
    /// How they are laid out: the extent may have grown since.
    pub(super) extent: CodingExtent,
    /// The checksums of those sectors for which metadata has others by now.
    pub(super) sums: BTreeMap<Lba, Option<u32>>,
}

#[derive(Debug)]
pub(super) enum Placing {
    Waiting,
    Reading {
        job: JobId,
        as_of: u64,
        /// How the redundancy is computed, once that is decided.
        way: Option<Way>,
    },
    Writing {
        subs: BTreeSet<SubId>,
        as_of: u64,
        sums: Vec<(Lba, u32)>,
        /// What lies there when they have ended.
        brings: InPlace,
    },
    /// A flush comes next.
    Written {
        as_of: u64,
        sums: Vec<(Lba, u32)>,
    },
    Noting {
        job: JobId,
        as_of: u64,
        sums: Vec<(Lba, u32)>,
    },
    /// In the transaction of this name.
    Noted {
        in_record: u64,
        as_of: u64,
    },
}

impl StaleExtent {
    fn new(extent: CodingExtent, record: u64) -> Self {
        let in_place = Some(InPlace { extent, sums: BTreeMap::new() });
        Self { extent, inode: None, record, changed: record, state: Placing::Waiting, in_place }
    }

    /// One that a crash has left.
    pub(super) fn found(extent: CodingExtent, record: u64) -> Self {
        Self { in_place: None, ..Self::new(extent, record) }
    }

    /// Whether its redundancy is in its place, and its checksums are known, at least in memory.
    pub(super) fn is_noted(&self) -> bool {
        matches!(self.state, Placing::Noted { as_of, .. } if as_of == self.changed)
    }

    /// Whether what lies in its places is as metadata had it before the journal.
    pub(super) fn is_untouched(&self) -> bool {
        self.in_place.as_ref().is_some_and(|in_place| in_place.sums.is_empty())
    }

    /// Whether its places are being written.
    fn is_being_written(&self) -> bool {
        matches!(self.state, Placing::Writing { .. })
    }

    /// It was changed again.
    fn change(&mut self, extent: CodingExtent, inode: u64, record: u64) {
        (self.extent, self.inode, self.changed) = (extent, Some(inode), record);
    }

    /// It has grown over the redundancy that it had.
    fn grow_from(&mut self, before: InPlace) {
        match &mut self.in_place {
            Some(known) if known.extent == before.extent => {
                before.sums.into_iter().for_each(|(lba, sum)| {
                    known.sums.entry(lba).or_insert(sum);
                });
            }
            // It is laid out as it was before it grew the first time, or being written.
            Some(_) | None => {}
        }
    }
}

/// What may begin to come to its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    /// The newest record that may be the oldest one that needs it.
    pub(super) to: u64,
    /// The newest durable record: none after it has changed it.
    pub(super) durable: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct StaleExtents {
    all: BTreeMap<Lba, StaleExtent>,
    by_record: BTreeSet<(u64, Lba)>,
    waiting: BTreeSet<Lba>,
    /// The same by the oldest record that must stay for them.
    waiting_by_record: BTreeSet<(u64, Lba)>,
    written: BTreeSet<Lba>,
    /// By the record that has noted them.
    noted: BTreeSet<(u64, Lba)>,
    writings: u64,
}

impl StaleExtents {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// How many there are that have not been noted.
    pub(super) fn not_noted(&self) -> usize {
        let noted = self.noted.iter().filter(|(_, group)| self.all[group].is_noted());
        self.all.len() - noted.count()
    }

    pub(super) fn has(&self, group: Lba) -> bool {
        self.all.contains_key(&group)
    }

    pub(super) fn get(&self, group: Lba) -> Option<&StaleExtent> {
        self.all.get(&group)
    }

    /// Those that begin in an extent.
    pub(super) fn inside(&self, extent: Extent) -> Vec<Lba> {
        self.all.range(extent.lba..extent.end()).map(|(&group, _)| group).collect()
    }

    pub(super) fn insert(&mut self, stale: StaleExtent) {
        let group = stale.extent.lba;
        self.remove(group);
        self.all.insert(group, stale);
        self.note(group, true);
    }

    pub(super) fn remove(&mut self, group: Lba) -> Option<StaleExtent> {
        self.note(group, false);
        self.all.remove(&group)
    }

    /// A record changes a coding extent of a file, which may have grown from what it was before.
    pub(super) fn change(
        &mut self,
        extent: CodingExtent,
        before: Option<InPlace>,
        inode: u64,
        record: u64,
    ) {
        if !self.has(extent.lba) {
            let known = before.as_ref().map_or(extent, |before| before.extent);
            self.insert(StaleExtent::new(known, record));
        }
        self.edit(extent.lba, |stale| {
            before.into_iter().for_each(|before| stale.grow_from(before));
            stale.change(extent, inode, record);
        });
    }

    /// The layout of whole codewords that lie in a coding extent's places; nothing if these are not whole.
    pub(super) fn lies_as(&self, extent: &CodingExtent) -> Option<CodingExtent> {
        match self.get(extent.lba) {
            Some(stale) => stale.in_place.as_ref().map(|in_place| in_place.extent),
            None => Some(*extent),
        }
    }

    /// Whether a coding extent's places are being written.
    pub(super) fn is_being_written(&self, group: Lba) -> bool {
        self.get(group).is_some_and(StaleExtent::is_being_written)
    }

    /// Its places are written from now on.
    pub(super) fn begin_writing(&mut self, group: Lba, state: Placing) {
        self.writings += 1;
        self.edit(group, |stale| (stale.state, stale.in_place) = (state, None));
    }

    /// How often that has begun, of whichever of them.
    pub(super) fn writings(&self) -> u64 {
        self.writings
    }

    /// Something else is known of one, if it is there.
    pub(super) fn edit(&mut self, group: Lba, change: impl FnOnce(&mut StaleExtent)) {
        self.note(group, false);
        if let Some(stale) = self.all.get_mut(&group) {
            change(stale);
        }
        self.note(group, true);
    }

    /// How its redundancy is computed, if that is decided.
    pub(super) fn way(&self, group: Lba) -> Option<Way> {
        match self.get(group)?.state {
            Placing::Reading { way, .. } => way,
            _ => None,
        }
    }

    pub(super) fn set_way(&mut self, group: Lba, to: Way) {
        self.edit(group, |stale| {
            if let Placing::Reading { way, .. } = &mut stale.state {
                *way = Some(to);
            }
        });
    }

    /// The oldest record that must stay for one of them.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.by_record.first().map(|&(record, _)| record)
    }

    /// How many are on their way to their places.
    pub(super) fn begun(&self) -> usize {
        self.all.len() - self.waiting.len() - self.noted.len()
    }

    /// Of those that wait, and need this record or an older one, the next ones behind a place, and then those before it.
    pub(super) fn waiting_behind(&self, place: Lba, most: usize, due: Due) -> Vec<Lba> {
        let is_any = self.waiting_by_record.first().is_some_and(|&(record, _)| record <= due.to);
        if most == 0 || !is_any {
            return Vec::new();
        }
        let may_begin =
            |stale: &StaleExtent| stale.record <= due.to && stale.changed <= due.durable;
        let behind = self.waiting.range((Bound::Excluded(place), Bound::Unbounded));
        let all = behind.chain(self.waiting.range(..=place));
        all.copied().filter(|group| may_begin(&self.all[group])).take(most).collect()
    }

    /// Those whose writes a flush is to make safe.
    pub(super) fn written(&self) -> Vec<Lba> {
        self.written.iter().copied().collect()
    }

    /// Those that this record or an older one has noted.
    pub(super) fn noted_up_to(&self, durable: u64) -> Vec<Lba> {
        let over = self.noted.range(..=(durable, Lba::new(u64::MAX)));
        over.map(|&(_, group)| group).collect()
    }

    /// Keeps what is due of one up to date.
    fn note(&mut self, group: Lba, is_there: bool) {
        let Some(stale) = self.all.get(&group) else { return };
        put(&mut self.by_record, (stale.record, group), is_there);
        match stale.state {
            Placing::Waiting => {
                put(&mut self.waiting, group, is_there);
                put(&mut self.waiting_by_record, (stale.record, group), is_there);
            }
            Placing::Written { .. } => put(&mut self.written, group, is_there),
            Placing::Noted { in_record, .. } => put(&mut self.noted, (in_record, group), is_there),
            Placing::Reading { .. } | Placing::Writing { .. } | Placing::Noting { .. } => {}
        }
    }
}

fn put<T: Ord>(set: &mut BTreeSet<T>, one: T, is_there: bool) {
    match is_there {
        true => set.insert(one),
        false => set.remove(&one),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::inode::FileKind;

    fn extent(at: u64) -> CodingExtent {
        CodingExtent {
            lba: Lba::new(10 * at),
            data: 4,
            redundant: 1,
            depth: 1,
            kind: FileKind::Auto,
        }
    }

    fn group(at: u64) -> Lba {
        extent(at).lba
    }

    /// As a walk over all of them would say it.
    #[test]
    fn each_is_due_for_what_its_state_says() {
        let mut stale = StaleExtents::default();
        for at in 1..=6 {
            stale.change(extent(at), None, 1, 20 - at);
        }
        assert_eq!((stale.oldest(), stale.begun()), (Some(14), 0));
        let due = Due { to: 17, durable: 100 };
        // Those of records up to 17, in the order of the disk, from a place on.
        assert_eq!(stale.waiting_behind(group(4), 3, due), [5, 6, 3].map(group));
        assert_eq!(stale.waiting_behind(group(4), 9, Due { to: 13, ..due }), []);
        stale.change(extent(5), None, 1, 200);
        assert_eq!(stale.waiting_behind(group(4), 9, due), [6, 3, 4].map(group));
        stale.edit(group(6), |stale| stale.state = Placing::Written { as_of: 14, sums: vec![] });
        assert_eq!((stale.written(), stale.begun()), (vec![group(6)], 1));
        for (at, in_record) in [(3, 31), (6, 33)] {
            stale.edit(group(at), |stale| stale.state = Placing::Noted { in_record, as_of: 17 });
        }
        assert_eq!(stale.noted_up_to(30), []);
        assert_eq!(stale.noted_up_to(31), [group(3)]);
        assert_eq!(stale.noted_up_to(40), [3, 6].map(group));
        // That of 3 is not what was noted of 6.
        assert_eq!((stale.begun(), stale.not_noted(), stale.written()), (0, 5, vec![]));
        stale.remove(group(6));
        assert_eq!((stale.oldest(), stale.inside(extent(6).all())), (Some(15), vec![]));
    }
}
