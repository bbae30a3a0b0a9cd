//! What is said about files and about the virtual disks this machine has. Real ones are left alone: a
//! test has no business with them.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Shelf, levelhead};

#[test]
fn file_is_a_file_and_the_rest_is_unknown() {
    let shelf = Shelf::new();
    let path = shelf.path("a.img");
    fs::File::create(&path).unwrap().set_len(5 << 20).unwrap();
    let text = levelhead(&["drive", "probe", &path]).good();
    let rest = "everything else: unknown, the drive below a file is not asked";
    assert_eq!(text, format!("{path}: file\nsize: 5MiB\n{rest}\n"));
    let value = levelhead(&["drive", "probe", &path, "--json"]).json();
    let expected = json!({ "path": path, "kind": "file", "size_bytes": 5 << 20, "unknown": {} });
    assert_eq!(value, expected);
}

#[test]
fn what_stores_nothing_is_refused() {
    let shelf = Shelf::new();
    let sentence = levelhead(&["drive", "probe", "/dev/null"]).refusal().to_owned();
    assert_eq!(sentence, "/dev/null is neither a file nor a block device");
    let folder = shelf.path("");
    let refused = levelhead(&["drive", "probe", &folder]);
    assert!(refused.refusal().contains("is neither a file nor a block device"));
    let missing = shelf.path("missing.img");
    let refused = levelhead(&["drive", "probe", &missing]);
    assert!(refused.refusal().starts_with(&format!("cannot look at {missing}: ")));
}

/// Whatever user asks, every value is there, or null with a reason.
#[test]
fn every_virtual_disk_of_this_machine_is_known_or_unknown_for_a_reason() {
    let Ok(disks) = fs::read_dir("/sys/block") else {
        eprintln!("SKIPPED: no /sys/block here");
        return;
    };
    let names = disks.map(|disk| disk.unwrap().file_name().to_string_lossy().into_owned());
    let is_virtual =
        |name: &String| ["loop", "vd", "zram"].iter().any(|kind| name.starts_with(kind));
    for name in names.filter(is_virtual) {
        let path = format!("/dev/{name}");
        if !fs::exists(&path).unwrap_or(false) {
            eprintln!("SKIPPED: {path} is not there");
            continue;
        }
        let value = levelhead(&["drive", "probe", &path, "--json"]).json();
        assert_eq!((&value["path"], &value["kind"]), (&json!(path), &json!("disk")));
        let fields = value.as_object().unwrap();
        assert_eq!(fields.len(), 18, "{value}");
        for (key, field) in fields {
            let is_unknown = value["unknown"].get(key).is_some();
            // No error recovery control is an answer, too.
            let may_be_null = is_unknown || key == "error_recovery";
            assert!(*field != Value::Null || may_be_null, "{path}: {key}");
        }
    }
}
