//! What a modelled drive silently does to its bytes, against plain arrays that a second model of the same drive
//! is followed with: what every read gives, and what is on the medium after a power cut.

use std::collections::BTreeMap;
use std::sync::Arc;

use levelhead_block::{
    Buf, Command, Durability, Effort, Payload, Piece, Request, Silent, SilentWrite, ZeroTail,
};
use levelhead_drive::{CacheMode, Completion, Drive, Faults, Profile, Scheduler, Settings};
use levelhead_lab::Lone;
use levelhead_stats::Streams;
use levelhead_testkit::profiles::Tiny;
use levelhead_units::{Extent, Lba, Nanos, SECTOR_SIZE, Sectors};

/// 200 sectors, of which sixty fit into memory, until a flush.
const TINY: Tiny = Tiny::buffered(
    r#"
        segments = 2
        segment_blocks = 60
        read_ahead_blocks = 8
        write_blocks = 60
        write_delay = "86400s"
        flush_overhead = "7ms"
    "#,
);

const SIZE: usize = 200;

/// What the plain arrays do not know of: a bug that must show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blind {
    No,
    Missing,
    Landing,
    FlipsStored,
    FlipsAtRest,
    Lies,
}

fn drive(seed: u64, cache: CacheMode, faults: &str) -> Drive {
    let faults: Faults = faults.parse().unwrap();
    let (queue_depth, scheduler) = (1, Scheduler::Fcfs);
    let settings = Settings { queue_depth, scheduler, cache, faults, ..Settings::PLAIN };
    Drive::new(Profile::parse(&TINY.text()).unwrap(), settings, Streams::new(seed), "drive/0")
        .unwrap()
}

type Sector = Vec<u8>;

/// Where a sector will be, and with which bytes, if anywhere.
type Stored = Option<(usize, Sector)>;

/// One drive, its medium and its memory as plain arrays: slow and obvious.
struct Plain {
    drive: Drive,
    blind: Blind,
    medium: Vec<Sector>,
    /// What waits, and in its order of coming: the sector that it is for, its bytes, where it will be.
    memory: Vec<(usize, Sector, Stored)>,
}

impl Plain {
    fn new(drive: Drive, blind: Blind) -> Self {
        Self { drive, blind, medium: vec![vec![0; SECTOR_SIZE]; SIZE], memory: Vec::new() }
    }

    /// Runs one command; what it reads.
    fn run(
        &mut self,
        now: levelhead_units::Instant,
        id: u64,
        command: Command,
        value: u8,
    ) -> Vec<Sector> {
        self.drive.handle_submit(now, id, command, id);
        while let Some(at) = self.drive.deadline() {
            self.drive.handle_timeout(at);
        }
        let Completion { ended, silent, .. } = self.drive.poll().unwrap();
        let read = match command {
            Command::Read { extent, .. } => {
                extent.iter().map(|lba| self.read(extent, lba, &silent)).collect()
            }
            Command::Write { extent, durability, .. } => {
                let waits = self.drive.writes_back() && durability == Durability::Cached;
                extent.iter().for_each(|lba| self.write(extent, lba, value, &silent, waits));
                Vec::new()
            }
            _ => {
                if silent != Silent::Flush || self.blind == Blind::Lies {
                    self.destage(&[]);
                }
                Vec::new()
            }
        };
        // What had no room has pushed others out.
        let unwritten = self.drive.unwritten(ended);
        self.destage(&unwritten);
        read
    }

    fn read(&self, extent: Extent, lba: Lba, silent: &Silent) -> Sector {
        let at = lba.get() as usize;
        if let Some((_, bytes, _)) = self.memory.iter().find(|(wanted, ..)| *wanted == at) {
            return bytes.clone();
        }
        let mut bytes = self.medium[at].clone();
        if let Silent::Read { flips } = silent
            && self.blind != Blind::FlipsAtRest
        {
            for flip in
                flips.iter().filter(|flip| extent.lba + Sectors::new(flip.offset.into()) == lba)
            {
                bytes[usize::from(flip.bit) / 8] ^= 1 << (flip.bit % 8);
            }
        }
        bytes
    }

    fn write(&mut self, extent: Extent, lba: Lba, value: u8, silent: &Silent, waits: bool) {
        let (at, bytes) = (lba.get() as usize, vec![value; SECTOR_SIZE]);
        let mut stored = Some((at, bytes.clone()));
        if let Silent::Write(wrong) = silent {
            let SilentWrite { missing, landed, flips } = &**wrong;
            let offset = (lba - extent.lba).get() as u32;
            let (place, content) = stored.as_mut().unwrap();
            if let (Some(landed), true) = (landed, self.blind != Blind::Landing) {
                *place = landed.get() as usize + offset as usize;
            }
            if self.blind != Blind::FlipsStored {
                for flip in flips.iter().filter(|flip| flip.offset == offset) {
                    content[usize::from(flip.bit) / 8] ^= 1 << (flip.bit % 8);
                }
            }
            if missing.contains(offset) && self.blind != Blind::Missing {
                stored = None;
            }
        }
        // Whether the write before this one had left the memory makes no difference.
        if let Some(older) = self.memory.iter().position(|(wanted, ..)| *wanted == at) {
            let (_, bytes, older) = self.memory.remove(older);
            let good = Some((at, bytes));
            let newer = stored.as_ref().filter(|(place, content)| {
                (*place, content.as_slice()) == (at, &[value; SECTOR_SIZE][..])
            });
            if older != good || newer.is_none() {
                self.medium_take(older);
            }
        }
        if waits {
            self.memory.push((at, bytes, stored));
        } else {
            self.medium_take(stored);
        }
    }

    fn medium_take(&mut self, stored: Stored) {
        if let Some((at, bytes)) = stored {
            self.medium[at] = bytes;
        }
    }

    /// Brings everything else to the medium, lowest first.
    fn destage(&mut self, unwritten: &[Extent]) {
        self.memory.sort_by_key(|(at, ..)| *at);
        let waits = |at: usize| unwritten.iter().any(|extent| extent.contains(Lba::new(at as u64)));
        for (_, _, stored) in self.memory.extract_if(.., |(at, ..)| !waits(*at)) {
            if let Some((at, bytes)) = stored {
                self.medium[at] = bytes;
            }
        }
    }
}

/// Random requests, one after the other, and power cuts. How many sectors of the medium differ from those of a
/// drive in good order at the end, or where the two runtimes part.
fn check(seed: u64, cache: CacheMode, faults: &str, blind: Blind) -> Result<usize, String> {
    let mut rng = Streams::new(seed).stream("silent");
    let mut lone = Lone::new(drive(seed, cache, faults));
    let mut plain = Plain::new(drive(seed, cache, faults), blind);
    let mut good = Plain::new(drive(seed, cache, "none"), Blind::No);
    for id in 1..=120 {
        let extent = {
            let sectors = 1 + rng.below(12);
            Extent::new(Lba::new(rng.below(SIZE as u64 - sectors + 1)), Sectors::new(sectors))
        };
        let (effort, zero_tail) = (Effort::Full, ZeroTail::None);
        let command = match rng.below(10) {
            0 => Command::Flush,
            1..4 => Command::Read { extent, effort },
            4 => Command::Write { extent, durability: Durability::Durable, zero_tail },
            _ => Command::Write { extent, durability: Durability::Cached, zero_tail },
        };
        let value = id as u8;
        let now = lone.now() + Nanos::from_millis(1);
        let payload = match command {
            Command::Read { .. } => Payload::Room(Buf::zeroed(extent.sectors)),
            Command::Write { .. } => {
                let buf = Buf::copy_of(&vec![value; extent.sectors.as_usize() * SECTOR_SIZE]);
                Payload::Pieces(vec![Piece::whole(Arc::new(buf))])
            }
            _ => Payload::None,
        };
        lone.submit(now, id, Request::new(command, payload));
        let mut ended: BTreeMap<_, _> = lone.run_out().into_iter().collect();
        let expected = plain.run(now, id, command, value);
        good.run(now, id, command, value);
        let seen = ended.remove(&id).unwrap().data.into_buf();
        if !expected.is_empty() && seen.as_slice() != expected.concat() {
            return Err(format!("seed {seed}: request {id} reads something else"));
        }
        if rng.below(30) == 0 {
            let now = lone.now();
            lone.power_cut(now);
            for plain in [&mut plain, &mut good] {
                plain.drive.handle_power_cut(now);
                plain.memory.clear();
            }
        }
        let all = Extent::new(Lba::ZERO, Sectors::new(SIZE as u64));
        if lone.storage_mut().bytes(all) != plain.medium.concat() {
            return Err(format!("seed {seed}: the medium is another one after request {id}"));
        }
    }
    Ok(plain.medium.iter().zip(&good.medium).filter(|(one, other)| one != other).count())
}

const KINDS: [(&str, Blind); 5] = [
    ("lost-writes=10%,torn-writes=10%", Blind::Missing),
    ("misdirected-writes=10%", Blind::Landing),
    ("flips=5%", Blind::FlipsStored),
    ("flips=5%", Blind::FlipsAtRest),
    ("lying-flush=50%", Blind::Lies),
];

#[test]
fn medium_and_reads_are_what_the_model_says_of_each_command() {
    let every = KINDS.map(|(faults, _)| faults).join(",");
    for cache in [CacheMode::Off, CacheMode::WriteBack] {
        for faults in KINDS.iter().map(|(faults, _)| *faults).chain([every.as_str()]) {
            let wrong = |seed| check(seed, cache, faults, Blind::No).unwrap();
            let wrong: usize = (0..30).map(wrong).sum();
            // A drive without memory has nothing to lie about.
            let is_harmless = faults == "lying-flush=50%" && cache == CacheMode::Off;
            assert_eq!(wrong == 0, is_harmless, "{faults} leaves {wrong} sectors wrong, {cache}");
        }
        assert_eq!(check(1, cache, "none", Blind::No), Ok(0));
    }
}

/// The canaries: a runtime that does not carry out what it is told is found within these seeds.
#[test]
fn runtime_that_is_blind_to_a_silent_failure_is_caught() {
    for (faults, blind) in KINDS {
        let cache = CacheMode::WriteBack;
        let found = (0..10).find(|&seed| check(seed, cache, faults, blind).is_err());
        assert!(found.is_some(), "{blind:?} is never seen");
        println!("{blind:?}: found by seed {}", found.unwrap());
    }
}
