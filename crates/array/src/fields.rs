//! Fields of the sectors that an array keeps for itself: where they are, little-endian.
//!
//! Every function panics where the field is not in the sector: the layouts say where each is.

/// Puts the bytes of a field into its place.
pub(crate) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..][..value.len()].copy_from_slice(value);
}

/// The bytes of a field.
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..][..N].try_into().expect("the slice has this length")
}

/// A number of two bytes.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, at))
}

/// A number of four bytes.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

/// A number of eight bytes.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}
