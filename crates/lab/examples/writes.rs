//! Writes with and without a journal, in virtual time: `writes ARRAY LOAD..`, where a load is a synthetic one, and
//! `LOAD@N` keeps N of its requests outstanding: `writes raid5:5+1,chunk=64KiB size=4KiB,interval=1ms,count=6000,reads=0%@32`.
//!
//! In the environment, `SEQ=0.5` writes in a row from the middle of the array on, `FROM=8` announces from 8 codewords on,
//! and `FROM=none` logs everything.

use std::sync::Arc;

use levelhead_array::journal::rules::Rules;
use levelhead_array::reserve::{Division, Use};
use levelhead_array::{Content, HostOrder, JournalSettings, Left, Policy, Spec};
use levelhead_drive::{CacheMode, Faults, Profile, QUEUE_DEPTH_MAX, Scheduler};
use levelhead_lab::replay::{self, Sending};
use levelhead_lab::{World, WorldSettings};
use levelhead_stats::{Streams, Summary};
use levelhead_trace::Synthetic;
use levelhead_units::Sectors;

fn settings(spec: Spec, with_journal: bool, seed: u64) -> WorldSettings {
    let profile = Arc::new(Profile::shipped("nearline-2tb").unwrap());
    let drive = levelhead_drive::Settings {
        queue_depth: QUEUE_DEPTH_MAX,
        scheduler: Scheduler::Sptf { age_weight: 0.0 },
        cache: CacheMode::Off,
        faults: Faults::NONE,
        size: None,
    };
    let plain = WorldSettings {
        spec,
        policy: Policy::Normal,
        window: 4,
        order: HostOrder::Elevator,
        content: Content::Absent,
        profile,
        drives: vec![drive],
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
    let journal = JournalSettings { pieces, floor, left, intents_from, rules };
    WorldSettings {
        area: Some(division.area.clone()),
        journal: with_journal.then_some(journal),
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
        let synthetic: Synthetic = load.parse().unwrap();
        for with_journal in [false, true] {
            let settings = settings(spec, with_journal, 1);
            let size = World::new(&settings).unwrap().size();
            let mut arrivals = synthetic.generate(size, Streams::new(1)).unwrap();
            if let Ok(part) = std::env::var("SEQ") {
                let part: f64 = part.parse().unwrap();
                let mut at = Sectors::new((size.get() as f64 * part) as u64 / 80 * 80);
                for arrival in &mut arrivals {
                    arrival.extent.lba = levelhead_units::Lba::ZERO + at;
                    at += arrival.extent.sectors;
                }
            }
            let sending = closed.map_or(Sending::Open, |depth| Sending::Closed(depth as usize));
            let ask = replay::Ask { sending, ..replay::Ask::open(&arrivals) };
            let run = replay::run(&settings, &ask, &mut |_| {}).unwrap();
            let first = arrivals.len() as u64 / 10;
            let all = Summary::of(&mut run.latencies(|index| index >= first));
            println!(
                "{load} {closed:?} journal {with_journal}: mean {:.2} p50 {:.2} p99 {:.2} ms, {:.1}/s, {:?}",
                all.mean.as_millis_f64(),
                all.p50.as_millis_f64(),
                all.p99.as_millis_f64(),
                run.rate(),
                run.end,
            );
            if with_journal {
                let counters = run.counters.table();
                let counted: Vec<String> = counters
                    .filter(|counter| counter.name.starts_with("journal"))
                    .map(|counter| format!("{} {}", counter.name, counter.value))
                    .collect();
                println!("  {}", counted.join(", "));
            }
        }
    }
}
