use levelhead_fleet::detect::*;
use levelhead_fleet_io::samples::*;
use std::path::Path;
fn main() {
    let root = Path::new("/work/shared/data/fleet/perseus");
    for cluster in ["cluster_A", "cluster_C"] {
        let t = std::time::Instant::now();
        let recs = read_recordings(&root.join(format!("{cluster}.parquet"))).unwrap();
        let labels = read_labels(&root.join("slow_drives.csv"), Some(cluster)).unwrap();
        println!("{cluster} read {:?} {} groups", t.elapsed(), recs.len());
        for size in [12usize, 6, 4, 3] {
            for text in [false, true] {
            let (mut rows, mut bests) = (vec![], vec![]);
            let t = std::time::Instant::now();
            for r in &recs {
                let mut r = r.clone();
                if text {
                    let mut order: Vec<usize> = (0..r.drives.len()).collect();
                    order.sort_by_key(|&i| r.drives[i].clone());
                    r.drives = order.iter().map(|&i| r.drives[i].clone()).collect();
                    for w in &mut r.windows { w.members = order.iter().map(|&i| w.members[i]).collect(); }
                }
                for set in cut(&r, size) {
                    let mut d = Level::new(set.drives.len(), Options::FROZEN);
                    rows.extend(detect(&set, &mut d));
                    bests.extend(d.bests());
                }
            }
            let s = score(&rows, &labels);
            let is = |r: &Row| labels.contains(&Label { group: r.group.clone(), drive: r.drive.clone() });
            let mut healthy: Vec<f64> = rows.iter().zip(&bests).filter(|(r, _)| !is(r)).map(|x| *x.1).collect();
            let mut slow: Vec<f64> = rows.iter().zip(&bests).filter(|(r, _)| is(r)).map(|x| *x.1).collect();
            healthy.sort_by(f64::total_cmp);
            slow.sort_by(f64::total_cmp);
            println!("size {size} text {text} drives {} found {} false {} missed {} median {:?} worst {:?}; healthy top {:.2?}, slow low {:.2?} {:?}", s.drives, s.found, s.false_ones.len(), s.missed.len(), s.busy_hours_median(), s.busy_hours_max(), &healthy[healthy.len()-4..], &slow[..slow.len().min(5)], t.elapsed());
            }
        }
    }
}
