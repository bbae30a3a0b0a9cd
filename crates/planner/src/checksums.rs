//! Checksums of sectors at rest: what they cost, and which wrong sectors are answered without them.
//!
//! A *tag sector* has the checksums of a group of sectors and lies among them. A read of a sector whose checksum is not in memory
//! is widened to the tag sector, in one command:
//!
//! ```text
//!   b sectors | tag sector | g - b sectors
//!       ^-----------------^                  the i-th sector before it brings i sectors besides, one behind it alike
//! ```
//!
//! # References
//!
//! - `[BGS08]` how many drives return wrong bytes.
//!
//! # Assumptions
//!
//! - A1. Reads come to all sectors alike, at any time.
//! - A2. A sector that has become wrong stays so until it is repaired: it is not written.

/// The share of a drive that tag sectors take, of groups of `group` sectors.
pub fn capacity(group: u64) -> f64 {
    1.0 / (group as f64 + 1.0)
}

/// Sectors that the read of one sector of a group brings besides, on average over the group, of which `before` sectors lie before
/// the tag sector.
///
/// ```text
///   (b (b + 1) + (g - b) (g - b + 1)) / 2 g
/// ```
///
/// # Panics
///
/// If the group is empty, or `before` is more.
pub fn widened(group: u64, before: u64) -> f64 {
    assert!(group > 0);
    assert!(before <= group);
    let side = |sectors: u64| (sectors * (sectors + 1)) as f64;
    (side(before) + side(group - before)) / (2.0 * group as f64)
}

/// The share of the data in use, all of it alike, whose tag sectors are in memory, if that has room for those of `room` of it.
pub fn known(room: f64, used: f64) -> f64 {
    if room < used { room / used } else { 1.0 }
}

/// The rate of commands of a drive that is never idle over its rate without `extra`, which each of them takes besides.
pub fn slower(rate: f64, extra: f64) -> f64 {
    1.0 / (1.0 + rate * extra)
}

/// The share of the sectors which become wrong that are read before the next scrub has come to them, if a sector is read `reads`
/// times from scrub to scrub.
///
/// ```text
///   1 - (1 - exp(-x)) / x          a Poisson number of reads in an even share of x
/// ```
pub fn read_before_scrub(reads: f64) -> f64 {
    if reads < 1e-4 { reads / 2.0 } else { 1.0 + (-reads).exp_m1() / reads }
}

/// The share of corrupt sectors that CRC-32C accepts.
pub const ACCEPTED: f64 = 1.0 / (1_u64 << 32) as f64;

/// A count of drives, as a share of them a year. `low` and `high` are due to what is not published: for how long each was observed,
/// and of which class it was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Our estimate.
    pub mean: f64,
    /// The least that the counts allow.
    pub low: f64,
    /// The most.
    pub high: f64,
}

/// Drives that `[BGS08]` observed for up to 41 months, and those of them of the nearline class.
const DRIVES: f64 = 1.53e6;
const NEARLINE: f64 = 358_000.0;

/// Years for which they were observed: 41 months at most. 0.66 % of the nearline drives were affected in their first 17 months and
/// 0.86 % in all, which makes 22 months on average if they are affected evenly.
const YEARS_MAX: f64 = 41.0 / 12.0;
const YEARS: f64 = 22.0 / 12.0;
const YEARS_MIN: f64 = 17.0 / 12.0;

impl Share {
    /// This share.
    pub fn exactly(share: f64) -> Self {
        Self { mean: share, low: share, high: share }
    }

    /// Nearline drives with checksum mismatches: 3,088 of 358,000 (`[BGS08]` sec. 4.1).
    pub fn rot() -> Self {
        let of = |years: f64| 3_088.0 / NEARLINE / years;
        Self { mean: of(YEARS), low: of(YEARS_MAX), high: of(YEARS_MIN) }
    }

    /// Drives with a sector whose identity is another one's or an older one's, by a lost or a misdirected write: 365 of 1.53
    /// million (`[BGS08]` sec. 5.1). Half of them are counted for each. The most: all of them were nearline drives.
    pub fn misplaced() -> Self {
        let of = |drives: f64, years: f64| 365.0 / 2.0 / drives / years;
        Self { mean: of(DRIVES, YEARS), low: of(DRIVES, YEARS_MAX), high: of(NEARLINE, YEARS_MIN) }
    }

    /// This share of it, or this number of times as much.
    pub fn times(self, of: Self) -> Self {
        Self { mean: self.mean * of.mean, low: self.low * of.low, high: self.high * of.high }
    }
}

/// Wrong sectors of a drive with checksum mismatches, on average (`[BGS08]` sec. 4.1). Half of such drives have 3 at most.
pub const ROT_SECTORS: f64 = 104.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn near(ours: f64, want: f64) {
        assert!((ours / want - 1.0).abs() < 1e-3, "{ours} is not {want}");
    }

    #[test]
    fn a_read_is_widened_to_its_tag_sector() {
        near(widened(64, 32), 16.5); // twice 1 + 2 + .. + 32, over 64
        near(widened(3, 2), 4.0 / 3.0); // 2, 1 and 1
        near(widened(1, 1), 1.0);
        for (group, before) in [(64, 32), (60, 40), (7, 3)] {
            let of = |at: u64| if at < before { before - at } else { at - before + 1 };
            near(widened(group, before), (0..group).map(of).sum::<u64>() as f64 / group as f64);
        }
        near(capacity(64), 1.0 / 65.0);
    }

    #[test]
    fn memory_has_what_it_has_room_for() {
        near(known(1e5, 4e5), 0.25);
        near(known(5e5, 4e5), 1.0);
        near(slower(188.0, 0.52e-3), 0.9109); // 5.319 ms, then 5.839
    }

    #[test]
    fn reads_come_before_the_scrub_by_their_number() {
        near(read_before_scrub(1.0), 0.3679); // 1 / e
        near(read_before_scrub(1e-5), 5e-6);
        near(read_before_scrub(1e-4), 5e-5);
        near(read_before_scrub(1e9), 1.0);
        assert!(read_before_scrub(0.0).abs() < f64::EPSILON);
    }

    #[test]
    fn counts_of_the_field_are_shares_a_year() {
        let (rot, misplaced) = (Share::rot(), Share::misplaced());
        near(rot.mean, 0.004_705);
        near(rot.low, 0.002_525);
        near(rot.high, 0.006_089);
        near(misplaced.mean, 6.506e-5);
        near(misplaced.low, 3.491e-5);
        near(misplaced.high, 3.598e-4);
        near(rot.times(Share::exactly(2.0)).high, 0.012_178);
        near(ACCEPTED, 2.328e-10);
    }
}
