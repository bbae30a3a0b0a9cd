//! `levelhead-lab plan tail`: percentiles of a read's latency with and without local erasure coding.

use std::path::PathBuf;

use levelhead_planner::code::{Goal, least_redundant};
use levelhead_planner::decode::DecodeTime;
use levelhead_planner::sequential::{self, CaseTwo, Read};
use levelhead_planner::{Bracket, Code, Law, random};
use levelhead_report::{Axis, Column, Figure, Series, Table};
use levelhead_units::Nanos;

use super::answer::{Answer, Row};
use super::{INDEPENDENT, MDS, decode, typed_percent};
use levelhead_app::{AppError, files};

/// What is asked.
#[derive(Clone, Debug)]
pub struct TailAsk {
    /// Sectors of a read.
    pub sectors: u64,
    /// Probability that a sector's first pass fails.
    pub failure_rate: f64,
    /// The code.
    pub code: CodeChoice,
    /// Time in which a sector passes.
    pub sector_time: Nanos,
    /// Time of a retry.
    pub retry_time: Nanos,
    /// Time of decoding.
    pub decoding: Decoding,
    /// The percentiles, as shares.
    pub shares: Vec<f64>,
    /// Short random reads with a queue, instead of one long read.
    pub random: Option<RandomAsk>,
    /// Where an HTML page goes, if anywhere.
    pub report: Option<PathBuf>,
}

/// A code, or how to choose one.
#[derive(Clone, Copy, Debug)]
pub enum CodeChoice {
    /// This one.
    Given(Code),
    /// The least redundancy at this length for this target.
    Least {
        /// Symbols of a codeword.
        length: u64,
        /// What may remain after decoding.
        target: f64,
    },
}

impl CodeChoice {
    /// The code at this failure rate.
    fn at(self, failure_rate: f64) -> Result<Code, AppError> {
        match self {
            Self::Given(code) => Ok(code),
            Self::Least { length, target } => {
                least_redundant(length, Goal { failure_rate, target }).ok_or_else(|| {
                    AppError::usage(format!(
                        "no code of length {length} reaches {target:e} at failure rate \
                         {failure_rate:e}"
                    ))
                })
            }
        }
    }
}

/// Where the time of decoding comes from.
#[derive(Clone, Debug)]
pub enum Decoding {
    /// A formula or a table.
    Given(DecodeTime),
    /// Measured here, now.
    Measured,
}

/// What random reads have besides.
#[derive(Clone, Copy, Debug)]
pub struct RandomAsk {
    /// Requests in the queue.
    pub depth: u64,
    /// Time of moving the head.
    pub seek_time: Nanos,
    /// Failure rate under 256 bytes of zeros, if they are used.
    pub forced_rate: Option<f64>,
}

/// The laws that are shown side by side.
struct Shown {
    name: &'static str,
    law: Law,
    /// Its mass need not be 1: percentiles are summed from below.
    is_papers: bool,
}

/// Percentiles of a read.
///
/// # Errors
///
/// No code meets the target, the code is too weak for a law, or the page cannot be written.
pub fn plan_tail(ask: &TailAsk) -> Result<Answer, AppError> {
    if let Some(path) = &ask.report {
        files::check_place(path)?;
    }
    let code = ask.code.at(ask.failure_rate)?;
    let decode = match &ask.decoding {
        Decoding::Given(time) => time.clone(),
        Decoding::Measured => decode::measure(code)?,
    };
    let mut answer = Answer::new("tail", "Latency of reads with local erasure coding");
    answer.facts = vec![
        ("sectors", ask.sectors.to_string()),
        ("failure rate", format!("{:e}", ask.failure_rate)),
        ("code", format!("{code} (redundant,data)")),
        ("time of a sector", ask.sector_time.to_string()),
        ("time of a retry", ask.retry_time.to_string()),
        ("time of decoding", describe(&decode, code)),
    ];
    let shown = match ask.random {
        None => sequential_laws(&mut answer, ask, code, &decode)?,
        Some(random) => random_laws(&mut answer, ask, random, code, &decode)?,
    };
    fill(&mut answer, ask, &shown);
    answer.with_report(ask.report.as_deref())
}

fn describe(decode: &DecodeTime, code: Code) -> String {
    let of = |erased: u64| format!("{} for {erased}", decode.of(code, erased));
    let all = code.redundant;
    match decode {
        _ if all == 0 => "none".to_owned(),
        DecodeTime::Free => "none".to_owned(),
        DecodeTime::PerRow(_) | DecodeTime::PerCodeword(_) => format!("{}, {}", of(1), of(all)),
        DecodeTime::Table(table) => {
            let entries: Vec<String> = table.iter().map(|&(erased, _)| of(erased)).collect();
            format!("measured: {}", entries.join(", "))
        }
    }
}

fn sequential_laws(
    answer: &mut Answer,
    ask: &TailAsk,
    code: Code,
    decode: &DecodeTime,
) -> Result<Vec<Shown>, AppError> {
    let read = Read {
        sectors: ask.sectors,
        failure_rate: ask.failure_rate,
        sector_time: ask.sector_time,
        retry_time: ask.retry_time,
    };
    let cases = sequential::papers_cases(read, code, decode, CaseTwo::FromNone);
    let exact = sequential::exact(read, code, decode).map_err(AppError::usage)?;
    answer.remarks = vec![
        format!(
            "The paper's four cases weigh {} in all ({:.3}, {:.3}, {:.2e} and {:.2e}), where a law \
             weighs 1.",
            weight(cases.law.mass()),
            cases.masses[0],
            cases.masses[1],
            cases.masses[2],
            cases.masses[3]
        ),
        format!("The exact law leaves out at most {:.1e} of its mass.", exact.left_out()),
    ];
    answer.assumptions = vec![
        INDEPENDENT.to_owned(),
        MDS.to_owned(),
        "a retry always succeeds and takes the same time".to_owned(),
        "a group is decoded while the next one is read, so that only the last one's decoding counts"
            .to_owned(),
        "no seek".to_owned(),
    ];
    Ok(vec![
        Shown { name: "retries alone", law: sequential::without_code(read), is_papers: false },
        Shown { name: "code, paper's cases", law: cases.law, is_papers: true },
        Shown { name: "code, exact", law: exact, is_papers: false },
    ])
}

fn random_laws(
    answer: &mut Answer,
    ask: &TailAsk,
    of: RandomAsk,
    code: Code,
    decode: &DecodeTime,
) -> Result<Vec<Shown>, AppError> {
    let reads = random::Reads {
        depth: of.depth,
        sectors: ask.sectors,
        failure_rate: ask.failure_rate,
        sector_time: ask.sector_time,
        seek_time: of.seek_time,
        retry_time: ask.retry_time,
    };
    let forced = of.forced_rate.map(|failure_rate| {
        let sectors =
            random::with_complementary(ask.sectors, levelhead_planner::system::pages(256));
        random::Reads { sectors, failure_rate, ..reads }
    });
    check_span(reads, code)?;
    answer.facts.push(("queue depth", of.depth.to_string()));
    answer.facts.push(("time of a seek", of.seek_time.to_string()));
    answer.facts.push(("nothing fails", reads.ideal().to_string()));
    answer.assumptions = vec![
        INDEPENDENT.to_owned(),
        MDS.to_owned(),
        "latency is that of the whole queue, one request after the other".to_owned(),
        "no request spans two groups; one with a failure reads its whole group instead".to_owned(),
        "a retry always succeeds and takes the same time".to_owned(),
    ];
    let papers = random::papers_cases(reads, code);
    answer.remarks = vec![format!(
        "The paper's cases weigh {} in all, where a law weighs 1, and leave decoding out.",
        weight(papers.mass())
    )];
    let mut shown = vec![
        Shown { name: "retries alone", law: random::without_code(reads), is_papers: false },
        Shown { name: "code, paper's cases", law: papers, is_papers: true },
        Shown {
            name: "code, exact",
            law: random::exact(reads, code, decode).map_err(AppError::usage)?,
            is_papers: false,
        },
    ];
    if let Some(forced) = forced {
        answer.facts.push(("rate under zero forcing", format!("{:e}", forced.failure_rate)));
        let code = ask.code.at(forced.failure_rate)?;
        check_span(forced, code)?;
        answer.facts.push(("code under zero forcing", code.to_string()));
        let law = random::exact(forced, code, decode).map_err(AppError::usage)?;
        shown.push(Shown { name: "zero forcing and code, exact", law, is_papers: false });
    }
    Ok(shown)
}

/// A sum of masses, which counting orders can make as large as it likes.
fn weight(mass: f64) -> String {
    if mass.is_infinite() {
        "more than 1e308".to_owned()
    } else if mass >= 1e3 {
        format!("{mass:.2e}")
    } else {
        format!("{mass:.3}")
    }
}

/// Refuses reads longer than a group.
fn check_span(reads: random::Reads, code: Code) -> Result<(), AppError> {
    if reads.sectors <= code.data {
        return Ok(());
    }
    Err(AppError::usage(format!(
        "a random read of {} sectors spans more than a group of code {code}, which has {} of data",
        reads.sectors, code.data
    )))
}

fn fill(answer: &mut Answer, ask: &TailAsk, shown: &[Shown]) {
    let labels: Vec<String> =
        ask.shares.iter().map(|&share| format!("p{}", typed_percent(share))).collect();
    let columns = std::iter::once(Column::left("read")).chain(
        labels
            .iter()
            .flat_map(|label| [Column::right(format!("{label} ms")), Column::right("cut")]),
    );
    let mut table = Table::new(columns);
    let base: Vec<Option<f64>> =
        ask.shares.iter().map(|&share| quantile(&shown[0], share).1).collect();
    let mut undecided = false;
    for one in shown {
        let mut cells = vec![one.name.to_owned()];
        for ((&share, label), base) in ask.shares.iter().zip(&labels).zip(&base) {
            let (low, high) = quantile(one, share);
            let Some(high) = high else {
                undecided = true;
                cells.extend(["-".to_owned(), "-".to_owned()]);
                continue;
            };
            cells.push(format!("{high:.3}"));
            let row = Row::new(one.name, label, "ms", high);
            answer.rows.push(row.between(low.unwrap_or(high), high));
            // Reads that take no time have nothing to cut.
            match base.filter(|&base| base > 0.0) {
                Some(base) => {
                    let cut = 100.0 * (1.0 - high / base);
                    cells.push(format!("{cut:.1} %"));
                    answer.rows.push(Row::new(one.name, format!("{label}, cut"), "%", cut));
                }
                None => cells.push("-".to_owned()),
            }
        }
        table.push(cells);
    }
    if undecided {
        answer.remarks.push(
            "A percentile marked - lies in the mass that is left out, or the paper's cases do not \
             reach it."
                .to_owned(),
        );
    }
    answer.tables = vec![("", table)];
    let curve = |one: &Shown| {
        let mut below = 0.0;
        let first = one.law.points().first().map(|&(time, _)| (time.as_millis_f64(), 0.0));
        let steps = one.law.points().iter().map_while(|&(time, mass)| {
            let before = below;
            below += mass;
            // The paper's cases reach 1, and go on: there they end.
            let is_last = one.is_papers && before < 1.0 && below >= 1.0;
            (below < 0.999_999 || is_last).then(|| (time.as_millis_f64(), below.min(1.0)))
        });
        Series::step(one.name, first.into_iter().chain(steps))
    };
    answer.figures = vec![Figure::lines(
        "Latency",
        Axis::log("latency (ms)"),
        Axis::tail("share at or below"),
        shown.iter().map(curve).collect(),
    )];
}

/// A percentile's bounds in milliseconds.
fn quantile(shown: &Shown, share: f64) -> (Option<f64>, Option<f64>) {
    let millis = |time: Option<Nanos>| time.map(Nanos::as_millis_f64);
    if shown.is_papers {
        let time = millis(shown.law.quantile_from_below(share));
        return (time, time);
    }
    let Bracket { low, high } = shown.law.quantile(share);
    (millis(Some(low)), millis(high))
}
