//! What the default policy asks of drives near saturation and beyond: no more than must be read.

use levelhead_array::{HostOrder, Policy};
use levelhead_drive::Faults;
use levelhead_lab::replay::{self, Run, Sending};
use levelhead_lab::studies::{Bed, Load};
use levelhead_lab::{World, WorldSettings};
use levelhead_stats::Streams;
use levelhead_trace::{Arrival, Kind};
use levelhead_units::{Extent, Instant, Lba, Nanos, Sectors};

fn world(policy: Policy) -> WorldSettings {
    let bed = Bed::paper().with_array("eraid:5+1,e=2,chunk=8KiB");
    bed.with_queue(32, HostOrder::Elevator).with_faults(Faults::NONE).world(policy, 7).unwrap()
}

fn arrivals(load: &str) -> Vec<Arrival> {
    let Load::Synthetic(load) = Load::synthetic(load) else { unreachable!("it is made up") };
    load.generate(World::new(&world(Policy::Normal)).unwrap().size(), Streams::new(7)).unwrap()
}

fn run(policy: &str, arrivals: &[Arrival], sending: Sending) -> Run {
    let ask = replay::Ask { sending, ..replay::Ask::open(arrivals) };
    replay::run(&world(policy.parse().unwrap()), &ask, &mut |_| {}).unwrap()
}

/// Reads of one sector every 5 ms, as many as that.
fn regular(count: u64) -> Vec<Arrival> {
    let at = |n: u64| Instant::ZERO + Nanos::from_millis(5 * n);
    let extent = |n: u64| Extent::new(Lba::new(n * 7_919), Sectors::new(1));
    (0..count).map(|n| Arrival { at: at(n), kind: Kind::Read, extent: extent(n) }).collect()
}

#[test]
fn a_closed_loop_of_one_sends_the_next_request_when_one_is_answered() {
    let arrivals = regular(200);
    let run = run("normal", &arrivals, Sending::Closed(1));
    let total: Nanos = run.served.iter().fold(Nanos::ZERO, |sum, one| sum + one.latency);
    assert_eq!(total, run.span, "one at a time, without a pause");
    assert!((run.rate() - 200.0 / run.span.as_secs_f64()).abs() < 1e-9);
}

#[test]
fn a_closed_loop_has_as_many_outstanding_as_it_says() {
    let arrivals = regular(400);
    let run = run("normal", &arrivals, Sending::Closed(16));
    let total: Nanos = run.served.iter().fold(Nanos::ZERO, |sum, one| sum + one.latency);
    // By Little's law, but for the end, when fewer and fewer are left.
    let outstanding = total.as_secs_f64() / run.span.as_secs_f64();
    assert!((14.0..=16.0).contains(&outstanding), "{outstanding}");
}

#[test]
fn healthy_drives_in_a_closed_loop_or_a_burst_are_given_nothing_extra_and_lose_no_rate() {
    for (size, outstanding) in
        [("4KiB", 4_000), ("4KiB", 64), ("8KiB", 256), ("24KiB", 4_000), ("24KiB", 64)]
    {
        let arrivals = arrivals(&format!("size={size},interval=1ms,count=4000"));
        let [normal, level] =
            ["normal", "level"].map(|policy| run(policy, &arrivals, Sending::Closed(outstanding)));
        let case = format!("{size}, {outstanding} outstanding");
        let extra = level.submitted as f64 / normal.submitted as f64;
        assert!(extra <= 1.01, "{case}: {extra} times the reads");
        assert!(
            level.rate() >= 0.985 * normal.rate(),
            "{case}: {} {}",
            level.rate(),
            normal.rate()
        );
    }
}

/// The collapse that fed itself: long queues made drives look late, and what was read instead made the
/// queues longer.
#[test]
fn an_overload_ends_with_its_backlog() {
    let mut arrivals = arrivals("size=8KiB,align=8KiB,interval=0.8ms,count=6000");
    let last = arrivals.last().unwrap().at;
    let after = self::arrivals("size=8KiB,align=8KiB,interval=1.5ms,count=8000");
    arrivals.extend(
        after.into_iter().map(|one| Arrival { at: last + (one.at - Instant::ZERO), ..one }),
    );
    let [normal, level] =
        ["normal", "level"].map(|policy| run(policy, &arrivals, Sending::OpenToTheEnd));
    let extra = level.submitted as f64 / normal.submitted as f64;
    assert!(extra <= 1.01, "{extra} times the reads");
    let late = |run: &Run| {
        let latencies = run.latencies(|index| index >= 12_000);
        latencies.iter().fold(Nanos::ZERO, |sum, one| sum + *one).as_secs_f64()
    };
    assert!(late(&level) <= 1.1 * late(&normal), "{} {}", late(&level), late(&normal));
}

/// With one drive out of six ten times slower, every policy that reads from it is overloaded by this.
#[test]
fn a_slow_drive_leaves_the_rate_of_the_others() {
    let arrivals = arrivals("size=40KiB,interval=1ms,count=3000");
    let rate = |policy: &str, faults: Vec<Faults>| {
        let world = WorldSettings {
            drives: {
                let bed = Bed { faults, ..Bed::paper() }.with_array("eraid:5+1,e=2,chunk=8KiB");
                bed.world(Policy::Normal, 7).unwrap().drives
            },
            ..world(policy.parse().unwrap())
        };
        let ask = replay::Ask { sending: Sending::Closed(64), ..replay::Ask::open(&arrivals) };
        replay::run(&world, &ask, &mut |_| {}).unwrap().rate()
    };
    let slow = Faults { slowdown: 10.0, ..Faults::NONE };
    let (normal, level) =
        (rate("normal", vec![slow, Faults::NONE]), rate("level", vec![slow, Faults::NONE]));
    let healthy = rate("normal", vec![Faults::NONE]);
    assert!(level > 4.0 * normal, "{level} {normal}");
    assert!(level > 0.75 * healthy, "{level} of {healthy} a second");
}
