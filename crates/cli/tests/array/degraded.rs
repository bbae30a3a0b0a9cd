//! Starts without some of an array's drives: which of them need `--degraded`, what is said, and what they record.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::thread;

use levelhead_block::Durability;
use levelhead_units::Bytes;
use serde_json::{Value, json};

use crate::DRIVE;
use crate::support::{Serving, Shelf, command, connect, levelhead, refs, wait_until};

/// Exports that do not answer are absent; a server that is there and is something else is an answer.
#[test]
fn export_that_is_away_is_left_out_and_named() {
    let array = Array::new("raid5:2+1,chunk=8KiB", 3, &[]);
    let socket = array.shelf.path("away.sock");
    let uri = format!("nbd+unix:///?socket={socket}");
    let members = [&array.drives[0], &uri, &array.drives[2]];
    let members = members.map(Clone::clone);
    let ask = |options: &[&str]| {
        levelhead(&[&["array", "assemble"][..], options, &refs(&members)].concat())
    };
    let refused = ask(&[]);
    assert!(refused.refusal().starts_with(&uri), "{refused:?}");
    assert!(refused.refusal().ends_with("; use --degraded to start without it"), "{refused:?}");
    let would: Value = ask(&["--degraded", "--json"]).degraded_json();
    assert_eq!(
        (&would["newly_missing"], &would["left_out"][0]["state"]),
        (&json!([1]), &json!("absent"))
    );
    let reason = would["left_out"][0]["reason"].as_str().unwrap();
    assert!(reason.starts_with(&uri), "{reason}");
    let nbd = array.shelf.path("nbd.sock");
    let serving = array.shelf.serve_with(&members, &["--nbd", &nbd, "--degraded"]);
    assert!(serving.said["remarks"].to_string().contains(&format!("left out: {uri}")));
    serving.stop();
    // Commands that do without nothing name it.
    let check = levelhead(&[&["array", "check"][..], &refs(&members)].concat());
    assert!(check.refusal().starts_with(&uri), "{check:?}");
    let listener = UnixListener::bind(&socket).unwrap();
    let other = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&[b'x'; 64]).unwrap();
        drop(stream.read(&mut [0; 1]));
    });
    let refused = ask(&["--degraded"]);
    assert!(refused.refusal().starts_with(&uri), "{refused:?}");
    other.join().unwrap();
}

/// An array that was written to and stopped.
struct Array {
    shelf: Shelf,
    drives: Vec<String>,
}

impl Array {
    fn new(spec: &str, count: usize, options: &[&str]) -> Self {
        let shelf = Shelf::new();
        let drives = shelf.drives(count, DRIVE);
        let create = ["array", "create", spec, "--assume-clean"];
        levelhead(&[&create[..], options, &refs(&drives)].concat()).good();
        let array = Self { shelf, drives };
        array.write(&[], &array.all());
        array
    }

    fn all(&self) -> Vec<usize> {
        (0..self.drives.len()).collect()
    }

    fn of(&self, drives: &[usize]) -> Vec<String> {
        drives.iter().map(|&drive| self.drives[drive].clone()).collect()
    }

    /// Serves it with these drives, writes and stops.
    fn write(&self, options: &[&str], drives: &[usize]) {
        let socket = self.shelf.path("nbd.sock");
        let options = [&["--nbd", &socket][..], options].concat();
        let serving = self.shelf.serve_with(&self.of(drives), &options);
        connect(&socket).write_at(Bytes::new(0), &[7; 65536], Durability::Durable).unwrap();
        serving.stop();
    }

    /// Serves it with these drives, and ends it after a write without a stop.
    fn cut_off(&self, drives: &[usize]) {
        let serving = self.shelf.serve(&self.of(drives));
        let socket = self.shelf.path("nbd.sock");
        connect(&socket).write_at(Bytes::new(0), &[8; 65536], Durability::Durable).unwrap();
        serving.signal(rustix::process::Signal::KILL);
        drop(serving.end());
    }

    /// What a start with these drives is refused with, which is one sentence and changes nothing.
    #[track_caller]
    fn refusal(&self, options: &[&str], drives: &[usize]) -> String {
        let drives = self.of(drives);
        let before = self.shelf.content();
        let would = levelhead(&[&["array", "assemble"][..], options, &refs(&drives)].concat());
        let serve = ["array", "serve", "--nbd", "tcp:0"];
        let served = levelhead(&[&serve[..], options, &refs(&drives)].concat());
        // Of an array that has failed one of the two is a wrong call.
        assert!((&served.err, &served.out) == (&would.err, &would.out), "{served:?}, {would:?}");
        assert!(matches!(would.code, Some(2 | 3)), "{would:?}");
        assert_eq!(served.err.trim_end().lines().count(), 1, "one sentence: {}", served.err);
        assert!(before == self.shelf.content(), "something has changed");
        served.refusal().to_owned()
    }

    /// What a start with these drives would be, and that it is one.
    #[track_caller]
    fn start(&self, options: &[&str], drives: &[usize]) -> Value {
        let drives = self.of(drives);
        let assemble = ["array", "assemble", "--json"];
        let would = levelhead(&[&assemble[..], options, &refs(&drives)].concat());
        let would = match would.code {
            Some(1) => would.degraded_json(),
            _ => would.json(),
        };
        let socket = self.shelf.path("nbd.sock");
        let serving = self.shelf.serve_with(&drives, &[&["--nbd", &socket][..], options].concat());
        assert_eq!(serving.said["remarks"], would["would"]);
        serving.stop();
        would
    }
}

/// The numbers of the drives that are missing for the first time, and how the array starts with each.
fn newly_missing_and_states(would: &Value) -> (Value, Vec<&str>) {
    let drives = would["drives"].as_array().unwrap().iter();
    let states = drives.map(|drive| drive["state"].as_str().unwrap());
    (would["newly_missing"].clone(), states.collect())
}

const SPEC: &str = "raid5:2+1,chunk=8KiB";
const ONLY: &str = "use --degraded to start without it";

#[test]
fn start_without_a_drive_that_was_there_so_far_needs_to_be_told() {
    let array = Array::new(SPEC, 3, &[]);
    let whole = array.start(&[], &[0, 1, 2]);
    assert_eq!(newly_missing_and_states(&whole), (json!([]), vec!["taken"; 3]));
    assert_eq!((&whole["state"], &whole["would"]), (&json!("whole"), &json!([])));
    let expected = format!("drive 1 is missing: it is not among the 2 that were named; {ONLY}");
    assert_eq!(array.refusal(&[], &[0, 2]), expected);
    // Nothing is written, so nothing is recorded, and it is asked for again.
    for _ in 0..2 {
        let would = array.start(&["--degraded"], &[0, 2]);
        let states = vec!["taken", "missing", "taken"];
        assert_eq!(newly_missing_and_states(&would), (json!([1]), states));
        assert_eq!(would["state"], "degraded");
        let said = would["would"].to_string();
        assert!(said.contains("drive 1 is missing, its data is computed"), "{said}");
        assert!(said.contains("drive 1 is missing for the first time"), "{said}");
    }
    assert_eq!(array.refusal(&[], &[0, 2]), expected);
    // The option does no harm where nothing is missing.
    assert_eq!(array.start(&["--degraded"], &[2, 1, 0]), whole);
}

#[test]
fn start_without_a_drive_whose_loss_is_recorded_needs_no_option() {
    let array = Array::new(SPEC, 3, &[]);
    array.write(&["--degraded"], &[0, 1]);
    let would = array.start(&[], &[0, 1]);
    let states = vec!["taken", "taken", "missing"];
    assert_eq!(newly_missing_and_states(&would), (json!([]), states.clone()));
    let said = would["would"].to_string();
    assert!(!said.contains("for the first time"), "{said}");
    // One that failed while the array was served, and one that was being filled.
    for is_replaced in [false, true] {
        let mut array = Array::new(SPEC, 3, &[]);
        let serving = array.shelf.serve(&array.drives);
        levelhead(&["array", "fail", serving.control(), "2"]).good();
        if is_replaced {
            let new = array.shelf.path("new.img");
            File::create_new(&new).unwrap().set_len(DRIVE).unwrap();
            levelhead(&["array", "rebuild", serving.control(), "--pause"]).good();
            levelhead(&["array", "replace", serving.control(), "2", &new]).good();
            wait_until("that is recorded", || serving.status()["drives"][2]["state"] == "filling");
            array.drives[2] = new;
        }
        serving.stop();
        assert_eq!(
            newly_missing_and_states(&array.start(&[], &[0, 1])),
            (json!([]), states.clone())
        );
    }
}

#[test]
fn drive_that_is_back_is_named_before_it_is_given_what_it_has_missed() {
    let array = Array::new(SPEC, 3, &[]);
    array.write(&["--degraded"], &[0, 1]);
    let args = [&["array", "assemble", "--json"][..], &refs(&array.drives)].concat();
    let would = levelhead(&args).degraded_json();
    let states = vec!["taken", "taken", "returning"];
    assert_eq!(newly_missing_and_states(&would), (json!([]), states));
    assert_eq!(would["drives"][2]["member"], array.drives[2].as_str());
    let sentence = format!("drive 2 is back, {}: partial resync", array.drives[2]);
    assert_eq!(would["would"], json!([sentence]));
    let serving = array.shelf.serve(&array.drives);
    assert_eq!(serving.said["remarks"], json!([sentence]));
    wait_until("it is caught up", || serving.status()["state"] == "whole");
    serving.stop();
    // From then on it is missed again.
    assert!(array.refusal(&[], &[0, 1]).contains("drive 2 is missing"));
}

#[test]
fn of_two_that_are_missing_those_are_named_that_were_there_so_far() {
    let array = Array::new("raid6:4+2,chunk=8KiB", 6, &[]);
    let refusal = array.refusal(&[], &[0, 1, 3, 4]);
    let expected = "drives 2,5 are missing: they are not among \
                    the 4 that were named; use --degraded to start without them";
    assert_eq!(refusal, expected);
    array.write(&["--degraded"], &[0, 1, 2, 3, 4]);
    let refusal = array.refusal(&[], &[0, 1, 3, 4]);
    assert!(refusal.starts_with("drive 2 is missing:"), "{refusal}");
    let would = array.start(&["--degraded"], &[0, 1, 3, 4]);
    assert_eq!(would["newly_missing"], json!([2]));
    // More than it survives are missing, whatever is allowed.
    for options in [&[][..], &["--degraded"], &["--degraded", "--force"]] {
        let refusal = array.refusal(options, &[0, 3, 4]);
        assert!(refusal.contains("survives the loss of 2 drives, 3 are missing"), "{refusal}");
    }
}

/// Neither option stands for the other: one is about a drive, the other about data.
#[test]
fn force_and_degraded_are_asked_for_one_by_one() {
    let array = Array::new(SPEC, 3, &["--journal", "none"]);
    array.cut_off(&[0, 1, 2]);
    let (missing, doubt) = ("drive 2 is missing: it is not", "was not stopped cleanly and drive 2");
    let both = array.refusal(&[], &[0, 1]);
    assert!(both.contains(missing) && both.contains(doubt), "{both}");
    assert!(both.contains(ONLY) && both.ends_with("only --force starts it"), "{both}");
    let forced = array.refusal(&["--force"], &[0, 1]);
    assert!(forced.contains(missing) && !forced.contains(doubt), "{forced}");
    let told = array.refusal(&["--degraded"], &[0, 1]);
    assert!(told.contains(doubt) && !told.contains(missing), "{told}");
    let would = array.start(&["--degraded", "--force"], &[0, 1]);
    assert_eq!((&would["newly_missing"], &would["forced"]), (&json!([2]), &json!(true)));
    // Where the loss is recorded, data may still be wrong.
    let array = Array::new(SPEC, 3, &["--journal", "none"]);
    array.write(&["--degraded"], &[0, 1]);
    array.cut_off(&[0, 1]);
    let told = array.refusal(&[], &[0, 1]);
    assert!(told.contains(doubt) && !told.contains(missing), "{told}");
}

#[test]
fn drives_that_are_named_and_are_not_there_are_missing_if_the_array_may_go_on() {
    let array = Array::new(SPEC, 3, &[]);
    fs::remove_file(&array.drives[1]).unwrap();
    let gone = format!("{} does not exist", array.drives[1]);
    let refusal = array.refusal(&[], &[0, 1, 2]);
    assert_eq!(refusal, format!("{gone}; use --degraded to start without it"));
    let would = array.start(&["--degraded"], &[0, 1, 2]);
    assert_eq!(would["newly_missing"], json!([1]));
    let left_out = json!([{ "member": array.drives[1], "state": "absent", "reason": gone }]);
    assert_eq!(would["left_out"], left_out);
    fs::remove_file(&array.drives[0]).unwrap();
    let refusal = array.refusal(&["--degraded"], &[0, 1, 2]);
    assert!(refusal.contains("2 are missing: drives 0,1; "), "{refusal}");
    assert!(refusal.ends_with(&gone), "{refusal}");
    // What is no drive of the array is a mistake and not a drive that is missing.
    fs::write(&array.drives[1], vec![0; 1 << 20]).unwrap();
    let refusal = array.refusal(&["--degraded"], &[1, 2]);
    assert!(refusal.ends_with("d1.img is not a drive of an array"), "{refusal}");
}

#[test]
fn scan_says_where_it_has_looked_and_what_it_has_left_out() {
    let array = Array::new(SPEC, 3, &[]);
    File::options().write(true).open(&array.drives[1]).unwrap().set_len(DRIVE - 4096).unwrap();
    let folder = array.shelf.dir.path().to_str().unwrap();
    let missing = format!("drive 1 is missing: it is not found in {folder}; {ONLY}");
    let shrunk = format!("{} has shrunk to 8188KiB, it had 8MiB", array.drives[1]);
    let scan = ["array", "serve", "--nbd", "tcp:0", "--scan", folder];
    for refused in [levelhead(&scan), levelhead(&["array", "assemble", folder])] {
        let sentence = refused.refusal().to_owned();
        assert!(sentence.starts_with(&format!("{missing}; {shrunk}")), "{sentence}");
    }
    let list = levelhead(&["array", "list", "--json", folder]).degraded_json();
    let found = &list["arrays"][0];
    assert_eq!((&found["state"], &found["refusal"]), (&json!("degraded"), &json!(missing)));
    let would = levelhead(&["array", "assemble", "--degraded", "--json", folder]).degraded_json();
    assert_eq!((&would["newly_missing"], &would["state"]), (&json!([1]), &json!("degraded")));
    // What only reads asks for nothing.
    fs::remove_file(&array.drives[1]).unwrap();
    levelhead(&["array", "check", "--scan", folder]).degraded();
    let to = tempfile::tempdir().unwrap();
    let to = to.path().join("all").to_str().unwrap().to_owned();
    levelhead(&["array", "salvage", "--scan", folder, "--to", &to]).good();
}

/// As after a boot in which a drive is late, or gone.
#[test]
fn drives_are_looked_for_as_long_as_was_said_before_it_goes_on_without_them() {
    for is_back in [true, false] {
        let array = Array::new(SPEC, 3, &[]);
        let (aside, log) = (array.shelf.path("aside"), array.shelf.path("log"));
        fs::rename(&array.drives[1], &aside).unwrap();
        let degraded = if is_back { "--degraded=1h" } else { "--degraded=1s" };
        let socket = array.shelf.path("nbd.sock");
        let serve = [&["array", "serve", "--nbd", &socket, degraded][..], &refs(&array.drives)];
        let mut command = command(&serve.concat());
        command.stderr(File::create(&log).unwrap());
        let serving = thread::spawn(move || Serving::spawn(command));
        let waits =
            format!("{} does not exist; use --degraded to start without it", array.drives[1]);
        let said = || fs::read_to_string(&log).unwrap();
        wait_until("it says what it waits for", || said().contains(&waits));
        if is_back {
            fs::rename(&aside, &array.drives[1]).unwrap();
        }
        let serving = serving.join().unwrap();
        let state = if is_back { "whole" } else { "degraded" };
        assert_eq!(serving.status()["state"], state);
        serving.stop();
        assert_eq!(said().matches("; waiting ").count(), 1, "{}", said());
    }
    for wrong in ["--degraded=0.5s", "--degraded=2h", "--degraded=soon"] {
        let ended = levelhead(&["array", "serve", "d0.img", "--nbd", "tcp:0", wrong]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
    }
}
