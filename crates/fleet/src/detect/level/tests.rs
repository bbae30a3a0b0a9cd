use super::*;
use crate::detect::{Kind, Recording, detect};
use crate::generate::groups::{Episodes, GroupsOptions, MadeGroup, group};

const SEED: u64 = 17;

fn options(groups: usize, days: usize) -> GroupsOptions {
    GroupsOptions { groups, days, ..GroupsOptions::HEALTHY }
}

fn judged(recording: &Recording, options: Options) -> Vec<Finding> {
    let mut level = Level::new(recording.drives.len(), options);
    detect(recording, &mut level).into_iter().map(|row| row.finding).collect()
}

/// Drives that were ever found slow, and drives, over healthy groups.
fn false_ones(made: &GroupsOptions, options: Options) -> (usize, usize) {
    let mut counts = (0, 0);
    for idx in 0..made.groups {
        for finding in judged(&group(made, SEED, idx).recording, options) {
            counts.0 += usize::from(finding.decided_at.is_some());
            counts.1 += 1;
        }
    }
    counts
}

fn sick(share: f64, ratio: f64, days: usize) -> MadeGroup {
    let episodes = Episodes { share, ratio, first_day: 5, days };
    let options = GroupsOptions {
        drives: 12..=12,
        noise: 0.08..=0.08,
        episodes: Some(episodes),
        ..options(1, 20)
    };
    let with_few = (0..).map(|idx| group(&options, SEED, idx));
    let slow_count = |made: &MadeGroup| made.is_slow.iter().filter(|is_slow| **is_slow).count();
    let mut made = with_few.filter(|made| (1..4).contains(&slow_count(made)));
    made.next().expect("one of them has few")
}

#[test]
fn healthy_groups_have_no_slow_drive() {
    let (count, drives) = false_ones(&options(60, 90), Options::FROZEN);
    assert!(drives > 700);
    assert_eq!(count, 0, "of {drives}");
}

#[test]
#[ignore = "half a minute for a thousand groups: cargo xtask soak fleets"]
fn a_thousand_healthy_groups_have_at_most_one_false_drive_in_a_thousand() {
    let (count, drives) = false_ones(&GroupsOptions::HEALTHY, Options::FROZEN);
    eprintln!("{count} of {drives}");
    assert!(count * 1000 <= drives, "{count} of {drives}");
}

#[test]
fn healthy_groups_stay_healthy_where_readings_are_missing() {
    let made = GroupsOptions { missing: 0.05, drives: 3..=6, ..options(60, 30) };
    assert_eq!(false_ones(&made, Options::FROZEN).0, 0);
}

/// Canary: the group's noise is what keeps healthy drives of loud groups from being accused.
#[test]
fn without_scaling_healthy_drives_are_accused() {
    let unscaled = Options { is_scaled: false, ..Options::FROZEN };
    let (count, drives) = false_ones(&options(20, 10), unscaled);
    assert!(count * 10 > drives, "{count} of {drives}");
}

#[test]
fn mild_slowness_is_found_and_ends() {
    for (ratio, hours_max) in [(1.25, 45.0), (1.5, 24.0), (4.0, 17.0)] {
        let made = sick(0.15, ratio, 1000);
        let begins = made.recording.windows[5 * 36].at;
        for (finding, is_slow) in judged(&made.recording, Options::FROZEN).iter().zip(&made.is_slow)
        {
            assert_eq!(finding.verdict == Verdict::Slow, *is_slow, "{ratio}: {finding:?}");
            assert_eq!(finding.decided_at.is_some(), *is_slow);
            if *is_slow {
                assert!(finding.decided_at.unwrap() > begins);
                assert!(finding.busy_hours > 15.0);
                assert!(finding.busy_hours <= hours_max, "{ratio}: {finding:?}");
                assert!(finding.low < ratio * 1.08);
                assert!(finding.high > ratio / 1.08);
                assert!(finding.low > 1.0);
            }
        }
        if ratio < 1.5 {
            continue;
        }
        let over = sick(0.15, ratio, 7);
        for (finding, is_slow) in judged(&over.recording, Options::FROZEN).iter().zip(&over.is_slow)
        {
            assert_eq!(finding.verdict, Verdict::Fine, "{ratio}: {finding:?}");
            assert_eq!(finding.decided_at.is_some(), *is_slow);
        }
    }
}

#[test]
fn a_verdict_needs_the_windows_before_it_alone() {
    let made = sick(0.15, 1.5, 1000);
    let full = judged(&made.recording, Options::FROZEN);
    let decided = full.iter().filter_map(|finding| finding.decided_at).min().unwrap();
    let mut before = made.recording.clone();
    before.windows.retain(|window| window.at + WINDOW <= decided);
    let early = judged(&before, Options::FROZEN);
    assert!(early.iter().any(|finding| finding.decided_at == Some(decided)));
    before.windows.pop();
    let earlier = judged(&before, Options::FROZEN);
    assert!(earlier.iter().all(|finding| finding.decided_at.is_none()));
}

fn exchanged(recording: &Recording, order: &[usize]) -> Recording {
    let mut other = recording.clone();
    other.drives = order.iter().map(|&idx| recording.drives[idx].clone()).collect();
    for (to, from) in other.windows.iter_mut().zip(&recording.windows) {
        to.members = order.iter().map(|&idx| from.members[idx]).collect();
    }
    other
}

#[test]
fn drives_exchanged_are_judged_the_same_by_every_detector() {
    let made = sick(0.15, 1.6, 1000);
    let order: Vec<usize> = (0..12).map(|idx| (idx * 5 + 3) % 12).collect();
    let other = exchanged(&made.recording, &order);
    for kind in Kind::ALL {
        let rows = detect(&made.recording, kind.detector(12).as_mut());
        let others = detect(&other, kind.detector(12).as_mut());
        for row in &others {
            let first = rows.iter().find(|first| first.drive == row.drive).unwrap().finding;
            let second = row.finding;
            assert_eq!(first.verdict, second.verdict, "{kind} {}", row.drive);
            assert_eq!(first.decided_at, second.decided_at, "{kind} {}", row.drive);
            assert!((first.ratio - second.ratio).abs() < 1e-12, "{kind} {}", row.drive);
        }
        if kind == Kind::Level {
            assert_eq!(
                rows.iter().filter(|row| row.finding.verdict == Verdict::Slow).count(),
                made.is_slow.iter().filter(|is_slow| **is_slow).count()
            );
        }
    }
}

#[test]
fn state_goes_on_from_its_bytes() {
    let made = sick(0.15, 1.5, 4);
    let mut whole = Level::new(12, Options::FROZEN);
    let mut parts = Level::new(12, Options::FROZEN);
    let mut length_max = 0;
    for (number, window) in made.recording.windows.iter().enumerate() {
        whole.handle_window(window.at, &window.members);
        parts.handle_window(window.at, &window.members);
        if number % 50 == 7 {
            let bytes = parts.to_bytes();
            length_max = length_max.max(bytes.len());
            parts = Level::from_bytes(&bytes, 12, Options::FROZEN).unwrap();
            assert_eq!(parts, whole);
        }
    }
    assert!(length_max < 12 * 3100, "{length_max}");
    let bytes = whole.to_bytes();
    assert_eq!(Level::from_bytes(&bytes, 11, Options::FROZEN), None);
    let other = Options { threshold: 5.0, ..Options::FROZEN };
    assert_eq!(Level::from_bytes(&bytes, 12, other), None);
    for length in (0..bytes.len()).step_by(499) {
        assert_eq!(Level::from_bytes(&bytes[..length], 12, Options::FROZEN), None);
    }
}

#[test]
fn readings_of_no_use_and_too_few_peers_change_nothing() {
    let reading = |latency_us| Some(Reading { latency_us, load: 1.0 });
    for kind in Kind::ALL {
        let mut detector = kind.detector(3);
        let odd = [f64::NAN, 0.0, -1.0, f64::INFINITY];
        for step in 0..2000_i64 {
            let latency = odd[(step % 4) as usize];
            detector.handle_window(step * WINDOW, &[reading(latency), None, reading(100.0)]);
        }
        for finding in detector.findings() {
            assert_eq!(finding.verdict, Verdict::CannotTell, "{kind}");
            assert!(finding.busy_hours.abs() < 1e-12);
            assert_eq!(finding.decided_at, None);
        }
    }
}

#[test]
fn equal_drives_are_fine_and_extremes_do_no_harm() {
    for kind in Kind::ALL {
        let mut detector = kind.detector(6);
        for step in 0..2000_i64 {
            let mut members = [Some(Reading { latency_us: 100.0, load: 1.0 }); 6];
            members[5] = Some(Reading { latency_us: f64::MAX, load: f64::MAX });
            members[4] = Some(Reading { latency_us: f64::MIN_POSITIVE, load: 0.0 });
            detector.handle_window(step * WINDOW, &members);
        }
        let findings = detector.findings();
        assert!(findings[..5].iter().all(|finding| finding.verdict != Verdict::Slow), "{kind}");
    }
}

#[test]
fn every_constant_is_explained() {
    let text = Kind::Level.explain();
    for constant in ["1, 2, 3, 6, 9, 15, 30 h", "1.1", "5.5", "0.03", "0.5", "1.05", "36 windows"] {
        assert!(text.contains(constant), "{constant} in {text}");
    }
    for kind in Kind::ALL {
        assert!(kind.explain().starts_with(kind.name()));
        assert_eq!(kind.name().parse(), Ok(kind));
    }
    assert!("nothing".parse::<Kind>().unwrap_err().contains("median-ratio"));
}

/// The vector of `docs/formats/detect.md`.
#[test]
fn the_published_vector_is_read_and_written() {
    let empty = Level::new(1, Options::FROZEN).to_bytes();
    let member: [&[u8]; 4] = [
        &[14, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0xF1, 0x53, 0x65, 0, 0, 0, 0, 14, 0, 0, 0, 0, 0, 0, 0],
        &[2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xE0, 0x3F],
        &[0, 0, 0, 0, 0, 0, 0xF0, 0xBF],
        &[0, 0, 0, 0],
    ];
    let head = 8 + 15 * 8 + 4;
    assert_eq!(empty.len(), head + 26 + 8);
    let bytes = [&empty[..head], &member.concat()].concat();
    let level = Level::from_bytes(&bytes, 1, Options::FROZEN).unwrap();
    assert_eq!(level.to_bytes(), bytes);
    assert_eq!(level.findings()[0].decided_at, Some(1_700_000_000));
    assert_eq!(level.members[0].history.values().collect::<Vec<_>>(), [0.5, -1.0]);
}
