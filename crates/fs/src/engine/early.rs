//! Pages that are synced before the complementary sectors that they change are known: they come into the journal as pages.
//!
//! ```text
//!   sync --> a page in the journal, and in memory still --> a round, or the end --> complementary sectors are read, many together
//!                                                                                      --> a flush, as of any other page
//! ```
//!
//! To read a complementary sector first would cost every synced page an access of its own. After a crash such pages are in memory again.
//!
//! # Invariants
//!
//! - EP1. The newest record that has a page counts until a durable one has the sectors that the page consists of, or says that the page has
//!   left its place. Coding extents are freed as a whole only, so that this is said of each page.
//! - EP2. Such a page lies inside its file, in a place of its own, and there are few of them: the journal always has room for what they
//!   consist of.

use std::collections::{BTreeMap, BTreeSet};

use levelhead_block::Piece;
use levelhead_units::Lba;

use super::files::{Early, File, Page};
use super::job::{Job, JobId, PAGE};
use super::journal::Journal;
use super::{Attempted, Filesystem, Phase};
use crate::attempt::{Attempt, Stop};
use crate::format::extent::SplitPlace;
use crate::ops::extents::Pages;
use crate::rules::Rule;
use crate::settings::RedundancyComes;

/// Where a page belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) inode: u64,
    pub(super) page: u64,
}

/// A page as a record has it.
#[derive(Clone, Debug)]
pub(super) struct EarlyPage {
    pub(super) bytes: Piece,
    pub(super) owner: Owner,
}

/// A record that counts because of a page.
#[derive(Clone, Copy, Debug)]
struct Hold {
    /// The page's primary sector.
    lba: Lba,
    owner: Owner,
    record: u64,
    /// The record with which that is over, when it is durable; nothing as long as the page waits.
    until: Option<u64>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct EarlyPages(Vec<Hold>);

/// A page that could come early.
struct Candidate {
    page: u64,
    place: SplitPlace,
    sum: u32,
}

impl EarlyPages {
    /// A record has a page.
    pub(super) fn begin(&mut self, lba: Lba, owner: Owner, record: u64) {
        self.end(lba, record);
        self.0.push(Hold { lba, owner, record, until: None });
    }

    /// A coming record has what a page with this place consists of.
    pub(super) fn end(&mut self, lba: Lba, record: u64) {
        let waiting = self.0.iter_mut().filter(|hold| hold.until.is_none() && hold.lba == lba);
        waiting.for_each(|hold| hold.until = Some(record));
    }

    /// Pages of a file lose their places, or are lost, with a coming record; returns the places.
    fn end_pages(&mut self, inode: u64, pages: Pages, record: u64) -> Vec<Lba> {
        let is_one = |hold: &&mut Hold| {
            let Owner { inode: other, page } = hold.owner;
            hold.until.is_none() && other == inode && (pages.from..pages.to).contains(&page)
        };
        let ended = self.0.iter_mut().filter(is_one).map(|hold| {
            hold.until = Some(record);
            hold.lba
        });
        ended.collect()
    }

    /// A record is durable.
    pub(super) fn note_durable(&mut self, record: u64) {
        self.0.retain(|hold| hold.until.is_none_or(|until| until > record));
    }

    /// The oldest record that counts because of a page, if the one with this name is the newest durable one.
    pub(super) fn oldest(&self, durable: u64) -> Option<u64> {
        let counts = self.0.iter().filter(|hold| hold.until.is_none_or(|until| until > durable));
        counts.map(|hold| hold.record).min()
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether pages wait.
    pub(super) fn are_waiting(&self) -> bool {
        self.0.iter().any(|hold| hold.until.is_none())
    }

    /// Files of which pages wait.
    fn files(&self) -> BTreeSet<u64> {
        let waiting = self.0.iter().filter(|hold| hold.until.is_none());
        waiting.map(|hold| hold.owner.inode).collect()
    }

    /// How many more there may be (EP2): each takes itself, a complementary sector and its twin, and that is less than a fifth of the ring.
    fn room(&self, journal: &Journal) -> usize {
        let most = journal.extent().sectors.get() as usize / 16;
        most.saturating_sub(self.0.len())
    }
}

impl Attempt<'_> {
    /// Which of some pages of a file lie inside it, in blocks whose complementary sector was written.
    fn candidates(&mut self, number: u64, pages: &[u64]) -> Result<Vec<Candidate>, Stop> {
        let size = self.inode(number)?.size;
        let inside = pages.partition_point(|page| (page + 1) * PAGE <= size);
        let splits = self.split_places(number, &pages[..inside])?;
        let written = splits.into_iter().filter_map(|split| {
            Some(Candidate { page: split.page, place: split.place, sum: split.sum? })
        });
        Ok(written.collect())
    }
}

impl Filesystem {
    /// Of a file's pages that are to be synced, those come into the running transaction as pages whose complementary sectors would have to
    /// be read now.
    pub(super) fn come_early(&mut self, id: JobId, number: u64) -> Attempted<()> {
        let is_wanted = self.settings.redundancy == RedundancyComes::Together
            && self.superblock.forced.is_some()
            && matches!(self.phase, Phase::Mounted)
            && !self.journal.is_filling();
        let room = self.early.room(&self.journal).min(self.running.logged_room(&self.journal));
        let Some(file) = self.files.get(number).filter(|_| is_wanted && room > 0) else {
            return Attempted::Complete(());
        };
        let pages: Vec<u64> =
            file.pages.iter().filter(|(_, page)| page.is_new()).map(|(&page, _)| page).collect();
        let found = match self.attempt(id, |attempt| attempt.candidates(number, &pages)) {
            Attempted::Complete(found) => found,
            Attempted::Waits => return Attempted::Waits,
            Attempted::Failed(errno) => return Attempted::Failed(errno),
        };
        let record = self.running.record;
        let file = self.files.get_mut(number).expect("it is being flushed");
        for Candidate { page, place, sum } in found.into_iter().take(room) {
            let complement = place.complement;
            let is_known = self.logged.contains_key(&complement)
                || self.sectors.get(complement, sum).is_some()
                || file.complements.contains_key(&complement);
            if is_known {
                continue;
            }
            let owner = Owner { inode: number, page };
            let known = file.pages.get_mut(&page).expect("it was found");
            known.early = Early::AsItIs;
            let bytes = known.bytes.clone();
            self.running.early.insert(place.primary, EarlyPage { bytes, owner });
            self.early.begin(place.primary, owner, record);
        }
        Attempted::Complete(())
    }

    /// Whether a job is to go on though the journal wants room: it brings what holds records there.
    pub(super) fn makes_room(&self, job: &Job) -> bool {
        let brings = matches!(job, Job::Flush { inode } if self.brings_early(*inode));
        brings && !self.running.is_full(&self.journal)
    }

    /// Whether a flush of a file is to bring pages that have come early.
    pub(super) fn brings_early(&self, number: u64) -> bool {
        self.files
            .get(number)
            .is_some_and(|file| file.brings_early && file.pages.values().any(Page::is_early))
    }

    /// Pages that have come early become what they consist of; whether that begins for some.
    pub(super) fn bring_early(&mut self) -> bool {
        let files = self.early.files();
        let mut has_begun = false;
        for inode in files {
            let has_early = |file: &File| !file.is_cut && file.pages.values().any(Page::is_early);
            if self.files.get(inode).is_some_and(has_early) {
                let file = self.file(inode);
                has_begun |= !file.is_flushing;
                file.brings_early = true;
                self.begin_flush(inode);
            }
        }
        let stalled = std::mem::take(&mut self.stalled);
        let goes_on = |id: &JobId| self.jobs.get(id).is_some_and(|job| self.makes_room(job));
        let (go_on, stay): (Vec<JobId>, Vec<JobId>) = stalled.into_iter().partition(goes_on);
        has_begun |= !go_on.is_empty();
        self.stalled = stay;
        self.ready.extend(go_on);
        has_begun
    }

    /// Pages of a file lose their places, or are lost: what records have of them counts no more (EP1).
    pub(super) fn end_early(&mut self, inode: u64, pages: Pages) {
        let places = self.early.end_pages(inode, pages, self.running.record);
        if places.is_empty() {
            return;
        }
        for lba in places {
            self.running.early.remove(&lba);
            self.running.dropped.insert(lba);
        }
        if let Some(file) = self.files.get_mut(inode) {
            let known = file.pages.range_mut(pages.from..pages.to);
            known.for_each(|(_, page)| page.early = Early::No);
            self.touched.insert(inode);
        }
    }

    /// The oldest record that counts because of a page (EP1).
    pub(super) fn oldest_early(&self, durable: u64) -> Option<u64> {
        self.early.oldest(durable).filter(|_| self.keeps(Rule::Early))
    }

    /// Pages that a crash has left in the journal are in memory again.
    pub(super) fn take_early(&mut self, found: BTreeMap<Lba, FoundPage>) {
        for (lba, FoundPage { bytes, owner, record }) in found {
            self.early.begin(lba, owner, record);
            let file = self.file(owner.inode);
            let early = Early::AsItIs;
            let page = Page { bytes, is_dirty: true, early, writes: BTreeSet::new() };
            let before = file.pages.insert(owner.page, page);
            self.dirty += u64::from(before.is_none());
        }
    }
}

/// A page that a record has.
#[derive(Debug)]
pub(super) struct FoundPage {
    pub(super) bytes: Piece,
    pub(super) owner: Owner,
    pub(super) record: u64,
}

#[cfg(test)]
mod tests;
