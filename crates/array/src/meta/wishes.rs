//! What operators have said of the array's own work, which holds after a restart: how rebuilds go, and a scrub that is
//! under way, with how far it is.
//!
//! It is part of the metadata; `docs/formats/metadata.md` has the bytes. It is lost without harm: a scrub
//! goes on from an earlier mark then.

use levelhead_units::Bytes;

use crate::progress::ScrubFound;

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// How rebuilds go.
    pub rebuild: RebuildWish,
    /// The scrub that has not seen everything yet, if one was begun.
    pub scrub: Option<ScrubMark>,
}

/// What an operator has said of rebuilds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RebuildWish {
    /// Bytes of the filled drive a second that are kept whatever clients ask.
    pub rate_min: Option<Bytes>,
    /// Whether nothing is copied for now.
    pub is_paused: bool,
}

/// A scrub that has not seen everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScrubMark {
    /// Whether it goes on at the next start.
    pub goes_on: GoesOn,
    /// Stripes below this one were looked at, and what was found there was mended or told.
    pub to: u64,
    /// What it has found.
    pub found: ScrubFound,
}

/// Whether a scrub goes on by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoesOn {
    /// It does.
    Yes,
    /// An operator has stopped it, and may have it go on.
    WhenTold,
}

/// Bytes of wishes on a superblock.
pub(super) const WISHES_BYTES: usize = 56;

/// Why these bytes say nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoWish {
    /// The field that has a value which means nothing.
    pub(super) name: &'static str,
    pub(super) value: u64,
}

impl Wishes {
    /// Two codes, six zeroes, and six numbers of eight bytes.
    pub(super) fn encode(self) -> [u8; WISHES_BYTES] {
        let Self { rebuild: RebuildWish { rate_min, is_paused }, scrub } = self;
        let (code, to, found) = match scrub {
            None => (0, 0, ScrubFound::default()),
            Some(ScrubMark { goes_on: GoesOn::Yes, to, found }) => (1, to, found),
            Some(ScrubMark { goes_on: GoesOn::WhenTold, to, found }) => (2, to, found),
        };
        let ScrubFound { unreadable, wrong, unrepaired, unlocated } = found;
        let rate_min = rate_min.map_or(0, Bytes::get);
        let mut bytes = [0; WISHES_BYTES];
        (bytes[0], bytes[1]) = (code, u8::from(is_paused));
        let numbers = [to, unreadable, wrong, unrepaired, unlocated, rate_min];
        for (place, number) in bytes[8..].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// What these bytes say of an array of so many stripes.
    pub(super) fn decode(bytes: [u8; WISHES_BYTES], stripes: u64) -> Result<Self, NoWish> {
        let mut numbers = bytes[8..]
            .chunks_exact(8)
            .map(|number| u64::from_le_bytes(number.try_into().expect("eight bytes")));
        let mut next = || numbers.next().expect("there are six");
        let to = next();
        let [unreadable, wrong, unrepaired, unlocated] = [next(), next(), next(), next()];
        let rate_min = Some(next()).filter(|&rate| rate > 0).map(Bytes::new);
        let is_paused = match bytes[1] {
            0 => false,
            1 => true,
            value => return Err(NoWish { name: "pause of rebuilds", value: value.into() }),
        };
        let found = ScrubFound { unreadable, wrong, unrepaired, unlocated };
        let scrub = match bytes[0] {
            0 => None,
            1 => Some(ScrubMark { goes_on: GoesOn::Yes, to, found }),
            2 => Some(ScrubMark { goes_on: GoesOn::WhenTold, to, found }),
            value => return Err(NoWish { name: "state of a scrub", value: value.into() }),
        };
        if to > stripes {
            return Err(NoWish { name: "number of stripes that were scrubbed", value: to });
        }
        Ok(Self { rebuild: RebuildWish { rate_min, is_paused }, scrub })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_read_back_and_what_means_nothing_is_none() {
        let found = ScrubFound { unreadable: 1, wrong: 2, unrepaired: 3, unlocated: 4 };
        let scrubs = [GoesOn::Yes, GoesOn::WhenTold]
            .map(|goes_on| [0, 700].map(|to| Some(ScrubMark { goes_on, to, found })));
        for scrub in scrubs.into_iter().flatten().chain([None]) {
            for rate_min in [None, Some(Bytes::new(5_000_000))] {
                for is_paused in [false, true] {
                    let wishes = Wishes { rebuild: RebuildWish { rate_min, is_paused }, scrub };
                    assert_eq!(Wishes::decode(wishes.encode(), 700), Ok(wishes));
                }
            }
        }
        assert_eq!(Wishes::default().encode(), [0; WISHES_BYTES]);
        let no = |at: usize, value: u8| {
            let mut bytes = [0; WISHES_BYTES];
            bytes[at] = value;
            Wishes::decode(bytes, 100).unwrap_err()
        };
        assert_eq!(no(0, 3), NoWish { name: "state of a scrub", value: 3 });
        assert_eq!(no(1, 2), NoWish { name: "pause of rebuilds", value: 2 });
        assert_eq!(no(8, 101), NoWish { name: "number of stripes that were scrubbed", value: 101 });
    }
}
