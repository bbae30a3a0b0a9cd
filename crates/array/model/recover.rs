//! Recovery: what a server decides after a crash from what it finds on the drives, and nothing else.

use crate::sets::{Drives, Entries, EntryNo, PerDrive, PerStripe, Stripes};
use crate::spec::{Codeword, Model, Rule, Slot, StripeNo, Version};
use crate::state::{Drive, Entry, Kind, Log, Membership, State, members};

/// What a recovery finds. `log` holds the contents of the records; which of them are there the drives say.
struct Found<'a> {
    drives: &'a PerDrive<Drive>,
    log: &'a Log,
    /// Drives whose rings count: they are members of the newest membership.
    members: Drives,
}

impl Found<'_> {
    /// Whether any ring that counts has a record of the entry.
    fn has(&self, entry: EntryNo) -> bool {
        let shows = |drive: &Drive| drive.shows_record(entry) || drive.shows_handoff(entry);
        self.members.iter().any(|slot| shows(&self.drives[slot]))
    }

    /// Whether the symbol that the entry has for this drive is on a ring that counts.
    fn has_symbol(&self, entry: EntryNo, slot: Slot) -> bool {
        let Entry { participants, handed_off, .. } = self.log[entry];
        let mut others = self.members.without(slot).iter();
        let own = self.members.contains(slot) && self.drives[slot].shows_record(entry);
        own && participants.contains(slot)
            || handed_off.contains(slot)
                && others.any(|other| self.drives[other].shows_handoff(entry))
    }
}

/// What a recovery decides.
struct Decision {
    membership: Membership,
    contents: PerStripe<Codeword>,
    /// Stripes that its entry reaches.
    reaches: Stripes,
    /// The number of its entry: after every entry that it found, and after its membership's.
    entry: EntryNo,
}

/// Too few symbols of a stripe are there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unreadable(pub(crate) StripeNo);

impl Model {
    /// Steps 1 to 5 of the recovery.
    fn decide(&self, drives: &PerDrive<Drive>, log: &Log) -> Result<Decision, Unreadable> {
        // Step 1: the newest membership on any ring, and the rings that count under it (S9).
        let present = self.layout.all().filter(|slot| drives[slot].is_present);
        let epochs = present.iter().map(|slot| drives[slot].epoch);
        let newest = self.obeys(Rule::NewestMembership);
        let epoch = if newest { epochs.max() } else { epochs.min() }.unwrap_or(0);
        let found_membership = &log[epoch].membership;
        let members = members(drives, found_membership, self.layout.all());
        let found = Found { drives, log, members };
        let missing = self.layout.all().without_all(members);

        // Step 2: the entries that are not retired.
        let retired = members.iter().map(|slot| drives[slot].retired).max().unwrap_or(0);
        let lasts = members.iter().map(|slot| {
            let Drive { records, handoffs, .. } = drives[slot];
            records.or(handoffs).last()
        });
        let last = lasts.max().unwrap_or(0);
        let seen = (retired + 1..=last)
            .filter(|&entry| log[entry].kind != Kind::Membership && found.has(entry));
        let seen: Vec<EntryNo> = seen.collect();

        let mut membership = *found_membership;
        membership.failed = membership.failed.or(missing);
        let mut contents = PerStripe::default();
        let mut reaches = Stripes::EMPTY;
        for stripe in self.stripe_nos() {
            let on_stripe = |entry: &&EntryNo| log[**entry].stripes.contains(stripe);
            // An entry whose epoch is nowhere does not count (S3), except that of a recovery, which is its own epoch.
            let counts = |entry: &EntryNo| {
                let of_epoch = log[*entry].epoch <= epoch || log[*entry].kind == Kind::Recovery;
                of_epoch || !self.obeys(Rule::EpochFound)
            };
            let seen_here: Vec<EntryNo> = seen.iter().filter(on_stripe).copied().collect();
            let live: Vec<EntryNo> = seen_here.iter().copied().filter(counts).collect();
            // S12: a stripe is reached even if the entry seen there does not count: left alone, the entry would count at the next
            // recovery, under this one's epoch.
            let is_orphan_reached = self.obeys(Rule::RecoverySupersedes) && !seen_here.is_empty();
            if is_orphan_reached || !live.is_empty() {
                reaches = reaches.with(stripe);
                membership.stale[stripe] = membership.stale[stripe].or(missing);
            }
            // Step 4 (S7): what failed drives have missed since that membership.
            if self.obeys(Rule::RecoveryNamesMissed) {
                let behind = live.iter().filter(|&&entry| entry > epoch);
                let missed = behind.map(|&entry| found_membership.failed.and(log[entry].reaches));
                membership.stale[stripe] = missed.fold(membership.stale[stripe], Drives::or);
            }
            // Step 3.
            contents[stripe] = self.contents_of(&found, found_membership, stripe, live)?;
        }
        Ok(Decision { membership, contents, reaches, entry: last.max(retired).max(epoch) + 1 })
    }

    /// Step 3: the contents of one stripe, of its live entries. Only the last one can be uncommitted, so it is left out where
    /// there are too few symbols with it.
    fn contents_of(
        &self,
        found: &Found<'_>,
        membership: &Membership,
        stripe: StripeNo,
        mut live: Vec<EntryNo>,
    ) -> Result<Codeword, Unreadable> {
        loop {
            if let Some(&last) = live.last()
                && found.log[last].kind == Kind::Intent
                && (self.obeys(Rule::IntentAlone) || live.len() == 1)
            {
                let contents = self.contents_of_intent(found, membership, stripe, last);
                return contents.ok_or(Unreadable(stripe));
            }
            let mut symbols = PerDrive::all(None);
            for slot in self.layout.all().iter() {
                symbols[slot] = self.last_symbol(found, membership, stripe, slot, &live);
            }
            if let Some(contents) = self.layout.decode(&symbols) {
                return Ok(contents);
            }
            if live.pop().is_none() || !self.obeys(Rule::LastMayBeLeftOut) {
                return Err(Unreadable(stripe));
            }
        }
    }

    /// The symbol of one drive after the live entries of a stripe, if it is there.
    fn last_symbol(
        &self,
        found: &Found<'_>,
        membership: &Membership,
        stripe: StripeNo,
        slot: Slot,
        live: &[EntryNo],
    ) -> Option<Codeword> {
        let is_in_sync = found.members.contains(slot) && membership.in_sync_at(stripe)(slot);
        let reaches = |entry: &&EntryNo| {
            let is_void = **entry < membership.rebuilt[slot][stripe];
            found.log[**entry].reaches.contains(slot) && !is_void
        };
        let mut reaching = live.iter().filter(reaches);
        let last =
            if self.obeys(Rule::LastContents) { reaching.next_back() } else { reaching.next() };
        // Of a drive that is not in sync, the records say what it should store only if they are the last ones of the stripe.
        if !is_in_sync && last != live.last() {
            return None;
        }
        match last {
            Some(&entry) if found.log[entry].kind != Kind::Intent => {
                let symbol = self.layout.symbol(slot, found.log[entry].contents[stripe]);
                found.has_symbol(entry, slot).then_some(symbol)
            }
            Some(_) | None => is_in_sync.then_some(found.drives[slot].home[stripe]),
        }
    }

    /// The contents of a stripe whose last entry is an intent: home locations are compared with its checksums.
    fn contents_of_intent(
        &self,
        found: &Found<'_>,
        membership: &Membership,
        stripe: StripeNo,
        intent: EntryNo,
    ) -> Option<Codeword> {
        let Entry { contents, records, .. } = found.log[intent];
        let contents = contents[stripe];
        let in_sync = found.members.filter(membership.in_sync_at(stripe));
        let home = |slot| in_sync.contains(slot).then_some(found.drives[slot].home[stripe]);
        let new = in_sync.filter(|slot| home(slot) == Some(self.layout.symbol(slot, contents)));
        let mut symbols = PerDrive::all(None);
        for slot in self.layout.all().iter() {
            symbols[slot] = home(slot);
        }
        // A ring without the record: the intent was not committed, and nothing was written back.
        let was_never_begun = in_sync.and(records).iter().any(|slot| {
            let drive: &Drive = &found.drives[slot];
            !drive.shows_record(intent)
        });
        if was_never_begun || new.is_empty() && !self.obeys(Rule::IntentUndecided) {
            return self.layout.decode(&symbols);
        }
        let are_all_here = in_sync == self.layout.all();
        if new == in_sync || !are_all_here && new.len() >= u32::from(self.layout.data()) {
            return Some(contents);
        }
        // Any copy will do; of a codeword each data cell stays as it is, and one that is lost is reported.
        if self.layout.is_mirror() {
            return in_sync.iter().find_map(home);
        }
        let cell = |slot: Slot| {
            home(slot).map_or(Version::BAD, |Codeword(versions)| versions[usize::from(slot)])
        };
        Some(Codeword([cell(0), cell(1)]))
    }

    /// Starts the server again: decides, logs the decision as one entry, and begins with it.
    ///
    /// # Errors
    ///
    /// A stripe that cannot be decoded; the state is as before then.
    pub(crate) fn recover(&self, state: &mut State) -> Result<(), Unreadable> {
        let decision = self.decide(&state.drives, &state.log)?;
        let Decision { membership, contents, reaches, entry } = decision;
        let members = members(&state.drives, &membership, self.layout.all());
        let retired = members.iter().map(|slot| state.drives[slot].retired).max().unwrap_or(0);
        state.log.truncate(entry);
        for slot in self.layout.all().iter() {
            let drive = &mut state.drives[slot];
            drive.records = drive.records.and(Entries::before(entry));
            drive.handoffs = drive.handoffs.and(Entries::before(entry));
            if drive.epoch >= entry {
                drive.epoch = 0;
            }
        }
        let takes_part = |slot| reaches.iter().any(|stripe| membership.in_sync_at(stripe)(slot));
        state.contents = contents;
        state.membership = membership;
        state.recovery = entry;
        state.committed = Entries::before(entry);
        state.epoch_committed = state.log.epoch_before(entry);
        state.retired = retired;
        state.copied = PerStripe::default();
        state.log.push(Entry {
            kind: Kind::Recovery,
            stripes: reaches,
            reaches: self.layout.all(),
            participants: members.filter(takes_part),
            records: members,
            handed_off: Drives::EMPTY,
            contents,
            epoch: entry,
            membership,
            // S11: what it found is retired when its own contents are in place.
            retired: if self.obeys(Rule::RecoveryRetiresNothing) { retired } else { entry - 1 },
        });
        if !self.obeys(Rule::RecoveryCommitted) {
            self.commit(state, entry);
            state.epoch_committed = entry;
        }
        self.advance(state);
        Ok(())
    }
}
