//! `levelhead study`: rows that programs can read, the same bytes for the same question, and parts
//! that become the whole again.

mod support;

use std::fs;

use serde_json::Value;
use support::{Ended, Shelf, levelhead};

/// A study that takes a second, with few seeds.
const RUN: [&str; 6] = ["run", "eraid.table1", "--quick", "--seeds", "2", "--seed"];

fn study(options: &[&str]) -> Ended {
    levelhead(&[&["study"], options].concat())
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn list_names_every_study_and_its_source() {
    let text = study(&["list"]).good();
    for name in ["eraid.table1", "eraid.table2"] {
        assert!(text.contains(name), "{text}");
    }
    let value = study(&["list", "--json"]).json();
    assert!(value.as_array().unwrap().iter().all(|one| one["bed"].as_str().is_some()));
}

#[test]
fn json_has_the_rows_and_nothing_else() {
    let value = study(&[&RUN[..], &["5", "--json"]].concat()).json();
    let mut names = keys(&value);
    names.sort_unstable();
    assert_eq!(names, ["options", "rows", "seed", "study"]);
    assert_eq!((&value["study"], &value["seed"]), (&"eraid.table1".into(), &5.into()));
    assert_eq!(value["options"]["seeds"], 2);
    let rows = value["rows"].as_array().unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        let mut names = keys(row);
        names.sort_unstable();
        assert_eq!(names, ["case", "high", "low", "metric", "ours", "paper", "unit"]);
        let unit = row["unit"].as_str().unwrap();
        assert!(["%", "ms", "x", "count", "probability"].contains(&unit), "{unit}");
        let [low, ours, high] = ["low", "ours", "high"].map(|key| row[key].as_f64().unwrap());
        assert!(low <= ours && ours <= high, "{row}");
    }
}

#[test]
fn parts_become_the_whole_byte_for_byte() {
    let shelf = Shelf::new();
    let (whole_page, merged_page) = (shelf.path("whole"), shelf.path("merged"));
    let ask = |more: &[&str]| study(&[&RUN[..], &["3", "--json"], more].concat()).good();
    let whole = ask(&["--report", &whole_page]);
    assert_eq!(whole, ask(&[]), "another result for the same seed");
    let parts: Vec<String> = ["2/3", "1/3", "3/3"]
        .iter()
        .map(|shard| {
            let path = shelf.path(&format!("part-{}.json", &shard[..1]));
            fs::write(&path, ask(&["--shard", shard])).unwrap();
            path
        })
        .collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let merge = |parts: &[&str]| study(&[&["merge"], parts, &["--json"]].concat());
    let merged =
        study(&[&["merge"], &parts[..], &["--json", "--report", &merged_page]].concat()).good();
    assert!(merged == whole, "the parts are not the whole");
    let page = |folder: &str| fs::read(format!("{folder}/eraid.table1.html")).unwrap();
    assert!(page(&whole_page) == page(&merged_page), "the pages differ");
    assert!(String::from_utf8(page(&whole_page)).unwrap().contains("<svg"));

    let refusals = [
        (vec![parts[0], parts[1]], "part 3/3 is missing"),
        (vec![parts[0], parts[1], parts[1]], "part 1/3 is there twice"),
    ];
    for (parts, sentence) in refusals {
        let ended = merge(&parts);
        assert_eq!(ended.code, Some(2));
        assert!(ended.err.contains(sentence), "{}", ended.err);
    }
    let other = shelf.path("other.json");
    let seed_4 = study(&[&RUN[..], &["4", "--json", "--shard", "3/3"]].concat()).good();
    fs::write(&other, seed_4).unwrap();
    let ended = merge(&[parts[0], parts[1], &other]);
    assert!(ended.err.contains("not parts of the same run"), "{}", ended.err);
    fs::write(&other, "{}").unwrap();
    assert!(merge(&[&other]).err.contains("is no part of a study"));
}

#[test]
fn bad_questions_are_refused_in_a_sentence() {
    for (options, sentence) in [
        (&["run", "eraid.table3"][..], "'eraid.table3' is no study: expected one of"),
        (&["run", "eraid.table1", "--seeds", "0"], "a study takes 1 to 1000 seeds, not 0"),
        (&["run", "eraid.table1", "--shard", "3/2"], "'3/2' is no shard"),
        (&["run", "eraid.table1", "--trace", "x"], "eraid.table1 takes no trace"),
    ] {
        let ended = study(options);
        assert_eq!(ended.code, Some(2), "{options:?}");
        assert!(ended.err.contains(sentence), "{}", ended.err);
    }
}
