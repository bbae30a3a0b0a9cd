//! The threads behind encrypted connections use no processor where nothing can be carried: alone in this file,
//! because it looks at all threads of the program.

mod common;

use std::fs;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use common::{Held, Served, export, memory, pki, wait_until};
use levelhead_block::{BlockService, Effort, Request};
use levelhead_nbd::Client;
use levelhead_units::{Extent, Lba, Sectors};

/// The times in nanoseconds that each pump has had a processor.
fn busy() -> Vec<u64> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let time = |task: std::io::Result<fs::DirEntry>| {
        let path = task.unwrap().path();
        let name = fs::read_to_string(path.join("comm")).ok()?;
        let stat = fs::read_to_string(path.join("schedstat")).ok()?;
        (name.trim() == "nbd-tls").then(|| stat.split(' ').next().unwrap().parse().unwrap())
    };
    tasks.filter_map(time).collect()
}

/// Panics unless there are this number of pumps and none is busy, which one that does not wait is each time.
#[track_caller]
fn check_idle(pumps: usize, when: &str) {
    const LOOK: Duration = Duration::from_millis(500);
    // What is under way may end first, on a machine with much else to do.
    let found = (0..20).find(|_| {
        let before = busy();
        thread::sleep(LOOK);
        let after = busy();
        let all_there = before.len() == pumps && after.len() == pumps;
        let is_idle = |(before, after): (&u64, &u64)| after - before < 20_000_000;
        all_there && before.iter().zip(&after).all(is_idle)
    });
    assert!(found.is_some(), "{when}: {pumps} pumps are not idle");
}

#[test]
fn pumps_wait_while_nothing_can_be_carried() {
    let certificates = pki::folder();
    let held = Arc::new(Held::new(memory(8192)));
    let tls = pki::server(certificates.path());
    let served = Served::of(vec![export(held.clone())], |server| server.with_tls(tls));
    let uri = served.running.endpoint().tls_uri("disk");
    let uri = format!("{uri}&tls-certificates={}", certificates.path().display());
    let open = || Client::open(&uri.parse().unwrap()).unwrap();
    let extent = |sectors| Extent::new(Lba::ZERO, Sectors::new(sectors));
    let idle = open();
    check_idle(2, "nothing is asked");
    // It has said goodbye, and its answer is yet to come: both ends are half closed.
    let (sender, receiver) = mpsc::channel();
    let leaving = open();
    let done = Box::new(move |_| sender.send(()).unwrap());
    leaving.submit(Request::read(extent(1), Effort::Full), done);
    wait_until("it has come", || held.seen() == 1);
    drop(leaving);
    check_idle(4, "a client has said goodbye and waits for its answer");
    held.open();
    receiver.recv().unwrap();
    wait_until("it has left", || served.running.connections() == 1);
    // Everything between both ends is full.
    let (sender, receiver) = mpsc::channel::<()>();
    let stuck = Box::new(move |_| {
        let _end = receiver.recv();
    });
    idle.submit(Request::read(extent(1), Effort::Full), stuck);
    for _ in 0..8 {
        idle.submit(Request::read(extent(8192), Effort::Full), Box::new(|_| {}));
    }
    check_idle(2, "a client takes no answers");
    drop(sender);
}
