//! The kernel against the slow obvious version, and summaries merged in many ways.

use std::collections::BTreeMap;

use levelhead_stats::{Rng, Streams, median_of};

use super::*;
use crate::Hours;

const EVERYTHING: Rules = Rules { scope: Scope::Everything, ios_min: 1 };

#[derive(Clone, Copy)]
struct Row {
    hour: i32,
    raid: i32,
    drive: i32,
    latency: f32,
    ios: i32,
    bytes: f32,
}

/// Groups of 2 to 6 drives with many slow hours, missing hours, idle drives and values that are none.
fn rows_of(seed: u64) -> Vec<Row> {
    let mut rng = Streams::new(seed).stream("rows");
    let widths: Vec<i32> = (0..4).map(|_| 2 + rng.below(5) as i32).collect();
    let mut rows = Vec::new();
    for hour in 10..40 {
        for (raid, &width) in widths.iter().enumerate() {
            if rng.below(8) == 0 {
                continue;
            }
            for drive in 0..width {
                if rng.below(12) > 0 {
                    rows.push(row_of(&mut rng, hour, raid as i32, drive));
                }
            }
        }
    }
    rows
}

fn row_of(rng: &mut Rng, hour: i32, raid: i32, drive: i32) -> Row {
    let latency = match rng.below(20) {
        0 => f32::NAN,
        1 => 0.0,
        2..=7 => 300.0,
        _ => 100.0 + rng.below(30) as f32,
    };
    let load = |rng: &mut Rng| if rng.below(6) == 0 { 50 } else { 10 };
    Row { hour, raid, drive: raid * 10 + drive, latency, ios: load(rng), bytes: load(rng) as f32 }
}

fn pass(rows: &[Row], slices: usize) -> Summary {
    let mut kernel = Kernel::new(EVERYTHING);
    for part in rows.chunks(slices.max(1)) {
        let column = |value: fn(&Row) -> i32| part.iter().map(value).collect::<Vec<_>>();
        let (hour, raid, drive, ios) =
            (column(|r| r.hour), column(|r| r.raid), column(|r| r.drive), column(|r| r.ios));
        let latency: Vec<f32> = part.iter().map(|r| r.latency).collect();
        let bytes: Vec<f32> = part.iter().map(|r| r.bytes).collect();
        let ages = column(|r| r.hour * 300);
        let models: Vec<u16> = part.iter().map(|r| (r.drive % 3) as u16).collect();
        let names = ["C", "A", "B"].map(str::to_owned);
        kernel
            .handle(Hours {
                hour: &hour,
                raid: &raid,
                drive: &drive,
                latency_us: &latency,
                ios: &ios,
                bytes: &bytes,
                age_hours: &ages,
                model: &models,
                models: &names,
            })
            .expect("sorted");
    }
    kernel.finish().expect("sorted")
}

/// What the counts mean, row by row.
fn naive(rows: &[Row]) -> (Counts, Vec<u64>, Vec<u64>, Option<f64>) {
    let mut counts = Counts::default();
    let mut groups: BTreeMap<(i32, i32), Vec<Row>> = BTreeMap::new();
    for row in rows {
        if row.latency.is_nan() {
            counts.without_value += 1;
        } else if row.latency == 0.0 {
            counts.idle += 1;
        } else {
            groups.entry((row.hour, row.raid)).or_default().push(*row);
        }
    }
    let mut drives: BTreeMap<i32, BTreeMap<i32, bool>> = BTreeMap::new();
    for members in groups.values() {
        if members.len() < 3 {
            counts.few_peers += members.len() as u64;
            continue;
        }
        let median =
            |value: fn(&Row) -> f64| median_of(&mut members.iter().map(value).collect::<Vec<_>>());
        let (latency, ios, bytes) = (
            median(|r| f64::from(r.latency)),
            median(|r| f64::from(r.ios)),
            median(|r| f64::from(r.bytes)),
        );
        let slowdown = |row: &Row| f64::from(row.latency) / latency;
        counts.raid_hours += 1;
        counts.tail_hours += u64::from(members.iter().any(|row| slowdown(row) >= 2.0));
        counts.raid_hours_mild += u64::from(members.iter().any(|row| slowdown(row) >= 1.2));
        for row in members {
            let is_slow = slowdown(row) >= 2.0;
            let (rate, size) =
                (f64::from(row.ios) / ios >= 2.0, f64::from(row.bytes) / bytes >= 2.0);
            counts.drive_hours += 1;
            counts.slow_drive_hours += u64::from(is_slow);
            counts.drive_hours_mild += u64::from(slowdown(row) >= 1.2);
            counts.rate_imbalanced += u64::from(rate);
            counts.size_imbalanced += u64::from(size);
            counts.slow_rate_imbalanced += u64::from(rate && is_slow);
            counts.slow_size_imbalanced += u64::from(size && is_slow);
            drives.entry(row.drive).or_default().insert(row.hour, is_slow);
        }
    }
    let (mut intervals, mut gaps, mut steps) = (vec![0; 4097], vec![0; 4097], [0_u64; 2]);
    for hours in drives.values() {
        let slow: Vec<i32> =
            hours.iter().filter(|(_, slow)| **slow).map(|(hour, _)| *hour).collect();
        slow.windows(2).for_each(|pair| gaps[(pair[1] - pair[0]) as usize] += 1);
        slow.chunk_by(|a, b| a + 1 == *b).for_each(|run| intervals[run.len()] += 1);
        for next in slow.iter().filter_map(|hour| hours.get(&(hour + 1))) {
            steps[usize::from(*next)] += 1;
        }
    }
    let stay = (steps[0] + steps[1] > 0).then(|| steps[1] as f64 / (steps[0] + steps[1]) as f64);
    (counts, intervals, gaps, stay)
}

#[test]
fn the_kernel_equals_the_slow_obvious_version_however_rows_are_cut() {
    for seed in 0..40 {
        let rows = rows_of(seed);
        let (counts, intervals, gaps, stay) = naive(&rows);
        let whole = pass(&rows, rows.len());
        assert_eq!(whole.counts(), counts, "seed {seed}");
        assert_eq!(whole.intervals(), intervals, "seed {seed}");
        assert_eq!(whole.gaps(), gaps, "seed {seed}");
        assert_eq!(whole.stay(), stay, "seed {seed}");
        let models: Vec<_> = whole.models().iter().map(|model| model.name.as_str()).collect();
        assert_eq!(models, ["A", "B", "C"], "seed {seed}");
        let of_models: u64 = whole.models().iter().map(|model| model.slowdowns.total()).sum();
        assert_eq!(of_models, counts.drive_hours, "seed {seed}");
        for slices in [1, 2, 7, 64] {
            assert_eq!(pass(&rows, slices), whole, "seed {seed}, slices of {slices}");
        }
    }
}

#[test]
fn parts_of_time_and_of_groups_merge_to_the_bytes_of_one_pass() {
    for seed in 0..40 {
        let rows = rows_of(seed);
        let whole = pass(&rows, rows.len()).to_bytes();
        let mut rng = Streams::new(seed).stream("cuts");
        let (first, second) = (11 + rng.below(10) as i32, 22 + rng.below(15) as i32);
        let part = |keep: &dyn Fn(&Row) -> bool| {
            let rows: Vec<Row> = rows.iter().copied().filter(|row| keep(row)).collect();
            Summary::from_bytes(&pass(&rows, 100).to_bytes()).expect("own bytes")
        };
        let times = [
            part(&|r| r.hour < first),
            part(&|r| (first..second).contains(&r.hour)),
            part(&|r| r.hour >= second),
        ];
        for order in [[0, 1, 2], [1, 0, 2], [1, 2, 0], [2, 1, 0]] {
            let mut merged = Summary::new(EVERYTHING);
            order.iter().for_each(|&at| merged.merge(&times[at]).expect("neighbours"));
            assert_eq!(merged.to_bytes(), whole, "seed {seed}, order {order:?}");
        }
        let groups = [part(&|r| r.raid % 2 == 1), part(&|r| r.raid % 2 == 0)];
        let mut merged = groups[0].clone();
        merged.merge(&groups[1]).expect("other groups");
        assert_eq!(merged.to_bytes(), whole, "seed {seed}, by group");
    }
}

#[test]
fn a_part_twice_is_refused_and_changes_nothing() {
    let whole = pass(&rows_of(3), 50);
    let mut merged = whole.clone();
    assert!(matches!(merged.merge(&whole), Err(MergeError::Overlap { .. })));
    assert_eq!(merged, whole);
    let slowdown = Rules { scope: Scope::Slowdown, ..EVERYTHING };
    assert_eq!(merged.merge(&Summary::new(slowdown)), Err(MergeError::Scope));
    assert_eq!(
        merged.merge(&Summary::new(Rules { ios_min: 2, ..EVERYTHING })),
        Err(MergeError::IosMin)
    );
}

#[test]
fn broken_bytes_are_refused_or_have_one_form() {
    let bytes = pass(&rows_of(5), 50).to_bytes();
    for end in 0..bytes.len() {
        assert!(Summary::from_bytes(&bytes[..end]).is_err(), "cut at {end}");
    }
    for at in 0..bytes.len() {
        for flip in [1, 0x80, 0xff] {
            let mut broken = bytes.clone();
            broken[at] ^= flip;
            if let Ok(summary) = Summary::from_bytes(&broken) {
                assert_eq!(summary.to_bytes(), broken, "byte {at}");
                let _ = summary.clone().merge(&summary);
            }
        }
    }
    assert_eq!(Summary::from_bytes(b"parquet"), Err(CodecError::Foreign));
    assert_eq!(Summary::from_bytes(b"LHHS\x09"), Err(CodecError::Version(9)));
}

#[test]
fn rows_out_of_order_and_twice_are_refused() {
    let row = |hour, raid, drive| Row { hour, raid, drive, latency: 1.0, ios: 1, bytes: 1.0 };
    for rows in [
        [row(2, 1, 1), row(1, 1, 1)],
        [row(1, 2, 1), row(1, 1, 1)],
        [row(1, 1, 1), row(1, 1, 1)],
        [row(1, 1, 2), row(1, 1, 1)],
    ] {
        let column = |value: fn(&Row) -> i32| rows.iter().map(value).collect::<Vec<_>>();
        let (hour, raid, drive) = (column(|r| r.hour), column(|r| r.raid), column(|r| r.drive));
        let mut kernel = Kernel::new(EVERYTHING);
        let hours = Hours {
            hour: &hour,
            raid: &raid,
            drive: &drive,
            latency_us: &[1.0; 2],
            ios: &[1; 2],
            bytes: &[1.0; 2],
            age_hours: &[],
            model: &[],
            models: &[],
        };
        assert!(kernel.handle(hours).and_then(|()| kernel.finish().map(|_| ())).is_err());
    }
}

#[test]
fn the_page_of_the_format_has_the_bytes_of_its_example() {
    const PAGE: &str = include_str!("../../../../docs/formats/hours-summary.md");
    let mut kernel = Kernel::new(EVERYTHING);
    let models = ["A".to_owned()];
    kernel
        .handle(Hours {
            hour: &[10, 10, 10, 11, 11, 11],
            raid: &[5; 6],
            drive: &[1, 2, 3, 1, 2, 3],
            latency_us: &[100.0, 100.0, 300.0, 100.0, 100.0, 100.0],
            ios: &[10; 6],
            bytes: &[4096.0; 6],
            age_hours: &[],
            model: &[0; 6],
            models: &models,
        })
        .expect("sorted");
    let bytes = kernel.finish().expect("sorted").to_bytes();
    let lines = bytes.chunks(32).map(|line| {
        let line: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("    {}\n", line.join(" "))
    });
    let example: String = lines.collect();
    assert!(PAGE.ends_with(&example), "the page ends with\n{example}");
    assert!(PAGE.contains("11,264 buckets") && BUCKETS == 11_264);
}

#[test]
fn the_slowest_drives_are_those_with_the_most_slow_hours_in_any_cut() {
    for seed in 0..20 {
        let rows = rows_of(seed);
        let whole = pass(&rows, rows.len());
        let all = whole.slowest(usize::MAX);
        let slow: u64 = all.iter().map(|drive| u64::from(drive.slow_hours)).sum();
        assert_eq!(slow, whole.counts().slow_drive_hours);
        assert_eq!(all.len() as u64, whole.slow_at_least(1));
        for pair in all.windows(2) {
            let key = |drive: &SlowDrive| (drive.slow_hours, drive.slowdown_max);
            assert!(key(&pair[0]) >= key(&pair[1]), "{pair:?}");
        }
        assert!(all.iter().all(|it| it.first_slow <= it.last_slow && it.slow_hours <= it.hours));
        assert_eq!(whole.slowest(3), all[..3]);
        assert!(whole.last_hour() >= all.iter().map(|it| it.last_slow).max());
        let cut = rows.iter().position(|row| row.hour >= 25).unwrap();
        let mut merged = pass(&rows[..cut], 7);
        merged.merge(&pass(&rows[cut..], 5)).unwrap();
        assert_eq!(merged.slowest(usize::MAX), all);
    }
}
