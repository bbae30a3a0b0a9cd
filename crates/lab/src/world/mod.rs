//! One array over modelled drives, in virtual time.
//!
//! The time of a world is that of the array's server ([`ServerClock`]). Drives live in the machine's time, which is ahead
//! of it by the time in which the server stood still ([`World::stand_still`]).

mod actions;
mod bay;
mod faults;
mod settings;
mod trail;

use std::sync::Arc;

use levelhead_array::membership::Why;
use levelhead_array::{
    Answer, Area, Array, ArrayEvent, Blame, BufId, Content, DriveEvent, Ending, Patience,
    RebuildWish, Refusal, RequestId, ServerClock, Settings, VerifySettings,
};
use levelhead_block::{Buf, Command, Memory};
use levelhead_bytes::Caching;
use levelhead_drive::Drive;
use levelhead_sim::{EventQueue, LogHash};
use levelhead_stats::Streams;
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Lba, Nanos, Sectors};

use crate::bytes::WorldBytes;
use crate::records::Records;

pub use settings::{WorldError, WorldSettings};
pub use trail::{Step, Trail};

use bay::{Bay, Makes};

/// How often drives' health pages are read.
const HEALTH_INTERVAL: Nanos = Nanos::from_secs(1);

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
    pub(super) clock: ServerClock,
    /// What is written on the members for the next start, where the array records what it is.
    pub(crate) records: Option<Records>,
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
    trail: Trail,
    log: LogHash,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Wake(DriveIdx),
    Timer,
    Health,
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
        let groups = settings.spec.tag_groups();
        let whole = || Area::filling(Extent::new(Lba::ZERO, smallest), groups);
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
            recorded: None,
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
            clock: ServerClock::default(),
            records: None,
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
            trail: Trail::default(),
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

    /// The time of the last reading of the server's clock, at a standstill.
    pub fn server_time(&self) -> Instant {
        self.clock.last()
    }

    /// How many events there have been: ends of drives' commands and looks at their health.
    pub fn events(&self) -> u64 {
        self.events.popped()
    }

    /// Drives that came into the places of others.
    pub fn replaced(&self) -> u64 {
        self.replaced
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

    /// What drives were given and have ended, once it is kept.
    pub fn trail(&mut self) -> &mut Trail {
        &mut self.trail
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
                let at = self.clock.machine_time(now);
                self.drives[drive.as_usize()].drive.handle_timeout(at);
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
                let at = self.clock.machine_time(now);
                for (idx, bay) in self.drives.iter().enumerate() {
                    self.array.handle_health(DriveIdx::from_usize(idx), bay.drive.health(at));
                }
                self.events.push(now + HEALTH_INTERVAL, Event::Health);
            }
        }
        self.take_back_wanted(now);
    }

    /// Drives that the array made itself do without are given what they have missed, as a server does.
    fn take_back_wanted(&mut self, now: Instant) {
        for drive in self.array.wanted_back().iter() {
            if self.array.may_return(drive).is_ok() {
                self.take_back(now, drive).expect("it was asked just now");
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
}
