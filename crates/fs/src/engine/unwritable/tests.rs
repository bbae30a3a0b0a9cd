//! Sectors that cannot be written.

use std::collections::BTreeSet;

use levelhead_block::Memory;
use levelhead_erasure::Kernel;
use levelhead_stats::Streams;
use levelhead_testkit::noise;
use levelhead_units::{Extent, Lba, Sectors};

use crate::bed::{Bed, copy, newest};
use crate::check::{CheckOptions, Depth, Listed, Problem, check};
use crate::format::inode::mode;
use crate::format::superblock::{OLDER_COPIES, Superblock};
use crate::request::{Answer, Errno, ScrubParts, ScrubPlace, What};
use crate::status::{Failure, State};

const FILE: u32 = mode::FILE | 0o644;

/// One of two hundred sectors of the disk, of those of which nothing was written; never two side by side, where a unit has two copies.
fn drawn(bed: &Bed, sectors: u64, seed: u64) -> BTreeSet<u64> {
    let mut rng = Streams::new(seed).stream("unwritable");
    let drawn = (0..sectors).step_by(200).map(|from| from + rng.below(199));
    let was_written = |lba: &u64| {
        let one = Extent::new(Lba::new(*lba), Sectors::new(1));
        bed.disk.bytes(one).iter().any(|&byte| byte != 0)
    };
    drawn.filter(|&lba| lba < sectors).filter(|lba| !was_written(lba)).collect()
}

fn wait(bed: &mut Bed) {
    for _ in 0..200 {
        while bed.step() {}
        match bed.fs.deadline() {
            Some(at) => bed.wait_until(at),
            None => return,
        }
    }
}

/// Everything that was asked for is stored, and there after a cut and after an unmount.
#[test]
fn disk_with_sectors_that_cannot_be_written_stores_everything() {
    for seed in 0..12 {
        let sectors = 20_000;
        let mut bed = Bed::new(sectors, seed);
        bed.unwritable = drawn(&bed, sectors, seed);
        let mut known = Vec::new();
        for at in 0..60 {
            let name = bed.root(&format!("file {at}"));
            let inode = bed.make(&name, FILE).inode;
            let bytes = noise(at, if at % 4 == 0 { 1_000_000 } else { 9_000 });
            bed.write(inode, 0, &bytes);
            let answer = bed.run(What::Sync { inode: Some(inode) });
            assert_eq!(answer, Answer::Done, "seed {seed}, file {at}: {:?}", bed.fs.status());
            known.push((inode, bytes));
        }
        for (inode, bytes) in &mut known {
            let page = noise(*inode, 4_096);
            bed.write(*inode, 4_096, &page);
            bytes[4_096..8_192].copy_from_slice(&page);
        }
        bed.sync(None);
        let unwritable = bed.unwritable.clone();
        match seed % 3 {
            0 => bed = Bed::mount(bed.cut(), seed),
            1 => {
                wait(&mut bed);
                assert_eq!(bed.fs.status().state, State::Writing);
                assert!(bed.fs.status().sectors_unwritable > 0);
                bed = Bed::mount(bed.unmount(), seed);
            }
            _ => bed = Bed::mount(bed.unmount(), seed),
        }
        bed.unwritable = unwritable;
        for (inode, bytes) in &known {
            let read = bed.read(*inode, 0, 2_000_000);
            assert!(read.as_ref() == Ok(bytes), "seed {seed}, {inode}: {:?}", read.err());
        }
        assert_eq!(bed.fs.status().sectors_lost, 0);
    }
}

/// A file leaves the places that could not be written when the disk is quiet.
#[test]
fn file_leaves_places_that_cannot_be_written() {
    let bytes = noise(1, 1_000_000);
    let written = |unwritable| {
        let mut bed = Bed::new(20_000, 7);
        let name = bed.root("a file");
        let inode = bed.make(&name, FILE).inode;
        bed.sync(None);
        bed.unwritable = unwritable;
        bed.write(inode, 0, &bytes);
        bed.sync(Some(inode));
        bed
    };
    // Of 16 data sectors of a group one.
    let mut healthy = written(BTreeSet::new());
    wait(&mut healthy);
    let places = healthy.find(&bytes);
    let chosen: BTreeSet<u64> = places.into_iter().step_by(16).collect();
    let mut bed = written(chosen.clone());
    // The last pages wait in the journal.
    let failed = bed.fs.status().sectors_unwritable;
    assert!(failed >= chosen.len() as u64 / 2, "{failed} of {}", chosen.len());
    wait(&mut bed);
    let unwritable = bed.unwritable.clone();
    let places = bed.find(&bytes);
    assert!(places.iter().all(|place| !unwritable.contains(place)), "{places:?}");
    let mut bed = Bed::mount(bed.unmount(), 1);
    let answer = bed.run(What::Scrub { place: ScrubPlace::FIRST, parts: ScrubParts::ALL });
    let Answer::Scrubbed(step) = answer else { panic!("{answer:?}") };
    assert_eq!((step.damaged, step.lost), (0, 0));
}

/// Where more fails than is redundant nothing is acknowledged, nothing is written any more, and it says why.
#[test]
fn disk_that_stores_nothing_is_read_only_and_says_why() {
    let geometry = newest(&Bed::new(9_000, 1).disk).unwrap().geometry;
    let journal = geometry.journal().iter().map(Lba::get).collect::<BTreeSet<u64>>();
    let content: BTreeSet<u64> = (0..9_000)
        .filter(|lba| geometry.offset(Lba::new(*lba)) >= geometry.unit_zone().end)
        .collect();
    let content: BTreeSet<u64> = content.difference(&journal).copied().collect();
    for (unwritable, failure) in [(journal, Failure::Journal), (content, Failure::Content)] {
        let mut bed = Bed::new(9_000, 1);
        let name = bed.root("a file");
        let inode = bed.make(&name, FILE).inode;
        bed.sync(None);
        assert_eq!(bed.fs.status().state, State::Writing);
        bed.unwritable = unwritable;
        // So much that it goes to its places and not to the journal.
        bed.write(inode, 0, &noise(1, 2_000_000));
        let answer = bed.run(What::Sync { inode: Some(inode) });
        assert_eq!(answer, Answer::Failed(Errno::Io), "{failure:?}");
        assert_eq!(bed.fs.status().state, State::Failed(failure));
        let what = What::Write { inode, offset: 0, bytes: vec![1], appends: false };
        assert_eq!(bed.run(what), Answer::Failed(Errno::ReadOnly));
    }
}

/// A file whose unit of inodes is in its place, and the copies of that.
fn settled_file(seed: u64) -> (Bed, u64, Vec<u64>) {
    let mut bed = Bed::new(9_000, seed);
    let name = bed.root("a file");
    let inode = bed.make(&name, FILE).inode;
    bed.sync(None);
    wait(&mut bed);
    let lead = crate::format::inode::InodePlace::of(inode).lead;
    let geometry = newest(&bed.disk).unwrap().geometry;
    let copies: Vec<u64> = geometry.copies_of(lead).into_iter().map(Lba::get).collect();
    assert!(bed.is_unit(copies[0]), "it is in its place");
    (bed, inode, copies)
}

/// Any one copy of a unit holds an older version of it and cannot be written: the filesystem goes on, also after a cut or an unmount, and
/// also where one of the other copies cannot be read.
#[test]
fn older_copy_that_cannot_be_written_is_never_taken() {
    for (old, seed) in (0..3).flat_map(|old| (0..6).map(move |seed| (old, seed))) {
        let (mut bed, inode, copies) = settled_file(seed);
        let unwritable: BTreeSet<u64> = [copies[old]].into();
        bed.unwritable = unwritable.clone();
        for (round, count) in [9_000, 30_000, 50_000].into_iter().enumerate() {
            bed.write(inode, 0, &noise(round as u64, count));
            bed.sync(None);
            if seed % 2 == 0 {
                wait(&mut bed);
            }
            assert_eq!(bed.fs.status().state, State::Writing, "copy {old}, seed {seed}");
            let disk = if seed % 3 == 0 { bed.cut() } else { bed.unmount() };
            bed = Bed::mount(disk, seed);
            bed.unwritable = unwritable.clone();
            let unread = copies[(old + 1 + seed as usize % 2) % 3];
            match round {
                1 => drop(bed.weak.insert(unread)),
                2 => drop(bed.bad.insert(unread)),
                _ => {}
            }
            let read = bed.read(inode, 0, 100_000);
            assert!(read == Ok(noise(round as u64, count)), "copy {old}, seed {seed}: {round}");
        }
        assert_eq!(bed.fs.status().state, State::Writing);
    }
}

/// Changes the superblocks behind the filesystem's back: none says that copies may be older.
fn forget_older_copies(disk: &mut Memory) {
    let newest = newest(disk).unwrap();
    let superblock = Superblock { incompatible: newest.incompatible & !OLDER_COPIES, ..newest };
    for lba in superblock.geometry.superblocks() {
        let one = Extent::new(lba, Sectors::new(1));
        disk.bytes_mut(one).copy_from_slice(&superblock.encode()[..]);
    }
}

/// The first copy of a unit holds an older version: a mount of a disk of which the superblocks say so reads another one, and one that is not
/// told takes what it finds.
#[test]
fn mount_compares_copies_if_superblocks_say_that_some_may_be_older() {
    for is_cut in [false, true] {
        let (mut bed, inode, copies) = settled_file(1);
        bed.unwritable = [copies[0]].into();
        bed.write(inode, 0, &noise(1, 9_000));
        bed.sync(None);
        wait(&mut bed);
        let before = newest(&bed.disk).unwrap();
        assert!(before.has_older_copies() && !before.is_clean);
        let mut disk = if is_cut { bed.cut() } else { bed.unmount() };
        if is_cut {
            // A mount in order, from which the journal says nothing any more.
            let mut bed = Bed::mount(disk, 2);
            bed.unwritable = [copies[0]].into();
            disk = bed.unmount();
        }
        for lba in before.geometry.superblocks() {
            let sector = disk.bytes(Extent::new(lba, Sectors::new(1))).try_into().unwrap();
            assert!(Superblock::decode(sector).unwrap().has_older_copies(), "{lba:?}");
        }
        let mut other = copy(&disk);
        forget_older_copies(&mut other);
        let read = Bed::mount(disk, 2).read(inode, 0, 10_000);
        assert!(read == Ok(noise(1, 9_000)), "cut {is_cut}");
        assert_ne!(Bed::mount(other, 2).read(inode, 0, 10_000), Ok(noise(1, 9_000)));
    }
}

/// One copy of a unit cannot be written, and the power is cut after any number of commands: what was synced is read, also by a mount from which
/// the sector can be written, or cannot still.
#[test]
fn cut_at_any_moment_leaves_no_older_copy_that_is_taken() {
    for (old, seed) in (0..3).map(|old| (old, 7 + old as u64)) {
        let mut stop = 0;
        loop {
            let (mut bed, inode, copies) = settled_file(seed);
            let unwritable: BTreeSet<u64> = [copies[old]].into();
            bed.unwritable = unwritable.clone();
            bed.write(inode, 0, &noise(1, 9_000));
            bed.sync(None);
            bed.begin_unmount();
            let done = (0..stop).take_while(|_| bed.step()).count();
            let what = format!("copy {old}, after {done}");
            let mut bed = Bed::mount(bed.cut(), seed);
            if stop % 2 == 0 {
                bed.unwritable = unwritable.clone();
            }
            assert!(bed.read(inode, 0, 10_000) == Ok(noise(1, 9_000)), "{what}");
            let mut bed = Bed::mount(bed.unmount(), seed);
            assert!(bed.read(inode, 0, 10_000) == Ok(noise(1, 9_000)), "{what}, later");
            if done < stop {
                break;
            }
            stop += 1;
        }
        assert!(stop > 8, "{stop} commands");
    }
}

/// No copy but the first is read until a copy could not be written. Superblocks are written then, once for all that follow.
#[test]
fn healthy_filesystem_reads_one_copy() {
    let (mut bed, inode, copies) = settled_file(3);
    bed.write(inode, 0, &noise(1, 9_000));
    let disk = bed.unmount();
    let reads_of = |bed: &mut Bed| {
        assert!(bed.read(inode, 0, 10_000) == Ok(noise(1, 9_000)));
        wait(bed);
        let of =
            |lba: &u64| bed.reads.iter().filter(|extent| extent.contains(Lba::new(*lba))).count();
        copies.iter().map(of).collect::<Vec<usize>>()
    };
    let mut bed = Bed::mount(copy(&disk), 1);
    assert_eq!(reads_of(&mut bed), [1, 0, 0]);
    let generation = newest(&bed.disk).unwrap().generation;
    bed.write(inode, 0, &noise(2, 9_000));
    bed.sync(None);
    wait(&mut bed);
    assert_eq!(newest(&bed.disk).unwrap().generation, generation);
    bed.unwritable = [copies[2]].into();
    for round in 3..6 {
        bed.write(inode, 0, &noise(round, 9_000));
        bed.sync(None);
        wait(&mut bed);
        assert_eq!(newest(&bed.disk).unwrap().generation, generation + 1);
    }
    bed.write(inode, 0, &noise(1, 9_000));
    let mut bed = Bed::mount(bed.unmount(), 1);
    assert_eq!(reads_of(&mut bed), [1, 1, 0]);
}

/// Two of three copies cannot be written: where both hold an older version nothing is written any more, for a reader who has read two copies
/// takes the newer one. Where one of them is damaged, or cannot be read, the third one is enough.
#[test]
fn older_versions_in_two_copies_stop_all_writing() {
    for (written, spoilt) in (0..3).flat_map(|written| (0..3).map(move |spoilt| (written, spoilt)))
    {
        let (mut bed, inode, mut copies) = settled_file(1);
        copies.remove(written);
        bed.unwritable = copies.iter().copied().collect();
        match spoilt {
            0 => {}
            1 => bed.overwrite(copies[0]),
            _ => drop(bed.bad.insert(copies[1])),
        }
        bed.write(inode, 0, &noise(1, 9_000));
        bed.sync(None);
        let (unwritable, bad) = (bed.unwritable.clone(), bed.bad.clone());
        let is_cut = written == 2;
        if is_cut {
            // The journal comes to its place at the next mount.
            bed = Bed::mount(bed.cut(), 2);
            (bed.unwritable, bed.bad) = (unwritable.clone(), bad.clone());
            if spoilt == 1 {
                bed.overwrite(copies[0]);
            }
            bed.run(What::GetAttributes(inode));
        }
        wait(&mut bed);
        let state = match spoilt {
            0 => State::Failed(Failure::Metadata),
            _ => State::Writing,
        };
        assert_eq!(bed.fs.status().state, state, "{written} {spoilt}");
        let disk = if spoilt == 0 { bed.cut() } else { bed.unmount() };
        let mut bed = Bed::mount(disk, 2);
        if spoilt != 0 {
            (bed.unwritable, bed.bad) = (unwritable, bad);
        }
        assert!(bed.read(inode, 0, 10_000) == Ok(noise(1, 9_000)), "{written} {spoilt}");
    }
}

/// A repair that fails is none, and the file leaves the place.
#[test]
fn file_leaves_a_place_of_which_a_repair_fails() {
    let bytes = noise(1, 1_000_000);
    let mut bed = Bed::new(20_000, 7);
    let name = bed.root("a file");
    let inode = bed.make(&name, FILE).inode;
    bed.write(inode, 0, &bytes);
    let disk = bed.unmount();
    let mut bed = Bed::mount(disk, 1);
    let places = bed.find(&bytes);
    bed.overwrite(places[20]);
    bed.unwritable.insert(places[20]);
    assert!(bed.read(inode, 0, 1_000_000).as_ref() == Ok(&bytes));
    wait(&mut bed);
    let status = bed.fs.status();
    assert_eq!((status.sectors_repaired, status.sectors_unwritable), (0, 1));
    assert_ne!(bed.find(&bytes)[20], places[20]);
}

/// An unmount waits until files have left the places that could not be written.
#[test]
fn unmounted_disk_has_no_file_in_places_that_could_not_be_written() {
    for seed in 0..4 {
        let sectors = 20_000;
        let mut bed = Bed::new(sectors, seed);
        bed.unwritable = drawn(&bed, sectors, seed);
        for at in 0..40 {
            let name = bed.root(&format!("file {at}"));
            let inode = bed.make(&name, FILE).inode;
            bed.write(inode, 0, &noise(at, if at % 4 == 0 { 1_000_000 } else { 9_000 }));
        }
        let mut disk = bed.unmount();
        let options = CheckOptions { depth: Depth::Data, ..CheckOptions::new(Kernel::best()) };
        let report = check(&mut disk, &options).unwrap();
        let is_known = |listed: &Listed| matches!(listed.problem, Problem::Copies { bad, unwritten, .. } if bad == unwritten);
        assert!(report.listed.iter().all(is_known), "seed {seed}: {:?}", report.listed);
    }
}

/// Many small files, a sync now and then: everything is stored, though bad sectors cut the journal into pieces.
#[test]
fn many_small_files_on_a_disk_with_unwritable_sectors_are_stored() {
    for seed in 0..6 {
        let sectors = 65_536;
        let mut bed = Bed::new(sectors, seed);
        bed.unwritable = drawn(&bed, sectors, seed);
        for at in 0..2_500_u64 {
            let name = bed.root(&format!("file {at}"));
            let Answer::Entry(made) = bed.run(What::Make { name, mode: FILE, umask: 0, device: 0 })
            else {
                break;
            };
            let bytes = noise(at, 100 + (at as usize * 97) % 9_900);
            bed.run(What::Write { inode: made.inode, offset: 0, bytes, appends: false });
            if at % 50 == 0 {
                bed.run(What::Sync { inode: Some(made.inode) });
            }
        }
        let answer = bed.run(What::Sync { inode: None });
        assert_eq!((bed.fs.status().state, answer), (State::Writing, Answer::Done), "seed {seed}");
    }
}
