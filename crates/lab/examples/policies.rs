//! Policies against each other and against healthy drives under `normal`, in virtual time.
//!
//! `cargo run --release -p levelhead-lab --example policies -- CASE[,CASE..] POLICY[,POLICY..] [SEEDS] [COUNT]`
//!
//! A case is `healthy`, `retry` (2 % on all six), `retry1` (1 %), `slow` (one drive 10x), `both` (10x and
//! 1 %), `told` (10x, sat out by hand from the start), `periodic` (one drive 5x now and then), `turns` (every
//! drive 5x by turns), with
//! `:SIZE` for one size alone, as in `retry:40`.

use std::sync::Arc;

use levelhead_array::{Content, HostOrder};
use levelhead_drive::{CacheMode, Faults, Profile, Scheduler, Settings};
use levelhead_lab::{World, WorldSettings, replay};
use levelhead_stats::{Streams, Summary};
use levelhead_trace::Kind;
use levelhead_units::{DriveSet, Nanos, Ratio};

const SIZES: [&str; 5] = ["8", "24", "40", "80", "mix"];

fn load(size: &str, count: u64, reads: u64) -> String {
    let steps: Vec<String> = (1..=10).map(|step| format!("{}KiB", step * 8)).collect();
    let sizes = if size == "mix" { steps.join("/") } else { format!("{size}KiB") };
    let interval = std::env::var("INTERVAL").unwrap_or("8ms".into());
    format!("sizes={sizes},interval={interval},count={count},reads={reads}%")
}

fn world(case: &str, policy: &str, spec: &str, seed: u64) -> WorldSettings {
    let (rate, slow) = match case {
        "healthy" => (0.0, 1.0),
        "retry" => (0.02, 1.0),
        "retry1" => (0.01, 1.0),
        "slow" | "told" => (0.0, 10.0),
        "both" => (0.01, 10.0),
        "periodic" | "turns" => (0.0, 1.0),
        other => panic!("{other} is no case"),
    };
    let order = std::env::var("ORDER").unwrap_or("elevator".into());
    let drive = |slowdown: f64| Settings {
        queue_depth: 32,
        scheduler: Scheduler::SOONEST,
        cache: CacheMode::Off,
        faults: Faults {
            soft_rate: Ratio::new(rate).unwrap(),
            adjacency: 2.0,
            rotations: 3.into(),
            slowdown,
            ..Faults::NONE
        },
        size: None,
    };
    let mut drives: Vec<Settings> =
        (0..6).map(|at| drive(if at == 2 { slow } else { 1.0 })).collect();
    if case == "periodic" {
        drives[2].faults = "periodic=9s/4s/5".parse().unwrap();
    }
    if case == "turns" {
        for drive in &mut drives {
            drive.faults = "periodic=100s-150s/2s-4s/5".parse().unwrap();
        }
    }
    WorldSettings {
        spec: spec.parse().unwrap(),
        policy: policy.parse().unwrap(),
        window: 32,
        order: order.parse::<HostOrder>().unwrap(),
        content: Content::Absent,
        profile: Arc::new(Profile::shipped("nearline-2tb").unwrap()),
        drives,
        area: None,
        seed,
    }
}

fn told(case: &str) -> DriveSet {
    let drives = if case == "told" { 1 << 2 } else { 0 };
    DriveSet::from_bits(drives)
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let seeds: u64 = args.get(2).map_or(2, |text| text.parse().unwrap());
    let count: u64 = args.get(3).map_or(20_000, |text| text.parse().unwrap());
    let spec = std::env::var("SPEC").unwrap_or("eraid:5+1,e=2,chunk=8KiB".into());
    let reads: u64 = std::env::var("READS").map_or(100, |text| text.parse().unwrap());
    for case in args[0].split(',') {
        let (case, only) = case.split_once(':').unwrap_or((case, ""));
        for size in SIZES.iter().filter(|size| only.is_empty() || **size == only) {
            for policy in ["base"].into_iter().chain(args[1].split(',')) {
                let (mut mean, mut p99, mut asked) = (0.0, 0.0, 0.0);
                let mut note = String::new();
                for seed in 1..=seeds {
                    let go = |case: &str, policy: &str, spec: &str| {
                        let settings = world(case, policy, spec, seed);
                        let array = World::new(&settings).unwrap().size();
                        let arrivals = load(size, count, reads)
                            .parse::<levelhead_trace::Synthetic>()
                            .unwrap()
                            .generate(array, Streams::new(seed))
                            .unwrap();
                        let run = replay::run_told(&settings, told(case), &arrivals, &mut |_| {})
                            .unwrap();
                        let tenth = count / 10;
                        let is_read = |index: u64| arrivals[index as usize].kind == Kind::Read;
                        let mut late = run.latencies(|index| index >= tenth && is_read(index));
                        let summary = Summary::of(&mut late);
                        (summary, run)
                    };
                    let (base, base_run) = go("healthy", "normal", &spec);
                    let (own, run) = if policy == "base" {
                        if seed == 1 {
                            note = format!(
                                "{:.1}/{:.1} ms",
                                base.mean.as_millis_f64(),
                                base.p99.as_millis_f64()
                            );
                        }
                        continue;
                    } else {
                        go(case, policy, &spec)
                    };
                    let ratio =
                        |own: Nanos, base: Nanos| own.as_millis_f64() / base.as_millis_f64();
                    mean += ratio(own.mean, base.mean) / seeds as f64;
                    p99 += ratio(own.p99, base.p99) / seeds as f64;
                    asked += run.submitted as f64 / base_run.submitted as f64 / seeds as f64;
                    if run.end == replay::End::Overloaded {
                        note = "OVERLOADED".into();
                    }
                    if seed == 1 && !run.drive_events.is_empty() {
                        let names: Vec<String> = run
                            .drive_events
                            .iter()
                            .take(4)
                            .map(|event| {
                                format!(
                                    "{}:{}@{:.1}s",
                                    event.drive,
                                    event.kind.name(),
                                    event.at.as_nanos() as f64 / 1e9
                                )
                            })
                            .collect();
                        note.push_str(&names.join(" "));
                    }
                }
                if policy == "base" {
                    println!("{case}:{size} healthy normal {note}");
                } else {
                    println!(
                        "{case}:{size} {policy:22} mean {mean:.2} p99 {p99:.2} x{asked:.3} {note}"
                    );
                }
            }
        }
    }
}
