//! What is heard of an array and its drives: by those who ask, those who follow, and the journal.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::DRIVE;
use crate::support::{Ended, PATIENCE, Serving, Shelf, command, end, levelhead, refs, wait_until};

/// `levelhead array events --follow --json` at work.
pub(crate) struct Follower {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    reader: JoinHandle<()>,
}

impl Follower {
    pub(crate) fn start(array: &str) -> Self {
        let mut follow = command(&["array", "events", array, "--follow", "--json"]);
        let mut child = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = Arc::clone(&lines);
        let reader = thread::spawn(move || {
            out.lines().for_each(|line| heard.lock().unwrap().push(line.unwrap()));
        });
        Self { child, lines, reader }
    }

    /// What it has printed so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
    }

    /// Waits for its end: all that it printed, and what it said.
    pub(crate) fn end(self) -> (Vec<String>, Ended) {
        let ended = end(self.child, "the follower");
        self.reader.join().unwrap();
        let lines = self.lines.lock().unwrap().clone();
        (lines, ended)
    }
}

/// What happened and to which drive, of each line that is about one.
pub(crate) fn happened(lines: &[String]) -> Vec<(String, u64)> {
    let parse = |line: &String| -> Value { serde_json::from_str(line).unwrap() };
    let event = |value: Value| {
        let drive = value.get("drive")?.as_u64().unwrap();
        Some((value["event"].as_str().unwrap().to_owned(), drive))
    };
    lines.iter().map(parse).filter_map(event).collect()
}

/// What happened, of each line.
fn names(lines: &[String]) -> Vec<String> {
    let name = |line: &String| {
        let value: Value = serde_json::from_str(line).unwrap();
        value["event"].as_str().unwrap().to_owned()
    };
    lines.iter().map(name).collect()
}

fn by_hand(serving: &Serving, verb: &str, drive: &str) {
    levelhead(&["array", verb, serving.control(), drive]).good();
}

/// A client at the control socket.
struct Asking(BufReader<UnixStream>);

impl Asking {
    fn new(serving: &Serving) -> Self {
        let stream = UnixStream::connect(serving.control()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(BufReader::new(stream))
    }

    fn say(&mut self, question: &Value) {
        self.0.get_mut().write_all(format!("{question}\n").as_bytes()).unwrap();
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn ask(&mut self, question: &Value) -> Value {
        self.say(question);
        self.hear()
    }

    /// The numbers of the events in an answer, and how many were missed.
    #[track_caller]
    fn numbers(answer: &Value) -> (Vec<u64>, u64) {
        let answer = &answer["ok"];
        let events = answer["events"].as_array().unwrap_or_else(|| panic!("{answer}"));
        let numbers = events.iter().map(|event| event["number"].as_u64().unwrap());
        (numbers.collect(), answer["missed"].as_u64().unwrap())
    }
}

#[test]
fn follower_prints_each_event_once_until_the_array_stops_or_ctrl_c() {
    let shelf = Shelf::new();
    let serving = shelf.serve(&shelf.array(DRIVE));
    let events = |args: &[&str]| {
        levelhead(&[&["array", "events", serving.control()][..], args].concat()).good()
    };
    let said = events(&[]);
    assert!(said.ends_with("Z the array is served with all its drives\n"), "{said}");
    by_hand(&serving, "sit-out", "3");
    let (one, other) = (Follower::start(serving.control()), Follower::start(serving.control()));
    let heard = |follower: &Follower, count: usize| {
        wait_until("the follower has heard of it", || follower.lines().len() == count);
    };
    heard(&one, 2);
    by_hand(&serving, "admit", "3");
    by_hand(&serving, "sit-out", "0");
    heard(&one, 4);
    heard(&other, 4);
    other.interrupt();
    let (lines, ended) = other.end();
    assert_eq!(
        (ended.code, ended.err.as_str()),
        (Some(0), "levelhead: event 4 was the last one so far\n")
    );
    let text: Vec<String> = events(&["--json"]).lines().map(str::to_owned).collect();
    assert_eq!(lines, text);
    by_hand(&serving, "admit", "0");
    // Stopped at once: what happened last is not lost.
    serving.stop();
    let (lines, ended) = one.end();
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), "levelhead: the array has stopped\n"));
    assert_eq!(lines[..4], text);
    assert_eq!((&*names(&lines)[0], &*names(&lines)[5], lines.len()), ("assembled", "stopped", 6));
    let expected = [
        ("sat-out-by-hand", 3),
        ("admitted-by-hand", 3),
        ("sat-out-by-hand", 0),
        ("admitted-by-hand", 0),
    ];
    assert_eq!(happened(&lines), expected.map(|(event, drive)| (event.to_owned(), drive)));
}

#[test]
fn follower_of_an_array_that_is_killed_does_not_say_that_it_stopped() {
    let shelf = Shelf::new();
    let serving = shelf.serve(&shelf.array(DRIVE));
    by_hand(&serving, "sit-out", "3");
    let follower = Follower::start(serving.control());
    wait_until("the follower has heard of it", || follower.lines().len() == 2);
    serving.signal(Signal::KILL);
    let (_, ended) = follower.end();
    assert_eq!(ended.code, Some(1));
    let sentence = ": the connection broke; what came after event 2 is not known\n";
    assert!(ended.err.ends_with(sentence), "{ended:?}");
}

#[test]
fn follower_whose_reader_has_gone_ends_without_another_event() {
    let shelf = Shelf::new();
    let serving = shelf.serve(&shelf.array(DRIVE));
    by_hand(&serving, "sit-out", "3");
    let mut follow = command(&["array", "events", serving.control(), "--follow"]);
    let mut child = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for sentence in
        ["Z the array is served with all its drives", "Z drive 3 avoided by an operator"]
    {
        let line = lines.next().unwrap().unwrap();
        assert!(line.starts_with("20") && line.contains(sentence), "{line}");
    }
    drop(lines);
    let ended = end(child, "the follower");
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    serving.stop();
}

#[test]
fn events_that_had_to_make_room_are_counted() {
    let shelf = Shelf::new();
    let serving = shelf.serve(&shelf.array(DRIVE));
    let mut asking = Asking::new(&serving);
    for _ in 0..40 {
        for verb in ["sit-out", "admit"] {
            assert_eq!(asking.ask(&json!({ "verb": verb, "drive": 4 })), json!({ "ok": null }));
        }
    }
    let mut since =
        |after: u64| Asking::numbers(&asking.ask(&json!({ "verb": "events", "after": after })));
    assert_eq!(since(0), ((18..=81).collect(), 17));
    assert_eq!(since(10), ((18..=81).collect(), 7));
    assert_eq!(since(17), ((18..=81).collect(), 0));
    assert_eq!(since(79), (vec![80, 81], 0));
    assert_eq!(since(81), (vec![], 0));
    let refused = asking.ask(&json!({ "verb": "events", "after": 82 }));
    let sentence = "the last event is number 81, there is none after 82";
    assert_eq!(refused, json!({ "error": sentence }));
    let ended = levelhead(&["array", "events", serving.control(), "--json"]);
    assert_eq!(ended.err, "levelhead: events 1 to 17 are missing: the array keeps the last 64\n");
    assert_eq!(ended.good().lines().count(), 64);
    serving.stop();
}

#[test]
fn those_who_follow_leave_room_for_those_who_ask() {
    let shelf = Shelf::new();
    let serving = shelf.serve(&shelf.array(DRIVE));
    let follow = json!({ "verb": "events", "after": 1, "follow": true });
    let begin = || {
        let mut asking = Asking::new(&serving);
        let first = asking.ask(&follow);
        (asking, first)
    };
    let nothing = json!({ "ok": { "events": [], "missed": 0, "ended": false } });
    let mut following: Vec<Asking> = (0..12)
        .map(|_| {
            let (asking, first) = begin();
            assert_eq!(first, nothing);
            asking
        })
        .collect();
    let refused = json!({ "error": "12 clients follow the events already, try again" });
    assert_eq!(begin().1, refused);
    // Everybody else is served meanwhile, and all of them hear of it.
    by_hand(&serving, "sit-out", "1");
    for asking in &mut following {
        // Unless it came late there is an empty line first, which says that the server is there.
        let line = std::iter::repeat_with(|| asking.hear()).find(|line| *line != nothing);
        assert_eq!(Asking::numbers(&line.unwrap()), (vec![2], 0));
    }
    let left = following.split_off(6);
    drop(left);
    by_hand(&serving, "admit", "1");
    wait_until("there is room again", || begin().1 != refused);
    serving.stop();
    for mut asking in following {
        let mut heard = Vec::new();
        loop {
            let line = asking.hear();
            heard.extend(Asking::numbers(&line).0);
            if line["ok"]["ended"] == true {
                break;
            }
        }
        assert_eq!(heard, [3, 4], "admitted, and stopped");
    }
}

#[test]
fn journal_gets_priorities_and_nobody_else_does() {
    let shelf = Shelf::new();
    let members = shelf.array(DRIVE);
    for is_journal in [true, false] {
        let err = shelf.path("stderr");
        let file = File::create(&err).unwrap();
        let metadata = file.metadata().unwrap();
        let inode = metadata.ino() + u64::from(!is_journal);
        let socket = shelf.path("nbd.sock");
        let mut serve =
            command(&[&["array", "serve", "--nbd", &socket][..], &refs(&members)].concat());
        serve.stderr(file).env("JOURNAL_STREAM", format!("{}:{inode}", metadata.dev()));
        let serving = Serving::spawn(serve);
        for verb in ["sit-out", "admit"] {
            by_hand(&serving, verb, "5");
        }
        serving.stop();
        let text = fs::read_to_string(&err).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let [first, out, back, last] = lines[..] else { panic!("{text}") };
        let [notice, info] = if is_journal { ["<5>", "<6>"] } else { ["", ""] };
        assert_eq!(first, format!("{info}levelhead: the array is served with all its drives"));
        assert_eq!(last, format!("{info}levelhead: the array was stopped cleanly"));
        assert!(
            out.starts_with(&format!("{notice}levelhead: drive 5 avoided by an operator at ")),
            "{out}"
        );
        assert!(
            back.starts_with(&format!("{info}levelhead: drive 5 reinstated by an operator at ")),
            "{back}"
        );
    }
}

#[test]
fn a_program_for_events_that_is_not_there_is_refused_before_the_drives_are_touched() {
    let shelf = Shelf::new();
    let members = shelf.array(DRIVE);
    let (none, socket) = (shelf.path("none"), shelf.path("nbd.sock"));
    let mut serve = vec!["array", "serve", "--nbd", &socket, "--on-event", &none];
    serve.extend(members.iter().map(String::as_str));
    let refusal = levelhead(&serve).refusal().to_owned();
    assert_eq!(refusal, format!("--on-event {none}: no such program"));
}

/// The same words everywhere: at the socket, on the log, and for a program.
#[test]
fn loss_of_a_drive_is_an_event_like_any_other() {
    use std::os::unix::fs::PermissionsExt;
    let shelf = Shelf::new();
    let members = shelf.array(DRIVE);
    let (program, socket) = (shelf.path("note"), shelf.path("nbd.sock"));
    fs::write(&program, format!("#!/bin/sh\nexec cat >> {}\n", shelf.path("noted"))).unwrap();
    fs::set_permissions(&program, PermissionsExt::from_mode(0o700)).unwrap();
    let serving = shelf.serve_with(&members, &["--nbd", &socket, "--on-event", &program]);
    levelhead(&["array", "fail", serving.control(), "6"]).refusal();
    by_hand(&serving, "fail", "4");
    let mut lines: Vec<String> = Vec::new();
    wait_until("the drive is closed", || {
        let said = levelhead(&["array", "events", serving.control(), "--json"]).good();
        lines = said.lines().map(str::to_owned).collect();
        lines.len() == 3
    });
    let expected = ["assembled", "lost", "released"];
    assert_eq!(names(&lines), expected, "what was refused is not an event");
    let released: Value = serde_json::from_str(&lines[2]).unwrap();
    assert_eq!((&released["drive"], &released["member"]), (&json!(4), &json!(members[4])));
    let mut lost: Value = serde_json::from_str(&lines[1]).unwrap();
    assert!(lost.as_object_mut().unwrap().remove("at_seconds").unwrap().is_f64());
    assert!(lost.as_object_mut().unwrap().remove("time").unwrap().is_string());
    let expected = json!({
        "number": 2, "event": "lost", "severity": "planned", "array": serving.status()["uuid"], "drive": 4, "why": "by-hand", "member": members[4],
        "reason": null
    });
    assert_eq!(lost, expected);
    levelhead(&["array", "stop", serving.control()]).good();
    let ended = serving.end();
    let sentence = format!("levelhead: drive 4, {}, failed by an operator", members[4]);
    assert_eq!(ended.err.lines().nth(1), Some(&*sentence), "{ended:?}");
    let noted = || fs::read_to_string(shelf.path("noted")).unwrap_or_default();
    wait_until("the program was run for each event, the last one too", || {
        let noted: Vec<String> = noted().lines().map(str::to_owned).collect();
        noted.len() == 4 && noted.contains(&lines[1])
    });
    assert!(noted().contains("\"stopped\""), "{}", noted());
}
