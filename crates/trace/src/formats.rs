//! One reader for each format.

pub(crate) mod blkparse;
mod fio;
pub(crate) mod msr;
mod msr_cut;
mod spc;
mod ssdsim;
pub(crate) mod systor17;
pub(crate) mod vscsi1;

use crate::collect::Collector;
use crate::error::TraceError;
use crate::format::Format;
use crate::source::Source;

/// Bytes of the sectors that formats other than ours count in.
const SMALL_SECTOR: u64 = 512;

const SECOND: u32 = 1_000_000_000;
const MILLISECOND: u32 = 1_000_000;

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
