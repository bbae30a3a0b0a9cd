//! The program as it is typed. Arrays and long loads have programs of their own beside this one.

mod demo;
mod drive;
mod fs;
mod fs_inspect;
mod fs_kinds;
mod fs_life;
mod listen;
mod peers;
#[path = "../../../nbd/tests/common/pki.rs"]
#[expect(dead_code, reason = "the program reads the files by itself")]
mod pki;
mod probe;
#[path = "../support/mod.rs"]
mod support;
mod usage;
mod watch;
