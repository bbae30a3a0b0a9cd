//! The shipped profiles of modern makes against the figures of the drives they stand for.

use levelhead_block::Command;
use levelhead_drive::{Completion, Drive, Profile, Scheduler, Settings};
use levelhead_stats::{Rng, Streams};
use levelhead_units::{Instant, Sectors};

use crate::support::read;

fn drive(make: &str, queue_depth: u32, age_weight: f64) -> Drive {
    let settings =
        Settings { queue_depth, scheduler: Scheduler::Sptf { age_weight }, ..Settings::PLAIN };
    let profile = Profile::shipped(make).unwrap();
    Drive::new(profile, settings, Streams::new(1), "drive/0").unwrap()
}

/// Keeps the drive's queue full with what `next` gives, until `count` commands have ended.
fn saturate(drive: &mut Drive, count: u64, mut next: impl FnMut() -> Command) -> Vec<Completion> {
    let (mut now, mut id) = (Instant::ZERO, 0);
    let mut completions = Vec::new();
    while (completions.len() as u64) < count {
        while drive.has_room() {
            drive.handle_submit(now, id, next(), id);
            id += 1;
        }
        now = drive.deadline().unwrap();
        drive.handle_timeout(now);
        completions.extend(std::iter::from_fn(|| drive.poll()));
    }
    completions
}

fn random(size: Sectors, rng: &mut Rng) -> Command {
    read(rng.below(size.get()), 1)
}

/// Random single sectors: services in milliseconds, in ascending order, and commands a second.
fn random_reads(make: &str, queue_depth: u32, age_weight: f64, count: u64) -> (Vec<f64>, f64) {
    let mut drive = drive(make, queue_depth, age_weight);
    let mut rng = Streams::new(2).stream("addresses");
    let size = drive.size();
    let done = saturate(&mut drive, count, || random(size, &mut rng));
    let span = (done.last().unwrap().ended - Instant::ZERO).as_secs_f64();
    let mut services: Vec<f64> = done.iter().map(|done| done.service.as_millis_f64()).collect();
    services.sort_unstable_by(f64::total_cmp);
    (services, count as f64 / span)
}

/// Megabytes a second over reads of 512 MiB, back to back from `lba` on.
fn sequential_rate(make: &str, lba: u64) -> f64 {
    let mut drive = drive(make, 1, 0.0);
    let sectors = 131_072;
    let mut next = lba;
    let done = saturate(&mut drive, 4, || {
        next += sectors;
        read(next - sectors, sectors)
    });
    let span = (done[3].ended - Instant::ZERO).as_secs_f64();
    4.0 * sectors as f64 * 4096.0 / 1e6 / span
}

#[track_caller]
fn check_capacity(make: &str, blocks: u64) {
    // The blocks that makers have agreed on, and less than a hundredth of a per cent more.
    let least = blocks / 8;
    let size = Profile::shipped(make).unwrap().size().get();
    assert!((least..least + least / 10_000).contains(&size), "{make}: {size}");
}

#[track_caller]
fn check_sequential(make: &str, outer: f64, inner: f64) {
    let size = Profile::shipped(make).unwrap().size().get();
    let measured = (sequential_rate(make, 0), sequential_rate(make, size - 4 * 131_072));
    eprintln!("{make}: {:.1} MB/s outside, {:.1} MB/s inside", measured.0, measured.1);
    assert!((measured.0 / outer - 1.0).abs() < 0.03, "{make}: {} MB/s", measured.0);
    assert!((measured.1 / inner - 1.0).abs() < 0.03, "{make}: {} MB/s", measured.1);
}

/// Milliseconds of one read at a time on average.
#[track_caller]
fn check_alone(make: &str, expected: std::ops::RangeInclusive<f64>) {
    let (services, _) = random_reads(make, 1, 0.0, 20_000);
    let mean = services.iter().sum::<f64>() / services.len() as f64;
    eprintln!("{make}: one random read at a time: {mean:.3} ms");
    assert!(expected.contains(&mean), "{make}: {mean} ms");
}

/// Reads a second, with `depth` reads at a time.
#[track_caller]
fn check_queued(make: &str, depth: u32, weight: f64, expected: std::ops::RangeInclusive<f64>) {
    let (_, rate) = random_reads(make, depth, weight, 100_000);
    eprintln!("{make}: {depth} random reads at a time, age weight {weight}: {rate:.1} a second");
    assert!(expected.contains(&rate), "{make}: {rate} a second");
}

#[test]
fn capacities_are_those_that_makers_have_agreed_on() {
    check_capacity("nearline-2tb", 3_907_029_168);
    check_capacity("nearline-6tb", 11_721_045_168);
    check_capacity("nearline-18tb", 35_156_656_128);
    check_capacity("st2000dm006", 3_907_029_168);
}

#[test]
fn sequential_reads_are_as_fast_as_the_manuals_say_at_both_ends() {
    check_sequential("nearline-2tb", 175.0, 83.0);
    check_sequential("nearline-6tb", 230.0, 0.49 * 230.0);
    check_sequential("nearline-18tb", 270.0, 0.49 * 270.0);
}

#[test]
fn random_reads_take_as_long_as_on_drives_of_the_kind() {
    check_alone("nearline-2tb", 12.0..=18.0);
    check_queued("nearline-2tb", 32, 0.0, 150.0..=220.0);
    // The average seek and half a revolution, and what the controller takes.
    check_alone("nearline-6tb", 7.4 + 4.16 - 0.5..=7.4 + 4.16 + 0.5);
    check_queued("nearline-6tb", 32, 0.0, 150.0..=220.0);
    check_alone("nearline-18tb", 12.0..=13.0);
    check_queued("nearline-18tb", 32, 0.0, 150.0..=220.0);
    // Half a drive with two actuators, which gives 304, and 15 % more.
    check_queued("nearline-18tb", 16, 0.0, 304.0 / 2.0..=1.15 * 304.0 / 2.0);
}

#[test]
fn st2000dm006_is_as_fast_as_the_one_that_was_measured() {
    let (make, weight) = ("st2000dm006", 0.05);
    let (services, _) = random_reads(make, 1, 0.0, 20_000);
    let p99 = services[services.len() * 99 / 100];
    eprintln!("{make}: p99 of one random read at a time: {p99:.2} ms");
    assert!((p99 / 28.7 - 1.0).abs() < 0.03, "{p99} ms");
    check_alone(make, 17.2..=17.8);
    check_queued(make, 32, weight, 0.95 * 94.0..=1.05 * 94.0);
    // Spread over the platter.
    let size = Profile::shipped(make).unwrap().size().get();
    let places = 20;
    let seconds_a_megabyte: f64 =
        (0..places).map(|at| 1.0 / sequential_rate(make, size / places * at)).sum();
    let mean = places as f64 / seconds_a_megabyte;
    eprintln!("{make}: sequential reads spread over the platter: {mean:.1} MB/s");
    assert!((mean / 143.0 - 1.0).abs() < 0.05, "{mean} MB/s");
}

#[test]
fn a_weight_on_age_shortens_the_longest_wait() {
    let longest = |age_weight| {
        let mut drive = drive("nearline-2tb", 32, age_weight);
        let mut rng = Streams::new(2).stream("addresses");
        let size = drive.size();
        let mut began: Vec<u64> = Vec::new();
        saturate(&mut drive, 20_000, || random(size, &mut rng))
            .iter()
            .enumerate()
            .for_each(|(place, done)| began.push((place as u64).saturating_sub(done.id)));
        began.into_iter().max().unwrap()
    };
    let (without, with) = (longest(0.0), longest(0.1));
    assert!(with * 2 < without, "overtaken {with} times, {without} times without a weight");
}
