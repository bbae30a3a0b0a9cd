//! Files of kinds with forced zeroes, by the program: how they get their kind, and that they keep what they hold.

use std::fs;

use crate::support::mounts::{Bed, can_mount};
use crate::support::{levelhead, random};

fn path(bed: &Bed, name: &str) -> String {
    bed.at(name).display().to_string()
}

fn kind(path: &str) -> String {
    let mut value = [0; 16];
    let count = rustix::fs::getxattr(path, "user.levelhead.kind", &mut value).unwrap();
    String::from_utf8_lossy(&value[..count]).into_owned()
}

#[test]
fn kind_comes_from_the_mount_the_directory_or_is_set() {
    if !can_mount() {
        return;
    }
    let bed = Bed::with("64MiB", &["--zero-forcing"]);
    bed.mount("kind=b");
    fs::create_dir(path(&bed, "changed")).unwrap();
    levelhead(&["fs", "set", &path(&bed, "changed"), "kind=mutable"]).good();
    let names = ["cold", "changed/one", "other"];
    for (at, name) in names.into_iter().enumerate() {
        fs::write(path(&bed, name), random(700_000, at as u64)).unwrap();
    }
    let set = levelhead(&["fs", "set", &path(&bed, "other"), "kind=auto", "--json"]).json();
    assert_eq!((&set["kind"], &set["is_directory"]), (&"auto".into(), &false.into()));
    assert_eq!(names.map(|name| kind(&path(&bed, name))), ["b", "mutable", "auto"]);
    bed.umount().good();
    // Everything that can be repaired is, of all kinds.
    let damage = ["fs", "damage", &bed.target, "--seed", "3", "--per-group", "max", "--json"];
    let damaged = levelhead(&damage).json();
    assert!(damaged["sectors_damaged"].as_u64().unwrap() > 24, "{damaged}");
    bed.mount("ro");
    for (at, name) in names.into_iter().enumerate() {
        assert!(fs::read(path(&bed, name)).unwrap() == random(700_000, at as u64), "{name}");
    }
    bed.umount().good();
    let scrubbed = levelhead(&["fs", "scrub", &bed.target, "--json"]).json();
    assert_eq!(scrubbed["sectors_repaired"], damaged["sectors_damaged"], "{scrubbed}");
    let checked = levelhead(&["fs", "check", &bed.target, "--data", "--json"]).json();
    assert_eq!(checked["problems"], 0, "{checked}");
}

#[test]
fn kinds_that_cannot_be_are_refused_in_a_sentence() {
    if !can_mount() {
        return;
    }
    let bed = Bed::new();
    let mount = ["fs", "mount", &bed.target, bed.point(), "-o", "kind=mutable"];
    let refused = levelhead(&mount);
    assert!(refused.refusal().contains("was made without --zero-forcing"), "{refused:?}");
    bed.mount("kind=a");
    fs::write(path(&bed, "file"), "text").unwrap();
    let refused = levelhead(&["fs", "set", &path(&bed, "file"), "kind=b"]);
    assert!(refused.refusal().contains("made with --zero-forcing"), "{refused:?}");
    for (path, setting, says) in [
        (path(&bed, "file"), "kind=z", "a kind is auto, a, b or mutable"),
        (path(&bed, "file"), "b", "expected kind=KIND"),
        (path(&bed, "none"), "kind=a", "No such file"),
        (bed.shelf.path("a.img"), "kind=a", "no filesystem that is mounted by levelhead"),
    ] {
        let refused = levelhead(&["fs", "set", &path, setting]);
        assert!(refused.refusal().contains(says), "{refused:?}");
    }
}
