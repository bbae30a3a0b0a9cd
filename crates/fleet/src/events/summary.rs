//! What a pass over hours and events leaves: counts of spans, and the edges of each drive.

use std::collections::BTreeMap;
use std::fmt;

use super::table::{EventKind, Severity};

/// Longest span with a count of its own, in hours.
pub const HOURS_MAX: u32 = 240;

/// Spans of hours, of which some have not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spans {
    ended: Vec<u64>,
    begun: u64,
}

impl Spans {
    fn new() -> Self {
        Self { ended: vec![0; HOURS_MAX as usize + 1], begun: 0 }
    }

    fn begin(&mut self) {
        self.begun = self.begun.saturating_add(1);
    }

    fn end(&mut self, hours: i64) {
        if let Some(count) = usize::try_from(hours).ok().and_then(|hours| self.ended.get_mut(hours))
        {
            *count = count.saturating_add(1);
        }
    }

    /// How many have begun.
    pub fn begun(&self) -> u64 {
        self.begun
    }

    /// How many were over after this number of hours; of more than [`HOURS_MAX`] none is told from one that never ends.
    pub fn ended_within(&self, hours: u32) -> u64 {
        let until = hours.min(HOURS_MAX) as usize;
        self.ended[..=until].iter().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// The same as a share of those that have begun; `None` if none has.
    pub fn share_within(&self, hours: u32) -> Option<f64> {
        (self.begun > 0).then(|| self.ended_within(hours) as f64 / self.begun as f64)
    }

    /// Adds what another counted.
    pub fn merge(&mut self, other: &Self) {
        self.begun = self.begun.saturating_add(other.begun);
        for (mine, theirs) in self.ended.iter_mut().zip(&other.ended) {
            *mine = mine.saturating_add(*theirs);
        }
    }
}

/// An hour in which a drive became slower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Onset {
    pub(super) hour: i32,
    pub(super) severity: Severity,
}

impl Onset {
    /// Whether a drive that was as slow as this an hour before has an onset.
    fn follows(self, before: Self) -> bool {
        let is_next = i64::from(before.hour) + 1 == i64::from(self.hour);
        is_next && before.severity.is_slow() >= self.severity.is_slow()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Event {
    hour: i32,
    kind: EventKind,
}

/// What is kept of a drive: what another part may go on with.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Edge {
    /// Hours of the first and last row at 1.5 and above, or event.
    from: i32,
    to: i32,
    /// The first row at 1.5 and above: an onset, unless a part before says otherwise.
    first: Option<Onset>,
    /// Its wait.
    first_wait: Option<i64>,
    /// The last row at 1.5 and above.
    last: Option<Onset>,
    slow_first: Option<i32>,
    unplug_first: Option<i32>,
    event_first: Option<Event>,
    /// Later onsets that no unplug has followed.
    waiting: Vec<Onset>,
    /// Replugs that no slow hour has followed.
    replugged: Vec<i32>,
    /// The unplug, if that was the last event.
    out_since: Option<i32>,
}

/// Spans between slow hours and events, as far as they have been seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventsSummary {
    /// By severity, but for the first onset of each drive.
    waits: [Spans; Severity::ALL.len()],
    recurrences: Spans,
    absences: Spans,
    drives: BTreeMap<i32, Edge>,
}

/// Two summaries have seen a drive in the same hours, or one lies within the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventsOverlap {
    /// The drive.
    pub drive: i32,
}

impl fmt::Display for EventsOverlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { drive } = self;
        write!(
            f,
            "two summaries overlap in the hours of drive {drive}: parts are merged neighbour to neighbour, each once"
        )
    }
}

impl std::error::Error for EventsOverlap {}

impl EventsSummary {
    /// Of nothing.
    pub fn new() -> Self {
        Self {
            waits: std::array::from_fn(|_| Spans::new()),
            recurrences: Spans::new(),
            absences: Spans::new(),
            drives: BTreeMap::new(),
        }
    }

    /// From onsets of this severity to the drive's next unplug.
    pub fn waits(&self, severity: Severity) -> Spans {
        let mut waits = self.waits[severity as usize].clone();
        for edge in self.drives.values() {
            if edge.first.is_some_and(|first| first.severity == severity) {
                waits.begin();
                if let Some(hours) = edge.first_wait {
                    waits.end(hours);
                }
            }
        }
        waits
    }

    /// From onsets of 2 and more to the drive's next unplug.
    pub fn slow_waits(&self) -> Spans {
        let mut waits = Spans::new();
        for severity in Severity::ALL.into_iter().filter(|severity| severity.is_slow()) {
            waits.merge(&self.waits(severity));
        }
        waits
    }

    /// From replugs to the drive's next slow hour.
    pub fn recurrences(&self) -> &Spans {
        &self.recurrences
    }

    /// From unplugs to the drive's replug; one that never ends is a replacement.
    pub fn absences(&self) -> &Spans {
        &self.absences
    }

    /// A row at 1.5 and above; the drive's rows and events come in order.
    pub(super) fn enter_slow(&mut self, drive: i32, now: Onset) {
        let edge = Edge::at(&mut self.drives, drive, now.hour);
        if now.severity.is_slow() {
            edge.slow_first.get_or_insert(now.hour);
            for hour in edge.replugged.drain(..) {
                self.recurrences.end(i64::from(now.hour) - i64::from(hour));
            }
        }
        match edge.last {
            None => edge.first = Some(now),
            Some(last) if now.follows(last) => {}
            Some(_) => {
                self.waits[now.severity as usize].begin();
                edge.waiting.push(now);
                forget(&mut edge.waiting, |onset| onset.hour);
            }
        }
        edge.last = Some(now);
    }

    pub(super) fn enter_event(&mut self, drive: i32, hour: i32, kind: EventKind) {
        let edge = Edge::at(&mut self.drives, drive, hour);
        edge.event_first.get_or_insert(Event { hour, kind });
        match kind {
            EventKind::Unplug => {
                edge.unplug_first.get_or_insert(hour);
                edge.end_waits(hour, &mut self.waits);
                self.absences.begin();
                edge.out_since = Some(hour);
            }
            EventKind::Replug => {
                if let Some(since) = edge.out_since.take() {
                    self.absences.end(i64::from(hour) - i64::from(since));
                }
                self.recurrences.begin();
                edge.replugged.push(hour);
                forget(&mut edge.replugged, |&hour| hour);
            }
        }
    }

    /// Adds the summary of another part. On an error nothing has changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), EventsOverlap> {
        let overlap = other.drives.iter().find(|(drive, theirs)| {
            let mine = self.drives.get(*drive);
            mine.is_some_and(|mine| !(mine.to < theirs.from || theirs.to < mine.from))
        });
        if let Some((&drive, _)) = overlap {
            return Err(EventsOverlap { drive });
        }
        for (mine, theirs) in self.waits.iter_mut().zip(&other.waits) {
            mine.merge(theirs);
        }
        self.recurrences.merge(&other.recurrences);
        self.absences.merge(&other.absences);
        for (&drive, theirs) in &other.drives {
            let joined = match self.drives.remove(&drive) {
                None => theirs.clone(),
                Some(mine) if mine.to < theirs.from => self.join(mine, theirs.clone()),
                Some(mine) => self.join(theirs.clone(), mine),
            };
            self.drives.insert(drive, joined);
        }
        Ok(())
    }

    fn join(&mut self, earlier: Edge, later: Edge) -> Edge {
        let mut joined = earlier;
        if let Some(hour) = later.slow_first {
            for replug in joined.replugged.drain(..) {
                self.recurrences.end(i64::from(hour) - i64::from(replug));
            }
        }
        if let (Some(since), Some(Event { hour, kind: EventKind::Replug })) =
            (joined.out_since, later.event_first)
        {
            self.absences.end(i64::from(hour) - i64::from(since));
        }
        if let Some(hour) = later.unplug_first {
            joined.end_waits(hour, &mut self.waits);
        }
        match (joined.last, later.first) {
            (_, None) => {}
            (None, Some(first)) => {
                joined.first = Some(first);
                joined.first_wait = later.first_wait;
            }
            (Some(last), Some(first)) if first.follows(last) => {}
            (Some(_), Some(first)) => {
                let waits = &mut self.waits[first.severity as usize];
                waits.begin();
                match later.first_wait {
                    Some(hours) => waits.end(hours),
                    None => joined.waiting.push(first),
                }
            }
        }
        joined.waiting.extend(later.waiting);
        forget(&mut joined.waiting, |onset| onset.hour);
        joined.replugged.extend(later.replugged);
        forget(&mut joined.replugged, |&hour| hour);
        joined.out_since =
            if later.event_first.is_some() { later.out_since } else { joined.out_since };
        joined.last = later.last.or(joined.last);
        joined.slow_first = joined.slow_first.or(later.slow_first);
        joined.unplug_first = joined.unplug_first.or(later.unplug_first);
        joined.event_first = joined.event_first.or(later.event_first);
        joined.to = later.to;
        joined
    }
}

impl Default for EventsSummary {
    fn default() -> Self {
        Self::new()
    }
}

impl Edge {
    /// The drive's edge, made if it is new, which now reaches to `hour`.
    fn at(drives: &mut BTreeMap<i32, Self>, drive: i32, hour: i32) -> &mut Self {
        let edge = drives.entry(drive).or_insert_with(|| Self {
            from: hour,
            to: hour,
            first: None,
            first_wait: None,
            last: None,
            slow_first: None,
            unplug_first: None,
            event_first: None,
            waiting: Vec::new(),
            replugged: Vec::new(),
            out_since: None,
        });
        edge.to = hour;
        edge
    }

    /// The drive is unplugged.
    fn end_waits(&mut self, hour: i32, waits: &mut [Spans; Severity::ALL.len()]) {
        for onset in self.waiting.drain(..) {
            waits[onset.severity as usize].end(i64::from(hour) - i64::from(onset.hour));
        }
        if let (Some(first), None) = (self.first, self.first_wait) {
            self.first_wait = Some(i64::from(hour) - i64::from(first.hour));
        }
    }
}

/// Drops what is so long before the last that its span cannot be counted any more.
fn forget<T>(waiting: &mut Vec<T>, hour_of: impl Fn(&T) -> i32) {
    if let Some(last) = waiting.last().map(&hour_of) {
        let is_old = |item: &T| i64::from(last) - i64::from(hour_of(item)) > i64::from(HOURS_MAX);
        let old_count = waiting.iter().take_while(|item| is_old(item)).count();
        waiting.drain(..old_count);
    }
}
