//! Tables 1 to 3: what the traces are like, and what can be verified in their idle intervals.

use levelhead_trace::{Answered, Kind, Period, Server, periods};
use levelhead_units::{Bytes, Nanos};

use super::{Input, remarks};
use crate::studies::{Ask, Cell, Drawing, Head, Measured, Row, Study, StudyPlan, Takes, Unit};
use crate::trace_based::{Limit, least_age, verify};

pub(super) const TABLE_1: Study = Study {
    name: "iraw.table1",
    title: "General characteristics of the traces",
    source: "[IRAW08], Table 1 and section 4",
    says: "Drives are idle for 92 to 99 % of the time, in intervals of 88 to 625 ms on average. Almost 40 % \
           of the idle intervals are longer than 100 ms and more than 90 % longer than 10 ms; 1 % of the \
           busy periods are longer than 100 ms.",
    bed: "synthetic traces after the paper's (iraw:web and so on), whole; busy periods and idle intervals \
          from arrivals and departures",
    seeds_quick: 1,
    seeds_full: 3,
    takes: Takes::Traces,
    plan: |ask| Ok(table_1(ask)),
};

pub(super) const TABLE_2: Study = Study {
    name: "iraw.table2",
    title: "Writes verified in idle intervals, unlimited cache",
    source: "[IRAW08], Table 2",
    says: "With verifications of 5 ms, first come first served, and writes given up after 512 idle \
           intervals, 95 to 100 % of the writes are verified with 0.4 to 50 MB of cache.",
    bed: "synthetic traces after the paper's (iraw:web and so on), whole; floor(I / 5 ms) verifications in \
          an idle interval of length I; age: the smallest power of two that loses nothing, at most 512",
    plan: |ask| Ok(table_2(ask)),
    ..TABLE_1
};

pub(super) const TABLE_3: Study = Study {
    name: "iraw.table3",
    title: "Writes verified in idle intervals, 8 MB of cache",
    source: "[IRAW08], Table 3",
    says: "With 8 MB of cache, where the oldest write gives way, 91 to 100 % of the writes are verified.",
    bed: "synthetic traces after the paper's (iraw:web and so on), whole; floor(I / 5 ms) verifications in \
          an idle interval of length I",
    plan: |ask| Ok(table_3(ask)),
    ..TABLE_1
};

/// The cache of Table 3.
const CACHE: Bytes = Bytes::new(8_000_000);

/// What section 4 says of the idle intervals and busy periods of all traces, in percent.
const IDLE_ABOVE_100: f64 = 40.0;
const IDLE_ABOVE_10: f64 = 90.0;
const BUSY_ABOVE_100: f64 = 1.0;

/// Validation rate in percent, age in idle intervals and cache in MB of Table 2.
fn papers_table_2(server: Server) -> [f64; 3] {
    match server {
        Server::Web => [97.0, 512.0, 22.0],
        Server::Email => [100.0, 32.0, 0.4],
        Server::UserAcc => [100.0, 64.0, 1.7],
        Server::CodeDev => [100.0, 256.0, 8.0],
        Server::Sas => [95.0, 512.0, 50.0],
    }
}

/// Validation rate in percent of Table 3.
fn papers_table_3(server: Server) -> f64 {
    match server {
        Server::Web | Server::Sas => 91.0,
        Server::Email | Server::UserAcc | Server::CodeDev => 100.0,
    }
}

/// A plan with one cell an input.
pub(super) fn plan_of(
    ask: &Ask,
    measure: fn(&Input, u64) -> Result<Measured, String>,
    rows: impl Fn(&Input) -> Vec<Row>,
) -> StudyPlan {
    let mut plan = StudyPlan { remarks: remarks(ask), ..StudyPlan::default() };
    for input in Input::all(ask) {
        plan.rows.extend(rows(&input));
        plan.cells.push(Cell::new(input.name.clone(), move |seed| measure(&input, seed)));
    }
    plan
}

/// Bars of these metrics beside the paper's, where the paper has them.
pub(super) fn draw(plan: &mut StudyPlan, ask: &Ask, title: &str, axis: &str, metrics: &[&str]) {
    if ask.traces.is_empty() {
        let names: Vec<(String, String)> =
            Server::ALL.map(|server| (server.name().to_owned(), server.name().to_owned())).to_vec();
        plan.drawings.push(Drawing::beside_paper(title, axis, metrics, &names));
    }
}

fn table_1(ask: &Ask) -> StudyPlan {
    let rows = |input: &Input| {
        let published = input.server().map(Server::published);
        let row = |metric: &str, unit, paper: Option<f64>| {
            Row::of(input.name.clone(), metric, unit).maybe_paper(paper)
        };
        let length = match published {
            Some(published) => {
                let (cell, papers) = (input.name.clone(), published.length.as_millis_f64());
                let head = Head::new(cell.clone(), "length");
                Row::new(head, Unit::Times, move |seed| seed.get(&cell, "length") / papers)
                    .paper(1.0)
            }
            None => row("length", Unit::Millis, None),
        };
        let percent = |share: levelhead_units::Ratio| share.get() * 100.0;
        let of_all = |papers: f64| published.map(|_| papers);
        vec![
            length,
            row("idle", Unit::Percent, published.map(|one| percent(one.idle))),
            row("idle interval", Unit::Millis, published.map(|one| one.idle_mean.as_millis_f64())),
            row("reads", Unit::Percent, published.map(|one| percent(one.reads))),
            row("idle above 100 ms", Unit::Percent, of_all(IDLE_ABOVE_100)),
            row("idle above 10 ms", Unit::Percent, of_all(IDLE_ABOVE_10)),
            row("busy above 100 ms", Unit::Percent, of_all(BUSY_ABOVE_100)),
        ]
    };
    let mut plan = plan_of(ask, |input, seed| characteristics(&input.answered(seed)?), rows);
    draw(&mut plan, ask, "Mean idle interval", "ms", &["idle interval"]);
    draw(&mut plan, ask, "Idle", "time (%)", &["idle"]);
    plan
}

/// What Table 1 and section 4 say of a trace.
fn characteristics(requests: &[Answered]) -> Result<Measured, String> {
    let all: Vec<Period> = periods(requests).collect();
    let idle: Vec<Nanos> = all.iter().filter_map(|period| period.idle).collect();
    if idle.is_empty() {
        return Err(format!("no idle interval among {} requests", requests.len()));
    }
    let busy_total: Nanos = all.iter().map(|period| period.busy).sum();
    let idle_total: Nanos = idle.iter().copied().sum();
    let length = busy_total + idle_total;
    let percent = |part: usize, whole: usize| part as f64 / whole as f64 * 100.0;
    let idle_above = |length: u64| {
        let above = idle.iter().filter(|&&idle| idle > Nanos::from_millis(length)).count();
        percent(above, idle.len())
    };
    let busy_above = all.iter().filter(|period| period.busy > Nanos::from_millis(100)).count();
    let reads = requests.iter().filter(|request| request.arrival.kind == Kind::Read).count();
    let (idle_ms, length_ms) = (idle_total.as_millis_f64(), length.as_millis_f64());
    Ok(Measured::default()
        .with("length", length_ms)
        .with("idle", idle_ms / length_ms * 100.0)
        .with("idle interval", idle_ms / idle.len() as f64)
        .with("reads", percent(reads, requests.len()))
        .with("idle above 100 ms", idle_above(100))
        .with("idle above 10 ms", idle_above(10))
        .with("busy above 100 ms", percent(busy_above, all.len())))
}

fn table_2(ask: &Ask) -> StudyPlan {
    let rows = |input: &Input| {
        let papers = input.server().map(papers_table_2);
        [("validated", Unit::Percent), ("age", Unit::Count), ("cache", Unit::Megabytes)]
            .into_iter()
            .enumerate()
            .map(|(at, (metric, unit))| {
                Row::of(input.name.clone(), metric, unit).maybe_paper(papers.map(|all| all[at]))
            })
            .collect()
    };
    let mut plan = plan_of(ask, |input, seed| with_limit_of_age(&input.answered(seed)?), rows);
    draw(&mut plan, ask, "Cache that is needed", "MB", &["cache"]);
    draw(&mut plan, ask, "Validated", "writes (%)", &["validated"]);
    plan
}

fn with_limit_of_age(requests: &[Answered]) -> Result<Measured, String> {
    let age = least_age(requests);
    let found = verify(requests, Limit::Age(age));
    Ok(Measured::default()
        .with("validated", found.percent())
        .with("age", age as f64)
        .with("cache", found.room_max.get() as f64 / 1e6))
}

fn table_3(ask: &Ask) -> StudyPlan {
    let rows = |input: &Input| {
        let papers = input.server().map(papers_table_3);
        vec![Row::of(input.name.clone(), "validated", Unit::Percent).maybe_paper(papers)]
    };
    let mut plan = plan_of(ask, |input, seed| with_limit_of_room(&input.answered(seed)?), rows);
    draw(&mut plan, ask, "Validated with 8 MB", "writes (%)", &["validated"]);
    plan
}

fn with_limit_of_room(requests: &[Answered]) -> Result<Measured, String> {
    let found = verify(requests, Limit::Room(CACHE));
    Ok(Measured::default().with("validated", found.percent()))
}
