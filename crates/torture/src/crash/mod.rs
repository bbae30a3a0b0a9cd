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

pub mod aim;
pub(crate) mod faulty;
pub mod image;
mod lies;
mod life;
pub mod machine;
pub mod make;
pub mod met;
pub mod promise;

use levelhead_array::Spec;
use levelhead_array::metadata::Logs;
use levelhead_stats::Streams;
use levelhead_units::DriveSet;

pub use self::aim::{Aim, Faults, Odds, Planted};
use self::life::Run;
use self::make::Make;
pub use self::met::Met;
use crate::Broken;

pub(crate) const LAYOUTS: [&str; 11] = [
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

/// What runs have come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Crash images that were started and read.
    pub images: u64,
    /// Those of them that were cut off again while they recovered.
    pub again: u64,
    /// Disks that did not come back after a crash.
    pub without: u64,
    /// Images with a disk that was lost and came back before that was recorded.
    pub back: u64,
    /// Those of them with a sector of a journal that could not be read.
    pub unreadable: u64,
    /// The same of a sector that held data or redundancy.
    pub bad_places: u64,
    /// Disks that were lost while the array served or recovered.
    pub lost: u64,
    /// Disks with which something was wrong for a time.
    pub troubled: u64,
    /// Writes that failed.
    pub failed: u64,
    /// Disks that sat out for a time.
    pub aside: u64,
    /// Announced writes that were logged after all, because a disk sat out or hung.
    pub logged_again: u64,
    /// Reads of what was written.
    pub read_back: u64,
    /// Writes that disks had not stored and that were found when they were read back.
    pub flawed: u64,
    /// Images of arrays some of whose disks had not stored something that was not read back yet.
    pub doubtful: u64,
    /// Those of them in which a sector was not what was written there last after the recovery.
    pub unstored: u64,
    /// Disks that were taken back to be caught up.
    pub returned: u64,
    /// Images after which all of them were.
    pub caught_up: u64,
    /// Disks that new ones were given a copy of.
    pub copies: u64,
    /// Those of them whose places the new ones have.
    pub seated: u64,
    /// Images with a disk that was filled in part, as its metadata says.
    pub part_filled: u64,
    /// Clean stops.
    pub stops: u64,
    /// Sectors that arrays said they could not bring back.
    pub given_up: u64,
    /// Sectors that were being replaced and are damaged.
    pub damaged: u64,
    /// Arrays that began with a list of damaged sectors.
    pub listed: u64,
    /// Scrubs that were started.
    pub scrubs: u64,
    /// Times that the server stood still.
    pub standstills: u64,
    /// Connections that broke.
    pub disconnected: u64,
    /// Writes of earlier connections and servers that landed.
    pub landed: u64,
    /// Members that were in an earlier state of their own.
    pub older: u64,
    /// Copies of members in the places of others.
    pub twins: u64,
    /// Images with more faults than the layout survives.
    pub beyond: u64,
    /// Those of them that were not started.
    pub refused: u64,
    /// Lives with a second server.
    pub second: u64,
    /// Arrays that an operator had to make go on, because redundancy was not valid for good.
    pub doubts: u64,
    /// Transitions, and faults in phases.
    pub met: Met,
}

/// One run: an array, a script, and images of it at its effect boundaries.
pub fn run(seed: u64, aim: Aim, tally: &mut Tally) -> Result<(), Broken> {
    let mut rng = Streams::new(seed).stream("crash");
    let layouts: Vec<&str> = LAYOUTS
        .into_iter()
        .filter(|text| {
            let spec: Spec = text.parse().expect("the layouts are good");
            spec.redundant() >= aim.redundant_min && (spec.is_mirror() || !aim.is_mirror)
        })
        .collect();
    let text = layouts[rng.below(layouts.len() as u64) as usize];
    let spec: Spec = text.parse().expect("the layouts are good");
    let journals = if aim.is_apart { spec.redundant() as u32 + 1 } else { 0 };
    let spec = spec.with_journals(journals).expect("it is one more than are redundant");
    let spec = match aim.has_checksums {
        true => spec.with_checksums().expect("all of them are redundant"),
        false => spec,
    };
    // Two marks, and room for the records of two codewords.
    let codewords = 2 * spec.width() as u64 * (1 + spec.expansion() as u64);
    let least = if aim.is_apart { 2 + codewords } else { 10 };
    let piece = if aim.has_journal { least + rng.below(aim.more_space) } else { 0 };
    let stripes = if aim.fills { 4 + rng.below(5) } else { 1 + rng.below(3) };
    let is_unsynced = aim.odds.unsynced > 0 && rng.below(aim.odds.unsynced) == 0;
    let synced = if is_unsynced { rng.below(stripes) } else { u64::MAX };
    let is_announced = aim.odds.announced > 0 && rng.below(aim.odds.announced) == 0;
    let logs = if is_announced { Logs::Parts } else { Logs::All };
    let (manners, listed) = (aim.manners, aim.listed);
    let make = Make { spec, stripes, synced, piece, logs, manners, listed };
    let mut run = Run { rng, aim, tally, spec, remote: DriveSet::EMPTY };
    if aim.faults.has_remote() {
        run.remote = DriveSet::EMPTY.with(run.any());
    }
    run.all(make).map_err(|how| {
        let valid = if is_unsynced { format!(", {synced} valid") } else { String::new() };
        let what = format!("{spec}, {stripes} stripes{valid}, pieces of {piece}, logs {logs:?}");
        Broken { seed, what, how }
    })
}
