//! Windows of MSR Cambridge as replayers of simulated drives take them:
//! `arrival_ms device offset_bytes size_bytes type`, type 1 a read and 0 a write.

use super::MILLISECOND;
use super::ssdsim::kind;
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
        let at = fields.decimal(0, MILLISECOND, "the time, a number of milliseconds")?;
        fields.whole(1, "the device, a whole number")?;
        let device = canonical(fields.text(1, "the device")?);
        let offset = fields.whole(2, "the offset, a whole number of bytes")?;
        let length = fields.whole(3, "the size, a whole number of bytes")?;
        let kind = kind(&fields, 4)?;
        if fields.count() > FIELDS {
            return Err(fields.problem(FIELDS, "the end of the line"));
        }
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
0.000 0 200626176 4096 0
223.412 0 3159347200 36864 0
223.434 0 512 7680 1
";

    #[test]
    fn sample_gives_these_records() {
        let trace = read_as(Format::MsrCut, SAMPLE.as_bytes());
        assert_eq!(
            trace.records,
            [
                record(0, 0, 200_626_176, 4096, Write),
                record(223_412_000, 0, 3_159_347_200, 36864, Write),
                record(223_434_000, 0, 512, 7680, Read),
            ]
        );
        assert_eq!(devices(&trace), [("0", 771_334)]);
    }

    #[test]
    fn errors_name_the_line_and_the_column() {
        check_refusals(
            Format::MsrCut,
            &[
                (
                    "-1.0 0 0 512 1",
                    "t:1:1: expected the time, a number of milliseconds, found '-1.0'",
                ),
                (
                    "1e3 0 0 512 1",
                    "t:1:1: expected the time, a number of milliseconds, found '1e3'",
                ),
                ("0.1 a 0 512 1", "t:1:5: expected the device, a whole number, found 'a'"),
                (
                    "0.1 0 .5 512 1",
                    "t:1:7: expected the offset, a whole number of bytes, found '.5'",
                ),
                ("0.1 0 0 ? 1", "t:1:9: expected the size, a whole number of bytes, found '?'"),
                ("0.1 0 0 512 2", "t:1:13: expected the type, 1 (read) or 0 (write), found '2'"),
                (
                    "0.1 0 0 512",
                    "t:1:12: expected the type, 1 (read) or 0 (write), found the end of the line",
                ),
                ("0.1 0 0 512 1 1", "t:1:15: expected the end of the line, found '1'"),
                (
                    "0.1 0 0 67108865 1",
                    "t:1:9: expected a request of at most 64MiB, found '67108865'",
                ),
            ],
        );
    }
}
