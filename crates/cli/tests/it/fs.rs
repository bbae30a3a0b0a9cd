//! `levelhead fs ..`: what is refused, and a filesystem that is mounted, filled, unmounted and mounted again.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use crate::support::mounts::can_mount;
use crate::support::{self, Shelf, command, levelhead, random, run, wait_until};

/// A small filesystem.
const SIZE: &str = "64MiB";

/// A target with a filesystem, and a directory to mount it on. Dropping it unmounts.
struct Bed {
    shelf: Shelf,
    target: String,
    point: PathBuf,
}

impl Bed {
    fn new() -> Self {
        let shelf = Shelf::new();
        let (target, point) = (shelf.path("a.img"), shelf.dir.path().join("point"));
        levelhead(&["fs", "mkfs", &target, "--size", SIZE]).good();
        fs::create_dir(&point).unwrap();
        Self { shelf, target, point }
    }

    fn args(&self, verb: &'static str) -> Vec<String> {
        let point = self.point.display().to_string();
        match verb {
            "mount" => vec!["fs".into(), verb.into(), self.target.clone(), point],
            _ => vec!["fs".into(), verb.into(), point],
        }
    }

    #[track_caller]
    fn mount(&self) {
        levelhead(&self.args("mount")).good();
    }

    #[track_caller]
    fn umount(&self) {
        levelhead(&self.args("umount")).good();
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        // A test that has failed leaves it mounted.
        let mut command = command(&self.args("umount"));
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        drop(command.status());
    }
}

#[test]
fn mkfs_refuses_what_cannot_be_and_changes_nothing() {
    let shelf = Shelf::new();
    let (used, empty) = (shelf.path("used.img"), shelf.path("empty.img"));
    let mut bytes = vec![0; 32 << 20];
    bytes[0x438..0x43A].copy_from_slice(&[0x53, 0xEF]);
    fs::write(&used, bytes).unwrap();
    File::create_new(&empty).unwrap().set_len(32 << 20).unwrap();
    let small = shelf.path("small.img");
    File::create_new(&small).unwrap().set_len((16 << 20) - 1).unwrap();
    let new = shelf.path("new.img");
    let nowhere = shelf.path("no/new.img");
    let folder = shelf.path("folder");
    fs::create_dir(&folder).unwrap();
    let before = shelf.content();
    for (args, parts) in [
        (vec![&*used], vec!["used.img holds an ext2, ext3 or ext4 file system; only --force"]),
        (vec![&*new], vec!["new.img does not exist: with --size a file is made"]),
        (
            vec![&*nowhere, "--size", "32MiB"],
            vec!["cannot create", "no/new.img", "/no is not a folder"],
        ),
        (vec![&*folder], vec!["folder is a directory, not a drive"]),
        (vec![&*new, "--size", "1MiB"], vec!["has 1MiB, a filesystem needs at least 16MiB"]),
        (vec![&*new, "--size", "4kB"], vec!["expected a size of 4KiB or more, got 4000B"]),
        (vec![&*small], vec!["a filesystem needs at least 16MiB"]),
        (vec![&*empty, "--size", "64MiB"], vec!["has 32MiB, which is less than --size 64MiB"]),
        (
            vec![&*empty, "--code", "0,9"],
            vec!["0,9 is not a code for files: REDUNDANT is from 1 to 64"],
        ),
        (vec![&*empty, "--code", "9"], vec!["'9' is not a code: expected REDUNDANT,DATA"]),
        (vec![&*empty, "--failure-rate", "1e-3"], vec!["--length"]),
        (vec![&*empty, "--length", "255"], vec!["--failure-rate"]),
        (
            vec![&*empty, "--failure-rate", "1e-3", "--length", "100"],
            vec!["'100' is not a group length: expected 255 or 1023"],
        ),
        (
            vec![&*empty, "--code", "9,246", "--failure-rate", "1e-3", "--length", "255"],
            vec!["cannot be used with"],
        ),
        (vec![&*empty, "--redundancy", "much"], vec!["expected by-length or fixed"]),
        (vec![&*empty, "--metadata-copies", "5"], vec!["'5' is not a whole number from 1 to 4"]),
        (vec![&*empty, "--interleave", "0"], vec!["'0' is not a whole number from 1 to 64"]),
        (vec![&*empty, "--label", &"x".repeat(49)], vec!["a label has at most 48 bytes"]),
    ] {
        let ended = levelhead(&[&["fs", "mkfs"], &args[..]].concat());
        let sentence = ended.refusal();
        parts.iter().for_each(|part| assert!(sentence.contains(part), "no '{part}' in {sentence}"));
    }
    assert!(before == shelf.content(), "something has changed");
}

#[test]
fn made_filesystem_is_told_in_figures_and_taken_only_by_force() {
    let shelf = Shelf::new();
    let target = shelf.path("a.img");
    let args = ["fs", "mkfs", &target, "--size", "1GiB", "--json"];
    let made = levelhead(&args).json();
    let figure = |name: &str| made[name].as_u64().unwrap();
    assert_eq!((figure("device_bytes"), made["code"].as_str()), (1 << 30, Some("9,246")));
    assert_eq!(figure("metadata_copies"), 3);
    assert!((900 << 20..1 << 30).contains(&figure("usable_bytes")));
    assert!(figure("written_bytes") < 1 << 20);
    // What was not written takes no room.
    assert!(fs::metadata(&target).unwrap().blocks() * 512 < 2 << 20);
    let again = levelhead(&["fs", "mkfs", &target]);
    assert!(again.refusal().ends_with("holds a levelhead file system; only --force takes it"));
    let least = ["--failure-rate", "1e-3", "--length", "255", "--force", "--json"];
    let made = levelhead(&[&["fs", "mkfs", &target], &least[..]].concat()).json();
    assert_eq!(made["code"].as_str(), Some("5,250"));
}

#[test]
fn mount_and_umount_refuse_what_cannot_be() {
    let bed = Bed::new();
    let (target, point) = (bed.target.as_str(), bed.point.to_str().unwrap());
    let zeroes = bed.shelf.path("zeroes.img");
    File::create_new(&zeroes).unwrap().set_len(32 << 20).unwrap();
    let short = bed.shelf.path("short.img");
    fs::copy(target, &short).unwrap();
    OpenOptions::new().write(true).open(&short).unwrap().set_len(32 << 20).unwrap();
    let newer = bed.shelf.path("newer.img");
    fs::copy(target, &newer).unwrap();
    let before = bed.shelf.content();
    for (args, part) in [
        (vec!["mount", "/no/such.img", point], "cannot open /no/such.img: No such file"),
        (vec!["mount", &zeroes, point], "zeroes.img has no levelhead filesystem"),
        (vec!["mount", &short, point], "has 64MiB, but"),
        (vec!["mount", target, target], "it is not a directory"),
        (vec!["mount", target, "/no/such/dir"], "cannot mount on /no/such/dir: No such file"),
        (vec!["mount", target, point, "-o", "fast"], "'fast' is not an option of a mount"),
        (vec!["mount", target, point, "-o", "cache=1MiB"], "a cache has at least 4MiB"),
        (vec!["umount", point], "nothing is mounted on"),
        (vec!["umount", "/proc"], "/proc has a filesystem of the kind proc, not levelhead"),
        (vec!["status", point], "nothing is mounted on"),
    ] {
        let ended = levelhead(&[&["fs"], &args[..]].concat());
        let sentence = ended.refusal();
        assert!(sentence.contains(part), "no '{part}' in {sentence}");
    }
    assert!(before == bed.shelf.content(), "something has changed");
}

/// Names and bytes under a directory.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.symlink_metadata().unwrap().is_dir() {
            true => found.extend(content(&path)),
            false => drop(found.insert(path.clone(), fs::read(&path).unwrap())),
        }
    }
    found
}

#[test]
fn what_was_written_is_there_after_the_next_mount() {
    if !can_mount() {
        return;
    }
    let bed = Bed::new();
    bed.mount();
    let at = |name: &str| bed.point.join(name);
    fs::create_dir(at("folder")).unwrap();
    let bytes = random(3 << 20, 5);
    fs::write(at("folder/large"), &bytes).unwrap();
    fs::write(at("small"), b"a few bytes").unwrap();
    fs::write(at("gone"), &bytes[..70_000]).unwrap();
    fs::rename(at("small"), at("folder/renamed")).unwrap();
    fs::hard_link(at("folder/renamed"), at("second name")).unwrap();
    symlink("folder/large", at("link")).unwrap();
    fs::remove_file(at("gone")).unwrap();
    let mut file = OpenOptions::new().read(true).write(true).open(at("folder/large")).unwrap();
    file.write_all_at(b"changed in place", 1_000_000).unwrap();
    file.seek(SeekFrom::End(0)).unwrap();
    file.write_all(b"and appended").unwrap();
    file.sync_all().unwrap();
    fs::set_permissions(at("second name"), fs::Permissions::from_mode(0o4750)).unwrap();
    let mut expected = bytes;
    expected[1_000_000..1_000_016].copy_from_slice(b"changed in place");
    expected.extend(b"and appended");
    assert!(fs::read(at("link")).unwrap() == expected, "before it is unmounted");
    let before = content(&bed.point);
    drop(file);
    bed.umount();
    assert_eq!(fs::read_dir(&bed.point).unwrap().count(), 0);

    bed.mount();
    assert!(content(&bed.point) == before, "after the next mount");
    let found = fs::metadata(at("folder/renamed")).unwrap();
    assert_eq!((found.mode() & 0o7777, found.nlink()), (0o4750, 2));
    bed.umount();
}

#[test]
fn mounted_target_is_kept_from_all_others() {
    if !can_mount() {
        return;
    }
    let bed = Bed::new();
    bed.mount();
    let second = levelhead(&bed.args("mount"));
    assert!(second.refusal().ends_with("is in use by another process"), "{second:?}");
    let again = levelhead(&["fs", "mkfs", &bed.target, "--force"]);
    assert!(again.refusal().contains("is mounted on"), "{again:?}");
    let status = [bed.args("status"), vec!["--json".into()]].concat();
    let status = levelhead(&status).json();
    assert_eq!(
        (status["sectors_lost"].as_u64(), status["files_damaged"].as_u64()),
        (Some(0), Some(0))
    );
    let open = File::create(bed.point.join("open")).unwrap();
    assert!(levelhead(&bed.args("umount")).refusal().contains("is in use: a file in it is open"));
    drop(open);
    bed.umount();
}

#[test]
fn read_only_mount_changes_nothing() {
    if !can_mount() {
        return;
    }
    let bed = Bed::new();
    bed.mount();
    fs::write(bed.point.join("file"), "text").unwrap();
    bed.umount();
    let before = fs::read(&bed.target).unwrap();
    levelhead(&[bed.args("mount"), vec!["-o".into(), "ro".into()]].concat()).good();
    let mut text = String::new();
    File::open(bed.point.join("file")).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "text");
    assert!(fs::write(bed.point.join("other"), "text").is_err());
    bed.umount();
    assert!(fs::read(&bed.target).unwrap() == before);
}

#[test]
fn mount_and_mkfs_call_it_by_name() {
    let shelf = Shelf::new();
    let by_name = |name: &str, args: &[&str]| {
        let path = shelf.dir.path().join(name);
        if !path.exists() {
            symlink(env!("CARGO_BIN_EXE_levelhead"), &path).unwrap();
        }
        let mut command = std::process::Command::new(path);
        command.args(args);
        run(command)
    };
    let target = shelf.path("a.img");
    by_name("mkfs.levelhead", &[&target, "--size", SIZE]).good();
    let refused = by_name("mount.levelhead", &[&target, "/no/dir", "-sv", "-o", "rw,noatime"]);
    assert!(refused.refusal().contains("cannot mount on /no/dir"), "{refused:?}");
}

/// Sectors of a target that have these bytes get other ones.
fn damage(target: &str, bytes: &[u8]) {
    let mut image = fs::read(target).unwrap();
    let file = OpenOptions::new().write(true).open(target).unwrap();
    for page in bytes.chunks_exact(4096) {
        let sector = image.chunks_exact(4096).position(|sector| sector == page).unwrap();
        let other: Vec<u8> = page.iter().map(|byte| byte ^ 0x5A).collect();
        file.write_all_at(&other, sector as u64 * 4096).unwrap();
        image[sector * 4096..][..4096].copy_from_slice(&other);
    }
}

#[test]
fn scrub_repairs_what_is_bad_mounted_or_not_and_names_what_it_cannot() {
    if !can_mount() {
        return;
    }
    let bed = Bed::new();
    bed.mount();
    let bytes = random(2 << 20, 5);
    let path = bed.point.join("a");
    fs::write(&path, &bytes).unwrap();
    bed.umount();
    damage(&bed.target, &bytes[..2 * 4096]);
    let point = bed.point.display().to_string();
    let scrub = |target: &str| levelhead(&["fs", "scrub", target, "--json"]).json();
    let figure = |found: &serde_json::Value, name: &str| found[name].as_u64().unwrap();
    let found = scrub(&bed.target);
    assert_eq!((figure(&found, "sectors_damaged"), figure(&found, "sectors_repaired")), (2, 2));
    assert!(figure(&found, "sectors_read") > 512, "{found}");
    damage(&bed.target, &bytes[100 * 4096..104 * 4096]);
    bed.mount();
    let found = scrub(&point);
    assert_eq!((figure(&found, "sectors_damaged"), figure(&found, "sectors_repaired")), (4, 4));
    assert_eq!(figure(&scrub(&point), "sectors_damaged"), 0);
    assert_eq!(fs::read(&path).unwrap(), bytes);
    bed.umount();
    // The default code repairs 9 of each group.
    damage(&bed.target, &bytes[200 * 4096..210 * 4096]);
    let found = scrub(&bed.target);
    assert_eq!((figure(&found, "sectors_lost"), figure(&found, "files_damaged")), (10, 1));
    bed.mount();
    let status = [bed.args("status"), vec!["--json".into()]].concat();
    // A mount counts them once it has begun.
    wait_until("the damaged file is counted", || {
        figure(&levelhead(&status).json(), "files_damaged") == 1
    });
    assert_eq!(figure(&levelhead(&status).json(), "files"), 2);
    let refused = levelhead(&["fs", "scrub", &point, "--only", "all"]);
    assert!(refused.refusal().contains("'all' is none of data, redundancy, metadata"));
}

/// The value of a list of tags, permissions and ids, as Linux has it.
fn access_list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let entry = |&(tag, permissions, id): &(u16, u16, u32)| {
        [&tag.to_le_bytes()[..], &permissions.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    [2_u32.to_le_bytes().to_vec(), entries.iter().flat_map(entry).collect()].concat()
}

/// Whether a user that owns nothing can read a file.
fn can_read(user: u32, path: &Path) -> bool {
    let mut command = std::process::Command::new("cat");
    command.arg(path).uid(user).gid(user).stdout(std::process::Stdio::null());
    command.stderr(std::process::Stdio::null()).status().unwrap().success()
}

#[test]
fn kernel_decides_by_the_lists_that_new_files_have_from_their_directory() {
    if !can_mount() {
        return;
    }
    const DEFAULT: &str = "system.posix_acl_default";
    let bed = Bed::new();
    bed.mount();
    fs::set_permissions(bed.shelf.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let folder = bed.point.join("folder");
    fs::create_dir(&folder).unwrap();
    // User 12345 reads, and may look for names, group and others have nothing.
    const ANY: u32 = u32::MAX;
    let list =
        access_list(&[(1, 7, ANY), (2, 5, 12_345), (4, 0, ANY), (0x10, 5, ANY), (0x20, 0, ANY)]);
    let flags = rustix::fs::XattrFlags::empty();
    for name in [DEFAULT, "system.posix_acl_access"] {
        rustix::fs::setxattr(&folder, name, &list, flags).unwrap();
    }
    let file = folder.join("file");
    fs::write(&file, "text").unwrap();
    assert!(can_read(12_345, &file));
    assert!(!can_read(12_346, &file), "another one has no entry");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(!can_read(12_345, &file), "the mask goes along with the mode");
    bed.umount();
    bed.mount();
    let mut found = [0; 64];
    let count = rustix::fs::getxattr(&folder, DEFAULT, &mut found).unwrap();
    assert!(found[..count] == list);
    assert!(!can_read(12_345, &file));
    bed.umount();
}

#[test]
fn program_that_another_user_writes_to_loses_its_rights() {
    if !can_mount() {
        return;
    }
    let bed = Bed::new();
    bed.mount();
    fs::set_permissions(bed.shelf.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&bed.point, fs::Permissions::from_mode(0o755)).unwrap();
    let file = bed.point.join("program");
    fs::write(&file, "program").unwrap();
    let with_rights = || fs::set_permissions(&file, fs::Permissions::from_mode(0o6777)).unwrap();
    let mode = || fs::metadata(&file).unwrap().mode() & 0o7777;
    with_rights();
    OpenOptions::new().append(true).open(&file).unwrap().write_all(b"more").unwrap();
    assert_eq!(mode(), 0o6777, "root may");
    for script in ["echo more >> \"$1\"", "echo other > \"$1\""] {
        with_rights();
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script, "sh"]).arg(&file).uid(12_345).gid(12_345);
        assert!(command.status().unwrap().success());
        assert_eq!(mode(), 0o777, "{script}");
    }
    bed.umount();
}

#[test]
fn check_says_what_is_wrong_and_repairs_it_with_the_exit_codes_of_fsck() {
    let shelf = Shelf::new();
    let target = shelf.path("a.img");
    levelhead(&["fs", "mkfs", &target, "--size", SIZE]).good();
    let fsck = |args: &[&str]| {
        let path = shelf.dir.path().join("fsck.levelhead");
        if !path.exists() {
            symlink(env!("CARGO_BIN_EXE_levelhead"), &path).unwrap();
        }
        let mut command = std::process::Command::new(path);
        command.args(args);
        run(command).code
    };
    let check = |args: &[&str]| levelhead(&[&["fs", "check", &target, "--json"], args].concat());
    let figures = |ended: &support::Ended| {
        let found: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
        (found["clean"].as_bool().unwrap(), found["problems"].as_u64().unwrap())
    };
    assert_eq!(figures(&check(&[])), (true, 0));
    assert_eq!(fsck(&["-n", &target]), Some(0));
    // The first superblock, and one copy of the first bitmap.
    let file = OpenOptions::new().write(true).open(&target).unwrap();
    for sector in [0, 2] {
        file.write_all_at(&random(4096, sector), sector * 4096).unwrap();
    }
    let before = fs::read(&target).unwrap();
    let found = check(&[]);
    assert_eq!((found.code, figures(&found)), (Some(1), (false, 2)));
    assert!(found.err.contains("2 problems are left"), "{found:?}");
    assert_eq!(fsck(&[&target]), Some(4));
    assert!(fs::read(&target).unwrap() == before, "a check has written");
    // What was stopped in order is not looked at on the way up.
    assert_eq!(fsck(&["-a", &target]), Some(0));
    assert_eq!(fsck(&["-af", &target]), Some(1));
    assert_eq!(fsck(&["-y", &target]), Some(0));
    assert_eq!(figures(&check(&["--data"])), (true, 0));
    assert_eq!(fsck(&["-a", "/no/such.img"]), Some(8));
    assert_eq!(fsck(&["-a"]), Some(16));
    assert_eq!(fsck(&["-a", "-n", &target]), Some(16));
    let zeroes = shelf.path("zeroes.img");
    File::create_new(&zeroes).unwrap().set_len(32 << 20).unwrap();
    let refused = levelhead(&["fs", "check", &zeroes]);
    assert!(refused.refusal().contains("zeroes.img has no levelhead filesystem"), "{refused:?}");
}

/// A filesystem with some files, unmounted, and what they have.
fn filled(options: &[&str]) -> (Bed, BTreeMap<PathBuf, Vec<u8>>) {
    let bed = Bed::new();
    levelhead(&[&["fs", "mkfs", &bed.target, "--force"], options].concat()).good();
    bed.mount();
    fs::create_dir(bed.point.join("folder")).unwrap();
    for (at, size) in [3 << 20, 700_000, 9_000, 4_096, 1, 0].into_iter().enumerate() {
        let folder = if at % 2 == 0 { "." } else { "folder" };
        fs::write(bed.point.join(folder).join(format!("file {at}")), random(size, at as u64))
            .unwrap();
    }
    let before = content(&bed.point);
    bed.umount();
    (bed, before)
}

fn figure(found: &serde_json::Value, name: &str) -> u64 {
    found[name].as_u64().unwrap_or_else(|| panic!("no {name} in {found}"))
}

#[test]
fn everything_that_the_code_repairs_is_right_through_the_mount_and_scrubbed_once() {
    if !can_mount() {
        return;
    }
    let (bed, before) = filled(&[]);
    let scrub = || levelhead(&["fs", "scrub", &bed.target, "--json"]).json();
    let damage = ["fs", "damage", &bed.target, "--seed", "5", "--per-group", "max", "--json"];
    let damaged = levelhead(&[&damage[..], &["--metadata", "2"]].concat()).json();
    assert!(figure(&damaged, "sectors_damaged") > 50, "{damaged}");
    bed.mount();
    assert!(content(&bed.point) == before, "through the mount");
    bed.umount();
    let found = scrub();
    assert_eq!(figure(&found, "sectors_lost"), 0, "{found}");
    assert_eq!(figure(&scrub(), "sectors_damaged"), 0);
    // The same again, without a reader before the scrub.
    let damaged = levelhead(&damage).json();
    let found = scrub();
    assert_eq!(figure(&found, "sectors_repaired"), figure(&damaged, "sectors_damaged"), "{found}");
    assert_eq!(figure(&scrub(), "sectors_damaged"), 0);
    let check = ["fs", "check", &bed.target, "--data", "--json"];
    assert_eq!(figure(&levelhead(&check).json(), "problems"), 0);
}

#[test]
fn group_that_has_lost_too_much_is_an_error_for_its_lost_sectors_alone() {
    if !can_mount() {
        return;
    }
    let (bed, before) = filled(&[]);
    // The default code has 9 redundant sectors in the longest groups.
    let args = ["--path", "file 0", "--group", "1", "--sectors", "10", "--json"];
    let damage = [&["fs", "damage", &bed.target, "--seed", "7"], &args[..]].concat();
    assert_eq!(figure(&levelhead(&damage).json(), "sectors_damaged"), 10);
    bed.mount();
    let path = bed.point.join("file 0");
    let (file, right) = (File::open(&path).unwrap(), &before[&path]);
    let mut lost = 0;
    for (at, page) in right.chunks(4096).enumerate() {
        let mut found = vec![0; page.len()];
        match file.read_exact_at(&mut found, at as u64 * 4096) {
            Ok(()) => assert!(found == page, "sector {at} has wrong bytes"),
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(5), "{error}");
                lost += 1;
            }
        }
    }
    assert!((1..=10).contains(&lost), "{lost} sectors are lost");
    drop(file);
    let status = [bed.args("status"), vec!["--json".into()]].concat();
    let names_it = |status: &serde_json::Value| {
        assert_eq!(figure(status, "files_damaged"), 1);
        assert_eq!(status["damaged"][0]["path"], "/file 0", "{status}");
    };
    names_it(&levelhead(&status).json());
    bed.umount();
    names_it(&levelhead(&["fs", "status", &bed.target[..], "--json"]).json());
    assert!(levelhead(&["fs", "status", &bed.target]).good().contains("\n  /file 0\n"));
}

#[test]
fn run_of_bad_sectors_is_shared_among_groups_that_are_woven() {
    if !can_mount() {
        return;
    }
    let (bed, before) = filled(&["--interleave", "8", "--redundancy", "fixed"]);
    // The largest file lies in one piece: its first sectors are found by what they hold.
    let image = fs::read(&bed.target).unwrap();
    let page = &before[&bed.point.join("file 0")][..4096];
    let lba = image.chunks_exact(4096).position(|sector| sector == page).unwrap();
    let run = format!("{},{}", lba + 100, 8 * 9);
    let args = ["fs", "damage", &bed.target, "--seed", "9", "--run", &run, "--json"];
    assert_eq!(figure(&levelhead(&args).json(), "sectors_damaged"), 72);
    bed.mount();
    assert!(content(&bed.point) == before);
    bed.umount();
    let found = levelhead(&["fs", "scrub", &bed.target, "--json"]).json();
    assert_eq!(figure(&found, "sectors_lost"), 0, "{found}");
}

#[test]
fn damage_refuses_what_is_not_there() {
    let shelf = Shelf::new();
    let target = shelf.path("a.img");
    levelhead(&["fs", "mkfs", &target, "--size", SIZE]).good();
    for (args, part) in [
        (&["--metadata", "4"][..], "has 3 copies of metadata, got --metadata 4"),
        (&["--per-group", "many"], "'many': expected a number of sectors, or max"),
        (&["--run", "5"], "'5': expected LBA,COUNT, as in 5000,72"),
        (&["--run", "16383,2"], "has 16384 sectors, got --run 16383,2"),
        (&["--path", "no", "--group", "0", "--sectors", "1"], "has no file no"),
        (&["--path", "no", "--group", "0"], "--sectors"),
        (&[], "--per-group"),
    ] {
        let ended = levelhead(&[&["fs", "damage", &target, "--seed", "1"], args].concat());
        let sentence = ended.refusal();
        assert!(sentence.contains(part), "no '{part}' in {sentence}");
    }
}
