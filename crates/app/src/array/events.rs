//! What happens to drives' standings: a sentence for people, and a program for whoever wants one.
//!
//! The program is run without a shell, once for each event, with one line of JSON on its standard input.
//! At most [`RUNNING_MAX`] run at a time; what comes faster waits, and past [`WAITING_MAX`] is dropped
//! with a sentence. One that does not end within [`PATIENCE`] is killed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use levelhead_array::EventKind;
use levelhead_host::NumberedEvent;

use super::messages::EventJson;

/// Programs that run at a time.
const RUNNING_MAX: usize = 4;

/// Events that wait for one to end.
const WAITING_MAX: usize = 256;

/// How long a program may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How much somebody who reads it should care, as a system's log has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Something is not as it should be: a drive is lost, slow, or sits out.
    Warning,
    /// All is well, and worth a look.
    Notice,
    /// All is well.
    Info,
}

impl From<EventKind> for Priority {
    fn from(kind: EventKind) -> Self {
        match kind {
            EventKind::Slow | EventKind::SatOut | EventKind::SatOutByHand | EventKind::Silent => {
                Self::Warning
            }
            EventKind::Heard | EventKind::AdmittedInNeed => Self::Notice,
            EventKind::Admitted | EventKind::AdmittedByHand => Self::Info,
        }
    }
}

/// Takes sentences.
pub type Tell = Box<dyn Fn(Priority, &str) + Send>;

/// Takes sentences of a drive's end, or the array's.
type TellLoss = Box<dyn Fn(&str) + Send>;

/// Takes events.
type Notify = Box<dyn Fn(&NumberedEvent) + Send>;

/// What an array calls so that each event is told, and given to `program`.
pub(super) fn listen(program: Option<PathBuf>, tell: Tell) -> (TellLoss, Notify) {
    let tell: Arc<Mutex<Tell>> = Arc::new(Mutex::new(tell));
    let say = |tell: &Arc<Mutex<Tell>>| -> Tell {
        let tell = Arc::clone(tell);
        Box::new(move |priority, sentence| {
            tell.lock().unwrap_or_else(PoisonError::into_inner)(priority, sentence);
        })
    };
    let queue = program.map(|program| {
        let (sender, events) = sync_channel::<EventJson>(WAITING_MAX);
        let events = Arc::new(Mutex::new(events));
        for _ in 0..RUNNING_MAX {
            let (events, program, say) = (Arc::clone(&events), program.clone(), say(&tell));
            // They end with the array, which lets go of its sender, and nobody waits for them.
            std::thread::spawn(move || run_all(&events, &program, &say));
        }
        sender
    });
    let (own, others) = (say(&tell), say(&tell));
    let notify = move |event: &NumberedEvent| {
        let (priority, event) = (Priority::from(event.event.kind), EventJson::from(event));
        own(priority, &event.sentence());
        match queue.as_ref().map(|queue| queue.try_send(event)) {
            None | Some(Ok(())) => {}
            Some(Err(TrySendError::Full(event) | TrySendError::Disconnected(event))) => {
                let number = event.number;
                let sentence =
                    format!("too many events wait for their program: number {number} is dropped");
                own(Priority::Warning, &sentence);
            }
        }
    };
    (Box::new(move |sentence| others(Priority::Warning, sentence)), Box::new(notify))
}

fn run_all(events: &Mutex<Receiver<EventJson>>, program: &Path, say: &Tell) {
    loop {
        let next = events.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(event) = next else { return };
        if let Err(error) = run(program, &event) {
            say(Priority::Warning, &format!("{}: {error}", program.display()));
        }
    }
}

fn run(program: &Path, event: &EventJson) -> Result<(), String> {
    let mut line = serde_json::to_string(event).map_err(|error| error.to_string())?;
    line.push('\n');
    let mut command = Command::new(program);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    if let Some(mut stdin) = child.stdin.take() {
        // A line fits a pipe, and a program may choose not to read it.
        drop(stdin.write_all(line.as_bytes()));
    }
    wait(&mut child)
}

fn wait(child: &mut Child) -> Result<(), String> {
    let end = Instant::now() + PATIENCE;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("it ended with {status}")),
            Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(20)),
            Ok(None) => {
                drop(child.kill());
                drop(child.wait());
                return Err(format!("it did not end within {} s", PATIENCE.as_secs()));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use levelhead_array::{DriveEvent, Figures};
    use levelhead_units::DriveIdx;

    use super::*;

    #[test]
    fn each_event_runs_the_program_once_with_its_numbers_on_standard_input() {
        let folder = tempfile::TempDir::new().unwrap();
        let (program, out) = (folder.path().join("note"), folder.path().join("out"));
        let script = format!("#!/bin/sh\ncat >> {}\n", out.display());
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o700)).unwrap();
        let (sender, sentences) = std::sync::mpsc::channel();
        let tell: Tell =
            Box::new(move |priority, sentence| drop(sender.send((priority, sentence.to_owned()))));
        let (tell, notify) = listen(Some(program), tell);
        let at = levelhead_units::Instant::ZERO;
        let drive = DriveIdx::new(3);
        let figures = Figures::default();
        let event = DriveEvent { at, drive, kind: EventKind::SatOut, figures };
        notify(&NumberedEvent { number: 7, event });
        let (priority, sentence) = sentences.recv().unwrap();
        assert_eq!(priority, Priority::Warning);
        assert!(sentence.starts_with("drive 3 sat-out at 0.0 s"));
        let end = Instant::now() + Duration::from_secs(30);
        let line = loop {
            let text = std::fs::read_to_string(&out).unwrap_or_default();
            if text.ends_with('\n') {
                break text;
            }
            assert!(Instant::now() < end, "the program was not run");
            std::thread::sleep(Duration::from_millis(10));
        };
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&value["event"], &value["drive"]), (&"sat-out".into(), &3.into()));
        assert_eq!(value["number"], 7);
        tell("drive 1 has failed");
        assert_eq!(sentences.recv().unwrap(), (Priority::Warning, "drive 1 has failed".to_owned()));
    }
}
