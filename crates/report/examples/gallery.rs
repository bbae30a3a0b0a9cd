//! Prints a page with one of each: to be looked at after a change to how things look.
//!
//! `cargo run -p levelhead-report --example gallery > gallery.html`

use levelhead_report::{Axis, Column, Figure, Interval, Page, Series, Shading, Table};

/// Values with a tail: a body around `body`, and one in a hundred delayed by `delay`.
fn latencies(body: f64, delay: f64, count: u32) -> Vec<f64> {
    let share = |at: u32| (f64::from(at) + 0.5) / f64::from(count);
    let value = |at: u32| {
        let calm = body * (0.4 - share(at).mul_add(-1.0, 1.0).ln() * 0.45);
        if share(at) > 0.99 { calm + delay * (share(at) - 0.988) / 0.012 } else { calm }
    };
    (0..count).map(value).collect()
}

fn main() {
    let normal = latencies(16.0, 900.0, 100_000);
    let assisted = latencies(21.0, 90.0, 100_000);
    let level = latencies(15.0, 40.0, 20_000);
    let series: [(&str, &[f64]); 3] =
        [("normal", &normal), ("assisted:no-removal", &assisted), ("level", &level)];
    let mut table =
        Table::new([Column::left("policy"), Column::right("p50, ms"), Column::right("p99, ms")]);
    for (name, values) in series {
        let at = |share: f64| format!("{:.1}", values[(values.len() as f64 * share) as usize]);
        table.push([name.to_owned(), at(0.5), at(0.99)]);
    }
    let sizes = ["8 kB", "24 kB", "40 kB", "80 kB"];
    let bars: [(&str, &[f64]); 3] = [
        ("normal", &[18.0, 48.0, 221.0, 1_250.0]),
        ("assisted", &[22.5, 51.0, 131.0, 402.0]),
        ("level", &[17.2, 40.1, 98.4, f64::NAN]),
    ];
    let curve =
        |shift: f64| (0..30).map(move |at| (0.001 * 1.35_f64.powi(at), 1e-9 * shift.powi(at)));
    let curves: Vec<Series> = (0..9)
        .map(|at| {
            Series::line(format!("zero forcing {} B", at * 128), curve(2.1 - 0.1 * f64::from(at)))
        })
        .collect();
    let ratios = [
        vec![1.0, 1.004, 0.93, f64::NAN],
        vec![0.62, 1.06, 1.01, 0.98],
        vec![1.31, f64::INFINITY, 12.4, 1.1],
    ];
    let troubles = ["healthy", "2 % on all drives", "one drive 10x slower"];
    let loads = ["open 10 %", "open 55 %", "closed 16", "closed 1024 at once"];
    let times: Vec<String> = (0..60).map(|at| format!("{:.1} s", 0.5 * f64::from(at))).collect();
    let times: Vec<&str> = times.iter().map(String::as_str).collect();
    let amounts: Vec<Vec<f64>> = (0..6_u32)
        .map(|row| {
            let wave = |at: u32| (f64::from(at * (row + 2)) / 9.0).sin().abs();
            (0..60).map(|at| if row == 3 { 6.0 + 4.0 * wave(at) } else { 3.0 * wave(at) }).collect()
        })
        .collect();
    let drives = ["drive 0", "drive 1", "drive 2", "drive 3", "drive 4", "drive 5"];
    let half = |share: f64| {
        let interval =
            |value: &f64| Interval { low: value * (1.0 - share), high: value * (1.0 + share) };
        bars[2].1.iter().map(interval).collect::<Vec<_>>()
    };
    let page = Page::new("Gallery")
        .lead("The sentence that says what came out, before everything else.")
        .facts([("seed", "none"), ("version", env!("CARGO_PKG_VERSION"))])
        .paragraph("Made-up numbers, to see how tables and figures look.")
        .heading("Distributions")
        .figure(Figure::cdf("Latency of reads, one drive of six fail-slow", "latency, ms", &series))
        .figure(
            Figure::cdf("The same on even axes", "latency, ms", &series)
                .with_x(Axis::linear("latency, ms").with_range(0.0, 200.0))
                .with_y(Axis::linear("share at or below"))
                .with_note("Beyond 200 ms not shown."),
        )
        .table("The same as a table", table)
        .heading("Bars and curves")
        .figure(
            Figure::bars("Mean latency by request size", Axis::linear("ms"), &sizes, &bars)
                .with_intervals("level", &half(0.2)),
        )
        .figure(Figure::bars("The same, logarithmic", Axis::log("ms"), &sizes, &bars))
        .figure(Figure::lines(
            "Failure rate over raw bit errors",
            Axis::log("raw bit error rate"),
            Axis::log("sector failure rate"),
            curves,
        ))
        .heading("Ratios")
        .figure(Figure::heat_map(
            "p99 over the best",
            &loads,
            &troubles,
            &ratios,
            Shading::full_at(1.1),
        ))
        .figure(Figure::heat_map(
            "Commands in the queue of each drive over time",
            &times,
            &drives,
            &amounts,
            Shading::up_to(10.0),
        ));
    println!("{}", page.to_html());
}
