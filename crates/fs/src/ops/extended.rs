//! Extended attributes: all those of an inode lie in one unit.
//!
//! Here they are bytes that are kept; what some of them mean is [`values`](crate::ops::values)' affair.

use levelhead_units::Lba;

use crate::attempt::{Attempt, Stop, broken};
use crate::format::inode::{Inode, InodePlace, Moment};
use crate::format::node::{Node, Pair};
use crate::format::unit::{BODY, Kind};
use crate::request::Errno;

/// The rights of a program that a write takes from it.
pub(crate) const CAPABILITY: &[u8] = b"security.capability";

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extended {
    pub(crate) name: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

/// A pair's value: the name's length, the name, the value.
fn decode(pair: &Pair) -> Option<Extended> {
    let (&len, rest) = pair.value.split_first()?;
    let (name, value) = rest.split_at_checked(usize::from(len))?;
    Some(Extended { name: name.to_vec(), value: value.to_vec() })
}

fn encode(at: u64, extended: &Extended) -> Pair {
    let len = [extended.name.len() as u8];
    Pair { key: at, value: [&len[..], &extended.name, &extended.value].concat() }
}

impl Attempt<'_> {
    /// All of an inode, in the order of their names.
    pub(crate) fn extended(&mut self, number: u64) -> Result<Vec<Extended>, Stop> {
        let inode = self.inode(number)?;
        if inode.attributes == Lba::ZERO {
            return Ok(Vec::new());
        }
        let node = broken(Node::decode(self.read(inode.attributes, Kind::Attributes, number)?))?;
        broken(node.pairs.iter().map(decode).collect())
    }

    /// Puts all of an inode into its unit, in the order of their names.
    pub(crate) fn put_extended(
        &mut self,
        number: u64,
        all: &[Extended],
        now: Moment,
    ) -> Result<(), Stop> {
        let mut inode: Inode = self.inode(number)?;
        inode.changed = now;
        let pairs = (0..).zip(all).map(|(at, extended)| encode(at, extended)).collect();
        let node = Node { depth: 0, pairs };
        if node.size() > BODY {
            return Err(Stop::Fail(Errno::NoSpace));
        }
        match (inode.attributes, all.is_empty()) {
            (Lba::ZERO, true) => {}
            (lead, true) => {
                self.free_unit(lead)?;
                inode.attributes = Lba::ZERO;
            }
            (Lba::ZERO, false) => {
                let near = InodePlace::of(number).lead;
                inode.attributes = self.take_unit(near, Kind::Attributes, |_| number)?;
            }
            (_, false) => {}
        }
        if !all.is_empty() {
            node.encode(self.change(inode.attributes, Kind::Attributes, number)?);
        }
        self.set_inode(number, &inode)
    }
}
