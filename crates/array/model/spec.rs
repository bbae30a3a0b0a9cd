//! What a run of the model is given: the layout, the bound, the faults, and the rule that is left out.

use levelhead_array::Spec;
use levelhead_units::DriveSet;

use crate::sets::{DRIVES_MAX, Drives, PerDrive};

/// Number of a slot, which one drive at a time is in.
pub(crate) type Slot = u8;
/// Number of a stripe.
pub(crate) type StripeNo = u8;

/// Contents of one cell of a codeword: the number of the write that wrote it, 0 before the first one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct Version(pub(crate) u8);

impl Version {
    /// Contents of a new drive: nothing that an array has written.
    pub(crate) const FOREIGN: Self = Self(77);
    /// A cell that a recovery reports as a bad sector.
    pub(crate) const BAD: Self = Self(98);
    /// Result of decoding symbols that do not belong to one codeword.
    pub(crate) const MIXED: Self = Self(99);

    /// Whether it is the contents of some write, or those before the first one.
    pub(crate) fn is_written(self) -> bool {
        self < Self::FOREIGN
    }
}

/// Both data cells of a codeword; a mirror uses the first one alone. A *symbol*, what one drive stores of a codeword, is a
/// codeword whose other cells are 0: a data drive knows its own cell, a parity drive knows both.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Codeword(pub(crate) [Version; 2]);

impl Codeword {
    /// The same contents in every cell.
    pub(crate) fn all(version: Version) -> Self {
        Self([version; 2])
    }
}

/// What the model needs to know of a layout of the product.
pub(crate) struct Layout {
    drives: u8,
    data: u8,
    redundant: u8,
    /// Whether all is readable without a set of drives, by the bits of the set.
    survives: [bool; 1 << DRIVES_MAX],
    /// By the bits of the weak drives: see [`Layout::quorum_size`].
    quorum_size: [u32; 1 << DRIVES_MAX],
}

impl Layout {
    /// The layout of `text`, as the product reads it.
    pub(crate) fn new(text: &str) -> Self {
        let spec: Spec = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert!(spec.drives() <= DRIVES_MAX, "{text}: the model has at most {DRIVES_MAX} drives");
        assert!(spec.data() <= 2, "{text}: a codeword of the model has at most 2 data cells");
        let mut layout = Self {
            drives: u8::try_from(spec.drives()).expect("at most 4"),
            data: u8::try_from(spec.data()).expect("at most 2"),
            redundant: u8::try_from(spec.redundant()).expect("fewer than drives"),
            survives: [false; 1 << DRIVES_MAX],
            quorum_size: [0; 1 << DRIVES_MAX],
        };
        for bits in 0..1_u8 << layout.drives {
            let lost = DriveSet::from_bits(u64::from(bits));
            layout.survives[usize::from(bits)] = spec.survives(lost);
        }
        for weak in layout.subsets() {
            let others = layout.all().without_all(weak);
            let quorum = layout
                .subsets()
                .filter(|&rings| rings.minus_is_empty(others) && !layout.survives(rings.or(weak)));
            let size = quorum.map(|rings| rings.len().max(1)).min();
            layout.quorum_size[weak.as_usize()] = size.unwrap_or(1);
        }
        layout
    }

    /// All sets of its drives.
    fn subsets(&self) -> impl Iterator<Item = Drives> + use<> {
        (0..1_u8 << self.drives).map(Drives::from_bits)
    }

    /// All its drives.
    pub(crate) fn all(&self) -> Drives {
        Drives::first(self.drives)
    }

    /// Number of its drives.
    pub(crate) fn drives(&self) -> u8 {
        self.drives
    }

    /// Number of drives that it may lose.
    pub(crate) fn redundant(&self) -> u8 {
        self.redundant
    }

    /// Whether its redundancy is copies of the data.
    pub(crate) fn is_mirror(&self) -> bool {
        self.data == 1
    }

    /// Number of symbols that a codeword is decoded from.
    pub(crate) fn data(&self) -> u8 {
        self.data
    }

    /// Whether all is readable without `lost`: [`Spec::survives`].
    pub(crate) fn survives(&self, lost: Drives) -> bool {
        self.survives[lost.as_usize()]
    }

    /// Fewest rings that are not lost all at once: together with the drives that are weak already they are more than the array
    /// survives. At least one.
    pub(crate) fn quorum_size(&self, weak: Drives) -> u32 {
        self.quorum_size[weak.as_usize()]
    }

    /// What the drive in `slot` stores of a codeword.
    pub(crate) fn symbol(&self, slot: Slot, codeword: Codeword) -> Codeword {
        let Codeword([first, second]) = codeword;
        match (self.is_mirror(), slot) {
            (true, _) | (false, 0) => Codeword([first, Version(0)]),
            (false, 1) => Codeword([Version(0), second]),
            (false, _) => codeword,
        }
    }

    /// Drives that a write of one data cell changes: a data drive and all parity, or every copy.
    pub(crate) fn reached_by(&self, cell: u8) -> Drives {
        match self.is_mirror() {
            true => self.all(),
            false => self.all().without_all(Drives::first(2)).with(cell),
        }
    }

    /// The codeword of these symbols, `None` for one that is erased; or `None` where they are too few. Symbols of different
    /// codewords give [`Version::MIXED`], which no check of the model lets pass.
    pub(crate) fn decode(&self, symbols: &PerDrive<Option<Codeword>>) -> Option<Codeword> {
        let mut known = (0..self.drives).filter_map(|slot| symbols[slot]);
        if self.is_mirror() {
            return known.next();
        }
        if known.count() < usize::from(self.data) {
            return None;
        }
        let mut parity =
            (2..self.drives).filter_map(|slot| symbols[slot].map(|Codeword(both)| both));
        let first = symbols[0].map(|Codeword([cell, _])| cell);
        let second = symbols[1].map(|Codeword([_, cell])| cell);
        let cells = match (first, second) {
            (Some(first), Some(second)) => [first, second],
            (Some(first), None) => {
                let [beside, cell] = parity.next()?;
                [first, if beside == first { cell } else { Version::MIXED }]
            }
            (None, Some(second)) => {
                let [cell, beside] = parity.next()?;
                [if beside == second { cell } else { Version::MIXED }, second]
            }
            (None, None) => {
                let one = parity.next()?;
                if parity.next() == Some(one) { one } else { [Version::MIXED; 2] }
            }
        };
        Some(Codeword(cells))
    }
}

/// How often each thing happens at most in a run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Bound {
    /// Journaled writes of one data cell.
    pub(crate) writes: u8,
    /// Intent-logged writes of a whole codeword.
    pub(crate) intents: u8,
    /// Drives that fail, while the array runs or with a crash.
    pub(crate) failures: u8,
    /// Crashes, each followed by a recovery.
    pub(crate) crashes: u8,
    /// Records that are handed off to other rings because their own drive lags.
    pub(crate) handoffs: u8,
}

/// A part of the model that a run may leave out, so that it goes further in the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// Ring space is used again.
    RingReuse,
    /// A failed drive returns with its old contents (re-add, delta resync).
    ReAdd,
    /// A failed drive is replaced by a new one.
    Replacement,
    /// A replaced drive is plugged in again at a crash, in place of its successor.
    OldDrive,
    /// A failed drive is present again after a crash.
    PresentAgain,
    /// Drives fail while the array runs; else only with a crash.
    OnlineFailure,
}

impl Part {
    /// All parts, by the names that the environment of a long run uses.
    pub(crate) const NAMES: [(&str, Self); 6] = [
        ("ring-reuse", Self::RingReuse),
        ("re-add", Self::ReAdd),
        ("replacement", Self::Replacement),
        ("old-drive", Self::OldDrive),
        ("present-again", Self::PresentAgain),
        ("online-failure", Self::OnlineFailure),
    ];
}

/// A rule of the specification. A run that leaves one out is a *canary*: the search has to find a violation. `S1` to `S12` are
/// explained at the head of `main.rs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    /// S1: a write waits for the record of every participant.
    EveryRecord,
    /// S1: a record that is handed off counts once a quorum of other rings has it.
    HandoffQuorum,
    /// S2: a failure counts against participants only once its entry is committed.
    FailureCommitted,
    /// S2: a membership is committed by a quorum of rings, not by one ring fewer.
    MembershipQuorum,
    /// S2: only failures are appended while an earlier change is not committed.
    ChangesInTurn,
    /// S2: rings of drives that are being rebuilt do not count for a quorum.
    RebuildingNotInQuorum,
    /// S3: a write is answered only when its epoch is committed.
    EpochCommitted,
    /// S3: a recovery counts an entry only if it found the entry's epoch.
    EpochFound,
    /// S4: a stripe has one entry at a time that is not committed.
    StripeLock,
    /// S4: an intent and a payload that are not retired never share a stripe.
    IntentAlone,
    /// S4: an intent lies on a quorum of rings before home locations are written.
    IntentQuorum,
    /// S5: home locations are written after the commit.
    WriteBackAfterCommit,
    /// S6: an entry retires when its home locations are durable.
    RetireAfterFlush,
    /// S6: an entry that a drive has missed retires only when a membership that says so is committed.
    RetireAfterMissedCommitted,
    /// S6, S7: a failure's entry names the stripes of all entries that are not retired and reach the drive; they do not retire
    /// without.
    FailureNamesUnretired,
    /// S7: a write names the failed drives that it would have reached.
    WriteNamesMissed,
    /// S7: a recovery adds what entries behind the newest membership name.
    RecoveryNamesMissed,
    /// S8: a stripe counts as rebuilt when its copy is flushed.
    RebuiltAfterFlush,
    /// S8: a stripe that is written after the copy is copied again.
    RebuiltAfterWrites,
    /// S8: a rebuilt stripe voids earlier entries for that drive.
    RebuiltVoidsEarlier,
    /// S9: of several memberships the newest one holds.
    NewestMembership,
    /// S9: a drive is a member by its identity, not by its slot.
    MemberById,
    /// S9: a drive that returns gets a new identity.
    MemberRenewed,
    /// S10: ring space is free below the retired mark of a durable record on the same ring.
    ReuseAfterRetiredDurable,
    /// S11: the entry of a recovery is committed before anything is written back or served.
    RecoveryCommitted,
    /// S11: the entry of a recovery retires nothing.
    RecoveryRetiresNothing,
    /// S12: the entry of a recovery reaches every stripe of which it saw an entry.
    RecoverySupersedes,
    /// Recovery, step 3: each cell has its last contents.
    LastContents,
    /// Recovery, step 3: the last entry of a stripe may be left out, where too few of its records are there.
    LastMayBeLeftOut,
    /// Recovery, step 3: no new symbol at home does not prove that an intent-logged write has not begun.
    IntentUndecided,
}

/// A run: what is searched.
pub(crate) struct Model {
    pub(crate) layout: Layout,
    /// Number of stripes.
    pub(crate) stripes: u8,
    pub(crate) bound: Bound,
    /// Parts that are left out.
    pub(crate) without: Vec<Part>,
    /// The rule that is left out.
    pub(crate) left_out: Option<Rule>,
    /// Whether a crash may make a record unreadable, in place of a failure.
    pub(crate) has_unreadable_records: bool,
}

impl Model {
    /// Whether the run obeys the rule.
    pub(crate) fn obeys(&self, rule: Rule) -> bool {
        self.left_out != Some(rule)
    }

    /// Whether the run has the part.
    pub(crate) fn has(&self, part: Part) -> bool {
        !self.without.contains(&part)
    }

    /// Numbers of the stripes.
    pub(crate) fn stripe_nos(&self) -> std::ops::Range<StripeNo> {
        0..self.stripes
    }
}
