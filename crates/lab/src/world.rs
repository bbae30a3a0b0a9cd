//! One array over modelled drives, in virtual time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use levelhead_array::journal::record::{checksums, examine};
use levelhead_array::membership::Why;
use levelhead_array::{
    self as array, Action, Answer, Area, Array, ArrayEvent, Blame, BufId, Content, Deliver,
    DriveEvent, Ending, HostOrder, JournalSettings, NewMember, NotReplaced, Patience, Policy,
    Promise, RebuildWish, Refusal, RequestId, Settings, Spec, SubId, Submit, VerifySettings,
};
use levelhead_block::{BlockDevice, Buf, Command, Memory, Outcome, Piece, Silent};
use levelhead_bytes::{Caching, GARBAGE};
use levelhead_drive::{Drive, Profile, SettingsError};
use levelhead_sim::{EventQueue, LogHash};
use levelhead_stats::Streams;
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Lba, Nanos, Sectors};

use crate::bytes::WorldBytes;
use crate::shelf::Shelf;

/// How often drives' health pages are read.
const HEALTH_INTERVAL: Nanos = Nanos::from_secs(1);

/// What a world is made of.
#[derive(Clone, Debug)]
pub struct WorldSettings {
    /// The array's shape.
    pub spec: Spec,
    /// How it reads.
    pub policy: Policy,
    /// Commands inside a drive at a time.
    pub window: u32,
    /// In which order commands leave the host's queues.
    pub order: HostOrder,
    /// Whether buffers have bytes.
    pub content: Content,
    /// The drives' make.
    pub profile: Arc<Profile>,
    /// The faults of each drive, in the order of the drives. A single entry holds for all drives.
    pub drives: Vec<levelhead_drive::Settings>,
    /// The sectors of each drive that the array lies on; all that the smallest has, if it is not said.
    pub area: Option<Area>,
    /// The journal of an array that keeps no books.
    pub journal: Option<JournalSettings>,
    /// What chance is drawn from.
    pub seed: u64,
}

/// A world that cannot be.
#[derive(Clone, Debug, PartialEq)]
pub enum WorldError {
    /// More commands than a drive can hold.
    Window {
        /// What was asked for.
        window: u32,
        /// What a drive can hold.
        most: u32,
    },
    /// A drive cannot be like that.
    Drive(SettingsError),
    /// The drives are too small for a single stripe.
    TooSmall {
        /// A drive's size.
        size: Sectors,
    },
}

impl fmt::Display for WorldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Window { window, most } => {
                write!(f, "the window is from 1 to {most} commands, got {window}")
            }
            Self::Drive(error) => write!(f, "{error}"),
            Self::TooSmall { size } => {
                write!(f, "a drive of {} holds no stripe of the array", size.bytes())
            }
        }
    }
}

impl std::error::Error for WorldError {}

impl From<SettingsError> for WorldError {
    fn from(error: SettingsError) -> Self {
        Self::Drive(error)
    }
}

/// See the module.
#[derive(Debug)]
pub struct World {
    array: Array,
    /// What the array was made from, for the one after a power cut.
    array_settings: Settings,
    streams: Streams,
    pub(crate) drives: Vec<Bay>,
    /// What they are made like.
    makes: Makes,
    /// Drives that came into the places of others.
    pub(crate) replaced: u64,
    /// What is written on the members for the next start, where the array keeps books.
    pub(crate) shelf: Option<Shelf>,
    events: EventQueue<Event>,
    pub(crate) bytes: Option<WorldBytes>,
    answers: Vec<(Instant, Answer)>,
    drive_events: Vec<DriveEvent>,
    array_events: Vec<ArrayEvent>,
    losses: Vec<(DriveIdx, Why)>,
    ending: Option<Ending>,
    /// The array's deadline that is in the event queue already.
    timer: Option<Instant>,
    /// Drives whose next wake-up may have come nearer since it was last looked at.
    stirred: DriveSet,
    /// Commands that drives were given.
    submitted: u64,
    /// Writes that they have ended well and not stored as they were sent.
    silent_writes: u64,
    /// What drives were given and have ended since the last look, where that is kept.
    trail: Option<Vec<Step>>,
    log: LogHash,
}

/// A drive's part of a request's way.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// A drive was given a command.
    Given {
        at: Instant,
        drive: DriveIdx,
        sub: SubId,
        /// The request it serves, or a number near the largest for the array's own.
        origin: u64,
    },
    /// A drive has ended one.
    Ended {
        drive: DriveIdx,
        sub: SubId,
        /// When it was served first.
        began: Instant,
        /// When its retries began, or its end if there were none.
        retried: Instant,
        ended: Instant,
    },
}

/// What drives are made like.
#[derive(Clone, Debug)]
struct Makes {
    profile: Arc<Profile>,
    drives: Vec<levelhead_drive::Settings>,
}

/// A drive in its place, with what it is working on.
#[derive(Debug)]
pub(crate) struct Bay {
    pub(crate) drive: Drive,
    pub(crate) inside: BTreeMap<SubId, Submit>,
    /// Whether commands reach it.
    pub(crate) is_connected: bool,
    /// Whether it ends nothing.
    pub(crate) hangs: bool,
    /// The array is told of the commands that it has ended no sooner than this.
    stalls_until: Instant,
    /// Until this time its machine has no room for writes and flushes, and refuses them.
    refuses_until: Instant,
    /// Commands that were refused, and that the array has not been told of.
    refused: Vec<SubId>,
    /// The wake-up that is in the event queue already.
    wake: Option<Instant>,
}

impl Bay {
    fn new(drive: Drive) -> Self {
        Self {
            drive,
            inside: BTreeMap::new(),
            is_connected: true,
            hangs: false,
            stalls_until: Instant::ZERO,
            refuses_until: Instant::ZERO,
            refused: Vec::new(),
            wake: None,
        }
    }

    /// The array that asked for the commands inside has ended.
    fn forget(&mut self) {
        while self.drive.poll().is_some() {}
        while self.drive.poll_aftermath().is_some() {}
        self.inside.clear();
        self.refused.clear();
        (self.stalls_until, self.refuses_until) = (Instant::ZERO, Instant::ZERO);
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Wake(DriveIdx),
    Timer,
    Health,
}

/// What the log hash tells apart.
#[derive(Clone, Copy)]
enum Note {
    Submit,
    Done,
    Answer,
    Drive,
    Lost,
    Stopped,
}

impl World {
    /// A world at rest. Where bytes are carried, the drives are full of zeroes.
    ///
    /// Panics if the area is not on every drive.
    pub fn new(settings: &WorldSettings) -> Result<Self, WorldError> {
        let streams = Streams::new(settings.seed);
        let count = settings.spec.members();
        assert!([1, count].contains(&settings.drives.len()), "one drive setting, or one a drive");
        let mut drives = Vec::with_capacity(count);
        for idx in 0..count {
            let drive = settings.drives[idx % settings.drives.len()];
            if settings.window == 0 || settings.window > drive.queue_depth {
                return Err(WorldError::Window {
                    window: settings.window,
                    most: drive.queue_depth,
                });
            }
            let profile = Arc::clone(&settings.profile);
            let drive = Drive::new(profile, drive, streams, &format!("drive/{idx}"))?;
            drives.push(Bay::new(drive));
        }
        let smallest = drives.iter().map(|bay| bay.drive.size()).min();
        let smallest = smallest.expect("an array has drives");
        let whole = || Area::plain(Extent::new(Lba::ZERO, smallest));
        let area = settings.area.clone().unwrap_or_else(whole);
        let end = area.runs().last().expect("an area has a run").end();
        assert!(end <= Lba::ZERO + smallest, "{area:?} is not on drives of {smallest:?}");
        let drive_size = area.size();
        if drive_size < settings.spec.chunk() {
            return Err(WorldError::TooSmall { size: drive_size });
        }
        let array_settings = Settings {
            spec: settings.spec,
            area,
            policy: settings.policy,
            window: settings.window,
            order: settings.order,
            content: settings.content,
            synced: u64::MAX,
            lost: DriveSet::EMPTY,
            books: None,
            patience: None,
            background: None,
            verify: None,
            journal: settings.journal.clone(),
        };
        let array = Array::new(&array_settings, streams);
        let bytes = match settings.content {
            Content::Carried => {
                let cachings = drives.iter().map(|bay| Caching::of(bay.drive.writes_back()));
                Some(WorldBytes::new(cachings, end - Lba::ZERO))
            }
            Content::Absent => None,
        };
        let mut events = EventQueue::new();
        events.push(Instant::ZERO + HEALTH_INTERVAL, Event::Health);
        let (answers, log) = (Vec::new(), LogHash::default());
        Ok(Self {
            array,
            array_settings,
            streams,
            drives,
            makes: Makes {
                profile: Arc::clone(&settings.profile),
                drives: settings.drives.clone(),
            },
            replaced: 0,
            shelf: None,
            events,
            bytes,
            answers,
            drive_events: Vec::new(),
            array_events: Vec::new(),
            losses: Vec::new(),
            ending: None,
            timer: None,
            stirred: DriveSet::EMPTY,
            submitted: 0,
            silent_writes: 0,
            trail: None,
            log,
        })
    }

    /// The array.
    pub fn array(&self) -> &Array {
        &self.array
    }

    /// How many sectors the array has.
    pub fn size(&self) -> Sectors {
        self.array.size()
    }

    /// The time of the last event.
    pub fn now(&self) -> Instant {
        self.events.now()
    }

    /// How many events there have been: ends of drives' commands and looks at their health.
    pub fn events(&self) -> u64 {
        self.events.popped()
    }

    /// Keeps what drives are given and end from now on, for [`World::take_trail`].
    pub(crate) fn keep_trail(&mut self) {
        self.trail = Some(Vec::new());
    }

    /// What drives were given and have ended since the last call, in this order.
    pub(crate) fn take_trail(&mut self) -> Vec<Step> {
        self.trail.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// How many commands wait for each drive or are inside it.
    pub(crate) fn queue_lens(&self) -> impl Iterator<Item = u64> {
        // The array counts those inside a drive, too.
        (0..self.drives.len()).map(|idx| self.array.queue_len(DriveIdx::from_usize(idx)) as u64)
    }

    /// The hash of all that has happened.
    pub fn log(&self) -> LogHash {
        self.log
    }

    /// When something happens next; there is always another look at the drives' health.
    pub fn next_at(&self) -> Instant {
        self.events.next_at().expect("the drives' health is read again and again")
    }

    /// Sends a request at `now`, which must not be before the last event nor after the next. `buf`
    /// is the client's where bytes are carried.
    pub fn submit(&mut self, now: Instant, request: RequestId, command: Command, buf: Option<Buf>) {
        assert!(now <= self.next_at(), "{now:?} is past the next event");
        match (&mut self.bytes, buf) {
            (Some(bytes), Some(buf)) => bytes.insert(request, &command, buf),
            (None, None) => {}
            (Some(_), None) | (None, Some(_)) => {
                panic!("{request:?}: bytes where none are carried")
            }
        }
        self.array.handle_request(now, request, command);
        self.run_until_quiet(now);
    }

    /// A drive stops answering.
    pub fn kill(&mut self, now: Instant, drive: DriveIdx) {
        self.drives[drive.as_usize()].drive.handle_death(now);
        self.collect(now, drive);
        self.run_until_quiet(now);
    }

    /// An operator wants the array to do without a drive.
    pub fn lose(&mut self, now: Instant, drive: DriveIdx) {
        assert!(now <= self.next_at(), "{now:?} is past the next event");
        self.array.handle_lost(now, drive, Why::ByHand);
        self.run_until_quiet(now);
    }

    /// The power of all fails and comes back at `now`, which must not be before the last event nor after
    /// the next. Requests that were not answered never will be, and what drives had in memory only is
    /// gone. The array begins anew, with no redundancy valid until [`World::resync`] has made it so.
    pub fn power_cut(&mut self, now: Instant) {
        assert!(now <= self.next_at(), "{now:?} is past the next event");
        for idx in 0..self.drives.len() {
            self.destage(now, DriveIdx::from_usize(idx));
            let bay = &mut self.drives[idx];
            bay.drive.handle_power_cut(now);
            bay.forget();
        }
        self.stir_all();
        if let Some(bytes) = &mut self.bytes {
            bytes.lose_power();
        }
        self.answers.clear();
        self.array = match self.shelf {
            // Nothing runs until it is started again.
            Some(_) => Array::new(&self.array_settings, self.streams),
            None => {
                Array::new(&Settings { synced: 0, ..self.array_settings.clone() }, self.streams)
            }
        };
    }

    /// Begins anew with what `settings` says, in the place of an array that has ended.
    pub(crate) fn replace_array(&mut self, settings: Settings) {
        self.stir_all();
        let mut leftover = false;
        for bay in &mut self.drives {
            if std::mem::take(&mut bay.hangs) || bay.stalls_until > Instant::ZERO {
                leftover |= !bay.inside.is_empty();
                bay.forget();
            }
            assert!(bay.inside.is_empty(), "a drive is at work");
        }
        if let Some(bytes) = &mut self.bytes {
            // What drives that hang were to fill or to write was never given back.
            assert!(leftover || bytes.buffers.is_empty(), "buffers are left");
            bytes.forget_buffers();
        }
        self.array = Array::new(&settings, self.streams);
        for idx in 0..self.drives.len() {
            let drive = DriveIdx::from_usize(idx);
            self.array.handle_promise(drive, Promise::Medium);
            self.array.handle_revolution(drive, Some(self.makes.profile.rotation()));
        }
        (self.array_settings, self.ending) = (settings, None);
        self.losses.clear();
        self.array_events.clear();
    }

    /// The array, of which nothing has been asked yet, waits for its drives no longer than this.
    pub fn be_patient(&mut self, patience: Patience) {
        assert!(self.submitted == 0, "the array is at work");
        let patience = Some(patience);
        self.replace_array(Settings { patience, ..self.array_settings.clone() });
    }

    /// The array, of which nothing has been asked yet, reads back what it writes, from the medium of its drives.
    pub fn verify_writes(&mut self, verify: VerifySettings) {
        assert!(self.submitted == 0, "the array is at work");
        let verify = Some(verify);
        self.replace_array(Settings { verify, ..self.array_settings.clone() });
    }

    /// What the array was made from.
    pub(crate) fn array_settings(&self) -> &Settings {
        &self.array_settings
    }

    /// The array is to end; [`World::ending`] says when it has. No request must follow.
    pub fn stop(&mut self, now: Instant) {
        assert!(now <= self.next_at(), "{now:?} is past the next event");
        self.array.handle_stop(now);
        self.run_until_quiet(now);
    }

    /// How the array has ended, once it has.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// Drives that the array has come to do without, and why, since the last start.
    pub fn losses(&self) -> &[(DriveIdx, Why)] {
        &self.losses
    }

    /// Writes that drives have ended well and not stored as they were sent.
    pub fn silent_writes(&self) -> u64 {
        self.silent_writes
    }

    /// What has happened to the array as a whole since the last start.
    pub fn array_events(&self) -> &[ArrayEvent] {
        &self.array_events
    }

    /// A drive ends nothing from now on, until the next start. What it had in memory only is lost.
    pub fn hang(&mut self, now: Instant, drive: DriveIdx) {
        assert!(now <= self.next_at(), "{now:?} is past the next event");
        self.destage(now, drive);
        self.stirred = self.stirred.with(drive);
        let bay = &mut self.drives[drive.as_usize()];
        bay.hangs = true;
        bay.drive.handle_power_cut(now);
        while bay.drive.poll().is_some() {}
        while bay.drive.poll_aftermath().is_some() {}
        if let Some(bytes) = &mut self.bytes {
            bytes.lose_power_of(drive);
        }
    }

    /// A new drive, full of garbage, is in the place of another. Returns what was inside that one.
    pub(crate) fn put_new_drive(&mut self, drive: DriveIdx) -> Vec<SubId> {
        self.stirred = self.stirred.with(drive);
        let at = drive.as_usize();
        let mut settings = self.makes.drives[at % self.makes.drives.len()];
        settings.faults.death = None;
        let name = format!("drive/{at}/{}", self.replaced);
        let made = Drive::new(Arc::clone(&self.makes.profile), settings, self.streams, &name);
        let old = std::mem::replace(
            &mut self.drives[at],
            Bay::new(made.expect("the drive before it was made alike")),
        );
        if let Some(bytes) = &mut self.bytes {
            bytes.lose_power_of(drive);
            let medium = bytes.platter_mut(drive);
            let all = Extent::new(Lba::ZERO, medium.size());
            medium.bytes_mut(all).fill(GARBAGE);
        }
        if let Some(shelf) = &mut self.shelf {
            shelf.late[at].clear();
        }
        old.inside.into_keys().chain(old.refused).collect()
    }

    /// The array is told that a drive is back.
    pub(crate) fn take_back_into_array(
        &mut self,
        now: Instant,
        drive: DriveIdx,
        new: Option<NewMember>,
    ) -> Result<(), NotReplaced> {
        self.array.handle_returned(now, drive, new)?;
        self.run_until_quiet(now);
        Ok(())
    }

    /// The array is told of a new drive, and that what was inside the old one is gone.
    pub(crate) fn replace_in_array(
        &mut self,
        now: Instant,
        drive: DriveIdx,
        new: Option<NewMember>,
        orphans: Vec<SubId>,
    ) -> Result<(), NotReplaced> {
        self.array.handle_replaced(now, drive, new)?;
        for sub in orphans {
            self.array.handle_done(now, sub, &Outcome::Gone);
        }
        self.run_until_quiet(now);
        Ok(())
    }

    /// The array is to read and compare everything.
    pub(crate) fn scrub_in_array(&mut self, now: Instant) {
        self.array.handle_scrub_start(now, Blame::Drives);
        self.run_until_quiet(now);
    }

    /// Says how rebuilds go from now on.
    pub fn wish_of_rebuild(&mut self, now: Instant, wish: RebuildWish) {
        assert!(now <= self.next_at(), "{now:?} is past the next event");
        self.array.handle_rebuild_wish(now, wish);
        self.run_until_quiet(now);
    }

    /// Whether a drive hangs or is not connected, until the next start.
    pub fn is_away(&self, drive: DriveIdx) -> bool {
        let Bay { is_connected, hangs, .. } = &self.drives[drive.as_usize()];
        !is_connected || *hangs
    }

    /// What a drive ends is told no sooner than `until`, and then all at once.
    pub fn stall(&mut self, now: Instant, drive: DriveIdx, until: Instant) {
        assert!(now <= self.next_at() && now <= until, "{now:?} is past the next event");
        self.drives[drive.as_usize()].stalls_until = until;
        self.events.push(until, Event::Wake(drive));
    }

    /// The machine has no room for what a drive is to write or flush, until then.
    pub fn refuse(&mut self, now: Instant, drive: DriveIdx, until: Instant) {
        assert!(now <= self.next_at() && now <= until, "{now:?} is past the next event");
        self.drives[drive.as_usize()].refuses_until = until;
    }

    /// A cable comes out: what is inside the drive, and all that is asked of it later, ends as gone. What it had
    /// in memory only is lost.
    pub fn disconnect(&mut self, now: Instant, drive: DriveIdx) {
        assert!(now <= self.next_at(), "{now:?} is past the next event");
        self.destage(now, drive);
        let bay = &mut self.drives[drive.as_usize()];
        bay.is_connected = false;
        bay.drive.handle_power_cut(now);
        if let Some(bytes) = &mut self.bytes {
            bytes.lose_power_of(drive);
        }
        self.collect(now, drive);
        self.run_until_quiet(now);
    }

    /// Takes one step of making all redundancy valid, if there is one to take now.
    pub fn resync(&mut self, now: Instant) {
        assert!(now <= self.next_at(), "{now:?} is past the next event");
        self.array.handle_resync(now);
        self.run_until_quiet(now);
    }

    /// Jumps to the next event.
    pub fn step(&mut self) {
        let (now, event) = self.events.pop().expect("the drives' health is read again and again");
        match event {
            Event::Wake(drive) => {
                let bay = &mut self.drives[drive.as_usize()];
                if bay.wake == Some(now) {
                    bay.wake = None;
                }
                bay.drive.handle_timeout(now);
                self.collect(now, drive);
                self.run_until_quiet(now);
            }
            Event::Timer => {
                if self.timer == Some(now) {
                    self.timer = None;
                }
                self.array.handle_timeout(now);
                self.run_until_quiet(now);
            }
            Event::Health => {
                for (idx, bay) in self.drives.iter().enumerate() {
                    self.array.handle_health(DriveIdx::from_usize(idx), bay.drive.health(now));
                }
                self.events.push(now + HEALTH_INTERVAL, Event::Health);
            }
        }
    }

    /// The answers since the last call, with their times.
    pub fn take_answers(&mut self) -> Vec<(Instant, Answer)> {
        std::mem::take(&mut self.answers)
    }

    /// The same one after the other, without asking for memory anew for the next ones.
    pub fn drain_answers(&mut self) -> impl Iterator<Item = (Instant, Answer)> {
        self.answers.drain(..)
    }

    /// What has happened to drives' standings since the last call.
    pub fn take_drive_events(&mut self) -> Vec<DriveEvent> {
        std::mem::take(&mut self.drive_events)
    }

    /// How many commands drives were given: what was asked, less what was withdrawn in time.
    pub fn submitted(&self) -> u64 {
        self.submitted
    }

    /// An operator wants a drive not to be read where that can be helped.
    pub fn sit_out(&mut self, now: Instant, drive: DriveIdx) -> Result<(), Refusal> {
        self.array.handle_sit_out(now, drive)?;
        self.run_until_quiet(now);
        Ok(())
    }

    /// What an answered read has brought, where bytes are carried; of other requests an empty buffer.
    pub fn take_buf(&mut self, request: RequestId) -> Option<Buf> {
        let bytes = self.bytes.as_mut()?;
        if !bytes.rooms.remove(&request) {
            return Some(Buf::empty());
        }
        Some(bytes.buffers.remove(BufId::Client(request)))
    }

    /// Buffers that are held, where bytes are carried.
    pub fn buffer_count(&self) -> usize {
        self.bytes.as_ref().map_or(0, |bytes| bytes.buffers.len())
    }

    /// What a drive itself has counted.
    pub fn drive_counters(&self, drive: DriveIdx) -> levelhead_drive::Counters {
        self.drives[drive.as_usize()].drive.counters()
    }

    /// The bytes on a drive, where they are carried, to change them behind its back.
    pub fn platter_mut(&mut self, drive: DriveIdx) -> Option<&mut Memory> {
        self.bytes.as_mut().map(|bytes| bytes.platter_mut(drive))
    }

    /// Brings what a drive has ended to the array.
    fn collect(&mut self, now: Instant, drive: DriveIdx) {
        self.stirred = self.stirred.with(drive);
        let bay = &mut self.drives[drive.as_usize()];
        if now < bay.stalls_until {
            return;
        }
        for sub in std::mem::take(&mut bay.refused) {
            self.note(now, Note::Done, &[drive.as_usize() as u64, sub.0, code(&Outcome::Refused)]);
            self.array.handle_done(now, sub, &Outcome::Refused);
            self.carry_out(now);
        }
        while let Some(done) = self.drives[drive.as_usize()].drive.poll() {
            let sub = SubId(done.id);
            self.note(now, Note::Done, &[drive.as_usize() as u64, done.id, code(&done.outcome)]);
            self.silent_writes += u64::from(matches!(done.silent, Silent::Write(_)));
            if let Some(trail) = &mut self.trail {
                let before = |time: Nanos| {
                    Instant::from_nanos(done.ended.as_nanos().saturating_sub(time.get()))
                };
                let (began, retried) = (before(done.service), before(done.retrying));
                trail.push(Step::Ended { drive, sub, began, retried, ended: done.ended });
            }
            let submit = self.drives[drive.as_usize()].inside.remove(&sub);
            let outcome = done.outcome.clone();
            let is_lost = self.losses.iter().any(|(lost, _)| *lost == drive);
            if let (Some(bytes), Some(submit)) = (&mut self.bytes, submit)
                && !(is_lost && bytes.is_released(&submit))
            {
                let mut shelf = self.shelf.as_mut().filter(|_| done.outcome.is_good());
                match shelf.as_mut().and_then(|shelf| shelf.delay(&submit)) {
                    None => bytes.transfer(&submit, done),
                    Some(earlier) => bytes.postpone(&submit, earlier),
                }
                if let Some(copy) = shelf.and_then(|shelf| shelf.remembered(&submit)) {
                    bytes.remember(&submit, copy);
                }
            }
            self.array.handle_done(now, sub, &outcome);
            self.carry_out(now);
        }
        self.destage(now, drive);
        while let Some(aftermath) = self.drives[drive.as_usize()].drive.poll_aftermath() {
            if let Some(bytes) = &mut self.bytes {
                bytes.follow_up(drive, aftermath);
            }
        }
    }

    /// Brings to a drive's medium what the model has brought there.
    fn destage(&mut self, now: Instant, drive: DriveIdx) {
        if let Some(bytes) = &mut self.bytes
            && bytes.has_unwritten(drive)
        {
            bytes.destage(drive, &self.drives[drive.as_usize()].drive.unwritten(now));
        }
    }

    /// Lets the drives begin what they were given, until all is quiet at this moment.
    pub(crate) fn run_until_quiet(&mut self, now: Instant) {
        self.carry_out(now);
        for drive in std::mem::take(&mut self.stirred).iter() {
            let bay = &mut self.drives[drive.as_usize()];
            let due = bay.drive.deadline().map(|at| at.max(now));
            if let Some(at) = due
                && bay.wake.is_none_or(|wake| at < wake)
            {
                bay.wake = Some(at);
                self.events.push(at, Event::Wake(drive));
            }
        }
        let due = self.array.deadline().map(|at| at.max(now));
        if let Some(at) = due
            && self.timer.is_none_or(|timer| at < timer)
        {
            self.timer = Some(at);
            self.events.push(at, Event::Timer);
        }
    }

    pub(crate) fn stir_all(&mut self) {
        self.stirred = (0..self.drives.len()).map(DriveIdx::from_usize).collect();
    }

    fn carry_out(&mut self, now: Instant) {
        let mut touched = DriveSet::EMPTY;
        while let Some(action) = self.array.poll() {
            match action {
                Action::Acquire { buf, sectors } => {
                    if let Some(bytes) = &mut self.bytes {
                        bytes.acquire(buf, sectors);
                    }
                }
                Action::Combine(combine) => {
                    if let Some(bytes) = &mut self.bytes {
                        bytes.combine(&combine);
                    }
                }
                Action::Deliver(Deliver { request, segments }) => {
                    if let Some(bytes) = &mut self.bytes {
                        bytes.buffers.deliver(BufId::Client(request), &segments);
                    }
                }
                Action::Release(buf) => {
                    if let Some(bytes) = &mut self.bytes {
                        bytes.buffers.discard(buf);
                    }
                }
                Action::Inscribe { into, superblock } => {
                    let written = match &mut self.shelf {
                        Some(shelf) => shelf.inscribe(*superblock),
                        None => *superblock,
                    };
                    let bytes = self.bytes.as_mut().expect("an array that keeps books has bytes");
                    bytes.buffers.inscribe(into, &written.encode());
                }
                Action::Map { into, page } => {
                    let bytes = self.bytes.as_mut().expect("an array that keeps books has bytes");
                    bytes.buffers.inscribe(into, &page.encode());
                }
                Action::Enlist { into, listing } => {
                    let bytes = self.bytes.as_mut().expect("an array that keeps books has bytes");
                    bytes.buffers.inscribe(into, &listing.encode());
                }
                Action::Log { into, record, sums } => {
                    let bytes = self.bytes.as_mut().expect("records are about bytes");
                    bytes.log(into, &record, sums);
                }
                Action::Examine { buf, first, unreadable, ring } => {
                    let bytes = self.bytes.as_ref().expect("records are about bytes");
                    let found = examine(bytes.buffers.bytes(buf), first, &unreadable, ring);
                    self.array.handle_examined(now, buf, found);
                }
                Action::Digest { id, of } => {
                    let bytes = self.bytes.as_mut().expect("checksums are of bytes");
                    let sums = checksums(bytes.buffers.share(&of).iter().map(Piece::bytes));
                    self.array.handle_digested(now, id, &sums);
                }
                Action::Sum { buf } => {
                    let bytes = self.bytes.as_ref().expect("checksums are of bytes");
                    let sums = checksums(std::iter::once(bytes.buffers.bytes(buf)));
                    self.array.handle_summed(now, buf, &sums);
                }
                Action::Check { op, sums } => {
                    let bytes = self.bytes.as_ref().expect("sums are of bytes");
                    let zero: Vec<bool> =
                        sums.iter().map(|sum| bytes.buffers.is_zero_sum(sum)).collect();
                    self.array.handle_checked(now, op, &zero);
                }
                Action::Event(array::Event::Lost { drive, why }) => {
                    self.note(now, Note::Lost, &[drive.as_usize() as u64, why as u64]);
                    self.losses.push((drive, why));
                }
                Action::Stopped(ending) => {
                    self.land_late_records();
                    self.note(now, Note::Stopped, &[u64::from(ending == Ending::Clean)]);
                    self.ending = Some(ending);
                }
                Action::Event(array::Event::Array(event)) => self.array_events.push(event),
                Action::Event(array::Event::Standing(event)) => {
                    let what = [event.drive.as_usize() as u64, event.kind as u64];
                    self.note(now, Note::Drive, &what);
                    self.drive_events.push(event);
                }
                Action::Answer(answer) => {
                    self.note(now, Note::Answer, &[answer.request.0, code(&answer.outcome)]);
                    self.answers.push((now, answer));
                }
                Action::Coming(_) | Action::Seat(_) | Action::Dismiss(_) => {
                    unreachable!("no drive of a study is copied")
                }
                Action::Submit(submit) => {
                    touched = touched.with(submit.drive);
                    self.hand_over(now, submit);
                }
            }
        }
        // A dead drive ends its commands at once.
        for drive in touched.iter() {
            self.collect(now, drive);
        }
    }

    fn hand_over(&mut self, now: Instant, submit: Submit) {
        let Submit { drive, sub, command, origin, .. } = submit;
        self.submitted += 1;
        self.note(now, Note::Submit, &[drive.as_usize() as u64, sub.0]);
        if let Some(shelf) = &mut self.shelf {
            shelf.note_submitted(&submit);
        }
        if let Some(trail) = &mut self.trail {
            trail.push(Step::Given { at: now, drive, sub, origin });
        }
        let bay = &mut self.drives[drive.as_usize()];
        let is_read = matches!(command, Command::Read { .. });
        if now < bay.refuses_until && bay.is_connected && !bay.hangs && !is_read {
            bay.refused.push(sub);
            return;
        }
        if !bay.hangs {
            bay.drive.handle_submit(now, sub.0, command, origin);
        }
        if !bay.is_connected {
            bay.drive.handle_power_cut(now); // Ends it at once.
        }
        if self.bytes.is_some() {
            bay.inside.insert(sub, submit);
        }
    }

    fn note(&mut self, now: Instant, note: Note, what: &[u64]) {
        self.log.record(now, &[note as u64]);
        self.log.record(now, what);
    }
}

/// An outcome as a number, for the log.
fn code(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Done { unknown, damaged } => (unknown.len() as u64) << 32 | damaged.len() as u64,
        Outcome::Refused => u64::MAX,
        Outcome::Gone => u64::MAX - 1,
    }
}
