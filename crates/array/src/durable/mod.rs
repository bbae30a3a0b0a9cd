//! What must survive a crash: its format, who is right about it, and what is written before what.

pub(crate) mod books;
pub mod damaged;
mod keeping;
pub(crate) mod ledger;
pub(crate) mod list_copies;
pub(crate) mod listing;
pub(crate) mod map_copies;
pub(crate) mod maps;
pub mod membership;
pub mod missed;
mod own;
pub mod quorum;
pub mod reserve;
pub(crate) mod stored;
pub mod superblock;
mod uuid;
pub(crate) mod wishes;
