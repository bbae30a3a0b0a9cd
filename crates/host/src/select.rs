//! Which of the drives that were found go together: those that [`assemble`] takes without the ones that it refuses.
//!
//! ```text
//!   all that were found --> assemble --> an array
//!            ^                  |
//!            |                  +--> refused for one drive's own sake: it is left out, and the rest is asked again
//!            +------------------+        unless it was named: then that is the answer
//!                               +--> refused for what several of them say: that is the answer,
//!                                    unless one of them is a spare, which is left out
//! ```
//!
//! # Invariants
//!
//! - N1. What is taken is what [`assemble`] takes of exactly these drives. Nothing else decides.
//! - N2. No drive is left out that knows more of the array than those that are taken: they would go on from a
//!   past that is over.

use levelhead_array::assembly::{Assembly, Found, Refusal, assemble};

use crate::error::HostError;
use crate::member::MemberSpec;
use crate::refusals::tell;

/// What is wrong with a drive that an array does without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// It has no superblock.
    Stranger,
    /// No copy of its superblock can be read, or its metadata cannot.
    Unreadable,
    /// No copy of its superblock is good, or one was written by a program that knows more.
    Damaged,
    /// The copies of its superblock are of different arrays, or of different drives of one.
    Foreign,
    /// It is smaller than it was.
    Shrunk,
    /// The array went on without it, so that it holds old data.
    Stale,
    /// It was named and does not exist, or does not answer.
    Absent,
    /// It takes no writes.
    ReadOnly,
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
            Self::ReadOnly => "read-only",
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

/// How drives were found of which those are selected that go together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// Drives before this one were named each by itself: they are taken all or not at all.
    pub(crate) named: usize,
    /// Drives from this one on are spares: the array does without them for whatever is wrong with them.
    pub(crate) spares: usize,
}

/// A spare that is no drive of the array, although it says so.
#[derive(Debug)]
pub(crate) struct RefusedSpare {
    /// Its number among those that were found.
    pub(crate) found: usize,
    /// What is wrong with it.
    pub(crate) sentence: String,
}

/// See the module. Drives are named by their numbers among those that were found.
#[derive(Debug)]
pub(crate) struct Selection {
    /// Those that are asked for the array.
    pub(crate) kept: Vec<usize>,
    pub(crate) left_out: Vec<LeftOut>,
    pub(crate) refused_spares: Vec<RefusedSpare>,
    /// The array that those are, or why they are none.
    pub(crate) outcome: Result<Assembly, Refused>,
}

/// Why drives are no array.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) sentence: String,
    pub(crate) cause: Cause,
}

impl Refused {
    /// The same as an error, with what `tell` makes of the sentence.
    pub(crate) fn into_error(self, tell: impl FnOnce(String) -> String) -> HostError {
        let sentence = tell(self.sentence);
        match self.cause {
            Cause::TooFew => HostError::array_failed(sentence),
            Cause::Contradiction => HostError::new(sentence),
        }
    }
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
    select_on(Terms { named: 0, spares: found.len() }, members, found)
}

/// The same where some of the drives were named, or are spares.
pub(crate) fn select_on(terms: Terms, members: &[MemberSpec], found: &[Found]) -> Selection {
    let mut refused_spares: Vec<RefusedSpare> = Vec::new();
    let mut kept: Vec<usize> = (0..found.len()).collect();
    let mut left_out: Vec<LeftOut> = Vec::new();
    loop {
        let asked: Vec<Found> = kept.iter().map(|&at| found[at].clone()).collect();
        let refusal = match assemble(&asked) {
            Ok(mut assembly) => {
                for place in assembly.places.iter_mut().flatten() {
                    place.found = kept[place.found];
                }
                for back in &mut assembly.returning {
                    back.found = kept[back.found];
                }
                let outcome = check_newest(assembly, found, &left_out, &refused_spares);
                return Selection { kept, left_out, refused_spares, outcome };
            }
            Err(refusal) => refusal,
        };
        let names: Vec<MemberSpec> = kept.iter().map(|&at| members[at].clone()).collect();
        let mut sentence = tell(&refusal, &names);
        let spare = about(&refusal).into_iter().rev().find(|&asked| kept[asked] >= terms.spares);
        if let Some(asked) = spare {
            let found = kept.remove(asked);
            refused_spares.push(RefusedSpare { found, sentence });
            continue;
        }
        let cause = match blame(&refusal) {
            Blame::Drive { asked, .. } if kept[asked] < terms.named => Cause::Contradiction,
            Blame::Drive { asked, defect } => {
                let found = kept.remove(asked);
                left_out.push(LeftOut { member: members[found].clone(), defect, sentence, found });
                continue;
            }
            Blame::All(cause) => cause,
        };
        if cause == Cause::TooFew {
            sentence = tell_with(sentence, &left_out);
            let others = refused_spares.iter().map(|spare| format!("; {}", spare.sentence));
            sentence.extend(others);
        }
        return Selection {
            kept,
            left_out,
            refused_spares,
            outcome: Err(Refused { sentence, cause }),
        };
    }
}

/// N2.
fn check_newest(
    assembly: Assembly,
    found: &[Found],
    left_out: &[LeftOut],
    refused_spares: &[RefusedSpare],
) -> Result<Assembly, Refused> {
    let right = &assembly.metadata;
    let is_newer = |found: &Found| {
        found.word().is_some_and(|word| {
            word.superblock.array == right.array && word.generation() > right.generation
        })
    };
    let left_out = left_out.iter().map(|left| (left.found, &left.sentence));
    let spares = refused_spares.iter().map(|spare| (spare.found, &spare.sentence));
    match left_out.chain(spares).find(|&(at, _)| is_newer(&found[at])) {
        None => Ok(assembly),
        Some((_, sentence)) => {
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

/// The drives that a refusal would not be about if they were not there, by their numbers among those that were asked for.
fn about(refusal: &Refusal) -> Vec<usize> {
    match *refusal {
        Refusal::DifferentArrays { found, .. }
        | Refusal::DifferentWays { found }
        | Refusal::SamePlace { found, .. } => found.to_vec(),
        Refusal::ReadOnly { found, .. } => vec![found],
        Refusal::Stranger { .. }
        | Refusal::Unreadable { .. }
        | Refusal::NoNewest { .. }
        | Refusal::Damaged { .. }
        | Refusal::TwoOwners { .. }
        | Refusal::Shrunk { .. }
        | Refusal::LeftBehind { .. }
        | Refusal::Replaced { .. }
        | Refusal::Stale { .. }
        | Refusal::Nothing
        | Refusal::TooFew { .. }
        | Refusal::NoMetadata => match blame(refusal) {
            Blame::Drive { asked, .. } => vec![asked],
            Blame::All(_) => Vec::new(),
        },
    }
}

fn blame(refusal: &Refusal) -> Blame {
    let of = |asked, defect| Blame::Drive { asked, defect };
    match *refusal {
        Refusal::Stranger { found } => of(found, Defect::Stranger),
        Refusal::Unreadable { found } | Refusal::NoNewest { found } => {
            of(found, Defect::Unreadable)
        }
        Refusal::Damaged { found, .. } => of(found, Defect::Damaged),
        Refusal::TwoOwners { found, .. } => of(found, Defect::Foreign),
        Refusal::Shrunk { found, .. } => of(found, Defect::Shrunk),
        Refusal::LeftBehind { found, .. }
        | Refusal::Replaced { found, .. }
        | Refusal::Stale { found: [found, _], .. } => of(found, Defect::Stale),
        Refusal::Nothing | Refusal::TooFew { .. } => Blame::All(Cause::TooFew),
        Refusal::ReadOnly { .. }
        | Refusal::NoMetadata
        | Refusal::DifferentArrays { .. }
        | Refusal::DifferentWays { .. }
        | Refusal::SamePlace { .. } => Blame::All(Cause::Contradiction),
    }
}
