//! Places that are reserved for units (SP5), so that a full disk can be emptied.
//!
//! They are nowhere on the disk: a mount finds free places, and finds others when units have taken some. While much is free none are reserved.

use levelhead_units::Lba;

use super::job::{Job, JobId};
use super::room::spares;
use super::{Attempted, Filesystem};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Spares {
    /// Whether places are being looked for.
    is_looking: bool,
    /// Where they are looked for next.
    from: Lba,
}

/// Places are reserved when less than this part of the disk is free.
const FREE_SHARE: u64 = 4;

impl Filesystem {
    /// It is mounted, or a transaction has closed: places for units are looked for, if some are missing.
    pub(super) fn reserve_spares(&mut self) {
        let wanted = spares(&self.superblock.geometry);
        if self.spares.is_looking || self.recent.spares().len() >= wanted {
            return;
        }
        self.spares.is_looking = true;
        let job = self.new_job(Job::Spares);
        self.ready.push_back(job);
    }

    pub(super) fn run_spares(&mut self, id: JobId) {
        let geometry = self.superblock.geometry;
        loop {
            let from = self.spares.from;
            let is_enough = self.recent.spares().len() >= spares(&geometry);
            let found = match is_enough {
                true => Attempted::Complete(None),
                false => self.attempt(id, |attempt| {
                    let is_roomy = attempt.free_in_all()? > geometry.sectors / FREE_SHARE;
                    if is_roomy { Ok(None) } else { attempt.find_spare(from) }
                }),
            };
            match found {
                Attempted::Waits => return self.keep(id, Job::Spares),
                Attempted::Complete(Some(lead)) => {
                    self.recent.reserve(lead, geometry.unit_extents(lead));
                    self.spares.from = lead;
                }
                Attempted::Complete(None) | Attempted::Failed(_) => {
                    // The next groups are looked at the next time.
                    let group = geometry.group_of(from);
                    let next = (group.0 + crate::space::LOOKED_MAX as u64) % geometry.groups();
                    if !is_enough {
                        self.spares.from = geometry.group(crate::geometry::GroupIdx(next)).lba;
                    }
                    self.spares.is_looking = false;
                    return;
                }
            }
        }
    }
}
