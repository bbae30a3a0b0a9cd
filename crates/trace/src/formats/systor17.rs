//! SYSTOR '17 (virtual desktops of an enterprise):
//! `Timestamp,Response,IOType,LUN,Offset,Size`, with or without that line on top.
//!
//! Times are seconds since 1970 with nine digits, of which the publishers vouch for six; all are
//! kept. A blank type marks a request whose answer was never seen, so that it is not known what it
//! was: those are counted as other operations.

use levelhead_units::Nanos;

use super::SECOND;
use crate::Kind;
use crate::collect::{Collector, Request};
use crate::error::Problem;
use crate::fields::{Fields, Places, canonical};
use crate::source::LineReader;

const PLACES: Places = Places { at: 0, device: 3, offset: 4, length: 5 };
const FIELDS: usize = 6;

#[derive(Debug, Default)]
pub(super) struct Reader {
    lines: u64,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], into: &mut Collector) -> Result<(), Problem> {
        let fields = Fields::by_comma(line);
        self.lines += 1;
        if self.lines == 1 && is_header(&fields) {
            return Ok(());
        }
        let at = fields.decimal(0, SECOND, "the time, a number of seconds")?;
        fields.text(1, "the response time")?;
        let response = fields.decimal(1, SECOND, "the response time").ok();
        let response = response.and_then(|nanos| u64::try_from(nanos).ok()).map(Nanos::new);
        let kind = match fields.text(2, "the type, R, W or nothing")? {
            b"R" => Some(Kind::Read),
            b"W" => Some(Kind::Write),
            b"" => None,
            _ => return Err(fields.problem(2, "the type, R, W or nothing")),
        };
        fields.whole(3, "the LUN, a whole number")?;
        let device = canonical(fields.text(3, "the LUN")?);
        let offset = fields.whole(4, "the offset, a whole number of bytes")?;
        let length = fields.whole(5, "the size, a whole number of bytes")?;
        if fields.count() > FIELDS {
            return Err(fields.problem(FIELDS, "the end of the line"));
        }
        let Some(kind) = kind else {
            into.skip_other();
            return Ok(());
        };
        into.add_answered(Request { at, device, offset, length, kind }, response)
            .map_err(|refused| fields.refused(refused, PLACES))
    }
}

/// Whether a line names the columns.
pub(crate) fn is_header(fields: &Fields<'_>) -> bool {
    fields.get(0) == Some(b"Timestamp") && fields.get(1) == Some(b"Response")
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::Format;
    use crate::Kind::{Read, Write};
    use crate::formats::testing::{check_refusals, devices, read_as, record};

    use levelhead_units::Nanos;

    pub(crate) const SAMPLE: &str = "\
Timestamp,Response,IOType,LUN,Offset,Size
1456135200.013118000,0.000806000,R,4,899056122368,131072
1456135200.013119000,,,4,0,512
1456135200.113118500,0.001,W,0,4608,8192
";

    #[test]
    fn sample_gives_these_records() {
        let trace = read_as(Format::Systor17, SAMPLE.as_bytes());
        assert_eq!(
            trace.records,
            [
                record(0, 0, 899_056_122_368, 131_072, Read),
                record(100_000_500, 1, 4608, 8192, Write),
            ]
        );
        assert_eq!(trace.responses, [806_000, 1_000_000].map(Nanos::new));
        assert_eq!(devices(&trace), [("4", 219_496_156), ("0", 4)]);
        assert_eq!(trace.skipped.other, 1);
        let (_, headless) = SAMPLE.split_once('\n').unwrap();
        assert_eq!(read_as(Format::Systor17, headless.as_bytes()), trace);
    }

    #[test]
    fn errors_name_the_line_and_the_column() {
        check_refusals(
            Format::Systor17,
            &[
                (
                    "1.0,0,R,0,0,512\nTimestamp,Response,IOType,LUN,Offset,Size",
                    "t:2:1: expected the time, a number of seconds, found 'Timestamp'",
                ),
                ("1.0", "t:1:4: expected the response time, found the end of the line"),
                ("1.0,0,Read,0,0,512", "t:1:7: expected the type, R, W or nothing, found 'Read'"),
                ("1.0,0,R,,0,512", "t:1:9: expected the LUN, a whole number, found ''"),
                (
                    "1.0,0,R,0,0.0,512",
                    "t:1:11: expected the offset, a whole number of bytes, found '0.0'",
                ),
                ("1.0,0,R,0,0,", "t:1:13: expected the size, a whole number of bytes, found ''"),
                ("1.0,0,R,0,0,512,1", "t:1:17: expected the end of the line, found '1'"),
                (
                    "1.0,0,R,0,0,67108865",
                    "t:1:13: expected a request of at most 64MiB, found '67108865'",
                ),
            ],
        );
    }
}
