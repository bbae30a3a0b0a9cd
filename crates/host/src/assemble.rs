//! Finding an array in its drives: by what their superblocks say, not by their paths or their order.
//!
//! [`quorum`] decides; here members are opened, and what it decided is put into sentences that name them.

use std::fmt;
use std::path::{Path, PathBuf};

use levelhead_array::quorum::{Assembly, Copy, Found, Refusal, quorum};
use levelhead_array::superblock::{Forced, Own, State, Uuid};
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
use crate::refusals::{tell, tell_doubt};
use crate::scan::{choose, scan};
use crate::select::{Defect, LeftOut, Selection, select, tell_with};
use crate::starting::{AssembleOptions, Sought, newly_missing, tell_start};

/// An array whose drives are open and ours; not served yet.
#[derive(Debug)]
pub struct Assembled {
    pub(crate) assembly: Assembly,
    /// One place a drive.
    pub(crate) seats: Vec<Option<Seat>>,
    /// Drives that are back and are given what they have missed.
    pub(crate) returning: Vec<Back>,
    left_out: Vec<LeftOut>,
}

/// A drive that is back.
#[derive(Debug)]
pub(crate) struct Back {
    pub(crate) own: Own,
    pub(crate) seat: Seat,
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

    /// Drives that are back and will be given what they have missed: those that the array went on without, and of which
    /// it is known.
    pub fn returning(&self) -> Vec<(DriveIdx, &MemberSpec)> {
        self.returning.iter().map(|back| (back.own.drive, &back.seat.member)).collect()
    }

    /// The drives that are not there, or not used any more.
    pub fn lost(&self) -> DriveSet {
        self.assembly.absent
    }

    /// Those of them that are missing for the first time: the array has not gone on without them so far.
    pub fn newly_missing(&self) -> DriveSet {
        newly_missing(&self.assembly)
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

    /// What the start does first, because the array was not stopped in good order.
    pub fn recovery(&self) -> Recovery {
        match (self.state(), self.assembly.book.journal) {
            (State::Clean, _) => Recovery::None,
            (State::Dirty, Some(_)) => Recovery::Journal,
            (State::Dirty, None) => Recovery::Resync,
        }
    }

    /// Whether it keeps a journal.
    pub fn has_journal(&self) -> bool {
        self.assembly.book.journal.is_some()
    }

    /// Counts changes of its state.
    pub fn generation(&self) -> u64 {
        self.assembly.book.generation
    }

    /// Why it is not served unless an operator says so, in one sentence.
    pub fn doubt(&self) -> Option<String> {
        self.assembly.doubt.map(|doubt| tell_doubt(doubt, &self.assembly))
    }

    /// Drives that were found in the folders that were searched, say that they are the array's, and are not taken.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// What a server of it records, as a run of its own.
    pub(crate) fn books(&self) -> Result<Books, HostError> {
        Ok(Books::of(&self.assembly, draw_uuid()?))
    }

    fn layout(&self) -> Layout {
        Layout::new(self.assembly.book.spec, self.assembly.book.drive_size)
    }
}

/// What a start does first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Nothing: the array was stopped in good order.
    None,
    /// What is in the journal goes to its place, or counts as never begun.
    Journal,
    /// The redundancy of the whole array is made valid.
    Resync,
}

/// Finds the array that `members` belong to, in any order. It goes on without drives that are missing, if
/// it survives that and [`AssembleOptions::degraded`] says so or it has gone on without them before; they are recorded as
/// missing before something is written, and not sooner.
pub fn assemble(members: &[MemberSpec], options: AssembleOptions) -> Result<Assembled, HostError> {
    let sought = Sought::Named(members.len());
    let Looked { members, media, found, left_out } = look_at_named(members, options)?;
    let refuse = |refusal| HostError::new(tell_with(tell(&refusal, &members), &left_out));
    let assembly = quorum(&found).map_err(refuse)?;
    seat(&members, media, assembly, left_out).check(options, sought)
}

/// The same with the drives of one array that lie in these folders: the only array there, or the one whose UUID
/// begins with `array`. Drives that cannot be part of it are [left out](Assembled::left_out).
pub fn assemble_among(
    folders: &[PathBuf],
    array: Option<&str>,
    options: AssembleOptions,
) -> Result<Assembled, HostError> {
    let mut scan = scan(folders)?;
    let uuid = choose(&scan, folders, array)?;
    let seen = scan.arrays.remove(&uuid).expect("it was chosen among them");
    let members: Vec<MemberSpec> = seen.into_iter().map(|seen| seen.member).collect();
    let Looked { members, media, found, .. } = look(members, Vec::new())?;
    let Selection { left_out, outcome, .. } = select(&members, &found);
    let assembly = outcome.map_err(|refused| HostError::new(refused.sentence))?;
    seat(&members, media, assembly, left_out).check(options, Sought::Among(folders))
}

/// Drives that are open for this process alone, and what their superblocks say.
struct Looked {
    members: Vec<MemberSpec>,
    media: Vec<Opened>,
    found: Vec<Found>,
    left_out: Vec<LeftOut>,
}

fn look(members: Vec<MemberSpec>, left_out: Vec<LeftOut>) -> Result<Looked, HostError> {
    let media = members.iter().map(open).collect::<Result<Vec<Opened>, HostError>>()?;
    let mut found: Vec<Found> = media.iter().map(labels::find).collect();
    labels::find_second_copies(&media, &mut found);
    Ok(Looked { members, media, found, left_out })
}

/// Looks at drives that were named: all of them, or those that can be had, if the array may go on without the others.
fn look_at_named(named: &[MemberSpec], options: AssembleOptions) -> Result<Looked, HostError> {
    check_distinct(named)?;
    let mut members = Vec::new();
    let mut left_out = Vec::new();
    for (at, member) in named.iter().enumerate() {
        if member.is_there()? {
            members.push(member.clone());
        } else if options.degraded {
            let (member, sentence) = (member.clone(), format!("{member} does not exist"));
            left_out.push(LeftOut { member, defect: Defect::Absent, sentence, found: at });
        } else {
            return fail(format!("{member} does not exist, only --degraded goes on without it"));
        }
    }
    let mut looked = look(members, left_out)?;
    if options.degraded {
        looked.leave_out_unreadable();
    }
    Ok(looked)
}

impl Looked {
    fn leave_out_unreadable(&mut self) {
        for at in (0..self.found.len()).rev() {
            if self.found[at].copies.iter().all(|copy| *copy == Copy::Unreadable) {
                let sentence = tell(&Refusal::Unreadable { found: at }, &self.members);
                let member = self.members.remove(at);
                drop((self.found.remove(at), self.media.remove(at)));
                let defect = Defect::Unreadable;
                self.left_out.push(LeftOut { member, defect, sentence, found: at });
            }
        }
    }
}

fn seat(
    members: &[MemberSpec],
    media: Vec<Opened>,
    assembly: Assembly,
    left_out: Vec<LeftOut>,
) -> Assembled {
    let mut media: Vec<Option<Opened>> = media.into_iter().map(Some).collect();
    let seats = assembly.places.iter().map(|place| {
        let at = place.as_ref()?.found;
        let opened = media[at].take().expect("a member has one place");
        Some(Seat { member: members[at].clone(), opened })
    });
    let seats = seats.collect();
    let back = assembly.returning.iter().map(|back| {
        let opened = media[back.found].take().expect("a member has one place");
        let seat = Seat { member: members[back.found].clone(), opened };
        Back { own: back.own.clone(), seat }
    });
    let returning = back.collect();
    Assembled { assembly, seats, returning, left_out }
}

impl Assembled {
    /// Refuses to go on without a drive that was there so far, and where data may be wrong, unless an operator says so.
    fn check(self, options: AssembleOptions, sought: Sought<'_>) -> Result<Self, HostError> {
        match tell_start(&self.assembly, options, sought, &self.left_out) {
            Some(sentence) => fail(sentence),
            None => Ok(self),
        }
    }
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
