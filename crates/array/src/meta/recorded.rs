//! What an array goes on with: the metadata that was found, and who it is now.

use std::sync::Arc;

use levelhead_units::{DriveIdx, DriveSet};

use super::assembly::{Assembly, Doubt, Placed};
use super::membership::Membership;
use super::metadata::Metadata;
use super::own::{Held, Own};
use super::uuid::Uuid;

/// What an array records of itself, as it was found, and who goes on with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// What was found.
    pub metadata: Arc<Metadata>,
    /// What each drive says of itself; nothing where the array has none.
    pub owns: Vec<Option<Own>>,
    /// The newest metadata that each drive has.
    pub held: Vec<Option<Held>>,
    /// Drives with a copy of their superblock that is not as it was written.
    pub not_whole: DriveSet,
    /// Whether another machine can reach its drives, so that it needs a lease (N4 of the fence).
    pub is_in_reach: bool,
    /// The identity of this run: random bytes.
    pub run: Uuid,
    /// Why an operator had to make the array go on, if that was so.
    pub forced_over: Option<Doubt>,
    /// Whether drives that are not present may lack more than it says.
    pub may_lack_more: bool,
    /// Whether it was found on enough drives.
    pub is_recorded: bool,
}

impl Recorded {
    /// The metadata of an array that was found, and that the run `run` goes on with.
    pub fn of(assembly: &Assembly, run: Uuid) -> Self {
        let own = |place: &Option<Placed>| Some(place.as_ref()?.own.clone());
        let held = |place: &Option<Placed>| place.as_ref()?.held;
        let not_whole = assembly.places.iter().flatten().filter(|place| !place.is_whole);
        Self {
            metadata: Arc::new(assembly.metadata.clone()),
            owns: assembly.places.iter().map(own).collect(),
            held: assembly.places.iter().map(held).collect(),
            not_whole: not_whole.map(|place| place.own.drive).collect(),
            is_in_reach: false,
            run,
            forced_over: assembly.doubt,
            may_lack_more: assembly.may_lack_more,
            is_recorded: assembly.is_recorded(),
        }
    }

    /// The drives that were not found.
    pub(crate) fn absent(&self) -> DriveSet {
        let absent = self.owns.iter().enumerate().filter(|(_, own)| own.is_none());
        absent.map(|(at, _)| DriveIdx::from_usize(at)).collect()
    }

    /// Up to which stripe a drive holds what it should, if it is being filled and was found.
    pub(crate) fn filled_to(&self, drive: DriveIdx) -> Option<u64> {
        self.owns[drive.as_usize()].as_ref()?;
        match self.metadata.members[drive.as_usize()].membership {
            Membership::Filling { to } => Some(to),
            Membership::Present
            | Membership::Missing
            | Membership::Lost { .. }
            | Membership::Spare => None,
        }
    }
}
