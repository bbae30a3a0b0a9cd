//! Files of kinds with forced zeroes, by the program: how they get their kind, and that they keep what they hold.

use std::fs;
use std::path::PathBuf;

use crate::support::mounts::can_mount;
use crate::support::{Shelf, command, levelhead, random};

/// A filesystem that is unmounted when it is dropped.
struct Bed {
    shelf: Shelf,
    target: String,
    point: PathBuf,
}

impl Bed {
    fn new(options: &[&str]) -> Self {
        let shelf = Shelf::new();
        let (target, point) = (shelf.path("a.img"), shelf.dir.path().join("point"));
        levelhead(&[&["fs", "mkfs", &target, "--size", "64MiB"], options].concat()).good();
        fs::create_dir(&point).unwrap();
        Self { shelf, target, point }
    }

    fn point(&self) -> String {
        self.point.display().to_string()
    }

    #[track_caller]
    fn mount(&self, options: &str) {
        levelhead(&["fs", "mount", &self.target, &self.point(), "-o", options]).good();
    }

    #[track_caller]
    fn umount(&self) {
        levelhead(&["fs", "umount", &self.point()]).good();
    }

    fn path(&self, name: &str) -> String {
        self.point.join(name).display().to_string()
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let mut command = command(&["fs", "umount", &self.point()]);
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        drop(command.status());
    }
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
    let bed = Bed::new(&["--zero-forcing"]);
    bed.mount("kind=b");
    fs::create_dir(bed.path("changed")).unwrap();
    levelhead(&["fs", "set", &bed.path("changed"), "kind=mutable"]).good();
    let names = ["cold", "changed/one", "other"];
    for (at, name) in names.into_iter().enumerate() {
        fs::write(bed.path(name), random(700_000, at as u64)).unwrap();
    }
    let set = levelhead(&["fs", "set", &bed.path("other"), "kind=auto", "--json"]).json();
    assert_eq!((&set["kind"], &set["is_directory"]), (&"auto".into(), &false.into()));
    assert_eq!(names.map(|name| kind(&bed.path(name))), ["b", "mutable", "auto"]);
    bed.umount();
    // Everything that can be repaired is, of all kinds.
    let damage = ["fs", "damage", &bed.target, "--seed", "3", "--per-group", "max", "--json"];
    let damaged = levelhead(&damage).json();
    assert!(damaged["sectors_damaged"].as_u64().unwrap() > 24, "{damaged}");
    bed.mount("ro");
    for (at, name) in names.into_iter().enumerate() {
        assert!(fs::read(bed.path(name)).unwrap() == random(700_000, at as u64), "{name}");
    }
    bed.umount();
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
    let bed = Bed::new(&[]);
    let mount = ["fs", "mount", &bed.target, &bed.point(), "-o", "kind=mutable"];
    let refused = levelhead(&mount);
    assert!(refused.refusal().contains("was made without --zero-forcing"), "{refused:?}");
    bed.mount("kind=a");
    fs::write(bed.path("file"), "text").unwrap();
    let refused = levelhead(&["fs", "set", &bed.path("file"), "kind=b"]);
    assert!(refused.refusal().contains("made with --zero-forcing"), "{refused:?}");
    for (path, setting, says) in [
        (bed.path("file"), "kind=z", "a kind is auto, a, b or mutable"),
        (bed.path("file"), "b", "expected kind=KIND"),
        (bed.path("none"), "kind=a", "No such file"),
        (bed.shelf.path("a.img"), "kind=a", "no filesystem that is mounted by levelhead"),
    ] {
        let refused = levelhead(&["fs", "set", &path, setting]);
        assert!(refused.refusal().contains(says), "{refused:?}");
    }
}
