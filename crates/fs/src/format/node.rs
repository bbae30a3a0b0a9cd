//! A node of a tree: pairs of a number and some bytes, in the order of the numbers.
//!
//! ```text
//!   | depth | count | end | pairs ..                             | free .. |
//!                          key, length, bytes | key, length, bytes
//! ```
//!
//! In a leaf (depth 0) the bytes are what the tree is for; above, they are the lead of the node with all keys from this one up to the
//! next. A directory's keys are hashes of names, a file's the first sectors of its extents.
//!
//! `docs/formats/filesystem.md` is the normative text.

use super::fields::{Fields, FieldsMut};

/// Bytes of the beginning.
pub(super) const HEAD: usize = 6;

/// Bytes of a pair beside its value.
pub const PAIR: usize = 10;

/// No key is as large, so that there is always a next one.
pub const KEY_END: u64 = 1 << 63;

/// The deepest tree: with 200 children a node it has more leaves than a disk has sectors.
pub const DEPTH_MAX: u8 = 7;

pub(super) mod at {
    pub(in crate::format) const DEPTH: usize = 0;
    pub(in crate::format) const ZERO: usize = 1;
    pub(in crate::format) const COUNT: usize = 2;
    pub(in crate::format) const END: usize = 4;
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The key.
    pub key: u64,
    /// The value.
    pub value: Vec<u8>,
}

impl Pair {
    /// Bytes that it takes in a node.
    pub fn len(&self) -> usize {
        PAIR + self.value.len()
    }

    /// Whether it has no value.
    pub fn is_empty(&self) -> bool {
        self.value.is_empty()
    }
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// How many nodes lie below it on the way to a leaf.
    pub depth: u8,
    /// In ascending order of the keys.
    pub pairs: Vec<Pair>,
}

impl Node {
    /// Bytes that it takes.
    pub fn size(&self) -> usize {
        HEAD + self.pairs.iter().map(Pair::len).sum::<usize>()
    }

    /// Where a key is, or would be.
    pub fn find(&self, key: u64) -> Result<usize, usize> {
        self.pairs.binary_search_by_key(&key, |pair| pair.key)
    }

    /// The last pair whose key is not above this one.
    pub fn floor(&self, key: u64) -> Option<usize> {
        match self.find(key) {
            Ok(at) => Some(at),
            Err(at) => at.checked_sub(1),
        }
    }

    /// Into an area of a unit or an inode.
    ///
    /// Panics unless there is room.
    pub fn encode(&self, into: &mut [u8]) {
        assert!(self.size() <= into.len(), "{} bytes into {}", self.size(), into.len());
        into.fill(0);
        let mut end = HEAD;
        for Pair { key, value } in &self.pairs {
            let mut fields = FieldsMut(&mut into[end..]);
            fields.put_u64(0, *key);
            fields.put_u16(8, value.len() as u16);
            into[end + PAIR..][..value.len()].copy_from_slice(value);
            end += PAIR + value.len();
        }
        let mut fields = FieldsMut(into);
        fields.put_u8(at::DEPTH, self.depth);
        fields.put_u16(at::COUNT, self.pairs.len() as u16);
        fields.put_u16(at::END, end as u16);
    }

    /// From there; nothing if what is there cannot be a node. Bytes that are all zero are an empty leaf.
    pub fn decode(from: &[u8]) -> Option<Self> {
        let fields = Fields(from);
        let (depth, count) = (fields.u8(at::DEPTH), fields.u16(at::COUNT));
        if depth > DEPTH_MAX || fields.u8(at::ZERO) != 0 {
            return None;
        }
        if count == 0 {
            return (depth == 0 && matches!(fields.u16(at::END), 0 | 6))
                .then(|| Self { depth, pairs: Vec::new() });
        }
        let mut pairs: Vec<Pair> = Vec::with_capacity(usize::from(count).min(from.len() / PAIR));
        let mut end = HEAD;
        for _ in 0..count {
            let rest = from.get(end..).filter(|rest| rest.len() >= PAIR)?;
            let (key, len) = (Fields(rest).u64(0), usize::from(Fields(rest).u16(8)));
            let value = rest.get(PAIR..PAIR + len)?.to_vec();
            let is_next = key < KEY_END && pairs.last().is_none_or(|last| last.key < key);
            let is_sane = is_next && (depth == 0 || len == 8);
            if !is_sane {
                return None;
            }
            pairs.push(Pair { key, value });
            end += PAIR + len;
        }
        (end == usize::from(fields.u16(at::END))).then_some(Self { depth, pairs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(pairs: &[(u64, &[u8])]) -> Node {
        let pair = |&(key, value): &(u64, &[u8])| Pair { key, value: value.to_vec() };
        Node { depth: 0, pairs: pairs.iter().map(pair).collect() }
    }

    #[test]
    fn node_is_read_as_it_was_written() {
        let some = node(&[(1, b"one"), (5, b""), (9, b"nine")]);
        let mut bytes = [3; 100];
        some.encode(&mut bytes);
        assert_eq!(Node::decode(&bytes), Some(some.clone()));
        assert_eq!((some.floor(0), some.floor(5), some.floor(8)), (None, Some(1), Some(1)));
        assert_eq!(Node::decode(&[0; 20]), Some(Node::default()));
    }

    #[test]
    fn bytes_that_cannot_be_a_node_are_none() {
        let mut bytes = [0; 100];
        node(&[(1, b"one"), (5, b"five")]).encode(&mut bytes);
        for at in 0..HEAD + 2 * PAIR + 7 {
            let mut wrong = bytes;
            wrong[at] = 0xff;
            if let Some(read) = Node::decode(&wrong) {
                assert!(read.pairs.is_sorted_by(|a, b| a.key < b.key), "{at}");
            }
        }
        let mut last = [0; 100];
        node(&[(KEY_END, b"no next one")]).encode(&mut last);
        assert_eq!(Node::decode(&last), None);
        let mut swapped = [0; 100];
        node(&[(5, b"five"), (1, b"one")]).encode(&mut swapped);
        assert_eq!(Node::decode(&swapped), None);
    }
}
