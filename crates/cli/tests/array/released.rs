//! Drives that an array does not use any more are closed: other programs, and the array itself, can use them again.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use crate::DRIVE;
use crate::support::{Serving, Shelf, command, levelhead, run, wait_until};

/// Whether the server has a file open.
fn is_open(serving: &Serving, path: &str) -> bool {
    let descriptors = format!("/proc/{}/fd", serving.pid().as_raw_nonzero());
    let links = fs::read_dir(descriptors)
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    let path = fs::canonicalize(path).unwrap();
    links.into_iter().any(|link| link == path)
}

/// Whether any other program can have the drive for itself.
fn is_free(path: &str) -> bool {
    File::options().read(true).write(true).open(path).unwrap().try_lock().is_ok()
}

fn state(serving: &Serving, drive: usize) -> Value {
    serving.status()["drives"][drive]["state"].clone()
}

#[test]
fn failed_drive_is_closed_and_removed_and_can_be_a_spare() {
    for io in ["threads", "best", "uring"] {
        let shelf = Shelf::new();
        let drives = shelf.array(DRIVE);
        let serving = shelf.serve_with(&drives, &["--nbd", &shelf.path("nbd.sock"), "--io", io]);
        let [array, drive] = [&drives[0], &drives[3]];
        assert!(is_open(&serving, drive) && !is_free(drive), "{io}");
        let healthy = levelhead(&["array", "remove", array, "3"]);
        assert_eq!(healthy.refusal(), "drive 3 is in use: array fail 3 comes first");
        levelhead(&["array", "fail", array, "3"]).good();
        levelhead(&["array", "remove", array, "3"]).good();
        assert!(!is_open(&serving, drive) && is_free(drive), "{io}: it is not closed");
        assert_eq!(state(&serving, 3), "removed");
        let again = levelhead(&["array", "remove", array, "3"]);
        assert_eq!(again.refusal(), "drive 3 is not there: its slot is empty");
        let events = levelhead(&["array", "events", array]).good();
        let closed = format!("drive 3, {drive}, is closed: other programs can use it");
        assert!(events.contains(&closed), "{events}");
        levelhead(&["array", "add-spare", array, drive, "--force"]).good();
        wait_until("it is filled", || state(&serving, 3) == "present");
        serving.stop();
    }
}

#[test]
fn replaced_drive_and_spare_that_is_removed_are_closed() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let serving = shelf.serve_with(&drives, &["--nbd", &shelf.path("nbd.sock")]);
    let [new, spare] = ["new.img", "spare.img"].map(|name| {
        File::create(shelf.path(name)).unwrap().set_len(DRIVE).unwrap();
        shelf.path(name)
    });
    levelhead(&["array", "add-spare", &drives[0], &spare]).good();
    assert!(!is_free(&spare));
    levelhead(&["array", "remove-spare", &drives[0], &spare]).good();
    assert!(!is_open(&serving, &spare) && is_free(&spare));
    levelhead(&["array", "replace", &drives[0], "2", &new]).good();
    wait_until("the old one is closed", || !is_open(&serving, &drives[2]));
    assert!(is_free(&drives[2]));
    wait_until("the new one has the place", || state(&serving, 2) == "present");
    // Which it can be given back.
    levelhead(&["array", "replace", &drives[0], "2", &drives[2], "--force"]).good();
    wait_until("the other one is closed", || is_free(&new));
    serving.stop();
}

#[test]
fn paths_of_devices_are_those_of_the_client_and_not_of_the_server() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let serving = shelf.serve_with(&drives, &["--nbd", &shelf.path("nbd.sock")]);
    let elsewhere = shelf.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    File::create(format!("{elsewhere}/new.img")).unwrap().set_len(DRIVE).unwrap();
    let from_there = |args: &[&str]| {
        let mut command = command(args);
        command.current_dir(&elsewhere);
        run(command)
    };
    from_there(&["array", "add-spare", &drives[0], "./new.img"]).good();
    assert_eq!(serving.status()["spares"], json!([format!("{elsewhere}/new.img")]));
    from_there(&["array", "remove-spare", &drives[0], "new.img"]).good();
    assert_eq!(serving.status()["spares"], json!([]));
    from_there(&["array", "replace", &drives[0], "2", "new.img"]).good();
    wait_until("it has the place", || {
        let drive = serving.status()["drives"][2].clone();
        drive["member"] == format!("{elsewhere}/new.img") && drive["state"] == "present"
    });
    // Other clients say what they mean.
    let mut socket = UnixStream::connect(serving.control()).unwrap();
    let mut lines = BufReader::new(socket.try_clone().unwrap()).lines();
    for verb in [
        json!({"verb": "add-spare", "device": "new.img"}),
        json!({"verb": "replace", "drive": 2, "device": "emu:new.img?size=8MiB"}),
        json!({"verb": "remove-spare", "device": "./new.img"}),
    ] {
        writeln!(socket, "{verb}").unwrap();
        let answer = lines.next().unwrap().unwrap();
        assert!(answer.contains("is a relative path: expected an absolute one"), "{answer}");
    }
    serving.stop();
}
