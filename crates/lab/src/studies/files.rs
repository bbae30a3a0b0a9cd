//! What studies of files run on: a filesystem on one modelled drive, and a workload over it.

use levelhead_drive::{Ecc, Faults, Profile, Rotations};
use levelhead_fs::Update;
use levelhead_fs::format::ladder::Ladder;
use levelhead_planner::Code;
use levelhead_planner::code::{Goal, least_redundant, lengths};
use levelhead_planner::system::forced_failure_rate;
use levelhead_stats::Streams;
use levelhead_trace::FileWorkload;
use levelhead_units::{Ratio, Sectors};

use super::plan::{Cell, Measured};
use crate::mounted::{Kinds, Mounted, MountedSettings, Room, SyncEnds};

/// What all studies of files say of their bed.
pub(super) const BED: &str = "our filesystem on one whole nearline-2tb in virtual time, its cache off, SPTF; the same operations and \
                              the same drive with and without the code";

/// Probability that a group cannot be computed (`p_s` of `[LEC17]`).
const TARGET: f64 = 1e-6;

/// Data sectors of a coding extent of a filesystem without a code.
const UNCODED: u16 = 1_000;

/// Sectors of a block of kind B: pages and what is complementary to them. A group has whole ones.
const BLOCK: u64 = 16;

/// The code of this length with the least redundancy with which a group is lost no more often than [`TARGET`] says.
pub(super) fn least(length: u64, failure_rate: f64) -> Result<Code, String> {
    least_redundant(length, Goal { failure_rate, target: TARGET })
        .ok_or_else(|| format!("no code of length {length} at {failure_rate:e}"))
}

/// How many redundant sectors groups of kind B have on a drive whose sectors fail with this probability without zeroes at their ends.
fn forced(failure_rate: f64) -> Result<Ladder, String> {
    let failure_rate = forced_failure_rate(failure_rate);
    let Code { redundant, data } = least(255, failure_rate)?;
    let code = Code { redundant: redundant.max(1), data: data / BLOCK * BLOCK };
    Redundancy::ByLength(code, failure_rate).ladder()
}

/// How many redundant sectors groups have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Redundancy {
    /// None: what the others are compared with.
    None,
    /// As many for each group, as in the paper.
    Fixed(Code),
    /// Fewer for shorter groups, for sectors that fail with this probability.
    ByLength(Code, f64),
}

impl Redundancy {
    fn ladder(self) -> Result<Ladder, String> {
        let ladder = match self {
            Self::None => Ladder::without_redundancy(UNCODED),
            Self::Fixed(code) => Ladder::fixed(code.data as u16, code.redundant as u8),
            Self::ByLength(code, failure_rate) => {
                let rungs = lengths(code, Goal { failure_rate, target: TARGET });
                Ladder::new(&rungs.iter().map(|&data| data as u16).collect::<Vec<_>>())
            }
        };
        ladder.ok_or_else(|| format!("a filesystem has no code like {self:?}"))
    }
}

/// A filesystem and its drive.
#[derive(Clone, Copy, Debug)]
pub(super) struct FilesBed {
    pub(super) redundancy: Redundancy,
    /// Of which kind files are. With [`Kinds::Auto`] there are no forced zeroes.
    pub(super) kinds: Kinds,
    /// Probability that a sector's first pass fails, unless it ends in zeroes.
    pub(super) failure_rate: f64,
    /// How many revolutions a retry takes.
    pub(super) rotations: Rotations,
    /// The retry table of the drive's own code, in the place of both.
    pub(super) ecc: Option<Ecc>,
    /// What is free of the disk; nothing for all of it.
    pub(super) room: Option<Room>,
    /// How redundancy follows data that changes.
    pub(super) update: Update,
    /// Memory of the filesystem; nothing for its usual one.
    pub(super) cache: Option<Sectors>,
    /// When a sync ends.
    pub(super) sync: SyncEnds,
}

impl FilesBed {
    /// Without a code on a drive that never fails.
    pub(super) const PERFECT: Self = Self {
        redundancy: Redundancy::None,
        kinds: Kinds::Auto,
        failure_rate: 0.0,
        rotations: Rotations::Fixed(3),
        ecc: None,
        room: None,
        update: Update::Sooner,
        cache: None,
        sync: SyncEnds::Durable,
    };

    /// The code that leaves 1e-6 of the groups of this length, and no forced zeroes.
    pub(super) fn coded(length: u64, failure_rate: f64) -> Result<Self, String> {
        let redundancy = Redundancy::ByLength(least(length, failure_rate)?, failure_rate);
        Ok(Self { redundancy, failure_rate, ..Self::PERFECT })
    }

    /// Files of these kinds, with the code of 255 sectors that leaves 1e-6 of the groups under the zeroes of kind B.
    pub(super) fn forced(kinds: Kinds, failure_rate: f64) -> Result<Self, String> {
        Ok(Self { kinds, ..Self::coded(255, failure_rate)? })
    }

    pub(super) fn mount(&self, seed: u64) -> Result<Mounted, String> {
        let profile = Profile::shipped("nearline-2tb").ok_or("no drive nearline-2tb")?;
        let settings = MountedSettings::new(profile, self.redundancy.ladder()?, seed);
        let Self { kinds, update, sync, room, .. } = *self;
        let cache = self.cache.unwrap_or(settings.cache);
        let forced = match kinds {
            Kinds::Auto => None,
            Kinds::ByHabit | Kinds::All(_) => Some(forced(self.failure_rate)?),
        };
        let settings = MountedSettings { cache, update, sync, forced, kinds, room, ..settings };
        Mounted::new(settings).map_err(|error| error.to_string())
    }

    /// The drive fails from now on as it should.
    pub(super) fn begin_to_fail(&self, mounted: &mut Mounted) -> Result<(), String> {
        let retry_rate = Ratio::new(self.failure_rate).ok_or("the rate is not a probability")?;
        let faults = match self.ecc {
            Some(_) => Faults { ecc: self.ecc, ..Faults::NONE },
            None => Faults { retry_rate, rotations: self.rotations, ..Faults::NONE },
        };
        mounted.set_faults(faults).map_err(|error| error.to_string())
    }

    /// A cell: a workload's measured stages, in milliseconds as `time`.
    pub(super) fn cell(&self, name: impl Into<String>, workload: FileWorkload) -> Cell {
        let bed = *self;
        Cell::new(name, move |seed| bed.measure(&workload, seed))
    }

    fn measure(&self, workload: &FileWorkload, seed: u64) -> Result<Measured, String> {
        Ok(Measured::default().with("time", self.time(workload, seed)?.safe))
    }

    /// How long a workload's measured stages take.
    pub(super) fn time(&self, workload: &FileWorkload, seed: u64) -> Result<Times, String> {
        let mut mounted = self.mount(seed)?;
        let mut times = Times { done: 0.0, safe: 0.0 };
        let mut is_failing = false;
        for stage in workload.stages(Streams::new(seed)) {
            if stage.is_measured && !is_failing {
                self.begin_to_fail(&mut mounted)?;
                is_failing = true;
            }
            let took = mounted.carry_out(&stage).map_err(|error| error.to_string())?;
            if stage.is_measured {
                times.safe += took.all.as_millis_f64();
                times.done += took.ends.iter().max().map_or(0.0, |end| end.as_millis_f64());
            }
        }
        Ok(times)
    }
}

/// How long a workload takes, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// Until its last step has ended: what it wrote may still be in memory.
    pub(super) done: f64,
    /// Until what it wrote is safe and redundant.
    pub(super) safe: f64,
}
