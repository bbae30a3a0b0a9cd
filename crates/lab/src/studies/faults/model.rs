//! An array of a few stripes whose sectors are numbers, under a rule for checksums.
//!
//! A stripe is a codeword: the values at 0, 1, … of a constant (mirrors) or of a line (two data sectors) over a prime
//! field, so that any `data` symbols give the others. Each symbol is one sector of its drive.

use levelhead_stats::Rng;

use super::drive::{Drive, Entry, Fault, Stored, Tags};
use super::{GROUP, GROUPS, Layout, Rule, STRIPES};

/// The field. Random contents are equal once in 2^31.
const PRIME: u64 = (1 << 31) - 1;

/// The content of a sector that a client writes.
pub(super) fn content(rng: &mut Rng) -> u64 {
    rng.below(PRIME)
}

/// The inverses of 1, 2 and 3.
const INVERSES: [u64; 4] = [0, 1, 1 << 30, 1_431_655_765];

/// A symbol's number and its value.
type Point = (usize, u64);

/// The symbol `at` of the codeword that has these symbols: one of a mirror, two otherwise.
fn symbol_of(points: &[Point], at: usize) -> u64 {
    let [(x, value), rest @ ..] = points else { return 0 };
    let Some((y, other)) = rest.first() else { return *value };
    let minus = |one: u64, two: u64| (one + PRIME - two) % PRIME;
    let inverse = INVERSES[x.abs_diff(*y)];
    let slope = if x < y { minus(*other, *value) } else { minus(*value, *other) } * inverse % PRIME;
    (value + slope * minus(at as u64, *x as u64)) % PRIME
}

/// What is known of the content of a sector that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    Right,
    /// Nothing says its checksum.
    Missing,
    Corrupt,
}

/// The checksums of a drive that are in memory.
#[derive(Clone, Debug)]
struct Memory {
    /// Those that no tag sector has, by stripe. They are never evicted.
    unfolded: [Option<Entry>; STRIPES],
    /// Tag sectors as they were read or written.
    cached: [Option<Tags>; GROUPS],
    /// Groups whose tag sector was written in the data's command.
    carried: [bool; GROUPS],
}

/// What one run has shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// A client was given wrong data before the scrub.
    pub(super) is_wrong: bool,
    /// A client is given wrong data after it,
    pub(super) is_left: bool,
    /// of a stripe that the array has not reported.
    pub(super) is_unreported: bool,
    /// The array has reported a failed read, or a stripe that does not match and cannot be repaired.
    pub(super) is_reported: bool,
}

#[derive(Debug)]
pub(super) struct Array {
    layout: Layout,
    rule: Rule,
    drives: Vec<Drive>,
    memory: Vec<Memory>,
    /// What clients have written last.
    truth: [[u64; 2]; STRIPES],
    stamp: u32,
    reported: [bool; STRIPES],
}

impl Array {
    pub(super) fn new(layout: Layout, rule: Rule, rng: &mut Rng) -> Self {
        let truth: [[u64; 2]; STRIPES] =
            std::array::from_fn(|_| std::array::from_fn(|_| content(rng)));
        let memory =
            Memory { unfolded: [None; STRIPES], cached: [None; GROUPS], carried: [false; GROUPS] };
        let drives = vec![Drive::new(vec![Stored::Garbage; rule.sectors()]); layout.symbols];
        let memory = vec![memory; layout.symbols];
        let reported = [false; STRIPES];
        let mut array = Self { layout, rule, drives, memory, truth, stamp: 0, reported };
        (0..GROUPS).for_each(|group| array.store(group * GROUP..(group + 1) * GROUP));
        array.idle();
        array
    }

    /// One drive has its fault.
    pub(super) fn arm(&mut self, fault: Fault, mut rng: Rng) {
        let drive = rng.below(self.layout.symbols as u64) as usize;
        self.drives[drive].arm(fault, rng);
    }

    /// A client reads a symbol that is data or a copy of it; returns whether the answer is wrong.
    pub(super) fn read(&mut self, stripe: usize, symbol: usize) -> bool {
        let truth = self.truth[stripe][symbol % self.layout.data];
        let answer = self.symbol(stripe, symbol, &[]);
        self.reported[stripe] |= answer.is_none();
        answer.is_some_and(|answer| answer != truth)
    }

    /// A client writes one sector: what is redundant is computed from what it was and from the old data.
    pub(super) fn write(&mut self, stripe: usize, data: usize, value: u64) {
        let Layout { data: data_count, symbols } = self.layout;
        if data_count == 1 {
            return self.write_all(stripe..stripe + 1, |_| value);
        }
        let stale = self.stale(stripe, data..data + 1);
        let written: Vec<usize> = [data].into_iter().chain(data_count..symbols).collect();
        let old: Option<Vec<u64>> =
            written.iter().map(|&symbol| self.symbol(stripe, symbol, &stale)).collect();
        let Some(old) = old else {
            self.reported[stripe] = true; // The write fails.
            return;
        };
        self.truth[stripe][data] = value;
        self.stamp += 1;
        let change = (value + PRIME - old[0]) % PRIME;
        let changes = [(data, change), (1 - data, 0)];
        for (symbol, old) in written.into_iter().zip(old) {
            let value = (old + symbol_of(&changes, symbol)) % PRIME;
            let mut entry = Entry { sum: value, own: self.stamp, of: [0; 2] };
            if symbol >= data_count && self.rule == Rule::Stamps {
                entry.of = self.entry(stripe, symbol).map_or([0; 2], |entry| entry.of);
                entry.of[data] = self.stamp;
            }
            self.put(stripe, symbol, entry);
        }
    }

    /// A client writes whole stripes of one group.
    pub(super) fn write_all(
        &mut self,
        stripes: std::ops::Range<usize>,
        mut value: impl FnMut(usize) -> u64,
    ) {
        for stripe in stripes.clone() {
            self.truth[stripe] = std::array::from_fn(&mut value);
        }
        self.store(stripes);
    }

    /// Writes what clients have written last to all drives.
    fn store(&mut self, stripes: std::ops::Range<usize>) {
        self.stamp += 1;
        for symbol in 0..self.layout.symbols {
            let entries = stripes.clone().map(|stripe| {
                let sum = symbol_of(&self.data(stripe), symbol);
                Entry { sum, own: self.stamp, of: [self.stamp; 2] }
            });
            let entries: Vec<Entry> = entries.collect();
            self.put_all(stripes.start, symbol, &entries);
        }
    }

    fn data(&self, stripe: usize) -> Vec<Point> {
        self.truth[stripe][..self.layout.data].iter().copied().enumerate().collect()
    }

    /// What memory has not yet written to tag sectors is written there.
    pub(super) fn idle(&mut self) {
        for drive in 0..self.drives.len() {
            (0..GROUPS).for_each(|group| self.fold(drive, group));
        }
    }

    /// Memory forgets what the drives have.
    pub(super) fn evict(&mut self) {
        self.memory.iter_mut().for_each(|memory| memory.cached = [None; GROUPS]);
    }

    /// Reads every codeword and repairs what is known to be wrong.
    pub(super) fn scrub(&mut self) {
        let Layout { data, symbols } = self.layout;
        for stripe in 0..STRIPES {
            let stale = self.stale(stripe, 0..data);
            let mut right: Vec<Point> = Vec::new();
            for symbol in (0..symbols).filter(|symbol| !stale.contains(symbol)) {
                if self.proof(stripe, symbol) == Proof::Right {
                    right.push((symbol, self.value(stripe, symbol)));
                }
            }
            if !self.matches(&right) {
                let Some(rest) = self.located(&right) else {
                    self.reported[stripe] = true;
                    continue;
                };
                right = rest;
            }
            for symbol in 0..symbols {
                if right.len() >= data && !right.iter().any(|point| point.0 == symbol) {
                    self.repair(stripe, symbol, symbol_of(&right[..data], symbol));
                } else if right.len() < data {
                    self.reported[stripe] |= self.symbol(stripe, symbol, &stale).is_none();
                }
            }
        }
    }

    /// The points without the one that does not match the others, if these are enough to say so.
    fn located(&self, points: &[Point]) -> Option<Vec<Point>> {
        let without = |at: usize| [&points[..at], &points[at + 1..]].concat();
        let mut rests = (0..points.len()).map(without);
        rests.find(|rest| rest.len() > self.layout.data && self.matches(rest))
    }

    fn matches(&self, points: &[Point]) -> bool {
        let data = self.layout.data.min(points.len());
        points.iter().all(|&(symbol, value)| symbol_of(&points[..data], symbol) == value)
    }

    /// What clients are given after a scrub, and what was reported.
    pub(super) fn outcome(mut self, is_wrong: bool) -> Outcome {
        self.idle();
        self.evict();
        let mut outcome = Outcome { is_wrong, ..Outcome::default() };
        for stripe in 0..STRIPES {
            for symbol in 0..self.layout.read() {
                let is_left = self.read(stripe, symbol);
                outcome.is_left |= is_left;
                outcome.is_unreported |= is_left && !self.reported[stripe];
            }
            outcome.is_reported |= self.reported[stripe];
        }
        outcome
    }

    /// A symbol as it was read, or as the others give it where it has another checksum than it should or is stale.
    fn symbol(&mut self, stripe: usize, symbol: usize, stale: &[usize]) -> Option<u64> {
        let is_stale = |symbol: &usize| stale.contains(symbol);
        let proof = self.proof(stripe, symbol);
        if proof == Proof::Right && !is_stale(&symbol) {
            return Some(self.value(stripe, symbol));
        }
        let mut others = Vec::new();
        for other in (0..self.layout.symbols).filter(|other| *other != symbol && !is_stale(other)) {
            if others.len() < self.layout.data && self.proof(stripe, other) == Proof::Right {
                others.push((other, self.value(stripe, other)));
            }
        }
        if others.len() == self.layout.data {
            let value = symbol_of(&others, symbol);
            self.repair(stripe, symbol, value);
            return Some(value);
        }
        (proof == Proof::Missing).then(|| self.value(stripe, symbol))
    }

    fn repair(&mut self, stripe: usize, symbol: usize, value: u64) {
        let mut entry = Entry { sum: value, own: 0, of: [0; 2] };
        let data = self.layout.data;
        if self.rule == Rule::Stamps && symbol < data {
            let redundant = data..self.layout.symbols;
            let stamps = redundant.filter_map(|of| Some(self.entry(stripe, of)?.of[symbol]));
            entry.own = stamps.max().unwrap_or(0);
        } else if self.rule == Rule::Stamps {
            entry.of =
                std::array::from_fn(|of| self.entry(stripe, of).map_or(0, |entry| entry.own));
        }
        self.put(stripe, symbol, entry);
    }

    /// The symbols that have missed a write, by the stamps of these data sectors.
    fn stale(&mut self, stripe: usize, data: std::ops::Range<usize>) -> Vec<usize> {
        let mut stale = Vec::new();
        if self.rule != Rule::Stamps {
            return stale;
        }
        for symbol in data {
            for redundant in self.layout.data..self.layout.symbols {
                let own = self.entry(stripe, symbol).map_or(0, |entry| entry.own);
                let other = self.entry(stripe, redundant).map_or(0, |entry| entry.of[symbol]);
                if own != 0 && other != 0 && own != other {
                    stale.push(if own < other { symbol } else { redundant });
                }
            }
        }
        stale
    }

    fn value(&self, stripe: usize, symbol: usize) -> u64 {
        let drive = &self.drives[self.layout.drive(stripe, symbol)];
        match drive.sectors[self.rule.position(stripe)] {
            Stored::Sector { value, .. } => value,
            // No write has this content.
            Stored::Tags(_) | Stored::Garbage => PRIME,
        }
    }

    fn proof(&mut self, stripe: usize, symbol: usize) -> Proof {
        let position = self.rule.position(stripe);
        let is_right = match self.rule {
            Rule::None => true,
            Rule::Inline => {
                let drive = &self.drives[self.layout.drive(stripe, symbol)];
                matches!(drive.sectors[position],
                    Stored::Sector { value, sum, home } if value == sum && home == position)
            }
            Rule::Beside | Rule::Parent | Rule::Deferred | Rule::Carried | Rule::Stamps => {
                let Some(entry) = self.entry(stripe, symbol) else { return Proof::Missing };
                entry.sum == self.value(stripe, symbol)
            }
        };
        if is_right { Proof::Right } else { Proof::Corrupt }
    }

    /// What memory or else the tag sector says of a symbol.
    fn entry(&mut self, stripe: usize, symbol: usize) -> Option<Entry> {
        let drive = self.layout.drive(stripe, symbol);
        let unfolded = self.memory[drive].unfolded[stripe];
        unfolded.or_else(|| self.tags(drive, stripe / GROUP).entries[stripe % GROUP])
    }

    /// The tag sector of a group, from memory if it is there. One that is not the group's says nothing.
    fn tags(&mut self, drive: usize, group: usize) -> Tags {
        let (rule, sectors) = (self.rule, &self.drives[drive].sectors);
        *self.memory[drive].cached[group].get_or_insert_with(|| {
            match sectors[rule.tag_position(group)] {
                Stored::Tags(tags) if tags.group == group => tags,
                _ => Tags { group, entries: [None; GROUP] },
            }
        })
    }

    fn put(&mut self, stripe: usize, symbol: usize, entry: Entry) {
        self.put_all(stripe, symbol, &[entry]);
    }

    /// Writes sectors that follow each other in one group of a drive, and keeps their checksums where the rule has them.
    fn put_all(&mut self, stripe: usize, symbol: usize, entries: &[Entry]) {
        let (drive, group) = (self.layout.drive(stripe, symbol), stripe / GROUP);
        let mut run: Vec<(usize, Stored)> = Vec::new();
        for (entry, stripe) in entries.iter().zip(stripe..) {
            let home = self.rule.position(stripe);
            run.push((home, Stored::Sector { value: entry.sum, sum: entry.sum, home }));
            if self.rule.has_tags() {
                self.memory[drive].unfolded[stripe] = Some(*entry);
            }
        }
        if self.rule == Rule::Carried && entries.len() == GROUP {
            let tags = Tags { group, entries: std::array::from_fn(|at| Some(entries[at])) };
            run.insert(GROUP / 2, (self.rule.tag_position(group), Stored::Tags(tags)));
            self.memory[drive].carried[group] = true;
        }
        for command in run.chunk_by(|one, next| one.0 + 1 == next.0) {
            let sectors: Vec<Stored> = command.iter().map(|sector| sector.1).collect();
            self.drives[drive].write(command[0].0, &sectors);
        }
        if self.rule == Rule::Beside {
            self.fold(drive, group);
        }
    }

    /// Writes a group's tag sector by a command of its own, unless it was carried and is there.
    fn fold(&mut self, drive: usize, group: usize) {
        let all = group * GROUP..(group + 1) * GROUP;
        let is_due = self.memory[drive].unfolded[all.clone()].iter().any(Option::is_some);
        if !is_due || self.rule == Rule::Parent {
            return;
        }
        let is_carried = std::mem::take(&mut self.memory[drive].carried[group]);
        if is_carried {
            self.memory[drive].cached[group] = None;
        }
        let read = self.tags(drive, group);
        let mut tags = read;
        for (at, stripe) in all.enumerate() {
            tags.entries[at] = self.memory[drive].unfolded[stripe].take().or(tags.entries[at]);
        }
        if !(is_carried && tags == read) {
            let position = self.rule.tag_position(group);
            self.drives[drive].write(position, &[Stored::Tags(tags)]);
        }
        self.memory[drive].cached[group] = Some(tags);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_symbols_of_a_codeword_give_the_others() {
        let data = [(0, 12_345), (1, PRIME - 7)];
        let word: Vec<Point> = (0..4).map(|at| (at, symbol_of(&data, at))).collect();
        assert_eq!(word[..2], data);
        for one in 0..4 {
            for two in (0..4).filter(|two| *two != one) {
                for (at, value) in &word {
                    assert_eq!(symbol_of(&[word[one], word[two]], *at), *value, "{one} {two} {at}");
                }
            }
        }
    }
}
