//! A disk that is full: it can be emptied, and what has a place can be overwritten.

use crate::bed::Bed;
use crate::format::inode::mode;
use crate::request::{Allocation, Answer, Errno, Removed, Renaming, Setting, What};

const FILE: u32 = mode::FILE | 0o644;
const DIRECTORY: u32 = mode::DIRECTORY | 0o755;

/// Files of this many bytes in the root until there is room for none.
fn fill(bed: &mut Bed, bytes: usize) -> Vec<(String, u64)> {
    let mut made = Vec::new();
    loop {
        let called = format!("{bytes} {}", made.len());
        let name = bed.root(&called);
        match bed.run(What::Make { name, mode: FILE, umask: 0, device: 0 }) {
            Answer::Entry(attributes) => made.push((called, attributes.inode)),
            answer => {
                assert_eq!(answer, Answer::Failed(Errno::NoSpace));
                return made;
            }
        }
        let bytes = vec![1 + (made.len() % 255) as u8; bytes];
        let inode = made.last().unwrap().1;
        match bed.run(What::Write { inode, offset: 0, bytes, appends: false }) {
            Answer::Written(_) => {}
            answer => {
                assert_eq!(answer, Answer::Failed(Errno::NoSpace));
                return made;
            }
        }
    }
}

/// Directories until there is room for none.
fn fill_with_names(bed: &mut Bed) -> usize {
    let mut names = 0;
    loop {
        let name = bed.root(&format!("{names} {}", "a rather long name ".repeat(8)));
        match bed.run(What::Make { name, mode: DIRECTORY, umask: 0, device: 0 }) {
            Answer::Entry(_) => names += 1,
            answer => {
                assert_eq!(answer, Answer::Failed(Errno::NoSpace));
                return names;
            }
        }
    }
}

fn remove(bed: &mut Bed, called: &str) -> Answer {
    let name = bed.root(called);
    bed.run(What::Remove { name, what: Removed::File })
}

/// Bitmaps said that sectors were free, and none of them had the place that a unit needs: the list of files to be freed could not grow.
#[test]
fn disk_full_of_small_files_can_be_emptied() {
    for (size, bytes) in [(20_000, 4_096), (9_000, 100), (20_000, 9_000)] {
        let mut bed = Bed::new(size, size);
        let made = fill(&mut bed, bytes);
        // Of the last files the contents may have found no room, which the sync reports.
        let answer = bed.run(What::Sync { inode: None });
        assert!(matches!(answer, Answer::Done | Answer::Failed(Errno::NoSpace)), "{answer:?}");
        let mut bed = Bed::mount(bed.unmount(), size);
        fill_with_names(&mut bed);
        for (called, _) in &made {
            assert_eq!(remove(&mut bed, called), Answer::Done, "{called} of {}", made.len());
        }
        for (_, inode) in &made {
            bed.run(What::Forget { inode: *inode, count: 1 });
        }
        bed.sync(None);
        let again = fill(&mut bed, bytes);
        assert!(again.len() * 10 > made.len() * 9, "{} and then {}", made.len(), again.len());
    }
}

/// Contents of files leave room for names and attributes, and these leave room for deleting.
#[test]
fn disk_full_of_contents_takes_names() {
    let mut bed = Bed::new(20_000, 5);
    let name = bed.root("a file");
    let inode = bed.make(&name, FILE).inode;
    for bytes in [1 << 20, 50_000, 4_096] {
        let what = What::Write { inode, offset: 0, bytes: vec![7; bytes], appends: true };
        while let Answer::Written(_) = bed.run(what.clone()) {}
    }
    let (name, value, mode) = (b"user.some".to_vec(), vec![5; 500], Setting::Any);
    assert_eq!(bed.run(What::SetExtended { inode, name, value, mode }), Answer::Done);
    let from = bed.root("a file");
    let (to, mode) = (bed.root("another name"), Renaming::Replace);
    assert_eq!(bed.run(What::Rename { from, to, mode }), Answer::Done);
    let directories = fill_with_names(&mut bed);
    assert!(directories >= 8, "{directories}");
    assert_eq!(remove(&mut bed, "another name"), Answer::Done);
}

/// What was allocated, and what was written, takes writes of any size on a full disk.
#[test]
fn full_disk_is_overwritten_in_place() {
    let pages = 600;
    let mut bed = Bed::new(20_000, 3);
    let mut inodes = Vec::new();
    for called in ["allocated", "written"] {
        let name = bed.root(called);
        inodes.push(bed.make(&name, FILE).inode);
    }
    let (inode, count, how) = (inodes[0], pages * 4_096, Allocation::Extend);
    let what = What::Allocate { inode, offset: 0, count, how };
    assert_eq!(bed.run(what.clone()), Answer::Done);
    bed.write(inodes[1], 0, &vec![9; count as usize]);
    fill(&mut bed, 100_000);
    fill_with_names(&mut bed);
    fill(&mut bed, 4_096);
    assert_eq!(bed.run(what), Answer::Done, "it is allocated already");
    for (round, size) in [(1, 256 * 4_096), (2, 4), (3, 33 * 4_096 + 5)] {
        for &inode in &inodes {
            for from in (0..count).step_by(size.max(9_999)) {
                let size = size.min((count - from) as usize);
                bed.write(inode, from, &vec![round; size]);
            }
            bed.sync(Some(inode));
        }
    }
    let what =
        What::Write { inode: inodes[0], offset: count, bytes: vec![1; 1 << 20], appends: false };
    assert_eq!(bed.run(what), Answer::Failed(Errno::NoSpace), "there is no room for more");
    let mut bed = Bed::mount(bed.unmount(), 4);
    for &inode in &inodes {
        let read = bed.read(inode, 0, count as u32).unwrap();
        assert!(read.len() == count as usize && read.iter().all(|&byte| byte == 3));
    }
}
