//! Planted mistakes, each of which the comparisons must find.

use super::*;

/// The comparisons that find something wrong with a bench for each settling time.
fn found(plant: impl Fn(Bench) -> Bench) -> Vec<&'static str> {
    let (quick, settling) = (plant(Bench::good("0ms")), plant(Bench::good("0.3ms")));
    let comparisons: [(&str, Found); 7] = [
        ("T1, T2", places_and_seeks(&quick, "oracle_low.csv")),
        ("T3", in_order(&quick, "oracle_low.csv")),
        ("T4, 8", reordered(&quick, "oracle_high_sptf8.csv", 8)),
        ("T5", mixed(&settling)),
        ("rules, alone", rules(&settling, 1, 1, 1)),
        ("rules, long", rules(&settling, 1, 1, 64)),
        ("rules, queued", rules(&settling, 1, 8, 1)),
    ];
    comparisons.into_iter().filter(|(_, found)| found.is_err()).map(|(name, _)| name).collect()
}

/// Whether the oracle's data and, always, the rules find the mistake.
#[track_caller]
fn check_found(oracle: &[&str], rules: &[&str], plant: impl Fn(Bench) -> Bench) {
    let found = found(plant);
    let is_there = rows("oracle_low.csv").is_some();
    let expected = oracle.iter().filter(|_| is_there).chain(rules);
    for name in expected {
        assert!(found.contains(name), "{name} finds nothing: {found:?}");
    }
}

#[test]
fn seek_and_head_switch_summed_are_found() {
    check_found(&["T1, T2", "T3", "T5"], &["rules, alone"], |bench| Bench {
        bug: Some(Bug::SeekPlusHeadSwitch),
        ..bench
    });
}

#[test]
fn phase_taken_before_the_seek_is_found() {
    check_found(&["T3", "T5"], &["rules, alone"], |bench| Bench {
        bug: Some(Bug::PhaseBeforeSeek),
        ..bench
    });
}

#[test]
fn forgotten_skews_are_found() {
    check_found(&["T3", "T5"], &["rules, alone", "rules, long"], |bench| {
        let text = include_str!("../../../profiles/simple15k.toml");
        let without: Vec<&str> = text
            .lines()
            .map(|line| match line.split_once(" = ") {
                Some(("track_skew", _)) => "track_skew = 0",
                Some(("cylinder_skew", _)) => "cylinder_skew = 0",
                _ => line,
            })
            .collect();
        Bench { profile: Profile::parse(&without.join("\n")).unwrap(), ..bench }
    });
}

#[test]
fn choosing_by_the_seek_alone_is_found() {
    check_found(&["T4, 8"], &["rules, queued"], |bench| Bench {
        scheduler: Scheduler::Sstf,
        ..bench
    });
}

#[test]
fn reads_that_settle_are_found() {
    check_found(&["T5"], &["rules, alone", "rules, long"], |bench| Bench {
        bug: Some(Bug::ReadsSettle),
        ..bench
    });
}

/// A queue that is filled up before the choice has one command more to choose from.
#[test]
fn filling_up_before_the_choice_is_found() {
    check_found(&["T4, 8"], &["rules, queued"], |bench| Bench { depth_extra: 1, ..bench });
}
