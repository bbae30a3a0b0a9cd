//! The client inside the virtual machine: reads at random places in an open loop, or reads or writes in a closed one.
//!
//! In an open loop reads are due as a Poisson process, whatever became of the reads before. Times and places hang on the
//! seed alone, so that two systems are asked for the same places at the same times. Each of [`THREADS`] threads takes the next read, waits until it is due, reads and takes down how
//! long it took since it was *due*. The devices are used in turn. In a closed loop each thread sends its next request when the previous one is
//! answered, until the given number of requests is sent; DUE is then the time when it was sent.
//!
//! Prints to standard output when the run's length is over, times in microseconds:
//!
//! ```text
//! begin COUNT
//! read DUE LATENCY WAKE     answered; DUE: after the start; WAKE: from then until it was sent
//! error DUE                 failed
//! waits DUE AGE             without an answer when the run was over
//! end
//! ```
//!
//! A read that is answered when the run is over already counts as one that waits, with its age then.

use std::env;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::process::{self, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use levelhead_stats::Streams;
use levelhead_units::Nanos;

/// Reads in flight at most. One that is due while all threads wait is late, and counts from when it
/// was due.
const THREADS: usize = 256;

const STACK_SIZE: usize = 64 << 10;

/// `O_DIRECT` of Linux on x86-64.
const O_DIRECT: i32 = 0o40_000;

/// What places are multiples of, and memory is aligned to.
const SECTOR_SIZE: u64 = 4096;

/// `O_DSYNC` of Linux on x86-64.
const O_DSYNC: i32 = 0o10_000;

/// What is to be read or written.
#[derive(Debug, PartialEq, Eq)]
struct Load {
    devices: Vec<String>,
    kind: Kind,
    request_size: u64,
    pace: Pace,
    /// Requests begin below this byte.
    span: u64,
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    /// Answered once it is durable.
    DurableWrite,
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// `period`: mean time from one request to the next.
    Open { period: Nanos, length: Nanos },
    /// As soon as fewer than `depth` are in flight.
    Closed { depth: usize, count: usize },
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request {
    /// After the start; at once in a closed loop.
    due: Duration,
    /// The byte at which it begins.
    place: u64,
}

/// What became of one request.
#[derive(Clone, Copy)]
enum End {
    Answered { due: Duration, latency: Duration, wake: Duration },
    Failed,
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let result = Load::parse(&words).and_then(|load| run(load).map_err(|error| error.to_string()));
    match result {
        // Threads may still wait for a device that answers nothing any more.
        Ok(()) => process::exit(0),
        Err(error) => {
            println!("trouble {error}");
            ExitCode::FAILURE
        }
    }
}

impl Load {
    /// From `READ_SIZE PERIOD_US LENGTH_US SPAN SEED DEVICE..`, or `closed KIND DEPTH COUNT SPAN SEED DEVICE..`.
    fn parse(words: &[String]) -> Result<Self, String> {
        let number = |text: &String| {
            text.parse::<u64>().map_err(|_| format!("expected a number, got '{text}'"))
        };
        let [first, second, third, rest @ ..] = words else {
            return Err(USAGE.to_owned());
        };
        let (kind, request_size, pace, rest) = if first == "closed" {
            let [count, rest @ ..] = rest else { return Err(USAGE.to_owned()) };
            let whole = |text| number(text).map(|number| number as usize);
            let pace = Pace::Closed { depth: whole(third)?, count: whole(count)? };
            (Kind::parse(second)?, SECTOR_SIZE, pace, rest)
        } else {
            let (period, length) = (number(second)?, number(third)?);
            let (period, length) = (Nanos::from_micros(period), Nanos::from_micros(length));
            (Kind::Read, number(first)?, Pace::Open { period, length }, rest)
        };
        let [span, seed, devices @ ..] = rest else { return Err(USAGE.to_owned()) };
        let (span, seed) = (number(span)?, number(seed)?);
        let load = Self { devices: devices.to_vec(), kind, request_size, pace, span, seed };
        if load.devices.is_empty() {
            return Err("no device to read".to_owned());
        }
        let whole = |bytes: u64| bytes > 0 && bytes.is_multiple_of(SECTOR_SIZE);
        if !whole(load.request_size) || !whole(load.span) {
            return Err(format!("sizes must be whole sectors of {SECTOR_SIZE} bytes"));
        }
        Ok(load)
    }

    /// The requests, in the order in which they are due.
    fn requests(&self) -> Vec<Request> {
        let streams = Streams::new(self.seed);
        let mut gaps = streams.stream("md/gaps");
        let mut places = streams.stream(self.kind.places());
        let sectors = self.span / SECTOR_SIZE;
        let mut requests = Vec::new();
        let mut request = |due| Request { due, place: places.below(sectors) * SECTOR_SIZE };
        match self.pace {
            Pace::Open { period, length } => {
                let mut due = gaps.exponential(period);
                while due < length {
                    requests.push(request(due.into()));
                    due += gaps.exponential(period);
                }
            }
            Pace::Closed { count, .. } => {
                requests.extend((0..count).map(|_| request(Duration::ZERO)));
            }
        }
        requests
    }

    fn threads(&self) -> usize {
        match self.pace {
            Pace::Open { .. } => THREADS,
            Pace::Closed { depth, .. } => depth,
        }
    }

    /// Length of the run, which else ends with the last answer.
    fn length(&self) -> Option<Duration> {
        match self.pace {
            Pace::Open { length, .. } => Some(length.into()),
            Pace::Closed { .. } => None,
        }
    }
}

const USAGE: &str = "usage: READ_SIZE PERIOD_US LENGTH_US SPAN SEED DEVICE.., \
                     or closed KIND DEPTH COUNT SPAN SEED DEVICE..";

impl Kind {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "read" => Ok(Self::Read),
            "write" => Ok(Self::Write),
            "durable-write" => Ok(Self::DurableWrite),
            _ => Err(format!("expected read, write or durable-write, got '{text}'")),
        }
    }

    /// Name of the stream that places are drawn from. Loads have different places, so that none finds in a cache what another read.
    fn places(self) -> &'static str {
        match self {
            Self::Read => "md/places",
            Self::Write => "md/places/write",
            Self::DurableWrite => "md/places/durable-write",
        }
    }

    fn open(self, path: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let flags = match self {
            Self::Read | Self::Write => O_DIRECT,
            Self::DurableWrite => O_DIRECT | O_DSYNC,
        };
        options.read(true).write(self != Self::Read).custom_flags(flags).open(path)
    }
}

fn run(load: Load) -> io::Result<()> {
    let files = load.devices.iter().map(|path| load.kind.open(path));
    let files: Vec<File> = files.collect::<io::Result<_>>()?;
    let requests = load.requests();
    let shared = Arc::new(Shared {
        ends: Mutex::new(vec![None; requests.len()]),
        requests,
        files,
        next: AtomicUsize::new(0),
        // Until then the threads come up.
        start: Instant::now() + Duration::from_secs(1),
        load,
    });
    let (sender, running) = mpsc::channel::<()>();
    for _ in 0..shared.load.threads() {
        let (shared, sender) = (Arc::clone(&shared), sender.clone());
        let work = move || {
            shared.work();
            drop(sender);
        };
        thread::Builder::new().stack_size(STACK_SIZE).spawn(work)?;
    }
    drop(sender);
    let length = shared.load.length();
    // Threads send nothing; the channel ends with the last of them.
    let left = length.map_or(Duration::MAX, |length| {
        (shared.start + length).saturating_duration_since(Instant::now())
    });
    match running.recv_timeout(left) {
        Ok(()) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
    }
    let ends = shared.ends.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let text = told(&shared.requests, &ends, length.unwrap_or(Duration::MAX));
    io::stdout().write_all(text.as_bytes())?;
    io::stdout().flush()
}

/// What all threads see.
struct Shared {
    load: Load,
    requests: Vec<Request>,
    files: Vec<File>,
    /// The request that the next free thread takes.
    next: AtomicUsize,
    ends: Mutex<Vec<Option<End>>>,
    start: Instant,
}

impl Shared {
    /// Sends requests until none is left.
    fn work(&self) {
        let size = usize::try_from(self.load.request_size).expect("it fits into memory");
        let mut memory = vec![0; size + SECTOR_SIZE as usize];
        let offset = memory.as_ptr().align_offset(SECTOR_SIZE as usize);
        let buf = &mut memory[offset..offset + size];
        loop {
            let idx = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(&Request { due, place }) = self.requests.get(idx) else { return };
            let due = match self.load.pace {
                Pace::Open { .. } => due,
                Pace::Closed { .. } => Instant::now().saturating_duration_since(self.start),
            };
            let due_at = self.start + due;
            thread::sleep(due_at.saturating_duration_since(Instant::now()));
            let wake = due_at.elapsed();
            let file = &self.files[idx % self.files.len()];
            let ended = match self.load.kind {
                Kind::Read => file.read_exact_at(buf, place),
                Kind::Write | Kind::DurableWrite => {
                    // Other bytes each time, and no zeroes.
                    buf.fill(u8::try_from(1 + idx % 255).expect("it is below 256"));
                    file.write_all_at(buf, place)
                }
            };
            let end = match ended {
                Ok(()) => End::Answered { due, latency: due_at.elapsed(), wake },
                Err(_) => End::Failed,
            };
            self.ends.lock().unwrap_or_else(PoisonError::into_inner)[idx] = Some(end);
        }
    }
}

/// The lines about what became of each request of a run.
fn told(requests: &[Request], ends: &[Option<End>], length: Duration) -> String {
    let mut text = format!("begin {}\n", requests.len());
    for (request, end) in requests.iter().zip(ends) {
        let (due, age) = (request.due.as_micros(), length - request.due);
        let line = match *end {
            Some(End::Answered { due, latency, wake }) if latency <= age => {
                let (due, latency) = (due.as_micros(), latency.as_micros());
                writeln!(text, "read {due} {latency} {}", wake.as_micros())
            }
            Some(End::Failed) => writeln!(text, "error {due}"),
            // Answered just after the end, or not at all.
            Some(End::Answered { .. }) | None => writeln!(text, "waits {due} {}", age.as_micros()),
        };
        line.expect("text takes it");
    }
    text.push_str("end\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn load() -> Load {
        Load::parse(&words("40960 8000 8000000 1048576 7 /dev/md0")).expect("it is valid")
    }

    #[test]
    fn a_load_is_read_from_its_words() {
        let load = load();
        let (period, length) = (Nanos::from_millis(8), Nanos::from_millis(8000));
        assert_eq!((load.kind, load.pace), (Kind::Read, Pace::Open { period, length }));
        assert_eq!((load.request_size, load.span, load.seed), (40960, 1 << 20, 7));
        assert_eq!(load.devices, ["/dev/md0"]);
    }

    #[test]
    fn a_closed_loop_has_as_many_requests_as_asked_for_and_ends_with_the_last() {
        let load = Load::parse(&words("closed durable-write 4 100 1048576 7 /dev/md0"));
        let load = load.expect("it is valid");
        assert_eq!((load.kind, load.request_size), (Kind::DurableWrite, 4096));
        assert_eq!((load.threads(), load.requests().len(), load.length()), (4, 100, None));
        let sent = Some(End::Answered {
            due: Duration::from_millis(3),
            latency: Duration::from_millis(5),
            wake: Duration::ZERO,
        });
        let text = told(&load.requests()[..1], &[sent], Duration::MAX);
        assert_eq!(text, "begin 1\nread 3000 5000 0\nend\n");
    }

    #[test]
    fn a_load_that_cannot_be_read_is_refused() {
        for text in [
            "",
            "40960 8000 9 1048576 7",
            "40961 8000 9 1048576 7 d",
            "x 8000 9 4096 7 d",
            "closed trim 4 100 4096 7 d",
            "closed read 4 100 4096 7",
        ] {
            assert!(Load::parse(&words(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn reads_hang_on_the_seed_alone_and_lie_within_the_span() {
        let mut load = load();
        let reads = load.requests();
        assert!(reads.iter().all(|read| read.place.is_multiple_of(4096) && read.place < load.span));
        assert!(reads.windows(2).all(|pair| pair[0].due <= pair[1].due));
        // 8 s, a read every 8 ms, 256 sectors: both halves get their share.
        assert!((900..1100).contains(&reads.len()), "{}", reads.len());
        let low = reads.iter().filter(|read| read.place < load.span / 2).count();
        assert!((400..600).contains(&low), "{low}");
        assert_eq!(reads, load.requests());
        load.seed += 1;
        assert_ne!(reads, load.requests());
    }

    #[test]
    fn a_read_without_an_answer_is_told_with_its_age_at_the_end() {
        let ms = Duration::from_millis;
        let reads = [0, 8, 16].map(|due| Request { due: ms(due), place: 0 });
        let answered = |due, latency| {
            let wake = Duration::from_micros(50);
            Some(End::Answered { due: ms(due), latency: ms(latency), wake })
        };
        let length = ms(24);
        let text = told(&reads, &[answered(0, 5), Some(End::Failed), None], length);
        assert_eq!(text, "begin 3\nread 0 5000 50\nerror 8000\nwaits 16000 8000\nend\n");
        // Answered 20 ms after it was due, which is 4 ms after the end.
        let text = told(&reads, &[answered(0, 5), answered(8, 20), None], length);
        assert_eq!(text, "begin 3\nread 0 5000 50\nwaits 8000 16000\nwaits 16000 8000\nend\n");
    }
}
