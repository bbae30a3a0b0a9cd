//! What all operations of an array share: its shape, its drives' queues, the names it has given, and
//! the actions it wants done.
//!
//! - `purpose`, `sub`: a command to a drive, and what it is for;
//! - `queues`: what becomes of a command from its drive's queue to its end;
//! - `losses`: what the drives hold, and what not;
//! - `answers`: what clients are told, and when;
//! - `in_progress`, `room`: the memory of all that.

mod answers;
pub(crate) mod copied;
pub(crate) mod in_progress;
mod losses;
pub(crate) mod postponed;
mod purpose;
mod queues;
pub(crate) mod room;
mod sub;

use std::collections::{BTreeMap, VecDeque};

use levelhead_block::{BufId, Combine, Place, RequestId, Segment};
use levelhead_stats::Streams;
use levelhead_units::{DriveIdx, DriveSet, Instant, Lba, Sectors};

use self::answers::Held;
use self::copied::Copied;
use self::in_progress::InProgress;
use self::postponed::Postponed;
pub(crate) use self::purpose::Purpose;
use self::room::{ArraySector, Room, Wish};
pub(crate) use self::sub::{Enqueue, ForComing, Sub, Written, loses_drive};
use crate::action::{Action, Deliver, Sums};
use crate::counters::Counters;
use crate::drives::Drives;
use crate::drives::detect::DriveEvent;
use crate::event::Event;
use crate::log::at_risk::AtRisk;
use crate::log::contents::{Contents, InPlace};
use crate::log::live::Live;
use crate::log::record::Record;
use crate::log::rules::Rule;
use crate::log::unplaced::Unplaced;
use crate::meta::state::Metastate;
pub(crate) use crate::names::OpId;
use crate::names::SubId;
use crate::policy::Policy;
use crate::policy::tau::Share;
use crate::settings::{Content, Settings};
use crate::shape::redundancy::Redundancy;
use crate::shape::{Area, Cell, Layout};
use crate::verify::promises::Promises;
use crate::verify::state::Verify;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Core {
    pub(crate) layout: Layout,
    /// Where the layout's sectors lie on the drives.
    pub(crate) area: Area,
    /// Absent where nothing is redundant.
    pub(crate) code: Option<Redundancy>,
    /// All that is known of the drives.
    pub(crate) drives: Drives,
    /// For every drive the stripes, from the first on, that it holds: all that was written there. All of them of a
    /// drive that is there, none of one that is lost, some of one that is being filled.
    pub(crate) valid: Vec<u64>,
    /// How the array stands, as its members record it.
    pub(crate) meta: Metastate,
    /// What a drive holds that is given a copy of another one, if one is.
    pub(crate) copied: Option<Copied>,
    /// Whether data may be written: where that is recorded, once it is.
    pub(crate) may_write: bool,
    /// When the lease ends, where one is needed.
    pub(crate) lease_end: Option<Instant>,
    /// Those of the lost drives whose loss is not safely recorded yet, where losses are recorded.
    pub(crate) unrecorded: DriveSet,
    /// A drive that is being filled and is full: the journal counts it already, so that by the time it is present enough
    /// rings have everything.
    pub(crate) nearly_present: DriveSet,
    /// Answers that rely on such a loss and wait for its record.
    held: Vec<Held>,
    /// Commands that were refused, in the order in which they are sent again.
    pub(crate) postponed: VecDeque<Postponed>,
    /// When the machine last refused a command of a drive.
    pub(crate) refused_at: BTreeMap<DriveIdx, Instant>,
    /// Memory of writes that were given up and are still being carried out.
    pub(crate) given_up: Sectors,
    /// Clients' writes that have been carried out.
    pub(crate) writes_ended: u64,
    /// Those of them that a flush has made safe.
    pub(crate) writes_flushed: u64,
    /// Whether writes that were not flushed may be gone with a drive, so that the next flush must fail.
    pub(crate) has_lost_writes: bool,
    /// Redundancy of stripes from here on is not valid yet.
    pub(crate) synced: u64,
    /// The same as a start after a crash would know it.
    pub(crate) synced_for_good: u64,
    /// What is committed and not in its place.
    pub(crate) unplaced: Unplaced,
    /// Whether what is to be written goes to the journal first.
    pub(crate) is_journaled: bool,
    /// Which of its records a crash may still find.
    pub(crate) live: Live,
    /// Whether writes go round drives that lag.
    pub(crate) goes_round_lagging: bool,
    /// Drives that no write of a journal should wait for.
    pub(crate) hindering: DriveSet,
    /// The name of the journal's next transaction, once all others are over.
    pub(crate) journal_next: Option<u64>,
    /// How often as much as all of a ring was written to it.
    pub(crate) ring_wraps: u64,
    /// What operations want to be written, on its way to the journal.
    pub(crate) to_journal: VecDeque<Contents>,
    /// Operations that have written in place what the journal has only announced.
    pub(crate) in_place: VecDeque<InPlace>,
    /// What they have written so and no flush has made safe.
    pub(crate) intents_at_risk: AtRisk,
    /// How often buffers are to be released before they are, besides once.
    retained: BTreeMap<BufId, u32>,
    /// Where the last command began that each drive was given, as the drive counts its sectors.
    arms: Vec<Lba>,
    pub(crate) actions: VecDeque<Action>,
    pub(crate) counters: Counters,
    /// What was written and is to be read back.
    pub(crate) verify: Verify,
    /// What such a read is worth.
    pub(crate) promises: Promises,
    /// Reads of a mirror that were begun: its copies take turns.
    pub(crate) turn: u64,
    /// For the decision about a read.
    pub(crate) shares: Room<Share>,
    /// For the sectors that a read is about.
    pub(crate) sectors: Room<ArraySector>,
    /// For the symbols that a read asks for at once.
    pub(crate) wishes: Room<Wish>,
    /// For the cells that these are.
    pub(crate) cells: Room<Cell>,
    content: Content,
    subs: InProgress<SubId, Sub>,
    sub_next: u64,
    buf_next: u64,
}

impl Core {
    pub(crate) fn new(settings: &Settings, streams: Streams) -> Self {
        let layout = Layout::new(settings.spec, settings.area.size());
        let count = settings.spec.members();
        Self {
            code: Redundancy::of(&layout),
            layout,
            area: settings.area.clone(),
            drives: Drives::new(settings, streams),
            valid: (0..count).map(|at| valid_at_first(settings, at)).collect(),
            meta: Metastate::new(settings),
            copied: None,
            may_write: settings.recorded.is_none(),
            lease_end: settings
                .recorded
                .as_ref()
                .filter(|known| known.is_in_reach)
                .map(|_| Instant::ZERO),
            unrecorded: DriveSet::EMPTY,
            nearly_present: DriveSet::EMPTY,
            held: Vec::new(),
            postponed: VecDeque::new(),
            refused_at: BTreeMap::new(),
            given_up: Sectors::ZERO,
            writes_ended: 0,
            writes_flushed: 0,
            has_lost_writes: false,
            synced: settings.synced.min(layout.stripes()),
            synced_for_good: settings.synced,
            unplaced: Unplaced::new(count),
            is_journaled: settings.journal.is_some(),
            live: Live::new(
                settings.journal.as_ref().is_some_and(|known| known.rules.keep(Rule::Live)),
            ),
            goes_round_lagging: matches!(settings.policy, Policy::Level(_)),
            hindering: DriveSet::EMPTY,
            journal_next: None,
            ring_wraps: 0,
            to_journal: VecDeque::new(),
            in_place: VecDeque::new(),
            intents_at_risk: AtRisk::default(),
            retained: BTreeMap::new(),
            arms: vec![Lba::ZERO; count],
            actions: VecDeque::new(),
            counters: Counters::default(),
            verify: Verify::new(settings.verify, count),
            promises: Promises::new(count),
            turn: 0,
            shares: Room::default(),
            sectors: Room::default(),
            wishes: Room::default(),
            cells: Room::default(),
            content: settings.content,
            subs: InProgress::default(),
            sub_next: 0,
            buf_next: 0,
        }
    }

    pub(crate) fn note_event(&mut self, event: Option<DriveEvent>) {
        if event.is_some() {
            self.note_events(event);
        }
    }

    pub(crate) fn note_events(&mut self, events: impl IntoIterator<Item = DriveEvent>) {
        self.actions.extend(events.into_iter().map(Event::Standing).map(Action::Event));
    }

    /// The origin of the next command of the array's own: a number that no client's request has.
    pub(crate) fn own_origin(&self) -> u64 {
        u64::MAX - self.sub_next
    }

    /// A name for a buffer of the array's own.
    pub(crate) fn name_buf(&mut self) -> BufId {
        self.buf_next += 1;
        BufId::Own(self.buf_next)
    }

    /// A buffer of the array's own, there at once.
    pub(crate) fn acquire(&mut self, sectors: Sectors) -> BufId {
        let buf = self.name_buf();
        if self.content.is_carried() {
            self.actions.push_back(Action::Acquire { buf, sectors });
        }
        buf
    }

    /// Lets go of a buffer: it is released when all have let go of it that retained it.
    pub(crate) fn release(&mut self, buf: BufId) {
        match self.retained.get_mut(&buf) {
            None if self.content.is_carried() => self.actions.push_back(Action::Release(buf)),
            None => {}
            Some(1) => {
                self.retained.remove(&buf);
            }
            Some(count) => *count -= 1,
        }
    }

    /// One more needs a buffer, and will release it.
    pub(crate) fn retain(&mut self, buf: BufId) {
        *self.retained.entry(buf).or_default() += 1;
    }

    /// Has the header of a record put into a buffer.
    pub(crate) fn log(&mut self, into: Place, record: Record, sums: Sums) {
        match self.content {
            Content::Carried => {
                let record = Box::new(record);
                self.actions.push_back(Action::Log { into, record, sums });
            }
            Content::Absent => {}
        }
    }

    /// Where a drive is, as it counts its sectors.
    pub(crate) fn arm(&self, drive: DriveIdx) -> Lba {
        self.arms[drive.as_usize()]
    }

    /// Whether buffers have bytes.
    pub(crate) fn carries_content(&self) -> bool {
        self.content.is_carried()
    }

    /// Says where the data of a read lie.
    pub(crate) fn deliver(&mut self, request: RequestId, segments: Vec<Segment>) {
        self.actions.push_back(Action::Deliver(Deliver { request, segments }));
    }

    /// Asks for arithmetic, and joins it to the last such action where they continue each other.
    pub(crate) fn combine(&mut self, into: Place, from: Vec<(u8, Place)>) {
        match self.content {
            Content::Carried => {}
            Content::Absent => return,
        }
        if let Some(Action::Combine(last)) = self.actions.back_mut()
            && continues(last, into, &from)
        {
            last.sectors += 1;
            return;
        }
        self.actions.push_back(Action::Combine(Combine { into, sectors: 1, from }));
    }
}

/// The stripes that a drive holds when the array is started.
fn valid_at_first(settings: &Settings, at: usize) -> u64 {
    let drive = DriveIdx::from_usize(at);
    if !settings.lost.contains(drive) {
        return u64::MAX;
    }
    settings.recorded.as_ref().and_then(|known| known.filled_to(drive)).unwrap_or(0)
}

/// Whether one more sector is the next one of everything in `last`.
fn continues(last: &Combine, into: Place, from: &[(u8, Place)]) -> bool {
    let next = |place: Place| place.plus(last.sectors);
    next(last.into) == into
        && last.from.len() == from.len()
        && last
            .from
            .iter()
            .zip(from)
            .all(|(&(coefficient, place), &other)| (coefficient, next(place)) == other)
}
