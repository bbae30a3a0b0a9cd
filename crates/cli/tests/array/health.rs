//! Exit codes that tell how well an array is: 0 healthy, 1 degraded, 3 failed, and 2 for a wrong call.

use crate::support::{Ended, Shelf, levelhead, refs};
use crate::{DRIVE, without};

/// How a program ends, and the last sentence of what it says of it.
#[track_caller]
fn expect(ended: &Ended, code: i32, sentence: &str) {
    assert_eq!(ended.code, Some(code), "{ended:?}");
    assert!(ended.err.contains(sentence), "{ended:?}");
    assert_eq!(code == 0, ended.err.is_empty(), "{ended:?}");
}

/// An array that is valid as it is.
fn made(shelf: &Shelf, spec: &str, count: usize) -> Vec<String> {
    let drives = shelf.drives(count, DRIVE);
    let create = [&["array", "create", spec, "--assume-clean"][..], &refs(&drives)].concat();
    levelhead(&create).good();
    drives
}

#[test]
fn check_list_and_assemble_tell_a_healthy_a_degraded_and_a_failed_array_apart() {
    let shelf = Shelf::new();
    let folder = shelf.dir.path().to_str().unwrap();
    let drives = made(&shelf, "raid5:2+1", 3);
    let ask = |verb: &str, options: &[&str], drives: &[String]| {
        levelhead(&[&["array", verb][..], options, &refs(drives)].concat())
    };
    expect(&ask("check", &[], &drives), 0, "");
    expect(&ask("assemble", &[], &drives), 0, "");
    expect(&levelhead(&["array", "list", folder]), 0, "");
    let two = without(&drives, 1);
    std::fs::remove_file(&drives[1]).unwrap();
    let degraded = ask("check", &[], &two);
    expect(&degraded, 1, "degraded: drive 1 is missing");
    assert!(!degraded.out.contains("nothing is wrong"), "{degraded:?}");
    assert!(degraded.out.contains("drive 1 is missing"), "{degraded:?}");
    expect(&ask("assemble", &["--degraded"], &two), 1, "degraded: drive 1 is missing");
    expect(&levelhead(&["array", "list", folder]), 1, "drive 1 is missing");
    // Without the option it is another call.
    ask("assemble", &[], &two).refusal();
    let one = without(&two, 1);
    std::fs::remove_file(&two[1]).unwrap();
    expect(
        &ask("check", &[], &one),
        3,
        "raid5:2+1,chunk=64KiB survives the loss of 1 drive, 2 are missing",
    );
    expect(&ask("assemble", &["--degraded"], &one), 3, "2 are missing: drives 1,2");
    expect(&levelhead(&["array", "list", folder]), 3, "drives 1,2 are missing");
    ask("check", &["--no-such-option"], &one).refusal();
}

#[test]
fn list_gives_the_worst_of_its_arrays_and_a_codeword_that_does_not_match_is_degraded() {
    let shelf = Shelf::new();
    let folder = shelf.dir.path().to_str().unwrap().to_owned();
    let drives = made(&shelf, "raid5:2+1", 3);
    let other = Shelf::new();
    let others = made(&other, "raid1:2", 2);
    std::fs::remove_file(&others[0]).unwrap();
    let both = ["array", "list", &folder, other.dir.path().to_str().unwrap()];
    expect(&levelhead(&both), 1, "degraded: array ");
    expect(&levelhead(&both[..3]), 0, "");
    // In the middle of a drive with data.
    let bytes = std::fs::read(&drives[0]).unwrap();
    let mut changed = bytes.clone();
    changed[(DRIVE / 4) as usize..][..4096].fill(1);
    std::fs::write(&drives[0], &changed).unwrap();
    let check = [&["array", "check"][..], &refs(&drives)].concat();
    expect(&levelhead(&check), 1, "degraded: 1 thing is wrong with the array");
}

#[test]
fn status_ends_well_unless_it_is_to_check() {
    let shelf = Shelf::new();
    let drives = made(&shelf, "raid5:2+1", 3);
    let serving = shelf.serve_with(&drives, &["--nbd", &shelf.path("nbd.sock")]);
    let status = ["array", "status", &drives[0]];
    let check = [&status[..], &["--check"]].concat();
    expect(&levelhead(&check), 0, "");
    let said = levelhead(&status).good();
    assert!(said.contains("\nstate:     healthy; 1 more drive may fail\n"), "{said}");
    levelhead(&["array", "fail", &drives[0], "1"]).good();
    expect(&levelhead(&status), 0, "");
    expect(&levelhead(&check), 1, "degraded: drive 1 is failed");
    let said = levelhead(&status).good();
    assert!(
        said.contains("\nstate:     degraded: drive 1 is failed; no more drives may fail\n"),
        "{said}"
    );
    levelhead(&["array", "remove", &drives[0], "1"]).good();
    expect(&levelhead(&check), 1, "degraded: drive 1 is removed");
    levelhead(&[&check[..], &["--watch"]].concat()).refusal();
    serving.stop();
    levelhead(&check).refusal();
}
