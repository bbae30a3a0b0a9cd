//! What becomes of written sectors that are not what they should be: they are told, mended, and held against their drive.

use std::collections::VecDeque;
use std::ops::Range;

use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Nanos, Sectors};

use crate::array::{Array, Moved, Op, Start};
use crate::event::{ArrayEvent, Flaw};
use crate::log::rules::Rule;
use crate::meta::membership::Why;
use crate::names::OpId;
use crate::ops::mend::{Mended, Recalled, Span, stripes_of};
use crate::progress::{Blame, ScrubState};
use crate::settings::verify::{Promise, VerifyMode};
use crate::shape::Cell;
use crate::verify::records::Part;
use crate::verify::runs::Stage;
use crate::verify::state::Mending;

/// Sectors that are wrong after they were mended this number of times are not mended any more.
const MENDS_MAX: u8 = 3;

/// A drive with this number of flawed writes since the last scrub is scrubbed: they may lie anywhere on it.
const FLAWS_SCRUB: u32 = 2;

/// The most flaws that are looked at again once others are mended: an older one stays until it is written again.
const UNKNOWN_MAX: usize = 1 << 10;

/// The most flaws and mends that are told in an hour: an array that needs its worst drive may find them without end.
const TOLD_MAX: u32 = 1_000;
const TOLD_EVERY: Nanos = Nanos::from_secs(3_600);

/// The shortest time from the beginning of such a scrub to that of the next.
const SCRUB_EVERY: Nanos = Nanos::from_secs(3_600);

/// How the verification of writes stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VerifyStatus {
    /// When they are read back.
    pub mode: VerifyMode,
    /// What the weakest of the drives promises that are there.
    pub guarantee: Promise,
    /// Writes in place that have ended: each drive's part of one is one.
    pub writes: u64,
    /// Those of them that were read back and found right, or were mended and then found right.
    pub verified: u64,
    /// Those that others have overwritten before.
    pub superseded: u64,
    /// Those that nothing is known of: there was no room for them, or their drive was lost.
    pub unverified: u64,
    /// Those that wait.
    pub waiting: u64,
    /// Bytes of memory that these take.
    pub memory_bytes: u64,
    /// Flawed writes that were found.
    pub found: u64,
    /// Those of them that were mended and found right then, and of which no flaw is `not_mended`.
    pub mended: u64,
    /// Flaws that could not be mended, and were not since: what is read there brings errors until it is written again. Those that wait
    /// are among `waiting`.
    pub not_mended: u64,
    /// Percent of the commands that clients waited for that found a read of the verification at their drive.
    pub delayed_percent: f64,
}

/// Sectors that are not what they should be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flawed {
    pub(crate) drive: DriveIdx,
    pub(crate) part: Part,
}

/// What was found.
#[derive(Clone, Debug)]
pub(crate) struct Flaws {
    /// Flaws that could not be mended.
    pub(super) not_mended: u64,
    /// Those of them of which nothing said what they should be, the oldest first.
    pub(super) unknown: VecDeque<Flawed>,
    /// For every drive how many since a scrub was begun for them.
    pub(super) recent: Vec<u32>,
    /// When a scrub was begun for them last.
    pub(super) scrubbed: Option<Instant>,
    /// Since when this number of them was told.
    pub(super) told_since: Instant,
    pub(super) told: u32,
}

impl Flaws {
    pub(crate) fn new(drives: usize) -> Self {
        Self {
            not_mended: 0,
            unknown: VecDeque::new(),
            recent: vec![0; drives],
            scrubbed: None,
            told_since: Instant::ZERO,
            told: 0,
        }
    }
}

impl Array {
    /// How the verification of writes stands, if they are read back.
    pub fn verify_status(&self) -> Option<VerifyStatus> {
        let settings = self.core.verify.settings()?;
        let records = &self.core.verify.records;
        let tally = records.tally();
        let present = self.core.drives.present_data();
        Some(VerifyStatus {
            mode: settings.mode,
            guarantee: present
                .iter()
                .map(|drive| self.promise(drive))
                .min()
                .unwrap_or(Promise::Interface),
            writes: tally.writes,
            verified: tally.verified,
            superseded: tally.superseded,
            unverified: tally.unverified,
            waiting: records.waiting() as u64,
            memory_bytes: records.memory(),
            found: tally.found,
            mended: tally.mended,
            not_mended: self.readback.checks.flaws.not_mended,
            delayed_percent: self.core.verify.delayed_percent(),
        })
    }

    /// Sectors of writes' bytes that are kept in memory besides what requests need.
    pub fn kept_sectors(&self) -> Sectors {
        self.core.verify.records.kept()
    }

    /// What a read from the medium of a drive is worth.
    pub fn promise(&self, drive: DriveIdx) -> Promise {
        self.core.verify.promises.of(drive)
    }

    /// Sectors were read back and are right.
    pub(super) fn note_right(&mut self, now: Instant, drive: DriveIdx, part: Part) {
        if self.core.verify.records.mends(drive, part) > 0 {
            self.tell_mended(now, drive, part.extent, true);
            self.look_again(stripes_of(self.core.layout(), &Span { drive, part }));
        }
        self.core.verify.records.note_checked(drive, part);
    }

    /// Sectors of a part were read back and are wrong.
    pub(super) fn note_flawed(
        &mut self,
        now: Instant,
        flawed: Flawed,
        of: Part,
        is_unreadable: bool,
    ) {
        let Flawed { drive, part } = flawed;
        let mends = self.core.verify.records.mends(drive, part);
        self.core.verify.records.set_stage(drive, part, Stage::Flawed);
        if mends == 0 {
            let flaw = match is_unreadable {
                true => Flaw::Unreadable,
                false if part.extent == of.extent => Flaw::Lost,
                false => Flaw::Torn,
            };
            let is_first = self.core.verify.records.note_flaw(part.write);
            self.core.counters.verify_found += u64::from(is_first);
            let promise = self.promise(drive);
            let extent = part.extent;
            if !is_unreadable {
                self.note_wrong(drive, extent.sectors);
            }
            self.tell_flaw(now, ArrayEvent::WriteFlawed { drive, extent, flaw, promise });
            self.hold_against(now, drive);
        }
        if mends < MENDS_MAX {
            self.readback.checks.flawed.push_back(flawed);
        } else {
            self.note_not_mended(now, flawed);
        }
    }

    /// It keeps its record: what is read of it is had from there, or counts as damaged.
    fn note_not_mended(&mut self, now: Instant, flawed: Flawed) {
        let Flawed { drive, part } = flawed;
        self.readback.checks.flaws.not_mended += 1;
        self.core.verify.records.note_not_mended(part.write);
        self.tell_mended(now, drive, part.extent, false);
        let is_redundant = self.core.is_redundant(self.core.layout().stripes());
        let can_spare = self.core.drives.can_spare(DriveSet::EMPTY.with(drive));
        let is_tried = self.core.verify.records.mends(drive, part) >= MENDS_MAX;
        if is_tried && is_redundant && can_spare && self.own.pacer.is_automatic() {
            self.lose(now, drive, Why::Failed);
        }
    }

    fn tell_mended(&mut self, now: Instant, drive: DriveIdx, extent: Extent, is_mended: bool) {
        let promise = self.promise(drive);
        self.tell_flaw(now, ArrayEvent::WriteMended { drive, extent, promise, is_mended });
    }

    /// Past the most of them they are only counted.
    fn tell_flaw(&mut self, now: Instant, event: ArrayEvent) {
        let flaws = &mut self.readback.checks.flaws;
        if flaws.told_since + TOLD_EVERY <= now {
            (flaws.told_since, flaws.told) = (now, 0);
        }
        flaws.told = flaws.told.saturating_add(1);
        if flaws.told <= TOLD_MAX {
            self.tell(event);
        }
    }

    /// What it silently has not stored counts like what it cannot read.
    fn hold_against(&mut self, now: Instant, drive: DriveIdx) {
        if !self.own.pacer.is_automatic() || self.core.code().is_none() {
            return;
        }
        self.readback.checks.flaws.recent[drive.as_usize()] += 1;
        self.note_read_error(now, drive);
    }

    /// Begins a scrub for a drive with several flawed writes: those that went astray lie somewhere on it.
    pub(super) fn scrub_flawed(&mut self, now: Instant) -> Moved {
        let flaws = &mut self.readback.checks.flaws;
        let is_due = flaws.scrubbed.is_none_or(|last| last + SCRUB_EVERY <= now);
        let is_much = flaws.recent.iter().any(|&recent| recent >= FLAWS_SCRUB);
        // One that an operator has stopped is the operator's to go on with.
        let is_free = matches!(self.scrub().state, ScrubState::Idle | ScrubState::Done);
        if !is_due || !is_much || !is_free || self.outstanding_mends() {
            return Moved::No;
        }
        let flaws = &mut self.readback.checks.flaws;
        flaws.recent.fill(0);
        flaws.scrubbed = Some(now);
        self.begin_scrub(now, Blame::Drives);
        Moved::Yes
    }

    fn outstanding_mends(&self) -> bool {
        self.core.verify.mending.is_some() || !self.readback.checks.flawed.is_empty()
    }

    /// Begins to mend what was found first of what does not wait in the journal anyway.
    pub(super) fn mend_flawed(&mut self, now: Instant) -> Moved {
        if self.core.verify.mending.is_some() || self.readback.checks.flawed.is_empty() {
            return Moved::No;
        }
        let core = &self.core;
        if !core.gate.may_write() || !core.drives.silent().without(core.drives.lost()).is_empty() {
            return Moved::No;
        }
        self.readback
            .checks
            .flawed
            .retain(|flawed| !core.verify.records.left_of(flawed.drive, flawed.part).is_empty());
        let is_placed = |flawed: &Flawed| {
            let cell = |lba| Cell { drive: flawed.drive, lba };
            let mut cells = flawed.part.extent.iter().map(cell);
            let is_left_out = !core.verify.keeps(Rule::MendPlaced);
            is_left_out
                || core.log.unplaced.is_empty()
                || cells.all(|cell| core.log.unplaced.find(cell).is_none())
        };
        let Some(at) = self.readback.checks.flawed.iter().position(is_placed) else {
            return Moved::No;
        };
        let flawed = self.readback.checks.flawed.remove(at).expect("it was found");
        let mut left = self.core.verify.records.left_of(flawed.drive, flawed.part).into_iter();
        let first = left.next().expect("something is left of it");
        let drive = flawed.drive;
        left.for_each(|part| self.readback.checks.flawed.push_front(Flawed { drive, part }));
        let op = self.claim(now, Start::Mend(Span { drive, part: first }));
        self.core.verify.mending = op.map(|op| Mending { op, drive });
        Moved::Yes
    }

    /// What was found is being mended, or cannot be.
    pub(crate) fn note_mend_ended(&mut self, now: Instant, op: OpId, span: Span, mended: Mended) {
        let Span { drive, part } = span;
        let mending = self.core.verify.mending.take();
        assert_eq!(mending, Some(Mending { op, drive }), "VF4: one at a time");
        let flawed = Flawed { drive, part };
        match mended {
            Mended::Written => self.core.verify.records.note_mended(drive, part),
            Mended::Later => self.readback.checks.flawed.push_back(flawed),
            Mended::Never if self.core.drives.lost().contains(drive) => {}
            Mended::Never => {
                let unknown = &mut self.readback.checks.flaws.unknown;
                if unknown.len() == UNKNOWN_MAX {
                    unknown.pop_front();
                }
                unknown.push_back(flawed);
                self.note_not_mended(now, flawed);
            }
        }
    }

    /// Something of these stripes is right again: it may say what others should be of which nothing did.
    pub(crate) fn look_again(&mut self, stripes: Range<u64>) {
        let core = &mut self.core;
        let flaws = &mut self.readback.checks.flaws;
        for Flawed { drive, part } in std::mem::take(&mut flaws.unknown) {
            let own = stripes_of(core.layout(), &Span { drive, part });
            if core.verify.records.left_of(drive, part).is_empty() {
                continue; // Another write went out to it.
            }
            if own.start < stripes.end && stripes.start < own.end {
                flaws.not_mended -= 1;
                core.verify.records.note_tried_again(part.write);
                self.readback.checks.flawed.push_back(Flawed { drive, part });
            } else {
                flaws.unknown.push_back(Flawed { drive, part });
            }
        }
    }

    /// A ring has given what the journal had of something that is being mended, or has not.
    pub(crate) fn hand_recalled(&mut self, now: Instant, op: OpId, recalled: Recalled<'_>) {
        if let Some(Op::Mend(mend)) = self.work.ops.get_mut(op) {
            mend.handle_recalled(&mut self.core, recalled);
            self.advance(now, op);
        }
    }

    /// The checksums of what an operation has computed.
    pub(super) fn handle_computed_digested(&mut self, now: Instant, op: OpId, sums: &[u32]) {
        match self.work.ops.get_mut(op) {
            Some(Op::Mend(mend)) => mend.handle_digested(&mut self.core, now, sums),
            Some(Op::Read(read)) => read.fetch.handle_digested(&self.core, sums),
            Some(Op::Write(write)) => write.fetch.handle_digested(&self.core, sums),
            Some(Op::Locked(_) | Op::Fill(_) | Op::Flush(_) | Op::Check(_)) | None => return,
        }
        self.advance(now, op);
    }
}
