//! `levelhead-lab fs replay`: a list of operations on files, with the code and without, the same numbers for the same seed.

use std::fs;

use serde_json::Value;

use crate::support::{Ended, Shelf, levelhead};

const LIST: &str = "\
# what is there before
write data 0 32MiB
begin
read data 0 16MiB
write log 0 64KiB
sync log
think 5
write data 4096 8192   # in place
sync
remove log
";

fn replay(shelf: &Shelf, list: &str, options: &[&str]) -> Ended {
    let path = shelf.path("my.list");
    fs::write(&path, list).unwrap();
    levelhead(&[&["fs", "replay", &path], options].concat())
}

fn run<'a>(replayed: &'a Value, way: &str) -> &'a Value {
    let mut runs = replayed["runs"].as_array().unwrap().iter();
    runs.find(|run| run["way"] == way).unwrap_or_else(|| panic!("no {way} in {replayed}"))
}

#[test]
fn list_is_carried_out_with_the_code_and_without() {
    let shelf = Shelf::new();
    let options = ["--retry-rate", "1%", "--code", "13,242", "--seed", "3", "--json"];
    let replayed = replay(&shelf, LIST, &options).json();
    let keys: Vec<&String> = replayed.as_object().unwrap().keys().collect();
    let known = ["code", "drive", "kind", "retry_rate", "runs", "seed", "workload"];
    assert_eq!(keys.len(), known.len(), "{keys:?}");
    assert!(known.iter().all(|key| replayed.get(key).is_some()), "{keys:?}");
    assert_eq!((&replayed["code"], &replayed["kind"]), (&"13,242".into(), &"auto".into()));
    let [coded, bare, perfect] = ["with the code", "no code", "no code, perfect drive"]
        .map(|way| run(&replayed, way).clone());
    // 4096 sectors are read, of which one in a hundred fails.
    let decoded = coded["sectors_decoded"].as_u64().unwrap();
    assert!((10..100).contains(&decoded), "{coded}");
    assert_eq!(coded["sectors_retried"], 0);
    assert!(bare["sectors_decoded"] == 0 && perfect["sectors_retried"] == 0, "{bare} {perfect}");
    let times = |run: &Value| run["times_perfect"].as_f64().unwrap();
    assert!((times(&perfect) - 1.0).abs() < 1e-9);
    assert!(times(&bare) > times(&coded), "retries cost more than the code");
    let counts = |run: &Value| -> Vec<(String, u64)> {
        let operations = run["operations"].as_array().unwrap().iter();
        let count = |one: &Value| {
            (one["operation"].as_str().unwrap().to_owned(), one["count"].as_u64().unwrap())
        };
        operations.map(count).collect()
    };
    let expected = [("read", 1), ("write", 2), ("sync", 2), ("remove", 1), ("think", 1)];
    let expected = expected.map(|(name, count)| (name.to_owned(), count));
    assert!([&coded, &bare, &perfect].iter().all(|run| counts(run) == expected));
    let thought = coded["operations"][4]["max_ms"].as_f64().unwrap();
    assert!((thought - 5.0).abs() < 1e-9, "{thought}");

    let again = replay(&shelf, LIST, &options).json();
    assert_eq!(again, replayed, "the same seed");
    let text = replay(&shelf, LIST, &options[..6]).good();
    assert!(text.contains("no code, perfect drive") && text.contains("p99 ms"), "{text}");
}

#[test]
fn files_have_the_kind_that_is_asked_for() {
    let shelf = Shelf::new();
    for kind in ["a", "b", "mutable"] {
        let options = ["--retry-rate", "0.5%", "--kind", kind, "--outstanding", "4", "--json"];
        let replayed = replay(&shelf, LIST, &options).json();
        assert_eq!(replayed["kind"], kind);
    }
}

#[test]
fn what_cannot_be_is_refused_in_one_sentence() {
    let shelf = Shelf::new();
    for (list, options, expected) in [
        (
            "write a 0 1\nread b 0 1\n",
            &[][..],
            "my.list:2:6: expected a file that was written before, found 'b'",
        ),
        ("", &[], "my.list: expected at least one operation that is timed, found none"),
        (LIST, &["--code", "65,100"], "65,100 is not a code for files"),
        (LIST, &["--kind", "c"], "'c' is not a kind of file: expected auto, a, b or mutable"),
        (LIST, &["--outstanding", "0"], "0"),
        (LIST, &["--drive", "none-such"], "none-such"),
    ] {
        let ended = replay(&shelf, list, options);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.err.contains(expected), "{expected}: {}", ended.err);
        assert!(!ended.err.contains("panicked"), "{}", ended.err);
    }
    let ended = levelhead(&["fs", "replay", "hibench:none"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let ended = levelhead(&["fs", "replay", &shelf.path("not there")]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
}
