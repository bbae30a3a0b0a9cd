//! A sector that cannot be read, in a coding extent of which another sector is on its way to its place.

use levelhead_block::Memory;

use crate::bed::{Bed, copy};
use crate::format::inode::mode;
use crate::made::wishes;

const PAGE: usize = 4_096;

/// Pages of the file: one coding extent.
const PAGES: u64 = 12;

fn page(at: u64) -> Vec<u8> {
    let mut page = vec![at as u8 + 1; PAGE];
    page[..8].copy_from_slice(&at.to_le_bytes());
    page
}

/// A file of some pages on a disk that was left in order.
fn disk_with_file() -> (Memory, u64) {
    let mut bed = Bed::made(&wishes(4_096, 3), 3);
    let name = bed.root("a file");
    let inode = bed.make(&name, mode::FILE | 0o644).inode;
    let all: Vec<u8> = (0..PAGES).flat_map(page).collect();
    bed.write(inode, 0, &all);
    (bed.unmount(), inode)
}

/// The same mounted, with a page that has been written and synced.
fn with_synced(disk: &Memory, inode: u64, seed: u64, at: u64) -> Bed {
    let mut bed = Bed::mount(copy(disk), seed);
    bed.write(inode, at * PAGE as u64, &page(at + 100));
    bed.sync(None);
    bed
}

/// Goes on until nothing is to be done any more.
fn come_to_rest(bed: &mut Bed) {
    loop {
        while bed.step() {}
        let Some(at) = bed.fs.deadline() else { return };
        bed.wait_until(at);
    }
}

/// Steps until nothing is to be done any more.
fn steps(disk: &Memory, inode: u64, seed: u64, at: u64) -> u64 {
    let mut bed = with_synced(disk, inode, seed, at);
    for step in 0.. {
        if !bed.step() {
            let Some(at) = bed.fs.deadline() else { return step };
            bed.wait_until(at);
        }
    }
    unreachable!("it comes to rest")
}

/// A sector fails after each step that a page beside it takes to its place, and is read: it is computed.
fn is_read_at_any_step(written: u64) {
    let (disk, inode) = disk_with_file();
    for seed in 0..4 {
        for count in 0..steps(&disk, inode, seed, written) {
            let mut bed = with_synced(&disk, inode, seed, written);
            let lba = bed.find(&page(5))[0];
            for _ in 0..count {
                if !bed.step() {
                    let at = bed.fs.deadline().expect("it has not come to rest");
                    bed.wait_until(at);
                }
            }
            bed.bad.insert(lba);
            let found = bed.read(inode, 5 * PAGE as u64, PAGE as u32);
            assert!(found == Ok(page(5)), "seed {seed}, step {count}: {:?}", found.err());
            come_to_rest(&mut bed);
            assert_eq!(bed.fs.status().sectors_lost, 0, "seed {seed}, step {count}");
        }
    }
}

/// From the first write of the places to the record that noted their checksums it was called lost.
#[test]
fn sector_that_fails_while_its_redundancy_is_on_its_way_is_read() {
    is_read_at_any_step(7);
}

/// A coding extent that had grown had lost its redundancy with that.
#[test]
fn sector_that_fails_while_its_coding_extent_grows_is_read() {
    is_read_at_any_step(PAGES);
}

/// The sector is bad before the page is written, and nobody knows.
#[test]
fn sector_that_was_bad_before_is_right_when_the_page_beside_it_is_in_its_place() {
    let (disk, inode) = disk_with_file();
    for written in [7, PAGES] {
        let lba = Bed::mount(copy(&disk), 1).find(&page(5))[0];
        let mut bed = Bed::mount(copy(&disk), 2);
        bed.bad.insert(lba);
        bed.write(inode, written * PAGE as u64, &page(written + 100));
        bed.sync(None);
        come_to_rest(&mut bed);
        let mut bed = Bed::mount(bed.unmount(), 3);
        bed.bad.insert(lba);
        assert_eq!(bed.read(inode, 5 * PAGE as u64, PAGE as u32), Ok(page(5)), "{written}");
    }
}

/// What had come to its place counted as stale after a cut, until a later record or a mark had let go of the one that had said so.
#[test]
fn coding_extent_in_its_place_is_not_stale_after_a_cut() {
    let (disk, inode) = disk_with_file();
    for seed in 0..8 {
        let mut bed = with_synced(&disk, inode, seed, 7);
        let lba = bed.find(&page(5))[0];
        come_to_rest(&mut bed);
        let mut bed = Bed::mount(bed.cut(), seed);
        assert_eq!(bed.fs.status().groups_stale, 0);
        bed.bad.insert(lba);
        for at in 0..PAGES {
            let known = page(if at == 7 { 107 } else { at });
            let found = bed.read(inode, at * PAGE as u64, PAGE as u32);
            assert!(found == Ok(known), "seed {seed}, page {at}: {:?}", found.err());
        }
    }
}
