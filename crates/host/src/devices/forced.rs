//! Reads from the medium of SCSI and SATA disks: READ (16) with the FUA bit, past the block layer.
//!
//! A SAS drive is asked whether it knows the bit (DPOFUA), and whether it has a non-volatile cache (NV_SUP),
//! which may answer such a read. The kernel's translation to ATA carries the bit
//! on in READ FPDMA QUEUED, and refuses the command where the drive has no such queue. What another
//! translation makes of it is not published, so there is no such read there: see `docs/devices.md`.
//!
//! The commands are not repeated by the kernel. What is to be sent again is said here as an error that
//! [`errno`](crate::errno) has sent again.
//!
//! References: SBC-4 (READ (16)), SPC-6 (sense keys, Extended INQUIRY Data page), ACS-5 (READ FPDMA QUEUED), Linux 6.18
//! `drivers/ata/libata-core.c` (`ata_build_rw_tf`).

use std::fmt;

use levelhead_block::Buf;
use levelhead_units::{Lba, SECTOR_SIZE, Sectors};
use rustix::io::Errno;

use super::scsi::{self, Answer, Data, ILLEGAL_REQUEST, STATUS_CHECK, STATUS_GOOD};
use super::sysfs::{Attachment, Disk};
use super::{Access, Fact};
use crate::medium::{Medium, byte_offset};

/// What a disk counts in, and how much it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocks {
    /// Bytes of a logical block: a power of two, 512 to 4096.
    pub(crate) block: u32,
    /// Bytes of one read at most: a whole number of sectors.
    pub(crate) transfer_max: u32,
}

/// See the module.
pub(crate) struct Forced {
    blocks: Blocks,
    device: Box<dyn Access>,
}

impl fmt::Debug for Forced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forced").field("blocks", &self.blocks).finish_non_exhaustive()
    }
}

impl Forced {
    /// Reads of a disk that were found to work.
    pub(crate) fn new(blocks: Blocks, device: Box<dyn Access>) -> Self {
        Self { blocks, device }
    }

    /// Whether such reads give what is on the medium, and the same bytes as reads through the block layer; a
    /// mistake here would be wrong data.
    pub(crate) fn find(disk: &Disk, device: Box<dyn Access>, medium: &Medium) -> Fact<Self> {
        if disk.is_part {
            return Err("it is a part of a disk: its first block is not the disk's".to_owned());
        }
        if !medium.is_direct() {
            return Err("its reads go through the page cache".to_owned());
        }
        match disk.attachment() {
            Attachment::Sas if !knows_fua(device.as_ref())? => {
                return Err("the drive does not know the FUA bit".to_owned());
            }
            Attachment::Sas if has_lasting_cache(device.as_ref())? => {
                return Err("its non-volatile cache may answer such a read".to_owned());
            }
            Attachment::Sas | Attachment::Libata => {}
            Attachment::Other => {
                return Err("it is neither a SAS drive nor a SATA drive of libata's".to_owned());
            }
        }
        let block = disk.number("queue/logical_block_size")?;
        let block = u32::try_from(block)
            .ok()
            .filter(|block| block.is_power_of_two() && (512..=SECTOR_SIZE as u32).contains(block));
        let block = block.ok_or("its blocks are not of 512 to 4096 bytes")?;
        let forced = Self::new(Blocks { block, transfer_max: disk.transfer_max()? }, device);
        let last = Lba::new(medium.size().get().saturating_sub(1));
        for lba in [Lba::ZERO, last] {
            let [mut past, mut through] = [(); 2].map(|()| Buf::zeroed(Sectors::new(1)));
            let failed =
                |error: &dyn fmt::Display| format!("a read from the medium failed: {error}");
            let read = forced.read(byte_offset(lba), past.as_mut_slice());
            read.map_err(|errno| failed(&std::io::Error::from(errno)))?;
            medium.read(lba, through.as_mut_slice()).map_err(|error| failed(&error))?;
            if past.as_slice() != through.as_slice() {
                return Err(failed(&format!("it returned other bytes at sector {}", lba.get())));
            }
        }
        Ok(forced)
    }

    /// What the disk counts in.
    pub(crate) fn blocks(&self) -> Blocks {
        self.blocks
    }

    /// Reads from the medium and waits for it: the bytes that have come, a whole number of sectors and at
    /// least one.
    ///
    /// Panics unless both the offset and the room are whole blocks and the room is what one read may have.
    pub(crate) fn read(&self, offset: u64, room: &mut [u8]) -> Result<usize, Errno> {
        let Blocks { block, transfer_max } = self.blocks;
        assert!(offset.is_multiple_of(block.into()));
        let len = u32::try_from(room.len()).unwrap_or(u32::MAX);
        assert!(len.is_multiple_of(block));
        assert!((1..=transfer_max).contains(&len));
        let cdb = scsi::read_from_medium(offset / u64::from(block), len / block);
        let answer = self.device.scsi(&cdb, Data::In(room)).map_err(|error| {
            let errno = error.raw_os_error().map(Errno::from_raw_os_error);
            errno.unwrap_or(Errno::IO)
        })?;
        judge(&answer)?;
        match answer.len.min(len as usize) / SECTOR_SIZE * SECTOR_SIZE {
            0 => Err(Errno::IO),
            whole => Ok(whole),
        }
    }
}

/// Whether a SCSI drive says that it heeds the FUA bit: DPOFUA in the header of any mode page.
fn knows_fua(device: &dyn Access) -> Fact<bool> {
    const CACHING: u8 = 0x08;
    const DPOFUA: u8 = 1 << 4;
    let header = scsi::fetch(device, &scsi::mode_sense(CACHING, 0, 64), 64)?;
    Ok(header.get(3).is_some_and(|parameter| parameter & DPOFUA != 0))
}

/// Whether a SCSI drive has a cache that outlives its power: NV_SUP of the Extended INQUIRY Data page.
fn has_lasting_cache(device: &dyn Access) -> Fact<bool> {
    const EXTENDED: u8 = 0x86;
    const NV_SUP: u8 = 1 << 1;
    let page = scsi::fetch(device, &scsi::inquiry_page(EXTENDED, 64), 64)?;
    match (page.get(1), page.get(6)) {
        (Some(&EXTENDED), Some(flags)) => Ok(flags & NV_SUP != 0),
        _ => Err("the drive does not say whether it has a non-volatile cache".to_owned()),
    }
}

/// What the end of a read means, as an error that the table of [`errno`](crate::errno) knows.
fn judge(answer: &Answer) -> Result<(), Errno> {
    const DEFERRED: [u8; 2] = [0x71, 0x73];
    // What Linux itself sends again, of those of <scsi/scsi_status.h>: bus busy, reset, soft error, retry,
    // requeue.
    const HOST_AGAIN: [u16; 5] = [0x02, 0x08, 0x0B, 0x0C, 0x0D];
    const HOST_TIMEOUT: u16 = 0x03;
    match answer.host_status {
        0 => {}
        HOST_TIMEOUT => return Err(Errno::TIMEDOUT),
        status if HOST_AGAIN.contains(&status) => return Err(Errno::AGAIN),
        _ => return Err(Errno::IO),
    }
    match answer.status {
        STATUS_GOOD => return Ok(()),
        STATUS_CHECK => {}
        // Busy, task set full, task aborted.
        0x08 | 0x28 | 0x40 => return Err(Errno::AGAIN),
        _ => return Err(Errno::IO),
    }
    let is_deferred = answer.sense.first().is_some_and(|code| DEFERRED.contains(&(code & 0x7F)));
    match scsi::sense_code(&answer.sense) {
        // Of an earlier command; this one has not been carried out.
        Some(_) if is_deferred => Err(Errno::AGAIN),
        // No sense, recovered error: the bytes are there.
        Some((0 | 1, ..)) => Ok(()),
        Some((ILLEGAL_REQUEST, ..)) => Err(Errno::OPNOTSUPP),
        // Protection information that does not fit the bytes is no matter of the way.
        Some((0x0B, 0x10, _)) => Err(Errno::IO),
        // Unit attention, aborted command.
        Some((0x06 | 0x0B, ..)) => Err(Errno::AGAIN),
        // Medium error among them.
        Some(_) | None => Err(Errno::IO),
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::devices::fake::FakeDevice;
    use crate::devices::sysfs::{Sysfs, tests::tree_below};
    use crate::medium::Transfer;

    const BLOCKS: Blocks = Blocks { block: 512, transfer_max: 2 * SECTOR_SIZE as u32 };
    const SAS: &str = "host0/port-0:0/end_device-0:0/target0:0:0/0:0:0:0";
    const LIBATA: &str = "ata3/host2/target2:0:0/2:0:0:0";

    /// What a read of two sectors ends with, from a device that answers it so.
    fn read(answer: Answer) -> Result<usize, Errno> {
        let mut device = FakeDevice::default();
        // The fake gives as many bytes as the page has.
        let page = vec![7; answer.len];
        device.scsi.insert(vec![0x88, 0x08], (answer, page));
        let mut room = Buf::zeroed(Sectors::new(2));
        Forced::new(BLOCKS, Box::new(device)).read(0, room.as_mut_slice())
    }

    fn check_condition(sense: &[u8]) -> Answer {
        Answer { status: STATUS_CHECK, host_status: 0, sense: sense.to_vec(), len: 8192 }
    }

    #[test]
    fn what_a_drive_says_is_an_error_of_the_table() {
        let sense = |key, code| read(check_condition(&[0x72, key, code, 0, 0, 0, 0, 0]));
        assert_eq!(sense(0x03, 0x11), Err(Errno::IO), "unrecovered read error");
        assert_eq!(sense(0x05, 0x20), Err(Errno::OPNOTSUPP), "invalid command");
        assert_eq!(sense(0x05, 0x24), Err(Errno::OPNOTSUPP), "invalid field");
        assert_eq!(sense(0x06, 0x29), Err(Errno::AGAIN), "reset");
        assert_eq!(sense(0x0B, 0x47), Err(Errno::AGAIN), "aborted for a transfer error");
        assert_eq!(sense(0x0B, 0x10), Err(Errno::IO), "protection information");
        assert_eq!(sense(0x04, 0x44), Err(Errno::IO), "hardware error");
        assert_eq!(sense(0x01, 0x17), Ok(8192), "recovered");
        assert_eq!(read(check_condition(&[])), Err(Errno::IO), "without sense");
        let deferred = check_condition(&[0x73, 0x03, 0x0C, 0, 0, 0, 0, 0]);
        assert_eq!(read(deferred), Err(Errno::AGAIN), "an earlier write's error");
        for (status, host_status, expected) in [
            (0x08, 0, Errno::AGAIN),
            (0x28, 0, Errno::AGAIN),
            (0x18, 0, Errno::IO),
            (0, 0x03, Errno::TIMEDOUT),
            (0, 0x08, Errno::AGAIN),
            (0, 0x01, Errno::IO),
        ] {
            let answer = Answer { status, host_status, ..Answer::good(8192) };
            assert_eq!(read(answer), Err(expected), "{status:#x}, {host_status:#x}");
        }
    }

    #[test]
    fn short_transfer_counts_in_whole_sectors() {
        for (len, expected) in
            [(8192, Ok(8192)), (8191, Ok(4096)), (4608, Ok(4096)), (512, Err(Errno::IO))]
        {
            assert_eq!(read(Answer::good(len)), expected, "{len}");
        }
    }

    #[test]
    fn error_of_the_call_is_the_error_of_the_read() {
        let errno = Some(Errno::NOTTY.raw_os_error());
        let device = FakeDevice { errno, ..FakeDevice::default() };
        let mut room = Buf::zeroed(Sectors::new(1));
        let read = Forced::new(BLOCKS, Box::new(device)).read(0, room.as_mut_slice());
        assert_eq!(read, Err(Errno::NOTTY));
    }

    const FILES: [(&str, &str); 5] = [
        ("device/vendor", "HGST"),
        ("device/scsi_level", "7"),
        ("queue/logical_block_size", "512"),
        ("queue/max_hw_sectors_kb", "64"),
        ("queue/max_segments", "8"),
    ];

    /// A drive of eight sectors that says what it knows, and reads these bytes.
    fn drive(parameter: u8, bytes: &[u8]) -> FakeDevice {
        let mut page = vec![0; 32];
        page[3] = parameter;
        let volatile = [0, 0x86, 0, 0x3C, 0, 0, 1];
        // Eight blocks from the first block of sectors 0 and 7 on, from the medium.
        FakeDevice::default()
            .page(&[0x5A, 8, 0x08], &page)
            .page(&[0x12, 1, 0x86], &volatile)
            .page(&[0x88, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8], bytes)
            .page(&[0x88, 8, 0, 0, 0, 0, 0, 0, 0, 56, 0, 0, 0, 8], bytes)
    }

    fn check(
        below: &str,
        files: &[(&str, &str)],
        is_part: bool,
        device: FakeDevice,
        expected: Result<Blocks, &str>,
    ) {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a.img");
        std::fs::write(&path, vec![7; 8 * 4096]).unwrap();
        let medium = Medium::open(&path, Transfer::Direct).unwrap();
        if !medium.is_direct() {
            eprintln!("SKIPPED: no direct transfers in {}", folder.path().display());
            return;
        }
        let root = tree_below(below, "sda", files);
        let mut disk = Sysfs::at(root.path()).disk((8, 0)).unwrap();
        disk.is_part = is_part;
        let found = Forced::find(&disk, Box::new(device), &medium);
        let found = found.map(|forced| forced.blocks());
        assert_eq!(found.as_ref().copied().map_err(String::as_str), expected);
    }

    #[test]
    fn reads_from_the_medium_are_used_where_the_bit_is_known_and_the_bytes_are_the_same() {
        const FUA: u8 = 0x10;
        let good = || drive(FUA, &[7; 4096]);
        let blocks = Ok(Blocks { block: 512, transfer_max: 8 * 4096 });
        let sata = [&FILES[..], &[("device/vendor", "ATA")]].concat();
        check(SAS, &FILES, false, good(), blocks);
        // The kernel's translation does not say that it knows the bit, and passes it on.
        check(LIBATA, &sata, false, drive(0, &[7; 4096]), blocks);
        let unknown = "the drive does not know the FUA bit";
        check(SAS, &FILES, false, drive(0, &[7; 4096]), Err(unknown));
        let lasting = good().page(&[0x12, 1, 0x86], &[0, 0x86, 0, 0x3C, 0, 0, 3]);
        let cache = "its non-volatile cache may answer such a read";
        check(SAS, &FILES, false, lasting, Err(cache));
        let silent = good().page(&[0x12, 1, 0x86], &[0, 0x86, 0, 0]);
        let unsaid = "the drive does not say whether it has a non-volatile cache";
        check(SAS, &FILES, false, silent, Err(unsaid));
        let other = "it is neither a SAS drive nor a SATA drive of libata's";
        check("usb1/host9", &FILES, false, good(), Err(other));
        check(SAS, &sata, false, good(), Err(other));
        let part = "it is a part of a disk: its first block is not the disk's";
        check(SAS, &FILES, true, good(), Err(part));
        let bytes = "a read from the medium failed: it returned other bytes at sector 0";
        check(SAS, &FILES, false, drive(FUA, &[8; 4096]), Err(bytes));
        let large = [&FILES[..], &[("queue/logical_block_size", "8192")]].concat();
        check(SAS, &large, false, good(), Err("its blocks are not of 512 to 4096 bytes"));
        // Without NCQ, libata refuses the command.
        let refused = "a read from the medium failed: Operation not supported (os error 95)";
        check(LIBATA, &sata, false, FakeDevice::default(), Err(refused));
    }
}
