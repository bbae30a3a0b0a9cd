//! How often an array asks for memory for one request: counted, so that what an array hour has gained cannot be lost unseen.

use std::alloc::System;

use bench::drive::Workload;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static COUNTING: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What this number of requests asks for, the array's own set-up included: new pieces of memory, and pieces made larger.
fn allocations(workload: Workload, requests: u64) -> usize {
    let mut marks = Vec::with_capacity(2);
    let region = Region::new(COUNTING);
    workload.run(requests, &mut || {
        let so_far = region.change();
        marks.push(so_far.allocations + so_far.reallocations);
    });
    marks[1] - marks[0]
}

/// Pieces of memory a thousand requests, without the set-up.
#[track_caller]
fn check(workload: Workload, most: usize) {
    let [short, long] = [2_000, 4_000].map(|requests| allocations(workload, requests));
    let per_thousand = (long - short) / 2;
    eprintln!("{}: {per_thousand} allocations a thousand requests", workload.name());
    assert!(per_thousand <= most, "{}: {per_thousand}, at most {most}", workload.name());
    assert!(short > 0, "the counter counts what the set-up asks for");
}

/// This is the only test here: another one's thread would allocate meanwhile.
#[test]
fn a_request_of_an_array_hour_asks_for_little_memory() {
    check(Workload::ArrayHour8k, 60);
    check(Workload::ArrayHour40k, 200);
}
