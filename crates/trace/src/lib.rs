//! Block I/O traces: readers of the published formats, their way onto an array, and workloads made
//! up from a seed.
//!
//! ```text
//!   bytes --(gzip, zstd)--> lines or records --(one file a format)--> Collector --> Trace
//!                                                                                    |
//!   Synthetic, seed ----------------> Vec<Arrival> <-- onto_array(Mapping) <---------+
//! ```
//!
//! [`read`] takes any [`std::io::Read`] and a name for messages, opens nothing itself, unpacks gzip
//! and zstd by their magic, and tells the format from the first lines if it is not given. A
//! [`Trace`] keeps what the file said, in bytes and per device; [`onto_array`] lays the devices end
//! to end, widens requests to whole sectors and places them on an array, and reports what it
//! changed. [`Synthetic`] makes arrivals from a short description instead.
//!
//! The formats, and what is taken and left of each, are in `docs/traces.md`.
//!
//! # Invariants
//!
//! - T1. No input makes a reader panic, and memory grows with nothing but the number of requests
//!   and devices, each of which has a limit ([`RECORDS_MAX`], [`DEVICES_MAX`]).
//! - T2. Records are ordered by time; those that arrive at once keep the file's order.
//! - T3. Every record has 1 to [`LENGTH_MAX`] bytes and ends at or below [`END_MAX`].
//! - T4. What the file holds and the trace does not is counted ([`Skipped`]) or said in
//!   [`Trace::remarks`]; anything else that is not understood is an error that names its place.
//!
//! # What it leaves out
//!
//! Completion times, process names and request flags are read past. A trace is open loop: no
//! request waits for another.

#![forbid(unsafe_code)]

mod collect;
mod detect;
mod error;
mod fields;
mod figures;
mod formats;
mod mapping;
mod report;
mod source;
mod synthetic;
mod text;
mod trace;

pub use collect::{DEVICE_NAME_MAX, DEVICES_MAX, END_MAX, LENGTH_MAX, RECORDS_MAX};
pub use error::{Place, TraceError};
pub use figures::Figures;
pub use formats::{Format, UnknownFormat};
pub use mapping::{Arrival, Mapping, MappingError, Placement, onto_array};
pub use report::MappingReport;
pub use source::LINE_MAX;
pub use synthetic::{Synthetic, SyntheticError};
pub use trace::{DeviceSummary, Kind, Record, Skipped, Trace};

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
    let mut source = Source::open(Box::new(source), name, progress)?;
    let format = match format {
        Some(format) => format,
        None => detect::detect(source.head(), source.head_is_all()).ok_or_else(|| {
            TraceError::whole(name, detect::expectation(), detect::impression(source.head()))
        })?,
    };
    let mut into = Collector::default();
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
