//! Arrays with checksums over one drive that misbehaves: it returns other bytes than it stored, or loses, tears or misdirects
//! a write that it reports as complete.
//!
//! ```text
//!   session --> restart, or power cut --> session .. --> read all --> scrub --> read all --> compare the drives
//!      |                                                                                         |
//!      +-- in one of them a sector rots, or a write command is not stored                        v
//!                                                                    restart, read all, lose drives, read all
//! ```
//!
//! With one such fault, no read returns other bytes than the crash swarm's promise allows, none fails, nothing is found on a
//! healthy drive, and after the scrub every drive holds what it should. [`Aim::DROPPED`] is beyond that promise: what it returns
//! is counted. A seed decides everything.

mod check;
mod life;

use levelhead_array::Spec;
use levelhead_array::metadata::Logs;
use levelhead_stats::Streams;

use self::life::Life;
use crate::Broken;
use crate::crash::LAYOUTS;
pub use crate::crash::faulty::Way;
use crate::crash::make::Make;
use crate::disk::Manners;

/// What a drive does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// One sector changes at rest.
    Rot,
    /// Several sectors of one drive change at rest, or as many of each codeword as it has redundant ones.
    Rots,
    /// One write command is not stored as it was sent.
    Write(Way),
    /// A run of 2 to 7 write commands is not stored.
    Dropped,
}

/// What a run is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aim {
    /// What a drive does.
    pub fault: Fault,
    /// Whether the power fails after it, before everything is read.
    pub has_cuts: bool,
    /// Whether sectors have checksums.
    pub has_checksums: bool,
    /// Whether a drive is lost from the beginning, where the layout survives that of two.
    pub is_degraded: bool,
}

impl Aim {
    /// Healthy drives.
    pub const GOOD: Self = Self::of(Fault::None);
    /// Healthy drives and power cuts.
    pub const GOOD_CUTS: Self = Self::GOOD.with_cuts();
    /// A sector that changes at rest.
    pub const ROT: Self = Self::of(Fault::Rot);
    /// The same before a power cut.
    pub const ROT_CUTS: Self = Self::ROT.with_cuts();
    /// Several sectors that change at rest.
    pub const ROTS: Self = Self::of(Fault::Rots);
    /// A write that is lost.
    pub const LOST: Self = Self::of(Fault::Write(Way::Lost));
    /// The same before a power cut.
    pub const LOST_CUTS: Self = Self::LOST.with_cuts();
    /// A write that lands elsewhere.
    pub const MISDIRECTED: Self = Self::of(Fault::Write(Way::Misdirected));
    /// The same before a power cut.
    pub const MISDIRECTED_CUTS: Self = Self::MISDIRECTED.with_cuts();
    /// A write of which a part is stored.
    pub const TORN: Self = Self::of(Fault::Write(Way::Torn));
    /// The same before a power cut.
    pub const TORN_CUTS: Self = Self::TORN.with_cuts();
    /// A sector that changes at rest while another drive is missing.
    pub const ROT_DEGRADED: Self = Self { is_degraded: true, ..Self::ROT };
    /// A write that is lost while another drive is missing.
    pub const LOST_DEGRADED: Self = Self { is_degraded: true, ..Self::LOST };
    /// Several writes in a row that are lost, which the array need not survive.
    pub const DROPPED: Self = Self::of(Fault::Dropped);

    /// Each aim that the array must survive, and its name.
    pub const ALL: [(&'static str, Self); 10] = [
        ("good", Self::GOOD),
        ("good-cuts", Self::GOOD_CUTS),
        ("rot", Self::ROT),
        ("rots", Self::ROTS),
        ("lost", Self::LOST),
        ("misdirected", Self::MISDIRECTED),
        ("torn", Self::TORN),
        ("rot-degraded", Self::ROT_DEGRADED),
        ("lost-degraded", Self::LOST_DEGRADED),
        ("dropped", Self::DROPPED),
    ];

    /// Aims at faults that the array does not survive yet, and their names: tests assert that these are found.
    pub const KNOWN: [(&'static str, Self); 4] = [
        ("rot-cuts", Self::ROT_CUTS),
        ("lost-cuts", Self::LOST_CUTS),
        ("misdirected-cuts", Self::MISDIRECTED_CUTS),
        ("torn-cuts", Self::TORN_CUTS),
    ];

    const fn of(fault: Fault) -> Self {
        Self { fault, has_cuts: false, has_checksums: true, is_degraded: false }
    }

    const fn with_cuts(self) -> Self {
        Self { has_cuts: true, ..self }
    }
}

/// What runs have come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Lives.
    pub runs: u64,
    /// Those in which a drive has misbehaved.
    pub faulty: u64,
    /// Clean stops.
    pub stops: u64,
    /// Power cuts.
    pub cuts: u64,
    /// Writes and reads of clients.
    pub requests: u64,
    /// Reports of sectors with another checksum than they should have.
    pub corrupt: u64,
    /// Reports of repairs.
    pub repaired: u64,
    /// Reports of codewords that do not match.
    pub unlocated: u64,
    /// Lives in which something was found corrupt after a scrub and a restart.
    pub late: u64,
    /// Lives in which the array has failed a drive.
    pub failed: u64,
    /// Lives in which a read returned wrong data before the last scrub, where that is counted.
    pub wrong_before: u64,
    /// The same after it.
    pub wrong_after: u64,
    /// Lives in which a request failed, where that is counted.
    pub unread: u64,
}

/// One run: an array, and a drive that misbehaves once.
pub fn run(seed: u64, aim: Aim, tally: &mut Tally) -> Result<(), Broken> {
    let mut rng = Streams::new(seed).stream("rot");
    let specs = LAYOUTS.map(|text| text.parse::<Spec>().expect("the layouts are good"));
    let least = if aim.is_degraded { 2 } else { 1 };
    let specs: Vec<Spec> = specs.into_iter().filter(|spec| spec.redundant() >= least).collect();
    let spec = specs[rng.below(specs.len() as u64) as usize];
    let spec = match aim.has_checksums {
        true => spec.with_checksums().expect("all of them are redundant"),
        false => spec,
    };
    let codewords = 2 * spec.width() as u64 * (1 + spec.expansion() as u64);
    let more = if rng.below(2) == 0 { 12 } else { 120 };
    let piece = 10 + codewords + rng.below(more);
    // One group of each drive, or several.
    let stripes = if rng.below(2) == 0 { 1 + rng.below(8) } else { 60 + rng.below(90) };
    let logs = if rng.below(2) == 0 { Logs::All } else { Logs::Parts };
    let make =
        Make { spec, stripes, synced: u64::MAX, piece, logs, manners: Manners::Honest, listed: 0 };
    let what = format!("{spec}, {stripes} stripes, pieces of {piece}, logs {logs:?}");
    tally.runs += 1;
    let mut life = match Life::new(make, aim, rng, tally) {
        Ok(life) => life,
        Err(how) => return Err(Broken { seed, what, how }),
    };
    let ended = life.all();
    let what = format!("{what}, {}", life.in_words());
    life.add_up();
    ended.map_err(|how| Broken { seed, what, how })
}
