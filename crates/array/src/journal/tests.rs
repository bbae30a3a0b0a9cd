//! What waits while a new drive comes into a place.

use levelhead_block::Place;
use levelhead_stats::Streams;
use levelhead_units::Sectors;

use super::transaction::tests::{cell, payload};
use super::*;
use crate::log::contents::Changed;
use crate::shape::Row;

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

/// N4. An operation of which an intent has begun and something waits for another intent keeps all others waiting: what they
/// would take of the rings could be what it needs to come to its end.
#[test]
fn nothing_begins_between_the_transactions_of_an_announced_write() {
    let settings = Settings::of_test("raid5:3+1,chunk=4KiB".parse().unwrap());
    let core = Core::new(&settings, Streams::new(1));
    let mut journal = Journal::new(&settings).unwrap();
    let transaction = |op, stripe, manner| {
        let stored =
            Stored { cell: cell(0, stripe), place: Place { buf: BufId::Own(1), sector: 0 } };
        let row = Row { stripe, row: 0 };
        let changed =
            Changed { row, coverage: Coverage::Part, cells: vec![stored], absent: Vec::new() };
        Transaction::new(op, Instant::ZERO, manner, vec![changed])
    };
    journal.intents.note_begun(7, &transaction(3, 0, Manner::Intent));
    journal.requests.waiting.push_back(transaction(1, 0, Manner::Payload));
    journal.requests.waiting.push_back(transaction(2, 5, Manner::Payload));
    for (intents, first) in [(vec![], Some(1)), (vec![6], None)] {
        journal.requests.pending.insert(1, Pending { intents, ..Pending::default() });
        journal.requests.pending.insert(2, Pending::default());
        assert_eq!(journal.first_to_begin(&core), first);
    }
}

/// An announcement that keeps the rest of its write from having room is taken back, and what was committed after it may be marked: it
/// was not before, because the announcement was not committed.
#[test]
fn what_was_committed_after_an_announcement_that_is_taken_back_is_marked() {
    let settings = Settings::of_test("raid5:2+1,chunk=4KiB".parse().unwrap());
    let mut core = Core::new(&settings, Streams::new(1));
    let mut journal = Journal::new(&settings).unwrap();
    let place = Place { buf: core.out.acquire(Sectors::new(1)), sector: 0 };
    let mut of = |stripe, manner| {
        let row = Row { stripe, row: 0 };
        let stored = |symbol| Stored { cell: core.layout().cell(row, symbol), place };
        let cells = (0..3).map(stored).collect();
        core.out.retain(place.buf);
        let changed = Changed { row, coverage: Coverage::All, cells, absent: Vec::new() };
        Transaction::new(1, Instant::ZERO, manner, vec![changed])
    };
    let (intent, mut later) = (of(0, Manner::Intent), of(1, Manner::Payload));
    journal.intents.note_begun(2, &intent);
    later.is_committed = true;
    journal.transactions.uncommitted.insert(2);
    journal.transactions.open.extend([(2, intent), (3, later)]);
    journal.transactions.next = 4;
    journal.requests.pending.insert(1, Pending { left: 2, intents: vec![2], ..Pending::default() });
    let ring = DriveIdx::new(0);
    assert_eq!(journal.in_own_way(1, ring), [2]);
    assert_eq!((journal.watermarks().committed, journal.placing.unmarked_since), (1, None));
    let now = Instant::ZERO + Nanos::from_millis(7);
    journal.take_back(&mut core, now, 1, &[2]);
    assert_eq!((journal.watermarks().committed, journal.placing.unmarked_since), (3, Some(now)));
    let Pending { left, intents, .. } = &journal.requests.pending[&1];
    assert_eq!((*left, intents.len(), journal.requests.waiting.len()), (2, 0, 1));
    assert_eq!(journal.requests.waiting[0].manner, Manner::Payload);
    assert!(journal.in_own_way(1, ring).is_empty());
}
