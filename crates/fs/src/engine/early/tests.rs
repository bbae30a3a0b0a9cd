//! Synced pages of kinds with forced zeroes, beside a model of what a power cut may leave of them.

use levelhead_erasure::Kernel;
use levelhead_stats::{Rng, Streams};
use levelhead_units::{Nanos, Sectors};

use super::*;
use crate::Settings;
use crate::bed::Bed;
use crate::format::inode::FileKind;
use crate::format::ladder::Ladder;
use crate::made::wishes;
use crate::make::Wishes;
use crate::request::{Allocation, Answer, Changes, Removed, What};
use crate::tests::History;

const FILE: u32 = 0o100_644;
const PAGES: u64 = 120;
const KINDS: [FileKind; 3] = [FileKind::B, FileKind::Mutable, FileKind::Auto];

fn noise(seed: u64, pages: u64) -> Vec<u8> {
    levelhead_testkit::noise(seed, (pages * PAGE) as usize)
}

/// With memory for next to nothing.
fn mount(disk: levelhead_block::Memory, seed: u64) -> Bed {
    let settings = Settings { cache: Sectors::new(8), ..Settings::new(Kernel::best()) };
    Bed::mount_with(disk, seed, settings)
}

/// A file on a disk that was left in order, and what it holds.
struct Cold {
    bed: Bed,
    inode: u64,
    bytes: Vec<u8>,
}

fn cold(kind: FileKind, seed: u64) -> Cold {
    let made = Wishes { forced: Ladder::new(&[20, 40]), ..wishes(8_000, 3) };
    let mut bed = Bed::made(&made, seed);
    let name = bed.root("a file");
    let inode = bed.make(&name, FILE).inode;
    bed.set_kind(inode, kind);
    let bytes = noise(seed, PAGES);
    bed.write(inode, 0, &bytes);
    Cold { bed: mount(bed.unmount(), seed), inode, bytes }
}

impl Cold {
    fn write(&mut self, page: u64, seed: u64) {
        let new = noise(seed, 1);
        let from = (page * PAGE) as usize;
        self.bytes[from..from + PAGE as usize].copy_from_slice(&new);
        self.bed.write(self.inode, page * PAGE, &new);
    }

    fn check(&mut self) {
        let count = self.bytes.len() as u32 + 1;
        assert!(self.bed.read(self.inode, 0, count).unwrap() == self.bytes);
    }

    fn cut(self, seed: u64) -> Self {
        Self { bed: mount(self.bed.cut(), seed), ..self }
    }

    fn stop(self, seed: u64) -> Self {
        Self { bed: mount(self.bed.unmount(), seed), ..self }
    }

    fn waiting(&self) -> usize {
        self.bed.fs.early.0.iter().filter(|hold| hold.until.is_none()).count()
    }
}

/// The record is all that a sync of one page waits for; what the page consists of follows in a round.
#[test]
fn synced_page_waits_for_no_complementary_sector() {
    for kind in [FileKind::B, FileKind::Mutable] {
        let mut cold = cold(kind, 1);
        // The metadata is in memory then.
        cold.bed.read(cold.inode, 100 * PAGE, 1).unwrap();
        cold.write(50, 2);
        let (read, flushes) = (cold.bed.read, cold.bed.flushes);
        cold.bed.sync(Some(cold.inode));
        assert_eq!((cold.bed.read, cold.bed.flushes), (read, flushes), "{kind:?}");
        assert_eq!(cold.waiting(), 1);
        cold.check();
        cold.bed.wait_until(cold.bed.now + Nanos::from_secs(31));
        while cold.bed.step() {}
        assert_eq!(cold.waiting(), 0);
        cold.check();
        cold = cold.cut(3);
        cold.check();
    }
}

#[test]
fn page_that_a_cut_finds_in_the_journal_alone_is_there_after_it() {
    for seed in 0..20 {
        let mut cold = cold(FileKind::Mutable, seed);
        for page in [3, 50, 51, 99, 50] {
            cold.write(page, seed + page);
            cold.bed.sync(Some(cold.inode));
        }
        for again in 0..3 {
            assert!(cold.waiting() >= 4, "{} wait", cold.waiting());
            cold = cold.cut(seed + again);
            cold.check();
        }
        cold = cold.stop(seed);
        assert_eq!(cold.waiting(), 0);
        cold.check();
    }
}

/// EP1: whose place is freed does not come back, whatever comes to that place.
#[test]
fn page_whose_place_was_freed_does_not_come_back() {
    let mut cold = cold(FileKind::Mutable, 7);
    for page in [10, 60, 100] {
        cold.write(page, page);
    }
    cold.bed.sync(Some(cold.inode));
    let inode = cold.inode;
    let (offset, count, how) = (8 * PAGE, 30 * PAGE, Allocation::Punch);
    assert_eq!(cold.bed.run(What::Allocate { inode, offset, count, how }), Answer::Done);
    cold.bytes[8 * PAGE as usize..38 * PAGE as usize].fill(0);
    let changes = Changes { size: Some(61 * PAGE), ..Changes::default() };
    cold.bed.run(What::SetAttributes { inode, changes });
    cold.bytes.truncate(61 * PAGE as usize);
    cold.bed.sync(None);
    cold = cold.cut(8);
    cold.check();
    cold.write(20, 20);
    cold.bed.sync(None);
    // Its places are another file's.
    let name = cold.bed.root("a file");
    cold.bed.run(What::Remove { name, what: Removed::File });
    cold.bed.run(What::Forget { inode, count: 1 });
    cold.bed.sync(None);
    let name = cold.bed.root("another");
    cold.inode = cold.bed.make(&name, FILE).inode;
    cold.bytes = noise(9, 600);
    let bytes = cold.bytes.clone();
    cold.bed.write(cold.inode, 0, &bytes);
    cold.bed.sync(None);
    cold = cold.cut(10);
    cold.check();
}

/// EP2.
#[test]
fn there_are_few_of_them() {
    let mut cold = cold(FileKind::Mutable, 11);
    let ring = cold.bed.fs.journal.extent().sectors.get() as usize;
    let mut most = 0;
    for round in 0..4 {
        for page in 0..PAGES {
            cold.write(page * 7 % PAGES, 1_000 * round + page);
            cold.bed.sync(Some(cold.inode));
            most = most.max(cold.waiting());
        }
    }
    assert!((3..=ring / 16).contains(&most), "{most} of {ring}");
    cold = cold.cut(12);
    cold.check();
    cold = cold.stop(13);
    cold.check();
}

/// One operation of a life with power cuts.
fn operate(bed: &mut Bed, rng: &mut Rng, inode: u64, history: &mut History) {
    let mut state = history.now().clone();
    let page = rng.below(PAGES);
    let what = match rng.below(16) {
        0 => {
            let size = page * PAGE + rng.below(2) * rng.below(PAGE);
            state.resize(size as usize, 0);
            let changes = Changes { size: Some(size), ..Changes::default() };
            What::SetAttributes { inode, changes }
        }
        1 => {
            let (offset, count) = (page * PAGE, (1 + rng.below(20)) * PAGE);
            let from = state.len().min(offset as usize);
            let to = state.len().min((offset + count) as usize);
            state[from..to].fill(0);
            What::Allocate { inode, offset, count, how: Allocation::Punch }
        }
        at => {
            // Mostly a page; now and then a part of one, or many.
            let (offset, count) = match at {
                2..4 => (page * PAGE + rng.below(PAGE), 1 + rng.below(2 * PAGE)),
                4 => (page * PAGE, 40 * PAGE),
                _ => (page * PAGE, PAGE),
            };
            let mut bytes = vec![0; count as usize];
            rng.fill(&mut bytes);
            let end = offset as usize + bytes.len();
            if state.len() < end {
                state.resize(end, 0);
            }
            state[offset as usize..end].copy_from_slice(&bytes);
            What::Write { inode, offset, bytes, appends: false }
        }
    };
    history.note(state);
    let answer = bed.run(what);
    assert!(!matches!(answer, Answer::Failed(_)), "{answer:?}");
}

/// Cuts at any moment, of what is written, synced and left to come to its place.
#[test]
fn power_cut_loses_no_page_that_was_synced() {
    let seeds = if cfg!(debug_assertions) { 10 } else { 300 };
    let (mut cuts, mut found) = (0, 0);
    for seed in 0..seeds {
        let kind = KINDS[seed as usize % 3];
        let Cold { mut bed, inode, bytes } = cold(kind, seed);
        let mut rng = Streams::new(seed).stream("life");
        let mut history = History::of(bytes);
        for step in 0..60 {
            operate(&mut bed, &mut rng, inode, &mut history);
            if rng.below(2) == 0 {
                bed.sync(Some(inode));
                history.settle();
            }
            if rng.below(12) == 0 {
                bed.wait_until(bed.now + Nanos::from_secs(31));
            }
            for _ in 0..rng.below(12) {
                bed.step();
            }
            match rng.below(10) {
                0 => {
                    found += bed.fs.early.0.len();
                    bed = mount(bed.cut(), seed + step);
                    cuts += 1;
                }
                1 if step % 4 == 0 => bed = mount(bed.unmount(), seed + step),
                _ => continue,
            }
            let bytes = bed.read(inode, 0, 2_000_000).unwrap();
            if let Err(how) = history.allows(&bytes) {
                panic!("seed {seed}, step {step}, {kind:?}: {how}");
            }
            history = History::of(bytes);
        }
    }
    println!("{cuts} cuts, {found} pages");
    assert!(found > cuts / 2, "{cuts} cuts, {found} pages");
}
