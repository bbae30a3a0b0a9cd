//! The studies of `[ERAID]`.
//!
//! All run on the paper's test bed ([`Bed::paper`]): six 7200 rpm drives of 2 TB, RAID-5 with chunks
//! of 8 KiB, Poisson reads every 8 ms at uniformly random sectors, 32 host queues a drive.

mod correlation;
mod implementations;
mod layouts;
mod mixes;
mod tables;
mod traces;

use levelhead_array::Policy;
use levelhead_drive::Faults;
use levelhead_units::Ratio;

use super::{Bed, Study};

pub(super) fn studies() -> Vec<Study> {
    vec![
        tables::TABLE_1,
        tables::TABLE_2,
        correlation::FIG_3,
        implementations::FIG_5,
        implementations::FIG_6,
        layouts::FIG_7,
        mixes::FIG_8,
        mixes::FIG_9,
        traces::FIG_10,
        traces::FIG_11,
    ]
}

/// What all these studies say of their bed.
const BED: &str = "raid5:6,chunk=8KiB over six nearline-2tb (7200 rpm), SPTF in the drive, window 32, \
                   host order paper32; Poisson reads every 8 ms at uniformly random sectors; retries \
                   with adjacency 2";

/// Sectors that fail at a rate of `percent` percent, and retries of `rotations` rotations.
fn retries(percent: f64, rotations: u32) -> Faults {
    Faults {
        retry_rate: Ratio::new(percent / 100.0).expect("a study's rate is a share"),
        adjacency: 2.0,
        rotations: rotations.into(),
        ..Faults::NONE
    }
}

/// Our own policy, which stands beside the paper's in every study that runs an array.
const OURS: &str = "level";

/// A policy by name.
fn policy(name: &str) -> Policy {
    name.parse().unwrap_or_else(|error| panic!("{error}"))
}
