//! What reading back writes costs clients: `verified [REQUESTS] [SEEDS]`. Pairs of runs with the same arrivals, with and without it.

use std::sync::Arc;

use levelhead_array::{
    Content, HostOrder, Policy, RequestId, VerifyMode, VerifySettings, VerifyStatus,
};
use levelhead_block::{Command, Durability, Effort, ZeroTail};
use levelhead_drive::{CacheMode, Profile, Settings};
use levelhead_lab::{World, WorldSettings};
use levelhead_stats::Streams;
use levelhead_units::{Extent, Instant, Lba, Nanos, Sectors};

const SPEC: &str = "raid5:5+1,chunk=64KiB";

struct Plan {
    rate: f64,
    requests: u64,
    seed: u64,
    policy: Policy,
    verify: Option<VerifySettings>,
}

struct Measured {
    p99: f64,
    mean: f64,
    status: Option<VerifyStatus>,
    took: f64,
}

fn run(plan: &Plan) -> Measured {
    let drive = Settings { cache: CacheMode::Read, ..Settings::PLAIN };
    let mut world = World::new(&WorldSettings {
        spec: SPEC.parse().expect("it is a layout"),
        policy: plan.policy,
        window: 32,
        order: HostOrder::Elevator,
        content: Content::Absent,
        profile: Arc::new(Profile::shipped("nearline-2tb").expect("it is shipped")),
        drives: vec![drive],
        area: None,
        journal: None,
        seed: plan.seed,
    })
    .expect("it can be");
    world.work_in_background(levelhead_array::Budget::DEFAULT);
    if let Some(verify) = plan.verify {
        world.verify_writes(verify);
    }
    let mut rng = Streams::new(plan.seed).stream("verified");
    let size = world.size().get() / 2;
    let mut sent: Vec<Instant> = Vec::new();
    let mut took: Vec<f64> = Vec::new();
    let mut at = Instant::ZERO;
    let mut take = |world: &mut World, sent: &[Instant]| {
        for (now, answer) in world.take_answers() {
            let begun = sent[answer.request.0 as usize];
            took.push(now.saturating_since(begun).as_secs_f64());
        }
    };
    for id in 0..plan.requests {
        at = at + rng.exponential(Nanos::from_secs_f64_round(1.0 / plan.rate));
        while world.next_at() < at {
            world.step();
            take(&mut world, &sent);
        }
        let extent = Extent::new(Lba::new(2 * rng.below(size)), Sectors::new(2));
        let command = match rng.below(10) {
            0..3 => {
                Command::Write { extent, durability: Durability::Cached, zero_tail: ZeroTail::None }
            }
            _ => Command::Read { extent, effort: Effort::Full },
        };
        sent.push(at);
        world.submit(at, RequestId(id), command, None);
        take(&mut world, &sent);
    }
    while !world.array().is_quiet() {
        world.step();
        take(&mut world, &sent);
    }
    let status = world.array().verify_status();
    took.sort_unstable_by(f64::total_cmp);
    Measured {
        p99: took[took.len() * 99 / 100],
        mean: took.iter().sum::<f64>() / took.len() as f64,
        status,
        took: (world.now() - Instant::ZERO).as_secs_f64(),
    }
}

fn main() {
    let args: Vec<u64> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let requests = args.first().copied().unwrap_or(40_000);
    let seeds = args.get(1).copied().unwrap_or(3);
    let raw = VerifySettings { mode: VerifyMode::Raw, ..VerifySettings::IDLE };
    for (name, rate) in [("10 %", 26.0), ("30 %", 79.0), ("full", 320.0)] {
        for policy in [Policy::Normal, Policy::DEFAULT] {
            for seed in 1..=seeds {
                let plan = |verify| Plan { rate, requests, seed, policy, verify };
                let off = run(&plan(None));
                for verify in [VerifySettings::IDLE, raw] {
                    let on = run(&plan(Some(verify)));
                    let status = on.status.expect("writes are read back");
                    println!(
                        "load {name}, {policy}, seed {seed}, {}: p99 {:.4}, mean {:.4} of {:.1} and {:.1} ms; \
                         {:.2} % verified of {}, {:.2} % delayed, {} bytes, {:.0} s",
                        status.mode.name(),
                        on.p99 / off.p99,
                        on.mean / off.mean,
                        off.p99 * 1e3,
                        off.mean * 1e3,
                        100.0 * status.verified as f64 / status.writes as f64,
                        status.writes,
                        status.delayed_percent,
                        status.memory_bytes,
                        on.took,
                    );
                }
            }
        }
    }
}
