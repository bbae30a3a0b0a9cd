//! Randomising a sector such that it can be undone from what is stored alone.
//!
//! With `s` the last 256 bytes, `s'` the 256 before and `x` all others, and `P`, `P'` and `Q` the pattern's parts there:
//!
//! ```text
//!   f(0) = 0    f(P) = P    f(y) = y xor P otherwise
//!
//!           x           s'                           s
//!   stored: x xor Q     f'(s') if s = 0              f(s)
//!                       s' xor P' otherwise
//! ```
//!
//! `f` is its own inverse and maps nothing but 0 to 0. So `s = 0` can be told from what is stored, and the whole map
//! is its own inverse, too: [`Pattern::turn`] randomises and takes back. Where `s` is not 0 no kind depends on `s'`, and an
//! `s'` that equals `P'` may well be stored as zeroes.

use levelhead_stats::Streams;

use super::SEGMENT_BYTES;
use crate::shape::SECTOR_BYTES;

/// What the pattern is drawn from. Another one makes medium written before unreadable.
const SEED: u64 = 512;

/// The pseudo-random bytes of a sector's length that sectors are randomised with.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    bytes: Vec<u8>,
}

impl Pattern {
    pub(super) fn new() -> Self {
        let mut bytes = vec![0; SECTOR_BYTES];
        Streams::new(SEED).stream("ldpc/pattern").fill(&mut bytes);
        let segments = bytes.rchunks_exact(SEGMENT_BYTES).take(2);
        assert!(segments.into_iter().all(|part| !is_zero(part)), "a pattern that changes nothing");
        Self { bytes }
    }

    /// Randomises a sector, or takes that back.
    pub(super) fn turn(&self, sector: &mut [u8]) {
        turn(&self.bytes, SEGMENT_BYTES, sector);
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The same for sectors and segments of any length.
pub(super) fn turn(pattern: &[u8], segment_bytes: usize, sector: &mut [u8]) {
    assert_eq!(sector.len(), pattern.len(), "a sector and its pattern");
    let (rest, last) = sector.split_at_mut(pattern.len() - segment_bytes);
    let (body, before) = rest.split_at_mut(pattern.len() - 2 * segment_bytes);
    let (pattern, pattern_last) = pattern.split_at(pattern.len() - segment_bytes);
    let (pattern_body, pattern_before) = pattern.split_at(body.len());
    xor(body, pattern_body);
    if is_zero(last) {
        xor_but_zero(before, pattern_before);
    } else {
        xor(before, pattern_before);
    }
    xor_but_zero(last, pattern_last);
}

/// `f`: zeroes and the pattern stay, as each would become the other.
fn xor_but_zero(segment: &mut [u8], pattern: &[u8]) {
    if !is_zero(segment) && segment != pattern {
        xor(segment, pattern);
    }
}

fn xor(bytes: &mut [u8], pattern: &[u8]) {
    for (byte, pattern) in bytes.iter_mut().zip(pattern) {
        *byte ^= pattern;
    }
}

pub(super) fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// The paper's own map, and the hole in it.
#[cfg(test)]
pub(super) mod papers {
    use super::xor;
    use crate::sector::kind_of;
    use crate::shape::SECTOR_BYTES;

    /// Randomises everything before a sector's zeroes: what is written, and what is given back of what was decoded.
    pub(in crate::sector) fn turn(pattern: &[u8], sector: &mut [u8]) {
        let end = SECTOR_BYTES - kind_of(sector).bytes();
        xor(&mut sector[..end], &pattern[..end]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SE1, SE2: every sector of three bytes, segments of one, and patterns with parts that are alike, single bits and not.
    #[test]
    fn small_sectors_are_turned_one_to_one_and_keep_their_zeroes() {
        for pattern in [[0x35, 0xC2, 0x9A], [0xFF, 0x5A, 0x5A], [0x00, 0x01, 0x80]] {
            for (last, before) in (0..=255).flat_map(|last| (0..=255).map(move |b| (last, b))) {
                // A body byte has only its own pattern to do with; two of them show that.
                for body in [0, 0x77] {
                    let sector = [body, before, last];
                    let mut stored = sector;
                    turn(&pattern, 1, &mut stored);
                    assert_eq!(stored[0], body ^ pattern[0]);
                    assert_eq!(stored[2] == 0, last == 0, "{sector:?} {stored:?}");
                    if last == 0 {
                        assert_eq!(stored[1] == 0, before == 0, "{sector:?} {stored:?}");
                    }
                    turn(&pattern, 1, &mut stored);
                    assert_eq!(stored, sector);
                }
            }
        }
    }

    /// A pattern's segments look random: each has a share of ones from 0.45 to 0.55.
    #[test]
    fn the_pattern_is_half_ones_everywhere() {
        let pattern = Pattern::new();
        for (at, part) in pattern.bytes().chunks_exact(SEGMENT_BYTES).enumerate() {
            let ones: u32 = part.iter().map(|byte| byte.count_ones()).sum();
            assert!((922..=1126).contains(&ones), "segment {at}: {ones} of 2048");
        }
    }
}
