//! What all kinds together mean for one drive.

use levelhead_block::{SectorSet, Silent, SilentWrite, ZeroTail};
use levelhead_units::{Extent, Instant, Lba, Sectors};

use super::bursts::BurstMap;
use super::ecc::{CodeFailures, Written};
use super::flips::Flips;
use super::flushes::Flushes;
use super::latent::Latent;
use super::misdirected::Misdirected;
use super::retries::SoftFailures;
use super::slowness::Slowness;
use super::stalls::StallMap;
use super::writes::Writes;
use super::{Coin, Faults, Key, Rotations, rate_under};
use crate::tails::{Tails, stored};

/// The misbehaviour of one drive.
#[derive(Clone, Debug)]
pub(crate) struct Misbehaviour {
    key: Key,
    soft: SoftFailures,
    bursts: Option<BurstMap>,
    code: Option<CodeFailures>,
    written: Written,
    rotations: Rotations,
    hard: Latent,
    slowness: Slowness,
    stalls: Option<StallMap>,
    writes: Writes,
    misdirected: Misdirected,
    flips: Flips,
    flushes: Flushes,
    size: Sectors,
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

/// What retries came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Retry {
    /// Revolutions that they took.
    pub(crate) rotations: u32,
    /// What may be readable, had there been more of them.
    pub(crate) unknown: SectorSet,
    /// What no retry mends.
    pub(crate) damaged: SectorSet,
}

impl Retry {
    /// There was nothing to retry.
    pub(crate) const NONE: Self =
        Self { rotations: 0, unknown: SectorSet::EMPTY, damaged: SectorSet::EMPTY };
}

/// Which sector of an extent this is.
fn offset_of(extent: Extent, lba: Lba) -> u32 {
    u32::try_from((lba - extent.lba).get()).expect("a request's sector")
}

impl Misbehaviour {
    /// What `faults` means for the drive of `size` sectors with this key.
    pub(crate) fn new(faults: &Faults, key: u64, size: Sectors) -> Self {
        let key = Key::new(key);
        Self {
            key,
            soft: SoftFailures::new(faults, key),
            bursts: faults.bursts.as_ref().map(|bursts| BurstMap::new(bursts, key)),
            code: faults.ecc.map(|ecc| CodeFailures::new(ecc, key)),
            written: Written::default(),
            rotations: faults.rotations,
            hard: Latent::new(faults.hard_rate.get(), key, Coin::Hard),
            slowness: Slowness::new(faults, key),
            stalls: faults.stalls.as_ref().map(|stalls| StallMap::new(stalls, key)),
            writes: Writes::new(faults, key),
            misdirected: Misdirected::new(faults, key, size),
            flips: Flips::new(faults, key),
            flushes: Flushes::new(faults, key),
            size,
            death: faults.death,
        }
    }

    /// The drive has these faults from `now` on. Sectors that were mended stay so, and
    /// a dead drive stays dead.
    pub(crate) fn change(&mut self, now: Instant, faults: &Faults) {
        let (mut hard, mut flips) = (self.hard.clone(), self.flips.clone());
        hard.set_rate(faults.hard_rate.get());
        flips.set_rate(faults.flip_rate.get());
        let died = self.death.filter(|&death| death <= now);
        let death = died.or(faults.death.map(|death| death.max(now)));
        let written = std::mem::take(&mut self.written);
        *self = Self { hard, flips, written, death, ..Self::new(faults, self.key.0, self.size) };
    }

    /// What the first pass over `extent`, whose sectors end in these zeroes, fails to read on behalf of `origin`.
    pub(crate) fn first_pass(&self, extent: Extent, tails: &Tails, origin: u64) -> Unread {
        if let Some(code) = &self.code {
            let failed = code.failures(&self.written, tails, extent, origin);
            let soft = failed.map(|lba| offset_of(extent, lba)).collect();
            return Unread { soft, hard: SectorSet::EMPTY };
        }
        if self.soft.is_off() && self.hard.is_off() && self.bursts.is_none() {
            return Unread::default();
        }
        let offset = |lba: Lba| offset_of(extent, lba);
        // Nearly always sectors are alike, and none fails: nothing is allocated then.
        let (alike, unlike);
        let pieces: &[(Extent, ZeroTail)] = if tails.are_alike() {
            alike = [(extent, ZeroTail::None)];
            &alike
        } else {
            unlike = tails.pieces(extent);
            &unlike
        };
        let mut hard = SectorSet::EMPTY;
        if !self.hard.is_off() {
            let failed = pieces.iter().flat_map(|&(piece, tail)| {
                let rate = rate_under(tail, self.hard.rate());
                piece.iter().filter(move |&lba| self.hard.contains_at(lba, rate))
            });
            hard = failed.map(offset).collect();
        }
        let mut soft: Vec<u32> = Vec::new();
        if !self.soft.is_off() {
            for &(piece, tail) in pieces {
                soft.extend(self.soft.failures(piece, tail, origin).map(offset));
            }
        }
        if let Some(bursts) = &self.bursts {
            soft.extend(bursts.failures(extent, origin).map(offset));
        }
        let soft = soft.into_iter().filter(|&at| !hard.contains(at)).collect();
        Unread { soft, hard }
    }

    /// What retries make of what the first pass over `extent` left unread on behalf of `origin`: within this number of
    /// revolutions, or until there is nothing more to try.
    pub(crate) fn retry(
        &self,
        extent: Extent,
        tails: &Tails,
        origin: u64,
        unread: Unread,
        budget: Option<u64>,
    ) -> Retry {
        if let Some(code) = &self.code {
            return self.retry_by_code(code, extent, tails, origin, &unread, budget);
        }
        let full = self.rotations.draw(|| {
            let first = extent.lba + Sectors::new(unread.first().unwrap_or(0).into());
            self.key.coin(Coin::Rotations, origin, first.get())
        });
        let Some(budget) = budget else {
            return Retry { rotations: full, unknown: SectorSet::EMPTY, damaged: unread.hard };
        };
        let unknown = if budget >= u64::from(full) { unread.hard } else { unread.all() };
        let rotations = budget.min(full.into()) as u32;
        Retry { rotations, unknown, damaged: SectorSet::EMPTY }
    }

    fn retry_by_code(
        &self,
        code: &CodeFailures,
        extent: Extent,
        tails: &Tails,
        origin: u64,
        unread: &Unread,
        budget: Option<u64>,
    ) -> Retry {
        let budget = budget.unwrap_or(u64::MAX);
        let (mut unknown, mut damaged) = (Vec::new(), Vec::new());
        let mut rotations = 0;
        for at in unread.soft.iter() {
            let lba = extent.lba + Sectors::new(at.into());
            let after = code.mended_after(&self.written, lba, tails.of(lba), origin);
            match after {
                Some(after) if u64::from(after) <= budget => rotations = rotations.max(after),
                Some(_) => unknown.push(at),
                // A read that may not retry has not tried everything, whatever there is.
                None if budget > 0 && code.ends_within(budget) => damaged.push(at),
                None => unknown.push(at),
            }
        }
        if !(unknown.is_empty() && damaged.is_empty()) {
            rotations = code.spent(budget);
        }
        let (unknown, damaged) = (unknown.into_iter().collect(), damaged.into_iter().collect());
        Retry { rotations, unknown, damaged }
    }

    /// How many times as long a service takes that begins at `at`.
    pub(crate) fn slowdown(&self, at: Instant) -> f64 {
        self.slowness.factor(at)
    }

    /// `at`, or the end of the stall that it lies in.
    pub(crate) fn stall_end(&self, at: Instant) -> Instant {
        self.stalls.as_ref().map_or(at, |stalls| stalls.end(at))
    }

    /// What is silently wrong with a read of `extent`.
    pub(crate) fn read(&self, extent: Extent) -> Silent {
        let flips = self.flips.at_rest(extent);
        if flips.is_empty() { Silent::Nothing } else { Silent::Read { flips } }
    }

    /// What is silently wrong with a write of `extent`.
    pub(crate) fn write(&self, extent: Extent, origin: u64) -> Silent {
        let missing = self.writes.missing(extent, origin);
        let is_lost = missing.len() as u64 == extent.sectors.get();
        let landed = if is_lost { None } else { self.misdirected.landing(extent, origin) };
        let flips = self.flips.stored(extent, origin);
        if missing.is_empty() && landed.is_none() && flips.is_empty() {
            return Silent::Nothing;
        }
        Silent::Write(Box::new(SilentWrite { missing, landed, flips }))
    }

    /// What is silently wrong with a flush.
    pub(crate) fn flush(&self, origin: u64) -> Silent {
        if self.flushes.lies(origin) { Silent::Flush } else { Silent::Nothing }
    }

    /// `extent` has been written, except for what was silently wrong with that.
    pub(crate) fn mend(&mut self, extent: Extent, silent: &Silent) {
        let stored = stored(extent, silent);
        self.hard.mend(stored);
        self.flips.mend(stored);
        if self.code.as_ref().is_some_and(CodeFailures::has_classes) {
            self.written.write(stored);
        }
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
    use levelhead_testkit::extent;
    use levelhead_units::{Nanos, Ratio};

    use super::super::every_kind;
    use super::*;

    fn faults(soft: f64, adjacency: f64, hard: f64) -> Faults {
        Faults {
            retry_rate: Ratio::new(soft).unwrap(),
            adjacency,
            hard_rate: Ratio::new(hard).unwrap(),
            ..Faults::NONE
        }
    }

    fn new(faults: &Faults, key: u64) -> Misbehaviour {
        Misbehaviour::new(faults, key, Sectors::new(40_000))
    }

    #[test]
    fn failures_do_not_depend_on_how_a_request_is_cut() {
        let map = new(&every_kind(), 5);
        let mut tails = Tails::default();
        tails.write(extent(100, 250), ZeroTail::B256, &Silent::Nothing);
        tails.write(extent(160, 100), ZeroTail::B512, &Silent::Nothing);
        let whole = map.first_pass(extent(0, 500), &tails, 9);
        for cut in 1..500_u32 {
            let (left, right) = (
                map.first_pass(extent(0, cut.into()), &tails, 9).all(),
                map.first_pass(extent(cut.into(), u64::from(500 - cut)), &tails, 9).all(),
            );
            let joined: SectorSet = left.iter().chain(right.iter().map(|at| at + cut)).collect();
            assert_eq!(joined, whole.clone().all(), "cut at {cut}");
        }
    }

    #[test]
    fn a_soft_failure_belongs_to_one_request_and_a_hard_one_to_the_medium() {
        let map = new(&faults(0.1, 2.0, 0.1), 5);
        let first_pass = |origin| map.first_pass(extent(0, 300), &Tails::default(), origin);
        let (one, other) = (first_pass(1), first_pass(2));
        assert_eq!(one, first_pass(1));
        assert_ne!(one.soft, other.soft);
        assert_eq!(one.hard, other.hard);
        assert!(!one.hard.is_empty());
    }

    #[test]
    fn soft_failures_and_bursts_add_up_as_independent_chances() {
        let all = every_kind();
        let soft = Faults { retry_rate: all.retry_rate, bursts: all.bursts, ..Faults::NONE };
        let n = 100_000_u64;
        let failed = (0..n)
            .filter(|&drive| {
                !new(&soft, drive).first_pass(extent(7, 1), &Tails::default(), 1).is_empty()
            })
            .count() as f64;
        let (share, law) = (failed / n as f64, soft.retry_rate_total());
        assert!(
            (share - law).abs() <= 4.0 * (law * (1.0 - law) / n as f64).sqrt(),
            "{share} {law}"
        );
    }

    /// What a drive shows of one kind of misbehaviour over a while, as a text.
    fn shows(kind: &str, faults: &Faults) -> String {
        let map = new(faults, 5);
        let at = |n: u64| Instant::ZERO + Nanos::from_millis(n * 37);
        let show = |n: u64| match kind {
            // Hard failures hide soft ones: the kinds are asked one level down.
            "soft" => [ZeroTail::None, ZeroTail::B256, ZeroTail::B512]
                .map(|tail| {
                    format!("{:?}", map.soft.failures(extent(n, 9), tail, n).collect::<Vec<_>>())
                })
                .concat(),
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
                let retry = map.retry(extent(n, 9), &Tails::default(), n, unread, None);
                retry.rotations.to_string()
            }
            "hard" => map.hard.contains(Lba::new(n)).to_string(),
            "slowness" => map.slowdown(at(n)).to_string(),
            "stalls" => format!("{:?}", map.stall_end(at(n))),
            "writes" => format!("{:?}", map.writes.missing(extent(n, 9), n)),
            "misdirected" => format!("{:?}", map.misdirected.landing(extent(n, 9), n)),
            "flips" => format!(
                "{:?} {:?}",
                map.flips.stored(extent(n, 9), n),
                map.flips.at_rest(extent(n, 9))
            ),
            "flushes" => map.flushes.lies(n).to_string(),
            "death" => format!("{:?}", map.death().filter(|&death| death <= at(n))),
            other => panic!("{other}"),
        };
        (0..3_000).map(show).collect()
    }

    /// Each kind alone: its name, the faults with nothing else, those with everything but it.
    fn each_kind() -> [(&'static str, Faults, Faults); 11] {
        let (all, none) = (every_kind(), Faults::NONE);
        let pair = |kind: &'static str, take: fn(&mut Faults, &Faults)| {
            let (mut alone, mut without) = (none, all);
            take(&mut alone, &all);
            take(&mut without, &none);
            (kind, alone, without)
        };
        [
            pair("soft", |to, from| {
                (to.retry_rate, to.adjacency) = (from.retry_rate, from.adjacency);
                to.zero_tails = from.zero_tails;
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
            pair("misdirected", |to, from| to.misdirected_rate = from.misdirected_rate),
            pair("flips", |to, from| to.flip_rate = from.flip_rate),
            pair("flushes", |to, from| to.lying_rate = from.lying_rate),
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

    /// What a drive shows of its retry table: which sectors fail, and what their retries come to.
    fn shows_code(map: &Misbehaviour) -> String {
        let one = |n: u64| {
            let unread = map.first_pass(extent(n, 9), &Tails::default(), n);
            let retry = map.retry(extent(n, 9), &Tails::default(), n, unread.clone(), None);
            format!("{unread:?} {retry:?}")
        };
        (0..3_000).map(one).collect()
    }

    /// A table stands alone for the kinds that it takes the place of, and hangs on none of the others, nor on a change of them.
    #[test]
    fn a_table_shows_and_none_changes_it() {
        let alone = Faults { ecc: super::super::Ecc::shipped("wander-4"), ..Faults::NONE };
        let Faults { retry_rate, adjacency, bursts, rotations, hard_rate, .. } = Faults::NONE;
        let beside = Faults {
            ecc: alone.ecc,
            bursts,
            rotations,
            zero_tails: Faults::NONE.zero_tails,
            ..every_kind()
        };
        let beside = Faults { retry_rate, adjacency, hard_rate, ..beside };
        let mut map = new(&alone, 5);
        let first = shows_code(&map);
        assert_ne!(first, shows_code(&new(&Faults::NONE, 5)));
        assert_eq!(first, shows_code(&new(&beside, 5)));
        // Written again, sectors have other classes; and keep them when other faults come.
        map.mend(extent(0, 3_009), &Silent::Nothing);
        let written = shows_code(&map);
        assert_ne!(written, first);
        map.change(Instant::ZERO, &beside);
        assert_eq!(shows_code(&map), written);
        map.change(Instant::ZERO, &Faults::NONE);
        map.change(Instant::ZERO, &alone);
        assert_eq!(shows_code(&map), written, "what was written is known still");
    }
}
