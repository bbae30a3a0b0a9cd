//! `array status --watch`: look after look, until the watcher or the array has enough.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use levelhead_block::Durability;
use levelhead_units::Bytes;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::DRIVE;
use crate::support::{Ended, Shelf, command, connect, end, is_there, levelhead, random};

/// A watcher, and what it prints.
struct Watcher {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
}

impl Watcher {
    fn start(array: &str, options: &[&str]) -> Self {
        let watch = [&["array", "status", array, "--watch", "0.1"][..], options].concat();
        Self::spawn(command(&watch))
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.out.read_line(&mut line).unwrap() > 0, "it has ended");
        line
    }

    /// Reads on until there was a line that is so.
    fn read_until(&mut self, is_it: impl Fn(&str) -> bool) {
        while !is_it(&self.line()) {}
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The rest of what it prints, and how it ended.
    fn end(mut self) -> (String, Ended) {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        (rest, end(self.child, "the watcher"))
    }
}

#[test]
fn looks_follow_one_another_with_what_was_done_meanwhile_until_ctrl_c() {
    let shelf = Shelf::new();
    let serving = shelf.serve(&shelf.array(DRIVE));
    let client = connect(&shelf.path("nbd.sock"));
    let mut looks = Watcher::start(serving.control(), &["--json"]);
    let look = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    let first = look(&looks.line());
    client.write_at(Bytes::new(0), &random(1 << 20, 1), Durability::Durable).unwrap();
    let written = |look: &Value| look["drives"][0]["written_bytes"].as_u64().unwrap();
    let later = loop {
        let later = look(&looks.line());
        if written(&later) > written(&first) {
            break later;
        }
    };
    assert!(later["at_seconds"].as_f64() > first["at_seconds"].as_f64());
    let mut people = Watcher::start(serving.control(), &[]);
    people.read_until(|line| line == "a second: known from the next look on\n");
    people.read_until(|line| line.starts_with("a second: 0.0 requests"));
    people.read_until(|line| line.starts_with("5      present  "));
    for (watcher, sent) in [(looks, Signal::INT), (people, Signal::TERM)] {
        watcher.signal(sent);
        let (rest, ended) = watcher.end();
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
        assert!(!rest.contains('\x1b'), "{rest}");
    }
    serving.stop();
}

#[test]
fn watcher_ends_well_when_the_array_has_stopped_and_says_so_when_it_was_killed() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    // By a member, which outlives the array.
    let serving = shelf.serve(&drives);
    let mut watcher = Watcher::start(&drives[2], &[]);
    watcher.read_until(|line| line.starts_with("a second: 0.0"));
    serving.stop();
    let (_, ended) = watcher.end();
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), "levelhead: the array has stopped\n"));
    let serving = shelf.serve(&drives);
    let mut watcher = Watcher::start(&drives[2], &[]);
    watcher.read_until(|line| line.starts_with("a second: 0.0"));
    drop(serving); // It is killed.
    let (_, ended) = watcher.end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let none = levelhead(&["array", "status", &drives[2], "--watch"]);
    assert!(none.refusal().starts_with("no running array answers at "), "{none:?}");
}

#[test]
fn watcher_whose_output_is_not_read_any_more_ends() {
    let shelf = Shelf::new();
    let serving = shelf.serve(&shelf.array(DRIVE));
    let hour = ["array", "status", serving.control(), "--watch", "1h"];
    let mut watcher = Watcher::spawn(command(&hour));
    watcher.read_until(|line| line.starts_with("a second: "));
    let Watcher { child, out } = watcher;
    drop(out);
    assert_eq!(end(child, "a watcher that no one reads").code, Some(0));
    serving.stop();
}

#[test]
fn looks_on_a_terminal_take_each_others_place() {
    if !is_there("script") {
        return;
    }
    let shelf = Shelf::new();
    let serving = shelf.serve(&shelf.array(DRIVE));
    // util-linux's script(1) gives it a terminal.
    let program = env!("CARGO_BIN_EXE_levelhead");
    let watch = format!("{program} array status {} --watch 0.1", serving.control());
    let mut script = Command::new("script");
    script.args(["-qec", &watch, "/dev/null"]).stdin(Stdio::null());
    let mut watcher = Watcher::spawn(script);
    for _ in 0..3 {
        watcher.read_until(|line| line.starts_with("\x1b[H\x1b[2Jarray: "));
    }
    serving.stop();
    let (_, ended) = watcher.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn time_between_looks_is_checked() {
    for (text, problem) in [
        ("0", "'0' is not from 0.1 s to 1 h"),
        ("-1", "'-1'"),
        ("2h", "'2h' is not from 0.1 s to 1 h"),
        ("soon", "expected a number of seconds, got 'soon'"),
        ("nan", "expected a number of seconds, got 'nan'"),
    ] {
        let watch = ["array", "status", "d0.img", &format!("--watch={text}")];
        let refused = levelhead(&watch);
        assert!(refused.refusal().contains(problem), "{refused:?}");
    }
}
