//! The calls that a device's driver takes beyond reading and writing: SCSI commands through `SG_IO`,
//! NVMe commands through `NVME_IOCTL_ADMIN_CMD` and `NVME_IOCTL_IO_CMD`. And what the kernel itself says of a block
//! device: whether it takes writes (`BLKROGET`), and that it is to look for partitions again (`BLKRRPART`).
//!
//! Everything here is a struct laid out as the kernel wants it, and one call. What the bytes mean is
//! said in [`devices`](crate::devices), which sees this through the trait
//! [`Access`](crate::devices::Access).
//!
//! # Safety
//!
//! - I1. Every pointer in a struct leads to memory that the calling function borrows until the call
//!   has returned, and every length beside it is that memory's.
//! - I2. An opcode and the struct that belongs to it are paired here alone.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::time::Duration;

use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, opcode};

use crate::devices::nvme::{Passthrough, Queue};
use crate::devices::scsi::{Answer, Data};

/// `SG_IO` of `<scsi/sg.h>`.
const SG_IO: Opcode = 0x2285;

/// `BLKROGET` and `BLKRRPART` of `<linux/fs.h>`.
const BLKROGET: Opcode = opcode::none(0x12, 94);
const BLKRRPART: Opcode = opcode::none(0x12, 95);

/// `struct sg_io_hdr` of `<scsi/sg.h>`.
#[repr(C)]
struct SgIo {
    interface: i32,
    direction: i32,
    cdb_len: u8,
    sense_max: u8,
    iovec_count: u16,
    data_len: u32,
    data: *mut u8,
    cdb: *const u8,
    sense: *mut u8,
    timeout_ms: u32,
    flags: u32,
    pack_id: i32,
    user: *mut c_void,
    status: u8,
    masked_status: u8,
    message_status: u8,
    sense_len: u8,
    host_status: u16,
    driver_status: u16,
    residual: i32,
    duration_ms: u32,
    info: u32,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<SgIo>() == 88);
const _: () = assert!(size_of::<Passthrough>() == 72);

/// One call with a struct that the kernel reads and writes.
struct Call<'a, T> {
    opcode: Opcode,
    argument: &'a mut T,
}

// SAFETY: the opcode is the argument's own (I2), and nothing is made from the pointer afterwards.
unsafe impl<T> Ioctl for Call<'_, T> {
    type Output = i32;

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        self.opcode
    }

    fn as_ptr(&mut self) -> *mut c_void {
        std::ptr::from_mut(self.argument).cast()
    }

    unsafe fn output_from_ptr(out: IoctlOutput, _: *mut c_void) -> rustix::io::Result<i32> {
        Ok(out)
    }
}

/// Whether the kernel takes no writes for a block device. What is none, or does not say, is asked by writing.
pub(crate) fn is_read_only(device: &File) -> bool {
    let mut is_read_only: i32 = 0;
    let call = Call { opcode: BLKROGET, argument: &mut is_read_only };
    // SAFETY: I1, I2: the kernel writes an `int`.
    let said = unsafe { rustix::ioctl::ioctl(device, call) };
    said.is_ok() && is_read_only != 0
}

/// Has the kernel read a block device's partition table again.
pub(crate) fn read_partitions_again(device: &File) -> io::Result<()> {
    let call = Call { opcode: BLKRRPART, argument: &mut () };
    // SAFETY: I1, I2: the kernel ignores the argument.
    unsafe { rustix::ioctl::ioctl(device, call) }?;
    Ok(())
}

/// Sends a SCSI command and waits for its end, which the driver brings about after `patience`.
pub(crate) fn scsi(
    device: &File,
    cdb: &[u8],
    data: Data<'_>,
    patience: Duration,
) -> io::Result<Answer> {
    const TO_DEVICE: i32 = -2;
    const FROM_DEVICE: i32 = -3;
    let (direction, start, len) = match data {
        // The kernel does not write to it: the direction says so.
        Data::Out(bytes) => (TO_DEVICE, bytes.as_ptr().cast_mut(), bytes.len()),
        Data::In(bytes) => (FROM_DEVICE, bytes.as_mut_ptr(), bytes.len()),
    };
    let mut sense = [0_u8; 64];
    let mut header = SgIo {
        interface: i32::from(b'S'),
        direction,
        cdb_len: u8::try_from(cdb.len()).expect("a SCSI command has at most 32 bytes"),
        sense_max: sense.len() as u8,
        iovec_count: 0,
        data_len: u32::try_from(len).expect("a page has less than 4 GiB"),
        data: start,
        cdb: cdb.as_ptr(),
        sense: sense.as_mut_ptr(),
        timeout_ms: u32::try_from(patience.as_millis()).unwrap_or(u32::MAX),
        flags: 0,
        pack_id: 0,
        user: std::ptr::null_mut(),
        status: 0,
        masked_status: 0,
        message_status: 0,
        sense_len: 0,
        host_status: 0,
        driver_status: 0,
        residual: 0,
        duration_ms: 0,
        info: 0,
    };
    // SAFETY: I1, I2.
    unsafe { rustix::ioctl::ioctl(device, Call { opcode: SG_IO, argument: &mut header }) }?;
    let residual = usize::try_from(header.residual).unwrap_or(0);
    Ok(Answer {
        status: header.status,
        host_status: header.host_status,
        sense: sense[..usize::from(header.sense_len).min(sense.len())].to_vec(),
        len: len.saturating_sub(residual),
    })
}

/// Sends an NVMe command and waits for its end: what it returns in its first word, or the status
/// with which it failed as `Err` in the `Ok`.
pub(crate) fn nvme(
    device: &File,
    queue: Queue,
    command: &Passthrough,
    data: &mut [u8],
) -> io::Result<Result<u32, u16>> {
    let number = match queue {
        Queue::Admin => 0x41,
        Queue::Io => 0x43,
    };
    let mut command = Passthrough {
        data: data.as_mut_ptr() as u64,
        data_len: u32::try_from(data.len()).expect("a page has less than 4 GiB"),
        ..*command
    };
    let opcode = opcode::read_write::<Passthrough>(b'N', number);
    // SAFETY: I1, I2.
    let status = unsafe { rustix::ioctl::ioctl(device, Call { opcode, argument: &mut command }) }?;
    Ok(match u16::try_from(status) {
        Ok(0) => Ok(command.result),
        Ok(status) => Err(status),
        Err(_) => Err(u16::MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `_IOWR('N', 0x41, struct nvme_passthru_cmd)` and its neighbours in `<linux/nvme_ioctl.h>`.
    #[test]
    fn opcodes_are_those_of_the_kernel() {
        for (number, expected) in [(0x41, 0xC048_4E41), (0x43, 0xC048_4E43), (0x80, 0xC048_4E80)] {
            assert_eq!(opcode::read_write::<Passthrough>(b'N', number), expected);
        }
        assert_eq!([BLKROGET, BLKRRPART], [0x125E, 0x125F]);
    }

    #[test]
    fn file_that_is_no_device_refuses_every_call() {
        let file = tempfile::tempfile().unwrap();
        let mut page = [0; 512];
        let inquiry = [0x12, 0, 0, 0, 96, 0];
        let patience = Duration::from_secs(1);
        let refused = scsi(&file, &inquiry, Data::In(&mut page), patience).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(rustix::io::Errno::NOTTY.raw_os_error()));
        let refused = nvme(&file, Queue::Admin, &Passthrough::default(), &mut page).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(rustix::io::Errno::NOTTY.raw_os_error()));
    }
}
