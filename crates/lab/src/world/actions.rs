//! What the array asks of a world, and what drives have ended: every action is carried out at once, every
//! command goes to its drive, and every end comes back to the array.

use levelhead_array::journal::record::{checksums, examine};
use levelhead_array::metadata::Inscription;
use levelhead_array::{
    self as array, Action, BufId, Deliver, Ending, SubId, Submit, lists_in, tags_in,
};
use levelhead_block::{Command, Outcome, Piece, Silent};
use levelhead_units::{DriveIdx, DriveSet, Instant};

use super::{Event, World};

/// What the log hash tells apart.
#[derive(Clone, Copy)]
enum Note {
    Submit,
    Done,
    Answer,
    Drive,
    Lost,
    Stopped,
}

impl World {
    /// Lets the drives begin what they were given, until all is quiet at this moment.
    pub(crate) fn run_until_quiet(&mut self, now: Instant) {
        self.carry_out(now);
        for drive in std::mem::take(&mut self.stirred).iter() {
            let bay = &mut self.drives[drive.as_usize()];
            let due = bay.drive.deadline().map(|at| self.clock.of(at).max(now));
            if let Some(at) = due
                && bay.wake.is_none_or(|wake| at < wake)
            {
                bay.wake = Some(at);
                self.events.push(at, Event::Wake(drive));
            }
        }
        let due = self.array.deadline().map(|at| at.max(now));
        if let Some(at) = due
            && self.timer.is_none_or(|timer| at < timer)
        {
            self.timer = Some(at);
            self.events.push(at, Event::Timer);
        }
    }

    pub(crate) fn stir_all(&mut self) {
        self.stirred = (0..self.drives.len()).map(DriveIdx::from_usize).collect();
    }

    fn carry_out(&mut self, now: Instant) {
        let mut touched = DriveSet::EMPTY;
        while let Some(action) = self.array.poll() {
            match action {
                Action::Acquire { buf, sectors } => {
                    if let Some(bytes) = &mut self.bytes {
                        bytes.acquire(buf, sectors);
                    }
                }
                Action::Combine(combine) => {
                    if let Some(bytes) = &mut self.bytes {
                        bytes.combine(&combine);
                    }
                }
                Action::Deliver(Deliver { request, segments }) => {
                    if let Some(bytes) = &mut self.bytes {
                        bytes.buffers.deliver(BufId::Client(request), &segments);
                    }
                }
                Action::Release(buf) => {
                    if let Some(bytes) = &mut self.bytes {
                        bytes.buffers.discard(buf);
                    }
                }
                Action::Inscribe { into, what } => {
                    let bytes = self.bytes.as_mut().expect("metadata has bytes");
                    bytes.buffers.inscribe(into, &what.encode());
                }
                Action::Log { into, record, sums } => {
                    let bytes = self.bytes.as_mut().expect("records are about bytes");
                    bytes.log(into, &record, sums);
                }
                Action::Examine { buf, first, unreadable, ring } => {
                    let bytes = self.bytes.as_ref().expect("records are about bytes");
                    let found = examine(bytes.buffers.bytes(buf), first, &unreadable, ring);
                    self.array.handle_examined(now, buf, found);
                }
                Action::Digest { id, of, into } => {
                    let bytes = self.bytes.as_mut().expect("checksums are of bytes");
                    let sums = checksums(bytes.buffers.share(&of).iter().map(Piece::bytes));
                    for tag in &into {
                        bytes.buffers.inscribe(tag.into, &tag.encode(&sums));
                    }
                    self.array.handle_digested(now, id, &sums);
                }
                Action::Tags { sub, drive, of } => {
                    let bytes = self.bytes.as_ref().expect("tag sectors have bytes");
                    let found = tags_in(&of, |buf| bytes.buffers.bytes(buf));
                    self.array.handle_tags(now, sub, drive, found);
                }
                Action::Lists { sub, buf } => {
                    let bytes = self.bytes.as_ref().expect("lists have bytes");
                    let found = lists_in(bytes.buffers.bytes(buf));
                    self.array.handle_lists(now, sub, found);
                }
                Action::Look { buf } => {
                    let bytes = self.bytes.as_ref().expect("metadata has bytes");
                    let author = Inscription::author_of(bytes.buffers.bytes(buf)).ok();
                    self.array.handle_looked(now, buf, author);
                }
                Action::Sum { buf } => {
                    let bytes = self.bytes.as_ref().expect("checksums are of bytes");
                    let sums = checksums(std::iter::once(bytes.buffers.bytes(buf)));
                    self.array.handle_summed(now, buf, &sums);
                }
                Action::Check { op, sums } => {
                    let bytes = self.bytes.as_ref().expect("sums are of bytes");
                    let zero: Vec<bool> =
                        sums.iter().map(|sum| bytes.buffers.is_zero_sum(sum)).collect();
                    self.array.handle_checked(now, op, &zero);
                }
                Action::Event(array::Event::Lost { drive, why, is_copied: _ }) => {
                    self.note(now, Note::Lost, &[drive.as_usize() as u64, why as u64]);
                    self.losses.push((drive, why));
                }
                Action::Stopped(ending) => {
                    self.note(now, Note::Stopped, &[u64::from(ending == Ending::Clean)]);
                    self.ending = Some(ending);
                }
                Action::Event(array::Event::Array(event)) => self.array_events.push(event),
                Action::Event(array::Event::Released { drive }) => {
                    unreachable!("drive {drive}: an array closes nothing")
                }
                Action::Event(array::Event::Standing(event)) => {
                    let what = [event.drive.as_usize() as u64, event.kind as u64];
                    self.note(now, Note::Drive, &what);
                    self.drive_events.push(event);
                }
                Action::Answer(answer) => {
                    self.note(now, Note::Answer, &[answer.request.0, code(&answer.outcome)]);
                    self.answers.push((now, answer));
                }
                Action::Coming(_) | Action::Seat(_) | Action::Dismiss(_) => {
                    unreachable!("no drive of a study is copied")
                }
                Action::Submit(submit) => {
                    touched = touched.with(submit.drive);
                    self.hand_over(now, submit);
                }
            }
        }
        // A dead drive ends its commands at once.
        for drive in touched.iter() {
            self.collect(now, drive);
        }
    }

    fn hand_over(&mut self, now: Instant, submit: Submit) {
        let Submit { drive, sub, command, origin, .. } = submit;
        self.submitted += 1;
        self.note(now, Note::Submit, &[drive.as_usize() as u64, sub.0]);
        if let Some(records) = &mut self.records {
            records.note_submitted(&submit);
        }
        self.trail.note_given(now, &submit);
        let bay = &mut self.drives[drive.as_usize()];
        let is_read = matches!(command, Command::Read { .. });
        if now < bay.refuses_until && bay.is_connected && !bay.hangs && !is_read {
            bay.refused.push(sub);
            return;
        }
        if !bay.hangs {
            bay.drive.handle_submit(self.clock.machine_time(now), sub.0, command, origin);
        }
        if !bay.is_connected {
            bay.drive.handle_power_cut(self.clock.machine_time(now)); // Ends it at once.
        }
        if self.bytes.is_some() {
            bay.inside.insert(sub, submit);
        }
    }

    /// Brings what a drive has ended to the array.
    pub(super) fn collect(&mut self, now: Instant, drive: DriveIdx) {
        self.stirred = self.stirred.with(drive);
        let bay = &mut self.drives[drive.as_usize()];
        if now < bay.stalls_until {
            return;
        }
        for sub in std::mem::take(&mut bay.refused) {
            self.note(now, Note::Done, &[drive.as_usize() as u64, sub.0, code(&Outcome::Refused)]);
            self.array.handle_done(now, sub, &Outcome::Refused);
            self.carry_out(now);
        }
        while let Some(done) = self.drives[drive.as_usize()].drive.poll() {
            let sub = SubId(done.id);
            self.note(now, Note::Done, &[drive.as_usize() as u64, done.id, code(&done.outcome)]);
            self.silent_writes += u64::from(matches!(done.silent, Silent::Write(_)));
            self.trail.note_ended(drive, &done);
            let submit = self.drives[drive.as_usize()].inside.remove(&sub);
            let outcome = done.outcome.clone();
            let is_lost = self.losses.iter().any(|(lost, _)| *lost == drive);
            if let (Some(bytes), Some(submit)) = (&mut self.bytes, submit)
                && !(is_lost && bytes.is_released(&submit))
            {
                bytes.transfer(&submit, done);
            }
            self.array.handle_done(now, sub, &outcome);
            self.carry_out(now);
        }
        self.destage(now, drive);
        while let Some(aftermath) = self.drives[drive.as_usize()].drive.poll_aftermath() {
            if let Some(bytes) = &mut self.bytes {
                bytes.follow_up(drive, aftermath);
            }
        }
    }

    /// Brings to a drive's medium what the model has brought there.
    pub(super) fn destage(&mut self, now: Instant, drive: DriveIdx) {
        if let Some(bytes) = &mut self.bytes
            && bytes.has_unwritten(drive)
        {
            let at = self.clock.machine_time(now);
            bytes.destage(drive, &self.drives[drive.as_usize()].drive.unwritten(at));
        }
    }

    #[inline]
    fn note(&mut self, now: Instant, note: Note, what: &[u64]) {
        self.log.record(now, &[note as u64]);
        self.log.record(now, what);
    }
}

/// An outcome as a number, for the log.
fn code(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Done { unknown, damaged } => (unknown.len() as u64) << 32 | damaged.len() as u64,
        Outcome::Refused => u64::MAX,
        Outcome::Gone => u64::MAX - 1,
        Outcome::Unreachable => u64::MAX - 2,
    }
}
