//! From the devices of a trace onto one array.
//!
//! ```text
//!   trace   | device 0     | device 1  | device 2         |     laid end to end, in sectors
//!                    \           \              \
//!   array   |               |        Scale: address * array / trace
//!   array   |               |        Wrap:  address mod array
//! ```
//!
//! # Rules
//!
//! - M1. A request becomes the sectors it touches: its first and last are read or written whole.
//! - M2. A request keeps its length. Where it would cross the array's end it is moved down until it
//!   ends there.
//! - M3. Order and simultaneity stay; times are divided by the rate and rounded to a nanosecond.
//!
//! Scaling keeps what is near near, but stretches or squeezes runs: what was sequential is not any
//! more, unless the factor is 1. Wrapping keeps runs and folds distant places together. A trace
//! that fits loses nothing by wrapping, and that is why it is the default where it fits.

use levelhead_units::{Bytes, Extent, Instant, Lba, Sectors};

use crate::mapping::{Placed, SPAN_MAX_NANOS};
use crate::{Arrival, Mapping, MappingError, MappingReport, Placement, Record, Trace};

/// Puts `trace` onto an array.
///
/// # Errors
///
/// A request longer than the array, or an impossible rate.
pub fn onto_array(
    trace: &Trace,
    mapping: Mapping,
) -> Result<(Vec<Arrival>, MappingReport), MappingError> {
    let rate = mapping.rate;
    let slowest = trace.span().get() as f64 / rate;
    if rate.is_nan() || rate <= 0.0 || slowest.is_nan() || slowest > SPAN_MAX_NANOS {
        return Err(MappingError::Rate { rate });
    }
    let mut starts = Vec::with_capacity(trace.devices.len());
    let mut end = Lba::ZERO;
    for device in &trace.devices {
        starts.push(end);
        end = end + device.sectors_end;
    }
    let mut report = MappingReport::new(trace, mapping);
    let mut arrivals = Vec::with_capacity(trace.records.len());
    for (request, record) in trace.records.iter().enumerate() {
        let touched = touched(record);
        report.widen(record.length, touched.sectors);
        let wanted = starts[record.device as usize] + (touched.lba - Lba::ZERO);
        let Some(placed) = place(wanted, touched.sectors, end - Lba::ZERO, mapping) else {
            return Err(MappingError::TooLong {
                request: request as u64,
                sectors: touched.sectors,
                array_sectors: mapping.array_sectors,
            });
        };
        let at = at(record, rate);
        report.place(placed, at - Instant::ZERO);
        arrivals.push(Arrival { at, kind: record.kind, extent: placed.extent });
    }
    Ok((arrivals, report))
}

/// When a record arrives, at `rate`.
fn at(record: &Record, rate: f64) -> Instant {
    let nanos = record.at.get();
    // Exact where nothing is asked for: beyond 104 days f64 does not hold every nanosecond.
    let unchanged = rate.to_bits() == 1.0_f64.to_bits();
    Instant::from_nanos(if unchanged { nanos } else { (nanos as f64 / rate).round() as u64 })
}

/// The sectors of its device that a record touches (M1).
pub(crate) fn touched(record: &Record) -> Extent {
    let first = Bytes::new(record.offset).sectors_floor();
    let end = Bytes::new(record.offset + record.length.get()).sectors_ceil();
    Extent::new(Lba::ZERO + first, end - first)
}

/// Where a request at `wanted` of a trace of `trace_sectors` goes, unless the array is too small.
fn place(
    wanted: Lba,
    sectors: Sectors,
    trace_sectors: Sectors,
    mapping: Mapping,
) -> Option<Placed> {
    let array = mapping.array_sectors.get();
    let highest = array.checked_sub(sectors.get())?;
    let lba = match mapping.placement {
        Placement::Wrap => wanted.get() % array,
        Placement::Scale => {
            let scaled = u128::from(wanted.get()) * u128::from(array);
            u64::try_from(scaled / u128::from(trace_sectors.get()))
                .expect("a request lies within the trace, so it scales to within the array")
        }
    };
    let extent = Extent::new(Lba::new(lba.min(highest)), sectors);
    Some(Placed { extent, moved: lba > highest })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use crate::formats::testing::read_as;

    /// Device a has 25 sectors, device b 75.
    const TRACE: &str = "\
0 a 0 8 1
1000000 a 196 4 0
2000000 b 1 1 1
3000000 b 592 8 1
3000000 b 400 8 0
";

    fn trace() -> Trace {
        read_as(Format::Ssdsim, TRACE.replace('a', "1").replace('b', "0").as_bytes())
    }

    fn extents(trace: &Trace, mapping: Mapping) -> Vec<(u64, u64)> {
        let (arrivals, _) = onto_array(trace, mapping).unwrap();
        arrivals.iter().map(|a| (a.extent.lba.get(), a.extent.sectors.get())).collect()
    }

    fn mapping(sectors: u64, placement: Placement) -> Mapping {
        Mapping { array_sectors: Sectors::new(sectors), placement, rate: 1.0 }
    }

    #[test]
    fn a_trace_that_fits_keeps_its_addresses_end_to_end() {
        let trace = trace();
        assert_eq!(trace.sectors(), Sectors::new(100));
        let as_recorded = Mapping::as_recorded(&trace, Sectors::new(100));
        assert_eq!(as_recorded, mapping(100, Placement::Wrap));
        let same = [(0, 1), (24, 1), (25, 1), (99, 1), (75, 1)];
        assert_eq!(extents(&trace, as_recorded), same);
        assert_eq!(extents(&trace, mapping(100, Placement::Scale)), same);
        assert_eq!(extents(&trace, mapping(1000, Placement::Wrap)), same);
        let smaller = Mapping::as_recorded(&trace, Sectors::new(99));
        assert_eq!(smaller.placement, Placement::Scale);
    }

    #[test]
    fn scaling_keeps_proportions_and_wrapping_goes_around() {
        let scaled = extents(&trace(), mapping(50, Placement::Scale));
        assert_eq!(scaled, [(0, 1), (12, 1), (12, 1), (49, 1), (37, 1)]);
        let stretched = extents(&trace(), mapping(1000, Placement::Scale));
        assert_eq!(stretched, [(0, 1), (240, 1), (250, 1), (990, 1), (750, 1)]);
        let wrapped = extents(&trace(), mapping(24, Placement::Wrap));
        assert_eq!(wrapped, [(0, 1), (0, 1), (1, 1), (3, 1), (3, 1)]);
    }

    #[test]
    fn requests_are_widened_to_the_sectors_they_touch() {
        // Bytes 3584 to 8704: the end of sector 0, all of sector 1, the start of sector 2.
        let trace = read_as(Format::Ssdsim, b"0 0 7 10 1\n0 0 8 8 1\n0 0 8 9 1\n");
        let (arrivals, report) =
            onto_array(&trace, Mapping::as_recorded(&trace, Sectors::new(9))).unwrap();
        let touched: Vec<_> = arrivals.iter().map(|a| a.extent).collect();
        let extent = |lba, sectors| Extent::new(Lba::new(lba), Sectors::new(sectors));
        assert_eq!(touched, [extent(0, 3), extent(1, 1), extent(1, 2)]);
        assert_eq!(report.widened, 2);
        assert_eq!(report.bytes_added, Bytes::new(3 * 4096 - 5120 + 2 * 4096 - 4608));
    }

    #[test]
    fn requests_that_would_cross_the_end_are_moved_down() {
        let trace = read_as(Format::Ssdsim, b"0 0 0 8 1\n0 0 64 40 0\n");
        for placement in [Placement::Wrap, Placement::Scale] {
            let (arrivals, report) = onto_array(&trace, mapping(10, placement)).unwrap();
            assert_eq!(arrivals[1].extent, Extent::new(Lba::new(5), Sectors::new(5)));
            assert_eq!((report.moved, report.placement), (1, placement));
        }
    }

    #[test]
    fn rates_divide_times() {
        let trace = trace();
        let at = |rate| {
            let mapping = Mapping { rate, ..mapping(100, Placement::Wrap) };
            let (arrivals, report) = onto_array(&trace, mapping).unwrap();
            assert_eq!(report.span, arrivals[4].at - Instant::ZERO);
            arrivals.iter().map(|arrival| arrival.at.as_nanos()).collect::<Vec<_>>()
        };
        assert_eq!(at(1.0), [0, 1_000_000, 2_000_000, 3_000_000, 3_000_000]);
        assert_eq!(at(2.0), [0, 500_000, 1_000_000, 1_500_000, 1_500_000]);
        assert_eq!(at(0.25), [0, 4_000_000, 8_000_000, 12_000_000, 12_000_000]);
        assert_eq!(at(f64::INFINITY), [0; 5]);
    }

    #[test]
    fn impossible_rates_and_arrays_are_refused() {
        let trace = trace();
        for rate in [0.0, -1.0, f64::NAN, 1e-13, f64::NEG_INFINITY] {
            let error = onto_array(&trace, Mapping { rate, ..mapping(100, Placement::Wrap) });
            let text = error.unwrap_err().to_string();
            assert!(text.starts_with(&format!("rate {rate} is not possible")), "{text}");
        }
        let long = read_as(Format::Ssdsim, b"0 0 0 8 1\n0 0 0 9 1\n");
        for placement in [Placement::Wrap, Placement::Scale] {
            let error = onto_array(&long, mapping(1, placement)).unwrap_err();
            let text = "request 1 of the trace touches 8KiB, more than the array has: 4KiB";
            assert_eq!(error.to_string(), text);
            let error = onto_array(&long, mapping(0, placement)).unwrap_err();
            let text = "request 0 of the trace touches 4KiB, more than the array has: 0B";
            assert_eq!(error.to_string(), text);
        }
    }
}
