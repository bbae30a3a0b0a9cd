//! Hours tables in files: Parquet and CSV, some rows at a time, only the columns that are asked for.
//!
//! ```text
//!   Parquet --> HoursFile --> parts --> HoursRows --.
//!                                                   >--> HoursTable, 64 Ki rows at a time
//!   CSV     --------------------------> CsvRows  ---'
//! ```
//!
//! [`TableFile`] is of either kind, and says how many parts it can be cut into.
//!
//! A part is a run of row groups, and moves its ends to where a group's hour ends: parts of a file side by side have all of its rows,
//! each once, and no hour of a group in two of them. Files are described in `docs/formats/hours.md`.

mod columns;
mod csv;
mod either;
mod table;
#[cfg(test)]
mod tests;
mod write;

use std::path::Path;

use crate::ReadError;
use crate::kind::is_parquet;
use crate::lines::Lines;

pub use csv::{CsvRows, Ids, Named};
pub use either::{TableFile, TableRows};
pub use table::{HoursFile, HoursRows};
pub use write::{CSV_HEADER, HoursWriter, ROWS_WRITTEN, write_csv};

/// Rows that are read at a time.
pub const ROWS: usize = 1 << 16;

/// The most names of models in a file.
pub const MODELS_MAX: usize = 4096;

/// The longest name of a model, in bytes.
pub const MODEL_NAME_MAX: usize = 256;

/// Which columns are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// What slowdowns need: hour, raid, drive, latency and requests.
    Slowdown,
    /// Sizes too, and ages and models if there are any.
    All,
}

/// Whether a file is an hours table: Parquet with a column `raid`, or text whose first line names one.
///
/// # Errors
///
/// A file that cannot be read.
pub fn is_table(path: &Path) -> Result<bool, ReadError> {
    if path.is_dir() {
        return Ok(false);
    }
    if is_parquet(path) {
        return Ok(HoursFile::open(path)?.has_column("raid"));
    }
    let header = Lines::open(path)?.next()?.map(|line| line.replace('"', "")).unwrap_or_default();
    Ok(header.split(',').any(|column| column.trim() == "raid"))
}
