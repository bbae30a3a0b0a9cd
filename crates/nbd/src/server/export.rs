//! One device at work: runs changes over its service, each with its sectors to itself. Exports of the same
//! service share it.
//!
//! A change of one command goes straight to the service. Whatever must be done after a reply of the
//! service or after another change (the next command, the next piece of a long one, a change that waited) is
//! left to one thread per device, because a service's callback must neither wait nor submit.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use levelhead_block::{BlockService, Done, Reply};
use levelhead_units::Sectors;

use super::Access;
use super::change::{Change, Next};
use super::failure::{Failure, Finish, check_outcome};
use super::locks::SectorLocks;
use super::negotiation::Described;
use super::turns::{Long, Step, Turns};

/// An export that connections share.
pub(super) struct LiveExport {
    pub(super) described: Described,
    pub(super) access: Access,
    pub(super) device: Arc<Device>,
}

/// A service that exports share.
pub(super) struct Device {
    pub(super) service: Arc<dyn BlockService>,
    locks: Mutex<SectorLocks<Box<Ongoing>>>,
    turns: Mutex<Turns>,
    later: Sender<Event>,
}

/// A change under way.
struct Ongoing {
    change: Change,
    finish: Finish,
}

/// What waits for the export's own thread.
enum Event {
    /// Take the change's next step, after this reply.
    Advance(Box<Ongoing>, Option<Reply>),
    /// A piece of a long request has ended like this.
    Piece(Box<Long>, Result<(), Failure>),
    /// No change is under way and none will come.
    Stop,
}

/// The events of one device, for [`Device::run`].
pub(super) struct Events(Receiver<Event>);

impl Device {
    pub(super) fn new(service: Arc<dyn BlockService>) -> (Arc<Self>, Events) {
        let (later, events) = mpsc::channel();
        let locks = Mutex::new(SectorLocks::new());
        let turns = Mutex::default();
        (Arc::new(Self { service, locks, turns, later }), Events(events))
    }

    /// Whether it is this service.
    pub(super) fn is_of(&self, service: &Arc<dyn BlockService>) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.service), Arc::as_ptr(service))
    }

    /// What the device's own thread does until [`Device::stop`].
    pub(super) fn run(self: &Arc<Self>, events: &Events) {
        for event in &events.0 {
            match event {
                Event::Advance(ongoing, last) => self.advance(ongoing, last),
                Event::Piece(long, result) => {
                    let ended = self.lock_turns().handle_piece(*long, result);
                    ended.into_iter().for_each(|step| self.take(step));
                    self.take_turns();
                }
                Event::Stop => return,
            }
        }
    }

    /// Ends [`Device::run`] once no change is under way.
    pub(super) fn stop(&self) {
        // A device whose thread could not be started has nothing to end.
        drop(self.later.send(Event::Stop));
    }

    /// Runs `change` as soon as no other change holds its sectors, then calls `finish`.
    pub(super) fn start(self: &Arc<Self>, change: Change, finish: Finish) {
        let ongoing = Box::new(Ongoing { change, finish });
        let extent = ongoing.change.extent();
        let granted = if extent.sectors == Sectors::ZERO {
            Some(ongoing)
        } else {
            self.locks.lock().unwrap_or_else(PoisonError::into_inner).acquire(extent, ongoing)
        };
        if let Some(ongoing) = granted {
            self.advance(ongoing, None);
        }
    }

    /// Runs a long request piece by piece, in turn with those of others, then calls its `finish`.
    pub(super) fn start_long(self: &Arc<Self>, long: Long) {
        self.lock_turns().add(long);
        self.take_turns();
    }

    fn take_turns(self: &Arc<Self>) {
        loop {
            let step = self.lock_turns().poll();
            let Some(step) = step else { return };
            self.take(step);
        }
    }

    fn take(self: &Arc<Self>, step: Step) {
        match step {
            Step::Piece(piece, long) => {
                let (this, long) = (Arc::clone(self), Box::new(long));
                self.start(piece, Box::new(move |result| this.leave(Event::Piece(long, result))));
            }
            Step::End(finish, result) => finish(result),
        }
    }

    fn lock_turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn advance(self: &Arc<Self>, mut ongoing: Box<Ongoing>, last: Option<Reply>) {
        let this = Arc::clone(self);
        match ongoing.change.next(last) {
            Next::Submit(request) => {
                let done: Done =
                    Box::new(move |reply| this.leave(Event::Advance(ongoing, Some(reply))));
                self.service.submit(request, done);
            }
            Next::SubmitLast(request) => {
                let command = request.command;
                let done: Done = Box::new(move |reply| {
                    this.finish(*ongoing, check_outcome(&reply.outcome, &command));
                });
                self.service.submit(request, done);
            }
            Next::Finished(result) => self.finish(*ongoing, result),
        }
    }

    fn finish(&self, Ongoing { change, finish }: Ongoing, result: Result<(), Failure>) {
        let extent = change.extent();
        if extent.sectors > Sectors::ZERO {
            let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
            let granted = locks.release(extent);
            drop(locks);
            for ongoing in granted {
                self.leave(Event::Advance(ongoing, None));
            }
        }
        finish(result);
    }

    fn leave(&self, event: Event) {
        // Without its thread a device has no connections, hence no changes.
        self.later.send(event).expect("the device's thread outlives its connections");
    }
}
