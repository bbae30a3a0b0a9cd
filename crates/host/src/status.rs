//! What a running array says about itself: plain values, a snapshot.

use std::collections::BTreeMap;

use levelhead_array::damaged::DamagedRange;
use levelhead_array::superblock::Uuid;
use levelhead_array::tau::DriveView;
use levelhead_array::{
    CopyProgress, Counters, DamagedSummary, DriveCounters, DriveFound, Figures, JournalStatus,
    Policy, Promise, RebuildProgress, RebuildWish, Resync, ScrubProgress, Spec, VerifyStatus,
};
use levelhead_block::Health;
use levelhead_erasure::Measured;
use levelhead_stats::Summary;
use levelhead_units::{Instant, Lba, Ratio, Sectors};

use crate::devices::ways::FastFailState;
use crate::event_log::NumberedEvent;
use crate::requests::{Answered, Operation};

/// A running array at one moment.
#[derive(Clone, Debug)]
pub struct Status {
    /// Its shape.
    pub spec: Spec,
    /// Its identity.
    pub uuid: Uuid,
    /// Its size.
    pub size: Sectors,
    /// How reads are served.
    pub policy: Policy,
    /// Whether it has the drives it needs.
    pub state: ArrayState,
    /// Whether an operator has ever made it go on where data may be wrong.
    pub is_forced: bool,
    /// What its journal has; nothing where it keeps none, and a crash leaves redundancy that may be wrong.
    pub journal: Option<JournalStatus>,
    /// How much of it is damaged.
    pub damaged: DamagedSummary,
    /// How the verification of writes stands, if they are read back.
    pub verify: Option<VerifyStatus>,
    /// How far a scrub is.
    pub scrub: ScrubStatus,
    /// Its drives, in order.
    pub drives: Vec<DriveStatus>,
    /// How far a drive is filled that has come into the place of a lost one.
    pub rebuild: Option<RebuildProgress>,
    /// How far a copy of a drive that is there is, where a new one is to have its place.
    pub copy: Option<CopyProgress>,
    /// The new one, as it was named.
    pub coming: Option<String>,
    /// What was said of rebuilds.
    pub rebuild_wish: RebuildWish,
    /// Drives that wait for a place.
    pub spares: Vec<String>,
    /// Share of its stripes whose redundancy is valid.
    pub synced: Ratio,
    /// What is being done about the others.
    pub resync: Resync,
    /// Requests that clients wait for.
    pub outstanding: u32,
    /// What it has done since it was started.
    pub counters: Counters,
    /// How long the last requests took, at most 4096 of them.
    pub latency: Summary,
    /// How requests have ended since it was started, in the order of [`Operation::ALL`].
    pub answered: [Answered; Operation::ALL.len()],
    /// What its own buffers take.
    pub buffers: Sectors,
    /// How it computes redundancy, and what that rests on.
    pub arithmetic: Measured,
    /// What happened, the last [`EVENTS_MAX`](crate::EVENTS_MAX) times.
    pub events: Vec<NumberedEvent>,
    /// How often each thing has happened since it was started, by its name.
    pub event_counts: BTreeMap<&'static str, u64>,
    /// When this was so, since it was started.
    pub at: Instant,
}

/// How far a scrub is, and what it has found.
#[derive(Clone, Debug)]
pub struct ScrubStatus {
    /// How far it is, and what it has found on all drives.
    pub progress: ScrubProgress,
    /// What was found drive by drive, of those on which something was.
    pub found: Vec<DriveFound>,
}

/// The damaged sectors of a running array.
#[derive(Clone, Debug)]
pub struct Damaged {
    /// How many there are.
    pub summary: DamagedSummary,
    /// Where, by drive and by address.
    pub ranges: Vec<FoundRange>,
}

/// A range of damaged sectors.
#[derive(Clone, Copy, Debug)]
pub struct FoundRange {
    /// As the layout counts the sectors of a drive.
    pub range: DamagedRange,
    /// Its first sector as the drive counts.
    pub on_drive: Lba,
}

/// Whether an array has the drives it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrayState {
    /// All of them.
    Whole,
    /// Without some, as many as its layout survives the loss of.
    Degraded,
    /// More are lost than that: some of its data cannot be had.
    Failed,
}

/// One drive of a running array.
#[derive(Clone, Debug, PartialEq)]
pub struct DriveStatus {
    /// The member as it was named; nothing for one that was missing from the start, or was removed.
    pub name: Option<String>,
    /// Whether the array uses it.
    pub state: DriveState,
    /// Whether it is open.
    pub is_open: bool,
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// Why this machine refuses its commands, if it does: that says nothing of the drive.
    pub refusal: Option<String>,
    /// Commands waiting for it or inside it.
    pub queue_len: usize,
    /// Commands inside it.
    pub inside: u32,
    /// What it has done for the array since that was started.
    pub counters: DriveCounters,
    /// What it says about itself, if it says anything.
    pub health: Option<Health>,
    /// How it is told to try less; nothing for a drive that was missing from the start.
    pub fast_fail: Option<FastFailState>,
    /// What a read from its medium is worth.
    pub promise: Promise,
    /// Whether it is not read where that can be helped.
    pub sits_out: bool,
    /// Whether it has had something to do for long, and ended nothing.
    pub is_silent: bool,
    /// What policies decide from.
    pub view: DriveView,
    /// How fast it is, compared with the others.
    pub figures: Figures,
}

/// Whether the array uses a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveState {
    /// It does.
    Present,
    /// It does, and a new drive is given a copy of it.
    Copying,
    /// It is being given what it should hold.
    Filling,
    /// It is back, and is given what it has missed.
    CatchingUp,
    /// Not any more, because it made way for a copy that did not come: it is taken back when it has completed its
    /// commands.
    Behind,
    /// Not any more, because it failed.
    Failed,
    /// Not any more, because an operator wanted that.
    Lost,
    /// Not any more: an operator removed it from its slot after it had failed.
    Removed,
    /// It was not there when the array was started.
    Missing,
}

impl DriveState {
    /// Whether the drive holds everything, and the array counts on it.
    pub fn is_used(self) -> bool {
        match self {
            Self::Present | Self::Copying => true,
            Self::Filling
            | Self::CatchingUp
            | Self::Behind
            | Self::Failed
            | Self::Lost
            | Self::Removed
            | Self::Missing => false,
        }
    }
}
