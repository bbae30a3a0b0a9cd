//! What is kept of writes, when it is read back, and how it is compared.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use levelhead_block::{BufId, Combine, Command, Effort, Outcome, Place, Segment};
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Lba, Nanos, Sectors};

use super::findings::{Flawed, Flaws};
use crate::action::Action;
use crate::array::parts::Stop;
use crate::array::{Array, Moved};
use crate::core::spread::Spread;
use crate::core::{ALONG, Core, Enqueue, Purpose, Sub, WRITTEN};
use crate::drives::Fate;
use crate::drives::queue::End;
use crate::journal::Journal;
use crate::log::rules::Rule;
use crate::names::{OpId, SubId};
use crate::settings::verify::{Promise, Reach, VerifyMode};
use crate::shape::Cell;
use crate::tags::sector::{NO_TAG, TagSector};
use crate::timers::first_of;
use crate::verify::records::{Keeps, Part};
use crate::verify::runs::Stage;
use crate::verify::state::Sent;

/// The most sectors of one read, unless a single write has more: 1 MiB.
const READ_MAX: Sectors = Sectors::new(256);

/// A read that is to find its sectors as they come round is sent this long before: overhead, and the length of a write.
const LEAD: Nanos = Nanos::from_micros(1_500);

/// What the array does to verify its writes.
#[derive(Clone, Debug)]
pub(crate) struct Checks {
    /// The read of each drive, if it has one.
    reads: Vec<Option<CheckRead>>,
    /// Comparisons that were asked for.
    comparing: BTreeMap<u64, Comparing>,
    /// Reads of operations that wait for the checksums of what they have brought (VF3).
    pub(super) held: BTreeMap<u64, HeldRead>,
    /// Reads that have ended, and wait for a tag sector that another one brings.
    behind: Vec<HeldRead>,
    /// The drive after the one that was read last.
    turn: usize,
    /// Whether the last step of the array's own work was a read of written sectors, so that the next one is a scan's.
    is_scans_turn: bool,
    pub(super) flaws: Flaws,
    /// What is to be mended, in the order in which it was found.
    pub(super) flawed: VecDeque<Flawed>,
    /// How long a revolution of each drive takes, where that is known.
    revolutions: Vec<Option<Nanos>>,
}

#[derive(Clone, Debug)]
struct CheckRead {
    sub: SubId,
    extent: Extent,
    parts: Vec<Part>,
    /// Whether it is a step of the array's own work, because room pressed.
    is_step: bool,
}

#[derive(Clone, Debug)]
struct Comparing {
    drive: DriveIdx,
    extent: Extent,
    parts: Vec<Part>,
    buf: BufId,
    /// The sectors whose bytes are compared, in the order of the sums.
    compared: Vec<Lba>,
    unreadable: BTreeSet<Lba>,
    wrong: BTreeSet<Lba>,
    /// Answers that are still to come.
    answers: u32,
}

/// A read of an operation that has ended.
#[derive(Clone, Debug)]
pub(crate) struct HeldRead {
    pub(crate) sub: SubId,
    pub(crate) state: Sub,
    pub(crate) outcome: Outcome,
}

impl Checks {
    pub(crate) fn new(drives: usize) -> Self {
        Self {
            reads: (0..drives).map(|_| None).collect(),
            comparing: BTreeMap::new(),
            held: BTreeMap::new(),
            behind: Vec::new(),
            turn: 0,
            is_scans_turn: false,
            flaws: Flaws::new(drives),
            flawed: VecDeque::new(),
            revolutions: vec![None; drives],
        }
    }
}

impl Core {
    /// A write in place goes out to its drive (VF2).
    pub(crate) fn note_write_out(&mut self, drive: DriveIdx, extent: Extent) {
        if self.verify.keeps(Rule::Superseded) {
            self.verify.records.supersede(drive, extent);
            self.release_checked();
        }
    }

    /// A write in place has ended well (VF1): what is to be known of it.
    pub(crate) fn keep_written(&mut self, drive: DriveIdx, extent: Extent, what: &Sent<'_>) {
        let Some(settings) = self.verify.settings() else { return };
        if !self.drives.present().contains(drive) || self.has_failed() {
            return; // VF7
        }
        if !settings.rules.keep(Rule::Superseded) {
            self.verify.records.supersede(drive, extent);
        }
        let Some(begun) = self.verify.records.begin(drive, extent, what.is_awaited) else {
            return self.release_checked();
        };
        match begun.keeps {
            Keeps::Bytes => {
                let buf = self.out.acquire(extent.sectors);
                let mut into = Place { buf, sector: 0 };
                for &Segment { place, sectors } in what.segments {
                    if self.out.carries_content() {
                        let combine = Combine { into, sectors, from: vec![(1, place)] };
                        self.out.push(Action::Combine(combine));
                    }
                    into = into.plus(sectors);
                }
                self.verify.records.set_bytes(begun.write, buf);
            }
            Keeps::Sums if self.out.carries_content() => {
                let of = what.segments.to_vec();
                self.out.push(Action::digest(RECORD | begun.write, of));
            }
            Keeps::Sums => {}
        }
        if settings.mode == VerifyMode::Raw {
            let part = Part { write: begun.write, extent, offset: 0 };
            self.verify.records.set_stage(drive, part, Stage::Hurried);
        }
        self.release_checked();
    }

    /// Releases the memory of what needs no checking any more.
    pub(crate) fn release_checked(&mut self) {
        self.counters.verify_mended = self.verify.records.tally().mended;
        for buf in self.verify.records.take_freed() {
            self.out.release(buf);
        }
    }
}

/// The names of what new records are to have computed: others are operations'.
const RECORD: u64 = 1 << 63;

impl Array {
    /// What a read from the medium of a drive is worth from now on, by what the runtime knows.
    pub fn handle_promise(&mut self, drive: DriveIdx, promise: Promise) {
        self.core.verify.promises.say(drive, promise);
    }

    /// What lies between the array and a drive. Until it is told, nothing does.
    pub fn handle_reach(&mut self, drive: DriveIdx, reach: Reach) {
        self.core.verify.promises.note_reach(drive, reach);
    }

    /// A revolution of a drive takes this long, if that is known. What it has just written comes round again then, so that it is asked for a little
    /// before: until then it may do other things.
    pub fn handle_revolution(&mut self, drive: DriveIdx, revolution: Option<Nanos>) {
        self.readback.checks.revolutions[drive.as_usize()] = revolution;
    }

    /// The checksums of what an [`Action::Digest`] named, one for each sector.
    pub fn handle_digested(&mut self, now: Instant, id: u64, sums: &[u32]) {
        if id & RECORD != 0 {
            return self.core.verify.records.set_sums(id & !RECORD, sums);
        }
        if id & ALONG != 0 {
            self.core.handle_sums_along(id, sums);
        } else if id & WRITTEN != 0 {
            self.core.handle_written_sums(id, sums);
        } else if let Some(held) = self.readback.checks.held.remove(&id) {
            self.go_on_with(now, held, sums);
        } else if let Some(comparing) = self.readback.checks.comparing.get_mut(&id) {
            let (drive, extent) = (comparing.drive, comparing.extent);
            let differing = self.core.verify.differing(drive, extent, sums);
            let lba = |at: u32| extent.lba + Sectors::new(at.into());
            comparing.wrong.extend(differing.into_iter().map(lba));
            self.note_compared(now, id);
        } else {
            self.handle_computed_digested(now, id, sums);
        }
        self.move_on(now);
    }

    /// What the tag sectors say that a command has read, each with its group; nothing of one that is none.
    pub fn handle_tags(
        &mut self,
        now: Instant,
        sub: SubId,
        drive: DriveIdx,
        found: Vec<(u64, Option<TagSector>)>,
    ) {
        for (group, found) in found {
            let found = found.filter(|found| self.core.is_own(drive, group, found));
            let tags = self.core.tags.as_mut().expect("only an array with checksums reads any");
            match tags.read_of(drive, sub) {
                Some(_) => {
                    let said = found.map(|found| (found.sums, found.list));
                    let checked = tags.end_tag_read(drive, sub, said);
                    let journal = self.journal.as_mut().expect("checksums need a journal");
                    let lost = journal.note_checked(&mut self.core, drive, checked);
                    lost.into_iter().for_each(|group| self.note_lost_group(drive, group));
                }
                None => {
                    let found = found.map_or(NO_TAG, |found| (found.sums, found.list));
                    if tags.knows(drive, group) {
                        tags.confirm(drive, group, &found.0, found.1);
                    } else if !tags.note_tag(drive, group, found.0, found.1) {
                        self.note_lost_group(drive, group);
                    }
                }
            }
        }
        self.move_on(now);
    }

    /// The sectors of a read that has ended if some of them have to be compared with checksums before they are used (VF3).
    pub(crate) fn to_be_summed(&self, state: &Sub, outcome: &Outcome) -> Option<Extent> {
        let records = &self.core.verify.records;
        let is_free = records.is_empty() || !self.core.verify.keeps(Rule::FromRecord);
        let is_free = is_free && self.core.tags.is_none();
        if is_free || state.is_orphan() || !self.core.out.carries_content() {
            return None;
        }
        let is_read = matches!((state.purpose, outcome), (Purpose::Op(_), Outcome::Done { .. }));
        let Command::Read { extent, .. } = state.command else { return None };
        let has_sums = records.has_sums(state.drive, extent) || self.core.tags.is_some();
        (is_read && has_sums).then_some(extent)
    }

    /// A read or another command has ended: its operation goes on, once what was read is compared with its checksums. It need not
    /// look for another way until then.
    pub(crate) fn go_on_or_wait(&mut self, now: Instant, read: HeldRead) {
        if self.core.waits_for_tags(&read.state, &read.outcome) {
            self.note_held(&read);
            return self.readback.checks.behind.push(read);
        }
        let lacking = self.core.not_brought(&read.state, &read.outcome);
        if !lacking.is_empty() {
            let ask = |group| Journal::read_tag(&mut self.core, now, read.state.drive, group);
            lacking.into_iter().for_each(ask);
            self.note_held(&read);
            return self.readback.checks.behind.push(read);
        }
        if let Some(extent) = self.to_be_summed(&read.state, &read.outcome) {
            self.note_held(&read);
            return self.hold_back(extent, read);
        }
        self.core.verify.held.remove(&read.sub);
        self.core.end_tagged_read(read.sub, &read.state);
        self.route(now, read.sub, &read.state, &read.outcome);
    }

    /// Reads that waited for a tag sector go on if none is under way any more; returns whether there were some.
    pub(crate) fn go_on_behind(&mut self, now: Instant) -> Moved {
        if self.readback.checks.behind.is_empty() {
            return Moved::No;
        }
        let waits = |core: &Core, read: &HeldRead| core.waits_for_tags(&read.state, &read.outcome);
        let core = &self.core;
        let is_ready = |read: &mut HeldRead| !waits(core, read);
        let ready: Vec<HeldRead> = self.readback.checks.behind.extract_if(.., is_ready).collect();
        let moved = if ready.is_empty() { Moved::No } else { Moved::Yes };
        for read in ready {
            let is_wanted = !matches!(read.state.purpose, Purpose::Op(_))
                || self.core.verify.held.contains(&read.sub);
            match is_wanted {
                true => self.go_on_or_wait(now, read),
                false => self.let_go_of(&read),
            }
        }
        moved
    }

    /// A drive is lost: nothing waits for its tag sectors. Returns the reads that operations wait for.
    pub(crate) fn take_behind(&mut self, drive: DriveIdx) -> Vec<(SubId, Sub)> {
        let is_meant = |read: &mut HeldRead| read.state.drive == drive;
        let all: Vec<HeldRead> = self.readback.checks.behind.extract_if(.., is_meant).collect();
        let mut wanted = Vec::new();
        for read in all {
            if self.core.verify.held.remove(&read.sub) {
                wanted.push((read.sub, read.state.clone()));
            }
            self.let_go_of(&read);
        }
        wanted
    }

    fn let_go_of(&mut self, read: &HeldRead) {
        self.core.end_tagged_read(read.sub, &read.state);
        read.state.read_buf().into_iter().for_each(|buf| self.core.out.release(buf));
    }

    fn note_held(&mut self, read: &HeldRead) {
        if matches!(read.state.purpose, Purpose::Op(op) if self.work.ops.contains(op)) {
            self.core.verify.held.insert(read.sub);
        }
    }

    /// Has them computed; the read goes on then.
    fn hold_back(&mut self, extent: Extent, read: HeldRead) {
        let id = self.work.name();
        let buf = read.state.read_buf().expect("a read fills one");
        let of = read.state.spread.segments(buf, extent.sectors.get() as u32);
        self.core.out.push(Action::digest(id, of));
        self.readback.checks.held.insert(id, read);
    }

    /// What differs counts as damaged, and is looked at soon.
    fn go_on_with(&mut self, now: Instant, held: HeldRead, sums: &[u32]) {
        let HeldRead { sub, mut state, outcome } = held;
        let Outcome::Done { unknown, damaged } = &outcome else {
            unreachable!("VF3: the read has brought something")
        };
        let extent = state.command.extent().expect("it is a read");
        let drive = state.drive;
        let is_given = |at: &u32| !unknown.contains(*at) && !damaged.contains(*at);
        let differing = self.core.verify.differing(drive, extent, sums);
        let mut wrong: Vec<u32> = differing.into_iter().filter(is_given).collect();
        for &at in &wrong {
            let lba = extent.lba + Sectors::new(at.into());
            self.core.verify.records.hurry(Cell { drive, lba });
        }
        let untagged = self.core.untagged(sub, &state, sums);
        self.core.end_tagged_read(sub, &state);
        state.corrupt = untagged.wrong.into_iter().filter(is_given).collect();
        state.unproven = untagged.unproven.into_iter().filter(is_given).collect();
        let mut corrupt = state.corrupt.clone();
        corrupt.extend(&state.unproven);
        wrong.extend(&corrupt);
        if !self.core.verify.held.remove(&sub) {
            // Its operation has ended, or goes on without it.
            return state.read_buf().into_iter().for_each(|buf| self.core.out.release(buf));
        }
        let stopped = untagged.unknown.into_iter().filter(is_given);
        let unknown = unknown.iter().chain(stopped).collect();
        let damaged = damaged.iter().chain(wrong).collect();
        let outcome = Outcome::Done { unknown, damaged };
        self.route(now, sub, &state, &outcome);
        self.note_corrupt(now, &state, &corrupt);
    }

    /// Whether writes may be read back now.
    fn may_check(&self) -> bool {
        let is_ready = self.journal.as_ref().is_none_or(Journal::is_ready);
        is_ready && self.end.stop == Stop::No && !self.core.has_failed()
    }

    /// When the next read of written sectors may begin.
    pub(crate) fn check_at(&self) -> Option<Instant> {
        let settings = self.core.verify.settings()?;
        if self.core.verify.records.is_empty() || !self.may_check() {
            return None;
        }
        let count = self.readback.checks.reads.len();
        let idle = (0..count).map(DriveIdx::from_usize).filter(|&drive| self.could_check(drive));
        let idle = idle.map(|drive| self.idle_at(drive, settings.wait)).min();
        let pressed = self.pressing_drive().and_then(|_| self.own.pacer.next());
        first_of([idle, pressed])
    }

    /// Whether a drive has something to be read, and can be read.
    fn has_check(&self, drive: DriveIdx) -> bool {
        let drives = &self.core.drives;
        self.readback.checks.reads[drive.as_usize()].is_none()
            && self.core.verify.records.is_ready(drive)
            && drives.present().contains(drive)
            && !drives.silent().contains(drive)
    }

    /// VF6, but for the wait.
    fn could_check(&self, drive: DriveIdx) -> bool {
        let fellows = self.core.layout().spec().fellows(drive);
        // A drive that is silent may give what it was asked for at any time, or never.
        let reading = self.core.verify.reading.without(self.core.drives.silent());
        let is_alone = reading.and(fellows).is_empty();
        self.has_check(drive) && is_alone && self.core.drives.queue_len(drive) == 0
    }

    /// When a drive has been idle for long enough, and what it has just written is about to come round again.
    fn idle_at(&self, drive: DriveIdx, wait: Nanos) -> Instant {
        let verify = &self.core.verify;
        let idle = verify.ended(drive) + wait;
        match self.readback.checks.revolutions[drive.as_usize()] {
            Some(revolution) => comes_round(verify.written(drive), idle, revolution),
            None => idle,
        }
    }

    /// The drive with the oldest of what takes the room of new records and may be read.
    fn pressing_drive(&self) -> Option<DriveIdx> {
        let records = &self.core.verify.records;
        if !records.is_pressed() {
            return None;
        }
        let present = self.core.drives.present();
        let drives = present.iter().filter(|&drive| self.has_check(drive));
        drives.min_by_key(|&drive| records.oldest_ready(drive))
    }

    /// Whether the next step of the array's own work is a read of written sectors rather than a scan: where room presses they
    /// take turns.
    pub(crate) fn is_turn_of_checks(&self) -> bool {
        !self.readback.checks.is_scans_turn && self.may_check() && self.pressing_drive().is_some()
    }

    /// A scan begins.
    pub(crate) fn note_scan(&mut self) {
        self.readback.checks.is_scans_turn = false;
    }

    /// No step waits for a drive that is silent: the next one may begin. What the drive gives at last is compared all the same.
    pub(crate) fn end_silent_steps(&mut self, now: Instant, silent: DriveSet) {
        for drive in silent.iter() {
            if let Some(read) = &mut self.readback.checks.reads[drive.as_usize()]
                && std::mem::take(&mut read.is_step)
            {
                self.own.pacer.note_end(now);
            }
        }
    }

    /// Begins a read of written sectors, or mends some, if there is anything to do now.
    pub(crate) fn check_written(&mut self, now: Instant) -> Moved {
        let Some(settings) = self.core.verify.settings() else { return Moved::No };
        if self.core.has_failed() && !self.core.verify.records.is_empty() {
            self.core.verify.records.forget_all();
            self.core.release_checked();
        }
        if !self.may_check() {
            return Moved::No;
        }
        if self.mend_flawed(now) == Moved::Yes || self.scrub_flawed(now) == Moved::Yes {
            return Moved::Yes;
        }
        if self.core.verify.records.is_empty() {
            return Moved::No;
        }
        let count = self.readback.checks.reads.len();
        for at in (self.readback.checks.turn..count).chain(0..self.readback.checks.turn) {
            let drive = DriveIdx::from_usize(at);
            if !self.has_check(drive) {
                continue;
            }
            let is_idle = self.could_check(drive) && self.idle_at(drive, settings.wait) <= now;
            let is_hurried = self.core.verify.records.is_hurried(drive);
            if is_hurried || is_idle {
                self.readback.checks.turn = (at + 1) % count;
                let end = if is_hurried { End::Head } else { End::Tail };
                self.read_back(now, drive, end);
                return Moved::Yes;
            }
        }
        if let Some(drive) = self.pressing_drive()
            && self.own.pacer.may_begin(now, self.clients.outstanding)
        {
            self.own.pacer.note_begin();
            self.readback.checks.is_scans_turn = true;
            self.read_back(now, drive, End::Tail);
            let read = self.readback.checks.reads[drive.as_usize()].as_mut();
            read.expect("it was just begun").is_step = true;
            return Moved::Yes;
        }
        Moved::No
    }

    fn read_back(&mut self, now: Instant, drive: DriveIdx, end: End) {
        let core = &mut self.core;
        let from = core.area().count_at(core.arm(drive));
        let area = core.place.area();
        let joins = |lba| area.may_pass(lba, lba);
        let parts = core.verify.records.next(drive, from, READ_MAX, joins);
        let (first, last) = (parts.first(), parts.last());
        let (Some(first), Some(last)) = (first, last) else {
            unreachable!("VF6: drive {drive} has something to be read")
        };
        let extent = Extent::new(first.extent.lba, last.extent.end() - first.extent.lba);
        let place = Place { buf: core.out.name_buf(), sector: 0 };
        let sectors = extent.sectors.get() as u32;
        let origin = core.own_origin();
        core.verify.reading = core.verify.reading.with(drive);
        core.counters.verify_reads += 1;
        let sub = core.enqueue(
            now,
            Enqueue {
                purpose: Purpose::Verify,
                drive,
                command: Command::Read { extent, effort: Effort::Medium },
                segments: Segment { place, sectors }.into(),
                origin,
                end,
                fate: Fate::Certain,
                since: None,
            },
        );
        self.readback.checks.reads[drive.as_usize()] =
            Some(CheckRead { sub, extent, parts, is_step: false });
    }

    /// A read of written sectors has ended: what it has brought is compared.
    pub(crate) fn handle_read_back(
        &mut self,
        now: Instant,
        sub: SubId,
        drive: DriveIdx,
        brought: Brought<'_>,
    ) {
        let Brought { buf, spread, outcome } = brought;
        let read = self.take_read(now, drive, sub);
        let (Some(read), Some(buf)) = (read, buf) else {
            return buf.into_iter().for_each(|buf| self.core.out.release(buf));
        };
        let parts: Vec<Part> = {
            let records = &self.core.verify.records;
            read.parts.iter().flat_map(|&part| records.left_of(drive, part)).collect()
        };
        let Outcome::Done { unknown, damaged } = outcome else {
            for part in parts {
                self.core.verify.records.set_stage(drive, part, Stage::Waiting);
            }
            return self.core.out.release(buf);
        };
        let extent = read.extent;
        let lba = |at: u32| extent.lba + Sectors::new(at.into());
        let unreadable: BTreeSet<Lba> = unknown.iter().chain(damaged.iter()).map(lba).collect();
        let (mut compared, mut sums) = (Vec::new(), Vec::new());
        let mut has_sums = false;
        for part in &parts {
            let Some(kept) = self.core.verify.records.bytes(part.write) else {
                has_sums = true;
                continue;
            };
            for (lba, sector) in part.extent.iter().zip(part.offset..) {
                if !unreadable.contains(&lba) {
                    let at = (lba - extent.lba).get() as u32;
                    let read = spread.place(buf, at);
                    sums.push(vec![(1, Place { buf: kept, sector }), (1, read)]);
                    compared.push(lba);
                }
            }
        }
        let id = self.work.name();
        let carries_content = self.core.out.carries_content();
        let mut answers = 0;
        if carries_content && !sums.is_empty() {
            answers += 1;
            self.core.out.push(Action::Check { op: id, sums });
        }
        if carries_content && has_sums {
            answers += 1;
            let of = spread.segments(buf, extent.sectors.get() as u32);
            self.core.out.push(Action::digest(id, of));
        }
        let wrong = BTreeSet::new();
        let comparing =
            Comparing { drive, extent, parts, buf, compared, unreadable, wrong, answers };
        self.readback.checks.comparing.insert(id, comparing);
        if answers == 0 {
            self.conclude(now, id);
        }
    }

    fn take_read(&mut self, now: Instant, drive: DriveIdx, sub: SubId) -> Option<CheckRead> {
        let slot = &mut self.readback.checks.reads[drive.as_usize()];
        let read = slot.take_if(|read| read.sub == sub)?;
        if read.is_step {
            self.own.pacer.note_end(now);
        }
        Some(read)
    }

    /// Which of the bytes were the same. Returns whether that was asked for here.
    pub(crate) fn handle_bytes_compared(&mut self, now: Instant, id: OpId, same: &[bool]) -> bool {
        let Some(comparing) = self.readback.checks.comparing.get_mut(&id) else { return false };
        let pairs = comparing.compared.iter().zip(same);
        comparing.wrong.extend(pairs.filter(|(_, is_same)| !**is_same).map(|(&lba, _)| lba));
        self.note_compared(now, id);
        true
    }

    fn note_compared(&mut self, now: Instant, id: u64) {
        let comparing = self.readback.checks.comparing.get_mut(&id).expect("it was found");
        comparing.answers -= 1;
        if comparing.answers == 0 {
            self.conclude(now, id);
        }
    }

    fn conclude(&mut self, now: Instant, id: u64) {
        let comparing = self.readback.checks.comparing.remove(&id).expect("it was found");
        let Comparing { drive, parts, buf, unreadable, wrong, .. } = comparing;
        self.core.out.release(buf);
        let left: Vec<Part> = {
            // Another write may have gone out since (VF2).
            let records = &self.core.verify.records;
            parts.into_iter().flat_map(|part| records.left_of(drive, part)).collect()
        };
        for part in left {
            if self.core.drives.lost().contains(drive) {
                break; // What was found before has cost it its place (VF7).
            }
            let is_bad = |lba: &Lba| unreadable.contains(lba) || wrong.contains(lba);
            let bad: Vec<Lba> = part.extent.iter().filter(is_bad).collect();
            let (Some(&first), Some(&last)) = (bad.first(), bad.last()) else {
                self.note_right(now, drive, part);
                continue;
            };
            let flawed = cut(part, first, last + Sectors::new(1));
            let is_unreadable = bad.iter().any(|lba| unreadable.contains(lba));
            for right in [
                cut(part, part.extent.lba, first),
                cut(part, flawed.extent.end(), part.extent.end()),
            ] {
                if right.extent.sectors > Sectors::ZERO {
                    self.note_right(now, drive, right);
                }
            }
            self.note_flawed(now, Flawed { drive, part: flawed }, part, is_unreadable);
        }
        self.core.release_checked();
    }

    /// The array does without a drive from now on (VF7).
    pub(crate) fn forget_written(&mut self, now: Instant, drive: DriveIdx) {
        let at = drive.as_usize();
        if let Some(read) = self.readback.checks.reads[at].take()
            && read.is_step
        {
            self.own.pacer.note_end(now);
        }
        self.core.verify.reading =
            self.core.verify.reading.without(std::iter::once(drive).collect());
        self.readback.checks.flawed.retain(|flawed| flawed.drive != drive);
        self.readback.checks.flaws.unknown.retain(|flawed| flawed.drive != drive);
        self.core.verify.records.forget(drive);
        self.core.release_checked();
    }

    /// The array is to end: nothing more is read back.
    pub(crate) fn stop_checking(&mut self) {
        self.readback.checks.flawed.clear();
        self.readback.checks.flaws.unknown.clear();
        self.core.verify.turn_off();
        self.core.release_checked();
    }
}

/// The first time from `from` on that is a little before the end of a whole number of revolutions after `written`.
fn comes_round(written: Instant, from: Instant, revolution: Nanos) -> Instant {
    let since = (from + LEAD).saturating_since(written).get();
    let revolutions = since.div_ceil(revolution.get().max(1)).max(1);
    let after = Nanos::new(revolutions.saturating_mul(revolution.get()).saturating_sub(LEAD.get()));
    from.max(written + after)
}

/// What a read of written sectors has brought.
#[derive(Clone, Copy)]
pub(crate) struct Brought<'a> {
    pub(crate) buf: Option<BufId>,
    pub(crate) spread: &'a Spread,
    pub(crate) outcome: &'a Outcome,
}

/// The sectors of a part from one to before another.
fn cut(part: Part, from: Lba, to: Lba) -> Part {
    let offset = part.offset + (from - part.extent.lba).get() as u32;
    Part { write: part.write, extent: Extent::new(from, to - from), offset }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drive_that_has_just_missed_its_sectors_is_asked_for_them_a_revolution_later() {
        let at = |micros| Instant::ZERO + Nanos::from_micros(micros);
        let revolution = Nanos::from_millis(8);
        for (from, expected) in
            [(1_000, 6_500), (6_500, 6_500), (6_600, 14_500), (14_600, 22_500), (80_000, 86_500)]
        {
            assert_eq!(comes_round(Instant::ZERO, at(from), revolution), at(expected), "{from}");
        }
        let short = Nanos::from_millis(1);
        assert_eq!(comes_round(Instant::ZERO, at(5_000), short), at(5_500));
    }
}
