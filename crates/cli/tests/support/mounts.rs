//! Filesystems that are mounted and unmounted by the program.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::{Ended, Shelf, command, levelhead, run, wait_until};

/// Whether filesystems can be mounted here; where not, says so loudly.
pub(crate) fn can_mount() -> bool {
    let can = Path::new("/dev/fuse").exists() && rustix::process::geteuid().is_root();
    if !can {
        eprintln!("SKIPPED: there is no /dev/fuse, or no right to mount: nothing was tested");
    }
    can
}

/// A filesystem that is not mounted, and a directory for it. Dropping it unmounts.
pub(crate) struct Bed {
    pub(crate) shelf: Shelf,
    pub(crate) target: String,
    pub(crate) point: PathBuf,
}

impl Bed {
    pub(crate) fn new() -> Self {
        Self::with("64MiB", &[])
    }

    /// A filesystem of this size that is made with these options.
    pub(crate) fn with(size: &str, options: &[&str]) -> Self {
        let shelf = Shelf::new();
        let target = shelf.path("a.img");
        Self::made(shelf, target, size, options)
    }

    pub(crate) fn on(shelf: Shelf, target: String) -> Self {
        Self::made(shelf, target, "64MiB", &[])
    }

    fn made(shelf: Shelf, target: String, size: &str, options: &[&str]) -> Self {
        levelhead(&[&["fs", "mkfs", &target, "--size", size], options].concat()).good();
        let point = shelf.dir.path().join("point");
        fs::create_dir(&point).unwrap();
        // Other users look for names there.
        fs::set_permissions(shelf.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Self { shelf, target, point }
    }

    pub(crate) fn point(&self) -> &str {
        self.point.to_str().expect("a temporary folder's name is text")
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.point.join(name)
    }

    /// Mounts it; returns the program that answers.
    pub(crate) fn mount(&self, options: &str) -> Pid {
        let args = ["fs", "mount", &self.target, self.point(), "-o", options, "--json"];
        let pid = levelhead(&args).json()["pid"].as_i64().unwrap();
        Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
    }

    pub(crate) fn umount(&self) -> Ended {
        levelhead(&["fs", "umount", self.point()])
    }

    pub(crate) fn kill(&self, pid: Pid) {
        kill_process(pid, Signal::KILL).unwrap();
        gone(pid);
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        // A test that has failed leaves it mounted.
        let mut command = command(&["fs", "umount", self.point()]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        drop(command.status());
    }
}

/// Waits until a program has ended.
pub(crate) fn gone(pid: Pid) {
    let stat = format!("/proc/{}/stat", pid.as_raw_nonzero());
    // One that nobody has waited for yet is a zombie.
    let is_there = || fs::read_to_string(&stat).is_ok_and(|text| !text.contains(") Z "));
    wait_until("the program has ended", || !is_there());
}

/// An unmount that follows at once, by either program, after a clean end and with a journal to replay.
pub(crate) fn mount_and_umount_at_once(rounds: u32) {
    let bed = Bed::new();
    for round in 0..rounds {
        let pid = bed.mount("rw");
        let ended = match round % 2 {
            0 => bed.umount(),
            _ => run({
                let mut umount = Command::new("umount");
                umount.arg(&bed.point);
                umount
            }),
        };
        assert_eq!(ended.code, Some(0), "round {round}: {ended:?}");
        gone(pid);
        // What was synced before it was killed is replayed by the next mount, which is unmounted at once.
        let pid = bed.mount("rw");
        fs::write(bed.at("file"), round.to_string()).unwrap();
        File::open(bed.at("file")).unwrap().sync_all().unwrap();
        bed.kill(pid);
        assert_eq!(bed.umount().code, Some(1), "it was killed");
    }
    bed.mount("rw");
    assert_eq!(fs::read_to_string(bed.at("file")).unwrap(), (rounds - 1).to_string());
    bed.umount().good();
    levelhead(&["fs", "check", &bed.target, "--data"]).good();
}
