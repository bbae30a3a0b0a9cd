//! The shape of an array: what its text means, and where each sector lies.

mod area;
mod layout;
mod losses;
pub(crate) mod redundancy;
mod spec;

pub(crate) use area::TagPlace;
pub use area::{Area, DRIVE_SECTORS_MAX, Groups};
pub use layout::{Cell, Layout, Row};
pub use losses::Losses;
pub use spec::{DriveCounts, Family, Parity, Spec, SpecError};
