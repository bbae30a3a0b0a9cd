//! The drive against DiskSim 4.0, request by request, and against its rules written down once more.
//!
//! The oracle's data are not part of the project; where they are absent those tests say so and pass.
//! They hold what DiskSim did with every request of a trace. DiskSim counts the phase in fixed
//! point: its platter falls behind by 2.25 ns a request of 4 KiB, and by 0.25 to 0.28 ns a block.
//! With that lag imitated the two agree within 0.1 us; without it, within the 11 us that 5,000
//! requests add up to, but for a few latencies near nothing that become a revolution.
//!
//! `reference` holds the same rules in floating point; a comparison with it needs no data.
//!
//! Every comparison returns what it found, so that `bugs` can plant mistakes and see them found.

use std::collections::VecDeque;

use levelhead_block::{Durability, ZeroTail};
use levelhead_units::Lba;

use self::data::{Row, rows};
use super::*;
use crate::mechanics::{Arm, Bug, Spindle};
use crate::{CacheMode, Scheduler, Settings};

mod bugs;
mod data;
mod real;
mod recorded;
mod reference;

/// A drive under test: the synthetic disk, perhaps with a mistake in it.
#[derive(Clone, Debug)]
struct Bench {
    profile: Profile,
    scheduler: Scheduler,
    bug: Option<Bug>,
    /// Commands inside the drive beyond those that the comparison asks for.
    depth_extra: u32,
}

/// How far DiskSim's platter falls behind, in hundredths of a nanosecond.
#[derive(Clone, Copy)]
enum Lag {
    None,
    PerRequest(u64),
    PerBlock(u64),
}

/// Phase units in a hundredth of a nanosecond, at 15,000 rpm.
const LAG_UNITS: u64 = 150;

/// What a comparison found wrong.
type Found = Result<(), String>;

/// `Err` with the words, unless the condition holds.
macro_rules! expect {
    ($condition:expr, $($words:tt)*) => {
        let holds = $condition;
        if !holds {
            return Err(format!($($words)*));
        }
    };
}

impl Bench {
    /// The synthetic disk as it should be, with that time for writes to settle.
    fn good(settle: &str) -> Self {
        let text = include_str!("../../../profiles/simple15k.toml");
        let changed =
            text.replace("write_settle = \"0ms\"", &format!("write_settle = \"{settle}\""));
        assert!(settle == "0ms" || changed != text);
        let profile = Profile::parse(&changed).unwrap();
        Self { profile, scheduler: Scheduler::SOONEST, bug: None, depth_extra: 0 }
    }

    fn drive(&self, queue_depth: u32) -> Drive {
        let settings = Settings {
            queue_depth: queue_depth + self.depth_extra,
            scheduler: self.scheduler,
            ..Settings::PLAIN
        };
        let mut drive = Drive::new(self.profile.clone(), settings, Streams::new(0), "oracle")
            .unwrap()
            .with_angle(Ratio::ZERO);
        drive.disk.mechanics.bug = self.bug;
        drive
    }
}

impl Row {
    fn command(&self) -> Command {
        assert_eq!((self.block % 8, self.blocks % 8), (0, 0));
        let extent = Extent::new(Lba::new(self.block / 8), Sectors::new(self.blocks / 8));
        if self.is_read {
            Command::Read { extent, effort: Effort::Full }
        } else {
            let (durability, zero_tail) = (Durability::Durable, ZeroTail::None);
            Command::Write { extent, durability, zero_tail }
        }
    }
}

/// The completions of all rows: a host with a first-come queue in front of the drive, which refills
/// the drive after it has chosen its next command.
fn replay(drive: &mut Drive, rows: &[Row], lag: Lag) -> Vec<Completion> {
    let mut host: VecDeque<usize> = VecDeque::new();
    let mut arrivals = 0..rows.len();
    let mut next = arrivals.next();
    let (mut completions, mut behind) = (Vec::new(), 0);
    loop {
        let arrival = next.map(|at| rows[at].arrival);
        let now = match (arrival, drive.deadline()) {
            (None, None) => break,
            (Some(arrival), Some(deadline)) => arrival.min(deadline),
            (Some(now), None) | (None, Some(now)) => now,
        };
        if drive.deadline() == Some(now) {
            let ServiceState::Busy(active) = &drive.state else {
                panic!("a deadline and nothing busy")
            };
            behind += match lag {
                Lag::None => 0,
                Lag::PerRequest(lag) => lag * LAG_UNITS,
                Lag::PerBlock(lag) => lag * LAG_UNITS * rows[active.completion.id as usize].blocks,
            };
            drive.disk.mechanics.spindle = Spindle::new(15_000, (TURN - behind % TURN) % TURN);
            drive.handle_timeout(now);
            completions.extend(std::iter::from_fn(|| drive.poll()));
        }
        if arrival == Some(now) {
            host.extend(next);
            next = arrivals.next();
        }
        while drive.has_room()
            && let Some(at) = host.pop_front()
        {
            drive.handle_submit(now, at as u64, rows[at].command(), at as u64);
        }
    }
    assert_eq!(completions.len(), rows.len());
    completions
}

fn millis(at: Instant) -> f64 {
    (at - Instant::ZERO).as_millis_f64()
}

fn mean_response(done: &[Completion], rows: &[Row]) -> f64 {
    let response = |done: &Completion| millis(done.ended) - millis(rows[done.id as usize].arrival);
    done.iter().map(response).sum::<f64>() / done.len() as f64
}

/// The response below which that share of all lie.
fn quantile(mut responses: Vec<f64>, share: f64) -> f64 {
    responses.sort_unstable_by(f64::total_cmp);
    responses[((responses.len() - 1) as f64 * share).round() as usize]
}

/// T1 and T2: places exactly, seeks to the nanosecond.
fn places_and_seeks(bench: &Bench, name: &str) -> Found {
    let Some(rows) = rows(name) else { return Ok(()) };
    let drive = bench.drive(1);
    for (at, row) in rows.iter().enumerate() {
        let position = drive.disk.geometry.position(row.block);
        if row.blocks <= position.run.into() {
            let found = (position.cylinder, position.head, position.block);
            expect!(found == row.place, "{name}, row {at}: {found:?}, not {:?}", row.place);
            let reach = drive.disk.mechanics.reach(row.from, &position, Pass::Read);
            // DiskSim cuts off what this rounds.
            let seek = (row.seek * 1e6).round() as u64;
            expect!(reach.get().abs_diff(seek) <= 1, "{name}, row {at}: {reach}, not {seek} ns");
        }
    }
    Ok(())
}

/// T3: first come first served.
fn in_order(bench: &Bench, name: &str) -> Found {
    let Some(rows) = rows(name) else { return Ok(()) };
    let lagging = replay(&mut bench.drive(1), &rows, Lag::PerRequest(225));
    for (done, row) in lagging.iter().zip(&rows) {
        let error = (millis(done.ended) - row.end).abs();
        expect!(error <= 1e-4, "{name}, row {}: off by {error} ms", done.id);
    }
    let exact = replay(&mut bench.drive(1), &rows, Lag::None);
    let (mut off, mut oracle) = (0, 0.0);
    for (done, row) in exact.iter().zip(&rows) {
        let error = (millis(done.ended) - row.end).abs();
        off += u32::from(error > 0.015);
        // In revolutions of 4 ms.
        let error = (error - (error / 4.0).round() * 4.0).abs();
        expect!(error <= 0.015, "{name}, row {}: off by {error} ms", done.id);
        oracle += (row.end - millis(row.arrival)) / rows.len() as f64;
    }
    expect!(off <= 10, "{name}: {off} rows off by more than the lag");
    let mean = mean_response(&exact, &rows);
    expect!((mean / oracle - 1.0).abs() < 1e-3, "{name}: mean {mean}, not {oracle} ms");
    eprintln!("{name}: {off} of {} rows off by more than 15 us, mean {mean:.4} ms", rows.len());
    Ok(())
}

/// T4: the share of requests that end at the same place in the order, and the responses.
fn reordered(bench: &Bench, name: &str, queue_depth: u32) -> Found {
    let Some(rows) = rows(name) else { return Ok(()) };
    for (lag, same_least, mean_error) in
        [(Lag::PerRequest(225), 4_990, 1e-4), (Lag::None, 4_925, 5e-3)]
    {
        let done = replay(&mut bench.drive(queue_depth), &rows, lag);
        let same =
            (0..).zip(&done).filter(|(at, done)| rows[done.id as usize].order == *at).count();
        expect!(same >= same_least, "{name}: {same} of {} in the same order", rows.len());
        let responses: Vec<f64> = done
            .iter()
            .map(|done| millis(done.ended) - millis(rows[done.id as usize].arrival))
            .collect();
        let oracle: Vec<f64> = rows.iter().map(|row| row.end - millis(row.arrival)).collect();
        let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
        let (found, wanted) = (mean(&responses), mean(&oracle));
        expect!((found / wanted - 1.0).abs() < mean_error, "{name}: mean {found}, not {wanted} ms");
        eprintln!("{name}: {same} of {} in the same order, mean {found:.4} ms", rows.len());
        for (share, error) in [(0.5, 0.005), (0.95, 0.01), (0.99, 0.01)] {
            let found = quantile(responses.clone(), share);
            let wanted = quantile(oracle.clone(), share);
            let off = (found / wanted - 1.0).abs();
            expect!(off < error, "{name}: quantile {share} is {found}, not {wanted} ms");
        }
    }
    Ok(())
}

/// T5: sizes up to 256 KiB, reads and writes, on the disk whose writes settle.
fn mixed(bench: &Bench) -> Found {
    let Some(rows) = rows("oracle_mixed.csv") else { return Ok(()) };
    let done = replay(&mut bench.drive(1), &rows, Lag::PerBlock(25));
    let mut worst = 0.0_f64;
    for (done, row) in done.iter().zip(&rows) {
        let error = (done.service.as_millis_f64() - (row.end - row.start)).abs();
        expect!(error <= 0.005, "oracle_mixed, row {}: off by {error} ms", done.id);
        worst = worst.max(error);
    }
    eprintln!("oracle_mixed: every service within {:.1} us", worst * 1e3);
    Ok(())
}

/// The rules once more, without data.
fn rules(bench: &Bench, seed: u64, queue_depth: u32, max_sectors: u64) -> Found {
    let gap = if queue_depth == 1 { 50_000_000 } else { 3_000_000 };
    let trace = reference::trace(seed, 1_500, gap, max_sectors);
    let ends = reference::ends(
        &trace,
        &Bench::good("0ms").drive(1).disk.mechanics.seek,
        queue_depth as usize,
    );
    let done = replay(&mut bench.drive(queue_depth), &trace, Lag::None);
    for (at, (done, (id, end))) in done.iter().zip(&ends).enumerate() {
        let found = (done.id as usize, millis(done.ended));
        expect!(found.0 == *id, "seed {seed}, end {at} is request {}, not {id}", found.0);
        expect!(
            (found.1 - end).abs() < 1e-4,
            "seed {seed}, request {id}: {} ms, not {end}",
            found.1
        );
    }
    Ok(())
}

#[track_caller]
fn check(found: Found) {
    if let Err(words) = found {
        panic!("{words}");
    }
}

#[test]
fn places_and_seeks_are_those_of_disksim() {
    for name in ["low", "mid", "mid_sptf32", "high_sptf8"] {
        check(places_and_seeks(&Bench::good("0ms"), &format!("oracle_{name}.csv")));
    }
}

#[test]
fn requests_in_order_end_when_disksim_says() {
    check(in_order(&Bench::good("0ms"), "oracle_low.csv"));
    check(in_order(&Bench::good("0ms"), "oracle_mid.csv"));
}

#[test]
fn waiting_requests_are_served_in_the_order_of_disksim() {
    check(reordered(&Bench::good("0ms"), "oracle_high_sptf8.csv", 8));
    check(reordered(&Bench::good("0ms"), "oracle_mid_sptf32.csv", 32));
}

#[test]
fn long_requests_and_writes_take_as_long_as_on_disksim() {
    check(mixed(&Bench::good("0.3ms")));
}

#[test]
fn drive_keeps_the_rules_as_they_are_written_down_once_more() {
    for seed in 0..4 {
        check(rules(&Bench::good("0.3ms"), seed, 1, 1));
        check(rules(&Bench::good("0.3ms"), seed, 1, 64));
        check(rules(&Bench::good("0.3ms"), seed, 8, 1));
    }
}

#[test]
fn single_reads_take_what_a_calculation_by_hand_says() {
    // A request at 0 ms, with the arm over the first cylinder and the platter at angle 0.
    let service = |block| {
        let mut drive = Bench::good("0ms").drive(1);
        let row = Row { block, blocks: 8, is_read: true, ..reference::trace(0, 1, 1, 1).remove(0) };
        drive.handle_submit(Instant::ZERO, 0, row.command(), 0);
        drive.deadline().unwrap() - Instant::ZERO
    };
    // Under the head at once: 8 of 1200 blocks of 4 ms.
    assert_eq!(service(0), Nanos::new(26_666));
    // Half a revolution on.
    assert_eq!(service(600), Nanos::new(2_026_666));
    // The next head is turned by 120 of 1200 blocks, a tenth of a revolution: the switch takes
    // 0.35 ms and the block comes at 0.4 ms.
    assert_eq!(service(1_200), Nanos::new(426_666));
    // Its block 1080 stands where block 0 of the first head does, and has passed.
    assert_eq!(service(1_200 + 1_080), Nanos::new(4_026_666));
    // The next cylinder: three track skews and one cylinder skew, 540 blocks, 1.8 ms. One
    // cylinder takes 0.5525 ms.
    assert_eq!(service(4_800), Nanos::new(1_826_666));
    // The first block of the second zone, 14,000 cylinders away, at angle 0. Whatever the seek
    // takes, less than a revolution: the block comes at 4 ms, and 8 of 1104 take 28,985 ns.
    assert_eq!(service(67_200_000), Nanos::new(4_028_985));
}
