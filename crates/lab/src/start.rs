//! An array that is started, stopped, cut off from its power and started again, over the same drives.
//!
//! The members have superblocks, and a start finds out from them what the array is, by the same
//! [`assemble`] as a server does.

use std::sync::Arc;

use levelhead_array::assembly::{Assembly, Found, Refusal, assemble};
use levelhead_array::damaged::DamagedList;
use levelhead_array::journal::rules::Rules;
use levelhead_array::membership::{Generation, Member, MemberId, Membership};
use levelhead_array::metadata::{Forced, Inscription, Kept, Logs, Metadata, State};
use levelhead_array::reserve::Division;
use levelhead_array::superblock::{Own, Superblock, Uuid};
use levelhead_array::{
    Budget, Content, JournalSettings, NewMember, NotReplaced, Patience, Recorded, Settings,
};
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Nanos, Sectors};

use crate::records::Records;
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
    /// A new array over drives that are large enough for its metadata, started; its journal keeps these rules.
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
        let uuid = |at: usize| Uuid([at as u8 + 1; 16]);
        let generation = Generation(1);
        let member =
            |at: usize| Member { given: generation, ..Member::new(uuid(at), Membership::Present) };
        let mut metadata = Metadata {
            generation,
            array: Uuid([0xA1; 16]),
            run: Uuid([0; 16]),
            base: Generation::NONE,
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
            wishes: levelhead_array::Wishes::default(),
            members: (0..sizes.len()).map(member).collect(),
            damaged: DamagedList::default(),
        };
        // Zeroes are a codeword of every code.
        (metadata.synced, metadata.synced_last) = (metadata.stripes(), metadata.stripes());
        let metadata = Arc::new(metadata);
        let mut owns = Vec::new();
        for (at, &size) in sizes.iter().enumerate() {
            let drive = DriveIdx::from_usize(at);
            let own = Own { drive, size, reserved: division.reserved(size) };
            owns.push(own.clone());
            let (copies, [slot, _]) = (own.copies(), own.slots());
            let superblock = Superblock {
                array: metadata.array,
                member: uuid(at),
                spec: metadata.spec,
                drive_size: metadata.drive_size,
                logs: metadata.journal.map(|kept| kept.logs),
                own,
                read_only: 0,
            };
            let holder = MemberId::new(uuid(at));
            let inscription = Inscription { metadata: Arc::clone(&metadata), holder };
            let medium = world.platter_mut(drive).expect("bytes are carried");
            let extent = Extent::new(slot.lba, metadata.sectors());
            medium.bytes_mut(extent).copy_from_slice(&inscription.encode());
            for lba in copies {
                let sector = medium.bytes_mut(Extent::new(lba, Sectors::new(1)));
                sector.copy_from_slice(&superblock.encode());
            }
        }
        world.records = Some(Records { rules, owns, runs: 0, writes: 0 });
        let started = world.start(Instant::ZERO, DriveSet::EMPTY, Force::No);
        assert_eq!(started, Ok(DriveSet::EMPTY), "a new array is whole");
        Ok(world)
    }

    /// Commands that wrote metadata or superblocks, so far.
    pub fn metadata_writes(&self) -> u64 {
        self.records.as_ref().map_or(0, |records| records.writes)
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
            match assemble(&found) {
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

    /// A drive that was lost is there again, with all that it holds: it is given what it lacks.
    ///
    /// Panics if the array records what it is and the drive has no superblock that can be read.
    pub fn take_back(&mut self, now: Instant, drive: DriveIdx) -> Result<(), NotReplaced> {
        assert!(now <= self.next_at(), "{now:?} is past the next event");
        self.array().may_return(drive)?;
        self.replaced += 1;
        let new = self.records.is_some().then(|| {
            let word = self.find(drive.as_usize()).word().expect("the drive says something");
            NewMember { uuid: word.superblock.member, own: word.superblock.own, held: word.held }
        });
        self.take_back_into_array(now, drive, new)
    }

    /// The identity of a new drive.
    fn new_uuid(&self) -> Uuid {
        let mut uuid = [0xB0; 16];
        uuid[..8].copy_from_slice(&self.replaced.to_le_bytes());
        Uuid(uuid)
    }

    /// The place of a lost drive gets a new one, which is filled.
    ///
    /// Panics if the array records what it is and no other member has a superblock that can be read.
    pub fn replace(&mut self, now: Instant, drive: DriveIdx) -> Result<(), NotReplaced> {
        assert!(now <= self.next_at(), "{now:?} is past the next event");
        self.array().may_replace(drive)?;
        self.replaced += 1;
        let new = match self.records {
            Some(_) => {
                let others = (0..self.drives.len()).filter(|&at| at != drive.as_usize());
                let others = others.collect::<Vec<usize>>();
                let own = others.into_iter().find_map(|at| self.own_of(at));
                let own = Own { drive, ..own.expect("a member says something") };
                Some(NewMember { uuid: self.new_uuid(), own, held: None })
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
        self.find(at).good().map(|superblock| superblock.own.clone())
    }

    fn records(&mut self) -> &mut Records {
        self.records.as_mut().expect("the array records what it is")
    }

    fn settings_of(&mut self, assembly: &Assembly) -> Settings {
        let records = self.records();
        records.runs += 1;
        let (runs, rules) = (records.runs, records.rules);
        let mut run = [0xF0; 16];
        run[..8].copy_from_slice(&runs.to_le_bytes());
        Settings {
            area: assembly.area.clone(),
            synced: assembly.trusted,
            lost: assembly.absent.or(assembly.filling),
            recorded: Some(Recorded::of(assembly, Uuid(run))),
            patience: Some(Patience::DEFAULT),
            background: runs.is_multiple_of(2).then_some(SMALL_STEPS),
            journal: JournalSettings::of(assembly).map(|known| JournalSettings { rules, ..known }),
            ..self.array_settings().clone()
        }
    }

    /// What is on a member's medium.
    fn find(&mut self, at: usize) -> Found {
        let size = self.records().owns[at].size;
        let bytes = self.bytes.as_mut().expect("bytes are carried");
        let medium = bytes.platter_mut(DriveIdx::from_usize(at));
        Found::read(size, |extent| Some(medium.bytes(extent).to_vec()))
    }
}
