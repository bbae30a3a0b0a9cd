//! What `cargo xtask soak fio` and `cargo xtask soak clients` run at length, and a share of it for every change.

mod clients;
mod fio;
#[path = "../support/mod.rs"]
mod support;
