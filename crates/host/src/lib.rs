//! The cores on this machine: real clock, real files, emulated drives.
//!
//! ```text
//!   create(spec, drives)                       writes superblocks
//!   assemble(members) --> Assembled --serve--> ArrayHandle: BlockService + command, events, stop
//!                                                  |
//!                                        [ engine: one thread ]  the array core, buffers, kernel
//!                                          |        |       |
//!                                       member   member   member     one a drive
//!                                       (io_uring or threads over a file or device,
//!                                                               or an emulated drive)
//! ```
//!
//! A member is a file, a block device or an emulated drive, named by a text ([`MemberSpec`]), or a service that
//! is handed in ([`MemberSpec::handed_in`]). What has a path is
//! opened exclusively, and each is known by its superblock, not by its name. What a real drive can do beyond
//! reading and writing is found out at the start: see [`probe`].
//!
//! # What it leaves out
//!
//! Putting a drive back: an array only ever loses drives.

#![deny(unsafe_code)]

mod arithmetic;
mod assemble;
mod backend;
mod bell;
mod blocking;
mod clock;
mod create;
mod devices;
#[cfg(test)]
mod doubles;
mod emulated;
mod engine;
mod errno;
mod error;
mod event_log;
mod far;
pub mod fleet;
mod gate;
mod ioctl;
mod labels;
mod launch;
mod lone;
mod medium;
mod member;
mod new_file;
mod offline;
mod opened;
mod profiles;
mod random;
mod reader;
mod refusals;
mod repair;
mod replacing;
mod requests;
mod retry_tables;
mod scan;
mod search;
mod seat;
mod select;
mod service;
mod signature;
mod split;
mod starting;
mod status;
#[cfg(test)]
mod stuck;
mod survey;
mod threads;
mod upgrade;
mod uring;
mod wakes;
mod walk;
mod watch;
pub mod words;

pub use arithmetic::{MEASURING_MAX, arithmetic};
pub use assemble::{
    Assembled, Authors, Recovery, array_of, array_of_member, assemble, assemble_with_spares,
};
pub use backend::Io;
pub use create::{
    CreateOptions, Created, CreatedDrive, Journaling, NewDrives, check_empty, create,
    erase_signatures,
};
pub use devices::Fact;
pub use devices::ata::ErrorRecovery;
pub use devices::cdl::{Expiry, Limit, ReadLimit};
pub use devices::erc::FastFail;
pub use devices::nvme::Retries;
pub use devices::probe::{Counters, DeviceKind, DeviceReport, DiskReport, probe};
pub use devices::sysfs::LimitsState;
pub use devices::ways::{FastFailPath, FastFailState};
pub use emulated::Model;
pub use engine::{Engine, OnEvent};
pub use error::HostError;
pub use event_log::{EVENTS_MAX, EventsSince, LostMember, NumberedEvent};
pub use gate::Bound;
pub use labels::{COMPARED, is_same_drive};
pub use lone::LoneDrive;
pub use member::MemberSpec;
pub use offline::check::{CheckOptions, Checked, CodewordsChecked, JournalChecked, check};
pub use offline::findings::{AllFindings, Finding, FindingKind};
pub use offline::salvage::{Origin, SalvageError, SalvageOptions, Salvaged, salvage};
pub use offline::sums::SumsChecked;
pub use profiles::load_profile;
pub use random::draw_identity;
pub use reader::{ReadDone, Reader};
pub use repair::{Repaired, RepairedMember, repair_superblocks};
pub use replacing::Take;
pub use requests::{Answered, Operation};
pub use retry_tables::{load_retry_table, read_faults};
pub use select::{Defect, LeftOut};
pub use service::{ArrayHandle, Asked, PIECE_MAX, ServeOptions};
pub use starting::{AssembleOptions, Which};
pub use status::{ArrayState, Damaged, DriveState, DriveStatus, FoundRange, ScrubStatus, Status};
pub use survey::{FoundArray, FoundDrive, FoundState, Survey, survey};
pub use upgrade::{ArrayVersion, Conversion, Upgraded, upgrade};
pub use wakes::WakeProbe;
pub use walk::{Walked, walk};
