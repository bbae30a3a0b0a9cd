//! The state of an array: its drives, its log, what its server knows, and what clients were promised.

use std::ops::{Index, IndexMut};

use crate::sets::{Drives, Entries, EntryNo, PerDrive, PerStripe, SmallSet, Stripes};
use crate::spec::{Bound, Codeword, Model, Slot, StripeNo, Version};

/// Identity of a member. Each drive that joins the array, and each that returns, gets a new one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct MemberId(pub(crate) u8);

/// The membership: all that the array knows of its drives. Its epoch is the number of the entry that brought it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Membership {
    /// Slots without a drive that counts.
    pub(crate) failed: Drives,
    /// Drives that have missed writes of the stripe and are not rebuilt there (the dirty regions).
    pub(crate) stale: PerStripe<Drives>,
    /// The member in each slot.
    pub(crate) member: PerDrive<MemberId>,
    /// The entry that reported the stripe as rebuilt. Earlier ones are void for that drive and stripe.
    pub(crate) rebuilt: PerDrive<PerStripe<EntryNo>>,
}

impl Membership {
    /// Drives that store the stripe as it is.
    pub(crate) fn in_sync_at(&self, stripe: StripeNo) -> impl Fn(Slot) -> bool {
        let not = self.failed.or(self.stale[stripe]);
        move |slot| !not.contains(slot)
    }
}

/// What an entry of the log is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Kind {
    /// A write whose contents are in the records.
    Journaled,
    /// A write of a whole codeword whose records have checksums alone.
    Intent,
    /// A change of the membership.
    Membership,
    /// The decision of a recovery: a membership, and the contents of the stripes that it reaches.
    Recovery,
}

impl Kind {
    /// Whether it brings a membership.
    pub(crate) fn is_epoch(self) -> bool {
        matches!(self, Self::Membership | Self::Recovery)
    }
}

/// An entry of the log.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    /// Stripes that it reaches.
    pub(crate) stripes: Stripes,
    /// Drives whose symbols it changes, failed ones too.
    pub(crate) reaches: Drives,
    /// Drives whose records the commit waits for.
    pub(crate) participants: Drives,
    /// Drives whose rings get a record.
    pub(crate) records: Drives,
    /// The participant, at most one, whose record is handed off to other rings.
    pub(crate) handed_off: Drives,
    /// The codewords that it leaves behind.
    pub(crate) contents: PerStripe<Codeword>,
    /// The entry of the membership that it was made under; its own number if it brings one.
    pub(crate) epoch: EntryNo,
    /// The membership that it brings.
    pub(crate) membership: Membership,
    /// All entries up to this one are retired, as its records say.
    pub(crate) retired: EntryNo,
}

impl Entry {
    /// Whether it reaches the stripe; a change of the membership reaches none.
    pub(crate) fn reaches_stripe(&self, stripe: StripeNo) -> bool {
        self.kind != Kind::Membership && self.stripes.contains(stripe)
    }
}

/// A drive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Drive {
    /// Whether it is plugged in and works.
    pub(crate) is_present: bool,
    /// The member that its label names.
    pub(crate) member: MemberId,
    /// Durable contents of its home locations.
    pub(crate) home: PerStripe<Codeword>,
    /// What its volatile cache has above them. A crash loses it.
    pub(crate) cache: PerStripe<Option<Codeword>>,
    /// Entries whose own record is durable on its ring.
    pub(crate) records: Entries,
    /// Entries of which its ring has a record that was handed off.
    pub(crate) handoffs: Entries,
    /// Space of records up to this entry is used again.
    pub(crate) reused: EntryNo,
    /// The highest retired mark in a record on its ring.
    pub(crate) retired: EntryNo,
    /// The newest membership on its ring, by its entry.
    pub(crate) epoch: EntryNo,
}

impl Drive {
    /// Contents of a home location as a read returns them.
    pub(crate) fn reads(&self, stripe: StripeNo) -> Codeword {
        self.cache[stripe].unwrap_or(self.home[stripe])
    }

    /// Whether a recovery finds its own record of the entry.
    pub(crate) fn shows_record(&self, entry: EntryNo) -> bool {
        self.is_present && entry > self.reused && self.records.contains(entry)
    }

    /// Whether a recovery finds a record of the entry that was handed off to it.
    pub(crate) fn shows_handoff(&self, entry: EntryNo) -> bool {
        self.is_present && entry > self.reused && self.handoffs.contains(entry)
    }
}

/// Whether the drives in the slots are present, and the members that the membership names.
pub(crate) fn members(drives: &PerDrive<Drive>, membership: &Membership, slots: Drives) -> Drives {
    let is_member = |slot| {
        let drive: &Drive = &drives[slot];
        drive.is_present && drive.member == membership.member[slot]
    };
    slots.without_all(membership.failed).filter(is_member)
}

/// What clients were promised of one cell.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Promise {
    /// The newest contents that were acknowledged, or served after a recovery.
    pub(crate) acknowledged: Version,
    /// Versions, by bit, that clients have seen are not there. They must not come back.
    pub(crate) withdrawn: u16,
    /// Whether the cell was reported as a bad sector.
    pub(crate) is_bad: bool,
}

impl Promise {
    /// The cell has these contents for a client now.
    pub(crate) fn acknowledge(&mut self, version: Version) {
        self.acknowledged = version;
        self.is_bad = false;
    }
}

/// The log, as the server that runs or the recovery before it has appended it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Log(Vec<Entry>);

impl Log {
    /// The number of the next entry.
    pub(crate) fn end(&self) -> EntryNo {
        u8::try_from(self.0.len()).expect("a log of the model has at most 32 entries")
    }

    pub(crate) fn push(&mut self, entry: Entry) {
        assert!(self.0.len() < Entries::LIMIT, "the bound allows more than 32 entries");
        self.0.push(entry);
    }

    pub(crate) fn truncate(&mut self, end: EntryNo) {
        self.0.truncate(usize::from(end));
    }

    /// The newest membership entry before `end`.
    pub(crate) fn epoch_before(&self, end: EntryNo) -> EntryNo {
        (0..end).rev().find(|&entry| self[entry].kind.is_epoch()).unwrap_or(0)
    }
}

impl Index<EntryNo> for Log {
    type Output = Entry;

    fn index(&self, entry: EntryNo) -> &Entry {
        &self.0[usize::from(entry)]
    }
}

impl IndexMut<EntryNo> for Log {
    fn index_mut(&mut self, entry: EntryNo) -> &mut Entry {
        &mut self.0[usize::from(entry)]
    }
}

/// The state of an array.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct State {
    pub(crate) drives: PerDrive<Drive>,
    /// A replaced drive with its slot: it may be plugged in again.
    pub(crate) old_drive: Option<(Slot, Drive)>,
    pub(crate) log: Log,
    /// The membership in memory. Its entry may not be committed, and what writes miss may not be in an entry.
    pub(crate) membership: Membership,
    /// Contents of the stripes after the last entry, committed or not.
    pub(crate) contents: PerStripe<Codeword>,
    /// Entries that are committed in memory.
    pub(crate) committed: Entries,
    /// The newest membership that is committed, by its entry.
    pub(crate) epoch_committed: EntryNo,
    /// All entries up to this one are retired.
    pub(crate) retired: EntryNo,
    /// Entry of the last recovery. What was found before it is as it has decided.
    pub(crate) recovery: EntryNo,
    pub(crate) promises: PerStripe<[Promise; 2]>,
    /// Drives that were given a copy of the stripe that is not reported as rebuilt yet.
    pub(crate) copied: PerStripe<Drives>,
    /// How much of the bound was used.
    pub(crate) used: Bound,
}

impl State {
    /// An array that was just created: all is 0, and every ring has the entry of the first recovery.
    pub(crate) fn new(model: &Model) -> Self {
        let drive = Drive {
            is_present: true,
            member: MemberId(0),
            home: PerStripe::default(),
            cache: PerStripe::default(),
            records: Entries::only(0),
            handoffs: Entries::EMPTY,
            reused: 0,
            retired: 0,
            epoch: 0,
        };
        let entry = Entry {
            kind: Kind::Recovery,
            stripes: Stripes::EMPTY,
            reaches: Drives::EMPTY,
            participants: Drives::EMPTY,
            records: model.layout.all(),
            handed_off: Drives::EMPTY,
            contents: PerStripe::default(),
            epoch: 0,
            membership: Membership::default(),
            retired: 0,
        };
        Self {
            drives: PerDrive::all(drive),
            old_drive: None,
            log: Log(vec![entry]),
            membership: Membership::default(),
            contents: PerStripe::default(),
            committed: Entries::only(0),
            epoch_committed: 0,
            retired: 0,
            recovery: 0,
            promises: PerStripe::default(),
            copied: PerStripe::default(),
            used: Bound::default(),
        }
    }

    /// The newest version of any cell.
    pub(crate) fn version_last(&self) -> Version {
        Version(self.used.writes + self.used.intents)
    }

    /// Entries after the last recovery's.
    pub(crate) fn entries_since_recovery(&self) -> std::ops::Range<EntryNo> {
        self.recovery + 1..self.log.end()
    }

    /// The last entry that reaches the stripe; before the first one, the recovery's.
    pub(crate) fn last_entry(&self, stripe: StripeNo) -> EntryNo {
        let mut entries = self.entries_since_recovery().rev();
        entries.find(|&entry| self.log[entry].reaches_stripe(stripe)).unwrap_or(self.recovery)
    }

    /// The last committed one of them.
    pub(crate) fn last_committed(&self, stripe: StripeNo) -> EntryNo {
        let mut entries = self.entries_since_recovery().rev();
        let is_it =
            |entry| self.committed.contains(entry) && self.log[entry].reaches_stripe(stripe);
        entries.find(|&entry| is_it(entry)).unwrap_or(self.recovery)
    }

    /// Whether the stripe's last entry is an intent that is not retired.
    pub(crate) fn has_open_intent(&self, stripe: StripeNo) -> bool {
        let last = self.last_entry(stripe);
        self.log[last].kind == Kind::Intent && self.retired < last
    }

    /// Drives on whose rings the entry's own record is durable.
    pub(crate) fn rings_with(&self, model: &Model, entry: EntryNo) -> Drives {
        model.layout.all().filter(|slot| self.drives[slot].records.contains(entry))
    }

    /// The data cells of a stripe that the entry changes.
    pub(crate) fn data_cells(model: &Model, entry: &Entry) -> SmallSet {
        match model.layout.is_mirror() {
            true => SmallSet::only(0),
            false => entry.reaches.and(SmallSet::first(2)),
        }
    }
}
