//! Command duration limits: up to seven ways in which a drive cuts a read short, set up by whoever
//! runs the machine, chosen for each command by its number.
//!
//! A descriptor limits three times, each with a policy of its own: the time a command waits in the
//! drive, the time the drive works on it, and both together. Only the second one, the *active* time,
//! is about retries; the first would fail reads of a drive that is merely busy. So a read that is to
//! have no retries gets the descriptor with the shortest active limit in which a read without retries
//! certainly fits ([`Pass`]): a limit inside the normal range would fail healthy reads, and on SATA
//! every expiry stops the port for an error-handling pass of the kernel.
//!
//! ```text
//!   mode page 0Ah, subpage 07h (T2A: reads)       descriptor, 32 bytes
//!     0  4Ah   1  07h   2..4  length                0  unit of time (low 4 bits)
//!     7  performance against guideline (high 4)     2..4  inactive limit   4..6  active limit
//!     8.. seven descriptors of 32 bytes             6  their policies (high 4, low 4)
//!                                                  10..12 guideline       14  its policy (low 4)
//! ```
//!
//! On ATA drives the kernel makes this page from GP log 18h.
//!
//! References: SPC-6 (command duration limit T2A mode page), ACS-5 (GP log 18h), Linux 6.5
//! (`include/uapi/linux/ioprio.h`).

use levelhead_block::Effort;
use levelhead_units::Nanos;

use super::scsi::{self, u16_be};
use super::{Access, Fact};

const PAGE: u8 = 0x0A;
const SUBPAGE_READ: u8 = 0x07;
const DESCRIPTORS: usize = 7;
const DESCRIPTOR_LEN: usize = 32;

/// One of a drive's seven limits for reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimit {
    /// Its number, 1 to 7.
    pub number: u8,
    /// How long a command may wait inside the drive.
    pub inactive: Option<Limit>,
    /// How long the drive may work on a command.
    pub active: Option<Limit>,
    /// How long both may take together.
    pub guideline: Option<Limit>,
}

/// A time, and what the drive does when it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The time.
    pub time: Nanos,
    /// What happens then.
    pub expiry: Expiry,
}

/// What a drive does with a command whose time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// Goes on, as fast as it can.
    GoesOn,
    /// Ends it at once, and says that the data is not available (policy Dh).
    Unavailable,
    /// Ends it at once with an error (policies Eh and Fh).
    Aborts,
    /// Something else.
    Other(u8),
}

impl Expiry {
    fn of(policy: u8) -> Self {
        match policy {
            0x0..=0x2 => Self::GoesOn,
            0xD => Self::Unavailable,
            0xE | 0xF => Self::Aborts,
            other => Self::Other(other),
        }
    }

    /// Whether the command ends when its time is over.
    pub fn ends(self) -> bool {
        match self {
            Self::Unavailable | Self::Aborts => true,
            Self::GoesOn | Self::Other(_) => false,
        }
    }
}

/// Asks a drive for its limits.
pub(crate) fn ask(device: &dyn Access) -> Fact<Vec<ReadLimit>> {
    const ROOM: u16 = 8 + 64 + 8 + (DESCRIPTORS * DESCRIPTOR_LEN) as u16;
    let bytes = scsi::fetch(device, &scsi::mode_sense(PAGE, SUBPAGE_READ, ROOM), ROOM)?;
    let page = scsi::mode_page(&bytes, PAGE, SUBPAGE_READ);
    page.map(parse).ok_or_else(|| "the drive returned no page of read limits".to_owned())
}

/// The limits in mode page 0Ah, subpage 07h. Descriptors that are cut off, or limit nothing, are left
/// out.
pub(crate) fn parse(page: &[u8]) -> Vec<ReadLimit> {
    let descriptors = page.get(8..).unwrap_or_default().chunks_exact(DESCRIPTOR_LEN);
    (1_u8..)
        .zip(descriptors.take(DESCRIPTORS))
        .filter_map(|(number, descriptor)| {
            let unit = unit(descriptor[0] & 0x0F)?;
            let limit = |at: usize, policy: u8| {
                let count = u64::from(u16_be(descriptor, at).filter(|&count| count > 0)?);
                Some(Limit { time: unit * count, expiry: Expiry::of(policy & 0x0F) })
            };
            let found = ReadLimit {
                number,
                inactive: limit(2, descriptor[6] >> 4),
                active: limit(4, descriptor[6]),
                guideline: limit(10, descriptor[14]),
            };
            let limits_anything =
                [found.inactive, found.active, found.guideline].iter().any(Option::is_some);
            limits_anything.then_some(found)
        })
        .collect()
}

/// What one count of a limit is; `None` where the descriptor limits nothing.
fn unit(code: u8) -> Option<Nanos> {
    match code {
        0x6 => Some(Nanos::new(500)),
        0x8 => Some(Nanos::from_micros(1)),
        0xA => Some(Nanos::from_millis(10)),
        0xE => Some(Nanos::from_millis(500)),
        _ => None,
    }
}

/// How long a read without retries may take at most, once a drive works on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pass(pub(crate) Nanos);

impl Pass {
    /// A seek over the whole disk, its settling and two revolutions at 5400 rpm: about 45 ms.
    pub(crate) const ROTATING: Self = Self(Nanos::from_millis(50));
    /// No flash drive takes longer that is not busy with itself.
    pub(crate) const SOLID: Self = Self(Nanos::from_millis(10));
}

/// The number of the limit that fits an effort best; `None` where none does, and for full effort.
///
/// A limit counts if it ends the command, and if a read without retries fits into it.
pub(crate) fn choose(limits: &[ReadLimit], pass: Pass, effort: Effort) -> Option<u8> {
    let usable = limits.iter().filter_map(|limit| {
        let Limit { time, expiry } = limit.active?;
        (expiry.ends() && time >= pass.0).then_some((time, limit.number))
    });
    let mut usable: Vec<(Nanos, u8)> = usable.collect();
    usable.sort_unstable();
    let shortest = usable.first().map(|(_, number)| *number);
    match effort {
        Effort::Full | Effort::Medium => None,
        Effort::Fast => shortest,
        // The longest that keeps the promise; where none does, the one that breaks it least.
        Effort::Limited(most) => {
            let most = Nanos::new(most.get().saturating_add(pass.0.get()));
            let within = usable.iter().rev().find(|(time, _)| *time <= most);
            within.map(|(_, number)| *number).or(shortest)
        }
    }
}

/// A request's I/O priority with the hint to use limit `number`: best effort, level 4, as it is
/// without.
pub(crate) fn priority(number: u8) -> u16 {
    const CLASS_BEST_EFFORT: u16 = 2;
    const LEVEL: u16 = 4;
    assert!((1..=DESCRIPTORS as u8).contains(&number));
    (CLASS_BEST_EFFORT << 13) | (u16::from(number) << 3) | LEVEL
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::devices::fake::FakeDevice;

    /// A page with these descriptors: unit, inactive, active, their policies, guideline, its policy.
    pub(crate) fn page(descriptors: &[(u8, u16, u16, u8, u16, u8)]) -> Vec<u8> {
        let mut page = vec![0x4A, 0x07, 0, 228, 0, 0, 0, 0];
        for (unit, inactive, active, policies, guideline, policy) in descriptors {
            let mut descriptor = [0; DESCRIPTOR_LEN];
            descriptor[0] = *unit;
            descriptor[2..4].copy_from_slice(&inactive.to_be_bytes());
            descriptor[4..6].copy_from_slice(&active.to_be_bytes());
            descriptor[6] = *policies;
            descriptor[10..12].copy_from_slice(&guideline.to_be_bytes());
            descriptor[14] = *policy;
            page.extend(descriptor);
        }
        page.resize(232, 0);
        page
    }

    fn limit(millis: u64, expiry: Expiry) -> Option<Limit> {
        Some(Limit { time: Nanos::from_millis(millis), expiry })
    }

    fn active(number: u8, millis: u64, expiry: Expiry) -> ReadLimit {
        ReadLimit { number, inactive: None, active: limit(millis, expiry), guideline: None }
    }

    #[test]
    fn every_field_of_a_descriptor_is_read() {
        let bytes =
            page(&[(0x0A, 30, 5, 0xFD, 100, 0x1), (0, 9, 9, 0xFF, 9, 9), (0xE, 0, 2, 0x0E, 0, 0)]);
        let expected = [
            ReadLimit {
                number: 1,
                inactive: limit(300, Expiry::Aborts),
                active: limit(50, Expiry::Unavailable),
                guideline: limit(1000, Expiry::GoesOn),
            },
            active(3, 1000, Expiry::Aborts),
        ];
        assert_eq!(parse(&bytes), expected);
        // Cut off inside the third.
        assert_eq!(parse(&bytes[..8 + 2 * 32 + 31]), expected[..1]);
        assert_eq!(parse(&page(&[(0x6, 2, 0, 0x70, 0, 0)]))[0].inactive.unwrap().time.get(), 1_000);
        assert_eq!(parse(&page(&[(0x8, 2, 0, 0x70, 0, 0)]))[0].inactive.unwrap().time.get(), 2_000);
    }

    #[test]
    fn page_is_asked_for_and_found_behind_its_header() {
        let mut bytes = vec![0, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend(page(&[(0x0A, 0, 10, 0x0D, 0, 0)]));
        let device = FakeDevice::default().page(&[0x5A, 8, 0x0A, 7], &bytes);
        assert_eq!(ask(&device).unwrap(), [active(1, 100, Expiry::Unavailable)]);
        let wrong = FakeDevice::default().page(&[0x5A], &[0; 8]);
        assert_eq!(ask(&wrong).unwrap_err(), "the drive returned no page of read limits");
    }

    #[test]
    fn limit_is_chosen_by_the_effort() {
        let (aborts, goes_on) = (Expiry::Aborts, Expiry::GoesOn);
        let limits = [
            active(1, 20, aborts), // a healthy read may take longer
            active(2, 500, aborts),
            active(3, 60, goes_on), // ends nothing
            active(4, 100, Expiry::Unavailable),
            ReadLimit {
                number: 5,
                inactive: limit(70, aborts),
                active: None,
                guideline: limit(70, aborts),
            },
            active(6, 2000, aborts),
        ];
        let check = |effort, expected| {
            assert_eq!(choose(&limits, Pass::ROTATING, effort), expected, "{effort:?}");
        };
        let limited = |millis| Effort::Limited(Nanos::from_millis(millis));
        check(Effort::Full, None);
        check(Effort::Fast, Some(4));
        check(limited(1), Some(4)); // none is as short: the shortest there is
        check(limited(450), Some(2)); // retries of 450 ms after a pass of 50
        check(limited(449), Some(4));
        check(limited(60_000), Some(6));
        assert_eq!(choose(&limits, Pass::SOLID, Effort::Fast), Some(1));
        assert_eq!(choose(&limits[..1], Pass::ROTATING, Effort::Fast), None);
        assert_eq!(choose(&[], Pass::SOLID, Effort::Fast), None);
    }

    /// `IOPRIO_PRIO_VALUE_HINT(IOPRIO_CLASS_BE, 4, IOPRIO_HINT_DEV_DURATION_LIMIT_n)`.
    #[test]
    fn priority_carries_the_number_as_a_hint() {
        assert_eq!(priority(1), 0x400C);
        assert_eq!(priority(7), 0x403C);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let limits = parse(&bytes);
            prop_assert!(limits.iter().all(|limit| (1..=7).contains(&limit.number)));
            for effort in [Effort::Full, Effort::Fast, Effort::Limited(Nanos::new(u64::MAX))] {
                choose(&limits, Pass::SOLID, effort);
            }
            scsi::mode_page(&bytes, PAGE, SUBPAGE_READ);
        }
    }
}
