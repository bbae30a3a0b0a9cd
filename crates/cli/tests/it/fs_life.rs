//! The life of a mount as the one sees it who mounts: unmounts that come at once, signals, a program that is killed, a disk that does not
//! store, a sync, and what others may do with an image that somebody else has made.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::mounts::{Bed, can_mount, gone, mount_and_umount_at_once};
use crate::support::{self, Ended, Shelf, command, levelhead, run, wait_until};

/// The user and group that nobody has.
const NOBODY: u32 = 65_534;

fn as_nobody(program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> Ended {
    let mut command = Command::new(program);
    command.args(args).uid(NOBODY).gid(NOBODY).stdin(Stdio::null());
    run(command)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn unmount_at_once_ends_the_program_also_while_it_replays_the_journal() {
    if can_mount() {
        mount_and_umount_at_once(5);
    }
}

#[test]
fn second_signal_ends_the_program_although_a_file_is_open() {
    if !can_mount() {
        return;
    }
    let bed = Bed::new();
    let mut command = command(&["fs", "mount", &bed.target, bed.point(), "--foreground"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let pid = Pid::from_child(&child);
    let outside = fs::metadata(&bed.point).unwrap().dev();
    let is_inside = || fs::metadata(&bed.point).is_ok_and(|found| found.dev() != outside);
    wait_until("it is mounted", is_inside);
    let mut open = File::create(bed.at("open")).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    wait_until("it is taken out of the tree", || !is_inside());
    // The file can still be written to: the first signal waits for it.
    open.write_all(b"text").unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(support::end(child, "the mount").code, Some(128 + 15));
}

#[test]
fn what_was_synced_is_there_after_the_program_was_killed_and_umount_tells() {
    if !can_mount() {
        return;
    }
    let bed = Bed::new();
    let pid = bed.mount("rw");
    fs::create_dir(bed.at("folder")).unwrap();
    fs::write(bed.at("folder/file"), "text").unwrap();
    let said = levelhead(&["fs", "sync", &bed.at("folder").display().to_string()]).good();
    assert!(said.starts_with("everything that was written to "), "{said}");
    bed.kill(pid);
    let ended = levelhead(&["fs", "umount", bed.point(), "--json"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let told: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(told["stored"].as_bool(), Some(false));
    assert!(ended.err.contains("the program that answered for it had ended before"), "{ended:?}");
    let refused = levelhead(&["fs", "sync", bed.point()]);
    assert!(refused.refusal().contains("is in no filesystem that is mounted by levelhead"));
    // As it is, also where nothing may be written.
    bed.mount("ro");
    assert_eq!(fs::read_to_string(bed.at("folder/file")).unwrap(), "text");
    bed.umount().good();
}

#[test]
fn mount_fails_where_the_journal_cannot_be_read_and_what_is_in_place_can_be_read() {
    if !can_mount() {
        return;
    }
    let bed = Bed::new();
    let pid = bed.mount("rw");
    for round in 0..3 {
        fs::write(bed.at("file"), round.to_string()).unwrap();
        File::open(bed.at("file")).unwrap().sync_all().unwrap();
    }
    bed.kill(pid);
    assert_eq!(bed.umount().code, Some(1));
    // The one before the last of the records that the next mount would take, of lines like "record 402 at 8225: counts, 10 sectors, ..".
    let shown = levelhead(&["fs", "inspect", &bed.target, "--journal"]).good();
    let records: Vec<&str> = shown.lines().filter(|line| line.contains(": counts, ")).collect();
    let numbers = records[records.len() - 2].split([' ', ':']);
    let numbers: Vec<u64> = numbers.filter_map(|word| word.parse().ok()).collect();
    let &[_, at, sectors, ..] = &numbers[..] else { panic!("{shown}") };
    let image = File::options().write(true).open(&bed.target).unwrap();
    image.write_all_at(&vec![0x5A; sectors as usize * 4096], at * 4096).unwrap();
    let refused = levelhead(&["fs", "mount", &bed.target, bed.point()]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("-o ro mounts what can be read"), "{refused:?}");
    assert!(!bed.at("file").exists(), "nothing is mounted");
    bed.mount("ro");
    drop(fs::read(bed.at("file")));
    bed.umount().good();
}

/// A host without room stands for a disk that does not store.
#[test]
fn umount_after_writes_that_failed_says_so() {
    if !can_mount() {
        return;
    }
    let shelf = Shelf::new();
    let full = shelf.path("full");
    fs::create_dir(&full).unwrap();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=12M", "none", &full]);
    run(mount).good();
    let _unmounted = Unmounted(full.clone());
    let bed = Bed::on(shelf, format!("{full}/a.img"));
    let pid = bed.mount("rw");
    fs::write(bed.at("first"), "text").unwrap();
    levelhead(&["fs", "sync", bed.point()]).good();
    // It is taken into memory, and has no place; what comes after that is found may be refused.
    drop(fs::write(bed.at("large"), vec![7; 30 << 20]));
    let ended = levelhead(&["fs", "sync", bed.point(), "--json"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("not everything that was written is stored"), "{ended:?}");
    let told: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(told["stored"].as_bool(), Some(false), "{told}");
    let ended = levelhead(&["fs", "umount", bed.point(), "--json"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let told: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(told["stored"].as_bool(), Some(false), "{told}");
    gone(pid);
}

#[test]
fn quiet_commands_print_nothing_and_users_get_no_set_user_id() {
    if !can_mount() {
        return;
    }
    let bed = Bed::new();
    for args in [
        vec!["fs", "mkfs", &bed.target, "--force"],
        vec!["fs", "mount", &bed.target, bed.point()],
        vec!["fs", "sync", bed.point()],
        vec!["fs", "umount", bed.point()],
    ] {
        let printed = levelhead(&[&args[..], &["--quiet"]].concat()).good();
        assert_eq!(printed, "", "{args:?}");
    }
    fs::set_permissions(&bed.target, fs::Permissions::from_mode(0o666)).unwrap();
    for options in ["suid", "rw,dev"] {
        let args = ["fs", "mount", &bed.target, bed.point(), "-o", options];
        let refused = as_nobody(env!("CARGO_BIN_EXE_levelhead"), &args);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.err.contains("only root may mount with the options suid and dev"));
    }
}

/// Unmounts when it is dropped.
struct Unmounted(String);

impl Drop for Unmounted {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(&self.0).status());
    }
}

#[test]
fn set_user_id_and_devices_of_an_image_have_no_effect_unless_they_are_asked_for() {
    if !can_mount() {
        return;
    }
    let bed = Bed::new();
    for (options, user, reads) in
        [("rw", "65534", false), ("suid,dev", "0", true), ("defaults", "65534", false)]
    {
        bed.mount(options);
        let (program, device) = (bed.at("program"), bed.at("device"));
        if !program.exists() {
            fs::copy("/usr/bin/id", &program).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
            let mut mknod = Command::new("mknod");
            mknod.args(["-m", "666"]).arg(&device).args(["c", "1", "5"]);
            run(mknod).good();
        }
        assert_eq!(as_nobody(&program, &["-u"]).good().trim(), user, "{options}");
        let read = as_nobody("head", &["-c", "1", &device.display().to_string()]);
        assert_eq!(read.code == Some(0), reads, "{options}: {read:?}");
        bed.umount().good();
    }
}

#[test]
fn rights_that_a_write_takes_are_gone_at_once() {
    if !can_mount() {
        return;
    }
    let bed = Bed::new();
    bed.mount("rw");
    for (name, before, after) in
        [("program", 0o6777, 0o777), ("of a group", 0o2666, 0o666), ("plain", 0o666, 0o666)]
    {
        for flags in ["oflag=direct", "oflag=sync"] {
            let path = bed.at(&format!("{name} {flags}"));
            fs::write(&path, vec![1; 8_192]).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(before)).unwrap();
            // The kernel knows it from now on.
            assert_eq!(mode(&path), before);
            let file = format!("of={}", path.display());
            let args = ["if=/dev/zero", &file, "bs=4096", "count=1", "conv=notrunc", flags];
            as_nobody("dd", &args).good();
            assert_eq!(mode(&path), after, "{name}, {flags}");
        }
    }
    bed.umount().good();
}
