//! What a codeword of a read needs next: a function of what is had, what is on its way, and whom the
//! read counts on.
//!
//! ```text
//!   may the data be given? --> nothing
//!   will what is on its way do? --> wait
//!   do untried symbols make up for what is lacking? --> those
//!   do lost ones, read again with retries? --> the fewest
//! ```
//!
//! The same questions are asked three times, ever less choosy: with neither slow nor late drives, with
//! slow ones, with all. A sector is given up when the last time brings nothing.

use levelhead_erasure::SymbolSet;

use crate::fetch::Codeword;
use crate::policy::{Again, AnswerWhen, Late, Plan};

/// What a codeword needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
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

/// Symbols that are not counted on while the others can do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doubtful {
    /// On drives that are set aside: slow, or sitting out.
    pub(crate) aside: SymbolSet,
    /// On drives that have not answered this read in time.
    pub(crate) late: SymbolSet,
}

/// What decides about a codeword's next step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// Symbols that decode.
    pub(crate) data: usize,
    pub(crate) plan: Plan,
    /// Whether asking again with retries is possible.
    pub(crate) retry: bool,
}

impl Rule {
    /// The next step.
    pub(crate) fn next(&self, word: &Codeword, doubtful: Doubtful) -> Need {
        let Doubtful { aside, late } = doubtful;
        let tiers = [aside.or(late), late, SymbolSet::EMPTY];
        let last = if word.pending.is_empty() { Need::Hopeless } else { Need::Wait };
        tiers.into_iter().find_map(|without| self.need(word, without)).unwrap_or(last)
    }

    /// Whether what is on its way will do, without these symbols, if no sector fails.
    pub(crate) fn suffices(&self, word: &Codeword, without: SymbolSet) -> bool {
        let coming = word.pending.minus(without);
        let missing = word.subject.minus(word.have);
        missing.minus(coming).is_empty() || word.have.or(coming).len() >= self.data
    }

    /// The next step without these symbols, if there is one.
    fn need(&self, word: &Codeword, without: SymbolSet) -> Option<Need> {
        let missing = word.subject.minus(word.have);
        let may_decode = match self.plan.answer {
            AnswerWhen::Decodable => true,
            AnswerWhen::OwnFailed => missing.and(word.pending).is_empty(),
        };
        if missing.is_empty() || (may_decode && word.have.len() >= self.data) {
            return Some(Need::Nothing);
        }
        if self.suffices(word, without) {
            return Some(Need::Wait);
        }
        let prompt = word.pending.minus(without);
        let lacking = missing.minus(prompt);
        let hoped = word.have.or(prompt);
        let untried = word.usable.minus(word.tried).minus(without);
        if hoped.or(untried).len() >= self.data {
            return Some(Need::Rest(self.rest(untried, self.data - hoped.len())));
        }
        if !lacking.and(untried).is_empty() {
            return Some(Need::Rest(lacking.and(untried)));
        }
        let failed = word.unknown.and(word.usable).minus(word.pending);
        let unknown = failed.minus(word.retried).minus(word.damaged).minus(without);
        let again = || self.again(lacking, hoped, untried, unknown);
        if self.retry { again().map(Need::Retry) } else { None }
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
