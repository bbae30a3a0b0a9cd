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
        &["checksums", "raid5:5+1"],
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
        (
            &["checksums", "raid1:2", "--rot", "0", "--lost", "0", "--misdirected", "0"],
            "drives with it                            0\n",
        ),
        (&["checksums", "raid6:4+2,chunk=1MiB", "--working-set", "0B"], "100.000 %"),
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
        (
            &["checksums", "raid0:4"],
            "raid0 has no redundancy, and so no journal, which checksums need",
        ),
        (&["checksums", "raid5:5+1", "--drive", "nearline"], "nearline"),
        (
            &["checksums", "raid5:5+1", "--working-set", "10TB"],
            "is more than the 9.848 TB of the array",
        ),
        (&["checksums", "raid5:5+1", "--scrubs", "0"], "'0' is not a number above zero"),
        (&["checksums", "raid5:5+1", "--rot", "2"], "'2' is not a probability from 0 to 1"),
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

#[test]
fn checksums_plan_has_what_they_cost_and_find() {
    let given = ["--reads", "26", "--rot", "1%", "--rot-sectors", "10", "--misdirected", "0.1%"];
    let rows = rows(&[&["checksums", "raid6:4+2", "--working-set", "80GB"], &given[..]].concat());
    let near = |case: &str, metric: &str, want: f64| {
        let ours = value(&rows, case, metric);
        assert!((ours / want - 1.0).abs() < 1e-3, "{case}, {metric}: {ours} is not {want}");
    };
    near("tag sectors", "share of each drive", 100.0 / 65.0);
    // 320 bytes for 256 KiB, and 64 MiB of them: for 54.98 GB of drives, four sixths of which are data.
    near("memory for all tags", "for a TB of drives", 1220.7);
    near("memory that an array has", "for the tags of so much data", 36_650.0);
    near("memory that an array has", "for a share of the data in use", 45.81);
    near("random read without its tag", "sectors more", 16.5);
    // Six drives, 10 sectors on one in a hundred, four sixths of them data; 1 / e of them is read before the scrub.
    near("rot", "drives with it", 0.06);
    near("rot", "wrong sectors of data", 0.4);
    near("rot", "answered, scrubs alone", 0.4 * 0.3679);
    near("rot", "answered, checksums", 0.4 / 4_294_967_296.0);
    near("misdirected write", "wrong sectors of data", 0.008);
    near("with checksums", "wrong answer after the scrub", 3.8);
}

/// The plan's closed forms beside the runs of the studies.
#[test]
fn checksums_plan_agrees_with_the_studies() {
    const STUDIES: &str = include_str!("../../../../docs/studies.md");
    let cells = |load: &str, at: usize| -> f64 {
        let line = STUDIES.lines().find(|line| line.starts_with(&format!("| {load} |"))).unwrap();
        line.split('|').nth(at + 2).unwrap().trim().parse().unwrap()
    };
    let arrays = [("raid5:5+1", "nearline-2tb"), ("raid5:5+1", "nearline-18tb")];
    let wide = [("raid6:6+2", "nearline-2tb"), ("raid6:6+2", "nearline-18tb")];
    for (at, (array, drive)) in arrays.into_iter().chain(wide).enumerate() {
        let rows = rows(&["checksums", array, "--drive", drive]);
        for (load, metric, study) in [
            ("random reads, idle", "mean", "random reads, idle, mean"),
            ("random reads, busy", "rate", "random 4 KiB reads, closed loop, rate"),
            ("small writes, busy", "rate", "small writes, closed loop, rate"),
        ] {
            let ours = value(&rows, load, &format!("{metric} over none, no tag in memory"));
            let ran = cells(study, at);
            assert!((ours - ran).abs() < 0.025, "{array}, {drive}, {load}: {ours}, study {ran}");
        }
    }
    let mut lines = STUDIES.lines().skip_while(|line| !line.contains("| raid1:2 | raid5:2+1 |"));
    let mut line =
        |rule: &str| lines.find(|line| line.starts_with(&format!("| {rule} |"))).unwrap();
    let (none, ours) = (line("none"), line("levelhead"));
    for (at, array) in ["raid1:2", "raid5:5+1", "raid6:6+2"].into_iter().enumerate() {
        let rows = rows(&["checksums", array]);
        for (case, runs) in [("without checksums", none), ("with checksums", ours)] {
            let shown = ["before", "after"]
                .map(|when| value(&rows, case, &format!("wrong answer {when} the scrub")));
            let cell = format!(" {}, {}, ", shown[0], shown[1]).replace(", 8, ", ", 8.0, ");
            assert!(runs.split('|').nth(at + 2).unwrap().starts_with(&cell), "{runs}: {cell}");
        }
    }
}
