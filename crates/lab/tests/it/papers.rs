//! Results of the papers that the replay must show.

use std::sync::Arc;

use levelhead_array::{Content, HostOrder, Policy};
use levelhead_drive::{Faults, Profile, Settings};
use levelhead_lab::{World, WorldSettings, replay};
use levelhead_stats::Streams;
use levelhead_trace::Arrival;
use levelhead_units::{Nanos, Ratio};

fn settings(policy: &str, window: u32, seed: u64) -> WorldSettings {
    let faults = Faults {
        retry_rate: Ratio::new(0.02).unwrap(),
        adjacency: 2.0,
        rotations: 3.into(),
        ..Faults::NONE
    };
    WorldSettings {
        spec: "eraid:5+1,e=2,chunk=8KiB".parse().unwrap(),
        policy: policy.parse::<Policy>().unwrap(),
        window,
        order: HostOrder::Elevator,
        content: Content::Absent,
        profile: Arc::new(Profile::shipped("nearline-2tb").unwrap()),
        drives: vec![Settings { faults, ..Settings::PLAIN }],
        area: None,
        journal: None,
        seed,
    }
}

fn p99(policy: &str, window: u32, size: &str, seed: u64) -> Nanos {
    let settings = settings(policy, window, seed);
    let load = format!("size={size},interval=8ms,count=20000,reads=100%");
    let array = World::new(&settings).unwrap().size();
    let arrivals: Vec<Arrival> = load
        .parse::<levelhead_trace::Synthetic>()
        .unwrap()
        .generate(array, Streams::new(seed))
        .unwrap();
    let run = replay::run(&settings, &replay::Ask::open(&arrivals), &mut |_| {}).unwrap();
    println!(
        "{policy} {size} W={window} seed {seed}: {:?} {:?} subs {} removed {} redisp {}",
        run.summary(),
        run.end,
        run.mean_of(|s| s.subs),
        run.mean_of(|s| s.removed),
        run.redispatched()
    );
    run.summary().p99
}

/// `[ERAID]`: reading the whole group without retries beats waiting for retries, at 2 % and 80 kB.
#[test]
fn assisted_and_pro_active_halve_the_p99_of_normal_with_every_seed() {
    for seed in 11..=15 {
        let normal = p99("normal", 32, "80KiB", seed);
        for policy in ["assisted", "pro-active"] {
            let ours = p99(policy, 32, "80KiB", seed);
            let cut = 1.0 - ours.as_secs_f64() / normal.as_secs_f64();
            assert!(cut >= 0.5, "{policy}, seed {seed}: p99 {ours} against {normal}, cut {cut}");
        }
    }
}
