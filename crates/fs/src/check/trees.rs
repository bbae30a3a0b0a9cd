//! Trees: every node is what its parent says, and every pair is handed over in the order of the keys.

use levelhead_units::Lba;

use super::walk::{UNITS_MAX, Wanted};
use super::{Checker, Problem};
use crate::format::fields::Fields;
use crate::format::inode::{Form, Inode};
use crate::format::node::{Node, Pair};
use crate::format::unit::{HEAD, Kind};

/// What takes the pairs of a tree.
pub(super) trait Sink {
    /// The next pair; returns whether it can be.
    fn take(&mut self, checker: &mut Checker<'_>, pair: &Pair) -> bool;
}

/// A node and the keys that it may have.
struct Below {
    lead: Lba,
    from: u64,
    /// The first key of the next one.
    to: Option<u64>,
}

impl Checker<'_> {
    /// All pairs of an inode's tree.
    pub(super) fn check_tree(&mut self, number: u64, inode: &Inode, sink: &mut dyn Sink) {
        let root = match inode.form {
            Form::Tree => Node::decode(&inode.inline),
            Form::Content => None,
        };
        match root {
            Some(root) => self.check_node(number, &root, None, sink),
            None => self.note_unknown(Problem::Tree { inode: number, key: 0 }),
        }
    }

    fn check_node(&mut self, number: u64, node: &Node, to: Option<u64>, sink: &mut dyn Sink) {
        if node.depth == 0 {
            for pair in &node.pairs {
                if !sink.take(self, pair) {
                    self.note_unknown(Problem::Tree { inode: number, key: pair.key });
                }
            }
            return;
        }
        let next = node.pairs.iter().skip(1).map(|pair| Some(pair.key)).chain([to]);
        let mut below = Vec::new();
        for (pair, to) in node.pairs.iter().zip(next) {
            let lead = Lba::new(Fields(&pair.value).u64(0));
            match self.may_be_unit(lead) {
                true => below.push(Below { lead, from: pair.key, to }),
                false => self.note_unknown(Problem::Pointer { lead, owner: number }),
            }
        }
        for some in below.chunks(UNITS_MAX) {
            let leads: Vec<Lba> = some.iter().map(|below| below.lead).collect();
            for (below, found) in some.iter().zip(self.read_units(&leads)) {
                let wanted = Wanted { lead: below.lead, kind: Kind::Node, owner: number };
                let Some(unit) = self.expect(wanted, found) else { continue };
                // One that was reached before has no second way down (CK2).
                if !self.take_unit(below.lead, number) {
                    self.is_known = false;
                    continue;
                }
                let child = Node::decode(&unit.bytes[HEAD..]).filter(|child| {
                    let fits = |last: &Pair| below.to.is_none_or(|to| last.key < to);
                    child.depth + 1 == node.depth
                        && child.pairs.first().is_some_and(|first| first.key >= below.from)
                        && child.pairs.last().is_some_and(fits)
                });
                match child {
                    Some(child) => self.check_node(number, &child, below.to, sink),
                    None => {
                        self.note_unknown(Problem::Tree { inode: number, key: below.from });
                    }
                }
            }
        }
    }
}
