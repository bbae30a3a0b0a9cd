//! Figure 1: failures of a drive's own code over the raw bit error rate, by the zeroes at a sector's end.
//!
//! ```text
//!   cell  = a point and some of its blocks of frames   --> frames, failures
//!   point = its cells together                         --> a rate with its exact interval
//!   curve = its points together                        --> a fit; its band from counts drawn again
//! ```
//!
//! Blocks are those of `levelhead-lab ecc simulate` with the same seed, from the first on. A point has a number of frames that is given before, and
//! does not end with a failure: so its cells need nothing of each other. Where failures are rare a point is as long as the
//! paper's twenty failures take, and half as long again.

use levelhead_ldpc::{
    BLOCK_FRAMES, Bootstrap, ChannelKind, Count, Fit, Fitted, Kernel, Point, ZeroForcing,
};
use levelhead_planner::Code;
use levelhead_planner::code::failure_rate_max;
use levelhead_planner::system::forced_failure_rate;

use super::counted::RATES;
use crate::studies::plan::sum;
use crate::studies::{
    Cell, Curve, Drawing, Head, Measured, OneSeed, Place, Row, Study, StudyPlan, Takes, Unit,
};

pub(super) const FIG_1: Study = Study {
    name: "sdhdd.fig1",
    title: "Failures of a drive's code over the raw bit error rate, by zeroes at a sector's end",
    source: "[SDHDD], Fig. 1",
    says: "Each step from 0 to 256, 512 and 1024 zeroes makes failures rarer by orders of magnitude; where one sector in a thousand fails \
           without zeroes, failures with 512 are far below 1e-8. The figure's numbers are not in the text.",
    bed: "LDPC code (36352, 32768), layered normalised min-sum over bytes, 50 iterations, white Gaussian noise, soft input; random \
          codewords. No drive",
    seeds_quick: 1,
    seeds_full: 1,
    takes: Takes::Nothing,
    plan: |ask| Ok(plan(&ask.pick(QUICK, FULL))),
};

/// How much is counted at one raw bit error rate.
#[derive(Clone, Copy, Debug)]
struct Load {
    ber: f64,
    blocks: u64,
}

/// The points of a curve, the most noise first.
type Loads = [&'static [Load]; 4];

const fn load(ber: f64, frames: u64) -> Load {
    Load { ber, blocks: frames.div_ceil(BLOCK_FRAMES) }
}

/// At rates of about 1e-2, 1e-3, 2e-4 and just below 1e-5 (20 failures or more).
const FULL: Loads = [
    &[load(0.018, 12_800), load(0.0175, 76_800), load(0.0171, 192_000), load(0.0166, 3_520_000)],
    &[load(0.019, 12_800), load(0.0185, 128_000), load(0.0182, 192_000), load(0.01765, 3_200_000)],
    &[load(0.0205, 6_400), load(0.02, 38_400), load(0.0194, 192_000), load(0.01885, 2_752_000)],
    &[load(0.0235, 12_800), load(0.023, 51_200), load(0.0224, 192_000), load(0.0218, 2_752_000)],
];

const QUICK: Loads = [
    &[load(0.018, 2_560), load(0.0175, 12_800), load(0.017, 6_400)],
    &[load(0.019, 2_560), load(0.0185, 12_800), load(0.018, 6_400)],
    &[load(0.0205, 1_920), load(0.02, 10_240), load(0.0194, 6_400)],
    &[load(0.024, 1_280), load(0.0235, 5_120), load(0.0225, 6_400)],
];

/// The most blocks of a cell: a few seconds.
const CELL_BLOCKS: u64 = 200;

/// The most wrong bits of a failure that counts as slight: where an error floor begins, failures have a few bits, and others hundreds.
const SLIGHT_MAX: u32 = 100;

/// Failure rates whose raw bit error rate by the fit is shown and drawn.
const SHOWN: [f64; 7] = [1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8];

/// The points of one curve, and the cells that count them.
#[derive(Clone, Debug)]
struct Counted {
    forced: ZeroForcing,
    points: Vec<(f64, Vec<String>)>,
}

fn plan(loads: &Loads) -> StudyPlan {
    let mut plan = StudyPlan::default();
    let curves: Vec<Counted> = ZeroForcing::ALL
        .into_iter()
        .zip(loads)
        .map(|(forced, loads)| {
            let points = loads.iter().map(|load| (load.ber, add_cells(&mut plan, forced, *load)));
            Counted { forced, points: points.collect() }
        })
        .collect();
    for curve in &curves {
        add_points(&mut plan, curve);
    }
    for curve in &curves {
        add_fit(&mut plan, curve);
    }
    for rate in RATES {
        add_gains(&mut plan, &curves, rate);
    }
    plan.drawings.push(drawing(&curves));
    plan.remarks = vec![
        "A point is a number of frames given before, and its interval that of Clopper and Pearson: without a failure, an upper end and no point. \
         The band of a fit is that of 1,000 sets of counts drawn from it (2.5 % left out at either end); below the rates that were counted it \
         continues a straight line, and knows of no error floor."
            .to_owned(),
        format!(
            "Failures of at most {SLIGHT_MAX} wrong bits would be where an error floor begins; others have hundreds."
        ),
        "The paper does not give its code, decoder and quantiser: at which bit error rates the curves lie is ours, how far they lie apart can be \
         compared. What its Table 2 allows is the largest rate at which its code of 255 still meets 1e-6."
            .to_owned(),
    ];
    plan
}

fn point_case(forced: ZeroForcing, ber: f64) -> String {
    format!("{forced} B, BER {ber}")
}

/// Adds the cells of a point; gives their names.
fn add_cells(plan: &mut StudyPlan, forced: ZeroForcing, load: Load) -> Vec<String> {
    let mut names = Vec::new();
    let mut first = 0;
    while first < load.blocks {
        let end = load.blocks.min(first + CELL_BLOCKS);
        let name = format!("{}, blocks {first} to {}", point_case(forced, load.ber), end - 1);
        names.push(name.clone());
        plan.cells.push(Cell::new(name, move |seed| {
            let channel = ChannelKind::Soft;
            let point = Point { forced, channel, ber: load.ber, iterations: 50, seed };
            count(&point, first..end)
        }));
        first = end;
    }
    names
}

fn count(point: &Point, blocks: std::ops::Range<u64>) -> Result<Measured, String> {
    let (kernel, mut slight) = (Kernel::best(), 0);
    let (mut failures, mut undetected, mut iterations) = (0, 0, 0);
    let trials = (blocks.end - blocks.start) * BLOCK_FRAMES;
    for number in blocks {
        let failed = |wrong| slight += u64::from(wrong <= SLIGHT_MAX);
        let block = point.block_with_failures(number, kernel, failed);
        let block = block.map_err(|error| error.to_string())?;
        failures += u64::from(block.failed.count_ones());
        undetected += u64::from(block.undetected.count_ones());
        iterations += block.iterations;
    }
    Ok(Measured::default()
        .with("trials", trials as f64)
        .with("failures", failures as f64)
        .with("undetected", undetected as f64)
        .with("slight", slight as f64)
        .with("iterations", iterations as f64))
}

/// What was counted at each point, and the fit beside it.
fn add_points(plan: &mut StudyPlan, curve: &Counted) {
    for (ber, cells) in &curve.points {
        let (ber, case) = (*ber, point_case(curve.forced, *ber));
        let head = |metric: &str| Head::new(case.clone(), metric);
        plan.rows.push(Row::counted(head("failure rate"), cells.clone()));
        let rate = move |fit: &Fit| fit.failure_at(ber);
        plan.rows.push(of_curve(head("by the fit"), Unit::Probability, curve, rate));
        plan.rows.push(Row::sum(head("failures"), Unit::Count, "failures", cells.clone()));
        plan.rows.push(Row::sum(head("frames"), Unit::Count, "trials", cells.clone()));
        let all = cells.clone();
        plan.rows.push(Row::together(head("iterations of a frame"), Unit::Count, move |seeds| {
            let [iterations, trials] =
                ["iterations", "trials"].map(|value| sum(seeds, &all, value));
            [iterations / trials; 3]
        }));
    }
}

/// The curve itself, and the limits beside it.
fn add_fit(plan: &mut StudyPlan, curve: &Counted) {
    let forced = curve.forced;
    let case = format!("{forced} B");
    let head = |metric: &str| Head::new(case.clone(), metric);
    for rate in SHOWN {
        let ber = move |fit: &Fit| fit.ber_at(rate);
        plan.rows.push(of_curve(head(&ber_metric(rate)), Unit::Probability, curve, ber));
    }
    plan.rows.push(of_curve(head("centre"), Unit::Times, curve, |fit| fit.centre));
    plan.rows.push(of_curve(head("slope"), Unit::Times, curve, |fit| fit.slope));
    let points = curve.clone();
    let freedom = curve.points.len() - 2;
    let metric = format!("chi-squared, {freedom} degrees of freedom");
    plan.rows.push(Row::together(head(&metric), Unit::Count, move |seeds| {
        points.fitted(seeds).map_or(NONE, |(fitted, _)| [fitted.chi_squared; 3])
    }));
    let cells: Vec<String> = curve.points.iter().flat_map(|(_, cells)| cells.clone()).collect();
    for (metric, value) in
        [("undetected failures", "undetected"), ("failures of at most 100 wrong bits", "slight")]
    {
        plan.rows.push(Row::sum(head(metric), Unit::Count, value, cells.clone()));
    }
    for (metric, ber) in [
        (
            "BER at which the best code of this length fails with 1e-2",
            forced.ber_of_best_code(1e-2),
        ),
        ("BER at capacity", forced.ber_at_capacity()),
    ] {
        plan.rows.push(Row::exact(head(metric), Unit::Probability, ber));
    }
}

const _: () = assert!(SLIGHT_MAX == 100, "a row says so");

fn ber_metric(rate: f64) -> String {
    format!("BER at a failure rate of {rate:e}")
}

/// What is left of a failure rate under zeroes.
fn add_gains(plan: &mut StudyPlan, curves: &[Counted], rate: f64) {
    let case = format!("failure rate {rate:e} without zeroes");
    let head = |metric: &str| Head::new(case.clone(), metric);
    for curve in &curves[1..] {
        let (plain, forced) = (curves[0].clone(), curve.clone());
        let metric = format!("under {} B", curve.forced);
        let row = Row::together(head(&metric), Unit::Probability, move |seeds| {
            let both = [plain.drawn(seeds), forced.drawn(seeds)];
            let [Some((plain, of_plain)), Some((forced, of_forced))] = both else { return NONE };
            let under = |plain: &Fit, forced: &Fit| forced.failure(plain.sigma_at(rate));
            let band = of_plain.band_with(&of_forced, under);
            [under(&plain, &forced), band.low, band.high]
        });
        // "Far below 1e-8", where one in a thousand fails without zeroes.
        let has_paper = curve.forced == ZeroForcing::B512 && (rate / 1e-3 - 1.0).abs() < 1e-9;
        plan.rows.push(row.maybe_paper(has_paper.then_some(1e-8)).at_most());
    }
    let assumed = forced_failure_rate(rate);
    plan.rows.push(Row::exact(head("under 256 B, as assumed"), Unit::Probability, assumed));
    if let Some((_, [_, _, (redundant, data)])) =
        super::CODES.iter().find(|(of, _)| (of / rate - 1.0).abs() < 1e-9)
    {
        let code = Code { data: *data, redundant: *redundant };
        let most = failure_rate_max(code, 1e-6);
        let head = head("under 256 B, at most by Table 2");
        plan.rows.push(Row::exact(head, Unit::Probability, most));
    }
}

/// No number: nothing to fit.
const NONE: [f64; 3] = [f64::INFINITY, f64::NEG_INFINITY, f64::INFINITY];

impl Counted {
    /// The fit of what all seeds have counted; none if too little failed.
    fn fitted(&self, seeds: &[OneSeed<'_>]) -> Option<(Fitted, Vec<Count>)> {
        let count = |(ber, cells): &(f64, Vec<String>)| {
            let [trials, failures] = ["trials", "failures"].map(|value| sum(seeds, cells, value));
            // Figures of a part that was changed by hand may be anything.
            let can_be = trials.is_finite() && trials >= 1.0 && (0.0..=trials).contains(&failures);
            can_be.then(|| Count::of_frames(*ber, trials as u64, failures as u64))
        };
        let counts: Option<Vec<Count>> = self.points.iter().map(count).collect();
        let counts = counts?;
        Some((Fitted::of(self.forced, &counts)?, counts))
    }

    /// The fit, and its counts drawn again.
    fn drawn(&self, seeds: &[OneSeed<'_>]) -> Option<(Fit, Bootstrap)> {
        let (fitted, counts) = self.fitted(seeds)?;
        let failures: u64 = counts.iter().map(|count| count.failures).sum();
        // Fewer have hardly a curve, and their draws often none.
        (failures >= 20).then(|| {
            let drawn = Bootstrap::new(&fitted, &counts, Bootstrap::RESAMPLES, BAND_SEED);
            (fitted.fit, drawn)
        })
    }
}

/// What counts are drawn again from: the same whatever the study's seed is.
const BAND_SEED: u64 = 1;

/// A row of what follows from a curve, with its band.
fn of_curve(
    head: Head,
    unit: Unit,
    curve: &Counted,
    value: impl Fn(&Fit) -> f64 + Send + Sync + 'static,
) -> Row {
    let curve = curve.clone();
    Row::together(head, unit, move |seeds| {
        let Some((fit, drawn)) = curve.drawn(seeds) else { return NONE };
        let band = drawn.band(&value);
        [value(&fit), band.low, band.high]
    })
}

fn drawing(curves: &[Counted]) -> Drawing {
    let counted = curves.iter().map(|curve| Curve {
        name: format!("{} B, counted", curve.forced),
        points: curve
            .points
            .iter()
            .map(|(ber, _)| {
                let case = point_case(curve.forced, *ber);
                [Place::At(*ber), Place::Row(case, "failure rate".to_owned())]
            })
            .collect(),
        is_joined: false,
    });
    let fits = curves.iter().map(|curve| Curve {
        name: format!("{} B, fit", curve.forced),
        points: SHOWN
            .map(|rate| {
                let case = format!("{} B", curve.forced);
                [Place::Row(case, ber_metric(rate)), Place::At(rate)]
            })
            .to_vec(),
        is_joined: true,
    });
    Drawing::Curves {
        title: "Sectors that a drive's code does not decode, by zeroes at their end".to_owned(),
        across: "raw bit error rate (white Gaussian noise, soft input)".to_owned(),
        up: "failure rate".to_owned(),
        curves: counted.chain(fits).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::tests::measured_rows;

    #[test]
    fn points_are_counted_whatever_the_cells_and_fits_go_through_them() {
        const FEW: Loads = [
            &[load(0.0185, 640), load(0.018, 1_920)],
            &[load(0.0195, 640), load(0.019, 1_920)],
            &[load(0.021, 640), load(0.0205, 1_280)],
            &[load(0.0245, 640), load(0.024, 1_280)],
        ];
        let mut plan = plan(&FEW);
        let bands = |row: &Row| row.metric == "failure rate" || row.metric == "under 256 B";
        plan.rows.retain(bands);
        let rows = measured_rows(&plan, 7);
        let counted: Vec<_> = rows.iter().filter(|row| row.metric == "failure rate").collect();
        assert_eq!(counted.len(), 8);
        // The blocks of `ecc simulate` with the same seed.
        let point = Point {
            forced: ZeroForcing::None,
            channel: ChannelKind::Soft,
            ber: 0.0185,
            iterations: 50,
            seed: 7,
        };
        let blocks = (0..10).map(|block| point.block(block, Kernel::Portable).unwrap());
        let failures: u32 = blocks.map(|block| block.failed.count_ones()).sum();
        assert!((counted[0].ours - f64::from(failures) / 640.0).abs() < 1e-12, "{counted:?}");
        for pair in counted.chunks(2) {
            assert!(pair[0].ours > pair[1].ours && pair[1].low > 0.0, "{pair:?}");
        }
        let gain = rows.iter().find(|row| row.metric == "under 256 B").unwrap();
        assert!(gain.ours < 1e-4 && gain.low < gain.ours && gain.ours < gain.high, "{gain:?}");
    }

    #[test]
    fn full_runs_take_twenty_failures_where_they_are_rare() {
        for (fit, loads) in levelhead_ldpc::FITS.iter().zip(FULL) {
            for (at, load) in loads.iter().enumerate() {
                let rate = fit.failure_at(load.ber);
                let expected = rate * (load.blocks * BLOCK_FRAMES) as f64;
                let least = if rate > 3e-4 { 100.0 } else { 20.0 };
                assert!(expected > least, "{} {}: {expected}", fit.forced, load.ber);
                assert!(at < 3 || rate < 1e-5, "{} {}: {rate}", fit.forced, load.ber);
            }
        }
    }
}
