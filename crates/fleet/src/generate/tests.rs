//! The generator against the study.

use super::*;
use crate::HoursTable;
use crate::analysis::{Kernel, Rules, Scope, Summary};
use crate::events::{EventsKernel, EventsSummary, Severity, Spans};

const ROWS: usize = 500_000;

fn summary(shape: Shape) -> Summary {
    both(shape).0
}
fn both(
    shape: Shape,
) -> (Summary, EventsSummary, std::collections::BTreeMap<Option<&'static str>, Summary>) {
    let mut generator = HoursGenerator::new(shape);
    let mut table = HoursTable::default();
    let mut tally = std::collections::BTreeMap::new();
    let mut tails = vec![0; shape.group_count];
    let mut kernel = Kernel::new(Rules { scope: Scope::Everything, ios_min: 1 });
    let mut events = EventsKernel::new(1);
    let mut models = std::collections::BTreeMap::new();
    loop {
        let more = generator.next_hour(&mut table);
        if !more || table.hour.len() > ROWS {
            let mut last = (-1, -1);
            for i in 0..table.hour.len() {
                if f64::from(table.latency_us[i]) >= 2.0 * generator.debug_latency(table.raid[i]) {
                    *tally.entry(table.drive[i]).or_insert(0) += 1;
                    if last != (table.hour[i], table.raid[i]) {
                        last = (table.hour[i], table.raid[i]);
                        tails[table.raid[i] as usize] += 1;
                    }
                }
            }
            kernel.handle(table.hours()).expect("sorted");
            events.handle_events(&generator.take_events()).expect("sorted");
            events.handle_hours(table.hours()).expect("sorted");
            if shape.kind == Kind::Ssd {
                let mut parts = std::collections::BTreeMap::new();
                for i in 0..table.hour.len() {
                    let part: &mut HoursTable =
                        parts.entry(generator.model_of(table.raid[i])).or_default();
                    part.hour.push(table.hour[i]);
                    part.raid.push(table.raid[i]);
                    part.drive.push(table.drive[i]);
                    part.latency_us.push(table.latency_us[i]);
                    part.ios.push(table.ios[i]);
                    part.bytes.push(table.bytes[i]);
                    part.age_hours.push(table.age_hours[i]);
                }
                for (model, part) in parts {
                    models
                        .entry(model)
                        .or_insert_with(|| {
                            Kernel::new(Rules { scope: Scope::Slowdown, ios_min: 1 })
                        })
                        .handle(part.hours())
                        .unwrap();
                }
            }
            table.clear();
        }
        if !more {
            if std::env::var("SEED").is_ok() {
                generator.debug(&tally, &tails);
            }
            let models = models.into_iter().map(|(m, k)| (m, k.finish().unwrap())).collect();
            return (kernel.finish().expect("sorted"), events.finish(), models);
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole as f64
}

#[test]
#[ignore]
fn print() {
    let kind = if std::env::var("SSD").is_ok() { Kind::Ssd } else { Kind::Disk };
    let seed = std::env::var("SEED").map_or(7, |s| s.parse().unwrap());
    let groups = if kind == Kind::Ssd { 1510 } else { 900 };
    let (s, e, models) = both(Shape { kind, group_count: groups, hour_count: 2075, seed });
    let e2 = |x: &Spans, h| 100.0 * x.share_within(h).unwrap_or(0.0);
    let c = s.counts();
    let ssd = kind == Kind::Ssd;
    let p = |name: &str, ours: f64, disk: f64, of_ssd: f64| {
        let paper = if ssd { of_ssd } else { disk };
        println!("{name:24} {ours:8.3} {paper:8.3} {:+8.3}", ours - paper);
    };
    println!(
        "hours {} raid {} width {:.2}",
        c.drive_hours,
        c.raid_hours,
        c.drive_hours as f64 / c.raid_hours as f64
    );
    let (one, t1) = (s.slowdowns(), s.tails(1));
    p("S>=1.2", share(c.drive_hours_mild, c.drive_hours), 3.0, 4.1);
    p("S>=1.5", share(one.at_least(1.5), one.total()), 0.7, 1.3);
    p("S>=2", share(one.at_least(2.0), one.total()), 0.22, 0.58);
    p("S>=4", share(one.at_least(4.0), one.total()), 0.04, 0.08);
    p("T>=1.2", share(c.raid_hours_mild, c.raid_hours), 16.7, 13.0);
    p("T>=1.5", share(t1.at_least(1.5), t1.total()), 4.6, 4.8);
    p("T>=2", share(t1.at_least(2.0), t1.total()), 1.5, 2.23);
    p("T>=4", share(t1.at_least(4.0), t1.total()), 0.28, 0.33);
    p("T2>=2", share(s.tails(2).at_least(2.0), c.raid_hours), 0.6, 1.4);
    p("T3>=2", share(s.tails(3).at_least(2.0), c.raid_hours), 0.3, 0.8);
    for (q, d, sd, td, ts) in [
        (0.9, 1.1, 1.1, 1.3, 1.3),
        (0.95, 1.2, 1.2, 1.5, 1.5),
        (0.99, 1.4, 1.7, 2.4, 2.5),
        (0.999, 2.7, 3.1, 9.0, 20.0),
        (0.9999, 9.0, 10.0, 29.0, 37.0),
        (0.99999, 30.0, 39.0, 229.0, 65.0),
    ] {
        p(&format!("S q{q}"), one.quantile(q).unwrap(), d, sd);
        p(&format!("T q{q}"), t1.quantile(q).unwrap(), td, ts);
    }
    let iv = s.intervals();
    let n: u64 = iv.iter().sum();
    let hours: u64 = iv.iter().enumerate().map(|(l, c)| l as u64 * c).sum();
    p("interval>=2", share(iv[2..].iter().sum(), n), 40.0, 35.0);
    p("interval>=8", share(iv[8..].iter().sum(), n), 13.0, 3.0);
    println!(
        "mean interval {:.2}, intervals/slow drive {:.2}",
        hours as f64 / n as f64,
        n as f64 / s.ever(2.0) as f64
    );
    let g = s.gaps();
    p("gap<=24", share(g[..=24].iter().sum(), g.iter().sum()), 90.0, 85.0);
    p("ever>=2", share(s.ever(2.0), s.drive_count()), 26.0, 29.0);
    p("ever>=16", share(s.ever(16.0), s.drive_count()), 1.6, 2.5);
    let slow = s.ever(2.0);
    p(">=100", share(s.slow_at_least(100), slow), 6.0, 5.0);
    p("<5", 100.0 - share(s.slow_at_least(5), slow), 62.0, 70.0);
    println!(
        "slow hours each {:.1} paper 15.8 36.4; >=200 {:.2} >=20 {:.1}",
        c.slow_drive_hours as f64 / slow as f64,
        share(s.slow_at_least(200), slow),
        share(s.slow_at_least(20), slow)
    );
    p("rate|slow", share(c.slow_rate_imbalanced, c.slow_drive_hours), 5.0, 5.0);
    p("size|slow", share(c.slow_size_imbalanced, c.slow_drive_hours), 2.5, 1.1);
    p("slow|rate", share(c.slow_rate_imbalanced, c.rate_imbalanced), 1.0, 5.0);
    p("slow|size", share(c.slow_size_imbalanced, c.size_imbalanced), 0.1, 0.2);
    let d = s.degradation();
    let d: Vec<f64> = d.iter().map(|h| share(h.at_least(2.0), h.total())).collect();
    p("degr stable", d[0], 12.0, 12.0);
    p("degr plus", d[1] - d[0], 7.0, 23.0);
    p("wait day slow", e2(&e.slow_waits(), 24), 4.0, 8.0);
    p("wait day mild", e2(&e.waits(Severity::Mild), 24), 3.0, 6.0);
    for sv in Severity::ALL {
        println!("  wait {sv:?} {:.2} of {}", e2(&e.waits(sv), 24), e.waits(sv).begun());
    }
    p("replugged", e2(e.absences(), 240), 89.0, 100.0);
    let back = e.absences().ended_within(240) as f64;
    p("back 2", 100.0 * e.absences().ended_within(2) as f64 / back, 54.0, 61.0);
    p("back 10", 100.0 * e.absences().ended_within(10) as f64 / back, 90.0, 97.0);
    p("recur day", e2(e.recurrences(), 24), 18.0, 35.0);
    println!("unplugs {} replugs {}", e.absences().begun(), e.recurrences().begun());
    for (m, s) in models {
        let h = s.slowdowns();
        println!(
            "model {m:?} share {:.3} S<1.5 {:.3} S<2 {:.3}",
            share(h.total(), c.drive_hours),
            100.0 - share(h.at_least(1.5), h.total()),
            100.0 - share(h.at_least(2.0), h.total())
        );
    }
    for (y, h) in s.by_age().iter().enumerate() {
        if h.total() > 0 {
            println!(
                "year {} share {:.3} p95 {:.3} p99 {:.3} slow {:.3}",
                y + 1,
                share(h.total(), c.drive_hours),
                h.quantile(0.95).unwrap(),
                h.quantile(0.99).unwrap(),
                share(h.at_least(2.0), h.total())
            );
        }
    }
}

#[test]
fn a_fleet_is_the_same_again_and_its_median_is_one() {
    for kind in [Kind::Disk, Kind::Ssd] {
        let shape = Shape { kind, group_count: 30, hour_count: 200, seed: 3 };
        let s = summary(shape);
        assert_eq!(s.to_bytes(), summary(shape).to_bytes());
        assert!((s.slowdowns().quantile(0.5).expect("rows") - 1.0).abs() < 0.05);
        assert_eq!(s.group_count(), 30);
    }
}
