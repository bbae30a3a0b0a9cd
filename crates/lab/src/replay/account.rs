//! Where the time of a replay went: of the requests that took longest, and of each drive.
//!
//! A request's time is accounted for from its answer back to its arrival, along what it waited for:
//!
//! ```text
//!   answer <-- the command that ended then: its retries, its service, its wait inside the drive
//!          <-- when that was submitted: the command that ended then, or the one under way that ended first
//!          <-- none of its commands inside a drive: in the array's queues
//!          <-- when the array took it: outside the array, until its arrival
//! ```
//!
//! - AC1. The parts of a request's time add up to its latency.
//! - AC2. What a drive did for others or for the array alone is time waited for, never service.
//! - AC3. Nothing grows with the number of requests: the longest [`SLOWEST`] are kept, and for each
//!   drive at most [`BINS_MAX`] spans of time, which are joined by twos when there are more.
//!
//! What it leaves out: writes that the array has joined with others count as waiting in its queues, as
//! only the first of them has commands of its own.

use std::collections::BTreeMap;

use levelhead_array::SubId;
use levelhead_units::{DriveIdx, Instant, Nanos};

use crate::world::Step;

/// How many of the requests that took longest are kept.
pub const SLOWEST: usize = 100;
/// The most spans of time that a drive's time is divided into.
pub const BINS_MAX: usize = 96;
/// The length of a span at the start.
const BIN_FIRST: Nanos = Nanos::from_millis(10);

/// When what has not happened will have.
const FAR: Instant = Instant::from_nanos(u64::MAX);

/// Whether a run says where its time went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accounting {
    /// It keeps no account.
    Off,
    /// It keeps one, which takes a little longer.
    On,
}

/// Where the time of a run went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The requests that took longest, the longest first.
    pub slowest: Vec<Story>,
    /// How long each span of time is in [`Account::drives`].
    pub bin: Nanos,
    /// Of each drive, what it did in each span of time. All have the same number of them.
    pub drives: Vec<Vec<Bin>>,
    /// When the run ended, which is inside the last span or at its end.
    pub end: Instant,
}

impl Account {
    /// How much of a span of time lies within the run: all of it, but of the last one.
    pub fn span_of(&self, idx: usize) -> Nanos {
        let from = self.bin.get() * idx as u64;
        Nanos::new(self.end.as_nanos().saturating_sub(from)).min(self.bin)
    }

    /// The mean number of commands at each drive in each span of time.
    pub fn queues(&self) -> Vec<Vec<f64>> {
        self.by_span(|bin| bin.commands)
    }

    /// The share of each span of time in which each drive served commands.
    pub fn utilization(&self) -> Vec<Vec<f64>> {
        self.by_span(|bin| bin.busy.get())
    }

    fn by_span(&self, of: fn(&Bin) -> u64) -> Vec<Vec<f64>> {
        // Nothing happens in a span that the run has not reached.
        let mean =
            |(idx, bin): (usize, &Bin)| of(bin) as f64 / self.span_of(idx).get().max(1) as f64;
        self.drives.iter().map(|bins| bins.iter().enumerate().map(mean).collect()).collect()
    }
}

/// What a request waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Story {
    /// Its place in the list of arrivals.
    pub index: u64,
    /// Its latency, by what it waited for.
    pub parts: Parts,
    /// The drive that its answer waited for last, if it was one.
    pub last: Option<DriveIdx>,
}

/// A request's time, by what it waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// For room in the array.
    pub outside: Nanos,
    /// In the array's queues and for its locks, with none of its commands inside a drive.
    pub queued: Nanos,
    /// Inside a drive, for commands of others.
    pub behind: Nanos,
    /// For a drive that was at work for it: seeks, rotation, transfer.
    pub service: Nanos,
    /// For a drive that retried for it.
    pub retries: Nanos,
}

impl Parts {
    /// The request's latency.
    pub fn total(&self) -> Nanos {
        self.outside + self.queued + self.behind + self.service + self.retries
    }
}

/// What a drive did in a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bin {
    /// How long it served commands.
    pub busy: Nanos,
    /// The number of commands waiting for it or inside it, summed over every nanosecond of the span.
    pub commands: u64,
}

/// A command that a drive had for a request.
#[derive(Clone, Copy, Debug)]
struct Span {
    drive: DriveIdx,
    submitted: Instant,
    began: Instant,
    /// When its first pass was over, and retries began.
    retried: Instant,
    /// Not yet, if it is none.
    ended: Option<Instant>,
}

/// A request on its way.
#[derive(Debug)]
struct Pending {
    arrived: Instant,
    taken: Instant,
    /// When it was answered, with commands of it still inside drives.
    answered: Option<Instant>,
    spans: Vec<Span>,
}

/// Keeps an account while a run goes on.
#[derive(Debug)]
pub(super) struct Keeper {
    pending: BTreeMap<u64, Pending>,
    /// Which request each command inside a drive is for, and its place among that request's.
    inside: BTreeMap<SubId, (u64, usize)>,
    slowest: Vec<Story>,
    bin: Nanos,
    drives: Vec<Vec<Bin>>,
    /// Until when the lengths of queues are accounted for.
    counted_to: Instant,
}

impl Keeper {
    pub(super) fn new(drive_count: usize) -> Self {
        Self {
            pending: BTreeMap::new(),
            inside: BTreeMap::new(),
            slowest: Vec::new(),
            bin: BIN_FIRST,
            drives: vec![Vec::new(); drive_count],
            counted_to: Instant::ZERO,
        }
    }

    /// The array takes a request.
    pub(super) fn take(&mut self, index: u64, arrived: Instant, taken: Instant) {
        let pending = Pending { arrived, taken, answered: None, spans: Vec::new() };
        self.pending.insert(index, pending);
    }

    /// Until `now`, this many commands were waiting for or inside each drive.
    pub(super) fn count(&mut self, now: Instant, lens: impl Iterator<Item = u64>) {
        let from = std::mem::replace(&mut self.counted_to, now);
        for (drive, len) in lens.enumerate() {
            if len > 0 {
                self.spread(drive, from, now, |bin, time| bin.commands += len * time.get());
            }
        }
    }

    /// A drive was given a command or ended one.
    pub(super) fn note(&mut self, step: Step) {
        match step {
            Step::Given { at, drive, sub, origin } => {
                let Some(pending) = self.pending.get_mut(&origin) else { return };
                self.inside.insert(sub, (origin, pending.spans.len()));
                let (began, retried) = (FAR, FAR);
                pending.spans.push(Span { drive, submitted: at, began, retried, ended: None });
            }
            Step::Ended { drive, sub, began, retried, ended } => {
                self.spread(drive.as_usize(), began, ended, |bin, time| bin.busy += time);
                let Some((origin, place)) = self.inside.remove(&sub) else { return };
                let pending =
                    self.pending.get_mut(&origin).expect("kept while commands are inside");
                let span = &mut pending.spans[place];
                (span.began, span.retried, span.ended) = (began, retried, Some(ended));
                self.settle(origin);
            }
        }
    }

    /// A request is answered.
    pub(super) fn answer(&mut self, index: u64, at: Instant) {
        self.pending.get_mut(&index).expect("it was taken").answered = Some(at);
        self.settle(index);
    }

    /// Accounts for a request that was answered, once no command of it is inside a drive.
    fn settle(&mut self, index: u64) {
        let pending = &self.pending[&index];
        let is_open = pending.spans.iter().any(|span| span.ended.is_none());
        if pending.answered.is_some() && !is_open {
            self.keep(index);
        }
    }

    fn keep(&mut self, index: u64) {
        let pending = self.pending.remove(&index).expect("it is asked for once");
        let answered = pending.answered.expect("it was answered");
        let latency = answered - pending.arrived;
        let rank = |story: &Story| (std::cmp::Reverse(story.parts.total()), story.index);
        let place = (std::cmp::Reverse(latency), index);
        let at = self.slowest.partition_point(|story| rank(story) < place);
        if at < SLOWEST {
            self.slowest.insert(at, pending.story(index, answered));
            self.slowest.truncate(SLOWEST);
        }
    }

    /// Gives the part of every span of time that lies from `from` to `to` to `add`.
    fn spread(&mut self, drive: usize, from: Instant, to: Instant, add: impl Fn(&mut Bin, Nanos)) {
        while to.as_nanos() > self.bin.get() * BINS_MAX as u64 {
            self.bin += self.bin;
            for bins in &mut self.drives {
                *bins = bins.chunks(2).map(joined).collect();
            }
        }
        let width = self.bin.get();
        let (mut at, end) = (from.as_nanos(), to.as_nanos());
        while at < end {
            let idx = (at / width) as usize;
            let next = ((at / width + 1) * width).min(end);
            let bins = &mut self.drives[drive];
            if bins.len() <= idx {
                bins.resize(idx + 1, Bin::default());
            }
            add(&mut bins[idx], Nanos::new(next - at));
            at = next;
        }
    }

    /// The account, at the end of the run.
    pub(super) fn into_account(mut self) -> Account {
        let answered: Vec<u64> = self
            .pending
            .iter()
            .filter(|(_, pending)| pending.answered.is_some())
            .map(|(&index, _)| index)
            .collect();
        answered.into_iter().for_each(|index| self.keep(index));
        let count = self.drives.iter().map(Vec::len).max().unwrap_or(0);
        self.drives.iter_mut().for_each(|bins| bins.resize(count, Bin::default()));
        let Self { slowest, bin, drives, counted_to: end, .. } = self;
        Account { slowest, bin, drives, end }
    }
}

fn joined(bins: &[Bin]) -> Bin {
    bins.iter().fold(Bin::default(), |sum, bin| Bin {
        busy: sum.busy + bin.busy,
        commands: sum.commands + bin.commands,
    })
}

impl Pending {
    /// What the request waited for: see the module.
    fn story(&self, index: u64, answered: Instant) -> Story {
        let mut parts = Parts::default();
        let mut last = None;
        let mut at = answered;
        while let Some(span) = self.waited_for(at) {
            last = last.or(Some(span.drive));
            let ended = span.ended.unwrap_or(at);
            // It may have ended before that, with nothing of the request inside a drive since.
            let end = ended.min(at);
            parts.queued += at - end;
            let retried = span.retried.min(end).max(span.submitted);
            let began = span.began.min(retried).max(span.submitted);
            parts.retries += end - retried;
            parts.service += retried - began;
            parts.behind += began - span.submitted;
            at = span.submitted;
        }
        parts.queued += at - self.taken;
        parts.outside = self.taken - self.arrived;
        let story = Story { index, parts, last };
        assert_eq!(story.parts.total(), answered - self.arrived, "AC1");
        story
    }

    /// The command that the request waited for just before `at`: the one that ended then, else the one
    /// under way that ended first, else the last one that had ended.
    fn waited_for(&self, at: Instant) -> Option<&Span> {
        let before = || self.spans.iter().filter(|span| span.submitted < at);
        let ended = |span: &&Span| span.ended.unwrap_or(FAR);
        let under_way = before().filter(|span| ended(span) >= at).min_by_key(ended);
        under_way.or_else(|| before().max_by_key(ended))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn drive(idx: usize) -> DriveIdx {
        DriveIdx::from_usize(idx)
    }

    fn given(millis: u64, on: usize, sub: u64, origin: u64) -> Step {
        Step::Given { at: at(millis), drive: drive(on), sub: SubId(sub), origin }
    }

    fn ended(on: usize, sub: u64, [began, retried, ended]: [u64; 3]) -> Step {
        let (began, retried, ended) = (at(began), at(retried), at(ended));
        Step::Ended { drive: drive(on), sub: SubId(sub), began, retried, ended }
    }

    fn millis(parts: Parts) -> [u64; 5] {
        [parts.outside, parts.queued, parts.behind, parts.service, parts.retries]
            .map(|part| part.get() / 1_000_000)
    }

    #[test]
    fn time_goes_to_what_the_answer_waited_for() {
        let mut keeper = Keeper::new(2);
        keeper.take(0, at(0), at(3));
        for step in [
            given(5, 0, 0, 0),
            given(5, 1, 1, 0),
            ended(1, 1, [5, 8, 8]),
            ended(0, 0, [10, 14, 22]),
            given(25, 1, 2, 0),
            ended(1, 2, [26, 30, 30]),
        ] {
            keeper.note(step);
        }
        keeper.answer(0, at(31));
        let story = keeper.into_account().slowest[0];
        assert_eq!(millis(story.parts), [3, 2 + 3 + 1, 5 + 1, 4 + 4, 8]);
        assert_eq!(story.last, Some(drive(1)));
    }

    #[test]
    fn a_command_that_outlives_the_answer_was_waited_for_until_another_came() {
        let mut keeper = Keeper::new(2);
        keeper.take(0, at(0), at(0));
        keeper.note(given(0, 0, 0, 0));
        keeper.note(given(40, 1, 1, 0));
        keeper.note(ended(1, 1, [40, 50, 50]));
        keeper.answer(0, at(50));
        assert!(keeper.slowest.is_empty(), "a command is still inside a drive");
        keeper.note(ended(0, 0, [0, 90, 90]));
        let story = keeper.into_account().slowest[0];
        assert_eq!(millis(story.parts), [0, 0, 0, 50, 0]);
    }

    #[test]
    fn the_longest_are_kept_the_longest_first() {
        let mut keeper = Keeper::new(1);
        for index in 0..3 * SLOWEST as u64 {
            keeper.take(index, at(0), at(0));
            keeper.answer(index, at(index * 7 % 301));
        }
        let kept = keeper.into_account().slowest;
        let mut all: Vec<u64> = (0..3 * SLOWEST as u64).map(|index| index * 7 % 301).collect();
        all.sort_unstable_by_key(|&latency| std::cmp::Reverse(latency));
        let kept: Vec<u64> = kept.iter().map(|story| millis(story.parts)[1]).collect();
        assert_eq!(kept, all[..SLOWEST]);
    }

    /// Four commands at a drive that serves all the time, in a run that ends within its second span.
    #[test]
    fn the_last_span_is_as_long_as_the_run_has_been_in_it() {
        let mut keeper = Keeper::new(1);
        keeper.note(given(0, 0, 0, 0));
        keeper.count(at(13), [4].into_iter());
        keeper.note(ended(0, 0, [0, 13, 13]));
        let account = keeper.into_account();
        assert_eq!([0, 1].map(|idx| account.span_of(idx).get()), [10_000_000, 3_000_000]);
        assert_eq!(account.queues(), [[4.0, 4.0]]);
        assert_eq!(account.utilization(), [[1.0, 1.0]]);
    }

    #[test]
    fn spans_of_time_are_joined_when_there_are_too_many_and_lose_nothing() {
        let mut keeper = Keeper::new(2);
        for second in 0..1000 {
            let begin = 1000 * second;
            keeper.count(at(begin), [0, 0].into_iter());
            keeper.note(given(begin, 0, second, 0));
            keeper.count(at(begin + 250), [4, 0].into_iter());
            keeper.note(ended(0, second, [begin, begin + 250, begin + 250]));
        }
        let account = keeper.into_account();
        assert!(account.drives.iter().all(|bins| bins.len() == account.drives[0].len()));
        assert!((BINS_MAX / 2..=BINS_MAX).contains(&account.drives[0].len()));
        let busy: u64 = account.drives[0].iter().map(|bin| bin.busy.get()).sum();
        let commands: u64 = account.drives[0].iter().map(|bin| bin.commands).sum();
        assert_eq!((busy, commands), (250_000_000_000, 1_000_000_000_000));
        assert!(account.drives[1].iter().all(|bin| *bin == Bin::default()));
    }
}
