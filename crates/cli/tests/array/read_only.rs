//! Drives that the kernel has as read-only, which is asked before they are used.

use std::process::Command;

use crate::DRIVE;
use crate::support::{Shelf, levelhead, refs};

/// A file as a block device that takes no writes, for as long as this is.
struct Loop(String);

impl Loop {
    /// Nothing where there are no such devices, or none for this user.
    fn read_only(path: &str) -> Option<Self> {
        let made = Command::new("losetup").args(["-r", "--find", "--show", path]).output().ok()?;
        let name = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        made.status.success().then_some(Self(name))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        drop(Command::new("losetup").args(["-d", &self.0]).status());
    }
}

#[test]
fn drive_that_takes_no_writes_is_refused_or_counts_as_missing() {
    let shelf = Shelf::new();
    let drives = shelf.drives(4, DRIVE);
    let spare = drives[3].clone();
    let mut members = drives[..3].to_vec();
    levelhead(&[&["array", "create", "raid5:2+1", "--assume-clean"], &refs(&members)[..]].concat())
        .good();
    let (Some(member), Some(new)) = (Loop::read_only(&members[1]), Loop::read_only(&spare)) else {
        return eprintln!("SKIPPED: no loop devices");
    };
    members[1] = member.0.clone();
    let is_read_only =
        |name: &str| format!("{name} is read-only: the kernel takes no writes for it");
    let nbd = shelf.path("nbd.sock");
    for verb in [&["array", "assemble"][..], &["array", "serve", "--nbd", &nbd]] {
        let ended = levelhead(&[verb, &refs(&members)].concat());
        let expected = format!("{}; use --degraded to start without it", is_read_only(&member.0));
        assert!(ended.refusal().contains(&expected), "{ended:?}");
    }
    let serving = shelf.serve_degraded(&members);
    let remarks = serving.said["remarks"].to_string();
    assert!(remarks.contains(&is_read_only(&member.0)), "{remarks}");
    let status = serving.status();
    assert_eq!(
        (&status["state"], &status["drives"][1]["state"]),
        (&"degraded".into(), &"missing".into())
    );
    // Nor is one taken later.
    for verb in [&["replace", &members[0], "1"][..], &["add-spare", &members[0]]] {
        let ended = levelhead(&[&["array"], verb, &[new.0.as_str(), "--force"]].concat());
        assert!(ended.refusal().contains(&is_read_only(&new.0)), "{ended:?}");
    }
    serving.stop();
    for verb in [&["array", "create", "raid0:2", &members[0]][..], &["fs", "mkfs"]] {
        let ended = levelhead(&[verb, &[new.0.as_str(), "--force"]].concat());
        assert!(ended.refusal().contains(&is_read_only(&new.0)), "{ended:?}");
    }
}
