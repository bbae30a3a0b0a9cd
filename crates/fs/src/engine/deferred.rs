//! Sectors of files that could not be read, or were not right, wait to be written anew until the disk has nothing else to do.
//!
//! A reader has its bytes by then, and the rest of the codeword repairs the sector once more if it has to. Writing one sector takes the
//! disk as long as reading one at random: where one sector in two hundred needs retries, that would be longer than reading
//! the file. A scrub does not wait, for this is its purpose.
//!
//! # Invariants
//!
//! - DE1. What is written has the checksum that the filesystem keeps for the place at that moment, nothing else is on its way there, and
//!   RP1 and RP3 of [`repairs`](super::repairs) hold.
//! - DE2. Nothing is written to a place that was freed since it was read: metadata may have it by then, and the checksum of the file that
//!   had it before is still there.

use std::collections::BTreeMap;
use std::sync::Arc;

use levelhead_block::Piece;
use levelhead_units::{Extent, Instant, Lba, Nanos, Sectors};

use super::repairs::Repair;
use super::{Filesystem, Phase, Purpose};
use crate::format::extent::{CodingExtent, WordSymbol};

/// The most sectors that wait: 16 MiB of memory. What is found beyond that waits for the next reader, or for a scrub.
const WAITING_MAX: usize = 4_096;

/// How long the disk must have had nothing to do.
const QUIET: Nanos = Nanos::from_millis(50);

/// Sectors that are written at a time, so that a reader who comes waits for no more than these.
const INSIDE_MAX: usize = 8;

/// Sectors that are still written when the filesystem is unmounted: half a second at most.
const AT_END_MAX: usize = 64;

/// A sector that is to be written anew.
#[derive(Clone, Debug)]
pub(super) struct Deferred {
    pub(super) lba: Lba,
    pub(super) sum: u32,
    pub(super) piece: Piece,
    /// What it is a part of.
    pub(super) extent: CodingExtent,
    /// All of its codeword that were bad.
    pub(super) bad: Arc<Vec<Lba>>,
    /// The file that has it, if that is known.
    pub(super) inode: Option<u64>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    sectors: BTreeMap<Lba, Deferred>,
    /// When the disk has had nothing to do for long enough.
    at: Option<Instant>,
}

impl Waiting {
    /// When something is to be done.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.at
    }
}

impl Filesystem {
    /// A sector is to be written anew.
    pub(super) fn defer(&mut self, deferred: Deferred) {
        if !self.is_read_only() && self.deferred.sectors.len() < WAITING_MAX {
            self.deferred.sectors.insert(deferred.lba, deferred);
        }
    }

    /// Sectors were freed: what waits for them goes, and what is being read of them brings no repair (DE2).
    pub(super) fn forget_deferred(&mut self, extent: Extent) {
        let waiting = &mut self.deferred.sectors;
        let gone: Vec<Lba> = waiting.range(extent.lba..extent.end()).map(|(&lba, _)| lba).collect();
        gone.into_iter().for_each(|lba| drop(waiting.remove(&lba)));
        self.page_reads.values_mut().for_each(|read| read.note_freed(extent));
        self.repairs.forget(extent);
    }

    /// Goes on with what waits, if it is time.
    pub(super) fn rewrite_on(&mut self, now: Instant) -> bool {
        if self.deferred.sectors.is_empty() || !matches!(self.phase, Phase::Mounted) {
            self.deferred.at = None;
            return false;
        }
        if self.subs.values().any(|inside| inside.what != Purpose::Repair) {
            self.deferred.at = Some(now + QUIET);
            return false;
        }
        let is_time = *self.deferred.at.get_or_insert(now + QUIET) <= now;
        is_time && self.subs.is_empty() && self.rewrite_some(INSIDE_MAX)
    }

    /// Nothing more will be asked: some of what waits is written, and the rest is left. Whether anything is.
    pub(super) fn end_deferred(&mut self) -> bool {
        let has_begun = self.rewrite_some(AT_END_MAX);
        self.deferred.sectors.clear();
        has_begun
    }

    fn rewrite_some(&mut self, most: usize) -> bool {
        let mut begun = 0;
        while begun < most
            && let Some((_, deferred)) = self.deferred.sectors.pop_first()
        {
            begun += usize::from(self.rewrite_if_right(deferred));
        }
        begun > 0
    }

    /// Writes a sector anew, if it is still what lies there (DE1).
    pub(super) fn rewrite_if_right(&mut self, deferred: Deferred) -> bool {
        let Deferred { lba, sum, piece, extent, bad, inode } = deferred;
        let one = Extent::new(lba, Sectors::new(1));
        let may_write = !self.is_read_only()
            && !self.logged.contains_key(&lba)
            && !self.stale.has(extent.lba)
            && !self.is_being_written(one)
            && self.can_do_without(&extent, lba, &bad);
        // Its place may have another owner by now; units that have left memory say nothing of that.
        if !may_write || self.peek(|attempt| attempt.sum(lba)) != Some(Some(sum)) {
            return false;
        }
        self.repairs.note_mended(lba);
        self.rewrite(lba, piece, Repair::Sector { extent, inode });
        true
    }

    /// Whether a sector's twin, or its codeword, can do without all of it that was bad and all that a power cut may take.
    fn can_do_without(&self, extent: &CodingExtent, lba: Lba, bad: &[Lba]) -> bool {
        let is_unsafe = |lba: &Lba| self.repairs.is_unsafe(Extent::new(*lba, Sectors::new(1)));
        if extent.has_twins() {
            let twin = extent.twin_of(lba);
            return twin.is_some_and(|twin| !bad.contains(&twin) && !is_unsafe(&twin));
        }
        let WordSymbol { word, .. } = extent.symbol((lba - extent.lba).get() as u32);
        let symbols = extent.word_data(word) as usize + usize::from(extent.redundant);
        let place = |symbol| {
            let sector = extent.sector(WordSymbol { word, symbol });
            extent.lba + Sectors::new(sector.into())
        };
        let others = (0..symbols).map(place).filter(|lba| !bad.contains(lba)).filter(is_unsafe);
        bad.len() + others.count() <= usize::from(extent.redundant)
    }

    /// Whether something is on its way to a place.
    pub(super) fn is_being_written(&self, extent: Extent) -> bool {
        let writes = self.subs.values().filter(|inside| inside.what.is_write());
        writes
            .filter_map(|inside| inside.extent)
            .any(|other| other.lba < extent.end() && extent.lba < other.end())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::bed::Bed;
    use crate::request::What;

    const FILE: u32 = 0o100_644;

    /// A file on a disk that was mounted again, and where its sectors lie.
    fn cold_file(count: usize) -> (Bed, u64, Vec<u64>) {
        let bytes = levelhead_testkit::noise(6, count);
        let mut bed = Bed::new(20_000, 3);
        let name = bed.root("a file");
        let inode = bed.make(&name, FILE).inode;
        bed.write(inode, 0, &bytes);
        let bed = Bed::mount(bed.unmount(), 4);
        let sectors = bed.find(&bytes);
        (bed, inode, sectors)
    }

    #[test]
    fn what_is_written_by_its_owner_meanwhile_is_left_alone() {
        let (mut bed, inode, sectors) = cold_file(200_000);
        bed.bad.insert(sectors[5]);
        bed.read(inode, 0, 200_000).unwrap();
        bed.write(inode, 5 * 4_096, &[9; 4_096]);
        bed.sync(Some(inode));
        let disk = bed.unmount();
        let mut bed = Bed::mount(disk, 5);
        assert!(bed.read(inode, 5 * 4_096, 4_096).unwrap() == [9; 4_096]);
        assert_eq!(bed.fs.status().sectors_repaired, 0);
    }

    #[test]
    fn unmount_writes_some_of_what_waits_and_leaves_the_rest() {
        let (mut bed, inode, sectors) = cold_file(2_000_000);
        bed.bad = sectors.iter().copied().step_by(4).collect::<BTreeSet<u64>>();
        let count = bed.bad.len();
        assert!(count > AT_END_MAX);
        bed.read(inode, 0, 2_000_000).unwrap();
        bed.fs.unmount(bed.now);
        bed.take();
        while bed.step() {}
        assert!(bed.fs.is_unmounted());
        assert_eq!(bed.fs.status().sectors_repaired, AT_END_MAX as u64);
        assert_eq!(bed.bad.len(), count - AT_END_MAX);
    }

    /// DE2.
    #[test]
    fn place_that_was_freed_meanwhile_is_left_alone() {
        let (mut bed, inode, sectors) = cold_file(200_000);
        bed.bad.insert(sectors[5]);
        bed.read(inode, 0, 200_000).unwrap();
        let (name, what) = (bed.root("a file"), crate::request::Removed::File);
        bed.run(What::Remove { name, what });
        bed.run(What::Forget { inode, count: 1 });
        bed.sync(None);
        while let Some(at) = bed.fs.deadline() {
            bed.wait_until(at);
            while bed.step() {}
        }
        assert_eq!((bed.fs.status().sectors_repaired, bed.bad.len()), (0, 1));
    }

    /// A group is read at most once for a repair, and not at all by a reader who reads on.
    #[test]
    fn reader_in_sequence_reads_no_sector_twice() {
        let (mut bed, inode, sectors) = cold_file(4_000_000);
        bed.bad = sectors.iter().copied().skip(70).step_by(19).collect::<BTreeSet<u64>>();
        let before = bed.read;
        for at in 0..=4_000_000 / 65_536 {
            bed.run(What::Read { inode, offset: at * 65_536, count: 65_536 });
        }
        let data = sectors.len() as u64;
        // Groups of 16 have 4 redundant sectors; units are read as well.
        let most = data + data / 4 + 100;
        assert!((data..most).contains(&(bed.read - before)), "{} of {data}", bed.read - before);
        assert!(bed.fs.status().sectors_decoded >= bed.bad.len() as u64);
    }
}
