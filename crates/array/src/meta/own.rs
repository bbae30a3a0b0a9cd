//! What a member says of itself: which place of the array it has, and which places of its own the layout steps over.

use levelhead_units::{DriveIdx, Extent, Lba, Sectors};

use super::membership::Generation;
use super::reserve::{Reserved, SLOT, TAIL, Use, tail};
use super::uuid::Uuid;
use crate::shape::{Area, Spec};

/// The newest metadata that a member has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its generation.
    pub generation: Generation,
    /// Which of the two slots it is in.
    pub slot: usize,
}

/// A drive that comes into a place of the array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMember {
    /// Its identity: random bytes of a new drive, those in its superblock of one that is back.
    pub uuid: Uuid,
    /// What it says of itself.
    pub own: Own,
    /// The metadata that one has which is back.
    pub held: Option<Held>,
}

/// What a member says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    /// Which place of the array it has.
    pub drive: DriveIdx,
    /// Its size when it became a member.
    pub size: Sectors,
    /// The places that the layout steps over, in order.
    pub reserved: Vec<Reserved>,
}

impl Own {
    /// Where the data lies on a member whose reserved places these are; nothing if they leave no room for
    /// that much.
    pub fn area(&self, spec: &Spec, drive_size: Sectors) -> Option<Area> {
        let extents: Vec<Extent> = self.reserved.iter().map(|place| place.extent).collect();
        Area::around(&extents, drive_size, Lba::ZERO + self.size, spec.tag_groups())
    }

    /// Whether its reserved places lie on it, in order and without overlap.
    pub(super) fn is_in_order(&self) -> bool {
        let end = Lba::ZERO + self.size;
        self.reserved.windows(2).all(|pair| pair[0].extent.end() <= pair[1].extent.lba)
            && self.reserved.iter().all(|place| place.extent.end() <= end)
    }

    /// What another member of the same array says of itself that has this place and size; nothing if it is too small.
    /// `drive_size` is 0 for one that has no data.
    pub fn on_another(
        &self,
        drive: DriveIdx,
        size: Sectors,
        spec: &Spec,
        drive_size: Sectors,
    ) -> Option<Self> {
        if size < self.size_min(spec, drive_size) {
            return None;
        }
        let end = Lba::ZERO + (self.size - TAIL);
        let common = self.reserved.iter().filter(|place| place.extent.lba < end);
        let reserved = common.copied().chain(tail(size)).collect();
        let own = Self { drive, size, reserved };
        (own.area(spec, drive_size) == self.area(spec, drive_size)).then_some(own)
    }

    /// The least size of another member. `drive_size` is 0 for one that has no data.
    pub fn size_min(&self, spec: &Spec, drive_size: Sectors) -> Sectors {
        let area = self.area(spec, drive_size);
        let data = area.and_then(|area| area.runs().last()).map_or(Lba::ZERO, Extent::end);
        let end = Lba::ZERO + (self.size - TAIL);
        let common = self.reserved.iter().filter(|place| place.extent.lba < end);
        let last = common.map(|place| place.extent.end()).fold(data, Lba::max);
        (last - Lba::ZERO) + TAIL
    }

    /// Where its part of the journal lies.
    pub fn journal(&self) -> Vec<Extent> {
        let pieces = self.reserved.iter().filter(|place| place.purpose == Use::Journal);
        pieces.map(|place| place.extent).collect()
    }

    /// Where its two slots for lists of checksums lie, if it has any.
    pub fn list(&self) -> Option<Extent> {
        let place = self.reserved.iter().find(|place| place.purpose == Use::List);
        place.map(|place| place.extent)
    }

    /// Where its two slots for the metadata lie.
    ///
    /// Panics if it has no place for them, as only one can that passed no check.
    pub fn slots(&self) -> [Extent; 2] {
        let place = self.reserved.iter().find(|place| place.purpose == Use::Metadata);
        let place = place.expect("every superblock that passed has a place for metadata").extent;
        [place.lba, place.lba + SLOT].map(|lba| Extent::new(lba, SLOT))
    }

    /// Where the copies of its superblock lie, in the order in which they are written.
    ///
    /// Panics if there are fewer than three.
    pub fn copies(&self) -> [Lba; 3] {
        let copies = self.reserved.iter().filter(|place| place.purpose == Use::Superblock);
        let copies: Vec<Lba> = copies.map(|place| place.extent.lba).collect();
        copies.try_into().expect("every superblock that passed has three")
    }
}
