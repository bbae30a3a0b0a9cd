//! Storage Performance Council, revision 1.0.1: `ASU,LBA,Size,Opcode,Timestamp`, perhaps with more
//! fields after them.
//!
//! The application specific unit is the device. Addresses count blocks of 512 bytes, which is what
//! the published traces (Financial, WebSearch) have; sizes are bytes, times seconds. Letters may be
//! small, and blanks may stand around the fields.

use super::{SECOND, SMALL_SECTOR};
use crate::Kind;
use crate::collect::{Collector, Request};
use crate::error::Problem;
use crate::fields::{Fields, Places, canonical};
use crate::source::LineReader;

const PLACES: Places = Places { at: 4, device: 0, offset: 1, length: 2 };

#[derive(Debug)]
pub(super) struct Reader;

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], into: &mut Collector) -> Result<(), Problem> {
        let fields = Fields::by_comma(line);
        fields.whole(0, "the unit (ASU), a whole number")?;
        let device = canonical(fields.text(0, "the unit")?);
        let block = fields.whole(1, "the block, a whole number")?;
        let length = fields.whole(2, "the size, a whole number of bytes")?;
        let kind = match fields.text(3, "the type, R or W")? {
            b"R" | b"r" => Kind::Read,
            b"W" | b"w" => Kind::Write,
            _ => return Err(fields.problem(3, "the type, R or W")),
        };
        let at = fields.decimal(4, SECOND, "the time, a number of seconds")?;
        let offset = block.saturating_mul(SMALL_SECTOR);
        into.add(Request { at, device, offset, length, kind })
            .map_err(|refused| fields.refused(refused, PLACES))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::Format;
    use crate::Kind::{Read, Write};
    use crate::formats::testing::{check_refusals, devices, read_as, record};

    pub(crate) const SAMPLE: &str = "\
0,303567,3584,w,0.000000
1,55590,3072,W,0.026214
0, 20, 8192, R, 0.026214, made up, 7
";

    #[test]
    fn sample_gives_these_records() {
        let trace = read_as(Format::Spc, SAMPLE.as_bytes());
        assert_eq!(
            trace.records,
            [
                record(0, 0, 155_426_304, 3584, Write),
                record(26_214_000, 1, 28_462_080, 3072, Write),
                record(26_214_000, 0, 10_240, 8192, Read),
            ]
        );
        assert_eq!(devices(&trace), [("0", 37_947), ("1", 6_950)]);
    }

    #[test]
    fn errors_name_the_line_and_the_column() {
        check_refusals(
            Format::Spc,
            &[
                ("a,1,512,R,0", "t:1:1: expected the unit (ASU), a whole number, found 'a'"),
                ("0,,512,R,0", "t:1:3: expected the block, a whole number, found ''"),
                ("0,1, 5.5,R,0", "t:1:6: expected the size, a whole number of bytes, found '5.5'"),
                ("0,1,512,X,0", "t:1:9: expected the type, R or W, found 'X'"),
                ("0,1,512,R,now", "t:1:11: expected the time, a number of seconds, found 'now'"),
                (
                    "0,1,512,R",
                    "t:1:10: expected the time, a number of seconds, found the end of the line",
                ),
                (
                    "0,1,99999999,R,0",
                    "t:1:5: expected a request of at most 64MiB, found '99999999'",
                ),
                (
                    "0,1,512,R,0\n0,1,512,R,9999999999",
                    "t:2:11: expected a time within 73 years of the first request's, \
                 found '9999999999'",
                ),
            ],
        );
    }
}
