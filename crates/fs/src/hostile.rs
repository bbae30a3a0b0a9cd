//! What a disk says is not believed: numbers that lead in a circle, beyond the end or nowhere are errors, and never a panic or a work
//! without an end.

use levelhead_units::{Extent, Lba, Sectors};

use crate::bed::{Bed, newest};
use crate::check::shelf::{FILE, Shelf};
use crate::format::fields::FieldsMut;
use crate::format::ladder::Ladder;
use crate::format::record::Descriptor;
use crate::format::unit::{HEAD, Head, Sector};
use crate::made::wishes;
use crate::make::Wishes;
use crate::request::{
    Answer, Attributes, Changes, Errno, Named, Removed, ScrubParts, ScrubPlace, What,
};

/// Steps of a scrub, and how many places it could not read.
fn scrub(bed: &mut Bed) -> (usize, u64) {
    let (mut next, mut lost) = (Some(ScrubPlace::FIRST), 0);
    for step in 0..2_000 {
        let Some(place) = next else { return (step, lost) };
        let answer = bed.run(What::Scrub { place, parts: ScrubParts::ALL });
        let Answer::Scrubbed(scrubbed) = answer else { panic!("{answer:?}") };
        (next, lost) = (scrubbed.next, lost + scrubbed.lost);
    }
    panic!("it never ends");
}

#[test]
fn scrub_ends_where_the_list_of_units_cannot_be_read() {
    let mut shelf = Shelf::new();
    let units = shelf.superblock.units;
    shelf.edit(units, |inode| inode.inline[0] = 0xFF);
    let (_, lost) = scrub(&mut Bed::mount(shelf.disk, 1));
    assert_eq!(lost, 1);
}

#[test]
fn scrub_passes_over_what_the_list_of_units_should_not_name() {
    let mut shelf = Shelf::new();
    let (units, right) = (shelf.superblock.units, scrub(&mut Bed::mount(Shelf::new().disk, 1)));
    for key in [3, u64::from(u32::MAX), 1 << 62] {
        shelf.put(units, key, &[]);
    }
    let (steps, lost) = scrub(&mut Bed::mount(shelf.disk, 1));
    assert_eq!((steps, lost), (right.0 + 3 * 8, 3 * 8));
}

#[test]
fn scrub_passes_over_a_node_that_cannot_be_one() {
    let mut shelf = Shelf::new();
    let below = shelf.below;
    shelf.edit(below, |inode| FieldsMut(&mut inode.inline[6 + 10..]).put_u64(0, 0xFFFF_FFFF));
    let (_, lost) = scrub(&mut Bed::mount(shelf.disk, 1));
    assert_eq!(lost, 1);
}

#[test]
fn directory_whose_nodes_lead_back_is_not_read_in_a_circle() {
    let mut shelf = Shelf::new();
    let below = shelf.below;
    let (first, second) = shelf.plant(|attempt| {
        let inode = attempt.inode(below)?;
        let units = attempt.tree_units(below, &inode)?;
        Ok((units[0], units[1]))
    });
    // The second leaf has the names of the first one.
    let bytes: Sector = (&*shelf.sector(first)).try_into().unwrap();
    shelf.edit_unit(second, |body| body.copy_from_slice(&bytes[HEAD..]));
    let mut bed = Bed::mount(shelf.disk, 1);
    let mut after = 0;
    for _ in 0..100 {
        let list = What::ReadDirectory { inode: below, after, room: 1_000, with_attributes: false };
        match bed.run(list) {
            Answer::Entries(entries) => {
                let last = entries.last().expect("it ends with an error").cookie;
                assert!(last > after);
                after = last;
            }
            answer => return assert_eq!(answer, Answer::Failed(Errno::Io)),
        }
    }
    panic!("it never ends");
}

#[test]
fn window_that_no_file_has_is_an_error() {
    for key in [1 << 47, (1 << 63) - 1] {
        let mut shelf = Shelf::new();
        let (file, window) = (shelf.file, shelf.window(shelf.file));
        shelf.put(file, key, &window.encode());
        let mut bed = Bed::mount(shelf.disk, 1);
        scrub(&mut bed);
        assert!(bed.read(file, 0, 4_096).is_ok());
        let offset = (1 << 59) - 4_096;
        let answer = bed.run(What::Write { inode: file, offset, bytes: vec![1], appends: false });
        assert!(matches!(answer, Answer::Written(1) | Answer::Failed(_)), "{answer:?}");
    }
}

#[test]
fn sector_that_two_windows_have_is_read_or_an_error() {
    let mut shelf = Shelf::new();
    let (file, window) = (shelf.file, shelf.window(shelf.file));
    let pages = u64::from(window.count);
    shelf.put(file, pages, &window.encode());
    shelf.edit(file, |inode| inode.size = 2 * pages * 4_096);
    let mut bed = Bed::mount(shelf.disk, 1);
    for _ in 0..2 {
        let read = bed.read(file, 0, 2 * pages as u32 * 4_096);
        assert!(read.is_ok() || read == Err(Errno::Io), "{read:?}");
    }
}

/// Both descriptors of the newest record say something else, and their checksums are right.
fn edit_newest(bed: Bed, change: impl Fn(&mut [u8])) -> levelhead_block::Memory {
    let mut disk = bed.cut();
    let superblock = newest(&disk).unwrap();
    let (journal, filesystem) = (superblock.geometry.journal(), superblock.filesystem());
    let one = |lba: Lba| Extent::new(lba, Sectors::new(1));
    let part = |disk: &levelhead_block::Memory, lba: Lba| {
        let bytes: Sector = disk.bytes(one(lba)).try_into().unwrap();
        Descriptor::decode_part(&bytes, filesystem, lba).map(|part| part.record)
    };
    let last = journal.iter().filter_map(|lba| part(&disk, lba)).max().expect("there is a record");
    for lba in journal.iter().filter(|&lba| part(&disk, lba) == Some(last)).collect::<Vec<_>>() {
        let mut bytes: Sector = disk.bytes(one(lba)).try_into().unwrap();
        let head = Head::open(&bytes).unwrap();
        change(&mut bytes[HEAD..]);
        let generation = crate::format::fields::Fields(&bytes[HEAD..]).u64(0);
        Head { generation, ..head }.seal(&mut bytes);
        disk.bytes_mut(one(lba)).copy_from_slice(&bytes);
    }
    disk
}

fn synced() -> Bed {
    let mut bed = Bed::new(5_000, 1);
    let name = bed.root("file");
    let file = bed.make(&name, FILE).inode;
    bed.write(file, 0, &[7; 5_000]);
    bed.sync(None);
    bed
}

#[test]
fn journal_that_names_more_records_than_there_can_be_is_lost() {
    let disk = edit_newest(synced(), |body| {
        FieldsMut(body).put_u64(0, 1 << 62);
        FieldsMut(body).put_u64(8, 1);
    });
    let mut bed = Bed::mount(disk, 1);
    let name = bed.root("new");
    let answer = bed.run(What::Make { name, mode: FILE, umask: 0, device: 0 });
    assert_eq!(answer, Answer::Failed(Errno::ReadOnly));
}

#[test]
fn record_after_which_none_could_come_does_not_count() {
    let disk = edit_newest(synced(), |body| FieldsMut(body).put_u64(0, u64::MAX));
    let mut bed = Bed::mount(disk, 1);
    let name = bed.root("new");
    bed.make(&name, FILE);
    bed.sync(None);
}

#[test]
fn file_whose_attributes_lie_where_none_can_is_still_removed_or_kept() {
    for lead in [1, 0xFFFF_FFFF, 1 << 48] {
        let mut shelf = Shelf::new();
        let small = shelf.small;
        shelf.edit(small, |inode| inode.attributes = Lba::new(lead));
        let mut bed = Bed::mount(shelf.disk, 1);
        let name = bed.root("small");
        assert_eq!(bed.run(What::Remove { name, what: Removed::File }), Answer::Done);
        bed.run(What::Sync { inode: None });
        let name = bed.root("new");
        bed.make(&name, FILE);
        drop(bed.unmount());
    }
}

#[test]
fn file_that_says_more_than_one_can_have_is_read_written_and_removed() {
    for size in [u64::MAX, 1 << 60] {
        let mut shelf = Shelf::new();
        let small = shelf.small;
        shelf.edit(small, |inode| (inode.size, inode.sectors) = (size, u64::MAX));
        let mut bed = Bed::mount(shelf.disk, 1);
        assert_eq!(bed.read(small, 0, 4_096).map(|bytes| bytes.len()), Ok(4_096));
        bed.write(small, 100, b"written");
        let changes = Changes { size: Some(3), ..Changes::default() };
        let answer = bed.run(What::SetAttributes { inode: small, changes });
        assert!(matches!(answer, Answer::Attributes(Attributes { size: 3, .. })), "{answer:?}");
        let name = bed.root("small");
        assert_eq!(bed.run(What::Remove { name, what: Removed::File }), Answer::Done);
        drop(bed.unmount());
    }
}

#[test]
fn directory_with_as_many_names_as_a_number_can_say_takes_no_harm() {
    let mut shelf = Shelf::new();
    let (folder, small) = (shelf.folder, shelf.small);
    shelf.edit(folder, |inode| inode.size = u64::MAX);
    shelf.edit(small, |inode| inode.links = u32::MAX);
    let mut bed = Bed::mount(shelf.disk, 1);
    let named = |name: &[u8]| Named { parent: folder, name: name.to_vec() };
    bed.make(&named(b"new"), 0o040_755);
    let answer = bed.run(What::Link { inode: small, name: named(b"again") });
    assert_eq!(answer, Answer::Failed(Errno::TooManyLinks));
    let answer = bed.run(What::Remove { name: named(b"new"), what: Removed::Directory });
    assert_eq!(answer, Answer::Done);
    drop(bed.unmount());
}

#[test]
fn filesystem_without_redundancy_that_was_cut_off_can_be_unmounted() {
    let ladder = Ladder::without_redundancy(100).unwrap();
    let mut bed = Bed::made(&Wishes { ladder, ..wishes(5_000, 2) }, 1);
    let name = bed.root("file");
    let file = bed.make(&name, FILE).inode;
    bed.write(file, 0, &[7; 50_000]);
    bed.sync(None);
    bed.write(file, 5_000, &[9; 5_000]);
    bed.sync(None);
    let mut bed = Bed::mount(bed.cut(), 1);
    assert_eq!(bed.read(file, 5_000, 5_000), Ok(vec![9; 5_000]));
    drop(bed.unmount());
}
