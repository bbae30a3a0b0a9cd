//! The program as it is typed. The pages of `--report` have a program of their own beside this one.

mod demo;
mod drive;
mod ecc;
mod fleet;
mod fleet_hours;
mod fs_replay;
mod plan;
mod replay;
mod rtl;
mod study;
#[path = "../../../cli/tests/support/mod.rs"]
mod support;
mod usage;
