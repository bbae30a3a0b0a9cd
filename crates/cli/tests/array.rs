//! An array's life on this machine: made, served, asked, broken, stopped, and served again.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use levelhead_block::adapter::Waiting;
use levelhead_block::{BlockDevice, Command, Durability, Request};
use levelhead_nbd::Client;
use levelhead_stats::Streams;
use levelhead_units::Bytes;
use rustix::process::Signal;
use serde_json::{Value, json};
use support::{
    ARRAY, PATIENCE, Serving, Shelf, assert_same, connect, levelhead, random, read_all, refs,
    wait_until,
};

const DRIVE: u64 = 8 << 20;

/// 1 MiB is reserved at both ends of every drive.
const SIZE: u64 = 5 * (DRIVE - (2 << 20));

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Writes bytes of every alignment all over the array, and into `model`.
fn scribble(client: &Client, model: &mut [u8], seed: u64) {
    let mut rng = Streams::new(seed).stream("scribble");
    for _ in 0..60 {
        let len = 1 + rng.below(300_000) as usize;
        let at = rng.below((model.len() - len) as u64) as usize;
        rng.fill(&mut model[at..at + len]);
        let durability = if rng.below(4) == 0 { Durability::Durable } else { Durability::Cached };
        client.write_at(Bytes::new(at as u64), &model[at..at + len], durability).unwrap();
    }
}

/// The array's percentage of valid redundancy.
fn synced(status: &Value) -> f64 {
    status["synced_percent"].as_f64().unwrap()
}

fn wait_until_synced(serving: &Serving) {
    wait_until("all redundancy is valid", || synced(&serving.status()) >= 100.0);
}

fn without(drives: &[String], missing: usize) -> Vec<String> {
    let mut left = drives.to_vec();
    left.remove(missing);
    left
}

#[test]
fn dry_run_checks_everything_and_changes_nothing() {
    let shelf = Shelf::new();
    let drives = shelf.drives(6, DRIVE);
    let before = shelf.content();
    let create = [&["array", "create", ARRAY, "--dry-run"][..], &refs(&drives)].concat();
    let value = levelhead(&[&create[..], &["--json"]].concat()).json();
    let fields = ["array", "drive_data_bytes", "drives", "dry_run", "size_bytes", "synced", "uuid"];
    assert_eq!(keys(&value), fields);
    assert_eq!((&value["array"], &value["dry_run"]), (&json!(ARRAY), &json!(true)));
    assert_eq!((&value["size_bytes"], &value["synced"]), (&json!(SIZE), &json!(false)));
    let drive = json!({
        "member": drives[3], "size_bytes": DRIVE, "unused_bytes": 0, "new_file": false
    });
    assert_eq!(value["drives"][3], drive);
    let text = levelhead(&create).good();
    assert!(text.starts_with(&format!("would make {ARRAY}")), "{text}");
    // New files are not made either.
    let new = ["a", "b", "c"].map(|name| format!("emu:{}?size=8MiB", shelf.path(name)));
    let create = [&["array", "create", "raid5:3", "--dry-run"][..], &refs(&new)].concat();
    let text = levelhead(&create).good();
    assert!(text.contains("(8MiB, a new file)"), "{text}");
    assert!(before == shelf.content(), "a dry run has changed something");
}

#[test]
fn an_emulated_drive_has_the_faults_it_was_given_and_not_those_of_its_name() {
    let shelf = Shelf::new();
    let (file, socket) = (shelf.path("a.img"), shelf.path("nbd.sock"));
    let member = format!("emu:{file}?size=1MiB&hard-rate=100%");
    let emulate = ["drive", "emulate", &member, "--nbd", &socket];
    for (options, works) in [(&[][..], false), (&["--faults", "lost-writes=100%"], true)] {
        let serving = Serving::start(&[&emulate[..], options].concat());
        let client = connect(&socket);
        client.write_at(Bytes::new(8192), &[7; 4096], Durability::Cached).unwrap();
        // The write mends a sector that cannot be read; but where writes are lost, it is not there.
        let mut bytes = [1; 4096];
        client.read_at(Bytes::new(8192), &mut bytes).unwrap();
        assert_eq!(bytes, if works { [0; 4096] } else { [7; 4096] });
        assert_eq!(client.read_at(Bytes::new(0), &mut bytes).is_ok(), works);
        drop(client);
        serving.signal(Signal::INT);
        serving.end().good();
        fs::remove_file(&file).unwrap();
    }
}

/// A drive that leaves what it has in memory there until somebody flushes.
const FORGETFUL: &str = r#"
    name = "forgetful"
    block_size = 4096
    rpm = 60000
    heads = 4
    overhead = "0.001ms"
    head_switch = "0.01ms"
    write_settle = "0.01ms"
    [cache]
    segments = 2
    segment_blocks = 20
    read_ahead_blocks = 8
    write_blocks = 64
    write_delay = "86400s"
    flush_overhead = "0.1ms"
    [seek]
    points = [[1, "0.01ms"], [99, "0.1ms"]]
    [[zone]]
    cylinders = 100
    blocks_per_track = 100
    track_skew = 10
    cylinder_skew = 10
"#;

#[test]
fn a_killed_drive_has_what_was_flushed_and_not_what_was_in_its_memory() {
    let shelf = Shelf::new();
    let [file, socket, profile] = ["a.img", "nbd.sock", "own.toml"].map(|name| shelf.path(name));
    fs::write(&profile, FORGETFUL).unwrap();
    let member = format!("emu:{file}?size=1MiB&profile={profile}");
    let emulate = ["drive", "emulate", &member, "--nbd", &socket];
    let with_cache = |mode| [&emulate[..], &["--cache", mode]].concat();
    let at = |sector: u64| Bytes::new(sector * 4096);
    let content = || -> Vec<u8> {
        fs::read(&file).unwrap().chunks(4096).take(5).map(|sector| sector[0]).collect()
    };
    for (mode, left) in [("off", [7, 8, 9, 6, 0]), ("write-back", [7, 0, 9, 0, 0])] {
        let serving = Serving::start(&with_cache(mode));
        let client = Arc::new(connect(&socket));
        client.write_at(at(0), &[7; 4096], Durability::Cached).unwrap();
        let flushed = Waiting::new(Arc::clone(&client)).run(vec![Request::bare(Command::Flush)]);
        assert!(flushed[0].outcome.is_good());
        client.write_at(at(1), &[8; 4096], Durability::Cached).unwrap();
        client.write_at(at(2), &[9; 4096], Durability::Durable).unwrap();
        client.write_at(at(3), &[6; 4096], Durability::Cached).unwrap();
        // One by one: a read of more than the drive has in memory makes it write that first.
        let seen = [0, 1, 2, 3].map(|sector| {
            let mut bytes = [0; 4096];
            client.read_at(at(sector), &mut bytes).unwrap();
            bytes[0]
        });
        assert_eq!(seen, [7, 8, 9, 6], "{mode}");
        serving.signal(Signal::KILL);
        drop((client, serving));
        assert_eq!(content(), left, "{mode}");
        fs::remove_file(&socket).unwrap();
        fs::remove_file(&file).unwrap();
    }
    // A drive that is told to stop writes first, and what it wrote is there for the next.
    let serving = Serving::start(&with_cache("write-back"));
    let client = connect(&socket);
    client.write_at(at(1), &[5; 4096], Durability::Cached).unwrap();
    assert_eq!(content(), [0; 5]);
    drop(client);
    serving.signal(Signal::INT);
    serving.end().good();
    assert_eq!(content(), [0, 5, 0, 0, 0]);
    let _again = Serving::start(&emulate);
    let mut bytes = [0; 4096];
    connect(&socket).read_at(at(1), &mut bytes).unwrap();
    assert_eq!(bytes, [5; 4096]);
}

#[test]
fn array_of_new_emulated_drives_is_valid_from_the_start() {
    let shelf = Shelf::new();
    let members = ["a", "b", "c"].map(|name| format!("emu:{}?size=8MiB", shelf.path(name)));
    let create = [&["array", "create", "raid5:3", "--json"][..], &refs(&members)].concat();
    let value = levelhead(&create).json();
    assert_eq!(value["synced"], true);
    assert_eq!(shelf.names(), ["a", "b", "c"]);
    let serving = shelf.serve(&members);
    assert_eq!(serving.said["remarks"], json!([]));
    let (client, mut model) = (connect(&shelf.path("nbd.sock")), vec![0; serving.size() as usize]);
    scribble(&client, &mut model, 1);
    drop(client);
    let status = serving.status();
    assert_eq!(status["drives"][1]["member"], format!("emu:{}", shelf.path("b")));
    assert_eq!(status["drives"][1]["fast_fail"], "emulated");
    // Emulated drives tell about their health.
    let drive = &status["drives"][1];
    assert_eq!((&drive["retry_rate_percent"], &drive["retries"]), (&json!(0.0), &json!(0)));
    assert!(drive["commands"].as_u64() > Some(0), "{drive}");
    assert!(status["drives"][1]["service_time_ms"].as_f64().unwrap() > 0.0, "{status}");
    serving.stop();
    // The files are the drives: without the model they hold the same.
    let files = ["c", "b", "a"].map(|name| shelf.path(name));
    let serving = shelf.serve(&files);
    assert_same(&read_all(&shelf.path("nbd.sock")), &model);
    serving.stop();
}

#[test]
fn what_was_written_is_read_again_after_a_loss_a_stop_and_a_start() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let socket = shelf.path("nbd.sock");
    let serving = shelf.serve(&drives);
    assert_eq!(keys(&serving.said), ["array", "control", "remarks", "size_bytes", "uri"]);
    assert_eq!((serving.text("array"), serving.size()), (ARRAY, SIZE));
    assert_eq!(serving.control(), format!("{}.control", drives[0]));
    let mode = fs::metadata(serving.control()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "others may control the array");
    let client = connect(&socket);
    let mut model = vec![0; SIZE as usize];
    scribble(&client, &mut model, 1);
    let text = levelhead(&["array", "fail", &drives[0], "1"]).good();
    assert_eq!(text, "the array does without drive 1\n");
    scribble(&client, &mut model, 2);
    drop(client);
    assert_same(&read_all(&socket), &model);
    let text = levelhead(&["array", "stop", &drives[0]]).good();
    assert_eq!(text, "the array has stopped\n");
    // Stopped is stopped: everything is free and gone at once.
    let names: Vec<String> = (0..6).map(|idx| format!("d{idx}.img")).collect();
    assert_eq!(shelf.names(), names);
    let left = without(&drives, 1);
    let again = shelf.serve(&left);
    serving.end().good();
    assert_same(&read_all(&socket), &model);
    let remarks = again.said["remarks"].to_string();
    assert!(remarks.contains("drives 1 are missing"), "{remarks}");
    again.stop();
    assert_eq!(shelf.names(), names);
}

#[test]
fn status_tells_what_an_array_does_while_it_serves() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let options = ["--nbd", &shelf.path("nbd.sock"), "--policy", "assisted"];
    let serving = shelf.serve_with(&without(&drives, 5), &options);
    let client = connect(&shelf.path("nbd.sock"));
    client.write_at(Bytes::new(0), &random(1 << 20, 1), Durability::Durable).unwrap();
    client.read_at(Bytes::new(0), &mut vec![0; 1 << 20]).unwrap();
    levelhead(&["array", "fail", &drives[0], "0"]).refusal();
    let status = serving.status();
    let expected = [
        "array",
        "drives",
        "events",
        "max_ms",
        "mean_ms",
        "outstanding",
        "p50_ms",
        "p99_ms",
        "policy",
        "redispatched",
        "removed",
        "requests",
        "resync",
        "size_bytes",
        "subrequests",
        "synced_percent",
        "uuid",
    ];
    assert_eq!(keys(&status), expected);
    assert_eq!((&status["array"], &status["policy"]), (&json!(ARRAY), &json!("assisted")));
    assert_eq!((&status["size_bytes"], &status["resync"]), (&json!(SIZE), &json!("idle")));
    assert_eq!((synced(&status), &status["outstanding"]), (100.0, &json!(0)));
    assert!(status["requests"].as_u64().unwrap() >= 2, "{status}");
    assert!(status["subrequests"].as_u64().unwrap() >= 10, "{status}");
    let latencies = ["p50_ms", "p99_ms", "max_ms"].map(|key| status[key].as_f64().unwrap());
    assert!(latencies.is_sorted() && latencies[0] > 0.0, "{status}");
    // Real drives say nothing of themselves, missing ones not even a name.
    let drive = |drive: u8, member: Value, state: &str, fast_fail: Value, why: &Value| {
        json!({
            "drive": drive, "member": member, "state": state, "failure": null, "queue": 0,
            "commands": null, "first_pass_failures": null, "retries": null,
            "retry_rate_percent": null, "retry_latency_ms": null, "service_time_ms": null,
            "fast_fail": fast_fail, "fast_fail_detail": why
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
        value
    };
    assert_eq!(said(4), drive(4, json!(drives[4]), "present", json!("none"), why));
    assert_eq!(said(5), drive(5, Value::Null, "missing", Value::Null, &Value::Null));
    levelhead(&["array", "sit-out", &drives[0], "9"]).refusal();
    levelhead(&["array", "sit-out", &drives[0], "1"]).refusal(); // One is missing already.
    levelhead(&["array", "admit", &drives[0], "1"]).refusal();
    let text = levelhead(&["array", "status", &drives[0]]).good();
    let uuid = status["uuid"].as_str().unwrap();
    assert!(text.starts_with(&format!("array: {ARRAY}, {uuid}\nsize: 30MiB\n")), "{text}");
    assert!(text.contains("\nredundancy: 100.0 % valid (resync idle)\n"), "{text}");
    let state = |drive: &str| {
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(drive));
        line.unwrap().split_whitespace().nth(1).unwrap()
    };
    assert_eq!((state("4"), state("5")), ("present", "missing"));
    serving.stop();
}

#[test]
fn more_drives_than_an_array_can_do_without_cannot_be_failed() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let serving = shelf.serve(&drives);
    let fail = |drive: &str| levelhead(&["array", "fail", serving.control(), drive]);
    assert!(fail("6").refusal().contains("the array has drives 0 to 5, not 6"));
    let done = levelhead(&["array", "fail", serving.control(), "3", "--json"]).json();
    assert_eq!(done, json!({ "done": "the array does without drive 3" }));
    assert!(fail("3").refusal().contains("drive 3 is lost already"));
    assert!(fail("4").refusal().contains("survives the loss of 1 drives, 1 are lost"));
    let states: Vec<Value> =
        (0..6).map(|idx| serving.status()["drives"][idx]["state"].clone()).collect();
    assert_eq!(states, ["present", "present", "present", "lost", "present", "present"]);
    serving.stop();
}

#[test]
fn signals_stop_an_array_in_good_order_also_with_clients() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let mut model = vec![0; SIZE as usize];
    for (seed, signal) in [(1, Signal::TERM), (2, Signal::INT), (3, Signal::HUP)] {
        let serving = shelf.serve(&drives);
        assert_eq!(serving.said["remarks"], json!([]), "it was not stopped in good order");
        let client = connect(&shelf.path("nbd.sock"));
        scribble(&client, &mut model, seed);
        // Somebody who listens at the control socket and never stops asking.
        let mut curious = UnixStream::connect(serving.control()).unwrap();
        curious.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut answers = BufReader::new(curious.try_clone().unwrap()).lines();
        serving.signal(signal);
        while curious.write_all(b"{\"verb\": \"status\"}\n").is_ok()
            && matches!(answers.next(), Some(Ok(_)))
        {}
        serving.end().good();
        drop(client);
        assert_eq!(shelf.names().len(), 6, "{:?}", shelf.names());
    }
    let serving = shelf.serve(&drives);
    assert_same(&read_all(&shelf.path("nbd.sock")), &model);
    serving.stop();
}

#[test]
fn member_that_is_being_served_is_refused() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let serving = shelf.serve(&drives);
    let busy = |args: &[&str], member: &str| {
        let ended = levelhead(args);
        let expected = format!("{member} is in use by another process");
        assert_eq!(ended.refusal(), expected);
    };
    let other = shelf.path("other.sock");
    let serve = ["array", "serve", "--nbd", "tcp:0", "--control", &other];
    busy(&[&serve[..], &refs(&drives)].concat(), &drives[0]);
    busy(&[&serve[..], &[&drives[4]]].concat(), &drives[4]);
    let emulated = format!("emu:{}", drives[2]);
    busy(&[&serve[..], &[&emulated]].concat(), &drives[2]);
    busy(&["drive", "emulate", &emulated, "--nbd", "tcp:0"], &drives[2]);
    let create = ["array", "create", ARRAY, "--force"];
    busy(&[&create[..], &refs(&drives)].concat(), &drives[0]);
    assert!(!Path::new(&other).exists());
    assert_eq!(serving.status()["drives"][4]["state"], "present");
    serving.stop();
}

/// Old content is kept, and becomes redundant while it is served.
#[test]
fn resync_is_seen_to_go_to_its_end_and_then_a_drive_can_go() {
    let shelf = Shelf::new();
    let files = shelf.used_drives(6, DRIVE, 40);
    let create = [&["array", "create", ARRAY][..], &refs(&files)].concat();
    let text = levelhead(&create).good();
    assert!(text.ends_with("redundancy: will be made valid while the array is served\n"), "{text}");
    // Drives slow enough to watch.
    let slow: Vec<String> = files.iter().map(|path| format!("emu:{path}?slowdown=4")).collect();
    let serving = shelf.serve(&slow);
    let remarks = serving.said["remarks"].to_string();
    assert!(remarks.contains("redundancy of 768 of 768 stripes is being made valid"), "{remarks}");
    let first = serving.status();
    assert!(synced(&first) < 100.0, "{first}");
    assert_eq!(first["resync"], "running");
    let bytes = read_all(&shelf.path("nbd.sock"));
    let mut seen = synced(&first);
    wait_until("all redundancy is valid", || {
        let status = serving.status();
        let now = synced(&status);
        assert!(now >= seen, "from {seen} to {now}");
        assert_ne!(status["resync"], "stuck");
        seen = now;
        now >= 100.0
    });
    assert_eq!(serving.status()["resync"], "idle");
    serving.stop();
    for missing in 0..6 {
        assert_same(&content_of_copies(&without(&files, missing)), &bytes);
    }
}

/// Before the redundancy is valid, a drive takes its data with it. It is not given up without force,
/// and with force its data is said to be unreadable and never made up.
#[test]
fn drive_that_alone_holds_data_is_not_given_up() {
    const STEP: usize = 64 << 10;
    let shelf = Shelf::new();
    let files = shelf.used_drives(6, DRIVE, 50);
    levelhead(&[&["array", "create", ARRAY][..], &refs(&files)].concat()).good();
    let bytes = content_of_copies(&files);
    let slow: Vec<String> = files.iter().map(|path| format!("emu:{path}?slowdown=20")).collect();
    let serving = shelf.serve(&slow);
    let ended = levelhead(&["array", "fail", serving.control(), "1"]);
    let sentence = ended.refusal();
    assert!(sentence.contains("drive 1 holds data that nothing else does"), "{sentence}");
    assert!(sentence.contains("of 768 stripes is not valid yet"), "{sentence}");
    serving.stop();
    let (socket, left) = (shelf.path("nbd.sock"), without(&files, 1));
    let serve = [&["array", "serve", "--nbd", &socket][..], &refs(&left)].concat();
    let ended = levelhead(&serve);
    assert!(ended.refusal().contains("of 768 stripes were never in sync"), "{ended:?}");
    let serving = shelf.serve_with(&left, &["--nbd", &socket, "--force"]);
    let client = connect(&socket);
    let mut refused = 0;
    for (idx, expected) in bytes.chunks(STEP).enumerate() {
        let mut got = vec![0; expected.len()];
        match client.read_at(Bytes::new((idx * STEP) as u64), &mut got) {
            Ok(()) => assert_same(&got, expected),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 0, "all was there: {}", serving.status());
    drop(client);
    serving.stop();
}

/// What an array over copies of these files holds.
fn content_of_copies(files: &[String]) -> Vec<u8> {
    let shelf = Shelf::new();
    let copy = |path: &String| {
        let to = shelf.path(Path::new(path).file_name().unwrap().to_str().unwrap());
        fs::copy(path, &to).unwrap();
        to
    };
    let serving = shelf.serve(&files.iter().map(copy).collect::<Vec<_>>());
    let bytes = read_all(&shelf.path("nbd.sock"));
    serving.stop();
    bytes
}

#[test]
fn array_whose_server_was_killed_is_served_again_and_resynced() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let socket = shelf.path("nbd.sock");
    let serving = shelf.serve(&drives);
    let mut model = vec![0; SIZE as usize];
    scribble(&connect(&socket), &mut model, 9);
    serving.signal(Signal::KILL);
    assert_eq!(serving.end().code, None);
    // Its sockets are still there, and nobody answers.
    assert_eq!(shelf.names().len(), 13, "{:?}", shelf.names());
    assert!(levelhead(&["array", "status", &drives[0]]).refusal().contains("no running array"));
    // With a drive less it cannot be known what was being written there.
    let serve = ["array", "serve", "--nbd", &socket];
    let ended = levelhead(&[&serve[..], &refs(&drives[1..])].concat());
    assert!(ended.refusal().contains("was not stopped in good order"), "{ended:?}");
    let serving = shelf.serve(&drives);
    let remarks = serving.said["remarks"].to_string();
    assert!(remarks.contains("is being made valid"), "{remarks}");
    assert_same(&read_all(&socket), &model);
    wait_until_synced(&serving);
    serving.stop();
    let serving = shelf.serve(&drives[1..]);
    assert_same(&read_all(&socket), &model);
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
}

#[test]
fn every_drive_leads_to_the_control_socket_past_clients_that_say_nothing() {
    use std::os::unix::fs::symlink;
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let beside = |drive: usize| format!("{}.control", drives[drive]);
    // What a server that was killed has left behind, and what is none of ours.
    symlink(shelf.path("gone"), beside(0)).unwrap();
    symlink(shelf.path("gone"), beside(1)).unwrap();
    fs::write(beside(3), "mine").unwrap();
    let serving = shelf.serve(&drives);
    let silent: Vec<UnixStream> =
        (0..3).map(|_| UnixStream::connect(serving.control()).unwrap()).collect();
    for at in [0, 1, 2, 4, 5] {
        let status = levelhead(&["array", "status", &drives[at], "--json"]).json();
        assert_eq!(status["uuid"], serving.status()["uuid"], "drive {at}");
    }
    let refused = levelhead(&["array", "status", &drives[3]]);
    assert!(refused.refusal().contains("no running array answers"));
    levelhead(&["array", "stop", &drives[5]]).good();
    serving.end().good();
    drop(silent);
    assert_eq!(fs::read_to_string(beside(3)).unwrap(), "mine");
    fs::remove_file(beside(3)).unwrap();
    assert_eq!(shelf.names().len(), 6, "{:?}", shelf.names());
}

#[test]
fn more_clients_than_there_is_room_for_are_sent_away() {
    let shelf = Shelf::new();
    let serving = shelf.serve(&shelf.array(DRIVE));
    let talk = |stream: &UnixStream| -> Value {
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    let mut clients: Vec<UnixStream> = Vec::new();
    for _ in 0..16 {
        let mut stream = UnixStream::connect(serving.control()).unwrap();
        stream.write_all(b"{\"verb\": \"status\"}\n").unwrap();
        assert_eq!(talk(&stream)["ok"]["array"], ARRAY);
        clients.push(stream);
    }
    let refused = talk(&UnixStream::connect(serving.control()).unwrap());
    assert_eq!(refused, json!({ "error": "16 clients ask already, try again" }));
    drop(clients);
    wait_until("there is room again", || {
        levelhead(&["array", "status", serving.control()]).code == Some(0)
    });
    serving.stop();
}

#[test]
fn people_are_told_how_to_go_on() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let serve = [&["array", "serve", "--nbd", "tcp:0"][..], &refs(&drives)].concat();
    let mut command = support::command(&serve);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let text: Vec<String> = (0..5).map(|_| lines.next().unwrap().unwrap()).collect();
    levelhead(&["array", "stop", &drives[0]]).good();
    assert_eq!(support::end(child, "the server").code, Some(0));
    assert_eq!(text[0], ARRAY);
    assert_eq!(text[1], "size: 30MiB");
    assert!(text[2].starts_with("nbd: nbd://127.0.0.1:"), "{text:?}");
    assert_eq!(text[3], format!("control: {}.control", drives[0]));
    assert_eq!(text[4], "Ctrl-C stops it in good order");
    assert!(lines.next().is_none());
}
