//! A node as it lies in its unit: looked through and changed in place, without being taken apart.
//!
//! Most of what a filesystem does with its trees is to look for one key, or to add or remove one where there is room. For that a
//! [`Node`](super::node::Node) with all its values is not made.

use super::fields::{Fields, FieldsMut};
use super::node::{DEPTH_MAX, HEAD, KEY_END, PAIR, at};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Packed<'a> {
    bytes: &'a [u8],
    depth: u8,
    count: u16,
    end: usize,
}

/// A pair in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedPair<'a> {
    /// Its key.
    pub key: u64,
    /// Its value.
    pub value: &'a [u8],
    /// Where it begins.
    at: usize,
}

impl PackedPair<'_> {
    fn end(&self) -> usize {
        self.at + PAIR + self.value.len()
    }
}

impl<'a> Packed<'a> {
    /// Nothing if what is there cannot be a node.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let fields = Fields(bytes);
        let (depth, count) = (fields.u8(at::DEPTH), fields.u16(at::COUNT));
        let end = usize::from(fields.u16(at::END));
        if depth > DEPTH_MAX || fields.u8(at::ZERO) != 0 || end > bytes.len() {
            return None;
        }
        if count == 0 {
            let is_empty = depth == 0 && matches!(end, 0 | HEAD);
            return is_empty.then_some(Self { bytes, depth, count, end: HEAD });
        }
        let packed = Self { bytes, depth, count, end };
        let (mut from, mut last) = (HEAD, None);
        for _ in 0..count {
            let rest = bytes.get(from..end).filter(|rest| rest.len() >= PAIR)?;
            let (key, len) = (Fields(rest).u64(0), usize::from(Fields(rest).u16(8)));
            let is_next = key < KEY_END && last.is_none_or(|last| last < key);
            if !is_next || rest.len() < PAIR + len || (depth > 0 && len != 8) {
                return None;
            }
            (from, last) = (from + PAIR + len, Some(key));
        }
        (from == end).then_some(packed)
    }

    /// How many nodes lie below it on the way to a leaf.
    pub fn depth(&self) -> u8 {
        self.depth
    }

    /// How many pairs it has.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// The pairs in the order of their keys.
    pub fn pairs(&self) -> impl Iterator<Item = PackedPair<'a>> + use<'a> {
        let (bytes, end) = (self.bytes, self.end);
        let mut from = HEAD;
        std::iter::from_fn(move || {
            if from >= end {
                return None;
            }
            let fields = Fields(&bytes[from..]);
            let (key, len) = (fields.u64(0), usize::from(fields.u16(8)));
            let value = &bytes[from + PAIR..][..len];
            let pair = PackedPair { key, value, at: from };
            from = pair.end();
            Some(pair)
        })
    }

    /// The last pair whose key is not above this one.
    pub fn floor(&self, key: u64) -> Option<PackedPair<'a>> {
        self.pairs().take_while(|pair| pair.key <= key).last()
    }

    /// The pair of a key.
    pub fn get(&self, key: u64) -> Option<PackedPair<'a>> {
        self.floor(key).filter(|pair| pair.key == key)
    }

    /// The first pair.
    pub fn first(&self) -> Option<PackedPair<'a>> {
        self.pairs().next()
    }

    /// Whether a pair with a value of this length finds room.
    pub fn has_room(&self, len: usize) -> bool {
        self.end + PAIR + len <= self.bytes.len()
    }
}

/// Adds a pair whose key is not there, and for which there is room, to a node that is one.
///
/// Panics otherwise.
pub fn insert(bytes: &mut [u8], key: u64, value: &[u8]) {
    let packed = Packed::new(bytes).expect("it is a node");
    assert!(packed.has_room(value.len()), "it has room");
    let (count, end) = (packed.count, packed.end);
    let at = packed.floor(key).map_or(HEAD, |pair| pair.end());
    let len = PAIR + value.len();
    bytes.copy_within(at..end, at + len);
    let mut fields = FieldsMut(&mut bytes[at..]);
    fields.put_u64(0, key);
    fields.put_u16(8, value.len() as u16);
    bytes[at + PAIR..][..value.len()].copy_from_slice(value);
    close(bytes, count + 1, end + len);
}

/// Takes the pair of a key away, which is there.
///
/// Panics if it is not, or what is there is no node.
pub fn remove(bytes: &mut [u8], key: u64) {
    let packed = Packed::new(bytes).expect("it is a node");
    let (count, end) = (packed.count, packed.end);
    let pair = packed.get(key).expect("the key is there");
    let (from, to) = (pair.at, pair.end());
    bytes.copy_within(to..end, from);
    bytes[end - (to - from)..end].fill(0);
    close(bytes, count - 1, end - (to - from));
}

fn close(bytes: &mut [u8], count: u16, end: usize) {
    let mut fields = FieldsMut(bytes);
    fields.put_u16(at::COUNT, count);
    fields.put_u16(at::END, end as u16);
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;

    use super::*;
    use crate::format::node::{Node, Pair};

    #[test]
    fn node_is_changed_in_place_as_if_it_were_taken_apart() {
        let mut rng = Streams::new(3).stream("packed");
        for _ in 0..200 {
            let mut node = Node::default();
            let mut bytes = [0; 300];
            node.encode(&mut bytes);
            for _ in 0..40 {
                let key = rng.below(30);
                let value = vec![key as u8; rng.below(20) as usize];
                let packed = Packed::new(&bytes).unwrap();
                assert_eq!(usize::from(packed.count()), node.pairs.len());
                let floor = node.floor(key).map(|at| node.pairs[at].key);
                assert_eq!(packed.floor(key).map(|pair| pair.key), floor);
                match node.find(key) {
                    Ok(at) => {
                        assert_eq!(packed.get(key).unwrap().value, node.pairs[at].value);
                        node.pairs.remove(at);
                        remove(&mut bytes, key);
                    }
                    Err(at) if packed.has_room(value.len()) => {
                        insert(&mut bytes, key, &value);
                        node.pairs.insert(at, Pair { key, value });
                    }
                    Err(_) => assert!(node.size() + PAIR + value.len() > bytes.len()),
                }
                let mut whole = [0; 300];
                node.encode(&mut whole);
                assert_eq!(bytes, whole);
            }
        }
    }

    #[test]
    fn empty_area_takes_a_pair_exactly_if_it_is_a_node() {
        for at in 0..HEAD {
            for byte in 0..=255 {
                let mut bytes = [0; 60];
                bytes[at] = byte;
                assert_eq!(Packed::new(&bytes).is_some(), Node::decode(&bytes).is_some());
                if Packed::new(&bytes).is_some() {
                    insert(&mut bytes, 7, b"seven");
                    assert_eq!(Packed::new(&bytes).unwrap().get(7).unwrap().value, b"seven");
                }
            }
        }
    }

    #[test]
    fn it_is_a_node_exactly_where_one_can_be_read() {
        let mut rng = Streams::new(4).stream("packed");
        let value = |key: u64| vec![1; key as usize];
        let pairs = (0..5).map(|key| Pair { key: key << 61, value: value(key) }).take(4).collect();
        let mut right = [0; 120];
        Node { depth: 0, pairs }.encode(&mut right);
        for _ in 0..20_000 {
            let mut bytes = right;
            for _ in 0..1 + rng.below(3) {
                bytes[rng.below(80) as usize] = rng.below(256) as u8;
            }
            assert_eq!(Packed::new(&bytes).is_some(), Node::decode(&bytes).is_some(), "{bytes:?}");
        }
    }
}
