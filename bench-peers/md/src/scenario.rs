//! What is compared: troubles of drives, and loads.

use std::str::FromStr;

use levelhead_units::{Bytes, Nanos, SECTOR_SIZE};

/// The make of every drive.
pub(crate) const PROFILE: &str = "nearline-2tb";

/// What each drive holds: the make's size, rounded down to whole GiB.
pub(crate) const DRIVE_SIZE: Bytes = Bytes::new(1860 << 30);

pub(crate) const DRIVES: usize = 6;

/// Bytes from which reads begin: five drives less 4 GiB, and so less than either system has.
pub(crate) const SPAN: Bytes = Bytes::new((1860 * 5 - 4) << 30);

/// The drive that is slow where one is.
const SLOW_DRIVE: usize = 2;

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    /// Linux MD RAID-5 in the guest, over six disks.
    Md,
    /// Our RAID-5 under `level` on the host, one disk in the guest.
    Ours,
}

impl System {
    pub(crate) const BOTH: [Self; 2] = [Self::Md, Self::Ours];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Md => "MD",
            Self::Ours => "level",
        }
    }
}

/// What the drives suffer from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Nothing.
    None,
    /// On every drive, this share of sectors fails at the first pass; a retry takes `rotations`.
    Retries { rate: &'static str, rotations: u32 },
    /// One drive takes ten times as long for everything.
    SlowDrive,
}

impl Trouble {
    /// In a sentence.
    fn text(self) -> String {
        match self {
            Self::None => "healthy".to_owned(),
            Self::Retries { rate, rotations } => {
                format!("{rate} of sector reads fail, {rotations} rotations a retry")
            }
            Self::SlowDrive => "one drive ten times slower".to_owned(),
        }
    }

    /// What the name of emulated drive `drive` says of it.
    fn options(self, drive: usize) -> String {
        match self {
            Self::Retries { rate, rotations } => {
                format!("&retry-rate={rate}&rotations={rotations}&adjacency=2")
            }
            Self::SlowDrive if drive == SLOW_DRIVE => "&slowdown=10".to_owned(),
            Self::None | Self::SlowDrive => String::new(),
        }
    }

    /// The name of emulated drive `drive` over the file `path`.
    pub(crate) fn member(self, drive: usize, path: &str, seed: u64) -> String {
        let own = self.options(drive);
        let size = DRIVE_SIZE.get();
        format!("emu:{path}?profile={PROFILE}&size={size}&seed={seed}{own}")
    }
}

/// One line of the comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    /// What it is asked for by.
    pub(crate) name: &'static str,
    pub(crate) trouble: Trouble,
    /// Sectors of 4096 bytes that a read takes.
    read_sectors: u64,
    /// Mean milliseconds from one read to the next.
    period_ms: u64,
}

const SCENARIOS: [Scenario; 7] = [
    scenario("healthy", Trouble::None, 10, 8),
    scenario("slow-drive", Trouble::SlowDrive, 10, 200),
    scenario("slow-drive-busy", Trouble::SlowDrive, 10, 40),
    scenario("rare-retries", Trouble::Retries { rate: "0.01%", rotations: 3 }, 10, 8),
    scenario("rare-long-retries", Trouble::Retries { rate: "0.01%", rotations: 50 }, 10, 8),
    scenario("retries", Trouble::Retries { rate: "2%", rotations: 3 }, 10, 8),
    scenario("retries-80k", Trouble::Retries { rate: "2%", rotations: 3 }, 20, 8),
];

const fn scenario(
    name: &'static str,
    trouble: Trouble,
    read_sectors: u64,
    period_ms: u64,
) -> Scenario {
    Scenario { name, trouble, read_sectors, period_ms }
}

impl Scenario {
    /// All there are, in the order of the table.
    pub(crate) fn all() -> Vec<Self> {
        SCENARIOS.to_vec()
    }

    pub(crate) fn read_size(&self) -> Bytes {
        Bytes::new(self.read_sectors * SECTOR_SIZE as u64)
    }

    pub(crate) fn period(&self) -> Nanos {
        Nanos::from_millis(self.period_ms)
    }

    /// The drives' trouble, in a sentence.
    pub(crate) fn trouble_text(&self) -> String {
        self.trouble.text()
    }

    /// The load, as in "40 kB every 8 ms": 4 kB for a sector.
    pub(crate) fn load_text(&self) -> String {
        let Self { read_sectors, period_ms, .. } = self;
        format!("{} kB every {period_ms} ms", 4 * read_sectors)
    }
}

impl FromStr for Scenario {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = SCENARIOS.into_iter().find(|scenario| scenario.name == text);
        found.ok_or_else(|| {
            let names: Vec<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
            format!("expected one of {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_is_found_by_its_name_and_no_other() {
        for scenario in SCENARIOS {
            assert_eq!(
                scenario.name.parse::<Scenario>().map(|found| found.name),
                Ok(scenario.name)
            );
        }
        let refused = "slow".parse::<Scenario>().expect_err("there is no such scenario");
        assert!(refused.contains("slow-drive-busy"), "{refused}");
    }

    #[test]
    fn one_drive_alone_is_slow_and_all_of_them_retry() {
        let slow: Vec<bool> =
            (0..DRIVES).map(|drive| Trouble::SlowDrive.options(drive).is_empty()).collect();
        assert_eq!(slow, [true, true, false, true, true, true]);
        let member = Trouble::Retries { rate: "2%", rotations: 3 }.member(5, "d.img", 7);
        let expected = "emu:d.img?profile=nearline-2tb&size=1997159792640&seed=7\
                        &retry-rate=2%&rotations=3&adjacency=2";
        assert_eq!(member, expected);
    }

    #[test]
    fn a_load_is_told_as_a_size_and_a_period() {
        let slow: Scenario = "slow-drive".parse().expect("it is there");
        assert_eq!((slow.read_size(), slow.period()), (Bytes::new(40960), Nanos::from_millis(200)));
        assert_eq!(slow.load_text(), "40 kB every 200 ms");
    }
}
