//! A filesystem mounted on one modelled drive, in virtual time.
//!
//! ```text
//!   Step --> [ run ] --Request--> [ fs ] --Submit--> waiting --> [ drive ] --> [ Compact ]
//!                ^                  |  ^                            |
//!                +----- answer -----+  +----------- done -----------+        one clock, one seed
//! ```
//!
//! The filesystem is the one that the kernel mounts, and its drive is the one of all studies. [`Mounted::carry_out`] does the steps of a
//! workload as its window lets them be under way, looks at every byte that comes back, and says how long it took.
//!
//! # Differs from the real thing
//!
//! - Computing takes no time, and there is no kernel above with a memory of its own: what a program reads ahead is in the workload's
//!   window, and what it wrote stays in the filesystem's memory only.
//! - A sector that fails does so by the read, as in the papers: writing it anew changes nothing for the next read.

mod compact;
mod content;
mod room;
mod run;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use levelhead_block::RequestId;
use levelhead_drive::{Counters, Drive, Faults, FaultsError, Profile, SettingsError};
use levelhead_erasure::Kernel;
use levelhead_fs::format::ladder::Ladder;
use levelhead_fs::format::superblock::Superblock;
use levelhead_fs::{
    Action, Answer, Caller, CannotMake, FileKind, Filesystem, Moment, RedundancyComes, Request,
    Settings, Status, SubId, Submit, Update, What, Wishes,
};
use levelhead_stats::Streams;
use levelhead_units::{Instant, Nanos, SECTOR_SIZE, Sectors};

pub use self::compact::Compact;
pub use self::room::Room;
pub use self::run::Took;
use crate::Lone;
use content::Content;

/// What is mounted on what.
#[derive(Clone, Debug)]
pub struct MountedSettings {
    /// The drive's make.
    pub profile: Arc<Profile>,
    /// What the drive is besides.
    pub drive: levelhead_drive::Settings,
    /// How many redundant sectors groups have.
    pub ladder: Ladder,
    /// Copies of metadata.
    pub copies: u8,
    /// Where the drive makes use of zeroes at the end of a sector: how many redundant sectors groups of kind B have.
    pub forced: Option<Ladder>,
    /// Of which kind the workload's files are.
    pub kinds: Kinds,
    /// What is free of the disk; nothing for all of it.
    pub room: Option<Room>,
    /// Memory of the filesystem.
    pub cache: Sectors,
    /// How redundancy follows data that changes.
    pub update: Update,
    /// When the sync of a file ends for the workload.
    pub sync: SyncEnds,
    /// What the drive's failures and the phase of its platter follow from.
    pub seed: u64,
}

/// Of which kind files are. Kinds B and mutable are there only where the drive makes use of zeroes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kinds {
    /// As the filesystem makes them.
    Auto,
    /// Each as its habit suggests: A, B or mutable.
    ByHabit,
    /// All of this one.
    All(FileKind),
}

/// When a sync ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncEnds {
    /// What was written outlasts a power cut.
    Durable,
    /// Its redundancy is in its place as well, for which nothing is waited.
    Redundant,
}

impl MountedSettings {
    /// A whole drive in good order, with a filesystem of this code with its own memory and three copies of metadata.
    pub fn new(profile: impl Into<Arc<Profile>>, ladder: Ladder, seed: u64) -> Self {
        Self {
            profile: profile.into(),
            drive: levelhead_drive::Settings::PLAIN,
            ladder,
            copies: 3,
            forced: None,
            kinds: Kinds::Auto,
            room: None,
            cache: Settings::new(Kernel::best()).cache,
            update: Update::Sooner,
            sync: SyncEnds::Durable,
            seed,
        }
    }
}

/// Why there is no such filesystem, or why it does not do what it should.
#[derive(Clone, Debug, PartialEq)]
pub enum MountedError {
    /// The drive cannot be like that.
    Drive(SettingsError),
    /// The filesystem cannot.
    Make(CannotMake),
    /// The faults cannot be.
    Faults(FaultsError),
    /// It is wrong: something that was asked for, and what came of it.
    Wrong(String),
}

impl fmt::Display for MountedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drive(error) => write!(f, "{error}"),
            Self::Make(error) => write!(f, "the filesystem cannot be made: {error:?}"),
            Self::Faults(error) => write!(f, "{error}"),
            Self::Wrong(how) => write!(f, "the filesystem is wrong: {how}"),
        }
    }
}

impl std::error::Error for MountedError {}

/// See the module.
#[derive(Debug)]
pub struct Mounted {
    settings: MountedSettings,
    superblocks: [levelhead_units::Lba; 3],
    fs: Filesystem,
    disk: Lone<Compact>,
    /// Commands that the drive has no room for yet.
    waiting: VecDeque<Submit>,
    answers: BTreeMap<RequestId, Answer>,
    request_last: u64,
    sub_first: u64,
    sub_last: u64,
    now: Instant,
    /// Inodes of the workload's files.
    inodes: BTreeMap<levelhead_trace::FileId, u64>,
    /// Those that were opened since the last mount: the filesystem knows how they are read.
    open: BTreeSet<levelhead_trace::FileId>,
    content: Content,
}

impl Mounted {
    /// Makes a filesystem on a new drive and mounts it.
    ///
    /// # Errors
    ///
    /// The drive or the filesystem cannot be like that.
    pub fn new(settings: MountedSettings) -> Result<Self, MountedError> {
        let streams = Streams::new(settings.seed);
        let drive = Drive::new(Arc::clone(&settings.profile), settings.drive, streams, "disk");
        let drive = drive.map_err(MountedError::Drive)?;
        let wishes = Wishes {
            size: drive.size(),
            copies: settings.copies,
            ladder: settings.ladder.clone(),
            interleave: 1,
            forced: settings.forced.clone(),
            identity: [7; 16],
            label: String::new(),
            uid: 0,
            gid: 0,
            now: Moment::default(),
        };
        let new = levelhead_fs::make(&wishes).map_err(MountedError::Make)?;
        let mut storage = Compact::default();
        for written in new.first.iter().chain(&new.last) {
            storage.put(written.lba, &written.bytes[..]);
        }
        if let Some(room) = settings.room {
            room.restrict(&new, &mut storage);
        }
        let superblocks = new.superblock.geometry.superblocks();
        let disk = Lone::over(drive, storage);
        let fs = mount(&settings, Instant::ZERO, new.superblock);
        Ok(Self {
            settings,
            superblocks,
            fs,
            disk,
            waiting: VecDeque::new(),
            answers: BTreeMap::new(),
            request_last: 0,
            sub_first: 0,
            sub_last: 0,
            now: Instant::ZERO,
            inodes: BTreeMap::new(),
            open: BTreeSet::new(),
            content: Content::default(),
        })
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// How the filesystem stands, since it was mounted last.
    pub fn status(&self) -> Status {
        self.fs.status()
    }

    /// What the drive has done so far.
    pub fn counters(&self) -> Counters {
        self.disk.counters()
    }

    /// Sectors that a file of the workload takes, with what is redundant.
    ///
    /// # Errors
    ///
    /// There is no such file.
    pub fn sectors_of(&mut self, file: levelhead_trace::FileId) -> Result<u64, MountedError> {
        let inode = self.inodes.get(&file).copied().unwrap_or_default();
        match self.do_now(What::GetAttributes(inode))? {
            Answer::Attributes(attributes) => Ok(attributes.sectors),
            other => Err(MountedError::Wrong(format!("{file:?}: {other:?}"))),
        }
    }

    /// How the drive misbehaves from now on.
    ///
    /// # Errors
    ///
    /// The faults cannot be.
    pub fn set_faults(&mut self, faults: Faults) -> Result<(), MountedError> {
        self.disk.set_faults(self.now, faults).map_err(MountedError::Faults)
    }

    /// Unmounts, which brings everything to its place, and mounts again: nothing is in memory. Returns when the redundancy of all files
    /// was in its place.
    ///
    /// # Errors
    ///
    /// It never ends, or nothing is there to mount.
    pub fn remount(&mut self) -> Result<Instant, MountedError> {
        let settled_at = self.unmount()?;
        let found = self.superblocks.into_iter().filter_map(|lba| {
            let mut sector = Box::new([0; SECTOR_SIZE]);
            self.disk.storage_mut().give(lba, &mut sector[..]);
            Superblock::decode(&sector).ok()
        });
        let newest = found.max_by_key(|superblock| superblock.generation);
        let newest = newest.ok_or_else(|| MountedError::Wrong("no superblock is left".into()))?;
        self.fs = mount(&self.settings, self.now, newest);
        self.open.clear();
        // Names of commands go on: what a drive fails follows from them.
        self.sub_first = self.sub_last + 1;
        Ok(settled_at)
    }

    fn unmount(&mut self) -> Result<Instant, MountedError> {
        self.fs.unmount(self.now);
        self.take();
        let mut settled_at = self.now;
        while !self.fs.is_unmounted() {
            let is_stale = self.status().groups_stale > 0;
            self.step(None)?;
            if is_stale {
                settled_at = self.now;
            }
        }
        Ok(settled_at)
    }

    /// Asks for something; the answer comes with time.
    fn ask(&mut self, what: What) -> RequestId {
        self.request_last += 1;
        let id = RequestId(self.request_last);
        let seconds = self.now.as_nanos() / Nanos::from_secs(1).get();
        let nanos = (self.now.as_nanos() % Nanos::from_secs(1).get()) as u32;
        let now = Moment { seconds: seconds as i64, nanos };
        let caller = Caller { uid: 0, gid: 0 };
        self.fs.handle_request(self.now, Request { id, caller, now, what });
        self.take();
        id
    }

    /// Asks for something and waits for the answer.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn do_now(&mut self, what: What) -> Result<Answer, MountedError> {
        let id = self.ask(what);
        loop {
            if let Some(answer) = self.answers.remove(&id) {
                return Ok(answer);
            }
            self.step(None)?;
        }
    }

    /// Carries out what the filesystem wants.
    fn take(&mut self) {
        while let Some(action) = self.fs.poll() {
            match action {
                Action::Submit(submit) => self.waiting.push_back(submit),
                Action::Reply { id, answer } => {
                    let before = self.answers.insert(id, answer);
                    assert!(before.is_none(), "{id:?} has two answers");
                }
                Action::Event(_) | Action::Invalidate { .. } => {}
            }
        }
        while self.disk.has_room()
            && let Some(Submit { sub, request }) = self.waiting.pop_front()
        {
            let name = self.sub_first + sub.0;
            self.sub_last = self.sub_last.max(name);
            self.disk.submit(self.now, name, request);
        }
    }

    /// Time passes until something happens, or until `at`.
    fn step(&mut self, at: Option<Instant>) -> Result<(), MountedError> {
        let due = [self.disk.deadline(), self.fs.deadline(), at];
        let Some(next) = due.into_iter().flatten().min() else {
            return Err(MountedError::Wrong("something that was asked for never ends".into()));
        };
        self.now = self.now.max(next);
        for (name, reply) in self.disk.run_until(self.now) {
            self.fs.handle_done(self.now, SubId(name - self.sub_first), reply);
        }
        if self.fs.deadline().is_some_and(|at| at <= self.now) {
            self.fs.handle_timeout(self.now);
        }
        self.take();
        Ok(())
    }
}

fn mount(settings: &MountedSettings, now: Instant, superblock: Superblock) -> Filesystem {
    let MountedSettings { cache, update, sync, .. } = *settings;
    let redundancy = match sync {
        SyncEnds::Durable => RedundancyComes::Together,
        SyncEnds::Redundant => RedundancyComes::AtOnce,
    };
    let settings = Settings { cache, update, redundancy, ..Settings::new(Kernel::best()) };
    Filesystem::new(now, superblock, settings)
}

#[cfg(test)]
mod tests;
