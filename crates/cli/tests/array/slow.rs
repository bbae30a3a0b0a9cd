//! A slow drive under load, in real time: it sits out by itself, everybody hears of it, and what is read
//! is right all the time. When it sits out, and for how long, is tested in virtual time.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use levelhead_block::Durability;
use levelhead_stats::Streams;
use levelhead_units::Bytes;
use serde_json::Value;

use crate::events::{Follower, happened};
use crate::support::{Serving, Shelf, assert_same, connect, levelhead, random, wait_until};
use crate::{DRIVE, SIZE};

/// The drive that is slow.
const SLOW: usize = 2;

/// Clients that read all the time and compare.
struct Readers {
    enough: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    fn start(socket: &str, content: &Arc<Vec<u8>>) -> Self {
        let enough = Arc::new(AtomicBool::new(false));
        let read = |seed| {
            let (enough, content) = (Arc::clone(&enough), Arc::clone(content));
            let client = connect(socket);
            thread::spawn(move || {
                let mut rng = Streams::new(seed).stream("readers");
                while !enough.load(Ordering::Relaxed) {
                    let mut bytes = vec![0; 1 + rng.below(16 << 10) as usize];
                    let at = rng.below((content.len() - bytes.len()) as u64);
                    client.read_at(Bytes::new(at), &mut bytes).unwrap();
                    assert_same(&bytes, &content[at as usize..][..bytes.len()]);
                }
            })
        };
        let threads = (0..4).map(read).collect();
        Self { enough, threads }
    }

    fn stop(self) {
        self.enough.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().expect("what was read is right"));
    }
}

/// An array of emulated drives under load, one of which is slow.
struct Bench {
    shelf: Shelf,
    serving: Serving,
    readers: Readers,
    follower: Follower,
}

impl Bench {
    fn new(fault: &str) -> Self {
        let shelf = Shelf::new();
        let (files, socket) = (shelf.array(DRIVE), shelf.path("nbd.sock"));
        let content = Arc::new(random(SIZE, 1));
        // As plain files, which is faster.
        let serving = shelf.serve(&files);
        connect(&socket).write_at(Bytes::new(0), &content, Durability::Durable).unwrap();
        serving.stop();
        let member = |(idx, file): (usize, &String)| {
            let fault = if idx == SLOW { fault } else { "" };
            format!("emu:{file}?profile=simple15k{fault}")
        };
        let members: Vec<String> = files.iter().enumerate().map(member).collect();
        let program = shelf.path("note");
        fs::write(&program, format!("#!/bin/sh\nexec cat >> {}\n", shelf.path("noted"))).unwrap();
        fs::set_permissions(&program, PermissionsExt::from_mode(0o700)).unwrap();
        let options = ["--nbd", &socket, "--on-event", &program];
        let serving = shelf.serve_with(&members, &options);
        let follower = Follower::start(serving.control());
        let readers = Readers::start(&socket, &content);
        Self { shelf, serving, readers, follower }
    }

    /// Waits until this has happened to the slow drive.
    fn wait_for(&self, event: &str) {
        let wanted = (event.to_owned(), SLOW as u64);
        wait_until(event, || happened(&self.follower.lines()).contains(&wanted));
    }

    /// What the slow drive's status says.
    fn drive(&self) -> Value {
        self.serving.status()["drives"][SLOW].clone()
    }

    /// Does something to the slow drive by hand, unless that is refused.
    fn is_done(&self, verb: &str) -> bool {
        let drive = SLOW.to_string();
        levelhead(&["array", verb, self.serving.control(), &drive]).code == Some(0)
    }

    /// Stops everything and checks that everybody has heard the same. Returns what happened to the slow
    /// drive, which sits out by hand at last.
    fn end(self) -> Vec<String> {
        // Should another drive sit out for a while, on a busy machine, this is refused so long.
        wait_until("the slow drive sits out by hand", || self.is_done("sit-out"));
        self.wait_for("sat-out-by-hand");
        assert_eq!(self.drive()["sits_out"], true);
        let Self { shelf, serving, readers, follower } = self;
        // From here on no client reads and no other drive can sit out: nothing more happens.
        readers.stop();
        let ask = |args: &[&str]| -> Vec<String> {
            let text = levelhead(&[&["array", "events", serving.control()][..], args].concat());
            text.good().lines().map(str::to_owned).collect()
        };
        let (lines, sentences) = (ask(&["--json"]), ask(&[]));
        let status = serving.status();
        let parsed: Vec<Value> =
            lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(status["events"], Value::Array(parsed.clone()));
        for (number, event) in (1..).zip(&parsed) {
            assert_eq!(event["number"], number);
        }
        let noted = || -> Vec<String> {
            let text = fs::read_to_string(shelf.path("noted")).unwrap_or_default();
            text.lines().map(str::to_owned).collect()
        };
        wait_until("the program was run for each event", || noted().len() >= lines.len());
        assert_eq!(noted(), lines, "in their order");
        levelhead(&["array", "stop", serving.control()]).good();
        let ended = serving.end();
        let sentences = sentences.into_iter().chain(["the array was stopped cleanly".to_owned()]);
        // The log has times of its own.
        let plain = |line: &str| line.split_once("Z ").map_or(line, |(_, line)| line).to_owned();
        let said: Vec<String> =
            sentences.map(|line| format!("levelhead: {}", plain(&line))).collect();
        assert_eq!(ended.err.lines().collect::<Vec<_>>(), said);
        ended.good();
        let (followed, ended) = follower.end();
        ended.good();
        assert_eq!(followed[..lines.len()], lines);
        assert_eq!(followed.len(), lines.len() + 1, "and that it was stopped");
        let happened = happened(&lines);
        assert_eq!(happened.last(), Some(&("sat-out-by-hand".to_owned(), SLOW as u64)));
        happened
            .into_iter()
            // On a busy machine another drive may have sat out, and this one was slow and stayed in.
            .filter(|(event, drive)| *drive == SLOW as u64 && event != "slow")
            .map(|(event, _)| event)
            .collect()
    }
}

#[test]
fn slow_drive_sits_out_by_itself_and_everybody_hears_of_it() {
    let bench = Bench::new("&slowdown=20");
    bench.wait_for("sat-out");
    assert_eq!(bench.drive()["sits_out"], true);
    let status = bench.serving.status();
    let events = status["events"].as_array().unwrap();
    let is_it = |event: &&Value| event["event"] == "sat-out" && event["drive"] == SLOW;
    let event = events.iter().find(is_it).unwrap();
    // The numbers that caused it do: see docs/level.md.
    let figure = |key: &str| event[key].as_f64().unwrap();
    let (own, cohort, mad) =
        (figure("median_ms"), figure("cohort_median_ms"), figure("cohort_mad_ms"));
    assert!(own > 3.0 * cohort && own > cohort + 6.0 * 1.4826 * mad && own > 15.0, "{event}");
    assert!(cohort > 0.0 && figure("samples") >= 16.0, "{event}");
    let text = levelhead(&["array", "status", bench.serving.control()]).good();
    let row = text.lines().find(|line| line.starts_with(&SLOW.to_string())).unwrap();
    assert!(row.contains("avoided"), "{text}");
    assert!(bench.is_done("admit"));
    let happened = bench.end();
    assert_eq!(happened[..2], ["sat-out", "admitted-by-hand"], "{happened:?}");
}

/// Slow and well by turns, so that a busy machine that misses one time meets the next.
#[test]
fn drive_that_is_well_again_is_read_again_by_itself() {
    let bench = Bench::new("&periodic=20s/8s/20/0s");
    bench.wait_for("sat-out");
    bench.wait_for("admitted");
    let happened = bench.end();
    assert_eq!(happened[..2], ["sat-out", "admitted"], "{happened:?}");
}
