//! CloudPhysics vscsi, version 1: what a virtual machine's SCSI adapter saw of one virtual disk.
//!
//! ```text
//! bytes   0    4    8       12   14       16         24      32
//!         | serial | bytes | segments | op | version | sector | time |     all little-endian
//!           u32      u32     u32       u16   u16       u64      u64
//! ```
//!
//! The version is 0x0100, sectors have 512 bytes, times are microseconds. Operations are SCSI
//! operation codes; those that are not READ or WRITE of 6, 10 or 16 bytes are counted and left out.

use super::SMALL_SECTOR;
use crate::collect::{Collector, ONE_MORE, Part, Request};
use crate::source::Source;
use crate::{Kind, TraceError};

const RECORD_SIZE: usize = 32;
const VERSION: u16 = 0x0100;
const VERSION_AT: usize = 14;

/// The one device, which the format does not name.
const DEVICE: &[u8] = b"disk";

/// One record, taken apart.
#[derive(Clone, Copy, Debug)]
struct Entry {
    bytes: u32,
    op: u16,
    version: u16,
    sector: u64,
    micros: u64,
}

impl Entry {
    fn of(record: &[u8; RECORD_SIZE]) -> Self {
        Self {
            bytes: u32::from_le_bytes(part(record, 4)),
            op: u16::from_le_bytes(part(record, 12)),
            version: u16::from_le_bytes(part(record, VERSION_AT)),
            sector: u64::from_le_bytes(part(record, 16)),
            micros: u64::from_le_bytes(part(record, 24)),
        }
    }

    fn kind(self) -> Option<Kind> {
        match self.op {
            0x08 | 0x28 | 0x88 => Some(Kind::Read),
            0x0A | 0x2A | 0x8A => Some(Kind::Write),
            _ => None,
        }
    }
}

/// The bytes of `record` from `at` on.
fn part<const SIZE: usize>(record: &[u8; RECORD_SIZE], at: usize) -> [u8; SIZE] {
    std::array::from_fn(|idx| record[at + idx])
}

/// Whether `head` begins with records of this version; at most `records_max` are looked at.
pub(crate) fn looks_like(head: &[u8], records_max: usize) -> bool {
    let mut records = head.chunks_exact(RECORD_SIZE).take(records_max).peekable();
    records.peek().is_some()
        && records.all(|record| record[VERSION_AT..VERSION_AT + 2] == VERSION.to_le_bytes())
}

/// Reads all records.
pub(super) fn read(source: &mut Source<'_>, into: &mut Collector) -> Result<(), TraceError> {
    for number in 0.. {
        let Some(record) = source.read_record::<RECORD_SIZE>(number)? else { break };
        let entry = Entry::of(&record);
        let wrong = |expected, found| source.in_record::<RECORD_SIZE>(number, expected, found);
        if entry.version != VERSION {
            let expected = format!("version 1 ({VERSION:#06x}) in its bytes 14 and 15");
            return Err(wrong(expected, format!("{:#06x}", entry.version)));
        }
        let Some(kind) = entry.kind() else {
            into.skip_other();
            continue;
        };
        let request = Request {
            at: u128::from(entry.micros) * 1000,
            device: DEVICE,
            offset: entry.sector.saturating_mul(SMALL_SECTOR),
            length: u64::from(entry.bytes),
            kind,
        };
        into.add(request).map_err(|refused| {
            let found = match refused.part {
                Part::Count => ONE_MORE.to_owned(),
                Part::At => format!("{} us", entry.micros),
                Part::Device => "another".to_owned(),
                Part::Offset => format!("sector {}", entry.sector),
                Part::Length => format!("{} bytes", entry.bytes),
            };
            wrong(refused.expected, found)
        })?;
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Format;
    use crate::Kind::{Read, Write};
    use crate::formats::testing::{devices, read_as, record};

    fn entry(bytes: u32, op: u16, sector: u64, micros: u64) -> [u8; RECORD_SIZE] {
        let mut record = [0; RECORD_SIZE];
        record[0..4].copy_from_slice(&7_u32.to_le_bytes());
        record[4..8].copy_from_slice(&bytes.to_le_bytes());
        record[8..12].copy_from_slice(&1_u32.to_le_bytes());
        record[12..14].copy_from_slice(&op.to_le_bytes());
        record[14..16].copy_from_slice(&VERSION.to_le_bytes());
        record[16..24].copy_from_slice(&sector.to_le_bytes());
        record[24..32].copy_from_slice(&micros.to_le_bytes());
        record
    }

    pub(crate) fn sample() -> Vec<u8> {
        [
            entry(512, 0x2A, 42_932_745, 5_633_432_743_714),
            entry(36_864, 0x28, 0, 5_633_432_743_715),
            entry(36, 0x12, 0, 5_633_432_743_716), // INQUIRY
            entry(0, 0x28, 8, 5_633_432_743_717),
            entry(4096, 0x08, 1, 5_633_432_743_000),
            entry(4096, 0x8A, 1 << 40, 5_633_433_743_714),
        ]
        .concat()
    }

    #[test]
    fn sample_gives_these_records() {
        let trace = read_as(Format::Vscsi1, &sample());
        assert_eq!(
            trace.records,
            [
                record(0, 0, 512, 4096, Read),
                record(714_000, 0, 21_981_565_440, 512, Write),
                record(715_000, 0, 0, 36_864, Read),
                record(1_000_714_000, 0, 1 << 49, 4096, Write),
            ]
        );
        assert_eq!(devices(&trace), [("disk", (1 << 37) + 1)]);
        assert_eq!((trace.skipped.other, trace.skipped.zero_length), (1, 1));
        assert_eq!(trace.out_of_order, 1);
    }

    #[test]
    fn every_read_and_write_of_scsi_is_known() {
        for (op, kind) in [
            (0x08, Some(Read)),
            (0x28, Some(Read)),
            (0x88, Some(Read)),
            (0x0A, Some(Write)),
            (0x2A, Some(Write)),
            (0x8A, Some(Write)),
            (0x35, None),
            (0x42, None),
            (0x128, None),
        ] {
            assert_eq!(Entry::of(&entry(512, op, 0, 0)).kind(), kind, "{op:#x}");
        }
    }

    #[test]
    fn errors_name_the_record_and_the_byte() {
        let mut old = entry(512, 0x28, 0, 0);
        old[15] = 2;
        let refusals: [(Vec<u8>, &str); 5] = [
            (
                [sample(), old.to_vec()].concat(),
                "t, record 6 (byte 192): expected version 1 (0x0100) in its bytes 14 and 15, \
                 found 0x0200",
            ),
            (
                [sample(), vec![0; 7]].concat(),
                "t, record 6 (byte 192): expected 32 bytes, found the end after 7",
            ),
            (
                entry(70_000_000, 0x28, 0, 0).to_vec(),
                "t, record 0 (byte 0): expected a request of at most 64MiB, found 70000000 bytes",
            ),
            (
                entry(512, 0x28, u64::MAX, 0).to_vec(),
                "t, record 0 (byte 0): expected a request that ends within 1048576TiB, \
                 found sector 18446744073709551615",
            ),
            (
                [sample(), entry(512, 0x28, 0, u64::MAX).to_vec()].concat(),
                "t, record 6 (byte 192): expected a time within 73 years of the first request's, \
                 found 18446744073709551615 us",
            ),
        ];
        for (bytes, message) in refusals {
            let error = crate::read(&*bytes, "t", Some(Format::Vscsi1), &mut |_| ()).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }
}
