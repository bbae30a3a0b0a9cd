//! Retries as the drive's own code makes them: `sdhdd.retry`, which holds the table against the decoder and against the drive,
//! and `sdhdd.wander`, which asks what zero forcing is worth where heads wander.

use levelhead_block::{Command, Effort, Outcome, ZeroTail};
use levelhead_drive::{Drive, Ecc, Faults, Profile, Settings};
use levelhead_ldpc::{CURVES, DecodedRetries, Kernel, RetryModel, RetryTable, Step, ZeroForcing};
use levelhead_planner::code::failure;
use levelhead_stats::Streams;
use levelhead_units::{Extent, Instant, Lba, Sectors};

use super::super::files::least;
use crate::studies::plan::{Cell, Measured};
use crate::studies::{Ask, Bars, Drawing, Head, Row, Study, StudyPlan, Takes, Unit, Whose};

pub(super) const RETRY: Study = Study {
    name: "sdhdd.retry",
    title: "Retries of a drive: the table, its decoder sector by sector, and the modelled drive",
    source: "[SDHDD], sec. 3.1 (ours)",
    says: "A sector that fails is read again, one to several revolutions.",
    bed: "one drive that reads sectors one by one; the code inside it, decoded for real",
    seeds_quick: 1,
    seeds_full: 3,
    takes: Takes::Nothing,
    plan: retry,
};

pub(super) const WANDER: Study = Study {
    name: "sdhdd.wander",
    title: "What zero forcing gains where heads wander",
    source: "[SDHDD], sec. 3 (ours)",
    says: "All sectors have one raw error rate; 512 zeroes take a failure rate of 1e-3 far below 1e-8.",
    bed: "the retry table of a drive's code; reads of groups on the modelled drive",
    seeds_quick: 1,
    seeds_full: 3,
    takes: Takes::Nothing,
    plan: wander,
};

/// A drive that fails often enough for each step to be seen.
fn failing_often() -> RetryModel {
    RetryModel { failure_rate: 0.05, written_offset: 0.06, pass_offset: 0.05, steps: Step::list() }
}

/// The table of a model, for the rest of the process: a few of them in each run.
pub(super) fn kept(model: &RetryModel, name: &str) -> Result<Ecc, String> {
    let table = model.table(name).map_err(|error| error.to_string())?;
    Ok(Ecc::of(Box::leak(Box::new(table))))
}

const DECODED: &str = "decoder";
const DRIVE: &str = "drive";

fn retry(ask: &Ask) -> Result<StudyPlan, String> {
    let ecc = kept(&failing_often(), "retry")?;
    let (sectors, reads) = (ask.pick(3_000, 20_000), ask.pick(100_000, 1_000_000));
    let mut plan = StudyPlan::default();
    for (tail, forced) in [(ZeroTail::None, ZeroForcing::None), (ZeroTail::B512, ZeroForcing::B512)]
    {
        let name = |what: &str| format!("{what}, {forced} bytes");
        plan.cells.push(Cell::new(name(DECODED), move |seed| decode(forced, sectors, seed)));
        plan.cells.push(Cell::new(name(DRIVE), move |seed| read(ecc, tail, reads, seed)));
        let mut groups = Vec::new();
        for step in 0..ecc.table().step_count() {
            let case = format!("{forced} bytes, step {step}");
            let law = ecc.table().all_fail(forced, step);
            let row = |metric: &str| Head::new(case.clone(), metric);
            plan.rows.push(Row::exact(row("fails by the table"), Unit::Probability, law));
            for (what, drawn) in [(DECODED, sectors), (DRIVE, reads)] {
                let (cell, value) = (name(what), format!("step {step}"));
                let metric = format!("fails, {what}");
                plan.rows.push(Row::new(row(&metric), Unit::Probability, move |seed| {
                    seed.get(&cell, &value) / drawn as f64
                }));
                let (cell, value) = (name(what), format!("step {step}"));
                let metric = format!("deviations, {what}");
                plan.rows.push(Row::new(row(&metric), Unit::Count, move |seed| {
                    deviations(seed.get(&cell, &value), law, drawn)
                }));
            }
            groups.push(case);
        }
        let bars = ["fails by the table", "fails, decoder", "fails, drive"].map(|metric| Bars {
            name: metric.to_owned(),
            rows: groups.iter().map(|case| (case.clone(), metric.to_owned())).collect(),
            whose: Whose::Ours,
        });
        plan.drawings.push(Drawing::Bars {
            title: format!(
                "Share of sectors that all steps leave unread, {forced} bytes of zeroes"
            ),
            axis: "share".to_owned(),
            is_log: true,
            groups: (0..ecc.table().step_count()).map(|step| step.to_string()).collect(),
            bars: bars.to_vec(),
        });
    }
    plan.remarks.push(format!(
        "First passes fail at 5 %, heads write 6 % and read 5 % of the track pitch off: every step is seen. Decoder: {sectors} sectors of random \
         data, each encoded, sent with offsets and noise of its own, and decoded until a step has it. Drive: {reads} reads of one sector of \
         nearline-2tb, by the revolutions they took. 'Deviations' are those of the count from the table, in standard deviations of a \
         count with that probability; 99.9 % of all lie within 3.29."
    ));
    Ok(plan)
}

/// How far a count lies from what a probability makes expected, in its standard deviations.
fn deviations(count: f64, law: f64, of: u64) -> f64 {
    let of = of as f64;
    let deviation = (of * law * (1.0 - law)).sqrt();
    let off = count - of * law;
    // Of what cannot be otherwise, one is infinitely far off.
    if off.abs() > 0.0 { off / deviation } else { 0.0 }
}

/// A count for each step of the sectors on which it and all before it have failed.
fn counted(steps: usize, ends: impl Iterator<Item = Option<usize>>) -> Measured {
    let mut failed = vec![0_u64; steps];
    for end in ends {
        failed[..end.unwrap_or(steps)].iter_mut().for_each(|count| *count += 1);
    }
    let named = failed.into_iter().enumerate();
    named.fold(Measured::default(), |all, (step, count)| {
        all.with(&format!("step {step}"), count as f64)
    })
}

fn decode(forced: ZeroForcing, sectors: u64, seed: u64) -> Result<Measured, String> {
    let model = failing_often();
    let steps = model.steps.len();
    let mut rng = Streams::new(seed).stream(&format!("decoded retries/{forced}"));
    let mut drive =
        DecodedRetries::new(model, forced, Kernel::best()).map_err(|error| error.to_string())?;
    Ok(counted(steps, (0..sectors).map(|_| drive.read(&mut rng))))
}

fn read(ecc: Ecc, tail: ZeroTail, reads: u64, seed: u64) -> Result<Measured, String> {
    /// Sectors that are written and read, again and again.
    const ROUND: u64 = 4_000;
    let mut drive = OneDrive::new(ecc, seed)?;
    let table = ecc.table();
    let mut ends = Vec::with_capacity(reads as usize);
    for at in 0..reads {
        if at.is_multiple_of(ROUND) {
            drive.write(Extent::new(Lba::ZERO, Sectors::new(ROUND)), tail);
        }
        let lba = Lba::new(at % ROUND);
        let retries = drive.read(Extent::new(lba, Sectors::new(1)), Effort::Full);
        ends.push(if retries.unread > 0 { None } else { step_of(table, retries.rotations) });
    }
    Ok(counted(table.step_count(), ends.into_iter()))
}

/// The step that is over after so many revolutions of retries.
fn step_of(table: &RetryTable, rotations: u32) -> Option<usize> {
    let mut end = 0;
    (0..table.step_count()).find(|&step| {
        end += table.revolutions(step);
        end >= rotations
    })
}

/// A drive that is asked one thing at a time.
struct OneDrive {
    drive: Drive,
    now: Instant,
    origin: u64,
}

/// What a read came to.
struct Retried {
    rotations: u32,
    /// Sectors that it left unread.
    unread: usize,
}

impl OneDrive {
    fn new(ecc: Ecc, seed: u64) -> Result<Self, String> {
        let faults = Faults { ecc: Some(ecc), ..Faults::NONE };
        let settings = Settings { faults, ..Settings::PLAIN };
        let profile = Profile::shipped("nearline-2tb").ok_or("no drive nearline-2tb")?;
        let drive = Drive::new(profile, settings, Streams::new(seed), "retries")
            .map_err(|error| error.to_string())?;
        Ok(Self { drive, now: Instant::ZERO, origin: 0 })
    }

    fn write(&mut self, extent: Extent, zero_tail: ZeroTail) {
        let durability = levelhead_block::Durability::Cached;
        self.run(Command::Write { extent, durability, zero_tail });
    }

    fn read(&mut self, extent: Extent, effort: Effort) -> Retried {
        self.run(Command::Read { extent, effort })
    }

    fn run(&mut self, command: Command) -> Retried {
        self.origin += 1;
        self.drive.handle_submit(self.now, self.origin, command, self.origin);
        loop {
            if let Some(completion) = self.drive.poll() {
                let unread = match completion.outcome {
                    Outcome::Done { unknown, damaged } => unknown.len() + damaged.len(),
                    Outcome::Gone | Outcome::Refused | Outcome::Unreachable => {
                        unreachable!("it lives")
                    }
                };
                return Retried { rotations: completion.retries, unread };
            }
            self.now = self.drive.deadline().expect("a command ends");
            self.drive.handle_timeout(self.now);
        }
    }
}

/// Standard deviations of both offsets, in percent of the track pitch.
const OFFSETS: [u32; 5] = [0, 1, 2, 3, 4];
const FAILURE_RATE: f64 = 5e-3;
/// What a group may fail with.
const TARGET: f64 = 1e-6;
/// A code that fails often enough for its groups to be read.
const WEAK: levelhead_planner::Code = levelhead_planner::Code { data: 252, redundant: 3 };

fn wander(ask: &Ask) -> Result<StudyPlan, String> {
    let mut plan = StudyPlan::default();
    let groups = ask.pick(6_000, 40_000);
    let mut cases = Vec::new();
    for offset in OFFSETS {
        let share = f64::from(offset) / 100.0;
        let model = RetryModel {
            failure_rate: FAILURE_RATE,
            written_offset: share,
            pass_offset: share,
            steps: Step::list(),
        };
        let ecc = kept(&model, &format!("wander {offset} %"))?;
        let table = ecc.table();
        let case = format!("offsets of {offset} %");
        let exact = |plan: &mut StudyPlan, metric: &str, unit: Unit, value: f64| {
            plan.rows.push(Row::exact(Head::new(case.clone(), metric), unit, value));
        };
        let levels =
            [("256", ZeroForcing::B256), ("512", ZeroForcing::B512), ("1024", ZeroForcing::B1024)];
        for (name, level) in levels {
            let left = table.all_fail(level, 0);
            exact(&mut plan, &format!("first pass, {name} bytes"), Unit::Probability, left);
            let gain = FAILURE_RATE / left;
            exact(&mut plan, &format!("gain, {name} bytes"), Unit::Times, gain);
        }
        for (step, name) in [(1, "after one retry"), (table.step_count() - 1, "after all steps")] {
            let left = table.all_fail(ZeroForcing::None, step);
            exact(&mut plan, name, Unit::Probability, left);
        }
        let again: f64 = (0..table.class_count())
            .map(|class| table.share(class) * table.fails(class, ZeroForcing::None, 0).powi(2))
            .sum();
        let again = again / FAILURE_RATE;
        exact(&mut plan, "sector that failed fails again", Unit::Probability, again);
        // The three kinds of files, with what they need to meet the target, and what the paper's design leaves.
        let equal = CURVES[0].under(ZeroForcing::B256, FAILURE_RATE);
        let (designed, forced) = (least(255, equal)?, table.all_fail(ZeroForcing::B256, 0));
        let needed = least(255, FAILURE_RATE)?.redundant;
        exact(&mut plan, "kind A, redundant symbols of 255", Unit::Count, needed as f64);
        exact(
            &mut plan,
            "kind B, redundant symbols of 255",
            Unit::Count,
            least(255, forced)?.redundant as f64,
        );
        let left = failure(designed, forced);
        exact(&mut plan, "kind B, group fails as designed", Unit::Probability, left);
        let mutable = table.all_fail(ZeroForcing::B512, 0);
        exact(&mut plan, "mutable, sector fails", Unit::Probability, mutable);
        let meets = [failure(least(255, FAILURE_RATE)?, FAILURE_RATE), left, mutable];
        let meets = meets.into_iter().filter(|left| *left <= TARGET).count();
        exact(&mut plan, "kinds that meet 1e-6", Unit::Count, meets as f64);
        // Eq. 1 asks for independent sectors.
        let name = format!("groups, {case}");
        plan.cells.push(Cell::new(name.clone(), move |seed| read_groups(ecc, groups, seed)));
        let law = failure(WEAK, FAILURE_RATE);
        exact(&mut plan, "group of 3,252 fails, Eq. 1", Unit::Probability, law);
        let cell = name.clone();
        let head = Head::new(case.clone(), "group fails, drive");
        plan.rows.push(Row::new(head, Unit::Probability, move |seed| seed.get(&cell, "once")));
        let head = Head::new(case.clone(), "group that failed fails again, drive");
        plan.rows.push(Row::new(head, Unit::Probability, move |seed| seed.get(&name, "again")));
        cases.push(case);
    }
    plan.remarks = vec![
        "First passes of sectors without zeroes fail at 5e-3 whatever heads do. Offsets are standard deviations, as shares of the track \
         pitch, of writing and of each pass; the amplitude is gone at 50 %."
            .to_owned(),
        "As designed, kind B has the code that leaves 1e-6 of the groups of 255 where all sectors are equal (2 redundant symbols by the curve of 256 \
         zeroes), and mutable files have none: the paper's three kinds meet 1e-6 where the row says 3."
            .to_owned(),
        "Sectors are written and read with offsets of their own, so that Eq. 1 holds for a read of a group. It does not hold for reads of one \
         group together: what was written beside the track fails again."
            .to_owned(),
    ];
    let bars = ["gain, 256 bytes", "gain, 512 bytes"].map(|metric| Bars {
        name: metric.to_owned(),
        rows: cases.iter().map(|case| (case.clone(), metric.to_owned())).collect(),
        whose: Whose::Ours,
    });
    plan.drawings.push(Drawing::Bars {
        title: "How many times fewer sectors fail with zeroes at their ends".to_owned(),
        axis: "times".to_owned(),
        is_log: true,
        groups: cases,
        bars: bars.to_vec(),
    });
    Ok(plan)
}

/// The share of groups whose first read fails more sectors than the code repairs, and of these the share whose second read does.
fn read_groups(ecc: Ecc, groups: u64, seed: u64) -> Result<Measured, String> {
    let mut drive = OneDrive::new(ecc, seed)?;
    let (mut once, mut again) = (0_u64, 0_u64);
    for group in 0..groups {
        let extent = Extent::new(Lba::new(group * WEAK.length()), Sectors::new(WEAK.length()));
        let mut fails = || drive.read(extent, Effort::Fast).unread as u64 > WEAK.redundant;
        if fails() {
            once += 1;
            again += u64::from(fails());
        }
    }
    Ok(Measured::default()
        .with("once", once as f64 / groups as f64)
        .with("again", again as f64 / once.max(1) as f64))
}
