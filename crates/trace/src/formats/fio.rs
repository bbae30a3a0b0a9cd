//! fio's own log, versions 2 and 3 (`write_iolog`, `read_iolog`).
//!
//! ```text
//! fio version 2 iolog                    fio version 3 iolog
//! /dev/sda add                           30 /dev/sda add
//! /dev/sda open                          215 /dev/sda open
//! /dev/sda read 61440 4096               220 /dev/sda read 61440 4096
//! /dev/sda wait 1000 0                   21360 /dev/sda write 774144 4096
//! ```
//!
//! Offsets and lengths are bytes. A file is a device. `add`, `open` and `close` are read past;
//! `trim`, `sync` and its kin are counted as other operations.
//!
//! Times: version 3 has microseconds since the job began (checked against logs of fio 3.33; its
//! manual names no unit). Version 2 has no times but `wait`; requests between two waits arrive at
//! once. About `wait` fio and its manual disagree: the manual says microseconds since the previous
//! wait, but fio sleeps until that number of *milliseconds* since the job began (3.33, measured: waits of
//! 1000 and 3000 end after 3 s). Logs in use were made to work with fio, so its way is taken, and
//! [`Trace::remarks`](crate::Trace::remarks) says so.

use super::MILLISECOND;
use crate::Kind;
use crate::collect::{Collector, Request};
use crate::error::{Problem, quoted};
use crate::fields::{Fields, Places};
use crate::source::LineReader;

const WAITS: &str =
    "waits were taken as fio does: until so many milliseconds after the start of the log";
const BURSTS: &str = "version 2 has no times of its own: requests between two waits arrive at once";

const MICROSECOND: u128 = 1000;

#[derive(Debug, Default)]
pub(super) struct Reader {
    version: Option<Version>,
    /// Where waits have led to, in nanoseconds since the start; version 2 only.
    now: u128,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Two,
    Three,
}

impl LineReader for Reader {
    fn line(&mut self, line: &[u8], into: &mut Collector) -> Result<(), Problem> {
        match self.version {
            None => {
                let version = version(line)?;
                if version == Version::Two {
                    into.remark(BURSTS);
                }
                self.version = Some(version);
                Ok(())
            }
            Some(Version::Two) => self.second(&Fields::by_space(line), into),
            Some(Version::Three) => third(&Fields::by_space(line), into),
        }
    }
}

fn version(line: &[u8]) -> Result<Version, Problem> {
    match line {
        b"fio version 2 iolog" => Ok(Version::Two),
        b"fio version 3 iolog" => Ok(Version::Three),
        _ => Err(Problem {
            column: 0,
            expected: "the line 'fio version 2 iolog' or 'fio version 3 iolog'".into(),
            found: quoted(line),
        }),
    }
}

impl Reader {
    /// `filename action [offset length]`
    fn second(&mut self, fields: &Fields<'_>, into: &mut Collector) -> Result<(), Problem> {
        if fields.get(1) == Some(b"wait") {
            let until = fields.whole(2, "the end of the wait, a whole number of milliseconds")?;
            self.now = self.now.max(u128::from(until) * u128::from(MILLISECOND));
            into.remark(WAITS);
            return Ok(());
        }
        let places = Places { at: 0, device: 0, offset: 2, length: 3 };
        action(fields, places, self.now, into)
    }
}

/// `microseconds filename action [offset length]`
fn third(fields: &Fields<'_>, into: &mut Collector) -> Result<(), Problem> {
    let micros = fields.whole(0, "the time, a whole number of microseconds")?;
    let places = Places { at: 0, device: 1, offset: 3, length: 4 };
    action(fields, places, u128::from(micros) * MICROSECOND, into)
}

/// The action of a line, which stands between the device and the offset.
fn action(
    fields: &Fields<'_>,
    places: Places,
    at: u128,
    into: &mut Collector,
) -> Result<(), Problem> {
    const EXPECTED: &str =
        "an action: read, write, trim, sync, datasync, sync_file_range, syncfs, add, open or close";
    let device = fields.text(places.device, "a file")?;
    let action = places.device + 1;
    let kind = match fields.text(action, EXPECTED)? {
        b"read" => Kind::Read,
        b"write" => Kind::Write,
        b"add" | b"open" | b"close" => return Ok(()),
        b"trim" | b"sync" | b"datasync" | b"sync_file_range" | b"syncfs" => {
            into.skip_other();
            return Ok(());
        }
        _ => return Err(fields.problem(action, EXPECTED)),
    };
    let offset = fields.whole(places.offset, "the offset, a whole number of bytes")?;
    let length = fields.whole(places.length, "the length, a whole number of bytes")?;
    if fields.count() > places.length + 1 {
        return Err(fields.problem(places.length + 1, "the end of the line"));
    }
    into.add(Request { at, device, offset, length, kind })
        .map_err(|refused| fields.refused(refused, places))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Format;
    use crate::Kind::{Read, Write};
    use crate::formats::testing::{check_refusals, devices, read_as, record};

    /// The form of what fio 3.33 wrote; the figures are made up.
    pub(crate) const SAMPLE: &str = "\
fio version 3 iolog
30 /dev/sda add
215 /dev/sda open
220 /dev/sda read 61440 4096
2346 /dev/sda write 880640 8192
2393 /dev/sda sync 880640 0
2400 /dev/sdb trim 4096 4096
2401 /dev/sdb read 512 0
21360 /dev/sdb write 774144 512
21400 /dev/sda close
";

    const SECOND_VERSION: &str = "\
fio version 2 iolog
/dev/sda add
/dev/sda open
/dev/sda read 0 4096
/dev/sda write 4096 4096
/dev/sda wait 1000 0
/dev/sda datasync 0 0
/dev/sdb read 8192 1024
/dev/sda wait 500
/dev/sda wait 3000
/dev/sda read 0 512
/dev/sda close
";

    #[test]
    fn samples_give_these_records() {
        let trace = read_as(Format::FioLog, SAMPLE.as_bytes());
        assert_eq!(
            trace.records,
            [
                record(0, 0, 61_440, 4096, Read),
                record(2_126_000, 0, 880_640, 8192, Write),
                record(21_140_000, 1, 774_144, 512, Write),
            ]
        );
        assert_eq!(devices(&trace), [("/dev/sda", 217), ("/dev/sdb", 190)]);
        assert_eq!((trace.skipped.other, trace.skipped.zero_length), (2, 1));
        assert_eq!(trace.remarks, [""; 0]);

        let trace = read_as(Format::FioLog, SECOND_VERSION.as_bytes());
        assert_eq!(
            trace.records,
            [
                record(0, 0, 0, 4096, Read),
                record(0, 0, 4096, 4096, Write),
                record(1_000_000_000, 1, 8192, 1024, Read),
                record(3_000_000_000, 0, 0, 512, Read),
            ]
        );
        assert_eq!(trace.skipped.other, 1);
        assert_eq!(trace.remarks, [BURSTS, WAITS]);
    }

    #[test]
    fn errors_name_the_line_and_the_column() {
        const ACTIONS: &str = "an action: read, write, trim, sync, datasync, sync_file_range, \
                               syncfs, add, open or close";
        check_refusals(
            Format::FioLog,
            &[
                (
                    "fio version 1 iolog",
                    "t:1:1: expected the line 'fio version 2 iolog' or 'fio version 3 iolog', \
                 found 'fio version 1 iolog'",
                ),
                (
                    "fio version 3 iolog\n/f read 0 512",
                    "t:2:1: expected the time, a whole number of microseconds, found '/f'",
                ),
                (
                    "fio version 3 iolog\n5 /f wait 0 0",
                    &format!("t:2:6: expected {ACTIONS}, found 'wait'"),
                ),
                (
                    "fio version 2 iolog\n/f",
                    &format!("t:2:3: expected {ACTIONS}, found the end of the line"),
                ),
                ("fio version 3 iolog\n5", "t:2:2: expected a file, found the end of the line"),
                (
                    "fio version 2 iolog\n/f wait soon",
                    "t:2:9: expected the end of the wait, a whole number of milliseconds, \
                 found 'soon'",
                ),
                (
                    "fio version 2 iolog\n/f read x 512",
                    "t:2:9: expected the offset, a whole number of bytes, found 'x'",
                ),
                (
                    "fio version 2 iolog\n/f read 0",
                    "t:2:10: expected the length, a whole number of bytes, found the end of the line",
                ),
                (
                    "fio version 2 iolog\n/f read 0 512 9",
                    "t:2:15: expected the end of the line, found '9'",
                ),
                (
                    "fio version 2 iolog\n/f read 0 67108865",
                    "t:2:11: expected a request of at most 64MiB, found '67108865'",
                ),
                (
                    "fio version 3 iolog\n1 /f read 0 512\n18446744073709551615 /f read 0 512",
                    "t:3:1: expected a time within 73 years of the first request's, \
                 found '18446744073709551615'",
                ),
            ],
        );
    }
}
