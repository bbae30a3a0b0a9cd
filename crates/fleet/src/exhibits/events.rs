//! What becomes of slow drives: figure 11.

use super::{
    Curve, Exhibit, Fleet, Line, NO_PAPER, Picture, Point, Scale, Unit, line, paper, percent,
};
use crate::events::{HOURS_MAX, Severity, Spans};

/// A day, in hours.
const DAY: u32 = 24;

pub(super) const FIG11: Exhibit = Exhibit {
    name: "fig11",
    title: "Slow drives that were unplugged, and slow again",
    says: "Within a day of becoming slow 4 % of disks are unplugged (of those from 1.5 to 2 times as slow 3 %); 89 % of unplugged ones \
           come back, 54 % of these within two hours and 90 % within ten; 18 % of those are slow again within a day. Of solid-state \
           drives 8, 100, 61, 97 and 35 %.",
    lines,
    picture: Some(picture),
};

fn lines(fleet: &Fleet<'_>) -> Vec<Line> {
    let Some(events) = fleet.events else { return Vec::new() };
    let within = |spans: &Spans, hours: u32| spans.share_within(hours).map(|share| 100.0 * share);
    let absences = events.absences();
    let back = absences.ended_within(HOURS_MAX);
    let (mild, slow) = (events.waits(Severity::Mild), events.slow_waits());
    let mut lines = vec![
        line(
            "slow drives unplugged within a day",
            Unit::Percent,
            paper(4.0, 8.0),
            within(&slow, DAY),
        ),
        line(
            "drives at 1.5 to 2 unplugged within a day",
            Unit::Percent,
            super::Paper { disk: Some(3.0), ssd: None },
            within(&mild, DAY),
        ),
    ];
    for severity in Severity::ALL.into_iter().filter(|severity| severity.is_slow()) {
        let next = Severity::ALL.into_iter().find(|other| *other > severity);
        let range = match next {
            Some(next) => format!("from {} to {}", severity.from(), next.from()),
            None => format!("of {} and more", severity.from()),
        };
        let metric = format!("drives {range}, unplugged within a day");
        lines.push(line(metric, Unit::Percent, NO_PAPER, within(&events.waits(severity), DAY)));
    }
    lines.extend([
        line(
            "unplugged drives that come back",
            Unit::Percent,
            paper(89.0, 100.0),
            within(absences, HOURS_MAX),
        ),
        line(
            "of those within two hours",
            Unit::Percent,
            paper(54.0, 61.0),
            percent(absences.ended_within(2), back),
        ),
        line(
            "of those within ten hours",
            Unit::Percent,
            paper(90.0, 97.0),
            percent(absences.ended_within(10), back),
        ),
        line(
            "drives that came back and are slow within a day",
            Unit::Percent,
            paper(18.0, 35.0),
            within(events.recurrences(), DAY),
        ),
    ]);
    lines.into_iter().flatten().collect()
}

fn picture(fleet: &Fleet<'_>) -> Picture {
    let curve = |name: &str, spans: &Spans| {
        let points = (0..=2 * DAY).filter_map(|hours| {
            spans.share_within(hours).map(|up| Point { across: f64::from(hours), up })
        });
        Curve { name: name.to_owned(), points: points.collect() }
    };
    let curves = fleet.events.map_or(Vec::new(), |events| {
        vec![
            curve("1.5 to 2 until unplugged", &events.waits(Severity::Mild)),
            curve("slow until unplugged", &events.slow_waits()),
            curve("unplugged until back", events.absences()),
            curve("back until slow", events.recurrences()),
        ]
    });
    Picture {
        across: "hours",
        across_scale: Scale::Linear,
        up: "share within",
        up_scale: Scale::Linear,
        curves,
    }
}
