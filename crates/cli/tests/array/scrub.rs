//! Bytes that change without a word, in the file of a drive.

use std::fs;
use std::os::unix::fs::FileExt;

use serde_json::{Value, json};

use crate::DRIVE;
use crate::scribble;
use crate::support::{
    Serving, Shelf, assert_same, connect, levelhead, random, read_all, refs, wait_until,
};

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

fn scrub(serving: &Serving) -> Value {
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
    let sentence = "of drive 2 held other data than was written and was repaired";
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

/// Noise over a part of a drive: what an operator reads of it, everywhere.
#[test]
fn drive_full_of_garbage_is_one_event_and_is_named_with_what_to_do() {
    let shelf = Shelf::new();
    let drives = shelf.drives(5, DRIVE);
    let (serving, model) = serve(&shelf, "raid6:3+2", &drives);
    let (from, count) = (DRIVE / 4, 60);
    let file = fs::OpenOptions::new().write(true).open(&drives[2]).unwrap();
    file.write_all_at(&random(count * 4096, 9), from).unwrap();
    let events = || -> Vec<Value> {
        let text = levelhead(&["array", "events", serving.control(), "--json"]).good();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let done = scrub(&serving);
    let found = json!([{ "drive": 2, "unreadable": 0, "wrong": count, "unrepaired": 0 }]);
    assert_eq!((&done["drives"], &done["unreported"]), (&found, &json!(0)));
    let all = events();
    let of = |name: &str| all.iter().filter(|event| event["event"] == name).collect::<Vec<_>>();
    let [repaired] = of("repaired")[..] else { panic!("{all:?}") };
    assert_eq!((&repaired["sectors"], &repaired["drive"]), (&json!(count), &json!(2)));
    let [over] = of("scrub-done")[..] else { panic!("{all:?}") };
    assert_eq!((&over["severity"], &over["drives"]), (&json!("degraded"), &found));
    let text = levelhead(&["array", "events", serving.control()]).good();
    assert!(text.contains("; drive 2: 60 wrong\n"), "{text}");
    let uuid = &serving.status()["uuid"];
    assert!(all.iter().all(|event| event["array"] == *uuid), "{all:?}");
    let status = levelhead(&["array", "status", serving.control()]).good();
    let next = format!(
        "next:      replace drive 2, which held 60 wrong sectors: levelhead array replace {} 2 DEVICE\n",
        serving.control()
    );
    assert!(status.contains(&next), "{status}");
    assert!(status.contains("errors since the array was started, less than a minute ago\n"));
    let columns: Vec<&str> =
        status.lines().find(|line| line.starts_with("2 ")).unwrap().split_whitespace().collect();
    assert_eq!(columns[3..6], ["0", "0", "60"], "{status}");
    assert_same(&read_all(&shelf.path("nbd.sock")), &model);
    serving.stop();
}

#[test]
fn with_one_redundant_drive_a_mismatch_is_told_and_nothing_is_changed() {
    let shelf = Shelf::new();
    let drives = shelf.drives(4, DRIVE);
    let (serving, _) = serve(&shelf, "raid5:3+1", &drives);
    flip(&drives[1]);
    let data =
        |drive: &String| fs::read(drive).unwrap()[1 << 20..DRIVE as usize - (1 << 20)].to_vec();
    let before: Vec<Vec<u8>> = drives.iter().map(data).collect();
    let done = scrub(&serving);
    assert_eq!((done["wrong"].as_u64(), done["unlocated"].as_u64()), (Some(0), Some(1)), "{done}");
    assert!(before == drives.iter().map(data).collect::<Vec<_>>());
    let said = levelhead(&["array", "status", serving.control()]).good();
    let state = "state:     degraded: 1 codeword does not match its redundancy; ";
    assert!(said.contains(state), "{said}");
    assert!(said.contains("next:      compare the files there with a backup; "), "{said}");
    levelhead(&["array", "status", serving.control(), "--check"]).degraded();
    serving.stop();
}

/// A stop, and a server that is killed.
#[test]
fn scrub_goes_on_after_a_restart_from_where_it_was() {
    for is_killed in [false, true] {
        let shelf = Shelf::new();
        let drives = shelf.array(32 << 20);
        let slow: Vec<String> =
            drives.iter().map(|path| format!("emu:{path}?slowdown=10")).collect();
        let serving = shelf.serve(&slow);
        let scrub = |what: &str| levelhead(&["array", "scrub", &drives[0], what, "--json"]).json();
        let stripes = |status: &Value| status["scrubbed_stripes"].as_u64().unwrap();
        levelhead(&["array", "scrub", &drives[0]]).good();
        wait_until("it has seen something", || stripes(&scrub("status")) > 0);
        levelhead(&["array", "scrub", &drives[0], "stop"]).good();
        let is_at_rest = |drive: &Value| drive["queue"] == 0;
        wait_until("its last step is over, and that is recorded", || {
            serving.status()["drives"].as_array().unwrap().iter().all(is_at_rest)
        });
        let seen = stripes(&scrub("status"));
        if is_killed {
            serving.signal(rustix::process::Signal::KILL);
            drop(serving.end());
        } else {
            levelhead(&["array", "scrub", &drives[0]]).good();
            serving.stop();
        }
        let serving = shelf.serve(&drives);
        let state = scrub("status");
        if is_killed {
            assert_eq!((&state["state"], stripes(&state)), (&"stopped".into(), seen));
            levelhead(&["array", "scrub", &drives[0]]).good();
        } else {
            let events = levelhead(&["array", "events", &drives[0]]).good();
            assert!(events.contains("scrub from stripe "), "{events}");
        }
        wait_until("it has seen everything", || scrub("status")["state"] == "done");
        let status = serving.status();
        let scrubbed = stripes(&status);
        let all = status["scrub"]["stripes"].as_u64().unwrap();
        assert_eq!(stripes(&status["scrub"]), all);
        assert!(scrubbed <= all - seen, "{scrubbed} of {all} again, after {seen}");
        serving.stop();
        let serving = shelf.serve(&drives);
        assert_eq!(scrub("status")["state"], "idle");
        serving.stop();
    }
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
