//! What a rebuild costs those who read meanwhile, and how fast it is.

use std::sync::Arc;

use levelhead_array::{HostOrder, Policy, RebuildWish, RequestId};
use levelhead_block::{Command, Durability, Effort, ZeroTail};
use levelhead_drive::{CacheMode, Drive, Faults, Profile, QUEUE_DEPTH_MAX, Scheduler, Verify};
use levelhead_stats::{Streams, quantile_of_sorted};
use levelhead_trace::Synthetic;
use levelhead_units::{Bytes, DriveIdx, Extent, Instant, Lba, Nanos, Sectors};

use super::plan::{Cell, Head, Measured, Row, StudyPlan, Unit};
use super::{Ask, Bed, Study, Takes};
use crate::World;

pub(super) const REBUILD: Study = Study {
    name: "array.rebuild",
    title: "Rebuild beside clients",
    source: "ours",
    says: "How fast a lost drive's place is filled: while no clients are about, compared with the drive's sequential \
           rate; beside 40 kB reads every 8 ms, with the 99th percentile of these reads over that of the degraded \
           array without a rebuild, for every minimum rate that is asked for.",
    bed: "raid5:5+1, chunk 64 KiB, of nearline-2tb (7200 rpm, no cache), SPTF in the drive (age weight 0), window 32, \
          host order elevator, policy level; Poisson arrivals at uniformly random sectors; drive 0 is new and empty",
    seeds_quick: 2,
    seeds_full: 20,
    takes: Takes::Nothing,
    plan: |ask| Ok(plan(ask)),
};

const ARRAY: &str = "raid5:5+1,chunk=64KiB";
const DRIVE: &str = "nearline-2tb";

/// The drive that was lost.
const LOST: DriveIdx = DriveIdx::new(0);

/// Minimum rates, in MB/s.
const RATES: [u64; 6] = [2, 5, 10, 20, 40, 80];

/// Sectors of one sequential write: as many as one step of a rebuild has of each drive.
const STREAM: Sectors = Sectors::new(1 << 10);

/// Such writes inside a drive at a time.
const STREAMED: u32 = 8;

const IDLE: &str = "no clients";
const SEQUENTIAL: &str = "one drive, written from its first sector on";
const DEGRADED: &str = "reads, no rebuild";
const YIELDING: &str = "reads, rebuild without a minimum";

fn at_least(rate: u64) -> String {
    format!("reads, rebuild at {rate} MB/s at least")
}

fn plan(ask: &Ask) -> StudyPlan {
    let mut plan = StudyPlan::default();
    let secs = ask.pick(20, 60);
    let count: u64 = ask.pick(4_000, 30_000);
    plan.cells.push(Cell::new(SEQUENTIAL, move |seed| sequential(seed, secs)));
    plan.cells.push(Cell::new(IDLE, move |seed| idle(seed, secs)));
    plan.cells.push(Cell::new(DEGRADED, move |seed| beside(seed, count, None)));
    let wishes = [(YIELDING.to_owned(), None)].into_iter();
    let wishes: Vec<(String, Option<u64>)> =
        wishes.chain(RATES.map(|rate| (at_least(rate), Some(rate)))).collect();
    let row = |cell: &str| Row::of(cell.to_owned(), "rate", Unit::Count);
    plan.rows.extend([row(SEQUENTIAL), row(IDLE)]);
    let head = Head::new(IDLE, "rate over the drive's sequential one");
    plan.rows.push(Row::ratio(head, "rate", [IDLE, SEQUENTIAL].map(str::to_owned)));
    for metric in ["mean", "p99"] {
        plan.rows.push(Row::of(DEGRADED, metric, Unit::Millis));
    }
    for (name, rate) in wishes {
        let wish = RebuildWish {
            rate_min: rate.map(|rate| Bytes::new(rate * 1_000_000)),
            is_paused: false,
        };
        plan.cells.push(Cell::new(name.clone(), move |seed| beside(seed, count, Some(wish))));
        plan.rows.push(row(&name));
        plan.rows.push(Row::of(name.clone(), "p99", Unit::Millis));
        for metric in ["mean", "p99"] {
            let head = Head::new(name.clone(), format!("{metric} over no rebuild"));
            plan.rows.push(Row::ratio(head, metric, [name.clone(), DEGRADED.to_owned()]));
        }
    }
    plan.remarks = vec!["The rates are MB/s of the drive that is filled.".to_owned()];
    plan
}

/// The degraded array; drive 0 is dead from the start.
fn world(seed: u64) -> Result<World, String> {
    let dead = Faults { death: Some(Instant::ZERO), ..Faults::NONE };
    let bed = Bed::paper().with_array(ARRAY).with_queue(32, HostOrder::Elevator);
    let bed = Bed { drive: DRIVE, faults: vec![dead, Faults::NONE], ..bed };
    let settings = bed.world(Policy::DEFAULT, seed)?;
    let mut world = World::new(&settings).map_err(|error| error.to_string())?;
    world.kill(Instant::ZERO, LOST);
    world.lose(Instant::ZERO, LOST);
    Ok(world)
}

/// MB of the drive's own data that are below its front.
fn filled(world: &World) -> f64 {
    let array = world.array();
    assert!(world.losses().len() == 1, "the new drive is lost, too");
    let front = array.rebuild().map_or(array.layout().stripes(), |progress| progress.front);
    (front * array.layout().spec().chunk().bytes().get()) as f64 / 1e6
}

fn begin(world: &mut World, wish: RebuildWish) -> Result<(), String> {
    world.wish_of_rebuild(Instant::ZERO, wish);
    world.replace(Instant::ZERO, LOST).map_err(|problem| format!("{problem:?}"))
}

fn idle(seed: u64, secs: u64) -> Result<Measured, String> {
    let mut world = world(seed)?;
    begin(&mut world, RebuildWish::default())?;
    let end = Instant::ZERO + Nanos::from_secs(secs);
    while world.next_at() <= end {
        world.step();
    }
    Ok(Measured::default().with("rate", filled(&world) / secs as f64))
}

fn beside(seed: u64, count: u64, wish: Option<RebuildWish>) -> Result<Measured, String> {
    let mut world = world(seed)?;
    if let Some(wish) = wish {
        begin(&mut world, wish)?;
    }
    let load: Synthetic = format!("size=40KiB,interval=8ms,count={count}")
        .parse()
        .map_err(|error| format!("{error}"))?;
    let arrivals =
        load.generate(world.size(), Streams::new(seed)).map_err(|error| error.to_string())?;
    let mut latencies: Vec<Nanos> = Vec::new();
    let first = arrivals.len() / 10;
    let note = |world: &mut World, latencies: &mut Vec<Nanos>| {
        for (at, answer) in world.take_answers() {
            let index = answer.request.0 as usize;
            if index >= first {
                latencies.push(at.saturating_since(arrivals[index].at));
            }
        }
    };
    for (index, arrival) in (0_u64..).zip(&arrivals) {
        while world.next_at() < arrival.at {
            world.step();
        }
        let command = Command::Read { extent: arrival.extent, effort: Effort::Full };
        world.submit(arrival.at, RequestId(index), command, None);
        note(&mut world, &mut latencies);
    }
    let span = arrivals.last().map_or(0.0, |last| last.at.as_nanos() as f64 / 1e9);
    let rate = if wish.is_some() { filled(&world) / span } else { 0.0 };
    while latencies.len() < arrivals.len() - first {
        world.step();
        note(&mut world, &mut latencies);
    }
    latencies.sort_unstable();
    let quantile = |share| quantile_of_sorted(&latencies, share).as_millis_f64();
    let mean =
        latencies.iter().map(|one| one.as_millis_f64()).sum::<f64>() / latencies.len() as f64;
    Ok(Measured::default()
        .with("mean", mean)
        .with("p50", quantile(0.5))
        .with("p99", quantile(0.99))
        .with("p99.9", quantile(0.999))
        .with("rate", rate))
}

/// A drive that is written to from its first sector on, with enough commands inside it that it never waits.
fn sequential(seed: u64, secs: u64) -> Result<Measured, String> {
    let profile =
        Profile::shipped(DRIVE).ok_or_else(|| format!("'{DRIVE}' is not a drive profile"))?;
    let settings = levelhead_drive::Settings {
        queue_depth: QUEUE_DEPTH_MAX,
        scheduler: Scheduler::Sptf { age_weight: 0.0 },
        cache: CacheMode::Off,
        retention: None,
        verify: Verify::Off,
        faults: Faults::NONE,
        size: None,
    };
    let drive = Drive::new(Arc::new(profile), settings, Streams::new(seed), "drive/0");
    let mut drive = drive.map_err(|error| error.to_string())?;
    let end = Instant::ZERO + Nanos::from_secs(secs);
    let (mut now, mut written, mut next) = (Instant::ZERO, 0, 0);
    let mut send = |drive: &mut Drive, now| {
        let extent = Extent::new(Lba::new(next * STREAM.get()), STREAM);
        let (durability, zero_tail) = (Durability::Cached, ZeroTail::None);
        drive.handle_submit(now, next, Command::Write { extent, durability, zero_tail }, next);
        next += 1;
    };
    (0..STREAMED).for_each(|_| send(&mut drive, now));
    while let Some(at) = drive.deadline().filter(|&at| at <= end) {
        now = at;
        drive.handle_timeout(now);
        while drive.poll().is_some() {
            written += STREAM.bytes().get();
            send(&mut drive, now);
        }
    }
    Ok(Measured::default().with("rate", written as f64 / 1e6 / secs as f64))
}
