//! What a server says.

use levelhead_units::Bytes;

use super::input::{Fields, PutFields, length};
use super::wire::{
    CHUNK_MAGIC, OPTION_MAGIC, OPTION_REPLY_MAGIC, SERVER_MAGIC, SIMPLE_REPLY_MAGIC, chunk, info,
    reply,
};
use super::{Cookie, Errno, ExportFlags, HandshakeFlags, Payload, Refusal, TEXT_MAX};

/// Zeroes after an export's description that old clients wait for.
pub(super) const PADDING: usize = 124;

/// One message of a server.
#[derive(Debug, PartialEq)]
pub enum ServerMessage {
    /// What it can do. Always the first.
    Greeting(HandshakeFlags),
    /// An answer to an option.
    Answer {
        /// The option's number.
        option: u32,
        /// The answer.
        answer: Answer,
    },
    /// The answer to [`super::ClientOption::ExportName`].
    Export {
        /// The export's size.
        size: Bytes,
        /// What it can do.
        flags: ExportFlags,
        /// What follows.
        padding: Padding,
    },
    /// A whole reply to a request.
    Simple {
        /// The request.
        cookie: Cookie,
        /// Why it failed, if it did.
        error: Option<Errno>,
        /// What was read.
        data: Payload,
    },
    /// A part of a reply to a request.
    Chunk {
        /// The request.
        cookie: Cookie,
        /// Whether more parts follow.
        position: ChunkPosition,
        /// The part.
        chunk: Chunk,
    },
}

/// What follows an export's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// 124 zeroes.
    Zeroes,
    /// Nothing, because the client said so.
    None,
}

/// An answer to an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The option is accepted.
    Ack,
    /// There is such an export.
    Server {
        /// Its name.
        name: String,
        /// A text for people.
        description: String,
    },
    /// A fact about an export.
    Info(Info),
    /// There is such a kind of block status.
    MetaContext {
        /// What replies will call it.
        id: u32,
        /// Its name.
        name: String,
    },
    /// The option is refused.
    Refused {
        /// The kind of refusal.
        refusal: Refusal,
        /// The reason, as a text for people.
        reason: String,
    },
}

/// A fact about an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Info {
    /// Its size, and what it can do.
    Export {
        /// Its size.
        size: Bytes,
        /// What it can do.
        flags: ExportFlags,
    },
    /// Its own name.
    Name(String),
    /// A text for people.
    Description(String),
    /// Limits of a request's size, in bytes.
    BlockSize {
        /// What every offset and length should be a multiple of.
        min: u32,
        /// What they had better be a multiple of.
        preferred: u32,
        /// The most a request may carry.
        max: u32,
    },
    /// A fact this codec gives no meaning to.
    Other(u16),
}

/// Where a chunk is in its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkPosition {
    /// More follow.
    Inner,
    /// It is the last.
    Last,
}

/// A part of a reply.
#[derive(Debug, PartialEq)]
pub enum Chunk {
    /// Nothing more to say.
    None,
    /// Bytes that were read.
    Data {
        /// Where they start.
        offset: u64,
        /// The bytes.
        data: Payload,
    },
    /// Zeroes that were read.
    Hole {
        /// Where they start.
        offset: u64,
        /// How many there are.
        length: u32,
    },
    /// What is allocated.
    Status {
        /// In terms of which context.
        context: u32,
        /// Runs of bytes, from the request's offset on.
        runs: Vec<StatusRun>,
    },
    /// The request failed.
    Error(ErrorChunk),
}

/// A run of bytes with the same status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusRun {
    /// How many bytes.
    pub length: u32,
    /// Their status: bit 0 a hole, bit 1 zeroes.
    pub status: u32,
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorChunk {
    /// The kind of error.
    pub error: Errno,
    /// The reason, as a text for people.
    pub message: String,
    /// The first byte that failed, if that is known.
    pub offset: Option<u64>,
}

impl ServerMessage {
    /// Appends everything but [`ServerMessage::payload`], whose bytes come directly after it.
    ///
    /// Panics if a text is longer than [`TEXT_MAX`].
    pub fn encode_head(&self, out: &mut Vec<u8>) {
        self.encode_head_of(self.payload().map_or(0, Payload::len), out);
    }

    /// The same where the payload has this many bytes, more of which follow in other ways.
    pub(crate) fn encode_head_of(&self, payload_len: usize, out: &mut Vec<u8>) {
        match self {
            Self::Greeting(flags) => {
                out.put_u64(SERVER_MAGIC);
                out.put_u64(OPTION_MAGIC);
                out.put_u16(flags.bits());
            }
            Self::Answer { option, answer } => {
                let mut data = Vec::new();
                let kind = answer.encode(&mut data);
                out.put_u64(OPTION_REPLY_MAGIC);
                out.put_u32(*option);
                out.put_u32(kind);
                out.put_u32(length(data.len()));
                out.extend_from_slice(&data);
            }
            Self::Export { size, flags, padding } => {
                out.put_u64(size.get());
                out.put_u16(flags.bits());
                match padding {
                    Padding::Zeroes => out.extend_from_slice(&[0; PADDING]),
                    Padding::None => {}
                }
            }
            Self::Simple { cookie, error, data: _ } => {
                out.put_u32(SIMPLE_REPLY_MAGIC);
                out.put_u32(error.map_or(0, Errno::to_wire));
                out.put_u64(cookie.get());
            }
            Self::Chunk { cookie, position, chunk } => {
                let mut data = Vec::new();
                let kind = chunk.encode_head(&mut data);
                out.put_u32(CHUNK_MAGIC);
                out.put_u16(match position {
                    ChunkPosition::Inner => 0,
                    ChunkPosition::Last => chunk::DONE,
                });
                out.put_u16(kind);
                out.put_u64(cookie.get());
                out.put_u32(length(data.len() + payload_len));
                out.extend_from_slice(&data);
            }
        }
    }

    /// The bytes that follow the head.
    pub fn payload(&self) -> Option<&Payload> {
        match self {
            Self::Simple { data, .. } | Self::Chunk { chunk: Chunk::Data { data, .. }, .. } => {
                Some(data)
            }
            Self::Greeting(_) | Self::Answer { .. } | Self::Export { .. } | Self::Chunk { .. } => {
                None
            }
        }
    }

    /// [`ServerMessage::payload`] alone.
    pub fn into_payload(self) -> Option<Payload> {
        match self {
            Self::Simple { data, .. } | Self::Chunk { chunk: Chunk::Data { data, .. }, .. } => {
                Some(data)
            }
            Self::Greeting(_) | Self::Answer { .. } | Self::Export { .. } | Self::Chunk { .. } => {
                None
            }
        }
    }

    /// Appends the whole message.
    ///
    /// Panics if a text is longer than [`TEXT_MAX`].
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.encode_head(out);
        let slices = self.payload().into_iter().flat_map(Payload::slices);
        slices.for_each(|slice| out.extend_from_slice(slice));
    }
}

impl Answer {
    /// Appends the data; the number of the reply.
    fn encode(&self, data: &mut Vec<u8>) -> u32 {
        match self {
            Self::Ack => reply::ACK,
            Self::Server { name, description } => {
                data.put_counted(checked(name));
                data.extend_from_slice(checked(description).as_bytes());
                reply::SERVER
            }
            Self::Info(info) => {
                info.encode(data);
                reply::INFO
            }
            Self::MetaContext { id, name } => {
                data.put_u32(*id);
                data.extend_from_slice(checked(name).as_bytes());
                reply::META_CONTEXT
            }
            Self::Refused { refusal, reason } => {
                data.extend_from_slice(checked(reason).as_bytes());
                refusal.to_wire()
            }
        }
    }

    pub(super) fn parse(kind: u32, data: &[u8]) -> Option<Self> {
        let mut fields = Fields(data);
        match kind {
            reply::ACK => fields.end(Self::Ack),
            reply::SERVER => {
                let name = fields.counted_text()?;
                Some(Self::Server { name, description: fields.rest_text()? })
            }
            reply::INFO => Info::parse(&mut fields).map(Self::Info),
            reply::META_CONTEXT => {
                Some(Self::MetaContext { id: fields.u32()?, name: fields.rest_text()? })
            }
            _ if kind & reply::REFUSAL_BIT != 0 => {
                let refusal = Refusal::from_wire(kind);
                Some(Self::Refused { refusal, reason: fields.rest_text()? })
            }
            _ => None,
        }
    }
}

impl Info {
    fn encode(&self, data: &mut Vec<u8>) {
        match self {
            Self::Export { size, flags } => {
                data.put_u16(info::EXPORT);
                data.put_u64(size.get());
                data.put_u16(flags.bits());
            }
            Self::Name(name) => {
                data.put_u16(info::NAME);
                data.extend_from_slice(checked(name).as_bytes());
            }
            Self::Description(text) => {
                data.put_u16(info::DESCRIPTION);
                data.extend_from_slice(checked(text).as_bytes());
            }
            Self::BlockSize { min, preferred, max } => {
                data.put_u16(info::BLOCK_SIZE);
                data.put_u32(*min);
                data.put_u32(*preferred);
                data.put_u32(*max);
            }
            Self::Other(number) => data.put_u16(*number),
        }
    }

    fn parse(fields: &mut Fields<'_>) -> Option<Self> {
        match fields.u16()? {
            info::EXPORT => {
                let size = Bytes::new(fields.u64()?);
                let flags = ExportFlags::from_bits(fields.u16()?);
                fields.end(Self::Export { size, flags })
            }
            info::NAME => fields.rest_text().map(Self::Name),
            info::DESCRIPTION => fields.rest_text().map(Self::Description),
            info::BLOCK_SIZE => {
                let (min, preferred, max) = (fields.u32()?, fields.u32()?, fields.u32()?);
                fields.end(Self::BlockSize { min, preferred, max })
            }
            other => Some(Self::Other(other)),
        }
    }
}

impl Chunk {
    /// Appends what stands before the bytes that were read; the number of the kind.
    fn encode_head(&self, data: &mut Vec<u8>) -> u16 {
        match self {
            Self::None => chunk::NONE,
            Self::Data { offset, data: _ } => {
                data.put_u64(*offset);
                chunk::OFFSET_DATA
            }
            Self::Hole { offset, length } => {
                data.put_u64(*offset);
                data.put_u32(*length);
                chunk::OFFSET_HOLE
            }
            Self::Status { context, runs } => {
                data.put_u32(*context);
                for run in runs {
                    data.put_u32(run.length);
                    data.put_u32(run.status);
                }
                chunk::BLOCK_STATUS
            }
            Self::Error(ErrorChunk { error, message, offset }) => {
                let message = checked(message);
                data.put_u32(error.to_wire());
                data.put_u16(u16::try_from(message.len()).expect("it is at most TEXT_MAX bytes"));
                data.extend_from_slice(message.as_bytes());
                match offset {
                    Some(offset) => {
                        data.put_u64(*offset);
                        chunk::ERROR_OFFSET
                    }
                    None => chunk::ERROR,
                }
            }
        }
    }

    /// A chunk that carries no bytes that were read.
    pub(super) fn parse(kind: u16, data: &[u8]) -> Option<Self> {
        let mut fields = Fields(data);
        match kind {
            chunk::NONE => fields.end(Self::None),
            chunk::OFFSET_HOLE => {
                let (offset, length) = (fields.u64()?, fields.u32()?);
                fields.end(Self::Hole { offset, length })
            }
            chunk::BLOCK_STATUS => {
                let context = fields.u32()?;
                let mut runs = Vec::new();
                while !fields.0.is_empty() {
                    runs.push(StatusRun { length: fields.u32()?, status: fields.u32()? });
                }
                (!runs.is_empty()).then_some(Self::Status { context, runs })
            }
            _ if kind & chunk::ERROR_BIT != 0 => {
                // Kinds of error that are not known yet begin as the known ones do.
                let number = fields.u32()?;
                let len = fields.u16()?;
                let message = fields.text(len.into())?;
                let offset = match kind {
                    chunk::ERROR_OFFSET => Some(fields.u64()?),
                    _ => None,
                };
                Some(Self::Error(ErrorChunk { error: Errno::from_wire(number), message, offset }))
            }
            _ => None,
        }
    }
}

fn checked(text: &str) -> &str {
    assert!(text.len() <= TEXT_MAX, "a text of {} bytes", text.len());
    text
}
