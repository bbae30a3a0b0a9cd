//! `sdhdd.fig9` and `sdhdd.fig12`: programs whose files are all mutable, or all taken for kind B.

use levelhead_fs::FileKind;
use levelhead_planner::kinds::{Stored, lost};
use levelhead_stats::Streams;
use levelhead_trace::{Benchmark, FileWorkload, HiBench};
use levelhead_units::{Nanos, Ratio};

use super::speed::{bars, loss};
use super::{FORCED, KINDS};
use crate::mounted::Kinds;
use crate::studies::files::{BED, FilesBed};
use crate::studies::plan::{Cell, Measured};
use crate::studies::{Ask, Head, Row, Study, StudyPlan, Takes, Unit};

pub(super) const STUDIES: [Study; 2] = [FIG_9, FIG_12];

const FIG_9: Study = Study {
    name: "sdhdd.fig9",
    title: "Throughput of HiBench over mutable files, against a drive without failures",
    source: "[SDHDD], Fig. 9",
    says: "Zero forcing of 512 bytes costs bayes, kmeans, wordcount, hivebench, pagerank and nutch below 1 % on average.",
    bed: BED,
    seeds_quick: 1,
    seeds_full: 3,
    takes: Takes::Nothing,
    plan: fig_9,
};

const FIG_12: Study = Study {
    name: "sdhdd.fig12",
    title: "Throughput of HiBench whose mutable files are taken for kind B",
    source: "[SDHDD], Fig. 12",
    says: "bayes, kmeans, wordcount, hivebench, pagerank and nutch lose no more than 17 %.",
    bed: BED,
    seeds_quick: 1,
    seeds_full: 3,
    takes: Takes::Nothing,
    plan: fig_12,
};

/// The papers name no failure rate here: the highest that `[SDHDD]` looks at.
const RATE: f64 = 1e-2;

/// Steps under way beside computing, which takes places among them: what is read ahead and written behind.
const WINDOW: u32 = 64;

/// Bound by the disk, or with so much to compute that the baseline's disk is busy for half of the time.
const BOUND: &str = "bound by the disk";
const HALF: &str = "half busy";

/// How many times as long the baseline takes with computing.
const LONGER: &str = "half busy, times as long";

fn fig_9(ask: &Ask) -> Result<StudyPlan, String> {
    let mut plan = measured(ask, FileKind::Mutable)?;
    let factor = Stored::Mutable { pages: 7 }.expansion();
    for metric in [BOUND, HALF] {
        let mean = mean(metric);
        plan.rows.push(mean.maybe_paper((metric == HALF).then_some(1.0)).at_most());
        let busy = if metric == BOUND { 1.0 } else { 0.5 };
        let head = Head::new("mean", format!("{metric}, closed form"));
        plan.rows.push(Row::exact(head, Unit::Percent, lost(busy, factor) * 100.0));
    }
    let head = Head::new("mean", "busy share up to which nothing is lost, closed form");
    plan.rows.push(Row::exact(head, Unit::Percent, 100.0 / factor));
    plan.remarks.insert(
        0,
        "The paper's 1 % is a bound, and cannot hold for a program that waits for its disk: 9 sectors move for 7 pages, which is the closed \
         form, the same for all programs. It holds where computing goes on beside the I/O and the disk of the plain drive is busy for less \
         than 7/9 of the time."
            .to_owned(),
    );
    Ok(plan)
}

fn fig_12(ask: &Ask) -> Result<StudyPlan, String> {
    let mut plan = measured(ask, FileKind::B)?;
    for metric in [BOUND, HALF] {
        let head = Head::new("all", format!("{metric}, the most"));
        let most = Row::new(head, Unit::Percent, move |seed| {
            let losses = Benchmark::SIX.map(|benchmark| seed.get(&cell(benchmark), metric));
            losses.into_iter().fold(f64::NEG_INFINITY, f64::max)
        });
        plan.rows.push(most.paper(17.0).at_most());
    }
    plan.remarks.insert(
        0,
        "The paper's 17 % is a bound, and it does not say how busy its disk was. A page that is written in place goes through our journal, \
         which serves as the undo log; so does that of a plain file."
            .to_owned(),
    );
    Ok(plan)
}

fn cell(benchmark: Benchmark) -> String {
    benchmark.to_string()
}

fn mean(metric: &'static str) -> Row {
    Row::new(Head::new("mean", metric), Unit::Percent, move |seed| {
        let losses = Benchmark::SIX.map(|benchmark| seed.get(&cell(benchmark), metric));
        losses.iter().sum::<f64>() / losses.len() as f64
    })
}

/// The six programs with all of their files of one kind.
fn measured(ask: &Ask, kind: FileKind) -> Result<StudyPlan, String> {
    let scale = Ratio::new(ask.pick(0.25, 1.0)).expect("it is a share");
    let bed = FilesBed::forced(Kinds::All(kind), RATE)?;
    let mut plan = StudyPlan::default();
    for benchmark in Benchmark::SIX {
        let program = Program { benchmark, scale };
        plan.cells.push(Cell::new(cell(benchmark), move |seed| program.measure(&bed, seed)));
        for metric in [BOUND, HALF] {
            let name = cell(benchmark);
            let head = Head::new(name.clone(), metric);
            plan.rows.push(Row::new(head, Unit::Percent, move |seed| seed.get(&name, metric)));
        }
    }
    plan.remarks = vec![
        "Bound by the disk: nothing is computed, and the time ends when what was written is on the disk. Half busy: computing takes twice as \
         long as the same steps alone on the perfect drive without zero forcing; 64 of them may be under way, so that files are read ahead \
         and written behind; the time ends with the program's last step, when some of what it wrote is still in memory."
            .to_owned(),
        "Programs are synthetic (docs/workloads.md), a quarter of each in quick runs. Sectors fail with 1e-2 \
         without zeroes at their ends."
            .to_owned(),
        KINDS.to_owned(),
        FORCED.to_owned(),
    ];
    let groups = Benchmark::SIX.map(cell).to_vec();
    plan.drawings.push(bars("Loss of throughput", &[BOUND, HALF], &groups));
    Ok(plan)
}

/// One of the programs.
#[derive(Clone, Copy, Debug)]
struct Program {
    benchmark: Benchmark,
    scale: Ratio,
}

impl Program {
    fn measure(&self, bed: &FilesBed, seed: u64) -> Result<Measured, String> {
        let times =
            |bed: &FilesBed, workload: HiBench| bed.time(&FileWorkload::HiBench(workload), seed);
        let (perfect, bound) = (FilesBed::PERFECT, self.bound());
        let ahead = HiBench { window: WINDOW, ..bound };
        let alone = times(&perfect, ahead)?.safe;
        let computing = HiBench { compute: self.compute_for(alone, seed), ..ahead };
        let half = times(&perfect, computing)?.done;
        Ok(Measured::default()
            .with(BOUND, loss(times(bed, bound)?.safe, times(&perfect, bound)?.safe))
            .with(HALF, loss(times(bed, computing)?.done, half))
            .with(LONGER, half / alone))
    }

    fn bound(&self) -> HiBench {
        HiBench { scale: self.scale, ..HiBench::whole(self.benchmark) }
    }

    /// How long to compute for each MiB so that computing takes twice as long as `bound` milliseconds.
    fn compute_for(&self, bound: f64, seed: u64) -> Nanos {
        let stages = FileWorkload::HiBench(self.bound()).stages(Streams::new(seed));
        let moved = stages.iter().filter(|stage| stage.is_measured).map(|stage| {
            let moved = stage.moved();
            (moved.read.get() + moved.written.get()) as f64
        });
        let mebibytes = moved.sum::<f64>() / f64::from(1 << 20);
        Nanos::new((2.0 * bound * 1e6 / mebibytes) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program with large files, bound by the disk: the closed form is 22.2 %. With a tenth of its files half busy loses more than the bar's
    /// 1 %, which is that of whole programs.
    #[test]
    fn mutable_files_lose_two_ninths_where_the_disk_is_the_bound() {
        let bed = FilesBed::forced(Kinds::All(FileKind::Mutable), RATE).unwrap();
        let program = Program { benchmark: Benchmark::KMeans, scale: Ratio::of(10, 100) };
        let measured = program.measure(&bed, 7).unwrap();
        assert!((measured.values[BOUND] - 200.0 / 9.0).abs() < 4.0, "{measured:?}");
        assert!(measured.values[HALF] < 2.0, "{measured:?}");
    }

    /// A baseline that computes takes twice as long, so that its disk is busy for half of the time.
    #[test]
    fn computing_keeps_the_disk_half_busy() {
        for benchmark in [Benchmark::WordCount, Benchmark::PageRank] {
            let program = Program { benchmark, scale: Ratio::of(5, 100) };
            let measured = program.measure(&FilesBed::PERFECT, 7).unwrap();
            let longer = measured.values[LONGER];
            assert!((1.9..2.5).contains(&longer), "{benchmark}: {longer}");
            // The same without any mechanism loses nothing.
            assert!(measured.values[BOUND].abs() < 1e-9, "{measured:?}");
        }
    }
}
