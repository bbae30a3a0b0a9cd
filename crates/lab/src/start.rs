//! An array that is started, stopped, cut off from its power and started again, over the same drives.
//!
//! The members have superblocks, and a start finds out from them what the array is, by the same
//! [`quorum`] as a server does.

use levelhead_array::journal::rules::Rules;
use levelhead_array::membership::{Member, Membership};
use levelhead_array::quorum::{Assembly, Copy, Found, Refusal, quorum};
use levelhead_array::reserve::Division;
use levelhead_array::superblock::{Book, Forced, Kept, Logs, Own, State, Superblock, Uuid};
use levelhead_array::{
    Books, Budget, Content, JournalSettings, NewMember, NotReplaced, Patience, Settings,
};
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Nanos, Sectors};

use crate::superblocks::Superblocks;
use crate::{World, WorldError, WorldSettings};

/// What a resync takes that goes on beside requests: so little at a time that they meet.
const SMALL_STEPS: Budget = Budget {
    step: Sectors::new(64),
    memory: Sectors::new(1 << 10),
    pause: Nanos::from_millis(20),
    mark: Nanos::from_millis(50),
};

/// Whether an array keeps a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journaling {
    /// On its members.
    Members,
    /// It keeps none.
    None,
}

/// Whether the array is made to go on where data may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// Such an array is not started.
    No,
    /// Such an array is started.
    Yes,
}

/// Why an array was not started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoStart {
    /// Its members are no array.
    Refused(Refusal),
    /// Data may be wrong, and the array was not made to go on.
    Doubtful,
}

impl World {
    /// A new array over drives that are large enough for its superblocks, started; its journal keeps these rules.
    ///
    /// Panics unless bytes are carried and the whole drives are the array's.
    pub fn create(
        settings: &WorldSettings,
        journaling: Journaling,
        rules: Rules,
    ) -> Result<Self, WorldError> {
        assert!(settings.content == Content::Carried && settings.area.is_none());
        let mut world = Self::new(settings)?;
        let sizes: Vec<Sectors> = world.drives.iter().map(|bay| bay.drive.size()).collect();
        let smallest = sizes.iter().copied().min().expect("an array has drives");
        let division = Division::of(&settings.spec, smallest);
        let division = division.ok_or(WorldError::TooSmall { size: smallest })?;
        let member =
            |at: usize| Member { uuid: Uuid([at as u8 + 1; 16]), membership: Membership::Present };
        let mut book = Book {
            generation: 1,
            array: Uuid([0xA1; 16]),
            run: Uuid([0; 16]),
            spec: settings.spec,
            drive_size: division.drive_size,
            state: State::Clean,
            forced: Forced::No,
            synced: 0,
            synced_last: 0,
            journal: match journaling {
                Journaling::Members => Some(Kept { first: 1, logs: Logs::Parts }),
                Journaling::None => None,
            },
            missed: DriveSet::EMPTY,
            wishes: levelhead_array::Wishes::default(),
            members: (0..sizes.len()).map(member).collect(),
        };
        // Zeroes are a codeword of every code.
        (book.synced, book.synced_last) = (book.stripes(), book.stripes());
        let mut copies = Vec::new();
        for (at, &size) in sizes.iter().enumerate() {
            let drive = DriveIdx::from_usize(at);
            let own = Own { drive, size, reserved: division.reserved(size) };
            copies.push(own.copies());
            let sector = Superblock { book: book.clone(), own, read_only: 0 }.encode();
            let medium = world.platter_mut(drive).expect("bytes are carried");
            for lba in copies[at] {
                medium.bytes_mut(Extent::new(lba, Sectors::new(1))).copy_from_slice(&sector);
            }
        }
        world.superblocks = Some(Superblocks { rules, copies, sizes, runs: 0, writes: 0 });
        let started = world.start(Instant::ZERO, DriveSet::EMPTY, Force::No);
        assert_eq!(started, Ok(DriveSet::EMPTY), "a new array is whole");
        Ok(world)
    }

    /// Commands that wrote superblocks, so far.
    pub fn superblock_writes(&self) -> u64 {
        self.superblocks.as_ref().map_or(0, |superblocks| superblocks.writes)
    }

    /// Finds the array on its members and starts it, after a stop or a power cut. Drives in `left_out` are not
    /// shown to it; all others are connected again. Members that hold old data are left out, too, as an
    /// operator would who is told so. Returns the drives that the array goes on without.
    ///
    /// Panics unless the array was created by [`World::create`], and if a drive is at work.
    pub fn start(
        &mut self,
        now: Instant,
        left_out: DriveSet,
        force: Force,
    ) -> Result<DriveSet, NoStart> {
        let mut left_out = left_out;
        let assembly = loop {
            let shown: Vec<usize> = (0..self.drives.len())
                .filter(|&at| !left_out.contains(DriveIdx::from_usize(at)))
                .collect();
            let found: Vec<Found> = shown.iter().map(|&at| self.find(at)).collect();
            match quorum(&found) {
                Ok(assembly) => break assembly,
                // A drive that came into a place just before the power failed may say nothing yet.
                Err(Refusal::Stranger { found: stranger }) => {
                    left_out = left_out.with(DriveIdx::from_usize(shown[stranger]));
                }
                Err(Refusal::Stale { found: [stale, _], .. })
                | Err(Refusal::LeftBehind { found: stale, .. })
                | Err(Refusal::Replaced { found: stale, .. }) => {
                    left_out = left_out.with(DriveIdx::from_usize(shown[stale]));
                }
                Err(refusal) => return Err(NoStart::Refused(refusal)),
            }
        };
        if assembly.doubt.is_some() && force == Force::No {
            return Err(NoStart::Doubtful);
        }
        let absent = assembly.absent;
        for (at, bay) in self.drives.iter_mut().enumerate() {
            bay.is_connected = !absent.contains(DriveIdx::from_usize(at));
        }
        let settings = self.settings_of(&assembly);
        self.replace_array(settings);
        self.run_until_quiet(now);
        Ok(absent)
    }

    /// A drive that was lost is there again, with all that it holds: it is given what it has missed.
    ///
    /// Panics if the array has superblocks and the drive has none that can be read.
    pub fn take_back(&mut self, now: Instant, drive: DriveIdx) -> Result<(), NotReplaced> {
        assert!(now <= self.next_at(), "{now:?} is past the next event");
        self.array().may_return(drive)?;
        self.replaced += 1;
        let new = self.superblocks.is_some().then(|| {
            let own = self.own_of(drive.as_usize()).expect("the drive says something");
            NewMember { uuid: self.new_name(), own }
        });
        self.take_back_into_array(now, drive, new)
    }

    /// The name of a drive that comes into a place.
    fn new_name(&self) -> Uuid {
        let mut uuid = [0xB0; 16];
        uuid[..8].copy_from_slice(&self.replaced.to_le_bytes());
        Uuid(uuid)
    }

    /// The place of a lost drive gets a new one, which is filled.
    ///
    /// Panics if the array has superblocks and no other member has one that can be read.
    pub fn replace(&mut self, now: Instant, drive: DriveIdx) -> Result<(), NotReplaced> {
        assert!(now <= self.next_at(), "{now:?} is past the next event");
        self.array().may_replace(drive)?;
        self.replaced += 1;
        let new = match self.superblocks {
            Some(_) => {
                let words = (0..self.drives.len()).filter(|&at| at != drive.as_usize());
                let words = words.collect::<Vec<usize>>();
                let own = words.into_iter().find_map(|at| self.own_of(at));
                let own = Own { drive, ..own.expect("a member says something") };
                Some(NewMember { uuid: self.new_name(), own })
            }
            None => None,
        };
        let orphans = self.put_new_drive(drive);
        self.replace_in_array(now, drive, new, orphans)
    }

    /// The array, of which nothing has been asked yet, works beside its clients, too: it mends what it finds.
    pub fn work_in_background(&mut self, budget: Budget) {
        assert!(self.submitted() == 0, "the array is at work");
        let background = Some(budget);
        self.replace_array(Settings { background, ..self.array_settings().clone() });
    }

    /// An operator wants everything to be read and compared.
    pub fn scrub(&mut self, now: Instant) {
        assert!(now <= self.next_at(), "{now:?} is past the next event");
        self.scrub_in_array(now);
    }

    /// What a member says of itself.
    fn own_of(&mut self, at: usize) -> Option<Own> {
        let copies = self.find(at).copies;
        copies.into_iter().find_map(|copy| match copy {
            Copy::Read(read) => (*read).ok().map(|word| word.own),
            Copy::Unreadable => None,
        })
    }

    fn superblocks(&mut self) -> &mut Superblocks {
        self.superblocks.as_mut().expect("the array has superblocks")
    }

    fn settings_of(&mut self, assembly: &Assembly) -> Settings {
        let superblocks = self.superblocks();
        superblocks.runs += 1;
        let (runs, rules) = (superblocks.runs, superblocks.rules);
        let mut run = [0xF0; 16];
        run[..8].copy_from_slice(&runs.to_le_bytes());
        Settings {
            area: assembly.area.clone(),
            synced: assembly.trusted,
            lost: assembly.absent.or(assembly.filling),
            books: Some(Books::of(assembly, Uuid(run))),
            patience: Some(Patience::DEFAULT),
            background: runs.is_multiple_of(2).then_some(SMALL_STEPS),
            journal: JournalSettings::of(assembly).map(|known| JournalSettings { rules, ..known }),
            ..self.array_settings().clone()
        }
    }

    /// What is on a member's medium.
    fn find(&mut self, at: usize) -> Found {
        let Superblocks { copies, sizes, .. } = self.superblocks();
        let (copies, size) = (copies[at], sizes[at]);
        let bytes = self.bytes.as_mut().expect("bytes are carried");
        let medium = bytes.platter_mut(DriveIdx::from_usize(at));
        let read = |lba| {
            let sector = medium.bytes(Extent::new(lba, Sectors::new(1)));
            Copy::Read(Box::new(Superblock::decode(sector)))
        };
        let mut found = Found::new(copies.map(read), size);
        found.read_lists(|extent| Some(medium.bytes(extent).to_vec()));
        found
    }
}
