//! What drives that the array does without have missed, while it runs.
//!
//! ```text
//!   a drive is lost --> a map: what was under way there --> every write that would have changed it: its region
//!                                                                   |
//!         it is back, and holds all but the regions of its map <----+     until it is full, and the map is dropped
//! ```
//!
//! A *region* is some stripes side by side. Every change of a map has a number; what relies on a change waits until it
//! is safe, on enough drives, as the list of damaged sectors is.
//!
//! # Invariants
//!
//! - MW1. A stripe of a drive that has a map is on it if the drive may hold something else there than the array says.
//! - MW2. A bit is not cleared before the map is dropped, which it is when the drive holds everything.
//! - MW3. A map is kept, and the books say so, once all of it is safe that was on it when it began.
//! - MW4. The map of a drive that another one replaces goes on until the books name that one for good: should the array be
//!   cut off before, the old one may come back by it. Until then nothing counts on the new one.

use std::ops::Range;

use levelhead_units::{DriveIdx, DriveSet};

use super::books::Books;
use super::missed::{FoundMap, MapKey, PAGES, WORDS_IN_PAGE, slots_of};
use super::superblock::Own;
use crate::shape::Layout;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Missed {
    /// One a drive, for those that have one.
    maps: Vec<Option<Map>>,
    /// Drives that are back: they hold all but what is on their maps.
    returning: DriveSet,
    /// The number of the last change.
    change: u64,
    /// How many maps there is room for.
    slots: usize,
    /// Slots of maps that were dropped, until the books say so for good.
    leaving: Vec<Leaving>,
    /// The least number of stripes of a region.
    region_min: u64,
    /// Whether maps are kept nowhere else, and need not be.
    is_in_memory: bool,
    has_become_safe: bool,
    has_become_kept: bool,
}

/// A slot whose map was dropped.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    drive: DriveIdx,
    slot: usize,
}

/// The map of one drive.
#[derive(Clone, Debug)]
pub(crate) struct Map {
    pub(crate) key: MapKey,
    pub(crate) slot: usize,
    /// The newest generation that the drive may have a record of, from before it was lost last.
    last: [u64; 1],
    words: Vec<u64>,
    /// Whether another drive comes into the place, of which the books do not say so for good yet (MW4).
    is_ending: bool,
    /// The head, and then the pages.
    pages: Vec<PageState>,
    is_kept: bool,
}

/// What the drives have of a page.
#[derive(Clone, Copy, Debug, Default)]
struct PageState {
    /// Its last change, 0 if it has never had one.
    changed: u64,
    /// The first of its changes that is not safe.
    at_risk: Option<u64>,
}

/// A page by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageName {
    pub(crate) drive: DriveIdx,
    pub(crate) number: usize,
}

impl Missed {
    /// The maps that were found.
    pub(crate) fn new(books: Option<&Books>, drives: usize, region_min: u64) -> Self {
        let maps = (0..drives).map(|_| None).collect();
        let Some(books) = books else {
            // Of a study, whose array is started once.
            return Self { maps, slots: drives, region_min, is_in_memory: true, ..Self::default() };
        };
        let mut owns = books.owns.iter().flatten();
        let slots = owns.find_map(Own::maps).map_or(0, slots_of);
        let mut missed = Self { maps, slots, region_min: region_min.max(1), ..Self::default() };
        for FoundMap { key, slot, last, words } in &books.missed {
            let mut map = Map::new(*key, *slot);
            map.last = [*last];
            map.words.clone_from(words);
            map.clear_unused();
            map.is_kept = true;
            for number in 0..=key.pages() {
                if number == 0 || map.page_words(number).iter().any(|&word| word != 0) {
                    missed.change += 1;
                    map.pages[number].note(missed.change);
                }
            }
            if books.filled_to(key.drive).is_some() {
                missed.returning = missed.returning.with(key.drive);
            }
            missed.maps[key.drive.as_usize()] = Some(map);
        }
        missed
    }

    fn map(&self, drive: DriveIdx) -> Option<&Map> {
        self.maps.get(drive.as_usize())?.as_ref()
    }

    /// Whether a drive has a map.
    pub(crate) fn has(&self, drive: DriveIdx) -> bool {
        self.map(drive).is_some()
    }

    /// The drives that have one.
    pub(crate) fn drives(&self) -> DriveSet {
        self.maps.iter().flatten().map(|map| map.key.drive).collect()
    }

    /// Those of them whose map is safe as a whole (MW3).
    pub(crate) fn kept(&self) -> DriveSet {
        let kept = self.maps.iter().flatten().filter(|map| map.is_kept && !map.is_ending);
        kept.map(|map| map.key.drive).collect()
    }

    /// The newest generation that a drive may have a record of, from before it was lost last, if it has a map.
    pub(crate) fn lost_at(&self, drive: DriveIdx) -> Option<u64> {
        self.map(drive).map(|map| map.last[0])
    }

    /// Whether a drive that is back holds what was written to its part of a stripe.
    pub(crate) fn spares(&self, drive: DriveIdx, stripe: u64) -> bool {
        self.returning.contains(drive)
            && self.map(drive).is_some_and(|map| !map.is_set(map.key.region(stripe)))
    }

    /// Drives that are back.
    pub(crate) fn returning(&self) -> DriveSet {
        self.returning
    }

    /// A drive is lost: it has a map from now on, if there is room for one.
    pub(crate) fn begin(&mut self, layout: &Layout, drive: DriveIdx, loss: Loss) {
        let Loss { since, last, held } = loss;
        let Some(known) = self.maps.get_mut(drive.as_usize()) else { return };
        if let Some(map) = known {
            // It is lost again: the bits are still those of all that it may not have.
            map.last = [last];
            if map.pages[0].changed > 0 {
                self.change += 1;
                map.pages[0].note(self.change);
            }
            if std::mem::take(&mut map.is_ending) {
                // Now it is that of the drive that has come into the place, and holds nothing.
                self.mark_all(drive, 0..layout.stripes());
            }
            return;
        }
        let Some(slot) = self.free_slot() else { return };
        let (key, stripes) = (self.key(layout, drive, since), layout.stripes());
        self.maps[drive.as_usize()] =
            Some(Map { is_kept: self.is_in_memory, last: [last], ..Map::new(key, slot) });
        self.mark_all(drive, held.min(stripes)..stripes);
    }

    /// The map that a drive would have.
    pub(crate) fn key(&self, layout: &Layout, drive: DriveIdx, since: u64) -> MapKey {
        let least = self.region_min.div_ceil(layout.spec().chunk().get());
        MapKey::new(drive, since, layout.stripes(), least)
    }

    /// Whether there is room for one more map.
    pub(crate) fn has_room(&self) -> bool {
        self.free_slot().is_some()
    }

    fn free_slot(&self) -> Option<usize> {
        let is_free = |slot: &usize| {
            self.maps.iter().flatten().all(|map| map.slot != *slot)
                && self.leaving.iter().all(|left| left.slot != *slot)
        };
        (0..self.slots).find(is_free)
    }

    /// A drive has missed something of a stripe, if it has a map; returns the change that says so, 0 if that is safe.
    pub(crate) fn mark(&mut self, drive: DriveIdx, stripe: u64) -> u64 {
        let Some(Some(map)) = self.maps.get_mut(drive.as_usize()) else { return 0 };
        let region = map.key.region(stripe);
        let page = &mut map.pages[1 + region as usize / (64 * WORDS_IN_PAGE)];
        let word = &mut map.words[region as usize / 64];
        let bit = 1 << (region % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        if is_new && !self.is_in_memory {
            self.change += 1;
            page.note(self.change);
        }
        page.at_risk.map_or(0, |_| page.changed)
    }

    /// The same of all these stripes.
    pub(crate) fn mark_all(&mut self, drive: DriveIdx, stripes: Range<u64>) {
        let Some(map) = self.map(drive) else { return };
        if stripes.is_empty() {
            return;
        }
        let shift = map.key.shift;
        for region in (stripes.start >> shift)..=((stripes.end - 1) >> shift) {
            self.mark(drive, region << shift);
        }
    }

    /// The first stripe from `from` on that a drive which is back does not hold.
    pub(crate) fn next(&self, drive: DriveIdx, from: u64) -> Option<u64> {
        let map = self.map(drive)?;
        let first = map.key.region(from);
        let region = map.next_region(first, true)?;
        Some(if region == first { from } else { region << map.key.shift })
    }

    /// The end of the stripes side by side from `from` on that a drive has missed.
    pub(crate) fn end_of_run(&self, drive: DriveIdx, from: u64) -> Option<u64> {
        let map = self.map(drive)?;
        Some(map.next_region(map.key.region(from), false)? << map.key.shift)
    }

    /// How many regions of a drive that is back it does not hold, those of stripes below `from` aside.
    pub(crate) fn regions_left(&self, drive: DriveIdx, from: u64) -> Option<u64> {
        let map = self.map(drive).filter(|_| self.returning.contains(drive))?;
        let first = map.key.region(from);
        let before = (first % 64) as u32;
        let words = map.words.iter().skip(first as usize / 64);
        let counts = words.zip(0..).map(|(word, at)| match at {
            0 => (word >> before).count_ones(),
            _ => word.count_ones(),
        });
        Some(counts.map(u64::from).sum())
    }

    /// A drive is back.
    pub(crate) fn begin_return(&mut self, drive: DriveIdx) {
        assert!(self.has(drive), "MW1: drive {drive} has no map");
        self.returning = self.returning.with(drive);
    }

    /// A drive is lost again: it has missed what it had.
    pub(crate) fn end_return(&mut self, drive: DriveIdx) {
        self.returning = self.returning.without(DriveSet::EMPTY.with(drive));
    }

    /// Another drive comes into the place of one that has a map; returns whether the books must name it before anything counts
    /// on it (MW4).
    pub(crate) fn end_when_named(&mut self, drive: DriveIdx) -> bool {
        match self.maps.get_mut(drive.as_usize()) {
            Some(Some(map)) if !self.is_in_memory => {
                map.is_ending = true;
                true
            }
            Some(_) | None => {
                self.drop_map(drive);
                false
            }
        }
    }

    /// The books name the drives that have come into places, except for these: the maps of those before them end (MW4).
    pub(crate) fn note_named(&mut self, unnamed: DriveSet) {
        let is_over = |map: &&Map| map.is_ending && !unnamed.contains(map.key.drive);
        let over = self.maps.iter().flatten().filter(is_over).map(|map| map.key.drive);
        over.collect::<Vec<DriveIdx>>().into_iter().for_each(|drive| self.drop_map(drive));
    }

    /// A drive holds everything, or its place has another one (MW2).
    pub(crate) fn drop_map(&mut self, drive: DriveIdx) {
        self.end_return(drive);
        if let Some(map) = self.maps.get_mut(drive.as_usize()).and_then(Option::take) {
            if !self.is_in_memory {
                self.leaving.push(Leaving { drive, slot: map.slot });
            }
            self.has_become_safe = true;
        }
    }

    /// The books say for good that the maps of these drives are kept, and no others.
    pub(crate) fn note_recorded(&mut self, kept: DriveSet) {
        self.leaving.retain(|left| kept.contains(left.drive));
    }

    /// No map will be written any more: nothing waits for one.
    pub(crate) fn drop_all(&mut self) {
        self.has_become_safe |= self.maps.iter().any(Option::is_some);
        self.maps.iter_mut().for_each(|map| *map = None);
        self.returning = DriveSet::EMPTY;
    }

    /// Whether all changes up to this one are safe.
    pub(crate) fn is_safe(&self, change: u64) -> bool {
        let pages = self.maps.iter().flatten().flat_map(|map| &map.pages);
        change == 0 || pages.filter_map(|page| page.at_risk).all(|at_risk| change < at_risk)
    }

    /// Whether all changes are safe, and all maps kept.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.maps.iter().flatten().all(|map| map.is_kept) && self.is_safe(self.change)
    }

    /// Whether some change has become safe since this was asked last.
    pub(crate) fn take_become_safe(&mut self) -> bool {
        std::mem::take(&mut self.has_become_safe)
    }

    /// Whether some map has become kept since this was asked last.
    pub(crate) fn take_become_kept(&mut self) -> bool {
        std::mem::take(&mut self.has_become_kept)
    }

    /// The pages that are to be on the drives, each with its last change. The head of a map comes last (MW3).
    pub(crate) fn pages(&mut self) -> Vec<(PageName, u64)> {
        let mut all = Vec::new();
        if self.is_in_memory {
            return all;
        }
        for map in self.maps.iter_mut().flatten() {
            let is_whole = map.pages[1..].iter().all(|page| page.at_risk.is_none());
            if map.pages[0].changed == 0 && is_whole {
                self.change += 1;
                map.pages[0].note(self.change);
            }
            let drive = map.key.drive;
            let known = map.pages.iter().enumerate().filter(|(_, page)| page.changed > 0);
            all.extend(known.map(|(number, page)| (PageName { drive, number }, page.changed)));
        }
        all
    }

    /// Which map a page is of, and its words; none of a head.
    pub(crate) fn contents(&self, page: PageName) -> (&Map, &[u64]) {
        let map = self.map(page.drive).expect("it is to be written");
        (map, map.page_words(page.number))
    }

    /// The changes of a page up to this one are safe.
    pub(crate) fn note_safe(&mut self, page: PageName, change: u64) {
        let Some(Some(map)) = self.maps.get_mut(page.drive.as_usize()) else { return };
        let state = &mut map.pages[page.number];
        let Some(at_risk) = state.at_risk.filter(|&at_risk| at_risk <= change) else { return };
        assert!(at_risk <= state.changed, "MW1: {page:?}");
        state.at_risk = (change < state.changed).then_some(change + 1);
        self.has_become_safe = true;
        if page.number == 0 && !map.is_kept {
            map.is_kept = true;
            self.has_become_kept = true;
        }
    }
}

/// A drive that the array begins to do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    /// The array's generation.
    pub(crate) since: u64,
    /// The newest generation that the drive may have a record of.
    pub(crate) last: u64,
    /// It held everything written to its stripes below this one.
    pub(crate) held: u64,
}

impl PageState {
    fn note(&mut self, change: u64) {
        self.changed = change;
        self.at_risk = self.at_risk.or(Some(change));
    }
}

impl Map {
    fn new(key: MapKey, slot: usize) -> Self {
        let pages = vec![PageState::default(); 1 + key.pages()];
        assert!(pages.len() <= 1 + PAGES, "{key:?}");
        Self {
            key,
            slot,
            last: [key.since],
            words: vec![0; key.words()],
            is_ending: false,
            pages,
            is_kept: false,
        }
    }

    /// Bits behind the last region mean nothing.
    fn clear_unused(&mut self) {
        let used = self.key.regions % 64;
        if let (Some(last), true) = (self.words.last_mut(), used > 0) {
            *last &= (1 << used) - 1;
        }
    }

    fn is_set(&self, region: u64) -> bool {
        self.words[region as usize / 64] & (1 << (region % 64)) != 0
    }

    fn page_words(&self, number: usize) -> &[u64] {
        match number.checked_sub(1) {
            None => &self.last,
            Some(at) => {
                let from = at * WORDS_IN_PAGE;
                &self.words[from..self.words.len().min(from + WORDS_IN_PAGE)]
            }
        }
    }

    /// The first region from `from` on whose bit is this.
    fn next_region(&self, from: u64, bit: bool) -> Option<u64> {
        let mut at = from;
        while at < self.key.regions {
            let word = self.words[at as usize / 64];
            let word = if bit { word } else { !word } >> (at % 64);
            if word != 0 {
                let found = at + u64::from(word.trailing_zeros());
                return Some(found).filter(|&found| found < self.key.regions);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }
}

#[cfg(test)]
mod tests;
