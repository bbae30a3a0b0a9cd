//! Which drive that the array went on without may come back.

use super::*;

/// Drives 0, 1 and 3 went on without drive 2, and know what it lacks.
struct Case {
    right: Metadata,
    /// What drive 2 has.
    own: Metadata,
}

const DRIVE: DriveIdx = DriveIdx::new(2);

/// What drive 2 is known to have stored, and the newest generation that it may have, as the others know.
const STORED: u64 = 8;
const GIVEN: u64 = 10;

impl Case {
    fn new() -> Self {
        let spec: Spec = "raid6:2+2,chunk=8KiB".parse().unwrap();
        let division = Division::of(&spec, SIZE).unwrap();
        let mut own = Metadata {
            spec,
            drive_size: division.drive_size,
            journal: Some(Kept { first: 1, logs: Logs::Parts }),
            members: members(4),
            ..metadata()
        };
        (own.synced, own.synced_last) = (own.stripes(), own.stripes());
        let mut right = own.clone();
        (right.generation, right.run) = (Generation(40), Uuid([9; 16]));
        right.base = Generation(GIVEN);
        let lacks = Some(Regions::none(Grid::new(right.stripes(), 1)));
        let member = &mut right.members[2];
        (member.membership, member.lacks) = (Membership::Missing, lacks);
        (member.stored, member.given) = (Generation(STORED), Generation(GIVEN));
        Self { right, own }
    }

    fn found(&self) -> Vec<Found> {
        let mut all = [0, 1, 3].map(|at| found(&self.right, at)).to_vec();
        all.insert(2, found(&self.own, 2));
        all
    }

    /// Whether drive 2 comes back; refused by its place and the reason where not.
    #[track_caller]
    fn check(&self, returns: bool, context: &str) {
        let outcome = assemble(&self.found());
        if returns {
            let assembly = outcome.unwrap_or_else(|refusal| panic!("{context}: {refusal:?}"));
            let back: Vec<usize> = assembly.returning.iter().map(|back| back.found).collect();
            assert_eq!(back, [2], "{context}");
            assert_eq!(assembly.absent, set(&[2]), "it counts as lost: {context}");
            let held = Held { generation: self.own.generation, slot: 1 };
            assert_eq!(assembly.returning[0].held, Some(held), "{context}");
            return;
        }
        let membership = self.right.members[2].membership;
        let refusal = Refusal::LeftBehind { found: 2, drive: DRIVE, membership };
        // What is further than any generation that it was given is of another history.
        let is_ahead = self.own.generation > self.right.members[2].given.plus(LEAD_MAX);
        let differs = Refusal::DifferentWays { found: [0, 2] };
        let is_of_another = is_ahead && outcome == Err(differs);
        assert!(is_of_another || outcome == Err(refusal.clone()), "{context}: {outcome:?}");
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

/// It may have been given some generations that those who lost it have not heard of, but no more than may be uncommitted at a
/// time. What it has of a later run was written without them.
#[test]
fn older_copy_and_drive_that_was_part_of_the_array_after_that_do_not_come_back() {
    for generation in 1..40 {
        let mut case = Case::new();
        case.own.generation = Generation(generation);
        let is_of_then = (STORED..=GIVEN + LEAD_MAX).contains(&generation);
        case.check(is_of_then, &format!("at generation {generation}"));
        // It had been back meanwhile, and was given what the others have.
        let member = &mut case.right.members[2];
        (member.stored, member.given) = (Generation(25), Generation(27));
        let is_of_then = (25..=27 + LEAD_MAX).contains(&generation);
        case.check(is_of_then, &format!("at generation {generation}, lost at 27"));
    }
}

/// A server that was given the drive knows of every generation that it has given out.
#[test]
fn drive_that_comes_back_while_the_array_is_served_has_nothing_that_it_was_not_given() {
    let case = Case::new();
    let may = |generation: u64, lead: u64| {
        let own = Metadata { generation: Generation(generation), ..case.own.clone() };
        may_return(&own, &case.right.members, DRIVE, lead)
    };
    assert!(!may(STORED - 1, 0) && may(STORED, 0) && may(GIVEN, 0) && !may(GIVEN + 1, 0));
    assert!(may(GIVEN + LEAD_MAX, LEAD_MAX) && !may(GIVEN + LEAD_MAX + 1, LEAD_MAX));
    assert!(!may_return(&case.own, &case.right.members, DriveIdx::new(4), 0), "no such place");
}

/// It has what they have not, and they do not know of it.
#[test]
fn drive_that_did_without_one_that_the_array_has_does_not_come_back() {
    for membership in
        [Membership::Missing, Membership::Lost { why: Why::Failed }, Membership::Filling { to: 1 }]
    {
        let mut case = Case::new();
        case.own.members[1].membership = membership;
        case.own.generation = Generation(GIVEN + 1);
        // Drive 1 came back to it alone.
        case.own.members[1].id.seating += u32::from(case.own.members[1].is_filling());
        case.check(false, "it did without drive 1");
        // That the array does without it too says nothing against it.
        case.right.members[1].membership = Membership::Lost { why: Why::Failed };
        let mut all = case.found();
        all.remove(1);
        assert_eq!(assemble(&all).unwrap().returning.len(), 1, "{membership:?}");
    }
}

/// While drive 2 was there, drive 1 was lost or was being filled. They know that, and drive 1 is back since, or another one is in
/// its place.
#[test]
fn drive_that_did_without_another_one_as_they_know_comes_back() {
    for membership in
        [Membership::Missing, Membership::Lost { why: Why::Failed }, Membership::Filling { to: 1 }]
    {
        let mut case = Case::new();
        case.own.members[1].membership = membership;
        case.right.members[1].id.seating += 1;
        case.own.generation = Generation(GIVEN);
        case.check(true, "they gave it that");
    }
}

/// It was lost before another one was full, which is by now.
#[test]
fn drive_that_knows_another_one_as_being_filled_comes_back() {
    let mut case = Case::new();
    case.own.members[1].membership = Membership::Filling { to: 1 };
    case.check(true, "it was there with drive 1");
}

#[test]
fn drive_comes_back_only_if_it_is_known_what_it_lacks() {
    let mut case = Case::new();
    case.right.members[2].lacks = None;
    case.check(false, "nobody knows");
    let case = Case::new();
    let mut all = case.found();
    all[2].slots = [Slot::Nothing, Slot::Nothing];
    let membership = case.right.members[2].membership;
    let refusal = Refusal::LeftBehind { found: 2, drive: DRIVE, membership };
    assert_eq!(assemble(&all), Err(refusal), "its metadata is gone, which it had stored");
}

#[test]
fn other_drive_in_its_place_does_not_come_back() {
    let mut case = Case::new();
    let mut all = case.found();
    let other = Superblock { member: Uuid([77; 16]), ..superblock(&case.own, 2) };
    all[2] = with_superblock(&other, &case.own);
    assert_eq!(assemble(&all), Err(Refusal::Replaced { found: 2, drive: DRIVE }));
    case.right.members[2].id.uuid = Uuid([77; 16]);
    assert_eq!(assemble(&case.found()), Err(Refusal::Replaced { found: 2, drive: DRIVE }));
    // Of two that say so neither is chosen.
    let case = Case::new();
    let mut all = case.found();
    all.push(found(&case.own, 2));
    let twice = Refusal::SamePlace { found: [2, 4], drive: DRIVE };
    assert_eq!(assemble(&all), Err(twice));
}

/// The seating is of the ring and of what counts; who the drive is its superblock says.
#[test]
fn drive_that_was_being_caught_up_is_the_same_under_each_seating() {
    let mut case = Case::new();
    case.right.members[2].id = case.right.members[2].id.again();
    case.check(true, "it was lost again");
    case.right.members[2].membership = Membership::Filling { to: 0 };
    let assembly = assemble(&case.found()).unwrap();
    assert_eq!((assembly.filling, assembly.returning.len()), (set(&[2]), 0));
    assert_eq!(assembly.lagging, set(&[2]));
}
