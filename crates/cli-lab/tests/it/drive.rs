//! `levelhead-lab drive ..`: models that are shown, and drives that are measured.

use std::fs;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Shelf, command, end, levelhead, wait_until};

#[test]
fn model_without_a_name_lists_the_makes() {
    let makes = levelhead(&["drive", "model", "--json"]).json();
    let names: Vec<&str> =
        makes.as_array().unwrap().iter().map(|make| make["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"nearline-2tb") && names.contains(&"nearline-18tb"), "{names:?}");
    assert!(levelhead(&["drive", "model"]).good().contains("st2000dm006"));
}

#[test]
fn model_shows_rates_seeks_and_random_reads() {
    let shelf = Shelf::new();
    let page = shelf.dir.path().join("page.html");
    let page_arg = page.to_str().unwrap();
    let args = ["drive", "model", "nearline-2tb", "--report", page_arg];
    let text = levelhead(&args).good();
    for part in ["revolutions a minute: 7200", "heads: 5", "seed: 7", "175.0", "reads/s", "█"] {
        assert!(text.contains(part), "no '{part}' in {text}");
    }
    assert_eq!(fs::read_to_string(&page).unwrap().matches("class=\"lh-fig\"").count(), 3);
    let json = levelhead(&["drive", "model", "nearline-2tb", "--json"]).json();
    assert_eq!(json, levelhead(&["drive", "model", "nearline-2tb", "--json"]).json());
    assert_eq!(json["zones"].as_array().unwrap().len(), 20);
    let depths = json["random_reads"].as_array().unwrap();
    let rate = |at: usize| depths[at]["reads_per_s"].as_f64().unwrap();
    assert!((75.0..90.0).contains(&rate(0)) && (150.0..220.0).contains(&rate(5)), "{depths:?}");
    let error = levelhead(&["drive", "model", "nonesuch"]);
    assert!(
        error.refusal().contains("'nonesuch' is not a drive profile: expected one of nearline-2tb")
    );
}

#[test]
fn measure_refuses_before_it_reads() {
    let shelf = Shelf::new();
    let path = |name: &str| shelf.dir.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("my.toml"), "mine").unwrap();
    fs::File::create(path("d.img")).unwrap().set_len(1 << 20).unwrap();
    let refusal = |drive: &str, to: &str| {
        let ended = levelhead(&["drive", "measure", drive, "-o", to, "--quick"]);
        ended.refusal().to_owned()
    };
    let there = refusal(&path("d.img"), &path("my.toml"));
    assert_eq!(there, format!("{} exists: --force replaces it", path("my.toml")));
    assert_eq!(fs::read_to_string(path("my.toml")).unwrap(), "mine");
    let small = refusal(&path("d.img"), &path("new.toml"));
    assert!(small.contains("1MiB are too little to measure: 99840KiB or more"), "{small}");
    let itself = levelhead(&["drive", "measure", &path("d.img"), "-o", &path("d.img"), "--force"]);
    let expected = format!("{} is the drive: its profile goes elsewhere", path("d.img"));
    assert_eq!(itself.refusal(), expected);
    let missing = refusal(&path("none.img"), &path("new.toml"));
    assert_eq!(missing, format!("{} does not exist", path("none.img")));
    assert!(!fs::exists(path("new.toml")).unwrap());
}

#[test]
fn measure_that_is_interrupted_ends_whatever_the_drive_is_at_and_writes_nothing() {
    let shelf = Shelf::new();
    let path = |name: &str| shelf.dir.path().join(name).to_str().unwrap().to_owned();
    let drive = format!("emu:{}?profile=nearline-2tb&size=1GiB&slowdown=1000", path("d.img"));
    let mut measure = command(&["drive", "measure", &drive, "-o", &path("my.toml")]);
    let child = measure.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the drive is open", || fs::exists(path("d.img")).unwrap());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ended = end(child, "the interrupted measurement");
    assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""), "{ended:?}");
    assert_eq!(ended.err, "levelhead-lab: stopped before the end; no profile was written\n");
    assert!(!fs::exists(path("my.toml")).unwrap());
}

/// On a machine that has time for it a profile comes out that can be replayed, on one that has not a sentence and nothing
/// else. Which figures are right is no matter of this test: in virtual time they are of `levelhead-drive`.
#[test]
fn a_drive_is_measured_and_can_be_replayed_or_it_is_said_why_not() {
    let shelf = Shelf::new();
    let path = |name: &str| shelf.dir.path().join(name).to_str().unwrap().to_owned();
    let drive = format!("emu:{}?profile=simple15k&size=1GiB", path("d.img"));
    let ended =
        levelhead(&["drive", "measure", &drive, "-o", &path("my.toml"), "--quick", "--json"]);
    if ended.code != Some(0) {
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.out.starts_with("{\"error\":"), "{ended:?}");
        assert_eq!(ended.err.lines().count(), 1, "{ended:?}");
        assert!(ended.err.starts_with(&format!("levelhead-lab: {drive}: ")), "{ended:?}");
        // What a machine does that is late, or whose speed changes meanwhile. Any other reason would be a mistake.
        let reasons = [
            "this machine is too busy to measure a disk",
            " is known within ",
            " is not known",
            "reads end at no particular angle",
            "the rates jump from place to place",
            "large reads take no longer than small ones",
        ];
        assert!(reasons.iter().any(|reason| ended.err.contains(reason)), "{ended:?}");
        assert!(!fs::exists(path("my.toml")).unwrap());
        return;
    }
    let found = ended.json();
    let is_positive =
        |of: &serde_json::Value, name: &str| of[name].as_f64().is_some_and(|x| x > 0.0);
    assert!(is_positive(&found, "rotation_error_ms"), "{found:#}");
    assert!(is_positive(&found["lateness"], "timer_median_ms"), "{found:#}");
    for (list, error) in
        [("rates", "error_bytes_per_s"), ("seeks", "error_ms"), ("random_reads", "error_per_s")]
    {
        let list = found[list].as_array().unwrap();
        assert!(!list.is_empty() && list.iter().all(|of| is_positive(of, error)), "{found:#}");
    }
    let replay = ["replay", "--synthetic", "count=500", "--drive", &path("my.toml"), "--json"];
    let replayed = levelhead(&replay).json();
    assert_eq!(replayed["runs"][0]["requests"], 500);
}
