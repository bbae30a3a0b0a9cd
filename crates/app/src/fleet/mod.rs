//! `levelhead fleet`: which drives of a fleet are slow.

mod detect;

pub use detect::{Detect, Detected, Explained, detect, explain};
pub use levelhead_fleet::detect::Kind as Detector;
