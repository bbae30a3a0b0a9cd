//! What an array has recorded of each of its drives.
//!
//! ```text
//!              did not come                a drive in its place is filled
//!   Present ----------------> Missing ------------------------------------> Filling --> Present
//!      |                                                                       ^
//!      +----------------> Lost ------------------------------------------------+
//!        failed, silent, by hand                                     Spare ----+
//! ```
//!
//! Only a drive that is [`Membership::Present`] holds what the array wrote to it last.

use levelhead_units::{DriveIdx, DriveSet};

use super::uuid::Uuid;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    /// It holds what the array wrote to it.
    Present,
    /// It was not there when the array was opened for writing.
    Missing {
        /// The generation that the array had then.
        since: u64,
    },
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

/// A place in an array: what is in it, and how the array stands with that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The identity of the drive that the array means.
    pub uuid: Uuid,
    /// How the array stands with it.
    pub membership: Membership,
}

/// Bytes of a membership on a superblock.
pub(super) const MEMBERSHIP_BYTES: usize = 16;

impl Membership {
    /// A code, a reason, six zeroes, and a number of eight bytes.
    pub(super) fn encode(self) -> [u8; MEMBERSHIP_BYTES] {
        let (code, why, number) = match self {
            Self::Present => (0, 0, 0),
            Self::Missing { since } => (1, 0, since),
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
            1 => Self::Missing { since: number },
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
    let away =
        members.iter().enumerate().filter(|(_, member)| member.membership != Membership::Present);
    away.map(|(at, _)| DriveIdx::from_usize(at)).collect()
}

/// Those of them that are not being filled either.
pub(crate) fn done_without(members: &[Member]) -> DriveSet {
    let is_filling = |drive: &DriveIdx| {
        matches!(members[drive.as_usize()].membership, Membership::Filling { .. })
    };
    not_present(members).iter().filter(|drive| !is_filling(drive)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_membership_is_read_back_and_nothing_else_is_one() {
        let all = [
            Membership::Present,
            Membership::Missing { since: 7 },
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
