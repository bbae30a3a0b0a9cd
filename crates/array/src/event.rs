//! What an array tells its operators. A runtime has nothing to do for an event.

use levelhead_units::{DriveIdx, DriveSet, Extent};

use crate::drives::detect::DriveEvent;
use crate::meta::membership::Why;
use crate::meta::metadata::Forced;
use crate::progress::{
    CopyEnd, CopyProgress, Fault, RebuildProgress, Resync, ResyncProgress, ScrubProgress,
};
use crate::settings::verify::Promise;

/// Something that happened to an array or to one of its drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A drive's standing has changed.
    Standing(DriveEvent),
    /// The array does without this drive from now on.
    Lost {
        /// The drive.
        drive: DriveIdx,
        /// Why the array does without it.
        why: Why,
        /// Whether a new drive that holds a copy of it is about to have its place: nothing is wrong with either.
        is_copied: bool,
    },
    /// The drive is closed: the array does not use it any more, and it has completed its last command. The runtime that
    /// has closed it tells this, never the array.
    Released {
        /// The place that it had.
        drive: DriveIdx,
    },
    /// Something happened to the array as a whole.
    Array(ArrayEvent),
}

/// Something that happened to an array as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrayEvent {
    /// It begins to serve. Reported by arrays that record what they are.
    Assembled {
        /// Drives that are not there, or not used any more.
        absent: DriveSet,
        /// Whether an operator had to make it go on at this start.
        forced: Forced,
        /// Stripes whose redundancy is not valid, which a resync will make so.
        unsynced: u64,
    },
    /// Redundancy is being made valid from a stripe on: for the first time, or again after it was stuck.
    ResyncBegun(ResyncProgress),
    /// Redundancy cannot be made valid any further.
    ResyncStuck(ResyncProgress),
    /// All redundancy is valid.
    ResyncDone,
    /// What these sectors held can be had neither from their drive nor from redundancy.
    Damaged {
        /// The drive.
        drive: DriveIdx,
        /// Its sectors, as the layout counts them.
        extent: Extent,
    },
    /// A client wanted some of the damaged sectors of this range. Told once for each range.
    DamagedRead {
        /// The drive.
        drive: DriveIdx,
        /// Its sectors, as the layout counts them.
        extent: Extent,
    },
    /// A drive returned these sectors with another checksum than they should have: they were had from redundancy, and will be
    /// repaired, or could not be had.
    Corrupt {
        /// The drive.
        drive: DriveIdx,
        /// Its sectors, as the layout counts them.
        extent: Extent,
    },
    /// Sectors of a drive were not right, and are now, or could not be made so.
    Repaired {
        /// The drive.
        drive: DriveIdx,
        /// Its sectors, as the layout counts them.
        extent: Extent,
        /// What was wrong with them.
        fault: Fault,
        /// Whether they were written anew, read again, and found right.
        is_repaired: bool,
    },
    /// Sectors that were written were read back, and are not what was written.
    WriteFlawed {
        /// The drive.
        drive: DriveIdx,
        /// Its sectors, as the layout counts them.
        extent: Extent,
        /// What has become of the write.
        flaw: Flaw,
        /// What a read from the medium of this drive is worth.
        promise: Promise,
    },
    /// They were written again and are right, or could not be mended.
    WriteMended {
        /// The drive.
        drive: DriveIdx,
        /// Its sectors, as the layout counts them.
        extent: Extent,
        /// What a read from the medium of this drive is worth.
        promise: Promise,
        /// Whether they were read back and found right then. If not, nothing more is tried.
        is_mended: bool,
    },
    /// Another server has opened the array since this one did: this one gives up all drives, and answers nothing any more.
    Fenced,
    /// A drive has less than it had: it is another one now, or an earlier copy of it.
    WentBack {
        /// The drive.
        drive: DriveIdx,
    },
    /// A record of the array on a drive was not stored, however often it was written.
    RecordLost {
        /// The drive.
        drive: DriveIdx,
        /// Whether the array goes on with the drive because it cannot do without. That is told once.
        is_kept: bool,
    },
    /// What the drives hold of codewords that adjoin does not match, and it cannot be told which of them is wrong.
    Unlocated {
        /// The stripe of the first.
        stripe: u64,
        /// Its first sector on a drive, as the layout counts them.
        first_sector: u64,
        /// Sectors that all of them have on each drive.
        sectors: u64,
    },
    /// A drive failed too many reads lately.
    ReadErrors {
        /// The drive.
        drive: DriveIdx,
        /// How many are remembered.
        errors: u32,
        /// Whether the array goes on with it, because it cannot do without.
        is_kept: bool,
    },
    /// Everything is being read and compared.
    ScrubBegun(ScrubProgress),
    /// An operator wanted that to end.
    ScrubStopped(ScrubProgress),
    /// Everything was.
    ScrubDone(ScrubProgress),
    /// A drive that has come into the place of a lost one is being filled from a stripe on.
    RebuildBegun(RebuildProgress),
    /// The drive that was being filled is lost.
    RebuildStopped(RebuildProgress),
    /// A drive was filled, and holds everything.
    RebuildDone {
        /// Which.
        drive: DriveIdx,
        /// Whether it had been given a copy of the one that it replaces.
        is_copied: bool,
    },
    /// A new drive is given a copy of one that is there.
    CopyBegun(CopyProgress),
    /// It has the place from now on, and is given what it does not hold of it yet.
    CopyDone(CopyProgress),
    /// It was not wanted any more. The array has the drive as before, unless that was lost by itself meanwhile: one that had
    /// made way already is wanted back ([`Array::wanted_back`](crate::Array::wanted_back)).
    CopyStopped {
        /// The drive that was copied.
        drive: DriveIdx,
        /// Why.
        why: CopyEnd,
    },
    /// More drives are lost than the layout survives.
    Failed {
        /// The lost drives.
        lost: DriveSet,
        /// How many the layout survives the loss of, whichever they are.
        survives: usize,
    },
    /// After a crash what these of its sectors held last could not be brought back from the journal: they hold
    /// something older.
    Unrecovered {
        /// Which.
        extent: Extent,
    },
    /// It has come to its end.
    Stopped(Ending),
}

/// What has become of a write that its drive has ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// None of it is there.
    Lost,
    /// Some of it is there.
    Torn,
    /// The drive does not give some of it.
    Unreadable,
}

impl Flaw {
    /// Its name in programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Torn => "torn",
            Self::Unreadable => "unreadable",
        }
    }
}

/// How an array has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Everything is safe, and the drives say so.
    Clean,
    /// More drives are lost than the layout survives: the drives say what they last said.
    Failed,
    /// Drives that the layout cannot do without say nothing: what they have may not be safe, and the others
    /// say that the array was not stopped in good order.
    Unsafe {
        /// Which.
        silent: DriveSet,
    },
}

impl Event {
    /// Its name in programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Standing(event) => event.kind.name(),
            Self::Lost { .. } => "lost",
            Self::Released { .. } => "released",
            Self::Array(ArrayEvent::Assembled { .. }) => "assembled",
            Self::Array(ArrayEvent::ResyncBegun(_)) => "resync-begun",
            Self::Array(ArrayEvent::ResyncStuck(_)) => "resync-stuck",
            Self::Array(ArrayEvent::ResyncDone) => "resync-done",
            Self::Array(ArrayEvent::Damaged { .. }) => "damaged",
            Self::Array(ArrayEvent::DamagedRead { .. }) => "damaged-read",
            Self::Array(ArrayEvent::Corrupt { .. }) => "corrupt",
            Self::Array(ArrayEvent::Repaired { is_repaired: true, .. }) => "repaired",
            Self::Array(ArrayEvent::Repaired { is_repaired: false, .. }) => "unrepaired",
            Self::Array(ArrayEvent::WriteFlawed { flaw: Flaw::Lost, .. }) => "write-lost",
            Self::Array(ArrayEvent::WriteFlawed { flaw: Flaw::Torn, .. }) => "write-torn",
            Self::Array(ArrayEvent::WriteFlawed { flaw: Flaw::Unreadable, .. }) => {
                "write-unreadable"
            }
            Self::Array(ArrayEvent::WriteMended { is_mended: true, .. }) => "write-mended",
            Self::Array(ArrayEvent::WriteMended { is_mended: false, .. }) => "write-not-mended",
            Self::Array(ArrayEvent::RecordLost { .. }) => "record-lost",
            Self::Array(ArrayEvent::Fenced) => "fenced",
            Self::Array(ArrayEvent::WentBack { .. }) => "went-back",
            Self::Array(ArrayEvent::Unlocated { .. }) => "unlocated",
            Self::Array(ArrayEvent::ReadErrors { .. }) => "read-errors",
            Self::Array(ArrayEvent::ScrubBegun(_)) => "scrub-begun",
            Self::Array(ArrayEvent::ScrubStopped(_)) => "scrub-stopped",
            Self::Array(ArrayEvent::ScrubDone(_)) => "scrub-done",
            Self::Array(ArrayEvent::RebuildBegun(_)) => "rebuild-begun",
            Self::Array(ArrayEvent::RebuildStopped(_)) => "rebuild-stopped",
            Self::Array(ArrayEvent::RebuildDone { .. }) => "rebuild-done",
            Self::Array(ArrayEvent::CopyBegun(_)) => "copy-begun",
            Self::Array(ArrayEvent::CopyDone(_)) => "copy-done",
            Self::Array(ArrayEvent::CopyStopped { .. }) => "copy-stopped",
            Self::Array(ArrayEvent::Failed { .. }) => "array-failed",
            Self::Array(ArrayEvent::Unrecovered { .. }) => "unrecovered",
            Self::Array(ArrayEvent::Stopped(Ending::Clean)) => "stopped",
            Self::Array(ArrayEvent::Stopped(Ending::Failed)) => "stopped-failed",
            Self::Array(ArrayEvent::Stopped(Ending::Unsafe { .. })) => "stopped-unsafe",
        }
    }
}

/// What has been told of a resync.
///
/// A resync that is stuck is tried again after each write to the stripes it is stuck at. It is told to be
/// stuck once for each place, and to have begun again only when it has got past that place: a client that
/// writes there again and again does not fill the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ResyncTold {
    #[default]
    Nothing,
    Begun,
    Stuck {
        synced: u64,
    },
}

impl ResyncTold {
    /// The event to tell now, if there is one.
    pub(crate) fn look(&mut self, resync: Resync, now: ResyncProgress) -> Option<ArrayEvent> {
        let is_done = now.synced == now.stripes;
        let (told, event) = match (*self, resync) {
            (Self::Begun, _) if is_done => (Self::Nothing, ArrayEvent::ResyncDone),
            (Self::Stuck { synced }, _) if is_done && now.synced > synced => {
                (Self::Nothing, ArrayEvent::ResyncDone)
            }
            (Self::Nothing | Self::Begun, Resync::Stuck) => {
                (Self::Stuck { synced: now.synced }, ArrayEvent::ResyncStuck(now))
            }
            (Self::Nothing, Resync::Running) => (Self::Begun, ArrayEvent::ResyncBegun(now)),
            (Self::Stuck { synced }, Resync::Idle | Resync::Running) if now.synced > synced => {
                (Self::Begun, ArrayEvent::ResyncBegun(now))
            }
            (Self::Nothing | Self::Begun | Self::Stuck { .. }, _) => return None,
        };
        *self = told;
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(steps: &[(Resync, u64)]) -> Vec<&'static str> {
        let mut told = ResyncTold::default();
        let look = |&(resync, synced): &(Resync, u64)| {
            told.look(resync, ResyncProgress { synced, stripes: 30 })
        };
        steps.iter().filter_map(look).map(|event| Event::Array(event).name()).collect()
    }

    #[test]
    fn resync_is_told_at_its_beginning_and_at_its_end_and_not_at_every_step() {
        use Resync::{Idle, Running};
        let steps = [(Idle, 0), (Running, 0), (Idle, 10), (Running, 10), (Running, 20), (Idle, 30)];
        assert_eq!(told(&steps), ["resync-begun", "resync-done"]);
        assert_eq!(told(&steps[..5]), ["resync-begun"]);
    }

    #[test]
    fn resync_that_is_stuck_is_told_once_for_each_place() {
        use Resync::{Idle, Running, Stuck};
        let mut steps = vec![(Running, 0), (Stuck, 10)];
        for _ in 0..5 {
            steps.extend([(Idle, 10), (Running, 10), (Stuck, 10)]);
        }
        assert_eq!(told(&steps), ["resync-begun", "resync-stuck"]);
        steps.extend([(Running, 10), (Idle, 20), (Running, 20), (Stuck, 20)]);
        let both = ["resync-begun", "resync-stuck"];
        assert_eq!(told(&steps), [both, both].concat());
        steps.extend([(Running, 20), (Idle, 30)]);
        assert_eq!(told(&steps), [&both[..], &both[..], &["resync-done"]].concat());
    }

    #[test]
    fn array_that_is_in_sync_tells_nothing_of_a_resync() {
        assert!(told(&[(Resync::Idle, 30), (Resync::Idle, 30)]).is_empty());
    }
}
