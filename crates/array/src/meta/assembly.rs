//! Which member is right: what the members that were found say together.
//!
//! ```text
//!   superblocks: one array? --> metadata: the highest generation is right
//!                                              |
//!              which redundancy may be trusted <-- who is absent, who is stale
//! ```
//!
//! # Invariants
//!
//! - Q1. The members of an assembly say the same of the array, except that some of them may have missed its last generations.
//! - Q2. A member that has less than it is known to have stored, that the array did without, or that was part of another run
//!   meanwhile, is never part of an assembly.
//! - Q3. Redundancy is trusted only where the array was stopped cleanly or keeps a journal, or by an operator's word.

use std::fmt;
use std::sync::Arc;

use levelhead_units::{DriveIdx, DriveSet, Extent, Sectors};

use super::membership::{Generation, Member, Membership, Why};
use super::metadata::{self, LEAD_MAX, Metadata, Slot, State};
use super::own::{Held, Own};
use super::superblock::{Superblock, SuperblockError, Uuid, copies_of_unknown};
use crate::shape::{Area, Spec};

/// One copy of a superblock as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Copy {
    /// The sector was read; this is what it says.
    Read(Box<Result<Superblock, SuperblockError>>),
    /// The sector could not be read.
    Unreadable,
}

impl Copy {
    /// The superblock that it is, if it is one.
    pub fn good(&self) -> Option<&Superblock> {
        match self {
            Self::Read(read) => read.as_ref().as_ref().ok(),
            Self::Unreadable => None,
        }
    }
}

/// A member as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The copies of its superblock, in their order on the drive.
    pub copies: [Copy; 3],
    /// Its two slots of metadata.
    pub slots: [Slot; 2],
    /// The member's size.
    pub size: Sectors,
}

/// What a member says of the array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// Its superblock.
    pub superblock: Superblock,
    /// Its newest metadata, if it has some.
    pub metadata: Option<Arc<Metadata>>,
    /// Which that is, and where.
    pub held: Option<Held>,
}

impl Word {
    /// The generation of its metadata, [`Generation::NONE`] without.
    pub fn generation(&self) -> Generation {
        self.held.map_or(Generation::NONE, |held| held.generation)
    }
}

impl Found {
    /// What is on a member of this size, which has at least one sector. `read` gives sectors of it, if it can.
    pub fn read(size: Sectors, mut read: impl FnMut(Extent) -> Option<Vec<u8>>) -> Self {
        let mut copy = |lba| match read(Extent::new(lba, Sectors::new(1))) {
            Some(sector) => Copy::Read(Box::new(Superblock::decode(&sector))),
            None => Copy::Unreadable,
        };
        let [first, second, last] = copies_of_unknown(size);
        let before = [copy(first), copy(second)];
        // The last copy of a member that has grown is where the others say that it is.
        let known = before.iter().find_map(Copy::good).filter(|known| known.own.size <= size);
        let last = copy(known.map_or(last, |known| known.own.copies()[2]));
        let [first, second] = before;
        let mut found = Self::new([first, second, last], size);
        found.read_slots(read);
        found
    }

    /// What was found of a member's superblock; its metadata is to be read once that is known to be good.
    pub fn new(copies: [Copy; 3], size: Sectors) -> Self {
        Self { copies, slots: [Slot::Nothing, Slot::Nothing], size }
    }

    /// Looks for the member's metadata where its superblock says that it is. `read` gives sectors of the member, if it can.
    pub fn read_slots(&mut self, read: impl FnMut(Extent) -> Option<Vec<u8>>) {
        if let Some(superblock) = self.good() {
            self.slots = metadata::find(superblock, read);
        }
    }

    /// The first good copy of its superblock.
    pub fn good(&self) -> Option<&Superblock> {
        self.copies.iter().find_map(Copy::good)
    }

    /// What it says, if a copy of its superblock is good.
    pub fn word(&self) -> Option<Word> {
        let superblock = self.good()?.clone();
        let newest = self.newest();
        let held = newest.map(|(slot, metadata)| Held { generation: metadata.generation, slot });
        let metadata = newest.map(|(_, metadata)| Arc::clone(metadata));
        Some(Word { superblock, metadata, held })
    }

    /// Its newest metadata, and the slot that it is in.
    fn newest(&self) -> Option<(usize, &Arc<Metadata>)> {
        self.newest_that(|_| true)
    }

    /// The same of those for which this holds.
    fn newest_that(&self, is_meant: impl Fn(&Metadata) -> bool) -> Option<(usize, &Arc<Metadata>)> {
        let read = self.slots.iter().enumerate().filter_map(|(at, slot)| match slot {
            Slot::Read(metadata) => Some((at, metadata)),
            Slot::Nothing | Slot::Unreadable => None,
        });
        let meant = read.filter(|(_, metadata)| is_meant(metadata));
        meant.max_by_key(|(_, metadata)| metadata.generation)
    }

    /// The newest metadata that it has of the past of `right`. What another run has begun from the same past, and came to one
    /// slot alone, has no consequences: a run that writes is in both slots of every drive that counts for it (G1).
    fn held_of(&self, right: &Metadata) -> Option<Held> {
        let of_past = self.newest_that(|own| {
            let is_right = own.generation == right.generation && *own == *right;
            let is_before = own.generation < right.generation && own.run == right.run;
            is_right || is_before || own.generation <= right.base
        });
        of_past.map(|(slot, own)| Held { generation: own.generation, slot })
    }
}

/// An array as its members describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembly {
    /// What the newest member says of the array.
    pub metadata: Metadata,
    /// Where the data lies on every member.
    pub area: Area,
    /// Which of the members that were found has each place of the array, and what it says of itself.
    pub places: Vec<Option<Placed>>,
    /// Drives that the array goes on without: recorded as lost or missing, or not among those found.
    pub absent: DriveSet,
    /// Drives that were found and are being filled: they count as lost until that is done.
    pub filling: DriveSet,
    /// Those of its drives that do not have the newest metadata.
    pub lagging: DriveSet,
    /// Stripes below this number have redundancy that may be trusted.
    pub trusted: u64,
    /// Why an operator must say that the array shall go on; nothing where it may.
    pub doubt: Option<Doubt>,
    /// Whether members that are not present may lack more than the metadata says: newer metadata may be in slots that cannot
    /// be read, and nowhere else. Who sits where is in both slots of each (G5 of the store).
    pub may_lack_more: bool,
    /// Members that were found and that the array goes on without, and that may be caught up.
    pub returning: Vec<Placed>,
}

/// A member in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Its number among those that were found.
    pub found: usize,
    /// What it says of itself.
    pub own: Own,
    /// The newest metadata that it has.
    pub held: Option<Held>,
    /// Whether every copy of its superblock is as it was written.
    pub is_whole: bool,
}

/// What may come out wrong if the array goes on. Redundancy then counts as far as it was last known to be
/// valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// It was not stopped cleanly, and drives are absent: what they held is computed from redundancy
    /// that may not match.
    Unclean,
    /// Drives are absent, and it was stopped while the redundancy of some stripes was not known to be valid:
    /// what the drives held of these may come out wrong, or is not to be had.
    Unsynced {
        /// Stripes that were not.
        stripes: u64,
    },
}

/// Why the members that were found are no array. Numbers are those of the members among the found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// None was found.
    Nothing,
    /// This one has no superblock.
    Stranger {
        /// Which.
        found: usize,
    },
    /// No copy of this one's superblock could be read.
    Unreadable {
        /// Which.
        found: usize,
    },
    /// A slot of this one's metadata could not be read, and what is in the other is old.
    NoNewest {
        /// Which.
        found: usize,
    },
    /// No copy of this one's superblock is good, or one was written by a program that knows more.
    Damaged {
        /// Which.
        found: usize,
        /// What is wrong with one of them.
        error: SuperblockError,
    },
    /// The copies on this one belong to different arrays, or to different members of one.
    TwoOwners {
        /// Which.
        found: usize,
        /// The arrays that they name.
        arrays: [Uuid; 2],
    },
    /// This one is smaller than it was.
    Shrunk {
        /// Which.
        found: usize,
        /// Its size.
        has: Sectors,
        /// Its size when it became a member.
        had: Sectors,
    },
    /// This one may be read by this program and not written.
    ReadOnly {
        /// Which.
        found: usize,
        /// The features that are not known, as bits.
        features: u64,
    },
    /// Two of them belong to different arrays.
    DifferentArrays {
        /// Which.
        found: [usize; 2],
        /// The arrays that they name.
        arrays: [Uuid; 2],
    },
    /// Two of them were members of one array and have been part of different runs since.
    DifferentWays {
        /// Which.
        found: [usize; 2],
    },
    /// Two of them say that they have the same place.
    SamePlace {
        /// Which.
        found: [usize; 2],
        /// The place.
        drive: DriveIdx,
    },
    /// The array goes on without this one, which holds old data.
    LeftBehind {
        /// Which.
        found: usize,
        /// Its place.
        drive: DriveIdx,
        /// How the array stands with that place.
        membership: Membership,
    },
    /// This one holds old data: another drive has come into its place.
    Replaced {
        /// Which.
        found: usize,
        /// The place.
        drive: DriveIdx,
    },
    /// This one holds old data: less than it is known to have stored.
    Stale {
        /// Which, and the one that is right.
        found: [usize; 2],
        /// Their generations.
        generations: [Generation; 2],
    },
    /// None of them has the array's metadata.
    NoMetadata,
    /// More drives are absent than the array survives.
    TooFew {
        /// The array's shape.
        spec: Spec,
        /// Those that are absent.
        absent: DriveSet,
    },
}

/// The array that these members are; each is named by its number in `found`.
pub fn assemble(found: &[Found]) -> Result<Assembly, Refusal> {
    let words = found.iter().enumerate().map(|(at, member)| word(at, member));
    let words = words.collect::<Result<Vec<Word>, Refusal>>()?;
    // Of equals the first, so that the order of the others does not matter.
    let newest = (0..words.len()).rev().max_by_key(|&at| words[at].generation());
    let newest = newest.ok_or(Refusal::Nothing)?;
    check_arrays(&words, newest)?;
    let right = words[newest].metadata.as_deref().ok_or(Refusal::NoMetadata)?;
    let data_drives = right.spec.data_drives();
    // The member that others of its kind must be divided like.
    let model = |has_data: bool| {
        let is_one = |at: &usize| data_drives.contains(words[*at].superblock.own.drive) == has_data;
        std::iter::once(newest).chain(0..words.len()).find(is_one)
    };
    let area_of = |own: &Own| own.area(&right.spec, right.drive_size);
    let Some(area) = model(true).and_then(|at| area_of(&words[at].superblock.own)) else {
        let (spec, absent) = (right.spec, right.spec.data_drives());
        return Err(Refusal::TooFew { spec, absent });
    };
    let mut places: Vec<Option<Placed>> = vec![None; right.spec.members()];
    let mut back: Vec<Placed> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let past = check_past(newest, right, at, word, &found[at])?;
        let own = &word.superblock.own;
        let has_data = data_drives.contains(own.drive);
        let model = model(has_data).expect("there is this one");
        let has_area = !has_data || area_of(own).as_ref() == Some(&area);
        let known = &words[model].superblock.own;
        if (own.journal(), own.list()) != (known.journal(), known.list()) || !has_area {
            return Err(Refusal::DifferentWays { found: [model, at] });
        }
        let held = match past {
            Past::Present(held) => held,
            Past::LeftBehind => word.held,
        };
        let is_whole = found[at].copies.iter().all(|copy| copy.good().is_some());
        let placed = Placed { found: at, own: own.clone(), held, is_whole };
        if past == Past::LeftBehind {
            if let Some(other) = back.iter().find(|other| other.own.drive == own.drive) {
                return Err(Refusal::SamePlace { found: [other.found, at], drive: own.drive });
            }
            back.push(placed);
            continue;
        }
        let place = &mut places[own.drive.as_usize()];
        if let Some(Placed { found: other, .. }) = *place {
            return Err(Refusal::SamePlace { found: [other, at], drive: own.drive });
        }
        *place = Some(placed);
    }
    let has_it = |held: Option<Held>| held.map(|held| held.generation) == Some(right.generation);
    let lagging = places.iter().flatten().filter(|place| !has_it(place.held));
    let lagging: DriveSet = lagging.map(|place| place.own.drive).collect();
    let (spec, stripes) = (right.spec, right.stripes());
    let absent = places.iter().enumerate().filter(|(_, place)| place.is_none());
    let absent: DriveSet = absent.map(|(at, _)| DriveIdx::from_usize(at)).collect();
    let is_filling =
        |(at, place): &(usize, &Option<Placed>)| place.is_some() && right.members[*at].is_filling();
    let filling = places.iter().enumerate().filter(is_filling);
    let filling: DriveSet = filling.map(|(at, _)| DriveIdx::from_usize(at)).collect();
    let lacking = absent.or(filling);
    if !spec.survives(lacking) {
        return Err(Refusal::TooFew { spec, absent: lacking });
    }
    let unreadable = unreadable(found, &places);
    let may_lack_more = !unreadable.is_empty() && spec.is_enough(lacking.or(unreadable));
    for Placed { found, own, .. } in &back {
        // A ring begins empty under a new seating: nothing that it has missed matters.
        let has_data = data_drives.contains(own.drive);
        let may_return = words[*found]
            .metadata
            .as_deref()
            .is_some_and(|known| may_return(known, &right.members, own.drive, LEAD_MAX));
        if has_data && !may_return {
            let (found, drive) = (*found, own.drive);
            let membership = right.members[drive.as_usize()].membership;
            return Err(Refusal::LeftBehind { found, drive, membership });
        }
    }
    let is_clean = right.state == State::Clean;
    // What was being written is in the journal, and all else is as it was (J).
    let known =
        if is_clean { Some(right.synced) } else { right.journal.and(Some(right.synced_last)) };
    let (trusted, doubt) = match (known, lacking.and(data_drives).is_empty()) {
        _ if spec.redundant() == 0 => (stripes, None),
        (Some(known), true) => (known, None),
        // Nothing is computed: every copy that is left has all writes that were answered.
        (known, false) if spec.is_mirror() => (known.unwrap_or(0), None),
        (Some(known), false) if known == stripes => (known, None),
        (Some(known), false) => {
            (right.synced_last, Some(Doubt::Unsynced { stripes: stripes - known }))
        }
        (None, true) => (0, None),
        (None, false) => (right.synced_last, Some(Doubt::Unclean)),
    };
    let is_trusted = trusted > 0 && spec.redundant() > 0;
    let is_sure = is_clean || doubt.is_some() || right.journal.is_some();
    assert!(is_sure || !is_trusted, "Q3: {trusted} stripes are trusted");
    let assembly = Assembly {
        metadata: right.clone(),
        area,
        places,
        absent,
        filling,
        lagging,
        trusted,
        doubt,
        may_lack_more,
        returning: back,
    };
    assembly.check();
    Ok(assembly)
}

impl Assembly {
    /// Whether the metadata is on enough of its drives: a start after any loss that it survives would find it. A start that
    /// finds it on fewer gives it to all of them first.
    pub fn is_recorded(&self) -> bool {
        let drives = self.places.iter().flatten().map(|place| place.own.drive);
        let copies = drives.collect::<DriveSet>().without(self.lagging);
        self.lagging.is_empty() || self.metadata.is_on_enough(copies)
    }

    /// Asserts what the array relies on that goes on with it.
    pub(super) fn check(&self) {
        let Self { metadata, places, absent, filling, lagging, .. } = self;
        let count = metadata.spec.members();
        let are_all = places.len() == count && metadata.members.len() == count;
        assert!(are_all, "Q1: {} places", places.len());
        assert!(
            metadata.spec.survives(absent.or(*filling)),
            "Q2: {absent} are absent, {filling} filled"
        );
        assert!(lagging.and(*absent).is_empty(), "Q1: absent drives say something: {lagging}");
        for (at, place) in places.iter().enumerate() {
            let drive = DriveIdx::from_usize(at);
            assert_eq!(place.is_none(), absent.contains(drive), "Q2: drive {drive}");
            let Some(Placed { own, .. }) = place else { continue };
            assert_eq!(own.drive, drive, "Q1: the place that drive {drive} says it has");
            let member = &metadata.members[at];
            assert_eq!(member.is_filling(), filling.contains(drive), "Q2: drive {drive}");
            assert!(member.is_filling() || member.is_present(), "Q2: drive {drive}");
        }
    }
}

/// Members of which a slot cannot be read: it may have been a newer one.
fn unreadable(found: &[Found], places: &[Option<Placed>]) -> DriveSet {
    let is_meant = |place: &&Placed| found[place.found].slots.contains(&Slot::Unreadable);
    places.iter().flatten().filter(is_meant).map(|place| place.own.drive).collect()
}

/// What a member says.
fn word(found: usize, member: &Found) -> Result<Word, Refusal> {
    let mut good: Option<&Superblock> = None;
    let mut wrong = Refusal::Stranger { found };
    for copy in &member.copies {
        match copy {
            Copy::Unreadable => {
                if let Refusal::Stranger { .. } = wrong {
                    wrong = Refusal::Unreadable { found };
                }
            }
            Copy::Read(read) => match (&**read, good) {
                // None is ever changed.
                (Ok(new), Some(old)) if new != old => {
                    return Err(Refusal::TwoOwners { found, arrays: [old.array, new.array] });
                }
                (Ok(new), _) => good = Some(new),
                (Err(SuperblockError::Absent), _) => {}
                // Whatever the other copies say, this one is newer than this program.
                (Err(error), _) if error.is_foreign() => {
                    return Err(Refusal::Damaged { found, error: error.clone() });
                }
                (Err(error), _) => wrong = Refusal::Damaged { found, error: error.clone() },
            },
        }
    }
    let Some(word) = good.and_then(|_| member.word()) else { return Err(wrong) };
    let (has, had) = (member.size, word.superblock.own.size);
    if has < had {
        return Err(Refusal::Shrunk { found, has, had });
    }
    if word.superblock.read_only != 0 {
        return Err(Refusal::ReadOnly { found, features: word.superblock.read_only });
    }
    Ok(word)
}

/// Whether all are of the same array as the newest one.
fn check_arrays(words: &[Word], newest: usize) -> Result<(), Refusal> {
    let right = &words[newest].superblock;
    for (at, Word { superblock, .. }) in words.iter().enumerate() {
        if superblock.array != right.array {
            let arrays = [right.array, superblock.array];
            return Err(Refusal::DifferentArrays { found: [newest, at], arrays });
        }
        let shape = |of: &Superblock| (of.spec, of.drive_size, of.logs);
        if shape(superblock) != shape(right) {
            return Err(Refusal::DifferentWays { found: [newest, at] });
        }
    }
    Ok(())
}

/// What a member of an array has been through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Past {
    /// It was there all the time, and has this of the metadata.
    Present(Option<Held>),
    /// The array does without it.
    LeftBehind,
}

/// What member `at` has been through, as the newest metadata says.
fn check_past(
    newest: usize,
    right: &Metadata,
    at: usize,
    word: &Word,
    found: &Found,
) -> Result<Past, Refusal> {
    let drive = word.superblock.own.drive;
    let member = &right.members[drive.as_usize()];
    if member.id.uuid != word.superblock.member {
        return Err(Refusal::Replaced { found: at, drive });
    }
    let held = found.held_of(right);
    // One that is away may have some generations more that the others have not heard of.
    let is_there = member.is_present() || member.is_filling();
    let is_ahead = word.generation() > member.given.plus(LEAD_MAX);
    if held.is_none() && word.held.is_some() && (is_there || is_ahead) {
        return Err(Refusal::DifferentWays { found: [newest, at] });
    }
    match member.membership {
        Membership::Present | Membership::Filling { .. } => {}
        // What an operator wanted is not undone by a start.
        Membership::Missing | Membership::Lost { why: Why::Failed | Why::Silent } => {
            return Ok(Past::LeftBehind);
        }
        membership @ (Membership::Lost { why: Why::ByHand } | Membership::Spare) => {
            return Err(Refusal::LeftBehind { found: at, drive, membership });
        }
    }
    let has = held.map_or(Generation::NONE, |held| held.generation);
    if has < member.stored {
        if found.slots.contains(&Slot::Unreadable) {
            return Err(Refusal::NoNewest { found: at });
        }
        return Err(Refusal::Stale { found: [at, newest], generations: [has, right.generation] });
    }
    Ok(Past::Present(held))
}

/// Whether a drive with this metadata is the very one that the place has lost, of which it is known what it lacks, and has
/// not been part of an array that went on without the others since. A drive that has less than it had stored is a copy from
/// before. It was given `lead` generations at most that those who lost it have not heard of; up to what they know it was given
/// it has what they have had.
pub(crate) fn may_return(own: &Metadata, others: &[Member], drive: DriveIdx, lead: u64) -> bool {
    let Some(member) = others.get(drive.as_usize()) else { return false };
    let has = own.generation;
    let mut all = others
        .iter()
        .enumerate()
        .filter(|(at, other)| *at != drive.as_usize() && other.is_present());
    // One that was being filled, and holds everything by now, was there.
    let is_there = |at: usize, other: &Member| {
        let known = own.members.get(at);
        known.is_some_and(|known| known.is_present() || known.is_filling() && known.id == other.id)
    };
    let is_of_then = has <= member.given
        || has <= member.given.plus(lead) && all.all(|(at, other)| is_there(at, other));
    member.lacks.is_some() && member.stored <= has && is_of_then
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unclean => f.write_str("the array was not stopped cleanly"),
            Self::Unsynced { stripes } => {
                let of = if *stripes == 1 { "stripe" } else { "stripes" };
                write!(f, "the redundancy of {stripes} {of} is not known to be valid")
            }
        }
    }
}

#[cfg(test)]
mod tests;
