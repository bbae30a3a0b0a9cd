//! A new drive for an array that is being served, before the engine hears of it.
//!
//! A drive is opened, looked at and set to work on the thread that asks for it. A new drive's commands go through threads
//! of its own until the array is started the next time, whatever way those of the others go.

use levelhead_array::assembly::{Found, Word};
use levelhead_units::{DriveIdx, Sectors};

use crate::assemble;
use crate::create::{check_unused, erase_on};
use crate::engine::replacing::{Comeback, Ready, Wanted};
use crate::error::{HostError, fail};
use crate::labels;
use crate::launch::Launch;
use crate::member::MemberSpec;
use crate::random::draw_uuid;

/// Whether a drive is taken that holds something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// Only one that holds nothing.
    Empty,
    /// Any.
    Any,
}

/// A drive that was opened.
pub(crate) enum Opening {
    /// One of which nothing is used.
    New(Ready),
    /// A drive of this array, or a copy of one.
    Member {
        ready: Ready,
        /// What it says of the array.
        word: Box<Word>,
    },
}

/// Opens a drive, looks whether it will do, and sets it to work. What one that is taken as it is holds by its signatures is
/// erased first, superblocks of another array among them: a crash while it gets its first ones would leave copies of both
/// otherwise.
pub(crate) fn open(
    launch: Launch,
    wanted: &Wanted,
    member: &MemberSpec,
    take: Take,
) -> Result<Opening, HostError> {
    let opened = member.open()?;
    let size = opened.size();
    if size < wanted.size_min() {
        let (has, least) = (size.bytes(), wanted.size_min().bytes());
        return fail(format!("{member} has {has}, a drive of this array needs at least {least}"));
    }
    let found = if size > Sectors::ZERO { Some(labels::find(&opened)) } else { None };
    let word = found.as_ref().and_then(Found::word).filter(|word| wanted.is_of(&word.superblock));
    if take == Take::Empty && word.is_none() {
        check_unused(member, &opened)?;
    }
    // An export is not ours alone: what says that it is of this array may be a drive that it has open under another name.
    if take == Take::Any && (word.is_none() || !member.is_far()) {
        erase_on(member, &opened)?;
    }
    let seat = assemble::Seat { member: member.clone(), opened };
    let ready = start(launch, &seat)?;
    Ok(match word.filter(|_| take == Take::Empty) {
        Some(word) => Opening::Member { ready, word: Box::new(word) },
        None => Opening::New(ready),
    })
}

/// A drive that is back is set to work.
pub(crate) fn take_back(launch: Launch, back: &assemble::Back) -> Result<Comeback, HostError> {
    Ok(Comeback { new: back.new.clone(), ready: start(launch, &back.seat)? })
}

fn start(launch: Launch, seat: &assemble::Seat) -> Result<Ready, HostError> {
    let (name, size, uuid) = (seat.member.to_string(), seat.opened.size(), draw_uuid()?);
    let seat = launch.start_one(seat, DriveIdx::new(0))?;
    Ok(Ready { name, size, uuid, seat })
}

/// Why a drive of the array is no spare, in one sentence.
pub(crate) fn tell_used(member: &MemberSpec) -> String {
    format!("{member} holds a drive of this array; --force takes it and writes over that")
}
