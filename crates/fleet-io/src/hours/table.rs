//! Hours tables as Parquet.

use std::ops::Range;
use std::path::{Path, PathBuf};

use levelhead_fleet::HoursTable;

use super::columns::{Column, Names};
use super::{Columns, ROWS};
use crate::pages::ParquetFile;
use crate::{ReadError, damage};

/// An hours table in a Parquet file.
pub struct HoursFile {
    path: PathBuf,
    reader: ParquetFile,
}

impl HoursFile {
    /// Opens a table; its columns are looked at when they are read.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or is no Parquet.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let reader = damage::open(path)?;
        Ok(Self { path: path.to_owned(), reader })
    }

    /// How many row groups there are.
    pub fn row_group_count(&self) -> usize {
        self.reader.metadata().num_row_groups()
    }

    /// How many rows there are.
    pub fn row_count(&self) -> u64 {
        self.reader.metadata().file_metadata().num_rows().unsigned_abs()
    }

    /// Whether there is a column of this name.
    pub fn has_column(&self, name: &str) -> bool {
        let schema = self.reader.metadata().file_metadata().schema_descr();
        schema.columns().iter().any(|column| column.path().parts() == [name])
    }

    /// The rows of these row groups; see the module about the ends.
    ///
    /// # Errors
    ///
    /// A file that is damaged.
    pub fn part(
        &self,
        row_groups: Range<usize>,
        columns: Columns,
    ) -> Result<HoursRows<'_>, ReadError> {
        let of_another = damage::guarded(&self.path, || {
            self.last_key_before(row_groups.start).map_err(|why| ReadError::of(&self.path, why))
        })?;
        Ok(HoursRows {
            file: self,
            columns,
            next: row_groups.start,
            end: row_groups.end.min(self.row_group_count()),
            at: Place::Begin { of_another },
            group: None,
            names: Names::default(),
            last: None,
        })
    }

    /// The key of the last row before a row group.
    fn last_key_before(&self, row_group: usize) -> Result<Option<Key>, String> {
        for before in (0..row_group).rev() {
            let group = self.reader.row_group(before);
            let rows = rows_of(before, group.metadata.num_rows())?;
            let Some(skipped) = rows.checked_sub(1) else { continue };
            let value = |name| -> Result<i32, String> {
                let mut column = needed(Column::find(group, name)?, name)?;
                let mut value = Vec::new();
                column.skip(skipped)?;
                column.read_whole(1, &mut value)?;
                Ok(value[0])
            };
            return Ok(Some(Key { hour: value("hour")?, raid: value("raid")? }));
        }
        Ok(None)
    }
}

/// A group's hour.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    hour: i32,
    raid: i32,
}

impl Key {
    fn of(table: &HoursTable, row: usize) -> Self {
        Self { hour: table.hour[row], raid: table.raid[row] }
    }
}

/// Rows of a part, some at a time.
pub struct HoursRows<'a> {
    file: &'a HoursFile,
    columns: Columns,
    /// The next row group, and where the part ends.
    next: usize,
    end: usize,
    at: Place,
    group: Option<Group>,
    names: Names,
    last: Option<Key>,
}

/// Where the reading is.
#[derive(Clone, Copy)]
enum Place {
    /// Before the part's first row: those of a group's hour that began in the part before are that one's.
    Begin {
        of_another: Option<Key>,
    },
    Inside,
    /// Behind its last row group: the rest of the last group's hour.
    Rest,
    End,
}

impl HoursRows<'_> {
    /// Reads the next rows into `table`, in place of those that were there; false at the end.
    ///
    /// # Errors
    ///
    /// A file that is damaged or lacks a column.
    pub fn next(&mut self, table: &mut HoursTable) -> Result<bool, ReadError> {
        let path = &self.file.path;
        damage::guarded(path, || {
            self.read_some(table).map_err(|why| ReadError::of(&self.file.path, why))
        })
    }

    fn read_some(&mut self, table: &mut HoursTable) -> Result<bool, String> {
        loop {
            table.clear();
            if !self.read_rows(table)? {
                self.at = Place::End;
                return Ok(false);
            }
            if let Place::Begin { of_another } = self.at {
                let rows = 0..table.len();
                let theirs =
                    rows.take_while(|&row| Some(Key::of(table, row)) == of_another).count();
                table.remove_first(theirs);
                if table.is_empty() {
                    continue;
                }
                self.at = Place::Inside;
            }
            if matches!(self.at, Place::Rest) {
                let rows = 0..table.len();
                let ours = rows.take_while(|&row| Some(Key::of(table, row)) == self.last).count();
                if ours < table.len() {
                    table.truncate(ours);
                    self.at = Place::End;
                }
                if ours == 0 {
                    return Ok(false);
                }
            }
            self.last = Some(Key::of(table, table.len() - 1));
            table.models.clone_from(&self.names.names);
            return Ok(true);
        }
    }

    /// The next rows of the row group at hand, or of the next one that has rows; false if there are none that may be the part's.
    fn read_rows(&mut self, table: &mut HoursTable) -> Result<bool, String> {
        while self.group.as_ref().is_none_or(|group| group.rows_left == 0) {
            if self.next >= self.end {
                match self.at {
                    Place::Inside => self.at = Place::Rest,
                    Place::Rest => {}
                    // A part all of whose rows are another's has no rest.
                    Place::Begin { .. } | Place::End => return Ok(false),
                }
            }
            if matches!(self.at, Place::End) || self.next == self.file.row_group_count() {
                return Ok(false);
            }
            self.group = Some(Group::open(&self.file.reader, self.next, self.columns)?);
            self.next += 1;
        }
        let group = self.group.as_mut().expect("the loop has opened one");
        group.read(table, &mut self.names)?;
        Ok(!matches!(self.at, Place::End))
    }
}

/// A row group that is being read.
struct Group {
    rows_left: usize,
    hour: Column,
    raid: Column,
    drive: Column,
    latency_us: Column,
    ios: Column,
    bytes: Option<Column>,
    age_hours: Option<Column>,
    model: Option<Column>,
}

impl Group {
    fn open(reader: &ParquetFile, number: usize, columns: Columns) -> Result<Self, String> {
        let group = reader.row_group(number);
        let rows_left = rows_of(number, group.metadata.num_rows())?;
        let find = |name| Column::find(group, name);
        let need = |name| needed(find(name)?, name);
        let is_all = columns == Columns::All;
        Ok(Self {
            rows_left,
            hour: need("hour")?,
            raid: need("raid")?,
            drive: need("drive")?,
            latency_us: need("latency_us")?,
            ios: need("ios")?,
            bytes: if is_all { Some(need("bytes")?) } else { None },
            age_hours: if is_all { find("age_hours")? } else { None },
            model: if is_all { find("model")? } else { None },
        })
    }

    fn read(&mut self, table: &mut HoursTable, names: &mut Names) -> Result<(), String> {
        let rows = self.rows_left.min(ROWS);
        self.hour.read_whole(rows, &mut table.hour)?;
        self.raid.read_whole(rows, &mut table.raid)?;
        self.drive.read_whole(rows, &mut table.drive)?;
        self.latency_us.read_real(rows, &mut table.latency_us)?;
        self.ios.read_whole(rows, &mut table.ios)?;
        if let Some(bytes) = &mut self.bytes {
            bytes.read_real(rows, &mut table.bytes)?;
        }
        if let Some(age_hours) = &mut self.age_hours {
            age_hours.read_age(rows, &mut table.age_hours)?;
        }
        if let Some(model) = &mut self.model {
            model.read_models(rows, names, &mut table.model)?;
        }
        self.rows_left -= rows;
        Ok(())
    }
}

fn needed(column: Option<Column>, name: &str) -> Result<Column, String> {
    column.ok_or_else(|| format!("missing column `{name}`"))
}

fn rows_of(row_group: usize, rows: i64) -> Result<usize, String> {
    usize::try_from(rows).map_err(|_| format!("row group {row_group} has {rows} rows"))
}
