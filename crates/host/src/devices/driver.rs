//! A device behind the kernel's own driver.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::OFlags;

use super::Access;
use super::nvme::{Passthrough, Queue};
use super::scsi::{Answer, Data};
use crate::ioctl;

/// What a driver may take for one question.
const QUESTION_MAX: Duration = Duration::from_secs(5);
/// What it may take for one read: as long as Linux gives a disk unless told otherwise.
const READ_MAX: Duration = Duration::from_secs(30);

/// A device's own driver.
pub(crate) struct Driver {
    file: File,
    /// What it may take for one SCSI command.
    patience: Duration,
}

impl Driver {
    /// Opens a device to ask it things; it may be in use by others.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::NONBLOCK.bits() as i32;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        Ok(Self { file, patience: QUESTION_MAX })
    }

    /// The same to read from its medium, which takes longer than an answer to a question.
    pub(crate) fn open_to_read(path: &Path) -> io::Result<Self> {
        Ok(Self { patience: READ_MAX, ..Self::open(path)? })
    }
}

impl Access for Driver {
    fn scsi(&self, cdb: &[u8], data: Data<'_>) -> io::Result<Answer> {
        ioctl::scsi(&self.file, cdb, data, self.patience)
    }

    fn nvme(
        &self,
        queue: Queue,
        command: &Passthrough,
        data: &mut [u8],
    ) -> io::Result<Result<u32, u16>> {
        ioctl::nvme(&self.file, queue, command, data)
    }
}
