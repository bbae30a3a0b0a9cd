//! What a read from the medium of each drive is worth: what the runtime knows, or what such reads take.
//!
//! A runtime that can ask for the medium says `medium`. Where it cannot, a drive may answer from its memory, and then it
//! answers at once; a disk that really reads waits for its sectors to come round. So it counts what the last reads took that
//! were alone inside their drive from beginning to end:
//!
//! ```text
//!   half of the last 64 took 2 ms or more        likely: few of them can have come from memory
//!   fewer did, or there were fewer such reads    interface
//! ```
//!
//! *2 ms.* What is in a drive's memory is there in a fraction of a millisecond, and [`LENGTH_MAX`] of it cross the slowest
//! interface in use (SATA, 150 MB/s) in 0.44 ms. A disk of 7,200 rpm needs 8.3 ms for a revolution: a read finds its sectors
//! at any angle, so it waits 4.2 ms in the mean, and less than 2 ms in one of four cases; the seek and the overhead come on
//! top. At 15,000 rpm, where a revolution takes 4 ms, they tip the scale. A drive that answers from its memory has a long read
//! now and then only, when it is busy with itself or the machine is.
//!
//! *64 reads.* Where each takes long with a chance of three in four, fewer than 32 of them do in one of 200,000 cases; where
//! one in ten does, 32 do in one of 10^15.
//!
//! # What it leaves out
//!
//! That a drive is as quick as this says does not show that it lies: flash memory is. It stays `interface`. And a read
//! that took long may still have been answered from memory, by a drive that was busy: `likely` says no more than its name.

use levelhead_units::{DriveIdx, Nanos, Sectors};

use crate::settings::verify::{Promise, Reach};

/// A read that took this long has not come from a drive's memory.
const LONG: Nanos = Nanos::from_millis(2);

/// Longer reads are not counted: what they take says how fast the interface is.
const LENGTH_MAX: Sectors = Sectors::new(16);

/// The reads that count, and how many of them must have taken long.
const READS: u32 = u64::BITS;
const READS_LONG: u32 = READS / 2;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Promises {
    each: Vec<Known>,
}

/// What is known of a drive.
#[derive(Clone, Copy, Debug)]
struct Known {
    said: Promise,
    reach: Reach,
    /// The last reads, the newest in the lowest bit: whether they took long.
    long: u64,
    /// How many of them there were, or all that count.
    reads: u32,
}

/// A read from the medium that was alone inside its drive from beginning to end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoneRead {
    pub(crate) sectors: Sectors,
    pub(crate) took: Nanos,
}

impl Promises {
    pub(crate) fn new(drives: usize) -> Self {
        let (said, reach) = (Promise::Interface, Reach::Near);
        Self { each: vec![Known { said, reach, long: 0, reads: 0 }; drives] }
    }

    /// What a read from the medium of a drive is worth.
    pub(crate) fn of(&self, drive: DriveIdx) -> Promise {
        let Known { said, reach, long, reads } = self.each[drive.as_usize()];
        let is_measured = reach == Reach::Near && reads == READS && long.count_ones() >= READS_LONG;
        // What is known is never worth less for it.
        if is_measured { said.max(Promise::Likely) } else { said }
    }

    /// The runtime knows this of a drive.
    pub(crate) fn say(&mut self, drive: DriveIdx, promise: Promise) {
        self.each[drive.as_usize()].said = promise;
    }

    /// What lies between the array and a drive.
    pub(crate) fn note_reach(&mut self, drive: DriveIdx, reach: Reach) {
        self.each[drive.as_usize()].reach = reach;
    }

    /// A drive has ended such a read, and has given all of it.
    pub(crate) fn note_read(&mut self, drive: DriveIdx, read: LoneRead) {
        if read.sectors > LENGTH_MAX {
            return;
        }
        let known = &mut self.each[drive.as_usize()];
        known.long = known.long << 1 | u64::from(read.took >= LONG);
        known.reads = READS.min(known.reads + 1);
    }

    /// Another drive is to have the place: what was measured is not the new one's.
    pub(crate) fn forget_reads(&mut self, drive: DriveIdx) {
        let known = &mut self.each[drive.as_usize()];
        (known.long, known.reads) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIVE: DriveIdx = DriveIdx::new(1);

    /// A drive whose reads took so many milliseconds each.
    fn after(took: impl IntoIterator<Item = u64>) -> Promises {
        let mut promises = Promises::new(2);
        for took in took {
            let (sectors, took) = (Sectors::new(1), Nanos::from_millis(took));
            promises.note_read(DRIVE, LoneRead { sectors, took });
        }
        promises
    }

    #[test]
    fn drive_half_of_whose_last_reads_took_long_can_hardly_have_had_them_in_memory() {
        let of = |took: Vec<u64>| after(took).of(DRIVE);
        assert_eq!(of(vec![]), Promise::Interface);
        assert_eq!(of(vec![9; 63]), Promise::Interface, "too few");
        assert_eq!(of(vec![9; 64]), Promise::Likely);
        assert_eq!(of([[2; 32], [1; 32]].concat()), Promise::Likely);
        assert_eq!(of([vec![2; 31], vec![1; 33]].concat()), Promise::Interface, "fewer than half");
        assert_eq!(after(vec![9; 64]).of(DriveIdx::new(0)), Promise::Interface, "it is of a drive");
    }

    #[test]
    fn only_the_last_reads_count() {
        let mut promises = after([[9; 64], [0; 64]].concat());
        assert_eq!(promises.of(DRIVE), Promise::Interface);
        for took in [[9; 32], [0; 32]].concat() {
            let (sectors, took) = (Sectors::new(16), Nanos::from_millis(took));
            promises.note_read(DRIVE, LoneRead { sectors, took });
        }
        assert_eq!(promises.of(DRIVE), Promise::Likely);
        promises.forget_reads(DRIVE);
        assert_eq!(promises.of(DRIVE), Promise::Interface);
    }

    #[test]
    fn long_transfer_says_nothing_of_the_medium() {
        let mut promises = Promises::new(2);
        let (sectors, took) = (Sectors::new(17), Nanos::from_millis(9));
        (0..100).for_each(|_| promises.note_read(DRIVE, LoneRead { sectors, took }));
        assert_eq!(promises.of(DRIVE), Promise::Interface);
    }

    #[test]
    fn what_a_network_lies_before_is_not_measured() {
        let mut promises = after([9; 64]);
        promises.note_reach(DRIVE, Reach::Far);
        assert_eq!(promises.of(DRIVE), Promise::Interface);
    }

    #[test]
    fn what_the_runtime_knows_is_worth_no_less_and_never_more_for_what_was_measured() {
        for took in [0, 9] {
            let mut promises = after([took; 64]);
            promises.say(DRIVE, Promise::Medium);
            assert_eq!(promises.of(DRIVE), Promise::Medium);
            promises.say(DRIVE, Promise::Interface);
            let left = if took > 0 { Promise::Likely } else { Promise::Interface };
            assert_eq!(promises.of(DRIVE), left, "it is refused from now on");
        }
    }
}
