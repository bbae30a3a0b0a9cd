//! `levelhead-lab ecc ..` as it is typed.

use std::fs;

use serde_json::Value;

use crate::support::{Shelf, levelhead};

/// A count that takes a second at most.
const SHORT: [&str; 9] =
    ["ecc", "simulate", "--forced", "0,512", "--ber", "0.0195", "--iterations", "20", "--json"];

fn count(options: &[&str]) -> Value {
    let mut value = levelhead(&[&SHORT, options].concat()).json();
    let kernel = value.as_object_mut().unwrap().remove("kernel").unwrap();
    assert!(
        ["naive", "portable", "avx2", "avx512"].contains(&kernel.as_str().unwrap()),
        "{kernel}"
    );
    value
}

#[test]
fn rows_have_exact_intervals_and_do_not_depend_on_the_kernel() {
    let options = ["--failures", "10", "--frames-max", "128"];
    let value = count(&options);
    assert_eq!(value, count(&[&options[..], &["--kernel", "portable"]].concat()));
    let rows = value["rows"].as_array().unwrap();
    let keys: Vec<&String> = rows[0].as_object().unwrap().keys().collect();
    let expected = [
        "ber",
        "channel",
        "failures",
        "forced",
        "frames",
        "high",
        "iterations_mean",
        "low",
        "rate",
        "undetected",
    ];
    assert_eq!(keys, expected);
    let number = |row: &Value, key: &str| row[key].as_f64().unwrap();
    let (plain, forced) = (&rows[0], &rows[1]);
    assert_eq!((plain["forced"].as_u64(), forced["forced"].as_u64()), (Some(0), Some(512)));
    assert_eq!((plain["failures"].as_u64(), forced["frames"].as_u64()), (Some(10), Some(128)));
    for row in rows {
        assert!(number(row, "low") <= number(row, "rate"), "{row}");
        assert!(number(row, "rate") <= number(row, "high"), "{row}");
        assert!(number(row, "iterations_mean") <= 20.0, "{row}");
    }
    assert!(number(plain, "rate") > 0.3 && number(forced, "rate") < 0.05, "{value}");
    let text =
        levelhead(&["ecc", "simulate", "--forced", "1024", "--ber", "1.5%", "--frames-max", "64"]);
    let text = text.good();
    assert!(text.contains("< 4.57e-2") && text.contains("seed 7"), "{text}");
}

#[test]
fn a_count_goes_on_from_its_checkpoint() {
    let shelf = Shelf::new();
    let path = shelf.path("counts.json");
    let whole = count(&["--failures", "300", "--frames-max", "384"]);
    count(&["--failures", "300", "--frames-max", "128", "--checkpoint", &path]);
    let first = fs::read(&path).unwrap();
    let rest = count(&["--failures", "300", "--frames-max", "384", "--checkpoint", &path]);
    assert_eq!(rest, whole);
    assert_ne!(fs::read(&path).unwrap(), first);
    // A shorter count does not lose the longer one.
    let kept = fs::read(&path).unwrap();
    let short = ["--failures", "10", "--frames-max", "128"];
    assert_eq!(count(&[&short[..], &["--checkpoint", &path]].concat()), count(&short));
    assert_eq!(fs::read(&path).unwrap(), kept);
}

#[test]
fn the_matrix_is_written_in_the_alist_format() {
    let shelf = Shelf::new();
    let path = shelf.path("code.alist");
    let value = levelhead(&["ecc", "code", "--alist", &path, "--json"]).json();
    assert_eq!(
        (value["code_bits"].as_u64(), value["data_bits"].as_u64()),
        (Some(36_352), Some(32_768))
    );
    assert_eq!((value["girth"].as_u64(), value["full_rank"].as_bool()), (Some(6), Some(true)));
    let text = fs::read_to_string(&path).unwrap();
    let mut lines = text
        .lines()
        .map(|line| line.split(' ').map(|number| number.parse().unwrap()).collect::<Vec<usize>>());
    let mut next = || lines.next().unwrap();
    let (sizes, most) = (next(), next());
    assert_eq!((sizes, most), (vec![36_352, 3_584], vec![5, 41]));
    let (of_bits, of_checks) = (next(), next());
    let bits: Vec<Vec<usize>> = (0..36_352).map(|_| next()).collect();
    let checks: Vec<Vec<usize>> = (0..3_584).map(|_| next()).collect();
    for (bit, line) in bits.iter().enumerate() {
        let places = line.iter().filter(|check| **check > 0);
        assert_eq!(places.clone().count(), of_bits[bit]);
        assert!(places.clone().all(|check| checks[check - 1].contains(&(bit + 1))), "bit {bit}");
    }
    assert_eq!(of_bits.iter().sum::<usize>(), of_checks.iter().sum::<usize>());
    assert_eq!(lines.next(), None);
}

#[test]
fn what_no_count_can_take_is_refused() {
    let shelf = Shelf::new();
    let path = shelf.path("counts.json");
    fs::write(&path, "{\"program\":\"levelhead 0.1.0\",\"points\":[1]}").unwrap();
    let simulate = |options: &[&str]| {
        let ended = levelhead(&[&["ecc", "simulate"], options].concat());
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{ended:?}");
        ended.err
    };
    for (options, part) in [
        (&["--ber", "0.6"][..], "above 0 and below 0.5, not 0.6"),
        (&["--ber", "0"], "above 0 and below 0.5, not 0"),
        (&["--ber", "x"], "is not a probability"),
        (&["--ber", "0.01", "--forced", "128"], "0, 256, 512 or 1024 bytes, not '128'"),
        (&["--ber", "0.01", "--failures", "1"], "from 2 to"),
        (&["--ber", "0.01", "--iterations", "0"], "from 1 to 1000"),
        (&["--ber", "0.01", "--kernel", "sse"], "naive, portable, avx2 or avx512"),
        (&["--ber", "0.01", "--channel", "loud"], "soft or hard"),
        (&["--ber", "0.01", "--checkpoint", &path], "not a checkpoint of this program"),
        (&[], "--ber"),
    ] {
        let sentence = simulate(options);
        assert!(sentence.contains(part), "no '{part}' in: {sentence}");
    }
}

#[test]
fn a_table_is_shown_written_and_taken_by_a_drive() {
    let shelf = Shelf::new();
    let path = shelf.path("my.table");
    let ask =
        ["ecc", "table", "--failure-rate", "10%", "--written-offset", "4%", "--pass-offset", "3%"];
    let value = levelhead(&[&ask[..], &["-o", path.as_str(), "--json"]].concat()).json();
    let rows = value["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4 * 8);
    let keys: Vec<&String> = rows[0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["fails", "forced", "revolutions", "step"]);
    assert!((rows[0]["fails"].as_f64().unwrap() - 0.1).abs() < 1e-6, "{value}");
    for pair in rows.windows(2).filter(|pair| pair[0]["forced"] == pair[1]["forced"]) {
        assert!(pair[0]["fails"].as_f64() > pair[1]["fails"].as_f64(), "{pair:?}");
        assert_eq!(pair[0]["revolutions"].as_u64().map(|n| n + 1), pair[1]["revolutions"].as_u64());
    }
    let text = levelhead(&ask).good();
    assert!(text.contains("write 4 % and read 3 % of the track pitch off"), "{text}");

    let faults = format!("ecc={path}");
    let load = [
        "replay",
        "--synthetic",
        "size=4KiB,interval=20ms,count=300",
        "--policy",
        "normal",
        "--json",
    ];
    let value = levelhead(&[&load[..], &["--faults", &faults]].concat()).json();
    let good = levelhead(&load).json();
    assert_ne!(value["runs"], good["runs"]);
    for (faults, expected) in [
        ("ecc=none-such", "'none-such' is not a retry table"),
        ("ecc=equal,hard-rate=1%", "hard-rate cannot be stated beside ecc"),
        ("rotations=3,ecc=equal", "rotations cannot be stated beside ecc"),
    ] {
        let ended = levelhead(&[&load[..], &["--faults", faults]].concat());
        let error = ended.refusal();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn tables_that_cannot_be_are_refused_in_one_sentence() {
    for (options, expected) in [
        (["--failure-rate", "60%"], "the failure rate of a first pass is 1e-12 to 0.4, not 0.6"),
        (["--written-offset", "30%"], "is 0% to 20% of the track pitch, not 30%"),
        (["--step", "aim=1%"], "the first step is the first pass"),
        (["--step", "aim"], "'aim': expected revolutions=N, aim=SHARE, averaged=N or iterations=N"),
    ] {
        let ended = levelhead(&[&["ecc", "table"][..], &options].concat());
        let error = ended.refusal();
        assert!(error.contains(expected), "{error}");
    }
}
