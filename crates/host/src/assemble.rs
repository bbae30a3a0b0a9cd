//! Finding an array in its drives: by what their superblocks say, not by their paths or their order.
//!
//! [`quorum`] decides; here members are opened, and what it decided is put into sentences that name them.

use std::fmt;
use std::path::Path;

use levelhead_array::membership::{Membership, Why};
use levelhead_array::quorum::{Assembly, Doubt, Found, Refusal, quorum};
use levelhead_array::superblock::{Forced, State, Uuid};
use levelhead_array::{Area, Books, Layout, Spec};
use levelhead_units::{DriveIdx, DriveSet, Sectors};

use crate::create::check_distinct;
use crate::emulated::Model;
use crate::error::{HostError, fail};
use crate::labels;
use crate::medium::Medium;
use crate::member::MemberSpec;
use crate::opened::Opened;
use crate::random::draw_uuid;

/// How an array is assembled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AssembleOptions {
    /// Go on where data may be wrong or missing: an array that lost both its power and a drive.
    pub force: bool,
}

/// An array whose drives are open and ours; not served yet.
#[derive(Debug)]
pub struct Assembled {
    pub(crate) assembly: Assembly,
    /// One place a drive.
    pub(crate) seats: Vec<Option<Seat>>,
}

/// A drive that is there.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) member: MemberSpec,
    pub(crate) opened: Opened,
}

impl Seat {
    /// The model in front of what is opened, as this drive of its array; nothing for a real drive.
    pub(crate) fn model(&self, drive: DriveIdx, window: u32) -> Result<Option<Model>, HostError> {
        self.member.model(self.opened.size(), window, &format!("drive/{drive}"))
    }
}

impl Assembled {
    /// The array's shape.
    pub fn spec(&self) -> Spec {
        self.assembly.book.spec
    }

    /// Its identity.
    pub fn uuid(&self) -> Uuid {
        self.assembly.book.array
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
    pub fn area(&self) -> &Area {
        &self.assembly.area
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
        self.assembly.absent
    }

    /// Whether it was stopped in good order.
    pub fn state(&self) -> State {
        self.assembly.book.state
    }

    /// Whether an operator has made it go on where data may be wrong, now or earlier.
    pub fn forced(&self) -> Forced {
        if self.assembly.doubt.is_some() { Forced::Yes } else { self.assembly.book.forced }
    }

    /// Stripes whose redundancy will be trusted, and how many there are.
    pub fn synced(&self) -> (u64, u64) {
        (self.assembly.trusted, self.layout().stripes())
    }

    /// What a server of it records, as a run of its own.
    pub(crate) fn books(&self) -> Result<Books, HostError> {
        Ok(Books::of(&self.assembly, draw_uuid()?))
    }

    fn layout(&self) -> Layout {
        Layout::new(self.assembly.book.spec, self.assembly.book.drive_size)
    }
}

/// Finds the array that `members` belong to, in any order. It goes on without drives that are missing, if
/// it survives that; they are recorded as missing before something is written, and not sooner.
pub fn assemble(members: &[MemberSpec], options: AssembleOptions) -> Result<Assembled, HostError> {
    check_distinct(members)?;
    let media = members.iter().map(open).collect::<Result<Vec<Opened>, HostError>>()?;
    let mut found: Vec<Found> = media.iter().map(labels::find).collect();
    labels::find_second_copies(&media, &mut found);
    let assembly = quorum(&found).map_err(|refusal| HostError::new(tell(&refusal, members)))?;
    if let Some(doubt) = assembly.doubt
        && !options.force
    {
        return fail(tell_doubt(doubt, &assembly));
    }
    let mut media: Vec<Option<Opened>> = media.into_iter().map(Some).collect();
    let seats = assembly.places.iter().map(|place| {
        let at = place.as_ref()?.found;
        let opened = media[at].take().expect("a member has one place");
        Some(Seat { member: members[at].clone(), opened })
    });
    let seats = seats.collect();
    Ok(Assembled { assembly, seats })
}

/// The array that a file or device is a drive of. It is only read, also while the array is served.
pub fn array_of(path: &Path) -> Result<Uuid, HostError> {
    let opened = Opened::from(Medium::open_to_read(path)?);
    array_on(&opened).ok_or_else(|| stranger(&path.display()))
}

/// The array that a member is a drive of, if it was handed in; another one is opened for that, exclusively.
pub fn array_of_member(member: &MemberSpec) -> Result<Uuid, HostError> {
    array_on(&member.open()?).ok_or_else(|| stranger(member))
}

fn array_on(opened: &Opened) -> Option<Uuid> {
    if opened.size() == Sectors::ZERO {
        return None;
    }
    let found = labels::find(opened);
    let good = found.copies.iter().find_map(labels::good);
    good.map(|superblock| superblock.book.array)
}

fn stranger(name: &dyn fmt::Display) -> HostError {
    HostError::new(format!("{name} is no drive of an array"))
}

fn open(member: &MemberSpec) -> Result<Opened, HostError> {
    let opened = member.open()?;
    if opened.size() == Sectors::ZERO {
        return fail(format!("{member} is empty"));
    }
    Ok(opened)
}

/// Why the members are no array, in one sentence.
fn tell(refusal: &Refusal, members: &[MemberSpec]) -> String {
    match *refusal {
        Refusal::Nothing => "an array is assembled from its drives, got none".to_owned(),
        Refusal::Stranger { found } => format!("{} is no drive of an array", members[found]),
        Refusal::Unreadable { found } => {
            format!("cannot read {}: neither copy of its superblock can be had", members[found])
        }
        Refusal::Damaged { found, ref error } => {
            format!("{} cannot be used: {error}", members[found])
        }
        Refusal::TwoOwners { found, arrays: [first, second] } => format!(
            "{} has two superblocks that do not belong together, of the arrays {first} and {second}",
            members[found]
        ),
        Refusal::Shrunk { found, has, had } => {
            let (has, had) = (has.bytes(), had.bytes());
            format!("{} has shrunk to {has}, it had {had} when it joined its array", members[found])
        }
        Refusal::ReadOnly { found, features } => format!(
            "{} may only be read by this program, because it uses unknown features: bits \
             {features:#x}",
            members[found]
        ),
        Refusal::DifferentArrays { found: [first, other], arrays: [right, own] } => format!(
            "{} and {} belong to different arrays, {right} and {own}",
            members[first], members[other]
        ),
        Refusal::DifferentWays { found: [first, other] } => format!(
            "{} and {} have gone different ways since they were one array",
            members[first], members[other]
        ),
        Refusal::SamePlace { found: [first, other], drive } => format!(
            "{} and {} both say that they are drive {drive}",
            members[first], members[other]
        ),
        Refusal::LeftBehind { found, drive, membership } => {
            let how = match membership {
                Membership::Missing { since } => {
                    format!("did not have it as drive {drive} at generation {since}")
                }
                Membership::Lost { why: Why::ByHand } => {
                    format!("was told to do without drive {drive}")
                }
                Membership::Lost { why: Why::Failed | Why::Silent } => {
                    format!("lost it as drive {drive}")
                }
                Membership::Filling { .. } => format!("had not filled it as drive {drive}"),
                Membership::Spare => format!("had it as a spare in place {drive}"),
                Membership::Present => unreachable!("a drive that is present is not left behind"),
            };
            format!("{} holds old data: the array {how} and must go on without it", members[found])
        }
        Refusal::Stale { found: [stale, newest], generations: [own, right] } => format!(
            "{} holds old data: it is at generation {own}, {} at {right}",
            members[stale], members[newest]
        ),
        Refusal::NoList { drives } => format!(
            "drives {drives} do not give their lists of damaged sectors, and the others may have an older one"
        ),
        Refusal::TooFew { ref spec, absent } => {
            let (survives, missing) = (spec.redundant(), absent.len());
            if spec.width() < spec.drives() {
                return format!("{spec} does not survive that drives {absent} are missing");
            }
            format!(
                "{spec} survives the loss of {survives} drives, {missing} are missing: drives {absent}"
            )
        }
    }
}

/// What may come out wrong, in one sentence.
fn tell_doubt(doubt: Doubt, assembly: &Assembly) -> String {
    let absent = assembly.absent;
    match doubt {
        Doubt::Unclean => format!(
            "the array was not stopped in good order and drives {absent} are missing: what they held \
             may come out wrong, only --force goes on"
        ),
        Doubt::Unsynced { stripes } => format!(
            "drives {absent} are missing and the redundancy of {stripes} of {} stripes is not known to be \
             valid: what they held there may be wrong or gone, only --force goes on",
            assembly.book.stripes()
        ),
    }
}
