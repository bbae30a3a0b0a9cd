//! What all operations of an array share: its shape, its drives' queues, the names it has given, and
//! the actions it wants done.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use levelhead_block::{
    BufId, Combine, Command, Effort, Outcome, Place, RequestId, SectorSet, Segment,
};
use levelhead_stats::Streams;
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Lba, Nanos, Sectors};

use crate::action::{Action, Answer, Deliver, SubId, Submit, Sums};
use crate::background::copied::{Coming, Copied, Course, What};
use crate::counters::Counters;
use crate::drives::detect::DriveEvent;
use crate::drives::queue::End;
use crate::drives::{Drives, Ended, EndedRead, Fate, Left, Load, Push, Reader};
use crate::durable::damaged::DamagedList;
use crate::durable::listing::Damaged;
use crate::durable::maps::{Loss, Missed};
use crate::event::Event;
use crate::journal::at_risk::AtRisk;
use crate::journal::contents::{Contents, InPlace};
use crate::journal::live::Live;
use crate::journal::record::Record;
use crate::journal::rules::Rule;
use crate::journal::unplaced::Unplaced;
pub(crate) use crate::ops::id::OpId;
use crate::ops::postponed::Postponed;
use crate::policy::Policy;
use crate::policy::tau::Share;
use crate::shape::redundancy::Redundancy;
use crate::shape::{Area, Cell, Layout};
use crate::verify::state::{Sent, Verify};
use crate::{Content, Settings};

/// What a command to a drive is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// An operation waits for its end.
    Op(OpId),
    /// It shows how fast a drive is that no operation reads.
    Probe,
    /// It keeps the array's books; its address is the drive's own.
    Ledger,
    /// It writes or reads a ring of the journal; its address is the drive's own.
    Ring,
    /// It brings what the journal holds to its place.
    Place,
    /// It writes the list of damaged sectors; its address is the drive's own.
    List,
    /// It makes safe what was copied to a drive that is being filled.
    Fill,
    /// It reads what another drive is given a copy of.
    Copy,
    /// It reads back what was written.
    Verify,
    /// An operation reads from a ring what the journal had of it; its address is the drive's own.
    Recall(OpId),
    /// The operation that asked for it does not wait for it any more.
    Abandoned,
}

impl Purpose {
    /// Whether something waits for it: the array's own work always does, an operation if `waits` returns true for it.
    pub(crate) fn is_awaited(self, waits: impl Fn(&OpId) -> bool) -> bool {
        match self {
            Self::Op(op) | Self::Recall(op) => waits(&op),
            Self::Ledger
            | Self::Ring
            | Self::Place
            | Self::List
            | Self::Fill
            | Self::Copy
            | Self::Verify => true,
            Self::Probe | Self::Abandoned => false,
        }
    }

    /// Whether a drive that does not end it is done without in the end. One that is copied may take its time with that, and any
    /// with what only checks it, as with reads of clients.
    fn costs_the_drive(self, waits: impl Fn(&OpId) -> bool) -> bool {
        !matches!(self, Self::Copy | Self::Verify) && self.is_awaited(waits)
    }
}

/// What a probe reads, or one chunk if that is less: 8 KiB.
const PROBE_SIZE: Sectors = Sectors::new(2);

/// See the module.
#[derive(Debug)]
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
    /// What drives that the array does without have missed.
    pub(crate) missed: Missed,
    /// What a drive holds that is given a copy of another one, if one is.
    pub(crate) copied: Option<Copied>,
    /// Whether data may be written: where books are kept, once they are open for that.
    pub(crate) may_write: bool,
    /// Those of the lost drives whose loss is not safely recorded yet, where losses are recorded.
    pub(crate) unrecorded: DriveSet,
    /// A drive that is being filled and is full: the journal counts it already, so that by the time it is present enough
    /// rings have everything.
    pub(crate) nearly_present: DriveSet,
    /// Drives that have come into a place whose old drive the books still name: it would be taken back after a crash.
    pub(crate) unnamed: DriveSet,
    /// Drives that the books call present, for good.
    pub(crate) present_for_good: DriveSet,
    /// Answers that rely on such a loss and wait for its record.
    held: Vec<Held>,
    /// Commands that were refused, in the order in which they are sent again.
    pub(crate) postponed: VecDeque<Postponed>,
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
    /// What can be had no more.
    pub(crate) damaged: Damaged,
    keeps_no_books: bool,
    /// Whether what is to be written goes to the journal first.
    pub(crate) is_journaled: bool,
    /// Which of its records a crash may still find.
    pub(crate) live: Live,
    /// Whether writes read from where that costs least.
    pub(crate) weighs_writes: bool,
    /// Drives that no write of a journal should wait for.
    pub(crate) hindering: DriveSet,
    /// The name of the journal's next transaction, once all others are over.
    pub(crate) journal_next: Option<u64>,
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
    /// Reads of a mirror that were begun: its copies take turns.
    pub(crate) turn: u64,
    /// Room for decisions.
    shares: Vec<Share>,
    content: Content,
    /// In boxes, so that little is moved when commands come and go.
    subs: BTreeMap<SubId, Box<Sub>>,
    sub_next: u64,
    buf_next: u64,
}

/// An answer that waits until the loss of some drives is safely recorded.
#[derive(Debug)]
struct Held {
    relies_on: DriveSet,
    answer: Answer,
    /// When it goes out as a failure, where there is a limit.
    by: Option<Instant>,
}

/// A command in a drive's queue or inside the drive.
#[derive(Clone, Debug)]
pub(crate) struct Sub {
    pub(crate) purpose: Purpose,
    pub(crate) drive: DriveIdx,
    pub(crate) command: Command,
    segments: Vec<Segment>,
    origin: u64,
    fate: Fate,
    since: Option<Instant>,
    enqueued: Instant,
    started: Option<Instant>,
    /// It is late if it ends after this time, where the policy counts late drives.
    due: Option<Instant>,
    /// Commands that its drive had ended when it went in.
    ended_before: u64,
    /// Whether it is inside a drive whose place has another one now.
    is_orphan: bool,
}

/// Sectors of a drive that are being written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    pub(crate) drive: DriveIdx,
    pub(crate) extent: Extent,
}

/// What the drive is asked that is given a copy.
pub(crate) struct ForComing {
    pub(crate) what: What,
    /// Its addresses are the drive's own.
    pub(crate) command: Command,
    pub(crate) segments: Vec<Segment>,
    /// What is released when it has ended.
    pub(crate) bufs: Vec<BufId>,
}

/// What to put into a drive's queue.
pub(crate) struct Enqueue {
    pub(crate) purpose: Purpose,
    pub(crate) drive: DriveIdx,
    /// Its addresses are the layout's, or the drive's own where the purpose says so.
    pub(crate) command: Command,
    pub(crate) segments: Vec<Segment>,
    pub(crate) origin: u64,
    pub(crate) end: End,
    pub(crate) fate: Fate,
    /// Since when a client waits for what it is part of, if one does.
    pub(crate) since: Option<Instant>,
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
            missed: missed_at_first(settings),
            copied: None,
            may_write: settings.books.is_none(),
            unrecorded: DriveSet::EMPTY,
            nearly_present: DriveSet::EMPTY,
            unnamed: DriveSet::EMPTY,
            present_for_good: DriveSet::EMPTY,
            held: Vec::new(),
            postponed: VecDeque::new(),
            given_up: Sectors::ZERO,
            writes_ended: 0,
            writes_flushed: 0,
            has_lost_writes: false,
            synced: settings.synced.min(layout.stripes()),
            synced_for_good: settings.synced,
            unplaced: Unplaced::new(count),
            damaged: match &settings.books {
                None => Damaged::new(DamagedList::default(), None, true),
                Some(books) => {
                    let list = books.damaged.list.clone();
                    Damaged::new(list, books.listed(), books.is_list_safe())
                }
            },
            keeps_no_books: settings.books.is_none(),
            is_journaled: settings.journal.is_some(),
            live: Live::new(
                settings.journal.as_ref().is_some_and(|known| known.rules.keep(Rule::Live)),
            ),
            weighs_writes: matches!(settings.policy, Policy::Level(_)),
            hindering: DriveSet::EMPTY,
            journal_next: None,
            to_journal: VecDeque::new(),
            in_place: VecDeque::new(),
            intents_at_risk: AtRisk::default(),
            retained: BTreeMap::new(),
            arms: vec![Lba::ZERO; count],
            actions: VecDeque::new(),
            counters: Counters::default(),
            verify: Verify::new(settings.verify, count),
            turn: 0,
            shares: Vec::with_capacity(count),
            content: settings.content,
            subs: BTreeMap::new(),
            sub_next: 0,
            buf_next: 0,
        }
    }

    /// Whether the list of damaged sectors outlasts the array, or nothing does.
    pub(crate) fn keeps_list(&self) -> bool {
        self.keeps_no_books || self.damaged.summary().is_kept
    }

    /// A sector goes onto the list of damaged sectors. Nothing of it waits to be read back any more: what is redundant may
    /// have been written before it counted what is nowhere as zeroes.
    pub(crate) fn list_damaged(&mut self, Cell { drive, lba }: Cell) {
        let extent = Extent::new(lba, Sectors::new(1));
        let event = self.damaged.add(drive, extent);
        self.actions.extend(event.map(Action::Event));
        self.verify.records.give_up(drive, extent);
        self.release_checked();
    }

    /// Whether a drive holds what was written to its part of a stripe.
    pub(crate) fn holds(&self, drive: DriveIdx, stripe: u64) -> bool {
        stripe < self.valid[drive.as_usize()] || self.missed.spares(drive, stripe)
    }

    /// A drive is lost. What it misses from now on is marked, where a journal says what was under way.
    pub(crate) fn begin_missed(&mut self, drive: DriveIdx, loss: Loss) {
        let has_data = self.layout.spec().data_drives().contains(drive);
        if !self.is_journaled || !has_data {
            return;
        }
        self.missed.begin(&self.layout, drive, loss);
        // Redundancy that was made valid may not be safe on the drive. Copies of a mirror may differ where they were not
        // made alike, and are made alike without it.
        let stripes = self.layout.stripes();
        let first = self.synced_for_good.min(stripes);
        let is_mirror = self.layout.spec().is_mirror();
        let end = if is_mirror { stripes } else { self.synced.max(first) };
        self.missed.mark_all(drive, first..end);
        // What was not read back may not be there, or not in the copy that was made of it.
        let unchecked: Vec<Extent> = self.verify.records.extents(drive).collect();
        for extent in unchecked {
            let stripe = |lba| self.layout.symbol(Cell { drive, lba }).0.stripe;
            let last = extent.lba + (extent.sectors - Sectors::new(1));
            self.missed.mark_all(drive, stripe(extent.lba)..stripe(last) + 1);
        }
        self.note_not_copied(drive);
    }

    /// A drive is lost that another one was given a copy of: what that one does not hold is on the map.
    fn note_not_copied(&mut self, drive: DriveIdx) {
        let Some(copied) = self.copied.as_mut().filter(|copied| copied.drive == drive) else {
            return;
        };
        copied.note_lost(&self.layout);
        let of_drive = self.subs.values().filter(|sub| sub.drive == drive && !sub.is_orphan);
        for extent in of_drive.filter_map(|sub| sub.writes_places()) {
            copied.mark(&self.layout, extent);
        }
        let behind: Vec<u64> = copied.behind().collect();
        for region in behind {
            self.missed.mark_all(drive, copied.stripes(&self.layout, region));
        }
    }

    /// The drives that count: those that are there, and one that is about to.
    pub(crate) fn counted(&self) -> DriveSet {
        self.drives.present().or(self.nearly_present).and(self.layout.spec().ring_drives())
    }

    /// All others.
    pub(crate) fn uncounted_or_away(&self) -> DriveSet {
        self.drives.lost().without(self.nearly_present)
    }

    /// The drives that are there and whose rings do not count.
    pub(crate) fn uncounted(&self) -> DriveSet {
        self.drives.filling().without(self.nearly_present)
    }

    /// Room for the shares of a read, to be given back.
    pub(crate) fn take_shares(&mut self) -> Vec<Share> {
        let mut shares = std::mem::take(&mut self.shares);
        shares.clear();
        shares
    }

    pub(crate) fn give_back_shares(&mut self, shares: Vec<Share>) {
        self.shares = shares;
    }

    /// Whether the ledger waits for a drive, or an operation for which `waits` returns true.
    pub(crate) fn is_waited_for(&self, drive: DriveIdx, waits: impl Fn(&OpId) -> bool) -> bool {
        self.subs.values().any(|sub| sub.drive == drive && sub.purpose.costs_the_drive(&waits))
    }

    /// Whether an operation for which `is_meant` returns true has waited for this long for a command of a drive.
    pub(crate) fn is_kept_waiting(
        &self,
        now: Instant,
        drive: DriveIdx,
        time: Nanos,
        is_meant: impl Fn(&OpId) -> bool,
    ) -> bool {
        self.subs.values().any(|sub| {
            let is_old = sub.drive == drive && sub.enqueued + time <= now;
            is_old && sub.purpose.costs_the_drive(&is_meant)
        })
    }

    /// Since when the oldest write has waited that an operation for which `is_meant` returns true gave to these drives.
    pub(crate) fn writing_since(
        &self,
        drives: DriveSet,
        is_meant: impl Fn(OpId) -> bool,
    ) -> Option<Instant> {
        let writes = self.writes_of_ops(drives);
        writes.filter(|&(op, _)| is_meant(op)).map(|(_, enqueued)| enqueued).min()
    }

    /// Operations of which a write has waited for this long that they gave to these drives.
    pub(crate) fn writing_to(&self, drives: DriveSet, now: Instant, time: Nanos) -> BTreeSet<OpId> {
        let writes = self.writes_of_ops(drives);
        writes.filter(|&(_, enqueued)| enqueued + time <= now).map(|(op, _)| op).collect()
    }

    fn writes_of_ops(&self, drives: DriveSet) -> impl Iterator<Item = (OpId, Instant)> {
        let writes = self.subs.values().filter(move |sub| {
            sub.command.is_write() && drives.contains(sub.drive) && !sub.is_orphan
        });
        writes.filter_map(|sub| match sub.purpose {
            Purpose::Op(op) => Some((op, sub.enqueued)),
            Purpose::Ledger
            | Purpose::Ring
            | Purpose::Place
            | Purpose::List
            | Purpose::Fill
            | Purpose::Copy
            | Purpose::Verify
            | Purpose::Recall(_)
            | Purpose::Probe
            | Purpose::Abandoned => None,
        })
    }

    /// A write that an operation gave to a drive is the journal's from now on: what it writes, as the layout counts.
    pub(crate) fn give_to_journal(&mut self, sub: SubId) -> Written {
        let state = self.subs.get_mut(&sub).expect("its drive has not ended it");
        state.purpose = Purpose::Place;
        let extent = state.command.extent().expect("it writes somewhere");
        let drive = state.drive;
        self.drives.leave(drive, sub); // H1
        Written { drive, extent }
    }

    pub(crate) fn note_event(&mut self, event: Option<DriveEvent>) {
        self.note_events(event);
    }

    pub(crate) fn note_events(&mut self, events: impl IntoIterator<Item = DriveEvent>) {
        self.actions.extend(events.into_iter().map(Event::Standing).map(Action::Event));
    }

    /// Reads a little from drives that no read asks, to learn how fast they are.
    pub(crate) fn probe(&mut self, now: Instant) {
        for drive in self.drives.present().iter() {
            let Some(chunk_idx) = self.drives.take_probe(now, drive, self.layout.chunks()) else {
                continue;
            };
            let chunk = self.layout.spec().chunk();
            let lba = Lba::new(chunk_idx * chunk.get());
            let sectors = chunk.min(PROBE_SIZE);
            let place = Place { buf: self.name_buf(), sector: 0 };
            let count = sectors.get() as u32;
            self.enqueue(
                now,
                Enqueue {
                    purpose: Purpose::Probe,
                    drive,
                    command: Command::Read {
                        extent: Extent::new(lba, sectors),
                        effort: Effort::Fast,
                    },
                    segments: vec![Segment { place, sectors: count }],
                    origin: self.own_origin(),
                    end: End::Tail,
                    fate: Fate::Certain,
                    since: None,
                },
            );
        }
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
        self.actions.push_back(Action::Acquire { buf, sectors });
        buf
    }

    /// Lets go of a buffer: it is released when all have let go of it that retained it.
    pub(crate) fn release(&mut self, buf: BufId) {
        match self.retained.get_mut(&buf) {
            None => self.actions.push_back(Action::Release(buf)),
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

    /// Puts a command into a drive's queue.
    pub(crate) fn enqueue(&mut self, now: Instant, what: Enqueue) -> SubId {
        let Enqueue { purpose, drive, command, segments, origin, end, fate, since } = what;
        let is_books = purpose == Purpose::Ledger;
        assert!(self.may_write || is_books || !command.is_write(), "G1: {command:?}");
        if since.is_some() {
            self.verify.note_asked(drive);
        }
        self.sub_next += 1;
        let sub = SubId(self.sub_next);
        let (enqueued, started, due) = (now, None, None);
        let state = Sub {
            purpose,
            drive,
            command,
            segments,
            origin,
            fate,
            since,
            enqueued,
            started,
            due,
            ended_before: 0,
            is_orphan: false,
        };
        let is_flush = state.command.extent().is_none();
        let load = if is_flush { Load::Nothing } else { Load::Sectors };
        self.drives.push(now, Push { drive, sub, lba: state.lba(), end, load });
        self.subs.insert(sub, Box::new(state));
        sub
    }

    /// Whether more drives are lost than the layout survives.
    pub(crate) fn has_failed(&self) -> bool {
        self.drives.has_failed()
    }

    /// Whether the array holds what was written to the stripes below `end` as often as it can. Every write of a mirror
    /// goes to all copies, whatever else these hold.
    pub(crate) fn is_redundant(&self, end: u64) -> bool {
        end <= self.synced || self.layout.spec().is_mirror()
    }

    /// A drive was just lost: whether writes that were answered and not flushed may be gone with it, because some
    /// stripes have no valid redundancy.
    pub(crate) fn loses_writes(&self) -> bool {
        let is_covered = self.is_redundant(self.layout.stripes()) && !self.has_failed();
        !is_covered && self.writes_ended > self.writes_flushed
    }

    /// Answers a request, once the loss of these drives is safely recorded.
    pub(crate) fn answer(&mut self, relies_on: DriveSet, answer: Answer) {
        let relies_on = relies_on.and(self.unrecorded);
        if relies_on.is_empty() {
            self.actions.push_back(Action::Answer(answer));
        } else {
            self.counters.held += 1;
            self.held.push(Held { relies_on, answer, by: None });
        }
    }

    /// Answers that are held and have no limit yet get this one.
    pub(crate) fn limit_held(&mut self, by: Instant) {
        self.held.iter_mut().for_each(|held| held.by = held.by.or(Some(by)));
    }

    /// When the first answer that is held is given up.
    pub(crate) fn held_by(&self) -> Option<Instant> {
        self.held.iter().filter_map(|held| held.by).min()
    }

    /// The loss of these drives is safely recorded.
    pub(crate) fn note_recorded(&mut self, drives: DriveSet) {
        self.unrecorded = self.unrecorded.without(drives);
        for Held { relies_on, answer, by } in std::mem::take(&mut self.held) {
            let relies_on = relies_on.and(self.unrecorded);
            if relies_on.is_empty() {
                self.actions.push_back(Action::Answer(answer));
            } else {
                self.held.push(Held { relies_on, answer, by });
            }
        }
    }

    /// No loss will ever be recorded again: the held answers go out as failures.
    pub(crate) fn fail_held(&mut self) {
        self.fail_held_if(|_| true);
    }

    /// Sends the held answers as failures for whose time limit `is_over` returns true.
    pub(crate) fn fail_held_if(&mut self, is_over: impl Fn(Option<Instant>) -> bool) {
        for held in self.held.extract_if(.., |held| is_over(held.by)) {
            let answer = Answer { outcome: Outcome::Gone, ..held.answer };
            self.actions.push_back(Action::Answer(answer));
        }
    }

    /// Withdraws a command if no drive has it yet.
    pub(crate) fn withdraw(&mut self, now: Instant, sub: SubId) -> bool {
        let Some(state) = self.subs.get(&sub) else { return false };
        if state.started.is_some() || !self.drives.remove(state.drive, sub, state.lba()) {
            return false;
        }
        self.drives.note_withdrawn(now, state.drive, state.fate);
        self.subs.remove(&sub);
        true
    }

    /// No operation waits for a command any more that its drive may have. It is late if it ends after `due`.
    pub(crate) fn leave(&mut self, sub: SubId, due: Option<Instant>) {
        let Some(state) = self.subs.get_mut(&sub) else {
            // It has ended, and waits for its checksums perhaps.
            self.verify.held.remove(&sub);
            return;
        };
        state.due = due;
        self.drives.leave(state.drive, sub);
    }

    /// The operation that asked for a command goes on without it: it is withdrawn, or what it brings is released.
    pub(crate) fn abandon(&mut self, now: Instant, sub: SubId) {
        if self.withdraw(now, sub) {
            return;
        }
        self.leave(sub, None);
        if let Some(state) = self.subs.get_mut(&sub) {
            state.purpose = Purpose::Abandoned;
        }
    }

    /// Whether the drive of a command has lost or forgotten it: it has ended nothing for `patience`, or too many
    /// other commands since.
    pub(crate) fn is_stuck(&self, now: Instant, sub: SubId, patience: Nanos) -> bool {
        let state = self.subs.get(&sub).map(|state| &**state);
        let Some(&Sub { drive, started: Some(started), ended_before, .. }) = state else {
            return false;
        };
        self.drives.is_stuck(now, drive, started, ended_before, patience)
    }

    /// Lets commands into every drive whose window has room and that is not held for an old request.
    pub(crate) fn dispatch(&mut self, now: Instant) {
        for at in 0..self.drives.count() {
            let drive = DriveIdx::from_usize(at);
            if !self.drives.has_work(drive) {
                continue;
            }
            let room = self.drives.room(now, drive);
            while let Some(sub) = self.drives.pop(now, drive, room) {
                self.submit(now, drive, sub);
            }
        }
    }

    /// Hands a command to its drive.
    fn submit(&mut self, now: Instant, drive: DriveIdx, sub: SubId) {
        let state = self.subs.get_mut(&sub).expect("a queued command is known");
        assert_eq!(state.drive, drive, "{sub:?} waits for another drive");
        assert!(state.started.is_none(), "{sub:?} is inside a drive already");
        state.started = Some(now);
        state.ended_before = self.drives.ended(drive);
        if let Some(since) = state.since {
            self.drives.note_awaited(drive, sub, since);
        }
        if state.fate == Fate::Withdrawable {
            self.drives.note_kept(now, drive);
        }
        if let (Command::Read { extent, .. }, [segment]) =
            (state.command, state.segments.as_slice())
        {
            let buf = segment.place.buf;
            self.actions.push_back(Action::Acquire { buf, sectors: extent.sectors });
        }
        let submit = submit(&self.area, sub, state);
        if let Some(extent) = submit.command.extent() {
            self.arms[drive.as_usize()] = extent.lba;
        }
        let written = state.writes_places();
        let is_mend = is_mend(&self.verify, state.purpose);
        let twin = match (&mut self.copied, written) {
            (Some(copied), Some(extent)) if copied.drive == drive => {
                let course = copied.note_submitted(&self.layout, sub, extent);
                (course == Course::Both).then(|| (extent, submit.clone()))
            }
            _ => None,
        };
        self.actions.push_back(Action::Submit(submit));
        if let Some(extent) = written.filter(|_| !is_mend) {
            self.note_write_out(drive, extent);
        }
        if let Some((extent, submit)) = twin {
            let bufs: Vec<BufId> =
                submit.segments.iter().map(|segment| segment.place.buf).collect();
            bufs.iter().for_each(|&buf| self.retain(buf));
            let Submit { command, segments, .. } = submit;
            self.counters.copy_twins += 1;
            self.ask_coming(now, ForComing { what: What::Twin(extent), command, segments, bufs });
        }
    }

    /// Hands a command to the drive that is given a copy.
    pub(crate) fn ask_coming(&mut self, now: Instant, ask: ForComing) -> SubId {
        let ForComing { what, command, segments, bufs } = ask;
        let origin = self.own_origin();
        self.sub_next += 1;
        let sub = SubId(self.sub_next);
        let copied = self.copied.as_mut().expect("CO1: a drive is given a copy");
        let drive = copied.drive;
        let submit = Submit { drive, sub, command, segments, origin };
        self.actions.push_back(Action::Coming(submit.clone()));
        copied.inside.insert(sub, Coming { since: now, what, submit, again_at: None, bufs });
        sub
    }

    /// Since when a command has been inside its drive, if it is.
    pub(crate) fn inside_since(&self, sub: SubId) -> Option<Instant> {
        self.subs.get(&sub)?.started
    }

    /// What a command is for, and its drive.
    pub(crate) fn whose(&self, sub: SubId) -> Option<(Purpose, DriveIdx)> {
        self.subs.get(&sub).map(|state| (state.purpose, state.drive))
    }

    /// A command inside a drive, as the drive gets it, and what it is for.
    pub(crate) fn submit_of(&self, sub: SubId) -> Option<(Submit, Purpose)> {
        let state = self.subs.get(&sub)?;
        assert!(state.started.is_some(), "P1: {sub:?} is not inside its drive");
        Some((submit(&self.area, sub, state), state.purpose))
    }

    /// The outcome that counts for a command: one that was refused counts as failed.
    pub(crate) fn ended_with(&self, sub: SubId, outcome: &Outcome) -> Outcome {
        match outcome {
            Outcome::Done { .. } | Outcome::Gone => outcome.clone(),
            Outcome::Refused => {
                let sub = self.subs.get(&sub).unwrap_or_else(|| panic!("{sub:?} is not known"));
                failed(&sub.command)
            }
        }
    }

    /// A command has come back from its drive; returns what it was.
    pub(crate) fn finish(&mut self, now: Instant, sub: SubId, outcome: &Outcome) -> Box<Sub> {
        let state = self.subs.remove(&sub).unwrap_or_else(|| panic!("{sub:?} is not known"));
        let started = state.started.unwrap_or_else(|| panic!("{sub:?} is not inside a drive"));
        let drive = state.drive;
        if state.is_orphan {
            return state;
        }
        if let (Some(copied), Some(extent)) = (&mut self.copied, state.writes_places())
            && copied.drive == drive
        {
            copied.note_ended(&self.layout, sub, extent, outcome.is_good());
        }
        let Left { inside, event } = self.drives.handle_left(now, drive, sub);
        if let Some(due) = state.due {
            self.drives.note_late(drive, now > due);
        }
        self.note_event(event);
        if state.purpose == Purpose::Verify {
            self.verify.reading = self.verify.reading.without(DriveSet::EMPTY.with(drive));
            return state;
        }
        self.verify.note_ended(now, drive);
        if let Some(extent) = state.writes_places()
            && outcome.is_good()
            && !is_mend(&self.verify, state.purpose)
        {
            let is_awaited = state.since.is_some() || state.purpose == Purpose::Place;
            let sent = Sent { segments: &state.segments, is_awaited };
            self.verify.note_written(now, drive);
            self.keep_written(drive, extent, &sent);
        }
        if state.command == Command::Flush
            || matches!(state.purpose, Purpose::Ledger | Purpose::List)
        {
            return state;
        }
        let read = ended_read(&state, outcome);
        let ended = Ended { drive, enqueued: state.enqueued, started, inside, read };
        let event = self.drives.note_ended(now, &ended);
        self.note_event(event);
        state
    }

    /// Takes everything that waits for `drive` out of its queue.
    pub(crate) fn drain_waiting(&mut self, drive: DriveIdx) -> Vec<(SubId, Box<Sub>)> {
        let waits = |sub: &Sub| sub.drive == drive && sub.started.is_none();
        let waiting: Vec<SubId> =
            self.subs.iter().filter(|(_, sub)| waits(sub)).map(|(&id, _)| id).collect();
        waiting
            .into_iter()
            .map(|id| {
                let sub = self.subs.remove(&id).expect("it was there");
                let removed = self.drives.remove(drive, id, sub.lba());
                assert!(removed, "{id:?} waits in the queue");
                (id, sub)
            })
            .collect()
    }

    /// The commands inside `drive`. No operation waits for them any more; they stay known, because the drive may
    /// still end them and give back their buffers.
    pub(crate) fn give_up_inside(&mut self, drive: DriveIdx) -> Vec<(SubId, Box<Sub>)> {
        let waited = |purpose| match purpose {
            Purpose::Op(_)
            | Purpose::Ledger
            | Purpose::Ring
            | Purpose::Place
            | Purpose::List
            | Purpose::Fill
            | Purpose::Copy
            | Purpose::Verify
            | Purpose::Recall(_) => true,
            Purpose::Probe | Purpose::Abandoned => false,
        };
        let inside =
            self.subs.iter_mut().filter(|(_, sub)| sub.drive == drive && waited(sub.purpose));
        inside
            .map(|(&id, sub)| {
                let known = sub.clone();
                sub.purpose = Purpose::Abandoned;
                (id, known)
            })
            .collect()
    }

    /// The place of a lost drive has a new drive: what is inside the old one is not the new one's.
    pub(crate) fn orphan(&mut self, drive: DriveIdx) {
        for sub in self.subs.values_mut().filter(|sub| sub.drive == drive) {
            let is_let_go = matches!(sub.purpose, Purpose::Abandoned | Purpose::Probe);
            assert!(is_let_go, "drive {drive} is lost, and something waits for {:?}", sub.purpose);
            sub.is_orphan = true;
        }
    }

    /// Whether a drive has not ended some command that was given to it.
    pub(crate) fn has_inside(&self, drive: DriveIdx) -> bool {
        self.subs.values().any(|sub| sub.drive == drive)
    }

    /// Whether a command is inside a drive whose place has another one now.
    pub(crate) fn is_orphan(&self, sub: SubId) -> bool {
        self.subs.get(&sub).is_some_and(|sub| sub.is_orphan)
    }

    /// Whether no command is queued or inside a drive, except for those that are silent.
    pub(crate) fn is_quiet_but_for_silent(&self) -> bool {
        let silent = self.drives.silent();
        self.subs.values().all(|sub| sub.is_orphan || silent.contains(sub.drive))
    }

    /// Whether any command is queued or inside a drive.
    pub(crate) fn is_quiet(&self) -> bool {
        self.subs.values().all(|sub| sub.is_orphan)
    }

    /// Whether buffers have bytes.
    pub(crate) fn carries_content(&self) -> bool {
        match self.content {
            Content::Carried => true,
            Content::Absent => false,
        }
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

/// The maps that were found, where what is written is marked on them.
fn missed_at_first(settings: &Settings) -> Missed {
    let Some(journal) = &settings.journal else { return Missed::default() };
    let books = settings.books.as_ref();
    Missed::new(books, settings.spec.members(), journal.region_min.get())
}

/// The stripes that a drive holds when the array is started.
fn valid_at_first(settings: &Settings, at: usize) -> u64 {
    let drive = DriveIdx::from_usize(at);
    if !settings.lost.contains(drive) {
        return u64::MAX;
    }
    settings.books.as_ref().and_then(|books| books.filled_to(drive)).unwrap_or(0)
}

/// Whether a command mends what a record says, which stays.
fn is_mend(verify: &Verify, purpose: Purpose) -> bool {
    matches!(purpose, Purpose::Op(op) if verify.is_mended_by(op))
}

/// What a command says of its drive as a read, if it was one.
fn ended_read(sub: &Sub, outcome: &Outcome) -> Option<EndedRead> {
    let Command::Read { extent, effort } = sub.command else { return None };
    let reader = match sub.purpose {
        Purpose::Probe | Purpose::Abandoned | Purpose::Verify => Reader::None,
        Purpose::Op(_)
        | Purpose::Ledger
        | Purpose::Ring
        | Purpose::Place
        | Purpose::List
        | Purpose::Fill
        | Purpose::Copy
        | Purpose::Recall(_) => Reader::Operation,
    };
    let unread = match (effort, outcome) {
        (Effort::Fast, Outcome::Done { unknown, .. }) => Some(unknown.len()),
        (Effort::Fast | Effort::Limited(_) | Effort::Full | Effort::Medium, _) => None,
    };
    Some(EndedRead { fate: sub.fate, reader, unread, sectors: extent.sectors.get() })
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

fn submit(area: &Area, sub: SubId, state: &Sub) -> Submit {
    let Sub { drive, segments, origin, .. } = state;
    let (drive, command) = (*drive, on_drive(area, state));
    Submit { drive, sub, command, segments: segments.clone(), origin: *origin }
}

/// A command as its drive gets it.
fn on_drive(area: &Area, sub: &Sub) -> Command {
    match (sub.purpose, sub.command.extent()) {
        (Purpose::Ledger | Purpose::Ring | Purpose::List | Purpose::Recall(_), _) | (_, None) => {
            sub.command
        }
        (
            Purpose::Op(_)
            | Purpose::Place
            | Purpose::Fill
            | Purpose::Copy
            | Purpose::Verify
            | Purpose::Probe
            | Purpose::Abandoned,
            Some(extent),
        ) => sub.command.at(area.on_drive(extent).lba),
    }
}

impl Sub {
    /// How long ago it came into its drive's queue.
    pub(crate) fn age(&self, now: Instant) -> Nanos {
        now.saturating_since(self.enqueued)
    }

    fn lba(&self) -> Lba {
        self.command.extent().map_or(Lba::ZERO, |extent: Extent| extent.lba)
    }

    /// The sectors that it writes, as the layout counts them, if these are places of the array. Of a drive that is there no
    /// write is ever abandoned.
    fn writes_places(&self) -> Option<Extent> {
        match self.purpose {
            Purpose::Ledger
            | Purpose::Ring
            | Purpose::List
            | Purpose::Recall(_)
            | Purpose::Abandoned => None,
            Purpose::Op(_)
            | Purpose::Place
            | Purpose::Fill
            | Purpose::Copy
            | Purpose::Verify
            | Purpose::Probe => self.command.extent().filter(|_| self.command.is_write()),
        }
    }

    /// Whether it was inside a drive whose place has another one now.
    pub(crate) fn is_orphan(&self) -> bool {
        self.is_orphan
    }

    /// The buffer that a write of one piece is written from.
    pub(crate) fn written_buf(&self) -> Option<BufId> {
        match (self.command, self.segments.as_slice()) {
            (Command::Write { .. }, [segment]) => Some(segment.place.buf),
            _ => None,
        }
    }

    /// The buffer a read fills.
    pub(crate) fn read_buf(&self) -> Option<BufId> {
        match (self.command, self.segments.as_slice()) {
            (Command::Read { .. }, [segment]) => Some(segment.place.buf),
            _ => None,
        }
    }
}

/// The outcome of a command that was not carried out at all.
fn failed(command: &Command) -> Outcome {
    let all = SectorSet::first(command.payload());
    let (unknown, damaged) = match command {
        Command::Read { effort: Effort::Fast | Effort::Limited(_), .. } => (all, SectorSet::EMPTY),
        Command::Read { effort: Effort::Full | Effort::Medium, .. } | Command::Write { .. } => {
            (SectorSet::EMPTY, all)
        }
        Command::WriteZeroes { .. } | Command::Trim { .. } | Command::Flush => {
            return Outcome::Gone;
        }
    };
    Outcome::Done { unknown, damaged }
}

/// Whether an outcome means that the drive is lost: it does not answer, or it could not write.
pub(crate) fn loses_drive(command: &Command, outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Gone => true,
        Outcome::Done { damaged, .. } => command.is_write() && !damaged.is_empty(),
        Outcome::Refused => false,
    }
}
