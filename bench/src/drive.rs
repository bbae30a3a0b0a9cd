//! How many requests the drive's model takes in a second, alone and six of them in an array.
//!
//! | workload | what |
//! |---|---|
//! | `random-4k-low` | one `nearline-2tb`, random reads of 4 KiB, 20 a second (Poisson): it is idle when most of them come |
//! | `random-4k-ecc` | the same with `ecc=wander-2`: sectors fail as the table of the drive's own code says |
//! | `random-4k-sptf32` | the same drive with 32 such reads inside it all the time; each time the soonest is next |
//! | `array-hour-8k`, `array-hour-40k` | an hour of the load of `[ERAID]`: RAID-5 over six of them, chunks of 8 KiB, random reads, one every 8 ms (Poisson), 32 FIFO queues a drive; 1 % of sectors fail at first and a retry takes three rotations |
//!
//! Rates are requests a second of this thread's processor time, so that it costs nothing when others
//! use the processor too; making the requests of an array is not in them. An *event* is a time at which
//! the world does something: a request comes, or a drive has ended a command.

use levelhead_array::{Content, HostOrder, Policy};
use levelhead_block::{Command, Effort};
use levelhead_drive::{Drive, Ecc, Faults, Profile, Settings};
use levelhead_lab::{World, WorldSettings, replay};
use levelhead_report::{Column, Table};
use levelhead_stats::{Rng, Streams};
use levelhead_trace::Synthetic;
use levelhead_units::{Extent, Instant, Lba, Nanos, Ratio, Sectors};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

const MAKE: &str = "nearline-2tb";
const SEED: u64 = 7;
const QUEUE_DEPTH: u32 = 32;

/// Requests to one drive.
const REQUESTS: u64 = 1_000_000;
/// The same, where the cost of one is shown not to depend on their number.
const LENGTHS: [u64; 3] = [100_000, 1_000_000, 10_000_000];

/// Time between requests to one drive under low load.
const INTERVAL_LOW: Nanos = Nanos::from_millis(50);

/// The requests of an hour, one every 8 ms.
const REQUESTS_OF_HOUR: u64 = 3_600 * 125;

/// Something to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// One drive under low load.
    Low,
    /// The same with a retry table.
    Ecc,
    /// One drive that always has a full queue to choose from.
    Sptf32,
    /// An hour of an array with requests of 8 KiB.
    ArrayHour8k,
    /// An hour of an array with requests of 40 KiB.
    ArrayHour40k,
}

/// How many requests one drive gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lengths {
    /// A million.
    One,
    /// A hundred thousand, a million and ten millions, one after the other.
    Three,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Which [`Workload`].
    pub workload: &'static str,
    /// Requests sent and answered.
    pub requests: u64,
    /// Requests a second of processor time.
    pub requests_per_s: f64,
    /// Times at which something happened, a request.
    pub events_per_request: f64,
    /// Processor time of all of them.
    pub cpu_s: f64,
    /// How long they took in the drives' own time.
    pub simulated_s: f64,
}

/// What a run did, apart from how long it took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counts {
    /// Requests answered.
    pub requests: u64,
    /// Times at which something happened.
    pub events: u64,
    /// The time of the last answer.
    pub ended: Instant,
}

impl Workload {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Low, Self::Ecc, Self::Sptf32, Self::ArrayHour8k, Self::ArrayHour40k];

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "random-4k-low",
            Self::Ecc => "random-4k-ecc",
            Self::Sptf32 => "random-4k-sptf32",
            Self::ArrayHour8k => "array-hour-8k",
            Self::ArrayHour40k => "array-hour-40k",
        }
    }

    /// Sends so many requests; of the time measured, `clock` is told the beginning and the end.
    pub fn run(self, requests: u64, clock: &mut dyn FnMut()) -> Counts {
        match self {
            Self::Low => low(Faults::NONE, requests, clock),
            Self::Ecc => {
                low(Faults { ecc: Ecc::shipped("wander-2"), ..Faults::NONE }, requests, clock)
            }
            Self::Sptf32 => sptf(requests, clock),
            Self::ArrayHour8k => array("8KiB", requests, clock),
            Self::ArrayHour40k => array("40KiB", requests, clock),
        }
    }

    fn lengths(self, lengths: Lengths) -> &'static [u64] {
        match (self, lengths) {
            (Self::Low | Self::Ecc | Self::Sptf32, Lengths::One) => &[REQUESTS],
            (Self::Low | Self::Ecc | Self::Sptf32, Lengths::Three) => &LENGTHS,
            (Self::ArrayHour8k | Self::ArrayHour40k, _) => &[REQUESTS_OF_HOUR],
        }
    }
}

/// The workloads of these names; all of them if there is no name.
pub fn chosen(names: &[String]) -> Result<Vec<Workload>, String> {
    let find = |name: &String| {
        let found = Workload::ALL.into_iter().find(|workload| workload.name() == name);
        let known = || Workload::ALL.map(Workload::name).join(", ");
        found.ok_or_else(|| format!("there is no workload {name}: expected {}", known()))
    };
    if names.is_empty() { Ok(Workload::ALL.to_vec()) } else { names.iter().map(find).collect() }
}

/// Measures them, one after the other.
pub fn run(workloads: &[Workload], lengths: Lengths) -> Vec<Row> {
    let all = workloads.iter().flat_map(|workload| {
        workload.lengths(lengths).iter().map(|&requests| (*workload, requests))
    });
    all.map(|(workload, requests)| measure(workload, requests)).collect()
}

/// The rows for people.
pub fn table(rows: &[Row]) -> Table {
    let names = ["requests", "requests/s", "events/request", "cpu s", "simulated s"];
    let columns = std::iter::once(Column::left("workload")).chain(names.map(Column::right));
    let mut table = Table::new(columns);
    for row in rows {
        table.push([
            row.workload.to_owned(),
            row.requests.to_string(),
            format!("{:.0}", row.requests_per_s),
            format!("{:.3}", row.events_per_request),
            format!("{:.3}", row.cpu_s),
            format!("{:.0}", row.simulated_s),
        ]);
    }
    table
}

fn measure(workload: Workload, requests: u64) -> Row {
    let mut marks = Vec::new();
    let counts = workload.run(requests, &mut || marks.push(processor_time()));
    let [began, ended] = marks[..] else { unreachable!("a workload begins once and ends once") };
    let cpu_s = ended - began;
    Row {
        workload: workload.name(),
        requests: counts.requests,
        requests_per_s: counts.requests as f64 / cpu_s,
        events_per_request: counts.events as f64 / counts.requests as f64,
        cpu_s,
        simulated_s: (counts.ended - Instant::ZERO).as_secs_f64(),
    }
}

/// Seconds of this thread.
fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn drive_settings(faults: Faults) -> Settings {
    Settings { queue_depth: QUEUE_DEPTH, faults, ..Settings::PLAIN }
}

fn one_drive(faults: Faults) -> Drive {
    let profile = Profile::shipped(MAKE).expect("it is shipped");
    Drive::new(profile, drive_settings(faults), Streams::new(SEED), "drive/0")
        .expect("possible faults, full size: nothing can be wrong")
}

/// A drive at work, and what it has done.
struct Bench {
    drive: Drive,
    addresses: Rng,
    counts: Counts,
    sent: u64,
}

impl Bench {
    fn new(faults: Faults) -> Self {
        let counts = Counts { requests: 0, events: 0, ended: Instant::ZERO };
        let addresses = Streams::new(SEED).stream("addresses");
        Self { drive: one_drive(faults), addresses, counts, sent: 0 }
    }

    fn send(&mut self, now: Instant) {
        let lba = Lba::new(self.addresses.below(self.drive.size().get()));
        let extent = Extent::new(lba, Sectors::new(1));
        let command = Command::Read { extent, effort: Effort::Full };
        self.drive.handle_submit(now, self.sent, command, self.sent);
        self.sent += 1;
        self.counts.events += 1;
    }

    /// Goes on to the drive's next deadline.
    fn wake(&mut self) -> Instant {
        let now = self.drive.deadline().expect("it has something to do");
        self.drive.handle_timeout(now);
        self.counts.events += 1;
        while let Some(done) = self.drive.poll() {
            self.counts.requests += 1;
            self.counts.ended = done.ended;
        }
        now
    }
}

fn low(faults: Faults, requests: u64, clock: &mut dyn FnMut()) -> Counts {
    let mut bench = Bench::new(faults);
    let mut gaps = Streams::new(SEED).stream("gaps");
    let mut next = Instant::ZERO;
    clock();
    while bench.sent < requests {
        next = next + gaps.exponential(INTERVAL_LOW);
        while !bench.drive.has_room() || bench.drive.deadline().is_some_and(|at| at <= next) {
            bench.wake();
        }
        bench.send(next);
    }
    while bench.counts.requests < requests {
        bench.wake();
    }
    clock();
    bench.counts
}

fn sptf(requests: u64, clock: &mut dyn FnMut()) -> Counts {
    let mut bench = Bench::new(Faults::NONE);
    let mut now = Instant::ZERO;
    clock();
    while bench.counts.requests < requests {
        while bench.drive.has_room() && bench.sent < requests {
            bench.send(now);
        }
        now = bench.wake();
    }
    clock();
    bench.counts
}

fn array(size: &str, requests: u64, clock: &mut dyn FnMut()) -> Counts {
    let faults = Faults {
        retry_rate: Ratio::new(0.01).expect("it is a ratio"),
        adjacency: 2.0,
        rotations: 3.into(),
        ..Faults::NONE
    };
    let settings = WorldSettings {
        spec: "raid5:5+1,chunk=8KiB".parse().expect("it is an array"),
        policy: Policy::Normal,
        window: QUEUE_DEPTH,
        order: HostOrder::Paper32,
        content: Content::Absent,
        profile: Profile::shipped(MAKE).expect("it is shipped").into(),
        drives: vec![drive_settings(faults)],
        area: None,
        journal: None,
        seed: SEED,
    };
    let load: Synthetic = format!("size={size},interval=8ms,count={requests},reads=100%")
        .parse()
        .expect("it is a workload");
    let array_size = World::new(&settings).expect("such a world can be").size();
    let arrivals =
        load.generate(array_size, Streams::new(SEED)).expect("the requests fit the array");
    clock();
    let run = replay::run(&settings, &replay::Ask::open(&arrivals), &mut |_| ())
        .expect("such a world can be");
    clock();
    let ends = run.served.iter().map(|one| arrivals[one.index as usize].at + one.latency);
    Counts {
        requests: run.served.len() as u64,
        events: run.events,
        ended: ends.max().unwrap_or(Instant::ZERO),
    }
}
