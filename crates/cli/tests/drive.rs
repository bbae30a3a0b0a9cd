//! `levelhead drive model` and `drive measure`: what they show, what they write and what they refuse.

mod support;

use std::fs;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use support::{Shelf, command, end, levelhead, wait_until};

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
    assert_eq!(fs::read_to_string(&page).unwrap().matches("<svg ").count(), 3);
    let json = levelhead(&["drive", "model", "nearline-2tb", "--json"]).json();
    assert_eq!(json, levelhead(&["drive", "model", "nearline-2tb", "--json"]).json());
    assert_eq!(json["zones"].as_array().unwrap().len(), 20);
    let depths = json["random_reads"].as_array().unwrap();
    let rate = |at: usize| depths[at]["reads_per_s"].as_f64().unwrap();
    assert!((75.0..90.0).contains(&rate(0)) && (150.0..220.0).contains(&rate(5)), "{depths:?}");
    let error = levelhead(&["drive", "model", "nonesuch"]);
    assert!(
        error.refusal().contains("'nonesuch' is no drive profile: expected one of nearline-2tb")
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
    assert!(small.contains("1MiB are too little to measure: 53760KiB or more"), "{small}");
    let itself = levelhead(&["drive", "measure", &path("d.img"), "-o", &path("d.img"), "--force"]);
    let expected = format!("{} is the drive: its profile goes elsewhere", path("d.img"));
    assert_eq!(itself.refusal(), expected);
    let missing = refusal(&path("none.img"), &path("new.toml"));
    assert_eq!(missing, format!("{} does not exist", path("none.img")));
    assert!(!fs::exists(path("new.toml")).unwrap());
}

#[test]
fn measure_that_is_interrupted_writes_nothing() {
    let shelf = Shelf::new();
    let path = |name: &str| shelf.dir.path().join(name).to_str().unwrap().to_owned();
    let drive = format!("emu:{}?profile=nearline-2tb&size=1GiB", path("d.img"));
    let mut measure = command(&["drive", "measure", &drive, "-o", &path("my.toml")]);
    let child = measure.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the drive is open", || fs::exists(path("d.img")).unwrap());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ended = end(child, "the interrupted measurement");
    assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""), "{ended:?}");
    assert_eq!(ended.err, "levelhead: stopped; nothing was written\n");
    assert!(!fs::exists(path("my.toml")).unwrap());
}

/// Real time: an emulated drive is as exact as the machine has time for it.
#[test]
#[ignore = "takes 20 seconds and a machine with nothing else to do"]
fn measure_finds_the_figures_of_an_emulated_drive_in_real_time() {
    let shelf = Shelf::new();
    let path = |name: &str| shelf.dir.path().join(name).to_str().unwrap().to_owned();
    let drive = format!("emu:{}?profile=nearline-2tb&size=64GiB", path("d.img"));
    let args = ["drive", "measure", &drive, "-o", &path("my.toml"), "--quick", "--json"];
    let found = levelhead(&args).json();
    let near = |what: &str, wanted: f64, within: f64| {
        let value = found.pointer(what).unwrap().as_f64().unwrap();
        assert!((value / wanted - 1.0).abs() < within, "{what}: {value} in {found:#}");
    };
    near("/rpm", 7_200.0, 0.01);
    near("/rates/0/bytes_per_s", 175e6, 0.15);
    let replay = ["replay", "--synthetic", "count=500", "--drive", &path("my.toml"), "--json"];
    let replayed = levelhead(&replay).json();
    assert_eq!(replayed["runs"][0]["requests"], 500);
}
