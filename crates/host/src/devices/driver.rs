//! A device behind the kernel's own driver.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use super::Access;
use super::nvme::{Passthrough, Queue};
use super::scsi::{Answer, Data};
use crate::ioctl;

/// A device's own driver.
pub(crate) struct Driver(File);

impl Driver {
    /// Opens a device to ask it things; it may be in use by others.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::NONBLOCK.bits() as i32;
        OpenOptions::new().read(true).custom_flags(flags).open(path).map(Self)
    }
}

impl Access for Driver {
    fn scsi(&self, cdb: &[u8], data: Data<'_>) -> io::Result<Answer> {
        ioctl::scsi(&self.0, cdb, data)
    }

    fn nvme(
        &self,
        queue: Queue,
        command: &Passthrough,
        data: &mut [u8],
    ) -> io::Result<Result<u32, u16>> {
        ioctl::nvme(&self.0, queue, command, data)
    }
}
