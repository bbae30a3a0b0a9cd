//! What those who run an array want of its engine, and what it says of itself.

use levelhead_array::Refusal;
use levelhead_array::membership::Why;
use levelhead_units::{DriveIdx, Ratio};

use super::{Control, Engine};
use crate::backend::Emulated;
use crate::engine::Parts;
use crate::error::{HostError, fail};
use crate::seat::Seat;
use crate::status::{ArrayState, DriveState, DriveStatus, Status};

impl Engine {
    pub(super) fn handle_control(&mut self, control: Control) {
        // Whoever asked may have lost interest.
        match control {
            Control::Status(reply) => drop(reply.send(self.status())),
            Control::Lose(drive, reply) => drop(reply.send(self.lose(drive))),
            Control::SetFaults(drive, faults, reply) => {
                drop(reply.send(self.emulated(drive).map(|drive| drive.set_faults(*faults))));
            }
            Control::Kill(drive, reply) => {
                drop(reply.send(self.emulated(drive).map(Emulated::die)));
            }
            Control::SitOut(drive, reply) => drop(reply.send(self.sit_out(drive))),
            Control::Admit(drive, reply) => drop(reply.send(self.sit_in(drive))),
            Control::StopSoon => {
                let now = self.now();
                self.parts.array.handle_stop_soon(now);
            }
            Control::Stop(reply) => self.stopping.push(reply),
        }
    }

    fn seat(&mut self, drive: DriveIdx) -> Result<&mut Seat, HostError> {
        let count = self.parts.seats.len();
        let seat = self.parts.seats.get_mut(drive.as_usize());
        seat.ok_or_else(|| {
            HostError::new(format!("the array has drives 0 to {}, not {drive}", count - 1))
        })
    }

    fn lose(&mut self, drive: DriveIdx) -> Result<(), HostError> {
        self.seat(drive)?;
        let (lost, spec) = (self.parts.array.lost(), *self.parts.array.layout().spec());
        if lost.contains(drive) {
            return fail(format!("drive {drive} is lost already"));
        }
        let (survives, count) = (spec.redundant(), lost.len());
        if count as usize >= survives {
            return fail(format!(
                "{spec} survives the loss of {survives} drives, {count} are lost already"
            ));
        }
        let (synced, stripes) = (self.parts.array.synced(), self.parts.array.layout().stripes());
        if synced < stripes {
            let left = stripes - synced;
            return fail(format!(
                "drive {drive} holds data that nothing else does: the redundancy of {left} of \
                 {stripes} stripes is not valid yet"
            ));
        }
        let now = self.now();
        self.parts.array.handle_lost(now, drive, Why::ByHand);
        self.carry_out();
        self.admit();
        Ok(())
    }

    /// Somebody wants a drive not to be read where that can be helped.
    fn sit_out(&mut self, drive: DriveIdx) -> Result<(), HostError> {
        self.seat(drive)?;
        let now = self.now();
        let done = self.parts.array.handle_sit_out(now, drive);
        self.carry_out();
        done.or_else(|refusal| match refusal {
            Refusal::Lost => fail(format!("drive {drive} is lost")),
            Refusal::Already => fail(format!("drive {drive} sits out by hand already")),
            Refusal::Needed { spare } => fail(format!(
                "the array can do without {spare} drives, and does already: drive {drive} is needed"
            )),
        })
    }

    /// Somebody wants it to be read again.
    fn sit_in(&mut self, drive: DriveIdx) -> Result<(), HostError> {
        self.seat(drive)?;
        let now = self.now();
        let done = self.parts.array.handle_admit(now, drive);
        self.carry_out();
        done.or_else(|_| fail(format!("drive {drive} does not sit out")))
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

    fn status(&self) -> Status {
        let Parts { array, seats, gate, .. } = &self.parts;
        let now = self.now();
        let drives = (0..seats.len()).map(DriveIdx::from_usize).zip(seats);
        let drives = drives.map(|(drive, seat)| {
            let state = match seat.backend {
                None => DriveState::Missing,
                Some(_) if seat.work.failure().is_some() => DriveState::Failed,
                Some(_) if array.lost().contains(drive) => DriveState::Lost,
                Some(_) => DriveState::Present,
            };
            let (name, queue_len) = (seat.name.clone(), array.queue_len(drive));
            let fast_fail = seat.fast.as_ref().map(|fast| fast.state());
            let failure = seat.work.failure().map(str::to_owned);
            DriveStatus {
                name,
                state,
                failure,
                queue_len,
                health: seat.health(),
                fast_fail,
                sits_out: array.sat_out().contains(drive),
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
            uuid: array.uuid().expect("a server keeps books"),
            size: array.size(),
            policy: array.policy(),
            state,
            drives: drives.collect(),
            synced: Ratio::of(array.synced(), array.layout().stripes()),
            resync: array.resync(),
            outstanding: gate.requests(),
            served: self.account.served,
            latency: self.account.latency(),
            events: self.parts.log.kept(),
        }
    }
}
