//! Writes that meet other requests over the same file.

use std::collections::BTreeSet;

use levelhead_block::Memory;

use crate::bed::{Bed, copy};
use crate::format::inode::mode;
use crate::request::{Answer, Changes, Setting, What};

const FILE: u32 = mode::FILE | 0o644;

/// A write has seen that nothing is to be zeroed behind the end, and reads the page that it changes in part: before that has come the
/// file becomes short. Then the write makes it long again, and what was cut off must not come back.
#[test]
fn write_that_meets_a_truncation_brings_nothing_back_of_what_was_cut_off() {
    let bytes: Vec<u8> = (0..150_000_u32).map(|at| 1 + (at % 251) as u8).collect();
    let (offset, count, size) = (33 * 4_096, 6_041, 1_051);
    let (mut write_is_last, mut write_is_first) = (0, 0);
    for seed in 0..16 {
        let mut bed = Bed::new(4_096, seed);
        let name = bed.root("a file");
        let inode = bed.make(&name, FILE).inode;
        bed.write(inode, 0, &bytes);
        let mut bed = Bed::mount(bed.unmount(), seed);
        let Answer::Entry(_) = bed.run(What::Lookup(name)) else { panic!("it is there") };
        let what = What::Write { inode, offset, bytes: vec![0xAA; count], appends: false };
        let write = bed.ask(what);
        for _ in 0..seed % 8 {
            bed.step();
        }
        let changes = Changes { size: Some(size), ..Changes::default() };
        let answer = bed.run(What::SetAttributes { inode, changes });
        assert!(matches!(answer, Answer::Attributes(_)), "{answer:?}");
        while bed.step() {}
        assert_eq!(bed.answer(write), Some(Answer::Written(count as u32)));
        let found = bed.read(inode, 0, 1_000_000).unwrap();
        let mut known = bytes[..size as usize].to_vec();
        match found.len() == known.len() {
            true => write_is_first += 1,
            false => {
                write_is_last += 1;
                known.resize(offset as usize, 0);
                known.resize(offset as usize + count, 0xAA);
            }
        }
        let differs = found.iter().zip(&known).position(|(found, known)| found != known);
        assert_eq!((found.len(), differs), (known.len(), None), "seed {seed}");
    }
    assert!(write_is_first > 0 && write_is_last > 0, "{write_is_first}, {write_is_last}");
}

/// The owner, the owner's group, a mask and a named user: permissions that are more than the mode says.
fn access_list() -> Vec<u8> {
    let mut value = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in [(1_u16, 6_u16, u32::MAX), (2, 4, 1_000), (4, 4, u32::MAX)] {
        value.extend(tag.to_le_bytes());
        value.extend(permissions.to_le_bytes());
        value.extend(id.to_le_bytes());
    }
    for (tag, permissions) in [(0x10_u16, 4_u16), (0x20, 4)] {
        value.extend(tag.to_le_bytes());
        value.extend(permissions.to_le_bytes());
        value.extend(u32::MAX.to_le_bytes());
    }
    value
}

/// A file that becomes longer is that in memory at first. While the unit with its list of permissions is read, which its new mode
/// changes, it must not come to its new size without the zeroes behind its old end.
#[test]
fn file_that_becomes_longer_with_another_mode_never_has_its_size_without_its_zeroes() {
    let mut bed = Bed::new(4_096, 1);
    let name = bed.root("a file");
    let inode = bed.make(&name, FILE).inode;
    bed.write(inode, 0, &[0xAA; 3 * 4_096]);
    bed.sync(None);
    let changes = Changes { size: Some(1_000), ..Changes::default() };
    assert!(matches!(bed.run(What::SetAttributes { inode, changes }), Answer::Attributes(_)));
    let (list, value) = (b"system.posix_acl_access".to_vec(), access_list());
    let what = What::SetExtended { inode, name: list, value, mode: Setting::Any };
    assert_eq!(bed.run(what), Answer::Done);
    let disk = bed.unmount();
    let changes = Changes { mode: Some(0o600), size: Some(5_000), ..Changes::default() };
    let to_be = [What::SetAttributes { inode, changes }];
    assert_eq!(sizes_after_cuts(&disk, &to_be, 16), [1_000, 5_000].into());
}

/// A file that a write has made longer in memory is cut off again, and is longer than on the disk still.
#[test]
fn file_that_is_cut_off_but_stays_longer_never_has_its_size_without_its_zeroes() {
    let mut bed = Bed::new(4_096, 1);
    let name = bed.root("a file");
    let inode = bed.make(&name, FILE).inode;
    bed.write(inode, 0, &[0xAA; 3 * 4_096]);
    bed.sync(None);
    let cut = |size| {
        let changes = Changes { size: Some(size), ..Changes::default() };
        What::SetAttributes { inode, changes }
    };
    assert!(matches!(bed.run(cut(1_000)), Answer::Attributes(_)));
    let disk = bed.unmount();
    let bytes = vec![0; 4_096];
    let write = What::Write { inode, offset: 20 * 4_096, bytes, appends: false };
    for size in [10 * 4_096, 21 * 4_096] {
        let to_be = [write.clone(), cut(size)];
        assert_eq!(sizes_after_cuts(&disk, &to_be, 20), [1_000, size as usize].into());
    }
}

/// The sizes that the file has which has 1,000 bytes on a disk, after some requests and a cut after each of some commands; it has
/// zeroes behind them.
fn sizes_after_cuts(disk: &Memory, requests: &[What], cuts: u64) -> BTreeSet<usize> {
    let mut sizes = BTreeSet::new();
    for steps in 0..cuts {
        let mut bed = Bed::mount(copy(disk), steps);
        let name = bed.root("a file");
        let Answer::Entry(file) = bed.run(What::Lookup(name)) else { panic!("it is there") };
        for what in requests {
            let answer = bed.run(what.clone());
            assert!(!matches!(answer, Answer::Failed(_)), "{answer:?}");
        }
        for _ in 0..steps {
            // What was changed is committed after a while.
            if !bed.step()
                && let Some(at) = bed.fs.deadline()
            {
                bed.wait_until(at);
            }
        }
        let mut bed = Bed::mount(bed.cut(), steps);
        let found = bed.read(file.inode, 0, 1_000_000).unwrap();
        let is_right = |(at, &byte): (usize, &u8)| byte == if at < 1_000 { 0xAA } else { 0 };
        let wrong = found.iter().enumerate().position(|one| !is_right(one));
        assert_eq!(wrong, None, "cut after {steps} steps, {} bytes", found.len());
        sizes.insert(found.len());
    }
    sizes
}
