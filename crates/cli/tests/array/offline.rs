//! Arrays that are not served: found, and asked what serving them would be like.

use std::fs;
use std::os::unix::fs::FileExt;

use levelhead_block::Durability;
use levelhead_units::Bytes;
use serde_json::{Value, json};

use crate::support::{ARRAY, Shelf, connect, levelhead, read_all, refs};
use crate::{DRIVE, keys};

/// What `array list` says of a folder, however well its arrays are.
fn list(shelf: &Shelf) -> Value {
    let ended = levelhead(&["array", "list", folder(shelf), "--json"]);
    assert_ne!(ended.code, Some(2), "{ended:?}");
    serde_json::from_str(&ended.out).unwrap()
}

fn folder(shelf: &Shelf) -> &str {
    shelf.dir.path().to_str().unwrap()
}

/// What `array assemble` and `array serve --scan` say of a folder that they refuse, which is the same.
#[track_caller]
pub(crate) fn refusal_of_scan(folder: &str, options: &[&str]) -> String {
    let asked = levelhead(&[&["array", "assemble", folder][..], options].concat());
    let serve = ["array", "serve", "--nbd", "tcp:0", "--scan", folder];
    let served = levelhead(&[&serve[..], options].concat());
    assert_eq!(asked.refusal(), served.refusal());
    served.refusal().to_owned()
}

/// Serves an array, writes something, and stops it.
fn write_something(shelf: &Shelf, drives: &[String]) {
    let serving = shelf.serve(drives);
    let client = connect(&shelf.path("nbd.sock"));
    client.write_at(Bytes::new(0), &[7; 65536], Durability::Durable).unwrap();
    drop(client);
    serving.stop();
}

#[test]
fn list_names_every_array_with_what_is_there_of_it() {
    let shelf = Shelf::new();
    let first = shelf.array(DRIVE);
    let mirror = ["m0.img", "m1.img"].map(|name| format!("emu:{}?size=8MiB", shelf.path(name)));
    levelhead(&[&["array", "create", "raid1:2"][..], &refs(&mirror)].concat()).good();
    fs::write(shelf.path("notes.txt"), "no drive").unwrap();
    fs::create_dir(shelf.path("folder")).unwrap();
    fs::remove_file(&first[3]).unwrap();
    let before = shelf.content();
    let value = list(&shelf);
    assert!(before == shelf.content(), "something has changed");
    assert_eq!(keys(&value), ["arrays", "closed", "damaged", "looked_at"]);
    assert_eq!(value["looked_at"], 8);
    let arrays = value["arrays"].as_array().unwrap();
    assert_eq!(arrays.len(), 2);
    let of = |spec: &str| arrays.iter().find(|array| array["array"] == spec).unwrap();
    let (eraid, mirror) = (of(ARRAY), of("raid1:2,chunk=64KiB"));
    assert_eq!(
        keys(eraid),
        [
            "array",
            "drives",
            "forced",
            "generation",
            "in_use",
            "journal",
            "left_out",
            "refusal",
            "size_bytes",
            "state",
            "stopped_in_order",
            "uuid"
        ]
    );
    assert_eq!((&eraid["state"], &mirror["state"]), (&json!("degraded"), &json!("clean")));
    let missing = json!({ "drive": 3, "role": "data", "state": "missing", "members": [] });
    assert_eq!(eraid["drives"][3], missing);
    let there = json!({ "drive": 1, "role": "data", "state": "present", "members": [shelf.path("m1.img")] });
    assert_eq!(mirror["drives"][1], there);
    // One more and nothing is left to be had of it.
    fs::remove_file(&first[0]).unwrap();
    let value = list(&shelf);
    let lost = value["arrays"].as_array().unwrap().iter().find(|array| array["array"] == ARRAY);
    let lost = lost.unwrap();
    assert_eq!(lost["state"], "lost");
    let refusal = lost["refusal"].as_str().unwrap();
    assert!(
        refusal.ends_with("survives the loss of 1 drive, 2 are missing: drives 0,3"),
        "{refusal}"
    );
    let ended = levelhead(&["array", "list", folder(&shelf)]);
    let text = &ended.out;
    assert!(text.contains("would not be served: ") && text.contains("state: clean"), "{text}");
    assert_eq!(ended.code, Some(3), "{ended:?}");
}

#[test]
fn list_says_which_arrays_are_in_use_and_which_were_cut_off() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let serving = shelf.serve(&drives);
    let client = connect(&shelf.path("nbd.sock"));
    client.write_at(Bytes::new(0), &[7; 4096], Durability::Durable).unwrap();
    drop(client);
    let array = list(&shelf)["arrays"][0].clone();
    assert_eq!((&array["in_use"], &array["state"]), (&json!(true), &json!("dirty")));
    serving.signal(rustix::process::Signal::KILL);
    drop(serving.end());
    let array = list(&shelf)["arrays"][0].clone();
    assert_eq!((&array["in_use"], &array["state"]), (&json!(false), &json!("dirty")));
    assert_eq!(array["refusal"], Value::Null);
    let would = levelhead(&["array", "assemble", folder(&shelf), "--json"]).json();
    assert_eq!((&would["recovery"], &would["unsynced_stripes"]), (&json!("journal"), &json!(0)));
    shelf.serve(&drives).stop();
    assert_eq!(list(&shelf)["arrays"][0]["state"], "clean");
}

#[test]
fn assemble_says_what_serve_does_and_changes_nothing() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let old = fs::read(&drives[2]).unwrap();
    write_something(&shelf, &drives);
    write_something(&shelf, &drives);
    // An old copy of a member beside it is told from it and left where it is.
    fs::write(shelf.path("old.img"), old).unwrap();
    fs::remove_file(&drives[5]).unwrap();
    let before = shelf.content();
    let would =
        levelhead(&["array", "assemble", folder(&shelf), "--degraded", "--json"]).degraded_json();
    assert!(before == shelf.content(), "something has changed");
    assert_eq!(
        keys(&would),
        [
            "array",
            "drives",
            "forced",
            "generation",
            "journal",
            "left_out",
            "newly_missing",
            "recovery",
            "size_bytes",
            "state",
            "stopped_in_order",
            "stripes",
            "unsynced_stripes",
            "uuid",
            "would"
        ]
    );
    assert_eq!((&would["state"], &would["recovery"]), (&json!("degraded"), &json!("none")));
    let taken = json!({ "drive": 2, "role": "data", "state": "taken", "member": drives[2] });
    assert_eq!(would["drives"][2], taken);
    assert_eq!(
        would["drives"][5],
        json!({ "drive": 5, "role": "data", "state": "missing", "member": null })
    );
    let left = &would["left_out"][0];
    assert_eq!((&left["member"], &left["state"]), (&json!(shelf.path("old.img")), &json!("stale")));
    assert_eq!(would["newly_missing"], json!([5]));
    let text = levelhead(&["array", "assemble", folder(&shelf), "--degraded"]).degraded();
    assert!(text.starts_with(&format!("would serve {ARRAY}, ")), "{text}");
    // The members themselves may be named as well.
    let named = [&["array", "assemble", "--degraded", "--json"][..], &refs(&drives[..5])].concat();
    assert_eq!(levelhead(&named).degraded_json()["drives"], would["drives"]);
    // And serve does what was said.
    let socket = shelf.path("nbd.sock");
    let scan = ["array", "serve", "--scan", folder(&shelf), "--nbd", &socket, "--degraded"];
    let serving = crate::support::Serving::start(&scan);
    assert_eq!(serving.said["remarks"], would["would"]);
    assert_eq!(serving.status()["drives"][2]["member"], drives[2].as_str());
    serving.stop();
}

#[test]
fn scan_refuses_what_it_cannot_tell_apart_with_the_sentence_of_serve() {
    let shelf = Shelf::new();
    let none = refusal_of_scan(folder(&shelf), &[]);
    let expected =
        format!("no drive of an array is among the 0 files and devices in {}", folder(&shelf));
    assert_eq!(none, expected);
    let notes = shelf.path("notes.img");
    fs::write(&notes, [0; 4096]).unwrap();
    let one = refusal_of_scan(folder(&shelf), &[]);
    assert!(one.contains("is among the 1 file or device in"), "{one}");
    fs::remove_file(&notes).unwrap();
    let drives = shelf.array(DRIVE);
    let uuid = list(&shelf)["arrays"][0]["uuid"].as_str().unwrap().to_owned();
    // A copy of a member at the same generation: which of them is the drive is not for a program to say.
    let copy = shelf.path("copy.img");
    fs::copy(&drives[1], &copy).unwrap();
    let expected = format!("{copy} and {} both say that they are drive 1", drives[1]);
    assert_eq!(refusal_of_scan(folder(&shelf), &[]), expected);
    assert_eq!(list(&shelf)["arrays"][0]["drives"][1]["state"], "duplicated");
    assert_eq!(list(&shelf)["arrays"][0]["state"], "unclear");
    fs::remove_file(&copy).unwrap();
    // Another array beside it.
    let mirror = ["m0.img", "m1.img"].map(|name| format!("emu:{}?size=8MiB", shelf.path(name)));
    levelhead(&[&["array", "create", "raid1:2"][..], &refs(&mirror)].concat()).good();
    let several = refusal_of_scan(folder(&shelf), &[]);
    assert!(several.contains("holds drives of 2 arrays, only --array UUID says"), "{several}");
    assert!(several.contains(&uuid), "{several}");
    let wrong = refusal_of_scan(folder(&shelf), &["--array", "zz"]);
    assert!(wrong.ends_with("holds no drive of an array whose UUID begins with zz"), "{wrong}");
    let start = uuid[..8].to_uppercase();
    let would =
        levelhead(&["array", "assemble", folder(&shelf), "--array", &start, "--json"]).json();
    assert_eq!(would["uuid"], uuid.as_str());
    // Folders and drives are not mixed.
    let named = [&["array", "assemble", "--array", &start][..], &refs(&drives)].concat();
    let named = levelhead(&named);
    assert!(named.refusal().ends_with("and no folder is named"), "{named:?}");
    let mixed = levelhead(&["array", "assemble", folder(&shelf), &drives[0]]);
    assert!(mixed.refusal().contains("is not a folder: expected drives, or folders"), "{mixed:?}");
}

#[test]
fn what_only_a_drive_knows_that_cannot_be_used_is_not_passed_over() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    write_something(&shelf, &drives);
    let old: Vec<Vec<u8>> = drives.iter().map(|drive| fs::read(drive).unwrap()).collect();
    write_something(&shelf, &drives);
    // All but one are put back as they were, and that one is shorter than it was.
    for (drive, old) in drives.iter().zip(&old).take(5) {
        fs::write(drive, old).unwrap();
    }
    let file = fs::File::options().write(true).open(&drives[5]).unwrap();
    file.set_len(DRIVE - 4096).unwrap();
    let refusal = refusal_of_scan(folder(&shelf), &[]);
    assert!(refusal.contains("d5.img has shrunk to"), "{refusal}");
    assert!(refusal.ends_with("no other drive knows as much of the array"), "{refusal}");
    // Without it nothing says that there was more.
    for copy in [0, 255] {
        file.write_all_at(&[0; 4096], copy * 4096).unwrap();
    }
    let would =
        levelhead(&["array", "assemble", folder(&shelf), "--degraded", "--json"]).degraded_json();
    assert_eq!(would["state"], "degraded");
}

#[test]
fn check_of_a_killed_server_is_content_and_of_a_flipped_byte_names_it() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let check = [&["array", "check", "--json"][..], &refs(&drives)].concat();
    let serving = shelf.serve(&drives);
    let client = connect(&shelf.path("nbd.sock"));
    let mut model = vec![0; serving.size() as usize];
    crate::scribble(&client, &mut model, 3);
    drop(client);
    let busy = levelhead(&check);
    assert_eq!(busy.refusal(), format!("{} is in use by another process", drives[0]));
    serving.signal(rustix::process::Signal::KILL);
    drop(serving.end());
    let before = shelf.content();
    let value = levelhead(&check).json();
    assert_eq!(
        keys(&value),
        [
            "array",
            "checksums",
            "codewords",
            "doubt",
            "drives",
            "findings",
            "findings_beyond",
            "journal",
            "left_out",
            "megabytes_per_second",
            "read_bytes",
            "seconds",
            "size_bytes",
            "stopped_in_order",
            "uuid"
        ]
    );
    assert_eq!((&value["findings"], &value["stopped_in_order"]), (&json!([]), &json!(false)));
    assert_eq!(value["codewords"]["right"].as_u64(), Some(serving_rows()));
    let text = levelhead(&["array", "check", "--scan", folder(&shelf)]).good();
    assert!(text.ends_with("nothing is wrong\n"), "{text}");
    assert!(before == shelf.content(), "a check has changed something");
    // Recovered, and then a bit flips where no one looks.
    shelf.serve(&drives).stop();
    let mut bytes = fs::read(&drives[4]).unwrap();
    bytes[(1 << 20) + 5] ^= 1;
    fs::write(&drives[4], bytes).unwrap();
    let ended = levelhead(&check);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.err, "levelhead: degraded: 1 thing is wrong with the array\n");
    let value: Value = serde_json::from_str(&ended.out).unwrap();
    let finding = &value["findings"][0];
    assert_eq!((&finding["kind"], &finding["drive"]), (&json!("mismatch"), &Value::Null));
    assert_eq!(finding["drives"], json!([0, 1, 2, 3, 4, 5]));
    assert_eq!(finding["on_drive"], json!({ "first_sector": 256, "sectors": 2 }));
    // Wrong input is no finding.
    let none = levelhead(&["array", "check", &shelf.path("none.img")]);
    assert!(none.refusal().ends_with("does not exist"), "{none:?}");
    let few = levelhead(&["array", "check", &drives[0]]);
    assert!(few.failure().contains("survives the loss of 1 drive, 5 are missing"), "{few:?}");
}

/// Codewords of the array of the tests: two sectors of each drive.
fn serving_rows() -> u64 {
    crate::SIZE / 5 / 8192
}

/// Two of six drives are gone, and an old copy of one of them turns up.
#[test]
fn salvage_takes_what_is_there_names_what_is_lost_and_writes_to_no_drive() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let socket = shelf.path("nbd.sock");
    let fill = |seed: u64| {
        let serving = shelf.serve(&drives);
        let bytes = crate::support::random(serving.size(), seed);
        connect(&socket).write_at(Bytes::new(0), &bytes, Durability::Durable).unwrap();
        serving.stop();
        bytes
    };
    let before = fill(1);
    let old = fs::read(&drives[1]).unwrap();
    let after = fill(2);
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let salvage = |members: &[&str], to: &str| {
        levelhead(&[&["array", "salvage", "--json", "--to", to][..], members].concat())
    };
    // Nothing is missing.
    let whole = salvage(&refs(&drives), &file("whole"));
    let value = whole.json();
    assert_eq!(value["sectors"]["read"].as_u64(), Some(crate::SIZE / 4096));
    assert!(fs::read(file("whole")).unwrap() == after);
    // One is: what it had is computed.
    let value = salvage(&refs(&drives[..5]), &file("degraded")).json();
    assert!(value["sectors"]["computed"].as_u64() > Some(0), "{value}");
    assert!(fs::read(file("degraded")).unwrap() == after);
    // Two are, beyond help.
    let content = shelf.content();
    let left = [&refs(&drives[..1])[..], &refs(&drives[2..5])].concat();
    let ended = salvage(&left, &file("lost"));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let value: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(
        keys(&value),
        [
            "array",
            "checksums",
            "drives",
            "file",
            "left_out",
            "named",
            "old",
            "refusal",
            "sectors",
            "size_bytes",
            "uuid"
        ]
    );
    let refusal = value["refusal"].as_str().unwrap();
    assert!(refusal.ends_with("2 are missing: drives 1,5"), "{refusal}");
    let lost = value["sectors"]["lost"].as_u64().unwrap();
    let read = value["sectors"]["read"].as_u64().unwrap();
    assert_eq!(lost + read, crate::SIZE / 4096);
    let got = fs::read(file("lost")).unwrap();
    let is_lost = |at: usize| got[at * 4096..(at + 1) * 4096].iter().all(|&byte| byte == 0);
    let sectors = got.len() / 4096;
    assert_eq!((0..sectors).filter(|&at| is_lost(at)).count() as u64, lost);
    let same = |at: usize, as_in: &[u8]| got[at * 4096..][..4096] == as_in[at * 4096..][..4096];
    assert!((0..sectors).all(|at| is_lost(at) || same(at, &after)));
    let named = &value["named"][0];
    assert!(is_lost(named["first_sector"].as_u64().unwrap() as usize), "{named}");
    // With the old copy that is older than the others say.
    fs::write(shelf.path("old.img"), &old).unwrap();
    let path = shelf.path("old.img");
    let ended = salvage(&[&left[..], &[&path]].concat(), &file("old"));
    let value: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(value["old"], json!([{ "drive": 1, "member": path }]));
    let older = value["sectors"]["old"].as_u64().unwrap();
    assert!(older > 0 && older + value["sectors"]["lost"].as_u64().unwrap() == lost, "{value}");
    let with_old = fs::read(file("old")).unwrap();
    let same =
        |at: usize, as_in: &[u8]| with_old[at * 4096..][..4096] == as_in[at * 4096..][..4096];
    assert_eq!((0..sectors).filter(|&at| same(at, &before)).count() as u64, older);
    fs::remove_file(&path).unwrap();
    assert!(content == shelf.content(), "a drive has been written to");
    // No file is written over.
    let again = salvage(&left, &file("lost"));
    assert!(again.refusal().contains("cannot write"), "{again:?}");
}

#[test]
fn upgrade_goes_both_ways_and_refuses_an_array_that_is_served() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    write_something(&shelf, &drives);
    let upgrade = |args: &[&str]| {
        levelhead(&[&["array", "upgrade", "--json"], args, &refs(&drives)[..]].concat())
    };
    let before = shelf.content();
    let value: Value = serde_json::from_str(&upgrade(&[]).good()).unwrap();
    assert_eq!(keys(&value), ["array", "converted", "members", "uuid", "version"]);
    let of = |value: &Value| (value["version"].clone(), value["converted"].clone());
    assert_eq!(of(&value), (json!(3), json!(false)));
    assert!(before == shelf.content(), "something has changed");
    let value: Value = serde_json::from_str(&upgrade(&["--to", "2"]).good()).unwrap();
    assert_eq!(of(&value), (json!(2), json!(true)));
    let refused = levelhead(&[&["array", "assemble"], &refs(&drives)[..]].concat());
    let sentence = refused.refusal();
    assert!(
        sentence.contains("of version 2, this program reads 3: run levelhead array upgrade"),
        "{sentence}"
    );
    let scanned = levelhead(&["array", "upgrade", "--scan", folder(&shelf)]).good();
    assert!(scanned.contains("converted to version 3: "), "{scanned}");
    let serving = shelf.serve(&drives);
    let refused = levelhead(&[&["array", "upgrade", "--to", "2"], &refs(&drives)[..]].concat());
    assert!(refused.refusal().contains("is in use"), "{refused:?}");
    assert!(read_all(&shelf.path("nbd.sock"))[..65_536].iter().all(|&byte| byte == 7));
    serving.stop();
}
