//! Whatever bytes come, a reader ends with a trace that holds its promises or with an error.

use std::io::Read;

use levelhead_trace::{
    END_MAX, Format, LENGTH_MAX, Mapping, Placement, Position, Synthetic, Workload, onto_array,
    read,
};
use levelhead_units::Sectors;
use proptest::prelude::*;

/// A trace in each format, to be damaged.
fn sample(format: Format) -> Vec<u8> {
    let text = match format {
        Format::Msr => {
            "128166372003061629,hm,0,Read,383496192,32768,413\n\
             128166372016382155,usr,1,Write,2822144,4096,1105\n"
        }
        Format::MsrCut => "0.000 0 200626176 4096 0\n223.412 1 3159347200 36864 1\n",
        Format::Ssdsim => "11413000 0 657728 16 1\n11565000 1 31244784 64 0\n",
        Format::Vscsi1 => {
            let mut records = vec![0; 96];
            for (idx, record) in records.chunks_exact_mut(32).enumerate() {
                record[5] = 16;
                record[12] = [0x28, 0x2A, 0x88][idx];
                record[15] = 1;
                record[25] = idx as u8;
            }
            return records;
        }
        Format::Spc => "0,303567,3584,w,0.000000\n1,55590,3072,R,0.026214\n",
        Format::Systor17 => {
            "Timestamp,Response,IOType,LUN,Offset,Size\n\
             1456135200.013118000,0.000806000,R,4,899056122368,131072\n\
             1456135200.013119000,,W,0,4096,512\n"
        }
        Format::Blkparse => {
            "  8,0    3        1     0.000000000   697  D   W 223480 + 8 [kjournald]\n\
             \u{20} 8,16   3        3     0.000100500   697  Q  RA 2095 + 8 [cat]\n\
             CPU0 (8,0):\n"
        }
        Format::FioLog => {
            "fio version 2 iolog\n/dev/sda add\n/dev/sda read 61440 4096\n\
             /dev/sda wait 1000 0\n/dev/sdb write 774144 4096\n"
        }
    };
    text.into()
}

/// Reads `bytes` and checks what the crate promises of a trace, of an error, and of the way onto
/// an array.
fn check(bytes: &[u8], format: Option<Format>) {
    let mut told = 0;
    let result = read(bytes, "t", format, &mut |bytes| {
        assert!(told <= bytes);
        told = bytes;
    });
    assert!(told <= bytes.len() as u64);
    let trace = match result {
        Ok(trace) => trace,
        Err(error) => {
            assert!(error.to_string().starts_with("t"), "{error}");
            if let Position::Line { line, column } = error.position {
                assert!(line >= 1 && column >= 1, "{error}");
            }
            return;
        }
    };
    assert!(format.is_none_or(|format| trace.format == format));
    assert!(trace.records.is_sorted_by_key(|record| record.at));
    assert_eq!(trace.records[0].at.get(), 0);
    for record in &trace.records {
        let end = record.offset + record.length.get();
        assert!(record.length.get() > 0 && record.length <= LENGTH_MAX && end <= END_MAX.get());
        let device = &trace.devices[record.device as usize];
        assert!(end <= device.sectors_end.bytes().get());
    }
    let requests: u64 = trace.devices.iter().map(|device| device.requests).sum();
    assert_eq!(requests, trace.records.len() as u64);
    for array_sectors in [1, 3, 1000, 1 << 40].map(Sectors::new) {
        for placement in [Placement::Scale, Placement::Wrap] {
            for rate in [0.5, 1.0, 1e6] {
                let mapping = Mapping { array_sectors, placement, rate };
                if let Ok((arrivals, report)) = onto_array(&trace, mapping) {
                    assert!(arrivals.iter().all(|arrival| arrival.extent.fits(array_sectors)));
                    assert!(arrivals.is_sorted_by_key(|arrival| arrival.at));
                    assert!(!report.to_string().is_empty());
                }
            }
        }
    }
}

fn any_format() -> impl Strategy<Value = Format> {
    proptest::sample::select(Format::ALL.as_slice())
}

/// Pieces that lines are made of, some of them beyond every limit.
fn any_piece() -> impl Strategy<Value = Vec<u8>> {
    const KNOWN: &[&str] = &[
        "0",
        "1",
        "8,0",
        "0.5",
        "18446744073709551615",
        "18446744073709551616",
        "67108865",
        "-1",
        "1e9",
        "99999999999999999999999.999",
        "Read",
        "Write",
        "R",
        "W",
        "Q",
        "D",
        "+",
        "read",
        "wait",
        "add",
        "sync",
        "/dev/sda",
        "fio version 2 iolog\n",
        "fio version 3 iolog\n",
        "#",
        "CPU0",
        "Timestamp,Hostname",
        ",",
        ",",
        ",",
        " ",
        " ",
        " ",
        "\n",
        "\n",
        "\r\n",
        "\0",
        ".",
    ];
    prop_oneof![
        9 => proptest::sample::select(KNOWN).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..8),
    ]
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    let mut encoder = flate2::bufread::GzEncoder::new(bytes, flate2::Compression::fast());
    encoder.read_to_end(&mut packed).expect("packing memory into memory");
    packed
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        format in any_format(),
    ) {
        check(&bytes, Some(format));
        check(&bytes, None);
    }

    #[test]
    fn arbitrary_lines_of_known_pieces_never_panic(
        pieces in proptest::collection::vec(any_piece(), 0..60),
        format in any_format(),
    ) {
        let bytes = pieces.concat();
        check(&bytes, Some(format));
        check(&bytes, None);
    }

    #[test]
    fn damaged_traces_never_panic(
        format in any_format(),
        read_as in any_format(),
        cuts in proptest::collection::vec((any::<u16>(), 0_usize..4, any_piece()), 0..6),
    ) {
        let mut bytes = sample(format);
        for (at, removed, piece) in cuts {
            let at = usize::from(at) % (bytes.len() + 1);
            let end = (at + removed).min(bytes.len());
            bytes.splice(at..end, piece);
        }
        check(&bytes, Some(format));
        check(&bytes, Some(read_as));
        check(&bytes, None);
    }

    #[test]
    fn damaged_records_never_panic(
        changes in proptest::collection::vec((0_usize..96, any::<u8>()), 0..12),
        kept in 0_usize..=96,
    ) {
        let mut bytes = sample(Format::Vscsi1);
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        check(&bytes[..kept], Some(Format::Vscsi1));
        check(&bytes[..kept], None);
    }

    #[test]
    fn damaged_packings_never_panic(
        format in any_format(),
        zstd in any::<bool>(),
        changes in proptest::collection::vec((any::<u16>(), any::<u8>()), 0..4),
        kept in any::<u16>(),
    ) {
        let plain = sample(format).repeat(20);
        let mut bytes = if zstd {
            zstd::encode_all(&*plain, 1).expect("packing memory into memory")
        } else {
            gzip(&plain)
        };
        for (at, byte) in changes {
            let at = usize::from(at) % bytes.len();
            bytes[at] = byte;
        }
        bytes.truncate(usize::from(kept) % (4 * bytes.len()));
        check(&bytes, Some(format));
        check(&bytes, None);
    }

    #[test]
    fn arbitrary_servers_never_panic(
        server in "iraw:(web|email|user-acc|code-dev|sas|[a-z]{0,4})",
        rest in "(,length=[0-9]{0,3}(ms|s|min|h|)|,[a-z=,]{0,5}){0,2}",
        sectors in 0_u64..40_000_000,
        seed in any::<u64>(),
    ) {
        // Ten minutes of any of them are enough.
        if let Ok(Workload::Iraw(mut workload)) = (server + &rest).parse::<Workload>() {
            let part = levelhead_units::Nanos::from_secs(600);
            workload.length = Some(workload.length.map_or(part, |length| length.min(part)));
            prop_assert_eq!(workload.to_string().parse(), Ok(workload));
            let (size, streams) = (Sectors::new(sectors), levelhead_stats::Streams::new(seed));
            if let Ok(requests) = workload.answered(size, streams) {
                prop_assert!(!requests.is_empty());
                prop_assert!(requests.iter().all(|one| one.arrival.extent.fits(size)));
                prop_assert!(requests.iter().all(|one| one.departure > one.arrival.at));
                prop_assert!(requests.is_sorted_by_key(|one| one.arrival.at));
            }
        }
    }

    #[test]
    fn arbitrary_workloads_never_panic(
        parts in proptest::collection::vec(
            (
                proptest::sample::select(
                    ["size", "sizes", "interval", "count", "reads", "align", "", "x"].as_slice(),
                ),
                "[0-9]{0,12}(KiB|GiB|TiB|ms|h|ns|%|/4KiB|)",
            ),
            0..5,
        ),
        array_sectors in 0_u64..5000,
        seed in any::<u64>(),
    ) {
        let text: Vec<String> = parts.iter().map(|(key, value)| format!("{key}={value}")).collect();
        if let Ok(mut workload) = text.join(",").parse::<Synthetic>() {
            workload.count = workload.count.min(200);
            let streams = levelhead_stats::Streams::new(seed);
            if let Ok(arrivals) = workload.generate(Sectors::new(array_sectors), streams) {
                prop_assert!(arrivals.iter().all(|a| a.extent.fits(Sectors::new(array_sectors))));
                prop_assert!(arrivals.is_sorted_by_key(|arrival| arrival.at));
            }
        }
    }
}
