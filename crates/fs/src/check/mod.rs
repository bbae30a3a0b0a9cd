//! A check of a filesystem that is not mounted, and repairs.
//!
//! ```text
//!   superblocks --> what a cut has left is put in order --> fixed units --> inodes, trees, names --> what nothing names
//!                                                                                  |                        |
//!        checked once more <-- repaired <-- links, circles, bitmaps, summary <-----+------------------------+
//! ```
//!
//! It asks for sectors and waits, in batches over a [`BlockDevice`]: nothing else happens meanwhile, so that a state machine would
//! only hide the order of things. There is no clock, thread, file or chance in it.
//!
//! # Invariants
//!
//! - CK1. Without [`Repair::All`] nothing is written: what a cut has left is put in order in memory.
//! - CK2. Every unit is read once in all its copies, and every sector belongs to one thing: what is reached a second time is not
//!   followed. So the work has a bound, whatever the disk says.
//! - CK3. Nothing is freed while anything that may name it is lost.
//! - CK4. Memory: 64 bytes for each inode, 160 for each directory, 16 for each name, and two bits for each sector of a group that
//!   is used.

mod data;
mod directories;
pub(crate) mod disk;
mod files;
mod lists;
mod marks;
mod mend;
mod names;
#[cfg(test)]
mod planted;
mod report;
pub(crate) mod settle;
#[cfg(test)]
pub(crate) mod shelf;
mod space;
pub(crate) mod superblocks;
mod survey;
#[cfg(test)]
mod tests;
mod trees;
mod walk;

use std::collections::BTreeSet;

use levelhead_block::BlockDevice;
use levelhead_erasure::Kernel;
use levelhead_units::{Lba, Sectors};

pub use self::report::{Fate, LISTED_MAX, List, Listed, Problem, Report};

pub(crate) use self::survey::survey_of;
pub use self::survey::{Survey, Surveyed, survey};

use self::data::Comparing;
use self::disk::Disk;
use self::settle::{Laid, Settled, settle};
use self::walk::Walk;
use crate::format::inode::Moment;
use crate::format::superblock::Superblock;

/// What is done about problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Nothing is written.
    None,
    /// What has one right answer is repaired.
    All,
}

/// What is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// All metadata.
    Metadata,
    /// All sectors of files, too.
    Data,
}

/// How to check.
#[derive(Clone, Copy, Debug)]
pub struct CheckOptions {
    /// What is done about problems.
    pub repair: Repair,
    /// What is read.
    pub depth: Depth,
    /// What computes redundancy.
    pub kernel: Kernel,
    /// The time of day, for what a repair makes.
    pub now: Moment,
}

impl CheckOptions {
    /// Metadata is read, nothing is written.
    pub fn new(kernel: Kernel) -> Self {
        let (repair, depth) = (Repair::None, Depth::Metadata);
        Self { repair, depth, kernel, now: Moment::default() }
    }
}

/// Why there is nothing to be checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CannotCheck {
    /// No superblock is there.
    NoFilesystem,
    /// This program does not know its version or features.
    Unknown {
        /// The version.
        version: u32,
        /// Incompatible features that are not known.
        features: u64,
    },
    /// It has features with which this program may only read.
    OnlyRead {
        /// Features that only allow to read.
        features: u64,
    },
    /// The device is smaller than the filesystem.
    Short {
        /// What the filesystem has.
        wanted: Sectors,
        /// What the device has.
        has: Sectors,
    },
    /// The device does not answer, or does not store.
    Device {
        /// What it says.
        reason: String,
    },
}

/// Problems that one pass keeps in mind to repair them: the next pass finds the rest.
const WRONG_MAX: usize = 1 << 18;

/// Passes after the first one: what one has repaired can bring to light something else.
const PASSES_MAX: u32 = 8;

/// How far a check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Units that were read.
    pub units: u64,
    /// Sectors of files that were compared.
    pub sectors: u64,
}

/// The superblock that counts.
///
/// # Errors
///
/// There is none, or not for this program.
pub fn find_superblock(device: &mut dyn BlockDevice) -> Result<Superblock, CannotCheck> {
    Ok(superblocks::find(&mut Disk::new(device))?.superblock)
}

/// Checks what is on a device.
///
/// # Errors
///
/// There is no filesystem that could be checked, or the device fails altogether.
pub fn check(device: &mut dyn BlockDevice, options: &CheckOptions) -> Result<Report, CannotCheck> {
    check_with(device, options, &mut |_| {})
}

/// The same; `on_step` is told now and then how far it is.
///
/// # Errors
///
/// There is no filesystem that could be checked, or the device fails altogether.
pub fn check_with(
    device: &mut dyn BlockDevice,
    options: &CheckOptions,
    on_step: &mut dyn FnMut(Step),
) -> Result<Report, CannotCheck> {
    let found = superblocks::find(&mut Disk::new(device))?;
    if options.repair == Repair::All && !found.superblock.may_write() {
        return Err(CannotCheck::OnlyRead { features: found.superblock.read_only });
    }
    let mut report = Report { was_in_order: found.superblock.is_clean, ..Report::default() };
    for lba in &found.bad {
        let fate = if options.repair == Repair::All { Fate::Repaired } else { Fate::Left };
        report.note(Problem::Superblock { lba: *lba }, fate);
    }
    let superblock = &found.superblock;
    match options.repair {
        Repair::None if superblock.is_clean => {
            look(device, options, superblock, report, on_step).map(|found| found.report)
        }
        Repair::None => {
            let mut laid = Laid::new(device);
            look(&mut laid, options, superblock, report, on_step).map(|found| found.report)
        }
        Repair::All => repair(device, options, superblock, report, on_step),
    }
}

/// Looks and repairs, until nothing is left that can be.
fn repair(
    device: &mut dyn BlockDevice,
    options: &CheckOptions,
    superblock: &Superblock,
    report: Report,
    on_step: &mut dyn FnMut(Step),
) -> Result<Report, CannotCheck> {
    let Found { mut report, mut changes } = look(device, options, superblock, report, on_step)?;
    superblocks::rewrite(device, changes)?;
    for _ in 0..PASSES_MAX {
        if !changes.has_changed {
            break;
        }
        let superblock = find_superblock(device)?;
        let later = look(device, options, &superblock, Report::default(), on_step)?;
        changes = later.changes;
        report.settle(&later.report);
        superblocks::rewrite(device, changes)?;
    }
    Ok(report)
}

/// What one pass has found and done.
struct Found {
    report: Report,
    changes: Changes,
}

/// What one pass has written.
#[derive(Clone, Copy, Debug, Default)]
struct Changes {
    /// It has changed anything that the next one may see.
    has_changed: bool,
    /// A copy of a unit could not be written, and may hold an older version.
    has_older: bool,
}

/// Puts what a cut has left in order, and checks.
fn look(
    device: &mut dyn BlockDevice,
    options: &CheckOptions,
    superblock: &Superblock,
    mut report: Report,
    on_step: &mut dyn FnMut(Step),
) -> Result<Found, CannotCheck> {
    let Some(superblock) = put_in_order(device, superblock, options.kernel, &mut report)? else {
        return Ok(Found { report, changes: Changes::default() });
    };
    let mut checker = Checker::new(device, superblock, *options, report, on_step);
    checker.run();
    let has_changed = options.repair == Repair::All && checker.mend();
    if options.repair == Repair::All {
        checker.disk.flush();
        checker.note_unwritable();
    }
    match checker.disk.trouble() {
        Some(reason) => Err(CannotCheck::Device { reason: reason.to_owned() }),
        None => {
            let has_older = !checker.disk.unwritable().is_disjoint(&checker.copies_written);
            Ok(Found { report: checker.report, changes: Changes { has_changed, has_older } })
        }
    }
}

/// Carries out the recovery of what was not stopped in order; nothing if too little is left for it.
fn put_in_order(
    device: &mut dyn BlockDevice,
    superblock: &Superblock,
    kernel: Kernel,
    report: &mut Report,
) -> Result<Option<Superblock>, CannotCheck> {
    if superblock.is_clean {
        return Ok(Some(superblock.clone()));
    }
    match settle(device, superblock, kernel) {
        Settled::Done => {}
        Settled::Broken => report.note(Problem::Unsettled, Fate::Left),
        Settled::JournalLost => {
            report.note(Problem::Journal, Fate::Left);
            return Ok(None);
        }
    }
    find_superblock(device).map(Some)
}

/// The superblock of what is on a device once what a cut has left is in order; nothing if a record of the journal that counts is
/// lost.
pub(crate) fn in_order(
    device: &mut dyn BlockDevice,
    kernel: Kernel,
) -> Result<Option<Superblock>, CannotCheck> {
    let superblock = find_superblock(device)?;
    put_in_order(device, &superblock, kernel, &mut Report::default())
}

/// One pass over everything.
struct Checker<'a> {
    disk: Disk<'a>,
    superblock: Superblock,
    options: CheckOptions,
    report: Report,
    walk: Walk,
    comparing: Comparing,
    /// What is wrong and is not repaired where it is found.
    wrong: Vec<Problem>,
    /// Whether everything was read that may name sectors or inodes (CK3).
    is_known: bool,
    step: Step,
    /// Leads of units that were changed.
    changed: BTreeSet<Lba>,
    /// Copies of units that were written, or could not be.
    copies_written: BTreeSet<Lba>,
    /// Where everything lies, if that is wanted.
    surveyed: Option<survey::Found>,
    on_step: &'a mut dyn FnMut(Step),
}

impl<'a> Checker<'a> {
    fn new(
        device: &'a mut dyn BlockDevice,
        superblock: Superblock,
        options: CheckOptions,
        report: Report,
        on_step: &'a mut dyn FnMut(Step),
    ) -> Self {
        Self {
            disk: Disk::new(device),
            walk: Walk::new(superblock.geometry),
            comparing: Comparing::default(),
            wrong: Vec::new(),
            is_known: true,
            changed: BTreeSet::new(),
            copies_written: BTreeSet::new(),
            step: Step { units: 0, sectors: 0 },
            surveyed: None,
            superblock,
            options,
            report,
            on_step,
        }
    }

    fn run(&mut self) {
        self.check_fixed();
        self.walk_named();
        self.walk_listed();
        self.walk_unnamed();
        self.compare_left();
        self.check_names();
        self.check_lists();
        self.check_space();
    }

    /// What could not be written is not repaired; what counts is in other copies, or in its group.
    fn note_unwritable(&mut self) {
        let (geometry, unwritable) = (self.superblock.geometry, self.disk.unwritable().clone());
        self.report.note_unwritable(&unwritable, &geometry);
        let is_written = |copy: &&Lba| !unwritable.contains(copy);
        let are_too_few = |lead: &Lba| {
            let copies = geometry.copies_of(*lead);
            copies.iter().filter(is_written).count() < copies.len().min(2)
        };
        if self.changed.iter().any(are_too_few) {
            self.disk.note_trouble(Some("too few copies of metadata can be written".to_owned()));
        }
    }

    /// Something is wrong that is not repaired here and now.
    fn note(&mut self, problem: Problem) {
        self.report.note(problem, Fate::Left);
        if self.wrong.len() < WRONG_MAX {
            self.wrong.push(problem);
        }
    }

    /// The same of something that names sectors or inodes: what it names is not known (CK3).
    fn note_unknown(&mut self, problem: Problem) {
        self.is_known = false;
        self.note(problem);
    }

    /// Something is wrong that is repaired here and now, if anything is.
    fn note_mended(&mut self, problem: Problem) {
        let fate = match self.options.repair {
            Repair::None => Fate::Left,
            Repair::All => Fate::Repaired,
        };
        self.report.note(problem, fate);
    }
}
