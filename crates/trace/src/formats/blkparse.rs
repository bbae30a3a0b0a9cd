//! The text that `blkparse` prints of a Linux block trace, in its default form:
//!
//! ```text
//!   8,0    3       11     0.009507758   697  Q   W 223490 + 8 [kjournald]
//!   device cpu sequence   seconds       pid  |   |  sector   sectors
//!                                      action   operation
//! ```
//!
//! One request leaves several lines. Taken are those of action `Q` (the request reached the block
//! layer: its arrival); a trace recorded without them gives those of action `D` (issued to the
//! drive) instead, which [`Trace::remarks`](crate::Trace::remarks) says. That takes one pass: `D`
//! lines are kept until the first `Q` line comes.
//!
//! An operation with `R` is a read, one with `W` a write; `D` makes it a discard and `Z` a zone
//! command, whatever else is there. A write without `sector + sectors` is a bare flush. Discards,
//! zone commands, flushes and commands passed through are counted as other operations. The
//! statistics after the events are read past.
//!
//! Where stacked devices are traced together (`dm` or `md` above a disk), a request is in the trace
//! once a layer; trace one layer.

use super::{SECOND, SMALL_SECTOR};
use crate::Kind;
use crate::collect::{Collector, Request};
use crate::error::Problem;
use crate::fields::{Fields, Places, whole};
use crate::source::LineReader;

const PLACES: Places = Places { at: 3, device: 0, offset: 7, length: 9 };

const ISSUED: &str = "there are no Q events (arrivals): D events (issued to the drive) were taken";

#[derive(Debug, Default)]
pub(super) struct Reader {
    section: Section,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Section {
    /// No `Q` so far.
    #[default]
    Issued,
    /// There was a `Q`.
    Queued,
    /// The statistics at the end.
    Statistics,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], into: &mut Collector) -> Result<(), Problem> {
        if self.section == Section::Statistics || is_preamble(line.trim_ascii_start()) {
            return Ok(());
        }
        let fields = Fields::by_space(line);
        let device = fields.text(0, "a device, as in 8,0")?;
        if !is_device(device) {
            if device.starts_with(b"CPU") || device.starts_with(b"Total") {
                self.section = Section::Statistics;
                return Ok(());
            }
            return Err(fields.problem(0, "a device, as in 8,0"));
        }
        match (fields.text(5, "an action, as in Q")?, self.section) {
            (b"Q", Section::Issued) => {
                into.clear();
                self.section = Section::Queued;
            }
            (b"Q", Section::Queued) => {}
            (b"D", Section::Issued) => into.remark(ISSUED),
            _ => return Ok(()),
        }
        take(&fields, device, into)
    }
}

/// Takes the request of a line, if it is one.
fn take(fields: &Fields<'_>, device: &[u8], into: &mut Collector) -> Result<(), Problem> {
    let at = fields.decimal(3, SECOND, "the time, a number of seconds")?;
    let operation = fields.text(6, "the operation, as in R or WS")?;
    let has_place = fields.get(8) == Some(b"+");
    let kind = match kind(operation) {
        Some(kind) if has_place => kind,
        _ => {
            into.skip_other();
            return Ok(());
        }
    };
    let sector = fields.whole(7, "the first sector, a whole number")?;
    let sectors = fields.whole(9, "the number of sectors, a whole number")?;
    let offset = sector.saturating_mul(SMALL_SECTOR);
    let length = sectors.saturating_mul(SMALL_SECTOR);
    into.add(Request { at, device, offset, length, kind })
        .map_err(|refused| fields.refused(refused, PLACES))
}

fn kind(operation: &[u8]) -> Option<Kind> {
    if operation.contains(&b'D') || operation.contains(&b'Z') {
        None
    } else if operation.contains(&b'R') {
        Some(Kind::Read)
    } else if operation.contains(&b'W') {
        Some(Kind::Write)
    } else {
        None
    }
}

/// Whether a field is a device's major and minor number.
pub(crate) fn is_device(field: &[u8]) -> bool {
    let comma = field.iter().position(|byte| *byte == b',');
    comma.is_some_and(|comma| {
        whole(&field[..comma]).is_some() && whole(&field[comma + 1..]).is_some()
    })
}

/// Whether a line is one of those that name the recorded files, before the events.
pub(crate) fn is_preamble(line: &[u8]) -> bool {
    line.starts_with(b"Input file ")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Format;
    use crate::Kind::{Read, Write};
    use crate::formats::testing::{check_refusals, devices, read_as, record};

    pub(crate) const SAMPLE: &str = "\
Input file sda.blktrace.0 added
  8,0    3        1     0.000000000   697  D   W 223480 + 8 [kjournald]
  8,0    3        2     0.000100000   697  A   R 2095 + 8 <- (8,1) 47
  8,0    3        3     0.000100500   697  Q   R 2095 + 8 [cat]
  8,0    3        4     0.000101000   697  G   R 2095 + 8 [cat]
  8,0    3        5     0.000102000   697  D   R 2095 + 8 [cat]
  8,16   0        1     0.000200000   698  Q  WS 1 + 1 [jbd2/sdb-8]
  8,16   0        2     0.000300000   698  Q FWFSM 100 + 16 [a + b]
  8,16   0        3     0.000400000   698  Q FWS [jbd2/sdb-8]
  8,16   0        4     0.000500000   698  Q   D 4096 + 2048 [fstrim]
  8,16   0        5     0.000600000   698  Q  RA 0 + 0 [cat]
  8,16   0        0     0.000700000     0  m   N cfq698 slice expired t=0
  8,0    3        6     0.000800000     0  C   R 2095 + 8 [0]

CPU0 (8,0):
 Reads Queued:           1,        4KiB\t Writes Queued:           0,        0KiB
Total (8,0):
Events (8,0): 6 entries
";

    #[test]
    fn sample_gives_these_records() {
        let trace = read_as(Format::Blkparse, SAMPLE.as_bytes());
        assert_eq!(
            trace.records,
            [
                record(0, 0, 2095 * 512, 4096, Read),
                record(99_500, 1, 512, 512, Write),
                record(199_500, 1, 51_200, 8192, Write),
            ]
        );
        assert_eq!(devices(&trace), [("8,0", 263), ("8,16", 15)]);
        assert_eq!((trace.skipped.other, trace.skipped.zero_length), (2, 1));
        assert_eq!(trace.remarks, [""; 0]);
    }

    #[test]
    fn issued_requests_stand_in_where_no_arrivals_were_recorded() {
        let issued: String = SAMPLE
            .lines()
            .filter(|line| !line.contains("  Q "))
            .map(|line| format!("{line}\n"))
            .collect();
        let issued = issued.replace(" Q FW", " C FW");
        let trace = read_as(Format::Blkparse, issued.as_bytes());
        assert_eq!(
            trace.records,
            [record(0, 0, 223_480 * 512, 4096, Write), record(102_000, 0, 2095 * 512, 4096, Read),]
        );
        assert_eq!(trace.remarks, [ISSUED]);
        let passed_through = "8,0 3 1 0.0 697 D R 36 (12 00 00 00 24 00 ..) [hdparm]\n\
                              8,0 3 2 0.0 697 D R 8 + 8 [cat]\n";
        let trace = read_as(Format::Blkparse, passed_through.as_bytes());
        assert_eq!((trace.records.len(), trace.skipped.other), (1, 1));
    }

    #[test]
    fn operations_are_told_by_their_letters() {
        let cases: [(&[u8], Option<Kind>); 12] = [
            (b"R", Some(Read)),
            (b"RA", Some(Read)),
            (b"RSM", Some(Read)),
            (b"W", Some(Write)),
            (b"WFS", Some(Write)),
            (b"FWFSM", Some(Write)),
            (b"D", None),
            (b"DS", None),
            (b"F", None),
            (b"N", None),
            (b"ZR", None),
            (b"", None),
        ];
        for (operation, expected) in cases {
            assert_eq!(kind(operation), expected, "{}", String::from_utf8_lossy(operation));
        }
    }

    #[test]
    fn errors_name_the_line_and_the_column() {
        check_refusals(
            Format::Blkparse,
            &[
                ("sda 3 1 0.0 1 Q R 8 + 8 [c]", "t:1:1: expected a device, as in 8,0, found 'sda'"),
                ("8, 3 1 0.0 1 Q R 8 + 8 [c]", "t:1:1: expected a device, as in 8,0, found '8,'"),
                ("8,0 3 1", "t:1:8: expected an action, as in Q, found the end of the line"),
                (
                    "8,0 3 1 x 1 Q R 8 + 8 [c]",
                    "t:1:9: expected the time, a number of seconds, found 'x'",
                ),
                (
                    "8,0 3 1 0.0 1 Q",
                    "t:1:16: expected the operation, as in R or WS, found the end of the line",
                ),
                (
                    "8,0 3 1 0.0 1 Q R x + 8 [c]",
                    "t:1:19: expected the first sector, a whole number, found 'x'",
                ),
                (
                    "8,0 3 1 0.0 1 Q R 8 + [c]",
                    "t:1:23: expected the number of sectors, a whole number, found '[c]'",
                ),
                (
                    "8,0 3 1 0.0 1 Q R 8 + 131073 [c]",
                    "t:1:23: expected a request of at most 64MiB, found '131073'",
                ),
            ],
        );
    }
}
