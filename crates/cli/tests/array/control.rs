//! The control socket: what a running array says, and who may ask.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;

use levelhead_block::Durability;
use levelhead_units::Bytes;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{ARRAY, PATIENCE, Shelf, connect, levelhead, random, refs, usual_control};
use crate::{DRIVE, SIZE, keys, synced, without};

/// What is counted of each drive.
const COUNTED: [&str; 15] = [
    "writes",
    "reads",
    "flushes",
    "trims",
    "read_bytes",
    "written_bytes",
    "unknown_sectors",
    "damaged_sectors",
    "refused_commands",
    "read_errors",
    "write_errors",
    "wrong_sectors",
    "gone_commands",
    "busy",
    "inside",
];

#[test]
fn status_tells_what_an_array_does_while_it_serves() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let options = ["--nbd", &shelf.path("nbd.sock"), "--policy", "assisted", "--degraded"];
    let serving = shelf.serve_with(&without(&drives, 5), &options);
    let client = connect(&shelf.path("nbd.sock"));
    client.write_at(Bytes::new(0), &random(1 << 20, 1), Durability::Durable).unwrap();
    client.read_at(Bytes::new(0), &mut vec![0; 1 << 20]).unwrap();
    levelhead(&["array", "fail", &drives[0], "0"]).refusal();
    let status = serving.status();
    let expected = [
        "arithmetic",
        "array",
        "at_seconds",
        "copy",
        "copy_reads",
        "copy_twins",
        "copy_writes",
        "corrupt_sectors",
        "damaged",
        "damaged_reads",
        "decoded",
        "drives",
        "events",
        "forced",
        "generations",
        "held",
        "journal",
        "journal_appends",
        "journal_flushes",
        "journal_hints",
        "journal_intents",
        "journal_logged_again",
        "journal_marks",
        "journal_places",
        "journal_records",
        "journal_unrecovered",
        "max_ms",
        "mean_ms",
        "outstanding",
        "p50_ms",
        "p99_ms",
        "policy",
        "rebuild",
        "rebuild_damaged",
        "rebuild_min_rate",
        "rebuild_paused",
        "rebuild_reads",
        "rebuild_writes",
        "redispatched",
        "removed",
        "repaired_unreadable",
        "repaired_wrong",
        "requests",
        "resync",
        "scrub",
        "scrubbed_stripes",
        "size_bytes",
        "spares",
        "state",
        "subrequests",
        "synced_percent",
        "tag_lists",
        "tag_reads",
        "tag_writes",
        "unlocated_codewords",
        "unrepaired_sectors",
        "uuid",
        "verify",
        "verify_beside",
        "verify_found",
        "verify_mended",
        "verify_reads",
        "verify_recalled",
        "verify_records",
        "verify_writes",
    ];
    assert_eq!(keys(&status), expected);
    let classes = status["arithmetic"].as_array().unwrap().iter();
    let classes: Vec<&str> = classes.map(|class| class["class"].as_str().unwrap()).collect();
    assert_eq!(classes, ["one"]);
    assert_eq!((&status["array"], &status["policy"]), (&json!(ARRAY), &json!("assisted")));
    assert_eq!((&status["state"], &status["forced"]), (&json!("degraded"), &json!(false)));
    assert_eq!((&status["size_bytes"], &status["resync"]), (&json!(SIZE), &json!("idle")));
    assert_eq!((synced(&status), &status["outstanding"]), (100.0, &json!(0)));
    assert!(status["requests"].as_u64().unwrap() >= 2, "{status}");
    assert!(status["subrequests"].as_u64().unwrap() >= 4, "{status}");
    assert!(status["journal_records"].as_u64().unwrap() >= 4, "{status}");
    assert!(status["decoded"].as_u64().unwrap() > 0, "a drive is missing: {status}");
    assert!(status["generations"].as_u64().unwrap() >= 2, "it was opened to be written to");
    assert_eq!(status["held"], 0);
    let latencies = ["p50_ms", "p99_ms", "max_ms"].map(|key| status[key].as_f64().unwrap());
    assert!(latencies.is_sorted() && latencies[0] > 0.0, "{status}");
    // Real drives say nothing of themselves, missing ones not even a name.
    let drive = |drive: u8, member: Value, state: &str, fast_fail: Value, why: &Value| {
        json!({
            "drive": drive, "member": member, "state": state, "failure": null, "role": "data",
            "commands": null, "first_pass_failures": null, "retries": null,
            "retry_rate_percent": null, "retry_latency_ms": null, "service_time_ms": null,
            "fast_fail": fast_fail, "fast_fail_detail": why, "promise": null, "refusal": null
        })
    };
    let why = &status["drives"][4]["fast_fail_detail"];
    assert!(["it is a file", "only io_uring tells a drive"].contains(&why.as_str().unwrap()));
    // What the array has learnt of it is not the same each time.
    let said = |drive: usize| {
        let mut value = status["drives"][drive].clone();
        let fields = value.as_object_mut().unwrap();
        let learnt = ["median_ms", "estimates"].map(|key| fields.remove(key));
        assert!(learnt.iter().all(Option::is_some), "{status}");
        assert_eq!(fields.remove("sits_out"), Some(json!(false)));
        assert_eq!(fields.remove("silent"), Some(json!(false)));
        // The journal may be writing a mark.
        let inside = ["queue", "inflight"].map(|key| fields.remove(key));
        assert!(inside.iter().flatten().all(|count| count.as_u64() <= Some(1)), "{status}");
        let counted = COUNTED.map(|key| fields.remove(key).and_then(|value| value.as_u64()));
        assert!(counted.iter().all(Option::is_some), "{status}");
        assert_eq!(counted[0] > Some(0), drive != 5, "a drive that is missing has done nothing");
        value
    };
    assert_eq!(said(4), drive(4, json!(drives[4]), "present", json!("none"), why));
    assert_eq!(said(5), drive(5, Value::Null, "missing", Value::Null, &Value::Null));
    levelhead(&["array", "sit-out", &drives[0], "9"]).refusal();
    levelhead(&["array", "sit-out", &drives[0], "1"]).refusal(); // One is missing already.
    levelhead(&["array", "admit", &drives[0], "1"]).refusal();
    let text = levelhead(&["array", "status", "-v", &drives[0]]).good();
    let uuid = status["uuid"].as_str().unwrap();
    assert!(text.starts_with(&format!("array:     {uuid}, {ARRAY}, 28.8MiB\n")), "{text}");
    let state = "\nstate:     degraded: drive 5 is missing; no more drives may fail\n";
    assert!(text.contains(state), "{text}");
    let replace = format!("levelhead array replace {} 5 DEVICE", drives[0]);
    let next = format!("\nnext:      bring drive 5 back, or replace it: {replace}\n");
    assert!(text.contains(&next), "{text}");
    let counted = |name: &str| format!("{name} {}", status[name]);
    let counted =
        ["requests", "subrequests", "removed", "redispatched", "decoded", "held"].map(counted);
    assert!(
        text.contains(&format!("\nsince the start: {}, generations ", counted.join(", "))),
        "{text}"
    );
    let state = |drive: &str| {
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(drive));
        line.unwrap().split_whitespace().nth(1).unwrap()
    };
    assert_eq!((state("4"), state("5")), ("present", "missing"));
    serving.stop();
}

#[test]
fn control_socket_can_be_elsewhere_and_answers_lines_of_json() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let control = shelf.path("control");
    let options = ["--nbd", &shelf.path("nbd.sock"), "--control", &control];
    let serving = shelf.serve_with(&drives, &options);
    assert_eq!(serving.control(), control);
    // The drives lead there all the same.
    let status = levelhead(&["array", "status", &drives[0], "--json"]).json();
    assert_eq!(status["array"], ARRAY);
    let link = usual_control(status["uuid"].as_str().unwrap());
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let mut stream = UnixStream::connect(&control).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut ask = |question: &str| -> Value {
        stream.write_all(format!("{question}\n").as_bytes()).unwrap();
        serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
    };
    assert_eq!(ask(r#"{"verb": "status"}"#)["ok"]["array"], ARRAY);
    for question in ["what?", "", "{}", r#"{"verb": "dance"}"#, r#"{"verb": "fail", "drive": 900}"#]
    {
        let answer = ask(question);
        assert!(answer["error"].is_string(), "{question}: {answer}");
    }
    assert_eq!(ask(r#"{"verb": "fail", "drive": 2}"#), json!({ "ok": null }));
    assert_eq!(ask(r#"{"verb": "stop"}"#), json!({ "ok": null }));
    serving.end().good();
    assert!(!Path::new(&control).exists());
    assert!(fs::symlink_metadata(&link).is_err(), "the link is left behind");
}

#[test]
fn every_drive_leads_to_the_control_socket_past_clients_that_say_nothing() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let serving = shelf.serve(&drives);
    let silent: Vec<UnixStream> =
        (0..3).map(|_| UnixStream::connect(serving.control()).unwrap()).collect();
    for drive in &drives {
        let status = levelhead(&["array", "status", drive, "--json"]).json();
        assert_eq!(status["uuid"], serving.status()["uuid"], "{drive}");
    }
    // Nothing lies beside the drives, and what is no drive leads nowhere.
    assert_eq!(shelf.names().len(), 7, "{:?}", shelf.names());
    let stranger = shelf.path("stranger.img");
    fs::write(&stranger, [0; 8192]).unwrap();
    let refused = levelhead(&["array", "status", &stranger]);
    let expected =
        format!("no running array answers at {stranger}: {stranger} is not a drive of an array");
    assert_eq!(refused.refusal(), expected);
    let control = serving.control().to_owned();
    levelhead(&["array", "stop", &drives[5]]).good();
    serving.end().good();
    drop(silent);
    assert!(fs::symlink_metadata(&control).is_err(), "it is left behind");
}

#[test]
fn what_lies_where_the_control_socket_would_be_is_replaced_only_if_it_is_a_dead_socket() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let serving = shelf.serve(&drives);
    let control = serving.control().to_owned();
    // A copy of the array, as another array of the same UUID.
    let copies = Shelf::new();
    let copy = |drive: &String| {
        let to = copies.path(Path::new(drive).file_name().unwrap().to_str().unwrap());
        fs::copy(drive, &to).unwrap();
        to
    };
    let copies_of: Vec<String> = drives.iter().map(copy).collect();
    let serve = [&["array", "serve", "--nbd", "tcp:0"][..], &refs(&copies_of)].concat();
    let refused = levelhead(&serve);
    let sentence = refused.refusal();
    assert!(sentence.ends_with("is served by another process of this machine"), "{sentence}");
    serving.signal(Signal::KILL);
    assert_eq!(serving.end().code, None);
    assert!(fs::symlink_metadata(&control).is_ok());
    let serving = shelf.serve(&drives);
    assert_eq!(serving.control(), control, "the socket of a server that was killed is replaced");
    serving.stop();
    fs::write(&control, "mine").unwrap();
    let serve = [&["array", "serve", "--nbd", "tcp:0"][..], &refs(&drives)].concat();
    assert!(levelhead(&serve).refusal().contains("cannot listen for control"));
    assert_eq!(fs::read_to_string(&control).unwrap(), "mine");
    fs::remove_file(&control).unwrap();
    // The socket for NBD clients is none for control.
    let serving = shelf.serve(&drives);
    let nbd = shelf.path("nbd.sock");
    for verb in [&["status"][..], &["status", "--watch"], &["stop"], &["events"]] {
        let refused = levelhead(&[&["array", verb[0], &nbd][..], &verb[1..]].concat());
        let expected =
            format!("{nbd} is a socket for NBD clients, not the control socket of an array");
        assert!(refused.refusal().starts_with(&expected), "{refused:?}");
    }
    serving.stop();
    // A socket of another kind, which a program uses.
    let (other, sender) = (shelf.path("log"), UnixDatagram::unbound().unwrap());
    let logger = UnixDatagram::bind(&other).unwrap();
    let serve = [&serve[..], &["--control", &other]].concat();
    let refused = levelhead(&serve);
    assert!(refused.refusal().ends_with("which is not a control socket"), "{refused:?}");
    sender.send_to(b"still here", &other).unwrap();
    drop(logger);
}

#[test]
fn client_that_says_nothing_is_turned_away() {
    let shelf = Shelf::new();
    let serving = shelf.serve(&shelf.array(DRIVE));
    let silent = UnixStream::connect(serving.control()).unwrap();
    silent.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(BufReader::new(silent).read_line(&mut String::new()).unwrap(), 0);
    serving.stop();
}

/// They have asked once, or never, or have sent a part of a question.
#[test]
fn clients_that_ask_nothing_keep_nobody_out() {
    let shelf = Shelf::new();
    let serving = shelf.serve(&shelf.array(DRIVE));
    let mut clients: Vec<UnixStream> = Vec::new();
    for round in 0..20 {
        for said in [&b""[..], b"{\"verb\": \"status\"}\n", b"{\"verb\": "] {
            let mut stream = UnixStream::connect(serving.control()).unwrap();
            // The server may have no room for it already.
            drop(stream.write_all(said));
            clients.push(stream);
        }
        let status = levelhead(&["array", "status", serving.control()]);
        assert_eq!(status.code, Some(0), "round {round}: {status:?}");
    }
    serving.stop();
}
