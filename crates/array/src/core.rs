//! What all operations of an array share: its shape, its drives' queues, the names it has given, and
//! the actions it wants done.
//!
//! - `purpose`, `sub`, `spread`: a command to a drive, what it is for, and where what it reads lies;
//! - `queues`: what becomes of a command from its drive's queue to its end;
//! - `losses`: what the drives hold, and what not;
//! - `answers`: what clients are told, and when;
//! - `in_progress`, `room`: the memory of all that.

mod answers;
pub(crate) mod copied;
mod geometry;
pub(crate) mod in_progress;
mod losses;
mod output;
pub(crate) mod postponed;
mod purpose;
mod queues;
pub(crate) mod room;
pub(crate) mod spread;
mod sub;
mod tagging;
mod writes;

use std::collections::BTreeMap;

use levelhead_stats::Streams;
use levelhead_units::{DriveIdx, Lba};

use self::answers::Gate;
use self::geometry::Geometry;
use self::losses::Holdings;
use self::output::Output;
pub(crate) use self::purpose::Purpose;
use self::queues::Commands;
use self::room::ReadLists;
pub(crate) use self::sub::{Enqueue, ForComing, Sub, Written, loses_drive};
use self::tagging::Along;
pub(crate) use self::tagging::{ALONG, WRITTEN};
use self::writes::ClientWrites;
use crate::action::Action;
use crate::counters::Counters;
use crate::drives::Drives;
use crate::drives::detect::DriveEvent;
use crate::event::Event;
use crate::log::Log;
use crate::meta::state::Metastate;
use crate::settings::Settings;
use crate::shape::Cell;
use crate::tags::list::entries_of;
use crate::tags::state::Tags;
use crate::verify::state::Verify;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Core {
    pub(crate) place: Geometry,
    /// All that is known of the drives.
    pub(crate) drives: Drives,
    pub(crate) holdings: Holdings,
    /// How the array stands, as its members record it.
    pub(crate) meta: Metastate,
    pub(crate) gate: Gate,
    pub(crate) writes: ClientWrites,
    pub(crate) log: Log,
    /// What was written and is to be read back.
    pub(crate) verify: Verify,
    /// The checksums of what is at rest, where the array has them.
    pub(crate) tags: Option<Tags>,
    /// What was written in place and has its checksums computed, and how often that was asked for.
    summing: BTreeMap<u64, Vec<Cell>>,
    along: BTreeMap<u64, Along>,
    tagged: u64,
    pub(crate) reads: ReadLists,
    commands: Commands,
    pub(crate) out: Output,
    pub(crate) counters: Counters,
}

impl Core {
    pub(crate) fn new(settings: &Settings, streams: Streams) -> Self {
        let place = Geometry::new(settings);
        let count = settings.spec.members();
        let list_max = settings.tag_lists().map_or(0, entries_of);
        let has_bytes = settings.content.is_carried();
        Self {
            holdings: Holdings::new(settings, place.layout.stripes()),
            place,
            drives: Drives::new(settings, streams),
            meta: Metastate::new(settings),
            gate: Gate::new(settings.recorded.as_ref()),
            writes: ClientWrites::default(),
            log: Log::new(settings),
            verify: Verify::new(settings.verify, count),
            tags: settings
                .spec
                .tag_groups()
                .map(|groups| Tags::new(groups, count, list_max, has_bytes)),
            summing: BTreeMap::new(),
            along: BTreeMap::new(),
            tagged: 0,
            reads: ReadLists::default(),
            commands: Commands::new(count),
            out: Output::new(settings.content),
            counters: Counters::default(),
        }
    }

    pub(crate) fn note_event(&mut self, event: Option<DriveEvent>) {
        if event.is_some() {
            self.note_events(event);
        }
    }

    pub(crate) fn note_events(&mut self, events: impl IntoIterator<Item = DriveEvent>) {
        self.out.extend(events.into_iter().map(Event::Standing).map(Action::Event));
    }

    /// The origin of the next command of the array's own: a number that no client's request has.
    pub(crate) fn own_origin(&self) -> u64 {
        u64::MAX - self.commands.last
    }

    /// Where a drive is, as it counts its sectors.
    pub(crate) fn arm(&self, drive: DriveIdx) -> Lba {
        self.commands.arms[drive.as_usize()]
    }
}
