use std::collections::BTreeSet;

use levelhead_block::Memory;
use levelhead_units::{Extent, Lba, Sectors};

use crate::bed::{Bed, copy, newest};
use crate::format::inode::mode;
use crate::geometry::GroupIdx;
use crate::made::wishes;
use crate::request::{Answer, ScrubParts, ScrubPlace, What};

const FILE: u32 = mode::FILE | 0o644;

fn page(at: u64) -> [u8; 4_096] {
    let mut page = [at as u8 + 1; 4_096];
    page[..8].copy_from_slice(&at.to_le_bytes());
    page
}

/// A file of some pages on a disk that was left in order.
fn disk_with_file(copies: u8, pages: u64) -> (Memory, u64) {
    let mut bed = Bed::made(&wishes(4_096, copies), 3);
    let name = bed.root("a file");
    let inode = bed.make(&name, FILE).inode;
    for at in 0..pages {
        bed.write(inode, at * 4_096, &page(at));
    }
    (bed.unmount(), inode)
}

/// A sector is written anew, and a page beside it gets other bytes right after: when these come to their place, which makes the
/// group's redundancy void, the sector must be safe.
#[test]
fn sector_that_was_written_anew_is_safe_before_its_redundancy_is_void() {
    let (disk, inode) = disk_with_file(3, 12);
    let lba = Bed::mount(copy(&disk), 1).find(&page(5))[0];
    let mut places = 0;
    for seed in 0..120 {
        let mut bed = Bed::mount(copy(&disk), seed);
        bed.overwrite(lba);
        let mut bed = Bed::mount(bed.disk, seed);
        assert_eq!(bed.read(inode, 5 * 4_096, 4_096).unwrap(), page(5));
        while bed.fs.repairs.inside.is_empty() {
            while bed.step() {}
            let quiet = bed.fs.deadline().expect("a repair waits");
            bed.wait_until(quiet);
        }
        bed.write(inode, 7 * 4_096, &page(70));
        bed.sync(None);
        for _ in 0..seed / 4 {
            if !bed.step()
                && let Some(at) = bed.fs.deadline()
            {
                bed.wait_until(at);
            }
        }
        places += u64::from(bed.fs.status().groups_stale == 0);
        let mut bed = Bed::mount(bed.cut(), seed);
        for at in 0..12 {
            let known = page(if at == 7 { 70 } else { at });
            let found = bed.read(inode, at * 4_096, 4_096);
            assert!(found == Ok(known.to_vec()), "seed {seed}, page {at}: {:?}", found.err());
        }
    }
    assert!(places > 0, "it has come so far");
}

/// Copies that one pass does not bring are right: one of them stays as it is while the others are written anew, for a cut may take
/// these, and the only one is left alone.
#[test]
fn copies_that_need_retries_are_not_all_written_anew() {
    for copies in [1, 3] {
        let (disk, inode) = disk_with_file(copies, 3);
        let geometry = newest(&disk).unwrap().geometry;
        let mut bed = Bed::mount(disk, 1);
        while bed.step() {}
        let written = bed.written;
        bed.weak.extend(0..geometry.sectors);
        let known = [page(0), page(1), page(2)].concat();
        assert_eq!(bed.read(inode, 0, 20_000), Ok(known));
        while bed.step() {}
        assert_eq!(bed.written > written, copies > 1);
        for lead in (0..geometry.sectors).map(Lba::new) {
            if geometry.may_lead(lead) && bed.is_unit(lead.get()) {
                let mut copies = geometry.copies_of(lead).into_iter();
                assert!(copies.any(|lba| bed.weak.contains(&lba.get())), "{lead:?}");
            }
        }
    }
}

/// A scrub and a reader find the same copy bad: one of them writes it anew.
#[test]
fn copy_is_written_anew_by_one_of_those_that_find_it_bad() {
    let (disk, inode) = disk_with_file(3, 12);
    let geometry = newest(&disk).unwrap().geometry;
    for seed in 0..60 {
        let mut bed = Bed::mount(copy(&disk), seed);
        for group in 0..geometry.groups() {
            let first = geometry.group(GroupIdx(group)).lba.get();
            let near = geometry.near();
            bed.bad.extend((0..geometry.fixed_units()).map(|at| first + 1 + at * near));
        }
        let scrubs: Vec<_> = (0..geometry.groups())
            .map(|group| (ScrubPlace::Group(group), ScrubParts::ALL))
            .map(|(place, parts)| bed.ask(What::Scrub { place, parts }))
            .collect();
        for _ in 0..seed / 3 {
            bed.step();
        }
        let read = bed.ask(What::Read { inode, offset: 0, count: 4_096 });
        while bed.step() {}
        assert_eq!(bed.answer(read), Some(Answer::Bytes(page(0).to_vec())));
        for scrub in scrubs {
            assert!(matches!(bed.answer(scrub), Some(Answer::Scrubbed(_))));
        }
    }
}

/// SC3. A reader finds the first copy of a unit bad and the next one right, and does not look at the last one, while a scrub reads all of
/// them: whichever comes first, no copy stays bad.
#[test]
fn scrub_repairs_the_copies_that_a_reader_does_not_look_at() {
    let (disk, inode) = disk_with_file(3, 12);
    let geometry = newest(&disk).unwrap().geometry;
    let data = Lba::new(Bed::mount(copy(&disk), 1).find(&page(0))[0]);
    let copies = geometry.copies_of(geometry.sum_of(data).lead);
    for seed in 0..60 {
        let mut bed = Bed::mount(copy(&disk), seed);
        bed.bad.extend([copies[0], copies[2]].map(Lba::get));
        while bed.step() {}
        let read = bed.ask(What::Read { inode, offset: 0, count: 4_096 });
        let what = What::Scrub { place: ScrubPlace::Group(0), parts: ScrubParts::ALL };
        let scrub = bed.ask(what);
        while bed.step() {}
        assert_eq!(bed.answer(read), Some(Answer::Bytes(page(0).to_vec())));
        assert!(matches!(bed.answer(scrub), Some(Answer::Scrubbed(_))));
        assert_eq!(bed.bad, BTreeSet::new(), "seed {seed}");
    }
}

/// Until nothing is left to do.
fn settle(bed: &mut Bed) {
    for _ in 0..100 {
        while bed.step() {}
        if let Some(at) = bed.fs.deadline() {
            bed.wait_until(at);
        }
    }
}

/// SC1. A unit of a step is changed and comes to its place while the step waits for another unit: the copy that was bad when it was read
/// does not get the older version.
#[test]
fn scrub_writes_no_version_that_is_older_than_what_is_in_place() {
    let (disk, inode) = disk_with_file(3, 12);
    let geometry = newest(&disk).unwrap().geometry;
    let mut bed = Bed::mount(disk, 1);
    let data = Lba::new(bed.find(&page(0))[0]);
    let copies = geometry.copies_of(geometry.sum_of(data).lead);
    let content = |bed: &Bed| -> Vec<Vec<u8>> {
        let sector = |&lba: &Lba| bed.disk.bytes(Extent::new(lba, Sectors::new(1))).to_vec();
        copies.iter().map(sector).collect()
    };
    assert_eq!(bed.read(inode, 0, 4_096), Ok(page(0).to_vec()));
    while bed.step() {}
    let before = content(&bed);
    bed.bad.insert(copies[0].get());
    bed.held = Some(geometry.copies_of(geometry.bitmap_of(data))[1]);
    let scrub = bed.ask(What::Scrub { place: ScrubPlace::Group(0), parts: ScrubParts::ALL });
    while bed.step() {}
    bed.write(inode, 0, &page(70));
    bed.sync(None);
    settle(&mut bed);
    assert_eq!(bed.answer(scrub), None, "the step waits for the bitmap");
    let placed = content(&bed);
    assert_ne!(placed[0], before[0], "it has come to its place");
    bed.held = None;
    settle(&mut bed);
    let answer = bed.answer(scrub);
    assert!(matches!(answer, Some(Answer::Scrubbed(_))), "{answer:?}");
    assert!(content(&bed).iter().all(|copy| *copy == placed[1]));
}

/// What is lost is met by each read that wants it, and is still one sector; with other bytes it can be lost once more.
#[test]
fn lost_sector_is_counted_once() {
    let (disk, inode) = disk_with_file(3, 12);
    let mut bed = Bed::mount(disk, 1);
    let lost: Vec<u64> = (0..7).map(|at| bed.find(&page(at))[0]).collect();
    lost.iter().for_each(|&lba| bed.overwrite(lba));
    let mut bed = Bed::mount(bed.disk, 2);
    for _ in 0..3 {
        for at in 0..12 {
            let found = bed.read(inode, at * 4_096, 4_096);
            assert_eq!(found.is_err(), at < 7, "page {at}");
        }
    }
    assert_eq!(bed.fs.status().sectors_lost, 7);
}
