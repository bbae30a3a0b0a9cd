//! The oracle's tables, as they are given.

use levelhead_testkit::shared;
use levelhead_units::Instant;

use crate::mechanics::Arm;

/// What DiskSim did with one request. Times in milliseconds, as in its output.
pub(super) struct Row {
    pub(super) arrival: Instant,
    pub(super) block: u64,
    pub(super) blocks: u64,
    pub(super) is_read: bool,
    pub(super) start: f64,
    pub(super) end: f64,
    /// The length of the first seek, in cylinders, and its time.
    pub(super) seek_cylinders: u32,
    pub(super) seek: f64,
    pub(super) latency: f64,
    pub(super) from: Arm,
    pub(super) from_angle: f64,
    pub(super) place: (u32, u32, u32),
    /// The angle of the first block, in revolutions.
    pub(super) angle: f64,
    pub(super) order: usize,
}

/// One request of a trace of a real drive. Times in milliseconds.
pub(super) struct Traced {
    pub(super) is_read: bool,
    pub(super) block: u64,
    pub(super) blocks: u64,
    /// What the real drive took.
    pub(super) measured: f64,
    /// From its end to the next request.
    pub(super) gap: f64,
    /// What DiskSim says that the drive would take.
    pub(super) disksim: f64,
}

fn table<T>(name: &str, row: impl Fn(&[&str]) -> T) -> Option<Vec<T>> {
    let path = shared(&format!("disksim/{name}"))?;
    let text = std::fs::read_to_string(path).unwrap();
    let columns = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let rows: Vec<T> = columns.map(|columns| row(&columns)).collect();
    assert!(rows.len() >= 3_000, "{name} has {} rows", rows.len());
    Some(rows)
}

fn number<T: std::str::FromStr<Err: std::fmt::Debug>>(columns: &[&str], at: usize) -> T {
    columns[at].parse().unwrap()
}

pub(super) fn rows(name: &str) -> Option<Vec<Row>> {
    table(name, |row| Row {
        arrival: Instant::from_nanos((number::<f64>(row, 1) * 1e6).round() as u64),
        block: number(row, 2),
        blocks: number(row, 3),
        is_read: row[4] == "1",
        start: number(row, 5),
        end: number(row, 6),
        seek_cylinders: number(row, 9),
        seek: number(row, 10),
        latency: number(row, 11),
        from: Arm { cylinder: number(row, 13), head: number(row, 14) },
        from_angle: number(row, 15),
        place: (number(row, 16), number(row, 17), number(row, 18)),
        angle: number(row, 19),
        order: number(row, 21),
    })
}

pub(super) fn traced(name: &str) -> Option<Vec<Traced>> {
    table(name, |row| Traced {
        is_read: row[1] == "R",
        block: number(row, 3),
        blocks: number(row, 4),
        measured: number(row, 5),
        gap: number(row, 6),
        disksim: number(row, 7),
    })
}
