//! A redundant array of drives as a state machine: layouts, reads, writes, queues and policies.
//!
//! ```text
//!   handle_request --> [ stripe locks ] --> read / write / flush / resync
//!                                                |  enqueue        ^
//!                                                v                 |
//!                                        [ queue per drive ]       |
//!                                                |  window         |
//!                                                v                 |
//!   poll --> Submit, Combine, Answer ..    (the runtime's drives)  |
//!   handle_done, handle_lost, handle_health, handle_timeout -------+
//! ```
//!
//! The array decides and nothing more: it holds no bytes, performs no I/O and reads no clock. Buffers
//! are names, and arithmetic is an action, so that a server runs a fast kernel, a checker the naive one,
//! and a timing study none. Emulated, real and modelled drives run behind this same code.
//!
//! # Invariants
//!
//! - A1. Every request is answered exactly once.
//! - A2. No drive is asked after it was lost, and [`Event::Lost`] comes before every answer that relies
//!   on the loss.
//! - A3. Redundancy that is not valid (not resynced yet) is never used.
//! - A4. Every buffer that was acquired is released: a buffer that a drive fills when the drive has ended that
//!   command, a buffer that drives write from when all of them have ended and no answer needs its bytes.
//! - A5. Calls of [`Array::handle_timeout`] before [`Array::deadline`] do no harm, and calls after it only
//!   delay what is due. A read's own deadline only decides which drives it still counts on, never what it
//!   answers.
//!
//! # What it leaves out
//!
//! Without a journal
//! the write hole is open, and the whole array is resynced after a crash.
//!
//! # References
//!
//! - `[ERAID]` pro-active use of redundancy against fail-slow.
//! - `[TAIL16]` strategies that tolerate slow drives.

#![forbid(unsafe_code)]

mod action;
mod array;
mod budget;
mod core;
mod counters;
mod drives;
mod event;
mod fields;
pub mod journal;
mod log;
mod meta;
mod names;
pub mod offline;
mod ops;
pub mod policy;
mod progress;
mod server_clock;
mod settings;
mod shape;
mod store;
mod tags;
mod timers;
mod verify;

pub use action::{Action, Answer, Cost, Deliver, Inscribed, Segments, Submit, Sums};
pub use array::Array;
pub use array::background::places::NotReplaced;
pub use array::readback::findings::VerifyStatus;
pub use budget::Budget;
pub use counters::{Counter, Counters, DriveCounters};
pub use drives::detect::{self, DriveEvent, EventKind, Figures, Refusal};
pub use event::{ArrayEvent, Ending, Event, Flaw};
pub use journal::status::JournalStatus;
pub use levelhead_block::{BufId, Combine, Place, RequestId, Segment};
pub use meta::own::{Held, NewMember};
pub use meta::recorded::Recorded;
pub use meta::state::DamagedSummary;
pub use meta::wishes::{GoesOn, RebuildWish, ScrubMark, Wishes};
pub use meta::{assembly, damaged, membership, metadata, regions, reserve, superblock, version2};
pub use names::SubId;
pub use policy::{Again, AnswerWhen, Assisted, First, Late, Plan, Policy, Surplus, tau};
pub use progress::{
    Blame, CopyEnd, CopyProgress, DriveFound, Fault, RebuildProgress, Resync, ResyncProgress,
    ScrubFound, ScrubProgress, ScrubState,
};
pub use server_clock::ServerClock;
pub use settings::verify::{Promise, Reach, VerifyMode, VerifySettings, VerifyWrites};
pub use settings::{Content, HostOrder, JournalSettings, Left, Patience, Settings};
pub use shape::redundancy::{Redundancy, Term};
pub use shape::{
    Area, Cell, DRIVE_SECTORS_MAX, DriveCounts, Family, Groups, Layout, Losses, Parity, Row, Spec,
    SpecError,
};
pub use tags::list::{ListSector, lists_in};
pub use tags::sector::{Sums as GroupSums, TagSector};
pub use tags::state::{TAG_MEMORY, TAG_MEMORY_EACH};
pub use tags::{ReadTag, tags_in};
