//! Mirrors on this machine: made, served, halved, stopped, served again.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Shelf, assert_same, connect, levelhead, read_all, refs};
use crate::{DRIVE, scribble};

/// Makes an array of new files, all alike, with a journal on its members or none.
fn make(shelf: &Shelf, array: &str, count: usize, journal: &str) -> Vec<String> {
    let drives = shelf.drives(count, DRIVE);
    let create = ["array", "create", array, "--assume-clean", "--journal", journal];
    levelhead(&[&create[..], &refs(&drives)].concat()).good();
    drives
}

fn model(size: u64) -> Vec<u8> {
    vec![0; size as usize]
}

fn states(status: &Value, count: usize) -> Vec<String> {
    (0..count).map(|at| status["drives"][at]["state"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn members_of_a_mirror_hold_the_same_bytes_and_each_is_enough() {
    let shelf = Shelf::new();
    let drives = make(&shelf, "raid1:3", 3, "none");
    let serving = shelf.serve(&drives);
    assert_eq!(serving.text("array"), "raid1:3,chunk=64KiB");
    let mut model = model(serving.size());
    let client = connect(&shelf.path("nbd.sock"));
    scribble(&client, &mut model, 1);
    drop(client);
    serving.stop();
    // All but the superblocks and the metadata, which name their members.
    let data =
        |path: &String| fs::read(path).unwrap()[1 << 20..DRIVE as usize - (1 << 20)].to_vec();
    let held: Vec<Vec<u8>> = drives.iter().map(data).collect();
    assert_same(&held[0], &held[1]);
    assert_same(&held[0], &held[2]);
    for drive in &drives {
        let serving = shelf.serve_degraded(std::slice::from_ref(drive));
        assert_same(&read_all(&shelf.path("nbd.sock")), &model);
        serving.stop();
    }
}

#[test]
fn a_drive_of_each_pair_may_fail_and_not_both_of_one() {
    let shelf = Shelf::new();
    let drives = make(&shelf, "raid10:4,chunk=8KiB", 4, "members");
    let socket = shelf.path("nbd.sock");
    let serving = shelf.serve(&drives);
    let mut model = model(serving.size());
    let fail = |drive: &str| levelhead(&["array", "fail", serving.control(), drive]);
    for (seed, drive) in [(1, "0"), (2, "3")] {
        let client = connect(&socket);
        scribble(&client, &mut model, seed);
        drop(client);
        assert_eq!(fail(drive).good(), format!("drive {drive} failed by an operator\n"));
        assert_same(&read_all(&socket), &model);
    }
    let refused = fail("1");
    let sentence =
        "drive 1 holds data that no other drive has: drive 0 is already failed or missing";
    assert!(refused.refusal().contains(sentence), "{}", refused.refusal());
    let sat_out = levelhead(&["array", "sit-out", serving.control(), "2"]);
    let sentence = "the array already avoids another copy of what drive 2 holds: it is needed";
    assert!(sat_out.refusal().contains(sentence), "{}", sat_out.refusal());
    assert_eq!(states(&serving.status(), 4), ["lost", "present", "present", "lost"]);
    serving.stop();
    let left = [drives[2].clone(), drives[1].clone()];
    let again = shelf.serve(&left);
    assert_same(&read_all(&socket), &model);
    again.stop();
    let alone = [&["array", "serve", "--nbd", &socket][..], &refs(&drives[1..2])].concat();
    let refused = levelhead(&alone);
    let sentence = "raid10:4,chunk=8KiB does not survive that drives 0,2,3 are missing";
    assert!(refused.refusal().contains(sentence), "{}", refused.refusal());
}

#[test]
fn mirror_whose_server_was_killed_starts_with_any_of_its_drives() {
    let shelf = Shelf::new();
    let drives = make(&shelf, "raid1:2", 2, "none");
    let socket = shelf.path("nbd.sock");
    let serving = shelf.serve(&drives);
    let mut model = model(serving.size());
    let client = connect(&socket);
    scribble(&client, &mut model, 3);
    drop(client);
    serving.signal(rustix::process::Signal::KILL);
    drop(serving.end());
    for drive in &drives {
        let serving = shelf.serve_degraded(std::slice::from_ref(drive));
        assert_same(&read_all(&socket), &model);
        // Nothing was written, and so the other one is taken back.
        serving.stop();
    }
    let both = shelf.serve(&drives);
    assert_eq!(both.said["remarks"].as_array().map(Vec::len), Some(1), "{}", both.said);
    assert_same(&read_all(&socket), &model);
    both.stop();
}

#[test]
fn shapes_that_no_mirror_has_are_refused() {
    let shelf = Shelf::new();
    let drives = shelf.drives(2, DRIVE);
    for (array, sentence) in [
        ("raid10:2", "raid10 needs at least 3 drives, got 2"),
        ("raid1:1", "raid1 needs at least 2 drives, got 1"),
        ("raid1:3", "raid1:3,chunk=64KiB needs 3 drives, got 2"),
        ("raid1:1+1", "'1+1' is not a number of drives"),
        ("raid1:2,parity=rotating", "raid1 has copies and no parity"),
    ] {
        let refused = levelhead(&[&["array", "create", array][..], &refs(&drives)].concat());
        assert!(refused.refusal().contains(sentence), "{array}: {}", refused.refusal());
    }
    for array in ["raid1:2", "raid1"] {
        let dry = [&["array", "create", array, "--dry-run", "--json"][..], &refs(&drives)].concat();
        assert_eq!(levelhead(&dry).json()["array"], json!("raid1:2,chunk=64KiB"));
    }
}
