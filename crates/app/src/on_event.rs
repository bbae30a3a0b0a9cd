//! The program of `--on-event`, of `array serve` and of `watch`: what it is given, and how it is run. `docs/control.md` has it
//! for users.
//!
//! - OE1. One runs at a time, in the order of the events, and for [`LIMITS`] at most. At most [`WAITING_MAX`] events wait for it;
//!   each one that is dropped is reported.
//! - OE2. Nothing waits for it without a limit, even if it cannot be killed: not who puts an event, nor the end.
//! - OE3. Nothing is reported after the end.

mod check;

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process_group};

pub use check::check;

use crate::{AppError, threads};

/// Events that wait for the program to end.
const WAITING_MAX: usize = 256;

/// Between two looks at a program that runs.
const LOOK: Duration = Duration::from_millis(20);

/// How much an event matters to those who are alerted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// An operator asked for it, and it went as asked.
    Planned,
    /// Routine.
    Info,
    /// A problem is over, or is being repaired.
    Recovered,
    /// Data can be read and written, and something is wrong: somebody should look at it today.
    Degraded,
    /// Data is lost or cannot be read, or may not be safe: somebody should look at it now.
    Failed,
}

impl Severity {
    /// Its name in programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Info => "info",
            Self::Recovered => "recovered",
            Self::Degraded => "degraded",
            Self::Failed => "failed",
        }
    }
}

/// Where an event happened.
#[derive(Clone, Debug)]
pub enum Source {
    /// In the array of this UUID.
    Array(String),
    /// In the group of drives of this name.
    Group(String),
}

/// What the program is given of an event.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The name of what happened.
    pub event: String,
    /// How much it matters.
    pub severity: Severity,
    /// When, as [`utc`](crate::utc) writes it.
    pub at: String,
    /// What happened, for people.
    pub sentence: String,
    /// Where.
    pub source: Source,
    /// The drive, if it is about one.
    pub drive: Option<String>,
    /// Further variables of its environment.
    pub more: Vec<(&'static str, String)>,
    /// Everything, as a line of JSON, without its end.
    pub json: String,
}

impl Facts {
    /// Its variables: also those of other events are set or taken away, so that none is inherited.
    fn environment(&self) -> impl Iterator<Item = (&'static str, Option<&str>)> {
        let (array, group) = match &self.source {
            Source::Array(uuid) => (Some(&**uuid), None),
            Source::Group(name) => (None, Some(&**name)),
        };
        let common = [
            ("LEVELHEAD_EVENT", Some(&*self.event)),
            ("LEVELHEAD_SEVERITY", Some(self.severity.name())),
            ("LEVELHEAD_AT", Some(&*self.at)),
            ("LEVELHEAD_SENTENCE", Some(&*self.sentence)),
            ("LEVELHEAD_ARRAY", array),
            ("LEVELHEAD_GROUP", group),
            ("LEVELHEAD_DRIVE", self.drive.as_deref()),
        ];
        common.into_iter().chain(self.more.iter().map(|(name, value)| (*name, Some(&**value))))
    }
}

/// How long is waited for a program.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// It may run so long.
    run: Duration,
    /// The end waits so long for all events.
    grace: Duration,
    /// And then so long for the one that it kills.
    death: Duration,
}

const LIMITS: Limits = Limits {
    run: Duration::from_secs(60),
    grace: Duration::from_secs(5),
    death: Duration::from_secs(1),
};

/// Takes a sentence about a program.
pub type Tell = Box<dyn Fn(&str) + Send>;

/// A program, and the events that wait for it. Its clones are the same one.
#[derive(Clone)]
pub struct Hook(Arc<Shared>);

struct Shared {
    program: PathBuf,
    limits: Limits,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    waiting: VecDeque<Facts>,
    is_running: bool,
    /// Whether no program may run any more.
    is_closed: bool,
    /// Absent when nothing is to be reported any more.
    tell: Option<Tell>,
}

impl Hook {
    /// Runs the program for each event that is put from now on. `tell` takes what goes wrong with it.
    ///
    /// # Errors
    ///
    /// The system has no thread left.
    pub fn start(program: PathBuf, tell: Tell) -> Result<Self, AppError> {
        Self::start_within(LIMITS, program, tell)
    }

    fn start_within(limits: Limits, program: PathBuf, tell: Tell) -> Result<Self, AppError> {
        let (waiting, tell) = (VecDeque::new(), Some(tell));
        let state = State { waiting, is_running: false, is_closed: false, tell };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        let shared = Arc::new(Shared { program, limits, state, changed });
        let own = Arc::clone(&shared);
        threads::start("event", move || own.run_all())?;
        Ok(Self(shared))
    }

    /// One more event. Never waits.
    pub fn put(&self, facts: Facts) {
        let mut state = self.0.lock();
        if state.is_closed {
            return;
        }
        if state.waiting.len() == WAITING_MAX {
            let dropped = &facts.sentence;
            let why =
                format!("{WAITING_MAX} events wait for it, and this one is dropped: {dropped}");
            return self.0.say(&state, &why);
        }
        state.waiting.push_back(facts);
        self.0.changed.notify_all();
    }

    /// Waits until the program has ended for all events, for a few seconds at most: then kills it. Nothing is run or reported
    /// after that.
    pub fn close(&self) {
        let Shared { limits, changed, .. } = &*self.0;
        let is_open = |state: &mut State| state.is_running || !state.waiting.is_empty();
        drop(changed.wait_timeout_while(self.0.lock(), limits.grace, is_open));
        let mut state = self.0.lock();
        state.is_closed = true;
        match std::mem::take(&mut state.waiting).len() {
            0 => {}
            1 => self.0.say(&state, "not run for the last event: there was no time left"),
            count => {
                let why = format!("not run for the last {count} events: there was no time left");
                self.0.say(&state, &why);
            }
        }
        drop(state);
        changed.notify_all();
        drop(changed.wait_timeout_while(self.0.lock(), limits.death, is_open));
        self.0.lock().tell = None;
    }
}

impl Shared {
    fn run_all(&self) {
        while let Some(facts) = self.next() {
            let ended = self.begin(&facts).and_then(|mut child| self.wait(&mut child));
            let mut state = self.lock();
            if let Err(why) = ended {
                self.say(&state, &why);
            }
            state.is_running = false;
            self.changed.notify_all();
        }
    }

    /// The next event; nothing once there are no more.
    fn next(&self) -> Option<Facts> {
        let is_idle = |state: &mut State| !state.is_closed && state.waiting.is_empty();
        let woken = self.changed.wait_while(self.lock(), is_idle);
        let mut state = woken.unwrap_or_else(PoisonError::into_inner);
        let facts = state.waiting.pop_front()?;
        state.is_running = true;
        Some(facts)
    }

    fn begin(&self, facts: &Facts) -> Result<Child, String> {
        let input = in_memory(&facts.json).map_err(|error| error.to_string())?;
        let mut command = Command::new(&self.program);
        // In a group of its own: what ends the server with a key does not end it, and what it has started ends with it.
        command.stdin(input).stdout(Stdio::null()).process_group(0);
        for (name, value) in facts.environment() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.spawn().map_err(|error| error.to_string())
    }

    fn wait(&self, child: &mut Child) -> Result<(), String> {
        let end = Instant::now() + self.limits.run;
        loop {
            let is_over = Instant::now() >= end;
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(format!("it ended with {status}")),
                Ok(None) if is_over || self.lock().is_closed => {
                    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
                    // It may have ended meanwhile.
                    let _ = group.map(|group| kill_process_group(group, Signal::KILL));
                    drop(child.kill());
                    drop(child.wait());
                    let why = match is_over {
                        true => format!("within {} s", self.limits.run.as_secs()),
                        false => "in the time that was left".to_owned(),
                    };
                    return Err(format!("it did not end {why}, and was killed"));
                }
                Ok(None) => std::thread::sleep(LOOK),
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    fn say(&self, state: &State, why: &str) {
        if let Some(tell) = &state.tell {
            tell(&format!("{}: {why}", self.program.display()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file in memory with this line: unlike a pipe it is never full, whether or not the program reads it.
fn in_memory(line: &str) -> std::io::Result<File> {
    let mut file = File::from(memfd_create("event", MemfdFlags::CLOEXEC)?);
    file.write_all(format!("{line}\n").as_bytes())?;
    file.rewind()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::mpsc::{Receiver, channel};

    use tempfile::TempDir;

    use super::*;

    /// A program, what it has written, and what is reported of it.
    struct Bench {
        folder: TempDir,
        program: PathBuf,
        told: Receiver<String>,
        hook: Hook,
    }

    impl Bench {
        /// `script` writes to `out`.
        fn new(limits: Limits, script: &str) -> Self {
            let folder = TempDir::new().unwrap();
            let program = folder.path().join("note");
            let out = folder.path().join("out");
            fs::write(&program, format!("#!/bin/sh\nexec >> {}\n{script}\n", out.display()))
                .unwrap();
            fs::set_permissions(&program, PermissionsExt::from_mode(0o700)).unwrap();
            let (sender, told) = channel();
            let tell: Tell = Box::new(move |sentence| drop(sender.send(sentence.to_owned())));
            let hook = Hook::start_within(limits, program.clone(), tell).unwrap();
            Self { folder, program, told, hook }
        }

        fn wrote(&self) -> Vec<String> {
            let text = fs::read_to_string(self.folder.path().join("out")).unwrap_or_default();
            text.lines().map(str::to_owned).collect()
        }

        /// What was reported, without the program's name.
        fn told(&self) -> Vec<String> {
            let name = format!("{}: ", self.program.display());
            self.told.try_iter().map(|told| told.strip_prefix(&name).unwrap().to_owned()).collect()
        }

        fn close(&self) -> Duration {
            let begun = Instant::now();
            self.hook.close();
            begun.elapsed()
        }
    }

    fn facts(number: usize, source: Source) -> Facts {
        Facts {
            event: "slow".to_owned(),
            severity: Severity::Degraded,
            at: "2026-11-26T17:26:03Z".to_owned(),
            sentence: format!("number {number}"),
            source,
            drive: None,
            more: Vec::new(),
            json: format!("{{\"number\": {number}}}"),
        }
    }

    fn array(number: usize) -> Facts {
        facts(number, Source::Array("a-b".to_owned()))
    }

    #[test]
    fn facts_are_in_the_environment_and_on_standard_input_and_none_is_inherited() {
        let names = "$LEVELHEAD_EVENT $LEVELHEAD_SEVERITY $LEVELHEAD_AT $LEVELHEAD_SENTENCE";
        let rest = "${LEVELHEAD_ARRAY-none} ${LEVELHEAD_GROUP-none} ${LEVELHEAD_DRIVE-none}";
        let bench = Bench::new(LIMITS, &format!("echo \"{names} {rest} $LEVELHEAD_DEVICE\"\ncat"));
        let group = facts(2, Source::Group("md0".to_owned()));
        let more = vec![("LEVELHEAD_DEVICE", "sda".to_owned())];
        bench.hook.put(array(1));
        bench.hook.put(Facts { drive: Some("wwn-1".to_owned()), more, ..group });
        bench.close();
        let common = "slow degraded 2026-11-26T17:26:03Z number";
        let expected = [
            format!("{common} 1 a-b none none "),
            "{\"number\": 1}".to_owned(),
            format!("{common} 2 none md0 wwn-1 sda"),
            "{\"number\": 2}".to_owned(),
        ];
        assert_eq!(bench.wrote(), expected);
        assert!(bench.told().is_empty());
    }

    /// The first takes longest.
    #[test]
    fn programs_run_one_at_a_time_and_in_order() {
        let script =
            "read line\necho begin $line\ncase $line in *0}) sleep 0.3;; esac\necho end $line";
        let bench = Bench::new(LIMITS, script);
        (0..5).for_each(|number| bench.hook.put(array(number)));
        bench.close();
        let each = |number| ["begin", "end"].map(|what| format!("{what} {{\"number\": {number}}}"));
        assert_eq!(bench.wrote(), (0..5).flat_map(each).collect::<Vec<_>>());
    }

    /// With what it has started; and what a key sends to the server's group does not reach it.
    #[test]
    fn program_that_hangs_is_killed_and_the_next_one_runs() {
        let limits = Limits { run: Duration::from_millis(1_500), ..LIMITS };
        let group = "cut -d ' ' -f 5 /proc/$$/stat";
        let hang = "sleep 600 & echo $!; wait";
        let script = format!("echo $$\n{group}\nread line\ncase $line in *0}}) {hang};; esac");
        let bench = Bench::new(limits, &script);
        (0..2).for_each(|number| bench.hook.put(array(number)));
        bench.close();
        let wrote = bench.wrote();
        let [own, group, started, next, next_group] = &wrote[..] else { panic!("{wrote:?}") };
        assert_eq!((group, next_group), (own, next), "each has a group of its own");
        let is_running = |pid: &String| {
            let status = fs::read_to_string(format!("/proc/{pid}/status"));
            status.is_ok_and(|status| !status.contains("State:\tZ"))
        };
        assert!(!is_running(own) && !is_running(started), "{wrote:?}");
        assert_eq!(bench.told(), ["it did not end within 1 s, and was killed"]);
    }

    /// One runs, as many wait as may, and one is too many.
    #[test]
    fn what_has_no_place_to_wait_is_dropped_and_reported_and_the_end_waits_for_none() {
        let limits = Limits { grace: Duration::from_secs(1), ..LIMITS };
        let bench = Bench::new(limits, "echo begun\nexec sleep 600");
        bench.hook.put(array(0));
        let end = Instant::now() + Duration::from_secs(60);
        while bench.wrote().is_empty() {
            assert!(Instant::now() < end, "it was not run");
            std::thread::sleep(LOOK);
        }
        (1..=WAITING_MAX + 1).for_each(|number| bench.hook.put(array(number)));
        let dropped =
            format!("{WAITING_MAX} events wait for it, and this one is dropped: number 257");
        assert_eq!(bench.told(), [dropped]);
        assert!(bench.close() < Duration::from_secs(3));
        let expected = [
            format!("not run for the last {WAITING_MAX} events: there was no time left"),
            "it did not end in the time that was left, and was killed".to_owned(),
        ];
        assert_eq!(bench.told(), expected);
        bench.hook.put(array(999));
        assert!(bench.told.recv().is_err(), "nobody is left who could tell anything");
        assert_eq!(bench.wrote().len(), 1);
    }

    #[test]
    fn program_that_fails_or_is_not_there_is_reported_and_holds_nothing_up() {
        let bench = Bench::new(LIMITS, "exit 3");
        bench.hook.put(array(0));
        let failed = bench.told.recv().unwrap();
        assert!(failed.ends_with("it ended with exit status: 3"), "{failed}");
        fs::remove_file(&bench.program).unwrap();
        bench.hook.put(array(1));
        let missing = bench.told.recv().unwrap();
        assert!(missing.contains("No such file"), "{missing}");
        bench.close();
    }
}
