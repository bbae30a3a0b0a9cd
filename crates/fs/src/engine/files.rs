//! What is in memory of a file: who knows it, and what was written and is in no transaction yet.
//!
//! A page stays here until what it was written to holds it: its extent on the disk, or the journal.

use std::collections::{BTreeMap, BTreeSet};

use levelhead_block::Piece;
use levelhead_units::Lba;

use super::ahead::Stream;
use super::complements::Complement;
use super::job::{Job, PAGE};
use super::{Filesystem, SubId};
use crate::action::{Action, Event};
use crate::format::inode::Moment;
use crate::ops::extents::Pages;
use crate::request::{Attributes, Errno};

/// Inodes that the caller knows, and what is in memory of some of them. There may be a million of the former.
#[derive(Debug, Default)]
pub(super) struct Files(BTreeMap<u64, Known>);

#[derive(Debug, Default)]
struct Known {
    /// How often answers have named it that were not forgotten.
    lookups: u64,
    /// How often its content was changed, when something of it was in memory last.
    version: u64,
    file: Option<Box<File>>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) pages: BTreeMap<u64, Page>,
    /// Its size, where the inode on the disk has another one.
    pub(super) size: Option<u64>,
    /// When it was written last, if the inode does not say so.
    pub(super) modified: Option<Moment>,
    /// How often its content was changed.
    pub(super) version: u64,
    /// It has no name.
    pub(super) is_orphan: bool,
    /// What is beyond its end is being cut off.
    pub(super) is_cut: bool,
    /// Jobs that wait until it is.
    pub(super) after_cut: Vec<super::JobId>,
    /// A job brings its pages into a transaction.
    pub(super) is_flushing: bool,
    /// Jobs that wait until that has brought everything.
    pub(super) waiting: Vec<super::JobId>,
    /// Whether that has pages that have come early as well.
    pub(super) brings_early: bool,
    /// Complementary sectors that were read for that; nothing of one that is lost.
    pub(super) complements: BTreeMap<Lba, Complement>,
    /// Whether that has been done since pages were brought.
    pub(super) has_read: bool,
    /// How often that has found no room.
    pub(super) tries: u8,
    /// How it is read.
    pub(super) stream: Stream,
    /// Why some of what was written is lost, until a sync has said so.
    pub(super) error: Option<Errno>,
}

/// A page of a file in memory.
#[derive(Clone, Debug)]
pub(super) struct Page {
    pub(super) bytes: Piece,
    /// Whether it is in no transaction.
    pub(super) is_dirty: bool,
    /// Whether a record has it as a page; what it consists of is in no transaction yet then.
    pub(super) early: Early,
    /// What writes it directly.
    pub(super) writes: BTreeSet<SubId>,
}

/// Whether a record has a page as a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Early {
    No,
    AsItIs,
    /// It was changed since.
    AsItWas,
}

impl Page {
    /// Whether a record counts because of it.
    pub(super) fn is_early(&self) -> bool {
        self.early != Early::No
    }

    /// Whether no record has it.
    pub(super) fn is_new(&self) -> bool {
        self.is_dirty && self.early != Early::AsItIs
    }
}

impl Files {
    /// What is in memory of an inode, if anything is.
    pub(super) fn get(&self, inode: u64) -> Option<&File> {
        self.0.get(&inode)?.file.as_deref()
    }

    pub(super) fn get_mut(&mut self, inode: u64) -> Option<&mut File> {
        self.0.get_mut(&inode)?.file.as_deref_mut()
    }

    /// The same; from now on something is.
    pub(super) fn open(&mut self, inode: u64) -> &mut File {
        let Known { version, file, .. } = self.0.entry(inode).or_default();
        file.get_or_insert_with(|| Box::new(File { version: *version, ..File::default() }))
    }

    /// An answer names an inode.
    pub(super) fn look_up(&mut self, inode: u64) {
        self.0.entry(inode).or_default().lookups += 1;
    }

    /// How often answers have named an inode that were not forgotten.
    pub(super) fn lookups(&self, inode: u64) -> u64 {
        self.0.get(&inode).map_or(0, |known| known.lookups)
    }

    /// Nothing that is in memory of an inode is needed any more.
    fn close(&mut self, inode: u64) {
        let Some(known) = self.0.get_mut(&inode) else { return };
        if let Some(file) = known.file.take() {
            known.version = file.version;
        }
        if known.lookups == 0 {
            self.0.remove(&inode);
        }
    }

    /// Those of which something is in memory.
    #[cfg(test)]
    pub(super) fn numbers(&self) -> Vec<u64> {
        let open = self.0.iter().filter(|(_, known)| known.file.is_some());
        open.map(|(&inode, _)| inode).collect()
    }
}

impl Filesystem {
    pub(super) fn file(&mut self, inode: u64) -> &mut File {
        self.touched.insert(inode);
        self.files.open(inode)
    }

    /// Files of which something is in no transaction. Those that are known and were not touched since are not looked at: there may be a million.
    pub(super) fn dirty_files(&mut self) -> Vec<u64> {
        let touched = std::mem::take(&mut self.touched);
        self.touched = touched.into_iter().filter(|&inode| self.is_dirty(inode)).collect();
        let dirty: Vec<u64> = self.touched.iter().copied().collect();
        #[cfg(test)]
        {
            let all = self.files.numbers().into_iter().filter(|&inode| self.is_dirty(inode));
            assert_eq!(all.collect::<Vec<u64>>(), dirty, "all that is dirty was touched");
        }
        dirty
    }

    /// How often a file's content was changed.
    pub(super) fn version(&self, inode: u64) -> u64 {
        let known = self.files.0.get(&inode);
        known.map_or(0, |known| known.file.as_ref().map_or(known.version, |file| file.version))
    }

    /// What is known of an inode, with what is in memory alone.
    pub(super) fn effective(&self, attributes: Attributes) -> Attributes {
        let Some(file) = self.files.get(attributes.inode) else { return attributes };
        let size = file.size.unwrap_or(attributes.size);
        let modified = file.modified.unwrap_or(attributes.modified);
        let changed = match file.modified {
            Some(moment) => moment.max(attributes.changed),
            None => attributes.changed,
        };
        // Pages that have no place yet.
        let pages = file.pages.values().filter(|page| page.is_new()).count() as u64;
        Attributes { size, modified, changed, sectors: attributes.sectors + pages, ..attributes }
    }

    /// The caller does not know an inode any more.
    pub(super) fn forget(&mut self, inode: u64, count: u64) {
        let Some(known) = self.files.0.get_mut(&inode) else { return };
        known.lookups = known.lookups.saturating_sub(count);
        self.let_go(inode);
    }

    /// An inode without names that no caller knows goes.
    pub(super) fn let_go(&mut self, inode: u64) {
        if self.files.lookups(inode) > 0 {
            return;
        }
        if let Some(file) = self.files.get_mut(inode)
            && file.is_orphan
        {
            let pages = std::mem::take(&mut file.pages);
            (file.size, file.modified) = (None, None);
            file.version += 1;
            self.dirty -= pages.values().filter(|page| page.is_dirty).count() as u64;
            let job = self.new_job(Job::Orphan { inode });
            self.ready.push_back(job);
        }
        self.drop_file(inode);
    }

    /// Pages that no transaction has cannot be brought into one: the next sync of the file says so.
    pub(super) fn give_up_pages(&mut self, inode: u64, errno: Errno) {
        self.end_early(inode, Pages { from: 0, to: u64::MAX });
        let Some(file) = self.files.get_mut(inode) else { return };
        let before = file.pages.len();
        file.pages.retain(|_, page| !page.is_dirty);
        self.dirty -= (before - file.pages.len()) as u64;
        (file.size, file.modified) = (None, None);
        (file.version, file.error) = (file.version + 1, Some(errno));
        self.not_written = Some(errno);
        self.actions.push_back(Action::Event(Event::NotWritten { inode }));
    }

    /// Forgets what is in memory of a file if that is nothing.
    pub(super) fn drop_file(&mut self, inode: u64) {
        if self.rewriting.has(inode) {
            return; // Its version tells whether it was changed.
        }
        // As long as it is known, it is known how it is read, and what a sync has to say.
        let is_known = self.files.lookups(inode) > 0;
        let is_nothing = |file: &File| {
            !(is_known && (file.is_orphan || file.error.is_some() || file.stream.has_begun()))
                && file.pages.is_empty()
                && file.size.is_none()
                && file.modified.is_none()
                && !file.is_flushing
                && !file.is_cut
                && file.waiting.is_empty()
                && file.after_cut.is_empty()
                && file.stream.is_idle()
        };
        if self.files.get(inode).is_none_or(is_nothing) {
            self.files.close(inode);
            self.touched.remove(&inode);
        }
    }

    /// The size of a file was set in its inode: what is beyond is cut off.
    pub(super) fn note_size_set(&mut self, inode: u64, size: u64) {
        self.cut_pages(inode, size);
        let file = self.file(inode);
        file.size = None;
        file.is_cut = true;
        let job = self.new_job(Job::Orphan { inode });
        self.ready.push_back(job);
    }

    /// Pages in memory beyond a size are there no more.
    pub(super) fn cut_pages(&mut self, inode: u64, size: u64) {
        self.end_early(inode, Pages { from: size.div_ceil(PAGE), to: u64::MAX });
        let file = self.files.open(inode);
        file.version += 1;
        let gone = file.pages.split_off(&size.div_ceil(PAGE));
        self.dirty -= gone.values().filter(|page| page.is_dirty).count() as u64;
    }
}

#[cfg(test)]
mod tests;
