//! Made-up fleets: hours tables after the field study, and healthy or sick groups for detectors.

mod fitted;
pub mod groups;
mod hours;

pub use hours::{HoursGenerator, Kind, Shape};
