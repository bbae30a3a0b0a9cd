//! What a codeword of a read needs next: a function of the symbols that were read, those that are being read, and
//! the drives that the read counts on.
//!
//! ```text
//!   can the data be given? --> nothing
//!   do the symbols suffice that are being read? --> wait
//!   do untried symbols suffice with them? --> those
//!   do symbols that were not given, read again with retries? --> the fewest
//! ```
//!
//! The same questions are asked up to three times: without the slow and the late drives, with the slow ones,
//! and with all drives. A sector is given up when the third time gives no answer either. Before retries are made it is
//! asked once more, whether what is on its way from drives that are only behind would do: that is waited for.

use levelhead_erasure::SymbolSet;

use crate::ops::fetch::Codeword;
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
    /// Those of them that are not waited for where retries would do: under `level` on drives that are silent or stuck.
    pub(crate) stuck: SymbolSet,
}

/// What decides about a codeword's next step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// Symbols that decode.
    pub(crate) data: usize,
    pub(crate) plan: Plan,
    /// Whether asking again with retries is possible.
    pub(crate) retry: bool,
    /// How much of the rest of a codeword is asked for.
    pub(crate) rest: Rest,
}

/// How much of the rest of a codeword is asked for after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// All of it: the first answers will do.
    Whole,
    /// As much as is needed: of copies, one.
    Fewest,
}

impl Rule {
    /// The next step.
    pub(crate) fn next(&self, word: &Codeword, doubtful: Doubtful) -> Need {
        let Doubtful { aside, late, stuck } = doubtful;
        let missing = word.subject.minus(word.have);
        if missing.is_empty() {
            return Need::Nothing;
        }
        // Nearly always what is missing is on its way, from drives that are counted on.
        let prompt = word.pending.minus(aside).minus(late);
        if missing.minus(prompt).is_empty() && word.have.len() < self.data {
            return Need::Wait;
        }
        let rule = self.of(word);
        let need = |without| rule.need(word, without, late);
        let found = match need(aside.or(late)) {
            // What is only behind costs less to wait for.
            Some(Need::Retry(_)) if need(aside.or(stuck)) == Some(Need::Wait) => Some(Need::Wait),
            found => found,
        };
        let found = found.or_else(|| need(late)).or_else(|| need(SymbolSet::EMPTY));
        let last = if word.pending.is_empty() { Need::Hopeless } else { Need::Wait };
        found.unwrap_or(last)
    }

    /// The rule of a codeword: no symbols decode one of which what is had does not match (F4).
    fn of(self, word: &Codeword) -> Self {
        let data = if word.wrong.is_empty() { self.data } else { usize::MAX };
        Self { data, ..self }
    }

    /// Whether what is on its way will do, without these symbols, if no sector fails.
    pub(crate) fn suffices(&self, word: &Codeword, without: SymbolSet) -> bool {
        let coming = word.pending.minus(without);
        let missing = word.subject.minus(word.have);
        missing.minus(coming).is_empty() || word.have.or(coming).len() >= self.of(word).data
    }

    /// The next step without these symbols, if there is one, of a codeword of which some symbols are missing. What is `late` is not waited for once the codeword
    /// decodes.
    fn need(&self, word: &Codeword, without: SymbolSet, late: SymbolSet) -> Option<Need> {
        let missing = word.subject.minus(word.have);
        let may_decode = match self.plan.answer {
            AnswerWhen::Decodable => true,
            AnswerWhen::OwnFailed => missing.and(word.pending).minus(late).is_empty(),
        };
        if may_decode && word.have.len() >= self.data {
            return Some(Need::Nothing);
        }
        if self.suffices(word, without) {
            return Some(Need::Wait);
        }
        let prompt = word.pending.minus(without);
        let lacking = missing.minus(prompt);
        let hoped = word.have.or(prompt);
        let untried = word.usable.minus(word.tried).minus(without);
        let failed = word.unknown.and(word.usable).minus(word.pending);
        let unknown = failed.minus(word.retried).minus(word.damaged).minus(without);
        if hoped.or(untried).len() >= self.data {
            return Some(Need::Rest(self.rest(word, untried, self.data - hoped.len())));
        }
        if !lacking.and(untried).is_empty() {
            return Some(Need::Rest(lacking.and(untried)));
        }
        let again = || self.again(lacking, hoped, untried, unknown);
        if self.retry { again().map(Need::Retry) } else { None }
    }

    /// Which untried symbols are asked for when `needed` of them are needed: all, or only that number where a drive
    /// is late and no sector has failed.
    fn rest(&self, word: &Codeword, untried: SymbolSet, needed: usize) -> SymbolSet {
        match (self.rest, self.plan.late) {
            (Rest::Whole, Late::Never | Late::Noted(_)) => untried,
            (Rest::Whole, Late::WhenSlow) if !word.unknown.is_empty() => untried,
            (Rest::Fewest, _) | (_, Late::TimesMedian(_) | Late::WhenSlow) => {
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

#[cfg(test)]
mod tests {
    use levelhead_units::Sectors;

    use super::*;
    use crate::ops::fetch::Fetch;
    use crate::shape::{Layout, Row};

    const RULE: Rule = Rule {
        data: 4,
        plan: Plan { again: Again::Fewest, ..LATE },
        retry: true,
        rest: Rest::Whole,
    };

    const LATE: Plan = Plan { answer: AnswerWhen::Decodable, late: Late::WhenSlow, ..Plan::NORMAL };

    fn set(symbols: &[usize]) -> SymbolSet {
        symbols.iter().copied().collect()
    }

    /// A codeword of four data symbols and two redundant ones: these are wanted, these are had, little
    /// effort did not give these, and these are on their way.
    fn word(subject: &[usize], have: &[usize], unknown: &[usize], pending: &[usize]) -> Codeword {
        let layout = Layout::new("raid6:4+2,chunk=4KiB".parse().unwrap(), Sectors::new(8));
        let mut fetch = Fetch::new(1, 1, None);
        fetch.add(&layout, Row { stripe: 0, row: 0 }, SymbolSet::first(6));
        let mut word = fetch.codewords.remove(0);
        (word.subject, word.have) = (set(subject), set(have));
        (word.unknown, word.pending) = (set(unknown), set(pending));
        word.tried = word.have.or(word.unknown).or(word.pending);
        word
    }

    fn next(word: &Codeword, aside: &[usize], late: &[usize]) -> Need {
        let [aside, late] = [aside, late].map(set);
        RULE.next(word, Doubtful { aside, late, stuck: late })
    }

    #[test]
    fn what_is_on_its_way_is_waited_for_unless_its_drive_is_slow_or_late() {
        let word = word(&[0], &[], &[], &[0]);
        let others = Need::Rest(set(&[1, 2, 4, 5]));
        assert_eq!(next(&word, &[], &[]), Need::Wait);
        assert_eq!(next(&word, &[0], &[]), others);
        assert_eq!(next(&word, &[], &[0]), others);
        assert_eq!(next(&word, &[0, 1], &[]), Need::Rest(set(&[2, 3, 4, 5])));
        assert_eq!(next(&word, &[1], &[0, 2]), Need::Rest(set(&[1, 3, 4, 5])), "slow, not late");
        assert_eq!(next(&word, &[0, 1], &[2]), Need::Wait, "the slow one that has been asked");
        assert_eq!(next(&word, &[], &[0, 1, 2]), Need::Wait, "three others are too few");
    }

    #[test]
    fn for_a_lost_sector_all_others_are_asked_and_for_a_late_one_as_many_as_decode() {
        let (lost, late) = (word(&[0], &[], &[0], &[]), word(&[0], &[], &[], &[0]));
        assert_eq!(next(&lost, &[], &[]), Need::Rest(set(&[1, 2, 3, 4, 5])));
        assert_eq!(next(&late, &[], &[0]), Need::Rest(set(&[1, 2, 4, 5])), "redundant ones first");
    }

    #[test]
    fn retries_are_the_fewest_that_do() {
        let word = word(&[0, 1], &[3, 4, 5], &[0, 1, 2], &[]);
        assert_eq!(next(&word, &[], &[]), Need::Retry(set(&[0])));
        let all = Rule { plan: Plan { again: Again::Requested, ..RULE.plan }, ..RULE };
        let none = SymbolSet::EMPTY;
        let none = Doubtful { aside: none, late: none, stuck: none };
        assert_eq!(all.next(&word, none), Need::Retry(set(&[0, 1])));
    }

    #[test]
    fn wanted_sectors_are_retried_before_others() {
        let word = word(&[1, 2], &[3, 4, 5], &[0, 1, 2], &[]);
        assert_eq!(next(&word, &[], &[]), Need::Retry(set(&[1])));
        assert_eq!(
            next(&word, &[1, 2], &[]),
            Need::Retry(set(&[0])),
            "the others' drives are slow"
        );
    }

    #[test]
    fn what_was_never_tried_goes_along_with_a_retry() {
        let mut word = word(&[0, 1], &[2], &[0, 1], &[]);
        (word.tried, word.damaged) = (word.tried.with(5), set(&[5]));
        assert_eq!(next(&word, &[], &[]), Need::Retry(set(&[0, 3, 4])));
    }

    #[test]
    fn drives_that_are_slow_or_late_are_spared_retries_while_another_can_do() {
        let word = word(&[0, 1], &[3, 4, 5], &[0, 1, 2], &[]);
        assert_eq!(next(&word, &[0], &[]), Need::Retry(set(&[1])));
        assert_eq!(next(&word, &[0], &[1]), Need::Retry(set(&[2])));
        assert_eq!(next(&word, &[0, 2], &[1]), Need::Retry(set(&[0])), "slow rather than late");
    }

    /// A retry takes the drive's time from all who wait behind it.
    #[test]
    fn drive_that_is_only_behind_is_waited_for_before_retries_are_made() {
        let word = word(&[0, 1], &[2, 3, 4], &[0], &[1, 5]);
        let (none, one) = (SymbolSet::EMPTY, set(&[1, 5]));
        let next = |aside, late, stuck| RULE.next(&word, Doubtful { aside, late, stuck });
        assert_eq!(next(none, one, none), Need::Wait);
        assert_eq!(next(one, none, none), Need::Retry(set(&[0])), "it is set aside");
        assert_eq!(next(none, one, one), Need::Retry(set(&[0])), "it is stuck");
    }

    #[test]
    fn a_sector_is_given_up_when_nothing_is_left_to_try() {
        let mut word = word(&[0], &[3, 4, 5], &[0, 1, 2], &[]);
        (word.retried, word.damaged) = (set(&[0, 1, 2]), set(&[0, 1, 2]));
        assert_eq!(next(&word, &[], &[]), Need::Hopeless);
        (word.have, word.damaged) = (word.have.with(2), set(&[0, 1]));
        assert_eq!(next(&word, &[], &[]), Need::Nothing);
    }
}
