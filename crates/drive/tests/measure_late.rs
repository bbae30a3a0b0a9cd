//! A measurement on a machine whose threads wake up late: it answers what is right, or not at all. Time
//! is virtual and lateness planted.

mod truth;

use std::collections::BTreeMap;

use levelhead_block::{Command, Effort};
use levelhead_drive::measure::{
    MeasureError, Measured, Measurement, Options, Read, Thoroughness, Wake,
};
use levelhead_drive::{Drive, Profile, Settings};
use levelhead_stats::{Rng, Streams};
use levelhead_units::{Instant, Nanos, Sectors};

use truth::{positioning, rate};

/// How late the threads of a machine are.
#[derive(Clone, Copy, Debug)]
struct Machine {
    /// Lateness of every wake-up, up to a quarter more or less.
    usual: Nanos,
    /// The share of wake-ups that wait for something else to run first.
    busy: f64,
    /// For how long at most; any time up to it is as likely.
    slice: Nanos,
}

const IDLE: Machine = Machine { usual: Nanos::from_micros(70), busy: 0.0, slice: Nanos::ZERO };

impl Machine {
    fn late(self, rng: &mut Rng) -> Nanos {
        let usual = self.usual.as_secs_f64() * (0.75 + 0.5 * rng.unit());
        let more = if rng.unit() < self.busy { self.slice.as_secs_f64() * rng.unit() } else { 0.0 };
        Nanos::new(((usual + more) * 1e9) as u64)
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
        Drive::new(profile.clone(), Settings::PLAIN, Streams::new(3), "drive/0").unwrap();
    let (thoroughness, read_max, end) = (Thoroughness::Quick, Sectors::new(256), Wake::Timer);
    let options = Options { thoroughness, read_max, end, seed };
    let mut measurement = Measurement::new(drive.size(), options).unwrap();
    let mut rng = Streams::new(seed).stream("late");
    let mut orders: BTreeMap<(Instant, u64), Read> = BTreeMap::new();
    let mut ends: BTreeMap<(Instant, u64), ()> = BTreeMap::new();
    let mut began: BTreeMap<u64, Instant> = BTreeMap::new();
    let mut now = Instant::ZERO;
    loop {
        while let Some(read) = measurement.poll() {
            began.insert(read.id, now);
            orders.insert((now + machine.late(&mut rng), read.id), read);
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
            ends.insert((now.max(done.ended) + machine.late(&mut rng), done.id), ());
        }
        while let Some(end) = ends.first_entry()
            && end.key().0 <= now
        {
            let ((ended, id), ()) = end.remove_entry();
            measurement.handle_done(id, began.remove(&id).unwrap(), ended);
            if probe == Probe::Looks {
                for wake in [Wake::Timer, Wake::Message] {
                    measurement.handle_wake(wake, machine.late(&mut rng));
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
    let machine = Machine { usual: Nanos::from_micros(200), ..IDLE };
    let mean = |probe| {
        let measured = carry_out(&profile, machine, probe, 1).finish_unchecked().unwrap();
        // Long enough for cylinders that are not quite the assumed ones.
        let long: Vec<f64> = measured
            .seeks
            .iter()
            .filter(|seek| seek.length >= 256)
            .map(|seek| seek.positioning)
            .collect();
        long.iter().sum::<f64>() / long.len() as f64
    };
    let (seen, blind) = (mean(Probe::Looks), mean(Probe::IsBlind));
    let off = blind - seen;
    assert!((off - 400e-6).abs() < 40e-6, "{seen} and {blind}");
}
