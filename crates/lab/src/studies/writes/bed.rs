//! The array of the study, and what is sent to it.

use std::sync::Arc;

use levelhead_array::journal::rules::Rules;
use levelhead_array::reserve::{Apart, Division, Use};
use levelhead_array::{Content, HostOrder, JournalSettings, Layout, Left, Policy, Spec};
use levelhead_drive::{CacheMode, Faults, Profile, QUEUE_DEPTH_MAX, Scheduler, Verify};
use levelhead_stats::Streams;
use levelhead_trace::{Arrival, Kind, Synthetic};
use levelhead_units::{DriveIdx, Extent, Instant, Lba, Nanos, Sectors};

use super::figures::Sent;
use super::peers::{self, Mechanism};
use crate::WorldSettings;
use crate::replay::{self, Hang, Sending};
use crate::studies::{Cell, Measured};

/// The array of `array.writes`.
pub(in crate::studies) const ARRAY: &str = "raid5:5+1,chunk=64KiB";

/// Commands inside a drive at a time, as `array serve` has it.
const WINDOW: u32 = 32;

/// How writes are made durable together, or that they are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::studies) enum Protection {
    /// Our journal, on the drives that have the data.
    Journal,
    /// The same on drives of its own, one more than are redundant.
    Apart,
    /// Our array without one.
    None,
    /// A model of what others do.
    Model(Mechanism),
}

/// What is wrong with the first drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::studies) enum Trouble {
    /// Nothing.
    None,
    /// It takes this number of times as long, always.
    Slower(f64),
    /// It is not there.
    Gone,
    /// It is there, and hangs once.
    Hangs {
        /// Since when, after the beginning.
        after: Nanos,
        /// For how long.
        time: Nanos,
    },
}

/// An array.
#[derive(Clone, Copy, Debug)]
pub(in crate::studies) struct Site {
    /// Its shape.
    pub(in crate::studies) array: &'static str,
    /// The drives' make, shipped.
    pub(in crate::studies) drive: &'static str,
    pub(in crate::studies) protection: Protection,
    pub(in crate::studies) cache: CacheMode,
    pub(in crate::studies) trouble: Trouble,
    pub(in crate::studies) policy: Policy,
}

/// Where requests go.
#[derive(Clone, Debug)]
pub(in crate::studies) enum Places {
    /// Anywhere, aligned to their size.
    Random {
        /// The size of each.
        size: Sectors,
        /// The mean time between two, of an open loop.
        interval: Nanos,
    },
    /// Full stripes one behind the other.
    Stripes {
        /// Where they begin: 0 is the beginning of the drives, 1 means that they end at the end.
        place: f64,
        /// The size of one.
        size: Sectors,
    },
    /// Single sectors, most of them of few places.
    Few {
        /// The mean time between two, of an open loop.
        interval: Nanos,
        /// How many places there are, anywhere,
        places: u64,
        /// and the share of requests that go to one of them.
        share: f64,
    },
}

/// What is sent, and how.
#[derive(Clone, Debug)]
pub(in crate::studies) struct Load {
    pub(in crate::studies) kind: Kind,
    pub(in crate::studies) places: Places,
    pub(in crate::studies) sending: Sending,
    pub(in crate::studies) count: u64,
}

impl Load {
    /// The size of one write.
    pub(in crate::studies) fn size(&self) -> Sectors {
        match self.places {
            Places::Random { size, .. } | Places::Stripes { size, .. } => size,
            Places::Few { .. } => Sectors::new(1),
        }
    }

    fn arrivals(&self, array: Sectors, seed: u64) -> Result<Vec<Arrival>, String> {
        match self.places {
            Places::Random { size, interval } => self.random(array, size, interval, seed),
            Places::Few { interval, places, share } => {
                let mut arrivals = self.random(array, Sectors::new(1), interval, seed)?;
                let mut rng = Streams::new(seed).stream("few places");
                let few: Vec<Extent> = arrivals.iter().map(|one| one.extent).collect();
                let few = &few[..few.len().min(places as usize)];
                for arrival in &mut arrivals {
                    let at = rng.below(few.len() as u64) as usize;
                    if rng.unit() < share {
                        arrival.extent = few[at];
                    }
                }
                Ok(arrivals)
            }
            Places::Stripes { place, size } => {
                let stripes = array.get() / size.get();
                let room =
                    stripes.checked_sub(self.count).ok_or("the array has too few stripes")?;
                let first = (room as f64 * place) as u64;
                let arrival = |at: u64| Arrival {
                    at: Instant::ZERO,
                    kind: self.kind,
                    extent: Extent::new(Lba::ZERO + size * (first + at), size),
                };
                Ok((0..self.count).map(arrival).collect())
            }
        }
    }

    fn random(
        &self,
        array: Sectors,
        size: Sectors,
        interval: Nanos,
        seed: u64,
    ) -> Result<Vec<Arrival>, String> {
        let (bytes, count) = (size.bytes(), self.count);
        let reads = if self.kind == Kind::Read { 100 } else { 0 };
        let text =
            format!("size={bytes},align={bytes},interval={interval},count={count},reads={reads}%");
        let synthetic: Synthetic = text.parse().map_err(|error| format!("{error}"))?;
        synthetic.generate(array, Streams::new(seed)).map_err(|error| error.to_string())
    }
}

impl Site {
    /// Drives without a write cache, of which none is in trouble.
    pub(in crate::studies) const fn healthy(protection: Protection) -> Self {
        let (cache, trouble, policy) = (CacheMode::Off, Trouble::None, Policy::DEFAULT);
        Self { array: ARRAY, drive: "nearline-2tb", protection, cache, trouble, policy }
    }

    /// A cell: this array under that load.
    pub(in crate::studies) fn cell(self, name: impl Into<String>, load: &Load) -> Cell {
        let load = load.clone();
        Cell::new(name, move |seed| self.measure(&load, seed))
    }

    fn measure(self, load: &Load, seed: u64) -> Result<Measured, String> {
        let settings = self.world(seed)?;
        let area = settings.area.as_ref().expect("the study's arrays say where they lie");
        let size = Layout::new(settings.spec, area.size()).size();
        let arrivals = load.arrivals(size, seed)?;
        let sent: Sent = match self.protection {
            Protection::Model(mechanism) => {
                peers::send(&settings, mechanism, &arrivals, load.sending)?
            }
            Protection::Journal | Protection::Apart | Protection::None => {
                let hang = match self.trouble {
                    Trouble::Hangs { after, time } => {
                        Some(Hang { drive: DriveIdx::new(0), from: Instant::ZERO + after, time })
                    }
                    Trouble::None | Trouble::Slower(_) | Trouble::Gone => None,
                };
                let ask =
                    replay::Ask { sending: load.sending, hang, ..replay::Ask::open(&arrivals) };
                let run = replay::run(&settings, &ask, &mut |_| {});
                run.map_err(|error| error.to_string())?.into()
            }
        };
        Ok(sent.measured(load.sending, load.size()))
    }

    /// The world; with and without a journal the data lie at the same places.
    fn world(self, seed: u64) -> Result<WorldSettings, String> {
        let spec: Spec = self.array.parse().expect("the array is possible");
        let journals = match self.protection {
            Protection::Apart => spec.redundant() as u32 + 1,
            Protection::Journal | Protection::None | Protection::Model(_) => 0,
        };
        let spec = spec.with_journals(journals).expect("it is one more than are redundant");
        let profile = Profile::shipped(self.drive).expect("it is shipped");
        let drive = |faults| levelhead_drive::Settings {
            queue_depth: QUEUE_DEPTH_MAX,
            scheduler: Scheduler::SOONEST,
            cache: self.cache,
            retention: None,
            verify: Verify::Off,
            faults,
            size: None,
        };
        let first = match self.trouble {
            Trouble::None | Trouble::Hangs { .. } => Faults::NONE,
            Trouble::Slower(slowdown) => Faults { slowdown, ..Faults::NONE },
            Trouble::Gone => Faults { death: Some(Instant::ZERO), ..Faults::NONE },
        };
        let well = std::iter::repeat_n(Faults::NONE, spec.members() - 1);
        let division = Division::of(&spec, profile.size()).ok_or("the drives are too small")?;
        let reserved = match Apart::of(&spec, profile.size()).filter(|_| journals > 0) {
            Some(apart) => apart.reserved(profile.size()),
            None => division.reserved(profile.size()),
        };
        let lists = reserved.iter().find(|place| place.purpose == Use::List);
        let lists = lists.map(|place| place.extent);
        let pieces = reserved
            .into_iter()
            .filter(|place| place.purpose == Use::Journal)
            .map(|place| place.extent)
            .collect();
        let journal = JournalSettings {
            pieces,
            lists,
            floor: 1,
            left: Left::Drained,
            intents_from: JournalSettings::INTENTS_FROM,
            region_min: JournalSettings::REGION_MIN,
            rules: Rules::ALL,
        };
        Ok(WorldSettings {
            spec,
            policy: self.policy,
            window: WINDOW,
            order: HostOrder::Elevator,
            content: Content::Absent,
            profile: Arc::new(profile),
            drives: std::iter::once(first).chain(well).map(drive).collect(),
            area: Some(division.area),
            journal: match self.protection {
                Protection::Journal | Protection::Apart => Some(journal),
                Protection::None | Protection::Model(_) => None,
            },
            seed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRIPE: Sectors = Sectors::new(5 * 16);

    #[test]
    fn stripes_reach_from_the_beginning_to_the_end() {
        let load = |place| Load {
            kind: Kind::Write,
            places: Places::Stripes { place, size: STRIPE },
            sending: Sending::Closed(4),
            count: 3,
        };
        let array = STRIPE * 10;
        let firsts = |place| -> Vec<u64> {
            let arrivals = load(place).arrivals(array, 1).unwrap();
            arrivals.iter().map(|one| one.extent.lba.get() / STRIPE.get()).collect()
        };
        assert_eq!(firsts(0.0), [0, 1, 2]);
        assert_eq!(firsts(1.0), [7, 8, 9]);
        assert!(load(0.0).arrivals(STRIPE * 2, 1).is_err());
    }
}
