//! Tables 4 and 5 and Figure 4: what verification needs where nothing limits it, and what it costs the
//! requests.

use levelhead_drive::Verify;
use levelhead_trace::Server;
use levelhead_units::Nanos;

use super::Input;
use super::bed::{Bed, PAPER, ROOM_FOR_ALL, figures};
use super::tables::{TABLE_1, draw, plan_of};
use crate::open_loop::Outcomes;
use crate::studies::{Ask, Measured, Row, Study, StudyPlan, Unit};

const BED: &str = "synthetic requests after the paper's traces (iraw:web and so on), whole, arrival times only, \
    over one \
                   iraw-15k (code-dev: iraw-10k), SPTF, 32 in the drive; 16 MB for reads, writes never in want of \
                   room; verification after 1 ms of idleness, SPTF, not interrupted";

pub(super) const TABLE_4: Study = Study {
    name: "iraw.table4",
    title: "Verification with unlimited cache, simulated",
    source: "[IRAW08], Table 4",
    says: "All writes are verified with 0.7 to 60 MB of cache. A write waits for 8 ms (E-mail) to 5.4 s (Code Dev.) \
           on average.",
    bed: BED,
    plan: |ask| Ok(table_4(ask)),
    ..TABLE_1
};

pub(super) const TABLE_5: Study = Study {
    name: "iraw.table5",
    title: "Throughput with and without verification",
    source: "[IRAW08], Table 5",
    says: "In the worst five minutes the drive ends 0.02 to 2.37 % fewer requests, and 0.00 to 0.08 % on average \
           over the seconds.",
    bed: BED,
    plan: |ask| Ok(table_5(ask)),
    ..TABLE_1
};

pub(super) const FIG_4: Study = Study {
    name: "iraw.fig4",
    title: "Requests delayed by verifications",
    source: "[IRAW08], Fig. 4",
    says: "Fewer than 10 % of the requests find the drive verifying, and wait a few milliseconds for that.",
    bed: BED,
    plan: |ask| Ok(fig_4(ask)),
    ..TABLE_1
};

/// Validation rate in percent, cache in MB and response time in ms of Table 4.
fn papers_table_4(server: Server) -> [f64; 3] {
    match server {
        Server::Web => [100.0, 60.0, 283.0],
        Server::Email => [100.0, 0.7, 8.0],
        Server::UserAcc => [100.0, 2.0, 10.0],
        Server::CodeDev => [100.0, 60.0, 5_435.0],
        Server::Sas => [100.0, 48.0, 1_120.0],
    }
}

/// The largest loss in five minutes, and the mean over the seconds, both in percent, of Table 5.
fn papers_table_5(server: Server) -> [f64; 2] {
    match server {
        Server::Web => [0.53, 0.02],
        Server::Email => [0.11, 0.00],
        Server::UserAcc => [0.02, 0.00],
        Server::CodeDev => [2.37, 0.08],
        Server::Sas => [0.12, 0.00],
    }
}

fn table_4(ask: &Ask) -> StudyPlan {
    let rows = |input: &Input| {
        let papers = input.server().map(papers_table_4);
        [("validated", Unit::Percent), ("cache", Unit::Megabytes), ("response", Unit::Millis)]
            .into_iter()
            .enumerate()
            .map(|(at, (metric, unit))| {
                Row::of(input.name.clone(), metric, unit).maybe_paper(papers.map(|all| all[at]))
            })
            .collect()
    };
    let measure = |input: &Input, seed| {
        Ok(figures(&Bed::new(input, seed)?.run(Verify::Idle(PAPER), ROOM_FOR_ALL)?))
    };
    let mut plan = plan_of(ask, measure, rows);
    draw(&mut plan, ask, "Cache that is needed", "MB", &["cache"]);
    draw(&mut plan, ask, "Time until a write is verified", "ms", &["response"]);
    plan
}

fn table_5(ask: &Ask) -> StudyPlan {
    let rows = |input: &Input| {
        let papers = input.server().map(papers_table_5);
        ["worst 5 minutes", "mean"]
            .into_iter()
            .enumerate()
            .map(|(at, metric)| {
                let row = Row::of(input.name.clone(), metric, Unit::Percent);
                row.maybe_paper(papers.map(|all| all[at]))
            })
            .collect()
    };
    let measure = |input: &Input, seed| {
        let bed = Bed::new(input, seed)?;
        let [with, without] =
            [Verify::Idle(PAPER), Verify::Off].map(|how| bed.run(how, ROOM_FOR_ALL));
        Ok(losses(&with?, &without?))
    };
    let mut plan = plan_of(ask, measure, rows);
    draw(&mut plan, ask, "Throughput lost in the worst five minutes", "%", &["worst 5 minutes"]);
    plan
}

/// By how much throughput is lower in the windows in which it is lower at all: the largest loss of a window of
/// five minutes in percent of what ends there without verification; and what all seconds lose together in
/// percent of all requests.
fn losses(with: &Outcomes, without: &Outcomes) -> Measured {
    let lost = |window| {
        let (with, without) = (with.per_window(window), without.per_window(window));
        let mut with = with.into_iter().chain(std::iter::repeat(0));
        let of = move |without: u64| (without, without.saturating_sub(with.next().unwrap_or(0)));
        without.into_iter().map(of)
    };
    let share = |(all, lost): (u64, u64)| lost as f64 / all.max(1) as f64 * 100.0;
    let worst = lost(Nanos::from_secs(300)).map(share).fold(0.0, f64::max);
    let lost_total: u64 = lost(Nanos::from_secs(1)).map(|(_, lost)| lost).sum();
    let mean = share((without.ended.len() as u64, lost_total));
    Measured::default().with("worst 5 minutes", worst).with("mean", mean)
}

fn fig_4(ask: &Ask) -> StudyPlan {
    let rows = |input: &Input| {
        let row = |metric, unit| Row::of(input.name.clone(), metric, unit);
        vec![
            row("delayed", Unit::Percent),
            row("delay", Unit::Millis),
            row("longest delay", Unit::Millis),
        ]
    };
    let measure = |input: &Input, seed| {
        Ok(figures(&Bed::new(input, seed)?.run(Verify::Idle(PAPER), ROOM_FOR_ALL)?))
    };
    plan_of(ask, measure, rows)
}

#[cfg(test)]
mod tests {
    use levelhead_drive::Counters;
    use levelhead_units::Instant;

    use super::*;

    fn outcomes(seconds: &[u64]) -> Outcomes {
        let at = |&second: &u64| Instant::ZERO + Nanos::from_secs(second);
        Outcomes { ended: seconds.iter().map(at).collect(), counters: Counters::default() }
    }

    #[test]
    fn only_windows_that_lose_count() {
        // The second window loses one of two to the third; two requests end a second later.
        let (with, without) = (outcomes(&[1, 11, 301, 601]), outcomes(&[1, 10, 300, 599]));
        let measured = losses(&with, &without);
        let expected = Measured::default().with("worst 5 minutes", 50.0).with("mean", 75.0);
        assert_eq!(measured, expected);
    }
}
