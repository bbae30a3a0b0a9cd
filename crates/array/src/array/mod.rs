//! The machine: the state of an array, and how events step it from one room to the next.
//!
//! - `engine`, `due`: events in, actions out, and what is due at a time;
//! - `operations`, `flush`, `overdue`, `refused`: operations from their stripes to their answers;
//! - `journal`, `metadata`: what waits for the journal and for the metadata;
//! - `background`: what it does without being asked by a client;
//! - `readback`: what was written is read back.
//!
//! The invariants A1 to A5 are with the crate.

pub(crate) mod background;
mod due;
mod engine;
mod flush;
mod journal;
mod metadata;
mod operations;
mod overdue;
mod parts;
pub(crate) mod readback;
mod refused;

use levelhead_block::BufId;
use levelhead_block::Outcome;
use levelhead_stats::Streams;
use levelhead_units::{DriveIdx, DriveSet, Instant, Sectors};

use self::background::Background;
use self::parts::{Clients, End, Operations, Watch};
use self::readback::Readback;
use crate::array::flush::FlushOp;
use crate::core::{Core, Sub};
use crate::counters::Counters;
use crate::drives::detect::Figures;
use crate::event::ArrayEvent;
use crate::journal::Journal;
use crate::meta::metadata::Forced;
use crate::names::SubId;
use crate::ops::check::{CheckOp, Scope};
use crate::ops::fill::{FillOp, Span};
use crate::ops::mend::{self, MendOp};
use crate::ops::read::{ReadOp, Wanted};
use crate::ops::write::{Cause, WriteOp};
use crate::policy::Policy;
use crate::policy::tau::DriveView;
use crate::progress::Resync;
use crate::settings::Settings;
use crate::shape::{Area, Layout};
use crate::store::Store;
use crate::timers::Timers;

/// An array. Call [`Array::poll`] until it returns `None` after every other call.
#[derive(Clone, Debug)]
pub struct Array {
    core: Core,
    policy: Policy,
    work: Operations,
    own: Background,
    readback: Readback,
    /// What is recorded of the array, where something is.
    store: Option<Store>,
    /// Where what is written goes first, where a journal is kept.
    journal: Option<Journal>,
    end: End,
    clients: Clients,
    watch: Watch,
    timers: Timers,
}

#[derive(Clone, Debug)]
enum Op {
    /// Waits for its stripes.
    Locked(Start),
    // In boxes, so that little is moved when operations come and go.
    Read(Box<ReadOp>),
    Write(Box<WriteOp>),
    Fill(Box<FillOp>),
    Flush(FlushOp),
    Check(Box<CheckOp>),
    Mend(Box<MendOp>),
}

/// Whether a step has changed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    No,
    Yes,
}

/// The end of a command that an operation waits for.
#[derive(Clone, Copy)]
struct Ended<'a> {
    sub: SubId,
    state: &'a Sub,
    /// What a read filled, unless the drive is lost.
    buf: Option<BufId>,
    outcome: &'a Outcome,
}

#[derive(Clone, Debug)]
pub(crate) enum Start {
    Read(Wanted),
    Write(Cause),
    Check(Scope),
    Fill(Span),
    Mend(mend::Span),
}

impl Array {
    /// An array at rest. `streams` decides what is left to chance: the lanes of
    /// `paper32`, and where drives are probed.
    ///
    /// Panics if the window is zero or the drives hold no stripe.
    pub fn new(settings: &Settings, streams: Streams) -> Self {
        let core = Core::new(settings, streams);
        let wishes =
            settings.recorded.as_ref().map(|known| known.metadata.wishes).unwrap_or_default();
        let size = settings.area.size();
        assert!(core.layout().stripes() > 0, "{} sectors hold no stripe", size.get());
        let mut array = Self {
            core,
            policy: settings.policy,
            work: Operations::default(),
            own: Background::new(settings, wishes),
            readback: Readback::new(settings.spec.members()),
            store: settings.recorded.as_ref().map(Store::new),
            journal: Journal::new(settings),
            end: End::default(),
            clients: Clients::default(),
            watch: Watch::default(),
            timers: Timers::default(),
        };
        if let Some(recorded) = &settings.recorded {
            for drive in array.core.drives.reachable().iter() {
                let own = recorded.owns[drive.as_usize()].as_ref();
                assert!(own.is_some(), "Q2: drive {drive} is present and was not found");
            }
            array.tell(ArrayEvent::Assembled {
                absent: array.core.drives.away(),
                forced: if recorded.forced_over.is_some() { Forced::Yes } else { Forced::No },
                unsynced: array.core.layout().stripes() - array.core.holdings.synced(),
            });
            array.tell_scrub_goes_on();
        }
        array.set_timers(Instant::ZERO);
        array
    }

    /// How many sectors clients can address.
    pub fn size(&self) -> Sectors {
        self.core.layout().size()
    }

    /// Where everything lies.
    pub fn layout(&self) -> &Layout {
        self.core.layout()
    }

    /// Where the layout's sectors lie on every drive.
    pub fn area(&self) -> &Area {
        self.core.area()
    }

    /// The lost drives.
    pub fn lost(&self) -> DriveSet {
        self.core.drives.lost()
    }

    /// Those of them that are not being filled either.
    pub fn away(&self) -> DriveSet {
        self.core.drives.away()
    }

    /// Those of the lost drives whose loss is not safely recorded yet, where losses are recorded.
    pub fn unrecorded(&self) -> DriveSet {
        self.core.gate.unrecorded()
    }

    /// Stripes whose redundancy is valid, from the first on.
    pub fn synced(&self) -> u64 {
        self.core.holdings.synced()
    }

    /// How far the resync is.
    pub fn resync(&self) -> Resync {
        self.own.resync
    }

    /// What it has done since it was started.
    pub fn counters(&self) -> Counters {
        self.core.counters
    }

    /// How reads are served.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Commands waiting for a drive or inside it.
    pub fn queue_len(&self, drive: DriveIdx) -> usize {
        self.core.drives.queue_len(drive)
    }

    /// What is known of a drive, and what policies decide from: what it says and what is seen of it.
    pub fn view(&self, now: Instant, drive: DriveIdx) -> DriveView {
        self.core.drives.view(now, drive)
    }

    /// How fast a drive is, compared with the others.
    pub fn figures(&self, now: Instant, drive: DriveIdx) -> Figures {
        self.core.drives.figures(now, drive)
    }

    /// Drives that are not read while others suffice: because they were found slow, or because an operator wants
    /// that.
    pub fn sat_out(&self) -> DriveSet {
        self.core.drives.sat_out()
    }

    /// Drives that have had something to do for long, and ended nothing.
    pub fn silent(&self) -> DriveSet {
        self.core.drives.silent()
    }

    /// Whether a command of this drive was refused, or has not reached it, and is sent again until it ends.
    pub fn has_refused(&self, drive: DriveIdx) -> bool {
        self.core.has_refused(drive)
    }

    /// Whether no request and no command is in progress.
    pub fn is_quiet(&self) -> bool {
        self.work.ops.is_empty() && self.core.is_quiet()
    }

    /// The same, except for commands of drives that are silent.
    pub fn is_quiet_but_for_silent(&self) -> bool {
        self.work.ops.is_empty() && self.core.is_quiet_but_for_silent()
    }
}
