//! Reads at random from many files on the filesystem: `sdhdd.fig7`, and the measured rows of `sdhdd.fig10`.

use levelhead_drive::{RotationList, Rotations};
use levelhead_ldpc::{RetryModel, Step as RetryStep};
use levelhead_planner::kinds::{Stored, random_read};
use levelhead_stats::{Rng, Streams, Summary};
use levelhead_trace::{FileId, Habit, Stage, Step};
use levelhead_units::{Bytes, Nanos, Ratio, SECTOR_SIZE, Sectors};

use super::retries::kept;
use super::speed::{CLOSED, DISK, bars, forced, loss};
use super::{FORCED, KINDS};
use crate::mounted::{Kinds, Mounted, Room, Took};
use crate::studies::files::{BED, FilesBed};
use crate::studies::plan::{Cell, Measured};
use crate::studies::{Ask, Head, Row, Study, StudyPlan, Takes, Unit};

pub(super) const FIG_7: Study = Study {
    name: "sdhdd.fig7",
    title: "Random reads a second of files with zero forcing and a code, against a drive without failures",
    source: "[SDHDD], Fig. 7",
    says: "At a failure rate of 1e-2 files of kind B, read 1, 8, 16 or 32 sectors at a time, lose 4 % of their reads a \
           second, an unprinted share, 9 % and 4 %.",
    bed: BED,
    seeds_quick: 1,
    seeds_full: 3,
    takes: Takes::Nothing,
    plan: fig_7,
};

/// Sectors of each read, and the paper's loss.
const SIZES: [(u64, Option<f64>); 4] =
    [(1, Some(4.0)), (8, None), (16, Some(9.0)), (32, Some(4.0))];

const NO_CODE: &str = "no code, perfect drive";
const BOTH: &str = "both";
const ALONE: &str = "coding alone 255";
/// The drive's failures and retries come from the table of its code, all sectors with the same noise.
const BY_CODE: &str = "both, ecc=equal";

fn fig_7(ask: &Ask) -> Result<StudyPlan, String> {
    const RATE: f64 = 1e-2;
    let readings: Vec<Reading> = SIZES.map(|(sectors, _)| Reading { depth: 1, sectors }).to_vec();
    let reads = RandomReads { files: ask.pick(800, 2_000), rounds: ask.pick(5, 4), readings };
    let mut plan = StudyPlan::default();
    let both = FilesBed::forced(Kinds::ByHabit, RATE)?;
    let model = RetryModel {
        failure_rate: RATE,
        written_offset: 0.0,
        pass_offset: 0.0,
        steps: RetryStep::list(),
    };
    let by_code = FilesBed { ecc: Some(kept(&model, "equal")?), ..both };
    for (name, bed) in [
        (NO_CODE, FilesBed::PERFECT),
        (BOTH, both),
        (BY_CODE, by_code),
        (ALONE, FilesBed::coded(255, RATE)?),
    ] {
        plan.cells.push(reads.cell(name.to_owned(), bed));
    }
    let mut groups = Vec::new();
    for ((sectors, paper), reading) in SIZES.into_iter().zip(&reads.readings) {
        let case = format!("{sectors} sectors");
        let rate = reading.value("rate");
        for metric in [BOTH, BY_CODE, ALONE] {
            let value = rate.clone();
            let head = Head::new(case.clone(), metric);
            let row = Row::new(head, Unit::Percent, move |seed| {
                loss(seed.get(NO_CODE, &value), seed.get(metric, &value))
            });
            plan.rows.push(row.maybe_paper(paper.filter(|_| metric == BOTH)));
        }
        let plain = random_read(DISK, Stored::Plain, sectors);
        let closed = 1.0 - plain / random_read(DISK, forced(RATE)?, sectors);
        let head = Head::new(case.clone(), "both, closed form");
        plan.rows.push(Row::exact(head, Unit::Percent, closed * 100.0));
        let head = Head::new(case.clone(), "no code, reads a second");
        plan.rows.push(Row::new(head, Unit::PerSecond, move |seed| seed.get(NO_CODE, &rate)));
        groups.push(case);
    }
    plan.remarks = vec![
        "Files of 5 MB in 64 places all over the disk; one read of each at a time, in a random order, with what is known of the files in \
         memory. The paper has 2,000 files, quick runs 800 that are read from more often."
            .to_owned(),
        "The paper suspects the drive's cache and order for its hump at 16 sectors; nothing here makes one.".to_owned(),
        "With ecc=equal first passes and retries are those of the drive's own code, all sectors with the same noise: 1e-2 without zeroes, \
         and what its curves leave under 256 and 512 bytes of them."
            .to_owned(),
        CLOSED.to_owned(),
        KINDS.to_owned(),
        FORCED.to_owned(),
    ];
    plan.drawings.push(bars("Loss of random reads a second, by size", &[BOTH, ALONE], &groups));
    Ok(plan)
}

/// Ways of `sdhdd.fig10` to deal with sectors that fail, on our filesystem.
const WAYS: [&str; 4] = [
    "both, measured",
    "retries of 20 ms, measured",
    "code of 255, measured",
    "code of 1023, measured",
];

/// The measured rows of `sdhdd.fig10`: the 99th percentile of each way over that of a drive without failures.
pub(super) fn add_tails(plan: &mut StudyPlan, ask: &Ask, rate: f64) -> Result<(), String> {
    let depths = [1, 8, 32].into_iter();
    let readings = depths.flat_map(|depth| [1, 8, 32].map(|sectors| Reading { depth, sectors }));
    let reads = RandomReads {
        files: ask.pick(300, 1_000),
        rounds: ask.pick(10, 20),
        readings: readings.collect(),
    };
    // Two and three rotations, 20 ms on average.
    let shares = [(2, Ratio::of(3, 5)), (3, Ratio::of(2, 5))];
    let rotations = RotationList::new(&shares).map_err(|error| error.to_string())?;
    let retrying = FilesBed {
        failure_rate: rate,
        rotations: Rotations::Listed(rotations),
        ..FilesBed::PERFECT
    };
    let beds = [
        FilesBed::forced(Kinds::ByHabit, rate)?,
        retrying,
        FilesBed::coded(255, rate)?,
        FilesBed::coded(1023, rate)?,
    ];
    plan.cells.push(reads.cell(NO_CODE.to_owned(), FilesBed::PERFECT));
    for (way, bed) in WAYS.into_iter().zip(beds) {
        plan.cells.push(reads.cell(way.to_owned(), bed));
    }
    for reading in &reads.readings {
        let Reading { depth, sectors } = reading;
        let case = format!("queue depth {depth}, {sectors} sectors");
        for way in WAYS {
            let p99 = reading.value("p99");
            plan.rows.push(Row::new(Head::new(case.clone(), way), Unit::Percent, move |seed| {
                (seed.get(way, &p99) / seed.get(NO_CODE, &p99) - 1.0) * 100.0
            }));
        }
        let p99 = reading.value("p99");
        let head = Head::new(case, "no failures, measured");
        plan.rows.push(Row::new(head, Unit::Millis, move |seed| seed.get(NO_CODE, &p99)));
    }
    plan.remarks.push(
        "Measured: the same reads from files of 5 MB all over the disk, on our filesystem over one whole nearline-2tb in virtual time, as many \
         outstanding as the queue is deep, over a drive without failures; retries take two or three rotations. The closed form has a \
         fixed time for moving the head, and what is fixed has a short tail; a real disk's order and rotation spread the times by \
         themselves, so that the same delay is a smaller share of the 99th percentile."
            .to_owned(),
    );
    plan.remarks.push(KINDS.to_owned());
    Ok(())
}

/// How reads are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    /// How many are outstanding.
    pub(super) depth: u32,
    /// Sectors of each.
    pub(super) sectors: u64,
}

impl Reading {
    /// What figures of a cell are called: `mean 1,8`.
    pub(super) fn value(&self, figure: &str) -> String {
        format!("{figure} {},{}", self.depth, self.sectors)
    }
}

/// Files all over the disk, and reads from all of them.
#[derive(Clone, Debug)]
pub(super) struct RandomReads {
    pub(super) files: u32,
    /// How often each file is read from, for each way of reading: once after each mount.
    pub(super) rounds: u64,
    pub(super) readings: Vec<Reading>,
}

/// The size of each file, as in the paper.
const SIZE: u64 = 5_000_000;
const PAGES: u64 = SIZE.div_ceil(SECTOR_SIZE as u64);

/// Pages of which a byte is read first: checksums are kept for some thousand sectors together. In this order no read is near behind the
/// one before, which would be taken for a file that is read in sequence; nor is the next one anywhere but at the beginning.
const WARM: [u64; 3] = [PAGES / 2, PAGES - 1, 0];

/// What is written at a time.
const REQUEST: u64 = 1 << 20;

/// Pairs of places in which files lie.
const PAIRS: u64 = 32;

impl RandomReads {
    /// Room for the files all over the disk, with a third more than their data.
    fn room(&self) -> Room {
        let data = u64::from(self.files) * PAGES;
        Room { pairs: PAIRS, size: Sectors::new(data * 4 / 3 / (2 * PAIRS)) }
    }

    /// A cell with the mean and the 99th percentile of each way of reading, in milliseconds, and its reads a second.
    pub(super) fn cell(&self, name: String, bed: FilesBed) -> Cell {
        let reads = self.clone();
        Cell::new(name, move |seed| reads.measure(&bed, seed))
    }

    fn measure(&self, bed: &FilesBed, seed: u64) -> Result<Measured, String> {
        let bed = FilesBed { room: Some(self.room()), ..*bed };
        let mut mounted = bed.mount(seed)?;
        run(&mut mounted, &self.written())?;
        bed.begin_to_fail(&mut mounted)?;
        let mut measured = Measured::default();
        for reading in &self.readings {
            let mut rng = Streams::new(seed).stream(&reading.value("places"));
            let (mut each, mut whole) = (Vec::new(), Nanos::ZERO);
            for _ in 0..self.rounds {
                let took = run(&mut mounted, &self.reads(*reading, &mut rng))?;
                let warm = WARM.len() * self.files as usize;
                let end = took.ends.iter().max().copied().unwrap_or_default();
                whole += end.saturating_sub(took.ends[warm - 1]);
                each.extend_from_slice(&took.steps[warm..]);
            }
            let rate = each.len() as f64 / whole.as_secs_f64();
            let summary = Summary::of(&mut each);
            measured = measured
                .with(&reading.value("mean"), summary.mean.as_millis_f64())
                .with(&reading.value("p99"), summary.p99.as_millis_f64())
                .with(&reading.value("rate"), rate);
        }
        Ok(measured)
    }

    fn written(&self) -> Stage {
        let mut steps = Vec::new();
        for file in (0..self.files).map(FileId) {
            steps.push(Step::Create { file, habit: Habit::Random });
            steps.extend((0..SIZE).step_by(REQUEST as usize).map(|at| Step::Write {
                file,
                offset: Bytes::new(at),
                length: Bytes::new(REQUEST.min(SIZE - at)),
            }));
        }
        Stage { name: "written", is_measured: false, window: 8, steps }
    }

    /// What is known of the files, so that it is in memory; then a read of each, in a random order.
    fn reads(&self, reading: Reading, rng: &mut Rng) -> Stage {
        let Reading { depth, sectors } = reading;
        let page = |page: u64| Bytes::new(page * SECTOR_SIZE as u64);
        let mut steps = Vec::new();
        for at in WARM {
            let warm = |file| Step::Read { file, offset: page(at), length: Bytes::new(1) };
            steps.extend((0..self.files).map(FileId).map(warm));
        }
        let mut order: Vec<u32> = (0..self.files).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, rng.below(at as u64 + 1) as usize);
        }
        // Whole sectors, and not the first ones, which would be read in sequence.
        steps.extend(order.iter().map(|&file| {
            let place = 2 + rng.below(PAGES - 2 - sectors);
            Step::Read { file: FileId(file), offset: page(place), length: page(sectors) }
        }));
        Stage { name: "read", is_measured: true, window: depth, steps }
    }
}

fn run(mounted: &mut Mounted, stage: &Stage) -> Result<Took, String> {
    mounted.carry_out(stage).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::tests::measured_rows;

    /// An eighth of the files; the bar is 5 % at each size for both together.
    #[test]
    fn reads_of_kind_b_lose_below_five_percent_and_of_coded_files_more_the_longer_they_are() {
        let ask = Ask { quick: true, seed: 7, seeds: 1, traces: Vec::new() };
        let mut plan = fig_7(&ask).unwrap();
        let readings = SIZES.map(|(sectors, _)| Reading { depth: 1, sectors }).to_vec();
        let reads = RandomReads { files: 240, rounds: 10, readings };
        plan.cells = vec![
            reads.cell(NO_CODE.to_owned(), FilesBed::PERFECT),
            reads.cell(ALONE.to_owned(), FilesBed::coded(255, 1e-2).unwrap()),
            reads.cell(BOTH.to_owned(), FilesBed::forced(Kinds::ByHabit, 1e-2).unwrap()),
        ];
        plan.rows.retain(|row| row.metric == ALONE || row.metric == BOTH);
        let rows = measured_rows(&plan, 7);
        let of = |metric| rows.iter().filter(move |row| row.metric == metric).map(|row| row.ours);
        assert_eq!(of(BOTH).count(), 4);
        assert!(of(BOTH).all(|loss| loss < 5.0), "{rows:?}");
        let losses: Vec<f64> = of(ALONE).collect();
        assert!(losses[0] < 5.0 && losses[3] > 12.0, "{losses:?}");
        assert!(losses[1] < losses[3], "{losses:?}");
    }
}
