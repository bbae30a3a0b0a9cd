//! How many times as long a drive takes, and when.
//!
//! Four causes, each with its own chance; their factors multiply, up to 1000 together. A service
//! takes the factor of the moment at which it begins. All of it is a function of the drive and the
//! time, and of nothing else: two policies meet the same slow hours.
//!
//! # Episodes
//!
//! A drive is slow and well by turns, each for an exponentially distributed time of mean `slow` and
//! `well`: a Markov chain of two states in continuous time. It is read from a hash by *uniformization*:
//! at the points of a Poisson process of rate `1/slow + 1/well` the state is drawn anew, slow with
//! probability `pi = slow / (slow + well)`. That is the same chain: a slow drive becomes well at rate
//! `(1/slow + 1/well) (1 - pi) = 1/slow`. So
//!
//! ```text
//! P(slow at t) = pi           P(slow at t + s | slow at t) = pi + (1 - pi) exp(-s (1/slow + 1/well))
//! ```
//!
//! # Periods
//!
//! Slow for a duration once in every period, from `offset` on. Both may be ranges, `2h-3h` and
//! `3min-6min`: with the mean period `P` = 150 min and half of the range `J` = 30 min, number `k` begins
//! at `offset + k P + U`, `U` even in 0 to `J`, so that one beginning is 2 to 3 hours after the other,
//! and lasts for a time that is even in its range. In the mean a share of `E[duration] / P` is slow.
//!
//! # The field
//!
//! Every `interval` of a drive has a factor drawn from the distribution that `[TAIL16]` measured on
//! 458,482 disks: an hour's mean latency against the median of the drive's group. With probability
//! `persistence` an interval keeps the factor of the one before, so that
//!
//! ```text
//! P(factor >= x)               = the field's, in every interval
//! P(still >= 2 | was >= 2)     = persistence + (1 - persistence) 0.22 %
//! ```
//!
//! 40 % reproduces the field's share of slow hours followed by another; its long slowdowns (13 % last
//! for eight hours) are more than a chain without memory gives.
//!
//! # References
//!
//! - `[TAIL16]` drive slowdowns in the field, "The Tail at Store", table of `S_i` of disks.

use levelhead_units::{Instant, Nanos, Ratio};

use super::parts::{Parsed, fields, number, unit};
use super::points::Points;
use super::text::Form;
use super::values::{Between, SLOWDOWN_MAX};
use super::{Coin, Faults, FaultsError, Key};

/// Slow and well by turns, for random times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Episodes {
    /// The mean time of being slow, from a microsecond to a year.
    pub slow: Nanos,
    /// The mean time of being well, from a microsecond to a year.
    pub well: Nanos,
    /// How many times as long everything takes meanwhile, from 1 to 1000.
    pub factor: f64,
}

/// Slow at regular times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Periodic {
    /// The time from one beginning to the next.
    pub period: Between,
    /// How long it lasts each time. It ends before the next time begins.
    pub duration: Between,
    /// When the first one begins (or, where the period is a range, may begin), at most a period after
    /// the run; if left out, each drive has its own, drawn evenly from the period.
    pub offset: Option<Nanos>,
    /// How many times as long everything takes meanwhile, from 1 to 1000.
    pub factor: f64,
}

/// As slow as drives in the field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field {
    /// How long a factor lasts; an hour in the field.
    pub interval: Nanos,
    /// The probability that an interval keeps its predecessor's factor, at most 99 %; 40 % in the
    /// field.
    pub persistence: Ratio,
}

/// The shortest and longest times of all this.
const TIME_MIN: Nanos = Nanos::from_micros(1);
const TIME_MAX: Nanos = Nanos::from_secs(366 * 86_400);

/// The largest persistence: the last interval with a factor of its own is then found after a short search.
const PERSISTENCE_MAX: f64 = 0.99;

/// The field's distribution: the share of drive hours whose factor is larger, and the factor, from
/// the digest's percentiles (1.1 at 90 %) and inverse percentiles (97.0 % at 1.2). Between two of them
/// the factor's logarithm is linear in the share's. Half of all hours are no slower than the median.
pub(crate) const FIELD: [(f64, f64); 10] = [
    (0.5, 1.0),
    (0.1, 1.1),
    (0.03, 1.2),
    (0.01, 1.4),
    (0.007, 1.5),
    (0.0022, 2.0),
    (0.001, 2.7),
    (0.0004, 4.0),
    (0.0001, 9.0),
    (0.00001, 30.0),
];

/// The factor that a share `rest` of all drive hours exceeds.
pub(crate) fn field_factor(rest: f64) -> f64 {
    if rest >= FIELD[0].0 {
        return FIELD[0].1;
    }
    // Beyond the last known share the line goes on.
    let at = FIELD[1..FIELD.len() - 1].partition_point(|&(share, _)| rest < share);
    let ((share, factor), (share_next, factor_next)) = (FIELD[at], FIELD[at + 1]);
    let way = (rest / share).ln() / (share_next / share).ln();
    (factor * (way * (factor_next / factor).ln()).exp()).min(SLOWDOWN_MAX)
}

fn check_factor(slowdown: f64) -> Result<(), FaultsError> {
    if (1.0..=SLOWDOWN_MAX).contains(&slowdown) {
        return Ok(());
    }
    Err(FaultsError::Slowdown { slowdown })
}

pub(super) fn check_time(what: &'static str, time: Nanos) -> Result<(), FaultsError> {
    if (TIME_MIN..=TIME_MAX).contains(&time) {
        return Ok(());
    }
    Err(FaultsError::Time { what, time, least: TIME_MIN, most: TIME_MAX })
}

impl Episodes {
    /// The share of time in which the drive is slow: `pi`.
    pub fn share(&self) -> f64 {
        let (slow, well) = (self.slow.get() as f64, self.well.get() as f64);
        slow / (slow + well)
    }

    /// The probability that the drive is slow when `time` has passed since it was slow: persistence.
    pub fn share_after(&self, time: Nanos) -> f64 {
        let rate = 1.0 / self.slow.get() as f64 + 1.0 / self.well.get() as f64;
        let share = self.share();
        share + (1.0 - share) * (-rate * time.get() as f64).exp()
    }

    fn check(&self) -> Result<(), FaultsError> {
        check_time("the mean time of being slow", self.slow)?;
        check_time("the mean time of being well", self.well)?;
        check_factor(self.factor)
    }
}

impl Periodic {
    /// The share of time in which the drive is slow.
    pub fn share(&self) -> f64 {
        let Between { least, most } = self.duration;
        (least + most).get() as f64 / (2.0 * self.cycle() as f64)
    }

    /// The mean period: `P`.
    fn cycle(&self) -> u64 {
        self.period.least.get().midpoint(self.period.most.get())
    }

    fn check(&self) -> Result<(), FaultsError> {
        let Self { period, duration, offset, factor } = *self;
        check_time("the period of slowness", period.least)?;
        check_time("the period of slowness", period.most)?;
        check_factor(factor)?;
        let late = (period.most.saturating_sub(period.least)).get() / 2;
        let ordered = period.least <= period.most && duration.least <= duration.most;
        let fits = duration.most.get().checked_add(late).is_some_and(|end| end <= self.cycle());
        if !ordered || !fits || offset.is_some_and(|offset| offset.get() > self.cycle()) {
            return Err(FaultsError::Periodic { period, duration });
        }
        Ok(())
    }

    /// Whether the drive whose first period begins at `offset` is slow at `at`.
    fn is_slow(&self, key: Key, offset: u64, at: u64) -> bool {
        let cycle = self.cycle();
        // One cycle more lies before the beginning.
        let since = at + (cycle - offset % cycle);
        let (number, since) = (since / cycle, since % cycle);
        let draw = |coin, most: u64| match most {
            0 => 0,
            most => (key.coin(coin, 0, number) * most as f64) as u64,
        };
        let begin = draw(Coin::PeriodBegin, (self.period.most - self.period.least).get() / 2);
        let longer = draw(Coin::PeriodLength, (self.duration.most - self.duration.least).get());
        (begin..begin + self.duration.least.get() + longer).contains(&since)
    }
}

impl Field {
    /// As the field has it: every hour, 40 % of the slow hours followed by another.
    pub fn measured() -> Self {
        Self { interval: Nanos::from_secs(3_600), persistence: Ratio::of(40, 100) }
    }

    fn check(&self) -> Result<(), FaultsError> {
        check_time("the interval of a factor", self.interval)?;
        if self.persistence.get() > PERSISTENCE_MAX {
            return Err(FaultsError::Persistence { persistence: self.persistence });
        }
        Ok(())
    }
}

impl Form for Episodes {
    fn read(text: &str) -> Parsed<Self> {
        let [slow, well, factor] = fields(text, "SLOW/WELL/FACTOR, as in 20s/5min/5")?;
        Ok(Self { slow: unit(slow)?, well: unit(well)?, factor: number(factor)? })
    }

    fn show(&self) -> String {
        let Self { slow, well, factor } = self;
        format!("{slow}/{well}/{factor}")
    }
}

impl Form for Periodic {
    fn read(text: &str) -> Parsed<Self> {
        const FORM: &str =
            "PERIOD/DURATION/FACTOR or PERIOD/DURATION/FACTOR/OFFSET, as in 2h/4min/5";
        let (offset, [period, duration, factor]) = match text.splitn(4, '/').nth(3) {
            Some(offset) => {
                (Some(unit(offset)?), fields(&text[..text.len() - offset.len() - 1], FORM)?)
            }
            None => (None, fields(text, FORM)?),
        };
        let (period, duration) = (Between::read(period)?, Between::read(duration)?);
        Ok(Self { period, duration, offset, factor: number(factor)? })
    }

    fn show(&self) -> String {
        let Self { period, duration, offset, factor } = self;
        let offset = offset.map_or(String::new(), |offset| format!("/{offset}"));
        format!("{period}/{duration}/{factor}{offset}")
    }
}

impl Form for Field {
    fn read(text: &str) -> Parsed<Self> {
        let Some((interval, persistence)) = text.split_once('/') else {
            return Ok(Self { interval: unit(text)?, ..Self::measured() });
        };
        Ok(Self { interval: unit(interval)?, persistence: unit(persistence)? })
    }

    fn show(&self) -> String {
        let Self { interval, persistence } = self;
        format!("{interval}/{persistence}")
    }
}

pub(super) fn check_slowdown(faults: &Faults) -> Result<(), FaultsError> {
    check_factor(faults.slowdown)
}

pub(super) fn check_episodes(faults: &Faults) -> Result<(), FaultsError> {
    faults.episodes.map_or(Ok(()), |episodes| episodes.check())
}

pub(super) fn check_periodic(faults: &Faults) -> Result<(), FaultsError> {
    faults.periodic.map_or(Ok(()), |periodic| periodic.check())
}

pub(super) fn check_field(faults: &Faults) -> Result<(), FaultsError> {
    faults.field.map_or(Ok(()), |field| field.check())
}

/// How slow one drive is, at any time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slowness {
    key: Key,
    constant: f64,
    /// The causes that come and go; `None` where there are none, which costs nothing.
    passing: Option<Passing>,
}

#[derive(Clone, Copy, Debug)]
struct Passing {
    episodes: Option<(Points, Episodes)>,
    periodic: Option<(u64, Periodic)>,
    field: Option<Field>,
}

impl Slowness {
    pub(crate) fn new(faults: &Faults, key: Key) -> Self {
        let passing = Passing {
            episodes: faults.episodes.map(|episodes| {
                let (slow, well) = (episodes.slow.get() as f64, episodes.well.get() as f64);
                let gap = (slow * well / (slow + well)).round() as u64;
                (Points::new(key.of(Coin::Episode), gap.max(1), gap.max(1)), episodes)
            }),
            periodic: faults.periodic.map(|periodic| {
                let own = Key::unit(key.of(Coin::Period)) * periodic.cycle() as f64;
                (periodic.offset.map_or(own as u64, Nanos::get), periodic)
            }),
            field: faults.field,
        };
        let some = faults.episodes.is_some() || faults.periodic.is_some() || faults.field.is_some();
        Self { key, constant: faults.slowdown, passing: some.then_some(passing) }
    }

    /// How many times as long a service takes that begins at `at`.
    pub(crate) fn factor(&self, at: Instant) -> f64 {
        let Some(Passing { episodes, periodic, field }) = &self.passing else {
            return self.constant;
        };
        let at = at.as_nanos();
        let mut factor = self.constant;
        if let Some((points, episodes)) = episodes {
            // Before the first point there is a draw like any other.
            let mark = points.last_before(at).map_or(0, |point| point.mark);
            if self.key.coin(Coin::Slow, 0, mark) < episodes.share() {
                factor *= episodes.factor;
            }
        }
        if let Some((offset, periodic)) = periodic
            && periodic.is_slow(self.key, *offset, at)
        {
            factor *= periodic.factor;
        }
        if let Some(Field { interval, persistence }) = field {
            let mut drawn = at / interval.get();
            while drawn > 0 && self.key.coin(Coin::Persist, 0, drawn) < persistence.get() {
                drawn -= 1;
            }
            // From above 0 to 1.
            factor *= field_factor(1.0 - self.key.coin(Coin::Field, 0, drawn));
        }
        factor.min(SLOWDOWN_MAX)
    }
}

#[cfg(test)]
mod tests {
    use levelhead_testkit::check_share;

    use super::*;

    const N: u64 = 40_000;

    fn at(time: Nanos) -> Instant {
        Instant::ZERO + time
    }

    fn slow(faults: &Faults, drive: u64, time: Nanos) -> bool {
        Slowness::new(faults, Key::new(drive)).factor(at(time)) > 1.0
    }

    #[test]
    fn episodes_have_their_share_and_their_persistence() {
        for (slow_mean, well) in [(20, 300), (100, 100), (5, 1)] {
            let episodes = Episodes {
                slow: Nanos::from_secs(slow_mean),
                well: Nanos::from_secs(well),
                factor: 5.0,
            };
            let faults = Faults { episodes: Some(episodes), ..Faults::NONE };
            faults.check().unwrap();
            for begin in [Nanos::ZERO, Nanos::from_secs(100_000)] {
                for later in [1, 10, 50, 1_000].map(Nanos::from_secs) {
                    let first: Vec<u64> = (0..N).filter(|&d| slow(&faults, d, begin)).collect();
                    check_share("share", first.len() as u64, N, episodes.share());
                    let still = first.iter().filter(|&&d| slow(&faults, d, begin + later)).count();
                    let law = episodes.share_after(later);
                    check_share("persistence", still as u64, first.len() as u64, law);
                }
            }
        }
    }

    /// Exponential times of being slow: the mean, and the share above twice the mean.
    #[test]
    fn episodes_last_for_exponential_times() {
        let mean = Nanos::from_secs(20);
        let episodes = Episodes { slow: mean, well: Nanos::from_secs(60), factor: 5.0 };
        let faults = Faults { episodes: Some(episodes), ..Faults::NONE };
        let slowness = Slowness::new(&faults, Key::new(3));
        let step = Nanos::from_millis(100);
        let (mut lengths, mut length) = (Vec::new(), Nanos::ZERO);
        for tick in 0..8_000_000_u64 {
            if slowness.factor(at(step * tick)) > 1.0 {
                length += step;
            } else if length > Nanos::ZERO {
                lengths.push(length.as_secs_f64());
                length = Nanos::ZERO;
            }
        }
        let count = lengths.len() as f64;
        assert!(count > 5_000.0, "{count} episodes");
        let average = lengths.iter().sum::<f64>() / count;
        // Ticks miss the shortest episodes, which makes the others' mean half a tick longer at most.
        assert!((average - 20.0).abs() < 4.0 * 20.0 / count.sqrt() + 0.1, "{average} s");
        let long = lengths.iter().filter(|&&length| length > 40.0).count() as u64;
        check_share("twice the mean", long, count as u64, (-2.0_f64).exp());
    }

    #[test]
    fn periods_begin_at_the_offset_and_last_for_the_duration() {
        let periodic = Periodic {
            period: Nanos::from_secs(100).into(),
            duration: Nanos::from_secs(10).into(),
            offset: Some(Nanos::from_secs(95)),
            factor: 5.0,
        };
        let faults = Faults { periodic: Some(periodic), ..Faults::NONE };
        for cycle in [0, 1, 1_000] {
            for (second, expected) in [(4, true), (5, false), (94, false), (95, true), (99, true)] {
                let time = Nanos::from_secs(cycle * 100 + second);
                assert_eq!(slow(&faults, 1, time), expected, "{cycle}, {second}");
            }
        }
        // Without an offset each drive has its own.
        let own = Faults { periodic: Some(Periodic { offset: None, ..periodic }), ..Faults::NONE };
        let seen = (0..N).filter(|&drive| slow(&own, drive, Nanos::from_secs(77))).count();
        check_share("share", seen as u64, N, periodic.share());
    }

    /// The periodic load of `[TAIL16]`: slow for 3 to 6 minutes every 2 to 3 hours.
    #[test]
    fn ranges_of_periods_keep_their_limits_and_their_share() {
        let faults: Faults = "periodic=7200s-10800s/180s-360s/5".parse().unwrap();
        let law = faults.periodic.unwrap().share();
        assert!((law - 0.03).abs() < 1e-12, "{law}");
        for time in [Nanos::ZERO, Nanos::from_secs(1_234_567)] {
            let seen = (0..N).filter(|&drive| slow(&faults, drive, time)).count();
            check_share("share", seen as u64, N, law);
        }
        let slowness = Slowness::new(&faults, Key::new(11));
        let is_slow = |second: u64| slowness.factor(at(Nanos::from_secs(second))) > 1.0;
        let edges = |to: bool| -> Vec<u64> {
            (1..8_000_000).filter(|&s| is_slow(s) == to && is_slow(s - 1) != to).collect()
        };
        let (begins, ends) = (edges(true), edges(false));
        let first = usize::from(ends[0] < begins[0]);
        let lengths = ends[first..].iter().zip(&begins).map(|(end, begin)| end - begin);
        let gaps = begins.windows(2).map(|pair| pair[1] - pair[0]);
        for (what, least, most, seen) in [
            ("duration", 180, 360, lengths.collect::<Vec<u64>>()),
            ("period", 7_200, 10_800, gaps.collect()),
        ] {
            assert!(seen.len() > 800, "{what}: {}", seen.len());
            // Seconds are whole: one may be missing at either end.
            assert!(seen.iter().all(|s| (least - 1..=most + 1).contains(s)), "{what}");
            let mean = seen.iter().sum::<u64>() as f64 / seen.len() as f64;
            let expected = (least + most) as f64 / 2.0;
            let error = (most - least) as f64 / (12.0 * seen.len() as f64).sqrt();
            assert!((mean - expected).abs() < 4.0 * error, "{what}: {mean}");
        }
        // A late beginning makes a gap long, and must not make the duration longer.
        let lasts = |begin: u64| (begin..).find(|&second| !is_slow(second)).unwrap() - begin;
        let pairs = begins.windows(2).map(|pair| (pair[1] - pair[0], lasts(pair[1])));
        let products = pairs.clone().map(|(gap, long)| (gap as f64 - 9e3) * (long as f64 - 270.0));
        let (covariance, count) = (products.sum::<f64>() / pairs.len() as f64, pairs.len() as f64);
        // Deviations of the sum of two even draws of half an hour, and of one of three minutes.
        let error = 1_800.0 / 6.0_f64.sqrt() * 180.0 / 12.0_f64.sqrt() / count.sqrt();
        assert!(covariance.abs() < 4.0 * error, "{covariance}, error {error}");
    }

    #[test]
    fn the_field_is_as_slow_as_it_was_measured() {
        let faults = Faults { field: Some(Field::measured()), ..Faults::NONE };
        faults.check().unwrap();
        let n = 1_000_000_u64;
        let hour = Nanos::from_secs(3_600);
        let factors: Vec<f64> = (0..n)
            .map(|drive| Slowness::new(&faults, Key::new(drive)).factor(at(hour * 50)))
            .collect();
        for (rest, factor) in &FIELD[1..] {
            // A knot's own factor comes out of a logarithm and may be a rounding less.
            let seen = factors.iter().filter(|&&seen| seen >= factor - 1e-9).count();
            check_share("the field", seen as u64, n, *rest);
        }
        // The digest's own percentile, not used as a knot.
        let mut sorted = factors;
        sorted.sort_by(f64::total_cmp);
        let p95 = sorted[n as usize / 100 * 95];
        assert_eq!(format!("{p95:.1}"), "1.2");
    }

    #[test]
    fn slow_hours_follow_each_other_as_often_as_measured() {
        let hour = Nanos::from_secs(3_600);
        // Slow is a threshold anywhere; a frequent one is counted sooner.
        let (law, limit) = (0.03, 1.2);
        for persistence in [0.0, 0.4, 0.9] {
            let field = Field { interval: hour, persistence: Ratio::new(persistence).unwrap() };
            let faults = Faults { field: Some(field), ..Faults::NONE };
            let is_slow = |drive: u64, hours: u64| {
                let slowness = Slowness::new(&faults, Key::new(drive));
                slowness.factor(at(hour * hours + Nanos::from_secs(9))) >= limit - 1e-9
            };
            let first: Vec<u64> = (0..200_000).filter(|&drive| is_slow(drive, 60)).collect();
            check_share("slow", first.len() as u64, 200_000, law);
            let still = first.iter().filter(|&&drive| is_slow(drive, 61)).count() as u64;
            let expected = persistence + (1.0 - persistence) * law;
            check_share("still slow", still, first.len() as u64, expected);
        }
    }

    #[test]
    fn factors_multiply_up_to_the_limit() {
        let periodic = Periodic {
            period: Nanos::from_secs(1).into(),
            duration: Nanos::from_secs(1).into(),
            offset: None,
            factor: 7.0,
        };
        let faults = Faults { slowdown: 3.0, periodic: Some(periodic), ..Faults::NONE };
        let check = |factor: f64, law: f64| assert!((factor / law - 1.0).abs() < 1e-12, "{factor}");
        check(Slowness::new(&faults, Key::new(1)).factor(Instant::ZERO), 21.0);
        let most = Faults { slowdown: 800.0, ..faults };
        check(Slowness::new(&most, Key::new(1)).factor(Instant::ZERO), SLOWDOWN_MAX);
        check(field_factor(1e-30), SLOWDOWN_MAX);
    }
}
