//! What an array goes on with: its book as it was found, and who it is now.

use levelhead_units::{DriveIdx, DriveSet};

use super::membership::{Membership, not_present};
use super::missed::FoundMap;
use super::quorum::{Assembly, Doubt, FoundDamaged, Placed};
use super::superblock::{Book, Own};
use super::uuid::Uuid;

/// What an array records of itself, as it was found, and who goes on with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Books {
    /// What was found.
    pub book: Book,
    /// What each drive says of itself; nothing where the array has none.
    pub owns: Vec<Option<Own>>,
    /// The identity of this run: random bytes.
    pub run: Uuid,
    /// Why an operator had to make the array go on, if that was so.
    pub forced_over: Option<Doubt>,
    /// Drives that missed the last change of the book.
    pub lagging: DriveSet,
    /// The list of damaged sectors that was found.
    pub damaged: FoundDamaged,
    /// The maps of what drives have missed that were found.
    pub missed: Vec<FoundMap>,
}

impl Books {
    /// The generation of the list of damaged sectors, if the drives have a place for one.
    pub(crate) fn listed(&self) -> Option<u64> {
        let mut owns = self.owns.iter().flatten();
        owns.any(|own| own.damaged().is_some()).then_some(self.damaged.generation)
    }

    /// Whether the list of damaged sectors that was found is on enough drives, or on all that are there.
    pub(crate) fn is_list_safe(&self) -> bool {
        let generation = self.damaged.generation;
        let newest = self.damaged.newest.iter().enumerate();
        let has =
            newest.filter(|(_, newest)| newest.map_or(0, |newest| newest.generation) == generation);
        let holders: DriveSet = has.map(|(at, _)| DriveIdx::from_usize(at)).collect();
        let mut there = (0..self.owns.len()).filter(|&at| self.owns[at].is_some());
        let not_counted = not_present(&self.book.members);
        generation == 0
            || there.all(|at| holders.contains(DriveIdx::from_usize(at)))
            || !self.book.spec.survives(not_counted.or(holders))
    }

    /// The books of an array that was found, and that the run `run` goes on with.
    pub fn of(assembly: &Assembly, run: Uuid) -> Self {
        let own = |place: &Option<Placed>| Some(place.as_ref()?.own.clone());
        Self {
            book: assembly.book.clone(),
            owns: assembly.places.iter().map(own).collect(),
            run,
            forced_over: assembly.doubt,
            lagging: assembly.lagging,
            damaged: assembly.damaged.clone(),
            missed: assembly.missed.clone(),
        }
    }

    /// Up to which stripe a drive holds what it should, if it is being filled and was found.
    pub fn filled_to(&self, drive: DriveIdx) -> Option<u64> {
        self.owns[drive.as_usize()].as_ref()?;
        match self.book.members[drive.as_usize()].membership {
            Membership::Filling { to } => Some(to),
            Membership::Present
            | Membership::Missing { .. }
            | Membership::Lost { .. }
            | Membership::Spare => None,
        }
    }
}
