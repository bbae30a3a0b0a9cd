//! Why members are no array, in sentences that name them.

use levelhead_array::assembly::{Assembly, Doubt, Refusal};
use levelhead_array::membership::{Membership, Why};

use crate::member::MemberSpec;
use crate::words::{counted, drives, drives_are, is_or_are};

/// Why the members are no array, in one sentence.
pub(crate) fn tell(refusal: &Refusal, members: &[MemberSpec]) -> String {
    match *refusal {
        Refusal::Nothing => "an array is assembled from its drives, got none".to_owned(),
        Refusal::Stranger { found } => format!("{} is not a drive of an array", members[found]),
        Refusal::Unreadable { found } => format!(
            "cannot read {}: no copy of its superblock can be read",
            members[found]
        ),
        Refusal::NoNewest { found } => {
            format!("cannot read {}: its newest metadata cannot be read", members[found])
        }
        Refusal::Damaged { found, ref error } => {
            format!("{} cannot be used: {error}", members[found])
        }
        Refusal::TwoOwners { found, arrays: [first, second] } if first == second => format!(
            "{} has two superblocks that do not belong together, of different drives of the array {first}",
            members[found]
        ),
        Refusal::TwoOwners { found, arrays: [first, second] } => format!(
            "{} has two superblocks that do not belong together, of the arrays {first} and {second}",
            members[found]
        ),
        Refusal::Shrunk { found, has, had } => {
            let (has, had) = (has.bytes(), had.bytes());
            format!("{} has shrunk to {has}, it had {had} when it joined its array", members[found])
        }
        Refusal::ReadOnly { found, features } => format!(
            "{} may only be read by this program, because it uses unknown features: bits \
             {features:#x}",
            members[found]
        ),
        Refusal::DifferentArrays { found: [first, other], arrays: [right, own] } => format!(
            "{} and {} belong to different arrays, {right} and {own}",
            members[first], members[other]
        ),
        Refusal::DifferentWays { found: [first, other] } => format!(
            "{} and {} have gone different ways since they were one array",
            members[first], members[other]
        ),
        Refusal::SamePlace { found: [first, other], drive } => format!(
            "{} and {} both say that they are drive {drive}",
            members[first], members[other]
        ),
        Refusal::LeftBehind { found, drive, membership } => {
            let how = match membership {
                Membership::Missing => format!("did not have it as drive {drive}"),
                Membership::Lost { why: Why::ByHand } => {
                    format!("had drive {drive} failed by an operator")
                }
                Membership::Lost { why: Why::Failed | Why::Silent } => {
                    format!("failed it as drive {drive}")
                }
                Membership::Filling { .. } => format!("had not rebuilt it as drive {drive}"),
                Membership::Spare => format!("had it as a spare in place {drive}"),
                Membership::Present => unreachable!("a drive that is present is not left behind"),
            };
            format!("{} holds old data: the array {how} and must go on without it", members[found])
        }
        Refusal::Replaced { found, drive } => {
            format!(
                "{} holds old data: another drive has come into its place as drive {drive}",
                members[found]
            )
        }
        Refusal::Stale { found: [stale, newest], generations: [own, right] } => format!(
            "{} holds old data: it is at generation {own}, {} at {right}",
            members[stale], members[newest]
        ),
        Refusal::NoMetadata => "the drives of the array have no metadata: create was interrupted, or what they had was \
             overwritten or cannot be read"
            .to_owned(),
        Refusal::TooFew { ref spec, absent } => {
            let journals = spec.journal_drives();
            if spec.journals() > 0 && journals.without(absent).is_empty() {
                return format!(
                    "{spec} needs one of the drives with its journal that it did not go on without: {} missing",
                    drives_are(journals)
                );
            }
            let absent = absent.and(spec.data_drives());
            let (survives, missing) = (spec.redundant(), absent.len());
            if spec.width() < spec.drives() {
                return format!("{spec} does not survive that {} missing", drives_are(absent));
            }
            let survives = counted(survives, "drive");
            let (are, absent) = (is_or_are(missing), drives(absent));
            format!("{spec} survives the loss of {survives}, {missing} {are} missing: {absent}")
        }
    }
}

/// What may come out wrong, in one sentence.
pub(crate) fn tell_doubt(doubt: Doubt, assembly: &Assembly) -> String {
    let absent = assembly.absent;
    match doubt {
        Doubt::Unclean => format!(
            "the array was not stopped cleanly and {} missing: its data may be wrong, only --force starts it",
            drives_are(absent)
        ),
        Doubt::Unsynced { stripes } => format!(
            "{} missing and the redundancy of {stripes} of {} stripes is not known to be valid: its data may be \
             wrong or missing, only --force starts it",
            drives_are(absent),
            assembly.metadata.stripes()
        ),
    }
}

#[cfg(test)]
mod tests {
    use levelhead_array::membership::Generation;
    use levelhead_array::superblock::{SuperblockError, Uuid};
    use levelhead_units::{DriveIdx, DriveSet, Sectors};

    use super::*;

    const PAGE: &str = include_str!("../../../docs/array.md");

    /// A row for each, with words that its sentence has.
    #[test]
    fn page_has_every_refusal() {
        let members: Vec<MemberSpec> =
            ["a.img", "b.img"].iter().map(|name| name.parse().unwrap()).collect();
        let (found, drive) = (0, DriveIdx::new(1));
        let arrays = [Uuid([1; 16]), Uuid([2; 16])];
        let drives = DriveSet::EMPTY.with(drive);
        let (has, had) = (Sectors::new(1), Sectors::new(2));
        let membership = Membership::Lost { why: Why::ByHand };
        let spec = "raid5:2+1".parse().unwrap();
        for (refusal, words) in [
            (Refusal::Stranger { found }, "is not a drive of an array"),
            (Refusal::Unreadable { found }, "no copy of its superblock can be read"),
            (Refusal::NoNewest { found }, "its newest metadata cannot be read"),
            (Refusal::Damaged { found, error: SuperblockError::Absent }, "cannot be used:"),
            (
                Refusal::TwoOwners { found, arrays },
                "has two superblocks that do not belong together",
            ),
            (Refusal::Shrunk { found, has, had }, "has shrunk to"),
            (Refusal::ReadOnly { found, features: 1 }, "may only be read by this program"),
            (Refusal::DifferentArrays { found: [0, 1], arrays }, "belong to different arrays"),
            (
                Refusal::DifferentWays { found: [0, 1] },
                "have gone different ways since they were one array",
            ),
            (Refusal::SamePlace { found: [0, 1], drive }, "both say that they are drive"),
            (Refusal::LeftBehind { found, drive, membership }, "holds old data: the array"),
            (
                Refusal::Replaced { found, drive },
                "holds old data: another drive has come into its place",
            ),
            (
                Refusal::Stale { found: [0, 1], generations: [Generation(1), Generation(3)] },
                "holds old data: it is at generation",
            ),
            (Refusal::NoMetadata, "have no metadata"),
            (Refusal::TooFew { spec, absent: drives }, "survives the loss of"),
        ] {
            let sentence = tell(&refusal, &members);
            assert!(sentence.contains(words), "{sentence}");
            assert!(PAGE.contains(&format!("| `{words}` |")), "the page has no row for: {words}");
        }
    }
}
