//! What `[SDHDD]` measured with its filesystem, as closed forms: mean times by the planner's `kinds`.

use std::collections::BTreeMap;

use levelhead_planner::Code;
use levelhead_planner::kinds::{Disk, Stored, UpdateTimes, Updates, lost, random_read, updates};
use levelhead_planner::system::{forced_failure_rate, pages};
use levelhead_stats::Streams;
use levelhead_trace::{Benchmark, FileId, FileWorkload, HiBench, Step};
use levelhead_units::{Bytes, Nanos, Ratio};

use super::super::lec::{closed, least};
use super::super::{Ask, Bars, Drawing, Head, Row, Study, StudyPlan, Unit, Whose};
use super::FORCED;

pub(super) const STUDIES: [Study; 5] = [FIG_7, FIG_8, FIG_9, FIG_11, FIG_12];

const DISK: Disk = Disk::PAPER;

/// What all say about their times.
const TIMES: &str = "Closed forms of ours, from the times of the paper's sec. 4.3: 10 ms to move the head, 33 us for a \
                     sector, 8.33 ms for a rotation; reads pass over what lies between a page and its \
                     complementary sector. The paper gives these figures as measurements alone.";

/// The code that leaves 1e-6 of the groups of 255 sectors, with and without zero forcing.
fn both(failure_rate: f64) -> Result<Stored, String> {
    let failure_rate = forced_failure_rate(failure_rate);
    Ok(Stored::Forced { pages: pages(256), code: least(255, failure_rate)?, failure_rate })
}

fn alone(length: u64, failure_rate: f64) -> Result<Stored, String> {
    Ok(Stored::Coded { code: least(length, failure_rate)?, failure_rate })
}

const MUTABLE: Stored = Stored::Mutable { pages: 7 };

fn percent(head: Head, share: f64) -> Row {
    Row::exact(head, Unit::Percent, share * 100.0)
}

fn bars(title: &str, metrics: &[&str], groups: &[String]) -> Drawing {
    let bar = |metric: &&str| Bars {
        name: (*metric).to_owned(),
        rows: groups.iter().map(|case| (case.clone(), (*metric).to_owned())).collect(),
        whose: Whose::Ours,
    };
    Drawing::Bars {
        title: title.to_owned(),
        axis: "loss (%)".to_owned(),
        is_log: false,
        groups: groups.to_vec(),
        bars: metrics.iter().map(bar).collect(),
    }
}

const FIG_7: Study = closed(
    [
        "sdhdd.fig7",
        "Random reads a second of files with zero forcing and a code, against a drive without failures",
        "[SDHDD], Fig. 7",
        "At a failure rate of 1e-2 files of kind B, read 1, 8, 16 or 32 sectors at a time, lose 4 % of their reads a \
         second, an unprinted share, 9 % and 4 %.",
    ],
    |_| fig_7(),
);

fn fig_7() -> Result<StudyPlan, String> {
    const RATE: f64 = 1e-2;
    let mut plan = StudyPlan::default();
    let mut groups = Vec::new();
    let (both, alone) = (both(RATE)?, alone(255, RATE)?);
    for (sectors, paper) in [(1, Some(4.0)), (8, None), (16, Some(9.0)), (32, Some(4.0))] {
        let case = format!("{sectors} sectors");
        let plain = random_read(DISK, Stored::Plain, sectors);
        let loss = |stored| 1.0 - plain / random_read(DISK, stored, sectors);
        let row = percent(Head::new(case.clone(), "both, closed form"), loss(both));
        plan.rows.push(match paper {
            Some(paper) => row.paper(paper),
            None => row,
        });
        let head = Head::new(case.clone(), "coding alone 255, closed form");
        plan.rows.push(percent(head, loss(alone)));
        groups.push(case);
    }
    plan.remarks = vec![
        "The paper suspects the drive's cache and order for its hump at 16 sectors; nothing in these times makes one."
            .to_owned(),
        TIMES.to_owned(),
        FORCED.to_owned(),
    ];
    let metrics = ["both, closed form", "coding alone 255, closed form"];
    plan.drawings.push(bars("Loss of random reads a second, by size", &metrics, &groups));
    Ok(plan)
}

const FIG_8: Study = closed(
    [
        "sdhdd.fig8",
        "Throughput of HBase under YCSB, against a drive without failures",
        "[SDHDD], Fig. 8 and Table 2",
        "With 90, 80 and 70 % reads and failure rates of 5e-3, 8e-3 and 1e-2, zero forcing and a code together lose \
         well below 5 %, local erasure coding alone much more.",
    ],
    |_| fig_8(),
);

/// Sectors of a block that is read or logged.
const BLOCK: u64 = 16;

/// Mean time of an operation, in milliseconds: a read of a block, or a block that is logged and later flushed.
fn operation(reads: f64, stored: Stored, log: Stored) -> f64 {
    let sector = DISK.sector_time.as_millis_f64();
    let write = BLOCK as f64 * sector * (log.expansion() + stored.expansion());
    reads * random_read(DISK, stored, BLOCK) + (1.0 - reads) * write
}

fn fig_8() -> Result<StudyPlan, String> {
    const METRICS: [&str; 3] =
        ["both, closed form", "coding alone 255, closed form", "coding alone 1023, closed form"];
    let mut plan = StudyPlan::default();
    let mut groups = Vec::new();
    let mut most = 0.0_f64;
    for reads in [90, 80, 70] {
        for rate in [5e-3, 8e-3, 1e-2] {
            let case = format!("{reads} % reads, failure rate {rate:e}");
            let share = f64::from(reads) / 100.0;
            let plain = operation(share, Stored::Plain, Stored::Plain);
            let coded = [alone(255, rate)?, alone(1023, rate)?].map(|alone| (alone, alone));
            let beds = [(both(rate)?, MUTABLE), coded[0], coded[1]];
            for (at, (metric, (stored, log))) in METRICS.into_iter().zip(beds).enumerate() {
                let loss = 1.0 - plain / operation(share, stored, log);
                if at == 0 {
                    most = most.max(loss);
                }
                plan.rows.push(percent(Head::new(case.clone(), metric), loss));
            }
            groups.push(case);
        }
    }
    let head = Head::new("all", "both, closed form, the most");
    plan.rows.push(percent(head, most).paper(5.0));
    plan.remarks = vec![
        "The paper's 5 % is a bound. A write is 64 KiB in the log, a mutable file, and later 64 KiB of a flushed file, \
         both in sequence and without moving the head."
            .to_owned(),
        TIMES.to_owned(),
        FORCED.to_owned(),
    ];
    plan.drawings.push(bars("Loss of operations a second", &METRICS, &groups));
    Ok(plan)
}

const FIG_9: Study = closed(
    [
        "sdhdd.fig9",
        "Throughput of HiBench over mutable files, against a drive without failures",
        "[SDHDD], Fig. 9",
        "Zero forcing of 512 bytes costs bayes, kmeans, wordcount, hivebench, pagerank and nutch below 1 % on average.",
    ],
    |_| Ok(fig_9()),
);

fn fig_9() -> StudyPlan {
    let mut plan = StudyPlan::default();
    let factor = MUTABLE.expansion();
    for (metric, busy) in [("bound by the disk", 1.0), ("half busy", 0.5)] {
        let head = Head::new("mean", format!("{metric}, closed form"));
        let row = percent(head, lost(busy, factor));
        // The paper does not say how busy its disk was: its number stands where it can hold.
        plan.rows.push(if busy < 1.0 { row.paper(1.0) } else { row });
    }
    let head = Head::new("mean", "busy share up to which nothing is lost");
    plan.rows.push(percent(head, 1.0 / factor));
    plan.remarks = vec![
        "The paper's 1 % is a bound, and cannot hold for a program that waits for its disk: 9 sectors move for 7 pages. \
         It holds where computing goes on beside the I/O and the disk of the plain drive is busy for less than 7/9 of the \
         time. The form has no program in it: it is the same for all six."
            .to_owned(),
    ];
    plan
}

const FIG_11: Study = closed(
    [
        "sdhdd.fig11",
        "Updates a second of files of kind B through an undo log",
        "[SDHDD], Fig. 11",
        "Updates in place of 1, 8, 16 or 32 sectors lose around 30 %, weakly dependent on their size.",
    ],
    |_| Ok(fig_11()),
);

/// Time of moving the head within 2 GB, where the log is near: half a rotation, and a short seek.
const NEAR: Nanos = Nanos::from_millis(6);

fn fig_11() -> StudyPlan {
    const METRICS: [&str; 4] = [
        "one at a time, log near, closed form",
        "one at a time, log anywhere, closed form",
        "eight at a time, log near, closed form",
        "eight at a time, log anywhere, closed form",
    ];
    let mut plan = StudyPlan::default();
    let mut groups = Vec::new();
    for sectors in [1, 8, 16, 32] {
        let case = format!("{sectors} sectors");
        let beds = [(1, NEAR), (1, DISK.seek_time), (8, NEAR), (8, DISK.seek_time)];
        for (metric, (together, log_time)) in METRICS.into_iter().zip(beds) {
            let of = Updates { count: sectors, pages: pages(256), together, log_time };
            let UpdateTimes { bare, logged } = updates(DISK, of);
            let row = percent(Head::new(case.clone(), metric), 1.0 - bare / logged);
            plan.rows.push(if together == 1 { row.paper(30.0) } else { row });
        }
        groups.push(case);
    }
    plan.remarks = vec![
        "Without the log an update reads its sectors and their complementary ones and writes them a rotation later. \
         With it the old ones go to the log first: near, within 2 GB of the files, the head moves for 6 ms, anywhere for \
         10 ms as always. The paper does not say where its log is; one write of the log serves all updates that are \
         done together."
            .to_owned(),
        TIMES.to_owned(),
    ];
    plan.drawings.push(bars("Loss of updates a second, by size", &METRICS, &groups));
    plan
}

const FIG_12: Study = closed(
    [
        "sdhdd.fig12",
        "Throughput of HiBench whose mutable files are taken for kind B",
        "[SDHDD], Fig. 12",
        "bayes, kmeans, wordcount, hivebench, pagerank and nutch lose no more than 17 %.",
    ],
    fig_12,
);

/// What a program asks of the disk while it is measured.
#[derive(Debug, Default)]
struct Asked {
    /// Sectors read or written in sequence.
    in_sequence: f64,
    /// Sectors of each write in place.
    changes: Vec<u64>,
}

impl Asked {
    fn of(benchmark: Benchmark, ask: &Ask) -> Self {
        let scale = Ratio::of(1, ask.pick(10, 1));
        let workload = FileWorkload::HiBench(HiBench { scale, ..HiBench::whole(benchmark) });
        let mut sizes: BTreeMap<FileId, Bytes> = BTreeMap::new();
        let mut asked = Self::default();
        for stage in workload.stages(Streams::new(ask.seed)) {
            for step in &stage.steps {
                let length = match *step {
                    Step::Read { length, .. } => length,
                    Step::Write { file, offset, length } => {
                        let size = sizes.entry(file).or_default();
                        if offset < *size {
                            asked.changes.push(length.sectors_ceil().get());
                            continue;
                        }
                        *size = Bytes::new(offset.get() + length.get());
                        length
                    }
                    Step::Create { .. } | Step::Sync(_) | Step::Remove(_) | Step::Compute(_) => {
                        continue;
                    }
                };
                if stage.is_measured {
                    asked.in_sequence += length.sectors_ceil().get() as f64;
                }
            }
        }
        asked
    }

    /// How many times as long the disk takes if all files are of kind B.
    fn factor(&self, stored: Stored) -> f64 {
        let sector = DISK.sector_time.as_millis_f64();
        let update = |count: u64, log: bool| {
            let of = Updates { count, pages: pages(256), together: 1, log_time: NEAR };
            let UpdateTimes { logged, .. } = updates(DISK, of);
            if log { logged } else { random_read(DISK, Stored::Plain, count) }
        };
        let all = |log| self.changes.iter().map(|count| update(*count, log)).sum::<f64>();
        let plain = self.in_sequence * sector + all(false);
        (self.in_sequence * sector * stored.expansion() + all(true)) / plain
    }
}

fn fig_12(ask: &Ask) -> Result<StudyPlan, String> {
    const METRICS: [&str; 2] = ["bound by the disk, closed form", "half busy, closed form"];
    let mut plan = StudyPlan::default();
    let mut groups = Vec::new();
    // No failure rate is given: the code of 255 at 5e-3 or at 1e-2 has one redundant sector or two.
    let code = Code { data: 253, redundant: 2 };
    let stored = Stored::Forced { pages: pages(256), code, failure_rate: 0.0 };
    let mut most = [0.0_f64; 2];
    for benchmark in Benchmark::SIX {
        let factor = Asked::of(benchmark, ask).factor(stored);
        for ((metric, busy), most) in METRICS.into_iter().zip([1.0, 0.5]).zip(&mut most) {
            let loss = lost(busy, factor);
            *most = most.max(loss);
            plan.rows.push(percent(Head::new(benchmark.to_string(), metric), loss));
        }
        groups.push(benchmark.to_string());
    }
    for (metric, most) in METRICS.into_iter().zip(most) {
        let head = Head::new("all", format!("{metric}, the most"));
        plan.rows.push(percent(head, most).paper(17.0));
    }
    plan.remarks = vec![
        "The paper's 17 % is a bound. Reads and writes in sequence move 16/15 (1 + 2/253) as many sectors and never the \
         head; a write in place, 2 % of the writes of bayes, pagerank and nutch, is logged near by and costs a plain \
         drive one access. The programs are made up (docs/workloads.md), a tenth of each in quick runs."
            .to_owned(),
        TIMES.to_owned(),
    ];
    plan.drawings.push(bars("Loss of throughput, files taken for kind B", &METRICS, &groups));
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::super::super::Estimate;
    use super::super::super::tests::rows;
    use super::*;

    fn of<'a>(rows: &'a [Estimate], metric: &'a str) -> impl Iterator<Item = f64> + 'a {
        rows.iter().filter(move |row| row.metric == metric).map(|row| row.ours)
    }

    /// The bar of the issue, 5 % at each size, and that of the paper's text, which has 9 % at one.
    #[test]
    fn random_reads_of_kind_b_lose_below_five_percent_at_each_size() {
        let rows = rows(&fig_7().unwrap());
        let losses: Vec<f64> = of(&rows, "both, closed form").collect();
        assert_eq!(losses.len(), 4);
        assert!(losses.iter().all(|loss| (2.0..5.0).contains(loss)), "{losses:?}");
        let alone: Vec<f64> = of(&rows, "coding alone 255, closed form").collect();
        assert!(alone.is_sorted() && alone[3] > 15.0, "{alone:?}");
    }

    #[test]
    fn reproduces_that_both_together_lose_below_five_percent_of_hbase_and_a_code_alone_much_more() {
        let rows = rows(&fig_8().unwrap());
        let pairs = of(&rows, "both, closed form").zip(of(&rows, "coding alone 255, closed form"));
        let mut count = 0;
        for (both, alone) in pairs {
            assert!((0.0..5.0).contains(&both) && alone > 1.5 * both, "{both} {alone}");
            count += 1;
        }
        assert_eq!(count, 9);
        for (short, long) in of(&rows, "coding alone 255, closed form")
            .zip(of(&rows, "coding alone 1023, closed form"))
        {
            assert!(long > 2.0 * short, "{short} {long}");
        }
    }

    #[test]
    fn hibench_over_mutable_files_loses_two_ninths_or_nothing() {
        let rows = rows(&fig_9());
        let [bound, half, until] = rows.as_slice() else { panic!("three rows") };
        assert!((bound.ours - 200.0 / 9.0).abs() < 1e-9, "{}", bound.ours);
        assert!(half.ours.abs() < 1e-9 && (until.ours - 700.0 / 9.0).abs() < 1e-9);
    }

    /// "Around 30 %, weakly dependent on the size": between a log that is near and one anywhere.
    #[test]
    fn reproduces_that_the_paper_lies_between_a_log_near_by_and_one_anywhere() {
        let rows = rows(&fig_11());
        for near in of(&rows, "one at a time, log near, closed form") {
            assert!((15.0..30.0).contains(&near), "{near}");
        }
        for anywhere in of(&rows, "one at a time, log anywhere, closed form") {
            assert!((30.0..45.0).contains(&anywhere), "{anywhere}");
        }
        let one = of(&rows, "one at a time, log near, closed form");
        for (one, eight) in one.zip(of(&rows, "eight at a time, log near, closed form")) {
            assert!(eight < one, "{one} {eight}");
        }
    }

    #[test]
    fn reproduces_that_mutable_files_taken_for_kind_b_lose_at_most_17_percent() {
        for quick in [true, false] {
            let ask = Ask { quick, seed: 3, seeds: 1, traces: Vec::new() };
            let rows = rows(&fig_12(&ask).unwrap());
            for loss in of(&rows, "bound by the disk, closed form") {
                assert!((5.0..17.0).contains(&loss), "{loss}");
            }
            assert!(of(&rows, "half busy, closed form").all(|loss| loss.abs() < 1e-9));
        }
    }
}
