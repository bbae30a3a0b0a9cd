//! Everything below made-up roots: folders, files and links as the kernel lays them out, and FIFOs for what hangs.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use levelhead_fleet::erc::Role;
use levelhead_fleet::smart::Erc;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use super::*;

/// A root without anything.
struct Root(TempDir);

impl Root {
    fn new() -> Self {
        Self(TempDir::new().expect("a folder"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.path().join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn folder(&self, path: &str) {
        fs::create_dir_all(self.path().join(path)).expect("a folder");
    }

    fn disk(&self, name: &str, wwid: &str) {
        let block = format!("sys/block/{name}");
        self.write(&format!("{block}/device/wwid"), &format!("{wwid}\n"));
        self.write(&format!("{block}/device/model"), "ST20000NM007D-3D\n");
        self.write(&format!("{block}/device/timeout"), "30\n");
        self.write(&format!("{block}/queue/rotational"), "1\n");
        self.write(&format!("{block}/stat"), "1 0 8 20 2 0 16 40 3 50 60 0 0 0 0 0 0\n");
        self.folder(&format!("{block}/{name}1"));
    }

    fn md(&self, name: &str, parts: &[&str]) {
        let md = format!("sys/block/{name}/md");
        self.write(&format!("{md}/raid_disks"), &parts.len().to_string());
        self.write(&format!("{md}/level"), "raid6\n");
        self.write(&format!("{md}/sync_action"), "idle\n");
        for (slot, part) in parts.iter().enumerate() {
            self.write(&format!("{md}/dev-{part}/slot"), &slot.to_string());
            self.write(&format!("{md}/dev-{part}/state"), "in_sync\n");
            self.folder(&format!("sys/block/{name}/slaves/{part}"));
        }
    }

    fn fifo(&self, file: &str) {
        let path = self.path().join(file);
        drop(fs::remove_file(&path));
        mknodat(CWD, &path, FileType::Fifo, Mode::from_bits_truncate(0o600), 0).expect("a FIFO");
    }

    fn script(&self, name: &str, text: &str) -> PathBuf {
        self.write(name, &format!("#!/bin/sh\n{text}\n"));
        let path = self.path().join(name);
        fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).expect("a mode");
        path
    }
}

fn group<'a>(survey: &'a Survey, name: &str) -> &'a SurveyedGroup {
    survey.groups.iter().find(|it| it.name == name).unwrap_or_else(|| panic!("no {name}: {survey}"))
}

#[test]
fn md_has_its_parts_disks_without_spares() {
    let root = Root::new();
    for at in 0..5 {
        root.disk(&format!("sd{}", ["a", "b", "c", "d", "e"][at]), &format!("naa.{at}"));
    }
    root.md("md0", &["sda1", "sdb1", "sdc1", "sdd1"]);
    root.write("sys/block/md0/md/dev-sde1/slot", "none\n");
    let found = survey(root.path());
    let md = group(&found, "md0");
    assert_eq!(md.members, ["naa.0", "naa.1", "naa.2", "naa.3"]);
    assert!(md.redundancy == Redundancy::Spare && !md.is_rebuilding);
    assert_eq!(found.drives["naa.0"].timer, Some(30.0));
    root.write("sys/block/md0/md/sync_action", "check\n");
    assert!(group(&survey(root.path()), "md0").is_rebuilding);
    assert_eq!(Survey::parse(&found.to_string()), Some(found));
}

#[test]
fn nested_mappings_lead_to_disks_and_two_paths_are_one_drive() {
    let root = Root::new();
    for (name, wwid) in [("sda", "naa.1"), ("sdb", "naa.1"), ("sdc", "naa.2"), ("sdd", "naa.2")] {
        root.disk(name, wwid);
    }
    for (dm, uuid, name, slaves) in [
        ("dm-0", "mpath-1", "mpatha", &["sda", "sdb"][..]),
        ("dm-1", "mpath-2", "mpathb", &["sdc", "sdd"]),
        ("dm-2", "CRYPT-1", "crypta", &["dm-0"]),
        ("dm-3", "CRYPT-2", "cryptb", &["dm-1"]),
        ("dm-4", "LVM-x", "vg-lv", &["dm-2", "dm-3"]),
    ] {
        root.write(&format!("sys/block/{dm}/dm/uuid"), uuid);
        root.write(&format!("sys/block/{dm}/dm/name"), name);
        slaves.iter().for_each(|slave| root.folder(&format!("sys/block/{dm}/slaves/{slave}")));
    }
    let found = survey(root.path());
    assert_eq!(found.groups.len(), 1, "{found}");
    assert_eq!(group(&found, "vg-lv").members, ["naa.1", "naa.2"]);
    assert_eq!(found.drives["naa.1"].devices, ["sda", "sdb"]);
    let mut sampler = Sampler::new(root.path());
    sampler.handle_drives(found.drives.values().map(|it| (it.key.clone(), it.devices.clone())));
    assert_eq!(sampler.sample()["naa.1"].ended, 6, "both ways count");
}

#[test]
fn btrfs_ceph_and_zfs_have_their_disks() {
    let root = Root::new();
    for (name, wwid) in
        [("sda", "t10.ATA  X  1"), ("sdb", "naa.2"), ("sdc", "naa.3"), ("nvme0n1", "eui.4")]
    {
        root.disk(name, wwid);
    }
    root.folder("sys/block/nvme0n1/nvme0n1p1");
    for disk in ["sda1", "sdb"] {
        root.folder(&format!("sys/fs/btrfs/f-1/devices/{disk}"));
    }
    root.folder("sys/fs/btrfs/f-1/allocation/data/raid1");
    root.folder("sys/fs/btrfs/features");
    root.write("sys/block/dm-0/dm/uuid", "LVM-1");
    root.write("sys/block/dm-0/dm/name", "ceph--1-osd--block--2");
    root.folder("sys/block/dm-0/slaves/sdc");
    for (osd, target) in [("ceph-0", "/dev/ceph-1/osd-block-2"), ("ceph-1", "/dev/sdb")] {
        root.folder(&format!("var/lib/ceph/osd/{osd}"));
        symlink(target, root.path().join(format!("var/lib/ceph/osd/{osd}/block"))).expect("a link");
    }
    let mut found = survey(root.path());
    let btrfs = group(&found, "btrfs-f-1");
    assert_eq!(btrfs.members, ["naa.2", "t10.ATA-X-1"]);
    assert_eq!(btrfs.redundancy, Redundancy::Spare);
    assert_eq!(group(&found, "ceph-hdd").members, ["naa.2", "naa.3"]);
    let status = r#"{"pools":{"tank":{"scan_stats":{"state":"SCANNING"},"vdevs":{"tank":{"vdev_type":"root","vdevs":
        {"raidz1-0":{"vdev_type":"raidz","vdevs":{"/dev/sda1":{"vdev_type":"disk","path":"/dev/sda1"},
        "/dev/nvme0n1p1":{"vdev_type":"disk","path":"/dev/nvme0n1p1"}}}}}}}}}"#;
    found.add_pools(status).expect("a status");
    let tank = group(&found, "tank");
    assert_eq!(tank.members, ["eui.4", "t10.ATA-X-1"]);
    assert!(tank.redundancy == Redundancy::Spare && tank.is_rebuilding);
    assert!(found.add_pools("cannot open").is_err());
    let other = status.replace("\"tank\":{\"scan", "\"ceph-hdd\":{\"scan");
    found.add_pools(&other).expect("a status");
    let names: Vec<_> = found.groups.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["btrfs-f-1", "ceph-hdd", "zfs-ceph-hdd"], "a pool that is gone is gone");
}

#[test]
fn file_of_groups_takes_names_and_keys() {
    let root = Root::new();
    root.disk("sda", "naa.1");
    root.disk("sdb", "naa.2");
    let mut found = survey(root.path());
    found.take_groups("# mine\nset /dev/sda1 naa.2 gone # two\n").expect("groups");
    assert_eq!(group(&found, "set").members, ["naa.1", "naa.2", "gone"]);
    assert!(found.take_groups("empty\n").is_err());
    let twice = found.take_groups("a sda\n\na sdb\n");
    assert_eq!(twice, Err("line 3: group a is there already".to_owned()));
}

#[test]
fn stat_that_hangs_takes_only_its_own_drive() {
    let root = Root::new();
    for name in ["sda", "sdb", "sdc"] {
        root.disk(name, name);
    }
    let drives = || ["sda", "sdb", "sdc"].map(|name| (name.to_owned(), vec![name.to_owned()]));
    let mut sampler = Sampler::new(root.path());
    sampler.handle_drives(drives());
    assert_eq!(sampler.sample().len(), 3);
    root.fifo("sys/block/sdb/stat");
    root.write("sys/block/sda/stat", "4 0 8 20 2 0 16 40 0 50 60");
    let mut sampler = Sampler::new(root.path());
    sampler.handle_drives(drives());
    let began = Instant::now();
    let sample = sampler.sample();
    assert!(began.elapsed() < Duration::from_secs(1));
    assert_eq!(sample.keys().collect::<Vec<_>>(), ["sda", "sdc"]);
    assert_eq!(sample["sda"].ended, 6);
    // It goes away and comes back.
    fs::remove_dir_all(root.path().join("sys/block/sdc")).expect("it goes");
    let mut sampler = Sampler::new(root.path());
    sampler.handle_drives(drives());
    assert_eq!(sampler.sample().len(), 1);
    root.disk("sdc", "sdc");
    assert_eq!(sampler.sample().len(), 2);
}

#[test]
fn child_that_never_ends_is_given_up_with_what_had_come() {
    let root = Root::new();
    let hangs = root.script("hangs", "echo part\nexec sleep 1000");
    let mut source = Source::default();
    source.ask(Command::new(&hangs), Duration::from_millis(300)).expect("a child");
    let began = Instant::now();
    let look = loop {
        let looked = Instant::now();
        let look = source.look();
        assert!(looked.elapsed() < Duration::from_millis(200));
        if look != Look::Waiting {
            break look;
        }
        assert!(began.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(10));
    };
    assert!(matches!(look, Look::Failed { ref part, .. } if part == "part\n"), "{look:?}");
}

#[test]
fn audit_reads_each_page_and_a_drive_that_hangs_holds_up_itself() {
    let root = Root::new();
    let page = "Device Model: X\\nSCT Error Recovery Control:\\n  Read:     70 (7.0 seconds)\\n Write:     70 (7.0 seconds)";
    let sleeps = "case \"$2 $3 $4\" in *'sdd -n standby') echo 'Device is in STANDBY mode, exit(2)'; exit 2;; esac";
    let smartctl = root.script(
        "smartctl",
        &format!("case \"$2\" in *sda) exec sleep 1000;; esac\n{sleeps}\nprintf '{page}\\n'"),
    );
    let mut auditor = Auditor::new(smartctl);
    auditor.handle_drives(
        ["sda", "sdb", "sdc", "sdd"].map(|name| (name.to_owned(), root.path().join(name))),
    );
    let began = Instant::now();
    let said =
        |auditor: &Auditor| auditor.audits().filter(|(_, it)| matches!(it, Audit::Said(_))).count();
    while said(&auditor) < 2 {
        auditor.advance();
        assert!(began.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!auditor.is_done());
    while !auditor.audits().any(|(_, audit)| *audit == Audit::NoAnswer("it sleeps".into())) {
        auditor.advance();
        assert!(began.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(10));
    }
    let began = Instant::now();
    drop(auditor);
    assert!(began.elapsed() < Duration::from_secs(2));
}

#[test]
fn fix_reads_back_and_a_drive_that_refuses_gets_a_long_timer() {
    let root = Root::new();
    root.disk("sda", "naa.1");
    let keeps = "echo \"$2\" >> LOG\nprintf 'SCT Error Recovery Control:\\n Read: 70 (x)\\n Write: 70 (x)\\n'";
    let log = root.path().join("log");
    let keeps = root.script("keeps", &keeps.replace("LOG", &log.display().to_string()));
    let devices = ["sda".to_owned()];
    let fix = |program: &Path, role: Role| {
        let (root, patience) = (root.path(), Duration::from_secs(10));
        fix_drive(&FixAsk { program, root, devices: &devices, role, patience }).expect("a fix")
    };
    let fixed = fix(&keeps, Role::Redundant);
    assert!(fixed.is_set && fixed.timers == [Some(30)], "{fixed:?}");
    assert!(fs::read_to_string(log).expect("a log").starts_with("scterc,70,70\n"));
    let refuses = root.script(
        "refuses",
        "printf 'SCT Error Recovery Control:\\n Read: Disabled\\n Write: Disabled\\n'",
    );
    let fixed = fix(&refuses, Role::Redundant);
    assert!(!fixed.is_set && fixed.timers == [Some(180)], "{fixed:?}");
    // A longer timer stays, and a drive that is alone may try for as long as it likes.
    assert_eq!(fix(&keeps, Role::Redundant).timers, [Some(180)]);
    assert!(fix(&refuses, Role::Alone).is_set);
    let made = |is_set, timer| Fix {
        erc: Erc::NotRead,
        is_set,
        timers: vec![None, Some(timer)],
        serial: None,
    };
    let rule = |identity, fix| udev_rule(identity, Role::Redundant, &fix);
    let told = rule(Identity::Wwid("naa.1"), made(true, 60)).expect("it tells");
    assert!(told.contains("echo 60 >"), "a longer timer stays: {told}");
    let told = rule(Identity::Wwid("naa.1"), made(true, 30)).expect("it tells");
    assert!(told.contains("scterc,70,70 /dev/%k") && told.contains("echo 30 >"), "{told}");
    let told = rule(Identity::Serial("ZA\"11"), made(false, 30)).expect("it tells");
    assert!(told.contains("{ID_SERIAL_SHORT}==\"ZA?11\"") && told.contains("echo 180 >"), "{told}");
}

#[test]
fn a_rule_for_udev_matches_no_other_drive_whatever_a_serial_number_is() {
    let fix = Fix { erc: Erc::NotRead, is_set: true, timers: vec![Some(30)], serial: None };
    let rule = |identity| udev_rule(identity, Role::Redundant, &fix);
    for serial in ["", "*", "x|*", "????????", "|||", "a*b"] {
        assert_eq!(rule(Identity::Serial(serial)), None, "{serial}");
        assert_eq!(rule(Identity::Wwid(serial)), None, "{serial}");
    }
    let told = rule(Identity::Serial("S-1|*\n\"RUN+=\"\x1b$%kZ9")).expect("it tells");
    assert!(told.contains("{ID_SERIAL_SHORT}==\"S-1????RUN??????kZ9\""), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    let told = rule(Identity::Wwid("t10.ATA-ST1-Z|9")).expect("it tells");
    assert!(told.contains("{wwid}==\"t10.ATA*ST1*Z?9\""), "{told}");
}

#[test]
fn two_file_systems_with_one_label_are_two_groups() {
    let root = Root::new();
    for (name, wwid) in [("sda", "naa.1"), ("sdb", "naa.2"), ("sdc", "naa.3"), ("sdd", "naa.4")] {
        root.disk(name, wwid);
    }
    for (uuid, parts) in [("1b9e", ["sda", "sdb"]), ("77aa", ["sdc", "sdd"])] {
        root.write(&format!("sys/fs/btrfs/{uuid}/label"), "data\n");
        for part in parts {
            root.folder(&format!("sys/fs/btrfs/{uuid}/devices/{part}"));
        }
    }
    let mut survey = Survey::default();
    survey.merge(Survey::parse(&super::survey(root.path()).to_string()).expect("its own text"));
    survey.merge(super::survey(root.path()));
    assert_eq!(survey.groups.len(), 2, "{survey}");
    survey.tell_apart();
    assert_eq!(group(&survey, "btrfs-data (btrfs-1b9e)").members, ["naa.1", "naa.2"]);
    assert_eq!(group(&survey, "btrfs-data (btrfs-77aa)").members, ["naa.3", "naa.4"]);
}

#[test]
fn what_labels_and_drives_say_is_clean_when_it_comes_in() {
    let root = Root::new();
    for (name, wwid) in [("sda", "naa.1\u{202e}"), ("sdb", "naa.2")] {
        root.disk(name, wwid);
        root.write(&format!("sys/block/{name}/device/model"), "M\x1b]0;title\x07\n");
        root.folder(&format!("sys/fs/btrfs/77aa/devices/{name}"));
    }
    let label = format!("data\x1b[2J\nlevelhead: md0 is fine{}", "x".repeat(1 << 10));
    root.write("sys/fs/btrfs/77aa/label", &label);
    let survey = survey(root.path());
    let pools = r#"{"pools":{"tank\u001b[2J":{"vdev_type":"disk","path":"/dev/sda"}}}"#;
    let mut pooled = survey.clone();
    pooled.add_pools(pools).expect("pools");
    for text in [survey.to_string(), pooled.to_string()] {
        assert!(!text.contains(['\x1b', '\x07', '\u{202e}']), "{text}");
        assert!(text.lines().all(|line| line.len() < 1000), "{text}");
    }
    let found = &survey.groups[0];
    assert!(found.name.starts_with(r"btrfs-data\x1b[2J\nlevelhead: md0 is fine"), "{}", found.name);
    assert_eq!(found.members, [r"naa.1\u{202e}", "naa.2"]);
}
