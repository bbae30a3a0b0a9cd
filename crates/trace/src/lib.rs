//! Block I/O traces: readers of the published formats, their way onto an array, and workloads made
//! up from a seed, over blocks or over files.
//!
//! ```text
//!   bytes --(gzip, zstd)--> lines or records --(one file a format)--> Collector --> Trace
//!                                                                                    |
//!   Workload, seed -----------------> Vec<Arrival> <-- onto_array(Mapping) <---------+
//! ```
//!
//! [`read`] takes any [`std::io::Read`] and a name for messages, opens nothing itself, unpacks gzip
//! and zstd by their magic, and tells the format from the first lines if it is not given. A
//! [`Trace`] keeps what the file said, in bytes and per device; [`onto_array`] lays the devices end
//! to end, widens requests to whole sectors and places them on an array, and reports what it
//! changed. A [`Workload`] makes arrivals from a short description instead: [`Synthetic`], or [`Iraw`].
//!
//! A [`FileWorkload`] makes steps of a program that uses a filesystem, for [`Window`] to pace, and [`FileList`] reads one's own: `docs/workloads.md`.
//!
//! The formats, and what is taken and left of each, are in `docs/traces.md`.
//!
//! # Invariants
//!
//! - T1. No input makes a reader panic, and memory grows with nothing but the number of requests
//!   and devices, each of which has a limit ([`RECORDS_MAX`], [`DEVICES_MAX`]). Comments, blank lines
//!   and skipped operations are read past and take no memory, however many there are.
//! - T2. Records are ordered by time; those that arrive at once keep the file's order.
//! - T3. Every record has 1 to [`LENGTH_MAX`] bytes and ends at or below [`END_MAX`].
//! - T4. What the file holds and the trace does not is counted ([`Skipped`]) or said in
//!   [`Trace::remarks`]; anything else that is not understood is an error that names its place.
//!
//! # What it leaves out
//!
//! Process names and request flags are read past, and so are completion times in formats other than
//! `msr` and `systor17`. A trace is open loop: no request waits for another.

#![forbid(unsafe_code)]

mod answered;
mod collect;
mod detect;
mod error;
mod fields;
mod figures;
mod files;
mod format;
mod formats;
mod iraw;
mod mapping;
mod onto_array;
mod report;
mod source;
mod synthetic;
mod text;
mod trace;
mod workload;

pub use answered::{Answered, Period, periods, recorded};
pub use collect::{DEVICE_NAME_MAX, DEVICES_MAX, END_MAX, LENGTH_MAX, RECORDS_MAX};
pub use error::{Position, TraceError};
pub use figures::Figures;
pub use files::{
    Benchmark, FileId, FileList, FileWorkload, Habit, HiBench, MOVED_MAX, Moved, OPERATIONS_MAX,
    Operation, Stage, Step, Verb, Window, Ycsb,
};
pub use format::{Format, UnknownFormat};
pub use iraw::{Iraw, Published, Server};
pub use mapping::{Arrival, Mapping, MappingError, Placement};
pub use onto_array::onto_array;
pub use report::MappingReport;
pub use source::LINE_MAX;
pub use synthetic::{Synthetic, SyntheticError};
pub use trace::{DeviceSummary, Kind, Record, Skipped, Trace};
pub use workload::Workload;

use std::io::Read;

use collect::Collector;
use source::Source;

/// Reads a whole trace, packed with gzip or zstd or not at all.
///
/// `name` stands for the file in messages. Without a `format`, the first lines or records decide,
/// and [`Trace::format`] says what they were taken for. `progress` is told how many bytes of
/// `source`, packed as they are, have been read so far.
///
/// ```
/// use levelhead_trace::{Format, Mapping, onto_array, read};
/// use levelhead_units::Sectors;
///
/// let text = "11413000 0 657728 16 1\n11565000 1 31244784 64 0\n";
/// let trace = read(text.as_bytes(), "two.trace", None, &mut |_| ())?;
/// assert_eq!(trace.format, Format::Ssdsim);
/// assert_eq!(trace.records.len(), 2);
///
/// let mapping = Mapping::as_recorded(&trace, Sectors::new(1 << 20));
/// let (arrivals, report) = onto_array(&trace, mapping)?;
/// assert_eq!(arrivals[0].extent.sectors, Sectors::new(2));
/// println!("{report}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// The first thing that is not as the format has it, with its place; a limit of this crate; a
/// failure of `source`; and a trace without a single read or write.
pub fn read(
    source: impl Read,
    name: &str,
    format: Option<Format>,
    progress: &mut dyn FnMut(u64),
) -> Result<Trace, TraceError> {
    read_at_most(RECORDS_MAX, source, name, format, progress)
}

/// The same with another limit in the place of [`RECORDS_MAX`].
fn read_at_most(
    records_max: usize,
    source: impl Read,
    name: &str,
    format: Option<Format>,
    progress: &mut dyn FnMut(u64),
) -> Result<Trace, TraceError> {
    let mut source = Source::open(Box::new(source), name, progress)?;
    let format = match format {
        Some(format) => format,
        None => detect::detect(source.head(), source.head_is_all()).ok_or_else(|| {
            TraceError::whole(name, detect::expectation(), detect::impression(source.head()))
        })?,
    };
    let mut into = Collector::new(records_max);
    formats::read(format, &mut source, &mut into)?;
    let skipped = into.skipped();
    into.finish(format).ok_or_else(|| {
        let found = format!(
            "none ({} other operations and {} requests of length zero)",
            skipped.other, skipped.zero_length
        );
        TraceError::whole(name, format!("at least one read or write in {format} format"), found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(format: Format, bytes: &[u8], records_max: usize) -> String {
        let read = read_at_most(records_max, bytes, "t", Some(format), &mut |_| ());
        read.unwrap_err().to_string()
    }

    #[test]
    fn request_past_the_limit_is_named_in_every_format() {
        for format in Format::ALL {
            let bytes = formats::sample(format);
            let all = read(&*bytes, "t", Some(format), &mut |_| ()).unwrap();
            let count = all.records.len();
            let exactly = read_at_most(count, &*bytes, "t", Some(format), &mut |_| ());
            assert_eq!(exactly.unwrap(), all, "{format}");
            let error = error_of(format, &bytes, count - 1);
            let limit = format!(": expected at most {} requests, found one more", count - 1);
            assert!(error.ends_with(&limit), "{format}: {error}");
        }
    }

    #[test]
    fn limit_counts_the_requests_that_are_kept_and_names_the_line() {
        let kept = "5 0 0 8 1\n";
        let skipped = "# a comment\n\n5 0 0 0 1\n".repeat(9);
        let text = [kept, &skipped, kept, kept].concat();
        assert!(read_at_most(3, text.as_bytes(), "t", None, &mut |_| ()).is_ok());
        let error = error_of(Format::Ssdsim, text.as_bytes(), 2);
        assert_eq!(error, "t:30:1: expected at most 2 requests, found one more");
    }

    #[test]
    fn issued_requests_that_arrivals_replace_are_not_counted() {
        let line = |action| format!("8,0 3 1 0.0 697 {action} R 8 + 8 [cat]\n");
        let text = [line("D").repeat(2), line("Q").repeat(2)].concat();
        let read =
            |max| read_at_most(max, text.as_bytes(), "t", Some(Format::Blkparse), &mut |_| ());
        assert_eq!(read(2).unwrap().records.len(), 2);
        let error = read(1).unwrap_err().to_string();
        assert_eq!(error, "t:2:1: expected at most 1 requests, found one more");
    }
}
