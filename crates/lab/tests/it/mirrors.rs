//! What the default policy makes of copies: a slow one costs nothing, like ones share the load.

use levelhead_array::{HostOrder, Policy};
use levelhead_drive::Faults;
use levelhead_lab::World;
use levelhead_lab::replay::{self, Run, Sending};
use levelhead_lab::studies::{Bed, Load};
use levelhead_stats::{Streams, Summary};
use levelhead_trace::Arrival;
use levelhead_units::{DriveIdx, DriveSet, Nanos};

const COUNT: u64 = 8_000;

/// One run of reads: where, how, and on which drives.
struct Bench {
    array: &'static str,
    faults: Vec<Faults>,
    seed: u64,
}

impl Bench {
    fn of(array: &'static str, faults: &str, seed: u64) -> Self {
        let first = faults.parse().unwrap();
        Self { array, faults: vec![first, Faults::NONE], seed }
    }

    fn bed(&self) -> Bed {
        let bed = Bed { faults: self.faults.clone(), ..Bed::paper() };
        bed.with_array(self.array).with_queue(32, HostOrder::Elevator)
    }

    fn arrivals(&self, load: &str) -> Vec<Arrival> {
        let Load::Synthetic(load) = Load::synthetic(load) else { unreachable!("it is made up") };
        let world = self.bed().world(Policy::Normal, self.seed).unwrap();
        load.generate(World::new(&world).unwrap().size(), Streams::new(self.seed)).unwrap()
    }

    fn run(&self, policy: &str, load: &str, sat_out: DriveSet, sending: Sending) -> Run {
        let arrivals = self.arrivals(load);
        let world = self.bed().world(policy.parse().unwrap(), self.seed).unwrap();
        replay::run(
            &world,
            &replay::Ask { sending, sat_out, ..replay::Ask::open(&arrivals) },
            &mut |_| {},
        )
        .unwrap()
    }

    /// The figures of all reads, the first ones included.
    fn reads(&self, policy: &str, load: &str, sat_out: DriveSet) -> Summary {
        self.run(policy, load, sat_out, Sending::Open).summary()
    }
}

fn ratio(left: Nanos, right: Nanos) -> f64 {
    left.as_secs_f64() / right.as_secs_f64()
}

/// The array finds out by itself, and the reads until then count, too.
#[test]
fn one_drive_ten_times_slower_costs_no_more_than_an_array_told_in_advance() {
    let slow = DriveSet::EMPTY.with(DriveIdx::new(0));
    for (array, intervals) in
        [("raid1:2", ["60ms", "25ms", "16ms"]), ("raid10:4", ["30ms", "12ms", "8ms"])]
    {
        for (interval, size) in intervals.iter().flat_map(|at| [(at, "4KiB"), (at, "64KiB")]) {
            let load = format!("size={size},interval={interval},count={COUNT}");
            let bench = Bench::of(array, "slowdown=10", 7);
            let found = bench.reads("level", &load, DriveSet::EMPTY);
            let told = bench.reads("level", &load, slow);
            let times = ratio(found.p99, told.p99);
            assert!(times <= 1.1, "{array}, {load}: {times}");
        }
    }
}

#[test]
fn like_drives_are_read_sooner_than_if_they_took_turns() {
    for (array, intervals) in [
        ("raid1:2", ["60ms", "18ms", "9ms", "6.5ms"]),
        ("raid1:3", ["40ms", "12ms", "6ms", "4.3ms"]),
        ("raid10:4", ["30ms", "9ms", "4.5ms", "3.2ms"]),
    ] {
        for interval in intervals {
            let load = format!("size=4KiB,interval={interval},count={COUNT}");
            let bench = Bench::of(array, "slowdown=1", 8);
            let [level, turns] =
                ["level", "normal"].map(|policy| bench.reads(policy, &load, DriveSet::EMPTY));
            let [mean, p99] = [ratio(level.mean, turns.mean), ratio(level.p99, turns.p99)];
            assert!(p99 <= 1.0 && mean <= 0.95, "{array}, {load}: mean {mean}, p99 {p99}");
        }
    }
}

/// In a closed loop what counts is the rate.
#[test]
fn copies_are_read_at_a_higher_rate_than_if_they_took_turns_and_no_more_often() {
    for outstanding in [1, 4, 16, 64] {
        let load = "size=4KiB,interval=1ms,count=4000";
        let bench = Bench::of("raid1:2", "slowdown=1", 7);
        let run = |policy| bench.run(policy, load, DriveSet::EMPTY, Sending::Closed(outstanding));
        let (level, turns) = (run("level"), run("normal"));
        let times = level.rate() / turns.rate();
        assert!(times >= 1.0, "{outstanding} outstanding: {times}");
        let extra = level.submitted as f64 / turns.submitted as f64;
        assert!(extra <= 1.01, "{outstanding} outstanding: {extra} times the reads");
    }
}
