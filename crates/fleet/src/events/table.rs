//! What happens to drives: the events table.

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
