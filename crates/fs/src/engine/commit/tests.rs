//! When what was written and not synced is safe.

use levelhead_units::{Instant, Nanos};

use crate::bed::Bed;
use crate::format::inode::mode;
use crate::request::What;

const IDLE: Nanos = Nanos::from_millis(200);

/// Nothing more happens before something is due.
fn settle(bed: &mut Bed) {
    while bed.step() {}
}

fn file(bed: &mut Bed) -> u64 {
    let name = bed.root("a file");
    bed.make(&name, mode::FILE | 0o644).inode
}

fn write(inode: u64, at: u64) -> What {
    What::Write { inode, offset: at, bytes: vec![at as u8 + 1], appends: false }
}

#[test]
fn what_was_written_is_safe_200_ms_after_the_last_change_without_a_sync() {
    let mut bed = Bed::new(4_096, 1);
    let inode = file(&mut bed);
    settle(&mut bed);
    for at in 0..5 {
        let due = bed.now + IDLE;
        bed.run(write(inode, at));
        // Reading puts nothing off.
        bed.wait_until(bed.now + Nanos::from_millis(150));
        bed.run(What::Read { inode, offset: 0, count: 9 });
        settle(&mut bed);
        assert_eq!(bed.fs.deadline(), Some(due), "after {at}");
    }
    let due = bed.fs.deadline().unwrap();
    bed.wait_until(due);
    settle(&mut bed);
    // Units come to their places later, and that has time.
    assert!(bed.fs.deadline().is_none_or(|at| at > due + Nanos::from_secs(9)));
    let mut bed = Bed::mount(bed.cut(), 2);
    assert_eq!(bed.read(inode, 0, 9), Ok(vec![1, 2, 3, 4, 5]));
}

/// One that never pauses: what was written 5 s ago is safe, data and size as well as names.
#[test]
fn what_was_written_is_safe_after_5_s_also_while_writing_goes_on() {
    let mut bed = Bed::new(4_096, 1);
    let inode = file(&mut bed);
    for at in 0..120_u64 {
        bed.run(write(inode, at));
        let next = Instant::ZERO + Nanos::from_millis(100 * (at + 1));
        bed.wait_until(next);
        settle(&mut bed);
    }
    let mut bed = Bed::mount(bed.cut(), 2);
    let found = bed.read(inode, 0, 200).unwrap().len();
    assert!(found >= 120 - 51, "{found} bytes of 120 are safe");
}
