//! Commands on their way: into a drive's queue, out of it again, into the drive, and back.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use levelhead_block::{BufId, Command, Effort, Outcome, Place, Segment};
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Lba, Nanos, Sectors};

use super::in_progress::InProgress;
use super::postponed::Postponed;
use super::spread::Spread;
use super::sub::{ended_read, failed, submit};
use super::{Core, Enqueue, ForComing, Purpose, Sub, Written};
use crate::action::{Action, Submit};
use crate::core::copied::{Coming, Course, What};
use crate::drives::queue::End;
use crate::drives::{Ended, Fate, Left, Push};
use crate::names::{OpId, SubId};
use crate::verify::promises::LoneRead;
use crate::verify::state::{Sent, Verify};

/// What a probe reads, or one chunk if that is less: 8 KiB.
const PROBE_SIZE: Sectors = Sectors::new(2);

/// The commands that are in a drive's queue or inside the drive.
#[derive(Clone, Debug)]
pub(super) struct Commands {
    pub(super) subs: InProgress<SubId, Sub>,
    pub(super) last: u64,
    /// Where the last command began that each drive was given, as the drive counts its sectors.
    pub(super) arms: Vec<Lba>,
    /// Those that were refused, in the order in which they are sent again.
    pub(super) postponed: VecDeque<Postponed>,
    /// When the machine last refused a command of a drive.
    pub(super) refused_at: BTreeMap<DriveIdx, Instant>,
}

impl Commands {
    pub(super) fn new(drives: usize) -> Self {
        Self {
            subs: InProgress::default(),
            last: 0,
            arms: vec![Lba::ZERO; drives],
            postponed: VecDeque::new(),
            refused_at: BTreeMap::new(),
        }
    }

    /// A name for a command.
    fn name(&mut self) -> SubId {
        self.last += 1;
        SubId(self.last)
    }
}

impl Core {
    /// Whether the metadata waits for a drive, or an operation for which `waits` returns true.
    pub(crate) fn is_waited_for(&self, drive: DriveIdx, waits: impl Fn(&OpId) -> bool) -> bool {
        self.commands
            .subs
            .values()
            .any(|sub| sub.drive == drive && sub.purpose.costs_the_drive(&waits))
    }

    /// Whether an operation for which `is_meant` returns true has waited for this long for a command of a drive.
    pub(crate) fn is_kept_waiting(
        &self,
        now: Instant,
        drive: DriveIdx,
        time: Nanos,
        is_meant: impl Fn(&OpId) -> bool,
    ) -> bool {
        self.commands.subs.values().any(|sub| {
            let is_old = sub.drive == drive && sub.enqueued + time <= now;
            is_old && sub.purpose.costs_the_drive(&is_meant)
        })
    }

    /// Since when the oldest write has waited that an operation for which `is_meant` returns true gave to these drives.
    pub(crate) fn writing_since(
        &self,
        drives: DriveSet,
        is_meant: impl Fn(OpId) -> bool,
    ) -> Option<Instant> {
        let writes = self.writes_of_ops(drives);
        writes.filter(|&(op, _)| is_meant(op)).map(|(_, enqueued)| enqueued).min()
    }

    /// Operations of which a write has waited for this long that they gave to these drives.
    pub(crate) fn writing_to(&self, drives: DriveSet, now: Instant, time: Nanos) -> BTreeSet<OpId> {
        let writes = self.writes_of_ops(drives);
        writes.filter(|&(_, enqueued)| enqueued + time <= now).map(|(op, _)| op).collect()
    }

    fn writes_of_ops(&self, drives: DriveSet) -> impl Iterator<Item = (OpId, Instant)> {
        let writes = self.commands.subs.values().filter(move |sub| {
            sub.command.is_write() && drives.contains(sub.drive) && !sub.is_orphan
        });
        writes.filter_map(|sub| match sub.purpose {
            Purpose::Op(op) => Some((op, sub.enqueued)),
            Purpose::Meta
            | Purpose::Ring
            | Purpose::Place
            | Purpose::Fill
            | Purpose::Copy
            | Purpose::Verify
            | Purpose::Tag
            | Purpose::Recall(_)
            | Purpose::Probe
            | Purpose::Abandoned => None,
        })
    }

    /// A write that an operation gave to a drive is the journal's from now on: what it writes, as the layout counts.
    pub(crate) fn give_to_journal(&mut self, sub: SubId) -> Written {
        let state = self.commands.subs.get_mut(sub).expect("its drive has not ended it");
        state.purpose = Purpose::Place;
        let extent = state.command.extent().expect("it writes somewhere");
        let drive = state.drive;
        Written { drive, extent }
    }

    /// Reads a little from drives that no read asks, to learn how fast they are.
    pub(crate) fn probe(&mut self, now: Instant) {
        for drive in self.drives.present().iter() {
            let Some(chunk_idx) = self.drives.take_probe(now, drive, self.layout().chunks()) else {
                continue;
            };
            let chunk = self.layout().spec().chunk();
            let lba = Lba::new(chunk_idx * chunk.get());
            let sectors = chunk.min(PROBE_SIZE);
            let place = Place { buf: self.out.name_buf(), sector: 0 };
            let count = sectors.get() as u32;
            self.enqueue(
                now,
                Enqueue {
                    purpose: Purpose::Probe,
                    drive,
                    command: Command::Read {
                        extent: Extent::new(lba, sectors),
                        effort: Effort::Fast,
                    },
                    segments: Segment { place, sectors: count }.into(),
                    origin: self.own_origin(),
                    end: End::Tail,
                    fate: Fate::Certain,
                    since: None,
                },
            );
        }
    }

    /// Puts a command into a drive's queue.
    pub(crate) fn enqueue(&mut self, now: Instant, what: Enqueue) -> SubId {
        let Enqueue { purpose, drive, command, segments, origin, end, fate, since } = what;
        // Metadata is written again where it was not stored, also while the array is about to end.
        let is_meta = purpose == Purpose::Meta;
        assert!(self.gate.may_write() || is_meta || !command.is_write(), "G1: {command:?}");
        if since.is_some() {
            self.verify.note_asked(drive);
        }
        let sub = self.commands.name();
        let (enqueued, started, due) = (now, None, None);
        let state = Sub {
            purpose,
            drive,
            command,
            segments,
            spread: Spread::default(),
            first: None,
            unproven: Vec::new(),
            corrupt: Vec::new(),
            along: None,
            origin,
            fate,
            since,
            enqueued,
            started,
            due,
            ended_before: 0,
            is_orphan: false,
            is_refused: false,
        };
        self.drives.push(now, Push { drive, sub, extent: state.command.extent(), end });
        self.note_queue(&state, true);
        self.commands.subs.insert(sub, state);
        sub
    }

    /// Withdraws a command if no drive has it yet.
    pub(crate) fn withdraw(&mut self, now: Instant, sub: SubId) -> bool {
        let Some(state) = self.commands.subs.get(sub) else { return false };
        if state.started.is_some() || !self.drives.remove(state.drive, sub, state.lba()) {
            return false;
        }
        self.drives.note_withdrawn(now, state.drive, state.fate);
        let state = self.commands.subs.remove(sub).expect("it was there");
        self.note_queue(&state, false);
        if let Some(tags) = &mut self.tags {
            tags.withdraw_carry(state.drive, sub);
        }
        true
    }

    /// No operation waits for a command any more that its drive may have. It is late if it ends after `due`.
    pub(crate) fn leave(&mut self, sub: SubId, due: Option<Instant>) {
        let Some(state) = self.commands.subs.get_mut(sub) else {
            // It has ended, and waits for its checksums perhaps.
            self.verify.held.remove(&sub);
            return;
        };
        state.due = due;
    }

    /// The operation that asked for a command goes on without it: it is withdrawn, or what it brings is released.
    pub(crate) fn abandon(&mut self, now: Instant, sub: SubId) {
        if self.withdraw(now, sub) {
            return;
        }
        self.leave(sub, None);
        if let Some(state) = self.commands.subs.get_mut(sub) {
            state.purpose = Purpose::Abandoned;
            let drive = state.drive;
            self.end_inside(sub, drive);
        }
    }

    /// A command brings no tag sector any more.
    fn end_inside(&mut self, sub: SubId, drive: DriveIdx) {
        if let Some(tags) = &mut self.tags {
            tags.end_inside(drive, sub);
        }
    }

    /// Whether the drive of a command has lost or forgotten it: it has ended nothing for `patience`, or too many
    /// other commands since. A command that waits for its drive is stuck if those inside are.
    pub(crate) fn is_stuck(&self, now: Instant, sub: SubId, patience: Nanos) -> bool {
        let Some(&Sub { drive, started, ended_before, .. }) = self.commands.subs.get(sub) else {
            return false;
        };
        match started {
            Some(started) => self.drives.is_stuck(now, drive, started, ended_before, patience),
            None => self.drives.stalled(now, patience).contains(drive),
        }
    }

    /// Whether the lease has ended: only metadata goes to drives (N4 of the fence).
    pub(crate) fn is_held(&self, now: Instant) -> bool {
        self.gate.lease_end().is_some_and(|end| end <= now)
    }

    /// Lets commands into every drive whose window has room.
    pub(crate) fn dispatch(&mut self, now: Instant) {
        let is_held = self.is_held(now);
        for drive in self.drives.with_work().iter() {
            if !self.drives.has_work(drive) {
                continue;
            }
            while let Some(sub) = self.drives.pop(now, drive, is_held) {
                self.submit(now, drive, sub);
            }
        }
    }

    /// Hands a command to its drive.
    fn submit(&mut self, now: Instant, drive: DriveIdx, sub: SubId) {
        self.take_tags_along(drive, sub);
        let state = self.commands.subs.get_mut(sub).expect("a queued command is known");
        assert_eq!(state.drive, drive, "{sub:?} waits for another drive");
        assert!(state.started.is_none(), "{sub:?} is inside a drive already");
        state.started = Some(now);
        state.ended_before = self.drives.ended(drive);
        if state.fate == Fate::Withdrawable {
            self.drives.note_kept(now, drive);
        }
        if let (Some(tags), Some(extent)) = (&mut self.tags, state.compared()) {
            tags.note_unqueued(drive, extent);
        }
        let submit = submit(self.place.area(), self.tags.as_ref(), sub, state);
        if let (Command::Read { extent, .. }, [segment]) =
            (submit.command, submit.segments.as_slice())
        {
            if let Command::Read { extent: asked, .. } = state.command {
                state.spread = Spread::of(self.place.area(), asked, extent);
                state.first = Some(extent);
            }
            if self.out.carries_content() {
                let buf = segment.place.buf;
                self.out.push(Action::Acquire { buf, sectors: extent.sectors });
            }
        }
        Self::begin_tagged(self.tags.as_mut(), sub, state);
        if let Some(extent) = submit.command.extent() {
            self.commands.arms[drive.as_usize()] = extent.lba;
        }
        let written = state.writes_places();
        let copied_places = written.or(self.place.tagged_by(state));
        let is_mend = is_mend(&self.verify, state);
        let twin = match (self.holdings.copied_mut(), copied_places) {
            (Some(copied), Some(extent)) if copied.drive == drive => {
                let course = copied.note_submitted(self.place.layout(), sub, extent);
                (course == Course::Both).then(|| (extent, submit.clone()))
            }
            _ => None,
        };
        self.out.push(Action::Submit(submit));
        if let Some(extent) = written.filter(|_| !is_mend) {
            self.note_write_out(drive, extent);
        }
        if let Some((extent, submit)) = twin {
            let bufs: Vec<BufId> =
                submit.segments.iter().map(|segment| segment.place.buf).collect();
            bufs.iter().for_each(|&buf| self.out.retain(buf));
            let Submit { command, segments, .. } = submit;
            self.counters.copy_twins += 1;
            self.ask_coming(now, ForComing { what: What::Twin(extent), command, segments, bufs });
        }
    }

    /// Hands a command to the drive that is given a copy.
    pub(crate) fn ask_coming(&mut self, now: Instant, ask: ForComing) -> SubId {
        let ForComing { what, command, segments, bufs } = ask;
        let origin = self.own_origin();
        let sub = self.commands.name();
        let copied = self.holdings.copied_mut().expect("CO1: a drive is given a copy");
        let drive = copied.drive;
        let submit = Submit { drive, sub, command, segments, origin };
        self.out.push(Action::Coming(submit.clone()));
        copied.inside.insert(sub, Coming { since: now, what, submit, again_at: None, bufs });
        sub
    }

    /// Since when a command has been inside its drive, if it is.
    pub(crate) fn inside_since(&self, sub: SubId) -> Option<Instant> {
        self.commands.subs.get(sub)?.started
    }

    /// A command was refused, or did not reach its drive, and is sent again.
    pub(crate) fn note_refused(&mut self, now: Instant, sub: SubId, outcome: &Outcome) {
        let Some(state) = self.commands.subs.get_mut(sub) else { return };
        state.is_refused = true;
        if *outcome == Outcome::Refused {
            self.commands.refused_at.insert(state.drive, now);
        }
    }

    /// Whether a command of this drive waits for another attempt, or is at it.
    pub(crate) fn has_refused(&self, drive: DriveIdx) -> bool {
        let mut all = self.commands.subs.iter().map(|(_, state)| state);
        all.any(|state| state.drive == drive && state.is_refused && !state.is_orphan)
    }

    /// What a command is for, and its drive.
    pub(crate) fn whose(&self, sub: SubId) -> Option<(Purpose, DriveIdx)> {
        self.commands.subs.get(sub).map(|state| (state.purpose, state.drive))
    }

    /// A command inside a drive, as the drive gets it, and what it is for.
    pub(crate) fn submit_of(&self, sub: SubId) -> Option<(Submit, Purpose)> {
        let state = self.commands.subs.get(sub)?;
        assert!(state.started.is_some(), "P1: {sub:?} is not inside its drive");
        Some((submit(self.area(), self.tags.as_ref(), sub, state), state.purpose))
    }

    /// The outcome that counts for a command: one that was refused counts as failed, and only what was asked for counts (SP1).
    pub(crate) fn ended_with(&self, sub: SubId, outcome: &Outcome) -> Outcome {
        let sub = self.commands.subs.get(sub).unwrap_or_else(|| panic!("{sub:?} is not known"));
        match outcome {
            Outcome::Done { .. } | Outcome::Gone => sub.spread.outcome(outcome),
            Outcome::Refused | Outcome::Unreachable => failed(&sub.command),
        }
    }

    /// A command has come back from its drive; returns what it was.
    pub(crate) fn finish(&mut self, now: Instant, sub: SubId, outcome: &Outcome) -> Sub {
        let state =
            self.commands.subs.remove(sub).unwrap_or_else(|| panic!("{sub:?} is not known"));
        let started = state.started.unwrap_or_else(|| panic!("{sub:?} is not inside a drive"));
        let drive = state.drive;
        if state.is_orphan {
            return state;
        }
        self.end_inside(sub, drive);
        let written = state.writes_places().or(self.place.tagged_by(&state));
        if let (Some(copied), Some(extent)) = (self.holdings.copied_mut(), written)
            && copied.drive == drive
        {
            copied.note_ended(self.place.layout(), sub, extent, outcome.is_good());
        }
        let Left { inside, event } = self.drives.handle_left(now, drive, sub);
        if let Some(due) = state.due {
            self.drives.note_late(drive, now > due);
        }
        self.note_event(event);
        if state.purpose == Purpose::Verify {
            self.verify.reading = self.verify.reading.without(DriveSet::EMPTY.with(drive));
            let is_alone = inside == 1 && self.drives.ended(drive) == state.ended_before + 1;
            if let Some(extent) = state.command.extent()
                && is_alone
                && outcome.is_good()
                && !state.is_refused
            {
                let (sectors, took) = (extent.sectors, now - started);
                self.verify.promises.note_read(drive, LoneRead { sectors, took });
            }
            return state;
        }
        self.verify.note_ended(now, drive);
        if let Some(tags) = self.tags.as_mut().filter(|_| state.purpose != Purpose::Tag) {
            tags.note_busy(now, drive);
        }
        if let Some(extent) = state.writes_places()
            && outcome.is_good()
            && !is_mend(&self.verify, &state)
        {
            self.note_untagged(sub, &state, extent);
            let is_awaited = state.since.is_some() || state.purpose == Purpose::Place;
            let sent = Sent { segments: state.segments.as_slice(), is_awaited };
            self.verify.note_written(now, drive);
            self.keep_written(drive, extent, &sent);
        }
        if state.command == Command::Flush || state.purpose == Purpose::Meta {
            return state;
        }
        let read = ended_read(&state, outcome);
        let ended = Ended { drive, enqueued: state.enqueued, started, inside, read };
        let event = self.drives.note_ended(now, &ended);
        self.note_event(event);
        state
    }

    /// Takes everything that waits for `drive` out of its queue.
    pub(crate) fn drain_waiting(&mut self, drive: DriveIdx) -> Vec<(SubId, Sub)> {
        let waits = |sub: &Sub| sub.drive == drive && sub.started.is_none();
        let waiting: Vec<SubId> =
            self.commands.subs.iter().filter(|(_, sub)| waits(sub)).map(|(id, _)| id).collect();
        waiting
            .into_iter()
            .map(|id| {
                let sub = self.commands.subs.remove(id).expect("it was there");
                let removed = self.drives.remove(drive, id, sub.lba());
                assert!(removed, "{id:?} waits in the queue");
                self.note_queue(&sub, false);
                (id, sub)
            })
            .collect()
    }

    /// The commands inside `drive`. No operation waits for them any more; they stay known, because the drive may
    /// still end them and give back their buffers.
    pub(crate) fn give_up_inside(&mut self, drive: DriveIdx) -> Vec<(SubId, Sub)> {
        let waited = |purpose| match purpose {
            Purpose::Op(_)
            | Purpose::Meta
            | Purpose::Ring
            | Purpose::Place
            | Purpose::Fill
            | Purpose::Copy
            | Purpose::Verify
            | Purpose::Tag
            | Purpose::Recall(_) => true,
            Purpose::Probe | Purpose::Abandoned => false,
        };
        let is_meant = |sub: &Sub| sub.drive == drive && waited(sub.purpose);
        let inside = self.commands.subs.iter().filter(|(_, sub)| is_meant(sub));
        let inside: Vec<(SubId, Sub)> = inside.map(|(id, sub)| (id, sub.clone())).collect();
        for sub in self.commands.subs.values_mut().filter(|sub| is_meant(sub)) {
            sub.purpose = Purpose::Abandoned;
        }
        inside
    }

    /// The place of a lost drive has a new drive: what is inside the old one is not the new one's.
    pub(crate) fn orphan(&mut self, drive: DriveIdx) {
        for sub in self.commands.subs.values_mut().filter(|sub| sub.drive == drive) {
            let is_let_go = matches!(sub.purpose, Purpose::Abandoned | Purpose::Probe);
            assert!(is_let_go, "drive {drive} is lost, and something waits for {:?}", sub.purpose);
            sub.is_orphan = true;
        }
    }

    /// Whether a drive has not ended some command that was given to it.
    pub(crate) fn has_inside(&self, drive: DriveIdx) -> bool {
        self.commands.subs.values().any(|sub| sub.drive == drive)
    }

    /// Whether a command is inside a drive whose place has another one now.
    pub(crate) fn is_orphan(&self, sub: SubId) -> bool {
        self.commands.subs.get(sub).is_some_and(|sub| sub.is_orphan)
    }

    /// Whether no command is queued or inside a drive, except for those that are silent.
    pub(crate) fn is_quiet_but_for_silent(&self) -> bool {
        let silent = self.drives.silent();
        self.commands.subs.values().all(|sub| sub.is_orphan || silent.contains(sub.drive))
    }

    /// Whether any command is queued or inside a drive.
    pub(crate) fn is_quiet(&self) -> bool {
        self.commands.subs.values().all(|sub| sub.is_orphan)
    }
}

/// Whether a command mends what a record says, which stays.
fn is_mend(verify: &Verify, sub: &Sub) -> bool {
    matches!(sub.purpose, Purpose::Op(op) if verify.is_mended_by(op, sub.drive))
}
