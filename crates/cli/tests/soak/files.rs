//! Suites of other projects over mounted filesystems: pjdfstest, fsx, fio and stress-ng. After each the filesystem is
//! unmounted, and checked.
//!
//! A share of it runs with every change, with the programs that are there; `cargo xtask soak files` brings those that Debian
//! does not have, and runs all of it.

use std::fs;
use std::process::Command;

use crate::kills::kill_under_writers;
use crate::support::mounts::{Bed, can_mount, mount_and_umount_at_once};
use crate::support::{Ended, is_there, levelhead, run};

/// What fsx does, and how often: all that a file on Linux can be asked for, but posix_fallocate, of which it asks for nothing.
const FSX: &str = "[weights]
close_open = 1.0
invalidate = 1.0
truncate = 10.0
fsync = 1.0
fdatasync = 1.0
punch_hole = 5.0
sendfile = 5.0
posix_fadvise = 1.0
copy_file_range = 5.0
";

/// What pjdfstest may expect, and the users that it may be.
const PJDFSTEST: &str = r#"[features]
posix_fallocate = {}
rename_ctime = {}
utimensat = {}
utime_now = {}

[settings]
naptime = 0.01
allow_remount = false

[dummy_auth]
entries = [
  ["nobody", "nogroup"],
  ["tests", "tests"],
]
"#;

/// Operations of fsx for each seed.
const FSX_OPERATIONS: u64 = 20_000;

/// How often the program that answers is killed.
const KILLS: u64 = 50;

/// How often a mount is unmounted at once.
const MOUNTS: u32 = 200;

/// What passes there: on ext4 one more does, that wants to know how many links a file may have. glibc says 127 for FUSE
/// whatever it is, and the test is skipped.
const PASSED: &str = "0 failed, 16 skipped, 382 passed";

/// How filesystems are made and mounted.
struct Way {
    name: &'static str,
    mkfs: &'static [&'static str],
    mount: &'static str,
}

const WAYS: [Way; 3] = [
    Way { name: "as it is", mkfs: &[], mount: "rw" },
    Way { name: "the kernel keeps writes", mkfs: &[], mount: "writeback" },
    Way {
        name: "woven, with little memory",
        mkfs: &["--code", "2,8", "--interleave", "4"],
        mount: "cache=4MiB",
    },
];

/// A mounted filesystem.
fn mounted(size: &str, way: &Way) -> Bed {
    let bed = Bed::with(size, way.mkfs);
    bed.mount(way.mount);
    bed
}

/// Unmounts, and checks what is left.
fn end(bed: &Bed) {
    bed.umount().good();
    if levelhead(&["fs", "check", "--help"]).code != Some(0) {
        return skip("levelhead fs check");
    }
    let found = levelhead(&["fs", "check", &bed.target, "--data", "--json"]).json();
    assert_eq!(found["clean"].as_bool(), Some(true), "{found}");
}

/// Whether a suite that Debian does not have is there: at length it must be.
fn has_suite(program: &str) -> bool {
    let mut probe = Command::new(program);
    probe.arg("--version").stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let is_there = probe.status().is_ok();
    assert!(is_there || std::env::var_os("SEEDS").is_none(), "{program} is not installed");
    is_there
}

fn skip(what: &str) {
    eprintln!("SKIPPED: {what} is not there");
}

#[track_caller]
fn good(mut command: Command, args: &[&str]) -> Ended {
    command.args(args);
    let ended = run(command);
    assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
    ended
}

fn pjdfstest() {
    let has_users = ["nobody:", "tests:"].iter().all(|user| {
        fs::read_to_string("/etc/passwd")
            .is_ok_and(|all| all.lines().any(|line| line.starts_with(user)))
    });
    if !has_suite("pjdfstest") || !has_users {
        return skip("pjdfstest 0.2.2, or one of its users nobody and tests");
    }
    let bed = mounted("256MiB", &WAYS[0]);
    let config = bed.shelf.path("pjdfstest.toml");
    fs::write(&config, PJDFSTEST).unwrap();
    // Its users look for names in the folder.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(bed.shelf.dir.path(), open).unwrap();
    let ended = good(Command::new("pjdfstest"), &["-c", &config, "-p", bed.point()]);
    assert!(ended.out.contains(PASSED), "{}", ended.out);
    end(&bed);
}

fn fsx(way: &Way, seeds: std::ops::RangeInclusive<u64>, operations: u64) {
    if !has_suite("fsx") {
        return skip("fsx 0.3.2");
    }
    let bed = mounted("128MiB", way);
    let config = bed.shelf.path("fsx.toml");
    fs::write(&config, FSX).unwrap();
    for seed in seeds {
        eprintln!("fsx, {}: seed {seed}", way.name);
        let file = bed.point.join(format!("file {seed}")).display().to_string();
        let [count, seed] = [operations, seed].map(|number| number.to_string());
        good(Command::new("fsx"), &["-f", &config, "-N", &count, "-S", &seed, &file]);
    }
    end(&bed);
}

fn fio(way: &Way, size: &str) {
    if !is_there("fio") {
        return skip("fio");
    }
    let bed = mounted("256MiB", way);
    let (folder, size) = (format!("--directory={}", bed.point()), format!("--size={size}"));
    for direct in ["--direct=0", "--direct=1"] {
        let args = [
            "--name=file",
            &folder,
            &size,
            direct,
            "--rw=randwrite",
            "--bs=4k",
            "--verify=crc32c",
            "--verify_fatal=1",
            "--do_verify=1",
            "--verify_state_save=0",
        ];
        good(Command::new("fio"), &args);
    }
    end(&bed);
}

/// The stressors of a class of stress-ng's, or those that are named, one after the other.
fn stress(args: &[&str]) {
    if !is_there("stress-ng") {
        return skip("stress-ng");
    }
    // One stressor takes a file of 1 GiB.
    let bed = mounted("3GiB", &WAYS[0]);
    // What the kernel may not have, and what FUSE does not pass on: they end with another exit code than 0.
    let folder = ["--exclude", "binderfs,fiemap,verity", "--temp-path", bed.point(), "--verify"];
    good(Command::new("stress-ng"), &[args, &folder].concat());
    end(&bed);
}

#[test]
fn suites_of_others_find_nothing_in_a_few_seconds() {
    if !can_mount() {
        return;
    }
    pjdfstest();
    for way in &WAYS {
        fsx(way, 1..=1, 1_000);
    }
    fio(&WAYS[0], "4M");
    assert!(kill_under_writers(&[], 2) > 0, "nothing was synced");
}

/// What was run and found good, for a person to read.
#[derive(Default)]
struct Table(Vec<String>);

impl Table {
    fn run(&mut self, suite: &str, way: &str, what: impl FnOnce() -> String) {
        eprintln!("{suite}, {way}");
        let begun = std::time::Instant::now();
        let found = what();
        let seconds = begun.elapsed().as_secs();
        self.0.push(format!("{suite:<12} {way:<26} {found:<44} {seconds:>5} s"));
    }
}

/// `SEEDS` says how many of fsx.
#[test]
#[ignore = "takes minutes: cargo xtask soak files"]
fn soak_files() {
    assert!(can_mount(), "it wants root and /dev/fuse");
    let seeds = std::env::var("SEEDS").map_or(10, |text| text.parse().expect("a number"));
    let mut table = Table::default();
    table.run("pjdfstest", WAYS[0].name, || {
        pjdfstest();
        PASSED.to_owned()
    });
    for way in &WAYS {
        table.run("fsx", way.name, || {
            fsx(way, 1..=seeds, FSX_OPERATIONS);
            format!("{seeds} seeds of {FSX_OPERATIONS} operations")
        });
        table.run("fio", way.name, || {
            fio(way, "64M");
            "every byte as it was written".to_owned()
        });
    }
    table.run("stress-ng", WAYS[0].name, || {
        stress(&["--class", "filesystem", "--sequential", "2", "--timeout", "2s"]);
        "the class filesystem, 2 at a time".to_owned()
    });
    for (way, mkfs) in [(WAYS[0].name, &[][..]), ("files of kinds", &["--zero-forcing"])] {
        table.run("kill -9", way, || {
            let promises = kill_under_writers(mkfs, KILLS);
            format!("{KILLS} times, {promises} syncs, nothing lost")
        });
    }
    table.run("mount, umount", WAYS[0].name, || {
        mount_and_umount_at_once(MOUNTS);
        format!("{MOUNTS} times clean, and after kill -9")
    });
    eprintln!("\nchecked after each, and clean:\n\n{}", table.0.join("\n"));
}
