//! What may happen in a search, and how often.

use std::fmt;

use levelhead_array::journal::rules::Rules;
use levelhead_units::{DriveIdx, DriveSet};

/// What may happen, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The array.
    pub layout: &'static str,
    /// Stripes of it.
    pub stripes: u64,
    /// Clients' writes, each of the first sector, or of the first stripe if it is announced.
    pub writes: u8,
    /// Whether they are announced, and flushed.
    pub is_announced: bool,
    /// Drives that are lost while the array runs: by hand if there are no writes, because a loss of another kind is not
    /// recorded before something is written.
    pub losses: u8,
    /// Which drive may be lost; any if there is none.
    pub lost: Option<u8>,
    /// Drives that are taken back.
    pub returns: u8,
    /// Drives that are replaced by blank ones.
    pub replacements: u8,
    /// Power cuts.
    pub cuts: u8,
    /// Which rules the array keeps.
    pub rules: Rules,
}

impl Bound {
    /// Metadata alone: a drive is lost, and is back or replaced, and the power fails twice.
    const METADATA: Self = Self {
        layout: "raid5:2+1,chunk=4KiB",
        stripes: 1,
        writes: 0,
        is_announced: false,
        losses: 1,
        lost: None,
        returns: 1,
        replacements: 0,
        cuts: 2,
        rules: Rules::ALL,
    };

    /// A write, a loss and a power cut.
    const WRITE: Self = Self { writes: 1, returns: 0, cuts: 1, ..Self::METADATA };

    /// The same of a mirror.
    const MIRROR: Self = Self { layout: "raid1:2,chunk=4KiB", ..Self::WRITE };

    /// The same with checksums.
    const SUMS: Self = Self { layout: "raid1:2,chunk=4KiB,checksums", ..Self::MIRROR };

    /// What is searched, each by its name: first what ends soon.
    pub const ALL: [(&'static str, Self); 19] = [
        ("raid1", Self::MIRROR),
        ("raid1-twice", Self { writes: 2, losses: 0, ..Self::MIRROR }),
        ("raid1-again", Self { losses: 0, cuts: 2, ..Self::MIRROR }),
        ("raid1-returns", Self { writes: 2, returns: 1, ..Self::MIRROR }),
        ("raid5", Self::WRITE),
        ("metadata-lost", Self { returns: 0, ..Self::METADATA }),
        ("metadata-once", Self { cuts: 1, ..Self::METADATA }),
        ("metadata", Self { lost: Some(0), ..Self::METADATA }),
        (
            "metadata-replaced",
            Self { lost: Some(0), returns: 0, replacements: 1, ..Self::METADATA },
        ),
        ("eraid", Self { layout: "eraid:1+2,e=1,chunk=4KiB", ..Self::WRITE }),
        ("raid5-announced", Self { is_announced: true, ..Self::WRITE }),
        ("raid1-sums", Self { losses: 0, ..Self::SUMS }),
        ("raid1-sums-lost", Self::SUMS),
        ("raid1-sums-twice", Self { writes: 2, losses: 0, ..Self::SUMS }),
        ("raid1-sums-again", Self { losses: 0, cuts: 2, ..Self::SUMS }),
        ("raid5-sums", Self { layout: "raid5:2+1,chunk=4KiB,checksums", ..Self::WRITE }),
        ("raid1-sums-announced", Self { is_announced: true, losses: 0, ..Self::SUMS }),
        ("raid5-returns", Self { returns: 1, ..Self::WRITE }),
        ("raid5-again", Self { cuts: 2, ..Self::WRITE }),
    ];
}

impl Bound {
    pub(super) fn may_be_lost(&self) -> DriveSet {
        self.lost.map_or(DriveSet::first(DriveIdx::MAX), |drive| {
            DriveSet::EMPTY.with(DriveIdx::new(drive))
        })
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stripes =
            if self.stripes == 1 { "1 stripe".into() } else { format!("{} stripes", self.stripes) };
        write!(f, "{}, {stripes}", self.layout)?;
        let said = [
            (self.writes, "write"),
            (self.losses, "loss"),
            (self.returns, "return"),
            (self.replacements, "replacement"),
            (self.cuts, "power cut"),
        ];
        for (count, of) in said.into_iter().filter(|&(count, _)| count > 0) {
            let plural = if of.ends_with('s') { "es" } else { "s" };
            write!(f, ", {count} {of}{}", if count == 1 { "" } else { plural })?;
        }
        if self.is_announced {
            write!(f, " (announced and flushed)")?;
        }
        match self.lost {
            Some(drive) => write!(f, " (only of drive {drive})"),
            None => Ok(()),
        }
    }
}
