//! The readers on published traces, where those are at hand: `../shared/data/traces` beside the
//! workspace. Counts, shares and sizes are those that other tools give for the same files.

use std::fs::File;

use levelhead_testkit::shared;
use levelhead_trace::{Figures, Format, Mapping, Placement, Trace, onto_array, read};
use levelhead_units::{Bytes, Nanos, Sectors};

/// The trace of this file name, read without being told its format.
fn trace(name: &str) -> Option<Trace> {
    let file = File::open(shared(&format!("traces/{name}"))?).unwrap();
    let size = file.metadata().expect("a file has a size").len();
    let mut told = 0;
    let trace = read(file, name, None, &mut |bytes| told = bytes);
    assert_eq!(told, size, "{name}");
    Some(trace.unwrap_or_else(|error| panic!("{error}")))
}

/// What a trace should come to: requests, reads, mean, median and 99th percentile of the size in
/// bytes, devices, and the span in milliseconds.
struct Expected {
    format: Format,
    requests: u64,
    reads: u64,
    sizes: [u64; 3],
    devices: usize,
    span_millis: u64,
}

fn check(name: &str, expected: &Expected) {
    let Some(trace) = trace(name) else { return };
    let Figures { requests, reads, span, size_mean, size_p50, size_p99, .. } = trace.figures();
    assert_eq!(trace.format, expected.format, "{name}");
    assert_eq!(requests, expected.requests, "{name}");
    assert_eq!((reads.get() * requests as f64).round() as u64, expected.reads, "{name}");
    assert_eq!([size_mean, size_p50, size_p99].map(Bytes::get), expected.sizes, "{name}");
    assert_eq!(trace.devices.len(), expected.devices, "{name}");
    assert_eq!(span.get() / Nanos::from_millis(1).get(), expected.span_millis, "{name}");
    assert_eq!((trace.skipped.other, trace.skipped.zero_length), (0, 0), "{name}");
    assert_eq!(trace.out_of_order, 0, "{name}");
    check_placements(name, &trace);
}

/// Onto a large and a small array, both ways: everything fits and nothing is lost.
fn check_placements(name: &str, trace: &Trace) {
    for array in [Sectors::new(1 << 30), Sectors::new(5000)] {
        for placement in [Placement::Scale, Placement::Wrap] {
            let mapping = Mapping { array_sectors: array, placement, rate: 3.0 };
            let (arrivals, report) =
                onto_array(trace, mapping).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(arrivals.len(), trace.records.len(), "{name}");
            assert!(arrivals.is_sorted_by_key(|arrival| arrival.at), "{name}");
            assert!(arrivals.iter().all(|arrival| arrival.extent.fits(array)), "{name}");
            let bytes: u64 = arrivals.iter().map(|a| a.extent.sectors.bytes().get()).sum();
            assert_eq!(bytes, report.bytes.get() + report.bytes_added.get(), "{name}");
        }
    }
}

#[test]
fn cloudphysics_sample_is_as_published() {
    check(
        "cloudphysics_w_sample.vscsi.zst",
        &Expected {
            format: Format::Vscsi1,
            requests: 113_872,
            reads: 46_974,
            sizes: [36_936, 53_248, 69_632],
            devices: 1,
            span_millis: 7_200_089,
        },
    );
}

#[test]
fn first_of_financial1_are_as_published() {
    check(
        "umass_financial1_first10k.ssdsim.ascii.zst",
        &Expected {
            format: Format::Ssdsim,
            requests: 10_000,
            reads: 4_077,
            sizes: [5_527, 3_072, 49_152],
            devices: 22,
            span_millis: 259_601,
        },
    );
}

#[test]
fn websearch_cut_is_as_published() {
    check(
        "websearch_small.mqsim.trace.zst",
        &Expected {
            format: Format::Ssdsim,
            requests: 24_783,
            reads: 24_779,
            sizes: [15_418, 8_192, 32_768],
            devices: 6,
            span_millis: 60_055,
        },
    );
}

#[test]
fn msr_windows_are_as_published() {
    check(
        "msr_cut_10k.rw_20_80.105.trace.zst",
        &Expected {
            format: Format::MsrCut,
            requests: 10_000,
            reads: 2_020,
            sizes: [5_481, 4_096, 40_960],
            devices: 1,
            span_millis: 242_904,
        },
    );
    check(
        "msr_cut_10k.rw_40_60.1370.trace.zst",
        &Expected {
            format: Format::MsrCut,
            requests: 10_000,
            reads: 4_054,
            sizes: [4_883, 4_096, 53_248],
            devices: 1,
            span_millis: 85_915,
        },
    );
}
