//! Writes beside a drive that is ten times slower, or that hangs: the journal with that drive in the array, over the
//! same array without it.

use levelhead_units::Nanos;

use super::bed::{Load, Protection, Site, Trouble};
use super::{CARRIED_4K, CARRIED_64K, CHUNK, SMALL, open};
use crate::studies::{Ask, Head, Row, StudyPlan, Unit};

/// Shares, in tenths, of what the array carries without protection and with every drive well.
const TENTHS: [u32; 4] = [2, 3, 4, 5];

/// A hang begins when queues have filled,
const HANG_AFTER: Nanos = Nanos::from_secs(5);

/// and lasts for this long.
const HANG_TIME: Nanos = Nanos::from_secs(30);

/// For how long requests come, in seconds.
const SPAN: f64 = 60.0;

fn sides() -> [(&'static str, Trouble); 3] {
    [
        ("without the drive", Trouble::Gone),
        ("one 10x slower", Trouble::Slower(10.0)),
        ("one hangs for 30 s", Trouble::Hangs { after: HANG_AFTER, time: HANG_TIME }),
    ]
}

pub(super) fn add(plan: &mut StudyPlan, ask: &Ask) {
    for (size_name, size, carried) in [("4 kB", SMALL, CARRIED_4K), ("64 kB", CHUNK, CARRIED_64K)] {
        for &tenths in ask.pick(&TENTHS[..1], &TENTHS[..]) {
            let share = f64::from(tenths) / 10.0;
            let count = (carried * share * SPAN) as u64;
            let load = open(size, carried, share, count);
            one(plan, &format!("slow drive, {size_name} at {share} of the load"), &load);
        }
    }
}

fn one(plan: &mut StudyPlan, load_name: &str, load: &Load) {
    let cell = |side: &str| format!("{load_name}, {side}");
    let [(base, _), ..] = sides();
    for (name, trouble) in sides() {
        let site = Site { trouble, ..Site::healthy(Protection::Journal) };
        plan.cells.push(site.cell(cell(name), load));
        for figure in ["mean", "p99"] {
            plan.rows.push(Row::of(cell(name), figure, Unit::Millis));
        }
        if name != base {
            let head = Head::new(cell(name), format!("p99 over {base}"));
            plan.rows.push(Row::ratio(head, "p99", [cell(name), cell(base)]));
        }
    }
}
