//! T7 and T8: the drive's memory against DiskSim's, and whole drives against real ones.
//!
//! Their traces count blocks of 512 bytes that need not fill a sector, so these go to the disk
//! without the drive around it.

use super::data::{Traced, traced};
use super::*;
use crate::cache::Write;
use crate::disk::{Disk, Work};

fn settings(cache: CacheMode) -> Settings {
    Settings { queue_depth: 1, scheduler: Scheduler::Fcfs, cache, ..Settings::PLAIN }
}

/// Closed loop: each request comes its gap after the end of the one before. Services in
/// milliseconds.
fn services(make: &str, rows: &[Traced]) -> Vec<f64> {
    let profile = Profile::shipped(make).unwrap();
    let mut disk = Disk::new(&profile, &settings(CacheMode::WriteBack), 0);
    let mut now = Instant::ZERO;
    rows.iter()
        .map(|row| {
            let blocks = row.block..row.block + row.blocks;
            let work = if row.is_read {
                Work::Read(blocks.into())
            } else {
                let (read_backs, id, origin, zero_tail) = (0, 0, 0, ZeroTail::None);
                Work::Write(Write { blocks, is_durable: false, read_backs, id, origin, zero_tail })
            };
            assert_eq!(disk.catch_up(now, now), None, "it verifies nothing");
            let end = disk.serve(now.max(disk.free()), work).end;
            disk.finish(end);
            let service = end - now;
            now = end + Nanos::new((row.gap * 1e6).round() as u64);
            service.as_millis_f64()
        })
        .collect()
}

/// The horizontal distance of two distributions: the root of the mean square.
fn rms(mut one: Vec<f64>, mut other: Vec<f64>) -> f64 {
    one.sort_unstable_by(f64::total_cmp);
    other.sort_unstable_by(f64::total_cmp);
    let squares = one.iter().zip(&other).map(|(one, other)| (one - other).powi(2));
    (squares.sum::<f64>() / one.len() as f64).sqrt()
}

fn check_real(make: &str, name: &str, most: f64) {
    let Some(rows) = traced(name) else { return };
    let services = services(make, &rows);
    let measured: Vec<f64> = rows.iter().map(|row| row.measured).collect();
    let disksim: Vec<f64> = rows.iter().map(|row| row.disksim).collect();
    let found = rms(services.clone(), measured.clone());
    let alike = services.iter().zip(&disksim).filter(|(one, other)| (*one - *other).abs() < 0.01);
    eprintln!(
        "{make}: rms {found:.3} ms, DiskSim {:.3}; {} of {} as DiskSim within 10 us; between the two {:.3}",
        rms(disksim.clone(), measured),
        alike.count(),
        rows.len(),
        rms(services.clone(), disksim.clone()),
    );
    assert!(found <= most, "{make}: rms {found} ms");
}

#[test]
fn services_are_distributed_like_those_of_the_real_drives() {
    check_real("cheetah9lp", "validate_cheetah9LP.csv", 0.35);
    check_real("barracuda", "validate_barracuda.csv", 0.45);
    check_real("atlas_III", "validate_atlas_III.csv", 0.45);
}

/// In DiskSim the block after the last one has just passed when the next request begins: a request
/// that waits does not go on where the one before it ended. Nor does DiskSim begin to read ahead
/// while a request waits.
const MISSED: Nanos = Nanos::new(3);

/// Three streams of 32 KiB and random reads, 8 segments of 512 KiB.
#[test]
fn as_many_reads_are_hits_as_with_disksim() {
    let Some(rows) = rows("oracle_seqcache.csv") else { return };
    let profile = Profile::shipped("simple15k").unwrap();
    let mut disk = Disk::new(&profile, &settings(CacheMode::Read), 0);
    let (mut hits, mut responses, mut oracle) = (0, 0.0, 0.0);
    let next = rows.iter().skip(1).map(|row| row.arrival).chain([Instant::from_nanos(u64::MAX)]);
    for (row, next) in rows.iter().zip(next) {
        let start = row.arrival.max(disk.free() + MISSED);
        let blocks = row.block..row.block + row.blocks;
        hits += u32::from(disk.is_near(start, &blocks));
        let end = disk.serve(start, Work::Read(blocks.into())).end;
        disk.finish(end);
        if next < end {
            disk.hold_still(end);
        }
        responses += millis(end) - millis(row.arrival);
        oracle += row.end - millis(row.arrival);
    }
    let count = rows.len() as f64;
    let (share, mean, wanted) = (f64::from(hits) / count, responses / count, oracle / count);
    eprintln!("oracle_seqcache: {:.1} % hits, 71.0; mean {mean:.4} ms, {wanted:.4}", share * 100.0);
    assert!((share - 0.71).abs() <= 0.03, "{share} are hits");
    assert!((mean / wanted - 1.0).abs() <= 0.1, "mean {mean}, not {wanted} ms");
}
