//! Where everything lies on a disk that is not mounted: units, and what files have.

use levelhead_block::BlockDevice;
use levelhead_erasure::Kernel;
use levelhead_units::Lba;

use super::{CannotCheck, CheckOptions, Checker, Report, find_superblock};
use crate::format::extent::{CodingExtent, WordSymbol};
use crate::format::superblock::Superblock;

/// See the module.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The superblock that counts.
    pub superblock: Superblock,
    /// Leads of all units that were written, fixed ones, too.
    pub units: Vec<Lba>,
    /// Coding extents of files, and whose they are, in the order in which they were found: those of a file in the order of its pages.
    pub extents: Vec<Surveyed>,
    /// What is wrong.
    pub report: Report,
}

/// A coding extent of a file.
#[derive(Clone, Copy, Debug)]
pub struct Surveyed {
    /// The file.
    pub inode: u64,
    /// Its coding extent.
    pub extent: CodingExtent,
}

impl Surveyed {
    /// The places of its groups' sectors, data sectors first.
    pub fn groups(&self) -> impl Iterator<Item = Vec<Lba>> {
        let extent = self.extent;
        (0..extent.words()).map(move |word| {
            let symbols = extent.word_data(word) as usize + usize::from(extent.redundant);
            let place = |symbol| {
                let sector = extent.sector(WordSymbol { word, symbol });
                extent.lba + levelhead_units::Sectors::new(sector.into())
            };
            (0..symbols).map(place).collect()
        })
    }
}

/// Looks where everything lies; nothing is written.
///
/// # Errors
///
/// There is no filesystem, or the device fails.
pub fn survey(device: &mut dyn BlockDevice, kernel: Kernel) -> Result<Survey, CannotCheck> {
    let superblock = find_superblock(device)?;
    survey_of(device, &superblock, kernel)
}

/// The same with a superblock that was found before.
pub(crate) fn survey_of(
    device: &mut dyn BlockDevice,
    superblock: &Superblock,
    kernel: Kernel,
) -> Result<Survey, CannotCheck> {
    let (options, report) = (CheckOptions::new(kernel), Report::default());
    let mut on_step = |_| {};
    let mut checker = Checker::new(device, superblock.clone(), options, report, &mut on_step);
    checker.surveyed = Some(Found::default());
    checker.run();
    if let Some(reason) = checker.disk.trouble() {
        return Err(CannotCheck::Device { reason: reason.to_owned() });
    }
    let Found { mut units, extents } = checker.surveyed.unwrap_or_default();
    units.sort_unstable();
    units.dedup();
    let superblock = superblock.clone();
    Ok(Survey { superblock, units, extents, report: checker.report })
}

/// What a survey gathers.
#[derive(Default)]
pub(super) struct Found {
    pub(super) units: Vec<Lba>,
    pub(super) extents: Vec<Surveyed>,
}
