//! `levelhead-lab study`: rows that programs can read, the same bytes for the same question, parts that
//! become the whole again, and runs that go on where another was cut short.

use std::fs;

use serde_json::Value;

use crate::support::{Ended, Shelf, keys, levelhead};

/// A study that takes a second, with few seeds.
const RUN: [&str; 6] = ["run", "eraid.table1", "--quick", "--seeds", "2", "--seed"];

fn study(options: &[&str]) -> Ended {
    levelhead(&[&["study"], options].concat())
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
fn traces_are_cases_without_a_number_of_the_paper() {
    let shelf = Shelf::new();
    let line = |at: u64, kind: &str| format!("{at},h,0,{kind},8192,4096,10000\n");
    let traces = ["a.csv", "b.csv"].map(|name| {
        let text = [line(1, "Write"), line(900_000, "Write"), line(950_000, "Read")].concat();
        fs::write(shelf.path(name), text).unwrap();
        shelf.path(name)
    });
    let value = study(&[
        "run",
        "iraw.table2",
        "--quick",
        "--trace",
        &traces[0],
        "--trace",
        &traces[1],
        "--json",
    ]);
    let value = value.json();
    let rows: Vec<[&Value; 5]> = value["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| ["case", "metric", "unit", "paper", "ours"].map(|key| &row[key]))
        .collect();
    let row = |case: &str, metric: &str, unit: &str, ours: f64| -> [Value; 5] {
        [case.into(), metric.into(), unit.into(), Value::Null, ours.into()]
    };
    let wanted: Vec<[Value; 5]> = ["a.csv", "b.csv"]
        .into_iter()
        .flat_map(|case| {
            [
                row(case, "validated", "%", 100.0),
                row(case, "age", "count", 2.0),
                row(case, "cache", "MB", 0.004096),
            ]
        })
        .collect();
    let wanted: Vec<[&Value; 5]> = wanted.iter().map(<[Value; 5]>::each_ref).collect();
    assert_eq!(rows, wanted);
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
    assert!(merge(&[&other]).err.contains("is not a part of a study"));

    // What a hand or a broken disk can make of a part.
    let text = fs::read_to_string(parts[0]).unwrap();
    let mut second = serde_json::from_str::<Value>(&text).unwrap();
    let jobs = second["jobs"].as_array_mut().unwrap();
    let (count, fewer) = (jobs.len(), jobs.len() - 1);
    jobs.pop();
    let others = format!("has {count} measurements that are not the {count} of part 2/3");
    let too_few = format!("has {fewer} measurements that are not the {count} of part 2/3");
    for (changed, sentence) in [
        (text.replace("\"version\": \"", "\"version\": \"9"), "was measured by levelhead 9"),
        (text.replace("\"mean\"", "\"men\""), "has no 'mean'"),
        (text.replacen("\"cell\": 1,", "\"cell\": 2,", 1), others.as_str()),
        (text.replacen("\"quantiles\": [", "\"quantiles\": [1.5,", 1), "is cut short"),
        (second.to_string(), too_few.as_str()),
    ] {
        fs::write(&other, changed).unwrap();
        let ended = merge(&[&other, parts[1], parts[2]]);
        assert!(ended.refusal().contains(sentence), "{}", ended.err);
    }
}

#[test]
fn a_run_that_was_cut_short_goes_on_and_ends_like_one_that_was_not() {
    let shelf = Shelf::new();
    let journal = shelf.path("journal");
    let ask = |seed: &str, more: &[&str]| {
        let run = ["run", "eraid.table1", "--quick", "--seeds", "1", "--json", "--seed", seed];
        study(&[&run[..], more].concat())
    };
    let whole = ask("3", &[]).good();
    assert!(ask("3", &["--resume", &journal]).good() == whole, "with a journal");
    let full = fs::read_to_string(&journal).unwrap();
    let lines: Vec<&str> = full.split_inclusive('\n').collect();

    // As a kill leaves it: in the middle of a line.
    let (kept, torn) = (lines[..lines.len() / 2].concat(), &lines[lines.len() / 2][..20]);
    let left = format!("{kept}{torn}");
    fs::write(&journal, &left).unwrap();
    let ended = ask("4", &["--resume", &journal]);
    let sentence = format!("{journal} is the journal of another question: its seed is 3, not 4");
    assert_eq!(ended.refusal(), sentence);
    assert!(fs::read_to_string(&journal).unwrap() == left, "refused, and changed");

    assert!(ask("3", &["--resume", &journal]).good() == whole, "cut short");
    let resumed = fs::read_to_string(&journal).unwrap();
    assert!(resumed.starts_with(&kept), "what was there is there");
    assert_eq!(resumed.lines().count(), lines.len(), "only the rest was measured");
}

#[test]
fn tables_and_parts_are_resumed_like_the_whole() {
    let shelf = Shelf::new();
    let journal = shelf.path("journal");
    let ask =
        |more: &[&str]| study(&[&["run", "eraid.fig3", "--quick", "--seeds", "2"], more].concat());
    for options in [&[][..], &["--shard", "2/3"], &["--shard", "2/3", "--json"]] {
        drop(fs::remove_file(&journal));
        let resumed = || ask(&[options, &["--resume", &journal]].concat()).good();
        let alone = ask(options).good();
        assert_eq!(resumed(), alone, "{options:?}");
        let full = fs::read(&journal).unwrap();
        assert_eq!(resumed(), alone, "{options:?}, nothing left to do");
        assert!(fs::read(&journal).unwrap() == full, "{options:?}: measured again");
    }
    let ended = ask(&["--resume", &journal]);
    assert!(ended.refusal().ends_with("its part is 2/3, not 1/1"), "{}", ended.err);
}

/// Closed forms have no jobs, so that their parts are nothing but a question.
#[test]
fn parts_that_ask_for_nonsense_are_refused() {
    let shelf = Shelf::new();
    let part = shelf.path("part.json");
    let whole = study(&["run", "lec.table1", "--shard", "1/1", "--json"]).good();
    for (seeds, traces, sentence) in [
        ("0", "[]", "a study takes 1 to 1000 seeds, not 0"),
        ("4000000000", "[]", "a study takes 1 to 1000 seeds, not 4000000000"),
        ("1", "[\"a\", \"a\"]", "two traces are called a"),
        ("1", "[\"\\u001b[31m\"]", "'\\u{1b}[31m' is not a trace's name"),
        ("1", "[\"a\"]", "lec.table1 takes no trace"),
    ] {
        let changed = whole.replace("\"seeds\": 1", &format!("\"seeds\": {seeds}"));
        let changed = changed.replace("\"traces\": []", &format!("\"traces\": {traces}"));
        fs::write(&part, changed).unwrap();
        let ended = study(&["merge", &part]);
        assert!(ended.refusal().contains(sentence), "{}", ended.err);
    }
}

#[test]
fn bad_questions_are_refused_in_a_sentence() {
    for (options, sentence) in [
        (&["run", "eraid.table3"][..], "'eraid.table3' is not a study: expected one of"),
        (&["run", "eraid.table1", "--seeds", "0"], "a study takes 1 to 1000 seeds, not 0"),
        (&["run", "eraid.table1", "--shard", "3/2"], "'3/2' is not a shard"),
        (&["run", "eraid.table1", "--trace", "x"], "eraid.table1 takes no trace"),
    ] {
        let ended = study(options);
        assert_eq!(ended.code, Some(2), "{options:?}");
        assert!(ended.err.contains(sentence), "{}", ended.err);
    }
}

#[test]
fn pages_and_tables_lead_with_our_result_and_whether_it_is_the_papers() {
    let shelf = Shelf::new();
    let folder = shelf.path("pages");
    for (name, verdict, says) in [
        (
            "lec.table1",
            "Our results reproduce all 16 numbers of the paper",
            "The paper: At a target of 1e-6",
        ),
        (
            "sdhdd.table2",
            "Our results reproduce 16 of the paper&#39;s 18 numbers",
            "The paper: Without zero",
        ),
        ("lec.fig4", "Ours: redundancy: ", "The paper: To keep redundancy low"),
    ] {
        let text = study(&["run", name, "--quick", "--report", &folder]).good();
        let line = format!("\nverdict: {}", verdict.replace("&#39;", "'"));
        assert!(text.contains(&line), "{text}");
        let page = fs::read_to_string(format!("{folder}/{name}.html")).unwrap();
        let lead = format!("</h1>\n<p class=\"lh-lead\">{verdict}");
        let [lead, says] =
            [lead.as_str(), says].map(|text| page.find(text).unwrap_or_else(|| panic!("{text}")));
        assert!(lead < says, "{name}");
    }
    let head = study(&["run", "lec.table1"]).good();
    let head = head.lines().find(|line| line.starts_with("case ")).unwrap();
    let columns: Vec<&str> = head.split_whitespace().collect();
    assert_eq!(columns, ["case", "metric", "ours", "low", "high", "unit", "paper", "reproduced"]);
}
