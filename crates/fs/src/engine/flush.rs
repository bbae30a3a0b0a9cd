//! What was written to files comes into a transaction: it gets its place, and goes there directly, or into the journal first.
//!
//! ```text
//!   many pages side by side, or all of a coding extent --> new coding extents, written at once with their redundancy,
//!                                                          while nothing points to them (EN2)
//!   few pages                                          --> their places, old or new; their bytes go into the journal, and to
//!                                                          their places later, with the redundancy (`places`)
//! ```

use std::sync::Arc;

use levelhead_block::{Buf, Durability, Piece, Reply};
use levelhead_units::{Lba, Sectors};

use super::job::{Job, JobId, PAGE};
use super::places::StaleExtent;
use super::{Attempted, Filesystem, Logged, Purpose, SubId, is_stored};
use crate::attempt::{Attempt, Stop};
use crate::format::extent::{CodingExtent, Window};
use crate::format::inode::{Inode, InodePlace};
use crate::ops::extents::{Mapped, Pages};
use crate::request::Errno;
use crate::sums::sum_of;
use crate::tree::Owned;

/// The most pages that one attempt brings into a transaction: 16 MiB.
const PAGES_MAX: usize = 4_096;

/// Fewer pages than this go into the journal first: 128 KiB, which takes as long to write as to come to another place.
const DIRECT_MIN: u64 = 32;

/// How often a flush waits for a commit to bring room.
const TRIES_MAX: u8 = 4;

/// A page and its bytes.
#[derive(Clone, Debug)]
struct Dirty {
    page: u64,
    bytes: Piece,
}

/// What a direct write has of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct DirectWrite {
    inode: u64,
    pages: Pages,
}

/// Coding extents that follow one another on the disk and in their file, and are written with one command.
struct DirectRun {
    lba: Lba,
    pieces: Vec<Piece>,
    pages: Pages,
}

impl DirectRun {
    fn sectors(&self) -> Sectors {
        Piece::count(&self.pieces)
    }

    fn end(&self) -> Lba {
        self.lba + self.sectors()
    }
}

/// The most sectors of one command: 4 MiB.
const COMMAND_MAX: Sectors = Sectors::new(1_024);

impl DirectWrite {
    pub(super) fn pages(&self) -> u64 {
        self.pages.to - self.pages.from
    }
}

/// What becomes of pages.
#[derive(Debug, Default)]
struct FlushPlan {
    direct: Vec<DirectExtent>,
    logged: Vec<LoggedPage>,
    /// How many of the pages, from the first on.
    pages: usize,
}

/// A coding extent that is written as a whole.
#[derive(Debug)]
struct DirectExtent {
    extent: CodingExtent,
    page: u64,
}

#[derive(Debug)]
struct LoggedPage {
    page: u64,
    lba: Lba,
    sum: u32,
    old: Option<u32>,
    extent: CodingExtent,
}

impl Attempt<'_> {
    /// Gives pages their places. At most `logged_max` of them may go into the journal.
    fn place_pages(
        &mut self,
        of: &mut Owned<'_>,
        dirty: &[Dirty],
        logged_max: usize,
    ) -> Result<FlushPlan, Stop> {
        let filesystem = self.superblock.filesystem();
        let mut plan = FlushPlan::default();
        let mut at = 0;
        while at < dirty.len() {
            let page = dirty[at].page;
            let run =
                dirty[at..].iter().zip(page..).take_while(|(dirty, page)| dirty.page == *page);
            let run_end = page + run.count() as u64;
            let room = (logged_max - plan.logged.len()) as u64;
            let window = match self.window_at(of.number, of.inode, page)? {
                Some(mapped) => {
                    let end = mapped.end().min(run_end);
                    let is_whole = mapped.page == page
                        && end == mapped.end()
                        && mapped.window == Window::whole(mapped.window.extent);
                    if is_whole && end - page >= DIRECT_MIN {
                        self.cut_out(of, Pages { from: page, to: end }, usize::MAX)?;
                        continue;
                    }
                    Mapped {
                        page,
                        window: mapped
                            .window
                            .part((page - mapped.page) as u32, (end - page) as u32),
                    }
                }
                None => {
                    let after = self.tree_next(of.number, of.inode, page)?;
                    let hole_end = after.map_or(run_end, |pair| pair.key.min(run_end));
                    let count = hole_end - page;
                    if count < DIRECT_MIN && room == 0 {
                        break;
                    }
                    match self.grow(of, page, count)? {
                        Some(mapped) => mapped,
                        None => {
                            let near = self.near(of, page)?;
                            let extent = self.new_extent(of.inode, near, count)?;
                            let mapped = Mapped { page, window: Window::whole(extent) };
                            self.add_window(of, mapped)?;
                            if u64::from(extent.data) >= DIRECT_MIN {
                                at += extent.data as usize;
                                plan.direct.push(DirectExtent { extent, page });
                                continue;
                            }
                            mapped
                        }
                    }
                }
            };
            if room == 0 {
                break;
            }
            let count = u64::from(window.window.count).min(room) as usize;
            for (dirty, lba) in dirty[at..at + count].iter().zip(window.window.data().iter()) {
                let sum = sum_of(filesystem, lba, dirty.bytes.bytes());
                let old = self.sum(lba)?;
                self.set_sum(lba, Some(sum))?;
                let extent = window.window.extent;
                plan.logged.push(LoggedPage { page: dirty.page, lba, sum, old, extent });
            }
            at += count;
        }
        plan.pages = at;
        Ok(plan)
    }

    /// Lets the coding extent right before a page grow over a few pages.
    fn grow(&mut self, of: &mut Owned<'_>, page: u64, count: u64) -> Result<Option<Mapped>, Stop> {
        if page == 0 || count >= DIRECT_MIN {
            return Ok(None);
        }
        let Some(before) = self.window_at(of.number, of.inode, page - 1)? else { return Ok(None) };
        let old = before.window.extent;
        if before.window != Window::whole(old) {
            return Ok(None);
        }
        let Some(extent) = self.grow_extent(of.inode, &old, count)? else { return Ok(None) };
        self.add_window(of, Mapped { page: before.page, window: Window::whole(extent) })?;
        let window = Window { extent, skip: old.data, count: extent.data - old.data };
        Ok(Some(Mapped { page, window }))
    }

    /// Where a new coding extent would lie best: behind the one before it, or near its inode.
    fn near(&mut self, of: &Owned<'_>, page: u64) -> Result<Lba, Stop> {
        let before = match page.checked_sub(1) {
            Some(before) => self.window_at(of.number, of.inode, before)?,
            None => None,
        };
        Ok(match before {
            Some(mapped) => mapped.window.extent.all().end(),
            None => InodePlace::of(of.number).lead,
        })
    }

    /// Room for the holes in some pages, as many as `most` coding extents; whether all have it then.
    pub(super) fn fill_holes(
        &mut self,
        number: u64,
        pages: Pages,
        most: usize,
    ) -> Result<bool, Stop> {
        let mut inode: Inode = self.inode(number)?;
        let mut page = pages.from;
        for _ in 0..most {
            while page < pages.to
                && let Some(mapped) = self.window_at(number, &inode, page)?
            {
                page = mapped.end();
            }
            if page >= pages.to {
                break;
            }
            let after = self.tree_next(number, &inode, page)?;
            let end = after.map_or(pages.to, |pair| pair.key.min(pages.to));
            let mut of = Owned { number, inode: &mut inode };
            let near = self.near(&of, page)?;
            let extent = self.new_extent(of.inode, near, end - page)?;
            self.add_window(&mut of, Mapped { page, window: Window::whole(extent) })?;
            page += u64::from(extent.data);
        }
        self.set_inode(number, &inode)?;
        Ok(page >= pages.to)
    }
}

impl Filesystem {
    /// Begins to bring a file's pages into a transaction, if that is not under way.
    pub(super) fn begin_flush(&mut self, number: u64) {
        let file = self.file(number);
        if !file.is_flushing {
            file.is_flushing = true;
            let job = self.new_job(Job::Flush { inode: number });
            self.ready.push_back(job);
        }
    }

    /// Whether something of a file is in no transaction.
    pub(super) fn is_dirty(&self, number: u64) -> bool {
        self.files.get(&number).is_some_and(|file| {
            file.size.is_some()
                || file.modified.is_some()
                || file.pages.values().any(|page| page.is_dirty)
        })
    }

    pub(super) fn run_flush(&mut self, id: JobId, number: u64) {
        if self.waits_for_cut(number, id) {
            return self.keep(id, Job::Flush { inode: number });
        }
        let Some(file) = self.files.get(&number) else { return };
        let is_orphan = file.is_orphan && file.lookups == 0;
        if !self.is_dirty(number) || is_orphan || self.is_read_only() {
            return self.end_flush(number);
        }
        let dirty: Vec<Dirty> = file
            .pages
            .iter()
            .filter(|(_, page)| page.is_dirty)
            .take(PAGES_MAX)
            .map(|(&page, known)| Dirty { page, bytes: known.bytes.clone() })
            .collect();
        let (size, modified) = (file.size, file.modified);
        let all = file.pages.values().filter(|page| page.is_dirty).count();
        let logged_max = self.running.logged_room(&self.journal);
        let attempted = self.attempt(id, |attempt| {
            let mut inode = attempt.inode(number)?;
            let mut of = Owned { number, inode: &mut inode };
            let plan = attempt.place_pages(&mut of, &dirty, logged_max)?;
            if let Some(moment) = modified {
                inode.modified = moment;
                inode.changed = inode.changed.max(moment);
            }
            let reached = match plan.pages == all {
                true => u64::MAX,
                false => dirty[..plan.pages].last().map_or(0, |last| (last.page + 1) * PAGE),
            };
            inode.size = size.map_or(inode.size, |size| size.min(reached.max(inode.size)));
            attempt.set_inode(number, &inode)?;
            Ok(plan)
        });
        let plan = match attempted {
            Attempted::Complete(plan) => plan,
            Attempted::Waits => return self.keep(id, Job::Flush { inode: number }),
            Attempted::Failed(Errno::NoSpace) if self.waits_for_room(id, number) => {
                return self.keep(id, Job::Flush { inode: number });
            }
            Attempted::Failed(errno) => {
                self.give_up_pages(number, errno);
                return self.end_flush(number);
            }
        };
        let is_all = plan.pages == all;
        let brought = plan.pages;
        self.write_directly(id, number, &dirty, &plan);
        let record = self.running.record;
        let file = self.files.get_mut(&number).expect("it is being flushed");
        for logged in plan.logged {
            let page = file.pages.remove(&logged.page).expect("it was dirty");
            self.running.logged.insert(logged.lba, page.bytes.clone());
            // What the journal has of it already is not in its place either.
            let known = self.logged.get(&logged.lba);
            let old = known.map_or(logged.old, |known| known.old);
            let coming = Logged { page: page.bytes, sum: logged.sum, old, record };
            self.logged.insert(logged.lba, coming);
            self.running.stale.insert(logged.extent.lba, logged.extent);
            let stale = self.stale.entry(logged.extent.lba);
            stale
                .and_modify(|stale| stale.change(logged.extent, record))
                .or_insert_with(|| StaleExtent::new(logged.extent, record));
        }
        self.dirty -= brought as u64;
        if is_all {
            (file.size, file.modified) = (None, None);
            return self.end_flush(number);
        }
        if brought == 0 {
            // The journal has no room for more: the next transaction has.
            self.running.wants_commit = true;
            self.running.waiting.push(id);
        } else {
            self.ready.push_back(id);
        }
        self.keep(id, Job::Flush { inode: number });
    }

    /// Writes coding extents of which nothing was written before.
    fn write_directly(&mut self, id: JobId, number: u64, dirty: &[Dirty], plan: &FlushPlan) {
        let filesystem = self.superblock.filesystem();
        let mut sums: Vec<(Lba, u32)> = Vec::new();
        let mut runs: Vec<DirectRun> = Vec::new();
        for DirectExtent { extent, page } in &plan.direct {
            let all = extent.all();
            let first = dirty.partition_point(|dirty| dirty.page < *page);
            let data = &dirty[first..first + extent.data as usize];
            let symbols: Vec<&[u8]> = data.iter().map(|dirty| dirty.bytes.bytes()).collect();
            let mut redundant = Buf::zeroed(all.sectors - extent.data().sectors);
            self.codes.encode(self.settings.kernel, extent, &symbols, redundant.as_mut_slice());
            let behind = redundant.as_slice().chunks(PAGE as usize);
            for (lba, bytes) in all.iter().zip(symbols.into_iter().chain(behind)) {
                sums.push((lba, sum_of(filesystem, lba, bytes)));
            }
            let pages = Pages { from: *page, to: page + u64::from(extent.data) };
            let follows = |run: &DirectRun| {
                run.end() == extent.lba
                    && run.pages.to == pages.from
                    && run.sectors() + all.sectors <= COMMAND_MAX
            };
            if !runs.last().is_some_and(follows) {
                runs.push(DirectRun { lba: extent.lba, pieces: Vec::new(), pages });
            }
            let run = runs.last_mut().expect("there is one");
            run.pages.to = pages.to;
            data.iter().for_each(|dirty| Piece::append(&mut run.pieces, dirty.bytes.clone()));
            if extent.redundant > 0 {
                run.pieces.push(Piece::whole(Arc::new(redundant)));
            }
        }
        for DirectRun { lba, pieces, pages } in runs {
            let sub = self.submit_write(Purpose::Direct, lba, pieces, Durability::Cached);
            self.running.writes.insert(sub);
            self.running.had_direct = true;
            self.direct.insert(sub, DirectWrite { inode: number, pages });
            let file = self.files.get_mut(&number).expect("it is being flushed");
            for (_, known) in file.pages.range_mut(pages.from..pages.to) {
                known.is_dirty = false;
                known.writes.insert(sub);
            }
        }
        if sums.is_empty() {
            return;
        }
        let summed = self.attempt(id, |attempt| {
            sums.iter().try_for_each(|&(lba, sum)| attempt.set_sum(lba, Some(sum)))
        });
        assert!(matches!(summed, Attempted::Complete(())), "the sums have just been in memory");
    }

    /// Room was promised to every page, and what was freed lately is a part of it: whether a commit may bring some.
    fn waits_for_room(&mut self, id: JobId, number: u64) -> bool {
        let file = self.file(number);
        file.tries += 1;
        if file.tries > TRIES_MAX {
            return false;
        }
        if !self.running.is_empty() {
            self.running.wants_commit = true;
            self.running.waiting.push(id);
        } else if let Some(committing) = &mut self.committing {
            committing.waiting.push(id);
        } else {
            return false;
        }
        true
    }

    fn end_flush(&mut self, number: u64) {
        if let Some(file) = self.files.get_mut(&number) {
            (file.is_flushing, file.tries) = (false, 0);
            let waiting = std::mem::take(&mut file.waiting);
            self.ready.extend(waiting);
        }
        self.drop_file(number);
        self.relieve();
    }

    /// A direct write has ended: its pages need no memory any more.
    pub(super) fn handle_direct(&mut self, sub: SubId, reply: &Reply) {
        self.running.writes.remove(&sub);
        if let Some(committing) = &mut self.committing {
            committing.writes.remove(&sub);
        }
        let direct = self.direct.remove(&sub);
        if !is_stored(reply) {
            return self.break_down();
        }
        let Some(DirectWrite { inode, pages }) = direct else { return };
        let Some(file) = self.files.get_mut(&inode) else { return };
        let mut over = Vec::new();
        for (&page, known) in file.pages.range_mut(pages.from..pages.to) {
            let was_its = known.writes.remove(&sub);
            if was_its && !known.is_dirty && known.writes.is_empty() {
                over.push(page);
            }
        }
        over.into_iter().for_each(|page| drop(file.pages.remove(&page)));
        self.drop_file(inode);
        self.relieve();
    }

    /// Pages go to the disk when many wait, when it is time, and at the end.
    pub(super) fn flush_on(&mut self, now: levelhead_units::Instant) -> bool {
        let is_much = self.dirty > super::room::DIRTY_MAX / 2;
        let is_time = self.commit_at.is_some_and(|at| at <= now);
        let is_end = matches!(self.phase, super::Phase::Unmounting);
        if !(is_much || is_time || is_end) || self.is_read_only() {
            return false;
        }
        let dirty: Vec<u64> = self
            .files
            .iter()
            .filter(|(number, file)| !file.is_flushing && !file.is_cut && self.is_dirty(**number))
            .map(|(&number, _)| number)
            .collect();
        for &number in &dirty {
            self.begin_flush(number);
        }
        !dirty.is_empty()
    }
}

const _: () = assert!(DIRECT_MIN > 1 && Sectors::new(DIRECT_MIN).get() == 32);
