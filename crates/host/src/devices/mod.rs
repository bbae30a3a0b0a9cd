//! What real drives can do beyond reading and writing, and what they say about themselves.
//!
//! ```text
//!   sysfs  what the kernel knows: sizes, queue, model, whether command duration limits are on
//!   scsi   commands and their ends ----+
//!     cdl    duration limits           |  pages of bytes, parsed here from bytes alone
//!     log    read error counters       +---> Access: one device's own calls, or a fake in a test
//!     ata    SCT ERC, statistics       |
//!   nvme   limited retry, SMART -------+
//!
//!   probe     all of it as a report: what was found, what is unknown and why
//!   ways      how reads that are no ordinary ones reach a drive, for the members
//!   forced    reads from the medium of SCSI and SATA disks, for the members
//!   erc       a short limit of error recovery of SATA disks, for the members
//!   counters  two readings of a page --> Health;  poller: a thread that takes the readings
//! ```
//!
//! # Invariants
//!
//! - D1. Nothing here writes to a medium, and only `erc` changes a setting. (Asking for SCT ERC sends the drive a
//!   question as the data of a command; that is how the standard has it.)
//! - D2. A parser takes any bytes: what is cut off or makes no sense gives nothing, never a panic.
//! - D3. What is not known is never guessed: it is `Err` with the reason.
//!
//! # References
//!
//! SPC-6 and SBC-4 (mode and log pages), SAT-5 (ATA PASS-THROUGH), ACS-5 (GP logs, SCT), the NVMe base
//! and NVM command set specifications 2.0, `Documentation/ABI/testing/sysfs-block-device`.

pub(crate) mod ata;
pub(crate) mod cdl;
pub(crate) mod counters;
mod driver;
pub(crate) mod erc;
pub(crate) mod forced;
pub(crate) mod log;
pub(crate) mod nvme;
pub(crate) mod poller;
pub(crate) mod probe;
pub(crate) mod scsi;
pub(crate) mod sysfs;
pub(crate) mod ways;

use std::io;

pub(crate) use driver::Driver;
use nvme::{Passthrough, Queue};
use scsi::{Answer, Data};

/// What is known, or why it is not.
pub type Fact<T> = Result<T, String>;

/// The calls of one device's driver.
pub(crate) trait Access: Send + Sync {
    /// Sends a SCSI command and waits for its end.
    fn scsi(&self, cdb: &[u8], data: Data<'_>) -> io::Result<Answer>;

    /// Sends an NVMe command that fills `data` and waits for its end: the first word of its answer,
    /// or the status it failed with.
    fn nvme(
        &self,
        queue: Queue,
        command: &Passthrough,
        data: &mut [u8],
    ) -> io::Result<Result<u32, u16>>;
}

/// Why a call did not work, in words that say what to do about it.
fn refusal(error: &io::Error) -> String {
    use rustix::io::Errno;
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    match errno {
        Some(Errno::PERM | Errno::ACCESS) => "no permission: ask as root".to_owned(),
        Some(Errno::NOTTY | Errno::NOTSUP | Errno::NOSYS) => {
            "its driver does not take such commands".to_owned()
        }
        _ => format!("the command failed: {error}"),
    }
}

#[cfg(test)]
pub(crate) mod fake {
    //! A device that answers from a table.

    use std::collections::BTreeMap;
    use std::io;
    use std::sync::Mutex;

    use super::*;

    /// Answers by the first bytes of a SCSI command or by an NVMe command's opcode and first word;
    /// whatever is in no table is refused as a drive refuses it.
    #[derive(Default)]
    pub(crate) struct FakeDevice {
        pub(crate) scsi: BTreeMap<Vec<u8>, (Answer, Vec<u8>)>,
        pub(crate) nvme: BTreeMap<(u8, u32), Result<Vec<u8>, u16>>,
        /// What every call ends with, where nothing is allowed at all.
        pub(crate) errno: Option<i32>,
        pub(crate) asked: Mutex<Vec<Vec<u8>>>,
    }

    impl FakeDevice {
        /// Answers the SCSI commands that begin like this with a page.
        pub(crate) fn page(mut self, cdb: &[u8], page: &[u8]) -> Self {
            self.scsi.insert(cdb.to_vec(), (Answer::good(page.len()), page.to_vec()));
            self
        }

        /// Answers the SCSI commands that begin like this with sense data.
        pub(crate) fn sense(mut self, cdb: &[u8], sense: &[u8]) -> Self {
            let answer = Answer { status: 2, host_status: 0, sense: sense.to_vec(), len: 0 };
            self.scsi.insert(cdb.to_vec(), (answer, Vec::new()));
            self
        }

        /// Answers an NVMe command by its opcode and `cdw10`.
        pub(crate) fn nvme(mut self, opcode: u8, word: u32, page: Result<&[u8], u16>) -> Self {
            self.nvme.insert((opcode, word), page.map(<[u8]>::to_vec));
            self
        }

        fn check(&self) -> io::Result<()> {
            self.errno.map_or(Ok(()), |errno| Err(io::Error::from_raw_os_error(errno)))
        }
    }

    impl Access for FakeDevice {
        fn scsi(&self, cdb: &[u8], data: Data<'_>) -> io::Result<Answer> {
            self.check()?;
            self.asked.lock().unwrap().push(cdb.to_vec());
            // The longest beginning wins.
            let found = self.scsi.iter().rev().find(|(start, _)| cdb.starts_with(start));
            let Some((_, (answer, page))) = found else {
                // Illegal request, invalid command operation code.
                let sense = vec![0x72, 5, 0x20, 0, 0, 0, 0, 0];
                return Ok(Answer { status: 2, host_status: 0, sense, len: 0 });
            };
            let mut answer = answer.clone();
            if let Data::In(room) = data {
                let len = page.len().min(room.len());
                room[..len].copy_from_slice(&page[..len]);
                answer.len = len;
            }
            Ok(answer)
        }

        fn nvme(
            &self,
            _: Queue,
            command: &Passthrough,
            data: &mut [u8],
        ) -> io::Result<Result<u32, u16>> {
            self.check()?;
            Ok(match self.nvme.get(&(command.opcode, command.cdw10)) {
                None => Err(nvme::INVALID_FIELD | nvme::DO_NOT_RETRY),
                Some(Err(status)) => Err(*status),
                Some(Ok(page)) if data.is_empty() => {
                    Ok(page.first_chunk().map_or(0, |word| u32::from_le_bytes(*word)))
                }
                Some(Ok(page)) => {
                    let len = page.len().min(data.len());
                    data[..len].copy_from_slice(&page[..len]);
                    Ok(0)
                }
            })
        }
    }
}
