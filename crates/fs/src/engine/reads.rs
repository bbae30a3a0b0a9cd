//! Sectors of files come into memory: as the disk gives them at once, else computed from the rest of their codeword, else after
//! retries.
//!
//! ```text
//!   Fast: one pass --> all there and right --> done
//!          |
//!          v some are not
//!   Sums: of all sectors of their coding extents --> Around: one pass over the rest of these --> computed, right --> done, repaired
//!                                                        |
//!                                                        v too few are there
//!                                                    Full: with retries --> computed once more --> done, or lost
//! ```
//!
//! # Invariants
//!
//! - RD1. A sector is given only if it has the checksum that the filesystem keeps for it.
//! - RD2. Nothing is computed from redundancy that does not go with what is in place: of a stale coding extent only while its places are
//!   not being written, by the layout and the checksums of what lies there, and not at all where a crash has left it in between. Who
//!   wants a sector of one that is being written waits until it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use levelhead_block::{Buf, Effort, Outcome, Piece, Reply};
use levelhead_erasure::Symbol;
use levelhead_units::{Extent, Lba, Sectors};

use super::deferred::Deferred;
use super::job::{Asking, Job, JobId, PAGE};
use super::plan::{Plan, Source, Target, zero_page};
use super::{Attempted, Filesystem, Phase, Purpose, SubId};
use crate::action::{Action, Event};
use crate::attempt::Stop;
use crate::format::extent::CodingExtent;
use crate::ops::extents::Pages;
use crate::request::{Answer, Errno, What};
use crate::sums::sum_of;

/// Neighbours with no more than this between them are read with one command: 256 KiB, a quarter of a turn of a disk that has 250 sectors on a
/// track.
pub(super) const GAP_MAX: u64 = 64;

/// The most sectors of one command: 16 MiB.
const COMMAND_MAX: u64 = 4_096;

/// How often what is missing is looked for once more, because what lies around it was written meanwhile.
const TRIES_MAX: u8 = 8;

/// A sector that was computed from the rest of its codeword.
struct Computed {
    lba: Lba,
    buf: Buf,
    extent: CodingExtent,
    /// All of its codeword that were bad.
    bad: Arc<Vec<Lba>>,
}

/// Sectors on their way.
#[derive(Debug)]
pub(super) struct PageRead {
    pub(super) plan: Plan,
    /// What has come, and is right.
    pub(super) got: BTreeMap<Lba, Piece>,
    /// What is lost.
    pub(super) lost: BTreeSet<Lba>,
    stage: Stage,
    subs: BTreeMap<SubId, Extent>,
    /// Checksums of everything in coding extents that are looked at as a whole; nothing of what was not written.
    sums: BTreeMap<Lba, Option<u32>>,
    /// These, as they are laid out in their places once their checksums are known.
    around: Vec<CodingExtent>,
    /// How often places had begun to be written when it was decided what to look at, and how often that was decided anew.
    writings: u64,
    tries: u8,
    /// What was read and is not there or not right.
    bad: BTreeSet<Lba>,
    /// What came with it, being between sectors that were wanted, and was not looked at yet.
    beside: BTreeMap<Lba, Piece>,
    /// What the first pass did not bring, or not right.
    pub(super) found_bad: BTreeSet<Lba>,
    /// Sectors that were written anew.
    pub(super) repaired: u64,
    /// Nothing waits for what can be had with retries only.
    is_ahead: bool,
    /// Some of it was freed since.
    was_freed: bool,
}

impl PageRead {
    /// The bytes of a page that is on the disk; nothing if some of them are lost.
    pub(super) fn page(&self, source: &Source) -> Option<Piece> {
        let sector = |lba: &Lba| match self.got.get(lba) {
            Some(piece) => Some(piece.clone()),
            None => (!self.plan.targets.contains_key(lba)).then(zero_page),
        };
        match source {
            Source::Memory(piece) => Some(piece.clone()),
            Source::Zero => Some(zero_page()),
            Source::Disk(lba) => self.got.get(lba).cloned(),
            Source::Parts(place) => {
                let (primary, complement) = (sector(&place.primary)?, sector(&place.complement)?);
                let mut page = Buf::zeroed(Sectors::new(1));
                let into = page.as_mut_slice();
                place.blocks.join(place.slot, primary.bytes(), complement.bytes(), into);
                Some(Piece::whole(Arc::new(page)))
            }
        }
    }

    /// Complementary sectors that are missing, from their twins.
    fn twins<'a>(&'a self, extent: &'a CodingExtent) -> impl Iterator<Item = Computed> + 'a {
        let targets = self.plan.targets.keys().copied();
        let missing = targets.filter(|lba| extent.data().contains(*lba));
        missing.filter(|lba| !self.got.contains_key(lba)).filter_map(|lba| {
            let twin = self.got.get(&extent.twin_of(lba)?)?;
            let (buf, bad) = (Buf::copy_of(twin.bytes()), Arc::new(vec![lba]));
            Some(Computed { lba, buf, extent: *extent, bad })
        })
    }

    /// Sectors were freed.
    pub(super) fn note_freed(&mut self, extent: Extent) {
        let overlaps = |other: Extent| other.lba < extent.end() && extent.lba < other.end();
        let mut targets = self.plan.targets.values();
        self.was_freed |= targets.any(|target| overlaps(target.extent.all()));
    }
}

/// What a read asks for: pages, the byte behind its last one, and the size of the file.
struct Ask {
    pages: Pages,
    end: u64,
    size: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Fast,
    Sums,
    Around,
    Full,
    Done,
}

impl Filesystem {
    pub(super) fn run_read(&mut self, id: JobId, mut asking: Box<Asking>) {
        let What::Read { inode: number, offset, count } = asking.request.what else {
            unreachable!("it is a read")
        };
        if self.waits_for_cut(number, id) {
            return self.keep(id, Job::Request(asking));
        }
        if let Some(read) = self.page_reads.get(&id) {
            match read.stage {
                Stage::Done => {
                    let read = self.page_reads.remove(&id).expect("it is there");
                    let version = self.version(number);
                    // What was written meanwhile may have other sectors, and other sums.
                    if !read.lost.is_empty() && version != asking.version && asking.step < 3 {
                        asking.step += 1;
                        return self.run_read(id, asking);
                    }
                    return self.give(&asking, &read, number);
                }
                Stage::Fast | Stage::Sums | Stage::Around | Stage::Full => {
                    self.keep(id, Job::Request(asking));
                    return self.go_on_reading(id);
                }
            }
        }
        let known = self.files.get(number).and_then(|file| file.size);
        let planned = self.attempt(id, |attempt| {
            let inode = attempt.inode(number)?;
            if inode.is_directory() {
                return Err(Stop::Fail(Errno::IsDirectory));
            }
            let size = known.unwrap_or(inode.size);
            let end = size.min(offset.saturating_add(count.into()));
            if offset >= end {
                return Ok(None);
            }
            let pages = Pages { from: offset / PAGE, to: end.div_ceil(PAGE) };
            Ok(Some((attempt.plan(number, &inode, pages)?, Ask { pages, end, size })))
        });
        match planned {
            Attempted::Complete(None) => {
                self.reply(asking.request.id, Answer::Bytes(Vec::new()));
            }
            Attempted::Complete(Some((mut plan, Ask { pages, end, size }))) => {
                self.find_in_memory(number, pages.from, &mut plan);
                if !std::mem::replace(&mut asking.is_noted, true) {
                    self.read_ahead(number, pages, size.div_ceil(PAGE));
                }
                if plan.wants_some() && self.waits_for_ahead(id, number, pages) {
                    return self.keep(id, Job::Request(asking));
                }
                let bytes = end - offset;
                asking.version = self.version(number);
                if let What::Read { count, .. } = &mut asking.request.what {
                    *count = bytes as u32;
                }
                self.keep(id, Job::Request(asking));
                self.read_sectors(id, plan);
            }
            Attempted::Failed(errno) => self.reply(asking.request.id, Answer::Failed(errno)),
            Attempted::Waits => self.keep(id, Job::Request(asking)),
        }
    }

    /// Whether a job has to wait until what is beyond a file's end is cut off.
    pub(super) fn waits_for_cut(&mut self, inode: u64, id: JobId) -> bool {
        match self.files.get_mut(inode) {
            Some(file) if file.is_cut => {
                file.after_cut.push(id);
                true
            }
            Some(_) | None => false,
        }
    }

    /// Pages that are in memory are had from there.
    pub(super) fn find_in_memory(&mut self, number: u64, first: u64, plan: &mut Plan) {
        let Plan { sources, targets, held } = plan;
        for (page, source) in (first..).zip(sources) {
            let written = self.files.get(number).and_then(|file| file.pages.get(&page));
            if let Some(written) = written {
                match source {
                    Source::Disk(lba) => drop(targets.remove(lba)),
                    // Other pages may need the complementary sector.
                    Source::Parts(place) => drop(targets.remove(&place.primary)),
                    Source::Memory(_) | Source::Zero => {}
                }
                *source = Source::Memory(written.bytes.clone());
                continue;
            }
            match *source {
                Source::Memory(_) | Source::Zero => {}
                Source::Disk(lba) => {
                    if let Some(bytes) = self.sector_in_memory(lba, targets) {
                        *source = Source::Memory(bytes);
                        targets.remove(&lba);
                    }
                }
                Source::Parts(place) => {
                    for lba in [place.primary, place.complement] {
                        if let Some(bytes) = self.sector_in_memory(lba, targets) {
                            held.insert(lba, bytes);
                        }
                    }
                }
            }
        }
    }

    /// What the journal or memory has of a sector that is wanted.
    fn sector_in_memory(&mut self, lba: Lba, wanted: &BTreeMap<Lba, Target>) -> Option<Piece> {
        let logged = self.logged.get(&lba).map(|logged| logged.page.clone());
        logged.or_else(|| self.sectors.get(lba, wanted.get(&lba)?.sum))
    }

    fn give(&mut self, asking: &Asking, read: &PageRead, number: u64) {
        let What::Read { offset, count, .. } = asking.request.what else {
            unreachable!("it is a read")
        };
        let mut bytes = Vec::with_capacity(count as usize);
        let mut from = (offset % PAGE) as usize;
        for source in &read.plan.sources {
            let left = count as usize - bytes.len();
            let to = (from + left).min(PAGE as usize);
            match (source, read.page(source)) {
                (Source::Zero, _) => bytes.resize(bytes.len() + to - from, 0),
                (_, Some(piece)) => bytes.extend_from_slice(&piece.bytes()[from..to]),
                (_, None) => return self.say_lost(asking, read, number),
            }
            from = 0;
        }
        self.reply(asking.request.id, Answer::Bytes(bytes));
    }

    /// Some of what was asked for is lost.
    fn say_lost(&mut self, asking: &Asking, read: &PageRead, inode: u64) {
        let missing = read.plan.targets.keys().find(|lba| !read.got.contains_key(lba));
        // Where two windows have the same sector, it is wanted no more when one has it.
        let sources = || read.plan.sources.iter().filter(|source| read.page(source).is_none());
        let lba = missing.copied().or_else(|| sources().find_map(Source::place));
        if let Some(lba) = lba {
            self.actions.push_back(Action::Event(Event::Lost { lba, inode }));
        }
        if !self.is_read_only() {
            let job = self.new_job(Job::Damaged { inode });
            self.ready.push_back(job);
        }
        self.reply(asking.request.id, Answer::Failed(Errno::Io));
    }

    /// Reads what a plan has on the disk, for a job that is ready when that is there.
    pub(super) fn read_sectors(&mut self, id: JobId, plan: Plan) {
        let wanted = plan.targets.keys().filter(|lba| !plan.held.contains_key(lba));
        let wanted = wanted.copied().collect();
        self.read_wanted(id, plan, &wanted, false);
    }

    /// The same for what is not asked for yet: without retries, and with what is redundant in the last coding extent.
    pub(super) fn read_sectors_ahead(&mut self, id: JobId, plan: Plan, last: Option<CodingExtent>) {
        let wanted = plan.targets.keys().filter(|lba| !plan.held.contains_key(lba));
        let mut wanted: BTreeSet<Lba> = wanted.copied().collect();
        let has_end = |extent: &CodingExtent| {
            plan.targets.contains_key(&Lba::new(extent.data().end().get() - 1))
        };
        if let Some(extent) = last.filter(has_end) {
            wanted.extend(extent.all().iter().skip(extent.data as usize));
        }
        self.read_wanted(id, plan, &wanted, true);
    }

    fn read_wanted(&mut self, id: JobId, plan: Plan, wanted: &BTreeSet<Lba>, is_ahead: bool) {
        let got = plan.held.clone();
        let read = PageRead {
            plan,
            got,
            lost: BTreeSet::new(),
            stage: Stage::Fast,
            subs: BTreeMap::new(),
            sums: BTreeMap::new(),
            around: Vec::new(),
            writings: 0,
            tries: 0,
            bad: BTreeSet::new(),
            beside: BTreeMap::new(),
            found_bad: BTreeSet::new(),
            repaired: 0,
            is_ahead,
            was_freed: false,
        };
        self.page_reads.insert(id, read);
        // Without redundancy a quick end is of no use.
        let is_coded = self.superblock.ladder.redundant_max() > 0;
        self.ask_for(id, wanted, if is_coded { Effort::Fast } else { Effort::Full });
        self.end_stage(id);
    }

    /// The sectors that a job has waited for, once they are there.
    pub(super) fn take_sectors(&mut self, id: JobId) -> Option<PageRead> {
        let is_done = self.page_reads.get(&id).is_some_and(|read| read.stage == Stage::Done);
        if is_done { self.page_reads.remove(&id) } else { None }
    }

    /// Whether a job waits for sectors.
    pub(super) fn is_reading(&self, id: JobId) -> bool {
        self.page_reads.get(&id).is_some_and(|read| read.stage != Stage::Done)
    }

    fn ask_for(&mut self, id: JobId, wanted: &BTreeSet<Lba>, effort: Effort) {
        let mut runs: Vec<Extent> = Vec::new();
        for &lba in wanted {
            match runs.last_mut() {
                Some(run)
                    if lba.get() <= run.end().get() + GAP_MAX
                        && lba.get() - run.lba.get() < COMMAND_MAX =>
                {
                    run.sectors = lba - run.lba + Sectors::new(1);
                }
                Some(_) | None => runs.push(Extent::new(lba, Sectors::new(1))),
            }
        }
        for run in runs {
            let sub = self.submit_read(Purpose::Pages(id), run, effort);
            self.page_reads.get_mut(&id).expect("it reads").subs.insert(sub, run);
        }
    }

    pub(super) fn handle_pages(&mut self, id: JobId, sub: SubId, reply: Reply) {
        let filesystem = self.superblock.filesystem();
        let inode = self.file_of(id);
        let Some(read) = self.page_reads.get_mut(&id) else { return };
        let run = read.subs.remove(&sub).expect("it was asked for");
        let is_full = read.stage == Stage::Full;
        let is_there = |at: u32| match &reply.outcome {
            Outcome::Done { unknown, damaged } => !unknown.contains(at) && !damaged.contains(at),
            Outcome::Refused | Outcome::Unreachable | Outcome::Gone => false,
        };
        let there: Vec<bool> = (0..run.sectors.get() as u32).map(is_there).collect();
        let buf = match reply.outcome {
            Outcome::Done { .. } => reply.data.into_buf(),
            Outcome::Refused | Outcome::Unreachable | Outcome::Gone => Buf::empty(),
        };
        let whole = Piece::whole(Arc::new(buf));
        let mut worn = Vec::new();
        for (at, lba) in (0..).zip(run.iter()) {
            let target = read.plan.targets.get(&lba).map(|target| target.sum);
            let Some(sum) = target.or(read.sums.get(&lba).copied().flatten()) else {
                if there[at as usize] {
                    read.beside.insert(lba, whole.part(at, 1));
                }
                continue;
            };
            if read.got.contains_key(&lba) {
                continue;
            }
            let piece = there[at as usize].then(|| whole.part(at, 1));
            let piece = piece.filter(|piece| sum_of(filesystem, lba, piece.bytes()) == sum);
            // Without a file that would leave it, a place is tried once more.
            let may_be_left = there[at as usize] || inode.is_some();
            if may_be_left && self.repairs.note_read(sub, lba, there[at as usize]) {
                worn.push(lba);
            }
            match piece {
                Some(piece) => {
                    read.bad.remove(&lba);
                    if is_full {
                        self.counts.retried += 1;
                    }
                    self.sectors.insert(lba, &piece, sum);
                    read.got.insert(lba, piece);
                }
                None => {
                    read.bad.insert(lba);
                }
            }
        }
        if let Some(inode) = inode {
            worn.into_iter().for_each(|lba| self.leave_place(inode, lba));
        }
        self.end_stage(id);
    }

    /// Whose sectors a job reads, if it is one file's.
    fn file_of(&self, id: JobId) -> Option<u64> {
        match self.jobs.get(&id)? {
            Job::Request(asking) => match asking.request.what {
                What::Read { inode, .. } | What::Write { inode, .. } => Some(inode),
                _ => None,
            },
            Job::Ahead { inode, .. } | Job::Flush { inode } => Some(*inode),
            Job::Rewrite(part) => Some(part.inode),
            Job::Scrub => self.scrubs.get(&id)?.inode(),
            Job::Place(group) => self.stale.get(*group)?.inode,
            _ => None,
        }
    }

    /// Goes on when everything that was asked for has ended.
    fn end_stage(&mut self, id: JobId) {
        let read = self.page_reads.get_mut(&id).expect("it reads");
        if !read.subs.is_empty() {
            return;
        }
        let missing = |read: &PageRead| -> BTreeSet<Lba> {
            let missing = read.plan.targets.keys().filter(|lba| !read.got.contains_key(lba));
            missing.copied().collect()
        };
        match read.stage {
            Stage::Fast => {
                let bad = missing(read);
                if bad.is_empty() {
                    return self.end_read(id);
                }
                read.found_bad = bad;
                self.look_around(id);
            }
            Stage::Sums => unreachable!("nothing of the disk is read for sums here"),
            Stage::Around => {
                self.compute(id);
                match missing(&self.page_reads[&id]).is_empty() {
                    true => self.end_read(id),
                    false => self.read_fully(id),
                }
            }
            Stage::Full => {
                self.compute(id);
                let read = self.page_reads.get_mut(&id).expect("it reads");
                // What was placed meanwhile is another codeword, and there is redundancy for it.
                let was_written = read.writings != self.stale.writings();
                if was_written && read.tries < TRIES_MAX && !missing(read).is_empty() {
                    read.tries += 1;
                    let Plan { targets, held, .. } = &read.plan;
                    read.got.retain(|lba, _| targets.contains_key(lba) || held.contains_key(lba));
                    read.bad.clear();
                    return self.look_around(id);
                }
                read.lost = missing(read);
                let lost = read.lost.iter().map(|lba| (*lba, read.plan.targets[lba].sum));
                let found = lost.map(|(lba, sum)| self.repairs.note_lost(lba, sum));
                self.counts.lost += found.filter(|is_new| *is_new).count() as u64;
                self.end_read(id);
            }
            Stage::Done => {}
        }
    }

    /// What is missing is to be computed from the rest of its codewords (RD2).
    fn look_around(&mut self, id: JobId) {
        let read = &self.page_reads[&id];
        let missing = read.plan.targets.iter().filter(|(lba, _)| !read.got.contains_key(lba));
        let mut around: Vec<CodingExtent> = Vec::new();
        for (_, Target { extent, .. }) in missing {
            if !around.contains(extent) {
                around.push(*extent);
            }
        }
        around.retain(|extent| match extent.has_twins() {
            true => true,
            false => extent.redundant > 0 && self.may_be_whole(extent),
        });
        let read = self.page_reads.get_mut(&id).expect("it reads");
        (read.around, read.writings) = (around, self.stale.writings());
        match read.around.is_empty() {
            true => self.read_fully(id),
            false => {
                read.stage = Stage::Sums;
                self.go_on_reading(id);
            }
        }
    }

    /// Whether there are whole codewords in a coding extent's places, or soon.
    fn may_be_whole(&self, extent: &CodingExtent) -> bool {
        self.stale.lies_as(extent).is_some() || self.is_being_placed(extent)
    }

    /// Whether a coding extent's places are being written, and that will end.
    fn is_being_placed(&self, extent: &CodingExtent) -> bool {
        !matches!(self.phase, Phase::Broken(_)) && self.stale.is_being_written(extent.lba)
    }

    /// The places of a coding extent are written, or it is there no more, or no place will be written any more: those who wait for that
    /// go on.
    pub(super) fn wake_readers_of(&mut self, group: Option<Lba>) {
        let is_it = |extent: &CodingExtent| group.is_none_or(|group| extent.lba == group);
        let waits = |read: &PageRead| read.stage == Stage::Sums && read.around.iter().any(is_it);
        for (&id, _) in self.page_reads.iter().filter(|(_, read)| waits(read)) {
            if !self.ready.contains(&id) {
                self.ready.push_back(id);
            }
        }
    }

    /// With retries: what is wanted, and whatever else of its codewords is missing.
    fn read_fully(&mut self, id: JobId) {
        let read = self.page_reads.get_mut(&id).expect("it reads");
        if read.is_ahead {
            return self.end_read(id);
        }
        read.stage = Stage::Full;
        let missing = read.plan.targets.keys().filter(|lba| !read.got.contains_key(lba));
        let wanted: BTreeSet<Lba> = missing.chain(&read.bad).copied().collect();
        self.ask_for(id, &wanted, Effort::Full);
        self.end_stage(id);
    }

    fn end_read(&mut self, id: JobId) {
        let read = self.page_reads.get_mut(&id).expect("it reads");
        read.stage = Stage::Done;
        // What was read to compute others of may be what was there before.
        let Plan { targets, held, .. } = &read.plan;
        read.got.retain(|lba, _| targets.contains_key(lba) || held.contains_key(lba));
        self.ready.push_back(id);
    }

    /// A job that reads is ready: units with sums have come.
    pub(super) fn go_on_reading(&mut self, id: JobId) {
        let read = &self.page_reads[&id];
        if read.stage != Stage::Sums {
            return;
        }
        if read.around.iter().any(|extent| self.is_being_placed(extent)) {
            return; // It is ready again when that has ended.
        }
        // As they lie in their places.
        let layout = |extent: &CodingExtent| match extent.has_twins() {
            true => Some(*extent),
            false => self.stale.lies_as(extent),
        };
        let around: Vec<CodingExtent> = read.around.iter().filter_map(layout).collect();
        let bad = read.found_bad.clone();
        let summed = self.attempt(id, |attempt| {
            let mut sums = BTreeMap::new();
            for extent in &around {
                let is_looked_at = |lba: &Lba| {
                    let twin = extent.twin_of(*lba);
                    !extent.has_twins() || twin.is_some_and(|twin| bad.contains(&twin))
                };
                for lba in extent.all().iter().filter(is_looked_at) {
                    sums.insert(lba, attempt.sum(lba)?);
                }
            }
            Ok(sums)
        });
        match summed {
            Attempted::Waits => {}
            Attempted::Failed(_) => self.read_fully(id),
            Attempted::Complete(mut sums) => {
                // What the journal has is not in its place: there lies what the old redundancy was computed of.
                for extent in &around {
                    let data = extent.data();
                    for (&lba, logged) in self.logged.range(data.lba..data.end()) {
                        sums.insert(lba, logged.old);
                    }
                    let in_place = self.stale.get(extent.lba).map(|stale| &stale.in_place);
                    if let Some(Some(in_place)) = in_place
                        && !extent.has_twins()
                    {
                        sums.extend(&in_place.sums);
                    }
                }
                let mut wanted: BTreeSet<Lba> =
                    sums.iter().filter(|(_, sum)| sum.is_some()).map(|(&lba, _)| lba).collect();
                let read = self.page_reads.get_mut(&id).expect("it reads");
                wanted.retain(|lba| !read.got.contains_key(lba) && !read.bad.contains(lba));
                // What has come already, and what is in memory.
                let filesystem = self.superblock.filesystem();
                let read = self.page_reads.get_mut(&id).expect("it reads");
                for (lba, piece) in std::mem::take(&mut read.beside) {
                    let sum = sums.get(&lba).copied().flatten();
                    if sum == Some(sum_of(filesystem, lba, piece.bytes())) && wanted.remove(&lba) {
                        read.got.insert(lba, piece);
                    }
                }
                for (&lba, sum) in &sums {
                    if wanted.contains(&lba)
                        && let Some(piece) = sum.and_then(|sum| self.sectors.get(lba, sum))
                    {
                        wanted.remove(&lba);
                        read.got.insert(lba, piece);
                    }
                }
                (read.sums, read.around, read.stage) = (sums, around, Stage::Around);
                read.writings = self.stale.writings();
                self.ask_for(id, &wanted, Effort::Fast);
                self.end_stage(id);
            }
        }
    }

    /// Computes what is bad of the codewords of which enough is there, and writes it anew.
    fn compute(&mut self, id: JobId) {
        let filesystem = self.superblock.filesystem();
        let read = &self.page_reads[&id];
        let zero = [0; PAGE as usize];
        let mut computed: Vec<Computed> = Vec::new();
        for extent in &read.around {
            if extent.has_twins() {
                computed.extend(read.twins(extent));
                continue;
            }
            if self.stale.lies_as(extent) != Some(*extent) {
                continue; // It is being written, or was since.
            }
            for word in 0..extent.words() {
                let data = extent.word_data(word);
                let symbols = data as usize + usize::from(extent.redundant);
                let place = |symbol| {
                    let of = crate::format::extent::WordSymbol { word, symbol };
                    extent.lba + Sectors::new(extent.sector(of).into())
                };
                let is_bad = |lba: &Lba| {
                    read.sums.get(lba).is_some_and(Option::is_some) && !read.got.contains_key(lba)
                };
                let bad: Vec<Lba> = (0..symbols).map(place).filter(is_bad).collect();
                if bad.is_empty() || bad.len() > usize::from(extent.redundant) {
                    continue;
                }
                let mut room: Vec<Buf> = bad.iter().map(|_| Buf::zeroed(Sectors::new(1))).collect();
                let mut into = room.iter_mut();
                let mut all: Vec<Symbol<'_>> = (0..symbols)
                    .map(|symbol| {
                        let lba = place(symbol);
                        match read.got.get(&lba) {
                            Some(piece) => Symbol::Available(piece.bytes()),
                            None if bad.contains(&lba) => {
                                Symbol::Wanted(into.next().expect("one for each").as_mut_slice())
                            }
                            None => Symbol::Available(&zero),
                        }
                    })
                    .collect();
                let code = self.codes.get(data, extent.redundant);
                if code.reconstruct(self.settings.choices, &mut all).is_err() {
                    continue;
                }
                drop(all);
                let (extent, bad) = (*extent, Arc::new(bad));
                let rewritten = |(lba, buf)| Computed { lba, buf, extent, bad: Arc::clone(&bad) };
                computed.extend(bad.iter().copied().zip(room).map(rewritten));
            }
        }
        let is_scrub = self.scrubs.contains_key(&id);
        let inode = self.file_of(id);
        for Computed { lba, buf, extent, bad } in computed {
            let read = self.page_reads.get_mut(&id).expect("it reads");
            let target = read.plan.targets.get(&lba).map(|target| target.sum);
            let Some(sum) = read.sums.get(&lba).copied().flatten().or(target) else { continue };
            if sum_of(filesystem, lba, buf.as_slice()) != sum {
                continue; // RD1: some other symbol is not what it should be.
            }
            let piece = Piece::whole(Arc::new(buf));
            read.got.insert(lba, piece.clone());
            read.bad.remove(&lba);
            if read.plan.targets.contains_key(&lba) {
                self.counts.decoded += 1;
            }
            self.sectors.insert(lba, &piece, sum);
            if self.page_reads[&id].was_freed {
                continue; // DE2
            }
            let deferred = Deferred { lba, sum, piece, extent, bad, inode };
            if !is_scrub {
                self.defer(deferred);
            } else if self.rewrite_if_right(deferred) {
                self.page_reads.get_mut(&id).expect("it reads").repaired += 1;
            }
        }
    }
}
