//! Drives that hang while an array is served: whatever they are asked for, the array answers for itself.

use levelhead_block::Durability;
use levelhead_units::Bytes;
use rustix::process::Signal;
use serde_json::json;

use crate::support::{Shelf, connect, wait_until};
use crate::{DRIVE, without};

/// The members, of which some take ten seconds for a command: longer than the array waits. Drives that never end one are
/// in `host/src/stuck.rs`.
fn with_hanging(drives: &[String], hanging: &[usize]) -> Vec<String> {
    let member = |(at, path): (usize, &String)| match hanging.contains(&at) {
        true => format!("emu:{path}?slowdown=1000"),
        false => path.clone(),
    };
    drives.iter().enumerate().map(member).collect()
}

#[test]
fn array_whose_drive_hangs_says_so_serves_on_and_stops() {
    for hanging in 0..6 {
        let shelf = Shelf::new();
        let drives = shelf.array(DRIVE);
        let socket = shelf.path("nbd.sock");
        let options = ["--nbd", &socket, "--lost-after", "2s"];
        let serving = shelf.serve_with(&with_hanging(&drives, &[hanging]), &options);
        let client = connect(&socket);
        let writer = std::thread::spawn(move || {
            let bytes = vec![7; 200_000];
            client.write_at(Bytes::new(0), &bytes, Durability::Durable).unwrap();
            let mut back = vec![0; bytes.len()];
            client.read_at(Bytes::new(0), &mut back).unwrap();
            assert!(back == bytes);
        });
        // Asked for over and over while the drive hangs, and never waits for it.
        wait_until("the drive is lost", || {
            let status = serving.status();
            status["drives"][hanging]["state"] == "failed"
        });
        writer.join().unwrap();
        let failure = serving.status()["drives"][hanging]["failure"].clone();
        assert_eq!(failure, json!("it has completed no command for 2 s"));
        serving.stop();
        // It is taken back at the next start, and given what it has missed: it stands in for another one then.
        let serving = shelf.serve(&drives);
        wait_until("the drive is caught up", || serving.status()["state"] == "whole");
        serving.stop();
        let serving = shelf.serve_degraded(&without(&drives, (hanging + 1) % 6));
        let mut read = vec![0; 200_000];
        connect(&socket).read_at(Bytes::new(0), &mut read).unwrap();
        assert!(read.iter().all(|&byte| byte == 7));
        serving.stop();
    }
}

/// More hang than the array can do without: the request is answered, one way or the other, and the array ends. Which
/// of the two depends on what the drives end in time.
#[test]
fn array_too_many_of_whose_drives_hang_answers_and_ends_all_the_same() {
    for signal in [Signal::TERM, Signal::INT] {
        let shelf = Shelf::new();
        let drives = shelf.array(DRIVE);
        let socket = shelf.path("nbd.sock");
        let options = ["--nbd", &socket, "--lost-after", "1s"];
        let serving = shelf.serve_with(&with_hanging(&drives, &[1, 4]), &options);
        let client = connect(&socket);
        let writer = std::thread::spawn(move || {
            // Stored or refused: it is answered.
            drop(client.write_at(Bytes::new(0), &[7; 200_000], Durability::Durable));
        });
        wait_until("the write is under way", || serving.status()["outstanding"] != json!(0));
        serving.signal(signal);
        writer.join().unwrap();
        let ended = serving.end();
        assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    }
}
