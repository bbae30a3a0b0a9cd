//! Finding an array in its drives: by what their superblocks say, not by their paths or their order.
//!
//! The drive with the highest generation is right. Another one that is up to one generation behind
//! missed the end of the last change of state, which is harmless; one further behind, or one that
//! the newest counts as lost, holds old data and is refused.

use std::sync::Arc;

use levelhead_array::superblock::{State, Superblock, Uuid};
use levelhead_array::{Layout, Spec};
use levelhead_units::{DriveIdx, DriveSet, Extent, Lba, Sectors};

use crate::create::check_distinct;
use crate::emulated::Model;
use crate::error::{HostError, fail};
use crate::labels::{self, Label};
use crate::medium::Medium;
use crate::member::MemberSpec;

/// How an array is assembled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AssembleOptions {
    /// Go on where data may be wrong or missing: an array that lost both its power and a drive.
    pub force: bool,
}

/// An array whose drives are open and ours; not served yet.
#[derive(Debug)]
pub struct Assembled {
    pub(crate) superblock: Superblock,
    /// One place a drive.
    pub(crate) seats: Vec<Option<Seat>>,
    pub(crate) synced: u64,
}

/// A drive that is there.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) member: MemberSpec,
    pub(crate) medium: Arc<Medium>,
    superblock: Superblock,
}

impl Seat {
    /// The model in front of what is opened, as this drive of its array; nothing for a real drive.
    pub(crate) fn model(&self, drive: DriveIdx, window: u32) -> Result<Option<Model>, HostError> {
        self.member.model(self.medium.size(), window, &format!("drive/{drive}"))
    }
}

impl Assembled {
    /// The array's shape.
    pub fn spec(&self) -> Spec {
        self.superblock.spec
    }

    /// Its identity.
    pub fn uuid(&self) -> Uuid {
        self.superblock.uuid
    }

    /// Its drives, in order; nothing where one is not there.
    pub fn drives(&self) -> Vec<Option<&MemberSpec>> {
        self.seats.iter().map(|seat| Some(&seat.as_ref()?.member)).collect()
    }

    /// Its size.
    pub fn size(&self) -> Sectors {
        self.layout().size()
    }

    /// The sectors of each drive that hold its data.
    pub fn area(&self) -> Extent {
        let Superblock { data_start, drive_size, .. } = self.superblock;
        Extent::new(Lba::ZERO + data_start, drive_size)
    }

    /// The models that will stand in front of its drives, in order, when it is served with this window;
    /// nothing for a real drive or one that is not there.
    pub fn models(&self, window: u32) -> Result<Vec<Option<Model>>, HostError> {
        let model = |(at, seat): (usize, &Option<Seat>)| match seat {
            Some(seat) => seat.model(DriveIdx::from_usize(at), window),
            None => Ok(None),
        };
        self.seats.iter().enumerate().map(model).collect()
    }

    /// The drives that are not there, or not used any more.
    pub fn lost(&self) -> DriveSet {
        let seats = self.seats.iter().enumerate();
        seats.filter(|(_, seat)| seat.is_none()).map(|(at, _)| DriveIdx::from_usize(at)).collect()
    }

    /// Whether it was stopped in good order.
    pub fn state(&self) -> State {
        self.superblock.state
    }

    /// Stripes whose redundancy will be trusted, and how many there are.
    pub fn synced(&self) -> (u64, u64) {
        (self.synced, self.layout().stripes())
    }

    fn layout(&self) -> Layout {
        Layout::new(self.superblock.spec, self.superblock.drive_size)
    }
}

/// Finds the array that `members` belong to, in any order. Drives that are missing are lost from now
/// on, if the array survives that.
pub fn assemble(members: &[MemberSpec], options: AssembleOptions) -> Result<Assembled, HostError> {
    check_distinct(members)?;
    let found = members.iter().map(find).collect::<Result<Vec<_>, HostError>>()?;
    let Some(newest) = found.iter().max_by_key(|seat| seat.superblock.generation) else {
        return fail("an array is assembled from its drives, got none");
    };
    let superblock = newest.superblock;
    for seat in &found {
        check_history(newest, seat)?;
    }
    let mut seats: Vec<Option<Seat>> = (0..superblock.spec.drives()).map(|_| None).collect();
    for seat in found {
        let drive = seat.superblock.drive;
        if let Some(other) = &seats[drive.as_usize()] {
            let (other, member) = (&other.member, &seat.member);
            return fail(format!("{other} and {member} both say that they are drive {drive}"));
        }
        seats[drive.as_usize()] = Some(seat);
    }
    let mut assembled = Assembled { superblock, seats, synced: superblock.synced };
    check_survival(&assembled)?;
    assembled.synced = trusted(&assembled, options)?;
    Ok(assembled)
}

fn find(member: &MemberSpec) -> Result<Seat, HostError> {
    let medium = member.open()?;
    if medium.size() == Sectors::ZERO {
        return fail(format!("{member} is empty"));
    }
    let label = labels::read(&medium)
        .map_err(|error| HostError::new(format!("cannot read {member}: {error}")))?;
    let superblock = match label {
        Label::Good(superblock) => superblock,
        Label::Absent => return fail(format!("{member} is no drive of an array")),
        Label::Bad(error) => return fail(format!("{member} cannot be used: {error}")),
    };
    let Superblock { data_start, drive_size, .. } = superblock;
    let (has, needs) = (medium.size(), data_start + drive_size);
    if has < needs {
        let (has, needs) = (has.bytes(), needs.bytes());
        return fail(format!("{member} has shrunk to {has}, its array uses {needs} of it"));
    }
    Ok(Seat { member: member.clone(), medium: Arc::new(medium), superblock })
}

/// Whether a drive is of the same array as the newest one and holds what that takes it to hold.
fn check_history(newest: &Seat, seat: &Seat) -> Result<(), HostError> {
    let (right, own) = (&newest.superblock, &seat.superblock);
    let (first, member) = (&newest.member, &seat.member);
    if own.uuid != right.uuid {
        return fail(format!(
            "{first} and {member} belong to different arrays, {} and {}",
            right.uuid, own.uuid
        ));
    }
    let shape =
        |superblock: &Superblock| (superblock.spec, superblock.drive_size, superblock.data_start);
    // Drives are never given back, so of one history the later set of lost drives has them all.
    let same_past = own.lost.without(right.lost).is_empty()
        && (own.generation < right.generation || own.lost == right.lost);
    if shape(own) != shape(right) || !same_past {
        return fail(format!(
            "{first} and {member} have gone different ways since they were one array"
        ));
    }
    if right.lost.contains(own.drive) {
        return fail(format!(
            "{member} holds old data: the array lost it as drive {} and must go on without it",
            own.drive
        ));
    }
    if own.generation + 1 < right.generation {
        return fail(format!(
            "{member} holds old data: it is at generation {}, {first} at {}",
            own.generation, right.generation
        ));
    }
    Ok(())
}

fn check_survival(assembled: &Assembled) -> Result<(), HostError> {
    let (spec, lost) = (assembled.spec(), assembled.lost());
    let (survives, missing) = (spec.redundant(), lost.len() as usize);
    if missing <= survives {
        return Ok(());
    }
    fail(format!(
        "{spec} survives the loss of {survives} drives, {missing} are missing: drives {lost}"
    ))
}

/// Stripes whose redundancy can be trusted.
fn trusted(assembled: &Assembled, options: AssembleOptions) -> Result<u64, HostError> {
    let superblock = &assembled.superblock;
    let (spec, lost, stripes) = (superblock.spec, assembled.lost(), superblock.stripes());
    if spec.redundant() == 0 {
        return Ok(stripes);
    }
    if lost.is_empty() {
        return Ok(match superblock.state {
            State::Clean => superblock.synced,
            State::Dirty => 0,
        });
    }
    // Without the missing drives' data, redundancy is all there is: it is taken as it is, or not.
    let synced = superblock.synced;
    match superblock.state {
        _ if options.force => Ok(synced),
        State::Dirty => fail(format!(
            "the array was not stopped in good order and drives {lost} are missing: what they held \
             may come out wrong, only --force goes on"
        )),
        State::Clean if synced < stripes => fail(format!(
            "drives {lost} are missing and {} of {stripes} stripes were never in sync: what they \
             held there is not to be had, only --force goes on",
            stripes - synced
        )),
        State::Clean => Ok(synced),
    }
}
