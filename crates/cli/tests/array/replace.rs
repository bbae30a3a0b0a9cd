//! A lost drive is replaced while the array is served, by hand or by a spare; the new one then stands in for others.

use std::fs::File;

use levelhead_block::Durability;
use levelhead_units::Bytes;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Serving, Shelf, assert_same, connect, levelhead, random, refs, wait_until};
use crate::{DRIVE, SIZE, scribble, without};

/// A file that can come into a place.
fn new_drive(shelf: &Shelf, name: &str, size: u64) -> String {
    let path = shelf.path(name);
    File::create(&path).unwrap().set_len(size).unwrap();
    path
}

fn state(serving: &Serving, drive: usize) -> Value {
    serving.status()["drives"][drive]["state"].clone()
}

fn wait_for_rebuild(serving: &Serving, drive: usize) {
    wait_until("the drive is filled", || state(serving, drive) == "present");
    wait_until("that is recorded", || serving.status()["state"] == "whole");
}

#[test]
fn replaced_drive_is_filled_beside_clients_and_stands_in_for_the_others() {
    let shelf = Shelf::new();
    let (mut drives, socket) = (shelf.array(DRIVE), shelf.path("nbd.sock"));
    let mut model = random(SIZE, 1);
    let serving = shelf.serve_with(&drives, &["--nbd", &socket]);
    let client = connect(&socket);
    client.write_at(Bytes::new(0), &model, Durability::Durable).unwrap();
    levelhead(&["array", "fail", &drives[0], "2"]).good();
    scribble(&client, &mut model, 2);
    let new = new_drive(&shelf, "new.img", DRIVE + 4096 * 7);
    levelhead(&["array", "replace", &drives[0], "2", &new]).good();
    scribble(&client, &mut model, 3);
    wait_for_rebuild(&serving, 2);
    scribble(&client, &mut model, 4);
    levelhead(&["array", "fail", &drives[1], "5"]).good();
    let mut bytes = vec![0; model.len()];
    client.read_at(Bytes::new(0), &mut bytes).unwrap();
    assert_same(&bytes, &model);
    drop(client);
    serving.stop();
    // The old member is refused, and the new one is found like any other.
    let left = without(&drives, 5);
    let none = shelf.path("none.sock");
    let args = ["array", "serve", "--nbd", none.as_str()].into_iter();
    let args: Vec<&str> = args.chain(refs(&left)).collect();
    let refusal = levelhead(&args).refusal().to_owned();
    assert!(refusal.contains(&drives[2]), "{refusal}");
    drives[2] = new;
    let all = shelf.path("other.sock");
    let serving = shelf.serve_with(&without(&drives, 5), &["--nbd", &all]);
    let mut bytes = vec![0; model.len()];
    connect(&all).read_at(Bytes::new(0), &mut bytes).unwrap();
    assert_same(&bytes, &model);
    serving.stop();
}

/// Nobody is alerted: a hook hears what is planned, in order, and nothing else.
#[test]
fn replacement_of_a_good_drive_has_only_planned_events_and_the_program_hears_them_in_order() {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    let shelf = Shelf::new();
    let (drives, socket) = (shelf.array(DRIVE), shelf.path("nbd.sock"));
    let (program, noted) = (shelf.path("note"), shelf.path("noted"));
    let facts = "$LEVELHEAD_EVENT $LEVELHEAD_SEVERITY ${LEVELHEAD_DRIVE-none} $LEVELHEAD_ARRAY";
    // The first takes longest.
    let script = format!(
        "#!/bin/sh\n[ $LEVELHEAD_EVENT = assembled ] && sleep 1\necho {facts} >> {noted}\n"
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, PermissionsExt::from_mode(0o700)).unwrap();
    let serving = shelf.serve_with(&drives, &["--nbd", &socket, "--on-event", &program]);
    let uuid = serving.status()["uuid"].as_str().unwrap().to_owned();
    let new = new_drive(&shelf, "new.img", DRIVE);
    levelhead(&["array", "replace", &drives[0], "2", &new]).good();
    wait_until("the new drive has the slot", || serving.status()["drives"][2]["member"] == *new);
    wait_for_rebuild(&serving, 2);
    let is_released = || {
        let events = serving.status()["events"].clone();
        events.as_array().unwrap().iter().any(|event| event["event"] == "released")
    };
    wait_until("the old one is closed", is_released);
    let sentences = levelhead(&["array", "events", serving.control()]).good();
    assert!(!sentences.contains("failed") && !sentences.contains("is back"), "{sentences}");
    let events = serving.status()["events"].clone();
    serving.stop();
    let noted = fs::read_to_string(noted).unwrap();
    let fields = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let noted: Vec<Vec<String>> = noted.lines().map(fields).collect();
    let mut names: Vec<&str> = noted.iter().map(|fact| fact[0].as_str()).collect();
    let in_order: Vec<&str> =
        events.as_array().unwrap().iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names[..in_order.len()], in_order);
    assert_eq!(names.pop(), Some("stopped"));
    assert!(["copy-begun", "lost", "copy-done"].iter().all(|name| names.contains(name)));
    for fact in &noted {
        let drive = if fact[0] == "assembled" || fact[0] == "stopped" { "none" } else { "2" };
        assert_eq!(fact[1..], ["planned", drive, &uuid], "{noted:?}");
    }
}

#[test]
fn rebuild_that_was_paused_waits_after_the_server_was_killed_until_it_is_told_to_go_on() {
    let shelf = Shelf::new();
    let (mut drives, socket) = (shelf.array(DRIVE), shelf.path("nbd.sock"));
    let mut model = random(SIZE, 1);
    let serving = shelf.serve_with(&drives, &["--nbd", &socket]);
    let client = connect(&socket);
    client.write_at(Bytes::new(0), &model, Durability::Durable).unwrap();
    levelhead(&["array", "fail", &drives[0], "1"]).good();
    levelhead(&["array", "rebuild", &drives[0], "--pause", "--min-rate", "5MB"]).good();
    let new = new_drive(&shelf, "new.img", DRIVE);
    levelhead(&["array", "replace", &drives[0], "1", &new]).good();
    scribble(&client, &mut model, 2);
    let status = serving.status();
    assert_eq!((&status["rebuild"]["drive"], &status["rebuild_paused"]), (&json!(1), &json!(true)));
    assert_eq!((state(&serving, 1), &status["state"]), (json!("filling"), &json!("degraded")));
    drop(client);
    serving.signal(Signal::KILL);
    drop(serving.end());
    drives[1] = new;
    let serving = shelf.serve_with(&drives, &["--nbd", &shelf.path("again.sock")]);
    let status = serving.status();
    assert_eq!((&status["rebuild"]["drive"], &status["rebuild_paused"]), (&json!(1), &json!(true)));
    assert_eq!(status["rebuild_min_rate"], 5_000_000);
    levelhead(&["array", "rebuild", &drives[0]]).good();
    wait_for_rebuild(&serving, 1);
    levelhead(&["array", "fail", &drives[0], "0"]).good();
    let mut bytes = vec![0; model.len()];
    connect(&shelf.path("again.sock")).read_at(Bytes::new(0), &mut bytes).unwrap();
    assert_same(&bytes, &model);
    serving.stop();
}

/// As a unit of systemd would start it, whatever has become of the drives; see `docs/systemd.md`.
#[test]
fn old_drive_that_lies_beside_the_new_one_is_left_out_of_a_scan() {
    for by_hand in [true, false] {
        let shelf = Shelf::new();
        let (drives, socket) = (shelf.array(DRIVE), shelf.path("nbd.sock"));
        let folder = shelf.dir.path().to_str().unwrap();
        let scan = ["--scan", folder, "--nbd", &socket];
        let mut model = random(SIZE, 1);
        let serving = shelf.serve_with(&[], &scan);
        let client = connect(&socket);
        client.write_at(Bytes::new(0), &model, Durability::Durable).unwrap();
        let new = new_drive(&shelf, "new.img", DRIVE);
        if by_hand {
            levelhead(&["array", "fail", &drives[0], "2"]).good();
            levelhead(&["array", "replace", &drives[0], "2", &new]).good();
        } else {
            levelhead(&["array", "add-spare", &drives[0], &new]).good();
            levelhead(&["array", "fail", &drives[0], "2"]).good();
            wait_until("the spare steps in", || state(&serving, 2) != "lost");
        }
        scribble(&client, &mut model, 2);
        drop(client);
        serving.signal(Signal::KILL);
        drop(serving.end());
        let serving = shelf.serve_with(&[], &scan);
        let remarks = serving.said["remarks"].to_string();
        let expected = format!("{} holds old data: another drive", drives[2]);
        assert!(remarks.contains(&expected), "{remarks}");
        assert_same(&crate::support::read_all(&socket), &model);
        wait_for_rebuild(&serving, 2);
        serving.stop();
        // Without the new drive it is no better.
        std::fs::remove_file(&new).unwrap();
        let serving = shelf.serve_with(&[], &[&scan[..], &["--degraded"]].concat());
        assert_eq!(state(&serving, 2), "missing");
        assert_same(&crate::support::read_all(&socket), &model);
        serving.stop();
    }
}

#[test]
fn spare_steps_in_for_a_drive_that_fails() {
    let shelf = Shelf::new();
    let (drives, socket) = (shelf.array(DRIVE), shelf.path("nbd.sock"));
    let model = random(SIZE, 1);
    let serving = shelf.serve_with(&drives, &["--nbd", &socket]);
    let client = connect(&socket);
    client.write_at(Bytes::new(0), &model, Durability::Durable).unwrap();
    let spare = new_drive(&shelf, "spare.img", DRIVE);
    levelhead(&["array", "add-spare", &drives[0], &spare]).good();
    assert_eq!(serving.status()["spares"], json!([spare]));
    levelhead(&["array", "fail", &drives[0], "4"]).good();
    wait_for_rebuild(&serving, 4);
    let status = serving.status();
    assert_eq!((&status["spares"], &status["drives"][4]["member"]), (&json!([]), &json!(spare)));
    levelhead(&["array", "fail", &drives[0], "3"]).good();
    let mut bytes = vec![0; model.len()];
    client.read_at(Bytes::new(0), &mut bytes).unwrap();
    assert_same(&bytes, &model);
    serving.stop();
}

/// The same options start it before and after the spare has stepped in, as a unit's file has them.
#[test]
fn spare_that_serve_is_given_waits_after_each_start_and_is_a_member_once_it_has_stepped_in() {
    let shelf = Shelf::new();
    let (drives, socket) = (shelf.array(DRIVE), shelf.path("nbd.sock"));
    let (spare, gone) = (new_drive(&shelf, "spare.img", DRIVE), shelf.path("gone.img"));
    let folder = shelf.dir.path().to_str().unwrap();
    let options = ["--scan", folder, "--nbd", &socket, "--spare", &spare, "--spare", &gone];
    for is_killed in [true, false] {
        let serving = shelf.serve_with(&[], &options);
        assert_eq!(serving.status()["spares"], json!([spare]));
        let expected = json!([format!("no spare: {gone} does not exist")]);
        assert_eq!(serving.said["remarks"], expected);
        if is_killed {
            serving.signal(Signal::KILL);
            drop(serving.end());
            continue;
        }
        levelhead(&["array", "fail", serving.control(), "4"]).good();
        wait_for_rebuild(&serving, 4);
        serving.stop();
    }
    let serving = shelf.serve_with(&[], &options);
    let status = serving.status();
    assert_eq!((&status["state"], &status["spares"]), (&json!("whole"), &json!([])));
    assert_eq!(status["drives"][4]["member"], spare.as_str());
    serving.stop();
    // So it is where the members are named one by one.
    let left = without(&drives, 4);
    let serving = shelf.serve_with(&left, &["--nbd", &socket, "--spare", &spare]);
    assert_eq!(serving.status()["state"], "whole");
    serving.stop();
}

#[test]
fn drive_that_will_not_do_is_refused_with_the_reason_and_nothing_changes() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let serving = shelf.serve_with(&drives, &["--nbd", &shelf.path("nbd.sock")]);
    let refused = |args: &[&str]| levelhead(args).refusal().to_owned();
    let good = new_drive(&shelf, "good.img", DRIVE);
    let replace =
        |drive: &str, device: &str| refused(&["array", "replace", &drives[0], drive, device]);
    assert!(replace("1", &drives[1]).contains("is drive 1 of this array"), "it has it");
    let is_two = format!("{} is drive 2 of this array", drives[2]);
    assert_eq!(replace("1", &drives[2]), is_two);
    assert_eq!(refused(&["array", "add-spare", &drives[0], &drives[2]]), is_two);
    let waits = new_drive(&shelf, "waits.img", DRIVE);
    levelhead(&["array", "add-spare", &drives[0], &waits]).good();
    let again = refused(&["array", "add-spare", &drives[0], &waits]);
    assert_eq!(again, format!("{waits} is a spare of this array already"));
    levelhead(&["array", "remove-spare", &drives[0], &waits]).good();
    levelhead(&["array", "fail", &drives[0], "1"]).good();
    let small = new_drive(&shelf, "small.img", DRIVE / 2);
    assert!(replace("1", &small).contains("needs at least"), "too small");
    assert!(replace("9", &good).contains("drives 0 to 5"), "no such drive");
    assert!(replace("1", &shelf.path("nothing")).contains("nothing"), "not there");
    std::fs::write(&good, random(DRIVE, 9)).unwrap();
    assert!(replace("1", &good).contains("--force"), "it holds something");
    assert_eq!(replace("1", &drives[2]), is_two);
    let spare = refused(&["array", "remove-spare", &drives[0], &good]);
    assert!(spare.contains("is not a spare"), "{spare}");
    let rate = refused(&["array", "rebuild", &drives[0], "--min-rate", "5"]);
    assert!(rate.contains("from 10kB"), "{rate}");
    assert_eq!(state(&serving, 1), "lost");
    levelhead(&["array", "replace", &drives[0], "1", &good, "--force"]).good();
    wait_for_rebuild(&serving, 1);
    serving.stop();
}

/// Nothing is lost in between: the array is whole until the new drive takes over.
#[test]
fn drive_that_is_there_is_copied_beside_clients_and_then_replaced() {
    let shelf = Shelf::new();
    let (mut drives, socket) = (shelf.array(DRIVE), shelf.path("nbd.sock"));
    let mut model = random(SIZE, 1);
    let serving = shelf.serve_with(&drives, &["--nbd", &socket]);
    let client = connect(&socket);
    client.write_at(Bytes::new(0), &model, Durability::Durable).unwrap();
    // So that the copy is seen.
    levelhead(&["array", "rebuild", &drives[0], "--pause"]).good();
    let new = new_drive(&shelf, "new.img", DRIVE + 4096 * 7);
    let other = new_drive(&shelf, "other.img", DRIVE);
    levelhead(&["array", "replace", &drives[0], "2", &new]).good();
    let status = serving.status();
    assert_eq!((state(&serving, 2), &status["state"]), (json!("copying"), &json!("whole")));
    let copy = &status["copy"];
    assert_eq!((&copy["drive"], &copy["member"]), (&json!(2), &json!(new)));
    assert_eq!(copy["left_regions"], copy["regions"]);
    let text = levelhead(&["array", "status", &drives[0]]).good();
    let copy = format!("\ngoing on:  replacement of drive 2 with {new}, 0.0 % copied, paused\n");
    assert!(text.contains(&copy), "{text}");
    for (drive, what) in [("2", "is being replaced already"), ("3", "one at a time")] {
        let again = levelhead(&["array", "replace", &drives[0], drive, &other]);
        assert!(again.refusal().contains(what), "{}", again.refusal());
    }
    scribble(&client, &mut model, 2);
    levelhead(&["array", "rebuild", &drives[0], "--min-rate", "100MB"]).good();
    scribble(&client, &mut model, 3);
    wait_until("the new drive has the place", || {
        serving.status()["drives"][2]["member"] == json!(new)
    });
    wait_for_rebuild(&serving, 2);
    let status = serving.status();
    assert_eq!(status["copy"], json!(null));
    let count = |name: &str| status[name].as_u64().unwrap();
    assert!(count("copy_reads") > 0 && count("copy_reads") == count("copy_writes"), "{status}");
    let events: Vec<&str> = status["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|event| event["event"].as_str())
        .collect();
    let told = |name: &str| events.iter().filter(|event| **event == name).count();
    assert_eq!(["copy-begun", "copy-done", "copy-stopped", "rebuild-done"].map(told), [1, 1, 0, 1]);
    scribble(&client, &mut model, 4);
    levelhead(&["array", "fail", &drives[1], "5"]).good();
    let mut bytes = vec![0; model.len()];
    client.read_at(Bytes::new(0), &mut bytes).unwrap();
    assert_same(&bytes, &model);
    drop(client);
    serving.stop();
    let left = without(&drives, 5);
    let none = shelf.path("none.sock");
    let args = ["array", "serve", "--nbd", none.as_str()].into_iter();
    let args: Vec<&str> = args.chain(refs(&left)).collect();
    let refusal = levelhead(&args).refusal().to_owned();
    assert!(refusal.contains(&drives[2]), "{refusal}");
    drives[2] = new;
    let check: Vec<String> = without(&drives, 5);
    levelhead(&["array", "check"].into_iter().chain(refs(&check)).collect::<Vec<_>>()).degraded();
    let serving = shelf.serve_with(&check, &["--nbd", &shelf.path("again.sock")]);
    assert_same(&crate::support::read_all(&shelf.path("again.sock")), &model);
    serving.stop();
}

/// At whatever moment the server is killed: the array has the old drive or the new one, and never half of one.
#[test]
fn server_that_is_killed_while_a_drive_is_copied_leaves_an_array_that_is_right() {
    let shelf = Shelf::new();
    shelf.array(DRIVE);
    let socket = shelf.path("nbd.sock");
    let folder = shelf.dir.path().to_str().unwrap();
    let scan = ["--scan", folder, "--nbd", &socket];
    let mut model = random(SIZE, 1);
    let mut seated = 0;
    for round in 0..6 {
        let serving = shelf.serve_with(&[], &scan);
        let client = connect(&socket);
        if round == 0 {
            client.write_at(Bytes::new(0), &model, Durability::Durable).unwrap();
        }
        let was = serving.status()["drives"][2]["member"].as_str().map(str::to_owned);
        // A drive that the last round has left half copied is empty to this one.
        let new = new_drive(&shelf, &format!("new{round}.img"), DRIVE);
        let array = serving.control().to_owned();
        let pause: &[&str] = if round % 3 == 0 { &["--pause"] } else { &[] };
        levelhead(&[&["array", "rebuild", array.as_str()][..], pause].concat()).good();
        levelhead(&["array", "replace", &array, "2", &new]).good();
        scribble(&client, &mut model, 2 + round);
        if round % 3 == 2 {
            wait_until("the new drive has the place", || {
                serving.status()["drives"][2]["member"] == json!(new)
            });
            wait_until("that is recorded", || serving.status()["state"] == "whole");
        }
        drop(client);
        serving.signal(Signal::KILL);
        drop(serving.end());
        let serving = shelf.serve_with(&[], &scan);
        let status = serving.status();
        let is = status["drives"][2]["member"].as_str().map(str::to_owned);
        match round % 3 {
            0 => assert_eq!(is, was, "nothing was copied"),
            2 => assert_eq!(is.as_ref(), Some(&new)),
            _ => {}
        }
        seated += u32::from(is.as_ref() == Some(&new));
        assert_same(&crate::support::read_all(&socket), &model);
        wait_until("nothing is left to fill", || {
            let status = serving.status();
            status["rebuild"].is_null() && status["state"] == "whole"
        });
        serving.stop();
        if round % 3 == 0 {
            // What was not copied to is no member, and can be given again.
            std::fs::remove_file(&new).unwrap();
        }
    }
    assert!(seated >= 2, "{seated}");
}

#[test]
fn drive_that_was_failed_by_hand_is_caught_up_when_it_is_put_back_into_its_place() {
    let shelf = Shelf::new();
    let (drives, socket) = (shelf.array(DRIVE), shelf.path("nbd.sock"));
    let mut model = random(SIZE, 1);
    let serving = shelf.serve_with(&drives, &["--nbd", &socket]);
    let client = connect(&socket);
    client.write_at(Bytes::new(0), &model, Durability::Durable).unwrap();
    levelhead(&["array", "fail", &drives[0], "2"]).good();
    scribble(&client, &mut model, 2);
    wait_until("the map is kept", || {
        let again = levelhead(&["array", "replace", &drives[0], "2", &drives[2]]);
        again.code == Some(0)
    });
    scribble(&client, &mut model, 3);
    wait_for_rebuild(&serving, 2);
    levelhead(&["array", "fail", &drives[0], "5"]).good();
    let mut bytes = vec![0; model.len()];
    client.read_at(Bytes::new(0), &mut bytes).unwrap();
    assert_same(&bytes, &model);
    drop(client);
    serving.stop();
}

/// Under the path that it has had all the time, by default as the drive that it is, and by force as any other.
#[test]
fn lost_drive_is_filled_from_the_beginning_if_it_is_taken_by_force() {
    let shelf = Shelf::new();
    let (drives, socket) = (shelf.array(DRIVE), shelf.path("nbd.sock"));
    let mut model = random(SIZE, 1);
    let serving = shelf.serve_with(&drives, &["--nbd", &socket]);
    let client = connect(&socket);
    client.write_at(Bytes::new(0), &model, Durability::Durable).unwrap();
    levelhead(&["array", "rebuild", &drives[0], "--pause"]).good();
    let replace = ["array", "replace", &drives[0], "2", &drives[2], "--force"];
    let refused = levelhead(&replace);
    assert!(refused.refusal().contains("is drive 2 of this array"), "{refused:?}");
    levelhead(&["array", "fail", &drives[0], "2"]).good();
    scribble(&client, &mut model, 2);
    wait_until("its loss is recorded", || levelhead(&replace).code == Some(0));
    let rebuild = serving.status()["rebuild"].clone();
    assert_eq!((&rebuild["drive"], &rebuild["missed_regions"]), (&json!(2), &Value::Null));
    assert_eq!((state(&serving, 2), &rebuild["done_stripes"]), (json!("filling"), &json!(0)));
    levelhead(&["array", "rebuild", &drives[0]]).good();
    wait_for_rebuild(&serving, 2);
    levelhead(&["array", "fail", &drives[0], "5"]).good();
    let mut bytes = vec![0; model.len()];
    client.read_at(Bytes::new(0), &mut bytes).unwrap();
    assert_same(&bytes, &model);
    serving.stop();
}

#[test]
fn drive_that_was_not_there_for_one_start_is_caught_up_at_the_next() {
    let shelf = Shelf::new();
    let (drives, socket) = (shelf.array(DRIVE), shelf.path("nbd.sock"));
    let mut model = random(SIZE, 1);
    let serving = shelf.serve_with(&drives, &["--nbd", &socket]);
    connect(&socket).write_at(Bytes::new(0), &model, Durability::Durable).unwrap();
    serving.stop();
    let second = shelf.path("2.sock");
    let serving = shelf.serve_with(&without(&drives, 3), &["--nbd", &second, "--degraded"]);
    scribble(&connect(&second), &mut model, 2);
    serving.stop();
    let serving = shelf.serve_with(&drives, &["--nbd", &shelf.path("3.sock")]);
    wait_for_rebuild(&serving, 3);
    let counters = serving.status();
    assert!(counters["rebuild_writes"].as_u64() > Some(0), "{counters}");
    levelhead(&["array", "fail", &drives[0], "0"]).good();
    let mut bytes = vec![0; model.len()];
    connect(&shelf.path("3.sock")).read_at(Bytes::new(0), &mut bytes).unwrap();
    assert_same(&bytes, &model);
    serving.stop();
}

/// The map names what was missed since the loss, and not what was written between the copy and the loss.
#[test]
fn old_copy_of_a_drive_that_was_not_there_is_not_taken_for_it() {
    let shelf = Shelf::new();
    let (drives, old) = (shelf.array(DRIVE), shelf.path("old.img"));
    let mut model = random(SIZE, 1);
    let write = |model: &mut Vec<u8>, drives: &[String], name: &str, options: &[&str]| {
        let socket = shelf.path(name);
        let serving = shelf.serve_with(drives, &[&["--nbd", &socket], options].concat());
        let client = connect(&socket);
        client.write_at(Bytes::new(0), model, Durability::Durable).unwrap();
        scribble(&client, model, 2);
        drop(client);
        serving.stop();
    };
    write(&mut model, &drives, "1.sock", &[]);
    std::fs::copy(&drives[3], &old).unwrap();
    model = random(SIZE, 3);
    write(&mut model, &drives, "2.sock", &[]);
    write(&mut model, &without(&drives, 3), "3.sock", &["--degraded"]);
    std::fs::copy(&old, &drives[3]).unwrap();
    let socket = shelf.path("4.sock");
    let serve = [&["array", "serve"], &refs(&drives)[..], &["--nbd", &socket]].concat();
    let said = levelhead(&serve).refusal().to_owned();
    assert!(said.contains(&format!("{} holds old data", drives[3])), "{said}");
    let serving = shelf.serve_with(&without(&drives, 3), &["--nbd", &socket]);
    let said = levelhead(&["array", "replace", &drives[0], "3", &drives[3]]).refusal().to_owned();
    assert!(said.contains("--force"), "{said}");
    levelhead(&["array", "replace", &drives[0], "3", &drives[3], "--force"]).good();
    wait_for_rebuild(&serving, 3);
    levelhead(&["array", "fail", &drives[0], "0"]).good();
    assert_same(&crate::support::read_all(&socket), &model);
    serving.stop();
}
