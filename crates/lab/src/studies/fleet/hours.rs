//! `[TAIL16]`'s tables and figures, of made-up fleets: whether the generator makes what the field has.
//!
//! One seed is one fleet of disks and one of solid-state drives, each of 20 million drive hours (quick: 2 million). Every line of an
//! exhibit (`levelhead_fleet::exhibits`) is a row, so that `levelhead-lab fleet analyze` says of a fleet what a study says of these. What a
//! line is called does not depend on chance: those that a fleet has in its first day it has later, too.

use std::collections::BTreeSet;

use levelhead_fleet::HoursTable;
use levelhead_fleet::analysis::{Kernel, Rules, Scope, Summary};
use levelhead_fleet::events::{EventsKernel, EventsSummary};
use levelhead_fleet::exhibits::{self, Exhibit, Fleet, Line};
use levelhead_fleet::generate::{HoursGenerator, Kind, Shape};

use super::super::{Ask, Cell, Drawing, Head, Measured, Row, Study, StudyPlan, Takes, Unit};

const BED: &str = "synthetic fleets, one of disks and one of solid-state drives, each of 20 million drive hours \
    (quick: 2 million) in 2,075 \
                   hours, of which a tenth is missing; no drive that is modelled, no array";

type Plan = fn(&Ask) -> Result<StudyPlan, String>;

pub(super) fn studies() -> Vec<Study> {
    vec![
        study("fleet.table1", |ask| plan("table1", ask)),
        study("fleet.fig2", |ask| plan("fig2", ask)),
        study("fleet.table3", |ask| plan("table3", ask)),
        study("fleet.fig4", |ask| plan("fig4", ask)),
        study("fleet.fig5", |ask| plan("fig5", ask)),
        study("fleet.fig6", |ask| plan("fig6", ask)),
        study("fleet.fig7", |ask| plan("fig7", ask)),
        study("fleet.fig8", |ask| plan("fig8", ask)),
        study("fleet.fig9", |ask| plan("fig9", ask)),
        study("fleet.fig10", |ask| plan("fig10", ask)),
        study("fleet.fig11", |ask| plan("fig11", ask)),
    ]
}

fn study(name: &'static str, plan: Plan) -> Study {
    let Exhibit { title, says, .. } = exhibit_of(name.trim_start_matches("fleet."));
    let (seeds_quick, seeds_full, takes) = (2, 5, Takes::Nothing);
    Study { name, title, source: "[TAIL16]", says, bed: BED, seeds_quick, seeds_full, takes, plan }
}

fn exhibit_of(name: &str) -> Exhibit {
    let exhibit = exhibits::all().into_iter().find(|exhibit| exhibit.name == name);
    exhibit.expect("the names above are those of exhibits")
}

/// Hours of a fleet: with the tenth that is missing the study's 1,870 of each drive.
const HOURS: usize = 2075;

/// Drive hours of a fleet.
#[derive(Clone, Copy)]
struct Size(usize);

const FULL: Size = Size(20_000_000);
const QUICK: Size = Size(2_000_000);

impl Size {
    fn shape(self, kind: Kind, seed: u64) -> Shape {
        let width = match kind {
            Kind::Disk => 11.9,
            Kind::Ssd => 7.0,
        };
        let of_a_group = 0.9 * HOURS as f64 * width;
        let group_count = (self.0 as f64 / of_a_group).ceil() as usize;
        Shape { kind, group_count, hour_count: HOURS, seed }
    }
}

fn plan(name: &'static str, ask: &Ask) -> Result<StudyPlan, String> {
    let (exhibit, size) = (exhibit_of(name), ask.pick(QUICK, FULL));
    let mut plan = StudyPlan::default();
    let mut beside = Vec::new();
    for kind in [Kind::Disk, Kind::Ssd] {
        let cell = kind.plural();
        plan.cells.push(Cell::new(cell, move |seed| Ok(measure(&exhibit, size.shape(kind, seed)))));
        for line in lines_of(&exhibit, kind, ask) {
            let Line { metric, unit, paper, .. } = line;
            let head = Head::new(cell, metric.as_str());
            if paper.of(kind).is_some() && unit == exhibits::Unit::Percent {
                beside.push(head.clone());
            }
            let value = metric.clone();
            let row = Row::new(head, unit_of(unit), move |seed| seed.get(cell, &value));
            plan.rows.push(row.maybe_paper(paper.of(kind)));
        }
    }
    plan.drawings = drawings(&exhibit, &beside);
    Ok(plan)
}

/// The lines that fleets of this kind have under every seed.
fn lines_of(exhibit: &Exhibit, kind: Kind, ask: &Ask) -> Vec<Line> {
    let size = ask.pick(QUICK, FULL);
    let lines = |shape: Shape| {
        let (hours, events) = make(shape);
        exhibit.lines(&Fleet { hours: &hours, events: Some(&events) })
    };
    let seeds = ask.seeds();
    if matches!(exhibit.name, "table3" | "fig11") {
        // A quantile needs hours beyond it, and what is rare days: every seed has about as many.
        return lines(size.shape(kind, seeds[0]));
    }
    // The groups, their ages and models are those of the whole fleet.
    let day = |seed: u64| lines(Shape { hour_count: 24, ..size.shape(kind, seed) });
    let mut lines = day(seeds[0]);
    for &seed in &seeds[1..] {
        let others: BTreeSet<String> = day(seed).into_iter().map(|line| line.metric).collect();
        lines.retain(|line| others.contains(&line.metric));
    }
    lines
}

fn measure(exhibit: &Exhibit, shape: Shape) -> Measured {
    let (hours, events) = make(shape);
    let mut measured = Measured::default();
    for line in exhibit.lines(&Fleet { hours: &hours, events: Some(&events) }) {
        measured = measured.with(&line.metric, line.value);
    }
    if exhibit.name == "fig4" {
        let quantile = |share: f64| hours.tails(1).quantile(share).unwrap_or(1.0);
        measured.quantiles = Measured::SHARES.map(quantile).to_vec();
    }
    measured
}

/// A fleet, summed up as it is made.
fn make(shape: Shape) -> (Summary, EventsSummary) {
    /// Rows that are held.
    const ROWS: usize = 1 << 18;
    let mut generator = HoursGenerator::new(shape);
    let mut kernel = Kernel::new(Rules { scope: Scope::Everything, ios_min: 1 });
    let (mut of_events, mut table) = (EventsKernel::new(1), HoursTable::default());
    loop {
        let is_more = generator.next_hour(&mut table);
        if !is_more || table.len() > ROWS {
            let ordered = "a generator makes rows and events in order";
            kernel.handle(table.hours()).expect(ordered);
            of_events.handle_events(&generator.take_events()).expect(ordered);
            of_events.handle_hours(table.hours()).expect(ordered);
            table.clear();
        }
        if !is_more {
            let hours = kernel.finish().expect("a generator makes rows in order");
            return (hours, of_events.finish());
        }
    }
}

fn drawings(exhibit: &Exhibit, beside: &[Head]) -> Vec<Drawing> {
    if exhibit.name == "fig4" {
        let cells = [Kind::Disk, Kind::Ssd].map(|kind| {
            let name = kind.plural().to_owned();
            (name.clone(), name)
        });
        return vec![Drawing::Distributions {
            title: "Largest slowdown of a group hour".to_owned(),
            axis: "slowdown".to_owned(),
            cells: cells.to_vec(),
        }];
    }
    let mut metrics: Vec<&str> = beside.iter().map(|head| head.metric.as_str()).collect();
    let mut seen = BTreeSet::new();
    metrics.retain(|metric| seen.insert(*metric));
    let bars = metrics.into_iter().map(|metric| {
        let of_metric = beside.iter().filter(|head| head.metric == metric);
        let names: Vec<_> = of_metric.map(|head| (head.case.clone(), head.case.clone())).collect();
        Drawing::beside_paper(metric, "%", &[metric], &names)
    });
    bars.collect()
}

const fn unit_of(unit: exhibits::Unit) -> Unit {
    match unit {
        exhibits::Unit::Percent => Unit::Percent,
        exhibits::Unit::Times => Unit::Times,
        exhibits::Unit::Count => Unit::Count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exhibit_is_a_study_and_every_row_of_it_is_measured() {
        let ask = Ask { quick: true, seed: 7, seeds: 1, traces: Vec::new() };
        let studies = studies();
        assert_eq!(studies.len(), exhibits::all().len());
        for study in studies {
            let plan = (study.plan)(&ask).expect("a plan");
            assert!(plan.rows.len() >= 4, "{}", study.name);
            let name = study.name.trim_start_matches("fleet.");
            // A week of the same groups has what a day of them has.
            let hours = if matches!(name, "table3" | "fig11") { HOURS } else { 168 };
            let shape = Shape { hour_count: hours, ..QUICK.shape(Kind::Disk, 7) };
            let measured = measure(&exhibit_of(name), shape);
            for row in plan.rows.iter().filter(|row| row.case == Kind::Disk.plural()) {
                assert!(measured.values.contains_key(&row.metric), "{name}: {}", row.metric);
            }
        }
    }
}
