//! How reads reach a drive that are no ordinary ones, those that are to give up early and those that are to come from the
//! medium: what was found at the start, and whether the kernel still takes it.
//!
//! A short limit of error recovery holds for all reads of a drive, so there it is those with retries that are no ordinary
//! ones: each has a [`Pass`](super::erc::Pass).
//!
//! A way that the kernel or the drive refuses at the first read is not used again, and the read is
//! repeated without it: whatever is found here, reads work.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use levelhead_array::Promise;
use levelhead_block::{Buf, Effort};
use levelhead_units::{Lba, Sectors};

use super::cdl::{self, Pass, ReadLimit};
use super::erc::{self, DriveLimit, FastFail};
use super::forced::{Blocks, Forced};
use super::nvme::{self, Namespace, Queue, Wanted};
use super::sysfs::{Bus, Disk, LimitsState, Sysfs};
use super::{Access, Driver, Fact};
use crate::medium::Medium;

/// The ways of reads to a drive, by how hard they are to try and what they are to read.
#[derive(Debug)]
pub(crate) struct ReadWays {
    /// That of reads that are to give up early; on NVMe that of reads from the medium too.
    way: Way,
    /// Reads from the medium of SCSI and SATA disks.
    forced: Option<Arc<Forced>>,
    /// Whether reads that are to give up early are refused.
    is_refused: AtomicBool,
    /// Whether reads from the medium are refused.
    is_medium_refused: AtomicBool,
}

/// What a drive offers.
#[derive(Debug)]
enum Way {
    /// Nothing, and why.
    None(String),
    /// The drive's model itself.
    Emulated,
    /// Command duration limits, as hints in a request's priority.
    Limits { limits: Vec<ReadLimit>, pass: Pass },
    /// Reads past the block layer with limited retry, through this device.
    LimitedRetry { namespace: Namespace, device: File },
    /// A short limit of error recovery, for all reads.
    DriveLimit(DriveLimit),
}

/// What goes with one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hint {
    /// Nothing: the drive tries as it always does.
    None,
    /// This I/O priority.
    Priority(u16),
    /// It goes past the block layer to this namespace.
    Past(Namespace, Wanted),
    /// It goes past the block layer as a SCSI command, for what is on the medium.
    Forced(Blocks),
}

impl ReadWays {
    /// There is none but the ordinary one, for this reason.
    pub(crate) fn none(reason: impl Into<String>) -> Self {
        Way::None(reason.into()).into()
    }

    /// An emulated drive does as it is told.
    pub(crate) fn emulated() -> Self {
        Way::Emulated.into()
    }

    /// Limits that a test makes up.
    #[cfg(test)]
    pub(crate) fn limits(limits: Vec<ReadLimit>, pass: Pass) -> Self {
        Way::Limits { limits, pass }.into()
    }

    /// A namespace that a test makes up.
    #[cfg(test)]
    pub(crate) fn limited_retry(namespace: Namespace, device: File) -> Self {
        Way::LimitedRetry { namespace, device }.into()
    }

    /// A drive with a limit of error recovery that a test makes up.
    #[cfg(test)]
    pub(crate) fn with_drive_limit(limit: DriveLimit) -> Self {
        Way::DriveLimit(limit).into()
    }

    /// What an open drive offers, by what the kernel and the drive itself say now.
    pub(crate) fn find(path: &Path, medium: &Medium, fast_fail: FastFail) -> Self {
        let disk = Sysfs::new().disk_at(path);
        let forced = disk.as_ref().ok().and_then(|disk| {
            let device = Driver::open_to_read(path).ok()?;
            Forced::find(disk, Box::new(device), medium).ok()
        });
        let found = disk.and_then(|disk| match disk.bus() {
            Bus::Scsi | Bus::Ata => {
                let device = open(path)?;
                let limits = find_limits(&disk, &device);
                match fast_fail {
                    FastFail::Command => limits,
                    // Better one command's limit than the drive's.
                    FastFail::Erc => limits.or_else(|no_limits| {
                        let found = DriveLimit::find(&disk, path);
                        found.map(Way::DriveLimit).map_err(|why| format!("{no_limits}; {why}"))
                    }),
                }
            }
            Bus::Nvme => {
                let (_, name) = disk.namespace()?;
                let path = PathBuf::from("/dev").join(name);
                let device = File::open(&path)
                    .map_err(|error| format!("cannot open {}: {error}", path.display()))?;
                find_limited_retry(&disk, &open(&path)?, medium, device)
            }
            Bus::Other => Err("it is not a SCSI, SATA or NVMe drive".to_owned()),
        });
        let ways: Self = found.unwrap_or_else(Way::None).into();
        Self { forced: forced.map(Arc::new), ..ways }
    }

    /// The same with reads from the medium that a test makes up.
    #[cfg(test)]
    pub(crate) fn with_forced(self, forced: Forced) -> Self {
        Self { forced: Some(Arc::new(forced)), ..self }
    }

    /// What goes with a read of this effort.
    pub(crate) fn hint(&self, effort: Effort) -> Hint {
        if effort == Effort::Medium {
            return match (&self.way, &self.forced) {
                _ if self.is_medium_refused() => Hint::None,
                (Way::LimitedRetry { namespace, .. }, _) => {
                    Hint::Past(*namespace, Wanted::FromMedium)
                }
                (_, Some(forced)) => Hint::Forced(forced.blocks()),
                (_, None) => Hint::None,
            };
        }
        if effort.is_full() || self.is_refused.load(Ordering::Relaxed) {
            return Hint::None;
        }
        match &self.way {
            Way::None(_) | Way::Emulated => Hint::None,
            Way::Limits { limits, pass } => cdl::choose(limits, *pass, effort)
                .map_or(Hint::None, |number| Hint::Priority(cdl::priority(number))),
            Way::LimitedRetry { namespace, .. } => Hint::Past(*namespace, Wanted::LimitedRetry),
            Way::DriveLimit(limit) => {
                limit.gate().note_fast();
                Hint::None
            }
        }
    }

    /// What a read of this effort must have for as long as it is inside; nothing where it needs none.
    pub(crate) fn pass(&self, effort: Effort) -> Option<erc::Pass> {
        let limit = self.drive_limit().filter(|_| effort.is_full())?;
        Some(limit.gate().enter())
    }

    /// The drive's limit of error recovery, where that is changed.
    pub(crate) fn drive_limit(&self) -> Option<&DriveLimit> {
        match &self.way {
            Way::DriveLimit(limit) => Some(limit),
            Way::None(_) | Way::Emulated | Way::Limits { .. } | Way::LimitedRetry { .. } => None,
        }
    }

    /// The device that commands past the block layer go to.
    pub(crate) fn device(&self) -> Option<&File> {
        match &self.way {
            Way::LimitedRetry { device, .. } => Some(device),
            Way::None(_) | Way::Emulated | Way::Limits { .. } | Way::DriveLimit(_) => None,
        }
    }

    /// The disk that SCSI reads from the medium go to.
    pub(crate) fn forced(&self) -> Option<&Arc<Forced>> {
        self.forced.as_ref()
    }

    /// What a read from the medium is worth.
    pub(crate) fn promise(&self) -> Promise {
        match (&self.way, &self.forced) {
            (Way::Emulated, _) => Promise::Medium,
            _ if self.is_medium_refused() => Promise::Interface,
            (Way::LimitedRetry { .. }, _) | (_, Some(_)) => Promise::Medium,
            (Way::None(_) | Way::Limits { .. } | Way::DriveLimit(_), None) => Promise::Interface,
        }
    }

    fn is_medium_refused(&self) -> bool {
        self.is_medium_refused.load(Ordering::Relaxed)
    }

    /// A read from the medium has been refused: it is not tried again.
    pub(crate) fn refuse_medium(&self) {
        self.is_medium_refused.store(true, Ordering::Relaxed);
    }

    /// A read that is to give up early has been refused: none is tried again.
    pub(crate) fn refuse(&self) {
        self.is_refused.store(true, Ordering::Relaxed);
    }

    /// What is in use now for reads that are to give up early.
    pub(crate) fn state(&self) -> FastFailState {
        let is_refused = self.is_refused.load(Ordering::Relaxed);
        let (path, detail) = match &self.way {
            Way::None(reason) => (FastFailPath::None, reason.clone()),
            Way::Emulated => (FastFailPath::Emulated, "its model obeys the option".to_owned()),
            Way::Limits { .. } | Way::LimitedRetry { .. } if is_refused => {
                (FastFailPath::None, "the kernel or the drive refused it".to_owned())
            }
            Way::Limits { limits, pass } => {
                let number = cdl::choose(limits, *pass, Effort::Fast).unwrap_or(0);
                let limit = limits.iter().find(|limit| limit.number == number);
                let time = limit
                    .and_then(|limit| limit.active)
                    .map_or(0.0, |active| active.time.as_millis_f64());
                (FastFailPath::DurationLimits, format!("limit {number}: {time} ms"))
            }
            Way::LimitedRetry { namespace, .. } => {
                let nsid = namespace.nsid;
                (FastFailPath::LimitedRetry, format!("namespace {nsid}"))
            }
            Way::DriveLimit(limit) => match limit.state() {
                Ok(detail) => (FastFailPath::ErrorRecovery, detail),
                Err(why) => (FastFailPath::None, why),
            },
        };
        FastFailState { path, detail }
    }
}

impl From<Way> for ReadWays {
    fn from(way: Way) -> Self {
        Self {
            way,
            forced: None,
            is_refused: AtomicBool::new(false),
            is_medium_refused: AtomicBool::new(false),
        }
    }
}

/// How reads that are not to be retried reach a drive, for those who run the array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FastFailState {
    /// The way.
    pub path: FastFailPath,
    /// More about it; where there is none, why.
    pub detail: String,
}

/// A way to tell a drive to try less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastFailPath {
    /// There is none: the drive tries as it always does.
    None,
    /// An emulated drive needs none.
    Emulated,
    /// Command duration limits of SCSI and ATA.
    DurationLimits,
    /// Limited retry of NVMe.
    LimitedRetry,
    /// A short limit of error recovery, for the whole drive.
    ErrorRecovery,
}

impl fmt::Display for FastFailPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Emulated => "emulated",
            Self::DurationLimits => "duration-limits",
            Self::LimitedRetry => "nvme-limited-retry",
            Self::ErrorRecovery => "error-recovery",
        })
    }
}

fn open(path: &Path) -> Fact<Driver> {
    Driver::open(path).map_err(|error| format!("cannot open {}: {error}", path.display()))
}

fn find_limits(disk: &Disk, device: &dyn Access) -> Fact<Way> {
    match disk.limits()? {
        LimitsState::Unsupported => {
            return Err("the drive has no command duration limits".to_owned());
        }
        LimitsState::Off => {
            let name = &disk.name;
            return Err(format!(
                "command duration limits are off: write 1 to /sys/block/{name}/device/cdl_enable"
            ));
        }
        LimitsState::On => {}
    }
    let pass = pass_of(disk);
    let limits = cdl::ask(device)?;
    if cdl::choose(&limits, pass, Effort::Fast).is_none() {
        return Err(format!(
            "no read limit ends a command after at least {} ms of activity",
            pass.0.as_millis_f64()
        ));
    }
    Ok(Way::Limits { limits, pass })
}

/// How long a pass takes at most on a disk of its kind.
pub(crate) fn pass_of(disk: &Disk) -> Pass {
    // One that does not say is taken for the slower kind.
    if disk.flag("queue/rotational").unwrap_or(true) { Pass::ROTATING } else { Pass::SOLID }
}

/// Whether reads past the block layer give what reads through it give; a mistake here would be wrong
/// data.
fn find_limited_retry(
    disk: &Disk,
    driver: &dyn Access,
    medium: &Medium,
    device: File,
) -> Fact<Way> {
    if disk.is_part {
        return Err("it is a part of a namespace: limited retry needs all of it".to_owned());
    }
    if !medium.is_direct() {
        return Err("its reads go through the page cache".to_owned());
    }
    let (nsid, _) = disk.namespace()?;
    let (block, metadata) = nvme::ask_format(driver, nsid)?;
    let logical = disk.number("queue/logical_block_size")?;
    if metadata != 0 || logical != u64::from(block) {
        return Err(format!(
            "its blocks of {block} bytes carry {metadata} more, the kernel shows blocks of {logical}"
        ));
    }
    let namespace = Namespace { nsid, block, transfer_max: disk.transfer_max()? };
    let last = Lba::new(medium.size().get().saturating_sub(1));
    for lba in [Lba::ZERO, last] {
        let ways = both_ways(&namespace, driver, medium, lba);
        match ways.map_err(|error| format!("a read with limited retry failed: {error}"))? {
            Some(status) => {
                return Err(format!("a read with limited retry ended with status {status:03X}h"));
            }
            None => continue,
        }
    }
    Ok(Way::LimitedRetry { namespace, device })
}

/// Reads a sector past the block layer and through it. The status of the first if it failed.
fn both_ways(
    namespace: &Namespace,
    driver: &dyn Access,
    medium: &Medium,
    lba: Lba,
) -> io::Result<Option<u16>> {
    let [mut past, mut through] = [(); 2].map(|()| Buf::zeroed(Sectors::new(1)));
    let len = past.as_slice().len() as u32;
    let command = namespace.read(Wanted::LimitedRetry, crate::medium::byte_offset(lba), len, 0);
    if let Err(status) = driver.nvme(Queue::Io, &command, past.as_mut_slice())? {
        return Ok(Some(status));
    }
    medium.read(lba, through.as_mut_slice())?;
    if past.as_slice() != through.as_slice() {
        return Err(io::Error::other(format!("it returned other bytes at sector {}", lba.get())));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use levelhead_units::Nanos;
    use tempfile::TempDir;

    use super::*;
    use crate::devices::cdl::tests::page;
    use crate::devices::fake::FakeDevice;
    use crate::devices::nvme::tests::namespace_page;
    use crate::devices::sysfs::tests::tree;
    use crate::medium::Transfer;

    fn disk(name: &str, files: &[(&str, &str)]) -> (TempDir, Disk) {
        let root = tree(name, files);
        let disk = Sysfs::at(root.path()).disk((8, 0)).unwrap();
        (root, disk)
    }

    /// A drive with one limit of 100 ms.
    fn limited() -> FakeDevice {
        let bytes = [&[0; 8][..], &page(&[(0x0A, 0, 10, 0x0D, 0, 0)])].concat();
        FakeDevice::default().page(&[0x5A, 8, 0x0A, 7], &bytes)
    }

    fn check_limits(files: &[(&str, &str)], device: &FakeDevice, expected: Result<&str, &str>) {
        let (_root, disk) = disk("sda", files);
        let found = find_limits(&disk, device).map(|way| ReadWays::from(way).state().detail);
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn limits_are_used_where_they_are_on_and_long_enough() {
        let on = [("device/cdl_supported", "1"), ("device/cdl_enable", "1")];
        let off = [("device/cdl_supported", "1"), ("device/cdl_enable", "0")];
        let absent = [("device/cdl_supported", "0")];
        check_limits(&on, &limited(), Ok("limit 1: 100 ms"));
        check_limits(
            &off,
            &limited(),
            Err("command duration limits are off: write 1 to /sys/block/sda/device/cdl_enable"),
        );
        check_limits(&absent, &limited(), Err("the drive has no command duration limits"));
        check_limits(&[], &limited(), Err("the kernel does not say (device/cdl_supported)"));
        check_limits(&on, &FakeDevice::default(), Err("the drive does not know the question"));
        let bytes = [&[0; 8][..], &page(&[(0x0A, 0, 2, 0x0D, 0, 0)])].concat();
        let short = FakeDevice::default().page(&[0x5A], &bytes);
        let too_short = "no read limit ends a command after at least 50 ms of activity";
        check_limits(&on, &short, Err(too_short));
        let solid = [&on[..], &[("queue/rotational", "0")]].concat();
        check_limits(&solid, &short, Ok("limit 1: 20 ms"));
    }

    #[test]
    fn hint_follows_the_effort_until_it_is_refused() {
        let (_root, disk) =
            disk("sda", &[("device/cdl_supported", "1"), ("device/cdl_enable", "1")]);
        let ways: ReadWays = find_limits(&disk, &limited()).unwrap().into();
        let limited = Effort::Limited(Nanos::from_millis(1));
        assert_eq!(ways.hint(Effort::Full), Hint::None);
        assert_eq!(ways.hint(Effort::Fast), Hint::Priority(0x400C));
        assert_eq!(ways.hint(limited), Hint::Priority(0x400C));
        assert_eq!(ways.state().path, FastFailPath::DurationLimits);
        ways.refuse();
        assert_eq!(ways.hint(Effort::Fast), Hint::None);
        assert_eq!(ways.state().path, FastFailPath::None);
        assert_eq!(ReadWays::emulated().hint(Effort::Fast), Hint::None);
    }

    const NAMESPACE: [(&str, &str); 5] = [
        ("nsid", "1"),
        ("queue/logical_block_size", "512"),
        ("queue/max_hw_sectors_kb", "130"),
        ("queue/max_segments", "127"),
        ("queue/rotational", "0"),
    ];

    /// A controller that answers every read with these bytes.
    fn controller(metadata: u16, bytes: &[u8]) -> FakeDevice {
        let page = namespace_page(0, 9, metadata);
        let device = FakeDevice::default().nvme(6, 0, Ok(&page));
        // Sectors 0 and 7 of 4096 bytes, in blocks of 512.
        device.nvme(2, 0, Ok(bytes)).nvme(2, 56, Ok(bytes))
    }

    fn check_retry(
        files: &[(&str, &str)],
        is_part: bool,
        device: &FakeDevice,
        expected: Result<&str, &str>,
    ) {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a.img");
        std::fs::write(&path, vec![7; 8 * 4096]).unwrap();
        let medium = Medium::open(&path, Transfer::Direct).unwrap();
        if !medium.is_direct() {
            eprintln!("SKIPPED: no direct transfers in {}", folder.path().display());
            return;
        }
        let (_root, mut disk) = disk("nvme0n1", files);
        disk.is_part = is_part;
        let file = tempfile::tempfile().unwrap();
        let found = find_limited_retry(&disk, device, &medium, file);
        let found = found.map(|way| ReadWays::from(way).state().detail);
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn limited_retry_is_used_where_it_gives_the_same_bytes() {
        check_retry(&NAMESPACE, false, &controller(0, &[7; 4096]), Ok("namespace 1"));
        check_retry(
            &NAMESPACE,
            false,
            &controller(0, &[8; 4096]),
            Err("a read with limited retry failed: it returned other bytes at sector 0"),
        );
        let part = "it is a part of a namespace: limited retry needs all of it";
        check_retry(&NAMESPACE, true, &controller(0, &[7; 4096]), Err(part));
        let carries = "its blocks of 512 bytes carry 8 more, the kernel shows blocks of 512";
        check_retry(&NAMESPACE, false, &controller(8, &[7; 4096]), Err(carries));
        let failing = controller(0, &[7; 4096]).nvme(2, 56, Err(nvme::UNRECOVERED_READ));
        let ended = "a read with limited retry ended with status 281h";
        check_retry(&NAMESPACE, false, &failing, Err(ended));
        let other = [&NAMESPACE[..], &[("queue/logical_block_size", "4096")]].concat();
        let shows = "its blocks of 512 bytes carry 0 more, the kernel shows blocks of 4096";
        check_retry(&other, false, &controller(0, &[7; 4096]), Err(shows));
    }
}
