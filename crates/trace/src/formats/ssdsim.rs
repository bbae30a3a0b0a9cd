//! MQSim and SSDsim: `arrival_ns device start_sector sectors type`, type 1 a read and 0 a write,
//! sectors of 512 bytes.
//!
//! The form comes from DiskSim's ASCII traces, whose times are milliseconds with a point; those are
//! refused here (a time with a point is no whole number) and not guessed at.

use super::SMALL_SECTOR;
use crate::Kind;
use crate::collect::{Collector, Request};
use crate::error::Problem;
use crate::fields::{Fields, Places, canonical};
use crate::source::LineReader;

const PLACES: Places = Places { at: 0, device: 1, offset: 2, length: 3 };
const FIELDS: usize = 5;

#[derive(Debug)]
pub(super) struct Reader;

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], into: &mut Collector) -> Result<(), Problem> {
        let fields = Fields::by_space(line);
        let at = u128::from(fields.whole(0, "the time, a whole number of nanoseconds")?);
        fields.whole(1, "the device, a whole number")?;
        let device = canonical(fields.text(1, "the device")?);
        let sector = fields.whole(2, "the first sector, a whole number")?;
        let sectors = fields.whole(3, "the number of sectors, a whole number")?;
        let kind = kind(&fields, 4)?;
        if fields.count() > FIELDS {
            return Err(fields.problem(FIELDS, "the end of the line"));
        }
        let offset = sector.saturating_mul(SMALL_SECTOR);
        let length = sectors.saturating_mul(SMALL_SECTOR);
        into.add(Request { at, device, offset, length, kind })
            .map_err(|refused| fields.refused(refused, PLACES))
    }
}

/// Field `idx`, where 1 stands for a read and 0 for a write.
pub(super) fn kind(fields: &Fields<'_>, idx: usize) -> Result<Kind, Problem> {
    const EXPECTED: &str = "the type, 1 (read) or 0 (write)";
    match fields.text(idx, EXPECTED)? {
        b"1" => Ok(Kind::Read),
        b"0" => Ok(Kind::Write),
        _ => Err(fields.problem(idx, EXPECTED)),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::Format;
    use crate::Kind::{Read, Write};
    use crate::formats::testing::{check_refusals, devices, read_as, record};

    pub(crate) const SAMPLE: &str = "\
11413000 0 657728 16 1
11565000 1 31244784 64 1
11565000 0 7 1 0
16187000 00 0 0 1
";

    #[test]
    fn sample_gives_these_records() {
        let trace = read_as(Format::Ssdsim, SAMPLE.as_bytes());
        assert_eq!(
            trace.records,
            [
                record(0, 0, 336_756_736, 8192, Read),
                record(152_000, 1, 15_997_329_408, 32768, Read),
                record(152_000, 0, 3584, 512, Write),
            ]
        );
        assert_eq!(devices(&trace), [("0", 82_218), ("1", 3_905_606)]);
        assert_eq!(trace.skipped.zero_length, 1);
    }

    #[test]
    fn errors_name_the_line_and_the_column() {
        check_refusals(
            Format::Ssdsim,
            &[
                (
                    "1.5 0 0 8 1",
                    "t:1:1: expected the time, a whole number of nanoseconds, found '1.5'",
                ),
                ("1 sda 0 8 1", "t:1:3: expected the device, a whole number, found 'sda'"),
                ("1 0 -8 8 1", "t:1:5: expected the first sector, a whole number, found '-8'"),
                (
                    "1 0 0 8.0 1",
                    "t:1:7: expected the number of sectors, a whole number, found '8.0'",
                ),
                ("1 0 0 8 R", "t:1:9: expected the type, 1 (read) or 0 (write), found 'R'"),
                (
                    "1 0 0",
                    "t:1:6: expected the number of sectors, a whole number, \
                 found the end of the line",
                ),
                ("1 0 0 8 1 0", "t:1:11: expected the end of the line, found '0'"),
                ("1 0 0 131073 1", "t:1:7: expected a request of at most 64MiB, found '131073'"),
                (
                    "1 0 18446744073709551615 8 1",
                    "t:1:5: expected a request that ends within 1048576TiB, \
                 found '18446744073709551615'",
                ),
                (
                    "1 0 0 18446744073709551615 1",
                    "t:1:7: expected a request of at most 64MiB, found '18446744073709551615'",
                ),
            ],
        );
    }
}
