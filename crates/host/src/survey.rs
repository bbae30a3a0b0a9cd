//! Which arrays there are in some folders, as their drives say, without opening any of them for more than a look.

use std::path::PathBuf;

use levelhead_array::assembly::{Found, Word};
use levelhead_array::membership::Membership;
use levelhead_array::metadata::{Forced, State};
use levelhead_array::superblock::Uuid;
use levelhead_array::{Layout, Spec};
use levelhead_units::{DriveIdx, Sectors};

use crate::error::HostError;
use crate::medium::Medium;
use crate::member::MemberSpec;
use crate::scan::{Seen, newest, scan};
use crate::select::{Cause, LeftOut, Selection, select};
use crate::starting::{AssembleOptions, Sought, tell_start};

/// What lies in some folders.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The arrays, by their UUIDs.
    pub arrays: Vec<FoundArray>,
    /// What has something like a superblock, but no good one: a sentence each.
    pub damaged: Vec<String>,
    /// How many files and devices were looked at.
    pub looked_at: usize,
    /// Why others could not be, a sentence each.
    pub closed: Vec<String>,
}

/// An array as those of its drives say that were found.
#[derive(Clone, Debug)]
pub struct FoundArray {
    /// Its identity.
    pub uuid: Uuid,
    /// Its shape.
    pub spec: Spec,
    /// Its size.
    pub size: Sectors,
    /// How it stands.
    pub state: FoundState,
    /// Whether it was stopped in good order.
    pub is_clean: bool,
    /// Whether another process has one of its drives open to write to it: a server, most likely.
    pub is_in_use: bool,
    /// Whether an operator has ever made it go on where data may be wrong.
    pub forced: Forced,
    /// Whether it keeps a journal.
    pub has_journal: bool,
    /// The generation of its newest metadata; 0 where none was found.
    pub generation: u64,
    /// Its places, in order.
    pub drives: Vec<FoundDrive>,
    /// Drives that say they are the array's and are none of it.
    pub left_out: Vec<LeftOut>,
    /// Why it would not be served unless an operator says more, in one sentence.
    pub refusal: Option<String>,
}

/// How an array stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundState {
    /// All of its drives are there, and it was stopped in good order.
    Clean,
    /// All of its drives are there, and it was not stopped in good order, or is in use.
    Dirty,
    /// Drives are missing that it can do without.
    Degraded,
    /// More drives are missing than it survives.
    Lost,
    /// What its drives say does not go together.
    Unclear,
}

impl FoundState {
    /// Its name, in a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Dirty => "dirty",
            Self::Degraded => "degraded",
            Self::Lost => "lost",
            Self::Unclear => "unclear",
        }
    }
}

/// One place of an array.
#[derive(Clone, Debug)]
pub struct FoundDrive {
    /// Which.
    pub drive: DriveIdx,
    /// What has it: nothing where it is missing, several where each says so.
    pub members: Vec<MemberSpec>,
    /// What the array has recorded of it; that it is present, where no metadata was found.
    pub membership: Membership,
}

impl FoundDrive {
    /// Whether it is there and holds everything, as far as the array has recorded that.
    pub fn is_used(&self) -> bool {
        let is_one = self.members.len() == 1;
        is_one
            && matches!(
                self.membership,
                Membership::Present | Membership::Missing | Membership::Spare
            )
    }

    /// How the array stands with the place, in a word.
    pub fn state(&self) -> &'static str {
        match (self.members.len(), self.membership) {
            (0, Membership::Lost { .. }) => "lost",
            (0, Membership::Present | Membership::Missing) => "missing",
            (0 | 1, Membership::Filling { .. }) => "filling",
            (0 | 1, Membership::Spare) => "spare",
            (1, Membership::Present | Membership::Missing | Membership::Lost { .. }) => "present",
            (_, _) => "duplicated",
        }
    }
}

/// Looks for arrays in these folders, and among these files and devices.
pub fn survey(places: &[PathBuf]) -> Result<Survey, HostError> {
    let scan = scan(places)?;
    let found = |(&uuid, seen): (&Uuid, &Vec<Seen>)| found_array(uuid, seen, Sought::Among(places));
    let arrays = scan.arrays.iter().map(found).collect();
    let (damaged, looked_at, closed) = (scan.damaged, scan.looked_at, scan.closed);
    Ok(Survey { arrays, damaged, looked_at, closed })
}

fn found_array(uuid: Uuid, seen: &[Seen], sought: Sought<'_>) -> FoundArray {
    let members: Vec<MemberSpec> = seen.iter().map(|seen| seen.member.clone()).collect();
    let found: Vec<Found> = seen.iter().map(|seen| seen.found.clone()).collect();
    let Selection { kept, left_out, outcome, .. } = select(&members, &found);
    // Where nothing can be used, what is known of the array is what the rest says.
    let of_kept = kept.iter().filter_map(|&at| found[at].word()).max_by_key(Word::generation);
    let word = of_kept.unwrap_or_else(|| newest(seen));
    let (superblock, metadata) = (&word.superblock, word.metadata.as_deref());
    let is_in_use = members.iter().any(|member| Medium::is_in_use(member.path()));
    let is_clean = metadata.is_some_and(|metadata| metadata.state == State::Clean);
    let drive = |at: usize| {
        let drive = DriveIdx::from_usize(at);
        let is_it = |at: &&usize| found[**at].good().is_some_and(|good| good.own.drive == drive);
        let membership = metadata.map(|metadata| metadata.members[at].membership);
        FoundDrive {
            drive,
            members: kept.iter().filter(is_it).map(|&at| members[at].clone()).collect(),
            membership: membership.unwrap_or(Membership::Present),
        }
    };
    let (state, refusal) = match outcome {
        Ok(assembly) => {
            let state = match (assembly.absent.is_empty(), is_clean) {
                (false, _) => FoundState::Degraded,
                (true, false) => FoundState::Dirty,
                (true, true) => FoundState::Clean,
            };
            // What is left out is told beside it.
            (state, tell_start(&assembly, AssembleOptions::default(), sought, &[]))
        }
        Err(refused) => {
            let state = match refused.cause {
                Cause::TooFew => FoundState::Lost,
                Cause::Contradiction => FoundState::Unclear,
            };
            (state, Some(refused.sentence))
        }
    };
    FoundArray {
        uuid,
        spec: superblock.spec,
        size: Layout::new(superblock.spec, superblock.drive_size).size(),
        state,
        is_clean,
        is_in_use,
        forced: metadata.map_or(Forced::No, |metadata| metadata.forced),
        has_journal: superblock.logs.is_some(),
        generation: word.generation().0,
        drives: (0..superblock.spec.members()).map(drive).collect(),
        left_out,
        refusal,
    }
}
