//! `levelhead fs inspect` and `fs status` of what is not mounted: what they say is so, and nothing is written.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::mounts::can_mount;
use crate::support::{Shelf, levelhead, random};

fn inspect(target: &str, args: &[&str]) -> Value {
    levelhead(&[&["fs", "inspect", target, "--json"], args].concat()).json()
}

fn number(found: &Value, name: &str) -> u64 {
    found[name].as_u64().unwrap_or_else(|| panic!("no {name} in {found}"))
}

#[test]
fn inspect_and_status_refuse_what_is_not_there() {
    let shelf = Shelf::new();
    let (target, empty, none) = (shelf.path("a.img"), shelf.path("b.img"), shelf.path("c.img"));
    levelhead(&["fs", "mkfs", &target, "--size", "16MiB"]).good();
    fs::File::create_new(&empty).unwrap().set_len(16 << 20).unwrap();
    let before = shelf.content();
    for (args, part) in [
        (vec!["inspect", &*target, "--path", "x/y"], "a.img has no file x/y"),
        (vec!["inspect", &*target, "--group", "4096"], "has 4096 sectors, got --group 4096"),
        (vec!["inspect", &*target, "--group", "-1"], "'-1' is not a sector number"),
        (vec!["inspect", &*target, "--journal", "--path", "x"], "cannot be used with"),
        (vec!["inspect", &*empty], "b.img has no levelhead filesystem"),
        (vec!["inspect", &*empty, "--journal"], "b.img has no levelhead filesystem"),
        (vec!["inspect", &*none], "cannot open"),
        (vec!["status", &*empty], "b.img has no levelhead filesystem"),
        (vec!["status", &*none], "cannot open"),
    ] {
        let ended = levelhead(&[&["fs"], &args[..]].concat());
        let sentence = ended.refusal();
        assert!(sentence.contains(part), "no '{part}' in {sentence}");
    }
    assert!(before == shelf.content(), "something has changed");
}

#[test]
fn new_filesystem_is_shown_as_it_was_made() {
    let shelf = Shelf::new();
    let target = shelf.path("a.img");
    let made = levelhead(&[
        "fs",
        "mkfs",
        &target,
        "--size",
        "64MiB",
        "--label",
        "a shelf",
        "--interleave",
        "4",
        "--metadata-copies",
        "2",
        "--json",
    ]);
    let made = made.json();
    let before = shelf.content();
    let found = inspect(&target, &[]);
    assert_eq!((&found["label"], &found["code"]), (&"a shelf".into(), &made["code"]));
    assert_eq!((number(&found, "interleave"), number(&found, "metadata_copies")), (4, 2));
    assert_eq!(number(&found, "bytes"), number(&made, "device_bytes"));
    let copies = found["superblocks"].as_array().unwrap();
    let states: Vec<&str> = copies.iter().map(|copy| copy["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["counts", "the same", "the same"]);
    assert_eq!(number(&found["counts"], "files"), 1);
    for copy in copies {
        let lba = number(copy, "lba").to_string();
        assert_eq!(inspect(&target, &["--group", &lba])["use"], "superblock");
    }
    let journal = inspect(&target, &["--journal"]);
    assert_eq!((&journal["in_order"], &journal["records"]), (&true.into(), &Value::Array(vec![])));
    let status = levelhead(&["fs", "status", &target, "--json"]).json();
    let keys = [
        "files",
        "usable_bytes",
        "free_bytes",
        "groups_stale",
        "sectors_repaired",
        "sectors_unwritable",
        "sectors_lost",
        "sectors_decoded",
        "sectors_retried",
        "files_damaged",
    ];
    for key in keys {
        number(&status, key);
    }
    assert_eq!(status["damaged"], Value::Array(vec![]));
    assert_eq!((&status["state"], &status["failure"]), (&"unmounted".into(), &Value::Null));
    assert_eq!(status.as_object().unwrap().len(), keys.len() + 3);
    assert_eq!(number(&status, "files"), 1);
    assert!(before == shelf.content(), "something was written");
    // The first sector is another's now.
    let mut bytes = fs::read(&target).unwrap();
    bytes[100] ^= 1;
    fs::write(&target, bytes).unwrap();
    let found = inspect(&target, &[]);
    let copies = found["superblocks"].as_array().unwrap();
    let states: Vec<&str> = copies.iter().map(|copy| copy["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["damaged", "counts", "the same"]);
}

#[test]
fn damaged_group_of_a_file_is_shown_sector_by_sector() {
    if !can_mount() {
        return;
    }
    let shelf = Shelf::new();
    let (target, point) = (shelf.path("a.img"), shelf.path("point"));
    levelhead(&["fs", "mkfs", &target, "--size", "64MiB"]).good();
    fs::create_dir(&point).unwrap();
    levelhead(&["fs", "mount", &target, &point]).good();
    let bytes = random(200_000, 7);
    let folder = Path::new(&point).join("folder");
    let written = fs::create_dir(&folder).and_then(|()| fs::write(folder.join("file"), &bytes));
    let mounted = levelhead(&["fs", "status", &point, "--json"]).json();
    assert_eq!((&mounted["state"], &mounted["failure"]), (&"writing".into(), &Value::Null));
    let refused = levelhead(&["fs", "inspect", &target]);
    levelhead(&["fs", "umount", &point]).good();
    written.unwrap();
    assert!(refused.refusal().contains("is mounted on"), "{refused:?}");
    let status = levelhead(&["fs", "status", &target, "--json"]).json();
    for key in ["files", "usable_bytes", "files_damaged"] {
        assert_eq!(status[key], mounted[key], "{key}");
    }
    let file = inspect(&target, &["--path", "folder/file"]);
    let windows = file["windows"].as_array().unwrap();
    let pages: u64 = windows.iter().map(|window| number(window, "pages")).sum();
    assert_eq!((number(&file, "size"), pages), (200_000, 49));
    let whole = inspect(&target, &["--path", "/folder"]);
    assert_eq!((&whole["type"], number(&whole, "size")), (&"directory".into(), 1));
    let damage = ["--path", "folder/file", "--group", "0", "--sectors", "2"];
    levelhead(&[&["fs", "damage", &target, "--seed", "5"], &damage[..]].concat()).good();
    let before = shelf.content();
    let extent = &windows[0]["extent"];
    let all = number(extent, "data") + number(extent, "redundant") * number(extent, "depth");
    let (mut bad, mut redundant) = (0, 0);
    for lba in number(extent, "lba")..number(extent, "lba") + all {
        let found = inspect(&target, &["--group", &lba.to_string()]);
        assert_eq!((&found["use"], &found["path"]), (&"file".into(), &"folder/file".into()));
        assert_eq!((number(&found, "codeword_bad"), &found["repairable"]), (2, &true.into()));
        bad += u64::from(found["state"] == "wrong");
        redundant += u64::from(found["redundant"] == true);
    }
    assert_eq!((bad, redundant), (2, all - number(extent, "data")));
    assert!(before == shelf.content(), "something was written");
}
