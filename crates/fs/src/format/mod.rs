//! Every byte that the filesystem keeps on its disk. `docs/formats/filesystem.md` is the normative text; tests hold it and these
//! modules to each other.
//!
//! Whatever is decoded here may come from a damaged disk: decoding gives nothing, and never panics, for bytes that cannot be right.

pub mod entry;
pub mod extent;
pub(crate) mod fields;
pub mod inode;
pub mod ladder;
pub mod layout;
pub mod node;
pub mod packed;
#[cfg(test)]
mod page;
pub mod record;
pub mod superblock;
pub mod unit;
