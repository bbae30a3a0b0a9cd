//! What it costs that an array loses nothing: our journal beside no protection, and beside models of what others do.

pub(super) mod bed;
mod figures;
mod peers;
mod slow;

use levelhead_drive::CacheMode;
use levelhead_trace::Kind;
use levelhead_units::{Nanos, Sectors};

use self::bed::{Load, Places, Protection, Site};
use self::peers::Mechanism;
use super::{Ask, Bars, Drawing, Head, Row, Study, StudyPlan, Takes, Unit, Whose};
use crate::replay::Sending;

const WRITES: Study = Study {
    name: "array.writes",
    title: "Writes: what the journal costs",
    source: "ours",
    says: "Mean and 99th percentile of the answer, commands a write and throughput of an array with our journal, on its own \
           drives or on two more of the same kind, over those of the same array without protection; cost models of Linux MD's region bitmap, its log of partial \
           parities and its journal on a device of its own; and the journal beside a drive that is slow or hangs.",
    bed: "raid5:5+1 with chunks of 64 KiB over nearline-2tb (7200 rpm), caches off, SPTF in the drive (age weight 0), \
          window 32, host order elevator; Poisson arrivals at uniformly random places, or closed loops",
    seeds_quick: 2,
    seeds_full: 10,
    takes: Takes::Nothing,
    plan: |ask| Ok(plan(ask)),
};

pub(super) fn studies() -> Vec<Study> {
    vec![WRITES]
}

/// What the array without protection carries with 128 writes outstanding, a second: the row `rate` of `4 kB, closed
/// loop, 128 outstanding, none`. Open loops are shares of it.
const CARRIED_4K: f64 = 270.0;

/// The same of writes of 64 kB, each a chunk: `64 kB, closed loop, 128 outstanding, none`.
const CARRIED_64K: f64 = 250.0;

/// Full stripes that are 64 MiB together.
const STRIPES_IN_FLIGHT: usize = 64 * 256 / 80;

const SMALL: Sectors = Sectors::new(1);
const CHUNK: Sectors = Sectors::new(16);

const OURS: [(&str, Protection); 3] = [
    ("none", Protection::None),
    ("journal", Protection::Journal),
    ("journal on two more drives", Protection::Apart),
];

const MODELS: [(&str, Protection); 4] = [
    ("model of none", Protection::Model(Mechanism::None)),
    ("model of a region bitmap", Protection::Model(Mechanism::Bitmap)),
    ("model of a partial parity log", Protection::Model(Mechanism::PartialParity)),
    ("model of a journal device", Protection::Model(Mechanism::Device)),
];

/// An open loop at a share of what the array carries without protection.
fn open(size: Sectors, carried: f64, share: f64, count: u64) -> Load {
    let interval = Nanos::new((1e9 / (carried * share)) as u64);
    Load {
        kind: Kind::Write,
        places: Places::Random { size, interval },
        sending: Sending::Open,
        count,
    }
}

fn closed(size: Sectors, outstanding: usize, count: u64) -> Load {
    let places = Places::Random { size, interval: Nanos::from_millis(1) };
    Load { kind: Kind::Write, places, sending: Sending::Closed(outstanding), count }
}

fn stripes(place: f64, count: u64) -> Load {
    let sending = Sending::Closed(STRIPES_IN_FLIGHT);
    let places = Places::Stripes { place, size: Sectors::new(5 * 16) };
    Load { kind: Kind::Write, places, sending, count }
}

/// The loads; those of closed loops are long enough that as much waits for its place as ever will.
fn loads(ask: &Ask) -> Vec<(&'static str, Load)> {
    let (some, many) = (ask.pick(1_500, 8_000), ask.pick(4_000, 10_000));
    let full = ask.pick(1_200, 4_000);
    vec![
        ("4 kB, half load", open(SMALL, CARRIED_4K, 0.5, some)),
        ("4 kB, quarter load", open(SMALL, CARRIED_4K, 0.25, some)),
        ("4 kB, closed loop, 1 outstanding", closed(SMALL, 1, ask.pick(500, 3_000))),
        ("4 kB, closed loop, 32 outstanding", closed(SMALL, 32, many)),
        ("4 kB, closed loop, 128 outstanding", closed(SMALL, 128, many)),
        ("64 kB, closed loop, 128 outstanding", closed(CHUNK, 128, ask.pick(1_500, 4_000))),
        ("full stripes, beginning of the drives", stripes(0.0, full)),
        ("full stripes, middle of the drives", stripes(0.5, full)),
        ("full stripes, end of the drives", stripes(1.0, full)),
    ]
}

/// What is said of each load, and in which unit.
const FIGURES: [(&str, Unit); 5] = [
    ("mean", Unit::Millis),
    ("p99", Unit::Millis),
    ("rate", Unit::PerSecond),
    ("throughput", Unit::MegabytesPerSecond),
    ("commands", Unit::Count),
];

fn plan(ask: &Ask) -> StudyPlan {
    let mut plan = StudyPlan::default();
    for (load_name, load) in loads(ask) {
        let sides: Vec<(&str, Protection)> = OURS.into_iter().chain(MODELS).collect();
        let healthy: Vec<(&str, Site)> =
            sides.iter().map(|&(name, protection)| (name, Site::healthy(protection))).collect();
        add(&mut plan, load_name, &load, &healthy);
    }
    // Without protection these answer what is in the drives' memory only.
    for (load_name, load) in loads(ask) {
        let with_cache = |(name, protection)| {
            (name, Site { cache: CacheMode::WriteBack, ..Site::healthy(protection) })
        };
        let name = format!("caches on, {load_name}");
        add(&mut plan, &name, &load, &OURS.map(with_cache));
    }
    plan.drawings.push(drawing(&loads(ask)));
    slow::add(&mut plan, ask);
    plan
}

/// One load on several arrays, the first of which the others are compared with.
fn add(plan: &mut StudyPlan, load_name: &str, load: &Load, sites: &[(&str, Site)]) {
    let cell = |side: &str| format!("{load_name}, {side}");
    let ratios: &[&'static str] = match load.sending {
        Sending::Open | Sending::OpenToTheEnd => &["mean", "p99"],
        Sending::Closed(_) => &["rate"],
    };
    let base = sites.first().map_or("", |(name, _)| name);
    for (name, site) in sites {
        plan.cells.push(site.cell(cell(name), load));
        for (figure, unit) in FIGURES {
            plan.rows.push(Row::of(cell(name), figure, unit));
        }
        if *name != base {
            for figure in ratios {
                let head = Head::new(cell(name), format!("{figure} over {base}"));
                plan.rows.push(Row::ratio(head, figure, [cell(name), cell(base)]));
            }
        }
    }
}

/// The means of open loops over those without protection.
fn drawing(loads: &[(&'static str, Load)]) -> Drawing {
    let sides = OURS[1..].iter().map(|(name, _)| *name).chain(MODELS.map(|(name, _)| name));
    let open: Vec<&str> = loads
        .iter()
        .filter(|(_, load)| load.sending == Sending::Open)
        .map(|(name, _)| *name)
        .collect();
    let bars = sides.map(|side| Bars {
        name: side.to_owned(),
        rows: open
            .iter()
            .map(|load| (format!("{load}, {side}"), "mean over none".into()))
            .collect(),
        whose: Whose::Ours,
    });
    Drawing::Bars {
        title: "Mean time of a write of 4 kB, over that without protection".to_owned(),
        axis: "times".to_owned(),
        is_log: false,
        groups: open.iter().map(|name| (*name).to_owned()).collect(),
        bars: bars.collect(),
    }
}

#[cfg(test)]
mod tests {
    use levelhead_array::Policy;

    use super::*;
    use crate::studies::Measured;

    fn measured(protection: Protection, load: &Load) -> Measured {
        Site::healthy(protection).cell("", load).measure(7).unwrap()
    }

    #[test]
    fn model_of_none_is_the_array_without_protection() {
        for load in [open(SMALL, CARRIED_4K, 0.5, 300), closed(SMALL, 4, 200), stripes(0.5, 400)] {
            // A model reads as little as it can, whatever its drives have to do.
            let site = |side| Site { policy: Policy::Normal, ..Site::healthy(side) };
            let measured = |side| site(side).cell("", &load).measure(7).unwrap();
            let [ours, model] = [OURS[0].1, MODELS[0].1].map(measured);
            assert_eq!(ours, model);
        }
    }

    #[test]
    fn models_send_the_commands_that_their_mechanisms_add() {
        let one = closed(SMALL, 1, 40);
        let full = Load { sending: Sending::Closed(1), ..stripes(0.5, 40) };
        let commands = |side, load: &Load| measured(side, load).values["commands"];
        let [none, bitmap, parity, device] = MODELS.map(|(_, side)| side);
        for (side, small, large) in [(none, 4.0, 6.0), (parity, 5.0, 7.0), (device, 5.0, 7.0)] {
            let found = [commands(side, &one), commands(side, &full)];
            assert!(
                found.iter().zip([small, large]).all(|(a, b)| (a - b).abs() < 1e-9),
                "{found:?}"
            );
        }
        // Every small write meets a clean region; full stripes meet one or two, each marked on six drives.
        assert!((commands(bitmap, &one) - 10.0).abs() < 1e-9);
        let marks = (commands(bitmap, &full) - 6.0) * 40.0;
        assert!((marks - 6.0).abs() < 1e-9 || (marks - 12.0).abs() < 1e-9, "{marks}");
    }

    /// The open loops are shares of what a closed one carries.
    #[test]
    fn loads_are_shares_of_what_is_carried() {
        for (size, carried) in [(SMALL, CARRIED_4K), (CHUNK, CARRIED_64K)] {
            let rate = measured(Protection::None, &closed(size, 128, 3_000)).values["rate"];
            assert!((rate / carried - 1.0).abs() < 0.05, "{rate} a second, not {carried}");
        }
    }
}
