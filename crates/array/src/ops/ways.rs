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
//! hinder is taken; of those, with `level`, the one that reads the fewest drives that lag, unless it reads more than three
//! times as much as another one; and of those the one that reads least.
//!
//! # References
//!
//! - `docs/level.md`, "Writes".

use levelhead_erasure::SymbolSet;

use crate::ops::fetch::Codeword;

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

/// A drive that lags takes about this many times as long as another one, and is worth as many reads.
const ROUND_MAX: usize = 3;

/// A codeword that is to be written, and which of its symbols are read only where that cannot be helped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice<'a> {
    pub(crate) word: &'a Codeword,
    pub(crate) data: SymbolSet,
    /// Symbols on drives that hinder.
    pub(crate) avoided: SymbolSet,
    /// Symbols on drives that lag.
    pub(crate) lagging: SymbolSet,
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
        let reads = |way: &Way| way.reads.minus(word.have);
        let least = ways.iter().map(|way| reads(way).len()).min().unwrap_or(0);
        // Of equal ways the first is taken: reconstruct-write makes redundancy right even where it was wrong before.
        ways.into_iter().min_by_key(|way| {
            let reads = reads(way);
            let lagging = match reads.len() <= ROUND_MAX * least {
                true => reads.and(self.lagging).len(),
                false => usize::MAX,
            };
            (reads.and(self.avoided).len(), lagging, reads.len())
        })
    }

    /// As many readable symbols as there are data symbols: those already had, then those on drives that do not lag, data
    /// before redundancy, and what is to be avoided last.
    fn enough(&self, readable: SymbolSet) -> Option<SymbolSet> {
        let Self { word, data, avoided, lagging } = *self;
        let mut rest: Vec<usize> = readable.minus(word.have).iter().collect();
        rest.sort_by_key(|&symbol| (avoided.contains(symbol), lagging.contains(symbol)));
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

    /// A write of the first data symbol of an array of which these symbols are on drives that lag, and these on drives
    /// that hinder.
    fn way(spec: &str, lagging: &[usize], avoided: &[usize]) -> Way {
        let layout = Layout::new(spec.parse().unwrap(), Sectors::new(8));
        let row = Row { stripe: 0, row: 0 };
        let mut fetch = Fetch::new(0, 0, None);
        fetch.add(&layout, row, SymbolSet::first(layout.symbols()));
        let word = &mut fetch.codewords[0];
        word.subject = SymbolSet::first(1);
        let [lagging, avoided] = [lagging, avoided].map(|those| those.iter().copied().collect());
        let data = SymbolSet::first(layout.data_symbols());
        Choice { word, data, avoided, lagging }.cheapest().expect("everything can be read")
    }

    const WIDE: &str = "raid5:5+1,chunk=4KiB";

    #[test]
    fn drives_that_are_alike_are_read_as_little_as_possible() {
        let modify = way(WIDE, &[], &[]);
        assert_eq!((modify.method, modify.reads.len()), (Method::Modify, 2));
        let narrow = way("raid5:2+1,chunk=4KiB", &[], &[]);
        assert_eq!((narrow.method, narrow.reads.len()), (Method::Reconstruct, 1));
    }

    #[test]
    fn drive_that_lags_is_not_read_where_another_way_does_without_it() {
        let own = way(WIDE, &[], &[]).reads.iter().next().expect("it reads two");
        assert_eq!(way(WIDE, &[own], &[]).method, Method::Reconstruct);
        assert_eq!(way(WIDE, &[own], &[1]).method, Method::Modify, "another one hinders");
        assert_eq!(way(WIDE, &[own, 1], &[]).method, Method::Modify, "one each: the fewest reads");
        let wide = "raid5:9+1,chunk=4KiB";
        assert_eq!(way(wide, &[0], &[]).method, Method::Modify, "eight reads in place of two");
        assert_eq!(way(wide, &[0], &[0]).method, Method::Reconstruct, "it hinders");
    }

    #[test]
    fn decoding_reads_drives_that_lag_after_others_and_those_that_hinder_last() {
        let spec = "raid6:3+2,chunk=4KiB";
        // The other data is on drives that hinder, and so is what changes: three are left, which suffice.
        let found = way(spec, &[], &[1, 3]);
        assert_eq!(found.method, Method::Decode);
        assert_eq!(found.reads, [0, 2, 4].into_iter().collect());
        let found = way(spec, &[2], &[1]);
        assert!(!found.reads.contains(2) && !found.reads.contains(1), "{found:?}");
    }
}
