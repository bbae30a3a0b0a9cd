//! The course of events: two arrays, each served by `levelhead@NAME.service`, each a disk of the kernel's, each under a
//! file system that is used all the time.
//!
//! ```text
//!   create, start, attach, mkfs, mount
//!   load ------------------------------------------------------------> over
//!        fail a drive, replace it, kill -9 while it is being filled,
//!        systemd starts the server again, connect again, filled
//!   umount, fsck, mount read-only, compare every file, umount
//!   scrub, detach, stop, check every codeword
//! ```
//!
//! The server of one reads back what it writes, and must not find that anything was not stored.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::files::{Progress, Tree};
use crate::kernel::Device;

/// What nothing here may take: an emulated processor is slow.
const PATIENCE: Duration = Duration::from_secs(400);

/// Operations on a file system between one event and the next.
const BETWEEN: u64 = 150;

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A file system on an array.
struct Disk {
    /// What the file system, the array's unit and its folder are called.
    name: &'static str,
    shape: &'static str,
    /// Where its drives lie, and what their names begin with.
    folder: &'static str,
    member: &'static str,
    /// How many there are; the one behind is new.
    drives: usize,
    /// The one that is lost.
    lost: usize,
    device: Device,
    /// Whether its server reads back what it has written.
    verify: &'static str,
    make: &'static [&'static str],
    fsck: &'static [&'static str],
}

const DISKS: [Disk; 2] = [
    Disk {
        name: "ext4",
        shape: "eraid:5+1,e=2,chunk=8KiB",
        folder: "/var/lib/levelhead",
        member: "d",
        drives: 6,
        lost: 2,
        device: Device { index: 0, block_size: 512 },
        verify: "off",
        make: &["mkfs.ext4", "-q"],
        fsck: &["fsck.ext4", "-fn"],
    },
    Disk {
        name: "xfs",
        shape: "raid6:4+2,chunk=16KiB",
        folder: "/dev/disk/by-id",
        member: "virtio-d",
        drives: 6,
        lost: 3,
        device: Device { index: 1, block_size: 4096 },
        verify: "idle",
        make: &["mkfs.xfs", "-q"],
        fsck: &["xfs_repair", "-n"],
    },
];

/// Tells the host.
pub(crate) fn say(text: &str) {
    println!("soak: {text}");
}

/// Tells the host what went wrong and what went before, and ends the machine at once: it may have disks that hang.
pub(crate) fn fail(error: &dyn std::error::Error) {
    say(&format!("FAILED: {error}"));
    let journal = ["--no-pager", "--lines=60", "--output=cat", "--unit=levelhead@*"];
    for (program, args) in [("journalctl", &journal[..]), ("dmesg", &["--level=err,warn"])] {
        match call(program, args) {
            Ok(out) => println!("{out}"),
            Err(error) => say(&error.to_string()),
        }
    }
    if let Err(error) = std::fs::write("/proc/sysrq-trigger", "o") {
        say(&format!("no way to end the machine: {error}"));
    }
}

pub(crate) fn run(seed: u64) -> Outcome<()> {
    let begun = Instant::now();
    for module in ["nbd", "xfs"] {
        call("modprobe", &[module])?;
    }
    let uuids = [DISKS[0].begin()?, DISKS[1].begin()?];
    let progress = [Progress::default(), Progress::default()];
    let ends = thread::scope(|scope| {
        let loads: Vec<_> = DISKS
            .iter()
            .zip(&progress)
            .enumerate()
            .map(|(at, (disk, progress))| {
                scope.spawn(move || -> Outcome<Tree> {
                    let mut tree = Tree::new(Path::new(&disk.mount()), seed + at as u64)?;
                    tree.run(progress)?;
                    Ok(tree)
                })
            })
            .collect();
        let events = events(&progress, || loads.iter().any(ScopedJoinHandle::is_finished));
        if let (Err(error), false) = (&events, loads.iter().any(ScopedJoinHandle::is_finished)) {
            // A load whose device is dead would not end for long.
            fail(error.as_ref());
        }
        for progress in &progress {
            progress.is_over.store(true, Ordering::SeqCst);
        }
        let ends: Vec<_> =
            loads.into_iter().map(|load| load.join().expect("a load panicked")).collect();
        // What a load found says more than that it has ended.
        let trees = ends.into_iter().collect::<Outcome<Vec<Tree>>>()?;
        events.map(|()| trees)
    });
    for ((disk, mut tree), (uuid, progress)) in
        DISKS.iter().zip(ends?).zip(uuids.iter().zip(&progress))
    {
        disk.finish(&mut tree, uuid)?;
        let (written, compared) = (tree.written >> 20, tree.compared >> 20);
        let done = progress.done.load(Ordering::SeqCst);
        let name = disk.name;
        say(&format!("{name}: {done} operations, {written} MiB written, {compared} MiB compared"));
    }
    say(&format!("good after {} s", begun.elapsed().as_secs()));
    Ok(())
}

/// What happens while both file systems are used.
fn events(progress: &[Progress; 2], has_ended: impl Fn() -> bool) -> Outcome<()> {
    let pass = |what: &str| -> Outcome<()> {
        let marks =
            progress.each_ref().map(|progress| progress.done.load(Ordering::SeqCst) + BETWEEN);
        wait(&format!("operations {what}"), || {
            if has_ended() {
                return Err("a load has ended by itself".into());
            }
            let done = progress.iter().zip(marks);
            Ok(done
                .into_iter()
                .all(|(progress, mark)| progress.done.load(Ordering::SeqCst) >= mark))
        })
    };
    pass("on whole arrays")?;
    for disk in &DISKS {
        disk.levelhead(&["fail", &disk.control(), &disk.lost.to_string()])?;
    }
    pass("without a drive")?;
    for disk in &DISKS {
        let new = disk.path(disk.drives);
        disk.levelhead(&["replace", &disk.control(), &disk.lost.to_string(), &new])?;
    }
    for disk in &DISKS {
        wait("an eighth of the new drive is filled", || {
            let rebuild = &disk.status()?["rebuild"];
            let count = |key: &str| rebuild[key].as_u64().unwrap_or_default();
            Ok(count("done_stripes") * 8 >= count("stripes"))
        })?;
        disk.kill()?;
    }
    pass("after servers were killed")?;
    for disk in &DISKS {
        wait("the new drive is filled", || Ok(disk.status()?["state"] == "whole"))?;
        say(&format!("{}: drive {} is replaced", disk.name, disk.lost));
    }
    pass("on whole arrays again")
}

impl Disk {
    /// Makes the array and serves it, and makes and mounts the file system. The array's UUID.
    fn begin(&self) -> Outcome<String> {
        let members: Vec<String> = (0..self.drives).map(|at| self.path(at)).collect();
        let mut args = vec!["create", self.shape, "--assume-clean"];
        args.extend(members.iter().map(String::as_str));
        let uuid = self.levelhead(&args)?["uuid"].as_str().unwrap_or_default().to_owned();
        // By folder: the drive that is replaced is found at the next start as well.
        let options = format!(
            "MEMBERS=\nOPTIONS=--scan {} --array {uuid} --verify-writes {}\n",
            self.folder, self.verify
        );
        std::fs::create_dir_all("/etc/levelhead")?;
        std::fs::write(format!("/etc/levelhead/{}.conf", self.name), options)?;
        call("systemctl", &["start", &self.unit()])?;
        let state = self.unit_says(&["Type", "ActiveState", "SubState", "StatusText"])?;
        say(&format!("{}: {} {}", self.name, self.unit(), state.join(" ")));
        if state[..3] != ["notify", "active", "running"] || !state[3].contains("whole") {
            return Err(format!("{} is not as it should be", self.unit()).into());
        }
        self.device.connect(&self.socket())?;
        let device = self.node();
        call(self.make[0], &[&self.make[1..], &[&device]].concat())?;
        std::fs::create_dir_all(self.mount())?;
        call("mount", &[&device, &self.mount()])?;
        Ok(uuid)
    }

    /// Kills the server while a drive is being filled, and has the device go on once systemd has started it again.
    fn kill(&self) -> Outcome<()> {
        let before = self.status()?;
        let Some(done) = before["rebuild"]["done_stripes"].as_u64() else {
            return Err(format!("{}: the drive was filled before the kill", self.name).into());
        };
        self.check_read_back(&before)?;
        let stripes = &before["rebuild"]["stripes"];
        call("systemctl", &["kill", "--kill-who=main", "--signal=KILL", &self.unit()])?;
        wait("the server has been started again", || {
            let state = self.unit_says(&["ActiveState", "NRestarts", "Result"])?;
            if state[0] == "failed" {
                return Err(format!("{} has not been started again: {state:?}", self.unit()).into());
            }
            Ok(state[0] == "active" && state[1] != "0")
        })?;
        self.device.connect_again(&self.socket())?;
        let name = self.name;
        say(&format!(
            "{name}: killed with {done} of {stripes} stripes filled, serves and is connected again"
        ));
        Ok(())
    }

    /// Takes the file system down, and looks at it and at the array.
    fn finish(&self, tree: &mut Tree, uuid: &str) -> Outcome<()> {
        let (device, mount) = (self.node(), self.mount());
        call("umount", &[&mount])?;
        call(self.fsck[0], &[&self.fsck[1..], &[&device]].concat())?;
        call("mount", &["-o", "ro", &device, &mount])?;
        tree.check()?;
        call("umount", &[&mount])?;
        say(&format!("{}: {} finds nothing, every file is right", self.name, self.fsck.join(" ")));
        let control = self.control();
        self.levelhead(&["scrub", &control])?;
        wait("the scrub is done", || {
            Ok(self.levelhead(&["scrub", &control, "status"])?["state"] == "done")
        })?;
        let scrub = self.levelhead(&["scrub", &control, "status"])?;
        let status = self.status()?;
        let is_clean =
            ["unreadable", "wrong", "unrepaired", "unlocated"].iter().all(|key| scrub[key] == 0);
        if !is_clean || status["damaged"]["sectors"] != 0 {
            return Err(
                format!("{}: scrub {scrub}, damaged {}", self.name, status["damaged"]).into()
            );
        }
        self.check_read_back(&status)?;
        self.device.disconnect()?;
        call("systemctl", &["stop", &self.unit()])?;
        let state = self.unit_says(&["ActiveState", "Result", "ExecMainStatus"])?;
        if state != ["inactive", "success", "0"] {
            return Err(format!("{} has ended as {state:?}", self.unit()).into());
        }
        let check = self.levelhead(&["check", "--scan", self.folder, "--array", uuid])?;
        let right = &check["codewords"]["right"];
        if check["stopped_in_order"] != true {
            return Err(format!("{}: the array was not stopped cleanly", self.name).into());
        }
        say(&format!("{}: stopped in good order, {right} codewords right", self.name));
        Ok(())
    }

    /// Looks whether a server that reads back what it has written has done so, and has found all of it stored.
    fn check_read_back(&self, status: &Value) -> Outcome<()> {
        if self.verify == "off" {
            return Ok(());
        }
        let (name, verify) = (self.name, &status["verify"]);
        let verified = verify["verified"].as_u64().unwrap_or_default();
        if verified == 0 || verify["found"] != 0 || verify["not_mended"] != 0 {
            return Err(format!("{name}: what was read back: {verify}").into());
        }
        say(&format!("{name}: {verified} writes to drives read back, all of them stored"));
        Ok(())
    }

    fn unit(&self) -> String {
        format!("levelhead@{}.service", self.name)
    }

    fn socket(&self) -> PathBuf {
        format!("/run/levelhead/{}.sock", self.name).into()
    }

    fn node(&self) -> String {
        format!("/dev/nbd{}", self.device.index)
    }

    fn mount(&self) -> String {
        format!("/mnt/{}", self.name)
    }

    fn path(&self, drive: usize) -> String {
        format!("{}/{}{drive}", self.folder, self.member)
    }

    /// A member that the array can be asked by.
    fn control(&self) -> String {
        self.path(0)
    }

    fn status(&self) -> Outcome<Value> {
        self.levelhead(&["status", &self.control()])
    }

    /// What `levelhead array ..` says as JSON.
    fn levelhead(&self, args: &[&str]) -> Outcome<Value> {
        let out = call("levelhead", &[&["array"][..], args, &["--json"]].concat())?;
        Ok(serde_json::from_str(&out)?)
    }

    /// What systemd says of the unit.
    fn unit_says(&self, keys: &[&str]) -> Outcome<Vec<String>> {
        let out = call("systemctl", &["show", &self.unit(), "--property", &keys.join(",")])?;
        let value = |key: &&str| {
            let line = out.lines().find_map(|line| line.strip_prefix(*key)?.strip_prefix('='));
            line.unwrap_or_default().to_owned()
        };
        Ok(keys.iter().map(value).collect())
    }
}

/// Runs a program to its end; what it printed, if it was content.
fn call<S: AsRef<str>>(program: &str, args: &[S]) -> Outcome<String> {
    let args: Vec<&str> = args.iter().map(AsRef::as_ref).collect();
    let text = format!("{program} {}", args.join(" "));
    let output = Command::new(program)
        .args(&args)
        .output()
        .map_err(|error: io::Error| format!("{text}: {error}"))?;
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(out);
    }
    let err = String::from_utf8_lossy(&output.stderr);
    Err(format!("{text}: {}: {out}{err}", output.status).into())
}

fn wait(what: &str, mut is_so: impl FnMut() -> Outcome<bool>) -> Outcome<()> {
    let begun = Instant::now();
    while !is_so()? {
        if begun.elapsed() > PATIENCE {
            return Err(format!("still not so after {} s: {what}", PATIENCE.as_secs()).into());
        }
        thread::sleep(Duration::from_millis(500));
    }
    Ok(())
}
