//! What must survive a crash beside the data: its format, who is right about it, and how it is replicated.
//!
//! ```text
//!   superblock   who a member is; written once
//!   metadata     how the array stands: its members and what each lacks, damaged sectors, settings, clean or not
//!
//!   Metastate (what is true now) --> Store (a generation on every member) --> committed: on enough of them
//!                                                                                |
//!   start: assembly (the newest generation that was found) --> Recorded          +--> answers that wait for it go out
//! ```

pub mod assembly;
pub mod damaged;
pub(crate) mod fence;
pub mod membership;
pub mod metadata;
pub(crate) mod own;
pub(crate) mod recorded;
pub mod regions;
pub mod reserve;
mod shape;
pub(crate) mod state;
pub mod superblock;
pub(crate) mod uuid;
pub mod version2;
pub(crate) mod wishes;
