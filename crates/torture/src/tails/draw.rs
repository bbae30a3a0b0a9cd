//! What one run is: everything that its seed decides.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use levelhead_array::journal::rules::Rules;
use levelhead_array::{Area, Content, HostOrder, JournalSettings, Left, Policy, Spec};
use levelhead_drive::{CacheMode, Faults, Profile, Settings};
use levelhead_stats::{Rng, Streams};
use levelhead_trace::{Arrival, Kind};
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Lba, Nanos, Sectors};

use super::Aim;
use super::care::Care;
use levelhead_lab::WorldSettings;

const LAYOUTS: [&str; 14] = [
    "raid4:3+1,chunk=16KiB",
    "raid5:3+1,chunk=64KiB",
    "raid5:5+1,chunk=16KiB",
    "raid5:7+1,chunk=64KiB",
    "raid6:4+2,chunk=16KiB",
    "raid6:6+2,chunk=64KiB",
    "raid6:3+2,chunk=12KiB,parity=fixed",
    "eraid:5+1,e=2,chunk=16KiB",
    "eraid:4+2,e=3,chunk=24KiB",
    "eraid:5+3,e=2,chunk=32KiB",
    "raid1:2,chunk=16KiB",
    "raid1:3,chunk=64KiB",
    "raid10:4,chunk=16KiB",
    "raid10:5,chunk=64KiB",
];

/// A drive with the times of a nearline disk over its whole stroke, and few sectors, so that their bytes can be kept.
const DRIVE: &str = r#"
    name = "short"
    block_size = 4096
    rpm = 7200
    heads = 1
    overhead = "0.2ms"
    head_switch = "0.8ms"
    write_settle = "0.4ms"
    [cache]
    segments = 8
    segment_blocks = 96
    read_ahead_blocks = 64
    write_blocks = 1024
    write_delay = "100ms"
    [seek]
    points = [[1, "1ms"], [2, "1.5ms"], [21, "8.2ms"], [63, "17.1ms"]]
    [[zone]]
    cylinders = 64
    blocks_per_track = 256
    track_skew = 41
    cylinder_skew = 41
"#;

/// How a drive can be bad all the time, and whether it is while it writes, too.
const FAULTS: [&str; 14] = [
    "slowdown=3",
    "slowdown=10",
    "slowdown=40",
    "episodes=5s/5s/10",
    "episodes=500ms/2s/20",
    "periodic=20s/5s/10",
    "field=2s/60%,slowdown=2",
    "retry-rate=3%,rotations=geometric:8",
    "retry-rate=1%,rotations=1:80%+60:20%",
    "bursts=4MiB/geometric:512KiB/60%,rotations=12",
    "stalls=10s/1s",
    "stalls=3s/100ms",
    "hard-rate=1%",
    "death=4s",
];

/// What the sizes of a run's requests are drawn from, in sectors.
const SIZES: [&[u64]; 4] = [&[1], &[1, 2, 4, 8], &[16], &[1, 4, 16, 40]];

/// Shares of reads, in percent.
const READS: [u64; 4] = [100, 100, 95, 80];

/// The fewest reads of a run.
pub(super) const READS_MIN: u64 = 2_000;

/// Spells of traffic of one run. Between two of them nothing is asked.
const SPELLS: u64 = 4;

/// What a drive keeps for its journal: 24 MiB,
const RINGS: Sectors = Sectors::new(6 << 10);

/// in this number of pieces.
const PIECES: u64 = 16;

/// Commands inside a drive at a time, as `array serve` has it.
const WINDOW: u32 = 32;

/// What is wrong with one drive.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mishap {
    pub(super) drive: DriveIdx,
    pub(super) faults: Faults,
    /// When it says nothing, and until when, in order.
    pub(super) hangs: Vec<[Instant; 2]>,
}

impl fmt::Display for Mishap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { drive, faults, hangs } = self;
        write!(f, "drive {drive}: {faults}")?;
        for [from, until] in hangs {
            let [from, until] = [*from, *until].map(|at| (at - Instant::ZERO).as_secs_f64());
            write!(f, ", hangs from {from:.1} to {until:.1} s")?;
        }
        Ok(())
    }
}

/// The server itself does not run for a while: it is stopped, frozen or starved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standstill {
    /// The place in the list of the request that it has just been sent.
    pub(super) after: usize,
    /// How long, from 0.1 s to 10 h.
    pub(super) gap: Nanos,
}

impl Standstill {
    /// None in half of the runs, and up to three in the others.
    fn draw(seed: u64) -> Vec<Self> {
        let mut rng = Streams::new(seed).stream("tails/standstills");
        let count = rng.below(2) * (1 + rng.below(3));
        let mut standstills: Vec<Self> = (0..count)
            .map(|_| {
                let after = rng.below(READS_MIN) as usize;
                // Each power of ten is as likely as any other one.
                let millis = 100.0 * 360_000.0_f64.powf(rng.unit());
                Self { after, gap: Nanos::from_millis(millis as u64) }
            })
            .collect();
        standstills.sort_by_key(|standstill| standstill.after);
        standstills
    }
}

/// What an array is, but for its troubles: it decides what it carries.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shape {
    pub(super) layout: &'static str,
    pub(super) sizes: &'static [u64],
    /// In percent.
    pub(super) reads: u64,
    /// The drives that will be bad, as bits.
    pub(super) bad: DriveSet,
}

/// One run.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) seed: u64,
    pub(super) shape: Shape,
    pub(super) spec: Spec,
    pub(super) policy: Policy,
    pub(super) has_journal: bool,
    /// From how many whole codewords on the journal announces a write and does not log it.
    intents_from: Option<NonZeroU32>,
    pub(super) cache: CacheMode,
    /// In percent of what the array carries without the bad drives.
    pub(super) load: u64,
    pub(super) mishaps: Vec<Mishap>,
    pub(super) standstills: Vec<Standstill>,
    pub(super) care: Care,
    profile: Arc<Profile>,
    rng: Rng,
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { spec, shape: Shape { sizes, reads, .. }, cache, load, mishaps, .. } = self;
        let journal = if self.has_journal { "journal" } else { "no journal" };
        write!(
            f,
            "{spec}, {journal}, {cache:?}, {reads} % reads of {sizes:?} sectors at {load} %"
        )?;
        mishaps.iter().try_for_each(|mishap| write!(f, "; {mishap}"))?;
        for Standstill { after, gap } in &self.standstills {
            write!(f, "; server stopped for {:.1} s after request {after}", gap.as_secs_f64())?;
        }
        write!(f, "{}", self.care)
    }
}

impl Script {
    pub(super) fn draw(seed: u64, aim: &Aim) -> Self {
        let mut rng = Streams::new(seed).stream("tails");
        let drawn = *pick(&mut rng, &LAYOUTS);
        let layout = aim.layout.unwrap_or(drawn);
        let spec: Spec = layout.parse().expect("the layouts are possible");
        let drawn = rng.below(4) > 0;
        let has_journal = aim.has_journal.unwrap_or(drawn);
        let intents_from = match rng.below(3) {
            0 => None,
            1 => NonZeroU32::new(1),
            _ => JournalSettings::INTENTS_FROM,
        };
        let cache = *pick(&mut rng, &[CacheMode::Off, CacheMode::Read, CacheMode::WriteBack]);
        let mut bad = DriveSet::EMPTY;
        for _ in 0..=rng.below(spec.redundant() as u64) {
            let more = bad.with(DriveIdx::from_usize(rng.below(spec.drives() as u64) as usize));
            bad = if spec.survives(more) { more } else { bad };
        }
        let mishaps = bad.iter().map(|drive| mishap(&mut rng, drive, cache, aim)).collect();
        let shape = Shape {
            layout,
            sizes: SIZES[rng.below(SIZES.len() as u64) as usize],
            reads: aim.reads.unwrap_or(*pick(&mut rng, &READS)),
            bad,
        };
        Self {
            seed,
            shape,
            spec,
            policy: aim.policy,
            has_journal,
            intents_from,
            cache,
            load: 10 + rng.below(51),
            mishaps,
            standstills: Standstill::draw(seed),
            care: Care::draw(seed, aim.scrubs),
            profile: Arc::new(Profile::parse(DRIVE).expect("the drive is possible")),
            rng,
        }
    }

    /// The same array without a journal and its bad drives, and requests to it, of which nothing depends on the seed.
    pub(super) fn gauge(&self) -> (WorldSettings, Self) {
        let fixed = Self {
            shape: self.shape.clone(),
            spec: self.spec,
            has_journal: false,
            ..Self::draw(0, &Aim::DEFAULT)
        };
        (fixed.degraded(Content::Absent), fixed)
    }

    /// Whether writes go round the bad drives: one more drive than is redundant takes their records.
    pub(super) fn goes_round(&self) -> bool {
        let others = self.spec.drives() - self.shape.bad.len() as usize;
        self.has_journal && others > self.spec.redundant()
    }

    /// The array with its bad drives.
    pub(super) fn troubled(&self) -> WorldSettings {
        let faults = |drive: DriveIdx| {
            let mishap = self.mishaps.iter().find(|mishap| mishap.drive == drive);
            mishap.map_or(Faults::NONE, |mishap| mishap.faults)
        };
        self.world(faults, Content::Carried)
    }

    /// The array without them.
    pub(super) fn degraded(&self, content: Content) -> WorldSettings {
        let gone = Faults { death: Some(Instant::ZERO), ..Faults::NONE };
        let bad = self.shape.bad;
        self.world(|drive| if bad.contains(drive) { gone } else { Faults::NONE }, content)
    }

    fn world(&self, faults: impl Fn(DriveIdx) -> Faults, content: Content) -> WorldSettings {
        let drive = |at: usize| Settings {
            queue_depth: WINDOW,
            cache: self.cache,
            faults: faults(DriveIdx::from_usize(at)),
            ..Settings::PLAIN
        };
        let Places { pieces, area } = places(&self.spec, self.profile.size());
        let journal = JournalSettings {
            pieces,
            lists: None,
            floor: 1,
            left: Left::Drained,
            intents_from: self.intents_from,
            region_min: JournalSettings::REGION_MIN,
            rules: Rules::ALL,
        };
        WorldSettings {
            spec: self.spec,
            policy: self.policy,
            window: WINDOW,
            order: HostOrder::Elevator,
            content,
            profile: Arc::clone(&self.profile),
            drives: (0..self.spec.drives()).map(drive).collect(),
            area: Some(area),
            journal: self.has_journal.then_some(journal),
            seed: self.seed,
        }
    }

    /// The requests to an array of `size`, that come at `rate` in a second while any come.
    pub(super) fn arrivals(&self, size: Sectors, rate: f64) -> Vec<Arrival> {
        let mut rng = self.rng.clone();
        let mean = Nanos::new((1e9 / rate) as u64);
        let Shape { sizes, reads, .. } = self.shape;
        // With a margin, as which are reads is chance.
        let count = READS_MIN * 110 / reads;
        let mut at = Instant::ZERO;
        let mut arrivals = Vec::with_capacity(count as usize);
        let mut reads_left = READS_MIN;
        while reads_left > 0 || (arrivals.len() as u64) < count {
            let is_break = (arrivals.len() as u64 + 1).is_multiple_of(count / SPELLS);
            at = at + rng.exponential(mean);
            if is_break {
                at = at + rng.exponential(Nanos::from_secs(60));
            }
            let sectors = *pick(&mut rng, sizes);
            let lba = rng.below(size.get() - sectors + 1);
            let kind = if rng.below(100) < reads { Kind::Read } else { Kind::Write };
            reads_left -= u64::from(kind == Kind::Read).min(reads_left);
            let extent = Extent::new(Lba::new(lba), Sectors::new(sectors));
            arrivals.push(Arrival { at, kind, extent });
        }
        arrivals
    }
}

/// How a drive is divided.
struct Places {
    /// Of the journal.
    pieces: Vec<Extent>,
    area: Area,
}

/// Pieces of a journal in the middle of equal shares of a drive, as `array create` has them. A served drive keeps 64 MiB
/// for them, which take what comes in half a minute of the loads here; so must these small ones.
fn places(spec: &Spec, size: Sectors) -> Places {
    let piece = RINGS.get() / PIECES;
    let share = (size.get() - RINGS.get()) / PIECES / spec.chunk().get() * spec.chunk().get();
    let at = |piece_no: u64| {
        share / 2 / spec.chunk().get() * spec.chunk().get() + piece_no * (share + piece)
    };
    let pieces: Vec<Extent> =
        (0..PIECES).map(|no| Extent::new(Lba::new(at(no)), Sectors::new(piece))).collect();
    let data = Sectors::new(share * PIECES);
    let area =
        Area::around(&pieces, data, Lba::ZERO + size, None).expect("the drives are large enough");
    Places { pieces, area }
}

fn mishap(rng: &mut Rng, drive: DriveIdx, cache: CacheMode, aim: &Aim) -> Mishap {
    let hangs = match (rng.below(4), aim.hangs_after) {
        (0, _) | (_, Some(_)) => {
            let mut at = Instant::ZERO;
            let mut hang = || {
                let sooner = Nanos::from_millis(500 * rng.below(2));
                let mean = Nanos::from_secs(aim.hangs_after.unwrap_or_else(|| 5 * rng.below(4)));
                let from = at + sooner + rng.exponential(mean);
                at = from + Nanos::from_secs(1 + rng.below(40));
                [from, at]
            };
            vec![hang(), hang()]
        }
        (_, None) => Vec::new(),
    };
    // A drive that hangs is well otherwise, now and then.
    let text = match hangs.is_empty() || rng.below(2) == 0 {
        true => *pick(rng, &FAULTS),
        false => "none",
    };
    let mut faults: Faults = aim.faults.unwrap_or(text).parse().expect("the faults are possible");
    if cache == CacheMode::WriteBack && rng.below(3) == 0 {
        faults.lying_rate = levelhead_units::Ratio::ONE;
    }
    Mishap { drive, faults, hangs }
}

fn pick<'a, T>(rng: &mut Rng, choices: &'a [T]) -> &'a T {
    &choices[rng.below(choices.len() as u64) as usize]
}
