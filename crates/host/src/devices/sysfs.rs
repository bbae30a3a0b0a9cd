//! What the kernel knows of a block device: small files below `sys`.
//!
//! ```text
//!   dev/block/8:1 -> ../../devices/../block/sdb/sdb1       a partition: it has a file `partition`
//!                    ../../devices/../block/sdb            its disk: queue/..  device/..
//! ```

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use levelhead_units::{Bytes, foreign};

use super::Fact;

/// A tree of such files: the kernel's own, or one made for a test.
#[derive(Clone, Debug)]
pub(crate) struct Sysfs(PathBuf);

/// One disk, or a part of one.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    /// Its folder.
    folder: PathBuf,
    /// The folder of what was asked about: its own, or that of a part of it.
    own: PathBuf,
    /// The kernel's name for it.
    pub(crate) name: String,
    /// Whether what was asked about is a part of it.
    pub(crate) is_part: bool,
}

/// How a disk is attached, as far as it says what can be asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bus {
    /// SCSI, SAS.
    Scsi,
    /// SATA, which the kernel shows as SCSI.
    Ata,
    /// NVMe.
    Nvme,
    /// Anything else: a virtual disk, a loop, a mapping.
    Other,
}

/// Whose words a disk's commands are carried out by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attachment {
    /// A drive's own: it is an end of a SAS domain.
    Sas,
    /// The kernel's translation to ATA (libata).
    Libata,
    /// Any other: a controller's, a bridge's, another machine's.
    Other,
}

/// A disk's command duration limits as the kernel sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitsState {
    /// The drive has them and the kernel passes them on.
    On,
    /// The drive has them and they are switched off.
    Off,
    /// The drive does not have them.
    Unsupported,
}

impl Sysfs {
    /// The kernel's own.
    pub(crate) fn new() -> Self {
        Self("/sys".into())
    }

    #[cfg(test)]
    pub(crate) fn at(root: &Path) -> Self {
        Self(root.to_owned())
    }

    /// The disk with, or around, the device of this number.
    pub(crate) fn disk(&self, (major, minor): (u32, u32)) -> Fact<Disk> {
        let link = self.0.join(format!("dev/block/{major}:{minor}"));
        let own = fs::canonicalize(&link)
            .map_err(|error| format!("the kernel says nothing about {major}:{minor}: {error}"))?;
        let is_part = own.join("partition").exists();
        let folder = if is_part { own.parent().unwrap_or(&own).to_owned() } else { own.clone() };
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Disk { folder, own, name, is_part })
    }

    /// The disk at `path`, if a block device is there.
    pub(crate) fn disk_at(&self, path: &Path) -> Fact<Disk> {
        let metadata = path.metadata().map_err(|error| error.to_string())?;
        if !metadata.file_type().is_block_device() {
            return Err("it is a file".to_owned());
        }
        let number = metadata.rdev();
        self.disk((rustix::fs::major(number), rustix::fs::minor(number)))
    }
}

impl Disk {
    /// The text of one of its files, without what surrounds it, cleaned.
    pub(crate) fn text(&self, file: &str) -> Fact<String> {
        text(&self.folder, file)
    }

    /// The number in one of its files.
    pub(crate) fn number(&self, file: &str) -> Fact<u64> {
        number(&self.folder, file)
    }

    /// A file that says 0 or 1.
    pub(crate) fn flag(&self, file: &str) -> Fact<bool> {
        Ok(self.number(file)? != 0)
    }

    pub(crate) fn bus(&self) -> Bus {
        if self.name.starts_with("nvme") {
            return Bus::Nvme;
        }
        match self.text("device/vendor").as_deref() {
            Ok("ATA") => Bus::Ata,
            Ok(_) if self.folder.join("device/scsi_level").exists() => Bus::Scsi,
            Ok(_) | Err(_) => Bus::Other,
        }
    }

    /// How it hangs on the machine, by the folders that it lies in.
    pub(crate) fn attachment(&self) -> Attachment {
        let is_port = |name: &str| {
            let number = name.strip_prefix("ata");
            number.is_some_and(|text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()))
        };
        let names = || self.folder.iter().filter_map(|name| name.to_str());
        match self.bus() {
            Bus::Ata if names().any(is_port) => Attachment::Libata,
            Bus::Scsi if names().any(|name| name.starts_with("end_device-")) => Attachment::Sas,
            Bus::Ata | Bus::Scsi | Bus::Nvme | Bus::Other => Attachment::Other,
        }
    }

    /// How large it is, or its part; the kernel counts 512 bytes, whatever the disk counts.
    pub(crate) fn size(&self) -> Fact<Bytes> {
        let count = number(&self.own, "size")?;
        count.checked_mul(512).map(Bytes::new).ok_or_else(|| format!("{count} is too large"))
    }

    /// Bytes of one command past the block layer: no more than the device moves at a time, from memory
    /// whose pages lie anywhere.
    pub(crate) fn transfer_max(&self) -> Fact<u32> {
        const SECTOR: u64 = levelhead_units::SECTOR_SIZE as u64;
        const MOST: u64 = 1 << 20;
        let bytes = self.number("queue/max_hw_sectors_kb")?.saturating_mul(1024);
        let pieces = self.number("queue/max_segments")?.saturating_mul(SECTOR);
        let most = bytes.min(pieces).min(MOST) / SECTOR * SECTOR;
        if most == 0 {
            Err("it takes less than a sector at a time".to_owned())
        } else {
            Ok(most as u32)
        }
    }

    /// Make and model in one line.
    pub(crate) fn model(&self) -> Fact<String> {
        let model = self.text("device/model")?;
        Ok(match self.text("device/vendor") {
            // An NVMe drive's vendor is a number of the bus.
            Ok(vendor) if self.bus() == Bus::Scsi => format!("{vendor} {model}"),
            Ok(_) | Err(_) => model,
        })
    }

    /// What tells it from every other drive, wherever it is plugged in.
    pub(crate) fn lasting_name(&self) -> Fact<String> {
        self.text("device/wwid")
            .ok()
            .filter(|name| !name.is_empty())
            .ok_or_else(|| "the kernel has no lasting name for it (device/wwid)".to_owned())
    }

    /// The scheduler in use, which stands in brackets among those there are.
    pub(crate) fn scheduler(&self) -> Fact<String> {
        let text = self.text("queue/scheduler")?;
        let chosen = text.split_once('[').and_then(|(_, rest)| Some(rest.split_once(']')?.0));
        Ok(chosen.unwrap_or(&text).to_owned())
    }

    /// Commands inside the device at a time.
    pub(crate) fn queue_depth(&self) -> Fact<u64> {
        self.number("device/queue_depth").or_else(|_| self.number("queue/nr_requests"))
    }

    /// Whether command duration limits are there and on. Kernels before 6.5 do not know them.
    pub(crate) fn limits(&self) -> Fact<LimitsState> {
        if !self.flag("device/cdl_supported")? {
            return Ok(LimitsState::Unsupported);
        }
        Ok(if self.flag("device/cdl_enable")? { LimitsState::On } else { LimitsState::Off })
    }

    /// The number of an NVMe namespace, and the character device beside it: `ng0n1` for `nvme0n1`.
    pub(crate) fn namespace(&self) -> Fact<(u32, String)> {
        let nsid = self.number("nsid")?;
        let nsid = u32::try_from(nsid).map_err(|_| format!("{nsid} is not a namespace"))?;
        let rest = self.name.strip_prefix("nvme").ok_or("it is not an NVMe namespace")?;
        Ok((nsid, format!("ng{rest}")))
    }
}

fn text(folder: &Path, file: &str) -> Fact<String> {
    let text = fs::read_to_string(folder.join(file));
    let text = text.map_err(|_| format!("the kernel does not say ({file})"))?;
    Ok(foreign(text.trim()))
}

fn number(folder: &Path, file: &str) -> Fact<u64> {
    let text = text(folder, file)?;
    text.parse().map_err(|_| format!("'{text}' in {file} is not a number"))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    /// A tree with one disk, number 8:0, and its first part, 8:1.
    pub(crate) fn tree(name: &str, files: &[(&str, &str)]) -> TempDir {
        tree_below("bus", name, files)
    }

    /// The same with the disk below these folders.
    pub(crate) fn tree_below(below: &str, name: &str, files: &[(&str, &str)]) -> TempDir {
        let root = TempDir::new().unwrap();
        let folder = root.path().join(format!("devices/{below}/block/{name}"));
        let part = folder.join(format!("{name}1"));
        fs::create_dir_all(&part).unwrap();
        fs::write(part.join("partition"), "1\n").unwrap();
        fs::write(part.join("size"), "2048\n").unwrap();
        for (file, text) in files {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }
        fs::create_dir_all(root.path().join("dev/block")).unwrap();
        symlink(&folder, root.path().join("dev/block/8:0")).unwrap();
        symlink(&part, root.path().join("dev/block/8:1")).unwrap();
        root
    }

    #[test]
    fn part_leads_to_its_disk() {
        let root = tree("sdb", &[("size", "7814037168")]);
        let sysfs = Sysfs::at(root.path());
        let (disk, part) = (sysfs.disk((8, 0)).unwrap(), sysfs.disk((8, 1)).unwrap());
        assert_eq!((disk.name.as_str(), disk.is_part), ("sdb", false));
        assert_eq!((part.name.as_str(), part.is_part), ("sdb", true));
        assert_eq!(disk.size().unwrap().get(), 7_814_037_168 * 512);
        assert_eq!(part.size().unwrap().get(), 1 << 20);
        let error = sysfs.disk((8, 2)).unwrap_err();
        assert!(error.starts_with("the kernel says nothing about 8:2: "), "{error}");
    }

    #[test]
    fn files_are_read_and_what_is_missing_is_said() {
        let root = tree(
            "sdb",
            &[
                ("device/vendor", "SEAGATE "),
                ("device/model", "ST4000NM0023    "),
                ("device/scsi_level", "7"),
                ("device/queue_depth", "254"),
                ("queue/scheduler", "none [mq-deadline] kyber"),
                ("queue/rotational", "maybe"),
                ("size", "18446744073709551615"),
            ],
        );
        let disk = Sysfs::at(root.path()).disk((8, 0)).unwrap();
        assert_eq!(disk.model().unwrap(), "SEAGATE ST4000NM0023");
        assert_eq!(disk.scheduler().unwrap(), "mq-deadline");
        assert_eq!(disk.queue_depth(), Ok(254));
        assert_eq!(disk.bus(), Bus::Scsi);
        assert_eq!(
            disk.flag("queue/rotational").unwrap_err(),
            "'maybe' in queue/rotational is not a number"
        );
        assert_eq!(disk.size().unwrap_err(), "18446744073709551615 is too large");
        assert_eq!(disk.limits().unwrap_err(), "the kernel does not say (device/cdl_supported)");
    }

    #[test]
    fn limits_are_on_only_where_both_files_say_so() {
        for (supported, enabled, expected) in [
            ("1", "1", LimitsState::On),
            ("1", "0", LimitsState::Off),
            ("0", "0", LimitsState::Unsupported),
        ] {
            let files = [("device/cdl_supported", supported), ("device/cdl_enable", enabled)];
            let root = tree("sdb", &files);
            let disk = Sysfs::at(root.path()).disk((8, 1)).unwrap();
            assert_eq!(disk.limits(), Ok(expected));
        }
    }

    #[test]
    fn attachment_is_told_by_the_folders_around_a_disk() {
        for (below, vendor, expected) in [
            ("pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0", "ATA", Attachment::Libata),
            ("pci0000:00/host0/port-0:1/end_device-0:1/0:0:1:0", "HGST", Attachment::Sas),
            // A SATA drive behind a SAS controller, whose firmware translates.
            ("pci0000:00/host0/port-0:1/end_device-0:1/0:0:1:0", "ATA", Attachment::Other),
            ("pci0000:00/usb2/2-1/2-1:1.0/host6/target6:0:0/6:0:0:0", "WD", Attachment::Other),
            ("pci0000:00/host0/target0:2:0/0:2:0:0", "DELL", Attachment::Other),
            ("ata/atax1/host0", "ATA", Attachment::Other),
        ] {
            let files = [("device/vendor", vendor), ("device/scsi_level", "7")];
            let root = tree_below(below, "sda", &files);
            let disk = Sysfs::at(root.path()).disk((8, 0)).unwrap();
            assert_eq!(disk.attachment(), expected, "{below} {vendor}");
        }
    }

    #[test]
    fn bus_is_told_by_name_and_vendor() {
        for (name, vendor, expected) in [
            ("nvme0n1", "0x144d", Bus::Nvme),
            ("sda", "ATA     ", Bus::Ata),
            ("vda", "0x1af4", Bus::Other),
        ] {
            let root = tree(name, &[("device/vendor", vendor), ("nsid", "2")]);
            let disk = Sysfs::at(root.path()).disk((8, 0)).unwrap();
            assert_eq!(disk.bus(), expected, "{name}");
            let namespace = disk.namespace();
            if expected == Bus::Nvme {
                assert_eq!(namespace, Ok((2, "ng0n1".to_owned())));
            } else {
                assert_eq!(namespace.unwrap_err(), "it is not an NVMe namespace");
            }
        }
    }

    #[test]
    fn one_read_is_no_larger_than_the_device_takes() {
        let check = |kib: &str, segments: &str, expected: Result<u32, &str>| {
            let files = [("queue/max_hw_sectors_kb", kib), ("queue/max_segments", segments)];
            let root = tree("nvme0n1", &files);
            let disk = Sysfs::at(root.path()).disk((8, 0)).unwrap();
            assert_eq!(
                disk.transfer_max().as_ref().map(|&most| most).map_err(String::as_str),
                expected
            );
        };
        check("130", "127", Ok(128 << 10));
        check("512", "33", Ok(33 * 4096));
        check("18446744073709551615", "65535", Ok(1 << 20));
        check("2", "127", Err("it takes less than a sector at a time"));
    }
}
