//! Figure 3: how often a coding group cannot be decoded without retries, where failures of adjacent
//! sectors are correlated.
//!
//! The closed forms are the planner's, which shares no code with what simulates.
//!
//! The simulation draws codewords: on each drive a run of `e` sectors, the first failed with probability
//! `p`, every next one with `c p` after a failed one. After a good one it fails with
//! `p (1 - c p) / (1 - p)`, so that every sector fails with probability `p`.

use levelhead_planner::{Code, code};
use levelhead_stats::Streams;

use crate::studies::{
    Ask, Bars, Cell, Drawing, Head, Measured, Row, Study, StudyPlan, Takes, Unit, Whose,
};

pub(super) const FIG_3: Study = Study {
    name: "eraid.fig3",
    title: "Probability that a coding group needs a retry, by expansion and correlation",
    source: "[ERAID], Fig. 3",
    says: "At 1 % of sectors failing, a group of RAID-5 over six drives needs a retry with probability \
           1.46e-3; eRAID(2) and eRAID(3) make that 2.06e-4 and 2.73e-5. Where a failed sector makes \
           its neighbour twice as likely to fail, eRAID(2) and eRAID(3) still need about 3e-4 and 4e-5.",
    bed: "5+1 drives, 1 % of sectors fail; codewords drawn directly: no array, no drive, no queue",
    seeds_quick: 8,
    seeds_full: 20,
    takes: Takes::Nothing,
    plan: |ask| Ok(plan(ask)),
};

const DRIVES: u32 = 6;
const REDUNDANT: u32 = 1;
const RATE: f64 = 0.01;

/// Expansion, the paper's closed form, and the paper's simulation at adjacency 2 (read off its plot).
const PAPER: [(u32, f64, Option<f64>); 3] =
    [(1, 1.46e-3, None), (2, 2.06e-4, Some(3e-4)), (3, 2.73e-5, Some(4e-5))];

fn plan(ask: &Ask) -> StudyPlan {
    let mut plan = StudyPlan::default();
    let count: u64 = ask.pick(2_000_000, 20_000_000);
    for (expansion, closed, simulated) in PAPER {
        let case = format!("eRAID({expansion}), independent");
        let head = Head::new(case.clone(), "closed form");
        let row = Row::exact(head, Unit::Probability, independent(expansion));
        plan.rows.push(row.paper(closed));
        plan.rows.push(Row::of(case.clone(), "simulated", Unit::Probability));
        plan.cells.push(cell(case, expansion, 1.0, count));

        let case = format!("eRAID({expansion}), adjacency 2");
        let head = Head::new(case.clone(), "upper bound");
        plan.rows.push(Row::exact(head, Unit::Probability, bound(expansion, 2.0)));
        let row = Row::of(case.clone(), "simulated", Unit::Probability);
        plan.rows.push(row.maybe_paper(simulated));
        plan.cells.push(cell(case, expansion, 2.0, count));
    }
    let case = |expansion: u32, kind: &str| format!("eRAID({expansion}), {kind}");
    let bar = |name: &str, kind: &str, metric: &str, whose| Bars {
        name: name.to_owned(),
        rows: PAPER.map(|(e, ..)| (case(e, kind), metric.to_owned())).to_vec(),
        whose,
    };
    plan.drawings.push(Drawing::Bars {
        title: "A coding group needs a retry".to_owned(),
        axis: "probability".to_owned(),
        is_log: true,
        groups: PAPER.map(|(e, ..)| format!("eRAID({e})")).to_vec(),
        bars: vec![
            bar("independent, paper", "independent", "closed form", Whose::Paper),
            bar("independent, closed form", "independent", "closed form", Whose::Ours),
            bar("independent, simulated", "independent", "simulated", Whose::Ours),
            bar("adjacency 2, paper's simulation", "adjacency 2", "simulated", Whose::Paper),
            bar("adjacency 2, simulated", "adjacency 2", "simulated", Whose::Ours),
            bar("adjacency 2, bound", "adjacency 2", "upper bound", Whose::Ours),
        ],
    });
    plan
}

/// The probability that a coding group of independent sectors cannot be decoded.
pub(super) fn independent(expansion: u32) -> f64 {
    code::failure(group(expansion), RATE)
}

/// The paper's bound for sectors that are `adjacency` times likelier to fail beside a failed one.
fn bound(expansion: u32, adjacency: f64) -> f64 {
    code::failure_bound_correlated(group(expansion), RATE, adjacency)
}

fn group(expansion: u32) -> Code {
    code::coding_group((DRIVES - REDUNDANT).into(), REDUNDANT.into(), expansion.into())
}

/// Draws `count` codewords and counts those with more failed sectors than redundant ones.
fn cell(name: String, expansion: u32, c: f64, count: u64) -> Cell {
    let after_good = RATE * (1.0 - c * RATE) / (1.0 - RATE);
    Cell::new(name.clone(), move |seed| {
        let mut rng = Streams::new(seed).stream(&format!("correlation/{name}"));
        let lost = (0..count).filter(|_| {
            let mut failed = 0;
            for _ in 0..DRIVES {
                let mut rate = RATE;
                for _ in 0..expansion {
                    let fails = rng.unit() < rate;
                    failed += u32::from(fails);
                    rate = if fails { c * RATE } else { after_good };
                }
            }
            failed > expansion * REDUNDANT
        });
        Ok(Measured::default().with("simulated", lost.count() as f64 / count as f64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reproduces_the_closed_forms_of_the_paper_to_three_digits() {
        for (expansion, closed, _) in PAPER {
            // The paper cuts after three digits: 2.7351e-5 is its 2.73e-5.
            let digit = 10_f64.powf(closed.log10().floor() - 2.0);
            let difference = independent(expansion) - closed;
            assert!((-0.5..1.0).contains(&(difference / digit)), "{expansion}: {difference}");
        }
        // The bound, worked out in the digest.
        assert_eq!(format!("{:.1e}", bound(2, 2.0)), "7.5e-4");
        assert_eq!(format!("{:.1e}", bound(3, 2.0)), "9.8e-5");
    }

    #[test]
    fn simulation_meets_the_closed_form_within_four_standard_errors() {
        let count = 400_000;
        for (expansion, ..) in PAPER {
            let law = independent(expansion);
            let measured =
                cell("independent".to_owned(), expansion, 1.0, count).measure(3).unwrap();
            let error = (law / count as f64).sqrt();
            assert!((measured.values["simulated"] - law).abs() < 4.0 * error, "{measured:?} {law}");
        }
    }
}
