//! What must survive a crash.

pub mod superblock;
