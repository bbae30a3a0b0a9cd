//! The codec on any bytes: no panic, and the same messages however they are split.

use proptest::prelude::*;

use crate::talk::{client_side, client_talk, server_side, server_talk};

/// A conversation with some bytes changed, cut out or put in.
fn damage(mut bytes: Vec<u8>, changes: &[(usize, u8, u8)]) -> Vec<u8> {
    for &(at, value, how) in changes {
        let at = at % bytes.len().max(1);
        match how % 3 {
            0 if !bytes.is_empty() => bytes[at] = value,
            1 if !bytes.is_empty() => drop(bytes.remove(at)),
            _ => bytes.insert(at, value),
        }
    }
    bytes
}

fn splits() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![1..4_usize, 1..100_usize, 1..200_000_usize], 1..8)
}

fn changes() -> impl Strategy<Value = Vec<(usize, u8, u8)>> {
    prop::collection::vec((any::<usize>(), any::<u8>(), any::<u8>()), 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn servers_take_any_bytes_and_splits_make_no_difference(
        changes in changes(), splits in splits(), noise in prop::collection::vec(any::<u8>(), 0..99),
    ) {
        let mut bytes = damage(client_talk().0, &changes);
        bytes.extend(noise);
        let whole = server_side(&bytes, &[bytes.len().max(1)]);
        prop_assert_eq!(server_side(&bytes, &splits), whole);
    }

    #[test]
    fn clients_take_any_bytes_and_splits_make_no_difference(
        changes in changes(), splits in splits(), noise in prop::collection::vec(any::<u8>(), 0..99),
    ) {
        let mut bytes = damage(server_talk().0, &changes);
        bytes.extend(noise);
        let whole = client_side(&bytes, &[bytes.len().max(1)]);
        prop_assert_eq!(client_side(&bytes, &splits), whole);
    }

    #[test]
    fn noise_alone_is_refused_or_waited_for(
        bytes in prop::collection::vec(any::<u8>(), 0..300), splits in splits(),
    ) {
        let whole = server_side(&bytes, &[bytes.len().max(1)]);
        prop_assert_eq!(server_side(&bytes, &splits), whole);
        let whole = client_side(&bytes, &[bytes.len().max(1)]);
        prop_assert_eq!(client_side(&bytes, &splits), whole);
    }
}
