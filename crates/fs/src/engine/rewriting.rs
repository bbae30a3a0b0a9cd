//! A file whose pages do not lie as its kind has them, or in places that do not hold them, is written anew in the background, a part at a
//! time.
//!
//! ```text
//!   its kind was set, it was changed in place, a scrub has met it, or a sector of it has failed right after it was written anew
//!        --> the disk has nothing to do --> a part is read --> its pages count as written --> a flush gives them other places
//!                 ^                                                                                      |
//!                 +--------------------------------------------------------------------------------------+
//! ```
//!
//! What the pages hold does not change, so times and size stay. An unmount still has files leave places that do not hold them, up to 64 MiB.
//! What is not done then is left: the next scrub finds it.

use std::collections::BTreeMap;
use std::mem::take;

use levelhead_units::{Instant, Lba, Nanos};

use super::files::{Early, Page};
use super::job::{Job, JobId, RewrittenPart};
use super::plan::{Plan, Source};
use super::{Attempted, Filesystem, Phase};
use crate::action::{Action, Event};
use crate::format::extent::CodingExtent;
use crate::ops::extents::{Mapped, Pages};

/// How long the disk must have had nothing to do.
const QUIET: Nanos = Nanos::from_secs(1);

/// The most pages that are read at a time: 4 MiB.
const PART_MAX: u64 = 1_024;

/// The most pages that an unmount still writes, of files that leave places: 64 MiB.
const AT_END_MAX: u64 = 1 << 14;

/// The most windows that are looked at in one attempt.
const WINDOWS_MAX: usize = 64;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Rewriting {
    files: BTreeMap<u64, Course>,
    job: Option<JobId>,
    /// When the disk has had nothing to do for long enough.
    at: Option<Instant>,
    /// Pages that an unmount has written.
    at_end: u64,
}

/// How far a file has come.
#[derive(Debug, Default)]
struct Course {
    /// The page with which it goes on.
    next: u64,
    /// More of it has been found since it began: it begins anew when it is through.
    is_again: bool,
    /// Whether it lies in places that do not hold it.
    is_leaving: bool,
}

/// What is to be rewritten next of a file.
struct Next {
    pages: Pages,
    /// Nothing if it is as it should be.
    plan: Option<Plan>,
}

/// The first pages of some windows that follow one another, as many as are read at a time.
fn together<'a>(windows: impl Iterator<Item = &'a Mapped>) -> Option<Pages> {
    let mut all: Option<Pages> = None;
    for mapped in windows {
        let Pages { from, to } = *all.get_or_insert(Pages { from: mapped.page, to: mapped.page });
        if to != mapped.page || to - from >= PART_MAX {
            break;
        }
        all = Some(Pages { from, to: mapped.end().min(from + PART_MAX) });
    }
    all
}

impl Rewriting {
    /// When something is to be done.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.at
    }

    fn add(&mut self, inode: u64) -> &mut Course {
        let is_under_way = self.job.is_some();
        let course = self.files.entry(inode).or_default();
        course.is_again = is_under_way || course.next > 0;
        course
    }

    /// The file that is next, and the page with which it goes on; at the end only if it leaves places.
    fn next(&self, is_end: bool) -> Option<(u64, u64)> {
        let may_begin = !is_end || self.at_end < AT_END_MAX;
        let mut files = self.files.iter().filter(|(_, course)| course.is_leaving || !is_end);
        files.next().filter(|_| may_begin).map(|(&inode, course)| (inode, course.next))
    }

    /// Whether an unmount waits for files that leave places.
    pub(super) fn is_left_at_end(&self) -> bool {
        self.next(true).is_some()
    }

    /// Whether a part of a file is on its way.
    pub(super) fn has(&self, inode: u64) -> bool {
        self.job.is_some() && self.files.contains_key(&inode)
    }
}

impl Filesystem {
    /// A file may not lie as its kind has it.
    pub(super) fn rewrite_file(&mut self, inode: u64) {
        if self.superblock.forced.is_some() && !self.is_read_only() {
            self.rewriting.add(inode);
        }
    }

    /// A sector of a file has failed right after it was written anew: what lies in its coding extent goes elsewhere.
    pub(super) fn leave_place(&mut self, inode: u64, lba: Lba) {
        if !self.is_read_only() {
            self.actions.push_back(Action::Event(Event::Worn { lba, inode }));
            self.leave_places(inode);
        }
    }

    /// What lies in coding extents with sectors whose places do not hold them goes elsewhere.
    pub(super) fn leave_places(&mut self, inode: u64) {
        self.rewriting.add(inode).is_leaving = true;
    }

    /// Goes on with what is to be rewritten, if it is time.
    pub(super) fn rewrite_files_on(&mut self, now: Instant) -> bool {
        let is_end = matches!(self.phase, Phase::Unmounting);
        let next = self.rewriting.next(is_end);
        let may_begin = (is_end || matches!(self.phase, Phase::Mounted)) && !self.is_read_only();
        let Some((inode, from)) = next.filter(|_| may_begin && self.rewriting.job.is_none()) else {
            self.rewriting.at = None;
            return false;
        };
        if !self.subs.is_empty() {
            self.rewriting.at = Some(now + QUIET);
            return false;
        }
        if !is_end && *self.rewriting.at.get_or_insert(now + QUIET) > now {
            return false;
        }
        let pages = Pages { from, to: from };
        let version = self.version(inode);
        let job = self.new_job(Job::Rewrite(RewrittenPart { inode, pages, version }));
        self.rewriting.job = Some(job);
        self.ready.push_back(job);
        true
    }

    pub(super) fn run_rewrite(&mut self, id: JobId, part: RewrittenPart) {
        let RewrittenPart { inode, pages, version } = part;
        let goes_on = matches!(self.phase, Phase::Mounted | Phase::Unmounting);
        let is_over = !goes_on || self.is_read_only();
        if is_over || !self.rewriting.files.contains_key(&inode) {
            return self.end_rewrite(id, inode, None);
        }
        if self.is_reading(id) {
            self.keep(id, Job::Rewrite(part));
            return self.go_on_reading(id);
        }
        if let Some(read) = self.take_sectors(id) {
            if self.version(inode) == version {
                for (page, source) in (pages.from..).zip(&read.plan.sources) {
                    // What is lost stays where it is, and so does what was never written.
                    if !matches!(source, Source::Zero)
                        && let Some(bytes) = read.page(source)
                    {
                        self.put_again(inode, page, bytes);
                    }
                }
                if matches!(self.phase, Phase::Unmounting) {
                    self.rewriting.at_end += pages.to - pages.from;
                }
                self.end_rewrite(id, inode, Some(pages.to));
                self.file(inode).brings_early = true;
                return self.begin_flush(inode);
            }
            return self.end_rewrite(id, inode, Some(pages.from));
        }
        if self.waits_for_cut(inode, id) {
            return self.keep(id, Job::Rewrite(part));
        }
        match self.next_part(id, inode, pages.from) {
            Attempted::Waits => self.keep(id, Job::Rewrite(part)),
            Attempted::Failed(_) | Attempted::Complete(None) => self.end_rewrite(id, inode, None),
            Attempted::Complete(Some(Next { pages, plan: None })) => {
                self.end_rewrite(id, inode, Some(pages.to));
            }
            Attempted::Complete(Some(Next { pages, plan: Some(mut plan) })) => {
                self.find_in_memory(inode, pages.from, &mut plan);
                let part = RewrittenPart { inode, pages, version: self.version(inode) };
                self.keep(id, Job::Rewrite(part));
                self.read_sectors(id, plan);
            }
        }
    }

    /// The next pages that do not lie as they should; nothing behind the last ones, or if there is no room for them.
    fn next_part(&mut self, id: JobId, inode: u64, from: u64) -> Attempted<Option<Next>> {
        let kept = self.kept_from_files() + PART_MAX * self.page_cost;
        let worn = self.repairs.worn.clone();
        self.attempt(id, |attempt| {
            let known = attempt.inode(inode)?;
            let is_crowded = attempt.free_in_all()? < kept;
            if !known.is_file() || known.links == 0 || is_crowded {
                return Ok(None);
            }
            let kind = attempt.superblock.kind_of_extents(known.kind);
            let all = Pages { from, to: u64::MAX };
            let windows = attempt.windows(inode, &known, all, WINDOWS_MAX)?;
            let Some(last) = windows.last() else { return Ok(None) };
            let to = last.end();
            let is_wrong =
                |extent: &CodingExtent| extent.kind != kind || worn.has_any(extent.all());
            let are_wrong = |mapped: &&Mapped| is_wrong(&mapped.window.extent);
            let wrong =
                windows.iter().skip_while(|mapped| !are_wrong(mapped)).take_while(are_wrong);
            let Some(pages) = together(wrong) else {
                return Ok(Some(Next { pages: Pages { from, to }, plan: None }));
            };
            let plan = attempt.plan(inode, &known, pages)?;
            Ok(Some(Next { pages, plan: Some(plan) }))
        })
    }

    /// A page counts as written, unless it was.
    fn put_again(&mut self, inode: u64, page: u64, bytes: levelhead_block::Piece) {
        let file = self.file(inode);
        if let std::collections::btree_map::Entry::Vacant(vacant) = file.pages.entry(page) {
            let (is_dirty, early, writes) = (true, Early::No, std::collections::BTreeSet::new());
            vacant.insert(Page { bytes, is_dirty, early, writes });
            file.version += 1;
            self.dirty += 1;
        }
    }

    /// A part is over: `next` is the page with which the file goes on; none, and the file is through.
    fn end_rewrite(&mut self, id: JobId, inode: u64, next: Option<u64>) {
        self.page_reads.remove(&id);
        (self.rewriting.job, self.rewriting.at) = (None, None);
        if let Some(course) = self.rewriting.files.get_mut(&inode) {
            if next.is_some() || take(&mut course.is_again) {
                course.next = next.unwrap_or(0);
            } else {
                self.rewriting.files.remove(&inode);
            }
        }
        self.drop_file(inode);
    }
}

#[cfg(test)]
mod tests;
