//! A watch over a made-up root: run to its end, or running until it is stopped.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::root::Root;
use super::{Ended, PATIENCE, command, run};

/// `levelhead watch` over a root, to its end.
pub(crate) fn watch(root: &Root, options: &[&str]) -> Ended {
    run(watch_command(root, options))
}

pub(crate) fn watch_command(root: &Root, options: &[&str]) -> Command {
    let mut command = command(&[&["watch", "--root", root.text()][..], options].concat());
    command.env("PATH", root.programs()).env_remove("STATE_DIRECTORY");
    command
}

/// A watch that runs. Killed when dropped.
pub(crate) struct Running {
    child: Option<Child>,
    lines: Receiver<Value>,
    /// What it said when it began.
    begun: Value,
}

impl Running {
    /// Starts it and waits until it says that it watches.
    pub(crate) fn start(root: &Root, options: &[&str]) -> Self {
        Self::spawn(watch_command(root, &[options, &["--json"]].concat()))
    }

    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        let mut running = Self { child: Some(child), lines, begun: Value::Null };
        running.begun = running.next();
        assert_eq!(running.begun["kind"], "watching", "{}", running.begun);
        running
    }

    pub(crate) fn next(&self) -> Value {
        self.lines.recv_timeout(PATIENCE).expect("it says something")
    }

    /// The next line that is so.
    pub(crate) fn until(&self, is_so: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let line = self.next();
            if is_so(&line) {
                return line;
            }
            assert!(Instant::now() < end, "{line}");
        }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(self.child.as_ref().expect("it is taken at the end only"))
    }

    /// One scrape, and how long that took.
    pub(crate) fn scrape(&self) -> (String, Duration) {
        let address = self.begun["metrics"].as_str().unwrap().strip_prefix("http://").unwrap();
        let begun = Instant::now();
        let mut stream = TcpStream::connect(address.strip_suffix("/metrics").unwrap()).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: application/openmetrics-text\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
        let body = text.split_once("\r\n\r\n").unwrap().1.to_owned();
        (body, begun.elapsed())
    }

    /// Stops it in good order; how long that took.
    pub(crate) fn stop(mut self) -> Duration {
        let mut child = self.child.take().unwrap();
        let begun = Instant::now();
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(0));
        begun.elapsed()
    }

    /// Stops the program under `strace`, which ends with it.
    pub(crate) fn stop_traced(mut self, strace: Pid) {
        let folder = format!("/proc/{0}/task/{0}/children", strace.as_raw_nonzero());
        let children = fs::read_to_string(folder).unwrap();
        let pid = children.split_whitespace().next().unwrap().parse().unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
        let mut child = self.child.take().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// The value of a metric's sample whose line begins so.
pub(crate) fn value(text: &str, begin: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with(begin))?;
    line.rsplit_once(' ')?.1.parse().ok()
}
