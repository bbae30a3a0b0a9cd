//! What can happen next in a state: steps of clients, drives, the server and chance.

use crate::sets::{Drives, Entries, EntryNo, PerStripe, SmallSet, Stripes};
use crate::spec::{Codeword, Model, Part, Rule, Slot, StripeNo, Version};
use crate::state::{Drive, Entry, Kind, MemberId, Membership, State};
use crate::step::{Chance, Crash, Step, Violation};

/// A step and the state after it.
pub(crate) struct Next {
    pub(crate) step: Step,
    pub(crate) state: State,
    pub(crate) violation: Option<Violation>,
}

impl Model {
    /// All that can happen next.
    pub(crate) fn next(&self, state: &State, next: &mut Vec<Next>) {
        next.clear();
        let mut steps = Steps { model: self, state, next };
        // Nothing is served or written back before the recovery's entry is committed (S11).
        let is_started =
            state.committed.contains(state.recovery) || !self.obeys(Rule::RecoveryCommitted);
        if is_started {
            for stripe in self.stripe_nos() {
                steps.write(stripe);
                steps.write_intent(stripe);
            }
        }
        for slot in self.layout.all().iter() {
            steps.drive(slot, is_started);
        }
        if is_started {
            steps.log_missed();
            steps.hand_off();
        }
        steps.crash();
    }
}

struct Steps<'a> {
    model: &'a Model,
    state: &'a State,
    next: &'a mut Vec<Next>,
}

impl Steps<'_> {
    /// Adds the state that `change` makes of this one, with what is committed and retired then.
    fn add(&mut self, step: Step, change: impl FnOnce(&mut State)) {
        let mut state = self.state.clone();
        change(&mut state);
        self.model.advance(&mut state);
        self.next.push(Next { step, state, violation: None });
    }

    /// The newest membership entry, committed or not.
    fn epoch(&self) -> EntryNo {
        self.state.log.epoch_before(self.state.log.end())
    }

    /// Whether the next change of the membership may be appended: all earlier ones are committed (S2).
    fn is_turn(&self) -> bool {
        self.state.epoch_committed == self.epoch() || !self.model.obeys(Rule::ChangesInTurn)
    }

    /// Whether an entry that is not committed has the stripe (S4).
    fn is_locked(&self, stripe: StripeNo) -> bool {
        let last = self.state.last_entry(stripe);
        !self.state.committed.contains(last) && self.model.obeys(Rule::StripeLock)
    }

    fn write(&mut self, stripe: StripeNo) {
        let (model, state) = (self.model, self.state);
        let is_apart = !state.has_open_intent(stripe) || !model.obeys(Rule::IntentAlone);
        let may_write = state.used.writes < model.bound.writes;
        if !may_write || self.is_locked(stripe) || !is_apart {
            return;
        }
        let epoch = self.epoch();
        for cell in 0..model.layout.data() {
            let reaches = model.layout.reached_by(cell);
            let participants = reaches.filter(state.membership.in_sync_at(stripe));
            if participants.is_empty() {
                continue;
            }
            self.add(Step::Write { stripe, cell }, |state| {
                state.used.writes += 1;
                let version = state.version_last();
                let Codeword(versions) = &mut state.contents[stripe];
                versions[usize::from(cell)] = version;
                if model.obeys(Rule::WriteNamesMissed) {
                    let missed = reaches.and(state.membership.failed);
                    let stale = &mut state.membership.stale[stripe];
                    *stale = stale.or(missed);
                }
                if model.obeys(Rule::RebuiltAfterWrites) {
                    state.copied[stripe] = Drives::EMPTY;
                }
                let entry = Entry {
                    reaches,
                    participants,
                    records: participants,
                    ..contents_entry(Kind::Journaled, stripe, epoch, state)
                };
                state.log.push(entry);
            });
        }
    }

    fn write_intent(&mut self, stripe: StripeNo) {
        let (model, state) = (self.model, self.state);
        let may_write = state.used.intents < model.bound.intents;
        if !may_write || self.is_locked(stripe) || !self.intent_is_apart(stripe) {
            return;
        }
        if !model.weak(&state.membership).is_empty() || state.retired < state.recovery {
            return;
        }
        let epoch = self.epoch();
        // Which rings get it goes round.
        let first = state.used.intents;
        let ring = |at: u8| (first + at) % model.layout.drives();
        let records = (0..=model.layout.redundant()).map(ring).fold(Drives::EMPTY, Drives::with);
        self.add(Step::Intent { stripe }, |state| {
            state.used.intents += 1;
            let version = state.version_last();
            state.contents[stripe] = match model.layout.is_mirror() {
                true => Codeword([version, Version(0)]),
                false => Codeword::all(version),
            };
            state.copied[stripe] = Drives::EMPTY;
            let entry = Entry {
                reaches: model.layout.all(),
                participants: model.layout.all(),
                records,
                ..contents_entry(Kind::Intent, stripe, epoch, state)
            };
            state.log.push(entry);
        });
    }

    /// Whether the stripe has no entry that an intent must not share it with (S4).
    fn intent_is_apart(&self, stripe: StripeNo) -> bool {
        let log = &self.state.log;
        let is_payload =
            |entry| log[entry].kind != Kind::Intent && log[entry].reaches_stripe(stripe);
        let has_payload = (self.state.retired + 1..log.end()).any(is_payload);
        let is_apart = !has_payload && !self.state.has_open_intent(stripe);
        is_apart || !self.model.obeys(Rule::IntentAlone)
    }

    fn drive(&mut self, slot: Slot, is_started: bool) {
        let (model, state) = (self.model, self.state);
        let drive = &state.drives[slot];
        let is_failed = state.membership.failed.contains(slot);
        let is_member = drive.is_present && drive.member == state.membership.member[slot];
        if is_member && !is_failed {
            self.ring(slot);
            for stripe in model.stripe_nos() {
                self.home(slot, stripe, is_started);
            }
            let may_fail = state.used.failures < model.bound.failures;
            if may_fail && model.has(Part::OnlineFailure) && self.survives_without(state, slot) {
                self.fail(slot);
            }
        } else if is_started && is_failed && self.is_turn() {
            if drive.member == state.membership.member[slot] && model.has(Part::ReAdd) {
                self.re_add(slot);
            }
            if model.has(Part::Replacement) {
                self.replace(slot);
            }
        }
    }

    /// What can happen on the ring of a drive.
    fn ring(&mut self, slot: Slot) {
        let (model, state) = (self.model, self.state);
        let drive = &state.drives[slot];
        // Records become durable in order, at any pace.
        let first = drive.records.last().max(drive.reused) + 1;
        let is_next =
            |&entry: &EntryNo| state.log[entry].records.contains(slot) && entry >= state.recovery;
        if let Some(entry) = (first..state.log.end()).find(is_next) {
            self.add(Step::Record { entry, slot }, |state| {
                let Entry { kind, retired, .. } = state.log[entry];
                let drive = &mut state.drives[slot];
                drive.records.insert(entry);
                drive.retired = drive.retired.max(retired);
                if kind.is_epoch() {
                    drive.epoch = entry;
                }
            });
        }
        let durable = model.obeys(Rule::ReuseAfterRetiredDurable);
        let free = if durable { drive.retired } else { state.retired };
        if free > drive.reused && model.has(Part::RingReuse) {
            self.add(Step::Reuse { slot }, |state| state.drives[slot].reused = free);
        }
        let is_voter = model.voters(&state.drives, &state.membership).contains(slot);
        for entry in state.entries_since_recovery() {
            let handed_off = state.log[entry].handed_off;
            let is_due = !state.committed.contains(entry) && !handed_off.is_empty();
            let has_it = handed_off.contains(slot) || drive.handoffs.contains(entry);
            if is_voter && is_due && !has_it {
                self.add(Step::HandoffRecord { entry, slot }, |state| {
                    state.drives[slot].handoffs.insert(entry);
                });
            }
        }
    }

    /// What can happen to the home location of a stripe on a drive.
    fn home(&mut self, slot: Slot, stripe: StripeNo, is_started: bool) {
        let (model, state) = (self.model, self.state);
        let drive = &state.drives[slot];
        let is_stale = state.membership.stale[stripe].contains(slot);
        if is_started && !is_stale {
            let entry = match model.obeys(Rule::WriteBackAfterCommit) {
                true => state.last_committed(stripe),
                false => state.last_entry(stripe),
            };
            let symbol = model.layout.symbol(slot, state.log[entry].contents[stripe]);
            if drive.reads(stripe) != symbol {
                self.add(Step::WriteBack { slot, stripe }, |state| {
                    state.drives[slot].cache[stripe] = Some(symbol);
                });
            }
        }
        if let Some(symbol) = drive.cache[stripe] {
            self.add(Step::Flush { slot, stripe }, |state| {
                state.drives[slot].home[stripe] = symbol;
                state.drives[slot].cache[stripe] = None;
            });
        }
        let last = state.last_entry(stripe);
        let is_quiet = state.committed.contains(last) && !state.has_open_intent(stripe);
        if !is_started || !is_stale || !is_quiet {
            return;
        }
        if !state.copied[stripe].contains(slot) {
            let symbol = model.layout.symbol(slot, state.contents[stripe]);
            let is_different = drive.home[stripe] != symbol;
            self.add(Step::Copy { slot, stripe }, |state| {
                state.copied[stripe] = state.copied[stripe].with(slot);
                if is_different {
                    state.drives[slot].cache[stripe] = Some(symbol);
                }
            });
            return;
        }
        let is_flushed = drive.cache[stripe].is_none() || !model.obeys(Rule::RebuiltAfterFlush);
        if self.is_turn() && is_flushed {
            let records = self.model.layout.all();
            self.add(Step::Rebuilt { slot, stripe }, |state| {
                state.copied[stripe] = state.copied[stripe].without(slot);
                let Membership { stale, rebuilt, .. } = &mut state.membership;
                stale[stripe] = stale[stripe].without(slot);
                if model.obeys(Rule::RebuiltVoidsEarlier) {
                    rebuilt[slot][stripe] = state.log.end();
                }
                log_membership(state, records);
            });
        }
    }

    /// Whether the array survives the loss of the drive under every membership that may be the newest one found.
    fn survives_without(&self, state: &State, slot: Slot) -> bool {
        let layout = &self.model.layout;
        let is_gone = |slot| {
            let drive = &state.drives[slot];
            !drive.is_present || drive.member != state.membership.member[slot]
        };
        let gone = layout.all().filter(is_gone).with(slot);
        let survives = |membership: &Membership| {
            let mut stripes = self.model.stripe_nos();
            stripes.all(|stripe| {
                layout.survives(membership.failed.or(membership.stale[stripe]).or(gone))
            })
        };
        let mut entries = state.epoch_committed..state.log.end();
        survives(&state.membership)
            && entries.all(|entry| {
                !state.log[entry].kind.is_epoch() || survives(&state.log[entry].membership)
            })
    }

    fn fail(&mut self, slot: Slot) {
        let model = self.model;
        self.add(Step::Fail { slot }, |state| {
            state.used.failures += 1;
            state.drives[slot].is_present = false;
            state.drives[slot].cache = PerStripe::default();
            state.membership.failed = state.membership.failed.with(slot);
            for stripe in model.stripe_nos() {
                state.copied[stripe] = state.copied[stripe].without(slot);
                if model.obeys(Rule::FailureNamesUnretired) && misses(state, slot, stripe) {
                    let stale = &mut state.membership.stale[stripe];
                    *stale = stale.with(slot);
                }
            }
            log_membership(state, model.layout.all());
        });
    }

    fn re_add(&mut self, slot: Slot) {
        let model = self.model;
        self.add(Step::ReAdd { slot }, |state| {
            let end = state.log.end();
            state.membership.failed = state.membership.failed.without(slot);
            let drive = &mut state.drives[slot];
            drive.is_present = true;
            if model.obeys(Rule::MemberRenewed) {
                let MemberId(id) = state.membership.member[slot];
                state.membership.member[slot] = MemberId(id + 1);
                *drive = Drive { home: drive.home, cache: drive.cache, ..new_drive(id + 1, end) };
            }
            log_membership(state, model.layout.all());
        });
    }

    fn replace(&mut self, slot: Slot) {
        let model = self.model;
        self.add(Step::Replace { slot }, |state| {
            let end = state.log.end();
            let old = state.drives[slot];
            let MemberId(id) = state.membership.member[slot];
            if old.member == MemberId(id) && model.has(Part::OldDrive) {
                state.old_drive = Some((slot, old));
            }
            state.membership.failed = state.membership.failed.without(slot);
            state.membership.member[slot] = MemberId(id + 1);
            for stripe in model.stripe_nos() {
                state.membership.stale[stripe] = state.membership.stale[stripe].with(slot);
                state.copied[stripe] = state.copied[stripe].without(slot);
            }
            state.drives[slot] = new_drive(id + 1, end);
            log_membership(state, model.layout.all());
        });
    }

    fn log_missed(&mut self) {
        let logged = &self.state.log[self.epoch()].membership;
        if self.is_turn() && logged.stale != self.state.membership.stale {
            let records = self.model.layout.all();
            self.add(Step::LogMissed, |state| log_membership(state, records));
        }
    }

    fn hand_off(&mut self) {
        let (model, state) = (self.model, self.state);
        let voters = model.voters(&state.drives, &state.membership);
        let has_others = voters.len() > model.quorum_size(&state.membership);
        let may_hand_off = state.used.handoffs < model.bound.handoffs;
        // Two drives have no third ring.
        if !may_hand_off || !has_others || model.layout.drives() <= 2 {
            return;
        }
        for entry in state.entries_since_recovery() {
            let Entry { kind, participants, handed_off, .. } = state.log[entry];
            let is_open = kind == Kind::Journaled && !state.committed.contains(entry);
            if !is_open || !handed_off.is_empty() {
                continue;
            }
            let lagging = participants.filter(|slot| !state.drives[slot].records.contains(entry));
            for slot in lagging.iter() {
                // Nothing is committed by this alone.
                let mut state = state.clone();
                state.used.handoffs += 1;
                state.log[entry].handed_off = Drives::only(slot);
                let step = Step::HandOff { entry, slot };
                self.next.push(Next { step, state, violation: None });
            }
        }
    }

    fn crash(&mut self) {
        let (model, state) = (self.model, self.state);
        if state.used.crashes >= model.bound.crashes {
            return;
        }
        let absent = model.layout.all().filter(|slot| !state.drives[slot].is_present);
        let has_back = model.has(Part::PresentAgain);
        let fails = model.layout.all().iter().map(Chance::Fails);
        let back = absent.iter().filter(|_| has_back).map(Chance::PresentAgain);
        let chances = fails.chain(back).chain([Chance::Unchanged, Chance::OldDrive]);
        for drives in chances {
            let Some(crashed) = self.crashed(drives) else { continue };
            if model.has_unreadable_records {
                self.crash_unreadable(drives, &crashed);
            }
            self.add_recovered(Crash { drives, unreadable: None }, crashed);
        }
    }

    /// The state that a recovery finds, if the crash is possible and the bound allows it.
    fn crashed(&self, chance: Chance) -> Option<State> {
        let (model, mut state) = (self.model, self.state.clone());
        state.used.crashes += 1;
        for Drive { cache, .. } in &mut state.drives.0 {
            *cache = PerStripe::default();
        }
        match chance {
            Chance::Unchanged => {}
            Chance::Fails(slot) => {
                let is_bounded = state.used.failures < model.bound.failures;
                let is_present = self.state.drives[slot].is_present;
                if !is_present || !is_bounded || !self.survives_without(self.state, slot) {
                    return None;
                }
                state.used.failures += 1;
                state.drives[slot].is_present = false;
            }
            Chance::PresentAgain(slot) => state.drives[slot].is_present = true,
            Chance::OldDrive => {
                let (slot, old) = self.state.old_drive?;
                if !self.survives_without(self.state, slot) {
                    return None;
                }
                state.old_drive = None;
                let cache = PerStripe::default();
                state.drives[slot] = Drive { is_present: true, cache, ..old };
                if !model.obeys(Rule::MemberById) {
                    state.drives[slot].member = self.state.membership.member[slot];
                }
            }
        }
        Some(state)
    }

    /// The same crash with each record unreadable in turn, which counts as a failure.
    fn crash_unreadable(&mut self, chance: Chance, crashed: &State) {
        if matches!(chance, Chance::PresentAgain(_) | Chance::OldDrive)
            || crashed.used.failures >= self.model.bound.failures
        {
            return;
        }
        for slot in self.model.layout.all().iter() {
            let Drive { is_present, reused, records, .. } = crashed.drives[slot];
            if !is_present || !self.survives_without(crashed, slot) {
                continue;
            }
            for entry in reused + 1..crashed.log.end() {
                let kind = crashed.log[entry].kind;
                if kind == Kind::Membership || !records.contains(entry) {
                    continue;
                }
                let mut state = crashed.clone();
                state.used.failures += 1;
                let drive = &mut state.drives[slot];
                drive.records.remove(entry);
                if kind == Kind::Recovery {
                    let is_left = |&earlier: &EntryNo| {
                        crashed.log[earlier].kind.is_epoch() && records.contains(earlier)
                    };
                    drive.epoch = (0..entry).rev().find(is_left).unwrap_or(0);
                }
                self.add_recovered(
                    Crash { drives: chance, unreadable: Some((entry, slot)) },
                    state,
                );
            }
        }
    }

    /// Recovers, and checks the result against what clients were promised.
    fn add_recovered(&mut self, crash: Crash, mut state: State) {
        let before = state.clone();
        let violation = match self.model.recover(&mut state) {
            Err(unreadable) => Some(Violation::Unreadable { stripe: unreadable.0 }),
            Ok(()) => self.model.broken_promise(&before, &state),
        };
        self.next.push(Next { step: Step::Crash(crash), state, violation });
    }
}

impl Model {
    /// The first cell that is not as it was promised before the crash.
    fn broken_promise(&self, before: &State, after: &State) -> Option<Violation> {
        for stripe in self.stripe_nos() {
            let Codeword(versions) = after.contents[stripe];
            let is_intent = |entry| {
                let Entry { kind, stripes, .. } = before.log[entry];
                kind == Kind::Intent && stripes.contains(stripe)
            };
            // An intent-logged write without an answer, and a drive lost: nobody can say which contents a cell has.
            let has_intent = (before.retired + 1..before.log.end()).any(is_intent);
            for cell in 0..self.layout.data() {
                let read = versions[usize::from(cell)];
                let promise = before.promises[stripe][usize::from(cell)];
                let is_withdrawn = read.is_written() && promise.withdrawn >> read.0 & 1 == 1;
                let is_kept = match read {
                    Version::BAD => promise.is_bad || has_intent,
                    _ => read.is_written() && read >= promise.acknowledged && !is_withdrawn,
                };
                if !is_kept {
                    let acknowledged = promise.acknowledged;
                    return Some(Violation::Promise { stripe, cell, read, acknowledged });
                }
            }
        }
        None
    }
}

/// What the entries of both kinds of write have in common: the contents of one stripe as they are in memory.
fn contents_entry(kind: Kind, stripe: StripeNo, epoch: EntryNo, state: &State) -> Entry {
    let mut contents = PerStripe::default();
    contents[stripe] = state.contents[stripe];
    Entry {
        kind,
        stripes: Stripes::only(stripe),
        reaches: Drives::EMPTY,
        participants: Drives::EMPTY,
        records: Drives::EMPTY,
        handed_off: Drives::EMPTY,
        contents,
        epoch,
        membership: Membership::default(),
        retired: state.retired,
    }
}

/// Appends the membership in memory to the rings of all of `slots` that have not failed.
fn log_membership(state: &mut State, slots: Drives) {
    let entry = Entry {
        kind: Kind::Membership,
        stripes: SmallSet::EMPTY,
        reaches: Drives::EMPTY,
        participants: Drives::EMPTY,
        records: slots.without_all(state.membership.failed),
        handed_off: Drives::EMPTY,
        contents: PerStripe::default(),
        epoch: state.log.end(),
        membership: state.membership,
        retired: state.retired,
    };
    state.log.push(entry);
}

/// Whether an entry that is not retired reaches the stripe on this drive (S7).
fn misses(state: &State, slot: Slot, stripe: StripeNo) -> bool {
    let reaches = |entry: EntryNo| {
        let Entry { kind, reaches, .. } = state.log[entry];
        // What the last recovery found is as its own entry says.
        let stripes = state.log[entry.max(state.recovery)].stripes;
        kind != Kind::Membership && stripes.contains(stripe) && reaches.contains(slot)
    };
    (state.retired + 1..state.log.end()).any(reaches)
}

/// A drive without contents and with an empty ring, in an array whose log ends at `end`.
fn new_drive(id: u8, end: EntryNo) -> Drive {
    Drive {
        is_present: true,
        member: MemberId(id),
        home: PerStripe::all(Codeword::all(Version::FOREIGN)),
        cache: PerStripe::default(),
        records: Entries::EMPTY,
        handoffs: Entries::EMPTY,
        reused: end - 1,
        retired: 0,
        epoch: 0,
    }
}
