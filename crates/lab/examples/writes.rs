//! Writes with and without a journal, in virtual time: `writes ARRAY LOAD..`, where a load is a synthetic one, and
//! `LOAD@N` keeps N of its requests outstanding: `writes raid5:5+1,chunk=64KiB size=4KiB,interval=1ms,count=6000,reads=0%@32`.
//!
//! In the environment, `SEQ=0.5` writes in a row from the middle of the array on, `FROM=8` announces from 8 codewords on,
//! and `FROM=none` logs everything. `TROUBLE=gone`, `TROUBLE=slow:10` and `TROUBLE=hang` (from 5 s on, for 30 s) are the first
//! drive's, and then the array has the journal in both runs and the drive is gone in the first one. `CACHE=on` lets drives answer
//! from their memory, `SEED=7` is another seed than 1, `SLICES=5` prints means and maxima of every 5 s.

use std::sync::Arc;

use levelhead_array::journal::rules::Rules;
use levelhead_array::reserve::{Division, Use};
use levelhead_array::{Content, HostOrder, JournalSettings, Left, Policy, Spec};
use levelhead_drive::{CacheMode, Faults, Profile};
use levelhead_lab::replay::{self, Hang, Run, Sending};
use levelhead_lab::{World, WorldSettings};
use levelhead_stats::{Streams, Summary};
use levelhead_trace::Workload;
use levelhead_units::{DriveIdx, Instant, Nanos, Sectors};

/// What is wrong with the first drive.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    None,
    Gone,
    Slower(f64),
    Hangs,
}

impl Trouble {
    fn faults(self) -> Faults {
        match self {
            Self::None | Self::Hangs => Faults::NONE,
            Self::Gone => Faults { death: Some(Instant::ZERO), ..Faults::NONE },
            Self::Slower(slowdown) => Faults { slowdown, ..Faults::NONE },
        }
    }

    fn hang(self) -> Option<Hang> {
        let (from, time) = (Instant::ZERO + Nanos::from_secs(5), Nanos::from_secs(30));
        matches!(self, Self::Hangs).then_some(Hang { drive: DriveIdx::new(0), from, time })
    }
}

/// One run.
#[derive(Clone, Copy, Debug)]
struct Side {
    with_journal: bool,
    trouble: Trouble,
}

fn sides() -> [Side; 2] {
    let plain = |with_journal| Side { with_journal, trouble: Trouble::None };
    let beside = |trouble| {
        let gone = Side { with_journal: true, trouble: Trouble::Gone };
        [gone, Side { with_journal: true, trouble }]
    };
    match std::env::var("TROUBLE").as_deref() {
        Err(_) => [plain(false), plain(true)],
        Ok("gone") => beside(Trouble::Gone),
        Ok("hang") => beside(Trouble::Hangs),
        Ok(text) => {
            let factor = text.strip_prefix("slow:").expect("TROUBLE is gone, hang or slow:FACTOR");
            beside(Trouble::Slower(factor.parse().unwrap()))
        }
    }
}

fn settings(spec: Spec, side: Side, seed: u64) -> WorldSettings {
    let profile = Arc::new(Profile::shipped("nearline-2tb").unwrap());
    let cache = match std::env::var("CACHE").as_deref() {
        Ok("on") => CacheMode::WriteBack,
        _ => CacheMode::Off,
    };
    let drive =
        |faults| levelhead_drive::Settings { cache, faults, ..levelhead_drive::Settings::PLAIN };
    let others = std::iter::repeat_n(Faults::NONE, spec.drives() - 1);
    let plain = WorldSettings {
        spec,
        policy: Policy::DEFAULT,
        window: 32,
        order: HostOrder::Elevator,
        content: Content::Absent,
        profile,
        drives: std::iter::once(side.trouble.faults()).chain(others).map(drive).collect(),
        area: None,
        journal: None,
        seed,
    };
    let size = {
        let world = World::new(&plain).unwrap();
        world.array().layout().stripes() * spec.chunk().get()
    };
    let division = Division::of(&spec, Sectors::new(size)).unwrap();
    let pieces = division
        .reserved(Sectors::new(size))
        .into_iter()
        .filter(|place| place.purpose == Use::Journal)
        .map(|place| place.extent)
        .collect();
    let (floor, left, rules) = (1, Left::Drained, Rules::ALL);
    let intents_from =
        std::env::var("FROM").map_or(JournalSettings::INTENTS_FROM, |from| from.parse().ok());
    let region_min = JournalSettings::REGION_MIN;
    let journal =
        JournalSettings { pieces, lists: None, floor, left, intents_from, region_min, rules };
    WorldSettings {
        area: Some(division.area.clone()),
        journal: side.with_journal.then_some(journal),
        ..plain
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let spec: Spec = args[0].parse().unwrap();
    for load in &args[1..] {
        let (load, closed) = match load.split_once('@') {
            Some((load, depth)) => (load, Some(depth.parse::<u32>().unwrap())),
            None => (load.as_str(), None),
        };
        let workload: Workload = load.parse().unwrap();
        for side in sides() {
            let seed = std::env::var("SEED").map_or(1, |seed| seed.parse().unwrap());
            let settings = settings(spec, side, seed);
            let size = World::new(&settings).unwrap().size();
            let mut arrivals = workload.generate(size, Streams::new(seed)).unwrap();
            if let Ok(part) = std::env::var("SEQ") {
                let part: f64 = part.parse().unwrap();
                let mut at = Sectors::new((size.get() as f64 * part) as u64 / 80 * 80);
                for arrival in &mut arrivals {
                    arrival.extent.lba = levelhead_units::Lba::ZERO + at;
                    at += arrival.extent.sectors;
                }
            }
            let sending = closed.map_or(Sending::Open, |depth| Sending::Closed(depth as usize));
            let hang = side.trouble.hang();
            let ask = replay::Ask { sending, hang, ..replay::Ask::open(&arrivals) };
            let run = replay::run(&settings, &ask, &mut |_| {}).unwrap();
            tell(load, side, &run, arrivals.len() as u64 / 10);
        }
    }
}

fn tell(load: &str, side: Side, run: &Run, first: u64) {
    let all = Summary::of(&mut run.latencies(|index| index >= first));
    println!(
        "{load} {side:?}: mean {:.2} p50 {:.2} p99 {:.2} ms, {:.1}/s, {:?}",
        all.mean.as_millis_f64(),
        all.p50.as_millis_f64(),
        all.p99.as_millis_f64(),
        run.rate(),
        run.end,
    );
    if side.with_journal {
        let counters = run.counters.table();
        let counted: Vec<String> = counters
            .filter(|counter| counter.name.starts_with("journal"))
            .map(|counter| format!("{} {}", counter.name, counter.value))
            .collect();
        println!("  {}", counted.join(", "));
    }
    if let Ok(seconds) = std::env::var("SLICES") {
        let slice = Nanos::from_secs(seconds.parse().unwrap()).get();
        let mut slices: std::collections::BTreeMap<u64, Vec<Nanos>> = Default::default();
        for one in &run.served {
            slices.entry(one.at.as_nanos() / slice).or_default().push(one.latency);
        }
        for (at, mut latencies) in slices {
            let (count, some) = (latencies.len(), Summary::of(&mut latencies));
            let (mean, p99) = (some.mean.as_millis_f64(), some.p99.as_millis_f64());
            println!(
                "  from {} s: {count} answers, mean {mean:.1} p99 {p99:.1} ms",
                at * slice / 1_000_000_000
            );
        }
    }
}
