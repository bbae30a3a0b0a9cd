//! What a trace file said.

use levelhead_units::{Bytes, Nanos, Sectors};

use crate::Format;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Fetches bytes.
    Read,
    /// Stores bytes.
    Write,
}

/// One request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it arrived, counted from the earliest request of the trace.
    pub at: Nanos,
    /// The device it went to: an index into [`Trace::devices`].
    pub device: u32,
    /// The first byte, counted from the start of the device.
    pub offset: u64,
    /// How many bytes: at least 1, at most [`LENGTH_MAX`](crate::LENGTH_MAX).
    pub length: Bytes,
    /// What it does.
    pub kind: Kind,
}

/// One device of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSummary {
    /// Its name in the file, such as `8,0` or `hm.0`.
    pub name: String,
    /// The highest end of a request on it, rounded up to whole sectors: all that a trace tells of
    /// a device's size.
    pub sectors_end: Sectors,
    /// How many requests it got.
    pub requests: u64,
}

/// What a file held beside the requests taken from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Operations that neither read nor write: flushes, discards, inquiries, or of unknown type.
    pub other: u64,
    /// Reads and writes of no bytes at all.
    pub zero_length: u64,
}

/// A whole trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The format it was read as.
    pub format: Format,
    /// The requests, ordered by time.
    pub records: Vec<Record>,
    /// How long the answer of each record took; empty where the format does not say so, or not of every
    /// request.
    pub responses: Vec<Nanos>,
    /// The devices, in the order in which the file names them.
    pub devices: Vec<DeviceSummary>,
    /// What was left out.
    pub skipped: Skipped,
    /// How many requests stood in the file after one that arrived later. They have been sorted in.
    pub out_of_order: u64,
    /// How the file was read where its format leaves a choice.
    pub remarks: Vec<&'static str>,
}

impl Trace {
    /// The size of all devices laid end to end.
    pub fn sectors(&self) -> Sectors {
        self.devices.iter().map(|device| device.sectors_end).sum()
    }

    /// The time from the first request to the last.
    pub fn span(&self) -> Nanos {
        self.records.last().map_or(Nanos::ZERO, |record| record.at)
    }
}
