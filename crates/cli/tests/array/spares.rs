//! Drives that `serve` is given as spares: none of them keeps an array from being served.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::support::{Serving, Shelf, levelhead, refs, wait_until};
use crate::{DRIVE, without};

/// Asserts that the array is whole and has no spares, and stops it. What it said at its start comes back.
#[track_caller]
fn stop_whole(serving: Serving) -> Value {
    let (status, remarks) = (serving.status(), serving.said["remarks"].clone());
    assert_eq!((&status["state"], &status["spares"]), (&json!("whole"), &json!([])), "{remarks}");
    serving.stop();
    remarks
}

/// The one sentence that an array said at its start.
#[track_caller]
fn only(remarks: &Value) -> &str {
    assert_eq!(remarks.as_array().unwrap().len(), 1, "{remarks}");
    remarks[0].as_str().unwrap()
}

#[test]
fn spare_of_another_array_is_none_and_the_array_is_served() {
    let (shelf, other) = (Shelf::new(), Shelf::new());
    let (drives, foreign) = (shelf.array(DRIVE), other.array(DRIVE));
    let (socket, folder) = (shelf.path("nbd.sock"), shelf.path(""));
    let options = ["--nbd", &socket, "--spare", &foreign[1]];
    let expected = format!("no spare: {} is drive 1 of the array", foreign[1]);
    let remarks = stop_whole(shelf.serve_with(&drives, &options));
    assert!(only(&remarks).starts_with(&expected), "{remarks}");
    let scan = [&["--scan", &folder][..], &options].concat();
    let remarks = stop_whole(shelf.serve_with(&[], &scan));
    assert!(only(&remarks).starts_with(&expected), "{remarks}");
    // It may lie beside the drives, too: nothing else of its array is there.
    let inside = shelf.path("foreign.img");
    fs::copy(&foreign[1], &inside).unwrap();
    let scan = ["--scan", &folder, "--nbd", &socket, "--spare", &inside];
    let remarks = stop_whole(shelf.serve_with(&[], &scan));
    assert!(only(&remarks).contains("is drive 1 of the array"), "{remarks}");
    let refused = levelhead(&[&["array", "serve"][..], &scan[..4]].concat());
    assert!(refused.refusal().contains("holds drives of 2 arrays"), "{refused:?}");
}

#[test]
fn spare_that_holds_old_data_of_the_array_is_none_and_the_array_is_served() {
    let shelf = Shelf::new();
    let (mut drives, socket) = (shelf.array(DRIVE), shelf.path("nbd.sock"));
    let new = shelf.path("new.img");
    fs::File::create(&new).unwrap().set_len(DRIVE).unwrap();
    let copy = shelf.path("copy.img");
    let serving = shelf.serve_with(&drives, &["--nbd", &socket]);
    levelhead(&["array", "fail", &drives[0], "2"]).good();
    levelhead(&["array", "replace", &drives[0], "2", &new]).good();
    wait_until("the drive is filled", || serving.status()["state"] == "whole");
    serving.stop();
    let old = std::mem::replace(&mut drives[2], new);
    let options = ["--nbd", &socket, "--spare", &old];
    let remarks = stop_whole(shelf.serve_with(&drives, &options));
    assert_eq!(
        only(&remarks),
        format!("no spare: {old} holds old data: another drive has come into its place as drive 2")
    );
    // In a folder, too, where also a copy of a drive would keep the array from being served.
    fs::copy(&drives[4], &copy).unwrap();
    let folder = shelf.path("");
    let options = ["--scan", &folder, "--nbd", &socket, "--spare", &old, "--spare", &copy];
    let remarks = stop_whole(shelf.serve_with(&[], &options));
    let told = remarks.to_string();
    assert!(told.contains("another drive has come into its place as drive 2"), "{told}");
    assert!(told.contains("both say that they are drive 4"), "{told}");
}

#[test]
fn spare_that_has_stepped_in_may_be_a_member_under_another_name() {
    let shelf = Shelf::new();
    let (drives, socket) = (shelf.array(DRIVE), shelf.path("nbd.sock"));
    let name = shelf.path("by-id");
    symlink(&drives[4], &name).unwrap();
    let options = ["--nbd", &socket, "--spare", &name, "--spare", &drives[5]];
    let remarks = stop_whole(shelf.serve_with(&without(&drives, 5), &options));
    assert_eq!(remarks, json!([]));
    // Two names of one spare.
    let spare = shelf.path("spare.img");
    fs::File::create(&spare).unwrap().set_len(DRIVE).unwrap();
    fs::remove_file(&name).unwrap();
    symlink(&spare, &name).unwrap();
    let serving =
        shelf.serve_with(&drives, &["--nbd", &socket, "--spare", &spare, "--spare", &name]);
    assert_eq!(serving.status()["spares"], json!([spare]));
    let remarks = serving.said["remarks"].clone();
    assert_eq!(only(&remarks), format!("no spare: {spare} and {name} are the same drive"));
    serving.stop();
}

/// The array would go on from a past that is over.
#[test]
fn spare_that_knows_more_of_the_array_than_its_drives_is_not_passed_over() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let (copies, ahead) = (Shelf::new(), shelf.path("ahead.img"));
    let saved: Vec<Vec<u8>> = drives.iter().map(|drive| fs::read(drive).unwrap()).collect();
    let serving = shelf.serve(&drives);
    levelhead(&["array", "fail", &drives[0], "1"]).good();
    serving.stop();
    fs::copy(&drives[4], &ahead).unwrap();
    for (drive, bytes) in drives.iter().zip(&saved) {
        fs::write(drive, bytes).unwrap();
    }
    let socket = copies.path("nbd.sock");
    let args = [&["array", "serve", "--nbd", &socket, "--spare", &ahead][..], &refs(&drives)];
    let refused = levelhead(&args.concat());
    assert!(refused.refusal().contains("ahead.img"), "{refused:?}");
}

/// A crash while the new drive gets its superblocks and metadata leaves none of the other array beside them.
#[test]
fn drive_that_is_taken_by_force_is_none_of_another_array_any_more() {
    let (shelf, other) = (Shelf::new(), Shelf::new());
    let (drives, foreign) = (shelf.array(DRIVE), other.array(DRIVE));
    let serving = shelf.serve(&drives);
    // The copies of the superblock, and the beginnings of both slots for metadata.
    let records = |path: &str| {
        let sectors = [0, 1, 128, 255, DRIVE as usize / 4096 - 1];
        let bytes = fs::read(path).unwrap();
        sectors.map(|sector| bytes[sector * 4096..][..4096].to_vec())
    };
    let before = records(&foreign[1]);
    let refused = levelhead(&["array", "add-spare", &drives[0], &foreign[1]]);
    assert!(refused.refusal().contains("only --force takes it"), "{refused:?}");
    assert_eq!(records(&foreign[1]), before);
    levelhead(&["array", "add-spare", &drives[0], &foreign[1], "--force"]).good();
    assert!(records(&foreign[1]).iter().all(|sector| *sector == [0; 4096]));
    // A drive that the array has open keeps its own, whatever is said.
    for device in [&drives[3], &foreign[1]] {
        levelhead(&["array", "add-spare", &drives[0], device, "--force"]).refusal();
    }
    let refused = levelhead(&["array", "replace", &drives[0], "2", &drives[3], "--force"]);
    assert_eq!(refused.refusal(), format!("{} is drive 3 of this array", drives[3]));
    assert_ne!(records(&drives[3])[0], vec![0; 4096]);
    serving.stop();
}
