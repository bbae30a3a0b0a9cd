//! Files of fleets: Parquet and CSV become slices of columns, a row group at a time, and what is made up becomes files.

#![forbid(unsafe_code)]

mod damage;
mod error;
pub mod hours;
mod lines;
pub mod prometheus;
pub mod samples;

pub use error::ReadError;
