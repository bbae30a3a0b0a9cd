//! Power cuts over drives that write back: what was promised is there, the rest is old or new.
//!
//! Every write fills its sectors with a number of its own. A ledger knows, for each sector, the numbers
//! that a power cut may leave there: those since the last one that a flush or a durable write made
//! safe.

use std::collections::BTreeMap;
use std::sync::Arc;

use levelhead_array::{Content, HostOrder, Policy, RequestId};
use levelhead_block::{
    Buf, Command, Durability, Effort, Outcome, Payload, Piece, Reply, Request, ZeroTail,
};
use levelhead_drive::{CacheMode, Drive, Faults, Profile, Settings};
use levelhead_lab::{Lone, World, WorldSettings};
use levelhead_stats::{Rng, Streams};
use levelhead_testkit::profiles::{CACHE_OF_TEN, Tiny};
use levelhead_units::{Extent, Instant, Lba, Nanos, SECTOR_SIZE, Sectors};

/// 200 sectors, of which ten fit into memory, for a tenth of a second.
const TINY: Tiny = Tiny::buffered(CACHE_OF_TEN);

fn settings(faults: Faults) -> Settings {
    Settings { queue_depth: 8, cache: CacheMode::WriteBack, faults, ..Settings::PLAIN }
}

const RETRIES: &str = "retry-rate=2%,rotations=1";

/// Whether flushes reach the drives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flushes {
    Done,
    /// Answered by the test itself: the canary.
    Ignored,
}

/// What stores sectors and can lose power.
trait Store {
    fn size(&self) -> Sectors;
    fn now(&self) -> Instant;
    fn submit(&mut self, id: u64, command: Command, buf: Buf);
    /// Some time passes, or all that it takes; what has ended, in that order.
    fn run(&mut self, time: Option<Nanos>) -> Vec<(u64, Outcome, Buf)>;
    fn power_cut(&mut self);
}

impl Store for Lone {
    fn size(&self) -> Sectors {
        self.size()
    }

    fn now(&self) -> Instant {
        self.now()
    }

    fn submit(&mut self, id: u64, command: Command, buf: Buf) {
        self.submit(self.now(), id, request(command, buf));
    }

    fn run(&mut self, time: Option<Nanos>) -> Vec<(u64, Outcome, Buf)> {
        let ended = match time {
            Some(time) => self.run_until(self.now() + time),
            None => self.run_out(),
        };
        let end = |(id, reply): (u64, Reply)| (id, reply.outcome, reply.data.into_buf());
        ended.into_iter().map(end).collect()
    }

    fn power_cut(&mut self) {
        // Whatever ends with it has ended badly.
        self.power_cut(self.now());
    }
}

/// A command with its bytes: what is written, or room.
fn request(command: Command, buf: Buf) -> Request {
    let payload = match command {
        Command::Read { .. } => Payload::Room(buf),
        Command::Write { .. } => Payload::Pieces(vec![Piece::whole(Arc::new(buf))]),
        Command::WriteZeroes { .. } | Command::Trim { .. } | Command::Flush => Payload::None,
    };
    Request::new(command, payload)
}

/// An array whose time goes on between its events.
struct Shelf {
    world: World,
    now: Instant,
}

impl Store for Shelf {
    fn size(&self) -> Sectors {
        self.world.size()
    }

    fn now(&self) -> Instant {
        self.now
    }

    fn submit(&mut self, id: u64, command: Command, buf: Buf) {
        self.world.submit(self.now, RequestId(id), command, Some(buf));
    }

    fn run(&mut self, time: Option<Nanos>) -> Vec<(u64, Outcome, Buf)> {
        let until = time.map(|time| self.now + time);
        while until.map_or(!self.world.array().is_quiet(), |until| self.world.next_at() < until) {
            self.world.step();
        }
        self.now = until.unwrap_or(self.now).max(self.world.now());
        let answers = self.world.take_answers();
        let end = |(_, answer): (Instant, levelhead_array::Answer)| {
            let buf = self.world.take_buf(answer.request).expect("bytes are carried");
            (answer.request.0, answer.outcome, buf)
        };
        answers.into_iter().map(end).collect()
    }

    fn power_cut(&mut self) {
        self.world.power_cut(self.now);
        // As much of the array is made valid as three steps do; the rest is served as it is.
        for _ in 0..3 {
            self.world.resync(self.now);
            assert!(self.run(None).is_empty(), "nobody has asked");
        }
    }
}

/// What may be in a sector: the safe number first, then those written since.
#[derive(Clone)]
struct Sector {
    numbers: Vec<u64>,
    /// How many of them have been answered.
    answered: usize,
}

struct Checker<S> {
    seed: u64,
    rng: Rng,
    store: S,
    flushes: Flushes,
    sectors: Vec<Sector>,
    inside: BTreeMap<u64, Inside>,
    id_next: u64,
    lost: u64,
}

enum Inside {
    Read(Extent),
    Write(Extent, Durability),
    /// The number that every sector had when it was asked for.
    Flush(Vec<u64>),
}

impl<S: Store> Checker<S> {
    fn new(seed: u64, store: S, flushes: Flushes) -> Self {
        let sectors = vec![Sector { numbers: vec![0], answered: 1 }; store.size().as_usize()];
        let rng = Streams::new(seed).stream("power/requests");
        let (inside, id_next, lost) = (BTreeMap::new(), 1, 0);
        Self { seed, rng, store, flushes, sectors, inside, id_next, lost }
    }

    /// Requests, a power cut, a look at every sector; some times over.
    fn run(mut self) -> u64 {
        for _ in 0..3 {
            for _ in 0..10 + self.rng.below(40) {
                self.request();
                let time = self.rng.exponential(Nanos::from_millis(15));
                self.pass(Some(time));
            }
            self.store.power_cut();
            self.inside.clear();
            self.look_at_everything();
        }
        self.lost
    }

    fn request(&mut self) {
        let sectors = 1 + self.rng.below(12);
        let lba = self.rng.below(self.store.size().get() - sectors + 1);
        let extent = Extent::new(Lba::new(lba), Sectors::new(sectors));
        // Which of two writes comes last would be the store's choice.
        let overlaps = |inside: &Inside| match inside {
            Inside::Read(other) | Inside::Write(other, _) => {
                other.lba < extent.end() && extent.lba < other.end()
            }
            Inside::Flush(_) => false,
        };
        if self.inside.len() == 8 || self.inside.values().any(overlaps) {
            self.pass(None);
        }
        match self.rng.below(8) {
            0 => self.flush(),
            1..3 => self.read(extent),
            3 => self.write(extent, Durability::Durable),
            _ => self.write(extent, Durability::Cached),
        }
    }

    fn submit(&mut self, command: Command, buf: Buf, inside: Inside) {
        self.inside.insert(self.id_next, inside);
        self.store.submit(self.id_next, command, buf);
        self.id_next += 1;
    }

    fn read(&mut self, extent: Extent) {
        let command = Command::Read { extent, effort: Effort::Full };
        self.submit(command, Buf::zeroed(extent.sectors), Inside::Read(extent));
    }

    fn write(&mut self, extent: Extent, durability: Durability) {
        let number = self.id_next;
        let bytes: Vec<u8> = number.to_le_bytes().repeat(extent.sectors.as_usize() * 512);
        for lba in extent.iter() {
            self.sectors[lba.get() as usize].numbers.push(number);
        }
        let command = Command::Write { extent, durability, zero_tail: ZeroTail::None };
        self.submit(command, Buf::copy_of(&bytes), Inside::Write(extent, durability));
    }

    fn flush(&mut self) {
        let answered = |sector: &Sector| sector.numbers[sector.answered - 1];
        let numbers = self.sectors.iter().map(answered).collect();
        match self.flushes {
            Flushes::Done => self.submit(Command::Flush, Buf::empty(), Inside::Flush(numbers)),
            Flushes::Ignored => self.make_safe(&numbers),
        }
    }

    fn pass(&mut self, time: Option<Nanos>) {
        for (id, outcome, buf) in self.store.run(time) {
            assert!(outcome.is_good(), "seed {}: request {id}: {outcome:?}", self.seed);
            match self.inside.remove(&id).expect("it was asked for and not answered") {
                Inside::Read(extent) => {
                    for (lba, bytes) in extent.iter().zip(buf.as_slice().chunks(SECTOR_SIZE)) {
                        let number = self.number(lba, bytes);
                        let newest = self.sectors[lba.get() as usize].numbers.last();
                        assert_eq!(Some(&number), newest, "seed {}: {lba:?}", self.seed);
                    }
                }
                Inside::Write(extent, durability) => {
                    for lba in extent.iter() {
                        let sector = &mut self.sectors[lba.get() as usize];
                        sector.answered = sector.numbers.len();
                        if durability == Durability::Durable {
                            sector.make_safe(id);
                        }
                    }
                }
                Inside::Flush(numbers) => self.make_safe(&numbers),
            }
        }
    }

    fn make_safe(&mut self, numbers: &[u64]) {
        for (sector, &number) in self.sectors.iter_mut().zip(numbers) {
            sector.make_safe(number);
        }
    }

    fn look_at_everything(&mut self) {
        for lba in (0..self.store.size().get()).map(Lba::new) {
            let extent = Extent::new(lba, Sectors::new(1));
            let command = Command::Read { extent, effort: Effort::Full };
            self.store.submit(self.id_next, command, Buf::zeroed(extent.sectors));
            self.id_next += 1;
            let ended = self.store.run(None);
            let [(_, outcome, buf)] = &ended[..] else { panic!("{} answers", ended.len()) };
            assert!(outcome.is_good(), "seed {}: {lba:?}: {outcome:?}", self.seed);
            let number = self.number(lba, buf.as_slice());
            let sector = &mut self.sectors[lba.get() as usize];
            assert!(
                sector.numbers.contains(&number),
                "seed {}: {lba:?} at {:?}: what was safe is gone: {number} of {:?}",
                self.seed,
                self.store.now(),
                sector.numbers
            );
            self.lost += u64::from(number != sector.numbers[sector.answered - 1]);
            *sector = Sector { numbers: vec![number], answered: 1 };
        }
    }

    /// The number that fills a sector.
    fn number(&self, lba: Lba, bytes: &[u8]) -> u64 {
        let (first, rest) = bytes.split_at(8);
        assert!(rest.chunks(8).all(|next| next == first), "seed {}: {lba:?} is torn", self.seed);
        u64::from_le_bytes(first.try_into().expect("eight bytes"))
    }
}

impl Sector {
    /// Nothing older than `number` may come back.
    fn make_safe(&mut self, number: u64) {
        // Something newer may have been made safe meanwhile.
        if let Some(at) = self.numbers.iter().position(|&other| other == number) {
            self.numbers.drain(..at);
            self.answered = self.answered.saturating_sub(at).max(1);
        }
    }
}

/// Sectors that one seed's power cuts have set back.
fn lone(seed: u64, flushes: Flushes, faults: &str) -> u64 {
    let (profile, faults) = (Profile::parse(&TINY.text()).unwrap(), faults.parse().unwrap());
    let drive = Drive::new(profile, settings(faults), Streams::new(seed), "drive/0").unwrap();
    Checker::new(seed, Lone::new(drive), flushes).run()
}

fn array(seed: u64, flushes: Flushes, faults: &str) -> u64 {
    let mut rng = Streams::new(seed).stream("power/array");
    let layouts = ["raid0:3,chunk=8KiB", "raid5:3+1,chunk=8KiB", "eraid:3+2,e=2,chunk=8KiB"];
    let mut pick = |count: usize| rng.below(count as u64) as usize;
    let policies = Policy::all();
    let settings = WorldSettings {
        spec: layouts[pick(layouts.len())].parse().unwrap(),
        policy: policies[pick(policies.len())],
        window: 1 + pick(8) as u32,
        order: HostOrder::Elevator,
        content: Content::Carried,
        profile: Arc::new(Profile::parse(&TINY.text()).unwrap()),
        drives: vec![settings(faults.parse().unwrap())],
        area: None,
        journal: None,
        seed,
    };
    let world = World::new(&settings).unwrap();
    Checker::new(seed, Shelf { world, now: Instant::ZERO }, flushes).run()
}

#[test]
fn a_drive_that_loses_power_keeps_what_it_promised() {
    let lost: u64 = (0..150).map(|seed| lone(seed, Flushes::Done, "none")).sum();
    // Power cuts that lose nothing prove nothing.
    assert!(lost > 500, "only {lost} sectors were set back");
}

#[test]
fn an_array_whose_drives_lose_power_keeps_what_it_promised() {
    let lost: u64 = (0..40).map(|seed| array(seed, Flushes::Done, RETRIES)).sum();
    assert!(lost > 100, "only {lost} sectors were set back");
}

/// The canaries.
#[test]
#[should_panic(expected = "what was safe is gone")]
fn flushes_that_a_drive_never_sees_are_caught() {
    for seed in 0..20 {
        lone(seed, Flushes::Ignored, "none");
    }
}

#[test]
#[should_panic(expected = "what was safe is gone")]
fn flushes_that_an_array_never_sees_are_caught() {
    for seed in 0..20 {
        array(seed, Flushes::Ignored, RETRIES);
    }
}

#[test]
#[should_panic(expected = "what was safe is gone")]
fn drive_whose_flushes_lie_is_caught() {
    for seed in 0..20 {
        lone(seed, Flushes::Done, "lying-flush=50%");
    }
}

#[test]
#[should_panic(expected = "what was safe is gone")]
fn array_over_drives_whose_flushes_lie_is_caught() {
    for seed in 0..20 {
        array(seed, Flushes::Done, "lying-flush=50%");
    }
}
