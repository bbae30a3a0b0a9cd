//! Servers that are killed under fio and under clients that keep book, started again, and verified.
//!
//! An export has three regions. Before each kill fio fills the first one from a new seed, to the end and flushed;
//! afterwards fio finds all of it again, by checksums and by the seed. Over the second one fio writes when the server is
//! killed, and logs what was answered; every block of it says which fio wrote it, and where. In the third one two clients
//! keep book of their own.
//!
//! Every other server reads back what it has written, and every other one of these is killed when it has read back what fio
//! has flushed. The drives store everything, so that no server must ever find that anything was not stored.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::{Duration, Instant};

use levelhead_nbd::Client;
use levelhead_units::Bytes;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::book::Book;
use crate::support::{
    Ended, PATIENCE, Serving, Shelf, connect, end, is_there, levelhead, refs, wait_until,
};

const DRIVE: u64 = 16 << 20;

/// Bytes of the first region, and of the second.
const SETTLED: u64 = 2 << 20;
const FLIGHT: u64 = 4 << 20;

/// A block of the second region.
const BLOCK: usize = 4096;

/// The clients of the third region, and sectors of each.
const WRITERS: usize = 2;
const PART: usize = 700;

const WRITERS_FIRST: usize = (SETTLED + FLIGHT) as usize / 4096;

/// All three regions.
const ALL: usize = (WRITERS_FIRST + WRITERS * PART) * 4096;

/// An array, and drives that it does without at the end.
struct Layout {
    shape: &'static str,
    drives: usize,
    lost: &'static [usize],
}

const LAYOUTS: [Layout; 4] = [
    Layout { shape: "raid5:4+1,chunk=16KiB", drives: 5, lost: &[1] },
    Layout { shape: "raid6:4+2", drives: 6, lost: &[0, 3] },
    Layout { shape: "raid1:2", drives: 2, lost: &[0] },
    Layout { shape: "eraid:5+1,e=2,chunk=8KiB", drives: 6, lost: &[4] },
];

/// `KILLS` says how often the server of each layout is killed.
#[test]
#[ignore = "a hundred kills of each layout take a quarter of an hour: cargo xtask soak fio"]
fn soak_fio_finds_everything_again_after_a_hundred_kills_of_each_layout() {
    let kills = std::env::var("KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(100);
    assert!(is_there("fio"), "fio is not installed");
    for layout in &LAYOUTS {
        run(layout, kills);
    }
}

#[test]
fn fio_finds_everything_again_after_servers_were_killed_under_it() {
    if is_there("fio") {
        run(&LAYOUTS[1], 2);
    }
}

fn run(layout: &Layout, kills: u64) {
    let shelf = Shelf::new();
    let mut drives = shelf.drives(layout.drives, DRIVE);
    let create = ["array", "create", layout.shape, "--assume-clean"];
    levelhead(&[&create[..], &refs(&drives)].concat()).good();
    let mut ledger = Ledger::new();
    for round in 0..kills {
        let serving = serve(&shelf, &drives, &["--verify-writes", VERIFY[round as usize % 2]]);
        ledger.check(&shelf, &serving, &format!("{}, kill {round}", layout.shape));
        ledger.write_and_kill(&shelf, serving, round);
    }
    for &lost in layout.lost.iter().rev() {
        drives.remove(lost);
    }
    let serving = serve(&shelf, &drives, &["--degraded", "--verify-writes", VERIFY[1]]);
    ledger.check(&shelf, &serving, &format!("{}, without drives", layout.shape));
    ledger.read_back += read_back(status(serving.control()));
    serving.stop();
    let Ledger { verified, answered, books, read_back, .. } = ledger;
    assert!(read_back > 0 || kills < 2, "{}: nothing was read back", layout.shape);
    let booked: u64 = books.iter().map(Book::writes).sum();
    eprintln!(
        "soak: {}: {kills} kills under {answered} answered writes of fio and {booked} of others; {} MiB \
         verified by fio, {} MiB by what was answered; {read_back} writes to drives read back by the servers",
        layout.shape,
        verified.by_fio >> 20,
        verified.by_book >> 20,
    );
}

/// Whether a server reads back what it has written.
const VERIFY: [&str; 2] = ["off", "idle"];

fn serve(shelf: &Shelf, members: &[String], options: &[&str]) -> Serving {
    shelf.serve_with(members, &[&["--nbd", &shelf.path("nbd.sock")], options].concat())
}

fn status(control: &str) -> Ended {
    levelhead(&["array", "status", control, "--json"])
}

/// How many writes to drives a server has found stored, by its status; it must not have found any that was not.
fn read_back(status: Ended) -> u64 {
    let verify = &status.json()["verify"];
    if *verify == Value::Null {
        return 0;
    }
    let none = &json!(0);
    assert_eq!((&verify["found"], &verify["not_mended"]), (none, none), "{verify}");
    verify["verified"].as_u64().unwrap()
}

#[derive(Default)]
struct Verified {
    by_fio: u64,
    by_book: u64,
}

/// What the three regions should hold.
struct Ledger {
    /// What fio drew the first region from; none before it has.
    seed: Option<u64>,
    blocks: Vec<Block>,
    books: Vec<Book>,
    /// Writes to the second region that were answered.
    answered: u64,
    verified: Verified,
    /// Writes to drives that servers have read back.
    read_back: u64,
}

/// A block of the second region: the number of the fio that wrote it, 0 for none, and of one that may have.
#[derive(Clone, Copy, Default)]
struct Block {
    number: u64,
    maybe: u64,
}

impl Ledger {
    fn new() -> Self {
        let blocks = vec![Block::default(); FLIGHT as usize / BLOCK];
        let books = (0..WRITERS).map(|at| Book::new(WRITERS_FIRST + at * PART, PART)).collect();
        let verified = Verified::default();
        Self { seed: None, blocks, books, answered: 0, verified, read_back: 0 }
    }

    fn check(&mut self, shelf: &Shelf, serving: &Serving, context: &str) {
        if let Some(seed) = self.seed {
            let mut fio = fio(serving.uri(), "settled", seed);
            fio.args(SETTLED_ARGS).arg("--verify_only=1");
            let ended = end(fio.spawn().unwrap(), "fio");
            assert_eq!(ended.code, Some(0), "{context}: {ended:?}");
            self.verified.by_fio += SETTLED;
        }
        let mut bytes = vec![0; ALL];
        connect(&shelf.path("nbd.sock")).read_at(Bytes::new(0), &mut bytes).unwrap();
        for (at, block) in self.blocks.iter_mut().enumerate() {
            let offset = SETTLED as usize + at * BLOCK;
            let found = &bytes[offset..offset + BLOCK];
            let number = [block.number, block.maybe].into_iter();
            let number = number.rev().find(|&number| is_of(found, offset, number));
            let Some(number) = number else {
                let (number, maybe) = (block.number, block.maybe);
                let found = &found[..32];
                panic!("{context}: block at {offset}: neither {number} nor {maybe}: {found:x?}")
            };
            *block = Block { number, maybe: number };
        }
        for book in &mut self.books {
            book.check(&bytes, context);
        }
        self.verified.by_book += ALL as u64 - SETTLED;
    }

    /// Fills the first region, then writes to the other two until the server is killed.
    fn write_and_kill(&mut self, shelf: &Shelf, serving: Serving, round: u64) {
        let (seed, number) = (1 + round, 1 + round);
        let mut settle = fio(serving.uri(), "settled", seed);
        settle.args(SETTLED_ARGS).args(["--do_verify=0", "--end_fsync=1"]);
        end(settle.spawn().unwrap(), "fio").good();
        self.seed = Some(seed);
        if round % 4 == 1 {
            wait_until("everything is read back", || serving.status()["verify"]["waiting"] == 0);
        }
        let log = shelf.path("fio");
        let flight = in_flight(serving.uri(), number, &log);
        let answered = AtomicU64::new(0);
        let (has_written, status) = thread::scope(|scope| {
            for (at, book) in self.books.iter_mut().enumerate() {
                let (socket, seed) = (shelf.path("nbd.sock"), round * WRITERS as u64 + at as u64);
                let answered = &answered;
                scope.spawn(move || book.write_until_killed(&socket, seed, answered));
            }
            let client = connect(&shelf.path("nbd.sock"));
            let enough = 1 + 53 * (round as usize % 11);
            let begun = Instant::now();
            while blocks_of(&client, number) < enough && begun.elapsed() < PATIENCE {
                thread::sleep(Duration::from_millis(5));
            }
            let has_written = blocks_of(&client, number) >= enough;
            let control = serving.control();
            let status = (round % 2 == 1).then(|| scope.spawn(|| status(control)).join());
            // In any case, or the others would go on.
            serving.signal(Signal::KILL);
            (has_written, status)
        });
        self.read_back += status.map_or(0, |status| read_back(status.expect("it says how it is")));
        assert!(has_written, "fio has not written enough");
        assert_eq!(serving.end().code, None);
        let ended = end(flight, "fio");
        assert_ne!(ended.code, Some(0), "fio has not noticed that its server is gone: {ended:?}");
        self.take_log(&format!("{log}_clat.1.log"), number);
    }

    /// Takes down what fio was answered: a line each, of time, latency, direction, bytes, offset and priority.
    fn take_log(&mut self, path: &str, number: u64) {
        for block in &mut self.blocks {
            block.maybe = number;
        }
        for line in fs::read_to_string(path).unwrap().lines() {
            let offset = line.split(", ").nth(4).unwrap().parse::<u64>().unwrap();
            self.blocks[(offset - SETTLED) as usize / BLOCK].number = number;
            self.answered += 1;
        }
        fs::remove_file(path).unwrap();
    }
}

/// How many blocks of the second region that fio has written.
fn blocks_of(client: &Client, number: u64) -> usize {
    let mut bytes = vec![0; FLIGHT as usize];
    client.read_at(Bytes::new(SETTLED), &mut bytes).unwrap();
    let blocks = bytes.chunks_exact(BLOCK).enumerate();
    blocks.filter(|(at, block)| is_of(block, SETTLED as usize + at * BLOCK, number)).count()
}

/// Blocks of many sizes, each with a checksum, its place and what the seed gave for it.
const SETTLED_ARGS: [&str; 5] =
    ["--rw=randwrite", "--bsrange=4k-128k", "--iodepth=8", "--verify=crc32c", "--size=2m"];

fn fio(uri: &str, name: &str, seed: u64) -> Command {
    let mut command = Command::new("fio");
    command
        .args([&format!("--name={name}"), "--ioengine=nbd", &format!("--uri={uri}")])
        .args([&format!("--randseed={seed}"), "--verify_fatal=1", "--verify_state_save=0"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Writes blocks that say where they are and who wrote them, until the server is gone.
fn in_flight(uri: &str, number: u64, log: &str) -> Child {
    let mut command = fio(uri, "flight", number);
    command
        .args(["--rw=randwrite", "--bs=4k", "--iodepth=16", "--time_based", "--runtime=10m"])
        .args([format!("--offset={SETTLED}"), format!("--size={FLIGHT}")])
        .args(["--verify=pattern", "--do_verify=0"])
        .arg(format!("--verify_pattern=%o0x{:016x}", mark(number)))
        .args([format!("--write_lat_log={log}"), "--log_offset=1".to_owned()]);
    command.spawn().unwrap()
}

/// What stands for a number in a block: no byte of it is zero at the front.
fn mark(number: u64) -> u64 {
    number | 0xF10 << 52
}

/// Whether that fio wrote all of this block; or whether it is as it was made.
fn is_of(block: &[u8], offset: usize, number: u64) -> bool {
    if number == 0 {
        return block.iter().all(|&byte| byte == 0);
    }
    let mut word = [0; 16];
    word[..8].copy_from_slice(&(offset as u64).to_le_bytes());
    word[8..].copy_from_slice(&mark(number).to_be_bytes());
    block.chunks_exact(16).all(|found| found == word)
}
