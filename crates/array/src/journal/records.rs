//! The records of a transaction: which rings get them, and which of them are durable.

use std::collections::BTreeSet;

use levelhead_units::{DriveIdx, DriveSet};

use super::ring::{Copied, Entry};

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    /// The rings that get a record: those of the participants, or of an intent any that are enough.
    holders: DriveSet,
    /// Those of them whose record is durable.
    logged: DriveSet,
    /// Copies on other rings that are not durable yet (J7).
    copies: BTreeSet<Copied>,
    /// Records with contents that are durable.
    durable: Vec<Entry>,
    /// Space on the rings of drives whose records lie on others (J8).
    spare: Vec<Entry>,
    /// Whether a record has gone to a drive.
    is_sent: bool,
}

impl Records {
    /// One for each of the participants.
    pub(super) fn of(participants: DriveSet) -> Self {
        Self {
            holders: participants,
            logged: DriveSet::EMPTY,
            copies: BTreeSet::new(),
            durable: Vec::new(),
            spare: Vec::new(),
            is_sent: false,
        }
    }

    pub(super) fn holders(&self) -> DriveSet {
        self.holders
    }

    pub(super) fn set_holders(&mut self, holders: DriveSet) {
        self.holders = holders;
    }

    /// Rings whose own record is durable.
    pub(super) fn logged(&self) -> DriveSet {
        self.logged
    }

    /// Rings whose own record is awaited.
    pub(super) fn missing(&self) -> DriveSet {
        self.holders.without(self.logged)
    }

    /// Whether all are durable but for those on these rings (J1).
    pub(super) fn are_durable_but_on(&self, rings: DriveSet) -> bool {
        let are_copied = self.copies.iter().all(|copied| rings.contains(copied.ring));
        are_copied && self.missing().without(rings).is_empty()
    }

    /// Drives whose records wait for these.
    pub(super) fn late(&self, hindering: DriveSet) -> DriveSet {
        let stuck = self.copies.iter().filter(|copied| hindering.contains(copied.ring));
        self.missing().and(hindering).or(stuck.map(|copied| copied.subject).collect())
    }

    /// A record is durable.
    pub(super) fn note_durable(&mut self, ring: DriveIdx, subject: DriveIdx) {
        if subject == ring {
            self.logged = self.logged.with(ring);
        } else {
            self.copies.remove(&Copied { ring, subject });
        }
    }

    /// A durable record has contents.
    pub(super) fn keep(&mut self, entry: Entry) {
        self.durable.push(entry);
    }

    /// The record with a drive's contents that is durable: on another ring than its own, where there is one.
    pub(super) fn durable_of(&self, subject: DriveIdx) -> Option<&Entry> {
        let durable = self.durable.iter().filter(|entry| entry.subject == subject);
        durable.min_by_key(|entry| entry.ring == subject)
    }

    /// One more copy is awaited, if that is one.
    pub(super) fn add_copy(&mut self, copied: Option<Copied>) {
        self.copies.extend(copied);
    }

    pub(super) fn awaits(&self, copied: &Copied) -> bool {
        self.copies.contains(copied)
    }

    /// The record of a drive is not awaited any more on the rings of these: those on which it was.
    pub(super) fn give_up(&mut self, subject: DriveIdx, hindering: DriveSet) -> DriveSet {
        let is_meant =
            |copied: &Copied| copied.subject == subject && hindering.contains(copied.ring);
        let copies = self.copies.extract_if(.., is_meant);
        let rings: DriveSet = copies.map(|copied| copied.ring).collect();
        let own = DriveSet::EMPTY.with(subject).and(hindering).and(self.missing());
        self.holders = self.holders.without(own);
        rings.or(own)
    }

    pub(super) fn spare(&self) -> &[Entry] {
        &self.spare
    }

    pub(super) fn take_spare(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.spare)
    }

    pub(super) fn set_spare(&mut self, spare: Vec<Entry>) {
        self.spare = spare;
    }

    /// One of them goes to a drive; returns whether it is the first.
    pub(super) fn send(&mut self) -> bool {
        !std::mem::replace(&mut self.is_sent, true)
    }
}
