//! Bytes come into a file: into pages in memory, which are brought to the disk later.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use levelhead_block::{Buf, Piece};
use levelhead_units::{Instant, Sectors};

use super::files::{Early, Page};
use super::flush::DirectWrite;
use super::job::{Asking, Job, JobId, PAGE, later};
use super::plan::{Plan, zero_page};
use super::room::DIRTY_MAX;
use super::{Attempted, Filesystem};
use crate::action::Action;
use crate::attempt::Stop;
use crate::format::inode::FileKind;
use crate::ops::attributes::{Giver, check_size};
use crate::ops::extents::{Pages, holes_between};
use crate::request::{Allocation, Answer, Caller, Errno, What};

/// The step of a write after what is behind the file's end is zero, as long as the file's content is not changed by another request.
const TAIL_DONE: u8 = 8;

/// Steps of an allocation after which what is to be zero is: one for each end, and one for what lies between.
const ZEROED: u8 = 3;

/// A part of a file that is to have other bytes.
struct Edit<'a> {
    inode: u64,
    offset: u64,
    /// Nothing for zeroes.
    bytes: Option<&'a [u8]>,
    count: u64,
}

/// What an allocation is to know of a file.
struct Checked {
    size: u64,
    kind: FileKind,
    /// Free sectors of the filesystem.
    free: u64,
    has_rights: bool,
}

/// What has come of an edit.
enum Edited {
    Done,
    /// Pages are read for it.
    Waits,
    Failed(Errno),
}

/// Something has to come first; the job is ready again then.
struct Later;

impl Filesystem {
    pub(super) fn run_write(&mut self, now: Instant, id: JobId, mut asking: Box<Asking>) {
        let What::Write { bytes, .. } = &mut asking.request.what else {
            unreachable!("it is a write")
        };
        let brought = std::mem::take(bytes);
        match self.write(now, id, &mut asking, &brought) {
            Ok(answer) => {
                self.page_reads.remove(&id);
                self.reply(asking.request.id, answer);
            }
            Err(Later) => {
                if let What::Write { bytes, .. } = &mut asking.request.what {
                    *bytes = brought;
                }
                self.keep(id, Job::Request(asking));
            }
        }
    }

    fn write(
        &mut self,
        now: Instant,
        id: JobId,
        asking: &mut Asking,
        bytes: &[u8],
    ) -> Result<Answer, Later> {
        let What::Write { inode: number, offset, appends, .. } = asking.request.what else {
            unreachable!("it is a write")
        };
        if self.waits_for_cut(number, id) {
            return Err(Later);
        }
        let known = self.files.get(number).and_then(|file| file.size);
        let caller = asking.request.caller;
        let checked = self.attempt(id, |attempt| {
            let inode = attempt.inode(number)?;
            if !inode.is_file() {
                return Err(Stop::Fail(Errno::Invalid));
            }
            let size = known.unwrap_or(inode.size);
            Ok((size, attempt.free_in_all()?, attempt.has_rights(number, &inode, caller)?))
        });
        let (size, free, has_rights) = match checked {
            Attempted::Complete(checked) => checked,
            Attempted::Failed(errno) => return Ok(Answer::Failed(errno)),
            Attempted::Waits => return Err(Later),
        };
        self.free = Some(free);
        if self.is_read_only() {
            return Ok(Answer::Failed(Errno::ReadOnly));
        }
        let offset = if appends { size } else { offset };
        let end = offset.saturating_add(bytes.len() as u64);
        if let Err(errno) = check_size(end) {
            return Ok(Answer::Failed(errno));
        }
        if bytes.is_empty() {
            return Ok(Answer::Written(0));
        }
        // Room for all that is in memory is decided here, and not when it is too late.
        let pages = Pages { from: offset / PAGE, to: end.div_ceil(PAGE) };
        let left = free.saturating_sub(self.kept_from_files());
        let mut new = pages.to - pages.from;
        if new * self.page_cost > left {
            // What has a place already is overwritten there, if need be.
            new = match self.pages_without_place(id, number, pages) {
                Attempted::Complete(new) => new,
                Attempted::Failed(errno) => return Ok(Answer::Failed(errno)),
                Attempted::Waits => return Err(Later),
            };
        }
        if new * self.page_cost > left {
            if asking.step % TAIL_DONE < 2 {
                // What is in memory takes less than it may need, and what was freed comes back.
                asking.step += 1;
                self.sync_for(id, None);
                return Err(Later);
            }
            return Ok(Answer::Failed(Errno::NoSpace));
        }
        if self.is_crowded() {
            self.crowded.push(id);
            return Err(Later);
        }
        // The file may have got another end since: then something else is behind it.
        if asking.step < TAIL_DONE || asking.tail_of != self.version(number) {
            match self.zero_tail(id, asking, number, size, offset) {
                None => return Err(Later),
                Some(Err(errno)) => return Ok(Answer::Failed(errno)),
                Some(Ok(())) => {
                    asking.step = asking.step.max(TAIL_DONE);
                    asking.tail_of = self.version(number);
                }
            }
        }
        let edit = Edit { inode: number, offset, bytes: Some(bytes), count: bytes.len() as u64 };
        match self.edit(id, asking, &edit, size) {
            Edited::Waits => return Err(Later),
            Edited::Failed(errno) => return Ok(Answer::Failed(errno)),
            Edited::Done => {}
        }
        let day = asking.request.now;
        if has_rights {
            self.take_rights(id, number, caller);
        }
        let file = self.file(number);
        if end > size {
            file.size = Some(end);
        } else {
            file.size = file.size.or(Some(size));
        }
        file.modified = Some(file.modified.map_or(day, |known| later(known, day)));
        self.begin_commit_soon(now);
        Ok(Answer::Written(bytes.len() as u32))
    }

    /// How many of some pages have neither a place on the disk nor, in memory, the promise of one.
    fn pages_without_place(&mut self, id: JobId, number: u64, pages: Pages) -> Attempted<u64> {
        let mapped = self.attempt(id, |attempt| {
            let inode = attempt.inode(number)?;
            attempt.windows(number, &inode, pages, usize::MAX)
        });
        mapped.map(|mapped| {
            let file = self.files.get(number);
            let holes = holes_between(&mapped, pages);
            let promised = |hole: &Pages| {
                file.map_or(0, |file| file.pages.range(hole.from..hole.to).count() as u64)
            };
            holes.iter().map(|hole| hole.to - hole.from - promised(hole)).sum()
        })
    }

    /// Whether so much was written that is not on the disk that the next write waits.
    fn is_crowded(&self) -> bool {
        self.dirty + self.direct.values().map(DirectWrite::pages).sum::<u64>() > DIRTY_MAX
    }

    /// Writes that have waited for others go on.
    pub(super) fn relieve(&mut self) {
        if !self.crowded.is_empty() && !self.is_crowded() {
            self.ready.extend(std::mem::take(&mut self.crowded));
        }
    }

    /// A program that was written to loses its rights.
    fn take_rights(&mut self, id: JobId, number: u64, caller: Caller) {
        let attempted = self.attempt(id, |attempt| {
            let mut inode = attempt.inode(number)?;
            attempt.take_rights(number, &mut inode, Giver::Writer(caller))?;
            attempt.set_inode(number, &inode)
        });
        let _ = attempted; // Its units have just been in memory.
        self.actions.push_back(Action::Invalidate { inode: number });
    }

    /// Changes pages in memory; those that are changed in part and are on the disk alone are read first.
    fn edit(&mut self, id: JobId, asking: &mut Asking, edit: &Edit<'_>, size: u64) -> Edited {
        let &Edit { inode: number, offset, count, .. } = edit;
        let version = self.version(number);
        if self.is_reading(id) {
            self.go_on_reading(id);
            return Edited::Waits;
        }
        if let Some(read) = self.take_sectors(id) {
            if !read.lost.is_empty() {
                return Edited::Failed(Errno::Io);
            }
            if version == asking.version {
                let pages: Vec<u64> = asking.pages.keys().copied().collect();
                for (page, source) in pages.into_iter().zip(&read.plan.sources) {
                    let Some(bytes) = read.page(source) else { return Edited::Failed(Errno::Io) };
                    asking.pages.insert(page, bytes);
                }
            } else {
                asking.pages.clear();
            }
        }
        let (first, last) = (offset / PAGE, (offset + count - 1) / PAGE);
        let is_part = |page: u64| {
            let (from, to) = (page * PAGE, (page + 1) * PAGE);
            let is_whole = offset <= from && to.min(size.max(offset + count)) <= offset + count;
            !is_whole && from < size
        };
        let mut ends = vec![first];
        if last != first {
            ends.push(last);
        }
        let file = self.files.open(number);
        let needed: Vec<u64> = ends
            .into_iter()
            .filter(|&page| is_part(page) && !file.pages.contains_key(&page))
            .collect();
        let are_there =
            version == asking.version && needed.iter().all(|page| asking.pages.contains_key(page));
        if !needed.is_empty() && !are_there {
            let planned = self.attempt(id, |attempt| {
                let inode = attempt.inode(number)?;
                let mut plan = Plan::default();
                for &page in &needed {
                    let one = attempt.plan(number, &inode, Pages { from: page, to: page + 1 })?;
                    plan.sources.extend(one.sources);
                    plan.targets.extend(one.targets);
                }
                Ok(plan)
            });
            return match planned {
                Attempted::Waits => Edited::Waits,
                Attempted::Failed(errno) => Edited::Failed(errno),
                Attempted::Complete(mut plan) => {
                    asking.version = version;
                    asking.pages = needed.iter().map(|&page| (page, zero_page())).collect();
                    self.find_in_pieces(number, &needed, &mut plan);
                    self.read_sectors(id, plan);
                    Edited::Waits
                }
            };
        }
        let read = std::mem::take(&mut asking.pages);
        self.put_pages(edit, &read, size);
        Edited::Done
    }

    fn find_in_pieces(&mut self, number: u64, pages: &[u64], plan: &mut Plan) {
        for (&page, source) in pages.iter().zip(&mut plan.sources) {
            let sources = vec![source.clone()];
            let (targets, held) =
                (std::mem::take(&mut plan.targets), std::mem::take(&mut plan.held));
            let mut one = Plan { sources, targets, held };
            self.find_in_memory(number, page, &mut one);
            *source = one.sources.remove(0);
            (plan.targets, plan.held) = (one.targets, one.held);
        }
    }

    fn put_pages(&mut self, edit: &Edit<'_>, read: &BTreeMap<u64, Piece>, size: u64) {
        let &Edit { inode: number, offset, bytes, count } = edit;
        let (first, last) = (offset / PAGE, (offset + count - 1) / PAGE);
        // Whole pages side by side are one buffer.
        let whole_from = offset.div_ceil(PAGE);
        let whole_to = (offset + count) / PAGE;
        let whole = match bytes {
            Some(bytes) if whole_from < whole_to => {
                let from = (whole_from * PAGE - offset) as usize;
                let to = (whole_to * PAGE - offset) as usize;
                Some(Piece::whole(Arc::new(Buf::copy_of(&bytes[from..to]))))
            }
            Some(_) | None => None,
        };
        let mut added = 0;
        let file = self.file(number);
        file.version += 1;
        for page in first..=last {
            let is_whole = (whole_from..whole_to).contains(&page);
            let piece = match (&whole, bytes) {
                (Some(whole), _) if is_whole => whole.part((page - whole_from) as u32, 1),
                (_, None) if is_whole => zero_page(),
                _ => {
                    let old = file.pages.get(&page).map(|page| page.bytes.clone());
                    let mut buf = Buf::zeroed(Sectors::new(1));
                    if let Some(old) = old.or_else(|| read.get(&page).cloned()) {
                        // What is behind the end was cut off, whatever is there.
                        let known = size.saturating_sub(page * PAGE).min(PAGE) as usize;
                        buf.as_mut_slice()[..known].copy_from_slice(&old.bytes()[..known]);
                    }
                    let from = offset.max(page * PAGE);
                    let to = (offset + count).min((page + 1) * PAGE);
                    let into = &mut buf.as_mut_slice()
                        [(from - page * PAGE) as usize..(to - page * PAGE) as usize];
                    match bytes {
                        Some(bytes) => into.copy_from_slice(
                            &bytes[(from - offset) as usize..(to - offset) as usize],
                        ),
                        None => into.fill(0),
                    }
                    Piece::whole(Arc::new(buf)).packed()
                }
            };
            let early = match file.pages.get(&page).is_some_and(Page::is_early) {
                true => Early::AsItWas,
                false => Early::No,
            };
            let new = Page { bytes: piece, is_dirty: true, early, writes: BTreeSet::new() };
            let known = file.pages.insert(page, new);
            added += u64::from(known.is_none_or(|known| !known.is_dirty));
        }
        self.dirty += added;
    }

    /// A file that ends in the middle of a page becomes longer, from a later page on: what is behind its end becomes zero.
    pub(super) fn zero_tail(
        &mut self,
        id: JobId,
        asking: &mut Asking,
        inode: u64,
        size: u64,
        to: u64,
    ) -> Option<Result<(), Errno>> {
        let end = size.next_multiple_of(PAGE);
        if to < end {
            return Some(Ok(())); // The page is written, and masked then.
        }
        self.zero_part(id, asking, inode, size, end, size)
    }

    /// Zeroes a part of a file before its size is set, or because a hole is wanted there.
    pub(super) fn zero_part(
        &mut self,
        id: JobId,
        asking: &mut Asking,
        inode: u64,
        from: u64,
        to: u64,
        size: u64,
    ) -> Option<Result<(), Errno>> {
        if from >= to {
            return Some(Ok(()));
        }
        let edit = Edit { inode, offset: from, bytes: None, count: to - from };
        match self.edit(id, asking, &edit, size) {
            Edited::Done => {
                let file = self.file(inode);
                file.size = file.size.or(Some(size));
                Some(Ok(()))
            }
            Edited::Waits => None,
            Edited::Failed(errno) => Some(Err(errno)),
        }
    }

    pub(super) fn run_allocate(&mut self, id: JobId, mut asking: Box<Asking>) {
        let What::Allocate { inode: number, offset, count, how } = asking.request.what else {
            unreachable!("it is an allocation")
        };
        let request = asking.request.id;
        if self.waits_for_cut(number, id) {
            return self.keep(id, Job::Request(asking));
        }
        let end = offset.saturating_add(count);
        if let Err(errno) = check_size(end) {
            return self.reply(request, Answer::Failed(errno));
        }
        if count == 0 {
            return self.reply(request, Answer::Failed(Errno::Invalid));
        }
        let known = self.files.get(number).and_then(|file| file.size);
        let caller = asking.request.caller;
        let checked = self.attempt(id, |attempt| {
            let inode = attempt.inode(number)?;
            if !inode.is_file() {
                return Err(Stop::Fail(Errno::Invalid));
            }
            let (size, kind) = (known.unwrap_or(inode.size), inode.kind);
            let has_rights = attempt.has_rights(number, &inode, caller)?;
            Ok(Checked { size, kind, free: attempt.free_in_all()?, has_rights })
        });
        let Checked { size, kind, free, has_rights } = match checked {
            Attempted::Complete(checked) => {
                self.free = Some(checked.free);
                checked
            }
            Attempted::Failed(errno) => return self.reply(request, Answer::Failed(errno)),
            Attempted::Waits => return self.keep(id, Job::Request(asking)),
        };
        let is_zeroing = matches!(how, Allocation::Punch | Allocation::Zero | Allocation::ZeroKeep);
        if is_zeroing && asking.step < ZEROED {
            let within = end.min(size);
            // The pages at both ends are zeroed in part; those between become a hole.
            let (inner_from, inner_to) = (offset.div_ceil(PAGE), end / PAGE);
            let head = (offset, (inner_from * PAGE).min(within));
            let tail = ((inner_to * PAGE).max(offset), within);
            for (step, (from, to)) in (0..).zip([head, tail]) {
                let is_whole = from.is_multiple_of(PAGE) && to.is_multiple_of(PAGE);
                if asking.step > step || is_whole || from >= to {
                    continue;
                }
                match self.zero_part(id, &mut asking, number, from, to, size) {
                    None => return self.keep(id, Job::Request(asking)),
                    Some(Err(errno)) => return self.reply(request, Answer::Failed(errno)),
                    Some(Ok(())) => asking.step = step + 1,
                }
            }
            asking.step = ZEROED - 1;
            if inner_from < inner_to {
                let pages = Pages { from: inner_from, to: inner_to };
                let cut = self.attempt(id, |attempt| {
                    let mut inode = attempt.inode(number)?;
                    let mut of = crate::tree::Owned { number, inode: &mut inode };
                    let is_cut = attempt.cut_out(&mut of, pages, 64)?;
                    attempt.set_inode(number, &inode)?;
                    Ok(is_cut)
                });
                match cut {
                    Attempted::Complete(true) => {}
                    Attempted::Complete(false) => {
                        self.keep(id, Job::Request(asking));
                        return self.ready.push_back(id);
                    }
                    Attempted::Failed(errno) => return self.reply(request, Answer::Failed(errno)),
                    Attempted::Waits => return self.keep(id, Job::Request(asking)),
                }
                let file = self.file(number);
                file.version += 1;
                let inside: Vec<u64> =
                    file.pages.range(inner_from..inner_to).map(|(&page, _)| page).collect();
                let mut dirty = 0;
                for page in inside {
                    let page = file.pages.remove(&page).expect("it was found");
                    dirty += u64::from(page.is_dirty);
                }
                self.dirty -= dirty;
            }
            asking.step = ZEROED;
        }
        let wants_room = !matches!(how, Allocation::Punch);
        if wants_room {
            let pages = Pages { from: offset / PAGE, to: end.div_ceil(PAGE) };
            let new = match self.pages_without_place(id, number, pages) {
                Attempted::Complete(new) => new,
                Attempted::Failed(errno) => return self.reply(request, Answer::Failed(errno)),
                Attempted::Waits => return self.keep(id, Job::Request(asking)),
            };
            let needed = match new {
                0 => 0,
                _ => self.sectors_for(kind, new) + self.kept_from_files(),
            };
            if !std::mem::replace(&mut asking.had_room, true) && needed > free {
                return self.reply(request, Answer::Failed(Errno::NoSpace));
            }
            let taken = self.attempt(id, |attempt| attempt.fill_holes(number, pages, 16));
            match taken {
                Attempted::Complete(true) => {}
                Attempted::Complete(false) => {
                    self.keep(id, Job::Request(asking));
                    return self.ready.push_back(id);
                }
                Attempted::Failed(errno) => return self.reply(request, Answer::Failed(errno)),
                Attempted::Waits => return self.keep(id, Job::Request(asking)),
            }
        }
        let day = asking.request.now;
        let extends = matches!(how, Allocation::Extend | Allocation::Zero) && end > size;
        if extends && asking.step < TAIL_DONE {
            let to = end.max(size.next_multiple_of(PAGE));
            match self.zero_tail(id, &mut asking, number, size, to) {
                None => return self.keep(id, Job::Request(asking)),
                Some(Err(errno)) => return self.reply(request, Answer::Failed(errno)),
                Some(Ok(())) => asking.step = TAIL_DONE,
            }
        }
        if has_rights {
            self.take_rights(id, number, caller);
        }
        let file = self.file(number);
        if extends {
            file.size = Some(end);
        }
        if is_zeroing || extends {
            file.size = file.size.or(Some(size));
            file.modified = Some(file.modified.map_or(day, |known| later(known, day)));
        }
        self.reply(request, Answer::Done);
    }
}

#[cfg(test)]
mod tests;
