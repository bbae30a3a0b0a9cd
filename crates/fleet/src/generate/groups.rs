//! Made-up groups of drives in windows of five minutes, healthy or with slow episodes: what detectors are measured on.
//!
//! The log of a drive's latency is a sum:
//!
//! ```text
//!   ln latency = ln 100 us + load of the group + lasting + noise + ln ratio of an episode
//!   noise      = sd (sqrt(1 - SHARE) white + sqrt(SHARE) AR(1) of COEFFICIENT)
//! ```
//!
//! so that noise at 5, 30 and 60 minutes correlates by 0.42, 0.10 and 0.02: within what the drives of PERSEUS show (0.35 to 0.5, 0.05
//! to 0.13, 0.03). The AR part goes on over the hours between two busy ones of a day and begins anew each day.

use std::ops::RangeInclusive;

use levelhead_stats::{Rng, Streams};

use crate::detect::{Reading, Recording, WINDOW, WINDOWS_PER_HOUR, Window};

/// The share of the noise's variance that is autoregressive.
const SHARE: f64 = 0.56;

/// The autoregressive part's correlation from one window to the next.
const COEFFICIENT: f64 = 0.75;

/// Latency at the group's middle load, in microseconds.
const LATENCY_US: f64 = 100.0;

/// Throughput at the group's middle load, in bytes a second.
const THROUGHPUT: f64 = 2e7;

/// Standard deviation of the log of the group's load, from one window to the next of an AR(1) process.
const GROUP_SD: f64 = 0.15;

/// When the first day begins, in unix seconds: 21:00 in China, as the drives of PERSEUS.
const BEGIN: i64 = 1_658_149_200;

const DAY: i64 = 86_400;

/// What groups to make.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupsOptions {
    /// How many groups.
    pub groups: usize,
    /// The fewest and the most drives of a group, each count equally likely.
    pub drives: RangeInclusive<usize>,
    /// Days of records.
    pub days: usize,
    /// Busy hours a day, one after the other; at most 24.
    pub hours_per_day: usize,
    /// The least and the greatest standard deviation of the noise, one for each group, evenly spread.
    pub noise: RangeInclusive<f64>,
    /// Standard deviation of the log of what drives differ by lastingly.
    pub lasting: f64,
    /// Share of readings that are missing.
    pub missing: f64,
    /// Slow episodes, if there are any.
    pub episodes: Option<Episodes>,
}

/// Drives made slow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Episodes {
    /// Share of drives that become slow, at most 1.
    pub share: f64,
    /// The latency of a slow drive over what it would be.
    pub ratio: f64,
    /// The day on which it becomes slow, the first of which is 0; it stays so.
    pub first_day: usize,
    /// How many days it is slow; then it is as before.
    pub days: usize,
}

impl GroupsOptions {
    /// A thousand healthy groups of 5 to 24 drives for 90 days.
    pub const HEALTHY: Self = Self {
        groups: 1000,
        drives: 5..=24,
        days: 90,
        hours_per_day: 3,
        noise: 0.03..=0.25,
        lasting: 0.02,
        missing: 0.0,
        episodes: None,
    };

    fn check(&self) {
        assert!(*self.drives.start() >= 1, "a group has drives");
        assert!(self.drives.start() <= self.drives.end());
        assert!((1..=24).contains(&self.hours_per_day));
        assert!(*self.noise.start() >= 0.0);
        assert!(self.noise.start() <= self.noise.end());
        assert!(self.lasting >= 0.0);
        assert!((0.0..1.0).contains(&self.missing));
        if let Some(episodes) = &self.episodes {
            assert!((0.0..=1.0).contains(&episodes.share));
            assert!(episodes.ratio > 0.0);
        }
    }
}

/// A group and which of its drives are made slow.
#[derive(Clone, Debug, PartialEq)]
pub struct MadeGroup {
    /// Its windows.
    pub recording: Recording,
    /// For each drive, whether an episode was planted.
    pub is_slow: Vec<bool>,
}

/// Group number `idx`: the same for the same options and seed, whatever other groups are made.
///
/// Panics for options that cannot be: shares outside of 0 to 1, bounds in the wrong order, no drive, more than 24 hours a day.
pub fn group(options: &GroupsOptions, seed: u64, idx: usize) -> MadeGroup {
    options.check();
    let streams = Streams::new(seed);
    let mut shape = Normals::new(streams.stream(&format!("group/{idx}/shape")));
    let (fewest, most) = (*options.drives.start(), *options.drives.end());
    let drive_count = fewest + shape.rng.below((most - fewest + 1) as u64) as usize;
    let (calmest, loudest) = (*options.noise.start(), *options.noise.end());
    let noise = calmest + (loudest - calmest) * shape.rng.unit();
    let mut drives: Vec<Drive> = (0..drive_count)
        .map(|drive| {
            let stream = |what: &str| streams.stream(&format!("group/{idx}/drive/{drive}/{what}"));
            let share = options.episodes.map_or(0.0, |episodes| episodes.share);
            Drive {
                noise: Normals::new(stream("noise")),
                missing: stream("missing"),
                lasting: options.lasting * Normals::new(stream("lasting")).next(),
                correlated: 0.0,
                is_slow: stream("episode").unit() < share,
            }
        })
        .collect();
    let mut load = Normals::new(streams.stream(&format!("group/{idx}/load")));
    let windows_per_day = options.hours_per_day * WINDOWS_PER_HOUR;
    let mut windows = Vec::with_capacity(options.days * windows_per_day);
    for day in 0..options.days {
        let mut level = GROUP_SD * load.next();
        for drive in &mut drives {
            drive.correlated = drive.noise.next();
        }
        let slow = options.episodes.filter(|episodes| {
            day >= episodes.first_day && day - episodes.first_day < episodes.days
        });
        let ratio = slow.map_or(1.0, |episodes| episodes.ratio);
        for window in 0..windows_per_day {
            level = 0.9 * level + GROUP_SD * (1.0_f64 - 0.81).sqrt() * load.next();
            let member = |drive: &mut Drive| drive.reading(options, noise, level, ratio);
            windows.push(Window {
                at: BEGIN + day as i64 * DAY + window as i64 * WINDOW,
                members: drives.iter_mut().map(member).collect(),
            });
        }
    }
    MadeGroup {
        recording: Recording {
            group: format!("group_{idx}"),
            drives: (0..drive_count).map(|drive| format!("disk{drive}")).collect(),
            windows,
        },
        is_slow: drives.iter().map(|drive| drive.is_slow).collect(),
    }
}

struct Drive {
    noise: Normals,
    missing: Rng,
    lasting: f64,
    /// The autoregressive part, of variance 1.
    correlated: f64,
    is_slow: bool,
}

impl Drive {
    fn reading(
        &mut self,
        options: &GroupsOptions,
        noise_sd: f64,
        level: f64,
        ratio: f64,
    ) -> Option<Reading> {
        let fresh = (1.0_f64 - COEFFICIENT * COEFFICIENT).sqrt() * self.noise.next();
        self.correlated = COEFFICIENT * self.correlated + fresh;
        let noise = (1.0_f64 - SHARE).sqrt() * self.noise.next() + SHARE.sqrt() * self.correlated;
        let is_missing = options.missing > 0.0 && self.missing.unit() < options.missing;
        let ratio = if self.is_slow { ratio } else { 1.0 };
        let reading = Reading {
            latency_us: LATENCY_US * (level + self.lasting + noise_sd * noise).exp() * ratio,
            load: THROUGHPUT * level.exp(),
        };
        (!is_missing).then_some(reading)
    }
}

/// Draws from the normal distribution of mean 0 and deviation 1, by Marsaglia's polar method.
struct Normals {
    rng: Rng,
    spare: Option<f64>,
}

impl Normals {
    fn new(rng: Rng) -> Self {
        Self { rng, spare: None }
    }

    fn next(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let (x, y) = (2.0 * self.rng.unit() - 1.0, 2.0 * self.rng.unit() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                let factor = (-2.0 * square.ln() / square).sqrt();
                self.spare = Some(y * factor);
                return x * factor;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_correlates_as_the_drives_of_perseus_do() {
        let options = GroupsOptions {
            drives: 1..=1,
            days: 400,
            hours_per_day: 24,
            noise: 0.1..=0.1,
            lasting: 0.0,
            ..GroupsOptions::HEALTHY
        };
        let windows = group(&options, 3, 0).recording.windows;
        let noise: Vec<f64> = windows
            .iter()
            .map(|window| window.members[0].unwrap())
            .map(|reading| (reading.latency_us / LATENCY_US / (reading.load / THROUGHPUT)).ln())
            .collect();
        let product = |lag: usize| {
            let products = noise.iter().zip(&noise[lag..]).map(|(a, b)| a * b);
            products.sum::<f64>() / (noise.len() - lag) as f64
        };
        let variance = product(0);
        assert!((variance.sqrt() - 0.1).abs() < 0.002, "{variance}");
        for (lag, expected) in [(1, 0.42), (6, 0.10), (12, 0.018)] {
            let correlation = product(lag) / variance;
            assert!((correlation - expected).abs() < 0.02, "{lag}: {correlation}");
        }
    }

    #[test]
    fn a_group_depends_on_its_seed_and_number_alone() {
        let options = GroupsOptions { days: 1, missing: 0.2, ..GroupsOptions::HEALTHY };
        assert_eq!(group(&options, 1, 5), group(&options, 1, 5));
        assert_ne!(group(&options, 1, 5).recording, group(&options, 1, 6).recording);
        assert_ne!(group(&options, 1, 5).recording, group(&options, 2, 5).recording);
        let readings = (0..50).map(|idx| group(&options, 1, idx).recording).flat_map(|made| {
            assert!((5..=24).contains(&made.drives.len()));
            assert_eq!(made.windows.len(), 36);
            made.windows.into_iter().flat_map(|window| window.members)
        });
        let (mut count, mut missing) = (0, 0);
        for reading in readings {
            count += 1;
            missing += usize::from(reading.is_none());
        }
        let share = f64::from(u32::try_from(missing).unwrap()) / f64::from(count);
        assert!((share - 0.2).abs() < 0.01, "{share}");
    }

    #[test]
    fn an_episode_is_slow_on_its_days_alone() {
        let episodes = Episodes { share: 1.0, ratio: 3.0, first_day: 1, days: 1 };
        let options = GroupsOptions {
            drives: 5..=5,
            days: 3,
            noise: 0.0..=0.0,
            lasting: 0.0,
            episodes: Some(episodes),
            ..GroupsOptions::HEALTHY
        };
        let made = group(&options, 1, 0);
        assert!(made.is_slow.iter().all(|&is_slow| is_slow));
        for (number, window) in made.recording.windows.iter().enumerate() {
            let reading = window.members[0].unwrap();
            let ratio = reading.latency_us / LATENCY_US / (reading.load / THROUGHPUT);
            let expected = if number / 36 == 1 { 3.0 } else { 1.0 };
            assert!((ratio - expected).abs() < 1e-9, "{number}: {ratio}");
        }
    }
}
