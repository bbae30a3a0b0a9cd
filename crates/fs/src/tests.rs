//! The machine over a disk in memory.

use std::collections::BTreeMap;

use crate::bed::Bed;
use crate::format::inode::mode;
use crate::request::{Answer, Changes, What};

const FILE: u32 = mode::FILE | 0o644;

#[test]
fn what_was_written_is_read_and_outlasts_an_unmount() {
    let mut bed = Bed::new(20_000, 1);
    let name = bed.root("a file");
    let inode = bed.make(&name, FILE).inode;
    let bytes: Vec<u8> = (0..1_000_000_u32).map(|at| (at / 7) as u8).collect();
    bed.write(inode, 0, &bytes);
    assert_eq!(bed.read(inode, 0, 2_000_000).unwrap(), bytes);
    bed.sync(Some(inode));
    assert_eq!(bed.read(inode, 4_000, 5_000).unwrap(), bytes[4_000..9_000]);
    let disk = bed.unmount();
    let mut bed = Bed::mount(disk, 2);
    let Answer::Entry(found) = bed.run(What::Lookup(name)) else { panic!("it is there") };
    assert_eq!((found.inode, found.size), (inode, 1_000_000));
    assert_eq!(bed.read(inode, 0, 2_000_000).unwrap(), bytes);
}

#[test]
fn sync_of_a_small_new_file_is_one_durable_write() {
    let mut bed = Bed::new(20_000, 1);
    let name = bed.root("a file");
    let inode = bed.make(&name, FILE).inode;
    bed.write(inode, 0, &[7; 4_096]);
    let flushes = bed.flushes;
    bed.sync(Some(inode));
    assert_eq!(bed.flushes, flushes);
    let mut bed = Bed::mount(bed.cut(), 3);
    assert_eq!(bed.read(inode, 0, 5_000).unwrap(), [7; 4_096]);
}

/// Random writes, cuts and punches of some files against plain memory; now and then everything is unmounted.
#[test]
fn random_contents_are_as_plain_memory_says() {
    for seed in 0..20 {
        let mut bed = Bed::new(20_000, seed);
        let mut plain: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        for at in 0..3 {
            let name = bed.root(&format!("file {at}"));
            plain.insert(bed.make(&name, FILE).inode, Vec::new());
        }
        let inodes: Vec<u64> = plain.keys().copied().collect();
        for step in 0..300 {
            let inode = inodes[bed.rng().below(3) as usize];
            let known = plain.get_mut(&inode).unwrap();
            let offset = bed.rng().below(600_000);
            match bed.rng().below(12) {
                0..5 => {
                    let most = if bed.rng().below(4) == 0 { 300_000 } else { 9_000 };
                    let mut bytes = vec![0; 1 + bed.rng().below(most) as usize];
                    bed.rng().fill(&mut bytes);
                    bed.write(inode, offset, &bytes);
                    let end = offset as usize + bytes.len();
                    if known.len() < end {
                        known.resize(end, 0);
                    }
                    known[offset as usize..end].copy_from_slice(&bytes);
                }
                5 => {
                    let changes = Changes { size: Some(offset), ..Changes::default() };
                    let answer = bed.run(What::SetAttributes { inode, changes });
                    assert!(matches!(answer, Answer::Attributes(_)), "{answer:?}");
                    known.resize(offset as usize, 0);
                }
                6 => bed.sync(Some(inode)),
                7 => {
                    let count = 1 + bed.rng().below(200_000);
                    let how = crate::request::Allocation::Punch;
                    let answer = bed.run(What::Allocate { inode, offset, count, how });
                    assert_eq!(answer, Answer::Done);
                    let from = known.len().min(offset as usize);
                    let to = known.len().min((offset + count) as usize);
                    known[from..to].fill(0);
                }
                8 if step % 5 == 0 => {
                    let disk = bed.unmount();
                    bed = Bed::mount(disk, seed + 1_000);
                }
                _ => {
                    let count = bed.rng().below(100_000) as usize;
                    let read = bed.read(inode, offset, count as u32).unwrap();
                    let from = known.len().min(offset as usize);
                    let to = known.len().min(offset as usize + count);
                    assert!(read == known[from..to], "seed {seed}, step {step}: {offset}+{count}");
                }
            }
        }
        for (&inode, known) in &plain {
            assert!(bed.read(inode, 0, 2_000_000).unwrap() == *known, "seed {seed}");
        }
    }
}
