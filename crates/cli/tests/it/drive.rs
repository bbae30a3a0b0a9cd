//! `levelhead drive model` and `drive measure`: what they show, what they write and what they refuse;
//! `drive emulate`: what becomes of the bytes.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use levelhead_block::adapter::Waiting;
use levelhead_block::{BlockDevice, Command, Durability, Request};
use levelhead_units::Bytes;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Serving, Shelf, command, connect, end, levelhead, wait_until};

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
    assert_eq!(ended.err, "levelhead: stopped before the end; no profile was written\n");
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
        assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""), "{ended:?}");
        assert_eq!(ended.err.lines().count(), 1, "{ended:?}");
        assert!(ended.err.starts_with(&format!("levelhead: {drive}: ")), "{ended:?}");
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

#[test]
fn an_emulated_drive_has_the_faults_it_was_given_and_not_those_of_its_name() {
    let shelf = Shelf::new();
    let (file, socket) = (shelf.path("a.img"), shelf.path("nbd.sock"));
    let member = format!("emu:{file}?size=1MiB&hard-rate=100%");
    let emulate = ["drive", "emulate", &member, "--nbd", &socket];
    for (options, works) in [(&[][..], false), (&["--faults", "lost-writes=100%"], true)] {
        let serving = Serving::start(&[&emulate[..], options].concat());
        let client = connect(&socket);
        client.write_at(Bytes::new(8192), &[7; 4096], Durability::Cached).unwrap();
        // The write mends a sector that cannot be read; but where writes are lost, it is not there.
        let mut bytes = [1; 4096];
        client.read_at(Bytes::new(8192), &mut bytes).unwrap();
        assert_eq!(bytes, if works { [0; 4096] } else { [7; 4096] });
        assert_eq!(client.read_at(Bytes::new(0), &mut bytes).is_ok(), works);
        drop(client);
        serving.signal(Signal::INT);
        serving.end().good();
        fs::remove_file(&file).unwrap();
    }
}

#[test]
fn emulated_drive_that_reads_back_what_it_writes_mends_what_was_lost_and_says_so() {
    let shelf = Shelf::new();
    let (file, socket) = (shelf.path("a.img"), shelf.path("nbd.sock"));
    let member = format!("emu:{file}?size=1MiB&lost-writes=15%&seed=1");
    let emulate = ["drive", "emulate", &member, "--nbd", &socket];
    let content = || -> Vec<u8> {
        fs::read(&file).unwrap().chunks(4096).take(24).map(|sector| sector[0]).collect()
    };
    for (options, found) in
        [(&["--verify", "idle"][..], true), (&["--verify", "raw"], true), (&[], false)]
    {
        let serving = Serving::start(&[&emulate[..], options].concat());
        let client = connect(&socket);
        for sector in 0..24 {
            client.write_at(Bytes::new(sector * 4096), &[7; 4096], Durability::Cached).unwrap();
            let mut bytes = [1; 4096];
            client.read_at(Bytes::new(sector * 4096), &mut bytes).unwrap();
            assert!(!found || bytes == [7; 4096], "the drive has it in memory, or on the medium");
        }
        if found {
            wait_until("all is mended", || content() == [7; 24]);
        }
        assert_eq!(content() == [7; 24], found, "{options:?}");
        drop(client);
        serving.signal(Signal::INT);
        let ended = serving.end();
        let said = ended.err.clone();
        ended.good();
        assert_eq!(said.contains("24 writes: "), found, "{said}");
        assert_eq!(said.contains(" were not what was written, "), found, "{said}");
        fs::remove_file(&file).unwrap();
    }
    for (options, part) in [
        (&["--idle-wait", "1ms"][..], "--idle-wait 1ms: idle-wait needs verify=idle before it"),
        (&["--verify", "on"], "--verify on: 'on' is no way to verify writes"),
        (&["--verify", "idle", "--cache", "off"], "it needs cache=read or write-back"),
    ] {
        let refused = levelhead(&[&emulate[..], options].concat());
        assert!(refused.refusal().contains(part), "{}", refused.err);
        assert!(!Path::new(&file).exists(), "nothing was made");
    }
}

/// A drive that leaves what it has in memory there until it is flushed.
const FORGETFUL: &str = r#"
    name = "forgetful"
    block_size = 4096
    rpm = 60000
    heads = 4
    overhead = "0.001ms"
    head_switch = "0.01ms"
    write_settle = "0.01ms"
    [cache]
    segments = 2
    segment_blocks = 20
    read_ahead_blocks = 8
    write_blocks = 64
    write_delay = "86400s"
    flush_overhead = "0.1ms"
    [seek]
    points = [[1, "0.01ms"], [99, "0.1ms"]]
    [[zone]]
    cylinders = 100
    blocks_per_track = 100
    track_skew = 10
    cylinder_skew = 10
"#;

#[test]
fn a_killed_drive_has_what_was_flushed_and_not_what_was_in_its_memory() {
    let shelf = Shelf::new();
    let [file, socket, profile] = ["a.img", "nbd.sock", "own.toml"].map(|name| shelf.path(name));
    fs::write(&profile, FORGETFUL).unwrap();
    let member = format!("emu:{file}?size=1MiB&profile={profile}");
    let emulate = ["drive", "emulate", &member, "--nbd", &socket];
    let with_cache = |mode| [&emulate[..], &["--cache", mode]].concat();
    let at = |sector: u64| Bytes::new(sector * 4096);
    let content = || -> Vec<u8> {
        fs::read(&file).unwrap().chunks(4096).take(5).map(|sector| sector[0]).collect()
    };
    for (mode, left) in [("off", [7, 8, 9, 6, 0]), ("write-back", [7, 0, 9, 0, 0])] {
        let serving = Serving::start(&with_cache(mode));
        let client = Arc::new(connect(&socket));
        client.write_at(at(0), &[7; 4096], Durability::Cached).unwrap();
        let flushed = Waiting::new(Arc::clone(&client)).run(vec![Request::bare(Command::Flush)]);
        assert!(flushed[0].outcome.is_good());
        client.write_at(at(1), &[8; 4096], Durability::Cached).unwrap();
        client.write_at(at(2), &[9; 4096], Durability::Durable).unwrap();
        client.write_at(at(3), &[6; 4096], Durability::Cached).unwrap();
        // One by one: a read of more than the drive has in memory makes it write that first.
        let seen = [0, 1, 2, 3].map(|sector| {
            let mut bytes = [0; 4096];
            client.read_at(at(sector), &mut bytes).unwrap();
            bytes[0]
        });
        assert_eq!(seen, [7, 8, 9, 6], "{mode}");
        serving.signal(Signal::KILL);
        drop((client, serving));
        assert_eq!(content(), left, "{mode}");
        fs::remove_file(&socket).unwrap();
        fs::remove_file(&file).unwrap();
    }
    // A drive that is told to stop writes first, and what it wrote is there for the next.
    let serving = Serving::start(&with_cache("write-back"));
    let client = connect(&socket);
    client.write_at(at(1), &[5; 4096], Durability::Cached).unwrap();
    assert_eq!(content(), [0; 5]);
    drop(client);
    serving.signal(Signal::INT);
    serving.end().good();
    assert_eq!(content(), [0, 5, 0, 0, 0]);
    let _again = Serving::start(&emulate);
    let mut bytes = [0; 4096];
    connect(&socket).read_at(at(1), &mut bytes).unwrap();
    assert_eq!(bytes, [5; 4096]);
}
