//! Files that are read in sequence are read ahead, in long commands that end where coding groups end.
//!
//! ```text
//!   reads:   ...[  ][  ][  ]                            the next one waits for what has its pages
//!   ahead:   ...--- done ---[ under way   ][ under way   ]
//! ```
//!
//! So the disk is given few and long commands in their order, and a sector that fails is computed from sectors that came with it:
//! a reader who asked for a part of a group alone would have to read the rest of it once more.

use std::collections::{BTreeMap, BTreeSet};

use levelhead_units::Lba;

use super::job::{Job, JobId, PAGE};
use super::{Attempted, Filesystem};
use crate::format::extent::CodingExtent;
use crate::ops::extents::Pages;

/// The most pages that are read ahead of a reader: 24 MiB. A command that follows another one costs most of a turn of the disk, so parts are
/// long: with parts of 4 or 6 MiB a file with a code takes up to a tenth longer, and with a fourth part of 8 MiB it is not read sooner.
const AHEAD_MAX: u64 = 6_144;

/// Pages that are read ahead of the second one of two reads that follow one another.
const AHEAD_MIN: u64 = 64;

/// Parts of a file that the disk has at a time: one is read, and the next one follows it at once, or the one after it where the disk has
/// missed its beginning.
const INSIDE_MAX: usize = 3;

/// In how many parts what is read ahead is asked for.
const PARTS: u64 = 3;

/// Windows behind what is read whose units are asked for early.
const WINDOWS_BEHIND: usize = 256;

/// Requests of a kernel that reads ahead by itself may overtake one another by this.
const SLACK: u64 = 1_024;

/// How a file is read.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// The page behind the last one that was asked for.
    next: u64,
    /// How far ahead it is read; 0 until a read has followed another, then four times as far each time.
    step: u64,
    /// The page behind the last one that is in memory or on its way.
    ahead: u64,
    /// What is on its way.
    jobs: BTreeMap<JobId, OnItsWay>,
}

#[derive(Debug)]
struct OnItsWay {
    pages: Pages,
    /// Jobs that need some of it.
    waiting: Vec<JobId>,
}

impl Stream {
    /// Whether it is known from where the next read would follow.
    pub(super) fn has_begun(&self) -> bool {
        self.next > 0
    }

    /// Whether nothing is on its way.
    pub(super) fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Pages that are read with one command.
    fn part(&self) -> u64 {
        (self.step / PARTS).max(AHEAD_MIN)
    }

    /// A read; returns the pages that are to be read ahead now.
    fn note_read(&mut self, asked: Pages, most: u64) -> Option<Pages> {
        let is_near = asked.from + SLACK >= self.next && asked.from <= self.next.max(self.ahead);
        if !is_near || self.next == 0 {
            (self.next, self.step, self.ahead) = (asked.to, 0, asked.to);
            return None;
        }
        self.next = self.next.max(asked.to);
        self.step = (4 * self.step).clamp(AHEAD_MIN, most);
        let from = self.ahead.max(asked.from);
        let to = self.next + self.step;
        (from + self.part() <= to).then_some(Pages { from, to })
    }
}

/// Whose pages a job reads ahead.
fn reader(job: &Job) -> Option<u64> {
    match job {
        Job::Ahead { inode, .. } => Some(*inode),
        _ => None,
    }
}

impl Filesystem {
    /// Pages of a file are read by a job: reads ahead, if they follow others. `end` is the page behind the file's last one.
    pub(super) fn read_ahead(&mut self, number: u64, asked: Pages, end: u64) {
        if asked.from == 0 && asked.to >= end {
            return; // Nothing can follow.
        }
        // All readers together have no more on their way than half of the memory that keeps it.
        let readers: BTreeSet<u64> =
            self.jobs.values().filter_map(reader).chain([number]).collect();
        let most = (self.sectors.most() / 2).min(AHEAD_MAX) / readers.len() as u64;
        if most < AHEAD_MIN {
            return; // It would have gone before its reader had a turn.
        }
        let Some(wanted) = self.file(number).stream.note_read(asked, most) else { return };
        let part = self.file(number).stream.part();
        let mut from = wanted.from;
        while from < end && from + part.min(end - from) <= wanted.to {
            let to = self.group_end(number, (from + part).min(end)).min(end);
            self.begin_ahead(number, Pages { from, to });
            from = to;
        }
        self.file(number).stream.ahead = from;
    }

    fn begin_ahead(&mut self, number: u64, pages: Pages) {
        let id = self.new_job(Job::Ahead { inode: number, pages });
        let on_its_way = OnItsWay { pages, waiting: Vec::new() };
        let jobs = &mut self.file(number).stream.jobs;
        jobs.insert(id, on_its_way);
        if jobs.len() <= INSIDE_MAX {
            self.ready.push_back(id);
        }
    }

    /// The page behind the coding group that has the page before `page`, as far as memory knows.
    fn group_end(&mut self, number: u64, page: u64) -> u64 {
        let Some(last) = page.checked_sub(1) else { return page };
        let found = self.peek(|attempt| {
            let inode = attempt.inode(number)?;
            attempt.window_at(number, &inode, last)
        });
        found.flatten().map_or(page, |mapped| mapped.end())
    }

    /// Whether some of these pages are on their way; the job is ready then when they have come.
    pub(super) fn waits_for_ahead(&mut self, id: JobId, number: u64, asked: Pages) -> bool {
        let Some(file) = self.files.get_mut(number) else { return false };
        let mut on_their_way = file.stream.jobs.values_mut();
        let overlaps = |other: &Pages| other.from < asked.to && asked.from < other.to;
        match on_their_way.find(|on_its_way| overlaps(&on_its_way.pages)) {
            Some(on_its_way) => {
                on_its_way.waiting.push(id);
                true
            }
            None => false,
        }
    }

    pub(super) fn run_ahead(&mut self, id: JobId, number: u64, pages: Pages) {
        if self.take_sectors(id).is_some() {
            return self.end_ahead(id, number);
        }
        if self.is_reading(id) {
            self.keep(id, Job::Ahead { inode: number, pages });
            return self.go_on_reading(id);
        }
        let planned = self.attempt(id, |attempt| {
            let inode = attempt.inode(number)?;
            let end = inode.size.div_ceil(PAGE).min(pages.to);
            let pages = Pages { from: pages.from, to: end.max(pages.from) };
            attempt.plan(number, &inode, pages)
        });
        match planned {
            Attempted::Complete(mut plan) => {
                self.find_in_memory(number, pages.from, &mut plan);
                let last: Option<CodingExtent> =
                    plan.targets.last_key_value().map(|(_, target)| target.extent);
                self.keep(id, Job::Ahead { inode: number, pages });
                self.fetch_units_behind(number, pages.to);
                self.read_sectors_ahead(id, plan, last);
            }
            Attempted::Failed(_) => self.end_ahead(id, number),
            Attempted::Waits => self.keep(id, Job::Ahead { inode: number, pages }),
        }
    }

    /// Reads the units that speak of pages behind those that are read now, as far again as these are ahead of the reader, and once more: they
    /// are far from the file, and the disk comes to one of them behind what it was asked for before.
    fn fetch_units_behind(&mut self, number: u64, page: u64) {
        let pages = Pages { from: page, to: page + 2 * self.file(number).stream.step };
        self.look_ahead(|attempt| {
            let inode = attempt.inode(number)?;
            for mapped in attempt.windows(number, &inode, pages, WINDOWS_BEHIND)? {
                let data = mapped.window.extent.data();
                attempt.want_sum(data.lba);
                attempt.want_sum(Lba::new(data.end().get() - 1));
            }
            Ok(())
        });
    }

    fn end_ahead(&mut self, id: JobId, number: u64) {
        let Some(file) = self.files.get_mut(number) else { return };
        let ended = file.stream.jobs.remove(&id);
        // The next one was not begun.
        self.ready.extend(file.stream.jobs.keys().nth(INSIDE_MAX - 1));
        self.ready.extend(ended.into_iter().flat_map(|ended| ended.waiting));
        self.drop_file(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(from: u64, to: u64) -> Pages {
        Pages { from, to }
    }

    #[test]
    fn reads_that_follow_one_another_are_read_ahead_of_ever_further() {
        let mut stream = Stream::default();
        let mut asked_for = Vec::new();
        for at in 0..40 {
            if let Some(ahead) = stream.note_read(pages(32 * at, 32 * at + 32), AHEAD_MAX) {
                assert_eq!(ahead.from, stream.ahead, "nothing is left out and nothing read twice");
                stream.ahead = ahead.to;
                asked_for.push(ahead.to - ahead.from);
            }
        }
        assert_eq!(asked_for[..3], [96, 224, 800]);
        assert!(asked_for.iter().all(|&pages| pages >= 64), "{asked_for:?}");
        assert!(stream.ahead - stream.next >= AHEAD_MAX / 2);
    }

    #[test]
    fn reads_at_random_are_not_read_ahead_of() {
        let mut stream = Stream::default();
        for at in [5_000, 100, 90_000, 3_000, 700_000] {
            assert!(stream.note_read(pages(at, at + 8), AHEAD_MAX).is_none());
        }
    }

    #[test]
    fn requests_that_overtake_one_another_are_one_stream() {
        let mut stream = Stream::default();
        let mut ahead = Vec::new();
        for at in [0, 2, 1, 3, 5, 4] {
            ahead.extend(stream.note_read(pages(32 * at, 32 * at + 32), AHEAD_MAX).map(|p| p.to));
            stream.ahead = stream.ahead.max(ahead.last().copied().unwrap_or(0));
        }
        assert!(!ahead.is_empty() && ahead.is_sorted());
    }
}
