//! Hours tables in any order become one that is sorted.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use levelhead_fleet::{HoursTable, MODEL_UNKNOWN};
use levelhead_fleet_io::hours::{Columns, HoursWriter, Ids, Named, TableFile};

use super::ImportedFleet;
use crate::names::{HEADER, names_place};
use levelhead_app::{AppError, Progress, files};

/// The most rows that are sorted at once: 6 GiB of them.
const ROWS_MAX: usize = 200_000_000;
/// Rows that are written at a time.
const ROWS: usize = 1 << 16;

/// Sorts tables into one.
pub(super) fn import(
    paths: &[PathBuf],
    out: &Path,
    progress: &dyn Progress,
) -> Result<ImportedFleet, AppError> {
    let task = progress.begin("rows read", 0);
    let (mut all, mut named) = (Rows::default(), Vec::new());
    let has_texts = paths.len() == 1 && !has_numbers(&paths[0])?;
    for path in paths {
        let mut table = HoursTable::default();
        let ids = if has_texts { Ids::Texts } else { Ids::Numbers };
        let file = TableFile::open(path).map_err(AppError::usage)?;
        let mut rows = file.rows(Columns::All, ids).map_err(AppError::usage)?;
        while rows.next(&mut table).map_err(AppError::usage)? {
            all.add(&table)?;
            task.reach(all.table.len() as u64);
        }
        named = rows.named().to_vec();
    }
    drop(task);
    let table = &all.table;
    if table.is_empty() {
        return Err(AppError::usage("these sources have no rows"));
    }
    let mut order: Vec<u32> = (0..table.len() as u32).collect();
    let key = |row: &u32| {
        let row = *row as usize;
        (table.hour[row], table.raid[row], table.drive[row])
    };
    order.sort_unstable_by_key(key);
    if let Some(pair) = order.windows(2).find(|pair| key(&pair[0]) == key(&pair[1])) {
        let (hour, raid, drive) = key(&pair[0]);
        return Err(AppError::usage(format!(
            "hour {hour} of drive {drive} in group {raid} is there twice"
        )));
    }
    write_sorted(table, &order, out, progress)?;
    let names = (!named.is_empty()).then(|| names_place(out));
    if let Some(names) = &names {
        write_names(names, &named)?;
    }
    let count = |column: &[i32]| column.iter().collect::<BTreeSet<_>>().len();
    Ok(ImportedFleet {
        file: out.into(),
        rows: table.len() as u64,
        groups: count(&table.raid),
        drives: count(&table.drive),
        strangers: 0,
        names,
    })
}

/// Whether the first rows of a table have numbers for groups and drives.
fn has_numbers(path: &Path) -> Result<bool, AppError> {
    let file = TableFile::open(path).map_err(AppError::usage)?;
    let mut rows = file.rows(Columns::Slowdown, Ids::Texts).map_err(AppError::usage)?;
    rows.next(&mut HoursTable::default()).map_err(AppError::usage)?;
    let is_number = |text: &str| text.parse::<i32>().is_ok();
    Ok(rows.named().iter().all(|it| is_number(&it.raid_name) && is_number(&it.drive_name)))
}

/// All rows, their models by one list of names.
#[derive(Default)]
struct Rows {
    table: HoursTable,
}

impl Rows {
    fn add(&mut self, part: &HoursTable) -> Result<(), AppError> {
        let all = &mut self.table;
        if all.len() + part.len() > ROWS_MAX {
            return Err(AppError::usage(format!(
                "at most {ROWS_MAX} rows are sorted at once: import the table in parts"
            )));
        }
        let places: Vec<u16> =
            part.models.iter().map(|name| place_of(&mut all.models, name)).collect();
        let model = |model: &u16| places.get(usize::from(*model)).copied().unwrap_or(MODEL_UNKNOWN);
        let rows = all.len();
        all.hour.extend(&part.hour);
        all.raid.extend(&part.raid);
        all.drive.extend(&part.drive);
        all.latency_us.extend(&part.latency_us);
        all.ios.extend(&part.ios);
        all.bytes.extend(&part.bytes);
        // A table without ages or models beside one with them has none.
        if part.age_hours.is_empty() {
            all.age_hours.resize(rows + part.len(), -1);
        }
        all.age_hours.extend(&part.age_hours);
        if part.model.is_empty() {
            all.model.resize(rows + part.len(), MODEL_UNKNOWN);
        }
        all.model.extend(part.model.iter().map(model));
        Ok(())
    }
}

fn place_of(names: &mut Vec<String>, name: &str) -> u16 {
    let known = names.iter().position(|other| other == name);
    let place = known.unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    });
    u16::try_from(place).unwrap_or(MODEL_UNKNOWN)
}

fn write_sorted(
    table: &HoursTable,
    order: &[u32],
    out: &Path,
    progress: &dyn Progress,
) -> Result<(), AppError> {
    let task = progress.begin("rows written", order.len() as u64);
    files::write_whole(out, |file| {
        let mut writer = HoursWriter::begin(file)?;
        let mut part = HoursTable { models: table.models.clone(), ..HoursTable::default() };
        let mut done = 0;
        for rows in order.chunks(ROWS) {
            part.clear();
            for &row in rows {
                let row = row as usize;
                part.hour.push(table.hour[row]);
                part.raid.push(table.raid[row]);
                part.drive.push(table.drive[row]);
                part.latency_us.push(table.latency_us[row]);
                part.ios.push(table.ios[row]);
                part.bytes.push(table.bytes[row]);
                part.age_hours.push(table.age_hours[row]);
                part.model.push(table.model[row]);
            }
            writer.write(&part)?;
            done += rows.len() as u64;
            task.reach(done);
        }
        writer.finish()
    })
}

/// Writes which number is which drive.
pub(super) fn write_names(place: &Path, named: &[Named]) -> Result<(), AppError> {
    files::write_whole(place, |file| {
        writeln!(file, "{HEADER}")?;
        for Named { drive, raid, raid_name, drive_name } in named {
            writeln!(file, "{raid},{drive},\"{raid_name}\",\"{drive_name}\"")?;
        }
        Ok(())
    })
}
