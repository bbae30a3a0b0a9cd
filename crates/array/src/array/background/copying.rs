//! A new drive for a place whose drive is there: it is given a copy, and then takes the place.
//!
//! ```text
//!   begun --> wiped --> regions are copied, pass after pass --> flushed, while the journal brings what it has to its places
//!                                    |                                             |
//!                                    |   the drive is lost, by itself or so  <-----+
//!                                    v
//!       recorded, with what the new drive lacks --> flushed --> it has the place --> recorded --> it is caught up
//! ```
//!
//! Until the last step the array goes on with the drive as if nothing were, and the new one is part of nothing. Then it is
//! to the array what a drive is that is back: it holds all but what it lacks. So nothing here decides what is safe but
//! [`copied`](crate::core::copied), which says what that begins with.
//!
//! The copy yields to clients as a rebuild does, and obeys what an operator has said of these.
//!
//! # Invariants
//!
//! - CP1. Nothing on the new drive says that it is part of the array before it has the place.
//! - CP2. It takes the place when the loss of the drive and what it lacks are recorded, nothing is inside the new drive, and a
//!   flush of it that was begun after that has ended.
//! - CP3. The array makes itself do without a drive that is copied only where it can, and while no other one is filled.
//! - CP4. A new drive that fails or says nothing costs the array nothing.
//! - CP5. Until a committed generation names the new drive it holds nothing, and lacks what is written: after a
//!   crash the old one may be taken back by what that lacks.
//! - CP6. A drive that the array made itself do without is taken back if the new one does not come: nothing was wrong with it.

mod exchange;
mod reading;

use std::collections::BTreeMap;

use levelhead_block::{BufId, Command, Durability, Effort, Outcome, Place, Segment, ZeroTail};
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Nanos, Sectors};

use super::places::NotReplaced;
use super::rebuild::{ABOUT, STEPS_MAX};
use super::tempo::Tempo;
use crate::action::Action;
use crate::array::background::Background;
use crate::array::parts::Stop;
use crate::array::{Array, Moved};
use crate::core::copied::{Coming, Copied, What};
use crate::core::postponed::PAUSE;
use crate::core::{Core, Enqueue, ForComing, Purpose};
use crate::drives::Fate;
use crate::drives::queue::End;
use crate::event::ArrayEvent;
use crate::log::rules::Rule;
use crate::meta::membership::Why;
use crate::meta::own::NewMember;
use crate::names::SubId;
use crate::progress::{CopyEnd, CopyProgress};
use crate::timers::first_of;

/// The journal gets this long to bring most of what it has for the drive to its place: what is not there is left as well.
const HURRY: Nanos = Nanos::from_secs(2);

/// The exchange waits no longer than this, all in all, for what the drive did not give to be mended.
const MENDS_MAX: Nanos = Nanos::from_secs(600);

/// A copy ends without an exchange when more passes than these were in vain: more is left than that, because clients write faster
/// than the new drive takes it.
const VAIN_MAX: u32 = 8;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    now: Option<Box<Copying>>,
    /// What new drives that are not wanted any more have inside them, and its memory.
    dismissed: BTreeMap<SubId, Vec<BufId>>,
    /// Drives that made way for a copy which does not come (CP6).
    wanted_back: Vec<WantedBack>,
}

/// A drive that is to be taken back, and until when that is awaited, where there is a limit.
#[derive(Clone, Copy, Debug)]
struct WantedBack {
    drive: DriveIdx,
    until: Option<Instant>,
}

#[derive(Clone, Debug)]
struct Copying {
    drive: DriveIdx,
    /// What will be recorded of the new drive, where that is.
    new: Option<NewMember>,
    phase: Phase,
    /// Whether the drive was lost because the new one was to come, and for nothing else.
    made_way: bool,
    steps: Vec<Step>,
    cursor: Option<Cursor>,
    /// Where the next region of the pass is looked for.
    from: u64,
    pass: Pass,
    /// Until when the exchange waits for mends, once it has.
    mends_until: Option<Instant>,
    /// Whether it has waited for them since the last pass began: what was mended is to be copied.
    has_waited: bool,
    tempo: Tempo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Older superblocks are taken off the new drive.
    Wiping,
    Copying,
    /// The new drive is flushed, so that the last flush is short, and the journal hurries until then.
    Flushing(Instant),
    /// The array is about to do without the drive.
    Leaving,
    /// The array does without the drive.
    Lost(Last),
    /// The new drive has the place (CP5).
    Seated,
}

/// The last flush of the new drive (CP2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    NotYet,
    /// What its tag sectors lack is being written.
    Listing,
    Flushing,
    Flushed,
}

/// Some sectors on their way: as the layout counts them.
#[derive(Clone, Debug)]
struct Step {
    region: u64,
    extent: Extent,
    /// The command that reads them, or writes them.
    sub: SubId,
}

/// What of a region is to be read yet.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    region: u64,
    left: Extent,
}

#[derive(Clone, Copy, Debug)]
struct Pass {
    /// How many of those before it were in vain.
    vain: u32,
    /// How many regions were to be copied when it began.
    began_with: u64,
    /// How many of them it has begun to copy.
    begun: u64,
}

impl Copies {
    fn of(&mut self, drive: DriveIdx) -> Option<&mut Copying> {
        self.now.as_deref_mut().filter(|copying| copying.drive == drive)
    }
}

impl Array {
    /// How far the copy of a drive is, if one is made.
    pub fn copy(&self) -> Option<CopyProgress> {
        let copied = self.core.holdings.copied()?;
        let (drive, left, regions) = (copied.drive, copied.left(), copied.regions());
        Some(CopyProgress { drive, left, regions })
    }

    /// Whether a new drive may be given a copy of a drive that is there, and then its place.
    pub fn may_copy(&self, drive: DriveIdx) -> Result<(), NotReplaced> {
        let drives = &self.core.drives;
        let is_recovering = self.journal.as_ref().is_some_and(|journal| !journal.is_ready());
        let only = DriveSet::EMPTY.with(drive);
        match () {
            () if self.core.code().is_none() => Err(NotReplaced::NotRedundant),
            () if self.core.has_failed() => Err(NotReplaced::Failed),
            () if drives.lost().contains(drive) => Err(NotReplaced::Unrecorded),
            () if self.has_nothing_to_fill(drive) => Err(NotReplaced::OnlyJournal),
            () if is_recovering => Err(NotReplaced::Recovering),
            () if self.is_ending() => Err(NotReplaced::Ending),
            () => match &self.own.copies.now {
                Some(other) => Err(NotReplaced::Copying { drive: other.drive }),
                None if self.core.holdings.synced() < self.core.layout().stripes() => {
                    Err(NotReplaced::Unsynced)
                }
                None if !drives.can_spare(only) => Err(NotReplaced::Needed),
                None if !self.core.log.is_journaled || !self.core.meta.has_room() => {
                    Err(NotReplaced::Unmapped)
                }
                None => Ok(()),
            },
        }
    }

    /// A new drive, of which nothing is used, is given a copy of a drive that is there ([`Action::Coming`]), and then has
    /// its place ([`Action::Seat`]). `new` is what is recorded of it from then on, where that is.
    pub fn handle_copy(
        &mut self,
        now: Instant,
        drive: DriveIdx,
        new: Option<NewMember>,
    ) -> Result<(), NotReplaced> {
        self.may_copy(drive)?;
        assert_eq!(self.store.is_some(), new.is_some(), "what is recorded of drive {drive}");
        if let Some(store) = &mut self.store {
            store.open(&mut self.core); // The loss of the drive must be recorded in the end.
        }
        let grid = self.core.meta.grid();
        let copied = Copied::new(drive, grid, self.keeps(Rule::CopyInside));
        self.core.holdings.begin_copy(copied);
        let regions = grid.regions;
        let copies = new.iter().flat_map(|new| new.own.copies());
        copies.for_each(|lba| wipe(&mut self.core, now, Extent::new(lba, Sectors::new(1))));
        self.own.copies.now = Some(Box::new(Copying {
            drive,
            new,
            phase: Phase::Wiping,
            made_way: false,
            steps: Vec::new(),
            cursor: None,
            from: 0,
            pass: Pass { vain: 0, began_with: regions, begun: 0 },
            mends_until: None,
            has_waited: false,
            tempo: Tempo::new(now),
        }));
        self.tell(ArrayEvent::CopyBegun(CopyProgress { drive, left: regions, regions }));
        self.move_on(now);
        Ok(())
    }

    /// The new drive that is given a copy must not be used any more.
    pub fn handle_copy_failed(&mut self, now: Instant) {
        if self.core.holdings.copied().is_some() {
            self.end_copy(now, CopyEnd::Failed);
        }
        self.move_on(now);
    }

    /// Whether this is a command of a drive that is given a copy, or was.
    pub fn is_coming(&self, sub: SubId) -> bool {
        let is_inside = |copied: &Copied| copied.inside.contains_key(&sub);
        self.own.copies.dismissed.contains_key(&sub)
            || self.core.holdings.copied().is_some_and(is_inside)
    }

    /// Whether this is a command of a drive that is not wanted any more.
    pub fn is_dismissed(&self, sub: SubId) -> bool {
        self.own.copies.dismissed.contains_key(&sub)
    }

    /// Whether drives that are not wanted any more have something inside.
    pub fn has_dismissed(&self) -> bool {
        !self.own.copies.dismissed.is_empty()
    }

    /// Whether a drive is copied, or another one that has a copy is about to take its place.
    pub fn is_copied(&self, drive: DriveIdx) -> bool {
        self.own.copies.now.as_ref().is_some_and(|copying| copying.drive == drive)
    }

    /// Drives that the array made itself do without, for new ones that did not come: each is as it was
    /// then, and is to be taken back ([`Array::handle_returned`]) as soon as [`Array::may_return`] allows that.
    pub fn wanted_back(&self) -> DriveSet {
        self.own.copies.wanted_back.iter().map(|back| back.drive).collect()
    }

    /// A drive is in its place again, or another one, or it must not be used.
    pub(crate) fn end_wanting_back(&mut self, drive: DriveIdx) {
        self.own.copies.wanted_back.retain(|back| back.drive != drive);
    }

    /// A drive is wanted back from now on, for as long as one may be silent.
    pub(crate) fn want_back(&mut self, now: Instant, drive: DriveIdx) {
        let until = self.core.drives.patience().map(|patience| now + patience.lost);
        self.own.copies.wanted_back.push(WantedBack { drive, until });
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.end.stop != Stop::No || self.end.give_up_at.is_some()
    }

    /// A command of the new drive has ended.
    pub(crate) fn handle_coming(&mut self, now: Instant, sub: SubId, outcome: &Outcome) {
        if let Some(bufs) = self.own.copies.dismissed.remove(&sub) {
            return bufs.into_iter().for_each(|buf| self.core.out.release(buf));
        }
        let copied = self.core.holdings.copied_mut().expect("it is known");
        if outcome.may_be_sent_again() && self.core.drives.patience().is_some() {
            // As of a member (P1 of `refused`): the array's patience with silence is the limit.
            let coming = copied.inside.get_mut(&sub).expect("it is inside");
            coming.again_at = Some(now + PAUSE);
            return;
        }
        let Coming { bufs, what, .. } = copied.inside.remove(&sub).expect("it is inside");
        bufs.into_iter().for_each(|buf| self.core.out.release(buf));
        if !outcome.is_good() {
            return self.end_copy(now, CopyEnd::Failed);
        }
        let Some(copying) = self.own.copies.now.as_deref_mut() else { return };
        match what {
            What::Wipe | What::Twin(_) | What::List => {}
            What::Copy => {
                if let Some(at) = copying.steps.iter().position(|step| step.sub == sub) {
                    let Step { region, .. } = copying.steps.swap_remove(at);
                    copying.tempo.end(now);
                    self.end_region_if_done(region);
                }
            }
            // One that was begun before the loss does not count, however late it ends (CP2).
            What::Flush => match &mut copying.phase {
                Phase::Lost(last @ Last::Flushing) => *last = Last::Flushed,
                Phase::Lost(Last::NotYet | Last::Listing | Last::Flushed)
                | Phase::Wiping
                | Phase::Copying
                | Phase::Flushing(_)
                | Phase::Leaving
                | Phase::Seated => {}
            },
        }
    }

    /// Gives the new drive again what it has refused.
    fn send_coming_again(&mut self, now: Instant) {
        let inside = self
            .core
            .holdings
            .copied_mut()
            .into_iter()
            .flat_map(|copied| copied.inside.values_mut());
        for coming in inside {
            if coming.again_at.take_if(|at| *at <= now).is_some() {
                self.core.out.push(Action::Coming(coming.submit.clone()));
            }
        }
    }

    /// What is recorded of the loss of a drive. One that makes way for its copy has not failed, but should the array be
    /// cut off before the new one has the place, the old one is to be taken back by itself.
    pub(crate) fn recorded_why(&self, drive: DriveIdx, why: Why) -> Why {
        let copying = self.own.copies.now.as_deref().filter(|copying| copying.drive == drive);
        let makes_way = copying.is_some_and(|copying| copying.phase == Phase::Leaving);
        if makes_way { Why::Silent } else { why }
    }

    /// A region is copied when no step of it is left, and none will come.
    fn end_region_if_done(&mut self, region: u64) {
        let Some(copying) = self.own.copies.now.as_deref() else { return };
        let is_open = copying.steps.iter().any(|step| step.region == region)
            || copying.cursor.is_some_and(|cursor| cursor.region == region);
        if let (false, Some(copied)) = (is_open, self.core.holdings.copied_mut()) {
            copied.end(region);
        }
    }

    /// Whether the array does without this drive because a new one is about to have its place.
    pub(crate) fn has_made_way(&self, drive: DriveIdx) -> bool {
        self.own
            .copies
            .now
            .as_ref()
            .is_some_and(|copying| copying.drive == drive && copying.made_way)
    }

    /// The array does without a drive from now on. If another one was given a copy of it, that one comes.
    pub(crate) fn note_copied_lost(&mut self, drive: DriveIdx) {
        if let Some(copying) = self.own.copies.of(drive) {
            if copying.phase == Phase::Seated {
                self.own.copies.now = None;
                return;
            }
            copying.made_way = copying.phase == Phase::Leaving;
            copying.phase = Phase::Lost(Last::NotYet);
            copying.cursor = None;
            // What is being written ends; what was read is let go when it comes.
            copying.steps.clear();
            self.hurry(false);
        }
    }

    /// When there is something to do that comes with time.
    pub(crate) fn copy_at(&self, now: Instant) -> Option<Instant> {
        let again =
            self.core.holdings.copied().into_iter().flat_map(|copied| copied.inside.values());
        let again = again.filter_map(|coming| coming.again_at).min();
        let wanted = self.own.copies.wanted_back.iter().filter_map(|back| back.until).min();
        first_of([self.copying_at(now), wanted, again])
    }

    fn copying_at(&self, now: Instant) -> Option<Instant> {
        let copying = self.own.copies.now.as_deref()?;
        let silent_at = first_of([self.coming_silent_at(), self.late_read_at()]);
        if let Phase::Flushing(until) = copying.phase {
            return first_of([Some(until).filter(|&at| at > now), silent_at]);
        }
        if !self.wants_copy() || !copying.steps.is_empty() {
            let mends_until = copying.mends_until.filter(|&at| at > now);
            return first_of([silent_at, mends_until]);
        }
        let next_at = copying.tempo.next_at();
        let quiet_at = self.own.rebuild.asked_last().map(|last| last + ABOUT);
        let times = [Some(next_at), Some(copying.tempo.due_at()), quiet_at];
        let next = times.into_iter().flatten().filter(|&at| at > now).min();
        first_of([next, silent_at])
    }

    /// When the new drive will have said nothing for too long.
    fn coming_silent_at(&self) -> Option<Instant> {
        let oldest = self.core.holdings.copied()?.inside.values().map(|coming| coming.since).min();
        Some(oldest? + self.core.drives.patience()?.lost)
    }

    /// Whether there is something to copy now.
    fn wants_copy(&self) -> bool {
        let Some(copying) = self.own.copies.now.as_deref() else { return false };
        let left = self.core.holdings.copied().map_or(0, Copied::to_do);
        copying.phase == Phase::Copying
            && !self.core.drives.silent().contains(copying.drive)
            && !self.rebuild_wish().is_paused
            && !self.is_rebuilding()
            && (left > 0 || copying.cursor.is_some())
    }

    /// Moves a copy on.
    pub(crate) fn keep_copy(&mut self, now: Instant) -> Moved {
        let meta = &self.core.meta;
        let is_awaited = |back: &WantedBack| back.until.is_none_or(|until| now < until);
        self.own.copies.wanted_back.retain(|back| is_awaited(back) && meta.knows_lacks(back.drive));
        let Some(copying) = self.own.copies.now.as_deref() else { return Moved::No };
        if copying.phase == Phase::Seated {
            return self.end_seating();
        }
        let hindrance = match () {
            () if self.core.has_failed() => Some(CopyEnd::ArrayFailed),
            () if self.is_ending() => Some(CopyEnd::Ending),
            () if self.coming_silent_at().is_some_and(|at| at <= now) => Some(CopyEnd::Silent),
            () => None,
        };
        if let Some(why) = hindrance {
            self.end_copy(now, why);
            return Moved::Yes;
        }
        let phase = copying.phase;
        self.send_coming_again(now);
        let is_idle = self.core.holdings.copied().is_some_and(|copied| copied.inside.is_empty());
        match phase {
            Phase::Wiping if is_idle => self.set_copy_phase(Phase::Copying),
            Phase::Wiping => Moved::No,
            Phase::Copying => match self.give_up_late_read(now) {
                Moved::Yes => Moved::Yes,
                Moved::No => match self.begin_copy_step(now) {
                    Moved::Yes => Moved::Yes,
                    Moved::No => self.end_pass(now),
                },
            },
            Phase::Flushing(until) => self.let_go_of_copied(now, until),
            Phase::Leaving | Phase::Seated => unreachable!("CP3: the drive is lost by then"),
            Phase::Lost(last) => self.seat(now, last, is_idle),
        }
    }

    fn set_copy_phase(&mut self, phase: Phase) -> Moved {
        self.own.copies.now.as_mut().expect("a copy is made").phase = phase;
        Moved::Yes
    }

    fn begin_copy_step(&mut self, now: Instant) -> Moved {
        if !self.wants_copy() {
            return Moved::No;
        }
        let are_about = self.own.rebuild.are_clients_about(now, self.clients.outstanding);
        let period = self.step_time().filter(|_| are_about);
        let Self { own: Background { copies, .. }, core, .. } = self;
        let copying = copies.now.as_deref_mut().expect("it wants a step");
        let drive = copying.drive;
        let is_early = now < copying.tempo.next_at()
            || (now < copying.tempo.due_at() && core.drives.queue_len(drive) > 0);
        let most = if are_about { 1 } else { STEPS_MAX };
        if copying.steps.len() >= most || (are_about && is_early) {
            return Moved::No;
        }
        let copied = core.holdings.copied_mut().expect("CO1: it is copied");
        let cursor = match copying.cursor {
            Some(cursor) => cursor,
            None => {
                let Some(region) = copied.next(core.place.layout(), copying.from) else {
                    return Moved::No;
                };
                copying.from = region + 1;
                copying.pass.begun += 1;
                let left = core
                    .place
                    .layout()
                    .extent_on(drive, copied.stripes(core.place.layout(), region));
                copied.begin(core.place.layout(), region);
                if left.sectors == Sectors::ZERO {
                    copied.end(region); // The drive is not of the few stripes of it.
                    return Moved::Yes;
                }
                Cursor { region, left }
            }
        };
        let step = self.own.rebuild.step_size();
        let first = Extent::new(cursor.left.lba, cursor.left.sectors.min(step));
        let extent = core.area().in_run(first);
        let left = Extent::new(extent.end(), cursor.left.sectors - extent.sectors);
        copying.cursor = (left.sectors > Sectors::ZERO).then_some(Cursor { left, ..cursor });
        copying.tempo.begin(now, period);
        core.counters.copy_reads += 1;
        let place = Place { buf: core.out.name_buf(), sector: 0 };
        let what = Enqueue {
            purpose: Purpose::Copy,
            drive,
            command: Command::Read { extent, effort: Effort::Full },
            segments: Segment { place, sectors: extent.sectors.get() as u32 }.into(),
            origin: core.own_origin(),
            end: End::Tail,
            fate: Fate::Certain,
            since: None,
        };
        let sub = core.enqueue(now, what);
        copying.steps.push(Step { region: cursor.region, extent, sub });
        Moved::Yes
    }

    /// Nothing more is to be begun: sees whether a pass is over, and what comes then.
    fn end_pass(&mut self, now: Instant) -> Moved {
        let may_exchange = self.may_exchange();
        let is_mending = self.is_mending();
        let Self { own: Background { copies, .. }, core, .. } = self;
        let copying = copies.now.as_deref_mut().expect("a copy is made");
        let copied = core.holdings.copied().expect("CO1: it is copied");
        let left = copied.to_do();
        let is_over = copying.steps.is_empty() && copying.cursor.is_none();
        let is_through = left == 0 || copied.next(core.layout(), copying.from).is_none();
        if !is_over || !is_through {
            return Moved::No;
        }
        let Pass { vain, began_with, begun } = copying.pass;
        let has_halved = begun > began_with / 2 && left <= began_with / 2;
        let mends_until = copying.mends_until;
        let is_mending = is_mending && mends_until.is_none_or(|until| now < until);
        if !copied.is_little() && (has_halved || !copied.is_small_share()) {
            // Regions that are being written to both drives cannot be copied now, which says nothing of the next pass. And
            // where the array cannot do without the drive yet, later passes keep what is left small.
            let is_in_vain = begun > began_with / 2 && !has_halved && may_exchange && !is_mending;
            let vain = vain + u32::from(is_in_vain);
            if vain > VAIN_MAX {
                self.end_copy(now, CopyEnd::TooSlow);
                return Moved::Yes;
            }
            copying.from = 0;
            if begun > 0 {
                copying.pass = Pass { vain, began_with: left, begun: 0 };
            }
            let is_free = copied.next(core.layout(), 0).is_some();
            return if is_free { Moved::Yes } else { Moved::No };
        }
        if !may_exchange {
            return Moved::No;
        }
        if is_mending {
            // What the drive does not give would be missing beside what others do not give of the same regions.
            copying.mends_until.get_or_insert(now + MENDS_MAX);
            copying.has_waited = true;
            return Moved::No;
        }
        if std::mem::take(&mut copying.has_waited) && copied.next(core.layout(), 0).is_some() {
            // However little that is.
            copying.from = 0;
            copying.pass = Pass { vain, began_with: left, begun: 0 };
            return Moved::Yes;
        }
        copying.phase = Phase::Flushing(now + HURRY);
        self.hurry(true);
        self.flush_coming(now);
        Moved::Yes
    }

    /// The new drive is not wanted any more.
    fn end_copy(&mut self, now: Instant, why: CopyEnd) {
        let Some(copying) = self.own.copies.now.take() else { return };
        self.hurry(false);
        let copied = self.core.holdings.take_copied().expect("CO1: it is copied");
        for Step { sub, .. } in copying.steps {
            self.core.abandon(now, sub);
        }
        for (sub, Coming { again_at, bufs, .. }) in copied.inside {
            match again_at {
                // It is not inside the drive, and is not sent again.
                Some(_) => bufs.into_iter().for_each(|buf| self.core.out.release(buf)),
                None => drop(self.own.copies.dismissed.insert(sub, bufs)),
            }
        }
        self.core.out.push(Action::Dismiss(copying.drive));
        if copying.made_way {
            self.want_back(now, copying.drive);
        }
        self.tell(ArrayEvent::CopyStopped { drive: copying.drive, why });
    }
}

/// Takes what may be a superblock off the new drive (CP1).
fn wipe(core: &mut Core, now: Instant, extent: Extent) {
    let place = Place { buf: core.out.acquire(extent.sectors), sector: 0 };
    core.out.combine(place, Vec::new());
    let (durability, zero_tail) = (Durability::Durable, ZeroTail::None);
    let command = Command::Write { extent, durability, zero_tail };
    let segments = Segment { place, sectors: 1 }.into();
    core.ask_coming(now, ForComing { what: What::Wipe, command, segments, bufs: vec![place.buf] });
}
