//! An array that is started, stopped, cut off from its power and started again, over the same drives.
//!
//! The members have superblocks, and a start finds out from them what the array is, by the same
//! [`quorum`] as a server does. Where a bug is to be planted in the keeping of the books, it is planted here: the
//! product has no switch for it.

use std::collections::VecDeque;

use levelhead_array::membership::{Member, Membership};
use levelhead_array::quorum::{Assembly, Copy, Found, Refusal, quorum};
use levelhead_array::reserve::Division;
use levelhead_array::superblock::{Book, Forced, Own, State, Superblock, Uuid};
use levelhead_array::{Books, Content, Patience, Settings, Submit};
use levelhead_block::Command;
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Lba, Sectors};

use crate::bytes::WorldBytes;
use crate::{World, WorldError, WorldSettings};

/// A bug in the keeping of the books, for a canary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// None.
    None,
    /// What is recorded counts as safe before it is on the medium, which it is when something else has been
    /// recorded after it: answers go out before the record that they rely on.
    RecordLate,
    /// A change of the array's state does not raise the generation.
    SameGeneration,
    /// A member that holds old data is taken for a good one.
    StaleMember,
    /// The drives that the array does without are not recorded.
    LostSet,
}

/// Whether the array is made to go on where data may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// It is not.
    No,
    /// It is.
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

/// A sector that is on its way to a medium.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) lba: Lba,
    pub(crate) sector: Vec<u8>,
}

/// What is written on the members, and who reads it.
#[derive(Debug)]
pub(crate) struct Shelf {
    planted: Planted,
    /// Where each member has its superblocks.
    copies: Vec<[Lba; 2]>,
    sizes: Vec<Sectors>,
    /// How many times the array was started.
    runs: u64,
    /// The last records of each drive, where records are late.
    late: Vec<VecDeque<Record>>,
    /// Commands that kept the books.
    pub(crate) writes: u64,
}

impl Shelf {
    /// What a member is told to say, with the bug in it.
    pub(crate) fn inscribe(&self, superblock: Superblock) -> Superblock {
        let mut told = superblock;
        match self.planted {
            Planted::SameGeneration => told.book.generation = 1,
            Planted::LostSet => {
                let members = &mut told.book.members;
                members.iter_mut().for_each(|member| member.membership = Membership::Present);
            }
            Planted::None | Planted::RecordLate | Planted::StaleMember => {}
        }
        told
    }

    /// Counts what keeps the books.
    pub(crate) fn note_submitted(&mut self, submit: &Submit) {
        self.writes += u64::from(self.is_record(submit));
    }

    /// Whether a command writes a superblock.
    pub(crate) fn is_record(&self, submit: &Submit) -> bool {
        let copies = &self.copies[submit.drive.as_usize()];
        match submit.command {
            Command::Write { extent, .. } => copies.contains(&extent.lba),
            Command::Read { .. }
            | Command::WriteZeroes { .. }
            | Command::Trim { .. }
            | Command::Flush => false,
        }
    }

    /// Where the record before this one is kept, if records are late: see [`Planted::RecordLate`].
    pub(crate) fn delay(&mut self, submit: &Submit) -> Option<&mut VecDeque<Record>> {
        let is_late = self.planted == Planted::RecordLate && self.is_record(submit);
        is_late.then(|| &mut self.late[submit.drive.as_usize()])
    }
}

impl World {
    /// A new array over drives that are large enough for its superblocks, started.
    ///
    /// Panics unless bytes are carried and the whole drives are the array's.
    pub fn create(settings: &WorldSettings, planted: Planted) -> Result<Self, WorldError> {
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
        let late = vec![VecDeque::new(); sizes.len()];
        world.shelf = Some(Shelf { planted, copies, sizes, runs: 0, late, writes: 0 });
        let started = world.start(Instant::ZERO, DriveSet::EMPTY, Force::No);
        assert_eq!(started, Ok(DriveSet::EMPTY), "a new array is whole");
        Ok(world)
    }

    /// Commands that kept the array's books, so far.
    pub fn ledger_writes(&self) -> u64 {
        self.shelf.as_ref().map_or(0, |shelf| shelf.writes)
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
                Err(Refusal::Stale { found: [stale, _], .. })
                | Err(Refusal::LeftBehind { found: stale, .. }) => {
                    let stale = DriveIdx::from_usize(shown[stale]);
                    match self.shelf().planted {
                        Planted::StaleMember => self.make_current(&found, stale),
                        _ => left_out = left_out.with(stale),
                    }
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
        self.settle(now);
        Ok(absent)
    }

    /// What is late is on the media by the time that an array has ended.
    pub(crate) fn land_late_records(&mut self) {
        let (Some(shelf), Some(bytes)) = (&mut self.shelf, &mut self.bytes) else { return };
        for (at, late) in shelf.late.iter_mut().enumerate() {
            for Record { lba, sector } in late.drain(..) {
                let place = Extent::new(lba, Sectors::new(1));
                let medium = bytes.platter_mut(DriveIdx::from_usize(at));
                medium.bytes_mut(place).copy_from_slice(&sector);
            }
        }
    }

    fn shelf(&mut self) -> &mut Shelf {
        self.shelf.as_mut().expect("the array keeps books")
    }

    fn settings_of(&mut self, assembly: &Assembly) -> Settings {
        let shelf = self.shelf();
        shelf.runs += 1;
        shelf.late.iter_mut().for_each(VecDeque::clear);
        let mut run = [0xF0; 16];
        run[..8].copy_from_slice(&shelf.runs.to_le_bytes());
        Settings {
            area: assembly.area.clone(),
            synced: assembly.trusted,
            lost: assembly.absent,
            books: Some(Books::of(assembly, Uuid(run))),
            patience: Some(Patience::DEFAULT),
            ..self.array_settings().clone()
        }
    }

    /// What is on a member's medium.
    fn find(&mut self, at: usize) -> Found {
        let Shelf { copies, sizes, .. } = self.shelf();
        let (copies, size) = (copies[at], sizes[at]);
        let bytes = self.bytes.as_mut().expect("bytes are carried");
        let medium = bytes.platter_mut(DriveIdx::from_usize(at));
        let read = |lba| {
            let sector = medium.bytes(Extent::new(lba, Sectors::new(1)));
            Copy::Read(Box::new(Superblock::decode(sector)))
        };
        Found { copies: copies.map(read), size }
    }

    /// The bug: what the newest member says is put onto a stale one.
    fn make_current(&mut self, found: &[Found], stale: DriveIdx) {
        let words = found.iter().flat_map(|found| &found.copies).filter_map(|copy| match copy {
            Copy::Read(read) => read.as_ref().as_ref().ok(),
            Copy::Unreadable => None,
        });
        let newest = words.max_by_key(|word| word.book.generation).expect("one is stale");
        let mut book = newest.book.clone();
        book.members[stale.as_usize()].membership = Membership::Present;
        for at in 0..self.drives.len() {
            let drive = DriveIdx::from_usize(at);
            let Found { copies, .. } = self.find(at);
            let Copy::Read(read) = &copies[0] else { continue };
            let Ok(word) = &**read else { continue };
            let sector =
                Superblock { book: book.clone(), own: word.own.clone(), read_only: 0 }.encode();
            let places = self.shelf().copies[at];
            let bytes: &mut WorldBytes = self.bytes.as_mut().expect("bytes are carried");
            for lba in places {
                let place = Extent::new(lba, Sectors::new(1));
                bytes.platter_mut(drive).bytes_mut(place).copy_from_slice(&sector);
            }
        }
    }
}
