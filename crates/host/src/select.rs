//! Which of the drives that were found go together: those that [`quorum`] takes without the ones that it refuses.
//!
//! ```text
//!   all that were found --> quorum --> an array
//!            ^                 |
//!            |                 +--> refused for one drive's own sake: it is left out, and the rest is asked again
//!            +-----------------+
//!                              +--> refused for what several of them say: that is the answer
//! ```
//!
//! # Invariants
//!
//! - N1. What is taken is what [`quorum`] takes of exactly these drives. Nothing else decides.
//! - N2. No drive is left out that knows more of the array than those that are taken: they would go on from a
//!   past that is over.

use levelhead_array::quorum::{Assembly, Found, Refusal, quorum};

use crate::labels;
use crate::member::MemberSpec;
use crate::refusals::tell;

/// What is wrong with a drive that an array does without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// It has no superblock.
    Stranger,
    /// No copy of its superblock can be read.
    Unreadable,
    /// No copy of its superblock is good, or one was written by a program that knows more.
    Damaged,
    /// The two copies of its superblock are of different arrays.
    Foreign,
    /// It is smaller than it was.
    Shrunk,
    /// The array went on without it, so that it holds old data.
    Stale,
    /// It was named and does not exist.
    Absent,
}

impl Defect {
    /// Its name, in a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stranger => "stranger",
            Self::Unreadable => "unreadable",
            Self::Damaged => "damaged",
            Self::Foreign => "foreign",
            Self::Shrunk => "shrunk",
            Self::Stale => "stale",
            Self::Absent => "absent",
        }
    }
}

/// A drive that was found, or named, and is left out.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    /// Which.
    pub member: MemberSpec,
    /// What is wrong with it.
    pub defect: Defect,
    /// The same in a sentence that names it.
    pub sentence: String,
    /// Its number among those that were found, or named.
    pub(crate) found: usize,
}

/// A sentence, and why drives were left out that might have helped.
pub(crate) fn tell_with(sentence: String, left_out: &[LeftOut]) -> String {
    let others = left_out.iter().map(|left| format!("; {}", left.sentence));
    std::iter::once(sentence).chain(others).collect()
}

/// See the module. Drives are named by their numbers among those that were found.
#[derive(Debug)]
pub(crate) struct Selection {
    /// Those that are asked for the array.
    pub(crate) kept: Vec<usize>,
    pub(crate) left_out: Vec<LeftOut>,
    /// The array that those are, or why they are none.
    pub(crate) outcome: Result<Assembly, Refused>,
}

/// Why drives are no array.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) sentence: String,
    pub(crate) cause: Cause,
}

/// What kind of reason that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// More drives are missing than the array survives.
    TooFew,
    /// What the drives say does not go together, or is not for this program.
    Contradiction,
}

/// Finds out which of these drives, all of one array or of none, are that array.
pub(crate) fn select(members: &[MemberSpec], found: &[Found]) -> Selection {
    let mut kept: Vec<usize> = (0..found.len()).collect();
    let mut left_out: Vec<LeftOut> = Vec::new();
    loop {
        let asked: Vec<Found> = kept.iter().map(|&at| found[at].clone()).collect();
        let refusal = match quorum(&asked) {
            Ok(mut assembly) => {
                for place in assembly.places.iter_mut().flatten() {
                    place.found = kept[place.found];
                }
                for back in &mut assembly.returning {
                    back.found = kept[back.found];
                }
                let outcome = check_newest(assembly, found, &left_out);
                return Selection { kept, left_out, outcome };
            }
            Err(refusal) => refusal,
        };
        let names: Vec<MemberSpec> = kept.iter().map(|&at| members[at].clone()).collect();
        let mut sentence = tell(&refusal, &names);
        let cause = match blame(&refusal) {
            Blame::Drive { asked, defect } => {
                let found = kept.remove(asked);
                left_out.push(LeftOut { member: members[found].clone(), defect, sentence, found });
                continue;
            }
            Blame::All(cause) => cause,
        };
        if cause == Cause::TooFew {
            sentence = tell_with(sentence, &left_out);
        }
        return Selection { kept, left_out, outcome: Err(Refused { sentence, cause }) };
    }
}

/// N2.
fn check_newest(
    assembly: Assembly,
    found: &[Found],
    left_out: &[LeftOut],
) -> Result<Assembly, Refused> {
    let newer = left_out.iter().find(|left| {
        labels::newest(&found[left.found]).is_some_and(|word| {
            word.book.array == assembly.book.array
                && word.book.generation > assembly.book.generation
        })
    });
    match newer {
        None => Ok(assembly),
        Some(LeftOut { sentence, .. }) => {
            let sentence = format!("{sentence}; no other drive knows as much of the array");
            Err(Refused { sentence, cause: Cause::Contradiction })
        }
    }
}

/// What a refusal is about.
enum Blame {
    /// One drive, by its number among those that were asked for, and what is wrong with it.
    Drive { asked: usize, defect: Defect },
    /// What the drives say together.
    All(Cause),
}

fn blame(refusal: &Refusal) -> Blame {
    let of = |asked, defect| Blame::Drive { asked, defect };
    match *refusal {
        Refusal::Stranger { found } => of(found, Defect::Stranger),
        Refusal::Unreadable { found } => of(found, Defect::Unreadable),
        Refusal::Damaged { found, .. } => of(found, Defect::Damaged),
        Refusal::TwoOwners { found, .. } => of(found, Defect::Foreign),
        Refusal::Shrunk { found, .. } => of(found, Defect::Shrunk),
        Refusal::LeftBehind { found, .. }
        | Refusal::Replaced { found, .. }
        | Refusal::Stale { found: [found, _], .. } => of(found, Defect::Stale),
        Refusal::Nothing | Refusal::TooFew { .. } => Blame::All(Cause::TooFew),
        Refusal::ReadOnly { .. }
        | Refusal::NoList { .. }
        | Refusal::DifferentArrays { .. }
        | Refusal::DifferentWays { .. }
        | Refusal::SamePlace { .. } => Blame::All(Cause::Contradiction),
    }
}
