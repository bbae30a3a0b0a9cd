//! Files of kinds with forced zeroes, beside a model of what they hold.

use levelhead_block::ZeroTail;
use levelhead_stats::{Rng, Streams};
use levelhead_testkit::noise;

use super::*;
use crate::bed::Bed;
use crate::format::inode::FileKind;
use crate::format::ladder::Ladder;
use crate::made::wishes;
use crate::make::Wishes;
use crate::request::{Allocation, Answer, Changes, What};

const FILE: u32 = 0o100_644;
const PAGE: u64 = SECTOR_SIZE as u64;
const KINDS: [FileKind; 2] = [FileKind::B, FileKind::Mutable];

fn forcing() -> Wishes {
    Wishes { forced: Ladder::new(&[20, 40]), ..wishes(8_000, 3) }
}

fn bed(seed: u64) -> Bed {
    Bed::made(&forcing(), seed)
}

impl Bed {
    fn make_of(&mut self, kind: FileKind) -> u64 {
        let name = self.root(kind.name());
        let inode = self.make(&name, FILE).inode;
        self.set_kind(inode, kind);
        inode
    }
}

/// A file and what it should hold.
struct Model {
    inode: u64,
    bytes: Vec<u8>,
}

impl Model {
    fn check(&self, bed: &mut Bed) {
        let got = bed.read(self.inode, 0, self.bytes.len() as u32 + 1).unwrap();
        assert_eq!(got.len(), self.bytes.len());
        let wrong = got.iter().zip(&self.bytes).position(|(got, right)| got != right);
        assert_eq!(wrong, None, "of inode {}", self.inode);
    }

    /// One change, at random.
    fn change(&mut self, bed: &mut Bed, rng: &mut Rng) {
        const SIZE_MAX: u64 = 100 * PAGE;
        let inode = self.inode;
        let offset = rng.below(SIZE_MAX);
        let count = match rng.below(3) {
            0 => 1 + rng.below(300),
            1 => 1 + rng.below(5 * PAGE),
            _ => 1 + rng.below(60 * PAGE),
        };
        let (offset, count) = match rng.below(2) {
            0 => (offset, count),
            _ => (offset / PAGE * PAGE, count.next_multiple_of(PAGE)),
        };
        let end = (offset + count) as usize;
        match rng.below(8) {
            0 => {
                let size = Some(offset);
                let answer = bed.run(What::SetAttributes {
                    inode,
                    changes: Changes { size, ..Changes::default() },
                });
                assert!(matches!(answer, Answer::Attributes(_)), "{answer:?}");
                self.bytes.resize(offset as usize, 0);
            }
            1 => {
                let how = Allocation::Punch;
                assert_eq!(bed.run(What::Allocate { inode, offset, count, how }), Answer::Done);
                let end = end.min(self.bytes.len());
                let from = (offset as usize).min(end);
                self.bytes[from..end].fill(0);
            }
            2 => {
                let how = Allocation::Keep;
                assert_eq!(bed.run(What::Allocate { inode, offset, count, how }), Answer::Done);
            }
            _ => {
                let bytes = noise(rng.below(1 << 30), count as usize);
                bed.write(inode, offset, &bytes);
                if self.bytes.len() < end {
                    self.bytes.resize(end, 0);
                }
                self.bytes[offset as usize..end].copy_from_slice(&bytes);
            }
        }
    }
}

#[test]
fn files_of_all_kinds_hold_what_was_written_to_them() {
    for seed in 0..12 {
        let mut bed = bed(seed);
        let mut rng = Streams::new(seed).stream("changes");
        let mut models: Vec<Model> =
            FileKind::ALL.map(|kind| Model { inode: bed.make_of(kind), bytes: Vec::new() }).into();
        for step in 0..60 {
            let at = rng.below(models.len() as u64) as usize;
            models[at].change(&mut bed, &mut rng);
            match rng.below(6) {
                0 => bed.sync(Some(models[at].inode)),
                1 => models.iter().for_each(|model| model.check(&mut bed)),
                _ => {}
            }
            if step % 20 == 19 {
                bed = Bed::mount(bed.unmount(), seed + step);
                models.iter().for_each(|model| model.check(&mut bed));
            }
        }
        bed.sync(None);
        bed = Bed::mount(bed.cut(), seed);
        models.iter().for_each(|model| model.check(&mut bed));
    }
}

/// LY2, on the disk: nothing of such a file is written without its zeroes.
#[test]
fn everything_of_such_a_file_is_written_with_its_zeroes() {
    for (kind, least) in [(FileKind::B, ZeroTail::B256), (FileKind::Mutable, ZeroTail::B512)] {
        let mut bed = bed(1);
        let inode = bed.make_of(kind);
        bed.write(inode, 0, &noise(3, 300_000));
        bed.sync(Some(inode));
        bed.write(inode, 5_000, &noise(4, 10_000));
        let mut bed = Bed::mount(bed.unmount(), 2);
        bed.read(inode, 0, 300_000).unwrap();
        let zeroes = if least == ZeroTail::B512 { 512 } else { 256 };
        for (page, bytes) in noise(3, 300_000).chunks_exact(SECTOR_SIZE).enumerate().skip(4) {
            let mut primary = bytes.to_vec();
            primary[SECTOR_SIZE - zeroes..].fill(0);
            assert_eq!(bed.find(&primary).len(), 1, "page {page}");
        }
    }
}

/// Where the pages of a file lie.
fn places(bed: &mut Bed, inode: u64) -> Vec<SplitPlace> {
    let found = bed.fs.peek(|attempt| {
        let known = attempt.inode(inode)?;
        let pages = Pages { from: 0, to: u64::MAX };
        attempt.windows(inode, &known, pages, usize::MAX)
    });
    let windows = found.expect("its tree is in memory");
    let places = windows.iter().flat_map(|mapped| mapped.window.places().collect::<Vec<_>>());
    places
        .map(|place| match place {
            PagePlace::Split(place) => place,
            PagePlace::Whole(lba) => panic!("a page is whole at {lba:?}"),
        })
        .collect()
}

/// A file on a disk that was mounted again.
fn cold(kind: FileKind, bytes: &[u8], seed: u64) -> (Bed, u64, Vec<SplitPlace>) {
    let mut bed = bed(5);
    let inode = bed.make_of(kind);
    bed.write(inode, 0, bytes);
    bed.sync(Some(inode));
    let places = places(&mut bed, inode);
    (Bed::mount(bed.unmount(), seed), inode, places)
}

#[test]
fn complementary_sector_is_repaired_from_its_twin() {
    let bytes = noise(7, 200_000);
    let (mut bed, inode, places) = cold(FileKind::Mutable, &bytes, 6);
    for place in &places {
        bed.bad.insert(place.complement.get());
    }
    let blocks = bed.bad.len() as u64;
    assert!(bed.read(inode, 0, 200_000).unwrap() == bytes);
    let status = bed.fs.status();
    assert_eq!((status.sectors_decoded, status.sectors_lost), (blocks, 0));
    while let Some(at) = bed.fs.deadline() {
        bed.wait_until(at);
        while bed.step() {}
    }
    assert_eq!((bed.fs.status().sectors_repaired, bed.bad.len()), (blocks, 0));
}

#[test]
fn primary_and_complementary_sectors_of_kind_b_are_computed() {
    let bytes = noise(8, 200_000);
    let (mut bed, inode, places) = cold(FileKind::B, &bytes, 6);
    bed.bad.extend([places[3].primary.get(), places[3].complement.get()]);
    assert!(bed.read(inode, 0, 200_000).unwrap() == bytes);
    assert_eq!(bed.fs.status().sectors_lost, 0);
}

/// CP2: the lost ends of other pages do not become zeroes.
#[test]
fn write_into_a_block_without_its_complementary_sector_loses_nothing_more() {
    let mut bytes = noise(9, 200_000);
    let (mut bed, inode, places) = cold(FileKind::Mutable, &bytes, 6);
    let SplitPlace { complement, twin, .. } = places[2];
    bed.bad.extend([complement.get(), twin.unwrap().get()]);
    let new = noise(10, 2 * SECTOR_SIZE);
    bed.write(inode, 2 * PAGE, &new);
    bed.sync(Some(inode));
    bytes[2 * SECTOR_SIZE..4 * SECTOR_SIZE].copy_from_slice(&new);
    let mut bed = Bed::mount(bed.unmount(), 7);
    bed.bad.extend([complement.get(), twin.unwrap().get()]);
    for (page, right) in bytes.chunks(SECTOR_SIZE).enumerate() {
        let got = bed.read(inode, page as u64 * PAGE, right.len() as u32);
        // Pages 0 to 6 share the sector; 2 and 3 have left.
        let is_lost = page < 7 && !(2..4).contains(&page);
        assert_eq!(got.ok().as_deref(), (!is_lost).then_some(right), "page {page}");
    }
}

/// What is read while its block is being changed is right.
#[test]
fn neighbour_in_a_block_is_read_while_that_is_flushed() {
    for kind in KINDS {
        for seed in 0..26 {
            let bytes = noise(11, 12 * SECTOR_SIZE);
            let (mut bed, inode, _) = cold(kind, &bytes, seed);
            bed.write(inode, 3 * PAGE, &noise(seed, SECTOR_SIZE));
            let sync = bed.ask(What::Sync { inode: Some(inode) });
            for _ in 0..seed % 13 {
                bed.step();
            }
            let read = bed.ask(What::Read { inode, offset: 5 * PAGE, count: PAGE as u32 });
            while bed.step() {}
            assert_eq!(bed.answer(sync), Some(Answer::Done));
            let right = bytes[5 * SECTOR_SIZE..6 * SECTOR_SIZE].to_vec();
            assert_eq!(bed.answer(read), Some(Answer::Bytes(right)));
        }
    }
}

/// CP1: whatever a cut leaves, each page is as it was before a write or after it.
#[test]
fn page_is_old_or_new_after_a_cut() {
    for kind in KINDS {
        for seed in 0..40 {
            let bytes = noise(12, 20 * SECTOR_SIZE);
            let (mut bed, inode, _) = cold(kind, &bytes, seed);
            let new = noise(13, 20 * SECTOR_SIZE);
            for page in [3, 4, 9, 17] {
                bed.write(inode, page * PAGE, &new[page as usize * SECTOR_SIZE..][..SECTOR_SIZE]);
            }
            bed.ask(What::Sync { inode: Some(inode) });
            for _ in 0..seed {
                bed.step();
            }
            let mut bed = Bed::mount(bed.cut(), seed);
            let got = bed.read(inode, 0, bytes.len() as u32).unwrap();
            for (page, got) in got.chunks(SECTOR_SIZE).enumerate() {
                let here = page * SECTOR_SIZE..(page + 1) * SECTOR_SIZE;
                let is_old = *got == bytes[here.clone()];
                let is_new = [3, 4, 9, 17].contains(&page) && *got == new[here];
                assert!(is_old || is_new, "page {page} of seed {seed} is neither");
            }
        }
    }
}
