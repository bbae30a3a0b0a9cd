//! What an array records of each of its drives.
//!
//! ```text
//!              did not come                a drive in its place is filled
//!   Present ----------------> Missing ------------------------------------> Filling --> Present
//!      |                                                                       ^
//!      +----------------> Lost ------------------------------------------------+
//!        failed, silent, by hand                                     Spare ----+
//! ```
//!
//! Only a drive that is [`Membership::Present`] holds what the array wrote to it last. One that is not may be given what it
//! lacks if that is known: then it is back under a new seating, so that nothing from before counts.

use std::fmt;

use levelhead_units::{DriveIdx, DriveSet};

use super::regions::Regions;
use super::uuid::Uuid;

/// Who sits in a place of an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId {
    /// Which drive: random bytes, in its superblock.
    pub uuid: Uuid,
    /// How often it has come back to its place. What it holds from an earlier seating proves nothing.
    pub seating: u32,
}

impl MemberId {
    /// A drive that has not been away.
    pub const fn new(uuid: Uuid) -> Self {
        Self { uuid, seating: 0 }
    }

    /// The same drive, back in its place.
    pub(crate) const fn again(self) -> Self {
        Self { seating: self.seating.wrapping_add(1), ..self }
    }
}

/// Which state of the metadata: the highest one is right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u64);

impl Generation {
    /// Before the first one.
    pub const NONE: Self = Self(0);

    /// The one that is `count` further.
    #[must_use]
    pub const fn plus(self, count: u64) -> Self {
        Self(self.0.saturating_add(count))
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How an array stands with the drive of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    /// It holds what the array wrote to it.
    Present,
    /// It was not there when the array was opened for writing.
    Missing,
    /// It is being given what it should hold.
    Filling {
        /// Stripes below this number are done.
        to: u64,
    },
    /// The array does without it.
    Lost {
        /// Why.
        why: Why,
    },
    /// It holds nothing and waits for a place.
    Spare,
}

/// Why an array does without a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It did not store what it was given, or does not answer any more.
    Failed,
    /// It ended no command for longer than the array's patience.
    Silent,
    /// An operator wanted it.
    ByHand,
}

/// A place in an array: who sits there, and how the array stands with that drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The drive that the array means.
    pub id: MemberId,
    /// How the array stands with it.
    pub membership: Membership,
    /// The newest generation that it is known to have stored: less than that is a copy from before.
    pub stored: Generation,
    /// The newest generation that it may have.
    pub given: Generation,
    /// The regions in which it may hold something else than the array says; nothing where that is not known, or all of it is
    /// there up to what [`Membership::Filling`] says.
    pub lacks: Option<Regions>,
}

impl Member {
    /// A drive that has stored nothing yet.
    pub const fn new(uuid: Uuid, membership: Membership) -> Self {
        let (stored, given) = (Generation::NONE, Generation::NONE);
        Self { id: MemberId::new(uuid), membership, stored, given, lacks: None }
    }

    /// Whether it holds what the array wrote to it last.
    pub fn is_present(&self) -> bool {
        self.membership == Membership::Present
    }

    /// Whether it is given what it should hold.
    pub fn is_filling(&self) -> bool {
        matches!(self.membership, Membership::Filling { .. })
    }
}

/// Bytes of a membership in the metadata.
pub(super) const MEMBERSHIP_BYTES: usize = 16;

impl Membership {
    /// A code, a reason, six zeroes, and a number of eight bytes.
    pub(super) fn encode(self) -> [u8; MEMBERSHIP_BYTES] {
        let (code, why, number) = match self {
            Self::Present => (0, 0, 0),
            Self::Missing => (1, 0, 0),
            Self::Filling { to } => (2, 0, to),
            Self::Lost { why } => (3, why as u8, 0),
            Self::Spare => (4, 0, 0),
        };
        let mut bytes = [0; MEMBERSHIP_BYTES];
        (bytes[0], bytes[1]) = (code, why);
        bytes[8..].copy_from_slice(&u64::to_le_bytes(number));
        bytes
    }

    /// The membership that these bytes say, if they say one.
    pub(super) fn decode(bytes: [u8; MEMBERSHIP_BYTES]) -> Option<Self> {
        let number = u64::from_le_bytes(bytes[8..].try_into().expect("eight bytes"));
        let why = [Why::Failed, Why::Silent, Why::ByHand].into_iter();
        let decoded = match bytes[0] {
            0 => Self::Present,
            1 => Self::Missing,
            2 => Self::Filling { to: number },
            3 => Self::Lost { why: why.into_iter().find(|&why| why as u8 == bytes[1])? },
            4 => Self::Spare,
            _ => return None,
        };
        // Every byte that the membership does not use is zero.
        (decoded.encode() == bytes).then_some(decoded)
    }
}

/// The drives of `members` that do not hold what the array wrote last.
pub fn not_present(members: &[Member]) -> DriveSet {
    let away = members.iter().enumerate().filter(|(_, member)| !member.is_present());
    away.map(|(at, _)| DriveIdx::from_usize(at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_membership_is_read_back_and_nothing_else_is_one() {
        let all = [
            Membership::Present,
            Membership::Missing,
            Membership::Filling { to: 1 << 40 },
            Membership::Lost { why: Why::Failed },
            Membership::Lost { why: Why::Silent },
            Membership::Lost { why: Why::ByHand },
            Membership::Spare,
        ];
        for membership in all {
            let bytes = membership.encode();
            assert_eq!(Membership::decode(bytes), Some(membership));
            for at in 2..8 {
                let mut wrong = bytes;
                wrong[at] = 1;
                assert_eq!(Membership::decode(wrong), None, "{membership:?}: byte {at}");
            }
        }
        assert_eq!(Membership::decode([5; MEMBERSHIP_BYTES]), None);
        let mut present = Membership::Present.encode();
        present[15] = 1;
        assert_eq!(Membership::decode(present), None, "a number that means nothing");
    }
}
