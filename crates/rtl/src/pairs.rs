//! Sums of constant matrices over GF(2): gates of two inputs, with common pairs shared.
//!
//! The greedy method of `[Paar97]`: the pair of terms that most rows have becomes a gate and a term of its own, until no pair is in two rows. Ours keeps a
//! bound on the depth as well: a row takes a gate only if what is left of it still fits below the bound.
//!
//! # Invariants
//!
//! - P1. A row of terms with levels `l` can be summed in depth `d` if and only if its weight, the sum of
//!   `2^l`, is at most `2^d`. No step takes a row above the bound.
//! - P2. A pair is looked at once: a row that could not take it then cannot take it later, since weights
//!   only grow.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A gate: the sum of two nodes. Inputs are nodes 0 and up; gates are numbered after them, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Gate {
    pub(crate) left: usize,
    pub(crate) right: usize,
}

/// Gates, each after those that it uses, and the node of each row; none for a row without terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    pub(crate) gates: Vec<Gate>,
    pub(crate) rows: Vec<Option<usize>>,
}

/// How good a pair is: by how many rows have it, then by how early it is ready.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    rows: usize,
    level: Reverse<u32>,
    pair: Reverse<Gate>,
}

struct Sharing {
    /// The depth of each node.
    levels: Vec<u32>,
    rows: Vec<BTreeSet<usize>>,
    weights: Vec<u64>,
    depth: u32,
    counts: BTreeMap<Gate, usize>,
    ranks: BTreeSet<Rank>,
    done: BTreeSet<Gate>,
    gates: Vec<Gate>,
}

/// The sums of `rows`, each a set of inputs, whose depths are `levels`, with gates no deeper than `depth`;
/// none if a row does not fit.
pub(crate) fn share(rows: Vec<BTreeSet<usize>>, levels: Vec<u32>, depth: u32) -> Option<Network> {
    let weight = |row: &BTreeSet<usize>| row.iter().map(|&term| 1 << levels[term]).sum::<u64>();
    let weights: Vec<u64> = rows.iter().map(weight).collect();
    if weights.iter().any(|&weight| weight > 1 << depth) {
        return None;
    }
    let mut sharing = Sharing {
        levels,
        rows: Vec::new(),
        weights,
        depth,
        counts: BTreeMap::new(),
        ranks: BTreeSet::new(),
        done: BTreeSet::new(),
        gates: Vec::new(),
    };
    for row in &rows {
        for &left in row {
            for &right in row.range(left + 1..) {
                sharing.count(Gate { left, right }, 1);
            }
        }
    }
    sharing.rows = rows;
    while let Some(best) = sharing.ranks.last().copied() {
        if best.rows < 2 {
            break;
        }
        sharing.take(best.pair.0);
    }
    let rows = (0..sharing.rows.len()).map(|row| sharing.finish(row)).collect();
    Some(Network { gates: sharing.gates, rows })
}

impl Sharing {
    fn level(&self, gate: Gate) -> u32 {
        self.levels[gate.left].max(self.levels[gate.right]) + 1
    }

    /// One row more or less has a pair.
    fn count(&mut self, pair: Gate, change: isize) {
        if self.done.contains(&pair) {
            return;
        }
        let before = self.counts.get(&pair).copied().unwrap_or(0);
        let after = before.checked_add_signed(change).expect("a pair is in no fewer than 0 rows");
        let rank = |rows| Rank { rows, level: Reverse(self.level(pair)), pair: Reverse(pair) };
        let (old, new) = (rank(before), rank(after));
        self.ranks.remove(&old);
        if after == 0 {
            self.counts.remove(&pair);
        } else {
            self.counts.insert(pair, after);
            self.ranks.insert(new);
        }
    }

    /// What a row weighs more with a gate in place of its two terms.
    fn more(&self, pair: Gate) -> u64 {
        (1 << self.level(pair)) - (1 << self.levels[pair.left]) - (1 << self.levels[pair.right])
    }

    fn node(&mut self, gate: Gate) -> usize {
        self.levels.push(self.level(gate));
        self.gates.push(gate);
        self.levels.len() - 1
    }

    /// Makes a gate of a pair, in every row that has room for it.
    fn take(&mut self, pair: Gate) {
        let more = self.more(pair);
        let takes = |row: usize| {
            let terms = &self.rows[row];
            let has_both = terms.contains(&pair.left) && terms.contains(&pair.right);
            has_both && self.weights[row] + more <= 1 << self.depth
        };
        let rows: Vec<usize> = (0..self.rows.len()).filter(|&row| takes(row)).collect();
        if rows.len() >= 2 {
            let node = self.node(pair);
            for row in rows {
                let mut terms = std::mem::take(&mut self.rows[row]);
                terms.remove(&pair.left);
                terms.remove(&pair.right);
                for &other in &terms {
                    for gone in [pair.left, pair.right] {
                        let gone = Gate { left: gone.min(other), right: gone.max(other) };
                        self.count(gone, -1);
                    }
                    self.count(Gate { left: other, right: node }, 1);
                }
                terms.insert(node);
                self.rows[row] = terms;
                self.weights[row] += more;
            }
        }
        self.done.insert(pair);
        if let Some(rows) = self.counts.remove(&pair) {
            self.ranks.remove(&Rank {
                rows,
                level: Reverse(self.level(pair)),
                pair: Reverse(pair),
            });
        }
    }

    /// Sums what is left of a row, the earliest terms first: its node.
    fn finish(&mut self, row: usize) -> Option<usize> {
        let mut terms: BTreeSet<Ready> = BTreeSet::new();
        for &node in &self.rows[row] {
            terms.insert(Ready { level: self.levels[node], node });
        }
        loop {
            let left = terms.pop_first()?.node;
            let Some(right) = terms.pop_first() else { return Some(left) };
            let node = self.node(Gate { left, right: right.node });
            terms.insert(Ready { level: self.levels[node], node });
        }
    }
}

/// A term, by when it is ready.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ready {
    level: u32,
    node: usize,
}

#[cfg(test)]
mod tests {
    use levelhead_stats::{Rng, Streams};

    use super::*;

    fn random_rows(rng: &mut Rng) -> Vec<BTreeSet<usize>> {
        (0..24).map(|_| (0..32).filter(|_| rng.below(2) == 1).collect()).collect()
    }

    /// What a network gives for an input, node by node, and how deep each is.
    fn run(network: &Network, inputs: &[bool], levels: &[u32]) -> (Vec<bool>, u32) {
        let (mut nodes, mut depths) = (inputs.to_vec(), levels.to_vec());
        for gate in &network.gates {
            nodes.push(nodes[gate.left] ^ nodes[gate.right]);
            depths.push(depths[gate.left].max(depths[gate.right]) + 1);
        }
        let sums = network.rows.iter().map(|row| row.is_some_and(|node| nodes[node])).collect();
        (sums, depths.into_iter().max().unwrap_or(0))
    }

    #[test]
    fn sums_are_those_of_the_rows_within_the_depth_and_with_fewer_gates() {
        let mut rng = Streams::new(5).stream("pairs");
        for round in 0..20 {
            let rows = random_rows(&mut rng);
            let levels: Vec<u32> = (0..32).map(|_| rng.below(3) as u32).collect();
            let network = share(rows.clone(), levels.clone(), 8).expect("32 terms fit");
            let alone: usize = rows.iter().map(|row| row.len().saturating_sub(1)).sum();
            assert!(network.gates.len() * 3 < alone * 2, "{} of {alone}", network.gates.len());
            for _ in 0..20 {
                let inputs: Vec<bool> = (0..32).map(|_| rng.below(2) == 1).collect();
                let (sums, depth) = run(&network, &inputs, &levels);
                let naive =
                    |row: &BTreeSet<usize>| row.iter().fold(false, |sum, &at| sum ^ inputs[at]);
                assert_eq!(sums, rows.iter().map(naive).collect::<Vec<_>>(), "round {round}");
                assert!(depth <= 8);
            }
        }
    }

    #[test]
    fn bound_on_the_depth_is_kept_where_it_is_tight_and_refused_where_it_cannot_be() {
        let row: BTreeSet<usize> = (0..8).collect();
        let tight = share(vec![row.clone(), row.clone()], vec![0; 8], 3).expect("8 terms, depth 3");
        assert_eq!(tight.gates.len(), 7);
        assert_eq!(run(&tight, &[true; 8], &[0; 8]).1, 3);
        assert_eq!(share(vec![row], vec![0; 8], 2), None);
        let nothing = share(vec![BTreeSet::new()], vec![0; 8], 0).expect("nothing is summed");
        assert_eq!(nothing, Network { gates: vec![], rows: vec![None] });
    }
}
