//! Bytes that change without a word, in the file of a drive.

use std::fs;
use std::os::unix::fs::FileExt;

use crate::DRIVE;
use crate::scribble;
use crate::support::{Serving, Shelf, assert_same, connect, levelhead, read_all, refs, wait_until};

fn serve(shelf: &Shelf, array: &str, drives: &[String]) -> (Serving, Vec<u8>) {
    let create = ["array", "create", array, "--assume-clean", "--journal", "none"];
    levelhead(&[&create[..], &refs(drives)].concat()).good();
    let serving = shelf.serve(drives);
    let mut model = vec![0; serving.size() as usize];
    scribble(&connect(&shelf.path("nbd.sock")), &mut model, 1);
    (serving, model)
}

/// Changes a sector of the data that the drive holds: in its middle is the place for a journal.
fn flip(drive: &str) {
    let file = fs::OpenOptions::new().read(true).write(true).open(drive).unwrap();
    let mut sector = [0; 4096];
    file.read_exact_at(&mut sector, DRIVE / 4).unwrap();
    sector.iter_mut().for_each(|byte| *byte ^= 0x55);
    file.write_all_at(&sector, DRIVE / 4).unwrap();
}

fn scrub(serving: &Serving) -> serde_json::Value {
    levelhead(&["array", "scrub", serving.control()]).good();
    let status = || levelhead(&["array", "scrub", serving.control(), "status", "--json"]).json();
    wait_until("the scrub is over", || status()["state"] == "done");
    status()
}

#[test]
fn drive_that_is_wrong_is_found_repaired_and_named() {
    let shelf = Shelf::new();
    let drives = shelf.drives(5, DRIVE);
    let (serving, model) = serve(&shelf, "raid6:3+2", &drives);
    let before = fs::read(&drives[2]).unwrap();
    flip(&drives[2]);
    let done = scrub(&serving);
    assert_eq!((done["wrong"].as_u64(), done["unlocated"].as_u64()), (Some(1), Some(0)), "{done}");
    assert_eq!(done["scrubbed_stripes"], done["stripes"]);
    let events = levelhead(&["array", "events", serving.control()]).good();
    let sentence = "of drive 2 held something else than what was written and are right again";
    assert!(events.contains(sentence), "{events}");
    assert!(events.contains("scrub: done"), "{events}");
    assert_same(&read_all(&shelf.path("nbd.sock")), &model);
    let reserved = 1 << 20;
    let data = |bytes: Vec<u8>| bytes[reserved..DRIVE as usize - reserved].to_vec();
    assert_same(&data(fs::read(&drives[2]).unwrap()), &data(before));
    let refused = levelhead(&["array", "scrub", serving.control(), "stop"]);
    assert!(refused.refusal().contains("no scrub is under way"), "{}", refused.refusal());
    let none = levelhead(&["array", "status", serving.control(), "--damaged"]).good();
    assert_eq!(none, "no sector is damaged\n");
    serving.stop();
}

#[test]
fn with_one_redundant_drive_a_mismatch_is_told_and_nothing_is_changed() {
    let shelf = Shelf::new();
    let drives = shelf.drives(4, DRIVE);
    let (serving, _) = serve(&shelf, "raid5:3+1", &drives);
    flip(&drives[1]);
    let before: Vec<Vec<u8>> = drives.iter().map(|drive| fs::read(drive).unwrap()).collect();
    let done = scrub(&serving);
    assert_eq!((done["wrong"].as_u64(), done["unlocated"].as_u64()), (Some(0), Some(1)), "{done}");
    let after: Vec<Vec<u8>> = drives.iter().map(|drive| fs::read(drive).unwrap()).collect();
    assert!(before == after);
    let said = levelhead(&["array", "status", serving.control()]).good();
    assert!(said.contains("1 codewords do not match and cannot be told apart"), "{said}");
    serving.stop();
}

#[test]
fn array_without_redundancy_has_nothing_to_compare() {
    let shelf = Shelf::new();
    let drives = shelf.drives(2, DRIVE);
    let (serving, _) = serve(&shelf, "raid0:2", &drives);
    let refused = levelhead(&["array", "scrub", serving.control()]);
    assert!(refused.refusal().contains("has nothing to compare"), "{}", refused.refusal());
    serving.stop();
}
