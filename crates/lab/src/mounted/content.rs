//! What files hold that a workload has written: each page repeats one word of 8 bytes that no other page has.

use std::collections::BTreeMap;

use levelhead_stats::hash_of;
use levelhead_trace::FileId;
use levelhead_units::SECTOR_SIZE;

const PAGE: u64 = SECTOR_SIZE as u64;

/// The words of all files.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    /// Of pages that were written anew: how often.
    anew: BTreeMap<(FileId, u64), u64>,
    sizes: BTreeMap<FileId, u64>,
}

impl Content {
    fn word(&self, file: FileId, page: u64) -> [u8; 8] {
        let times = self.anew.get(&(file, page)).copied().unwrap_or_default();
        hash_of(u64::from(file.0), &[page, times]).to_le_bytes()
    }

    /// The bytes that a write brings. Pages that it replaces as a whole have another word from then on.
    pub(super) fn write(&mut self, file: FileId, offset: u64, length: u64) -> Vec<u8> {
        let size = self.sizes.entry(file).or_default();
        let (end, old) = (offset + length, *size);
        *size = old.max(end);
        let whole = offset.div_ceil(PAGE)..(end / PAGE).min(old.div_ceil(PAGE));
        for page in whole {
            *self.anew.entry((file, page)).or_default() += 1;
        }
        self.bytes(file, offset, length)
    }

    /// What a read must give.
    pub(super) fn bytes(&self, file: FileId, offset: u64, length: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length as usize);
        let end = offset + length;
        let mut at = offset;
        while at < end {
            let word = self.word(file, at / PAGE);
            let to = end.min((at / PAGE + 1) * PAGE);
            while at < to {
                let from = (at % 8) as usize;
                let count = (8 - from).min((to - at) as usize);
                bytes.extend_from_slice(&word[from..from + count]);
                at += count as u64;
            }
        }
        bytes
    }

    /// The file is no more.
    pub(super) fn forget(&mut self, file: FileId) {
        self.sizes.remove(&file);
        self.anew.retain(|&(of, _), _| of != file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_keep_their_words_until_they_are_replaced_as_a_whole() {
        let (mut content, file) = (Content::default(), FileId(3));
        let first = content.write(file, 0, 10_000);
        assert_eq!(first[..8], first[4_088..4_096]);
        assert_ne!(first[..8], first[4_096..4_104]);
        assert_eq!(content.bytes(file, 5, 4_100), first[5..4_105]);
        // The last page grows.
        let more = content.write(file, 10_000, 2_288);
        assert_eq!(more[..8], first[8_192 + 8..8_192 + 16], "10,000 is a multiple of 8");
        let anew = content.write(file, 4_096, 4_096);
        assert_ne!(anew, first[4_096..8_192]);
        assert_eq!(content.bytes(file, 0, 4_096), first[..4_096]);
        assert_eq!(content.bytes(file, 4_096, 4_096), anew);
    }
}
