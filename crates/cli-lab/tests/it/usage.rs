//! What happens to bad input: one clear sentence that names the thing and the limit, exit code 2,
//! nothing on standard output, and nothing changed on disk.

use std::fs;
use std::process::Stdio;

use levelhead_drive::Faults;

use crate::support::{PROGRAM, Shelf, check_refused as check, command, levelhead, run, wait_until};

#[test]
fn impossible_arrays_are_refused() {
    let shelf = Shelf::new();
    for (array, parts) in [
        (
            "raid9:6",
            ["'raid9' is not an array", "raid0, raid1, raid10, raid4, raid5, raid6 or eraid"],
        ),
        ("raid5:5+1,chunk=64MiB", ["a stripe has at most 256MiB", "384MiB"]),
        ("raid5:5+1,journals=2", ["journals=2", "a replay keeps no journal"]),
    ] {
        check(&shelf, &["replay", "--array", array], &parts);
    }
}

#[test]
fn numbers_out_of_range_are_refused_with_the_range() {
    let shelf = Shelf::new();
    for window in ["0", "33", "-1", "many"] {
        let parts = ["--window", &format!("'{window}'"), "from 1 to 32"];
        check(&shelf, &["replay", "--window", window], &parts);
    }
    for rate in ["--retry-rate", "--hard-rate"] {
        for value in ["101%", "-1%", "2", "x%", "nan%"] {
            let option = format!("{rate}={value}");
            check(&shelf, &["replay", &option], &[rate, value, "a percentage from 0% to 100%"]);
        }
    }
    for (option, value, parts) in [
        ("--rotations", "0", ["1 to 1000", "0"]),
        ("--rotations", "1001", ["1 to 1000", "1001"]),
        ("--rotations", "x", ["--rotations", "'x'"]),
        ("--rotations", "uniform:3", ["uniform:3", "uniform:1-7, geometric:3 or 1:80%+30:20%"]),
        ("--faults", "rpm=9", ["'rpm=9'", "misdirected-writes, flips, lying-flush, death"]),
        ("--faults", "episodes=1s/1s/0", ["slowed down 1 to 1000 times", "not 0 times"]),
        ("--adjacency", "-1", ["adjacency", "-1"]),
        ("--adjacency", "x", ["--adjacency", "'x' is not a number"]),
        ("--age-weight", "-1", ["weight of age", "0 or a positive number, not -1"]),
        ("--drive-order", "look", ["is not a drive order", "fcfs, sstf, clook or sptf"]),
        ("--drive-cache", "on", ["is not a drive cache", "off, read or write-back"]),
        ("--age-weight", "nan", ["weight of age", "0 or a positive number, not NaN"]),
        ("--seed", "-1", ["--seed", "'-1' is not a whole number from 0 to"]),
        ("--slow", "6=10", ["drive 6 does not exist", "has drives 0 to 5"]),
        ("--slow", "1=2000", ["1 to 1000 times", "2000"]),
        ("--slow", "1=0.5", ["1 to 1000 times", "0.5"]),
        ("--slow", "1", ["--slow", "expected DRIVE=FACTOR, as in 3=10"]),
        ("--failing", "0,6", ["drive 6 does not exist", "has drives 0 to 5"]),
        ("--failing", "0,x", ["--failing", "'x' is not a whole number from 0 to 63"]),
        ("--synthetic", "count=0", ["count", "expected 1 to 16777216, got 0"]),
        ("--synthetic", "interval=8", ["interval", "'8' is not a time"]),
        ("--synthetic", "size=5kB", ["size", "whole number of sectors"]),
        ("--synthetic", "iraw:mail", ["iraw", "web, email, user-acc, code-dev or sas"]),
        ("--synthetic", "iraw:web,length=8h", ["length", "at most 7h, got 8h"]),
        ("--synthetic", "colour=red", ["colour", "size, sizes, interval, count, reads or align"]),
    ] {
        check(&shelf, &["replay", option, value], &parts);
    }
    check(&shelf, &["demo", "--seed", "x"], &["--seed", "'x' is not a whole number"]);
    check(&shelf, &["demo", "--seconds", "x"], &["'x' is not a whole number from 1 to 3600"]);
    let generate = ["fleet", "generate", "--groups", "x"];
    check(&shelf, &generate, &["--groups", "expected a whole number from 0, got 'x'"]);
    let start = ["fleet", "import", "a", "--start", "soon"];
    check(
        &shelf,
        &start,
        &["--start", "'soon' is not a time: expected 2026-01-01T00:00:00Z or seconds since 1970"],
    );
}

#[test]
fn names_nobody_knows_are_refused_with_those_that_there_are() {
    let shelf = Shelf::new();
    let policy = ["'turbo' is not a policy", "normal, on-failure, assisted", "pro-active"];
    let order = ["'turbo' is not a host order", "fcfs, elevator or paper32"];
    check(&shelf, &["replay", "--policy", "turbo"], &policy);
    check(&shelf, &["replay", "--host-order", "turbo"], &order);
    let profile = ["'turbo' is not a drive profile", "nearline-2tb", "the path of a TOML file"];
    check(&shelf, &["replay", "--drive", "turbo"], &profile);
    let meant = ["'levle' is not a policy", "did you mean 'level'?"];
    check(&shelf, &["replay", "--policy", "levle"], &meant);
    check(&shelf, &["study", "run", "eraid.fig50"], &["did you mean 'eraid.fig5'?"]);
    check(&shelf, &["turbo"], &["'turbo'"]);
    check(&shelf, &["replay", "--turbo"], &["'--turbo'"]);
    let own = shelf.path("own.toml");
    fs::write(&own, "name = 3\n").unwrap();
    check(&shelf, &["replay", "--drive", &own], &[&own, "drive profile"]);
}

#[test]
fn malformed_trace_is_refused_with_file_line_and_column() {
    let shelf = Shelf::new();
    let trace = shelf.path("trace.csv");
    let good = "128166372003061629,hm,1,Read,383496192,32768,35549\n";
    for (line, place, parts) in [
        ("128166372003061630,hm,1,Reed,0,4096,1\n", "3:25", ["the type, Read or Write", "'Reed'"]),
        ("128166372003061630,hm,1,Read,1x,4096,1\n", "3:30", ["the offset", "'1x'"]),
        ("128166372003061630,hm\n", "3:22", ["the disk", "the end of the line"]),
    ] {
        fs::write(&trace, format!("{good}{good}{line}")).unwrap();
        let place = format!("{trace}:{place}: expected ");
        check(&shelf, &["replay", &trace], &[&[place.as_str()], &parts[..]].concat());
    }
    fs::write(&trace, "what is this\n").unwrap();
    check(&shelf, &["replay", &trace], &[&trace, "msr, msr-cut", "'what is this"]);
    fs::write(&trace, "").unwrap();
    check(&shelf, &["replay", &trace], &[&trace, "found nothing"]);
    check(&shelf, &["replay", &trace, "--format", "turbo"], &["'turbo'", "blkparse"]);
    check(&shelf, &["replay", &shelf.path("missing")], &["missing", "No such file"]);
    let folder = shelf.dir.path().to_str().unwrap();
    check(&shelf, &["replay", folder], &[folder, "is a directory, not a file"]);
}

#[test]
fn options_of_a_trace_are_refused_without_one() {
    let shelf = Shelf::new();
    for option in [["--rate", "2"], ["--format", "msr"], ["--placement", "wrap"]] {
        check(&shelf, &[&["replay"][..], &option].concat(), &["required", "<TRACE>"]);
        let made_up = ["replay", "--synthetic", "count=10"];
        check(&shelf, &[&made_up[..], &option].concat(), &[option[0], "--synthetic"]);
    }
    check(&shelf, &["replay", "trace", "--synthetic", "count=10"], &["[TRACE]", "--synthetic"]);
    check(
        &shelf,
        &["replay", "trace", "--rate", "0"],
        &["--rate", "'0' is not a number above zero"],
    );
    check(&shelf, &["replay", "trace", "--placement", "x"], &["'x'", "wrap or scale"]);
}

/// A result that cannot be written is refused before it is worked for.
#[test]
fn place_that_cannot_be_written_is_refused_first() {
    let shelf = Shelf::new();
    let (folder, nowhere) = (shelf.dir.path().to_str().unwrap(), shelf.path("no/such/file"));
    // So long that it would be noticed.
    let load = ["replay", "--synthetic", "count=16000000"];
    for option in ["--csv", "--report"] {
        check(&shelf, &[&load[..], &[option, folder]].concat(), &[folder, "is a directory"]);
        check(&shelf, &[&load[..], &[option, &nowhere]].concat(), &["no/such", "No such file"]);
    }
    let both = shelf.path("both");
    let parts = [both.as_str(), "cannot hold both"];
    check(&shelf, &[&load[..], &["--csv", &both, "--report", &both]].concat(), &parts);
}

#[test]
fn help_and_version_are_no_mistakes() {
    for args in [&["--help"][..], &["replay", "--help"], &["help"]] {
        assert!(levelhead(args).good().contains("Usage: levelhead-lab"), "{args:?}");
    }
    let version = format!("levelhead-lab {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(levelhead(&["--version"]).good(), version);
}

#[test]
fn help_names_every_kind_of_fault() {
    for help in ["-h", "--help"] {
        let text = levelhead(&[&["replay"][..], &[help]].concat()).good();
        let words: Vec<&str> = text.split([' ', '=', ',', '\n']).collect();
        for kind in Faults::KINDS {
            assert!(words.contains(&kind.key), "{help}: no {}\n{text}", kind.key);
        }
    }
}

#[test]
fn completions_and_manual_pages_come_from_the_same_definitions() {
    let text = levelhead(&["completions", "bash"]).good();
    for word in ["levelhead-lab", "replay", "retry-rate", "host-order"] {
        assert!(text.contains(word), "no {word}");
    }
    let shelf = Shelf::new();
    let folder = shelf.path("new/pages");
    levelhead(&["man", &folder]).good();
    for page in ["levelhead-lab.1", "levelhead-lab-replay.1"] {
        assert!(fs::exists(format!("{folder}/{page}")).unwrap(), "no {page}");
    }
}

#[test]
fn reader_that_goes_away_has_seen_enough() {
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &format!("{PROGRAM} replay --synthetic count=10 | true")]);
    let ended = run(command);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
}

#[test]
fn output_that_has_no_room_is_said_and_no_panic() {
    let redirected = |redirection: &str| {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &format!("exec {PROGRAM} {redirection}")]);
        run(command)
    };
    let ended = redirected("replay --synthetic count=10 >/dev/full");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.starts_with("levelhead-lab: standard output: No space left"), "{ended:?}");
    let ended = redirected("replay --synthetic count=10 --csv /dev/full");
    assert!(ended.refusal().starts_with("/dev/full: No space left"), "{ended:?}");
    // What cannot be said is still in the exit code.
    assert_eq!(redirected("replay --window 0 2>/dev/full").code, Some(2));
}

/// However it ends: a file gets its name when it is complete.
#[test]
fn file_of_a_program_that_is_killed_is_not_there() {
    let shelf = Shelf::new();
    let out = shelf.path("fleet.parquet");
    let generate = ["fleet", "generate", "--groups", "5000", "--hours", "2160", "--out", &out];
    let mut generating = command(&generate);
    let mut child = generating.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let writes = || {
        let files = fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap();
        let links = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
        let folder = shelf.dir.path().canonicalize().unwrap();
        links.into_iter().any(|link| link.starts_with(&folder))
    };
    wait_until("it writes", writes);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(shelf.names(), [] as [&str; 0]);
}
