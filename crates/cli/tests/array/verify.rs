//! `serve --verify-writes`: writes that drives lose are found and mended, and everybody hears of it.

use levelhead_units::Bytes;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Serving, Shelf, assert_same, connect, levelhead, read_all, refs, wait_until};
use crate::{DRIVE, keys, scribble};

fn create(shelf: &Shelf) -> Vec<String> {
    let drives = shelf.drives(5, DRIVE);
    let create = ["array", "create", "raid6:3+2", "--assume-clean"];
    levelhead(&[&create[..], &refs(&drives)].concat()).good();
    drives
}

fn serve(shelf: &Shelf, members: &[String], verify: &str) -> Serving {
    let socket = shelf.path("nbd.sock");
    shelf.serve_with(members, &["--nbd", &socket, "--verify-writes", verify])
}

fn verify(serving: &Serving) -> Value {
    serving.status()["verify"].clone()
}

fn wait_until_verified(serving: &Serving) {
    wait_until("everything is read back", || verify(serving)["waiting"] == 0);
}

#[test]
fn lost_writes_are_mended_and_told_everywhere() {
    let shelf = Shelf::new();
    let drives = create(&shelf);
    let members: Vec<String> = drives
        .iter()
        .map(|path| format!("emu:{path}?profile=simple15k&lost-writes=1%&torn-writes=1%"))
        .collect();
    let serving = serve(&shelf, &members, "idle:4MiB");
    let mut model = vec![0; serving.size() as usize];
    let socket = shelf.path("nbd.sock");
    wait_until("something is found", || {
        scribble(&connect(&socket), &mut model, 1);
        verify(&serving)["found"].as_u64() > Some(2)
    });
    assert_same(&read_all(&socket), &model);
    wait_until_verified(&serving);
    let seen = verify(&serving);
    let expected = [
        "delayed_percent",
        "found",
        "guarantee",
        "memory_bytes",
        "mended",
        "mode",
        "not_mended",
        "superseded",
        "unverified",
        "verified",
        "waiting",
        "writes",
    ];
    assert_eq!(keys(&seen), expected);
    assert_eq!((&seen["mode"], &seen["guarantee"]), (&json!("idle"), &json!("medium")));
    assert_eq!(seen["memory_bytes"], 0, "{seen}");
    let status = serving.status();
    assert_eq!(status["drives"][2]["promise"], "medium");
    assert_eq!(status["verify_found"], seen["found"]);
    let text = levelhead(&["array", "status", "-v", serving.control()]).good();
    assert!(text.contains("\nwrites are read back (idle, medium): "), "{text}");
    let events = levelhead(&["array", "events", serving.control(), "--json"]).good();
    assert!(events.contains("\"event\":\"write-mended\""), "{events}");
    serving.stop();
}

#[test]
fn what_reading_back_is_worth_is_said_of_files_too_and_nothing_where_it_is_off() {
    let shelf = Shelf::new();
    let drives = create(&shelf);
    let serving = serve(&shelf, &drives, "raw");
    let mut model = vec![0; serving.size() as usize];
    scribble(&connect(&shelf.path("nbd.sock")), &mut model, 2);
    wait_until_verified(&serving);
    let seen = verify(&serving);
    assert_eq!((&seen["mode"], &seen["guarantee"]), (&json!("raw"), &json!("interface")));
    assert_eq!((&seen["found"], &seen["unverified"]), (&json!(0), &json!(0)), "{seen}");
    serving.stop();
    let serving = serve(&shelf, &drives, "off");
    assert_eq!(verify(&serving), Value::Null);
    serving.stop();
    for (option, text) in [("--verify-writes", "now"), ("--verify-wait", "soon")] {
        let refused = levelhead(&[&["array", "serve", option, text][..], &refs(&drives)].concat());
        assert!(refused.refusal().contains(text), "{}", refused.refusal());
    }
}

/// Nothing of it is on the drives: a server that is killed while much waits has lost nothing, and the next one finds nothing wrong.
#[test]
fn server_that_is_killed_while_writes_wait_to_be_read_back_has_lost_nothing() {
    let shelf = Shelf::new();
    let drives = create(&shelf);
    let mut model = Vec::new();
    for round in 0..3 {
        let serving = serve(&shelf, &drives, "idle:64KiB");
        model.resize(serving.size() as usize, 0);
        scribble(&connect(&shelf.path("nbd.sock")), &mut model, round);
        let client = connect(&shelf.path("nbd.sock"));
        let mut bytes = vec![0; 1 << 20];
        client.read_at(Bytes::new(0), &mut bytes).unwrap();
        assert_same(&bytes, &model[..1 << 20]);
        serving.signal(Signal::KILL);
        serving.end();
    }
    let serving = serve(&shelf, &drives, "idle");
    assert_same(&read_all(&shelf.path("nbd.sock")), &model);
    wait_until_verified(&serving);
    assert_eq!(verify(&serving)["found"], 0);
    serving.stop();
}
