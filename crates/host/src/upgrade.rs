//! Converting an array that is not served from version 2 of its superblock to version 3, and back. No data moves: only what lies
//! in the first and the last 256 sectors of each member is written.
//!
//! ```text
//!   read all members --> every check --> 1. on all: what the version that is in use does not look at; sync
//!                        (no writes)     2. on each: the superblock in its last sector; sync; in sector 0; sync
//!                                        3. on all: what the version before has left is erased
//! ```
//!
//! # Invariants
//!
//! - U1. Nothing is written before every check has passed.
//! - U2. What is written follows from the members as they were before. A run that was cut off anywhere is finished by the next
//!   one: until step 3, which needs nothing of it, what it follows from is on every member, or on those that step 2 has left.
//! - U3. A member that is converted already says exactly what would be written to it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use levelhead_array::Spec;
use levelhead_array::assembly::{Assembly, Copy, Found, Refusal, assemble};
use levelhead_array::damaged::DamagedList;
use levelhead_array::metadata::{Inscription, Metadata, Slot};
use levelhead_array::reserve::{HEAD, TAIL};
use levelhead_array::superblock::{Own, Superblock, SuperblockError, Uuid, copies_of_unknown};
use levelhead_array::version2::{self, Identity, List, Old, Version2Error};
use levelhead_block::Buf;
use levelhead_units::{Extent, Lba, SECTOR_SIZE, Sectors};

use crate::create::{check_distinct, unwritable};
use crate::error::{HostError, fail};
use crate::labels::{self, COMPARED};
use crate::medium::Medium;
use crate::member::MemberSpec;
use crate::opened::Opened;
use crate::refusals::tell;
use crate::scan::{candidates, choose_of};
use crate::starting::Which;
use crate::words::drives_are;

/// Versions of the superblock that an array can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrayVersion {
    /// That of builds before 28 November 2026.
    Two,
    /// Today's.
    Three,
}

/// Whether an array had to be converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// It was converted, or an earlier conversion was finished.
    Done,
    /// It had that version.
    Unneeded,
}

/// An array that has the version that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Upgraded {
    /// Its identity.
    pub uuid: Uuid,
    /// Its shape.
    pub spec: Spec,
    /// The version.
    pub version: ArrayVersion,
    /// Whether that took a conversion.
    pub conversion: Conversion,
    /// The members that were found, in the order in which they were named or found.
    pub members: Vec<MemberSpec>,
}

/// Converts an array. Where an earlier conversion was cut off, it is finished.
///
/// # Errors
///
/// The array was not stopped cleanly; a member is missing or not present, in use, or cannot be read; the members do not agree; or
/// they say what the other version cannot. Nothing was written then. Or a member could not be written: the next call goes on.
pub fn upgrade(which: Which<'_>, to: ArrayVersion) -> Result<Upgraded, HostError> {
    let members = open(which)?;
    let plan = Plan::of(&members, to)?;
    for step in &plan.steps {
        step.run(&members)?;
    }
    Ok(plan.upgraded)
}

/// What a sector with a copy of a superblock is.
#[derive(Clone, Debug)]
enum Says {
    Two(Identity),
    Three(Box<Superblock>),
    /// Something of neither version that a newer program wrote.
    Foreign(SuperblockError),
    /// A superblock with a wrong checksum, or that cannot be: a write that was cut off, perhaps.
    Torn,
    /// Nothing that can be read, or something else.
    Nothing,
}

impl Says {
    fn of(sector: Option<&[u8]>) -> Self {
        let Some(sector) = sector else { return Self::Nothing };
        match (version2::identity(sector), Superblock::decode(sector)) {
            (Ok(identity), _) => Self::Two(identity),
            (Err(_), Ok(superblock)) => Self::Three(Box::new(superblock)),
            (Err(_), Err(error)) if error.is_foreign() => Self::Foreign(error),
            (Err(_), Err(SuperblockError::Absent | SuperblockError::Length { .. })) => {
                Self::Nothing
            }
            (Err(_), Err(_)) => Self::Torn,
        }
    }

    fn version(&self) -> Option<ArrayVersion> {
        match self {
            Self::Two(_) => Some(ArrayVersion::Two),
            Self::Three(_) => Some(ArrayVersion::Three),
            Self::Foreign(_) | Self::Torn | Self::Nothing => None,
        }
    }

    fn identity(&self) -> Option<Identity> {
        match self {
            Self::Two(identity) => Some(*identity),
            Self::Three(superblock) => {
                let Superblock { array, spec, own, .. } = &**superblock;
                Some(Identity { array: *array, spec: *spec, size: own.size })
            }
            Self::Foreign(_) | Self::Torn | Self::Nothing => None,
        }
    }
}

/// A copy of a superblock, or what lies where one belongs.
#[derive(Clone, Debug)]
struct Place {
    lba: Lba,
    sector: Option<Vec<u8>>,
    says: Says,
}

/// A member that is open.
#[derive(Debug)]
struct Member {
    spec: MemberSpec,
    opened: Opened,
    /// Its size when it became a member, as it says.
    size: Sectors,
    /// The sectors in which both versions have a superblock: the first and the last.
    ends: [Place; 2],
    /// Where version 3 alone has one.
    second: Place,
}

impl Member {
    fn read(spec: MemberSpec, opened: Opened) -> Self {
        let place = |lba| {
            let sector = labels::read_sectors(&opened, Extent::new(lba, Sectors::new(1)));
            Place { lba, says: Says::of(sector.as_deref()), sector }
        };
        let [first, second, last] = copies_of_unknown(opened.size()).map(place);
        let said = [&first, &second].into_iter().find_map(|place| place.says.identity());
        let size = said.map_or(opened.size(), |said| said.size);
        let last = if size == opened.size() { last } else { place(copies_of_unknown(size)[2]) };
        Self { spec, opened, size, ends: [first, last], second }
    }

    /// The copies that count: that in sector 255 does where version 2 has none.
    fn copies(&self) -> impl Iterator<Item = &Place> {
        let is_old = |place: &Place| place.says.version() == Some(ArrayVersion::Two);
        let second = (!self.ends.iter().any(is_old)).then_some(&self.second);
        self.ends.iter().chain(second)
    }

    fn has(&self, version: ArrayVersion) -> bool {
        self.copies().any(|place| place.says.version() == Some(version))
    }

    fn identity(&self) -> Option<Identity> {
        self.copies().find_map(|place| place.says.identity())
    }

    /// What it says in version 3, wherever it has that.
    fn three(&self) -> Option<&Superblock> {
        self.ends.iter().chain([&self.second]).find_map(|place| match &place.says {
            Says::Three(superblock) => Some(&**superblock),
            Says::Two(_) | Says::Foreign(_) | Says::Torn | Says::Nothing => None,
        })
    }

    fn check(&self) -> Result<Identity, HostError> {
        for place in &self.ends {
            if let Says::Foreign(error) = &place.says {
                return fail(format!("{} cannot be used: {error}", self.spec));
            }
        }
        let Some(identity) = self.identity() else {
            return fail(format!("{} is not a drive of an array of version 2 or 3", self.spec));
        };
        let (has, had) = (self.opened.size(), self.size);
        if has < had || had < HEAD + TAIL {
            return fail(tell_one(&Refusal::Shrunk { found: 0, has, had }, self));
        }
        Ok(identity)
    }

    fn read_sectors(&self, extent: Extent) -> Option<Vec<u8>> {
        labels::read_sectors(&self.opened, extent)
    }

    /// What it says in version 2, if it has that in one of its ends.
    fn old(&self) -> Result<Option<Old>, HostError> {
        let is_old = |place: &&Place| place.says.version() == Some(ArrayVersion::Two);
        let mut copies =
            self.ends.iter().filter(is_old).filter_map(|place| place.sector.as_deref());
        let Some(first) = copies.next() else { return Ok(None) };
        if copies.any(|other| other != first) {
            return fail(format!(
                "the two superblocks of {} differ: start the array with the build that it was last used with, and stop it",
                self.spec
            ));
        }
        version2::decode(first).map(Some).map_err(|error| self.blame(&error))
    }

    /// U3, where its superblocks are to be one of these, and this is to be there already.
    fn check_meant(
        &self,
        two: &[u8],
        three: &[u8],
        there: &[(Lba, Vec<u8>)],
    ) -> Result<(), HostError> {
        let is_meant = |place: &Place| match place.says.version() {
            Some(ArrayVersion::Two) => place.sector.as_deref() == Some(two),
            Some(ArrayVersion::Three) => place.sector.as_deref() == Some(three),
            None => true,
        };
        let is_there = |(lba, bytes): &(Lba, Vec<u8>)| {
            let sectors = Sectors::new((bytes.len() / SECTOR_SIZE) as u64);
            self.read_sectors(Extent::new(*lba, sectors)).as_ref() == Some(bytes)
        };
        if self.copies().all(is_meant) && there.iter().all(is_there) {
            return Ok(());
        }
        fail(format!(
            "{} does not say what the others say: it was used, or changed, apart from them",
            self.spec
        ))
    }

    fn blame(&self, error: &Version2Error) -> HostError {
        HostError::new(format!("{} cannot be converted: {error}", self.spec))
    }

    /// Sectors in which the version before `to` has left something, which is erased so that nothing takes it for new later.
    fn left(&self, to: ArrayVersion) -> Vec<Lba> {
        let [_, slots @ ..] = COMPARED.map(Lba::new);
        let lists = version2::list_slots(self.size).map(|slot| slot.lba);
        let places = match to {
            ArrayVersion::Three => lists.to_vec(),
            ArrayVersion::Two => slots.into_iter().chain([self.second.lba]).collect(),
        };
        let is_left = |lba: &Lba| {
            let sector = self.read_sectors(Extent::new(*lba, Sectors::new(1)));
            sector.is_some_and(|sector| match to {
                ArrayVersion::Three => version2::is_list(&sector),
                ArrayVersion::Two => version2::is_of_version_3(&sector),
            })
        };
        places.into_iter().filter(is_left).collect()
    }
}

fn tell_one(refusal: &Refusal, member: &Member) -> String {
    tell(refusal, std::slice::from_ref(&member.spec))
}

/// Opens the members for this process alone.
fn open(which: Which<'_>) -> Result<Vec<Member>, HostError> {
    let named = match which {
        Which::Named(members) => members.to_vec(),
        Which::Among { folders, array } => among(folders, array)?,
    };
    check_distinct(&named)?;
    let open = |spec: MemberSpec| {
        let opened = spec.open()?;
        match opened.size() {
            Sectors::ZERO => fail(format!("{spec} is empty")),
            _ => Ok(Member::read(spec, opened)),
        }
    };
    named.into_iter().map(open).collect()
}

/// The members of one array that lie in some folders, whatever its version.
fn among(folders: &[PathBuf], wanted: Option<&str>) -> Result<Vec<MemberSpec>, HostError> {
    let (mut arrays, mut found) = (BTreeMap::new(), Vec::new());
    let (mut looked_at, mut closed) = (0, Vec::new());
    for path in candidates(folders)? {
        let opened = match Medium::open_to_read(&path) {
            Ok(medium) => Opened::from(medium),
            Err(error) => {
                closed.push(error.to_string());
                continue;
            }
        };
        looked_at += 1;
        if opened.size() == Sectors::ZERO {
            continue;
        }
        let member = Member::read(MemberSpec::at(&path), opened);
        if let Some(Identity { array, spec, .. }) = member.identity() {
            arrays.insert(array, spec);
            found.push((array, member.spec));
        }
    }
    let closed: Vec<&String> = closed.iter().collect();
    let chosen = choose_of(&arrays, (looked_at, &closed), folders, wanted)?;
    let chosen = found.into_iter().filter(|(array, _)| *array == chosen);
    Ok(chosen.map(|(_, spec)| spec).collect())
}

/// One thing to do. Members are named by their numbers.
#[derive(Clone, Debug)]
enum Step {
    Write { member: usize, lba: Lba, bytes: Vec<u8> },
    Sync { member: usize },
}

impl Step {
    fn run(&self, members: &[Member]) -> Result<(), HostError> {
        let (member, done) = match self {
            Self::Write { member, lba, bytes } => {
                let member = &members[*member];
                (member, member.opened.write(*lba, Buf::copy_of(bytes).as_slice()))
            }
            Self::Sync { member } => (&members[*member], members[*member].opened.sync()),
        };
        done.map_err(|error| unwritable(&member.spec, &error))
    }
}

/// What is to be done, once every check has passed.
#[derive(Debug)]
struct Plan {
    upgraded: Upgraded,
    steps: Vec<Step>,
}

impl Plan {
    fn of(members: &[Member], to: ArrayVersion) -> Result<Self, HostError> {
        let identities = members.iter().map(Member::check).collect::<Result<Vec<_>, _>>()?;
        let names: Vec<MemberSpec> = members.iter().map(|member| member.spec.clone()).collect();
        let Some(&Identity { array: uuid, spec, .. }) = identities.first() else {
            return fail(tell(&Refusal::Nothing, &names));
        };
        if let Some(at) = identities.iter().position(|other| other.array != uuid) {
            let arrays = [uuid, identities[at].array];
            return fail(tell(&Refusal::DifferentArrays { found: [0, at], arrays }, &names));
        }
        let from = match to {
            ArrayVersion::Two => ArrayVersion::Three,
            ArrayVersion::Three => ArrayVersion::Two,
        };
        let mut steps = if members.iter().any(|member| member.has(from)) {
            let founds = match to {
                ArrayVersion::Three => founds_of_two(members, &names)?,
                ArrayVersion::Two => founds_of_three(members, &names)?,
            };
            let assembly = assemble(&founds);
            let assembly = assembly.map_err(|refusal| HostError::new(tell(&refusal, &names)))?;
            convert(members, &assembly, from, to)?
        } else {
            finish(members)
        };
        let conversion = if steps.is_empty() { Conversion::Unneeded } else { Conversion::Done };
        for (at, member) in members.iter().enumerate() {
            let left = member.left(to);
            let is_clean = left.is_empty();
            let erase = |lba| Step::Write { member: at, lba, bytes: vec![0; SECTOR_SIZE] };
            steps.extend(left.into_iter().map(erase));
            steps.extend((!is_clean).then_some(Step::Sync { member: at }));
        }
        let upgraded = Upgraded { uuid, spec, version: to, conversion, members: names };
        Ok(Self { upgraded, steps })
    }
}

/// The members of an array of version 2, some of which may be converted already, as version 3 would find them.
fn founds_of_two(members: &[Member], names: &[MemberSpec]) -> Result<Vec<Found>, HostError> {
    let olds = members.iter().map(Member::old).collect::<Result<Vec<_>, HostError>>()?;
    let known = || olds.iter().enumerate().filter_map(|(at, old)| Some((at, old.as_ref()?)));
    let newest = known().rev().max_by_key(|(_, old)| old.metadata.generation);
    let (right, newest) = newest.expect("one of them has version 2");
    for (at, old) in known() {
        let generations = [old.metadata.generation, newest.metadata.generation];
        if generations[0] != generations[1] {
            return fail(tell(&Refusal::Stale { found: [at, right], generations }, names));
        }
        if old.metadata != newest.metadata {
            return fail(tell(&Refusal::DifferentWays { found: [right, at] }, names));
        }
    }
    let mut metadata = newest.metadata.clone();
    let own = |(at, old): (usize, &Option<Old>)| {
        let three = || members[at].three().map(|superblock| superblock.own.clone());
        let own = old.as_ref().map(|old| old.own.clone()).or_else(three);
        let is_in = |own: &Own| own.drive.as_usize() < newest.metadata.members.len();
        let refusal = Refusal::DifferentWays { found: [right, at] };
        own.filter(is_in).ok_or_else(|| HostError::new(tell(&refusal, names)))
    };
    let owns = olds.iter().enumerate().map(own).collect::<Result<Vec<Own>, HostError>>()?;
    metadata.damaged = newest_list(members, &owns, &metadata)?;
    let metadata = Arc::new(metadata);
    let found = |(member, own): (&Member, Own)| {
        let superblock = Old { metadata: Metadata::clone(&metadata), own }.superblock();
        let mut found = Found::new(thrice(&superblock), member.opened.size());
        found.slots[0] = Slot::Read(Arc::clone(&metadata));
        found
    };
    Ok(members.iter().zip(owns).map(found).collect())
}

/// The bad-sector list of an array of version 2: of all slots of all members the one with the highest generation.
fn newest_list(
    members: &[Member],
    owns: &[Own],
    metadata: &Metadata,
) -> Result<DamagedList, HostError> {
    let mut newest: Option<List> = None;
    for (member, own) in members.iter().zip(owns) {
        let uuid = metadata.members[own.drive.as_usize()].id.uuid;
        let slots = version2::list_slots(member.size).map(|slot| member.read_sectors(slot));
        let [Some(first), Some(second)] = &slots else {
            return fail(format!(
                "cannot read {}: its bad-sector list cannot be read",
                member.spec
            ));
        };
        let list = version2::decode_lists([first, second], metadata, uuid);
        let Some(list) = list.map_err(|error| {
            HostError::new(format!(
                "the bad-sector list of {} cannot be converted: {error}",
                member.spec
            ))
        })?
        else {
            continue;
        };
        match &newest {
            Some(known) if known.generation == list.generation && *known != list => {
                return fail(format!(
                    "the bad-sector list of {} is not that of the other members, at the same generation",
                    member.spec
                ));
            }
            Some(known) if known.generation >= list.generation => {}
            Some(_) | None => newest = Some(list),
        }
    }
    Ok(newest.map_or_else(DamagedList::default, |list| list.damaged))
}

/// The members of an array of version 3, some of which may be converted already, as they were before.
fn founds_of_three(members: &[Member], names: &[MemberSpec]) -> Result<Vec<Found>, HostError> {
    let found = |(at, member): (usize, &Member)| {
        let Some(superblock) = member.three() else {
            return fail(format!(
                "{} has version 2 and others have version 3, and it does not say that it was one of them",
                member.spec
            ));
        };
        let mut found = Found::new(thrice(superblock), member.opened.size());
        found.read_slots(|extent| member.read_sectors(extent));
        if found.slots.contains(&Slot::Unreadable) {
            return fail(tell(&Refusal::NoNewest { found: at }, names));
        }
        Ok(found)
    };
    members.iter().enumerate().map(found).collect()
}

fn thrice(superblock: &Superblock) -> [Copy; 3] {
    std::array::from_fn(|_| Copy::Read(Box::new(Ok(superblock.clone()))))
}

/// Steps 1 and 2 for these members, which are the array `assembly`.
fn convert(
    members: &[Member],
    assembly: &Assembly,
    from: ArrayVersion,
    to: ArrayVersion,
) -> Result<Vec<Step>, HostError> {
    check_all(assembly)?;
    let (mut prepare, mut switch) = (Vec::new(), Vec::new());
    for placed in assembly.places.iter().flatten() {
        let (at, member) = (placed.found, &members[placed.found]);
        let old = Old { metadata: assembly.metadata.clone(), own: placed.own.clone() };
        let two = version2::encode(&old).map_err(|error| member.blame(&error))?;
        version2::decode(&two).map_err(|error| member.blame(&error))?;
        let three = old.superblock().encode();
        let unseen = unseen(member, &old, &three, to);
        let is_converted = !member.has(from);
        member.check_meant(&two, &three, if is_converted { &unseen } else { &[] })?;
        if !is_converted {
            let write = |(lba, bytes)| Step::Write { member: at, lba, bytes };
            prepare.extend(unseen.into_iter().map(write));
            prepare.push(Step::Sync { member: at });
        }
        let target = if to == ArrayVersion::Two { two } else { three };
        let [first, last] = &member.ends;
        for place in [last, first] {
            if place.sector.as_deref() != Some(&target[..]) {
                switch.push(Step::Write { member: at, lba: place.lba, bytes: target.to_vec() });
                switch.push(Step::Sync { member: at });
            }
        }
    }
    Ok(prepare.into_iter().chain(switch).collect())
}

/// The end of step 2 where every member has the version already: the last write was cut off within a sector.
fn finish(members: &[Member]) -> Vec<Step> {
    let mut steps = Vec::new();
    for (at, member) in members.iter().enumerate() {
        let [first, last] = &member.ends;
        for (torn, other) in [(first, last), (last, first)] {
            if let (Says::Torn, Says::Two(_) | Says::Three(_), Some(good)) =
                (&torn.says, &other.says, &other.sector)
            {
                steps.push(Step::Write { member: at, lba: torn.lba, bytes: good.clone() });
                steps.push(Step::Sync { member: at });
            }
        }
    }
    steps
}

/// Whether all members of the array are there, hold what it wrote, and have its newest metadata.
fn check_all(assembly: &Assembly) -> Result<(), HostError> {
    let Assembly { metadata, absent, lagging, .. } = assembly;
    if let Err(error) = version2::check_state(metadata) {
        return fail(format!("the array cannot be converted: {error}"));
    }
    if !absent.is_empty() {
        let missing = drives_are(*absent);
        return fail(format!("{missing} missing: all members of an array are converted together"));
    }
    if !lagging.is_empty() {
        let are = drives_are(*lagging);
        return fail(format!("{are} behind the others: start the array and stop it cleanly"));
    }
    Ok(())
}

/// What is written to a member first: what the version that it has does not look at.
fn unseen(member: &Member, old: &Old, three: &[u8], to: ArrayVersion) -> Vec<(Lba, Vec<u8>)> {
    let Old { metadata, own } = old;
    let holder = old.member();
    let (slots, first) = match to {
        ArrayVersion::Three => {
            let metadata = Arc::new(metadata.clone());
            (own.slots(), Inscription { metadata, holder }.encode())
        }
        ArrayVersion::Two => {
            let list =
                List { generation: metadata.generation.0, damaged: metadata.damaged.clone() };
            let list = version2::encode_list(&list, metadata.array, holder.uuid);
            (version2::list_slots(member.size), list)
        }
    };
    let [a, b] = slots.map(|slot| slot.lba);
    // Back to version 2, the second copy of the superblock stays what it was: a run that is cut off leaves it to the next.
    vec![(a, first), (b, vec![0; SECTOR_SIZE]), (member.second.lba, three.to_vec())]
}

#[cfg(test)]
mod tests;
