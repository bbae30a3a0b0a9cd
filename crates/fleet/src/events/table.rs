//! What happens to drives: the events table; how slow a drive is when it draws attention.

use crate::analysis::SLOW;

/// What happened to a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// It was taken out of its group.
    Unplug,
    /// It was put back.
    Replug,
}

/// Events, as columns, in the order of their hours. An event stands at the end of its hour: after that hour's row of the drive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventsTable {
    /// Hours since any moment, as in the hours table.
    pub hour: Vec<i32>,
    /// The drive.
    pub drive: Vec<i32>,
    /// What happened.
    pub kind: Vec<EventKind>,
}

impl EventsTable {
    /// Adds an event.
    pub fn push(&mut self, hour: i32, drive: i32, kind: EventKind) {
        self.hour.push(hour);
        self.drive.push(drive);
        self.kind.push(kind);
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.hour.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.hour.is_empty()
    }

    /// Removes all events.
    pub fn clear(&mut self) {
        self.hour.clear();
        self.drive.clear();
        self.kind.clear();
    }
}

/// How slow a drive is in its first slow hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// From 1.5 to 2: not slow yet.
    Mild,
    /// From 2 to 4.
    From2,
    /// From 4 to 8.
    From4,
    /// From 8 to 16.
    From8,
    /// 16 and more.
    From16,
}

impl Severity {
    /// From mild to worst.
    pub const ALL: [Self; 5] = [Self::Mild, Self::From2, Self::From4, Self::From8, Self::From16];

    /// The smallest slowdown of this severity.
    pub const fn from(self) -> f64 {
        match self {
            Self::Mild => 1.5,
            Self::From2 => SLOW,
            Self::From4 => 4.0,
            Self::From8 => 8.0,
            Self::From16 => 16.0,
        }
    }

    /// The severity of a slowdown; `None` below 1.5.
    pub fn of(slowdown: f64) -> Option<Self> {
        Self::ALL.into_iter().rev().find(|severity| slowdown >= severity.from())
    }

    /// Whether it is slow, and not merely mild.
    pub fn is_slow(self) -> bool {
        self != Self::Mild
    }
}
