//! The beginning and the end: what a crash has left is put in order, and the superblocks say how the disk was left.
//!
//! ```text
//!   left in order -------------------------------------------> superblocks say "in use" --> mounted
//!   cut off --> the whole journal is read --> what it has comes to its place, flushed --^
//! ```
//!
//! What the newest complete record says counts, and everything back to the oldest one that it names. Of each place the newest word
//! counts: what was freed later is left alone. Replaying twice is like replaying once.
//!
//! Superblocks are written one after the other, and at the beginning and the end nothing else is before all of them are; in between what needs
//! their new word waits (UW3). So whichever of them a cut leaves is right. The newest one of an end in order says that everything is in its
//! place; should it be damaged, an older one has the journal read, and a mark that was written before says the same there: otherwise coding
//! extents that are named in the last records would count as stale, and could not be computed. Records of a life that ended in order are below the name that the next one begins with, and only that one writes over them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use levelhead_block::{Buf, Durability, Effort, Outcome, Piece, Reply};
use levelhead_units::{Extent, Instant, Lba, SECTOR_SIZE, Sectors};

use super::early::{FoundPage, Owner};
use super::job::Job;
use super::journal::HeldRecord;
use super::stale::StaleExtent;
use super::unwritable::Stored;
use super::{Failure, Filesystem, Logged, Phase, Purpose, SubId, WriteCommand, is_stored};
use crate::action::{Action, Event};
use crate::cache::Unit;
use crate::format::extent::CodingExtent;
use crate::format::inode::FileKind;
use crate::format::record::{About, Descriptor, RecordEntry};
use crate::format::superblock::SUPERBLOCKS;
use crate::format::unit::{Head, Sector};
use crate::rules::Rule;
use crate::settings::MountMode;
use crate::sums::sum_of;

/// Sectors of the journal that are read with one command: 1 MiB.
const READ_MAX: u64 = 256;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Mounting {
    subs: BTreeMap<SubId, Extent>,
    /// What was read of the journal; nothing of what could not be.
    sectors: BTreeMap<u32, Box<Sector>>,
    /// Leads of units that come to their places, by the places of their copies.
    leads: BTreeMap<Lba, Lba>,
    /// Sectors of files that do.
    data: BTreeMap<Lba, DataWord>,
    step: Step,
    /// Superblocks that do not say "in use" yet.
    superblocks: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    #[default]
    Reading,
    /// What the journal has comes to its place.
    Placing,
    Flushing,
    Superblocks,
}

/// What the journal says of a sector of a file.
#[derive(Clone, Copy, Debug)]
struct DataWord {
    sum: u32,
    record: u64,
}

/// A record that was found.
#[derive(Debug)]
struct Found {
    at: u32,
    sectors: u32,
    oldest: u64,
    entries: Vec<RecordEntry>,
    /// The bytes of those entries that have some.
    payload: Vec<Box<Sector>>,
}

/// What the journal says of a place.
#[derive(Debug)]
enum Word {
    Unit { bytes: Box<Sector>, record: u64 },
    Data { bytes: Box<Sector>, sum: u32, record: u64 },
}

impl Filesystem {
    pub(super) fn begin_mount(&mut self, now: Instant) {
        if self.superblock.is_clean {
            self.open();
            return self.advance(now);
        }
        let Phase::Mounting(_) = self.phase else { unreachable!("it has just begun") };
        let ring = self.journal.extent();
        let mut from = 0;
        while from < ring.sectors.get() {
            let sectors = Sectors::new(READ_MAX.min(ring.sectors.get() - from));
            let extent = Extent::new(ring.lba + Sectors::new(from), sectors);
            let sub = self.submit_read(Purpose::Mount, extent, Effort::Full);
            let Phase::Mounting(mounting) = &mut self.phase else {
                unreachable!("it has just begun")
            };
            mounting.subs.insert(sub, extent);
            from += sectors.get();
        }
    }

    /// Says on the disk that it is in use, and goes on from there.
    fn open(&mut self) {
        if self.settings.mode == MountMode::ReadOnly {
            self.phase = Phase::Mounted;
            return;
        }
        let Phase::Mounting(mounting) = &mut self.phase else {
            unreachable!("it is being mounted")
        };
        (mounting.step, mounting.superblocks) = (Step::Superblocks, SUPERBLOCKS);
        self.superblock.generation += 1;
        self.superblock.is_clean = false;
        // What is redundant may be stale still, and pages may wait: until the next record says so, those of before the cut do.
        if self.stale.is_empty() && self.early.is_empty() {
            self.superblock.record = self.running.record;
        }
        self.write_superblock(0);
    }

    /// One copy at a time, each durable before the next.
    pub(super) fn write_superblock(&mut self, copy: usize) {
        let lba = self.superblock.geometry.superblocks()[copy];
        let buf = Buf::copy_of(&self.superblock.encode()[..]);
        let pieces = vec![Piece::whole(Arc::new(buf))];
        self.submit_write(Purpose::Superblock, lba, pieces, Durability::Durable);
    }

    pub(super) fn handle_superblock(&mut self, stored: &Stored) {
        match stored.failed() {
            Some([]) => {}
            // The newest one that can be read counts. A cut may take the one that is being written, so that two are needed.
            Some(failed) if !self.unwritable.is_superblock => {
                self.unwritable.is_superblock = true;
                self.do_without(failed);
            }
            Some(_) | None => return self.break_down(stored.failure(Failure::Metadata)),
        }
        let left = match &mut self.phase {
            Phase::Mounting(mounting) => Some(&mut mounting.superblocks),
            Phase::Closing(left) => Some(left),
            Phase::Mounted | Phase::Unmounting => self.unwritable.superblocks_left(),
            Phase::Unmounted | Phase::Broken(_) => None,
        };
        let Some(left) = left else { return };
        *left -= 1;
        let left = *left;
        if left > 0 {
            return self.write_superblock(usize::from(SUPERBLOCKS - left));
        }
        self.unwritable.note_superblocks();
        match self.phase {
            Phase::Closing(_) => self.phase = Phase::Unmounted,
            Phase::Mounted | Phase::Unmounting | Phase::Unmounted | Phase::Broken(_) => {}
            Phase::Mounting(_) => {
                self.phase = Phase::Mounted;
                self.reserve_spares();
                if self.keeps(Rule::Orphans) {
                    let job = self.new_job(Job::FindOrphans { from: 0 });
                    self.ready.push_front(job);
                }
            }
        }
    }

    pub(super) fn handle_mount(&mut self, sub: SubId, written: Option<WriteCommand>, reply: Reply) {
        let Phase::Mounting(mounting) = &mut self.phase else { return };
        let Some(extent) = mounting.subs.remove(&sub) else { return };
        match mounting.step {
            Step::Reading => {
                let ring = self.journal.extent();
                let first = (extent.lba - ring.lba).get() as u32;
                let Outcome::Done { unknown, damaged } = reply.outcome else {
                    return self.break_down(Failure::Journal);
                };
                let buf = reply.data.into_buf();
                for (at, bytes) in (0..).zip(buf.as_slice().chunks(SECTOR_SIZE)) {
                    if !unknown.contains(at) && !damaged.contains(at) {
                        let sector: Sector = bytes.try_into().expect("it is a sector");
                        mounting.sectors.insert(first + at, Box::new(sector));
                    }
                }
                if mounting.subs.is_empty() {
                    self.replay();
                }
            }
            Step::Placing => {
                match Stored::of(Some(extent), &reply) {
                    Stored::All => {}
                    Stored::Nothing => return self.break_down(Failure::Disk),
                    Stored::Without(failed) => self.note_not_placed(extent, &failed, written),
                }
                self.end_placing(sub);
            }
            Step::Flushing => {
                if !is_stored(&reply) {
                    return self.break_down(Failure::Flush);
                }
                self.open();
            }
            Step::Superblocks => {}
        }
    }

    /// Something of the journal could not be written to its place: a copy of a unit, or a sector of a file, which stays in memory and in
    /// the journal until its coding extent is whole.
    fn note_not_placed(&mut self, extent: Extent, failed: &[Lba], written: Option<WriteCommand>) {
        let Phase::Mounting(mounting) = &self.phase else { return };
        if let Some(&DataWord { sum, record }) = mounting.data.get(&extent.lba) {
            let page = written.expect("it is a write").pieces.swap_remove(0);
            self.logged.insert(extent.lba, Logged { page, sum, old: None, record });
            return;
        }
        let leads: BTreeSet<Lba> = mounting.leads.get(&extent.lba).copied().into_iter().collect();
        let Some(unclear) = self.note_copies(extent, failed, &leads) else {
            return self.break_down(Failure::Metadata);
        };
        for one in unclear {
            let sub = self.read_back(one);
            let Phase::Mounting(mounting) = &mut self.phase else { return };
            mounting.subs.insert(sub, extent);
        }
    }

    /// What the journal has has come to its place, as far as this command was for it: when all of it has, it is flushed.
    pub(super) fn end_placing(&mut self, sub: SubId) {
        let Phase::Mounting(mounting) = &mut self.phase else { return };
        mounting.subs.remove(&sub);
        if mounting.step != Step::Placing || !mounting.subs.is_empty() {
            return;
        }
        mounting.step = Step::Flushing;
        let sub = self.submit_flush(Purpose::Mount);
        let Phase::Mounting(mounting) = &mut self.phase else { return };
        mounting.subs.insert(sub, Extent::new(Lba::ZERO, Sectors::ZERO));
    }

    /// What the journal has counts.
    fn replay(&mut self) {
        let Phase::Mounting(mounting) = &mut self.phase else { return };
        let sectors = std::mem::take(&mut mounting.sectors);
        let found = self.find_records(&sectors);
        // Records from before the last mount in order are over.
        let may_count =
            |record: u64| record >= self.superblock.record || !self.keeps(Rule::Generation);
        let mut counting = found.iter().rev().filter(|(record, _)| may_count(**record));
        let newest = counting.nth(usize::from(!self.keeps(Rule::Newest)));
        let Some((&newest, last)) = newest else { return self.open() };
        let oldest = last.oldest;
        // How many there should be is what the disk says: only those that were found are counted.
        let chain: Vec<u64> = match oldest <= newest {
            true => found.range(oldest..=newest).map(|(&record, _)| record).collect(),
            false => Vec::new(),
        };
        if oldest <= newest && chain.len() as u64 - 1 != newest - oldest {
            // A record that counts is damaged beyond repair: nothing is made worse.
            self.actions
                .push_back(Action::Event(Event::MetadataLost { lead: self.journal.extent().lba }));
            return self.break_down(Failure::Journal);
        }
        if chain.is_empty() {
            // Everything is in its place, as a mark says.
            self.journal.note_durable(newest, newest + 1);
            self.running.record = newest + 1;
            return self.open();
        }
        let held: Vec<HeldRecord> = chain
            .iter()
            .map(|&record| HeldRecord {
                record,
                at: found[&record].at,
                sectors: found[&record].sectors,
            })
            .collect();
        self.journal.resume(&held, oldest);
        let (mut words, mut stale): (BTreeMap<Lba, Word>, BTreeMap<Lba, StaleExtent>) =
            Default::default();
        let mut early: BTreeMap<Lba, FoundPage> = BTreeMap::new();
        let mut found = found;
        for record in chain {
            let Found { entries, payload, .. } = found.remove(&record).expect("it was found");
            for entry in entries.iter().filter(|entry| entry.about == About::Revoked) {
                words.remove(&entry.lba);
                stale.remove(&entry.lba);
                early.remove(&entry.lba);
            }
            for entry in entries.iter().filter(|entry| entry.about == About::Dropped) {
                early.remove(&entry.lba);
            }
            // What they have for its data stays: it may be on its way to the same places once more.
            for entry in entries.iter().filter(|entry| entry.about == About::Settled) {
                stale.remove(&entry.lba);
            }
            let mut payload = payload.into_iter();
            let owners: Vec<Option<Owner>> = (1..=entries.len())
                .map(|next| {
                    let (inode, page) = entries.get(next)?.owner()?;
                    Some(Owner { inode, page })
                })
                .collect();
            for (entry, owner) in entries.into_iter().zip(owners) {
                match entry.about {
                    About::Unit => {
                        let bytes = payload.next().expect("one for each entry");
                        words.insert(entry.lba, Word::Unit { bytes, record });
                    }
                    About::Data => {
                        let bytes = payload.next().expect("one for each entry");
                        let sum = entry.sum;
                        words.insert(entry.lba, Word::Data { bytes, sum, record });
                        early.remove(&entry.lba);
                        self.journal.note_named(entry.lba, record);
                    }
                    About::Page => {
                        let bytes = payload.next().expect("one for each entry");
                        let bytes = Piece::whole(Arc::new(Buf::packed(&bytes[..])));
                        if let Some(owner) = owner {
                            early.insert(entry.lba, FoundPage { bytes, owner, record });
                            self.journal.note_named(entry.lba, record);
                        }
                    }
                    About::Redundant => drop(payload.next()),
                    About::Revoked | About::Dropped | About::Owner | About::Settled => {}
                    About::Stale => {
                        let (lba, kind) = (entry.lba, FileKind::Auto);
                        let [redundant, depth] = entry.shape;
                        let extent = CodingExtent { lba, data: entry.sum, redundant, depth, kind };
                        if extent.is_sane(self.superblock.geometry.sectors)
                            && self.keeps(Rule::Stale)
                        {
                            stale.insert(lba, StaleExtent::found(extent, record));
                            self.journal.note_named(lba, record);
                        }
                    }
                }
            }
        }
        self.running.record = newest + 1;
        // The redundancy is computed anew, from what is in place by then; until it is, the records that say so count.
        stale.into_values().for_each(|stale| self.stale.insert(stale));
        self.take_early(early);
        self.put_in_order(words);
    }

    /// What the journal has comes to its place, or stays in memory if nothing may be written.
    fn put_in_order(&mut self, words: BTreeMap<Lba, Word>) {
        let geometry = self.superblock.geometry;
        let is_read_only = self.settings.mode == MountMode::ReadOnly;
        for (lba, word) in words {
            match word {
                Word::Unit { bytes, record } => {
                    if !geometry.may_lead(lba) {
                        continue;
                    }
                    if is_read_only {
                        if let Ok(Head { kind, owner, .. }) = Head::open(&bytes) {
                            let unit = Unit { kind, owner, bytes: Arc::from(bytes) };
                            self.cache.insert_changed(lba, unit, record);
                        }
                        continue;
                    }
                    for copy in geometry.copies_of(lba) {
                        self.put_sector(copy, &bytes);
                        if let Phase::Mounting(mounting) = &mut self.phase {
                            mounting.leads.insert(copy, lba);
                        }
                    }
                }
                Word::Data { bytes, sum, record } => {
                    if lba.get() >= geometry.sectors {
                        continue;
                    }
                    if is_read_only {
                        let page = Piece::whole(Arc::new(Buf::packed(&bytes[..])));
                        self.logged.insert(lba, Logged { page, sum, old: None, record });
                        continue;
                    }
                    self.put_sector(lba, &bytes);
                    if let Phase::Mounting(mounting) = &mut self.phase {
                        mounting.data.insert(lba, DataWord { sum, record });
                    }
                }
            }
        }
        let Phase::Mounting(mounting) = &mut self.phase else { return };
        mounting.step = Step::Placing;
        if mounting.subs.is_empty() {
            self.open();
        }
    }

    fn put_sector(&mut self, lba: Lba, bytes: &Sector) {
        let pieces = vec![Piece::whole(Arc::new(Buf::copy_of(bytes)))];
        let sub = self.submit_write(Purpose::Mount, lba, pieces, Durability::Cached);
        let extent = Extent::new(lba, Sectors::new(1));
        let Phase::Mounting(mounting) = &mut self.phase else { return };
        mounting.subs.insert(sub, extent);
    }

    /// The complete records of the journal, by their names; of a mark its word counts for the record that it names.
    fn find_records(&mut self, sectors: &BTreeMap<u32, Box<Sector>>) -> BTreeMap<u64, Found> {
        let filesystem = self.superblock.filesystem();
        let mut found: BTreeMap<u64, Found> = BTreeMap::new();
        let mut marks: Vec<(u64, u64)> = Vec::new();
        let mut seen: BTreeSet<(u64, u32)> = BTreeSet::new();
        for (&at, sector) in sectors {
            let lba = self.journal.lba(at);
            let Some(part) = Descriptor::decode_part(sector, filesystem, lba) else { continue };
            if part.part > 0 {
                continue;
            }
            // It is the first descriptor of a record, or the copy behind it.
            let all = part.all.get() as u32;
            for start in [Some(at), (at + part.sectors).checked_sub(all)].into_iter().flatten() {
                if !seen.insert((part.record, start)) {
                    continue;
                }
                let Some(one) = self.read_record(sectors, start, part.record) else { continue };
                if start < super::journal::RECORDS {
                    marks.push((part.record, one.oldest));
                } else {
                    found.insert(part.record, one);
                }
            }
        }
        for (record, oldest) in marks {
            if let Some(known) = found.get_mut(&record) {
                known.oldest = known.oldest.max(oldest);
            }
        }
        found
    }

    /// The record that begins here, if it is complete.
    fn read_record(
        &mut self,
        sectors: &BTreeMap<u32, Box<Sector>>,
        start: u32,
        record: u64,
    ) -> Option<Found> {
        let filesystem = self.superblock.filesystem();
        let part_at = |at: u32| {
            let sector = sectors.get(&at)?;
            let part = Descriptor::decode_part(sector, filesystem, self.journal.lba(at))?;
            (part.record == record).then_some(part)
        };
        // Either descriptor says how long the record is.
        let (count, all, oldest) = match part_at(start) {
            Some(part) => (part.sectors, part.all.get() as u32, part.oldest),
            None => {
                let size = self.journal.extent().sectors.get() as u32;
                let behind = (start + 2..size).find_map(|at| {
                    let part = part_at(at)?;
                    let all = part.all.get() as u32;
                    (at + part.sectors - part.part == start + all).then_some(part)
                })?;
                (behind.sectors, behind.all.get() as u32, behind.oldest)
            }
        };
        if all < 2 * count || all > self.journal.extent().sectors.get() as u32 {
            return None;
        }
        let mut entries = Vec::new();
        for at in 0..count {
            let part = part_at(start + at).or_else(|| part_at(start + all - count + at))?;
            if part.part != at || part.sectors != count {
                return None;
            }
            entries.extend(part.entries);
        }
        let with_payload: Vec<RecordEntry> =
            entries.iter().copied().filter(RecordEntry::has_payload).collect();
        if with_payload.len() as u32 + 2 * count != all {
            return None;
        }
        let right = |at: usize, entry: &RecordEntry| {
            let sector = sectors.get(&(start + count + at as u32))?;
            (sum_of(filesystem, entry.lba, &sector[..]) == entry.sum).then(|| sector.clone())
        };
        let payload: Vec<Option<Box<Sector>>> =
            with_payload.iter().enumerate().map(|(at, entry)| right(at, entry)).collect();
        let payload = self.complete(&with_payload, payload)?;
        Some(Found { at: start, sectors: all, oldest, entries, payload })
    }

    /// Computes what is missing of a record's payload.
    fn complete(
        &mut self,
        entries: &[RecordEntry],
        payload: Vec<Option<Box<Sector>>>,
    ) -> Option<Vec<Box<Sector>>> {
        let filesystem = self.superblock.filesystem();
        if payload.iter().all(Option::is_some) {
            return payload.into_iter().collect();
        }
        let data = entries.iter().filter(|entry| entry.about != About::Redundant).count();
        let ladder = self.superblock.ladder.clone();
        let (mut all, mut row_at) = (payload, data);
        let most = usize::from(ladder.data_max());
        for from in (0..data).step_by(most) {
            let count = most.min(data - from);
            let rows = usize::from(ladder.redundant(count as u32));
            let places: Vec<usize> = (from..from + count).chain(row_at..row_at + rows).collect();
            row_at += rows;
            let bad: Vec<usize> = places
                .iter()
                .copied()
                .filter(|&at| all.get(at).is_none_or(Option::is_none))
                .collect();
            if bad.is_empty() {
                continue;
            }
            if bad.len() > rows || places.iter().any(|&at| at >= all.len()) {
                return None;
            }
            let mut room: Vec<Box<Sector>> =
                bad.iter().map(|_| Box::new([0; SECTOR_SIZE])).collect();
            let mut into = room.iter_mut();
            let mut symbols: Vec<levelhead_erasure::Symbol<'_>> = places
                .iter()
                .map(|&at| match &all[at] {
                    Some(sector) => levelhead_erasure::Symbol::Available(&sector[..]),
                    None => levelhead_erasure::Symbol::Wanted(
                        &mut into.next().expect("one for each")[..],
                    ),
                })
                .collect();
            let code = self.codes.get(count as u32, rows as u8);
            code.reconstruct(self.settings.choices, &mut symbols).ok()?;
            drop(symbols);
            for (at, sector) in bad.into_iter().zip(room) {
                if sum_of(filesystem, entries[at].lba, &sector[..]) != entries[at].sum {
                    return None;
                }
                all[at] = Some(sector);
            }
        }
        all.into_iter().collect()
    }

    /// The end: everything is in its place, and the superblocks say so.
    pub(super) fn unmount_on(&mut self) -> bool {
        if !matches!(self.phase, Phase::Unmounting) {
            return false;
        }
        if self.is_read_only() {
            // What was asked before is answered first.
            if !self.jobs.is_empty() {
                return false;
            }
            self.phase = Phase::Unmounted;
            return true;
        }
        let is_quiet = self.running.is_empty()
            && self.committing.is_none()
            && self.checkpoint.is_done()
            && self.stale.is_empty()
            && !self.early.are_waiting()
            && self.jobs.is_empty()
            && self.subs.is_empty()
            && !self.rewriting.is_left_at_end();
        if !is_quiet {
            return false;
        }
        if self.end_deferred() || self.mark_end() {
            return true;
        }
        self.phase = Phase::Closing(SUPERBLOCKS);
        self.superblock.generation += 1;
        self.superblock.is_clean = true;
        self.superblock.record = self.running.record;
        self.write_superblock(0);
        true
    }
}

#[cfg(test)]
mod tests;
