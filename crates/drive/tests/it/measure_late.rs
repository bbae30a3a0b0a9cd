//! A measurement on a machine whose threads wake up late: it answers what is right, or not at all. Time
//! is virtual and lateness planted.

use std::collections::BTreeMap;

use levelhead_block::{Command, Effort};
use levelhead_drive::measure::{
    MeasureError, Measured, Measurement, Options, Read, Seek, Thoroughness, Wake,
};
use levelhead_drive::{Drive, Profile, Settings};
use levelhead_stats::{Rng, Streams};
use levelhead_units::{Instant, Nanos, Sectors};

use crate::truth::{positioning, positioning_between, rate};

/// How late the threads of a machine are.
#[derive(Clone, Copy, Debug)]
struct Machine {
    /// Median lateness of wake-ups for a time and for a message; for an answer it is half of the latter. Half of them are later by an
    /// exponentially distributed time.
    timer: Nanos,
    message: Nanos,
    /// By which part the drive's own threads may be more or less late than others, another one in each run.
    unlike: f64,
    /// The share of wake-ups that wait for something else to run first.
    busy: f64,
    /// For how long at most; any time up to it is as likely.
    slice: Nanos,
}

/// As two cores of a virtual machine were seen: the median, the tenth and the ninetieth percentile of threads that waited for a time
/// were 118, 92 and 163 us, for a message 23, 16 and 32 us, and 1 % were late by 0.2 ms and more.
const IDLE: Machine = Machine {
    timer: Nanos::from_micros(118),
    message: Nanos::from_micros(23),
    unlike: 0.1,
    busy: 0.005,
    slice: Nanos::from_micros(3_000),
};

impl Machine {
    fn late(self, wake: Wake, rng: &mut Rng) -> Nanos {
        let usual = match wake {
            Wake::Timer => self.timer.as_secs_f64(),
            Wake::Message => self.message.as_secs_f64(),
            Wake::Answer => self.message.as_secs_f64() / 2.0,
        };
        // The median is the usual time.
        let usual = usual * (0.813 - 0.27 * rng.unit().max(1e-9).ln());
        let more = if rng.unit() < self.busy { self.slice.as_secs_f64() * rng.unit() } else { 0.0 };
        Nanos::new(((usual + more) * 1e9) as u64)
    }

    /// The drive's own threads in one run.
    fn of_drive(self, rng: &mut Rng) -> Self {
        let part = 1.0 + self.unlike * (2.0 * rng.unit() - 1.0);
        let times = |time: Nanos| Nanos::from_secs_f64_round(time.as_secs_f64() * part);
        Self { timer: times(self.timer), message: times(self.message), ..self }
    }
}

/// Whether the program looks at its own wake-ups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probe {
    Looks,
    IsBlind,
}

/// Takes a measurement to its end: orders reach the drive late, and their ends the program.
fn carry_out(profile: &Profile, machine: Machine, probe: Probe, seed: u64) -> Measurement {
    let mut drive =
        Drive::new(profile.clone(), Settings::PLAIN, Streams::new(seed), "drive/0").unwrap();
    let (thoroughness, read_max, end) = (Thoroughness::Quick, Sectors::new(256), Wake::Timer);
    let options = Options { thoroughness, read_max, end, seed };
    let mut measurement = Measurement::new(drive.size(), options).unwrap();
    let mut rng = Streams::new(seed).stream("late");
    let own = machine.of_drive(&mut rng);
    let mut orders: BTreeMap<(Instant, u64), Read> = BTreeMap::new();
    let mut ends: BTreeMap<(Instant, u64), ()> = BTreeMap::new();
    let mut began: BTreeMap<u64, Instant> = BTreeMap::new();
    let mut now = Instant::ZERO;
    loop {
        while let Some(read) = measurement.poll() {
            began.insert(read.id, now);
            orders.insert((now + own.late(Wake::Answer, &mut rng), read.id), read);
        }
        let next = [
            orders.keys().next().map(|key| key.0),
            drive.deadline(),
            ends.keys().next().map(|key| key.0),
        ];
        let Some(next) = next.into_iter().flatten().min() else { return measurement };
        now = now.max(next);
        while let Some(order) = orders.first_entry()
            && order.key().0 <= now
        {
            let Read { id, extent } = order.remove();
            drive.handle_submit(now, id, Command::Read { extent, effort: Effort::Full }, id);
        }
        if drive.deadline().is_some_and(|deadline| deadline <= now) {
            drive.handle_timeout(now);
        }
        while let Some(done) = drive.poll() {
            ends.insert((now.max(done.ended) + own.late(Wake::Timer, &mut rng), done.id), ());
        }
        while let Some(end) = ends.first_entry()
            && end.key().0 <= now
        {
            let ((ended, id), ()) = end.remove_entry();
            measurement.handle_done(id, began.remove(&id).unwrap(), ended);
            if probe == Probe::Looks {
                for wake in [Wake::Timer, Wake::Message, Wake::Answer] {
                    measurement.handle_wake(wake, machine.late(wake, &mut rng));
                }
            }
        }
    }
}

/// By which share the first rate, the rotation and the seeks from a sixty-fourth of the drive on are off, the worst of
/// them.
fn worst(profile: &Profile, measured: &Measured) -> f64 {
    let copy = Profile::parse(&measured.to_toml("copy")).unwrap();
    let off = |found: f64, truly: f64| (found / truly - 1.0).abs();
    let rotation = off(measured.rotation, profile.rotation().as_secs_f64());
    let first = off(measured.rates[0].bytes_per_s, rate(profile, 0, 4_608));
    let size = profile.size().get();
    let seeks = [1, 4, 16, 32, 48, 60].map(|part| {
        let distance = size / 64 * part;
        off(positioning(&copy, distance), positioning(profile, distance))
    });
    seeks.into_iter().fold(rotation.max(first), f64::max)
}

/// The machines, from one that has nothing else to do to one that has far too much.
const MACHINES: [Machine; 7] = [
    IDLE,
    busy(0.005, 1_000),
    busy(0.01, 3_000),
    busy(0.03, 4_000),
    busy(0.10, 4_000),
    busy(0.30, 6_000),
    busy(0.90, 10_000),
];

const fn busy(share: f64, slice_us: u64) -> Machine {
    Machine { busy: share, slice: Nanos::from_micros(slice_us), ..IDLE }
}

/// What the bar is: within that share, or no answer.
const WITHIN: f64 = 0.05;

#[test]
fn however_busy_the_machine_is_the_answer_is_right_or_none() {
    let profile = Profile::shipped("nearline-2tb").unwrap();
    for (at, machine) in MACHINES.into_iter().enumerate() {
        let mut answers = 0;
        for seed in 1..=SEEDS {
            match carry_out(&profile, machine, Probe::Looks, seed).finish() {
                Ok(measured) => {
                    let off = worst(&profile, &measured);
                    eprintln!("{machine:?}, seed {seed}: {:.1} %", off * 100.0);
                    assert!(off <= WITHIN, "{machine:?}, seed {seed}: {off}");
                    answers += 1;
                }
                Err(error) => eprintln!("{machine:?}, seed {seed}: {error}"),
            }
        }
        // One that is idle is answered for, and one that is hopeless is not.
        match at {
            0..=1 => assert_eq!(answers, SEEDS, "{machine:?}"),
            5.. => assert_eq!(answers, 0, "{machine:?}"),
            _ => {}
        }
    }
}

/// How often each machine is measured on.
const SEEDS: u64 = 4;

/// Without the refusal the same reads would have come out as wrong figures.
#[test]
fn what_is_refused_would_have_been_wrong() {
    let profile = Profile::shipped("nearline-2tb").unwrap();
    for machine in &MACHINES[5..6] {
        let wrong = (1..=SEEDS)
            .filter(|&seed| {
                let refused = carry_out(&profile, *machine, Probe::Looks, seed).finish();
                assert!(matches!(refused, Err(MeasureError::Late { .. })), "{refused:?}");
                let told = carry_out(&profile, *machine, Probe::Looks, seed).finish_unchecked();
                let off = told.map(|measured| worst(&profile, &measured));
                eprintln!("{machine:?}, seed {seed}: {off:?}");
                off.is_ok_and(|off| off > WITHIN)
            })
            .count();
        assert!(wrong > 0, "{machine:?}: the refusal keeps nothing wrong from being told");
    }
}

/// A program that sees nothing of its own lateness still sees that its reads do not agree.
#[test]
fn reads_that_do_not_agree_are_refused_without_a_look_at_the_machine() {
    let profile = Profile::shipped("nearline-2tb").unwrap();
    for seed in 1..=SEEDS {
        let refused = carry_out(&profile, MACHINES[6], Probe::IsBlind, seed).finish();
        let expected = |error: &MeasureError| {
            matches!(error, MeasureError::Unsure { .. } | MeasureError::NoRotation)
        };
        assert!(refused.as_ref().is_err_and(expected), "{refused:?}");
    }
}

/// What every wake-up is late by is taken off, if it is looked at.
#[test]
fn usual_lateness_is_taken_off_the_seeks() {
    let profile = Profile::shipped("nearline-2tb").unwrap();
    let (timer, message) = (Nanos::from_micros(300), Nanos::from_micros(200));
    let machine = Machine { timer, message, unlike: 0.0, ..IDLE };
    let mean = |probe| {
        let measured = carry_out(&profile, machine, probe, 1).finish_unchecked().unwrap();
        // Which short ones there are depends on what was found.
        let long = measured.seeks.iter().filter(|seek| !is_short(&measured, seek));
        let times: Vec<f64> = long.map(|seek| seek.positioning).collect();
        times.iter().sum::<f64>() / times.len() as f64
    };
    let (seen, blind) = (mean(Probe::Looks), mean(Probe::IsBlind));
    let off = blind - seen;
    assert!((off - 400e-6).abs() < 40e-6, "{seen} and {blind}");
}

/// How many runs there are of each make.
const RUNS: u64 = 250;
/// How many of them an interval of 95 % may miss: 5 %, and three standard deviations of that number more.
const MISSES_MAX: u64 = 12 + 10;

/// Of a kind of figure: in how many runs it was within its error, and what the worst of all runs was off by.
#[derive(Debug, Default)]
struct Tally {
    runs: u64,
    missed: u64,
    missed_half: u64,
    worst: f64,
}

impl Tally {
    fn add(&mut self, found: f64, error: f64, truly: f64) {
        let off = (found - truly).abs();
        self.runs += 1;
        self.missed += u64::from(off > error);
        self.missed_half += u64::from(off > error / 2.0);
        self.worst = self.worst.max(off / truly);
    }
}

/// Whether a seek is shorter than a sixty-fourth of the stroke.
fn is_short(measured: &Measured, seek: &Seek) -> bool {
    seek.length * 65 < measured.cylinders()
}

/// The true figures are within the errors told as often as these say, and nothing told is wrong. Half of the error of the rotation
/// would not do: the test can fail. For seeks `threshold.rs` shows that.
#[test]
fn errors_that_are_told_are_those_that_are_made() {
    for make in ["nearline-2tb", "simple15k"] {
        let profile = Profile::shipped(make).unwrap();
        let truly_first = rate(&profile, 0, 46_080);
        let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
        let mut truly: BTreeMap<(String, i64), f64> = BTreeMap::new();
        let mut refused = 0;
        for measured in all(&profile) {
            let measured = match measured {
                Ok(measured) => measured,
                Err(error) => {
                    eprintln!("{make}: {error}");
                    refused += 1;
                    continue;
                }
            };
            let Measured { size, rotation, rotation_error, rates, seeks, .. } = &measured;
            let mut add = |what: String, found, error, truly| {
                tallies.entry(what).or_default().add(found, error, truly);
            };
            add("rotation".into(), *rotation, *rotation_error, profile.rotation().as_secs_f64());
            add("first rate".into(), rates[0].bytes_per_s, rates[0].error, truly_first);
            for (at, seek) in seeks.iter().enumerate() {
                // Some short lengths are measured in some runs alone; the long ones are parts of the stroke.
                let what = match is_short(&measured, seek) {
                    true => format!("short seek {}", seek.length),
                    false => format!("seek {} from the longest", seeks.len() - 1 - at),
                };
                // Cylinders are counted otherwise from run to run; within a hundredth it makes no difference.
                let kind = ((measured.cylinders() as f64).ln() * 100.0).round() as i64;
                let truly = *truly.entry((what.clone(), kind)).or_insert_with(|| {
                    let radii = Radii::new(&measured);
                    let mut pair = |rng: &mut Rng| radii.pair(rng, seek.length);
                    positioning_between(&profile, *size, &mut pair) / 1e3
                });
                add(what, seek.positioning, seek.error, truly);
            }
        }
        for (what, tally) in &tallies {
            eprintln!("{make}: {what}: {tally:?}");
        }
        for (what, Tally { runs, missed, worst, .. }) in &tallies {
            assert!(*missed <= MISSES_MAX, "{make}: {what}: {missed} of {runs} missed");
            // Short seeks depend on what is assumed of cylinders, and so may their errors be greater.
            assert!(
                what.starts_with("short") || *worst <= WITHIN,
                "{make}: {what}: off by {worst}"
            );
        }
        let half = tallies["rotation"].missed_half;
        assert!(half > MISSES_MAX, "{make}: {half} missed half of the error");
        assert!(refused <= RUNS / 100, "{make}: {refused} of {RUNS} refused");
    }
}

/// Where the cylinders lie that a measurement counts in: fewer sectors to each where the rate is less.
struct Radii {
    cylinders: u64,
    /// For each place: its first sector and first cylinder, both with fractions, and sectors to a cylinder.
    zones: Vec<[f64; 3]>,
}

impl Radii {
    fn new(measured: &Measured) -> Self {
        let (rates, size) = (&measured.rates, measured.size.get());
        let begin = |at: usize| match at {
            0 => 0,
            at if at == rates.len() => size,
            at => rates[at - 1].lba.get().midpoint(rates[at].lba.get()),
        };
        let width = |at: usize| (begin(at + 1) - begin(at)) as f64 / rates[at].bytes_per_s;
        let widths: f64 = (0..rates.len()).map(width).sum();
        let cylinders = measured.cylinders();
        let mut first = 0.0;
        let zone = |at: usize| {
            let count = width(at) / widths * cylinders as f64;
            first += count;
            [begin(at) as f64, first - count, (begin(at + 1) - begin(at)) as f64 / count]
        };
        Self { cylinders, zones: (0..rates.len()).map(zone).collect() }
    }

    fn lba(&self, cylinder: f64) -> u64 {
        let [lba, first, sectors] = *self.zones.iter().rfind(|zone| zone[1] <= cylinder).unwrap();
        (lba + (cylinder - first) * sectors) as u64
    }

    /// A sector of any cylinder and one of the cylinder `length` further.
    fn pair(&self, rng: &mut Rng, length: u64) -> [u64; 2] {
        let home = rng.below(self.cylinders - 1 - length) as f64;
        [home, home + length as f64].map(|cylinder| self.lba(cylinder + rng.unit()))
    }
}

/// All runs on an idle machine, on all processors.
fn all(profile: &Profile) -> Vec<Result<Measured, MeasureError>> {
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    std::thread::scope(|scope| {
        let work = |thread: u64| {
            let seeds = (thread..RUNS).step_by(threads as usize);
            seeds.map(|seed| carry_out(profile, IDLE, Probe::Looks, seed).finish()).collect()
        };
        let handles = Vec::from_iter((0..threads).map(|thread| scope.spawn(move || work(thread))));
        let results = handles.into_iter().map(|handle| handle.join().unwrap());
        results.collect::<Vec<Vec<_>>>().into_iter().flatten().collect()
    })
}
