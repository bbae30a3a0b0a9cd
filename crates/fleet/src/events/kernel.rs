//! The pass: rows in the order of (hour, group, drive) and events in the order of hours, into a summary.

use std::collections::VecDeque;
use std::fmt;

use levelhead_stats::median_of;

use super::summary::{EventsSummary, Onset};
use super::table::{EventKind, EventsTable, Severity};
use crate::Hours;
use crate::analysis::{Disorder, PEERS_MIN};

/// Rows or events out of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventsError {
    /// Rows.
    Rows(Disorder),
    /// An event that comes after one of a later hour, or after rows of one.
    Late {
        /// The event's hour.
        hour: i32,
        /// Its drive.
        drive: i32,
    },
}

impl fmt::Display for EventsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows(disorder) => disorder.fmt(f),
            Self::Late { hour, drive } => {
                write!(
                    f,
                    "events must rise by hour and come before the rows of later hours: that of hour {hour}, drive {drive}, does not"
                )
            }
        }
    }
}

impl std::error::Error for EventsError {}

/// One pass. Events may be given all at once, or as they come: an hour's before the rows of a later hour. After an error it is of no
/// further use.
pub struct EventsKernel {
    /// Fewest requests of a drive hour that is not idle.
    ios_min: i32,
    summary: EventsSummary,
    /// Events that rows have not come to yet.
    events: VecDeque<Event>,
    /// The hour of the last event given.
    event_hour: Option<i32>,
    open: Option<Open>,
    drives: Vec<i32>,
    latencies: Vec<f64>,
    scratch: Vec<f64>,
}

struct Event {
    hour: i32,
    drive: i32,
    kind: EventKind,
}

/// The row before.
#[derive(Clone, Copy)]
struct Open {
    hour: i32,
    raid: i32,
    drive: i32,
}

impl EventsKernel {
    /// Before the first row. A row of fewer than `ios_min` requests is idle.
    pub fn new(ios_min: i32) -> Self {
        Self {
            ios_min,
            summary: EventsSummary::new(),
            events: VecDeque::new(),
            event_hour: None,
            open: None,
            drives: Vec::new(),
            latencies: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// The next events.
    pub fn handle_events(&mut self, events: &EventsTable) -> Result<(), EventsError> {
        let rows = events.hour.iter().zip(&events.drive).zip(&events.kind);
        for ((&hour, &drive), &kind) in rows {
            let is_late = self.event_hour.is_some_and(|before| hour < before)
                || self.open.is_some_and(|open| hour < open.hour);
            if is_late {
                return Err(EventsError::Late { hour, drive });
            }
            self.event_hour = Some(hour);
            self.events.push_back(Event { hour, drive, kind });
        }
        Ok(())
    }

    /// The next rows. A group may be cut between two slices; `bytes` and `age_hours` are not looked at.
    ///
    /// Panics if columns differ in length.
    pub fn handle_hours(&mut self, hours: Hours<'_>) -> Result<(), EventsError> {
        let rows = hours.hour.len();
        for len in [hours.raid.len(), hours.drive.len(), hours.latency_us.len(), hours.ios.len()] {
            assert_eq!(len, rows, "columns have one length");
        }
        for row in 0..rows {
            let now =
                Open { hour: hours.hour[row], raid: hours.raid[row], drive: hours.drive[row] };
            if let Some(open) = self.open {
                let (before, after) = ((open.hour, open.raid), (now.hour, now.raid));
                if after < before || (after == before && now.drive <= open.drive) {
                    let Open { hour, raid, .. } = now;
                    return Err(EventsError::Rows(Disorder { hour, raid }));
                }
                if after > before {
                    self.close();
                }
            }
            self.open = Some(now);
            let latency = f64::from(hours.latency_us[row]);
            if latency > 0.0 && latency.is_finite() && hours.ios[row] >= self.ios_min {
                self.drives.push(now.drive);
                self.latencies.push(latency);
            }
        }
        Ok(())
    }

    /// The summary of all rows and events.
    pub fn finish(mut self) -> EventsSummary {
        self.close();
        while let Some(event) = self.events.pop_front() {
            self.summary.enter_event(event.drive, event.hour, event.kind);
        }
        self.summary
    }

    /// Counts a whole group in an hour.
    fn close(&mut self) {
        let Some(Open { hour, .. }) = self.open else { return };
        self.take_events(hour);
        if self.latencies.len() >= PEERS_MIN {
            self.scratch.clone_from(&self.latencies);
            let median = median_of(&mut self.scratch);
            for (&drive, latency) in self.drives.iter().zip(&self.latencies) {
                if let Some(severity) = Severity::of(latency / median) {
                    self.summary.enter_slow(drive, Onset { hour, severity });
                }
            }
        }
        self.drives.clear();
        self.latencies.clear();
    }

    /// Counts the events of hours before this one.
    fn take_events(&mut self, hour: i32) {
        while let Some(event) = self.events.front().filter(|event| event.hour < hour) {
            self.summary.enter_event(event.drive, event.hour, event.kind);
            self.events.pop_front();
        }
    }
}
