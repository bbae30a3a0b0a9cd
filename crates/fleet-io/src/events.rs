//! Events of drives in files: CSV with columns `hour`, `drive` and `kind`, which is `unplug` or `replug`; others beside them.

use std::io::Write;
use std::path::Path;

use levelhead_fleet::events::{EventKind, EventsTable};

use crate::ReadError;
use crate::lines::{Lines, all_fields, unquoted};

/// The first line that is written.
const HEADER: &str = "hour,drive,kind";

/// The most events of a file.
const EVENTS_MAX: usize = 100_000_000;

/// Reads the events of a file, in the order of their hours.
///
/// # Errors
///
/// A file that cannot be read or lacks a column, and a line with anything else in one.
pub fn read_events(path: &Path) -> Result<EventsTable, ReadError> {
    let mut lines = Lines::open(path)?;
    let header = lines.next()?.ok_or_else(|| ReadError::of(path, "the file is empty"))?;
    let names = all_fields(header);
    let place = |name: &str| {
        let found = names.iter().position(|column| column == name);
        found.ok_or_else(|| ReadError::at(path, 1, format!("missing column `{name}`")))
    };
    let (hour, drive, kind) = (place("hour")?, place("drive")?, place("kind")?);
    let mut events = Vec::new();
    while let Some(line) = lines.next()? {
        if line.is_empty() {
            continue;
        }
        let fields: Vec<&str> = line.split(',').map(unquoted).collect();
        let event = event_of(&names, &fields, [hour, drive, kind]);
        events.push(event.map_err(|why| ReadError::at(path, lines.number(), why))?);
        if events.len() > EVENTS_MAX {
            return Err(ReadError::of(path, format!("there are more than {EVENTS_MAX} events")));
        }
    }
    events.sort_by_key(|event: &Event| event.hour);
    let mut table = EventsTable::default();
    events.iter().for_each(|event| table.push(event.hour, event.drive, event.kind));
    Ok(table)
}

struct Event {
    hour: i32,
    drive: i32,
    kind: EventKind,
}

fn event_of(names: &[String], fields: &[&str], places: [usize; 3]) -> Result<Event, String> {
    if fields.len() != names.len() {
        return Err(format!("{} fields instead of {}", fields.len(), names.len()));
    }
    let [hour, drive, kind] = places.map(|place| fields[place]);
    let whole = |name: &str, text: &str| {
        text.parse().map_err(|_| format!("{name} '{text}' is not a whole number of 32 bits"))
    };
    let kind = match kind {
        "unplug" => EventKind::Unplug,
        "replug" => EventKind::Replug,
        _ => return Err(format!("kind '{kind}' is neither unplug nor replug")),
    };
    Ok(Event { hour: whole("hour", hour)?, drive: whole("drive", drive)?, kind })
}

/// Writes the first line.
///
/// # Errors
///
/// `out` does not take it.
pub fn begin_events(out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "{HEADER}")
}

/// Writes events.
///
/// # Errors
///
/// `out` does not take them.
pub fn write_events(out: &mut dyn Write, events: &EventsTable) -> std::io::Result<()> {
    for ((hour, drive), kind) in events.hour.iter().zip(&events.drive).zip(&events.kind) {
        let kind = match kind {
            EventKind::Unplug => "unplug",
            EventKind::Replug => "replug",
        };
        writeln!(out, "{hour},{drive},{kind}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_back_in_the_order_of_hours() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("events.csv");
        std::fs::write(&path, "kind,who,drive,hour\nreplug,x,7,9\n\nunplug,y,7,3\n").expect("room");
        let events = read_events(&path).expect("good lines");
        assert_eq!((&events.hour, &events.drive), (&vec![3, 9], &vec![7, 7]));
        assert_eq!(events.kind, [EventKind::Unplug, EventKind::Replug]);
        let mut text = Vec::new();
        begin_events(&mut text).and_then(|()| write_events(&mut text, &events)).expect("room");
        std::fs::write(&path, &text).expect("room");
        assert_eq!(read_events(&path).expect("own lines"), events);

        let error = |text: &str| {
            std::fs::write(&path, text).expect("room");
            read_events(&path).expect_err("a bad line").to_string()
        };
        assert!(error("hour,drive\n").contains("missing column `kind`"));
        assert!(error("hour,drive,kind\n1,2\n").contains("line 2: 2 fields instead of 3"));
        assert!(error("hour,drive,kind\n1,2,lost\n").contains("neither unplug nor replug"));
        assert!(error("hour,drive,kind\n1.5,2,unplug\n").contains("hour '1.5'"));
    }
}
