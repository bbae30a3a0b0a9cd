//! A new drive in the place of a lost one, and spares that wait for a place.

use levelhead_array::membership::Membership;
use levelhead_array::superblock::{Own, Uuid};
use levelhead_array::{NewMember, NotReplaced, RebuildWish};
use levelhead_units::{DriveIdx, Sectors};

use super::Engine;
use crate::error::{HostError, fail};
use crate::seat::Seat;

/// A drive that is ready to come into a place.
pub(crate) struct Ready {
    pub(crate) name: String,
    pub(crate) size: Sectors,
    pub(crate) uuid: Uuid,
    pub(crate) seat: Seat,
}

/// What a drive must be like.
pub(crate) struct Wanted {
    /// What a member says of itself.
    own: Own,
    drive_size: Sectors,
}

impl Wanted {
    /// The least size of a new drive.
    pub(crate) fn size_min(&self) -> Sectors {
        self.own.size_min(self.drive_size)
    }

    fn own_on(&self, drive: DriveIdx, size: Sectors) -> Option<Own> {
        self.own.on_another(drive, size, self.drive_size)
    }
}

impl Engine {
    /// What a new drive must be like.
    pub(crate) fn wanted(&mut self) -> Result<Wanted, HostError> {
        let array = &self.parts.array;
        let own = array.own_of_a_member().cloned();
        let own = own.ok_or_else(|| HostError::new("the array has no drive"))?;
        let Some(drive_size) = array.drive_size() else { return fail("the array keeps no books") };
        Ok(Wanted { own, drive_size })
    }

    /// Whether a new drive may come into this place now.
    pub(crate) fn may_replace(&mut self, drive: DriveIdx) -> Result<(), HostError> {
        self.seat(drive)?;
        let array = &self.parts.array;
        array.may_replace(drive).map_err(|no| HostError::new(tell(no, drive)))
    }

    /// The place of a lost drive has a new one.
    pub(crate) fn replace(&mut self, drive: DriveIdx, ready: Ready) -> Result<(), HostError> {
        self.may_replace(drive)?;
        let wanted = self.wanted()?;
        let own = wanted.own_on(drive, ready.size);
        let own = own.expect("it was found to be large enough when it was opened");
        let now = self.now();
        self.parts.seats[drive.as_usize()] = ready.seat;
        let new = NewMember { uuid: ready.uuid, own };
        let done = self.parts.array.handle_replaced(now, drive, Some(new));
        done.map_err(|no| HostError::new(tell(no, drive)))
    }

    /// A drive waits for a place.
    pub(crate) fn add_spare(&mut self, ready: Ready) -> Result<(), HostError> {
        if self.spares.iter().any(|spare| spare.name == ready.name) {
            return fail(format!("{} is a spare already", ready.name));
        }
        self.spares.push(ready);
        self.use_spares();
        Ok(())
    }

    /// A spare is not needed any more.
    pub fn remove_spare(&mut self, name: &str) -> Result<(), HostError> {
        match self.spares.iter().position(|spare| spare.name == name) {
            Some(at) => {
                self.spares.remove(at);
                Ok(())
            }
            None => fail(format!("{name} is no spare")),
        }
    }

    /// The spares, by their names.
    pub(crate) fn spares(&self) -> Vec<String> {
        self.spares.iter().map(|spare| spare.name.clone()).collect()
    }

    /// Spares step in where drives were lost while the array ran. A drive that was merely not there when the array was
    /// started may still come back.
    pub(crate) fn use_spares(&mut self) {
        if self.spares.is_empty() {
            return;
        }
        let array = &self.parts.array;
        let members = array.members().unwrap_or_default();
        let is_lost = |drive: &DriveIdx| {
            let member = members.get(drive.as_usize());
            let is_known = |known: Membership| matches!(known, Membership::Lost { .. });
            member.is_some_and(|member| is_known(member.membership))
        };
        let places = array.lost().iter().filter(is_lost);
        let places: Vec<DriveIdx> =
            places.filter(|&drive| array.may_replace(drive).is_ok()).collect();
        for drive in places {
            if self.spares.is_empty() {
                return;
            }
            let spare = self.spares.remove(0);
            // Nothing has changed since it was asked whether that may be.
            drop(self.replace(drive, spare));
        }
    }

    /// How rebuilds go from now on.
    pub fn set_rebuild_wish(&mut self, wish: impl FnOnce(RebuildWish) -> RebuildWish) {
        let now = self.now();
        let wish = wish(self.parts.array.rebuild_wish());
        self.parts.array.handle_rebuild_wish(now, wish);
    }
}

/// Why a drive does not come into a place, in one sentence.
fn tell(no: NotReplaced, drive: DriveIdx) -> String {
    match no {
        NotReplaced::Present => {
            format!("drive {drive} is not lost: make the array do without it first")
        }
        NotReplaced::Filling => format!("drive {drive} is being rebuilt already"),
        NotReplaced::Unrecorded => {
            format!("the loss of drive {drive} is not safely recorded yet, try again")
        }
        NotReplaced::Failed => {
            "more drives are lost than the array survives: nothing can be rebuilt".to_owned()
        }
        NotReplaced::NotRedundant => {
            "the array is not redundant: nothing can be rebuilt".to_owned()
        }
        NotReplaced::Recovering => {
            "what a crash left is being brought to its place, try again".to_owned()
        }
        NotReplaced::Ending => "the array is ending".to_owned(),
    }
}
