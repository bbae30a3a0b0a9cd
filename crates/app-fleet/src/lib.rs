//! `levelhead fleet`: which drives of a fleet are slow, how often and for how long.

#![forbid(unsafe_code)]

mod analyze;
mod detect;
mod generate;
mod import;
mod names;
mod sql;
mod summarise;

pub use analyze::{Analyze, Analyzed, Reduce, analyze, map, reduce};
pub use detect::{Detect, Detected, Explained, detect, explain, labelled};
pub use generate::{Generate, GenerateSamples, generate, generate_samples};
pub use import::{Import, ImportedFleet, LatencyUnit, Prometheus, import};
pub use levelhead_fleet::analysis::{Rules, Scope};
pub use levelhead_fleet::detect::Kind as Detector;
pub use levelhead_fleet::generate::groups::{Episodes, GroupsOptions};
pub use levelhead_fleet::generate::{Kind as DriveKind, Shape};
pub use levelhead_fleet_io::prometheus::Range;
pub use sql::{Queries, Query, query};
pub use summarise::{Summarise, THREADS_MAX};
