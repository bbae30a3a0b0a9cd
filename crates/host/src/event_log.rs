//! The last events of a running array: numbered, for those who ask later, and for those who wait for
//! the next one.
//!
//! The engine writes, any thread reads, and a reader comes back with the number of the last event that it
//! has seen. So none is read twice, and none is lost unnoticed: what had to make room is counted.
//!
//! # Invariants
//!
//! - G1. The first event is number 1, and each later one is the number before it plus one.
//! - G2. At most [`EVENTS_MAX`] are kept: the last ones.
//! - G3. Once it is closed there are no more events, and no reader waits. It is closed when the engine has
//!   ended, so a reader that waits sees what happened last.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use levelhead_array::superblock::Uuid;
use levelhead_array::{DriveFound, Event};
use levelhead_units::{Instant, Nanos};

use crate::error::{HostError, fail};

/// The number of events, the last ones, that are kept for later readers.
pub const EVENTS_MAX: usize = 64;

/// Something that happened to an array or to one of its drives, and its number since the array was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedEvent {
    /// The array.
    pub array: Uuid,
    /// 1 for the first.
    pub number: u64,
    /// Since the array was started.
    pub at: Instant,
    /// By the machine's clock.
    pub time: SystemTime,
    /// What happened.
    pub event: Event,
    /// What this machine knows of a drive that was lost, of one that is silent and whose commands are refused or whose last one
    /// failed, or of a new one that is not to have its place; nothing of other events.
    pub lost: Option<LostMember>,
    /// What an event of a scrub has found, drive by drive; nothing of other events.
    pub found: Vec<DriveFound>,
}

/// A drive that the array does without from now on, or for as long as it is silent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LostMember {
    /// The drive as it was named; nothing where it was missing from the start.
    pub name: Option<String>,
    /// How it has failed, in the machine's own words; nothing where an operator wanted its loss.
    pub reason: Option<String>,
}

/// What has happened since a reader looked last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventsSince {
    /// Events that are not kept any more, all of them before the others.
    pub missed: u64,
    /// The others, oldest first.
    pub events: Vec<NumberedEvent>,
    /// Whether the array has ended: then there will be no more.
    pub has_ended: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    array: Uuid,
    kept: Mutex<Kept>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Kept {
    events: VecDeque<NumberedEvent>,
    /// The number of the last event, 0 if there was none.
    last: u64,
    /// How often each thing has happened, by its name.
    counts: BTreeMap<&'static str, u64>,
    has_ended: bool,
}

impl EventLog {
    /// The log of this array.
    pub(crate) fn new(array: Uuid) -> Self {
        Self { array, ..Self::default() }
    }

    /// One more event.
    pub(crate) fn push(
        &self,
        at: Instant,
        time: SystemTime,
        event: Event,
        lost: Option<LostMember>,
        found: Vec<DriveFound>,
    ) -> NumberedEvent {
        let mut kept = self.lock();
        assert!(!kept.has_ended, "G3");
        kept.last += 1;
        *kept.counts.entry(event.name()).or_default() += 1;
        let numbered =
            NumberedEvent { array: self.array, number: kept.last, at, time, event, lost, found };
        if kept.events.len() == EVENTS_MAX {
            kept.events.pop_front();
        }
        kept.events.push_back(numbered.clone());
        self.changed.notify_all();
        numbered
    }

    /// There are no more events.
    pub(crate) fn close(&self) {
        self.lock().has_ended = true;
        self.changed.notify_all();
    }

    /// Waits until there are no more events.
    pub(crate) fn wait_for_close(&self) {
        let is_open = |kept: &mut Kept| !kept.has_ended;
        let closed = self.changed.wait_while(self.lock(), is_open);
        drop(closed.unwrap_or_else(PoisonError::into_inner));
    }

    /// All that are kept.
    pub(crate) fn kept(&self) -> Vec<NumberedEvent> {
        self.lock().events.iter().cloned().collect()
    }

    /// How often each thing has happened, by its name.
    pub(crate) fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.lock().counts.clone()
    }

    /// The events after number `after`; where there are none, waits for one, for the array's end, or
    /// for so long.
    pub(crate) fn since(&self, after: u64, patience: Nanos) -> Result<EventsSince, HostError> {
        let kept = self.lock();
        if after > kept.last {
            let last = kept.last;
            return fail(format!("the last event is number {last}, there is none after {after}"));
        }
        let is_quiet = |kept: &mut Kept| kept.last == after && !kept.has_ended;
        let waited = self.changed.wait_timeout_while(kept, patience.into(), is_quiet);
        let (kept, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let events: Vec<NumberedEvent> =
            kept.events.iter().filter(|event| event.number > after).cloned().collect();
        let missed = kept.last - after - events.len() as u64;
        Ok(EventsSince { missed, events, has_ended: kept.has_ended })
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use levelhead_array::ArrayEvent;

    use super::*;

    const FOR_EVER: Nanos = Nanos::from_secs(3600);

    fn push(log: &EventLog, at: u64) {
        let event = Event::Array(ArrayEvent::ResyncDone);
        log.push(Instant::from_nanos(at), SystemTime::UNIX_EPOCH, event, None, Vec::new());
    }

    fn numbers(since: &EventsSince) -> Vec<u64> {
        since.events.iter().map(|event| event.number).collect()
    }

    #[test]
    fn every_event_is_read_once_and_those_that_made_room_are_counted() {
        let log = EventLog::default();
        let (mut after, mut read, mut missed) = (0, 0, 0);
        for round in 0..300 {
            // Now and then more than are kept.
            for _ in 0..round % 90 {
                push(&log, round);
            }
            let since = log.since(after, Nanos::ZERO).unwrap();
            let expected: Vec<u64> =
                (after + since.missed + 1..).take(since.events.len()).collect();
            assert_eq!(numbers(&since), expected, "G1");
            assert!(since.missed == 0 || since.events.len() == EVENTS_MAX, "G2");
            after += since.missed + since.events.len() as u64;
            (read, missed) = (read + since.events.len() as u64, missed + since.missed);
        }
        assert_eq!(read + missed, (0..300).map(|round| round % 90).sum::<u64>());
        assert!(missed > 0);
        assert_eq!(log.kept().len(), EVENTS_MAX);
        assert!(log.counts().into_iter().eq([("resync-done", read + missed)]));
    }

    #[test]
    fn who_waits_gets_the_next_event_and_the_end() {
        let log = Arc::new(EventLog::default());
        push(&log, 1);
        let shared = Arc::clone(&log);
        let reader = thread::spawn(move || {
            let next = shared.since(1, FOR_EVER).unwrap();
            let end = shared.since(2, FOR_EVER).unwrap();
            (next, end)
        });
        push(&log, 2);
        log.close(); // The reader may have seen the event by then, or not.
        let (next, end) = reader.join().unwrap();
        assert_eq!(numbers(&next), [2]);
        assert_eq!(end, EventsSince { missed: 0, events: Vec::new(), has_ended: true });
        assert_eq!(
            numbers(&log.since(0, FOR_EVER).unwrap()),
            [1, 2],
            "it can be read after its end"
        );
    }

    #[test]
    fn nothing_new_is_said_when_patience_ends_and_the_future_is_refused() {
        let log = EventLog::default();
        let nothing = EventsSince { missed: 0, events: Vec::new(), has_ended: false };
        assert_eq!(log.since(0, Nanos::from_millis(1)), Ok(nothing));
        push(&log, 1);
        let refused = log.since(5, FOR_EVER).unwrap_err().to_string();
        assert_eq!(refused, "the last event is number 1, there is none after 5");
    }
}
