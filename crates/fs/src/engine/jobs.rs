//! Jobs: requests, and what the filesystem does of its own accord. A job is attempted until its attempt is complete.

use levelhead_units::Instant;

use super::job::{Asking, Job, JobId, PAGE, later};
use super::scrub::Scrubbing;
use super::{Attempted, Filesystem};
use crate::attempt::Stop;
use crate::format::inode::{Inode, mode};
use crate::geometry::GroupIdx;
use crate::ops::attributes::{Giver, attributes, check_size};
use crate::ops::extended::Extended;
use crate::ops::extents::{Mapped, Pages};
use crate::ops::names::{Asked, NewFile, Unnamed};
use crate::ops::values::KIND;
use crate::request::{Answer, Attributes, Changes, Errno, Request, Room, Sought, What};
use crate::space::free_at_first;

/// Windows that one attempt takes out of a file.
const CUT_MAX: usize = 64;

/// The step of a change of attributes after which the file is as long in memory as it is to be.
const LENGTHENED: u8 = 1;

/// The most files with sectors that are lost that one answer names.
const DAMAGED_MAX: usize = 1_000;

impl Filesystem {
    /// Attempts the jobs that are ready.
    pub(super) fn run_jobs(&mut self, now: Instant) -> bool {
        let mut has_moved = false;
        while let Some(id) = self.ready.pop_front() {
            has_moved = true;
            let Some(job) = self.jobs.remove(&id) else { continue };
            let brings_more =
                matches!(job, Job::Request(_) | Job::Flush { .. } | Job::Orphan { .. });
            if brings_more && self.is_stalling() && !self.makes_room(&job) {
                self.jobs.insert(id, job);
                self.stalled.push(id);
                continue;
            }
            // It is there while it runs, so that units and pages may be read for it.
            match job {
                Job::Request(asking) => self.run_request(now, id, asking),
                Job::Flush { inode } => self.run_flush(id, inode),
                Job::Place(group) => self.run_place(id, group),
                Job::Placed(group) => self.run_placed(id, group),
                Job::Sync(sync) => self.run_sync_job(id, sync),
                Job::Orphan { inode } => self.run_orphan(id, inode),
                Job::Ahead { inode, pages } => self.run_ahead(id, inode, pages),
                Job::Rewrite(part) => self.run_rewrite(id, part),
                Job::Scrub => self.run_scrub(id),
                Job::Damaged { inode } => self.run_damaged(id, inode),
                Job::Spares => self.run_spares(id),
                Job::FindOrphans { from } => self.run_find_orphans(id, from),
            }
        }
        has_moved
    }

    /// An extended attribute was set or taken away.
    fn note_kind(
        &mut self,
        inode: u64,
        is_kind: bool,
        attempted: Attempted<()>,
    ) -> Attempted<Answer> {
        if is_kind && matches!(attempted, Attempted::Complete(())) {
            self.rewrite_file(inode);
        }
        attempted.map(|()| Answer::Done)
    }

    /// A job waits: it is attempted again when it is ready.
    pub(super) fn keep(&mut self, id: JobId, job: Job) {
        self.jobs.insert(id, job);
    }

    fn run_request(&mut self, now: Instant, id: JobId, mut asking: Box<Asking>) {
        if matches!(asking.request.what, What::Write { .. }) {
            return self.run_write(now, id, asking); // Its bytes are not to be copied.
        }
        let what = asking.request.what.clone();
        let Request { caller, now: day, .. } = asking.request;
        let asked = Asked { caller, now: day };
        let attempted: Attempted<Answer> = match what {
            What::Lookup(named) => {
                let attempted = self.attempt(id, |attempt| attempt.lookup(&named));
                self.known(attempted)
            }
            What::Forget { inode, count } => {
                self.forget(inode, count);
                Attempted::Complete(Answer::Done)
            }
            What::GetAttributes(inode) => {
                let attempted = self.attempt(id, |attempt| attempt.attributes(inode));
                self.seen(attempted).map(Answer::Attributes)
            }
            What::SetAttributes { inode, changes } => {
                return self.run_set_attributes(id, asking, inode, changes);
            }
            What::Make { name, mode: wanted, umask, device } => {
                let kind = wanted & mode::TYPE;
                let inode = Inode {
                    device,
                    mode: if kind == 0 { wanted | mode::FILE } else { wanted },
                    kind: self.settings.kind,
                    ..Inode::new(0, day)
                };
                let new = NewFile { inode, umask };
                let attempted = self.attempt_beside(id, |attempt| attempt.make(&name, &new, asked));
                self.known(attempted)
            }
            What::MakeLink { name, target } => {
                let attempted =
                    self.attempt_beside(id, |attempt| attempt.make_link(&name, &target, asked));
                self.known(attempted)
            }
            What::ReadLink(inode) => {
                self.attempt(id, |attempt| attempt.read_link(inode)).map(Answer::Bytes)
            }
            What::Link { inode, name } => {
                let attempted =
                    self.attempt_beside(id, |attempt| attempt.link(inode, &name, asked));
                self.known(attempted)
            }
            What::Remove { name, what } => {
                let attempted = self.attempt(id, |attempt| attempt.remove(&name, what, asked));
                attempted.map(|unnamed| {
                    self.note_unnamed(unnamed);
                    Answer::Done
                })
            }
            What::Rename { from, to, mode } => {
                let attempted =
                    self.attempt_beside(id, |attempt| attempt.rename(&from, &to, mode, asked));
                attempted.map(|unnamed| {
                    unnamed.into_iter().for_each(|unnamed| self.note_unnamed(unnamed));
                    Answer::Done
                })
            }
            What::ReadDirectory { inode, after, room, with_attributes } => {
                let attempted =
                    self.attempt(id, |attempt| attempt.list(inode, after, room, with_attributes));
                attempted.map(|mut listed| {
                    for entry in &mut listed {
                        if let Some(attributes) = &mut entry.attributes {
                            *attributes = self.effective(*attributes);
                            self.files.look_up(entry.inode);
                        }
                    }
                    Answer::Entries(listed)
                })
            }
            What::Read { .. } => return self.run_read(id, asking),
            What::Write { .. } => unreachable!("it was looked at before"),
            What::Sync { inode } => return self.run_sync(id, asking.request.id, inode),
            What::Allocate { .. } => return self.run_allocate(id, asking),
            What::Seek { inode, offset, what } => self.seek(id, inode, offset, what),
            What::GetExtended { inode, name } => {
                self.attempt(id, |attempt| attempt.get_extended(inode, &name)).map(Answer::Bytes)
            }
            What::ListExtended(inode) => {
                self.attempt(id, |attempt| attempt.list_extended(inode)).map(Answer::Bytes)
            }
            What::SetExtended { inode, name, value, mode } => {
                let is_kind = name == KIND;
                let new = Extended { name, value };
                let attempted = self
                    .attempt_beside(id, |attempt| attempt.set_extended(inode, new, mode, asked));
                self.note_kind(inode, is_kind, attempted)
            }
            What::RemoveExtended { inode, name } => {
                let attempted =
                    self.attempt(id, |attempt| attempt.remove_extended(inode, &name, day));
                self.note_kind(inode, name == KIND, attempted)
            }
            What::Scrub { place, parts } => {
                let scrubbing = Scrubbing::new(asking.request.id, place, parts);
                return self.go_on_scrubbing(id, scrubbing);
            }
            What::Room => self.room(id).map(Answer::Room),
            What::Damaged => {
                let found = self.attempt(id, |attempt| attempt.damaged_inodes(DAMAGED_MAX));
                found.map(Answer::Inodes)
            }
        };
        let request = asking.request.id;
        match attempted {
            Attempted::Complete(answer) => self.reply(request, answer),
            // What was freed lately, and what pages in memory turn out not to need, is room after a commit.
            Attempted::Failed(Errno::NoSpace) if asking.step == 0 => {
                asking.step = 1;
                self.keep(id, Job::Request(asking));
                self.sync_for(id, None);
            }
            Attempted::Failed(errno) => self.reply(request, Answer::Failed(errno)),
            Attempted::Waits => {
                asking.pages.clear();
                self.keep(id, Job::Request(asking));
            }
        }
    }

    /// An inode that the caller knows from now on.
    fn known(&mut self, attempted: Attempted<Attributes>) -> Attempted<Answer> {
        attempted.map(|attributes| {
            self.files.look_up(attributes.inode);
            Answer::Entry(self.effective(attributes))
        })
    }

    fn seen(&mut self, attempted: Attempted<Attributes>) -> Attempted<Attributes> {
        attempted.map(|attributes| self.effective(attributes))
    }

    /// A name of an inode is gone: without names and callers that know it, it goes.
    fn note_unnamed(&mut self, unnamed: Unnamed) {
        if unnamed.is_last {
            self.file(unnamed.inode).is_orphan = true;
            self.let_go(unnamed.inode);
        }
    }

    fn run_set_attributes(
        &mut self,
        id: JobId,
        mut asking: Box<Asking>,
        number: u64,
        changes: Changes,
    ) {
        let Request { id: request, now: day, caller, .. } = asking.request;
        let mut size = changes.size;
        if let Some(size) = size
            && let Err(errno) = check_size(size)
        {
            return self.reply(request, Answer::Failed(errno));
        }
        if size.is_some() && self.waits_for_cut(number, id) {
            return self.keep(id, Job::Request(asking));
        }
        if let Some(wanted) = size
            && !self.is_read_only()
        {
            // While the rest of what is to change is read it stays so: its size is no matter of the inode's until it is flushed.
            if asking.step == 0 {
                match self.lengthen(id, &mut asking, number, wanted) {
                    None => return self.keep(id, Job::Request(asking)),
                    Some(Err(errno)) => return self.reply(request, Answer::Failed(errno)),
                    Some(Ok(true)) => asking.step = LENGTHENED,
                    Some(Ok(false)) => {}
                }
            }
            if asking.step == LENGTHENED {
                size = None;
            }
        }
        let known_size = self.files.get(number).and_then(|file| file.size);
        let is_lengthened = asking.step == LENGTHENED;
        let attempted = self.attempt(id, |attempt| {
            let inode = attempt.inode(number)?;
            match size {
                Some(_) if inode.is_directory() => return Err(Stop::Fail(Errno::IsDirectory)),
                Some(_) if !inode.is_file() => return Err(Stop::Fail(Errno::Invalid)),
                _ => {}
            }
            let mut answer = attempt.set_attributes(number, &changes, day)?;
            if let Some(size) = size {
                let mut inode = attempt.inode(number)?;
                let before = known_size.unwrap_or(inode.size);
                if size != before {
                    attempt.take_rights(number, &mut inode, Giver::Writer(caller))?;
                    inode.modified = changes.modified.unwrap_or(day);
                    inode.changed = day;
                }
                // What is beyond is cut off by and by; until then the list of orphans names it.
                if size < inode.size {
                    attempt.add_orphan(number)?;
                }
                inode.size = size;
                attempt.set_inode(number, &inode)?;
                answer = attributes(number, &inode);
            }
            if is_lengthened {
                let mut inode = attempt.inode(number)?;
                attempt.take_rights(number, &mut inode, Giver::Writer(caller))?;
                attempt.set_inode(number, &inode)?;
                answer = attributes(number, &inode);
            }
            Ok(answer)
        });
        match attempted {
            Attempted::Complete(attributes) => {
                if let Some(size) = size {
                    self.note_size_set(number, size);
                }
                if changes.modified.is_some() || size.is_some() {
                    self.file(number).modified = None;
                }
                let attributes = self.effective(attributes);
                self.reply(request, Answer::Attributes(attributes));
            }
            Attempted::Failed(errno) => self.reply(request, Answer::Failed(errno)),
            Attempted::Waits => self.keep(id, Job::Request(asking)),
        }
    }

    /// A file that is to be longer than its inode says: it is that in memory first, so that its size and the zeroes behind its old end
    /// come into one transaction. Returns whether it is.
    fn lengthen(
        &mut self,
        id: JobId,
        asking: &mut Asking,
        number: u64,
        size: u64,
    ) -> Option<Result<bool, Errno>> {
        let inode = match self.attempt(id, |attempt| attempt.inode(number)) {
            Attempted::Complete(inode) => inode,
            Attempted::Failed(errno) => return Some(Err(errno)),
            Attempted::Waits => return None,
        };
        if !inode.is_file() || size <= inode.size {
            return Some(Ok(false));
        }
        let before = self.files.get(number).and_then(|file| file.size).unwrap_or(inode.size);
        if size > before {
            // No write follows that would mask the last page: all of it becomes zero, also where the file ends in it again.
            let to = size.max(before.next_multiple_of(PAGE));
            if let Err(errno) = self.zero_tail(id, asking, number, before, to)? {
                return Some(Err(errno));
            }
        }
        self.cut_pages(number, size);
        let day = asking.request.now;
        let file = self.file(number);
        file.size = Some(size);
        if size != before {
            file.modified = Some(file.modified.map_or(day, |known| later(known, day)));
        }
        Some(Ok(true))
    }

    /// How much room there is.
    fn room(&mut self, id: JobId) -> Attempted<Room> {
        let superblock = self.superblock.clone();
        let geometry = superblock.geometry;
        let reserved = self.reserved();
        let attempted = self.attempt(id, |attempt| {
            let free =
                attempt.free_in_all()?.saturating_sub(reserved + super::room::floor(&geometry));
            let all: u64 =
                (0..geometry.groups()).map(|group| free_at_first(&geometry, GroupIdx(group))).sum();
            let data = u64::from(superblock.ladder.data_max());
            let redundant = u64::from(superblock.ladder.redundant_max());
            let of_files = |sectors: u64| {
                (u128::from(sectors) * u128::from(data) / u128::from(data + redundant)) as u64
            };
            let inodes_free = free / u64::from(geometry.copies) * 8;
            let inodes = attempt.inodes_used()?;
            let damaged = match attempt.damaged_files() {
                Err(Stop::Need) => return Err(Stop::Need),
                damaged => damaged.ok(),
            };
            let (sectors, free) = (of_files(all), of_files(free));
            Ok((Room { sectors, free, inodes, inodes_free }, damaged))
        });
        attempted.map(|(room, damaged)| {
            // What is only read has not looked for them before.
            self.counts.files_damaged = damaged.unwrap_or(self.counts.files_damaged);
            room
        })
    }

    fn seek(&mut self, id: JobId, number: u64, offset: u64, what: Sought) -> Attempted<Answer> {
        let dirty: Vec<u64> = self
            .files
            .get(number)
            .map(|file| file.pages.keys().copied().collect())
            .unwrap_or_default();
        let known_size = self.files.get(number).and_then(|file| file.size);
        let attempted = self.attempt(id, |attempt| {
            let inode = attempt.inode(number)?;
            let size = known_size.unwrap_or(inode.size);
            if offset >= size {
                return Err(Stop::Fail(Errno::Beyond));
            }
            let (first, end) = (offset / PAGE, size.div_ceil(PAGE));
            let mut page = first;
            let mut windows = attempt
                .windows(number, &inode, Pages { from: first, to: end }, usize::MAX)?
                .into_iter()
                .peekable();
            let mut dirty =
                dirty.iter().copied().filter(|page| (first..end).contains(page)).peekable();
            loop {
                while windows.next_if(|window| window.end() <= page).is_some() {}
                while dirty.next_if(|&dirty| dirty < page).is_some() {}
                let data_at =
                    [windows.peek().map(|window| window.page.max(page)), dirty.peek().copied()];
                let next = data_at.into_iter().flatten().min().unwrap_or(end);
                match what {
                    Sought::Data if next >= end => return Err(Stop::Fail(Errno::Beyond)),
                    Sought::Data => return Ok((next * PAGE).max(offset)),
                    Sought::Hole if next > page || page >= end => {
                        return Ok((page * PAGE).max(offset).min(size));
                    }
                    Sought::Hole => {
                        let past =
                            windows.peek().filter(|window| window.page <= page).map(Mapped::end);
                        page = past.unwrap_or(page + 1);
                    }
                }
            }
        });
        attempted.map(Answer::Offset)
    }

    /// Empties and frees an inode without names, or cuts off what is beyond the end of one with names.
    fn run_orphan(&mut self, id: JobId, number: u64) {
        let is_known = self.files.lookups(number) > 0;
        let mut cut_from = 0;
        let attempted = self.attempt(id, |attempt| {
            let mut inode = attempt.get_inode(number)?;
            let goes = inode.links == 0 && !is_known;
            if inode.mode == 0 {
                attempt.remove_orphan(number)?;
                return Ok(Emptied::All);
            }
            let from = if goes { 0 } else { inode.size.div_ceil(PAGE) };
            cut_from = from;
            let is_empty = match inode.is_file() {
                true => {
                    let mut of = crate::tree::Owned { number, inode: &mut inode };
                    let pages = Pages { from, to: u64::MAX };
                    let is_empty = attempt.cut_out(&mut of, pages, CUT_MAX)?;
                    attempt.set_inode(number, &inode)?;
                    is_empty
                }
                false if goes => attempt.empty_tree(number, &mut inode)?,
                false => true,
            };
            if !is_empty {
                return Ok(Emptied::Part);
            }
            if goes {
                if inode.attributes != levelhead_units::Lba::ZERO {
                    attempt.free_unit(inode.attributes)?;
                }
                attempt.free_inode(number)?;
            }
            // One that is still open and has no names stays on the list.
            if goes || inode.links > 0 {
                attempt.remove_orphan(number)?;
            }
            Ok(if goes { Emptied::Freed } else { Emptied::All })
        });
        match attempted {
            Attempted::Complete(Emptied::Part) => {
                self.keep(id, Job::Orphan { inode: number });
                self.ready.push_back(id);
            }
            // What could not be freed a check finds.
            Attempted::Complete(ended @ (Emptied::All | Emptied::Freed)) => {
                // The journal may have brought some of them back.
                self.cut_pages(number, cut_from * PAGE);
                if let Some(file) = self.files.get_mut(number) {
                    if ended == Emptied::Freed {
                        // The next inode of this number is another one.
                        (file.is_orphan, file.size, file.modified) = (false, None, None);
                    }
                    file.is_cut = false;
                    self.ready.extend(std::mem::take(&mut file.after_cut));
                }
                self.drop_file(number);
            }
            Attempted::Failed(_) => {
                if let Some(file) = self.files.get_mut(number) {
                    file.is_cut = false;
                    self.ready.extend(std::mem::take(&mut file.after_cut));
                }
                self.drop_file(number);
            }
            Attempted::Waits => self.keep(id, Job::Orphan { inode: number }),
        }
    }

    fn run_find_orphans(&mut self, id: JobId, from: u64) {
        let found =
            self.attempt(id, |attempt| Ok((attempt.orphans(from)?, attempt.damaged_files()?)));
        match found {
            Attempted::Complete((found, damaged)) => {
                self.counts.files_damaged = damaged;
                if let Some(last) = found.last() {
                    let job = self.new_job(Job::FindOrphans { from: last + 1 });
                    self.ready.push_back(job);
                }
                for inode in found {
                    self.file(inode).is_cut = true;
                    let job = self.new_job(Job::Orphan { inode });
                    self.ready.push_back(job);
                }
            }
            Attempted::Failed(_) => {}
            Attempted::Waits => self.keep(id, Job::FindOrphans { from }),
        }
    }
}

/// What has come of emptying an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Emptied {
    Part,
    All,
    /// It is there no more.
    Freed,
}

impl<T> Attempted<T> {
    pub(super) fn map<U>(self, map: impl FnOnce(T) -> U) -> Attempted<U> {
        match self {
            Self::Complete(brought) => Attempted::Complete(map(brought)),
            Self::Waits => Attempted::Waits,
            Self::Failed(errno) => Attempted::Failed(errno),
        }
    }
}
