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
//! - R3. A sector is reported unreadable only when nothing that is asked, untried or untouched by
//!   retries could still give it.
//! - R4. Bytes are decoded only from symbols that were read while the read held its stripes.

use std::collections::BTreeSet;

use levelhead_block::{Effort, Outcome};
use levelhead_erasure::SymbolSet;
use levelhead_units::{Extent, Instant};

use crate::action::{Action, Answer, BufId, Cost, Place, RequestId};
use crate::core::{Core, Fate, OpId};
use crate::fetch::{Codeword, Fetch, Manner, rows_of, usable};
use crate::policy::{AnswerWhen, First, Plan, Policy, Surplus};
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
        let mut read = Self { request, effort, plan, fetch, targets, cost: Cost::default() };
        read.first_ask(core, now);
        read
    }

    fn first_ask(&mut self, core: &mut Core, now: Instant) {
        let data = core.layout.data_symbols();
        let first = |word: &Codeword| match self.plan.first {
            First::Wanted => needed(word, data),
            First::Group => word.usable,
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
            (First::Group, End::Head) | (First::Wanted, _) => Fate::Certain,
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
        let needs: Vec<Need> = self
            .fetch
            .codewords
            .iter()
            .map(|word| need(word, data, self.plan.answer, retry))
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

    fn answer(&mut self, core: &mut Core, now: Instant) {
        let missing = self.deliver(core);
        let withdraw = self.plan.surplus == Surplus::Removed;
        self.cost.removed += self.fetch.close(core, now, withdraw);
        let (unknown, damaged) = match self.effort {
            Effort::Fast | Effort::Limited(_) => (missing, Vec::new()),
            Effort::Full => (Vec::new(), missing),
        };
        let outcome = Outcome::Done {
            unknown: unknown.into_iter().collect(),
            damaged: damaged.into_iter().collect(),
        };
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
fn plan(core: &Core, now: Instant, fetch: &Fetch, policy: Policy) -> Plan {
    let synced = fetch.codewords.iter().all(|word| word.row.stripe < core.synced);
    if core.code.is_none() || !synced {
        return Plan::NORMAL;
    }
    if !policy.looks_at_drives() {
        return policy.decide(&[]);
    }
    let data = core.layout.data_symbols();
    let wanted = fetch.spread(&core.layout, |word| needed(word, data));
    let shares: Vec<Share> = core
        .present()
        .iter()
        .map(|drive| {
            let count =
                wanted.iter().find(|(held, _)| *held == drive).map_or(0, |(_, count)| *count);
            Share { drive: core.view(now, drive), wanted: count }
        })
        .collect();
    policy.decide(&shares)
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

fn need(word: &Codeword, data: usize, answer: AnswerWhen, retry: bool) -> Need {
    let missing = word.subject.minus(word.have);
    let lacking = missing.minus(word.pending);
    let may_decode = match answer {
        AnswerWhen::Decodable => true,
        AnswerWhen::OwnFailed => missing == lacking,
    };
    if missing.is_empty() || (may_decode && word.have.len() >= data) {
        return Need::Nothing;
    }
    let hoped = word.have.or(word.pending);
    if lacking.is_empty() || hoped.len() >= data {
        return Need::Wait;
    }
    let untried = word.usable.minus(word.tried);
    if hoped.or(untried).len() >= data {
        return Need::Rest(untried);
    }
    let failed = word.unknown.and(word.usable).minus(word.pending);
    let unknown = failed.minus(word.retried).minus(word.damaged);
    if retry && !unknown.is_empty() {
        if lacking.minus(unknown).is_empty() {
            return Need::Retry(lacking);
        }
        if hoped.or(untried).or(unknown).len() >= data {
            return Need::Retry(unknown.or(untried));
        }
        if !lacking.and(unknown).is_empty() {
            return Need::Retry(lacking.and(unknown));
        }
    }
    if word.pending.is_empty() { Need::Hopeless } else { Need::Wait }
}
