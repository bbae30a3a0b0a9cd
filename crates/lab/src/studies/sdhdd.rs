//! The studies of `[SDHDD]`: the planner's closed forms beside the paper's numbers, what a drive takes a sector for, and
//! files of the three kinds on our filesystem.

use levelhead_planner::Code;
use levelhead_planner::code::failure;
use levelhead_planner::decode::DecodeTime;
use levelhead_planner::random::{Reads, exact, papers_cases, with_complementary, without_code};
use levelhead_planner::system::{Capacities, forced_failure_rate, pages, redundancy};
use levelhead_units::Nanos;

use self::counted::{forced_rate, p_z_counted};
use super::files::least;
use super::lec::{closed, p99};
use super::{Ask, Bars, Drawing, Head, Row, Study, StudyPlan, Takes, Unit, Whose};

mod counted;
mod curves;
mod hbase;
mod local;
mod predict;
mod programs;
mod random;
mod retries;
mod speed;
mod updates;

pub(super) fn studies() -> Vec<Study> {
    let [fig_9, fig_12] = programs::STUDIES;
    let closed = [curves::FIG_1, local::SEC_3_1, predict::PREDICT, TABLE_2, FIG_6];
    let measured = [random::FIG_7, hbase::FIG_8, fig_9, FIG_10, updates::FIG_11, fig_12];
    let ours = [retries::RETRY, retries::WANDER];
    [closed.as_slice(), &measured, &ours].concat()
}

/// What all say whose files have kinds.
const KINDS: &str = "Of kind B, pages are 15 to a complementary sector, with the code that leaves 1e-6 of the groups of 255 sectors under \
                     256 bytes of zeroes (whole blocks of 16: 1 or 2 of 240); mutable files have 7 pages between two complementary \
                     sectors, 512 bytes of zeroes and no code. What a sector ends in, the filesystem says with each write.";

/// What all say about the failure rate under zero forcing.
const FORCED: &str = "Under 256 bytes of zeros a failure rate p becomes p_z = 0.2 p^2 (5e-6 at 5e-3, \
                      1.28e-5 at 8e-3, 2e-5 at 1e-2): ours, for the paper's own curve is not in its text. \
                      Its Table 2 asks for at most 5.6e-6 at 5e-3 and for 5.6e-6 to 7.2e-5 above, its \
                      Fig. 6 for at most 2.3e-5.";

const TABLE_2: Study = closed(
    [
        "sdhdd.table2",
        "Codes by failure rate, with and without zero forcing",
        "[SDHDD], Table 2",
        "Without zero forcing from 9 of 255 and 19 of 1023 symbols at 5e-3 to 13 and 28 at 1e-2; with \
         it, one or two of 255.",
    ],
    |_| table_2(),
);

/// Failure rate; redundant and data symbols at 255, at 1023, and at 255 with zero forcing.
const CODES: [(f64, [(u64, u64); 3]); 3] = [
    (5e-3, [(9, 246), (19, 1004), (1, 254)]),
    (8e-3, [(12, 243), (25, 998), (2, 253)]),
    (1e-2, [(13, 242), (28, 995), (2, 253)]),
];

const FORCED_BED: &str = "zero forcing, length 255";

fn table_2() -> Result<StudyPlan, String> {
    let mut plan = StudyPlan::default();
    let mut names = Vec::new();
    for (rate, papers) in CODES {
        let forced = forced_failure_rate(rate);
        let beds = [("length 255", 255, rate), ("length 1023", 1023, rate)];
        let beds = beds.into_iter().chain([(FORCED_BED, 255, forced)]);
        for ((bed, length, after), (redundant, data)) in beds.zip(papers) {
            let case = format!("failure rate {rate:e}, {bed}");
            let ours = least(length, after)?;
            let row = |metric, paper: u64, ours: u64| {
                Row::exact(Head::new(case.clone(), metric), Unit::Count, ours as f64)
                    .paper(paper as f64)
            };
            plan.rows.push(row("redundant", redundant, ours.redundant));
            plan.rows.push(row("data", data, ours.data));
            names.push((format!("{rate:e}, {bed}"), case));
        }
        let counted = least(255, forced_rate(rate))?;
        let head = |metric| Head::new(format!("failure rate {rate:e}, {FORCED_BED}"), metric);
        for (metric, ours) in
            [("redundant, p_z counted", counted.redundant), ("data, p_z counted", counted.data)]
        {
            plan.rows.push(Row::exact(head(metric), Unit::Count, ours as f64));
        }
    }
    let left = failure(Code { data: 995, redundant: 28 }, 1e-2);
    plan.remarks = vec![
        format!(
            "At 1e-2 and length 1023 the paper has 28: that leaves {left:.3e}, just above 1e-6."
        ),
        FORCED.to_owned(),
        p_z_counted(),
    ];
    let title = "Redundant symbols at a target of 1e-6";
    plan.drawings.push(Drawing::beside_paper(title, "symbols", &["redundant"], &names));
    Ok(plan)
}

const FIG_6: Study = closed(
    [
        "sdhdd.fig6",
        "Redundancy of a whole drive by mix of files, codes and failure rate",
        "[SDHDD], Fig. 6",
        "As low as 2 %, always below 9 %; more sequential files lower it by about 4 points, and the \
         length of their code matters more than that of random files.",
    ],
    |_| fig_6(),
);

const MIXES: [[f64; 3]; 3] = [[90.0, 8.0, 2.0], [70.0, 24.0, 6.0], [50.0, 40.0, 10.0]];
const RATES: [f64; 5] = [1e-3, 2e-3, 5e-3, 8e-3, 1e-2];
/// Lengths for sequential and for random files.
const CODE_LENGTHS: [[u64; 2]; 4] = [[255, 63], [1023, 63], [255, 127], [1023, 127]];

fn fig_6() -> Result<StudyPlan, String> {
    let mut plan = StudyPlan::default();
    let case = |[a, b, m]: [f64; 3], [long, short]: [u64; 2], rate: f64| {
        format!("{a}:{b}:{m}, lengths {long} and {short}, failure rate {rate:e}")
    };
    let (mut low, mut high, mut most_counted) = (f64::INFINITY, 0.0_f64, 0.0_f64);
    for lengths in CODE_LENGTHS {
        for mix in MIXES {
            let [sequential, random, mutable] = mix;
            for rate in RATES {
                let capacities = Capacities { sequential, random, mutable };
                let long = least(lengths[0], rate)?;
                let mut add = |metric, forced| -> Result<f64, String> {
                    let whole = redundancy(capacities, long, least(lengths[1], forced)?) * 100.0;
                    let head = Head::new(case(mix, lengths, rate), metric);
                    plan.rows.push(Row::exact(head, Unit::Percent, whole));
                    Ok(whole)
                };
                let whole = add("redundancy", forced_failure_rate(rate))?;
                (low, high) = (low.min(whole), high.max(whole));
                most_counted = most_counted.max(add("redundancy, p_z counted", forced_rate(rate))?);
            }
        }
    }
    let all = |metric, ours, paper| {
        Row::exact(Head::new("all", metric), Unit::Percent, ours).paper(paper)
    };
    plan.rows.push(all("lowest", low, 2.0));
    plan.rows.push(all("highest", high, 9.0).at_most());
    plan.rows.push(all("highest, p_z counted", most_counted, 9.0).at_most());
    plan.remarks = vec!["The paper's 9 % is a bound.".to_owned(), FORCED.to_owned(), p_z_counted()];
    for lengths in CODE_LENGTHS {
        let bars = MIXES.map(|mix| Bars {
            name: format!("{}:{}:{}", mix[0], mix[1], mix[2]),
            rows: RATES.map(|rate| (case(mix, lengths, rate), "redundancy".to_owned())).to_vec(),
            whose: Whose::Ours,
        });
        plan.drawings.push(Drawing::Bars {
            title: format!(
                "Redundancy by failure rate, codes of {} and {} symbols",
                lengths[0], lengths[1]
            ),
            axis: "redundancy (%)".to_owned(),
            is_log: false,
            groups: RATES.map(|rate| format!("{rate:e}")).to_vec(),
            bars: bars.to_vec(),
        });
    }
    Ok(plan)
}

const FIG_10: Study = Study {
    name: "sdhdd.fig10",
    title: "99th percentile of random reads over that of a drive without failures",
    source: "[SDHDD], Fig. 10",
    says: "At a failure rate of 5e-3, zero forcing and a code together stay below 10 %; retries alone and a \
           code alone cost far more, some above 100 %.",
    bed: "closed forms; the rows that say so are measured on our filesystem over a modelled drive",
    seeds_quick: 1,
    seeds_full: 3,
    takes: Takes::Nothing,
    plan: fig_10,
};

fn fig_10(ask: &Ask) -> Result<StudyPlan, String> {
    const RATE: f64 = 5e-3;
    let mut plan = StudyPlan::default();
    let mut groups = Vec::new();
    let decode = DecodeTime::PAPER_SOFTWARE;
    let exactly = |reads, code| exact(reads, code, &decode).map_err(|error| error.to_string());
    for depth in [1, 8, 32] {
        for sectors in [1, 8, 32] {
            let case = format!("queue depth {depth}, {sectors} sectors");
            let reads = |retry| Reads {
                depth,
                sectors,
                failure_rate: RATE,
                sector_time: Nanos::from_micros(33),
                seek_time: Nanos::from_millis(10),
                retry_time: Nanos::from_millis(retry),
            };
            let ideal = reads(20).ideal().as_millis_f64();
            let mut add = |metric: &str, p99: f64| {
                let over = (p99 / ideal - 1.0) * 100.0;
                plan.rows.push(Row::exact(Head::new(case.clone(), metric), Unit::Percent, over));
            };
            add("retries of 20 ms", p99(&without_code(reads(20)))?);
            add("retries of 40 ms", p99(&without_code(reads(40)))?);
            let (short, long) = (least(255, RATE)?, least(1023, RATE)?);
            add("code of 255", p99(&exactly(reads(20), short)?)?);
            add("code of 1023", p99(&exactly(reads(20), long)?)?);
            for (metric, failure_rate) in [
                ("zero forcing and code of 255", forced_failure_rate(RATE)),
                ("zero forcing and code of 255, p_z counted", forced_rate(RATE)),
            ] {
                let sectors = with_complementary(sectors, pages(256));
                let both = Reads { sectors, failure_rate, ..reads(20) };
                add(metric, p99(&exactly(both, least(255, failure_rate)?)?)?);
            }
            let mass = papers_cases(reads(20), short).mass() * 100.0;
            let head = Head::new(case.clone(), "mass of the paper's cases, code of 255");
            plan.rows.push(Row::exact(head, Unit::Percent, mass));
            groups.push((format!("{depth}, {sectors}"), case));
        }
    }
    plan.remarks = vec![
        FORCED.to_owned(),
        p_z_counted(),
        "Percentiles are those of the exact law, with decoding at 4 GB/s for each erased symbol: the \
         paper's expression counts the failing requests of a queue in every order, so that its mass is \
         above 100 % where there are several. Queue depths and sizes are ours: the paper's are in its \
         figure alone."
            .to_owned(),
        "With retries alone and few sectors, less than one read in a hundred fails: the 99th percentile \
         does not see it."
            .to_owned(),
    ];
    random::add_tails(&mut plan, ask, RATE)?;
    let metrics = [
        "retries of 20 ms",
        "retries of 40 ms",
        "code of 255",
        "code of 1023",
        "zero forcing and code of 255",
        "zero forcing and code of 255, p_z counted",
        "both, measured",
        "code of 255, measured",
    ];
    plan.drawings.push(Drawing::Bars {
        title: "99th percentile over the ideal, by queue depth and sectors".to_owned(),
        axis: "degradation (%)".to_owned(),
        is_log: false,
        groups: groups.iter().map(|(name, _)| name.clone()).collect(),
        bars: metrics
            .map(|metric| Bars {
                name: metric.to_owned(),
                rows: groups.iter().map(|(_, case)| (case.clone(), metric.to_owned())).collect(),
                whose: Whose::Ours,
            })
            .to_vec(),
    });
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::Estimate;
    use crate::studies::tests::rows;

    #[test]
    fn reproduces_table_2_but_for_one_code() {
        let differ = |row: &Estimate| (row.paper.unwrap() - row.ours).abs() > 1e-9;
        let (counted, rows): (Vec<Estimate>, Vec<Estimate>) = rows(&table_2().unwrap())
            .into_iter()
            .partition(|row| row.metric.ends_with("p_z counted"));
        let others: Vec<&Estimate> = rows.iter().filter(|row| differ(row)).collect();
        assert_eq!((rows.len(), others.len()), (18, 2));
        // Our own code's failures ask for two symbols already at 5e-3, where the paper has one.
        let redundant = counted.iter().filter(|row| row.metric.starts_with("redundant"));
        assert!(redundant.map(|row| row.ours).eq([2.0, 2.0, 2.0]), "{counted:?}");
        assert!(others.iter().all(|row| row.case == "failure rate 1e-2, length 1023"));
        assert!((others[0].ours - 29.0).abs() < 1e-9);
    }

    #[test]
    fn reproduces_the_range_and_the_order_of_fig_6() {
        let (counted, rows): (Vec<Estimate>, Vec<Estimate>) = rows(&fig_6().unwrap())
            .into_iter()
            .partition(|row| row.metric.ends_with("p_z counted"));
        assert!(counted.iter().all(|row| (1.9..9.7).contains(&row.ours)), "{counted:?}");
        let of = |part: &str, rate: &str| {
            let rate = format!("failure rate {rate}");
            let row = rows.iter().find(|row| row.case.contains(part) && row.case.ends_with(&rate));
            row.unwrap().ours
        };
        assert!(rows.iter().all(|row| (1.9..9.0).contains(&row.ours)));
        for rate in ["1e-3", "5e-3", "1e-2"] {
            for lengths in ["lengths 255 and 63", "lengths 1023 and 127"] {
                let mixes = ["90:8:2", "70:24:6", "50:40:10"];
                let [few, some, many] = mixes.map(|mix| of(&format!("{mix}, {lengths}"), rate));
                assert!(few < some && some < many);
            }
        }
        // The length of the sequential files' code matters more than that of the random ones'.
        let [base, long, short] = ["255 and 63", "1023 and 63", "255 and 127"]
            .map(|lengths| of(&format!("90:8:2, lengths {lengths}"), "1e-2"));
        assert!(base - long > base - short);
    }

    #[test]
    fn reproduces_that_both_together_stay_below_ten_percent() {
        let ask = Ask { quick: true, seed: 7, seeds: 1, traces: Vec::new() };
        let mut plan = fig_10(&ask).unwrap();
        plan.cells.clear();
        plan.rows.retain(|row| !row.metric.contains("measured"));
        let rows = rows(&plan);
        let of = |metric: &'static str| rows.iter().filter(move |row| row.metric == metric);
        for metric in ["zero forcing and code of 255", "zero forcing and code of 255, p_z counted"]
        {
            assert!(of(metric).all(|row| (0.0..10.0).contains(&row.ours)), "{metric}");
        }
        for (metric, least) in
            [("retries of 20 ms", 100.0), ("code of 255", 50.0), ("code of 1023", 100.0)]
        {
            assert!(of(metric).any(|row| row.ours > least), "{metric}");
        }
    }
}
