//! What an operator may want of a running array, and what it says of itself. What the array asks for after a
//! change is carried out when the method has returned.

use std::sync::mpsc::Sender;

use levelhead_array::damaged::DamagedRange;
use levelhead_array::membership::Why;
use levelhead_array::metadata::Forced;
use levelhead_array::{Blame, DriveCounters, Refusal};
use levelhead_drive::Faults;
use levelhead_units::{DriveIdx, Extent, Instant, Ratio, Sectors};

use super::Engine;
use crate::backend::Emulated;
use crate::engine::Parts;
use crate::error::{HostError, fail};
use crate::seat::Seat;
use crate::status::{
    ArrayState, Damaged, DriveState, DriveStatus, FoundRange, ScrubStatus, Status,
};
use crate::words::{counted, drives_are, is_or_are};

/// An operator who waits until the loss of a drive is safely recorded.
pub(super) struct Recording {
    drive: DriveIdx,
    /// When they are told that it was not.
    by: Option<Instant>,
    reply: Sender<Result<(), HostError>>,
}

impl Engine {
    /// Clients are about to leave, and the end comes next: what no drive answers is given up early.
    pub(crate) fn stop_soon(&mut self) {
        let now = self.now();
        self.parts.array.handle_stop_soon(now);
    }

    /// The array is to end in good order; `reply` gets how it has ended once the drives are closed.
    pub(crate) fn stop(&mut self, reply: Sender<Result<(), HostError>>) {
        self.stopping.push(reply);
    }

    pub(crate) fn seat(&mut self, drive: DriveIdx) -> Result<&mut Seat, HostError> {
        let count = self.parts.seats.len();
        let seat = self.parts.seats.get_mut(drive.as_usize());
        seat.ok_or_else(|| {
            HostError::new(format!("the array has drives 0 to {}, not {drive}", count - 1))
        })
    }

    /// The array does without this drive from now on; `reply` hears of it when that is safely recorded.
    pub(crate) fn lose(&mut self, drive: DriveIdx, reply: Sender<Result<(), HostError>>) {
        if let Err(error) = self.lose_now(drive) {
            drop(reply.send(Err(error)));
            return;
        }
        let patience = self.parts.array.patience().map(|patience| self.now() + patience.answer());
        self.recording.push(Recording { drive, by: patience, reply });
    }

    /// Tells those who wait for it that a loss is recorded, or that it was not in time.
    pub(super) fn tell_recorded(&mut self, now: Instant) {
        let unrecorded = self.parts.array.unrecorded();
        for Recording { drive, by, reply } in std::mem::take(&mut self.recording) {
            let result = if !unrecorded.contains(drive) {
                Ok(())
            } else if by.is_some_and(|by| by <= now) {
                fail(format!("drive {drive} failed, and that could not be recorded yet"))
            } else {
                self.recording.push(Recording { drive, by, reply });
                continue;
            };
            // The thread that asked may not wait for it any more.
            drop(reply.send(result));
        }
    }

    fn lose_now(&mut self, drive: DriveIdx) -> Result<(), HostError> {
        self.seat(drive)?;
        let (lost, spec) = (self.parts.array.lost(), *self.parts.array.layout().spec());
        if self.parts.array.wanted_back().contains(drive) {
            let now = self.now();
            self.parts.array.handle_lost(now, drive, Why::ByHand);
            return Ok(());
        }
        if lost.contains(drive) {
            return fail(format!("drive {drive} is already failed or missing"));
        }
        let has_data = spec.data_drives().contains(drive);
        if !has_data && !spec.survives(lost.with(drive)) {
            return fail(format!("drive {drive} is the last one with the journal"));
        }
        if !spec.survives(lost.with(drive)) {
            return fail(match spec.fellows(drive).and(lost) {
                fellows if spec.width() < spec.drives() => format!(
                    "drive {drive} holds data that no other drive has: {} already failed or missing",
                    drives_are(fellows)
                ),
                _ => {
                    let lost = lost.and(spec.data_drives()).len();
                    let (are, survives) = (is_or_are(lost), counted(spec.redundant(), "drive"));
                    format!(
                        "{spec} survives the loss of {survives}, {lost} {are} already failed or missing"
                    )
                }
            });
        }
        let (synced, stripes) = (self.parts.array.synced(), self.parts.array.layout().stripes());
        // Every copy of a mirror has all that was written.
        if synced < stripes && !spec.is_mirror() && has_data {
            let left = stripes - synced;
            return fail(format!(
                "drive {drive} holds data that no other drive has: the redundancy of {left} of \
                 {stripes} stripes is not valid yet"
            ));
        }
        let now = self.now();
        self.parts.array.handle_lost(now, drive, Why::ByHand);
        Ok(())
    }

    /// The array does not read this drive where that can be helped, until it is admitted.
    pub fn sit_out(&mut self, drive: DriveIdx) -> Result<(), HostError> {
        self.seat(drive)?;
        let now = self.now();
        let spec = *self.parts.array.layout().spec();
        // Which drives can be done without is no number then.
        let is_split = spec.width() < spec.drives();
        let done = self.parts.array.handle_sit_out(now, drive);
        done.or_else(|refusal| match refusal {
            Refusal::Lost => fail(format!("drive {drive} is failed or missing")),
            Refusal::Already => fail(format!("drive {drive} is avoided by an operator already")),
            Refusal::Journal => {
                fail(format!("drive {drive} has nothing but the journal, and is not read"))
            }
            Refusal::Needed { .. } if is_split => fail(format!(
                "the array already avoids another copy of what drive {drive} holds: it is needed"
            )),
            Refusal::Needed { spare } => fail(format!(
                "the array can avoid {}, and already does: drive {drive} is needed",
                counted(spare, "drive")
            )),
        })
    }

    /// The array reads a drive that sits out again.
    pub fn admit(&mut self, drive: DriveIdx) -> Result<(), HostError> {
        self.seat(drive)?;
        let now = self.now();
        let done = self.parts.array.handle_admit(now, drive);
        done.or_else(|_| fail(format!("drive {drive} is not avoided")))
    }

    /// An emulated drive has these faults from now on.
    pub fn set_faults(&mut self, drive: DriveIdx, faults: Faults) -> Result<(), HostError> {
        if let Err(error) = faults.check() {
            return fail(format!("drive {drive}: {error}"));
        }
        self.emulated(drive).map(|drive| drive.set_faults(faults))
    }

    /// An emulated drive dies.
    pub fn kill(&mut self, drive: DriveIdx) -> Result<(), HostError> {
        self.emulated(drive).map(Emulated::die)
    }

    fn emulated(&mut self, drive: DriveIdx) -> Result<&dyn Emulated, HostError> {
        let Seat { name, backend, .. } = self.seat(drive)?;
        let (Some(name), Some(backend)) = (name, backend) else {
            return fail(format!("drive {drive} is missing"));
        };
        let emulated = backend.emulated();
        emulated.ok_or_else(|| {
            HostError::new(format!("drive {drive}, {name}, is a real one: it has its own faults"))
        })
    }

    /// Everything is read and compared from now on, from where a scrub was stopped.
    pub fn start_scrub(&mut self) -> Result<ScrubStatus, HostError> {
        let now = self.now();
        if !self.parts.array.handle_scrub_start(now, Blame::Drives) {
            let spec = *self.parts.array.layout().spec();
            return match spec.redundant() {
                0 => fail(format!("{spec} has nothing to compare: nothing in it is redundant")),
                _ => fail(
                    "more drives are missing or failed than the array survives: nothing can be compared",
                ),
            };
        }
        Ok(self.scrub())
    }

    /// No more is read for that.
    pub fn stop_scrub(&mut self) -> Result<ScrubStatus, HostError> {
        let now = self.now();
        if !self.parts.array.handle_scrub_stop(now) {
            return fail("no scrub is under way");
        }
        Ok(self.scrub())
    }

    /// How far a scrub is.
    pub fn scrub(&self) -> ScrubStatus {
        let array = &self.parts.array;
        ScrubStatus { progress: array.scrub(), found: array.found_on().collect() }
    }

    /// Which sectors are damaged.
    pub fn damaged(&self) -> Damaged {
        let array = &self.parts.array;
        let found = |range: DamagedRange| {
            let first = Extent::new(range.extent.lba, Sectors::new(1));
            FoundRange { range, on_drive: array.area().on_drive(first).lba }
        };
        let ranges = array.damaged().ranges().map(found).collect();
        Damaged { summary: array.damaged_summary(), ranges }
    }

    /// What the array says about itself.
    pub fn status(&self) -> Status {
        let Parts { array, seats, gate, buffers, arithmetic, log, .. } = &self.parts;
        let now = self.now();
        let drives = (0..seats.len()).map(DriveIdx::from_usize).zip(seats);
        let drives = drives.map(|(drive, seat)| {
            let state = match seat.name {
                None if seat.is_removed => DriveState::Removed,
                None => DriveState::Missing,
                Some(_) if array.wanted_back().contains(drive) => DriveState::Behind,
                Some(_) if seat.work.failure().is_some() => DriveState::Failed,
                Some(_) if array.is_catching_up(drive) => DriveState::CatchingUp,
                Some(_) if array.is_filling(drive) => DriveState::Filling,
                Some(_) if array.lost().contains(drive) => DriveState::Lost,
                Some(_) if array.is_copied(drive) => DriveState::Copying,
                Some(_) => DriveState::Present,
            };
            let (name, queue_len) = (seat.name.clone(), array.queue_len(drive));
            let fast_fail = seat.ways.as_ref().map(|ways| ways.state());
            let failure = seat.work.failure().map(str::to_owned);
            DriveStatus {
                name,
                state,
                is_open: seat.backend.is_some(),
                failure,
                refusal: seat.refusal(drive, array).map(str::to_owned),
                queue_len,
                inside: seat.work.inside(),
                counters: DriveCounters {
                    wrong_sectors: array.wrong_sectors(drive),
                    ..seat.work.counters(now)
                },
                health: seat.health(),
                fast_fail,
                promise: array.promise(drive),
                sits_out: array.sat_out().contains(drive),
                is_silent: array.silent().contains(drive) && !array.lost().contains(drive),
                view: array.view(now, drive),
                figures: array.figures(now, drive),
            }
        });
        let state = match (array.lost().is_empty(), self.is_beyond_repair()) {
            (true, _) => ArrayState::Whole,
            (false, false) => ArrayState::Degraded,
            (false, true) => ArrayState::Failed,
        };
        Status {
            spec: *array.layout().spec(),
            uuid: array.uuid().expect("a server keeps metadata"),
            size: array.size(),
            policy: array.policy(),
            state,
            is_forced: array.forced() == Forced::Yes,
            journal: array.journal_status(),
            damaged: array.damaged_summary(),
            verify: array.verify_status(),
            scrub: self.scrub(),
            drives: drives.collect(),
            rebuild: array.rebuild(),
            copy: array.copy(),
            coming: self.coming.as_ref().and_then(|coming| coming.name.clone()),
            rebuild_wish: array.rebuild_wish(),
            spares: self.spares(),
            synced: Ratio::of(array.synced(), array.layout().stripes()),
            resync: array.resync(),
            outstanding: gate.inside().requests,
            counters: array.counters(),
            latency: self.latencies.summary(),
            answered: self.latencies.answered(),
            buffers: buffers.own_sectors(),
            arithmetic: arithmetic.clone(),
            events: log.kept(),
            event_counts: log.counts(),
            at: now,
        }
    }
}
