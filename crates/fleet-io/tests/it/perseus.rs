//! The detectors on the labelled drives of PERSEUS, where those are at hand: `../shared/data/fleet/perseus` beside the repository.

use levelhead_fleet::detect::{
    Kind, Label, Level, Options, Recording, Score, Verdict, cut, detect, score,
};
use levelhead_fleet_io::samples::{Labels, read_recordings};
use levelhead_stats::{Streams, median_of};
use levelhead_testkit::shared;

struct Cluster {
    recordings: Vec<Recording>,
    labels: Vec<Label>,
}

fn cluster(name: &str) -> Option<Cluster> {
    let path = shared(&format!("fleet/perseus/{name}.parquet"))?;
    let labels = Labels::read(&shared("fleet/perseus/slow_drives.csv")?).unwrap().of_cluster(name);
    Some(Cluster { recordings: read_recordings(&path).unwrap(), labels })
}

/// What a detector finds in hosts cut into sets of a given size; a drive found slow must still be so at the end.
fn found(cluster: &Cluster, kind: Kind, size: usize) -> Score {
    let mut rows = Vec::new();
    for recording in &cluster.recordings {
        for set in cut(recording, size) {
            rows.extend(detect(&set, kind.detector(size).as_mut()));
        }
    }
    if kind == Kind::Level {
        for row in &rows {
            let is_slow = row.finding.verdict == Verdict::Slow;
            assert_eq!(is_slow, row.finding.decided_at.is_some(), "{row:?}");
        }
    }
    score(&rows, &cluster.labels)
}

/// Found, false and missed of A and C together, and the busy hours to each verdict.
fn both(kind: Kind, size: usize) -> Option<(usize, usize, usize, Vec<f64>)> {
    let (a, c) = (cluster("cluster_A")?, cluster("cluster_C")?);
    let (a, c) = (found(&a, kind, size), found(&c, kind, size));
    assert_eq!(a.drives + c.drives, 1476);
    let mut hours = [a.busy_hours, c.busy_hours].concat();
    hours.sort_by(f64::total_cmp);
    Some((
        a.found + c.found,
        a.false_ones.len() + c.false_ones.len(),
        a.missed.len() + c.missed.len(),
        hours,
    ))
}

#[test]
fn level_finds_all_34_drives_early_and_accuses_none_of_1442() {
    let Some((found, false_ones, missed, hours)) = both(Kind::Level, 12) else { return };
    assert_eq!((found, false_ones, missed), (34, 0, 0));
    assert!(hours[16] <= 5.0, "{hours:?}");
    assert!(hours[33] <= 9.0, "{hours:?}");
}

#[test]
fn level_finds_them_in_sets_of_six_and_most_in_sets_of_four() {
    let Some((found, false_ones, _, _)) = both(Kind::Level, 6) else { return };
    assert_eq!((found, false_ones), (34, 0));
    let Some((found, false_ones, missed, _)) = both(Kind::Level, 4) else { return };
    assert_eq!((found, false_ones, missed), (33, 0, 1));
}

/// What the plain rules do with the same windows; `docs/detect.md` prints these.
#[test]
fn the_plain_rules_are_later_or_miss_some_or_accuse_some() {
    let expected = [
        (Kind::MedianRatio, (34, 11, 0)),
        (Kind::Mad, (34, 0, 0)),
        (Kind::Tukey, (18, 0, 16)),
        (Kind::Regression, (27, 0, 7)),
    ];
    for (kind, counts) in expected {
        let Some((found, false_ones, missed, _)) = both(kind, 12) else { return };
        assert_eq!((found, false_ones, missed), counts, "{kind}");
    }
}

/// The original files hold more digits than the compact form, and windows at the end of a day that it has too.
#[test]
fn the_original_files_become_the_windows_of_the_compact_form() {
    let (Some(folder), Some(whole)) = (shared("fleet/perseus/cluster_A"), cluster("cluster_A"))
    else {
        return;
    };
    let originals = read_recordings(&folder).unwrap();
    let groups: Vec<&str> = originals.iter().map(|original| original.group.as_str()).collect();
    assert_eq!(groups, ["host_1", "host_2", "host_3", "host_22", "host_25"]);
    for original in &originals {
        let compact =
            whole.recordings.iter().find(|compact| compact.group == original.group).unwrap();
        assert_eq!(original.drives, compact.drives);
        assert_eq!(original.windows.len(), compact.windows.len());
        for (one, other) in original.windows.iter().zip(&compact.windows) {
            assert_eq!(one.at, other.at);
            for (one, other) in one.members.iter().zip(&other.members) {
                let ratio = one.map_or(0.0, |one| one.latency_us)
                    / other.map_or(0.0, |other| other.latency_us);
                assert!(one.is_none() && other.is_none() || (ratio - 1.0).abs() < 2e-3, "{ratio}");
            }
        }
        let slow = |recording: &Recording| -> Vec<String> {
            let rows = detect(recording, Kind::Level.detector(recording.drives.len()).as_mut());
            rows.into_iter()
                .filter(|row| row.finding.verdict == Verdict::Slow)
                .map(|row| row.drive)
                .collect()
        };
        assert_eq!(slow(original), slow(compact));
    }
}

/// How much louder a cluster's noise is made: each window's distance of a drive's log latency from its own median, over the group's
/// median, times this.
fn louder(recording: &Recording, factor: f64) -> Recording {
    let mut recording = recording.clone();
    let mut distances: Vec<Vec<f64>> = vec![Vec::new(); recording.drives.len()];
    for window in &mut recording.windows {
        let mut logs: Vec<f64> =
            window.members.iter().flatten().map(|reading| reading.latency_us.ln()).collect();
        let middle = median_of(&mut logs);
        for (reading, distances) in window.members.iter_mut().zip(&mut distances) {
            if let Some(reading) = reading {
                reading.latency_us = (reading.latency_us.ln() - middle).exp();
                distances.push(reading.latency_us.ln());
            }
        }
    }
    for (drive, distances) in distances.iter_mut().enumerate() {
        let own = median_of(distances);
        for reading in
            recording.windows.iter_mut().filter_map(|window| window.members[drive].as_mut())
        {
            reading.latency_us = (own + factor * (reading.latency_us.ln() - own)).exp();
        }
    }
    recording
}

fn judged(recordings: &[Recording], labels: &[Label], options: Options) -> Score {
    let rows: Vec<_> = recordings
        .iter()
        .flat_map(|recording| detect(recording, &mut Level::new(recording.drives.len(), options)))
        .collect();
    score(&rows, labels)
}

/// Other clusters of the release are up to eight times as noisy.
#[test]
fn louder_noise_costs_time_and_no_drive() {
    for name in ["cluster_A", "cluster_C"] {
        let Some(Cluster { recordings, labels }) = cluster(name) else { return };
        for (factor, false_max) in [(2.0, 0), (4.0, 0), (8.0, 1)] {
            let loud: Vec<Recording> =
                recordings.iter().map(|recording| louder(recording, factor)).collect();
            let score = judged(&loud, &labels, Options::FROZEN);
            println!("{name} times {factor}: {score:?}");
            assert_eq!(score.missed, [], "{name} times {factor}");
            assert!(score.false_ones.len() <= false_max, "{name} times {factor}: {score:?}");
        }
    }
}

/// Canary: a fixed bound alone accuses healthy drives of a loud cluster.
#[test]
fn without_scaling_a_loud_cluster_has_false_drives() {
    let Some(Cluster { recordings, labels }) = cluster("cluster_A") else { return };
    let loud: Vec<Recording> = recordings.iter().map(|recording| louder(recording, 4.0)).collect();
    let options = Options { is_scaled: false, ..Options::FROZEN };
    let score = judged(&loud, &labels, options);
    assert!(score.false_ones.len() > 30, "{score:?}");
}

/// Of each drive one reading in twenty, of one in ten drives a whole day in five, and of a few everything.
#[test]
fn readings_days_and_drives_that_are_missing_cost_no_verdict() {
    for name in ["cluster_A", "cluster_C"] {
        let Some(Cluster { mut recordings, labels }) = cluster(name) else { return };
        for (number, recording) in recordings.iter_mut().enumerate() {
            let mut rng = Streams::new(17).stream(&format!("missing/{number}"));
            for drive in 0..recording.drives.len() {
                let label = Label {
                    group: recording.group.clone(),
                    drive: recording.drives[drive].clone(),
                };
                let loses_all = !labels.contains(&label) && rng.below(50) == 0;
                let loses_days = rng.below(10) == 0;
                for window in &mut recording.windows {
                    let day = window.at / 86_400;
                    let is_lost = loses_all || (loses_days && day % 5 == 0) || rng.below(20) == 0;
                    if is_lost {
                        window.members[drive] = None;
                    }
                }
            }
        }
        let score = judged(&recordings, &labels, Options::FROZEN);
        assert_eq!((score.found, score.false_ones.len()), (labels.len(), 0), "{score:?}");
    }
}
