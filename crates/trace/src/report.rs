//! What became of a trace on its way onto an array.

use std::fmt;

use levelhead_units::{Bytes, Nanos, Ratio, Sectors};

use crate::mapping::Placed;
use crate::{DeviceSummary, Figures, Format, Mapping, Placement, Skipped, Trace, text};

/// What became of a trace on its way onto an array. Its text is a few lines.
#[derive(Clone, Debug, PartialEq)]
pub struct MappingReport {
    /// The format of the trace.
    pub format: Format,
    /// The requests as the file has them.
    pub figures: Figures,
    /// The devices, in the order in which they were laid end to end.
    pub devices: Vec<DeviceSummary>,
    /// The size of all devices together.
    pub trace_sectors: Sectors,
    /// What the file held beside its requests.
    pub skipped: Skipped,
    /// How many requests the file had out of order.
    pub out_of_order: u64,
    /// How the file was read where its format leaves a choice.
    pub remarks: Vec<&'static str>,
    /// How many requests did not begin and end with a sector.
    pub widened: u64,
    /// The bytes that widening added.
    pub bytes_added: Bytes,
    /// The bytes of all requests, before widening.
    pub bytes: Bytes,
    /// The size of the array.
    pub array_sectors: Sectors,
    /// How addresses got onto the array.
    pub placement: Placement,
    /// How many requests were moved down to end with the array.
    pub moved: u64,
    /// By what the times were divided.
    pub rate: f64,
    /// The time from the first arrival to the last, after that.
    pub span: Nanos,
}

/// How many devices are named in the text.
const NAMED_MAX: usize = 6;

impl MappingReport {
    /// A report of nothing placed yet.
    pub(crate) fn new(trace: &Trace, mapping: Mapping) -> Self {
        Self {
            format: trace.format,
            figures: trace.figures(),
            devices: trace.devices.clone(),
            trace_sectors: trace.sectors(),
            skipped: trace.skipped,
            out_of_order: trace.out_of_order,
            remarks: trace.remarks.clone(),
            widened: 0,
            bytes_added: Bytes::new(0),
            bytes: Bytes::new(0),
            array_sectors: mapping.array_sectors,
            placement: mapping.placement,
            moved: 0,
            rate: mapping.rate,
            span: Nanos::ZERO,
        }
    }

    /// Counts a request of `length` that touches `sectors` sectors.
    pub(crate) fn widen(&mut self, length: Bytes, sectors: Sectors) {
        let added = sectors.bytes().get() - length.get();
        self.widened += u64::from(added > 0);
        self.bytes_added = Bytes::new(self.bytes_added.get() + added);
        self.bytes = Bytes::new(self.bytes.get() + length.get());
    }

    /// Counts where a request that arrives `since_start` went. Calls are in the order of time.
    pub(crate) fn place(&mut self, placed: Placed, since_start: Nanos) {
        self.moved += u64::from(placed.moved);
        self.span = since_start;
    }

    /// By how much addresses were multiplied: 1 unless they were scaled.
    pub fn factor(&self) -> f64 {
        match self.placement {
            Placement::Wrap => 1.0,
            Placement::Scale => {
                self.array_sectors.get() as f64 / self.trace_sectors.get().max(1) as f64
            }
        }
    }

    fn write_devices(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.devices.len();
        write!(f, "devices: {count}, {} end to end:", text::sectors(self.trace_sectors))?;
        for device in self.devices.iter().take(NAMED_MAX) {
            write!(f, " {} ({})", device.name, text::sectors(device.sectors_end))?;
        }
        match count.saturating_sub(NAMED_MAX) {
            0 => writeln!(f),
            more => writeln!(f, " and {more} more"),
        }
    }

    fn write_placement(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let array = text::sectors(self.array_sectors);
        let fits = self.trace_sectors <= self.array_sectors;
        match (self.placement, fits) {
            (Placement::Wrap, true) => {
                write!(f, "placed: as recorded, within the array's {array}")?;
            }
            (Placement::Wrap, false) => {
                let turns =
                    self.trace_sectors.get() as f64 / self.array_sectors.get().max(1) as f64;
                write!(
                    f,
                    "placed: wrapped {} times around the array's {array}",
                    levelhead_units::short(turns)
                )?;
            }
            (Placement::Scale, _) => {
                write!(f, "placed: scaled by {:.4} onto the array's {array}", self.factor())?;
            }
        }
        match self.moved {
            0 => writeln!(f),
            moved => writeln!(f, "; {moved} requests moved down from its end"),
        }
    }
}

impl fmt::Display for MappingReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures { requests, reads, span, interval_mean, .. } = self.figures;
        writeln!(
            f,
            "trace: {}, {requests} requests in {}, one every {}, {} reads",
            self.format,
            text::time(span),
            text::time(interval_mean),
            text::share(reads)
        )?;
        let [mean, p50, p99] =
            [self.figures.size_mean, self.figures.size_p50, self.figures.size_p99]
                .map(Bytes::short);
        writeln!(f, "sizes: mean {mean}, p50 {p50}, p99 {p99}")?;
        self.write_devices(f)?;
        if self.skipped != Skipped::default() {
            let Skipped { other, zero_length } = self.skipped;
            writeln!(f, "skipped: {other} neither reads nor writes, {zero_length} of no bytes")?;
        }
        if self.out_of_order > 0 {
            writeln!(f, "sorted: {} requests stood out of order", self.out_of_order)?;
        }
        for remark in &self.remarks {
            writeln!(f, "remark: {remark}")?;
        }
        let all = self.bytes.get() + self.bytes_added.get();
        writeln!(
            f,
            "widened: {} of {requests} requests to whole sectors, {} added ({} of all bytes)",
            self.widened,
            self.bytes_added.short(),
            text::share(Ratio::of(self.bytes_added.get(), all))
        )?;
        self.write_placement(f)?;
        write!(f, "rate: {} times as recorded, {} in all", self.rate, text::time(self.span))
    }
}

#[cfg(test)]
mod tests {
    use crate::formats::{sample, testing::read_as};
    use crate::{Format, Mapping, Placement, onto_array};
    use levelhead_units::Sectors;

    fn text(format: Format, mapping: impl FnOnce(Mapping) -> Mapping) -> String {
        let trace = read_as(format, &sample(format));
        let mapping = mapping(Mapping::as_recorded(&trace, Sectors::new(1 << 28)));
        onto_array(&trace, mapping).unwrap().1.to_string()
    }

    #[test]
    fn the_report_says_all_that_was_changed() {
        let scaled = "\
trace: vscsi, 4 requests in 1s, one every 334ms, 50.0% reads
sizes: mean 11.1KiB, p50 4KiB, p99 36KiB
devices: 1, 512TiB end to end: disk (512TiB)
skipped: 1 neither reads nor writes, 1 of no bytes
sorted: 1 requests stood out of order
widened: 2 of 4 requests to whole sectors, 7.5KiB added (14.4% of all bytes)
placed: scaled by 0.0020 onto the array's 1TiB
rate: 2 times as recorded, 500ms in all";
        assert_eq!(text(Format::Vscsi1, |m| Mapping { rate: 2.0, ..m }), scaled);

        let as_recorded = "\
trace: spc, 3 requests in 26.2ms, one every 13.1ms, 33.3% reads
sizes: mean 4.83KiB, p50 3.5KiB, p99 8KiB
devices: 2, 175MiB end to end: 0 (148MiB) 1 (27.1MiB)
widened: 3 of 3 requests to whole sectors, 13.5KiB added (48.2% of all bytes)
placed: as recorded, within the array's 1TiB
rate: 1 times as recorded, 26.2ms in all";
        assert_eq!(text(Format::Spc, |m| m), as_recorded);
    }

    #[test]
    fn wrapping_and_moving_are_said() {
        let wrapped = text(Format::Spc, |mapping| Mapping {
            array_sectors: Sectors::new(3),
            placement: Placement::Wrap,
            ..mapping
        });
        let line = wrapped.lines().find(|line| line.starts_with("placed")).unwrap();
        assert!(line.starts_with("placed: wrapped 14966 times around the array's 12KiB"), "{line}");
        assert!(line.ends_with("; 1 requests moved down from its end"), "{line}");
    }

    #[test]
    fn many_devices_are_counted_and_not_all_named() {
        let lines: String = (0..9).map(|device| format!("0 {device} 0 8 1\n")).collect();
        let trace = read_as(Format::Ssdsim, lines.as_bytes());
        let mapping = Mapping::as_recorded(&trace, Sectors::new(9));
        let text = onto_array(&trace, mapping).unwrap().1.to_string();
        assert!(text.contains("5 (4KiB) and 3 more\n"), "{text}");
    }
}
