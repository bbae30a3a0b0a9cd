//! The shipped profile against the figures of the drives it stands for.

use levelhead_block::{Command, Effort};
use levelhead_drive::{Completion, Drive, Faults, Profile, Settings};
use levelhead_stats::{Rng, Streams};
use levelhead_units::{Extent, Instant, Lba, Sectors};

fn drive(queue_depth: u32) -> Drive {
    let settings = Settings { queue_depth, age_weight: 0.0, faults: Faults::NONE, size: None };
    let profile = Profile::shipped("nearline-2tb").unwrap();
    Drive::new(profile, settings, Streams::new(1), "drive/0").unwrap()
}

fn read(lba: u64, sectors: u64) -> Command {
    let extent = Extent::new(Lba::new(lba), Sectors::new(sectors));
    Command::Read { extent, effort: Effort::Full }
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

/// Mean service time in milliseconds and commands a second, random single sectors.
fn random_reads(queue_depth: u32, count: u64) -> (f64, f64) {
    let mut drive = drive(queue_depth);
    let mut rng = Streams::new(2).stream("addresses");
    let size = drive.size();
    let done = saturate(&mut drive, count, || random(size, &mut rng));
    let span = (done.last().unwrap().ended - Instant::ZERO).as_secs_f64();
    let busy: f64 = done.iter().map(|done| done.service.as_millis_f64()).sum();
    (busy / count as f64, count as f64 / span)
}

#[test]
fn capacity_is_two_terabytes() {
    // The guaranteed blocks of any 2 TB drive, and less than a hundredth of a per cent more.
    let least = 3_907_029_168 / 8;
    let size = Profile::shipped("nearline-2tb").unwrap().size().get();
    assert!((least..least + least / 10_000).contains(&size), "{size}");
}

#[test]
fn random_reads_take_as_long_as_on_drives_of_its_kind() {
    let (mean, _) = random_reads(1, 20_000);
    eprintln!("one random read at a time: {mean:.3} ms");
    assert!((12.0..=18.0).contains(&mean), "{mean} ms");
    let (_, rate) = random_reads(32, 100_000);
    eprintln!("32 random reads at a time: {rate:.1} a second");
    assert!((150.0..=220.0).contains(&rate), "{rate} a second");
}

/// Megabytes a second over reads of 512 MiB, back to back from `lba` on.
fn sequential_rate(lba: u64) -> f64 {
    let mut drive = drive(1);
    let sectors = 131_072;
    let mut next = lba;
    let done = saturate(&mut drive, 4, || {
        next += sectors;
        read(next - sectors, sectors)
    });
    let span = (done[3].ended - Instant::ZERO).as_secs_f64();
    4.0 * sectors as f64 * 4096.0 / 1e6 / span
}

#[test]
fn sequential_reads_are_as_fast_as_the_manual_says_at_both_ends() {
    let size = drive(1).size().get();
    let (outer, inner) = (sequential_rate(0), sequential_rate(size - 4 * 131_072));
    eprintln!("sequential: {outer:.1} MB/s outside, {inner:.1} MB/s inside");
    assert!((outer / 175.0 - 1.0).abs() < 0.03, "{outer} MB/s");
    assert!((inner / 83.0 - 1.0).abs() < 0.03, "{inner} MB/s");
}

#[test]
fn a_weight_on_age_shortens_the_longest_wait() {
    let longest = |age_weight| {
        let settings = Settings { queue_depth: 32, age_weight, faults: Faults::NONE, size: None };
        let profile = Profile::shipped("nearline-2tb").unwrap();
        let mut drive = Drive::new(profile, settings, Streams::new(1), "drive/0").unwrap();
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
