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

/// One request of one command at a time: whenever there is a command at a drive, the drive serves it.
#[test]
fn a_command_counts_once_wherever_it_is() {
    let drives = (0..4).map(|_| Settings::PLAIN).collect();
    let spec = "raid0:4,chunk=64KiB".parse().unwrap();
    let settings = WorldSettings { spec, window: 1, drives, ..settings(Policy::Normal) };
    let size = World::new(&settings).unwrap().size();
    let load: Synthetic = "size=4KiB,interval=1ms,count=400,reads=100%".parse().unwrap();
    let arrivals: Vec<Arrival> = load.generate(size, Streams::new(5)).unwrap();
    let sending = replay::Sending::Closed(1);
    let ask = replay::Ask { sending, accounting: Accounting::On, ..replay::Ask::open(&arrivals) };
    let account = replay::run(&settings, &ask, &mut |_| {}).unwrap().account.unwrap();
    assert!(account.drives.iter().all(|bins| bins.iter().any(|bin| bin.commands > 0)));
    for bin in account.drives.iter().flatten() {
        assert_eq!(bin.commands, bin.busy.get());
    }
}

/// All of a slow drive's service is slow, its retries too.
#[test]
fn a_slow_drive_retries_slowly() {
    let spent = |slowdown: f64| {
        let faults =
            Faults { retry_rate: Ratio::ONE, rotations: 2.into(), slowdown, ..Faults::NONE };
        let drive = Settings { faults, ..Settings::PLAIN };
        let spec = "raid0:2,chunk=64KiB".parse().unwrap();
        let settings = WorldSettings { spec, drives: vec![drive; 2], ..settings(Policy::Normal) };
        let size = World::new(&settings).unwrap().size();
        let load: Synthetic = "size=4KiB,interval=2s,count=20,reads=100%".parse().unwrap();
        let arrivals: Vec<Arrival> = load.generate(size, Streams::new(5)).unwrap();
        let ask = replay::Ask { accounting: Accounting::On, ..replay::Ask::open(&arrivals) };
        let account = replay::run(&settings, &ask, &mut |_| {}).unwrap().account.unwrap();
        account.slowest.iter().map(|story| story.parts.retries).sum::<Nanos>().as_millis_f64()
    };
    let times = spent(3.0) / spent(1.0);
    assert!((times - 3.0).abs() < 1e-3, "{times} times as long");
}
