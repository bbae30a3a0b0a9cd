//! What one drive is besides its make, and what is wrong with that.

use std::fmt;
use std::str::FromStr;

use levelhead_units::Sectors;

use crate::{Faults, FaultsError};

mod retention;
mod verify;

pub(crate) use self::retention::UNIT;
pub use self::retention::{Placing, Retention};
pub use self::verify::{IdleVerify, Verify, VerifyStart};

/// The most commands a drive holds, the one in service included: the depth of SATA's queue.
pub const QUEUE_DEPTH_MAX: u32 = 32;

/// Which of the commands that wait inside a drive is next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scheduler {
    /// The oldest.
    Fcfs,
    /// The one with the shortest reach: seek or head switch, whatever the rotation costs.
    Sstf,
    /// The next one inwards; past the innermost, the outermost of all.
    Clook,
    /// The one that can begin to transfer soonest, rotation included.
    Sptf {
        /// How much of its positioning time a command may save by having waited, per nanosecond
        /// waited. 0 always takes the soonest command; studies use 0.
        age_weight: f64,
    },
}

impl Scheduler {
    /// The soonest command, however long others have waited.
    pub const SOONEST: Self = Self::Sptf { age_weight: 0.0 };
}

impl FromStr for Scheduler {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "fcfs" => Ok(Self::Fcfs),
            "sstf" => Ok(Self::Sstf),
            "clook" => Ok(Self::Clook),
            "sptf" => Ok(Self::SOONEST),
            _ => Err(format!("'{text}' is not a drive order: expected fcfs, sstf, clook or sptf")),
        }
    }
}

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fcfs => write!(f, "fcfs"),
            Self::Sstf => write!(f, "sstf"),
            Self::Clook => write!(f, "clook"),
            Self::Sptf { age_weight } => write!(f, "sptf, age weight {age_weight}"),
        }
    }
}

/// What a drive uses its memory for, if its make has any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheMode {
    /// Every command goes to the medium. Studies of arrays use this.
    Off,
    /// What was read, and what follows it on the medium, is kept for later reads.
    Read,
    /// Besides, a write that need not be durable ends when the drive has its bytes.
    WriteBack,
}

impl CacheMode {
    const ALL: [(Self, &str); 3] =
        [(Self::Off, "off"), (Self::Read, "read"), (Self::WriteBack, "write-back")];
}

impl FromStr for CacheMode {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(_, name)| *name == text);
        found.map(|(mode, _)| *mode).ok_or_else(|| {
            format!("'{text}' is not a drive cache: expected off, read or write-back")
        })
    }
}

impl fmt::Display for CacheMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(mode, _)| mode == self).map_or("", |(_, name)| name);
        write!(f, "{name}")
    }
}

/// What one drive is besides its make.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// How many commands it holds, the one in service included. From 1 to [`QUEUE_DEPTH_MAX`].
    pub queue_depth: u32,
    /// Which of them is next.
    pub scheduler: Scheduler,
    /// What it uses its memory for.
    pub cache: CacheMode,
    /// What stays in its memory; without it, what its make keeps, which is reads only. Needs a cache.
    pub retention: Option<Retention>,
    /// Whether and when it reads back what it has written.
    pub verify: Verify,
    /// How it misbehaves.
    pub faults: Faults,
    /// Use only this number of sectors, from the first on, as if the drive were partitioned: these lie on the
    /// outer cylinders, where the platter is fastest and seeks are short. A small drive is
    /// therefore a fast one; to see the make's own times, use all of it (`None`).
    pub size: Option<Sectors>,
}

impl Settings {
    /// A drive in good order that uses all of its sectors and none of its memory, reads nothing back, and takes as many
    /// commands as a drive can, of which the soonest is next.
    pub const PLAIN: Self = Self {
        queue_depth: QUEUE_DEPTH_MAX,
        scheduler: Scheduler::SOONEST,
        cache: CacheMode::Off,
        retention: None,
        verify: Verify::Off,
        faults: Faults::NONE,
        size: None,
    };

    /// Whether a drive of `size` sectors can be like that; its size then.
    pub(crate) fn check(&self, size: Sectors) -> Result<Sectors, SettingsError> {
        if !(1..=QUEUE_DEPTH_MAX).contains(&self.queue_depth) {
            return Err(SettingsError::QueueDepth { depth: self.queue_depth });
        }
        if let Scheduler::Sptf { age_weight: weight } = self.scheduler
            && !(weight.is_finite() && weight >= 0.0)
        {
            return Err(SettingsError::AgeWeight { weight });
        }
        let problem = match (self.cache, self.verify, self.retention) {
            (CacheMode::Off, Verify::Idle(_), _) => Some(MemoryProblem::VerifyWithoutCache),
            (CacheMode::Off, _, Some(_)) => Some(MemoryProblem::RetentionWithoutCache),
            (CacheMode::WriteBack, Verify::Raw, _) => Some(MemoryProblem::RawWithWriteBack),
            (_, _, _) => None,
        };
        if let Some(problem) = problem {
            return Err(SettingsError::Memory(problem));
        }
        if let Verify::Idle(IdleVerify { wait, sums, .. }) = self.verify
            && (IdleVerify::check_wait(wait).is_err() || IdleVerify::check_sums(sums).is_err())
        {
            return Err(SettingsError::Memory(MemoryProblem::VerifyBeyondLimits));
        }
        if let Some(Retention { memory, writes, .. }) = self.retention
            && [memory, writes].into_iter().any(|size| Retention::check_memory(size).is_err())
        {
            return Err(SettingsError::Memory(MemoryProblem::RetentionBeyondLimits));
        }
        self.faults.check()?;
        let wanted = self.size.unwrap_or(size);
        if wanted == Sectors::ZERO || wanted > size {
            return Err(SettingsError::Size { wanted, most: size });
        }
        Ok(wanted)
    }
}

/// What no drive can be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SettingsError {
    /// The queue's depth is out of range.
    QueueDepth {
        /// The depth asked for.
        depth: u32,
    },
    /// The weight of age is no weight.
    AgeWeight {
        /// The weight asked for.
        weight: f64,
    },
    /// The make has no memory for that.
    Cache {
        /// What it was to be used for.
        mode: CacheMode,
    },
    /// Its memory cannot be used like that.
    Memory(MemoryProblem),
    /// The drive would have no sector, or more than its make.
    Size {
        /// The size asked for.
        wanted: Sectors,
        /// The make's size.
        most: Sectors,
    },
    /// It cannot misbehave like that.
    Faults(FaultsError),
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::QueueDepth { depth } => {
                write!(f, "a drive's queue holds 1 to {QUEUE_DEPTH_MAX} commands, not {depth}")
            }
            Self::AgeWeight { weight } => {
                write!(f, "the weight of age is 0 or a positive number, not {weight}")
            }
            Self::Cache { mode } => {
                let what = match mode {
                    CacheMode::Off | CacheMode::Read => "no cache",
                    CacheMode::WriteBack => "no write-back cache",
                };
                write!(f, "a drive of this model has {what}: its profile names none")
            }
            Self::Memory(problem) => write!(f, "{problem}"),
            Self::Size { wanted, most } => write!(
                f,
                "a drive of this model has 1 to {} sectors, not {}",
                most.get(),
                wanted.get()
            ),
            Self::Faults(error) => write!(f, "{error}"),
        }
    }
}

/// What a drive cannot do with its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryProblem {
    /// Nothing keeps the writes that wait for their verification.
    VerifyWithoutCache,
    /// A policy has nothing to keep.
    RetentionWithoutCache,
    /// A write is answered before it could have been read back.
    RawWithWriteBack,
    /// The idle wait or the memory for checksums is out of range.
    VerifyBeyondLimits,
    /// The memory is out of range.
    RetentionBeyondLimits,
}

impl fmt::Display for MemoryProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::VerifyWithoutCache => {
                "verify=idle keeps writes in the drive's memory: it needs cache=read or write-back"
            }
            Self::RetentionWithoutCache => {
                "retention says what stays in the drive's memory: it needs cache=read or write-back"
            }
            Self::VerifyBeyondLimits => {
                "a drive idles at most 60s before it verifies, and keeps at most 1GiB of checksums"
            }
            Self::RetentionBeyondLimits => "a drive's memory has 16KiB to 1TiB",
            Self::RawWithWriteBack => {
                "verify=raw reads a write back before it is answered: it needs cache=off or read"
            }
        };
        write!(f, "{text}")
    }
}

impl std::error::Error for SettingsError {}

impl From<FaultsError> for SettingsError {
    fn from(error: FaultsError) -> Self {
        Self::Faults(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_caches_have_names() {
        for name in ["fcfs", "sstf", "clook"] {
            assert_eq!(name.parse::<Scheduler>().unwrap().to_string(), name);
        }
        let soonest: Scheduler = "sptf".parse().unwrap();
        assert_eq!(
            (soonest, soonest.to_string().as_str()),
            (Scheduler::SOONEST, "sptf, age weight 0")
        );
        let error = "look".parse::<Scheduler>().unwrap_err();
        assert_eq!(error, "'look' is not a drive order: expected fcfs, sstf, clook or sptf");
        for name in ["off", "read", "write-back"] {
            assert_eq!(name.parse::<CacheMode>().unwrap().to_string(), name);
        }
        let error = "on".parse::<CacheMode>().unwrap_err();
        assert_eq!(error, "'on' is not a drive cache: expected off, read or write-back");
    }

    #[test]
    fn impossible_settings_are_refused_with_the_limit() {
        let good = Settings { size: Some(Sectors::new(100)), ..Settings::PLAIN };
        let check = |settings: Settings| settings.check(Sectors::new(100));
        assert_eq!(check(good), Ok(Sectors::new(100)));
        assert_eq!(check(Settings { size: None, ..good }), Ok(Sectors::new(100)));
        for (bad, expected) in [
            (Settings { queue_depth: 0, ..good }, "a drive's queue holds 1 to 32 commands, not 0"),
            (
                Settings { queue_depth: 33, ..good },
                "a drive's queue holds 1 to 32 commands, not 33",
            ),
            (
                Settings { scheduler: Scheduler::Sptf { age_weight: -1.0 }, ..good },
                "the weight of age is 0 or a positive number, not -1",
            ),
            (
                Settings { verify: Verify::IDLE, ..good },
                "verify=idle keeps writes in the drive's memory: it needs cache=read or write-back",
            ),
            (
                Settings { retention: "stay:1MB".parse().ok(), ..good },
                "retention says what stays in the drive's memory: it needs cache=read or write-back",
            ),
            (
                Settings { verify: Verify::Raw, cache: CacheMode::WriteBack, ..good },
                "verify=raw reads a write back before it is answered: it needs cache=off or read",
            ),
            (
                Settings { size: Some(Sectors::new(101)), ..good },
                "a drive of this model has 1 to 100 sectors, not 101",
            ),
            (
                Settings { size: Some(Sectors::ZERO), ..good },
                "a drive of this model has 1 to 100 sectors, not 0",
            ),
        ] {
            assert_eq!(check(bad).unwrap_err().to_string(), expected);
        }
    }
}
