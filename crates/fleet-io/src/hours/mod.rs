//! Hours tables in files: Parquet and CSV, some rows at a time, only the columns that are asked for.
//!
//! ```text
//!   .parquet --> HoursFile --> parts --> HoursRows --.
//!                                                    >--> HoursTable, 64 Ki rows at a time
//!   .csv     --------------------------> CsvRows  --'
//! ```
//!
//! A part is a run of row groups, and moves its ends to where a group's hour ends: parts of a file side by side have all of its rows,
//! each once, and no hour of a group in two of them. Files are described in `docs/formats/hours.md`.

mod columns;
mod csv;
mod table;

#[cfg(test)]
mod tests;
mod write;

pub use csv::{CsvRows, Ids, Named};
pub use table::{HoursFile, HoursRows};
pub use write::{HoursWriter, ROWS_WRITTEN};

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
