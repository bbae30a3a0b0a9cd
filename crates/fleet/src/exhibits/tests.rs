use super::*;
use crate::HoursTable;
use crate::analysis::{Kernel, Rules, Scope};
use crate::events::EventsKernel;
use crate::generate::{HoursGenerator, Shape};

fn summary(scope: Scope) -> Summary {
    let shape = Shape { kind: Kind::Disk, group_count: 40, hour_count: 300, seed: 5 };
    let (mut generator, mut table) = (HoursGenerator::new(shape), HoursTable::default());
    let mut kernel = Kernel::new(Rules { scope, ios_min: 1 });
    while generator.next_hour(&mut table) {}
    kernel.handle(table.hours()).expect("sorted");
    kernel.finish().expect("sorted")
}

fn fleet_of(hours: &Summary) -> Fleet<'_> {
    Fleet { hours, events: None }
}

#[test]
fn nothing_has_no_shares_and_no_quantiles() {
    let nothing = Summary::new(Rules { scope: Scope::Everything, ios_min: 1 });
    for exhibit in all() {
        let lines = exhibit.lines(&fleet_of(&nothing));
        assert!(lines.iter().all(|line| line.value.total_cmp(&0.0).is_eq()), "{lines:?}");
        exhibit.picture(&fleet_of(&nothing));
    }
}

#[test]
fn lines_have_one_name_each_and_agree_with_the_counts() {
    let s = summary(Scope::Everything);
    for exhibit in all() {
        let lines = exhibit.lines(&fleet_of(&s));
        let names: std::collections::BTreeSet<_> = lines.iter().map(|line| &line.metric).collect();
        assert_eq!(names.len(), lines.len(), "{}", exhibit.name);
        assert!(!lines.is_empty() || exhibit.name == "fig11", "{}", exhibit.name);
        let percent = lines.iter().filter(|line| line.unit == Unit::Percent);
        assert!(percent.clone().all(|line| line.value.abs() <= 100.0), "{lines:?}");
    }
    let value = |exhibit: &str, metric: &str| {
        let exhibit = all().into_iter().find(|it| it.name == exhibit).expect("an exhibit");
        let lines = exhibit.lines(&fleet_of(&s));
        lines.iter().find(|line| line.metric == metric).unwrap_or_else(|| panic!("{metric}")).value
    };
    let c = s.counts();
    let tail = 100.0 * c.tail_hours as f64 / c.raid_hours as f64;
    assert!((value("table1", "RAID hours, T1 >= 2") - tail).abs() < 1e-9);
    assert!((value("table3", "T1 < 2") + tail - 100.0).abs() < 1e-9);
    assert!((value("table3", "tail hours") - tail).abs() < 1e-9);
    let width = c.drive_hours as f64 / c.raid_hours as f64;
    assert!((value("fig2", "drives a group, mean") - width).abs() < 0.2);
}

#[test]
fn slowdowns_alone_have_the_lines_that_need_no_more() {
    let s = summary(Scope::Slowdown);
    let lines = |name: &str| {
        all()
            .iter()
            .find(|it| it.name == name)
            .map_or(0, |exhibit| exhibit.lines(&fleet_of(&s)).len())
    };
    assert_eq!((lines("table1"), lines("fig6"), lines("fig8")), (8, 0, 0));
    assert!(lines("table3") > 15);
}

#[test]
fn curves_rise_to_one() {
    let s = summary(Scope::Everything);
    for name in ["fig2", "fig4", "fig5", "fig8", "fig10"] {
        let exhibit = all().into_iter().find(|it| it.name == name).expect("an exhibit");
        for curve in exhibit.picture(&fleet_of(&s)).expect("curves").curves {
            assert!(
                curve
                    .points
                    .windows(2)
                    .all(|pair| pair[0].across < pair[1].across && pair[0].up <= pair[1].up)
            );
            let last = curve.points.last().expect("points");
            assert!((last.up - 1.0).abs() < 1e-9, "{name} {}", curve.name);
        }
    }
}

#[test]
fn events_have_shares_of_what_began() {
    let shape = Shape { kind: Kind::Disk, group_count: 60, hour_count: 600, seed: 5 };
    let (mut generator, mut table) = (HoursGenerator::new(shape), HoursTable::default());
    let mut kernel = EventsKernel::new(1);
    while generator.next_hour(&mut table) {}
    kernel.handle_events(&generator.take_events()).expect("sorted");
    kernel.handle_hours(table.hours()).expect("sorted");
    let (hours, events) = (summary(Scope::Everything), kernel.finish());
    let fleet = Fleet { hours: &hours, events: Some(&events) };
    let fig11 = all().into_iter().find(|it| it.name == "fig11").expect("an exhibit");
    let lines = fig11.lines(&fleet);
    let value = |metric: &str| {
        lines.iter().find(|line| line.metric == metric).unwrap_or_else(|| panic!("{metric}")).value
    };
    assert!((50.0..=100.0).contains(&value("unplugged drives that come back")), "{lines:?}");
    assert!(value("of those within two hours") < value("of those within ten hours"));
    assert!(fig11.picture(&fleet).expect("curves").curves.iter().all(|it| !it.points.is_empty()));
}
