//! Making an array: all checks first, then the superblocks, then the first metadata: drives of an array whose making was cut
//! off before that are none of one, and say so.
//!
//! # Invariants
//!
//! - C1. Where anything is wrong, or the run is dry, nothing on any disk has changed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use levelhead_array::damaged::DamagedList;
use levelhead_array::membership::{Generation, Member, Membership};
use levelhead_array::metadata::{Forced, Inscription, Kept, Logs, Metadata, State};
use levelhead_array::reserve::{Apart, Division, HEAD, Reserved, TAIL};
use levelhead_array::superblock::{Own, Superblock, Uuid};
use levelhead_array::{DRIVE_SECTORS_MAX, Layout, Spec, Wishes};
use levelhead_units::{DriveIdx, Extent, SECTOR_SIZE, Sectors};

use crate::error::{HostError, fail};
use crate::labels;
use crate::medium::{Identity, Medium};
use crate::member::MemberSpec;
use crate::opened::Opened;
use crate::random::draw_uuid;
use crate::signature;

/// How an array is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreateOptions {
    /// Take it that redundancy matches data already, as it does on drives full of zeroes.
    pub assume_clean: bool,
    /// Check everything and change nothing.
    pub dry_run: bool,
    /// Take drives that hold something: another array, a file system, any other data.
    pub force: bool,
    /// Where the array keeps its journal.
    pub journal: Journaling,
}

/// Where an array keeps its journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Journaling {
    /// On every drive, if the array is redundant. Long writes of whole codewords are announced there and not logged.
    #[default]
    Members,
    /// The same, but all writes are logged, whatever their length: it never happens that a crash and the loss of a drive
    /// at the same time leave damaged sectors, and long writes take twice as long.
    All,
    /// Nowhere: after a crash the array is resynced, and what it holds of a drive that is lost then may be wrong.
    None,
}

/// What was made, or would be.
#[derive(Clone, Debug, PartialEq)]
pub struct Created {
    /// The array's shape.
    pub spec: Spec,
    /// Its identity.
    pub uuid: Uuid,
    /// Its size.
    pub size: Sectors,
    /// Sectors of every drive that hold data.
    pub drive_size: Sectors,
    /// Whether its redundancy is valid from the start.
    pub is_synced: bool,
    /// Sectors of every drive with a ring of the journal that hold it; nothing where it keeps none.
    pub journal: Option<Sectors>,
    /// What is in it.
    pub logs: Logs,
    /// Its drives, in order, those for the journal alone behind the others.
    pub drives: Vec<CreatedDrive>,
}

/// One drive of a new array.
#[derive(Clone, Debug, PartialEq)]
pub struct CreatedDrive {
    /// Which.
    pub member: MemberSpec,
    /// Its size.
    pub size: Sectors,
    /// What is not used because another drive is smaller.
    pub unused: Sectors,
    /// Whether its file was created.
    pub is_new: bool,
}

/// A member that passed its own checks.
struct Candidate<'a> {
    member: &'a MemberSpec,
    /// Absent where the file is yet to be created.
    medium: Option<Opened>,
    size: Sectors,
    /// What is erased before it becomes a member.
    foreign: Vec<signature::Found>,
}

impl Candidate<'_> {
    /// Whether a crash leaves every sector of 4 KiB as it was or as it was written. A file that is yet to be created is a
    /// file like others.
    fn writes_whole_sectors(&self) -> bool {
        self.medium.as_ref().is_none_or(Opened::writes_whole_sectors)
    }
}

/// The drives of an array that is to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct NewDrives {
    /// Those with data, in their order.
    pub data: Vec<MemberSpec>,
    /// Those that are for the journal alone; none where the others have it.
    pub journal: Vec<MemberSpec>,
}

impl From<&[MemberSpec]> for NewDrives {
    /// All of them have data.
    fn from(data: &[MemberSpec]) -> Self {
        Self { data: data.to_vec(), journal: Vec::new() }
    }
}

/// Makes the array `spec` over these drives.
pub fn create(
    spec: Spec,
    drives: &NewDrives,
    options: CreateOptions,
) -> Result<Created, HostError> {
    let NewDrives { data, journal } = drives;
    check_count(spec, data)?;
    let spec = check_journals(spec, journal, options)?;
    check_checksums(&spec, options)?;
    let members: Vec<MemberSpec> = data.iter().chain(journal).cloned().collect();
    check_distinct(&members)?;
    let mut candidates =
        members.iter().map(Candidate::find).collect::<Result<Vec<_>, HostError>>()?;
    let created = plan(spec, &candidates, options)?;
    for (at, candidate) in candidates.iter_mut().enumerate() {
        candidate.check_unused(options)?;
        if options.force && options.assume_clean && at < spec.drives() {
            candidate.check_keeps_data()?;
        }
    }
    if !options.dry_run {
        let mut undo = Undo::default();
        if let Err(error) = commit(&created, &mut candidates, &mut undo) {
            undo.run(&candidates);
            return Err(error);
        }
    }
    Ok(created)
}

fn check_count(spec: Spec, members: &[MemberSpec]) -> Result<(), HostError> {
    let (needed, got) = (spec.drives(), members.len());
    if needed == got {
        return Ok(());
    }
    let names: Vec<String> = members.iter().map(ToString::to_string).collect();
    fail(format!("{spec} needs {needed} drives, got {got}: {}", names.join(" ")))
}

/// Checksums are kept by the journal, and computed by the initial sync.
fn check_checksums(spec: &Spec, options: CreateOptions) -> Result<(), HostError> {
    match spec.has_checksums() {
        true if options.journal == Journaling::None => {
            fail("an array without a journal cannot have checksums")
        }
        true if options.assume_clean => fail(
            "the initial sync computes checksums, so --assume-clean is not for an array that has them",
        ),
        true | false => Ok(()),
    }
}

/// The shape with this number of drives for the journal.
fn check_journals(
    spec: Spec,
    journals: &[MemberSpec],
    options: CreateOptions,
) -> Result<Spec, HostError> {
    let (needed, got) = (spec.journals(), journals.len());
    if needed > 0 && needed != got {
        return fail(format!("{spec} needs {needed} drives for its journal, got {got}"));
    }
    if got > 0 && options.journal == Journaling::None {
        return fail("an array without a journal has no drives for one");
    }
    let count = u32::try_from(got).unwrap_or(u32::MAX);
    spec.with_journals(count).map_err(|error| HostError::new(error.to_string()))
}

/// No two names may mean the same drive.
pub(crate) fn check_distinct(members: &[MemberSpec]) -> Result<(), HostError> {
    let mut seen: Vec<(Option<Identity>, &MemberSpec)> = Vec::new();
    for member in members {
        let identity = member.identify()?;
        let same = |(other, earlier): &&(Option<Identity>, &MemberSpec)| match identity {
            Some(_) => *other == identity,
            None => place(earlier) == place(member),
        };
        if let Some((_, earlier)) = seen.iter().find(same) {
            return fail(format!("{earlier} and {member} are the same drive"));
        }
        seen.push((identity, member));
    }
    Ok(())
}

/// Where a file will be that is yet to be made: folders have more names than one, too.
fn place(member: &MemberSpec) -> PathBuf {
    let path = member.path();
    let folder = path.parent().map(|folder| match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    });
    // What has no such folder has its name only.
    let folder = folder.and_then(|folder| folder.canonicalize().ok());
    folder.zip(path.file_name()).map_or_else(|| path.to_owned(), |(folder, name)| folder.join(name))
}

impl<'a> Candidate<'a> {
    fn find(member: &'a MemberSpec) -> Result<Self, HostError> {
        if let Some(size) = member.size_wanted()
            && member.identify()?.is_none()
        {
            member.check_size(size)?;
            member.check_place()?;
            return Ok(Self { member, medium: None, size, foreign: Vec::new() });
        }
        let medium = member.open()?;
        let size = medium.size();
        Ok(Self { member, medium: Some(medium), size, foreign: Vec::new() })
    }

    /// Whether the drive holds nothing, or may be taken all the same: then what it holds by its signatures is to be erased.
    fn check_unused(&mut self, options: CreateOptions) -> Result<(), HostError> {
        match &self.medium {
            Some(medium) if !options.force => check_unused(self.member, medium),
            Some(medium) => {
                self.foreign = signature::find(medium).map_err(|e| unreadable(self.member, &e))?;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Erases what it holds by its signatures. What is written then is this much of its places for the array itself.
    fn erase(&self, own: &Own, first: &Metadata, undo: &mut Undo<'_>) -> Result<(), HostError> {
        let medium = self.medium.as_ref().expect("it was created before");
        let at = own.drive.as_usize();
        let copies = own.copies().map(|lba| Extent::new(lba, Sectors::new(1)));
        let [slot, _] = own.slots();
        let written = copies.into_iter().chain([Extent::new(slot.lba, first.sectors())]);
        let sector = SECTOR_SIZE as u64;
        let written = written.map(|extent| extent.lba.get() * sector..extent.end().get() * sector);
        let foreign = self.foreign.iter().map(|found| found.bytes.clone());
        let saved = signature::save(medium, foreign.chain(written));
        undo.saved.push((at, saved.map_err(|error| unreadable(self.member, &error))?));
        signature::erase(medium, &self.foreign).map_err(|error| unwritable(self.member, &error))
    }

    /// Writes what makes it a member.
    fn write(&self, write: impl FnOnce(&Opened) -> io::Result<()>) -> Result<(), HostError> {
        let medium = self.medium.as_ref().expect("it was created before");
        write(medium).map_err(|error| unwritable(self.member, &error))
    }

    /// Redundancy that matches data does not any more where a part of them is erased.
    fn check_keeps_data(&self) -> Result<(), HostError> {
        let data = HEAD.bytes().get()..(self.size - TAIL).bytes().get();
        let is_data =
            |of: &&signature::Found| of.bytes.start < data.end && data.start < of.bytes.end;
        match self.foreign.iter().find(is_data) {
            None => Ok(()),
            Some(found) => fail(format!(
                "{} holds {} at byte {}, where the array has its data: --force erases it, and then redundancy does not \
                 match, as --assume-clean says",
                self.member, found.what, found.bytes.start
            )),
        }
    }
}

fn unreadable(member: &MemberSpec, error: &io::Error) -> HostError {
    HostError::new(format!("cannot read {member}: {error}"))
}

pub(crate) fn unwritable(member: &MemberSpec, error: &io::Error) -> HostError {
    HostError::new(format!("cannot write to {member}: {error}"))
}

/// Erases what a drive holds by its signatures, so that no other program takes it for its own.
///
/// # Errors
///
/// It is in use, cannot be read or written, or keeps a signature.
pub fn erase_signatures(member: &MemberSpec) -> Result<(), HostError> {
    erase_on(member, &member.open()?)
}

/// The same of a drive that is open.
pub(crate) fn erase_on(member: &MemberSpec, medium: &Opened) -> Result<(), HostError> {
    let found = signature::find(medium).map_err(|error| unreadable(member, &error))?;
    signature::erase(medium, &found).map_err(|error| unwritable(member, &error))
}

/// Whether nothing is there yet, or a drive that holds nothing.
///
/// # Errors
///
/// It holds something, which the sentence names, or is in use.
pub fn check_empty(member: &MemberSpec) -> Result<(), HostError> {
    match member.identify()? {
        None => member.check_place(),
        Some(_) => check_unused(member, &member.open()?),
    }
}

/// Whether a drive holds nothing.
pub(crate) fn check_unused(member: &MemberSpec, medium: &Opened) -> Result<(), HostError> {
    let found = labels::find(medium);
    if let Some(Superblock { array, spec, own, .. }) = found.good() {
        return fail(format!(
            "{member} is drive {} of the array {array} ({spec}), only --force takes it",
            own.drive
        ));
    }
    if let Some(error) = found.copies.iter().find_map(labels::damage) {
        return fail(format!("{member} was a drive of an array ({error}), only --force takes it"));
    }
    let content = signature::content(medium).map_err(|error| unreadable(member, &error))?;
    match content {
        None => Ok(()),
        Some(content) => fail(format!("{member} holds {content}; only --force takes it")),
    }
}

/// What the array will be.
fn plan(
    spec: Spec,
    candidates: &[Candidate<'_>],
    options: CreateOptions,
) -> Result<Created, HostError> {
    let most = Sectors::new(DRIVE_SECTORS_MAX);
    let (with_data, apart) = candidates.split_at(spec.drives());
    for (at, Candidate { member, size, .. }) in candidates.iter().enumerate() {
        let has_data = at < spec.drives();
        let least = if has_data { Division::member_min(&spec) } else { Apart::MEMBER_MIN };
        let what = if has_data { "a drive" } else { "a drive for the journal" };
        if *size > most {
            let (has, most) = (size.bytes(), most.bytes());
            return fail(format!("{member} has {has}, a drive of an array has at most {most}"));
        }
        if *size < least {
            let (has, least) = (size.bytes(), least.bytes());
            return fail(format!("{member} has {has}, {what} of {spec} needs at least {least}"));
        }
    }
    let smallest = smallest(with_data).expect("every array has drives");
    let division = Division::of(&spec, smallest).expect("every member is large enough");
    let drive_size = division.drive_size;
    let journal = match options.journal {
        Journaling::Members | Journaling::All if spec.redundant() > 0 => {
            Some(divide_apart(spec, apart)?.map_or(division.journal(), |apart| apart.journal()))
        }
        Journaling::Members | Journaling::All | Journaling::None => None,
    };
    let are_whole = with_data.iter().all(Candidate::writes_whole_sectors);
    let logs = match options.journal {
        Journaling::Members if are_whole => Logs::Parts,
        Journaling::Members | Journaling::All | Journaling::None => Logs::All,
    };
    if journal == Some(Sectors::ZERO) {
        let has = smallest.bytes();
        return fail(format!("drives of {has} are too small for a journal: use --journal none"));
    }
    let is_zero = with_data.iter().all(|candidate| candidate.medium.is_none());
    let smallest_apart = self::smallest(apart).unwrap_or(Sectors::ZERO);
    let drives = candidates.iter().enumerate().map(|(at, candidate)| CreatedDrive {
        member: candidate.member.clone(),
        size: candidate.size,
        unused: candidate.size - if at < spec.drives() { smallest } else { smallest_apart },
        is_new: candidate.medium.is_none(),
    });
    Ok(Created {
        spec,
        uuid: draw_uuid()?,
        size: Layout::new(spec, drive_size).size(),
        drive_size,
        // Zeroes are a codeword of every code.
        is_synced: (is_zero && !spec.has_checksums())
            || options.assume_clean
            || spec.redundant() == 0,
        journal,
        logs,
        drives: drives.collect(),
    })
}

fn smallest(candidates: &[Candidate<'_>]) -> Option<Sectors> {
    candidates.iter().map(|candidate| candidate.size).min()
}

/// How the drives are divided that are for the journal alone, where there are some.
fn divide_apart(spec: Spec, candidates: &[Candidate<'_>]) -> Result<Option<Apart>, HostError> {
    let Some(smallest) = smallest(candidates) else { return Ok(None) };
    match Apart::of(&spec, smallest) {
        Some(apart) => Ok(Some(apart)),
        None => {
            let has = smallest.bytes();
            fail(format!("drives of {has} are too small for the journal of {spec}"))
        }
    }
}

/// What must be taken back if the array cannot be made after all.
#[derive(Default)]
struct Undo<'a> {
    files: Vec<&'a Path>,
    /// What was erased or written over, by the drive's place.
    saved: Vec<(usize, signature::Saved)>,
}

impl Undo<'_> {
    /// As far as it goes: the error that led here is the one to tell.
    fn run(self, candidates: &[Candidate<'_>]) {
        for (at, saved) in &self.saved {
            if let Some(medium) = &candidates[*at].medium {
                drop(signature::restore(medium, saved));
            }
        }
        for path in self.files {
            drop(fs::remove_file(path));
        }
    }
}

fn commit<'a>(
    created: &Created,
    candidates: &mut [Candidate<'a>],
    undo: &mut Undo<'a>,
) -> Result<(), HostError> {
    for candidate in candidates.iter_mut().filter(|candidate| candidate.medium.is_none()) {
        let path = candidate.member.path();
        Medium::create(path, candidate.size)?;
        undo.files.push(path);
        candidate.medium = Some(candidate.member.open()?);
    }
    let stripes = Layout::new(created.spec, created.drive_size).stripes();
    let synced = if created.is_synced { stripes } else { 0 };
    let (with_data, apart) = candidates.split_at(created.spec.drives());
    let smallest = smallest(with_data).expect("every array has drives");
    let division = Division::of(&created.spec, smallest).expect("it was planned");
    let apart = divide_apart(created.spec, apart)?;
    let reserved = |at: usize, size: Sectors| -> Vec<Reserved> {
        let apart = apart.as_ref().filter(|_| at >= created.spec.drives());
        apart.map_or_else(|| division.reserved(size), |apart| apart.reserved(size))
    };
    let generation = Generation(1);
    let draw = |_| {
        let new = Member::new(draw_uuid()?, Membership::Present);
        Ok(Member { given: generation, ..new })
    };
    let metadata = Metadata {
        generation,
        array: created.uuid,
        run: Uuid::default(),
        base: Generation::NONE,
        spec: created.spec,
        drive_size: created.drive_size,
        state: State::Clean,
        forced: Forced::No,
        synced,
        synced_last: synced,
        journal: created.journal.map(|_| Kept { first: 1, logs: created.logs }),
        wishes: Wishes::default(),
        members: (0..candidates.len()).map(draw).collect::<Result<_, HostError>>()?,
        damaged: DamagedList::default(),
    };
    let metadata = Arc::new(metadata);
    let own = |(at, candidate): (usize, &Candidate<'_>)| Own {
        drive: DriveIdx::from_usize(at),
        size: candidate.size,
        reserved: reserved(at, candidate.size),
    };
    let owns: Vec<Own> = candidates.iter().enumerate().map(own).collect();
    for (candidate, own) in candidates.iter().zip(&owns) {
        candidate.erase(own, &metadata, undo)?;
    }
    for (candidate, own) in candidates.iter().zip(&owns) {
        let superblock = Superblock {
            array: created.uuid,
            member: metadata.members[own.drive.as_usize()].id.uuid,
            spec: created.spec,
            drive_size: created.drive_size,
            logs: metadata.journal.map(|kept| kept.logs),
            own: own.clone(),
            read_only: 0,
        };
        candidate.write(|medium| labels::write(medium, &superblock))?;
    }
    for (candidate, own) in candidates.iter().zip(&owns) {
        let holder = metadata.members[own.drive.as_usize()].id;
        let first = Inscription { metadata: Arc::clone(&metadata), holder };
        candidate.write(|medium| labels::inscribe(medium, own, &first))?;
    }
    Ok(())
}
