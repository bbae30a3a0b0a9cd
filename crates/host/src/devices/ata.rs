//! ATA drives behind SCSI: `ATA PASS-THROUGH (16)`, the limits of error recovery (SCT ERC), and the
//! device statistics of GP log 04h.
//!
//! ```text
//!   ERC     IDENTIFY DEVICE word 206 says whether there are any; then a key sector with the question
//!           goes to log E0h, and the time comes back in the registers: count and LBA, in 100 ms.
//!           A limit is set by such a sector, too, each of the two on its own, until the drive loses power
//!   statistics, one page of 512 bytes:   0..2  revision   2  page number   8.. values of 8 bytes,
//!           little-endian, whose last byte says whether the drive has them (80h) and whether they
//!           are valid now (40h)
//! ```
//!
//! The kernel lets only root send these.
//!
//! References: SAT-5 (ATA PASS-THROUGH), ACS-5 (device statistics log, SCT command transport).

use levelhead_units::{Nanos, SECTOR_SIZE};

use super::scsi::{self, Data, sense_code};
use super::{Access, Fact, refusal};

/// Bytes of a log's page, and of `IDENTIFY DEVICE`.
const PAGE_LEN: usize = 512;

const IDENTIFY_DEVICE: u8 = 0xEC;
const READ_LOG_EXT: u8 = 0x2F;
const SMART: u8 = 0xB0;
const SMART_WRITE_LOG: u8 = 0xD6;
const LOG_STATISTICS: u8 = 0x04;
const LOG_SCT: u8 = 0xE0;

/// Pages of the device statistics log.
const PAGE_GENERAL: u8 = 0x01;
const PAGE_ROTATING: u8 = 0x03;

/// How long a drive may try, for reads and for writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorRecovery {
    /// For reads; `None`: as long as it likes.
    pub read: Option<Nanos>,
    /// For writes; `None`: as long as it likes.
    pub write: Option<Nanos>,
}

/// What a drive counts over its life; each may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Statistics {
    /// Logical sectors read.
    pub sectors_read: Option<u64>,
    /// Times a read did not succeed at once.
    pub read_recovery_attempts: Option<u64>,
}

/// A command's registers; the device and its reserved bits are left at zero.
#[derive(Clone, Copy, Default)]
struct Registers {
    command: u8,
    feature: u16,
    count: u16,
    lba: u64,
}

/// What travels with a command, as the adapter must know it.
#[derive(Clone, Copy)]
enum Protocol {
    In,
    Out,
}

/// `ATA PASS-THROUGH (16)` for one page of data, with the registers given back.
fn passthrough(protocol: Protocol, registers: Registers) -> [u8; 16] {
    const EXTENDED: u8 = 1;
    let (protocol, direction) = match protocol {
        Protocol::In => (4 << 1, 1 << 3),
        Protocol::Out => (5 << 1, 0),
    };
    let is_extended = registers.command == READ_LOG_EXT;
    let protocol = if is_extended { protocol | EXTENDED } else { protocol };
    // The count register is the length, in blocks; the registers come back in the sense data where
    // they are an answer.
    let check = if registers.command == SMART { 1 << 5 } else { 0 };
    let flags = check | direction | (1 << 2) | 2;
    let ([feature_high, feature], [count_high, count]) =
        (registers.feature.to_be_bytes(), registers.count.to_be_bytes());
    let lba = registers.lba.to_le_bytes();
    [
        0x85,
        protocol,
        flags,
        feature_high,
        feature,
        count_high,
        count,
        lba[3],
        lba[0],
        lba[4],
        lba[1],
        lba[5],
        lba[2],
        0,
        registers.command,
        0,
    ]
}

/// `IDENTIFY DEVICE`.
fn identify() -> [u8; 16] {
    passthrough(
        Protocol::In,
        Registers { command: IDENTIFY_DEVICE, count: 1, ..Registers::default() },
    )
}

/// `READ LOG EXT` of one page.
fn read_log(log: u8, page: u8) -> [u8; 16] {
    let lba = u64::from(log) | (u64::from(page) << 8);
    passthrough(
        Protocol::In,
        Registers { command: READ_LOG_EXT, count: 1, lba, ..Registers::default() },
    )
}

/// `SMART WRITE LOG` that brings an SCT command.
fn sct_question() -> [u8; 16] {
    let (feature, lba) = (SMART_WRITE_LOG.into(), u64::from(LOG_SCT) | 0x00C2_4F00);
    passthrough(Protocol::Out, Registers { command: SMART, feature, count: 1, lba })
}

/// Which of the two times is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    Read = 1,
    Write = 2,
}

/// The key sector with these words.
fn key_sector(words: [u16; 4]) -> [u8; PAGE_LEN] {
    let mut key = [0; PAGE_LEN];
    for (word, value) in words.into_iter().enumerate() {
        key[2 * word..][..2].copy_from_slice(&value.to_le_bytes());
    }
    key
}

/// The key sector that asks for a timer: action 3, function 2.
fn sct_key(timer: Timer) -> [u8; PAGE_LEN] {
    key_sector([3, 2, timer as u16, 0])
}

/// The key sector that sets a timer until the drive loses power: action 3, function 1.
fn sct_set_key(timer: Timer, tenths: u16) -> [u8; PAGE_LEN] {
    key_sector([3, 1, timer as u16, tenths])
}

/// A limit as a drive counts it; 0 for none. Nothing where it is no whole number of tenths of a second that fits.
pub(crate) fn in_tenths(limit: Option<Nanos>) -> Option<u16> {
    const TENTH: u64 = Nanos::from_millis(100).get();
    let Some(limit) = limit else { return Some(0) };
    let tenths = limit.get().is_multiple_of(TENTH).then_some(limit.get() / TENTH);
    tenths.and_then(|tenths| u16::try_from(tenths).ok()).filter(|&tenths| tenths > 0)
}

/// The limit of this number of tenths of a second.
pub(crate) fn of_tenths(tenths: u16) -> Option<Nanos> {
    (tenths > 0).then(|| Nanos::from_millis(100) * u64::from(tenths))
}

/// Sets one of a drive's limits until it loses power. That it says so does not mean that it has: it has to be asked.
///
/// Panics if the limit is not one that [`in_tenths`] takes.
pub(crate) fn set_timer(device: &dyn Access, timer: Timer, limit: Option<Nanos>) -> Fact<()> {
    let tenths = in_tenths(limit).expect("a drive has said this limit itself");
    let key = sct_set_key(timer, tenths);
    let answer = device.scsi(&sct_question(), Data::Out(&key)).map_err(|error| refusal(&error))?;
    match returned(&answer.sense) {
        Some(_) => Ok(()),
        None => scsi::check(&answer),
    }
}

/// Asks a drive how long it may try.
pub(crate) fn ask_error_recovery(device: &dyn Access) -> Fact<Option<ErrorRecovery>> {
    let words = scsi::fetch(device, &identify(), PAGE_LEN as u16)?;
    if !has_error_recovery(&words) {
        return Ok(None);
    }
    ask_timers(device).map(Some)
}

/// The same of a drive that has limits.
pub(crate) fn ask_timers(device: &dyn Access) -> Fact<ErrorRecovery> {
    let read = ask_timer(device, Timer::Read)?;
    Ok(ErrorRecovery { read, write: ask_timer(device, Timer::Write)? })
}

fn ask_timer(device: &dyn Access, timer: Timer) -> Fact<Option<Nanos>> {
    let key = sct_key(timer);
    let answer = device.scsi(&sct_question(), Data::Out(&key)).map_err(|error| refusal(&error))?;
    let Some((count, lba)) = returned(&answer.sense) else {
        scsi::check(&answer)?;
        return Err("the adapter returned no registers".to_owned());
    };
    let tenths = u16::from_le_bytes([count, lba]);
    // What was sent comes back where an adapter only pretends.
    if tenths == u16::from(LOG_SCT) << 8 | 1 {
        return Err("the adapter returned the registers as they were sent".to_owned());
    }
    Ok(of_tenths(tenths))
}

/// Words 206, bits 0 and 3, of `IDENTIFY DEVICE`: whether the drive has SCT, and ERC in it.
pub(crate) fn has_error_recovery(words: &[u8]) -> bool {
    words.get(412).is_some_and(|low| low & 0b1001 == 0b1001)
}

/// The low bytes of the count and LBA registers of a command that went well.
fn returned(sense: &[u8]) -> Option<(u8, u8)> {
    let (status, count, lba) = match sense.first()? & 0x7F {
        0x72 | 0x73 => {
            let mut rest = sense.get(8..)?;
            // Each descriptor is its type, its length, and as many bytes as that says.
            while *rest.first()? != 0x09 {
                rest = rest.get(2 + usize::from(*rest.get(1)?)..)?;
            }
            (*rest.get(13)?, *rest.get(5)?, *rest.get(7)?)
        }
        0x70 | 0x71 => {
            // Only where the sense says that this is what it is.
            (sense_code(sense)?.1 == 0 && sense_code(sense)?.2 == 0x1D).then_some(())?;
            (*sense.get(4)?, *sense.get(6)?, *sense.get(9)?)
        }
        _ => return None,
    };
    const FAILED: u8 = 0b0010_0001;
    (status & FAILED == 0).then_some((count, lba))
}

/// Asks a drive for its statistics.
pub(crate) fn ask_statistics(device: &dyn Access) -> Fact<Statistics> {
    let fetch = |page| scsi::fetch(device, &read_log(LOG_STATISTICS, page), PAGE_LEN as u16);
    let general = fetch(PAGE_GENERAL)?;
    // A drive without moving parts has no such page.
    let rotating = fetch(PAGE_ROTATING).unwrap_or_default();
    Ok(parse_statistics(&general, &rotating))
}

/// What pages 01h and 03h of the statistics say.
pub(crate) fn parse_statistics(general: &[u8], rotating: &[u8]) -> Statistics {
    Statistics {
        sectors_read: statistic(general, PAGE_GENERAL, 40),
        read_recovery_attempts: statistic(rotating, PAGE_ROTATING, 40),
    }
}

/// The statistic at `at`, if this is the page and the drive has it and it is valid.
fn statistic(page: &[u8], number: u8, at: usize) -> Option<u64> {
    const HAS_AND_VALID: u8 = 0b1100_0000;
    if *page.get(2)? != number {
        return None;
    }
    let [value @ .., flags] = page.get(at..)?.first_chunk::<8>()?;
    // The eighth byte is flags, the seventh reserved.
    let value = value[..6].iter().rev().fold(0, |sum, &byte| (sum << 8) | u64::from(byte));
    (flags & HAS_AND_VALID == HAS_AND_VALID).then_some(value)
}

/// Our sectors in `count` logical ones of `block` bytes.
pub(crate) fn in_sectors(count: u64, block: u64) -> u64 {
    u128::from(count).saturating_mul(block.into()).div_euclid(SECTOR_SIZE as u128) as u64
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::devices::fake::FakeDevice;

    /// A page of statistics with these values, valid, at their offsets.
    pub(crate) fn statistics_page(number: u8, values: &[(usize, u64)]) -> Vec<u8> {
        let mut page = vec![0; PAGE_LEN];
        (page[0], page[2]) = (1, number);
        for (at, value) in values {
            page[*at..at + 8].copy_from_slice(&value.to_le_bytes());
            page[at + 7] = 0xC0;
        }
        page
    }

    /// The sense data of a command whose registers come back.
    fn registers(count: u8, lba: u8, status: u8) -> Vec<u8> {
        let mut sense = vec![0x72, 1, 0, 0x1D, 0, 0, 0, 14, 9, 12, 0, 0, 0, count, 0, lba];
        sense.extend([0, 0x4F, 0, 0xC2, 0, status]);
        sense
    }

    #[test]
    fn commands_are_the_bytes_of_the_standards() {
        let identify_device = [0x85, 0x08, 0x0E, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xEC, 0];
        assert_eq!(identify(), identify_device);
        let statistics = [0x85, 0x09, 0x0E, 0, 0, 0, 1, 0, 4, 0, 3, 0, 0, 0, 0x2F, 0];
        assert_eq!(read_log(4, 3), statistics);
        let question = [0x85, 0x0A, 0x26, 0, 0xD6, 0, 1, 0, 0xE0, 0, 0x4F, 0, 0xC2, 0, 0xB0, 0];
        assert_eq!(sct_question(), question);
        let key = sct_key(Timer::Write);
        assert_eq!(key[..6], [3, 0, 2, 0, 2, 0]);
        assert!(key[6..].iter().all(|&byte| byte == 0));
        let key = sct_set_key(Timer::Read, 0x0123);
        assert_eq!(key[..8], [3, 0, 1, 0, 1, 0, 0x23, 1]);
        assert!(key[8..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn limits_are_whole_tenths_of_a_second() {
        for tenths in [0, 1, 70, u16::MAX] {
            assert_eq!(in_tenths(of_tenths(tenths)), Some(tenths));
        }
        for limit in [Nanos::ZERO, Nanos::from_millis(150), Nanos::from_millis(100) * 0x1_0000] {
            assert_eq!(in_tenths(Some(limit)), None, "{limit:?}");
        }
    }

    #[test]
    fn limit_is_set_where_the_drive_or_its_adapter_says_so() {
        let set = |sense: &[u8]| set_timer(&drive(0b1001, sense), Timer::Read, of_tenths(1));
        assert_eq!(set(&registers(1, 0, 0x50)), Ok(()));
        assert_eq!(
            set(&registers(1, 0, 0x51)),
            Err("the drive answered with sense 1h/00h/1Dh".into())
        );
        assert_eq!(
            set(&[0x72, 5, 0x24, 0, 0, 0, 0, 0]),
            Err("the drive does not know the question".into())
        );
        // An adapter that gives no registers back.
        let good = FakeDevice::default().page(&sct_question(), &[]);
        assert_eq!(set_timer(&good, Timer::Read, of_tenths(1)), Ok(()));
    }

    fn drive(word_206: u8, sense: &[u8]) -> FakeDevice {
        let mut words = vec![0; PAGE_LEN];
        words[412] = word_206;
        FakeDevice::default().page(&identify(), &words).sense(&sct_question(), sense)
    }

    #[test]
    fn time_limit_is_in_the_registers() {
        let seventy = Some(Nanos::from_secs(7));
        let both = |time| Ok(Some(ErrorRecovery { read: time, write: time }));
        let ask = |word, sense: &[u8]| ask_error_recovery(&drive(word, sense));
        assert_eq!(ask(0b1001, &registers(70, 0, 0x50)), both(seventy));
        assert_eq!(ask(0b1001, &registers(0, 0, 0x50)), both(None));
        assert_eq!(ask(0b1001, &registers(0x2C, 1, 0x50)), both(Some(Nanos::from_secs(30))));
        // Behind another descriptor.
        let mut sense = registers(70, 0, 0x50);
        sense.splice(8..8, [0x00, 0x02, 9, 9]);
        assert_eq!(ask(0b1001, &sense), both(seventy));
        let mut fixed = vec![0; 18];
        (fixed[0], fixed[4], fixed[6], fixed[13]) = (0x70, 0x50, 70, 0x1D);
        assert_eq!(ask(0b1001, &fixed), both(seventy));
        assert_eq!(ask(0b0001, &[]), Ok(None), "SCT without ERC");
        assert_eq!(ask(0b1000, &[]), Ok(None), "no SCT");
    }

    #[test]
    fn registers_that_answer_nothing_are_no_time() {
        let check = |sense: &[u8], expected: &str| {
            let error = ask_error_recovery(&drive(0b1001, sense)).unwrap_err();
            assert_eq!(error, expected);
        };
        check(&registers(1, 0xE0, 0x50), "the adapter returned the registers as they were sent");
        check(&registers(70, 0, 0x51), "the drive answered with sense 1h/00h/1Dh");
        check(&[0x72, 11, 0, 0, 0, 0, 0, 0], "the drive answered with sense Bh/00h/00h");
    }

    #[test]
    fn statistics_count_only_where_the_drive_has_them() {
        let general = statistics_page(1, &[(40, 0x1234_5678_9ABC)]);
        let mut rotating = statistics_page(3, &[(40, 77)]);
        let check = |general: &[u8], rotating: &[u8], sectors_read, read_recovery_attempts| {
            let expected = Statistics { sectors_read, read_recovery_attempts };
            assert_eq!(parse_statistics(general, rotating), expected);
        };
        check(&general, &rotating, Some(0x1234_5678_9ABC), Some(77));
        check(&general, &general, Some(0x1234_5678_9ABC), None);
        check(&general[..47], &rotating[..48], None, Some(77));
        check(&[], &[1, 0, 3], None, None);
        for flags in [0x00, 0x40, 0x80] {
            rotating[47] = flags;
            check(&general, &rotating, Some(0x1234_5678_9ABC), None);
        }
        let device = FakeDevice::default().page(&read_log(4, 1), &general);
        let found = ask_statistics(&device).unwrap();
        assert_eq!(found.read_recovery_attempts, None, "it has no page 3");
        assert_eq!(in_sectors(found.sectors_read.unwrap(), 512), 0x1234_5678_9ABC / 8);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            returned(&bytes);
            sense_code(&bytes);
            has_error_recovery(&bytes);
            parse_statistics(&bytes, &bytes);
        }

        #[test]
        fn any_sense_in_either_format_is_taken(
            format in 0x70_u8..0x74, bytes in prop::collection::vec(any::<u8>(), 0..40)
        ) {
            let sense = [&[format], &bytes[..]].concat();
            returned(&sense);
            sense_code(&sense);
        }
    }
}
