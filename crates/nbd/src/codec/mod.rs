//! The protocol without sockets: bytes in, messages out; messages in, bytes out; for both sides.
//!
//! ```text
//!   server                                           client
//!   ServerDecoder  <-- flags, options, requests --   encode_flags, ClientOption, RequestHeader
//!   ServerMessage  --- greeting, answers, replies -> ClientDecoder
//! ```
//!
//! A decoder is driven by the owner of the socket: read into [`ServerDecoder::space`], say how much
//! with [`ServerDecoder::filled`], then take messages with [`ServerDecoder::next`] until there is
//! none. Which message may come next depends on what was agreed before, so a decoder yields one
//! message at a time and its owner may change its stage in between.
//!
//! # Invariants
//!
//! - C1. The messages depend on the bytes alone and not on how they were split.
//! - C2. A decoder holds at most [`BUFFER`] bytes and one payload of at most [`PAYLOAD_MAX`]. A
//!   server's decoder announces a payload before it makes the memory for it.
//! - C3. After `next` gave nothing there is space for at least one byte.
//! - C4. After an error a decoder yields that error at every call; the connection is to be dropped.
//!
//! The bytes of a write land in a sector buffer at the place they have in their first sector, so
//! that an aligned write is never copied again.
//!
//! # References
//!
//! - `[NBD]` "The NBD protocol", `doc/proto.md` of the reference implementation.
//!
//! # Leaves out
//!
//! The oldstyle handshake, extended headers (64-bit lengths), resizing.

mod client_decoder;
mod from_client;
mod from_server;
mod input;
mod payload;
mod wire;

use std::fmt;

pub use client_decoder::ClientDecoder;
pub use from_client::{ClientMessage, ClientOption, RequestHeader, ServerDecoder, encode_flags};
pub use from_server::{
    Answer, Chunk, ChunkPosition, ErrorChunk, Info, Padding, ServerMessage, StatusRun,
};
pub use input::BUFFER;
pub use payload::{Body, Payload};
pub use wire::{
    ClientFlags, CommandFlags, CommandKind, Cookie, Errno, ExportFlags, HandshakeFlags, Refusal,
    info, option,
};

/// The most bytes one read or write may carry.
pub const PAYLOAD_MAX: u32 = 32 << 20;
/// The longest payload that is read and thrown away to keep the connection. Longer ones end it.
pub const PAYLOAD_SKIP_MAX: u32 = 64 << 20;
/// The most bytes of data one option may have.
pub const OPTION_MAX: u32 = 32 << 10;
/// The longest option that is read and thrown away to keep the connection. Longer ones end it.
pub const OPTION_SKIP_MAX: u32 = 1 << 20;
/// The most bytes of a name or a text.
pub const TEXT_MAX: usize = 4096;

const _: () = assert!(PAYLOAD_MAX < PAYLOAD_SKIP_MAX);
const _: () = assert!(OPTION_MAX < OPTION_SKIP_MAX);
const _: () = assert!(OPTION_MAX as usize + 64 < BUFFER);

/// Bytes that are not the protocol, or not within its bounds. Nothing after them can be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// A message began with something else than it must.
    Magic {
        /// What should have come.
        expected: &'static str,
        /// The word that came.
        got: u64,
    },
    /// The client chose flags that it was not offered.
    ClientFlags(u32),
    /// An option's data are longer than [`OPTION_SKIP_MAX`].
    OptionLength(u32),
    /// A payload is longer than [`PAYLOAD_SKIP_MAX`], or from a server than [`PAYLOAD_MAX`].
    PayloadLength(u32),
    /// The server answered an option with data that make no sense.
    Answer {
        /// The option.
        option: u32,
        /// The number of the reply.
        kind: u32,
    },
    /// The server sent a chunk that makes no sense.
    Chunk {
        /// The number of its kind.
        kind: u16,
        /// How long it says it is.
        length: u32,
    },
    /// The server answered a request that was not made.
    UnknownCookie(Cookie),
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic { expected, got } => write!(f, "expected {expected}, got {got:#x}"),
            Self::ClientFlags(flags) => write!(f, "client flags {flags:#x} were not offered"),
            Self::OptionLength(length) => {
                write!(f, "an option of {length} bytes: the limit is {OPTION_SKIP_MAX}")
            }
            Self::PayloadLength(length) => {
                write!(f, "a payload of {length} bytes: the limit is {PAYLOAD_MAX}")
            }
            Self::Answer { option, kind } => {
                write!(f, "answer {kind:#x} to option {option} makes no sense")
            }
            Self::Chunk { kind, length } => {
                write!(f, "a chunk of kind {kind:#x} and {length} bytes makes no sense")
            }
            Self::UnknownCookie(cookie) => {
                write!(f, "an answer to request {}, which was not made", cookie.get())
            }
        }
    }
}

impl std::error::Error for ProtocolError {}

impl From<ProtocolError> for std::io::Error {
    fn from(error: ProtocolError) -> Self {
        Self::new(std::io::ErrorKind::InvalidData, error)
    }
}
