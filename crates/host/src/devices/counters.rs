//! From what drives count to [`Health`]: the difference between two readings.
//!
//! | a drive of | says with | read again | read |
//! |---|---|---|---|
//! | SCSI, SAS | log page 03h | rereads, else errors corrected with delay; and what nothing corrected | bytes |
//! | SATA | GP log 04h | read recovery attempts | logical sectors |
//! | NVMe | SMART, log 02h | media errors: what retries did *not* mend | thousands of 512 bytes |
//!
//! The counts are over a drive's life, so the share of the last minutes is what the older one of two
//! readings lacks. On hard disks it is an upper bound of the retry rate, because a sector that is read
//! again five times counts five times; on NVMe a lower bound. How long retries take, no page says.

use std::collections::VecDeque;

use levelhead_block::Health;
use levelhead_units::{Instant, Ratio};

use super::sysfs::{Bus, Disk};
use super::{Access, Fact, ata, log, nvme};

/// Where a drive's counts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    ScsiLog,
    AtaStatistics {
        /// Bytes of a logical sector.
        block: u64,
    },
    NvmeSmart,
}

/// What a drive has counted up to now, in our sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) sectors_read: u64,
    /// Times that a first pass did not do.
    pub(crate) repeated: u64,
}

impl Source {
    /// Where a disk of this kind has them, if it has any.
    pub(crate) fn of(disk: &Disk) -> Option<Self> {
        match disk.bus() {
            Bus::Scsi => Some(Self::ScsiLog),
            Bus::Ata => {
                let block = disk.number("queue/logical_block_size").unwrap_or(512);
                Some(Self::AtaStatistics { block })
            }
            Bus::Nvme => Some(Self::NvmeSmart),
            Bus::Other => None,
        }
    }

    /// Asks the drive.
    pub(crate) fn read(self, device: &dyn Access) -> Fact<Reading> {
        let missing = || "the drive does not count reads and what it had to repeat".to_owned();
        match self {
            Self::ScsiLog => log::ask(device).and_then(|found| scsi(found).ok_or_else(missing)),
            Self::AtaStatistics { block } => {
                let found = ata::ask_statistics(device)?;
                let counts = found.sectors_read.zip(found.read_recovery_attempts);
                let (read, repeated) = counts.ok_or_else(missing)?;
                Ok(Reading { sectors_read: ata::in_sectors(read, block), repeated })
            }
            Self::NvmeSmart => nvme::ask_smart(device).map(smart),
        }
    }
}

fn scsi(found: log::ReadErrors) -> Option<Reading> {
    let repeated = found.rereads.filter(|&count| count > 0).or(found.corrected_delayed);
    let repeated = repeated.or(found.rereads)?.saturating_add(found.uncorrected.unwrap_or(0));
    Some(Reading { sectors_read: ata::in_sectors(found.bytes?, 1), repeated })
}

fn smart(found: nvme::Smart) -> Reading {
    let sectors = found.units_read.saturating_mul(1000 * 512 / 4096);
    let fit = |count: u128| u64::try_from(count).unwrap_or(u64::MAX);
    Reading { sectors_read: fit(sectors), repeated: fit(found.media_errors) }
}

/// The readings of the last while.
#[derive(Clone, Debug, Default)]
pub(crate) struct Track(VecDeque<Reading>);

impl Track {
    /// Readings kept: five minutes of one every ten seconds.
    const KEPT: usize = 31;

    /// Takes a reading. What the drive says by it: nothing about retries as long as nothing was read
    /// in between.
    pub(crate) fn add(&mut self, now: Instant, reading: Reading) -> Health {
        // Counts that fall: the drive has been replaced, or has forgotten. Its past is of no use.
        let fell = |old: &Reading| {
            old.sectors_read > reading.sectors_read || old.repeated > reading.repeated
        };
        if self.0.back().is_some_and(fell) {
            self.0.clear();
        }
        if self.0.len() == Self::KEPT {
            self.0.pop_front();
        }
        self.0.push_back(reading);
        let oldest = self.0.front().copied().unwrap_or(reading);
        let read = reading.sectors_read - oldest.sectors_read;
        let repeated = (reading.repeated - oldest.repeated).min(read);
        let retry_rate = (read > 0).then(|| Ratio::of(repeated, read));
        Health { as_of: now, retry_rate, ..Health::default() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::devices::fake::FakeDevice;

    fn reading(sectors_read: u64, repeated: u64) -> Reading {
        Reading { sectors_read, repeated }
    }

    #[test]
    fn every_kind_of_page_gives_a_reading() {
        let log = log::tests::page(&[(1, 4, 50), (2, 4, 7), (5, 8, 40_960), (6, 4, 2)]);
        let device = FakeDevice::default().page(&[0x4D, 0, 0x43], &log);
        assert_eq!(Source::ScsiLog.read(&device), Ok(reading(10, 9)));
        // A drive that counts no rereads counts delays.
        let log = log::tests::page(&[(1, 4, 50), (2, 4, 0), (5, 8, 40_960)]);
        let device = FakeDevice::default().page(&[0x4D, 0, 0x43], &log);
        assert_eq!(Source::ScsiLog.read(&device), Ok(reading(10, 50)));
        let general = ata::tests::statistics_page(1, &[(40, 80)]);
        let rotating = ata::tests::statistics_page(3, &[(40, 5)]);
        let page = |number| [0x85, 9, 0x0E, 0, 0, 0, 1, 0, 4, 0, number];
        let device = FakeDevice::default().page(&page(1), &general).page(&page(3), &rotating);
        assert_eq!(Source::AtaStatistics { block: 512 }.read(&device), Ok(reading(10, 5)));
        assert_eq!(Source::AtaStatistics { block: 4096 }.read(&device), Ok(reading(80, 5)));
        let smart = nvme::tests::smart_page(2, 3);
        let device = FakeDevice::default().nvme(2, 0x007F_0002, Ok(&smart));
        assert_eq!(Source::NvmeSmart.read(&device), Ok(reading(250, 3)));
    }

    #[test]
    fn drive_that_does_not_count_says_nothing() {
        let missing = "the drive does not count reads and what it had to repeat";
        let log = log::tests::page(&[(2, 4, 7)]);
        let device = FakeDevice::default().page(&[0x4D], &log);
        assert_eq!(Source::ScsiLog.read(&device).unwrap_err(), missing);
        let general = ata::tests::statistics_page(1, &[(40, 80)]);
        let device = FakeDevice::default().page(&[0x85, 9, 0x0E, 0, 0, 0, 1, 0, 4, 0, 1], &general);
        let source = Source::AtaStatistics { block: 512 };
        assert_eq!(source.read(&device).unwrap_err(), missing);
        let error = Source::NvmeSmart.read(&FakeDevice::default()).unwrap_err();
        assert_eq!(error, "the controller refused with status 002h");
    }

    #[test]
    fn rate_is_that_of_the_last_readings() {
        let mut track = Track::default();
        let mut check = |at: u64, (read, repeated), expected: Option<f64>| {
            let now = Instant::from_nanos(at);
            let health = track.add(now, reading(read, repeated));
            let retry_rate = expected.map(|share| Ratio::new(share).unwrap());
            assert_eq!(health, Health { as_of: now, retry_rate, ..Health::default() });
        };
        check(1, (1_000, 500), None); // one reading: its life is not its last minutes
        check(2, (1_000, 500), None); // nothing was read
        check(3, (1_100, 525), Some(0.25));
        check(4, (1_200, 525), Some(0.125));
        check(5, (1_210, 9_000), Some(1.0)); // more repeats than sectors: all of them
        check(6, (100, 3), None); // it has forgotten
        check(7, (200, 4), Some(0.01));
    }

    #[test]
    fn old_readings_are_let_go() {
        let mut track = Track::default();
        track.add(Instant::ZERO, reading(0, 0));
        track.add(Instant::ZERO, reading(100, 100));
        for at in 2..200 {
            track.add(Instant::ZERO, reading(at * 100, 100));
        }
        assert_eq!(track.0.len(), Track::KEPT);
        let health = track.add(Instant::ZERO, reading(20_000, 100));
        assert_eq!(health.retry_rate, Some(Ratio::ZERO));
    }

    proptest! {
        #[test]
        fn any_counts_are_taken(counts in prop::collection::vec((any::<u64>(), any::<u64>()), 0..50)) {
            let mut track = Track::default();
            for (read, repeated) in counts {
                track.add(Instant::ZERO, reading(read, repeated));
            }
        }
    }
}
