//! `levelhead drive emulate`: what becomes of the bytes.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use levelhead_block::adapter::Waiting;
use levelhead_block::{BlockDevice, Command, Durability, Request};
use levelhead_testkit::profiles::forgetful;
use levelhead_units::Bytes;
use rustix::process::Signal;

use crate::support::{Serving, Shelf, connect, levelhead, wait_until};

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
        (&["--verify", "on"], "--verify on: 'on' is not a mode of write verification"),
        (&["--verify", "idle", "--cache", "off"], "it needs cache=read or write-back"),
    ] {
        let refused = levelhead(&[&emulate[..], options].concat());
        assert!(refused.refusal().contains(part), "{}", refused.err);
        assert!(!Path::new(&file).exists(), "nothing was made");
    }
}

#[test]
fn a_killed_drive_has_what_was_flushed_and_not_what_was_in_its_memory() {
    let shelf = Shelf::new();
    let [file, socket, profile] = ["a.img", "nbd.sock", "own.toml"].map(|name| shelf.path(name));
    fs::write(&profile, forgetful()).unwrap();
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
