//! Names of groups and drives beside an hours table: `fleet.parquet` has them in `fleet.names.csv`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use levelhead_units::foreign;

use levelhead_app::{AppError, files};

/// The longest line that is read.
const LINE_MAX: u64 = 1 << 16;

/// A drive by its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DriveNo {
    pub(super) raid: i32,
    pub(super) drive: i32,
}

/// What a group and its drive are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DriveName {
    pub(super) raid: String,
    pub(super) drive: String,
}

/// Where the names of an hours table's drives are.
pub(super) fn names_place(table: &Path) -> PathBuf {
    table.with_extension("names.csv")
}

/// The names of the `wanted` drives, from the files beside `tables`. A table without such a file has numbers alone, and one that begins
/// in another way is somebody else's.
///
/// # Errors
///
/// A file that cannot be read or has another form further down, and two that call a drive differently: their tables number drives
/// differently, and cannot be counted together.
pub(super) fn names_of(
    tables: &[PathBuf],
    wanted: &BTreeSet<DriveNo>,
) -> Result<BTreeMap<DriveNo, DriveName>, AppError> {
    let mut names = BTreeMap::new();
    for place in tables.iter().map(|table| names_place(table)).filter(|place| place.is_file()) {
        read(&place, wanted, &mut names)?;
    }
    Ok(names)
}

/// The first line of such a file.
pub(super) const HEADER: &str = "raid,drive,raid_name,drive_name";

fn read(
    place: &Path,
    wanted: &BTreeSet<DriveNo>,
    names: &mut BTreeMap<DriveNo, DriveName>,
) -> Result<(), AppError> {
    let mut file = BufReader::new(files::open(place)?);
    for number in 1_u64.. {
        let wrong = |what: &str| AppError::usage(format!("{}:{number}: {what}", place.display()));
        let mut line = String::new();
        let read = file.by_ref().take(LINE_MAX).read_line(&mut line);
        if read.map_err(|error| wrong(&error.to_string()))? == 0 {
            break;
        }
        if number == 1 {
            if line.trim_end() == HEADER {
                continue;
            }
            // Somebody else's file.
            return Ok(());
        }
        let (no, name) = parsed(line.trim_end())
            .ok_or_else(|| wrong("expected raid,drive,\"raid_name\",\"drive_name\""))?;
        if wanted.contains(&no) && *names.entry(no).or_insert_with(|| name.clone()) != name {
            let DriveNo { raid, drive } = no;
            return Err(wrong(&format!(
                "drive {drive} of group {raid} has another name beside another table"
            )));
        }
    }
    Ok(())
}

/// A line as `import` writes it.
fn parsed(line: &str) -> Option<(DriveNo, DriveName)> {
    let (raid, rest) = line.split_once(',')?;
    let (drive, rest) = rest.split_once(',')?;
    let (raid_name, drive_name) = rest.strip_prefix('"')?.strip_suffix('"')?.split_once("\",\"")?;
    let no = DriveNo { raid: raid.parse().ok()?, drive: drive.parse().ok()? };
    Some((no, DriveName { raid: foreign(raid_name), drive: foreign(drive_name) }))
}
