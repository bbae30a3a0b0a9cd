//! How a drive misbehaves.
//!
//! | kind | depends on the drive and | module |
//! |---|---|---|
//! | soft failures of sectors, alone or in pairs | origin, sector | `soft` |
//! | bad stretches of the disk | stretch: sector; failure: origin, sector | `bursts` |
//! | revolutions a retry takes | origin, first failed sector | `rotations` |
//! | hard failures of sectors | sector, what was written since | `hard` |
//! | slowness: constant, episodes, periods, the field's | time | `slowness` |
//! | stalls | time | `stalls` |
//! | lost and torn writes | origin, first sector | `writes` |
//! | death | time | here |
//!
//! Chance is a hash, not a stream: what happens depends on what the table says, and on nothing else
//! (the *origin* is the client request on whose behalf a command runs). Two policies that serve the
//! same client requests meet the same drive, however they split, order or repeat their commands. Every
//! kind has a hash of its own ([`Coin`]): switching one on changes no other's draws.
//!
//! # References
//!
//! - `[ERAID]` the pro-active use of redundancy against fail-slow drives, where one retry mends all
//!   failed sectors of a request.

mod bursts;
mod error;
mod hard;
mod points;
mod rotations;
mod slowness;
mod soft;
mod stalls;
mod text;
mod values;
mod writes;

use levelhead_block::SectorSet;
use levelhead_stats::{hash_of, unit_of};
use levelhead_units::{Extent, Instant, Lba, Ratio, Sectors};

pub use bursts::Bursts;
pub use error::FaultsError;
pub use rotations::{RotationList, Rotations};
pub use slowness::{Episodes, Field, Periodic};
pub use stalls::Stalls;
pub use text::ParseFaultsError;
pub use values::{Between, BurstLength, ROTATION_LIST_MAX};

use bursts::BurstMap;
use hard::Hard;
use slowness::Slowness;
use soft::Soft;
use stalls::StallMap;
use writes::Writes;

/// How a drive misbehaves. Also a text: see `FromStr`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Faults {
    /// Share of sectors whose first pass fails and that a retry mends: `p` of `[ERAID]`.
    pub soft_rate: Ratio,
    /// How many times likelier than any other sector the neighbour of a failed one fails: `c` of
    /// `[ERAID]`. At least 1, which is independence, and at most about half of one over the rate.
    pub adjacency: f64,
    /// Stretches of the disk whose sectors often fail at the first pass.
    pub bursts: Option<Bursts>,
    /// How many revolutions a retry takes.
    pub rotations: Rotations,
    /// Share of sectors that no effort reads until they are written again.
    pub hard_rate: Ratio,
    /// Every service takes this many times as long, from 1 to 1000.
    pub slowdown: f64,
    /// Slow and well by turns.
    pub episodes: Option<Episodes>,
    /// Slow at regular times.
    pub periodic: Option<Periodic>,
    /// As slow as drives in the field.
    pub field: Option<Field>,
    /// Times in which it says nothing.
    pub stalls: Option<Stalls>,
    /// Share of writes that are answered as stored and leave the medium as it was.
    pub lost_rate: Ratio,
    /// Share of the other writes, of two sectors or more, of which only the first part is stored.
    pub torn_rate: Ratio,
    /// When it dies.
    pub death: Option<Instant>,
}

impl Faults {
    /// A drive in good order. (If it were not, retries would take three revolutions.)
    pub const NONE: Self = Self {
        soft_rate: Ratio::ZERO,
        adjacency: 1.0,
        bursts: None,
        rotations: Rotations::Fixed(3),
        hard_rate: Ratio::ZERO,
        slowdown: 1.0,
        episodes: None,
        periodic: None,
        field: None,
        stalls: None,
        lost_rate: Ratio::ZERO,
        torn_rate: Ratio::ZERO,
        death: None,
    };

    /// Whether a drive can misbehave like that.
    pub fn check(&self) -> Result<(), FaultsError> {
        soft::check(self)?;
        self.bursts.map_or(Ok(()), |bursts| bursts.check())?;
        self.rotations.check()?;
        slowness::check(self)?;
        self.stalls.map_or(Ok(()), |stalls| stalls.check())
    }

    /// The probability that a sector's first pass fails and a retry mends it: independent chances of
    /// `soft_rate` and of the bursts.
    pub fn soft_rate_total(&self) -> f64 {
        let bursts = self.bursts.map_or(0.0, |bursts| bursts.rate());
        1.0 - (1.0 - self.soft_rate.get()) * (1.0 - bursts)
    }
}

/// What a hash is for: the streams of chance, which have nothing to do with each other.
#[derive(Clone, Copy, Debug)]
enum Coin {
    Base = 1,
    Link = 2,
    Hard = 3,
    Burst = 4,
    InBurst = 5,
    Rotations = 6,
    Episode = 7,
    Slow = 8,
    Period = 9,
    Persist = 10,
    Field = 11,
    Stall = 12,
    Lost = 13,
    Torn = 14,
    Tear = 15,
    PeriodBegin = 16,
    PeriodLength = 17,
}

/// Where a drive's chance comes from.
#[derive(Clone, Copy, Debug)]
struct Key(u64);

impl Key {
    const fn new(key: u64) -> Self {
        Self(key)
    }

    /// A number from 0 up to but not including 1 that depends on all of these.
    fn coin(self, coin: Coin, origin: u64, place: u64) -> f64 {
        unit_of(hash_of(self.0, &[coin as u64, origin, place]))
    }

    /// A key of one stream.
    fn of(self, coin: Coin) -> u64 {
        hash_of(self.0, &[coin as u64])
    }

    /// The number from 0 up to but not including 1 that a hash names.
    fn unit(hash: u64) -> f64 {
        unit_of(hash)
    }
}

/// The misbehaviour of one drive.
#[derive(Clone, Debug)]
pub(crate) struct Misbehaviour {
    key: Key,
    soft: Soft,
    bursts: Option<BurstMap>,
    rotations: Rotations,
    hard: Hard,
    slowness: Slowness,
    stalls: Option<StallMap>,
    writes: Writes,
    death: Option<Instant>,
}

/// What the first pass over an extent left unread. The sets do not overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unread {
    pub(crate) soft: SectorSet,
    pub(crate) hard: SectorSet,
}

impl Unread {
    /// Whether every sector was read.
    pub(crate) fn is_empty(&self) -> bool {
        self.soft.is_empty() && self.hard.is_empty()
    }

    /// How many sectors were not.
    pub(crate) fn len(&self) -> u64 {
        (self.soft.len() + self.hard.len()) as u64
    }

    /// The first of them.
    fn first(&self) -> Option<u32> {
        self.soft.iter().next().into_iter().chain(self.hard.iter().next()).min()
    }

    /// All of them.
    pub(crate) fn all(self) -> SectorSet {
        match (self.soft.is_empty(), self.hard.is_empty()) {
            (_, true) => self.soft,
            (true, _) => self.hard,
            (false, false) => self.soft.iter().chain(self.hard.iter()).collect(),
        }
    }
}

impl Misbehaviour {
    /// What `faults` means for the drive with this key.
    pub(crate) fn new(faults: &Faults, key: u64) -> Self {
        let key = Key::new(key);
        Self {
            key,
            soft: Soft::new(faults, key),
            bursts: faults.bursts.as_ref().map(|bursts| BurstMap::new(bursts, key)),
            rotations: faults.rotations,
            hard: Hard::new(faults.hard_rate.get(), key),
            slowness: Slowness::new(faults, key),
            stalls: faults.stalls.as_ref().map(|stalls| StallMap::new(stalls, key)),
            writes: Writes::new(faults, key),
            death: faults.death,
        }
    }

    /// The drive has these faults from `now` on. Sectors that were mended stay so, and
    /// a dead drive stays dead.
    pub(crate) fn change(&mut self, now: Instant, faults: &Faults) {
        let mut hard = self.hard.clone();
        hard.set_rate(faults.hard_rate.get());
        let died = self.death.filter(|&death| death <= now);
        let death = died.or(faults.death.map(|death| death.max(now)));
        *self = Self { hard, death, ..Self::new(faults, self.key.0) };
    }

    /// What the first pass over `extent` fails to read on behalf of `origin`.
    pub(crate) fn first_pass(&self, extent: Extent, origin: u64) -> Unread {
        let offset =
            |lba: Lba| u32::try_from((lba - extent.lba).get()).expect("a request's sector");
        let mut hard = SectorSet::EMPTY;
        if !self.hard.is_off() {
            hard = extent.iter().filter(|&lba| self.hard.contains(lba)).map(offset).collect();
        }
        let mut soft = SectorSet::EMPTY;
        if !self.soft.is_off() || self.bursts.is_some() {
            let alone = (!self.soft.is_off()).then(|| self.soft.failures(extent, origin));
            let burst = self.bursts.as_ref().map(|bursts| bursts.failures(extent, origin));
            let failed = alone.into_iter().flatten().chain(burst.into_iter().flatten());
            soft = failed.map(offset).filter(|&at| !hard.contains(at)).collect();
        }
        Unread { soft, hard }
    }

    /// How many revolutions a retry of these sectors of `extent` takes.
    pub(crate) fn rotations(&self, extent: Extent, origin: u64, unread: &Unread) -> u32 {
        self.rotations.draw(|| {
            let first = extent.lba + Sectors::new(unread.first().unwrap_or(0).into());
            self.key.coin(Coin::Rotations, origin, first.get())
        })
    }

    /// How many times as long a service takes that begins at `at`.
    pub(crate) fn slowdown(&self, at: Instant) -> f64 {
        self.slowness.factor(at)
    }

    /// `at`, or the end of the stall that it lies in.
    pub(crate) fn stall_end(&self, at: Instant) -> Instant {
        self.stalls.as_ref().map_or(at, |stalls| stalls.end(at))
    }

    /// The sectors of a write that silently do not reach the medium: none, all, or the last ones.
    pub(crate) fn missing(&self, extent: Extent, origin: u64) -> SectorSet {
        self.writes.missing(extent, origin)
    }

    /// The first `stored` sectors of `extent` have been written.
    pub(crate) fn mend(&mut self, extent: Extent, missing: &SectorSet) {
        let stored = extent.sectors.saturating_sub(Sectors::new(missing.len() as u64));
        self.hard.mend(Extent::new(extent.lba, stored));
    }

    /// When it dies or died, if it does.
    pub(crate) fn death(&self) -> Option<Instant> {
        self.death
    }

    /// It dies at `now`, if it has not before.
    pub(crate) fn die(&mut self, now: Instant) {
        self.death = Some(self.death.map_or(now, |death| death.min(now)));
    }
}

#[cfg(test)]
mod tests {
    use levelhead_units::Nanos;

    use super::*;

    fn faults(soft: f64, adjacency: f64, hard: f64) -> Faults {
        Faults {
            soft_rate: Ratio::new(soft).unwrap(),
            adjacency,
            hard_rate: Ratio::new(hard).unwrap(),
            ..Faults::NONE
        }
    }

    fn extent(lba: u64, sectors: u64) -> Extent {
        Extent::new(Lba::new(lba), Sectors::new(sectors))
    }

    /// Every kind at a rate at which it is sure to show.
    fn every_kind() -> Faults {
        "retry-rate=20%,adjacency=2,bursts=1MiB/geometric:256KiB/50%,rotations=uniform:1-9,\
         hard-rate=10%,slowdown=2,episodes=1s/1s/3,periodic=10s/3s/5,field=1s/40%,stalls=1s/100ms,\
         lost-writes=20%,torn-writes=20%,death=100s"
            .parse()
            .unwrap()
    }

    #[test]
    fn failures_do_not_depend_on_how_a_request_is_cut() {
        let map = Misbehaviour::new(&every_kind(), 5);
        let whole = map.first_pass(extent(0, 500), 9);
        for cut in 1..500_u32 {
            let (left, right) = (
                map.first_pass(extent(0, cut.into()), 9).all(),
                map.first_pass(extent(cut.into(), u64::from(500 - cut)), 9).all(),
            );
            let joined: SectorSet = left.iter().chain(right.iter().map(|at| at + cut)).collect();
            assert_eq!(joined, whole.clone().all(), "cut at {cut}");
        }
    }

    #[test]
    fn a_soft_failure_belongs_to_one_request_and_a_hard_one_to_the_medium() {
        let map = Misbehaviour::new(&faults(0.1, 2.0, 0.1), 5);
        let (one, other) = (map.first_pass(extent(0, 300), 1), map.first_pass(extent(0, 300), 2));
        assert_eq!(one, map.first_pass(extent(0, 300), 1));
        assert_ne!(one.soft, other.soft);
        assert_eq!(one.hard, other.hard);
        assert!(!one.hard.is_empty());
    }

    #[test]
    fn soft_failures_and_bursts_add_up_as_independent_chances() {
        let all = every_kind();
        let soft = Faults { soft_rate: all.soft_rate, bursts: all.bursts, ..Faults::NONE };
        let n = 100_000_u64;
        let failed = (0..n)
            .filter(|&drive| {
                !Misbehaviour::new(&soft, drive).first_pass(extent(7, 1), 1).is_empty()
            })
            .count() as f64;
        let (share, law) = (failed / n as f64, soft.soft_rate_total());
        assert!(
            (share - law).abs() <= 4.0 * (law * (1.0 - law) / n as f64).sqrt(),
            "{share} {law}"
        );
    }

    /// What a drive shows of one kind of misbehaviour over a while, as a text.
    fn shows(kind: &str, faults: &Faults) -> String {
        let map = Misbehaviour::new(faults, 5);
        let at = |n: u64| Instant::ZERO + Nanos::from_millis(n * 37);
        let show = |n: u64| match kind {
            // Hard failures hide soft ones: the kinds are asked one level down.
            "soft" => format!("{:?}", map.soft.failures(extent(n, 9), n).collect::<Vec<_>>()),
            "bursts" => {
                let bursts = map.bursts.map(|bursts| {
                    let mut failed: Vec<Lba> = bursts.failures(extent(n * 9, 9), n).collect();
                    failed.sort();
                    failed
                });
                format!("{:?}", bursts.unwrap_or_default())
            }
            "rotations" => {
                let soft = [1].into_iter().collect();
                let unread = Unread { soft, hard: SectorSet::EMPTY };
                map.rotations(extent(n, 9), n, &unread).to_string()
            }
            "hard" => map.hard.contains(Lba::new(n)).to_string(),
            "slowness" => map.slowdown(at(n)).to_string(),
            "stalls" => format!("{:?}", map.stall_end(at(n))),
            "writes" => format!("{:?}", map.missing(extent(n, 9), n)),
            "death" => format!("{:?}", map.death().filter(|&death| death <= at(n))),
            other => panic!("{other}"),
        };
        (0..3_000).map(show).collect()
    }

    /// Each kind alone: its name, the faults with nothing else, those with everything but it.
    fn each_kind() -> [(&'static str, Faults, Faults); 8] {
        let (all, none) = (every_kind(), Faults::NONE);
        let pair = |kind: &'static str, take: fn(&mut Faults, &Faults)| {
            let (mut alone, mut without) = (none, all);
            take(&mut alone, &all);
            take(&mut without, &none);
            (kind, alone, without)
        };
        [
            pair("soft", |to, from| {
                (to.soft_rate, to.adjacency) = (from.soft_rate, from.adjacency);
            }),
            pair("bursts", |to, from| to.bursts = from.bursts),
            pair("rotations", |to, from| to.rotations = from.rotations),
            pair("hard", |to, from| to.hard_rate = from.hard_rate),
            pair("slowness", |to, from| {
                (to.slowdown, to.episodes) = (from.slowdown, from.episodes);
                (to.periodic, to.field) = (from.periodic, from.field);
            }),
            pair("stalls", |to, from| to.stalls = from.stalls),
            pair("writes", |to, from| {
                (to.lost_rate, to.torn_rate) = (from.lost_rate, from.torn_rate);
            }),
            pair("death", |to, from| to.death = from.death),
        ]
    }

    #[test]
    fn every_kind_shows_and_none_changes_another() {
        for (kind, alone, without) in each_kind() {
            let good = shows(kind, &Faults::NONE);
            assert_ne!(shows(kind, &alone), good, "{kind} does not show");
            assert_eq!(shows(kind, &alone), shows(kind, &every_kind()), "{kind} is not its own");
            assert_eq!(shows(kind, &without), good, "{kind} shows where it is off");
        }
    }

    #[test]
    fn impossible_faults_are_refused_with_the_limit() {
        assert!(Faults::NONE.check().is_ok());
        assert!(every_kind().check().is_ok());
        let (second, none) = (Nanos::from_secs(1), Faults::NONE);
        let stretch = |gap, length| {
            let (gap, length) = (Sectors::new(gap), BurstLength::Fixed(Sectors::new(length)));
            Faults { bursts: Some(Bursts { gap, length, failure: Ratio::ONE }), ..none }
        };
        let episodes = |slow, factor| Faults {
            episodes: Some(Episodes { slow, well: second, factor }),
            ..none
        };
        let periodic = |duration, offset| Faults {
            periodic: Some(Periodic { period: second.into(), duration, offset, factor: 2.0 }),
            ..none
        };
        let retry = |rotations| Faults { rotations, ..none };
        for (bad, expected) in [
            (retry(Rotations::Fixed(0)), "a retry takes 1 to 1000 revolutions, not 0"),
            (
                retry(Rotations::Uniform { first: 5, last: 4 }),
                "the most revolutions of a retry are at least 5, not 4",
            ),
            (
                retry(Rotations::Geometric { mean: f64::NAN }),
                "a retry takes 1 to 1000 revolutions on average, not NaN",
            ),
            (
                Faults { slowdown: 0.5, ..none },
                "a drive is slowed down 1 to 1000 times, not 0.5 times",
            ),
            (episodes(second, 0.0), "a drive is slowed down 1 to 1000 times, not 0 times"),
            (
                episodes(Nanos::ZERO, 2.0),
                "the mean time of being slow is 1us to 31622400s, not 0ns",
            ),
            (
                periodic((second * 2).into(), None),
                "slowness every 1s begins within that time and ends before the next, not after 2s",
            ),
            (
                stretch(100, 101),
                "bad stretches begin 64KiB to 1PiB apart and are at most so long, not 404KiB every \
                 400KiB",
            ),
            (
                Faults { stalls: Some(Stalls { gap: second, duration: second * 2 }), ..none },
                "a stall every 1s lasts at most so long, not 2s",
            ),
            (
                Faults { field: Some(Field { interval: second, persistence: Ratio::ONE }), ..none },
                "a slowdown of the field's stays with 0% to 99%, not 100%",
            ),
        ] {
            assert_eq!(bad.check().unwrap_err().to_string(), expected);
        }
        for (list, expected) in [
            (vec![], "a retry has 1 to 8 lengths, not 0"),
            (vec![(3, Ratio::of(1, 2))], "the shares of a retry's lengths add up to 100%, not 50%"),
            (vec![(0, Ratio::ONE)], "a retry takes 1 to 1000 revolutions, not 0"),
        ] {
            assert_eq!(RotationList::new(&list).unwrap_err().to_string(), expected);
        }
    }
}
