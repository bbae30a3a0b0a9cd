//! What `levelhead-lab` does: virtual time, the papers' experiments, closed forms, and the code inside a drive.
//!
//! One function a command, from what was asked to what is shown. Knows files, and no terminal.

#![forbid(unsafe_code)]

pub mod ecc;
mod in_virtual_time;
mod measure;
mod model;
pub mod plan;
mod profiles;
pub mod replay;
mod replay_files;
pub mod rtl;
#[cfg(feature = "specimens")]
pub mod specimens;
pub mod study;

pub use in_virtual_time::in_virtual_time;
pub use measure::{DriveMeasured, Measure, measure_drive};
pub use model::{Makes, Model, Modelled, drive_makes, model_drive};
pub use replay_files::{ReplayFiles, ReplayedFiles, file_kind, replay_files};
