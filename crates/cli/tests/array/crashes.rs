//! Servers that are killed under load, again and again: no write that was answered is gone, and none is in pieces.
//! With fio and on other layouts: `tests/soak/fio.rs`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use rustix::process::Signal;

use crate::support::book::Book;
use crate::support::{Shelf, read_all, wait_until};
use crate::{DRIVE, SIZE, without};

/// Clients that write at the same time, each to a part of its own.
const WRITERS: usize = 4;

/// The sectors of a writer's part.
const PART: usize = SIZE as usize / 4096 / WRITERS;

/// `CRASHES` says how often the server is killed.
#[test]
fn what_was_answered_survives_servers_that_are_killed_and_then_a_drive() {
    let count = std::env::var("CRASHES").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let socket = shelf.path("nbd.sock");
    let mut books: Vec<Book> = (0..WRITERS).map(|at| Book::new(at * PART, PART)).collect();
    for round in 0..count {
        let serving = shelf.serve(&drives);
        let bytes = read_all(&socket);
        for book in &mut books {
            book.check(&bytes, &format!("round {round}"));
        }
        let answered = AtomicU64::new(0);
        thread::scope(|scope| {
            for (at, book) in books.iter_mut().enumerate() {
                let (socket, seed) = (&socket, round * WRITERS as u64 + at as u64);
                let answered = &answered;
                scope.spawn(move || book.write_until_killed(socket, seed, answered));
            }
            let enough = 1 + 37 * (round % 11);
            wait_until("enough is written", || answered.load(Ordering::SeqCst) >= enough);
            serving.signal(Signal::KILL);
        });
        assert_eq!(serving.end().code, None);
    }
    let written: u64 = books.iter().map(Book::writes).sum();
    eprintln!("{count} servers killed under {written} writes");
    let serving = shelf.serve_degraded(&without(&drives, 2));
    let bytes = read_all(&socket);
    for book in &mut books {
        book.check(&bytes, "without a drive");
    }
    serving.stop();
}
