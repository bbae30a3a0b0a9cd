//! The client inside the virtual machine: reads at random places in an open loop.
//!
//! Reads are due as a Poisson process, whatever became of the reads before. Times and places hang on the
//! seed alone, so that two systems are asked for the same places at the same times. Each of [`THREADS`] threads takes the next read, waits until it is due, reads and takes down how
//! long it took since it was *due*. The devices are used in turn.
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

/// What is to be read.
#[derive(Debug, PartialEq, Eq)]
struct Load {
    devices: Vec<String>,
    read_size: u64,
    /// Mean time from one read to the next.
    period: Nanos,
    length: Nanos,
    /// Reads begin below this byte.
    span: u64,
    seed: u64,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Read {
    /// After the start.
    due: Duration,
    /// The byte at which it begins.
    place: u64,
}

/// What became of one read.
#[derive(Clone, Copy)]
enum End {
    Answered { latency: Duration, wake: Duration },
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
    /// From `READ_SIZE PERIOD_US LENGTH_US SPAN SEED DEVICE..`.
    fn parse(words: &[String]) -> Result<Self, String> {
        let [read_size, period, length, span, seed, devices @ ..] = words else {
            return Err("usage: READ_SIZE PERIOD_US LENGTH_US SPAN SEED DEVICE..".to_owned());
        };
        let number = |text: &String| {
            text.parse::<u64>()
                .map_err(|_| format!("'{text}' is no number of bytes or microseconds"))
        };
        let load = Self {
            devices: devices.to_vec(),
            read_size: number(read_size)?,
            period: Nanos::from_micros(number(period)?),
            length: Nanos::from_micros(number(length)?),
            span: number(span)?,
            seed: number(seed)?,
        };
        if load.devices.is_empty() {
            return Err("no device to read".to_owned());
        }
        let whole = |bytes: u64| bytes > 0 && bytes.is_multiple_of(SECTOR_SIZE);
        if !whole(load.read_size) || !whole(load.span) {
            return Err(format!("sizes must be whole sectors of {SECTOR_SIZE} bytes"));
        }
        Ok(load)
    }

    /// The reads, in the order in which they are due.
    fn reads(&self) -> Vec<Read> {
        let streams = Streams::new(self.seed);
        let (mut gaps, mut places) = (streams.stream("md/gaps"), streams.stream("md/places"));
        let sectors = self.span / SECTOR_SIZE;
        let mut reads = Vec::new();
        let mut due = gaps.exponential(self.period);
        while due < self.length {
            reads.push(Read { due: due.into(), place: places.below(sectors) * SECTOR_SIZE });
            due += gaps.exponential(self.period);
        }
        reads
    }
}

fn run(load: Load) -> io::Result<()> {
    let open = |path: &String| OpenOptions::new().read(true).custom_flags(O_DIRECT).open(path);
    let files: Vec<File> = load.devices.iter().map(open).collect::<io::Result<_>>()?;
    let reads = load.reads();
    let shared = Arc::new(Shared {
        ends: Mutex::new(vec![None; reads.len()]),
        reads,
        files,
        next: AtomicUsize::new(0),
        // Until then the threads come up.
        start: Instant::now() + Duration::from_secs(1),
        load,
    });
    let (sender, running) = mpsc::channel::<()>();
    for _ in 0..THREADS {
        let (shared, sender) = (Arc::clone(&shared), sender.clone());
        let work = move || {
            shared.work();
            drop(sender);
        };
        thread::Builder::new().stack_size(STACK_SIZE).spawn(work)?;
    }
    drop(sender);
    let end = shared.start + Duration::from(shared.load.length);
    // Threads send nothing; the channel ends with the last of them.
    match running.recv_timeout(end.saturating_duration_since(Instant::now())) {
        Ok(()) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
    }
    let ends = shared.ends.lock().unwrap_or_else(PoisonError::into_inner).clone();
    io::stdout().write_all(told(&shared.reads, &ends, shared.load.length.into()).as_bytes())?;
    io::stdout().flush()
}

/// What all threads see.
struct Shared {
    load: Load,
    reads: Vec<Read>,
    files: Vec<File>,
    /// The read that the next free thread takes.
    next: AtomicUsize,
    ends: Mutex<Vec<Option<End>>>,
    start: Instant,
}

impl Shared {
    /// Reads until no read is left.
    fn work(&self) {
        let read_size = usize::try_from(self.load.read_size).expect("it fits into memory");
        let mut memory = vec![0; read_size + SECTOR_SIZE as usize];
        let offset = memory.as_ptr().align_offset(SECTOR_SIZE as usize);
        let buf = &mut memory[offset..offset + read_size];
        loop {
            let idx = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(&Read { due, place }) = self.reads.get(idx) else { return };
            let due = self.start + due;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let wake = due.elapsed();
            let read = self.files[idx % self.files.len()].read_exact_at(buf, place);
            let end = match read {
                Ok(()) => End::Answered { latency: due.elapsed(), wake },
                Err(_) => End::Failed,
            };
            self.ends.lock().unwrap_or_else(PoisonError::into_inner)[idx] = Some(end);
        }
    }
}

/// The lines about what became of each read of a run.
fn told(reads: &[Read], ends: &[Option<End>], length: Duration) -> String {
    let mut text = format!("begin {}\n", reads.len());
    for (read, end) in reads.iter().zip(ends) {
        let (due, age) = (read.due.as_micros(), length - read.due);
        let line = match *end {
            Some(End::Answered { latency, wake }) if latency <= age => {
                writeln!(text, "read {due} {} {}", latency.as_micros(), wake.as_micros())
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
        assert_eq!((load.period, load.length), (Nanos::from_millis(8), Nanos::from_millis(8000)));
        assert_eq!((load.read_size, load.span, load.seed), (40960, 1 << 20, 7));
        assert_eq!(load.devices, ["/dev/md0"]);
    }

    #[test]
    fn a_load_that_cannot_be_read_is_refused() {
        for text in ["", "40960 8000 9 1048576 7", "40961 8000 9 1048576 7 d", "x 8000 9 4096 7 d"]
        {
            assert!(Load::parse(&words(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn reads_hang_on_the_seed_alone_and_lie_within_the_span() {
        let mut load = load();
        let reads = load.reads();
        assert!(reads.iter().all(|read| read.place.is_multiple_of(4096) && read.place < load.span));
        assert!(reads.windows(2).all(|pair| pair[0].due <= pair[1].due));
        // 8 s, a read every 8 ms, 256 sectors: both halves get their share.
        assert!((900..1100).contains(&reads.len()), "{}", reads.len());
        let low = reads.iter().filter(|read| read.place < load.span / 2).count();
        assert!((400..600).contains(&low), "{low}");
        assert_eq!(reads, load.reads());
        load.seed += 1;
        assert_ne!(reads, load.reads());
    }

    #[test]
    fn a_read_without_an_answer_is_told_with_its_age_at_the_end() {
        let read = |ms| Read { due: Duration::from_millis(ms), place: 0 };
        let reads = [read(0), read(8), read(16)];
        let answered = |ms: u64| {
            let (latency, wake) = (Duration::from_millis(ms), Duration::from_micros(50));
            Some(End::Answered { latency, wake })
        };
        let length = Duration::from_millis(24);
        let text = told(&reads, &[answered(5), Some(End::Failed), None], length);
        assert_eq!(text, "begin 3\nread 0 5000 50\nerror 8000\nwaits 16000 8000\nend\n");
        // Answered 20 ms after it was due, which is 4 ms after the end.
        let text = told(&reads, &[answered(5), answered(20), None], length);
        assert_eq!(text, "begin 3\nread 0 5000 50\nwaits 8000 16000\nwaits 16000 8000\nend\n");
    }
}
