//! An hours table in a file of either kind.

use std::ops::Range;
use std::path::{Path, PathBuf};

use levelhead_fleet::HoursTable;

use super::{Columns, CsvRows, HoursFile, HoursRows, Ids, Named};
use crate::ReadError;
use crate::kind::is_parquet;

/// An hours table in a file: Parquet if its name ends in `.parquet` or it begins as such files do, else CSV, packed by zstd or not.
pub struct TableFile {
    path: PathBuf,
    /// `None` of CSV, which is opened when it is read.
    parquet: Option<HoursFile>,
}

/// The rows of a table, some at a time.
pub enum TableRows<'a> {
    /// Of Parquet.
    Parquet(Box<HoursRows<'a>>),
    /// Of CSV.
    Csv(Box<CsvRows>),
}

impl TableFile {
    /// Opens a table.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or is no Parquet although its name says so.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let parquet = is_parquet(path).then(|| HoursFile::open(path)).transpose()?;
        Ok(Self { path: path.to_owned(), parquet })
    }

    /// How many row groups there are, of which parts are made; none of CSV, which is one part.
    pub fn row_group_count(&self) -> usize {
        self.parquet.as_ref().map_or(0, HoursFile::row_group_count)
    }

    /// How many rows there are, if the file says so.
    pub fn row_count(&self) -> Option<u64> {
        self.parquet.as_ref().map(HoursFile::row_count)
    }

    /// All rows of the table. `ids` says what groups and drives are called in CSV; in Parquet they have numbers.
    ///
    /// # Errors
    ///
    /// A file that is damaged; of CSV, one that cannot be read, and a column that is missing or there twice.
    pub fn rows(&self, columns: Columns, ids: Ids) -> Result<TableRows<'_>, ReadError> {
        self.part(0..self.row_group_count(), columns, ids)
    }

    /// The rows of these row groups, as [`HoursFile::part`] has them; of CSV all rows. `ids` is that of [`TableFile::rows`].
    ///
    /// # Errors
    ///
    /// As [`TableFile::rows`].
    pub fn part(
        &self,
        row_groups: Range<usize>,
        columns: Columns,
        ids: Ids,
    ) -> Result<TableRows<'_>, ReadError> {
        Ok(match &self.parquet {
            Some(file) => TableRows::Parquet(Box::new(file.part(row_groups, columns)?)),
            None => TableRows::Csv(Box::new(CsvRows::open(&self.path, ids)?)),
        })
    }
}

impl TableRows<'_> {
    /// Reads the next rows into `table`, in place of those that were there; false at the end.
    ///
    /// # Errors
    ///
    /// As [`HoursRows::next`] and [`CsvRows::next`].
    pub fn next(&mut self, table: &mut HoursTable) -> Result<bool, ReadError> {
        match self {
            Self::Parquet(rows) => rows.next(table),
            Self::Csv(rows) => rows.next(table),
        }
    }

    /// The drives that have been named so far, in the order of their numbers; none where they have numbers.
    pub fn named(&self) -> &[Named] {
        match self {
            Self::Parquet(_) => &[],
            Self::Csv(rows) => rows.named(),
        }
    }
}
