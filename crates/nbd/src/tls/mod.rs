//! Encrypted connections: what both sides know each other by, the handshake, and what carries bytes after it.
//!
//! ```text
//!   handshake       options over a socket, and over TLS once that is agreed     [`line`]
//!   transmission    server or client -- pair of sockets -- pump -- socket       [`pump`]
//! ```
//!
//! A connection that is not encrypted has nothing of this: it speaks over its socket. Behind one that is,
//! a thread of its own holds the TLS session, so that reading and writing, which are two threads' work, need no
//! lock between them, and a device's answers are not encrypted on the thread that brings them.
//!
//! # References
//!
//! - `[NBD]` "The NBD protocol", section "TLS support".
//! - The names of files in a folder of certificates: nbdkit-tls(1) and QEMU's `tls-creds-x509`.

mod credentials;
pub(crate) mod line;
pub(crate) mod pump;

pub(crate) use credentials::server_name;
pub use credentials::{TlsClient, TlsServer};
