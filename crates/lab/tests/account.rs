//! The account of a replay: it changes nothing, and what it says adds up.

use std::sync::Arc;

use levelhead_array::{Content, HostOrder, Policy};
use levelhead_drive::{Faults, Profile, Settings};
use levelhead_lab::replay::account::{Accounting, SLOWEST};
use levelhead_lab::{World, WorldSettings, replay};
use levelhead_stats::Streams;
use levelhead_trace::{Arrival, Synthetic};
use levelhead_units::{Nanos, Ratio};

/// Six drives that fail reads, and one of them four times as slow.
fn settings(policy: Policy) -> WorldSettings {
    let faults =
        Faults { retry_rate: Ratio::new(0.02).unwrap(), rotations: 3.into(), ..Faults::NONE };
    let drive = |idx: u32| {
        let slowdown = if idx == 2 { 4.0 } else { faults.slowdown };
        Settings { faults: Faults { slowdown, ..faults }, ..Settings::PLAIN }
    };
    WorldSettings {
        spec: "eraid:5+1,e=2,chunk=8KiB".parse().unwrap(),
        policy,
        window: 8,
        order: HostOrder::Elevator,
        content: Content::Absent,
        profile: Arc::new(Profile::shipped("nearline-2tb").unwrap()),
        drives: (0..6).map(drive).collect(),
        area: None,
        journal: None,
        seed: 5,
    }
}

#[test]
fn the_account_adds_up_and_changes_nothing() {
    for policy in [Policy::Normal, Policy::DEFAULT] {
        let settings = settings(policy);
        let size = World::new(&settings).unwrap().size();
        let load: Synthetic = "size=40KiB,interval=12ms,count=1500,reads=80%".parse().unwrap();
        let arrivals: Vec<Arrival> = load.generate(size, Streams::new(5)).unwrap();
        let ask = replay::Ask::open(&arrivals);
        let plain = replay::run(&settings, &ask, &mut |_| {}).unwrap();
        let ask = replay::Ask { accounting: Accounting::On, ..ask };
        let run = replay::run(&settings, &ask, &mut |_| {}).unwrap();
        assert_eq!((run.log, &run.served), (plain.log, &plain.served), "{policy}");
        let account = run.account.as_ref().unwrap();
        let mut latencies: Vec<Nanos> = run.served.iter().map(|served| served.latency).collect();
        latencies.sort_unstable_by(|a, b| b.cmp(a));
        let told: Vec<Nanos> = account.slowest.iter().map(|story| story.parts.total()).collect();
        assert_eq!(told, latencies[..SLOWEST], "{policy}");
        assert_eq!(account.drives.len(), 6);
        for bin in account.drives.iter().flatten() {
            assert!(
                bin.busy <= account.bin,
                "{policy}: a drive serves one command at a time: {bin:?}"
            );
            assert!(bin.commands >= bin.busy.get(), "{policy}: what is served is there: {bin:?}");
        }
    }
}

#[test]
fn the_slow_drive_is_what_requests_wait_for() {
    let settings = settings(Policy::Normal);
    let size = World::new(&settings).unwrap().size();
    let load: Synthetic = "size=40KiB,interval=30ms,count=800,reads=100%".parse().unwrap();
    let arrivals: Vec<Arrival> = load.generate(size, Streams::new(5)).unwrap();
    let ask = replay::Ask { accounting: Accounting::On, ..replay::Ask::open(&arrivals) };
    let account = replay::run(&settings, &ask, &mut |_| {}).unwrap().account.unwrap();
    let of_slow = account.slowest.iter().filter(|story| story.last.unwrap().as_usize() == 2);
    assert!(of_slow.count() > 80, "{:?}", account.slowest);
    let retries: Nanos = account.slowest.iter().map(|story| story.parts.retries).sum();
    assert!(retries > Nanos::ZERO, "2 % of sectors need retries");
}
