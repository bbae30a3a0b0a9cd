//! Which member is right: what the superblocks of the members that were found say together.
//!
//! ```text
//!   each member's copies --> its word --> one array? --> the highest generation is right
//!                                                               |
//!              which redundancy may be trusted <-- who is absent, who is stale
//! ```
//!
//! # Invariants
//!
//! - Q1. The members of an assembly say the same of the array, except that some of them may have missed the last
//!   change of its state or of its members.
//! - Q2. A member that missed more than that, or that the array did without, is never part of an assembly.
//! - Q3. Redundancy is trusted only where the array was stopped in good order or keeps a journal, or by an
//!   operator's word.
//!
//! A change that makes what a member holds worthless is therefore recorded twice in a row, as two
//! generations: a copy of a member made before it is then two behind.

use std::fmt;

use levelhead_units::{DriveIdx, DriveSet, Extent, Lba, Sectors};

use super::damaged::{self, DamagedList, ListCopy};
use super::membership::{Member, Membership, Why};
use super::missed::{self, FoundMap, MapsOn, PageCopy};
use super::superblock::{Book, Own, State, Superblock, SuperblockError, Uuid};
use crate::shape::{Area, Spec};

/// One copy of a superblock as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Copy {
    /// The sector was read; this is what it says.
    Read(Box<Result<Superblock, SuperblockError>>),
    /// The sector could not be read.
    Unreadable,
}

/// A member as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The first copy, and the second: where the first says that it is, or in the last sector.
    pub copies: [Copy; 2],
    /// What its slots for the list of damaged sectors hold.
    pub lists: [ListCopy; 2],
    /// What its place for maps holds, sector by sector, where its superblock says that there are some.
    pub maps: Vec<PageCopy>,
    /// The member's size.
    pub size: Sectors,
}

impl Found {
    /// What was found of a member's superblock; its lists are to be read once that is known to be good.
    pub fn new(copies: [Copy; 2], size: Sectors) -> Self {
        Self { copies, lists: [ListCopy::Nothing, ListCopy::Nothing], maps: Vec::new(), size }
    }

    /// Looks for the member's lists of damaged sectors, and for maps, where its superblock says that they are. `read`
    /// gives sectors of the member, if it can.
    pub fn read_lists(&mut self, mut read: impl FnMut(Extent) -> Option<Vec<u8>>) {
        if let Ok(word) = word(0, self) {
            self.lists = damaged::find(word.own.damaged(), &mut read);
            // Another member may know of maps that this one has not heard of yet.
            self.maps = match word.book.journal {
                Some(_) => missed::find(word.own.maps(), read),
                None => Vec::new(),
            };
        }
    }
}

/// An array as its members describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembly {
    /// What the newest member says of the array.
    pub book: Book,
    /// Where the data lies on every member.
    pub area: Area,
    /// Which of the members that were found has each place of the array, and what it says of itself.
    pub places: Vec<Option<Placed>>,
    /// Drives that the array goes on without: recorded as lost or missing, or not among those found.
    pub absent: DriveSet,
    /// Drives that were found and are being filled: they count as lost until that is done.
    pub filling: DriveSet,
    /// Those of its drives of which a copy of the superblock does not say what the book says: they missed the
    /// last change.
    pub lagging: DriveSet,
    /// Stripes below this number have redundancy that may be trusted.
    pub trusted: u64,
    /// Why an operator must say that the array shall go on; nothing where it may.
    pub doubt: Option<Doubt>,
    /// The sectors that are damaged.
    pub damaged: FoundDamaged,
    /// The maps of what drives have missed that are not present.
    pub missed: Vec<FoundMap>,
    /// Members that were found and that the array goes on without, and that may be caught up.
    pub returning: Vec<Returning>,
}

/// A member that is back: it holds all but what its map names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returning {
    /// Its number among those that were found.
    pub found: usize,
    /// What it says of itself.
    pub own: Own,
}

/// The newest list of damaged sectors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundDamaged {
    /// What it says.
    pub list: DamagedList,
    /// Its generation, 0 if there was none.
    pub generation: u64,
    /// The newest list that each drive has, in the order of the drives.
    pub newest: Vec<Option<Newest>>,
}

/// The newest list on a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Newest {
    /// Its generation.
    pub generation: u64,
    /// The slot that it is in.
    pub slot: usize,
}

/// A member in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Its number among those that were found.
    pub found: usize,
    /// What it says of itself.
    pub own: Own,
}

/// What may come out wrong if the array goes on. Redundancy then counts as far as it was last known to be
/// valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// It was not stopped in good order, and drives are absent: what they held is computed from redundancy
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
    /// Neither copy of this one's superblock could be read.
    Unreadable {
        /// Which.
        found: usize,
    },
    /// Neither copy of this one's superblock is good, or one was written by a program that knows more.
    Damaged {
        /// Which.
        found: usize,
        /// What is wrong with one of them.
        error: SuperblockError,
    },
    /// The two copies on this one belong to different arrays, or to different members of one.
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
    /// This one holds old data: it missed more than the last change.
    Stale {
        /// Which, and the one that is right.
        found: [usize; 2],
        /// Their generations.
        generations: [u64; 2],
    },
    /// Of the list of damaged sectors there may be a newer one, on drives that do not give it.
    NoList {
        /// Those that do not.
        drives: DriveSet,
    },
    /// More drives are absent than the array survives.
    TooFew {
        /// The array's shape.
        spec: Spec,
        /// Those that are absent.
        absent: DriveSet,
    },
}

/// The array that these members are; each is named by its number in `found`.
pub fn quorum(found: &[Found]) -> Result<Assembly, Refusal> {
    let words = found.iter().enumerate().map(|(at, member)| word(at, member));
    let words = words.collect::<Result<Vec<Superblock>, Refusal>>()?;
    // Of equals the first, so that the order of the others does not matter.
    let newest = (0..words.len()).rev().max_by_key(|&at| words[at].book.generation);
    let newest = newest.ok_or(Refusal::Nothing)?;
    let right = &words[newest].book;
    let data_drives = right.spec.data_drives();
    // The member that others of its kind must be divided like.
    let model = |has_data: bool| {
        let is_one = |at: &usize| data_drives.contains(words[*at].own.drive) == has_data;
        std::iter::once(newest).chain(0..words.len()).find(is_one)
    };
    let Some(area) = model(true).and_then(|at| words[at].own.area(right.drive_size)) else {
        let (spec, absent) = (right.spec, right.spec.data_drives());
        return Err(Refusal::TooFew { spec, absent });
    };
    let mut places: Vec<Option<Placed>> = vec![None; right.spec.members()];
    let mut back: Vec<Returning> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let past = check_past(newest, right, at, word)?;
        let has_data = data_drives.contains(word.own.drive);
        let model = model(has_data).expect("there is this one");
        let has_area = !has_data || word.own.area(right.drive_size).as_ref() == Some(&area);
        if word.own.journal() != words[model].own.journal() || !has_area {
            return Err(Refusal::DifferentWays { found: [model, at] });
        }
        if past == Past::LeftBehind {
            let own = word.own.clone();
            if let Some(other) = back.iter().find(|other| other.own.drive == own.drive) {
                return Err(Refusal::SamePlace { found: [other.found, at], drive: own.drive });
            }
            back.push(Returning { found: at, own });
            continue;
        }
        let place = &mut places[word.own.drive.as_usize()];
        if let Some(Placed { found: other, .. }) = *place {
            return Err(Refusal::SamePlace { found: [other, at], drive: word.own.drive });
        }
        *place = Some(Placed { found: at, own: word.own.clone() });
    }
    let says_it = |copy: &Copy| match copy {
        Copy::Read(read) => read.as_ref().as_ref().is_ok_and(|word| word.book == *right),
        Copy::Unreadable => false,
    };
    let lagging =
        places.iter().flatten().filter(|place| !found[place.found].copies.iter().all(says_it));
    let lagging: DriveSet = lagging.map(|place| place.own.drive).collect();
    let (spec, stripes) = (right.spec, right.stripes());
    let absent = places.iter().enumerate().filter(|(_, place)| place.is_none());
    let absent: DriveSet = absent.map(|(at, _)| DriveIdx::from_usize(at)).collect();
    let is_filling = |(at, place): &(usize, &Option<Placed>)| {
        let is_filled = matches!(right.members[*at].membership, Membership::Filling { .. });
        place.is_some() && is_filled
    };
    let filling = places.iter().enumerate().filter(is_filling);
    let filling: DriveSet = filling.map(|(at, _)| DriveIdx::from_usize(at)).collect();
    let lacking = absent.or(filling);
    if !spec.survives(lacking) {
        return Err(Refusal::TooFew { spec, absent: lacking });
    }
    let damaged = newest_list(found, &places, right, lacking)?;
    let missed = find_maps(found, &places, right, lacking);
    for Returning { found, own } in &back {
        // A ring begins empty under a new name: nothing that it has missed matters.
        let has_data = data_drives.contains(own.drive);
        if has_data && !may_return(&words[*found].book, right, own.drive, &missed) {
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
    let book = right.clone();
    let assembly = Assembly {
        book,
        area,
        places,
        absent,
        filling,
        lagging,
        trusted,
        doubt,
        damaged,
        missed,
        returning: back,
    };
    assembly.check();
    Ok(assembly)
}

impl Assembly {
    /// Asserts what the array relies on that goes on with it.
    pub(super) fn check(&self) {
        let Self { book, places, absent, filling, lagging, .. } = self;
        let count = book.spec.members();
        assert!(
            places.len() == count && book.members.len() == count,
            "Q1: {} places",
            places.len()
        );
        assert!(
            book.spec.survives(absent.or(*filling)),
            "Q2: {absent} are absent, {filling} filled"
        );
        assert!(lagging.and(*absent).is_empty(), "Q1: absent drives say something: {lagging}");
        for (at, place) in places.iter().enumerate() {
            let drive = DriveIdx::from_usize(at);
            assert_eq!(place.is_none(), absent.contains(drive), "Q2: drive {drive}");
            let Some(Placed { own, .. }) = place else { continue };
            assert_eq!(own.drive, drive, "Q1: the place that drive {drive} says it has");
            let membership = book.members[at].membership;
            let is_filled = matches!(membership, Membership::Filling { .. });
            assert_eq!(is_filled, filling.contains(drive), "Q2: drive {drive}");
            assert!(is_filled || membership == Membership::Present, "Q2: drive {drive}");
        }
    }
}

/// The newest list of damaged sectors that a member has.
///
/// A list that does not fit the array, like one that a drive does not give, may be the newest one: a drive that is filled was
/// not needed for that.
fn newest_list(
    found: &[Found],
    places: &[Option<Placed>],
    book: &Book,
    lacking: DriveSet,
) -> Result<FoundDamaged, Refusal> {
    let mut damaged = FoundDamaged::default();
    let mut unreadable = DriveSet::EMPTY;
    for (at, place) in places.iter().enumerate() {
        let mut newest: Option<Newest> = None;
        let lists = place.iter().flat_map(|place| found[place.found].lists.iter().enumerate());
        for (slot, copy) in lists {
            let listing = match copy {
                ListCopy::Nothing => continue,
                ListCopy::Read(listing) => listing,
                ListCopy::Unreadable => {
                    unreadable = unreadable.with(DriveIdx::from_usize(at));
                    continue;
                }
            };
            if listing.array != book.array || listing.member != book.members[at].uuid {
                continue; // It was there before the array.
            }
            let fits = listing.list.ranges().all(|range| {
                range.drive.as_usize() < book.spec.drives()
                    && range.extent.end() <= Lba::ZERO + book.drive_size
            });
            if !fits {
                unreadable = unreadable.with(DriveIdx::from_usize(at));
                continue;
            }
            let generation = listing.generation;
            if newest.is_none_or(|newest| newest.generation < generation) {
                newest = Some(Newest { generation, slot });
            }
            if damaged.generation < generation {
                (damaged.generation, damaged.list) = (generation, listing.list.clone());
            }
        }
        damaged.newest.push(newest);
    }
    if !unreadable.is_empty() && !book.spec.survives(lacking.or(unreadable)) {
        return Err(Refusal::NoList { drives: unreadable });
    }
    Ok(damaged)
}

/// Whether two superblocks on one drive are of the same member, which may just have been given a new name.
fn is_same_member(old: &Superblock, new: &Superblock) -> bool {
    let is_renamed = |before: &Superblock, after: &Superblock| {
        let membership = after.book.members[after.own.drive.as_usize()].membership;
        before.own.drive == after.own.drive
            && before.book.generation < after.book.generation
            && matches!(membership, Membership::Filling { .. })
    };
    old.member() == new.member() || is_renamed(old, new) || is_renamed(new, old)
}

/// What a member says: the newer of its copies.
fn word(found: usize, member: &Found) -> Result<Superblock, Refusal> {
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
                (Ok(new), Some(old)) => {
                    if new.book.array != old.book.array || !is_same_member(old, new) {
                        let arrays = [old.book.array, new.book.array];
                        return Err(Refusal::TwoOwners { found, arrays });
                    }
                    if new.book.generation > old.book.generation {
                        good = Some(new);
                    }
                }
                (Ok(new), None) => good = Some(new),
                (Err(SuperblockError::Absent), _) => {}
                // Whatever the other copy says, this one is newer than this program.
                (Err(error), _) if error.is_foreign() => {
                    return Err(Refusal::Damaged { found, error: error.clone() });
                }
                (Err(error), _) => wrong = Refusal::Damaged { found, error: error.clone() },
            },
        }
    }
    let word = good.ok_or(wrong)?;
    let (has, had) = (member.size, word.own.size);
    if has < had {
        return Err(Refusal::Shrunk { found, has, had });
    }
    if word.read_only != 0 {
        return Err(Refusal::ReadOnly { found, features: word.read_only });
    }
    Ok(word.clone())
}

/// What a member of an array has been through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Past {
    /// It was there all the time.
    Present,
    /// The array does without it.
    LeftBehind,
}

/// Whether a member that the array goes on without is the very drive that it lost, and its map says what it has missed
/// since: `own` is what its superblock says of the array.
fn may_return(own: &Book, right: &Book, drive: DriveIdx, maps: &[FoundMap]) -> bool {
    let map = maps.iter().find(|map| map.key.drive == drive);
    map.is_some_and(|map| is_very_drive(own, &right.members, drive, map.last))
}

/// Whether a drive whose superblock says this of its array is what `others` have lost, and has not been part of an array that
/// went on without them since. It had a record of generation `last` when they lost it, or the one before: an older one is a
/// copy, which lacks what was written in between and is on no map.
pub(crate) fn is_very_drive(own: &Book, others: &[Member], drive: DriveIdx, last: u64) -> bool {
    let is_present = |members: &[Member], at: usize| {
        members.get(at).is_some_and(|member| member.membership == Membership::Present)
    };
    let mut all = (0..others.len()).filter(|&at| at != drive.as_usize());
    let is_of_then = own.generation <= last && last - own.generation <= 1;
    is_of_then && all.all(|at| is_present(&own.members, at) || !is_present(others, at))
}

/// The maps that the book names.
fn find_maps(
    found: &[Found],
    places: &[Option<Placed>],
    book: &Book,
    absent: DriveSet,
) -> Vec<FoundMap> {
    let on = |(at, place): (usize, &Option<Placed>)| {
        let (drive, place) = (DriveIdx::from_usize(at), place.as_ref()?);
        let (member, pages) = (book.members[at].uuid, found[place.found].maps.as_slice());
        Some(MapsOn { drive, member, pages })
    };
    let members: Vec<MapsOn<'_>> = places.iter().enumerate().filter_map(on).collect();
    let is_left = |lost: &[DriveIdx]| {
        lost.is_empty() || book.spec.survives(absent.or(lost.iter().copied().collect()))
    };
    missed::find_maps(book.array, book.stripes(), book.missed.iter(), &members, is_left)
}

/// Whether member `at` is of the same array as the newest one, and what it has been through.
fn check_past(newest: usize, right: &Book, at: usize, word: &Superblock) -> Result<Past, Refusal> {
    let Superblock { book, own, .. } = word;
    if book.array != right.array {
        let arrays = [right.array, book.array];
        return Err(Refusal::DifferentArrays { found: [newest, at], arrays });
    }
    let shape = |book: &Book| (book.spec, book.drive_size);
    let is_equal = book.generation < right.generation || book == right;
    if shape(book) != shape(right) || !is_equal {
        return Err(Refusal::DifferentWays { found: [newest, at] });
    }
    let member = right.members[own.drive.as_usize()];
    let drive = own.drive;
    let missed_more = book.generation + 1 < right.generation;
    match member.membership {
        // It was a member until it was lost, which is one change, and replaced, which is another.
        _ if member.uuid != word.member() && missed_more => {
            return Err(Refusal::Replaced { found: at, drive });
        }
        // It was being taken back, and had not heard of it.
        membership @ (Membership::Filling { .. }
        | Membership::Missing { .. }
        | Membership::Lost { .. })
            if member.uuid != word.member() && book.generation < right.generation =>
        {
            return Err(Refusal::LeftBehind { found: at, drive, membership });
        }
        _ if member.uuid != word.member() => {
            return Err(Refusal::DifferentWays { found: [newest, at] });
        }
        Membership::Present | Membership::Filling { .. } => {}
        // What an operator wanted is not undone by a start.
        Membership::Missing { .. } | Membership::Lost { why: Why::Failed | Why::Silent } => {
            return Ok(Past::LeftBehind);
        }
        membership @ (Membership::Lost { why: Why::ByHand } | Membership::Spare) => {
            return Err(Refusal::LeftBehind { found: at, drive, membership });
        }
    }
    if missed_more {
        let generations = [book.generation, right.generation];
        return Err(Refusal::Stale { found: [at, newest], generations });
    }
    Ok(Past::Present)
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
