//! What it costs that every sector at rest has a checksum which every read verifies.

use levelhead_drive::CacheMode;
use levelhead_trace::Kind;
use levelhead_units::{Nanos, Sectors};

use super::writes::bed::{Load, Places, Protection, Site};
use super::{Ask, Head, Row, Study, StudyPlan, Takes, Unit};
use crate::replay::Sending;

pub(super) const CHECKSUMS: Study = Study {
    name: "array.checksums",
    title: "Checksums: what they cost",
    source: "ours",
    says: "Rate of closed loops and mean of open ones, of an array with a checksum for every sector over the same array \
           without: random reads with no tag sector in memory and with four in five there, small writes, long and \
           sequential reads and writes.",
    bed: "raid5:5+1 and raid6:6+2 with chunks of 64 KiB and our journal over nearline-2tb and nearline-18tb (7200 rpm), \
          caches off, SPTF in the drive (age weight 0), window 32, host order elevator; Poisson arrivals at uniformly \
          random places, or closed loops",
    seeds_quick: 2,
    seeds_full: 10,
    takes: Takes::Nothing,
    plan: |ask| Ok(plan(ask)),
};

/// An array with and without checksums.
#[derive(Clone, Copy, Debug)]
struct Pair {
    name: &'static str,
    without: &'static str,
    with: &'static str,
    drive: &'static str,
    /// Sectors of data of a stripe.
    stripe: u64,
    drives: usize,
    /// What it carries without checksums, a second: the rows `rate` of `random reads, closed loop` and of `small
    /// writes, closed loop`. Open loops are shares of it.
    reads: f64,
    writes: f64,
}

const PAIRS: [Pair; 4] = [
    Pair {
        name: "raid5:5+1, nearline-2tb",
        without: "raid5:5+1,chunk=64KiB",
        with: "raid5:5+1,chunk=64KiB,checksums",
        drive: "nearline-2tb",
        stripe: 5 * 16,
        drives: 6,
        reads: 1_130.0,
        writes: 270.0,
    },
    Pair {
        name: "raid5:5+1, nearline-18tb",
        without: "raid5:5+1,chunk=64KiB",
        with: "raid5:5+1,chunk=64KiB,checksums",
        drive: "nearline-18tb",
        stripe: 5 * 16,
        drives: 6,
        reads: 1_130.0,
        writes: 270.0,
    },
    Pair {
        name: "raid6:6+2, nearline-2tb",
        without: "raid6:6+2,chunk=64KiB",
        with: "raid6:6+2,chunk=64KiB,checksums",
        drive: "nearline-2tb",
        stripe: 6 * 16,
        drives: 8,
        reads: 1_480.0,
        writes: 260.0,
    },
    Pair {
        name: "raid6:6+2, nearline-18tb",
        without: "raid6:6+2,chunk=64KiB",
        with: "raid6:6+2,chunk=64KiB,checksums",
        drive: "nearline-18tb",
        stripe: 6 * 16,
        drives: 8,
        reads: 1_480.0,
        writes: 260.0,
    },
];

/// Reads outstanding for each drive in a closed loop.
const READS_EACH: usize = 32;

/// Small writes outstanding.
const WRITES_OUT: usize = 128;

/// Full stripes of a long request: on every drive it has all sectors of a tag sector.
const STRIPES: u64 = 4;

/// And of one that has parts of two groups.
const STRIPES_PARTLY: u64 = 3;

/// Long requests outstanding.
const STREAMED: usize = 8;

/// Places of which nearly all tag sectors come into memory while the requests that do not count are served.
const FEW: u64 = 300;

fn one(kind: Kind, places: Places, sending: Sending, count: u64) -> Load {
    Load { kind, places, sending, count }
}

/// The loads of an array, and which of their figures are compared.
fn loads(pair: &Pair, ask: &Ask) -> Vec<(&'static str, &'static str, Load)> {
    let (some, many) = (ask.pick(3_000, 12_000), ask.pick(6_000, 20_000));
    let every = |carried: f64, share: f64| Nanos::new((1e9 / (carried * share)) as u64);
    let random = |interval| Places::Random { size: Sectors::new(1), interval };
    let few = |interval| Places::Few { interval, places: FEW, share: 0.8 };
    let long = |stripes| Places::Stripes { place: 0.5, size: Sectors::new(stripes * pair.stripe) };
    let (reads, writes) = (pair.reads, pair.writes);
    let at_once = Sending::Closed(READS_EACH * pair.drives);
    let stream = Sending::Closed(STREAMED);
    let any = Nanos::from_millis(1);
    vec![
        ("random reads, closed loop", "rate", one(Kind::Read, random(any), at_once, many)),
        (
            "random reads, 4 of 5 known, closed loop",
            "rate",
            one(Kind::Read, few(any), at_once, many),
        ),
        (
            "random reads, idle",
            "mean",
            one(Kind::Read, random(every(reads, 0.05)), Sending::Open, some),
        ),
        (
            "random reads, half load",
            "mean",
            one(Kind::Read, random(every(reads, 0.5)), Sending::Open, many),
        ),
        (
            "random reads, 4 of 5 known, half load",
            "mean",
            one(Kind::Read, few(every(reads, 0.5)), Sending::Open, many),
        ),
        (
            "small writes, closed loop",
            "rate",
            one(Kind::Write, random(any), Sending::Closed(WRITES_OUT), some),
        ),
        (
            "small writes, half load",
            "mean",
            one(Kind::Write, random(every(writes, 0.5)), Sending::Open, some),
        ),
        ("sequential reads", "rate", one(Kind::Read, long(STRIPES), stream, some / 3)),
        ("full stripes written", "rate", one(Kind::Write, long(STRIPES), stream, some / 3)),
        (
            "full stripes written, three at a time",
            "rate",
            one(Kind::Write, long(STRIPES_PARTLY), stream, some / 3),
        ),
    ]
}

fn plan(ask: &Ask) -> StudyPlan {
    let mut plan = StudyPlan::default();
    for pair in &PAIRS {
        for (load_name, figure, load) in loads(pair, ask) {
            let cell = |side: &str| format!("{}, {load_name}, {side}", pair.name);
            let sides = [("without", pair.without), ("with", pair.with)];
            for (side, array) in sides {
                let healthy = Site::healthy(Protection::Journal);
                let cache = match load.places {
                    Places::Stripes { .. } => CacheMode::Read,
                    Places::Random { .. } | Places::Few { .. } => CacheMode::Off,
                };
                let site = Site { array, drive: pair.drive, cache, ..healthy };
                plan.cells.push(site.cell(cell(side), &load));
                let unit = if figure == "rate" { Unit::PerSecond } else { Unit::Millis };
                plan.rows.push(Row::of(cell(side), figure, unit));
            }
            let head = Head::new(cell("with"), format!("{figure} over none"));
            plan.rows.push(Row::ratio(head, figure, [cell("with"), cell("without")]));
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::Measured;

    fn measured(array: &'static str, load: &Load) -> Measured {
        let site = Site { array, ..Site::healthy(Protection::Journal) };
        site.cell("", load).measure(7).unwrap()
    }

    /// A read takes no further command, and a small write none while its drives are busy.
    #[test]
    fn checksums_take_no_command_of_their_own_beside_clients() {
        let pair = &PAIRS[0];
        let any = Places::Random { size: Sectors::new(1), interval: Nanos::from_millis(1) };
        let reads = one(Kind::Read, any.clone(), Sending::Closed(8), 200);
        let writes = one(Kind::Write, any, Sending::Closed(64), 600);
        for (load, more) in [(reads, 0.0), (writes, 0.1)] {
            let [without, with] =
                [pair.without, pair.with].map(|array| measured(array, &load).values["commands"]);
            assert!(with <= without + more && with > 0.9, "{without} and {with}");
        }
    }
}
