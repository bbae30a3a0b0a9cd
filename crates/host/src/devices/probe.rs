//! Everything that can be said about a device before it is used, and why the rest cannot.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use levelhead_units::Bytes;

use super::ata::{self, ErrorRecovery};
use super::cdl::{self, ReadLimit};
use super::counters::{Reading, Source};
use super::nvme::{self, Retries};
use super::sysfs::{Bus, Disk, LimitsState, Sysfs};
use super::ways;
use super::{Access, Driver, Fact};
use crate::error::{HostError, fail};

/// What was found out about a file or device.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceReport {
    /// What it is.
    pub kind: DeviceKind,
    /// Its size.
    pub size: Fact<Bytes>,
    /// The disk below it; nothing for a file.
    pub disk: Option<DiskReport>,
}

/// What something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// A file on some file system.
    File,
    /// A whole disk.
    Disk,
    /// A part of a disk.
    Part,
}

/// What was found out about a disk: by the kernel's files, and by questions to the drive itself.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskReport {
    /// The kernel's name for it.
    pub name: String,
    /// Make and model.
    pub model: Fact<String>,
    /// Size of a block as commands count them, in bytes.
    pub logical_block: Fact<u64>,
    /// Size of a block on the medium, in bytes.
    pub physical_block: Fact<u64>,
    /// Whether it turns.
    pub rotational: Fact<bool>,
    /// Commands inside it at a time.
    pub queue_depth: Fact<u64>,
    /// The kernel's scheduler in front of it.
    pub scheduler: Fact<String>,
    /// `write back` or `write through`.
    pub write_cache: Fact<String>,
    /// Whether it has command duration limits, and whether they are on.
    pub limits: Fact<LimitsState>,
    /// Its limits for reads.
    pub read_limits: Fact<Vec<ReadLimit>>,
    /// The limit that a read without retries would get.
    pub fast_limit: Fact<u8>,
    /// How long it may try (SCT ERC); nothing if it has no such limit.
    pub error_recovery: Fact<Option<ErrorRecovery>>,
    /// What bears on limited retry.
    pub limited_retry: Fact<Retries>,
    /// What it has read in its life, and what it had to repeat.
    pub counters: Fact<Counters>,
}

/// What a drive has counted in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Sectors of 4096 bytes read.
    pub sectors_read: u64,
    /// Reads that a first pass did not do.
    pub repeated: u64,
}

/// Finds out about a file or device without changing anything on it.
///
/// Fails only if nothing is there, or something that stores no sectors.
pub fn probe(path: &Path) -> Result<DeviceReport, HostError> {
    let driver = Driver::open(path);
    let ask: Fact<Box<dyn Access>> = match driver {
        Ok(driver) => Ok(Box::new(driver)),
        Err(error) => Err(format!("cannot open {}: {error}", path.display())),
    };
    report(path, &Sysfs::new(), ask.as_deref())
}

fn report(
    path: &Path,
    sysfs: &Sysfs,
    device: Result<&dyn Access, &String>,
) -> Result<DeviceReport, HostError> {
    let name = path.display();
    let metadata = path
        .metadata()
        .map_err(|error| HostError::new(format!("cannot look at {name}: {error}")))?;
    let kind = metadata.file_type();
    if kind.is_file() {
        let size = Ok(Bytes::new(metadata.len()));
        return Ok(DeviceReport { kind: DeviceKind::File, size, disk: None });
    }
    if !kind.is_block_device() {
        return fail(format!("{name} is neither a file nor a block device"));
    }
    let number = metadata.rdev();
    let disk = sysfs.disk((rustix::fs::major(number), rustix::fs::minor(number)));
    let disk = disk.map_err(|reason| HostError::new(format!("{name}: {reason}")))?;
    let kind = if disk.is_part { DeviceKind::Part } else { DeviceKind::Disk };
    Ok(DeviceReport { kind, size: disk.size(), disk: Some(about(&disk, device)) })
}

/// Everything about a disk.
fn about(disk: &Disk, device: Result<&dyn Access, &String>) -> DiskReport {
    let bus = disk.bus();
    let ask = |wanted: bool, what: &str| match device {
        _ if !wanted => Err(what.to_owned()),
        Ok(device) => Ok(device),
        Err(reason) => Err(reason.clone()),
    };
    let is_scsi = matches!(bus, Bus::Scsi | Bus::Ata);
    let read_limits = match disk.limits() {
        Ok(LimitsState::Unsupported) => Err("the drive has none".to_owned()),
        Ok(LimitsState::On | LimitsState::Off) => {
            ask(is_scsi, "only SCSI and SATA drives have them").and_then(cdl::ask)
        }
        Err(reason) => Err(reason),
    };
    let fast_limit = read_limits.as_ref().map_err(Clone::clone).and_then(|limits| {
        let chosen = cdl::choose(limits, ways::pass_of(disk), levelhead_block::Effort::Fast);
        chosen.ok_or_else(|| "none ends a command and leaves room for a healthy read".to_owned())
    });
    let counters = match Source::of(disk) {
        None => Err("it is not a SCSI, SATA or NVMe drive".to_owned()),
        Some(source) => ask(true, "").and_then(|device| source.read(device)),
    };
    DiskReport {
        name: disk.name.clone(),
        model: disk.model(),
        logical_block: disk.number("queue/logical_block_size"),
        physical_block: disk.number("queue/physical_block_size"),
        rotational: disk.flag("queue/rotational"),
        queue_depth: disk.queue_depth(),
        scheduler: disk.scheduler(),
        write_cache: disk.text("queue/write_cache"),
        limits: disk.limits(),
        read_limits,
        fast_limit,
        error_recovery: ask(bus == Bus::Ata, "only SATA drives have it")
            .and_then(ata::ask_error_recovery),
        limited_retry: ask(bus == Bus::Nvme, "only NVMe drives have it").and_then(|device| {
            let (nsid, _) = disk.namespace()?;
            nvme::ask_retries(device, nsid)
        }),
        counters: counters
            .map(|Reading { sectors_read, repeated }| Counters { sectors_read, repeated }),
    }
}

#[cfg(test)]
mod tests {
    use tempfile::NamedTempFile;

    use super::*;
    use crate::devices::cdl::tests::page;
    use crate::devices::fake::FakeDevice;
    use crate::devices::sysfs::tests::tree;

    fn find(
        name: &str,
        files: &[(&str, &str)],
        device: Result<&dyn Access, &String>,
    ) -> DiskReport {
        let root = tree(name, files);
        about(&Sysfs::at(root.path()).disk((8, 0)).unwrap(), device)
    }

    #[test]
    fn file_is_a_file_and_nothing_more() {
        let file = NamedTempFile::new().unwrap();
        file.as_file().set_len(12_345).unwrap();
        let report = probe(file.path()).unwrap();
        let expected =
            DeviceReport { kind: DeviceKind::File, size: Ok(Bytes::new(12_345)), disk: None };
        assert_eq!(report, expected);
        let error = probe(Path::new("/dev/null")).unwrap_err().to_string();
        assert_eq!(error, "/dev/null is neither a file nor a block device");
        let error = probe(&file.path().join("x")).unwrap_err().to_string();
        assert!(error.starts_with("cannot look at "), "{error}");
    }

    const SAS: [(&str, &str); 12] = [
        ("device/vendor", "WDC"),
        ("device/model", "WUH722222AL5204"),
        ("device/scsi_level", "8"),
        ("device/queue_depth", "64"),
        ("device/cdl_supported", "1"),
        ("device/cdl_enable", "0"),
        ("queue/logical_block_size", "4096"),
        ("queue/physical_block_size", "4096"),
        ("queue/rotational", "1"),
        ("queue/scheduler", "[mq-deadline] none"),
        ("queue/write_cache", "write back"),
        ("size", "42970644480"),
    ];

    #[test]
    fn disk_with_limits_tells_all_of_them() {
        let bytes = [&[0; 8][..], &page(&[(0x0A, 0, 10, 0x0D, 0, 0), (0x0A, 0, 6, 0x0F, 0, 0)])];
        let log = crate::devices::log::tests::page(&[(2, 4, 7), (5, 8, 40_960)]);
        let device = FakeDevice::default().page(&[0x5A], &bytes.concat()).page(&[0x4D], &log);
        let found = find("sdc", &SAS, Ok(&device));
        assert_eq!(found.model.as_deref(), Ok("WDC WUH722222AL5204"));
        assert_eq!((found.logical_block, found.queue_depth), (Ok(4096), Ok(64)));
        assert_eq!((found.rotational, found.limits), (Ok(true), Ok(LimitsState::Off)));
        assert_eq!(found.read_limits.unwrap().len(), 2);
        assert_eq!(found.fast_limit, Ok(2));
        assert_eq!(found.counters, Ok(Counters { sectors_read: 10, repeated: 7 }));
        assert_eq!(found.error_recovery.unwrap_err(), "only SATA drives have it");
        assert_eq!(found.limited_retry.unwrap_err(), "only NVMe drives have it");
    }

    #[test]
    fn what_cannot_be_asked_is_unknown_for_a_reason() {
        let reason = "cannot open /dev/sdc: Permission denied".to_owned();
        let found = find("sdc", &SAS, Err(&reason));
        assert_eq!(found.limits, Ok(LimitsState::Off), "the kernel tells everybody");
        assert_eq!(found.read_limits.unwrap_err(), reason);
        assert_eq!(found.fast_limit.unwrap_err(), reason);
        assert_eq!(found.counters.unwrap_err(), reason);
        let errno = Some(rustix::io::Errno::PERM.raw_os_error());
        let device = FakeDevice { errno, ..FakeDevice::default() };
        let sata = [("device/vendor", "ATA"), ("device/model", "ST2000DM006")];
        let found = find("sda", &sata, Ok(&device));
        assert_eq!(found.error_recovery.unwrap_err(), "no permission: ask as root");
        assert_eq!(found.counters.unwrap_err(), "no permission: ask as root");
        let missing = "the kernel does not say (queue/logical_block_size)";
        assert_eq!(found.logical_block.unwrap_err(), missing);
        let found = find("vda", &[], Ok(&FakeDevice::default()));
        assert_eq!(found.counters.unwrap_err(), "it is not a SCSI, SATA or NVMe drive");
    }
}
