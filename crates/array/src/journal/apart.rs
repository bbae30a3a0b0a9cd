//! A journal on drives of its own, apart from the data: each of them has every record.
//!
//! ```text
//!   a transaction --> the record of every participant --> on every such drive that is there
//! ```
//!
//! # Invariants
//!
//! - AP1. The record of a participant lies on the ring of every journal drive that counts, and on no other ring.
//! - AP2. A transaction that outlasts a crash is on all of them before any of it is written in place.

use levelhead_units::{DriveIdx, DriveSet};

use super::Journal;
use super::ring::Copied;
use super::rules::Rule;
use crate::core::Core;

impl Journal {
    /// Whether rings lie on drives of their own.
    pub(super) fn is_apart(&self) -> bool {
        self.form.spec.journals() > 0
    }

    /// Whether a drive has places, so that its times are compared with those of the others that have.
    pub(super) fn has_places(&self, drive: DriveIdx) -> bool {
        self.form.spec.data_drives().contains(drive)
    }

    /// The records of these drives, on every ring that counts (AP1).
    pub(super) fn on_all_rings(&self, core: &Core, subjects: &[DriveIdx]) -> Vec<Copied> {
        let mut rings: DriveSet = core.counted();
        if !self.form.rules.keep(Rule::Hints) {
            rings = rings.iter().take(1).collect();
        }
        let on = |ring: DriveIdx| subjects.iter().map(move |&subject| Copied { ring, subject });
        rings.iter().flat_map(on).collect()
    }
}
