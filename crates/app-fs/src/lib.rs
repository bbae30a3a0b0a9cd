//! `levelhead fs ..`: filesystems with a code inside every file.

#![forbid(unsafe_code)]

mod alone;
mod arithmetic;
mod background;
mod check;
mod code;
mod damage;
mod damaged;
mod inspect;
mod kind;
mod make;
mod mount;
mod points;
mod scrub;
mod status;
mod sync;
mod system_log;
mod target;
mod umount;

pub use background::{let_go, start_in_background};
pub use levelhead_fs::check::{Depth, Repair};
pub use levelhead_fs::format::superblock::INTERLEAVE_MAX;
pub use levelhead_fs::geometry::COPIES_MAX;
pub use levelhead_fs::{FileKind, ScrubParts};

pub use check::{CheckEnd, CheckFilesystem, CheckWhen, FilesystemCheck, check_filesystem};
pub use code::{Chosen, CodeWish, Redundancy, choose, forced};
pub use damage::{DamageFilesystem, DamageGroup, DamagedFilesystem, PerGroup, damage_filesystem};
pub use inspect::{FilesystemInspection, InspectFilesystem, InspectWhat, inspect_filesystem};
pub use kind::{KindSet, SetKind, parse_kind, parse_setting, set_kind};
pub use make::{MadeFilesystem, MakeFilesystem, make_filesystem};
pub use mount::{Mount, MountHooks, MountOptions, Mounted, mount};
pub use scrub::{FilesystemScrub, ScrubFilesystem, scrub_filesystem, scrub_parts};
pub use status::{FilesystemStatus, filesystem_status};
pub use sync::{Synced, sync_filesystem};
pub use system_log::SystemLog;
pub use umount::{Unmounted, umount};
