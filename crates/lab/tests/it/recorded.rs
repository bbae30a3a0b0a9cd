//! The default policy on recorded arrivals, where the traces are at hand: `../shared/data/traces` beside the workspace.

use std::fs::File;
use std::sync::Arc;

use levelhead_array::{HostOrder, Policy};
use levelhead_lab::World;
use levelhead_lab::replay::{self, End, Run};
use levelhead_lab::studies::Bed;
use levelhead_testkit::shared;
use levelhead_trace::{Mapping, Trace, onto_array, read};

/// A trace, or nothing where there are none; says so.
fn trace(name: &str) -> Option<Arc<Trace>> {
    let file = File::open(shared("traces")?.join(name)).unwrap();
    Some(Arc::new(read(file, name, None, &mut |_| {}).unwrap()))
}

/// The first requests of a trace at a quarter of its rate, with 2 % retries on all drives.
fn run(trace: &Trace, array: &str, policy: &str) -> Run {
    let faults = "retry-rate=2%,rotations=3,adjacency=2".parse().unwrap();
    let bed =
        Bed::paper().with_array(array).with_queue(32, HostOrder::Elevator).with_faults(faults);
    let settings = bed.world(policy.parse::<Policy>().unwrap(), 7).unwrap();
    let size = World::new(&settings).unwrap().size();
    let mapping = Mapping { rate: 0.25, ..Mapping::as_recorded(trace, size) };
    let (mut arrivals, _) = onto_array(trace, mapping).unwrap();
    arrivals.truncate(12_000);
    replay::run(&settings, &replay::Ask::open(&arrivals), &mut |_| {}).unwrap()
}

/// Paces vary from drive to drive in bursts. When each drive that lagged made all others retry, it made 12 times as many
/// retries as `pro-active`, and carried less than each of the others.
#[test]
fn level_makes_no_more_retries_in_bursts_than_the_best_fixed_policy() {
    let Some(trace) = trace("hadoop_eternity10.mqsim.trace.zst") else { return };
    for array in ["eraid:5+1,e=2,chunk=8KiB", "raid6:6+2,chunk=8KiB", "raid10:6,chunk=8KiB"] {
        let [best, ours] = ["pro-active", "level"].map(|policy| run(&trace, array, policy));
        assert_eq!((best.end, ours.end), (End::Complete, End::Complete), "{array}");
        let (theirs, own) = (best.redispatched(), ours.redispatched());
        assert!(
            own <= theirs * 3 / 2 + 50,
            "{array}: {own} requests with retries, {theirs} under pro-active"
        );
        let commands = ours.submitted as f64 / best.submitted as f64;
        assert!(commands < 1.05, "{array}: {commands} times the commands");
    }
}
