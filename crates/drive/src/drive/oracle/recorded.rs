//! T6: seeks and latencies of real layouts, at the places that DiskSim recorded.
//!
//! These drives lay their blocks out in a serpentine that the profiles do not copy. So the places
//! come from the oracle: cylinder, head and angle of the first block.

use super::*;
use crate::geometry::BlockPosition;

/// Angles are put into slots so fine that rounding costs less than 0.05 us.
const SLOTS: u32 = 65_535;

fn check_recorded(make: &str, name: &str) {
    let Some(rows) = rows(name) else { return };
    let profile = Profile::shipped(make).unwrap();
    let turn = 60_000.0 / f64::from(profile.rpm());
    let mut mechanics = profile.mechanics(0);
    let (mut compared, mut worst) = (0, 0.0_f64);
    for (at, row) in rows.iter().enumerate() {
        // A request that crosses a track is logged with the first seek and the last track.
        if row.from.cylinder.abs_diff(row.place.0) != row.seek_cylinders {
            continue;
        }
        let (cylinder, head, block) = row.place;
        let slot = (row.angle * f64::from(SLOTS)).round() as u32 % SLOTS;
        let position =
            BlockPosition { cylinder, head, block, slot, blocks_per_track: SLOTS, run: 1 };
        let reach = mechanics.reach(row.from, &position, Pass::Read);
        let seek = (row.seek * 1e6).round() as u64;
        assert!(reach.get().abs_diff(seek) <= 1, "{name}, row {at}: {reach}, not {seek} ns");
        // The platter as it was at the start.
        let phase = (row.from_angle * TURN as f64).round() as u64 % TURN;
        mechanics.spindle = mechanics.spindle.with_offset(phase);
        let latency = mechanics.latency_floor(Instant::ZERO + reach, &position).as_millis_f64();
        let error = (latency - row.latency).abs();
        let error = error.min((error - turn).abs());
        assert!(error < 0.020, "{name}, row {at}: latency {latency}, not {} ms", row.latency);
        compared += 1;
        worst = worst.max(error);
    }
    eprintln!("{name}: {compared} rows, latencies within {:.1} us", worst * 1e3);
    assert!(compared > 4_500, "{name}: only {compared} rows");
}

#[test]
fn seeks_and_latencies_of_real_layouts_are_those_of_disksim() {
    check_recorded("cheetah15k5", "oracle_c15_low.csv");
    check_recorded("cheetah15k5", "oracle_c15_mid_sptf32.csv");
    check_recorded("maxtor300g", "oracle_mx_low.csv");
}
