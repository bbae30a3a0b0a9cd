//! Files of fleets: Parquet and CSV become slices of columns, a row group at a time, and what is made up becomes files.

#![forbid(unsafe_code)]

mod error;
mod hours;
pub mod samples;

pub use error::ReadError;
pub use hours::{Columns, HoursError, HoursFile, HoursWriter, ROWS_WRITTEN};
