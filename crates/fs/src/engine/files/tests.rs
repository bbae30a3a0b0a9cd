//! What is in memory of files.

use crate::bed::Bed;
use crate::request::{Removed, What};

const FILE: u32 = 0o100_644;

/// A million may be known: those of which nothing is in memory take next to none.
#[test]
fn files_that_are_known_and_at_rest_are_not_in_memory() {
    let mut bed = Bed::new(20_000, 1);
    let mut inodes = Vec::new();
    for at in 0..50 {
        let name = bed.root(&format!("file {at}"));
        let inode = bed.make(&name, FILE).inode;
        bed.write(inode, 0, &[at; 9]);
        inodes.push(inode);
    }
    assert_eq!(bed.fs.files.numbers().len(), inodes.len());
    bed.sync(None);
    assert_eq!(bed.fs.files.numbers(), []);
    for (&inode, at) in inodes.iter().zip(0..) {
        assert_eq!(bed.read(inode, 0, 100).unwrap(), [at; 9]);
    }
    assert_eq!(bed.fs.files.numbers(), []);
    // They are known still: one that loses its name keeps what it holds.
    let (name, what) = (bed.root("file 7"), Removed::File);
    bed.run(What::Remove { name, what });
    bed.sync(None);
    assert_eq!(bed.read(inodes[7], 0, 100).unwrap(), [7; 9]);
}
