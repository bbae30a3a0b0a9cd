//! How a filesystem stands.

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Whether it takes writes, and why not.
    pub state: State,
    /// Coding extents whose redundancy is not what it should be yet.
    pub groups_stale: u64,
    /// Sectors that were written anew because they could not be read or were wrong.
    pub sectors_repaired: u64,
    /// Sectors that could not be written: what they should hold is elsewhere, or is computed.
    pub sectors_unwritable: u64,
    /// Sectors of files that were found lost, each counted once.
    pub sectors_lost: u64,
    /// Sectors that were computed from others for a reader.
    pub sectors_decoded: u64,
    /// Sectors that the disk gave only after retries.
    pub sectors_retried: u64,
    /// Files with sectors that are lost.
    pub files_damaged: u64,
}

/// Whether a filesystem takes writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// What a crash has left is being put in order.
    #[default]
    Mounting,
    /// It does.
    Writing,
    /// It was mounted to be read.
    ReadOnly,
    /// It does not any more: the disk did not store what it should.
    Failed(Failure),
    /// Everything is being brought to its place.
    Unmounting,
}

/// What a disk did not store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A flush: nothing that was written before is safe.
    Flush,
    /// The journal, at all places that were tried, or it cannot be read.
    Journal,
    /// All copies of a sector of metadata, or the first one, which still holds an older version.
    Metadata,
    /// More sectors of a coding group than can be computed.
    Content,
    /// Nothing of a command, or hardly anything: it is gone, or has no room.
    Disk,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Mounting,
        Self::Writing,
        Self::ReadOnly,
        Self::Failed(Failure::Flush),
        Self::Failed(Failure::Journal),
        Self::Failed(Failure::Metadata),
        Self::Failed(Failure::Content),
        Self::Failed(Failure::Disk),
        Self::Unmounting,
    ];

    /// Its name, one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mounting => "mounting",
            Self::Writing => "writing",
            Self::ReadOnly => "read-only",
            Self::Failed(Failure::Flush) => "failed-flush",
            Self::Failed(Failure::Journal) => "failed-journal",
            Self::Failed(Failure::Metadata) => "failed-metadata",
            Self::Failed(Failure::Content) => "failed-content",
            Self::Failed(Failure::Disk) => "failed-disk",
            Self::Unmounting => "unmounting",
        }
    }

    /// The one with a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Whether what is written is stored, as far as that was asked for.
    pub fn is_healthy(self) -> bool {
        !matches!(self, Self::Failed(_))
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Mounting | Self::Writing | Self::ReadOnly | Self::Unmounting => {
                f.write_str(self.name())
            }
            Self::Failed(failure) => write!(f, "read-only, because {failure}"),
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Flush => "the disk failed to flush its cache",
            Self::Journal => "the journal cannot be written or read",
            Self::Metadata => "metadata cannot be written",
            Self::Content => "more sectors of a file cannot be written than its redundancy covers",
            Self::Disk => "the disk stores nothing",
        })
    }
}
