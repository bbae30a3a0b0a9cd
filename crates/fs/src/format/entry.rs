//! An entry of a directory: a name and its inode.
//!
//! Its key is a hash of the name, so that a directory is read in an order that does not change when entries come and go: the key is
//! what a reader of the directory goes on from. Names with the same hash have keys in a row.

use super::fields::{Fields, FieldsMut};

/// The longest name.
pub const NAME_MAX: usize = 255;

/// Names with the same hash.
pub const TWINS: u64 = 1 << 12;

mod at {
    pub(super) const INODE: usize = 0;
    pub(super) const TYPE: usize = 8;
    pub(super) const NAME: usize = 9;
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The number of its inode.
    pub inode: u64,
    /// The upper four bits of the inode's mode.
    pub kind: u8,
    /// Its name.
    pub name: Vec<u8>,
}

impl Entry {
    /// Into a tree's bytes.
    pub fn encode(&self) -> Vec<u8> {
        assert!((1..=NAME_MAX).contains(&self.name.len()), "{} bytes", self.name.len());
        let mut bytes = vec![0; at::NAME];
        let mut fields = FieldsMut(&mut bytes);
        fields.put_u64(at::INODE, self.inode);
        fields.put_u8(at::TYPE, self.kind);
        bytes.extend_from_slice(&self.name);
        bytes
    }

    /// From a tree's bytes; nothing if they cannot be an entry.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let name = bytes.get(at::NAME..)?;
        let is_name = (1..=NAME_MAX).contains(&name.len())
            && !name.iter().any(|byte| matches!(byte, 0 | b'/'));
        let fields = Fields(bytes);
        is_name.then(|| Self {
            inode: fields.u64(at::INODE),
            kind: fields.u8(at::TYPE),
            name: name.to_vec(),
        })
    }
}

/// The least key of entries with this name, a multiple of [`TWINS`] and neither the least nor the largest one; `seed` is the
/// filesystem's.
pub fn key_of(name: &[u8], seed: u64) -> u64 {
    // 63 bits, because readers of directories keep it in a signed number.
    let mut hash = seed ^ 0x9e37_79b9_7f4a_7c15;
    for chunk in name.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = mix(hash ^ u64::from_le_bytes(word) ^ ((chunk.len() as u64) << 56));
    }
    let key = (mix(hash) >> 1) / TWINS * TWINS;
    key.clamp(TWINS, (i64::MAX as u64) / TWINS * TWINS - TWINS)
}

/// The last steps of the 64-bit finaliser of MurmurHash3, which is in the public domain.
fn mix(mut hash: u64) -> u64 {
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_is_read_as_it_was_written_and_impossible_names_are_none() {
        let entry = Entry { inode: 77, kind: 8, name: b"a name".to_vec() };
        assert_eq!(Entry::decode(&entry.encode()), Some(entry));
        for name in [&b""[..], b"a/b", b"a\0b"] {
            assert_eq!(Entry::decode(&[&[0; 9], name].concat()), None);
        }
    }

    #[test]
    fn keys_are_apart_by_the_room_for_twins() {
        let keys: std::collections::BTreeSet<u64> =
            (0..10_000).map(|at| key_of(format!("file {at}").as_bytes(), 5)).collect();
        assert_eq!(keys.len(), 10_000);
        assert!(keys.iter().all(|key| key % TWINS == 0 && (TWINS..1 << 63).contains(key)));
        assert_ne!(key_of(b"a", 1), key_of(b"a", 2));
        assert_ne!(key_of(b"a", 1), key_of(b"a\0", 1));
    }
}
