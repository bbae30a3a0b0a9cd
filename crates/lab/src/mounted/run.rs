//! The steps of a workload, carried out over a mounted filesystem.
//!
//! - RU1. A step ends when its answer has come; what it reads is compared with what was written.
//! - RU2. A stage ends when everything that it wrote is durable and its redundancy is in its place; what is rewritten because it could
//!   hardly be read, and what an unmount does besides, comes after that. Nothing is in memory when the next stage begins.

use std::collections::BTreeMap;

use levelhead_block::RequestId;
use levelhead_fs::{Answer, FileKind, Named, Removed, Setting, Status, What};
use levelhead_trace::{FileId, Habit, Stage, Step, Window};
use levelhead_units::{Instant, Nanos};

use super::{Kinds, Mounted, MountedError, SyncEnds};

/// The extended attribute that says of which kind a file is.
const KIND: &[u8] = b"user.levelhead.kind";

/// How long a stage took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Took {
    /// Until the last step had ended and what it wrote was safe and redundant.
    pub all: Nanos,
    /// Of each step, in the stage's order.
    pub steps: Vec<Nanos>,
    /// From the stage's begin until the end of each step.
    pub ends: Vec<Nanos>,
    /// How the filesystem stood when everything was safe.
    pub status: Status,
}

/// What a step waits for.
#[derive(Clone, Copy, Debug)]
enum Waits {
    /// The answer to its last request.
    End,
    /// Its file is found by its name, as a program opens it.
    Found,
    /// Its file is made, and its kind is set then.
    Made { file: FileId, habit: Habit },
    /// Its name is gone, and the inode is to be forgotten.
    Removed { file: FileId },
}

/// Steps that are under way.
#[derive(Debug, Default)]
struct UnderWay {
    requests: BTreeMap<RequestId, (usize, Waits)>,
    /// When the processor is ready, and with which step.
    computing: BTreeMap<Instant, usize>,
    /// Syncs that wait for redundancy.
    settling: Vec<usize>,
}

/// The file that a step uses and that is there before it.
fn file_of(step: &Step) -> Option<FileId> {
    match step {
        Step::Read { file, .. } | Step::Write { file, .. } | Step::Sync(file) => Some(*file),
        Step::Create { .. } | Step::Remove(_) | Step::Compute(_) => None,
    }
}

impl Mounted {
    /// Does what a stage says.
    ///
    /// # Errors
    ///
    /// Something does not end, fails, or gives other bytes than were written. A sector that is lost is an error.
    pub fn carry_out(&mut self, stage: &Stage) -> Result<Took, MountedError> {
        let begun = self.now;
        let mut window = Window::new(stage);
        let mut under_way = UnderWay::default();
        let mut steps = vec![Nanos::ZERO; stage.steps.len()];
        let mut ends = steps.clone();
        while !window.is_over() {
            while let Some(number) = window.poll() {
                steps[number] = Nanos::new(self.now.as_nanos());
                self.begin(number, &stage.steps[number], &mut under_way);
            }
            let ended = self.ended(stage, &mut under_way)?;
            if ended.is_empty() {
                self.step(under_way.computing.keys().next().copied())?;
            }
            for number in ended {
                steps[number] = Nanos::new(self.now.as_nanos()).saturating_sub(steps[number]);
                ends[number] = self.now.saturating_since(begun);
                window.handle_end(number);
            }
        }
        match self.do_now(What::Sync { inode: None })? {
            Answer::Done => {}
            other => return Err(MountedError::Wrong(format!("{}: {other:?}", stage.name))),
        }
        let status = self.status();
        let ended = self.remount()?;
        Ok(Took { all: ended.saturating_since(begun), steps, ends, status })
    }

    fn begin(&mut self, number: usize, step: &Step, under_way: &mut UnderWay) {
        if let Some(file) = file_of(step)
            && self.open.insert(file)
        {
            let id = self.ask(What::Lookup(self.name(file)));
            under_way.requests.insert(id, (number, Waits::Found));
            return;
        }
        let inode = |file: &FileId| self.inodes[file];
        let (what, waits) = match step {
            Step::Create { file, habit } => {
                let make =
                    What::Make { name: self.name(*file), mode: 0o100_644, umask: 0, device: 0 };
                (make, Waits::Made { file: *file, habit: *habit })
            }
            Step::Read { file, offset, length } => {
                let count = u32::try_from(length.get()).expect("requests are shorter");
                let (inode, offset) = (inode(file), offset.get());
                (What::Read { inode, offset, count }, Waits::End)
            }
            Step::Write { file, offset, length } => {
                let inode = inode(file);
                let bytes = self.content.write(*file, offset.get(), length.get());
                let offset = offset.get();
                (What::Write { inode, offset, bytes, appends: false }, Waits::End)
            }
            Step::Sync(file) => (What::Sync { inode: Some(inode(file)) }, Waits::End),
            Step::Remove(file) => {
                let what = What::Remove { name: self.name(*file), what: Removed::File };
                (what, Waits::Removed { file: *file })
            }
            Step::Compute(time) => {
                let mut at = self.now + *time;
                // One processor: two never end at once.
                while under_way.computing.contains_key(&at) {
                    at = at + Nanos::new(1);
                }
                under_way.computing.insert(at, number);
                return;
            }
        };
        let id = self.ask(what);
        under_way.requests.insert(id, (number, waits));
    }

    /// Steps that have ended.
    fn ended(
        &mut self,
        stage: &Stage,
        under_way: &mut UnderWay,
    ) -> Result<Vec<usize>, MountedError> {
        let mut ended = Vec::new();
        if self.status().groups_stale == 0 {
            ended.append(&mut under_way.settling);
        }
        while let Some((&at, &number)) = under_way.computing.first_key_value()
            && at <= self.now
        {
            under_way.computing.remove(&at);
            ended.push(number);
        }
        while let Some((id, answer)) = self.answers.pop_first() {
            let Some((number, waits)) = under_way.requests.remove(&id) else { continue };
            let step = &stage.steps[number];
            if matches!((waits, &answer), (Waits::Found, Answer::Entry(_))) {
                self.begin(number, step, under_way);
                continue;
            }
            let more = self.handle_answer(step, waits, answer).map_err(|how| {
                MountedError::Wrong(format!("step {number} of {}, {step:?}: {how}", stage.name))
            })?;
            match more {
                Some((what, waits)) => {
                    let id = self.ask(what);
                    under_way.requests.insert(id, (number, waits));
                }
                None if self.sync_goes_on(step) => under_way.settling.push(number),
                None => ended.push(number),
            }
        }
        Ok(ended)
    }

    fn sync_goes_on(&self, step: &Step) -> bool {
        let waits = self.settings.sync == SyncEnds::Redundant && matches!(step, Step::Sync(_));
        waits && self.status().groups_stale > 0
    }

    /// What a step asks for next; nothing if it is over.
    fn handle_answer(
        &mut self,
        step: &Step,
        waits: Waits,
        answer: Answer,
    ) -> Result<Option<(What, Waits)>, String> {
        match (waits, answer, step) {
            (_, Answer::Failed(errno), _) => Err(format!("{errno:?}")),
            (Waits::Made { file, habit }, Answer::Entry(attributes), _) => {
                self.inodes.insert(file, attributes.inode);
                self.open.insert(file);
                Ok(self.kind(habit).map(|kind| {
                    let value = kind.name().as_bytes().to_vec();
                    let (inode, name, mode) = (attributes.inode, KIND.to_vec(), Setting::Any);
                    (What::SetExtended { inode, name, value, mode }, Waits::End)
                }))
            }
            (Waits::Removed { file }, Answer::Done, _) => {
                self.content.forget(file);
                let inode = self.inodes.remove(&file).expect("it was there");
                Ok(Some((What::Forget { inode, count: 1 }, Waits::End)))
            }
            (_, Answer::Bytes(bytes), Step::Read { file, offset, length }) => {
                let right = self.content.bytes(*file, offset.get(), length.get());
                (bytes == right).then_some(None).ok_or_else(|| "it gives wrong bytes".to_owned())
            }
            (_, Answer::Written(count), Step::Write { length, .. }) => {
                let is_all = u64::from(count) == length.get();
                is_all.then_some(None).ok_or_else(|| format!("{count} bytes were written"))
            }
            (_, Answer::Done | Answer::Attributes(_), _) => Ok(None),
            (_, other, _) => Err(format!("{other:?}")),
        }
    }

    fn name(&self, file: FileId) -> Named {
        Named { parent: self.fs.root(), name: format!("{:08}", file.0).into_bytes() }
    }

    /// How a file is laid out that is used like that, if not as the filesystem does it.
    fn kind(&self, habit: Habit) -> Option<FileKind> {
        match self.settings.kinds {
            Kinds::Auto => None,
            Kinds::All(kind) => Some(kind),
            Kinds::ByHabit => Some(match habit {
                Habit::Sequential => FileKind::A,
                Habit::Random => FileKind::B,
                Habit::Changing => FileKind::Mutable,
            }),
        }
    }
}
