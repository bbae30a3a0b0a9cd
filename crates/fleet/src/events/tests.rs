//! The pass against the slow obvious version, and summaries merged in many ways.

use std::collections::BTreeMap;

use levelhead_stats::{Rng, Streams, median_of};

use super::*;
use crate::Hours;

#[derive(Clone, Copy)]
struct Row {
    hour: i32,
    raid: i32,
    drive: i32,
    latency: f32,
    ios: i32,
}

#[derive(Clone, Copy)]
struct Happened {
    hour: i32,
    drive: i32,
    kind: EventKind,
}

struct Fleet {
    rows: Vec<Row>,
    events: Vec<Happened>,
}

/// Three groups of 3 to 6 drives with many slow hours, missing hours, idle drives, and events at random, some twice in a row. Hours run
/// long enough for spans that are too long to be counted.
fn fleet_of(seed: u64) -> Fleet {
    let mut rng = Streams::new(seed).stream("fleet");
    let widths: Vec<i32> = (0..3).map(|_| 3 + rng.below(4) as i32).collect();
    let calm = 1 + rng.below(40);
    let mut fleet = Fleet { rows: Vec::new(), events: Vec::new() };
    for hour in 0..400 {
        for (raid, &width) in widths.iter().enumerate() {
            let raid = raid as i32;
            let is_there = rng.below(8) > 0;
            for drive in raid * 10..raid * 10 + width {
                if is_there && rng.below(12) > 0 {
                    let latency = latency_of(&mut rng, calm);
                    let ios = i32::from(rng.below(9) > 0);
                    fleet.rows.push(Row { hour, raid, drive, latency, ios });
                }
            }
        }
        if rng.below(4) == 0 {
            let raid = rng.below(3) as i32;
            let drive = raid * 10 + rng.below(widths[raid as usize] as u64) as i32;
            let kind = if rng.below(2) == 0 { EventKind::Unplug } else { EventKind::Replug };
            fleet.events.push(Happened { hour, drive, kind });
            if rng.below(6) == 0 {
                fleet.events.push(Happened { hour, drive, kind: EventKind::Replug });
            }
        }
    }
    fleet
}

fn latency_of(rng: &mut Rng, calm: u64) -> f32 {
    match rng.below(4 + calm) {
        0 => 170.0,
        1 => 300.0,
        2 => [450.0, 900.0, 3000.0][rng.below(3) as usize],
        3 => [0.0, f32::NAN][rng.below(2) as usize],
        _ => 100.0 + rng.below(30) as f32,
    }
}

fn pass(fleet: &Fleet, slices: usize) -> EventsSummary {
    let mut kernel = EventsKernel::new(1);
    let mut table = EventsTable::default();
    for event in &fleet.events {
        table.push(event.hour, event.drive, event.kind);
    }
    kernel.handle_events(&table).expect("sorted");
    for part in fleet.rows.chunks(slices) {
        let column = |value: fn(&Row) -> i32| part.iter().map(value).collect::<Vec<_>>();
        let (hour, raid, drive, ios) =
            (column(|r| r.hour), column(|r| r.raid), column(|r| r.drive), column(|r| r.ios));
        let latency: Vec<f32> = part.iter().map(|r| r.latency).collect();
        let hours = Hours {
            hour: &hour,
            raid: &raid,
            drive: &drive,
            latency_us: &latency,
            ios: &ios,
            bytes: &[],
            age_hours: &[],
            model: &[],
            models: &[],
        };
        kernel.handle_hours(hours).expect("sorted");
    }
    kernel.finish()
}

/// Spans as a list: the hours of each, `None` for one that has not ended.
#[derive(Default)]
struct Naive {
    waits: BTreeMap<Severity, Vec<Option<i32>>>,
    recurrences: Vec<Option<i32>>,
    absences: Vec<Option<i32>>,
}

fn naive(fleet: &Fleet) -> Naive {
    let mut groups: BTreeMap<(i32, i32), Vec<Row>> = BTreeMap::new();
    for row in fleet.rows.iter().filter(|row| row.latency > 0.0 && row.ios > 0) {
        groups.entry((row.hour, row.raid)).or_default().push(*row);
    }
    let mut drives: BTreeMap<i32, BTreeMap<i32, f64>> = BTreeMap::new();
    for members in groups.values().filter(|members| members.len() >= 3) {
        let latency = |row: &Row| f64::from(row.latency);
        let median = median_of(&mut members.iter().map(latency).collect::<Vec<_>>());
        for row in members {
            drives.entry(row.drive).or_default().insert(row.hour, latency(row) / median);
        }
    }
    let mut found = Naive::default();
    for (drive, hours) in &drives {
        for (&hour, &now) in hours {
            let before = hours.get(&(hour - 1)).copied().unwrap_or(1.0);
            if (now >= 1.5 && before < 1.5) || (now >= 2.0 && before < 2.0) {
                let unplug = fleet.events.iter().find(|event| {
                    event.drive == *drive && event.hour >= hour && event.kind == EventKind::Unplug
                });
                let severity = Severity::of(now).expect("an onset");
                let wait = unplug.map(|unplug| unplug.hour - hour);
                found.waits.entry(severity).or_default().push(wait);
            }
        }
    }
    for (at, event) in fleet.events.iter().enumerate() {
        match event.kind {
            EventKind::Unplug => {
                let next = fleet.events[at + 1..].iter().find(|next| next.drive == event.drive);
                let replug = next.filter(|next| next.kind == EventKind::Replug);
                found.absences.push(replug.map(|replug| replug.hour - event.hour));
            }
            EventKind::Replug => {
                let hours = drives.get(&event.drive);
                let slow = hours.and_then(|hours| {
                    hours.iter().find(|(hour, value)| **hour > event.hour && **value >= 2.0)
                });
                found.recurrences.push(slow.map(|(hour, _)| hour - event.hour));
            }
        }
    }
    found
}

fn assert_same(spans: &Spans, naive: &[Option<i32>], what: &str) {
    assert_eq!(spans.begun(), naive.len() as u64, "{what}");
    for within in [0, 1, 2, 5, 24, 100, 239, 240] {
        let count = naive.iter().flatten().filter(|hours| **hours <= within).count();
        assert_eq!(spans.ended_within(within as u32), count as u64, "{what} within {within}");
    }
}

#[test]
fn the_pass_equals_the_slow_obvious_version_however_rows_are_cut() {
    for seed in 0..30 {
        let fleet = fleet_of(seed);
        let whole = pass(&fleet, fleet.rows.len());
        let naive = naive(&fleet);
        for severity in Severity::ALL {
            let waits = naive.waits.get(&severity).map_or(&[][..], Vec::as_slice);
            assert_same(&whole.waits(severity), waits, &format!("seed {seed}, {severity:?}"));
        }
        let slow: Vec<_> = naive.waits.iter().filter(|(severity, _)| severity.is_slow()).collect();
        let slow: Vec<_> = slow.into_iter().flat_map(|(_, waits)| waits.clone()).collect();
        assert_same(&whole.slow_waits(), &slow, &format!("seed {seed}, slow"));
        assert_same(whole.recurrences(), &naive.recurrences, &format!("seed {seed}, recurrences"));
        assert_same(whole.absences(), &naive.absences, &format!("seed {seed}, absences"));
        for slices in [1, 7, 64] {
            assert_eq!(pass(&fleet, slices), whole, "seed {seed}, slices of {slices}");
        }
    }
}

#[test]
fn parts_of_time_and_of_groups_merge_to_one_pass() {
    for seed in 0..30 {
        let fleet = fleet_of(seed);
        let whole = pass(&fleet, 100);
        let mut rng = Streams::new(seed).stream("cuts");
        let (first, second) = (1 + rng.below(100) as i32, 101 + rng.below(298) as i32);
        let part = |keep: &dyn Fn(i32, i32) -> bool| {
            let rows = fleet.rows.iter().copied().filter(|row| keep(row.hour, row.raid));
            let events = fleet.events.iter().copied();
            let events = events.filter(|event| keep(event.hour, event.drive / 10));
            pass(&Fleet { rows: rows.collect(), events: events.collect() }, 50)
        };
        let times = [
            part(&|hour, _| hour < first),
            part(&|hour, _| (first..second).contains(&hour)),
            part(&|hour, _| hour >= second),
        ];
        for order in [[0, 1, 2], [1, 0, 2], [1, 2, 0], [2, 1, 0]] {
            let mut merged = EventsSummary::new();
            order.iter().for_each(|&at| merged.merge(&times[at]).expect("neighbours"));
            assert_eq!(merged, whole, "seed {seed}, order {order:?}");
        }
        let mut merged = part(&|_, raid| raid == 1);
        merged.merge(&part(&|_, raid| raid != 1)).expect("other groups");
        assert_eq!(merged, whole, "seed {seed}, by group");
        assert!(merged.merge(&whole).is_err());
        assert_eq!(merged, whole);
    }
}

#[test]
fn rows_and_events_out_of_order_are_refused() {
    let hours = |hour: &[i32], drive: &[i32]| {
        let mut kernel = EventsKernel::new(1);
        kernel.handle_hours(Hours {
            hour,
            raid: &[1, 1],
            drive,
            latency_us: &[1.0; 2],
            ios: &[1; 2],
            bytes: &[],
            age_hours: &[],
            model: &[],
            models: &[],
        })?;
        let mut events = EventsTable::default();
        events.push(4, 1, EventKind::Unplug);
        kernel.handle_events(&events)
    };
    assert!(hours(&[4, 4], &[1, 2]).is_ok());
    assert!(matches!(hours(&[4, 4], &[2, 2]), Err(EventsError::Rows(_))));
    assert!(matches!(hours(&[4, 3], &[1, 1]), Err(EventsError::Rows(_))));
    assert_eq!(hours(&[4, 5], &[1, 1]), Err(EventsError::Late { hour: 4, drive: 1 }));
}
