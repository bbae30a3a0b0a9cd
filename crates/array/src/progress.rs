//! How far the array's own work is, and what it has found, as people are told.

use levelhead_units::DriveIdx;

/// How far the array is with making its redundancy valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resync {
    /// Nothing is under way; there may be stripes left to do.
    Idle,
    /// A step is under way.
    Running,
    /// It cannot go on: a drive is lost, or data of the next stripes cannot be read. A write to those
    /// stripes lets it try again.
    Stuck,
}

/// How far a resync is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResyncProgress {
    /// Stripes whose redundancy is valid, from the first on.
    pub synced: u64,
    /// All stripes.
    pub stripes: u64,
}

/// How a scrub stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScrubState {
    /// None was started since the array was.
    #[default]
    Idle,
    /// It is under way.
    Running,
    /// An operator stopped it; it goes on from there when it is started.
    Stopped,
    /// It has seen everything.
    Done,
}

/// How far a scrub is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubProgress {
    /// How it stands.
    pub state: ScrubState,
    /// Stripes below this one were looked at.
    pub to: u64,
    /// All stripes.
    pub stripes: u64,
    /// What it has found.
    pub found: ScrubFound,
    /// Runs of sectors among that which were not reported one by one, because they were too many.
    pub unreported: u64,
}

/// What was found wrong, by a scrub or by reads of clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubFound {
    /// Sectors that their drives did not give and do again.
    pub unreadable: u64,
    /// Sectors that held something else, and hold what was written again.
    pub wrong: u64,
    /// Sectors of either kind that could not be repaired.
    pub unrepaired: u64,
    /// Codewords that do not match, and of which it cannot be told what is wrong.
    pub unlocated: u64,
}

/// The part of it that was found on one drive since the array was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveFound {
    /// The drive.
    pub drive: DriveIdx,
    /// Sectors that it did not give and does again.
    pub unreadable: u64,
    /// Sectors that held something else, and hold what was written again.
    pub wrong: u64,
    /// Sectors of either kind that could not be repaired.
    pub unrepaired: u64,
}

impl DriveFound {
    /// Nothing was found on this drive.
    pub(crate) const fn nothing(drive: DriveIdx) -> Self {
        Self { drive, unreadable: 0, wrong: 0, unrepaired: 0 }
    }
}

/// What was wrong with a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its drive did not give it.
    Unreadable,
    /// It held something else than what was written.
    Wrong,
}

/// What a mismatch is blamed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// A drive, whichever of its sectors is wrong. A server does this.
    Drives,
    /// One sector. For a test that must notice what that does.
    Sectors,
}

/// How far a rebuild is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RebuildProgress {
    /// The drive that is filled.
    pub drive: DriveIdx,
    /// Stripes below this number are done.
    pub front: u64,
    /// Stripes below this number are done for good.
    pub mark: u64,
    /// All stripes.
    pub stripes: u64,
    /// Regions that a drive that is back has missed and does not have yet; nothing of a drive that is filled from the
    /// beginning.
    pub regions: Option<u64>,
    /// Whether the drive was given a copy of the one that it replaces, and lacks only these regions of it.
    pub is_copied: bool,
}

/// How far a copy of a drive is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyProgress {
    /// The drive that is copied.
    pub drive: DriveIdx,
    /// Regions that the new drive does not hold as the drive does.
    pub left: u64,
    /// All regions.
    pub regions: u64,
}

/// Why a new drive does not get the place of the one that it was given a copy of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyEnd {
    /// The new drive did not store what it was given.
    Failed,
    /// The new drive has ended nothing for longer than the array's patience.
    Silent,
    /// Clients write faster than the new drive takes it: pass after pass leaves as much to be copied.
    TooSlow,
    /// The array is ending.
    Ending,
    /// More drives are lost than the array survives.
    ArrayFailed,
}
