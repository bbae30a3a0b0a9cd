//! Finding an array in its drives: by what their superblocks say, not by their paths or their order.
//!
//! The [assembly](levelhead_array::assembly) decides; here members are opened, and what it decided is put into sentences that name them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use levelhead_array::assembly::{Assembly, Copy, Found, Refusal, Word};
use levelhead_array::metadata::{Author, Forced, State};
use levelhead_array::superblock::Uuid;
use levelhead_array::{Area, Layout, NewMember, Recorded, Spec};
use levelhead_units::{Bytes, DriveIdx, DriveSet, Sectors};

use crate::create::check_distinct;
use crate::emulated::Model;
use crate::error::{HostError, fail};
use crate::labels;
use crate::medium::{Medium, Thin};
use crate::member::MemberSpec;
use crate::opened::Opened;
use crate::random::draw_uuid;
use crate::refusals::{tell, tell_doubt};
use crate::scan::{Scan, Seen, choose, scan};
use crate::select::{Defect, LeftOut, Selection, Terms, select_on, tell_with};
use crate::starting::{AssembleOptions, Sought, Which, newly_missing, tell_start};

/// An array whose drives are open and ours; not served yet.
#[derive(Debug)]
pub struct Assembled {
    pub(crate) assembly: Assembly,
    /// One place a drive.
    pub(crate) seats: Vec<Option<Seat>>,
    /// Drives that are back and are given what they have missed.
    pub(crate) returning: Vec<Back>,
    left_out: Vec<LeftOut>,
    spares: Spares,
    is_shared: bool,
}

/// Who has written the metadata of an array's drives.
#[derive(Clone, Debug, PartialEq)]
pub struct Authors(Vec<Option<[Option<Author>; 2]>>);

/// Drives that were named as spares and are not drives of the array.
#[derive(Debug, Default)]
struct Spares {
    waiting: Vec<MemberSpec>,
    /// Why others are not, a sentence each.
    refused: Vec<String>,
}

/// A drive that is back.
#[derive(Debug)]
pub(crate) struct Back {
    pub(crate) new: NewMember,
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
        self.assembly.metadata.spec
    }

    /// Its identity.
    pub fn uuid(&self) -> Uuid {
        self.assembly.metadata.array
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
        self.returning.iter().map(|back| (back.new.own.drive, &back.seat.member)).collect()
    }

    /// The drives that are not there, or not used any more.
    pub fn lost(&self) -> DriveSet {
        self.assembly.absent
    }

    /// Drives that are there and do not hold everything yet.
    pub fn filling(&self) -> DriveSet {
        self.assembly.filling
    }

    /// Those of them that are missing for the first time: the array has not gone on without them so far.
    pub fn newly_missing(&self) -> DriveSet {
        newly_missing(&self.assembly)
    }

    /// Whether it was stopped in good order.
    pub fn state(&self) -> State {
        self.assembly.metadata.state
    }

    /// Whether an operator has made it go on where data may be wrong, now or earlier.
    pub fn forced(&self) -> Forced {
        if self.assembly.doubt.is_some() { Forced::Yes } else { self.assembly.metadata.forced }
    }

    /// Stripes whose redundancy will be trusted, and how many there are.
    pub fn synced(&self) -> (u64, u64) {
        (self.assembly.trusted, self.layout().stripes())
    }

    /// What the start does first, because the array was not stopped in good order.
    pub fn recovery(&self) -> Recovery {
        match (self.state(), self.assembly.metadata.journal) {
            (State::Clean, _) => Recovery::None,
            (State::Dirty, Some(_)) => Recovery::Journal,
            (State::Dirty, None) => Recovery::Resync,
        }
    }

    /// Whether what was recorded last is on enough of its drives: a start after any loss that it survives would find
    /// it. A start that finds it on fewer gives it to all of them first.
    pub fn is_recorded(&self) -> bool {
        self.assembly.is_recorded()
    }

    /// Whether it keeps a journal.
    pub fn has_journal(&self) -> bool {
        self.assembly.metadata.journal.is_some()
    }

    /// Counts changes of its state.
    pub fn generation(&self) -> u64 {
        self.assembly.metadata.generation.0
    }

    /// Why it is not served unless an operator says so, in one sentence.
    pub fn doubt(&self) -> Option<String> {
        self.assembly.doubt.map(|doubt| tell_doubt(doubt, &self.assembly))
    }

    /// Drives that were found in the folders that were searched, say that they are the array's, and are not taken.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// File systems that have less room than their drives may still take, a sentence each: writes wait when they are full.
    pub fn short_of_room(&self) -> Vec<String> {
        let mut systems: BTreeMap<u64, (Thin, Vec<String>)> = BTreeMap::new();
        for seat in self.seats.iter().flatten() {
            let Some(thin) = seat.opened.thin() else { continue };
            let entry = systems.entry(thin.system);
            let (sum, names) = entry.or_insert((Thin { wanted: 0, ..thin }, Vec::new()));
            sum.wanted += thin.wanted;
            names.push(seat.member.to_string());
        }
        let short = systems.into_values().filter(|(Thin { wanted, free, .. }, _)| wanted > free);
        let tell = |(Thin { wanted, free, .. }, names): (Thin, Vec<String>)| {
            let [wanted, free] = [wanted, free].map(|bytes| Bytes::new(bytes).short());
            format!(
                "the file system of {} has {free} left and needs {wanted} for all that can be written there: writes wait when it is \
                 full",
                names.join(" and ")
            )
        };
        short.map(tell).collect()
    }

    /// The same where other machines can reach all of its drives, whatever they look like from here.
    pub fn shared(self) -> Self {
        Self { is_shared: true, ..self }
    }

    /// Whether another machine can reach so many of its drives that it could serve the array as well.
    pub fn is_in_reach(&self) -> bool {
        let is_here =
            |seat: &Option<Seat>| seat.as_ref().is_none_or(|seat| !seat.opened.is_in_reach());
        let here = self.seats.iter().enumerate().filter(|(_, seat)| is_here(seat));
        let here: DriveSet = here.map(|(at, _)| DriveIdx::from_usize(at)).collect();
        self.is_shared || self.spec().survives(here)
    }

    /// Who has written the metadata of its drives.
    pub fn authors(&self) -> Authors {
        let seats = self.seats.iter().zip(&self.assembly.places);
        let authors = seats.map(|(seat, place)| {
            let (seat, place) = (seat.as_ref()?, place.as_ref()?);
            Some(labels::authors(&seat.opened, &place.own))
        });
        Authors(authors.collect())
    }

    /// The first drive that another server has written to since these were its authors, in a sentence.
    pub fn newly_written(&self, before: &Authors) -> Option<String> {
        let now = self.authors();
        let pairs = self.seats.iter().zip(before.0.iter().zip(&now.0));
        let strange = |(seat, (before, now)): (&Option<Seat>, _)| {
            (before != now).then(|| seat.as_ref().map(|seat| seat.member.clone()))?
        };
        let member = pairs.filter_map(strange).next()?;
        Some(format!("another server is using the array: it has written to {member} just now"))
    }

    /// Those of the drives that were named as spares that say nothing of this array.
    pub fn spares(&self) -> &[MemberSpec] {
        &self.spares.waiting
    }

    /// Why others of them are neither its drives nor spares, a sentence each.
    pub fn refused_spares(&self) -> &[String] {
        &self.spares.refused
    }

    /// What a server of it records, as a run of its own.
    pub(crate) fn recorded(&self) -> Result<Recorded, HostError> {
        let is_in_reach = self.is_in_reach();
        Ok(Recorded { is_in_reach, ..Recorded::of(&self.assembly, draw_uuid()?) })
    }

    fn layout(&self) -> Layout {
        Layout::new(self.assembly.metadata.spec, self.assembly.metadata.drive_size)
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
    assemble_with_spares(Which::Named(members), &[], options)
}

/// The same with drives that are named, or with those of one array that lie in some folders, of which those are
/// [left out](Assembled::left_out) that cannot be part of it. A spare that says that it is a drive of the same array is
/// taken as one, because it has stepped in; if it cannot be one, the array is assembled
/// [without it](Assembled::refused_spares).
pub fn assemble_with_spares(
    which: Which<'_>,
    spares: &[MemberSpec],
    options: AssembleOptions,
) -> Result<Assembled, HostError> {
    let (mut looked, array, named) = match which {
        Which::Named(members) => {
            let looked = look_at_named(members, options)?;
            let words = looked.found.iter().filter_map(Found::word);
            let newest = words.max_by_key(Word::generation);
            let array = newest.map(|word| word.superblock.array);
            let named = looked.members.len();
            (looked, array, named)
        }
        Which::Among { folders, array } => {
            let mut scan = scan(folders)?;
            if array.is_none() {
                forget_arrays_of_spares(&mut scan, spares);
            }
            let uuid = choose(&scan, folders, array)?;
            let mut seen = scan.arrays.remove(&uuid).expect("it was chosen among them");
            seen.retain(|seen| !is_one_of(&seen.member, spares));
            let members = seen.into_iter().map(|seen| seen.member).collect();
            (look(members, Vec::new(), options)?, Some(uuid), 0)
        }
    };
    let terms = Terms { named, spares: looked.members.len() };
    let mut beside = looked.add_spares(spares, array);
    let Looked { members, media, found, left_out: mut absent } = looked;
    let Selection { left_out, refused_spares, outcome, .. } = select_on(terms, &members, &found);
    let tell = |sentence| tell_with(sentence, &absent);
    let assembly = outcome.map_err(|refused| refused.into_error(tell))?;
    absent.extend(left_out);
    beside.refused.extend(refused_spares.into_iter().map(|spare| spare.sentence));
    let assembled = seat(&members, media, assembly, absent);
    Assembled { spares: beside, ..assembled }.check(options, which.into())
}

/// Of several arrays in folders those are not meant of which spares alone were found.
fn forget_arrays_of_spares(scan: &mut Scan, spares: &[MemberSpec]) {
    let are_spares = |seen: &Vec<Seen>| seen.iter().all(|seen| is_one_of(&seen.member, spares));
    if !scan.arrays.values().all(are_spares) {
        scan.arrays.retain(|_, seen| !are_spares(seen));
    }
}

/// Whether a drive is one of `others`, under this or another name.
fn is_one_of(member: &MemberSpec, others: &[MemberSpec]) -> bool {
    others.iter().any(|other| member.is_same(other))
}

/// Drives that are open for this process alone, and what their superblocks say.
struct Looked {
    members: Vec<MemberSpec>,
    media: Vec<Opened>,
    found: Vec<Found>,
    left_out: Vec<LeftOut>,
}

/// Looks at drives. The array may go on without those that take no writes.
fn look(
    named: Vec<MemberSpec>,
    mut left_out: Vec<LeftOut>,
    options: AssembleOptions,
) -> Result<Looked, HostError> {
    let (mut members, mut media) = (Vec::new(), Vec::new());
    for (at, member) in named.into_iter().enumerate() {
        match open(&member) {
            Ok(opened) => {
                members.push(member);
                media.push(opened);
            }
            Err(error) if error.is_read_only() && options.degraded => {
                let (defect, sentence) = (Defect::ReadOnly, error.to_string());
                left_out.push(LeftOut { member, defect, sentence, found: at });
            }
            Err(error) if error.is_read_only() => {
                return fail(format!("{error}; use --degraded to start without it"));
            }
            Err(error) => return Err(error),
        }
    }
    let mut found: Vec<Found> = media.iter().map(labels::find).collect();
    labels::find_last_copies(&media, &mut found);
    Ok(Looked { members, media, found, left_out })
}

/// Looks at drives that were named: all of them, or those that can be had, if the array may go on without the others.
fn look_at_named(named: &[MemberSpec], options: AssembleOptions) -> Result<Looked, HostError> {
    check_distinct(named)?;
    let mut members = Vec::new();
    let mut left_out = Vec::new();
    for (at, member) in named.iter().enumerate() {
        match member.absence()? {
            None => members.push(member.clone()),
            Some(sentence) if options.degraded => {
                let (member, defect) = (member.clone(), Defect::Absent);
                left_out.push(LeftOut { member, defect, sentence, found: at });
            }
            Some(sentence) => {
                return fail(format!("{sentence}; use --degraded to start without it"));
            }
        }
    }
    let mut looked = look(members, left_out, options)?;
    if options.degraded {
        looked.leave_out_unreadable();
    }
    Ok(looked)
}

impl Looked {
    /// Looks at spares, and adds those that say that they are drives of `array`.
    fn add_spares(&mut self, spares: &[MemberSpec], array: Option<Uuid>) -> Spares {
        let (mut beside, count) = (Spares::default(), self.members.len());
        for (at, spare) in spares.iter().enumerate() {
            if is_one_of(spare, &self.members[..count]) {
                continue; // It has stepped in, and is a member under its other name.
            }
            if let Some(earlier) = spares[..at].iter().find(|earlier| spare.is_same(earlier)) {
                beside.refused.push(format!("{earlier} and {spare} are the same drive"));
                continue;
            }
            let opened = match open(spare) {
                Ok(opened) => opened,
                Err(error) => {
                    beside.refused.push(error.to_string());
                    continue;
                }
            };
            let found = labels::find(&opened);
            let own = found.good().map(|superblock| superblock.array);
            if own.is_none() || own != array {
                beside.waiting.push(spare.clone());
                continue;
            }
            self.members.push(spare.clone());
            self.media.push(opened);
            self.found.push(found);
        }
        beside
    }

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
        let uuid = assembly.metadata.members[back.own.drive.as_usize()].id.uuid;
        Back { new: NewMember { uuid, own: back.own.clone(), held: back.held }, seat }
    });
    let returning = back.collect();
    let (spares, is_shared) = (Spares::default(), false);
    Assembled { assembly, seats, returning, left_out, spares, is_shared }
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
    labels::find(opened).good().map(|superblock| superblock.array)
}

fn stranger(name: &dyn fmt::Display) -> HostError {
    HostError::new(format!("{name} is not a drive of an array"))
}

fn open(member: &MemberSpec) -> Result<Opened, HostError> {
    let opened = member.open()?;
    if opened.size() == Sectors::ZERO {
        return fail(format!("{member} is empty"));
    }
    Ok(opened)
}
