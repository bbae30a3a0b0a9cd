//! A made-up drive that accepts, clamps, refuses, forgets, and a program that dies between any two steps.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use levelhead_stats::{Rng, Streams};
use levelhead_testkit::wait_until;
use levelhead_units::{Instant, Nanos};
use rustix::io::Errno;
use tempfile::TempDir;

use super::keeper::{Keeper, Now, Standing};
use super::rule::{Duties, Duty, HOLD, LOOK_EVERY, USEFUL_MAX};
use super::*;
use crate::devices::ata::{in_tenths, of_tenths};
use crate::devices::nvme::{Passthrough, Queue};
use crate::devices::scsi::{Answer, Data};
use crate::devices::sysfs::tests::tree;

/// How a made-up drive takes a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// As it is told.
    Accepts,
    /// None below this number of tenths of a second: those become this one.
    Clamps(u16),
    /// With an error, and nothing has changed.
    Refuses,
    /// It says that it does, and does not.
    Pretends,
    /// A limit of reads counts for writes, too.
    Couples,
    /// Every third command fails, some of them after they were carried out.
    Fails,
    /// It takes a short limit, and then no other one.
    Sticks,
}

impl Manner {
    const ALL: [Self; 8] = [
        Self::Accepts,
        Self::Clamps(5),
        Self::Clamps(65),
        Self::Refuses,
        Self::Pretends,
        Self::Couples,
        Self::Fails,
        Self::Sticks,
    ];
}

/// A drive, the records, and the program that uses them.
struct World {
    manner: Manner,
    /// Limits of reads and writes in tenths of a second.
    read: u16,
    write: u16,
    /// What it had when the program came.
    own: [u16; 2],
    /// What it has after it has lost power.
    power_on: [u16; 2],
    records: BTreeMap<String, ErrorRecovery>,
    /// Which program may still do something: earlier ones have died.
    life: u64,
    /// After this number of steps the program dies.
    fuse: Option<u32>,
    /// Whether the last step of a program that dies is still carried out.
    dies_late: bool,
    commands: u64,
    /// Reads with retries that were told that the drive's own limit holds.
    full_inside: u32,
    /// Since when the limit is not what it was set to, if it was forgotten.
    forgotten_at: Option<Instant>,
    /// Whether it has lost power since the program came.
    lost_power: bool,
    violations: Vec<String>,
}

impl World {
    fn new(manner: Manner, own: [u16; 2], power_on: [u16; 2]) -> Self {
        Self {
            manner,
            read: own[0],
            write: own[1],
            own,
            power_on,
            records: BTreeMap::new(),
            life: 0,
            fuse: None,
            dies_late: false,
            commands: 0,
            full_inside: 0,
            forgotten_at: None,
            lost_power: false,
            violations: Vec::new(),
        }
    }

    fn is_short(&self) -> bool {
        of_tenths(self.read).is_some_and(|limit| limit <= USEFUL_MAX)
    }

    fn check(&mut self, is_so: bool, what: &str) {
        if !is_so {
            self.violations.push(what.to_owned());
        }
    }

    /// A step of a program of this life: whether it is carried out, and whether the program lives to see that.
    fn step(&mut self, life: u64) -> (bool, bool) {
        if life != self.life {
            return (false, false);
        }
        let Some(fuse) = &mut self.fuse else { return (true, true) };
        if *fuse > 0 {
            *fuse -= 1;
            return (true, true);
        }
        self.fuse = None;
        self.life += 1;
        (self.dies_late, false)
    }

    fn forget(&mut self, now: Instant) {
        [self.read, self.write] = self.power_on;
        self.forgotten_at.get_or_insert(now);
        self.lost_power = true;
    }

    /// Whether the drive has what it would have if no program had come.
    fn is_own(&self) -> bool {
        let now = [self.read, self.write];
        now == self.own || (self.lost_power && now == self.power_on)
    }

    /// The sense data of a command that went well, or not.
    fn sense(is_good: bool, tenths: u16) -> Vec<u8> {
        if !is_good {
            return vec![0x72, 0x0B, 0, 0, 0, 0, 0, 0];
        }
        let [count, lba] = tenths.to_le_bytes();
        let mut sense = vec![0x72, 1, 0, 0x1D, 0, 0, 0, 14, 9, 12, 0, 0, 0, count, 0, lba];
        sense.extend([0, 0x4F, 0, 0xC2, 0, 0x50]);
        sense
    }

    /// An SCT command by its key sector.
    fn sct(&mut self, key: &[u8]) -> Vec<u8> {
        let word = |at: usize| u16::from_le_bytes([key[2 * at], key[2 * at + 1]]);
        assert_eq!(word(0), 3, "error recovery");
        assert!((1..=2).contains(&word(2)), "of reads or writes");
        self.commands += 1;
        let fails = self.manner == Manner::Fails && self.commands.is_multiple_of(3);
        if fails && self.commands.is_multiple_of(2) {
            return Self::sense(false, 0);
        }
        let tenths = match (word(1), word(2)) {
            (2, 1) => self.read,
            (2, _) => self.write,
            (1, timer) => {
                let is_set = self.set(timer, word(3));
                return Self::sense(is_set && !fails, word(3));
            }
            (other, _) => panic!("function {other}"),
        };
        Self::sense(!fails, tenths)
    }

    fn set(&mut self, timer: u16, wanted: u16) -> bool {
        let tenths = match self.manner {
            Manner::Clamps(least) if wanted > 0 => wanted.max(least),
            Manner::Refuses => return false,
            Manner::Pretends => return true,
            Manner::Sticks if self.is_short() => return false,
            _ => wanted,
        };
        if timer == 2 {
            self.write = tenths;
            return true;
        }
        self.read = tenths;
        if self.manner == Manner::Couples {
            self.write = tenths;
        }
        self.forgotten_at = None;
        let is_own = tenths == self.own[0];
        self.check(is_own || !self.records.is_empty(), "EC1: it was changed without a record");
        self.check(
            !self.is_short() || self.full_inside == 0,
            "EC3: it is short for a read with retries",
        );
        true
    }
}

/// A world as one program sees it.
#[derive(Clone)]
struct Seat {
    world: Arc<Mutex<World>>,
    life: u64,
}

impl Seat {
    fn world(&self) -> std::sync::MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Access for Seat {
    fn scsi(&self, cdb: &[u8], data: Data<'_>) -> io::Result<Answer> {
        let mut world = self.world();
        let (is_done, lives) = world.step(self.life);
        let mut answer = Answer { status: 2, host_status: 0, sense: Vec::new(), len: 512 };
        match (cdb[14], data) {
            (0xEC, Data::In(words)) => {
                words.fill(0);
                words[412] = 0b1001;
                answer = Answer::good(words.len());
            }
            (0xB0, Data::Out(key)) if is_done => answer.sense = world.sct(key),
            (0xB0, Data::Out(_)) => {}
            (other, _) => panic!("command {other:02X}h"),
        }
        if lives { Ok(answer) } else { Err(Errno::INTR.into()) }
    }

    fn nvme(&self, _: Queue, _: &Passthrough, _: &mut [u8]) -> io::Result<Result<u32, u16>> {
        Err(Errno::NOTTY.into())
    }
}

impl Seat {
    fn on_paper<T>(&self, step: impl FnOnce(&mut World) -> Fact<T>) -> Fact<T> {
        let mut world = self.world();
        let (is_done, lives) = world.step(self.life);
        let done = if is_done { step(&mut world) } else { Err("it has died".to_owned()) };
        if lives { done } else { Err("it has died".to_owned()) }
    }
}

impl Store for Seat {
    fn load(&self, key: &str) -> Fact<Option<ErrorRecovery>> {
        self.on_paper(|world| Ok(world.records.get(key).copied()))
    }

    fn save(&self, key: &str, limits: ErrorRecovery) -> Fact<()> {
        self.on_paper(|world| match world.records.contains_key(key) {
            true => Err("there is one".to_owned()),
            false => {
                world.records.insert(key.to_owned(), limits);
                Ok(())
            }
        })
    }

    fn remove(&self, key: &str) -> Fact<()> {
        self.on_paper(|world| {
            let record = world.records.remove(key);
            let now = [world.read, world.write];
            let own = record.map(|it| [it.read, it.write].map(|limit| in_tenths(limit).unwrap()));
            let is_back = own == Some(now) || world.is_own();
            world.check(is_back, "EC1: the record is dropped before the limits are back");
            Ok(())
        })
    }

    fn name(&self, key: &str) -> PathBuf {
        key.into()
    }
}

const KEY: &str = "naa.5000c500a1b2c3d4";

/// What a run leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Planted {
    Nothing,
    Omits(Duty),
    /// The next start does not look for records.
    ForgetsRecords,
}

/// A program over a drive, step by step.
struct Run {
    rng: Rng,
    planted: Planted,
    seat: Seat,
    now: Instant,
    gate: Arc<Gate>,
    keeper: Option<Keeper>,
    may: Now,
    /// Reads with retries: those that wait, and those that are inside, with what they were told.
    waiting: Vec<Pass>,
    inside: Vec<(Pass, Recovered)>,
    /// What has happened, so that a test cannot pass without it.
    counts: BTreeMap<&'static str, u32>,
}

impl Run {
    fn new(seed: u64, planted: Planted) -> Self {
        let mut rng = Streams::new(seed).stream("erc");
        let manner = Manner::ALL[rng.below(Manner::ALL.len() as u64) as usize];
        let limits = [[70, 70], [0, 0], [100, 70], [70, 0]];
        let own = limits[rng.below(4) as usize];
        // Most have after a loss of power what they had before.
        let power_on = if rng.below(3) == 0 { limits[rng.below(4) as usize] } else { own };
        // A drive with one limit for both has both the same.
        let [own, power_on] = match manner {
            Manner::Couples => [own, power_on].map(|limits| [limits[0]; 2]),
            // One that takes no limit never had another one than after its power came.
            Manner::Refuses | Manner::Pretends => [own; 2],
            _ => [own, power_on],
        };
        let world = Arc::new(Mutex::new(World::new(manner, own, power_on)));
        let mut run = Self {
            rng,
            planted,
            seat: Seat { world, life: 0 },
            now: Instant::ZERO,
            gate: Arc::default(),
            keeper: None,
            may: Now::Forbidden,
            waiting: Vec::new(),
            inside: Vec::new(),
            counts: BTreeMap::new(),
        };
        run.start();
        run
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn manner(&self) -> Manner {
        self.seat.world().manner
    }

    /// Whether a drive that is given its own limit takes it.
    fn takes(&self) -> bool {
        !matches!(self.manner(), Manner::Fails | Manner::Sticks)
    }

    /// A program comes: puts back what an earlier one has left.
    fn start(&mut self) {
        let seat = Seat { life: self.seat.world().life, ..self.seat.clone() };
        self.seat = seat.clone();
        let open = || -> Fact<Box<dyn Access>> { Ok(Box::new(seat.clone())) };
        let had_record = !self.seat.world().records.is_empty();
        if self.planted != Planted::ForgetsRecords {
            let mut done = give_back(&seat, KEY, &open);
            for _ in 0..20 {
                if !self.is_alive() {
                    self.count("died at a start");
                    return self.start();
                }
                if done.is_ok() || self.manner() != Manner::Fails {
                    break;
                }
                assert!(!self.seat.world().records.is_empty(), "EC6: the record stays");
                done = give_back(&seat, KEY, &open);
            }
            if had_record {
                self.count("put back");
            }
            let is_well = done.is_ok() || !self.takes();
            self.seat.world().check(is_well, "EC6: a start could not put it back");
            if done.is_err() {
                assert!(!self.seat.world().records.is_empty(), "EC6: the record stays");
                self.count("refused start");
                // The operator cuts the power and drops the record.
                let mut world = self.seat.world();
                world.records.clear();
                [world.read, world.write] = world.power_on;
                world.lost_power = true;
            }
        }
        let mut world = self.seat.world();
        let now = [world.read, world.write];
        let is_own = world.is_own();
        world.check(is_own, "EC6: after a start it has not its own limits");
        let is_bare = world.records.is_empty();
        world.check(is_bare, "EC6: after a start there is a record");
        // What it has now is its own for this program: an operator may have set the other.
        world.own = now;
        (world.forgotten_at, world.lost_power) = (None, false);
        drop(world);
        let [read, write] = now.map(of_tenths);
        let duties = match self.planted {
            Planted::Omits(duty) => Duties::without(duty),
            Planted::Nothing | Planted::ForgetsRecords => Duties::default(),
        };
        self.gate = Arc::default();
        let (own, gate) = (ErrorRecovery { read, write }, Arc::clone(&self.gate));
        let (device, records) = (Box::new(seat.clone()), Box::new(seat));
        let means = Means { device, records, hold: HOLD };
        let keeper = Keeper::new(own, KEY.to_owned(), gate, means);
        self.keeper = Some(keeper.with_duties(duties));
    }

    fn is_alive(&self) -> bool {
        self.seat.world().life == self.seat.life
    }

    /// What dies takes its reads with it.
    fn bury(&mut self) {
        self.waiting.clear();
        self.inside.clear();
        self.keeper = None;
        self.seat.world().full_inside = 0;
        self.count("died");
        self.start();
    }

    fn event(&mut self) {
        match self.rng.below(100) {
            0..40 => self.now = self.now + Nanos::from_millis(self.rng.below(20_000)),
            40..60 => self.gate.note_fast(),
            60..68 => {
                let pass = self.gate.enter();
                match pass.must_wait {
                    true => self.waiting.push(pass),
                    false => self.let_in(pass, Recovered::Own),
                }
            }
            68..80 => self.let_out(),
            80..84 => self.may = Now::Forbidden,
            84..94 => self.may = Now::Allowed,
            94..96 => {
                let now = self.now;
                self.seat.world().forget(now);
                self.count("forgotten");
            }
            96..98 => {
                let (steps, dies_late) = (self.rng.below(12) as u32, self.rng.below(2) == 0);
                let mut world = self.seat.world();
                (world.fuse, world.dies_late) = (Some(steps), dies_late);
            }
            _ => return self.end(),
        }
        self.advance(self.may);
    }

    fn let_in(&mut self, pass: Pass, recovered: Recovered) {
        if recovered == Recovered::Own {
            let mut world = self.seat.world();
            let is_short = world.is_short();
            world.check(!is_short, "EC3: a read with retries is let in under a short limit");
            world.full_inside += 1;
        }
        self.inside.push((pass, recovered));
    }

    fn let_out(&mut self) {
        if let Some((pass, recovered)) = self.inside.pop() {
            self.seat.world().full_inside -= u32::from(recovered == Recovered::Own);
            drop(pass);
        }
    }

    fn advance(&mut self, may: Now) {
        let mut keeper = self.keeper.take().unwrap();
        keeper.advance(self.now, may);
        if !self.is_alive() {
            return self.bury();
        }
        let recovered = keeper.recovered();
        for pass in std::mem::take(&mut self.waiting) {
            self.count(if recovered == Recovered::Own { "waited" } else { "waited in vain" });
            self.let_in(pass, recovered);
        }
        let takes = self.takes();
        let standing = keeper.standing();
        self.keeper = Some(keeper);
        let (now, mut world) = (self.now, self.seat.world());
        let is_short = world.is_short();
        world.check(!is_short || may == Now::Allowed || !takes, "EC4: it is short and must not be");
        let is_writes_own =
            world.write == world.own[1] || (world.lost_power && world.write == world.power_on[1]);
        world.check(is_writes_own || !takes, "EC5: the limit of writes has changed");
        let is_fresh = world.forgotten_at.is_none_or(|at| now < at + LOOK_EVERY);
        let read = of_tenths(world.read);
        match standing {
            Standing::Short(limit) => {
                let is_set = world.forgotten_at.is_some() || read == Some(limit);
                world.check(is_set, "EC2: it counts as short");
                world.check(is_fresh, "it was forgotten, and that goes unnoticed");
                drop(world);
                self.count("short");
            }
            Standing::Own | Standing::GivenUp(_) => {
                world.check(!is_short, "EC2: it counts as its own");
                let is_over = matches!(standing, Standing::GivenUp(_));
                let is_bare = world.records.is_empty();
                world.check(!is_over || is_bare, "a record is left");
                drop(world);
                if is_over {
                    self.count("given up");
                }
            }
            Standing::Changed(_) => {
                world.check(!takes, "a drive that takes its limit has it");
                drop(world);
                self.count("changed");
            }
        }
    }

    /// A stop in good order, and the next start.
    fn end(&mut self) {
        self.waiting.clear();
        while !self.inside.is_empty() {
            self.let_out();
        }
        let life = self.seat.life;
        self.advance(Now::Last);
        if self.seat.life != life {
            return;
        }
        let keeper = self.keeper.take().unwrap();
        let left = keeper.end();
        let takes = self.takes();
        let mut world = self.seat.world();
        let is_own = world.is_own();
        let is_bare = world.records.is_empty();
        match left {
            None => {
                world.check(is_own, "EC6: it was not put back at the end");
                world.check(is_bare, "EC6: a record is left at the end");
            }
            Some(_) => {
                world.check(!takes, "EC6: it could have been put back at the end");
                world.check(is_own || !is_bare, "EC6: the record is gone");
            }
        }
        drop(world);
        self.count("ended");
        self.start();
    }

    fn violation(&self) -> Option<String> {
        self.seat.world().violations.first().cloned()
    }
}

/// The first violation of a run, if there is one.
fn run(seed: u64, planted: Planted, counts: &mut BTreeMap<String, u32>) -> Option<String> {
    let mut run = Run::new(seed, planted);
    for _ in 0..300 {
        run.event();
        if let Some(found) = run.violation() {
            return Some(format!("seed {seed}, {:?}: {found}", run.manner()));
        }
    }
    let manner = format!("{:?}", run.manner());
    for (what, count) in std::mem::take(&mut run.counts) {
        *counts.entry(what.to_owned()).or_default() += count;
        *counts.entry(format!("{manner} {what}")).or_default() += count;
    }
    None
}

const SEEDS: u64 = 2_000;

#[test]
fn limits_are_the_drives_own_whatever_it_does_and_wherever_the_program_dies() {
    let mut counts = BTreeMap::new();
    for seed in 0..SEEDS {
        assert_eq!(run(seed, Planted::Nothing, &mut counts), None);
    }
    for what in [
        "short",
        "waited",
        "waited in vain",
        "forgotten",
        "died",
        "put back",
        "died at a start",
        "ended",
        "Accepts short",
        "Clamps(5) short",
        "Clamps(65) given up",
        "Refuses given up",
        "Pretends given up",
        "Couples short",
        "Fails changed",
        "Sticks refused start",
    ] {
        assert!(counts.get(what).is_some_and(|&count| count > 20), "{what}: {counts:?}");
    }
}

#[test]
fn each_duty_that_is_left_out_is_noticed() {
    let duties = [
        Duty::Record,
        Duty::ReadBack,
        Duty::Full,
        Duty::Redundancy,
        Duty::Write,
        Duty::Last,
        Duty::Look,
    ];
    for planted in duties.map(Planted::Omits).into_iter().chain([Planted::ForgetsRecords]) {
        let found = (0..SEEDS).find_map(|seed| run(seed, planted, &mut BTreeMap::new()));
        assert!(found.is_some(), "{planted:?}");
        eprintln!("{planted:?}: {}", found.unwrap_or_default());
    }
}

/// A made-up drive that a test looks at from outside.
#[derive(Clone)]
pub(crate) struct MadeUp(Seat);

impl MadeUp {
    /// A drive with limits of 7 s.
    pub(crate) fn new(manner: Manner) -> Self {
        let world = World::new(manner, [70; 2], [70; 2]);
        Self(Seat { world: Arc::new(Mutex::new(world)), life: 0 })
    }

    fn means(&self) -> Means {
        let seat = || Box::new(self.0.clone());
        Means { device: seat(), records: seat(), hold: Nanos::from_millis(100) }
    }

    /// Its limit, which is its own so far.
    pub(crate) fn limit(&self) -> Fact<DriveLimit> {
        let (_root, disk) = disk(&[]);
        DriveLimit::start(&disk, self.means())
    }

    /// Its limit once it is short.
    pub(crate) fn short_limit(&self) -> DriveLimit {
        let limit = self.limit().unwrap();
        limit.gate().note_fast();
        limit.allow(true);
        wait_until("the limit is short", || self.tenths()[0] == 1);
        limit
    }

    /// Its limits of reads and writes, in tenths of a second.
    pub(crate) fn tenths(&self) -> [u16; 2] {
        let world = self.0.world();
        [world.read, world.write]
    }

    pub(crate) fn has_record(&self) -> bool {
        !self.0.world().records.is_empty()
    }
}

/// A SATA disk in a folder of its own, with some files of its own.
fn disk(files: &[(&str, &str)]) -> (TempDir, Disk) {
    let usual = [("device/vendor", "ATA"), ("device/wwid", KEY)];
    let root = tree("sda", &[&usual[..], files].concat());
    let disk = Sysfs::at(root.path()).disk((8, 0)).unwrap();
    (root, disk)
}

#[test]
fn read_with_retries_waits_for_the_drives_own_limit() {
    let drive = MadeUp::new(Manner::Accepts);
    let limit = drive.short_limit();
    assert!(drive.has_record());
    assert_eq!(limit.state(), Ok("limit of reads 0.1 s, its own: 7 s".to_owned()));
    let pass = limit.gate().enter();
    assert!(pass.must_wait);
    let (tells, told) = mpsc::channel();
    limit.wait(Waiting::new(move |recovered| tells.send(recovered).unwrap()));
    assert_eq!(told.recv(), Ok(Recovered::Own));
    assert_eq!(drive.tenths(), [70; 2]);
    wait_until("the limit is its own", || {
        limit.state() == Ok("its own limit of reads now: 7 s".to_owned())
    });
    assert!(!limit.gate().enter().must_wait, "another one need not wait");
    drop(pass);
    limit.stop();
    assert_eq!(limit.left_behind(FAREWELL), None);
    assert!(!drive.has_record());
    // What comes after the end is answered, too.
    let (tells, told) = mpsc::channel();
    limit.wait(Waiting::new(move |recovered| tells.send(recovered).unwrap()));
    assert_eq!(told.recv(), Ok(Recovered::Perhaps));
}

#[test]
fn limit_that_cannot_be_put_back_is_named_and_its_record_stays() {
    let drive = MadeUp::new(Manner::Sticks);
    let limit = drive.short_limit();
    limit.allow(false);
    let not_back =
        "its own limit of reads, 7 s, is not back yet: the drive answered with sense Bh/00h/00h";
    wait_until("the limit is not back", || limit.state() == Err(not_back.to_owned()));
    let (tells, told) = mpsc::channel();
    limit.wait(Waiting::new(move |recovered| tells.send(recovered).unwrap()));
    assert_eq!(told.recv(), Ok(Recovered::Perhaps));
    limit.stop();
    let left = limit.left_behind(FAREWELL);
    assert_eq!(left.as_deref(), Some("the drive answered with sense Bh/00h/00h"));
    assert_eq!(limit.tell_own(), "scterc,70,70");
    assert!(drive.has_record());
    let path = Path::new("/dev/sda");
    let open = || -> Fact<Box<dyn Access>> { Ok(Box::new(drive.0.clone())) };
    let (_root, disk) = disk(&[]);
    let put_back = |open| put_back_on(path, Ok(disk.clone()), &drive.0, open);
    let expected = "/dev/sda: an earlier run has left it with a short limit of error recovery, and its own could not be put \
                    back: the drive answered with sense Bh/00h/00h (scterc,70,70 is wanted); set it by smartctl, and then \
                    remove naa.5000c500a1b2c3d4, where it is kept";
    assert_eq!(put_back(&open).unwrap_err().to_string(), expected);
    assert!(drive.has_record());
    drive.0.world().manner = Manner::Accepts;
    assert_eq!(put_back(&open), Ok(()));
    assert_eq!((drive.tenths(), drive.has_record()), ([70; 2], false));
    // Without a record nothing is asked.
    let never = || -> Fact<Box<dyn Access>> { panic!("there is no record") };
    assert_eq!(put_back(&never), Ok(()));
    assert_eq!(put_back_on(path, Err("a file".into()), &drive.0, &never), Ok(()));
}

#[test]
fn limits_are_changed_only_of_whole_sata_disks_that_have_them_and_none_that_is_short() {
    let drive = MadeUp::new(Manner::Accepts);
    let find = |files: &[(&str, &str)], is_part| {
        let (_root, mut disk) = disk(files);
        disk.is_part = is_part;
        DriveLimit::start(&disk, drive.means()).map(|_| ())
    };
    assert_eq!(find(&[], false), Ok(()));
    let refused = |files: &[(&str, &str)], is_part, why: &str| {
        assert_eq!(find(files, is_part), Err(why.to_owned()));
    };
    let sas = [("device/vendor", "WDC"), ("device/scsi_level", "7")];
    refused(&sas, false, "only SATA drives have a limit of error recovery");
    refused(&[], true, "it is a part of a disk, and the limit would hold for all of it");
    let nameless = [("device/wwid", "")];
    refused(&nameless, false, "the kernel has no lasting name for it (device/wwid)");
    drive.0.world().read = 10;
    refused(&[], false, "its own limit of reads is 1 s already");
}

#[test]
fn ways_to_fail_early_read_back_as_they_are_printed() {
    for (ways, name) in FastFail::ALL {
        assert_eq!((ways.to_string().as_str(), name.parse()), (name, Ok(ways)));
    }
    let error = "all".parse::<FastFail>().unwrap_err().to_string();
    assert_eq!(error, "'all' is not a fast-fail method: expected command or erc");
}
