//! Checksums of what transactions of the journal write: each of their records names all of them, whichever ring it goes to.

use std::collections::BTreeMap;

/// Transactions that are remembered: records of more are rarely on their way, and each has some kilobytes at most.
const MOST: usize = 256;

/// The checksums of the last transactions, by their ids. What a transaction writes never changes, and no two of a run have the same
/// id.
#[derive(Debug, Default)]
pub(super) struct SumsOfTransactions(BTreeMap<u64, Vec<u32>>);

impl SumsOfTransactions {
    /// Those of a transaction, computed if they are not known.
    pub(super) fn of(&mut self, id: u64, compute: impl FnOnce() -> Vec<u32>) -> &[u32] {
        while self.0.len() >= MOST && !self.0.contains_key(&id) {
            self.0.pop_first();
        }
        self.0.entry(id).or_insert_with(compute)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_of_a_transaction_are_computed_once_while_few_others_are_under_way() {
        let (mut sums, mut computed) = (SumsOfTransactions::default(), 0);
        let mut ask = |id: u64| {
            let compute = || {
                computed += 1;
                vec![id as u32]
            };
            assert_eq!(sums.of(id, compute), [id as u32]);
            computed
        };
        let first: Vec<i32> = (0..MOST as u64).map(&mut ask).collect();
        assert_eq!(first.last(), Some(&(MOST as i32)));
        assert_eq!(ask(3), MOST as i32, "it is known");
        assert_eq!(ask(MOST as u64), MOST as i32 + 1, "the oldest is forgotten");
        assert_eq!(ask(3), MOST as i32 + 1);
        assert_eq!(ask(0), MOST as i32 + 2);
    }
}
