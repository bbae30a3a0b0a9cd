use levelhead_fleet::detect::*;
use levelhead_fleet::generate::groups::*;
use levelhead_fleet_io::samples::*;
use std::path::Path;
fn run(name: &str, recs: &[Recording], labels: &[Label]) {
    let (mut rows, mut bests) = (vec![], vec![]);
    let t = std::time::Instant::now();
    for set in recs {
        let mut d = Level::new(set.drives.len(), Options::FROZEN);
        rows.extend(detect(set, &mut d));
        bests.extend(d.bests().into_iter().zip(d.bests_at()));
    }
    let s = score(&rows, labels);
    let is = |r: &Row| labels.contains(&Label { group: r.group.clone(), drive: r.drive.clone() });
    let pick = |slow: bool| {
        let mut v: Vec<_> = rows.iter().zip(&bests).filter(|(r, _)| is(r) == slow).map(|(r, b)| (b.0, b.1, format!("{}/{}", r.group, r.drive))).collect();
        v.sort_by(|a, b| a.0.total_cmp(&b.0));
        v
    };
    let (healthy, slow) = (pick(false), pick(true));
    println!("{name} drives {} found {} FALSE {} MISSED {} median {:.2?} worst {:.2?} {:?}", s.drives, s.found, s.false_ones.len(), s.missed.len(), s.busy_hours_median().unwrap_or(0.0), s.busy_hours_max().unwrap_or(0.0), t.elapsed());
    let end_slow = rows.iter().filter(|r| is(r) && r.finding.verdict == Verdict::Slow).count();
    if end_slow != s.found { println!("   slow at end only {end_slow}"); }
    for h in healthy.iter().rev().take(3) { println!("   healthy {:.2?}", h); }
    for h in slow.iter().take(3) { println!("   slow {:.2?}", h); }
}
fn reorder(r: &Recording) -> Recording {
    let mut r = r.clone();
    let mut order: Vec<usize> = (0..r.drives.len()).collect();
    order.sort_by_key(|&i| r.drives[i].clone());
    r.drives = order.iter().map(|&i| r.drives[i].clone()).collect();
    for w in &mut r.windows { w.members = order.iter().map(|&i| w.members[i]).collect(); }
    r
}
/// Each drive's log deviation from its own log median over the others, times `k`.
fn amplify(r: &Recording, k: f64) -> Recording {
    let mut r = r.clone();
    let n = r.drives.len();
    let dev: Vec<Vec<Option<f64>>> = r.windows.iter().map(|w| {
        let mut l: Vec<f64> = w.members.iter().flatten().map(|x| x.latency_us.ln()).collect();
        if l.is_empty() { return vec![None; n]; }
        let m = levelhead_fleet::median_of(&mut l);
        w.members.iter().map(|x| x.map(|x| x.latency_us.ln() - m)).collect()
    }).collect();
    let med: Vec<f64> = (0..n).map(|i| {
        let mut v: Vec<f64> = dev.iter().filter_map(|d| d[i]).collect();
        if v.is_empty() { 0.0 } else { levelhead_fleet::median_of(&mut v) }
    }).collect();
    for (w, d) in r.windows.iter_mut().zip(&dev) {
        for i in 0..n {
            if let (Some(x), Some(d)) = (&mut w.members[i], d[i]) {
                x.latency_us = 100.0 * (med[i] + k * (d - med[i])).exp();
            }
        }
    }
    r
}
fn main() {
    let root = Path::new("/work/shared/data/fleet/perseus");
    for cluster in ["cluster_A", "cluster_C"] {
        let recs = read_recordings(&root.join(format!("{cluster}.parquet"))).unwrap();
        let labels = read_labels(&root.join("slow_drives.csv"), Some(cluster)).unwrap();
        run(cluster, &recs, &labels);
        for size in [6usize, 4, 3] {
            let sets: Vec<Recording> = recs.iter().flat_map(|r| cut(r, size)).collect();
            run(&format!("  {size} natural"), &sets, &labels);
            let sets: Vec<Recording> = recs.iter().flat_map(|r| cut(&reorder(r), size)).collect();
            run(&format!("  {size} by text"), &sets, &labels);
        }
        for k in [2.0, 4.0, 8.0] {
            let loud: Vec<Recording> = recs.iter().map(|r| amplify(r, k)).collect();
            run(&format!("  noise times {k}"), &loud, &labels);
        }
    }
    let groups: usize = std::env::args().nth(1).map_or(100, |s| s.parse().unwrap());
    for (name, o) in [
        ("healthy", GroupsOptions { groups, ..GroupsOptions::HEALTHY }),
        ("healthy 5", GroupsOptions { groups, drives: (5, 5), ..GroupsOptions::HEALTHY }),
        ("healthy 4", GroupsOptions { groups, drives: (4, 4), ..GroupsOptions::HEALTHY }),
        ("healthy 3", GroupsOptions { groups, drives: (3, 3), ..GroupsOptions::HEALTHY }),
    ] {
        let t = std::time::Instant::now();
        let recs: Vec<Recording> = (0..groups).map(|i| group(&o, 1, i).recording).collect();
        println!("made in {:?}", t.elapsed());
        run(name, &recs, &[]);
    }
}
