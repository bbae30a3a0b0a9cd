//! Swarms with the tail as an invariant, many seeds; and what must be noticed.

use levelhead_array::Policy;
use levelhead_torture::tails::{Aim, Broken, How, Kind, Planted, Report, Swarm};

const SEEDS: u64 = 30;

/// Seeds of the soak that found something, each kept.
const FOUND: [u64; 6] = [5_000_815, 5_001_706, 5_002_579, 5_002_622, 5_004_455, 5_004_474];

#[test]
fn reads_are_right_and_not_late_whatever_drives_do() {
    let mut swarm = Swarm::default();
    let (mut reports, mut known): (Vec<Report>, Vec<Broken>) = (Vec::new(), Vec::new());
    for seed in (0..SEEDS).chain(FOUND) {
        match swarm.run(seed, &Aim::DEFAULT) {
            Ok(report) => reports.push(report),
            Err(broken) if broken.is_known() => known.push(broken),
            Err(broken) => panic!("{broken}"),
        }
    }
    for broken in &known {
        eprintln!("{broken}");
    }
    // Runs in which nothing happens prove nothing.
    let sum = |of: fn(&Report) -> u64| reports.iter().map(of).sum::<u64>();
    assert!(reports.len() as u64 * 2 > SEEDS, "{} of {SEEDS} runs ended", reports.len());
    assert!(reports.iter().all(|report| report.reads >= 2_000));
    assert!(sum(|report| report.verified) > 200_000);
    assert!(sum(|report| report.decoded) > 5_000);
    assert!(sum(|report| report.replaced) > 0, "no drive was replaced");
    assert!(sum(|report| report.corrupted) > 5, "nothing was corrupted");
}

#[test]
fn the_same_seed_prints_the_same_bytes_whatever_ran_before() {
    let print = |seeds: &[u64]| -> Vec<String> {
        let mut swarm = Swarm::default();
        let run = |seed: &u64| match swarm.run(*seed, &Aim::DEFAULT) {
            Ok(report) => report.to_string(),
            Err(broken) => broken.to_string(),
        };
        seeds.iter().map(run).collect()
    };
    let (forth, back) = (print(&[2, 3]), print(&[3, 2]));
    assert_eq!(forth[0], back[1]);
    assert_eq!(forth[1], back[0]);
}

/// Kinds of late reads that the array has. Each of them is found; what repairs one turns its assertion round.
#[test]
fn kinds_of_late_reads_that_are_known_are_found() {
    const SEEDS_MAX: u64 = 8;
    let mut swarm = Swarm::default();
    for (kind, aim, first) in Aim::KNOWN {
        let mut seeds = first..first + SEEDS_MAX;
        let is_it = |broken: Broken| broken.kind() == Some(kind);
        let found = seeds.find(|&seed| swarm.run(seed, &aim).is_err_and(is_it));
        eprintln!("{kind}: {found:?}");
        assert!(found.is_some(), "{kind}: not found in {SEEDS_MAX} seeds");
    }
    assert!(!Kind::Hung.is_known() && !Kind::Queued.is_known());
}

/// How many seeds it takes until `is_it` is noticed.
fn seeds_to_find(what: &str, aim: Aim, is_it: impl Fn(&How) -> bool) -> u64 {
    const SEEDS_MAX: u64 = 60;
    let mut swarm = Swarm::default();
    let found =
        (0..SEEDS_MAX).find(|&seed| swarm.run(seed, &aim).is_err_and(|broken| is_it(&broken.how)));
    let found = found.unwrap_or_else(|| panic!("{what}: not noticed in {SEEDS_MAX} seeds"));
    eprintln!("{what}: {} seeds", found + 1);
    found + 1
}

fn says(how: &How, words: &str) -> bool {
    matches!(how, How::Wrong(sentence) if sentence.contains(words))
}

#[test]
fn policy_that_never_goes_round_a_slow_drive_is_noticed() {
    let aim = Aim { policy: Policy::Normal, reads: Some(100), ..Aim::DEFAULT };
    seeds_to_find("slow drives", aim, |how| matches!(how, How::Tail { .. }));
    seeds_to_find("drives that hang", aim, |how| matches!(how, How::Waits { .. }));
}

#[test]
fn answers_that_never_come_and_wrong_bytes_and_long_queues_are_noticed() {
    let planted = |planted| Aim { planted, ..Aim::DEFAULT };
    let swallow = planted(Planted::Swallow);
    seeds_to_find("an answer that never comes", swallow, |how| says(how, "unanswered"));
    let twice = planted(Planted::Twice);
    seeds_to_find("an answer that comes twice", twice, |how| says(how, "answered twice"));
    let flips = planted(Planted::Flips);
    seeds_to_find("flipped bits", flips, |how| says(how, "other bytes than were written"));
    let unnoticed = planted(Planted::Unnoticed);
    seeds_to_find("a standstill that counts against drives", unnoticed, |how| says(how, "Y6"));
    let crowd = planted(Planted::Crowd);
    seeds_to_find("queues without bound", crowd, |how| says(how, "commands, more than"));
}
