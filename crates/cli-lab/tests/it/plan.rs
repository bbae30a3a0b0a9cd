//! `levelhead-lab plan ..` as it is typed.

use std::fs;

use crate::support::{Shelf, levelhead};

/// The rows of an answer in JSON: case, metric, value.
fn rows(args: &[&str]) -> Vec<(String, String, f64)> {
    let ended = levelhead(&[&["plan"], args, &["--json"]].concat());
    let value = ended.json();
    assert!(!value["assumptions"].as_array().unwrap().is_empty(), "{args:?}");
    let rows = value["rows"].as_array().unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    rows.iter()
        .map(|row| {
            assert!(
                ["%", "ms", "x", "count", "probability", "MB"]
                    .contains(&row["unit"].as_str().unwrap())
            );
            assert!(row["paper"].is_null() && row["low"].is_number() && row["high"].is_number());
            (text(&row["case"]), text(&row["metric"]), row["ours"].as_f64().unwrap())
        })
        .collect()
}

#[track_caller]
fn value(rows: &[(String, String, f64)], case: &str, metric: &str) -> f64 {
    let found = rows.iter().find(|row| row.0.contains(case) && row.1 == metric);
    found.unwrap_or_else(|| panic!("no {case}, {metric} in {rows:?}")).2
}

#[test]
fn the_least_code_is_named_with_its_failure() {
    let rows = rows(&["code", "--failure-rate", "1e-3", "--target", "1e-6", "--length", "1023"]);
    assert!((value(&rows, "length 1023", "redundant") - 9.0).abs() < 0.5);
    assert!((value(&rows, "length 1023", "decoding fails") / 1.322e-7 - 1.0).abs() < 1e-3);
    let text = levelhead(&["plan", "code", "--failure-rate", "0.1%", "--length", "1023"]);
    let text = text.good();
    assert!(text.contains("9,1014") && text.contains("assumed:"), "{text}");
}

#[test]
fn every_answer_has_a_page_with_a_figure_and_its_assumptions() {
    let shelf = Shelf::new();
    let page = shelf.path("page.html");
    for args in [
        &["code", "--failure-rate", "1e-3", "--correlation", "2"][..],
        &["redundancy"],
        &["redundancy", "--capacities", "50:40:10", "--target", "1e-6"],
        &["tail"],
        &["tail", "--measure-decode", "--length", "63"],
        &["tail", "--sectors", "16", "--queue-depth", "8", "--forced-rate", "5e-6"],
        &["mode"],
        &["overhead"],
        &["idle", "--synthetic", "interval=20ms,count=300,reads=70%", "--cache", "64KiB,1MiB"],
    ] {
        assert!(!rows(args).is_empty());
        levelhead(&[&["plan"], args, &["--report", &page]].concat()).good();
        let html = fs::read_to_string(&page).unwrap();
        assert!(html.contains("<svg ") && html.contains("Assumptions"), "{args:?}");
    }
}

/// Values at the edges of what is allowed give numbers, or a dash, and never NaN.
#[test]
fn extreme_questions_have_plain_answers() {
    for (args, part) in [
        (&["tail", "--sector-time", "0ns", "--retry-time", "0ns"][..], "0.000    -   0.522    -"),
        (&["tail", "--failure-rate", "1", "--code", "1,1"], "weigh 0.000 in all (0.000, 0.000,"),
        (&["tail", "--code", "0,255", "--sectors", "1000"], "time of decoding: none"),
        (&["tail", "--percentile", "55"], "p55 ms"),
        (&["mode", "--load", "7%,28%"], "     0   7 %"),
        (&["code", "--failure-rate", "1e-3", "--correlation", "100"], "A bound marked - is none"),
        (&["code", "--failure-rate", "0", "--target", "0"], "No code meets a target of 0"),
    ] {
        let text = levelhead(&[&["plan"], args].concat()).good();
        assert!(text.contains(part), "{args:?}: {text}");
        for wrong in ["NaN", "inf", "-0.000", "0000000"] {
            assert!(!text.contains(wrong), "{args:?}: {text}");
        }
        assert!(!rows(args).is_empty());
    }
}

#[test]
fn a_folder_is_scanned_and_what_cannot_be_followed_is_counted() {
    let shelf = Shelf::new();
    let tree = shelf.path("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(format!("{tree}/one"), vec![0; 4096 * 1014]).unwrap();
    fs::write(format!("{tree}/small"), "x").unwrap();
    std::os::unix::fs::symlink(&tree, format!("{tree}/loop")).unwrap();
    let rows = rows(&["overhead", "--scan", &tree, "--code", "9,1014"]);
    assert!((value(&rows, "files", "files") - 2.0).abs() < 0.5);
    assert!((value(&rows, "scan", "links, not followed") - 1.0).abs() < 0.5);
    assert!((value(&rows, "code 9,1014", "overhead") - 100.0 * 18.0 / 1015.0).abs() < 1e-9);
}

#[test]
fn bad_questions_are_refused_in_one_sentence() {
    let shelf = Shelf::new();
    let table = shelf.path("sizes.csv");
    fs::write(&table, "8KiB,3\nlarge,2\n").unwrap();
    for (args, part) in [
        (&["code", "--failure-rate", "2"][..], "'2' is not a probability from 0 to 1"),
        (&["code", "--failure-rate", "0.5", "--length", "10"], "no code of length 10 reaches"),
        (&["code", "--failure-rate", "1e-3", "--length", "70000"], "from 1 to 65536"),
        (&["code", "--failure-rate", "0.5", "--correlation", "3"], "a probability is at most 1"),
        (&["tail", "--code", "9"], "'9' is not a code: expected REDUNDANT,DATA"),
        (&["tail", "--code", "0,1", "--sectors", "100000"], "fails too often"),
        (&["tail", "--queue-depth", "4", "--sectors", "300"], "spans more than a group"),
        (&["tail", "--percentile", "100"], "is not a percentile"),
        (&["tail", "--retry-time", "2min"], "longer than a minute"),
        (&["mode", "--wanted", "7"], "7 drives with requested data are more than the group's 6"),
        (&["redundancy", "--capacities", "1:2"], "as in 90:8:2"),
        (&["overhead", "--scan", "no/such"], "no/such"),
        (&["overhead", "--sizes", &table], "line 2: 'large,2'"),
    ] {
        let ended = levelhead(&[&["plan"], args].concat());
        assert!(ended.refusal().contains(part), "{args:?}: {}", ended.err);
    }
}

#[test]
fn idle_plan_names_the_least_cache_and_what_it_costs() {
    let load = "size=8KiB,interval=12ms,count=2000,reads=60%";
    let rows = rows(&["idle", "--synthetic", load, "--drive", "iraw-15k", "--cache", "32KiB,4MiB"]);
    assert!((value(&rows, "1ms, 4MiB", "validated") - 100.0).abs() < 1e-9);
    let small = value(&rows, "1ms, 32KiB", "validated");
    let least = value(&rows, "99 %", "cache");
    assert!(
        small < 99.0 && least > 0.032 && least < 4.2,
        "{small} % in 32 KiB, 99 % in {least} MB"
    );
    let (raw, idle) = ("raw", "1ms, 4MiB");
    let [raw, idle] = [raw, idle].map(|case| value(&rows, case, "mean over none"));
    assert!(1.0 < idle && idle < raw, "{idle} {raw}");
    let refused = |args: &[&str], part: &str| {
        let ended = levelhead(&[&["plan", "idle"], args].concat());
        assert_eq!(ended.code, Some(2), "{args:?}");
        assert!(ended.err.contains(part), "{}", ended.err);
    };
    refused(&["--synthetic", "count=9"], "no write among 9 requests");
    refused(&["--synthetic", load, "--cache", "1KiB"], "16KiB to 1TiB, not 1KiB");
    refused(&["--synthetic", load, "--wait", "2min"], "0ns to 60s before it verifies, not 120s");
    refused(&["/no/such/trace"], "/no/such/trace: ");
}
