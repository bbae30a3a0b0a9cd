//! What was written to an export and is not known to be safe there.
//!
//! A server that comes back may have lost what it had in memory. So the sectors of every write that it has
//! answered are kept here until a flush that began after the answer has ended; then they are written again if
//! the server was away meanwhile.
//!
//! # Invariants
//!
//! - U1. A sector is kept with the bytes of the last write to it that was answered, and not at all once these are
//!   safe.
//! - U2. At most [`KEPT_MAX`] sectors are kept or promised a place. A write that finds none must be durable.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;

use levelhead_block::Piece;

/// The most sectors kept: 32 MiB.
pub(super) const KEPT_MAX: usize = 8192;

/// As many sectors are written again at a time: 1 MiB.
const RUN_MAX: usize = 256;

/// See the module.
#[derive(Default)]
pub(super) struct Unflushed {
    sectors: BTreeMap<u64, Kept>,
    /// Sectors of writes that the server has yet to answer.
    promised: usize,
    /// How many writes were answered.
    answered: u64,
}

struct Kept {
    bytes: Box<[u8]>,
    /// Which of the writes that were answered it is.
    write: u64,
}

/// The bytes of a write on their way to the server.
pub(super) struct Promise {
    first: u64,
    sectors: Vec<Box<[u8]>>,
}

/// A moment: every write that was answered before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark(u64);

impl Unflushed {
    /// Keeps a place for a write of `pieces` from sector `first` on; nothing if there is none.
    pub(super) fn promise(&mut self, first: u64, pieces: &[Piece]) -> Option<Promise> {
        let count = Piece::count(pieces).as_usize();
        if self.len() + count > KEPT_MAX {
            return None;
        }
        self.promised += count;
        let sectors = Piece::each_sector(pieces).map(Box::from).collect();
        Some(Promise { first, sectors })
    }

    /// The write did not come about, or it is not known whether it did.
    pub(super) fn withdraw(&mut self, promise: &Promise) {
        self.promised -= promise.sectors.len();
    }

    /// The server has answered the write.
    pub(super) fn keep(&mut self, promise: Promise) {
        self.withdraw(&promise);
        self.answered += 1;
        let write = self.answered;
        for (sector, bytes) in (promise.first..).zip(promise.sectors) {
            self.sectors.insert(sector, Kept { bytes, write });
        }
    }

    /// A durable write of these sectors was answered: what was written there before is of no use any more.
    pub(super) fn forget(&mut self, sectors: Range<u64>) {
        let gone: Vec<u64> = self.sectors.range(sectors).map(|(&sector, _)| sector).collect();
        gone.iter().for_each(|sector| drop(self.sectors.remove(sector)));
    }

    /// What a flush covers that begins now.
    pub(super) fn mark(&self) -> Mark {
        Mark(self.answered)
    }

    /// A flush that began then has ended well: those of the sectors `wanted` that are safe with it, and their bytes.
    pub(super) fn handle_flushed(
        &mut self,
        Mark(answered): Mark,
        wanted: &[u64],
    ) -> Vec<(u64, Box<[u8]>)> {
        let is_safe = |kept: &Kept| kept.write <= answered;
        let take = |&sector: &u64| match self.sectors.entry(sector) {
            Entry::Occupied(entry) if is_safe(entry.get()) => Some((sector, entry.remove().bytes)),
            Entry::Occupied(_) | Entry::Vacant(_) => None,
        };
        let safe = wanted.iter().filter_map(take).collect();
        self.sectors.retain(|_, kept| !is_safe(kept));
        safe
    }

    /// Sectors kept or promised a place.
    pub(super) fn len(&self) -> usize {
        self.sectors.len() + self.promised
    }

    /// The kept sectors as runs: where each begins, and its bytes.
    pub(super) fn runs(&self) -> Vec<(u64, Vec<u8>)> {
        let mut runs: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut next = None;
        for (&sector, Kept { bytes, .. }) in &self.sectors {
            match runs.last_mut() {
                Some((_, run)) if next == Some(sector) && run.len() < RUN_MAX * bytes.len() => {
                    run.extend_from_slice(bytes);
                }
                Some(_) | None => runs.push((sector, bytes.to_vec())),
            }
            next = Some(sector + 1);
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use levelhead_block::Buf;
    use levelhead_units::SECTOR_SIZE;

    use super::*;

    fn pieces(byte: u8, sectors: usize) -> Vec<Piece> {
        vec![Piece::whole(Arc::new(Buf::copy_of(&vec![byte; sectors * SECTOR_SIZE])))]
    }

    fn write(log: &mut Unflushed, first: u64, byte: u8, sectors: usize) {
        let promise = log.promise(first, &pieces(byte, sectors)).unwrap();
        log.keep(promise);
    }

    /// Where each run begins, and the first byte of each of its sectors.
    fn runs(log: &Unflushed) -> Vec<(u64, Vec<u8>)> {
        let firsts = |bytes: Vec<u8>| bytes.chunks(SECTOR_SIZE).map(|sector| sector[0]).collect();
        log.runs().into_iter().map(|(first, bytes)| (first, firsts(bytes))).collect()
    }

    #[test]
    fn later_writes_replace_earlier_ones_sector_by_sector() {
        let mut log = Unflushed::default();
        write(&mut log, 10, 1, 4);
        write(&mut log, 12, 2, 4);
        write(&mut log, 30, 3, 1);
        assert_eq!(runs(&log), [(10, vec![1, 1, 2, 2, 2, 2]), (30, vec![3])]);
        assert_eq!(log.len(), 7);
    }

    #[test]
    fn flush_covers_what_was_answered_before_it_began_and_nothing_else() {
        let mut log = Unflushed::default();
        write(&mut log, 0, 1, 2);
        let late = log.promise(5, &pieces(2, 1)).unwrap();
        let mark = log.mark();
        log.keep(late);
        write(&mut log, 1, 3, 1);
        let safe = log.handle_flushed(mark, &[0, 1, 5, 7]);
        let safe: Vec<(u64, u8)> = safe.iter().map(|(sector, bytes)| (*sector, bytes[0])).collect();
        assert_eq!(safe, [(0, 1)]);
        assert_eq!(runs(&log), [(1, vec![3]), (5, vec![2])]);
        assert_eq!(log.handle_flushed(log.mark(), &[]), []);
        assert_eq!((runs(&log), log.len()), (vec![], 0));
    }

    /// Otherwise the older bytes would be written over the newer ones.
    #[test]
    fn durable_write_ends_what_was_kept_of_its_sectors() {
        let mut log = Unflushed::default();
        write(&mut log, 0, 1, 8);
        log.forget(2..4);
        assert_eq!(runs(&log), [(0, vec![1, 1]), (4, vec![1; 4])]);
    }

    #[test]
    fn places_are_limited_and_come_free() {
        let mut log = Unflushed::default();
        let promise = log.promise(0, &pieces(1, KEPT_MAX - 1)).unwrap();
        assert!(log.promise(0, &pieces(1, 2)).is_none());
        assert!(log.promise(0, &pieces(1, 1)).is_some());
        log.withdraw(&promise);
        assert_eq!(log.len(), 1);
    }

    #[test]
    fn runs_have_a_limit() {
        let mut log = Unflushed::default();
        write(&mut log, 7, 1, RUN_MAX + 1);
        let lens: Vec<usize> = runs(&log).iter().map(|(_, run)| run.len()).collect();
        assert_eq!(lens, [RUN_MAX, 1]);
    }
}
