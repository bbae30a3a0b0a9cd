//! `levelhead fs ..`: filesystems with a code inside every file.

mod background;
mod code;
mod make;
mod mount;
mod points;
mod status;
mod target;
mod umount;

pub use background::{let_go, start_in_background};
pub use levelhead_fs::format::superblock::INTERLEAVE_MAX;
pub use levelhead_fs::geometry::COPIES_MAX;

pub use code::{CodeWish, Redundancy};
pub use make::{MadeFilesystem, MakeFilesystem, make_filesystem};
pub use mount::{Mount, MountOptions, Mounted, mount};
pub use status::{FilesystemStatus, filesystem_status};
pub use umount::{Unmounted, umount};
