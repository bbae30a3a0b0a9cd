//! `levelhead fs inspect`: what is on a disk that is not mounted, as it lies there. Nothing is written.

mod file;
mod journal;
mod overview;
mod sector;

use std::sync::Arc;

use levelhead_block::adapter::Waiting;
use levelhead_erasure::Kernel;
use levelhead_fs::Errno;
use levelhead_fs::inspect::{CannotInspect, Inspector, read_journal, superblock_copies};
use levelhead_host::LoneDrive;
use levelhead_report::json;
use levelhead_units::Lba;
use serde::Serialize;

use self::file::FileShown;
use self::journal::JournalShown;
use self::overview::Overview;
use self::sector::SectorShown;
use super::check::refused;
use super::points;
use super::target::Target;
use levelhead_app::{AppError, Show};

/// What to look at.
#[derive(Clone, Debug)]
pub struct InspectFilesystem {
    /// A file, a block device or an emulated drive.
    pub target: String,
    /// What of it.
    pub what: InspectWhat,
}

/// What of a filesystem is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InspectWhat {
    /// The superblocks, where everything lies, and how much there is.
    Overview,
    /// What has a path.
    Path(String),
    /// What a sector is.
    Sector(Lba),
    /// The journal.
    Journal,
}

/// What was found.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum FilesystemInspection {
    /// The superblocks, where everything lies, and how much there is.
    Overview(Box<Overview>),
    /// What has a path.
    File(Box<FileShown>),
    /// What a sector is.
    Sector(Box<SectorShown>),
    /// The journal.
    Journal(JournalShown),
}

/// Looks at a filesystem that is not mounted.
///
/// # Errors
///
/// There is none, it is mounted or in use, its disk does not answer, or what is wanted is not there.
pub fn inspect_filesystem(ask: &InspectFilesystem) -> Result<FilesystemInspection, AppError> {
    let Target { member, .. } = Target::find(&ask.target)?;
    let name = member.to_string();
    points::check_unmounted(&member)?;
    let drive = Arc::new(LoneDrive::open(&member).map_err(AppError::usage)?);
    let mut device = Waiting::new(Arc::clone(&drive));
    let looked = look(&mut device, &name, &ask.what);
    drive.wind_up();
    looked
}

fn look(
    device: &mut Waiting<LoneDrive>,
    name: &str,
    what: &InspectWhat,
) -> Result<FilesystemInspection, AppError> {
    let blame = |why| cannot(name, what, why);
    let checked = |why| blame(CannotInspect::Filesystem(why));
    Ok(match what {
        InspectWhat::Overview => {
            let (superblock, copies) = superblock_copies(device).map_err(checked)?;
            let opened = Inspector::open(device, Kernel::best());
            let counts = match opened.and_then(|mut inspector| inspector.counts()) {
                Ok(counts) => Some(counts),
                // What is fixed is shown all the same.
                Err(CannotInspect::JournalLost | CannotInspect::Failed(_)) => None,
                Err(why) => return Err(blame(why)),
            };
            let overview = Overview::new(name, &superblock, &copies, counts);
            FilesystemInspection::Overview(Box::new(overview))
        }
        InspectWhat::Path(path) => {
            let mut inspector = Inspector::open(device, Kernel::best()).map_err(blame)?;
            let found = inspector.file(path.as_bytes()).map_err(blame)?;
            FilesystemInspection::File(Box::new(FileShown::new(path, &found)))
        }
        InspectWhat::Sector(lba) => {
            let mut inspector = Inspector::open(device, Kernel::best()).map_err(blame)?;
            let found = inspector.sector(*lba).map_err(blame)?;
            FilesystemInspection::Sector(Box::new(SectorShown::new(&found)))
        }
        InspectWhat::Journal => {
            let journal = read_journal(device).map_err(checked)?;
            FilesystemInspection::Journal(JournalShown::new(&journal))
        }
    })
}

fn cannot(name: &str, what: &InspectWhat, why: CannotInspect) -> AppError {
    match why {
        CannotInspect::Filesystem(why) => refused(name, why),
        CannotInspect::JournalLost => AppError::trouble(format!(
            "{name}: a record of the journal that counts is lost; inspect --journal shows what is left of it"
        )),
        CannotInspect::Beyond { sectors } => {
            let InspectWhat::Sector(lba) = what else { unreachable!("it was asked for a sector") };
            AppError::usage(format!(
                "the filesystem on {name} has {sectors} sectors, got --group {}",
                lba.get()
            ))
        }
        CannotInspect::Failed(errno) => match (what, errno) {
            (InspectWhat::Path(path), Errno::NotFound | Errno::NameTooLong) => {
                AppError::usage(format!("{name} has no file {path}"))
            }
            (InspectWhat::Path(path), Errno::NotDirectory) => AppError::usage(format!(
                "{name} has no file {path}: a part of the path is not a directory"
            )),
            (InspectWhat::Path(path), _) => AppError::trouble(format!(
                "{name}: what leads to {path} cannot be read; fs check says what is lost"
            )),
            (_, _) => AppError::trouble(format!(
                "{name}: metadata cannot be read; fs check says what is lost"
            )),
        },
    }
}

impl Show for FilesystemInspection {
    fn text(&self) -> String {
        match self {
            Self::Overview(shown) => shown.text(),
            Self::File(shown) => shown.text(),
            Self::Sector(shown) => shown.text(),
            Self::Journal(shown) => shown.text(),
        }
    }

    fn json(&self) -> String {
        json::pretty(self).expect("plain values")
    }
}

/// Lines of a name and a value.
fn lines(rows: &[(&str, String)]) -> String {
    rows.iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
}

/// A coding extent.
#[derive(Clone, Copy, Debug, Serialize)]
struct ExtentShown {
    lba: u64,
    data: u32,
    redundant: u8,
    depth: u8,
    kind: &'static str,
}

impl ExtentShown {
    fn new(extent: &levelhead_fs::format::extent::CodingExtent) -> Self {
        let &levelhead_fs::format::extent::CodingExtent { lba, data, redundant, depth, kind } =
            extent;
        Self { lba: lba.get(), data, redundant, depth, kind: kind.name() }
    }

    fn text(&self) -> String {
        let Self { lba, data, redundant, depth, kind } = self;
        format!("extent {lba}: {data} data, {redundant} redundant, depth {depth}, kind {kind}")
    }
}
