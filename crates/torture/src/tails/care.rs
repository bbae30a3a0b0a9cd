//! What is done for an array whose drives are bad: they are replaced, it is scrubbed, and in the end silent corruption is
//! planted that a scrub must find.

use std::fmt;

use levelhead_array::{Cell, ScrubState, Spec};
use levelhead_block::Memory;
use levelhead_stats::{Rng, Streams};
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Lba, Nanos, SECTOR_SIZE, Sectors};

use levelhead_lab::World;

/// The longest time that filling a drive or a scrub may take in an array of which nothing is asked.
const MENDED_MAX: Nanos = Nanos::from_secs(3_600);

/// Of how many runs one ends with silent corruption: that takes as long as the run.
const CORRUPTS: u64 = 4;

/// The most sectors that are corrupted.
const CORRUPTED_MAX: u64 = 6;

/// The share of the requests after which a scrub begins that is to run beside many of them, in percent.
const SOON: u64 = 5;

/// What is done and when: as a share of the requests, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Care {
    /// Drives that are lost by then are replaced.
    pub(super) replaces: Option<u64>,
    /// A scrub is begun.
    pub(super) scrubs: Option<u64>,
    /// Whether sectors are corrupted once all is at rest.
    pub(super) corrupts: bool,
}

/// Sectors of one drive that hold something else than was written.
#[derive(Debug)]
struct Corrupted {
    drive: DriveIdx,
    /// What they held, by where they are on the drive.
    sectors: Vec<Held>,
}

#[derive(Debug)]
struct Held {
    extent: Extent,
    bytes: Vec<u8>,
}

impl fmt::Display for Care {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = self.replaces {
            write!(f, "; lost drives replaced after {at} %")?;
        }
        if let Some(at) = self.scrubs {
            write!(f, "; scrub after {at} %")?;
        }
        if self.corrupts { f.write_str("; corrupted in the end") } else { Ok(()) }
    }
}

impl Care {
    pub(super) const NONE: Self = Self { replaces: None, scrubs: None, corrupts: false };

    pub(super) fn draw(seed: u64, scrubs_soon: bool) -> Self {
        let mut rng = Streams::new(seed).stream("tails/care");
        let mut sometimes = |odds: u64| (rng.below(odds) == 0).then(|| 20 + rng.below(60));
        let (replaces, drawn) = (sometimes(2), sometimes(3));
        let scrubs = if scrubs_soon { Some(SOON) } else { drawn };
        Self { replaces, scrubs, corrupts: rng.below(CORRUPTS) == 0 }
    }

    /// Does what is due when `share` percent of the requests have been sent.
    pub(super) fn take(&mut self, world: &mut World, now: Instant, share: u64) {
        if self.replaces.take_if(|at| *at <= share).is_some() {
            replace_lost(world, now);
        }
        if self.scrubs.take_if(|at| *at <= share).is_some() {
            world.scrub(now);
        }
    }
}

fn replace_lost(world: &mut World, now: Instant) {
    for drive in world.array().lost().iter() {
        if world.array().may_replace(drive).is_ok() {
            world.replace(now, drive).expect("it may be replaced");
        }
    }
}

/// Makes an array whole that is at rest, corrupts sectors of one drive, and has it scrubbed: what redundancy locates
/// must be repaired, all else told and left alone. Returns what it planted.
///
/// # Errors
///
/// What was wrong, in one sentence.
pub(super) fn corrupt_and_scrub(
    world: &mut World,
    seed: u64,
    bad: DriveSet,
) -> Result<u64, String> {
    replace_lost(world, world.now());
    run_until(world, "a rebuild", |world| world.array().lost().is_empty())?;
    let spec = *world.array().layout().spec();
    let mut rng = Streams::new(seed).stream("tails/corrupt");
    // What is wrong with other drives would count besides.
    let drive = bad.iter().next().expect("some drive is bad");
    let Corrupted { drive, sectors } = corrupt(world, &mut rng, drive);
    let planted = sectors.len() as u64;
    let before = world.array().counters();
    world.scrub(world.now());
    run_until(world, "a scrub", |world| world.array().scrub().state == ScrubState::Done)?;
    let counters = world.array().counters();
    let repaired = counters.repaired_wrong - before.repaired_wrong;
    let unlocated = counters.unlocated_codewords - before.unlocated_codewords;
    // One that has failed too many reads meanwhile is not there to be repaired.
    let is_there = !world.array().lost().contains(drive);
    let is_located = locates(&spec) && bad.len() == 1 && is_there;
    let medium = world.platter_mut(drive).expect("bytes are carried");
    let right = sectors.iter().filter(|held| medium.bytes(held.extent) == held.bytes).count();
    if is_located && (right as u64, repaired, unlocated) != (planted, planted, 0) {
        return Err(format!(
            "of {planted} corrupted sectors of drive {drive} a scrub has made {right} right and says {repaired}, \
             {unlocated} codewords not located"
        ));
    }
    if !locates(&spec) && (repaired > 0 || right > 0) {
        return Err(format!("{repaired} sectors were repaired of which no drive could be blamed"));
    }
    // What nothing could locate is put right by hand, so that everything can be read and compared.
    for Held { extent, bytes } in sectors {
        world
            .platter_mut(drive)
            .expect("bytes are carried")
            .bytes_mut(extent)
            .copy_from_slice(&bytes);
    }
    Ok(planted)
}

/// Whether a scrub of a whole array tells which drive is wrong.
fn locates(spec: &Spec) -> bool {
    // Copies are a vote: of three that differ two agree.
    let copies = spec.groups().map(DriveSet::len).min().unwrap_or(0);
    if spec.is_mirror() { copies > 2 } else { spec.redundant() >= 2 }
}

/// Flips a bit in some sectors of a drive, puts others' bytes into their neighbours' places, as a write that went astray
/// does.
fn corrupt(world: &mut World, rng: &mut Rng, drive: DriveIdx) -> Corrupted {
    let area = world.array().area().clone();
    let layout = *world.array().layout();
    let used = layout.chunks() * layout.spec().chunk().get();
    let medium: &mut Memory = world.platter_mut(drive).expect("bytes are carried");
    let mut places: Vec<u64> = (0..1 + rng.below(CORRUPTED_MAX)).map(|_| rng.below(used)).collect();
    places.sort_unstable();
    places.dedup();
    let is_used = |&lba: &u64| {
        let (row, _) = layout.symbol(Cell { drive, lba: Lba::new(lba) });
        row.stripe < layout.stripes()
    };
    places.retain(is_used);
    let mut sectors = Vec::new();
    for lba in places {
        let extent = area.on_drive(Extent::new(Lba::new(lba), Sectors::new(1)));
        let bytes = medium.bytes(extent).to_vec();
        let other = area.on_drive(Extent::new(Lba::new(rng.below(used)), Sectors::new(1)));
        let stray = medium.bytes(other).to_vec();
        let now = medium.bytes_mut(extent);
        if rng.below(2) == 0 && stray != bytes {
            now.copy_from_slice(&stray);
        } else {
            now[rng.below(SECTOR_SIZE as u64) as usize] ^= 1 << rng.below(8);
        }
        sectors.push(Held { extent, bytes });
    }
    Corrupted { drive, sectors }
}

fn run_until(world: &mut World, what: &str, is_so: impl Fn(&World) -> bool) -> Result<(), String> {
    let limit = world.now() + MENDED_MAX;
    while !is_so(world) {
        if world.now() >= limit {
            return Err(format!("{what} has no end after {} s", MENDED_MAX.as_secs_f64()));
        }
        world.step();
    }
    Ok(())
}
