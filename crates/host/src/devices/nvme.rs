//! NVMe: commands that go past the block layer, what a controller says of itself, and reads with the
//! *limited retry* bit, by which a host asks a drive "to apply limited error recovery efforts".
//!
//! How much less a drive then tries is its own affair: the bit may be ignored, and no field says
//! whether it is. A drive that gives up ends the read with *unrecovered read error* (281h).
//!
//! References: NVMe base specification 2.0 (Identify, Get Log Page, Get Features), NVM command set
//! specification 1.0 (Read), Linux `include/uapi/linux/nvme_ioctl.h`.

use levelhead_units::Nanos;

use super::{Access, Fact, refusal};

/// `struct nvme_passthru_cmd`, which `struct nvme_uring_cmd` equals but for the name of its end.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Passthrough {
    pub(crate) opcode: u8,
    pub(crate) flags: u8,
    pub(crate) reserved: u16,
    pub(crate) nsid: u32,
    pub(crate) cdw2: u32,
    pub(crate) cdw3: u32,
    pub(crate) metadata: u64,
    /// Where the bytes are.
    pub(crate) data: u64,
    pub(crate) metadata_len: u32,
    pub(crate) data_len: u32,
    pub(crate) cdw10: u32,
    pub(crate) cdw11: u32,
    pub(crate) cdw12: u32,
    pub(crate) cdw13: u32,
    pub(crate) cdw14: u32,
    pub(crate) cdw15: u32,
    /// Zero: as long as the kernel waits for any command.
    pub(crate) timeout_ms: u32,
    /// First word of the answer.
    pub(crate) result: u32,
}

impl Passthrough {
    /// The command as the 80 bytes of a large submission entry; eight of them are not used.
    pub(crate) fn bytes(&self) -> [u8; 80] {
        let words = [self.nsid, self.cdw2, self.cdw3].map(u32::to_ne_bytes);
        let tail = [
            self.metadata_len,
            self.data_len,
            self.cdw10,
            self.cdw11,
            self.cdw12,
            self.cdw13,
            self.cdw14,
            self.cdw15,
            self.timeout_ms,
            self.result,
        ];
        let mut bytes = [0; 80];
        (bytes[0], bytes[1]) = (self.opcode, self.flags);
        bytes[2..4].copy_from_slice(&self.reserved.to_ne_bytes());
        bytes[4..16].copy_from_slice(words.as_flattened());
        bytes[16..24].copy_from_slice(&self.metadata.to_ne_bytes());
        bytes[24..32].copy_from_slice(&self.data.to_ne_bytes());
        bytes[32..72].copy_from_slice(tail.map(u32::to_ne_bytes).as_flattened());
        bytes
    }
}

/// Which queue a command goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    /// Questions to the controller.
    Admin,
    /// Reads.
    Io,
}

const ADMIN_GET_LOG_PAGE: u8 = 0x02;
const ADMIN_IDENTIFY: u8 = 0x06;
const ADMIN_GET_FEATURES: u8 = 0x0A;
const IO_READ: u8 = 0x02;

const IDENTIFY_NAMESPACE: u32 = 0;
const IDENTIFY_CONTROLLER: u32 = 1;
const LOG_SMART: u32 = 0x02;
const FEATURE_ERROR_RECOVERY: u32 = 0x05;
const EVERY_NAMESPACE: u32 = u32::MAX;

/// The bit of a read's twelfth word that asks for less effort.
const LIMITED_RETRY: u32 = 1 << 31;

/// The bit that asks for what is on the medium, whatever the controller remembers (FUA).
const FROM_MEDIUM: u32 = 1 << 30;

/// What a read past the block layer is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// One with little effort.
    LimitedRetry,
    /// One from the medium.
    FromMedium,
}

impl Wanted {
    const fn bit(self) -> u32 {
        match self {
            Self::LimitedRetry => LIMITED_RETRY,
            Self::FromMedium => FROM_MEDIUM,
        }
    }
}

/// Status: the controller does not know the opcode, or the value of a field.
pub(crate) const INVALID_OPCODE: u16 = 0x001;
/// See [`INVALID_OPCODE`].
pub(crate) const INVALID_FIELD: u16 = 0x002;
/// Status: the medium's data could not be read.
#[cfg(test)]
pub(crate) const UNRECOVERED_READ: u16 = 0x281;
/// The bit of a status that says that asking again is of no use.
#[cfg(test)]
pub(crate) const DO_NOT_RETRY: u16 = 0x4000;
/// The bits of a status that say what it is: its type and its code.
const STATUS_MASK: u16 = 0x07FF;
/// Those of its type.
const TYPE_MASK: u16 = 0x0700;
/// The type of what says that the medium, or what it gave, is not right.
const MEDIUM_ERRORS: u16 = 0x0200;

/// What a read's status means for those who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadEnd {
    /// The bytes are there.
    Good,
    /// The drive stopped trying, or the medium does not give the bytes.
    Unread,
    /// Something else has failed: that says nothing of the medium.
    Failed,
    /// The controller does not take such reads.
    Refused,
}

/// What status a read ended with, by its type and code.
pub(crate) fn read_end(status: u16) -> ReadEnd {
    match status & STATUS_MASK {
        0 => ReadEnd::Good,
        INVALID_OPCODE | INVALID_FIELD => ReadEnd::Refused,
        known if known & TYPE_MASK == MEDIUM_ERRORS => ReadEnd::Unread,
        _ => ReadEnd::Failed,
    }
}

/// One namespace that reads with limited retry can be sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Namespace {
    pub(crate) nsid: u32,
    /// Bytes of a block: a power of two, 512 to 4096.
    pub(crate) block: u32,
    /// Bytes of one read at most: a whole number of sectors.
    pub(crate) transfer_max: u32,
}

impl Namespace {
    /// A read of `len` bytes from byte `offset` on; its bytes go to `data`.
    ///
    /// Panics unless both are whole blocks and the length is what one read may have.
    pub(crate) fn read(&self, wanted: Wanted, offset: u64, len: u32, data: u64) -> Passthrough {
        assert!(offset.is_multiple_of(self.block.into()));
        assert!(len.is_multiple_of(self.block) && (1..=self.transfer_max).contains(&len));
        let (first, count) = (offset / u64::from(self.block), len / self.block);
        assert!(count <= 1 << 16, "a read has at most 2^16 blocks");
        Passthrough {
            opcode: IO_READ,
            nsid: self.nsid,
            data,
            data_len: len,
            cdw10: first as u32,
            cdw11: (first >> 32) as u32,
            cdw12: wanted.bit() | (count - 1),
            ..Passthrough::default()
        }
    }
}

/// What a controller says that bears on retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// Time limit of reads with limited retry (feature 05h), if one is set.
    pub time_limit: Option<Nanos>,
    /// Whether namespaces can be set to try less for good (read recovery levels).
    pub has_recovery_levels: bool,
}

/// Asks a controller what bears on retries.
pub(crate) fn ask_retries(device: &dyn Access, nsid: u32) -> Fact<Retries> {
    let page = identify(device, IDENTIFY_CONTROLLER, 0)?;
    let command = Passthrough {
        opcode: ADMIN_GET_FEATURES,
        nsid,
        cdw10: FEATURE_ERROR_RECOVERY,
        ..Passthrough::default()
    };
    // A controller may be without the feature.
    let limit = send(device, &command, &mut []).map_or(0, |word| u64::from(word & 0xFFFF));
    Ok(Retries {
        time_limit: (limit > 0).then(|| Nanos::from_millis(100) * limit),
        has_recovery_levels: has_recovery_levels(&page),
    })
}

/// Bit 3 of the controller's attributes.
pub(crate) fn has_recovery_levels(controller: &[u8]) -> bool {
    controller.get(96).is_some_and(|low| low & 0b1000 != 0)
}

/// Bytes of a block, and of what is kept beside it, in what Identify says of a namespace.
pub(crate) fn format(namespace: &[u8]) -> Option<(u32, u16)> {
    let in_use = namespace.get(26)?;
    let index = usize::from(in_use & 0x0F | (in_use & 0x60) >> 1);
    let [low, high, exponent, _] = *namespace.get(128 + 4 * index..)?.first_chunk::<4>()?;
    let block = 1_u32.checked_shl(exponent.into()).filter(|_| (9..=12).contains(&exponent))?;
    Some((block, u16::from_le_bytes([low, high])))
}

/// Asks for a namespace's block and what is kept beside it.
pub(crate) fn ask_format(device: &dyn Access, nsid: u32) -> Fact<(u32, u16)> {
    let page = identify(device, IDENTIFY_NAMESPACE, nsid)?;
    format(&page).ok_or_else(|| "its blocks are not of 512 to 4096 bytes".to_owned())
}

fn identify(device: &dyn Access, what: u32, nsid: u32) -> Fact<Vec<u8>> {
    let mut page = vec![0; 4096];
    let command =
        Passthrough { opcode: ADMIN_IDENTIFY, nsid, cdw10: what, ..Passthrough::default() };
    send(device, &command, &mut page)?;
    Ok(page)
}

fn send(device: &dyn Access, command: &Passthrough, page: &mut [u8]) -> Fact<u32> {
    let sent = device.nvme(Queue::Admin, command, page).map_err(|error| refusal(&error))?;
    sent.map_err(|status| {
        format!("the controller refused with status {:03X}h", status & STATUS_MASK)
    })
}

/// What a drive counts over its life: log page 02h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Smart {
    /// Thousands of 512-byte units read.
    pub units_read: u128,
    /// Times that data could not be read for good.
    pub media_errors: u128,
}

/// Asks a controller for the page.
pub(crate) fn ask_smart(device: &dyn Access) -> Fact<Smart> {
    let mut page = [0; 512];
    let dwords = (page.len() / 4 - 1) as u32;
    let command = Passthrough {
        opcode: ADMIN_GET_LOG_PAGE,
        nsid: EVERY_NAMESPACE,
        cdw10: LOG_SMART | (dwords << 16),
        ..Passthrough::default()
    };
    send(device, &command, &mut page)?;
    parse_smart(&page).ok_or_else(|| "the controller returned less than a page".to_owned())
}

/// The counts in log page 02h.
pub(crate) fn parse_smart(page: &[u8]) -> Option<Smart> {
    let count = |at: usize| Some(u128::from_le_bytes(*page.get(at..)?.first_chunk::<16>()?));
    Some(Smart { units_read: count(32)?, media_errors: count(160)? })
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::devices::fake::FakeDevice;

    pub(crate) fn smart_page(units_read: u128, media_errors: u128) -> Vec<u8> {
        let mut page = vec![0; 512];
        page[32..48].copy_from_slice(&units_read.to_le_bytes());
        page[160..176].copy_from_slice(&media_errors.to_le_bytes());
        page
    }

    /// A namespace whose format number `index` is in use, with blocks of `2^exponent` bytes.
    pub(crate) fn namespace_page(index: u8, exponent: u8, metadata: u16) -> Vec<u8> {
        let mut page = vec![0; 4096];
        page[26] = index & 0x0F | (index & 0x30) << 1;
        let at = 128 + 4 * usize::from(index);
        page[at..at + 2].copy_from_slice(&metadata.to_le_bytes());
        page[at + 2] = exponent;
        page
    }

    #[test]
    fn read_is_these_eighty_bytes() {
        let namespace = Namespace { nsid: 3, block: 512, transfer_max: 128 << 10 };
        let command =
            namespace.read(Wanted::LimitedRetry, (5 << 32 | 7) * 512, 4096, 0x1122_3344_5566_7788);
        let mut expected = [0; 80];
        expected[0] = 0x02; // read
        expected[4] = 3; // namespace
        expected[24..32].copy_from_slice(&[0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]);
        expected[36..40].copy_from_slice(&[0, 0x10, 0, 0]); // 4096 bytes
        expected[40..48].copy_from_slice(&[7, 0, 0, 0, 5, 0, 0, 0]); // first block
        expected[48..52].copy_from_slice(&[7, 0, 0, 0x80]); // eight blocks, limited retry
        assert_eq!(command.bytes(), expected);
    }

    /// The bytes are the struct's own.
    #[test]
    fn every_field_of_a_command_has_its_place() {
        let command = Passthrough {
            opcode: 1,
            flags: 2,
            reserved: 0x0403,
            nsid: 5,
            cdw2: 6,
            cdw3: 7,
            metadata: 8,
            data: 9,
            metadata_len: 10,
            data_len: 11,
            cdw10: 12,
            cdw11: 13,
            cdw12: 14,
            cdw13: 15,
            cdw14: 16,
            cdw15: 17,
            timeout_ms: 18,
            result: 19,
        };
        let bytes = command.bytes();
        assert_eq!(bytes[..4], [1, 2, 3, 4]);
        for (at, value) in [(4, 5), (8, 6), (12, 7), (16, 8), (24, 9)] {
            assert_eq!(bytes[at], value);
        }
        for (value, at) in (10_u8..20).zip((32..72).step_by(4)) {
            assert_eq!(bytes[at], value);
        }
        assert_eq!(bytes.iter().filter(|&&byte| byte != 0).count(), 19);
    }

    #[test]
    fn every_status_but_success_means_that_the_bytes_are_not_there_and_some_blame_the_medium() {
        assert_eq!(read_end(0), ReadEnd::Good);
        for status in [UNRECOVERED_READ, UNRECOVERED_READ | DO_NOT_RETRY, 0x282, 0x286] {
            assert_eq!(read_end(status), ReadEnd::Unread, "{status:#x}");
        }
        for status in [0x371, 0x4371, 0x006, 0x4007, 0x7FFF] {
            assert_eq!(read_end(status), ReadEnd::Failed, "{status:#x}");
        }
        for status in [0x4001, 0x4002, 0x0002] {
            assert_eq!(read_end(status), ReadEnd::Refused, "{status:#x}");
        }
    }

    #[test]
    fn what_a_controller_says_about_retries_is_found() {
        let mut controller = vec![0; 4096];
        let check = |controller: &[u8], limit: &[u8], expected| {
            let device = FakeDevice::default()
                .nvme(ADMIN_IDENTIFY, IDENTIFY_CONTROLLER, Ok(controller))
                .nvme(ADMIN_GET_FEATURES, 5, Ok(limit));
            assert_eq!(ask_retries(&device, 1), Ok(expected));
        };
        let none = Retries { time_limit: None, has_recovery_levels: false };
        check(&controller, &[0, 0, 1, 0], none);
        controller[96] = 0b1010;
        let time_limit = Some(Nanos::from_millis(300));
        check(&controller, &[3, 0, 1, 0], Retries { time_limit, has_recovery_levels: true });
        let refused = ask_retries(&FakeDevice::default(), 1).unwrap_err();
        assert_eq!(refused, "the controller refused with status 002h");
    }

    #[test]
    fn format_in_use_is_found() {
        assert_eq!(format(&namespace_page(0, 9, 0)), Some((512, 0)));
        assert_eq!(format(&namespace_page(5, 12, 8)), Some((4096, 8)));
        assert_eq!(format(&namespace_page(0x21, 12, 0)), Some((4096, 0)));
        for exponent in [0, 8, 13, 200] {
            assert_eq!(format(&namespace_page(1, exponent, 0)), None, "{exponent}");
        }
        assert_eq!(format(&namespace_page(5, 12, 8)[..150]), None);
        assert_eq!(format(&[]), None);
    }

    #[test]
    fn smart_counts_are_read() {
        let page = smart_page(1 << 70, 9);
        assert_eq!(parse_smart(&page), Some(Smart { units_read: 1 << 70, media_errors: 9 }));
        assert_eq!(parse_smart(&page[..175]), None);
        let device = FakeDevice::default().nvme(2, 0x007F_0002, Ok(&page));
        assert_eq!(ask_smart(&device).unwrap().media_errors, 9);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            format(&bytes);
            has_recovery_levels(&bytes);
            parse_smart(&bytes);
        }

        #[test]
        fn any_status_has_a_meaning(status: u16) {
            prop_assert_eq!(read_end(status) == ReadEnd::Good, status & 0x7FF == 0);
        }

        #[test]
        fn read_asks_for_its_own_blocks(first in 0_u64..1 << 40, count in 1_u32..=32, exponent in 9_u32..=12) {
            let block = 1 << exponent;
            let namespace = Namespace { nsid: 1, block, transfer_max: 32 << 12 };
            let command = namespace.read(Wanted::LimitedRetry, first * u64::from(block), count * block, 0);
            prop_assert_eq!(u64::from(command.cdw10) | u64::from(command.cdw11) << 32, first);
            prop_assert_eq!(command.cdw12, 1 << 31 | (count - 1));
        }
    }
}
