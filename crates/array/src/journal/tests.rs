//! What waits while a new drive comes into a place.

use super::transaction::tests::{cell, payload};
use super::*;

/// What writes to the drive that was there before does without the new one, which does not count until that is over. All else may
/// begin when the new one counts, and needs its ring then like any other.
#[test]
fn what_waits_does_without_a_new_drive_only_if_it_writes_to_the_one_before_it() {
    let settings = Settings::of_test("raid5:3+1,chunk=4KiB".parse().unwrap());
    let mut journal = Journal::new(&settings).unwrap();
    for drives in [[0, 3], [1, 3], [2, 0]] {
        journal.requests.waiting.push_back(payload(&drives.map(|drive| cell(drive, 0)), &[]));
    }
    journal.transactions.open.insert(1, payload(&[cell(1, 1), cell(3, 1)], &[]));
    let drive = DriveIdx::new(0);
    journal.begin_filling(drive, MemberId::default());
    let without = |transaction: &Transaction| transaction.gone.contains(drive);
    let waiting: Vec<bool> = journal.requests.waiting.iter().map(without).collect();
    assert_eq!(waiting, [true, false, true]);
    assert!(journal.transactions.open.values().all(without), "its records are where they are");
}
