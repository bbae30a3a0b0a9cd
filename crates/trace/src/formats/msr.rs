//! MSR Cambridge: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.
//!
//! Times, those of the answers too, are Windows file times, in steps of 100 ns. A device is a host and a disk of it, named
//! `host.disk`. The files as published have no header; copies that have one are read too.

use crate::Kind;
use crate::collect::{Collector, Request};
use crate::error::Problem;
use levelhead_units::Nanos;

use crate::fields::{Fields, Places, canonical, whole};
use crate::source::LineReader;

const PLACES: Places = Places { at: 0, device: 1, offset: 4, length: 5 };
const FIELDS: usize = 7;

#[derive(Debug, Default)]
pub(super) struct Reader {
    lines: u64,
    /// The device's name, kept for its memory.
    device: Vec<u8>,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], into: &mut Collector) -> Result<(), Problem> {
        let fields = Fields::by_comma(line);
        self.lines += 1;
        if self.lines == 1 && is_header(&fields) {
            return Ok(());
        }
        let ticks = fields.whole(0, "the time, a whole number of 100 ns")?;
        let host = fields.text(1, "the host")?;
        fields.whole(2, "the disk, a whole number")?;
        let disk = canonical(fields.text(2, "the disk")?);
        let named = fields.text(3, "the type, Read or Write")?;
        let kind = kind(named).ok_or_else(|| fields.problem(3, "the type, Read or Write"))?;
        let offset = fields.whole(4, "the offset, a whole number of bytes")?;
        let length = fields.whole(5, "the size, a whole number of bytes")?;
        let response = whole(fields.text(6, "the response time")?);
        let response = response.and_then(|ticks| ticks.checked_mul(100)).map(Nanos::new);
        if fields.count() > FIELDS {
            return Err(fields.problem(FIELDS, "the end of the line"));
        }
        self.device.clear();
        self.device.extend_from_slice(host);
        self.device.push(b'.');
        self.device.extend_from_slice(disk);
        let at = u128::from(ticks) * 100;
        into.add_answered(Request { at, device: &self.device, offset, length, kind }, response)
            .map_err(|refused| fields.refused(refused, PLACES))
    }
}

/// Whether a line names the columns.
pub(crate) fn is_header(fields: &Fields<'_>) -> bool {
    fields.get(0) == Some(b"Timestamp") && fields.get(1) == Some(b"Hostname")
}

/// What the column `Type` says.
pub(crate) fn kind(text: &[u8]) -> Option<Kind> {
    if text.eq_ignore_ascii_case(b"read") {
        Some(Kind::Read)
    } else if text.eq_ignore_ascii_case(b"write") {
        Some(Kind::Write)
    } else {
        None
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::Format;
    use crate::Kind::{Read, Write};
    use crate::formats::testing::{check_refusals, devices, read_as, record};

    use levelhead_units::Nanos;

    pub(crate) const SAMPLE: &str = "\
128166372003061629,hm,0,Read,383496192,32768,413
128166372016382155,hm,1,Write,2822144,4096,1105
128166372003061630,hm,0,Write,2216, 512,5
128166372026382245,usr,01,Read,0,0,2
";

    #[test]
    fn sample_gives_these_records() {
        let trace = read_as(Format::Msr, SAMPLE.as_bytes());
        assert_eq!(
            trace.records,
            [
                record(0, 0, 383_496_192, 32768, Read),
                record(100, 0, 2216, 512, Write),
                record(1_332_052_600, 1, 2_822_144, 4096, Write),
            ]
        );
        assert_eq!(trace.responses, [41_300, 500, 110_500].map(Nanos::new));
        assert_eq!(devices(&trace), [("hm.0", 93_635), ("hm.1", 690)]);
        assert_eq!(trace.devices[0].requests, 2);
        assert_eq!((trace.out_of_order, trace.skipped.zero_length), (1, 1));
        let headed =
            format!("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n{SAMPLE}");
        assert_eq!(read_as(Format::Msr, headed.as_bytes()), trace);
    }

    #[test]
    fn errors_name_the_line_and_the_column() {
        check_refusals(
            Format::Msr,
            &[
                (
                    "1,hm,0,Read,0,512,4\n1.5,hm,0,Read,0,512,4",
                    "t:2:1: expected the time, a whole number of 100 ns, found '1.5'",
                ),
                ("1", "t:1:2: expected the host, found the end of the line"),
                ("1,hm,x,Read,0,512,4", "t:1:6: expected the disk, a whole number, found 'x'"),
                ("1,hm,0,Trim,0,512,4", "t:1:8: expected the type, Read or Write, found 'Trim'"),
                (
                    "1,hm,0,Read,-1,512,4",
                    "t:1:13: expected the offset, a whole number of bytes, found '-1'",
                ),
                (
                    "1,hm,0,Read,0,4k,4",
                    "t:1:15: expected the size, a whole number of bytes, found '4k'",
                ),
                (
                    "1,hm,0,Read,0,512",
                    "t:1:18: expected the response time, found the end of the line",
                ),
                ("1,hm,0,Read,0,512,4,9", "t:1:21: expected the end of the line, found '9'"),
                (
                    "1,hm,0,Read,0,67108865,4",
                    "t:1:15: expected a request of at most 64MiB, found '67108865'",
                ),
                (
                    "1,hm,0,Read,18446744073709551615,512,4",
                    "t:1:13: expected a request that ends within 1048576TiB, \
                 found '18446744073709551615'",
                ),
                (
                    "1,hm,0,Read,0,512,4\n18446744073709551615,hm,0,Read,0,512,4",
                    "t:2:1: expected a time within 73 years of the first request's, \
                 found '18446744073709551615'",
                ),
                (
                    "1,hm,0,Read,0,0,4",
                    "t: expected at least one read or write in msr format, \
                 found none (0 other operations and 1 requests of length zero)",
                ),
            ],
        );
    }
}
