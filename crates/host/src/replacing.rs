//! A new drive for an array that is being served, before the engine hears of it.
//!
//! A drive is opened, looked at and set to work on the thread that asks for it. A new drive's commands go through threads
//! of its own until the array is started the next time, whatever way those of the others go.

use levelhead_units::DriveIdx;

use crate::assemble;
use crate::create::check_unused;
use crate::engine::replacing::{Ready, Wanted};
use crate::error::{HostError, fail};
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

/// Opens a drive, looks whether it will do, and sets it to work.
pub(crate) fn open(
    launch: Launch,
    wanted: &Wanted,
    member: &MemberSpec,
    take: Take,
) -> Result<Ready, HostError> {
    let opened = member.open()?;
    let size = opened.size();
    if size < wanted.size_min() {
        let (has, least) = (size.bytes(), wanted.size_min().bytes());
        return fail(format!("{member} has {has}, a drive of this array needs at least {least}"));
    }
    if take == Take::Empty {
        check_unused(member, &opened)?;
    }
    let uuid = draw_uuid()?;
    let seat = assemble::Seat { member: member.clone(), opened };
    let seat = launch.start_one(&seat, DriveIdx::new(0))?;
    Ok(Ready { name: member.to_string(), size, uuid, seat })
}
