//! Crash swarms: a power cut at every moment, every mishap of a disk's cache, every survivable loss before, during
//! and after, and then everything is read.
//!
//! ```text
//!   writes --> [ array ] --> disks          at every effect boundary: an image
//!                                                     |
//!    torn writes, caches that lose and reorder --> start, with disks missing or a sector unreadable
//!                                                     |  perhaps cut off again, in the middle of it
//!                                                     v
//!                        read everything: whole, old or new as promised, and the same from then on
//!                                                     |
//!                         lose more disks, read again: the same, so redundancy was right
//! ```
//!
//! The promise is that of `docs/array.md`: a write that was answered is there after a crash; one that was not is there
//! whole or not at all, sector by sector. A seed decides everything.

pub mod disk;
pub mod machine;
pub mod promise;

use std::fmt;

use levelhead_array::journal::rules::Rules;
use levelhead_array::{Layout, Spec};
use levelhead_stats::{Rng, Streams};
use levelhead_units::{DriveIdx, DriveSet, Extent, Lba, Sectors};

use self::disk::Manners;
use self::machine::{Image, Machine, Make};
use self::promise::Promise;

const LAYOUTS: [&str; 11] = [
    "raid4:2+1,chunk=4KiB",
    "raid5:3+1,chunk=4KiB",
    "raid5:2+1,chunk=8KiB",
    "raid6:2+2,chunk=4KiB",
    "raid6:3+2,chunk=8KiB",
    "eraid:2+1,e=2,chunk=8KiB",
    "eraid:2+2,e=2,chunk=8KiB",
    "raid1:2,chunk=8KiB",
    "raid1:3,chunk=4KiB",
    "raid10:4,chunk=4KiB",
    "raid10:3,chunk=8KiB",
];

/// How deep crashes inside recoveries go.
const DEPTH_MAX: u32 = 3;

/// What a run is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aim {
    /// What its disks do with flushes.
    pub manners: Manners,
    /// Which rules the array keeps.
    pub rules: Rules,
    /// Whether the array keeps a journal.
    pub has_journal: bool,
    /// The most writes of one life.
    pub writes: u64,
    /// Of how many effect boundaries one is made an image of.
    pub one_of: u64,
    /// Of how many images one goes on with more writes once it is read.
    pub goes_on: u64,
    /// The fewest redundant disks of the arrays.
    pub redundant_min: usize,
    /// A piece of a journal has from 10 sectors to this many more.
    pub more_space: u64,
}

impl Aim {
    /// Honest disks, a journal, an image at every boundary of up to three writes.
    pub const DEFAULT: Self = Self {
        manners: Manners::Honest,
        rules: Rules::ALL,
        has_journal: true,
        writes: 3,
        one_of: 1,
        goes_on: 16,
        redundant_min: 1,
        more_space: 24,
    };

    /// Many writes, so that the space of the journal is used again, and images of some moments only.
    pub const LONG: Self =
        Self { writes: 60, one_of: 12, goes_on: 3, more_space: 3, ..Self::DEFAULT };
}

/// What runs have come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Crash images that were started and read.
    pub images: u64,
    /// Those of them that were cut off again while they recovered.
    pub again: u64,
    /// Those of them that had a disk less than before.
    pub without: u64,
    /// Those of them with a sector of a journal that could not be read.
    pub unreadable: u64,
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The seed of the run.
    pub seed: u64,
    /// The array.
    pub what: String,
    /// What was wrong.
    pub how: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}, {}: {}", self.seed, self.what, self.how)
    }
}

/// One run: an array, a script, and images of it at its effect boundaries.
pub fn run(seed: u64, aim: Aim, tally: &mut Tally) -> Result<(), Broken> {
    let mut rng = Streams::new(seed).stream("crash");
    let layouts: Vec<&str> = LAYOUTS
        .into_iter()
        .filter(|text| {
            let spec: Spec = text.parse().expect("the layouts are good");
            spec.redundant() >= aim.redundant_min
        })
        .collect();
    let spec = layouts[rng.below(layouts.len() as u64) as usize];
    let piece = if aim.has_journal { 10 + rng.below(aim.more_space) } else { 0 };
    let make = Make {
        spec: spec.parse().expect("the layouts are good"),
        stripes: 1 + rng.below(3),
        piece,
        manners: aim.manners,
    };
    let mut run = Run { rng, aim, tally, spec: make.spec };
    run.all(make).map_err(|how| Broken {
        seed,
        what: format!("{spec}, {} stripes, pieces of {piece}", make.stripes),
        how,
    })
}

struct Run<'a> {
    rng: Rng,
    aim: Aim,
    tally: &'a mut Tally,
    spec: Spec,
}

impl Run<'_> {
    fn all(&mut self, make: Make) -> Result<(), String> {
        let disks = make.disks();
        let size = self.size_of(&make);
        let machine = Machine::start(
            disks,
            Promise::new(size),
            DriveSet::EMPTY,
            self.aim.rules,
            self.rng.bits(),
        )?;
        self.life(machine, 0)
    }

    fn size_of(&self, make: &Make) -> u64 {
        Layout::new(make.spec, make.spec.chunk() * make.stripes).size().get()
    }

    /// Some writes, with an image at the boundaries between their effects.
    fn life(&mut self, mut machine: Machine, depth: u32) -> Result<(), String> {
        let mut writes = 1 + self.rng.below(self.aim.writes);
        let mut losses = self.rng.below(3) == 0;
        loop {
            if writes > 0 && machine.outstanding() < 3 && self.rng.below(4) == 0 {
                writes -= 1;
                let extent = self.extent(&machine);
                machine.write(extent);
            }
            if losses && self.rng.below(30) == 0 {
                losses = false;
                self.lose(&mut machine);
            }
            let is_over = !machine.step(&mut self.rng) && writes == 0;
            if is_over {
                break;
            }
            if self.rng.below(self.aim.one_of) == 0 {
                let image = machine.image();
                self.crash(image, DriveSet::EMPTY, depth)?;
            }
        }
        if machine.failed > 0 {
            return Err(format!("{} writes failed", machine.failed));
        }
        if machine.outstanding() > 0 {
            return Err(format!("{} requests are never answered", machine.outstanding()));
        }
        machine.verify(&mut self.rng)
    }

    /// What a write is of: anything from a sector to all, and often whole stripes.
    fn extent(&mut self, machine: &Machine) -> Extent {
        let size = machine.array.size().get();
        let spec = machine.array.layout().spec();
        let stripe = spec.chunk().get() * spec.data() as u64;
        let (lba, sectors) = match self.rng.below(4) {
            0 => (self.rng.below(size / stripe) * stripe, stripe),
            1 => {
                let lba = self.rng.below(size);
                (lba, 1 + self.rng.below(size - lba))
            }
            _ => (self.rng.below(size), 1),
        };
        Extent::new(Lba::new(lba), Sectors::new(sectors))
    }

    /// Takes a disk away if the layout survives that.
    fn lose(&mut self, machine: &mut Machine) {
        let lost = machine.array.lost();
        if !self.can_lose_one(lost) {
            return;
        }
        let drive = self.any();
        if self.can_lose(lost, drive) {
            machine.lose(drive);
        }
    }

    fn any(&mut self) -> DriveIdx {
        DriveIdx::from_usize(self.rng.below(self.spec.drives() as u64) as usize)
    }

    /// Whether the layout survives the loss of this disk besides the others.
    fn can_lose(&self, gone: DriveSet, drive: DriveIdx) -> bool {
        !gone.contains(drive) && self.spec.survives(gone.with(drive))
    }

    fn can_lose_one(&self, gone: DriveSet) -> bool {
        let all = DriveSet::first(self.spec.drives() as u8);
        all.iter().any(|drive| self.can_lose(gone, drive))
    }

    /// The power fails, and the array is started again, perhaps several times. Disks with `faults` count like lost
    /// ones.
    fn crash(&mut self, mut image: Image, faults: DriveSet, depth: u32) -> Result<(), String> {
        image.crash(&mut self.rng);
        self.tally.images += 1;
        let (mut left_out, mut faults) = (image.lost, faults);
        while self.can_lose_one(left_out.or(faults)) && self.rng.below(3) == 0 {
            let drive = self.any();
            if self.spec.survives(left_out.or(faults).with(drive)) {
                left_out = left_out.with(drive);
                self.tally.without += 1;
            }
        }
        if self.can_lose_one(left_out.or(faults)) && self.rng.below(3) == 0 {
            let drive = self.any();
            if self.can_lose(left_out.or(faults), drive) && self.spoil(&mut image, drive) {
                faults = faults.with(drive);
            }
        }
        let Image { disks, promise, .. } = image;
        let mut machine =
            Machine::start(disks, promise, left_out, self.aim.rules, self.rng.bits())?;
        if depth < DEPTH_MAX && self.rng.below(3) == 0 {
            for _ in 0..self.rng.below(60) {
                machine.step(&mut self.rng);
            }
            self.tally.again += 1;
            let mut again = machine.image();
            again.lost = again.lost.or(left_out);
            return self.crash(again, faults, depth + 1);
        }
        machine.verify(&mut self.rng)?;
        if depth < DEPTH_MAX && self.rng.below(self.aim.goes_on) == 0 {
            let aim = Aim { one_of: 8 * self.aim.one_of, ..self.aim };
            let rng = Streams::new(self.rng.bits()).stream("crash/next");
            let mut next = Run { rng, aim, tally: self.tally, spec: self.spec };
            return next.life(machine, depth + 1);
        }
        while self.can_lose_one(machine.array.lost()) {
            self.lose(&mut machine);
        }
        machine.verify(&mut self.rng).map_err(|how| format!("with disks less, {how}"))
    }

    /// A sector of a journal cannot be read any more.
    fn spoil(&mut self, image: &mut Image, drive: DriveIdx) -> bool {
        let drive = drive.as_usize();
        let Some(sectors) = machine::journal_of(&image.disks[drive]) else { return false };
        let records: Vec<Lba> = sectors
            .iter()
            .flat_map(|extent| extent.iter())
            .filter(|&lba| image.disks[drive].holds_something(lba))
            .collect();
        if records.is_empty() {
            return false;
        }
        let lba = records[self.rng.below(records.len() as u64) as usize];
        image.disks[drive].bad.insert(lba);
        self.tally.unreadable += 1;
        true
    }
}
