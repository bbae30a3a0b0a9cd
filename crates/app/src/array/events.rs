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

use levelhead_array::DriveEvent;

use super::control::EventJson;

/// Programs that run at a time.
const RUNNING_MAX: usize = 4;

/// Events that wait for one to end.
const WAITING_MAX: usize = 256;

/// How long a program may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Takes sentences.
type Tell = Box<dyn Fn(&str) + Send>;

/// Takes events.
type Notify = Box<dyn Fn(&DriveEvent) + Send>;

/// What an array calls so that each event is told, and given to `program`.
pub(super) fn listen(program: Option<PathBuf>, tell: Tell) -> (Tell, Notify) {
    let tell: Arc<Mutex<Tell>> = Arc::new(Mutex::new(tell));
    let say = |tell: &Arc<Mutex<Tell>>| -> Tell {
        let tell = Arc::clone(tell);
        Box::new(move |sentence| tell.lock().unwrap_or_else(PoisonError::into_inner)(sentence))
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
    let notify = move |event: &DriveEvent| {
        let event = EventJson::from(event);
        own(&event.sentence());
        match queue.as_ref().map(|queue| queue.try_send(event)) {
            None | Some(Ok(())) => {}
            Some(Err(TrySendError::Full(event) | TrySendError::Disconnected(event))) => {
                own(&format!("too many events wait for their program: {} is dropped", event.event));
            }
        }
    };
    (others, Box::new(notify))
}

fn run_all(events: &Mutex<Receiver<EventJson>>, program: &Path, say: &Tell) {
    loop {
        let next = events.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(event) = next else { return };
        if let Err(error) = run(program, &event) {
            say(&format!("{}: {error}", program.display()));
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

    use levelhead_array::{EventKind, Figures};
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
        let tell: Tell = Box::new(move |sentence| drop(sender.send(sentence.to_owned())));
        let (tell, notify) = listen(Some(program), tell);
        let at = levelhead_units::Instant::ZERO;
        let drive = DriveIdx::new(3);
        notify(&DriveEvent { at, drive, kind: EventKind::SatOut, figures: Figures::default() });
        assert!(sentences.recv().unwrap().starts_with("drive 3 sat-out at 0.0 s"));
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
        drop((tell, notify));
    }
}
