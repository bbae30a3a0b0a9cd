//! A filesystem over a disk in memory, for tests: commands end in any order that a seed says, and the power can be cut.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use levelhead_block::{
    Buf, Command, Data, Durability, Effort, Memory, Outcome, Payload, Piece, Reply, RequestId,
    SectorSet, ZeroTail,
};
use levelhead_erasure::Kernel;
use levelhead_stats::{Rng, Streams};
use levelhead_units::{Extent, Instant, Lba, Nanos, SECTOR_SIZE, Sectors};

use crate::format::inode::{FileKind, Moment};
use crate::format::superblock::Superblock;
use crate::format::unit::Sector;
use crate::made::wishes;
use crate::make::{Wishes, make};
use crate::ops::values::KIND;
use crate::request::{Answer, Attributes, Caller, Errno, Named, Request, Setting, What};
use crate::{Action, Filesystem, Settings, Submit};

/// See the module.
pub(crate) struct Bed {
    pub(crate) fs: Filesystem,
    /// What is on the medium and in the disk's memory.
    pub(crate) disk: Memory,
    /// What is on the medium for good; what was written since the last flush may be there or not.
    pub(crate) medium: Memory,
    /// Sectors that differ.
    unsafe_sectors: BTreeMap<u64, Vec<Box<Sector>>>,
    inside: VecDeque<Submit>,
    answers: BTreeMap<RequestId, Answer>,
    /// Inodes whose attributes a caller must not keep.
    pub(crate) invalidated: Vec<u64>,
    pub(crate) now: Instant,
    rng: Rng,
    request_last: u64,
    /// Waits since something has ended.
    waits: u32,
    /// Sectors that cannot be read.
    pub(crate) bad: BTreeSet<u64>,
    /// Sectors that one pass does not bring.
    pub(crate) weak: BTreeSet<u64>,
    /// Bad sectors that are still bad once they were written.
    pub(crate) worn: BTreeSet<u64>,
    /// Sectors that cannot be written: a command that has one of them fails as a whole.
    pub(crate) unwritable: BTreeSet<u64>,
    /// A sector of which reads do not end.
    pub(crate) held: Option<Lba>,
    /// Whether nothing is stored any more: writes and flushes fail.
    pub(crate) fails_writes: bool,
    pub(crate) flushes: u64,
    pub(crate) written: u64,
    pub(crate) read: u64,
    /// What was read, command by command.
    pub(crate) reads: Vec<Extent>,
}

impl Bed {
    /// A new filesystem, mounted.
    pub(crate) fn new(sectors: u64, seed: u64) -> Self {
        Self::made(&wishes(sectors, 3), seed)
    }

    /// The same of another kind.
    pub(crate) fn made(wishes: &Wishes, seed: u64) -> Self {
        let new = make(wishes).unwrap();
        let mut disk = Memory::new(wishes.size);
        for written in new.first.iter().chain(&new.last) {
            let one = Extent::new(written.lba, Sectors::new(1));
            disk.bytes_mut(one).copy_from_slice(&written.bytes[..]);
        }
        Self::mount(disk, seed)
    }

    /// What is on a disk, mounted.
    pub(crate) fn mount(disk: Memory, seed: u64) -> Self {
        Self::mount_with(disk, seed, Settings::new(Kernel::best()))
    }

    /// The same in some other way.
    pub(crate) fn mount_with(disk: Memory, seed: u64, settings: Settings) -> Self {
        let superblock = newest(&disk).expect("a superblock is left");
        let fs = Filesystem::new(Instant::ZERO, superblock, settings);
        let medium = copy(&disk);
        let mut bed = Self {
            fs,
            disk,
            medium,
            unsafe_sectors: BTreeMap::new(),
            inside: VecDeque::new(),
            answers: BTreeMap::new(),
            invalidated: Vec::new(),
            now: Instant::ZERO,
            rng: Streams::new(seed).stream("bed"),
            request_last: 0,
            waits: 0,
            bad: BTreeSet::new(),
            weak: BTreeSet::new(),
            worn: BTreeSet::new(),
            unwritable: BTreeSet::new(),
            held: None,
            fails_writes: false,
            flushes: 0,
            written: 0,
            read: 0,
            reads: Vec::new(),
        };
        bed.take();
        bed
    }

    pub(crate) fn take(&mut self) {
        while let Some(action) = self.fs.poll() {
            match action {
                Action::Submit(submit) => {
                    self.meets_no_other(&submit);
                    self.inside.push_back(submit);
                }
                Action::Reply { id, answer } => {
                    assert!(self.answers.insert(id, answer).is_none(), "{id:?} has two answers");
                }
                Action::Invalidate { inode } => self.invalidated.push(inode),
                Action::Event(_) => {}
            }
        }
    }

    /// Which of two writes of the same sector a disk carries out last is not known.
    fn meets_no_other(&self, submit: &Submit) {
        let extent_of = |submit: &Submit| {
            let command = &submit.request.command;
            command.extent().filter(|_| command.is_write())
        };
        let Some(extent) = extent_of(submit) else { return };
        for other in self.inside.iter().filter_map(extent_of) {
            let is_apart = other.end() <= extent.lba || extent.end() <= other.lba;
            assert!(is_apart, "writes of {extent:?} and of {other:?} are inside");
        }
    }

    /// Ends one command that is inside, any of them; returns whether there was one.
    pub(crate) fn step(&mut self) -> bool {
        let is_held = |submit: &Submit| match submit.request.command {
            Command::Read { extent, .. } => self.held.is_some_and(|held| extent.contains(held)),
            _ => false,
        };
        let free: Vec<usize> =
            (0..self.inside.len()).filter(|&at| !is_held(&self.inside[at])).collect();
        if free.is_empty() {
            return false;
        }
        let at = free[self.rng.below(free.len() as u64) as usize];
        let Submit { sub, request } = self.inside.remove(at).unwrap();
        self.now = self.now + Nanos::from_micros(100);
        let reply = self.carry_out(request.command, request.payload);
        self.fs.handle_done(self.now, sub, reply);
        self.take();
        true
    }

    fn carry_out(&mut self, command: Command, payload: Payload) -> Reply {
        if self.fails_writes && !matches!(command, Command::Read { .. }) {
            return Reply::bare(Outcome::Gone);
        }
        match command {
            Command::Read { extent, effort } => {
                self.read += extent.sectors.get();
                self.reads.push(extent);
                let buf = Buf::copy_of(self.disk.bytes(extent));
                let are_in = |sectors: &BTreeSet<u64>| -> SectorSet {
                    let is_in = |&at: &u32| sectors.contains(&(extent.lba.get() + u64::from(at)));
                    (0..extent.sectors.get() as u32).filter(is_in).collect()
                };
                let unknown = match effort {
                    Effort::Fast => are_in(&self.weak),
                    Effort::Limited { .. } | Effort::Full | Effort::Medium => SectorSet::EMPTY,
                };
                let outcome = Outcome::Done { unknown, damaged: are_in(&self.bad) };
                Reply { data: Data::Buf(buf), ..Reply::bare(outcome) }
            }
            Command::Write { extent, durability, zero_tail } => {
                let Payload::Pieces(pieces) = payload else { panic!("a write has pieces") };
                self.written += extent.sectors.get();
                if extent.iter().any(|lba| self.unwritable.contains(&lba.get())) {
                    let (unknown, damaged) = (SectorSet::EMPTY, SectorSet::first(extent.sectors));
                    return Reply::bare(Outcome::Done { unknown, damaged });
                }
                for (lba, bytes) in extent.iter().zip(Piece::each_sector(&pieces)) {
                    let one = Extent::new(lba, Sectors::new(1));
                    assert!(ends_in(bytes, zero_tail), "{lba:?} does not end in {zero_tail:?}");
                    if !self.worn.contains(&lba.get()) {
                        self.bad.remove(&lba.get());
                    }
                    self.weak.remove(&lba.get());
                    self.disk.bytes_mut(one).copy_from_slice(bytes);
                    match durability {
                        Durability::Durable => {
                            self.medium.bytes_mut(one).copy_from_slice(bytes);
                            self.unsafe_sectors.remove(&lba.get());
                        }
                        Durability::Cached => {
                            let sector: Sector = bytes.try_into().unwrap();
                            self.unsafe_sectors
                                .entry(lba.get())
                                .or_default()
                                .push(Box::new(sector));
                        }
                    }
                }
                Reply::bare(Outcome::GOOD)
            }
            Command::Flush => {
                self.flushes += 1;
                for (lba, versions) in std::mem::take(&mut self.unsafe_sectors) {
                    let one = Extent::new(Lba::new(lba), Sectors::new(1));
                    self.medium.bytes_mut(one).copy_from_slice(&versions.last().unwrap()[..]);
                }
                Reply::bare(Outcome::GOOD)
            }
            other => panic!("{other:?}"),
        }
    }

    /// What a power cut leaves: of what was not flushed and of what was inside each sector is old, new, or half of each.
    pub(crate) fn cut(mut self) -> Memory {
        for (lba, versions) in std::mem::take(&mut self.unsafe_sectors) {
            let choice = self.rng.below(versions.len() as u64 + 1) as usize;
            if choice > 0 {
                let one = Extent::new(Lba::new(lba), Sectors::new(1));
                self.medium.bytes_mut(one).copy_from_slice(&versions[choice - 1][..]);
            }
        }
        for Submit { request, .. } in std::mem::take(&mut self.inside) {
            let (Command::Write { extent, .. }, Payload::Pieces(pieces)) =
                (request.command, request.payload)
            else {
                continue;
            };
            for (lba, bytes) in extent.iter().zip(Piece::each_sector(&pieces)) {
                let one = Extent::new(lba, Sectors::new(1));
                match self.rng.below(3) {
                    0 => {}
                    1 => self.medium.bytes_mut(one).copy_from_slice(bytes),
                    _ => {
                        let half = 512 * (1 + self.rng.below(7) as usize);
                        self.medium.bytes_mut(one)[..half].copy_from_slice(&bytes[..half]);
                    }
                }
            }
        }
        self.medium
    }

    /// Asks as root, and does not wait.
    pub(crate) fn ask(&mut self, what: What) -> RequestId {
        self.ask_as(Caller { uid: 0, gid: 0 }, what)
    }

    /// Asks, and does not wait.
    pub(crate) fn ask_as(&mut self, caller: Caller, what: What) -> RequestId {
        self.request_last += 1;
        let id = RequestId(self.request_last);
        let now = Moment { seconds: self.request_last as i64, nanos: 0 };
        self.fs.handle_request(self.now, Request { id, caller, now, what });
        self.take();
        id
    }

    /// The answer to a request, if it is there.
    pub(crate) fn answer(&mut self, id: RequestId) -> Option<Answer> {
        self.answers.remove(&id)
    }

    /// Asks as root, and waits.
    pub(crate) fn run(&mut self, what: What) -> Answer {
        self.run_as(Caller { uid: 0, gid: 0 }, what)
    }

    /// Asks, and waits.
    pub(crate) fn run_as(&mut self, caller: Caller, what: What) -> Answer {
        let text = format!("{what:?}");
        let id = self.ask_as(caller, what);
        loop {
            if let Some(answer) = self.answer(id) {
                return answer;
            }
            if !self.step() {
                let at = self.fs.deadline().filter(|&at| at > self.now || self.waits == 0);
                let at = at.unwrap_or_else(|| {
                    panic!("{} never ends: {}", &text[..text.len().min(200)], self.fs.left())
                });
                self.waits += 1;
                self.wait_until(at);
            } else {
                self.waits = 0;
            }
        }
    }

    /// Time passes.
    pub(crate) fn wait_until(&mut self, at: Instant) {
        self.now = self.now.max(at);
        self.fs.handle_timeout(self.now);
        self.take();
    }

    /// Everything begins to come to its place.
    pub(crate) fn begin_unmount(&mut self) {
        self.fs.unmount(self.now);
        self.take();
    }

    /// Everything comes to its place, and the disk is left in order.
    pub(crate) fn unmount(self) -> Memory {
        self.unmount_counted().0
    }

    /// The same, with the sectors that were read in all.
    pub(crate) fn unmount_counted(mut self) -> (Memory, u64) {
        self.begin_unmount();
        while self.step() {}
        assert!(self.fs.is_unmounted(), "{}", self.fs.left());
        (self.disk, self.read)
    }

    pub(crate) fn root(&self, name: &str) -> Named {
        Named { parent: self.fs.root(), name: name.as_bytes().to_vec() }
    }

    pub(crate) fn make(&mut self, name: &Named, mode: u32) -> Attributes {
        match self.run(What::Make { name: name.clone(), mode, umask: 0, device: 0 }) {
            Answer::Entry(attributes) => attributes,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn set_kind(&mut self, inode: u64, kind: FileKind) {
        let (name, value) = (KIND.to_vec(), kind.name().as_bytes().to_vec());
        let mode = Setting::Any;
        assert_eq!(self.run(What::SetExtended { inode, name, value, mode }), Answer::Done);
    }

    pub(crate) fn write(&mut self, inode: u64, offset: u64, bytes: &[u8]) {
        let bytes = bytes.to_vec();
        let count = bytes.len() as u32;
        let answer = self.run(What::Write { inode, offset, bytes, appends: false });
        assert_eq!(answer, Answer::Written(count));
    }

    pub(crate) fn read(&mut self, inode: u64, offset: u64, count: u32) -> Result<Vec<u8>, Errno> {
        match self.run(What::Read { inode, offset, count }) {
            Answer::Bytes(bytes) => Ok(bytes),
            Answer::Failed(errno) => Err(errno),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn sync(&mut self, inode: Option<u64>) {
        assert_eq!(self.run(What::Sync { inode }), Answer::Done);
    }

    /// Where the sectors with these bytes lie, one for each 4 KiB of them that is whole.
    pub(crate) fn find(&self, bytes: &[u8]) -> Vec<u64> {
        let size = disk_sectors(&self.disk) as u64;
        let sector = |lba: &u64| self.disk.bytes(Extent::new(Lba::new(*lba), Sectors::new(1)));
        let journal = newest(&self.disk).expect("one is left").geometry.journal();
        let is_place = |lba: &u64| !journal.contains(Lba::new(*lba));
        let places: Vec<u64> = (0..size).filter(is_place).collect();
        bytes
            .chunks_exact(SECTOR_SIZE)
            .map(|page| *places.iter().find(|lba| sector(lba) == page).expect("it is there"))
            .collect()
    }

    /// A sector gets other bytes behind the filesystem's back.
    pub(crate) fn overwrite(&mut self, lba: u64) {
        let one = Extent::new(Lba::new(lba), Sectors::new(1));
        self.disk.bytes_mut(one).iter_mut().for_each(|byte| *byte ^= 0x55);
    }

    /// Whether a sector is the lead of a unit.
    pub(crate) fn is_unit(&self, lba: u64) -> bool {
        let bytes = self.disk.bytes(Extent::new(Lba::new(lba), Sectors::new(1)));
        let head = crate::format::unit::Head::open(bytes.try_into().expect("a sector"));
        head.is_ok_and(|head| head.lba.get() == lba)
    }

    pub(crate) fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }
}

/// The superblock that counts.
/// Whether a sector ends in as many zeroes as a write says.
fn ends_in(sector: &[u8], tail: ZeroTail) -> bool {
    let zeroes = match tail {
        ZeroTail::None => 0,
        ZeroTail::B256 => 256,
        ZeroTail::B512 => 512,
    };
    sector[SECTOR_SIZE - zeroes..].iter().all(|&byte| byte == 0)
}

pub(crate) fn newest(disk: &Memory) -> Option<Superblock> {
    let size = Sectors::new((disk_sectors(disk)) as u64);
    let geometry = crate::geometry::Geometry::of_disk(size, 3)?;
    let decode = |lba| {
        let bytes = disk.bytes(Extent::new(lba, Sectors::new(1)));
        Superblock::decode(bytes.try_into().expect("a sector")).ok()
    };
    geometry
        .superblocks()
        .into_iter()
        .filter_map(decode)
        .max_by_key(|superblock| superblock.generation)
}

fn disk_sectors(disk: &Memory) -> usize {
    use levelhead_block::BlockDevice;
    disk.size().as_usize()
}

pub(crate) fn copy(disk: &Memory) -> Memory {
    let size = Sectors::new(disk_sectors(disk) as u64);
    let mut other = Memory::new(size);
    let all = Extent::new(Lba::ZERO, size);
    other.bytes_mut(all).copy_from_slice(disk.bytes(all));
    other
}

const _: () = assert!(SECTOR_SIZE == 4096);
