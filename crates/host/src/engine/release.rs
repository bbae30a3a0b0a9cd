//! Drives that the array no longer uses are closed, so that an operator can wipe, test or re-use them while it is served.
//!
//! ```text
//!   lost, and nothing inside --+
//!   its place has another -----+--> leaving --(its lane is empty)--> thread: close --> released, Event::Released
//!   spare or copy not wanted --+
//! ```
//!
//! A close may hang, as that of a file on a server does that is gone, and so may the end of a drive's threads. So it is done
//! on a thread of its own, for which nothing waits.
//!
//! # Invariants
//!
//! - RE1. A drive in its place is closed when the array no longer uses it and its last command has completed: while one may
//!   still be carried out, nothing else may be written there.
//! - RE2. What the array wants back ([`Array::wanted_back`](levelhead_array::Array::wanted_back)) stays open.
//! - RE3. The engine closes nothing itself. Where no thread can be had it tries again after [`PAUSE`].

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use levelhead_array::Event;
use levelhead_units::{DriveIdx, DriveSet, Instant, Nanos};

use super::{Engine, Input};
use crate::error::{HostError, fail};
use crate::event_log::LostMember;
use crate::seat::{Backend, Parts, Seat};
use crate::words::counted;

/// The time before another attempt to get a thread.
const PAUSE: Nanos = Nanos::from_secs(1);

/// A drive that is to be closed, or is being closed.
struct Leaving {
    /// Tells it from others.
    number: u64,
    /// Of which place it was, if it had one.
    drive: Option<DriveIdx>,
    name: Option<String>,
    /// Absent while a thread closes it.
    parts: Option<Parts>,
}

/// Drives that are to be closed.
#[derive(Default)]
pub(super) struct Release {
    leaving: Vec<Leaving>,
    number_last: u64,
    /// When a thread is asked for again after there was none.
    again_at: Instant,
}

/// A drive that the array does not use any more and that is not closed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotClosed {
    /// The drive as it was named.
    pub(crate) name: String,
    /// The place that it had, if it had one.
    pub(crate) drive: Option<DriveIdx>,
}

impl Engine {
    /// Closes what the array no longer uses (RE1).
    pub(super) fn release_drives(&mut self) {
        for drive in self.unused().iter() {
            let seat = &mut self.parts.seats[drive.as_usize()];
            if !seat.work.is_at_work() {
                let (name, parts) = (seat.name.clone(), seat.take_parts());
                self.let_go(Some(drive), name, parts);
            }
        }
        self.close_leaving();
    }

    /// Drives in their places that are not used any more (RE2).
    fn unused(&self) -> DriveSet {
        let array = &self.parts.array;
        let unused = array.away().without(array.wanted_back());
        unused.iter().filter(|&drive| !array.is_copied(drive)).collect()
    }

    /// A drive comes into a place. The one that was there is closed.
    pub(super) fn put_into(&mut self, drive: DriveIdx, seat: Seat) {
        let old = std::mem::replace(&mut self.parts.seats[drive.as_usize()], seat);
        self.dispose(Some(drive), old);
    }

    /// A drive is not wanted any more, and what it still has inside is nothing to the array.
    pub(super) fn dispose(&mut self, drive: Option<DriveIdx>, mut seat: Seat) {
        let (name, parts) = (seat.name.take(), seat.take_parts());
        self.let_go(drive, name, parts);
    }

    fn let_go(&mut self, drive: Option<DriveIdx>, name: Option<String>, parts: Option<Parts>) {
        if parts.is_none() {
            return;
        }
        self.release.number_last += 1;
        let number = self.release.number_last;
        self.release.leaving.push(Leaving { number, drive, name, parts });
        self.close_leaving();
    }

    /// Closes what is ready for it (RE3).
    fn close_leaving(&mut self) {
        if self.release.leaving.is_empty() {
            return;
        }
        let now = self.now();
        let Self { release, parts, .. } = self;
        if now < release.again_at {
            return;
        }
        for Leaving { number, parts: own, .. } in &mut release.leaving {
            let is_ready = match own.as_ref().map(|own| &own.backend) {
                None => false,
                Some(Backend::Member(_)) => true,
                Some(Backend::Ring { lane, .. }) => parts.own.release(*lane),
                Some(Backend::AtOnce(medium)) => !parts.own.has_for(medium),
            };
            if !is_ready {
                continue;
            }
            // What a thread would have taken must not be closed here where there is none.
            let parcel = Arc::new(Mutex::new(own.take()));
            let take = |parcel: &Mutex<Option<Parts>>| {
                parcel.lock().unwrap_or_else(PoisonError::into_inner).take()
            };
            let (theirs, inputs, number) = (Arc::clone(&parcel), parts.inputs.clone(), *number);
            let close = move || {
                if let Some(parts) = take(&theirs) {
                    parts.close();
                }
                let tell = move |engine: &mut Self| engine.obey(|own| own.note_closed(number));
                // An engine that has ended does not care any more.
                drop(inputs.send(Input::Order(Box::new(tell))));
            };
            if thread::Builder::new().name("closing".into()).spawn(close).is_err() {
                *own = take(&parcel);
                release.again_at = now + PAUSE;
                return;
            }
        }
    }

    /// A thread has closed a drive.
    fn note_closed(&mut self, number: u64) {
        let at = self.release.leaving.iter().position(|leaving| leaving.number == number);
        let Some(at) = at else { return };
        let Leaving { drive, name, .. } = self.release.leaving.swap_remove(at);
        // The last event is that of the array's end.
        if let (Some(drive), None) = (drive, self.ending) {
            self.tell_of(Event::Released { drive }, Some(LostMember { name, reason: None }));
        }
    }

    /// Drives that the array does not use any more and that are not closed yet.
    pub(crate) fn not_closed(&self) -> Vec<NotClosed> {
        let places = self.unused();
        let in_places = places.iter().filter_map(|drive| {
            let seat = &self.parts.seats[drive.as_usize()];
            let name = seat.backend.is_some().then(|| seat.name.clone())??;
            Some(NotClosed { name, drive: Some(drive) })
        });
        let leaving = self.release.leaving.iter().filter_map(|leaving| {
            Some(NotClosed { name: leaving.name.clone()?, drive: leaving.drive })
        });
        in_places.chain(leaving).collect()
    }

    /// Whether the array does not use this drive any more, and it has not completed all its commands.
    pub(crate) fn is_at_work_unused(&self, drive: DriveIdx) -> bool {
        let seat = self.parts.seats.get(drive.as_usize());
        self.unused().contains(drive) && seat.is_some_and(|seat| seat.work.is_at_work())
    }

    /// The place of a drive that the array does not use any more is empty from now on.
    pub(crate) fn remove(&mut self, drive: DriveIdx) -> Result<(), HostError> {
        let seat = self.seat(drive)?;
        if seat.name.is_none() {
            return fail(format!("drive {drive} is not there: its slot is empty"));
        }
        let array = &self.parts.array;
        if array.is_filling(drive) || array.is_catching_up(drive) {
            return fail(format!("drive {drive} is being rebuilt: array fail {drive} comes first"));
        }
        if !array.away().contains(drive) {
            return fail(format!("drive {drive} is in use: array fail {drive} comes first"));
        }
        if !self.unused().contains(drive) {
            return fail(format!(
                "drive {drive} is about to be taken back: array fail {drive} comes first"
            ));
        }
        let seat = self.seat(drive)?;
        if seat.work.is_at_work() {
            // An export is not brought back any more.
            if let Some(Backend::Member(member)) = &seat.backend {
                member.leave();
            }
            let commands = counted(seat.work.inside(), "command");
            return fail(format!(
                "drive {drive} has not completed {commands}: it is closed when it has, try again then"
            ));
        }
        self.release_drives();
        let seat = self.seat(drive)?;
        seat.name = None;
        seat.is_removed = true;
        seat.work.forget_failure();
        Ok(())
    }
}
