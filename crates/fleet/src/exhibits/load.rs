//! What slow hours go with: load, age, model, and what the group did after: figures 7 to 10.

use super::{
    Exhibit, Fleet, Line, NO_PAPER, Paper, Picture, Scale, Unit, line, paper, percent, tables,
};
use crate::analysis::{Histogram, Model};

pub(super) const FIG7: Exhibit = Exhibit {
    name: "fig7",
    title: "Load of slow drives",
    says: "Of slow hours 5 % have twice the median's requests and 2.5 % (solid-state 1.1 %) twice their size; of hours with twice the \
           requests 1 % are slow (solid-state 5 %), of those with twice the size 0.1 % (0.2 %): load is not what makes drives slow.",
    lines: fig7,
    picture: None,
};

fn fig7(fleet: &Fleet<'_>) -> Vec<Line> {
    let s = fleet.hours;
    let c = s.counts();
    let lines = [
        line(
            "slow hours with twice the requests",
            Unit::Percent,
            paper(5.0, 5.0),
            percent(c.slow_rate_imbalanced, c.slow_drive_hours),
        ),
        line(
            "slow hours with twice the size",
            Unit::Percent,
            paper(2.5, 1.1),
            percent(c.slow_size_imbalanced, c.slow_drive_hours),
        ),
        line(
            "hours with twice the requests that are slow",
            Unit::Percent,
            paper(1.0, 5.0),
            percent(c.slow_rate_imbalanced, c.rate_imbalanced),
        ),
        line(
            "hours with twice the size that are slow",
            Unit::Percent,
            paper(0.1, 0.2),
            percent(c.slow_size_imbalanced, c.size_imbalanced),
        ),
    ];
    lines.into_iter().flatten().collect()
}

pub(super) const FIG8: Exhibit = Exhibit {
    name: "fig8",
    title: "Slowdowns by age",
    says: "Older disks are slow more often: the 95th percentile is 2.3 in the eighth year. The ninth year, 0.11 % of drives, is an \
           outlier. Of solid-state drives age says little.",
    lines: fig8,
    picture: Some(|fleet| {
        let s = fleet.hours;
        Picture {
            across: "slowdown",
            across_scale: Scale::Log,
            up: "share below",
            up_scale: Scale::Tail,
            curves: s
                .by_age()
                .iter()
                .enumerate()
                .filter(|(_, histogram)| histogram.total() > 0)
                .map(|(year, histogram)| tables::shares(&format!("year {}", year + 1), histogram))
                .collect(),
        }
    }),
};

fn fig8(fleet: &Fleet<'_>) -> Vec<Line> {
    let s = fleet.hours;
    let mut lines = Vec::new();
    for (year, histogram) in s.by_age().iter().enumerate() {
        let year = year + 1;
        let of_paper = Paper { disk: (year == 8).then_some(2.3), ssd: None };
        let (p95, total) = (histogram.quantile(0.95), histogram.total());
        lines.push(line(format!("S at p95, year {year}"), Unit::Times, of_paper, p95));
        let slow = percent(histogram.at_least(2.0), total);
        lines.push(line(format!("S >= 2, year {year}"), Unit::Percent, NO_PAPER, slow));
    }
    lines.into_iter().flatten().collect()
}

pub(super) const FIG9: Exhibit = Exhibit {
    name: "fig9",
    title: "Slowdowns by model",
    says: "Of solid-state drives with one bit a cell 99.5 % of hours are below 1.5, with several 98.2 %, and of one vendor's 94.3 %.",
    lines: fig9,
    picture: Some(|fleet| {
        let s = fleet.hours;
        Picture {
            across: "slowdown",
            across_scale: Scale::Log,
            up: "share below",
            up_scale: Scale::Tail,
            curves: s.models().iter().map(|it| tables::shares(&it.name, &it.slowdowns)).collect(),
        }
    }),
};

/// The models of made-up fleets that the study gives numbers of.
const SLC: &str = "slc-a";
const MLC_WORST: &str = "mlc-c";
const MLC: &str = "mlc-";

fn fig9(fleet: &Fleet<'_>) -> Vec<Line> {
    let s = fleet.hours;
    let mut mlc = Histogram::new();
    s.models().iter().filter(|it| it.name.starts_with(MLC)).for_each(|it| mlc.merge(&it.slowdowns));
    let below = |slowdowns: &Histogram, edge: f64| {
        let total = slowdowns.total();
        percent(total - slowdowns.at_least(edge), total)
    };
    let of_ssd = |percent: f64| Paper { disk: None, ssd: Some(percent) };
    let models = s.models().iter().flat_map(|Model { name, slowdowns }| {
        let of_paper = match name.as_str() {
            SLC => of_ssd(99.5),
            MLC_WORST => of_ssd(94.3),
            _ => NO_PAPER,
        };
        [
            line(format!("{name}: S < 1.5"), Unit::Percent, of_paper, below(slowdowns, 1.5)),
            line(format!("{name}: S < 2"), Unit::Percent, NO_PAPER, below(slowdowns, 2.0)),
        ]
    });
    let all = line("all mlc: S < 1.5", Unit::Percent, of_ssd(98.2), below(&mlc, 1.5));
    models.chain([all]).flatten().collect()
}

pub(super) const FIG10: Exhibit = Exhibit {
    name: "fig10",
    title: "Requests of a group with a slow drive",
    says: "Requests of a group fall to half and less from one hour to the next more often if the next has a slow drive: by 7 points \
           of disks, by 23 of solid-state drives.",
    lines: fig10,
    picture: Some(|fleet| {
        let s = fleet.hours;
        let [stable, tail] = s.degradation();
        Picture {
            across: "requests of a stable hour over those of the next",
            across_scale: Scale::Log,
            up: "share below",
            up_scale: Scale::Linear,
            curves: vec![
                tables::shares("the next is stable", stable),
                tables::shares("the next has a slow drive", tail),
            ],
        }
    }),
};

fn fig10(fleet: &Fleet<'_>) -> Vec<Line> {
    let s = fleet.hours;
    let [stable, tail] = s.degradation();
    let halved = |histogram: &Histogram| percent(histogram.at_least(2.0), histogram.total());
    let (stable, tail) = (halved(stable), halved(tail));
    let points = tail.zip(stable).map(|(tail, stable)| tail - stable);
    let lines = [
        line("halved or worse, stable to stable", Unit::Percent, NO_PAPER, stable),
        line("halved or worse, stable to tail", Unit::Percent, NO_PAPER, tail),
        line("points between the two", Unit::Percent, paper(7.0, 23.0), points),
    ];
    lines.into_iter().flatten().collect()
}
