//! Servers and clients of the protocol, on each other and on those that others wrote. What looks at the whole process has a
//! program of its own beside this one.

mod clients;
mod codec;
mod codec_any_bytes;
#[path = "../common/mod.rs"]
mod common;
mod exports;
mod flood;
mod handshake;
mod lasting;
mod loopback;
mod memory;
mod peers;
mod peers_tls;
#[path = "../common/talk.rs"]
mod talk;
mod tls;
mod turns;
