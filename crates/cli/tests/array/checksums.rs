//! Arrays with checksums that are not served.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use levelhead_block::Durability;
use levelhead_nbd::{Client, Endpoint};
use levelhead_units::Bytes;
use rustix::process::Signal;
use serde_json::json;

use crate::support::book::Book;
use crate::support::{Shelf, assert_same, levelhead, read_all, refs, wait_until};
use crate::synced;

/// A synced array that is stopped, with its drives.
fn array(shelf: &Shelf, spec: &str, count: usize) -> Vec<String> {
    let drives = shelf.drives(count, 8 << 20);
    levelhead(&[&["array", "create", spec, "--checksums"][..], &refs(&drives)].concat()).good();
    let serving = shelf.serve(&drives);
    wait_until("it is synced", || synced(&serving.status()) >= 100.0);
    serving.stop();
    drives
}

/// Writes whole groups, which have their tag sectors with them, behind the books.
fn write_long_until_killed(socket: &str, round: u64) {
    let Ok(client) = Client::connect(&Endpoint::Unix(socket.into()), "") else { return };
    for at in 0.. {
        let bytes = [(round + 3 * at) as u8; 1 << 20];
        let offset = Bytes::new((4 + at % 2) << 20);
        if client.write_at(offset, &bytes, Durability::Cached).is_err() {
            return;
        }
    }
}

/// What was being written when a server is killed is old or new, and the check takes what a start takes.
#[test]
fn check_of_killed_servers_finds_nothing() {
    for (spec, count) in [("raid5:3,chunk=8KiB", 3), ("raid1:2", 2), ("raid6:4,chunk=64KiB", 4)] {
        let shelf = Shelf::new();
        let drives = array(&shelf, spec, count);
        let check = [&["array", "check", "--json"][..], &refs(&drives)].concat();
        let mut books: Vec<Book> = (0..2).map(|at| Book::new(at * 500, 500)).collect();
        let mut announced = 0;
        for round in 0..6 {
            let serving = shelf.serve(&drives);
            let answered = AtomicU64::new(0);
            thread::scope(|scope| {
                for (at, book) in books.iter_mut().enumerate() {
                    let (socket, answered) = (shelf.path("nbd.sock"), &answered);
                    let seed = 2 * round + at as u64;
                    scope.spawn(move || book.write_until_killed(&socket, seed, answered));
                }
                let socket = shelf.path("nbd.sock");
                scope.spawn(move || write_long_until_killed(&socket, round));
                let enough = 1 + 61 * round;
                wait_until("enough is written", || answered.load(Ordering::SeqCst) >= enough);
                serving.signal(Signal::KILL);
            });
            drop(serving.end());
            let value = levelhead(&check).json();
            let sums = &value["checksums"];
            let rest = [&sums["corrupt"], &sums["without"], &sums["bad_tags"]];
            assert_eq!(rest, [&json!(0); 3], "{spec}, round {round}: {value}");
            assert!(sums["compared"].as_u64().unwrap() > 1_000, "{spec}: {value}");
            announced += value["codewords"]["announced"].as_u64().unwrap();
            let to = shelf.path(&format!("{round}.out"));
            levelhead(&[&["array", "salvage", "--to", &to][..], &refs(&drives)].concat()).good();
            let served = shelf.serve(&drives);
            let bytes = read_all(&shelf.path("nbd.sock"));
            served.stop();
            if value["codewords"]["announced"] == 0 {
                assert_same(&fs::read(&to).unwrap(), &bytes);
            }
            for book in &mut books {
                book.check(&bytes, &format!("{spec}, round {round}"));
            }
        }
        eprintln!("{spec}: {announced} codewords were announced");
    }
}

#[test]
fn rot_is_named_and_computed_by_a_salvage() {
    let shelf = Shelf::new();
    let drives = array(&shelf, "raid5:3,chunk=8KiB", 3);
    let to = shelf.path("before");
    levelhead(&[&["array", "salvage", "--to", &to][..], &refs(&drives)].concat()).good();
    let mut bytes = fs::read(&drives[1]).unwrap();
    let at = (2 << 20) + 5;
    bytes[at] ^= 1;
    fs::write(&drives[1], bytes).unwrap();
    let check = [&["array", "check", "--json"][..], &refs(&drives)].concat();
    let value = levelhead(&check).degraded_json();
    let finding = &value["findings"][0];
    assert_eq!((&finding["kind"], &finding["drive"]), (&json!("corrupt"), &json!(1)));
    assert_eq!(finding["on_drive"], json!({ "first_sector": at / 4096, "sectors": 1 }));
    let sums = &value["checksums"];
    assert_eq!((&sums["corrupt"], &value["findings"][1]), (&json!(1), &json!(null)));
    let text = levelhead(&[&["array", "check"][..], &refs(&drives)].concat()).degraded();
    assert!(
        text.contains(" compared, 1 corrupt, 0 without checksum, 0 bad tag sectors\n"),
        "{text}"
    );
    let after = shelf.path("after");
    let salvage = [&["array", "salvage", "--json", "--to", &after][..], &refs(&drives)].concat();
    let value = levelhead(&salvage).json();
    assert_eq!(value["checksums"]["corrupt"], 1);
    assert_same(&fs::read(&to).unwrap(), &fs::read(&after).unwrap());
}
