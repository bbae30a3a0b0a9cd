//! The NBD protocol: any [`levelhead_block::BlockService`] for clients of other programs, and any
//! NBD export as a [`levelhead_block::BlockService`].
//!
//! ```text
//!   Server   many exports, many clients, many requests in flight     threads and sockets
//!   Client   one export                                              threads and sockets
//!   LastingClient   the same, which comes back when it was away      threads and sockets
//!   tls      what carries encrypted bytes behind either              threads and sockets
//!   codec    bytes <-> messages, for both                            neither
//! ```
//!
//! [`codec`] knows the protocol and no sockets; [`Server`] and [`Client`] know sockets and leave
//! every byte of the protocol to it. What the server takes and refuses, and why, is written down for
//! its users in `docs/nbd.md`.
//!
//! For Linux: the way a listening socket is woken is not portable. Writing to a client that has left
//! must not kill the process, so SIGPIPE has to stay ignored, as Rust programs start with it.

#![forbid(unsafe_code)]

mod client;
pub mod codec;
mod deadline;
mod endpoint;
mod server;
mod socket;
mod tls;
mod uri;

pub use client::{CONNECT_MAX, Client, IsSame, LATE, LastingClient, Recognise};
pub use endpoint::{Endpoint, ParseEndpointError};
pub use server::{
    Access, BYTES_MAX, Bounds, CONNECTIONS_MAX, Export, HANDSHAKE_MAX, HOLD_MAX, Look, Running,
    SOCKET_MODE, STALL_MAX, Server, Traffic,
};
pub use tls::{TlsClient, TlsServer};
pub use uri::{ParseUriError, Uri};
