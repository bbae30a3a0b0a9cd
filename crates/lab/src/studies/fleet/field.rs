//! What reading around drives is worth to arrays as they are in the field, and not only to those of a headline.
//!
//! One seed is one array, drawn: how often its drives recover reads, how much is read, how slow they are in each hour. The same array
//! serves the same reads under `normal` and under `level`. So a row's interval is over arrays, and its mean is weighted as the field is.
//!
//! ```text
//!   recoveries  a model by its share of disks, then each drive by the quantiles of such models; or each drive by those of all
//!   load        reads a second and drive, by their quantiles
//!   slowness    [TAIL16]'s distribution, anew each hour for 60 % of drives; an hour lasts a minute here
//! ```
//!
//! The quantiles are those of 23,703 server disks of 161 models with at least 20 disks each and at least a million reads a disk, of
//! linuxhw/EnterpriseDrive (CC BY 4.0, Linux Hardware Project): read recovery attempts per read command over a disk's life, and read
//! commands per hour powered on. What is left out: recoveries come evenly over life here, and makers count unlike things; the owners
//! are few. A recovery takes three revolutions, as in the headline.

use levelhead_array::{HostOrder, Policy};
use levelhead_drive::Faults;
use levelhead_stats::{Rng, Streams};

use super::super::bed::Bed;
use super::super::{Ask, Cell, Head, Load, Measured, Row, Study, StudyPlan, Takes, Unit};

pub(super) fn studies() -> Vec<Study> {
    vec![FIELD]
}

const FIELD: Study = Study {
    name: "fleet.field",
    title: "What reading around drives is worth over the field",
    source: "[TAIL16], [ERAID], and the disks of linuxhw/EnterpriseDrive",
    says: "The headline has 2 % of the sectors of all drives failing at first. Of server disks 63 % have never recovered a read, and 1.3 % \
           recover one command in a hundred or more; 0.22 % of drive hours are twice as slow as the group's median.",
    bed: "raid6:6+2,chunk=512KiB over eight nearline-2tb (7200 rpm), SPTF in the drive, window 32, host order elevator; Poisson reads of \
          168 KiB at random places; ten hours of a minute each. One seed is one array of the field",
    seeds_quick: 6,
    seeds_full: 120,
    takes: Takes::Nothing,
    plan: |ask| Ok(plan(ask)),
};

const ARRAY: &str = "raid6:6+2,chunk=512KiB";

const DRIVES: usize = 8;

/// Sectors of a read: the field's median, 169 KiB.
const READ_SECTORS: f64 = 42.0;

/// Commands to drives that a read makes on average: it crosses a chunk's end with probability 41 in 128.
const COMMANDS: f64 = 1.0 + 41.0 / 128.0;

/// Seconds that stand for an hour, and hours.
const HOUR: f64 = 60.0;
const HOURS: f64 = 10.0;

/// Gains that count, in percent.
const WORTH: f64 = 5.0;

/// A value that is drawn by its quantiles: on a straight line between two, or, where both are above 0, between their logarithms.
type Quantiles = [Quantile; 9];

#[derive(Clone, Copy, Debug)]
struct Quantile {
    share: f64,
    value: f64,
}

const fn quantiles(values: [f64; 9]) -> Quantiles {
    let shares = [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0];
    let mut all = [Quantile { share: 0.0, value: 0.0 }; 9];
    let mut at = 0;
    while at < 9 {
        all[at] = Quantile { share: shares[at], value: values[at] };
        at += 1;
    }
    all
}

/// Models by how often their disks recover reads.
#[derive(Clone, Copy, Debug)]
struct Models {
    /// The share of all disks.
    share: f64,
    /// Recoveries per read command of their disks.
    recoveries: Quantiles,
}

const MODELS: [Models; 4] = [
    // 134 models: nine in ten of their disks are below 1e-5.
    Models {
        share: 0.9341,
        recoveries: quantiles([0.0, 0.0, 0.0, 0.0, 3.6e-9, 6.5e-8, 2.7e-7, 7.5e-6, 6.4e-4]),
    },
    // 8 models with a median below 1e-4.
    Models {
        share: 0.0139,
        recoveries: quantiles([0.0, 0.0, 9.1e-9, 7.1e-7, 4.4e-6, 1.4e-4, 4.6e-3, 5.1e-3, 7.1e-3]),
    },
    // 15 models with one below 5e-3.
    Models {
        share: 0.0379,
        recoveries: quantiles([0.0, 4.9e-8, 1.4e-4, 1.2e-3, 3.6e-3, 1.4e-2, 2.0e-2, 2.7e-2, 0.18]),
    },
    // 4 models with one above that.
    Models {
        share: 0.0141,
        recoveries: quantiles([
            5.8e-9, 1.6e-3, 4.5e-3, 1.1e-2, 4.0e-2, 4.1e-2, 4.2e-2, 4.4e-2, 5.3e-2,
        ]),
    },
];

/// Read commands a second and disk, over life. Above 60 a second a drive of this kind has no time left: 2 % of disks count as that.
const READS: Quantiles = quantiles([0.1, 3.0, 6.1, 12.2, 19.2, 31.1, 40.6, 60.0, 60.0]);

impl Models {
    fn draw(rng: &mut Rng) -> Self {
        let mut left = rng.unit();
        for models in MODELS {
            if left < models.share {
                return models;
            }
            left -= models.share;
        }
        MODELS[0]
    }
}

fn draw(quantiles: &Quantiles, rng: &mut Rng) -> f64 {
    let share = rng.unit();
    let at = quantiles.iter().rposition(|one| one.share <= share).unwrap_or(0).min(7);
    let [from, to] = [quantiles[at], quantiles[at + 1]];
    let part = (share - from.share) / (to.share - from.share);
    if from.value > 0.0 {
        from.value * (to.value / from.value).powf(part)
    } else {
        from.value + (to.value - from.value) * part
    }
}

/// Which drives an array has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drives {
    /// All of one model.
    OneModel,
    /// Each of any.
    Mixed,
    /// 2 % of all sectors fail at first.
    Headline,
    /// None recovers a read, and none is ever slow.
    Healthy,
}

impl Drives {
    const ALL: [Self; 4] = [Self::OneModel, Self::Mixed, Self::Headline, Self::Healthy];

    const fn name(self) -> &'static str {
        match self {
            Self::OneModel => "the field, one model",
            Self::Mixed => "the field, mixed",
            Self::Headline => "2 % of the sectors of all drives",
            Self::Healthy => "healthy",
        }
    }

    /// How each drive of one array misbehaves.
    fn faults(self, rng: &mut Rng) -> Vec<Faults> {
        let models = Models::draw(rng);
        let one = |rng: &mut Rng| {
            let text = match self {
                Self::Healthy => "retry-rate=0%".to_owned(),
                Self::Headline => "retry-rate=2%,rotations=3,adjacency=2".to_owned(),
                Self::OneModel | Self::Mixed => {
                    let models = if self == Self::Mixed { Models::draw(rng) } else { models };
                    let command = draw(&models.recoveries, rng);
                    let sector = 1.0 - (1.0 - command).powf(1.0 / READ_SECTORS);
                    let percent = sector * 100.0;
                    format!("retry-rate={percent:.12}%,rotations=3,adjacency=2,field={HOUR}s/40%")
                }
            };
            text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
        };
        (0..DRIVES).map(|_| one(rng)).collect()
    }
}

const MEAN_GAIN: &str = "mean, saved";
const P99_GAIN: &str = "p99, saved";
const IS_WORTH: &str = "arrays that save 5 % of mean or p99";

fn plan(_ask: &Ask) -> StudyPlan {
    let mut plan = StudyPlan::default();
    for drives in Drives::ALL {
        plan.cells.push(Cell::new(drives.name(), move |seed| measure(drives, seed)));
        for metric in [MEAN_GAIN, P99_GAIN, IS_WORTH, "reads added"] {
            plan.rows.push(Row::of(drives.name(), metric, Unit::Percent));
        }
        for metric in ["mean of normal", "p99 of normal"] {
            plan.rows.push(Row::of(drives.name(), metric, Unit::Millis));
        }
        plan.rows.push(Row::new(
            Head::new(drives.name(), "reads a second and drive"),
            Unit::Count,
            move |seed| seed.get(drives.name(), "reads a second and drive"),
        ));
    }
    plan.remarks.push(
        "Each row is a mean over arrays with its interval; the same arrays and reads under both policies. A recovery rate of the field is \
         one per command of 168 KiB, and the headline's is one per sector: 57 % of such commands."
            .to_owned(),
    );
    plan
}

fn measure(drives: Drives, seed: u64) -> Result<Measured, String> {
    let streams = Streams::new(seed);
    let faults = drives.faults(&mut streams.stream("fleet/recoveries"));
    let reads = draw(&READS, &mut streams.stream("fleet/reads"));
    let interval = COMMANDS / (reads * DRIVES as f64);
    let count = ((HOUR * HOURS / interval) as u64).max(200);
    let micros = (interval * 1e6).round() as u64;
    let load = Load::synthetic(&format!("size=168KiB,interval={micros}us,count={count}"));
    let bed = Bed { faults, ..Bed::paper() }.with_array(ARRAY).with_queue(32, HostOrder::Elevator);
    let [normal, level] = [Policy::Normal, "level".parse().expect("a policy")]
        .map(|policy| bed.measure(policy, &load, seed));
    let (normal, level) = (normal?, level?);
    // An array that is overloaded has times without bound.
    let saved = |metric: &str| match (level.values[metric], normal.values[metric]) {
        (level, normal) if level.is_infinite() && normal.is_infinite() => 0.0,
        (level, normal) => (1.0 - level / normal) * 100.0,
    };
    let (mean, p99) = (saved("mean"), saved("p99"));
    let is_worth = if mean >= WORTH || p99 >= WORTH { 100.0 } else { 0.0 };
    Ok(Measured::default()
        .with(MEAN_GAIN, mean)
        .with(P99_GAIN, p99)
        .with(IS_WORTH, is_worth)
        .with("reads added", (level.values["reads"] / normal.values["reads"] - 1.0) * 100.0)
        .with("mean of normal", normal.values["mean"])
        .with("p99 of normal", normal.values["p99"])
        .with("reads a second and drive", reads))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_drawn_as_the_field_is() {
        assert!((MODELS.iter().map(|models| models.share).sum::<f64>() - 1.0).abs() < 1e-9);
        let mut rng = Streams::new(1).stream("fleet");
        let n = 100_000;
        let drawn: Vec<f64> = (0..n)
            .map(|_| {
                let models = Models::draw(&mut rng);
                draw(&models.recoveries, &mut rng)
            })
            .collect();
        let share =
            |from: f64| drawn.iter().filter(|rate| **rate >= from).count() as f64 / n as f64;
        // Of all disks with a million reads, 1.3 % recover one command in a hundred or more and 0.8 % one in fifty.
        assert!((0.008..0.018).contains(&share(1e-2)), "{}", share(1e-2));
        assert!((0.004..0.012).contains(&share(2e-2)), "{}", share(2e-2));
        let reads: f64 = (0..n).map(|_| draw(&READS, &mut rng)).sum::<f64>() / f64::from(n);
        assert!((13.0..17.0).contains(&reads), "{reads}");
    }

    #[test]
    fn every_array_of_the_field_can_be_had() {
        for seed in 0..300 {
            let mut rng = Streams::new(seed).stream("faults");
            assert!(Drives::ALL.iter().all(|drives| drives.faults(&mut rng).len() == DRIVES));
        }
    }

    #[test]
    fn an_array_of_the_headline_saves_and_the_same_seed_says_the_same() {
        let [one, again] = [0, 1].map(|_| measure(Drives::Headline, 3).unwrap());
        assert_eq!(one.values, again.values);
        assert!(one.values[P99_GAIN] > WORTH, "{:?}", one.values);
        let healthy = measure(Drives::Healthy, 3).unwrap();
        assert!(healthy.values[MEAN_GAIN].abs() < WORTH, "{:?}", healthy.values);
    }
}
