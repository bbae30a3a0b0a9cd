//! SCSI commands as bytes, and how they end.

use super::{Access, Fact, refusal};

/// What travels with a command.
pub(crate) enum Data<'a> {
    /// To the device.
    Out(&'a [u8]),
    /// From the device.
    In(&'a mut [u8]),
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The device's status: 0 is good, 2 comes with sense data.
    pub(crate) status: u8,
    /// What the host adapter says: 0 is good.
    pub(crate) host_status: u16,
    pub(crate) sense: Vec<u8>,
    /// Bytes that were transferred.
    pub(crate) len: usize,
}

impl Answer {
    #[cfg(test)]
    pub(crate) fn good(len: usize) -> Self {
        Self { status: 0, host_status: 0, sense: Vec::new(), len }
    }
}

pub(crate) const STATUS_GOOD: u8 = 0;
pub(crate) const STATUS_CHECK: u8 = 2;

/// Sense key 5: the device does not know what it was asked.
pub(crate) const ILLEGAL_REQUEST: u8 = 5;

/// The sense key and its two qualifiers, in either format; `None` where there are none.
pub(crate) fn sense_code(sense: &[u8]) -> Option<(u8, u8, u8)> {
    match sense.first()? & 0x7F {
        0x70 | 0x71 => Some((sense.get(2)? & 0x0F, *sense.get(12)?, *sense.get(13)?)),
        0x72 | 0x73 => Some((sense.get(1)? & 0x0F, *sense.get(2)?, *sense.get(3)?)),
        _ => None,
    }
}

/// `MODE SENSE (10)` for the current values of a page, without block descriptors.
pub(crate) fn mode_sense(page: u8, subpage: u8, len: u16) -> [u8; 10] {
    let [high, low] = len.to_be_bytes();
    [0x5A, 0x08, page & 0x3F, subpage, 0, 0, 0, high, low, 0]
}

/// `INQUIRY` for a page of vital product data.
pub(crate) fn inquiry_page(page: u8, len: u16) -> [u8; 6] {
    let [high, low] = len.to_be_bytes();
    [0x12, 0x01, page, high, low, 0]
}

/// `LOG SENSE` for the cumulative values of a page.
pub(crate) fn log_sense(page: u8, subpage: u8, len: u16) -> [u8; 10] {
    let [high, low] = len.to_be_bytes();
    [0x4D, 0, 0x40 | (page & 0x3F), subpage, 0, 0, 0, high, low, 0]
}

/// `READ (16)` of `count` blocks from block `first` on, with the FUA bit: from the medium.
pub(crate) fn read_from_medium(first: u64, count: u32) -> [u8; 16] {
    const FUA: u8 = 1 << 3;
    let mut cdb = [0; 16];
    (cdb[0], cdb[1]) = (0x88, FUA);
    cdb[2..10].copy_from_slice(&first.to_be_bytes());
    cdb[10..14].copy_from_slice(&count.to_be_bytes());
    cdb
}

/// Asks for a page of at most `room` bytes.
pub(crate) fn fetch(device: &dyn Access, cdb: &[u8], room: u16) -> Fact<Vec<u8>> {
    let mut page = vec![0; usize::from(room)];
    let answer = device.scsi(cdb, Data::In(&mut page)).map_err(|error| refusal(&error))?;
    check(&answer)?;
    page.truncate(answer.len);
    Ok(page)
}

/// Whether a command has done what was asked.
pub(crate) fn check(answer: &Answer) -> Fact<()> {
    let Answer { status, host_status, sense, .. } = answer;
    if *status == STATUS_GOOD && *host_status == 0 {
        return Ok(());
    }
    if *status == STATUS_CHECK
        && let Some((key, code, qualifier)) = sense_code(sense)
    {
        return Err(match key {
            ILLEGAL_REQUEST => "the drive does not know the question".to_owned(),
            _ => format!("the drive answered with sense {key:X}h/{code:02X}h/{qualifier:02X}h"),
        });
    }
    Err(format!("the command ended with status {status:02X}h, host status {host_status:02X}h"))
}

/// The bytes of mode page `page`, `subpage` in what `MODE SENSE (10)` gave, header included.
pub(crate) fn mode_page(bytes: &[u8], page: u8, subpage: u8) -> Option<&[u8]> {
    let descriptors = usize::from(u16_be(bytes, 6)?);
    let found = bytes.get(8 + descriptors..)?;
    let has_subpage = found.first()? & 0x40 != 0;
    let is_right = has_subpage && found[0] & 0x3F == page && *found.get(1)? == subpage;
    let len = 4 + usize::from(u16_be(found, 2)?);
    // A device may give less than the page says.
    is_right.then(|| &found[..len.min(found.len())])
}

/// The big-endian number at `at`.
pub(crate) fn u16_be(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::fake::FakeDevice;

    #[test]
    fn commands_are_the_bytes_of_the_standard() {
        assert_eq!(mode_sense(0x0A, 7, 0x0102), [0x5A, 8, 0x0A, 7, 0, 0, 0, 1, 2, 0]);
        assert_eq!(log_sense(3, 0, 0x0400), [0x4D, 0, 0x43, 0, 0, 0, 0, 4, 0, 0]);
        assert_eq!(inquiry_page(0x86, 0x0140), [0x12, 1, 0x86, 1, 0x40, 0]);
        assert_eq!(
            read_from_medium(0x0102_0304_0506_0708, 0x0A0B_0C0D),
            [0x88, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0x0A, 0x0B, 0x0C, 0x0D, 0, 0]
        );
    }

    #[test]
    fn sense_is_read_in_both_formats() {
        let mut fixed = [0; 18];
        (fixed[0], fixed[2], fixed[12], fixed[13]) = (0x70, 0x0B, 0x2E, 3);
        assert_eq!(sense_code(&fixed), Some((0x0B, 0x2E, 3)));
        assert_eq!(sense_code(&[0x72, 3, 0x11, 0]), Some((3, 0x11, 0)));
        assert_eq!(sense_code(&[]), None);
        assert_eq!(sense_code(&[0x72, 3]), None);
        assert_eq!(sense_code(&[0x00; 18]), None);
    }

    #[test]
    fn reasons_say_what_to_do() {
        let check = |device: &FakeDevice, expected: &str| {
            assert_eq!(fetch(device, &mode_sense(0x0A, 7, 64), 64).unwrap_err(), expected);
        };
        check(&FakeDevice::default(), "the drive does not know the question");
        for (errno, expected) in [
            (rustix::io::Errno::PERM, "no permission: ask as root"),
            (rustix::io::Errno::NOTTY, "its driver does not take such commands"),
        ] {
            let errno = Some(errno.raw_os_error());
            check(&FakeDevice { errno, ..FakeDevice::default() }, expected);
        }
        let medium = FakeDevice::default().sense(&[0x5A], &[0x72, 3, 0x11, 0, 0, 0, 0, 0]);
        check(&medium, "the drive answered with sense 3h/11h/00h");
        let silent = FakeDevice::default().sense(&[0x5A], &[]);
        check(&silent, "the command ended with status 02h, host status 00h");
    }

    #[test]
    fn mode_page_is_found_behind_its_header() {
        let mut bytes = vec![0, 0, 0, 0, 0, 0, 0, 8];
        bytes.extend([0xFF; 8]);
        bytes.extend([0x4A, 7, 0, 3, 1, 2, 3, 9, 9]);
        assert_eq!(mode_page(&bytes, 0x0A, 7), Some(&[0x4A, 7, 0, 3, 1, 2, 3][..]));
        assert_eq!(mode_page(&bytes, 0x0A, 8), None);
        assert_eq!(mode_page(&bytes, 0x0B, 7), None);
        // Cut off inside the page: what there is.
        assert_eq!(mode_page(&bytes[..22], 0x0A, 7), Some(&[0x4A, 7, 0, 3, 1, 2][..]));
        for len in 0..20 {
            assert_eq!(mode_page(&bytes[..len], 0x0A, 7), None, "{len}");
        }
    }
}
