//! Which drives there are and which of them belong together, from the kernel's files.
//!
//! ```text
//!   md     sys/block/mdX/md/{raid_disks,sync_action,level}, slaves/     dm   sys/block/dm-X/{dm/uuid,slaves/}
//!   btrfs  sys/fs/btrfs/UUID/devices/                                  Ceph  var/lib/ceph/osd/ceph-N/block -> dm -> disk
//! ```
//!
//! A part is its disk, and whatever has `slaves` is what they lead to, to any depth. Two drives with the same key are two paths to one.
//! A drive is found by what it says of itself (WWID, page 83h); a virtual one by its name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use levelhead_units::foreign;
use rustix::fs::OFlags;

/// A file of the kernel's is at most so long, in bytes.
const TEXT_MAX: u64 = 64 << 10;

/// How deep devices stand on devices at most.
const DEPTH_MAX: usize = 16;

/// What binds drives together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Linux MD.
    Md,
    /// LVM and other device-mapper targets over several drives.
    Dm,
    /// Btrfs.
    Btrfs,
    /// The OSDs of a host.
    Ceph,
    /// ZFS.
    Zfs,
    /// A file of the operator's.
    File,
}

impl Kind {
    /// All, with their names.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::Md, "md"),
        (Self::Dm, "dm"),
        (Self::Btrfs, "btrfs"),
        (Self::Ceph, "ceph"),
        (Self::Zfs, "zfs"),
        (Self::File, "file"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }
}

/// One disk.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SurveyedDrive {
    /// What identifies it: its WWID, or its name.
    pub key: String,
    /// The kernel's names of the paths to it, in order.
    pub devices: Vec<String>,
    /// Its model, empty if unknown.
    pub model: String,
    /// Whether it turns, as the kernel has it.
    pub is_rotational: bool,
    /// Seconds after which the kernel gives a command up.
    pub timer: Option<f64>,
    /// Whether it has command duration limits, and whether they are on.
    pub cdl: Option<bool>,
}

/// Drives that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct SurveyedGroup {
    /// What identifies it on this host: a UUID where its name is a label, which others may have too; otherwise its name.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// What binds them.
    pub kind: Kind,
    /// Whether others hold what one of them holds.
    pub redundancy: Redundancy,
    /// Whether it is being rebuilt, checked or reshaped.
    pub is_rebuilding: bool,
    /// The keys of its drives.
    pub members: Vec<String>,
}

/// Whether the drives of a group stand in for one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redundancy {
    /// One of them can be spared.
    Spare,
    /// It has some, and none of it is known to be left: a member is missing, or the group is not whole for another reason.
    UsedUp,
    /// There is none.
    None,
}

/// All that was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Survey {
    /// By their keys.
    pub drives: BTreeMap<String, SurveyedDrive>,
    /// In the order of their names; those of one name in the order of what identifies them.
    pub groups: Vec<SurveyedGroup>,
}

/// What an md array can spare: of a level that has redundancy one member, if no other is missing.
fn md_redundancy(level: &str, degraded: Option<&str>) -> Redundancy {
    let spares = match level {
        "raid0" | "linear" => return Redundancy::None,
        "raid1" | "raid4" | "raid5" | "raid10" => 1,
        "raid6" => 2,
        _ => return Redundancy::UsedUp,
    };
    // Some arrays have no such file; one that cannot be understood says nothing.
    let missing = degraded.map_or(Some(0), |text| text.parse::<u32>().ok());
    match missing {
        Some(missing) if missing < spares => Redundancy::Spare,
        Some(_) | None => Redundancy::UsedUp,
    }
}

/// What is below `root`. May hang with whatever the files below it hang with.
pub fn survey(root: &Path) -> Survey {
    let mut survey = Survey::default();
    survey_each(root, &mut |part| survey.merge(part));
    survey
}

/// The same, each part told as soon as it is known: drives first, and md's groups, whose files may hang, last.
fn survey_each(root: &Path, tell: &mut dyn FnMut(Survey)) {
    let tree = Tree::read(root);
    tell(Survey { drives: tree.drives(), groups: Vec::new() });
    let mut groups = |groups: Vec<SurveyedGroup>| tell(Survey { groups, drives: BTreeMap::new() });
    groups(tree.dm());
    groups(tree.btrfs());
    groups(tree.ceph());
    tree.md().for_each(|group| groups(vec![group]));
}

/// Writes what is below `root` for [`Survey::parse`], each part as soon as it is known.
///
/// # Errors
///
/// `out` does not take it.
pub fn write_survey(root: &Path, out: &mut dyn Write) -> std::io::Result<()> {
    let mut written = Ok(());
    survey_each(root, &mut |part| {
        if written.is_ok() {
            written = write!(out, "{part}").and_then(|()| out.flush());
        }
    });
    written.and_then(|()| writeln!(out, "end"))
}

impl Survey {
    /// Takes over what another one found; of a group that both have, the other's.
    pub fn merge(&mut self, other: Self) {
        self.drives.extend(other.drives);
        self.groups.retain(|it| !other.groups.iter().any(|new| new.id == it.id));
        self.groups.extend(other.groups);
        self.groups.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
    }

    /// Gives groups of one name names of their own, with what identifies them behind it.
    pub fn tell_apart(&mut self) {
        let mut counts = BTreeMap::<String, usize>::new();
        for group in &self.groups {
            *counts.entry(group.name.clone()).or_default() += 1;
        }
        for group in self.groups.iter_mut().filter(|it| counts[&it.name] > 1) {
            group.name = format!("{} ({})", group.name, group.id);
        }
    }

    /// The key of the drive behind one of the kernel's names, a part's or a disk's.
    pub fn key_of(&self, device: &str) -> Option<&str> {
        let of = |name: &str| {
            self.drives.values().find(|drive| drive.devices.iter().any(|it| it == name))
        };
        let stem = device.trim_end_matches(|c: char| c.is_ascii_digit());
        let disk = if stem.contains(|c: char| c.is_ascii_digit()) {
            stem.strip_suffix('p').unwrap_or(stem)
        } else {
            stem
        };
        of(device).or_else(|| of(disk)).map(|drive| drive.key.as_str())
    }
}

struct Tree {
    root: PathBuf,
    /// The names in `sys/block`, with the key of each disk that stands on nothing.
    keys: BTreeMap<String, String>,
}

fn bytes(path: &Path) -> Option<Vec<u8>> {
    // So that a FIFO is no wait, if it stands for a file.
    let file = fs::OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open(path)
        .ok()?;
    let mut bytes = Vec::new();
    file.take(TEXT_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// What a file says, clean: labels and models are what somebody else has written.
fn text(path: &Path) -> Option<String> {
    let text = String::from_utf8(bytes(path)?).ok()?;
    Some(foreign(text.trim())).filter(|text| !text.is_empty())
}

fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<_> =
        entries.flatten().map(|it| it.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

impl Tree {
    fn read(root: &Path) -> Self {
        let mut tree = Self { root: root.to_owned(), keys: BTreeMap::new() };
        for name in names(&root.join("sys/block")) {
            let is_virtual = ["dm-", "md", "loop", "ram", "zram", "zd", "sr", "nbd"]
                .iter()
                .any(|it| name.starts_with(it));
            if !is_virtual {
                let key = tree.key(&name);
                tree.keys.insert(name, key);
            }
        }
        tree
    }

    fn block(&self, name: &str) -> PathBuf {
        self.root.join("sys/block").join(name)
    }

    fn key(&self, name: &str) -> String {
        let block = self.block(name);
        let said = ["device/wwid", "wwid"].iter().find_map(|file| text(&block.join(file)));
        let said = said.filter(|it| !it.is_empty());
        let page = || bytes(&block.join("device/vpd_pg83")).and_then(|page| naa(&page));
        let key = said.or_else(page).unwrap_or_else(|| foreign(name));
        key.split_whitespace().collect::<Vec<_>>().join("-")
    }

    fn drives(&self) -> BTreeMap<String, SurveyedDrive> {
        let mut drives = BTreeMap::<String, SurveyedDrive>::new();
        for (name, key) in &self.keys {
            let block = self.block(name);
            let number = |file: &str| text(&block.join(file)).and_then(|it| it.parse::<f64>().ok());
            let drive = drives.entry(key.clone()).or_default();
            drive.key.clone_from(key);
            drive.devices.push(name.clone());
            drive.model = text(&block.join("device/model")).unwrap_or_default();
            drive.is_rotational = number("queue/rotational") == Some(1.0);
            drive.timer = number("device/timeout").filter(|it| *it > 0.0);
            let has_cdl = number("device/cdl_supported") == Some(1.0);
            drive.cdl = has_cdl.then(|| number("device/cdl_enable") == Some(1.0));
        }
        drives
    }

    /// The disks below a block device.
    fn disks(&self, name: &str, depth: usize, keys: &mut BTreeSet<String>) {
        let class = self.root.join("sys/class/block").join(name);
        let block = self.block(name);
        let folder = if block.exists() { block } else { class.clone() };
        let slaves = names(&folder.join("slaves"));
        if let Some(key) = self.keys.get(name) {
            keys.insert(key.clone());
        } else if !slaves.is_empty() && depth < DEPTH_MAX {
            for slave in slaves {
                self.disks(&slave, depth + 1, keys);
            }
        } else if let Some(disk) = self.disk_of_part(name, &class) {
            keys.insert(disk);
        }
    }

    /// By the folder that a part lies in, or by the one that has it.
    fn disk_of_part(&self, name: &str, class: &Path) -> Option<String> {
        let real = fs::canonicalize(class).ok();
        let parent = real.as_deref().and_then(Path::parent).and_then(Path::file_name);
        let above = parent.and_then(|it| self.keys.get(&*it.to_string_lossy()));
        let has = || {
            self.keys
                .iter()
                .find(|(disk, _)| self.block(disk).join(name).exists())
                .map(|(_, key)| key)
        };
        above.or_else(has).cloned()
    }

    fn members(&self, names: impl IntoIterator<Item = String>) -> Vec<String> {
        let mut keys = BTreeSet::new();
        for name in names {
            self.disks(&name, 0, &mut keys);
        }
        keys.into_iter().collect()
    }

    fn md(&self) -> impl Iterator<Item = SurveyedGroup> {
        let arrays = names(&self.root.join("sys/block"))
            .into_iter()
            .filter(|name| self.block(name).join("md").exists());
        let group = move |name: String| {
            let md = self.block(&name).join("md");
            let level = text(&md.join("level")).unwrap_or_default();
            let action = text(&md.join("sync_action"));
            let parts =
                names(&md).into_iter().filter_map(|it| it.strip_prefix("dev-").map(str::to_owned));
            // A spare has no load; one that failed is no member.
            let serves = |part: &String| {
                let file = |file: &str| text(&md.join(format!("dev-{part}")).join(file));
                file("slot").is_none_or(|it| it != "none")
                    && !file("state").is_some_and(|it| it.contains("faulty"))
            };
            let mut members = self.members(parts.filter(serves));
            if members.is_empty() {
                members = self.members([name.clone()]);
            }
            SurveyedGroup {
                kind: Kind::Md,
                redundancy: md_redundancy(&level, text(&md.join("degraded")).as_deref()),
                is_rebuilding: action.is_some_and(|it| it != "idle"),
                members,
                id: name.clone(),
                name,
            }
        };
        arrays.map(group)
    }

    /// Device-mapper devices that stand on several disks by themselves and on no group that is shown already.
    fn dm(&self) -> Vec<SurveyedGroup> {
        let mut groups = Vec::<SurveyedGroup>::new();
        for device in names(&self.root.join("sys/block")) {
            let dm = self.block(&device).join("dm");
            let Some(uuid) = text(&dm.join("uuid")) else { continue };
            let mut below = names(&self.block(&device).join("slaves"));
            if uuid.starts_with("mpath-") || below.len() < 2 && !uuid.starts_with("LVM-") {
                continue;
            }
            below.retain(|it| !it.starts_with("md"));
            let members = self.members(below);
            if members.len() < 2 || groups.iter().any(|it| it.members == members) {
                continue;
            }
            let name = text(&dm.join("name")).unwrap_or(device);
            let has_images = name_has_images(&self.root, &uuid, &name);
            groups.push(SurveyedGroup {
                id: name.clone(),
                name,
                kind: Kind::Dm,
                redundancy: if has_images { Redundancy::Spare } else { Redundancy::None },
                is_rebuilding: false,
                members,
            });
        }
        groups
    }

    fn btrfs(&self) -> Vec<SurveyedGroup> {
        let folder = self.root.join("sys/fs/btrfs");
        let group = |uuid: String| {
            let members = self.members(names(&folder.join(&uuid).join("devices")));
            let label = text(&folder.join(&uuid).join("label")).filter(|it| !it.is_empty());
            let data = folder.join(&uuid).join("allocation/data");
            let is_redundant = ["raid1", "raid1c3", "raid1c4", "raid10", "raid5", "raid6"]
                .iter()
                .any(|it| data.join(it).exists());
            let is_rebuilding = text(&folder.join(&uuid).join("exclusive_operation"))
                .is_some_and(|it| it != "none");
            let id = format!("btrfs-{uuid}");
            let name = label.map_or_else(|| id.clone(), |label| format!("btrfs-{label}"));
            (!members.is_empty()).then_some(SurveyedGroup {
                id,
                name,
                kind: Kind::Btrfs,
                redundancy: if is_redundant { Redundancy::Spare } else { Redundancy::None },
                is_rebuilding,
                members,
            })
        };
        names(&folder).into_iter().filter(|it| it != "features").filter_map(group).collect()
    }

    /// The OSDs of this host, turning disks and others apart; other hosts hold what one of them holds.
    fn ceph(&self) -> Vec<SurveyedGroup> {
        let folder = self.root.join("var/lib/ceph/osd");
        let device = |osd: String| {
            let link = fs::read_link(folder.join(osd).join("block")).ok()?;
            let name = link.file_name()?.to_string_lossy().into_owned();
            self.by_dm_name(&name, &link).or(Some(name))
        };
        let devices: Vec<_> = names(&folder).into_iter().filter_map(device).collect();
        let drives = self.drives();
        let of_kind = |is_rotational: bool| {
            let mut members = self.members(devices.clone());
            members
                .retain(|key| drives.get(key).is_some_and(|it| it.is_rotational == is_rotational));
            let name = if is_rotational { "ceph-hdd" } else { "ceph-ssd" }.to_owned();
            let group = SurveyedGroup {
                id: name.clone(),
                name,
                kind: Kind::Ceph,
                redundancy: Redundancy::Spare,
                is_rebuilding: false,
                members,
            };
            (!group.members.is_empty()).then_some(group)
        };
        [true, false].into_iter().filter_map(of_kind).collect()
    }

    /// `/dev/VG/LV` is `VG-LV` to the device mapper, with dashes of the names doubled.
    fn by_dm_name(&self, name: &str, link: &Path) -> Option<String> {
        let vg = link.parent()?.file_name()?.to_string_lossy().replace('-', "--");
        let full = format!("{vg}-{}", name.replace('-', "--"));
        let is_it = |device: &String| {
            text(&self.block(device).join("dm/name")).is_some_and(|it| it == full || it == name)
        };
        names(&self.root.join("sys/block"))
            .into_iter()
            .filter(|it| it.starts_with("dm-"))
            .find(is_it)
    }
}

/// Whether a logical volume is made of images, as mirrors and RAID levels above 0 are; images have names of their own.
fn name_has_images(root: &Path, uuid: &str, name: &str) -> bool {
    let image = format!("{name}_rmeta_");
    let older = format!("{name}_mimage_");
    let blocks = names(&root.join("sys/block")).into_iter().filter(|it| it.starts_with("dm-"));
    let mut others = blocks.filter_map(|it| text(&root.join("sys/block").join(it).join("dm/name")));
    uuid.starts_with("LVM-") && others.any(|it| it.starts_with(&image) || it.starts_with(&older))
}

/// The first NAA identifier of a page 83h.
fn naa(page: &[u8]) -> Option<String> {
    let mut rest = page.get(4..)?;
    while let [_, kind, _, len, ..] = *rest {
        let id = rest.get(4..4 + usize::from(len))?;
        if kind & 0x3f == 3 {
            return Some(
                id.iter().fold("naa.".to_owned(), |text, byte| format!("{text}{byte:02x}")),
            );
        }
        rest = &rest[4 + usize::from(len)..];
    }
    None
}
