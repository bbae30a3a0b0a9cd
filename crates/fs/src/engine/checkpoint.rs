//! Units come to their places, all copies of them, after the record that has them is durable (EN4).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use levelhead_block::{Buf, Durability, Piece, Reply};
use levelhead_units::{Extent, Lba, Sectors};

use super::unwritable::Stored;
use super::{Failure, Filesystem, Purpose, SubId, is_stored};
use crate::format::unit::Sector;
use crate::rules::Rule;

/// Units that are inside the disk at a time: the next ones are written when all of these are, so that neighbours go together.
const INSIDE_MAX: usize = 256;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Checkpoint {
    /// What is durable and not in its place, by its lead.
    images: BTreeMap<Lba, Image>,
    /// Their leads by the records that have them.
    by_record: BTreeSet<(u64, Lba)>,
    /// Copies on their way, by the commands that bring them; units by their leads.
    writing: BTreeMap<SubId, BTreeSet<Lba>>,
    /// Leads whose copies are all written, and in which version.
    written: Vec<Placed>,
    flushing: Option<Flushing>,
    /// What a mark on its way says.
    pub(super) marking: u64,
}

#[derive(Debug)]
struct Image {
    bytes: Arc<Sector>,
    record: u64,
    is_begun: bool,
}

#[derive(Clone, Copy, Debug)]
struct Placed {
    lead: Lba,
    record: u64,
}

#[derive(Debug)]
struct Flushing {
    units: Vec<Placed>,
    extents: Vec<Lba>,
}

/// One copy of a unit.
struct Copy {
    lead: Lba,
    piece: Piece,
}

/// Copies that lie side by side and are written with one command.
struct Run {
    first: Lba,
    copies: Vec<Copy>,
}

fn runs(copies: BTreeMap<Lba, Copy>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (place, copy) in copies {
        match runs.last_mut() {
            Some(run) if run.first + Sectors::new(run.copies.len() as u64) == place => {
                run.copies.push(copy);
            }
            Some(_) | None => runs.push(Run { first: place, copies: vec![copy] }),
        }
    }
    runs
}

impl Checkpoint {
    /// A unit is durable; returns the record that had it before and needs not any more.
    pub(super) fn insert(&mut self, lead: Lba, bytes: Arc<Sector>, record: u64) -> Option<u64> {
        let image = Image { bytes, record, is_begun: false };
        let older = self.images.insert(lead, image).map(|older| older.record);
        if let Some(older) = older {
            self.by_record.remove(&(older, lead));
        }
        self.by_record.insert((record, lead));
        older
    }

    /// A unit is there no more; returns the record that had it.
    pub(super) fn remove(&mut self, lead: Lba) -> Option<u64> {
        let record = self.images.remove(&lead).map(|image| image.record)?;
        self.by_record.remove(&(record, lead));
        Some(record)
    }

    /// Whether a unit is to come to its place.
    pub(super) fn has(&self, lead: Lba) -> bool {
        self.images.contains_key(&lead)
    }

    /// The oldest record of what is not in its place for good.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.by_record.first().map(|&(record, _)| record)
    }

    /// Whether nothing is to be done.
    pub(super) fn is_done(&self) -> bool {
        self.images.is_empty() && self.writing.is_empty() && self.flushing.is_none()
    }
}

impl Filesystem {
    /// Goes on with bringing things to their places, if it is time.
    pub(super) fn settle_on(&mut self) -> bool {
        if self.is_read_only() {
            return false;
        }
        let mut has_moved = self.say_older();
        if let Some(to) = self.settles_to() {
            has_moved |= self.write_units(to);
        }
        // Only a durable word makes room.
        if self.journal.is_filling() && self.committing.is_none() {
            has_moved |= self.make_room();
        }
        has_moved | self.flush_places()
    }

    /// Writes units that no record after this one has.
    fn write_units(&mut self, to: u64) -> bool {
        if !self.checkpoint.writing.is_empty() {
            return false;
        }
        let is_touched = |lead: Lba, subs: &BTreeMap<SubId, super::Inside>| {
            // An older version on its way could come last.
            let copies = self.superblock.geometry.copies_of(lead);
            subs.values()
                .filter_map(|inside| inside.extent)
                .any(|extent: Extent| copies.iter().any(|&copy| extent.contains(copy)))
        };
        let Checkpoint { images, by_record, .. } = &self.checkpoint;
        let mut next: Vec<Lba> = by_record
            .range(..=(to, Lba::new(u64::MAX)))
            .map(|&(_, lead)| lead)
            .filter(|lead| !images[lead].is_begun)
            .collect();
        next.sort_unstable();
        next.truncate(INSIDE_MAX);
        let next: Vec<(Lba, Arc<Sector>)> = next
            .into_iter()
            .filter(|&lead| !is_touched(lead, &self.subs))
            .map(|lead| (lead, Arc::clone(&images[&lead].bytes)))
            .collect();
        let mut copies: BTreeMap<Lba, Copy> = BTreeMap::new();
        for (lead, bytes) in &next {
            self.checkpoint.images.get_mut(lead).expect("it was found").is_begun = true;
            self.scrubs.values_mut().for_each(|scrubbing| scrubbing.pass_over(*lead));
            let piece = Piece::whole(Arc::new(Buf::packed(&bytes[..])));
            let places = self.superblock.geometry.copies_of(*lead);
            let written = if self.keeps(Rule::Copies) { places.len() } else { 1 };
            for &place in &places[..written] {
                copies.insert(place, Copy { lead: *lead, piece: piece.clone() });
            }
        }
        for run in runs(copies) {
            let leads = run.copies.iter().map(|copy| copy.lead).collect();
            let pieces = run.copies.into_iter().map(|copy| copy.piece).collect();
            let sub = self.submit_write(Purpose::InPlace, run.first, pieces, Durability::Cached);
            self.checkpoint.writing.insert(sub, leads);
        }
        !next.is_empty()
    }

    pub(super) fn handle_in_place(&mut self, sub: SubId, extent: Extent, stored: &Stored) {
        let leads = self.checkpoint.writing.get(&sub).cloned().unwrap_or_default();
        let unclear = stored.failed().and_then(|failed| self.note_copies(extent, failed, &leads));
        let Some(unclear) = unclear else {
            self.checkpoint.writing.remove(&sub);
            return self.break_down(stored.failure(Failure::Metadata));
        };
        for one in unclear {
            let sub = self.read_back(one);
            self.checkpoint.writing.insert(sub, [one.lead].into());
        }
        self.end_copies(sub);
    }

    /// Copies of units are written, or it is known what they hold.
    pub(super) fn end_copies(&mut self, sub: SubId) {
        let leads = self.checkpoint.writing.remove(&sub);
        for lead in leads.into_iter().flatten() {
            let is_writing = self.checkpoint.writing.values().any(|other| other.contains(&lead));
            if is_writing {
                continue;
            }
            if let Some(image) = self.checkpoint.images.get(&lead)
                && image.is_begun
            {
                let record = image.record;
                self.checkpoint.written.push(Placed { lead, record });
            }
        }
    }

    /// What is written is flushed, all of it at once.
    fn flush_places(&mut self) -> bool {
        let is_writing = !self.checkpoint.writing.is_empty()
            || self.subs.values().any(|inside| matches!(inside.what, Purpose::Place(_)));
        let extents = self.stale.written();
        if !self.keeps(Rule::Retire) && !extents.is_empty() {
            self.note_places(&extents);
            return true;
        }
        let is_any = !self.checkpoint.written.is_empty() || !extents.is_empty();
        // UW3
        let is_saying = self.is_saying_older();
        if self.checkpoint.flushing.is_some() || is_writing || is_saying || !is_any {
            return false;
        }
        let units = std::mem::take(&mut self.checkpoint.written);
        self.checkpoint.flushing = Some(Flushing { units, extents });
        self.submit_flush(Purpose::FlushInPlace);
        true
    }

    pub(super) fn handle_flushed_in_place(&mut self, reply: &Reply) {
        if !is_stored(reply) {
            return self.break_down(Failure::Flush);
        }
        let Some(Flushing { units, extents }) = self.checkpoint.flushing.take() else { return };
        for Placed { lead, record } in units {
            let is_same = |image: &mut Image| image.record == record;
            if self.checkpoint.images.get_mut(&lead).is_some_and(is_same) {
                self.checkpoint.remove(lead);
                self.cache.release(lead, record);
            }
        }
        self.note_places(&extents);
    }
}
