//! What `cargo xtask soak` runs as its parts `fio`, `pauses`, `clients` and `files` at length, and a share of it for every
//! change.

mod clients;
mod files;
mod fio;
mod kills;
mod pauses;
#[path = "../support/mod.rs"]
mod support;
