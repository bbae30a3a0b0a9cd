//! Made, served, used, broken, stopped, and served again.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    self, ARRAY, PATIENCE, Shelf, assert_same, connect, levelhead, read_all, refs,
};
use crate::{DRIVE, SIZE, keys, scribble, without};

#[test]
fn dry_run_checks_everything_and_changes_nothing() {
    let shelf = Shelf::new();
    let drives = shelf.drives(6, DRIVE);
    let before = shelf.content();
    let create = [&["array", "create", ARRAY, "--dry-run"][..], &refs(&drives)].concat();
    let value = levelhead(&[&create[..], &["--json"]].concat()).json();
    let fields = [
        "array",
        "checksums",
        "drive_data_bytes",
        "drives",
        "dry_run",
        "journal_bytes",
        "journal_logs",
        "size_bytes",
        "synced",
        "uuid",
    ];
    assert_eq!(keys(&value), fields);
    assert_eq!((&value["array"], &value["dry_run"]), (&json!(ARRAY), &json!(true)));
    assert_eq!((&value["size_bytes"], &value["synced"]), (&json!(SIZE), &json!(false)));
    let drive = json!({
        "member": drives[3], "role": "data", "size_bytes": DRIVE, "unused_bytes": 0, "new_file": false
    });
    assert_eq!(value["drives"][3], drive);
    let text = levelhead(&create).good();
    assert!(text.starts_with(&format!("would create {ARRAY}")), "{text}");
    // New files are not made either.
    let new = ["a", "b", "c"].map(|name| format!("emu:{}?size=8MiB", shelf.path(name)));
    let create = [&["array", "create", "raid5:3", "--dry-run"][..], &refs(&new)].concat();
    let text = levelhead(&create).good();
    assert!(text.contains("(8MiB, a new file)"), "{text}");
    assert!(before == shelf.content(), "a dry run has changed something");
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
    assert_eq!(
        keys(&serving.said),
        ["array", "control", "exports", "metrics", "remarks", "size_bytes", "uri"]
    );
    assert_eq!((serving.text("array"), serving.size()), (ARRAY, SIZE));
    let uuid = serving.status()["uuid"].as_str().unwrap().to_owned();
    assert_eq!(serving.control(), support::usual_control(&uuid));
    let mode = fs::metadata(serving.control()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "others may control the array");
    let client = connect(&socket);
    let mut model = vec![0; SIZE as usize];
    scribble(&client, &mut model, 1);
    let text = levelhead(&["array", "fail", &drives[0], "1"]).good();
    assert_eq!(text, "drive 1 failed by an operator\n");
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
    assert!(remarks.contains("drive 1 is missing"), "{remarks}");
    again.stop();
    assert_eq!(shelf.names(), names);
}

#[test]
fn more_drives_than_an_array_can_do_without_cannot_be_failed() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let serving = shelf.serve(&drives);
    let fail = |drive: &str| levelhead(&["array", "fail", serving.control(), drive]);
    assert!(fail("6").refusal().contains("the array has drives 0 to 5, not 6"));
    let done = levelhead(&["array", "fail", serving.control(), "3", "--json"]).json();
    assert_eq!(done, json!({ "done": "drive 3 failed by an operator" }));
    assert!(fail("3").refusal().contains("drive 3 is already failed or missing"));
    assert!(
        fail("4")
            .refusal()
            .contains("survives the loss of 1 drive, 1 is already failed or missing")
    );
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
        assert_eq!(serving.said["remarks"], json!([]), "it was not stopped cleanly");
        let client = connect(&shelf.path("nbd.sock"));
        scribble(&client, &mut model, seed);
        // A client that listens at the control socket and never stops asking.
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
    assert_eq!(text[1], "size: 28.8MiB");
    assert!(text[2].starts_with("nbd: nbd://127.0.0.1:"), "{text:?}");
    let control = text[3].strip_prefix("control: ").unwrap();
    let uuid = Path::new(control).file_stem().unwrap().to_str().unwrap();
    assert_eq!(control, support::usual_control(uuid));
    assert_eq!(text[4], "Ctrl-C stops it cleanly");
    assert!(lines.next().is_none());
}
