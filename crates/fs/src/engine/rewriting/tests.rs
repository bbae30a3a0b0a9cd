//! Files get the places of their kind, and keep what they hold.

use levelhead_testkit::noise;

use super::super::sectors::SectorCache;
use super::*;
use crate::bed::Bed;
use crate::format::inode::FileKind;
use crate::format::ladder::Ladder;
use crate::made::wishes;
use crate::make::Wishes;
use crate::request::{Answer, ScrubParts, ScrubPlace, What};
use crate::settings::Update;

const FILE: u32 = 0o100_644;
const PAGE: usize = levelhead_units::SECTOR_SIZE;
const SIZE: usize = 60 * PAGE - 100;

impl Bed {
    /// A file's coding extents.
    fn extents(&mut self, inode: u64) -> Vec<CodingExtent> {
        let found = self.fs.peek(|attempt| {
            let known = attempt.inode(inode)?;
            attempt.windows(inode, &known, Pages { from: 0, to: u64::MAX }, usize::MAX)
        });
        let windows = found.expect("its tree is in memory");
        windows.iter().map(|mapped| mapped.window.extent).collect()
    }

    fn kinds(&mut self, inode: u64) -> Vec<FileKind> {
        let extents = self.extents(inode);
        let mut kinds: Vec<FileKind> = extents.iter().map(|extent| extent.kind).collect();
        kinds.dedup();
        kinds
    }

    fn scrub(&mut self) {
        let mut place = Some(ScrubPlace::FIRST);
        while let Some(from) = place {
            let parts = ScrubParts::ALL;
            let Answer::Scrubbed(done) = self.run(What::Scrub { place: from, parts }) else {
                panic!("it is scrubbed")
            };
            place = done.next;
        }
    }

    /// Until nothing is due any more.
    fn wait(&mut self) {
        while self.step() {}
        while let Some(at) = self.fs.deadline() {
            self.wait_until(at);
            while self.step() {}
        }
    }
}

/// Windows of one page each, as synced appends leave them, go together: not one a second.
#[test]
fn small_windows_are_rewritten_together() {
    let (mut bed, inode) = bed(FileKind::Mutable, 1);
    let size = bed.read(inode, 0, SIZE as u32).unwrap().len();
    for at in 0..30 {
        bed.write(inode, ((size / PAGE + 1 + at) * PAGE) as u64, &[at as u8; PAGE]);
        bed.sync(Some(inode));
    }
    let before = bed.extents(inode).len();
    bed.set_kind(inode, FileKind::Auto);
    let begun = bed.now;
    while bed.kinds(inode) != [FileKind::Auto] {
        bed.wait_until(bed.fs.deadline().expect("there is more to do"));
        while bed.step() {}
    }
    let took = bed.now.saturating_since(begun);
    assert!(before > 20 && took < Nanos::from_secs(8), "{took:?} for {before} windows");
}

/// A place that does not hold what is written to it is left, and not taken again; one that a write mends is kept.
#[test]
fn file_leaves_a_place_that_fails_again_after_a_repair() {
    for (is_worn, at) in [(true, 5), (true, 17), (false, 5)] {
        let bytes = noise(4, 400_000);
        let long = Wishes { ladder: Ladder::fixed(60, 4).unwrap(), ..wishes(20_000, 3) };
        let mut bed = Bed::made(&long, 3);
        let name = bed.root("file");
        let inode = bed.make(&name, FILE).inode;
        bed.write(inode, 0, &bytes);
        let mut bed = Bed::mount(bed.unmount(), 4);
        let lba = bed.find(&bytes)[at];
        bed.bad.insert(lba);
        if is_worn {
            bed.worn.insert(lba);
        }
        // Each scrub reads what the one before has written anew.
        for _ in 0..3 {
            bed.scrub();
            bed.wait();
        }
        let has_place =
            bed.extents(inode).iter().any(|extent| extent.all().contains(Lba::new(lba)));
        assert_eq!(has_place, !is_worn, "{at}");
        assert_eq!(bed.bad.contains(&lba), is_worn);
        assert!(bed.fs.recent.end_over(lba).is_some() == is_worn, "it would be taken again");
        assert!(bed.read(inode, 0, 500_000).unwrap() == bytes);
        let mut bed = Bed::mount(bed.unmount(), 5);
        assert!(bed.read(inode, 0, 500_000).unwrap() == bytes);
    }
}

/// Redundancy follows what has changed beside a sector that fails again after its repair: that is noticed, and the file leaves the place.
#[test]
fn file_leaves_a_place_that_fails_again_while_redundancy_is_placed() {
    let mut bytes = noise(4, 400_000);
    let long = Wishes { ladder: Ladder::fixed(60, 4).unwrap(), ..wishes(20_000, 3) };
    let mut bed = Bed::made(&long, 3);
    let name = bed.root("file");
    let inode = bed.make(&name, FILE).inode;
    bed.write(inode, 0, &bytes);
    let mut bed = Bed::mount(bed.unmount(), 4);
    bed.fs.settings.update = Update::Scratch;
    let lba = bed.find(&bytes)[5];
    bed.bad.insert(lba);
    bed.worn.insert(lba);
    assert!(bed.read(inode, 5 * PAGE as u64, PAGE as u32).is_ok());
    bed.wait();
    assert_eq!(bed.fs.status().sectors_repaired, 1);
    // Nothing reads the file any more: what is beside the change is read to compute redundancy.
    bed.fs.sectors = SectorCache::new(2);
    bytes[7 * PAGE..8 * PAGE].fill(7);
    bed.write(inode, 7 * PAGE as u64, &bytes[7 * PAGE..8 * PAGE]);
    bed.sync(Some(inode));
    bed.wait();
    assert_eq!(bed.fs.status().groups_stale, 0);
    bed.wait();
    assert!(bed.extents(inode).iter().all(|extent| !extent.all().contains(Lba::new(lba))));
    assert!(bed.fs.recent.end_over(lba).is_some(), "it would be taken again");
    assert!(bed.read(inode, 0, 500_000).unwrap() == bytes);
}

#[test]
fn file_leaves_a_second_place_that_is_found_while_it_leaves_the_first() {
    let bytes = noise(4, 400_000);
    let long = Wishes { ladder: Ladder::fixed(60, 4).unwrap(), ..wishes(20_000, 3) };
    let mut bed = Bed::made(&long, 3);
    let name = bed.root("file");
    let inode = bed.make(&name, FILE).inode;
    bed.write(inode, 0, &bytes);
    let mut bed = Bed::mount(bed.unmount(), 4);
    let places = bed.find(&bytes);
    // The second is in front of the window that is being rewritten.
    let [first, second] = [70, 5].map(|page| Lba::new(places[page]));
    bed.fs.repairs.worn.insert(first);
    bed.fs.leave_place(inode, first);
    let is_read = |bed: &Bed| bed.fs.rewriting.job.is_some_and(|job| bed.fs.is_reading(job));
    for _ in 0..100 {
        if !is_read(&bed) && !bed.step() {
            bed.wait_until(bed.fs.deadline().unwrap_or(bed.now));
        }
    }
    assert!(is_read(&bed), "it is rewritten when the disk is quiet");
    bed.fs.repairs.worn.insert(second);
    bed.fs.leave_place(inode, second);
    bed.wait();
    let extents = bed.extents(inode);
    for lba in [first, second] {
        assert!(extents.iter().all(|extent| !extent.all().contains(lba)), "{lba:?} is left");
    }
    assert!(bed.read(inode, 0, 500_000).unwrap() == bytes);
}

/// A filesystem with a file of a kind.
fn bed(kind: FileKind, seed: u64) -> (Bed, u64) {
    let wishes = Wishes { forced: Ladder::new(&[20, 40]), ..wishes(8_000, 3) };
    let mut bed = Bed::made(&wishes, seed);
    let name = bed.root("file");
    let inode = bed.make(&name, FILE).inode;
    bed.set_kind(inode, kind);
    bed.write(inode, 0, &noise(3, SIZE));
    bed.sync(Some(inode));
    assert_eq!(bed.kinds(inode), [kind]);
    (bed, inode)
}

#[test]
fn file_of_another_kind_gets_other_places_and_keeps_what_it_holds() {
    let kinds = [FileKind::Auto, FileKind::B, FileKind::Mutable];
    for (from, to) in kinds.into_iter().flat_map(|from| kinds.map(|to| (from, to))) {
        let (mut bed, inode) = bed(from, 1);
        let before = bed.run(What::GetAttributes(inode));
        bed.set_kind(inode, to);
        bed.wait();
        assert_eq!(bed.kinds(inode), [to]);
        let (Answer::Attributes(before), Answer::Attributes(after)) =
            (before, bed.run(What::GetAttributes(inode)))
        else {
            panic!("it is there");
        };
        assert_eq!((before.size, before.modified), (after.size, after.modified));
        let mut bed = Bed::mount(bed.unmount(), 2);
        assert!(bed.read(inode, 0, SIZE as u32).unwrap() == noise(3, SIZE));
    }
}

#[test]
fn file_of_kind_b_that_is_changed_becomes_mutable() {
    let (mut bed, inode) = bed(FileKind::B, 1);
    let mut bytes = noise(3, SIZE);
    bed.wait();
    assert_eq!(bed.kinds(inode), [FileKind::B]);
    bytes[7 * PAGE..8 * PAGE].fill(9);
    bed.write(inode, 7 * PAGE as u64, &[9; PAGE]);
    bed.sync(Some(inode));
    assert_eq!(bed.kinds(inode), [FileKind::B], "nothing is rewritten while the disk is busy");
    bed.wait();
    assert_eq!(bed.kinds(inode), [FileKind::Mutable]);
    assert!(bed.read(inode, 0, SIZE as u32).unwrap() == bytes);
}

/// Its last page, which was not full, is written more than once.
#[test]
fn file_of_kind_b_that_grows_stays_one() {
    let (mut bed, inode) = bed(FileKind::B, 1);
    for at in 0..9 {
        bed.write(inode, (SIZE + at * 1_000) as u64, &[1; 1_000]);
        bed.sync(Some(inode));
    }
    bed.wait();
    assert_eq!(bed.kinds(inode), [FileKind::B]);
}

#[test]
fn write_that_comes_meanwhile_is_kept() {
    for seed in 0..60 {
        let (mut bed, inode) = bed(FileKind::Auto, seed);
        bed.set_kind(inode, FileKind::Mutable);
        while bed.step() {}
        // Until the rewriting has begun, and some steps more.
        while let Some(at) = bed.fs.deadline()
            && bed.fs.rewriting.job.is_none()
        {
            bed.wait_until(at);
            while bed.fs.rewriting.job.is_none() && bed.step() {}
        }
        for _ in 0..seed % 12 {
            bed.step();
        }
        let mut bytes = noise(3, SIZE);
        bytes[5 * PAGE + 9..9 * PAGE].fill(7);
        bed.write(inode, 5 * PAGE as u64 + 9, &[7; 4 * PAGE - 9]);
        bed.wait();
        assert_eq!(bed.kinds(inode), [FileKind::Mutable]);
        assert!(bed.read(inode, 0, SIZE as u32).unwrap() == bytes, "seed {seed}");
    }
}

#[test]
fn power_cut_while_a_file_is_rewritten_loses_nothing() {
    for seed in 0..60 {
        let (mut bed, inode) = bed(FileKind::B, seed);
        bed.set_kind(inode, FileKind::Mutable);
        bed.sync(None);
        for _ in 0..seed {
            if !bed.step()
                && let Some(at) = bed.fs.deadline()
            {
                bed.wait_until(at);
            }
        }
        let mut bed = Bed::mount(bed.cut(), seed);
        let got = bed.read(inode, 0, SIZE as u32).unwrap();
        let wrong = got.iter().zip(noise(3, SIZE)).position(|(got, right)| *got != right);
        assert_eq!((got.len(), wrong), (SIZE, None), "seed {seed}");
    }
}

#[test]
fn scrub_finds_what_was_left_when_it_was_unmounted() {
    let (mut bed, inode) = bed(FileKind::Auto, 1);
    bed.set_kind(inode, FileKind::B);
    let mut bed = Bed::mount(bed.unmount(), 2);
    bed.read(inode, 0, 1).unwrap();
    assert_eq!(bed.kinds(inode), [FileKind::Auto]);
    bed.scrub();
    bed.wait();
    assert_eq!(bed.kinds(inode), [FileKind::B]);
    assert!(bed.read(inode, 0, SIZE as u32).unwrap() == noise(3, SIZE));
}

/// The pages beside a lost one stay with it where they are few: that is no change that would begin all of it again.
#[test]
fn file_with_a_lost_page_is_rewritten_once() {
    let (bed, inode) = bed(FileKind::B, 1);
    let mut bed = Bed::mount(bed.unmount(), 2);
    bed.read(inode, 0, 1).unwrap();
    let places = bed.fs.peek(|attempt| {
        let known = attempt.inode(inode)?;
        let windows = attempt.windows(inode, &known, Pages { from: 0, to: u64::MAX }, 9)?;
        Ok(windows[0].window.extent.lba)
    });
    let first = places.expect("its tree is in memory").get();
    // More than their codeword repairs, near its beginning.
    bed.bad.extend([4, 5, 6, 7].map(|at| first + at));
    bed.set_kind(inode, FileKind::Auto);
    let (mut waits, sync) = (0, bed.written);
    while let Some(at) = bed.fs.deadline() {
        bed.wait_until(at);
        while bed.step() {}
        waits += 1;
        assert!(waits < 200, "it never ends: {} sectors were written", bed.written - sync);
    }
    assert!(bed.read(inode, 40 * PAGE as u64, PAGE as u32).is_ok());
}
