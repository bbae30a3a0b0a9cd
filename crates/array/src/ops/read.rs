//! One read of an array, carried out as its plan says.
//!
//! ```text
//!             first ask         a codeword lacks symbols: the rest of it, then retries
//!   (locked) ----------> Reading ---------------------------------------------+
//!                          |  ^  what is computed may have to be proved       |
//!                          |  +-----------------------------------------------+
//!                          |  every codeword gives its data, or cannot
//!                          v
//!                       Answered    (the end of a command that is still inside a drive is ignored)
//! ```
//!
//! # Invariants
//!
//! - R1. A read answers exactly once.
//! - R2. Every symbol is asked for at most twice: once with the plan's effort, once with retries.
//! - R3. A sector is reported unreadable only when nothing that is asked, untried or untouched by
//!   retries could still give it.
//! - R4. Bytes are decoded only from symbols that were read while the read held its stripes.
//! - R5. A drive that is set aside or late is asked, and waited for, before a sector is given up.
//! - R6. A read takes the memory of one that has been answered. What that one knew is forgotten when the next one begins.

use std::collections::BTreeSet;

use levelhead_block::{Effort, Outcome, Place, RequestId, Segment};
use levelhead_erasure::SymbolSet;
use levelhead_units::{DriveSet, Extent, Instant, Sectors};

use crate::action::{Action, Answer, Cost, append};
use crate::core::Core;
use crate::drives::Fate;
use crate::drives::queue::End;
use crate::names::OpId;
use crate::ops::choice::{is_half, needed, plan};
use crate::ops::copies;
use crate::ops::fetch::computing::decode;
use crate::ops::fetch::{
    ArraySector, Codeword, Fetch, FetchEnded, Manner, Wish, find_sectors, present, usable,
};
use crate::ops::lateness::Lateness;
use crate::ops::rule::{Doubtful, Need, Rest, Rule};
use crate::policy::{First, Plan, Policy, Surplus};
use crate::shape::{Layout, Row};

/// Reads whose memory is kept at most, and the most sectors of one of them: a longer one takes long enough to ask for its
/// own.
const KEPT_MAX: usize = 64;
const KEPT_SECTORS_MAX: usize = 256;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct ReadOp {
    request: RequestId,
    /// How hard the client wants it tried.
    effort: Effort,
    plan: Plan,
    /// Drives that sat out when it was made.
    sat_out: DriveSet,
    pub(crate) fetch: Fetch,
    /// Where each requested sector comes from, in the client's order.
    targets: Vec<Target>,
    cost: Cost,
    lateness: Lateness,
    is_answered: bool,
}

/// The symbol that a requested sector is.
#[derive(Clone, Copy, Debug, Default)]
struct Target {
    /// The codeword's place in [`Fetch::codewords`].
    word: usize,
    symbol: usize,
    /// Whether it is on the list of damaged sectors.
    is_listed: bool,
}

/// The requested sectors that could not be had.
#[derive(Clone, Debug, Default)]
struct Lacking {
    /// No symbols that could be read say what they hold.
    missing: Vec<u32>,
    /// They are on the list of damaged sectors.
    listed: Vec<u32>,
}

/// What a client reads, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) request: RequestId,
    pub(crate) extent: Extent,
    /// How hard the client wants it tried.
    pub(crate) effort: Effort,
}

/// How a read comes to its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answering {
    /// Every codeword gives its data, or cannot.
    AtItsEnd,
    /// It has waited for too long.
    GivenUp,
}

/// Reads that have been answered, whose memory the next ones use (R6): the largest part of what a short read costs would
/// be to ask for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct EndedReads(
    #[expect(clippy::vec_box, reason = "reads come and go in their boxes")] Vec<Box<ReadOp>>,
);

impl EndedReads {
    /// The memory for a read that begins.
    pub(crate) fn take(&mut self) -> Box<ReadOp> {
        self.0.pop().unwrap_or_else(|| Box::new(ReadOp::answered()))
    }

    /// A read has been answered.
    pub(crate) fn keep(&mut self, read: Box<ReadOp>) {
        if self.0.len() < KEPT_MAX && read.targets.capacity() <= KEPT_SECTORS_MAX {
            self.0.push(read);
        }
    }
}

impl ReadOp {
    /// Memory for a read, as one leaves it that has been answered.
    fn answered() -> Self {
        Self {
            request: RequestId(0),
            effort: Effort::Fast,
            plan: Plan::NORMAL,
            sat_out: DriveSet::EMPTY,
            fetch: Fetch::new(0, 0, None),
            targets: Vec::new(),
            cost: Cost::default(),
            lateness: Lateness::none(),
            is_answered: true,
        }
    }

    /// Begins a read whose stripes are locked.
    pub(crate) fn begin(
        &mut self,
        core: &mut Core,
        now: Instant,
        op: OpId,
        wanted: Wanted,
        policy: Policy,
    ) {
        assert!(self.is_answered, "R6: {:?}", self.request);
        let Wanted { request, extent, effort } = wanted;
        (self.request, self.effort) = (request, effort);
        (self.cost, self.is_answered) = (Cost::default(), false);
        self.fetch.renew(op, request.0, Some(now));
        self.find_targets(core, extent);
        if core.layout().spec().is_mirror() {
            copies::choose(core, now, &mut self.fetch, policy);
        }
        let Target { word, symbol, .. } = self.targets[0];
        let begin = core.layout().cell(self.fetch.codewords[word].row, symbol);
        self.plan = plan(core, now, &self.fetch, begin, policy);
        self.sat_out = core.drives.overview().sat_out;
        self.lateness.renew(core, now, self.plan.late);
        self.first_ask(core, now);
        self.lateness.note_asked(core, &self.fetch);
    }

    /// Finds the codewords of the requested sectors, and which symbols these are.
    fn find_targets(&mut self, core: &mut Core, extent: Extent) {
        let Self { fetch, targets, .. } = self;
        targets.clear();
        targets.resize(extent.sectors.as_usize(), Target::default());
        let mut sectors = core.reads.sectors.take();
        find_sectors(core.layout(), extent, &mut sectors);
        for &ArraySector { row, symbol, lba } in &sectors {
            if fetch.codewords.last().is_none_or(|word| word.row != row) {
                let usable = usable(core, row);
                fetch.begin(core, row, usable);
                let word = fetch.codewords.last_mut().expect("it was begun");
                word.usable = word.usable.minus(word.listed);
            }
            let idx = fetch.codewords.len() - 1;
            let word = &mut fetch.codewords[idx];
            let is_listed = is_listed(core, word, symbol);
            if !is_listed {
                word.subject = word.subject.with(symbol);
            }
            targets[(lba - extent.lba).as_usize()] = Target { word: idx, symbol, is_listed };
        }
        core.reads.sectors.give_back(sectors);
    }

    /// A sub-request has ended at `now`.
    pub(crate) fn handle_done(&mut self, core: &mut Core, now: Instant, ended: FetchEnded<'_>) {
        self.fetch.handle_done(core.layout(), ended);
        if *ended.outcome != Outcome::Gone {
            self.lateness.handle_done(core, now, &self.fetch, ended.drive);
        }
    }

    /// When the read looks which of its drives are late, once that is known.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.lateness.deadline()
    }

    /// The time has come that [`ReadOp::deadline`] said.
    pub(crate) fn handle_timeout(&mut self, core: &Core, now: Instant) {
        self.lateness.handle_timeout(core, now, &self.fetch);
    }

    fn first_ask(&mut self, core: &mut Core, now: Instant) {
        let mut wishes = core.reads.wishes.take();
        let layout = core.layout();
        let data = layout.data_symbols();
        let expansion = layout.spec().expansion();
        // Asked for only where something is computed instead of read.
        let is_mirror = layout.spec().is_mirror();
        let needs_waits = is_mirror || !self.plan.aside.is_empty();
        let waits = if needs_waits { core.drives.waits(now) } else { Vec::new() };
        let soonest_first = |word: &Codeword, own: SymbolSet, prompt: SymbolSet, count| {
            let mut others: Vec<usize> = prompt.minus(own).iter().collect();
            others.sort_by_key(|&symbol| waits[layout.cell(word.row, symbol).drive.as_usize()]);
            own.iter().chain(others).take(count).collect()
        };
        let first = |word: &Codeword| {
            let aside = on_drives(layout, word, self.plan.aside);
            let prompt = word.usable.minus(aside);
            let wanted = needed(word, data);
            match self.plan.first {
                // A codeword that cannot do without the drives set aside is read as if they were not.
                _ if prompt.len() < data => wanted,
                First::GroupOfHalf if is_half(wanted, data) => prompt,
                First::Wanted | First::GroupOfHalf if wanted.and(aside).is_empty() => wanted,
                First::Wanted | First::GroupOfHalf => {
                    let own = wanted.minus(aside).or(word.have);
                    soonest_first(word, own, prompt, data.max(own.len()))
                }
                First::Spare(drives) if is_mirror => {
                    let own = wanted.minus(aside).or(word.have);
                    soonest_first(word, own, prompt, data + usize::from(drives))
                }
                First::Spare(drives) => {
                    prompt.iter().take(data + usize::from(drives) * expansion).collect()
                }
                First::Group => prompt,
            }
        };
        let lacking = |word: &Codeword| {
            let is_had = word.subject.minus(word.have).is_empty();
            if is_had { SymbolSet::EMPTY } else { first(word).minus(word.have) }
        };
        let wish = |(word, symbols)| Wish { word, symbols };
        wishes.extend(self.fetch.codewords.iter().map(lacking).enumerate().map(wish));
        self.ask(core, now, &wishes, self.plan.effort, End::Tail);
        core.reads.wishes.give_back(wishes);
    }

    fn ask(
        &mut self,
        core: &mut Core,
        now: Instant,
        wishes: &[Wish],
        effort: Effort,
        end: End,
    ) -> u32 {
        // The client's effort is a limit: a client that wants no retries gets none.
        let effort = if effort == Effort::Fast { Effort::Fast } else { self.effort };
        let fate = match (self.plan.first, end) {
            _ if effort != Effort::Fast && self.plan.effort == Effort::Fast => Fate::Again,
            (First::Group | First::GroupOfHalf, End::Tail) => Fate::Withdrawable,
            (First::Group | First::GroupOfHalf, End::Head | End::First)
            | (First::Wanted | First::Spare(_), _) => Fate::Certain,
        };
        let asked = self.fetch.ask(core, now, wishes, Manner { effort, end, fate });
        self.cost.subs += asked;
        self.lateness.watch(&self.fetch);
        asked
    }

    /// Moves on as the facts demand. Returns true once the read has been answered.
    pub(crate) fn advance(&mut self, core: &mut Core, now: Instant) -> bool {
        if self.fetch.is_proving() {
            return false;
        }
        self.fetch.handle_lost(core);
        if core.layout().spec().is_mirror() {
            copies::renew(core, &mut self.fetch);
        }
        let data = core.layout().data_symbols();
        let retry = self.may_retry();
        let rest = if core.layout().spec().is_mirror() { Rest::Fewest } else { Rest::Whole };
        let rule = Rule { data, plan: self.plan, retry, rest };
        let layout = core.layout();
        // A drive that sits out since then is not counted on any more; the plan has weighed the others.
        let sat_out = core.drives.overview().sat_out.without(self.sat_out);
        let aside = self.plan.aside.or(sat_out);
        let doubtful = [aside, self.lateness.late(), self.lateness.hopeless()];
        let mut is_at_its_end = true;
        let (mut rest, mut again, mut unproved) = (Vec::new(), Vec::new(), Vec::new());
        for (idx, word) in self.fetch.codewords.iter().enumerate() {
            let [aside, late, stuck] = doubtful.map(|drives| on_drives(layout, word, drives));
            let wish = |symbols| Wish { word: idx, symbols };
            match rule.next(word, Doubtful { aside, late, stuck }) {
                Need::Nothing => {
                    let symbols = word.unproved(core);
                    if !symbols.is_empty() {
                        unproved.push(wish(symbols));
                    }
                    continue;
                }
                Need::Hopeless => continue,
                Need::Wait => {}
                Need::Rest(symbols) => rest.push(wish(symbols)),
                Need::Retry(symbols) => again.push(wish(symbols)),
            }
            is_at_its_end = false;
        }
        for &Wish { word, symbols } in rest.iter().chain(&again) {
            assert!(self.fetch.codewords[word].pending.and(symbols).is_empty(), "F3");
        }
        self.fetch.mark(&again);
        if !rest.is_empty() {
            self.ask(core, now, &rest, self.plan.effort, End::Head);
        }
        if !again.is_empty() {
            for &Wish { word, symbols } in &again {
                let word = &mut self.fetch.codewords[word];
                assert!(word.retried.and(symbols).is_empty(), "R2: {:?}", self.request);
                word.retried = word.retried.or(symbols);
            }
            let effort = self.effort;
            self.cost.redispatched += self.ask(core, now, &again, effort, End::Head);
        }
        let is_hopeless =
            |word: &Codeword| !word.subject.minus(word.have).is_empty() && word.have.len() < data;
        if is_at_its_end && self.fetch.trust_unproven(is_hopeless) {
            return self.advance(core, now);
        }
        if is_at_its_end {
            if self.fetch.prove(core, unproved) {
                return false;
            }
            self.answer(core, now, Answering::AtItsEnd);
            return true;
        }
        false
    }

    /// These drives are silent: the read does not count on them any more. Returns whether it has asked one of them.
    pub(crate) fn note_silent(&mut self, silent: DriveSet) -> bool {
        self.lateness.note_silent(silent);
        !self.fetch.pending_drives().and(silent).is_empty()
    }

    /// Gives the client the sectors that could be had, and names the others.
    pub(crate) fn answer(&mut self, core: &mut Core, now: Instant, how: Answering) {
        assert!(!self.is_answered, "R1: {:?}", self.request);
        self.is_answered = true;
        if how == Answering::AtItsEnd {
            self.assert_hopeless(core);
        }
        self.lateness.note_spread(core, now, &self.fetch);
        let relies_on = self.relies_on(core);
        let Lacking { missing, listed } = self.deliver(core);
        let withdraw = self.plan.surplus == Surplus::Removed;
        let due = self.lateness.note_late(core, now);
        self.cost.removed += self.fetch.close(core, now, withdraw, due);
        let (unknown, damaged) = match self.effort {
            Effort::Fast | Effort::Limited(_) => (missing, Vec::new()),
            Effort::Full | Effort::Medium => (Vec::new(), missing),
        };
        let outcome = Outcome::Done {
            unknown: unknown.into_iter().collect(),
            damaged: damaged.into_iter().chain(listed).collect(),
        };
        let (request, cost) = (self.request, self.cost);
        core.answer(relies_on, Answer { request, outcome, cost });
    }

    /// R3, R5: no symbol of a codeword that cannot give its data is being read, and the symbols that were not tried,
    /// on any drive, would not help.
    fn assert_hopeless(&self, core: &Core) {
        let may_retry = self.may_retry();
        for word in &self.fetch.codewords {
            let missing = word.subject.minus(word.have);
            let data = core.layout().data_symbols();
            let decodes = |have: SymbolSet| have.len() >= data && word.wrong.is_empty();
            if missing.is_empty() || decodes(word.have) {
                continue;
            }
            let untried = word.usable.minus(word.tried);
            let lost = word.unknown.and(word.usable).minus(word.retried).minus(word.damaged);
            let possible = if may_retry { untried.or(lost) } else { untried };
            let would_help = decodes(word.have.or(possible)) || !missing.and(possible).is_empty();
            assert!(word.pending.is_empty() && !would_help, "R3: {:?}: {word:?}", self.request);
        }
    }

    /// Whether sectors that were not given without retries may be asked for again with retries. Otherwise the first
    /// attempt was made with as much effort as the client allows.
    fn may_retry(&self) -> bool {
        self.effort != Effort::Fast && self.plan.effort == Effort::Fast
    }

    /// Lost drives that hold requested data, or a copy of it, and whose loss is not recorded yet. If the array crashed
    /// now and took them for good ones at its next start, a later read would give older data than this one.
    fn relies_on(&self, core: &Core) -> DriveSet {
        if core.gate.unrecorded().is_empty() {
            return DriveSet::EMPTY;
        }
        let layout = core.layout();
        let drives = |target: &Target| {
            let row = self.fetch.codewords[target.word].row;
            match layout.spec().is_mirror() {
                true => layout.group(row.stripe),
                false => DriveSet::EMPTY.with(layout.cell(row, target.symbol).drive),
            }
        };
        self.targets
            .iter()
            .map(drives)
            .fold(DriveSet::EMPTY, DriveSet::or)
            .and(core.gate.unrecorded())
    }

    /// Says where the requested data lie; returns the sectors that could not be had. Sectors that were read stay
    /// where they are. Sectors that are computed are put into one more buffer, and so are zeroes for those that
    /// could not be had.
    fn deliver(&mut self, core: &mut Core) -> Lacking {
        let words = &self.fetch.codewords;
        let is_mirror = core.layout().spec().is_mirror();
        // The symbol whose bytes are the requested ones: of a mirror any copy.
        let given = |core: &Core, target: &Target| {
            let word = &words[target.word];
            if is_mirror { word.copy(core) } else { Some(target.symbol) }
                .filter(|&symbol| word.have.contains(symbol) && !target.is_listed)
        };
        let has = |target: &&Target| given(core, target).is_some();
        let others = self.targets.len() - self.targets.iter().filter(has).count();
        let is_carried = core.out.carries_content();
        let scratch =
            (others > 0 && is_carried).then(|| core.out.acquire(Sectors::new(others as u64)));
        let mut free = scratch.map(|buf| Place { buf, sector: 0 });
        let mut lacking = Lacking::default();
        let mut decoded: BTreeSet<usize> = BTreeSet::new();
        let mut segments: Vec<Segment> = Vec::new();
        for (sector, target) in (0_u32..).zip(&self.targets) {
            let &Target { word: idx, symbol, is_listed } = target;
            let word = &words[idx];
            let place = if let Some(symbol) = given(core, target) {
                if word.computed.contains(symbol) {
                    decoded.insert(idx);
                }
                is_carried.then(|| word.place(symbol))
            } else {
                let mut from = Vec::new();
                if is_listed {
                    note_damaged(core, word.row, symbol);
                    lacking.listed.push(sector);
                } else if !is_mirror && word.gives(core, symbol) {
                    if is_carried {
                        from = decode(core, word, symbol);
                    }
                    decoded.insert(idx);
                } else {
                    lacking.missing.push(sector);
                }
                let into = free;
                free = into.map(|place| place.plus(1));
                into.inspect(|&into| core.out.combine(into, from))
            };
            if let Some(place) = place {
                append(&mut segments, place);
            }
        }
        if is_carried {
            core.out.deliver(self.request, segments);
        }
        scratch.into_iter().for_each(|buf| core.out.release(buf));
        self.cost.decoded = decoded.len() as u32;
        lacking
    }
}

/// Whether a requested sector is on the list of damaged sectors: of a mirror all copies that are there.
fn is_listed(core: &Core, word: &Codeword, symbol: usize) -> bool {
    if word.listed.is_empty() {
        return false;
    }
    if !core.layout().spec().is_mirror() {
        return word.listed.contains(symbol);
    }
    present(core, word.row, core.layout().symbols()).minus(word.listed).is_empty()
}

/// A client does not get a sector that is on the list.
fn note_damaged(core: &mut Core, row: Row, symbol: usize) {
    core.counters.damaged_reads += 1;
    let event = core.meta.note_damaged_read(core.layout().cell(row, symbol));
    core.out.extend(event.map(Action::Event));
}

/// The symbols of a codeword that lie on these drives.
#[inline]
pub(crate) fn on_drives(layout: &Layout, word: &Codeword, drives: DriveSet) -> SymbolSet {
    if drives.is_empty() {
        return SymbolSet::EMPTY;
    }
    let lies = |symbol: &usize| drives.contains(layout.cell(word.row, *symbol).drive);
    word.usable.iter().filter(lies).collect()
}
