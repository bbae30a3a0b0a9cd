//! The program as it is typed. Arrays, the pages of `--report` and long loads have programs of their own beside this one.

mod demo;
mod drive;
mod ecc;
mod fleet;
mod fleet_hours;
mod fs;
mod fs_inspect;
mod fs_kinds;
mod fs_life;
mod fs_replay;
mod listen;
mod peers;
#[path = "../../../nbd/tests/common/pki.rs"]
#[expect(dead_code, reason = "the program reads the files by itself")]
mod pki;
mod plan;
mod probe;
mod replay;
mod rtl;
mod study;
#[path = "../support/mod.rs"]
mod support;
mod usage;
mod watch;
