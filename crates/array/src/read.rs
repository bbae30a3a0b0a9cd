//! One read of an array, carried out as its plan says.
//!
//! ```text
//!             first ask         a codeword lacks symbols: the rest of it, then retries
//!   (locked) ----------> Reading ---------------------------------------------+
//!                          |  ^                                               |
//!                          |  +-----------------------------------------------+
//!                          |  every codeword gives its data, or cannot
//!                          v
//!                       Answered    (what is still inside a drive comes back to nobody)
//! ```
//!
//! # Invariants
//!
//! - R1. A read answers exactly once.
//! - R2. Every symbol is asked for at most twice: once with the plan's effort, once with retries.
//! - R5. A drive that is set aside or late is asked, and waited for, before a sector is given up.
//! - R3. A sector is reported unreadable only when nothing that is asked, untried or untouched by
//!   retries could still give it.
//! - R4. Bytes are decoded only from symbols that were read while the read held its stripes.

use std::collections::BTreeSet;

use levelhead_block::{Effort, Outcome};
use levelhead_erasure::SymbolSet;
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Nanos};

use crate::action::{Action, Answer, BufId, Cost, Place, RequestId, SubId};
use crate::core::{Core, Fate, OpId};
use crate::fetch::{Codeword, Fetch, Manner, rows_of, usable};
use crate::layout::Layout;
use crate::policy::{Again, AnswerWhen, First, Late, Plan, Policy, Surplus, View, tolerant};
use crate::queue::End;
use crate::tau::Share;

/// See the module.
#[derive(Debug)]
pub(crate) struct ReadOp {
    request: RequestId,
    /// How hard the client wants it tried.
    effort: Effort,
    plan: Plan,
    pub(crate) fetch: Fetch,
    /// Codeword and symbol of each requested sector, in the client's order.
    targets: Vec<(usize, usize)>,
    cost: Cost,
    began: Instant,
    /// The drives asked first, and how long those took that have answered, in order.
    asked: DriveSet,
    answered: Vec<(DriveIdx, Nanos)>,
    /// Drives that did not answer in time.
    late: DriveSet,
    /// When the drives that have not answered by then are late, once that is known.
    pub(crate) deadline: Option<Instant>,
}

/// What a codeword needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// Its data can be given.
    Nothing,
    /// What is on its way may do.
    Wait,
    /// Symbols that were never asked for.
    Rest(SymbolSet),
    /// Symbols that little effort did not give, with retries.
    Retry(SymbolSet),
    /// Nothing is left to try.
    Hopeless,
}

impl ReadOp {
    /// Starts a read whose stripes are locked.
    pub(crate) fn start(
        core: &mut Core,
        now: Instant,
        (op, request): (OpId, RequestId),
        (extent, effort): (Extent, Effort),
        policy: Policy,
    ) -> Self {
        let mut fetch = Fetch::new(op, request.0);
        fetch.since = Some(now);
        let mut targets = vec![(0, 0); extent.sectors.as_usize()];
        let rows = rows_of(&core.layout, extent);
        fetch.codewords.reserve_exact(rows.chunk_by(|left, right| left.0 == right.0).count());
        for (row, symbol, lba) in rows {
            if fetch.codewords.last().is_none_or(|word| word.row != row) {
                fetch.add(&core.layout, row, usable(core, row));
            }
            let idx = fetch.codewords.len() - 1;
            let word = &mut fetch.codewords[idx];
            word.subject = word.subject.with(symbol);
            targets[(lba - extent.lba).as_usize()] = (idx, symbol);
        }
        let plan = plan(core, now, &fetch, policy);
        let deadline = match plan.late {
            Late::TimesTail(times) => core.tail.get().map(|tail| now + tail * u64::from(times)),
            Late::Never | Late::TimesMedian(_) | Late::Noted(_) => None,
        };
        let mut read = Self {
            request,
            effort,
            plan,
            fetch,
            targets,
            cost: Cost::default(),
            began: now,
            asked: DriveSet::EMPTY,
            answered: Vec::new(),
            late: DriveSet::EMPTY,
            deadline,
        };
        read.first_ask(core, now);
        read.asked = read.fetch.pending_drives();
        read.expect(core);
        read
    }

    /// A sub-request has ended at `now`.
    pub(crate) fn handle_done(
        &mut self,
        core: &mut Core,
        now: Instant,
        sub: SubId,
        fetched: (DriveIdx, Extent),
        buf: Option<BufId>,
        outcome: &Outcome,
    ) {
        self.fetch.handle_done(&core.layout, sub, fetched, buf, outcome);
        let drive = fetched.0;
        let is_known = self.answered.iter().any(|(known, _)| *known == drive);
        if !is_known && self.asked.contains(drive) && !self.fetch.pending_drives().contains(drive) {
            self.answered.push((drive, now.saturating_since(self.began)));
            self.expect(core);
        }
    }

    /// The time has come that [`ReadOp::deadline`] said.
    pub(crate) fn handle_timeout(&mut self) {
        self.deadline = None;
        self.late = self.late.or(self.fetch.pending_drives());
    }

    /// Finds out when drives are late, if that is to be known from their fellows' times.
    fn expect(&mut self, core: &Core) {
        let acts = matches!(self.plan.late, Late::TimesMedian(_));
        if acts && self.late.is_empty() && self.deadline.is_none() {
            self.deadline = self.due(core);
        }
    }

    /// When a drive is late by the measure of `[TAIL16]`, if it is known.
    fn due(&self, core: &Core) -> Option<Instant> {
        let (Late::TimesMedian(times) | Late::Noted(times)) = self.plan.late else { return None };
        let asked = self.asked.len() as usize;
        let median = match tolerant::rank(asked) {
            Some(rank) => self.answered.get(rank).map(|&(_, time)| time),
            None => core.median.get(),
        };
        median.map(|median| self.began + median * u64::from(times))
    }

    fn first_ask(&mut self, core: &mut Core, now: Instant) {
        let layout = &core.layout;
        let data = layout.data_symbols();
        let expansion = layout.spec().expansion();
        let first = |word: &Codeword| {
            let aside = on_drives(layout, word, self.plan.aside);
            let prompt = word.usable.minus(aside);
            let wanted = needed(word, data);
            match self.plan.first {
                // A codeword that cannot do without the drives set aside is read as if they were not.
                _ if prompt.len() < data => wanted,
                First::Wanted if wanted.and(aside).is_empty() => wanted,
                First::Wanted => {
                    let own = wanted.minus(aside);
                    own.iter().chain(prompt.minus(own).iter()).take(data).collect()
                }
                First::Spare(drives) => {
                    prompt.iter().take(data + usize::from(drives) * expansion).collect()
                }
                First::Group => prompt,
            }
        };
        let wishes: Vec<(usize, SymbolSet)> =
            self.fetch.codewords.iter().map(first).enumerate().collect();
        self.ask(core, now, &wishes, self.plan.effort, End::Tail);
    }

    fn ask(
        &mut self,
        core: &mut Core,
        now: Instant,
        wishes: &[(usize, SymbolSet)],
        effort: Effort,
        end: End,
    ) -> u32 {
        // The client's effort is a limit: who wants no retries gets none.
        let effort = if effort == Effort::Fast { Effort::Fast } else { self.effort };
        let fate = match (self.plan.first, end) {
            (First::Group, End::Tail) => Fate::Withdrawable,
            (First::Group, End::Head) | (First::Wanted | First::Spare(_), _) => Fate::Certain,
        };
        let asked = self.fetch.ask(core, now, wishes, Manner { effort, end, fate });
        self.cost.subs += asked;
        asked
    }

    /// Moves on as the facts demand. Returns true once the read has been answered.
    pub(crate) fn advance(&mut self, core: &mut Core, now: Instant) -> bool {
        self.fetch.handle_lost(&core.layout, core.lost);
        let data = core.layout.data_symbols();
        // Asking again with the effort that failed would be no second try.
        let retry = self.effort != Effort::Fast && self.plan.effort == Effort::Fast;
        // What is slow now counts, not what was slow at the start.
        let aside = match self.plan.late {
            Late::TimesTail(_) if !self.fetch.subs.is_empty() || self.has_failures() => {
                core.slow(now)
            }
            Late::Never | Late::TimesMedian(_) | Late::Noted(_) | Late::TimesTail(_) => {
                self.plan.aside
            }
        };
        let aside = aside.or(self.late);
        let rule = Rule { data, plan: self.plan, retry };
        let layout = &core.layout;
        let needs: Vec<Need> = self
            .fetch
            .codewords
            .iter()
            .map(|word| rule.need(word, on_drives(layout, word, aside)))
            .collect();
        let pick = |wanted: fn(Need) -> Option<SymbolSet>| -> Vec<(usize, SymbolSet)> {
            let picked = needs.iter().enumerate();
            picked.filter_map(|(idx, &need)| Some((idx, wanted(need)?))).collect()
        };
        let rest = pick(|need| if let Need::Rest(symbols) = need { Some(symbols) } else { None });
        let again = pick(|need| if let Need::Retry(symbols) = need { Some(symbols) } else { None });
        self.fetch.mark(&again);
        if !rest.is_empty() {
            self.ask(core, now, &rest, self.plan.effort, End::Head);
        }
        if !again.is_empty() {
            for &(idx, symbols) in &again {
                let word = &mut self.fetch.codewords[idx];
                word.retried = word.retried.or(symbols);
            }
            let effort = self.effort;
            self.cost.redispatched += self.ask(core, now, &again, effort, End::Head);
        }
        if needs.iter().all(|need| matches!(need, Need::Nothing | Need::Hopeless)) {
            self.answer(core, now);
            return true;
        }
        false
    }

    /// Whether some symbol was not given at the first attempt.
    fn has_failures(&self) -> bool {
        self.fetch.codewords.iter().any(|word| !word.unknown.is_empty())
    }

    fn answer(&mut self, core: &mut Core, now: Instant) {
        let missing = self.deliver(core);
        let withdraw = self.plan.surplus == Surplus::Removed;
        let due = self.due(core);
        if let Some(due) = due {
            for &(drive, took) in &self.answered {
                core.streaks.note(drive, self.began + took > due);
            }
        }
        self.cost.removed += self.fetch.close(core, now, withdraw, due);
        let (unknown, damaged) = match self.effort {
            Effort::Fast | Effort::Limited(_) => (missing, Vec::new()),
            Effort::Full => (Vec::new(), missing),
        };
        let outcome = Outcome::Done {
            unknown: unknown.into_iter().collect(),
            damaged: damaged.into_iter().collect(),
        };
        core.ages.note(now.saturating_since(self.began), self.asked.len());
        let (request, cost) = (self.request, self.cost);
        core.actions.push_back(Action::Answer(Answer { request, outcome, cost }));
    }

    /// Puts the requested data into the client's buffer; returns the sectors that could not be had.
    fn deliver(&mut self, core: &mut Core) -> Vec<u32> {
        let data = core.layout.data_symbols();
        let client = BufId::Client(self.request);
        let mut missing = Vec::new();
        let mut decoded: BTreeSet<usize> = BTreeSet::new();
        for (sector, &(idx, symbol)) in (0_u32..).zip(&self.targets) {
            let word = &self.fetch.codewords[idx];
            let into = Place { buf: client, sector };
            if word.have.contains(symbol) {
                core.combine(into, vec![(1, word.place(symbol))]);
            } else if word.have.len() >= data {
                let from = decode(core, word, symbol);
                core.combine(into, from);
                decoded.insert(idx);
            } else {
                missing.push(sector);
            }
        }
        self.cost.decoded = decoded.len() as u32;
        missing
    }
}

/// A symbol as a combination of those that are had.
pub(crate) fn decode(core: &Core, word: &Codeword, symbol: usize) -> Vec<(u8, Place)> {
    let code = core.code.as_ref().expect("only a redundant array decodes");
    let rows = code.rows(&word.have, &[symbol]).expect("enough symbols are had");
    let sources = rows.sources().iter().enumerate();
    sources.map(|(at, &source)| (rows.coefficient(0, at), word.place(source))).collect()
}

/// Chooses the plan. Where redundancy is not valid yet there is nothing to choose.
fn plan(core: &mut Core, now: Instant, fetch: &Fetch, policy: Policy) -> Plan {
    let synced = fetch.codewords.iter().all(|word| word.row.stripe < core.synced);
    if core.code.is_none() || !synced {
        return Plan::NORMAL;
    }
    let mut shares = core.take_shares();
    if policy.looks_at_drives() {
        let data = core.layout.data_symbols();
        for idx in core.present().iter() {
            shares.push(Share { idx, drive: core.view(now, idx), wanted: 0 });
        }
        for word in &fetch.codewords {
            for symbol in needed(word, data).iter() {
                let drive = core.layout.cell(word.row, symbol).drive;
                if let Some(share) = shares.iter_mut().find(|share| share.idx == drive) {
                    share.wanted += 1;
                }
            }
        }
    }
    let plan = policy.decide(&View {
        shares: &shares,
        spare: core.spare(),
        sat_out: core.detector.sat_out(),
        persistent: core.streaks.persistent(),
    });
    core.give_back_shares(shares);
    core.note_slow(plan.aside);
    plan
}

/// The symbols of a codeword that lie on these drives.
fn on_drives(layout: &Layout, word: &Codeword, drives: DriveSet) -> SymbolSet {
    if drives.is_empty() {
        return SymbolSet::EMPTY;
    }
    let lies = |symbol: &usize| drives.contains(layout.cell(word.row, *symbol).drive);
    word.usable.iter().filter(lies).collect()
}

/// The symbols without which a codeword cannot give what is wanted: that itself, or if some of it is
/// on a lost drive, as much as decodes.
fn needed(word: &Codeword, data: usize) -> SymbolSet {
    let own = word.subject.and(word.usable);
    if own == word.subject {
        return own;
    }
    own.iter().chain(word.usable.minus(own).iter()).take(data.max(own.len())).collect()
}

/// What decides about a codeword's next step.
#[derive(Clone, Copy, Debug)]
struct Rule {
    /// Symbols that decode.
    data: usize,
    plan: Plan,
    /// Whether asking again with retries is possible.
    retry: bool,
}

impl Rule {
    /// The next step, if symbols in `aside` are not counted on while the others can do.
    fn need(&self, word: &Codeword, aside: SymbolSet) -> Need {
        let missing = word.subject.minus(word.have);
        let may_decode = match self.plan.answer {
            AnswerWhen::Decodable => true,
            AnswerWhen::OwnFailed => missing.and(word.pending).is_empty(),
        };
        if missing.is_empty() || (may_decode && word.have.len() >= self.data) {
            return Need::Nothing;
        }
        let prompt = word.pending.minus(aside);
        let lacking = missing.minus(prompt);
        let hoped = word.have.or(prompt);
        if lacking.is_empty() || hoped.len() >= self.data {
            return Need::Wait;
        }
        let untried = word.usable.minus(word.tried).minus(aside);
        if hoped.or(untried).len() >= self.data {
            return Need::Rest(self.rest(untried, self.data - hoped.len()));
        }
        if !lacking.and(untried).is_empty() {
            return Need::Rest(lacking.and(untried));
        }
        let failed = word.unknown.and(word.usable).minus(word.pending);
        let unknown = failed.minus(word.retried).minus(word.damaged).minus(aside);
        if self.retry
            && let Some(again) = self.again(lacking, hoped, untried, unknown)
        {
            return Need::Retry(again);
        }
        if !word.pending.is_empty() {
            return Need::Wait;
        }
        if aside.is_empty() { Need::Hopeless } else { self.need(word, SymbolSet::EMPTY) }
    }

    /// Which untried symbols are asked for when so many are needed.
    fn rest(&self, untried: SymbolSet, needed: usize) -> SymbolSet {
        match self.plan.late {
            Late::Never | Late::Noted(_) | Late::TimesTail(_) => untried,
            Late::TimesMedian(_) => {
                let redundant = untried.minus(SymbolSet::first(self.data));
                redundant.iter().chain(untried.minus(redundant).iter()).take(needed).collect()
            }
        }
    }

    /// Which symbols are asked for again, if that can help: `unknown` ones.
    fn again(
        &self,
        lacking: SymbolSet,
        hoped: SymbolSet,
        untried: SymbolSet,
        unknown: SymbolSet,
    ) -> Option<SymbolSet> {
        if unknown.is_empty() {
            return None;
        }
        let suffices = lacking.minus(unknown).is_empty();
        let decodes = hoped.or(untried).or(unknown).len() >= self.data;
        match self.plan.again {
            Again::Requested if suffices => Some(lacking),
            Again::Requested if decodes => Some(unknown.or(untried)),
            Again::Fewest if suffices || decodes => {
                let fewest = self.data.saturating_sub(hoped.or(untried).len());
                if suffices && (lacking.len() <= fewest || !decodes) {
                    return Some(lacking);
                }
                let own = unknown.and(lacking);
                let chosen = own.iter().chain(unknown.minus(own).iter()).take(fewest);
                Some(chosen.collect::<SymbolSet>().or(untried))
            }
            Again::Requested | Again::Fewest => {
                let own = lacking.and(unknown);
                (!own.is_empty()).then_some(own)
            }
        }
    }
}
