//! Files of fleets: Parquet and CSV become slices of columns, a row group at a time, and what is made up becomes files.

#![forbid(unsafe_code)]

mod damage;
mod error;
mod events;
pub mod hours;
mod kind;
mod lines;
mod pages;
pub mod prometheus;
pub mod samples;

pub use error::ReadError;
pub use events::{begin_events, read_events, write_events};
