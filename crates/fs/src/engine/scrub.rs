//! A scrub, a step at a time: all copies of metadata and all sectors of files are read, and what is bad is written anew.
//!
//! ```text
//!   groups: bitmaps and sums of each --> inodes, unit by unit: their trees, their attributes, then their sectors --> the end
//! ```
//!
//! The caller asks for one step after the other, and decides how fast. Between two steps nothing is kept: a step names where the
//! next one begins, and what comes or goes meanwhile is met or not.
//!
//! # Invariants
//!
//! - SC1. A copy is rewritten only if its unit is in its place, and nothing is on its way there or was since the unit was read: what was
//!   read would be the older version.
//! - SC2. What was changed while it was read counts neither as damaged nor as lost.
//! - SC3. A step begins again if a reader has found a copy of one of its units bad meanwhile: that reader stops at the first copy that is
//!   right, and repairs only those before it. The step waits until these repairs are durable.

use std::collections::{BTreeMap, BTreeSet};

use levelhead_block::{Effort, Outcome, Reply};
use levelhead_units::{Extent, Lba, Sectors};

use super::job::{Job, JobId};
use super::plan::{Plan, Target};
use super::{Attempted, Filesystem, Purpose, SubId};
use crate::action::{Action, Event};
use crate::attempt::{Attempt, Stop, broken};
use crate::format::inode::{INODES, Inode, InodePlace};
use crate::format::unit::{Head, Sector};
use crate::geometry::GroupIdx;
use crate::ops::extents::Pages;
use crate::request::{Answer, Errno, ScrubParts, ScrubPlace, Scrubbed};

/// Sectors of files that one step reads: 16 MiB.
const SECTORS_MAX: u64 = 4_096;

/// Windows of a file that one step looks at.
const WINDOWS_MAX: usize = 256;

/// A step on its way.
#[derive(Debug)]
pub(super) struct Scrubbing {
    pub(super) request: levelhead_block::RequestId,
    place: ScrubPlace,
    parts: ScrubParts,
    done: Scrubbed,
    stage: Stage,
}

impl Scrubbing {
    /// A unit is written in its place: what was read of it is older (SC1).
    pub(super) fn pass_over(&mut self, lead: Lba) {
        if let Stage::Units(units) = &mut self.stage {
            units.copies.remove(&lead);
        }
    }
}

#[derive(Debug)]
enum Stage {
    Planning,
    /// Copies of units are read.
    Units(Units),
    /// Sectors of a file are.
    Sectors(Box<FileStep>),
    /// The file's place on the list of damaged ones is put right.
    Noting(FileEnd),
}

/// What a step does.
#[derive(Debug, Default)]
struct StepPlan {
    /// Leads of units.
    units: Vec<Lba>,
    file: Option<FileStep>,
    next: Option<ScrubPlace>,
    /// Places that could not be looked at.
    lost: u64,
}

impl StepPlan {
    /// What cannot be looked at is passed over, and counts.
    fn passed_over(next: Option<ScrubPlace>) -> Self {
        Self { next, lost: 1, ..Self::default() }
    }
}

/// The part of a file that a step reads.
#[derive(Debug, Default)]
struct FileStep {
    inode: u64,
    targets: BTreeMap<Lba, Target>,
    /// Whether an earlier step has found something of it lost.
    was_damaged: bool,
    /// Whether some of it does not lie as its kind has it.
    is_of_other_kind: bool,
    /// Whether nothing of it follows.
    is_end: bool,
}

/// What is known of a file when all of it was read.
#[derive(Clone, Copy, Debug)]
struct FileEnd {
    inode: u64,
    is_damaged: bool,
}

#[derive(Debug)]
struct Units {
    subs: BTreeMap<SubId, Lba>,
    /// All copies of the units, as they were read; nothing of one that was written since.
    copies: BTreeMap<Lba, Vec<Copy>>,
    /// Whether those of which no copy came were read with retries.
    is_retry: bool,
    file: Option<FileStep>,
}

#[derive(Debug)]
struct Copy {
    lba: Lba,
    /// What is there, if it is the unit's.
    found: Option<Box<(Head, Sector)>>,
}

impl Scrubbing {
    pub(super) fn new(
        request: levelhead_block::RequestId,
        place: ScrubPlace,
        parts: ScrubParts,
    ) -> Self {
        Self { request, place, parts, done: Scrubbed::default(), stage: Stage::Planning }
    }
}

impl Attempt<'_> {
    fn plan_step(&mut self, place: ScrubPlace, parts: ScrubParts) -> Result<StepPlan, Stop> {
        match place {
            ScrubPlace::Group(group) => self.plan_group(group, parts),
            ScrubPlace::Inode { lead, slot, page, was_damaged } => {
                let units = match self.inode_units(lead) {
                    // Without the list of units it has no way on.
                    Err(Stop::Fail(_)) => return Ok(StepPlan::passed_over(None)),
                    units => units?,
                };
                let (here, page, was_damaged) = match units.first() {
                    None => return Ok(StepPlan::default()),
                    Some(&known) if known == lead => (InodePlace { lead, slot }, page, was_damaged),
                    // It begins with the next unit that there is.
                    Some(&lead) => (InodePlace { lead, slot: 0 }, 0, false),
                };
                match self.plan_inode(here, page, was_damaged, parts) {
                    Err(Stop::Fail(_)) => Ok(StepPlan::passed_over(Some(behind(here)))),
                    plan => plan,
                }
            }
        }
    }

    /// Fixed units of a group that were written, and the summary with the first one.
    fn plan_group(&mut self, group: u64, parts: ScrubParts) -> Result<StepPlan, Stop> {
        let geometry = self.superblock.geometry;
        let mut units = Vec::new();
        if parts.metadata && group < geometry.groups() {
            if group == 0 {
                let first = self.superblock.summary;
                units.extend(crate::space::summary_leads(&geometry, first));
            }
            units.extend(self.fixed_units_written(GroupIdx(group))?);
        }
        let is_last = group + 1 >= geometry.groups() || !parts.metadata;
        let next = match is_last {
            true => ScrubPlace::inodes_from(Lba::ZERO),
            false => ScrubPlace::Group(group + 1),
        };
        Ok(StepPlan { units, next: Some(next), ..StepPlan::default() })
    }

    /// Units of an inode with its first pages, or some more of its pages.
    fn plan_inode(
        &mut self,
        place: InodePlace,
        page: u64,
        was_damaged: bool,
        parts: ScrubParts,
    ) -> Result<StepPlan, Stop> {
        let InodePlace { lead, slot } = place;
        broken(self.superblock.geometry.may_lead(lead).then_some(()))?;
        let number = place.number();
        let mut plan = StepPlan { next: Some(behind(place)), ..StepPlan::default() };
        if page == 0 && slot == 0 && parts.metadata {
            plan.units.push(lead);
        }
        let inode: Inode = self.get_inode(number)?;
        if inode.mode == 0 {
            return Ok(plan);
        }
        if page == 0 && parts.metadata {
            if inode.attributes != Lba::ZERO {
                plan.units.push(inode.attributes);
            }
            plan.units.extend(self.tree_units(number, &inode)?);
        }
        let geometry = self.superblock.geometry;
        broken(plan.units.iter().all(|&lead| geometry.may_lead(lead)).then_some(()))?;
        // They are in memory, so that it shows if one is freed meanwhile.
        let leads = plan.units.clone();
        if leads.into_iter().filter(|&lead| !self.want(lead)).count() > 0 {
            return Err(Stop::Need);
        }
        let is_own = self.superblock.own_inodes().contains(&number);
        if !inode.is_file() || is_own || !(parts.data || parts.redundancy) {
            return Ok(plan);
        }
        let windows =
            self.windows(number, &inode, Pages { from: page, to: u64::MAX }, WINDOWS_MAX)?;
        let mut file = FileStep { inode: number, was_damaged, ..FileStep::default() };
        let mut sectors = 0;
        let mut seen = BTreeSet::new();
        let mut end = windows.len() < WINDOWS_MAX;
        let mut from = page;
        for mapped in windows {
            if sectors >= SECTORS_MAX {
                end = false;
                break;
            }
            from = mapped.end();
            let extent = mapped.window.extent;
            if !seen.insert(extent.lba) {
                continue; // Another window of the same, right before.
            }
            file.is_of_other_kind |= extent.kind != self.superblock.kind_of_extents(inode.kind);
            let data = extent.data();
            for lba in extent.all().iter() {
                let is_wanted = if data.contains(lba) { parts.data } else { parts.redundancy };
                if is_wanted && let Some(sum) = self.sum(lba)? {
                    file.targets.insert(lba, Target { sum, extent });
                    sectors += 1;
                }
            }
        }
        file.is_end = end;
        if !end {
            let was_damaged = false; // The step that reads it says.
            plan.next = Some(ScrubPlace::Inode { lead, slot, page: from, was_damaged });
        }
        plan.file = Some(file);
        Ok(plan)
    }
}

impl Scrubbing {
    /// The file whose sectors it reads.
    pub(super) fn inode(&self) -> Option<u64> {
        match &self.stage {
            Stage::Sectors(file) => Some(file.inode),
            Stage::Planning | Stage::Units(_) | Stage::Noting(_) => None,
        }
    }
}

impl Filesystem {
    pub(super) fn run_scrub(&mut self, id: JobId) {
        if let Some(scrubbing) = self.scrubs.remove(&id) {
            self.go_on_scrubbing(id, scrubbing);
        }
    }

    fn keep_scrub(&mut self, id: JobId, scrubbing: Scrubbing) {
        self.scrubs.insert(id, scrubbing);
        self.keep(id, Job::Scrub);
    }

    pub(super) fn go_on_scrubbing(&mut self, id: JobId, mut scrubbing: Scrubbing) {
        match &mut scrubbing.stage {
            Stage::Planning => {
                let (place, parts) = (scrubbing.place, scrubbing.parts);
                match self.attempt(id, |attempt| attempt.plan_step(place, parts)) {
                    // SC1, RP2: what was found bad on the way is written anew first, and safe.
                    Attempted::Complete(plan) if plan.units.iter().any(|&u| self.is_mended(u)) => {
                        self.await_repairs(id);
                        self.keep_scrub(id, scrubbing);
                    }
                    Attempted::Complete(StepPlan { units, file, next, lost }) => {
                        scrubbing.done.next = next;
                        scrubbing.done.lost += lost;
                        self.read_units_of(id, scrubbing, &units, file);
                    }
                    Attempted::Waits => self.keep_scrub(id, scrubbing),
                    // The summary cannot be read, or nothing is written any more.
                    Attempted::Failed(_) => {
                        scrubbing.done.lost += 1;
                        scrubbing.done.next = match scrubbing.place {
                            ScrubPlace::Group(group) => Some(ScrubPlace::Group(group + 1)),
                            ScrubPlace::Inode { .. } => None,
                        };
                        self.end_scrub(&scrubbing);
                    }
                }
            }
            Stage::Units(_) => self.keep_scrub(id, scrubbing),
            Stage::Sectors(file) => {
                let Some(read) = self.take_sectors(id) else {
                    if self.is_reading(id) {
                        self.keep_scrub(id, scrubbing);
                        self.go_on_reading(id);
                    }
                    return;
                };
                let (inode, was_damaged, is_end) = (file.inode, file.was_damaged, file.is_end);
                if file.is_of_other_kind {
                    self.rewrite_file(inode);
                }
                let targets = std::mem::take(&mut file.targets);
                // SC2
                let mut is_same = |lba: &Lba| {
                    let known = self.peek(|attempt| attempt.sum(*lba)).flatten();
                    known == Some(targets[lba].sum) && !self.logged.contains_key(lba)
                };
                let lost: Vec<Lba> = read.lost.iter().copied().filter(&mut is_same).collect();
                let damaged = read.found_bad.iter().filter(|lba| is_same(lba)).count() as u64;
                scrubbing.done.damaged += damaged;
                scrubbing.done.repaired += read.repaired;
                scrubbing.done.lost += lost.len() as u64;
                for &lba in &lost {
                    self.actions.push_back(Action::Event(Event::Lost { lba, inode }));
                }
                let is_damaged = was_damaged || !lost.is_empty();
                if let Some(ScrubPlace::Inode { was_damaged, .. }) = &mut scrubbing.done.next
                    && !is_end
                {
                    *was_damaged = is_damaged;
                }
                if !is_end || self.is_read_only() {
                    return self.end_scrub(&scrubbing);
                }
                scrubbing.stage = Stage::Noting(FileEnd { inode, is_damaged });
                self.go_on_scrubbing(id, scrubbing);
            }
            Stage::Noting(end) => {
                let end = *end;
                let noted = self.attempt(id, |attempt| {
                    attempt.note_damaged(end.inode, end.is_damaged)?;
                    attempt.damaged_files()
                });
                match noted {
                    Attempted::Waits => self.keep_scrub(id, scrubbing),
                    Attempted::Failed(_) => self.end_scrub(&scrubbing),
                    Attempted::Complete(files) => {
                        self.counts.files_damaged = files;
                        self.end_scrub(&scrubbing);
                    }
                }
            }
        }
    }

    fn end_scrub(&mut self, scrubbing: &Scrubbing) {
        self.reply(scrubbing.request, Answer::Scrubbed(scrubbing.done));
    }

    /// Reads all copies of some units, if there are any, and then the file's sectors.
    fn read_units_of(
        &mut self,
        id: JobId,
        mut scrubbing: Scrubbing,
        leads: &[Lba],
        file: Option<FileStep>,
    ) {
        let mut units =
            Units { subs: BTreeMap::new(), copies: BTreeMap::new(), is_retry: false, file };
        for &lead in leads {
            if !self.is_settled(lead) || units.copies.contains_key(&lead) {
                continue;
            }
            units.copies.insert(lead, Vec::new());
            for lba in self.superblock.geometry.copies_of(lead) {
                let extent = Extent::new(lba, Sectors::new(1));
                let sub = self.submit_read(Purpose::Scrub(id), extent, Effort::Fast);
                units.subs.insert(sub, lead);
            }
        }
        scrubbing.done.read += units.subs.len() as u64;
        if units.subs.is_empty() {
            return self.read_file(id, scrubbing, units.file);
        }
        scrubbing.stage = Stage::Units(units);
        self.keep_scrub(id, scrubbing);
    }

    /// Whether a unit is in its place, as far as is known, and nothing is on its way there.
    fn is_settled(&self, lead: Lba) -> bool {
        let copies = self.superblock.geometry.copies_of(lead);
        let is_touched = |extent: Extent| copies.iter().any(|&copy| extent.contains(copy));
        let mut writes = self.subs.values().filter(|inside| inside.what.is_write());
        !self.cache.is_pinned(lead)
            && !self.checkpoint.has(lead)
            && !writes.any(|inside| inside.extent.is_some_and(is_touched))
    }

    /// Whether a copy of a unit is being written anew.
    fn is_mended(&self, lead: Lba) -> bool {
        let copies = self.superblock.geometry.copies_of(lead);
        let is_unsafe = |copy: Lba| self.repairs.is_unsafe(Extent::new(copy, Sectors::new(1)));
        !self.is_read_only() && copies.into_iter().any(is_unsafe)
    }

    /// A copy of a unit has come.
    pub(super) fn handle_scrub(&mut self, id: JobId, sub: SubId, extent: Extent, reply: Reply) {
        let filesystem = self.superblock.filesystem();
        let Some(scrubbing) = self.scrubs.get_mut(&id) else { return };
        let Stage::Units(units) = &mut scrubbing.stage else { return };
        let Some(lead) = units.subs.remove(&sub) else { return };
        let bytes = (reply.outcome == Outcome::GOOD).then(|| reply.data.into_buf());
        let sector: Option<Sector> = bytes.and_then(|buf| buf.as_slice().try_into().ok());
        let found = sector.and_then(|sector| {
            let head = Head::open(&sector).ok()?;
            let is_its = head.filesystem == filesystem && head.lba == lead;
            is_its.then(|| Box::new((head, sector)))
        });
        if let Some(copies) = units.copies.get_mut(&lead) {
            copies.push(Copy { lba: extent.lba, found });
        }
        if !units.subs.is_empty() || self.retry_units(id) {
            return;
        }
        let Some(mut scrubbing) = self.scrubs.remove(&id) else { return };
        self.jobs.remove(&id);
        let Stage::Units(units) = std::mem::replace(&mut scrubbing.stage, Stage::Planning) else {
            return;
        };
        // SC3
        if units.copies.keys().any(|&lead| self.is_mended(lead)) {
            scrubbing.done = Scrubbed::default();
            self.await_repairs(id);
            return self.keep_scrub(id, scrubbing);
        }
        for (lead, copies) in units.copies {
            self.compare_copies(&mut scrubbing.done, lead, &copies);
        }
        self.read_file(id, scrubbing, units.file);
    }

    /// Units of which one pass has brought no copy are read with retries; whether there are such.
    fn retry_units(&mut self, id: JobId) -> bool {
        let Some(Scrubbing { stage: Stage::Units(units), .. }) = self.scrubs.get_mut(&id) else {
            return false;
        };
        if units.is_retry {
            return false;
        }
        units.is_retry = true;
        let is_missing = |copies: &Vec<Copy>| copies.iter().all(|copy| copy.found.is_none());
        let mut again: Vec<(Lba, Lba)> = Vec::new();
        for (&lead, copies) in units.copies.iter_mut().filter(|(_, copies)| is_missing(copies)) {
            again.extend(std::mem::take(copies).into_iter().map(|copy| (lead, copy.lba)));
        }
        for &(lead, lba) in &again {
            let extent = Extent::new(lba, Sectors::new(1));
            let sub = self.submit_read(Purpose::Scrub(id), extent, Effort::Full);
            let scrubbing = self.scrubs.get_mut(&id).expect("it was found");
            if let Stage::Units(units) = &mut scrubbing.stage {
                units.subs.insert(sub, lead);
            }
        }
        !again.is_empty()
    }

    fn compare_copies(&mut self, done: &mut Scrubbed, lead: Lba, copies: &[Copy]) {
        // SC1, SC2. What has left memory may have been freed; a fixed unit never is.
        let is_fixed = self.superblock.geometry.is_fixed(lead);
        let is_there = is_fixed || self.cache.has(lead) || self.lost.contains(&lead);
        if !self.is_settled(lead) || !is_there {
            return;
        }
        let newest = copies.iter().filter_map(|copy| copy.found.as_deref());
        let Some((head, sector)) = newest.max_by_key(|(head, _)| head.generation) else {
            (done.damaged, done.lost) =
                (done.damaged + copies.len() as u64, done.lost + copies.len() as u64);
            self.actions.push_back(Action::Event(Event::MetadataLost { lead }));
            return;
        };
        let is_bad = |copy: &&Copy| {
            copy.found.as_ref().is_none_or(|found| found.0 != *head || found.1 != *sector)
        };
        let bad: Vec<Lba> = copies.iter().filter(is_bad).map(|copy| copy.lba).collect();
        let right = copies.iter().map(|copy| copy.lba).filter(|lba| !bad.contains(lba));
        let right: Vec<Lba> = right.collect();
        done.damaged += bad.len() as u64;
        done.repaired += self.mend_copies(&right, &bad, sector);
    }

    fn read_file(&mut self, id: JobId, mut scrubbing: Scrubbing, file: Option<FileStep>) {
        let Some(mut file) = file else { return self.end_scrub(&scrubbing) };
        // What is in the journal is not in its place, and redundancy that is stale is computed soon.
        file.targets.retain(|lba, target| {
            let is_data = target.extent.data().contains(*lba);
            let is_stale = self.stale.has(target.extent.lba);
            !self.logged.contains_key(lba) && (is_data || !is_stale)
        });
        scrubbing.done.read += file.targets.len() as u64;
        let plan = Plan { targets: file.targets.clone(), ..Plan::default() };
        scrubbing.stage = Stage::Sectors(Box::new(file));
        self.keep_scrub(id, scrubbing);
        self.read_sectors(id, plan);
    }

    /// A reader was told that a sector of a file is lost: the file is put on the list.
    pub(super) fn run_damaged(&mut self, id: JobId, inode: u64) {
        let noted = self.attempt(id, |attempt| {
            match attempt.inode(inode) {
                Err(Stop::Fail(Errno::NotFound)) => {}
                Err(stop) => return Err(stop),
                Ok(_) => attempt.note_damaged(inode, true)?,
            }
            attempt.damaged_files()
        });
        match noted {
            Attempted::Complete(files) => self.counts.files_damaged = files,
            Attempted::Failed(_) => {}
            Attempted::Waits => self.keep(id, Job::Damaged { inode }),
        }
    }
}

/// Where a scrub goes on behind an inode.
fn behind(InodePlace { lead, slot }: InodePlace) -> ScrubPlace {
    match slot + 1 < INODES {
        true => ScrubPlace::Inode { lead, slot: slot + 1, page: 0, was_damaged: false },
        false => ScrubPlace::inodes_from(lead + Sectors::new(1)),
    }
}
