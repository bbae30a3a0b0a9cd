//! How long a policy takes to decide one read: `cargo bench -p bench --bench decide`.
//!
//! The bound to keep is 0.5 us a request. Six drives and twenty-four, one of them slow, some with
//! requested data.

#![forbid(unsafe_code)]

use divan::{Bencher, black_box};
use levelhead_array::Policy;
use levelhead_array::policy::{Arrivals, View};
use levelhead_array::tau::{DriveView, Share};
use levelhead_units::{DriveIdx, DriveSet};

fn main() {
    divan::main();
}

const POLICIES: [&str; 5] = ["normal", "assisted", "pro-active", "tolerant:adaptive", "level"];

fn shares(drives: usize) -> Vec<Share> {
    (0..drives)
        .map(|at| {
            let pace = if at == 3 { 0.08 } else { 0.006 + 0.0001 * at as f64 };
            let drive = DriveView {
                queued: (at * 7 % 5) as f64,
                arrival_rate: 60.0,
                removal: 0.1,
                retry_rate: 0.02,
                retry_latency: 0.025,
                service_time: 0.008,
                pace,
                pace_alone: pace,
                failure_rate: 0.02,
                retry_time: 0.025,
                excess: 0.0,
            };
            Share { idx: DriveIdx::from_usize(at), drive, wanted: (at % 3) as u32 }
        })
        .collect()
}

#[divan::bench(args = POLICIES)]
fn six_drives(bencher: Bencher<'_, '_>, policy: &str) {
    decide(bencher, policy, 6, 1);
}

#[divan::bench(args = POLICIES)]
fn twenty_four_drives(bencher: Bencher<'_, '_>, policy: &str) {
    decide(bencher, policy, 24, 3);
}

fn decide(bencher: Bencher<'_, '_>, policy: &str, drives: usize, spare: usize) {
    let policy: Policy = policy.parse().expect("the policies above exist");
    let shares = shares(drives);
    let [sat_out, by_hand, persistent] = [DriveSet::EMPTY; 3];
    bencher.bench_local(|| {
        let view = View {
            shares: black_box(&shares),
            spare,
            mirror: None,
            arrivals: Arrivals::Independent,
            window: 32.0,
            seen: 3.0,
            extra: 0.0,
            sat_out,
            by_hand,
            follows: false,
            persistent,
        };
        policy.decide(&view)
    });
}
