//! Redundancy that is not valid yet, and what is worth without it.

use std::fs;
use std::path::Path;

use levelhead_units::Bytes;
use rustix::process::Signal;

use crate::support::{
    ARRAY, Serving, Shelf, assert_same, connect, levelhead, read_all, refs, wait_until,
};
use crate::{DRIVE, SIZE, scribble, synced, without};

fn wait_until_synced(serving: &Serving) {
    wait_until("all redundancy is valid", || synced(&serving.status()) >= 100.0);
}

/// Old content is kept, and becomes redundant while it is served.
#[test]
fn resync_is_seen_to_go_to_its_end_and_then_a_drive_can_go() {
    let shelf = Shelf::new();
    let files = shelf.used_drives(6, DRIVE, 40);
    let create = [&["array", "create", ARRAY, "--force"][..], &refs(&files)].concat();
    let text = levelhead(&create).good();
    assert!(text.ends_with("redundancy: initial sync while the array is served\n"), "{text}");
    // Drives slow enough to watch.
    let slow: Vec<String> = files.iter().map(|path| format!("emu:{path}?slowdown=4")).collect();
    let serving = shelf.serve(&slow);
    let remarks = serving.said["remarks"].to_string();
    assert!(
        remarks.contains("resync: redundancy of 736 of 736 stripes is not valid yet"),
        "{remarks}"
    );
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
    levelhead(&[&["array", "create", ARRAY, "--force"][..], &refs(&files)].concat()).good();
    let bytes = content_of_copies(&files);
    let slow: Vec<String> = files.iter().map(|path| format!("emu:{path}?slowdown=20")).collect();
    let serving = shelf.serve(&slow);
    let ended = levelhead(&["array", "fail", serving.control(), "1"]);
    let sentence = ended.refusal();
    assert!(sentence.contains("drive 1 holds data that no other drive has"), "{sentence}");
    assert!(sentence.contains("of 736 stripes is not valid yet"), "{sentence}");
    serving.stop();
    let (socket, left) = (shelf.path("nbd.sock"), without(&files, 1));
    let serve = [&["array", "serve", "--nbd", &socket][..], &refs(&left)].concat();
    let ended = levelhead(&serve);
    assert!(ended.refusal().contains("of 736 stripes is not known to be valid"), "{ended:?}");
    let serving = shelf.serve_with(&left, &["--nbd", &socket, "--force", "--degraded"]);
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
    let serving = shelf.serve_degraded(&files.iter().map(copy).collect::<Vec<_>>());
    let bytes = read_all(&shelf.path("nbd.sock"));
    serving.stop();
    bytes
}

/// A journal has what was being written, so redundancy is right at once, with a drive less, too.
#[test]
fn array_whose_server_was_killed_is_served_again_at_once_with_a_drive_less() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let (socket, model) = kill_a_server(&shelf, &drives);
    let serving = shelf.serve_degraded(&drives[1..]);
    assert_same(&read_all(&socket), &model);
    let status = serving.status();
    assert_eq!((synced(&status), &status["forced"]), (100.0, &false.into()), "{status}");
    assert_eq!(status["journal"]["recovering"], false);
    serving.stop();
}

#[test]
fn array_without_a_journal_whose_server_was_killed_is_served_again_and_resynced() {
    let shelf = Shelf::new();
    let drives = shelf.drives(6, DRIVE);
    let create = ["array", "create", ARRAY, "--assume-clean", "--journal", "none"];
    let text = levelhead(&[&create[..], &refs(&drives)].concat()).good();
    assert!(text.contains("journal: none: a crash may leave redundancy that is wrong"), "{text}");
    let (socket, model) = kill_a_server(&shelf, &drives);
    // With a drive less it cannot be known what was being written there.
    let serve = ["array", "serve", "--nbd", &socket];
    let ended = levelhead(&[&serve[..], &refs(&drives[1..])].concat());
    assert!(ended.refusal().contains("was not stopped cleanly"), "{ended:?}");
    let serving = shelf.serve(&drives);
    let remarks = serving.said["remarks"].to_string();
    assert!(remarks.contains("resync"), "{remarks}");
    assert_eq!(serving.status()["journal"], serde_json::Value::Null);
    assert_same(&read_all(&socket), &model);
    wait_until_synced(&serving);
    serving.stop();
    let serving = shelf.serve_degraded(&drives[1..]);
    assert_same(&read_all(&socket), &model);
    serving.stop();
}

/// Serves an array, writes to it and kills the server; returns where clients found it and what they wrote.
fn kill_a_server(shelf: &Shelf, drives: &[String]) -> (String, Vec<u8>) {
    let socket = shelf.path("nbd.sock");
    let serving = shelf.serve(drives);
    let mut model = vec![0; SIZE as usize];
    scribble(&connect(&socket), &mut model, 9);
    let control = serving.control().to_owned();
    serving.signal(Signal::KILL);
    assert_eq!(serving.end().code, None);
    // Its sockets are still there, and none answers.
    assert!(shelf.names().contains(&"nbd.sock".to_owned()), "{:?}", shelf.names());
    assert!(fs::symlink_metadata(&control).is_ok(), "{control}");
    assert!(levelhead(&["array", "status", &drives[0]]).refusal().contains("no running array"));
    (socket, model)
}
