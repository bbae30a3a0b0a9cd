//! Clients that do what no client should, many of them, and an ordinary one among them whose data stays right.
//!
//! libnbd with its checks off sends what its makers would not; a program of our own sends what libnbd has no way to; two
//! hundred clients are there at once; some ask for much and read nothing. What the server holds in memory meanwhile is
//! bounded by what `docs/nbd.md` and `docs/array.md` say.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use levelhead_block::Durability;
use levelhead_nbd::BYTES_MAX;
use levelhead_stats::Streams;
use levelhead_testkit::{PYTHON, python_has};
use levelhead_units::Bytes;

use crate::support::{PATIENCE, Serving, Shelf, assert_same, connect, end, levelhead, random};

const DRIVE: u64 = 32 << 20;

/// The front of the export is the ordinary client's; the others write behind it.
const OWN: u64 = 8 << 20;

/// Clients at once.
const CROWD: usize = 200;

/// What the array may hold of clients' data, and stripes around it.
const ARRAY_MAX: u64 = 2 * (64 << 20);

/// What the program takes by itself, with threads and buffers for this many clients.
const PROGRAM_MAX: u64 = 128 << 20;

/// Requests that libnbd does not check: each is answered, or ends the connection.
const UNCHECKED: &str = r#"
import nbd, random, sys
uri, own, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
rng = random.Random(seed)
def connect():
    h = nbd.NBD()
    h.set_strict_mode(0)
    h.set_uri_allow_local_file(True)
    h.connect_uri(uri)
    return h
h = connect()
size = h.get_size()
refused = ended = done = 0
for _ in range(count):
    offset = rng.choice([own, own + 1, own + 511, size - 4097, size - 512, size - 1, size, size + 1, 2 * size,
        (1 << 63) - 1, 1 << 63, (1 << 64) - 4096, (1 << 64) - 1, rng.randrange(own, size)])
    length = rng.choice([0, 1, 511, 513, 4095, 4096, 4097, 65536, rng.randrange(1 << 20)])
    huge = rng.choice([(32 << 20) + 1, 1 << 30, (1 << 31) - 1, length])
    # libnbd refuses by itself what has no room in its own memory, so that a long write is a rare one.
    long = rng.choice([length] * 60 + [(32 << 20) + 1, (64 << 20) + 1])
    flags = rng.choice([0, 0, 0, 1, 2, 4, 8, 16, 32, 1 << 15, 0xffff, rng.randrange(1 << 16)])
    try:
        rng.choice([
            lambda: h.pread(huge if huge < 1 << 26 else length, offset, flags),
            lambda: h.pwrite(bytearray(long), offset, flags),
            lambda: h.zero(rng.choice([length, huge]), offset, flags),
            lambda: h.trim(huge, offset, flags),
            lambda: h.cache(huge, offset, flags),
            lambda: h.flush(flags),
            lambda: h.block_status(huge, offset, lambda *_: 0, flags),
        ])()
        done += 1
    except nbd.Error:
        refused += 1
        if not h.aio_is_ready():
            ended += 1
            h = connect()
print(done, refused, ended)
"#;

#[test]
#[ignore = "a client that reads nothing is given a minute or two: cargo xtask soak clients"]
fn soak_clients_that_do_what_none_should_leave_the_server_alive_and_others_data_right() {
    run(&Amount { processes: 4, requests: 1_000, raw: 400, greedy: 60, staying: 6 });
}

#[test]
fn clients_that_do_what_none_should_leave_the_server_alive_and_others_data_right() {
    // Three clients that read nothing do not hold all the memory that there is for requests.
    run(&Amount { processes: 1, requests: 150, raw: 30, greedy: 3, staying: 3 });
}

struct Amount {
    /// Processes with libnbd on each of two exports, and the requests of each.
    processes: u64,
    requests: u64,
    /// Connections of our own that send requests of any bytes.
    raw: u64,
    /// Clients that read nothing, and then go.
    greedy: usize,
    /// Clients that read nothing and do not go: the server sends those away that others wait for.
    staying: usize,
}

fn run(amount: &Amount) {
    if !python_has("nbd", "python3-libnbd") {
        return;
    }
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let connections = (CROWD + 100).to_string();
    let socket = shelf.path("nbd.sock");
    let names = ["--nbd", &socket, "--export", "disk", "--export", "look,ro"];
    let bounds = ["--max-connections", &connections, "--handshake-limit", "5s"];
    let options = [&names[..], &bounds].concat();
    let serving = shelf.serve_with(&drives, &options);
    let (is_over, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let ordinary = scope.spawn(|| ordinary(&socket, &is_over, &rounds));
        let told = unchecked(&serving, amount);
        let ended = (0..amount.raw).filter(|&seed| raw(&socket, seed)).count();
        crowd(&socket);
        let all: Vec<UnixStream> = (0..amount.greedy).map(|_| greedy(&socket)).collect();
        thread::sleep(Duration::from_secs(3)); // Time to take whatever the server takes.
        drop(all);
        let goes_on = || {
            let before = rounds.load(Ordering::SeqCst);
            let is_further = || rounds.load(Ordering::SeqCst) > before + 2;
            let begun = Instant::now();
            while !is_further() && !ordinary.is_finished() {
                assert!(begun.elapsed() < 2 * PATIENCE, "the ordinary client is kept waiting");
                thread::sleep(Duration::from_millis(20));
            }
        };
        goes_on();
        let all: Vec<UnixStream> = (0..amount.staying).map(|_| greedy(&socket)).collect();
        goes_on();
        drop(all);
        is_over.store(true, Ordering::SeqCst);
        ordinary.join().unwrap();
        eprintln!(
            "soak: libnbd: {told}; {} raw clients, {ended} ended by the server; {CROWD} at once; {} that read \
             nothing; the ordinary client: {} rounds",
            amount.raw,
            amount.greedy + amount.staying,
            rounds.load(Ordering::SeqCst),
        );
    });
    let (peak, bound) = (peak(&serving), BYTES_MAX as u64 + ARRAY_MAX + PROGRAM_MAX);
    eprintln!("soak: at most {} MiB in memory, of {} MiB", peak >> 20, bound >> 20);
    assert!(peak < bound, "{} MiB in memory, more than {}", peak >> 20, bound >> 20);
    assert_eq!(serving.status()["state"], "whole");
    serving.stop();
    levelhead(&[&["array", "check"][..], &crate::support::refs(&drives)].concat()).good();
}

/// Writes and reads the front of the export, over and over.
fn ordinary(socket: &str, is_over: &AtomicBool, rounds: &AtomicU64) {
    let client = connect(socket);
    let mut model = vec![0; OWN as usize];
    let mut rng = Streams::new(11).stream("ordinary");
    let mut all = vec![0; OWN as usize];
    while !is_over.load(Ordering::SeqCst) {
        for _ in 0..8 {
            let len = 1 + rng.below(100_000) as usize;
            let at = rng.below(OWN - len as u64) as usize;
            rng.fill(&mut model[at..at + len]);
            let bytes = &model[at..at + len];
            client.write_at(Bytes::new(at as u64), bytes, Durability::Cached).unwrap();
        }
        client.read_at(Bytes::new(0), &mut all).unwrap();
        assert_same(&all, &model);
        rounds.fetch_add(1, Ordering::SeqCst);
    }
}

/// Runs libnbd with its checks off; how many requests were done, refused, and ended a connection.
fn unchecked(serving: &Serving, amount: &Amount) -> String {
    let uri = |name: &str| serving.uri().replacen("/disk", name, 1);
    let mut running = Vec::new();
    for seed in 0..amount.processes {
        for name in ["/disk", "/look"] {
            let mut command = Command::new(PYTHON);
            let numbers = [OWN, seed, amount.requests].map(|number| number.to_string());
            command.args(["-c", UNCHECKED, &uri(name)]).args(numbers);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            running.push(command.spawn().unwrap());
        }
    }
    let mut sums = [0; 3];
    for child in running {
        let out = end(child, "libnbd").good();
        for (sum, word) in sums.iter_mut().zip(out.split_whitespace()) {
            *sum += word.parse::<u64>().unwrap();
        }
    }
    assert!(sums[1] > 0, "nothing was refused");
    format!("{} requests done, {} refused, {} ended the connection", sums[0], sums[1], sums[2])
}

/// A connection past the handshake, to the export where nothing may be written or to the other one.
fn handshake(socket: &str, export: &str) -> UnixStream {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.read_exact(&mut [0; 18]).unwrap();
    stream.write_all(&3_u32.to_be_bytes()).unwrap();
    let mut option = b"IHAVEOPT\0\0\0\x01".to_vec();
    option.extend((export.len() as u32).to_be_bytes());
    option.extend(export.as_bytes());
    stream.write_all(&option).unwrap();
    stream.read_exact(&mut [0; 10]).unwrap();
    stream
}

/// The head of a request.
fn head(flags: u16, kind: u16, offset: u64, length: u32) -> Vec<u8> {
    let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend([7; 8]);
    bytes.extend(offset.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes
}

/// Sends heads of any kind, flags, place and length, and bytes that are no heads; whether the server closed the
/// connection. Nothing of it can change the front of the export.
fn raw(socket: &str, seed: u64) -> bool {
    let mut rng = Streams::new(seed).stream("raw");
    let export = if rng.below(4) == 0 { "look" } else { "disk" };
    let mut stream = handshake(socket, export);
    let mut reader = stream.try_clone().unwrap();
    let drain = thread::spawn(move || drop(std::io::copy(&mut reader, &mut std::io::sink())));
    let is_closed = (0..40).any(|_| {
        let kind = [0, 1, 3, 4, 5, 6, 7, 8, 9, rng.below(1 << 16) as u16][rng.below(10) as usize];
        let flags = [0, 1, 0, rng.below(1 << 16) as u16][rng.below(4) as usize];
        let offset = [OWN, OWN + rng.below(1 << 20), u64::MAX - rng.below(1 << 20), 1 << 63];
        let offset = offset[rng.below(4) as usize];
        let length = [0, 1, rng.below(70_000) as u32, u32::MAX][rng.below(4) as usize];
        let mut bytes = head(flags, kind, offset, length);
        if kind == 1 {
            bytes.resize(bytes.len() + length.min(70_000) as usize, 0x5a);
        }
        if rng.below(30) == 0 {
            // Not a head, whatever follows.
            bytes = vec![0xEE; 28 + rng.below(100) as usize];
        }
        stream.write_all(&bytes).is_err()
    });
    // A client that just goes.
    let _ = stream.shutdown(std::net::Shutdown::Both);
    drain.join().unwrap();
    is_closed
}

/// All at once, each with a sector of its own that it writes and reads.
fn crowd(socket: &str) {
    let mut clients: Vec<UnixStream> = (0..CROWD).map(|_| handshake(socket, "disk")).collect();
    let place = |at: usize| OWN + (16 << 20) + at as u64 * 4096;
    for (at, client) in clients.iter_mut().enumerate() {
        client.write_all(&head(0, 1, place(at), 4096)).unwrap();
        client.write_all(&random(4096, at as u64)).unwrap();
    }
    for (at, client) in clients.iter_mut().enumerate() {
        let mut answer = [0; 16];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(answer[4..8], [0; 4], "client {at}: {answer:x?}");
        client.write_all(&head(0, 0, place(at), 4096)).unwrap();
    }
    for (at, client) in clients.iter_mut().enumerate() {
        let mut answer = [0; 16 + 4096];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(answer[4..8], [0; 4], "client {at}");
        assert_same(&answer[16..], &random(4096, at as u64));
    }
}

/// A client that asks for 128 MiB and reads nothing of it.
fn greedy(socket: &str) -> UnixStream {
    let mut stream = handshake(socket, "disk");
    for _ in 0..128 {
        stream.write_all(&head(0, 0, OWN, 1 << 20)).unwrap();
    }
    stream
}

/// The most memory that the server has had, in bytes.
fn peak(serving: &Serving) -> u64 {
    let path = format!("/proc/{}/status", serving.pid().as_raw_nonzero());
    let status = std::fs::read_to_string(path).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() * 1024
}
