//! Groups in windows of five minutes, written as hours or as samples.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use levelhead_fleet::HoursTable;
use levelhead_fleet::detect::{Gather, Recording, WINDOW};
use levelhead_fleet_io::hours::HoursWriter;
use levelhead_fleet_io::samples::{self as fleet_samples, HEADER, Load};

use super::ImportedFleet;
use super::hours::write_names;
use crate::names::names_place;
use levelhead_app::{AppError, Progress, files};

const HOUR: i64 = 3600;

/// What the windows of one drive and hour add up to.
#[derive(Clone, Copy, Default)]
struct Sum {
    latency_us: f64,
    load: f64,
    windows: u32,
}

/// Writes hours: latency is the mean over windows. Loads in requests make the hour's count of them; of loads in bytes the count is that of
/// windows, and the size the load, so that an imbalance of size is one of throughput.
pub(super) fn write_hours(
    groups: &[Recording],
    load: Load,
    out: &Path,
    progress: &dyn Progress,
) -> Result<ImportedFleet, AppError> {
    let mut sums: BTreeMap<Place, Sum> = BTreeMap::new();
    let mut named = Vec::new();
    let task = progress.begin("groups", groups.len() as u64);
    for (raid, group) in groups.iter().enumerate() {
        let first = named.len();
        let raid = raid as i32;
        named.extend(group.drives.iter().enumerate().map(|(at, drive)| {
            levelhead_fleet_io::hours::Named {
                drive: (first + at) as i32,
                raid,
                raid_name: group.group.clone(),
                drive_name: drive.clone(),
            }
        }));
        for window in &group.windows {
            let hour = window.at.div_euclid(HOUR) as i32;
            for (at, reading) in window.members.iter().enumerate() {
                let Some(reading) = reading else { continue };
                let sum = sums.entry(Place { hour, raid, drive: (first + at) as i32 }).or_default();
                sum.latency_us += reading.latency_us;
                sum.load += reading.load;
                sum.windows += 1;
            }
        }
        task.reach(raid as u64 + 1);
    }
    let mut table = HoursTable::default();
    for (place, sum) in &sums {
        let windows = f64::from(sum.windows);
        table.hour.push(place.hour);
        table.raid.push(place.raid);
        table.drive.push(place.drive);
        table.latency_us.push((sum.latency_us / windows) as f32);
        table.ios.push(match load {
            Load::Requests => (sum.load * WINDOW as f64).round() as i32,
            Load::Bytes => sum.windows as i32,
        });
        table.bytes.push(match load {
            Load::Requests => f32::NAN,
            Load::Bytes => (sum.load / windows) as f32,
        });
    }
    files::write_whole(out, |file| {
        let mut writer = HoursWriter::begin(file)?;
        writer.write(&table)?;
        writer.finish()
    })?;
    let names = names_place(out);
    write_names(&names, &named)?;
    let (rows, drives) = (table.len() as u64, named.len());
    let names = Some(names);
    Ok(ImportedFleet { file: out.into(), rows, groups: groups.len(), drives, strangers: 0, names })
}

/// Where a row stands, in the order of a table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    hour: i32,
    raid: i32,
    drive: i32,
}

/// Writes samples: one a drive and window.
pub(super) fn write_samples(
    groups: &[Recording],
    out: &Path,
    progress: &dyn Progress,
) -> Result<ImportedFleet, AppError> {
    let names = groups.iter().flat_map(|group| group.drives.iter().chain([&group.group]));
    if let Some(name) = names.into_iter().find(|name| name.contains([',', '"', '\n', '\r'])) {
        return Err(AppError::usage(format!("the name '{name}' cannot be written in CSV")));
    }
    let (mut rows, mut drives) = (0, 0);
    let task = progress.begin("groups", groups.len() as u64);
    files::write_whole(out, |file| {
        writeln!(file, "{HEADER}")?;
        for (done, group) in groups.iter().enumerate() {
            drives += group.drives.len();
            fleet_samples::write_samples(file, group)?;
            let readings = group.windows.iter().flat_map(|window| &window.members);
            rows += readings.flatten().count() as u64;
            task.reach(done as u64 + 1);
        }
        io::Result::Ok(())
    })?;
    let groups = groups.len();
    Ok(ImportedFleet { file: out.into(), rows, groups, drives, strangers: 0, names: None })
}

/// The most time that a record spans keeps hours within 32 bits.
const _: () = assert!(Gather::TIMES.1 / HOUR <= i32::MAX as i64);
