//! `levelhead demo`: it cleans up after itself, and all of it where `LEVELHEAD_DEMO=1` allows it a minute.

use std::fs;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::demo::rows;
use crate::support::{Shelf, command, end, keys, wait_until};

/// Starts the demo, interrupts it as soon as `has_begun` of what is in its folder, and sees it end.
fn check_interrupted(what: &str, has_begun: impl Fn(&[String]) -> bool) {
    let shelf = Shelf::new();
    let folder = shelf.dir.path();
    let mut demo = command(&["demo", "--json", "--folder", folder.to_str().unwrap()]);
    let child = demo.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until(what, || {
        let Some(own) = fs::read_dir(folder).unwrap().next() else { return false };
        let files = fs::read_dir(own.unwrap().path()).unwrap();
        let name = |file: std::io::Result<fs::DirEntry>| file.unwrap().file_name();
        has_begun(&files.map(|file| name(file).into_string().unwrap()).collect::<Vec<_>>())
    });
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ended = end(child, "the interrupted demo");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.err, "levelhead: stopped before the end; nothing is left behind\n");
    assert_eq!(shelf.names(), [] as [&str; 0]);
}

#[test]
fn demo_that_is_interrupted_leaves_nothing_behind() {
    check_interrupted("its drives are there", |names| names.len() >= 6);
    check_interrupted("a client is served", |names| {
        names.iter().any(|name| name.ends_with(".sock"))
    });
}

#[test]
fn demo_shows_what_each_policy_makes_of_each_trouble() {
    let Some((rows, page)) = rows(&[]) else { return };
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let names: Vec<_> =
        rows.iter().map(|row| (text(row, "scenario"), text(row, "policy"))).collect();
    let expected = [
        ("healthy", "normal"),
        ("retries", "normal"),
        ("retries", "level"),
        ("slow-drive", "normal"),
        ("slow-drive", "level"),
    ];
    assert_eq!(names, expected.map(|(scenario, policy)| (scenario.into(), policy.into())));
    for row in &rows {
        let expected = ["mean_ms", "p50_ms", "p99_ms", "policy", "scenario", "verified_bytes"];
        assert_eq!(keys(row), expected);
        assert!(row["mean_ms"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row["verified_bytes"].as_u64().unwrap() > 0, "{row}");
    }
    assert!(page.contains("<svg"));
}
