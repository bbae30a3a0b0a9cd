//! The tree of an inode: numbers with some bytes each, in the order of the numbers.
//!
//! Its root lies in the inode; nodes below it are units that the inode owns. A node that is full parts in two; one that is empty
//! goes.

use levelhead_units::Lba;

use crate::attempt::{Attempt, Stop, broken};
use crate::format::fields::Fields;
use crate::format::inode::{Form, INLINE, Inode};
use crate::format::node::{DEPTH_MAX, KEY_END, Node, Pair};
use crate::format::packed::{self, Packed};
use crate::format::unit::{BODY, Kind};
use crate::request::Errno;

/// Pairs that one attempt takes away from a tree that is to be empty.
const EMPTIED: usize = 64;

/// A node on the way down.
struct Step {
    /// Where it lies; nothing for the root.
    lead: Option<Lba>,
    node: Node,
    /// The child that was taken, or the pair that has come in.
    child: usize,
}

/// An inode and its number.
#[derive(Debug)]
pub(crate) struct Owned<'a> {
    pub(crate) number: u64,
    pub(crate) inode: &'a mut Inode,
}

fn root(inode: &Inode) -> Result<Node, Stop> {
    broken(Node::decode(&inode.inline))
}

fn child(pair: &Pair) -> Lba {
    Lba::new(Fields(&pair.value).u64(0))
}

fn pointer(key: u64, lead: Lba) -> Pair {
    Pair { key, value: lead.get().to_le_bytes().to_vec() }
}

impl Attempt<'_> {
    fn node(&mut self, lead: Lba, owner: u64, depth: u8) -> Result<Node, Stop> {
        let node = broken(Node::decode(self.read(lead, Kind::Node, owner)?))?;
        // A child that is not below its parent would have no end.
        broken((node.depth == depth && !node.pairs.is_empty()).then_some(node))
    }

    /// The lead of the leaf for a key; nothing if the root is one.
    fn leaf_of(&mut self, number: u64, inode: &Inode, key: u64) -> Result<Option<Lba>, Stop> {
        let mut node = broken(Packed::new(&inode.inline))?;
        let mut lead = None;
        while node.depth() > 0 {
            let pair = broken(node.floor(key).or_else(|| node.first()))?;
            let (below, depth) = (Lba::new(Fields(pair.value).u64(0)), node.depth() - 1);
            lead = Some(below);
            node = broken(Packed::new(self.read(below, Kind::Node, number)?))?;
            // A child that is not below its parent would have no end.
            broken((node.depth() == depth && node.count() > 0).then_some(()))?;
        }
        Ok(lead)
    }

    /// A leaf, by its lead.
    fn leaf<'b>(
        &'b mut self,
        number: u64,
        inode: &'b Inode,
        lead: Option<Lba>,
    ) -> Result<Packed<'b>, Stop> {
        let bytes = match lead {
            Some(lead) => self.read(lead, Kind::Node, number)?,
            None => &inode.inline[..],
        };
        broken(Packed::new(bytes))
    }

    /// The same, to be changed.
    fn change_leaf<'b>(
        &'b mut self,
        of: &'b mut Owned<'_>,
        lead: Option<Lba>,
    ) -> Result<&'b mut [u8], Stop> {
        match lead {
            Some(lead) => self.change(lead, Kind::Node, of.number),
            None => Ok(&mut of.inode.inline),
        }
    }

    /// The leaf for a key, and the nodes above it.
    fn descend(&mut self, number: u64, inode: &Inode, key: u64) -> Result<Vec<Step>, Stop> {
        let mut steps = vec![Step { lead: None, node: root(inode)?, child: 0 }];
        loop {
            let last = steps.last_mut().expect("there is the root");
            if last.node.depth == 0 {
                return Ok(steps);
            }
            let at = last.node.floor(key).unwrap_or(0);
            let lead = child(broken(last.node.pairs.get(at))?);
            let depth = last.node.depth - 1;
            last.child = at;
            let node = self.node(lead, number, depth)?;
            steps.push(Step { lead: Some(lead), node, child: 0 });
        }
    }

    /// The pair with the largest key that is not above this one.
    pub(crate) fn tree_floor(
        &mut self,
        number: u64,
        inode: &Inode,
        key: u64,
    ) -> Result<Option<Pair>, Stop> {
        let lead = self.leaf_of(number, inode, key)?;
        if let Some(pair) = self.leaf(number, inode, lead)?.floor(key) {
            return Ok(Some(Pair { key: pair.key, value: pair.value.to_vec() }));
        }
        let mut steps = self.descend(number, inode, key)?;
        steps.pop();
        // Its first pairs were removed: the last one to the left.
        while let Some(Step { node, child: at, .. }) = steps.pop() {
            if at > 0 {
                let mut lead = child(&node.pairs[at - 1]);
                let mut depth = node.depth - 1;
                loop {
                    let mut below = self.node(lead, number, depth)?;
                    let last = below.pairs.pop().expect("no node below a root is empty");
                    if depth == 0 {
                        return Ok(Some(last));
                    }
                    lead = child(&last);
                    depth -= 1;
                }
            }
        }
        Ok(None)
    }

    /// The pairs from a key on, as far as its leaf has them; the next leaf's if it has none.
    pub(crate) fn tree_from(
        &mut self,
        number: u64,
        inode: &Inode,
        key: u64,
    ) -> Result<Vec<Pair>, Stop> {
        let mut steps = self.descend(number, inode, key)?;
        let mut leaf = steps.pop().expect("there is a leaf").node;
        let at = leaf.find(key).unwrap_or_else(|at| at);
        let pairs = leaf.pairs.split_off(at);
        if !pairs.is_empty() {
            return Ok(pairs);
        }
        // The next one to the right.
        while let Some(Step { node, child: at, .. }) = steps.pop() {
            if at + 1 < node.pairs.len() {
                let mut lead = child(&node.pairs[at + 1]);
                let mut depth = node.depth - 1;
                loop {
                    let below = self.node(lead, number, depth)?;
                    // One with keys from before would be read in a circle.
                    broken((below.pairs[0].key >= key).then_some(()))?;
                    if depth == 0 {
                        return Ok(below.pairs);
                    }
                    lead = child(&below.pairs[0]);
                    depth -= 1;
                }
            }
        }
        Ok(Vec::new())
    }

    /// The leads of all nodes below the root; leaves are not read for it.
    pub(crate) fn tree_units(&mut self, number: u64, inode: &Inode) -> Result<Vec<Lba>, Stop> {
        if inode.form == Form::Content {
            return Ok(Vec::new());
        }
        let mut leads = Vec::new();
        let mut above = vec![root(inode)?];
        while let Some(node) = above.pop() {
            if node.depth == 0 {
                continue;
            }
            let children: Vec<Lba> = node.pairs.iter().map(child).collect();
            if node.depth > 1 {
                for &lead in &children {
                    above.push(self.node(lead, number, node.depth - 1)?);
                }
            }
            leads.extend(children);
        }
        Ok(leads)
    }

    /// The value of a key.
    pub(crate) fn tree_get(
        &mut self,
        number: u64,
        inode: &Inode,
        key: u64,
    ) -> Result<Option<Vec<u8>>, Stop> {
        let lead = self.leaf_of(number, inode, key)?;
        Ok(self.leaf(number, inode, lead)?.get(key).map(|pair| pair.value.to_vec()))
    }

    /// The pair of a key, or the next one behind it.
    pub(crate) fn tree_next(
        &mut self,
        number: u64,
        inode: &Inode,
        key: u64,
    ) -> Result<Option<Pair>, Stop> {
        let lead = self.leaf_of(number, inode, key)?;
        let found = self.leaf(number, inode, lead)?.pairs().find(|pair| pair.key >= key);
        let found = found.map(|pair| Pair { key: pair.key, value: pair.value.to_vec() });
        if found.is_some() {
            return Ok(found);
        }
        Ok(self.tree_from(number, inode, key)?.into_iter().next())
    }

    /// Gives a key a value.
    pub(crate) fn tree_insert(
        &mut self,
        of: &mut Owned<'_>,
        key: u64,
        value: Vec<u8>,
    ) -> Result<(), Stop> {
        assert!(key < KEY_END, "{key:#x} in a tree");
        let lead = self.leaf_of(of.number, of.inode, key)?;
        let leaf = self.leaf(of.number, of.inode, lead)?;
        // Where a first key comes in, the node above has to know it.
        let is_plain = lead.is_none() || leaf.first().is_some_and(|first| first.key < key);
        if is_plain && leaf.has_room(value.len()) && leaf.get(key).is_none() {
            packed::insert(self.change_leaf(of, lead)?, key, &value);
            return Ok(());
        }
        let mut steps = self.descend(of.number, of.inode, key)?;
        let mut last = steps.pop().expect("there is a leaf");
        let pair = Pair { key, value };
        match last.node.find(key) {
            Ok(at) => last.node.pairs[at] = pair,
            Err(at) => {
                last.node.pairs.insert(at, pair);
                last.child = at;
            }
        }
        self.store(of, steps, last)
    }

    /// Takes a key away, if it is there.
    pub(crate) fn tree_remove(&mut self, of: &mut Owned<'_>, key: u64) -> Result<(), Stop> {
        let lead = self.leaf_of(of.number, of.inode, key)?;
        let leaf = self.leaf(of.number, of.inode, lead)?;
        if leaf.get(key).is_none() {
            return Ok(());
        }
        if lead.is_none() || leaf.count() > 1 {
            packed::remove(self.change_leaf(of, lead)?, key);
            return Ok(());
        }
        let mut steps = self.descend(of.number, of.inode, key)?;
        let mut last = steps.pop().expect("there is a leaf");
        let Ok(at) = last.node.find(key) else { return Ok(()) };
        last.node.pairs.remove(at);
        while last.node.pairs.is_empty()
            && let Some(lead) = last.lead
        {
            self.free_unit(lead)?;
            last = steps.pop().expect("above a unit there is a node");
            last.node.pairs.remove(last.child);
        }
        if last.node.pairs.is_empty() {
            last.node.depth = 0;
        }
        self.store(of, steps, last)
    }

    /// Takes pairs away, some at a time; returns whether none is left.
    pub(crate) fn empty_tree(&mut self, number: u64, inode: &mut Inode) -> Result<bool, Stop> {
        if inode.form == Form::Content {
            return Ok(true);
        }
        let pairs = self.tree_from(number, inode, 0)?;
        for pair in pairs.iter().take(EMPTIED) {
            self.tree_remove(&mut Owned { number, inode }, pair.key)?;
        }
        self.set_inode(number, inode)?;
        Ok(self.tree_from(number, inode, 0)?.is_empty())
    }

    /// Puts a node that was changed where it belongs; it parts if it is too large.
    fn store(
        &mut self,
        of: &mut Owned<'_>,
        mut steps: Vec<Step>,
        mut last: Step,
    ) -> Result<(), Stop> {
        loop {
            let Some(lead) = last.lead else { return self.store_root(of, &last.node) };
            let first = last.node.pairs[0].key;
            let right = (last.node.size() > BODY).then(|| part(&mut last.node, last.child));
            last.node.encode(self.change(lead, Kind::Node, of.number)?);
            let mut above = steps.pop().expect("above a unit there is a node");
            let known = above.node.pairs[above.child].key;
            if right.is_none() && known <= first {
                return Ok(());
            }
            // A key below all others came in.
            above.node.pairs[above.child].key = known.min(first);
            if let Some(right) = right {
                let number = of.number;
                let unit = self.take_unit(lead, Kind::Node, |_| number)?;
                right.encode(self.change(unit, Kind::Node, number)?);
                let pair = pointer(right.pairs[0].key, unit);
                above.child += 1;
                above.node.pairs.insert(above.child, pair);
            }
            last = above;
        }
    }

    fn store_root(&mut self, of: &mut Owned<'_>, node: &Node) -> Result<(), Stop> {
        // One child that the inode has room for is no child.
        if let [only] = node.pairs.as_slice()
            && node.depth > 0
        {
            let lead = child(only);
            let below = self.node(lead, of.number, node.depth - 1)?;
            if below.size() <= INLINE {
                self.free_unit(lead)?;
                below.encode(&mut of.inode.inline);
                return Ok(());
            }
        }
        if node.size() <= INLINE {
            node.encode(&mut of.inode.inline);
            return Ok(());
        }
        if node.depth == DEPTH_MAX {
            return Err(Stop::Fail(Errno::NoSpace));
        }
        let number = of.number;
        let near = Lba::new(number / crate::format::inode::INODES as u64);
        let unit = self.take_unit(near, Kind::Node, |_| number)?;
        node.encode(self.change(unit, Kind::Node, number)?);
        let pairs = vec![pointer(node.pairs[0].key, unit)];
        Node { depth: node.depth + 1, pairs }.encode(&mut of.inode.inline);
        Ok(())
    }
}

/// Parts a node: half of its bytes go into a new one on its right. Where it has grown at its end, only the last pair does: what
/// is written in order fills its nodes.
fn part(node: &mut Node, grown_at: usize) -> Node {
    let last = node.pairs.len() - 1;
    let half = node.size() / 2;
    let mut size = 0;
    let is_left = |pair: &&Pair| {
        size += pair.len();
        size <= half
    };
    let middle = node.pairs.iter().take_while(is_left).count();
    let at = if grown_at == last { last } else { middle.clamp(1, last) };
    Node { depth: node.depth, pairs: node.pairs.split_off(at) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use levelhead_stats::Streams;

    use super::*;
    use crate::format::inode::{Moment, mode};
    use crate::made::Made;

    #[test]
    fn random_trees_are_as_a_plain_map_says_and_leave_nothing_behind() {
        for (seed, keys) in [(1, 100), (2, 5_000), (3, KEY_END)] {
            let mut rng = Streams::new(seed).stream("tree");
            let mut made = Made::new(20_000, 3);
            let mut inode = Inode::new(mode::FILE, Moment::default());
            let mut plain: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
            let free = made.free();
            for step in 0..20_000 {
                let key = rng.below(keys);
                let is_growing = step % 8_000 < 5_000;
                let inserts = rng.below(10) < if is_growing { 7 } else { 2 };
                let value = vec![key as u8; rng.below(250) as usize];
                made.attempt(|attempt| {
                    let mut of = Owned { number: 77, inode: &mut inode };
                    match inserts {
                        true => attempt.tree_insert(&mut of, key, value.clone()),
                        false => {
                            // What is there more often than what is not.
                            let near = attempt.tree_floor(77, of.inode, key)?;
                            let key = near.map_or(key, |pair| pair.key);
                            attempt.tree_remove(&mut of, key)
                        }
                    }
                });
                if inserts {
                    plain.insert(key, value);
                } else {
                    let near = plain.range(..=key).next_back().map(|(&key, _)| key);
                    plain.remove(&near.unwrap_or(key));
                }
                if step % 97 == 0 {
                    let key = rng.below(keys);
                    let found = made.attempt(|attempt| attempt.tree_floor(77, &inode, key));
                    let expected = plain.range(..=key).next_back();
                    assert_eq!(
                        found.map(|pair| (pair.key, pair.value)),
                        expected.map(|(&key, value)| (key, value.clone()))
                    );
                }
            }
            let mut all = Vec::new();
            let mut from = 0;
            loop {
                let pairs = made.attempt(|attempt| attempt.tree_from(77, &inode, from));
                let Some(last) = pairs.last() else { break };
                from = last.key + 1;
                all.extend(pairs.into_iter().map(|pair| (pair.key, pair.value)));
            }
            assert!(all.into_iter().eq(plain.clone()), "seed {seed}");
            assert!(made.free() < free, "it has units");
            for key in plain.into_keys() {
                made.attempt(|attempt| {
                    attempt.tree_remove(&mut Owned { number: 77, inode: &mut inode }, key)
                });
            }
            assert_eq!(made.free(), free, "seed {seed}: units are left");
            assert_eq!(Node::decode(&inode.inline), Some(Node::default()));
        }
    }

    #[test]
    fn what_is_written_in_order_fills_its_nodes() {
        let mut made = Made::new(20_000, 3);
        let mut inode = Inode::new(mode::FILE, Moment::default());
        let free = made.free();
        for key in 0..10_000 {
            made.attempt(|attempt| {
                let mut of = Owned { number: 77, inode: &mut inode };
                attempt.tree_insert(&mut of, key, vec![1; 20])
            });
        }
        let units = (free - made.free()) / 3;
        assert!(units <= 10_000 / 134 + 2, "{units} units of 134 pairs each");
    }
}
