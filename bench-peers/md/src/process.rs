//! Programs: run to their end, or started and ended with us. Every wait has a limit.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};

/// Between two looks at what is waited for.
const LOOK: Duration = Duration::from_millis(20);

/// Lines of a program's log that an error quotes.
const QUOTED: usize = 6;

/// Set by a signal.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    wished: Arc<AtomicBool>,
}

impl Stop {
    /// Hears the terminal's interrupt and the wish to terminate.
    pub(crate) fn at_signals() -> Result<Self, String> {
        let wished = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&wished))
                .map_err(|error| format!("cannot hear of signals: {error}"))?;
        }
        Ok(Self { wished })
    }

    /// Waits until `test` is true, for `limit` at most.
    pub(crate) fn wait(
        &self,
        what: &str,
        limit: Duration,
        mut test: impl FnMut() -> Result<bool, String>,
    ) -> Result<(), String> {
        let end = Instant::now() + limit;
        loop {
            self.check()?;
            if test()? {
                return Ok(());
            }
            if Instant::now() >= end {
                return Err(format!("{what} took more than {} s", limit.as_secs()));
            }
            thread::sleep(LOOK);
        }
    }

    /// An error if the end is wished.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.wished.load(Ordering::Relaxed) {
            return Err("stopped before the end".to_owned());
        }
        Ok(())
    }
}

/// A program that runs until this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) child: Child,
    name: String,
    log: PathBuf,
}

impl Running {
    /// Starts it. What it says as an error goes into `log`.
    pub(crate) fn start(command: &mut Command, log: &Path, stdout: Stdio) -> Result<Self, String> {
        let name = name_of(command);
        let file = File::create(log).map_err(|error| format!("{}: {error}", log.display()))?;
        let child = command.stdin(Stdio::null()).stdout(stdout).stderr(file).spawn();
        let child = child.map_err(|error| format!("cannot start {name}: {error}"))?;
        Ok(Self { child, name, log: log.to_owned() })
    }

    /// An error if it has ended.
    pub(crate) fn check(&mut self) -> Result<(), String> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(format!("{} ended ({status}){}", self.name, tail(&self.log))),
            Err(error) => Err(format!("{}: {error}", self.name)),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to do.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Runs a program to its end, for `limit` at most, and returns what it printed.
pub(crate) fn output(
    command: &mut Command,
    limit: Duration,
    stop: &Stop,
) -> Result<String, String> {
    let name = name_of(command);
    let child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn();
    let mut child = child.map_err(|error| format!("cannot start {name}: {error}"))?;
    let mut stdout = child.stdout.take().expect("it was piped");
    let reader = thread::spawn(move || {
        let mut bytes = Vec::new();
        stdout.read_to_end(&mut bytes).map(|_| bytes)
    });
    let mut status = None;
    let waited = stop.wait(&name, limit, || {
        status = child.try_wait().map_err(|error| format!("{name}: {error}"))?;
        Ok(status.is_some())
    });
    if waited.is_err() {
        // It may have ended by itself just now.
        drop(child.kill());
        drop(child.wait());
    }
    waited?;
    let status = status.expect("the wait was for it");
    if !status.success() {
        return Err(format!("{name} failed ({status})"));
    }
    let bytes = reader.join().map_err(|_| format!("{name}: its output could not be taken"))?;
    let bytes = bytes.map_err(|error| format!("{name}: {error}"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The last lines of a log, to be appended to a sentence.
pub(crate) fn tail(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(QUOTED)..];
    last.iter().map(|line| format!("\n  {line}")).collect()
}

fn name_of(command: &Command) -> String {
    let path = Path::new(command.get_program());
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_at_its_limit() {
        let stop = Stop { wished: Arc::default() };
        let late = stop.wait("the guest", Duration::ZERO, || Ok(false));
        assert_eq!(late, Err("the guest took more than 0 s".to_owned()));
        assert_eq!(stop.wait("the guest", Duration::ZERO, || Ok(true)), Ok(()));
    }

    #[test]
    fn a_wish_to_stop_ends_every_wait() {
        let stop = Stop { wished: Arc::new(AtomicBool::new(true)) };
        let stopped = stop.wait("the guest", Duration::from_secs(600), || Ok(false));
        assert_eq!(stopped, Err("stopped before the end".to_owned()));
    }

    #[test]
    fn a_program_that_takes_too_long_is_ended() {
        let stop = Stop { wished: Arc::default() };
        let shell = |line| {
            let mut shell = Command::new("sh");
            shell.args(["-c", line]);
            shell
        };
        let limit = Duration::from_secs(60);
        assert_eq!(output(&mut shell("echo here"), limit, &stop), Ok("here\n".to_owned()));
        let failed = output(&mut shell("exit 3"), limit, &stop).expect_err("it failed");
        assert!(failed.starts_with("sh failed"), "{failed}");
        let late = output(&mut shell("exec sleep 600"), Duration::ZERO, &stop);
        assert_eq!(late, Err("sh took more than 0 s".to_owned()));
    }

    #[test]
    fn a_program_that_ended_is_told_with_its_last_words() {
        let folder = tempfile::tempdir().expect("there is a place for files");
        let log = folder.path().join("log");
        let mut command = Command::new("sh");
        command.args(["-c", "echo no such drive >&2; exit 3"]);
        let mut running = Running::start(&mut command, &log, Stdio::null()).expect("sh is there");
        let stop = Stop { wished: Arc::default() };
        let ended = stop.wait("sh", Duration::from_secs(60), || running.check().map(|()| false));
        let ended = ended.expect_err("it ended");
        assert!(ended.contains("sh ended") && ended.ends_with("\n  no such drive"), "{ended}");
    }
}
