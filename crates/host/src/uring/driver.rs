//! Commands for any number of drives through one kernel, by whichever thread calls.
//!
//! ```text
//!   submit --> lane of the drive: waiting, beyond the window
//!                          |
//!                        kernel: start .. wait --> ended
//!                          ^                 |
//!                          +-----------------+  the next step of the command
//! ```
//!
//! # Invariants
//!
//! - W1. Within a lane the commands begin in the order in which they came.
//! - W2. A lane has at most its window inside, so one drive takes no place from another.
//! - W3. Nothing here waits but [`Driver::wait`], and that no longer than it is told to.

use std::collections::{BTreeMap, VecDeque};
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Duration;

use levelhead_block::{Command, Data, Reply, Request};

use super::Under;
use super::flight::{Flight, Progress};
use super::ring::{Event, Kernel};
use crate::blocking::because;
use crate::errno::failed_write;

/// See the module. `T` is what a caller knows its command by.
pub(crate) struct Driver<K: Kernel, T> {
    /// Dropped unless something is under way.
    kernel: ManuallyDrop<K>,
    /// Everything whose memory the kernel may be using.
    flights: BTreeMap<u64, Flown<T>>,
    lanes: Vec<Lane<T>>,
    name_last: u64,
    ended: VecDeque<Ended<T>>,
    /// Kept for its memory.
    events: Vec<Event>,
}

/// A command that has ended.
pub(crate) struct Ended<T> {
    /// What the caller knows it by.
    pub(crate) tag: T,
    pub(crate) command: Command,
    pub(crate) reply: Reply,
}

/// One drive's place.
struct Lane<T> {
    /// Absent once the drive was let go.
    under: Option<Arc<Under>>,
    window: usize,
    inside: usize,
    /// What has come and is not under way: there is more than the window.
    waiting: VecDeque<(Request, T)>,
}

struct Flown<T> {
    flight: Flight,
    lane: usize,
    tag: T,
}

impl<K: Kernel, T> Driver<K, T> {
    /// The number of steps for which the kernel must have room at a time from each of these drives.
    pub(crate) fn new(kernel: K, drives: Vec<Arc<Under>>, window: u32) -> Self {
        let window = window as usize;
        let lane = |under| Lane { under: Some(under), window, inside: 0, waiting: VecDeque::new() };
        Self {
            kernel: ManuallyDrop::new(kernel),
            flights: BTreeMap::new(),
            lanes: drives.into_iter().map(lane).collect(),
            name_last: 0,
            ended: VecDeque::new(),
            events: Vec::new(),
        }
    }

    /// Whether nothing is under way, and nothing that has ended waits to be taken.
    pub(crate) fn is_idle(&self) -> bool {
        self.flights.is_empty() && self.ended.is_empty()
    }

    /// What the drive of this number is.
    pub(crate) fn under(&self, lane: usize) -> &Under {
        self.lanes[lane].under.as_deref().expect("a drive that was let go is given nothing")
    }

    /// Lets go of the drive of this number, which is given nothing any more. Whether it has: not while it has something inside.
    pub(crate) fn release(&mut self, lane: usize) -> bool {
        let Lane { under, inside, waiting, .. } = &mut self.lanes[lane];
        let is_idle = *inside == 0 && waiting.is_empty();
        if is_idle && let Some(under) = under.take() {
            self.kernel.release(&under);
        }
        is_idle
    }

    /// Takes a command that no drive is needed for.
    pub(crate) fn pass(&mut self, tag: T, command: Command) {
        let reply = Reply::good(Data::None);
        self.ended.push_back(Ended { tag, command, reply });
    }

    /// Takes a command that has come through [`prepare`](crate::backend::prepare), for the drive of this number.
    pub(crate) fn submit(&mut self, lane: usize, request: Request, tag: T) {
        self.lanes[lane].waiting.push_back((request, tag));
        self.admit(lane);
    }

    /// Offers to the kernel what was started, and takes what has ended. Waits for it until something
    /// happens, for this long at most, or without a limit.
    pub(crate) fn wait(&mut self, patience: Option<Duration>) {
        // What has ended already is not to wait for anything else.
        let patience = if self.ended.is_empty() { patience } else { Some(Duration::ZERO) };
        let mut events = std::mem::take(&mut self.events);
        self.kernel.wait(patience, &mut events);
        for event in events.drain(..) {
            match event {
                Event::Ended { name, result } => self.advance(name, result),
                // The thread that waits looks for what else there is.
                Event::Woken => {}
            }
        }
        self.events = events;
    }

    /// The next command that has ended.
    pub(crate) fn next_ended(&mut self) -> Option<Ended<T>> {
        self.ended.pop_front()
    }

    fn admit(&mut self, lane: usize) {
        let Lane { under: Some(under), window, inside, waiting } = &mut self.lanes[lane] else {
            return;
        };
        while *inside < *window
            && let Some((request, tag)) = waiting.pop_front()
        {
            let command = request.command;
            if let Command::Write { extent, .. } = command
                && let Err(error) = under.medium.check_writable()
            {
                drop(request); // M2
                let reply = because(failed_write(extent, &error), &error);
                self.ended.push_back(Ended { tag, command, reply });
                continue;
            }
            *inside += 1;
            self.name_last += 1;
            let name = self.name_last;
            let flight = Flight::new(request, Arc::clone(under));
            let flown = self.flights.entry(name).or_insert(Flown { flight, lane, tag });
            // SAFETY: U1: the flight's memory stays where it is while the flight is in the table, and
            // it leaves the table when its last step has ended. U2: there are no more than the window.
            unsafe { self.kernel.start(name, &mut flown.flight) };
        }
    }

    /// The kernel is through with a step.
    fn advance(&mut self, name: u64, result: i32) {
        let flown = self.flights.get_mut(&name).expect("the flight is in the table");
        match flown.flight.advance(result) {
            // SAFETY: as in `admit`; the step before has ended.
            Progress::GoesOn => unsafe { self.kernel.start(name, &mut flown.flight) },
            Progress::Ended(end) => {
                let flown = self.flights.remove(&name).expect("the flight is in the table");
                let Flown { flight, lane, tag } = flown;
                let (command, reply) = flight.into_reply(end);
                self.ended.push_back(Ended { tag, command, reply });
                self.lanes[lane].inside -= 1;
                self.admit(lane);
            }
        }
    }
}

impl<K: Kernel, T> Drop for Driver<K, T> {
    fn drop(&mut self) {
        if self.flights.is_empty() {
            // SAFETY: it is not used after this.
            unsafe { ManuallyDrop::drop(&mut self.kernel) };
        } else {
            // U3: with the drives themselves, whose descriptors the flights keep open.
            std::mem::forget(std::mem::take(&mut self.flights));
        }
    }
}
