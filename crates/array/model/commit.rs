//! When an entry is committed, and when it is retired: rules S1 to S3 and S6.

use crate::sets::{Drives, EntryNo, PerDrive};
use crate::spec::{Codeword, Model, Rule, Slot, StripeNo, Version};
use crate::state::{Drive, Entry, Kind, Membership, State, members};

impl Model {
    /// Drives that would fail a quorum: failed ones, and those that are being rebuilt somewhere.
    pub(crate) fn weak(&self, membership: &Membership) -> Drives {
        if !self.obeys(Rule::RebuildingNotInQuorum) {
            return membership.failed;
        }
        let stale = self.stripe_nos().map(|stripe| membership.stale[stripe]);
        stale.fold(membership.failed, Drives::or)
    }

    /// Number of rings that a quorum needs.
    pub(crate) fn quorum_size(&self, membership: &Membership) -> u32 {
        self.layout.quorum_size(self.weak(membership))
    }

    /// Drives whose rings count for a quorum.
    pub(crate) fn voters(&self, drives: &PerDrive<Drive>, membership: &Membership) -> Drives {
        members(drives, membership, self.layout.all().without_all(self.weak(membership)))
    }

    /// Voters on whose rings the entry's own record is durable.
    fn voters_with(&self, state: &State, entry: EntryNo, membership: &Membership) -> Drives {
        state.rings_with(self, entry).and(self.voters(&state.drives, membership))
    }

    /// Whether a quorum has the entry of a membership, counted by that membership (S2).
    fn membership_is_durable(&self, state: &State, entry: EntryNo) -> bool {
        let membership = &state.log[entry].membership;
        let needed = self.quorum_size(membership) - u32::from(!self.obeys(Rule::MembershipQuorum));
        self.voters_with(state, entry, membership).len() >= needed
    }

    /// Whether the records of the entry are enough under this membership (S1, S4, S11).
    fn records_are_enough(&self, state: &State, entry: EntryNo, membership: &Membership) -> bool {
        match state.log[entry].kind {
            Kind::Membership => {
                self.voters_with(state, entry, membership).len() >= self.quorum_size(membership)
            }
            Kind::Intent => self.intent_is_durable(state, entry, membership),
            Kind::Journaled => self.participants_are_done(state, entry, membership),
            Kind::Recovery => {
                let voters = self.voters_with(state, entry, membership);
                voters.len() >= self.quorum_size(membership)
                    && self.participants_are_done(state, entry, membership)
            }
        }
    }

    /// Whether a quorum has an intent, or every one of its rings that still counts (S4).
    fn intent_is_durable(&self, state: &State, entry: EntryNo, membership: &Membership) -> bool {
        let needed = self.quorum_size(membership) - u32::from(!self.obeys(Rule::IntentQuorum));
        let records = state.log[entry].records.without_all(self.weak(membership));
        self.voters_with(state, entry, membership).len() >= needed
            || !records.is_empty() && records.minus_is_empty(state.rings_with(self, entry))
    }

    /// Whether every participant that still stores one of the stripes has its record: on its own ring, or handed off (S1).
    fn participants_are_done(
        &self,
        state: &State,
        entry: EntryNo,
        membership: &Membership,
    ) -> bool {
        let Entry { participants, stripes, handed_off, kind, .. } = state.log[entry];
        let is_in_sync = |slot| stripes.iter().any(|stripe| membership.in_sync_at(stripe)(slot));
        let has_own = |slot| {
            let drive: &Drive = &state.drives[slot];
            drive.is_present
                && drive.member == state.membership.member[slot]
                && drive.records.contains(entry)
        };
        let is_handed_off = |slot| {
            let others = self.voters(&state.drives, membership).without(slot);
            let rings = others.filter(|other| state.drives[other].handoffs.contains(entry)).len();
            let missing = u32::from(!self.obeys(Rule::HandoffQuorum));
            handed_off.contains(slot)
                && rings > 0
                && rings + missing >= self.quorum_size(membership)
        };
        let waited_for = participants.filter(is_in_sync);
        let done = waited_for.filter(|slot| has_own(slot) || is_handed_off(slot));
        if kind == Kind::Journaled && !self.obeys(Rule::EveryRecord) {
            return !done.is_empty();
        }
        done == waited_for
    }

    /// Commits, acknowledges and retires what the records and home locations that became durable allow.
    pub(crate) fn advance(&self, state: &mut State) {
        loop {
            let before = (state.committed, state.epoch_committed, state.retired);
            self.commit_memberships(state);
            self.commit_contents(state);
            self.retire(state);
            if before == (state.committed, state.epoch_committed, state.retired) {
                return;
            }
        }
    }

    fn commit_memberships(&self, state: &mut State) {
        for entry in state.epoch_committed + 1..state.log.end() {
            if !state.log[entry].kind.is_epoch() || !self.membership_is_durable(state, entry) {
                continue;
            }
            state.epoch_committed = entry;
            for earlier in 1..=entry {
                if state.log[earlier].kind == Kind::Membership {
                    state.committed.insert(earlier);
                }
            }
        }
    }

    fn commit_contents(&self, state: &mut State) {
        for entry in 1..state.log.end() {
            let Entry { kind, epoch, .. } = state.log[entry];
            if state.committed.contains(entry) || kind == Kind::Membership {
                continue;
            }
            let is_epoch_committed = epoch <= state.epoch_committed;
            let waits_for_epoch =
                self.obeys(Rule::EpochCommitted) && self.obeys(Rule::FailureCommitted);
            if !is_epoch_committed && (waits_for_epoch || kind == Kind::Recovery) {
                continue;
            }
            let membership = match self.obeys(Rule::FailureCommitted) {
                true => state.log[state.epoch_committed.max(epoch)].membership,
                false => state.membership,
            };
            if self.records_are_enough(state, entry, &membership) {
                self.commit(state, entry);
            }
        }
    }

    /// Commits the entry of a write, which is acknowledged then, or of a recovery, whose contents are served from then on.
    pub(crate) fn commit(&self, state: &mut State, entry: EntryNo) {
        if state.committed.contains(entry) {
            return;
        }
        state.committed.insert(entry);
        match state.log[entry].kind {
            Kind::Journaled => {
                for stripe in state.log[entry].stripes.iter() {
                    self.acknowledge(state, entry, stripe);
                }
            }
            // An intent-logged write is acknowledged when it is in place: `Model::retire`.
            Kind::Intent | Kind::Membership => {}
            Kind::Recovery => {
                for stripe in self.stripe_nos() {
                    serve(state, stripe);
                }
            }
        }
    }

    fn acknowledge(&self, state: &mut State, entry: EntryNo, stripe: StripeNo) {
        let written = state.log[entry];
        let Codeword(versions) = written.contents[stripe];
        for cell in State::data_cells(self, &written).iter().map(usize::from) {
            state.promises[stripe][cell].acknowledge(versions[cell]);
        }
    }

    fn retire(&self, state: &mut State) {
        if !state.committed.contains(state.recovery) {
            return;
        }
        for entry in state.retired + 1..state.log.end() {
            if !self.may_retire(state, entry) {
                return;
            }
            state.retired = entry;
            if state.log[entry].kind == Kind::Intent && entry > state.recovery {
                for stripe in state.log[entry].stripes.iter() {
                    self.acknowledge(state, entry, stripe);
                }
            }
        }
    }

    /// Whether everything that the entry reaches is durable at home, or known to be stale (S6).
    fn may_retire(&self, state: &State, entry: EntryNo) -> bool {
        // What the last recovery found is as its own entry says.
        let entry = entry.max(state.recovery);
        if !state.committed.contains(entry) {
            return false;
        }
        let Entry { kind, stripes, reaches, .. } = state.log[entry];
        if kind == Kind::Membership {
            return true;
        }
        let membership = match self.obeys(Rule::RetireAfterMissedCommitted) {
            true => &state.log[state.epoch_committed].membership,
            false => &state.membership,
        };
        let is_done = |slot, stripe| {
            membership.stale[stripe].contains(slot)
                || !self.obeys(Rule::FailureNamesUnretired) && membership.failed.contains(slot)
                || self.is_home(state, slot, stripe)
        };
        stripes.iter().all(|stripe| reaches.iter().all(|slot| is_done(slot, stripe)))
    }

    /// Whether the symbol of the last committed entry is durable in its home location.
    fn is_home(&self, state: &State, slot: Slot, stripe: StripeNo) -> bool {
        let contents = state.log[state.last_committed(stripe)].contents[stripe];
        let symbol = self.layout.symbol(slot, contents);
        let drive = &state.drives[slot];
        if !self.obeys(Rule::RetireAfterFlush) {
            return drive.reads(stripe) == symbol;
        }
        drive.home[stripe] == symbol && drive.reads(stripe) == symbol
    }
}

/// Serves the contents that a recovery has decided on: what clients read now must not change back.
fn serve(state: &mut State, stripe: StripeNo) {
    let newest = state.version_last();
    let Codeword(versions) = state.contents[stripe];
    for (promise, version) in state.promises[stripe].iter_mut().zip(versions) {
        let is_bad = version == Version::BAD;
        let served = if is_bad { Version(0) } else { version };
        promise.acknowledge(served);
        promise.is_bad = is_bad;
        for later in served.0 + 1..=newest.0 {
            promise.withdrawn |= 1 << later;
        }
    }
}
