//! A new drive in the place of a lost one, and spares that wait for a place.

use levelhead_array::assembly::Word;
use levelhead_array::membership::Membership;
use levelhead_array::superblock::{Own, Superblock, Uuid};
use levelhead_array::{NewMember, NotReplaced, RebuildWish, Spec};
use levelhead_units::{DriveIdx, DriveSet, Sectors};

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

/// How a new drive comes into a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The drive of the place is lost: the new one is filled.
    Fill,
    /// It is there: the new one is given a copy of it.
    Copy,
}

/// A drive that is back since the start.
pub(crate) struct Comeback {
    pub(crate) new: NewMember,
    pub(crate) ready: Ready,
}

/// What a drive must be like.
pub(crate) struct Wanted {
    array: Uuid,
    /// What a member of its kind says of itself.
    own: Own,
    spec: Spec,
    /// Sectors with data.
    drive_size: Sectors,
}

impl Wanted {
    /// The least size of a new drive.
    pub(crate) fn size_min(&self) -> Sectors {
        self.own.size_min(&self.spec, self.drive_size)
    }

    /// Whether a superblock is of the same array.
    pub(crate) fn is_of(&self, superblock: &Superblock) -> bool {
        superblock.array == self.array
    }

    fn own_on(&self, drive: DriveIdx, size: Sectors) -> Option<Own> {
        self.own.on_another(drive, size, &self.spec, self.drive_size)
    }
}

impl Engine {
    /// What a new drive must be like that can come into this place.
    pub(crate) fn wanted(&mut self, drive: DriveIdx) -> Result<Wanted, HostError> {
        let array = &self.parts.array;
        let own = array.own_of_a_member(drive).cloned();
        let own = own.ok_or_else(|| HostError::new("the array has no drive"))?;
        let Some(drive_size) = array.drive_size(drive) else {
            return fail("the array keeps no metadata");
        };
        let spec = *array.layout().spec();
        let array = array.uuid().expect("it keeps metadata");
        Ok(Wanted { array, own, spec, drive_size })
    }

    /// Whether a new drive may come into this place now, and how.
    pub(crate) fn may_replace(&mut self, drive: DriveIdx) -> Result<Way, HostError> {
        self.seat(drive)?;
        let array = &self.parts.array;
        let way = match array.may_replace(drive) {
            Ok(()) => Ok(Way::Fill),
            Err(NotReplaced::Present) => array.may_copy(drive).map(|()| Way::Copy),
            Err(no) => Err(no),
        };
        way.map_err(|no| HostError::new(tell(no, drive)))
    }

    /// The place of a lost drive has a new one, or that of a drive that is there will have.
    pub(crate) fn replace(&mut self, drive: DriveIdx, ready: Ready) -> Result<(), HostError> {
        let way = self.may_replace(drive)?;
        self.check_free(&ready.name)?;
        let wanted = self.wanted(drive)?;
        let own = wanted.own_on(drive, ready.size);
        let own = own.expect("it was found to be large enough when it was opened");
        let now = self.now();
        let new = Some(NewMember { uuid: ready.uuid, own, held: None });
        let done = match way {
            Way::Fill => {
                ready.seat.introduce(drive, &mut self.parts.array);
                self.put_into(drive, ready.seat);
                self.parts.array.handle_replaced(now, drive, new)
            }
            Way::Copy => {
                self.coming = Some(ready.seat);
                self.parts.array.handle_copy(now, drive, new)
            }
        };
        done.map_err(|no| HostError::new(tell(no, drive)))
    }

    /// Whether nothing of this array has this name: exports can be opened twice.
    fn check_free(&self, name: &str) -> Result<(), HostError> {
        let is_named = |seat: &Seat| seat.name.as_deref() == Some(name);
        let away = self.parts.array.away();
        let members = (0..).map(DriveIdx::new).zip(&self.parts.seats);
        if let Some((drive, _)) =
            members.into_iter().find(|(drive, seat)| is_named(seat) && !away.contains(*drive))
        {
            return fail(format!("{name} is drive {drive} of this array"));
        }
        if let (true, Some(copy)) =
            (self.coming.as_ref().is_some_and(is_named), self.parts.array.copy())
        {
            return fail(format!("{name} is replacing drive {} of this array", copy.drive));
        }
        if self.spares.iter().any(|spare| spare.name == name) {
            return fail(format!("{name} is a spare already"));
        }
        if self.returning.iter().any(|back| back.ready.name == name) {
            return fail(format!("{name} is a drive of this array that is about to be taken back"));
        }
        if self.parts.array.has_dismissed() && self.let_go.iter().any(|known| known == name) {
            return fail(format!(
                "{name} has not completed the commands of an earlier copy: try again"
            ));
        }
        Ok(())
    }

    /// A new drive is not wanted any more. While something is inside it nothing else may be written there.
    pub(crate) fn dismiss(&mut self) {
        let Some(seat) = self.coming.take() else { return };
        if !self.parts.array.has_dismissed() {
            self.let_go.clear();
        }
        if seat.work.is_at_work() {
            self.let_go.extend(seat.name.clone());
        }
        self.dismissed = Some(seat);
    }

    /// The drive that a place has lost is still there, and is given what it has missed.
    fn take_back_seated(&mut self, drive: DriveIdx) -> Result<(), HostError> {
        let array = &self.parts.array;
        let member = array.members().and_then(|members| members.get(drive.as_usize()));
        let (Some(own), Some(member)) = (array.own(drive).cloned(), member) else {
            return fail(tell(NotReplaced::NoMap, drive));
        };
        // The array knows itself which metadata it has given to it.
        let new = NewMember { uuid: member.id.uuid, own, held: None };
        self.give_back(drive, new)?;
        self.parts.seats[drive.as_usize()].work.forget_failure();
        Ok(())
    }

    /// The very drive that a place has lost is back, as its superblock says.
    pub(crate) fn take_back(
        &mut self,
        drive: DriveIdx,
        word: &Word,
        ready: Ready,
    ) -> Result<(), HostError> {
        if self.may_replace(drive)? == Way::Copy {
            return fail(format!(
                "{} holds a drive of this array; --force takes it and writes over that",
                ready.name
            ));
        }
        let Word { superblock, held, .. } = word;
        if ready.size < superblock.own.size || !self.parts.array.knows(drive, word) {
            let name = ready.name;
            return fail(format!(
                "{name} holds drive {} of this array, and what that has missed as drive {drive} is not known: \
                 --force rebuilds it in full",
                superblock.own.drive
            ));
        }
        let (uuid, own) = (superblock.member, superblock.own.clone());
        self.give_back(drive, NewMember { uuid, own, held: *held })?;
        let seat = ready.seat;
        seat.introduce(drive, &mut self.parts.array);
        self.put_into(drive, seat);
        Ok(())
    }

    fn give_back(&mut self, drive: DriveIdx, new: NewMember) -> Result<(), HostError> {
        let now = self.now();
        let done = self.parts.array.handle_returned(now, drive, Some(new));
        done.map_err(|no| HostError::new(tell(no, drive)))
    }

    /// Drives that are back since the start are given what they have missed. While others are merely not there that would
    /// record those as missing, so that it waits for the first write.
    pub(crate) fn take_back_all(&mut self) {
        if self.returning.is_empty() {
            return;
        }
        let back: DriveSet = self.returning.iter().map(|back| back.new.own.drive).collect();
        let array = &self.parts.array;
        if !array.is_open() && !array.away().without(back).is_empty() {
            return;
        }
        let is_ready = |back: &mut Comeback| array.may_return(back.new.own.drive).is_ok();
        let ready: Vec<Comeback> = self.returning.extract_if(.., is_ready).collect();
        for Comeback { new, ready: Ready { seat, .. } } in ready {
            let drive = new.own.drive;
            seat.introduce(drive, &mut self.parts.array);
            self.put_into(drive, seat);
            // Nothing has changed since it was asked whether that may be.
            drop(self.give_back(drive, new));
        }
        // What will never be taken back is not kept open.
        let away = self.parts.array.away();
        let is_over = |back: &mut Comeback| !away.contains(back.new.own.drive);
        let over: Vec<Comeback> = self.returning.extract_if(.., is_over).collect();
        over.into_iter().for_each(|back| self.dispose(None, back.ready.seat));
    }

    /// Drives that made way for copies which did not come are given what they have missed.
    pub(crate) fn take_back_wanted(&mut self) {
        let array = &self.parts.array;
        let wanted = array.wanted_back();
        let ready: Vec<DriveIdx> =
            wanted.iter().filter(|&drive| array.may_return(drive).is_ok()).collect();
        for drive in ready {
            drop(self.take_back_seated(drive));
        }
    }

    /// A drive waits for a place.
    pub(crate) fn add_spare(&mut self, ready: Ready) -> Result<(), HostError> {
        self.check_free(&ready.name)?;
        self.spares.push(ready);
        self.use_spares();
        Ok(())
    }

    /// A spare is not needed any more.
    pub(crate) fn remove_spare(&mut self, name: &str) -> Result<(), HostError> {
        match self.spares.iter().position(|spare| spare.name == name) {
            Some(at) => {
                let spare = self.spares.remove(at);
                self.dispose(None, spare.seat);
                Ok(())
            }
            None => fail(format!("{name} is not a spare")),
        }
    }

    /// The spares, by their names.
    pub(crate) fn spares(&self) -> Vec<String> {
        self.spares.iter().map(|spare| spare.name.clone()).collect()
    }

    /// Spares step in where drives were lost while the array ran. A drive that was merely not there when the array was
    /// started may still come back, and one that made way for a copy is about to.
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
        // A drive for the journal is of another kind.
        let with_data = array.layout().spec().data_drives();
        let lost = array.lost().and(with_data).without(array.wanted_back());
        let places = lost.iter().filter(is_lost);
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
            format!("drive {drive} is in use: fail it first")
        }
        NotReplaced::Filling => format!("drive {drive} is being rebuilt already"),
        NotReplaced::Unrecorded => {
            format!("the failure of drive {drive} is not recorded yet: try again")
        }
        NotReplaced::Failed => {
            "more drives are missing or failed than the array survives: nothing can be rebuilt"
                .to_owned()
        }
        NotReplaced::NotRedundant => {
            "the array is not redundant: nothing can be rebuilt".to_owned()
        }
        NotReplaced::Recovering => {
            "the journal is being written back after a crash: try again".to_owned()
        }
        NotReplaced::Ending => "the array is stopping".to_owned(),
        NotReplaced::Copying { drive: other } if other == drive => {
            format!("drive {drive} is being replaced already")
        }
        NotReplaced::Copying { drive: other } => {
            format!("a copy of drive {other} is being made: one at a time")
        }
        NotReplaced::Unsynced => {
            "redundancy is not valid everywhere yet: try again when the resync is done".to_owned()
        }
        NotReplaced::Needed => format!(
            "the array needs drive {drive} while other drives are missing or failed: replace those first"
        ),
        NotReplaced::OnlyJournal => {
            format!("drive {drive} holds only the journal, which is not copied: fail it first")
        }
        NotReplaced::Unmapped => format!(
            "drive {drive} cannot be copied, because the array has no dirty-region bitmaps: fail it first"
        ),
        NotReplaced::NoMap => {
            format!(
                "what drive {drive} has missed is not known: only a drive that is rebuilt in full can replace it"
            )
        }
        NotReplaced::Busy => format!(
            "drive {drive} has not completed all its commands from before it failed: try again, or restart the array"
        ),
    }
}
