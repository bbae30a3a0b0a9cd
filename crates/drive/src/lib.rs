//! One hard disk as a state machine: geometry, mechanics, queue, faults and retries.
//!
//! A [`Drive`] holds no bytes and sees no clock. Commands come in with the time, completions come
//! out with theirs; the runtime keeps the bytes and decides, from the [`Outcome`] of a read, which
//! of them it may hand on. The same drive runs in virtual time and, paced by a real clock, as an
//! emulated drive.
//!
//! ```text
//!   handle_submit --> queue --> in service --> completion --> poll
//!                       |            |             ^
//!                       |            | deadline    |
//!                       `-- death ---`----(Gone)---'
//! ```
//!
//! - `disk`: what a command does to arm, platter and memory, and what the disk does when it is idle;
//! - `verifying`: what reading back finds, and what becomes of it;
//! - `cache`: what is in memory, and what is being read ahead;
//! - `geometry`: where a block lies, and at which angle;
//! - `mechanics`: how long the arm and the platter take;
//! - `queue`: which command is next;
//! - `tails`: which of its sectors it knows to end in zeroes;
//! - `faults`: how it misbehaves, and why every policy meets the same misbehaviour;
//! - `health`: what the drive counts and says about itself;
//! - `profile`: a make of drive, from text.
//!
//! # Invariants
//!
//! - D1. Every command ends exactly once, and not before it was submitted.
//! - D2. One command is in service at a time; its end is determined when it begins.
//! - D3. The drive keeps its own time. A late call finds completions with the exact times at which
//!   they happened, and the next command has begun when the arm was free: lateness does not add
//!   up. A command submitted at the very time at which another ends takes no part in the choice of
//!   that one's successor.
//! - D4. Whether a sector fails, how long its retry takes and whether a write is lost depends on the
//!   seed, the drive's name, the client request and the sector; how slow the drive is and when it says
//!   nothing, on the seed, its name and the time. Neither depends on order, effort or policy.
//! - D5. `Fast` and `Limited` reads name sectors *unknown* only, `Full` and `Medium` ones *damaged* only.
//!
//! - D6. A power cut loses no write that was answered as durable, nor any that was answered before a
//!   flush began that has been answered.
//!
//! # Retries
//!
//! A read's first pass leaves sectors unread. `Fast` ends there. `Full` spends a number of
//! whole revolutions, drawn as [`Rotations`] says, once for the whole request, and has then read all but the hard failures.
//! `Limited(d)` does the same if these revolutions fit into `d`, counted from the end of the first
//! pass; otherwise it spends the whole revolutions that do fit and has gained nothing. After whole
//! revolutions the phase is what it was: a retried read on an idle drive ends later by exactly the time
//! of these revolutions.
//!
//! # What it leaves out
//!
//! No reading on arrival, no thermal recalibration, no remapped sectors (slipped ones are data of
//! the profile), no time for the platter to spin up. What the drive writes back and reads back on its own is as
//! fast as the make, however slow the drive is otherwise, and meets no soft failure. A trim does nothing.
//!
//! # References
//!
//! - `[DISKSIM]` DiskSim 4.0, whose layout and positioning rules this follows.
//! - `[ERAID]` for the retry model: see `faults`.
//! - `[SDHDD]` for zero forcing: see `tails` and `faults/zero_tails.rs`.
//! - `[IRAW08]` for verification in idle time and retention: see `disk/idle.rs` and `cache/retained.rs`.
//!
//! [`Outcome`]: levelhead_block::Outcome

#![forbid(unsafe_code)]

mod cache;
mod disk;
mod drive;
mod faults;
mod figures;
mod geometry;
mod health;
pub mod measure;
mod mechanics;
mod profile;
mod queue;
mod runs;
mod settings;
mod tails;
mod verifying;

pub use drive::{Completion, Drive};
pub use faults::{
    Between, BurstLength, Bursts, Ecc, Episodes, FaultKind, Faults, FaultsError, Field,
    ParseFaultsError, Periodic, ROTATION_LIST_MAX, RotationList, Rotations, Stalls, TailRates,
    rate_under,
};
pub use figures::{RandomRead, ZoneFigures};
pub use health::{Counters, SilentCounters, VerifyCounters};
pub use levelhead_ldpc::{RetryTable, TEXT_MAX};
pub use profile::{Profile, ProfileError};
pub use settings::{
    CacheMode, IdleVerify, MemoryProblem, Placing, QUEUE_DEPTH_MAX, Retention, Scheduler, Settings,
    SettingsError, Verify, VerifyStart,
};
