//! A filesystem over one disk, as a state machine: every file has long codes in it, so that sectors that cannot be read are computed
//! from others.
//!
//! ```text
//!   Request --> [ Filesystem ] --> Reply, Event
//!                 |        ^
//!         Submit  v        |  done
//!                [   disk   ]
//! ```
//!
//! Inputs are `handle_*(now, ..)`, outputs come from [`Filesystem::poll`], time from [`Filesystem::deadline`]. Many requests and many
//! commands are under way at a time. Nothing here knows a clock, a thread or a file: the same code serves a kernel over a real
//! disk and a study over a modelled one.

#![forbid(unsafe_code)]

mod action;
mod attempt;
#[cfg(test)]
mod bed;
mod cache;
pub mod check;
mod engine;
pub mod format;
#[cfg(test)]
mod full;
pub mod geometry;
#[cfg(test)]
mod hostile;
mod inodes;
pub mod inspect;
#[cfg(test)]
mod made;
mod make;
mod ops;
mod recent;
mod request;
pub mod rules;
mod settings;
mod space;
mod status;
pub mod sums;
#[cfg(test)]
mod tests;
mod tree;

pub use action::{Action, Event, SubId, Submit};
pub use engine::{Ended, Filesystem};
pub use format::inode::{FileKind, INODES, Moment};
pub use make::{CannotMake, NewFilesystem, Wishes, Written, make};
pub use request::{
    Allocation, Answer, Attributes, Caller, Changes, Errno, Listed, Named, Removed, Renaming,
    Request, Room, ScrubParts, ScrubPlace, Scrubbed, Setting, Sought, What,
};
pub use settings::{MountMode, RedundancyComes, Settings, Update};
pub use status::{Failure, State, Status};
