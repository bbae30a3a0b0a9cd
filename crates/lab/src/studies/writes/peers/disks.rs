//! Modelled drives behind one host queue each: what a model of a peer sends its commands to.
//!
//! ```text
//!   push --> waiting (C-LOOK) --> at most `window` inside the drive --> ended, by `step`
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use levelhead_block::Command;
use levelhead_drive::{Drive, Profile, Settings};
use levelhead_sim::EventQueue;
use levelhead_stats::Streams;
use levelhead_units::{Instant, Lba, Nanos};

/// Drives of one make, and the time.
#[derive(Debug)]
pub(super) struct Disks {
    bays: Vec<Bay>,
    events: EventQueue<Event>,
    window: usize,
    pushed: u64,
}

#[derive(Debug)]
struct Bay {
    drive: Drive,
    waiting: BTreeMap<(Lba, u64), Command>,
    /// The last address that left the queue.
    arm: Lba,
    inside: usize,
    /// The wake-up that is in the event queue already.
    wake: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Wake(usize),
    Alarm,
}

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Happened {
    /// These commands have ended, by their names.
    Ended(Vec<u64>),
    /// The time of [`Disks::set_alarm`] has come.
    Alarm,
}

impl Disks {
    /// `count` drives, of which drive `i` behaves as drive `i` of an array does with the same seed.
    ///
    /// # Errors
    ///
    /// Drives that cannot be.
    pub(super) fn new(
        profile: &Arc<Profile>,
        settings: Settings,
        count: usize,
        window: u32,
        seed: u64,
    ) -> Result<Self, String> {
        let bay = |at: usize| {
            let profile = Arc::clone(profile);
            let drive = Drive::new(profile, settings, Streams::new(seed), &format!("drive/{at}"));
            let drive = drive.map_err(|error| error.to_string())?;
            Ok(Bay { drive, waiting: BTreeMap::new(), arm: Lba::ZERO, inside: 0, wake: None })
        };
        let bays = (0..count).map(bay).collect::<Result<_, String>>()?;
        Ok(Self { bays, events: EventQueue::new(), window: window as usize, pushed: 0 })
    }

    /// The time of the last event.
    pub(super) fn now(&self) -> Instant {
        self.events.now()
    }

    /// When something happens next, if anything does.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.events.next_at()
    }

    /// Commands that were pushed.
    pub(super) fn pushed(&self) -> u64 {
        self.pushed
    }

    /// How many sectors drive `disk` has.
    pub(super) fn size(&self, disk: usize) -> u64 {
        self.bays[disk].drive.size().get()
    }

    /// Names an alarm after `pause`.
    pub(super) fn set_alarm(&mut self, now: Instant, pause: Nanos) {
        self.events.push(now + pause, Event::Alarm);
    }

    /// Puts a command that has an extent into a drive's queue; its name.
    pub(super) fn push(&mut self, now: Instant, disk: usize, command: Command) -> u64 {
        self.pushed += 1;
        let name = self.pushed;
        let extent = command.extent().expect("models read and write");
        self.bays[disk].waiting.insert((extent.lba, name), command);
        self.feed(now, disk);
        name
    }

    /// Jumps to the next event.
    ///
    /// Panics if there is none.
    pub(super) fn step(&mut self) -> Happened {
        let (now, event) = self.events.pop().expect("something is under way");
        let Event::Wake(disk) = event else { return Happened::Alarm };
        let bay = &mut self.bays[disk];
        if bay.wake == Some(now) {
            bay.wake = None;
        }
        bay.drive.handle_timeout(now);
        let ended: Vec<u64> = std::iter::from_fn(|| bay.drive.poll()).map(|done| done.id).collect();
        bay.inside -= ended.len();
        self.feed(now, disk);
        Happened::Ended(ended)
    }

    fn feed(&mut self, now: Instant, disk: usize) {
        let (window, bay) = (self.window, &mut self.bays[disk]);
        while bay.inside < window {
            let ahead = bay.waiting.range((bay.arm, 0)..).next();
            let next = ahead.or_else(|| bay.waiting.iter().next()).map(|(key, _)| *key);
            let Some(key) = next else { break };
            let command = bay.waiting.remove(&key).expect("it is there");
            bay.arm = key.0;
            bay.inside += 1;
            bay.drive.handle_submit(now, key.1, command, key.1);
        }
        if let Some(at) = bay.drive.deadline().map(|at| at.max(now))
            && bay.wake.is_none_or(|wake| at < wake)
        {
            bay.wake = Some(at);
            self.events.push(at, Event::Wake(disk));
        }
    }
}
