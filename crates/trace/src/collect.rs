//! Where every reader puts its requests: limits, devices, order.

use std::collections::BTreeMap;

use levelhead_units::{Bytes, Nanos, Sectors, foreign};

use crate::{DeviceSummary, Format, Kind, Record, Skipped, Trace};

/// The most requests one trace may have. Reading one of them and putting it onto an array takes up to
/// 72 bytes, and each policy that serves it 48 more.
pub const RECORDS_MAX: usize = 1 << 24;

/// The most devices one trace may have.
pub const DEVICES_MAX: usize = 4096;

/// The most bytes a device's name may have.
pub const DEVICE_NAME_MAX: usize = 255;

/// The longest request. Longer ones are taken for a misread file.
pub const LENGTH_MAX: Bytes = Bytes::new(64 << 20);

/// The highest end of a request on its device.
pub const END_MAX: Bytes = Bytes::new(1 << 60);

// All devices end to end must be countable in sectors with room to spare, and any end in u64.
const _: () = assert!((END_MAX.get() / 4096).checked_mul(DEVICES_MAX as u64).is_some());
const _: () = assert!(END_MAX.get().checked_add(LENGTH_MAX.get()).is_some());
const _: () = assert!(DEVICES_MAX <= u32::MAX as usize);

/// How far times may lie from the first request's, either way: 73 years.
const REACH: i128 = 1 << 61;

/// A request as a reader hands it over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    /// Nanoseconds from whatever the file counts from.
    pub(crate) at: u128,
    pub(crate) device: &'a [u8],
    /// In bytes; readers that multiply saturate.
    pub(crate) offset: u64,
    /// In bytes; readers that multiply saturate.
    pub(crate) length: u64,
    pub(crate) kind: Kind,
}

/// A part of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// None of its own: there are too many requests.
    Count,
    At,
    Device,
    Offset,
    Length,
}

/// A request that is beyond a limit.
#[derive(Debug)]
pub(crate) struct Refused {
    /// The part that is.
    pub(crate) part: Part,
    /// What it should have been.
    pub(crate) expected: String,
}

/// What was found of a request more than a trace may have.
pub(crate) const ONE_MORE: &str = "one more";

/// A trace in the making.
#[derive(Debug)]
pub(crate) struct Collector {
    /// The most requests it takes.
    records_max: usize,
    /// Until [`Collector::finish`], `at` counts from [`REACH`] before the first request.
    records: Vec<Record>,
    /// How long each record's answer took, as far as the file says so.
    responses: Vec<Nanos>,
    devices: Devices,
    skipped: Skipped,
    /// The file's time of the first request.
    origin: Option<u128>,
    /// The highest `at` so far.
    latest: Nanos,
    out_of_order: u64,
    remarks: Vec<&'static str>,
}

impl Collector {
    /// A trace without requests, which takes at most `records_max`.
    pub(crate) fn new(records_max: usize) -> Self {
        Self {
            records_max,
            records: Vec::new(),
            responses: Vec::new(),
            devices: Devices::default(),
            skipped: Skipped::default(),
            origin: None,
            latest: Nanos::ZERO,
            out_of_order: 0,
            remarks: Vec::new(),
        }
    }

    /// Forgets all it was given.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.records_max);
    }

    /// Takes a request, or counts it if it has no bytes.
    pub(crate) fn add(&mut self, request: Request<'_>) -> Result<(), Refused> {
        let refuse = |part, expected| Err(Refused { part, expected });
        if request.length == 0 {
            self.skipped.zero_length += 1;
            return Ok(());
        }
        if request.length > LENGTH_MAX.get() {
            return refuse(Part::Length, format!("a request of at most {LENGTH_MAX}"));
        }
        let end = request.offset.saturating_add(request.length);
        if end > END_MAX.get() {
            return refuse(Part::Offset, format!("a request that ends within {END_MAX}"));
        }
        let Some(at) = self.since_origin(request.at) else {
            return refuse(Part::At, "a time within 73 years of the first request's".to_owned());
        };
        if self.records.len() == self.records_max {
            return refuse(Part::Count, format!("at most {} requests", self.records_max));
        }
        if request.device.len() > DEVICE_NAME_MAX {
            let expected = format!("a device name of at most {DEVICE_NAME_MAX} bytes");
            return refuse(Part::Device, expected);
        }
        let Some(device) = self.devices.number(request.device) else {
            return refuse(Part::Device, format!("at most {DEVICES_MAX} devices"));
        };
        let summary = &mut self.devices.summaries[device as usize];
        summary.sectors_end = summary.sectors_end.max(Bytes::new(end).sectors_ceil());
        summary.requests += 1;
        self.out_of_order += u64::from(at < self.latest);
        self.latest = self.latest.max(at);
        let (offset, length) = (request.offset, Bytes::new(request.length));
        self.records.push(Record { at, device, offset, length, kind: request.kind });
        Ok(())
    }

    /// Takes a request, and how long its answer took if the file says so.
    pub(crate) fn add_answered(
        &mut self,
        request: Request<'_>,
        response: Option<Nanos>,
    ) -> Result<(), Refused> {
        let before = self.records.len();
        self.add(request)?;
        // One that has none, or none that can be, leaves fewer of them than records.
        if self.records.len() > before
            && let Some(response) = response.filter(|response| *response <= RESPONSE_MAX)
        {
            self.responses.push(response);
        }
        Ok(())
    }

    /// Counts an operation that neither reads nor writes.
    pub(crate) fn skip_other(&mut self) {
        self.skipped.other += 1;
    }

    /// Says how the file is read, once.
    pub(crate) fn remark(&mut self, remark: &'static str) {
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    /// What was left out so far.
    pub(crate) fn skipped(&self) -> Skipped {
        self.skipped
    }

    /// The trace, unless there is no request at all.
    pub(crate) fn finish(mut self, format: Format) -> Option<Trace> {
        if self.responses.len() != self.records.len() {
            self.responses = Vec::new();
        }
        if self.out_of_order > 0 {
            self.sort();
        }
        let earliest = self.records.first()?.at;
        for record in &mut self.records {
            record.at = record.at - earliest;
        }
        Some(Trace {
            format,
            records: self.records,
            responses: self.responses,
            devices: self.devices.summaries,
            skipped: self.skipped,
            out_of_order: self.out_of_order,
            remarks: self.remarks,
        })
    }

    /// Orders the records by time, and those that arrive at once as the file has them (T2).
    fn sort(&mut self) {
        if self.responses.is_empty() {
            self.records.sort_by_key(|record| record.at);
            return;
        }
        let mut order: Vec<u32> = (0..self.records.len() as u32).collect();
        order.sort_unstable_by_key(|&from| (self.records[from as usize].at, from));
        // Each place gets what `order` says, round by round of the permutation.
        for start in 0..order.len() {
            let mut at = start;
            loop {
                let from = order[at] as usize;
                order[at] = at as u32;
                if from == start {
                    break;
                }
                self.records.swap(at, from);
                self.responses.swap(at, from);
                at = from;
            }
        }
    }

    /// `at` counted from [`REACH`] before the first request, if it lies within reach.
    fn since_origin(&mut self, at: u128) -> Option<Nanos> {
        let origin = *self.origin.get_or_insert(at);
        let distance = i128::try_from(at).ok()?.checked_sub(i128::try_from(origin).ok()?)?;
        let shifted = distance.checked_add(REACH)?;
        (0..=2 * REACH).contains(&shifted).then(|| Nanos::new(shifted as u64))
    }
}

/// The longest time that an answer may have taken: as far as times may lie apart.
const RESPONSE_MAX: Nanos = Nanos::new(REACH as u64);

const _: () = assert!(3 * REACH <= u64::MAX as i128);
const _: () = assert!(RECORDS_MAX <= u32::MAX as usize);

/// Names of devices to dense numbers.
#[derive(Debug, Default)]
struct Devices {
    numbers: BTreeMap<Box<[u8]>, u32>,
    summaries: Vec<DeviceSummary>,
    /// The device asked for last: most traces stay with one for a while.
    last: Option<u32>,
    /// The names as the file has them, by number.
    names: Vec<Box<[u8]>>,
}

impl Devices {
    /// The number of the device of this name, a new one if it has none, unless there are too many.
    fn number(&mut self, name: &[u8]) -> Option<u32> {
        if let Some(last) = self.last
            && *self.names[last as usize] == *name
        {
            return Some(last);
        }
        let number = match self.numbers.get(name) {
            Some(number) => *number,
            None => self.insert(name)?,
        };
        self.last = Some(number);
        Some(number)
    }

    fn insert(&mut self, name: &[u8]) -> Option<u32> {
        if self.names.len() == DEVICES_MAX {
            return None;
        }
        let number = self.names.len() as u32;
        self.numbers.insert(name.into(), number);
        self.names.push(name.into());
        let name = foreign(&String::from_utf8_lossy(name));
        self.summaries.push(DeviceSummary { name, sectors_end: Sectors::ZERO, requests: 0 });
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Request<'static> =
        Request { at: 0, device: b"a", offset: 0, length: 512, kind: Kind::Read };

    fn refusal(collector: &mut Collector, request: Request<'_>) -> (Part, String) {
        let refused = collector.add(request).unwrap_err();
        (refused.part, refused.expected)
    }

    #[test]
    fn late_lines_are_sorted_in_and_counted() {
        let mut collector = Collector::new(RECORDS_MAX);
        for (at, offset) in [(50, 1), (20, 2), (50, 3), (60, 4), (20, 5)] {
            collector.add(Request { at, offset, ..READ }).unwrap();
        }
        let trace = collector.finish(Format::Msr).unwrap();
        let order: Vec<(u64, u64)> =
            trace.records.iter().map(|record| (record.at.get(), record.offset)).collect();
        assert_eq!(order, [(0, 2), (0, 5), (30, 1), (30, 3), (40, 4)]);
        assert_eq!(trace.out_of_order, 2);
    }

    #[test]
    fn answers_stay_with_their_requests_when_those_are_sorted() {
        let times = [50, 20, 50, 60, 20, 10, 90, 10];
        let mut collector = Collector::new(RECORDS_MAX);
        for (line, at) in times.into_iter().enumerate() {
            let request = Request { at, offset: line as u64, ..READ };
            collector.add_answered(request, Some(Nanos::new(100 + line as u64))).unwrap();
        }
        collector.add_answered(Request { length: 0, ..READ }, None).unwrap();
        let trace = collector.finish(Format::Msr).unwrap();
        let lines: Vec<u64> = trace.records.iter().map(|record| record.offset).collect();
        assert_eq!(lines, [5, 7, 1, 4, 0, 2, 3, 6]);
        let answers: Vec<u64> = trace.responses.iter().map(|time| time.get() - 100).collect();
        assert_eq!(answers, lines);
    }

    #[test]
    fn answers_that_are_not_all_there_are_none() {
        for missing in [None, Some(Nanos::new(u64::MAX))] {
            let mut collector = Collector::new(RECORDS_MAX);
            for response in [Some(Nanos::new(1)), missing, Some(Nanos::new(2))] {
                collector.add_answered(READ, response).unwrap();
            }
            let trace = collector.finish(Format::Msr).unwrap();
            assert_eq!((trace.records.len(), trace.responses.len()), (3, 0));
        }
    }

    #[test]
    fn devices_are_numbered_as_they_come() {
        let mut collector = Collector::new(RECORDS_MAX);
        for (device, offset) in [(b"b", 4096), (b"a", 0), (b"b", 4097), (b"a", 100)] {
            collector.add(Request { device, offset, ..READ }).unwrap();
        }
        let trace = collector.finish(Format::Spc).unwrap();
        assert_eq!(trace.records.iter().map(|r| r.device).collect::<Vec<_>>(), [0, 1, 0, 1]);
        let device = |name: &str, sectors| DeviceSummary {
            name: name.to_owned(),
            sectors_end: Sectors::new(sectors),
            requests: 2,
        };
        assert_eq!(trace.devices, [device("b", 2), device("a", 1)]);
        assert_eq!(trace.sectors(), Sectors::new(3));
    }

    #[test]
    fn limits_are_named() {
        let mut c = Collector::new(RECORDS_MAX);
        c.add(Request { at: 1 << 70, ..READ }).unwrap();
        c.add(Request { at: 1 << 70, length: 64 << 20, offset: (1 << 60) - (64 << 20), ..READ })
            .unwrap();
        let (part, text) = refusal(&mut c, Request { length: (64 << 20) + 1, ..READ });
        assert_eq!((part, &*text), (Part::Length, "a request of at most 64MiB"));
        let (part, text) = refusal(&mut c, Request { offset: (1 << 60) - 511, ..READ });
        assert_eq!((part, &*text), (Part::Offset, "a request that ends within 1048576TiB"));
        for at in [0, (1 << 70) + (1 << 61) + 1, u128::MAX] {
            let (part, text) = refusal(&mut c, Request { at, ..READ });
            assert_eq!((part, &*text), (Part::At, "a time within 73 years of the first request's"));
        }
        let (part, text) = refusal(&mut c, Request { at: 1 << 70, device: &[b'x'; 256], ..READ });
        assert_eq!((part, &*text), (Part::Device, "a device name of at most 255 bytes"));
        for device in 1..DEVICES_MAX {
            let device = device.to_string();
            c.add(Request { at: 1 << 70, device: device.as_bytes(), ..READ }).unwrap();
        }
        let (part, text) = refusal(&mut c, Request { at: 1 << 70, device: b"one more", ..READ });
        assert_eq!((part, &*text), (Part::Device, "at most 4096 devices"));
    }

    #[test]
    fn requests_without_bytes_are_counted_and_no_device() {
        let mut collector = Collector::new(RECORDS_MAX);
        collector.add(Request { length: 0, ..READ }).unwrap();
        collector.skip_other();
        assert_eq!(collector.skipped(), Skipped { other: 1, zero_length: 1 });
        assert_eq!(collector.finish(Format::Spc), None);
    }

    #[test]
    fn names_of_devices_are_fit_to_print() {
        let shown = |device: &'static [u8]| {
            let mut collector = Collector::new(RECORDS_MAX);
            collector.add(Request { device, ..READ }).unwrap();
            collector.finish(Format::Spc).expect("a record").devices[0].name.clone()
        };
        assert_eq!(shown(b"\x1b[2Jsda"), "\\x1b[2Jsda");
        assert_eq!(shown(br"\\.\PhysicalDrive0"), r"\\.\PhysicalDrive0");
    }
}
