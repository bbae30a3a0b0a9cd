//! A journal on drives of its own: servers are killed, these drives are lost, missing at a start, and replaced.

use std::fs::File;

use levelhead_block::Durability;
use levelhead_units::Bytes;
use rustix::process::Signal;
use serde_json::json;

use crate::support::{
    Serving, Shelf, assert_same, connect, levelhead, random, read_all, refs, wait_until,
};
use crate::{DRIVE, scribble, without};

/// Room for a journal of 2 MiB.
const JOURNAL: u64 = 4 << 20;

fn file(shelf: &Shelf, name: &str, size: u64) -> String {
    let path = shelf.path(name);
    File::create(&path).unwrap().set_len(size).unwrap();
    path
}

/// An array with two drives for the journal; they come last.
fn array(shelf: &Shelf) -> Vec<String> {
    let mut drives = shelf.drives(4, DRIVE);
    let journals = ["a.img", "b.img"].map(|name| file(shelf, name, JOURNAL));
    let journal = journals.join(",");
    let args = ["array", "create", "--assume-clean", "--journal", &journal, "raid5:4,chunk=16KiB"];
    let args: Vec<&str> = args.into_iter().chain(refs(&drives)).collect();
    let said = levelhead(&args).good();
    assert!(said.contains("journal: 2MiB of each of 2 drives of its own"), "{said}");
    drives.extend(journals);
    drives
}

fn kill(serving: Serving) {
    serving.signal(Signal::KILL);
    drop(serving.end());
}

#[test]
fn one_drive_with_the_journal_is_enough_after_a_crash() {
    let shelf = Shelf::new();
    let (drives, socket) = (array(&shelf), shelf.path("nbd.sock"));
    let serving = shelf.serve_with(&drives, &["--nbd", &socket]);
    let status = serving.status();
    let roles: Vec<_> = (0..6).map(|at| status["drives"][at]["role"].clone()).collect();
    assert_eq!(roles, ["data", "data", "data", "data", "journal", "journal"]);
    let mut model = random(serving.size(), 1);
    let client = connect(&socket);
    client.write_at(Bytes::new(0), &model, Durability::Durable).unwrap();
    scribble(&client, &mut model, 2);
    drop(client);
    kill(serving);
    // With either of them alone, and without a drive that has data besides.
    for missing in [5, 4] {
        let left = without(&without(&drives, missing), 1);
        let serving = shelf.serve_with(&left, &["--nbd", &socket, "--degraded"]);
        assert_eq!(serving.status()["state"], "degraded");
        assert_same(&read_all(&socket), &model);
        kill(serving);
        // The other one alone lacks what this one may have been given since.
        let left = without(&drives, 9 - missing);
        let none = shelf.path("none.sock");
        let args = ["array", "serve", "--nbd", none.as_str()].into_iter();
        let args: Vec<&str> = args.chain(refs(&left)).collect();
        let refusal = levelhead(&args).refusal().to_owned();
        assert!(refusal.contains("needs one of the drives with its journal"), "{refusal}");
        // Those that were away are taken back by themselves.
        let serving = shelf.serve_with(&drives, &["--nbd", &socket]);
        wait_until("all are there", || serving.status()["state"] == "whole");
        scribble(&connect(&socket), &mut model, missing as u64);
        kill(serving);
    }
    let none = shelf.path("none.sock");
    let args = ["array", "serve", "--nbd", none.as_str()].into_iter();
    let args: Vec<&str> = args.chain(refs(&drives[..4])).collect();
    let refusal = levelhead(&args).refusal().to_owned();
    assert!(refusal.contains("drives 4,5 are missing"), "{refusal}");
}

#[test]
fn lost_drive_with_the_journal_is_replaced_and_there_is_nothing_to_fill() {
    let shelf = Shelf::new();
    let (mut drives, socket) = (array(&shelf), shelf.path("nbd.sock"));
    let serving = shelf.serve_with(&drives, &["--nbd", &socket]);
    let mut model = random(serving.size(), 1);
    let client = connect(&socket);
    client.write_at(Bytes::new(0), &model, Durability::Durable).unwrap();
    levelhead(&["array", "fail", &drives[0], "4"]).good();
    let last = levelhead(&["array", "fail", &drives[0], "5"]).refusal().to_owned();
    assert!(last.contains("drive 5 is the last one with the journal"), "{last}");
    let aside = levelhead(&["array", "sit-out", &drives[0], "5"]).refusal().to_owned();
    assert!(aside.contains("drive 5 has nothing but the journal"), "{aside}");
    scribble(&client, &mut model, 2);
    let small = file(&shelf, "small.img", JOURNAL / 2);
    let refusal = levelhead(&["array", "replace", &drives[0], "4", &small]).refusal().to_owned();
    assert!(refusal.contains("needs at least"), "{refusal}");
    let new = file(&shelf, "c.img", JOURNAL);
    levelhead(&["array", "replace", &drives[0], "4", &new]).good();
    wait_until("it counts", || serving.status()["drives"][4]["state"] == "present");
    wait_until("that is recorded", || serving.status()["state"] == "whole");
    assert_eq!(serving.status()["rebuild_writes"], 0);
    levelhead(&["array", "fail", &drives[0], "5"]).good();
    scribble(&client, &mut model, 3);
    drop(client);
    kill(serving);
    // The new one alone has all that was answered.
    drives[4] = new;
    drives.truncate(5);
    let serving = shelf.serve_with(&drives, &["--nbd", &socket]);
    assert_eq!(serving.status()["drives"][5]["state"], json!("missing"));
    assert_same(&read_all(&socket), &model);
    serving.stop();
    let args = ["array", "check"].into_iter();
    let args: Vec<&str> = args.chain(refs(&drives)).collect();
    let said = levelhead(&args).degraded();
    assert!(said.ends_with("degraded: drive 5 is missing\n"), "{said}");
}

#[test]
fn too_few_drives_for_a_journal_are_refused_and_nothing_is_written() {
    let shelf = Shelf::new();
    let (drives, journal) = (shelf.drives(6, DRIVE), file(&shelf, "a.img", JOURNAL));
    let (tiny, other) = (file(&shelf, "tiny.img", 1 << 20), file(&shelf, "b.img", JOURNAL));
    let before = shelf.content();
    for (array, journal, sentence) in [
        ("raid6:6", format!("{journal},{other}"), "needs at least 3 drives of its own"),
        ("raid0:6", format!("{journal},{other}"), "raid0 has no redundancy, and so no journal"),
        (
            "raid5:6,journals=3",
            format!("{journal},{other}"),
            "needs 3 drives for its journal, got 2",
        ),
        ("raid5:6", format!("{journal},{tiny}"), "a drive for the journal of raid5"),
        ("raid5:6", format!("{journal},{}", drives[0]), "are the same drive"),
        ("raid5:6", "flash".to_owned(), "'flash' is not a journal: expected members, all, none"),
        ("raid5:6,journals=2", "members".to_owned(), "needs 2 drives for its journal, got 0"),
    ] {
        let args = ["array", "create", array, "--journal", &journal];
        let args: Vec<&str> = args.into_iter().chain(refs(&drives)).collect();
        let refusal = levelhead(&args).refusal().to_owned();
        assert!(refusal.contains(sentence), "{array} {journal}: {refusal}");
    }
    assert_eq!(shelf.content(), before);
}
