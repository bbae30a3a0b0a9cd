//! Small cases by hand, and the rules once more, slowly.

use levelhead_stats::Streams;
use levelhead_trace::Arrival;
use levelhead_units::{Extent, Instant, Lba, Sectors};

use super::*;

/// One busy period of 1 ms: how many writes of 4 KiB, and the idle interval that follows, in ms.
struct Cycle {
    writes: u64,
    idle: u64,
}

/// Cycles with one read each at the end of its busy period, and one at the very end.
fn requests(cycles: &[Cycle]) -> Vec<Answered> {
    let mut now = Instant::ZERO;
    let mut requests = Vec::new();
    let mut add = |at: Instant, kind| {
        let arrival = Arrival { at, kind, extent: Extent::new(Lba::ZERO, Sectors::new(1)) };
        requests.push(Answered { arrival, departure: at + Nanos::from_millis(1) });
    };
    for cycle in cycles {
        for _ in 0..cycle.writes {
            add(now, Kind::Write);
        }
        add(now, Kind::Read);
        now = now + Nanos::from_millis(1 + cycle.idle);
    }
    add(now, Kind::Read);
    requests
}

fn cycles<const N: usize>(parts: [(u64, u64); N]) -> Vec<Answered> {
    requests(&parts.map(|(writes, idle)| Cycle { writes, idle }))
}

const SECTOR: u64 = 4096;
const NO_LIMIT: Limit = Limit::Age(u64::MAX);

/// The rules with nothing kept that could be worked out, one step after another.
fn slowly(requests: &[Answered], limit: Limit) -> Verified {
    struct Entry {
        bytes: u64,
        intervals: u64,
    }
    let mut waiting: Vec<Entry> = Vec::new();
    let mut found = Verified::default();
    let mut idx = 0;
    while idx < requests.len() {
        // The busy period, and how long the drive is idle after it.
        let mut end = requests[idx].departure;
        while idx < requests.len() && requests[idx].arrival.at <= end {
            let Answered { arrival, departure } = requests[idx];
            end = end.max(departure);
            idx += 1;
            if arrival.kind == Kind::Write {
                found.writes += 1;
                waiting.push(Entry { bytes: arrival.extent.sectors.get() * SECTOR, intervals: 0 });
            }
            let room = |waiting: &[Entry]| waiting.iter().map(|entry| entry.bytes).sum::<u64>();
            while matches!(limit, Limit::Room(bytes) if room(&waiting) > bytes.get()) {
                waiting.remove(0);
            }
            found.room_max = found.room_max.max(Bytes::new(room(&waiting)));
        }
        let mut left = requests.get(idx).map(|next| next.arrival.at - end);
        waiting.iter_mut().for_each(|entry| entry.intervals += 1);
        while !waiting.is_empty() && left.is_none_or(|left| left >= VERIFICATION) {
            let entry = waiting.remove(0);
            found.verified += 1;
            found.age_max = found.age_max.max(entry.intervals);
            left = left.map(|left| left - VERIFICATION);
        }
        waiting.retain(|entry| !matches!(limit, Limit::Age(age) if entry.intervals >= age));
    }
    found
}

#[test]
fn an_idle_interval_verifies_as_many_as_fit_whole() {
    // 4 ms none, 5 ms one, 14 ms two; the interval without end takes the last.
    let found = verify(&cycles([(4, 4), (0, 5), (0, 14)]), NO_LIMIT);
    let room_max = Bytes::new(4 * SECTOR);
    assert_eq!(found, Verified { writes: 4, verified: 4, room_max, age_max: 4 });
    assert!((found.percent() - 100.0).abs() < f64::EPSILON);
}

#[test]
fn a_limit_of_age_counts_the_intervals_that_a_write_saw() {
    // Two writes see 4, 9 and 4 ms: one is verified in the second, the other in none of three.
    let busy = cycles([(2, 4), (0, 9), (0, 4), (0, 20)]);
    for (age, verified) in [(1, 0), (2, 1), (3, 1), (4, 2)] {
        assert_eq!(verify(&busy, Limit::Age(age)).verified, verified, "{age}");
    }
    assert_eq!(least_age(&busy), 4);
    let room = |age| verify(&busy, Limit::Age(age)).room_max;
    assert_eq!(room(1), Bytes::new(2 * SECTOR));
}

#[test]
fn a_storm_longer_than_the_limit_keeps_as_many_cycles_as_the_limit_has_intervals() {
    let mut storm: Vec<Cycle> = (0..40).map(|_| Cycle { writes: 3, idle: 4 }).collect();
    storm.push(Cycle { writes: 0, idle: 2_000 });
    let busy = requests(&storm);
    let found = verify(&busy, Limit::Age(16));
    // Of cycle 25 on, counted from 0, each has seen 15 intervals or fewer when the long one comes.
    assert_eq!((found.writes, found.verified), (120, 45));
    assert_eq!(found.room_max, Bytes::new(16 * 3 * SECTOR));
    assert_eq!(least_age(&busy), 64);
}

#[test]
fn a_limit_of_room_gives_up_the_oldest() {
    let limit = Limit::Room(Bytes::new(3 * SECTOR));
    let busy = cycles([(5, 5), (2, 30)]);
    let found = verify(&busy, limit);
    // Two of five give way; one of three is verified; two more bring a fourth, for which the oldest goes.
    assert_eq!((found.writes, found.verified), (7, 1 + 3));
    assert_eq!(found.room_max, Bytes::new(3 * SECTOR));
    let none = verify(&busy, Limit::Room(Bytes::new(SECTOR - 1)));
    assert_eq!((none.verified, none.room_max), (0, Bytes::new(0)));
}

#[test]
fn no_writes_are_all_verified_and_need_no_age() {
    let busy = cycles([(0, 10), (0, 3)]);
    assert_eq!(verify(&busy, NO_LIMIT), Verified::default());
    assert!((Verified::default().percent() - 100.0).abs() < f64::EPSILON);
    assert_eq!(least_age(&busy), 1);
    assert_eq!(least_age(&[]), 1);
}

#[test]
fn the_least_age_is_never_above_512() {
    let storm: Vec<Cycle> = (0..700).map(|_| Cycle { writes: 1, idle: 1 }).collect();
    assert_eq!(least_age(&requests(&storm)), 512);
}

/// Random requests, of which many come together, some overtake others, and some leave no time between.
#[test]
fn the_quick_way_gives_what_the_slow_one_does() {
    for seed in 0..300 {
        let mut rng = Streams::new(seed).stream("requests");
        let mut at = Instant::ZERO;
        let busy: Vec<Answered> = (0..rng.below(120))
            .map(|_| {
                let scale = [0, 1_000_000, 8_000_000, 40_000_000][rng.below(4) as usize];
                at = at + Nanos::new(rng.below(scale + 1));
                let kind = if rng.below(3) == 0 { Kind::Read } else { Kind::Write };
                let extent = Extent::new(Lba::ZERO, Sectors::new(1 + rng.below(4)));
                let departure = at + Nanos::new(rng.below(9_000_000));
                Answered { arrival: Arrival { at, kind, extent }, departure }
            })
            .collect();
        let ages = [1, 2, 3, 5, 8, u64::MAX].map(Limit::Age);
        let rooms = [0, 1, 3, 9, 40].map(|sectors| Limit::Room(Bytes::new(sectors * SECTOR)));
        for limit in ages.into_iter().chain(rooms) {
            assert_eq!(verify(&busy, limit), slowly(&busy, limit), "seed {seed}, {limit:?}");
        }
        let loses = |age: u64| {
            let found = slowly(&busy, Limit::Age(age));
            found.verified < found.writes
        };
        let powers = (0..=9).map(|power| 1 << power);
        let least = powers.clone().find(|&age| !loses(age)).unwrap_or(AGE_MAX);
        assert_eq!(least_age(&busy), least, "seed {seed}");
    }
}
