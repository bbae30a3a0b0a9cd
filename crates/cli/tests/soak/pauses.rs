//! Servers that are stopped for longer than a drive may be unresponsive, under load: no drive fails for it.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Serving, Shelf, is_there, levelhead, refs, wait_until};

const DRIVE: u64 = 64 << 20;

/// How often the server is stopped with the default `--lost-after` of 60 s, and for how long.
const PAUSES: u64 = 20;
const PAUSE: Duration = Duration::from_secs(66);

/// `PAUSES` says how often.
#[test]
#[ignore = "twenty pauses of 66 s: cargo xtask soak pauses"]
fn soak_pauses_longer_than_lost_after_cost_no_drive_its_place() {
    let pauses = std::env::var("PAUSES").ok().and_then(|text| text.parse().ok()).unwrap_or(PAUSES);
    assert!(is_there("fio"), "fio is not installed");
    let shelf = Shelf::new();
    let drives = shelf.drives(4, DRIVE);
    let create = ["array", "create", "raid6:2+2", "--assume-clean"];
    levelhead(&[&create[..], &refs(&drives)].concat()).good();
    let serving = shelf.serve_with(&drives, &["--nbd", &shelf.path("nbd.sock")]);
    for pause in 0..pauses {
        let mut load = fio(serving.uri(), pause);
        wait_for_answers(&serving);
        serving.signal(Signal::STOP);
        thread::sleep(PAUSE);
        serving.signal(Signal::CONT);
        wait_for_answers(&serving);
        let status = serving.status();
        assert_eq!(status["state"], json!("whole"), "pause {pause}: {status}");
        load.kill().unwrap();
        load.wait().unwrap();
        eprintln!("soak: pause {} of {pauses}: no drive failed", pause + 1);
    }
    serving.stop();
}

/// Waits until the server has answered a hundred more requests.
fn wait_for_answers(serving: &Serving) {
    let answered = || serving.status()["requests"].as_u64().unwrap();
    let before = answered();
    wait_until("requests are answered", || answered() > before + 100);
}

fn fio(uri: &str, seed: u64) -> Child {
    Command::new("fio")
        .args(["--name=load", "--ioengine=nbd", &format!("--uri={uri}"), "--size=64m"])
        .args(["--rw=randrw", "--bs=4k", "--iodepth=16", "--time_based", "--runtime=10m"])
        .arg(format!("--randseed={seed}"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}
