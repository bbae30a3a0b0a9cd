//! A filesystem that is not mounted under a directory: its core over its disk, for one who asks and waits.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time;

use levelhead_block::adapter::Waiting;
use levelhead_block::{BlockDevice, Command, RequestId};
use levelhead_fs::{
    Action, Answer, Caller, Ended, Event, Filesystem, Moment, MountMode, Request, Settings, Status,
    Submit, What,
};
use levelhead_host::LoneDrive;
use levelhead_units::Instant;

use super::arithmetic::choices;
use super::target::{Target, find_superblock};
use levelhead_app::AppError;

/// Commands that are inside the disk at a time.
const INSIDE_MAX: usize = 64;

/// Waits without an end of anything after which something is wrong.
const WAITS_MAX: u32 = 64;

/// See the module.
pub(super) struct Alone {
    core: Filesystem,
    device: Waiting<LoneDrive>,
    drive: Arc<LoneDrive>,
    name: String,
    begun: time::Instant,
    inside: VecDeque<Submit>,
    answers: VecDeque<Answer>,
    on_event: Box<dyn FnMut(Event)>,
    last: u64,
}

impl Alone {
    /// Opens a target, and puts in order what a cut has left.
    pub(super) fn open(text: &str, on_event: Box<dyn FnMut(Event)>) -> Result<Self, AppError> {
        Self::open_as(text, MountMode::ReadWrite, on_event)
    }

    /// The same; what is only read is left as it is.
    pub(super) fn open_as(
        text: &str,
        mode: MountMode,
        on_event: Box<dyn FnMut(Event)>,
    ) -> Result<Self, AppError> {
        let Target { member, .. } = Target::find(text)?;
        let name = member.to_string();
        let drive = Arc::new(LoneDrive::open(&member).map_err(AppError::usage)?);
        let superblock = find_superblock(&drive, &name)?;
        if mode == MountMode::ReadWrite && !superblock.may_write() {
            return Err(AppError::usage(format!(
                "{name} has the features {:#x}, with which this program can only read",
                superblock.read_only
            )));
        }
        let settings = Settings { mode, ..Settings::new(choices(mode)) };
        let core = Filesystem::new(Instant::ZERO, superblock, settings);
        let device = Waiting::new(Arc::clone(&drive));
        let (inside, answers) = (VecDeque::new(), VecDeque::new());
        let begun = time::Instant::now();
        Ok(Self { core, device, drive, name, begun, inside, answers, on_event, last: 0 })
    }

    /// The root directory's inode.
    pub(super) fn root(&self) -> u64 {
        self.core.root()
    }

    fn now(&self) -> Instant {
        // 2^64 ns are 584 years.
        Instant::from_nanos(self.begun.elapsed().as_nanos() as u64)
    }

    /// Asks, and waits for the answer.
    pub(super) fn run(&mut self, what: What) -> Result<Answer, AppError> {
        self.last += 1;
        let request = Request {
            id: RequestId(self.last),
            caller: Caller { uid: 0, gid: 0 },
            now: Moment::default(),
            what,
        };
        self.core.handle_request(self.now(), request);
        self.go_on(|alone| !alone.answers.is_empty())?;
        Ok(self.answers.pop_front().expect("it has just come"))
    }

    /// Brings everything to its place, and lets go of the disk; returns how it stood at the end.
    ///
    /// # Errors
    ///
    /// The disk has not stored everything.
    pub(super) fn close(mut self) -> Result<Status, AppError> {
        self.core.unmount(self.now());
        let closed = self.go_on(|alone| alone.core.is_unmounted());
        self.drive.wind_up();
        closed?;
        if self.core.ended() == Some(Ended::NotStored) {
            let name = &self.name;
            return Err(AppError::trouble(format!(
                "{name}: not everything that was to be written is stored"
            )));
        }
        Ok(self.core.status())
    }

    fn go_on(&mut self, is_done: impl Fn(&Self) -> bool) -> Result<(), AppError> {
        let mut waits = 0;
        loop {
            while let Some(action) = self.core.poll() {
                match action {
                    Action::Submit(submit) => self.inside.push_back(submit),
                    Action::Reply { answer, .. } => self.answers.push_back(answer),
                    Action::Event(event) => (self.on_event)(event),
                    // Nothing is kept of attributes.
                    Action::Invalidate { .. } => {}
                }
            }
            if is_done(self) {
                return Ok(());
            }
            if !self.inside.is_empty() {
                self.carry_out();
                waits = 0;
                continue;
            }
            waits += 1;
            if waits > WAITS_MAX {
                return Err(AppError::trouble(format!("{} does not answer any more", self.name)));
            }
            let now = self.core.deadline().map_or(self.now(), |at| at.max(self.now()));
            self.core.handle_timeout(now);
        }
    }

    /// Reads that follow each other go in together, and everything else by itself: what is given to a device at once has no order.
    fn carry_out(&mut self) {
        let (mut subs, mut batch) = (Vec::new(), Vec::new());
        while let Some(submit) = self.inside.pop_front() {
            let is_alone = !matches!(submit.request.command, Command::Read { .. });
            if is_alone && !batch.is_empty() {
                self.inside.push_front(submit);
                break;
            }
            subs.push(submit.sub);
            batch.push(submit.request);
            if is_alone || batch.len() == INSIDE_MAX {
                break;
            }
        }
        for (sub, reply) in subs.into_iter().zip(self.device.run(batch)) {
            self.core.handle_done(self.now(), sub, reply);
        }
    }
}
