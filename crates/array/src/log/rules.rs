//! The rules that keep data safe, by name, so that a test can leave one out and must notice.
//!
//! A server keeps all of them. `torture/examples/canaries.rs` leaves each out and prints after how many crash images that is
//! noticed; the test `rules_that_are_left_out_are_noticed` waits for those that take few.
//!
//! | images until it is noticed | left out |
//! |---|---|
//! | up to 100 | `Records`, `Apart`, `Hints`, `Flush`, `Order` |
//! | up to 2,500 | `Reuse`, `MissedAgain`, `Recorded`, `Complete`, `Superseded`, `FromRecord`, `FillOver` |
//! | up to 31,000 | `UnlistedAgain`, `MendPlaced`, `Conclude`, `CopyFlush`, `Loss` |
//! | up to 77,000 | `Decide`, `CopyInside` |
//! | none of 120,000 | `Mark`, `Committed`, `Latest`, `Live` |
//!
//! `FillFlush` and `FillLock` are left out by the tests of rebuilds. Where a layout survives what happens, other rules say the same as
//! these four; what they decide is what becomes of an array with one fault more:
//!
//! - `Mark` and `Committed`. Of a transaction whose places are written every record was durable once, or is of a drive whose loss is
//!   recorded. So it can be completed, and is not dropped, whether or not a ring says that it is committed. With one fault more it
//!   may be dropped although it was answered, and then nothing says so: of 1,000 seeds of the aim `beyond` 71 read what they must
//!   not, 82 without `Mark`, 109 without `Committed`.
//! - `Latest`. A record never says that its own transaction is over, so its space is not free by what it says itself. That leaves
//!   a mark that is written over the last mark of its ring, and torn there. A mark is alone in its append, so nothing was written
//!   over since the one before it: the ring is as it was then. The rule keeps what rings say from going back, so that nothing else
//!   need argue like this.
//! - `Live` is about sectors that nothing gives.

/// A rule of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// J1: a transaction is committed when all its records are durable, not before.
    Records,
    /// J2: enough rings say for good that a transaction is committed before it is written in place.
    Mark,
    /// N1: an intent and a payload never share a codeword.
    Apart,
    /// J8: what a drive that hinders is to get lies on enough other rings, not on one less.
    Hints,
    /// J4: what is in its place is safe after a flush that began later, not at once.
    Flush,
    /// J4: a lost participant counts once its loss is recorded for good, not before.
    Loss,
    /// I1: space is written over once a durable record on the same ring says that it may be, not before.
    Reuse,
    /// I2: the record that says most is never written over.
    Latest,
    /// V2, V3: what is missing of a transaction is computed where that is possible.
    Complete,
    /// V3: the last content of a sector counts, not an earlier one.
    Order,
    /// V2: a transaction whose places may be written is never dropped.
    Committed,
    /// X2: what a recovery has decided is on the rings for good before it writes in place.
    Decide,
    /// X3: a recovery ends with marks that everything is over.
    Conclude,
    /// J9, J10: what a drive lacks, and that sectors are damaged no more, is committed before the transaction is over.
    Recorded,
    /// X7: that sectors are damaged no more that a recovery brings to their places is committed before it ends.
    UnlistedAgain,
    /// X6: what a recovery does without a drive is among what that lacks.
    MissedAgain,
    /// RB2 of `array/background/rebuild.rs`: what was copied to a drive is flushed before it is recorded.
    FillFlush,
    /// RB2 there: every ring says that what was written before is over, before what was copied is recorded.
    FillOver,
    /// FI4 of `ops/fill.rs`: so it is before what nothing gives is on the list of damaged sectors.
    Live,
    /// FI1 of `ops/fill.rs`: no write changes a stripe while it is copied.
    FillLock,
    /// CO2 of `core/copied.rs`: what was inside a drive when a region of it was read is copied again.
    CopyInside,
    /// CP2 of `array/background/copying.rs`: a drive that was given a copy is flushed before it has the place.
    CopyFlush,
    /// VF2 of `verify`: what is known of a sector ends when another write of it goes out, not when that has ended.
    Superseded,
    /// VF3 there: what waits to be read back is had from memory, or is compared with its checksum.
    FromRecord,
    /// ME2 of `ops/mend.rs`: nothing is mended that waits in the journal.
    MendPlaced,
}

impl Rule {
    /// Those that are about writes that are read back.
    pub const OF_VERIFICATION: [Self; 3] = [Self::Superseded, Self::FromRecord, Self::MendPlaced];

    /// Those that a rebuild keeps.
    pub const OF_REBUILDS: [Self; 2] = [Self::FillFlush, Self::FillLock];

    /// Those that are about rebuilds beside records of what was written without the drive.
    pub const OF_FILLS: [Self; 2] = [Self::FillOver, Self::Live];

    /// Those that are about drives that are given a copy.
    pub const OF_COPIES: [Self; 2] = [Self::CopyInside, Self::CopyFlush];

    /// Those that are about drives that come back.
    pub const OF_RETURNS: [Self; 2] = [Self::Recorded, Self::MissedAgain];

    /// All others.
    pub const ALL: [Self; 14] = [
        Self::Records,
        Self::Mark,
        Self::Apart,
        Self::Hints,
        Self::Flush,
        Self::Loss,
        Self::Reuse,
        Self::Latest,
        Self::Complete,
        Self::Order,
        Self::Committed,
        Self::Decide,
        Self::Conclude,
        Self::UnlistedAgain,
    ];
}

/// Which rules are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    left_out: Option<Rule>,
}

impl Rules {
    /// All.
    pub const ALL: Self = Self { left_out: None };

    /// All but this one.
    pub const fn without(rule: Rule) -> Self {
        Self { left_out: Some(rule) }
    }

    /// Whether this one is kept.
    pub fn keep(self, rule: Rule) -> bool {
        self.left_out != Some(rule)
    }
}
