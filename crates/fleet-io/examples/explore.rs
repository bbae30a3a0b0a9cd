use levelhead_fleet::detect::*;
use levelhead_fleet_io::samples::*;
use std::path::Path;
fn main() {
    let root = Path::new("/work/shared/data/fleet/perseus");
    for cluster in ["cluster_A", "cluster_C"] {
        let recs = read_recordings(&root.join(format!("{cluster}.parquet"))).unwrap();
        let labels = read_labels(&root.join("slow_drives.csv"), Some(cluster)).unwrap();
        for size in [12, 6, 4, 3] {
            for kind in Kind::ALL {
                let t = std::time::Instant::now();
                let mut rows = vec![];
                for r in &recs {
                    for set in cut(r, size) {
                        rows.extend(detect(&set, kind.detector(set.drives.len()).as_mut()));
                    }
                }
                let s = score(&rows, &labels);
                let end = rows.iter().filter(|r| r.finding.verdict == Verdict::Slow).count();
                println!("{cluster} {size} {kind} {} found {} false {} missed {} hours {:.2?} {:.2?} slow at the end {end} {:?}", s.drives, s.found, s.false_ones.len(), s.missed.len(), s.busy_hours_median(), s.busy_hours_max(), t.elapsed());
            }
        }
    }
}
