//! On how many drives a page of a map is, and what follows from that.

use levelhead_stats::Streams;

use super::*;
use crate::durable::maps::Loss;
use crate::durable::membership::{Member, Membership, Why};
use crate::durable::quorum::FoundDamaged;
use crate::durable::reserve::Division;
use crate::durable::superblock::{Book, Forced, Kept, Logs, State};
use crate::durable::wishes::Wishes;
use crate::settings::Settings;
use crate::shape::Spec;

const SIZE: Sectors = Sectors::new(2_000);

const LOST: DriveIdx = DriveIdx::new(3);

/// Two of four drives are redundant, and one is lost: a page is on enough drives when two of the others have it.
fn books() -> Books {
    let spec: Spec = "raid6:2+2,chunk=4KiB".parse().unwrap();
    let division = Division::of(&spec, SIZE).unwrap();
    let membership = |at| match at == LOST.as_usize() as u8 {
        true => Membership::Lost { why: Why::Failed },
        false => Membership::Present,
    };
    let book = Book {
        generation: 4,
        array: Uuid([7; 16]),
        run: Uuid([8; 16]),
        spec,
        drive_size: division.drive_size,
        state: State::Dirty,
        forced: Forced::No,
        synced: 0,
        synced_last: 0,
        journal: Some(Kept { first: 1, logs: Logs::All }),
        missed: DriveSet::EMPTY,
        wishes: Wishes::default(),
        members: (0..4)
            .map(|at| Member { uuid: Uuid([at; 16]), membership: membership(at) })
            .collect(),
    };
    let own = |at| {
        let drive = DriveIdx::new(at);
        (drive != LOST).then(|| Own { drive, size: SIZE, reserved: division.reserved(SIZE) })
    };
    Books {
        book,
        owns: (0..4).map(own).collect(),
        run: Uuid([9; 16]),
        forced_over: None,
        lagging: DriveSet::EMPTY,
        damaged: FoundDamaged::default(),
        missed: Vec::new(),
    }
}

/// What a drive has made of a page.
#[derive(Clone, Copy, Debug)]
enum Made {
    /// It was not given it.
    No,
    Stored,
    Unstored,
}

#[test]
fn a_page_is_safe_on_two_of_three_and_a_new_drive_waits_until_it_was_given_it_too() {
    use Made::{No, Stored, Unstored};
    let set = |drives: &[u8]| drives.iter().copied().map(DriveIdx::new).collect::<DriveSet>();
    for (pages, is_safe, is_on, unstored) in [
        ([No, No, No], false, false, set(&[])),
        ([Stored, No, No], false, false, set(&[])),
        ([Stored, Stored, No], true, false, set(&[])),
        ([Stored, Stored, Stored], true, true, set(&[])),
        ([Stored, Stored, Unstored], true, true, set(&[])),
        ([Stored, Unstored, Unstored], false, false, set(&[1, 2])),
    ] {
        let books = books();
        let division = Division::of(&books.book.spec, SIZE).unwrap();
        let settings = Settings {
            area: division.area,
            lost: DriveSet::EMPTY.with(LOST),
            books: Some(books.clone()),
            ..Settings::of_test(books.book.spec)
        };
        let mut core = Core::new(&settings, Streams::new(1));
        let layout = core.layout;
        core.missed.begin(&layout, LOST, Loss { since: 4, last: 4, held: u64::MAX });
        core.missed.mark(LOST, 0);
        let (page, change) = core.missed.pages()[0];
        let mut copies = MapCopies::new(&books);
        for (seat, made) in copies.seats.iter_mut().flatten().zip(pages) {
            let known = match made {
                No => continue,
                Stored => &mut seat.has,
                Unstored => &mut seat.unstored,
            };
            known[page.drive.as_usize()][page.number] = change;
        }
        assert_eq!(copies.safe(&core, page) >= change, is_safe, "{pages:?}");
        let counted = core.counted();
        assert_eq!(copies.is_on(counted, &mut core), is_on, "{pages:?}");
        assert_eq!(copies.unstored(&mut core), unstored, "{pages:?}");
    }
}
