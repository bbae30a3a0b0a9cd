//! What `cargo xtask soak fio`, `cargo xtask soak clients` and `cargo xtask soak files` run at length, and a share of it for every
//! change.

mod clients;
mod files;
mod fio;
mod kills;
#[path = "../support/mod.rs"]
mod support;
