//! What was written to files comes into a transaction: it gets its place, and goes there directly, or into the journal first.
//!
//! ```text
//!   many pages side by side, or all of a coding extent --> new coding extents, written at once with their redundancy,
//!                                                          while nothing points to them (EN2)
//!   few pages                                          --> their places, old or new; their bytes go into the journal, and to
//!                                                          their places later, with the redundancy (`places`)
//! ```
//!
//! # Invariants
//!
//! - FL1. A transaction in which pages leave their place has their new places, and their bytes are in these or in the journal.
//! - FL2. A coding extent that is to be written directly stays as it was laid out until its checksums are set: grown, its redundancy
//!   would have the place, and the checksums, of new data.

use std::sync::Arc;

use levelhead_block::{Buf, Durability, Piece, Reply};
use levelhead_units::{Lba, Sectors};

use super::complements::{Brought, Complements, NewSector, OpenBlocks, lay_out};
use super::files::{Early, Page};
use super::job::{Job, JobId, PAGE};
use super::repairs::Worn;
use super::{Attempted, Filesystem, Logged, Purpose, SubId, is_stored};
use crate::attempt::{Attempt, Stop};
use crate::format::extent::{CodingExtent, PagePlace, Window};
use crate::format::inode::{FileKind, Inode, InodePlace, Moment};
use crate::ops::extents::{DIRECT_MIN, Mapped, Pages};
use crate::request::Errno;
use crate::sums::sum_of;
use crate::tree::Owned;

/// The most pages that one attempt brings into a transaction: 16 MiB.
const PAGES_MAX: usize = 4_096;

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
    logged: Vec<LoggedSector>,
    /// The pages that these have.
    logged_pages: Vec<u64>,
    /// Whether pages of kind B are written that were written before.
    has_changed_b: bool,
    /// How many of the pages, from the first on.
    pages: usize,
}

/// What comes next for a page.
enum Found {
    /// Something has changed: it is looked at again.
    Nothing,
    /// The journal has no room for it.
    NoRoom,
    /// A new coding extent, to be written directly.
    Direct(CodingExtent),
    /// A place for it and some that follow it, by way of the journal.
    Logged(Window),
}

/// A coding extent that is written as a whole.
#[derive(Debug)]
struct DirectExtent {
    extent: CodingExtent,
    page: u64,
}

/// A sector that goes into the journal first.
#[derive(Debug)]
struct LoggedSector {
    new: NewSector,
    sum: u32,
    old: Option<u32>,
}

/// Pages that are given their places.
struct Placed<'a> {
    /// Places that are left.
    worn: &'a Worn,
    dirty: &'a [Dirty],
    complements: &'a Complements,
    /// How many sectors may go into the journal.
    logged_max: usize,
    /// Bytes of the file before.
    size: u64,
    /// Whether pages leave their places only as far as the journal has room for all of them.
    is_careful: bool,
    /// The page behind the last one that has left its place.
    left_to: u64,
    plan: FlushPlan,
    blocks: OpenBlocks,
}

impl Placed<'_> {
    /// How many more sectors may go into the journal.
    fn room(&self) -> usize {
        let open = self.blocks.sectors();
        self.logged_max.saturating_sub(self.plan.logged.len() + open)
    }

    /// How many pages the journal has room for, however far apart they come to lie.
    fn alone_max(&self, kind: FileKind) -> u64 {
        let complements = kind.blocks().map_or(0, |blocks| blocks.complements());
        self.room() as u64 / u64::from(1 + complements)
    }

    /// Whether a complementary sector of some pages of a window is lost (CP2).
    fn has_lost(&self, window: &Window) -> bool {
        window.extent.kind.blocks().is_some()
            && window.places().any(|place| match place {
                PagePlace::Whole(_) => false,
                PagePlace::Split(place) => {
                    self.complements.get(&place.complement).is_some_and(Option::is_none)
                }
            })
    }
}

/// What comes of a file into a transaction.
struct FileChange<'a> {
    /// Places that are left.
    worn: &'a Worn,
    number: u64,
    dirty: &'a [Dirty],
    logged_max: usize,
    /// Its new size, and when it was written.
    size: Option<u64>,
    modified: Option<Moment>,
    /// How many of its pages are dirty.
    all: usize,
}

impl Attempt<'_> {
    /// Gives pages of a file their places, and its inode what goes along with them.
    fn place_change(
        &mut self,
        change: &FileChange<'_>,
        complements: &Complements,
        is_careful: bool,
    ) -> Result<FlushPlan, Stop> {
        let &FileChange { worn, number, dirty, logged_max, size, modified, all } = change;
        let mut inode = self.inode(number)?;
        let mut placed = Placed {
            worn,
            dirty,
            complements,
            logged_max,
            size: inode.size,
            is_careful,
            left_to: 0,
            plan: FlushPlan::default(),
            blocks: OpenBlocks::default(),
        };
        self.place_pages(&mut Owned { number, inode: &mut inode }, &mut placed)?;
        let mut plan = placed.plan;
        if let Some(moment) = modified {
            inode.modified = moment;
            inode.changed = inode.changed.max(moment);
        }
        plan.has_changed_b &= inode.kind == FileKind::B;
        if plan.has_changed_b {
            inode.kind = FileKind::Mutable;
        }
        let reached = match plan.pages == all {
            true => u64::MAX,
            false => dirty[..plan.pages].last().map_or(0, |last| (last.page + 1) * PAGE),
        };
        inode.size = size.map_or(inode.size, |size| size.min(reached.max(inode.size)));
        self.set_inode(number, &inode)?;
        Ok(plan)
    }

    /// Gives pages their places.
    fn place_pages(&mut self, of: &mut Owned<'_>, placed: &mut Placed<'_>) -> Result<(), Stop> {
        let dirty = placed.dirty;
        let mut at = 0;
        while at < dirty.len() {
            let page = dirty[at].page;
            let run =
                dirty[at..].iter().zip(page..).take_while(|(dirty, page)| dirty.page == *page);
            let run_end = page + run.count() as u64;
            let found = match self.window_at(of.number, of.inode, page)? {
                Some(mapped) => {
                    self.place_over(of, placed, mapped, Pages { from: page, to: run_end })?
                }
                None => self.place_in_hole(of, placed, Pages { from: page, to: run_end })?,
            };
            match found {
                Found::Nothing => {}
                Found::NoRoom => break,
                Found::Direct(extent) => {
                    at += extent.pages() as usize;
                    placed.plan.direct.push(DirectExtent { extent, page });
                }
                Found::Logged(window) => {
                    let count = self.log_pages(placed, &window, at)?;
                    if count == 0 {
                        break;
                    }
                    at += count;
                }
            }
        }
        placed.plan.pages = at;
        if dirty.get(at).is_some_and(|dirty| dirty.page < placed.left_to) {
            // FL1: they would be in no place at all.
            return Err(Stop::Fail(Errno::NoSpace));
        }
        // CP1
        for new in std::mem::take(&mut placed.blocks).close() {
            self.log(&mut placed.plan, new)?;
        }
        Ok(())
    }

    /// Pages that have a place already: they keep it, or leave it for another one.
    fn place_over(
        &mut self,
        of: &mut Owned<'_>,
        placed: &mut Placed<'_>,
        mapped: Mapped,
        run: Pages,
    ) -> Result<Found, Stop> {
        let Pages { from: page, to } = run;
        let (end, extent) = (mapped.end().min(to), mapped.window.extent);
        let is_all = mapped.page == page && end == mapped.end();
        let is_much = Pages { from: page, to: end }.are_many();
        let kind = self.superblock.kind_of_extents(of.inode.kind);
        let moves = match extent.kind == kind {
            true => is_all && is_much && mapped.window == Window::whole(extent),
            false => is_all || is_much,
        };
        let window = mapped.window.part((page - mapped.page) as u32, (end - page) as u32);
        let must_move = placed.has_lost(&window) || placed.worn.has_any(extent.all());
        let to = match placed.is_careful {
            true => end.min(page + placed.alone_max(kind)),
            false => end,
        };
        // What moves because its place, its block or its kind is not right for it goes a part at a time, if need be.
        let is_wrong = must_move || (moves && extent.kind != kind);
        if is_wrong && to == page {
            return Ok(Found::NoRoom);
        }
        if is_wrong || (moves && to == end) {
            self.cut_out(of, Pages { from: page, to }, usize::MAX)?;
            placed.left_to = to;
            return Ok(Found::Nothing);
        }
        Ok(Found::Logged(window))
    }

    /// Pages that have none.
    fn place_in_hole(
        &mut self,
        of: &mut Owned<'_>,
        placed: &Placed<'_>,
        run: Pages,
    ) -> Result<Found, Stop> {
        let Pages { from: page, to } = run;
        let after = self.tree_next(of.number, of.inode, page)?;
        let count = after.map_or(to, |pair| pair.key.min(to)) - page;
        let blocks = self.superblock.kind_of_extents(of.inode.kind).blocks();
        let least = 1 + blocks.map_or(0, |blocks| blocks.complements() as usize);
        if count < DIRECT_MIN && placed.room() < least {
            return Ok(Found::NoRoom);
        }
        if let Some(mapped) = self.grow(of, placed, Pages { from: page, to: page + count })? {
            return Ok(Found::Logged(mapped.window));
        }
        let near = self.near(of, page)?;
        let extent = self.new_extent(of.inode, near, count)?;
        let window = Window::whole(extent);
        self.add_window(of, Mapped { page, window })?;
        Ok(match u64::from(extent.pages()) >= DIRECT_MIN {
            true => Found::Direct(extent),
            false => Found::Logged(window),
        })
    }

    /// Pages go into the journal, as many as there is room for; returns how many.
    fn log_pages(
        &mut self,
        placed: &mut Placed<'_>,
        window: &Window,
        from: usize,
    ) -> Result<usize, Stop> {
        let dirty = placed.dirty;
        let mut count = 0;
        for (place, dirty) in window.places().zip(&dirty[from..]) {
            let (needs, is_known) = match &place {
                PagePlace::Whole(_) => (1, true),
                PagePlace::Split(place) => {
                    let is_known = placed.blocks.has(place)
                        || placed.complements.contains_key(&place.complement)
                        || self.sum(place.complement)?.is_none();
                    (1 + placed.blocks.sectors_for(place), is_known)
                }
            };
            // CP2
            if needs > placed.room() || !is_known {
                break;
            }
            let new = match place {
                PagePlace::Whole(lba) => {
                    NewSector { lba, bytes: dirty.bytes.clone(), extent: window.extent }
                }
                PagePlace::Split(place) => {
                    // The last page of a file that grows is written more than once.
                    placed.plan.has_changed_b |= window.extent.kind == FileKind::B
                        && (dirty.page + 1) * PAGE < placed.size
                        && self.sum(place.primary)?.is_some();
                    let known = placed.complements.get(&place.complement);
                    let known = known.and_then(Option::as_ref);
                    placed.blocks.put(window.extent, place, dirty.bytes.bytes(), known)
                }
            };
            self.log(&mut placed.plan, new)?;
            placed.plan.logged_pages.push(dirty.page);
            count += 1;
        }
        Ok(count)
    }

    fn log(&mut self, plan: &mut FlushPlan, new: NewSector) -> Result<(), Stop> {
        let sum = sum_of(self.superblock.filesystem(), new.lba, new.bytes.bytes());
        let old = self.sum(new.lba)?;
        self.set_sum(new.lba, Some(sum))?;
        plan.logged.push(LoggedSector { new, sum, old });
        Ok(())
    }

    /// Lets the coding extent right before a few pages grow over them.
    fn grow(
        &mut self,
        of: &mut Owned<'_>,
        placed: &Placed<'_>,
        pages: Pages,
    ) -> Result<Option<Mapped>, Stop> {
        let Pages { from: page, to } = pages;
        if page == 0 || pages.are_many() {
            return Ok(None);
        }
        let Some(before) = self.window_at(of.number, of.inode, page - 1)? else { return Ok(None) };
        let old = before.window.extent;
        // FL2
        let is_on_its_way = placed.plan.direct.iter().any(|direct| direct.extent == old);
        if before.window != Window::whole(old) || is_on_its_way {
            return Ok(None);
        }
        let Some(extent) = self.grow_extent(of.inode, &old, to - page)? else { return Ok(None) };
        self.add_window(of, Mapped { page: before.page, window: Window::whole(extent) })?;
        let window = Window { extent, skip: old.pages(), count: extent.pages() - old.pages() };
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
            page += u64::from(extent.pages());
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
        self.files.get(number).is_some_and(|file| {
            file.size.is_some() || file.modified.is_some() || file.pages.values().any(Page::is_new)
        })
    }

    pub(super) fn run_flush(&mut self, id: JobId, number: u64) {
        if self.waits_for_cut(number, id) {
            return self.keep(id, Job::Flush { inode: number });
        }
        let Some(file) = self.files.get(number) else { return };
        let is_orphan = file.is_orphan && self.files.lookups(number) == 0;
        let brings_early = self.brings_early(number);
        if !(self.is_dirty(number) || brings_early) || is_orphan || self.is_read_only() {
            self.page_reads.remove(&id);
            return self.end_flush(number);
        }
        if !brings_early && matches!(self.come_early(id, number), Attempted::Waits) {
            return self.keep(id, Job::Flush { inode: number });
        }
        // Where the journal wants room, only those come in that it has already.
        let is_filling = brings_early && self.journal.is_filling();
        let comes = |page: &Page| match page.is_early() {
            true => brings_early || page.is_new(),
            false => page.is_dirty && !is_filling,
        };
        let file = self.files.get(number).expect("it is being flushed");
        let mut dirty: Vec<Dirty> = file
            .pages
            .iter()
            .filter(|(_, page)| comes(page))
            .take(PAGES_MAX)
            .map(|(&page, known)| Dirty { page, bytes: known.bytes.clone() })
            .collect();
        let (size, modified) = (file.size, file.modified);
        let all = file.pages.values().filter(|page| page.is_new() || comes(page)).count();
        let logged_max = self.running.logged_room(&self.journal);
        let pages: Vec<u64> = dirty.iter().map(|dirty| dirty.page).collect();
        let attempted = match self.complements(id, number, &pages) {
            Attempted::Complete(Brought { complements, later }) => {
                dirty.retain(|dirty| !later.contains(&dirty.page));
                let worn = &self.repairs.worn.clone();
                let change =
                    FileChange { worn, number, dirty: &dirty, logged_max, size, modified, all };
                let mut place = |is_careful| {
                    self.attempt(id, |attempt| {
                        attempt.place_change(&change, &complements, is_careful)
                    })
                };
                match place(false) {
                    Attempted::Failed(Errno::NoSpace) => place(true),
                    attempted => attempted,
                }
            }
            Attempted::Waits => Attempted::Waits,
            Attempted::Failed(errno) => Attempted::Failed(errno),
        };
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
        if plan.has_changed_b {
            self.rewrite_file(number);
        }
        let is_all = plan.pages == all;
        let brought = plan.pages;
        self.write_directly(id, number, &dirty, &plan);
        let record = self.running.record;
        let file = self.files.get_mut(number).expect("it is being flushed");
        file.has_read = false;
        for page in &plan.logged_pages {
            file.pages.remove(page).expect("it was dirty");
        }
        // Who reads other pages of their blocks has to look again.
        file.version += u64::from(plan.logged.len() > plan.logged_pages.len());
        for LoggedSector { new: NewSector { lba, bytes: page, extent }, sum, old } in plan.logged {
            // They stay until they are in their places, for half a minute and more.
            let page = page.packed();
            self.running.logged.insert(lba, page.clone());
            self.running.early.remove(&lba);
            self.early.end(lba, record);
            // What the journal has of it already is not in its place either.
            let old = self.logged.get(&lba).map_or(old, |known| known.old);
            self.logged.insert(lba, Logged { page, sum, old, record });
            self.running.stale.insert(extent.lba, extent);
            self.stale.change(extent, number, record);
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
            let (all, sums_before) = (extent.all(), sums.len());
            let first = dirty.partition_point(|dirty| dirty.page < *page);
            let data = &dirty[first..first + extent.pages() as usize];
            let data = lay_out(extent, data.iter().map(|dirty| &dirty.bytes));
            let symbols: Vec<&[u8]> = data.iter().map(Piece::bytes).collect();
            let mut redundant = Buf::zeroed(all.sectors - extent.data().sectors);
            self.codes.encode(self.settings.choices, extent, &symbols, redundant.as_mut_slice());
            let behind = redundant.as_slice().chunks(PAGE as usize);
            for (lba, bytes) in all.iter().zip(symbols.into_iter().chain(behind)) {
                sums.push((lba, sum_of(filesystem, lba, bytes)));
            }
            // Who changes a page while they are on their way has them from memory.
            for ((lba, sector), (_, sum)) in
                extent.data().iter().zip(&data).zip(&sums[sums_before..])
            {
                if extent.kind.blocks().is_some() && extent.page_of(lba).is_none() {
                    self.sectors.insert(lba, sector, *sum);
                }
            }
            let pages = Pages { from: *page, to: page + u64::from(extent.pages()) };
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
            data.into_iter().for_each(|sector| Piece::append(&mut run.pieces, sector));
            if extent.redundant > 0 {
                run.pieces.push(Piece::whole(Arc::new(redundant)));
            }
        }
        for DirectRun { lba, pieces, pages } in runs {
            let sub = self.submit_write(Purpose::Direct, lba, pieces, Durability::Cached);
            self.running.writes.insert(sub);
            self.running.had_direct = true;
            self.direct.insert(sub, DirectWrite { inode: number, pages });
            let file = self.files.get_mut(number).expect("it is being flushed");
            for (_, known) in file.pages.range_mut(pages.from..pages.to) {
                (known.is_dirty, known.early) = (false, Early::No);
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
        if let Some(file) = self.files.get_mut(number) {
            (file.is_flushing, file.brings_early, file.tries) = (false, false, 0);
            file.complements.clear();
            file.has_read = false;
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
        let Some(file) = self.files.get_mut(inode) else { return };
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

    /// Pages go to the disk when many wait, and at the end.
    pub(super) fn flush_on(&mut self) -> bool {
        let is_much = self.dirty > super::room::DIRTY_MAX / 2;
        let is_end = matches!(self.phase, super::Phase::Unmounting);
        if !(is_much || is_end) || self.is_read_only() {
            return false;
        }
        let has_begun = is_end && self.bring_early();
        let all = self.dirty_files();
        let may_begin = |inode: &u64| {
            self.files.get(*inode).is_some_and(|file| !file.is_flushing && !file.is_cut)
        };
        let dirty: Vec<u64> = all.into_iter().filter(may_begin).collect();
        for &number in &dirty {
            self.begin_flush(number);
        }
        has_begun || !dirty.is_empty()
    }
}

const _: () = assert!(DIRECT_MIN > 1 && Sectors::new(DIRECT_MIN).get() == 32);
