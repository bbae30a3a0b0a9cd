//! How one codeword is written: which of its symbols are read for that.
//!
//! | method | reads | possible when |
//! |---|---|---|
//! | reconstruct-write | data that does not change (none: a full-stripe write) | all of it is readable |
//! | read-modify-write | old values of what changes, old redundancy | all of it is readable |
//! | decode | any `data` symbols, and computes the others | `data` symbols are readable |
//! | plain | nothing; there is no redundancy to update | the drives written to are present |
//!
//! All of them write the same, so what they read is all that tells them apart. The one that reads the fewest drives that
//! hinder is taken; of those, with `level`, one whose reads cost far less than the others', and else the one that reads least.
//!
//! # References
//!
//! - `docs/level.md`, "Writes".

use std::cmp::Ordering;

use levelhead_erasure::SymbolSet;
use levelhead_units::{DriveIdx, DriveSet, Instant};

use crate::core::Core;
use crate::ops::fetch::Codeword;
use crate::policy::cost::{OldReads, Priced};
use crate::policy::tau::Share;

/// How one codeword is written, and the symbols that are read for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) method: Method,
    pub(crate) reads: SymbolSet,
}

/// How one codeword is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Plain,
    Reconstruct,
    Modify,
    Decode,
}

/// A way that reads more is taken where it costs less than the others by this factor: what is known of drives that are
/// alike varies by that much.
const CLEARLY: f64 = 2.5;

/// Which of two costs is less, if that is beyond doubt.
fn clearly(one: f64, other: f64) -> Ordering {
    let is_clear = one * CLEARLY < other || other * CLEARLY < one;
    if is_clear { one.total_cmp(&other) } else { Ordering::Equal }
}

/// What reading each drive costs at this moment, where that is asked for.
#[derive(Clone, Debug)]
pub(crate) enum Weights {
    /// Every read costs the same.
    Alike,
    /// For every drive.
    Each(Vec<Priced>),
}

impl Weights {
    /// As the drives are now, if the array's policy looks at that.
    pub(crate) fn now(core: &Core, now: Instant) -> Self {
        if !core.weighs_writes {
            return Self::Alike;
        }
        let view = core.drives.overview();
        let priced = |at: usize| {
            let idx = DriveIdx::from_usize(at);
            Priced::of(&view, &Share { idx, drive: core.drives.view(now, idx), wanted: 1 })
        };
        Self::Each((0..core.drives.count()).map(priced).collect())
    }

    /// What it costs to read from these drives before a write can go on.
    fn cost(&self, drives: DriveSet) -> f64 {
        match self {
            Self::Alike => 0.0,
            Self::Each(each) => {
                drives.iter().map(|drive| each[drive.as_usize()]).collect::<OldReads>().cost()
            }
        }
    }

    /// The order in which drives are asked where any will do.
    fn wait(&self, drive: DriveIdx) -> f64 {
        match self {
            Self::Alike => 0.0,
            Self::Each(each) => each[drive.as_usize()].wait(),
        }
    }
}

/// A codeword that is to be written, and what reading for that costs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice<'a> {
    pub(crate) word: &'a Codeword,
    pub(crate) data: SymbolSet,
    /// Symbols on drives that hinder.
    pub(crate) avoided: SymbolSet,
    pub(crate) weights: &'a Weights,
    /// Of each symbol its drive.
    pub(crate) drives: &'a [DriveIdx],
}

impl Choice<'_> {
    /// The way to write the codeword; `None` if there is none.
    pub(crate) fn cheapest(&self) -> Option<Way> {
        let Self { word, data, .. } = *self;
        let redundant = word.usable.minus(data);
        let changed = word.subject;
        if redundant.is_empty() {
            let reachable = changed.minus(word.usable).is_empty();
            return reachable.then_some(Way { method: Method::Plain, reads: SymbolSet::EMPTY });
        }
        let readable = readable(word);
        let reads = data.minus(changed).minus(word.listed);
        let reconstruct = Way { method: Method::Reconstruct, reads };
        let modify = Way { method: Method::Modify, reads: changed.or(redundant) };
        let mut ways: Vec<Way> = [reconstruct, modify]
            .into_iter()
            .filter(|way| way.reads.minus(readable).is_empty())
            .collect();
        // F4: what is had does not match, and the other ways do not change that.
        let decode = self.enough(readable).filter(|_| word.wrong.is_empty());
        ways.extend(decode.map(|reads| Way { method: Method::Decode, reads }));
        // Of equal ways the first is taken: reconstruct-write makes redundancy right even where it was wrong before.
        ways.into_iter().min_by(|one, other| {
            let [one, other] = [one, other].map(|way| way.reads.minus(word.have));
            let hindered = |reads: SymbolSet| reads.and(self.avoided).len();
            let cost = |reads: SymbolSet| self.weights.cost(self.on(reads));
            hindered(one)
                .cmp(&hindered(other))
                .then_with(|| clearly(cost(one), cost(other)))
                .then_with(|| one.len().cmp(&other.len()))
        })
    }

    fn on(&self, symbols: SymbolSet) -> DriveSet {
        symbols.iter().map(|symbol| self.drives[symbol]).collect()
    }

    /// As many readable symbols as there are data symbols: those already had, then those of the drives that answer
    /// soonest, data before redundancy where that is the same, and what is to be avoided last.
    fn enough(&self, readable: SymbolSet) -> Option<SymbolSet> {
        let Self { word, data, avoided, .. } = *self;
        let mut rest: Vec<usize> = readable.minus(word.have).iter().collect();
        let wait = |symbol: usize| self.weights.wait(self.drives[symbol]);
        rest.sort_by(|&one, &other| {
            let is_avoided = |symbol| avoided.contains(symbol);
            is_avoided(one).cmp(&is_avoided(other)).then_with(|| wait(one).total_cmp(&wait(other)))
        });
        let chosen: SymbolSet = word.have.iter().chain(rest).take(data.len()).collect();
        (chosen.len() == data.len()).then_some(chosen)
    }
}

/// The symbols that were read or may yet be read. A symbol that was not given with retries cannot be read.
pub(crate) fn readable(word: &Codeword) -> SymbolSet {
    word.usable.minus(word.damaged).minus(word.unknown).or(word.have)
}

/// How the copies of a codeword are made alike: one of them is read. Where one is left, nothing is to be done.
pub(crate) fn copying(word: &Codeword) -> Option<Way> {
    let reads: SymbolSet = match word.usable.len() {
        0 | 1 => SymbolSet::EMPTY,
        _ if !word.have.is_empty() => word.have,
        _ => std::iter::once(readable(word).iter().next()?).collect(),
    };
    Some(Way { method: Method::Reconstruct, reads })
}

#[cfg(test)]
mod tests {
    use levelhead_units::Sectors;

    use super::*;
    use crate::ops::fetch::Fetch;
    use crate::shape::{Layout, Row};

    /// A write of the first data symbol of an array whose drives have these waits, in seconds.
    fn way(spec: &str, waits: &[f64], avoided: &[usize]) -> Way {
        let layout = Layout::new(spec.parse().unwrap(), Sectors::new(8));
        let row = Row { stripe: 0, row: 0 };
        let mut fetch = Fetch::new(0, 0, None);
        fetch.add(&layout, row, SymbolSet::first(layout.symbols()));
        let word = &mut fetch.codewords[0];
        word.subject = SymbolSet::first(1);
        let each = waits.iter().map(|&wait| Priced::alone(wait)).collect();
        let drives: Vec<DriveIdx> =
            (0..layout.symbols()).map(|symbol| layout.cell(row, symbol).drive).collect();
        let choice = Choice {
            word,
            data: SymbolSet::first(layout.data_symbols()),
            avoided: avoided.iter().copied().collect(),
            weights: &Weights::Each(each),
            drives: &drives,
        };
        choice.cheapest().expect("everything can be read")
    }

    fn on(spec: &str, way: Way) -> Vec<usize> {
        let layout = Layout::new(spec.parse().unwrap(), Sectors::new(8));
        let row = Row { stripe: 0, row: 0 };
        let drive = |symbol| layout.cell(row, symbol).drive.as_usize();
        let mut drives: Vec<usize> = way.reads.iter().map(drive).collect();
        drives.sort_unstable();
        drives
    }

    const WIDE: &str = "raid5:5+1,chunk=4KiB";

    #[test]
    fn drives_that_are_alike_are_read_as_little_as_possible() {
        let modify = way(WIDE, &[0.01; 6], &[]);
        assert_eq!((modify.method, modify.reads.len()), (Method::Modify, 2));
        let narrow = way("raid5:2+1,chunk=4KiB", &[0.01; 3], &[]);
        assert_eq!((narrow.method, narrow.reads.len()), (Method::Reconstruct, 1));
    }

    #[test]
    fn slow_drive_is_gone_round_once_that_costs_less() {
        let own = on(WIDE, way(WIDE, &[0.01; 6], &[]))[0];
        let slow = |times: f64| {
            let mut waits = [0.01; 6];
            waits[own] *= times;
            way(WIDE, &waits, &[]).method
        };
        assert_eq!(slow(1.2), Method::Modify);
        assert_eq!(slow(5.0), Method::Reconstruct);
    }

    #[test]
    fn decoding_reads_the_drives_that_answer_soonest_and_those_that_hinder_last() {
        let spec = "raid6:3+2,chunk=4KiB";
        // The other data is on drives that hinder, and so is what changes: three are left, which suffice.
        let layout = Layout::new(spec.parse().unwrap(), Sectors::new(8));
        let drive = |symbol| layout.cell(Row { stripe: 0, row: 0 }, symbol).drive.as_usize();
        let found = way(spec, &[0.01; 5], &[1, 3]);
        assert_eq!(found.method, Method::Decode);
        assert_eq!(found.reads, [0, 2, 4].into_iter().collect());
        let mut waits = [0.01; 5];
        waits[drive(2)] = 1.0;
        let found = way(spec, &waits, &[1]);
        assert!(!found.reads.contains(2) && !found.reads.contains(1), "{found:?}");
    }
}
