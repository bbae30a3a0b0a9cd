//! The formats, and one reader each.

pub(crate) mod blkparse;
mod fio;
pub(crate) mod msr;
mod msr_cut;
mod spc;
mod ssdsim;
pub(crate) mod systor17;
pub(crate) mod vscsi1;

use std::fmt;
use std::str::FromStr;

use crate::TraceError;
use crate::collect::Collector;
use crate::source::Source;

/// Bytes of the sectors that formats other than ours count in.
const SMALL_SECTOR: u64 = 512;

const SECOND: u32 = 1_000_000_000;
const MILLISECOND: u32 = 1_000_000;

/// How a trace is written down. `docs/traces.md` has the details.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// MSR Cambridge: `filetime,host,disk,Read|Write,offset,size,response`.
    Msr,
    /// MSR Cambridge as cut up for replayers: `milliseconds device offset size 0|1`.
    MsrCut,
    /// MQSim and SSDsim, after DiskSim's ASCII: `nanoseconds device sector sectors 0|1`.
    Ssdsim,
    /// CloudPhysics vscsi, version 1: binary records of 32 bytes.
    Vscsi1,
    /// Storage Performance Council: `unit,sector,size,R|W,seconds`.
    Spc,
    /// SYSTOR '17: `seconds,response,R|W,LUN,offset,size`.
    Systor17,
    /// The text of `blkparse` in its default form.
    Blkparse,
    /// fio's own log, version 2 or 3.
    FioLog,
}

/// Every name a format goes by, the first of each being the one that is printed.
const NAMES: [(&str, Format); 10] = [
    ("msr", Format::Msr),
    ("msr-cut", Format::MsrCut),
    ("mqsim", Format::Ssdsim),
    ("ssdsim", Format::Ssdsim),
    ("disksim", Format::Ssdsim),
    ("vscsi", Format::Vscsi1),
    ("spc", Format::Spc),
    ("systor17", Format::Systor17),
    ("blkparse", Format::Blkparse),
    ("fio", Format::FioLog),
];

impl Format {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Msr,
        Self::MsrCut,
        Self::Ssdsim,
        Self::Vscsi1,
        Self::Spc,
        Self::Systor17,
        Self::Blkparse,
        Self::FioLog,
    ];
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(_, format)| format == self);
        f.pad(name.expect("every format has a name").0)
    }
}

/// A text that names no format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFormat(String);

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
        write!(f, "'{}' is no trace format: expected {}", self.0, names.join(", "))
    }
}

impl std::error::Error for UnknownFormat {}

impl FromStr for Format {
    type Err = UnknownFormat;
    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        let named = NAMES.iter().find(|(name, _)| *name == text);
        named.map(|(_, format)| *format).ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

/// Reads all of `source` as `format`.
pub(crate) fn read(
    format: Format,
    source: &mut Source<'_>,
    into: &mut Collector,
) -> Result<(), TraceError> {
    match format {
        Format::Msr => source.read_lines(&mut msr::Reader::default(), into),
        Format::MsrCut => source.read_lines(&mut msr_cut::Reader, into),
        Format::Ssdsim => source.read_lines(&mut ssdsim::Reader, into),
        Format::Vscsi1 => vscsi1::read(source, into),
        Format::Spc => source.read_lines(&mut spc::Reader, into),
        Format::Systor17 => source.read_lines(&mut systor17::Reader::default(), into),
        Format::Blkparse => source.read_lines(&mut blkparse::Reader::default(), into),
        Format::FioLog => source.read_lines(&mut fio::Reader::default(), into),
    }
}

/// A short trace in `format`.
#[cfg(test)]
pub(crate) fn sample(format: Format) -> Vec<u8> {
    match format {
        Format::Msr => msr::tests::SAMPLE.into(),
        Format::MsrCut => msr_cut::tests::SAMPLE.into(),
        Format::Ssdsim => ssdsim::tests::SAMPLE.into(),
        Format::Vscsi1 => vscsi1::tests::sample(),
        Format::Spc => spc::tests::SAMPLE.into(),
        Format::Systor17 => systor17::tests::SAMPLE.into(),
        Format::Blkparse => blkparse::tests::SAMPLE.into(),
        Format::FioLog => fio::tests::SAMPLE.into(),
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::{Kind, Record, Trace};
    use levelhead_units::{Bytes, Nanos};

    /// A record, with times in nanoseconds and sizes in bytes.
    pub(crate) fn record(at: u64, device: u32, offset: u64, length: u64, kind: Kind) -> Record {
        Record { at: Nanos::new(at), device, offset, length: Bytes::new(length), kind }
    }

    pub(crate) fn read_as(format: Format, bytes: &[u8]) -> Trace {
        match crate::read(bytes, "t", Some(format), &mut |_| ()) {
            Ok(trace) => trace,
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) fn devices(trace: &Trace) -> Vec<(&str, u64)> {
        trace.devices.iter().map(|d| (&*d.name, d.sectors_end.get())).collect()
    }

    /// Every text, as `format`, is refused with the message beside it.
    pub(crate) fn check_refusals(format: Format, refusals: &[(&str, &str)]) {
        for (text, message) in refusals {
            match crate::read(text.as_bytes(), "t", Some(format), &mut |_| ()) {
                Ok(trace) => panic!("{text:?} gives {:?}", trace.records),
                Err(error) => assert_eq!(error.to_string(), *message, "{text:?}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_aliases_mean_the_same() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        for alias in ["mqsim", "ssdsim", "disksim"] {
            assert_eq!(alias.parse(), Ok(Format::Ssdsim));
        }
        let error = "csv".parse::<Format>().unwrap_err().to_string();
        let names = "msr, msr-cut, mqsim, ssdsim, disksim, vscsi, spc, systor17, blkparse, fio";
        assert_eq!(error, format!("'csv' is no trace format: expected {names}"));
    }
}
