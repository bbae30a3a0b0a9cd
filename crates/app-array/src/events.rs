//! What is done with events besides keeping them: a sentence for the log, and a program where one is wanted.
//!
//! The program is run without a shell, once for each event, with one line of JSON on its standard input.
//! At most [`RUNNING_MAX`] run at a time; what comes faster waits, and past [`WAITING_MAX`] is dropped
//! with a sentence. One that does not end within [`PATIENCE`] is killed. An array that ends waits until the
//! program has ended for the last of them, for [`GRACE`] at most: then those that still run are killed, and
//! nothing is told any more.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use levelhead_host::{NumberedEvent, OnEvent};

use super::event_json::{EventJson, Priority};
use levelhead_app::{AppError, threads};

/// Programs that run at a time.
const RUNNING_MAX: usize = 4;

/// Events that wait for one to end.
const WAITING_MAX: usize = 256;

/// How long a program may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Takes sentences.
pub type Tell = Box<dyn Fn(Priority, &str) + Send>;

/// How long an array that has ended waits for its programs.
const GRACE: Duration = Duration::from_secs(5);

/// How long it waits for those that it kills then.
const DEATH: Duration = Duration::from_secs(1);

/// What an array calls with its events, and where those are whose programs have not ended.
pub(super) struct Listener {
    pub(super) on_event: OnEvent,
    pub(super) outbox: Arc<Outbox>,
}

/// Events for which the program has not ended, and who is told about them.
pub(super) struct Outbox {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Events for which the program has not ended.
    open: usize,
    /// Whether no program may run any more.
    is_closed: bool,
    /// Absent when nothing is to be told any more.
    tell: Option<Tell>,
}

impl Outbox {
    fn new(tell: Tell) -> Self {
        let state = State { open: 0, is_closed: false, tell: Some(tell) };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Waits until the program has ended for all of them, and not for long: then ends it. Nothing is told
    /// after that.
    pub(super) fn close(&self) {
        let is_open = |state: &mut State| state.open > 0;
        drop(self.changed.wait_timeout_while(self.lock(), GRACE, is_open));
        self.lock().is_closed = true;
        drop(self.changed.wait_timeout_while(self.lock(), DEATH, is_open));
        self.lock().tell = None;
    }

    fn put(&self) {
        self.lock().open += 1;
    }

    fn take(&self) {
        self.lock().open -= 1;
        self.changed.notify_all();
    }

    fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    fn say(&self, priority: Priority, sentence: &str) {
        if let Some(tell) = &self.lock().tell {
            tell(priority, sentence);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Has each event of the array of this UUID told, and given to `program`.
///
/// # Errors
///
/// The system has no thread left for the program.
pub(super) fn listen(
    program: Option<PathBuf>,
    uuid: &str,
    tell: Tell,
) -> Result<Listener, AppError> {
    let outbox = Arc::new(Outbox::new(tell));
    let run = |program: PathBuf| {
        let (sender, events) = sync_channel::<EventJson>(WAITING_MAX);
        let events = Arc::new(Mutex::new(events));
        for at in 0..RUNNING_MAX {
            let (events, program) =
                (Arc::clone(&events), Program { path: program.clone(), uuid: uuid.to_owned() });
            let outbox = Arc::clone(&outbox);
            // They end with the array, which lets go of its sender.
            let started = threads::start("event", move || run_all(&events, &outbox, &program));
            match started {
                Err(error) if at == 0 => return Err(error),
                // Fewer run at a time.
                Err(_) => break,
                Ok(_) => {}
            }
        }
        Ok(sender)
    };
    let queue = program.map(run).transpose()?;
    let filled = Arc::clone(&outbox);
    let on_event = move |event: &NumberedEvent| {
        let (priority, event) = (Priority::from(event.event), EventJson::from(event));
        filled.say(priority, &event.sentence());
        let Some(queue) = &queue else { return };
        filled.put();
        if let Err(TrySendError::Full(event) | TrySendError::Disconnected(event)) =
            queue.try_send(event)
        {
            filled.take();
            let number = event.number;
            let sentence =
                format!("too many events wait for their program: number {number} is dropped");
            filled.say(Priority::Warning, &sentence);
        }
    };
    Ok(Listener { on_event: Box::new(on_event), outbox })
}

/// What is run, and for which array.
struct Program {
    path: PathBuf,
    uuid: String,
}

fn run_all(events: &Mutex<Receiver<EventJson>>, outbox: &Outbox, program: &Program) {
    loop {
        let next = events.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(event) = next else { return };
        let ended = if outbox.is_closed() {
            Err(format!("it was not run for event {}: the array has ended", event.number))
        } else {
            begin(program, &event).and_then(|mut child| wait(&mut child, outbox))
        };
        if let Err(error) = ended {
            outbox.say(Priority::Warning, &format!("{}: {error}", program.path.display()));
        }
        outbox.take();
    }
}

/// Starts the program and gives it its event.
fn begin(program: &Program, event: &EventJson) -> Result<Child, String> {
    let mut line = serde_json::to_string(event).map_err(|error| error.to_string())?;
    line.push('\n');
    let mut command = Command::new(&program.path);
    command.env("LEVELHEAD_ARRAY", &program.uuid);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    if let Some(mut stdin) = child.stdin.take() {
        // A line fits a pipe, and a program may choose not to read it.
        drop(stdin.write_all(line.as_bytes()));
    }
    Ok(child)
}

fn wait(child: &mut Child, outbox: &Outbox) -> Result<(), String> {
    let end = Instant::now() + PATIENCE;
    let kill = |child: &mut Child| {
        drop(child.kill());
        drop(child.wait());
    };
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("it ended with {status}")),
            Ok(None) if outbox.is_closed() => {
                kill(child);
                let secs = GRACE.as_secs();
                return Err(format!("it did not end within {secs} s of the array, and was killed"));
            }
            Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(20)),
            Ok(None) => {
                kill(child);
                return Err(format!("it did not end within {} s", PATIENCE.as_secs()));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use levelhead_array::membership::Why;
    use levelhead_array::{ArrayEvent, Ending, Event};
    use levelhead_units::DriveIdx;

    use super::*;

    fn told(number: u64, event: Event) -> NumberedEvent {
        let (at, time) = (levelhead_units::Instant::ZERO, std::time::SystemTime::UNIX_EPOCH);
        NumberedEvent { number, at, time, event, lost: None }
    }

    #[test]
    fn each_event_runs_the_program_once_with_its_facts_on_standard_input() {
        let folder = tempfile::TempDir::new().unwrap();
        let (program, out) = (folder.path().join("note"), folder.path().join("out"));
        let script = format!("#!/bin/sh\nsed s/^/$LEVELHEAD_ARRAY/ >> {}\n", out.display());
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o700)).unwrap();
        let (sender, sentences) = std::sync::mpsc::channel();
        let tell: Tell =
            Box::new(move |priority, sentence| drop(sender.send((priority, sentence.to_owned()))));
        let Listener { on_event, outbox } = listen(Some(program), "a-b", tell).unwrap();
        on_event(&told(7, Event::Lost { drive: DriveIdx::new(3), why: Why::Failed }));
        on_event(&told(8, Event::Array(ArrayEvent::Stopped(Ending::Clean))));
        assert_eq!(sentences.recv().unwrap(), (Priority::Warning, "drive 3 has failed".to_owned()));
        let stopped = "the array was stopped cleanly".to_owned();
        assert_eq!(sentences.recv().unwrap(), (Priority::Info, stopped));
        drop(on_event);
        outbox.close();
        assert_eq!(outbox.lock().open, 0, "an event has not reached its program");
        let end = Instant::now() + Duration::from_secs(30);
        let mut lines = loop {
            let text = std::fs::read_to_string(&out).unwrap_or_default();
            if text.lines().count() == 2 && text.ends_with('\n') {
                break text.lines().map(str::to_owned).collect::<Vec<_>>();
            }
            assert!(Instant::now() < end, "the program was not run");
            std::thread::yield_now();
        };
        lines.sort_unstable();
        let values: Vec<serde_json::Value> =
            lines.iter().map(|line| serde_json::from_str(&line["a-b".len()..]).unwrap()).collect();
        assert_eq!((&values[0]["event"], &values[0]["drive"]), (&"lost".into(), &3.into()));
        assert_eq!((&values[0]["number"], &values[1]["number"]), (&7.into(), &8.into()));
        assert_eq!(values[1]["event"], "stopped");
    }

    #[test]
    fn program_that_cannot_be_run_is_said_so_and_holds_nothing_up() {
        let (sender, sentences) = std::sync::mpsc::channel();
        let tell: Tell =
            Box::new(move |priority, sentence| drop(sender.send((priority, sentence.to_owned()))));
        let Listener { on_event, outbox } = listen(Some("/nowhere/note".into()), "", tell).unwrap();
        on_event(&told(1, Event::Array(ArrayEvent::ResyncDone)));
        outbox.close();
        let said: Vec<(Priority, String)> = sentences.iter().take(2).collect();
        assert_eq!(said[0], (Priority::Info, "all redundancy is valid".to_owned()));
        let (priority, sentence) = &said[1];
        assert!(sentence.starts_with("/nowhere/note: "), "{sentence}");
        assert_eq!(*priority, Priority::Warning);
    }

    /// More events than programs run at a time: those that run are killed, the others are not run.
    #[test]
    fn programs_that_hang_are_killed_once_the_array_has_ended_and_then_nothing_more_is_told() {
        const EVENTS: u64 = 6;
        let folder = tempfile::TempDir::new().unwrap();
        let (program, out) = (folder.path().join("hang"), folder.path().join("out"));
        let script = format!("#!/bin/sh\necho $$ >> {}\nexec sleep 600\n", out.display());
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o700)).unwrap();
        let (sender, sentences) = std::sync::mpsc::channel();
        let tell: Tell = Box::new(move |_, sentence| drop(sender.send(sentence.to_owned())));
        let Listener { on_event, outbox } = listen(Some(program), "", tell).unwrap();
        for number in 1..=EVENTS {
            on_event(&told(number, Event::Array(ArrayEvent::ResyncDone)));
        }
        drop(on_event);
        outbox.close();
        assert_eq!(outbox.lock().open, 0, "a program was left behind");
        // The last one who tells is gone, so this ends.
        let said: Vec<String> = sentences.iter().collect();
        let count = |what: &str| said.iter().filter(|said| said.ends_with(what)).count();
        assert_eq!(count(", and was killed"), RUNNING_MAX, "{said:?}");
        assert_eq!(count(": the array has ended"), EVENTS as usize - RUNNING_MAX, "{said:?}");
        let pids = std::fs::read_to_string(&out).unwrap();
        assert_eq!(pids.lines().count(), RUNNING_MAX);
        for pid in pids.lines() {
            assert!(!std::path::Path::new("/proc").join(pid).exists(), "{pid} runs on");
        }
    }
}
