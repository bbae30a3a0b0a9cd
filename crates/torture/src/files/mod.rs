//! The crash swarm of the filesystem: names and data change, many requests at a time, the power fails at every moment, and then
//! everything is read.
//!
//! ```text
//!   operations --> [ fs ] --> disk         at every command boundary: an image
//!                                                    |
//!    a cache that loses, keeps, reorders, tears --> mount, perhaps cut off again in the middle of it
//!                                                    |
//!                          walk: what was synced is there, names are those of one moment, pages old or new
//!                                                    |
//!                 a few more operations, unmount, check --> damage as much as is promised to be repaired --> walk: the same
//! ```
//!
//! A seed decides everything.

mod asked;
mod asking;
mod check;
mod content;
mod disk;
mod life;
mod machine;
mod model;
mod names;
mod op;
mod sequences;
mod shrink;
mod survey;

use levelhead_fs::rules::Rules;

use self::life::Script;
pub use self::sequences::sequences;
use crate::Broken;

/// How often what happens: once in this number of occasions, and never for 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Odds {
    /// An image at a boundary between commands.
    pub image: u64,
    /// A mount after a cut is cut off again.
    pub again: u64,
    /// Life goes on after a cut, with more images.
    pub goes_on: u64,
    /// A disk that was left in order is damaged.
    pub damage: u64,
    /// A disk that was cut off is damaged where it was not being written.
    pub damage_at_once: u64,
    /// A sector needs retries.
    pub retries: u64,
    /// A disk that was left in order is mounted once more, and life goes on with as many images.
    pub stops: u64,
    /// A sector of the disk cannot be written.
    pub unwritable: u64,
}

/// What becomes of what was not safe when the power failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fates {
    /// One of all at random, for each image.
    One,
    /// Every one of them: an image each.
    All,
}

/// What is made and changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// Small files with short codes.
    Plain,
    /// The drive makes use of zeroes, and files are of all kinds.
    OfKinds,
    /// Files with a code of 246 sectors on a disk that is nearly full from the beginning: what finds no room fails.
    OnFullDisk,
}

/// What runs are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aim {
    /// The most operations.
    pub operations: u64,
    /// How often what happens.
    pub odds: Odds,
    /// What becomes of what was not safe.
    pub fates: Fates,
    /// What is made and changed.
    pub files: Files,
    /// What keeps files safe.
    pub rules: Rules,
}

impl Aim {
    /// Short histories with images at many boundaries.
    pub const DEFAULT: Self = Self {
        operations: 40,
        odds: Odds {
            image: 6,
            again: 4,
            goes_on: 16,
            damage: 3,
            damage_at_once: 4,
            retries: 300,
            stops: 0,
            unwritable: 0,
        },
        fates: Fates::One,
        files: Files::Plain,
        rules: Rules::ALL,
    };

    /// Very short ones between mounts, with images at every boundary of these, of the clean ends, and of the next mounts.
    pub const STOPS: Self = Self {
        operations: 12,
        odds: Odds {
            image: 1,
            again: 8,
            goes_on: 0,
            damage: 4,
            damage_at_once: 4,
            retries: 300,
            stops: 1,
            unwritable: 0,
        },
        ..Self::DEFAULT
    };

    /// Histories of files of all kinds, each life with another one for its new files.
    pub const KINDS: Self = Self { files: Files::OfKinds, ..Self::DEFAULT };

    /// Histories on a nearly full disk, with long codes. Each image has thousands of pages, so there are fewer.
    pub const FULL: Self = Self {
        operations: 60,
        odds: Odds { image: 60, ..Self::DEFAULT.odds },
        files: Files::OnFullDisk,
        ..Self::DEFAULT
    };

    /// Histories on disks of which some sectors cannot be written, with codes and copies that do without these.
    pub const UNWRITABLE: Self = Self {
        odds: Odds { damage: 0, damage_at_once: 0, unwritable: 400, ..Self::DEFAULT.odds },
        ..Self::DEFAULT
    };

    /// All of them, and their names.
    pub const ALL: [(&str, Self); 5] = [
        ("histories", Self::DEFAULT),
        ("stops", Self::STOPS),
        ("kinds", Self::KINDS),
        ("full", Self::FULL),
        ("unwritable", Self::UNWRITABLE),
    ];
}

/// What runs have come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Crash images that were mounted and walked over.
    pub images: u64,
    /// Mounts that were cut off again.
    pub again: u64,
    /// Images after which life went on.
    pub went_on: u64,
    /// Sectors that were damaged on purpose.
    pub damaged: u64,
    /// Images with such sectors before the mount.
    pub damaged_at_once: u64,
    /// Operations that were sent.
    pub operations: u64,
    /// Disks that were left in order.
    pub unmounts: u64,
    /// Those of them that were mounted once more for a life with images.
    pub stops: u64,
}

/// One run: a filesystem, a history, and images of it at boundaries between its commands.
pub fn run(seed: u64, aim: &Aim, tally: &mut Tally) -> Result<(), Broken> {
    let mut script = Script::draw(seed, aim);
    script.run(tally).map_err(|how| Broken { seed, what: script.make.to_string(), how })
}

/// The same, and where a promise is broken, the shortest history found that breaks one, for people.
pub fn shrink(seed: u64, aim: &Aim) -> Option<String> {
    shrink::shrink(Script::draw(seed, aim))
}
