//! What is decided when a filesystem is mounted.

use levelhead_erasure::Choices;
use levelhead_units::{Nanos, Sectors};

use crate::format::inode::FileKind;
use crate::rules::Rules;

/// Whether anything may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MountMode {
    /// It may.
    ReadWrite,
    /// Nothing is: a filesystem that was not stopped in order is read as its journal says.
    ReadOnly,
}

/// How the redundancy of a group is computed in which some sectors have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// In the way that reads less, commands counted.
    Sooner,
    /// From all of its data.
    Scratch,
    /// From what has changed, where the old redundancy is there.
    Difference,
}

/// When the redundancy of a coding group follows its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedundancyComes {
    /// With that of others, within 30 s.
    Together,
    /// As soon as the data is durable.
    AtOnce,
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether anything may be written.
    pub mode: MountMode,
    /// Memory for what was read: half of it for metadata, half for files.
    pub cache: Sectors,
    /// What was written and not synced is safe after this time,
    pub commit_every: Nanos,
    /// and this long after the last request that changes something.
    pub commit_idle: Nanos,
    /// When redundancy follows data that is written in place.
    pub redundancy: RedundancyComes,
    /// How redundancy is brought up to date.
    pub update: Update,
    /// The kind of new files in directories of kind auto.
    pub kind: FileKind,
    /// How redundancy is computed: into the cache, because a checksum is made of it next.
    pub choices: Choices,
    /// What keeps files safe through a power cut: all of it, but for tests that must notice what is left out.
    pub rules: Rules,
}

impl Settings {
    /// To be written, with 256 MiB, safe after 5 s, or 200 ms after the last change.
    pub fn new(choices: impl Into<Choices>) -> Self {
        Self {
            mode: MountMode::ReadWrite,
            cache: Sectors::new(1 << 16),
            commit_every: Nanos::from_secs(5),
            commit_idle: Nanos::from_millis(200),
            redundancy: RedundancyComes::Together,
            update: Update::Sooner,
            kind: FileKind::Auto,
            choices: choices.into().cached(),
            rules: Rules::ALL,
        }
    }
}
