//! What is shown of a filesystem, against what was done to it.

use levelhead_block::Memory;
use levelhead_erasure::Kernel;
use levelhead_units::{Extent, Lba, Sectors};

use super::{
    CannotInspect, CopyState, Inspector, SectorState, SectorUse, read_journal, superblock_copies,
};
use crate::bed::Bed;
use crate::check::shelf::{FILE, Shelf};
use crate::format::unit::Kind;
use crate::request::Errno;

fn inspector(disk: &mut Memory) -> Inspector<'_> {
    Inspector::open(disk, Kernel::best()).unwrap()
}

#[test]
fn the_newest_superblock_counts_and_the_others_are_shown_as_they_are() {
    let mut shelf = Shelf::new();
    let places = shelf.superblock.geometry.superblocks();
    let (right, copies) = superblock_copies(&mut shelf.disk).unwrap();
    assert_eq!(right, shelf.superblock);
    assert_eq!(copies.iter().map(|copy| copy.lba).collect::<Vec<_>>(), places);
    assert_eq!(copies.iter().map(|copy| copy.counts).collect::<Vec<_>>(), [true, false, false]);
    assert!(copies.iter().all(|copy| copy.found.as_ref() == Ok(&right)));
    shelf.spoil(places[0]);
    let (_, copies) = superblock_copies(&mut shelf.disk).unwrap();
    assert_eq!(copies.iter().map(|copy| copy.counts).collect::<Vec<_>>(), [false, true, false]);
    assert!(copies[0].found.is_err());
}

#[test]
fn file_is_found_by_its_path_with_its_sectors_in_order() {
    let mut shelf = Shelf::new();
    let (inner, file) = (shelf.inner, shelf.file);
    let mut inspector = inspector(&mut shelf.disk);
    let found = inspector.file(b"/folder//inner").unwrap();
    assert_eq!((found.number, found.inode.size), (inner, 50_000));
    let found = inspector.file(b"folder/../file").unwrap();
    assert_eq!((found.number, found.is_listed_damaged), (file, false));
    let pages: u64 = found.windows.iter().map(|window| u64::from(window.window.count)).sum();
    assert_eq!(pages, 300_000_u64.div_ceil(4_096));
    assert!(found.windows.is_sorted_by_key(|window| window.page));
    let sectors: u64 =
        found.windows.iter().map(|window| window.window.extent.all().sectors.get()).sum();
    assert_eq!(sectors, found.inode.sectors);
    assert_eq!(inspector.path_of(inner).unwrap().unwrap(), b"folder/inner");
    for (path, errno) in [
        ("nothing", Errno::NotFound),
        ("file/below", Errno::NotDirectory),
        ("folder/x", Errno::NotFound),
    ] {
        let refused = inspector.file(path.as_bytes()).map(|found| found.number);
        assert_eq!(refused, Err(CannotInspect::Failed(errno)), "{path}");
    }
    let counts = inspector.counts().unwrap();
    // The root, two files, two directories, one file and sixty more below.
    assert_eq!((counts.inodes, counts.files_damaged), (66, 0));
}

#[test]
fn every_sector_is_what_a_walk_over_the_disk_says() {
    let mut shelf = Shelf::new();
    let (geometry, window) = (shelf.superblock.geometry, shelf.window(shelf.file));
    let (file, node) = (shelf.file, shelf.node(shelf.below));
    let (below, bad) = (shelf.below, window.extent.lba + Sectors::new(3));
    shelf.spoil(bad);
    shelf.spoil(node);
    let bitmap = geometry.bitmap_of(bad);
    let mut inspector = inspector(&mut shelf.disk);
    let of = |inspector: &mut Inspector<'_>, lba| inspector.sector(lba).unwrap().of;
    assert_eq!(of(&mut inspector, Lba::ZERO), SectorUse::Superblock);
    let group = geometry.group(crate::geometry::GroupIdx(1)).lba;
    assert_eq!(of(&mut inspector, group), SectorUse::Kept);
    let journal = geometry.journal().lba;
    assert_eq!(of(&mut inspector, journal + Sectors::new(9)), SectorUse::Journal { at: 9 });
    for (lead, expected, owners) in [(bitmap, Kind::Bitmap, 0), (node, Kind::Node, below)] {
        for (at, copy) in geometry.copies_of(lead).into_iter().enumerate() {
            let SectorUse::Unit { kind, owner, copies } = of(&mut inspector, copy) else {
                panic!("{copy:?} is not a unit")
            };
            assert_eq!((kind, owner), (Some(expected), owners));
            assert_eq!(copies[at].lba, copy);
            let bad = copies.iter().filter(|copy| copy.state != CopyState::Right).count();
            assert_eq!(bad, usize::from(lead == node));
        }
    }
    let SectorUse::File(member) = of(&mut inspector, bad) else { panic!("it is of a file") };
    assert_eq!((member.inode, member.page, member.extent), (file, Some(3), window.extent));
    assert_eq!((member.at, member.state), (window.extent.symbol(3), SectorState::Wrong));
    assert_eq!((member.word_bad, member.path), (1, Some(b"file".to_vec())));
    let redundant = window.extent.data().end();
    let SectorUse::File(member) = of(&mut inspector, redundant) else { panic!("it is of a file") };
    assert_eq!((member.page, member.state), (None, SectorState::Right));
    assert_eq!(of(&mut inspector, Lba::new(geometry.sectors - 1)), SectorUse::Free);
    let beyond = inspector.sector(Lba::new(geometry.sectors)).map(|found| found.of);
    assert_eq!(beyond, Err(CannotInspect::Beyond { sectors: geometry.sectors }));
}

#[test]
fn journal_is_shown_as_a_cut_has_left_it_and_nothing_is_written() {
    let mut bed = Bed::new(5_000, 1);
    for at in 0..3 {
        let name = bed.root(&format!("file {at}"));
        let inode = bed.make(&name, FILE).inode;
        bed.write(inode, 0, &[at; 5_000]);
        bed.sync(Some(inode));
    }
    let mut disk = bed.cut();
    let before = disk.clone();
    let journal = read_journal(&mut disk).unwrap();
    assert!(!journal.is_clean);
    let counting: Vec<u64> = journal
        .records
        .iter()
        .filter(|record| record.counts && !record.is_mark)
        .map(|record| record.record)
        .collect();
    assert_eq!(counting.len(), 3);
    assert!(counting.is_sorted() && counting[0] >= journal.first);
    let newest = *journal.records.iter().rfind(|record| record.counts).unwrap();
    assert!(newest.units > 0 && newest.data > 0 && newest.redundant > 0 && newest.is_whole);
    // One sector of the payload can be computed; without both descriptors nothing is known of it.
    let lba = |at: u32| Extent::new(journal.extent.lba + Sectors::new(at.into()), Sectors::new(1));
    disk.bytes_mut(lba(newest.at + 1)).fill(1);
    let again = read_journal(&mut disk).unwrap();
    let found = again.records.iter().find(|record| record.record == newest.record).unwrap();
    assert_eq!((found.payload_bad, found.is_whole, found.counts), (1, true, true));
    disk.bytes_mut(lba(newest.at)).fill(1);
    let again = read_journal(&mut disk).unwrap();
    let found = again.records.iter().find(|record| record.record == newest.record).unwrap();
    assert_eq!((found.at, found.is_whole), (newest.at, true), "from the copy behind it");
    disk.bytes_mut(lba(newest.at + newest.sectors - 1)).fill(1);
    let again = read_journal(&mut disk).unwrap();
    assert!(again.records.iter().all(|record| record.record != newest.record));
    let mut disk = before.clone();
    let mut inspector = inspector(&mut disk);
    assert_eq!(inspector.file(b"file 2").unwrap().inode.size, 5_000);
    inspector.counts().unwrap();
    drop(inspector);
    let all = Extent::new(Lba::ZERO, Sectors::new(5_000));
    assert!(disk.bytes(all) == before.bytes(all), "something was written");
    let shelf = &mut Shelf::new().disk;
    let journal = read_journal(shelf).unwrap();
    assert!(journal.is_clean && journal.records.iter().all(|record| !record.counts));
}
