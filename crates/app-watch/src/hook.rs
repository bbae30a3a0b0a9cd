//! The program that is run for each event, with its facts in the environment.
//!
//! - PR1. One runs at a time, for [`PATIENCE`] at most; events wait for it in their order, [`WAITING_MAX`] at most.
//! - PR2. Nothing waits for it, also not when it cannot be killed.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use levelhead_fleet::watch::{DriveVerdict, Event};

/// How long a program may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Events that wait for one to end.
const WAITING_MAX: usize = 256;

/// See the module.
pub(super) struct Programs {
    program: Option<PathBuf>,
    waiting: VecDeque<Event>,
    running: Option<Running>,
}

struct Running {
    child: Child,
    deadline: Instant,
    is_killed: bool,
}

/// What has become of a program.
enum Look {
    Running,
    Ended(Option<String>),
    Killed,
}

impl Running {
    fn look(&mut self, now: Instant) -> Look {
        match self.child.try_wait() {
            Ok(Some(_)) if self.is_killed => Look::Ended(None),
            Ok(Some(status)) => Look::Ended(wrong_with(status)),
            Ok(None) if now < self.deadline || self.is_killed => Look::Running,
            Ok(None) => {
                self.is_killed = true;
                // One that hangs in the kernel stays until it is let go.
                drop(self.child.kill());
                Look::Killed
            }
            Err(error) => Look::Ended(Some(error.to_string())),
        }
    }
}

fn wrong_with(status: ExitStatus) -> Option<String> {
    (!status.success()).then(|| format!("it ended with {status}"))
}

impl Programs {
    pub(super) fn new(program: Option<PathBuf>) -> Self {
        Self { program, waiting: VecDeque::new(), running: None }
    }

    /// Whether one is to be looked at, or begun, soon.
    pub(super) fn is_waiting(&self) -> bool {
        self.running.as_ref().map_or(!self.waiting.is_empty(), |it| !it.is_killed)
    }

    #[cfg(test)]
    pub(super) fn running_is_killed(&self) -> bool {
        self.running.as_ref().is_some_and(|it| it.is_killed)
    }

    /// One more event, if its verdict is another one than before; the sentence is about one that is dropped.
    pub(super) fn put(&mut self, event: &Event) -> Option<String> {
        self.program.as_ref().filter(|_| event.is_of_verdict())?;
        if self.waiting.len() == WAITING_MAX {
            let DriveVerdict { group, device, .. } = &event.now;
            return Some(format!(
                "{WAITING_MAX} events wait for their program: that of {group} {device} is dropped"
            ));
        }
        self.waiting.push_back(event.clone());
        None
    }

    /// Ends what has run for too long, and begins the next. Never waits. The sentence is about what went wrong.
    pub(super) fn advance(&mut self, now: Instant) -> Option<String> {
        let program = self.program.clone()?;
        let said = |why: String| format!("{}: {why}", program.display());
        match self.running.as_mut().map(|it| it.look(now)) {
            Some(Look::Running) => return None,
            Some(Look::Killed) => {
                return Some(said(format!("it did not end within {} s", PATIENCE.as_secs())));
            }
            Some(Look::Ended(why)) => {
                self.running = None;
                if let Some(why) = why {
                    return Some(said(why));
                }
            }
            None => {}
        }
        let event = self.waiting.pop_front()?;
        let mut command = Command::new(&program);
        command.stdin(Stdio::null()).stdout(Stdio::null()).envs(facts(&event));
        match command.spawn() {
            Ok(child) => {
                let deadline = now + PATIENCE;
                self.running = Some(Running { child, deadline, is_killed: false });
                None
            }
            Err(error) => Some(said(error.to_string())),
        }
    }
}

/// What the program finds in its environment.
fn facts(event: &Event) -> [(&'static str, String); 8] {
    let verdict = &event.now;
    let ratio = verdict.comparison.map(|it| format!("{:.3}", it.ratio));
    [
        ("LEVELHEAD_AT", event.at.to_string()),
        ("LEVELHEAD_GROUP", verdict.group.clone()),
        ("LEVELHEAD_DRIVE", verdict.key.clone()),
        ("LEVELHEAD_DEVICE", verdict.device.clone()),
        ("LEVELHEAD_STATE", verdict.state.name().to_owned()),
        ("LEVELHEAD_BEFORE", event.before.name().to_owned()),
        ("LEVELHEAD_RATIO", ratio.unwrap_or_default()),
        ("LEVELHEAD_TEXT", verdict.to_string()),
    ]
}
