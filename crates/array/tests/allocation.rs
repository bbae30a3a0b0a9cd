//! Decisions cost no memory: counted, not believed.

use std::alloc::System;

use levelhead_array::Policy;
use levelhead_array::policy::{Arrivals, View};
use levelhead_array::tau::{DriveView, Share};
use levelhead_units::{DriveIdx, DriveSet};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static COUNTING: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// This is the only test here: another one's thread would allocate meanwhile.
#[test]
fn no_policy_allocates_when_it_decides() {
    let shares: Vec<Share> = (0..12)
        .map(|at| {
            let pace = if at == 3 { 0.08 } else { 0.006 };
            let drive = DriveView {
                queued: at as f64,
                arrival_rate: 60.0,
                failure_rate: 0.02,
                service_time: pace,
                pace,
                ..DriveView::default()
            };
            Share { idx: DriveIdx::from_usize(at), drive, wanted: at as u32 % 3 }
        })
        .collect();
    let policies = Policy::all();
    let (sat_out, persistent) = (DriveSet::first(1), DriveSet::first(2));
    let view = View {
        shares: &shares,
        spare: 2,
        mirror: None,
        arrivals: Arrivals::Independent,
        window: 32.0,
        seen: 3.0,
        extra: 0.0,
        sat_out,
        by_hand: sat_out,
        follows: false,
        persistent,
    };
    let region = Region::new(COUNTING);
    let plans = policies.iter().filter(|policy| policy.decide(&view).aside == sat_out).count();
    let counted = region.change();
    assert!(plans > 0);
    assert_eq!(counted.allocations + counted.reallocations, 0, "{counted:?}");
    drop(std::hint::black_box(Box::new(7)));
    assert_eq!(region.change().allocations, 1, "the counter counts");
}
