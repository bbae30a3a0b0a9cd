//! What is done with events besides keeping them: a sentence for the log, and a program where one is wanted
//! ([`Hook`]).

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use levelhead_app::on_event::{Facts, Hook, Source};
use levelhead_app::{AppError, Show};
use levelhead_host::{NumberedEvent, OnEvent};

use super::event_json::{EventJson, Priority, severity};

/// Takes sentences.
pub type Tell = Box<dyn Fn(Priority, &str) + Send>;

/// Who is told until the end, if it has not come.
type Told = Arc<Mutex<Option<Tell>>>;

/// What an array calls with its events, and what is to be closed when it has ended.
pub(super) struct Listener {
    pub(super) on_event: OnEvent,
    pub(super) end: End,
}

/// See [`Listener`].
pub(super) struct End {
    hook: Option<Hook>,
    told: Told,
}

impl End {
    /// Waits until the program has ended for all events, for a few seconds at most. Nothing is told after that.
    pub(super) fn close(&self) {
        if let Some(hook) = &self.hook {
            hook.close();
        }
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn say(told: &Told, priority: Priority, sentence: &str) {
    if let Some(tell) = &*told.lock().unwrap_or_else(PoisonError::into_inner) {
        tell(priority, sentence);
    }
}

/// Has each event told, and given to `program`.
///
/// # Errors
///
/// The system has no thread left for the program.
pub(super) fn listen(program: Option<PathBuf>, tell: Tell) -> Result<Listener, AppError> {
    let told: Told = Arc::new(Mutex::new(Some(tell)));
    let start = |program| {
        let told = Arc::clone(&told);
        Hook::start(program, Box::new(move |sentence| say(&told, Priority::Warning, sentence)))
    };
    let hook = program.map(start).transpose()?;
    let (own, runs) = (Arc::clone(&told), hook.clone());
    let on_event = move |event: &NumberedEvent| {
        let json = EventJson::from(event);
        say(&own, Priority::from(event.event), &json.sentence());
        if let Some(hook) = &runs {
            hook.put(facts(event, &json));
        }
    };
    Ok(Listener { on_event: Box::new(on_event), end: End { hook, told } })
}

fn facts(event: &NumberedEvent, json: &EventJson) -> Facts {
    let all = serde_json::to_value(json).expect("numbers and names are JSON");
    Facts {
        event: json.event.clone(),
        severity: severity(event.event),
        at: json.time.clone(),
        sentence: json.sentence(),
        source: Source::Array(json.array.clone()),
        drive: all.get("drive").map(ToString::to_string),
        more: Vec::new(),
        json: json.json(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::mpsc::channel;

    use levelhead_array::membership::Why;
    use levelhead_array::superblock::Uuid;
    use levelhead_array::{ArrayEvent, Ending, Event};
    use levelhead_units::DriveIdx;

    use super::*;

    fn told(number: u64, event: Event) -> NumberedEvent {
        let (at, time) = (levelhead_units::Instant::ZERO, std::time::SystemTime::UNIX_EPOCH);
        let array = Uuid([0xab; 16]);
        NumberedEvent { array, number, at, time, event, lost: None, found: Vec::new() }
    }

    #[test]
    fn each_event_is_told_and_runs_the_program_once_with_its_facts() {
        let folder = tempfile::TempDir::new().unwrap();
        let (program, out) = (folder.path().join("note"), folder.path().join("out"));
        let facts = "$LEVELHEAD_EVENT $LEVELHEAD_SEVERITY $LEVELHEAD_ARRAY ${LEVELHEAD_DRIVE-none}";
        let facts = format!("{facts} $LEVELHEAD_AT $LEVELHEAD_SENTENCE");
        let script = format!("#!/bin/sh\nexec >> {}\necho \"{facts}\"\ncat\n", out.display());
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o700)).unwrap();
        let (sender, sentences) = channel();
        let tell: Tell =
            Box::new(move |priority, sentence| drop(sender.send((priority, sentence.to_owned()))));
        let Listener { on_event, end } = listen(Some(program), tell).unwrap();
        let drive = DriveIdx::new(3);
        on_event(&told(7, Event::Lost { drive, why: Why::Failed, is_copied: false }));
        on_event(&told(8, Event::Array(ArrayEvent::Stopped(Ending::Clean))));
        end.close();
        // The engine's own end may still hold it, and nothing more is told.
        on_event(&told(9, Event::Array(ArrayEvent::Stopped(Ending::Clean))));
        let sentences: Vec<(Priority, String)> = sentences.iter().collect();
        let expected = [
            (Priority::Warning, "drive 3 has failed".to_owned()),
            (Priority::Info, "the array was stopped cleanly".to_owned()),
        ];
        assert_eq!(sentences, expected);
        let text = std::fs::read_to_string(&out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let [lost, lost_json, stopped, stopped_json] = lines[..] else { panic!("{text}") };
        let (uuid, time) = (Uuid([0xab; 16]), "1970-01-01T00:00:00Z");
        assert_eq!(lost, format!("lost degraded {uuid} 3 {time} drive 3 has failed"));
        assert_eq!(
            stopped,
            format!("stopped planned {uuid} none {time} the array was stopped cleanly")
        );
        for (line, number, event) in [(lost_json, 7, "lost"), (stopped_json, 8, "stopped")] {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!((&value["number"], &value["event"]), (&number.into(), &event.into()));
            assert_eq!(value["array"], uuid.to_string());
        }
    }

    #[test]
    fn program_that_cannot_be_run_is_said_so_and_holds_nothing_up() {
        let (sender, sentences) = channel();
        let tell: Tell =
            Box::new(move |priority, sentence| drop(sender.send((priority, sentence.to_owned()))));
        let Listener { on_event, end } = listen(Some("/nowhere/note".into()), tell).unwrap();
        on_event(&told(1, Event::Array(ArrayEvent::ResyncDone)));
        end.close();
        let said: Vec<(Priority, String)> = sentences.iter().collect();
        assert_eq!(said[0], (Priority::Info, "all redundancy is valid".to_owned()));
        let (priority, sentence) = &said[1];
        assert!(sentence.starts_with("/nowhere/note: "), "{sentence}");
        assert_eq!(*priority, Priority::Warning);
    }
}
