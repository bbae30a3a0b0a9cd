//! `levelhead-lab fleet ..` as it is typed.

use std::fmt::Write;
use std::fs;

use serde_json::Value;

use crate::support::{Shelf, levelhead, shared};

/// A group of five for a number of hours, whose last drive takes a given multiple of the others' latency from the third hour on.
fn samples(hours: i64, ratio: f64) -> String {
    let mut text = "ts,group,drive,latency_us,load\n".to_owned();
    for minute in 0..hours * 60 {
        for drive in 0..5_i64 {
            let is_slow = drive == 4 && minute >= 120;
            let latency = 100.0 + ((minute * 7 + drive * 13) % 11) as f64;
            let latency = if is_slow { latency * ratio } else { latency };
            writeln!(text, "{},md0,sd{drive},{latency},50", 1_700_000_100 + minute * 60).unwrap();
        }
    }
    text
}

#[test]
fn a_slow_drive_is_named_and_ends_with_1() {
    let shelf = Shelf::new();
    let path = shelf.path("samples.csv");
    fs::write(&path, samples(8, 1.5)).unwrap();
    let ended = levelhead(&["fleet", "detect", &path, "--json"]);
    assert_eq!(ended.code, Some(1));
    let value: Value = serde_json::from_str(&ended.out).unwrap();
    let drives = value["drives"].as_array().unwrap();
    assert_eq!(drives.len(), 5);
    let keys: Vec<&String> = drives[0].as_object().unwrap().keys().collect();
    let expected =
        ["busy_hours", "decided_at", "drive", "group", "high", "low", "ratio", "verdict"];
    assert_eq!(keys, expected);
    assert_eq!(drives[0]["verdict"], "fine");
    assert_eq!(drives[0]["decided_at"], Value::Null);
    assert_eq!(drives[0]["busy_hours"], Value::Null);
    let slow = &drives[4];
    assert_eq!((slow["group"].as_str(), slow["drive"].as_str()), (Some("md0"), Some("sd4")));
    assert_eq!(slow["verdict"], "slow");
    assert!((slow["ratio"].as_f64().unwrap() - 1.5).abs() < 0.05, "{slow}");
    assert!(slow["decided_at"].as_i64().unwrap() > 1_700_000_100 + 7200, "{slow}");
    assert!(slow["busy_hours"].as_f64().unwrap() < 4.0, "{slow}");
    let text = levelhead(&["fleet", "detect", &path]).out;
    assert!(text.contains("level: 5 drives, 1 slow, 4 fine"), "{text}");
}

#[test]
fn a_healthy_group_ends_with_0_and_wrong_input_with_2() {
    let shelf = Shelf::new();
    let path = shelf.path("samples.csv");
    fs::write(&path, samples(8, 1.0)).unwrap();
    for detector in ["level", "median-ratio", "mad", "tukey", "regression"] {
        let value = levelhead(&["fleet", "detect", &path, "--detector", detector, "--json"]).json();
        assert_eq!(value["detector"], detector);
        let explained = levelhead(&["fleet", "detect", "--explain", "--detector", detector]).good();
        assert!(explained.starts_with(detector), "{explained}");
    }
    fs::write(&path, "ts,group,drive,latency_us,load\n1,g,a,b,1\n").unwrap();
    let refused = levelhead(&["fleet", "detect", &path]);
    assert!(
        refused
            .refusal()
            .ends_with("samples.csv: line 2: latency_us 'b' is neither a number nor NA")
    );
    let refused = levelhead(&["fleet", "detect", &path, "--detector", "none"]);
    assert!(refused.refusal().contains("no detector is called 'none'"));
    assert!(levelhead(&["fleet", "detect"]).refusal().contains("FILE"));
}

#[test]
fn labelled_drives_of_perseus_are_found() {
    let (Some(table), Some(labels)) =
        (shared("fleet/perseus/cluster_A.parquet"), shared("fleet/perseus/slow_drives.csv"))
    else {
        return;
    };
    let (table, labels) = (table.to_str().unwrap(), labels.to_str().unwrap());
    let ended = levelhead(&["fleet", "detect", table, "--labels", labels, "--json"]);
    assert_eq!(ended.code, Some(1));
    let value: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(value["drives"].as_array().unwrap().len(), 360);
    let counts = &value["labels"];
    assert_eq!(counts["found"], 2, "{counts}");
    assert_eq!(counts["false"].as_array().map(Vec::len), Some(0), "{counts}");
    assert_eq!(counts["missed"].as_array().map(Vec::len), Some(0), "{counts}");
}
