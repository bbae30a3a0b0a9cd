//! Made-up fleets: hours tables and events after the field study, and healthy or sick groups for detectors.

mod fitted;
mod group;
pub mod groups;
mod hours;
mod law;
mod ledger;
mod table;
#[cfg(test)]
mod tests;

pub use hours::HoursGenerator;
pub use table::{Kind, Shape};
