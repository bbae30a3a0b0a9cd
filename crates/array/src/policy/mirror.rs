//! Which copy of a mirror's data a read takes.
//!
//! A mirror's codeword has one data symbol and its copies. Before a policy decides about a read, one copy of each
//! codeword becomes its *requested data*; from there on a mirror is read like any other array, and the other copies
//! are the rest of the group.
//!
//! | policy | requested data |
//! |---|---|
//! | `level` | the copy that is expected to be read soonest |
//! | all others | the copies take turns from read to read; those on drives that sit out have none |
//!
//! Copies on the same drives are not mixed within one read: what follows each other on a drive is one command.
//!
//! ```text
//!   expected = (q + 1) s + far + x + p b w
//!   far      = s_min                            for what starts where the last command ends, while that is not done
//!              2.5 s_min sqrt(distance / size)  else
//! ```
//!
//! with `q`, `s`, `x`, `p`, `w` as in `docs/level.md`, `s_min` the fastest copy's pace, `b` sectors that are read, and
//! the distance from what the drive was asked for last. A seek takes about the root of its length, so the term is
//! more than the seek itself: an arm that is taken far away is far away for the next reads, too. It gives each arm a
//! part of the disk. Without it `raid1:2` has a mean of 22.3 ms and a p99 of 75.6 ms for reads of 4 KiB every 6.5 ms,
//! with 0.75 in place of 2.5 one of 20.0 and 67.7, with 2.5 of 17.6 and 55.4, with 5 of 16.9 and 54.9; from 3.5 on the
//! p99 of arrays with little to do is longer.
//!
//! What starts where the drive's last command ends has passed under the head when that command is done, and comes again
//! after a rotation. So while reads of a stream wait, its copies take turns, and each drive skips what the other one
//! reads; where a drive has nothing to do, the stream stays at it. Before, all that lay between the start of the last
//! command and 2 MiB behind it counted as following it, whether the drive had something to do or not:
//!
//! | mean, healthy drives | `level` | before | `normal` |
//! |---|---|---|---|
//! | `raid10:6,chunk=8KiB`, hadoop_eternity10 at 60 % | 314 ms | 572 ms | 337 ms |
//! | `raid10:6,chunk=64KiB`, two streams of 64 KiB, a tenth of a drive apart, a read each 10 ms | 5.7 ms | 8.5 ms | 5.5 ms |
//!
//! Drives whose paces differ by a factor of less than 1.5 count as equally fast: what is learnt from 16
//! commands varies by that much, and would send all reads of a quiet array to the drive that had more luck.
//!
//! # What it leaves out
//!
//! Reading two copies at a time, which `assisted` does: it made the p99 of `raid1:2` a third longer on an idle array
//! and longer at every other load, also where 2 % of the sectors fail. A second copy occupies its drive for as long
//! as it saves the first, and takes both arms to the same place. Reading the halves of a long read from two copies.

use crate::policy::tau::DriveView;

/// What the largest distance counts, in commands of the fastest copy's drive.
const FAR: f64 = 2.5;

/// Copies whose drives' paces differ by less than this count as equally fast.
const ALIKE: f64 = 1.5;

/// The least pace, in seconds, so that queues count also where nothing is known of a drive.
const PACE_MIN: f64 = 1e-6;

/// One copy that a read may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    pub(crate) drive: DriveView,
    /// From what the drive was asked for last, as a share of its size.
    pub(crate) distance: f64,
    /// Whether it starts where that ends, or shortly behind it.
    pub(crate) is_next: bool,
}

/// Which of the copies is expected to be read soonest, of equals the first. There is at least one.
pub(crate) fn soonest(copies: &[Copy], sectors: u32) -> usize {
    let paces = copies.iter().map(|copy| copy.drive.pace_alone);
    let least = paces.fold(f64::INFINITY, f64::min).max(PACE_MIN);
    let times: Vec<f64> = copies.iter().map(|copy| expected(copy, least, sectors)).collect();
    (0..copies.len()).min_by(|&left, &right| times[left].total_cmp(&times[right])).unwrap_or(0)
}

/// How long a read from this copy is expected to take, where the fastest drive takes `least` for a command.
fn expected(copy: &Copy, least: f64, sectors: u32) -> f64 {
    let Copy { drive, distance, is_next } = *copy;
    let is_alike = drive.pace_alone <= ALIKE * least;
    // A drive that has several commands to choose from takes less for each.
    let choice = drive.pace.max(PACE_MIN) / drive.pace_alone.max(PACE_MIN);
    let pace = choice * if is_alike { least } else { drive.pace_alone };
    let fails = 1.0 - (1.0 - drive.failure_rate).powi(sectors as i32);
    // It has passed under the head when the drive has read what comes before, and comes again after a rotation, for as much
    // as reading elsewhere takes. The disk of an idle drive has turned on meanwhile.
    let passes = is_next && drive.queued > 0.5;
    let far = least * if passes { 1.0 } else { FAR * distance.min(1.0).sqrt() };
    (drive.queued + 1.0) * pace + far + drive.excess + fails * drive.wait()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(pace: f64, queued: f64, distance: f64) -> Copy {
        let drive = DriveView { pace, pace_alone: pace, queued, ..DriveView::default() };
        Copy { drive, distance, is_next: false }
    }

    #[test]
    fn shorter_queue_is_taken_and_of_like_queues_the_nearer_arm() {
        assert_eq!(soonest(&[copy(0.01, 3.0, 0.2), copy(0.01, 2.0, 0.3)], 1), 1);
        assert_eq!(soonest(&[copy(0.01, 2.0, 0.5), copy(0.01, 2.0, 0.1)], 1), 1);
        assert_eq!(soonest(&[copy(0.01, 2.0, 0.1), copy(0.01, 2.0, 0.5)], 1), 0);
        assert_eq!(soonest(&[copy(0.01, 4.0, 0.0), copy(0.01, 1.0, 0.9)], 1), 1);
    }

    #[test]
    fn small_differences_of_pace_are_luck_and_a_slow_drive_is_read_only_behind_its_queues() {
        assert_eq!(soonest(&[copy(0.010, 1.0, 0.5), copy(0.013, 1.0, 0.4)], 1), 1);
        assert_eq!(soonest(&[copy(0.100, 0.0, 0.0), copy(0.010, 4.0, 1.0)], 1), 1);
        assert_eq!(soonest(&[copy(0.100, 0.0, 0.0), copy(0.010, 9.0, 1.0)], 1), 0);
    }

    #[test]
    fn failing_copies_and_those_slow_now_and_then_are_avoided() {
        let good = copy(0.01, 0.0, 0.4);
        let excess =
            Copy { drive: DriveView { excess: 0.02, ..good.drive }, distance: 0.0, ..good };
        let failing =
            Copy { drive: DriveView { failure_rate: 0.3, ..good.drive }, distance: 0.2, ..good };
        assert_eq!(soonest(&[excess, good], 1), 1);
        assert_eq!(soonest(&[failing, good], 4), 1);
    }

    #[test]
    fn unknown_drives_are_told_apart_by_their_queues() {
        assert_eq!(soonest(&[copy(0.0, 5.0, 0.0), copy(0.0, 1.0, 0.9)], 1), 1);
    }
}
