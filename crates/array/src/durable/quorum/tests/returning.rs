//! Which drive that the array went on without may come back.

use super::*;
use crate::durable::missed::{MAP_SECTORS, MapKey, Page};
use crate::durable::superblock::{Kept, Logs};

/// Drives 0, 1 and 3 went on without drive 2 at generation 10, and keep a map of what it misses.
struct Case {
    right: Book,
    /// What drive 2 says.
    own: Book,
    /// The newest generation that it may have a record of, as the heads say.
    last: u64,
    /// Holders whose heads are unreadable.
    torn: Vec<usize>,
}

const DRIVE: DriveIdx = DriveIdx::new(2);

impl Case {
    fn new() -> Self {
        let spec: Spec = "raid6:2+2,chunk=8KiB".parse().unwrap();
        let division = Division::of(&spec, SIZE).unwrap();
        let member = |at| Member { uuid: Uuid([at; 16]), membership: Membership::Present };
        let mut own = Book {
            spec,
            drive_size: division.drive_size,
            journal: Some(Kept { first: 1, logs: Logs::Parts }),
            members: (0..4).map(member).collect(),
            ..book()
        };
        (own.synced, own.synced_last) = (own.stripes(), own.stripes());
        let mut right = own.clone();
        (right.generation, right.run) = (14, Uuid([9; 16]));
        right.members[2].membership = Membership::Missing { since: 10 };
        right.missed = DriveSet::EMPTY.with(DRIVE);
        Self { right, own, last: 10, torn: Vec::new() }
    }

    fn found(&self) -> Vec<Found> {
        let key = MapKey::new(DRIVE, 10, self.right.stripes(), 1);
        let holder = |at: usize| {
            let mut holder = found(&self.right, at as u8);
            let page = |number, words| {
                let (array, holder) = (self.right.array, self.right.members[at].uuid);
                PageCopy::Read(Box::new(Page { array, holder, key, number, words }))
            };
            holder.maps = vec![PageCopy::Nothing; MAP_SECTORS as usize];
            holder.maps[0] = page(0, vec![self.last]);
            if self.torn.contains(&at) {
                holder.maps[0] = PageCopy::Unreadable;
            }
            holder
        };
        let mut all = [0, 1, 3].map(holder).to_vec();
        all.insert(2, found(&self.own, 2));
        all
    }

    /// Whether drive 2 comes back; refused by its place and the reason where not.
    #[track_caller]
    fn check(&self, returns: bool, context: &str) {
        let outcome = quorum(&self.found());
        if returns {
            let assembly = outcome.unwrap_or_else(|refusal| panic!("{context}: {refusal:?}"));
            let back: Vec<usize> = assembly.returning.iter().map(|back| back.found).collect();
            assert_eq!(back, [2], "{context}");
            assert_eq!(
                assembly.absent,
                DriveSet::EMPTY.with(DRIVE),
                "it counts as lost: {context}"
            );
            assert_eq!(assembly.missed.len(), 1, "{context}");
            return;
        }
        let membership = self.right.members[2].membership;
        let refusal = Refusal::LeftBehind { found: 2, drive: DRIVE, membership };
        assert_eq!(outcome, Err(refusal), "{context}");
    }
}

#[test]
fn very_drive_that_was_lost_comes_back_whatever_it_was_lost_for() {
    for why in [Why::Failed, Why::Silent] {
        let mut case = Case::new();
        case.check(true, "it was not there");
        case.right.members[2].membership = Membership::Lost { why };
        case.check(true, "it failed, or was silent");
    }
    let mut case = Case::new();
    case.right.members[2].membership = Membership::Lost { why: Why::ByHand };
    case.check(false, "an operator wanted that");
}

#[test]
fn older_copy_and_drive_that_was_part_of_the_array_after_that_do_not_come_back() {
    for generation in 8..14 {
        let mut case = Case::new();
        case.own.generation = generation;
        case.check((9..=10).contains(&generation), &format!("at generation {generation}"));
        // It had been back meanwhile, and its map was kept.
        case.last = 12;
        let is_of_then = (11..=12).contains(&generation);
        case.check(is_of_then, &format!("at generation {generation}, lost at 12"));
    }
}

/// It has what they have not, and they do not know of it.
#[test]
fn drive_that_did_without_one_that_the_array_has_does_not_come_back() {
    for membership in [
        Membership::Missing { since: 9 },
        Membership::Lost { why: Why::Failed },
        Membership::Filling { to: 1 },
    ] {
        let mut case = Case::new();
        case.own.members[1].membership = membership;
        case.check(false, "it did without drive 1");
        // That the array does without it too says nothing against it.
        case.right.members[1].membership = Membership::Lost { why: Why::Failed };
        let mut all = case.found();
        all.remove(1);
        assert_eq!(quorum(&all).unwrap().returning.len(), 1, "{membership:?}");
    }
}

#[test]
fn drive_comes_back_only_if_its_map_is_known_for_good() {
    let mut case = Case::new();
    case.torn = vec![0];
    case.check(true, "two of three heads are left");
    case.torn = vec![0, 1];
    case.check(false, "a newer head may be on those that do not give it");
    let mut case = Case::new();
    case.right.missed = DriveSet::EMPTY;
    case.check(false, "a map that the books do not name means nothing");
}

#[test]
fn other_drive_in_its_place_does_not_come_back() {
    let mut case = Case::new();
    case.own.members[2].uuid = Uuid([77; 16]);
    let refused = quorum(&case.found()).unwrap_err();
    assert_eq!(refused, Refusal::Replaced { found: 2, drive: DRIVE });
    // Of two that say so neither is chosen.
    let case = Case::new();
    let mut all = case.found();
    all.push(found(&case.own, 2));
    let twice = Refusal::SamePlace { found: [2, 4], drive: DRIVE };
    assert_eq!(quorum(&all), Err(twice));
}
